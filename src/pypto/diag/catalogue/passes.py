"""PT10xx: what passes find in a program."""

from __future__ import annotations

from pypto.diag.catalogue.model import CodeInfo

ENTRIES = (
    CodeInfo(
        code="PT1000",
        title="a pass can't translate this",
        exception="PassError",
        explanation="A pass of the compiler met something in the program that it has no translation for.",
        fix="Do what the message says at the line that it shows.",
        phrases=(),
    ),
    CodeInfo(
        code="PT1010",
        title="Inline functions that call each other in a circle",
        exception="PassError",
        explanation=(
            "An Inline function is replaced by its body wherever it is called. One that calls itself, directly or "
            "through others, would never come to an end."
        ),
        fix="Use a loop, or make one of the functions a kernel or an orchestration of its own.",
        phrases=("Cycle detected in FunctionType::Inline call graph",),
    ),
    CodeInfo(
        code="PT1011",
        title="an Inline function that returns early",
        exception="PassError",
        explanation=(
            "The body of an Inline function takes the place of the call, so there is nothing that a return in the "
            "middle could leave. The value is what the last statement returns."
        ),
        fix="Assign the result to one name in each branch, and return the name in the last line of the function.",
        phrases=("contains a non-trailing ReturnStmt",),
    ),
    CodeInfo(
        code="PT1012",
        title="a call that does not fit its Inline function",
        exception="PassError",
        explanation=(
            "The call gives another number of arguments than the function has parameters, uses a value that the "
            "function does not return, passes an expression where the function writes the parameter, or carries an "
            "attribute that only a launch can have."
        ),
        fix="Change the call, or the function, at the lines shown.",
        phrases=(
            "where the call uses one value",
            "so the argument must be a variable",
            "has no meaning on a call of Inline function",
            "argument(s), the call gives",
        ),
    ),
    CodeInfo(
        code="PT1013",
        title="an Inline function that returns a tuple as a whole",
        exception="PassError",
        explanation=(
            "The elements of a tuple that an Inline function returns are put where the caller takes them. That needs a "
            "tuple of values that are written down, not the result of another call."
        ),
        fix="Unpack the tuple into names, and return these: `a, b = self.k(...)`, then `return a, b`.",
        phrases=("returns a tuple through an unsupported expression",),
    ),
    CodeInfo(
        code="PT1014",
        title="the index of an unroll loop that never runs",
        exception="PassError",
        explanation="Behind an unroll loop its index has the last value. A loop without iterations gives it none.",
        fix="Give the name a value in front of the loop, or do not use it behind the loop.",
        phrases=("is used after its unroll loop, which has no iterations",),
    ),
    CodeInfo(
        code="PT1015",
        title="an unroll loop that can't be expanded",
        exception="PassError",
        explanation=(
            "pl.unroll copies the body of the loop for each value of its index while compiling, at most 1024 times. So "
            "start, stop and step must be integers that are known then, and the step must not be zero."
        ),
        fix="Use constants, unroll a smaller loop, or use pl.range.",
        phrases=(
            "must be a compile-time integer constant",
            "Unroll loop step cannot be zero",
            "exceeds maximum allowed",
        ),
    ),
    CodeInfo(
        code="PT1020",
        title="a variable may have no value where it is read",
        exception="PassError",
        explanation=(
            "A name that is assigned in one branch only, or in a loop that may run zero times, has no value on the "
            "other path. To read it behind the branch or loop is an error unless every path to the read assigns it."
        ),
        fix="Give the variable a value before the branch or loop, or read it only where it was assigned.",
        phrases=("may be undefined",),
    ),
    CodeInfo(
        code="PT1021",
        title="a variable has values of different types on two paths",
        exception="PassError",
        explanation="Where two branches or two iterations of a loop meet, a variable has one value of one type.",
        fix="Use different names for values of different types or shapes.",
        phrases=("has different types on two paths",),
    ),
    CodeInfo(
        code="PT1040",
        title="a task launch in the condition of a while loop",
        exception="PassError",
        explanation=(
            "The condition of a while loop is evaluated before each iteration. It may call operations that only "
            "compute a value, such as pl.read, but not launch a task or do anything else that has an effect."
        ),
        fix="Assign the result to a variable before the loop and at the end of the loop's body, and test the variable.",
        phrases=("in the condition of a while loop can't be evaluated before each iteration",),
    ),
    CodeInfo(
        code="PT1045",
        title="break or continue that the loop can't take",
        exception="PassError",
        explanation=(
            "Kernels have structured control flow only, so break and continue become flags and branches. That has no "
            "meaning where iterations or blocks run side by side: in pipelined, parallel and unrolled loops, and out "
            "of an spmd or split_aiv region."
        ),
        fix="Use pl.range or a while loop, or decide in front of the region whether the iteration goes on.",
        phrases=(
            "can't leave a loop outside it",
            "can't leave a pipelined loop",
            "is not supported in parallel loops",
            "is not supported in unrolled loops",
            "can't be left by an escape",
        ),
    ),
    CodeInfo(
        code="PT1070",
        title="a no-dep tensor that the scope does not use",
        exception="PassError",
        explanation=(
            "no_dep_args= takes tensors out of the ordering of a task. It can only name tensors that the body of the "
            "scope uses, since nothing else is an argument of the task."
        ),
        fix="Remove the tensor from no_dep_args=, or use it in the scope.",
        phrases=("which is not captured by the scope body",),
    ),
    CodeInfo(
        code="PT1071",
        title="a kernel scope in a kernel scope",
        exception="PassError",
        explanation="A kernel scope becomes a kernel, and a kernel can't launch another one.",
        fix="Write the scopes one after the other, or leave out the inner one.",
        phrases=("Nested InCore scope detected",),
    ),
    CodeInfo(
        code="PT1072",
        title="a kernel scope outside the chip level",
        exception="PassError",
        explanation=(
            "A kernel is launched by an orchestration of the CHIP level. A kernel scope directly in a scope or "
            "function of another level has nobody to launch it."
        ),
        fix="Put the kernel scope into a with pl.at(level=pl.Level.CHIP, role=pl.Role.Orchestrator): block.",
        phrases=("a kernel scope needs an enclosing CHIP level",),
    ),
    CodeInfo(
        code="PT1073",
        title="two ways to split a kernel",
        exception="PassError",
        explanation="pl.split(...) halves a whole kernel, pl.split_aiv a region of it. A kernel can have one of them.",
        fix="Remove pl.split(...) from the scope, or the pl.split_aiv region from its body.",
        phrases=("mutually exclusive AIV-split mechanisms",),
    ),
    CodeInfo(
        code="PT1074",
        title="a waiting task that does more than wait",
        exception="PassError",
        explanation=(
            "pld.system.defer_wait registers conditions on which the completion of a task depends. Its scope has to be "
            "a task of its own (as tid), which registers at most 64 conditions, in loops with constant bounds only, "
            "and does nothing else."
        ),
        fix="Do what the message says; continue in another task with deps=[tid].",
        phrases=("a kernel scope with pld.system.defer_wait",),
    ),
    CodeInfo(
        code="PT1075",
        title="more than one width in a cluster",
        exception="PassError",
        explanation="The kernels of a cluster are launched together, over one number of blocks.",
        fix="Give each pl.spmd() block a cluster of its own.",
        phrases=("Only one pl.spmd() block is allowed",),
    ),
    CodeInfo(
        code="PT1076",
        title="a width that is computed inside the launch",
        exception="PassError",
        explanation="How many blocks are launched is decided by the caller, before anything in the cluster runs.",
        fix="Compute the number of blocks before the pl.cluster().",
        phrases=("which is defined inside the enclosing pl.cluster()",),
    ),
    CodeInfo(
        code="PT1077",
        title="a launch in a launch",
        exception="PassError",
        explanation="A cluster or pl.spmd scope becomes one launch, which can't hold another one.",
        fix="Write the scopes one after the other.",
        phrases=("one launch can't hold another",),
    ),
    CodeInfo(
        code="PT1078",
        title="a return inside a scope",
        exception="PassError",
        explanation=(
            "The body of this scope becomes a function of its own. A return at its end is put behind it; one in a "
            "branch or loop of the scope would have to end the function around it as well, which it can't."
        ),
        fix="Assign what is to be returned and return it behind the scope.",
        phrases=("a return in the middle of a scope that becomes a function",),
    ),
    CodeInfo(
        code="PT1079",
        title="an array that crosses the border of a scope",
        exception="PassError",
        explanation=(
            "An array is a few words in the memory of the core that made it. A scope becomes a function that may run "
            "on another core, so it can take in and give back tensors and scalars, but no array."
        ),
        fix="Make and use the array on the same side of the scope; pass single elements instead.",
        phrases=("can't leave the function that makes it, and this scope",),
    ),
    CodeInfo(
        code="PT1088",
        title="a kernel that returns one parameter twice",
        exception="PassError",
        explanation=(
            "What a kernel returns of its parameters is the buffer of the argument. Two results that are the same "
            "parameter are one buffer, and both hold what was written to it last."
        ),
        fix="Return each written parameter once, or write the second value to a parameter of its own.",
        phrases=("twice: both results would be one buffer",),
    ),
    CodeInfo(
        code="PT1089",
        title="a parallel loop of unknown length that collects task ids",
        exception="PassError",
        explanation=(
            "The iterations of a parallel loop run side by side, so a task that waits for the loop waits for the tasks "
            "of all of them. In a manual scope their ids are kept in an array, whose size has to be known."
        ),
        fix="Give the loop constant bounds, use pl.range(), or collect the ids in a pl.array of a fixed size.",
        phrases=("pl.parallel loops carrying a manual_scope dep",),
    ),
)
