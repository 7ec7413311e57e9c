"""Hand-written orchestrations, run by the C++ task runtime.

A test module makes one :class:`Suite`, and gives it C++ text beside what is expected of it. All texts of a module are
compiled together when the first of them runs, since a compilation costs far more than a run.

>>> suite = Suite("example")
>>> suite.entry("twice", "task(out(x)); task(inout(x));")
>>> edges(suite.run("twice", [np.zeros((4, 4), np.float32)], record=True))
[('overlap', 0, 1)]
"""

import functools
import textwrap
from pathlib import Path

import numpy as np
import pytest

from pypto.runtime.build import CompileFailed, build, load
from pypto.runtime.host_executor import HostProgram, Kernel, RunOptions, TaskError
from pypto.runtime.native_library import REASONS, SOURCES

HEADER = Path(__file__).parent / "kit.h"
COMMON_KERNELS = "nop fill add copy".split()  # kit.h says what they do


class Suite:
    """The C++ texts of one test module, as one library."""

    def __init__(self, name, more="", include=""):
        """``more``: C++ text in front of kernels and entries; ``include``: what it needs beside ``kit.h``."""
        self.name = name
        self._include = include
        self._more = more
        self._kernels = {name: None for name in COMMON_KERNELS}
        self._entries = {}

    def kernel(self, name, body=None):
        """A kernel ``id::<name>``; without a body it is a Python function, which each run has to give."""
        self._kernels[name] = body

    def entry(self, name, body, tensors="x", scalars=""):
        """An orchestration; ``tensors`` and ``scalars`` (int64) name its arguments. Lines count from the body's first."""
        assert name not in self._entries, name
        head = [
            f"const ChipTensor& {t} = orch_args.tensor({i}).ref(); (void){t};" for i, t in enumerate(tensors.split())
        ]
        head += [
            f"const int64_t {s} = from_u64<int64_t>(orch_args.scalar({i})); (void){s};"
            for i, s in enumerate(scalars.split())
        ]
        self._entries[name] = (
            f"PTO_EXPORT void {entry_name(name)}(const ChipTaskArgs& orch_args) {{\n(void)orch_args; {' '.join(head)}\n"
            f'#line 1 "{name}"\n{textwrap.dedent(body).strip()}\n}}\n'
        )

    @property
    def library(self):
        built = self._built()
        if isinstance(built, Exception):
            raise built
        return built

    @functools.cache  # noqa: B019 a suite lives as long as its module
    def _built(self):
        """The library, or why there is none: that is not tried again for each test."""
        try:
            return self._build()
        except CompileFailed as error:
            return error

    def _build(self):
        ids = ", ".join(self._kernels)
        kernels = [
            f"PTO_EXPORT void {name}(int64_t* args) {{\n(void)args;\n{textwrap.dedent(body).strip()}\n}}\n"
            for name, body in self._kernels.items()
            if body is not None
        ]
        text = "\n".join(
            [
                f'#include "kit.h"\n{self._include}',
                f"namespace id {{ enum Kernel : int32_t {{ {ids} }}; }}",
                self._more,
                *kernels,
                *self._entries.values(),
            ]
        )
        sources = [(f"{self.name}.cpp", text), ("kit.h", HEADER.read_text())]
        flags = ("-O0", "-Wextra", "-Werror")  # compiling takes longer than running
        return load(build(sources, include_dirs=[SOURCES], flags=flags, name=self.name))

    def program(self, entry, kernels=None, **more):
        """``entry`` as a program. ``kernels``: Python functions, by name."""
        given = dict(kernels or {})
        table = [Kernel(name, given.pop(name, None) or self._function(name)) for name in self._kernels]
        assert not given, f"no such kernels: {list(given)}"
        return HostProgram(self.library, table, entry=entry_name(entry), config=None, **more)

    def run(self, entry, tensors=(), scalars=(), kernels=None, **options):
        """Run ``entry``; ``options``: of RunOptions, one worker by default."""
        options.setdefault("workers", 1)
        return self.program(entry, kernels).run(list(tensors), list(scalars), RunOptions(**options))

    def _function(self, name):
        def missing(args):
            raise AssertionError(f"kernel {name} was run, and is not given")

        native = name in COMMON_KERNELS or self._kernels[name] is not None
        return getattr(self.library, name) if native else missing

    def fails(self, code, entry, tensors=(), scalars=(), match=None, **more):
        """Run, and expect a TaskError of this code; gives it back."""
        with pytest.raises(TaskError, match=match) as caught:
            self.run(entry, tensors, scalars, **more)
        assert caught.value.code == code, caught.value
        return caught.value


def entry_name(name):
    """Of the C++ function; a kernel may have the plain name."""
    return f"entry_{name}"


def edges(result):
    """The edges of a recorded run as (reason, producer, consumer), by consumer, then producer."""
    found = [(REASONS[e.reason], e.producer, e.consumer) for e in result.records[1]]
    return sorted(found, key=lambda edge: edge[:0:-1])


def zeros(*shape, dtype=np.float32):
    return np.zeros(shape, dtype)


__all__ = ["Suite", "TaskError", "edges", "entry_name", "zeros"]
