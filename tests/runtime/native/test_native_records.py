"""Records of native runs: the shared form, time lines, and races."""

import json

import numpy as np
import pytest
from native_kit import Suite

from pypto.runtime.errors import RaceError
from pypto.runtime.host_executor import RunOptions
from pypto.runtime.task_records import EdgeKind, Mode
from pypto.runtime.trace import write_records

suite = Suite("native_records", include='#include "pto_kernel_api.h"')
# Writes its band of the whole tensor, and says so.
suite.kernel(
    "band",
    """
    const ChipTensor& whole = *reinterpret_cast<ChipTensor*>(args[0]);
    const uint32_t row = static_cast<uint32_t>(args[1]), rows = static_cast<uint32_t>(args[2]);
    const uint32_t shape[2] = {rows, whole.shapes[1]}, offset[2] = {row, 0};
    const ChipTensor view = whole.view(shape, offset);
    pto_touch(view, PtoAccess::WRITE);
    for (uint64_t i = 0; i < view.numel(); ++i) view.data<float>()[i] = static_cast<float>(row);
    """,
)
suite.entry(
    "bands",
    """
    PTO2_SCOPE() {
        for (int64_t i = 0; i < 4; ++i) {
            CoreTaskArgs task;
            task.add_no_dep(x);
            task.add_scalar(i * stride);
            task.add_scalar(rows);
            rt_submit_aiv_task(id::band, task);
        }
    }
    """,
    scalars="stride rows",
)
suite.entry(
    "mixed_edges",
    """
    PTO2_SCOPE() {
        uint32_t shape[2] = {4, 8};
        TensorCreateInfo info(shape, 2, DataType::FLOAT32);
        CoreTaskArgs first;
        first.add_output(info);
        first.add_inout(x);
        TaskOutputTensors outs = rt_submit_aiv_task(id::nop, first);
        CoreTaskArgs second;
        second.add_input(outs.get_ref(0), x);
        TaskOutputTensors done = rt_submit_aiv_task(id::nop, second);
        PTO2TaskId ids[1] = {done.task_id()};
        CoreTaskArgs third;
        third.set_dependencies(ids, 1);
        rt_submit_aiv_task(id::nop, third);
        uint32_t where[2] = {0, 0};
        get_tensor_data<float>(x, 2, where);
        CoreTaskArgs fourth;
        fourth.add_no_dep(x);
        rt_submit_aiv_task(id::nop, fourth);
    }
    """,
)


def program(entry):
    return suite.program(entry, arguments=["x"])


@pytest.mark.parametrize("workers", [1, 2])
def test_edges_with_reasons(workers):
    x = np.zeros((4, 8), np.float32)
    made = program("mixed_edges")
    record = made.record(made.run([x], [], RunOptions(workers=workers, trace=True)))
    found = [(edge.producer, edge.consumer, edge.kind, edge.reason) for edge in record.edges]
    assert found == [
        (0, 1, EdgeKind.ALLOCATION, "allocation of output of task #0"),
        (1, 2, EdgeKind.EXPLICIT, "explicit"),
        (0, 4, EdgeKind.SYNC, "sync of x[0:1, 0:1]"),
    ]
    assert [str(task) for task in record.tasks] == ["nop#0", "nop#1", "nop#2", "nop#3"]
    assert [(host.number, host.after) for host in record.hosts] == [(4, 3)]
    assert all(t.submitted <= t.ready <= t.started <= t.ended for t in record.tasks)


def test_files_of_a_run(tmp_path):
    x = np.zeros((4, 8), np.float32)
    made = program("mixed_edges")
    write_records(tmp_path, made.record(made.run([x], [], RunOptions(workers=2, trace=True))), True, True)
    [deps] = tmp_path.rglob("deps.json")
    [trace] = tmp_path.rglob("trace.json")
    assert len(json.loads(deps.read_text())["tasks"]) == 4
    names = [event["name"] for event in json.loads(trace.read_text())["traceEvents"]]
    assert "nop" in " ".join(names)


def test_bands_that_do_not_overlap_do_not_race():
    x = np.zeros((16, 8), np.float32)
    program("bands").run([x], [4, 4], RunOptions(workers=2, check_races=True))
    np.testing.assert_array_equal(x, np.repeat([0, 4, 8, 12], 4)[:, None] * np.ones((1, 8), np.float32))


def test_bands_that_overlap_race():
    with pytest.raises(RaceError) as caught:
        program("bands").run([np.zeros((16, 8), np.float32)], [3, 4], RunOptions(workers=1, check_races=True))
    races = [(race.first, race.second, race.first_mode, race.second_mode) for race in caught.value.races]
    assert races == [(0, 1, Mode.WRITE, Mode.WRITE), (1, 2, Mode.WRITE, Mode.WRITE), (2, 3, Mode.WRITE, Mode.WRITE)]
    assert "x[3:4, 0:8]" in str(caught.value) or "x[3:7, 0:8]" in str(caught.value)
