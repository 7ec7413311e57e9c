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
