"""One kernel as a C++ function with the ABI of the task runtime.

Tensors stay where they are; a tile that is only loaded is read in place. Values that operations make are fused (see
:mod:`.rows`) or stand in an arena, whose places are decided here and reused when a value is not needed any more.
Operations that need more than a row (products, transpositions, reductions of columns) are calls of templates
(``native/kernel/``).

:func:`kernel_source` raises :class:`.arrays.Unsupported` where something has no native form: the interpreter runs such
a kernel. Bounds are checked as the interpreter checks them, with the same words.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import msgspec

from ...analysis.buffer_names import BufferNames
from ...analysis.callees import Callees
from ...ir.dtype import DataType
from ...ir.expr import Call, ConstInt, Expr, GlobalVar, MakeTuple, Var
from ...ir.program import Function
from ...ir.span import Span
from ...ir.stmt import (
    AssignStmt,
    EvalStmt,
    ForStmt,
    IfStmt,
    ReturnStmt,
    SeqStmts,
    Stmt,
    WhileStmt,
    YieldStmt,
)
from ...ir.traversal import walk
from ...ir.type import ScalarType, ShapedType, TensorType
from ...ops.definition import OpDef
from ...ops.registry import REGISTRY
from ..cpp_expressions import HELPERS, CppExpressions
from .arrays import Array, Size, Unsupported, is_narrow_float, offset, packed, storage, working
from .lifetimes import Lifetimes
from .rows import Node, RowGroup, RowPrinter, is_narrow

_ALIGNMENT = 64
# Kernels of which the text does not say all, or that exchange data with others while they run.
_OPAQUE = ("external_source", "deferred_completion_waiter", "split_aiv", "dual_aiv_dispatch")


class KernelSource(msgspec.Struct, frozen=True):
    """``text``: the C++ function ``name``, and ``<name>_instead``, a pointer to one for arguments with unusual strides,
    which the host sets. ``scratch``: bytes of its arena; ``places``: what errors name by number."""

    name: str
    text: str
    scratch: int
    places: list[Span]
    helpers: list[str]


def kernel_source(function: Function, name: str) -> KernelSource:
    """The C++ of a kernel. Raises :class:`.arrays.Unsupported`."""
    for key in _OPAQUE:
        if function.attrs.get(key):
            raise Unsupported(f"a kernel with {key}")
    return _Kernel(function, name).source()


class _Writer:
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


class _Carry:
    """Where a loop or branch puts what its body yields: an array, the name of a scalar, or nothing for tensors."""

    __slots__ = ("array", "name")

    def __init__(self, array: Array | None = None, name: str = "") -> None:
        self.array = array
        self.name = name


class _Kernel:
    def __init__(self, function: Function, name: str) -> None:
        self._function = function
        self._name = name
        self._out = _Writer()
        self._names = BufferNames(function, Callees([function]))
        self._lives = Lifetimes(function, self._names)
        self._values: dict[Var, Any] = {}  # Array, Node of the open group, or the text of a scalar
        self._group: RowGroup | None = None
        self._group_vars: dict[Var, Node] = {}
        self._group_end = 0  # the last statement that is all in the group
        self._position = 0
        self._count = 0
        self._places: list[Span] = []
        self._busy: list[tuple[int, int, int]] = []  # arena: begin, end, last position of use
        self._scratch = 0
        self._carries: list[list[_Carry]] = []
        self._expressions = CppExpressions(self._scalar, self._scalar_call)
        self._span = function.span

    def source(self) -> KernelSource:
        self._parameters()
        self._stmt(self._function.body)
        self._flush()
        helpers = sorted(self._expressions.helpers)
        head = [
            f"PTO_INSTEAD({self._name}_instead)",
            f"PTO_EXPORT void {self._name}(int64_t* args) {{",
        ]
        if self._scratch:
            head.append(f"    char* const arena = pto::kernel_arena({self._scratch});")
        text = "\n".join([*head, *self._out.lines, "}"])
        return KernelSource(self._name, text, self._scratch, self._places, helpers)

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
                kind = _scalar_type(param.type.dtype)
                name = self._fresh(param)
                out.line(f"const {kind} {name} = from_u64<{kind}>(static_cast<uint64_t>(args[{at}])); (void){name};")
                self._values[param] = name
                at += 1
            else:
                raise Unsupported(f"a parameter of type {param.type}")
        out.line("const PtoLocalContext& local = *reinterpret_cast<const PtoLocalContext*>(args[48]); (void)local;")

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
            out.line(f"if ({unusual}) return pto::fall_back({self._name}_instead, args);")
        shape: list[Size] = []
        for axis, extent in enumerate(kind.shape):
            if type(extent) is ConstInt:
                shape.append(extent.value)
                continue
            text = f"{name}_n{axis}"
            out.line(f"const int64_t {text} = {name}_t.shapes[{axis}]; (void){text};")
            shape.append(text)
            if type(extent) is Var and extent not in self._values:
                self._values[extent] = text
        strides: list[Size] = []
        for axis in range(rank - 1):
            text = f"{name}_s{axis}"
            out.line(f"const int64_t {text} = {name}_t.strides[{axis}]; (void){text};")
            strides.append(text)
        strides += [1] * (rank > 0)
        self._values[param] = Array(kind.dtype, name, shape, strides, shape, param)

    # --- names and scalars --------------------------------------------------------------------------------------------

    def _fresh(self, var: Var | None = None) -> str:
        self._count += 1
        hint = "" if var is None else "".join(c if c.isalnum() and c.isascii() else "_" for c in var.name_hint)
        return f"k{self._count}_{hint}" if hint else f"k{self._count}"

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
            axis = _constant(call.args[1])
            return str(array.shape[axis])
        if name == "read":
            return self._read(call)
        raise Unsupported(call.op.name)

    def _text(self, e: Expr) -> str:
        return self._expressions.text(e)

    def _size(self, e: Any) -> Size:
        value = _number(e)
        return self._text(e) if value is None else value

    def _sizes(self, e: Any) -> list[Size]:
        items = e.elements if type(e) is MakeTuple else e
        return [self._size(item) for item in items]

    def _index_name(self, size: Size) -> Size:
        """An index as a name, so that what is long is computed once."""
        if isinstance(size, int) or size.isidentifier():
            return size
        name = self._fresh()
        self._out.line(f"const int64_t {name} = {size};")
        return name

    # --- statements ---------------------------------------------------------------------------------------------------

    def _stmt(self, stmt: Any) -> None:
        cls = type(stmt)
        if cls is SeqStmts:
            for inner in stmt.stmts:
                self._stmt(inner)
            return
        self._position = self._lives.position.get(stmt, self._position)
        if stmt.span.is_valid():
            self._span = stmt.span
        if cls is AssignStmt:
            self._assign(stmt.var, stmt.value)
        elif cls is EvalStmt:
            self._assign(None, stmt.expr)
        elif cls is ForStmt:
            self._for(stmt)
        elif cls is WhileStmt:
            self._while(stmt)
        elif cls is IfStmt:
            self._if(stmt)
        elif cls is YieldStmt:
            self._yield(stmt)
        elif cls is ReturnStmt:
            self._flush()
        else:
            raise Unsupported(f"a statement of kind {cls.__name__}")

    def _assign(self, var: Var | None, value: Any) -> None:
        if isinstance(value, Var):
            if var is not None:
                self._values[var] = self._value(value)
                if value in self._group_vars:
                    self._group_vars[var] = self._group_vars[value]
            return
        if var is not None and isinstance(var.type, ScalarType):
            self._scalar_assign(var, value)
            return
        if type(value) is not Call or type(value.op) is GlobalVar:
            raise Unsupported(f"an expression of kind {type(value).__name__}")
        self._call(var, value)

    def _scalar_assign(self, var: Var, value: Any) -> None:
        if any(type(node) is Call and node.op.name.endswith(".read") for node in walk(value)):
            self._flush()  # it reads memory that the group may write
        kind = _scalar_type(var.type.dtype)  # type: ignore[attr-defined]
        name = self._fresh(var)
        self._out.line(f"const {kind} {name} = {self._text(value)}; (void){name};")
        self._values[var] = name

    def _call(self, var: Var | None, call: Call) -> None:
        name = call.op.name
        base = name.partition(".")[2]
        definition = REGISTRY.get(name)
        handler = _HANDLERS.get(base) if name.startswith(("tile.", "tensor.")) else None
        if handler is not None:
            handler(self, var, call)
        elif definition is not None and definition.element and var is not None:
            self._element(var, call, definition)
        elif definition is not None and definition.fold and var is not None:
            self._fold(var, call, definition)
        else:
            raise Unsupported(name)

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

    def _valid(self, var: Var) -> list[Size]:
        """The part of a value that is meant, by its type."""
        return self._sizes(var.type.valid_extents)  # type: ignore[attr-defined]

    def _buffer(self, var: Var, first: int | None = None) -> Array:
        """Memory for a value."""
        kind: Any = var.type
        shape = [_static(e) for e in kind.shape]
        array = self._memory(kind.dtype, shape, self._lives.memory(var), first)
        return Array(kind.dtype, array.pointer, shape, array.strides, self._valid(var), array.root)

    def _memory(self, dtype: DataType, shape: Sequence[int], last: int, first: int | None = None) -> Array:
        count = 1
        for extent in shape:
            count *= extent
        bits = max(8, dtype.get_bit())
        size = -(-count * bits // 8 // _ALIGNMENT) * _ALIGNMENT
        start = self._position if first is None else first
        if self._group is not None:
            start = min(start, self._group.position)
        self._busy = [item for item in self._busy if item[2] >= start]
        at = 0
        for begin, end, _ in sorted(self._busy):
            if at + size <= begin:
                break
            at = max(at, end)
        self._busy.append((at, at + size, last))
        self._scratch = max(self._scratch, at + size)
        name = self._fresh()
        element = storage(dtype)
        self._out.line(f"{element}* const {name} = reinterpret_cast<{element}*>(arena + {at}); (void){name};")
        return Array(dtype, name, shape, packed(shape), shape, object())

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
                array = self._buffer(var, group.position)
                self._store_node(group, node, array)
                for other, its in self._group_vars.items():
                    if its is node:
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

    def _number(self) -> int:
        self._count += 1
        return self._count

    def _add_node(self, var: Var, rows: tuple[Size, ...], operands: Sequence[Any], **more: Any) -> None:
        group = self._open(rows)
        kind: Any = var.type
        width = _static(kind.shape[-1])
        node = group.add(
            Node(self._number(), kind.dtype, operands, more.pop("columns"), width, narrow=width == 1, **more)
        )
        self._values[var] = node
        self._group_vars[var] = node
        self._group_end = self._position

    # --- element by element -------------------------------------------------------------------------------------------

    def _element(self, var: Var, call: Call, definition: OpDef) -> None:
        valid = self._valid(var)
        text = definition.element
        used = [i for i in range(len(call.args)) if f"{{{i}}}" in text]
        dtype: DataType = var.type.dtype  # type: ignore[attr-defined]
        self._prepare(tuple(valid[:-1]), [call.args[i] for i in used])
        operands = [self._operand(call.args[i], dtype) for i in used]
        places = {i: f"{{{n}}}" for n, i in enumerate(used)}
        text = text.format(*(places.get(i, "") for i in range(len(call.args))))
        self._add_node(var, tuple(valid[:-1]), operands, columns=valid[-1], text=text)

    def _prepare(self, rows: tuple[Size, ...], operands: Iterable[Any]) -> None:
        """Close the open group unless it has these rows and nothing else stands in the way."""
        group = self._group
        if group is None:
            return
        values = [self._values.get(e) for e in operands if isinstance(e, Var)]
        stale = any(
            type(v) is Array and any(s.target is not None and s.target.root is v.root for s in group.stores)
            for v in values
        )
        # A value with one row for all has to be there as a whole before others read it again and again.
        if group.rows != rows or stale:
            self._flush()

    def _prepare_array(self, rows: tuple[Size, ...], array: Array) -> None:
        group = self._group
        if group is not None:
            stale = any(s.target is not None and s.target.root is array.root for s in group.stores)
            if group.rows != rows or stale:
                self._flush()

    def _operand(self, e: Any, dtype: DataType) -> Any:
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

    def _cast(self, var: Var | None, call: Call) -> None:
        assert var is not None
        valid = self._valid(var)
        source: DataType = call.args[0].type.dtype  # type: ignore[attr-defined]
        target: DataType = var.type.dtype  # type: ignore[attr-defined]
        self._prepare(tuple(valid[:-1]), call.args[:1])
        value = self._operand(call.args[0], source)
        text = f"pto::converted<{storage(target)}, {storage(source)}, {int(call.kwargs['mode'])}>({{0}})"
        self._add_node(var, tuple(valid[:-1]), [value], columns=valid[-1], text=text)

    def _fold(self, var: Var, call: Call, definition: OpDef) -> None:
        kind: Any = call.args[0].type
        rank = len(kind.shape)
        name = call.op.name
        axis = call.kwargs.get("axis", -1) if name.startswith("tensor.") else (-1 if ".row_" in name else 0)
        axis %= rank
        if axis != rank - 1:
            self._fold_columns(var, call, definition, axis)
            return
        if not call.kwargs.get("keep_dim", True):
            raise Unsupported(f"{name} without keep_dim")
        valid = self._valid(var)
        self._prepare(tuple(valid[:-1]), call.args[:1])
        value = self._operand(call.args[0], kind.dtype)
        if is_narrow(value):
            self._add_node(var, tuple(valid[:-1]), [value], columns=1, text="{0}")
        else:
            self._add_node(var, tuple(valid[:-1]), [value], columns=1, fold=definition.fold)

    def _fold_columns(self, var: Var, call: Call, definition: OpDef, axis: int) -> None:
        kind: Any = call.args[0].type
        if axis != len(kind.shape) - 2 or len(kind.shape) != 2:
            raise Unsupported(f"{call.op.name} along axis {axis} of {len(kind.shape)}")
        source = self._array(call.args[0])
        self._flush()
        target = self._buffer(var)
        self._out.line(
            f"pto::fold_columns<pto::Fold::{definition.fold}>({target.pointer}, {source.pointer}, "
            f"{source.strides[0]}, {source.strides[1]}, {source.valid[0]}, {source.valid[1]});"
        )
        self._values[var] = target

    # --- windows ------------------------------------------------------------------------------------------------------

    def _load(self, var: Var | None, call: Call) -> None:
        assert var is not None
        source = self._array(call.args[0])
        if call.kwargs.get("transpose") or call.kwargs.get("clamp"):
            raise Unsupported(f"{call.op.name} with transpose or clamp")
        shape = [_static(e) for e in var.type.shape]  # type: ignore[attr-defined]
        array = self._window(call.op.name, source, call.args[1], shape, self._valid(var))
        self._bind_view(var, array)

    def _slice(self, var: Var | None, call: Call) -> None:
        assert var is not None
        if len(call.args) > 4:
            raise Unsupported(f"{call.op.name} with drop_dims")
        if call.kwargs.get("clamp") or call.kwargs.get("pad_value"):
            raise Unsupported(f"{call.op.name} with clamp or pad")
        source = self._array(call.args[0])
        shape = [_static(e) for e in var.type.shape]  # type: ignore[attr-defined]
        array = self._window(call.op.name, source, call.args[2], shape, self._valid(var))
        self._bind_view(var, array, view=call.op.name.startswith("tensor."))

    def _window(self, op: str, source: Array, offsets: Any, shape: Sequence[int], valid: Sequence[Size]) -> Array:
        places = [self._index_name(s) for s in self._sizes(offsets)]
        if len(places) != len(source.shape) or len(shape) > len(places):
            raise Unsupported(f"{op} of another rank")
        missing = len(places) - len(shape)
        reach: list[Size] = [*([1] * missing), *valid]
        self._check(op, places, reach, source.shape)
        at = offset(places, source.strides)
        pointer = source.pointer
        if at != 0:
            pointer = self._fresh()
            element = storage(source.dtype)
            self._out.line(f"{element}* const {pointer} = {source.pointer} + {at};")
        return Array(source.dtype, pointer, shape, source.strides[missing:], valid, source.root)

    def _check(self, op: str, places: Sequence[Size], reach: Sequence[Size], extents: Sequence[Size]) -> None:
        for axis, (place, size, extent) in enumerate(zip(places, reach, extents, strict=True)):
            if isinstance(place, int) and isinstance(size, int) and isinstance(extent, int):
                if place < 0 or place + size > extent:
                    raise Unsupported(f"{op}, which leaves its operand")
                continue
            number = len(self._places)
            self._places.append(self._span)
            self._out.line(
                f"if ({place} < 0 || {place} + {size} > {extent}) "
                f'pto::out_of_range("{op}", {number}, {axis}, {place}, {size}, {extent});'
            )

    def _bind_view(self, var: Var, array: Array, view: bool = False) -> None:
        """A name for a part of something. A tile is a copy: it must not change when its source is written."""
        if not view and self._lives.is_written(array.root, var, self._position):
            self._copy(var, array)
        else:
            self._values[var] = array

    def _copy(self, var: Var, array: Array) -> None:
        rows = tuple(array.valid[:-1])
        self._prepare_array(rows, array)
        group = self._open(rows)
        target = self._buffer(var, group.position)
        target = Array(target.dtype, target.pointer, target.shape, target.strides, array.valid, target.root)
        self._store_node(group, array, target)
        self._flush()
        self._values[var] = target

    def _same(self, var: Var | None, call: Call) -> None:
        """Another name: a move between memories of the device, a valid shape."""
        assert var is not None
        value = self._value(call.args[0])
        if type(value) is Node:
            if self._sizes(var.type.valid_extents) == self._sizes(call.args[0].type.valid_extents):  # type: ignore[attr-defined]
                self._values[var] = value
                self._group_vars[var] = value
                self._group_end = self._position
                return
            value = self._array(call.args[0])
        if value.dtype is not var.type.dtype:  # type: ignore[attr-defined]
            raise Unsupported(f"{call.op.name} that changes the element type")
        self._values[var] = Array(value.dtype, value.pointer, value.shape, value.strides, self._valid(var), value.root)

    def _reshape(self, var: Var | None, call: Call) -> None:
        assert var is not None
        value = self._array(call.args[0])
        shape = [_static(e) for e in var.type.shape]  # type: ignore[attr-defined]
        if value.valid != value.shape and [s for s in value.valid if s != 1] != [s for s in self._valid(var) if s != 1]:
            raise Unsupported(f"{call.op.name} of a part")
        if not value.is_packed:
            rows = [s for s in value.shape if s != 1]
            if rows != [s for s in shape if s != 1]:
                self._copy(var, value)
                value = self._values[var]
                self._values[var] = Array(
                    value.dtype, value.pointer, shape, packed(shape), self._valid(var), value.root
                )
                return
            steps = iter([t for s, t in zip(value.shape, value.strides, strict=True) if s != 1])
            strides: list[Size] = [1 if s == 1 else next(steps) for s in shape]
        else:
            strides = list(packed(shape))
        self._values[var] = Array(value.dtype, value.pointer, shape, strides, self._valid(var), value.root)

    def _transpose_view(self, var: Var | None, call: Call) -> None:
        assert var is not None
        value = self._array(call.args[0])
        if len(value.shape) != 2:
            raise Unsupported(f"{call.op.name} of rank {len(value.shape)}")
        self._values[var] = Array(
            value.dtype, value.pointer, value.shape[::-1], value.strides[::-1], self._valid(var), value.root
        )

    def _transpose(self, var: Var | None, call: Call) -> None:
        assert var is not None
        value = self._array(call.args[0])
        rank = len(value.shape)
        a, b = (_constant(e) % rank for e in call.args[1:3])
        order = list(range(rank))
        order[a], order[b] = order[b], order[a]
        view = Array(
            value.dtype,
            value.pointer,
            [value.shape[i] for i in order],
            [value.strides[i] for i in order],
            self._valid(var),
            value.root,
        )
        if rank == 2 and value.valid == value.shape:
            self._flush()
            target = self._buffer(var)
            self._out.line(
                f"pto::transpose({target.pointer}, {value.pointer}, {value.strides[0]}, {value.strides[1]}, "
                f"{value.shape[0]}, {value.shape[1]});"
            )
            self._values[var] = target
        else:
            self._copy(var, view)

    def _create(self, var: Var | None, call: Call) -> None:
        assert var is not None
        self._values[var] = self._buffer(var)

    def _full(self, var: Var | None, call: Call) -> None:
        assert var is not None
        valid = self._valid(var)
        dtype: DataType = var.type.dtype  # type: ignore[attr-defined]
        value = self._operand(call.args[1], dtype)
        self._prepare(tuple(valid[:-1]), ())
        self._add_node(var, tuple(valid[:-1]), [value], columns=valid[-1], text="{0}")

    # --- stores -------------------------------------------------------------------------------------------------------

    def _store(self, var: Var | None, call: Call) -> None:
        args: Sequence[Any] = call.args
        if call.op.name == "tile.store":
            source, offsets, into = args[:3]
            if len(args) > 3:
                raise Unsupported("tile.store of a flattened tile")
        else:
            into, source, offsets = args[:3]
        target = self._array(into)
        atomic = bool(call.kwargs.get("atomic"))
        kind: Any = source.type
        valid = self._sizes(kind.valid_extents)
        shape = [_static(e) for e in kind.shape]
        if len(shape) < len(target.shape):
            shape = [1] * (len(target.shape) - len(shape)) + shape
        if len(kind.shape) > len(target.shape):
            raise Unsupported(f"{call.op.name} of a higher rank")
        full = [*([1] * (len(target.shape) - len(valid))), *valid]
        if call.op.name == "tile.assemble":
            full = list(shape)
        window = self._window(call.op.name, target, offsets, shape, full)
        missing = len(shape) - len(kind.shape)
        window = Array(window.dtype, window.pointer, shape[missing:], window.strides[missing:], valid, window.root)
        self._put(source, window, atomic)
        self._group_end = self._position
        if var is not None:
            self._values[var] = target

    def _put(self, source: Any, window: Array, atomic: bool = False) -> None:
        """Write a value to memory."""
        rows = tuple(window.valid[:-1])
        value = self._value(source)
        if type(value) is Array and value.root is window.root and not value.same_place(window):
            copied = Var("copy", source.type, source.span)
            self._lives.adopt(copied, self._position)
            self._copy(copied, value)
            value = self._values[copied]
        group = self._group
        if group is not None:
            clash = any(
                array.root is window.root and (group.has_folds() or not array.same_place(window))
                for array in group.reads
            ) or any(s.target is not None and s.target.root is window.root for s in group.stores)
            if group.rows != rows or clash:
                self._flush()
                value = self._value(source)
        self._store_node(self._open(rows), value, window, atomic)

    def _read(self, call: Call) -> str:
        source = self._array(call.args[0])
        self._flush()
        places = self._sizes(call.args[1])
        if len(places) == 1 and len(source.shape) > 1:  # an index of the elements in their order
            if not source.is_packed:
                raise Unsupported(f"{call.op.name} by one index")
            at: Size = places[0]
        else:
            at = offset(places, source.strides)
            self._check(call.op.name, [self._index_name(p) for p in places], [1] * len(places), source.shape)
        return f"pto::load_element({source.pointer} + {at})"

    # --- products -----------------------------------------------------------------------------------------------------

    def _matmul(self, var: Var | None, call: Call) -> None:
        assert var is not None
        base = call.op.name.partition(".")[2]
        accumulates = base.endswith("_acc")
        args: Sequence[Any] = call.args
        first = 1 if accumulates else 0
        for e in args[: first + 2]:
            self._array(e)
        self._flush()
        acc = self._array(args[0]) if accumulates else None
        a, b = self._array(args[first]), self._array(args[first + 1])
        adds = "false"
        if accumulates:  # unless a condition says that it is the first product
            adds = f"!({self._text(args[3])})" if len(args) > 3 else "true"
        if len(a.shape) != 2 or len(b.shape) != 2:
            raise Unsupported(f"{call.op.name} of rank {len(a.shape)}")
        if call.kwargs.get("a_trans"):
            a = _exchanged(a)
        if call.kwargs.get("b_trans"):
            b = _exchanged(b)
        result: DataType = var.type.dtype  # type: ignore[attr-defined]
        if a.dtype is not b.dtype or (a.dtype, result) not in _PRODUCTS:
            raise Unsupported(f"{call.op.name} to {result}")
        if acc is None:
            target = self._buffer(var)
        elif self._lives.last(args[0]) <= self._position and not isinstance(acc.root, Var):
            target = acc  # nobody reads the sum so far again
        else:
            self._copy(var, acc)
            target = self._values[var]
        self._out.line(
            f"pto::matmul({target.pointer}, {target.strides[0]}, {a.pointer}, {a.strides[0]}, {a.strides[1]}, "
            f"{b.pointer}, {b.strides[0]}, {b.strides[1]}, {a.valid[0]}, {b.valid[1]}, {a.valid[1]}, "
            f"{adds});"
        )
        self._values[var] = Array(
            target.dtype, target.pointer, target.shape, target.strides, self._valid(var), target.root
        )

    # --- control flow -------------------------------------------------------------------------------------------------

    def _enter_carries(self, stmt: Any) -> list[_Carry]:
        carries = []
        for arg in stmt.iter_args:
            if isinstance(arg.type, ScalarType):
                kind = _scalar_type(arg.type.dtype)
                name = self._fresh(arg)
                self._out.line(f"{kind} {name} = {self._text(arg.initValue)};")
                self._values[arg] = name
                carries.append(_Carry(name=name))
            elif isinstance(arg.type, TensorType) and self._names.name(arg) in self._function.params:
                self._values[arg] = self._array(arg.initValue)
                carries.append(_Carry())
            elif isinstance(arg.type, ShapedType):
                last = max(self._lives.end_of(stmt), self._lives.memory(arg))
                carries.append(_Carry(self._carried(arg, last)))
            else:
                raise Unsupported(f"a carry of type {arg.type}")
        return carries

    def _carried(self, arg: Any, last: int) -> Array:
        """Memory that holds a carry, with its initial value."""
        shape = [_static(e) for e in arg.type.shape]
        made = self._memory(arg.type.dtype, shape, last)
        valid = self._valid(arg)
        target = Array(made.dtype, made.pointer, shape, made.strides, valid, made.root)
        self._put(arg.initValue, target)
        self._values[arg] = target
        return target

    def _for(self, stmt: ForStmt) -> None:
        carries = self._enter_carries(stmt)
        self._flush()
        start, stop, step = (self._text(e) for e in (stmt.start, stmt.stop, stmt.step))
        name = self._fresh(stmt.loop_var)
        sign = _number(stmt.step)
        if sign is None or sign == 0:
            raise Unsupported("a loop whose step is not constant")
        self._values[stmt.loop_var] = name
        if sign > 0 and self._expressions.at_least_zero(stmt.start):
            self._expressions.not_negative.add(stmt.loop_var)
        self._out.open(f"for (int64_t {name} = {start}; {name} {'<' if sign > 0 else '>'} {stop}; {name} += {step}) {{")
        self._body(stmt, stmt.body, carries)
        self._out.close()
        self._leave(stmt, carries)

    def _while(self, stmt: WhileStmt) -> None:
        carries = self._enter_carries(stmt)
        self._flush()
        self._out.open(f"while ({self._text(stmt.condition)}) {{")
        self._body(stmt, stmt.body, carries)
        self._out.close()
        self._leave(stmt, carries)

    def _body(self, stmt: Any, body: Stmt, carries: list[_Carry]) -> None:
        self._carries.append(carries)
        self._stmt(body)
        self._flush()
        self._carries.pop()

    def _leave(self, stmt: Any, carries: list[_Carry]) -> None:
        self._position = self._lives.end_of(stmt)
        for var, arg, carry in zip(stmt.return_vars, stmt.iter_args, carries, strict=True):
            self._values[var] = carry.name or carry.array or self._values[arg]

    def _if(self, stmt: IfStmt) -> None:
        self._flush()
        carries = []
        for var in stmt.return_vars:
            if isinstance(var.type, ScalarType):
                name = self._fresh(var)
                self._out.line(f"{_scalar_type(var.type.dtype)} {name}{{}};")
                carries.append(_Carry(name=name))
            elif isinstance(var.type, TensorType) and self._names.name(var) in self._function.params:
                carries.append(_Carry())
            else:
                made = self._buffer(var)
                carries.append(_Carry(made))
        self._out.open(f"if ({self._text(stmt.condition)}) {{")
        self._body(stmt, stmt.then_body, carries)
        if stmt.else_body is not None:
            self._out.middle("} else {")
            self._body(stmt, stmt.else_body, carries)
        self._out.close()
        self._position = self._lives.end_of(stmt)
        for var, carry in zip(stmt.return_vars, carries, strict=True):
            if carry.array is None and not carry.name:
                self._values[var] = self._values[self._names.name(var)]  # type: ignore[index]
            else:
                self._values[var] = carry.name or carry.array

    def _yield(self, stmt: YieldStmt) -> None:
        carries = self._carries[-1]
        values: list[tuple[Any, _Carry]] = list(zip(stmt.value, carries, strict=True))
        # All values first, then all carries: an exchange must not read what it has written.
        assigned = []
        for value, carry in values:
            if carry.name:
                text = self._text(value)
                if text != carry.name:
                    kept = self._fresh()
                    self._out.line(f"const auto {kept} = {text};")
                    assigned.append((carry.name, kept))
        arrays = [(value, carry.array) for value, carry in values if carry.array is not None]
        moved: list[tuple[Any, Array]] = []
        targets = [array for _, array in arrays]
        for value, array in arrays:
            known = self._value(value)
            if type(known) is Array:
                if known.root is array.root:
                    continue
                if any(known.root is other.root for other in targets):
                    copied = Var("copy", value.type, value.span)
                    self._lives.adopt(copied, self._position)
                    self._copy(copied, known)
                    value = copied
            moved.append((value, array))
        for i, (value, array) in enumerate(moved):
            self._put(value, array)
            if self._lives.last(value) <= self._position and all(value is not other for other, _ in moved[i + 1 :]):
                self._group_vars.pop(value, None)  # nobody else needs it
        self._flush()
        for name, kept in assigned:
            self._out.line(f"{name} = {kept};")


def _exchanged(array: Array) -> Array:
    return Array(array.dtype, array.pointer, array.shape[::-1], array.strides[::-1], array.valid[::-1], array.root)


def _number(e: Any) -> int | None:
    return int(e.value) if type(e) is ConstInt else e if type(e) is int else None


def _constant(e: Any) -> int:
    value = _number(e)
    if value is None:
        raise Unsupported("an operand that is not constant")
    return value


def _static(e: Any) -> int:
    value = _number(e)
    if value is None:
        raise Unsupported("a tile or tensor whose shape is not constant")
    return value


def _scalar_type(dtype: DataType) -> str:
    return "float" if is_narrow_float(dtype) else working(dtype)


_PRODUCTS = {
    (DataType.FP32, DataType.FP32),
    (DataType.FP16, DataType.FP32),
    (DataType.BF16, DataType.FP32),
    (DataType.INT8, DataType.INT32),
}
_HANDLERS: dict[str, Callable[[_Kernel, Var | None, Call], None]] = {
    "load": _Kernel._load,
    "slice": _Kernel._slice,
    "extract": _Kernel._slice,
    "move": _Kernel._same,
    "set_validshape": _Kernel._same,
    "reshape": _Kernel._reshape,
    "transpose_view": _Kernel._transpose_view,
    "transpose": _Kernel._transpose,
    "create": _Kernel._create,
    "full": _Kernel._full,
    "cast": _Kernel._cast,
    "store": _Kernel._store,
    "assemble": _Kernel._store,
    "matmul": _Kernel._matmul,
    "matmul_acc": _Kernel._matmul,
}
del _HANDLERS["extract"]  # its operands stand in another order

__all__ = ["HELPERS", "KernelSource", "kernel_source"]
