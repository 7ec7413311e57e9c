"""The registry of verifiers, reports, and the error of a failed verification."""

import pytest

import pypto
from pypto import ir, passes
from pypto.verify.diagnostics import Diagnostic, DiagnosticSeverity, VerificationError, generate_report
from pypto.verify.properties import IRProperty, property_set
from pypto.verify.registry import VERIFIERS, PropertyVerifierRegistry

ERROR, WARNING = DiagnosticSeverity.Error, DiagnosticSeverity.Warning
HERE = ir.Span("kernel.py", 7, 5)


def two_definitions() -> ir.Program:
    """A function that assigns one variable twice: not in SSA form."""
    x = ir.Var("x", ir.ScalarType(ir.INDEX))
    span = ir.Span("kernel.py", 3, 5)
    body = ir.SeqStmts(
        [ir.AssignStmt(x, ir.ConstInt(1, ir.INDEX), span), ir.AssignStmt(x, ir.ConstInt(2, ir.INDEX), HERE)]
    )
    return ir.Program([ir.Function("f", [], [], body)], "P")


def test_report_layout():
    found = [
        Diagnostic(ERROR, "SSAVerify", 6, "used outside", HERE),
        Diagnostic(WARNING, "Looks", 0, "odd"),
    ]
    assert generate_report(found) == (
        "IR Verification Report\n"
        "======================\n"
        "Total diagnostics: 2 (1 errors, 1 warnings)\n"
        "\n"
        "[1] ERROR - SSAVerify\n"
        "    Message: used outside\n"
        "    Location: kernel.py:7:5\n"
        "    Error Code: 6\n"
        "\n"
        "[2] WARNING - Looks\n"
        "    Message: odd\n"
        "\n"
        "Status: FAILED (1 error(s) found)"
    )


def test_status_lines_of_good_reports():
    assert generate_report([]).endswith("Status: PASSED")
    assert generate_report([Diagnostic(WARNING, "R", 0, "m")]).endswith("Status: PASSED with 1 warning(s)")


def test_every_verifier_has_a_property_and_a_rule():
    for prop, verifier in VERIFIERS.items():
        assert verifier.prop is prop and verifier.rule


def test_a_finding_names_rule_code_and_place():
    [found] = PropertyVerifierRegistry.verify(property_set(IRProperty.SSAForm), two_definitions())
    assert (found.severity, found.rule_name, found.error_code) == (ERROR, "SSAVerify", 1)
    assert str(found.span) == "kernel.py:7:5" and "assigned more than once" in found.message


def test_verify_or_throw():
    with pytest.raises(pypto.Error, match="Status: FAILED") as caught:
        PropertyVerifierRegistry.verify_or_throw(property_set(IRProperty.SSAForm), two_definitions())
    assert not isinstance(caught.value, RuntimeError)
    assert isinstance(caught.value, VerificationError) and len(caught.value.diagnostics) == 1


def test_verify_properties_names_the_pass():
    wanted = property_set(IRProperty.SSAForm)
    with pytest.raises(VerificationError, match="Verification failed after 'Foo' for properties {SSAForm}:") as caught:
        passes.verify_properties(wanted, two_definitions(), "Foo")
    assert caught.value.pass_name == "Foo" and caught.value.properties == [IRProperty.SSAForm]


def test_a_property_without_a_verifier_contributes_nothing():
    unverified = [p for p in IRProperty if p not in VERIFIERS]
    assert PropertyVerifierRegistry.verify(property_set(*unverified), two_definitions()) == []


def test_run_verifier_gives_its_input_or_raises():
    program = two_definitions()
    assert passes.run_verifier(property_set(IRProperty.ArrayNotEscaped))(program) is program
    with pytest.raises(pypto.Error):
        passes.run_verifier()(program)
    assert passes.run_verifier().get_name() == "IRVerifier"
    assert passes.run_verifier().get_produced_properties().empty()


# Spec 04, section 3: the rule where it is not called like the property.
RULES = {
    "SSAForm": "SSAVerify",
    "TypeChecked": "TypeCheck",
    "NoNestedCalls": "NoNestedCall",
    "BreakContinueValid": "BreakContinueCheck",
    "UseAfterDef": "UseAfterDefCheck",
    "InOutUseValid": "InOutUseDiscipline",
    "HardSyncallOccupancyValid": "HardSyncallOccupancy",
}


def test_the_names_of_the_rules():
    for prop, verifier in VERIFIERS.items():
        assert verifier.rule == RULES.get(prop.name, prop.name)


def test_the_front_half_is_verified():
    """All that spec 04, section 27, and the structural group name."""
    wanted = passes.get_structural_properties().union_with(passes.get_default_verify_properties())
    for name in (
        "NormalizedStmtStructure StructuredCtrlFlow InlineFunctionsEliminated UnrollResolved PipelineResolved "
        "AssignTypeSymmetry OrchestrationReferencesResolved SplitIncoreOrch HierarchyOutlined ClusterOutlined "
        "AivSplitValid TensorViewCanonical"
    ).split():
        wanted.insert(IRProperty[name])
    assert [p.name for p in wanted if p not in VERIFIERS] == []


def test_warnings_alone_do_not_raise(monkeypatch):
    from pypto.verify.registry import Verifier

    prop = IRProperty.HasMemRefs
    look = Verifier(prop, "Looks", lambda _function, findings: findings.warning(3, "odd", HERE))
    monkeypatch.setitem(VERIFIERS, prop, look)
    wanted = property_set(prop)
    [found] = PropertyVerifierRegistry.verify(wanted, two_definitions())
    assert (found.severity, found.error_code, found.rule_name) == (WARNING, 3, "Looks")
    PropertyVerifierRegistry.verify_or_throw(wanted, two_definitions())
    passes.verify_properties(wanted, two_definitions(), "Foo")


def test_the_order_of_findings():
    """By property as in the enum, then by function as in the program."""
    x = ir.Var("x", ir.ScalarType(ir.INDEX))
    one = ir.ConstInt(1, ir.INDEX)
    body = ir.SeqStmts([ir.AssignStmt(x, one, HERE), ir.AssignStmt(x, one, HERE), ir.BreakStmt(HERE)])
    program = ir.Program([ir.Function("g", [], [], body), ir.Function("f", [], [], body)], "P")
    found = PropertyVerifierRegistry.verify(property_set(IRProperty.BreakContinueValid, IRProperty.SSAForm), program)
    order = [name for name in (f.name for f in program.functions.values())]
    assert [(d.rule_name, d.error_code) for d in found] == [("SSAVerify", 1)] * 2 + [("BreakContinueCheck", 305)] * 2
    assert [next(n for n in order if f"'{n}'" in d.message) for d in found] == order * 2


def test_the_numbers_of_the_rules():
    def table(kind):
        return {member.name: member.value for member in kind}

    assert table(passes.SSAErrorType) == {
        "MULTIPLE_ASSIGNMENT": 1,
        "NAME_SHADOWING": 2,
        "MISSING_YIELD": 3,
        "ITER_ARGS_RETURN_VARS_MISMATCH": 4,
        "YIELD_COUNT_MISMATCH": 5,
        "SCOPE_VIOLATION": 6,
        "MISPLACED_YIELD": 7,
    }
    assert table(passes.TypeCheckErrorType) == {
        "TYPE_KIND_MISMATCH": 101,
        "DTYPE_MISMATCH": 102,
        "SHAPE_DIMENSION_MISMATCH": 103,
        "SHAPE_VALUE_MISMATCH": 104,
        "SIZE_MISMATCH": 105,
        "IF_CONDITION_MUST_BE_SCALAR": 106,
        "FOR_RANGE_MUST_BE_SCALAR": 107,
        "CONDITION_MUST_BE_BOOL": 108,
        "TENSOR_PADDING_MISMATCH": 109,
        "DISTRIBUTED_WINDOW_IDENTITY_MISMATCH": 110,
        "TILE_VIEW_MISMATCH": 111,
    }
    assert table(passes.NestedCallErrorType) == {
        "CALL_IN_CALL_ARGS": 201,
        "CALL_IN_IF_CONDITION": 202,
        "CALL_IN_FOR_RANGE": 203,
        "CALL_IN_BINARY_EXPR": 204,
        "CALL_IN_UNARY_EXPR": 205,
        "CALL_IN_WHILE_CONDITION": 206,
    }
    assert table(passes.UseAfterDefErrorType) == {"USE_BEFORE_DEF": 401}


def test_the_classes_of_errors():
    assert issubclass(VerificationError, pypto.Error) and passes.VerificationError is VerificationError
    assert not issubclass(pypto.Error, RuntimeError) and issubclass(pypto.InternalError, RuntimeError)
    assert issubclass(passes.PassError, ValueError) and issubclass(passes.PassTypeError, TypeError)
    assert str(passes.PassError("no", HERE)) == "no [kernel.py:7:5]"
    empty = VerificationError("m")
    assert (empty.diagnostics, empty.pass_name, empty.properties) == ([], "", [])
