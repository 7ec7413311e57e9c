"""Passes as objects: names, properties, calls, passes made from functions."""

import pytest

import pypto.language as pl
from pypto import InternalError, ir, passes
from pypto.passes import IRProperty, IRPropertySet, PassContext, PassProperties
from pypto.verify.properties import property_set


@pl.program
class Plain:
    @pl.function
    def first(self, n: pl.Scalar[pl.INDEX]) -> pl.Scalar[pl.INDEX]:
        return n

    @pl.function
    def second(self, n: pl.Scalar[pl.INDEX]) -> pl.Scalar[pl.INDEX]:
        return n + 1


def test_the_public_module_is_one_object():
    import pypto.pypto_core.passes as core

    assert core is passes
    from pypto.pypto_core import passes as again

    assert again is passes


def test_a_pass_takes_programs_only():
    with pytest.raises(TypeError, match="Function"):
        passes.inline_functions()(Plain.get_function("first"))


def test_properties_come_as_fresh_sets():
    p = passes.convert_to_ssa()
    p.get_produced_properties().remove(IRProperty.SSAForm)
    assert p.get_produced_properties() == property_set(IRProperty.SSAForm)
    assert p.get_invalidated_properties() == property_set(IRProperty.NormalizedStmtStructure)
    assert p.get_required_properties().empty()


def test_a_function_pass_sees_every_function_and_keeps_what_is_the_same():
    seen = []

    def look(function):
        seen.append(function.name)
        return function

    p = passes.create_function_pass(look)
    assert p.get_name() == "FunctionPass" and p(Plain) is Plain
    assert seen == ["first", "second"]


def test_a_function_pass_changes_one_function():
    def rename(function):
        return function.replace(span=ir.Span("new.py", 1, 1)) if function.name == "first" else function

    after = passes.create_function_pass(rename, "Mark")(Plain)
    assert after.get_function("second") is Plain.get_function("second")
    assert str(after.get_function("first").span) == "new.py:1:1"


def test_a_program_pass():
    given = PassProperties()
    given.produced = property_set(IRProperty.TypeChecked)
    p = passes.create_program_pass(lambda program: program, properties=given)
    assert p.get_name() == "ProgramPass" and p(Plain) is Plain
    assert p.get_produced_properties() == property_set(IRProperty.TypeChecked)


def test_properties_of_a_made_pass_are_those_at_its_making():
    given = PassProperties(IRPropertySet(), property_set(IRProperty.SSAForm), IRPropertySet())
    p = passes.create_program_pass(lambda program: program, "P", given)
    given.produced.insert(IRProperty.HasMemRefs)
    assert p.get_produced_properties() == property_set(IRProperty.SSAForm)


def test_what_a_transform_raises_passes_on():
    def fail(_function):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        passes.create_function_pass(fail)(Plain)


def test_a_null_result_is_a_bug_of_the_pass():
    with pytest.raises(InternalError, match="returned null program"):
        passes.create_program_pass(lambda _program: None, "Lost")(Plain)


def test_hooks_run_in_order_around_a_pass():
    events = []

    def instrument(name):
        return passes.CallbackInstrument(
            lambda p, program: events.append((name, "before", p.get_name(), program)),
            lambda p, program: events.append((name, "after", p.get_name(), program)),
        )

    empty = ir.Program([], "P")
    p = passes.create_program_pass(lambda _program: empty, "Clear")
    with PassContext([instrument("a"), instrument("b")]):
        p(Plain)
    assert events == [
        ("a", "before", "Clear", Plain),
        ("b", "before", "Clear", Plain),
        ("a", "after", "Clear", empty),
        ("b", "after", "Clear", empty),
    ]


def test_every_built_pass_has_name_factory_and_module_alike():
    for strategy in ir.OptimizationStrategy:
        for each in ir.PassManager(strategy).passes:
            module = type(each).__module__.rpartition(".")[2]
            assert getattr(passes, module)().get_name() == each.get_name()
            assert module.replace("_", "").lower() == each.get_name().lower()
            assert type(each).__name__ == each.get_name()


CLASSES = """Pass PassPipeline PassContext PassProperties PassInstrument VerificationInstrument CallbackInstrument
ReportInstrument DiagnosticInstrument VerificationMode VerificationLevel IRProperty IRPropertySet Diagnostic
DiagnosticSeverity DiagnosticPhase DiagnosticCheck DiagnosticCheckSet DiagnosticCheckRegistry PropertyVerifierRegistry
SSAErrorType TypeCheckErrorType NestedCallErrorType UseAfterDefErrorType MemoryPlanner RuntimeKind VerificationError"""
FUNCTIONS = """get_verified_properties get_structural_properties get_default_verify_properties
get_default_verification_level get_default_diagnostic_phase verify_properties verify_tensor_view_canonical run_verifier
create_function_pass create_program_pass runtime_kind_to_name runtime_kind_from_name inline_functions unroll_loops
ctrl_flow_transform convert_to_ssa simplify normalize_stmt_structure flatten_call_expr outline_hierarchy_scopes
outline_incore_scopes outline_cluster_scopes"""


def test_the_public_names():
    import types

    for name in CLASSES.split():
        assert isinstance(getattr(passes, name), type) and name in passes.__all__, name
    for name in FUNCTIONS.split():
        assert callable(getattr(passes, name)) and name in passes.__all__, name
    assert isinstance(passes.stmt_dependency_analysis, types.ModuleType)
    assert passes.stmt_dependency_analysis.__name__.endswith("passes.stmt_dependency_analysis")


def test_the_names_of_ir():
    from pypto.ir.instruments import make_roundtrip_instrument
    from pypto.ir.pass_manager import OptimizationStrategy, PassDumpLevel, PassManager

    assert ir.PassManager is PassManager is passes.PassManager
    assert ir.OptimizationStrategy is OptimizationStrategy and ir.PassDumpLevel is PassDumpLevel
    assert ir.make_roundtrip_instrument is make_roundtrip_instrument
    shared = "PassContext VerificationLevel VerificationMode DiagnosticPhase DiagnosticCheck DiagnosticCheckSet"
    for name in shared.split():
        assert getattr(ir, name) is getattr(passes, name), name
    assert [(level.name, level.value) for level in PassDumpLevel] == [("NONE", 0), ("CONCISE", 1), ("EXPLICIT", 2)]
    assert {s.value for s in OptimizationStrategy} == {"Default", "DebugTileOptimization"}


def test_properties_are_readable_and_writable():
    empty = PassProperties()
    assert empty.required.empty() and empty.produced.empty() and empty.invalidated.empty()
    full = PassProperties(property_set(IRProperty.SSAForm), property_set(IRProperty.HasMemRefs), IRPropertySet())
    full.required, full.invalidated = full.invalidated, full.required
    assert full.required.empty() and full.invalidated == property_set(IRProperty.SSAForm)
    assert full.produced == property_set(IRProperty.HasMemRefs)


# Spec 04, section 5, by the names of the properties: required, produced, invalidated.
S, N, CALLS = IRProperty.SSAForm, IRProperty.NormalizedStmtStructure, IRProperty.NoNestedCalls
TABLE = {
    "InlineFunctions": ((), (IRProperty.InlineFunctionsEliminated,), ()),
    "UnrollLoops": ((), (IRProperty.UnrollResolved,), ()),
    "CtrlFlowTransform": ((), (IRProperty.StructuredCtrlFlow,), ()),
    "ConvertToSSA": ((), (S,), (N,)),
    "Simplify": ((), (), ()),
    "NormalizeStmtStructure": ((), (N,), ()),
    "FlattenCallExpr": ((S, N), (S, CALLS, N), ()),
    "OutlineHierarchyScopes": (
        (S,),
        (S, IRProperty.HierarchyOutlined, IRProperty.OrchestrationReferencesResolved),
        (),
    ),
    "OutlineIncoreScopes": ((S,), (S, IRProperty.SplitIncoreOrch, IRProperty.AivSplitValid), ()),
    "OutlineClusterScopes": ((S,), (S, IRProperty.ClusterOutlined), ()),
}


def test_the_table_of_properties():
    made = {p.get_name(): p for p in ir.PassManager().passes}
    for name, (required, produced, invalidated) in TABLE.items():
        assert made[name].get_required_properties() == property_set(*required), name
        assert made[name].get_produced_properties() == property_set(*produced), name
        assert made[name].get_invalidated_properties() == property_set(*invalidated), name


def test_structural_properties_are_named_by_no_pass():
    structural = passes.get_structural_properties()
    for p in ir.PassManager().passes:
        for named in (p.get_required_properties(), p.get_produced_properties(), p.get_invalidated_properties()):
            assert named.intersection(structural).empty(), p.get_name()


def test_no_pass_claims_what_nothing_verifies():
    from pypto.verify.registry import VERIFIERS

    later = {IRProperty.IncoreTileOps}  # what ConvertTensorToTileOps will give; OptimizeOrchTensors hands it on
    for p in ir.PassManager().passes:
        assert all(prop in VERIFIERS or prop in later for prop in p.get_produced_properties()), p.get_name()
