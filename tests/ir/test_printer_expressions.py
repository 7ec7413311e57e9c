"""Printed scalar expressions: precedence, constants, operators (spec 16.1, 16.2)."""

import math

import pytest

from pypto.ir import expr as x
from pypto.ir import scalar as s
from pypto.ir.dtype import DataType
from pypto.ir.expr import ConstBool, ConstFloat, ConstInt, MakeTuple, MemRef, TupleGetItemExpr, Var, WindowBuffer
from pypto.ir.printer import python_print
from pypto.ir.type import ScalarType, TupleType

INDEX, INT64, FP32, BOOL = DataType.INDEX, DataType.INT64, DataType.FP32, DataType.BOOL
A, B, C = (Var(name, ScalarType(INDEX)) for name in "abc")
P, Q, R = (Var(name, ScalarType(BOOL)) for name in "pqr")


def text(node, **options):
    return python_print(node, format=False, **options)


@pytest.mark.parametrize(
    ("node", "expected"),
    [
        (s.add(A, B), "a + b"),
        (s.sub(A, B), "a - b"),
        (s.mul(A, B), "a * b"),
        (s.truediv(A, B), "a / b"),
        (s.floordiv(A, B), "a // b"),
        (s.mod(A, B), "a % b"),
        (s.pow(A, B), "a ** b"),
        (s.eq(A, B), "a == b"),
        (s.ne(A, B), "a != b"),
        (s.lt(A, B), "a < b"),
        (s.le(A, B), "a <= b"),
        (s.gt(A, B), "a > b"),
        (s.ge(A, B), "a >= b"),
        (s.bit_and(A, B), "a & b"),
        (s.bit_or(A, B), "a | b"),
        (s.bit_xor(A, B), "a ^ b"),
        (s.bit_shift_left(A, B), "a << b"),
        (s.bit_shift_right(A, B), "a >> b"),
        (s.and_(P, Q), "p and q"),
        (s.or_(P, Q), "p or q"),
        (s.min_(A, B), "pl.min(a, b)"),
        (s.max_(A, B), "pl.max(a, b)"),
        (s.abs_(A), "abs(a)"),
        (s.cast(A, DataType.FP16), "pl.cast(a, pl.FP16)"),
        (s.neg(A), "-a"),
        (s.bit_not(A), "~a"),
        (s.not_(P), "not p"),
        (MakeTuple([A, B]), "[a, b]"),
        (TupleGetItemExpr(Var("t", TupleType([A.type, B.type])), 1), "t[1]"),
        (TupleGetItemExpr(MakeTuple([A, B]), 0), "[a, b][0]"),
    ],
)
def test_operators(node, expected):
    assert text(node) == expected


def test_another_prefix():
    assert text(s.min_(A, s.cast(B, INT64)), prefix="lang") == "lang.min(a, lang.cast(b, lang.INT64))"


@pytest.mark.parametrize(
    ("node", "expected"),
    [
        ((A + B) * C, "(a + b) * c"),
        (A + B * C, "a + b * c"),
        (A - B - C, "a - b - c"),
        (A - (B - C), "a - (b - c)"),
        (A + (B + C), "a + (b + c)"),
        (A * (B // C), "a * (b // c)"),
        (A**B**C, "a ** b ** c"),
        (s.pow(s.pow(A, B), C), "(a ** b) ** c"),
        (s.pow(-A, B), "(-a) ** b"),
        (s.pow(A, -B), "a ** (-b)"),
        (-(A**B), "-a ** b"),
        (-(A + B), "-(a + b)"),
        (-(A * B), "-(a * b)"),
        (-A * B, "-a * b"),
        (~(A | B), "~(a | b)"),
        (s.neg(s.neg(A)), "--a"),
        (A << (B + C), "a << b + c"),
        ((A << B) + C, "(a << b) + c"),
        (s.bit_or(s.bit_and(A, B), C), "a & b | c"),
        (s.bit_and(s.bit_or(A, B), C), "(a | b) & c"),
        (s.lt(A + B, C), "a + b < c"),
        (s.not_(s.lt(A, B)), "not a < b"),
        (s.not_(s.and_(P, Q)), "not (p and q)"),
        (s.and_(s.not_(P), Q), "not p and q"),
        (s.and_(s.or_(P, Q), R), "(p or q) and r"),
        (s.or_(P, s.and_(Q, R)), "p or q and r"),
        (s.and_(P, s.and_(Q, R)), "p and (q and r)"),
        (s.min_(A + B, C), "pl.min(a + b, c)"),
    ],
)
def test_parentheses(node, expected):
    assert text(node) == expected


def test_comparisons_never_chain():
    # ``a < b == c`` means something else in Python, so equal precedence needs parentheses on both sides here.
    assert text(x.Eq(s.lt(A, B), P, BOOL)) == "(a < b) == p"
    assert text(x.Eq(P, s.lt(A, B), BOOL)) == "p == (a < b)"


def test_xor():
    assert text(s.and_(x.Xor(P, s.lt(A, B), BOOL), Q)) == "((p) != (a < b)) and q"
    assert text(x.Xor(A, B, BOOL)) == "a xor b"


@pytest.mark.parametrize(
    ("node", "expected"),
    [
        (ConstInt(7, INDEX), "7"),
        (ConstInt(7, INT64), "pl.const(7, pl.INT64)"),
        (ConstInt(-3, INDEX), "-3"),
        (ConstInt(-3, DataType.INT32), "pl.const(-3, pl.INT32)"),
        (ConstFloat(0.5, FP32), "0.5"),
        (ConstFloat(0.5, DataType.FP16), "pl.const(0.5, pl.FP16)"),
        (ConstFloat(0.1, FP32), "0.10000000000000001"),
        (ConstFloat(4, FP32), "4.0"),
        (ConstFloat(1e22, FP32), "1e+22"),
        (ConstFloat(1e16, FP32), "10000000000000000.0"),
        (ConstFloat(1e-7, FP32), "9.9999999999999995e-08"),
        (ConstFloat(math.inf, FP32), "inf"),
        (ConstFloat(-math.inf, FP32), "-inf"),
        (ConstFloat(math.nan, FP32), "nan"),
        (ConstBool(True), "True"),
        (ConstBool(False), "False"),
    ],
)
def test_constants(node, expected):
    assert text(node) == expected


@pytest.mark.parametrize(
    ("node", "expected"),
    [
        (A + 2, "a + 2"),
        (A + ConstInt(2, INDEX) * 3, "a + pl.const(2, pl.INDEX) * pl.const(3, pl.INDEX)"),
        (ConstInt(2, INDEX) + 3 + A, "pl.const(2, pl.INDEX) + pl.const(3, pl.INDEX) + a"),
        (A + 2 + 3, "a + 2 + 3"),
        (
            s.min_(ConstInt(2, INDEX), ConstInt(3, INDEX) + 1),
            "pl.min(pl.const(2, pl.INDEX), pl.const(3, pl.INDEX) + pl.const(1, pl.INDEX))",
        ),
        # Floats fold as well; a sum with a variable in it doesn't.
        (ConstFloat(1.5, FP32) * 2.0, "pl.const(1.5, pl.FP32) * pl.const(2.0, pl.FP32)"),
        (s.add(ConstInt(1, INDEX), ConstInt(2, INDEX) * A), "1 + 2 * a"),
    ],
)
def test_what_would_fold_prints_typed(node, expected):
    assert text(node) == expected


def test_negative_literal_under_a_power():
    assert text(s.pow(ConstInt(-2, INDEX), A)) == "(-2) ** a"
    assert text(s.pow(ConstInt(-2, INT64), A)) == "pl.const(-2, pl.INT64) ** a"


def test_memory_variables_print_their_hint():
    assert text(MemRef("ping")) == "ping"
    assert text(WindowBuffer(Var("w", ScalarType(INT64)), ConstInt(64, INT64))) == "w"


def test_two_variables_with_one_hint():
    other = Var("a", ScalarType(INDEX))
    assert text(A + other * A) == "a + a_1 * a"


@pytest.mark.parametrize("depth", [3000])
def test_deep_chains(depth):
    left = right = signs = casts = A
    for _ in range(depth):
        left = left + 1
        right = s.add(ConstInt(1, INDEX), right)
        signs = s.neg(signs)
        casts = s.cast(casts, INT64)
    assert text(left) == "a" + " + 1" * depth
    assert text(right) == "1 + (" * (depth - 1) + "1 + a" + ")" * (depth - 1)
    assert text(signs) == "-" * depth + "a"
    assert text(casts) == "pl.cast(" * depth + "a" + ", pl.INT64)" * depth


def test_deep_constant_chain():
    node = ConstInt(1, INDEX)
    for _ in range(3000):
        node = node + 1
    assert text(node) == " + ".join(["pl.const(1, pl.INDEX)"] * 3001)


def test_chains_of_mixed_depth_are_linear():
    # A constant prefix under many variables is looked at once, not once a level.
    node = ConstInt(1, INDEX)
    for _ in range(2000):
        node = node + 1
    for _ in range(2000):
        node = node + A
    assert text(node) == " + ".join(["pl.const(1, pl.INDEX)"] * 2001 + ["a"] * 2000)
