"""TypeChecked: types agree where control flow joins, views lie inside shapes, conditions are Boolean.

Compared with each carry are its initial value, what the body yields and the return variable; with each result of an
``if`` what the branches yield. So a carry that is typed by a narrower seed than the body yields is found. A yield at
the end of a runtime scope or of a vector-split region is that of the body around. Linear in the statements.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..analysis.equal_extents import EqualExtents
from ..arith.prove import prove_ge0, prove_lt
from ..ir.dtype import DataType
from ..ir.enums import PadValue
from ..ir.expr import ConstInt
from ..ir.program import Function
from ..ir.stmt import AssignStmt, ForStmt, IfStmt, WhileStmt
from ..ir.tree import get_last_yield_stmt
from ..ir.type import (
    BOOL_TYPE,
    INDEX_TYPE,
    ArrayType,
    DistributedTensorType,
    ScalarType,
    ShapedType,
    TensorType,
    TileType,
    TupleType,
    Type,
    UnknownType,
)
from .codes import TypeCheckErrorType as Code
from .inventory import inventory
from .properties import IRProperty
from .registry import Findings, verifies

# A code and what is different.
_Difference = tuple[Code, str]


class _TypeCheck:
    def __init__(self, function: Function, findings: Findings) -> None:
        self._function = function
        self._findings = findings
        self._extents = EqualExtents(function)

    def run(self) -> None:
        placed = inventory(self._function)
        for param in self._function.params:
            self._view(param, self._function)
        for stmt, _ in placed.placed:
            if type(stmt) is AssignStmt:
                kind: Any = stmt.var.type
                cls = type(kind)
                # Most types have no view, and most views no valid shape.
                if (cls is TileType and kind.tile_view is not None) or (
                    (cls is TensorType or cls is DistributedTensorType) and kind.tensor_view is not None
                ):
                    self._view(stmt.var, stmt)
        for stmt, _ in placed.of(IfStmt):
            self._if(stmt)
        for stmt, _ in placed.of(ForStmt):
            self._bound(stmt.start, "start", stmt)
            self._bound(stmt.stop, "stop", stmt)
            self._bound(stmt.step, "step", stmt)
            self._loop(stmt)
        for stmt, _ in placed.of(WhileStmt):
            self._condition(stmt, "while")
            self._loop(stmt)

    def _error(self, code: Code, message: str, where: Any) -> None:
        self._findings.error(code, f"{message}, in function '{self._function.name}'", where.span)

    # --- statements ---------------------------------------------------------------------------------------------------

    def _condition(self, stmt: Any, word: str) -> None:
        kind = stmt.condition.type
        if kind is BOOL_TYPE:
            return
        if not isinstance(kind, ScalarType):
            self._error(
                Code.IF_CONDITION_MUST_BE_SCALAR, f"the condition of '{word}' must be a scalar, got {kind}", stmt
            )
        elif kind.dtype is not DataType.BOOL:
            self._error(Code.CONDITION_MUST_BE_BOOL, f"the condition of '{word}' must be BOOL, got {kind.dtype}", stmt)

    def _bound(self, bound: Any, name: str, stmt: Any) -> None:
        kind = bound.type
        if kind is not INDEX_TYPE and not (isinstance(kind, ScalarType) and kind.dtype.is_int_):
            self._error(
                Code.FOR_RANGE_MUST_BE_SCALAR, f"'{name}' of a loop must be an integer scalar, got {kind}", stmt
            )

    def _if(self, stmt: IfStmt) -> None:
        self._condition(stmt, "if")
        results = stmt.return_vars
        if not results:
            return
        for var in results:
            self._view(var, stmt)
        for name, body in (("then", stmt.then_body), ("else", stmt.else_body)):
            last = None if body is None else get_last_yield_stmt(body)
            if last is None:
                continue
            if len(last.value) != len(results):
                self._error(
                    Code.SIZE_MISMATCH,
                    f"the {name} branch yields {len(last.value)} value(s) for {len(results)} return variable(s)",
                    last,
                )
            for var, value in zip(results, last.value, strict=False):
                if var.type is not value.type:
                    self._agree(var, value, f"what the {name} branch yields", last)

    def _loop(self, stmt: Any) -> None:
        if not stmt.iter_args:
            return
        last = get_last_yield_stmt(stmt.body)
        for arg in stmt.iter_args:
            self._view(arg, stmt)
            self._agree(arg, arg.initValue, "its initial value", stmt)
        for arg, var in zip(stmt.iter_args, stmt.return_vars, strict=False):
            self._view(var, stmt)
            if arg.type is not var.type:
                self._agree(arg, var, f"the return variable '{var.name_hint}'", stmt)
        if last is not None:
            for arg, value in zip(stmt.iter_args, last.value, strict=False):
                self._agree(arg, value, "what the body yields", last)

    def _agree(self, var: Any, value: Any, what: str, where: Any) -> None:
        kind, other = var.type, value.type
        if kind is other or _same_integers(kind, value):
            return
        found = self._difference(kind, other)
        if found is not None:
            self._error(found[0], f"'{var.name_hint}' and {what} differ in {found[1]}", where)

    # --- types --------------------------------------------------------------------------------------------------------

    def _difference(self, a: Type, b: Type) -> _Difference | None:
        """The first difference of two types that matters where values of both meet."""
        if a is b or isinstance(a, UnknownType) or isinstance(b, UnknownType):
            return None
        if type(a) is not type(b):
            return Code.TYPE_KIND_MISMATCH, f"the kind of type: {_kind(a)} and {_kind(b)}"
        if isinstance(a, TupleType) and isinstance(b, TupleType):
            if len(a.types) != len(b.types):
                return Code.SIZE_MISMATCH, f"the number of elements: {len(a.types)} and {len(b.types)}"
            return next((d for d in map(self._difference, a.types, b.types) if d is not None), None)
        if isinstance(a, (ScalarType, ShapedType)) and a.dtype is not b.dtype:  # type: ignore[attr-defined]
            return Code.DTYPE_MISMATCH, f"dtype: {a.dtype} and {b.dtype}"  # type: ignore[attr-defined]
        if isinstance(a, ShapedType) and isinstance(b, ShapedType):
            return self._shaped(a, b)
        return None

    def _shaped(self, a: Any, b: Any) -> _Difference | None:
        if len(a.shape) != len(b.shape):
            return Code.SHAPE_DIMENSION_MISMATCH, f"rank: {len(a.shape)} and {len(b.shape)}"
        found = self._unequal(a.shape, b.shape, "shape")
        if found is not None or isinstance(a, ArrayType):
            return found
        if len(a.valid_extents) == len(b.valid_extents):
            found = self._unequal(a.valid_extents, b.valid_extents, "valid shape")
            if found is not None:
                return found
        if isinstance(a, TileType):
            if a.tile_view is not None and b.tile_view is not None and not a.tile_view.same_layout(b.tile_view):
                return Code.TILE_VIEW_MISMATCH, f"tile view: {a} and {b}"
            return None
        if _pad(a) is not _pad(b):
            return Code.TENSOR_PADDING_MISMATCH, f"padding: {_pad(a)} and {_pad(b)}"
        if isinstance(a, DistributedTensorType) and a.window_buffer is not b.window_buffer:
            names = [kind.window_buffer.name_hint if kind.window_buffer is not None else "none" for kind in (a, b)]
            return Code.DISTRIBUTED_WINDOW_IDENTITY_MISMATCH, f"the window buffer: {names[0]} and {names[1]}"
        return None

    def _unequal(self, a: Sequence[Any], b: Sequence[Any], what: str) -> _Difference | None:
        for axis, (x, y) in enumerate(zip(a, b, strict=True)):
            equal = self._extents.holds(x, y)
            if equal:
                continue
            text = f"{what}, axis {axis}: {_text(x)} and {_text(y)}"
            if equal is None:
                text += " (equality is not provable and this boundary has no runtime guard)"
            return Code.SHAPE_VALUE_MISMATCH, text
        return None

    def _view(self, var: Any, where: Any) -> None:
        """The valid shape of a variable's type lies inside its shape."""
        kind = var.type
        if not isinstance(kind, (TensorType, TileType)) or kind.valid_extents is kind.shape:
            return
        valid = kind.valid_extents
        if len(valid) != len(kind.shape):
            self._error(
                Code.SHAPE_DIMENSION_MISMATCH,
                f"'{var.name_hint}' has rank {len(kind.shape)}, but its valid shape has rank {len(valid)}",
                where,
            )
            return
        for axis, (extent, size) in enumerate(zip(valid, kind.shape, strict=True)):
            if prove_ge0(extent) is False:
                wrong = "is negative"
            elif prove_lt(size, extent) is True:
                wrong = f"is larger than the shape's {_text(size)}"
            else:
                continue
            self._error(
                Code.SHAPE_VALUE_MISMATCH,
                f"valid extent {_text(extent)} of '{var.name_hint}', axis {axis}, {wrong}",
                where,
            )


def _same_integers(kind: Type, value: Any) -> bool:
    """INDEX is a 64-bit integer, and a literal, which is INDEX until it meets another dtype, fits any integer."""
    other = value.type
    if not isinstance(kind, ScalarType) or not isinstance(other, ScalarType):
        return False
    if other.dtype is DataType.INDEX and type(value) is ConstInt:
        return kind.dtype.is_int_
    return kind.dtype in _INT64 and other.dtype in _INT64


_INT64 = (DataType.INDEX, DataType.INT64)


def _kind(kind: Type) -> str:
    return type(kind).__name__.removesuffix("Type")


def _pad(kind: TensorType) -> Any:
    return kind.tensor_view.pad if kind.tensor_view is not None else PadValue.null


def _text(extent: Any) -> str:
    return str(extent.as_python(format=False))


@verifies(IRProperty.TypeChecked, "TypeCheck")
def check_types(function: Function, findings: Findings) -> None:
    """Report where types disagree."""
    _TypeCheck(function, findings).run()
