"""Scalars, dynamic dimensions, pl.RUNTIME."""

import copy
import pickle

import numpy as np
import pytest

import pypto.language as pl
from pypto.ir import expr as x
from pypto.ir.enums import MemorySpace
from pypto.ir.type import ScalarType
from pypto.language.typing import predicate_to_expr


def scalar(dtype=pl.INT32, name="s"):
    return pl.Scalar(expr=x.Var(name, ScalarType(dtype)))


def test_annotation_is_one_object_a_dtype():
    assert pl.Scalar[pl.FP32] is pl.Scalar[pl.FP32]
    assert pl.TaskId is pl.Scalar[pl.TASK_ID]
    assert pl.Scalar[pl.FP32].dtype is pl.FP32
    assert pl.Scalar(pl.FP32).dtype is pl.FP32
    with pytest.raises(RuntimeError, match="annotation-only Scalar"):
        pl.Scalar[pl.FP32].unwrap()


def test_annotations_compare_by_identity():
    a, b = pl.Scalar[pl.FP32], pl.Scalar[pl.INT32]
    assert (a == a) is True and (a == b) is False and (a != b) is True
    assert len({a, b, a}) == 2


def test_call_form():
    s = scalar()
    assert s.dtype is pl.INT32
    with pytest.raises(ValueError, match="requires a dtype or expr"):
        pl.Scalar()
    with pytest.raises(TypeError, match="unexpected keyword argument"):
        pl.Scalar(pl.FP32, nope=1)
    with pytest.raises(TypeError, match=r"Scalar subscript requires \[dtype\]"):
        pl.Scalar[pl.FP32, 3]


def test_no_truth_value():
    with pytest.raises(TypeError, match="no truth value"):
        bool(scalar())
    with pytest.raises(TypeError, match="no truth value"):
        bool(pl.dynamic("M") == 4)


FORWARD = {
    "+": (lambda a, b: a + b, x.Add),
    "-": (lambda a, b: a - b, x.Sub),
    "*": (lambda a, b: a * b, x.Mul),
    "/": (lambda a, b: a / b, x.FloatDiv),
    "//": (lambda a, b: a // b, x.FloorDiv),
    "%": (lambda a, b: a % b, x.FloorMod),
    "<<": (lambda a, b: a << b, x.BitShiftLeft),
    ">>": (lambda a, b: a >> b, x.BitShiftRight),
    "**": (lambda a, b: a**b, x.Pow),
    "&": (lambda a, b: a & b, x.BitAnd),
    "|": (lambda a, b: a | b, x.BitOr),
    "^": (lambda a, b: a ^ b, x.BitXor),
    "==": (lambda a, b: a == b, x.Eq),
    "!=": (lambda a, b: a != b, x.Ne),
    "<": (lambda a, b: a < b, x.Lt),
    "<=": (lambda a, b: a <= b, x.Le),
    ">": (lambda a, b: a > b, x.Gt),
    ">=": (lambda a, b: a >= b, x.Ge),
}


@pytest.mark.parametrize("operator", FORWARD)
def test_operators_build_nodes(operator):
    apply, node = FORWARD[operator]
    m, n = pl.dynamic("m"), pl.dynamic("n")
    result = apply(m, n)
    assert isinstance(result, pl.Scalar)
    assert type(result.unwrap()) is node
    assert result.unwrap().left is m.unwrap() and result.unwrap().right is n.unwrap()
    assert result.dtype is (pl.BOOL if node in x.COMPARISONS else pl.INDEX)


@pytest.mark.parametrize("operator", ["+", "-", "*", "/", "//", "<<", ">>"])
def test_reflected_operators(operator):
    apply, node = FORWARD[operator]
    m = pl.dynamic("m")
    built = apply(7, m).unwrap()
    assert type(built) is node and built.left.value == 7 and built.right is m.unwrap()


def test_operands_that_are_expressions_or_floats():
    s = scalar(pl.FP32)
    raw = x.Var("r", ScalarType(pl.FP32))
    assert (s + raw).unwrap().right is raw
    assert (raw + s).unwrap().left is raw
    assert (pl.dynamic("m") * np.int32(3)).unwrap().right.value == 3
    constant = (s * 0.5).unwrap().right
    assert type(constant) is x.ConstFloat and constant.dtype is pl.FP32


def test_bool_and_foreign_operands_are_refused():
    with pytest.raises(TypeError):
        scalar() + True
    with pytest.raises(TypeError):
        scalar() + "x"
    assert (scalar() == None) is False  # noqa: E711


def test_unary_operators():
    m = pl.dynamic("m")
    assert type((-m).unwrap()) is x.Neg
    assert type((~m).unwrap()) is x.BitNot
    assert type(abs(m).unwrap()) is x.Abs


def test_operators_on_annotations_have_no_value():
    with pytest.raises(RuntimeError, match="annotation-only"):
        pl.Scalar[pl.INT32] + 1


def test_nodes_carry_the_line_of_the_user():
    m = pl.dynamic("m")
    span = (m + 1).unwrap().span
    assert span.filename == __file__ and span.begin_line > 0


# --- dynamic dimensions -----------------------------------------------------------------------------------------------


def test_dynamic_has_one_variable_an_object():
    m = pl.dynamic("M")
    assert isinstance(m, pl.DynVar) and isinstance(m, pl.Scalar)
    assert m.name == "M" and m._var is None
    var = m.unwrap()
    assert type(var) is x.Var and var.name_hint == "M" and var.type == ScalarType(pl.INDEX)
    assert m.unwrap() is var and m._var is var
    assert pl.dynamic("M").unwrap() is not var
    assert pl.DynVar("N").name == "N"


@pytest.mark.parametrize("name", ["", "1x", "a b", "a-b", "for", 3, None])
def test_dynamic_wants_an_identifier(name):
    with pytest.raises(ValueError, match="valid Python identifier"):
        pl.dynamic(name)


def test_dynamic_keys_a_dict():
    m, n = pl.dynamic("M"), pl.dynamic("M")
    assert {m: 1, n: 2}[m] == 1


# --- markers and predicates -------------------------------------------------------------------------------------------


def test_runtime_is_a_marker():
    assert repr(pl.RUNTIME) == "pl.RUNTIME"
    assert isinstance(pl.RUNTIME, pl.Scalar) and type(pl.RUNTIME)() is pl.RUNTIME
    assert copy.deepcopy(pl.RUNTIME) is pl.RUNTIME
    assert pickle.loads(pickle.dumps(pl.RUNTIME)) is pl.RUNTIME
    with pytest.raises(RuntimeError, match=r"pl\.RUNTIME is a compile-time marker"):
        pl.RUNTIME.unwrap()
    with pytest.raises(RuntimeError, match="compile-time marker"):
        pl.RUNTIME + 1


def test_predicates():
    assert predicate_to_expr(True).value is True
    condition = pl.dynamic("m") < 4
    assert predicate_to_expr(condition) is condition.unwrap()
    assert predicate_to_expr(condition.unwrap()) is condition.unwrap()
    with pytest.raises(TypeError, match="must be a BOOL scalar"):
        predicate_to_expr(pl.dynamic("m"))
    with pytest.raises(TypeError, match="predicate must be"):
        predicate_to_expr("x")


def test_names_of_enums_are_members():
    assert pl.Mem is MemorySpace
