"""The task graph and the time line of a run as files."""

import json

import numpy as np
from run_support import F32, program, ramp

from pypto import ir
from pypto.runtime import RunConfig


def test_files_of_a_run():
    compiled = ir.compile(program("y = self.copy(x, y)\ny = self.bump(y, 1.0)"), dump_passes=False)
    directory = compiled.output_dir / "dfx_outputs"
    compiled(ramp(4, 8), np.zeros((4, 8), F32))
    assert not directory.exists()
    compiled(ramp(4, 8), np.zeros((4, 8), F32), config=RunConfig(enable_dep_gen=True))
    assert [p.name for p in directory.iterdir()] == ["deps.json"]
    deps = json.loads((directory / "deps.json").read_text())
    assert [t["name"] for t in deps["tasks"]] == ["copy", "bump"]
    assert deps["edges"] == [{"producer": 0, "consumer": 1, "reason": "overlap with the write of y"}]
    assert deps["tasks"][0]["source"].startswith("case.py:")


def test_a_time_line():
    compiled = ir.compile(program("y = self.copy(x, y)\ny = self.bump(y, 1.0)"), dump_passes=False)
    compiled(ramp(4, 8), np.zeros((4, 8), F32), config=RunConfig(trace=True, schedule="random", seed=1))
    events = json.loads((compiled.output_dir / "dfx_outputs/trace.json").read_text())["traceEvents"]
    tasks = [e for e in events if e["ph"] == "X"]
    assert [e["name"] for e in tasks] == ["copy", "bump"]
    assert tasks[0]["ts"] == 0 and tasks[1]["ts"] >= tasks[0]["dur"] > 0
    flows = [e for e in events if e["cat"] == "edge"]
    assert [e["ph"] for e in flows] == ["s", "f"] and flows[0]["id"] == flows[1]["id"] == "0-1"
