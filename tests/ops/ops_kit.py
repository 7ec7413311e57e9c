"""Small helpers of the op tests: operands as variables, run-time values with poison, and one call of a reference."""

from __future__ import annotations

import numpy as np

import pypto.ops
from pypto.ir.dtype import DataType
from pypto.ir.enums import TensorLayout
from pypto.ir.expr import Var
from pypto.ir.type import ScalarType, TensorType, TensorView, TileType, TileView
from pypto.ops.numpy_types import numpy_dtype
from pypto.ops.registry import REGISTRY
from pypto.ops.surface import IR_NAMESPACES, NAMESPACES
from pypto.ops.values import ArrayValue, Buffer, EvalContext

D = DataType
pl = NAMESPACES["pl"]
pl_tensor = NAMESPACES["tensor"]
pl_tile = NAMESPACES["tile"]
ir_tensor = IR_NAMESPACES["tensor"]
ir_tile = IR_NAMESPACES["tile"]

assert pypto.ops  # importing it registers the catalogue


def tensor(shape, dtype=D.FP32, valid=None, name="x"):
    view = None if valid is None else TensorView(None, TensorLayout.ND, valid)
    return Var(name, TensorType(shape, dtype, None, view))


def tile(shape, dtype=D.FP32, valid=None, space=None, name="t", **view):
    tile_view = TileView(valid, **view) if valid is not None or view else None
    return Var(name, TileType(shape, dtype, None, tile_view, space))


def scalar(dtype, name="s"):
    return Var(name, ScalarType(dtype))


def shape_of(call):
    """Shape of a result type: ints, or the name of a variable."""
    return [_show(e) for e in call.type.shape]


def valid_of(call):
    """Valid region of a result type."""
    return [_show(e) for e in call.type.valid_extents]


def _show(e):
    value = getattr(e, "value", None)
    return value if isinstance(value, int) else getattr(e, "name_hint", None) or e.as_python(format=False)


def value(data, dtype=None, valid=None, undefined=()):
    """A run-time value: garbage and "undefined" outside ``valid``, and at the ``undefined`` positions."""
    array = np.array(data)
    array = array.astype(numpy_dtype(dtype)) if dtype is not None else array
    known = np.ones(array.shape, bool)
    if valid is not None:
        known[...] = False
        known[tuple(slice(0, v) for v in valid)] = True
    for position in undefined:
        known[position] = False
    if not known.all():
        if array.dtype.kind in "iu":
            array[~known] = np.array(0x5A).astype(array.dtype)
        else:
            array[~known] = np.array(np.nan).astype(array.dtype)
    buffer = Buffer(array)
    if not known.all():
        buffer.ensure_mask()
        buffer.mask_of(array)[...] = known
    return ArrayValue(array, buffer, valid)


def run(call, *values):
    """The reference semantics of a call on run-time values."""
    context = EvalContext()
    context.type = call.type
    return REGISTRY[call.op.name].reference(context, *values, **call.kwargs)


def check(result, expected, valid=None, undefined=(), rtol=0.0):
    """The result equals ``expected`` (its valid region), and is undefined exactly at ``undefined``."""
    expected = np.asarray(expected)
    want = tuple(valid) if valid is not None else expected.shape
    assert tuple(result.valid) == want
    window = tuple(slice(0, v) for v in want)
    known = np.ones(want, bool)
    for position in undefined:
        known[position] = False
    mask = result.valid_mask()
    np.testing.assert_array_equal(np.ones(want, bool) if mask is None else mask, known)
    have = np.asarray(result.valid_data()).astype(np.float64)[known]
    np.testing.assert_allclose(have, expected[window].astype(np.float64)[known], rtol=rtol)
    outside = np.ones(result.shape, bool)
    outside[window] = False
    if outside.any():
        assert result.mask is not None and not result.mask[outside].any(), "elements outside the valid region are known"


def random(shape, seed=0, low=-4.0, high=4.0, dtype=np.float32):
    return np.random.default_rng(seed).uniform(low, high, shape).astype(dtype)


def integers(shape, low, high, seed=0, dtype=np.int32):
    return np.random.default_rng(seed).integers(low, high, shape).astype(dtype)
