"""Element types: one table says what is true of each."""

from __future__ import annotations

from typing import Any, ClassVar

# name, code, bits, printed name, C type; the codes are stable: they appear in attributes and generated text.
_TABLE = (
    ("BOOL", 0x00, 1, "bool", "bool"),
    ("INT4", 0x10, 4, "int4", "unknown"),
    ("INT8", 0x11, 8, "int8", "int8_t"),
    ("INT16", 0x12, 16, "int16", "int16_t"),
    ("INT32", 0x13, 32, "int32", "int32_t"),
    ("INT64", 0x14, 64, "int64", "int64_t"),
    ("INDEX", 0x15, 64, "index", "int64_t"),
    ("UINT4", 0x20, 4, "uint4", "unknown"),
    ("UINT8", 0x21, 8, "uint8", "uint8_t"),
    ("UINT16", 0x22, 16, "uint16", "uint16_t"),
    ("UINT32", 0x23, 32, "uint32", "uint32_t"),
    ("UINT64", 0x24, 64, "uint64", "uint64_t"),
    ("FP4", 0x30, 4, "fp4", "float4_e2m1x2_t"),
    ("FP8E4M3FN", 0x31, 8, "fp8e4m3fn", "float8_e4m3_t"),
    ("FP8E5M2", 0x32, 8, "fp8e5m2", "float8_e5m2_t"),
    ("FP16", 0x33, 16, "fp16", "half"),
    ("FP32", 0x34, 32, "fp32", "float"),
    ("FP8E8M0", 0x36, 8, "fp8e8m0", "float8_e8m0_t"),
    ("BF16", 0x40, 16, "bfloat16", "bfloat16_t"),
    ("HF4", 0x41, 4, "hf4", "unknown"),
    ("HF8", 0x42, 8, "hf8", "unknown"),
    ("TASK_ID", 0x50, 64, "task_id", "unknown"),
)


class DataType:
    """An element type. The instances are the class attributes; compare them with ``==`` or ``is``."""

    __slots__ = (
        "_bits",
        "_c_type",
        "_code",
        "_name",
        "_text",
        "is_float_",
        "is_int_",
        "is_signed_",
        "is_unsigned_",
        "scalar_type_",
    )

    _bits: int
    _c_type: str
    _code: int
    _name: str
    _text: str
    is_float_: bool
    is_int_: bool
    is_signed_: bool
    is_unsigned_: bool
    scalar_type_: Any  # the one ScalarType of this dtype, made when first needed

    BOOL: ClassVar[DataType]
    INT4: ClassVar[DataType]
    INT8: ClassVar[DataType]
    INT16: ClassVar[DataType]
    INT32: ClassVar[DataType]
    INT64: ClassVar[DataType]
    INDEX: ClassVar[DataType]
    UINT4: ClassVar[DataType]
    UINT8: ClassVar[DataType]
    UINT16: ClassVar[DataType]
    UINT32: ClassVar[DataType]
    UINT64: ClassVar[DataType]
    FP4: ClassVar[DataType]
    FP8E4M3FN: ClassVar[DataType]
    FP8E5M2: ClassVar[DataType]
    FP16: ClassVar[DataType]
    FP32: ClassVar[DataType]
    FP8E8M0: ClassVar[DataType]
    BF16: ClassVar[DataType]
    HF4: ClassVar[DataType]
    HF8: ClassVar[DataType]
    TASK_ID: ClassVar[DataType]
    DEFAULT_CONST_INT: ClassVar[DataType]
    DEFAULT_CONST_FLOAT: ClassVar[DataType]

    def __init__(self, name: str, code: int, bits: int, text: str, c_type: str) -> None:
        signed, unsigned = 0x10 <= code <= 0x1F, 0x20 <= code <= 0x2F
        values: dict[str, Any] = {
            "_name": name,
            "_code": code,
            "_bits": bits,
            "_text": text,
            "_c_type": c_type,
            "is_float_": 0x30 <= code <= 0x4F,
            "is_signed_": signed,
            "is_unsigned_": unsigned,
            "is_int_": signed or unsigned,
            "scalar_type_": None,
        }
        for key, value in values.items():
            object.__setattr__(self, key, value)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"DataType is immutable: cannot set {name!r}")

    def __hash__(self) -> int:
        return self._code  # not the address, so that sets of dtypes have one order in every process

    @property
    def name(self) -> str:
        """The attribute name, as printed behind ``pl.``."""
        return self._name

    def get_bit(self) -> int:
        """Width in bits."""
        return self._bits

    def get_byte(self) -> int:
        """Width in bytes, rounded up."""
        return (self._bits + 7) // 8

    def to_string(self) -> str:
        """Lower-case name, for example ``bfloat16``."""
        return self._text

    def to_c_type_string(self) -> str:
        """C type name; ``"unknown"`` where C has none."""
        return self._c_type

    def code(self) -> int:
        """Stable numeric code."""
        return self._code

    def is_float(self) -> bool:
        """Whether it is a floating-point type of any width."""
        return self.is_float_

    def is_signed_int(self) -> bool:
        """Whether it is a signed integer; INDEX is one."""
        return self.is_signed_

    def is_unsigned_int(self) -> bool:
        """Whether it is an unsigned integer."""
        return self.is_unsigned_

    def is_int(self) -> bool:
        """Whether it is an integer; BOOL and TASK_ID are not."""
        return self.is_int_

    def __str__(self) -> str:
        return self._text

    __repr__ = __str__

    def __reduce__(self) -> str:
        return f"DataType.{self._name}"

    def __copy__(self) -> DataType:
        return self

    def __deepcopy__(self, memo: object) -> DataType:
        return self


BY_CODE: dict[int, DataType] = {}
BY_NAME: dict[str, DataType] = {}
BY_TEXT: dict[str, DataType] = {}
for _row in _TABLE:
    _dtype = DataType(*_row)
    setattr(DataType, _row[0], _dtype)
    BY_NAME[_row[0]] = BY_CODE[_row[1]] = BY_TEXT[_row[3]] = _dtype
DataType.DEFAULT_CONST_INT = DataType.INT64
DataType.DEFAULT_CONST_FLOAT = DataType.FP32
