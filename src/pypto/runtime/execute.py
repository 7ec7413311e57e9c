"""One call of a program on the host: bind the arguments, run, hand results back."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

from ..ir.program import Function, Program
from ..target.platforms import platform_of
from .binding import BoundCall, bind_call
from .interpreter import Interpreter
from .log import logger
from .native_executor import NativeExecutor, NotNative, chosen_executor
from .races import check_races
from .recording import run_record
from .run_config import RunConfig
from .signature import ParamInfo, returns_something


class Timing:
    """When things happened, in ns of the monotonic clock. ``task_ns``: time spent inside tasks."""

    __slots__ = ("begin", "bound", "end", "first_task", "last_task", "task_ns", "tasks")

    def __init__(self) -> None:
        self.begin = time.perf_counter_ns()
        self.bound = self.end = self.first_task = self.last_task = self.begin
        self.task_ns = 0
        self.tasks = 0


class Outcome:
    """``result``: what the call gives its caller; ``bound``: its arguments; ``interpreter``: as the run left it, of an
    interpreted run; ``executor``: what ran."""

    __slots__ = ("_interpreter", "bound", "executor", "result", "timing")

    def __init__(self, result: Any, bound: BoundCall, timing: Timing, interpreter: Interpreter | None) -> None:
        self.result = result
        self.bound = bound
        self.timing = timing
        self.executor = "native" if interpreter is None else "interpreter"
        self._interpreter = interpreter

    @property
    def interpreter(self) -> Interpreter:
        """The interpreter, with the task graph. ``RuntimeError`` after a native run."""
        if self._interpreter is None:
            raise RuntimeError('the call ran natively: run it with RunConfig(executor="interpreter")')
        return self._interpreter


class Executable:
    """A program and the function of it that calls run. ``native``: its native form, if it may have one."""

    __slots__ = ("function", "has_return", "infos", "native", "program", "summaries", "who")

    def __init__(
        self,
        program: Program,
        function: Function,
        infos: Sequence[ParamInfo],
        who: str = "CompiledProgram",
        native: NativeExecutor | None = None,
    ) -> None:
        self.native = native
        self.program = program
        self.function = function
        self.infos = list(infos)
        self.has_return = returns_something(function)
        self.who = who
        self.summaries: dict[Any, Any] = {}  # what the interpreter finds out about scopes, kept between calls

    def bind(self, args: Sequence[Any], kwargs: Mapping[str, Any], config: RunConfig | None = None) -> BoundCall:
        """The arguments of a call as run-time values."""
        overlap = config is not None and config.allow_overlap
        return bind_call(self.function, self.infos, args, kwargs, self.has_return, overlap, self.who)

    def run(
        self,
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
        config: RunConfig | None = None,
        on_statement: Any = None,
        record: bool = False,
        returning: bool = False,
    ) -> Outcome:
        """Run once. An error leaves strided outputs as they were; :class:`RaceError` is one.

        ``returning``: the result is what the program returns although all arguments were passed.
        """
        timing = Timing()
        config = config or _DEFAULT
        check_dispatch(config)
        bound = self.bind(args, kwargs, config)
        timing.bound = time.perf_counter_ns()
        record = record or on_statement is not None
        if not record and self._runs_natively(config, bound):
            assert self.native is not None
            values, native = self.native.run(bound.values, config)
            timing.first_task, timing.last_task = timing.bound, time.perf_counter_ns()
            timing.tasks = native.counters.tasks
            return self._outcome(bound, values, timing, None, returning)
        interpreter = Interpreter(
            self.program,
            schedule=config.schedule,
            seed=config.seed,
            record=record or config.trace or config.enable_dep_gen,
            on_statement=on_statement,
            summaries=self.summaries,
            accesses=config.check_races,
        )
        values = interpreter.run(self.function, bound.values)
        if config.check_races:
            check_races(run_record(interpreter.graph))
        graph = interpreter.graph
        timing.tasks, timing.task_ns = graph.submitted, graph.task_ns
        timing.first_task = graph.first_start or timing.bound
        timing.last_task = graph.last_end or time.perf_counter_ns()
        if self.native is not None:
            self.native.interpreted_ns += time.perf_counter_ns() - timing.bound
        return self._outcome(bound, values, timing, interpreter, returning)

    def _outcome(
        self, bound: BoundCall, values: list[Any], timing: Timing, interpreter: Interpreter | None, returning: bool
    ) -> Outcome:
        bound.copy_back()
        result = None
        wanted = bound.return_style or (returning and bool(values))
        if wanted or (values and not bound.names_outputs(values, self.infos) and not self._has_outputs()):
            result = bound.result(values)
        timing.end = time.perf_counter_ns()
        return Outcome(result, bound, timing, interpreter)

    def _runs_natively(self, config: RunConfig, bound: BoundCall) -> bool:
        """Whether a call runs natively. What is recorded, reordered or looked into is run by the interpreter."""
        wanted = chosen_executor(config)
        watched = config.check_races or config.trace or config.enable_dep_gen or config.schedule == "random"
        if wanted == "native":
            if self.native is None or watched or config.allow_overlap:
                raise ValueError(
                    'RunConfig(executor="native") runs compiled programs, without check_races, trace, enable_dep_gen, '
                    'schedule="random" and allow_overlap: leave these out, or the executor'
                )
            self.native.make()
            return True
        if wanted == "interpreter" or self.native is None or watched or config.allow_overlap:
            return False
        if not self.native.is_due(bound.values):
            return False
        try:
            self.native.make()
        except NotNative:
            return False
        return True

    def _has_outputs(self) -> bool:
        from ..ir.enums import ParamDirection

        return any(info.direction is ParamDirection.Out for info in self.infos)


_DEFAULT = RunConfig()
_WITHOUT_EFFECT = ("enable_chip_swimlane", "enable_dump_args", "enable_pmu", "enable_scope_stats")
_told: set[str] = set()


def check_dispatch(config: RunConfig) -> None:
    """What a dispatch can't do is an error, or a warning where only a record would be missing."""
    if config.codegen_only:
        raise ValueError("RunConfig(codegen_only=True) asks not to run: compile only, or leave it out")
    for name in _WITHOUT_EFFECT:
        if getattr(config, name) and name not in _told:
            _told.add(name)
            logger.warning("RunConfig(%s=...) has no effect yet: the interpreter keeps no such record", name)


def check_runnable(platform: str, output_dir: Any) -> None:
    """``RuntimeError`` where the platform is hardware: this machine has no driver for it."""
    if platform_of(platform).is_device:
        raise RuntimeError(
            f"platform '{platform}' is a device and this machine has no driver for it. Compilation succeeded: "
            f'the files are in {output_dir}. To run on the host pass RunConfig(platform="cpu"), or load them with '
            f'CompiledProgram.from_dir({str(output_dir)!r}, platform="cpu")'
        )


__all__ = ["Executable", "Outcome", "Timing", "check_dispatch", "check_runnable"]
