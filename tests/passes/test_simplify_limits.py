"""Comparisons with constants inside each other: compared with what trying all values says."""

import itertools
import operator

import pytest

from pypto import ir
from pypto.ir.expr import ConstInt, Var
from pypto.passes.simplification.limits import NO_HOLES, limit_of

SPAN = range(-2, 5)  # the variable; the constants leave its ends alone
CONSTANTS = range(-1, 4)
OPERATORS = {
    ir.Lt: operator.lt,
    ir.Le: operator.le,
    ir.Gt: operator.gt,
    ir.Ge: operator.ge,
    ir.Eq: operator.eq,
    ir.Ne: operator.ne,
}
N = Var("n", ir.ScalarType(ir.DataType.INDEX))


def comparison(cls, value, turned):
    constant = ConstInt(value, ir.DataType.INDEX)
    return cls(constant, N, ir.DataType.BOOL) if turned else cls(N, constant, ir.DataType.BOOL)


def holds(cls, value, turned, n):
    return OPERATORS[cls](value, n) if turned else OPERATORS[cls](n, value)


ALL = list(itertools.product(OPERATORS, CONSTANTS, (False, True)))


@pytest.mark.parametrize("negated", [False, True])
def test_two_conditions_decide_a_third_as_trying_all_values_does(negated):
    start = (SPAN[0], SPAN[-1], NO_HOLES)
    for outer, inner in itertools.product(ALL, ALL[::3]):
        first, second = (limit_of(comparison(*each)) for each in (outer, inner))
        first = first.negated() if negated else first
        values = second.narrow(first.narrow(start))
        possible = [n for n in SPAN if holds(*outer, n) is not negated and holds(*inner, n)]
        assert [n for n in range(values[0], values[1] + 1) if n not in values[2]] == possible
        for asked in ALL[::5]:
            answers = {holds(*asked, n) for n in possible}
            expected = answers.pop() if len(answers) == 1 else None
            assert limit_of(comparison(*asked)).truth(values) is expected, (outer, inner, asked)


def test_what_is_no_limit():
    other = Var("m", ir.ScalarType(ir.DataType.INDEX))
    real = Var("f", ir.ScalarType(ir.DataType.FP32))
    three = ConstInt(3, ir.DataType.INDEX)
    assert limit_of(ir.Lt(N, other, ir.DataType.BOOL)) is None
    assert limit_of(ir.Lt(three, three, ir.DataType.BOOL)) is None
    assert limit_of(ir.Lt(real, three, ir.DataType.BOOL)) is None
    assert limit_of(ir.Add(N, three, ir.DataType.INDEX)) is None
    assert limit_of(comparison(ir.Lt, 2**63 - 1, False)) is None
