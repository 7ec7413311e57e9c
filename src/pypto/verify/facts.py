"""What was verified of which functions: facts about immutable objects, which stay true.

A property that holds of a ``Function`` object holds for ever, since the object can't change. So nobody has to say
which properties a pass keeps or breaks: a function that a pass gives back unchanged keeps its facts, a new one has
none and is verified. A verifier that looks at callees is believed again only while the signatures it saw are the same.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any
from weakref import WeakKeyDictionary

from ..ir.expr import GlobalVar
from ..ir.program import Function, Program
from ..ir.traversal import walk
from .diagnostics import Diagnostic
from .properties import IRProperty
from .registry import VERIFIERS

# The names that a function calls or submits -> their signatures.
_Signatures = dict[str, tuple[Any, ...] | None]


class Facts:
    """Verified properties by function. ``checks`` counts the runs of verifiers, for tests of what was not run."""

    def __init__(self) -> None:
        self._holds: WeakKeyDictionary[Function, dict[IRProperty, _Signatures | None]] = WeakKeyDictionary()
        self._callees: WeakKeyDictionary[Function, tuple[str, ...]] = WeakKeyDictionary()
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
                    known[verifier.prop] = self._signatures(function, program) if verifier.reads_callees else None
        return [d for prop in sorted(found) for d in found[prop]]

    def holds(self, prop: IRProperty, function: Function, program: Program) -> bool:
        """Whether the property is known to hold of the function in this program."""
        return self._known(self._holds.get(function, {}), prop, program)

    def _known(self, known: dict[IRProperty, _Signatures | None], prop: IRProperty, program: Program) -> bool:
        if prop not in known:
            return False
        seen = known[prop]
        return seen is None or all(_same(seen[name], _signature(program, name)) for name in seen)

    def note_origin(self, before: Program | None, after: Program, pass_name: str) -> None:
        """Remember which pass made the functions of ``after`` that ``before`` does not hold."""
        old = set(before.functions.values()) if before is not None else set()
        for function in after.functions.values():
            if function not in old:
                self._origins.setdefault(function, pass_name)

    def origin(self, function: Function) -> str | None:
        """The pass that made a function, or None."""
        return self._origins.get(function)

    def _signatures(self, function: Function, program: Program) -> _Signatures:
        names = self._callees.get(function)
        if names is None:
            called = {node.op.name: None for node in walk(function.body) if type(getattr(node, "op", None)) is GlobalVar}
            names = self._callees[function] = tuple(called)
        return {name: _signature(program, name) for name in names}


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
