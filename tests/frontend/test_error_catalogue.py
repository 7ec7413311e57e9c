"""Every refusal of the front end: class, key phrase, and a location in the user's text."""

from __future__ import annotations

import pytest

from pypto.diag.parser_errors import (
    InvalidOperationError,
    ParserError,
    ParserSyntaxError,
    ParserTypeError,
    SSAViolationError,
    UndefinedVariableError,
    UnsupportedFeatureError,
)

from .dsl import HEAD, check_error, kernel, opaque, program

S, T, U, F, OP, V, P = (
    ParserSyntaxError,
    ParserTypeError,
    UndefinedVariableError,
    UnsupportedFeatureError,
    InvalidOperationError,
    SSAViolationError,
    ParserError,
)

TENSOR = "x: pl.Tensor[[8, 16], pl.FP32]"


def signature(params: str, returns: str = "", deco: str = "@pl.function") -> str:
    arrow = f" -> {returns}" if returns else ""
    return f"{HEAD}N = pl.dynamic('N')\n{deco}\ndef f({params}){arrow}:\n    return\n"


DEFINITIONS = [
    (signature("x"), T, "missing type annotation"),
    (signature("x: pl.InOut[pl.Scalar[pl.INDEX]]"), T, "cannot have InOut direction"),
    (signature("x: pl.Tuple[pl.Scalar[pl.INDEX]]"), T, "Parameter type cannot be a tuple"),
    (signature("x: pl.Tensor[[N, 4], pl.FP32], N: pl.Scalar[pl.INDEX]"), T, "shadows the dynamic symbol"),
    (signature("x: pl.Scalar[pl.INDEX] = 3"), S, "defaults are not supported"),
    (signature("*x: pl.Scalar[pl.INDEX]"), S, "*args are not supported"),
    (signature("*, x: pl.Scalar[pl.INDEX]"), S, "keyword-only"),
    (signature("**x: pl.Scalar[pl.INDEX]"), S, "**kwargs are not supported"),
    (HEAD + "@pl.program\nclass P:\n    pass\n", S, "contains no @pl.function decorated methods"),
    (kernel("pl.func_attr([1])\nreturn"), S, "argument must be a dict literal"),
    (kernel("pl.func_attr({'a': 1}, 2)\nreturn"), S, "exactly one positional dict argument"),
    (kernel("pl.func_attr({n: 1})\nreturn"), S, "key must be a string literal"),
    (kernel("pl.func_attr({'a': 1, 'a': 2})\nreturn"), S, "Duplicate function attribute"),
    (kernel("pl.func_attr({'a': 1})\npl.func_attr({'a': 1})\nreturn"), S, "Duplicate function attribute"),
    (kernel("pl.func_attr({'auto_scope': False})\nreturn"), S, "cannot be set with pl.func_attr"),
    (kernel("t = pl.exp(x)\npl.func_attr({'a': 1})\nreturn"), S, "must appear before every other statement"),
    (kernel("pl.func_attr({'a': [1, x]})\nreturn"), S, "list elements are mixed"),
    (signature(TENSOR, deco="@pl.function(type=pl.FunctionType.Incore)"), S, "Unknown FunctionType value: Incore"),
    (signature(TENSOR, deco="@pl.function(type=pl.Level.InCore)"), S, "Expected pl.FunctionType.<name>"),
    (signature(TENSOR, deco="@pl.function(level=pl.Level.CHIPS)"), S, "Unknown Level value: CHIPS"),
    (
        HEAD + "@pl.program\nclass P:\n    @pl.function(auto_scope=1 > 2)\n    def f(self):\n        return\n",
        S,
        "must be a bool literal",
    ),
    (
        HEAD + "@pl.program\nclass P:\n    @pl.function(**{})\n    def f(self):\n        return\n",
        S,
        "Unsupported `@pl.function(**kwargs)`",
    ),
]

TYPES = [
    (signature("x: pl.Tensor"), T, "Incomplete type annotation"),
    (signature("x: int"), T, "Unsupported type annotation"),
    (signature("x: 'foo[3]'"), T, "Unknown type in subscript"),
    (signature("x: 'foo(3)'"), T, "Unknown type constructor"),
    (signature("x: 'pl.Tensor[[4]]'"), T, "subscript requires [shape, dtype]"),
    (signature("x: 'pl.Tensor[[q], pl.FP32]'"), T, "Unknown shape variable"),
    (
        signature("x: 'pl.Tensor[[HEAD], pl.FP32]'").replace("@pl", "HEAD = 'a'\n@pl", 1),
        T,
        "must be int or pl.dynamic()",
    ),
    (signature("x: 'pl.Tensor[HEAD, pl.FP32]'").replace("@pl", "HEAD = 3\n@pl", 1), T, "must be a list or tuple"),
    (signature("x: 'pl.Tensor[[4.5], pl.FP32]'"), T, "must be int or pl.dynamic()"),
    (signature("x: 'pl.Tensor[[4], pl.FP33]'"), T, "Unknown dtype"),
    (signature("x: 'pl.Tensor[[4], pl.DataType.FP33]'"), T, "Unknown DataType"),
    (signature("x: 'pl.Tensor[[4], d]'").replace("@pl", "d = 3\n@pl", 1), T, "must be a DataType"),
    (signature("x: 'pl.Tensor[[4], 3 + 4]'"), T, "Cannot resolve dtype"),
    (signature("x: 'pl.Tensor[[4], pl.FP32, pl.QQ]'"), T, "Unknown layout"),
    (signature("x: 'pl.Tensor[[4], pl.FP32, lay]'").replace("@pl", "lay = 3\n@pl", 1), T, "must be a TensorLayout"),
    (signature("x: 'pl.Tensor[[4, 4], pl.FP32, pl.DN]'"), T, "pl.Tensor[..., pl.DN] is not supported"),
    (signature("x: 'pl.Tile[[4, 4], pl.FP32, pl.NZ]'"), T, "Tile does not accept layouts like"),
    (signature("x: 'pl.Tensor[[4], pl.FP32, pl.ND, 3]'"), T, "4th argument must be pl.MemRef(...)"),
    (signature("x: 'pl.Tile[[4, 4], pl.FP32, pl.Mem.Vec, pl.Mem.Mat]'"), T, "at most one memory-space argument"),
    (
        signature("x: 'pl.Tile[[4, 4], pl.FP32, pl.TileView(), pl.TileView()]'"),
        T,
        "at most one pl.TileView(...)",
    ),
    (
        signature('x: \'pl.Tile[[4, 4], pl.FP32, pl.MemRef("a", 0, 4), pl.MemRef("b", 0, 4), pl.Mem.Vec]\''),
        T,
        "at most one memref argument",
    ),
    (signature("x: 'pl.Tile[[4, 4], pl.FP32, 3]'"), T, "Unsupported Tile annotation argument"),
    (signature("x: 'pl.Tile[[4, 4], pl.FP32, pl.MemRef(\"a\", 0, 4)]'"), T, "must also specify explicit memory space"),
    (signature("x: 'pl.Tile[[4, 4], pl.FP32, pl.Mem.Foo]'"), T, "Unknown memory space"),
    (signature("x: 'pl.Tensor[[4], pl.FP32, pl.TensorView([4])]'"), T, "does not accept positional arguments"),
    (signature("x: 'pl.Tensor[[4], pl.FP32, pl.TensorView(foo=1)]'"), T, "Unknown TensorView keyword argument"),
    (signature("x: 'pl.Tile[[4, 4], pl.FP32, pl.TileView(foo=1)]'"), T, "Unknown TileView keyword argument"),
    (signature("x: 'pl.Tile[[4, 4], pl.FP32, pl.TileView(fractal=\"a\")]'"), T, "fractal must be an integer"),
    (signature("x: 'pl.Tile[[4, 4], pl.FP32, pl.TileView(blayout=pl.TileLayout.q)]'"), T, "Unknown TileLayout value"),
    (signature("x: 'pl.Tile[[4, 4], pl.FP32, pl.TileView(pad=pl.PadValue.q)]'"), T, "Unknown PadValue value"),
    (signature("x: 'pl.Tile[[4, 4], pl.FP32, pl.TileView(valid_shape=4)]'"), T, "Expected a list"),
    (signature("x: 'pl.Tile[[4, 4], pl.FP32, pl.TileView(valid_shape=[4.5, 1])]'"), T, "must be an index expression"),
    (signature("x: 'pl.Array[4]'"), T, "Array subscript requires [extent, dtype]"),
    (signature("x: 'pl.Array[N, pl.INT32]'"), T, "Array extent must be an int literal"),
    (signature(TENSOR, "tuple[tuple[pl.Scalar[pl.INDEX]]]"), T, "Nested tuple types are not supported"),
    (signature(TENSOR, "'pl.Tuple(3)'"), T, "Tuple type requires a list of types"),
    (signature("x: 'pl.Tile[[4, 4], pl.FP32, pl.MemRef(1, 2), pl.Mem.Vec]'"), T, "pl.MemRef requires 3 arguments"),
    (
        signature("x: 'pl.Tile[[4, 4], pl.FP32, pl.MemRef(\"a\", slots=0), pl.Mem.Vec]'"),
        T,
        "slots must be a positive integer literal",
    ),
    (signature("x: 'pl.Tile[[4, 4], pl.FP32, pl.MemRef(\"a\", slots=2)[2], pl.Mem.Vec]'"), T, "is out of range for"),
    (signature("x: 'pl.Tile[[4, 4], pl.FP32, pl.MemRef(\"a\")[0], pl.Mem.Vec]'"), T, "cannot be subscripted"),
    (signature("x: 'pl.Tile[[4, 4], pl.FP32, pl.MemRef(3), pl.Mem.Vec]'"), T, "must be a non-empty string literal"),
    (
        kernel("t: pl.Tile[[64, 128], pl.FP32] = x\nreturn"),
        T,
        "Type annotation for 't' is Tile but expression has type Tensor",
    ),
    (kernel("t: pl.Tensor[[64, 128], pl.FP16] = x\nreturn"), T, "has dtype fp16 but expression has dtype fp32"),
    (kernel("t: pl.Tensor[[64], pl.FP32] = x\nreturn"), T, "has rank 1 but expression has rank 2"),
    (kernel("t: pl.Tensor[[64, 64], pl.FP32] = x\nreturn"), T, "has shape dimension 1 = 64"),
    (kernel("t = x\nt = pl.load(x, [0, 0], [64, 128])\nreturn"), T, "Cannot reassign 't' with a different type"),
]

EXPRESSIONS = [
    (opaque("a = nn + 1\nreturn"), U, "Undefined variable 'nn'"),
    (opaque("a = 'text'\nreturn"), T, "Unsupported constant type"),
    (opaque("a = {1: 2}\nreturn"), F, "Unsupported expression type: Dict"),
    (opaque("a = [i for i in n]\nreturn"), F, "Unsupported expression type: ListComp"),
    (opaque("a = n @ n\nreturn"), F, "Unsupported binary operator: MatMult"),
    (opaque("a = n in m\nreturn"), F, "Unsupported comparison: In"),
    (opaque("a = n < m < 3\nreturn"), S, "Only simple comparisons supported"),
    (opaque("a = n.rows\nreturn"), F, "Standalone attribute access not supported"),
    (opaque("a = math\nreturn"), T, "Unsupported closure variable type"),
    (opaque("a = n + g\nreturn"), S, "requires same numeric dtype category"),
    (opaque("a = (n < m) + 1\nreturn"), S, "does not accept bool dtype"),
    (opaque("a = g << 2\nreturn"), S, "requires integer dtype"),
    (opaque("a = ~g\nreturn"), S, "requires integer dtype"),
    (opaque("if n:\n    a = 1\nreturn"), T, "if condition must be a Bool-typed scalar expression"),
    (opaque("while n:\n    n = n - 1\nreturn"), T, "while condition must be a Bool-typed scalar expression"),
    (opaque("a = pl.const(1)\nreturn"), S, "pl.const() requires exactly 2 arguments"),
    (opaque("a = pl.const(n, pl.INT32)\nreturn"), S, "must be a numeric literal"),
    (opaque("a = pl.const(True, pl.INT32)\nreturn"), S, "must be a numeric literal"),
    (opaque("a = n if n > 1 else m\nreturn"), F, "Unsupported expression type: IfExp"),
    (opaque("a = n[0]\nreturn"), T, "Subscript requires Tuple, Tensor, Tile, or Array type"),
    (kernel("a = x[0, 0, 0]\nreturn"), T, "3 indices but the tensor is 2D"),
    (kernel("t = pl.load(x, [0, 0], [64, 128])\na = t[0, 0, 0]\nreturn"), T, "3 indices but the tile is 2D"),
    (kernel("a = x[0:8:2, 0]\nreturn"), F, "Slice step is not supported"),
    (
        kernel("a = x[g, 0]\nreturn", "x: pl.Tensor[[4, 4], pl.FP32], g: pl.Scalar[pl.FP32]"),
        T,
        "must be an integer scalar",
    ),
    (
        kernel(
            "t = pl.load(x, [0, 0], [8, 8])\na = t[n:n + 4, :]\nreturn",
            "x: pl.Tensor[[8, 8], pl.FP32], n: pl.Scalar[pl.INDEX]",
        ),
        F,
        "Dynamic lower bounds are not supported in tile subscript",
    ),
    (kernel("t = pl.load(x, [0, 0], [64, 128])\na = t[8:8, :]\nreturn"), F, "must produce a positive static extent"),
    (kernel("arr = pl.array.create(4, pl.INT32)\na = arr[0, 1]\nreturn"), T, "requires a single index"),
    (kernel("arr = pl.array.create(4, pl.INT32)\narr[0, 1] = 2\nreturn"), T, "requires a single index"),
    (kernel("x[0, 0] = 2.0\nreturn"), F, "Element-write 'dst[i, j] = scalar' is not supported"),
    (kernel("x[0][0] = x\nreturn"), S, "Subscript-write target must be a variable name"),
    (kernel("x[0:8, :] = pl.load(x, [0, 0], [8, 128])\nreturn"), T, "Subscript-write source must also be a tensor"),
    (kernel("x[0:8, :] = x[0:4, :]\nreturn"), T, "shape mismatch on source axis 0"),
    (kernel("x[0, :] = x[0:4, :]\nreturn"), T, "to match the rank-reduced"),
    (opaque("n[0] = 3\nreturn"), T, "Subscript-write requires a Tensor, Tile, or Array target"),
    (kernel("a = x // x\nreturn"), OP, "must be ScalarExpr or Var with ScalarType"),
    (kernel("a = 1.0 / x\nreturn"), OP, "can't be divided"),
    (kernel("a = x < x\nreturn"), OP, "needs scalars"),
]

CALLS = [
    (kernel("t = pl.adn(x, 1.0)\nreturn"), OP, "Unknown operation 'pl.adn'"),
    (kernel("t = pl.tensor.adn(x, 1.0)\nreturn"), OP, "Unknown pl.tensor operation: adn"),
    (kernel("t = pl.tile.adn(x, 1.0)\nreturn"), OP, "Unknown pl.tile operation: adn"),
    (kernel("t = pl.system.adn()\nreturn"), OP, "Unknown pl.system operation: adn"),
    (kernel("t = pl.array.adn()\nreturn"), OP, "Unknown pl.array operation: adn"),
    (kernel("t = foo(x)\nreturn"), F, "Unsupported function call: foo"),
    (kernel("t = math.sin(x)\nreturn"), F, "Unsupported operation call: math.sin"),
    (kernel("t = pl.add(x, pl.load(x, [0, 0], [64, 128]))\nreturn"), OP, "cannot mix Tensor and Tile arguments"),
    (kernel("t = pl.sub(1.0, x)\nreturn"), OP, "expected Tensor or Tile operands"),
    (kernel("t = pl.exp(3)\nreturn"), OP, "expected Tensor or Tile"),
    (kernel("t = pl.row_max(pl.load(x, [0, 0], [64, 128]))\nreturn"), OP, "Tile inputs require"),
    (kernel("t = pl.row_max(x, x)\nreturn"), OP, "Tensor inputs must not pass"),
    (kernel("t = pl.add(x)\nreturn"), OP, "pl operation 'add'"),
    (kernel("t = pl.add(x, 1, foo=2)\nreturn"), OP, "unexpected keyword argument"),
    (kernel("t = pl.cast(x, pl.FP32)\nreturn"), OP, "same-dtype cast"),
    (kernel("t = pl.cast(x, pl.FP16, mode='foo')\nreturn"), OP, "Invalid rounding mode"),
    (kernel("t = pl.load(x, [60, 0], [16, 128])\nreturn"), OP, "reads past the end of dimension 0"),
    (kernel("pl.submit(x)\nreturn"), S, "must be unpacked as a 2-tuple"),
    (program("y = self.kk(x, 1.0, y)\nreturn"), U, "Function 'kk' not defined in program"),
    (program("y = self.k(x, 1.0)\nreturn"), T, "expects 3 argument(s), got 2"),
    (program("y = self.k(x, 1.0, y, deps=[])\nreturn"), T, "does not accept keyword argument 'deps'"),
    (program("y = self.k(1.0, 1.0, y)\nreturn"), T, "argument 'a' of function 'k'"),
    (program("y = self.k(flags, 1.0, y)\nreturn"), T, "argument 'a' of function 'k'"),
    (
        program("y = self.k(x, 1.0, y, attrs={'arg_directions': [pl.adir.foo]})\nreturn"),
        S,
        "Unknown call-site direction marker",
    ),
    (
        program("y = self.k(x, 1.0, y, attrs={'arg_directions': [pl.adir.input]})\nreturn"),
        S,
        "must match positional arg count",
    ),
    (program("y = self.k(x, 1.0, y, attrs={'arg_directions': [1]})\nreturn"), S, "references only"),
    (program("y = self.k(x, 1.0, y, attrs={'manual_dep_edges': [n]})\nreturn"), S, "is not accepted"),
    (program("y = self.k(x, 1.0, y, attrs=n)\nreturn"), S, "must be a dict literal"),
    (program("y = self.k(x, 1.0, y, attrs={n: 1})\nreturn"), S, "must use string-literal keys"),
    (program("y = self.k(x, 1.0, y, attrs={'dump_vars': [z]})\nreturn"), T, "is not an argument of"),
    (program("a, b, c = self.two(x, y, z)\nreturn"), T, "cannot unpack 2 values into 3 names"),
    (program("a, b = self.k(x, 1.0, y)\nreturn"), T, "requires tuple to have TupleType"),
    (kernel("t = pl.exp(*x)\nreturn"), F, "Unsupported expression type: Starred"),
]

STATEMENTS = [
    (opaque("assert n > 1\nreturn"), F, "Unsupported statement type: Assert"),
    (opaque("import os\nreturn"), F, "Unsupported statement type: Import"),
    (opaque("def g():\n    pass\nreturn"), F, "Unsupported statement type: FunctionDef"),
    (opaque("try:\n    a = 1\nexcept ValueError:\n    a = 2\nreturn"), F, "Unsupported statement type: Try"),
    (opaque("a = b = n\nreturn"), S, "Unsupported assignment"),
    (opaque("a.b = n\nreturn"), S, "Unsupported assignment"),
    (opaque("a, *b = (n, m, g)\nreturn"), S, "Unsupported assignment"),
    (opaque("a, (b, c) = (n, (m, g))\nreturn"), S, "Tuple unpacking target must be a variable name"),
    (opaque("a: pl.Scalar[pl.INDEX]\nreturn"), F, "with no value is not supported"),
    (opaque("for i in range(n):\n    a = i\nreturn"), S, "For loop must use pl.range()"),
    (opaque("for i in [1, 2]:\n    a = i\nreturn"), S, "For loop must use pl.range()"),
    (opaque("for i in pl.range():\n    a = i\nreturn"), S, "requires at least 1 argument"),
    (opaque("for i in pl.range(1, 2, 3, 4):\n    a = i\nreturn"), S, "takes 1 to 3 positional arguments"),
    (opaque("for i in pl.range(n, foo=1):\n    a = i\nreturn"), S, "Unknown keyword argument 'foo' in pl.range()"),
    (opaque("for i in pl.range(n, attrs=3):\n    a = i\nreturn"), S, "attrs must be a dict literal"),
    (opaque("for i in pl.range(n, attrs={'a': n}):\n    a = i\nreturn"), S, "Unsupported value type for attrs key"),
    (opaque("for i in pl.range(g):\n    a = i\nreturn"), T, "bounds must be integer scalars"),
    (opaque("for i in pl.range(n):\n    a = i\nelse:\n    a = 2\nreturn"), S, "else is not supported"),
    (opaque("for i, j in pl.range(n):\n    a = i\nreturn"), S, "For loop target must be"),
    (opaque("for i in pl.range(n, init_values=(n,)):\n    a = i\nreturn"), S, "For loop target must be a tuple"),
    (
        opaque("for i, a in pl.range(n, init_values=(n,)):\n    b = pl.yield_(a)\nreturn"),
        S,
        "Iter args must be a tuple",
    ),
    (opaque("for i, (a, b) in pl.range(n, init_values=(n,)):\n    c = pl.yield_(a)\nreturn"), S, "Mismatch:"),
    (
        opaque("for i, (a,) in pl.range(n, init_values=n):\n    c = pl.yield_(a)\nreturn"),
        S,
        "init_values must be a list or tuple",
    ),
    (
        opaque("for i, (a,) in pl.range(n, init_values=(n,)):\n    pl.yield_(a)\nreturn"),
        S,
        "requires an assignment-form pl.yield_",
    ),
    (
        opaque("for i, (a,) in pl.range(n, init_values=(n,)):\n    b, c = pl.yield_(a, a)\nreturn"),
        S,
        "iteration arguments but 2 return variables",
    ),
    (
        opaque("for i, (a,) in pl.range(n, init_values=(n,)):\n    b = pl.yield_(g)\nreturn"),
        T,
        "yielded value for iter arg 'a'",
    ),
    (
        opaque("for i in pl.unroll(n):\n    a = i\nreturn"),
        S,
        "pl.unroll() requires compile-time constant integer bounds",
    ),
    (opaque("for i in pl.unroll(1, 2, 0):\n    a = i\nreturn"), S, "step cannot be zero"),
    (
        opaque("for i, (a,) in pl.unroll(3, init_values=(n,)):\n    b = pl.yield_(a)\nreturn"),
        S,
        "cannot be combined with init_values",
    ),
    (opaque("for i in pl.pipeline(n):\n    a = i\nreturn"), S, "pl.pipeline() requires stage="),
    (
        opaque("for i in pl.pipeline(n, stage=n):\n    a = i\nreturn"),
        S,
        "stage must be a compile-time constant integer",
    ),
    (opaque("for i in pl.pipeline(n, stage=0):\n    a = i\nreturn"), S, "stage must be >= 1"),
    (opaque("for i in pl.range(n, stage=2):\n    a = i\nreturn"), S, "stage= is only supported on pl.pipeline()"),
    (
        opaque("for (a,) in pl.while_(n):\n    pl.cond(a < 3)\n    b = pl.yield_(a)\nreturn"),
        S,
        "takes no positional arguments",
    ),
    (
        opaque("for (a,) in pl.while_():\n    pl.cond(a < 3)\n    b = pl.yield_(a)\nreturn"),
        S,
        "pl.while_() requires init_values",
    ),
    (
        opaque("for (a,) in pl.while_(init_values=(n,)):\n    b = pl.yield_(a)\nreturn"),
        S,
        "First statement in pl.while_() body must be",
    ),
    (
        opaque(
            "for (a,) in pl.while_(init_values=(n,)):\n    pl.cond(a < 3)\n    pl.cond(a < 3)\n    b = pl.yield_(a)\nreturn"
        ),
        S,
        "can only be the first statement",
    ),
    (
        opaque("for a in pl.while_(init_values=(n,)):\n    pl.cond(a < 3)\n    b = pl.yield_(a)\nreturn"),
        S,
        "While loop target must be a tuple",
    ),
    (
        opaque("for (a,) in pl.while_(init_values=(n,)):\n    pl.cond()\n    b = pl.yield_(a)\nreturn"),
        S,
        "pl.cond() requires exactly 1 argument",
    ),
    (opaque("while n > 1:\n    n = n - 1\nelse:\n    n = 2\nreturn"), S, "else is not supported"),
    (opaque("a = pl.yield_(n)\nreturn"), S, "must be inside a for, while or if body"),
    (opaque("if n > 1:\n    a = pl.yield_(n)\nreturn"), S, "needs an `else`"),
    (opaque("if n > 1:\n    a = pl.yield_(n)\nelse:\n    b = pl.yield_(n)\nreturn"), S, "yield different names"),
    (
        opaque("if n > 1:\n    a = pl.yield_(n)\nelse:\n    a = pl.yield_(g)\nreturn"),
        T,
        "yielded by the branches differs",
    ),
    (opaque("if n > 1:\n    a = pl.yield_(n)\nelse:\n    b = 1\nreturn"), S, "both branches must yield"),
    (opaque("for i in pl.range(n):\n    a = pl.yield_(i)\nreturn"), S, "carries nothing by name"),
    (opaque("break\nreturn"), OP, "'break' outside loop"),
    (opaque("for i in pl.parallel(n):\n    break\nreturn"), OP, "not supported in parallel loops"),
    (opaque("for i in pl.unroll(3):\n    continue\nreturn"), OP, "not supported in unrolled loops"),
    (
        program("return y, y, y").replace(
            "z: pl.Out[pl.Tensor[[32, 64], pl.FP32]]):",
            "z: pl.Out[pl.Tensor[[32, 64], pl.FP32]]) -> pl.Tensor[[32, 64], pl.FP32]:",
        ),
        T,
        "return has 3 value(s)",
    ),
    (
        program("return flags").replace(
            "z: pl.Out[pl.Tensor[[32, 64], pl.FP32]]):",
            "z: pl.Out[pl.Tensor[[32, 64], pl.FP32]]) -> pl.Tensor[[32, 64], pl.FP32]:",
        ),
        T,
        "return value 0",
    ),
]

SCOPES = [
    (
        program("with pl.at(level=pl.Level.CORE_GROUP), pl.cluster():\n    y = x\nreturn"),
        S,
        "Only single context manager supported",
    ),
    (program("with pl.foo():\n    y = x\nreturn"), F, "Unsupported context manager"),
    (program("with open('f'):\n    y = x\nreturn"), F, "Unsupported context manager"),
    (program("with pl.cluster() as t:\n    y = x\nreturn"), S, "the `as` clause only applies to"),
    (
        program("with pl.at(level=pl.Level.CORE_GROUP) as (a, b):\n    y = x\nreturn"),
        S,
        "must be a plain variable name",
    ),
    (program("with pl.at():\n    y = x\nreturn"), S, "pl.at() requires a level argument"),
    (
        program("with pl.at(pl.Level.CORE_GROUP, None, 3):\n    y = x\nreturn"),
        S,
        "takes at most 2 positional arguments",
    ),
    (
        program("with pl.at(pl.Level.CORE_GROUP, level=pl.Level.CHIP):\n    y = x\nreturn"),
        S,
        "multiple values for argument",
    ),
    (
        program("with pl.at(level=pl.Level.CORE_GROUP, foo=1):\n    y = x\nreturn"),
        S,
        "Unknown keyword argument 'foo' in pl.at()",
    ),
    (program("with pl.at(level=pl.Level.CORES):\n    y = x\nreturn"), S, "Unknown Level value"),
    (
        program("with pl.at(level=pl.Level.CORE_GROUP, role=pl.Role.SubWorker):\n    y = x\nreturn"),
        S,
        "role= is not supported with level=pl.Level.CORE_GROUP",
    ),
    (
        program("with pl.at(level=pl.Level.HOST, role=pl.Role.SubWorker):\n    y = x\nreturn"),
        S,
        "role=pl.Role.SubWorker)' is not supported",
    ),
    (
        program("with pl.at(level=pl.Level.CHIP, optimizations=[pl.split(pl.SplitMode.UP_DOWN)]):\n    y = x\nreturn"),
        S,
        "only supported with level=pl.Level.CORE_GROUP",
    ),
    (
        program("with pl.at(level=pl.Level.CORE_GROUP, allow_early_resolve=n):\n    y = x\nreturn"),
        S,
        "must be a boolean literal",
    ),
    (program("with pl.at(level=pl.Level.CORE_GROUP, no_dep_args=x):\n    y = x\nreturn"), T, "must be a list literal"),
    (
        program("with pl.at(level=pl.Level.CORE_GROUP, no_dep_args=[x + 1]):\n    y = x\nreturn"),
        T,
        "entries must be bare tensor names",
    ),
    (
        program("with pl.at(level=pl.Level.CORE_GROUP, no_dep_args=[q]):\n    y = x\nreturn"),
        T,
        "references unknown name",
    ),
    (program("with pl.at(level=pl.Level.CORE_GROUP, no_dep_args=[n]):\n    y = x\nreturn"), T, "is not a tensor"),
    (program("with pl.at(level=pl.Level.CORE_GROUP, no_dep_args=[x, x]):\n    y = x\nreturn"), T, "more than once"),
    (
        program("with pl.at(level=pl.Level.CORE_GROUP, optimizations=3):\n    y = x\nreturn"),
        S,
        "must be a list literal",
    ),
    (
        program("with pl.at(level=pl.Level.CORE_GROUP, optimizations=[pl.foo()]):\n    y = x\nreturn"),
        S,
        "Unsupported entry in pl.at(optimizations",
    ),
    (
        program(
            "with pl.at(level=pl.Level.CORE_GROUP, optimizations=[pl.split(pl.SplitMode.NONE), pl.split(pl.SplitMode.NONE)]):\n    y = x\nreturn"
        ),
        S,
        "Duplicate 'pl.split(...)'",
    ),
    (
        program(
            "with pl.at(level=pl.Level.CORE_GROUP, optimizations=[pl.cross_core_slot(slot_num=2), pl.cross_core_slot(slot_num=2)]):\n    y = x\nreturn"
        ),
        S,
        "Duplicate 'pl.cross_core_slot(...)'",
    ),
    (
        program(
            "with pl.at(level=pl.Level.CORE_GROUP, optimizations=[pl.cross_core_slot(slot_num=0)]):\n    y = x\nreturn"
        ),
        S,
        "must be positive",
    ),
    (
        program("with pl.at(level=pl.Level.CORE_GROUP, optimizations=[pl.cross_core_slot()]):\n    y = x\nreturn"),
        S,
        "requires the slot_num=",
    ),
    (
        program("with pl.at(level=pl.Level.CORE_GROUP, optimizations=[pl.cross_core_slot(3)]):\n    y = x\nreturn"),
        S,
        "takes no positional arguments",
    ),
    (
        program("with pl.at(level=pl.Level.CORE_GROUP, optimizations=[pl.split()]):\n    y = x\nreturn"),
        S,
        "takes exactly 1 positional argument",
    ),
    (
        program("with pl.at(level=pl.Level.CORE_GROUP, name_hint=n):\n    y = x\nreturn"),
        S,
        "'name_hint' argument must be a string literal",
    ),
    (
        program("with pl.at(level=pl.Level.CORE_GROUP, name_hint='a b'):\n    y = x\nreturn"),
        S,
        "must be a valid non-keyword identifier",
    ),
    (program("with pl.scope():\n    y = x\nreturn"), S, "hand-placed AUTO"),
    (
        program("with pl.manual_scope():\n    with pl.manual_scope():\n        y = x\nreturn"),
        S,
        "may not be nested inside",
    ),
    (
        program("with pl.manual_scope():\n    with pl.scope():\n        y = x\nreturn", ", auto_scope=False"),
        S,
        "may not be nested inside",
    ),
    (program("with pl.scope(3):\n    y = x\nreturn"), S, "takes only a 'mode=' keyword"),
    (program("with pl.scope(foo=3):\n    y = x\nreturn"), S, "got an unexpected keyword"),
    (program("with pl.manual_scope(3):\n    y = x\nreturn"), S, "does not accept arguments"),
    (kernel("with pl.manual_scope():\n    t = pl.exp(x)\nreturn"), S, "belong to orchestration functions"),
    (program("with pl.cluster(3):\n    y = x\nreturn"), S, "does not accept positional arguments"),
    (program("with pl.cluster(foo=3):\n    y = x\nreturn"), S, "got unexpected keyword argument"),
    (program("for i in pl.spmd():\n    y = x\nreturn"), S, "requires core_num"),
    (program("for i in pl.spmd(1, 2):\n    y = x\nreturn"), S, "at most one positional argument"),
    (program("for i in pl.spmd(1, core_num=2):\n    y = x\nreturn"), S, "multiple values for argument 'core_num'"),
    (program("for i in pl.spmd(1.5):\n    y = x\nreturn"), S, "core_num must be an integer expression"),
    (program("for i in pl.spmd(0):\n    y = x\nreturn"), S, "core_num must be a positive integer"),
    (program("for i in pl.spmd(2, deps=[]):\n    y = x\nreturn"), S, "does not accept 'deps=' here"),
    (program("for i in pl.spmd(2, step=1):\n    y = x\nreturn"), S, "loop form does not accept"),
    (program("for i, j in pl.spmd(2):\n    y = x\nreturn"), S, "must use a single loop variable"),
    (program("with pl.spmd(2):\n    y = x\nreturn"), S, "neither reads the per-block index"),
    (
        program("with pl.spmd(2):\n    y = self.k(x, 1.0, y)\n    z = self.k(x, 1.0, z)\nreturn"),
        S,
        "dispatch body launches 2 kernels",
    ),
    (
        program(
            "with pl.spmd(2, optimizations=[pl.split(pl.SplitMode.UP_DOWN)]):\n    with pl.at(level=pl.Level.CORE_GROUP):\n        z = x\nreturn"
        ),
        S,
        "belongs on the InCore scope",
    ),
    (
        program("with pl.cluster():\n    with pl.spmd(2) as t:\n        y = self.k(x, 1.0, y)\nreturn"),
        S,
        "cannot capture a TaskId when nested",
    ),
    (
        program(
            "with pl.cluster():\n    with pl.spmd(2, allow_early_resolve=True):\n        y = self.k(x, 1.0, y)\nreturn"
        ),
        S,
        "cannot be nested inside `pl.cluster()`",
    ),
    (
        program("with pl.cluster():\n    y, t = pl.submit(self.k, x, 1.0, y, deps=[])\nreturn"),
        S,
        "cannot carry per-task dispatch metadata",
    ),
    (kernel("for a in pl.split_aiv(3, mode=pl.SplitMode.UP_DOWN):\n    t = pl.exp(x)\nreturn"), S, "requires n == 2"),
    (kernel("for a in pl.split_aiv(2):\n    t = pl.exp(x)\nreturn"), S, "requires mode="),
    (
        kernel(
            "for a in pl.split_aiv(2, mode=pl.SplitMode.UP_DOWN):\n    for b in pl.split_aiv(2, mode=pl.SplitMode.UP_DOWN):\n        t = pl.exp(x)\nreturn"
        ),
        S,
        "nested 'for ... in pl.split_aiv",
    ),
    (kernel("t = pl.aiv_shard(x)\nreturn"), S, "must be used inside a 'for ... in pl.split_aiv"),
]

TASKS = [
    (program("a, b, c = pl.submit(self.k, x, 1.0, y)\nreturn"), S, "must be unpacked as exactly 2 targets"),
    (program("pl.submit(self.k, x, 1.0, y)\nreturn"), S, "must be unpacked as a 2-tuple"),
    (program("y, (t, u) = pl.submit(self.k, x, 1.0, y)\nreturn"), S, "task_id target must be a plain variable name"),
    (program("((y, z), w), t = pl.submit(self.two, x, y, z)\nreturn"), S, "no nested tuples"),
    (program("y, t = pl.submit()\nreturn"), S, "requires the kernel as its first argument"),
    (program("y, t = pl.submit(k, x)\nreturn"), S, "first argument must be a `self.<kernel>` method reference"),
    (program("y, t = pl.spmd_submit(self.k, x, 1.0, y)\nreturn"), S, "requires the core_num keyword"),
    (program("y, t = pl.submit(self.two, x, y, z)\nreturn"), T, "unpacks 1 result value(s) but kernel 'two' returns 2"),
    (program("y, t = pl.submit(self.k, x)\nreturn"), T, "expects 2..3 argument(s), got 1"),
    (program("y, t = pl.submit(self.k, x, 1.0, y, deps=n)\nreturn"), T, "deps= must be a list / tuple / comprehension"),
    (program("y, t = pl.submit(self.k, x, 1.0, y, deps=[x])\nreturn"), T, "deps= entries must be a TaskId variable"),
    (
        program(
            "ids = pl.array.create(2, pl.TASK_ID)\ny, t = pl.submit(self.k, x, 1.0, y, deps=[ids, ids[0]])\nreturn"
        ),
        T,
        "cannot mix a whole TASK_ID array",
    ),
    (
        program(
            "ids = pl.array.create(2, pl.TASK_ID)\ny, t = pl.submit(self.k, x, 1.0, y, deps=[ids[i] for i in range(n)])\nreturn"
        ),
        T,
        "depends on an IR variable",
    ),
    (
        program(
            "ids = pl.array.create(2, pl.TASK_ID)\ny, t = pl.submit(self.k, x, 1.0, y, deps=[ids[i] for i in pl.range(2)])\nreturn"
        ),
        T,
        "is a DSL loop",
    ),
    (
        program(
            "ids = pl.array.create(2, pl.TASK_ID)\ny, t = pl.submit(self.k, x, 1.0, y, deps=[ids[i] for i in 3])\nreturn"
        ),
        T,
        "did not produce a sequence",
    ),
    (
        program(
            "ids = pl.array.create(2, pl.TASK_ID)\ny, t = pl.submit(self.k, x, 1.0, y, deps=[ids[0] for i in 'ab'])\nreturn"
        ),
        T,
        "non-integer value",
    ),
    (program("y, t = pl.submit(self.k, x, 1.0, y, dumps=x)\nreturn"), T, "dumps= must be a list"),
    (program("y, t = pl.submit(self.k, x, 1.0, y, dumps=[n])\nreturn"), T, "dumps= entries must be tensor variables"),
    (program("y, t = pl.submit(self.k, x, 1.0, y, dumps=[z])\nreturn"), T, "is not an argument of this submit"),
    (
        program("y, t = pl.submit(self.k, x, 1.0, y, predicate=(n > 0 and n < 3))\nreturn"),
        S,
        "predicate must be a single comparison",
    ),
    (program("y, t = pl.submit(self.k, x, 1.0, y, predicate=(n > 0))\nreturn"), S, "must compare one tensor element"),
    (
        program("y, t = pl.submit(self.k, x, 1.0, y, predicate=(x[0, 0] > 0.0))\nreturn"),
        S,
        "must compare one tensor element",
    ),
    (
        program("y, t = pl.submit(self.k, x, 1.0, y, predicate=(flags[0, 1] > 0))\nreturn"),
        T,
        "predicate needs 1 index(es)",
    ),
    (
        program("y, t = pl.submit(self.k, x, 1.0, y, predicate=(flags[-1] > 0))\nreturn"),
        T,
        "index must be non-negative",
    ),
    (program("g = pl.system.task_dummy()\nreturn"), T, "requires keyword argument 'deps'"),
    (program("g = pl.system.task_dummy([])\nreturn"), T, "must not use positional arguments"),
    (program("g = pl.system.task_dummy(deps=[], foo=1)\nreturn"), T, "does not accept keyword argument"),
    (opaque("pl.static_print()\nreturn"), S, "static_print() requires at least 1 argument"),
    (opaque("pl.static_assert()\nreturn"), S, "static_assert() requires 1 or 2 arguments"),
    (opaque("pl.static_assert(True, n)\nreturn"), S, "message must be a string literal"),
    (opaque("pl.static_assert(1 > 2, 'no')\nreturn"), P, "static_assert failed: no"),
    (opaque("pl.static_assert(n > 2)\nreturn"), P, "must be compile-time evaluable"),
    (opaque("pl.static_print(f'{n!r}')\nreturn"), F, "conversions"),
    (kernel("pl.dump_tag(x)\nreturn"), S, "is only valid inside an Orchestration or Inline function"),
    (program("pl.dump_tag(x, y)\nreturn"), S, "takes exactly one positional argument"),
    (program("pl.dump_tag(x[0])\nreturn"), S, "must be a bare variable name"),
    (program("pl.dump_tag(q)\nreturn"), S, "is not defined at this point"),
    (program("pl.dump_tag(n)\nreturn"), T, "is not a tensor"),
]

ALL = {
    "definitions": DEFINITIONS,
    "types": TYPES,
    "expressions": EXPRESSIONS,
    "calls": CALLS,
    "statements": STATEMENTS,
    "scopes": SCOPES,
    "tasks": TASKS,
}
CASES = [
    pytest.param(*case, id=f"{group}-{i}-{case[2][:40]}")
    for group, cases in ALL.items()
    for i, case in enumerate(cases)
]


@pytest.mark.parametrize(("text", "cls", "phrase"), CASES)
def test_refusal(text: str, cls: type, phrase: str) -> None:
    check_error(text, cls, phrase)
