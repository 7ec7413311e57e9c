"""Type annotations: parameters, results and local variables."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Sequence
from typing import Any

from ..ir import scalar as scalars
from ..ir.dtype import BY_NAME, DataType
from ..ir.enums import Level, MemorySpace, ParamDirection, TensorLayout
from ..ir.expr import Add, ConstInt, Expr, FloorDiv, FloorMod, Mul, Sub, Var
from ..ir.substitution import substitute_expr
from ..ir.type import (
    ArrayType,
    AsyncEventType,
    AsyncSessionType,
    CommCtxType,
    DistributedTensorType,
    MemRefType,
    PrefetchAsyncContextType,
    PtrType,
    ScalarType,
    TensorType,
    TensorView,
    TileType,
    TupleType,
    Type,
    UnknownType,
    WindowBufferType,
)
from .closure import BINARY, MISSING, dotted
from .memrefs import MemRefAnnotations
from .views import ViewAnnotations

_MARKERS: dict[str, type] = {
    "PrefetchAsyncContext": PrefetchAsyncContextType,
    "AsyncEvent": AsyncEventType,
    "AsyncSession": AsyncSessionType,
    "CommCtx": CommCtxType,
    "PrefetchAsyncContextType": PrefetchAsyncContextType,
    "AsyncEventType": AsyncEventType,
    "AsyncSessionType": AsyncSessionType,
    "CommCtxType": CommCtxType,
}
# Local annotations that say nothing about the value, or that only passes and dumps write.
_IGNORED_LOCAL = ("UnknownType", "Ptr", "PtrType", "MemRefType", "WindowBufferType", "CommCtxType")
_SHAPED = ("Tensor", "Tile", "DistributedTensor")

_SHAPE_BINARY = {ast.Add: Add, ast.Sub: Sub, ast.Mult: Mul, ast.FloorDiv: FloorDiv, ast.Mod: FloorMod}


class Annotations(ViewAnnotations, MemRefAnnotations):
    """Resolves annotation syntax to IR types."""

    # --- types --------------------------------------------------------------------------------------------------------

    def parameter_type(self, node: ast.expr) -> tuple[Type, ParamDirection]:
        """Type and direction of a parameter annotation."""
        node = self._unquote(node)
        direction = ParamDirection.In
        if type(node) is ast.Subscript:
            head = dotted(node.value)
            if head is not None and head[-1] in ("Out", "InOut"):
                direction = ParamDirection[head[-1]]
                node = self._unquote(node.slice)
        kind = self.annotation(node)
        if isinstance(kind, TupleType):
            self.type_error("Parameter type cannot be a tuple", node)
        if direction is ParamDirection.InOut and isinstance(kind, ScalarType):
            self.type_error("Scalar parameters cannot have InOut direction", node)
        return kind, direction

    def return_types(self, node: ast.expr | None) -> list[Type]:
        """Result types of a return annotation: one per element of a builtin ``tuple[...]``."""
        if node is None:
            return []
        node = self._unquote(node)
        if type(node) is ast.Constant and node.value is None:
            return []
        if type(node) is ast.Subscript and dotted(node.value) == ("tuple",):
            items = node.slice.elts if type(node.slice) is ast.Tuple else [node.slice]
            for item in items:
                head = dotted(item.value) if type(item) is ast.Subscript else None
                if head is not None and head[-1] in ("tuple", "Tuple"):
                    self.type_error("Nested tuple types are not supported", item)
            return [self.annotation(item) for item in items]
        return [self.annotation(node)]

    def local_annotation(self, node: ast.expr) -> Type | None:
        """Type of a local variable's annotation; None for one that says nothing."""
        if type(node) is ast.Constant and isinstance(node.value, str):
            return None
        head = dotted(node)
        if head is not None and head[-1] in _IGNORED_LOCAL:
            return None
        return self.annotation(node)

    def annotation(self, node: ast.expr) -> Type:
        """The type of an annotation in any position."""
        node = self._unquote(node)
        if type(node) is ast.Subscript:
            return self._subscripted(node)
        if type(node) is ast.Call:
            return self._constructor(node)
        head = dotted(node)
        if head is not None:
            name = head[-1]
            if name in _MARKERS:
                return _MARKERS[name]()  # type: ignore[no-any-return]
            if name in ("Ptr", "PtrType"):
                return PtrType()  # type: ignore[no-any-return]
            if name == "TaskId":
                return ScalarType(DataType.TASK_ID)
            if name == "MemRefType":
                return MemRefType()  # type: ignore[no-any-return]
            if name == "WindowBufferType":
                return WindowBufferType()  # type: ignore[no-any-return]
            if name == "UnknownType":
                return UnknownType()  # type: ignore[no-any-return]
            if name in (*_SHAPED, "Scalar", "Array", "Tuple"):
                self.type_error(
                    f"Incomplete type annotation: pl.{name} needs its parameters",
                    node,
                    f"Write pl.{name}[[64, 128], pl.FP32]" if name in _SHAPED else f"Write pl.{name}[...]",
                )
            value = self.closure.attribute_chain(head)
            from_value = self._type_from_value(value)
            if from_value is not None:
                return from_value
        self.type_error(
            f"Unsupported type annotation: {ast.unparse(node)}",
            node,
            "Use pl.Tensor[[...], dtype], pl.Tile[[...], dtype], pl.Scalar[dtype] or pl.Tuple[...]",
        )

    def _type_from_value(self, value: Any) -> Type | None:
        """A type alias: an annotation object or an IR type bound to a Python name."""
        if isinstance(value, Type):
            return value
        if isinstance(value, DataType):
            return ScalarType(value)
        return None

    def _unquote(self, node: ast.expr) -> ast.expr:
        if type(node) is ast.Constant and isinstance(node.value, str):
            try:
                parsed = ast.parse(node.value, mode="eval").body
            except SyntaxError as error:
                self.type_error(f"Unsupported type annotation: {node.value!r} ({error.msg})", node)
            for inner in ast.walk(parsed):
                ast.copy_location(inner, node)
            return parsed
        return node

    def _subscripted(self, node: ast.Subscript) -> Type:
        head = dotted(node.value)
        name = head[-1] if head is not None else ""
        items = list(node.slice.elts) if type(node.slice) is ast.Tuple else [node.slice]
        if name == "Scalar":
            if len(items) != 1:
                self.type_error("Scalar subscript requires [dtype]", node)
            return ScalarType(self.dtype(items[0]))
        if name in ("Tensor", "DistributedTensor"):
            return self._tensor(name, items, node)
        if name == "Tile":
            return self._tile(items, node)
        if name == "Array":
            if len(items) != 2:
                self.type_error("Array subscript requires [extent, dtype]", node)
            return ArrayType(self.dtype(items[1]), self._array_extent(items[0]))
        if name in ("Tuple", "tuple"):
            if len(items) == 1 and type(items[0]) is ast.Tuple and not items[0].elts:
                return TupleType([])
            if type(node.slice) is ast.Tuple and not items:
                return TupleType([])
            return self._tuple(items, node)
        if name in ("Out", "InOut"):
            self.type_error(f"pl.{name}[...] is a parameter direction: it can't stand here", node)
        self.type_error(f"Unknown type in subscript: {ast.unparse(node.value)}", node)

    def _constructor(self, node: ast.Call) -> Type:
        """Legacy call forms ``pl.Tensor(shape, dtype)`` ..."""
        head = dotted(node.func)
        name = head[-1] if head is not None else ""
        items = list(node.args)
        if name == "Scalar" and len(items) == 1:
            return ScalarType(self.dtype(items[0]))
        if name in ("Tensor", "DistributedTensor"):
            return self._tensor(name, items, node)
        if name == "Tile":
            return self._tile(items, node)
        if name == "Tuple":
            if len(items) != 1 or type(items[0]) not in (ast.List, ast.Tuple):
                self.type_error("Tuple type requires a list of types", node)
            return self._tuple(items[0].elts, node)  # type: ignore[attr-defined]
        self.type_error(f"Unknown type constructor: {ast.unparse(node.func)}", node)

    def _tuple(self, items: Sequence[ast.expr], node: ast.expr) -> TupleType:
        types = []
        for item in items:
            kind = self.annotation(item)
            if isinstance(kind, TupleType):
                self.type_error("Nested tuple types are not supported", item)
            types.append(kind)
        return TupleType(types)

    def _array_extent(self, node: ast.expr) -> int:
        value = node.value if type(node) is ast.Constant else self.evaluate(node)
        if type(value) is not int:
            self.type_error("Array extent must be an int literal or a compile-time int", node)
        return value

    def _tensor(self, name: str, items: list[ast.expr], node: ast.expr) -> TensorType:
        if (
            name == "DistributedTensor"
            and items
            and type(items[-1]) is ast.Constant
            and isinstance(items[-1].value, str)
        ):
            items = items[:-1]  # a debug dump's "window_buffer=..." element
        if not 2 <= len(items) <= 4:
            self.type_error(f"{name} subscript requires [shape, dtype], [shape, dtype, layout or view] ...", node)
        cls = DistributedTensorType if name == "DistributedTensor" else TensorType
        shape = self.shape(items[0])
        dtype = self.dtype(items[1])
        view: TensorView | None = None
        memref: Any = None
        if len(items) >= 3:
            if self.is_memref(items[2]):
                memref = self.memref(items[2])
                if len(items) == 4:
                    self.type_error(f"{name} subscript: nothing may follow pl.MemRef(...)", items[3])
            else:
                view = self.tensor_view(items[2])
        if len(items) == 4:
            if not self.is_memref(items[3]):
                self.type_error(f"{name} annotation: the 4th argument must be pl.MemRef(...)", items[3])
            memref = self.memref(items[3])
        return cls(shape, dtype, memref, view)

    def _tile(self, items: list[ast.expr], node: ast.expr) -> TileType:
        if not 2 <= len(items) <= 5:
            self.type_error("Tile subscript requires [shape, dtype], optionally memref, memory space, view", node)
        shape = self.shape(items[0])
        dtype = self.dtype(items[1])
        memref: Any = None
        space: MemorySpace | None = None
        view_node: ast.expr | None = None
        for item in items[2:]:
            head = dotted(item.func) if type(item) is ast.Call else None
            if self.is_memref(item):
                if memref is not None:
                    self.type_error("Tile annotation takes at most one memref argument", item)
                memref = self.memref(item)
            elif head is not None and head[-1] == "TileView":
                if view_node is not None:
                    self.type_error("Tile annotation takes at most one pl.TileView(...)", item)
                view_node = item
            elif (found := self._memory_space(item)) is not None:
                if space is not None:
                    self.type_error("Tile annotation takes at most one memory-space argument", item)
                space = found
            else:
                self._refuse_tile_extra(item)
        if memref is not None and space is None:
            self.type_error("Tile annotation with a memref must also specify explicit memory space", node)
        view = self.tile_view(view_node, shape, space) if view_node is not None else None  # type: ignore[arg-type]
        return TileType(shape, dtype, memref, view, space)

    def _refuse_tile_extra(self, item: ast.expr) -> None:
        parts = dotted(item)
        if parts is not None and (parts[-1] in TensorLayout.__members__ or "TensorLayout" in parts):
            self.type_error(f"Tile does not accept layouts like pl.{parts[-1]}", item, "Use pl.TileView(blayout=...)")
        if parts is not None and len(parts) > 1 and parts[-2] in ("Mem", "MemorySpace"):
            self.type_error(f"Unknown memory space: {parts[-1]}", item)
        self.type_error(f"Unsupported Tile annotation argument: {ast.unparse(item)}", item)

    def _memory_space(self, node: ast.expr) -> MemorySpace | None:
        parts = dotted(node)
        if parts is None:
            return None
        if len(parts) > 1 and parts[-2] in ("Mem", "MemorySpace"):
            return MemorySpace.__members__.get(parts[-1])
        value = self.closure.attribute_chain(parts)
        return value if isinstance(value, MemorySpace) else None

    # --- dtypes and layouts -------------------------------------------------------------------------------------------

    def dtype(self, node: ast.expr) -> DataType:
        """An element type in an annotation or a ``dtype=`` keyword."""
        parts = dotted(node)
        if parts is not None:
            if len(parts) == 1:
                value = self.closure.get(parts[0])
                if isinstance(value, DataType):
                    return value
                if parts[0] in BY_NAME:
                    return BY_NAME[parts[0]]
                if value is not MISSING:
                    self.type_error(f"Dtype variable '{parts[0]}' must be a DataType, got {type(value).__name__}", node)
                self.type_error(f"Unknown dtype: {parts[0]}", node, _dtype_hint(parts[0]))
            if parts[-1] in BY_NAME:
                return BY_NAME[parts[-1]]
            value = self.closure.attribute_chain(parts)
            if isinstance(value, DataType):
                return value
            if parts[-2] == "DataType":
                self.type_error(f"Unknown DataType: {parts[-1]}", node, _dtype_hint(parts[-1]))
            self.type_error(f"Unknown dtype: {parts[-1]}", node, _dtype_hint(parts[-1]))
        value = self.evaluate(node)
        if isinstance(value, DataType):
            return value
        self.type_error(f"Cannot resolve dtype: {ast.unparse(node)}", node)

    # --- shapes -------------------------------------------------------------------------------------------------------

    def shape(self, node: ast.expr) -> list[Any]:
        """The extents of a shape annotation; all-int shapes stay ints (the types make constants of them)."""
        if type(node) in (ast.List, ast.Tuple):
            return [self.dimension(e) for e in node.elts]  # type: ignore[attr-defined]
        value = self.closure.get(node.id) if type(node) is ast.Name else self.evaluate(node)
        if type(node) is ast.Name and value is MISSING:
            self.type_error(f"Unknown shape variable: {node.id}", node)
        if value is MISSING:
            self.type_error("Shape must be a list, tuple, or variable holding one", node)
        if not isinstance(value, (list, tuple)):
            what = f"Shape variable '{node.id}'" if type(node) is ast.Name else "Shape"
            self.type_error(f"{what} must be a list or tuple, got {type(value).__name__}", node)
        return [
            self.dimension_value(v, node, f"Shape element {i} must be int or pl.dynamic(), got")
            for i, v in enumerate(value)
        ]

    def dimension(self, node: ast.expr) -> Any:
        """One extent: an int or an expression."""
        if type(node) is ast.Constant and type(node.value) is int:
            return node.value
        if type(node) is ast.Name:
            value = self.closure.get(node.id)
            bound = self.scopes.lookup(node.id)
            if value is not MISSING and not callable_builtin(value):
                found = self.dimension_value(
                    value, node, f"Shape variable '{node.id}' must be int or pl.dynamic(), got"
                )
                if isinstance(bound, Expr) and found is not bound:
                    self._warn_of_two_meanings(node, found, bound)
                return found
            if isinstance(bound, Expr):
                return bound
            self.type_error(
                f"Unknown shape variable: {node.id}",
                node,
                f'Declare it outside the function: {node.id} = pl.dynamic("{node.id}"), or as an int',
            )
        if not any(_is_const_call(inner) for inner in ast.walk(node)):
            value = self.evaluate(node)
            if value is not MISSING:
                return self.dimension_value(value, node, "Shape dimension must be int or pl.dynamic(), got")
        rebuilt = self._rebuild_dimension(node)
        if rebuilt is None:
            self.type_error("Shape dimension must be int literal, variable, or evaluable expression", node)
        return rebuilt

    def dimension_value(self, value: Any, node: ast.expr, complaint: str) -> Any:
        """A Python value used as an extent."""
        if isinstance(value, int) and not isinstance(value, bool):
            return int(value)
        if getattr(value, "is_dynvar", False):
            symbol = self.context.dynamic_var(value)
            return self.symbol_params.get(symbol, symbol)  # a scalar parameter of the same name *is* the symbol
        expr = getattr(value, "_expr", value)
        if isinstance(expr, Expr):
            if not (isinstance(expr.type, ScalarType) and expr.type.dtype.is_int_):
                self.type_error(f"Shape dimension must be integer-typed, got {expr.type}", node)
            return substitute_expr(expr, list(self.symbol_params.items())) if self.symbol_params else expr
        if hasattr(value, "__index__") and not isinstance(value, bool):
            return value.__index__()
        self.type_error(f"{complaint} {type(value).__name__}", node)

    def _warn_of_two_meanings(self, node: ast.Name, found: Any, bound: Expr) -> None:
        """A name that means one thing in annotations (the surrounding code first) and another one in the body."""
        if not (type(bound) is ConstInt and isinstance(found, int) and found == bound.value):
            span = self.span(node)
            warnings.warn_explicit(
                f"shape name '{node.id}' means {found} of the surrounding code here, but the body has a variable of "
                "that name: rename one of them",
                UserWarning,
                span.filename,
                span.begin_line,
            )

    def _rebuild_dimension(self, node: ast.expr) -> Expr | None:
        """An extent over DSL variables and typed constants, without folding, so that a printed shape keeps its form."""
        kind = type(node)
        if kind is ast.BinOp and type(node.op) in _SHAPE_BINARY:  # type: ignore[attr-defined]
            left, right = self._rebuild_dimension(node.left), self._rebuild_dimension(node.right)  # type: ignore[attr-defined]
            if left is None or right is None:
                return None
            a, b, dtype = scalars.promote(left, right, "shape")
            return _SHAPE_BINARY[type(node.op)](a, b, dtype, self.span(node))  # type: ignore[attr-defined]
        if kind is ast.Constant and type(node.value) is int:  # type: ignore[attr-defined]
            return ConstInt(node.value, DataType.INDEX, self.span(node))  # type: ignore[attr-defined]
        if kind is ast.Name:
            value = self.dimension(node)
            return ConstInt(value, DataType.INDEX, self.span(node)) if isinstance(value, int) else value
        if kind is ast.Call:
            return self.expr(node)
        value = self.evaluate(node)
        if type(value) is int:
            return ConstInt(value, DataType.INDEX, self.span(node))
        return None

    # --- parts that only signatures use -------------------------------------------------------------------------------

    symbol_params: dict[Var, Var]


def _is_const_call(node: ast.AST) -> bool:
    if type(node) is not ast.Call:
        return False
    parts = dotted(node.func)
    return parts is not None and parts[-1] in ("const", "min", "max", "cast")


def callable_builtin(value: Any) -> bool:
    """Whether a value is a builtin that a DSL name may shadow (``len``, ``sum`` ...)."""
    return callable(value) and not hasattr(value, "is_dynvar")


def _dtype_hint(name: str) -> str:
    from .errors import did_you_mean

    if name == "FP8":
        return "There is no plain FP8: use pl.FP8E4M3FN or pl.FP8E5M2"
    return did_you_mean(name, BY_NAME) or f"Valid dtypes: {', '.join(BY_NAME)}"


__all__ = ["BINARY", "Annotations", "Level"]
