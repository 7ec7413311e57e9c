"""Products of matrices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...ir.dtype import DataType
from ...ir.expr import Call, Var
from ...ops.product import accumulator_dtype
from .arithmetic import Arithmetic
from .arrays import Array, Size, Unsupported, offset, working

# Element types of the products that are compiled once for a machine; others are plain loops.
_FAST = frozenset((DataType.FP32, DataType.FP16, DataType.BF16, DataType.INT8))


class Products(Arithmetic):
    """Products of matrices: a call for each, in loops over what stands in front of the last two dimensions."""

    _products: set[DataType]  # of which compiled ones are called

    def _matmul(self, var: Var, call: Call) -> None:
        base = call.op.name.partition(".")[2]
        accumulates = base.endswith("_acc")
        args: Sequence[Any] = call.args
        first = 1 if accumulates else 0
        acc, a, b, bias = self._product_operands(args, first, base)
        if call.kwargs.get("a_trans"):
            a = _exchanged(a)
        if call.kwargs.get("b_trans"):
            b = _exchanged(b)
        if len(a.shape) < 2 or len(b.shape) < 2:
            raise Unsupported(f"{call.op.name} of a vector")
        result: DataType = var.type.dtype  # type: ignore[attr-defined]
        accumulator = accumulator_dtype(a.dtype, b.dtype)
        if accumulates and result is not accumulator:
            raise Unsupported(f"{call.op.name} that adds in {result}")
        if result.is_float_ != accumulator.is_float_:
            raise Unsupported(f"{call.op.name} of {a.dtype} to {result}")
        target = self._product_target(var, call, acc, (a, b))
        sums = target
        if result is not accumulator:
            shape = [n for n in target.shape if isinstance(n, int)]
            sums = self._memory(accumulator, shape, self._position)
        adds = "false"
        if accumulates:  # unless a condition says that it is the first product
            adds = f"!({self._text(args[3])})" if len(args) > 3 else "true"
        elif bias is not None:
            adds = "true"
            rows = self._part(bias, [0, 0], sums.shape, [a.valid[-2], b.valid[-1]]).seen(strides=[0, bias.strides[-1]])
            self._store_array(rows, sums.seen(valid=rows.valid))
        self._multiply(sums, a, b, accumulator, adds)
        if sums is not target:
            self._store_array(sums.seen(valid=target.valid), target)
        self._values[var] = target.seen(valid=self._valid(var))

    def _product_operands(
        self, args: Sequence[Any], first: int, base: str
    ) -> tuple[Array | None, Array, Array, Array | None]:
        with_bias = base.endswith("_bias")
        needed = [*args[:first], *args[first : first + 2], *(args[2:3] if with_bias else ())]
        arrays = self._arrays(*needed)
        acc = arrays[0] if first else None
        return acc, arrays[first], arrays[first + 1], arrays[-1] if with_bias else None

    def _product_target(self, var: Var, call: Call, acc: Array | None, factors: Sequence[Array]) -> Array:
        """Where a product goes. A tile is added to in place, a tensor only if nobody needs what it was."""
        if acc is None:
            return self._buffer(var)
        overlaps = any(factor.root is acc.root for factor in factors)
        if call.op.name.startswith("tile."):
            self._owned(acc, call.args[0])
            if overlaps:
                raise Unsupported(f"{call.op.name} of what it adds to")
            return acc
        if not overlaps and not isinstance(acc.root, Var) and self._lives.is_last(call.args[0], self._position, var):  # type: ignore[arg-type]
            return acc
        self._copy(var, acc)
        found: Array = self._values[var]
        return found

    def _multiply(self, target: Array, a: Array, b: Array, accumulator: DataType, adds: str) -> None:
        lead = len(target.shape) - 2
        counts: list[Size] = [_batch(target, [a, b], axis, lead) for axis in range(lead)]
        fast = a.dtype is b.dtype and a.dtype in _FAST and target.strides[-1] == 1
        if fast:
            self._products.add(a.dtype)
        name = "pto::matmul" if fast else f"pto::plain_matmul<{working(accumulator)}>"

        def product(at: Sequence[Size]) -> str:
            places = [_place(x, at, lead) for x in (target, a, b)]
            return (
                f"{name}({places[0]}, {target.strides[-2]}, {places[1]}, {a.strides[-2]}, {a.strides[-1]}, "
                f"{places[2]}, {b.strides[-2]}, {b.strides[-1]}, {a.valid[-2]}, {b.valid[-1]}, {a.valid[-1]}, {adds});"
            )

        self._each(counts, product)


def _exchanged(array: Array) -> Array:
    def swap(items: Sequence[Size]) -> list[Size]:
        return [*items[:-2], items[-1], items[-2]]

    return array.seen(shape=swap(array.shape), strides=swap(array.strides), valid=swap(array.valid))


def _batch(target: Array, operands: Sequence[Array], axis: int, lead: int) -> Size:
    """How many products there are along a leading dimension."""
    found: Size | None = None
    for array in operands:
        own = axis - lead + len(array.shape) - 2
        if own < 0 or (array.shape[own] == 1 and target.shape[axis] != 1):
            continue
        n = array.valid[own]
        if found is None or found == n or found == array.shape[own]:
            found = n
        elif n != array.shape[own]:
            found = f"std::min<int64_t>({found}, {n})"
    return 1 if found is None else found


def _place(array: Array, at: Sequence[Size], lead: int) -> str:
    own = len(array.shape) - 2
    indices = at[lead - own :] if own else ()
    steps = [0 if n == 1 else t for n, t in zip(array.shape[:own], array.strides[:own], strict=True)]
    distance = offset(indices, steps)
    return array.pointer if distance == 0 else f"{array.pointer} + {distance}"


__all__ = ["Products"]
