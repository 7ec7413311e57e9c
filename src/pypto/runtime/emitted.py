"""A program run by the orchestration code that is emitted for it: C++ on the task runtime, kernels in the interpreter."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..codegen.orchestration import OrchestrationResult, generate_orchestration
from ..ir.enums import CoreType, FunctionType
from ..ir.program import Function, Program
from ..ir.type import ScalarType, TensorType
from .build import build, load
from .host_executor import HostProgram, RunOptions, RunResult
from .interpreted_kernels import interpreted_kernels
from .native_library import SOURCES
from .scalar_args import to_bits
from .task_records import RunRecord

# What the compiler would say of emitted code is not for users; and the code is short and runs once, so that compiling it
# well costs more than it gives.
_FLAGS = ("-O1", "-Wno-unused-variable", "-Wno-unused-but-set-variable")


def for_host(program: Program) -> Program:
    """The program with kernels that the task runtime of the host can launch.

    Which core a kernel runs on, and whether it has to be taken apart into one for each kind of core, is a question of
    the device. The host has one kind of core, so a kernel that no pass has placed runs as a vector kernel.
    """
    return program.with_functions(
        [
            f.replace(func_type=FunctionType.AIV, level=None, role=None) if f.func_type is FunctionType.InCore else f
            for f in program.functions.values()
        ]
    )


class EmittedProgram:
    """One Orchestration function of a program behind all passes, compiled to a library.

    ``result``: what was emitted. Raises what :func:`.codegen.generate_orchestration` does, and
    :class:`.compilers.CompilerNotFound` without a C++ compiler.
    """

    def __init__(self, program: Program, name: str) -> None:
        self.program = for_host(program)
        self.function = _function(self.program, name)
        self.result: OrchestrationResult = generate_orchestration(self.program, self.function)
        ids = self.result.func_name_to_id
        kernels = [_function(self.program, kernel) for kernel in sorted(ids, key=ids.__getitem__)]
        library = load(build([(f"{name}.cpp", self.result.code)], include_dirs=[SOURCES], flags=_FLAGS, name=name))
        self._tensors = [i for i, p in enumerate(self.function.params) if isinstance(p.type, TensorType)]
        self._scalars = [
            (i, p.type.dtype) for i, p in enumerate(self.function.params) if isinstance(p.type, ScalarType)
        ]
        self._host = HostProgram(
            library,
            interpreted_kernels(self.program, kernels),
            positions=self.result.positions.get,
            arguments=[self.function.params[i].name_hint for i in self._tensors],
        )

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


def _function(program: Program, name: str) -> Function:
    found = program.get_function(name)
    if found is None:
        raise ValueError(f"there is no function '{name}' in the program: it has {', '.join(program.functions)}")
    return found


__all__ = ["EmittedProgram", "for_host"]
