"""Scalar expressions as C++ text.

Every operator is parenthesised. Division and modulo round down in the DSL and towards zero in C++: where an operand may
be negative, two small functions do it the DSL's way (``pypto_floor_div``, ``pypto_floor_mod``; the file that uses one
defines it). Floats are printed with enough digits to be read back as the same number.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from typing import Any

from ..diag.errors import InternalError
from ..ir import expr as x
from ..ir.dtype import DataType
from ..ir.expr import Call, Expr, Var
from ..ir.type import ScalarType
from .runtime_names import scalar_type

FLOOR_DIV = "pypto_floor_div"
FLOOR_MOD = "pypto_floor_mod"
SCALARS, ELEMENTS = "scalars", "elements"  # functions of the host's own
HELPERS = {
    SCALARS: ('#include "kernel/scalars.h"',),
    ELEMENTS: ('#include "kernel/element.h"',),
    FLOOR_DIV: (
        f"static inline int64_t {FLOOR_DIV}(int64_t a, int64_t b) {{",
        "    return a / b - ((a % b != 0 && (a < 0) != (b < 0)) ? 1 : 0);",
        "}",
    ),
    FLOOR_MOD: (
        f"static inline int64_t {FLOOR_MOD}(int64_t a, int64_t b) {{",
        "    int64_t rest = a % b;",
        "    return (rest != 0 && (rest < 0) != (b < 0)) ? rest + b : rest;",
        "}",
    ),
}
_DEEPEST_PROOF = 32  # of an operand that is looked at to see that it can't be negative

_INFIX: dict[type, str] = {
    x.Add: "+",
    x.Sub: "-",
    x.Mul: "*",
    x.Eq: "==",
    x.Ne: "!=",
    x.Lt: "<",
    x.Le: "<=",
    x.Gt: ">",
    x.Ge: ">=",
    x.And: "&&",
    x.Or: "||",
    x.BitAnd: "&",
    x.BitOr: "|",
    x.BitXor: "^",
}
_SHIFT: dict[type, str] = {x.BitShiftLeft: "<<", x.BitShiftRight: ">>"}
_PREFIX: dict[type, str] = {x.Neg: "-", x.Not: "!", x.BitNot: "~"}


def unchecked(e: Any, _what: str) -> list[Any]:
    """The right operand without a check."""
    return [e.right]


class CppExpressions:
    """Prints expressions.

    ``name``: the text of a variable; ``call``: the text of a call that stands inside an expression; ``checked``: given
    a division, modulo or shift and which it is, its right operand as text and operands, with a check that the operation
    has a result (:mod:`.scalar_expressions` has more of these). ``not_negative``: variables that are known to be at
    least 0. ``headers`` and ``helpers`` collect what the text needs.
    """

    def __init__(
        self,
        name: Callable[[Var], str],
        call: Callable[[Call], str],
        checked: Callable[[Any, str], list[Any]],
    ) -> None:
        self._name = name
        self._call = call
        self._checked = checked
        self.not_negative: set[Var] = set()
        self.headers: set[str] = set()
        self.helpers: set[str] = set()

    def text(self, e: Expr) -> str:
        """The text of an expression."""
        parts: list[str] = []
        stack: list[Any] = [e]
        while stack:
            item = stack.pop()
            if type(item) is str:
                parts.append(item)
            else:
                stack.extend(reversed(self._parts(item)))
        return "".join(parts)

    def _parts(self, e: Any) -> list[Any]:
        """Text and operands of one node."""
        cls = type(e)
        if isinstance(e, Var):
            return [self._name(e)]
        if cls is x.ConstInt:
            return [integer(e.value)]
        if cls is x.ConstBool:
            return ["1" if e.value else "0"]
        if cls is x.ConstFloat:
            return [self.floating(e.value)]
        if cls in _INFIX:
            return ["(", e.left, f" {_INFIX[cls]} ", e.right, ")"]
        if cls in _SHIFT:
            known = type(e.right) is x.ConstInt and 0 <= e.right.value < 64
            return ["(", e.left, f" {_SHIFT[cls]} ", *([e.right] if known else self._checked(e, "shift")), ")"]
        if cls in _PREFIX:
            negative = type(e.operand) in (x.ConstInt, x.ConstFloat) and e.operand.value < 0  # '--' is something else
            return [f"({_PREFIX[cls]}", *(["(", e.operand, ")"] if negative else [e.operand]), ")"]
        if cls is x.Cast:
            return [f"static_cast<{scalar_type(e.dtype)}>(", e.operand, ")"]
        if cls is Call:
            return [self._call(e)]
        special = _SPECIAL.get(cls)
        if special is None:
            raise InternalError(f"orchestration code: no text for the expression {cls.__name__} [{e.span}]")
        return special(self, e)

    # --- what C++ does in another way ---------------------------------------------------------------------------------

    def _extremum(self, e: Any) -> list[Any]:
        self.headers.add("algorithm")
        name = "min" if type(e) is x.Min else "max"
        # Both by value as one type, since the operands of the template are references of one type.
        return [f"std::{name}<{scalar_type(e.dtype)}>(", e.left, ", ", e.right, ")"]

    def _floor_div(self, e: Any) -> list[Any]:
        if _is_float(e):
            self.headers.add("cmath")
            return ["std::floor(", e.left, " / ", e.right, ")"]
        if self.rounds_alike(e):
            return ["(", e.left, " / ", *self._divisor(e, "division"), ")"]
        self.helpers.add(FLOOR_DIV)
        return [f"{FLOOR_DIV}(", e.left, ", ", *self._divisor(e, "division"), ")"]

    def _floor_mod(self, e: Any) -> list[Any]:
        if _is_float(e):
            self.headers.add("cmath")
            return ["(", e.left, " - ", e.right, " * std::floor(", e.left, " / ", e.right, "))"]
        if self.rounds_alike(e):
            return ["(", e.left, " % ", *self._divisor(e, "modulo"), ")"]
        self.helpers.add(FLOOR_MOD)
        return [f"{FLOOR_MOD}(", e.left, ", ", *self._divisor(e, "modulo"), ")"]

    def _float_div(self, e: Any) -> list[Any]:
        kind = scalar_type(e.dtype) if _is_float(e) else "double"
        left = [e.left] if _is_float(e.left) else [f"static_cast<{kind}>(", e.left, ")"]
        return ["(", *left, " / ", *self._divisor(e, "division"), ")"]

    def _divisor(self, e: Any, what: str) -> list[Any]:
        """What a division or modulo divides by: an integer that may be 0 behind a check, if there is one."""
        if _is_float(e.right) or (type(e.right) is x.ConstInt and e.right.value != 0):
            return [e.right]
        return self._checked(e, what)

    def _power(self, e: Any) -> list[Any]:
        self.headers.add("cmath")
        text = ["std::pow(", e.left, ", ", e.right, ")"]
        return text if _is_float(e) else [f"static_cast<{scalar_type(e.dtype)}>(", *text, ")"]

    def _absolute(self, e: Any) -> list[Any]:
        self.headers |= {"cmath", "cstdlib"}
        return ["std::abs(", e.operand, ")"]

    def _exclusive(self, e: Any) -> list[Any]:
        return ["(static_cast<bool>(", e.left, ") != static_cast<bool>(", e.right, "))"]

    def floating(self, value: float) -> str:
        """A literal of type float."""
        value = as_float(value)
        if math.isfinite(value):
            return float_literal(value)
        self.headers.add("limits")
        limits = "std::numeric_limits<float>::"
        if math.isnan(value):
            return f"{limits}quiet_NaN()"
        return f"{limits}infinity()" if value > 0 else f"(-{limits}infinity())"

    # --- signs --------------------------------------------------------------------------------------------------------

    def rounds_alike(self, e: Any) -> bool:
        """Whether rounding down and rounding towards zero are the same for a division or modulo."""
        if isinstance(e.type, ScalarType) and e.type.dtype.is_unsigned_:
            return True
        return self.at_least_zero(e.left) and self.at_least_zero(e.right)

    def at_least_zero(self, e: Any, depth: int = 0) -> bool:
        """Whether an integer is sure not to be negative."""
        cls = type(e)
        if cls is x.ConstInt:
            return bool(e.value >= 0)
        if isinstance(e, Var):
            return e in self.not_negative or (isinstance(e.type, ScalarType) and e.type.dtype.is_unsigned_)
        if depth > _DEEPEST_PROOF:
            return False
        if cls in (x.Add, x.Mul, x.FloorDiv, x.Min, x.BitAnd, x.BitShiftRight):
            return self.at_least_zero(e.left, depth + 1) and self.at_least_zero(e.right, depth + 1)
        if cls is x.Max:
            return self.at_least_zero(e.left, depth + 1) or self.at_least_zero(e.right, depth + 1)
        if cls is x.FloorMod:  # has the sign of the divisor
            return self.at_least_zero(e.right, depth + 1)
        if cls is x.Cast:
            return bool(e.dtype.is_int_ and e.dtype.get_bit() == 64) and self.at_least_zero(e.operand, depth + 1)
        return cls is Call and e.op.name in (
            "tensor.dim",
            "system.available_cluster_count",
            "system.available_aiv_count",
        )


_SPECIAL: dict[type, Callable[[CppExpressions, Any], list[Any]]] = {
    x.Min: CppExpressions._extremum,
    x.Max: CppExpressions._extremum,
    x.FloorDiv: CppExpressions._floor_div,
    x.FloorMod: CppExpressions._floor_mod,
    x.FloatDiv: CppExpressions._float_div,
    x.Pow: CppExpressions._power,
    x.Abs: CppExpressions._absolute,
    x.Xor: CppExpressions._exclusive,
}


def _is_float(e: Any) -> bool:
    return isinstance(e.type, ScalarType) and e.type.dtype.is_float_


# --- literals ---------------------------------------------------------------------------------------------------------


def integer(value: int) -> str:
    """An integer literal. The lowest number has none in C++."""
    return str(value) if value != -(2**63) else "(-9223372036854775807 - 1)"


def float_literal(value: float) -> str:
    """A finite float as a literal of type float that is read back as the nearest float: ``0.5f``, ``1e-07f``."""
    nearest = as_float(value)
    shortest = next(t for t in (f"{nearest:.{digits}g}" for digits in range(1, 18)) if as_float(float(t)) == nearest)
    return f"{float(shortest)!r}f"


def as_float(value: float) -> float:
    """The nearest 32-bit float, which may be infinite."""
    try:
        return float(struct.unpack("f", struct.pack("f", value))[0])
    except OverflowError:
        return math.copysign(math.inf, value)


def half_bits(value: float, dtype: DataType) -> int:
    """The bits of a 16-bit float."""
    if dtype is DataType.FP16:
        return int.from_bytes(struct.pack("<e", value), "little")
    bits: int = struct.unpack("<I", struct.pack("<f", value))[0]
    if value != value:
        return 0x7FC0
    return (bits + 0x7FFF + (bits >> 16 & 1)) >> 16 & 0xFFFF  # to the nearest, ties to even


__all__ = [
    "ELEMENTS",
    "HELPERS",
    "SCALARS",
    "CppExpressions",
    "as_float",
    "float_literal",
    "half_bits",
    "integer",
    "unchecked",
]
