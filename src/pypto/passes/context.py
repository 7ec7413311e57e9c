"""The settings under which passes run: a stack of contexts for each thread."""

from __future__ import annotations

import enum
import functools
import os
import threading
from collections.abc import Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any

from ..diag.errors import InternalError
from ..ir.compile_options import MemoryPlanner, RuntimeKind

if TYPE_CHECKING:
    from ..verify.checks import DiagnosticCheckSet, DiagnosticPhase
    from .instruments import PassInstrument


class VerificationLevel(enum.Enum):
    """How much a pipeline verifies: nothing; properties; properties and that the text parses back to the same IR."""

    NONE = 0
    BASIC = 1
    ROUNDTRIP = 2


LEVEL_VARIABLE = "PYPTO_VERIFY_LEVEL"


@functools.cache
def get_default_verification_level() -> VerificationLevel:
    """What ``PYPTO_VERIFY_LEVEL`` says (``none``, ``basic``, ``roundtrip``), read once; BASIC for anything else."""
    name = os.environ.get(LEVEL_VARIABLE, "").strip().upper()
    return VerificationLevel.__members__.get(name, VerificationLevel.BASIC)


_STACKS = threading.local()


def _stack() -> list[PassContext]:
    try:
        return _STACKS.contexts  # type: ignore[no-any-return]
    except AttributeError:
        _STACKS.contexts = []
        return _STACKS.contexts  # type: ignore[no-any-return]


class PassContext:
    """Instruments and choices for the passes that run inside ``with PassContext(...):``, in this thread.

    The innermost context alone counts: nothing is inherited from the ones around it; see :meth:`derive`.
    """

    def __init__(
        self,
        instruments: Sequence[PassInstrument],
        verification_level: VerificationLevel = VerificationLevel.BASIC,
        diagnostic_phase: DiagnosticPhase | None = None,
        disabled_diagnostics: DiagnosticCheckSet | None = None,
        memory_planner: MemoryPlanner = MemoryPlanner.PYPTO,
        enable_pypto_l0c_double_buffer: bool = False,
        runtime: RuntimeKind = RuntimeKind.TENSORMAP_AND_RINGBUFFER,
    ) -> None:
        from ..verify.checks import DiagnosticPhase, default_disabled_checks

        self._fields: dict[str, Any] = {
            "instruments": list(instruments),
            "verification_level": verification_level,
            "diagnostic_phase": DiagnosticPhase.PRE_PIPELINE if diagnostic_phase is None else diagnostic_phase,
            "disabled_diagnostics": (
                default_disabled_checks() if disabled_diagnostics is None else disabled_diagnostics
            ),
            "memory_planner": memory_planner,
            "enable_pypto_l0c_double_buffer": bool(enable_pypto_l0c_double_buffer),
            "runtime": runtime,
        }

    @staticmethod
    def current() -> PassContext | None:
        """The innermost context that this thread is in, or None."""
        stack = _stack()
        return stack[-1] if stack else None

    @classmethod
    def derive(cls, **changes: Any) -> PassContext:
        """A context like the current one with some fields changed, by the names of the constructor's parameters.

        Without a current context, like a fresh one at the default level and phase of the environment.
        """
        current = cls.current()
        if current is None:
            from ..verify.checks import get_default_diagnostic_phase

            fields: dict[str, Any] = {
                "instruments": [],
                "verification_level": get_default_verification_level(),
                "diagnostic_phase": get_default_diagnostic_phase(),
            }
        else:
            fields = current._fields
        return cls(**{**fields, **changes})

    def __enter__(self) -> PassContext:
        _stack().append(self)
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None = None,
        exc_val: BaseException | None = None,
        exc_tb: TracebackType | None = None,
    ) -> None:
        stack = _stack()
        if not stack or stack[-1] is not self:
            raise InternalError("a PassContext must be left in the reverse order of entering")
        stack.pop()

    def get_instruments(self) -> list[PassInstrument]:
        """The instruments, in the order in which their hooks run."""
        return list(self._fields["instruments"])

    def get_verification_level(self) -> VerificationLevel:
        """How much pipelines verify."""
        return self._fields["verification_level"]  # type: ignore[no-any-return]

    def get_diagnostic_phase(self) -> DiagnosticPhase:
        """NONE switches warnings and hints off; otherwise each check runs in its own phase."""
        return self._fields["diagnostic_phase"]  # type: ignore[no-any-return]

    def get_disabled_diagnostics(self) -> DiagnosticCheckSet:
        """The checks that do not run."""
        return self._fields["disabled_diagnostics"]  # type: ignore[no-any-return]

    def get_memory_planner(self) -> MemoryPlanner:
        """Who assigns addresses to on-chip buffers."""
        return self._fields["memory_planner"]  # type: ignore[no-any-return]

    def get_enable_pypto_l0c_double_buffer(self) -> bool:
        """Whether accumulators may be doubled."""
        return self._fields["enable_pypto_l0c_double_buffer"]  # type: ignore[no-any-return]

    def get_runtime(self) -> RuntimeKind:
        """The task runtime that orchestrations are emitted for."""
        return self._fields["runtime"]  # type: ignore[no-any-return]


__all__ = ["LEVEL_VARIABLE", "PassContext", "VerificationLevel", "get_default_verification_level"]
