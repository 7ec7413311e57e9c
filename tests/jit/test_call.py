"""Calls: arrays are written in place, omitted outputs are returned; the meaning is Python's."""

import numpy as np
import pytest

import pypto.language as pl

M = pl.dynamic("M")
TENSOR = pl.Tensor[[32, 64], pl.FP32]


@pl.jit
def plus(x: TENSOR, y: pl.Out[TENSOR], k: pl.FP32):
    with pl.at(level=pl.Level.CORE_GROUP):
        y = pl.store(pl.add(pl.load(x, [0, 0], [32, 64]), k), [0, 0], y)
    return y


@pl.jit
def rows(x: pl.Tensor[[M, 64], pl.FP32], y: pl.Out[pl.Tensor[[M, 64], pl.FP32]]):
    with pl.at(level=pl.Level.CORE_GROUP):
        for i in pl.range(0, M, 16):
            y = pl.store(pl.add(pl.load(x, [i, 0], [16, 64]), 1.0), [i, 0], y)
    return y


def arrays(count, rows=32):
    return [np.full((rows, 64), i + 1, np.float32) for i in range(count)]


def test_in_place():
    x, y = arrays(2)
    assert plus(x, y, 2.0) is None
    assert (y == 3.0).all()


@pytest.mark.parametrize("call", [lambda x: plus(x, 2.0), lambda x: plus(x, k=2.0), lambda x: plus(k=2.0, x=x)])
def test_an_omitted_output_is_returned(call):
    assert (call(arrays(1)[0]) == 3.0).all()


def test_omitted_outputs_are_what_the_function_returns():
    @pl.jit
    def both(x: TENSOR, a: pl.Out[TENSOR], b: pl.Out[TENSOR]):
        a[:] = pl.add(x, 1.0)
        b[:] = pl.neg(x)
        return b, a

    x, given = arrays(2)
    second, first = both(x)
    assert (first == 2.0).all() and (second == -1.0).all()
    compiled = both.compile()
    assert [r.mean() for r in compiled(x)] == [-1.0, 2.0]
    rest = both(x, given)  # one of them given: the other is the result
    assert (given == 2.0).all() and (rest == -1.0).all()


def test_a_number_in_an_array_without_dimensions():
    x, y = arrays(2)
    plus(x, y, np.array(2.0))
    assert (y == 3.0).all()


def test_an_output_of_a_function_without_return_can_be_omitted():
    @pl.jit
    def silent(x: TENSOR, y: pl.Out[TENSOR]):
        y[:] = pl.neg(x)

    assert (silent(arrays(1)[0]) == -1.0).all()


def test_an_omitted_output_with_a_dynamic_extent():
    found = rows(arrays(1, 48)[0])
    assert found.shape == (48, 64)
    assert (found == 2.0).all()


def test_an_output_of_unknown_shape_can_not_be_omitted():
    @pl.jit
    def entry(x: TENSOR, y: pl.Out[pl.Tensor]):
        return y

    with pytest.raises(TypeError, match="missing a required argument: 'y'"):
        entry(arrays(1)[0])


def test_the_compiled_program_runs_with_any_run_time_scalar():
    compiled = plus.compile(k=pl.RUNTIME)
    for k in (0.5, 4.0):
        x, y = arrays(2)
        compiled(x, y, k)
        assert (y == 1.0 + k).all()


def test_lower_twice_prints_the_same_text():
    x, y = arrays(2)
    assert plus.lower(x, y, 1.0).as_python() == plus.lower(x, y, 1.0).as_python()


def test_lower_writes_no_files(tmp_path):
    x, y = arrays(2)
    plus.lower(x, y, 1.0)
    assert not (tmp_path / "build").exists()


def test_specialized_source():
    text = plus.specialized_source(*arrays(2), 1.0)
    assert "class _jit_plus:" in text


def test_two_call_sites_of_one_helper():
    @pl.jit.incore
    def increase(a: pl.Tensor, o: pl.Out[pl.Tensor], k: pl.FP32):
        o = pl.store(pl.add(pl.load(a, [0, 0], a.shape), k), [0, 0], o)
        return o

    @pl.jit
    def entry(a: pl.Tensor, b: pl.Tensor, p: pl.Out[pl.Tensor], q: pl.Out[pl.Tensor], k: pl.FP32, m: pl.FP32):
        p = increase(a, p, k)
        q = increase(b, q, m)
        return p, q

    a, b = np.ones((4, 64), np.float32), np.ones((8, 64), np.float32)
    p, q = np.zeros_like(a), np.zeros_like(b)
    entry(a, b, p, q, 1.0, 5.0)
    assert (p == 2.0).all()
    assert (q == 6.0).all()


def in_kernel(function):
    return pl.jit(function)


@in_kernel
def swap(x: TENSOR, y: TENSOR, o: pl.Out[TENSOR]):
    with pl.at(level=pl.Level.CORE_GROUP):
        a = pl.add(x, 1.0)
        b = pl.add(y, 2.0)
        a = pl.mul(a, 10.0)
        a, b = b, a
        o[:] = a
    return o


@in_kernel
def siblings(x: TENSOR, y: TENSOR, o: pl.Out[TENSOR]):
    with pl.at(level=pl.Level.CORE_GROUP):
        total = pl.mul(x, 0.0)
        for _i in pl.range(3):
            t = pl.add(x, 1.0)
            t = pl.mul(t, 2.0)
            total = pl.add(total, t)
        for _j in pl.range(2):
            t = pl.add(t, 1.0)
            total = pl.add(total, t)
            total = pl.add(total, y)
        t = pl.add(total, t)
        o[:] = t
    return o


def siblings_in_python(x, y):
    total, t = 0.0, 0.0
    for _ in range(3):
        t = (x + 1) * 2
        total += t
    for _ in range(2):
        t += 1
        total += t
        total += y
    return total + t


@in_kernel
def branches(x: TENSOR, y: TENSOR, o: pl.Out[TENSOR]):
    with pl.at(level=pl.Level.CORE_GROUP):
        n = pl.read(y, [0, 0])
        if n > 2.0:
            z = pl.add(x, 1.0)
        else:
            z = pl.add(x, 2.0)
            z = pl.mul(z, 3.0)
        if n > 2.0:
            w = pl.add(x, 1.0)
            w = pl.mul(w, 3.0)
        else:
            w = pl.add(x, 2.0)
        z = pl.add(z, w)
        o[:] = z
    return o


def branches_in_python(x, y):
    z = x + 1 if y > 2 else (x + 2) * 3
    w = (x + 1) * 3 if y > 2 else x + 2
    return z + w


@pytest.mark.parametrize(
    ("entry", "meaning"),
    [(swap, lambda x, y: y + 2), (siblings, siblings_in_python), (branches, branches_in_python)],
)
@pytest.mark.parametrize(("x", "y"), [(1.0, 5.0), (3.0, 2.0)])
def test_rebinding_means_what_it_means_in_python(entry, meaning, x, y):
    out = np.zeros((32, 64), np.float32)
    entry(np.full((32, 64), x, np.float32), np.full((32, 64), y, np.float32), out)
    assert (out == meaning(x, y)).all()


def test_explain():
    function = plus.__wrapped__
    entry = pl.jit(function)
    x, y = arrays(2)
    before = entry.explain(x, y, 1.0)
    assert "x: [32, 64] FP32" in before
    assert "k: baked as 1.0" in before
    assert before.endswith("not cached: nothing was compiled yet")
    entry(x, y, 1.0)
    assert entry.explain(x, y, 1.0).endswith("  cached")
    assert entry.explain(x, y, 2.0).endswith("not cached: other argument types or numbers")
    assert "x: [M, 64] FP32" in rows.explain(x, y)


def test_compilations_kept_on_disk(tmp_path, monkeypatch):
    monkeypatch.setenv("PYPTO_JIT_CACHE_DIR", str(tmp_path / "disk"))
    x, y = arrays(2)
    first = pl.jit(plus.__wrapped__)
    first(x, y, 2.0)
    again = pl.jit(plus.__wrapped__)
    monkeypatch.setattr(again, "_specialized", None)  # nothing is specialised: the files of the first one serve
    y[:] = 0
    again(x, y, 2.0)
    assert (y == 3.0).all()
    assert str(again.compile(x, y, 2.0).output_dir).startswith(str(tmp_path / "disk"))
