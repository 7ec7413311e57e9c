"""Helpers: one specialisation for each set of argument types and constants."""

import types
import warnings

import numpy as np
import pytest

import pypto.language as pl
from pypto.diag.parser_errors import ParserTypeError, UndefinedVariableError, UnsupportedFeatureError
from pypto.ir.expr import Call
from pypto.ir.tree import flatten_to_stmts, walk

M = pl.dynamic("M")
SMALL = pl.Tensor[[4, 64], pl.FP32]
BIG = pl.Tensor[[8, 64], pl.FP32]


@pl.jit.incore
def increase(a: pl.Tensor, o: pl.Out[pl.Tensor], k: pl.FP32 = 1.0):
    t = pl.load(a, [0, 0], a.shape)
    o = pl.store(pl.add(t, k), [0, 0], o)
    return o


@pl.jit.inline
def twice(t: pl.Tensor):
    return pl.add(t, t)


def functions_of(program):
    return sorted(g.name for g in program.functions)


def calls_of(function):
    return [c.op.name for c in walk(function.body) if isinstance(c, Call) and "." not in c.op.name]


def test_call_sites_with_other_types_or_constants_get_their_own(ones, text_of):
    @pl.jit
    def entry(small: SMALL, big: BIG, o1: pl.Out[SMALL], o2: pl.Out[BIG], k: pl.FP32, m: pl.FP32):
        o1 = increase(small, o1, k)
        o2 = increase(big, k=m, o=o2)
        o1 = increase(small, o1, k)
        return o1, o2

    program = entry.specialize(ones(4, 64), ones(8, 64), ones(4, 64), ones(8, 64), 1.5, 2.5)
    text_of(program)
    assert functions_of(program) == ["entry", "increase", "increase__1"]
    assert calls_of(program["entry"]) == ["increase", "increase__1", "increase"]
    assert "pl.tile.adds(t, 1.5)" in program["increase"].as_python()
    assert "pl.tile.adds(t, 2.5)" in program["increase__1"].as_python()


def test_a_literal_reaches_the_helper_and_a_default_counts(ones):
    @pl.jit
    def entry(a: SMALL, o: pl.Out[SMALL]):
        o = increase(a, o, 3)
        o = increase(a, o)
        return o

    program = entry.specialize(ones(4, 64), ones(4, 64))
    assert "pl.tile.adds(t, 3.0)" in program["increase"].as_python()
    assert "pl.tile.adds(t, 1.0)" in program["increase__1"].as_python()


def test_a_run_time_scalar_stays_a_parameter(ones):
    @pl.jit
    def entry(a: SMALL, o: pl.Out[SMALL], n: pl.Tensor[[1], pl.FP32]):
        k = pl.read(n, [0])
        o = increase(a, o, k)
        return o

    program = entry.specialize(ones(4, 64), ones(4, 64), ones(1))
    assert "pl.tile.adds(t, k)" in program["increase"].as_python()


def test_types_come_from_inference(ones, text_of):
    @pl.jit
    def entry(x: BIG, o: pl.Out[SMALL]):
        part = pl.reshape(x[0:4, :], [4, 64])
        local = pl.create_tensor([4, 64], dtype=pl.FP32)
        local = increase(part, local)
        o = increase(twice(local), o)
        return o

    program = entry.specialize(ones(8, 64), ones(4, 64))
    text_of(program)
    assert functions_of(program) == ["entry", "increase", "twice"]
    assert [e.value for e in program["twice"].params[0].type.shape] == [4, 64]


def test_a_helper_may_take_tiles(ones, text_of):
    @pl.jit
    def entry(x: SMALL, o: pl.Out[SMALL]):
        with pl.at(level=pl.Level.CORE_GROUP):
            o = pl.store(twice(pl.load(x, [0, 0], [4, 64])), [0, 0], o)
        return o

    assert "pl.tile.add(t, t)" in text_of(entry.specialize(ones(4, 64), ones(4, 64)))


def test_a_parameter_that_is_any_tile(ones, text_of):
    @pl.jit.inline
    def halve(t: pl.Tile):
        return pl.mul(t, 0.5)

    @pl.jit
    def entry(x: SMALL, o: pl.Out[SMALL]):
        with pl.at(level=pl.Level.CORE_GROUP):
            o = pl.store(halve(pl.load(x, [0, 0], [4, 64])), [0, 0], o)
        return o

    assert "pl.tile.muls(t, 0.5)" in text_of(entry.specialize(ones(4, 64), ones(4, 64)))

    @pl.jit
    def wrong(x: SMALL):
        return halve(x)

    with pytest.raises(ParserTypeError, match="argument 't' of function 'halve': parameter is Tile but expression has"):
        wrong.specialize(ones(4, 64))

    @pl.jit
    def tile_entry(x: pl.Tile):
        return x

    with pytest.raises(ParserTypeError, match="Incomplete type annotation: pl.Tile"):
        tile_entry.specialize(ones(4, 64))


def test_several_results(ones, text_of):
    @pl.jit.incore
    def both(a: pl.Tensor, p: pl.Out[pl.Tensor], q: pl.Out[pl.Tensor]):
        t = pl.load(a, [0, 0], a.shape)
        p = pl.store(t, [0, 0], p)
        q = pl.store(t, [0, 0], q)
        return p, q

    @pl.jit
    def entry(a: SMALL, p: pl.Out[SMALL], q: pl.Out[SMALL]):
        p, q = both(a, p, q)
        return p, q

    program = entry.specialize(ones(4, 64), ones(4, 64), ones(4, 64))
    text_of(program)
    assert len(program["both"].return_types) == 2


def test_a_helper_of_a_module(ones):
    module = types.SimpleNamespace(increase=increase)

    @pl.jit
    def entry(a: SMALL, o: pl.Out[SMALL]):
        o = module.increase(a, o)
        return o

    assert functions_of(entry.specialize(ones(4, 64), ones(4, 64))) == ["entry", "increase"]


def test_a_result_may_have_the_helpers_name(ones):
    @pl.jit
    def entry(a: SMALL, o: pl.Out[SMALL]):
        increase = increase_(a, o)
        increase = increase_(increase, o)
        return increase

    increase_ = increase
    assert functions_of(entry.specialize(ones(4, 64), ones(4, 64))) == ["entry", "increase"]


def test_a_helper_may_be_launched(ones, text_of):
    @pl.jit
    def entry(a: SMALL, o: pl.Out[SMALL]):
        with pl.manual_scope():
            o1, first = pl.submit(increase, a, o, 2.0)
            o2, _ = pl.submit(increase, a, o1, 2.0, deps=[first])
        return o2

    program = entry.specialize(ones(4, 64), ones(4, 64))
    text_of(program)
    assert functions_of(program) == ["entry", "increase"]


def make_other():
    @pl.jit.incore
    def increase(a: pl.Tensor, o: pl.Out[pl.Tensor]):
        o = pl.store(pl.load(a, [0, 0], a.shape), [0, 0], o)
        return o

    return increase


def test_two_functions_of_one_name(ones, text_of):
    other = make_other()

    @pl.jit
    def entry(a: SMALL, o: pl.Out[SMALL]):
        o = increase(a, o)
        o = other(a, o)
        return o

    program = entry.specialize(ones(4, 64), ones(4, 64))
    text_of(program)
    assert functions_of(program) == ["entry", "increase", "increase_1"]


def test_directions_on_inline_parameters_are_deprecated(ones):
    @pl.jit.inline
    def spliced(a: pl.Tensor, o: pl.Out[pl.Tensor]):
        o = increase(a, o)
        return o

    @pl.jit
    def entry(a: SMALL, o: pl.Out[SMALL]):
        o = spliced(a, o)
        return o

    with pytest.warns(DeprecationWarning, match="'spliced': pl.Out/pl.InOut on o"):
        program = entry.specialize(ones(4, 64), ones(4, 64))
    assert [d.name for d in program["spliced"].param_directions] == ["In", "In"]


def test_no_warning_without_directions(ones):
    @pl.jit
    def entry(a: SMALL):
        return twice(a)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        entry.specialize(ones(4, 64))


# --- dynamic dimensions -----------------------------------------------------------------------------------------------


@pl.jit.incore
def copy_rows(x: pl.Tensor[[M, 64], pl.FP32], y: pl.Out[pl.Tensor[[M, 64], pl.FP32]]):
    for i in pl.range(0, M, 16):
        y = pl.store(pl.load(x, [i, 0], [16, 64]), [i, 0], y)
    return y


def extents(kind):
    return [getattr(e, "name_hint", None) or e.value for e in kind.shape]


def test_a_dynamic_dimension_of_a_helper_reaches_its_callers(ones, text_of):
    @pl.jit.opaque
    def middle(x: pl.Tensor, y: pl.Out[pl.Tensor]):
        y = copy_rows(x, y=y)
        return y

    @pl.jit
    def entry(x: pl.Tensor, y: pl.Out[pl.Tensor]):
        y = middle(x, y)
        return y

    program = entry.specialize(ones(48, 64), ones(48, 64))
    text_of(program)
    for name in ("entry", "middle", "copy_rows"):
        assert [extents(p.type) for p in program[name].params] == [["M", 64], ["M", 64]]
    assert "pl.range(0, pl.tensor.dim(x, 0), 16)" in program["copy_rows"].as_python()


def test_a_subscripted_argument_makes_nothing_dynamic(ones, text_of):
    @pl.jit
    def entry(x: pl.Tensor, y: pl.Out[pl.Tensor]):
        z = copy_rows(x[0], y[0])
        return z

    program = entry.specialize(ones(2, 48, 64), ones(2, 48, 64))
    text_of(program)
    assert [extents(p.type) for p in program["entry"].params] == [[2, 48, 64], [2, 48, 64]]
    assert extents(program["entry"].return_types[0]) == [48, 64]


def test_an_extent_that_only_the_caller_knows_is_a_symbol_of_the_helper(ones, text_of):
    @pl.jit
    def entry(x: pl.Tensor[[M, 64], pl.FP32], o: pl.Out[pl.Tensor[[M, 64], pl.FP32]]):
        n = M // 2
        part = x[0:n, :]
        copy = pl.create_tensor([n, 64], dtype=pl.FP32)
        copy = by_rows(part, copy)
        return o

    @pl.jit.incore
    def by_rows(src: pl.Tensor, dst: pl.Out[pl.Tensor]):
        for i in pl.range(src.shape[0]):
            dst = pl.store(pl.load(src, [i, 0], [1, 64]), [i, 0], dst)
        return dst

    program = entry.specialize(ones(48, 64), ones(48, 64))
    text_of(program)
    assert [extents(p.type) for p in program["by_rows"].params] == [["src_dim0", 64], ["src_dim0", 64]]


@pytest.mark.parametrize("read", ["symbol", "shape"])
def test_bind_dynamic(read, ones, text_of):
    @pl.jit
    def entry(x: pl.Tensor, y: pl.Out[pl.Tensor], by_symbol: pl.BOOL):
        rows = pl.dynamic("N")
        x.bind_dynamic(0, rows)
        y.bind_dynamic(0, rows)
        R, C = x.shape
        with pl.at(level=pl.Level.CORE_GROUP):
            for i in pl.range(0, rows if by_symbol else R, 16):
                y = pl.store(pl.load(x, [i, 0], [16, C]), [i, 0], y)
        return y

    program = entry.specialize(ones(48, 64), ones(48, 64), read == "symbol")
    text = text_of(program)
    assert 'N = pl.dynamic("N")' in text
    assert [extents(p.type) for p in program["entry"].params[:2]] == [["N", 64], ["N", 64]]
    assert "for i in pl.range(0, N, 16):" in text


# --- errors -----------------------------------------------------------------------------------------------------------


def test_recursion():
    @pl.jit.inline
    def ping(x: pl.Tensor):
        return pong(x)

    @pl.jit.inline
    def pong(x: pl.Tensor):
        return ping(x)

    @pl.jit
    def entry(x: SMALL):
        return ping(x)

    with pytest.raises(TypeError, match="@pl.jit functions cannot be recursive: ping -> pong -> ping"):
        entry.specialize()


def test_an_entry_is_not_a_helper(ones):
    @pl.jit
    def inner(x: SMALL):
        return x

    @pl.jit
    def outer(x: SMALL):
        y = inner(x)
        return y

    with pytest.raises(UnsupportedFeatureError, match="Unsupported function call: inner") as info:
        outer.specialize(ones(4, 64))
    assert info.value.hint == "Mark it @pl.jit.inline, .incore or .opaque"


def test_arguments_are_checked(ones):
    @pl.jit.incore
    def fixed(a: BIG, o: pl.Out[BIG]):
        return o

    @pl.jit
    def entry(a: SMALL, o: pl.Out[SMALL]):
        o = fixed(a, o)
        o = increase(a)
        o = increase(a, o, 1.0, 2.0)
        o = increase(a, o, q=3)
        return o

    with pytest.raises(ParserTypeError) as info:
        entry.specialize(ones(4, 64), ones(4, 64))
    assert [e.message for e in info.value.all_errors()] == [
        "argument 'a' of function 'fixed': parameter has shape dimension 0 = 8 but expression has shape dimension 0 = 4",
        "Function 'increase' expects 3 argument(s), got 1",
        "Function 'increase' expects 3 argument(s), got 4",
        "Function 'increase' does not accept keyword argument 'q'",
    ]


def test_an_error_in_a_helper_is_told_once_and_names_the_call(ones):
    @pl.jit.incore
    def broken(a: pl.Tensor, o: pl.Out[pl.Tensor]):
        o = pl.store(nowhere, [0, 0], o)  # noqa: F821
        return o

    @pl.jit
    def entry(a: SMALL, o: pl.Out[SMALL]):
        o = broken(a, o)
        o = broken(a, o)
        return o

    with pytest.raises(UndefinedVariableError) as info:
        entry.specialize(ones(4, 64), ones(4, 64))
    assert len(list(info.value.all_errors())) == 1
    assert "in 'broken', specialised for the call at" in info.value.note
    assert info.value.span["filename"] == __file__


# --- inline helpers inside expressions --------------------------------------------------------------------------------


def statements_of(function):
    return [type(s).__name__ for s in flatten_to_stmts(function.body)]


def test_an_inline_helper_inside_an_expression_is_a_statement_in_front(ones, text_of):
    """Only there can it be expanded; a call that is a whole statement stays as it is written."""

    @pl.jit
    def entry(a: SMALL, o: pl.Out[SMALL]):
        b = twice(a)
        # about the sum
        o = pl.add(twice(b), pl.mul(twice(twice(a)), 2.0))
        return pl.exp(twice(o))

    entry_function = entry.specialize(ones(4, 64), ones(4, 64))["entry"]
    assert statements_of(entry_function) == ["AssignStmt"] * 6 + ["ReturnStmt"]
    first, second, *_ = flatten_to_stmts(entry_function.body)
    assert first.var.name_hint == "b" and second.leading_comments == ["about the sum"]
    assert all(type(s.value) is Call for s in flatten_to_stmts(entry_function.body)[:-1])
    text_of(entry.specialize(ones(4, 64), ones(4, 64)))


def test_an_inline_helper_stays_behind_a_launch_and_in_conditions(ones):
    """Its body would come before the launch, or once instead of before each iteration."""

    @pl.jit.inline
    def next_of(n: pl.INDEX):
        return n + 1

    @pl.jit
    def entry(a: SMALL, o: pl.Out[SMALL], t: pl.Tensor[[1], pl.INT32]):
        n = pl.cast(pl.read(t, [0]), pl.INDEX)
        o = pl.add(increase(a, o), twice(o))
        while next_of(n) < 4:
            n = n + 1
        return o

    function = entry.specialize(ones(4, 64), ones(4, 64), ones(1).astype("int32"))["entry"]
    assert statements_of(function) == ["AssignStmt", "AssignStmt", "WhileStmt", "ReturnStmt"]


# --- results whose extents the helper computes ------------------------------------------------------------------------

ROWS = pl.dynamic("ROWS")


@pl.jit.inline
def ragged_twice(x: pl.Tensor, row: pl.INDEX):
    rows = pl.min(8, x.shape[0] - row)
    return pl.mul(pl.slice(x, [8, 64], [row, 0], valid_shape=[rows, 64]), 2.0)


@pl.jit.inline
def ragged_pair(x: pl.Tensor, row: pl.INDEX):
    left, rows = x.shape[0] - row, 8
    count = pl.min(rows, left)
    return pl.mul(pl.slice(x, [8, 64], [row, 0], valid_shape=[count, 64]), 2.0)


@pytest.mark.parametrize("helper", [ragged_twice, ragged_pair], ids=["scalar", "tuple"])
def test_extents_that_a_helper_computes_are_known_where_it_is_called(helper):
    @pl.jit
    def entry(x: pl.Tensor[[ROWS, 64], pl.FP32], y: pl.Out[pl.Tensor[[ROWS, 64], pl.FP32]]):
        for row in pl.parallel(0, x.shape[0], 8):
            with pl.at(level=pl.Level.CORE_GROUP):
                part = helper(x, row)
                y[row : row + 8, :] = part
        return y

    x = np.random.default_rng(0).standard_normal((20, 64), np.float32)
    y = np.zeros_like(x)
    entry(x, y)
    np.testing.assert_array_equal(y, 2 * x)


@pytest.mark.parametrize("how", ["window", "augmented", "annotated"])
def test_a_helper_can_be_called_wherever_a_value_stands(how):
    @pl.jit
    def entry(x: SMALL, y: pl.Out[SMALL], how: int):
        with pl.at(level=pl.Level.CORE_GROUP):
            t = x[0:4, :]
            if how == 0:
                y[0:4, :] = twice(t)
            elif how == 1:
                t += twice(t)
                y[0:4, :] = t
            else:
                u: SMALL = twice(t)
                y[0:4, :] = u
        return y

    x, y = np.ones((4, 64), np.float32), np.zeros((4, 64), np.float32)
    which = ["window", "augmented", "annotated"].index(how)
    entry(x, y, which)
    np.testing.assert_array_equal(y, x * (2, 3, 2)[which])
