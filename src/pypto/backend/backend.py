"""A device family as an object that answers questions. Every answer comes from :mod:`pypto.target`."""

from __future__ import annotations

import json
import os
from collections import deque
from pathlib import Path
from typing import Any

from ..ir.dtype import DataType
from ..ir.enums import CoreType, MemorySpace
from ..target.model import BackendType, Cluster, Core, Die, Mem, SoC, Target
from ..target.platforms import target_of

_FORMAT = "pypto-soc-1"


class BackendHandler:
    """Queries about one family that passes and code generators ask."""

    def __init__(self, target: Target) -> None:
        self._target = target

    def get_pto_target_arch(self) -> str:
        return self._target.arch

    def get_launch_spec_core_count_method(self) -> str:
        return self._target.core_count_method

    def get_default_sim_platform(self) -> str:
        return self._target.sim_platform

    def get_extra_ptoas_flags(self) -> list[str]:
        return list(self._target.ptoas_flags)

    def requires_gm_pipe_buffer(self) -> bool:
        return self._target.requires_gm_pipe_buffer

    def requires_split_load_tpop_workaround(self) -> bool:
        return self._target.requires_split_load_tpop_workaround

    def requires_vto_c_fractal_adapt(self) -> bool:
        return self._target.requires_vto_c_fractal_adapt

    def requires_runtime_subblock_bridge(self) -> bool:
        return self._target.requires_runtime_subblock_bridge

    def requires_no_split_dual_aiv_dispatch(self) -> bool:
        return self._target.requires_no_split_dual_aiv_dispatch

    def get_gm_access_granularity_bytes(self) -> int:
        return self._target.gm_access_granularity

    def get_l2_cache_line_bytes(self) -> int:
        return self._target.l2_cache_line

    def get_recommended_innermost_dim_bytes(self) -> int:
        return self._target.recommended_innermost

    def get_l0a_capacity_bytes(self) -> int:
        return self._target.mem_size(MemorySpace.Left)

    def get_l0b_capacity_bytes(self) -> int:
        return self._target.mem_size(MemorySpace.Right)

    def get_l0c_capacity_bytes(self) -> int:
        return self._target.mem_size(MemorySpace.Acc)

    def get_bias_capacity_bytes(self) -> int:
        return self._target.mem_size(MemorySpace.Bias)

    def get_mat_capacity_bytes(self) -> int:
        return self._target.mem_size(MemorySpace.Mat)

    def supports_mat_to_bias_move(self, source_dtype: DataType, bias_dtype: DataType) -> bool:
        """Whether a bias of one element type may be moved from Mat into a Bias tile of another."""
        return (source_dtype, bias_dtype) in self._target.mat_to_bias

    def get_l0_fractal_alignment(self) -> int:
        return self._target.l0_fractal_alignment

    def get_l0c_m_alignment(self, accumulator_dtype: DataType) -> int:
        """Rows that an accumulator tile of this element type is aligned to."""
        if accumulator_dtype is DataType.INT32:
            return self._target.l0c_m_alignment_int32
        return self._target.l0c_m_alignment

    def get_min_l0_tile_dim(self) -> int:
        return self._target.min_l0_tile_dim


class Backend:
    """A device family. ``Backend910B.instance()`` and ``Backend950.instance()`` are the two that exist."""

    def __init__(self, target: Target, soc: SoC | None = None) -> None:
        self._target = target
        self._soc = soc if soc is not None else target.soc
        self._handler = BackendHandler(target)
        self._memories = self._soc.memories()

    def get_type_name(self) -> str:
        return self._target.type_name

    def get_handler(self) -> BackendHandler:
        return self._handler

    @property
    def soc(self) -> SoC:
        return self._soc

    @property
    def target(self) -> Target:
        """The facts themselves."""
        return self._target

    def get_mem_size(self, mem_type: MemorySpace) -> int:
        """Bytes of a memory space; 0 where the family has none or it is not limited."""
        mem = self._memories.get(mem_type)
        return mem.mem_size if mem is not None else 0

    def get_core_count(self, core_type: CoreType) -> int:
        return self._soc.core_count(core_type)

    def find_mem_path(self, from_mem: MemorySpace, to_mem: MemorySpace) -> list[MemorySpace]:
        """The shortest way for data from one space to another, both ends included; ``ValueError`` if there is none."""
        before: dict[MemorySpace, MemorySpace | None] = {from_mem: None}
        queue = deque([from_mem])
        while queue:
            at: MemorySpace | None = queue.popleft()
            if at is to_mem:
                path = []
                while at is not None:
                    path.append(at)
                    at = before[at]
                return path[::-1]
            assert at is not None
            for after in self._target.mem_paths.get(at, ()):
                if after not in before:
                    before[after] = at
                    queue.append(after)
        raise ValueError(f"No path found from {from_mem.name} to {to_mem.name} on {self.get_type_name()}")

    def export_to_file(self, path: str | os.PathLike[str]) -> None:
        """Write the chip's description as JSON."""
        document = {"format": _FORMAT, "backend": self._target.backend_type.name, "soc": _soc_to_json(self._soc)}
        Path(path).write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")

    @staticmethod
    def import_from_file(path: str | os.PathLike[str]) -> Backend:
        """A backend with the chip description of a file that :meth:`export_to_file` wrote."""
        try:
            document = json.loads(Path(path).read_text(encoding="utf-8"))
            if document["format"] != _FORMAT:
                raise ValueError(f"format is {document['format']!r}")
            target = target_of(BackendType[document["backend"]])
            soc = _soc_from_json(document["soc"])
        except (ValueError, KeyError, TypeError) as error:
            raise ValueError(f"{os.fspath(path)} is not a backend description: {error}") from error
        kind = Backend910B if target.backend_type is BackendType.Ascend910B else Backend950
        return kind(target, soc)


class Backend910B(Backend):
    """The 910B family."""

    @staticmethod
    def instance() -> Backend910B:
        return _instance(Backend910B, BackendType.Ascend910B)  # type: ignore[return-value]


class Backend950(Backend):
    """The 950 family."""

    @staticmethod
    def instance() -> Backend950:
        return _instance(Backend950, BackendType.Ascend950)  # type: ignore[return-value]


_INSTANCES: dict[BackendType, Backend] = {}


def _instance(kind: type[Backend], backend_type: BackendType) -> Backend:
    return _INSTANCES.setdefault(backend_type, kind(target_of(backend_type)))


def _soc_to_json(soc: SoC) -> Any:
    return [
        {
            "count": dies,
            "clusters": [
                {
                    "count": clusters,
                    "cores": [
                        {
                            "count": cores,
                            "type": core.core_type.name,
                            "mems": [[m.mem_type.name, m.mem_size, m.alignment] for m in core.mems],
                        }
                        for core, cores in cluster.counts
                    ],
                }
                for cluster, clusters in die.counts
            ],
        }
        for die, dies in soc.counts
    ]


def _soc_from_json(data: Any) -> SoC:
    dies = {}
    for die in data:
        clusters = {}
        for cluster in die["clusters"]:
            cores = {}
            for core in cluster["cores"]:
                mems = [Mem(MemorySpace[space], size, alignment) for space, size, alignment in core["mems"]]
                cores[Core(CoreType[core["type"]], mems)] = core["count"]
            clusters[Cluster(cores)] = cluster["count"]
        dies[Die(clusters)] = die["count"]
    return SoC(dies)


__all__ = ["Backend", "Backend910B", "Backend950", "BackendHandler"]
