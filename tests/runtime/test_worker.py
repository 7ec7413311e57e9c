"""Workers on host memory, device tensors, registration."""

import ctypes
import logging

import ml_dtypes
import numpy as np
import pytest
from run_support import F32, program, ramp

import pypto.language as pl
from pypto import ir
from pypto.runtime import ChipWorker, DeviceTensor, RunConfig, StackedDeviceTensor
from pypto.runtime.device_tensor import alloc_device_tensor, default_init_prep


@pytest.fixture
def worker():
    made = ChipWorker()
    yield made
    made.close()


@pytest.fixture
def compiled():
    return ir.compile(
        program("y = self.scale(x, 2.0, y)\nreturn y", "x: pl.Tensor[[4, 8], pl.FP32], y: pl.Out[pl.Tensor[[4, 8], pl.FP32]]"),
        dump_passes=False,
    )  # fmt: skip


# --- device tensors ----------------------------------------------------------------------------------------------------


def test_a_program_works_on_resident_tensors(worker, compiled):
    x = worker.alloc_tensor((4, 8), np.float32, init=ramp(4, 8))
    y = worker.alloc_tensor([4, 8], pl.FP32)
    assert x.data_ptr % 64 == 0 and x.nbytes == 128 and x.shape == y.shape == (4, 8)
    assert worker.run(compiled, x, y) is None
    np.testing.assert_array_equal(y.to_host(), ramp(4, 8) * 2)
    compiled(y, x)  # also without naming the worker, in both roles
    np.testing.assert_array_equal(x.to_host(), ramp(4, 8) * 4)
    host = np.zeros((4, 8), F32)
    compiled(x, host)
    np.testing.assert_array_equal(host, ramp(4, 8) * 8)
    assert worker.stats()["allocations"] == 2 and worker.stats()["runs"] == 1


def test_resident_tensors_are_checked(worker, compiled):
    short = worker.alloc_tensor((2, 8), np.float32)
    half = worker.alloc_tensor((4, 8), np.float16)
    for wrong in (short, half):
        with pytest.raises(TypeError, match=r"Parameter 'x': expected \[4, 8\] fp32, got"):
            compiled(wrong, np.zeros((4, 8), F32))
    gone = worker.alloc_tensor((4, 8), np.float32)
    worker.free_tensor(gone)
    with pytest.raises(ValueError, match="parameter 'x'.*is not a live allocation owned by this ChipWorker"):
        compiled(gone, np.zeros((4, 8), F32))
    foreign = worker.alloc_tensor((4, 8), np.float32)
    wrong_worker = pytest.raises(ValueError, match="argument 0: .*not a live allocation owned by this ChipWorker")
    with ChipWorker(RunConfig(device_id=1)) as other, wrong_worker:
        other.run(compiled, foreign, np.zeros((4, 8), F32))


@pytest.mark.parametrize(
    ("shape", "error"),
    [((), ValueError), ((0, 4), ValueError), ((-1,), ValueError), ((True,), TypeError), ((1.0,), TypeError), (4, TypeError)],
)  # fmt: skip
def test_shapes_are_checked_before_allocating(worker, shape, error):
    with pytest.raises(error):
        worker.alloc_tensor(shape, np.float32)
    with pytest.raises(error):
        DeviceTensor(64, shape, np.float32)
    assert worker.stats()["allocations"] == 0


def test_initial_contents(worker):
    bf16 = ramp(2, 3, dtype=ml_dtypes.bfloat16)
    np.testing.assert_array_equal(worker.alloc_tensor((2, 3), bf16.dtype, init=bf16).to_host(), bf16)
    strided = worker.alloc_tensor((4,), np.float32, init=ramp(8)[::2])
    np.testing.assert_array_equal(strided.to_host(), [0, 2, 4, 6])
    with pytest.raises(ValueError, match="init has shape"):
        worker.alloc_tensor((3,), np.float32, init=ramp(4))
    with pytest.raises(ValueError, match="init has dtype float16"):
        worker.alloc_tensor((4,), np.float32, init=ramp(4, dtype=np.float16))
    assert worker.stats()["allocations"] == 2


def test_a_failure_behind_the_allocation_frees_it():
    freed = []
    with pytest.raises(RuntimeError, match="no copy"):
        alloc_device_tensor(
            malloc=lambda size: 4096,
            copy_to=lambda *_: (_ for _ in ()).throw(RuntimeError("no copy")),
            free=freed.append,
            shape=(4,),
            dtype=np.float32,
            init=ramp(4),
        )
    assert freed == [4096]
    assert default_init_prep(ramp(8)[::2]).flags.c_contiguous


def test_handles_compare_without_their_memory(worker):
    made = worker.alloc_tensor((4,), np.float32)
    assert made == DeviceTensor(made.data_ptr, (4,), np.float32) and made != DeviceTensor(
        made.data_ptr, (2,), np.float32
    )
    assert repr(made) == f"DeviceTensor(data_ptr=0x{made.data_ptr:x}, shape=(4,), dtype={np.float32})"
    with pytest.raises(AttributeError):
        made.shape = (1,)
    with pytest.raises(TypeError):
        DeviceTensor(64, (4,), "no type")


# --- memory ------------------------------------------------------------------------------------------------------------


def test_copies(worker):
    ptr = worker.malloc(64)
    source, back = ramp(16), np.zeros(16, F32)
    worker.copy_to(ptr, source.ctypes.data, 64)
    worker.copy_from(back.ctypes.data, ptr, 64)
    np.testing.assert_array_equal(back, source)
    assert ctypes.cast(ptr, ctypes.POINTER(ctypes.c_float))[5] == 5.0, "pointers are real addresses"
    for operation in (
        lambda n: worker.copy_to(ptr, source.ctypes.data, n),
        lambda n: worker.copy_from(back.ctypes.data, ptr, n),
    ):
        with pytest.raises(ValueError, match="65 bytes don't fit the allocation of 64"):
            operation(65)
    with pytest.raises(ValueError, match="base pointer is needed"):
        worker.copy_to(ptr + 4, source.ctypes.data, 4)
    worker.free(ptr)
    with pytest.raises(ValueError, match="no live allocation"):
        worker.free(ptr)


def test_copies_of_arrays(worker):
    made = worker.alloc_tensor((4, 8), np.float32)
    worker.copy_to(made, ramp(4, 8))
    out = np.zeros((4, 8), F32)
    worker.copy_from(out, made)
    np.testing.assert_array_equal(out, ramp(4, 8))
    assert made.to_host(out) is out
    with pytest.raises(ValueError, match=r"shape and dtype \(8, 4\)"):
        worker.copy_to(made, ramp(8, 4))
    with pytest.raises(ValueError):
        made.to_host(np.zeros(3, F32))


def test_freeing(worker):
    made = worker.alloc_tensor((4,), np.float32)
    with pytest.raises(ValueError, match="worker_id=1"):
        worker.malloc(4, worker_id=1)
    with pytest.raises(ValueError, match="belongs to worker 0, not to worker 1"):
        worker.free_tensor(made, worker_id=1)
    worker.free_tensor(made)
    worker.free_tensor(made)
    renewed = worker.alloc_tensor((4,), np.float32)
    stale = DeviceTensor(renewed.data_ptr, (4,), np.float32)
    with pytest.raises(ValueError, match="stale DeviceTensor"):
        worker.free_tensor(stale)


def test_closing_frees_what_was_forgotten(caplog):
    worker = ChipWorker()
    worker.alloc_tensor((4,), np.float32)
    worker.malloc(8)
    with caplog.at_level(logging.WARNING, "pypto.runtime"):
        worker.close()
    assert [r.getMessage() for r in caplog.records] == ["an allocation of 8 bytes was not freed"]
    worker.close()
    assert not worker.initialized
    with pytest.raises(RuntimeError, match=r"ChipWorker.malloc\(\) requires an initialized ChipWorker"):
        worker.malloc(4)
    worker.init()
    worker.init()
    assert worker.initialized and worker.malloc(4)
    worker.close()


# --- life and use ------------------------------------------------------------------------------------------------------


def test_what_a_worker_says_of_itself():
    lazy = ChipWorker(RunConfig(platform="a2a3sim", device_id=3), auto_init=False)
    assert (lazy.level, lazy.platform, lazy.device_id, lazy.initialized) == (2, "a2a3sim", 3, False)
    assert (lazy.aicpu_dlopen_count, lazy.host_dlopen_count) == (0, 0)
    with pytest.raises(ValueError, match="level must be 2"):
        ChipWorker(level=3)
    with pytest.raises(RuntimeError, match="platform 'a5' is a device"):
        ChipWorker(RunConfig(platform="a5"))


def test_programs_for_something_else_are_refused(worker, compiled):
    other = ir.compile(compiled.program, dump_passes=False, platform="a5sim")
    with pytest.raises(ValueError, match="compiled for platform 'a5sim', the worker is on 'cpu'"):
        worker.run(other, ramp(4, 8))
    with pytest.raises(ValueError, match="compiled for the runtime 'tensormap_and_ringbuffer', the worker has 'x'"):
        ChipWorker(runtime="x").register(compiled)
    with pytest.raises(RuntimeError, match="requires an initialized"):
        ChipWorker(auto_init=False).run(compiled, ramp(4, 8))


def test_registration(worker, compiled):
    with worker.register(compiled) as handle:
        assert handle.compiled is compiled and handle.cid == 0 and not handle.closed
        np.testing.assert_array_equal(handle(ramp(4, 8)), ramp(4, 8) * 2)
        assert worker.register(compiled).cid == 1
    assert handle.closed
    handle.unregister()
    with pytest.raises(RuntimeError, match="closed"):
        handle(ramp(4, 8))


def test_the_worker_of_a_block(compiled):
    asked = {"level": 2, "platform": "cpu", "runtime": "tensormap_and_ringbuffer"}
    with ChipWorker() as outer:
        assert ChipWorker.current(device_id=0, **asked) is outer
        assert ChipWorker.current(device_id=1, **asked) is None
        with pytest.raises(ValueError, match="is entered already"), ChipWorker():
            pass
        with ChipWorker(RunConfig(device_id=1), enable_sdma=True) as inner:
            assert ChipWorker.current(device_id=1, require_sdma=True, **asked) is inner
            np.testing.assert_array_equal(compiled(ramp(4, 8)), ramp(4, 8) * 2)
        with pytest.raises(RuntimeError, match="enable_sdma"):
            ChipWorker.current(device_id=0, require_sdma=True, **asked)
    assert ChipWorker.current(device_id=0, **asked) is None and not outer.initialized


# --- stacked tensors ---------------------------------------------------------------------------------------------------


def shards(count=2, shape=(4, 8)):
    return tuple(DeviceTensor(4096 * (i + 1), shape, np.float32) for i in range(count))


def test_stacked_tensors():
    made = StackedDeviceTensor(shards(), (2, 4, 8), (0, 1))
    assert made.shape == (2, 4, 8) and made.dtype is np.float32
    for index in ((1,), (1, ...), (1, slice(None), slice(0, 8)), 1, -1, np.int64(1)):
        assert made[index] is made.shards[1]
    for index in ((0, slice(1, 4)), (slice(None),), (0, 2), True):
        with pytest.raises(ValueError):
            made[index]
    for index in ((0, ..., ...), (0, slice(None), slice(None), slice(None)), 2):
        with pytest.raises(IndexError):
            made[index]


@pytest.mark.parametrize(
    ("args", "phrase"),
    [
        ((shards(), (3, 4, 8), (0, 1)), "3 shards"),
        ((shards(), (2, 4, 8), (0, 0)), "a worker of its own"),
        ((shards(), (2, 8, 4), (0, 1)), "a shard has shape"),
        ((shards(1, (4,)), (4,), (0,)), "at least two dimensions"),
        (((*shards(1), DeviceTensor(64, (4, 8), np.int32)), (2, 4, 8), (0, 1)), "different element types"),
    ],
)
def test_bad_stacks(args, phrase):
    with pytest.raises(ValueError, match=phrase):
        StackedDeviceTensor(*args)
