"""What ``ir.compile`` and ``kernel.lower`` hand on to the passes."""

import json

import pytest
from passes_kit import Counting

import pypto.language as pl
from pypto import ir, passes
from pypto.passes import MemoryPlanner, PassContext, RuntimeKind, VerificationLevel

PROGRAM = """
@pl.program
class Doubled:
    @pl.function
    def main(self, x: pl.Tensor[[16, 16], pl.FP32], y: pl.Out[pl.Tensor[[16, 16], pl.FP32]]) -> pl.Tensor[[16, 16], pl.FP32]:
        with pl.at(level=pl.Level.CORE_GROUP, name_hint="double"):
            y = pl.store(pl.mul(pl.load(x, [0, 0], [16, 16]), 2.0), [0, 0], y)
        return y
"""


@pytest.fixture
def program():
    return pl.parse(PROGRAM, "doubled.py")


def test_compile_lowers_and_keeps_what_was_given(program, tmp_path):
    compiled = ir.compile(program, output_dir=tmp_path)
    assert compiled.program is program and compiled.executed_program is program
    assert [f.name for f in compiled.lowered_program.functions.values()] == ["double", "main"]
    assert list(compiled.report.passes) == ir.PassManager().pass_names


def test_compile_dumps_by_default(program, tmp_path):
    names = ir.PassManager().pass_names
    out = ir.compile(program, output_dir=tmp_path).output_dir
    found = sorted(p.name for p in (out / "passes_dump").iterdir())
    assert found == sorted(["00_frontend.py", *(f"{i:02d}_after_{n}.py" for i, n in enumerate(names, 1))])
    assert "def double(" in (out / "passes_dump" / found[-1]).read_text()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("verification_level", VerificationLevel.NONE),
        ("diagnostic_phase", passes.DiagnosticPhase.NONE),
        ("memory_planner", MemoryPlanner.PTOAS),
        ("runtime", RuntimeKind.HOST_BUILD_GRAPH),
    ],
)
def test_a_choice_that_an_active_context_makes_too(program, tmp_path, name, value):
    out = tmp_path / "out"
    with PassContext([]), pytest.raises(RuntimeError, match=f"compile.. was called with {name} while a PassContext is"):
        ir.compile(program, output_dir=out, **{name: value})
    assert not out.exists()


def test_the_fields_of_the_active_context_hold(program, tmp_path):
    seen = []
    watch = passes.CallbackInstrument(lambda _p, _program: seen.append(PassContext.current()))
    with PassContext([watch], VerificationLevel.NONE, runtime=RuntimeKind.HOST_BUILD_GRAPH):
        ir.compile(program, output_dir=tmp_path)
    assert seen and all(c.get_verification_level() is VerificationLevel.NONE for c in seen)
    assert all(c.get_runtime() is RuntimeKind.HOST_BUILD_GRAPH for c in seen)


def test_the_level_reaches_the_passes(program, tmp_path, monkeypatch):
    levels = []
    original = passes.PassManager.run_passes

    def note(self, *args, **kwargs):
        levels.append(PassContext.current().get_verification_level())
        return original(self, *args, **kwargs)

    monkeypatch.setattr(passes.PassManager, "run_passes", note)
    ir.compile(program, output_dir=tmp_path, verification_level=VerificationLevel.ROUNDTRIP)
    assert levels == [VerificationLevel.ROUNDTRIP]


def test_profiling_writes_a_report(program, tmp_path):
    ir.compile(program, output_dir=tmp_path, profiling=True)
    report = json.loads((tmp_path / "report" / "pipeline_profile.json").read_text())
    [stage] = [s for s in report["stages"] if s["name"] == "passes"]
    assert [c["name"] for c in stage["children"]] == ir.PassManager().pass_names
    assert (tmp_path / "report" / "pipeline_profile.txt").read_text().startswith("PyPTO Compile Profile\n======")


def test_profiling_by_the_environment(program, tmp_path, monkeypatch):
    monkeypatch.setenv("PYPTO_COMPILE_PROFILING", "1")
    ir.compile(program, output_dir=tmp_path)
    assert (tmp_path / "report" / "pipeline_profile.json").exists()


def test_what_a_pass_finds_reaches_the_caller(tmp_path):
    from pypto.passes import VerificationError

    class Refuse(passes.PassInstrument):
        def run_after_pass(self, pass_obj, program):
            raise VerificationError("no", pass_name=pass_obj.get_name())

    with PassContext([Refuse()]), pytest.raises(VerificationError):
        ir.compile(Counting, output_dir=tmp_path)


def test_reports_of_a_compilation_have_their_folder(program, tmp_path, monkeypatch):
    folders = []
    original = passes.PassManager.run_passes

    def note(self, *args, **kwargs):
        instruments = PassContext.current().get_instruments()
        folders.extend(i.get_output_dir() for i in instruments if isinstance(i, passes.ReportInstrument))
        return original(self, *args, **kwargs)

    monkeypatch.setattr(passes.PassManager, "run_passes", note)
    out = ir.compile(program, output_dir=tmp_path).output_dir
    assert folders == [str(out / "report")]
