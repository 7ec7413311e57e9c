"""ArrayNotEscaped: no array in a signature."""

from verify_kit import HERE, INDEX, expect, holds

from pypto import ir
from pypto.verify.properties import IRProperty

P = IRProperty.ArrayNotEscaped
ARRAY = ir.ArrayType(ir.INT32, 4)


def function(params=(), results=()):
    variables = [ir.Var(name, kind, HERE) for name, kind in params]
    return ir.Program([ir.Function("main", variables, list(results), ir.SeqStmts([]), HERE)])


def test_parameters_and_results():
    [message] = expect(P, function([("n", INDEX), ("arr", ARRAY)]), 0)
    assert "'arr'" in message
    expect(P, function(results=[INDEX, ARRAY]), 0, says="result 1")


def test_inside_tuples():
    deep = ir.TupleType([INDEX, ir.TupleType([ARRAY])])
    expect(P, function([("t", deep)], [deep]), 0, 0)


def test_without_arrays():
    holds(P, function([("n", INDEX)], [ir.TupleType([INDEX])]))
