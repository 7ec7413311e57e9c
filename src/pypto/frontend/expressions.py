"""Expressions: names, constants and folding, operators, tuples, subscript reads."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable
from typing import Any

from ..ir import scalar as scalars
from ..ir.dtype import DataType
from ..ir.enums import MemorySpace
from ..ir.expr import ConstBool, ConstFloat, ConstInt, Expr, MakeTuple, TupleGetItemExpr, Var
from ..ir.span import Span
from ..ir.type import BOOL_TYPE, ArrayType, ScalarType, TensorType, TileType, TupleType
from ..ops.surface import NAMESPACES
from .annotations import Annotations
from .closure import BINARY, MISSING, dotted
from .errors import (
    InvalidOperationError,
    Suppressed,
    UnsupportedFeatureError,
)
from .scope import POISON, Conflict

_BINARY_HELPERS: dict[Any, Callable[..., Expr]] = {
    ast.Add: scalars.add,
    ast.Sub: scalars.sub,
    ast.Mult: scalars.mul,
    ast.Div: scalars.truediv,
    ast.FloorDiv: scalars.floordiv,
    ast.Mod: scalars.mod,
    ast.Pow: scalars.pow,
    ast.LShift: scalars.bit_shift_left,
    ast.RShift: scalars.bit_shift_right,
    ast.BitAnd: scalars.bit_and,
    ast.BitOr: scalars.bit_or,
    ast.BitXor: scalars.bit_xor,
}
_SYMBOLS: dict[Any, str] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
    ast.FloorDiv: "//",
    ast.Mod: "%",
    ast.Pow: "**",
    ast.LShift: "<<",
    ast.RShift: ">>",
    ast.BitAnd: "&",
    ast.BitOr: "|",
    ast.BitXor: "^",
}
# Python operators that tensors and tiles have, as the unified op of the same meaning.
_ARRAY_OPS: dict[Any, str] = {ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "div"}
_COMMUTATIVE = (ast.Add, ast.Mult)
_COMPARISONS: dict[type, Callable[..., Expr]] = {
    ast.Eq: scalars.eq,
    ast.NotEq: scalars.ne,
    ast.Lt: scalars.lt,
    ast.LtE: scalars.le,
    ast.Gt: scalars.gt,
    ast.GtE: scalars.ge,
}
_NUMBERS = (int, float)


class Expressions(Annotations):
    """Expression syntax to IR expressions."""

    def expr(self, node: ast.expr) -> Expr:
        """Any expression that stands for one IR value."""
        handler = _HANDLERS.get(type(node))
        if handler is None:
            self.fail(
                f"Unsupported expression type: {type(node).__name__}",
                node,
                "Use arithmetic, comparisons, subscripts and pl.* operations",
                UnsupportedFeatureError,
            )
        value = handler(self, node)
        return value if isinstance(value, Expr) else self.number(value, self.span(node))

    def operand(self, node: ast.expr) -> Any:
        """As :meth:`expr`, but a constant that Python can still fold comes back as a Python number."""
        handler = _HANDLERS.get(type(node))
        return self.expr(node) if handler is None else handler(self, node)

    # --- leaves -------------------------------------------------------------------------------------------------------

    def _name(self, node: ast.Name) -> Any:
        name = node.id
        found = self.scopes.lookup(name)
        if found is not None:
            if found is POISON:
                raise Suppressed
            if type(found) is Conflict:
                first, second = found.types
                self.type_error(
                    f"'{name}' is {first} on one path and {second} on another",
                    node,
                    "Give both branches a value of the same type, or use two names",
                )
            return found
        value = self.closure.get(name)
        if value is MISSING:
            self.undefined(name, node)
        return self.closure_value(value, node)

    def closure_value(self, value: Any, node: ast.expr) -> Any:
        """A closure value as an operand: numbers stay Python numbers, so that they fold."""
        if type(value) in (int, float, bool):
            return value
        if isinstance(value, Expr):
            return value
        if getattr(value, "is_dynvar", False):
            return self.dynamic_symbol(value, node)
        wrapped = getattr(value, "_expr", None)
        if isinstance(wrapped, Expr):
            return wrapped
        if isinstance(value, (list, tuple)):
            span = self.span(node)
            items = [self.closure_value(v, node) for v in value]
            return MakeTuple([i if isinstance(i, Expr) else self.number(i, span) for i in items], span)
        if isinstance(value, _NUMBERS):  # IntEnum and friends
            return int(value) if isinstance(value, int) else float(value)
        if hasattr(value, "__index__"):
            return value.__index__()
        if hasattr(value, "__float__") and hasattr(value, "dtype"):
            return float(value)  # a NumPy scalar
        self.type_error(
            f"Unsupported closure variable type: {type(value).__name__}",
            node,
            "A body may use ints, floats, bools, pl.dynamic symbols, and tuples of them from the surrounding code",
        )

    def dynamic_symbol(self, dynvar: Any, node: ast.expr) -> Expr:
        """A ``pl.dynamic`` object read in a body; a jit specialisation may know its extent or its anchor."""
        return self.context.dynamic_var(dynvar)

    def _constant(self, node: ast.Constant) -> Any:
        value = node.value
        kind = type(value)
        if kind in (int, float, bool):
            return value
        if value is None:
            from ..ir.node import EMPTY_DICT, EMPTY_LIST
            from ..ops.registry import build, lookup

            return build(lookup("system.task_invalid"), EMPTY_LIST, EMPTY_DICT, self.span(node))
        self.type_error(
            f"Unsupported constant type: {kind.__name__}",
            node,
            "Strings are only accepted as keyword arguments" if kind is str else None,
        )

    # --- operators ----------------------------------------------------------------------------------------------------

    def _binop(self, node: ast.BinOp) -> Any:
        # A chain such as a + b + c leans left: walk its spine without recursion.
        spine = [node]
        while type(spine[-1].left) is ast.BinOp:
            spine.append(spine[-1].left)
        left = self.operand(spine[-1].left)
        for part in reversed(spine):
            left = self.binary(type(part.op), left, self.operand(part.right), part)
        return left

    def binary(self, op: type, left: Any, right: Any, node: ast.expr) -> Any:
        """``left op right`` of Python numbers (folded) or expressions."""
        left_number, right_number = not isinstance(left, Expr), not isinstance(right, Expr)
        if left_number and right_number:
            function = BINARY.get(op)
            if function is not None:
                try:
                    return function(left, right)
                except (ArithmeticError, TypeError, ValueError) as error:
                    self.type_error(f"Failed to evaluate expression: {error}", node)
        helper = _BINARY_HELPERS.get(op)
        if helper is None:
            hint = "Write pl.matmul(a, b)" if op is ast.MatMult else None
            self.fail(f"Unsupported binary operator: {op.__name__}", node, hint, UnsupportedFeatureError)
        span = self.span(node)
        if left_number:
            left = self.number(left, span)
        if right_number:
            right = self.number(right, span)
        if type(left.type) is not ScalarType or type(right.type) is not ScalarType:
            return self._array_binary(op, left, right, node, span)
        return helper(left, right, span)

    def _array_binary(self, op: type, left: Expr, right: Expr, node: ast.expr, span: Span) -> Expr:
        name = _ARRAY_OPS.get(op)
        arrays = (TensorType, TileType)
        if not isinstance(left.type, arrays) and not isinstance(right.type, arrays):
            return _BINARY_HELPERS[op](left, right, span)  # raises the scalar typing error
        if name is None:
            raise InvalidOperationError(
                f"operator '{_SYMBOLS[op]}' needs scalars, got {left.type} and {right.type}: "
                "Expression must be ScalarExpr or Var with ScalarType",
                span,
                hint="Tensors and tiles have + - * /; for the others call the pl.* operation",
            )
        if not isinstance(left.type, arrays):
            if op not in _COMMUTATIVE:
                return self._reflected(op, left, right, node, span)
            left, right = right, left
        return self.call_surface(NAMESPACES["pl"][name], (left, right), {}, f"pl.{name}", node)  # type: ignore[no-any-return]

    def _reflected(self, op: type, left: Expr, right: Expr, node: ast.expr, span: Span) -> Expr:
        """``scalar - array`` as ``-array + scalar``; a quotient by way of the reciprocal would round twice."""
        if op is ast.Sub:
            negated = self.call_surface(NAMESPACES["pl"]["neg"], (right,), {}, "pl.neg", node)
            return self.call_surface(NAMESPACES["pl"]["add"], (negated, left), {}, "pl.add", node)  # type: ignore[no-any-return]
        raise InvalidOperationError(
            "operator '/': a scalar can't be divided by a tensor or tile",
            span,
            hint="Use pl.recip(x), then multiply; or fill a tile with the scalar (pl.full) and divide",
        )

    def _unary(self, node: ast.UnaryOp) -> Any:
        kind = type(node.op)
        span = self.span(node)
        if kind is ast.Not:
            return scalars.not_(self._truth(node.operand), span)
        value = self.operand(node.operand)
        if kind is ast.USub:
            if not isinstance(value, Expr):
                return -value
            if isinstance(value.type, (TensorType, TileType)):
                return self.call_surface(NAMESPACES["pl"]["neg"], (value,), {}, "pl.neg", node)
            return self.negate(value, span)
        if kind is ast.UAdd:
            return value
        if not isinstance(value, Expr):
            value = self.number(value, span)
        return scalars.bit_not(value, span)

    def _compare(self, node: ast.Compare) -> Expr:
        if len(node.ops) != 1:
            self.fail("Only simple comparisons supported", node, "Write a < b and b < c")
        helper = _COMPARISONS.get(type(node.ops[0]))
        if helper is None:
            self.fail(f"Unsupported comparison: {type(node.ops[0]).__name__}", node, None, UnsupportedFeatureError)
        left, right = self.expr(node.left), self.expr(node.comparators[0])
        for side in (left, right):
            if isinstance(side.type, (TensorType, TileType)):
                raise InvalidOperationError(
                    f"a comparison needs scalars, got {side.type}: "
                    "Expression must be ScalarExpr or Var with ScalarType",
                    self.span(node),
                    hint="Compare element-wise with pl.cmp(a, b, cmp_type=...)",
                )
        return helper(left, right, self.span(node))

    def _boolop(self, node: ast.BoolOp) -> Expr:
        helper = scalars.and_ if type(node.op) is ast.And else scalars.or_
        span = self.span(node)
        result = self._truth(node.values[0])
        for value in node.values[1:]:
            result = helper(result, self._truth(value), span)
        return result

    def _truth(self, node: ast.expr) -> Expr:
        """An operand of ``and``, ``or``, ``not``; programs in use rely on others than BOOL ones."""
        value = self.expr(node)
        if value.type is not BOOL_TYPE:
            if type(value.type) is not ScalarType:
                raise InvalidOperationError(
                    f"and/or/not need scalars, got {value.type}: Expression must be ScalarExpr or Var with ScalarType",
                    self.span(node),
                )
            self.warn(f"operand of and/or/not is {value.type}, not a BOOL scalar: write a comparison", node)
        return value

    def _conditional(self, node: ast.IfExp) -> Any:
        static = self.static_condition(node.test)
        if static is not None:
            return self.operand(node.body if static else node.orelse)
        test = self.operand(node.test)
        known = test.value if isinstance(test, (ConstBool, ConstInt)) else test
        if isinstance(known, Expr):
            self.fail(
                "Unsupported expression type: IfExp",
                node,
                "A conditional expression needs a compile-time condition; write an if statement",
                UnsupportedFeatureError,
            )
        return self.operand(node.body if known else node.orelse)

    # --- tuples and attributes ----------------------------------------------------------------------------------------

    def _sequence(self, node: Any) -> Expr:
        return MakeTuple([self.expr(e) for e in node.elts], self.span(node))

    def _attribute(self, node: ast.Attribute) -> Any:
        parts = dotted(node)
        if parts is not None and self.scopes.lookup(parts[0]) is None:
            if len(parts) >= 3 and parts[-2] in ("Mem", "MemorySpace") and parts[-1] in MemorySpace.__members__:
                return ConstInt(MemorySpace[parts[-1]].value, DataType.INDEX, self.span(node))
            value = self.closure.attribute_chain(parts)
            if isinstance(value, (*_NUMBERS, Expr)) or getattr(value, "is_dynvar", False):
                return self.closure_value(value, node)
        handled = self.attribute_of_value(node, parts)
        if handled is not None:
            return handled
        self.fail(
            f"Standalone attribute access not supported: {ast.unparse(node)}",
            node,
            "Bind the value to a Python name first, or pass it as a whole argument of an operation",
            UnsupportedFeatureError,
        )

    def attribute_of_value(self, node: ast.Attribute, parts: tuple[str, ...] | None) -> Any:
        """An attribute of a DSL value (``buffer.base``); a jit specialisation adds ``x.shape`` and ``x.dtype``."""
        if parts is not None and len(parts) == 2:
            var = self.scopes.lookup(parts[0])
            metadata = self.buffers.get(var) if isinstance(var, Var) else None
            if metadata is not None and parts[1] in metadata.values:
                return metadata.values[parts[1]]
        return None

    # --- subscript reads ----------------------------------------------------------------------------------------------

    def _subscript(self, node: ast.Subscript) -> Any:
        if type(node.value) in (ast.Name, ast.Attribute):
            parts = dotted(node.value)
            if parts is not None and self.scopes.lookup(parts[0]) is None:
                value = self.closure.attribute_chain(parts)
                if isinstance(value, (list, tuple)):
                    index = self.operand(node.slice)
                    if type(index) is int and -len(value) <= index < len(value):
                        return self.closure_value(value[index], node)
        base = self.expr(node.value)
        kind = base.type
        if isinstance(kind, TupleType):
            return self._tuple_item(base, node)
        if isinstance(kind, ArrayType):
            return self.array_read(base, node)
        if isinstance(kind, TensorType):
            return self.tensor_read(base, node)
        if isinstance(kind, TileType):
            return self.tile_read(base, node)
        self.type_error(f"Subscript requires Tuple, Tensor, Tile, or Array type, got {kind}", node)

    def _tuple_item(self, base: Expr, node: ast.Subscript) -> Expr:
        index = node.slice
        if type(index) is not ast.Constant and type(index) is not ast.UnaryOp:
            folded = self.operand(index) if type(index) in (ast.Name, ast.BinOp, ast.Attribute) else None
            if type(folded) is not int:
                self.fail(
                    "Only constant integer indices supported for tuple access", node, None, UnsupportedFeatureError
                )
            position = folded
        else:
            value = index.value if type(index) is ast.Constant else self.operand(index)
            if type(value) is not int:
                self.fail("Tuple index must be an integer", node)
            position = value
        try:
            return TupleGetItemExpr(base, position, self.span(node))
        except ValueError as error:
            raise InvalidOperationError(str(error), self.span(node)) from error

    # --- supplied by the other parts ----------------------------------------------------------------------------------

    def static_condition(self, node: ast.expr) -> bool | None:
        raise NotImplementedError

    def call_surface(self, function: Any, args: Any, kwargs: Any, spelling: str, node: ast.expr) -> Any:
        raise NotImplementedError

    def array_read(self, base: Expr, node: ast.Subscript) -> Expr:
        raise NotImplementedError

    def tensor_read(self, base: Expr, node: ast.Subscript) -> Expr:
        raise NotImplementedError

    def tile_read(self, base: Expr, node: ast.Subscript) -> Expr:
        raise NotImplementedError

    def call(self, node: ast.Call) -> Expr:
        raise NotImplementedError


def is_finite_number(value: Any) -> bool:
    return isinstance(value, _NUMBERS) and math.isfinite(value)


_HANDLERS: dict[type, Callable[[Any, Any], Any]] = {
    ast.Name: Expressions._name,
    ast.Constant: Expressions._constant,
    ast.BinOp: Expressions._binop,
    ast.UnaryOp: Expressions._unary,
    ast.Compare: Expressions._compare,
    ast.BoolOp: Expressions._boolop,
    ast.IfExp: Expressions._conditional,
    ast.List: Expressions._sequence,
    ast.Tuple: Expressions._sequence,
    ast.Attribute: Expressions._attribute,
    ast.Subscript: Expressions._subscript,
    ast.Call: lambda self, node: self.call(node),
}

__all__ = ["ConstFloat", "Expressions", "is_finite_number"]
