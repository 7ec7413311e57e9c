"""Operations that compute: element by element, reductions, comparisons with packed results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...ir.dtype import DataType
from ...ir.expr import Call, Var
from ...ir.type import ScalarType, ShapedType
from ...ops.definition import OpDef
from ...ops.rules import promote_dtypes
from .arrays import Size, Unsupported, offset, storage, working
from .rows import Bits, is_narrow
from .values import static
from .windows import Windows

_SIGNS = ("==", "!=", "<", "<=", ">", ">=")  # by the numbers of comparisons

_PARTIAL = {
    "add": "({0} + {1})",
    "mul": "({0} * {1})",
    "max": "pto::math::maximum({0}, {1})",
    "min": "pto::math::minimum({0}, {1})",
}


class Arithmetic(Windows):
    """Operations that compute."""

    # --- element by element -------------------------------------------------------------------------------------------

    def _element(self, var: Var, call: Call, definition: OpDef) -> None:
        valid = self._valid(var)
        dtype: DataType = var.type.dtype  # type: ignore[attr-defined]
        text = definition.element.replace("{T}", storage(dtype))
        used = [i for i in range(len(call.args)) if f"{{{i}}}" in text]
        places = {i: f"{{{n}}}" for n, i in enumerate(used)}
        text = text.format(*(places.get(i, "") for i in range(len(call.args))))
        self._row_wise(var, [call.args[i] for i in used], text, dtype, valid)

    def _row_wise(self, var: Var, args: Sequence[Any], text: str, dtype: DataType, valid: Sequence[Size]) -> None:
        rows = tuple(valid[:-1])
        self._prepare(rows, args, valid[-1])
        operands = [self._operand(e, dtype) for e in args]
        self._add_node(var, rows, operands, columns=valid[-1], text=text)

    def _row_expand_add(self, var: Var, call: Call) -> None:
        vector: Any = call.args[1].type
        if static(vector.shape[-1]) != 1:
            raise Unsupported(f"{call.op.name} of a vector in blocks")
        dtype: DataType = var.type.dtype  # type: ignore[attr-defined]
        self._row_wise(var, call.args[:2], "({0} + {1})", dtype, self._valid(var))

    def _expand_clone(self, var: Var, call: Call) -> None:
        dtype: DataType = var.type.dtype  # type: ignore[attr-defined]
        self._row_wise(var, call.args[:1], "{0}", dtype, self._valid(var))

    def _partial(self, var: Var, call: Call) -> None:
        """Where both operands are valid, if that is everywhere."""
        a, b = (e.type for e in call.args[:2])
        sizes = [(self._sizes(kind.shape), self._sizes(kind.valid_extents)) for kind in (a, b)]  # type: ignore[attr-defined]
        if sizes[0] != sizes[1]:
            raise Unsupported("its operands have different valid regions")
        dtype: DataType = var.type.dtype  # type: ignore[attr-defined]
        self._row_wise(var, call.args[:2], _PARTIAL[call.op.name.rpartition("_")[2]], dtype, self._valid(var))

    def _cast(self, var: Var, call: Call) -> None:
        valid = self._valid(var)
        source: DataType = call.args[0].type.dtype  # type: ignore[attr-defined]
        target: DataType = var.type.dtype  # type: ignore[attr-defined]
        text = f"pto::converted<{storage(target)}, {storage(source)}, {int(call.kwargs['mode'])}>({{0}})"
        self._row_wise(var, call.args[:1], text, source, valid)

    def _shift(self, var: Var, call: Call) -> None:
        """Distances that are out of range give anything: they must not trap."""
        dtype: DataType = var.type.dtype  # type: ignore[attr-defined]
        distance: Any = call.args[1]
        name = "left" if ".shl" in call.op.name else "right"
        text = f"pto::shifted_{name}({{0}}, static_cast<int64_t>({{1}}))"
        if isinstance(distance.type, ScalarType):
            text = f"pto::shifted_{name}({{0}}, static_cast<int64_t>({self._text(distance)}))"
            self._row_wise(var, call.args[:1], text, dtype, self._valid(var))
        else:
            self._row_wise(var, call.args[:2], text, dtype, self._valid(var))

    # --- comparison and selection -------------------------------------------------------------------------------------

    def _compare(self, var: Var, call: Call) -> None:
        """0 and 1 in the promoted element type."""
        dtype: DataType = var.type.dtype  # type: ignore[attr-defined]
        sign = _SIGNS[call.kwargs.get("cmp_type", 0)]
        self._row_wise(var, call.args[:2], f"({{0}} {sign} {{1}} ? 1 : 0)", dtype, self._valid(var))

    def _packed_compare(self, var: Var, call: Call) -> None:
        """A bit for each element."""
        a, b = call.args[:2]
        own: DataType = a.type.dtype  # type: ignore[attr-defined]
        if isinstance(b.type, ShapedType):
            dtype = promote_dtypes(own, b.type.dtype)
        else:
            scalar: DataType = b.type.dtype  # type: ignore[attr-defined]
            dtype = DataType.FP32 if scalar.is_float_ and not own.is_float_ else own
        arrays = self._arrays(*(e for e in (a, b) if isinstance(e.type, ShapedType)))
        target = self._buffer(var)
        shape = [_broadcast([array.shape[axis] for array in arrays]) for axis in range(len(target.shape))]
        if any(len(array.shape) != len(target.shape) for array in arrays):
            raise Unsupported(f"{call.op.name} of different ranks")
        valid = [_least([v.valid[i] for v in arrays if v.shape[i] == n]) for i, n in enumerate(shape)]
        rounds = dtype is DataType.FP16
        operands = []
        for array in arrays:
            steps = [0 if n == 1 else t for n, t in zip(array.shape, array.strides, strict=True)]
            at = offset([f"i{axis}" for axis in range(len(shape) - 1)], steps[:-1])
            operands.append(f"pto::row_of<{working(dtype)}, {str(rounds and array.dtype is not dtype).lower()}>"
                            f"({array.pointer} + {at}, {steps[-1]})")  # fmt: skip
        if len(arrays) == 1:
            operands.append(f"pto::same_in_row<{working(dtype)}>({self._operand(b, dtype)})")
        rows = target.shape[:-1]
        for axis, extent in enumerate(rows):
            self._out.open(f"for (int64_t i{axis} = 0; i{axis} < {extent}; ++i{axis}) {{")
        # Bits outside the valid region are 0.
        within = " && ".join(f"i{axis} < {n}" for axis, n in enumerate(valid[:-1])) or "true"
        at = offset([*(f"i{axis}" for axis in range(len(rows))), 0], target.strides)
        kind = working(dtype)
        test = f"[]({kind} a, {kind} b) {{ return a {_SIGNS[call.kwargs['cmp_type']]} b; }}"
        self._out.line(
            f"pto::pack_bits({target.pointer} + {at}, {target.shape[-1]}, {within} ? {valid[-1]} : 0, "
            f"{', '.join(operands)}, {test});"
        )
        for _ in rows:
            self._out.close()
        self._values[var] = target

    def _select(self, var: Var, call: Call) -> None:
        """The first where a bit is 1, else the second."""
        scalar = call.op.name.endswith("sels")
        mask, a, b = call.args[0], call.args[1], call.args[3 if scalar else 2]
        bits = self._array(mask)
        valid = self._valid(var)
        dtype: DataType = var.type.dtype  # type: ignore[attr-defined]
        size = bits.dtype.get_byte()
        if bits.strides[-1] != 1:
            raise Unsupported(f"{call.op.name} of a mask with gaps")
        if size != 1:
            pointer = f"reinterpret_cast<uint8_t*>({bits.pointer})"
            strides = [f"({t}) * {size}" if isinstance(t, str) else t * size for t in bits.strides[:-1]]
            bits = bits.seen(dtype=DataType.UINT8, pointer=pointer, strides=[*strides, 1])
        rows = tuple(valid[:-1])
        self._prepare(rows, [bits, a, b], valid[-1])
        operands = [Bits(bits), self._operand(a, dtype), self._operand(b, dtype)]
        self._add_node(var, rows, operands, columns=valid[-1], text="({0} ? {1} : {2})")

    # --- reductions ---------------------------------------------------------------------------------------------------

    def _fold(self, var: Var, call: Call, definition: OpDef) -> None:
        kind: Any = call.args[0].type
        rank = len(kind.shape)
        axis = self._axis(call, definition, rank)
        keeps = call.kwargs.get("keep_dim", True)
        if not isinstance(var.type, ShapedType):
            raise Unsupported(f"{call.op.name} to a scalar")
        if axis != rank - 1:
            self._fold_columns(var, call, axis, f"fold_columns<pto::Fold::{definition.fold}>")
        elif not keeps:
            self._fold_away(var, call, definition)
        else:
            valid = self._valid(var)
            rows = tuple(valid[:-1])
            self._prepare(rows, call.args[:1], fold=True)
            value = self._operand(call.args[0], kind.dtype)
            if is_narrow(value):
                self._add_node(var, rows, [value], columns=1, text="{0}")
            else:
                self._add_node(var, rows, [value], columns=1, fold=definition.fold)

    def _axis(self, call: Call, definition: OpDef, rank: int) -> int:
        if call.op.name.startswith("tensor."):
            return int(call.kwargs.get("axis", definition.kwargs["axis"][1])) % rank
        return rank - 1 if ".row_" in call.op.name else 0

    def _fold_away(self, var: Var, call: Call, definition: OpDef) -> None:
        """A row each becomes an element of one rank less."""
        (value,) = self._arrays(call.args[0])
        target = self._buffer(var)
        self._each(
            value.valid[:-1],
            lambda at: (
                f"pto::fold_columns<pto::Fold::{definition.fold}>({target.pointer} + "
                f"{offset(at, target.strides)}, {value.pointer} + {offset(at, value.strides[:-1])}, "
                f"{value.strides[-1]}, 1, {value.valid[-1]}, 1);"
            ),
        )
        self._values[var] = target

    def _arg_fold(self, var: Var, call: Call, definition: OpDef) -> None:
        """The position of the extreme value."""
        rank = len(call.args[0].type.shape)  # type: ignore[attr-defined]
        how = "max" if call.op.name.endswith("max") else "min"
        if not isinstance(var.type, ShapedType):
            raise Unsupported(f"{call.op.name} to a scalar")
        self._fold_columns(var, call, self._axis(call, definition, rank), f"position_in_columns<pto::Fold::{how}>")

    def _fold_columns(self, var: Var, call: Call, axis: int, function: str) -> None:
        """Along an axis; its elements may lie anywhere."""
        (value,) = self._arrays(call.args[0])
        target = self._buffer(var)
        rank = len(value.shape)
        strides = list(target.strides)
        if not call.kwargs.get("keep_dim", True):
            strides.insert(axis, 0)
        last = rank - 1 if axis != rank - 1 else None  # the axis along which results stand side by side
        outer = [i for i in range(rank) if i not in (axis, last)]
        step, count = (1, 1) if last is None else (value.strides[last], value.valid[last])
        to_step = 1 if last is None else strides[last]
        if to_step != 1:
            raise Unsupported(f"{call.op.name} into elements with gaps")
        self._each(
            [value.valid[i] for i in outer],
            lambda at: (
                f"pto::{function}({target.pointer} + {offset(at, [strides[i] for i in outer])}, "
                f"{value.pointer} + {offset(at, [value.strides[i] for i in outer])}, "
                f"{value.strides[axis]}, {step}, {value.valid[axis]}, {count});"
            ),
        )
        self._values[var] = target

    def _each(self, extents: Sequence[Size], body: Any) -> None:
        """Loops; ``body`` gives the statement for their indices."""
        names: list[Size] = []
        for n in extents:
            name = f"i{len(names)}"
            self._out.open(f"for (int64_t {name} = 0; {name} < {n}; ++{name}) {{")
            names.append(name)
        self._out.line(body(names))
        for _ in extents:
            self._out.close()


def _broadcast(extents: Sequence[Size]) -> Size:
    return next((n for n in extents if n != 1), 1)


def _least(extents: Sequence[Size]) -> Size:
    found = extents[0]
    for n in extents[1:]:
        if n != found:
            known = isinstance(n, int) and isinstance(found, int)
            found = min(int(n), int(found)) if known else f"std::min<int64_t>({found}, {n})"
    return found


__all__ = ["Arithmetic"]
