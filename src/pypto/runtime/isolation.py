"""Runs in a worker process, so that a kernel that crashes or never ends can't take the session with it.

A worker is started when first needed and kept for the runs that follow; runs of several threads at once have one each.
It is this Python with nothing but a library whose ``pto_serve`` answers requests (how is said in
``native/runtime/serve.cpp``), and the task runtime, which that loads. Arrays travel through memory that both processes
map: copied in before the run, and back after one that succeeded. In the same memory stands the monitor, where the
worker's threads write what they run, so that this process can say what a dead one did. A worker that died, hangs or is
left in the middle of a run is ended, and replaced when the next run comes; the worker ends itself when this process is
gone.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import mmap
import os
import select
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from typing import Any

import msgspec

from .._lazy import np
from .errors import ProgramError
from .native_library import RECORDS, Options, Report, TaskRuntime, TensorArgument, i32, i64, server_library, u32, u64

MONITOR_BYTES = 64 << 10
MAX_THREADS = 256  # that the monitor describes
KEEP_BYTES = 256 << 20  # of memory that a worker keeps between runs; more is given back after each
KEEP_WORKERS = 2  # that wait for runs
_ALIGNMENT = 64
_LOOK_EVERY_S = 0.2  # at a worker that says nothing
_SERVE = (
    "import ctypes, os, sys;"
    " sys.exit(ctypes.CDLL(sys.argv[1]).pto_serve(os.fsencode(sys.argv[2]), *map(int, sys.argv[3:])))"
)
_LOADING_FAILED = -1  # code of a report
_KERNEL_FAILED, _NO_PROGRESS = 101, 100
_PHASE_LOADING, _PHASE_ASKED = 1, 3  # the latter is set here, and there any other when a request is read


class IsolationError(ProgramError):
    """A worker process can't be started, or can't load what it is to run; nothing ran."""


class ThreadState(ctypes.Structure):
    _fields_ = (("begun", u64), ("task", i64), ("kernel", i32), ("line", u32), ("taken", u32), ("unused", u32))


class Monitor(ctypes.Structure):
    """What the threads of the worker do; it writes, this process reads."""

    _fields_ = (
        ("phase", u32),
        ("signal", i32),
        ("thread", i32),
        ("line", u32),
        ("address", u64),
        ("submitted", u64),
        ("threads", ThreadState * MAX_THREADS),
    )

    def progress(self) -> int:
        """A number that changes when a task is submitted or a kernel begins."""
        return int(self.submitted) + sum(int(thread.begun) for thread in self.threads)

    def running(self) -> list[ThreadState]:
        """The threads that are inside kernels."""
        return [thread for thread in self.threads if thread.taken and thread.task >= 0]


class Symbol(msgspec.Struct, frozen=True):
    """A function by the library's path and its name there, as another process finds it."""

    library: str
    name: str


class Call(msgspec.Struct, frozen=True):
    """What is to be run. ``tensors``: each array with its description, whose addresses are those in this process."""

    runtime: TaskRuntime
    entry: Symbol
    config: Symbol | None
    kernels: Sequence[tuple[str, Symbol, Sequence[int]]]  # with the words that say what it touches
    bindings: Sequence[tuple[Symbol, Symbol]]  # functions that are given what another one returns
    tensors: Sequence[tuple[Any, TensorArgument]]
    scalars: Sequence[int]
    options: Options


def run(call: Call) -> tuple[Report, tuple[Any, ...]]:
    """Run in a worker process: how it went, and the records if the options ask for them.

    A worker that crashed or hung makes a report with code 101 or 100. Raises :class:`IsolationError`.
    """
    if sys.platform == "win32":
        raise NotImplementedError("isolate=True needs POSIX shared memory and signals; use isolate=False on Windows")
    path = str(call.runtime.library._name)
    for last in (False, True):
        worker = _pool.take(path)
        try:
            outcome = worker.run(call)
        except BaseException:  # an interrupt, say: the run may still go on there
            worker.end()
            raise
        if outcome is not None:
            _pool.give(worker)
            return outcome
        # It died while it waited for a request (somebody killed it): nothing has been run.
        worker.end()
        if last:
            raise IsolationError(
                f"the worker process for isolated runs ends when it is started: {worker.how_it_ended()}"
            )
    raise AssertionError("unreachable")


# --- functions --------------------------------------------------------------------------------------------------------


class _DlInfo(ctypes.Structure):
    _fields_ = (
        ("path", ctypes.c_char_p),
        ("base", ctypes.c_void_p),
        ("name", ctypes.c_char_p),
        ("address", ctypes.c_void_p),
    )


def symbol_at(address: int | None, what: str) -> Symbol:
    """The exported function at an address. TypeError, which says ``what`` it is, when no library exports one there."""
    found = _DlInfo()
    dladdr = ctypes.CDLL(None).dladdr
    dladdr.argtypes = (ctypes.c_void_p, ctypes.POINTER(_DlInfo))
    if not dladdr(address, ctypes.byref(found)) or found.address != address or not found.name:
        raise TypeError(
            f"{what} is no function that a shared library exports: with isolate=True the worker process has to find it"
            " by its name. Export it, or use isolate=False"
        )
    return Symbol(os.path.abspath(os.fsdecode(found.path)), found.name.decode())


# --- memory -----------------------------------------------------------------------------------------------------------


def _memory_file() -> int:
    """A file without a name, in memory where the system has such files."""
    if hasattr(os, "memfd_create"):
        return os.memfd_create("pypto-worker", os.MFD_CLOEXEC)
    with tempfile.TemporaryFile(prefix="pypto-") as file:
        return os.dup(file.fileno())


def _places(tensors: Sequence[TensorArgument]) -> tuple[list[int], int]:
    """Where each tensor begins in the shared memory, and the bytes of all. Tensors that overlap here overlap there."""
    places = [0] * len(tensors)
    total = 0
    begin = end = 0  # of the memory here that the tensors before, which overlap each other, are in
    for i in sorted(range(len(tensors)), key=lambda i: (tensors[i].base or 0, i)):
        base = tensors[i].base or 0
        if base >= end:
            total = -(-(total + end - begin) // _ALIGNMENT) * _ALIGNMENT
            begin = end = base
        places[i] = total + base - begin
        end = max(end, base + tensors[i].bytes)
    total += end - begin
    return places, -(-total // mmap.PAGESIZE) * mmap.PAGESIZE


def _patience(timeout: float) -> float:
    """Seconds to wait for any sign of progress. The runtime itself reports tasks that hang, within twice its timeout:
    this is for all else, such as an endless loop of the orchestration.
    """
    return 3 * timeout + 1


# --- workers ----------------------------------------------------------------------------------------------------------


class _Worker:
    """A process that runs programs, one at a time."""

    def __init__(self, library: str) -> None:
        if not sys.executable:
            raise IsolationError(
                "isolate=True starts this Python once more, but sys.executable does not say which it is"
            )
        self.library = library
        self._memory = _memory_file()
        os.ftruncate(self._memory, MONITOR_BYTES)
        self._size = 0  # of the part for arrays
        self.monitor = Monitor.from_buffer(mmap.mmap(self._memory, MONITOR_BYTES))
        requests, self._requests = os.pipe()
        self._answers, answers = os.pipe()
        # -I -S: the standard library alone; nothing that the environment or an installed package adds.
        files = map(str, (requests, answers, self._memory))
        command = [sys.executable, "-I", "-S", "-c", _SERVE, str(server_library()), library, *files]
        try:
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, pass_fds=(requests, answers, self._memory)
            )
        except OSError as error:
            self.close()
            raise IsolationError(f"the worker process for isolated runs can't be started: {error}") from error
        finally:
            os.close(requests)
            os.close(answers)
        self._ready = select.poll()
        self._ready.register(self._answers, select.POLLIN)

    def run(self, call: Call) -> tuple[Report, tuple[Any, ...]] | None:
        """As :func:`run`; None when the process was not there to get the request."""
        places, size = _places([argument for _, argument in call.tensors])
        if size > self._size:
            self._resize(size)
        self.monitor.signal = self.monitor.line = 0
        self.monitor.thread = -1
        self.monitor.phase = _PHASE_ASKED
        arrays = self._arrays(call, places)
        for here, there in arrays.values():
            there[...] = here
        answer = self._answer(call.options.timeout) if self._ask(_request(call, places, size)) else None
        if answer is None:
            unread = self.monitor.phase == _PHASE_ASKED and not self.alive()
            return None if unread else self._post_mortem(_patience(call.options.timeout))
        report = Report.from_buffer_copy(answer)
        if report.code == _LOADING_FAILED:
            raise IsolationError(f"the worker process can't load what it is to run: {report.message.decode()}")
        if report.stuck:
            self.end()
            report.stuck = 0  # nothing is left behind
        if report.code == 0:
            for here, there in arrays.values():
                if here.flags.writeable:
                    here[...] = there
        if self._size > KEEP_BYTES and self._process.returncode is None:
            self._resize(0)
        return report, _records(answer, call.options)

    def _resize(self, size: int) -> None:
        os.ftruncate(self._memory, MONITOR_BYTES + size)
        self._size = size

    def _arrays(self, call: Call, places: list[int]) -> dict[Any, tuple[Any, Any]]:
        """The arrays, here and there; one that is given several times only once."""
        if not self._size:
            return {}
        memory = mmap.mmap(self._memory, self._size, offset=MONITOR_BYTES)
        found = {}
        for (array, _), place in zip(call.tensors, places, strict=True):
            if array.size:
                key = (place, array.dtype, array.shape, array.strides, array.flags.writeable)
                found[key] = (array, np.ndarray(array.shape, array.dtype, memory, place, array.strides))
        return found

    def _ask(self, request: bytes) -> bool:
        """False: nobody is there."""
        try:
            _write_all(self._requests, struct.pack("Q", len(request)) + request)
        except BrokenPipeError:
            self._settle()
            return False
        return True

    def _answer(self, timeout: float) -> bytes | None:
        """The next answer; None when the process has died, or has shown no sign of progress for long."""
        patience = _patience(timeout)
        seen, since = -1, time.monotonic()
        while not self._ready.poll(1000 * _LOOK_EVERY_S):
            if not self.alive() and not self._ready.poll(0):
                return None
            if not timeout:
                continue
            progress = self.monitor.progress()
            if progress != seen:
                seen, since = progress, time.monotonic()
            elif time.monotonic() - since > patience:
                return None
        size = _read_all(self._answers, 8)
        answer = _read_all(self._answers, struct.unpack("Q", size)[0]) if size is not None else None
        if answer is None:
            self._settle()
        return answer

    def _post_mortem(self, patience: float) -> tuple[Report, tuple[Any, ...]]:
        """What the monitor shows of a process that has died, or that is ended now because it hangs."""
        hangs = self.alive()
        monitor = self.monitor
        running = monitor.running()
        thread = monitor.threads[monitor.thread] if monitor.signal and 0 <= monitor.thread < MAX_THREADS else None
        if thread is None and len(running) == 1:
            thread = running[0]
        report = Report(task=-1, kernel=-1, code=_NO_PROGRESS if hangs else _KERNEL_FAILED)
        if thread is not None and thread.task >= 0:
            report.task, report.kernel, report.line = thread.task, thread.kernel, thread.line
            where = "in a kernel"
        elif monitor.phase == _PHASE_LOADING:
            where = "while the libraries of the program were loaded"
        else:
            report.line = monitor.line
            where = "in the orchestration, or in a thread that a kernel started"
        if thread is None and running:
            where += "; in kernels were tasks " + ", ".join(f"{t.task} (line {t.line})" for t in running)
        what = f"no progress for {patience:g} s" if hangs else self.how_it_ended()
        self.end()
        report.message = f"{what}, {where}".encode()
        return report, ()

    def how_it_ended(self) -> str:
        """The signal or status that ended the process, in words."""
        code = self._process.poll()
        number = self.monitor.signal or (-code if code is not None and code < 0 else 0)
        if not number:
            return f"the process ended itself with status {code}"
        text = _SIGNALS.get(number) or f"signal {number} ({signal.strsignal(number)})"
        return (
            f"{text} at address {self.monitor.address:#x}" if number in _ABOUT_MEMORY and self.monitor.signal else text
        )

    def _settle(self) -> None:
        """Its pipes end a moment before the process does."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(5)

    def alive(self) -> bool:
        return self._process.poll() is None

    def end(self) -> None:
        """End the process now, whatever it does."""
        self._process.kill()
        self._process.wait()
        self.close()

    def retire(self) -> None:
        """Let the process end, which it does when it finds nobody to ask it."""
        self.close()
        try:
            self._process.wait(1)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def close(self) -> None:
        """Close this side's files."""
        for file in (self._requests, self._answers, self._memory):
            if file >= 0:
                os.close(file)
        self._requests = self._answers = self._memory = -1

    def forget(self) -> None:
        """In a forked child: the process is the parent's, and must be able to see the parent's end."""
        self.close()
        self._process.returncode = 0  # nothing for this process to wait for


_SIGNALS = {
    getattr(signal, name): text
    for name, text in {
        "SIGSEGV": "segmentation fault",
        "SIGBUS": "bus error",
        "SIGFPE": "arithmetic fault (an integer divided by zero)",
        "SIGILL": "illegal instruction",
        "SIGABRT": "the process called abort()",
        "SIGKILL": "the process was killed (the system may have run out of memory)",
    }.items()
    if hasattr(signal, name)
}
_ABOUT_MEMORY = {getattr(signal, name, 0) for name in ("SIGSEGV", "SIGBUS")}


class _Pool:
    """Workers that wait for runs, and all that exist."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._idle: list[_Worker] = []
        self._all: list[_Worker] = []

    def take(self, library: str) -> _Worker:
        with self._lock:
            while self._idle:
                worker = self._idle.pop()
                if worker.library == library and worker.alive():
                    return worker
                self._drop(worker)
            worker = _Worker(library)
            self._all = [each for each in self._all if each.alive()] + [worker]
            return worker

    def give(self, worker: _Worker) -> None:
        with self._lock:
            if worker.alive() and len(self._idle) < KEEP_WORKERS:
                self._idle.append(worker)
            else:
                self._drop(worker)

    def _drop(self, worker: _Worker) -> None:
        worker.retire()
        self._all = [each for each in self._all if each is not worker]

    def close(self) -> None:
        """End the workers that wait."""
        with self._lock:
            while self._idle:
                self._drop(self._idle.pop())

    def forget(self) -> None:
        """In a forked child."""
        self._lock = threading.Lock()  # a thread that does not exist here may have held it
        for worker in self._all:
            worker.forget()
        self._idle, self._all = [], []


_pool = _Pool()
atexit.register(_pool.close)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pool.forget)


# --- requests and answers ---------------------------------------------------------------------------------------------


def _request(call: Call, places: list[int], size: int) -> bytes:
    def text(value: str) -> bytes:
        data = os.fsencode(value)
        return struct.pack("Q", len(data)) + data

    parts = [
        struct.pack("Q", size),
        bytes(call.options),
        struct.pack("Q", bool(call.options.record)),
        text(call.entry.library),
        text(call.entry.name),
        text(call.config.name if call.config is not None else ""),
        struct.pack("Q", len(call.kernels)),
    ]
    for name, symbol, words in call.kernels:
        parts += [text(name), text(symbol.library), text(symbol.name)]
        parts.append(struct.pack(f"Q{len(words)}q", len(words), *words))
    parts.append(struct.pack("Q", len(call.bindings)))
    for symbol in (symbol for binding in call.bindings for symbol in binding):
        parts += [text(symbol.library), text(symbol.name)]
    parts.append(struct.pack("Q", len(places)))
    for (_, argument), place in zip(call.tensors, places, strict=True):
        moved = TensorArgument.from_buffer_copy(argument)
        moved.base = moved.data = place
        parts.append(bytes(moved))
    parts.append(struct.pack(f"Q{len(call.scalars)}Q", len(call.scalars), *call.scalars))
    return b"".join(parts)


def _records(answer: bytes, options: Options) -> tuple[Any, ...]:
    at = ctypes.sizeof(Report)
    found = []
    for record in RECORDS if options.record and at < len(answer) else ():
        (count,) = struct.unpack_from("Q", answer, at)
        array = (record * count).from_buffer_copy(answer, at + 8)
        at += 8 + ctypes.sizeof(array)
        found.append(array)
    return tuple(found)


def _write_all(file: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(file, view) :]


def _read_all(file: int, size: int) -> bytes | None:
    """None when the other side has closed it before."""
    parts = []
    while size:
        part = os.read(file, min(size, 1 << 20))
        if not part:
            return None
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


__all__ = ["Call", "IsolationError", "Symbol", "run", "symbol_at"]
