"""``pypto explain``: why tasks are ordered, which orders no byte needs, and what removes them."""

import json
import re

import pytest
from typer.testing import CliRunner

from pypto.diag.rich_render import painted
from pypto.runtime.task_records import (
    NOWHERE,
    AccessRecord,
    Box,
    BufferRecord,
    EdgeKind,
    EdgeRecord,
    HostRecord,
    Mode,
    RunRecord,
    TaskRecord,
)
from pypto.tools.cli import app
from pypto.tools.explain_orders import Explanation, Verdict, find_task
from pypto.tools.explain_report import Report, plain

HEAD = """import numpy as np
import pypto.language as pl


@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def band(self, x: pl.Tensor[[64, 32], pl.FP32], row: pl.Scalar[pl.INDEX],
             y: pl.InOut[pl.Tensor[[64, 32], pl.FP32]]) -> pl.Tensor[[64, 32], pl.FP32]:
        return pl.store(pl.load(x, [row, 0], [16, 32]), [row, 0], y)

    @pl.function(type=pl.FunctionType.InCore)
    def copy(self, x: pl.Tensor[[64, 32], pl.FP32], y: pl.Out[pl.Tensor[[64, 32], pl.FP32]]
             ) -> pl.Tensor[[64, 32], pl.FP32]:
        return pl.store(pl.load(x, [0, 0], [64, 32]), [0, 0], y)

    @pl.function(type=pl.FunctionType.InCore)
    def look(self, y: pl.InOut[pl.Tensor[[64, 32], pl.FP32]], z: pl.Out[pl.Tensor[[64, 32], pl.FP32]]
             ) -> pl.Tensor[[64, 32], pl.FP32]:
        return pl.store(pl.load(y, [0, 0], [64, 32]), [0, 0], z)

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, x: pl.Tensor[[64, 32], pl.FP32], out: pl.InOut[pl.Tensor[[64, 32], pl.FP32]]
             ) -> pl.Tensor[[64, 32], pl.FP32]:
"""


@pytest.fixture
def explain(tmp_path, monkeypatch):
    """Explains a program with this body of ``main`` (see ``HEAD``), or a whole file."""
    monkeypatch.chdir(tmp_path)

    def call(body, *options, code=0):
        lines = body.strip("\n").split("\n")
        text = body if body.startswith("import") else HEAD + "\n".join("        " + line for line in lines) + "\n"
        (tmp_path / "file.py").write_text(text)
        result = CliRunner().invoke(app, ["explain", "file.py", *options])
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        assert result.exit_code == code, result.output
        return result.stdout if code == 0 else result.output

    return call


BANDS = """
for row in pl.range(0, 32, 16):
    out = self.band(x, row, out)
return out
"""
FIRST = HEAD.count("\n") + 1  # line of the first statement of main


# --- orders that are needed ---------------------------------------------------------------------------------------------


def test_a_task_that_reads_what_another_wrote(explain):
    told = explain("""
mid = pl.create_tensor([64, 32], dtype=pl.FP32)
mid = self.copy(x, mid)
out = self.copy(mid, out)
return out
""")
    assert "P (@pl.program): 2 tasks, 1 order\n  0 of 1 order are not needed by any byte\n" in told
    assert "critical path: 2 of 2 tasks, parallelism 1.0: copy#0 → copy#1" in told
    assert "only common bytes" not in told  # it would say the same again
    assert told.index("Needed:") < told.index("1. copy#1 waits for copy#0: it reads what copy#0 wrote ('mid')")
    assert f"--> copy#0 file.py:{FIRST + 1}:15\n       mid = self.copy(x, mid)\n" in told
    assert f"--> copy#1 file.py:{FIRST + 2}:15\n       out = self.copy(mid, out)\n" in told
    assert "ordered by the rule of overlapping arguments: copy#0 is given mid[0:64, 0:32] to write, " in told
    assert "touched: copy#0 writes mid[0:64, 0:32]; copy#1 reads mid[0:64, 0:32]: common bytes" in told
    assert "= to remove it: nothing: copy#1 needs these values" in told


def test_a_task_that_writes_what_another_wrote(explain):
    told = explain("""
out = self.copy(x, out)
out = self.band(x, 16, out)
return out
""")
    assert "1. band#1 waits for copy#0: it writes what copy#0 wrote ('out')" in told
    assert "touched: copy#0 writes out[0:64, 0:32]; band#1 writes out[16:32, 0:32]: common bytes" in told
    assert "= to remove it: let band#1 write a tensor of its own instead of 'out'" in told


def test_a_task_that_overwrites_what_another_reads(explain):
    told = explain("""
mid = pl.create_tensor([64, 32], dtype=pl.FP32)
mid = self.copy(out, mid)
out = self.copy(x, out)
return out
""")
    assert "1. copy#1 waits for copy#0: it writes what copy#0 reads ('out')" in told
    assert (
        "ordered by the rule of source order: copy#0 is given out[0:64, 0:32] to read, copy#1 out[0:64, 0:32]" in told
    )
    assert "as written, every write is ordered: --after-passes" in told


def test_two_reasons_at_once(explain):
    told = explain("""
a = pl.create_tensor([64, 32], dtype=pl.FP32)
a = self.look(out, a)
out = self.band(a, 16, out)
return out
""")
    assert "band#1 waits for look#0: it writes what look#0 reads ('out') and reads what look#0 wrote ('a')" in told
    assert "= to remove it: nothing: band#1 needs these values" in told


def test_deps_are_named_with_their_line(explain):
    told = explain("""
mid = pl.create_tensor([64, 32], dtype=pl.FP32)
with pl.manual_scope():
    mid, made = pl.submit(self.copy, x, mid)
    out, _ = pl.submit(
        self.copy, mid, out,
        deps=[made],
    )
return out
""")
    assert "1. copy#1 waits for copy#0: it reads what copy#0 wrote ('mid')" in told
    assert f"ordered by the program: deps=[...] at file.py:{FIRST + 5}\n" in told
    assert "as written" not in told


# --- orders that no byte needs ------------------------------------------------------------------------------------------


def test_arguments_overlap_and_bytes_do_not(explain):
    told = explain(BANDS)
    assert "  1 of 1 order is not needed by any byte\n" in told
    assert "if only common bytes ordered tasks: 1 of 2 tasks, parallelism 2.0" in told
    assert (
        "Not needed by any byte:\n\n1. band#1 waits for band#0, and they share no byte that one of them writes" in told
    )
    assert "band#0 is given out[0:64, 0:32] to write, band#1 out[0:64, 0:32]" in told
    assert "touched: band#0 writes out[0:16, 0:32]; band#1 writes out[16:32, 0:32]: no common byte" in told
    assert "both only read" not in told  # x
    assert "make it pl.parallel" in told
    assert "pass slices: out[0:16, 0:32] to band#0, out[16:32, 0:32] to band#1" in told
    assert "pl.no_dep(out) in its call" in told
    assert "pl.manual_scope(), with deps=[...]" in told
    assert "manual_dep=True" not in told  # out is no tensor that the program creates


@pytest.mark.parametrize(
    "body, orders",
    [
        ("out = self.band(x, 0, out)\nout = self.band(x, 16, pl.no_dep(out))\nreturn out", 0),
        (
            "with pl.manual_scope():\n    out, a = pl.submit(self.band, x, 0, out)\n"
            "    out, b = pl.submit(self.band, x, 16, out)\nreturn out",
            0,
        ),
        ("out = self.band(x, 0, out)\nout = self.band(x, 16, out)\nreturn out", 1),
    ],
    ids=["no_dep", "manual scope", "neither"],
)
def test_what_is_advised_helps(explain, body, orders):
    assert f"2 tasks, {orders} order" in explain(body)


def test_a_tensor_that_the_program_creates(explain):
    body = """
mid = pl.create_tensor([64, 32], dtype=pl.FP32{})
mid = self.band(x, 0, mid)
mid = self.band(x, 16, mid)
return out
"""
    told = explain(body.format(""))
    assert "take 'mid' out of it altogether: pl.create_tensor(..., manual_dep=True), with deps=[...]" in told
    assert "2 tasks, 0 orders" in explain(body.format(", manual_dep=True"))


def test_pl_parallel_is_not_advised_where_it_is(explain):
    told = explain(BANDS.replace("pl.range", "pl.parallel"))
    assert "make it pl.parallel" not in told
    assert "perhaps nothing: the passes order no writes of a pl.parallel loop (see --after-passes)" in told


def test_a_parameter_that_says_too_much(explain):
    told = explain("""
a = pl.create_tensor([64, 32], dtype=pl.FP32)
b = pl.create_tensor([64, 32], dtype=pl.FP32)
a = self.look(x, a)
b = self.copy(x, b)
return out
""")
    assert "copy#1 waits for look#0, and they share no byte that one of them writes" in told
    assert "no conflict: both only read" in told  # there is nothing else to tell
    assert "= to remove it: 'look' writes nothing of 'x' in this run: if it never does, declare its parameter" in told


def test_deps_that_no_byte_needs(explain):
    told = explain("""
with pl.manual_scope():
    out, a = pl.submit(self.band, x, 0, out)
    out, b = pl.submit(self.band, x, 16, out, deps=[a])
return out
""")
    assert "1 of 1 order is not needed by any byte" in told
    assert f"= to remove it: leave the id of band#0 out of deps=[...] at file.py:{FIRST + 2}\n" in told
    assert "= or:" not in told  # no rule orders them besides


def test_deps_and_a_rule_both(explain):
    told = explain("""
out, a = pl.submit(self.band, x, 0, out)
out, b = pl.submit(self.band, x, 16, out, deps=[a])
return out
""")
    assert "ordered by the rule of overlapping arguments: band#0 is given" in told
    assert f"ordered by the program: deps=[...] at file.py:{FIRST + 1}\n" in told
    assert "= to remove it: leave the id of band#0 out of deps=" in told
    assert "= or: take 'out' of band#1 out of the automatic order" in told


def test_a_barrier_is_not_called_superfluous(explain):
    told = explain("""
mid = pl.create_tensor([64, 32], dtype=pl.FP32)
with pl.manual_scope():
    mid, made = pl.submit(self.copy, x, mid)
    fence = pl.system.task_dummy(deps=[made])
    out, _ = pl.submit(self.copy, mid, out, deps=[fence])
return out
""")
    assert "3 tasks, 2 orders\n  0 of 2 orders are not needed by any byte\n" in told
    assert "No common bytes, but they put other tasks in order:" in told
    assert "if only common bytes ordered tasks: 2 of 3 tasks" in told


def test_orders_of_the_same_lines_are_told_once(explain):
    told = explain(BANDS.replace("32, 16", "64, 16"))
    assert told.count("waits for") == 1
    assert "in the same way: band#2 after band#1, band#3 after band#2\n" in told


def test_limit(explain):
    body = "out = self.band(x, 0, out)\nout = self.band(x, 16, out)\nout = self.band(x, 32, out)\nreturn out"
    told = explain(body, "--limit", "1")
    assert told.count("waits for") == 1 and told.endswith("... and 1 more order (--limit)\n")
    assert explain(body, "--limit", "0").endswith("... and 2 more orders (--limit)\n")
    assert len(json.loads(explain(body, "--limit", "1", "--json"))[0]["orders"]) == 1


# --- the orchestrator ---------------------------------------------------------------------------------------------------


HOST = """
mid = pl.create_tensor([64, 32], dtype=pl.FP32)
mid = self.copy(x, mid)
first = pl.tensor.read(mid, [0, 0])
out = self.copy(x, out)
return out
"""


def test_the_orchestrator_waits(explain):
    told = explain(HOST)
    assert "by the orchestrator waits for copy#0: it reads what copy#0 wrote ('mid')" in told
    assert "ordered by the orchestrator, which waits for the writers of a tensor" in told
    pair = explain(HOST, "--tasks", "0", "1")
    assert "copy#1 comes after copy#0 through 1 other: copy#0 → " in pair
    assert "the two share no byte that one of them writes: only the tasks between need the order" in pair
    assert "the orchestrator does one thing at a time" in pair


# --- two tasks ----------------------------------------------------------------------------------------------------------


CHAIN = """
a = pl.create_tensor([64, 32], dtype=pl.FP32)
b = pl.create_tensor([64, 32], dtype=pl.FP32)
a = self.copy(x, a)
b = self.copy(a, b)
out = self.copy(b, out)
return out
"""


@pytest.mark.parametrize("names", [("0", "1"), ("#1", "copy#0")])
def test_two_tasks_with_a_direct_order(explain, names):
    told = explain(CHAIN, "--tasks", *names)
    assert told.startswith("copy#1 waits for copy#0: it reads what copy#0 wrote ('a')\n")
    assert told.count("waits for") == 1


def test_two_tasks_ordered_through_others(explain):
    told = explain(CHAIN, "--tasks", "2", "0")
    assert told.startswith("copy#2 comes after copy#0 through 1 other: copy#0 → copy#1 → copy#2\n")
    assert "copy#1 waits for copy#0" in told and "copy#2 waits for copy#1" in told


@pytest.mark.parametrize(
    "body, why",
    [
        (
            "with pl.manual_scope():\n    out, _ = pl.submit(self.band, x, 0, out)\n"
            "    out, _ = pl.submit(self.band, x, 16, out)\nreturn out",
            "no order by 'out': band#0 is in a manual scope, where only deps=[...] order tasks",
        ),
        (
            "out = self.band(x, 0, out)\nout = self.band(x, 16, pl.no_dep(out))\nreturn out",
            "no order by 'out': no_dep takes it out of the automatic order at band#1",
        ),
        (
            "m = pl.create_tensor([64, 32], dtype=pl.FP32, manual_dep=True)\nm = self.band(x, 0, m)\n"
            "m = self.band(x, 16, m)\nreturn out",
            "no order by 'm': it was created with manual_dep=True, so only deps=[...] order its users",
        ),
        (
            "m = pl.create_tensor([64, 32], dtype=pl.FP32)\nm = self.copy(x, m)\nout = self.copy(x, out)\nreturn out",
            "no order by 'x': both have it as an input only",
        ),
    ],
    ids=["manual scope", "no_dep", "manual_dep", "inputs"],
)
def test_two_tasks_without_order(explain, body, why):
    told = explain(body, "--tasks", "0", "1")
    assert re.match(r"(band|copy)#0 and (band|copy)#1 are not ordered: they may run at the same time\n", told)
    assert why in told
    assert "race" not in told


def test_a_race_is_called_one(explain):
    body = """
with pl.manual_scope():
    out, _ = pl.submit(self.copy, x, out)
    out, _ = pl.submit(self.copy, x, out)
return out
"""
    told = explain(body, "--tasks", "0", "1")
    assert "touched: copy#0 writes out[0:64, 0:32]; copy#1 writes out[0:64, 0:32]: common bytes" in told
    assert "this is a race: pypto run --check-races tells what is missing" in told
    assert "1 pair races: nothing orders tasks that touch the same bytes" in explain(body)


@pytest.mark.parametrize(
    "names, message",
    [
        (("0", "7"), "Error: P: there is no task 7: tasks are numbered from 0 to 2"),
        (("1", "copy#1"), "Error: P: --tasks needs two tasks, and both are copy#1"),
        (("copy", "0"), "Error: P: there are 3 tasks 'copy': say which, such as copy#0 or copy#2"),
        (("band#1", "0"), "Error: P: task 1 is copy#1, not band#1"),
        (("nobody", "0"), "Error: P: there is no task 'nobody': the tasks are copy; give a number"),
    ],
)
def test_tasks_that_are_none(explain, names, message):
    assert message in explain(CHAIN, "--tasks", *names, code=2)


def test_a_name_that_only_one_task_has(explain):
    told = explain("out = self.copy(x, out)\nout = self.band(x, 0, out)\nreturn out", "--tasks", "band", "copy")
    assert told.startswith("band#1 waits for copy#0")


def test_a_program_without_tasks(explain):
    assert "P (@pl.program): 0 tasks, 0 orders\n  the program launches no task\n" in explain("return out")
    assert "Error: P: the program launches no task" in explain("return out", "--tasks", "0", "1", code=2)


TWO = """import numpy as np
import pypto.language as pl


@pl.jit
def one(x: pl.Tensor[[16, 16], pl.FP32], out: pl.Out[pl.Tensor[[16, 16], pl.FP32]]):
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="first"):
        out = pl.store(pl.load(x, [0, 0], [8, 16]), [0, 0], out)
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="second"):
        out = pl.store(pl.load(x, [8, 0], [8, 16]), [8, 0], out)
    return out


@pl.jit
def two(x: pl.Tensor[[16, 16], pl.FP32], out: pl.Out[pl.Tensor[[16, 16], pl.FP32]]):
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="all"):
        out = pl.store(pl.load(x, [0, 0], [16, 16]), [0, 0], out)
    return out


def make_args(rng):
    return [rng.standard_normal((16, 16), dtype=np.float32), np.zeros((16, 16), np.float32)]
"""


def test_several_programs(explain):
    told = explain(TWO)
    assert "one (@pl.jit): 2 tasks, 1 order\n" in told and "\n\ntwo (@pl.jit): 1 task, 0 orders\n" in told
    assert "no_dep_args=[out] on its scope" in told  # second is a kernel scope, not a call
    assert "choose with --entry: one, two" in explain(TWO, "--tasks", "0", "1", code=2)
    assert explain(TWO, "--entry", "one", "--tasks", "0", "1").startswith("second#1 waits for first#0, and")


# --- behind the passes, JSON --------------------------------------------------------------------------------------------


def test_behind_the_passes_names_are_those_of_the_user(explain):
    told = explain(TWO, "--entry", "one", "--after-passes")
    assert re.match(r"one \(@pl.jit\) behind \d+ passes: 2 tasks, ", told)
    assert "__ssa" not in told
    assert "Error: --strategy must be one of" in explain(TWO, "--after-passes", "--strategy", "None", code=2)


def without_times(text):
    """JSON with the times of this run left out."""
    found = json.loads(text)
    for program in found:
        del program["critical_path_by_time"]
        for task in program["tasks"]:
            del task["ns"]
    return found


def test_json(explain):
    text = explain(BANDS, "--json")
    (program,) = without_times(text)
    assert program["program"] == "P (@pl.program)"
    assert program["count"] == {"orders": 1, "needed": 0, "indirect": 0, "unneeded": 1}
    assert program["critical_path"] == [0, 1] and len(program["critical_path_by_bytes"]) == 1
    (order,) = program["orders"]
    assert (order["producer"]["name"], order["consumer"]["number"]) == ("band", 1)
    assert order["producer"]["source"] == f"file.py:{FIRST + 1}:19"
    assert order["producer"]["text"] == "out = self.band(x, row, out)"
    assert order["verdict"] == "unneeded" and order["kinds"] == ["overlap"]
    assert order["arguments"] == [{"tensor": "out", "regions": ["out[0:64, 0:32]"] * 2}]
    assert order["shared"][1] == {
        "tensor": "out",
        "producer": ["writes out[0:16, 0:32]"],
        "consumer": ["writes out[16:32, 0:32]"],
        "conflict": [],
    }
    assert without_times(explain(BANDS, "--json")) == [program]


def test_json_of_two_tasks(explain):
    (program,) = json.loads(explain(CHAIN, "--tasks", "2", "0", "--json"))
    pair = program["pair"]
    assert pair["ordered"] is True and pair["path"] == [0, 1, 2] and len(pair["orders"]) == 2
    body = "m = pl.create_tensor([64, 32], dtype=pl.FP32)\nm = self.copy(x, m)\nout = self.copy(x, out)\nreturn out"
    (program,) = json.loads(explain(body, "--tasks", "0", "1", "--json"))
    assert program["pair"]["ordered"] is False and program["pair"]["path"] == [] and program["pair"]["race"] is False
    assert program["pair"]["not_ordered_because"] == {"x": "both have it as an input only"}


def test_two_runs_tell_the_same(explain):
    def steady():
        return re.sub(r"  by time: .*\n", "", explain(CHAIN))

    assert steady() == steady()


# --- records ------------------------------------------------------------------------------------------------------------


def run_of(tasks, edges, touches, hosts=()):
    """A record: ``touches`` are (task, mode, first byte, bytes) of one buffer; edges are explicit or (a, b, kind)."""
    return RunRecord(
        tasks=[TaskRecord(i, f"t{i}", f"t{i}", NOWHERE, 0, 0, 10, 10 + time) for i, time in enumerate(tasks)],
        hosts=[HostRecord(len(tasks) + i, "read", after) for i, after in enumerate(hosts)],
        buffers=[BufferRecord(0, "x", (1000,), "uint8", 1)],
        edges=[EdgeRecord(a, b, *(kind or [EdgeKind.EXPLICIT]), "") for a, b, *kind in edges],
        accesses=[AccessRecord(task, 0, mode, Box(low, (size,), (1,), 1)) for task, mode, low, size in touches],
    )


def verdicts(record):
    return {(o.edge.producer, o.edge.consumer): o.verdict.value for o in Explanation(record).orders}


def test_atomic_additions_need_no_order_among_themselves():
    touches = [(0, Mode.ATOMIC, 0, 8), (1, Mode.ATOMIC, 0, 8), (2, Mode.READ, 0, 8)]
    record = run_of([1] * 3, [(0, 1, EdgeKind.OVERLAP), (0, 2), (1, 2)], touches)
    assert verdicts(record) == {(0, 1): "unneeded", (0, 2): "needed", (1, 2): "needed"}


def test_an_edge_that_alone_keeps_others_in_order():
    # 0 and 3 conflict, and only the way over 1 and 2 orders them; 4 has nothing to do with anything
    touches = [(0, Mode.WRITE, 0, 8), (1, Mode.WRITE, 8, 8), (2, Mode.WRITE, 16, 8), (3, Mode.READ, 0, 8)]
    record = run_of([1] * 5, [(0, 1), (1, 2), (2, 3), (2, 4)], touches)
    assert verdicts(record) == {(0, 1): "indirect", (1, 2): "indirect", (2, 3): "indirect", (2, 4): "unneeded"}
    direct = run_of([1] * 5, [(0, 1), (1, 2), (2, 3), (2, 4), (0, 3)], touches)
    assert set(verdicts(direct).values()) == {"needed", "unneeded"}
    assert verdicts(direct)[0, 3] == "needed"


def test_an_edge_of_a_rule_is_judged_by_its_own_bytes():
    touches = [(0, Mode.WRITE, 0, 8), (1, Mode.WRITE, 8, 8), (2, Mode.READ, 0, 8)]
    record = run_of([1] * 3, [(0, 1, EdgeKind.OVERLAP), (1, 2, EdgeKind.OVERLAP)], touches)
    assert set(verdicts(record).values()) == {"unneeded"}
    assert Explanation(record).critical_by_bytes().numbers == [0, 2]  # which conflict, and then need an order


def test_chains_by_count_and_by_time():
    record = run_of([5, 1, 1, 100], [(0, 1), (1, 2), (0, 3)], [])
    found = Explanation(record)
    assert found.critical().numbers == [0, 1, 2]
    assert (found.critical_in_time().length, found.critical_in_time().numbers) == (105, [0, 3])


def test_what_is_submitted_after_a_wait_is_behind_it():
    record = run_of([1] * 3, [(0, 3, EdgeKind.SYNC)], [], hosts=[2])
    found = Explanation(record)
    assert found.path(0, 2) == [0, 3, 2]
    assert found.path(1, 2) is None
    assert found.critical().numbers == [0, 2]  # the orchestrator is no task


def test_the_shortest_way():
    record = run_of([1] * 6, [(0, 1), (1, 2), (2, 5), (0, 3), (3, 5), (0, 4), (4, 5)], [])
    assert Explanation(record).path(0, 5) == [0, 3, 5]


def test_many_regions_of_one_task_are_looked_up():
    pieces = [(0, Mode.WRITE, 10 * i, 5) for i in range(90)]
    record = run_of([1] * 3, [(0, 1), (0, 2)], [*pieces, (1, Mode.READ, 887, 2), (2, Mode.READ, 892, 2)])
    record.accesses += [AccessRecord(2, 0, Mode.READ, Box(895 + i, (1,), (1,), 1)) for i in range(1)]
    found = verdicts(record)
    assert found == {(0, 1): Verdict.UNNEEDED.value, (0, 2): Verdict.NEEDED.value}


def test_task_names():
    record = run_of([1], [], [])
    assert find_task(record, "t0") == 0
    assert find_task(record, "5") == "there is no task 5: there is only task 0"


def test_edges_of_the_compiler_and_of_storage():
    record = run_of([1] * 3, [(0, 1, EdgeKind.COMPILER), (1, 2)], [(1, Mode.WRITE, 0, 8), (2, Mode.READ, 0, 8)])
    record.edges[1] = EdgeRecord(1, 2, EdgeKind.ALLOCATION, "", 0, also=(EdgeKind.COMPILER,))
    told = plain([*Report("run", Explanation(record), set()).orders(9)])
    assert "1. t1#1 waits for t0#0, and they share no byte" in told
    assert "   ordered by the compiler, which found that it is needed\n" in told
    assert "   ordered by the rule of storage: t1#1 made 'x'\n   ordered by the compiler" in told


def test_colours_change_no_text():
    record = run_of([1] * 2, [(0, 1)], [(0, Mode.WRITE, 0, 8), (1, Mode.READ, 0, 8)])
    report = Report("run", Explanation(record), set())
    lines = [*report.summary(), *report.orders(9), *report.pair(0, 1)]
    assert painted(lines).plain == plain(lines)
    assert painted(lines).spans
