"""A program run by its emitted orchestration code: C++ on the task runtime, kernels in the interpreter."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Sequence
from typing import Any

from ..analysis.overwrites import narrowing_of
from ..codegen.host import for_host
from ..codegen.orchestration import OrchestrationResult, generate_orchestration
from ..codegen.runtime_names import HOST
from ..ir.enums import CoreType
from ..ir.program import Function, Program
from ..ir.type import ScalarType, TensorType
from .build import build, load
from .host_executor import CONFIG, ENTRY, HostProgram, RunOptions, RunResult
from .interpreted_kernels import interpreted_kernels
from .native_kernels import KERNEL_FLAGS, NativeKernels, native_kernels
from .native_library import SOURCES
from .native_products import Products
from .scalar_args import to_bits
from .task_records import RunRecord
from .touched_parts import parts_of_kernels

# What the compiler would say of emitted code is not for users. The code is short and each statement runs a few times,
# so that compiling it well costs more than it gives.
_QUIET = ("-Wno-unused-variable", "-Wno-unused-but-set-variable")
_FLAGS = ("-O1", *_QUIET)

_INCLUDE = re.compile(r"^#include .*$", re.MULTILINE)


class EmittedCode:
    """What is emitted for one Orchestration function of a program behind all passes, not compiled yet.

    Raises what :func:`.codegen.generate_orchestration` does.
    """

    def __init__(self, program: Program, name: str) -> None:
        self.program = for_host(program)
        self.function = _function(self.program, name)
        self.result: OrchestrationResult = generate_orchestration(self.program, self.function, runtime=HOST)

    def kernels(self) -> list[Function]:
        """The kernels, by the numbers that the code calls them by."""
        ids = self.result.func_name_to_id
        return [_function(self.program, kernel) for kernel in sorted(ids, key=ids.__getitem__)]


class EmittedProgram:
    """One Orchestration function of a program behind all passes, compiled to a library.

    ``native``: kernels are compiled, too, as far as they have a native form; ``notes`` say which have not and why. The
    others, or all, run in the interpreter: ``native`` has what was generated. ``result``: what was emitted.

    Raises what :func:`.codegen.generate_orchestration` does, and :class:`.compilers.CompilerNotFound` without a C++
    compiler.
    """

    def __init__(self, program: Program, name: str, native: bool = False) -> None:
        code = EmittedCode(program, name)
        sources = [("orchestration.cpp", code.result.code)]
        kernels = native_kernels(code.kernels()) if native else None
        flags_of: dict[str, Sequence[str]] = {"orchestration.cpp": _FLAGS}
        if kernels is not None and kernels.made:
            sources.append(("kernels.cpp", kernels.text))
            flags_of["kernels.cpp"] = KERNEL_FLAGS
        products = Products(kernels.products if kernels is not None else (), KERNEL_FLAGS)
        self.built = build(sources, include_dirs=[SOURCES], flags_of=flags_of, name=name)
        library = load(self.built)
        self._attach(code, library, ENTRY, CONFIG, kernels, products.bind(library))

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
        flags = (f"-O{optimize}", *_QUIET, "-Wno-unused-function")
        sources = []
        for start in range(0, len(codes), per_source):
            group = range(start, min(start + per_source, len(codes)))
            # Headers first: included inside a namespace, they would declare everything there.
            headers = sorted({h for i in group for h in _INCLUDE.findall(codes[i].result.code)})
            texts = ["\n".join(headers), *(_apart(codes[i], i) for i in group)]
            sources.append((f"programs_{start}.cpp", "\n".join(texts)))
        flags_of: dict[str, Sequence[str]] = {name: flags for name, _ in sources}
        kernels = [native_kernels(code.kernels(), f"kernel_{i}") if native else None for i, code in enumerate(codes)]
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
        if len(args) != len(self.function.params):
            raise TypeError(f"'{self.function.name}' takes {len(self.function.params)} arguments, got {len(args)}")
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


def _function(program: Program, name: str) -> Function:
    found = program.get_function(name)
    if found is None:
        names = ", ".join(f.name for f in program.functions.values())
        raise ValueError(f"there is no function '{name}' in the program: it has {names}")
    return found


__all__ = ["EmittedCode", "EmittedProgram"]
