"""What a specialisation knows without running: shapes and element types of values, surrounding constants."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from typing import Any

from ..frontend.closure import BINARY, MISSING, Closure, dotted
from ..frontend.function_parser import FunctionParser
from ..ir.dtype import DataType
from ..ir.expr import ConstInt, Expr, MakeTuple, Var
from ..ir.type import ScalarType, ShapedType, TensorType, TileType, Type
from ..language.typing import DynVar, Scalar, Tensor
from ..ops.surface import NAMESPACES

SHAPED = (TensorType, TileType)
_COMPARE: dict[type, Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Is: operator.is_,
    ast.IsNot: operator.is_not,
    ast.In: lambda a, b: a in b,
    ast.NotIn: lambda a, b: a not in b,
}
_UNARY: dict[type, Callable[[Any], Any]] = {
    ast.Not: operator.not_,
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
    ast.Invert: operator.invert,
}
_CALLABLE = (len, min, max, abs, sum, round, int, float, bool, isinstance)


class JitClosure(Closure):
    """The surrounding names of a specialised function, under what is constant in this specialisation."""

    __slots__ = ("constants", "is_local")

    def __init__(self, globals_: Any, locals_: Any, constants: dict[str, Any], is_local: Callable[[str], bool]) -> None:
        super().__init__(globals_, locals_)
        self.constants = constants
        self.is_local = is_local

    def get(self, name: str) -> Any:
        value = self.constants.get(name, MISSING)
        if value is MISSING:
            value = super().get(name)
            # A name that the function assigns is never a constant of the surrounding code.
            if value is not MISSING and self.is_local(name) and not callable(value):
                return MISSING
        return value


class StaticReads(FunctionParser):
    """Reads of shapes and constants in expressions and conditions."""

    anchors: dict[Var, tuple[Var, int]]

    # --- shapes and element types of values ---------------------------------------------------------------------------

    def expr(self, node: ast.expr) -> Expr:
        if type(node) in (ast.Attribute, ast.Subscript, ast.Call):
            value = self.shape_read(node)
            if value is not MISSING:
                return self._as_value(value, node)
        return super().expr(node)

    def operand(self, node: ast.expr) -> Any:
        if type(node) in (ast.Attribute, ast.Subscript, ast.Call):
            value = self.shape_read(node)
            if value is not MISSING:
                return value if type(value) in (int, float, bool) else self._as_value(value, node)
        return super().operand(node)

    def _as_value(self, value: Any, node: ast.expr) -> Expr:
        span = self.span(node)
        if isinstance(value, Expr):
            return value
        if isinstance(value, tuple):
            return MakeTuple([v if isinstance(v, Expr) else self.number(v, span) for v in value], span)
        if isinstance(value, DataType):
            self.type_error(
                f"{ast.unparse(node)} is an element type: it can only stand where one is expected",
                node,
                "dtype=x.dtype",
            )
        return self.number(value, span)

    def shape_read(self, node: ast.expr) -> Any:
        """``x.shape``, ``x.shape[i]``, ``len(x.shape)``, ``x.ndim``, ``x.dtype`` of a DSL value; MISSING for the rest.

        A static extent is an int, a dynamic one an expression.
        """
        kind = type(node)
        if kind is ast.Attribute:
            return self._attribute_read(node)  # type: ignore[arg-type]
        if kind is ast.Subscript and type(node.value) is ast.Attribute and node.value.attr == "shape":  # type: ignore[attr-defined]
            shape = self._attribute_read(node.value)  # type: ignore[attr-defined]
            if shape is MISSING:
                return MISSING
            index = self._static_index(node.slice)  # type: ignore[attr-defined]
            try:
                return shape[index]
            except IndexError:
                self.type_error(f"{ast.unparse(node)}: the rank is {len(shape)}", node)
        if kind is ast.Call and type(node.func) is ast.Name and node.func.id == "len" and len(node.args) == 1:  # type: ignore[attr-defined]
            argument = node.args[0]  # type: ignore[attr-defined]
            if type(argument) is ast.Attribute and argument.attr == "shape":
                shape = self._attribute_read(argument)
                return MISSING if shape is MISSING else len(shape)
        return MISSING

    def _attribute_read(self, node: ast.Attribute) -> Any:
        if node.attr not in ("shape", "dtype", "ndim") or type(node.value) is not ast.Name:
            return MISSING
        value = self.scopes.lookup(node.value.id)
        if not isinstance(value, Expr):
            return MISSING
        kind = value.type
        if node.attr == "dtype" and isinstance(kind, (ShapedType, ScalarType)):
            return kind.dtype
        if not isinstance(kind, SHAPED):
            return MISSING
        if node.attr == "ndim":
            return len(kind.shape)
        return tuple(self._extent_read(value, dim, extent, node) for dim, extent in enumerate(kind.shape))

    def _extent_read(self, value: Expr, dim: int, extent: Expr, node: ast.expr) -> Any:
        if type(extent) is ConstInt:
            return extent.value
        if isinstance(extent, Var) and extent in self.anchors:
            if any(value is param for param in self._params):
                return self._dim_read(value, dim, node)
            return self._dim_read(*self.anchors[extent], node)
        return extent

    def _static_index(self, node: ast.expr) -> Any:
        if type(node) is ast.Slice:
            return slice(*(None if p is None else self._static_index(p) for p in (node.lower, node.upper, node.step)))
        value = self.static_value(node)
        if type(value) is not int:
            self.type_error("an index into a shape must be known at compile time", node)
        return value

    def attribute_argument(self, node: ast.expr) -> Any:
        value = self.shape_read(node)
        if value is MISSING:
            return super().attribute_argument(node)
        return [self._as_value(v, node) for v in value] if isinstance(value, tuple) else value

    def dtype(self, node: ast.expr) -> DataType:
        if type(node) is ast.Attribute:
            value = self.shape_read(node)
            if isinstance(value, DataType):
                return value
        return super().dtype(node)

    def _type_from_value(self, value: Any) -> Type | None:
        """A Python name for an annotation: ``Rows = pl.Tensor[[16, 64], pl.FP32]``."""
        if (
            isinstance(value, Scalar)
            and value._expr is None
            and value.dtype is not None
            and not isinstance(value, DynVar)
        ):
            return ScalarType(value.dtype)
        if isinstance(value, Tensor) and value.shape is not None and value.dtype is not None:
            extents = [self.context.dynamic_var(e) if isinstance(e, DynVar) else e for e in value.shape]
            if all(isinstance(e, (int, Expr)) for e in extents) and value.layout is None:
                return TensorType(extents, value.dtype)
        return super()._type_from_value(value)

    # --- what is known without running --------------------------------------------------------------------------------

    def static_condition(self, node: ast.expr) -> bool | None:
        value = self.static_value(node)
        return None if value is MISSING else bool(value)

    def static_value(self, node: ast.expr) -> Any:
        """The Python value of an expression over constants, or MISSING when it depends on run time."""
        try:
            return self._static(node)
        except _NotStatic:
            return MISSING
        except (ArithmeticError, LookupError, TypeError, ValueError) as error:
            self.type_error(f"Failed to evaluate expression: {error}", node)

    def _static(self, node: ast.expr) -> Any:
        kind = type(node)
        if kind is ast.Constant:
            return node.value  # type: ignore[attr-defined]
        if kind is ast.Name:
            if self.scopes.lookup(node.id) is not None:  # type: ignore[attr-defined]
                raise _NotStatic
            return _known(self.closure.get(node.id))  # type: ignore[attr-defined]
        if kind in (ast.Attribute, ast.Subscript, ast.Call):
            value = self.shape_read(node)
            if value is not MISSING:
                return _known(value)
            return self._static_access(node)
        if kind is ast.UnaryOp:
            return _UNARY[type(node.op)](self._static(node.operand))  # type: ignore[attr-defined]
        if kind is ast.BinOp and type(node.op) in BINARY:  # type: ignore[attr-defined]
            return BINARY[type(node.op)](self._static(node.left), self._static(node.right))  # type: ignore[attr-defined]
        if kind is ast.BoolOp:
            return self._static_boolop(node)  # type: ignore[arg-type]
        if kind is ast.Compare:
            left = self._static(node.left)  # type: ignore[attr-defined]
            for op, right_node in zip(node.ops, node.comparators, strict=True):  # type: ignore[attr-defined]
                right = self._static(right_node)
                if not _COMPARE[type(op)](left, right):
                    return False
                left = right
            return True
        if kind is ast.IfExp:
            return self._static(node.body if self._static(node.test) else node.orelse)  # type: ignore[attr-defined]
        if kind in (ast.Tuple, ast.List):
            return (tuple if kind is ast.Tuple else list)(self._static(e) for e in node.elts)  # type: ignore[attr-defined]
        raise _NotStatic

    def _static_boolop(self, node: ast.BoolOp) -> Any:
        """Python's ``and``/``or``; one operand may decide although the others are known at run time only."""
        stop = type(node.op) is ast.Or
        unknown = False
        value: Any = not stop
        for operand in node.values:
            try:
                value = self._static(operand)
            except _NotStatic:
                unknown = True
                continue
            if bool(value) is stop:
                return value
        if unknown:
            raise _NotStatic
        return value

    def _static_access(self, node: ast.expr) -> Any:
        if type(node) is ast.Attribute:
            parts = dotted(node)
            if parts is None or self.scopes.lookup(parts[0]) is not None:
                raise _NotStatic
            return _known(self.closure.attribute_chain(parts))
        if type(node) is ast.Subscript:
            index = node.slice
            if type(index) is ast.Slice:
                raise _NotStatic
            return _known(self._static(node.value)[self._static(index)])
        assert type(node) is ast.Call
        function = self._static(node.func) if type(node.func) is ast.Name else None
        if not any(function is known for known in _CALLABLE) or node.keywords:
            raise _NotStatic
        return _known(function(*[self._static(a) for a in node.args]))  # type: ignore[misc]

    def _dim_read(self, tensor: Expr, dim: int, node: ast.expr) -> Expr:
        folded = self.fold_dim("pl.tensor.dim", [tensor, dim], {})
        if folded is not None:
            return folded
        return self.call_surface(NAMESPACES["tensor"]["dim"], (tensor, dim), {}, "pl.tensor.dim", node)  # type: ignore[no-any-return]


class _NotStatic(Exception):
    """An expression depends on run time."""


def _known(value: Any) -> Any:
    if value is MISSING or isinstance(value, Expr) or getattr(value, "is_dynvar", False):
        raise _NotStatic
    if hasattr(value, "_expr"):
        raise _NotStatic
    if isinstance(value, tuple) and any(isinstance(v, Expr) for v in value):
        raise _NotStatic
    return value


__all__ = ["SHAPED", "JitClosure", "StaticReads"]
