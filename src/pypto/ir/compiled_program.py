"""Compiled programs: called with arrays, used as a path, loaded from their directory."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from ..diag.errors import InternalError
from ..runtime.artifact import LazyFiles, clear_stale, make_output_dir, read_meta, read_program, write_program
from ..runtime.binding import BoundCall
from ..runtime.errors import RaceError
from ..runtime.execute import Executable, Outcome, check_runnable
from ..runtime.native_executor import NativeExecutor
from ..runtime.recording import run_record
from ..runtime.report import CompileReport
from ..runtime.run_config import RunConfig
from ..runtime.signature import (
    ParamInfo,
    entry_function,
    extract_param_infos,
    is_distributed,
    orchestrations,
    param_infos,
    returns_something,
)
from ..runtime.task_records import RunRecord
from ..runtime.trace import write_records
from ..target.model import BackendType
from ..target.platforms import backend_of, platform_of
from .compile_options import PassDumpLevel, RuntimeKind, runtime_kind_to_name
from .enums import ParamDirection
from .program import Function, Program

CallArg = Any  # an array, a DeviceTensor or a number
EXECUTOR = "interpreter"
# (program, directory, instruments) -> the lowered program, and the names of the passes that ran
Lower = Callable[[Program, Path, list[Any]], tuple[Program, Sequence[str]]]


def _orchestration(lowered: Program, name: str) -> str:
    """The emitted C++, or why there is none: what runs on the host does not depend on it."""
    from ..codegen.host import orchestration_text

    try:
        return orchestration_text(lowered, name)
    except (ValueError, TypeError, NotImplementedError, InternalError) as error:
        reason = "".join(f"// {line}\n" for line in str(error).splitlines())
        return f"// Orchestration Function: {name}\n// This function can't be emitted as C++:\n{reason}"


class ChipCallable:
    """The runnable form of a program: ``run(args, config)``."""

    def __init__(self, name: str, executable: Executable) -> None:
        self.name = name
        self._executable = executable

    def run(self, args: Sequence[Any], config: RunConfig | None = None) -> Any:
        """Run on positional arguments."""
        return self._executable.run(args, {}, config).result

    def __repr__(self) -> str:
        return f"ChipCallable({self.name!r})"


class _RuntimeFacade:
    """What a single entry offers: its signature, and calls."""

    _output_dir: Path
    _platform: str
    _backend_type: BackendType
    _who = "CompiledProgram"

    def __init__(self) -> None:
        self._made: Executable | None = None
        self.last_result: Any = None

    # --- supplied by subclasses ---------------------------------------------------------------------------------------

    def _entry(self) -> tuple[Program, Function]:
        """The program that runs and the function of it that is called."""
        raise NotImplementedError

    def _require_single(self) -> None:
        """``TypeError`` where there is not one entry."""

    def _lowered_form(self) -> Program:
        """The program behind all passes."""
        raise NotImplementedError

    # --- signature ----------------------------------------------------------------------------------------------------

    @property
    def executable(self) -> Executable:
        """The program in runnable form, made on first use."""
        self._require_single()
        if self._made is None:
            program, entry = self._entry()
            if is_distributed(program):
                raise NotImplementedError("programs with HOST functions (many ranks) can't be executed yet")
            native = NativeExecutor(self._lowered_form, entry.name)
            self._made = Executable(program, entry, param_infos(entry), self._who, native)
        return self._made

    @property
    def param_infos(self) -> list[ParamInfo]:
        """Name, direction, shape and element type of each parameter."""
        self._require_single()
        return extract_param_infos(self._entry()[1])

    @property
    def param_names(self) -> list[str]:
        return [info.name for info in self.param_infos]

    @property
    def output_indices(self) -> list[int]:
        """Positions of the pure outputs, which a call in return style leaves out."""
        return [i for i, info in enumerate(self.param_infos) if info.direction is ParamDirection.Out]

    @property
    def has_return(self) -> bool:
        """Whether the entry returns something."""
        self._require_single()
        return returns_something(self._entry()[1])

    @property
    def __signature__(self) -> inspect.Signature:
        parameters = [
            inspect.Parameter(
                info.name,
                inspect.Parameter.POSITIONAL_OR_KEYWORD,
                annotation=f"{info.direction.name} {info.describe()}",
            )
            for info in self.param_infos
        ]
        config = inspect.Parameter("config", inspect.Parameter.KEYWORD_ONLY, default=None)
        return inspect.Signature([*parameters, config])

    # --- calls --------------------------------------------------------------------------------------------------------

    def __call__(self, *args: Any, config: RunConfig | None = None, **kwargs: Any) -> Any:
        """Run. With all arguments outputs are written in place and the result is None; with the pure outputs left out
        they are allocated, and what the program returns is the result."""
        return self.execute(args, kwargs, config).result

    def execute(
        self,
        args: Sequence[Any],
        kwargs: dict[str, Any] | None = None,
        config: RunConfig | None = None,
        **options: Any,
    ) -> Outcome:
        """As a call; gives the :class:`~pypto.runtime.execute.Outcome`, with times and the task graph."""
        self._require_single()
        check_runnable(self._platform if config is None else config.platform, self._output_dir)
        try:
            outcome = self.executable.run(args, kwargs or {}, config, **options)
        except RaceError as error:
            self._write_records(config, error.record)
            raise
        if config is not None and (config.trace or config.enable_dep_gen):
            self._write_records(config, run_record(outcome.interpreter.graph))
        return outcome

    def _write_records(self, config: RunConfig | None, record: RunRecord) -> None:
        """The files that the configuration asks for."""
        if config is not None:
            write_records(self._output_dir, record, config.enable_dep_gen, config.trace)

    def build_orch_args(self, *args: Any, worker: Any = None) -> tuple[BoundCall, list[Any], bool]:
        """``(bound arguments, arguments with allocated outputs, whether it is in return style)``."""
        del worker  # on the host a call needs none
        bound = self.executable.bind(args, {})
        return bound, bound.given, bound.return_style

    def build_call_config(
        self, config: RunConfig | None = None, *, aicpu_thread_num: int | None = None, dfx_dir: Any = None
    ) -> dict[str, Any]:
        """The run-side choices of a dispatch: keyword before config before the program's own."""
        self._require_single()
        threads = aicpu_thread_num
        if threads is None:
            threads = config.aicpu_thread_num if config is not None else None
        return {
            **self.runtime_config,
            "aicpu_thread_num": threads,
            "dfx_dir": None if dfx_dir is None else str(dfx_dir),
        }

    @property
    def chip_callable(self) -> ChipCallable:
        """The runnable form of the program."""
        return ChipCallable(self._entry()[1].name, self.executable)

    @property
    def runtime_name(self) -> str:
        """The task runtime that the program is for."""
        self._require_single()
        return runtime_kind_to_name(RuntimeKind.TENSORMAP_AND_RINGBUFFER)

    @property
    def runtime_config(self) -> dict[str, Any]:
        """What the program asks of its runtime."""
        self._require_single()
        return {"runtime": self.runtime_name, "executor": EXECUTOR}

    def load(self) -> ChipCallable:
        """Prepare everything that the first call would prepare."""
        return self.chip_callable

    @property
    def platform(self) -> str:
        return self._platform

    @property
    def backend_type(self) -> BackendType:
        return self._backend_type

    @property
    def output_dir(self) -> Path:
        """The directory of the compiled files."""
        return self._output_dir


class _SubChipCallable(_RuntimeFacade):
    """One orchestration of a program that has several."""

    def __init__(self, parent: CompiledProgram, name: str) -> None:
        super().__init__()
        self.name = name
        self._parent = parent
        self._output_dir = parent._output_dir / "next_levels" / name
        self._platform = parent._platform
        self._backend_type = parent._backend_type
        self._who = f"Orchestration '{name}'"

    def _lowered_form(self) -> Program:
        return self._parent._lowered_form()

    def _entry(self) -> tuple[Program, Function]:
        program = self._parent.executed_program
        return program, entry_function(program, self.name)

    @property
    def output_dir(self) -> Path:
        self._parent._files.flush()
        return self._output_dir

    def __repr__(self) -> str:
        return f"_SubChipCallable({self.name!r} @ {self._output_dir})"


class CompiledProgram(_RuntimeFacade):
    """A compiled program. Call it with arrays; use it as a path; look at ``report`` for what was done to it."""

    def __init__(
        self,
        program: Program | None,
        output_dir: str | os.PathLike[str],
        platform: str,
        backend_type: BackendType,
        lowered_program: Program,
        entry: str | None = None,
        report: CompileReport | None = None,
        infos: list[ParamInfo] | None = None,
        files: LazyFiles | None = None,
    ) -> None:
        super().__init__()
        self._program = program
        self._runs = lowered_program if program is None else program
        self._output_dir = Path(output_dir).resolve()
        self._platform = platform
        self._backend_type = backend_type
        self._lowered = lowered_program
        self._entry_name = entry
        self._infos = infos
        self._files = LazyFiles(self._output_dir) if files is None else files
        self._names = [] if entry is not None else [f.name for f in orchestrations(self._runs)]
        if len(self._names) < 2:
            self._names = []
        self._sub: dict[str, _SubChipCallable] = {}
        self.report = report or CompileReport(platform, backend_type.name, EXECUTOR)

    # --- making -------------------------------------------------------------------------------------------------------

    @classmethod
    def build(
        cls,
        program: Program,
        output_dir: str | os.PathLike[str] | None,
        platform: str,
        backend_type: BackendType,
        dump_level: PassDumpLevel,
        lower: Lower,
        notes: Sequence[str] = (),
    ) -> CompiledProgram:
        """Make the directory, lower the program and write the files; called by ``ir.compile``."""
        directory = make_output_dir(output_dir, program.name)
        files = LazyFiles(directory)
        dump = None
        if dump_level is not PassDumpLevel.NONE:
            from ..passes.dump import PassDump

            dump = PassDump(
                lambda name, text: files.add(f"passes_dump/{name}", text), explicit=dump_level is PassDumpLevel.EXPLICIT
            )
            dump.add_input(program)
        lowered, passes = lower(program, directory, [] if dump is None else [dump.instrument])
        names = [function.name for function in orchestrations(lowered)]
        for name in names:
            folder = f"next_levels/{name}/orchestration" if len(names) > 1 else "orchestration"
            files.add(f"{folder}/{name}.cpp", partial(_orchestration, lowered, name))
        report = CompileReport(
            platform,
            backend_type.name,
            EXECUTOR,
            tuple(passes),
            ("there is no kernel code generation yet: the interpreter runs the program as it was given", *notes),
        )
        made = cls(program, directory, platform, backend_type, lowered, report=report, files=files)
        made._write()
        return made

    def _write(self) -> None:
        program, directory = self._runs, self._output_dir
        if self._names:
            clear_stale(directory)
            for name in self._names:
                function = entry_function(program, name)
                self._write_entry(directory / "next_levels" / name, program, function)
        else:
            try:
                function = entry_function(program)
            except ValueError:  # kernels alone: compiled, but there is nothing to call
                clear_stale(directory)
            else:
                self._write_entry(directory, program, function)

    def _write_entry(self, directory: Path, program: Program, function: Function) -> None:
        try:
            infos = param_infos(function)
        except TypeError:  # a signature that no caller on the host can use
            clear_stale(directory)
            return
        write_program(directory, program, function, infos, self._platform, self._backend_type, EXECUTOR)

    @classmethod
    def from_dir(
        cls,
        output_dir: str | os.PathLike[str],
        *,
        platform: str | None = None,
        backend_type: BackendType | None = None,
    ) -> CompiledProgram:
        """Load a compiled program; nothing is compiled and nothing is written.

        ``FileNotFoundError`` when the directory holds no single-chip build, ``ValueError`` when it is damaged.
        """
        directory = Path(output_dir).resolve()
        meta = read_meta(directory)
        place = platform_of(platform or meta.platform or "cpu")
        backend = backend_of(place, backend_type or meta.backend_type)
        program, entry = read_program(directory)
        return cls(None, directory, place.name, backend, program, entry, infos=meta.infos)

    # --- attributes ---------------------------------------------------------------------------------------------------

    @property
    def program(self) -> Program | None:
        """The program that was given to ``compile``; None after :meth:`from_dir`."""
        return self._program

    @property
    def lowered_program(self) -> Program:
        """The program after the passes; of a program loaded from its directory, the one that runs."""
        return self._lowered

    @property
    def executed_program(self) -> Program:
        """The program that the executor runs: the one that was given, which means the same as the lowered one."""
        return self._runs

    @property
    def executor(self) -> str:
        """What runs the program."""
        return self.report.executor

    @property
    def output_dir(self) -> Path:
        self._files.flush()
        return self._output_dir

    def _entry(self) -> tuple[Program, Function]:
        return self._runs, entry_function(self._runs, self._entry_name)

    def _lowered_form(self) -> Program:
        if self._program is None:  # loaded from its directory, which holds the program as it was given
            from ..passes.manager import PassManager

            return PassManager().run_passes(self._runs)
        return self._lowered

    def validate_ir(self, tensors: Any, expected: Any, *, rtol: float = 5e-2, atol: float = 5e-2) -> Any:
        """Run each dump of ``passes_dump`` on ``tensors`` and compare with ``expected`` (both by parameter name)."""
        from ..tools.validate_dumps import validate_pass_dumps

        return validate_pass_dumps(self.output_dir / "passes_dump", tensors, expected, rtol=rtol, atol=atol)

    # --- several orchestrations ---------------------------------------------------------------------------------------

    @property
    def orchestration_names(self) -> list[str]:
        """The names for ``compiled["name"]``; empty when there is one entry."""
        return list(self._names)

    def _require_single(self) -> None:
        if self._names:
            raise TypeError(
                f"the program has several orchestrations: choose one, compiled[name] with a name of {self._names}"
            )

    def __getitem__(self, name: str) -> _SubChipCallable:
        if name not in self._names:
            raise KeyError(f"No orchestration '{name}' under {self._output_dir}. Available: {self._names}")
        if name not in self._sub:
            self._sub[name] = _SubChipCallable(self, name)
        return self._sub[name]

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("_") and name in self.__dict__.get("_names", ()):
            return self[name]
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    # --- as a path ----------------------------------------------------------------------------------------------------

    def __fspath__(self) -> str:
        return str(self.output_dir)

    __str__ = __fspath__

    def __repr__(self) -> str:
        return f"CompiledProgram({self._output_dir})"

    def __eq__(self, other: object) -> bool:
        if isinstance(other, CompiledProgram):
            return self._output_dir == other._output_dir
        if isinstance(other, (str, os.PathLike)):
            return self._output_dir == Path(other).resolve()
        return NotImplemented

    def __hash__(self) -> int:
        return hash(self._output_dir)


__all__ = ["CallArg", "ChipCallable", "CompiledProgram", "ParamInfo", "extract_param_infos"]
