"""TileTypeCoherence: the implicit view is stored as absent."""

from verify_kit import HERE, INDEX, expect, holds

from pypto import ir
from pypto.ir.views import implicit_tile_view
from pypto.verify.properties import IRProperty

P = IRProperty.TileTypeCoherence
VEC = ir.MemorySpace.Vec


def tile(view="implicit", shape=(16, 32)):
    """A tile type that stores a view as it is: the constructor would drop the implicit one."""
    kind = ir.TileType(list(shape), ir.FP32, None, None, VEC)
    stored = implicit_tile_view(kind.shape, VEC) if view == "implicit" else view
    ir.TileType.__dict__["tile_view"].__set__(kind, stored)
    return kind


GOOD = ir.TileType([16, 32], ir.FP32, None, None, VEC)
PARTIAL = ir.TileType([16, 32], ir.FP32, None, ir.TileView(valid_shape=[16, 8]), VEC)


def function(body, params=(), results=()):
    return ir.Program([ir.Function("main", list(params), list(results), body, HERE)])


def assigning(kind, value_kind=None):
    value = ir.Call(ir.Op("test.op"), [], value_kind or kind, HERE)
    return function(ir.AssignStmt(ir.Var("v", kind), value, HERE))


def test_implicit_view_of_a_variable_or_value():
    expect(P, assigning(tile()), 1, says="implicit-but-present tile_view")
    expect(P, assigning(GOOD, tile()), 1, says="the value of 'v'")
    expect(P, assigning(tile(), tile()), 1, 1)


def test_whole_shape_spelled_out():
    expect(P, assigning(tile(implicit_tile_view([16, 32], VEC).replace(valid_shape=GOOD.shape))), 1)


def test_everywhere_where_types_are():
    bad, body = tile(), ir.SeqStmts([])
    expect(P, function(body, [ir.Var("p", bad, HERE)]), 1, says="'p'")
    expect(P, function(body, results=[INDEX, bad]), 1, says="result '1'")
    expect(P, function(body, results=[ir.TupleType([INDEX, bad])]), 1)
    start = ir.Var("start", GOOD, HERE)
    carry, after = ir.IterArg("carry", bad, start), ir.Var("after", bad)
    zero = ir.ConstInt(0, ir.INDEX)
    loop = ir.ForStmt(ir.Var("i", INDEX), zero, zero, zero, [carry], ir.YieldStmt([carry]), [after], HERE)
    found = expect(P, function(loop, [start]), 1, 1)
    assert "'carry'" in found[0] and "'after'" in found[1]
    branch = ir.IfStmt(ir.ConstBool(True), ir.YieldStmt([start]), ir.YieldStmt([start]), [ir.Var("phi", bad)], HERE)
    expect(P, function(branch, [start]), 1, says="'phi'")


def test_other_views():
    holds(P, assigning(GOOD))
    holds(P, assigning(PARTIAL))
    holds(P, assigning(INDEX))
