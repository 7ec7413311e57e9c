"""Facts of the 910B family (architecture a2a3)."""

from __future__ import annotations

from ..ir.dtype import DataType
from ..ir.enums import CoreType, MemorySpace
from .model import BackendType, Cluster, Core, Die, Mem, SoC, Target

_CUBE = Core(
    CoreType.CUBE,
    [
        Mem(MemorySpace.Mat, 512 * 1024, 128),
        Mem(MemorySpace.Left, 64 * 1024, 64),
        Mem(MemorySpace.Right, 64 * 1024, 64),
        Mem(MemorySpace.Acc, 128 * 1024, 128),
        Mem(MemorySpace.Bias, 1024, 64),
    ],
)
# The toolchain reserves the top 8 KiB of the 192 KiB vector buffer.
_VECTOR = Core(CoreType.VECTOR, [Mem(MemorySpace.Vec, 184 * 1024, 128)])

TARGET = Target(
    backend_type=BackendType.Ascend910B,
    type_name="910B",
    arch="a2a3",
    sim_platform="a2a3sim",
    ptoas_flags=("--pto-arch", "a3"),
    core_count_method="set_block_num",
    requires_gm_pipe_buffer=True,
    requires_split_load_tpop_workaround=True,
    requires_runtime_subblock_bridge=True,
    requires_no_split_dual_aiv_dispatch=True,
    requires_vto_c_fractal_adapt=False,
    gm_access_granularity=512,
    l2_cache_line=512,
    recommended_innermost=512,
    l0_fractal_alignment=16,
    min_l0_tile_dim=16,
    l0c_m_alignment=16,
    l0c_m_alignment_int32=32,
    mat_to_bias=frozenset(
        {
            (DataType.FP16, DataType.FP32),
            (DataType.FP32, DataType.FP32),
            (DataType.INT32, DataType.INT32),
        }
    ),
    bf16_atomic_add=True,
    four_bit_tiles=False,
    mem_paths={
        MemorySpace.DDR: (MemorySpace.Vec, MemorySpace.Mat),
        MemorySpace.Vec: (MemorySpace.DDR,),
        MemorySpace.Mat: (MemorySpace.Left, MemorySpace.Right, MemorySpace.Bias),
        MemorySpace.Acc: (MemorySpace.Mat, MemorySpace.DDR),
    },
    soc=SoC({Die({Cluster({_CUBE: 1}): 24, Cluster({_VECTOR: 1}): 48}): 1}),
)
