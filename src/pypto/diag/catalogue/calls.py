"""PT05xx: calls and operators."""

from __future__ import annotations

from pypto.diag.catalogue.model import CodeInfo

ENTRIES = (
    CodeInfo(
        code="PT0501",
        title="unknown operator",
        exception="InvalidOperationError",
        explanation="There is no operator of that name in the name space that the call spells.",
        fix="Check the spelling; the hint gives the closest name.",
        phrases=(
            "Unknown operation 'pl.",
            "Unknown pl.",
            "Unknown distributed operation",
            "Unknown distributed category",
        ),
    ),
    CodeInfo(
        code="PT0502",
        title="operator rejected its arguments",
        exception="InvalidOperationError",
        explanation="The operands or keywords do not satisfy the operator's type rule, which the message states.",
        fix="Compare kinds, shapes, dtypes and memory spaces of the operands with the operator reference.",
        phrases=(" operation '", "Error in "),
    ),
    CodeInfo(
        code="PT0503",
        title="tensors and tiles do not mix",
        exception="InvalidOperationError",
        explanation="An operator of the pl name space works on tensors or on tiles; some forms exist for one of them.",
        fix="Load tensors into tiles with pl.load first, and leave out keywords that the other kind does not take.",
        phrases=(
            "cannot mix Tensor and Tile arguments",
            "expected Tensor or Tile",
            "is not supported for Tile operands",
            "Tensor inputs must not pass",
            "Tile inputs require",
            "clamp=True is not supported for a Tile",
            "Scalar inputs do not support non-default mode",
        ),
    ),
    CodeInfo(
        code="PT0504",
        title="bad allocation",
        exception="InvalidOperationError",
        explanation="A printed buffer allocation has a fixed form.",
        fix="Keep the two positional arguments and at most pinned=True.",
        phrases=("accepts no keyword argument", "'pinned' must be a bool literal", "expects 2 positional args"),
    ),
    CodeInfo(
        code="PT0505",
        title="call of something that is not callable in the DSL",
        exception="UnsupportedFeatureError",
        explanation="A body calls pl operators, self.<method>, and functions decorated for the DSL; nothing else.",
        fix="Decorate the helper with @pl.inline, or compute its result outside of the function.",
        phrases=("Unsupported function call", "Unsupported operation call"),
    ),
    CodeInfo(
        code="PT0506",
        title="unknown method",
        exception="UndefinedVariableError",
        explanation="The program has no function of that name.",
        fix="Check the spelling and that the method is decorated with @pl.function.",
        phrases=("not defined in program",),
    ),
    CodeInfo(
        code="PT0507",
        title="wrong arguments of a call",
        exception="ParserTypeError",
        explanation="The number or the names of the arguments differ from the signature of the called function.",
        fix="Pass one argument for each parameter, in the order of the signature.",
        phrases=(
            "argument(s), got",
            "does not accept keyword argument",
            "Inline function '",
        ),
    ),
    CodeInfo(
        code="PT0508",
        title="call used as a value returns nothing",
        exception="ParserTypeError",
        explanation="The inline function has no return statement, so its call has no value.",
        fix="Return a value from the function, or write the call as a statement.",
        phrases=("has no return value",),
    ),
    CodeInfo(
        code="PT0509",
        title="arguments disagree on a dynamic dimension",
        exception="ParserSyntaxError",
        explanation="Parameters share a symbol, but the arguments have extents that are not provably equal.",
        fix="Pass tensors with equal extents, or use two symbols in the signature.",
        phrases=("not provably equal",),
    ),
    CodeInfo(
        code="PT0510",
        title="bad attributes of a call",
        exception="ParserSyntaxError",
        explanation="attrs= of a call is a dict literal with known keys.",
        fix="Leave out attrs=; it is meant for printed IR.",
        phrases=(
            "must use string-literal keys",
            "Unknown call-site direction marker",
            "must match positional arg count",
            "attrs={'manual_dep_edges'",
            "is not a writable attr",
            "list elements are mixed",
            "unknown direction",
            "is not an argument of call",
        ),
    ),
)
