"""The profile of a compilation."""

import json
import threading
import time

import pytest

from pypto import compile_profiling as cp


def test_stages_nest():
    with cp.CompileProfiler() as profiler:
        assert cp.CompileProfiler.current() is profiler and cp.get_active_profiler() is profiler
        with profiler.stage("passes") as outer, profiler.stage("Simplify"):
            time.sleep(0.002)
        with profiler.stage("codegen"):
            profiler.add_stage_record(cp.StageRecord("kernel_codegen:k", 1.0, 1.5))
    assert cp.CompileProfiler.current() is None
    assert [s.name for s in profiler.stages] == ["passes", "codegen"]
    assert outer.duration >= outer.children[0].duration >= 0.002
    assert profiler.stages[1].children[0].to_dict() == {"name": "kernel_codegen:k", "seconds": 0.5, "children": []}
    assert profiler.total_seconds == pytest.approx(sum(s.duration for s in profiler.stages))


def test_the_innermost_profiler_records():
    with cp.CompileProfiler() as outer, cp.CompileProfiler() as inner:
        assert cp.get_active_profiler() is inner
        with cp.get_active_profiler().stage("x"):
            pass
    assert [s.name for s in inner.stages] == ["x"] and outer.stages == []


def test_each_thread_has_its_own():
    seen = []
    with cp.CompileProfiler():
        thread = threading.Thread(target=lambda: seen.append(cp.CompileProfiler.current()))
        thread.start()
        thread.join()
    assert seen == [None]


def test_a_stage_that_raises_is_timed_and_closed():
    profiler = cp.CompileProfiler()
    with pytest.raises(KeyError), profiler.stage("bad"):
        raise KeyError
    with profiler.stage("next"):
        pass
    assert [s.name for s in profiler.stages] == ["bad", "next"] and profiler.stages[0].end > 0


def test_text_and_files(tmp_path):
    profiler = cp.CompileProfiler()
    profiler.add_stage_record(cp.StageRecord("passes", 0.0, 0.0133, [cp.StageRecord("InlineFunctions", 0.0, 0.0002)]))
    profiler.add_stage_record(cp.StageRecord("codegen", 0.0, 0.0014))
    assert profiler.summary().splitlines() == [
        "PyPTO Compile Profile",
        "=" * 22,
        "Total: 14.7ms",
        "",
        f"{'passes':<28}{'13.3ms':>10} ( 90.5%)",
        f"{'  InlineFunctions':<28}{'200us':>10} (  1.4%)",
        f"{'codegen':<28}{'1.4ms':>10} (  9.5%)",
    ]
    profiler.write_report(tmp_path / "report")
    data = json.loads((tmp_path / "report" / "pipeline_profile.json").read_text())
    assert data["total_seconds"] == 0.0147 and data["stages"][0]["children"][0]["seconds"] == 0.0002
    assert (tmp_path / "report" / "pipeline_profile.txt").read_text() == profiler.summary() + "\n"
    assert json.loads(profiler.to_json()) == data


@pytest.mark.parametrize(("text", "asked"), [("1", True), ("TRUE", True), ("yes", True), ("0", False), ("", False)])
def test_the_environment(monkeypatch, text, asked):
    monkeypatch.setenv(cp.VARIABLE, text)
    assert cp.profiling_asked_for() is asked
    found = cp.get_active_profiler()
    assert (found is not None) is asked
    assert found is cp.get_active_profiler()
