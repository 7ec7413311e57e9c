"""Properties of printed text that hold for all nodes."""

import ast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pypto.ir import expr as x
from pypto.ir.dtype import DataType
from pypto.ir.expr import BinaryExpr, ConstFloat, ConstInt, Expr, UnaryExpr, Var
from pypto.ir.printer import python_print
from pypto.ir.printer.functions import FunctionPrinter
from pypto.ir.printer.literals import float_text, quoted
from pypto.ir.stmt import AssignStmt, SeqStmts, Stmt
from pypto.ir.traversal import NODE_CLASSES
from pypto.ir.type import ScalarType
from pypto.ir.type_fields import MARKERS, TYPE_FIELDS
from pypto.ir.views import TensorView, TileView

INDEX = DataType.INDEX
VARIABLES = [Var(name, ScalarType(INDEX)) for name in "abc"]

# --- expression trees -------------------------------------------------------------------------------------------------

_BINARY = {
    ast.Add: x.Add,
    ast.Sub: x.Sub,
    ast.Mult: x.Mul,
    ast.Div: x.FloatDiv,
    ast.FloorDiv: x.FloorDiv,
    ast.Mod: x.FloorMod,
    ast.Pow: x.Pow,
    ast.BitAnd: x.BitAnd,
    ast.BitOr: x.BitOr,
    ast.BitXor: x.BitXor,
    ast.LShift: x.BitShiftLeft,
    ast.RShift: x.BitShiftRight,
    ast.Eq: x.Eq,
    ast.NotEq: x.Ne,
    ast.Lt: x.Lt,
    ast.LtE: x.Le,
    ast.Gt: x.Gt,
    ast.GtE: x.Ge,
}
_UNARY = {ast.USub: x.Neg, ast.Invert: x.BitNot, ast.Not: x.Not}
_CALLS = {"pl.min": x.Min, "pl.max": x.Max, "abs": x.Abs}


def shape_of(node):
    """A tree as nested tuples of class names and leaves."""
    if isinstance(node, BinaryExpr):
        return type(node).__name__, shape_of(node.left), shape_of(node.right)
    if isinstance(node, UnaryExpr):
        return type(node).__name__, shape_of(node.operand)
    return node.name_hint if isinstance(node, Var) else node.value


def shape_of_python(node):
    """The same of Python's reading of the text."""
    match node:
        case ast.Name(id=name):
            return name
        case ast.Constant(value=value):
            return value
        case ast.BinOp(left=left, op=op, right=right):
            return _BINARY[type(op)].__name__, shape_of_python(left), shape_of_python(right)
        case ast.Compare(left=left, ops=[op], comparators=[right]):
            return _BINARY[type(op)].__name__, shape_of_python(left), shape_of_python(right)
        case ast.BoolOp(op=op, values=values):
            name = "And" if isinstance(op, ast.And) else "Or"
            tree = shape_of_python(values[0])
            for value in values[1:]:
                tree = (name, tree, shape_of_python(value))
            return tree
        case ast.UnaryOp(op=op, operand=operand):
            return _UNARY[type(op)].__name__, shape_of_python(operand)
        case ast.Call(func=func, args=args):
            name = ast.unparse(func)
            if name == "pl.const":
                return args[0].value
            return (_CALLS[name].__name__, *map(shape_of_python, args))
    raise AssertionError(ast.dump(node))


def trees():
    binary = st.sampled_from([cls for cls in x.BINARY_CLASSES if cls is not x.Xor])
    unary = st.sampled_from([cls for cls in x.UNARY_CLASSES if cls is not x.Cast])
    leaves = st.one_of(st.sampled_from(VARIABLES), st.integers(0, 9).map(lambda value: ConstInt(value, INDEX)))
    return st.recursive(
        leaves,
        lambda inner: st.one_of(
            st.builds(lambda cls, left, right: cls(left, right, INDEX), binary, inner, inner),
            st.builds(lambda cls, operand: cls(operand, INDEX), unary, inner),
        ),
        max_leaves=12,
    )


@given(trees())
def test_python_reads_a_printed_expression_as_the_same_tree(tree):
    text = python_print(tree, format=False)
    assert shape_of_python(ast.parse(text, mode="eval").body) == shape_of(tree)


# --- literals ---------------------------------------------------------------------------------------------------------


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_floats_read_back_exactly(value):
    read = ast.literal_eval(float_text(value))
    assert type(read) is float and read.hex() == value.hex()


@given(st.text(), st.sampled_from("\"'"))
def test_strings_read_back_exactly(value, quote):
    text = quoted(value, quote)
    assert "\n" not in text and text[0] == text[-1] == quote
    assert ast.literal_eval(text) == value


# --- completeness -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cls", [cls for cls in NODE_CLASSES if issubclass(cls, (Expr, Stmt))])
def test_every_node_class_has_a_printed_form(cls):
    table = FunctionPrinter._EXPRESSIONS if issubclass(cls, Expr) else FunctionPrinter._STATEMENTS
    # Assignments and sequences are what a block prints itself.
    assert cls in table or cls in (AssignStmt, SeqStmts)


@pytest.mark.parametrize("cls", [*MARKERS, *(cls for cls in TYPE_FIELDS if cls not in (TensorView, TileView))])
def test_every_type_has_a_printed_form(cls):
    assert cls in FunctionPrinter._TYPES


@pytest.mark.parametrize("cls", [cls for cls in x.BINARY_CLASSES])
def test_binary_constants_of_any_class_keep_their_dtype(cls):
    one, half = ConstInt(1, INDEX), ConstFloat(0.5, DataType.FP32)
    assert "pl.const(1, pl.INDEX)" in python_print(cls(one, one, INDEX), format=False)
    assert "pl.const(0.5, pl.FP32)" in python_print(cls(half, half, DataType.FP32), format=False)
