"""Scalar expressions: precedence, constants, operators."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from ...diag.errors import InternalError
from .. import expr as x
from ..dtype import DataType
from ..expr import BinaryExpr, ConstBool, ConstFloat, ConstInt, Expr, MakeTuple, TupleGetItemExpr, UnaryExpr, Var
from ..type import BOOL_TYPE, INDEX_TYPE, ScalarType
from .literals import dtype_texts, enum_texts, float_text

# Binary operators between their operands: text and precedence.
INFIX: dict[type, tuple[str, int]] = {
    x.Or: (" or ", 1),
    x.Xor: (" xor ", 2),
    x.And: (" and ", 3),
    x.Eq: (" == ", 5),
    x.Ne: (" != ", 5),
    x.Lt: (" < ", 5),
    x.Le: (" <= ", 5),
    x.Gt: (" > ", 5),
    x.Ge: (" >= ", 5),
    x.BitOr: (" | ", 6),
    x.BitXor: (" ^ ", 7),
    x.BitAnd: (" & ", 8),
    x.BitShiftLeft: (" << ", 9),
    x.BitShiftRight: (" >> ", 9),
    x.Add: (" + ", 10),
    x.Sub: (" - ", 10),
    x.Mul: (" * ", 11),
    x.FloatDiv: (" / ", 11),
    x.FloorDiv: (" // ", 11),
    x.FloorMod: (" % ", 11),
    x.Pow: (" ** ", 13),
}
SIGN: dict[type, tuple[str, int]] = {x.Not: ("not ", 4), x.Neg: ("-", 12), x.BitNot: ("~", 12)}
_FUNCTION = {x.Min: "min(", x.Max: "max("}

_COMPARISON, _CALL, _ATOM = 5, 14, 15
PRECEDENCE: dict[type, int] = {
    **{cls: row[1] for cls, row in INFIX.items()},
    **{cls: row[1] for cls, row in SIGN.items()},
    **dict.fromkeys((x.Min, x.Max, x.Abs, x.Cast, x.Call, x.Submit), _CALL),
}

# A piece of text, or an expression still to be printed.
Pieces = Sequence["str | Expr"]


class ExpressionPrinter:
    """Prints scalar expressions under a table of names."""

    _EXPRESSIONS: ClassVar[dict[type, Callable[[Any, Any], str]]] = {}

    def __init__(self, prefix: str, names: Mapping[Expr, str]) -> None:
        self.prefix = prefix
        self.pl = prefix + "."
        self.names = names
        self._dtypes = dtype_texts(self.pl)
        self._enums = enum_texts(self.pl)
        self._typed = False  # whether all constants print with their dtype
        self._constant: dict[BinaryExpr, bool] = {}

    # --- entry points -------------------------------------------------------------------------------------------------

    def expr(self, node: Expr) -> str:
        """The text of an expression."""
        text = self.names.get(node)
        if text is not None:
            return text
        handler = self._EXPRESSIONS.get(type(node))
        if handler is None:
            raise InternalError(f"{type(node).__name__} has no printed form")
        return handler(self, node)

    def exprs(self, nodes: Sequence[Expr]) -> str:
        """Expressions with commas between them."""
        names, expr = self.names, self.expr
        return ", ".join([names.get(node) or expr(node) for node in nodes])

    def typed(self, node: Expr) -> str:
        """As :meth:`expr`, with every constant in the form that keeps its dtype."""
        before, self._typed = self._typed, True
        try:
            return self.expr(node)
        finally:
            self._typed = before

    def extent(self, node: Expr) -> str:
        """A dim of a type: the bare number, or an expression whose constants are typed, so that it doesn't fold."""
        return str(node.value) if type(node) is ConstInt else self.names.get(node) or self.typed(node)

    def extents(self, nodes: Sequence[Expr]) -> str:
        """Dims with commas between them."""
        return ", ".join([str(e.value) if type(e) is ConstInt else self.extent(e) for e in nodes])

    def bare_literal(self, const: Expr) -> str:
        """A constant without its dtype; any other expression as it is."""
        if type(const) is ConstInt:
            return str(const.value)
        if type(const) is ConstFloat:
            return float_text(const.value)
        return self.expr(const)

    # --- leaves -------------------------------------------------------------------------------------------------------

    def _const(self, text: str, dtype: DataType) -> str:
        return f"{self.pl}const({text}, {self._dtypes[dtype]})"

    def _const_int(self, node: ConstInt) -> str:
        if node.type is INDEX_TYPE and not self._typed:
            return str(node.value)
        return self._const(str(node.value), node.dtype)

    def _const_float(self, node: ConstFloat) -> str:
        text = float_text(node.value)
        return text if node.dtype is DataType.FP32 and not self._typed else self._const(text, node.dtype)

    def _const_bool(self, node: ConstBool) -> str:
        return "True" if node.value else "False"

    def _unnamed(self, node: Var) -> str:
        return node.name_hint

    def _memory(self, node: Any) -> str:
        # Named after their base, which has a name of its own where the text defines it.
        return self.names.get(getattr(node, "base_", None) or node.base) or node.name_hint

    def _make_tuple(self, node: MakeTuple) -> str:
        return f"[{self.exprs(node.elements)}]"

    # --- operators ----------------------------------------------------------------------------------------------------

    def _operators(self, root: Expr) -> str:
        """Operator trees of any depth, with a stack of its own: chains of thousands are normal after unrolling."""
        out: list[str] = []
        stack: list[Any] = [root]
        names, pieces = self.names, _PIECES
        while stack:
            item = stack.pop()
            kind = type(item)
            if kind is str:
                out.append(item)
                continue
            build = pieces.get(kind)
            if build is None:
                out.append(names.get(item) or self.expr(item))
            else:
                stack.extend(reversed(build(self, item)))
        return "".join(out)

    def _binary(self, node: BinaryExpr) -> Pieces:
        if not self._typed and self._folds(node):
            return (self.typed(node),)
        kind = type(node)
        text, own = INFIX[kind]
        left, right = node.left, node.right
        lower, higher = PRECEDENCE.get(type(left), _ATOM), PRECEDENCE.get(type(right), _ATOM)
        if kind is x.Pow:
            open_left = lower <= own or (type(left) in _NUMBERS and self.expr(left).startswith("-"))
            open_right = higher < own
        else:
            # Python chains comparisons, so they associate on neither side.
            open_left = lower < own or (lower == own == _COMPARISON)
            open_right = higher <= own
        if open_left:
            return ("(", left, ")", text, "(", right, ")") if open_right else ("(", left, ")", text, right)
        return (left, text, "(", right, ")") if open_right else (left, text, right)

    def _xor(self, node: x.Xor) -> Pieces:
        # Nothing in the DSL makes one, and Python has no word for it: on booleans it is inequality.
        if node.left.type == BOOL_TYPE and node.right.type == BOOL_TYPE:
            return ("(", node.left, ") != (", node.right, ")")
        return self._binary(node)

    def _min_max(self, node: BinaryExpr) -> Pieces:
        if not self._typed and self._folds(node):
            return (self.typed(node),)
        return (self.pl + _FUNCTION[type(node)], node.left, ", ", node.right, ")")

    def _sign(self, node: UnaryExpr) -> Pieces:
        text, own = SIGN[type(node)]
        operand = node.operand
        if PRECEDENCE.get(type(operand), _ATOM) < own:
            return (text + "(", operand, ")")
        return (text, operand)

    def _abs(self, node: x.Abs) -> Pieces:
        return ("abs(", node.operand, ")")

    def _cast(self, node: x.Cast) -> Pieces:
        kind = node.type
        assert isinstance(kind, ScalarType)
        return (self.pl + "cast(", node.operand, f", {self._dtypes[kind.dtype]})")

    def _item(self, node: TupleGetItemExpr) -> Pieces:
        return (node.tuple, f"[{node.index}]")

    def _folds(self, node: BinaryExpr) -> bool:
        """Whether the reader would fold this subtree: all its leaves are numbers. Answered once a tree."""
        if type(node.left) not in _MAY_FOLD or type(node.right) not in _MAY_FOLD:
            return False
        memo = self._constant
        stack: list[Any] = [] if node in memo else [node]
        while stack:
            top = stack[-1]
            sides = (top.left, top.right)
            pending = [side for side in sides if type(side) in _BINARY and side not in memo]
            if pending:
                stack.extend(pending)
            else:
                stack.pop()
                memo[top] = all(type(side) in _NUMBERS or memo.get(side, False) for side in sides)
        return memo[node]


_BINARY = frozenset(x.BINARY_CLASSES)
_NUMBERS = frozenset((ConstInt, ConstFloat))
_MAY_FOLD = _BINARY | _NUMBERS

_P = ExpressionPrinter
_PIECES: dict[type, Callable[[Any, Any], Pieces]] = {
    **dict.fromkeys(INFIX, _P._binary),
    **dict.fromkeys(SIGN, _P._sign),
    **dict.fromkeys(_FUNCTION, _P._min_max),
    x.Xor: _P._xor,
    x.Abs: _P._abs,
    x.Cast: _P._cast,
    TupleGetItemExpr: _P._item,
}
_P._EXPRESSIONS.update(
    {
        **dict.fromkeys(_PIECES, _P._operators),
        ConstInt: _P._const_int,
        ConstFloat: _P._const_float,
        ConstBool: _P._const_bool,
        MakeTuple: _P._make_tuple,
        Var: _P._unnamed,
        x.IterArg: _P._unnamed,
        x.MemRef: _P._memory,
        x.WindowBuffer: _P._memory,
    }
)
