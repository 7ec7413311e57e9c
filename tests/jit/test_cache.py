"""What makes two calls share a compilation."""

import math
import threading

import numpy as np
import pytest

import pypto.language as pl
from pypto.jit import cache
from pypto.runtime import RunConfig

M = pl.dynamic("M")
FACTOR = 2.0


def make(extra=1.0):
    @pl.jit
    def kernel(x: pl.Tensor[[M, 64], pl.FP32], y: pl.Out[pl.Tensor[[M, 64], pl.FP32]], g: pl.FP32):
        with pl.at(level=pl.Level.CORE_GROUP):
            t = pl.load(x, [0, 0], [16, 64])
            y = pl.store(pl.mul(pl.add(pl.mul(t, g), extra), FACTOR), [0, 0], y)
        return y

    return kernel


def arrays(rows=16):
    return np.ones((rows, 64), np.float32), np.zeros((rows, 64), np.float32)


def test_equal_calls_share_one_object():
    kernel = make()
    first = kernel.compile(*arrays(), 1.0)
    assert kernel.compile(*arrays(48), 1.0) is first
    assert kernel.compile(*arrays(), 1) is first  # an int for a float parameter is that float
    assert kernel.compile(g=1.0) is first
    assert kernel.compile(g=pl.RUNTIME) is not first
    assert kernel.compile(*arrays(), 2.0) is not first
    assert kernel.cache_info()[:3] == (3, 3, 3)


def test_a_changed_constant_is_seen(monkeypatch):
    kernel = make()
    x, y = arrays()
    kernel(x, y, 3.0)
    assert y[0, 0] == 8.0
    monkeypatch.setitem(globals(), "FACTOR", 10.0)
    kernel(x, y, 3.0)
    assert y[0, 0] == 40.0
    assert kernel.cache_info().misses == 2


def test_a_changed_closure_variable_is_seen():
    extra = 1.0

    @pl.jit
    def kernel(x: pl.Tensor, y: pl.Out[pl.Tensor]):
        with pl.at(level=pl.Level.CORE_GROUP):
            y = pl.store(pl.add(pl.load(x, [0, 0], [16, 64]), extra), [0, 0], y)
        return y

    x, y = arrays()
    kernel(x, y)
    extra = 5.0
    kernel(x, y)
    assert y[0, 0] == 6.0


def test_a_changed_constant_of_a_helper_is_seen():
    shift = [1.0]

    class Box:
        value = 1.0

    @pl.jit.inline
    def helper(t: pl.Tensor):
        return pl.add(pl.add(t, Box.value), shift[0])

    @pl.jit
    def kernel(x: pl.Tensor, y: pl.Out[pl.Tensor]):
        with pl.at(level=pl.Level.CORE_GROUP):
            y = pl.store(helper(pl.load(x, [0, 0], [16, 64])), [0, 0], y)
        return y

    x, y = arrays()
    kernel(x, y)
    assert y[0, 0] == 3.0
    Box.value = 7.0
    shift[0] = 0.5
    kernel(x, y)
    assert y[0, 0] == 8.5


def test_a_replaced_helper_is_seen():
    @pl.jit.inline
    def helper(t: pl.Tensor):
        return pl.add(t, 1.0)

    @pl.jit.inline
    def other(t: pl.Tensor):
        return pl.add(t, 2.0)

    @pl.jit
    def kernel(x: pl.Tensor, y: pl.Out[pl.Tensor]):
        with pl.at(level=pl.Level.CORE_GROUP):
            y = pl.store(helper(pl.load(x, [0, 0], [16, 64])), [0, 0], y)
        return y

    x, y = arrays()
    kernel(x, y)
    helper = other  # noqa: F811
    kernel(x, y)
    assert y[0, 0] == 3.0


def test_numbers_of_different_types_and_nan():
    @pl.jit
    def kernel(x: pl.Tensor[[16, 64], pl.FP32], k):
        return x

    x = arrays()[0]
    found = {id(kernel.compile(x, value)) for value in (1, 1.0, True, math.nan, 0.0, -0.0)}
    assert len(found) == 6
    assert kernel.compile(x, float("nan")) is kernel.compile(x, math.nan)


def test_compile_options_are_part_of_the_key(tmp_path):
    kernel = make()
    plain = kernel.compile(*arrays(), 1.0)
    config = RunConfig(save_kernels_dir=str(tmp_path / "here"))
    placed = kernel.compile(*arrays(), 1.0, config=config)
    assert placed is not plain
    assert kernel.compile(*arrays(), 1.0, config=RunConfig(save_kernels_dir=str(tmp_path / "here"))) is placed
    assert kernel.compile(*arrays(), 1.0, config=RunConfig(platform="a2a3")) is not plain


def test_clear_keys_and_limit():
    kernel = make()
    try:
        pl.jit.cache_limit(2)
        for g in (1.0, 2.0, 3.0):
            kernel.compile(*arrays(), g)
        assert kernel.cache_info() == (0, 3, 2, 2)
        kernel.compile(*arrays(), 2.0)  # used: now 3.0 is the oldest
        kernel.compile(*arrays(), 4.0)
        assert [key[4][0].value for key in kernel.cache_keys()] == [2.0, 4.0]
    finally:
        pl.jit.cache_limit(None)
    kernel.cache_clear()
    assert kernel.cache_info() == (0, 0, 0, None)
    with pytest.raises(ValueError, match="cache_limit"):
        pl.jit.cache_limit(0)


def test_threads_compile_one_key_once():
    kernel = make()
    found = []
    barrier = threading.Barrier(6)

    def work():
        barrier.wait()
        found.append(kernel.compile(*arrays(), 1.0))

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(map(id, found))) == 1
    assert kernel.cache_info()[:2] == (5, 1)


def test_a_failed_compilation_is_not_kept():
    @pl.jit
    def kernel(x: pl.Tensor):
        return later  # noqa: F821

    for _ in range(2):
        with pytest.raises(Exception, match="Undefined variable 'later'"):
            kernel.compile(arrays()[0])
    assert kernel.cache_info().currsize == 0


def test_a_warm_call_does_not_parse(monkeypatch):
    kernel = make()
    kernel.compile(*arrays(), 1.0)
    monkeypatch.setattr("ast.parse", None)
    monkeypatch.setattr("ast.walk", None)
    monkeypatch.setattr("inspect.signature", None)
    assert kernel.compile(*arrays(), 1.0) is kernel.compile(*arrays(), 1.0)


# --- keys -------------------------------------------------------------------------------------------------------------


def key(**changes):
    given = {
        "source_hash": "abc",
        "param_names": ["x", "k"],
        "tensor_shapes": {"x": (16, 64)},
        "tensor_dtypes": {"x": pl.FP32},
        "dynamic_dims": {("x", 0)},
        "scalar_values": {"k": 1},
    }
    return cache.make_cache_key(**{**given, **changes})


def test_the_documented_key():
    found = key(platform="cpu")
    assert found[:3] == ("abc", "cpu", None)
    assert found[3] == (cache.TensorCacheInfo("x", (None, 64), pl.FP32),)
    assert found[4] == (cache.ScalarCacheInfo("k", 1),)
    assert dict(found[6])["runtime"] == "tensormap_and_ringbuffer"
    assert hash(found) == hash(key(platform="cpu"))
    assert found == key(platform="cpu", tensor_shapes={"x": (48, 64)})


@pytest.mark.parametrize(
    "changes",
    [
        {"source_hash": "abd"},
        {"tensor_shapes": {"x": (16, 65)}},
        {"tensor_dtypes": {"x": pl.FP16}},
        {"tensor_layouts": {"x": pl.NZ}},
        {"scalar_values": {"k": 1.0}},
        {"scalar_values": {"k": True}},
        {"scalar_values": {}},
        {"strategy": 1},
        {"analyze_auto_scopes_for_deps": True},
        {"dump_ptoas_passes": True},
        {"memory_planner": "MemoryPlanner.PTOAS"},
        {"enable_pypto_l0c_double_buffer": True},
        {"dep_layouts": [("f", "x", pl.NZ)]},
        {"runtime": "host_build_graph"},
        {"distributed_config": {"device_ids": [0, 1]}},
    ],
)
def test_everything_named_matters(changes):
    assert key(**changes) != key()


def test_the_double_buffer_flag_only_matters_for_the_default_planner():
    planned = {"memory_planner": "MemoryPlanner.PTOAS"}
    assert key(**planned, enable_pypto_l0c_double_buffer=True) == key(**planned)


def test_infos_are_frozen():
    for info in (cache.TensorCacheInfo("x", (1,), pl.FP32), cache.ScalarCacheInfo("k", 1)):
        with pytest.raises(AttributeError):
            info.name = "y"


def test_the_source_hash_depends_on_order():
    assert len(cache.compute_source_hash(["a", "b"])) == 16
    assert cache.compute_source_hash(["a", "b"]) != cache.compute_source_hash(["b", "a"])
    assert cache.compute_source_hash(["ab"]) != cache.compute_source_hash(["a", "b"])


def test_artifacts_on_disk(tmp_path, monkeypatch):
    monkeypatch.setenv("PYPTO_JIT_CACHE_DIR", str(tmp_path / "cache"))
    made = tmp_path / "made"
    (made / "kernels").mkdir(parents=True)
    (made / "kernels" / "a.pto").write_text("text")
    assert cache.l2_lookup(key()) is None
    cache.l2_store(key(), str(made))
    found = cache.l2_lookup(key())
    assert found is not None
    assert cache.l2_lookup(key(source_hash="other")) is None
    # an incomplete copy is not used
    from pathlib import Path

    (Path(found) / "kernels" / "a.pto").unlink()
    assert cache.l2_lookup(key()) is None
    cache.l2_store(key(), str(made))  # and is replaced
    assert cache.l2_lookup(key()) == found


def test_storing_where_nothing_can_be_written_is_silent(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("PYPTO_JIT_CACHE_DIR", str(tmp_path / "file"))
    cache.l2_store(key(), str(tmp_path))
    assert cache.l2_lookup(key()) is None
