"""``pl.TensorView(...)``, ``pl.TileView(...)`` and layouts in annotations."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any

from ..ir.dtype import DataType
from ..ir.enums import CompactMode, MemorySpace, PadValue, TensorLayout, TileLayout
from ..ir.expr import ConstInt, Expr, Var
from ..ir.type import ScalarType, TensorView, TileView, implicit_tile_view, normalize_extents
from .base import ParserBase
from .closure import MISSING, dotted

_TENSOR_FIELDS = ("valid_shape", "stride", "layout", "pad")
_TILE_FIELDS = ("valid_shape", "stride", "start_offset", "blayout", "slayout", "fractal", "pad", "compact")


class ViewAnnotations(ParserBase):
    """View syntax to view objects."""

    def tensor_view(self, node: ast.expr) -> TensorView:
        """The third slot of a tensor annotation: a layout, a view, or a name holding either."""
        if type(node) is ast.Call:
            parts = dotted(node.func)
            if parts is not None and parts[-1] == "TensorView":
                return self._tensor_view_call(node)
        if type(node) is ast.Name and node.id in TensorLayout.__members__:
            return self._bare_layout(TensorLayout[node.id], node)
        value = self.evaluate(node) if dotted(node) is None else self.closure.attribute_chain(dotted(node) or ())
        if isinstance(value, TensorView):
            return value
        layout = value if isinstance(value, TensorLayout) else self._layout_member(node)
        if layout is not None:
            return self._bare_layout(layout, node)
        if type(node) is ast.Name and value is not MISSING:
            self.type_error(f"Layout variable '{node.id}' must be a TensorLayout, got {type(value).__name__}", node)
        if dotted(node) is not None:
            self.type_error(f"Unknown layout: {ast.unparse(node)}", node, "Valid layouts here: pl.ND, pl.NZ")
        self.type_error(f"Cannot resolve layout: {ast.unparse(node)}", node)

    def _layout_member(self, node: ast.expr) -> TensorLayout | None:
        parts = dotted(node)
        return TensorLayout.__members__.get(parts[-1]) if parts is not None else None

    def _bare_layout(self, layout: TensorLayout, node: ast.expr) -> TensorView:
        if layout is TensorLayout.DN:
            self.type_error(
                f"pl.Tensor[..., pl.DN] is not supported (written as {ast.unparse(node)})",
                node,
                "Leave the marker out; use pl.transpose(x, -2, -1) where the tensor is used; or inherit the layout "
                "through slice/reshape. An explicit stride is pl.TensorView(stride=[...], layout=pl.TensorLayout.DN)",
            )
        return TensorView(layout=layout)

    def _tensor_view_call(self, node: ast.Call) -> TensorView:
        fields = self._view_fields(node, "TensorView", _TENSOR_FIELDS)
        values: dict[str, Any] = {"layout": TensorLayout.ND}
        for name, value in fields.items():
            if name in ("valid_shape", "stride"):
                values[name] = self._index_list(value, name)
            elif name == "layout":
                values[name] = self._member(value, TensorLayout, "layout")
            else:
                values[name] = self._member(value, PadValue, "PadValue")
        return TensorView(
            values.get("stride"), values["layout"], values.get("valid_shape"), values.get("pad", PadValue.null)
        )

    def tile_view(self, node: ast.Call, shape: Sequence[Any], space: MemorySpace | None) -> TileView:
        """A tile view; omitted fields take the implicit view of shape and space."""
        fields = self._view_fields(node, "TileView", _TILE_FIELDS)
        view = implicit_tile_view(normalize_extents(shape), space)
        values: dict[str, Any] = {"valid_shape": list(shape)}
        for name, value in fields.items():
            if name in ("valid_shape", "stride"):
                values[name] = self._index_list(value, name)
            elif name == "start_offset":
                values[name] = self.index_expression(value, "TileView field")
            elif name in ("blayout", "slayout"):
                values[name] = self._member(value, TileLayout, "TileLayout")
            elif name == "fractal":
                number = value.value if type(value) is ast.Constant else self.evaluate(value)
                if type(number) is not int:
                    self.type_error("TileView fractal must be an integer", value)
                values[name] = number
            elif name == "pad":
                values[name] = self._member(value, PadValue, "PadValue")
            else:
                values[name] = self._member(value, CompactMode, "CompactMode")
        return view.replace(**values)

    def _view_fields(self, node: ast.Call, what: str, known: Sequence[str]) -> dict[str, ast.expr]:
        if node.args:
            self.type_error(f"pl.{what}(...) does not accept positional arguments", node.args[0])
        fields: dict[str, ast.expr] = {}
        for keyword in node.keywords:
            if keyword.arg is None or keyword.arg not in known:
                self.type_error(f"Unknown {what} keyword argument: {keyword.arg}", node, f"Valid: {', '.join(known)}")
            fields[keyword.arg] = keyword.value
        return fields

    def _index_list(self, node: ast.expr, name: str) -> list[Any]:
        if type(node) not in (ast.List, ast.Tuple):
            self.type_error(f"Expected a list for {name}", node)
        return [self.index_expression(e, "TileView field") for e in node.elts]  # type: ignore[attr-defined]

    def index_expression(self, node: ast.expr, what: str) -> Any:
        """An int or an integer scalar; an unknown name becomes a symbol of its own (printed dynamic extents)."""
        for inner in ast.walk(node):
            if type(inner) is ast.Call and (dotted(inner.func) or ("",))[-1] == "yield_":
                self.type_error(f"{what} cannot contain pl.yield_()", node)
        if type(node) is ast.Constant and type(node.value) is int:
            return node.value
        if type(node) is ast.Name and self.scopes.lookup(node.id) is None:
            value = self.closure.get(node.id)
            if value is MISSING:
                found = self.context.dynamic.get(node.id)
                if found is None:
                    found = self.context.dynamic[node.id] = Var(node.id, ScalarType(DataType.INDEX), self.span(node))
                return found
            if isinstance(value, int) and not isinstance(value, bool):
                return value
            if getattr(value, "is_dynvar", False):
                return self.context.dynamic_var(value)
        expr = self.expr(node)
        if not (isinstance(expr.type, ScalarType) and expr.type.dtype.is_int_):
            self.type_error(f"{what} must be an index expression, got {expr.type}", node)
        return expr.value if type(expr) is ConstInt and expr.dtype is DataType.INDEX else expr

    def _member(self, node: ast.expr, enum: Any, what: str) -> Any:
        parts = dotted(node)
        if parts is not None:
            found = enum.__members__.get(parts[-1])
            if found is not None:
                return found
            value = self.closure.attribute_chain(parts)
            if isinstance(value, enum):
                return value
        self.type_error(f"Unknown {what} value: {ast.unparse(node)}", node, f"Valid: {', '.join(enum.__members__)}")

    def expr(self, node: ast.expr) -> Expr:
        raise NotImplementedError  # the expression part of the parser, mixed in behind this class
