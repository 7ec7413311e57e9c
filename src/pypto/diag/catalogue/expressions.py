"""PT04xx: names, expressions and subscripts."""

from __future__ import annotations

from pypto.diag.catalogue.model import CodeInfo

ENTRIES = (
    CodeInfo(
        code="PT0401",
        title="value from outside cannot be used",
        exception="ParserTypeError",
        explanation="A name from around the function has a value that is no number, dtype, enum member or DSL object.",
        fix="Bind a plain number or a DSL object to the name, or pass the value as a parameter.",
        phrases=(
            "Unsupported closure variable type",
            "Cannot resolve expression",
            "Failed to evaluate expression",
            "Unsupported constant type",
        ),
    ),
    CodeInfo(
        code="PT0402",
        title="expression not in the DSL",
        exception="UnsupportedFeatureError",
        explanation="This kind of Python expression has no meaning inside a compiled body.",
        fix="Use operators, calls, subscripts and tuples; compute anything else outside of the function.",
        phrases=(
            "Unsupported expression type",
            "Unsupported binary operator",
            "Unsupported unary operator",
            "Unsupported comparison",
            "Standalone attribute access not supported",
        ),
    ),
    CodeInfo(
        code="PT0403",
        title="chained comparison",
        exception="ParserSyntaxError",
        explanation="A comparison has two operands.",
        fix="Write a < b and b < c instead of a < b < c.",
        phrases=("Only simple comparisons supported",),
    ),
    CodeInfo(
        code="PT0404",
        title="operator applied to the wrong kind of value",
        exception="ParserSyntaxError",
        explanation="A scalar operator got an operand that is no scalar, or scalars of kinds that do not mix.",
        fix="Use pl.add, pl.mul, ... for tensors and tiles, and pl.cast to bring scalars to one dtype.",
        phrases=(
            "must be ScalarExpr or Var with ScalarType",
            "requires same numeric dtype category",
            "does not accept bool dtype",
            "requires integer dtype",
        ),
    ),
    CodeInfo(
        code="PT0405",
        title="condition is not a boolean scalar",
        exception="ParserTypeError",
        explanation="if and while need a scalar of dtype BOOL.",
        fix="Compare explicitly, as in: if n > 0.",
        phrases=("condition must be a Bool-typed scalar expression",),
    ),
    CodeInfo(
        code="PT0406",
        title="bad pl.const",
        exception="ParserSyntaxError",
        explanation="pl.const takes a numeric literal and a dtype.",
        fix="Write pl.const(1, pl.INT32).",
        phrases=("pl.const() requires exactly 2 arguments", "must be a numeric literal"),
    ),
    CodeInfo(
        code="PT0407",
        title="subscript does not fit the value",
        exception="ParserTypeError",
        explanation="The value has no subscript, or another number of dimensions than there are indices.",
        fix="Give one index or slice for each dimension.",
        phrases=(
            "Subscript requires Tuple, Tensor, Tile, or Array type",
            "indices but the tensor is",
            "indices but the tile is",
            "requires a single index",
        ),
    ),
    CodeInfo(
        code="PT0408",
        title="subscript form not supported",
        exception="UnsupportedFeatureError",
        explanation="Slices have no step, and the extent of a slice of a tile is known at compile time.",
        fix="Use constant bounds on tiles, or pl.slice with an explicit shape and a dynamic offset.",
        phrases=(
            "Slice step is not supported",
            "Dynamic lower bounds are not supported in tile subscript",
            "must produce a positive static extent",
            "Only constant integer indices supported for tuple access",
            "only supported before SSA conversion",
            "Element-write 'dst[i, j] = scalar' is not supported",
        ),
    ),
    CodeInfo(
        code="PT0409",
        title="bad target or index of a subscript",
        exception="ParserSyntaxError",
        explanation="A tuple is indexed by an integer, and a subscript is assigned to on a plain variable.",
        fix="Bind the tensor to a name and write name[...] = value.",
        phrases=("Tuple index must be an integer", "Subscript-write target must be a variable name"),
    ),
    CodeInfo(
        code="PT0410",
        title="value does not fit the window it is assigned to",
        exception="ParserTypeError",
        explanation="The source of dst[...] = value must be of the same kind as dst and have the shape of the window.",
        fix="Make the slice and the value equally large; compare the extents that the message names.",
        phrases=(
            "Subscript-write requires a Tensor, Tile, or Array target",
            "Subscript-write source must also be a",
            "to match the rank-reduced",
            "shape mismatch on source axis",
        ),
    ),
)
