"""The types that a user writes in annotations, which also wrap IR expressions."""

from __future__ import annotations

from typing import TypeAlias

from pypto.ir.expr import Expr

from .array import Array
from .direction import InOut, Out
from .distributed import CommCtx, DistributedTensor
from .dynamic import DynVar, dynamic
from .memref import MemRef
from .prefetch import AsyncEvent, AsyncSession, PrefetchAsyncContext
from .ptr import Ptr
from .scalar import RUNTIME, BoolLike, RuntimeScalarMarker, Scalar, predicate_to_expr
from .tensor import Tensor
from .tile import Tile
from .tuple import Tuple
from .value import DslValue
from .views import TensorView, TileView

IntLike: TypeAlias = int | Scalar | Expr

__all__ = [
    "RUNTIME",
    "Array",
    "AsyncEvent",
    "AsyncSession",
    "BoolLike",
    "CommCtx",
    "DistributedTensor",
    "DslValue",
    "DynVar",
    "Expr",
    "InOut",
    "IntLike",
    "MemRef",
    "Out",
    "PrefetchAsyncContext",
    "Ptr",
    "RuntimeScalarMarker",
    "Scalar",
    "Tensor",
    "TensorView",
    "Tile",
    "TileView",
    "Tuple",
    "TypeAlias",
    "dynamic",
    "predicate_to_expr",
]
