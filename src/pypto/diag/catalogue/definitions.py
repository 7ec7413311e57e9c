"""PT02xx: definitions of functions and programs, and the text entry points."""

from __future__ import annotations

from pypto.diag.catalogue.model import CodeInfo

ENTRIES = (
    CodeInfo(
        code="PT0201",
        title="source text not found",
        exception="ParserSyntaxError",
        explanation="A decorated function is compiled from its source text, which Python could not provide.",
        fix="Save the code in a file, or pass the text to pl.parse.",
        phrases=(
            "Cannot retrieve source code for",
            "Could not find function definition",
            "Failed to parse function source",
            "Failed to parse class source",
        ),
    ),
    CodeInfo(
        code="PT0202",
        title="program without functions",
        exception="ParserSyntaxError",
        explanation="@pl.program collects the methods that are decorated with @pl.function, and found none.",
        fix="Decorate at least one method of the class with @pl.function.",
        phrases=("contains no @pl.function decorated methods",),
    ),
    CodeInfo(
        code="PT0203",
        title="bad keyword of @pl.function",
        exception="ParserSyntaxError",
        explanation="The decorator of a method is read as text, so its keywords must be spelt literally.",
        fix="Write enum members in full (pl.FunctionType.InCore, pl.Level.HOST) and booleans as True or False.",
        phrases=(
            "Unsupported `@pl.function`",
            "Unsupported `@pl.function(**kwargs)`",
            "`@pl.function(auto_scope=...)` must be a bool literal",
            "Expected pl.Level.",
            "Expected pl.Role.",
            "Expected pl.FunctionType.",
            "Unknown Level value",
            "Unknown Role value",
            "Unknown FunctionType value",
            "implies level=",
            "implies role=",
        ),
    ),
    CodeInfo(
        code="PT0204",
        title="bad function attributes",
        exception="ParserSyntaxError",
        explanation="Function attributes are a dict of string keys and plain values, given once, before any other "
        "statement of the body.",
        fix='Begin the body with pl.func_attr({"key": value}).',
        phrases=(
            "must be a dict",
            "keys must be strings",
            "is an annotation-only",
            "references a variable",
            "Unsupported `**` unpacking",
            "Attrs dict key must be a string literal",
            "Unsupported value for @pl.function attr",
            "exactly one positional dict argument",
            "argument must be a dict literal",
            "key must be a string literal",
            "Duplicate function attribute",
            "cannot be set with pl.func_attr",
            "must appear before every other statement",
            "Unsupported list element type for key",
        ),
    ),
    CodeInfo(
        code="PT0205",
        title="bad parameter",
        exception="ParserTypeError",
        explanation="Every parameter but self needs one DSL type; Out and InOut mark tensors that are written.",
        fix="Annotate the parameter: x: pl.Tensor[[64, 64], pl.FP32], y: pl.Out[...], n: pl.Scalar[pl.INDEX].",
        phrases=(
            "missing type annotation",
            "Parameter type cannot be a tuple",
            "cannot have InOut direction",
            "shadows the dynamic symbol",
        ),
    ),
    CodeInfo(
        code="PT0206",
        title="bad external kernel",
        exception="ParserSyntaxError",
        explanation="An external kernel is declared by its signature alone and needs a name of its own.",
        fix="Leave '...' as the body and give each external function another name than the program's functions.",
        phrases=(
            "must have an empty '...' body",
            "Conflicting external functions with name",
            "conflicts with program function",
        ),
    ),
    CodeInfo(
        code="PT0207",
        title="external_source on the wrong kind of function",
        exception="ParserTypeError",
        explanation="Only kernel functions can come from an external source file.",
        fix="Give the function a kernel type, or write its body.",
        phrases=("external_source is only valid on",),
    ),
    CodeInfo(
        code="PT0208",
        title="self in a SubWorker",
        exception="ParserSyntaxError",
        explanation="A SubWorker function runs on its own and has no program to refer to.",
        fix="Remove the parameter self.",
        phrases=("must not declare 'self'",),
    ),
)
