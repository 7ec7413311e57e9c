"""Packed strides, canonical views, layouts from strides, and the communicator's offsets."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pypto import ir
from pypto.ir import comm_layout
from pypto.ir import tensor_view_semantics as tvs
from pypto.ir.type import extent_equal

S = ir.Span.unknown()
L = ir.TensorLayout


def var(name):
    return ir.Var(name, ir.ScalarType(ir.INDEX), S)


def strides(shape, layout):
    return [s.value for s in tvs.build_logical_strides_from_layout(shape, layout)]


def test_it_is_a_name_of_ir():
    assert ir.tensor_view_semantics is tvs
    assert ir.comm_layout is comm_layout


@pytest.mark.parametrize("layout", [L.ND, L.MX_A_ZZ, L.MX_B_NN])
def test_row_major(layout):
    assert strides([2, 40, 64], layout) == [2560, 64, 1]
    assert strides([7], layout) == [1]
    assert strides([], layout) == []


def test_dn():
    assert strides([2, 40, 64], L.DN) == [2560, 1, 40]
    assert strides([48, 80], L.DN) == [1, 48]
    assert strides([3, 2, 40, 64], L.DN) == [5120, 2560, 1, 40]
    for shape in ([], [4]):
        with pytest.raises(ValueError, match="rank >= 2"):
            strides(shape, L.DN)


def test_nz_has_no_strides():
    with pytest.raises(ValueError, match="NZ"):
        strides([4, 4], L.NZ)


@given(st.lists(st.integers(1, 9), min_size=1, max_size=5))
def test_nd_strides_are_those_of_a_c_ordered_array(shape):
    got = strides(shape, L.ND)
    indices = np.indices(shape).reshape(len(shape), -1)
    assert np.array_equal(np.array(got) @ indices, np.arange(np.prod(shape)))
    assert tvs.check_canonical_view(shape, got, L.ND, relaxed_symbolic=False) == (True, "")


@given(st.lists(st.integers(1, 9), min_size=2, max_size=5))
def test_dn_strides_are_those_of_the_transposed_array(shape):
    *outer, rows, columns = shape
    *outer_strides, column_stride, row_stride = strides([*outer, columns, rows], L.ND)
    assert strides(shape, L.DN) == [*outer_strides, row_stride, column_stride]


def test_symbolic_products_and_their_dtype():
    n, m = var("n"), var("m")
    outer, inner, one = tvs.build_logical_strides_from_layout([4, n, m], L.ND)
    assert one.value == 1
    assert inner is m
    assert type(outer) is ir.Mul
    assert outer.dtype is ir.INDEX
    assert outer.left is m  # stride[i] = stride[i+1] * shape[i+1]
    assert outer.right is n
    folded = tvs.build_logical_strides_from_layout([4, 2, n, 8, 1], L.ND)
    assert [s.value for s in folded[2:]] == [8, 1, 1]
    assert extent_equal(folded[1], 8 * n)
    retyped = tvs.build_logical_strides_from_layout([4, ir.ConstInt(8, ir.INT64, S)], L.ND)
    assert (retyped[0].value, retyped[0].dtype) == (8, ir.INDEX)


def test_an_overflowing_product_stays_symbolic():
    big = 2**62
    outer = tvs.build_logical_strides_from_layout([4, big, 4], L.ND)[0]
    assert type(outer) is ir.Mul
    assert {outer.left.value, outer.right.value} == {4, big}


def test_derive_layout():
    n = var("n")
    assert tvs.derive_layout_from_strides([4, 8], [8, 1]) is L.ND
    assert tvs.derive_layout_from_strides([4, 8], [1, 4]) is L.DN
    assert tvs.derive_layout_from_strides([1, 1], [1, 1]) is L.ND
    assert tvs.derive_layout_from_strides([4, 8], [16, 2]) is None
    assert tvs.derive_layout_from_strides([4, 8], [n, n]) is None
    assert tvs.derive_layout_from_strides([8], [1]) is L.ND
    assert tvs.derive_layout_from_strides([8], [2]) is None


@pytest.mark.parametrize(
    ("shape", "stride", "layout", "reason"),
    [
        ([4, 8], [8, 1], L.NZ, "NZ"),
        ([4, 8], [], L.ND, "empty"),
        ([4, 8], [1], L.ND, "rank"),
        ([4, 8], [8, 2], L.ND, "innermost"),
        ([4, 8], [2, 4], L.DN, "innermost"),
        ([4, 8], [7, 1], L.ND, "smaller than packed"),
        ([4, 8], [1, 3], L.DN, "smaller than packed"),
        ([2, 4, 8], [31, 8, 1], L.ND, "smaller than packed"),
        ([4], [1], L.DN, "rank >= 2"),
    ],
)
def test_faults(shape, stride, layout, reason):
    ok, text = tvs.check_canonical_view(shape, stride, layout)
    assert not ok
    assert reason in text
    assert not tvs.is_canonical_view(shape, stride, layout)


@pytest.mark.parametrize(
    ("shape", "stride", "layout"),
    [
        ([4, 8], [8, 1], L.ND),
        ([4, 8], [16, 1], L.ND),
        ([4, 8], [1, 4], L.DN),
        ([4, 8], [1, 6], L.DN),
        ([2, 4, 8], [64, 8, 1], L.ND),
        ([8], [1], L.ND),
    ],
)
def test_canonical_views_may_be_padded(shape, stride, layout):
    assert tvs.check_canonical_view(shape, stride, layout, relaxed_symbolic=False) == (True, "")


def test_symbolic_strides_are_accepted_when_relaxed():
    n, m = var("n"), var("m")
    assert tvs.is_canonical_view([4, 8], [n, 1], L.ND)
    assert not tvs.is_canonical_view([4, 8], [n, 1], L.ND, relaxed_symbolic=False)
    assert tvs.is_canonical_view([4, n], [n, 1], L.ND, relaxed_symbolic=False)
    assert not tvs.is_canonical_view([4, n], [m, 1], L.ND, relaxed_symbolic=False)
    assert not tvs.is_canonical_view([4, n], [n, n], L.ND)
    # a stride that is surely too small is reported, even beside one that nobody can tell
    ok, reason = tvs.check_canonical_view([2, 4, 8], [n, 7, 1], L.ND, relaxed_symbolic=False)
    assert not ok
    assert "smaller than packed" in reason


def test_canonicalize_view():
    assert tvs.canonicalize_view([4, 8], L.DN) == ir.TensorView([1, 4], L.DN)


def test_compute_shape_product():
    assert tvs.compute_shape_product([2, 3, 4]) == 24
    assert tvs.compute_shape_product([]) == 1
    assert tvs.compute_shape_product([2, var("n")]) == -1


def test_comm_layout():
    assert (comm_layout.RANK_ID_OFFSET, comm_layout.RANK_NUM_OFFSET) == (16, 20)
    assert (comm_layout.WINDOWS_IN_OFFSET, comm_layout.WINDOWS_OUT_OFFSET) == (32, 544)
    assert (comm_layout.WINDOW_SLOT_STRIDE, comm_layout.COMM_CTX_SIZE) == (8, 1056)
    # 64 slots of either kind fit without overlap
    assert comm_layout.WINDOWS_IN_OFFSET + 64 * comm_layout.WINDOW_SLOT_STRIDE == comm_layout.WINDOWS_OUT_OFFSET
    assert comm_layout.WINDOWS_OUT_OFFSET + 64 * comm_layout.WINDOW_SLOT_STRIDE == comm_layout.COMM_CTX_SIZE
