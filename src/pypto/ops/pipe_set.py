"""The queues between the threads that run the parts of a mixed kernel, and the halves that travel in them."""

from __future__ import annotations

import threading
from collections import defaultdict, deque
from collections.abc import Callable, Sequence
from typing import Any

from .._lazy import np
from .regions import defined_elements
from .values import ArrayValue, OutOfBoundsError, empty, fresh


class PipeError(RuntimeError):
    """The parts of a mixed kernel wait for each other and none can go on."""


class PipeSet:
    """FIFOs by direction (``"c2v"``, ``"v2c"``), pipe id and vector lane, shared by the threads of one cluster.

    ``lanes``: vector lanes that run. ``parties``: threads that take part; when all of them wait, that is reported as a
    deadlock at once (each calls :meth:`leave` when it ends). Without it, and as a last resort, ``timeout`` seconds end
    a wait. :meth:`abort` releases everybody after one thread failed.
    """

    def __init__(self, lanes: int = 1, parties: int | None = None, timeout: float = 10.0) -> None:
        self.lanes = lanes
        self.timeout = timeout
        self._parties = parties
        self._queues: dict[tuple[str, int, int], deque[Any]] = defaultdict(deque)
        self._slots: dict[tuple[str, int], int] = {}
        self._changed = threading.Condition()
        self._waits: dict[int, tuple[str, Callable[[], bool]]] = {}
        self._failure: str | None = None
        self._meeting: list[dict[int, Any]] = [{}]
        self._met = [0] * lanes

    def configure(self, direction: str, id: int, slots: int) -> None:
        """Limit a queue to ``slots`` tiles that were pushed but not popped."""
        with self._changed:
            self._slots[direction, id] = slots

    def push(self, direction: str, id: int, lane: int, value: Any) -> None:
        """Append a tile; waits while all slots are taken."""
        queue = self._queues[direction, id, lane]
        with self._changed:
            limit = self._slots.get((direction, id))
            if limit is not None:
                room = limit
                what = f"push to {direction}[{id}] lane {lane}: all {room} slots are taken"
                self._wait(what, lambda: len(queue) < room)
            queue.append(value)
            self._changed.notify_all()

    def pop(self, direction: str, id: int, lane: int) -> Any:
        """Take the oldest tile; waits while there is none."""
        queue = self._queues[direction, id, lane]
        with self._changed:
            self._wait(f"pop from {direction}[{id}] lane {lane}: the queue is empty", lambda: bool(queue))
            value = queue.popleft()
            self._changed.notify_all()
            return value

    def exchange(self, lane: int, value: Any) -> list[Any]:
        """Give a value and get those of all lanes, in lane order; the lanes meet."""
        with self._changed:
            turn = self._met[lane]
            self._met[lane] += 1
            while len(self._meeting) <= turn:
                self._meeting.append({})
            meeting = self._meeting[turn]
            meeting[lane] = value
            self._changed.notify_all()
            self._wait(f"lane {lane} waits for the other lane's half", lambda: len(meeting) == self.lanes)
            return [meeting[i] for i in range(self.lanes)]

    def leave(self) -> None:
        """One party has ended."""
        with self._changed:
            if self._parties is not None:
                self._parties -= 1
                self._check_deadlock()
            self._changed.notify_all()

    def abort(self, reason: str) -> None:
        """Release every waiting party, since one has failed."""
        with self._changed:
            self._failure = self._failure or reason
            self._changed.notify_all()

    def depths(self) -> dict[tuple[str, int, int], int]:
        """Tiles in each queue that were pushed but not popped."""
        with self._changed:
            return {key: len(queue) for key, queue in sorted(self._queues.items()) if queue}

    def _wait(self, what: str, ready: Callable[[], bool]) -> None:
        if ready():
            return
        me = threading.get_ident()
        self._waits[me] = (what, ready)
        try:
            self._check_deadlock()
            done = self._changed.wait_for(lambda: ready() or self._failure is not None, self.timeout)
            if ready():
                return
            if self._failure is None and not done:
                self._failure = f"no progress within {self.timeout:g} s: {what}"
                self._changed.notify_all()
            raise PipeError(f"{self._failure} ({self._state()})")
        finally:
            self._waits.pop(me, None)

    def _check_deadlock(self) -> None:
        if self._parties is None or self._failure is not None or not self._waits:
            return
        if len(self._waits) >= self._parties and not any(ready() for _, ready in self._waits.values()):
            waits = "; ".join(sorted(what for what, _ in self._waits.values()))
            self._failure = f"deadlock in cross-core pipes: {waits}"
            self._changed.notify_all()

    def _state(self) -> str:
        depths = {key: len(queue) for key, queue in sorted(self._queues.items())}
        shown = ", ".join(f"{d}[{i}] lane {lane}: {n}" for (d, i, lane), n in depths.items())
        return f"queue depths: {shown or 'none'}; thread {threading.current_thread().name}"


# --- halves -----------------------------------------------------------------------------------------------------------


def split_half(value: ArrayValue, split: int, lane: int, lane_stride: int | None) -> ArrayValue:
    """A copy of the part of a tile that belongs to a lane.

    ``split`` 0: all of it; 1 and 3: rows; 2 and 4: columns. Each half has ``ceil(n / 2)`` of the axis, lane 1 begins at
    ``lane_stride`` where given; codes 3 and 4 give lane 0 the larger part of an odd valid extent.
    """
    if split == 0:
        return fresh(np.array(value.data, order="C"), defined_elements(value), value.valid)
    axis = (split - 1) % 2
    size, valid = value.shape[axis], value.valid[axis]
    half = (size + 1) // 2
    stride = lane_stride or ((valid + 1) // 2 if split > 2 else half)
    start = lane * stride
    own = min(max(valid - start, 0), stride if lane == 0 else half)
    shape = list(value.shape)
    shape[axis] = half
    region = list(value.valid)
    region[axis] = own
    index = [slice(0, n) for n in value.valid]
    index[axis] = slice(start, start + own)
    mask = value.mask
    if region == shape:
        return fresh(np.array(value.data[tuple(index)], order="C"), None if mask is None else mask[tuple(index)])
    result = empty(shape, value.dtype)
    result.valid = tuple(region)
    result.write(result.valid_window(), value.data[tuple(index)], None if mask is None else mask[tuple(index)])
    return result


def join_halves(halves: Sequence[ArrayValue], split: int) -> ArrayValue:
    """The tile whose halves two lanes hold."""
    axis = (split - 1) % 2
    first, second = halves
    if second.valid[axis] and first.valid[axis] != first.shape[axis]:
        raise OutOfBoundsError(
            f"the lanes' halves do not abut: lane 0 has {first.valid[axis]} of {first.shape[axis]} valid on axis {axis}"
        )
    data = np.concatenate([first.data, second.data], axis)
    masks = [defined_elements(h) for h in halves]
    mask = None
    if any(m is not None for m in masks):
        whole = [np.ones(h.shape, np.bool_) if m is None else m for h, m in zip(halves, masks, strict=False)]
        mask = np.concatenate(whole, axis)
    region = [max(a, b) for a, b in zip(first.valid, second.valid, strict=False)]
    region[axis] = first.valid[axis] + second.valid[axis]
    return fresh(data, mask, region)
