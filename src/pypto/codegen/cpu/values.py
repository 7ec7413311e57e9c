"""The values of a kernel while its C++ is written: parameters, scalars, arrays in the arena, and the open group of
row-wise operations."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ...analysis.buffer_names import BufferNames
from ...analysis.callees import Callees
from ...ir.dtype import DataType
from ...ir.expr import Call, ConstInt, MakeTuple, Var
from ...ir.program import Function
from ...ir.span import Span
from ...ir.traversal import walk
from ...ir.type import ScalarType, ShapedType, TensorType
from ..scalar_expressions import ScalarExpressions, scalar_type
from .arrays import Array, Size, Unsupported, is_narrow_float, offset, packed, storage, working
from .lifetimes import Lifetimes
from .rows import Node, RowGroup, RowPrinter

_ALIGNMENT = 64


class Writer:
    """Lines of C++, indented."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._depth = 1

    def line(self, text: str) -> None:
        indent = "" if text.startswith("#") else "    " * self._depth
        self.lines.append(indent + text)

    def open(self, header: str) -> None:
        self.line(header)
        self._depth += 1

    def middle(self, text: str) -> None:
        self._depth -= 1
        self.open(text)

    def close(self, footer: str = "}") -> None:
        self._depth -= 1
        self.line(footer)


class Values:
    """What all parts of the generator share."""

    def __init__(self, function: Function, name: str) -> None:
        self._function = function
        self._name = name
        self._out = Writer()
        self._names = BufferNames(function, Callees([function]))
        self._lives = Lifetimes(function, self._names)
        # Array, Node of the open group, the text of a scalar, or a list of these
        self._values: dict[Var, Any] = {}
        self._group: RowGroup | None = None
        self._group_vars: dict[Var, Node] = {}
        self._group_end = 0  # the last statement that is all in the group
        self._position = 0
        self._count = 0
        self._places: list[Span] = []
        self._busy: dict[object, tuple[int, int, int]] = {}  # root in the arena: begin, end, last position of use
        self._scratch = 0
        self._expressions = ScalarExpressions(self._scalar, self._scalar_call, self._checked_operand)
        self._span = function.span

    # --- parameters ---------------------------------------------------------------------------------------------------

    def _parameters(self) -> None:
        out = self._out
        tensors = sum(isinstance(p.type, TensorType) for p in self._function.params)
        slot, at = 0, tensors
        for param in self._function.params:
            if isinstance(param.type, TensorType):
                self._tensor_parameter(param, slot)
                slot += 1
            elif isinstance(param.type, ScalarType):
                kind = scalar_type(param.type.dtype)
                name = self._fresh(param)
                out.line(f"const {kind} {name} = {_from_bits(param.type.dtype, f'args[{at}]')}; (void){name};")
                self._values[param] = name
                at += 1
            else:
                raise Unsupported(f"a parameter of type {param.type}")
        self._check_apart()
        out.line("const PtoLocalContext& local = *reinterpret_cast<const PtoLocalContext*>(args[48]); (void)local;")

    def _fall_back_if(self, condition: str, what: str) -> None:
        self._out.line(f'if ({condition}) return pto::fall_back({self._name}_instead, args, "{what}");')

    def _check_apart(self) -> None:
        """What is written is no part of another argument: accesses to these are not kept in order."""
        tensors = [p for p in self._function.params if isinstance(p.type, TensorType)]
        pairs = [
            f"pto::may_meet({self._array(a).pointer}_t, {self._array(b).pointer}_t)"
            for i, a in enumerate(tensors)
            for b in tensors[i + 1 :]
            if self._lives.is_ever_written(a) or self._lives.is_ever_written(b)
        ]
        if pairs:
            self._fall_back_if(" || ".join(pairs), "a tensor that is written and overlaps another argument")

    def _tensor_parameter(self, param: Var, slot: int) -> None:
        kind: Any = param.type
        view = kind.tensor_view
        if view is not None and (view.layout.name != "ND" or view.valid_shape):
            raise Unsupported(f"a tensor parameter with a view {view}")
        element = storage(kind.dtype)
        name = self._fresh(param)
        out = self._out
        rank = len(kind.shape)
        out.line(f"const ChipTensor& {name}_t = *reinterpret_cast<const ChipTensor*>(args[{slot}]);")
        out.line(f"{element}* const {name} = {name}_t.data<{element}>();")
        if rank:
            # What rests on neighbours in memory is generated for the usual case alone.
            at = rank - 1
            unusual = f"{name}_t.strides[{at}] != 1 && {name}_t.shapes[{at}] != 1"
            self._fall_back_if(unusual, "a tensor whose last dimension is not contiguous in memory")
        shape: list[Size] = []
        valid: list[Size] = []
        for axis, extent in enumerate(kind.shape):
            if type(extent) is ConstInt:
                shape.append(extent.value)
                valid.append(extent.value)
                continue
            text = f"{name}_n{axis}"
            out.line(f"const int64_t {text} = {name}_t.shapes[{axis}]; (void){text};")
            shape.append(text)
            # Under one name for all tensors that have it, so that their rows are known to be the same.
            known = self._values.setdefault(extent, text) if type(extent) is Var else text
            valid.append(known if isinstance(known, str) else text)
        strides: list[Size] = []
        for axis in range(rank - 1):
            text = f"{name}_s{axis}"
            out.line(f"const int64_t {text} = {name}_t.strides[{axis}]; (void){text};")
            strides.append(text)
        strides += [1] * (rank > 0)
        self._values[param] = Array(kind.dtype, name, shape, strides, valid, param)

    # --- names and scalars --------------------------------------------------------------------------------------------

    def _fresh(self, var: Var | None = None) -> str:
        self._count += 1
        hint = "" if var is None else "".join(c if c.isalnum() and c.isascii() else "_" for c in var.name_hint)
        return f"k{self._count}_{hint}" if hint else f"k{self._count}"

    def _number(self) -> int:
        self._count += 1
        return self._count

    def _scalar(self, var: Var) -> str:
        found = self._values.get(var)
        if not isinstance(found, str):
            raise Unsupported(f"the scalar '{var.name_hint}'")
        return found

    def _scalar_call(self, call: Call) -> str:
        name = call.op.name.partition(".")[2]
        if name == "get_block_idx":
            return "static_cast<int64_t>(local.block_idx)"
        if name == "get_block_num":
            return "static_cast<int64_t>(local.block_num)"
        if name == "dim":
            array = self._array(call.args[0])
            return str(array.shape[constant(call.args[1]) % len(array.shape)])
        if name == "read":
            return self._read(call)
        raise Unsupported(call.op.name)

    def _read(self, call: Call) -> str:
        source = self._array(call.args[0])
        self._flush()
        at = self._element_offset(call, source)
        return f"pto::load_element({source.pointer} + {at})"

    def _element_offset(self, call: Call, array: Array) -> Size:
        """Where an element stands, behind a check of its index."""
        places = [self._index_name(p) for p in self._sizes(call.args[1])]
        if len(places) == 1 and len(array.shape) > 1:  # an index of the elements in their order
            if not array.is_packed:
                raise Unsupported(f"{call.op.name} by one index")
            return places[0]
        for axis, (place, extent) in enumerate(zip(places, array.shape, strict=True)):
            self._fail_if(
                self._outside(place, extent),
                f'pto::bad_index("{call.op.name}", {{place}}, {axis}, {place}, {extent})',
            )
        return offset(places, array.strides)

    def _text(self, e: Any) -> str:
        return self._expressions.text(e)

    def _size(self, e: Any) -> Size:
        value = number(e)
        return self._text(e) if value is None else value

    def _sizes(self, e: Any) -> list[Size]:
        items = e.elements if type(e) is MakeTuple else e
        return [self._size(item) for item in items]

    def _rows_of(self, extents: Sequence[Any]) -> list[Size]:
        """The shape of what is never in memory as a whole: the number of its rows may be known at run time only."""
        return [*self._sizes(extents[:-1]), *(static(e) for e in extents[-1:])]

    def _index_name(self, size: Size) -> Size:
        """An index as a name, so that what is long is computed once."""
        if isinstance(size, int) or size.isidentifier():
            return size
        name = self._fresh()
        self._out.line(f"const int64_t {name} = {size};")
        return name

    def _scalar_assign(self, var: Var, value: Any) -> None:
        if any(type(node) is Call and node.op.name.endswith(".read") for node in walk(value)):
            self._flush()  # it reads memory that the group may write
        self._values[var] = self._scalar_name(value, var.type.dtype, var)  # type: ignore[attr-defined]

    def _scalar_name(self, value: Any, dtype: DataType, var: Var | None = None) -> str:
        """A name for the value that an expression has here."""
        name = self._fresh(var)
        self._out.line(f"const {scalar_type(dtype)} {name} = {self._rounded(self._text(value), dtype)}; (void){name};")
        return name

    @staticmethod
    def _rounded(text: str, dtype: DataType) -> str:
        return f"pto::rounded<{storage(dtype)}>({text})" if is_narrow_float(dtype) else text

    def _check_place(self, e: Any) -> int:
        """The number that the messages of a check begin with."""
        self._places.append(e.span if e.span.is_valid() else self._span)
        return len(self._places) - 1

    def _checked_operand(self, e: Any, what: str) -> list[Any]:
        place = self._check_place(e)
        if what == "shift":
            return ["pto::kernel_distance(", e.right, f", {place})"]
        if what == "power":
            return ["pto::kernel_exponent(", e.right, f", {place})"]
        if what == "finite":
            return ["pto::kernel_finite(", e.operand, f', "{e.dtype}", {place})']
        return ["pto::kernel_divisor(", e.right, f', "{what}", {place})']

    # --- checks -------------------------------------------------------------------------------------------------------

    @staticmethod
    def _outside(index: Size, extent: Size) -> str:
        """A condition, or "" where an index is sure to be inside."""
        if isinstance(index, int) and isinstance(extent, int):
            return "" if 0 <= index < extent else "true"
        return f"{index} < 0 || {index} >= {extent}"

    def _fail_if(self, condition: str, failure: str) -> None:
        """Throw at run time. ``failure`` has a place for the number that stands for the line of the program."""
        if not condition:
            return
        number_ = len(self._places)
        self._places.append(self._span)
        self._out.line(f"if ({condition}) {failure.format(place=number_)};")

    def _check(self, op: str, places: Sequence[Size], reach: Sequence[Size], extents: Sequence[Size]) -> None:
        for axis, (place, size, extent) in enumerate(zip(places, reach, extents, strict=True)):
            if isinstance(place, int) and isinstance(size, int) and isinstance(extent, int):
                if place >= 0 and place + size <= extent:
                    continue
            elif place == 0 and size == extent:
                continue
            end = f"{place} + {size}" if place != 0 else f"{size}"
            low = "" if isinstance(place, int) and place >= 0 else f"{place} < 0 || "
            self._fail_if(
                f"{low}{end} > {extent}",
                f'pto::out_of_range("{op}", {{place}}, {axis}, {place}, {size}, {extent})',
            )

    # --- values -------------------------------------------------------------------------------------------------------

    def _value(self, e: Any) -> Any:
        found = self._values.get(e)
        if found is None:
            raise Unsupported(f"the value of '{getattr(e, 'name_hint', e)}'")
        return found

    def _array(self, e: Any) -> Array:
        """An operand in memory."""
        value = self._value(e)
        if type(value) is Node:
            self._flush()
            value = self._value(e)
        if type(value) is not Array:
            raise Unsupported(f"'{getattr(e, 'name_hint', e)}', which is no array")
        return value

    def _arrays(self, *operands: Any) -> list[Array]:
        """Operands in memory; no group is open then."""
        for e in operands:
            self._array(e)
        self._flush()
        return [self._array(e) for e in operands]

    def _valid(self, var: Var) -> list[Size]:
        """The part of a value that is meant, by its type."""
        return self._sizes(var.type.valid_extents)  # type: ignore[attr-defined]

    def _buffer(self, var: Var, first: int | None = None) -> Array:
        """Memory for a value."""
        kind: Any = var.type
        shape = [static(e) for e in kind.shape]
        array = self._memory(kind.dtype, shape, self._lives.memory(var), first)
        return array.seen(valid=self._valid(var))

    def _memory(self, dtype: DataType, shape: Sequence[int], last: int, first: int | None = None) -> Array:
        count = 1
        for extent in shape:
            count *= extent
        bits = max(8, dtype.get_bit())
        size = max(-(-count * bits // 8 // _ALIGNMENT) * _ALIGNMENT, _ALIGNMENT)
        start = self._position if first is None else first
        if self._group is not None:
            start = min(start, self._group.position)
        self._busy = {root: item for root, item in self._busy.items() if item[2] >= start}
        at = 0
        for begin, end, _ in sorted(self._busy.values()):
            if at + size <= begin:
                break
            at = max(at, end)
        root = object()
        self._busy[root] = (at, at + size, max(last, self._position))
        self._scratch = max(self._scratch, at + size)
        name = self._fresh()
        element = storage(dtype)
        self._out.line(f"{element}* const {name} = reinterpret_cast<{element}*>(arena + {at}); (void){name};")
        return Array(dtype, name, shape, packed(shape), shape, root)

    def _is_own(self, array: Array) -> bool:
        """Whether an array stands in the arena."""
        return array.root in self._busy

    def _keep(self, array: Array, last: int) -> None:
        """Memory of the arena is needed until ``last``, too."""
        begin, end, until = self._busy[array.root]
        self._busy[array.root] = (begin, end, max(last, until))

    # --- groups -------------------------------------------------------------------------------------------------------

    def _open(self, rows: tuple[Size, ...]) -> RowGroup:
        """The group with these rows: the open one, or a new one."""
        if self._group is not None and self._group.rows != rows:
            self._flush()
        if self._group is None:
            self._group = RowGroup(rows, self._position)
        return self._group

    def _flush(self) -> None:
        """Print the open group. What others need of it goes to memory."""
        group = self._group
        if group is None:
            return
        for var, node in list(self._group_vars.items()):
            if self._lives.last(var) > self._group_end and type(self._values[var]) is Node:
                # All names of the value may lie in this memory.
                names = [other for other, its in self._group_vars.items() if its is node]
                last = max(self._lives.memory(other) for other in names)
                kind: Any = var.type
                array = self._memory(kind.dtype, [static(e) for e in kind.shape], last, group.position)
                array = array.seen(valid=self._valid(var))
                self._store_node(group, node, array)
                for other in names:
                    self._values[other] = array
        here = self._position

        def row_buffer(width: int, dtype: DataType) -> Array:
            return self._memory(dtype, [width], here)

        RowPrinter(group, self._out, row_buffer).print()
        self._group = None
        self._group_vars = {}

    def _store_node(self, group: RowGroup, value: Any, target: Array, atomic: bool = False) -> None:
        shape = target.shape
        narrow = value.narrow if type(value) is Node else shape[-1] == 1
        columns = value.columns if type(value) is Node else value.valid[-1]
        width = shape[-1]
        assert isinstance(width, int)
        group.add(
            Node(
                self._number(), target.dtype, [value], columns, width,
                text="{0}", target=target, narrow=narrow, atomic=atomic,
            )
        )  # fmt: skip

    def _add_node(self, var: Var, rows: tuple[Size, ...], operands: Sequence[Any], **more: Any) -> Node:
        group = self._open(rows)
        kind: Any = var.type
        width = static(kind.shape[-1])
        node = group.add(
            Node(self._number(), kind.dtype, operands, more.pop("columns"), width, narrow=width == 1, **more)
        )
        self._values[var] = node
        self._group_vars[var] = node
        self._group_end = self._position
        return node

    def _prepare(
        self, rows: tuple[Size, ...], operands: Iterable[Any], columns: Size | None = None, fold: bool = False
    ) -> None:
        """Close the open group unless it has these rows and nothing else stands in the way of one more operation.

        ``columns``: how many it has, for an operation that is not a reduction.
        """
        group = self._group
        if group is None:
            return
        values = [self._values.get(o) if isinstance(o, Var) else o for o in operands]
        stale = any(
            type(v) is Array and any(s.target is not None and s.target.root is v.root for s in group.stores)
            for v in values
        )
        # A value with one row for all has to be there as a whole before others read it again and again.
        if group.rows != rows or stale or (group.in_place is not None and (fold or group.in_place != columns)):
            self._flush()

    def _copy(self, var: Var, array: Array) -> None:
        """Bind a variable to a copy of an array."""
        self._values[var] = self._duplicate(array, self._lives.memory(var))

    def _duplicate(self, array: Array, last: int | None = None) -> Array:
        """A copy of an array, needed until ``last``, by default in this statement only."""
        rows = tuple(array.valid[:-1])
        self._prepare(rows, [array], array.valid[-1])
        group = self._open(rows)
        shape = [static(n) for n in array.shape]
        made = self._memory(array.dtype, shape, self._position if last is None else last, group.position)
        target = made.seen(valid=array.valid)
        self._store_node(group, array, target)
        self._flush()
        return target

    def _operand(self, e: Any, dtype: DataType) -> Any:
        """An operand of a row-wise operation whose arithmetic runs in ``dtype``."""
        if isinstance(e.type, ShapedType):
            value = self._value(e)
            if type(value) is Array:
                storage(value.dtype)
            return value
        text = self._text(e)
        if dtype.is_float_:
            text = f"static_cast<float>({text})"
            return f"pto::rounded<pto::fp16>({text})" if dtype is DataType.FP16 else text
        return f"static_cast<{working(dtype)}>({text})"


def _from_bits(dtype: DataType, text: str) -> str:
    """A scalar parameter: floats travel by their bits."""
    if is_narrow_float(dtype):
        kind = storage(dtype)
        return f"pto::load_element(reinterpret_cast<const {kind}*>(&{text}))"
    return f"from_u64<{working(dtype)}>(static_cast<uint64_t>({text}))"


def number(e: Any) -> int | None:
    """The value of a constant."""
    return int(e.value) if type(e) is ConstInt else e if type(e) is int else None


def constant(e: Any) -> int:
    """The value of what must be constant."""
    value = number(e)
    if value is None:
        raise Unsupported("an operand that is not constant")
    return value


def static(e: Any) -> int:
    """An extent that must be constant."""
    value = number(e)
    if value is None:
        raise Unsupported("a tile or tensor whose shape is not constant")
    return value


__all__ = ["Values", "Writer", "constant", "number", "scalar_type", "static"]
