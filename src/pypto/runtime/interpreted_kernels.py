"""Kernels of a program as functions that the task runtime can call: each runs in the interpreter."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

from ..ir.dtype import DataType
from ..ir.program import Function, Program
from ..ir.type import ScalarType, TensorType
from ..ops.pipe_set import PipeSet
from ..ops.values import ArrayValue
from .host_executor import Kernel, KernelArgs
from .interpreter import Interpreter
from .scalar_args import from_bits


def interpreted_kernels(
    program: Program, functions: Sequence[Function], parts: Sequence[Sequence[int]] | None = None
) -> list[Kernel]:
    """The kernels, in this order. A task's arguments are a kernel's tensors, then its scalars, each in the order of the
    parameters; an output is one of the tensors, so what the function returns is not looked at. ``parts``: the words of
    each kernel that say what it touches (see :mod:`.touched_parts`).
    """
    interpreter = Interpreter(program)
    meetings = _Meetings()
    return [
        Kernel(f.name, _InterpretedKernel(interpreter, f, meetings), f.span, words)
        for f, words in zip(functions, parts or [()] * len(functions), strict=True)
    ]


class _InterpretedKernel:
    def __init__(self, interpreter: Interpreter, function: Function, meetings: _Meetings) -> None:
        self._interpreter = interpreter
        self._function = function
        self._meetings = meetings
        tensors = [isinstance(param.type, TensorType) for param in function.params]
        count = sum(tensors)
        places = {True: iter(range(count)), False: iter(range(count, len(tensors)))}
        # For each parameter its slot, and the dtype of a scalar.
        self._slots: list[tuple[int, DataType | None]] = [
            (next(places[tensor]), None if tensor else _dtype(param.type))
            for tensor, param in zip(tensors, function.params, strict=True)
        ]

    def __call__(self, args: KernelArgs) -> None:
        values: list[Any] = [
            ArrayValue(args.tensor(slot)) if dtype is None else from_bits(args.scalar(slot), dtype)
            for slot, dtype in self._slots
        ]
        label = f"{self._function.name}#{args.task}"
        if args.parts == 1:
            self._interpreter.run_kernel(self._function, values, args.block_idx, args.block_num, label)
            return
        with self._meetings.join(args) as pipes:
            self._interpreter.run_kernel(
                self._function, values, args.block_idx, args.block_num, label, pipes, args.lane
            )


def _dtype(kind: Any) -> DataType:
    if not isinstance(kind, ScalarType):
        raise TypeError(f"a kernel's parameter of type {kind} can't be passed by the task runtime")
    return kind.dtype


class _Meetings:
    """The queues between the parts of mixed kernels, by task and block."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._open: dict[tuple[int, int], tuple[PipeSet, int]] = {}

    def join(self, args: KernelArgs) -> _Party:
        key = args.task, args.block_idx
        with self._lock:
            pipes, left = self._open.get(key) or (PipeSet(max(args.lanes, 1), args.parts), args.parts)
            # The count says how many parts have not joined: the last one takes the meeting off the list.
            if left == 1:
                self._open.pop(key, None)
            else:
                self._open[key] = pipes, left - 1
        return _Party(pipes)


class _Party:
    """One part in a meeting."""

    def __init__(self, pipes: PipeSet) -> None:
        self._pipes = pipes

    def __enter__(self) -> PipeSet:
        return self._pipes

    def __exit__(self, _kind: Any, error: BaseException | None, _trace: Any) -> None:
        if error is not None:
            self._pipes.abort(str(error))
        self._pipes.leave()


__all__ = ["interpreted_kernels"]
