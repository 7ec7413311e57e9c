"""RunConfig: defaults, checks, rings, the former name of a field, what a dispatch refuses."""

import dataclasses
import inspect
import warnings

import numpy as np
import pytest
from run_support import F32, program, ramp

from pypto import ir
from pypto.backend import BackendType
from pypto.ir.compile_options import OptimizationStrategy
from pypto.runtime import RunConfig

FIELDS = (
    "platform device_id rtol atol strategy backend_type dump_passes save_kernels save_kernels_dir codegen_only"
    " enable_chip_swimlane enable_dump_args enable_pmu enable_dep_gen enable_scope_stats compile_profiling"
    " diagnostic_phase disabled_diagnostics golden_data_dir aicpu_thread_num ring_task_window ring_heap ring_dep_pool"
    " distributed_config analyze_auto_scopes_for_deps memory_planner dump_ptoas_passes check_races schedule seed trace"
    " strict_rings allow_overlap disk_cache executor workers timeout isolate"
).split()


def test_fields_and_defaults():
    assert [f.name for f in dataclasses.fields(RunConfig)] == FIELDS
    config = RunConfig()
    assert config.platform == "cpu" and config.strategy is OptimizationStrategy.Default
    assert (config.rtol, config.atol, config.device_id, config.dump_passes) == (1e-5, 1e-5, 0, False)
    assert config.backend_type is BackendType.Ascend910B and not config.any_dfx_enabled() and not config.save_kernels
    assert "enable_l2_swimlane" not in repr(config)
    assert list(inspect.signature(RunConfig).parameters) == FIELDS
    with pytest.raises(TypeError):
        RunConfig(*[None] * 28)  # the product's own fields are keywords


@pytest.mark.parametrize(
    ("platform", "backend"),
    [("cpu", BackendType.Ascend950), ("a5sim", BackendType.Ascend950), ("a2a3", BackendType.Ascend910B)],
)
def test_the_backend_follows_the_platform(platform, backend):
    assert RunConfig(platform, backend_type=BackendType.Ascend950).backend_type is backend


BAD = [
    ({"platform": "x"}, ValueError, "Invalid platform 'x'"),
    ({"device_id": -1}, ValueError, "device_id must be a non-negative int"),
    ({"device_id": True}, ValueError, "device_id"),
    ({"enable_chip_swimlane": 5}, ValueError, "level from 0 to 4 .*1 task times"),
    ({"enable_chip_swimlane": "high"}, TypeError, "must be a bool or an int, got str"),
    ({"ring_task_window": 3}, ValueError, "ring_task_window must be a power of two of at least 4, got 3"),
    ({"ring_task_window": 0}, ValueError, "got 0"),
    ({"ring_task_window": [4, 4, 4]}, ValueError, "exactly 4"),
    ({"ring_task_window": [4, 4, 4, 6]}, ValueError, "got 6"),
    ({"ring_task_window": True}, ValueError, "must hold ints"),
    ({"ring_heap": 512}, ValueError, "ring_heap must be a power of two of at least 1024"),
    ({"ring_dep_pool": 3}, ValueError, "ring_dep_pool must be between 4 and 2147483647"),
    ({"schedule": "best"}, ValueError, "schedule must be 'default' or 'random'"),
    ({"platform": "a2a3", "seed": 1}, ValueError, r"RunConfig\(seed=...\) works on the host only"),
]


@pytest.mark.parametrize(("options", "error", "phrase"), BAD)
def test_refused(options, error, phrase):
    with pytest.raises(error, match=phrase):
        RunConfig(**options)


def test_rings_and_levels_are_normalised():
    assert RunConfig(ring_task_window=(4, 0, 16, 8)).ring_task_window == [4, 0, 16, 8]
    assert RunConfig(ring_heap=1024).ring_heap == 1024
    assert RunConfig(enable_chip_swimlane=True).enable_chip_swimlane == 4
    assert RunConfig(enable_chip_swimlane=False).enable_chip_swimlane == 0


@pytest.mark.parametrize(
    "flag", ["enable_chip_swimlane", "enable_dump_args", "enable_pmu", "enable_dep_gen", "enable_scope_stats"]
)
def test_diagnostics_keep_the_files(flag):
    config = RunConfig(**{flag: 1})
    assert config.any_dfx_enabled() and config.save_kernels


def test_the_former_name():
    with pytest.warns(DeprecationWarning, match="use enable_chip_swimlane"):
        config = RunConfig(enable_l2_swimlane=2)
    assert config.enable_chip_swimlane == 2
    with pytest.warns(DeprecationWarning):
        config.enable_l2_swimlane = True
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert config.enable_l2_swimlane == config.enable_chip_swimlane == 4
        assert dataclasses.replace(config, seed=3).enable_chip_swimlane == 4
    with pytest.raises(ValueError, match="not both"):
        RunConfig(enable_l2_swimlane=1, enable_chip_swimlane=1)


# --- at a dispatch -----------------------------------------------------------------------------------------------------


@pytest.fixture
def compiled():
    return ir.compile(program("y = self.copy(x, y)"), dump_passes=False)


def arrays():
    return ramp(4, 8), np.zeros((4, 8), F32)


def test_executor_and_limits_are_checked():
    assert (RunConfig().executor, RunConfig().workers, RunConfig().timeout, RunConfig().isolate) == (None,) * 3 + (
        False,
    )
    with pytest.raises(ValueError, match="executor must be 'auto', 'native' or 'interpreter', got 'fast'"):
        RunConfig(executor="fast")
    with pytest.raises(ValueError, match="workers must be at least 1"):
        RunConfig(workers=0)
    with pytest.raises(ValueError, match="timeout must be a positive number of seconds"):
        RunConfig(timeout=0)
    with pytest.raises(ValueError, match="for native runs"):
        RunConfig(executor="interpreter", isolate=True)


def test_what_can_not_be_kept_is_refused(compiled):
    with pytest.raises(ValueError, match="codegen_only"):
        compiled(*arrays(), config=RunConfig(codegen_only=True))


def test_a_record_that_is_not_kept_is_a_warning(compiled, caplog):
    from pypto.runtime import execute

    execute._told.discard("enable_pmu")
    for _ in range(2):
        compiled(*arrays(), config=RunConfig(enable_pmu=1))
    assert [r.getMessage() for r in caplog.records] == [
        "RunConfig(enable_pmu=...) has no effect yet: the interpreter keeps no such record"
    ]


def test_ids_and_threads_change_nothing(compiled):
    x, y = arrays()
    compiled(x, y, config=RunConfig(device_id=7, aicpu_thread_num=3, ring_task_window=4, ring_heap=1024))
    np.testing.assert_array_equal(x, y)
