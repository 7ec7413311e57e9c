"""TypeChecked: types agree where control flow joins, views lie inside shapes, conditions are Boolean."""

import pytest
from verify_kit import HERE, INDEX, expect, findings, holds, main, nodes, program, submit_of, swapped

from pypto import ir
from pypto.ir.stmt import RuntimeScopeStmt
from pypto.verify.codes import TypeCheckErrorType as Code
from pypto.verify.properties import IRProperty

P = IRProperty.TypeChecked
ONE, FOUR = ir.ConstInt(1, ir.INDEX), ir.ConstInt(4, ir.INDEX)
YES = ir.ConstBool(True)
N = ir.Var("n", INDEX)
FP32, FP16 = ir.FP32, ir.FP16
ND = ir.TensorLayout.ND


def tensor(*shape, dtype=FP32, view=None):
    return ir.TensorType(list(shape), dtype, tensor_view=view)


def tile(*shape, dtype=FP32, view=None, space=ir.MemorySpace.Vec):
    return ir.TileType(list(shape), dtype, None, view, space)


def valid(*extents):
    return ir.TensorView([], ND, list(extents))


def var(name, kind=INDEX):
    return ir.Var(name, kind)


def assign(variable, value):
    return ir.AssignStmt(variable, value, HERE)


def seq(*stmts):
    return ir.SeqStmts(list(stmts))


def give(*values):
    return ir.YieldStmt(list(values), HERE)


def function(*stmts, params=()):
    return ir.Program([ir.Function("main", list(params), [], seq(*stmts), HERE)], "P")


def carried(first, carry, yielded, result, header=True):
    """A loop with one carry, given the types of its parts."""
    x, z = var("x", first), var("z", yielded)
    c, r = ir.IterArg("c", carry, x), var("r", result)
    if header:
        stmt = ir.ForStmt(var("i"), ONE, FOUR, ONE, [c], give(z), [r], HERE)
    else:
        stmt = ir.WhileStmt(YES, [c], give(z), [r], HERE)
    return function(stmt, params=[x, z, N])


def joined(then, other, result):
    """An ``if`` with one result, given the types of its parts."""
    a, b = var("a", then), var("b", other)
    return function(ir.IfStmt(YES, give(a), give(b), [var("r", result)], HERE), params=[a, b, N])


@pytest.mark.parametrize(
    "body",
    [
        "for i, (c,) in pl.range(4, init_values=(y,)):\n    d = self.k(x, c)\n    r = pl.yield_(d)\nreturn r",
        "if n > 2:\n    a = self.k(x, y)\n    r = pl.yield_(a)\nelse:\n    r = pl.yield_(y)\nreturn r",
        "for (c,) in pl.while_(init_values=(n,)):\n    pl.cond(c > 0)\n    d = c - 1\n    r = pl.yield_(d)\nreturn y",
        "r, t = pl.submit(self.k, x, y)\nreturn r",
    ],
    ids=["for", "if", "while", "submit"],
)
def test_programs_whose_types_agree(body):
    holds(P, program(body))


DIFFERENT = [
    (Code.TYPE_KIND_MISMATCH, tensor(8, 8), tile(8, 8), "kind of type: Tensor and Tile"),
    (Code.TYPE_KIND_MISMATCH, tensor(8, 8), ir.DistributedTensorType([8, 8], FP32), "Tensor and DistributedTensor"),
    (Code.TYPE_KIND_MISMATCH, INDEX, tensor(8), "Scalar and Tensor"),
    (Code.DTYPE_MISMATCH, tensor(8, 8), tensor(8, 8, dtype=FP16), "dtype: fp32 and fp16"),
    (Code.DTYPE_MISMATCH, INDEX, ir.ScalarType(FP32), "dtype: index and fp32"),
    (Code.DTYPE_MISMATCH, ir.ArrayType(ir.INT32, 4), ir.ArrayType(ir.INT64, 4), "dtype"),
    (Code.SHAPE_DIMENSION_MISMATCH, tensor(8, 8), tensor(64), "rank: 2 and 1"),
    (Code.SHAPE_VALUE_MISMATCH, tensor(8, 8), tensor(8, 16), "shape, axis 1: 8 and 16"),
    (Code.SHAPE_VALUE_MISMATCH, tile(8, 8), tile(16, 8), "axis 0"),
    (Code.SHAPE_VALUE_MISMATCH, ir.ArrayType(ir.INT32, 4), ir.ArrayType(ir.INT32, 8), "axis 0: 4 and 8"),
    (
        Code.SHAPE_VALUE_MISMATCH,
        tensor(N, 8),
        tensor(16, 8),
        "equality is not provable and this boundary has no runtime",
    ),
    (Code.SHAPE_VALUE_MISMATCH, tensor(8, 8, view=valid(8, 4)), tensor(8, 8), "valid shape, axis 1: 4 and 8"),
    (Code.SHAPE_VALUE_MISMATCH, tile(8, 8, view=ir.TileView([8, N])), tile(8, 8), "valid shape, axis 1: n and 8"),
    (
        Code.TENSOR_PADDING_MISMATCH,
        tensor(8, 8, view=ir.TensorView([], ND, [8, 4], ir.PadValue.zero)),
        tensor(8, 8, view=valid(8, 4)),
        "padding",
    ),
    (
        Code.TILE_VIEW_MISMATCH,
        tile(8, 8, view=ir.TileView(pad=ir.PadValue.zero)),
        tile(8, 8, view=ir.TileView(pad=ir.PadValue.max)),
        "tile view",
    ),
    (Code.SIZE_MISMATCH, ir.TupleType([INDEX]), ir.TupleType([INDEX, INDEX]), "number of elements: 1 and 2"),
    (Code.DTYPE_MISMATCH, ir.TupleType([INDEX]), ir.TupleType([ir.ScalarType(FP32)]), "dtype"),
]


@pytest.mark.parametrize(("code", "a", "b", "says"), DIFFERENT, ids=lambda value: getattr(value, "name", None))
def test_every_edge(code, a, b, says):
    for left, right in ((a, b), (b, a)):
        for header in (True, False):
            expect(P, carried(right, left, left, left, header), code, says="its initial value")
            expect(P, carried(left, left, right, left, header), code, says="what the body yields")
            expect(P, carried(left, left, left, right, header), code, says="the return variable 'r'")
        expect(P, joined(right, left, left), code, says="what the then branch yields")
        expect(P, joined(left, right, left), code, says="what the else branch yields")
    [text] = expect(P, carried(b, a, a, a), code)
    assert says in text, text
    for kind in (a, b):
        holds(P, carried(kind, kind, kind, kind))
        holds(P, joined(kind, kind, kind))


def test_windows():
    first, second = (ir.WindowBuffer(var(name, ir.PtrType()), FOUR) for name in "ab")
    a, b = (ir.DistributedTensorType([8, 8], FP32, window_buffer=w) for w in (first, second))
    expect(P, carried(a, a, b, a), Code.DISTRIBUTED_WINDOW_IDENTITY_MISMATCH, says="'c' and what the body yields")
    expect(
        P, joined(a, ir.DistributedTensorType([8, 8], FP32), a), Code.DISTRIBUTED_WINDOW_IDENTITY_MISMATCH, says="none"
    )
    holds(P, carried(a, a, a, a))


def test_equal_by_proof():
    m = var("m")
    same = [
        (tensor(N, 8), tensor(ir.Add(N, ir.ConstInt(0, ir.INDEX), ir.INDEX), 8)),
        (tensor(ir.Mul(N, ir.ConstInt(2, ir.INDEX), ir.INDEX), 8), tensor(ir.Add(N, N, ir.INDEX), 8)),
    ]
    for a, b in same:
        holds(P, carried(a, b, a, b))
    double = ir.Mul(N, ir.ConstInt(2, ir.INDEX), ir.INDEX)
    node = carried(tensor(m, 8), tensor(double, 8), tensor(m, 8), tensor(double, 8))
    [text] = {d.message for d in findings(P, node) if "initial" in d.message}
    assert "not provable" in text
    body = main(node).body
    known = ir.Program([main(node).replace(body=seq(assign(m, double), *body.stmts))], "P")
    holds(P, known)  # m is assigned once: it stands for its value
    again = ir.Program([main(node).replace(body=seq(assign(m, double), *body.stmts, assign(m, ONE)))], "P")
    assert findings(P, again)


def test_a_carry_typed_by_a_narrower_seed():
    seed, full = tile(16, 16, view=ir.TileView([16, N])), tile(16, 16)
    assert {d.error_code for d in findings(P, carried(seed, seed, full, full))} == {Code.SHAPE_VALUE_MISMATCH}
    expect(P, carried(seed, full, full, full), Code.SHAPE_VALUE_MISMATCH, says="its initial value")


def test_tile_layouts_are_compared_when_both_are_explicit():
    view = ir.TileView(pad=ir.PadValue.zero)
    holds(P, carried(tile(8, 8, view=view), tile(8, 8), tile(8, 8), tile(8, 8)))


def test_unknown_types_say_nothing():
    holds(P, carried(ir.UnknownType(), INDEX, ir.UnknownType(), INDEX))


def test_numbers_of_results():
    a = var("a")
    for then, other in (((a, a), (a,)), ((a,), (a, a))):
        node = function(ir.IfStmt(YES, give(*then), give(*other), [var("r")], HERE), params=[a])
        expect(P, node, Code.SIZE_MISMATCH, says="yields 2 value(s) for 1 return variable(s)")


def test_the_yield_is_looked_for_in_a_runtime_scope():
    x, z, r = var("x", tensor(8)), var("z", tensor(4)), var("r", tensor(8))
    c = ir.IterArg("c", tensor(8), x)
    body = seq(assign(var("a"), ONE), RuntimeScopeStmt(True, body=seq(give(z)), span=HERE))
    loop = ir.ForStmt(var("i"), ONE, FOUR, ONE, [c], body, [r], HERE)
    expect(P, function(loop, params=[x, z]), Code.SHAPE_VALUE_MISMATCH, says="what the body yields")
    branch = ir.IfStmt(YES, RuntimeScopeStmt(True, body=give(z), span=HERE), give(x), [r], HERE)
    expect(P, function(branch, params=[x, z]), Code.SHAPE_VALUE_MISMATCH, says="then branch")


def test_conditions_and_bounds():
    x, s, f, b = var("x", tensor(8)), var("s"), var("f", ir.ScalarType(FP32)), var("b", ir.ScalarType(ir.BOOL))
    for value, code in (
        (x, Code.IF_CONDITION_MUST_BE_SCALAR),
        (s, Code.CONDITION_MUST_BE_BOOL),
        (f, Code.CONDITION_MUST_BE_BOOL),
    ):
        expect(P, function(ir.IfStmt(value, seq(), None, [], HERE), params=[value]), code, says="'if'")
        expect(P, function(ir.WhileStmt(value, [], seq(), [], HERE), params=[value]), code, says="'while'")
    holds(P, function(ir.IfStmt(b, seq(), None, [], HERE), ir.WhileStmt(b, [], seq(), [], HERE), params=[b]))
    for bound in (x, f):
        for place in range(3):
            bounds = [ONE, ONE, ONE]
            bounds[place] = bound
            node = function(ir.ForStmt(var("i"), *bounds, [], seq(), [], HERE), params=[bound])
            expect(P, node, Code.FOR_RANGE_MUST_BE_SCALAR, says=f"'{('start', 'stop', 'step')[place]}'")


def test_views_lie_inside_shapes():
    minus = ir.ConstInt(-1, ir.INDEX)
    call = ir.Call(ir.Op("f"), [], HERE)
    for kind, code, says in (
        (tensor(8, 8, view=valid(8, 16)), Code.SHAPE_VALUE_MISMATCH, "is larger than the shape's 8"),
        (tensor(8, 8, view=valid(minus, 8)), Code.SHAPE_VALUE_MISMATCH, "is negative"),
        (tensor(8, 8, view=valid(8)), Code.SHAPE_DIMENSION_MISMATCH, "rank 2, but its valid shape has rank 1"),
        (tile(8, 8, view=ir.TileView([9, 8])), Code.SHAPE_VALUE_MISMATCH, "axis 0"),
        (tensor(N, 8, view=valid(ir.Add(N, ONE, ir.INDEX), 8)), Code.SHAPE_VALUE_MISMATCH, "is larger"),
    ):
        expect(P, function(assign(var("a", kind), call)), code, says=says)
        expect(P, function(params=[var("a", kind)]), code, says="'a'")
    holds(P, function(assign(var("a", tensor(8, 8, view=valid(N, 8))), call)))  # not provable either way
    holds(P, function(assign(var("a", tensor(8, 8, view=valid(0, 8))), call)))


def test_several_findings_at_once():
    x = var("x", tensor(8))
    node = function(
        ir.IfStmt(x, seq(), None, [], HERE), ir.ForStmt(var("i"), x, ONE, x, [], seq(), [], HERE), params=[x]
    )
    assert [d.error_code for d in findings(P, node)] == [
        Code.IF_CONDITION_MUST_BE_SCALAR,
        Code.FOR_RANGE_MUST_BE_SCALAR,
        Code.FOR_RANGE_MUST_BE_SCALAR,
    ]


def test_what_a_call_or_submit_gives_to_a_carry():
    node = program("for i, (c,) in pl.range(4, init_values=(n,)):\n    r = pl.yield_(c)\nreturn y")
    [last] = nodes(main(node), ir.YieldStmt)
    kind = tensor(8, 8)
    call = ir.Call(ir.GlobalVar("k"), [], kind, HERE)
    for value in (call, submit_of(call)):
        wrong = ir.YieldStmt([value], HERE)
        expect(P, swapped(node, last, wrong), Code.TYPE_KIND_MISMATCH, says="Scalar and Tensor")


def test_literals_and_index_fit_integers():
    index, wide, narrow = INDEX, ir.ScalarType(ir.INT64), ir.ScalarType(ir.INT32)
    holds(P, carried(wide, index, wide, index))
    for kind in (wide, narrow):
        node = program(f"m: pl.Scalar[pl.{kind.dtype.name}] = pl.cast(n, pl.{kind.dtype.name})\n"
                       "if n > 2:\n    r = pl.yield_(m)\nelse:\n    r = pl.yield_(0)\nreturn y")  # fmt: skip
        holds(P, node)
    expect(P, joined(index, index, narrow), Code.DTYPE_MISMATCH, Code.DTYPE_MISMATCH)
