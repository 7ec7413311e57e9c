"""Integers as the analyzers see them: floor division, greatest common divisors, and the 64-bit range."""

from __future__ import annotations

import math

from ..diag.errors import InternalError, internal_check
from ..ir.dtype import DataType

INT64_MIN = -(2**63)
INT64_MAX = 2**63 - 1


def fits_int64(value: int) -> bool:
    """Whether ``value`` is a signed 64-bit integer."""
    return INT64_MIN <= value <= INT64_MAX


def floordiv(x: int, y: int) -> int:
    """``x // y``, rounded towards minus infinity; for the compiler's own use, so bad operands are its bug."""
    internal_check(y != 0, "floordiv: division by zero")
    if x == INT64_MIN and y == -1:
        raise InternalError("floordiv: overflow in INT64_MIN // -1")
    return x // y


def floormod(x: int, y: int) -> int:
    """``x % y``; the result has the sign of ``y``."""
    internal_check(y != 0, "floormod: division by zero")
    return x % y


def gcd(a: int, b: int) -> int:
    """The greatest common divisor, never negative; 0 is the neutral element."""
    return math.gcd(a, b)


def lcm(a: int, b: int) -> int:
    """The least common multiple, never negative."""
    return abs(a // math.gcd(a, b) * b) if a and b else 0


def extended_euclidean(a: int, b: int) -> tuple[int, int, int]:
    """``(g, x, y)`` with ``a*x + b*y == g``, the greatest common divisor."""
    r0, r1, x0, x1, y0, y1 = a, b, 1, 0, 0, 1
    while r1:
        q = r0 // r1
        r0, r1 = r1, r0 - q * r1
        x0, x1 = x1, x0 - q * x1
        y0, y1 = y1, y0 - q * y1
    return (-r0, -x0, -y0) if r0 < 0 else (r0, x0, y0)


def int_range(dtype: DataType) -> tuple[int, int] | None:
    """The values of a dtype: INDEX as a signed 64-bit integer, BOOL as 0 and 1; None if it is no integer type."""
    if dtype is DataType.BOOL:
        return 0, 1
    bits = dtype.get_bit()
    if dtype.is_unsigned_:
        return 0, 2**bits - 1
    return (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if dtype.is_signed_ else None


def wrap_int64(value: int) -> int:
    """The low 64 bits of ``value`` as a signed integer."""
    return (value - INT64_MIN) % 2**64 + INT64_MIN


def power_of_two_exponent(value: int) -> int | None:
    """``k`` with ``value == 2**k``; None if there is none."""
    return value.bit_length() - 1 if value > 0 and not value & (value - 1) else None


__all__ = [
    "INT64_MAX",
    "INT64_MIN",
    "extended_euclidean",
    "fits_int64",
    "floordiv",
    "floormod",
    "gcd",
    "int_range",
    "lcm",
    "power_of_two_exponent",
    "wrap_int64",
]
