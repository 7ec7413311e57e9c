"""The task graph and the time line of a run as files."""

import json

import numpy as np
import pytest
from run_support import F32, program, ramp

from pypto import ir
from pypto.diag.location import Location
from pypto.runtime import RaceError, RunConfig
from pypto.runtime.task_records import (
    Box,
    BufferRecord,
    EdgeKind,
    EdgeRecord,
    HostRecord,
    RunRecord,
    TaskRecord,
)
from pypto.runtime.trace import dependencies, trace_events


def test_files_of_a_run():
    compiled = ir.compile(program("y = self.copy(x, y)\ny = self.bump(y, 1.0)"), dump_passes=False)
    directory = compiled.output_dir / "dfx_outputs"
    compiled(ramp(4, 8), np.zeros((4, 8), F32))
    assert not directory.exists()
    compiled(ramp(4, 8), np.zeros((4, 8), F32), config=RunConfig(enable_dep_gen=True))
    assert [p.name for p in directory.iterdir()] == ["deps.json"]
    deps = json.loads((directory / "deps.json").read_text())
    assert [t["name"] for t in deps["tasks"]] == ["copy", "bump"]
    assert deps["edges"] == [
        {
            "producer": 0,
            "consumer": 1,
            "kind": "overlap",
            "reason": "overlap with the write of y",
            "regions": ["y[0:4, 0:8]", "y[0:4, 0:8]"],
        }
    ]
    assert deps["tasks"][0]["source"].startswith("case.py:")
    assert deps["orchestrator"] == []


def test_a_time_line():
    compiled = ir.compile(program("y = self.copy(x, y)\ny = self.bump(y, 1.0)"), dump_passes=False)
    compiled(ramp(4, 8), np.zeros((4, 8), F32), config=RunConfig(trace=True, schedule="random", seed=1))
    events = json.loads((compiled.output_dir / "dfx_outputs/trace.json").read_text())["traceEvents"]
    first, second = [e for e in events if e["ph"] == "X"]
    assert [first["name"], second["name"]] == ["copy", "bump"]
    assert second["ts"] >= first["ts"] + first["dur"] and first["dur"] > 0
    assert first["args"]["submitted_us"] == 0 <= first["args"]["ready_us"] <= first["ts"]
    assert second["args"]["submitted_us"] <= second["args"]["ready_us"] <= second["ts"]
    start, end = [e for e in events if e["cat"] == "edge"]
    assert (start["ph"], end["ph"]) == ("s", "f") and start["id"] == end["id"] == "0-1"
    # A viewer attaches an arrow to the event that encloses its end points.
    assert first["ts"] <= start["ts"] < first["ts"] + first["dur"] and end["ts"] == second["ts"]


def test_the_orchestrator_has_its_place():
    found = program("y = self.copy(x, y)\nv = pl.read(y, [0, 1])\ny = self.scale(x, v, y)")
    compiled = ir.compile(found, dump_passes=False)
    for schedule in ("default", "random"):
        compiled(ramp(4, 8), np.zeros((4, 8), F32), config=RunConfig(trace=True, schedule=schedule))
        directory = compiled.output_dir / "dfx_outputs"
        deps = json.loads((directory / "deps.json").read_text())
        (host,) = deps["orchestrator"]
        assert (host["id"], host["name"], host["after"]) == (2, "tensor.read", 1)
        assert host["source"].startswith("case.py:")
        waits = [e for e in deps["edges"] if e["kind"] == "sync"]
        assert waits == [{"producer": 0, "consumer": 2, "kind": "sync", "reason": "the orchestrator waits"}]
        events = json.loads((directory / "trace.json").read_text())["traceEvents"]
        assert [e["name"] for e in events if e["cat"] == "host"] == ["tensor.read"]


def test_files_are_written_of_a_run_that_failed_for_races():
    found = program(
        "with pl.manual_scope():\n    y, _ = pl.submit(self.copy, x, y)\n    y, _ = pl.submit(self.bump, y, 1.0)"
    )
    compiled = ir.compile(found, dump_passes=False)
    with pytest.raises(RaceError):
        compiled(ramp(4, 8), np.zeros((4, 8), F32), config=RunConfig(check_races=True, enable_dep_gen=True))
    assert json.loads((compiled.output_dir / "dfx_outputs/deps.json").read_text())["edges"] == []


# --- records made by hand, as of an executor with several workers ------------------------------------------------------


def several_workers():
    at = Location("case.py", 3, 1)
    whole = Box(0, (4, 8), (32, 4), 4)
    return RunRecord(
        tasks=[
            TaskRecord(0, "a", "a", at, 1_000, 1_000, 2_000, 5_000, 0),
            TaskRecord(1, "b", "b", at, 1_500, 1_500, 2_000, 4_000, 1),
            TaskRecord(2, "c", "c", at, 1_700, 5_000, 6_000, 7_000, 1),
            TaskRecord(3, "never ran", "d", at, 1_800),
        ],
        hosts=[HostRecord(4, "tensor.read", 3, at, 7_500)],
        buffers=[BufferRecord(0, "y", (4, 8), "float32", 4)],
        edges=[
            EdgeRecord(0, 2, EdgeKind.OVERLAP, "overlap with the write of y", 0, whole, Box(0, (2, 8), (32, 4), 4)),
            EdgeRecord(1, 2, EdgeKind.COMPILER, "compiler"),
            EdgeRecord(2, 4, EdgeKind.SYNC, "the orchestrator waits"),
            EdgeRecord(1, 3, EdgeKind.EXPLICIT, "explicit"),
        ],
    )


def test_one_track_for_each_worker():
    events = trace_events(several_workers())["traceEvents"]
    names = {e["tid"]: e["args"]["name"] for e in events if e["ph"] == "M"}
    tasks = {e["name"]: e for e in events if e["ph"] == "X"}
    assert sorted(tasks) == ["a", "b", "c"]
    assert [names[tasks[t]["tid"]] for t in "abc"] == ["worker 0", "worker 1", "worker 1"]
    assert (tasks["a"]["ts"], tasks["a"]["dur"], tasks["c"]["args"]["ready_us"]) == (1, 3, 4)
    flows = [(e["id"], e["ph"], e["tid"]) for e in events if e["cat"] == "edge"]
    assert flows == [("0-2", "s", 0), ("0-2", "f", 1), ("1-2", "s", 1), ("1-2", "f", 1)]
    (host,) = [e for e in events if e["cat"] == "host"]
    assert names[host["tid"]] == "orchestrator" and host["ts"] == 6.5


def test_ready_tasks_are_counted():
    counts = [(e["ts"], e["args"]["ready"]) for e in trace_events(several_workers())["traceEvents"] if e["ph"] == "C"]
    assert counts == [(0, 1), (0.5, 2), (1, 0), (4, 1), (5, 0)]


def test_an_edge_tells_the_regions():
    edges = dependencies(several_workers())["edges"]
    assert [e["kind"] for e in edges] == ["overlap", "compiler", "sync", "explicit"]
    assert edges[0]["regions"] == ["y[0:4, 0:8]", "y[0:2, 0:8]"]


@pytest.mark.parametrize(
    ("box", "text"),
    [
        (Box(0, (4, 8), (32, 4), 4), "y[0:4, 0:8]"),
        (Box(0, (32,), (4,), 4), "y[0:4, 0:8]"),
        (Box(36, (2, 3), (32, 4), 4), "y[1:3, 1:4]"),
        (Box(4, (4, 4), (32, 8), 4), "y[0:4, 1:8:2]"),
        (Box(4, (8, 4), (4, 32), 4), "bytes 4:132 of y"),  # reaches past the last column
        (Box(0, (8, 4), (4, 32), 4), "y[0:4, 0:8]"),
        (Box(40, (), (), 4), "y[1:2, 2:3]"),
        (Box(8, (16,), (4,), 4), "bytes 8:72 of y"),
        (Box(0, (6,), (2,), 2), "bytes 0:12 of y"),
    ],
)
def test_regions_in_elements(box, text):
    assert BufferRecord(0, "y", (4, 8), "float32", 4).describe(box) == text
