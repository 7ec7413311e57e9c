"""Tensors that orchestration makes, views of tensors, single elements, and local arrays."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from ...analysis.constants import constant_int
from ...diag.errors import InternalError
from ...ir.dtype import DataType
from ...ir.enums import TensorLayout
from ...ir.expr import Call, ConstFloat, ConstInt, Expr, MakeTuple, Var
from ...ir.names import base_name
from ...ir.stmt import AssignStmt, Stmt
from ...ir.type import ArrayType, ScalarType
from ...ops.definition import Alias
from ...ops.registry import REGISTRY
from ...ops.transfer import layout_of
from ..cpp_expressions import float_literal, half_bits
from ..errors import CodegenError
from ..runtime_names import INVALID_ID, element_type, scalar_type
from ..text import Local
from .base import Base, ctype_of

_EXACT = 2**53  # integers up to here are exact in the floating-point attribute


class Tensors(Base):
    """Prints the builtins of the ``tensor`` and ``array`` families."""

    # --- created tensors ----------------------------------------------------------------------------------------------

    def creates_in_front(self, stmts: Sequence[Stmt]) -> set[Stmt]:
        """Allocate what a statement list creates, in front of the list; gives the statements that are done with.

        A tensor whose shape is computed in the list itself stays where it is.
        """
        group = [s for s in stmts if type(s) is AssignStmt and is_create(s.value)]
        group = [s for s in group if self.known(s.value.args[0])]  # type: ignore[attr-defined]
        size = self.runtime.max_allocations
        for first in range(0, len(group), size):
            self.allocate(group[first : first + size])
        return set(group)

    def allocate(self, group: Sequence[Any]) -> None:
        """One call of ``alloc_tensors``."""
        infos, names = [], []
        for stmt in group:
            self.out.place = stmt.span
            names.append(self.name_of(stmt.var))
            infos.append(self._create_info(stmt.value, names[-1]))
        made = self.names.helper(f"alloc_{self._next_allocation()}")
        outs = self.out.declare("TaskOutputTensors", made, f"alloc_tensors({', '.join(infos)})")
        for k, (stmt, name) in enumerate(zip(group, names, strict=True)):
            self.out.place = stmt.span
            source = f"{self.out.mention(outs)}.get_ref({k})"
            rank = len(stmt.var.type.shape)
            if _is_dn(stmt.value):  # the stored order is that of the exchanged axes
                text = f"{source}.transpose({rank - 2}, {rank - 1})"
                tensor = self.declare(stmt.var, self.runtime.tensor, name, text, "")
            else:
                tensor = self.declare(stmt.var, f"const {self.runtime.tensor}&", name, source)
            tensor.stays = True

    def check_lifetimes(self) -> None:
        """Refuse tensors that are used behind the scope that allocates them: their memory is given away with it."""
        for local in self.out.locals:
            if local.stays and local.moved:
                raise self.too_late(local.name, local.outside)

    def too_late(self, name: str, place: Any) -> CodegenError:
        """The error for a tensor whose memory is gone."""
        return CodegenError(
            f"the tensor '{name}' is used behind the scope that allocates it: its memory ends with the scope",
            place,
            hint="create the tensor in front of the scope",
        )

    _allocations = 0

    def _next_allocation(self) -> int:
        self._allocations += 1
        return self._allocations - 1

    def _create_info(self, call: Call, name: str) -> str:
        dtype = call.kwargs["dtype"]
        shape = list(call.args[0].elements)  # type: ignore[attr-defined]
        if _is_dn(call):
            shape[-2:] = shape[:-3:-1]
        return self.create_info(
            name + "_ci",
            [self.extent(e) for e in shape],
            dtype,
            bool(call.kwargs.get("manual_dep")),
            self._initial(call),
        )

    def create_info(self, name: str, extents: list[str], dtype: DataType, manual: bool, initial: str | None) -> str:
        """A ``TensorCreateInfo``; gives its name."""
        if dtype is DataType.FP4 and extents:  # two elements a byte
            last = extents[-1]
            extents[-1] = str(int(last) // 2) if last.isdigit() else f"({last} / 2)"
        self._check_rank(len(extents), name)
        shapes = self.names.helper(f"{name}_shapes")
        self.array_of("uint32_t", shapes, extents or ["1"])
        info = self.names.helper(name)
        more = ", /*manual_dep=*/true" if manual else ""
        self.out.line(f"TensorCreateInfo {info}({shapes}, {len(extents)}, {element_type(dtype)}{more});")
        if initial is not None:
            self.out.line(f"{info}.set_initial_value({initial});")
        return info

    def _check_rank(self, rank: int, what: str) -> None:
        if rank > self.runtime.max_dims:
            raise CodegenError(
                f"'{what}' has {rank} dimensions, exceeding the runtime's maximum of {self.runtime.max_dims}",
                self.out.place,
            )

    def _initial(self, call: Call) -> str | None:
        value = call.kwargs.get("init_value")
        return None if value is None else self._initial_value(float(value), call.kwargs["dtype"], call)

    def _initial_value(self, value: float, dtype: DataType, call: Call) -> str:
        if not math.isfinite(value):
            raise CodegenError(f"tensor.create: init_value must be finite, got {value}", call.span)
        if value == 0:
            return "0"
        kind = scalar_type(dtype)
        if dtype.is_float_:
            if dtype.get_bit() < 32:
                raise CodegenError(
                    f"tensor.create: non-zero init_value is not supported for {dtype} (it is narrower than 32 bits), "
                    f"got {value}",
                    call.span,
                    hint="fill the tensor in a kernel",
                )
            return f"static_cast<{kind}>({float_literal(value)})"
        if value != int(value):
            raise CodegenError(
                f"tensor.create: init_value {value} is not an integer but the tensor is {dtype}", call.span
            )
        if abs(value) > _EXACT:
            raise CodegenError(
                f"tensor.create: init_value {value:.0f} is beyond the exactly-representable integers (2**53)", call.span
            )
        return f"static_cast<{kind}>({int(value)})"

    # --- views --------------------------------------------------------------------------------------------------------

    def tensor_op(self, var: Var | None, call: Call) -> None:
        """A builtin of the ``tensor`` family."""
        name = call.op.name
        printer = _TENSOR_OPS.get(name)
        if printer is not None:
            printer(self, var, call)
            return
        definition = REGISTRY.get(name)
        if definition is not None and definition.alias is Alias.IS and definition.alias_operand is not None:
            self._other_name(var, call.args[definition.alias_operand])  # changes the type only
            return
        raise InternalError(
            f"Misplaced tensor op '{name}' in Orchestration function '{self.function.name}': a kernel has to compute "
            f"it (OutlineIncoreScopes) [{call.span}]"
        )

    def _other_name(self, var: Var | None, tensor: Expr) -> None:
        if var is not None:
            self.values[var] = self._tensor_value(tensor)

    def _tensor_value(self, tensor: Expr) -> Any:
        value = self.value(tensor)
        if value is None:
            self.mention(tensor)  # says what is wrong
        return value

    def _input(self, call: Call) -> str:
        if not isinstance(call.args[0], Var):
            raise InternalError(f"the input of '{call.op.name}' must be a variable (FlattenCallExpr) [{call.span}]")
        return self.mention(call.args[0])

    def _view(self, var: Var | None, text: Callable[[str], str]) -> None:
        """Declare a tensor; ``text`` gives its value from its name."""
        if var is not None:
            name = self.name_of(var)
            self.declare(var, self.runtime.tensor, name, text(name), "")

    def _slice(self, var: Var | None, call: Call) -> None:
        if var is None:
            return
        source = self._input(call)
        rank = len(call.args[0].type.shape)  # type: ignore[attr-defined]
        shape, offsets = list(_elements(call.args[1])), list(_elements(call.args[2]))
        drops = [constant_int(e) for e in _elements(call.args[4])] if len(call.args) > 4 else []
        dropped = {d % len(shape) for d in drops if d is not None}
        front = len(shape) - rank  # fewer axes lie in the last ones, more have unit axes in front
        kept = [i for i in range(len(shape)) if i not in dropped]
        if front < 0:
            offsets = (
                offsets if len(offsets) == rank else [ConstInt(0, DataType.INDEX)] * (rank - len(offsets)) + offsets
            )
            shape = [ConstInt(1, DataType.INDEX)] * -front + shape
            kept = [i - front for i in kept]
        elif front:
            shape, offsets = shape[front:], offsets[front:]
            kept = [i - front for i in kept]  # negative: an axis that the source does not have
        name = self.name_of(var)
        offset_texts = [self.extent(e) for e in offsets]
        extents = [self.extent(e) for e in shape]
        if call.args[0].type.dtype is DataType.FP4 and rank:  # type: ignore[attr-defined]
            self._in_pairs(call, offset_texts, extents)
        clamped = [
            f"({off} >= {source}.shapes[{i}] ? 0u : std::min<uint32_t>({size}, {source}.shapes[{i}] - {off}))"
            for i, (size, off) in enumerate(zip(extents, offset_texts, strict=True))
        ]
        self.expressions.headers.add("algorithm")
        offsets_name = self.names.helper(f"{name}_offsets")
        shapes_name = self.names.helper(f"{name}_shapes")
        self._check_rank(max(rank, len(kept)), var.name_hint)
        self.array_of("uint32_t", offsets_name, offset_texts or ["0"])
        self.array_of("uint32_t", shapes_name, clamped or ["0"])
        value = f"{source}.view({shapes_name}, {offsets_name})"
        if kept == list(range(rank)):
            self.declare(var, self.runtime.tensor, name, value, "")
            return
        view = self.names.helper(f"{name}_view")
        self.out.line(f"{self.runtime.tensor} {view} = {value};")
        self.declare(var, self.runtime.tensor, name, view, "")
        self._keep_axes(name, view, kept, rank)

    def _in_pairs(self, call: Call, offsets: list[str], extents: list[str]) -> None:
        """Count the last axis of packed 4-bit elements in pairs, as the runtime does."""
        for texts, what in ((offsets, "offset"), (extents, "extent")):
            last = texts[-1]
            if last.isdigit():
                if int(last) % 2:
                    raise CodegenError(
                        f"{call.op.name}: the {what} {last} on the last axis of packed 4-bit elements must be even",
                        call.span,
                    )
                texts[-1] = str(int(last) // 2)
            else:
                self.out.line(f"always_assert({last} % 2 == 0);")
                texts[-1] = f"({last} / 2)"

    def _keep_axes(self, name: str, view: str, kept: list[int], rank: int) -> None:
        """Let ``name``, a copy of ``view``, have some of its axes only."""
        line = self.out.line
        empty = self.names.helper(f"{name}_empty")
        count = " * ".join(["(uint64_t)1", *(f"{view}.shapes[{i}]" for i in range(rank))])
        line(f"bool {empty} = ({count} == 0);")
        line(f"{name}.ndims = {len(kept)};")
        for at, axis in enumerate(kept):
            line(f"{name}.shapes[{at}] = {f'{view}.shapes[{axis}]' if axis >= 0 else '1'};")
            line(f"{name}.strides[{at}] = {f'{view}.strides[{axis}]' if axis >= 0 else '1'};")
        line(f"if ({empty}) {name}.shapes[0] = 0;")
        line(f"{name}.is_contiguous = true;")
        line(
            f"for (int64_t __dim = {len(kept) - 1}, __dense = 1; __dim >= 0; --__dim) {{ "
            f"if ({name}.shapes[__dim] != 1 && {name}.strides[__dim] != __dense) {name}.is_contiguous = false; "
            f"__dense *= {name}.shapes[__dim]; }}"
        )

    def _reshape(self, var: Var | None, call: Call) -> None:
        self._reshaped(var, call, _elements(call.args[1]))

    def _reshaped(self, var: Var | None, call: Call, shape: Sequence[Expr]) -> None:
        source = self._input(call)
        if var is None:
            return
        name = self.name_of(var)
        self._check_rank(len(shape), var.name_hint)
        shapes = self.names.helper(f"{name}_shapes")
        self.array_of("uint32_t", shapes, [self.extent(e) for e in shape] or ["1"])
        self.declare(var, self.runtime.tensor, name, f"{source}.reshape({shapes}, {len(shape)})", "")

    def _transpose(self, var: Var | None, call: Call) -> None:
        source = self._input(call)
        rank = len(call.args[0].type.shape)  # type: ignore[attr-defined]
        axes = [constant_int(e) for e in call.args[1:3]]
        for axis in axes:
            if axis is None or not -rank <= axis < rank:
                raise CodegenError(f"tensor.transpose: axis {axis} is out of range for rank {rank}", call.span)
        a, b = (axis % rank for axis in axes if axis is not None)
        if a == b:
            raise CodegenError(f"tensor.transpose: the two axes must be different, got {a} twice", call.span)
        self._refuse_packed(call, {a, b}, rank)
        self._view(var, lambda name: f"{source}.transpose({a}, {b})")

    def _refuse_packed(self, call: Call, axes: set[int], rank: int) -> None:
        kind: Any = call.args[0].type
        if kind.dtype is DataType.FP4 and rank - 1 in axes:
            raise CodegenError(f"{call.op.name}: the last axis of packed 4-bit elements can't be moved", call.span)

    def _reinterpret(self, var: Var | None, call: Call) -> None:
        """``tensor.view``: the same bytes under another layout or shape."""
        source = self._input(call)
        have: Any = call.args[0].type
        shape = _elements(call.args[1]) if len(call.args) > 1 else ()
        flips = call.kwargs.get("layout", layout_of(have)) is not layout_of(have)
        if flips and shape:
            raise CodegenError("tensor.view cannot combine shape reinterpret with a layout change", call.span)
        if shape and layout_of(have) is not TensorLayout.ND:
            raise CodegenError("tensor.view only supports shape reinterpret for ND layout", call.span)
        rank = len(have.shape)
        if flips:
            self._refuse_packed(call, {rank - 1}, rank)
            self._view(var, lambda name: f"{source}.transpose({rank - 2}, {rank - 1})")
        elif shape:
            self._reshaped(var, call, shape)
        else:
            self._view(var, lambda name: source)

    def _reinterpret_view(self, var: Var | None, call: Call) -> None:
        raise CodegenError("tensor.reinterpret_view is not supported in Orchestration functions", call.span)

    def _assemble(self, var: Var | None, call: Call) -> None:
        atomic = call.kwargs.get("atomic")
        if atomic is not None and int(atomic):
            raise CodegenError("an atomic tensor.assemble is only supported inside an InCore function", call.span)
        self._check_written_in_place(call)
        # The kernel wrote there already: the result is another name of the target.
        self._other_name(var, call.args[0])

    def _check_written_in_place(self, call: Call) -> None:
        """Refuse a part that certainly lies elsewhere: nothing would copy it, and its data would be lost."""
        target, part = (self._memory_of(e) for e in call.args[:2])
        if target is not None and part is not None and target is not part:
            raise CodegenError(
                f"tensor.assemble: '{base_name(part.name_hint)}' is not written in place, so its data would have to be "
                f"copied into '{base_name(target.name_hint)}', which orchestration does not do",
                call.span,
                hint="let the kernel store into the target, or assemble each created tensor once, and nothing but that",
            )

    def _memory_of(self, e: Expr) -> Var | None:
        return self.buffers.viewed(e) if isinstance(e, Var) else None

    def _dim(self, var: Var | None, call: Call) -> None:
        if var is not None:
            self.expressions.not_negative.add(var)
            self.declare(var, "int64_t", self.name_of(var), self.dim(call))

    # --- single elements ----------------------------------------------------------------------------------------------

    def element_index(self, indices: Sequence[Expr]) -> list[str]:
        """The indices of one element."""
        return [self.extent(e) for e in indices]

    def _read(self, var: Var | None, call: Call) -> None:
        tensor = self._input(call)
        indices = self.element_index(_elements(call.args[1]))
        kind = scalar_type(call.type.dtype)  # type: ignore[attr-defined]
        name = self.name_of(var) if var is not None else self.names.helper("element")
        where = "nullptr"
        if indices:
            where = self.names.helper(f"indices_{name}")
            self.array_of("uint32_t", where, indices)
        self.declare(var, kind, name, f"get_tensor_data<{kind}>({tensor}, {len(indices)}, {where})")

    def _write(self, var: Var | None, call: Call) -> None:
        tensor = self._input(call)
        indices = self.element_index(_elements(call.args[1]))
        kind = scalar_type(call.args[0].type.dtype)  # type: ignore[attr-defined]
        self.out.line("{")
        where = "nullptr"
        if indices:
            where = f"indices_{tensor}"
            self.out.line(f"  uint32_t {where}[{len(indices)}] = {{{', '.join(indices)}}};")
        value = self.element_text(call.args[2])
        self.out.line(f"  set_tensor_data<{kind}>({tensor}, {len(indices)}, {where}, {value});")
        self.out.line("}")
        self._other_name(var, call.args[0])

    def element_text(self, e: Expr) -> str:
        """A scalar as the value of an element; 16-bit floats have no literals."""
        kind: Any = e.type
        if type(e) is ConstFloat and kind.dtype in (DataType.FP16, DataType.BF16):
            return f"from_u64<{scalar_type(kind.dtype)}>({half_literal(e.value, kind.dtype)})"
        return self.text(e)

    # --- local arrays -------------------------------------------------------------------------------------------------

    def array_op(self, var: Var | None, call: Call) -> None:
        """A builtin of the ``array`` family."""
        name = call.op.name
        if name == "array.create":
            if var is not None:
                self.own(var, self.new_array(call.type, self.name_of(var)))
        elif name == "array.get_element":
            if var is not None:
                kind: Any = call.type
                text = f"{self.mention(call.args[0])}[{self.text(call.args[1])}]"
                self.declare(var, *self.scalar_place(kind.dtype, self.name_of(var)), text, self.empty(kind.dtype))
        elif name == "array.update_element":
            target, index, value = call.args
            self.alive_id(value, "is stored into an array")
            self.out.line(f"{self.mention(target)}[{self.text(index)}] = {self.text(value)};")
            self._other_name(var, target)
        else:
            raise InternalError(f"no code for the array op '{name}' in an orchestration [{call.span}]")

    def alive_id(self, e: Expr, what: str) -> None:
        """Refuse a task id that no longer exists here."""

    def scalar_place(self, dtype: DataType, name: str) -> tuple[str, str]:
        """C++ type and name."""
        return scalar_type(dtype), name

    def empty(self, dtype: DataType) -> str:
        """What follows the name of a scalar that has no value yet."""
        return f" = {INVALID_ID}" if dtype is DataType.TASK_ID else "{}"

    def new_array(self, kind: Any, name: str, fill: str | None = None) -> Local:
        """An array of zeros or null ids, or of other elements."""
        dtype, extent = kind.dtype, constant_int(kind.extent)
        assert extent is not None  # the type wants a constant
        if dtype is DataType.TASK_ID:
            return self.out.declare_array("PTO2TaskId", name, extent, fill or INVALID_ID, empty=INVALID_ID)
        return self.out.declare_array(scalar_type(dtype), name, extent, fill or "0", empty=None)

    # --- copies and scalars -------------------------------------------------------------------------------------------

    def copy(self, var: Var, source: Expr) -> None:
        """``var = source`` for a variable."""
        value = self._tensor_value(source)
        kind = var.type
        is_id = isinstance(kind, ScalarType) and kind.dtype is DataType.TASK_ID
        if type(value) is not Local or isinstance(kind, ArrayType) or is_id or self._is_outer(value):
            self.values[var] = value
            return
        if isinstance(kind, ScalarType) and source in self.expressions.not_negative:
            self.expressions.not_negative.add(var)
        ctype = ctype_of(var, self.runtime)
        self.declare(var, ctype, self.name_of(var), self.mention(source), "" if ctype == self.runtime.tensor else "{}")

    def _is_outer(self, value: Local) -> bool:
        """In a MANUAL scope: whether a tensor is valid outside, so that another name for it is enough."""
        if self.manual is None or value.ctype.endswith("_t"):
            return False
        outer = self.manual.block.parent
        return outer is not None and value.block.holds(outer) and value.valid_in.holds(outer)

    def scalar_value(self, var: Var, value: Expr) -> None:
        """``var = <expression>``."""
        kind = var.type
        if isinstance(kind, ScalarType) and kind.dtype.is_int_ and self.expressions.at_least_zero(value):
            self.expressions.not_negative.add(var)
        self.declare(var, ctype_of(var, self.runtime), self.name_of(var), self.text(value))


def half_literal(value: float, dtype: DataType) -> str:
    """The bits of a 16-bit float constant."""
    return f"(uint64_t){half_bits(value, dtype)}"


def is_create(value: Any) -> bool:
    """Whether a value is a new tensor."""
    return type(value) is Call and value.op.name == "tensor.create"


def _is_dn(call: Call) -> bool:
    return call.kwargs.get("layout", TensorLayout.ND) is TensorLayout.DN


def _elements(e: Expr) -> Sequence[Expr]:
    if type(e) is not MakeTuple:
        raise InternalError(f"orchestration code: expected a tuple of numbers [{e.span}]")
    return e.elements


_TENSOR_OPS: dict[str, Callable[[Tensors, Var | None, Call], None]] = {
    "tensor.slice": Tensors._slice,
    "tensor.reshape": Tensors._reshape,
    "tensor.transpose": Tensors._transpose,
    "tensor.view": Tensors._reinterpret,
    "tensor.reinterpret_view": Tensors._reinterpret_view,
    "tensor.assemble": Tensors._assemble,
    "tensor.dim": Tensors._dim,
    "tensor.read": Tensors._read,
    "tensor.write": Tensors._write,
}

# Builtins that an orchestration runs itself; all others of the family are for kernels.
PRINTED_OPS = frozenset((*_TENSOR_OPS, "tensor.create"))

__all__ = ["PRINTED_OPS", "Tensors", "half_literal", "is_create"]
