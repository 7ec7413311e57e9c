"""Scalar arithmetic on the host: each operation gives a value of its type, as in :mod:`pypto.runtime.scalars`.

C++ computes narrow integers as ``int`` and halves as ``float``, and may fuse a product with a sum. Here every operation
wraps or rounds by itself, where its C++ would not. (``native/kernel/scalars.h`` has the functions.)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..ir import expr as x
from ..ir.dtype import DataType
from ..ir.expr import Call, Expr, TupleGetItemExpr, Var
from ..ir.type import ScalarType
from ..runtime.scalars import round_float
from .cpp_expressions import ELEMENTS, SCALARS, CppExpressions
from .cpu.arrays import is_narrow_float, storage, working

_LEAVES = (Var, Call, TupleGetItemExpr)
_WRAPS = frozenset((x.Add, x.Sub, x.Mul, x.Neg, x.BitNot, x.BitAnd, x.BitOr, x.BitXor))


def scalar_type(dtype: DataType) -> str:
    """The C++ type of a scalar."""
    return "float" if is_narrow_float(dtype) else working(dtype)


class ScalarExpressions(CppExpressions):
    """``halves_as_bits``: variables of 16-bit floats hold their bits (``half``), not a float.

    ``checked`` is also asked for exponents and for floats that become integers.
    """

    def __init__(
        self,
        name: Callable[[Var], str],
        call: Callable[[Call], str],
        checked: Callable[[Any, str], list[Any]],
        halves_as_bits: bool = False,
    ) -> None:
        super().__init__(name, call, checked)
        self._bits = halves_as_bits

    def text(self, e: Expr) -> str:
        """The text of an expression."""
        if not self._is_half(e):
            return super().text(e)
        if isinstance(e, _LEAVES):
            return "".join(super()._parts(e))
        self.helpers.add(ELEMENTS)
        dtype: DataType = e.type.dtype  # type: ignore[attr-defined]
        return f"{dtype.to_c_type_string()}{{pto::from_float<{storage(dtype)}>({super().text(e)}).bits}}"

    def _is_half(self, e: Any) -> bool:
        return self._bits and isinstance(e.type, ScalarType) and e.type.dtype in (DataType.FP16, DataType.BF16)

    def _parts(self, e: Any) -> list[Any]:
        kind = e.type
        if isinstance(e, _LEAVES):
            parts = super()._parts(e)
            if not self._is_half(e):
                return parts
            self.helpers.add(ELEMENTS)
            return [f"pto::to_float({storage(kind.dtype)}{{", *parts, ".bits})"]
        if not isinstance(kind, ScalarType):
            return super()._parts(e)
        dtype = kind.dtype
        if type(e) is x.Cast:
            return self._cast(e, dtype)
        if dtype.is_int_:
            return self._integer(e, dtype)
        if dtype.is_float_:
            return self._float(e, dtype)
        return super()._parts(e)

    def _function(self, text: str) -> str:
        self.helpers.add(SCALARS)
        return f"pto::{text}"

    def _round(self, dtype: DataType, parts: list[Any]) -> list[Any]:
        self.helpers.add(ELEMENTS)
        return [f"pto::rounded<{storage(dtype)}>(", *parts, ")"]

    def _integer(self, e: Any, dtype: DataType) -> list[Any]:
        cls, kind = type(e), scalar_type(dtype)
        if cls in _WRAPS:
            parts = super()._parts(e)
            if dtype.get_bit() < 64:
                return [f"static_cast<{kind}>", *parts]
            if isinstance(e, x.BinaryExpr) and type(e.left) is type(e.right) is x.ConstInt:
                return [parts[0], f"static_cast<{kind}>(", e.left, ")", *parts[2:]]
            return parts
        if cls is x.BitShiftLeft or cls is x.BitShiftRight:
            right = super()._parts(e)[3:]
            wide = "int64_t" if cls is x.BitShiftRight and dtype.is_signed_ else "uint64_t"
            sign = "<<" if cls is x.BitShiftLeft else ">>"
            return [f"static_cast<{kind}>(static_cast<{wide}>(", e.left, f") {sign} ", *right]
        if cls is x.FloorDiv or cls is x.FloorMod:
            what = "division" if cls is x.FloorDiv else "modulo"
            if dtype.get_bit() == 64 and self.rounds_alike(e):
                return super()._parts(e)
            name = "floor_divided" if cls is x.FloorDiv else "floor_rest"
            return [self._function(f"{name}<{kind}>("), e.left, ", ", *self._divisor(e, what), ")"]
        if cls is x.FloatDiv:
            return [self._function(f"divided<{kind}>("), e.left, ", ", *self._divisor(e, "division"), ")"]
        if cls is x.Pow:
            right = [e.right] if dtype.is_unsigned_ else self._checked(e, "power")
            return [self._function(f"to_power<{kind}>("), e.left, ", ", *right, ")"]
        if cls is x.Min or cls is x.Max:
            return self._extremum_of(e, kind)
        if cls is x.Abs:
            return [e.operand] if dtype.is_unsigned_ else [f"static_cast<{kind}>(", *super()._parts(e), ")"]
        return super()._parts(e)

    def _float(self, e: Any, dtype: DataType) -> list[Any]:
        cls = type(e)
        if cls is x.ConstFloat:
            return [self.floating(round_float(e.value, dtype))]
        if cls is x.Min or cls is x.Max:
            return self._extremum_of(e, "float")  # of two values of the type
        if cls is x.FloorDiv or cls is x.FloorMod:
            name = "floor_divided" if cls is x.FloorDiv else "floor_rest"
            parts = [self._function(f"float_{name}("), e.left, ", ", e.right, ")"]
        elif cls is x.Pow:
            parts = [
                "static_cast<float>(std::pow(static_cast<double>(",
                e.left,
                "), static_cast<double>(",
                e.right,
                ")))",
            ]
        elif cls is x.Mul and not is_narrow_float(dtype):
            return [self._function("kept("), e.left, " * ", e.right, ")"]
        else:
            parts = super()._parts(e)
        if isinstance(e, x.BinaryExpr) and is_narrow_float(dtype):
            return self._round(dtype, parts)
        return parts

    def _extremum_of(self, e: Any, kind: str) -> list[Any]:
        self.headers.add("algorithm")
        return [f"std::{'min' if type(e) is x.Min else 'max'}<{kind}>(", e.left, ", ", e.right, ")"]

    def _cast(self, e: Any, dtype: DataType) -> list[Any]:
        have: DataType = e.operand.type.dtype
        if dtype is DataType.BOOL:
            return ["(", e.operand, " != 0)"]
        if dtype.is_float_:
            # From an integer by way of a double, which no number of the program is rounded by twice but these.
            parts = [
                "static_cast<float>(",
                *(["static_cast<double>(", e.operand, ")"] if have.is_int_ else [e.operand]),
                ")",
            ]
            return self._round(dtype, parts) if is_narrow_float(dtype) else parts
        if have.is_float_:
            return [self._function(f"to_integer<{scalar_type(dtype)}>("), *self._checked(e, "finite"), ")"]
        return [f"static_cast<{scalar_type(dtype)}>(", e.operand, ")"]

    def at_least_zero(self, e: Any, depth: int = 0) -> bool:
        """Narrow sums and products may wrap."""
        if type(e) in (x.Add, x.Mul) and e.dtype.is_signed_ and e.dtype.get_bit() < 64:
            return False
        return super().at_least_zero(e, depth)


__all__ = ["ScalarExpressions", "scalar_type"]
