"""The choices of a compilation that have names: strategy, dump level, memory planner, runtime."""

from __future__ import annotations

import enum


class OptimizationStrategy(enum.Enum):
    """Which pass list to run."""

    Default = "Default"
    DebugTileOptimization = "DebugTileOptimization"


class PassDumpLevel(enum.Enum):
    """What is written of the program before and after each pass."""

    NONE = 0
    CONCISE = 1
    EXPLICIT = 2


def coerce_dump_level(dump_passes: bool | PassDumpLevel) -> PassDumpLevel:
    """``True`` means CONCISE, ``False`` NONE."""
    if isinstance(dump_passes, PassDumpLevel):
        return dump_passes
    if isinstance(dump_passes, bool):
        return PassDumpLevel.CONCISE if dump_passes else PassDumpLevel.NONE
    raise TypeError(f"dump_passes must be a bool or a PassDumpLevel, got {type(dump_passes).__name__}")


class MemoryPlanner(enum.Enum):
    """Who assigns addresses to on-chip buffers."""

    PYPTO = 0
    DSA_RP = 1
    PTOAS = 2


class RuntimeKind(enum.Enum):
    """Which task runtime the emitted orchestration is for."""

    TENSORMAP_AND_RINGBUFFER = 0
    HOST_BUILD_GRAPH = 1


_WIRE_NAMES = {
    RuntimeKind.TENSORMAP_AND_RINGBUFFER: "tensormap_and_ringbuffer",
    RuntimeKind.HOST_BUILD_GRAPH: "host_build_graph",
}


def runtime_kind_to_name(kind: RuntimeKind) -> str:
    """The name of a runtime as it is written into files."""
    return _WIRE_NAMES[kind]


def runtime_kind_from_name(name: str) -> RuntimeKind:
    """The runtime of a written name; ``ValueError`` for an unknown one."""
    for kind, wire_name in _WIRE_NAMES.items():
        if wire_name == name:
            return kind
    names = " or ".join(f"'{n}'" for n in _WIRE_NAMES.values())
    raise ValueError(f"Unknown runtime '{name}': expected one of {names}")


__all__ = [
    "MemoryPlanner",
    "OptimizationStrategy",
    "PassDumpLevel",
    "RuntimeKind",
    "coerce_dump_level",
    "runtime_kind_from_name",
    "runtime_kind_to_name",
]
