"""Workers: something that owns memory and runs compiled programs. On the host the memory is the process's own."""

from __future__ import annotations

import abc
import ctypes
from collections.abc import Sequence
from contextvars import ContextVar
from typing import Any

from .._lazy import np
from ..target.platforms import platform_of
from .arrays import host_view
from .device_tensor import DeviceTensor, alloc_device_tensor
from .log import logger
from .run_config import RunConfig

_ALIGNMENT = 64


class Worker(abc.ABC):
    """Memory and execution of one place, or of several that are told apart by ``worker_id``."""

    def __init__(self) -> None:
        self._tensors: dict[tuple[int, int], DeviceTensor] = {}

    @abc.abstractmethod
    def malloc(self, nbytes: int, *, worker_id: int = 0) -> int:
        """Allocate; the address."""

    @abc.abstractmethod
    def free(self, ptr: int, *, worker_id: int = 0) -> None:
        """Give an allocation back."""

    @abc.abstractmethod
    def copy_to(self, dst_dev_ptr: Any, src_host_ptr: Any, nbytes: int | None = None, *, worker_id: int = 0) -> None:
        """Copy from the host into the worker's memory."""

    @abc.abstractmethod
    def copy_from(self, dst_host_ptr: Any, src_dev_ptr: Any, nbytes: int | None = None, *, worker_id: int = 0) -> None:
        """Copy from the worker's memory to the host."""

    @abc.abstractmethod
    def run(self, compiled: Any, *args: Any, config: RunConfig | None = None) -> Any:
        """Run a compiled program."""

    @abc.abstractmethod
    def register(self, compiled: Any) -> RegistrationHandle:
        """Prepare a compiled program for many runs."""

    def _buffer_of(self, ptr: int, worker_id: int) -> Any:
        """What stands behind an address, for :class:`DeviceTensor`."""
        return None

    def alloc_tensor(self, shape: Sequence[int], dtype: Any, *, init: Any = None, worker_id: int = 0) -> DeviceTensor:
        """A tensor in the worker's memory, filled with ``init`` if given."""
        tensor = alloc_device_tensor(
            malloc=lambda size: self.malloc(size, worker_id=worker_id),
            copy_to=lambda dst, src, size: self.copy_to(dst, src, size, worker_id=worker_id),
            free=lambda ptr: self.free(ptr, worker_id=worker_id),
            buffer_for_ptr=lambda ptr: self._buffer_of(ptr, worker_id),
            shape=shape,
            dtype=dtype,
            init=init,
        )
        self._tensors[worker_id, tensor.data_ptr] = tensor
        return tensor

    def free_tensor(self, t: DeviceTensor, *, worker_id: int = 0) -> None:
        """Free a tensor; a second time does nothing."""
        known = self._tensors.get((worker_id, t.data_ptr))
        if known is None:
            owners = [w for w, ptr in self._tensors if ptr == t.data_ptr]
            if owners:
                raise ValueError(f"{t!r} belongs to worker {owners[0]}, not to worker {worker_id}")
            return
        if known is not t and known.buffer is not t.buffer:
            raise ValueError(f"stale DeviceTensor: the memory of {t!r} was freed and belongs to another tensor now")
        self.free(t.data_ptr, worker_id=worker_id)
        del self._tensors[worker_id, t.data_ptr]

    def _free_forgotten(self) -> None:
        """Free what the user forgot; a failure is logged."""
        for (worker_id, ptr), tensor in list(self._tensors.items()):
            try:
                self.free(ptr, worker_id=worker_id)
            except (RuntimeError, ValueError) as error:
                logger.warning("could not free %r: %s", tensor, error)
            else:
                del self._tensors[worker_id, ptr]


class Allocation:
    """One allocation of a worker. ``memory``: its bytes as a NumPy array; None once it was freed."""

    __slots__ = ("memory", "ptr", "size", "worker")

    def __init__(self, worker: ChipWorker, size: int) -> None:
        raw = np.empty(size + _ALIGNMENT, np.uint8)
        start = -raw.__array_interface__["data"][0] % _ALIGNMENT
        self.memory: Any = raw[start : start + size]
        self.ptr = int(self.memory.__array_interface__["data"][0])
        self.size = size
        self.worker = worker


_ENTERED: ContextVar[tuple[ChipWorker, ...]] = ContextVar("pypto_workers", default=())


class ChipWorker(Worker):
    """A worker of one chip. On the host its memory is 64-byte aligned host memory and pointers are real addresses."""

    def __init__(
        self,
        config: RunConfig | None = None,
        *,
        level: int = 2,
        runtime: str = "tensormap_and_ringbuffer",
        enable_sdma: bool = False,
        auto_init: bool | None = None,
    ) -> None:
        super().__init__()
        if level != 2:
            raise ValueError(f"ChipWorker: level must be 2, got {level}")
        config = config or RunConfig()
        self._config = config
        self._runtime = runtime
        self._enable_sdma = enable_sdma
        self._initialized = False
        self._allocations: dict[int, Allocation] = {}
        self._next_cid = 0
        self._runs = 0
        if auto_init is not False:
            self.init()

    # --- life ---------------------------------------------------------------------------------------------------------

    def init(self) -> None:
        """Make the worker usable; a second time does nothing."""
        if self._initialized:
            return
        if platform_of(self._config.platform).is_device:
            raise RuntimeError(
                f"platform '{self._config.platform}' is a device and this machine has no driver for it. "
                'Pass RunConfig(platform="cpu")'
            )
        self._initialized = True

    def close(self) -> None:
        """Free everything; a second time does nothing, and ``init`` makes the worker usable again."""
        self._free_forgotten()
        for allocation in list(self._allocations.values()):
            logger.warning("an allocation of %d bytes was not freed", allocation.size)
            self._release(allocation)
        self._initialized = False

    def _require(self, operation: str) -> None:
        if not self._initialized:
            raise RuntimeError(f"ChipWorker.{operation}() requires an initialized ChipWorker")

    @property
    def level(self) -> int:
        return 2

    @property
    def platform(self) -> str:
        return self._config.platform

    @property
    def device_id(self) -> int:
        return self._config.device_id

    @property
    def runtime(self) -> str:
        return self._runtime

    @property
    def initialized(self) -> bool:
        return self._initialized

    @property
    def aicpu_dlopen_count(self) -> int:
        """Kernel modules loaded; the interpreter loads none."""
        return 0

    @property
    def host_dlopen_count(self) -> int:
        """Orchestration modules loaded; the interpreter loads none."""
        return 0

    def stats(self) -> dict[str, int]:
        """Runs so far, live allocations and their bytes."""
        return {
            "runs": self._runs,
            "allocations": len(self._allocations),
            "allocated_bytes": sum(a.size for a in self._allocations.values()),
        }

    # --- memory -------------------------------------------------------------------------------------------------------

    def _check_worker_id(self, worker_id: int) -> None:
        if worker_id != 0:
            raise ValueError(f"a ChipWorker is worker 0, got worker_id={worker_id}")

    def malloc(self, nbytes: int, *, worker_id: int = 0) -> int:
        self._require("malloc")
        self._check_worker_id(worker_id)
        if isinstance(nbytes, bool) or not isinstance(nbytes, int) or nbytes <= 0:
            raise ValueError(f"nbytes must be a positive int, got {nbytes!r}")
        made = Allocation(self, nbytes)
        self._allocations[made.ptr] = made
        return made.ptr

    def free(self, ptr: int, *, worker_id: int = 0) -> None:
        self._require("free")
        self._check_worker_id(worker_id)
        self._release(self._allocation(ptr))

    def _release(self, allocation: Allocation) -> None:
        allocation.memory = None
        del self._allocations[allocation.ptr]

    def _allocation(self, ptr: Any) -> Allocation:
        found = self._allocations.get(ptr)
        if found is None:
            inside = any(a.ptr < ptr < a.ptr + a.size for a in self._allocations.values())
            why = "points inside an allocation: its base pointer is needed" if inside else "is no live allocation"
            raise ValueError(f"0x{ptr:x} {why} of this ChipWorker")
        return found

    def _buffer_of(self, ptr: int, worker_id: int) -> Any:
        return self._allocations[ptr]

    def copy_to(self, dst_dev_ptr: Any, src_host_ptr: Any, nbytes: int | None = None, *, worker_id: int = 0) -> None:
        """Copy into an allocation: from a host address, or ``copy_to(tensor, array)``."""
        self._require("copy_to")
        self._check_worker_id(worker_id)
        if isinstance(dst_dev_ptr, DeviceTensor):
            target, source = dst_dev_ptr.host_view("dst"), host_view(src_host_ptr, "src", False)
            _check_alike(target, source)
            np.copyto(target, source)
            return
        target = self._window(dst_dev_ptr, nbytes)
        ctypes.memmove(target.ctypes.data, src_host_ptr, target.size)

    def copy_from(self, dst_host_ptr: Any, src_dev_ptr: Any, nbytes: int | None = None, *, worker_id: int = 0) -> None:
        """Copy out of an allocation: to a host address, or ``copy_from(array, tensor)``."""
        self._require("copy_from")
        self._check_worker_id(worker_id)
        if isinstance(src_dev_ptr, DeviceTensor):
            target, source = host_view(dst_host_ptr, "dst", True), src_dev_ptr.host_view("src")
            _check_alike(target, source)
            np.copyto(target, source)
            return
        source = self._window(src_dev_ptr, nbytes)
        ctypes.memmove(dst_host_ptr, source.ctypes.data, source.size)

    def _window(self, ptr: Any, nbytes: int | None) -> Any:
        allocation = self._allocation(ptr)
        if isinstance(nbytes, bool) or not isinstance(nbytes, int) or nbytes < 0:
            raise ValueError(f"nbytes must be a non-negative int, got {nbytes!r}")
        if nbytes > allocation.size:
            raise ValueError(f"{nbytes} bytes don't fit the allocation of {allocation.size} bytes at 0x{ptr:x}")
        return allocation.memory[:nbytes]

    # --- running ------------------------------------------------------------------------------------------------------

    def _check(self, compiled: Any) -> None:
        if compiled.platform != self.platform:
            raise ValueError(
                f"the program is compiled for platform '{compiled.platform}', the worker is on '{self.platform}': "
                f"compile with platform='{self.platform}', or make the worker with "
                f"RunConfig(platform='{compiled.platform}')"
            )
        if compiled.runtime_name != self.runtime:
            raise ValueError(
                f"the program is compiled for the runtime '{compiled.runtime_name}', the worker has '{self.runtime}': "
                f"make the worker with runtime='{compiled.runtime_name}'"
            )

    def run(self, compiled: Any, *args: Any, config: RunConfig | None = None) -> Any:
        self._require("run")
        self._check(compiled)
        self._check_tensors(compiled, args)
        self._runs += 1
        return compiled.execute(args, {}, config).result

    def _check_tensors(self, compiled: Any, args: Sequence[Any]) -> None:
        for i, arg in enumerate(args):
            if isinstance(arg, DeviceTensor) and arg.buffer is not None:
                if getattr(arg.buffer, "worker", None) is not self or arg.buffer.memory is None:
                    raise ValueError(f"argument {i}: {arg!r} is not a live allocation owned by this ChipWorker")

    def register(self, compiled: Any) -> RegistrationHandle:
        self._require("register")
        self._check(compiled)
        compiled.load()
        self._next_cid += 1
        return RegistrationHandle(self, compiled, self._next_cid - 1)

    # --- the worker of a block ----------------------------------------------------------------------------------------

    def _binding(self) -> tuple[int, str, int, str]:
        return (self.level, self.platform, self.device_id, self.runtime)

    def __enter__(self) -> ChipWorker:
        self.init()
        stack = _ENTERED.get()
        if any(w._binding() == self._binding() for w in stack):
            raise ValueError(
                f"a ChipWorker for platform '{self.platform}', device {self.device_id} is entered already: reuse it"
            )
        _ENTERED.set((*stack, self))
        return self

    def __exit__(self, *_error: Any) -> None:
        _ENTERED.set(tuple(w for w in _ENTERED.get() if w is not self))
        self.close()

    @classmethod
    def current(
        cls, *, level: int, platform: str, device_id: int, runtime: str, require_sdma: bool = False
    ) -> ChipWorker | None:
        """The innermost entered worker with this binding, or None."""
        for worker in reversed(_ENTERED.get()):
            if worker._binding() == (level, platform, device_id, runtime):
                if require_sdma and not worker._enable_sdma:
                    raise RuntimeError("the entered ChipWorker was made without enable_sdma=True")
                return worker
        return None


def _check_alike(target: Any, source: Any) -> None:
    if target.shape != source.shape or target.dtype != source.dtype:
        raise ValueError(
            f"the array has shape and dtype {source.shape} {source.dtype}, the target {target.shape} {target.dtype}"
        )


class RegistrationHandle:
    """A compiled program that a worker is prepared for."""

    def __init__(self, worker: ChipWorker, compiled: Any, cid: int) -> None:
        self._worker = worker
        self._compiled = compiled
        self._cid = cid
        self._closed = False

    @property
    def cid(self) -> int:
        return self._cid

    @property
    def compiled(self) -> Any:
        return self._compiled

    @property
    def closed(self) -> bool:
        return self._closed

    def __call__(self, *args: Any, config: RunConfig | None = None) -> Any:
        if self._closed:
            raise RuntimeError("this RegistrationHandle is closed: register the program again")
        return self._worker.run(self._compiled, *args, config=config)

    def unregister(self) -> None:
        """Close this handle; a second time does nothing."""
        self._closed = True

    def __enter__(self) -> RegistrationHandle:
        return self

    def __exit__(self, *_error: Any) -> None:
        self.unregister()


__all__ = ["ChipWorker", "RegistrationHandle", "Worker"]
