"""run, run_test, execute_compiled, benchmark, comparisons, specs, the log."""

import logging
import os
import subprocess
import sys

import ml_dtypes
import numpy as np
import pytest
from run_support import F32, program, ramp

import pypto.language as pl
from pypto import LogLevel, get_log_level, ir, set_log_level
from pypto.backend import BackendType
from pypto.ir.compile_options import OptimizationStrategy
from pypto.runtime import (
    RunConfig,
    RunResult,
    ScalarSpec,
    TensorSpec,
    assert_close,
    benchmark,
    compile_program,
    configure_log,
    execute_compiled,
    log_level,
    run,
    run_test,
)

PARAMS = "x: pl.Tensor[[4, 8], pl.FP32], y: pl.Out[pl.Tensor[[4, 8], pl.FP32]], by: pl.Scalar[pl.FP32]"


@pytest.fixture(scope="module")
def scaled():
    return program("y = self.scale(x, by, y)\nreturn y", PARAMS)


# --- running -----------------------------------------------------------------------------------------------------------


def test_run(scaled, tmp_path):
    y = np.zeros((4, 8), F32)
    compiled = run(scaled, ramp(4, 8), y, 3.0, config=RunConfig(save_kernels_dir=tmp_path / "here"))
    np.testing.assert_array_equal(y, ramp(4, 8) * 3)
    assert compiled == tmp_path / "here" and compiled.last_result is None
    compiled = run(scaled, ramp(4, 8), 2.0)
    np.testing.assert_array_equal(compiled.last_result, ramp(4, 8) * 2)
    assert run(scaled, ramp(4, 8), 2.0, config=RunConfig(codegen_only=True)).last_result is None
    assert run(scaled).last_result is None
    assert not (compiled.output_dir / "passes_dump").exists()


def test_compile_to_a_directory_and_execute_it(scaled, tmp_path):
    compile_program(scaled, tmp_path / "d", strategy=OptimizationStrategy.Default, backend_type=BackendType.Ascend950)
    y = np.zeros((4, 8), F32)
    assert execute_compiled(tmp_path / "d", [ramp(4, 8), y, 2.0], platform="cpu", device_id=0) is None
    np.testing.assert_array_equal(y, ramp(4, 8) * 2)
    with pytest.raises(TypeError, match=r"all 3 arguments, got 2. Parameters: \['x', 'y', 'by'\]"):
        execute_compiled(tmp_path / "d", [ramp(4, 8), 2.0], platform="cpu", device_id=0)
    with pytest.raises(FileNotFoundError):
        execute_compiled(tmp_path, [], platform="cpu", device_id=0)
    with pytest.raises(RuntimeError, match="platform 'a2a3' is a device"):
        execute_compiled(tmp_path / "d", [ramp(4, 8), y, 2.0], platform="a2a3", device_id=0)


SPECS = [
    TensorSpec("x", (4, 8), np.float32, init_value=ramp(4, 8)),
    TensorSpec("y", (4, 8), pl.FP32, is_output=True),
]


def golden(tensors, params):
    tensors["y"][...] = tensors["x"] * params["by"]


def test_run_test(scaled):
    specs = [ScalarSpec("by", 3.0, "float")]
    good = run_test(scaled, SPECS, golden, scalar_specs=specs, name="scaled")
    assert good.passed and good.error is None and good.execution_time > 0
    bad = run_test(scaled, SPECS, lambda t, p: t.update(y=t["x"]), scalar_specs=specs, name="wrong")
    assert not bad.passed and "Output 'y' does not match: 31 of 32" in bad.error
    broken = run_test(scaled, SPECS, golden)
    assert not broken.passed and broken.error.startswith("TypeError: ")


@pytest.mark.parametrize(
    ("result", "text"),
    [
        (RunResult(True), "PASS"),
        (RunResult(True, "name", execution_time=1.254), "PASS: name (1.25s)"),
        (RunResult(True, "name", execution_time=0.0), "PASS: name"),
        (RunResult(False, "name", "why"), "FAIL: name - why"),
        (RunResult(False, error="why"), "FAIL: why"),
    ],
)
def test_results_as_text(result, text):
    assert str(result) == text


# --- benchmark ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def stats(scaled):
    compiled = ir.compile(scaled, dump_passes=False)
    return benchmark(compiled, [ramp(4, 8), np.zeros((4, 8), F32), 2.0], rounds=7, warmup=2)


def test_times(stats):
    assert len(stats.device_wall_us) == len(stats.host_wall_us) == len(stats.invocations) == stats.rounds == 7
    assert stats.warmup == 2 and not stats.all_zero_device
    for device, host, busy in zip(stats.samples, stats.host_wall_us, stats.per_round("effective"), strict=True):
        assert 0 < busy <= device <= host
    assert stats.device_us_min <= stats.device_us_median <= stats.device_us_max
    assert stats.device_wall_us_mean == stats.device_us_mean
    assert stats.device_us_p(0) == stats.device_us_min and stats.device_us_p(100) == stats.device_us_max
    assert stats.per_round("host") == stats.host_wall_us and stats.per_round("union") == stats.device_wall_us
    assert list(stats.per_rank()) == [os.getpid()] and stats.dispatch_groups() == []
    assert stats.throughput == pytest.approx(7e6 / sum(stats.host_wall_us))
    assert "7 rounds after 2" in str(stats)
    assert stats.to_dict()["rounds"] == 7
    with pytest.raises(ValueError, match="Unknown metric 'best'"):
        stats.per_round("best")


def test_trees(stats, capsys):
    tree = stats.format_tree().splitlines()
    assert [line.split()[0] for line in tree] == ["chip.run", "bind", "runner_run.device_wall", "orch", "sched"]
    assert tree[3].startswith("    orch") and len({len(line) for line in tree}) == 1
    assert all(line.endswith(" us") for line in tree)
    assert stats.format_tree(us=False).splitlines()[0].endswith(" ns")
    stats.print_tree(1)
    stats.print_mean_tree(spread="minmax")
    assert capsys.readouterr().out.count("chip.run ") == 2
    assert "±" in stats.format_mean_tree()
    with pytest.raises(ValueError, match="launch must be in"):
        stats.format_tree(7)
    root = stats.invocations[0].root()
    assert root.name == "chip.run" and not root.is_device and root.attrs == {"tasks": 1}
    assert stats.invocations[0].by_name()["chip.run.runner_run.device_wall"].is_device


@pytest.mark.parametrize(
    ("options", "phrase"),
    [
        ({"rounds": 0}, "rounds must be positive"),
        ({"warmup": -1}, "warmup must not be negative"),
        ({"config": RunConfig(), "platform": "cpu"}, "not both"),
        ({"persistent": True}, "distributed"),
    ],
)
def test_refused_benchmarks(scaled, options, phrase):
    with pytest.raises(ValueError, match=phrase):
        benchmark(ir.compile(scaled, dump_passes=False), [], **options)


def test_the_log_level_is_restored(scaled):
    before = log_level()
    with pytest.raises(TypeError):
        benchmark(ir.compile(scaled, dump_passes=False), [])
    assert log_level() == before


# --- comparing ---------------------------------------------------------------------------------------------------------


def test_close():
    assert_close("y", ramp(4), ramp(4) * (1 + 1e-6))
    assert_close("y", np.array([np.nan, np.inf, -np.inf], F32), np.array([np.nan, np.inf, -np.inf], F32))
    assert_close("y", ramp(4, dtype=np.float16), ramp(4, dtype=np.float16) + np.float16(1e-3))
    assert_close("y", ramp(4, dtype=ml_dtypes.bfloat16), ramp(4))
    assert_close("y", ramp(3), np.array([0, 9, 2], F32), ignore=np.array([False, True, False]))
    assert_close("y", np.array([2**62], np.int64), np.array([2**62], np.int64))


@pytest.mark.parametrize(
    ("actual", "expected", "options"),
    [
        (ramp(4), ramp(4) + 1, {}),
        (ramp(4), ramp(5), {}),
        (np.array([1], np.int32), np.array([2], np.int32), {}),
        (np.array([2**62 + 1], np.int64), np.array([2**62], np.int64), {}),
        (np.array([np.inf], F32), np.array([-np.inf], F32), {}),
        (np.array([1.0], F32), np.array([np.inf], F32), {}),
        (np.array([np.nan], F32), np.array([1.0], F32), {}),
        (np.array([1.0], F32), np.array([np.nan], F32), {}),
        (np.array([np.nan], F32), np.array([np.nan], F32), {"equal_nan": False}),
        (np.array([1.01], F32), np.array([1.0], F32), {"tolerance": (1e-3, 0.0)}),
    ],
)
def test_not_close(actual, expected, options):
    with pytest.raises(AssertionError, match="Output 'y'"):
        assert_close("y", actual, expected, **options)


def test_the_report_of_a_mismatch():
    with pytest.raises(AssertionError) as caught:
        assert_close("y", ramp(6, 5), np.zeros((6, 5), F32), (1e-5, 1e-6))
    lines = str(caught.value).splitlines()
    assert lines[0] == "Output 'y' does not match: 29 of 30 elements differ (rtol=1e-05, atol=1e-06)"
    assert "largest absolute error 29" in lines[1]
    assert lines[2] == "  [1] [0, 1]: actual=1.0, expected=0.0" and len(lines) == 2 + 20 + 1
    assert lines[-1] == "  ... and 9 more"


# --- specs -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("init", "want"),
    [
        (None, [0, 0, 0]),
        (2, [2, 2, 2]),
        (1.5, [1.5, 1.5, 1.5]),
        (np.array([1, 2, 3]), [1, 2, 3]),
        (np.ones, [1, 1, 1]),
        (np.zeros, [0, 0, 0]),
        (lambda: [3, 2, 1], [3, 2, 1]),
    ],
)
@pytest.mark.parametrize("dtype", [np.float32, pl.BF16, pl.FP16])
def test_tensor_specs(init, want, dtype):
    made = TensorSpec("t", [3], dtype, init).create_tensor()
    assert made.shape == (3,) and made.dtype != np.float64
    np.testing.assert_array_equal(made.astype(np.float64), want)


def test_random_tensor_specs():
    made = TensorSpec("t", (100,), np.float16, np.random.default_rng(0).standard_normal).create_tensor()
    assert made.dtype == np.float16 and 0.5 < made.std() < 1.5


def test_bad_specs():
    with pytest.raises(ValueError, match=r"tensor 't' has shape \(3,\), its init_value \(4,\)"):
        TensorSpec("t", (3,), np.float32, ramp(4)).create_tensor()
    for init in ("zeros", object()):
        with pytest.raises(TypeError, match="tensor 't'"):
            TensorSpec("t", (3,), np.float32, init).create_tensor()
    with pytest.raises(ValueError, match="ctype must be one of"):
        ScalarSpec("n", 1, "int8")


# --- the log -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def levels():
    own, compiler = log_level(), get_log_level()
    yield
    configure_log(own)
    set_log_level(compiler)


@pytest.mark.parametrize(
    ("level", "number", "compiler"),
    [
        ("debug", 10, LogLevel.DEBUG),
        ("INFO", 20, LogLevel.INFO),
        ("timing", 25, LogLevel.WARN),
        ("Warning", 30, LogLevel.WARN),
        (40, 40, LogLevel.ERROR),
        ("null", 60, LogLevel.NONE),
    ],
)
def test_log_levels(level, number, compiler, levels):
    before = get_log_level()
    configure_log(level)
    assert log_level() == number == logging.getLogger("pypto.runtime").level and get_log_level() == before
    configure_log(level, sync_pypto=True)
    assert get_log_level() == compiler


def test_bad_log_levels(levels):
    with pytest.raises(ValueError, match="Unknown log level 'loud'. Expected one of debug"):
        configure_log("loud")
    with pytest.raises(TypeError):
        configure_log(1.5)


@pytest.mark.parametrize(("value", "number"), [("error", 40), ("", 25), ("loud", 25), ("15", 15)])
def test_the_environment_sets_the_log_level(value, number):
    script = "import pypto.runtime as r; print(r.log_level())"
    done = subprocess.run(
        [sys.executable, "-c", script],
        check=True, capture_output=True, text=True,
        env={**os.environ, "PYPTO_RUNTIME_LOG": value, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )  # fmt: skip
    assert done.stdout == f"{number}\n"
    assert ("PYPTO_RUNTIME_LOG is ignored" in done.stderr) is (value == "loud")


def test_importing_the_runtime_is_cheap():
    script = (
        "import sys, pypto.runtime, pypto.runtime.run_config; print(*(m in sys.modules for m in ('numpy', 'torch')))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], check=True, capture_output=True, text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )  # fmt: skip
    assert done.stdout == "False False\n"
