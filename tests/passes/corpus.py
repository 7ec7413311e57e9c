"""The programs that the tests of the whole pipeline run on: the shared programs, the examples, the texts of the specs."""

from __future__ import annotations

import importlib
import pathlib
import sys
from collections.abc import Iterator
from typing import Any

HERE = pathlib.Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent), str(HERE.parent / "programs")]

import numpy as np  # noqa: E402

from differential.test_programs import EXAMPLES, PROGRAMS, load  # noqa: E402
from pypto import ir  # noqa: E402

FILES = [*PROGRAMS, *EXAMPLES]
SPECS = ("test_spec_front", "test_spec_orchestration", "test_spec_tile", "test_spec_distributed", "test_spec_meaning")


def programs_of(path: pathlib.Path) -> list[ir.Program]:
    """The programs of a file as they are before the first pass."""
    module = load(path)
    entries = getattr(module, "ENTRIES", None) or [module.ENTRY]
    args = module.make_args
    return [e if isinstance(e, ir.Program) else e.specialize(*args(np.random.default_rng(0))) for e in entries]


def fragments() -> Iterator[tuple[str, Any, str]]:
    """The texts of the specifications: name, example, and which of its forms."""
    for name in SPECS:
        for example in getattr(importlib.import_module(name), "EXAMPLES", []):
            for form in example.texts:
                yield f"{example.name}, {form}", example, form
