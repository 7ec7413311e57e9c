"""A program run by its emitted orchestration code: C++ on the task runtime, kernels in the interpreter."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Sequence
from typing import Any

import msgspec

from ..analysis.overwrites import narrowing_of
from ..codegen.host import for_run
from ..codegen.orchestration import OrchestrationResult, generate_orchestration
from ..codegen.runtime_names import HOST
from ..ir.enums import CoreType
from ..ir.program import Function, Program
from ..ir.type import ScalarType, TensorType
from .background import Work, begin
from .build import BuiltLibrary, build, load
from .host_executor import CONFIG, ENTRY, HostProgram, Kernel, RunOptions, RunResult
from .interpreted_kernels import interpreted_kernels
from .native_kernels import KERNEL_FLAGS, NativeKernels, native_kernels
from .native_library import SOURCES, prepare_task_runtime, task_runtime
from .native_products import Products
from .scalar_args import to_bits
from .taken_results import Taker, allocated
from .task_records import RunRecord
from .touched_parts import parts_of_kernels

# What the compiler would say of emitted code is not for users. The code is short and each statement runs a few times,
# so that compiling it well costs more than it gives.
# Integers wrap, as the language says.
_USUAL = ("-fwrapv", "-Wno-unused-variable", "-Wno-unused-but-set-variable")
_FLAGS = ("-O1", *_USUAL)

_INCLUDE = re.compile(r"^#include .*$", re.MULTILINE)


class EmittedCode:
    """What is emitted for one Orchestration function of a program behind all passes, not compiled yet.

    ``results``: how it hands over what it returns; ``params``: those that a caller gives, of all that it has.

    Raises what :func:`.codegen.generate_orchestration` does.
    """

    def __init__(self, program: Program, name: str) -> None:
        self.program, self.results = for_run(program, name)
        self.params = _function(program, name).params
        self.function = _function(self.program, name)
        self.result: OrchestrationResult = generate_orchestration(self.program, self.function, runtime=HOST)

    def kernels(self) -> list[Function]:
        """The kernels, by the numbers that the code calls them by."""
        ids = self.result.func_name_to_id
        return [_function(self.program, kernel) for kernel in sorted(ids, key=ids.__getitem__)]


class _Made(msgspec.Struct, frozen=True):
    """A library, and what was bound in it, as :meth:`.native_products.Products.bind` says."""

    built: BuiltLibrary
    library: ctypes.CDLL
    bindings: list[tuple[int | None, int | None]]


class Compilation:
    """The code of one program on its way to a library: generated at once, compiled in :meth:`result`, or beside the
    caller from :meth:`start` on.

    Raises what :func:`.codegen.generate_orchestration` does.
    """

    def __init__(self, program: Program, name: str, native: bool) -> None:
        self.code = EmittedCode(program, name)
        self.kernels = _natively(self.code) if native else None
        self._name = name
        self._work: Work[_Made] | None = None

    def start(self) -> None:
        """Begin to compile, on another thread, the task runtime included."""
        if self._work is None:
            self._work = begin(self._compile_with_runtime)

    @property
    def is_done(self) -> bool:
        """Whether what was started has ended."""
        return self._work is not None and self._work.done()

    def result(self) -> _Made:
        """The library, waiting for it.

        Raises :class:`.build.CompileFailed`, :class:`.compilers.CompilerNotFound`.
        """
        return self._compile() if self._work is None else self._work.result()

    def _compile_with_runtime(self) -> _Made:
        prepare_task_runtime()
        made = self._compile()
        task_runtime()
        return made

    def _compile(self) -> _Made:
        sources = [("orchestration.cpp", self.code.result.code)]
        flags_of: dict[str, Sequence[str]] = {"orchestration.cpp": _FLAGS}
        kernels = self.kernels
        if kernels is not None and kernels.made:
            sources.append(("kernels.cpp", kernels.text))
            flags_of["kernels.cpp"] = KERNEL_FLAGS
        products = Products(kernels.products if kernels is not None else (), KERNEL_FLAGS)
        built = build(sources, include_dirs=[SOURCES], flags_of=flags_of, name=self._name)
        library = load(built)
        return _Made(built, library, products.bind(library))


class EmittedProgram:
    """One Orchestration function of a program behind all passes, compiled to a library.

    ``native``: kernels are compiled, too, as far as they have a native form; ``notes`` say which have not and why. The
    others, or all, run in the interpreter: ``native`` has what was generated. ``result``: what was emitted.

    Raises what :func:`.codegen.generate_orchestration` does, and :class:`.compilers.CompilerNotFound` without a C++
    compiler.
    """

    def __init__(self, program: Program, name: str, native: bool = False) -> None:
        self._finish(Compilation(program, name, native))

    @classmethod
    def of(cls, compilation: Compilation) -> EmittedProgram:
        """The program of a compilation, at its end."""
        program = cls.__new__(cls)
        program._finish(compilation)
        return program

    def _finish(self, compilation: Compilation) -> None:
        made = compilation.result()
        self.built = made.built
        self._attach(compilation.code, made.library, ENTRY, CONFIG, compilation.kernels, made.bindings)

    def _attach(
        self,
        code: EmittedCode,
        library: ctypes.CDLL,
        entry: str,
        config: str,
        native: NativeKernels | None = None,
        bindings: Sequence[tuple[int | None, int | None]] = (),
    ) -> None:
        self._code = code
        self._library = library
        self._names = entry, config
        self.native = native
        self.program = code.program
        self.function = code.function
        self.result: OrchestrationResult = code.result
        self.notes = native.notes if native is not None else []
        kernels = code.kernels()
        self._tensors = [i for i, p in enumerate(self.function.params) if isinstance(p.type, TensorType)]
        self._scalars = [
            (i, p.type.dtype) for i, p in enumerate(self.function.params) if isinstance(p.type, ScalarType)
        ]
        callable_kernels = interpreted_kernels(
            self.program, kernels, parts_of_kernels(self.program, self.function, kernels)
        )
        if native is not None:
            callable_kernels = native.bind(library, callable_kernels)
        self.results, self._params = code.results, code.params
        taker = code.results.taker
        self._taker = Taker(taker) if taker is not None else None
        if taker is not None:
            callable_kernels[kernels.index(taker)] = Kernel(taker.name, self._taker, taker.span)
        self._host = HostProgram(
            library,
            callable_kernels,
            entry=entry,
            config=config,
            positions=self.result.positions.get,
            arguments=[self.function.params[i].name_hint for i in self._tensors],
            order_reads=narrowing_of(self.program).leaves_overwrites(self.function),
            bindings=bindings,
        )

    @classmethod
    def build_all(
        cls,
        codes: Sequence[EmittedCode],
        *,
        native: bool = False,
        optimize: int = 0,
        per_source: int = 20,
        kernel_flags: Sequence[str] = (),
    ) -> list[EmittedProgram]:
        """Many programs in one library: reading the runtime's headers costs more than compiling a program.

        Each program stands in a namespace of its own, since two may define the same helper; ``per_source`` of them
        make one source. ``native``: their kernels, too; ``kernel_flags`` follow the usual ones. Raises
        :class:`.build.CompileFailed` if one of them does not compile: build them one by one then to learn which.
        """
        if not codes:
            return []
        flags = (f"-O{optimize}", *_USUAL, "-Wno-unused-function")
        sources = []
        for start in range(0, len(codes), per_source):
            group = range(start, min(start + per_source, len(codes)))
            # Headers first: included inside a namespace, they would declare everything there.
            headers = sorted({h for i in group for h in _INCLUDE.findall(codes[i].result.code)})
            texts = ["\n".join(headers), *(_apart(codes[i], i) for i in group)]
            sources.append((f"programs_{start}.cpp", "\n".join(texts)))
        flags_of: dict[str, Sequence[str]] = {name: flags for name, _ in sources}
        kernels = [_natively(code, f"kernel_{i}") if native else None for i, code in enumerate(codes)]
        every = NativeKernels([s for k in kernels if k is not None for s in k.sources], [])
        for name, text in every.sources_of(2 * per_source):
            sources.append((name, text))
            flags_of[name] = (*KERNEL_FLAGS, *kernel_flags)
        products = Products(every.products, KERNEL_FLAGS)
        library = load(build(sources, include_dirs=[SOURCES], flags_of=flags_of, name="programs"))
        bindings = products.bind(library)
        built = []
        for i, code in enumerate(codes):
            program = cls.__new__(cls)
            program._attach(code, library, f"{ENTRY}_{i}", f"{CONFIG}_{i}", kernels[i], bindings)
            built.append(program)
        return built

    def interpreted(self) -> EmittedProgram:
        """The same compiled orchestration with all kernels in the interpreter."""
        other = type(self).__new__(type(self))
        other._attach(self._code, self._library, *self._names)
        return other

    @property
    def core_types(self) -> dict[str, CoreType]:
        """Which core each kernel is for."""
        return self.result.func_name_to_core_type

    def run(self, args: Sequence[Any], options: RunOptions | None = None) -> RunResult:
        """Run on arrays, which are read and written in place, and Python or NumPy scalars, in the order of the
        function's parameters.
        """
        return self.call(args, options)[1]

    def call(self, args: Sequence[Any], options: RunOptions | None = None) -> tuple[list[Any], RunResult]:
        """As :meth:`run`; also what the function returns: of its arguments the arrays that were passed, or parts of
        them that share their memory. An empty list if ``results.missing`` says why.
        """
        if len(args) != len(self._params):
            raise TypeError(f"'{self.function.name}' takes {len(self._params)} arguments, got {len(args)}")
        args = [*args, *allocated(self.results, self.function, args)]
        if self._taker is None:
            result = self._run(args, options)
            return [args[i] for i in self.results.returned if i is not None], result
        if options is not None and options.isolate:
            raise TypeError(
                f"a run of '{self.function.name}' can't be isolated: the function returns numbers, parts of tensors, "
                "or tensors that it makes in loops, which only this process can take"
            )
        ticket = self._taker.open([args[i] for i in self._tensors])
        try:
            result = self._run([*args, ticket], options)
        finally:
            taken = self._taker.close(ticket)
        return taken, result

    def _run(self, args: Sequence[Any], options: RunOptions | None) -> RunResult:
        return self._host.run(
            [args[i] for i in self._tensors], [to_bits(args[i], dtype) for i, dtype in self._scalars], options
        )

    def record(self, result: RunResult) -> RunRecord:
        """What a recorded run did."""
        return self._host.record(result)


def _apart(code: EmittedCode, number: int) -> str:
    """The code in a namespace, its two functions with C linkage under names of their own."""
    names = [(name, f"{name}_{number}") for name in (ENTRY, CONFIG)]
    return "\n".join(
        [
            *(f"#define {old} {new}" for old, new in names),
            f"namespace program_{number} {{",
            f'#line 1 "{code.function.name}_{number}.cpp"',
            f"{code.result.code}}}",
            *(f"#undef {old}" for old, _ in names),
        ]
    )


def _natively(code: EmittedCode, prefix: str = "kernel") -> NativeKernels:
    taker = code.results.taker  # a kernel of the host's own
    return native_kernels([kernel if kernel is not taker else None for kernel in code.kernels()], prefix)


def _function(program: Program, name: str) -> Function:
    found = program.get_function(name)
    if found is None:
        names = ", ".join(f.name for f in program.functions.values())
        raise ValueError(f"there is no function '{name}' in the program: it has {names}")
    return found


__all__ = ["Compilation", "EmittedCode", "EmittedProgram"]
