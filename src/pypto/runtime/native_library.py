"""The task runtime's library (``native/``): built when first needed, loaded with ctypes, its structs mirrored here."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import Any

from ..ir.dtype import DataType
from .background import ProcessLock, begin
from .build import build, load

SOURCES = Path(__file__).parent / "native"
MAX_DIMS = 5
RINGS = 4
VERSION = 1

u32, u64, i32, i64, f64, pointer = (
    ctypes.c_uint32,
    ctypes.c_uint64,
    ctypes.c_int32,
    ctypes.c_int64,
    ctypes.c_double,
    ctypes.c_void_p,
)

# Element types in the order of the enum in pto_types.h.
ELEMENT_TYPES = tuple(
    getattr(DataType, name)
    for name in (
        "FP32 FP16 INT32 INT16 INT8 UINT8 BF16 INT64 UINT64 UINT16 UINT32 BOOL FP8E4M3FN FP8E8M0 FP4 FP8E5M2"
    ).split()
)

# Why a run failed, by the codes of the runtime (pto::Error).
ERRORS = {
    1: "more tasks in one scope than its window",
    2: "the heap has no room, and never will",
    3: "no progress",
    5: "wrong arguments",
    7: "more blocks are to start together than there are workers",
    8: "waiting for a tensor's data timed out",
    9: "reported by the program",
    100: "no task ended within the time allowed",
    101: "a kernel failed",
}
REASONS = ("allocation", "overlap", "explicit", "predicate", "sync", "overwrite")
TAGS = ("INPUT", "INOUT", "OUTPUT", "OUTPUT_EXISTING", "NO_DEP")
KINDS = ("aic", "aiv", "mixed", "dummy")


class KernelInfo(ctypes.Structure):
    _fields_ = (("function", pointer), ("name", ctypes.c_char_p), ("parts", pointer))


class TensorArgument(ctypes.Structure):
    _fields_ = (
        ("data", pointer),
        ("bytes", u64),
        ("base", pointer),
        ("ndims", u32),
        ("dtype", u32),
        ("shapes", u32 * MAX_DIMS),
        ("unused", u32),
        ("strides", i64 * MAX_DIMS),
    )


class Program(ctypes.Structure):
    _fields_ = (
        ("entry", pointer),
        ("config", pointer),
        ("kernels", pointer),
        ("kernel_count", u32),
        ("tensor_count", u32),
        ("scalar_count", u32),
        ("unused", u32),
        ("tensors", pointer),
        ("scalars", pointer),
    )


class Options(ctypes.Structure):
    _fields_ = (
        ("workers", u32),
        ("window", u32 * RINGS),
        ("strict_window", u32),
        ("heap", u64 * RINGS),
        ("strict_heap", u32),
        ("random_schedule", u32),
        ("seed", u64),
        ("record", u32),
        ("trace", u32),
        ("fill", u32),
        ("order_reads", u32),
        ("clusters", u32),
        ("timeout", f64),
    )


class Counters(ctypes.Structure):
    """What a run did. ``edges``: by :data:`REASONS`; those to completed tasks are counted in recorded runs only."""

    _fields_ = (
        ("tasks", u64),
        ("allocations", u64),
        ("edges", u64 * len(REASONS)),
        ("lookups", u64),
        ("visited", u64),
        ("allocated_bytes", u64),
        ("heap_high_water", u64 * RINGS),
        ("window_high_water", u64 * RINGS),
        ("heap_grown", u64),
        ("waits", u64),
        ("helped", u64),
        ("stolen", u64),
    )


class Report(ctypes.Structure):
    _fields_ = (
        ("code", i32),
        ("line", u32),
        ("task", i64),
        ("kernel", i32),
        ("stuck", u32),
        ("message", ctypes.c_char * 2048),
        ("counters", Counters),
    )


class TaskRecord(ctypes.Structure):
    _fields_ = (
        ("number", u64),
        ("id", u64),
        ("kernels", i32 * 3),
        ("kind", u32),
        ("line", u32),
        ("block_num", u32),
        ("skipped", u32),
        ("unused", u32),
        ("submitted", u64),
        ("ready", u64),
    )


class Region(ctypes.Structure):
    _fields_ = (
        ("low", i64),
        ("high", i64),
        ("run", i64),
        ("levels", u32),
        ("stride", i64 * MAX_DIMS),
        ("extent", i64 * MAX_DIMS),
    )


class EdgeRecord(ctypes.Structure):
    _fields_ = (
        ("producer", u64),
        ("consumer", u64),
        ("reason", u32),
        ("buffer", u32),
        ("used", Region),
        ("written", Region),
    )


class AccessRecord(ctypes.Structure):
    _fields_ = (("task", u64), ("buffer", u32), ("tag", u32), ("after", u64), ("region", Region))


class BufferRecord(ctypes.Structure):
    _fields_ = (
        ("number", u32),
        ("argument", i32),
        ("owner", u64),
        ("size", u64),
        ("dtype", u32),
        ("ndims", u32),
        ("shapes", u32 * MAX_DIMS),
        ("manual_dep", u32),
    )


class Event(ctypes.Structure):
    _fields_ = (
        ("task", u64),
        ("start", u64),
        ("end", u64),
        ("worker", u32),
        ("block", u32),
        ("part", u32),
        ("unused", u32),
    )


class TouchRecord(ctypes.Structure):
    _fields_ = (("task", u64), ("buffer", u32), ("how", u32), ("region", Region))


class LocalContext(ctypes.Structure):
    _fields_ = (("block_idx", i32), ("block_num", i32), ("task", i64))


class GlobalContext(ctypes.Structure):
    _fields_ = (("sub_block_id", i32), ("parts", i32), ("lanes", i32))


class ChipTensor(ctypes.Structure):
    """A tensor as kernels see it; offsets and strides in elements."""

    _fields_ = (
        ("buffer_addr", u64),
        ("buffer_size", u64),
        ("owner_task_id", u64),
        ("buffer", pointer),
        ("start_offset", u64),
        ("ndims", u32),
        ("dtype", ctypes.c_uint8),
        ("manual_dep", ctypes.c_bool),
        ("is_contiguous", ctypes.c_bool),
        ("shapes", u32 * MAX_DIMS),
        ("strides", i64 * MAX_DIMS),
    )


RECORDS = (TaskRecord, EdgeRecord, AccessRecord, BufferRecord, Event, TouchRecord)
_MIRRORED = (
    KernelInfo,
    TensorArgument,
    Program,
    Options,
    Counters,
    Report,
    *RECORDS,
    ChipTensor,
    LocalContext,
    GlobalContext,
)

KERNEL = ctypes.CFUNCTYPE(None, ctypes.POINTER(i64))  # of Python functions: takes the interpreter's lock when called


class TaskRuntime:
    """The loaded library."""

    def __init__(self, library: ctypes.CDLL) -> None:
        self.library = library
        self._bound: set[int] = set()
        version = library.pto_version()
        if version != VERSION:
            raise RuntimeError(f"the task runtime has version {version}, this package expects {VERSION}")
        sizes = (u32 * len(_MIRRORED))()
        library.pto_layout(sizes)
        for mirror, size in zip(_MIRRORED, sizes, strict=True):
            if ctypes.sizeof(mirror) != size:
                raise RuntimeError(f"{mirror.__name__} has {ctypes.sizeof(mirror)} bytes here, {size} in the runtime")
        library.pto_api.restype = pointer
        library.pto_run.restype = pointer
        library.pto_run.argtypes = (ctypes.POINTER(Program), ctypes.POINTER(Options), ctypes.POINTER(Report))
        library.pto_free.argtypes = (pointer,)
        library.pto_free.restype = None
        library.pto_records.argtypes = (pointer, u32, ctypes.POINTER(u64))
        library.pto_records.restype = pointer
        library.pto_kernel_failed.argtypes = (ctypes.c_char_p,)
        library.pto_kernel_failed.restype = ctypes.c_bool

    def bind(self, library: ctypes.CDLL) -> None:
        """Let a library of orchestration code or kernels call this runtime, if it includes the runtime's header.

        Once a library: a second time might meet a run on another thread.
        """
        if library._handle in self._bound:
            return
        try:
            bind = library.pto_bind
        except AttributeError:
            return
        bind.argtypes = (pointer,)
        bind.restype = ctypes.c_bool
        if not bind(self.library.pto_api()):
            raise RuntimeError("a library was compiled for another version of the task runtime: build it again")
        self._bound.add(library._handle)

    def records(self, handle: int) -> tuple[Any, ...]:
        """Copies of the arrays of tasks, edges, accesses, buffers, events and touches of a run, as ctypes arrays."""
        found = []
        for which, record in enumerate(RECORDS):
            count = u64()
            place = self.library.pto_records(handle, which, ctypes.byref(count))
            array = (record * count.value)()
            if count.value:
                ctypes.memmove(array, place, ctypes.sizeof(array))
            found.append(array)
        return tuple(found)


# The units of the library; several files in one where reading the headers again would take longer.
RUNTIME_UNITS: tuple[tuple[str, str], ...] = tuple(
    (f"{unit}.cpp", "".join(f'#include "runtime/{file}.cpp"\n' for file in files))
    for unit, files in {
        "orchestrator": ("submit", "storage"),
        "workers": ("execute", "lifecycle", "api"),
        "regions": ("regions",),
    }.items()
)
_made: dict[Any, TaskRuntime] = {}  # by sanitizer
_making = ProcessLock()


def task_runtime(sanitize: Any = None) -> TaskRuntime:
    """The task runtime, compiled when it is not in the cache. There is one in a process.

    ``sanitize``: as in :func:`.build.build`. Raises :class:`.compilers.CompilerNotFound` without a C++ compiler.
    """
    found = _made.get(sanitize)
    if found is None:
        with _making:
            found = _made.get(sanitize)
            if found is None:
                built = build(RUNTIME_UNITS, include_dirs=[SOURCES], name="pto", sanitize=sanitize)
                found = _made[sanitize] = TaskRuntime(load(built))
    return found


def server_library() -> Path:
    """The library of worker processes for isolated runs, compiled when it is not in the cache."""
    source = SOURCES / "runtime" / "serve.cpp"
    return build([source], include_dirs=[SOURCES], flags=["-O1"], name="server").path


def prepare_task_runtime() -> None:
    """Begin to compile the task runtime where it is not in the cache, on a thread of its own: on a new machine it takes
    longer than anything else. What fails here fails again where the runtime is needed."""
    if not _made:
        begin(task_runtime)


__all__ = [
    "RUNTIME_UNITS",
    "SOURCES",
    "ChipTensor",
    "Counters",
    "TaskRuntime",
    "prepare_task_runtime",
    "server_library",
    "task_runtime",
]
