"""PT11xx: what code generators find in a program."""

from __future__ import annotations

from pypto.diag.catalogue.model import CodeInfo


def _info(code: str, title: str, explanation: str, fix: str, *phrases: str) -> CodeInfo:
    return CodeInfo(
        code=code, title=title, exception="CodegenError", explanation=explanation, fix=fix, phrases=tuple(phrases)
    )


ENTRIES = (
    _info(
        "PT1100",
        "a code generator can't print this",
        "The program is valid, but it holds something that can't be said in the generated language.",
        "Do what the message says at the line that it shows.",
    ),
    _info(
        "PT1101",
        "a dependency on a task that no longer has a name",
        "A task id that is bound in a loop body or branch exists there only: behind it nobody knows which iteration, "
        "or whether the branch, launched the task.",
        "Launch both tasks in one scope, or carry the id out: through a loop carry, or in an array of task ids that is "
        "made outside.",
        "cannot be honored",
    ),
    _info(
        "PT1102",
        "a tensor that is used behind the scope that allocates it",
        "The memory of a tensor that a runtime scope allocates is given away when the scope ends.",
        "Create the tensor in front of the scope.",
        "is used behind the scope that allocates it",
    ),
    _info(
        "PT1103",
        "an initial value that a tensor can't have",
        "A new tensor is filled by the task runtime, which gets one number: finite, whole for integer tensors, at most "
        "2**53 in size, and only zero for floats narrower than 32 bits.",
        "Use another value, or fill the tensor in a kernel.",
        "init_value must be finite",
        "non-zero init_value is not supported",
        "is not an integer but the tensor",
        "exactly-representable",
    ),
    _info(
        "PT1104",
        "a predicate that the task runtime can't evaluate",
        "A launch may depend on one comparison between an element of a signed integer tensor and an integer literal; "
        "the runtime looks at it when the task would start.",
        "Compute such a flag into a tensor first, and compare that.",
        "predicate: the operand",
        "predicate: it must",
        "predicate: index",
    ),
    _info(
        "PT1105",
        "too many arguments",
        "A task takes at most 32 tensors and 16 scalars, an orchestration 256 and 128.",
        "Pass slices of one tensor instead of many tensors, or a tensor of numbers instead of many scalars.",
        "a task takes at most",
        "an orchestration takes at most",
    ),
    _info(
        "PT1106",
        "something that orchestration can't do to a tensor",
        "Orchestration makes tensors, views of them, and single elements. Everything else is for kernels.",
        "Move it into a kernel scope, or use a view that keeps the layout.",
        "only supported inside an InCore function",
        "not supported in Orchestration functions",
        "cannot combine shape reinterpret",
        "only supports shape reinterpret for ND layout",
        "must be different",
        "is out of range for rank",
        "packed 4-bit elements",
        "exceeding the runtime's maximum of",
    ),
    _info(
        "PT1107",
        "a launch of a graph",
        "Functions of the type Graph describe tasks that are recorded once and started many times, which is not built "
        "yet.",
        "Make the function an Orchestration.",
        "cannot be compiled yet",
    ),
    _info(
        "PT1108",
        "a result that a launch can't give back",
        "A task writes tensors. It can't hand a number to the orchestration that launches it, and an output that the "
        "runtime allocates needs a shape that the caller knows.",
        "Write the number to a tensor and read it; create the output and pass it.",
        "which a task can't give back to orchestration",
        "is not known to the caller",
    ),
    _info(
        "PT1109",
        "a part that is assembled but does not lie in its target",
        "pl.assemble in orchestration copies nothing: the part has to be written in its place. The compiler sees to "
        "that where a created tensor is filled by a kernel and assembled once; this one is not such a tensor.",
        "Let the kernel store into the target itself, or create a tensor for each assemble that has no other use.",
        "is not written in place",
    ),
    _info(
        "PT1110",
        "an argument that a scope computes from more than scalars",
        "The scope around a launch is a task as a whole: what it passes is known before it starts. Arithmetic on "
        "scalars is done where the scope stands; an element of a tensor can't be read there.",
        "Read the element in front of the scope, and pass the number.",
        "is computed inside the scope that launches it",
    ),
)
