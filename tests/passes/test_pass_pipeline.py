"""Pipelines: the schedule of verification, facts, and the defect that declarations used to hide."""

import pytest
from passes_kit import Counting, in_ssa_form, leaking_use, pipeline

import pypto
import pypto.language as pl
from pypto import ir, passes
from pypto.passes import IRProperty, PassContext, PassProperties, VerificationError, VerificationLevel
from pypto.verify.facts import FACTS, Facts
from pypto.verify.properties import property_set
from pypto.verify.registry import VERIFIERS

SSA = property_set(IRProperty.SSAForm)
CLAIMS_SSA = PassProperties(required=SSA, produced=SSA)
NOTHING = PassProperties()


def identity(name: str = "Nothing", properties: PassProperties = NOTHING) -> passes.Pass:
    return passes.create_program_pass(lambda program: program, name, properties)


@pytest.fixture
def facts(monkeypatch):
    """An empty table of facts, so that its counter starts at 0."""
    table = Facts()
    monkeypatch.setattr("pypto.passes.pass_pipeline.FACTS", table)
    return table


# --- the list ---------------------------------------------------------------------------------------------------------


def test_an_empty_pipeline_gives_its_input():
    assert passes.PassPipeline().run(Counting) is Counting


def test_the_lists_are_copies():
    made = pipeline(passes.inline_functions(), passes.simplify())
    made.get_passes().clear()
    made.get_pass_names().clear()
    assert made.get_pass_names() == ["InlineFunctions", "Simplify"] and len(made.get_passes()) == 2


def test_only_passes_are_added():
    with pytest.raises(TypeError):
        passes.PassPipeline().add_pass(passes.inline_functions)


# --- the defect: a use outside its scope, by a pass that declares SSA form ---------------------------------------------


@pytest.mark.parametrize("properties", [CLAIMS_SSA, NOTHING], ids=["declares", "declares_nothing"])
def test_a_use_outside_its_scope_is_caught_at_the_pass_that_makes_it(properties):
    careless = passes.create_program_pass(leaking_use, "Careless", properties)
    made = pipeline(passes.convert_to_ssa(), identity("Before"), careless, identity("After"))
    with pytest.raises(
        VerificationError, match="Verification failed after 'Careless' for properties {SSAForm"
    ) as caught:
        made.run(Counting)
    assert caught.value.pass_name == "Careless"
    assert IRProperty.SSAForm in caught.value.properties
    finding = caught.value.diagnostics[0]
    assert (finding.rule_name, finding.error_code) == ("SSAVerify", 6)
    assert "used outside its defining scope" in finding.message and finding.span.is_valid()


def test_without_verification_nothing_is_caught():
    with PassContext([], VerificationLevel.NONE):
        after = pipeline(passes.create_program_pass(leaking_use, "Careless", CLAIMS_SSA)).run(in_ssa_form())
    assert passes.PropertyVerifierRegistry.verify(SSA, after)


def test_what_a_pass_invalidates_is_not_expected_behind_it():
    given = PassProperties(invalidated=SSA)
    breaks_and_says_so = passes.create_program_pass(leaking_use, "Lowering", given)
    with pytest.raises(VerificationError) as caught:
        # Uses must still be dominated by definitions: that holds of every program.
        pipeline(passes.convert_to_ssa(), breaks_and_says_so).run(Counting)
    assert caught.value.properties == [IRProperty.UseAfterDef]


def test_a_broken_input_is_not_blamed_on_a_pass():
    with pytest.raises(VerificationError, match="Verification failed after 'pipeline_input'"):
        pipeline(identity()).run(leaking_use(in_ssa_form()))


def test_a_fault_found_late_names_the_pass_that_made_it(facts):
    careless = passes.create_program_pass(leaking_use, "Careless", NOTHING)
    with PassContext([], VerificationLevel.NONE):
        broken = careless(in_ssa_form())
    facts.note_origin(None, broken, "Careless")
    late = identity("Late", PassProperties(produced=SSA))
    with pytest.raises(VerificationError, match="'count' as made by Careless"):
        pipeline(late).run(broken)


# --- required properties ----------------------------------------------------------------------------------------------


def test_a_pass_whose_required_property_does_not_hold_is_not_run():
    ran = []
    needs = passes.create_program_pass(lambda program: ran.append(program) or program, "Needs", CLAIMS_SSA)
    with pytest.raises(pypto.Error, match=r"pass 'Needs' requires {SSAForm}: .*more than once"):
        pipeline(needs).run(Counting)
    assert ran == []
    with PassContext([], VerificationLevel.NONE):
        pipeline(needs).run(Counting)
    assert ran == [Counting]


# --- what is verified when --------------------------------------------------------------------------------------------


def test_a_pass_that_changes_nothing_costs_no_verification(facts):
    pipeline(passes.convert_to_ssa(), identity()).run(Counting)
    once = facts.checks
    facts2 = facts.checks
    pipeline(passes.convert_to_ssa(), *(identity(f"N{i}", CLAIMS_SSA) for i in range(5))).run(Counting)
    # `same` was converted anew in the second run, `count` too: as many checks as in the first run behind ConvertToSSA.
    assert facts.checks - facts2 <= once


@pytest.mark.parametrize(("touched", "share"), [({"same"}, 1), ({"same", "count"}, 2)])
def test_only_changed_functions_are_verified_again(facts, touched, share):
    start = in_ssa_form()
    pipeline(identity("First", CLAIMS_SSA)).run(start)
    before = facts.checks

    def touch(function):
        return function.replace(span=ir.Span("x.py", 1, 1)) if function.name in touched else function

    pipeline(passes.create_function_pass(touch, "Touch", CLAIMS_SSA)).run(start)
    # What SSA form implies is not verified by itself.
    expected = [p for p in passes.get_structural_properties().union_with(SSA) if p in VERIFIERS]
    implied = [p for p in expected if VERIFIERS[p].implied_by is IRProperty.SSAForm]
    assert facts.checks - before == share * (len(expected) - len(implied))


def test_the_same_program_again_is_believed(facts):
    start = in_ssa_form()
    pipeline(identity("First", CLAIMS_SSA)).run(start)
    before = facts.checks
    pipeline(identity("Second", CLAIMS_SSA)).run(start)
    assert facts.checks == before


def test_the_level_decides(facts):
    with PassContext([], VerificationLevel.NONE):
        pipeline(passes.convert_to_ssa()).run(Counting)
    assert facts.checks == 0
    with PassContext([]):
        pipeline(passes.convert_to_ssa()).run(Counting)
    assert facts.checks > 0


# --- hooks ------------------------------------------------------------------------------------------------------------


def test_hooks_see_input_and_result_of_each_pass_in_order():
    seen = []
    watch = passes.CallbackInstrument(
        lambda p, program: seen.append(("before", p.get_name(), program)),
        lambda p, program: seen.append(("after", p.get_name(), program)),
    )
    with PassContext([watch]):
        result = pipeline(passes.inline_functions(), passes.convert_to_ssa()).run(Counting)
    assert [(when, name) for when, name, _ in seen] == [
        ("before", "InlineFunctions"),
        ("after", "InlineFunctions"),
        ("before", "ConvertToSSA"),
        ("after", "ConvertToSSA"),
    ]
    assert seen[0][2] is Counting and seen[1][2] is seen[2][2] and seen[3][2] is result


def test_the_end_of_the_pipeline_has_a_hook():
    class AtEnd(passes.PassInstrument):
        program = None

        def run_after_pipeline(self, program):
            self.program = program

    hook = AtEnd("AtEnd")
    with PassContext([hook]):
        result = pipeline(passes.convert_to_ssa()).run(Counting)
    assert hook.program is result


def test_an_error_stops_the_run():
    ran = []
    fail = passes.create_program_pass(lambda _p: 1 // 0, "Fails")
    after = passes.create_program_pass(lambda p: ran.append(1) or p, "After")
    with pytest.raises(ZeroDivisionError):
        pipeline(fail, after).run(Counting)
    assert ran == []


# --- round trip -------------------------------------------------------------------------------------------------------


def unprintable_attribute(program: ir.Program) -> ir.Program:
    """An attribute whose text does not come back as the same value."""
    function = program.get_function("same")
    kind = type(function.attrs)
    new = function.replace(attrs=kind({**function.attrs, "split": 0, "windowize": 1}))
    return program.with_functions([new if f is function else f for f in program.functions.values()])


def test_roundtrip_level_runs_the_check_itself():
    with PassContext([], VerificationLevel.ROUNDTRIP):
        pipeline(passes.convert_to_ssa(), passes.simplify()).run(Counting)


def test_roundtrip_finds_what_the_text_does_not_say(monkeypatch):
    # A printer that drops attributes of functions.
    from pypto.ir.printer.functions import FunctionPrinter

    monkeypatch.setattr(FunctionPrinter, "items", lambda self, attrs: "")
    stamp = passes.create_program_pass(unprintable_attribute, "Stamp")
    for context in (
        PassContext([], VerificationLevel.ROUNDTRIP),
        PassContext([ir.make_roundtrip_instrument()], VerificationLevel.BASIC),
    ):
        with context, pytest.raises(RuntimeError, match="failed after pass 'Stamp'") as caught:
            pipeline(stamp).run(Counting)
        assert "--- Printed IR ---" in str(caught.value)


def test_roundtrip_says_when_the_text_does_not_parse(monkeypatch):
    import pypto.ir.printer as printer

    monkeypatch.setattr(printer, "python_print", lambda *_a, **_k: "@pl.program\nclass P:\n    def ???")
    with (
        PassContext([ir.make_roundtrip_instrument()]),
        pytest.raises(RuntimeError, match="Parse failed after pass 'N'"),
    ):
        pipeline(identity("N")).run(Counting)


def test_roundtrip_says_when_the_printer_fails(monkeypatch):
    import pypto.ir.printer as printer

    def fail(*_a, **_k):
        raise ValueError("no words")

    monkeypatch.setattr(printer, "python_print", fail)
    with PassContext([ir.make_roundtrip_instrument()]), pytest.raises(RuntimeError, match="Printer failed .*no words"):
        pipeline(identity("N")).run(Counting)


# --- instruments that verify ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", list(passes.VerificationMode))
def test_verification_instrument(mode):
    instrument = passes.VerificationInstrument(mode)
    assert instrument.get_name() == "VerificationInstrument"
    broken_before = passes.create_program_pass(lambda p: in_ssa_form(), "Mends", PassProperties(required=SSA))
    breaks = passes.create_program_pass(leaking_use, "Breaks", PassProperties(produced=SSA))
    with PassContext([instrument], VerificationLevel.NONE):
        if mode in (passes.VerificationMode.BEFORE, passes.VerificationMode.BEFORE_AND_AFTER):
            with pytest.raises(
                pypto.Error, match="Pre-verification failed before pass 'Mends':\nIR Verification Report"
            ):
                broken_before(Counting)
        else:
            broken_before(Counting)
        if mode in (passes.VerificationMode.AFTER, passes.VerificationMode.BEFORE_AND_AFTER):
            with pytest.raises(pypto.Error, match="Post-verification failed after pass 'Breaks':"):
                breaks(in_ssa_form())
        else:
            breaks(in_ssa_form())


def test_report_instrument_names_a_folder(tmp_path):
    instrument = passes.ReportInstrument(tmp_path)
    with PassContext([instrument]):
        pipeline(passes.convert_to_ssa()).run(Counting)
    assert instrument.get_output_dir() == str(tmp_path) and list(tmp_path.iterdir()) == []


# --- warnings ---------------------------------------------------------------------------------------------------------

UNUSED = """
@pl.program
class Unused:
    @pl.function
    def f(self, n: pl.Scalar[pl.INDEX]) -> pl.Scalar[pl.INDEX]:
        spare = n * 2
        return n
"""


def logged(capfd, context=None) -> str:
    program = pl.parse(UNUSED, "unused.py")
    if context is None:
        pipeline(identity()).run(program)
    else:
        with context:
            pipeline(identity()).run(program)
    return capfd.readouterr().err


def test_warnings_come_once_with_their_phase(capfd):
    text = logged(capfd)
    assert "[warning] [UnusedVariableCheck]" in text and "'spare'" in text and "unused.py:6" in text
    assert text.count("spare") == 1


def test_warnings_can_be_switched_off(capfd):
    off = passes.DiagnosticCheckRegistry.get_all_checks()
    assert logged(capfd, PassContext([], diagnostic_phase=passes.DiagnosticPhase.NONE)) == ""
    assert logged(capfd, PassContext([], disabled_diagnostics=off)) == ""


def test_a_diagnostic_instrument_takes_over(capfd):
    chosen = passes.DiagnosticCheckSet()
    assert logged(capfd, PassContext([passes.DiagnosticInstrument(chosen)])) == ""
    chosen.insert(passes.DiagnosticCheck.UnusedVariable)
    assert "spare" in logged(capfd, PassContext([passes.DiagnosticInstrument(chosen)]))


def test_facts_are_shared_by_pipelines():
    start = in_ssa_form()
    pipeline(identity("First", CLAIMS_SSA)).run(start)
    assert all(FACTS.holds(IRProperty.SSAForm, f, start) for f in start.functions.values())


def test_without_a_context_every_check_runs(capfd):
    """In a context made with defaults, results of control flow that nobody reads are no matter."""
    program = pl.parse(
        """
@pl.program
class Unused:
    @pl.function
    def f(self, n: pl.Scalar[pl.INDEX]) -> pl.Scalar[pl.INDEX]:
        if n > 2:
            r = pl.yield_(n)
        else:
            r = pl.yield_(n + 1)
        return n
""",
        "unused.py",
    )
    pipeline(identity()).run(program)
    assert (
        "[warning] [UnusedControlFlowResultCheck] (pipeline_input) Unused variable 'r' in function 'f' at unused.py:6:9"
        in (capfd.readouterr().err)
    )
    with PassContext([]):
        pipeline(identity()).run(program)
    assert capfd.readouterr().err == ""


def test_hints_of_a_pipeline_go_into_the_report(tmp_path, capfd):
    from pypto.backend import BackendType
    from pypto.backend.selection import using_backend

    program = pl.parse(
        """
@pl.program
class Short:
    @pl.function(type=pl.FunctionType.InCore)
    def k(self, x: pl.Tensor[[64, 96], pl.FP32], y: pl.Out[pl.Tensor[[64, 96], pl.FP32]]) -> pl.Tensor[[64, 96], pl.FP32]:
        t = pl.load(x, [0, 0], [64, 96])
        y = pl.store(t, [0, 0], y)
        return y
""",
        "short.py",
    )
    with using_backend(BackendType.Ascend910B), PassContext([passes.ReportInstrument(tmp_path)]):
        pipeline(identity()).run(program)
    lines = (tmp_path / "perf_hints.log").read_text().splitlines()
    assert [line.split(":")[0] for line in lines] == ["[perf_hint PH001] TileInnermostDimGranularity"] * 2
    assert lines[0].endswith(" at short.py:6:13")


# --- what a round trip lets pass --------------------------------------------------------------------------------------

KIND = ir.TensorType([8, 8], pl.FP32)


def by_hand(make, kind=None, func_type=ir.FunctionType.Opaque) -> ir.Program:
    """A function that assigns one value to ``y`` and returns it."""
    span = ir.Span("hand.py", 3, 5)
    x = ir.Var("x", KIND, span)
    value = make(x)
    y = ir.Var("y", value.type if kind is None else kind, span)
    body = ir.SeqStmts([ir.AssignStmt(y, value, span), ir.ReturnStmt([y], span)], span)
    return ir.Program([ir.Function("f", [x], [y.type], body, span, func_type)], "P", span)


def numbers(*values: int) -> ir.Expr:
    return ir.MakeTuple([ir.ConstInt(v, ir.INDEX) for v in values])


def short_load(x: ir.Var) -> ir.Call:
    where = {"target_memory": ir.MemorySpace.Vec}
    whole = ir.create_op_call("tile.load", [x, numbers(0, 0), numbers(8, 8), numbers(8, 8)], where)
    return ir.Call(ir.Op("tile.load"), list(whole.args)[:3], where, whole.type, ir.Span.unknown())


HAND = {
    "a scalar operand": by_hand(
        lambda x: ir.Call(ir.Op("tensor.add"), [x, ir.ConstFloat(1.0, pl.FP32)], KIND, ir.Span.unknown())
    ),
    "a value of unknown type": by_hand(lambda x: ir.Call(ir.Op("tensor.exp"), [x], ir.Span.unknown()), KIND),
    "all of unknown type": by_hand(lambda x: ir.Call(ir.Op("tensor.exp"), [x], ir.Span.unknown())),
    "a short load": by_hand(short_load, func_type=ir.FunctionType.InCore),
}


@pytest.mark.parametrize("program", HAND.values(), ids=HAND)
def test_roundtrip_takes_what_is_built_by_hand(program):
    with PassContext([ir.make_roundtrip_instrument()], VerificationLevel.NONE):
        assert pipeline(identity()).run(program) is program


def test_roundtrip_takes_symbols_of_extents():
    program = pl.parse(
        """
N = pl.dynamic("N")
@pl.program
class P:
    @pl.function
    def f(self, x: pl.Tensor[[N, 8], pl.FP32]) -> pl.Tensor[[N, 8], pl.FP32]:
        y = pl.add(x, 1.0)
        return y
"""
    )
    with PassContext([], VerificationLevel.ROUNDTRIP):
        pipeline(passes.convert_to_ssa()).run(program)


def test_roundtrip_still_sees_another_operation():
    """What is let pass is the form, not the meaning."""
    from pypto.ir.instruments import as_parsed

    for program in HAND.values():
        parsed = as_parsed(program)
        assert as_parsed(parsed) is parsed and parsed is not program
    with pytest.raises(ValueError, match="tensor.adds"):
        ir.assert_structural_equal(as_parsed(HAND["a scalar operand"]), as_parsed(HAND["a value of unknown type"]))


def test_roundtrip_warns_of_what_cannot_be_printed(monkeypatch):
    import pypto.ir.printer as printer

    def fail(*_a, **_k):
        raise ValueError("WhileStmt does not support iter_args")

    monkeypatch.setattr(printer, "python_print", fail)
    with PassContext([ir.make_roundtrip_instrument()]), pytest.warns(UserWarning, match="IR not printable after"):
        assert pipeline(identity()).run(Counting) is Counting


def test_the_name_of_the_roundtrip_instrument():
    assert ir.make_roundtrip_instrument().get_name() == "RoundtripInstrument"
    assert passes.CallbackInstrument().get_name() == "CallbackInstrument"
    assert passes.CallbackInstrument(name="Mine").get_name() == "Mine"


def test_the_environment_asks_for_the_round_trip(monkeypatch):
    from pypto.passes import get_default_verification_level

    seen = []
    monkeypatch.setattr("pypto.ir.instruments.check_roundtrip", lambda _program, name: seen.append(name))
    monkeypatch.setenv("PYPTO_VERIFY_LEVEL", "roundtrip")
    get_default_verification_level.cache_clear()
    try:
        pipeline(passes.inline_functions(), passes.convert_to_ssa()).run(Counting)
    finally:
        get_default_verification_level.cache_clear()
    assert seen == ["ConvertToSSA"], "only what a pass changed is looked at"


# --- the whole schedule -----------------------------------------------------------------------------------------------


def test_what_is_verified_behind_each_pass(facts, monkeypatch):
    """The rows of the table in spec 04, section 6, and what section 13 adds: nothing that should hold is left out."""
    program = pl.parse(
        """
@pl.program
class Steps:
    @pl.function
    def f(self, x: pl.Tensor[[64, 16], pl.FP32], o: pl.InOut[pl.Tensor[[64, 16], pl.FP32]]) -> pl.Tensor[[64, 16], pl.FP32]:
        for r in pl.range(4):
            with pl.at(level=pl.Level.CORE_GROUP):
                o = pl.store(pl.mul(pl.load(x, [r * 16, 0], [16, 16]), 2.0), [r * 16, 0], o)
        return o
"""
    )
    behind = ["pipeline_input"]
    verified: dict[str, set[IRProperty]] = {}
    establish = facts.establish

    def note(properties, target):
        verified.setdefault(behind[-1], set()).update(properties)
        return establish(properties, target)

    monkeypatch.setattr(facts, "establish", note)
    watch = passes.CallbackInstrument(after_pass=lambda p, _program: behind.append(p.get_name()))
    with PassContext([watch], diagnostic_phase=passes.DiagnosticPhase.NONE):
        ir.PassManager().run_passes(program)
    at_input = passes.get_structural_properties().intersection(passes.get_verified_properties())
    assert set(at_input) <= verified["pipeline_input"]
    assert (
        IRProperty.SSAForm in verified["ConvertToSSA"] and IRProperty.AivSplitValid in verified["OutlineIncoreScopes"]
    )
    changed = ["ConvertToSSA", "FlattenCallExpr", "OutlineIncoreScopes"]
    for name in changed:
        assert verified[name] >= {IRProperty.SSAForm, IRProperty.UseAfterDef, *at_input}, name


def test_a_pipeline_takes_programs_only():
    with pytest.raises(TypeError, match="Function"):
        pipeline(identity()).run(Counting.get_function("count"))


def test_warnings_of_verifiers_are_shown(capfd):
    program = pl.parse(
        """
@pl.program
class Compute:
    @pl.function(type=pl.FunctionType.Orchestration)
    def f(self, x: pl.Tensor[[8, 8], pl.FP32], y: pl.Out[pl.Tensor[[8, 8], pl.FP32]]) -> pl.Tensor[[8, 8], pl.FP32]:
        z = pl.add(x, 1.0)
        y = pl.assemble(y, z, [0, 0])
        return y
""",
        "compute.py",
    )
    claims = PassProperties(produced=property_set(IRProperty.SplitIncoreOrch))
    pipeline(identity("Says", claims)).run(program)
    text = capfd.readouterr().err
    assert "[warning] [SplitIncoreOrch] (Says)" in text and "kernel scope" in text and "compute.py:6" in text
