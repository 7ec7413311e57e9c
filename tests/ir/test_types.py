"""Types and views: construction, canonical forms, structural equality and hash."""

import pickle

import pytest

from pypto import ir
from pypto.ir.views import boxed_alignment

S = ir.Span.unknown()
INDEX = ir.ScalarType(ir.INDEX)
Vec = ir.MemorySpace.Vec


def var(name="n"):
    return ir.Var(name, INDEX, S)


def values(extents):
    return [e.value for e in extents]


MARKERS = [
    ir.UnknownType,
    ir.PtrType,
    ir.WindowBufferType,
    ir.CommCtxType,
    ir.PrefetchAsyncContextType,
    ir.AsyncEventType,
    ir.AsyncSessionType,
]


@pytest.mark.parametrize("cls", MARKERS)
def test_markers(cls):
    assert cls() == cls() == cls.get()
    assert hash(cls()) == hash(cls())
    assert cls() != ir.ScalarType(ir.INT32)
    assert len({m() for m in MARKERS}) == len(MARKERS)


@pytest.mark.parametrize("cls", [ir.Type, ir.ShapedType])
def test_abstract_types_refuse(cls):
    with pytest.raises(TypeError, match="abstract"):
        cls()


def test_scalar_type():
    assert ir.ScalarType(ir.INT32) == ir.ScalarType(ir.INT32)
    assert ir.ScalarType(ir.INT64) != ir.ScalarType(ir.INDEX)
    assert ir.ScalarType(dtype=ir.DataType.TASK_ID).dtype is ir.DataType.TASK_ID
    with pytest.raises(TypeError, match="DataType"):
        ir.ScalarType("fp32")


def test_tuple_type():
    pair = ir.TupleType([INDEX, ir.TensorType([4], ir.FP32)])
    assert pair == ir.TupleType([INDEX, ir.TensorType([4], ir.FP32)])
    assert hash(pair) == hash(ir.TupleType([INDEX, ir.TensorType([4], ir.FP32)]))
    assert pair != ir.TupleType([INDEX])
    assert ir.TupleType([]).types == []
    with pytest.raises(TypeError):
        ir.TupleType([ir.FP32])


def test_types_are_immutable():
    for kind in (INDEX, ir.TupleType([INDEX]), ir.TensorType([4], ir.FP32), ir.TileType([4, 4], ir.FP32)):
        for name in ("dtype", "shape", "types", "memref", "tile_view", "memory_space", "other"):
            with pytest.raises(AttributeError):
                setattr(kind, name, None)
    with pytest.raises(TypeError):
        ir.TensorType([4], ir.FP32).shape.append(1)


# --- shapes -----------------------------------------------------------------------------------------------------------


def test_ints_become_index_constants_and_mix_with_expressions():
    n = var()
    kind = ir.TensorType([4, n, n + 1], ir.FP32)
    first = kind.shape[0]
    assert (type(first), first.value, first.dtype) == (ir.ConstInt, 4, ir.INDEX)
    assert not first.span.is_valid()
    assert kind.shape[1] is n


def test_dim_dtype_is_insignificant_for_static_dims():
    assert ir.TensorType([ir.ConstInt(4, ir.INT64, S)], ir.FP32) == ir.TensorType([4], ir.FP32)


def test_symbolic_dims_compare_by_identity_and_structure():
    n, m = var(), var()
    assert ir.TensorType([n], ir.FP32) == ir.TensorType([n], ir.FP32)
    assert ir.TensorType([n], ir.FP32) != ir.TensorType([m], ir.FP32)
    assert ir.TensorType([n * 2], ir.FP32) == ir.TensorType([n * 2], ir.FP32)
    assert hash(ir.TensorType([n * 2], ir.FP32)) == hash(ir.TensorType([n * 2], ir.FP32))
    assert ir.TensorType([n * 2], ir.FP32) != ir.TensorType([n + 2], ir.FP32)


def test_numpy_extents():
    np = pytest.importorskip("numpy")
    assert ir.TensorType([np.int64(4)], ir.FP32) == ir.TensorType([4], ir.FP32)


@pytest.mark.parametrize("bad", [True, 2.0, "4", None])
def test_extents_of_other_kinds_are_refused(bad):
    with pytest.raises(TypeError):
        ir.TensorType([bad], ir.FP32)


def test_the_callers_list_is_copied():
    shape = [4, 8]
    kind = ir.TensorType(shape, ir.FP32)
    shape.append(16)
    assert values(kind.shape) == [4, 8]


@pytest.mark.parametrize("shape", [[], [4, 3], [4, -2], [4, 0]])
@pytest.mark.parametrize("cls", [ir.TensorType, ir.TileType])
def test_packed_fp4(cls, shape):
    with pytest.raises(ValueError, match="^Packed FP4"):
        cls(shape, ir.FP4)
    with pytest.raises(ValueError, match="^Packed FP4"):
        cls([var()], ir.FP4)
    assert values(cls([3, 4], ir.FP4).shape) == [3, 4]


def test_shares_memref_with():
    base = ir.Var("m", ir.PtrType(), S)
    ref, twin = ir.MemRef(base, 0, 64), ir.MemRef(base, 0, 64)
    a = ir.TileType([4, 4], ir.FP32, ref, None, Vec)
    assert a.shares_memref_with(ir.TileType([2, 8], ir.FP32, ref, None, Vec))
    assert not a.shares_memref_with(ir.TileType([4, 4], ir.FP32, twin, None, Vec))
    assert not ir.TileType([4, 4], ir.FP32).shares_memref_with(ir.TileType([4, 4], ir.FP32))


def test_memrefs_do_not_take_part_in_type_equality():
    base = ir.Var("m", ir.PtrType(), S)
    a = ir.TensorType([4], ir.FP32, ir.MemRef(base, 0, 16))
    assert a == ir.TensorType([4], ir.FP32)
    assert hash(a) == hash(ir.TensorType([4], ir.FP32))


def test_arguments_of_the_wrong_kind():
    with pytest.raises(TypeError, match="memref"):
        ir.TensorType([4], ir.FP32, ir.TensorView([1], ir.TensorLayout.ND))
    with pytest.raises(TypeError, match="dtype"):
        ir.TensorType([4], "fp32")
    with pytest.raises(TypeError, match="memory_space"):
        ir.TileType([4, 4], ir.FP32, None, None, "Vec")
    with pytest.raises(TypeError, match="tile_view"):
        ir.TileType([4, 4], ir.FP32, None, ir.TensorView())


# --- tensors ----------------------------------------------------------------------------------------------------------


def test_tensor_view_defaults_and_required_layout():
    view = ir.TensorView()
    assert (list(view.stride), view.layout, list(view.valid_shape), view.pad) == (
        [],
        ir.TensorLayout.ND,
        [],
        ir.PadValue.null,
    )
    for arguments in ({"stride": [1]}, {"valid_shape": [1]}, {"pad": ir.PadValue.zero}):
        with pytest.raises(ValueError, match="layout is required"):
            ir.TensorView(**arguments)


def test_tensor_view_fields_are_assignable():
    view = ir.TensorView()
    view.stride = [8, 1]
    view.layout = ir.TensorLayout.DN
    view.valid_shape = [4, 4]
    view.pad = ir.PadValue.max
    assert view == ir.TensorView([8, 1], ir.TensorLayout.DN, [4, 4], ir.PadValue.max)
    assert view.stride[0].dtype is ir.INDEX
    with pytest.raises(TypeError):
        view.layout = "DN"


def test_tensor_view_equality_and_hash():
    a = ir.TensorView([8, 1], ir.TensorLayout.ND)
    assert a == ir.TensorView([8, 1], ir.TensorLayout.ND)
    assert hash(a) == hash(ir.TensorView([8, 1], ir.TensorLayout.ND))
    assert a != ir.TensorView([16, 1], ir.TensorLayout.ND)
    assert a != ir.TensorView([8, 1], ir.TensorLayout.DN)
    assert a != ir.TensorView([8, 1], ir.TensorLayout.ND, [4, 4])
    assert a != ir.TensorView([8, 1], ir.TensorLayout.ND, None, ir.PadValue.min)


def test_a_view_that_says_nothing_is_dropped():
    n = var()
    for valid in (None, [], [4, n]):
        view = ir.TensorView([], ir.TensorLayout.ND, valid)
        assert ir.TensorType([4, n], ir.FP32, None, view).tensor_view is None
    assert ir.TensorType([4, n], ir.FP32, None, ir.TensorView()) == ir.TensorType([4, n], ir.FP32)


def test_a_valid_shape_equal_to_the_shape_is_cleared():
    view = ir.TensorView([8, 1], ir.TensorLayout.ND, [4, 8])
    kind = ir.TensorType([4, 8], ir.FP32, None, view)
    assert list(kind.tensor_view.valid_shape) == []
    assert values(view.valid_shape) == [4, 8]
    assert values(kind.valid_extents) == [4, 8]


def test_views_that_say_something_are_kept():
    for view in (
        ir.TensorView([], ir.TensorLayout.DN),
        ir.TensorView([8, 1], ir.TensorLayout.ND),
        ir.TensorView([], ir.TensorLayout.ND, [2, 8]),
        ir.TensorView([], ir.TensorLayout.ND, None, ir.PadValue.zero),
    ):
        kind = ir.TensorType([4, 8], ir.FP32, tensor_view=view)
        assert kind.tensor_view == view
        assert kind != ir.TensorType([4, 8], ir.FP32)


def test_the_view_of_a_type_does_not_change_with_the_callers_view():
    view = ir.TensorView([8, 1], ir.TensorLayout.ND)
    kind = ir.TensorType([4, 8], ir.FP32, None, view)
    view.stride = [16, 1]
    assert values(kind.tensor_view.stride) == [8, 1]
    with pytest.raises(AttributeError, match="belongs to a type"):
        kind.tensor_view.stride = [16, 1]


def test_tensors_lie_in_global_memory():
    assert ir.TensorType([4], ir.FP32).memory_space is ir.MemorySpace.DDR


def test_distributed_tensor():
    buffer = ir.WindowBuffer(ir.Var("w", ir.PtrType(), S), ir.ConstInt(64, ir.INT64, S))
    plain = ir.DistributedTensorType([4], ir.FP32)
    bound = ir.DistributedTensorType([4], ir.FP32, buffer)
    assert isinstance(plain, ir.TensorType)
    assert plain != ir.TensorType([4], ir.FP32)
    assert plain.window_buffer is None
    assert bound.window_buffer is buffer
    assert bound.memref is None
    assert bound == ir.DistributedTensorType([4], ir.FP32, window_buffer=buffer)
    assert bound != plain
    with pytest.raises(TypeError, match="window_buffer"):
        ir.DistributedTensorType([4], ir.FP32, window_buffer=ir.Var("w", ir.PtrType(), S))


# --- tiles ------------------------------------------------------------------------------------------------------------

T = ir.TileLayout
IMPLICIT = [
    # space, shape, blayout, slayout, fractal
    (None, [8, 16], T.row_major, T.none_box, 512),
    ("DDR", [8, 16], T.row_major, T.none_box, 512),
    ("Vec", [8, 16], T.row_major, T.none_box, 512),
    ("Vec", [8, 1], T.col_major, T.none_box, 512),
    ("Vec", [1, 1], T.row_major, T.none_box, 512),
    ("Bias", [8, 1], T.col_major, T.none_box, 512),
    ("ScalarLocal", [8, 1], T.col_major, T.none_box, 512),
    ("Mat", [8, 16], T.col_major, T.row_major, 512),
    ("Left", [8, 1], T.col_major, T.row_major, 512),
    ("Acc", [8, 16], T.col_major, T.row_major, 1024),
    ("Right", [8, 16], T.row_major, T.col_major, 512),
    ("Right", [8, 1], T.col_major, T.col_major, 512),
    ("LeftScale", [8, 16], T.row_major, T.row_major, 32),
    ("RightScale", [8, 16], T.col_major, T.col_major, 32),
]


@pytest.mark.parametrize(("space", "shape", "blayout", "slayout", "fractal"), IMPLICIT)
def test_implicit_tile_view(space, shape, blayout, slayout, fractal):
    memory_space = None if space is None else ir.MemorySpace[space]
    kind = ir.TileType(shape, ir.FP32, memory_space=memory_space)
    view = kind.get_effective_tile_view()
    assert kind.tile_view is None
    assert (view.blayout, view.slayout, view.fractal) == (blayout, slayout, fractal)
    assert (view.pad, view.compact, view.start_offset) == (ir.PadValue.null, ir.CompactMode.null, None)
    # stating the implicit view is the same as stating none
    again = ir.TileType(shape, ir.FP32, None, view, memory_space)
    assert again.tile_view is None
    assert again == kind
    assert hash(again) == hash(kind)


def test_a_symbolic_column_is_row_major():
    view = ir.TileType([var(), 1], ir.FP32, memory_space=Vec).get_effective_tile_view()
    assert view.blayout is T.row_major


def test_tile_view_defaults():
    view = ir.TileView()
    assert (list(view.valid_shape), list(view.stride), view.start_offset) == ([], [], None)
    assert (view.blayout, view.slayout, view.fractal) == (T.row_major, T.none_box, 512)
    assert (view.pad, view.compact) == (ir.PadValue.null, ir.CompactMode.null)


@pytest.mark.parametrize(
    "change",
    [
        {"valid_shape": [2, 2]},
        {"stride": [4, 1]},
        {"start_offset": 0},
        {"blayout": T.col_major},
        {"slayout": T.row_major},
        {"fractal": 32},
        {"pad": ir.PadValue.zero},
        {"compact": ir.CompactMode.normal},
    ],
)
def test_each_field_of_a_tile_view_counts(change):
    view = ir.TileView(**change)
    assert view != ir.TileView()
    assert view == ir.TileView(**change)
    assert hash(view) == hash(ir.TileView(**change))
    kind = ir.TileType([4, 4], ir.FP32, None, view, Vec)
    assert kind.tile_view == view
    assert kind != ir.TileType([4, 4], ir.FP32, None, None, Vec)
    with pytest.raises(AttributeError):
        setattr(view, next(iter(change)), None)


def test_a_valid_shape_equal_to_the_shape_is_cleared_in_tiles():
    assert ir.TileType([4, 4], ir.FP32, None, ir.TileView([4, 4]), Vec).tile_view is None
    kept = ir.TileType([4, 4], ir.FP32, None, ir.TileView([4, 4], pad=ir.PadValue.zero), Vec).tile_view
    assert list(kept.valid_shape) == []


def test_effective_view_rebuilds_the_same_type():
    n = var()
    for view in (None, ir.TileView([n, 4]), ir.TileView([2, 4], blayout=T.col_major)):
        kind = ir.TileType([8, 4], ir.FP32, None, view, Vec)
        assert ir.TileType([8, 4], ir.FP32, None, kind.get_effective_tile_view(), Vec) == kind


def test_view_expressions_compare_structurally():
    n = var()
    call = [ir.Call(ir.Op("my.extent"), [n], INDEX, S) for _ in range(2)]
    assert ir.TileView([call[0]]) == ir.TileView([call[1]])
    assert ir.TileView([n + 1]) == ir.TileView([n + 1])
    assert ir.TileView([n + 1]) != ir.TileView([n + 2])
    assert ir.TileView([n + 1]) != ir.TileView([n - 1])


def test_memory_space_counts_in_equality():
    assert ir.TileType([4, 4], ir.FP32, memory_space=Vec) != ir.TileType([4, 4], ir.FP32)


@pytest.mark.parametrize(
    ("name", "space"),
    [
        ("mem_ddr_1", "DDR"),
        ("mem_vec_1", "Vec"),
        ("mem_mat_1", "Mat"),
        ("mem_left_1", "Left"),
        ("mem_right_1", "Right"),
        ("mem_leftscale_1", "LeftScale"),
        ("mem_rightscale_1", "RightScale"),
        ("mem_acc_1", "Acc"),
        ("mem_bias_1", "Bias"),
    ],
)
def test_the_memory_space_follows_from_the_memrefs_name(name, space):
    assert ir.TileType([4, 4], ir.FP32, ir.MemRef(name, 0, 64)).memory_space is ir.MemorySpace[space]


def test_a_memref_needs_a_memory_space():
    with pytest.raises(ValueError, match="TileType with MemRef must have explicit memory_space"):
        ir.TileType([4, 4], ir.FP32, ir.MemRef("ping"))
    assert ir.TileType([4, 4], ir.FP32, ir.MemRef("ping"), None, Vec).memory_space is Vec


@pytest.mark.parametrize(
    ("slayout", "fractal", "bits", "box"),
    [
        (T.row_major, 1024, 32, (16, 16)),
        (T.row_major, 32, 8, (16, 2)),
        (T.col_major, 32, 8, (2, 16)),
        (T.row_major, 512, 16, (16, 16)),
        (T.row_major, 512, 32, (16, 8)),
        (T.col_major, 512, 8, (32, 16)),
        (T.none_box, 512, 32, (1, 1)),
    ],
)
def test_boxed_alignment(slayout, fractal, bits, box):
    assert boxed_alignment(ir.TileView(slayout=slayout, fractal=fractal), bits) == box


# --- arrays -----------------------------------------------------------------------------------------------------------


def test_array_type():
    kind = ir.ArrayType(ir.INT32, 8)
    assert kind.extent.value == 8
    assert values(kind.shape) == [8]
    assert kind.memref is None
    assert kind.memory_space is ir.MemorySpace.ScalarLocal
    assert kind == ir.ArrayType(dtype=ir.INT32, extent=ir.ConstInt(8, ir.INT64, S))
    assert hash(kind) == hash(ir.ArrayType(ir.INT32, 8))
    assert kind != ir.ArrayType(ir.INT32, 4)
    assert kind != ir.ArrayType(ir.INT16, 8)
    for dtype in (ir.BOOL, ir.UINT8, ir.INDEX, ir.DataType.TASK_ID):
        assert ir.ArrayType(dtype, 1).dtype is dtype


@pytest.mark.parametrize(("dtype", "extent"), [(ir.FP32, 8), (ir.INT32, 0), (ir.INT32, -1), (ir.INT32, var())])
def test_array_type_refuses(dtype, extent):
    with pytest.raises(ValueError, match="ArrayType"):
        ir.ArrayType(dtype, extent)


def test_types_are_dictionary_keys():
    n = var()
    kinds = [
        *(m() for m in MARKERS),
        INDEX,
        ir.TupleType([]),
        ir.TensorType([n], ir.FP32),
        ir.TensorType([4], ir.FP32),
        ir.DistributedTensorType([4], ir.FP32),
        ir.TileType([4], ir.FP32),
        ir.TileType([4], ir.FP32, None, ir.TileView([n]), Vec),
        ir.ArrayType(ir.INT32, 4),
    ]
    assert len(dict.fromkeys(kinds)) == len(kinds)


def test_marker_and_scalar_types_survive_pickling():
    for kind in (INDEX, ir.PtrType()):
        assert pickle.loads(pickle.dumps(kind)) is kind
