"""The shared programs and all examples keep their meaning through every pass."""

from __future__ import annotations

import importlib.util
import inspect
import pathlib
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from pypto import ir
from pypto.ir.expr import GlobalVar
from pypto.ir.tree import walk
from pypto.passes.base import Pass

from .harness import Checker
from .run import difference, run

ROOT = pathlib.Path(__file__).parents[2]
SHARED = ROOT.parent / "shared" / "programs"
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
PROGRAMS = sorted(p for p in SHARED.glob("*.py") if p.stem != "run_all") if SHARED.is_dir() else []


def load(path: pathlib.Path) -> Any:
    name = f"differential_{path.parent.name}_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


class ProgramEntry:
    """One entry of a program file, as IR before any pass, and arguments for it."""

    def __init__(self, module: Any, entry: Any, seed: int) -> None:
        args = module.make_args(np.random.default_rng(seed))
        self.expected = module.expected(*[np.copy(a) if isinstance(a, np.ndarray) else a for a in args])
        self.tolerance = {"rtol": getattr(module, "RTOL", 1e-5), "atol": getattr(module, "ATOL", 1e-5)}
        self.args = args
        self.program, self.entry, self.places = _source(entry, args)

    def values(self) -> list[Any]:
        """The arguments that the function takes."""
        return [self.args[place] for place in self.places]

    def check(self, outcome: Sequence[Any]) -> None:
        """The function's arguments, after a run, are what the NumPy reference says."""
        for index, want in self.expected.items():
            got = outcome[self.places.index(index)]
            np.testing.assert_allclose(got.astype(np.float64), np.asarray(want).astype(np.float64), **self.tolerance)


def entries(path: pathlib.Path) -> list[ProgramEntry]:
    """The entries of a program file."""
    module = load(path)
    return [ProgramEntry(module, entry, 0) for entry in getattr(module, "ENTRIES", None) or [module.ENTRY]]


def _source(entry: Any, args: list[Any]) -> tuple[ir.Program, str, list[int]]:
    """The program of an entry before any pass, the function to call, and which arguments it takes."""
    if not isinstance(entry, ir.Program):
        program = entry.specialize(*args)
        names = list(inspect.signature(entry).parameters)  # numbers are baked into the program
        return program, entry.__name__, [names.index(p.name_hint) for p in program[entry.__name__].params]
    called = {
        n.op.name for f in entry.functions.values() for n in walk(f.body) if type(getattr(n, "op", None)) is GlobalVar
    }
    (function,) = [f for f in entry.functions.values() if f.name not in called]
    return entry, function.name, list(range(len(args)))


@pytest.mark.skipif(not PROGRAMS, reason=f"no shared programs in {SHARED}")
@pytest.mark.parametrize("path", PROGRAMS, ids=[p.stem for p in PROGRAMS])
def test_shared_program(path: pathlib.Path) -> None:
    check_file(path)


@pytest.mark.parametrize("path", EXAMPLES, ids=[p.stem for p in EXAMPLES])
def test_example(path: pathlib.Path) -> None:
    check_file(path)


def check_file(path: pathlib.Path, passes: list[Pass] | None = None) -> None:
    """Every entry of a program file means what its NumPy reference says, before the first pass and behind each."""
    for found in entries(path):
        values = found.values()
        outcome = run(found.program, found.entry, values)
        found.check(outcome)
        names = [p.name_hint for p in found.program[found.entry].params]
        assert difference([*values], outcome[: len(values)], names) is not None, "the program does nothing"
        fault = Checker(passes, orders=2).check(found.program, found.entry, [values])
        assert fault is None, f"{fault}\n{fault.after}"
