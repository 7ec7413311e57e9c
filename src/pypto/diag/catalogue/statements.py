"""PT06xx: statements and control flow."""

from __future__ import annotations

from pypto.diag.catalogue.model import CodeInfo

ENTRIES = (
    CodeInfo(
        code="PT0601",
        title="statement not in the DSL",
        exception="UnsupportedFeatureError",
        explanation="A body consists of assignments, calls, if, for, while, with, return, break, continue and pass.",
        fix="Rewrite the statement with these, or move it out of the function.",
        phrases=("Unsupported statement type", "with no value is not supported"),
    ),
    CodeInfo(
        code="PT0602",
        title="bad assignment target",
        exception="ParserSyntaxError",
        explanation="An assignment binds a plain name, a tuple of plain names, or a subscript of a name.",
        fix="Assign to a name.",
        phrases=(
            "Unsupported assignment",
            "Only simple variable assignments supported",
            "Tuple unpacking target must be a variable name",
        ),
    ),
    CodeInfo(
        code="PT0603",
        title="bad loop iterator",
        exception="ParserSyntaxError",
        explanation="A for loop iterates over pl.range, pl.parallel, pl.unroll or pl.pipeline.",
        fix="Write for i in pl.range(n), with bounds that are integers and known keywords.",
        phrases=(
            "For loop must use pl.range()",
            "requires at least 1 argument",
            "in pl.range()",
            "init_values must be a list or tuple",
            "attrs must be a dict literal",
            "Unsupported value type for attrs key",
        ),
    ),
    CodeInfo(
        code="PT0604",
        title="bad loop targets",
        exception="ParserSyntaxError",
        explanation="A loop that carries values has the targets i, (a, b): the index, and one name for each value.",
        fix="Write for i, (a, b) in pl.range(n, init_values=(a0, b0)).",
        phrases=(
            "For loop target must be",
            "Loop variable must be a simple name",
            "Iter args must be a tuple",
            "Iter arg must be a simple name",
            "Mismatch:",
        ),
    ),
    CodeInfo(
        code="PT0605",
        title="values of a loop or branch are not yielded as declared",
        exception="ParserSyntaxError",
        explanation="A loop with init_values yields exactly one new value for each of them, by an assignment.",
        fix="End the body with a2, b2 = pl.yield_(a1, b1), in the order of init_values.",
        phrases=(
            "requires an assignment-form pl.yield_",
            "iteration arguments but",
            "Multiple yields should use tuple unpacking",
        ),
    ),
    CodeInfo(
        code="PT0606",
        title="bad pl.unroll",
        exception="ParserSyntaxError",
        explanation="An unrolled loop is expanded by the compiler, so its bounds are constants and nothing is carried.",
        fix="Use constant bounds, or pl.range.",
        phrases=(
            "pl.unroll() requires compile-time constant integer bounds",
            "step cannot be zero",
            "cannot be combined with init_values",
        ),
    ),
    CodeInfo(
        code="PT0607",
        title="bad pl.pipeline",
        exception="ParserSyntaxError",
        explanation="pl.pipeline needs the number of stages as a constant of at least 1.",
        fix="Write pl.pipeline(n, stage=2).",
        phrases=(
            "pl.pipeline() requires stage=",
            "stage must be a compile-time constant integer",
            "stage must be >= 1",
            "stage= is only supported on pl.pipeline()",
        ),
    ),
    CodeInfo(
        code="PT0608",
        title="bad pl.while_",
        exception="ParserSyntaxError",
        explanation="The explicit form of a while loop is for (a,) in pl.while_(init_values=(a0,)) and begins with "
        "pl.cond.",
        fix="Begin the body with pl.cond(condition), or write a plain while loop.",
        phrases=(
            "takes no positional arguments",
            "pl.while_() requires init_values",
            "First statement in pl.while_() body must be",
            "can only be the first statement",
            "While loop target must be a tuple",
            "pl.cond() requires exactly 1 argument",
        ),
    ),
    CodeInfo(
        code="PT0609",
        title="misplaced break or continue",
        exception="InvalidOperationError",
        explanation="break and continue need a sequential loop around them in the same function.",
        fix="Use pl.range, or guard the rest of the body with an if.",
        phrases=(
            "' outside loop",
            "not supported in parallel loops",
            "not supported in unrolled loops",
            "not supported inside a 'for ... in pl.split_aiv",
        ),
    ),
)
