"""The words that a target is described in: memories, cores, clusters, dies, a chip; and its facts as one record."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass

from ..ir.dtype import DataType
from ..ir.enums import CoreType, MemorySpace


class BackendType(enum.Enum):
    """The device families that programs are compiled for."""

    Ascend910B = 0
    Ascend950 = 1


@dataclass(frozen=True, slots=True)
class Mem:
    """One on-chip memory: its space, its size in bytes (0: not limited), the alignment of addresses in it."""

    mem_type: MemorySpace
    mem_size: int
    alignment: int


@dataclass(frozen=True, init=False, slots=True)
class Core:
    """A core and the memories that it addresses."""

    core_type: CoreType
    mems: tuple[Mem, ...]

    def __init__(self, core_type: CoreType, mems: tuple[Mem, ...] | list[Mem] = ()) -> None:
        object.__setattr__(self, "core_type", core_type)
        object.__setattr__(self, "mems", tuple(mems))


@dataclass(frozen=True, init=False)
class Cluster:
    """Cores that work together, with how many there are of each."""

    counts: tuple[tuple[Core, int], ...]

    def __init__(self, core_counts: Mapping[Core, int]) -> None:
        object.__setattr__(self, "counts", tuple(core_counts.items()))

    @property
    def core_counts(self) -> dict[Core, int]:
        return dict(self.counts)

    def total_core_count(self) -> int:
        return sum(n for _, n in self.counts)


@dataclass(frozen=True, init=False)
class Die:
    """Clusters on one die, with how many there are of each."""

    counts: tuple[tuple[Cluster, int], ...]

    def __init__(self, cluster_counts: Mapping[Cluster, int]) -> None:
        object.__setattr__(self, "counts", tuple(cluster_counts.items()))

    @property
    def cluster_counts(self) -> dict[Cluster, int]:
        return dict(self.counts)

    def total_cluster_count(self) -> int:
        return sum(n for _, n in self.counts)

    def total_core_count(self) -> int:
        return sum(cluster.total_core_count() * n for cluster, n in self.counts)


@dataclass(frozen=True, init=False)
class SoC:
    """Dies of a chip, with how many there are of each."""

    counts: tuple[tuple[Die, int], ...]

    def __init__(self, die_counts: Mapping[Die, int]) -> None:
        object.__setattr__(self, "counts", tuple(die_counts.items()))

    @property
    def die_counts(self) -> dict[Die, int]:
        return dict(self.counts)

    def total_die_count(self) -> int:
        return sum(n for _, n in self.counts)

    def total_cluster_count(self) -> int:
        return sum(die.total_cluster_count() * n for die, n in self.counts)

    def total_core_count(self) -> int:
        return sum(die.total_core_count() * n for die, n in self.counts)

    def core_count(self, core_type: CoreType) -> int:
        """Cores of one type on the whole chip."""
        return sum(
            per_cluster * clusters * dies
            for die, dies in self.counts
            for cluster, clusters in die.counts
            for core, per_cluster in cluster.counts
            if core.core_type is core_type
        )

    def memories(self) -> dict[MemorySpace, Mem]:
        """Each on-chip memory space once."""
        found: dict[MemorySpace, Mem] = {}
        for die, _ in self.counts:
            for cluster, _ in die.counts:
                for core, _ in cluster.counts:
                    for mem in core.mems:
                        found.setdefault(mem.mem_type, mem)
        return found


@dataclass(frozen=True)
class Target:
    """Everything that passes and code generators ask about a device family."""

    backend_type: BackendType
    type_name: str
    arch: str
    sim_platform: str
    ptoas_flags: tuple[str, ...]
    core_count_method: str
    requires_gm_pipe_buffer: bool
    requires_split_load_tpop_workaround: bool
    requires_runtime_subblock_bridge: bool
    requires_no_split_dual_aiv_dispatch: bool
    requires_vto_c_fractal_adapt: bool
    gm_access_granularity: int
    l2_cache_line: int
    recommended_innermost: int
    l0_fractal_alignment: int
    min_l0_tile_dim: int
    l0c_m_alignment: int
    l0c_m_alignment_int32: int
    mat_to_bias: frozenset[tuple[DataType, DataType]]
    bf16_atomic_add: bool
    four_bit_tiles: bool
    mem_paths: Mapping[MemorySpace, tuple[MemorySpace, ...]]
    soc: SoC
    # Alignment that the allocator keeps in every space; the numbers of the memories themselves are descriptive.
    allocator_alignment: int = 32

    def mem_size(self, space: MemorySpace) -> int:
        """Bytes of a memory space; 0 where the target has none or it is not limited."""
        mem = self.soc.memories().get(space)
        return mem.mem_size if mem is not None else 0


__all__ = ["BackendType", "Cluster", "Core", "Die", "Mem", "SoC", "Target"]
