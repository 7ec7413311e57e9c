"""Tensor, Tile, Array, Tuple, Out, InOut, MemRef, handles: annotation-only objects and wrappers."""

import inspect

import pytest

import pypto.language as pl
import pypto.language.distributed as pld
from pypto.ir.enums import ParamDirection
from pypto.ir.expr import MemRef as IrMemRef
from pypto.ir.expr import Var
from pypto.ir.type import ArrayType, PtrType, TensorType, TileType
from pypto.ir.views import TensorView, TileView


def tensor_var(name="x", shape=(16, 32), dtype=pl.FP32):
    return Var(name, TensorType(list(shape), dtype))


# --- tensors ----------------------------------------------------------------------------------------------------------


def test_tensor_annotation_keeps_its_parts():
    t = pl.Tensor[[16, 32], pl.BF16]
    assert isinstance(t, pl.Tensor)
    assert list(t.shape) == [16, 32]
    assert t.dtype is pl.BF16
    assert t.layout is None and t.memref is None and t._expr is None


@pytest.mark.parametrize("shape", [[4, 8], (4, 8), [pl.dynamic("M"), 8], [pl.dynamic("M") * 2 + 1, 8], []])
def test_tensor_accepts_every_kind_of_shape(shape):
    assert pl.Tensor[shape, pl.FP32].shape is shape


def test_tensor_extras_in_each_form():
    memref = pl.MemRef("base", 0, 512)
    view = pl.TensorView(stride=[1, 16], layout=pl.TensorLayout.DN)
    assert pl.Tensor[[4, 8], pl.FP32, pl.NZ].layout is pl.NZ
    assert pl.Tensor[[4, 8], pl.FP32, view].layout is view
    assert pl.Tensor[[4, 8], pl.FP32, memref].memref is memref
    both = pl.Tensor[[4, 8], pl.FP32, view, memref]
    assert both.layout is view and both.memref is memref


@pytest.mark.parametrize("item", [[4, 8], ([4, 8],), ([4], pl.FP32, pl.ND, None, None)])
def test_tensor_with_a_wrong_number_of_elements(item):
    with pytest.raises(TypeError, match=r"Tensor subscript requires \[shape, dtype\]"):
        pl.Tensor[item]


def test_legacy_call_form_is_annotation_only():
    t = pl.Tensor((4, 8), pl.FP32)
    assert t.shape == (4, 8)
    with pytest.raises(ValueError, match="annotation-only Tensor"):
        t.unwrap()


def test_wrapping_a_tensor_expression():
    x = tensor_var()
    t = pl.Tensor(expr=x)
    assert t.unwrap() is x
    assert [d.value for d in t.shape] == [16, 32] and t.dtype is pl.FP32


def test_call_arguments_are_checked_as_python_does():
    with pytest.raises(TypeError, match="unexpected keyword argument 'nope'"):
        pl.Tensor([4], pl.FP32, nope=1)
    with pytest.raises(TypeError, match="multiple values for argument 'dtype'"):
        pl.Tensor([4], pl.FP32, dtype=pl.FP32)
    with pytest.raises(ValueError, match="requires expr"):
        pl.Tensor()
    with pytest.raises(TypeError, match=r"expr must be an ir\.Expr"):
        pl.Tensor(expr=3)


@pytest.mark.parametrize("value", [pl.Tensor[[4], pl.FP32], pl.Tile[[4, 4], pl.FP32], pl.Array[4, pl.INT32]])
def test_subscripts_exist_only_in_bodies(value):
    with pytest.raises(NotImplementedError, match=r"only available inside @pl\.function"):
        value[0]
    with pytest.raises(NotImplementedError, match=r"only available inside @pl\.function"):
        value[0] = 1
    with pytest.raises(TypeError, match="not iterable"):
        iter(value)


def test_bind_dynamic_does_nothing():
    assert pl.Tensor(expr=tensor_var()).bind_dynamic(0, pl.dynamic("M")) is None


def test_distributed_tensor_drops_the_window_buffer_of_dumps():
    t = pld.DistributedTensor[[2, 8], pl.FP32, "window_buffer=box"]
    assert isinstance(t, pld.DistributedTensor) and isinstance(t, pl.Tensor)
    assert t.shape == [2, 8] and t.layout is None
    with pytest.raises(TypeError, match="DistributedTensor subscript requires"):
        pld.DistributedTensor[[2, 8], "window_buffer=box"]


# --- tiles ------------------------------------------------------------------------------------------------------------


def test_tile_extras_in_any_order():
    memref = pl.MemRef("ub", slots=2)[1]
    view = pl.TileView(valid_shape=[3, 8])
    tile = pl.Tile[[4, 8], pl.FP16, view, pl.Mem.Vec, memref]
    assert (tile.memory_space, tile.tile_view, tile.memref) == (pl.Mem.Vec, view, memref)
    assert pl.Tile[[4, 8], pl.FP16].memory_space is None
    with pytest.raises(TypeError, match=r"Tile subscript requires \[shape, dtype\]"):
        pl.Tile[[4, 8]]


def test_wrapping_a_tile_expression():
    x = Var("t", TileType([8, 16], pl.FP16, memory_space=pl.Mem.Vec))
    tile = pl.Tile(expr=x)
    assert tile.unwrap() is x and tile.dtype is pl.FP16 and tile.memory_space is pl.Mem.Vec
    with pytest.raises(ValueError, match="annotation-only Tile"):
        pl.Tile([8, 16], pl.FP16).unwrap()


def test_views_in_a_signature_take_dynamic_extents_and_any_subset():
    m = pl.dynamic("M")
    view = pl.TileView(valid_shape=[m, 8], start_offset=m + 1)
    assert type(view) is TileView and isinstance(view, pl.TileView)
    assert view.valid_shape[0] is m.unwrap()
    assert pl.TileView(pad=pl.PadValue.zero).pad is pl.PadValue.zero
    tensor_view = pl.TensorView(valid_shape=[m, 8], layout=pl.ND)
    assert type(tensor_view) is TensorView and isinstance(tensor_view, pl.TensorView)
    assert tensor_view.valid_shape[0] is m.unwrap()
    with pytest.raises(TypeError):
        pl.TileView(nope=1)


# --- the others -------------------------------------------------------------------------------------------------------


def test_array():
    a = pl.Array[4, pl.TASK_ID]
    assert (a.extent, a.dtype, a.shape) == (4, pl.TASK_ID, (4,))
    x = Var("a", ArrayType(pl.INT32, 3))
    assert pl.Array(expr=x).unwrap() is x and pl.Array(expr=x).extent.value == 3
    with pytest.raises(ValueError, match="annotation-only Array"):
        a.unwrap()
    with pytest.raises(TypeError, match=r"Array subscript requires \[extent, dtype\]"):
        pl.Array[4]


def test_tuple_forms():
    t = pl.Tensor[[4], pl.FP32]
    assert pl.Tuple[t, pl.TaskId].types == (t, pl.TaskId)
    assert pl.Tuple[t].types == (t,)
    assert pl.Tuple[()].types == ()
    assert pl.Tuple([t, t]).types == (t, t)


def test_directions():
    t = pl.Tensor[[4], pl.FP32]
    out, inout = pl.Out[t], pl.InOut[t]
    assert isinstance(out, pl.Out) and out.inner is t and out.direction is ParamDirection.Out
    assert isinstance(inout, pl.InOut) and inout.inner is t and inout.direction is ParamDirection.InOut
    assert pl.Out[pl.Tensor].inner is pl.Tensor


def test_handles():
    p = Var("p", PtrType())
    assert pl.Ptr is PtrType
    from pypto.language.typing import Ptr

    assert Ptr(expr=p).unwrap() is p
    for cls in (Ptr, pld.CommCtx, pl.PrefetchAsyncContext, pl.AsyncEvent, pl.AsyncSession):
        with pytest.raises(RuntimeError, match=f"annotation-only {cls.__name__}"):
            cls().unwrap()


def test_memref_forms():
    assert isinstance(pl.MemRef(), IrMemRef) and pl.MemRef().is_pinned_
    named = pl.MemRef("ub", slots=3)
    assert (named.name_hint, named.slot_count_) == ("ub", 3)
    resolved = pl.MemRef(pl.dynamic("mem_vec_0"), 64, 256)
    assert resolved.base_.name_hint == "mem_vec_0" and isinstance(resolved.base_.type, PtrType)
    assert (resolved.byte_offset_.value, resolved.size_) == (64, 256)
    m = pl.dynamic("M")
    assert pl.MemRef("base", m * 4, 256).byte_offset_.left is m.unwrap()
    assert pl.MemRef(pl.Mem.Vec, 0, 128, 7).size_ == 128


def test_memref_slots():
    decl = pl.MemRef("ub", slots=2)
    assert isinstance(decl[1], pl.MemRef) and decl[1].slot_index_.value == 1
    assert decl[1].base_ is decl.base_
    k = pl.dynamic("k")
    assert decl[k].slot_index_ is k.unwrap()
    with pytest.raises(IndexError, match="Slot index 2 is out of range"):
        decl[2]
    with pytest.raises(TypeError, match="slot index must be an integer"):
        decl[True]


def test_every_annotation_of_a_signature_evaluates():
    m = pl.dynamic("M")
    n = 8

    def f(
        a: pl.Tensor[[m, 2 * n], pl.FP32],
        b: pl.Out[pl.Tensor[(m + 1, n), pl.BF16, pl.NZ]],
        c: pl.InOut[pl.Tile[[n, n], pl.FP16, pl.MemRef("base", 0, 128), pl.Mem.Vec, pl.TileView(valid_shape=[m, n])]],
        d: pl.Scalar[pl.INDEX],
        e: pl.Scalar(pl.FP32),
        f: pl.Array[n, pl.TASK_ID],
        g: pl.PrefetchAsyncContext,
        h: pl.TaskId,
        i: pl.Tensor[[pl.const(4, pl.INT64), n], pl.FP32],
    ) -> tuple[pl.Tensor[[m], pl.FP32], pl.Scalar[pl.INT32]]: ...

    def g() -> pl.Tuple[pl.Tensor[[m], pl.FP32], pl.TaskId]: ...

    annotations = inspect.signature(f).parameters
    assert annotations["b"].annotation.inner.layout is pl.NZ
    assert annotations["c"].annotation.inner.memory_space is pl.Mem.Vec
    assert annotations["h"].annotation is pl.Scalar[pl.TASK_ID]


def test_what_objects_look_like():
    assert repr(pl.Tensor[[4, 8], pl.FP32]) == "Tensor[[4, 8], fp32]"
    assert repr(pl.Out[pl.Scalar[pl.INT32]]) == "Out[Scalar[int32]]"
    assert repr(pl.Tuple[pl.TaskId]) == "Tuple[Scalar[task_id]]"
    assert repr(pl.dynamic("M")) == "pl.dynamic('M')"
