"""DataType: one table row an element type."""

import copy
import pickle

import pytest

import pypto
from pypto.ir.dtype import BY_NAME, DataType

# name, code, bits, text, C type, (float, signed, unsigned)
ROWS = [
    ("BOOL", 0x00, 1, "bool", "bool", "none"),
    ("INT4", 0x10, 4, "int4", "unknown", "signed"),
    ("INT8", 0x11, 8, "int8", "int8_t", "signed"),
    ("INT16", 0x12, 16, "int16", "int16_t", "signed"),
    ("INT32", 0x13, 32, "int32", "int32_t", "signed"),
    ("INT64", 0x14, 64, "int64", "int64_t", "signed"),
    ("INDEX", 0x15, 64, "index", "int64_t", "signed"),
    ("UINT4", 0x20, 4, "uint4", "unknown", "unsigned"),
    ("UINT8", 0x21, 8, "uint8", "uint8_t", "unsigned"),
    ("UINT16", 0x22, 16, "uint16", "uint16_t", "unsigned"),
    ("UINT32", 0x23, 32, "uint32", "uint32_t", "unsigned"),
    ("UINT64", 0x24, 64, "uint64", "uint64_t", "unsigned"),
    ("FP4", 0x30, 4, "fp4", "float4_e2m1x2_t", "float"),
    ("FP8E4M3FN", 0x31, 8, "fp8e4m3fn", "float8_e4m3_t", "float"),
    ("FP8E5M2", 0x32, 8, "fp8e5m2", "float8_e5m2_t", "float"),
    ("FP16", 0x33, 16, "fp16", "half", "float"),
    ("FP32", 0x34, 32, "fp32", "float", "float"),
    ("FP8E8M0", 0x36, 8, "fp8e8m0", "float8_e8m0_t", "float"),
    ("BF16", 0x40, 16, "bfloat16", "bfloat16_t", "float"),
    ("HF4", 0x41, 4, "hf4", "unknown", "float"),
    ("HF8", 0x42, 8, "hf8", "unknown", "float"),
    ("TASK_ID", 0x50, 64, "task_id", "unknown", "none"),
]


def test_the_table_has_all_rows():
    assert sorted(BY_NAME) == sorted(row[0] for row in ROWS)


@pytest.mark.parametrize(("name", "code", "bits", "text", "c_type", "category"), ROWS)
def test_row(name, code, bits, text, c_type, category):
    dtype = getattr(DataType, name)
    assert (dtype.code(), dtype.get_bit(), dtype.get_byte()) == (code, bits, (bits + 7) // 8)
    assert dtype.to_string() == str(dtype) == repr(dtype) == text
    assert dtype.to_c_type_string() == c_type
    assert dtype.is_float() is (category == "float")
    assert dtype.is_signed_int() is (category == "signed")
    assert dtype.is_unsigned_int() is (category == "unsigned")
    assert dtype.is_int() is (category in ("signed", "unsigned"))


def test_equality_and_hash():
    dtypes = [getattr(DataType, row[0]) for row in ROWS]
    assert len(set(dtypes)) == len(dtypes)
    assert DataType.INDEX != DataType.INT64
    assert hash(DataType.FP32) == DataType.FP32.code()


def test_defaults():
    assert DataType.DEFAULT_CONST_INT is DataType.INT64
    assert DataType.DEFAULT_CONST_FLOAT is DataType.FP32


def test_copies_are_the_instance():
    for dtype in (pickle.loads(pickle.dumps(DataType.BF16)), copy.copy(DataType.BF16), copy.deepcopy(DataType.BF16)):
        assert dtype is DataType.BF16


def test_immutable():
    with pytest.raises(AttributeError):
        DataType.FP32._bits = 64


def test_shortcuts():
    for row in ROWS:
        name = row[0]
        if name == "TASK_ID":
            assert not hasattr(pypto, "DT_TASK_ID")
            assert not hasattr(pypto.ir, "TASK_ID")
        else:
            assert getattr(pypto, f"DT_{name}") is getattr(DataType, name)
            assert getattr(pypto.ir, name) is getattr(DataType, name)
    assert pypto.DataType is DataType
