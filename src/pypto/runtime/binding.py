"""The arguments of a call as run-time values that work in place, and the way back.

Checked here: number and names of the arguments, element types, ranks, extents, equal dynamic extents, read-only
outputs, overlap. Every error names the parameter.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from typing import Any

from .._lazy import np
from ..ir import expr as x
from ..ir.enums import ParamDirection
from ..ir.program import Function
from ..ops.numpy_types import numpy_dtype
from ..ops.values import ArrayValue, Buffer
from .arrays import as_torch, host_view, is_array, is_torch_tensor, zeros
from .device_tensor import DeviceTensor
from .scalar_args import scalar_value
from .scalars import BINARY, UNARY
from .signature import ParamInfo


class _Omitted:
    def __repr__(self) -> str:
        return "OMITTED"


OMITTED: Any = _Omitted()  # stands for an output that the call allocates


class BoundCall:
    """Arguments made ready. ``given``: what the caller passed or what was allocated for it, by position; ``values``:
    the same as run-time values; ``return_style``: outputs were left out."""

    __slots__ = ("_back", "given", "return_style", "values")

    def __init__(self, given: list[Any], values: list[Any], back: list[Any], return_style: bool) -> None:
        self.given = given
        self.values = values
        self.return_style = return_style
        self._back = back

    @property
    def like_torch(self) -> bool:
        """Whether results are torch tensors: an argument is one."""
        return _any_torch(self.given)

    def copy_back(self) -> None:
        """Write what was computed in packed copies into the caller's strided arrays."""
        for target, packed in self._back:
            target[...] = packed

    def result(self, values: Sequence[Any]) -> Any:
        """What a call in return style gives: the values that the program returns, as the caller's kind of array."""
        found = [self._returned(value) for value in values]
        return found[0] if len(found) == 1 else tuple(found)

    def names_outputs(self, values: Sequence[Any], infos: Sequence[ParamInfo]) -> bool:
        """Whether every returned value is the whole of an argument that the program may write.

        The caller has the result then. Which of its inputs a program gave back, the caller can't know.
        """
        found = [self._position(value) for value in values]
        return all(i is not None and infos[i].direction is not ParamDirection.In for i in found)

    def _position(self, value: Any) -> int | None:
        if type(value) is not ArrayValue:
            return None
        for i, own in enumerate(self.values):
            if own is value:
                return i
        for i, own in enumerate(self.values):
            if type(own) is ArrayValue and _same_view(own.data, value.data):
                return i
        return None

    def _returned(self, value: Any) -> Any:
        if type(value) is not ArrayValue:
            return value
        position = self._position(value)
        if position is not None:
            return self.given[position]
        return as_torch(value.data) if self.like_torch else value.data


def _any_torch(given: Sequence[Any]) -> bool:
    return any(is_torch_tensor(g) or (isinstance(g, DeviceTensor) and str(g.dtype).startswith("torch.")) for g in given)


def _same_view(a: Any, b: Any) -> bool:
    return bool(
        a.shape == b.shape
        and a.dtype == b.dtype
        and a.strides == b.strides
        and a.__array_interface__["data"][0] == b.__array_interface__["data"][0]
    )


# --- which argument is which ------------------------------------------------------------------------------------------


def place_arguments(
    infos: Sequence[ParamInfo], args: Sequence[Any], kwargs: Mapping[str, Any], has_return: bool, who: str
) -> tuple[list[Any], bool]:
    """Arguments by position, :data:`OMITTED` for outputs that the call allocates; and whether it is in return style."""
    outputs = [i for i, info in enumerate(infos) if info.direction is ParamDirection.Out]
    count, given = len(infos), len(args) + len(kwargs)
    in_place = given == count
    if not in_place and not (has_return and outputs and given == count - len(outputs)):
        forms = f"{count} (in-place)"
        if has_return and outputs:
            forms += f" or {count - len(outputs)} (return)"
        names = [info.name for info in infos]
        raise TypeError(f"{who} expects {forms} arguments, got {given}. Parameters: {names}")
    order = list(range(count)) if in_place else [i for i in range(count) if i not in outputs]
    placed = [OMITTED] * count
    for i, value in zip(order, args, strict=False):
        placed[i] = value
    position = {info.name: i for i, info in enumerate(infos)}
    for name, value in kwargs.items():
        i = position.get(name, -1)
        if i < 0:
            raise TypeError(f"{who} has no parameter '{name}'. Parameters: {list(position)}")
        if placed[i] is not OMITTED:
            raise TypeError(f"{who} got two values for parameter '{name}'")
        placed[i] = value
    for i in order:
        if placed[i] is OMITTED:
            raise TypeError(f"{who} is missing a value for parameter '{infos[i].name}'. Parameters: {list(position)}")
    return placed, not in_place


def bind_call(
    function: Function,
    infos: Sequence[ParamInfo],
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    has_return: bool,
    allow_overlap: bool = False,
    who: str = "CompiledProgram",
) -> BoundCall:
    """The arguments of a call of ``function`` as run-time values."""
    given, return_style = place_arguments(infos, args, kwargs, has_return, who)
    if return_style:
        like_torch = _any_torch(given)
        for i, value in enumerate(given):
            if value is OMITTED:
                given[i] = _allocate(infos[i], like_torch)
    values: list[Any] = [None] * len(given)
    views: dict[int, Any] = {}
    extents: dict[Any, tuple[int, str, int]] = {}
    for i, (info, value) in enumerate(zip(infos, given, strict=True)):
        if info.is_scalar:
            values[i] = scalar_value(info, value)
        else:
            view = views[i] = _checked_view(info, value)
            if view.shape != info.shape:  # it has dynamic extents
                _check_extents(info, function.params[i].type, view.shape, extents)
    if extents:
        _check_derived_extents(function, infos, views, extents)
    back: list[Any] = []
    for i, buffer_view in _buffers(infos, views, back, allow_overlap).items():
        values[i] = buffer_view
    return BoundCall(given, values, back, return_style)


def _allocate(info: ParamInfo, like_torch: bool) -> Any:
    assert info.shape is not None
    if any(n < 0 for n in info.shape):
        raise ValueError(
            f"Cannot allocate output '{info.name}': its shape {list(info.shape)} contains dynamic dimensions. "
            "Pass all tensors explicitly"
        )
    return zeros(info.shape, info.dtype, like_torch)


# --- checks -----------------------------------------------------------------------------------------------------------


def _checked_view(info: ParamInfo, value: Any) -> Any:
    """The argument as a NumPy view of the parameter's element type and rank."""
    if not isinstance(value, DeviceTensor) and not is_array(value):
        if hasattr(value, "__dlpack_device__") and not isinstance(value, type):
            host_view(value, info.name, False)  # says which device it is on
        raise TypeError(
            f"Parameter '{info.name}' is a tensor; got {type(value).__name__}. Pass a torch.Tensor (host) or "
            "DeviceTensor (worker-resident). NumPy arrays are taken as well."
        )
    written = info.direction is not ParamDirection.In
    view = host_view(value, info.name, written)
    shape = info.shape
    assert shape is not None
    fits = view.dtype == numpy_dtype(info.dtype)
    if not fits or (view.shape != shape and not _matches(view.shape, shape)):
        raise TypeError(f"Parameter '{info.name}': expected {info.describe()}, got {tuple(view.shape)} {view.dtype}")
    return view


def _matches(actual: tuple[int, ...], wanted: tuple[int, ...]) -> bool:
    return len(actual) == len(wanted) and all(n in (-1, m) for n, m in zip(wanted, actual, strict=True))


def _check_extents(info: ParamInfo, kind: Any, shape: Sequence[int], known: dict[Any, tuple[int, str, int]]) -> None:
    """Dimensions that share a symbol have equal extents."""
    for axis, (extent, actual) in enumerate(zip(kind.shape, shape, strict=True)):
        if not isinstance(extent, x.Var):
            continue
        first = known.setdefault(extent, (actual, info.name, axis))
        if first[0] != actual:
            raise ValueError(
                f"dynamic dimension '{extent.name_hint}' is {first[0]} in {first[1]} (dim {first[2]}) "
                f"but {actual} in {info.name} (dim {axis})"
            )


def _check_derived_extents(
    function: Function, infos: Sequence[ParamInfo], views: Mapping[int, Any], known: dict[Any, tuple[int, str, int]]
) -> None:
    """Extents that are expressions of symbols hold for the symbols' values."""
    for i, view in views.items():
        shape = function.params[i].type.shape  # type: ignore[attr-defined]
        for axis, extent in enumerate(shape):
            if isinstance(extent, (x.ConstInt, x.Var)):
                continue
            wanted = extent_value(extent, {var: value for var, (value, *_) in known.items()})
            if wanted is not None and wanted != view.shape[axis]:
                raise ValueError(f"{infos[i].name} (dim {axis}) must be {wanted}, got {view.shape[axis]}")


def extent_value(extent: Any, known: Mapping[Any, int]) -> int | None:
    """The value of an extent; None where it needs something that no argument gives."""
    if isinstance(extent, x.ConstInt):
        return extent.value
    if isinstance(extent, x.Var):
        return known.get(extent)
    if isinstance(extent, x.BinaryExpr):
        left, right = extent_value(extent.left, known), extent_value(extent.right, known)
        return None if left is None or right is None else BINARY[type(extent)](left, right)
    if isinstance(extent, x.UnaryExpr):
        operand = extent_value(extent.operand, known)
        return None if operand is None else UNARY[type(extent)](operand, extent.dtype)
    return None


# --- storage ----------------------------------------------------------------------------------------------------------


def _buffers(
    infos: Sequence[ParamInfo], views: Mapping[int, Any], back: list[Any], allow_overlap: bool
) -> dict[int, ArrayValue]:
    """Each array in a buffer. Arguments that share memory share a buffer, so that tasks on them are ordered."""
    # The same array given twice is one value; ``written`` says whether any of the parameters is.
    first_of: dict[Any, int] = {}
    same_as: dict[int, int] = {}
    written: dict[int, bool] = {}
    spans: dict[int, tuple[int, int]] = {}
    for i, view in views.items():
        address = view.__array_interface__["data"][0]
        spans[i] = _span(view, address)
        key = (address, view.shape, view.strides, view.dtype)
        first = same_as[i] = first_of.setdefault(key, i)
        written[first] = written.get(first, False) or infos[i].direction is not ParamDirection.In
    groups = _overlaps(infos, views, written, spans, allow_overlap)
    made: dict[int, ArrayValue] = {}
    for i in written:
        view = data = views[i]
        if not (view.flags.c_contiguous and view.flags.aligned):
            data = np.array(view, order="C", copy=True)
            if written[i]:
                back.append((view, data))
        made[i] = ArrayValue(data, Buffer(data, infos[i].name, external=True))
    for members in groups:
        _share_buffer(infos, views, made, members, spans)
    return {i: made[same_as[i]] for i in views}


def _span(view: Any, address: int) -> tuple[int, int]:
    """The first byte address of a view, and the one behind its last."""
    if view.flags.c_contiguous:
        return address, address + view.nbytes
    low = high = address
    if view.size == 0:
        return low, low
    for n, stride in zip(view.shape, view.strides, strict=True):
        if stride < 0:
            low += (n - 1) * stride
        else:
            high += (n - 1) * stride
    return low, high + view.itemsize


def _overlaps(
    infos: Sequence[ParamInfo],
    views: Mapping[int, Any],
    written: Mapping[int, bool],
    spans: Mapping[int, tuple[int, int]],
    allow_overlap: bool,
) -> list[list[int]]:
    """Groups of different arrays that share memory, where at least one is written; an error unless allowed."""
    ordered = sorted((*spans[i], i) for i in written)
    group: dict[int, list[int]] = {}
    for k, (_, high, i) in enumerate(ordered):
        for m in range(k + 1, len(ordered)):
            low, _, j = ordered[m]
            if low >= high:
                break
            if not (written[i] or written[j]) or not _share(views[i], views[j]):
                continue
            first, second = min(i, j), max(i, j)
            which = f"parameters '{infos[first].name}' and '{infos[second].name}' overlap in memory"
            if not allow_overlap:
                name = infos[first if written[first] else second].name
                raise ValueError(
                    f"{which} and '{name}' is written. Pass separate arrays, or RunConfig(allow_overlap=True)"
                )
            if not (views[i].flags.c_contiguous and views[j].flags.c_contiguous):
                raise ValueError(f"{which} and are not both contiguous: such an overlap can't be kept")
            joined = [*group.get(i, [i]), *(m for m in group.get(j, [j]) if m not in group.get(i, [i]))]
            for member in joined:
                group[member] = joined
    return list({id(members): members for members in group.values()}.values())


def _share(a: Any, b: Any) -> bool:
    try:
        return bool(np.shares_memory(a, b, max_work=10_000))  # type: ignore[arg-type]  # NumPy takes any int
    except getattr(np, "exceptions", np).TooHardError:  # NumPy before 1.25 has it at its top
        return True  # not decided in reasonable time: they may


def _share_buffer(
    infos: Sequence[ParamInfo],
    views: Mapping[int, Any],
    made: dict[int, ArrayValue],
    members: Sequence[int],
    spans: Mapping[int, tuple[int, int]],
) -> None:
    """Put arrays that overlap in part into one buffer that spans them."""
    low, high = min(spans[m][0] for m in members), max(spans[m][1] for m in members)
    size = views[members[0]].itemsize
    even = all(views[m].itemsize == size and (spans[m][0] - low) % size == 0 for m in members)
    # The caller's arrays keep this memory alive for the length of the call.
    raw = np.frombuffer(memoryview((ctypes.c_ubyte * (high - low)).from_address(low)), np.uint8)
    base = raw.view(views[members[0]].dtype) if even else raw
    buffer = Buffer(base, infos[members[0]].name, external=True)
    for m in members:
        made[m] = ArrayValue(views[m], buffer)


__all__ = ["OMITTED", "BoundCall", "bind_call", "extent_value", "place_arguments"]
