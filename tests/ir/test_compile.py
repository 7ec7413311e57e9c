"""``ir.compile`` and compiled programs: options, the directory, use as a path, loading, several orchestrations."""

import importlib
import inspect
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import textwrap
import threading

import numpy as np
import pytest

import pypto.language as pl
from pypto import ir
from pypto.backend import BackendType, is_backend_configured
from pypto.ir.compiled_program import CompiledProgram, ParamInfo
from pypto.ir.enums import ParamDirection
from pypto.runtime import RunConfig

F32 = np.float32


@pytest.fixture(autouse=True)
def build_dir(tmp_path, monkeypatch):
    monkeypatch.setenv("PYPTO_PROG_BUILD_DIR", str(tmp_path / "build"))
    return tmp_path / "build"


@pl.program
class Double:
    @pl.function(type=pl.FunctionType.InCore)
    def twice(
        self, x: pl.Tensor[[4, 8], pl.FP32], by: pl.Scalar[pl.FP32], y: pl.Out[pl.Tensor[[4, 8], pl.FP32]]
    ) -> pl.Tensor[[4, 8], pl.FP32]:
        return pl.store(pl.mul(pl.load(x, [0, 0], [4, 8]), by), [0, 0], y)

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(
        self, x: pl.Tensor[[4, 8], pl.FP32], by: pl.Scalar[pl.FP32], y: pl.Out[pl.Tensor[[4, 8], pl.FP32]]
    ) -> pl.Tensor[[4, 8], pl.FP32]:
        y = self.twice(x, by, y)
        return y


@pl.program
class Two:
    @pl.function(type=pl.FunctionType.Orchestration)
    def first(self, x: pl.Tensor[[4], pl.FP32]) -> pl.Tensor[[4], pl.FP32]:
        return pl.add(x, 1.0)

    @pl.function(type=pl.FunctionType.Orchestration)
    def second(self, a: pl.Tensor[[4], pl.FP32], b: pl.Tensor[[4], pl.FP32]) -> pl.Tensor[[4], pl.FP32]:
        return pl.add(a, b)


def x():
    return np.arange(32, dtype=F32).reshape(4, 8)


# --- the function ------------------------------------------------------------------------------------------------------


def test_module_and_function():
    assert ir.compile is importlib.import_module("pypto.ir.compile")
    from pypto.ir.compile import compile as function

    assert ir.compile.compile is function
    assert list(inspect.signature(ir.compile).parameters) == [
        "program", "output_dir", "strategy", "dump_passes", "backend_type", "skip_ptoas", "verification_level",
        "diagnostic_phase", "disabled_diagnostics", "memory_planner", "enable_pypto_l0c_double_buffer", "profiling",
        "platform", "distributed_config", "analyze_auto_scopes_for_deps", "emit_source_loc", "dump_ptoas_passes",
        "runtime",
    ]  # fmt: skip
    assert all(p.kind is p.POSITIONAL_OR_KEYWORD for p in inspect.signature(function).parameters.values())


def test_compile_and_call():
    compiled = ir.compile(Double)
    y = np.zeros((4, 8), F32)
    assert compiled(x(), 3.0, y) is None
    np.testing.assert_array_equal(y, x() * 3)
    np.testing.assert_array_equal(compiled(x(), 3.0), x() * 3)
    assert ir.compile(Double, dump_passes=False)(x(), by=2.0)[0, 1] == 2


def test_what_can_be_compiled():
    @pl.jit
    def scaled(a: pl.Tensor[[4], pl.FP32], b: pl.Out[pl.Tensor[[4], pl.FP32]]):
        with pl.at(level=pl.Level.CORE_GROUP):
            b[:] = pl.mul(a, 2.0)
        return b

    np.testing.assert_array_equal(ir.compile(scaled)(np.ones(4, F32)), np.full(4, 2, F32))
    with pytest.raises(TypeError, match="expects an ir.Program.*got int"):
        ir.compile(3)


@pytest.mark.parametrize(
    ("options", "error", "phrase"),
    [
        (
            {"platform": "gpu"},
            ValueError,
            "Invalid platform 'gpu'. Expected 'cpu', 'a2a3sim', 'a2a3', 'a5sim', or 'a5'.",
        ),
        ({"backend_type": "950"}, TypeError, "backend_type must be a BackendType"),
        ({"strategy": "Fast"}, ValueError, "Unknown strategy"),
        ({"dump_passes": 2}, TypeError, "dump_passes must be a bool or a PassDumpLevel"),
    ],
)
def test_refused_options_leave_nothing_behind(options, error, phrase, build_dir):
    with pytest.raises(error, match=re.escape(phrase)):
        ir.compile(Double, **options)
    assert not build_dir.exists()


@pytest.mark.parametrize(
    ("options", "platform", "backend"),
    [
        ({}, "cpu", BackendType.Ascend910B),
        ({"backend_type": BackendType.Ascend950}, "cpu", BackendType.Ascend950),
        ({"platform": "a5sim"}, "a5sim", BackendType.Ascend950),
        ({"platform": "a2a3sim", "backend_type": BackendType.Ascend950}, "a2a3sim", BackendType.Ascend910B),
    ],
)
def test_platforms_that_run_on_the_host(options, platform, backend):
    compiled = ir.compile(Double, **options)
    assert (compiled.platform, compiled.backend_type) == (platform, backend)
    np.testing.assert_array_equal(compiled(x(), 2.0), x() * 2)
    assert not is_backend_configured(), "a compilation does not touch the process's default"


@pytest.mark.parametrize("platform", ["a2a3", "a5"])
def test_devices_compile_and_do_not_run(platform):
    compiled = ir.compile(Double, platform=platform)
    with pytest.raises(RuntimeError) as caught:
        compiled(x(), 2.0)
    text = str(caught.value)
    assert f"platform '{platform}'" in text and "Compilation succeeded" in text and str(compiled) in text
    assert 'RunConfig(platform="cpu")' in text and "from_dir" in text
    np.testing.assert_array_equal(compiled(x(), 2.0, config=RunConfig()), x() * 2)
    np.testing.assert_array_equal(CompiledProgram.from_dir(compiled, platform="cpu")(x(), 2.0), x() * 2)
    with pytest.raises(RuntimeError):
        CompiledProgram.from_dir(compiled)(x(), 2.0)


def test_the_report_says_what_was_not_done():
    compiled = ir.compile(Double, skip_ptoas=True, dump_passes=False)
    assert compiled.executor == compiled.report.executor == "interpreter"
    assert list(compiled.report.passes) == ir.PassManager().pass_names
    assert "no kernel code generation" in compiled.report.notes[0]
    assert compiled.report.notes[1].startswith("skip_ptoas=True has no effect")
    assert "interpreter" in str(compiled.report)


# --- attributes --------------------------------------------------------------------------------------------------------


def test_attributes():
    compiled = ir.compile(Double)
    assert compiled.program is Double and compiled.executed_program is Double
    assert compiled.param_names == ["x", "by", "y"] and compiled.output_indices == [2] and compiled.has_return
    infos = compiled.param_infos
    assert infos[0] == ParamInfo("x", ParamDirection.In, (4, 8), ir.FP32)
    assert infos[1] == ParamInfo("by", ParamDirection.In, None, ir.FP32) and infos[1].is_scalar
    assert infos[2].direction is ParamDirection.Out
    assert compiled.orchestration_names == []
    assert list(inspect.signature(compiled).parameters) == ["x", "by", "y", "config"]
    assert compiled.runtime_name == "tensormap_and_ringbuffer"
    assert compiled.chip_callable.name == "main"
    np.testing.assert_array_equal(compiled.load().run([x(), 2.0]), x() * 2)
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = compiled.nonsense


def test_builders():
    compiled = ir.compile(Double)
    bound, given, return_style = compiled.build_orch_args(x(), 2.0)
    assert return_style and len(given) == 3 and given[2].shape == (4, 8) and len(bound.values) == 3
    assert compiled.build_call_config(RunConfig(aicpu_thread_num=3))["aicpu_thread_num"] == 3
    assert compiled.build_call_config(RunConfig(aicpu_thread_num=3), aicpu_thread_num=5)["aicpu_thread_num"] == 5


KERNELS = """
import pypto.language as pl
@pl.program
class Kernels:
    @pl.function(type=pl.FunctionType.InCore)
    def a(self, x: pl.Tensor[[4, 8], pl.FP32], y: pl.Out[pl.Tensor[[4, 8], pl.FP32]]) -> pl.Tensor[[4, 8], pl.FP32]:
        return pl.store(pl.load(x, [0, 0], [4, 8]), [0, 0], y)
"""


def test_a_lone_kernel_is_the_entry():
    compiled = ir.compile(pl.parse(KERNELS))
    np.testing.assert_array_equal(compiled(x()), x())


def test_several_kernels_have_no_entry():
    found = pl.parse(KERNELS + KERNELS[KERNELS.index("    @pl") :].replace("def a", "def b"))
    compiled = ir.compile(found)
    with pytest.raises(ValueError, match="Program has no Orchestration function and multiple InCore functions"):
        _ = compiled.param_names
    with pytest.raises(ValueError, match="no Orchestration function"):
        compiled(x())
    assert not (compiled.output_dir / "compiled_meta.json").exists()


# --- the directory -----------------------------------------------------------------------------------------------------


def files(directory):
    root = pathlib.Path(directory)
    return sorted(str(p.relative_to(root)) for p in root.rglob("*") if p.is_file())


def test_files():
    compiled = ir.compile(Double)
    dumps = [f"passes_dump/{i:02d}_after_{name}.py" for i, name in enumerate(ir.PassManager().pass_names, 1)]
    assert files(compiled) == [
        "compiled_meta.json", "cpu/lowered.pyptoir", "cpu/manifest.json", "orchestration/main.cpp",
        "passes_dump/00_frontend.py", *dumps,
    ]  # fmt: skip
    code = (compiled.output_dir / "orchestration/main.cpp").read_text()
    assert code.startswith("// Orchestration Function: main\n")
    text = (compiled.output_dir / "passes_dump/00_frontend.py").read_text()
    assert text.endswith("\n")
    assert ir.structural_equal(pl.parse(text), Double)
    assert files(ir.compile(Double, dump_passes=False))[-1] == "orchestration/main.cpp"
    assert json.loads((compiled.output_dir / "compiled_meta.json").read_text()) == {
        "schema": 1,
        "params": [
            {"name": "x", "direction": "In", "shape": [4, 8], "dtype": "fp32"},
            {"name": "by", "direction": "In", "shape": None, "dtype": "fp32"},
            {"name": "y", "direction": "Out", "shape": [4, 8], "dtype": "fp32"},
        ],
        "num_return_types": 1,
        "platform": "cpu",
        "backend_type": "Ascend910B",
    }
    manifest = json.loads((compiled.output_dir / "cpu/manifest.json").read_text())
    assert manifest["entry"] == "main" and manifest["params"] == ["x", "by", "y"]


def test_the_dump_is_written_late():
    compiled = ir.compile(Double)
    directory = pathlib.Path(repr(compiled)[len("CompiledProgram(") : -1])
    assert not (directory / "passes_dump").exists()
    os.fspath(compiled)
    assert (directory / "passes_dump/00_frontend.py").exists()


def test_dumps_of_a_process_that_ends(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "import pypto.language as pl\n" + textwrap.dedent(KERNELS) + "\nfrom pypto import ir\nir.compile(Kernels)\n"
    )
    subprocess.run([sys.executable, str(script)], check=True, env=environment(tmp_path))
    (made,) = (tmp_path / "there").iterdir()
    assert made.name.startswith("Kernels_") and (made / "passes_dump/00_frontend.py").exists()


def environment(tmp_path):
    source = str(pathlib.Path(ir.__file__).parents[2])
    return {**os.environ, "PYPTO_PROG_BUILD_DIR": str(tmp_path / "there"), "PYTHONPATH": source}


def test_names_of_directories(build_dir, monkeypatch, tmp_path):
    made = [ir.compile(Double, dump_passes=False).output_dir for _ in range(3)]
    assert len(set(made)) == 3 and all(d.parent == build_dir for d in made)
    assert re.fullmatch(r"Double_\d{8}_\d{6}(_\d+)?", made[2].name)
    monkeypatch.setenv("PYPTO_PROG_BUILD_DIR", "")
    monkeypatch.chdir(tmp_path)
    assert ir.compile(Double, dump_passes=False).output_dir.parent == tmp_path / "build_output"


def test_threads_get_directories_of_their_own():
    made = []

    def work():
        made.append(ir.compile(Double, dump_passes=False).output_dir)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(made)) == 8


def test_a_directory_that_is_used_again(tmp_path):
    target = tmp_path / "mine" / "deep"
    (target / "orchestration").mkdir(parents=True)
    (target / "orchestration/host_orch.py").write_text("")
    (target / "kernel_config.py").write_text("")
    (target / "notes.txt").write_text("the user's own")
    compiled = ir.compile(Double, target, dump_passes=False)
    assert compiled == target
    assert files(target) == ["compiled_meta.json", "cpu/lowered.pyptoir", "cpu/manifest.json", "notes.txt"]
    ir.compile(Two, target, dump_passes=False)
    assert files(target)[-1] == "notes.txt" and "compiled_meta.json" not in files(target)
    ir.compile(Double, target, dump_passes=False)
    assert "compiled_meta.json" in files(target)
    assert not [f for f in files(target) if f.endswith(".tmp")]


def test_as_a_path():
    compiled = ir.compile(Double, dump_passes=False)
    assert str(compiled) == os.fspath(compiled) == str(compiled.output_dir)
    assert os.path.join(compiled, "kernels") == str(compiled.output_dir / "kernels")
    assert compiled == str(compiled) and compiled == compiled.output_dir and compiled != "elsewhere"
    assert compiled == CompiledProgram.from_dir(compiled) and hash(compiled) == hash(CompiledProgram.from_dir(compiled))
    assert compiled != ir.compile(Double, dump_passes=False)
    assert repr(compiled) == f"CompiledProgram({compiled.output_dir})"


# --- loading -----------------------------------------------------------------------------------------------------------


def test_from_dir():
    compiled = ir.compile(Double)
    loaded = CompiledProgram.from_dir(str(compiled))
    assert loaded.program is None and loaded.platform == "cpu" and loaded.param_infos == compiled.param_infos
    np.testing.assert_array_equal(loaded(x(), 2.0), x() * 2)
    assert CompiledProgram.from_dir(compiled, platform="a5sim").backend_type is BackendType.Ascend950


def test_a_moved_directory_in_a_new_process(tmp_path):
    """The source is gone; errors still name its lines."""
    source = tmp_path / "source.py"
    source.write_text(KERNELS)
    compiled = ir.compile(pl.loads(str(source)))
    moved = tmp_path / "moved"
    shutil.move(str(compiled), moved)
    source.unlink()
    script = (
        "import numpy as np; from pypto.ir.compiled_program import CompiledProgram\n"
        f"c = CompiledProgram.from_dir({str(moved)!r})\n"
        "x = np.ones((4, 8), np.float32); y = np.zeros_like(x); c(x, y); assert (x == y).all(); print('ran')"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], check=True, capture_output=True, text=True, env=environment(tmp_path)
    )
    assert done.stdout == "ran\n"
    assert "passes_dump/00_frontend.py" in files(moved)


def test_a_directory_without_a_program(tmp_path):
    with pytest.raises(FileNotFoundError, match="too old.*distributed.*several orchestrations"):
        CompiledProgram.from_dir(tmp_path)


CORRUPTIONS = {
    "(document)": ["[]", "{"],
    "schema": [{"schema": 2}, {"schema": True}, {"schema": None}],
    "params": [{"params": None}, {"params": {}}],
    "params[0]": [{"params": [3]}],
    "params[0].name": [{"params": [{"name": 1}]}],
    "params[0].direction": [{"params": [{"name": "x", "direction": "Sideways"}]}],
    "params[0].shape": [
        {"params": [{"name": "x", "direction": "In", "shape": [True], "dtype": "fp32"}]},
        {"params": [{"name": "x", "direction": "In", "shape": "4", "dtype": "fp32"}]},
        {"params": [{"name": "x", "direction": "In", "dtype": "fp32"}]},
    ],
    "params[0].dtype": [{"params": [{"name": "x", "direction": "In", "shape": None, "dtype": "fp99"}]}],
    "num_return_types": [{"num_return_types": -1}, {"num_return_types": True}, {"num_return_types": "1"}],
    "backend_type": [{"backend_type": "Ascend1"}, {"backend_type": 0}],
    "platform": [{"platform": 3}],
}


@pytest.mark.parametrize("field", CORRUPTIONS)
def test_damaged_meta(field):
    compiled = ir.compile(Double, dump_passes=False)
    path = compiled.output_dir / "compiled_meta.json"
    whole = json.loads(path.read_text())
    for change in CORRUPTIONS[field]:
        path.write_text(change if isinstance(change, str) else json.dumps({**whole, **change}))
        with pytest.raises(ValueError) as caught:
            CompiledProgram.from_dir(compiled.output_dir)
        text = str(caught.value)
        assert str(path) in text and f"'{field}'" in text and "recompile" in text


def test_a_changed_program():
    compiled = ir.compile(Double, dump_passes=False)
    path = compiled.output_dir / "cpu/lowered.pyptoir"
    path.write_bytes(path.read_bytes() + b"\0")
    with pytest.raises(ValueError, match="is not the file that cpu/manifest.json describes; recompile"):
        CompiledProgram.from_dir(compiled)
    (compiled.output_dir / "cpu/manifest.json").write_text("{}")
    with pytest.raises(ValueError, match="damaged"):
        CompiledProgram.from_dir(compiled)


# --- several orchestrations --------------------------------------------------------------------------------------------


def test_several_orchestrations():
    compiled = ir.compile(Two, dump_passes=False)
    assert compiled.orchestration_names == ["first", "second"]
    a = np.ones(4, F32)
    np.testing.assert_array_equal(compiled["first"](a), a + 1)
    np.testing.assert_array_equal(compiled.second(a, b=a), a + a)
    assert compiled["first"] is compiled.first
    assert compiled.second.param_names == ["a", "b"]
    sub = compiled.first
    assert sub.name == "first" and sub.output_dir == compiled.output_dir / "next_levels/first"
    assert repr(sub) == f"_SubChipCallable('first' @ {sub.output_dir})"
    np.testing.assert_array_equal(CompiledProgram.from_dir(sub.output_dir)(a), a + 1)
    for use in (lambda: compiled(a), lambda: compiled.param_names, lambda: compiled.build_orch_args(a), compiled.load):
        with pytest.raises(TypeError, match=r"\['first', 'second'\]"):
            use()
    with pytest.raises(KeyError, match="No orchestration 'third' under .*Available"):
        _ = compiled["third"]
    with pytest.raises(AttributeError):
        _ = compiled.third
    with pytest.raises(FileNotFoundError):
        CompiledProgram.from_dir(compiled)


# --- dumps as programs -------------------------------------------------------------------------------------------------


def test_validate_ir(capsys):
    compiled = ir.compile(Double)
    tensors = {"x": x(), "by": 2.0, "y": np.zeros((4, 8), F32)}
    results = compiled.validate_ir(tensors, {"y": x() * 2})
    assert [r.name[:2] for r in results] == [f"{i:02d}" for i in range(len(ir.PassManager().passes) + 1)]
    assert all(r.passed and r.differences == {"y": 0.0} for r in results)
    assert "==== 00_frontend ====" in capsys.readouterr().out
    assert not tensors["y"].any(), "the inputs are copied"
    with pytest.raises(AssertionError, match="00_frontend.*mismatch for key 'y', max abs diff .* exceeds tolerance"):
        compiled.validate_ir(tensors, {"y": x() * 3})
    with pytest.raises(KeyError, match="by"):
        compiled.validate_ir({"x": x(), "y": x()}, {})
    with pytest.raises(FileNotFoundError, match="dump_passes"):
        ir.compile(Double, dump_passes=False).validate_ir(tensors, {})
