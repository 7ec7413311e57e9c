"""Run the passes one by one; behind each, verify what is expected to hold and run the program."""

from __future__ import annotations

import re
import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pypto.language as pl
from pypto import ir
from pypto.ir.instruments import check_roundtrip
from pypto.passes.base import Pass
from pypto.passes.errors import PassError
from pypto.verify.facts import FACTS
from pypto.verify.properties import IRProperty, get_structural_properties

from .run import Arguments, Outcome, arguments, difference, run

SOURCE = "the source program"

# Passes that may change how results are rounded, and by how much (relative). No pass of today does.
TOLERANCES: dict[str, float] = {}


def pipeline() -> list[Pass]:
    """The passes of the default strategy, in order."""
    from pypto.passes.pipeline import DEFAULT

    return [make() for make in DEFAULT]


@dataclass(frozen=True)
class Fault:
    """What went wrong behind which pass. ``kind``: parse, run, order, round trip (before any pass); raised, refused,
    unverified, mismatch, order, unstable, round trip (behind one)."""

    where: str
    kind: str
    message: str
    after: str = ""  # the program at that point

    @property
    def key(self) -> tuple[str, str, str]:
        """Equal for faults that look like the same one."""
        return self.where, self.kind, re.sub(r"'[^']*'|\d+|\[[^\]]*\]", "_", self.message.split("\n")[0])[:60]

    def __str__(self) -> str:
        return f"{self.where}: {self.kind}: {self.message}"


@dataclass
class Counts:
    """What was done."""

    programs: int = 0
    passes: int = 0
    runs: int = 0
    features: Counter[str] = field(default_factory=Counter)

    def add(self, other: Counts) -> None:
        self.programs += other.programs
        self.passes += other.passes
        self.runs += other.runs
        self.features.update(other.features)


class Checker:
    """Checks programs against one list of passes.

    ``orders``: how many random legal orders to run behind each pass. ``round_trip``: print and parse the program behind
    each pass that changed it. ``unordered_writes``: the program writes what tasks before it read; the task model does
    not order that (spec 10, section 4) once call directions are derived, so other orders are not run from there on.
    """

    def __init__(self, passes: Sequence[Pass] | None = None, orders: int = 1, round_trip: bool = False) -> None:
        self.passes = pipeline() if passes is None else list(passes)
        self.orders = orders
        self.round_trip = round_trip
        self.counts = Counts()

    def until(self, where: str) -> Checker:
        """A checker that stops behind the pass of this name."""
        names = [each.get_name() for each in self.passes]
        last = len(names) - names[::-1].index(where) if where in names else 0
        return Checker(self.passes[:last], self.orders, self.round_trip)

    def check_text(self, text: str, entry: str = "main", unordered_writes: bool = False) -> Fault | None:
        """Check a module that defines one program."""
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                program = pl.parse(text, "generated.py")
        except Exception as error:
            return Fault(SOURCE, "parse", _shown(error))
        if not isinstance(program, ir.Program) or program.get_function(entry) is None:
            return Fault(SOURCE, "parse", f"there is no program with a function '{entry}'")
        inputs = [arguments(program[entry], seed) for seed in (1, 2)]
        return self.check(program, entry, inputs, unordered_writes)

    def check(
        self, program: ir.Program, entry: str, inputs: Sequence[Arguments], unordered_writes: bool = False
    ) -> Fault | None:
        """Check one program on these arguments; the first fault, or None."""
        self.counts.programs += 1
        names = [param.name_hint for param in program[entry].params]
        try:
            expected = [self._run(program, entry, args) for args in inputs]
        except Exception as error:
            return Fault(SOURCE, "run", _shown(error), _printed(program))
        found = self._compare(program, entry, inputs, expected, names, SOURCE, True)
        if found is None and self.round_trip:
            found = self._round_trip(program, SOURCE)
        expected_to_hold = get_structural_properties()
        directed = False
        for each in self.passes:
            if found is not None:
                return found
            name = each.get_name()
            before = program
            self.counts.passes += 1
            try:
                program = each(before)
            except PassError as error:
                return Fault(name, "refused", _shown(error), _printed(before))
            except Exception as error:
                return Fault(name, "raised", _shown(error), _printed(before))
            produced = each.get_produced_properties()
            directed = directed or produced.contains(IRProperty.CallDirectionsResolved)
            expected_to_hold = expected_to_hold.difference(each.get_invalidated_properties()).union_with(produced)
            found = self._verify(program, expected_to_hold, name)
            if found is None and program is not before:
                ordered = not (directed and unordered_writes)
                found = self._compare(program, entry, inputs, expected, names, name, ordered)
                if found is None:
                    found = self._stable(each, program)
                if found is None and self.round_trip:
                    found = self._round_trip(program, name)
        return found

    def _run(
        self, program: ir.Program, entry: str, args: Arguments, schedule: str = "submit", seed: int = 0
    ) -> Outcome:
        self.counts.runs += 1
        return run(program, entry, args, schedule, seed)

    def _compare(
        self,
        program: ir.Program,
        entry: str,
        inputs: Sequence[Arguments],
        expected: Sequence[Outcome],
        names: Sequence[str],
        where: str,
        ordered: bool,
    ) -> Fault | None:
        """The results are those of the source program, in submit order and in other legal orders."""
        tolerance = TOLERANCES.get(where, 0.0)
        for at, (args, want) in enumerate(zip(inputs, expected, strict=True)):
            orders = [("submit", 0)] if where is not SOURCE else []
            orders += [("random", seed + at) for seed in range(self.orders if ordered and at == 0 else 0)]
            for schedule, seed in orders:
                kind = "mismatch" if schedule == "submit" else "order"
                try:
                    got = self._run(program, entry, args, schedule, seed)
                except Exception as error:
                    return Fault(where, kind, _shown(error), _printed(program))
                message = difference(want, got, names, tolerance)
                if message is not None:
                    return Fault(where, kind, message, _printed(program))
        return None

    def _verify(self, program: ir.Program, properties: Any, where: str) -> Fault | None:
        try:
            errors = [d for d in FACTS.establish(properties, program) if d.is_error]
        except Exception as error:
            return Fault(where, "unverified", _shown(error), _printed(program))
        if not errors:
            return None
        return Fault(where, "unverified", f"{errors[0].rule_name}: {errors[0].message}", _printed(program))

    def _stable(self, each: Pass, program: ir.Program) -> Fault | None:
        """A pass has nothing to do on its own result."""
        try:
            again = each(program)
        except Exception as error:
            return Fault(each.get_name(), "unstable", f"on its own result: {_shown(error)}", _printed(program))
        if again is program:
            return None
        return Fault(
            each.get_name(), "unstable", "changes its own result", f"{_printed(program)}\n# then\n{_printed(again)}"
        )

    def _round_trip(self, program: ir.Program, where: str) -> Fault | None:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                check_roundtrip(program, where)
        except Exception as error:
            return Fault(where, "round trip", _shown(error), _printed(program))
        return None


def _shown(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"


def _printed(program: ir.Program) -> str:
    try:
        return program.as_python(format=False)
    except Exception as error:
        return f"(cannot be printed: {error})"
