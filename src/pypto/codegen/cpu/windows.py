"""Windows, other shapes of the same elements, copies and stores."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...ir.dtype import DataType
from ...ir.enums import PadValue, TensorLayout
from ...ir.expr import Call, MakeTuple, Var
from ...ir.type import TileType
from ...ops.pad import pad_number
from ..cpp_expressions import integer
from .arrays import Array, Size, Unsupported, offset, packed, storage, times, working
from .rows import Node
from .values import Values, constant, static


class Windows(Values):
    """Operations that move or name elements."""

    # --- views --------------------------------------------------------------------------------------------------------

    def _load(self, var: Var, call: Call) -> None:
        source = self._array(call.args[0])
        if len(call.args[2].elements) != len(source.shape):  # type: ignore[attr-defined]
            raise Unsupported(f"{call.op.name} of another rank")
        shape = self._rows_of(var.type.shape)  # type: ignore[attr-defined]
        array = self._window(call, source, call.args[1], shape, self._valid(var), call.args[3:4])
        self._bind_part(var, array)

    def _slice(self, var: Var, call: Call) -> None:
        source = self._array(call.args[0])
        window = [static(e) for e in call.args[1].elements]  # type: ignore[attr-defined]
        dropped = {constant(e) for e in call.args[4].elements} if len(call.args) > 4 else set()  # type: ignore[attr-defined]
        exact = call.op.name.startswith("tile.")
        requested = call.args[3:4]
        if dropped:
            given = requested[0].elements if isinstance(requested[0], MakeTuple) else ()
            valid = self._sizes(given) if given else list(window)
            array = self._window(call, source, call.args[2], window, valid, requested, exact)
            array = array.seen(
                shape=[n for i, n in enumerate(window) if i not in dropped],
                strides=[n for i, n in enumerate(array.strides) if i not in dropped],
            )
            shape = [static(e) for e in var.type.shape]  # type: ignore[attr-defined]
            missing = len(shape) - len(array.shape)
            array = array.seen(shape=shape, strides=[*([1] * missing), *array.strides], valid=self._valid(var))
        else:
            array = self._window(call, source, call.args[2], window, self._valid(var), requested, exact)
        self._values[var] = array

    def _extract(self, var: Var, call: Call) -> None:
        source = self._array(call.args[0])
        shape = [static(e) for e in var.type.shape]  # type: ignore[attr-defined]
        places = MakeTuple([call.args[1], call.args[2]])
        self._bind_part(var, self._window(call, source, places, shape, self._valid(var), (), True))

    def _window(
        self,
        call: Call,
        source: Array,
        offsets: Any,
        shape: Sequence[Size],
        valid: Sequence[Size],
        requested: Sequence[Any] = (),
        exact: bool = False,
    ) -> Array:
        """A part of an array. ``exact``: all of it has to be there, and not only what is valid."""
        op = call.op.name
        places = [self._index_name(s) for s in self._sizes(offsets)]
        if len(places) != len(source.shape) or len(shape) > len(places):
            raise Unsupported(f"{op} of another rank")
        missing = len(places) - len(shape)
        asked = list(valid)
        if requested and isinstance(requested[0], MakeTuple) and requested[0].elements:
            asked = [self._index_name(s) for s in self._sizes(requested[0])]
            for axis, (size, extent) in enumerate(zip(asked, shape, strict=True)):
                if not isinstance(size, int):
                    self._fail_if(
                        f"{size} < 0 || {size} > {extent}",
                        f'pto::bad_extent("{op}", {{place}}, "valid_shape[{axis}] =", {size}, {extent})',
                    )
        reach: list[Size] = [*([1] * missing), *(shape if exact else asked)]
        if call.kwargs.get("clamp"):
            for axis, place in enumerate(places):
                if not isinstance(place, int):
                    self._fail_if(
                        f"{place} < 0",
                        f'pto::out_of_range("{op}", {{place}}, {axis}, {place}, {reach[axis]}, {source.shape[axis]})',
                    )
        else:
            # A size that was found to be no larger than its dimension fits where all of the dimension does.
            fits = [
                isinstance(place, int) and isinstance(extent, int) and isinstance(size, int) and place + size <= extent
                for place, extent, size in zip(places[missing:], source.shape[missing:], shape, strict=True)
            ]
            for axis, fit in enumerate(fits):
                if fit and requested:
                    reach[missing + axis] = shape[axis]
            self._check(op, places, reach, source.shape)
        return self._part(source, places, shape, valid)

    def _part(self, source: Array, places: Sequence[Size], shape: Sequence[Size], valid: Sequence[Size]) -> Array:
        at = offset(places, source.strides)
        pointer = source.pointer
        if at != 0:
            pointer = self._fresh()
            element = storage(source.dtype)
            self._out.line(f"{element}* const {pointer} = {source.pointer} + {at};")
        missing = len(places) - len(shape)
        return source.seen(pointer=pointer, shape=shape, strides=source.strides[missing:], valid=valid)

    def _bind_part(self, var: Var, array: Array) -> None:
        """A name for a copy of a part of something. The part itself will do unless either is written later."""
        if self._lives.is_written(array.root, var, self._position) or self._lives.changes(var, self._position):
            self._copy(var, array)
        else:
            self._values[var] = array

    def _same(self, var: Var, call: Call) -> None:
        """Another name: a move between memories of the device, a valid shape."""
        value = self._value(call.args[0])
        kind: Any = var.type
        moved = call.op.name == "tile.move"
        changes = moved and self._lives.changes(var, self._position)
        if type(value) is Node:
            same = self._sizes(kind.valid_extents) == self._sizes(call.args[0].type.valid_extents)  # type: ignore[attr-defined]
            if same and not changes and value.dtype is kind.dtype:
                self._values[var] = value
                self._group_vars[var] = value
                self._group_end = self._position
                return
            value = self._array(call.args[0])
        if value.dtype is not kind.dtype:
            raise Unsupported(f"{call.op.name} that changes the element type")
        if call.op.name.endswith("set_validshape"):
            for axis, (what, size) in enumerate(zip(("rows", "cols"), self._sizes(call.args[1:3]), strict=True)):
                if not isinstance(size, int):
                    self._fail_if(
                        f"{size} < 0 || {size} > {value.shape[axis]}",
                        f'pto::bad_extent("{call.op.name}", {{place}}, "valid_{what}", {size}, {value.shape[axis]})',
                    )
        value = value.seen(valid=self._valid(var))
        if changes:
            self._copy(var, value)
        else:
            self._values[var] = value

    def _reshape(self, var: Var, call: Call) -> None:
        value = self._array(call.args[0])
        shape = [static(e) for e in var.type.shape]  # type: ignore[attr-defined]
        strides = _reshaped_strides(value, shape)
        if strides is None:
            # Elements that have no place in the valid region are not copied, so nothing else can be known of it.
            if value.valid != value.shape:
                raise Unsupported(f"{call.op.name} of a part")
            value = self._duplicate(value, self._lives.memory(var))
            strides = packed(shape)
        self._values[var] = value.seen(shape=shape, strides=strides, valid=self._valid(var))

    def _transpose_view(self, var: Var, call: Call) -> None:
        value = self._array(call.args[0])
        rank = len(value.shape)
        self._values[var] = self._exchanged(var, value, rank - 2, rank - 1)

    def _transpose(self, var: Var, call: Call) -> None:
        value = self._array(call.args[0])
        rank = len(value.shape)
        a, b = (constant(e) % rank for e in call.args[1:3])
        view = self._exchanged(var, value, a, b)
        if call.op.name.startswith("tensor."):
            self._values[var] = view
        elif rank == 2 and value.valid == value.shape:
            self._flush()
            target = self._buffer(var)
            self._out.line(
                f"pto::transpose({target.pointer}, {value.pointer}, {value.strides[0]}, {value.strides[1]}, "
                f"{value.shape[0]}, {value.shape[1]});"
            )
            self._values[var] = target
        else:
            self._copy(var, view)

    def _exchanged(self, var: Var, value: Array, a: int, b: int) -> Array:
        order = list(range(len(value.shape)))
        order[a], order[b] = order[b], order[a]
        return value.seen(
            shape=[value.shape[i] for i in order],
            strides=[value.strides[i] for i in order],
            valid=self._valid(var),
        )

    # --- new values ---------------------------------------------------------------------------------------------------

    def _create(self, var: Var, call: Call) -> None:
        if call.kwargs.get("layout", TensorLayout.ND) is not TensorLayout.ND:
            raise Unsupported(f"{call.op.name} with a layout")
        value = call.kwargs.get("init_value")
        target = self._values[var] = self._buffer(var)
        if value is not None:
            text = self._expressions.floating(float(value))
            self._out.line(
                f"pto::fill({target.pointer}, {_count(target)}, static_cast<{working(target.dtype)}>({text}));"
            )

    def _full(self, var: Var, call: Call) -> None:
        valid = self._valid(var)
        dtype: DataType = var.type.dtype  # type: ignore[attr-defined]
        value = self._operand(call.args[1], dtype)
        rows = tuple(valid[:-1])
        self._prepare(rows, (), valid[-1])
        self._add_node(var, rows, [value], columns=valid[-1], text="{0}")

    def _ci(self, var: Var, call: Call) -> None:
        self._flush()
        target = self._buffer(var)
        start = self._text(call.args[0])
        step = "-1" if call.kwargs.get("descending") else "1"
        self._out.line(f"pto::ramp({target.pointer}, {_count(target)}, {start}, {step});")
        self._values[var] = target

    def _concat(self, var: Var, call: Call) -> None:
        first, second = self._arrays(*call.args[:2])
        target = self._buffer(var)
        for value, at in ((first, 0), (second, first.shape[1])):
            part = self._part(target, [0, at], value.shape, value.valid)
            self._store_array(value, part)
        self._values[var] = target

    def _store_array(self, value: Array, target: Array) -> None:
        """Copy the valid part of an array."""
        self._flush()
        self._store_node(self._open(tuple(value.valid[:-1])), value, target)
        self._flush()

    # --- padding ------------------------------------------------------------------------------------------------------

    def _fillpad(self, var: Var, call: Call) -> None:
        (value,) = self._arrays(call.args[0])
        if call.op.name.endswith("_inplace"):
            self._owned(value, call.args[0])
            target = value
        else:
            target = self._buffer(var)
            self._store_array(value, target.seen(valid=value.valid))
        pad = pad_number(call.kwargs.get("pad_value", PadValue.zero), target.dtype)
        text = self._expressions.floating(pad) if target.dtype.is_float_ else integer(pad)
        inside = value.valid
        *rows, width = target.shape
        indices: list[str] = []
        for axis, extent in enumerate(rows):
            indices.append(f"i{axis}")
            self._out.open(f"for (int64_t i{axis} = 0; i{axis} < {extent}; ++i{axis}) {{")
        within = " && ".join(f"i{axis} < {n}" for axis, n in enumerate(inside[:-1])) or "true"
        at = offset([*indices, 0], target.strides)
        self._out.line(
            f"pto::fill_from({target.pointer} + {at}, {within} ? {inside[-1]} : 0, {width}, {target.strides[-1]}, "
            f"static_cast<{working(target.dtype)}>({text}));"
        )
        for _ in rows:
            self._out.close()
        self._values[var] = target.seen(valid=self._valid(var))

    @staticmethod
    def _owned(array: Array, target: Any) -> None:
        """A tile that is changed in place must be the kernel's own."""
        if isinstance(array.root, Var) and isinstance(target.type, TileType):
            raise Unsupported(f"the tile '{target.name_hint}', which lies in a tensor")

    # --- stores -------------------------------------------------------------------------------------------------------

    def _store(self, var: Var | None, call: Call) -> None:
        args: Sequence[Any] = call.args
        if call.op.name == "tile.store":
            source, offsets, into = args[:3]
        else:
            into, source, offsets = args[:3]
        target = self._array(into)
        kind: Any = source.type
        valid = self._sizes(kind.valid_extents)
        shape = self._rows_of(kind.shape)
        rank = len(target.shape)
        flattened = args[3].elements if call.op.name == "tile.store" and len(args) > 3 else ()
        if flattened:
            self._store_flattened(call, source, [static(e) for e in flattened], target, offsets)
        elif len(shape) > rank:
            raise Unsupported(f"{call.op.name} of a higher rank")
        else:
            missing = rank - len(shape)
            full = [*([1] * missing), *shape]
            reach = full if call.op.name == "tile.assemble" else [*([1] * missing), *valid]
            places = [self._index_name(s) for s in self._sizes(offsets)]
            self._check(call.op.name, places, reach, target.shape)
            window = self._part(target, places, full, reach)
            window = window.seen(shape=shape, strides=window.strides[missing:], valid=valid)
            self._owned(target, into)
            self._put(source, window, bool(call.kwargs.get("atomic")))
        self._group_end = self._position
        if var is not None:
            self._values[var] = target.seen(valid=self._valid(var))

    def _store_flattened(self, call: Call, source: Any, shape: list[int], target: Array, offsets: Any) -> None:
        """A tile whose leading dimensions were merged, to the window that it was made of."""
        value = self._array(source)
        if value.valid != value.shape:
            raise Unsupported(f"{call.op.name} of a part of a flattened tile")
        strides = _reshaped_strides(value, shape)
        if strides is None:
            raise Unsupported(f"{call.op.name} of a flattened tile with gaps")
        value = value.seen(shape=shape, strides=strides, valid=shape)
        places = [self._index_name(s) for s in self._sizes(offsets)]
        self._check(call.op.name, places, shape, target.shape)
        window = self._part(target, places, shape, shape)
        if call.kwargs.get("atomic"):
            raise Unsupported(f"{call.op.name} of a flattened tile that adds")
        if value.root is window.root:
            raise Unsupported(f"{call.op.name} of a flattened tile into itself")
        self._store_array(value, window)

    def _put(self, source: Any, window: Array, atomic: bool = False) -> None:
        """Write a value to memory."""
        rows = tuple(window.valid[:-1])
        value = self._value(source)
        if type(value) is Array and value.root is window.root and not value.same_place(window):
            value = self._duplicate(value)
        group = self._group
        columns = value.columns if type(value) is Node else value.valid[-1]
        if group is not None:
            in_place = any(array.root is window.root for array in group.reads)
            # Each element may be read and written in its turn, if nothing needs it again.
            safe = window.shape[-1] != 1 and group.is_plain(columns)
            clash = in_place and not (
                safe and all(array.same_place(window) for array in group.reads if array.root is window.root)
            )
            # What the group has written, or is about to write elsewhere in this memory, has to be there first.
            roots = (window.root, value.root if type(value) is Array else window.root)
            clash = clash or any(
                s.target is not None and any(s.target.root is root for root in roots) for s in group.stores
            )
            if group.rows != rows or clash or (group.in_place is not None and group.in_place != columns):
                self._flush()
                value = self._value(source) if type(value) is Node else value
            elif in_place:
                group.in_place = columns
        if type(value) is Array and value.root is window.root:
            if value.same_place(window) and not atomic:
                return
            self._flush()
        self._store_node(self._open(rows), value, window, atomic)

    def _write(self, var: Var | None, call: Call) -> None:
        """One element."""
        (target,) = self._arrays(call.args[0])
        self._owned(target, call.args[0])
        value = self._text(call.args[2])
        at = self._element_offset(call, target)
        kind = working(target.dtype)
        self._out.line(f"pto::store_element({target.pointer} + {at}, static_cast<{kind}>({value}));")
        if var is not None:
            self._values[var] = target

    def _gather_row(self, var: Var | None, call: Call) -> None:
        """A window of a tensor into a window of a tile."""
        args: Sequence[Any] = call.args
        target, source = self._arrays(args[0], args[1])
        self._owned(target, args[0])
        size = self._sizes(args[5] if len(args) > 5 else args[4])
        if target.root is source.root or any(not isinstance(n, int) for n in size):
            raise Unsupported(f"{call.op.name} of a size that is not constant")
        source = self._rectangle(call, "src", source, args[3], size)
        if call.kwargs.get("transpose"):
            source = source.seen(
                shape=[*size[:-2], size[-1], size[-2]],
                strides=[*source.strides[:-2], source.strides[-1], source.strides[-2]],
                valid=[*size[:-2], size[-1], size[-2]],
            )
        window = self._rectangle(call, "destination", target, args[2], source.shape)
        self._store_array(source, window)
        if var is not None:
            self._values[var] = target

    def _rectangle(self, call: Call, what: str, array: Array, offsets: Any, size: Sequence[Size]) -> Array:
        places = [self._index_name(s) for s in self._sizes(offsets)]
        for axis, (place, n, extent) in enumerate(zip(places, size, array.shape, strict=True)):
            if isinstance(place, int) and isinstance(n, int) and isinstance(extent, int) and 0 <= place <= extent - n:
                continue
            self._fail_if(
                f"{place} < 0 || {place} + {n} > {extent}",
                f'pto::bad_rows("{call.op.name}: gather_row", {{place}}, "{what}", {axis}, {place}, {n}, {extent})',
            )
        return self._part(array, places, size, size)


def _count(array: Array) -> Size:
    count: Size = 1
    for n in array.shape:
        count = times(count, n)
    return count


def _reshaped_strides(value: Array, shape: Sequence[int]) -> Sequence[Size] | None:
    """The strides of an array under another shape, or None if it has none."""
    if value.is_packed:
        return packed(shape)
    rows = [(s, t) for s, t in zip(value.shape, value.strides, strict=True) if s != 1]
    if [s for s, _ in rows] != [s for s in shape if s != 1]:
        return None
    steps = iter(rows)
    return [1 if s == 1 else next(steps)[1] for s in shape]


__all__ = ["Windows"]
