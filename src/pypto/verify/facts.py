"""What was verified of which functions: facts about immutable objects, which stay true.

A property that holds of a ``Function`` object holds for ever, since the object can't change. So nobody has to say
which properties a pass keeps or breaks: a function that a pass gives back unchanged keeps its facts, a new one has
none and is verified. A verifier that looks at callees, or at the target, is believed only while the signatures that it
saw (and what their results are, if it asked), or the target, are the same.
"""

from __future__ import annotations

from collections.abc import Iterable
from operator import is_
from typing import Any
from weakref import WeakKeyDictionary

from ..analysis.callees import callees_of
from ..ir.program import Function, Program
from ..target.model import Target
from ..target.selection import selected_target
from .call_sites import call_sites
from .diagnostics import Diagnostic
from .properties import IRProperty
from .registry import VERIFIERS, Findings, Verifier

# The names that a function calls or submits -> their signatures.
_Signatures = dict[str, tuple[Any, ...] | None]
# The names that a function calls or submits -> which parameters their results are.
_Returns = dict[str, tuple[int | None, ...] | None]
# What else a fact rests on: whether the target matters, which one was selected (perhaps none), signatures and results;
# None for nothing but the function.
_Basis = tuple[bool, Target | None, _Signatures, _Returns]


class Facts:
    """Verified properties by function. ``checks`` counts the runs of verifiers, for tests of what was not run."""

    def __init__(self) -> None:
        self._holds: WeakKeyDictionary[Function, _Known] = WeakKeyDictionary()
        self._origins: WeakKeyDictionary[Function, str] = WeakKeyDictionary()
        self.checks = 0

    def establish(self, properties: Iterable[IRProperty], program: Program) -> list[Diagnostic]:
        """Verify what is not known yet and remember what holds; gives the findings, warnings included.

        In the order of properties, and of functions for each.
        """
        verifiers = [VERIFIERS[prop] for prop in properties if prop in VERIFIERS]
        runs = [(verifier, Findings(verifier.rule)) for verifier in verifiers]
        world = _World(program)
        target = selected_target()
        wanted = {verifier.prop for verifier in verifiers}
        for function in program.functions.values():
            known = self._holds.get(function)
            if known is None:
                known = self._holds[function] = _Known()
            if known.settled_for is not target:
                known.settled_for = target
                known.settled = set()
            settled = known.settled
            if wanted <= settled:
                continue
            for verifier, findings in runs:
                prop = verifier.prop
                if prop in settled:
                    continue
                by = world.known_by(verifier, known)
                if by is None:
                    self.checks += 1
                    found = findings.found
                    before = len(found)
                    verifier.look_at(function, findings, program)
                    if len(found) > before and any(d.is_error for d in found[before:]):
                        continue
                    reads_more = verifier.reads_callees or verifier.reads_returns or verifier.reads_target
                    known[prop] = world.basis(verifier, function) if reads_more else None
                    by = prop
                basis = known[by]
                if basis is None or not basis[2]:
                    settled.add(prop)
        return [d for _, findings in sorted(runs, key=lambda run: run[0].prop) for d in findings.found]

    def holds(self, prop: IRProperty, function: Function, program: Program) -> bool:
        """Whether the property is known to hold of the function in this program."""
        known = self._holds.get(function, _Known())
        return prop in known and _World(program).bears(known[prop])

    def note_origin(self, before: Program | None, after: Program, pass_name: str) -> None:
        """Remember which pass made the functions of ``after`` that ``before`` does not hold."""
        old = set(before.functions.values()) if before is not None else set()
        for function in after.functions.values():
            if function not in old:
                self._origins.setdefault(function, pass_name)

    def origin(self, function: Function) -> str | None:
        """The pass that made a function, or None."""
        return self._origins.get(function)


class _Known(dict[IRProperty, "_Basis | None"]):
    """What is known of a function. ``settled``: the properties that hold whatever other functions are, as long as the
    target is ``settled_for``: most functions have all that is asked for, so that this is one look."""

    __slots__ = ("settled", "settled_for")

    def __init__(self) -> None:
        self.settled: set[IRProperty] = set()
        self.settled_for: Target | None = None


class _World:
    """What facts about functions rest on besides these: the signatures of a program, and the target.

    Each is looked up once, however many functions and properties ask.
    """

    def __init__(self, program: Program) -> None:
        self._program = program
        self._found: _Signatures = {}
        self._function: Function | None = None  # the latest one that was asked about, and what it rests on
        self._seen: _Signatures = {}
        self._borne: dict[int, tuple[_Signatures, bool]] = {}  # by the identity of signatures that facts keep

    def known_by(self, verifier: Verifier, known: _Known) -> IRProperty | None:
        """The property by which it is known here what a verifier would find; None if it is to be looked at."""
        prop, implied_by = verifier.prop, verifier.implied_by
        if prop in known and self.bears(known[prop]):
            return prop
        return implied_by if implied_by is not None and implied_by in known and self.bears(known[implied_by]) else None

    def basis(self, verifier: Verifier, function: Function) -> _Basis | None:
        """What a new fact of this verifier rests on. All facts about a function share its signatures."""
        target = selected_target() if verifier.reads_target else None
        seen: _Signatures = {}
        if verifier.reads_callees or verifier.reads_returns:
            if self._function is not function:
                self._function = function
                self._seen = {name: self._signature(name) for name in call_sites(function).callees}
            seen = self._seen
        returns = {name: self._returns(name) for name in seen} if verifier.reads_returns else {}
        return (verifier.reads_target, target, seen, returns) if verifier.reads_target or seen else None

    def bears(self, basis: _Basis | None) -> bool:
        """Whether a fact that rests on this holds here."""
        if basis is None:
            return True
        reads_target, target, seen, returns = basis
        if reads_target and target is not selected_target():
            return False
        if not seen:
            return True
        found = self._borne.get(id(seen))
        if found is None:
            same = all(_same(was, self._signature(name)) for name, was in seen.items())
            found = self._borne[id(seen)] = seen, same
        return found[1] and all(was == self._returns(name) for name, was in returns.items())

    def _signature(self, name: str) -> tuple[Any, ...] | None:
        if name not in self._found:
            self._found[name] = _signature(self._program, name)
        return self._found[name]

    def _returns(self, name: str) -> tuple[int | None, ...] | None:
        callee = self._program.get_function(name)
        return callees_of(self._program).returned_params(callee) if callee is not None else None


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
    return all(map(is_, seen, now))


FACTS = Facts()

__all__ = ["FACTS", "Facts"]
