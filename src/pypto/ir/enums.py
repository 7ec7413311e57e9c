"""Enumerations of the IR. The numbers are stable: they appear in attributes and generated text."""

from __future__ import annotations

import enum


class TensorLayout(enum.Enum):
    ND = 0
    DN = 1
    NZ = 2
    MX_A_ZZ = 3
    MX_B_NN = 4


class TileLayout(enum.Enum):
    none_box = 0
    row_major = 1
    col_major = 2


class PadValue(enum.Enum):
    null = 0
    zero = 1
    max = 2
    min = 3


class CompactMode(enum.Enum):
    null = 0
    normal = 1


class MemorySpace(enum.Enum):
    DDR = 0
    Vec = 1
    Mat = 2
    Left = 3
    Right = 4
    Acc = 5
    Bias = 6
    ScalarLocal = 7
    LeftScale = 8
    RightScale = 9


Mem = MemorySpace


class PipeType(enum.IntEnum):
    MTE1 = 0
    MTE2 = 1
    MTE3 = 2
    M = 3
    V = 4
    S = 5
    FIX = 6
    ALL = 7


class CoreType(enum.IntEnum):
    CUBE = 0
    VECTOR = 1


class FunctionType(enum.Enum):
    Opaque = 0
    Orchestration = 1
    InCore = 2
    AIC = 3
    AIV = 4
    Group = 5
    Spmd = 6
    Inline = 7
    Graph = 8


class Level(enum.Enum):
    AIV = 0
    AIC = 1
    CORE_GROUP = 2
    CHIP_DIE = 3
    CHIP = 4
    HOST = 5
    CLUSTER_0 = 6
    CLUSTER_1 = 7
    CLUSTER_2 = 8
    GLOBAL = 9
    # aliases: enum makes them the same members, so printing always uses the primary name
    L2CACHE = 3
    PROCESSOR = 4
    UMA = 4
    NODE = 5
    POD = 6
    CLOS1 = 7
    CLOS2 = 8


class Role(enum.Enum):
    Orchestrator = 0
    SubWorker = 1


class ParamDirection(enum.Enum):
    In = 0
    Out = 1
    InOut = 2


class ArgDirection(enum.Enum):
    Input = 0
    Output = 1
    InOut = 2
    OutputExisting = 3
    NoDep = 4
    Scalar = 5


class ForKind(enum.Enum):
    Sequential = 0
    Parallel = 1
    Unroll = 2
    Pipeline = 3


class ScopeKind(enum.Enum):
    InCore = 0
    Cluster = 2
    Hierarchy = 3
    Spmd = 4
    Runtime = 5
    CommDomain = 6
    SplitAiv = 7


class SplitMode(enum.Enum):
    NONE = 0
    UP_DOWN = 1
    LEFT_RIGHT = 2


class InlineLanguage(enum.Enum):
    Python = 0


class NotifyOp(enum.IntEnum):
    AtomicAdd = 0
    Set = 1


class WaitCmp(enum.IntEnum):
    Eq = 0
    Ge = 1


class AtomicType(enum.IntEnum):
    None_ = 0
    Add = 1


class ReduceOp(enum.IntEnum):
    Sum = 0
    Max = 1
    Min = 2
    Prod = 3


class ArgEffect(enum.Enum):
    """What an op does to one of its operands."""

    Read = 0
    Write = 1
    ReadWrite = 2


class WriteChannel(enum.Enum):
    """By which engine an op writes global memory."""

    Dma = 0
    Scalar = 1


DYNAMIC_DIM = -1

# Enums whose members are also names of ``pypto.ir``. The order decides who owns a name that two enums have.
EXPORTED = (
    TensorLayout,
    TileLayout,
    PadValue,
    MemorySpace,
    PipeType,
    CoreType,
    FunctionType,
    Level,
    Role,
    ParamDirection,
    ForKind,
    ScopeKind,
    SplitMode,
    InlineLanguage,
)

_LINQU_LEVEL = {
    Level.AIV: 0,
    Level.AIC: 0,
    Level.CORE_GROUP: 0,
    Level.CHIP_DIE: 1,
    Level.CHIP: 2,
    Level.HOST: 3,
    Level.CLUSTER_0: 4,
    Level.CLUSTER_1: 5,
    Level.CLUSTER_2: 6,
    Level.GLOBAL: 7,
}


def is_incore_type(func_type: FunctionType) -> bool:
    """Whether functions of this type run on a core (InCore, AIC, AIV)."""
    return func_type in (FunctionType.InCore, FunctionType.AIC, FunctionType.AIV)


def level_to_linqu_level(level: Level) -> int:
    """Position of a level in the machine hierarchy: 0 core ... 3 host ... 7 global."""
    return _LINQU_LEVEL[level]
