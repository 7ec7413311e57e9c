"""Running an orchestration that was compiled to a library, with kernels that are native or Python functions."""

from __future__ import annotations

import ctypes
import itertools
import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from .._lazy import np
from ..diag.location import Location
from .element_types import dtype_of
from .errors import ProgramError
from .host_cpu import usable_cores
from .native_library import (
    ELEMENT_TYPES,
    ERRORS,
    KERNEL,
    MAX_DIMS,
    RINGS,
    ChipTensor,
    Counters,
    GlobalContext,
    KernelInfo,
    LocalContext,
    Options,
    Program,
    Report,
    TaskRuntime,
    TensorArgument,
    i64,
    task_runtime,
    u64,
)

if TYPE_CHECKING:
    from .task_records import RunRecord

DEFAULT_WINDOW = 16384  # tasks in flight, a ring
DEFAULT_HEAP = 256 << 20  # bytes, a ring
ENTRY = "aicpu_orchestration_entry"
CONFIG = "aicpu_orchestration_config"
_TYPE_CODES = {dtype: code for code, dtype in enumerate(ELEMENT_TYPES)}


class TaskError(ProgramError):
    """A run of the task runtime failed.

    ``code``: why, by the runtime's numbers; ``line``: of the orchestration source.
    """

    def __init__(
        self, message: str, code: int, line: int, span: Any = None, function: str = "", task: str = ""
    ) -> None:
        self.code = code
        self.line = line
        super().__init__(message, span, function, task)


class Kernel(msgspec.Struct, frozen=True):
    """``function``: an address, a function of a ctypes library with the kernel ABI, or a Python callable that is given
    a :class:`KernelArgs`. ``span``: where the user wrote it. ``parts``: words that say which part of its arguments it
    touches (see :mod:`.touched_parts`); tasks are ordered by these parts, without them by the whole arguments.
    ``places``: where checks of native code stand in the user's program, by the numbers that their messages begin with.
    ``instead``: a Python function that native code calls for arguments that it was not made for, through the pointer at
    address ``slot``.
    """

    name: str
    function: Any
    span: Any = None
    parts: Sequence[int] = ()
    places: Sequence[Any] = ()
    instead: Any = None
    slot: int = 0


class RunOptions(msgspec.Struct, frozen=True):
    """How to run.

    ``workers``: threads that execute, the calling one included; None: one for each core that the process may use.
    ``window`` (tasks) and ``heap`` (bytes): one number, or one for each of the four rings; None: the defaults. A heap
    that is given is a limit, the default one grows. ``strict``: the device's limits for windows and heaps.
    ``random``: one thread, ready tasks in a random order that ``seed`` decides.
    ``record``: tasks, edges and accesses; ``trace``: times as well. ``fill``: fresh buffers hold NaN or a pattern.
    ``check_races``: find tasks that touch the same bytes without an order (see :mod:`.races`), by what kernels say that
    they touch, or else by their arguments.
    ``timeout``: seconds without progress after which the run fails; then no task runs on the calling thread.
    ``by_parts``: tasks are ordered by the parts of their arguments that their kernels touch, as far as kernels say so;
    else, as on a device, by the whole arguments.
    ``order_reads``: a task that writes waits for earlier ones that read what it writes, which the rules of the device
    leave to the program; also without this, if the program needs it.
    ``isolate``: run in a worker process, which may crash or be ended (see :mod:`.isolation`); kernels must be exported
    functions of libraries then. ``sanitize``: as in :func:`.build.build`.
    """

    workers: int | None = None
    window: int | Sequence[int] | None = None
    heap: int | Sequence[int] | None = None
    strict: bool = False
    random: bool = False
    seed: int = 0
    record: bool = False
    trace: bool = False
    fill: bool = False
    check_races: bool = False
    timeout: float | None = None
    sanitize: str | None = None
    isolate: bool = False
    by_parts: bool = True
    order_reads: bool = False


class RunResult(msgspec.Struct, frozen=True):
    """``records``: arrays of tasks, edges, accesses, buffers and events of a recorded run (see ``native_library``)."""

    counters: Counters
    records: tuple[Any, ...] = ()


class KernelArgs:
    """The arguments of a kernel that is a Python function: arrays that share the tensors' memory, raw scalars.

    ``task``: number of the task; ``parts``: how many kernels run together for this block, ``lanes`` vector lanes among
    them; ``lane``: which of these this is.
    """

    __slots__ = ("_args", "block_idx", "block_num", "lane", "lanes", "parts", "task")

    def __init__(self, args: Any) -> None:
        self._args = args
        local, around = LocalContext.from_address(args[48]), GlobalContext.from_address(args[49])
        self.block_idx, self.block_num, self.task = local.block_idx, local.block_num, local.task
        self.lane, self.parts, self.lanes = around.sub_block_id, around.parts, around.lanes

    def tensor(self, index: int) -> Any:
        """Argument ``index`` as an array. The number of tensors is the caller's knowledge."""
        return as_array(self.descriptor(index))

    def descriptor(self, index: int) -> ChipTensor:
        """What the runtime says of argument ``index``, a tensor."""
        return ChipTensor.from_address(self._args[index])

    def scalar(self, index: int) -> int:
        """Argument slot ``index`` (tensors count, too) as a signed 64-bit integer."""
        return int(self._args[index])


def as_array(tensor: ChipTensor) -> Any:
    """The memory of a tensor as an array."""
    from ..ops.numpy_types import numpy_dtype

    dtype = np.dtype(numpy_dtype(ELEMENT_TYPES[tensor.dtype]))
    shape = tuple(tensor.shapes[: tensor.ndims])
    if 0 in shape:  # of a view that begins behind the end there is no memory to share
        return np.empty(shape, dtype)
    strides = tuple(s * dtype.itemsize for s in tensor.strides[: tensor.ndims])
    memory = (ctypes.c_char * tensor.buffer_size).from_address(tensor.buffer_addr) if tensor.buffer_size else b""
    return np.ndarray(shape, dtype, memory, tensor.start_offset * dtype.itemsize, strides)


class HostProgram:
    """An orchestration library and the kernels that it launches by number.

    ``positions``: line of the orchestration source -> where in the user's program, for errors; ``arguments``: names of
    the tensor arguments, for records. ``order_reads``: see :class:`RunOptions`. ``bindings``: what a process of its own
    has to do with the libraries of the kernels, as was done here: addresses of functions that are given something, each
    with that of the function that returns it.
    """

    def __init__(
        self,
        library: ctypes.CDLL,
        kernels: Sequence[Kernel],
        *,
        entry: str = ENTRY,
        config: str | None = CONFIG,
        positions: Callable[[int], Any] | None = None,
        arguments: Sequence[str] = (),
        order_reads: bool = False,
        bindings: Sequence[tuple[int | None, int | None]] = (),
    ) -> None:
        self.kernels = list(kernels)
        self.arguments = list(arguments)
        self._library = library
        self._entry = address_of(getattr(library, entry))
        self._config = address_of(getattr(library, config)) if config is not None else None
        self._positions = positions
        self._order_reads = order_reads
        self._bindings = bindings
        # Made by earlier runs, for later ones.
        self._tables: dict[tuple[int, bool], _KernelTable] = {}
        self._frames: list[_Frame] = []
        self._options: tuple[Any, Options | None] = None, None

    def run(self, tensors: Sequence[Any], scalars: Sequence[Any] = (), options: RunOptions | None = None) -> RunResult:
        """Run once. ``tensors``: arrays, which the program reads and writes in place; ``scalars``: ints, bools, NumPy
        scalars. Other Python threads go on meanwhile.

        Raises :class:`TaskError`, what a Python kernel raised, or :class:`.errors.RaceError`. After it the arrays hold
        whatever the tasks that ran have written.
        """
        options = options or RunOptions()
        runtime = task_runtime(options.sanitize)
        values = [_scalar_bits(s, i) for i, s in enumerate(scalars)]
        if options.isolate:
            return self._run_isolated(runtime, tensors, values, options)
        runtime.bind(self._library)
        frame = self._frames.pop() if self._frames else _Frame(self._entry, self._config)
        frame.set(tensors, values, self._table(runtime, options.by_parts))
        report = Report()
        native = self._native_options(options)
        handle = runtime.library.pto_run(ctypes.byref(frame.program), ctypes.byref(native), ctypes.byref(report))
        if handle is None:  # threads that never end use all of it
            _ABANDONED.append((frame, native, tensors))
        else:
            self._frames.append(frame)
        try:
            if report.code:
                raise _raised_in_python(report) or self._error(report)
            records = runtime.records(handle) if native.record else ()
        finally:
            if handle is not None:
                runtime.library.pto_free(handle)
        return self._checked(RunResult(report.counters, records), options)

    def _table(self, runtime: TaskRuntime, by_parts: bool) -> _KernelTable:
        table = self._tables.get((id(runtime), by_parts))
        if table is None:
            table = self._tables[id(runtime), by_parts] = _KernelTable(self.kernels, runtime, by_parts)
        return table

    def record(self, result: RunResult) -> RunRecord:
        """What a recorded run did, in the form that time lines, edge lists and the search for races read."""
        from .native_records import run_record

        names = [kernel.name for kernel in self.kernels]
        return run_record(result.records, names, self.arguments, self._position if self._positions else None)

    def _native_options(self, options: RunOptions) -> Options:
        workers = options.workers if options.workers is not None else usable_cores()
        known, made = self._options
        if made is None or known != (options, workers):
            made = _native_options(options, workers)
            made.order_reads = options.order_reads or self._order_reads
            self._options = (options, workers), made
        return made

    def _checked(self, result: RunResult, options: RunOptions) -> RunResult:
        if options.check_races:
            from .races import check_races

            check_races(self.record(result))
        return result

    def _position(self, line: int) -> Location | None:
        span = self._positions(line) if self._positions is not None else None
        return Location.of(span) if span is not None else None

    def _run_isolated(
        self,
        runtime: TaskRuntime,
        tensors: Sequence[Any],
        scalars: Sequence[int],
        options: RunOptions,
    ) -> RunResult:
        """As :meth:`run`; after an error the arrays are as they were before."""
        from .isolation import Call, run, symbol_at

        for kernel in self.kernels:
            if callable(kernel.function) and not _is_native(kernel.function):
                raise TypeError(
                    f"kernel '{kernel.name}' is a Python function, which can't run in a worker process: use"
                    " isolate=False, or a kernel from a library"
                )
        call = Call(
            runtime,
            symbol_at(self._entry, "the orchestration"),
            symbol_at(self._config, "the orchestration's configuration") if self._config is not None else None,
            [
                (
                    kernel.name,
                    symbol_at(
                        kernel.function if isinstance(kernel.function, int) else address_of(kernel.function),
                        f"kernel '{kernel.name}'",
                    ),
                    kernel.parts if options.by_parts else (),
                )
                for kernel in self.kernels
            ],
            [(symbol_at(take, "a binding"), symbol_at(give, "a binding")) for take, give in self._bindings],
            [(np.asanyarray(tensor), _tensor_argument(tensor, i)) for i, tensor in enumerate(tensors)],
            scalars,
            self._native_options(options),
        )
        report, records = run(call)
        if report.code:
            raise self._error(report)
        return self._checked(RunResult(report.counters, records), options)

    def _error(self, report: Report) -> TaskError:
        kernel = self.kernels[report.kernel] if report.kernel >= 0 else None
        span = self._positions(report.line) if self._positions is not None and report.line else None
        text = report.message.decode(errors="replace")
        check = _CHECK.match(text)
        stopped = _STOPPED.match(text)
        if span is None and stopped is not None and self._positions is not None:
            span = self._positions(int(stopped[1]))
            text = stopped[2] if span is not None else text
        if check is not None and kernel is not None and int(check[1]) < len(kernel.places):
            text = check[2]
            span = kernel.places[int(check[1])]
        if span is None and kernel is not None:
            span = kernel.span
        message = f"{text} [code {report.code}: {ERRORS.get(report.code, 'unknown')}]"
        if self._positions is None and report.line:
            message += f", orchestration line {report.line}"
        if report.stuck:
            message += (
                ". Threads of this run are still inside kernels and may write to its arrays: they can't be stopped "
                "within this process. Run with isolate=True to be able to end such a run"
            )
        task = f"#{report.task}" if report.task >= 0 else ""
        return TaskError(message, report.code, report.line, span, kernel.name if kernel is not None else "", task)


# What stops an orchestration from inside: the line of its code, and what is wrong.
_STOPPED = re.compile(r"line (\d+): (.*)", re.DOTALL)
# What a check in a generated kernel throws: its number, and what is wrong.
_CHECK = re.compile(r"the kernel threw an exception: @(\d+)@(.*)", re.DOTALL)

_ABANDONED: list[Any] = []  # what threads that never end may touch


# What kernels call for arguments that they were not made for, by the place of the pointer: set once and kept, since
# several programs may have one library, and run at the same time.
_INSTEAD: dict[int, Any] = {}
# What Python kernels raised and is to end a run, by the number that the run's report begins with.
_raised: dict[int, BaseException] = {}
_numbers = itertools.count()
_RAISED = re.compile(r"python error (\d+): ")


def _raised_in_python(report: Report) -> BaseException | None:
    match = _RAISED.match(report.message.decode(errors="replace"))
    return _raised.pop(int(match[1]), None) if match is not None else None


class _Frame:
    """What a run hands to the runtime, which does not change it. A later run sets what is different then."""

    def __init__(self, entry: int | None, config: int | None) -> None:
        self.program = Program(entry=entry, config=config)
        self._seen: list[Any] = []  # of each tensor shape, strides, dtype
        self._tensors: Any = None
        self._scalars: Any = None
        self._table: _KernelTable | None = None

    def set(self, tensors: Sequence[Any], scalars: Sequence[int], table: _KernelTable) -> None:
        """The arguments of the next run."""
        program = self.program
        if self._tensors is None or len(tensors) != program.tensor_count or len(scalars) != program.scalar_count:
            self._seen = [None] * len(tensors)
            self._tensors = (TensorArgument * max(len(tensors), 1))()
            self._scalars = (u64 * max(len(scalars), 1))()
            program.tensor_count, program.tensors = len(tensors), ctypes.addressof(self._tensors)
            program.scalar_count, program.scalars = len(scalars), ctypes.addressof(self._scalars)
        if table is not self._table:
            self._table = table
            program.kernels, program.kernel_count = table.address, table.count
        for i, tensor in enumerate(tensors):
            array = np.asanyarray(tensor)
            seen = (array.shape, array.strides, array.dtype)
            if seen != self._seen[i]:
                self._tensors[i] = _tensor_argument(array, i)
                self._seen[i] = seen
            else:
                argument = self._tensors[i]
                argument.data = argument.base = array.__array_interface__["data"][0]
        for i, bits in enumerate(scalars):
            self._scalars[i] = bits


class _KernelTable:
    """The kernels as the runtime takes them, with Python functions wrapped."""

    def __init__(self, kernels: Sequence[Kernel], runtime: Any, by_parts: bool) -> None:
        self._runtime = runtime
        self._alive: list[Any] = []
        self._table = (KernelInfo * max(len(kernels), 1))()
        self.address = ctypes.addressof(self._table)
        self.count = len(kernels)
        for i, kernel in enumerate(kernels):
            self._table[i].function = self._function(kernel)
            self._table[i].name = kernel.name.encode()
            if kernel.instead is not None and kernel.slot not in _INSTEAD:
                wrapped = _INSTEAD[kernel.slot] = self._wrapped(kernel.instead)
                ctypes.c_void_p.from_address(kernel.slot).value = address_of(wrapped)
            if by_parts and kernel.parts:
                words = (i64 * len(kernel.parts))(*kernel.parts)
                self._alive.append(words)
                self._table[i].parts = ctypes.addressof(words)

    def _function(self, kernel: Kernel) -> int | None:
        function = kernel.function
        if isinstance(function, int):
            return function
        if _is_native(function):
            return address_of(function)
        if not callable(function):
            raise TypeError(f"kernel '{kernel.name}': expected an address or a function, got {function!r}")
        wrapped = self._wrapped(function)
        self._alive.append(wrapped)
        return address_of(wrapped)

    def _wrapped(self, function: Any) -> Any:
        failed = self._runtime.library.pto_kernel_failed

        def call(args: Any) -> None:
            try:
                function(KernelArgs(args))
            except BaseException as error:
                # It can't cross C++, an interrupt neither: the run ends, and the caller gets it.
                number = next(_numbers)
                _raised[number] = error
                if not failed(f"python error {number}: {type(error).__name__}: {error}".encode()):
                    del _raised[number]  # another one ends the run

        return KERNEL(call)


def _is_native(function: Any) -> bool:
    return isinstance(function, ctypes._CFuncPtr)  # type: ignore[attr-defined]


def address_of(function: Any) -> int | None:
    """Where a function of a ctypes library stands."""
    return ctypes.cast(function, ctypes.c_void_p).value


def _native_options(options: RunOptions, workers: int) -> Options:
    if workers < 1:
        raise ValueError(f"workers must be at least 1, got {workers}")
    made = Options(workers=workers, seed=options.seed & (2**64 - 1), clusters=workers)
    made.window = (ctypes.c_uint32 * RINGS)(*_by_ring("window", options.window, DEFAULT_WINDOW))
    made.heap = (u64 * RINGS)(*_by_ring("heap", options.heap, DEFAULT_HEAP))
    made.strict_window = options.strict
    made.strict_heap = options.strict or options.heap is not None
    made.random_schedule = options.random
    made.record = 2 if options.check_races else int(options.record or options.trace)
    made.trace = options.trace
    made.fill = options.fill
    made.timeout = options.timeout or 0.0
    return made


def _by_ring(name: str, value: int | Sequence[int] | None, default: int) -> list[int]:
    items = [value] * RINGS if value is None or isinstance(value, int) else list(value)
    if len(items) != RINGS:
        raise ValueError(f"{name} must be one number or {RINGS}, one a ring, got {len(items)}")
    found = [item or default for item in items]
    if min(found) < 1:
        raise ValueError(f"{name} must be positive, got {value!r}")
    return found


def _tensor_argument(array: Any, index: int) -> TensorArgument:
    array = np.asanyarray(array)
    if array.ndim > MAX_DIMS:
        raise ValueError(f"tensor {index} has {array.ndim} dimensions, at most {MAX_DIMS} are possible")
    dtype = dtype_of(array.dtype, f"tensor {index}")
    code = _TYPE_CODES.get(dtype)
    if code is None:
        raise TypeError(f"tensor {index} has element type {dtype}, which tasks can't take")
    if max(array.shape, default=0) >= 2**32:
        raise ValueError(f"tensor {index} has shape {array.shape}: extents must be below 2**32")
    rank, size, reach = array.ndim, array.itemsize, array.nbytes
    if reach and not array.flags.c_contiguous:
        if any(n > 1 and (s < 0 or s % size) for n, s in zip(array.shape, array.strides, strict=True)):
            raise ValueError(
                f"tensor {index} has byte strides {array.strides}: negative ones, and parts of elements, can't be taken"
            )
        reach = size + sum((n - 1) * s for n, s in zip(array.shape, array.strides, strict=True))
    address = array.__array_interface__["data"][0]
    made = TensorArgument(data=address, bytes=reach, base=address, ndims=rank, dtype=code)
    made.shapes[:rank] = array.shape
    made.strides[:rank] = [s // size for s in array.strides]
    return made


def _scalar_bits(value: Any, index: int) -> int:
    """An integer widened with its sign, anything else by its bits."""
    if isinstance(value, np.generic) and value.dtype.kind != "i" and value.nbytes <= 8:
        return int.from_bytes(value.tobytes(), "little")
    if isinstance(value, (int, np.signedinteger)):
        if not -(2**63) <= value < 2**64:
            raise ValueError(f"scalar {index} is {value}: it does not fit in 64 bits")
        return int(value) & (2**64 - 1)
    raise TypeError(
        f"scalar {index} is {value!r}: give an int, a bool, or a NumPy scalar, which says how many bits it has"
    )


__all__ = ["HostProgram", "Kernel", "KernelArgs", "RunOptions", "RunResult", "TaskError", "as_array", "address_of"]
