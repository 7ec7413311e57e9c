"""``pl``: what a user writes. Types, loops, scopes, directives, ops, and the decorators that read them.

Ops, decorators and ``pl.jit`` are loaded when they are first used, so that importing this module is cheap.
Several names shadow builtins (``range``, ``min``, ``max``, ``abs``, ``slice``): code in this module must not use those.
"""

# ruff: noqa: F401 - what is imported here is what this module offers
from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from pypto.ir.dtype import DataType
from pypto.ir.enums import (
    AtomicType,
    CompactMode,
    ForKind,
    FunctionType,
    Level,
    Mem,
    MemorySpace,
    PadValue,
    PipeType,
    Role,
    SplitMode,
    TensorLayout,
    TileLayout,
)
from pypto.ir.type import MemRefType, PtrType, UnknownType

from . import arg_direction as adir
from . import op, optimizations, parser
from .dsl_api import (
    at,
    cluster,
    cond,
    const,
    func_attr,
    parallel,
    pipeline,
    range,
    split_aiv,
    spmd,
    static_assert,
    static_print,
    unroll,
    while_,
    yield_,
)
from .op import array, prefetch, system, tensor, tile
from .op.system_ops import AUTO
from .op.tensor_ops import dump_tag, no_dep
from .optimizations import cross_core_slot, split
from .scope import ScopeMode, manual_scope, scope, spmd_submit, submit
from .typing import (
    RUNTIME,
    Array,
    AsyncEvent,
    AsyncSession,
    DynVar,
    InOut,
    IntLike,
    MemRef,
    Out,
    PrefetchAsyncContext,
    Scalar,
    Tensor,
    TensorView,
    Tile,
    TileView,
    Tuple,
    dynamic,
)

if TYPE_CHECKING:
    from pypto.frontend.entry import InlineFunction, function, inline, program
    from pypto.frontend.text import loads, loads_program, parse, parse_program
    from pypto.jit import JITFunction, jit

    from . import distributed

Ptr = PtrType

ND = TensorLayout.ND
DN = TensorLayout.DN
NZ = TensorLayout.NZ
MX_A_ZZ = TensorLayout.MX_A_ZZ
MX_B_NN = TensorLayout.MX_B_NN

FP4 = DataType.FP4
FP8E4M3FN = DataType.FP8E4M3FN
FP8E5M2 = DataType.FP8E5M2
FP8E8M0 = DataType.FP8E8M0
FP16 = DataType.FP16
FP32 = DataType.FP32
BF16 = DataType.BF16
HF4 = DataType.HF4
HF8 = DataType.HF8
INT4 = DataType.INT4
INT8 = DataType.INT8
INT16 = DataType.INT16
INT32 = DataType.INT32
INT64 = DataType.INT64
UINT4 = DataType.UINT4
UINT8 = DataType.UINT8
UINT16 = DataType.UINT16
UINT32 = DataType.UINT32
UINT64 = DataType.UINT64
BOOL = DataType.BOOL
INDEX = DataType.INDEX
TASK_ID = DataType.TASK_ID

TaskId: Any = Scalar[TASK_ID]

_SOURCES = {**parser.SOURCES, "JITFunction": "pypto.jit", "jit": "pypto.jit"}

# What this module defines or imports for its users; every other public name is an op.
_OWN = frozenset(name for name in globals() if not name.startswith("_")) - {
    "TYPE_CHECKING",
    "Any",
    "annotations",
    "import_module",
    "op",
}


def __getattr__(name: str) -> Any:
    if name in _SOURCES:
        value = getattr(import_module(_SOURCES[name]), name)
    elif name == "distributed":
        value = import_module(f"{__name__}.distributed")
    elif name == "__all__":
        return __dir__()
    else:
        try:
            value = getattr(op, name)
        except AttributeError:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}") from None
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*_OWN, *_SOURCES, *dir(op)})
