"""Type rules and surfaces of the distributed ops."""

import pytest
from memory_support import D, M, run, scalar, shape_of, tensor, tile, valid_of

from pypto.ir.enums import ArgEffect, AtomicType, NotifyOp, ReduceOp, WaitCmp, WriteChannel
from pypto.ir.expr import ConstInt, Var
from pypto.ir.type import CommCtxType, DistributedTensorType, PtrType, ScalarType, UnknownType
from pypto.ops.registry import REGISTRY, create_op_call, get_op_arg_effect, get_op_write_channel
from pypto.ops.surface import NAMESPACES

PLD, TENSOR, TILE, SYSTEM = (NAMESPACES[k] for k in ("pld", "pld.tensor", "pld.tile", "pld.system"))


def dist(shape, dtype=D.FP32, name="d"):
    return Var(name, DistributedTensorType(shape, dtype))


def signal(shape=(4, 1)):
    return dist(list(shape), D.INT32, "s")


def test_windows():
    call = PLD["alloc_window_buffer"]([2, 48], dtype=D.FP32, name="bx")
    assert type(call.args[0]) is ConstInt and call.args[0].value == 384 and call.args[0].dtype is D.INT64
    assert (
        call.type == PtrType()
        and call.as_python(format=False) == "pld.tensor.alloc_window_buffer(pl.const(384, pl.INT64))"
    )
    view = PLD["window"](Var("bx", PtrType()), [2, 48], dtype=D.FP32)
    assert type(view.type) is DistributedTensorType and shape_of(view) == [2, 48]
    for bad, error, phrase in (
        (lambda: PLD["alloc_window_buffer"]([2, 48]), ValueError, "requires dtype="),
        (
            lambda: PLD["alloc_window_buffer"](8, dtype=D.FP32),
            ValueError,
            "only valid when the first argument is a shape",
        ),
        (lambda: PLD["alloc_window_buffer"]([], dtype=D.FP32), ValueError, "must be non-empty"),
        (lambda: PLD["alloc_window_buffer"]([0], dtype=D.FP32), ValueError, "must be positive"),
        (lambda: PLD["window"](scalar(), [2], dtype=D.FP32), TypeError, "expects a Ptr handle"),
    ):
        with pytest.raises(error, match=phrase):
            bad()


def test_queries():
    ctx = PLD["get_comm_ctx"](dist([4, 4]))
    assert ctx.type == CommCtxType()
    assert PLD["rank"](Var("c", ctx.type)).type == ScalarType(D.INT32)
    assert PLD["world_size"]().type == ScalarType(D.INT64)
    with pytest.raises(ValueError, match="expects a CommCtx"):
        PLD["nranks"](scalar())
    with pytest.raises(ValueError, match=r"expects a DistributedTensor .* \(window-bound\)"):
        PLD["get_comm_ctx"](tensor([4]))


def test_signals():
    call = SYSTEM["notify"](signal(), 1, [2, 0], 1, op=NotifyOp.AtomicAdd)
    assert call.type == UnknownType() and call.kwargs["op"] == 0
    assert get_op_arg_effect("pld.system.notify", 0, op=0) is ArgEffect.ReadWrite
    assert get_op_arg_effect("pld.system.notify", 0, op=1) is ArgEffect.Write
    assert SYSTEM["wait"](signal(), [0, 0], scalar("n", D.INT32), cmp=WaitCmp.Eq).kwargs["cmp"] == 0
    for bad, phrase in (
        (lambda: SYSTEM["notify"](signal(), 1, [2], 1, op=NotifyOp.Set), "must match target tensor rank"),
        (lambda: SYSTEM["notify"](tensor([4], D.INT32), 1, [2], 1, op=NotifyOp.Set), "window-bound"),
        (lambda: SYSTEM["wait"](dist([4]), [0], 1, cmp=WaitCmp.Ge), "INT32 element type"),
        (lambda: SYSTEM["defer_wait"](signal(), [0, 0], 1, cmp=WaitCmp.Eq), "only supports WaitCmp.Ge"),
        (lambda: SYSTEM["defer_wait"](signal(), [0, 0], -1, cmp=WaitCmp.Ge), r"\[0, 2147483647\]"),
    ):
        with pytest.raises(ValueError, match=phrase):
            bad()


def test_remote_load():
    call = PLD["remote_load"](dist([100, 64]), 1, [0, 0], [16, 64])
    assert shape_of(call) == [16, 64] and valid_of(call) == [16, 64]
    n = scalar("n")
    assert valid_of(PLD["remote_load"](dist([n, 64]), 1, [0, 0], [16, 64], [8, 64])) == ["pl.min(8, n)", 64]
    with pytest.raises(ValueError, match="reads past the end of dimension 0"):
        PLD["remote_load"](dist([100, 64]), 1, [96, 0], [16, 64])
    padded = TILE["_remote_load_with_physical_tail_padding"](dist([100, 64]), 1, [0, 0], [16, 64])
    assert padded.as_python(format=False).startswith("pld.tile._remote_load_with_physical_tail_padding(")


def test_remote_store():
    assert PLD["remote_store"](tile([16, 64]), dist([100, 64]), 1, [0, 0]).op.name == "pld.tile.remote_store"
    assert PLD["remote_store"](tensor([16, 64]), dist([100, 64]), 1, [0, 0]).op.name == "pld.tensor.remote_store"
    assert get_op_write_channel("pld.tile.remote_store") is WriteChannel.Dma
    for bad, phrase in (
        ((tile([16, 64]), dist([100, 64]), 1, [90, 0]), "exceeds the peer's target region in dimension 0"),
        ((tile([16, 64], D.FP16), dist([100, 64]), 1, [0, 0]), "same dtype"),
        ((tile([2, 16, 64]), dist([4, 100, 64]), 1, [0, 0, 0]), "src leading dimension 0 must be 1"),
    ):
        with pytest.raises(ValueError, match=phrase):
            PLD["remote_store"](*bad)
    with pytest.raises(ValueError, match="hardware atomic-add dtypes"):
        PLD["remote_store"](tile([2, 2], D.UINT8), dist([4, 4], D.UINT8), 1, [0, 0], atomic=AtomicType.Add)


def test_put_and_get():
    call = TENSOR["put"](dist([4, 8]), 1, tensor([4, 8]))
    assert call.kwargs == {"atomic": 0} and len(call.args) == 3
    assert len(TENSOR["get"](tensor([4, 8]), 1, dist([8, 8]), [0, 0], [4, 0], [4, 8]).args) == 6
    n = scalar("n")
    for bad, error, phrase in (
        (lambda: TENSOR["put"](dist([4, 8]), 1, tensor([4, 4])), ValueError, "must have the same static shape"),
        (lambda: TENSOR["put"](dist([4, 8]), 1, tensor([4, 8]), [0, 0]), ValueError, "must be provided together"),
        (
            lambda: TENSOR["put"](dist([4, 8]), 1, tensor([4, 8]), [1, 0], [0, 0], [4, 8]),
            ValueError,
            "dst subregion dimension 0 exceeds dst shape",
        ),
        (lambda: TENSOR["put"](dist([4, 8]), 1, tensor([4, 8]), chunk_rows=1.5), TypeError, "must be an int"),
        (lambda: TENSOR["put"](dist([4, 8]), 1, tensor([4, 8]), chunk_rows=-1), ValueError, "must be non-negative"),
        (lambda: TENSOR["get"](tensor([4, 8]), 1, dist([4, 8]), pipeline=True), ValueError, "pipeline=True requires"),
        (lambda: TENSOR["get"](tensor([4, n]), 1, dist([4, n])), ValueError, "needs a static chunk_cols"),
        (lambda: TENSOR["get"](tensor([n, 4]), 1, dist([n, 4])), ValueError, "needs a static chunk_rows"),
        (lambda: TILE["put"](dist([4, 8]), 1, tensor([4, 8]), tile([8, 8])), ValueError, "must fit within"),
        (lambda: TILE["put"](dist([4, 8]), 1, tensor([4, 8]), tile([4, 8], space=M.Mat)), ValueError, "2D VEC staging"),
    ):
        with pytest.raises(error, match=phrase):
            bad()
    printed = TILE["put"](dist([4, 8]), 1, tensor([4, 8]), tile([2, 8]), [0, 0], [0, 0], [4, 8])
    assert len(printed.args) == 7


def test_collectives():
    target = dist([4, 64])
    call = TENSOR["allreduce"](target)
    assert call.type is target.type and call.kwargs == {"op": 0, "mode": "mesh", "core_num": 1}
    assert TENSOR["barrier"](signal()).type == signal().type
    assert TENSOR["allgather"](tensor([1, 64]), target, signal()).type is target.type
    assert get_op_arg_effect("pld.tensor.all_to_all_v", 4) is ArgEffect.Write
    for bad, error, phrase in (
        (lambda: TENSOR["allreduce"](target, None), TypeError, "signal cannot be None"),
        (lambda: TENSOR["allreduce"](target, mode="ring"), ValueError, "requires an explicit signal"),
        (lambda: TENSOR["allreduce"](target, core_num=True), TypeError, "positive compile-time int"),
        (lambda: TENSOR["allreduce"](target, core_num=0), ValueError, "must be positive"),
        (lambda: TENSOR["allreduce"](tensor([4])), TypeError, r"DistributedTensor target \(window-bound\)"),
        (lambda: TENSOR["allreduce"](dist([4], D.INT32)), ValueError, "target dtype must be FP16 or FP32"),
        (lambda: TENSOR["reduce_scatter"](target, signal(), op=ReduceOp.Max), ValueError, "op must be ReduceOp.Sum"),
        (lambda: TENSOR["broadcast"](target, signal(), root=-1), ValueError, "root rank must be non-negative"),
        (lambda: TENSOR["all_to_all"](target, target, signal()), ValueError, "must be different windows"),
        (
            lambda: TENSOR["allgather"](tensor([1, 32]), target, signal()),
            ValueError,
            "target SIZE must equal input SIZE",
        ),
        (
            lambda: TENSOR["all_to_all"](tensor([3, 64]), target, signal()),
            ValueError,
            r"first dimension \(3\) must equal",
        ),
    ):
        with pytest.raises(error, match=phrase):
            bad()


def test_builtins_are_internal():
    with pytest.raises(ValueError, match="internal-only"):
        create_op_call("builtin.tensor.barrier", [signal((4,))], {})
    assert sum(d.internal for d in REGISTRY.values()) == 8
    infer = REGISTRY["builtin.tensor.barrier"].infer
    assert infer([signal((4,))], {}) == signal((4,)).type
    with pytest.raises(ValueError, match="must have rank 1"):
        infer([signal()], {})


def test_running_is_refused():
    with pytest.raises(NotImplementedError, match="not supported on this platform yet"):
        run(PLD["world_size"]())
