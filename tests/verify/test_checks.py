"""Warnings and performance hints: what is found, when, and how it is written."""

import os
import subprocess
import sys

import pytest
from verify_kit import main, nodes, program

import pypto.language as pl
from pypto import ir
from pypto.backend import BackendType
from pypto.backend.selection import using_backend
from pypto.diag.logging import LogLevel, _clear_thread_log_level, _set_thread_log_level
from pypto.verify.checks import (
    DiagnosticCheck,
    DiagnosticCheckRegistry,
    DiagnosticCheckSet,
    DiagnosticPhase,
    check_set,
    default_disabled_checks,
    emit,
    get_default_diagnostic_phase,
)
from pypto.verify.checks.registry import RULES
from pypto.verify.diagnostics import Diagnostic, DiagnosticSeverity

C = DiagnosticCheck
PRE, POST = DiagnosticPhase.PRE_PIPELINE, DiagnosticPhase.POST_PIPELINE
ALL = DiagnosticCheckRegistry.get_all_checks()


def run(node, *checks, phase=PRE):
    return DiagnosticCheckRegistry.run_checks(check_set(*checks) if checks else ALL, phase, node)


def lines_of(found, node):
    """Findings as (code, line of the body)."""
    first = main(node).body.stmts[0].span.begin_line
    return [(d.error_code, d.span.begin_line - first + 1) for d in found]


# --- sets and the registry --------------------------------------------------------------------------------------------


def test_sets():
    some = DiagnosticCheckSet()
    assert some.empty() and str(some) == "{}"
    some.insert(C.OutParamWriteDropped)
    some.insert(C.UnusedVariable)
    some.remove(C.UnusedControlFlowResult)
    assert some.to_list() == [C.UnusedVariable, C.OutParamWriteDropped]
    assert repr(some) == "{UnusedVariable, OutParamWriteDropped}"
    assert some.contains(C.UnusedVariable) and not some.contains(C.UnusedControlFlowResult)
    assert some.difference(check_set(C.UnusedVariable)) == check_set(C.OutParamWriteDropped)
    assert some.union_with(check_set(C.UnusedControlFlowResult)) == DiagnosticCheckRegistry.get_warning_checks()
    assert some != check_set() and not some.empty()
    with pytest.raises(TypeError, match="unhashable"):
        hash(some)


def test_the_registry():
    assert ALL.to_list() == list(C)
    assert DiagnosticCheckRegistry.get_perf_hint_checks() == check_set(C.TileInnermostDimGranularity)
    warnings = DiagnosticCheckRegistry.get_warning_checks()
    assert warnings == ALL.difference(check_set(C.TileInnermostDimGranularity))
    assert default_disabled_checks() == check_set(C.UnusedControlFlowResult)
    table = {(rule.name, rule.code, rule.phase, rule.hint_code) for rule in RULES.values()}
    assert table == {
        ("UnusedVariableCheck", 1001, PRE, ""),
        ("UnusedControlFlowResultCheck", 1002, PRE, ""),
        ("OutParamWriteDropped", 1003, PRE, ""),
        ("TileInnermostDimGranularity", 1, POST, "PH001"),
    }


@pytest.mark.parametrize("value", ["none", "PRE_PIPELINE", "post_pass", "post_pipeline", "nonsense", ""])
def test_the_default_phase(value):
    code = "from pypto.verify.checks import get_default_diagnostic_phase as f; print(f().name)"
    environment = {**os.environ, "PYPTO_WARNING_LEVEL": value}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    known = value.upper() if value.upper() in DiagnosticPhase.__members__ else "PRE_PIPELINE"
    assert done.stdout.strip() == known
    assert get_default_diagnostic_phase() is get_default_diagnostic_phase()


def test_each_check_runs_in_its_phase_only():
    node = program("spare = pl.mul(x, 0.5)\nreturn y", kind="Opaque")
    assert [d.error_code for d in run(node)] == [1001]
    for phase in (DiagnosticPhase.NONE, DiagnosticPhase.POST_PASS, POST):
        assert run(node, phase=phase) == []
    assert run(node, C.OutParamWriteDropped) == []


# --- unused variables -------------------------------------------------------------------------------------------------


def test_an_unused_variable():
    node = program("spare = pl.mul(x, 0.5)\nz = pl.add(x, 1.0)\nw = pl.assemble(y, z, [0, 0])\nreturn w", kind="Opaque")
    [found] = run(node)
    assert found.message == "Unused variable 'spare' in function 'main'"
    assert (found.severity, found.rule_name) == (DiagnosticSeverity.Warning, "UnusedVariableCheck")
    assert lines_of([found], node) == [(1001, 1)]


def test_an_unused_result_of_a_call_and_of_a_submit():
    for launch in ("r = self.k(x, y)", "r, t = pl.submit(self.k, x, y)"):
        node = program(f"{launch}\nreturn x", kind="Opaque")
        names = [d.message.split("'")[1] for d in run(node)]
        assert names[0] == "r" and set(names) <= {"r", "t"}


def test_a_variable_assigned_twice_is_reported_once():
    node = program("a = pl.mul(x, 0.5)\na = pl.mul(x, 0.7)\nz = self.k(x, y)\nreturn z", kind="Opaque")
    assert lines_of(run(node), node) == [(1001, 1)]


@pytest.mark.parametrize(
    "body",
    [
        "m = n * 2\na = pl.slice(x, [8, 8], [0, m])\ny = self.k(a, y)\nreturn y",
        "m = n * 2\nfor i in pl.range(m):\n    y = self.k(x, y)\nreturn y",
        "m = n * 2\nif m > 2:\n    y = self.k(x, y)\nreturn y",
        "for i in pl.range(4):\n    y = self.k(x, y)\nreturn y",
        "with pl.at(level=pl.Level.CORE_GROUP) as t:\n    y = pl.assemble(y, x, [0, 0])\n"
        "with pl.at(level=pl.Level.CORE_GROUP, deps=[t]):\n    y = pl.assemble(y, x, [0, 0])\nreturn y",
        "_ = pl.mul(x, 0.5)\n_spare = pl.mul(x, 0.5)\ny = self.k(x, y)\nreturn y",
    ],
    ids=["operand", "bound", "condition", "loop variable", "dependency", "underscore"],
)
def test_nothing_is_unused(body):
    assert run(program(body, kind="Opaque")) == []


def test_types_and_memory_references_are_uses():
    m, base = ir.Var("m", ir.ScalarType(ir.INDEX)), ir.Var("mem_vec_0", ir.PtrType())
    here = ir.Span("hand.py", 3, 5)
    memref = ir.MemRef(base, 0, 256)
    tile = ir.TileType([8, 8], ir.FP32, memref, ir.TileView([8, m]), ir.MemorySpace.Vec)
    a = ir.Var("a", tile)
    stmts = [
        ir.AssignStmt(m, ir.ConstInt(4, ir.INDEX), here),
        ir.AssignStmt(base, ir.Call(ir.Op("tile.alloc"), [], ir.PtrType(), here), here),
        ir.AssignStmt(a, ir.Call(ir.Op("f"), [], tile, here), here),
    ]
    node = ir.Program([ir.Function("main", [], [], ir.SeqStmts([*stmts, ir.ReturnStmt([a], here)]), here)], "P")
    assert run(node) == []
    alone = ir.Program([ir.Function("main", [], [], ir.SeqStmts(stmts[:2]), here)], "P")
    assert [d.message.split("'")[1] for d in run(alone)] == ["m", "mem_vec_0"]


def test_unused_results():
    body = (
        "if n > 2:\n    r = pl.yield_(n)\nelse:\n    r = pl.yield_(n)\n"
        "for i, (c,) in pl.range(4, init_values=(n,)):\n    s = pl.yield_(c)\n"
        "for (c,) in pl.while_(init_values=(n,)):\n    pl.cond(c > 0)\n    t = pl.yield_(c)\n"
        "y = self.k(x, y)\nreturn y"
    )
    node = program(body, kind="Opaque")
    found = run(node, C.UnusedControlFlowResult)
    assert [d.message for d in found] == [f"Unused variable '{v}' in function 'main'" for v in "rst"]
    assert {d.rule_name for d in found} == {"UnusedControlFlowResultCheck"}
    assert lines_of(found, node) == [(1002, 1), (1002, 5), (1002, 7)]
    assert run(node, C.UnusedVariable) == []
    used = program(
        "if n > 2:\n    r = pl.yield_(n)\nelse:\n    r = pl.yield_(n)\nif r > 2:\n    y = self.k(x, y)\nreturn y",
        kind="Opaque",
    )
    assert run(used) == []


# --- dropped writes ---------------------------------------------------------------------------------------------------


DROPPED = {
    "straight": ("y = pl.add(x, 1.0)\nreturn y", 1),
    "both branches": ("if n > 2:\n    y = pl.add(x, 1.0)\nelse:\n    y = pl.mul(x, 2.0)\nreturn y", 2),
    "loop that runs": ("for i in pl.range(4):\n    y = pl.add(x, 1.0)\nreturn y", 2),
    "written behind": ("y = pl.add(x, 1.0)\ny = pl.assemble(y, x, [0, 0])\nreturn y", 1),
    "scope": ("with pl.at(level=pl.Level.CORE_GROUP):\n    y = pl.add(x, 1.0)\nreturn y", 2),
}
KEPT = {
    "in place": "y = pl.assemble(y, x, [0, 0])\nreturn y",
    "launch": "y = self.k(x, y)\nreturn y",
    "submit": "y, t = pl.submit(self.k, x, y)\nreturn y",
    "subscript": "y[:] = pl.add(x, 1.0)\nreturn y",
    "carry": "for i, (c,) in pl.range(4, init_values=(y,)):\n    d = self.k(x, c)\n    y = pl.yield_(d)\nreturn y",
    "branch": "if n > 2:\n    y = pl.add(x, 1.0)\nreturn y",
    "loop that may not run": "for i in pl.range(n):\n    y = pl.add(x, 1.0)\nreturn y",
    "read before": "z = pl.add(y, 1.0)\ny = pl.mul(z, 2.0)\nreturn y",
    "early return": "if n > 2:\n    return y\ny = pl.add(x, 1.0)\nreturn y",
    "early exit": "for i in pl.range(4):\n    if i > 2:\n        break\n    y = pl.add(x, 1.0)\nreturn y",
}


@pytest.mark.parametrize(("body", "line"), DROPPED.values(), ids=DROPPED)
def test_dropped_writes(body, line):
    node = program(body, kind="Opaque")
    found = run(node, C.OutParamWriteDropped)
    assert lines_of(found, node) == [(1003, line)]
    assert found[0].message == (
        "assigning to the Out parameter 'y' of function 'main' rebinds the name only — the caller's buffer is never "
        "written; write into it: y[:] = …"
    )


@pytest.mark.parametrize("body", KEPT.values(), ids=KEPT)
def test_writes_that_are_not_dropped(body):
    assert run(program(body, kind="Opaque"), C.OutParamWriteDropped) == []


def test_in_parameters_and_inout_parameters():
    text = """
import pypto.language as pl
@pl.program
class P:
    @pl.function
    def main(self, x: pl.Tensor[[8], pl.FP32], y: pl.InOut[pl.Tensor[[8], pl.FP32]]) -> pl.Tensor[[8], pl.FP32]:
        y = pl.add(x, 1.0)
        x = pl.add(y, 1.0)
        return x
"""
    [found] = run(pl.parse(text), C.OutParamWriteDropped)
    assert "the InOut parameter 'y'" in found.message


@pytest.mark.parametrize("carried", [False, True])
def test_results_bound_to_a_parameter(carried):
    kind, here = ir.TensorType([8], ir.FP32), ir.Span("hand.py", 3, 5)
    x, y = ir.Var("x", kind), ir.Var("y", kind)
    first = y if carried else x
    arg = ir.IterArg("c", kind, first)
    one = ir.ConstInt(1, ir.INDEX)
    loop = ir.ForStmt(ir.Var("i", one.type), one, one, one, [arg], ir.YieldStmt([arg], here), [y], here)
    function = ir.Function("main", [x, (y, ir.ParamDirection.Out)], [], ir.SeqStmts([loop]), here)
    found = run(ir.Program([function], "P"), C.OutParamWriteDropped)
    assert [d.error_code for d in found] == ([] if carried else [1003])


def test_the_example_of_the_specification():
    text = """
import pypto.language as pl
@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def widen(self, v: pl.Tensor[[96], pl.FP32], dst: pl.Out[pl.Tensor[[96], pl.FP32]]) -> pl.Tensor[[96], pl.FP32]:
        spare = pl.mul(v, 0.5)
        dst = pl.add(v, 1.0)
        return dst
"""
    assert [(d.error_code, d.span.begin_line) for d in run(pl.parse(text, "case.py"))] == [(1001, 7), (1003, 8)]


def test_silenced_for_one_function():
    body = "spare = pl.mul(x, 0.5)\ny = pl.add(x, 1.0)\nreturn y"
    assert [d.error_code for d in run(program(body, kind="Opaque"))] == [1001, 1003]
    comment = "# pypto: ignore[UnusedVariable]\n" + body
    assert [d.error_code for d in run(program(comment, kind="Opaque"))] == [1003]
    attribute = 'pl.func_attr({"ignore_checks": "OutParamWriteDropped, UnusedVariable"})\n' + body
    assert run(program(attribute, kind="Opaque")) == []


# --- short rows -------------------------------------------------------------------------------------------------------


def kernel(body, params="a: pl.Tensor[[64, 512], pl.FP32], b: pl.Out[pl.Tensor[[64, 512], pl.FP32]]"):
    text = f"import pypto.language as pl\n@pl.program\nclass P:\n    @pl.function(type=pl.FunctionType.InCore)\n    def main(self, {params}, n: pl.Scalar[pl.INDEX]):\n"
    return pl.parse(text + "".join(f"        {line}\n" for line in body.split("\n")), "case.py")


def short_rows(node, backend=BackendType.Ascend910B):
    with using_backend(backend):
        return run(node, phase=POST)


def test_short_rows():
    node = kernel("t = pl.load(a, [0, 0], [32, 96])\npl.store(t, [0, 0], b)")
    load, store = short_rows(node)
    assert load.message == (
        "tile.load has innermost dim = 384B (tile fp32[96], target_memory=Vec); moves 12288B as 32 x 384B rows; "
        "recommended >= 512B for backend a2a3 (L2 cache line = 512B). Consider increasing tile shape on the innermost axis."
    )
    assert store.message.startswith("tile.store has innermost dim = 384B")
    assert (load.severity, load.hint_code, load.error_code) == (DiagnosticSeverity.PerfHint, "PH001", 1)
    assert load.rule_name == "TileInnermostDimGranularity"
    assert [d.span.begin_line for d in (load, store)] == [6, 7]


def test_the_recommendation_is_that_of_the_target():
    node = kernel("t = pl.load(a, [0, 0], [32, 96])\npl.store(t, [0, 0], b)")
    assert short_rows(node, BackendType.Ascend950) == []
    assert (
        "recommended >= 128B for backend a5"
        in short_rows(kernel("t = pl.load(a, [0, 0], [32, 16])\npl.store(t, [0, 0], b)"), BackendType.Ascend950)[
            0
        ].message
    )
    assert run(node, phase=POST) == []  # no target is selected
    assert short_rows(kernel("t = pl.load(a, [0, 0], [32, 128])\npl.store(t, [0, 0], b)")) == []


def test_what_is_moved_is_the_valid_region():
    [load, _] = short_rows(kernel("t = pl.load(a, [0, 0], [32, 96], valid_shape=[8, 32])\npl.store(t, [0, 0], b)"))
    assert "innermost dim = 384B" in load.message and "moves 1024B as 8 x 128B rows" in load.message
    [load, _] = short_rows(kernel("t = pl.load(a, [0, 0], [32, 96], valid_shape=[8, n])\npl.store(t, [0, 0], b)"))
    assert "moves" not in load.message and "(tile fp32[96], target_memory=Vec); recommended" in load.message


def test_occurrences_at_one_place_are_merged():
    node = kernel("t = pl.load(a, [0, 0], [32, 96])\npl.store(t, [0, 0], b)")
    body = main(node).body
    twice = ir.Program([main(node).replace(body=body.replace(stmts=type(body.stmts)([*body.stmts, *body.stmts])))], "P")
    found = short_rows(twice)
    assert [d.message.endswith(" (2 occurrences at this source location)") for d in found] == [True, True]
    unknown = [
        s.replace(span=ir.Span.unknown(), value=s.value.replace(span=ir.Span.unknown()))
        for s in nodes(twice, ir.AssignStmt)
    ]
    nowhere = ir.Program([main(node).replace(body=ir.SeqStmts(unknown))], "P")
    assert [d.message.endswith("axis.") for d in short_rows(nowhere)] == [True, True]


# --- the log ----------------------------------------------------------------------------------------------------------


WARNING = Diagnostic(
    DiagnosticSeverity.Warning, "UnusedVariableCheck", 1001, "Unused variable 'q'", ir.Span("k.py", 7, 5)
)
HINT = Diagnostic(
    DiagnosticSeverity.PerfHint, "TileInnermostDimGranularity", 1, "short", ir.Span("k.py", 9, 1), "PH001"
)
NOWHERE = Diagnostic(DiagnosticSeverity.PerfHint, "TileInnermostDimGranularity", 1, "long\ntext", hint_code="PH001")


@pytest.fixture
def log(capsys):
    """The messages of the log, each with its level's letter."""
    _set_thread_log_level(LogLevel.DEBUG)
    yield lambda: [line.split(" ", 2)[2].replace(" | ", "|") for line in capsys.readouterr().err.splitlines()]
    _clear_thread_log_level()


def test_warnings_and_hints_in_the_log(log):
    emit([WARNING, HINT, NOWHERE], "pipeline_input")
    assert log() == [
        "W|[warning] [UnusedVariableCheck] (pipeline_input) Unused variable 'q' at k.py:7:5",
        "I|[perf_hint PH001] TileInnermostDimGranularity: short at k.py:9:1",
        "I|[perf_hint PH001] TileInnermostDimGranularity: long text",
    ]
    emit([], "pipeline_input")
    assert log() == []


def test_hints_in_the_report_folder(log, tmp_path):
    folder = tmp_path / "report"
    emit([WARNING], "pipeline_input", folder)
    assert not folder.exists() and len(log()) == 1
    emit([HINT, HINT, NOWHERE], "pipeline_output", folder)
    path = folder / "perf_hints.log"
    assert log() == [f"I|[perf_hint] 3 hints across 2 sites; see {path}"]
    emit([HINT], "pipeline_output", str(folder))
    assert log() == [f"I|[perf_hint] 1 hint across 1 site; see {path}"]
    lines = path.read_text(encoding="utf-8").splitlines()
    assert len(lines) == 4 and lines[0] == "[perf_hint PH001] TileInnermostDimGranularity: short at k.py:9:1"


def test_a_report_folder_that_cannot_be_written(log, tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("")
    emit([HINT], "pipeline_output", blocked)
    first, second = log()
    assert first.startswith("W|[perf_hint] cannot write ") and second.startswith("I|[perf_hint PH001]")
