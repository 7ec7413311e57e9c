"""Device families: facts, data paths, selection."""

import threading

import pytest

from pypto import backend
from pypto.backend import Backend910B, Backend950, BackendType
from pypto.ir.dtype import DataType as D
from pypto.ir.enums import CoreType, MemorySpace
from pypto.target.platforms import PLATFORMS, platform_of

M = MemorySpace


@pytest.fixture(autouse=True)
def fresh():
    backend.reset_for_testing()
    yield
    backend.reset_for_testing()


@pytest.fixture
def both():
    return Backend910B.instance(), Backend950.instance()


HANDLER = {
    "get_pto_target_arch": ("a2a3", "a5"),
    "get_default_sim_platform": ("a2a3sim", "a5sim"),
    "get_extra_ptoas_flags": (["--pto-arch", "a3"], ["--pto-arch", "a5"]),
    "get_launch_spec_core_count_method": ("set_block_num", "set_core_num"),
    "requires_gm_pipe_buffer": (True, False),
    "requires_split_load_tpop_workaround": (True, False),
    "requires_runtime_subblock_bridge": (True, False),
    "requires_no_split_dual_aiv_dispatch": (True, False),
    "requires_vto_c_fractal_adapt": (False, True),
    "get_gm_access_granularity_bytes": (512, 128),
    "get_l2_cache_line_bytes": (512, 512),
    "get_recommended_innermost_dim_bytes": (512, 128),
    "get_l0a_capacity_bytes": (65536, 65536),
    "get_l0b_capacity_bytes": (65536, 65536),
    "get_l0c_capacity_bytes": (131072, 262144),
    "get_mat_capacity_bytes": (524288, 524288),
    "get_bias_capacity_bytes": (1024, 4096),
    "get_l0_fractal_alignment": (16, 16),
    "get_min_l0_tile_dim": (16, 16),
}


@pytest.mark.parametrize("query", HANDLER)
def test_handler(query, both):
    answers = tuple(getattr(b.get_handler(), query)() for b in both)
    assert answers == HANDLER[query]


def test_questions_about_types(both):
    old, new = (b.get_handler() for b in both)
    assert (old.get_l0c_m_alignment(D.INT32), new.get_l0c_m_alignment(D.INT32)) == (32, 16)
    assert old.get_l0c_m_alignment(D.FP32) == 16
    pairs = [(D.FP16, D.FP32), (D.FP32, D.FP32), (D.INT32, D.INT32), (D.BF16, D.FP32), (D.FP32, D.FP16)]
    assert [old.supports_mat_to_bias_move(*p) for p in pairs] == [True, True, True, False, False]
    assert [new.supports_mat_to_bias_move(*p) for p in pairs] == [True, True, True, True, False]


@pytest.mark.parametrize(
    ("space", "sizes"),
    [
        (M.Vec, (188416, 245760)),
        (M.Mat, (524288, 524288)),
        (M.Left, (65536, 65536)),
        (M.Right, (65536, 65536)),
        (M.Acc, (131072, 262144)),
        (M.Bias, (1024, 4096)),
        (M.LeftScale, (0, 4096)),
        (M.RightScale, (0, 4096)),
        (M.DDR, (0, 0)),
        (M.ScalarLocal, (0, 0)),
    ],
)
def test_memories(space, sizes, both):
    assert tuple(b.get_mem_size(space) for b in both) == sizes


def test_topology(both):
    old, new = both
    assert [old.get_core_count(t) for t in (CoreType.CUBE, CoreType.VECTOR)] == [24, 48]
    assert [new.get_core_count(t) for t in (CoreType.CUBE, CoreType.VECTOR)] == [36, 72]
    assert (old.soc.total_die_count(), old.soc.total_cluster_count(), old.soc.total_core_count()) == (1, 72, 72)
    assert (new.soc.total_die_count(), new.soc.total_cluster_count(), new.soc.total_core_count()) == (2, 72, 108)
    ((die, count),) = new.soc.die_counts.items()
    assert count == 2 and die.total_core_count() == 54
    assert sorted(c.total_core_count() for c in die.cluster_counts) == [1, 2]
    assert (old.get_type_name(), new.get_type_name()) == ("910B", "950")


@pytest.mark.parametrize(
    ("start", "end", "old_path", "new_path"),
    [
        (M.DDR, M.Vec, [M.DDR, M.Vec], [M.DDR, M.Vec]),
        (M.DDR, M.Left, [M.DDR, M.Mat, M.Left], [M.DDR, M.Mat, M.Left]),
        (M.DDR, M.Right, [M.DDR, M.Mat, M.Right], [M.DDR, M.Mat, M.Right]),
        (M.Acc, M.DDR, [M.Acc, M.DDR], [M.Acc, M.DDR]),
        (M.Acc, M.Vec, [M.Acc, M.DDR, M.Vec], [M.Acc, M.Vec]),
        (M.Vec, M.Mat, [M.Vec, M.DDR, M.Mat], [M.Vec, M.Mat]),
        (M.Vec, M.Vec, [M.Vec], [M.Vec]),
    ],
)
def test_paths(start, end, old_path, new_path, both):
    assert [b.find_mem_path(start, end) for b in both] == [old_path, new_path]


def test_no_path(both):
    for each in both:
        with pytest.raises(ValueError, match="No path found from Mat to Vec"):
            each.find_mem_path(M.Mat, M.Vec)


def test_files(both, tmp_path):
    for each in both:
        each.export_to_file(tmp_path / "soc.json")
        loaded = backend.Backend.import_from_file(tmp_path / "soc.json")
        assert type(loaded) is type(each) and loaded.soc == each.soc
        assert loaded.get_mem_size(M.Vec) == each.get_mem_size(M.Vec)
    (tmp_path / "soc.json").write_text("{}")
    with pytest.raises(ValueError, match="is not a backend description"):
        backend.Backend.import_from_file(tmp_path / "soc.json")


def test_parts_can_be_made():
    mem = backend.Mem(M.Vec, 64, 32)
    core = backend.Core(CoreType.VECTOR, [mem])
    soc = backend.SoC({backend.Die({backend.Cluster({core: 2}): 3}): 4})
    assert soc.total_core_count() == 24 and core.mems == (mem,) and mem.alignment == 32
    assert backend.Core(CoreType.VECTOR, [mem]) == core


def test_selection():
    assert not backend.is_backend_configured()
    with pytest.raises(ValueError, match="Backend type not configured"):
        backend.get_backend_type()
    backend.set_backend_type(BackendType.Ascend910B)
    backend.set_backend_type(BackendType.Ascend910B)
    with pytest.raises(ValueError, match="Backend type already set to Ascend910B, cannot change to Ascend950"):
        backend.set_backend_type(BackendType.Ascend950)
    assert backend.get_handler().get_pto_target_arch() == "a2a3"
    assert backend.get_backend_instance(BackendType.Ascend950) is Backend950.instance()
    for wrong in (lambda: backend.set_backend_type("910B"), lambda: backend.get_backend_instance(0)):
        with pytest.raises(TypeError):
            wrong()


def test_a_selection_for_a_block_is_of_its_thread():
    seen = []
    with backend.using_backend(BackendType.Ascend950):
        assert backend.get_backend_type() is BackendType.Ascend950
        thread = threading.Thread(target=lambda: seen.append(backend.is_backend_configured()))
        thread.start()
        thread.join()
        backend.set_backend_type(BackendType.Ascend910B)  # the default is another matter
        assert backend.get_backend_type() is BackendType.Ascend950
    assert seen == [False]
    assert backend.get_backend_type() is BackendType.Ascend910B


def test_the_former_module_is_the_same():
    import pypto.pypto_core.backend as former

    assert former is backend and former.BackendHandler


def test_platforms():
    assert list(PLATFORMS) == ["cpu", "a2a3sim", "a2a3", "a5sim", "a5"]
    assert [p.is_device for p in PLATFORMS.values()] == [False, False, True, False, True]
    with pytest.raises(ValueError, match="Invalid platform 'None'"):
        platform_of(None)
