"""Strategies, runs and dumps of the pass manager."""

import pytest
from passes_kit import Counting

import pypto.language as pl
from pypto import ir, passes
from pypto.compile_profiling import CompileProfiler
from pypto.ir import OptimizationStrategy, PassDumpLevel, PassManager
from pypto.ir.traversal import walk
from pypto.passes import IRProperty, MemoryPlanner, PassContext, RuntimeKind, VerificationLevel
from pypto.verify.registry import VERIFIERS

FRONT = [
    "InlineFunctions",
    "UnrollLoops",
    "CtrlFlowTransform",
    "ConvertToSSA",
    "Simplify",
    "NormalizeStmtStructure",
    "FlattenCallExpr",
]
OUTLINING = ["OutlineHierarchyScopes", "OutlineIncoreScopes", "OutlineClusterScopes"]


def test_the_strategies_begin_as_listed():
    assert PassManager.get_strategy().get_pass_names()[:10] == FRONT + OUTLINING
    debug = PassManager.get_strategy(OptimizationStrategy.DebugTileOptimization)
    assert debug.pass_names[:7] == FRONT and not set(OUTLINING) & set(debug.pass_names)
    assert debug.strategy is OptimizationStrategy.DebugTileOptimization


def test_every_required_property_is_produced_before_or_has_no_verifier():
    known = passes.get_structural_properties()
    for each in PassManager().passes:
        missing = each.get_required_properties().difference(known)
        assert not [prop for prop in missing if prop in VERIFIERS], each.get_name()
        known = known.difference(each.get_invalidated_properties()).union_with(each.get_produced_properties())


@pytest.mark.parametrize("strategy", ["Default", None, 0])
def test_what_is_no_strategy(strategy):
    with pytest.raises(ValueError, match="Unsupported optimization strategy"):
        PassManager(strategy)


def test_the_attributes_are_read_only():
    manager = PassManager()
    assert isinstance(manager.passes, tuple)
    manager.pass_names.clear()
    assert manager.pass_names[:7] == FRONT
    with pytest.raises(AttributeError):
        manager.passes = ()


def test_run_passes_takes_programs():
    with pytest.raises(ValueError, match="Function"):
        PassManager().run_passes(Counting.get_function("count"))


def test_dumping_needs_a_folder():
    for level in (True, PassDumpLevel.CONCISE, PassDumpLevel.EXPLICIT):
        with pytest.raises(ValueError, match="output_dir is required when dumping IR"):
            PassManager().run_passes(Counting, dump_ir=level)


def test_two_runs_give_equal_text():
    manager = PassManager()
    first, second = manager.run_passes(Counting), manager.run_passes(Counting)
    assert str(first) == str(second)
    assert str(PassManager().run_passes(Counting)) == str(first)


def test_the_result_has_the_properties_of_the_front_half():
    after = PassManager().run_passes(Counting)
    wanted = passes.get_default_verify_properties()
    passes.PropertyVerifierRegistry.verify_or_throw(wanted, after)
    assert IRProperty.SSAForm in wanted.to_list()


def test_a_limit_runs_the_first_passes_only():
    manager = PassManager()
    assert manager.run_passes(Counting, limit=0) is Counting
    three = manager.run_passes(Counting, limit=4)
    assert str(three) == str(passes.convert_to_ssa()(Counting))


# --- dumps ------------------------------------------------------------------------------------------------------------


def test_dump_files(tmp_path):
    manager = PassManager()
    after = manager.run_passes(Counting, dump_ir=True, output_dir=tmp_path / "dump")
    names = sorted(p.name for p in (tmp_path / "dump").iterdir())
    wanted = [f"{i:02d}_after_{name}.py" for i, name in enumerate(manager.pass_names, 1)]
    assert names == sorted(["00_frontend.py", *wanted])
    last = pl.loads((tmp_path / "dump" / names[-1]).as_posix())
    ir.assert_structural_equal(last, after)
    first = pl.loads((tmp_path / "dump" / "00_frontend.py").as_posix())
    ir.assert_structural_equal(first, Counting)


def test_the_prefix_of_dumps(tmp_path):
    PassManager().run_passes(Counting, dump_ir=True, output_dir=tmp_path, prefix="lang")
    text = (tmp_path / "00_frontend.py").read_text()
    assert "from pypto import language as lang" in text and "lang.range(" in text and text.endswith("\n")


def test_explicit_dumps_spell_layouts_out(tmp_path):
    program = pl.parse(
        """
@pl.program
class Tiles:
    @pl.function(type=pl.FunctionType.InCore)
    def k(self, x: pl.Tensor[[16, 16], pl.FP32], y: pl.Out[pl.Tensor[[16, 16], pl.FP32]]) -> pl.Tensor[[16, 16], pl.FP32]:
        t = pl.load(x, [0, 0], [16, 16])
        return pl.store(t, [0, 0], y)
"""
    )
    texts = {}
    for level in (PassDumpLevel.CONCISE, PassDumpLevel.EXPLICIT):
        PassManager().run_passes(program, dump_ir=level, output_dir=tmp_path / level.name)
        texts[level] = (tmp_path / level.name / "00_frontend.py").read_text()
    assert texts[PassDumpLevel.CONCISE] == ir.python_print(program, format=False) + "\n"
    assert texts[PassDumpLevel.EXPLICIT] == ir.python_print(program, format=False, explicit_layout=True) + "\n"
    assert texts[PassDumpLevel.CONCISE] != texts[PassDumpLevel.EXPLICIT]


@pytest.mark.parametrize("runtime", list(RuntimeKind))
def test_dumps_change_neither_result_nor_context(tmp_path, runtime):
    seen = []
    watch = passes.CallbackInstrument(lambda _p, _program: seen.append(PassContext.current()))
    with PassContext([watch], VerificationLevel.NONE, runtime=runtime, enable_pypto_l0c_double_buffer=True):
        plain = PassManager().run_passes(Counting)
        seen.clear()
        dumped = PassManager().run_passes(Counting, dump_ir=True, output_dir=tmp_path)
    ir.assert_structural_equal(plain, dumped)
    assert seen and all(
        c.get_runtime() is runtime
        and c.get_enable_pypto_l0c_double_buffer()
        and c.get_verification_level() is VerificationLevel.NONE
        for c in seen
    )


# --- planners ---------------------------------------------------------------------------------------------------------


def test_the_planner_at_construction_counts():
    with PassContext([], memory_planner=MemoryPlanner.PTOAS):
        manager = PassManager()
        manager.run_passes(Counting)
    with pytest.raises(RuntimeError, match="PassManager was constructed under memory_planner=PTOAS"):
        manager.run_passes(Counting)


# --- profile ----------------------------------------------------------------------------------------------------------


def test_an_active_profiler_gets_one_record_a_pass():
    manager = PassManager()
    with CompileProfiler() as profiler:
        manager.run_passes(Counting)
    assert [stage.name for stage in profiler.stages] == manager.pass_names
    assert all(stage.duration > 0 for stage in profiler.stages)


# --- the pass at fault ------------------------------------------------------------------------------------------------


def test_first_failure_names_the_pass_and_its_input():
    manager = PassManager()

    def has_natural_loops(program):
        return any(isinstance(n, ir.ForStmt) and not n.iter_args for n in walk(program))

    found = passes.first_failure(Counting, manager.passes, has_natural_loops)
    assert (found.index, found.pass_name, found.error) == (3, "ConvertToSSA", None)
    assert found.before is Counting and not has_natural_loops(found.after)
    ir.assert_structural_equal(manager.run_passes(Counting, limit=found.index), found.before)


def test_first_failure_of_a_pass_that_raises():
    fails = passes.create_program_pass(lambda _p: 1 // 0, "Fails")
    found = passes.first_failure(Counting, [passes.inline_functions(), fails], lambda _p: True)
    assert (found.index, found.pass_name, found.after) == (1, "Fails", None)
    assert isinstance(found.error, ZeroDivisionError)


def test_first_failure_of_nothing():
    assert passes.first_failure(Counting, PassManager().passes, lambda _p: True) is None
    with pytest.raises(ValueError, match="before any pass"):
        passes.first_failure(Counting, PassManager().passes, lambda _p: False)


# --- what is around a dump --------------------------------------------------------------------------------------------


def test_instruments_of_a_dump_come_last(tmp_path):
    seen = []
    watch = passes.CallbackInstrument(lambda _p, _program: seen.append(PassContext.current().get_instruments()))
    off = passes.DiagnosticCheckRegistry.get_all_checks()
    with PassContext([watch], disabled_diagnostics=off, memory_planner=MemoryPlanner.DSA_RP):
        PassManager().run_passes(Counting, dump_ir=True, output_dir=tmp_path)
    first, last = seen[0]
    assert first is watch and last.get_name() == "IRDump"


def test_a_dump_keeps_every_field_of_the_context(tmp_path):
    fields = []

    def note(_p, _program):
        c = PassContext.current()
        fields.append(
            (
                c.get_verification_level(),
                c.get_disabled_diagnostics(),
                c.get_memory_planner(),
                c.get_enable_pypto_l0c_double_buffer(),
                c.get_runtime(),
            )
        )

    off = passes.DiagnosticCheckRegistry.get_all_checks()
    with PassContext(
        [passes.CallbackInstrument(note)],
        VerificationLevel.NONE,
        disabled_diagnostics=off,
        memory_planner=MemoryPlanner.DSA_RP,
        enable_pypto_l0c_double_buffer=True,
        runtime=RuntimeKind.HOST_BUILD_GRAPH,
    ):
        PassManager().run_passes(Counting, dump_ir=True, output_dir=tmp_path)
    wanted = (VerificationLevel.NONE, off, MemoryPlanner.DSA_RP, True, RuntimeKind.HOST_BUILD_GRAPH)
    assert fields and all(found == wanted for found in fields)


def test_what_is_found_behind_a_pass_stands_beside_its_dump(tmp_path, monkeypatch):
    """No check of today runs behind each pass: this one is put into the place of another."""
    from pypto.verify.checks import DiagnosticCheck, DiagnosticPhase
    from pypto.verify.checks.registry import RULES, Note, Rule
    from pypto.verify.diagnostics import DiagnosticSeverity

    check = DiagnosticCheck.UnusedVariable
    place = ir.Span("k.py", 4, 9)

    def find(function):
        return [Note(f"odd '{function.name}'", place)] if "__ssa_v0" in str(function) else []

    rule = Rule(check, "Odd", 1, DiagnosticPhase.POST_PASS, DiagnosticSeverity.Warning, "", find)
    monkeypatch.setitem(RULES, check, rule)
    manager = PassManager()
    manager.run_passes(Counting, dump_ir=True, output_dir=tmp_path)
    logs = sorted(p.name for p in tmp_path.glob("*.log"))
    first = manager.pass_names.index("ConvertToSSA") + 1
    assert logs == [f"{i:02d}_after_{n}.log" for i, n in enumerate(manager.pass_names, 1) if i >= first]
    lines = (tmp_path / logs[0]).read_text().splitlines()
    assert lines == ["k.py:4:9: warning: odd 'count'", "k.py:4:9: warning: odd 'same'"]
    with PassContext([], diagnostic_phase=DiagnosticPhase.NONE):
        manager.run_passes(Counting, dump_ir=True, output_dir=tmp_path / "quiet")
    assert not list((tmp_path / "quiet").glob("*.log"))
