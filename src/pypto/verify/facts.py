"""What was verified of which functions: facts about immutable objects, which stay true.

A property that holds of a ``Function`` object holds for ever, since the object can't change. So nobody has to say
which properties a pass keeps or breaks: a function that a pass gives back unchanged keeps its facts, a new one has
none and is verified. A verifier that looks at callees, or at the target, is believed only while the signatures that it
saw, or the target, are the same.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any
from weakref import WeakKeyDictionary

from ..ir.program import Function, Program
from ..target.model import Target
from ..target.selection import selected_target
from .call_sites import call_sites
from .diagnostics import Diagnostic
from .properties import IRProperty
from .registry import VERIFIERS, Verifier

# The names that a function calls or submits -> their signatures.
_Signatures = dict[str, tuple[Any, ...] | None]
# What else a fact rests on: the selected target, and signatures; None for nothing but the function.
_Basis = tuple[Target | None, _Signatures]


class Facts:
    """Verified properties by function. ``checks`` counts the runs of verifiers, for tests of what was not run."""

    def __init__(self) -> None:
        self._holds: WeakKeyDictionary[Function, dict[IRProperty, _Basis | None]] = WeakKeyDictionary()
        self._origins: WeakKeyDictionary[Function, str] = WeakKeyDictionary()
        self.checks = 0

    def establish(self, properties: Iterable[IRProperty], program: Program) -> list[Diagnostic]:
        """Verify what is not known yet and remember what holds; gives the findings, warnings included.

        In the order of properties, and of functions for each.
        """
        verifiers = [VERIFIERS[prop] for prop in properties if prop in VERIFIERS]
        found: dict[IRProperty, list[Diagnostic]] = {}
        for function in program.functions.values():
            known = self._holds.get(function)
            if known is None:
                known = self._holds[function] = {}
            for verifier in verifiers:
                if self._known(known, verifier.prop, program):
                    continue
                if verifier.implied_by is not None and self._known(known, verifier.implied_by, program):
                    continue
                self.checks += 1
                findings = verifier.run(function, program)
                if findings:
                    found.setdefault(verifier.prop, []).extend(findings)
                if not any(d.is_error for d in findings):
                    known[verifier.prop] = _basis(verifier, function, program)
        return [d for prop in sorted(found) for d in found[prop]]

    def holds(self, prop: IRProperty, function: Function, program: Program) -> bool:
        """Whether the property is known to hold of the function in this program."""
        return self._known(self._holds.get(function, {}), prop, program)

    def _known(self, known: dict[IRProperty, _Basis | None], prop: IRProperty, program: Program) -> bool:
        if prop not in known:
            return False
        basis = known[prop]
        if basis is None:
            return True
        target, seen = basis
        if target is not None and target is not selected_target():
            return False
        return all(_same(seen[name], _signature(program, name)) for name in seen)

    def note_origin(self, before: Program | None, after: Program, pass_name: str) -> None:
        """Remember which pass made the functions of ``after`` that ``before`` does not hold."""
        old = set(before.functions.values()) if before is not None else set()
        for function in after.functions.values():
            if function not in old:
                self._origins.setdefault(function, pass_name)

    def origin(self, function: Function) -> str | None:
        """The pass that made a function, or None."""
        return self._origins.get(function)


def _basis(verifier: Verifier, function: Function, program: Program) -> _Basis | None:
    """What a fact of this verifier rests on besides the function."""
    target = selected_target() if verifier.reads_target else None
    names = call_sites(function).callees if verifier.reads_callees else ()
    if target is None and not names:
        return None
    return target, {name: _signature(program, name) for name in names}


def _signature(program: Program, name: str) -> tuple[Any, ...] | None:
    callee = program.get_function(name)
    if callee is None:
        return None
    return (
        callee.func_type,
        callee.params,
        callee.param_directions,
        callee.return_types,
        callee.level,
        callee.role,
        callee.attrs,
    )


def _same(seen: tuple[Any, ...] | None, now: tuple[Any, ...] | None) -> bool:
    if seen is None or now is None:
        return seen is now
    # The parts are immutable, so the same objects say the same; equal but new ones are simply looked at again.
    return all(a is b for a, b in zip(seen, now, strict=True))


FACTS = Facts()

__all__ = ["FACTS", "Facts"]
