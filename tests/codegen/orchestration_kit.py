"""Programs in their final form, the C++ that is emitted for them, and runs of it by the C++ task runtime.

A test module makes one :class:`Suite` and adds its programs. The code of all of them is compiled together, as one file
against the real header, when the first test needs it: a compilation costs far more than a run.

Programs are written in the notation of ``spec_kit``; a kernel stands as ``@AIV`` with an empty meaning of its own, what it
computes is a NumPy function of the same name in ``KERNELS``.
"""

import functools
import re

import numpy as np
import pytest
import spec_kit

from pypto import codegen, passes
from pypto.passes.auto_derive_task_dependencies import auto_derive_task_dependencies
from pypto.passes.classify_iter_arg_carry import classify_iter_arg_carry
from pypto.passes.derive_call_directions import derive_call_directions
from pypto.passes.expand_manual_phase_fence import expand_manual_phase_fence
from pypto.passes.fuse_create_assemble_to_slice import fuse_create_assemble_to_slice
from pypto.passes.materialize_runtime_scopes import materialize_runtime_scopes
from pypto.passes.normalize_return_order import normalize_return_order
from pypto.runtime.build import build, load
from pypto.runtime.compilers import CompilerNotFound, find_compiler
from pypto.runtime.host_executor import HostProgram, Kernel, RunOptions
from pypto.runtime.native_library import REASONS, SOURCES

F32 = np.float32

# The kernels that most programs launch: buffers of 8 by 8.
BASE = """
@AIV
def part(self, x: f32[8, 8], i: idx, y: pl.Out[f32[8, 8]]) -> f32[8, 8]:
    y1 = pl.store(pl.add(pl.load(x, [i, 0], [1, 8]), 1.0), [i, 0], y)
    return y
@AIV
def fix(self, x: f32[8, 8], y: pl.InOut[f32[8, 8]]) -> f32[8, 8]:
    t = pl.add(pl.load(x, [0, 0], [8, 8]), pl.load(y, [0, 0], [8, 8]))
    y1 = pl.store(t, [0, 0], y)
    return y
@AIV
def twice(self, y: pl.InOut[f32[8, 8]]) -> f32[8, 8]:
    y1 = pl.store(pl.mul(pl.load(y, [0, 0], [8, 8]), 2.0), [0, 0], y)
    return y
@AIV
def plus(self, cur: f32[8, 8], nxt: pl.Out[f32[8, 8]]) -> f32[8, 8]:
    n1 = pl.store(pl.add(pl.load(cur, [0, 0], [8, 8]), 1.0), [0, 0], nxt)
    return nxt
@AIV
def both(self, x: f32[8, 8], p: pl.Out[f32[8, 8]], q: pl.Out[f32[8, 8]]) -> tuple[f32[8, 8], f32[8, 8]]:
    t = pl.load(x, [0, 0], [8, 8])
    q1 = pl.store(pl.mul(t, 3.0), [0, 0], q)
    p1 = pl.store(pl.mul(t, 5.0), [0, 0], p)
    return p, q
@AIV
def scale(self, x: f32[8, 8], gain: pl.Scalar[pl.FP32], y: pl.Out[f32[8, 8]]) -> f32[8, 8]:
    y1 = pl.store(pl.mul(pl.load(x, [0, 0], [8, 8]), gain), [0, 0], y)
    return y
@AIV
def mark(self, i: idx, y: pl.InOut[f32[8, 8]]) -> f32[8, 8]:
    y1 = pl.store(pl.add(pl.load(y, [i, 0], [1, 8]), 1.0), [i, 0], y)
    return y
"""


def part(args):
    i = args.scalar(2)
    args.tensor(1)[i] = args.tensor(0)[i] + 1


def fix(args):
    args.tensor(1)[:] += args.tensor(0)


def twice(args):
    args.tensor(0)[:] *= 2


def plus(args):
    args.tensor(1)[:] = args.tensor(0) + 1


def both(args):
    args.tensor(1)[:] = args.tensor(0) * 5
    args.tensor(2)[:] = args.tensor(0) * 3


def scale(args):
    args.tensor(1)[:] = args.tensor(0) * np.array(args.scalar(2) & 0xFFFFFFFF, np.uint32).view(np.float32)


def mark(args):
    args.tensor(0)[args.scalar(1)] += 1


KERNELS = {k.__name__: k for k in (part, fix, twice, plus, both, scale, mark)}


def final(methods, directed=True):
    """A program whose scopes are placed, with directions (unless ``directed`` is false) and the plan of its carries."""
    program = spec_kit.parse(methods)
    if directed:
        program = derive_call_directions()(program)
        program = classify_iter_arg_carry()(program)
    return program


def back_end(program, derive=False):
    """What the passes behind outlining make of a program, which may be in the form that users write."""
    # ``derive``: with edges between tasks that the compiler finds, and MANUAL scopes of its own.
    for make in (
        passes.convert_to_ssa,
        passes.simplify,
        passes.normalize_stmt_structure,
        passes.flatten_call_expr,
        normalize_return_order,
        fuse_create_assemble_to_slice,
        derive_call_directions,
        lambda: auto_derive_task_dependencies(derive),
        expand_manual_phase_fence,
        passes.simplify,
        materialize_runtime_scopes,
        classify_iter_arg_carry,
    ):
        program = make()(program)
    return program


class Case:
    """One program of a suite."""

    def __init__(self, suite, name, program, func, kernels):
        self.suite = suite
        self.name = name
        self.program = program
        self.function = program.get_function(func)
        self.kernels = kernels

    @functools.cached_property
    def result(self):
        return codegen.generate_orchestration(self.program, self.function)

    @property
    def code(self):
        """The text, which is compiled before anybody looks at it."""
        self.suite.require_library()
        return self.result.code

    @property
    def lines(self):
        """The body of the entry, without indentation and blank lines."""
        body = self.code.partition("void aicpu_orchestration_entry")[2].splitlines()[1:]
        return [line.strip() for line in body if line.strip()]

    def run(self, tensors, scalars=(), **options):
        """Run with two workers; gives the result of the run."""
        program = HostProgram(
            self.suite.require_library(),
            [Kernel(name, self.kernels[name]) for name in self.result.func_name_to_id],
            entry=f"entry_{self.name}",
            config=f"config_{self.name}",
        )
        return program.run(tensors, scalars, RunOptions(**{"workers": 2, "record": True, **options}))


class Suite:
    """The programs of one test module."""

    def __init__(self, name):
        self.name = name
        self.cases = {}

    def add(self, name, methods, func="run", base=BASE, kernels=None, directed=True):
        """A program; see :func:`final`."""
        assert name not in self.cases, name
        program = final(methods + base, directed)
        self.cases[name] = made = Case(self, name, program, func, {**KERNELS, **(kernels or {})})
        return made

    @functools.cache  # noqa: B019  suites live as long as their module
    def _built(self):
        try:
            find_compiler()
        except CompilerNotFound as error:
            return error
        texts = []
        for name, case in self.cases.items():
            texts.append(
                f"#define aicpu_orchestration_entry entry_{name}\n#define aicpu_orchestration_config config_{name}\n"
            )
            texts.append(f'#line 1 "{name}.cpp"\n{case.result.code}')
            texts.append("#undef aicpu_orchestration_entry\n#undef aicpu_orchestration_config\n")
        # Two files may define the same helper; each is a file of its own outside of these tests.
        text = "".join(texts)
        text = re.sub(r"static inline int64_t (pypto_floor_\w+)(?=\(int64_t a)", _numbered(), text)
        flags = (
            "-O0",
            "-Wall",
            "-Werror",
            "-Wno-unused-variable",
            "-Wno-unused-but-set-variable",
            "-Wno-unused-function",
        )
        flags += ("-Wno-sign-compare", "-Wno-unused-label")
        return load(build([(f"{self.name}.cpp", text)], include_dirs=[SOURCES], flags=flags, name=self.name))

    def require_library(self):
        """The compiled programs."""
        built = self._built()
        if isinstance(built, CompilerNotFound):
            pytest.skip(f"emitted C++ is compiled, and there is no compiler: {built}")
        return built


def _numbered():
    seen = set()

    def replace(match):
        name = match[1]
        first = name not in seen
        seen.add(name)
        return match[0] if first else f"static inline int64_t {name}_again_{match.start()}"

    return replace


def generate(methods, func="run", base=BASE, directed=True):
    """The result for a program that is not compiled: for refusals."""
    program = final(methods + base, directed)
    return codegen.generate_orchestration(program, program.get_function(func))


def orchestration(signature, body):
    """The text of an orchestration ``run`` whose scopes are placed."""
    lines = "\n".join(f"    {line}" for line in body.strip("\n").splitlines())
    head = "@pl.function(type=pl.FunctionType.Orchestration, auto_scope=False)"
    return f"{head}\ndef run(self, {signature}):\n{lines}\n"


def edges(result, reason=None):
    """(producer, consumer) of the edges of a recorded run; ``reason``: only those of that kind."""
    found = [(REASONS[e.reason], int(e.producer), int(e.consumer)) for e in result.records[1]]
    return sorted({(p, c) for why, p, c in found if reason in (None, why)})


def ramp(*shape):
    return np.arange(np.prod(shape), dtype=F32).reshape(shape)


def zeros(*shape):
    return np.zeros(shape, F32)
