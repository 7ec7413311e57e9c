"""How to compile and run: one record of choices."""

from __future__ import annotations

import functools
import os
import warnings
from dataclasses import dataclass, field, fields
from typing import Any

from ..ir.compile_options import MemoryPlanner, OptimizationStrategy
from ..target.model import BackendType
from ..target.platforms import backend_of, platform_of

_SWIMLANE_LEVELS = "0 off, 1 task times, 2 dispatch and finish, 3 scheduler phases, 4 orchestrator phases"
_RINGS = 4


@dataclass
class RunConfig:
    """Options of :func:`pypto.runtime.run`, of ``@pl.jit`` functions and of compiled programs.

    Compile-side fields shape what is compiled; run-side fields shape one dispatch. ``schedule="random"`` with ``seed``
    runs tasks in a random legal order, so that a missing dependency shows as a wrong value. ``check_races=True``
    records the bytes that each task touches and raises :class:`~pypto.runtime.errors.RaceError` at the end of a run in
    which two tasks touch the same ones, one of them writing, and no dependency orders them.

    ``executor``: "native" (C++ for this machine), "interpreter" (NumPy), or "auto": the interpreter for small programs
    that are not called often, and for all that is to be recorded or reordered, else native. None: what
    ``PYPTO_EXECUTOR`` says, or else "auto". ``workers``: threads of a native run; None: one for each core.
    ``timeout``: seconds without progress after which a native run fails. ``isolate``: run in a process of its own,
    which may crash.
    """

    platform: str = "cpu"
    device_id: int = 0
    rtol: float = 1e-5
    atol: float = 1e-5
    strategy: OptimizationStrategy = OptimizationStrategy.Default
    backend_type: BackendType = BackendType.Ascend910B
    dump_passes: Any = False
    save_kernels: bool = False
    save_kernels_dir: str | os.PathLike[str] | None = None
    codegen_only: bool = False
    enable_chip_swimlane: int = 0
    enable_dump_args: int = 0
    enable_pmu: int = 0
    enable_dep_gen: bool = False
    enable_scope_stats: bool = False
    compile_profiling: bool = False
    diagnostic_phase: Any = None
    disabled_diagnostics: Any = None
    golden_data_dir: str | os.PathLike[str] | None = None
    aicpu_thread_num: int | None = None
    ring_task_window: Any = None
    ring_heap: Any = None
    ring_dep_pool: Any = None
    distributed_config: Any = None
    analyze_auto_scopes_for_deps: bool = False
    memory_planner: MemoryPlanner | None = None
    dump_ptoas_passes: bool = False
    # Of this product, on the host only.
    check_races: bool = field(default=False, kw_only=True)
    schedule: str = field(default="default", kw_only=True)
    seed: int = field(default=0, kw_only=True)
    trace: bool = field(default=False, kw_only=True)
    strict_rings: bool = field(default=False, kw_only=True)
    allow_overlap: bool = field(default=False, kw_only=True)
    disk_cache: bool = field(default=False, kw_only=True)
    executor: str | None = field(default=None, kw_only=True)
    workers: int | None = field(default=None, kw_only=True)
    timeout: float | None = field(default=None, kw_only=True)
    isolate: bool = field(default=False, kw_only=True)

    def __post_init__(self) -> None:
        platform = platform_of(self.platform)
        self.backend_type = backend_of(platform, self.backend_type)
        if isinstance(self.device_id, bool) or not isinstance(self.device_id, int) or self.device_id < 0:
            raise ValueError(f"device_id must be a non-negative int, got {self.device_id!r}")
        self.enable_chip_swimlane = _swimlane_level(self.enable_chip_swimlane)
        self.ring_task_window = _ring("ring_task_window", self.ring_task_window, _power_of_two(4))
        self.ring_heap = _ring("ring_heap", self.ring_heap, _power_of_two(1024))
        self.ring_dep_pool = _ring("ring_dep_pool", self.ring_dep_pool, _dep_pool)
        if self.schedule not in ("default", "random"):
            raise ValueError(f"schedule must be 'default' or 'random', got {self.schedule!r}")
        if self.executor not in (None, "auto", "native", "interpreter"):
            raise ValueError(f"executor must be 'auto', 'native' or 'interpreter', got {self.executor!r}")
        if self.workers is not None and self.workers < 1:
            raise ValueError(f"workers must be at least 1, got {self.workers}")
        if self.timeout is not None and self.timeout <= 0:
            raise ValueError(f"timeout must be a positive number of seconds, got {self.timeout}")
        if self.executor == "interpreter" and (self.timeout is not None or self.isolate):
            raise ValueError("timeout and isolate are for native runs: leave out executor='interpreter'")
        if platform.is_device:
            for info in fields(self):
                if info.kw_only and getattr(self, info.name) != info.default:
                    raise ValueError(
                        f"RunConfig({info.name}=...) works on the host only; platform '{self.platform}' is a device"
                    )
        if self.any_dfx_enabled():
            self.save_kernels = True

    def any_dfx_enabled(self) -> bool:
        """Whether a run-time diagnostic is asked for."""
        return bool(
            self.enable_chip_swimlane
            or self.enable_dump_args
            or self.enable_pmu
            or self.enable_dep_gen
            or self.enable_scope_stats
        )

    @property
    def enable_l2_swimlane(self) -> int:
        """Former name of ``enable_chip_swimlane``."""
        return self.enable_chip_swimlane

    @enable_l2_swimlane.setter
    def enable_l2_swimlane(self, value: Any) -> None:
        _warn_former_name(2)
        self.enable_chip_swimlane = _swimlane_level(value)


def _warn_former_name(depth: int) -> None:
    warnings.warn(
        "RunConfig.enable_l2_swimlane is deprecated: use enable_chip_swimlane", DeprecationWarning, stacklevel=depth + 1
    )


def _accept_former_name(init: Any) -> Any:
    position = [info.name for info in fields(RunConfig)].index("enable_chip_swimlane")

    @functools.wraps(init)
    def __init__(self: RunConfig, *args: Any, **kwargs: Any) -> None:
        if "enable_l2_swimlane" in kwargs:
            if "enable_chip_swimlane" in kwargs or len(args) > position:
                raise ValueError("give enable_chip_swimlane or its former name enable_l2_swimlane, not both")
            _warn_former_name(2)
            kwargs["enable_chip_swimlane"] = kwargs.pop("enable_l2_swimlane")
        init(self, *args, **kwargs)

    return __init__


RunConfig.__init__ = _accept_former_name(RunConfig.__init__)  # type: ignore[method-assign]


def _swimlane_level(value: Any) -> int:
    if isinstance(value, bool):
        return 4 if value else 0
    if not isinstance(value, int):
        raise TypeError(f"enable_chip_swimlane must be a bool or an int, got {type(value).__name__}")
    if not 0 <= value <= 4:
        raise ValueError(f"enable_chip_swimlane must be a level from 0 to 4 ({_SWIMLANE_LEVELS}), got {value}")
    return value


def _power_of_two(least: int) -> Any:
    def check(value: int) -> str | None:
        return None if value >= least and value & (value - 1) == 0 else f"a power of two of at least {least}"

    return check


def _dep_pool(value: int) -> str | None:
    return None if 4 <= value <= 2**31 - 1 else "between 4 and 2147483647"


def _ring(name: str, value: Any, problem: Any) -> Any:
    """A ring size: one number for all rings, or four, where 0 means that ring's default."""
    if value is None:
        return None
    many = isinstance(value, (list, tuple))
    items = list(value) if many else [value]
    if many and len(items) != _RINGS:
        raise ValueError(f"{name} must be one number or exactly {_RINGS} (one a ring), got {len(items)}")
    for item in items:
        if isinstance(item, bool) or not isinstance(item, int):
            raise ValueError(f"{name} must hold ints, got {item!r}")
        if many and item == 0:
            continue
        wrong = problem(item)
        if wrong is not None:
            raise ValueError(f"{name} must be {wrong}, got {item}")
    return items if many else value


__all__ = ["RunConfig"]
