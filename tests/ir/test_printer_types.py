"""Printed types, views and memory references (spec 16.4)."""

import pytest

from pypto.ir import type as t
from pypto.ir.dtype import DataType
from pypto.ir.enums import CompactMode, MemorySpace, PadValue, TensorLayout, TileLayout
from pypto.ir.expr import ConstInt, MemRef, Var, WindowBuffer
from pypto.ir.printer import python_print, python_print_type

INDEX, INT64, FP32, FP16 = DataType.INDEX, DataType.INT64, DataType.FP32, DataType.FP16
N = Var("N", t.ScalarType(INDEX))
VEC, MAT, ACC = MemorySpace.Vec, MemorySpace.Mat, MemorySpace.Acc


def text(kind, **options):
    return python_print_type(kind, format=False, **options)


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (t.ScalarType(INT64), "pl.Scalar[pl.INT64]"),
        (t.ScalarType(DataType.TASK_ID), "pl.Scalar[pl.TASK_ID]"),
        (t.TensorType([64, N], FP16), "pl.Tensor[[64, N], pl.FP16]"),
        (t.TensorType([], FP32), "pl.Tensor[[], pl.FP32]"),
        (t.DistributedTensorType([64], FP32), "pld.DistributedTensor[[64], pl.FP32]"),
        (t.TileType([16, 32], FP32), "pl.Tile[[16, 32], pl.FP32]"),
        (t.TileType([16, 32], FP32, memory_space=VEC), "pl.Tile[[16, 32], pl.FP32, pl.Mem.Vec]"),
        (t.ArrayType(DataType.INT32, 8), "pl.Array[8, pl.INT32]"),
        (t.TupleType([t.ScalarType(INDEX), t.ScalarType(FP32)]), "pl.Tuple[pl.Scalar[pl.INDEX], pl.Scalar[pl.FP32]]"),
        (t.TupleType([]), "pl.Tuple[()]"),
        (t.PtrType(), "pl.Ptr"),
        (t.MemRefType(), "pl.MemRefType"),
        (t.WindowBufferType(), "pld.WindowBufferType"),
        (t.CommCtxType(), "pld.CommCtxType"),
        (t.PrefetchAsyncContextType(), "pl.PrefetchAsyncContext"),
        (t.AsyncEventType(), "pl.AsyncEvent"),
        (t.AsyncSessionType(), "pl.AsyncSession"),
        (t.UnknownType(), "pl.UnknownType"),
    ],
)
def test_types(kind, expected):
    assert text(kind) == expected
    assert python_print(kind, format=False) == expected
    assert str(kind) == expected


def test_another_prefix():
    kind = t.TileType([8, 8], FP32, memory_space=VEC, tile_view=t.TileView(pad=PadValue.zero))
    assert text(kind, prefix="q") == "q.Tile[[8, 8], q.FP32, q.Mem.Vec, q.TileView(pad=q.PadValue.zero)]"
    assert text(t.DistributedTensorType([4], FP32), prefix="q") == "pld.DistributedTensor[[4], q.FP32]"


# --- dims -------------------------------------------------------------------------------------------------------------


def test_a_constant_dim_is_a_bare_number_whatever_its_dtype():
    assert text(t.TensorType([ConstInt(4, INT64), ConstInt(8, DataType.INT32)], FP32)) == "pl.Tensor[[4, 8], pl.FP32]"


def test_a_composite_dim_has_typed_constants():
    assert text(t.TensorType([N + 1, 32], FP32)) == "pl.Tensor[[N + pl.const(1, pl.INDEX), 32], pl.FP32]"


def test_distinct_dims_with_one_hint():
    assert text(t.TensorType([N, Var("N", N.type), N], FP32)) == "pl.Tensor[[N, N_1, N], pl.FP32]"


# --- tensor views -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("view", "expected"),
    [
        (t.TensorView([1, 48], TensorLayout.DN), "pl.TensorView(stride=[1, 48], layout=pl.TensorLayout.DN)"),
        (
            t.TensorView([80, 1], TensorLayout.ND, [N, 80], PadValue.zero),
            "pl.TensorView(valid_shape=[N, 80], stride=[80, 1], layout=pl.TensorLayout.ND, pad=pl.PadValue.zero)",
        ),
        (
            t.TensorView(None, TensorLayout.ND, [4, 80]),
            "pl.TensorView(valid_shape=[4, 80], stride=[], layout=pl.TensorLayout.ND)",
        ),
        (
            t.TensorView(None, TensorLayout.ND, pad=PadValue.min),
            "pl.TensorView(stride=[], layout=pl.TensorLayout.ND, pad=pl.PadValue.min)",
        ),
    ],
)
def test_tensor_view(view, expected):
    assert text(t.TensorType([48, 80], DataType.BF16, tensor_view=view)) == f"pl.Tensor[[48, 80], pl.BF16, {expected}]"


def test_an_empty_stored_tensor_view_stays_visible():
    kind = t.TensorType([4], FP32)
    object.__setattr__(kind, "tensor_view", t.TensorView())
    assert text(kind) == "pl.Tensor[[4], pl.FP32, pl.TensorView()]"


# --- tile views -------------------------------------------------------------------------------------------------------


def tile(view, shape=(8, 8), space=VEC):
    return t.TileType(list(shape), FP32, tile_view=view, memory_space=space)


def test_partial_valid_shape():
    assert text(tile(t.TileView([5, 8]))) == "pl.Tile[[8, 8], pl.FP32, pl.Mem.Vec, pl.TileView(valid_shape=[5, 8])]"


def test_each_field_prints_where_it_differs_from_the_implicit_view():
    view = t.TileView(
        [N, 8], [16, 1], N * 4, TileLayout.col_major, TileLayout.row_major, 1024, PadValue.max, CompactMode.normal
    )
    assert text(tile(view)) == (
        "pl.Tile[[8, 8], pl.FP32, pl.Mem.Vec, pl.TileView(valid_shape=[N, 8], stride=[16, 1], "
        "start_offset=N * pl.const(4, pl.INDEX), blayout=pl.TileLayout.col_major, slayout=pl.TileLayout.row_major, "
        "fractal=1024, pad=pl.PadValue.max, compact=pl.CompactMode.normal)]"
    )


def test_the_implicit_view_depends_on_the_space():
    view = t.TileView(blayout=TileLayout.col_major, slayout=TileLayout.row_major, fractal=1024, pad=PadValue.zero)
    assert text(tile(view, space=ACC)) == "pl.Tile[[8, 8], pl.FP32, pl.Mem.Acc, pl.TileView(pad=pl.PadValue.zero)]"


def test_a_column_vector_needs_no_view():
    view = t.TileView(blayout=TileLayout.col_major)
    assert text(tile(view, shape=(24, 1))) == "pl.Tile[[24, 1], pl.FP32, pl.Mem.Vec]"


def test_explicit_layout_of_every_tile():
    layout = "blayout=pl.TileLayout.row_major, slayout=pl.TileLayout.none_box, fractal=512"
    assert text(tile(None), explicit_layout=True) == f"pl.Tile[[8, 8], pl.FP32, pl.Mem.Vec, pl.TileView({layout})]"
    assert text(tile(t.TileView([5, 8])), explicit_layout=True) == (
        f"pl.Tile[[8, 8], pl.FP32, pl.Mem.Vec, pl.TileView(valid_shape=[5, 8], {layout})]"
    )
    assert text(tile(None, space=MAT), explicit_layout=True) == (
        "pl.Tile[[8, 8], pl.FP32, pl.Mem.Mat, pl.TileView(blayout=pl.TileLayout.col_major, "
        "slayout=pl.TileLayout.row_major, fractal=512)]"
    )


def test_explicit_layout_names_the_window_buffer():
    kind = t.DistributedTensorType([64], FP32, WindowBuffer(Var("win", t.PtrType()), ConstInt(256, INT64)))
    assert text(kind) == "pld.DistributedTensor[[64], pl.FP32]"
    assert text(kind, explicit_layout=True) == 'pld.DistributedTensor[[64], pl.FP32, "window_buffer=win"]'


# --- memory references ------------------------------------------------------------------------------------------------


def memref_text(ref):
    kind = text(t.TileType([8, 8], FP32, memref=ref, memory_space=VEC))
    assert kind.startswith("pl.Tile[[8, 8], pl.FP32, ") and kind.endswith(", pl.Mem.Vec]")
    return kind[len("pl.Tile[[8, 8], pl.FP32, ") : -len(", pl.Mem.Vec]")]


def test_declared_memory():
    assert memref_text(MemRef("ping")) == 'pl.MemRef("ping")'
    assert memref_text(MemRef("pp", slots=2)) == 'pl.MemRef("pp", slots=2)'
    assert memref_text(MemRef("pp", slots=2)[1]) == 'pl.MemRef("pp", slots=2)[1]'


def test_resolved_memory_without_a_definition_is_quoted():
    assert memref_text(MemRef(VEC, 4096, 256, 3)) == 'pl.MemRef("mem_vec_3", pl.const(4096, pl.INT64), 256)'
    assert memref_text(MemRef(4096, 256, 3)) == 'pl.MemRef("mem_3", 4096, 256)'


def test_slot_index_and_offset_are_ordinary_expressions():
    i = Var("i", t.ScalarType(INDEX))
    ref = MemRef(Var("pp", t.PtrType()), i % 2 * 2048, 2048, slots=2, slot=i % 2)
    assert memref_text(ref) == 'pl.MemRef("pp", i % 2 * 2048, 2048, slots=2)[i % 2]'


def test_the_view_of_a_tensor_comes_before_its_memory_and_that_of_a_tile_behind():
    ref = MemRef(MemorySpace.DDR, 0, 64, 1)
    tensor = t.TensorType([4, 4], FP32, ref, t.TensorView([1, 4], TensorLayout.DN))
    assert text(tensor) == (
        "pl.Tensor[[4, 4], pl.FP32, pl.TensorView(stride=[1, 4], layout=pl.TensorLayout.DN), "
        'pl.MemRef("mem_ddr_1", pl.const(0, pl.INT64), 64)]'
    )
    kind = t.TileType([8, 8], FP32, MemRef("a"), t.TileView([5, 8]), VEC)
    assert text(kind) == ('pl.Tile[[8, 8], pl.FP32, pl.MemRef("a"), pl.Mem.Vec, pl.TileView(valid_shape=[5, 8])]')
