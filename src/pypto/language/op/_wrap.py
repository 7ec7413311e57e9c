"""From the surface functions over IR expressions to the functions over ``pl.Tensor``, ``pl.Tile``, ...

Which functions there are is said in :mod:`pypto.ops.surface` alone; the op modules take them from there by name.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pypto.ir.expr import Expr, TupleGetItemExpr
from pypto.ir.op.module import adapted, span_taker
from pypto.ir.type import (
    ArrayType,
    AsyncEventType,
    AsyncSessionType,
    CommCtxType,
    DistributedTensorType,
    PrefetchAsyncContextType,
    PtrType,
    ScalarType,
    TensorType,
    TileType,
    TupleType,
    Type,
)

from ..typing import (
    Array,
    AsyncEvent,
    AsyncSession,
    CommCtx,
    DistributedTensor,
    DslValue,
    PrefetchAsyncContext,
    Ptr,
    Scalar,
    Tensor,
    Tile,
)

_CLASS_OF_TYPE: dict[type[Type], Callable[..., DslValue]] = {
    DistributedTensorType: DistributedTensor,
    TensorType: Tensor,
    TileType: Tile,
    ArrayType: Array,
    ScalarType: Scalar,
    PtrType: Ptr,
    CommCtxType: CommCtx,
    PrefetchAsyncContextType: PrefetchAsyncContext,
    AsyncEventType: AsyncEvent,
    AsyncSessionType: AsyncSession,
}


def unwrap(value: Any) -> Any:
    """The expression of a DSL value, also inside lists and tuples; anything else unchanged."""
    if isinstance(value, DslValue):
        return value.unwrap()
    if isinstance(value, (list, tuple)):
        return type(value)(map(unwrap, value)) if type(value) in (list, tuple) else value
    return value


def wrap(value: Any) -> Any:
    """The DSL value of an expression by its type; a tuple-typed one gives a tuple of the values of its elements."""
    if isinstance(value, Expr):
        kind = value.type
        if type(kind) is TupleType:
            return tuple(wrap(TupleGetItemExpr(value, i, value.span)) for i in range(len(kind.types)))
        cls = _CLASS_OF_TYPE.get(type(kind))
        return value if cls is None else cls(expr=value)
    if type(value) in (list, tuple):
        return type(value)(map(wrap, value))
    return value


def on_values(function: Callable[..., Any], name: str, module: str) -> Callable[..., Any]:
    """``function`` with DSL values in and out."""

    def call(*args: Any, **kwargs: Any) -> Any:
        if kwargs:
            kwargs = {key: unwrap(value) for key, value in kwargs.items()}
        return wrap(function(*map(unwrap, args), **kwargs))

    return adapted(call, function, name, module)


def on_values_with_span(function: Callable[..., Any], name: str, module: str) -> Callable[..., Any]:
    """As :func:`on_values`, with a keyword ``span``."""
    call: Any = on_values(span_taker(function, name, module), name, module)
    call.__wrapped__ = function  # as on_values has it: the front end finds the surface function by it
    return call  # type: ignore[no-any-return]
