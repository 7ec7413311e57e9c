"""Cross-core pipes: types, halves, blocking queues, deadlocks."""

import threading

import numpy as np
import pytest
from memory_support import IR_TILE, PL, SYSTEM, TILE, D, M, array, ramp, run, scalar, shape_of, tensor, tile, valid_of

from pypto.ir.enums import CoreType
from pypto.ir.expr import Var
from pypto.ir.type import TileType, UnknownType
from pypto.ops.pipe_set import PipeError, PipeSet, join_halves, split_half
from pypto.ops.registry import REGISTRY, create_op_call


def text(call):
    return call.as_python(format=False)


# --- types ------------------------------------------------------------------------------------------------------------


def test_push_and_pop_types():
    push = PL.tpush_to_aiv(tile([16, 32], space=M.Acc), split=1)
    assert push.type == UnknownType() and text(push) == "pl.tile.tpush_to_aiv(t, split=1)"
    assert PL.tpop_from_aic().type == UnknownType() and text(PL.tpop_from_aic()) == "pl.tile.tpop_from_aic(split=0)"
    typed = SYSTEM.tpop_from_aiv(shape=[16, 32], dtype=D.FP16, split=2, id=1)
    assert typed.type == TileType([16, 32], D.FP16, None, None, M.Mat)
    assert PL.tpop_from_aic(shape=[16, 32], dtype=D.FP16).type.memory_space is M.Vec
    kind = TileType([4, 4], D.FP32, None, None, M.Vec)
    assert IR_TILE.tpop_from_aic(result_type=kind).type is kind
    assert text(PL.tfree_to_aic(Var("v", kind), split=1)) == "pl.system.tfree_to_aic(v, split=1)"


@pytest.mark.parametrize(
    ("bad", "phrase"),
    [
        (lambda: PL.tpop_from_aic(shape=[4, 4]), "given together"),
        (lambda: IR_TILE.tpop_from_aic(result_type=tile([4, 4]).type, shape=[4, 4], dtype=D.FP32), "excludes"),
        (lambda: PL.tpush_to_aiv(tile([4, 4]), split=5), "split must be in 0..4"),
        (lambda: PL.tpush_to_aic(tile([4, 4]), split=3), "split must be in 0..2"),
        (lambda: PL.tpush_to_aiv(tile([4, 4]), split=1, lane_stride=0), "lane_stride"),
        (lambda: create_op_call("tile.tpush_to_aic", [tile([4, 4])], {}), "requires a 'split' kwarg"),
    ],
)
def test_bad_transfers(bad, phrase):
    with pytest.raises(ValueError, match=phrase):
        bad()


def test_set_up():
    call = PL.aic_initialize_pipe(scalar("b", D.INT32), dir_mask=3, slot_size=15360, slot_num=2)
    assert text(call) == (
        "pl.system.aic_initialize_pipe(b, pl.const(0, pl.INT32), dir_mask=3, slot_size=15360, slot_num=2)"
    )
    assert text(PL.reserve_buffer(name="slots", size=64)) == (
        "pl.system.reserve_buffer(name='slots', size=64, base=-1)"
    )
    assert text(PL.import_peer_buffer(name="slots", peer_func="k_aiv")) == (
        "pl.system.import_peer_buffer(name='slots', peer_func='k_aiv')"
    )
    with pytest.raises(ValueError, match="dir_mask"):
        PL.aiv_initialize_pipe(dir_mask=4, slot_size=64)


def test_roles_and_cores():
    roles = {name: (REGISTRY[name].pipe_role, REGISTRY[name].core) for name in REGISTRY if REGISTRY[name].pipe_role}
    assert roles["tile.tpush_to_aiv"] == ("TPush", CoreType.CUBE)
    assert roles["tile.tpop_from_aic"] == ("TPop", CoreType.VECTOR)
    assert roles["system.tfree_to_aiv"] == ("TFree", CoreType.CUBE)
    assert roles["system.aiv_initialize_pipe"] == ("InitializePipe", CoreType.VECTOR)
    assert len(roles) == 8


# --- aiv_shard, aic_gather --------------------------------------------------------------------------------------------


def test_shard_types():
    shard = IR_TILE.aiv_shard(tile([41, 96], space=M.Acc), split=1)
    assert shape_of(shard) == [21, 96] and shard.type.memory_space is M.Vec
    assert valid_of(IR_TILE.aiv_shard(tile([40, 96], valid=[30, 96]), split=1)) == [15, 96]
    gather = IR_TILE.aic_gather(tile([21, 96]), split=1)
    assert shape_of(gather) == [42, 96] and gather.type.memory_space is M.Mat
    assert shape_of(IR_TILE.aiv_shard(tile([41, 96]), split=0)) == [41, 96]
    assert text(shard) == "pl.tile.aiv_shard(t, split=1)"
    on_tensor = create_op_call("tensor.aiv_shard", [tensor([40, 96])], {"split": 2})
    assert shape_of(on_tensor) == [40, 48]


@pytest.mark.parametrize(
    ("operand", "split", "phrase"),
    [
        (tile([40, 96], valid=[40, 50]), 2, "LEFT_RIGHT splits the column axis"),
        (tile([40, 96], valid=[40, scalar("n")]), 1, "is a runtime value narrower than the physical box"),
        (tile([40, 96], valid=[30, 50]), 1, "UP_DOWN split with BOTH"),
        (tile([40, 96], valid=[scalar("n"), 50]), 1, "valid row extent .* is a runtime value"),
        (tile([40, 96]), 3, "split of 0, 1 or 2"),
        (tile([2, 40, 96]), 1, "2D operand"),
    ],
)
def test_shards_that_no_queue_carries(operand, split, phrase):
    with pytest.raises(ValueError, match=phrase):
        IR_TILE.aiv_shard(operand, split=split)


def test_lane_stride():
    assert IR_TILE.aiv_shard(tile([40, 96], valid=[30, 96]), split=1, lane_stride=15) is not None
    with pytest.raises(ValueError, match="lane_stride"):
        IR_TILE.aiv_shard(tile([40, 96]), split=1, lane_stride=21)


def test_surfaces_need_a_region():
    for function in (PL.aiv_shard, TILE.aic_gather):
        with pytest.raises(RuntimeError, match="split_aiv"):
            function(tile([4, 4]))


# --- halves -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rows", [1, 2, 5, 8])
@pytest.mark.parametrize("split", [1, 2])
def test_split_and_join_round_trip(rows, split):
    source = ramp(rows, 6) if split == 1 else ramp(6, rows)
    halves = [split_half(source, split, lane, None) for lane in (0, 1)]
    joined = join_halves(halves, split)
    assert joined.valid == source.shape
    np.testing.assert_array_equal(joined.valid_data(), source.data)


def test_odd_code_gives_lane_0_the_larger_part():
    source = array(np.arange(24, dtype=np.float32).reshape(8, 3), valid=(5, 3))
    first, second = (split_half(source, 3, lane, None) for lane in (0, 1))
    assert first.valid == (3, 3) and second.valid == (2, 3)
    np.testing.assert_array_equal(second.valid_data(), source.data[3:5])
    strided = split_half(source, 1, 1, 3)
    np.testing.assert_array_equal(strided.valid_data(), source.data[3:5])


# --- queues -----------------------------------------------------------------------------------------------------------


def group(pipes, *bodies):
    """Run the bodies as threads; their errors by index."""
    errors = {}

    def guarded(i, body):
        try:
            body()
        except Exception as error:
            errors[i] = error
            pipes.abort(str(error))
        finally:
            pipes.leave()

    threads = [threading.Thread(target=guarded, args=(i, body)) for i, body in enumerate(bodies)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
        assert not thread.is_alive()
    return errors


def test_tiles_travel_in_order_and_in_halves():
    pipes = PipeSet(lanes=2, parties=3)
    push = PL.tpush_to_aiv(tile([4, 2]), split=1)
    pop = PL.tpop_from_aic(split=1)
    back = PL.tpush_to_aic(tile([2, 2]), split=1)
    joined = []
    sources = [ramp(4, 2), array(np.full((4, 2), 9, np.float32))]

    def cube():
        for source in sources:
            run(push, source, pipes=pipes)
        for _ in sources:
            joined.append(run(PL.tpop_from_aiv(split=1), pipes=pipes))

    def vector(lane):
        def body():
            for _ in sources:
                half = run(pop, pipes=pipes, lane=lane)
                run(back, array(half.data * 2), pipes=pipes, lane=lane)

        return body

    assert not group(pipes, cube, vector(0), vector(1))
    for got, source in zip(joined, sources, strict=True):
        np.testing.assert_array_equal(got.data, source.data * 2)
    assert pipes.depths() == {}


def test_no_split_broadcasts_and_takes_lane_0():
    pipes = PipeSet(lanes=2)
    run(PL.tpush_to_aiv(tile([4, 2]), split=0), ramp(4, 2), pipes=pipes)
    for lane in (0, 1):
        assert run(PL.tpop_from_aic(), pipes=pipes, lane=lane).shape == (4, 2)
        run(PL.tpush_to_aic(tile([4, 2]), split=0), array(np.full((4, 2), lane)), pipes=pipes, lane=lane)
    assert (run(PL.tpop_from_aiv(), pipes=pipes).data == 0).all()
    assert pipes.depths() == {}


def test_pushed_tiles_are_copies():
    pipes = PipeSet()
    source = ramp(4, 2)
    run(PL.tpush_to_aic(tile([4, 2]), split=0), source, pipes=pipes)
    source.data[...] = -1
    assert (run(PL.tpop_from_aiv(), pipes=pipes).data >= 0).all()


def test_pipe_ids_are_separate():
    pipes = PipeSet()
    run(PL.tpush_to_aic(tile([1, 1]), split=0, id=1), array(np.ones((1, 1))), pipes=pipes)
    run(PL.tpush_to_aic(tile([1, 1]), split=0, id=2), array(np.full((1, 1), 2.0)), pipes=pipes)
    assert run(PL.tpop_from_aiv(id=2), pipes=pipes).data[0, 0] == 2


def test_mutual_wait_is_a_deadlock():
    pipes = PipeSet(parties=2, timeout=30)
    errors = group(
        pipes,
        lambda: run(PL.tpop_from_aiv(), pipes=pipes),
        lambda: run(PL.tpop_from_aic(), pipes=pipes),
    )
    assert len(errors) == 2 and all(isinstance(e, PipeError) for e in errors.values())
    assert "deadlock" in str(errors[0]) and "c2v[0] lane 0: the queue is empty" in str(errors[0])


def test_partner_that_ended_is_a_deadlock():
    pipes = PipeSet(parties=2, timeout=30)
    errors = group(pipes, lambda: run(PL.tpop_from_aiv(), pipes=pipes), lambda: None)
    assert "deadlock" in str(errors[0])


def test_push_beyond_the_slots_waits():
    pipes = PipeSet(parties=2, timeout=30)
    run(PL.aic_initialize_pipe(dir_mask=1, slot_size=64, slot_num=2), pipes=pipes)
    push = PL.tpush_to_aiv(tile([4, 2]), split=0)

    def three():
        for _ in range(3):
            run(push, ramp(4, 2), pipes=pipes)

    def one():
        run(PL.tpop_from_aic(), pipes=pipes)

    assert not group(pipes, three, one)
    pipes = PipeSet(parties=1)
    run(PL.aic_initialize_pipe(dir_mask=1, slot_size=64, slot_num=2), pipes=pipes)
    with pytest.raises(PipeError, match="all 2 slots are taken"):
        three()


def test_timeout():
    pipes = PipeSet(timeout=0.05)
    with pytest.raises(PipeError, match="no progress within 0.05 s.*v2c"):
        run(PL.tpop_from_aiv(), pipes=pipes)


def test_lanes_meet():
    pipes = PipeSet(lanes=2, parties=2)
    gather = IR_TILE.aic_gather(tile([2, 3]), split=1)
    got = {}

    def lane(i):
        def body():
            for step in range(3):
                half = array(np.full((2, 3), 10.0 * step + i))
                got[step, i] = run(gather, half, pipes=pipes, lane=i)

        return body

    assert not group(pipes, lane(0), lane(1))
    for step in range(3):
        np.testing.assert_array_equal(got[step, 0].data, got[step, 1].data)
        np.testing.assert_array_equal(got[step, 0].data[:, 0], [10 * step] * 2 + [10 * step + 1] * 2)


def test_no_partner():
    with pytest.raises(ValueError, match="no other core"):
        run(PL.tpop_from_aiv())
