"""Tensors and tiles in memory, as generated code sees them, and the C++ types of their elements."""

from __future__ import annotations

from collections.abc import Sequence

from ...ir.dtype import DataType

# Storage type -> the type that arithmetic runs in. What is narrower than 32 bits computes as float, as NumPy does.
_TYPES: dict[DataType, tuple[str, str]] = {
    DataType.FP32: ("float", "float"),
    DataType.FP16: ("pto::fp16", "float"),
    DataType.BF16: ("pto::bf16", "float"),
    DataType.INT8: ("int8_t", "int8_t"),
    DataType.INT16: ("int16_t", "int16_t"),
    DataType.INT32: ("int32_t", "int32_t"),
    DataType.INT64: ("int64_t", "int64_t"),
    DataType.INDEX: ("int64_t", "int64_t"),
    DataType.UINT8: ("uint8_t", "uint8_t"),
    DataType.UINT16: ("uint16_t", "uint16_t"),
    DataType.UINT32: ("uint32_t", "uint32_t"),
    DataType.UINT64: ("uint64_t", "uint64_t"),
    DataType.BOOL: ("bool", "bool"),
    DataType.FP8E4M3FN: ("pto::fp8e4m3fn", "float"),
    DataType.FP8E5M2: ("pto::fp8e5m2", "float"),
    DataType.FP8E8M0: ("pto::fp8e8m0", "float"),
}


class Unsupported(Exception):
    """Something in a kernel that has no native form: the interpreter runs such a kernel."""


def storage(dtype: DataType) -> str:
    """The C++ type of an element in memory."""
    found = _TYPES.get(dtype)
    if found is None:
        raise Unsupported(f"elements of type {dtype}")
    return found[0]


def working(dtype: DataType) -> str:
    """The C++ type that an element is computed in."""
    storage(dtype)
    return _TYPES[dtype][1]


def is_narrow_float(dtype: DataType) -> bool:
    """Whether a value has to be rounded to its type after each operation."""
    return working(dtype) == "float" != storage(dtype)


# An extent or stride: a number, or the text of an expression.
Size = int | str


class Array:
    """Elements in memory.

    ``pointer``: the text of a pointer to the first one; ``strides`` in elements; ``valid``: the part of the shape that
    is meant; ``root``: what it lies in, the same object for all that may share memory.
    """

    __slots__ = ("dtype", "pointer", "root", "shape", "strides", "valid")

    def __init__(
        self,
        dtype: DataType,
        pointer: str,
        shape: Sequence[Size],
        strides: Sequence[Size],
        valid: Sequence[Size],
        root: object,
    ) -> None:
        self.dtype = dtype
        self.pointer = pointer
        self.shape = tuple(shape)
        self.strides = tuple(strides)
        self.valid = tuple(valid)
        self.root = root

    def seen(
        self,
        *,
        pointer: str | None = None,
        dtype: DataType | None = None,
        shape: Sequence[Size] | None = None,
        strides: Sequence[Size] | None = None,
        valid: Sequence[Size] | None = None,
    ) -> Array:
        """The same memory, seen in another way."""
        return Array(
            self.dtype if dtype is None else dtype,
            self.pointer if pointer is None else pointer,
            self.shape if shape is None else shape,
            self.strides if strides is None else strides,
            self.valid if valid is None else valid,
            self.root,
        )

    @property
    def is_packed(self) -> bool:
        """Whether rows follow each other without a gap, for certain."""
        return self.strides == packed(self.shape)

    def same_place(self, other: Array) -> bool:
        """Whether both are the same elements, for certain."""
        return (
            self.pointer == other.pointer
            and self.strides == other.strides
            and self.shape == other.shape
            and self.dtype is other.dtype
        )


def packed(shape: Sequence[Size]) -> tuple[Size, ...]:
    """The strides of rows without gaps."""
    strides: list[Size] = []
    step: Size = 1
    for extent in reversed(shape):
        strides.append(step)
        step = times(step, extent)
    return tuple(reversed(strides))


def times(a: Size, b: Size) -> Size:
    """A product."""
    if isinstance(a, int) and isinstance(b, int):
        return a * b
    if 1 in (a, b):
        return b if a == 1 else a
    return 0 if 0 in (a, b) else f"({a}) * ({b})"


def offset(indices: Sequence[Size], strides: Sequence[Size]) -> Size:
    """The distance of an element from the first one."""
    total: list[str] = []
    number = 0
    for index, stride in zip(indices, strides, strict=True):
        step = times(index, stride)
        if isinstance(step, int):
            number += step
        else:
            total.append(step)
    if number or not total:
        if not total:
            return number
        total.append(str(number))
    return " + ".join(total)


def product(sizes: Sequence[Size]) -> Size:
    found: Size = 1
    for size in sizes:
        found = times(found, size)
    return found


__all__ = [
    "Array",
    "Size",
    "Unsupported",
    "is_narrow_float",
    "offset",
    "packed",
    "product",
    "storage",
    "times",
    "working",
]
