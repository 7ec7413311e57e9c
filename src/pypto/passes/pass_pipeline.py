"""Running passes one after another, verifying behind each."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any

from ..compile_profiling import get_active_profiler
from ..ir.paused_gc import paused_gc
from ..ir.program import Program
from ..verify.checks import DiagnosticCheckRegistry, DiagnosticPhase, emit, get_default_diagnostic_phase
from ..verify.diagnostics import Diagnostic, VerificationError, generate_report
from ..verify.facts import FACTS
from ..verify.properties import IRPropertySet, get_structural_properties, property_set
from ..verify.registry import VERIFIERS
from .base import Pass
from .context import PassContext, VerificationLevel, get_default_verification_level
from .instruments import DiagnosticInstrument, ReportInstrument

INPUT_LABEL, OUTPUT_LABEL = "pipeline_input", "pipeline_output"


class PassPipeline:
    """A list of passes, run in order.

    Behind each pass every property that is expected to hold is verified: what held before, without what the pass
    invalidates, with what it produces, and what holds of every program. Only functions that changed are looked at; see
    :mod:`pypto.verify.facts`. A pass whose required properties do not hold is not run.
    """

    def __init__(self) -> None:
        self._passes: list[Pass] = []

    def add_pass(self, pass_obj: Pass) -> None:
        """Add a pass at the end."""
        if not isinstance(pass_obj, Pass):
            raise TypeError(f"a pipeline holds passes, got {type(pass_obj).__name__}")
        self._passes.append(pass_obj)

    def get_pass_names(self) -> list[str]:
        """The names of the passes, in order."""
        return [p.get_name() for p in self._passes]

    def get_passes(self) -> list[Pass]:
        """The passes, in order."""
        return list(self._passes)

    @paused_gc()
    def run(self, program: Program) -> Program:
        """The program after all passes.

        Raises :class:`VerificationError` (a ``pypto.Error``) naming the pass behind which a property does not hold.
        """
        if not isinstance(program, Program):
            raise TypeError(f"a pipeline takes an ir.Program, got {type(program).__name__}")
        if not self._passes:
            return program
        context = PassContext.current()
        if context is None:
            level, phase = get_default_verification_level(), get_default_diagnostic_phase()
        else:
            level, phase = context.get_verification_level(), context.get_diagnostic_phase()
        channel = _Channel(context, phase)
        verifier = _Verifier(level, channel)
        channel.run(DiagnosticPhase.PRE_PIPELINE, program, INPUT_LABEL)
        verifier.check_input(program)
        profiler = get_active_profiler()
        for each in self._passes:
            verifier.check_required(each, program)
            with profiler.stage(each.get_name()) if profiler is not None else nullcontext():
                result = each(program)
            verifier.check_result(each, program, result)
            channel.run(DiagnosticPhase.POST_PASS, result, each.get_name())
            program = result
        channel.run(DiagnosticPhase.POST_PIPELINE, program, OUTPUT_LABEL)
        for instrument in context.get_instruments() if context is not None else ():
            instrument.run_after_pipeline(program)
        return program


class _Channel:
    """The warnings and hints of one run."""

    def __init__(self, context: PassContext | None, phase: DiagnosticPhase) -> None:
        checks = DiagnosticCheckRegistry.get_all_checks()
        instruments = context.get_instruments() if context is not None else []
        own = [i for i in instruments if isinstance(i, DiagnosticInstrument)]
        if own:
            checks = own[0].checks
        elif context is not None:
            checks = checks.difference(context.get_disabled_diagnostics())
        self._checks = checks
        self._on = bool(own) or phase is not DiagnosticPhase.NONE
        reports = [i.get_output_dir() for i in instruments if isinstance(i, ReportInstrument)]
        self._report_dir = reports[0] if reports else None

    def run(self, phase: DiagnosticPhase, program: Program, label: str) -> None:
        if self._on:
            self.emit(DiagnosticCheckRegistry.run_checks(self._checks, phase, program), label)

    def emit(self, found: Sequence[Diagnostic], label: str) -> None:
        if self._on and found:
            emit(list(found), label, self._report_dir)


class _Verifier:
    """What is expected of the program, as one run goes on."""

    def __init__(self, level: VerificationLevel, channel: _Channel) -> None:
        self._channel = channel
        self._on = level is not VerificationLevel.NONE
        self._roundtrip = level is VerificationLevel.ROUNDTRIP
        self._expected = get_structural_properties()
        # What was established of the program object that the last pass gave.
        self._known = IRPropertySet()

    def check_input(self, program: Program) -> None:
        if self._on:
            self._verify(self._expected, program, INPUT_LABEL, f"Verification failed after '{INPUT_LABEL}'")

    def check_required(self, each: Pass, program: Program) -> None:
        if not self._on:
            return
        required = each.get_required_properties().difference(self._known)
        found = [d for d in FACTS.establish(required, program) if d.is_error]
        if found:
            names = _failed(required, found)
            first = found[0]
            where = f" at {first.span}" if first.span.is_valid() else ""
            raise VerificationError(
                f"pass '{each.get_name()}' requires {names}: {first.message}{where}\n{generate_report(found)}",
                found,
                each.get_name(),
                names.to_list(),
            )

    def check_result(self, each: Pass, before: Program, after: Program) -> None:
        if not self._on:
            return
        name = each.get_name()
        if after is not before:
            FACTS.note_origin(before, after, name)
            self._known = IRPropertySet()
        invalidated = each.get_invalidated_properties()
        self._expected = self._expected.difference(invalidated).union_with(each.get_produced_properties())
        self._expected = self._expected.union_with(get_structural_properties())
        self._verify(self._expected, after, name, f"Verification failed after '{name}'")
        if self._roundtrip and after is not before:
            from ..ir.instruments import check_roundtrip

            check_roundtrip(after, name)

    def _verify(self, properties: IRPropertySet, program: Program, name: str, what: str) -> None:
        wanted = properties.difference(self._known)
        if wanted.empty():
            return
        found = FACTS.establish(wanted, program)
        if any(d.is_error for d in found):
            raise_failure(what, wanted, found, name, program)
        self._channel.emit(found, name)
        self._known = self._known.union_with(wanted)


def raise_failure(
    what: str, properties: IRPropertySet, found: Sequence[Diagnostic], name: str, program: Program | None = None
) -> None:
    """Raise the error that says which of the properties do not hold, with the report."""
    failed = _failed(properties, found)
    made = _makers(failed, program, name) if program is not None else ""
    raise VerificationError(
        f"{what} for properties {failed}:{made}\n{generate_report(found)}", found, name, failed.to_list()
    )


def _failed(properties: IRPropertySet, found: Sequence[Diagnostic]) -> IRPropertySet:
    rules = {d.rule_name for d in found if d.is_error}
    return property_set(*(p for p in properties if p in VERIFIERS and VERIFIERS[p].rule in rules))


def _makers(failed: IRPropertySet, program: Program, name: str) -> str:
    """Which earlier passes made the functions at fault, where a fault is found later than it was made."""
    makers: dict[str, None] = {}
    for function in program.functions.values():
        origin = FACTS.origin(function)
        if origin is None or origin == name:
            continue
        if any(d.is_error for prop in failed for d in VERIFIERS[prop].run(function, program)):
            makers[f"'{function.name}' as made by {origin}"] = None
    return f" introduced earlier: {', '.join(makers)}" if makers else ""


def verify_properties(properties: IRPropertySet, program: Program, pass_name: str) -> None:
    """Verify a program; :class:`VerificationError` ``Verification failed after '<pass_name>' for properties {…}:``.

    What is known of functions that were verified before is believed.
    """
    found = FACTS.establish(properties, program)
    if any(d.is_error for d in found):
        raise_failure(f"Verification failed after '{pass_name}'", properties, found, pass_name)


class _RunVerifier(Pass):
    """Verifies, and gives its input back."""

    name = "IRVerifier"

    def __init__(self, properties: IRPropertySet) -> None:
        self._wanted = properties

    def run(self, program: Program) -> Program:
        from ..verify.registry import PropertyVerifierRegistry

        PropertyVerifierRegistry.verify_or_throw(self._wanted, program)
        return program


def run_verifier(properties: IRPropertySet | None = None) -> Pass:
    """A pass that verifies these properties (or the default ones), raises for an error, and gives its input back."""
    from ..verify.properties import get_default_verify_properties

    return _RunVerifier(get_default_verify_properties() if properties is None else property_set(*properties))


__all__: list[Any] = ["INPUT_LABEL", "OUTPUT_LABEL", "PassPipeline", "run_verifier", "verify_properties"]
