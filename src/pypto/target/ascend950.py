"""Facts of the 950 family (architecture a5)."""

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
        Mem(MemorySpace.Acc, 256 * 1024, 128),
        Mem(MemorySpace.Bias, 4096, 64),
        Mem(MemorySpace.LeftScale, 4096, 32),
        Mem(MemorySpace.RightScale, 4096, 32),
    ],
)
# The toolchain reserves the top 8 KiB of the 248 KiB vector buffer.
_VECTOR = Core(CoreType.VECTOR, [Mem(MemorySpace.Vec, 240 * 1024, 128)])

TARGET = Target(
    backend_type=BackendType.Ascend950,
    type_name="950",
    arch="a5",
    sim_platform="a5sim",
    ptoas_flags=("--pto-arch", "a5"),
    core_count_method="set_core_num",
    requires_gm_pipe_buffer=False,
    requires_split_load_tpop_workaround=False,
    requires_runtime_subblock_bridge=False,
    requires_no_split_dual_aiv_dispatch=False,
    requires_vto_c_fractal_adapt=True,
    gm_access_granularity=128,
    l2_cache_line=512,
    recommended_innermost=128,
    l0_fractal_alignment=16,
    min_l0_tile_dim=16,
    l0c_m_alignment=16,
    l0c_m_alignment_int32=16,
    mat_to_bias=frozenset(
        {
            (DataType.FP16, DataType.FP32),
            (DataType.FP32, DataType.FP32),
            (DataType.INT32, DataType.INT32),
            (DataType.BF16, DataType.FP32),
        }
    ),
    bf16_atomic_add=False,
    four_bit_tiles=True,
    mem_paths={
        MemorySpace.DDR: (MemorySpace.Vec, MemorySpace.Mat),
        MemorySpace.Vec: (MemorySpace.Mat, MemorySpace.DDR),
        MemorySpace.Mat: (
            MemorySpace.Left,
            MemorySpace.Right,
            MemorySpace.Bias,
            MemorySpace.LeftScale,
            MemorySpace.RightScale,
        ),
        MemorySpace.Acc: (MemorySpace.Vec, MemorySpace.Mat, MemorySpace.DDR),
    },
    soc=SoC({Die({Cluster({_CUBE: 1}): 18, Cluster({_VECTOR: 2}): 18}): 2}),
)
