"""What becomes of a body: shapes, constants, branches, names, results."""

import dataclasses
import enum

import numpy as np
import pytest

import pypto.language as pl
from pypto.diag.parser_errors import ParserError, ParserTypeError, UndefinedVariableError
from pypto.ir import DataType
from pypto.ir.stmt import AssignStmt, IfStmt
from pypto.ir.tree import walk

EPS = 0.25
SHAPE = [16, 64]
ACC = pl.FP32
NOTHING = None


class Config:
    WIDTH = 64


@dataclasses.dataclass(frozen=True)
class Sizes:
    rows: int = 16


SIZES = Sizes()


class Mode(enum.IntEnum):
    FAST = 1


TENSOR = pl.Tensor[[16, 64], pl.FP32]


def lines_of(program, name):
    text = program[name].as_python()
    return [line.strip() for line in text.splitlines()]


def body_of(program, name):
    return [line for line in lines_of(program, name) if not line.startswith(("@", "def "))]


def names_assigned(function):
    return [s.var.name_hint for s in walk(function.body) if isinstance(s, AssignStmt)]


def test_the_example_of_the_guide(ones, text_of):
    @pl.jit.incore
    def square(src: pl.Tensor, dst: pl.Out[pl.Tensor]):
        r, c = src.shape
        t = pl.load(src, [0, 0], [r, c])
        dst = pl.store(pl.add(pl.mul(t, t), EPS), [0, 0], dst)
        return dst

    @pl.jit
    def energy(x: pl.Tensor, y: pl.Out[pl.Tensor], repeat: pl.INDEX):
        for _ in pl.range(repeat):
            y = square(x, y)
        return y

    program = energy.specialize(ones(48, 64), ones(48, 64), 3)
    text_of(program)
    assert body_of(program, "energy") == [
        "for _ in pl.range(3):",
        "y: pl.Tensor[[48, 64], pl.FP32] = square(x, y)",
        "return y",
    ]
    assert body_of(program, "square") == [
        "t: pl.Tile[[48, 64], pl.FP32, pl.Mem.Vec] = "
        "pl.tile.load(src, [0, 0], [48, 64], [48, 64], target_memory=pl.Mem.Vec)",
        "dst_v1: pl.Tensor[[48, 64], pl.FP32] = pl.tile.store(pl.tile.adds(pl.tile.mul(t, t), 0.25), [0, 0], dst)",
        "return dst_v1",
    ]


# --- shapes -----------------------------------------------------------------------------------------------------------


def test_static_shape_reads_are_constants(ones, text_of):
    @pl.jit
    def entry(x: pl.Tensor, y: pl.Tensor):
        rows, columns = x.shape
        last = x.shape[-1]
        half = rows // 2
        a = pl.create_tensor(x.shape, dtype=x.dtype)
        b = pl.create_tensor([x.shape[0], last], dtype=pl.FP16)
        c = pl.create_tensor(y.shape[1:], dtype=y.dtype)
        d = pl.create_tensor([x.ndim, len(y.shape) + columns], dtype=pl.INT32)
        return a, b, c, d

    program = entry.specialize(ones(48, 64), ones(2, 3, 4, dtype=np.int8))
    text_of(program)
    function = program["entry"]
    assert names_assigned(function) == ["a", "b", "c", "d"]
    assert [([e.value for e in t.shape], t.dtype) for t in function.return_types] == [
        ([48, 64], DataType.FP32),
        ([48, 64], DataType.FP16),
        ([3, 4], DataType.INT8),
        ([2, 67], DataType.INT32),
    ]


def test_a_name_bound_once_to_an_int_can_be_an_extent(ones, text_of):
    @pl.jit
    def entry(x: pl.Tensor, y: pl.Out[pl.Tensor], k: pl.INT32):
        half = x.shape[1] // 2
        block = 16
        steps = min(half, block) if x.ndim == 2 else 1
        scalar = k + 1
        count = 0
        for _ in pl.range(steps):
            count = count + 1
        with pl.at(level=pl.Level.CORE_GROUP):
            t = pl.add(pl.load(x, [0, 0], [block, half]), pl.load(x, [0, half], [16, 32]))
            y = pl.store(t, [0, 0], y)
        return y, scalar, count

    program = entry.specialize(ones(48, 64), ones(16, 32), 3)
    text_of(program)
    # A scalar parameter keeps its element type, a counter is no constant: both stay statements.
    assert names_assigned(program["entry"])[:2] == ["scalar", "count"]
    assert not {"half", "block", "steps"} & set(names_assigned(program["entry"]))


def test_a_name_bound_once_stands_for_its_constant(ones, text_of):
    @pl.jit
    def entry(x: pl.Tensor, y: pl.Out[pl.Tensor]):
        acc = pl.FP32
        shape = [16, 32]
        origin = (0, 0)
        space = pl.Mem.Vec
        mode = "floor"
        factor = 1.0 / x.shape[1]
        tall = x.shape[0] > 32
        with pl.at(level=pl.Level.CORE_GROUP):
            ones_ = pl.tile.full(shape, dtype=acc, value=1.0)
            if tall:
                t = pl.load(x, origin, shape, target_memory=space)
            else:
                t = pl.load(x, origin, [1])
            t = pl.cast(pl.cast(pl.mul(pl.add(t, ones_), factor), pl.INT32, mode=mode), acc)
            y = pl.store(t, origin, y)
        return y

    program = entry.specialize(ones(48, 64), ones(16, 32))
    text = text_of(program)
    assert "pl.tile.muls(pl.tile.add(t, ones_), 0.015625)" in text
    assert set(names_assigned(program["entry"])) == {"ones_", "t", "t_v1", "y"}


def test_a_shape_read_beyond_the_rank_is_an_error(ones):
    @pl.jit
    def entry(x: pl.Tensor):
        a = pl.create_tensor([x.shape[2]], dtype=pl.FP32)
        return a

    with pytest.raises(ParserTypeError, match="the rank is 2"):
        entry.specialize(ones(4, 4))


def test_shapes_of_local_values(ones):
    @pl.jit
    def entry(x: pl.Tensor, y: pl.Out[pl.Tensor]):
        with pl.at(level=pl.Level.CORE_GROUP):
            t = pl.load(x, [0, 0], [16, 32])
            r, c = t.shape
            y = pl.store(pl.load(x, [r, c], [r, c]), [0, 0], y)
        return y

    assert "pl.tile.load(x, [16, 32], [16, 32], [16, 32]" in entry.specialize(ones(64, 64), ones(64, 64)).as_python()


def test_a_name_that_changes_later_is_a_variable(ones, text_of):
    @pl.jit
    def entry(x: pl.Tensor):
        n = x.shape[0]
        for _ in pl.range(3):
            n = n - 1
        a = pl.create_tensor([n, 4], dtype=pl.FP32)
        return a

    program = entry.specialize(ones(16, 64))
    text_of(program)
    assert body_of(program, "entry")[:3] == [
        "n: pl.Scalar[pl.INDEX] = 16",
        "for _ in pl.range(3):",
        "n: pl.Scalar[pl.INDEX] = n - 1",
    ]


# --- constants --------------------------------------------------------------------------------------------------------


def test_constants_of_the_surrounding_code_are_folded(ones, text_of):
    factor = 4

    @pl.jit
    def entry(x: pl.Tensor):
        a = pl.create_tensor([SIZES.rows * factor, Config.WIDTH // 2], dtype=ACC)
        b = pl.create_tensor(SHAPE, dtype=ACC)
        c = pl.create_tensor([SHAPE[0], Mode.FAST], dtype=pl.FP32)
        return a, b, c

    program = entry.specialize(ones(4, 4))
    text_of(program)
    assert [[e.value for e in t.shape] for t in program["entry"].return_types] == [[64, 32], [16, 64], [16, 1]]


def test_a_local_name_hides_a_constant(ones):
    @pl.jit
    def entry(x: pl.Tensor):
        with pl.at(level=pl.Level.CORE_GROUP):
            y = pl.add(x, EPS)  # noqa: F823 - assigned below: local, and so unbound here
            EPS = 1.0
        return y

    with pytest.raises(UndefinedVariableError, match="Undefined variable 'EPS'"):
        entry.specialize(ones(16, 64))


def test_a_baked_scalar_folds_like_a_constant(ones, text_of):
    @pl.jit
    def entry(x: pl.Tensor, y: pl.Out[pl.Tensor], n: pl.INDEX):
        with pl.at(level=pl.Level.CORE_GROUP):
            y = pl.store(pl.load(x, [0, 0], [n // 2, 64]), [n % 3, 0], y)
        return y

    assert "pl.tile.load(x, [0, 0], [16, 64], [16, 64]" in text_of(entry.specialize(ones(64, 64), ones(64, 64), 32))


def test_a_rebound_scalar_parameter_is_a_variable(ones, text_of):
    @pl.jit
    def entry(x: pl.Tensor, k: pl.INDEX, m: pl.INDEX):
        k = k + 1
        for _ in pl.range(k):
            m = m + 1
        a = pl.create_tensor([k, m], dtype=pl.FP32)
        return a

    program = entry.specialize(ones(4, 4), 2, 3)
    text_of(program)
    assert body_of(program, "entry")[:3] == [
        "k_v1: pl.Scalar[pl.INDEX] = 3",
        "for _ in pl.range(k_v1):",
        "m: pl.Scalar[pl.INDEX] = m + 1",
    ]


# --- branches ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("flag", "rows", "width"), [(True, 32, 1), (True, 4, 2), (False, 32, 3)])
def test_a_branch_on_a_constant_is_resolved(flag, rows, width, ones, text_of):
    @pl.jit
    def entry(x: pl.Tensor, flag: pl.BOOL):
        if flag and x.shape[0] > 16:
            a = pl.create_tensor([1, 1], dtype=pl.FP32)
        elif flag:
            a = pl.create_tensor([1, 2], dtype=pl.FP32)
        else:
            a = pl.create_tensor([1, 3], dtype=pl.FP32)
        return a

    program = entry.specialize(ones(rows, 8), flag)
    text_of(program)
    assert not any(isinstance(s, IfStmt) for s in walk(program["entry"].body))
    assert program["entry"].return_types[0].shape[1].value == width


def test_the_dead_branch_may_be_wrong(ones):
    @pl.jit
    def entry(x: pl.Tensor):
        if NOTHING is None:
            y = x
        else:
            y = pl.nonsense(x, undefined)  # noqa: F821
        return y

    entry.specialize(ones(4, 4))


def test_a_branch_on_a_run_time_value_stays(ones, text_of):
    @pl.jit
    def entry(x: pl.Tensor, y: pl.Out[pl.Tensor], flag: pl.BOOL):
        with pl.at(level=pl.Level.CORE_GROUP):
            n = pl.read(x, [0])
            if flag and n > 3:
                pl.write(y, [0], n)
        return y

    program = entry.specialize(ones(4, dtype=np.int32), ones(4, dtype=np.int32), True)
    text_of(program)
    assert any(isinstance(s, IfStmt) for s in walk(program["entry"].body))


def test_a_conditional_expression_on_constants(ones):
    @pl.jit
    def entry(x: pl.Tensor):
        a = pl.create_tensor([8 if x.dtype == pl.FP32 else 4, 2], dtype=pl.FP32)
        return a

    assert entry.specialize(ones(4, 4))["entry"].return_types[0].shape[0].value == 8
    assert entry.specialize(ones(4, 4, dtype=np.int32))["entry"].return_types[0].shape[0].value == 4


# --- names ------------------------------------------------------------------------------------------------------------


def test_rebinding_in_one_scope_renames(ones, text_of):
    @pl.jit
    def entry(x: TENSOR, y: pl.Out[TENSOR]):
        with pl.at(level=pl.Level.CORE_GROUP):
            t = pl.load(x, [0, 0], [16, 64])
            t = pl.mul(t, 2.0)
            t_v2 = pl.mul(t, 3.0)
            t = pl.add(t, t_v2)
            y = pl.store(t, [0, 0], y)
        return y

    program = entry.specialize(ones(16, 64), ones(16, 64))
    text_of(program)
    assert names_assigned(program["entry"]) == ["t", "t_v1", "t_v2", "t_v3", "y"]


def test_an_update_in_a_deeper_scope_does_not_rename(ones, text_of):
    @pl.jit
    def entry(x: TENSOR, y: pl.Out[TENSOR]):
        with pl.at(level=pl.Level.CORE_GROUP):
            t = pl.mul(x, 1.0)
            t = pl.mul(t, 2.0)
            for _ in pl.range(3):
                t = pl.add(t, 1.0)
            y[:] = t
        return y

    program = entry.specialize(ones(16, 64), ones(16, 64))
    text_of(program)
    assert names_assigned(program["entry"]) == ["t", "t_v1", "t_v1", "y"]


def test_errors_speak_of_the_names_that_the_user_wrote(ones):
    @pl.jit
    def entry(x: TENSOR, y: pl.Out[TENSOR]):
        with pl.at(level=pl.Level.CORE_GROUP):
            t = pl.mul(x, 1.0)
            t = pl.mul(t, 2.0)
            pl.static_assert(t_v1 > 0)  # noqa: F821
        return y

    with pytest.raises(ParserError) as info:
        entry.specialize(ones(16, 64), ones(16, 64))
    assert "t_v1" not in info.value.message


# --- results ----------------------------------------------------------------------------------------------------------


def test_results_are_inferred(ones):
    @pl.jit
    def entry(x: TENSOR, y: pl.Out[TENSOR]):
        part = pl.slice(x, [4, 64], [0, 0])
        return part, y

    function = entry.specialize(ones(16, 64), ones(16, 64))["entry"]
    assert [[e.value for e in t.shape] for t in function.return_types] == [[4, 64], [16, 64]]


def test_no_result_no_annotation(ones):
    @pl.jit
    def entry(x: TENSOR, y: pl.Out[TENSOR]):
        with pl.at(level=pl.Level.CORE_GROUP):
            y = pl.store(pl.load(x, [0, 0], [16, 64]), [0, 0], y)

    assert not entry.specialize(ones(16, 64), ones(16, 64))["entry"].return_types


def test_a_declared_result_is_checked(ones):
    @pl.jit
    def entry(x: pl.Tensor) -> pl.Tensor[[8, 64], pl.FP32]:
        return x

    entry.specialize(ones(8, 64))
    with pytest.raises(ParserTypeError, match="return value 0: declared result has shape dimension 0 = 8"):
        entry.specialize(ones(16, 64))


def test_bare_results_are_left_to_inference(ones):
    @pl.jit
    def entry(x: pl.Tensor, y: pl.Tensor) -> tuple[pl.Tensor, pl.Tensor[[4, 4], pl.FP32]]:
        return x, y

    function = entry.specialize(ones(16, 64), ones(4, 4))["entry"]
    assert [[e.value for e in t.shape] for t in function.return_types] == [[16, 64], [4, 4]]
    with pytest.raises(ParserTypeError, match="return value 1: declared result has shape dimension 0 = 4"):
        entry.specialize(ones(16, 64), ones(5, 4))


# --- tuples, lists, returns -------------------------------------------------------------------------------------------


def test_items_of_a_tuple_are_as_static_as_if_they_were_assigned_alone():
    @pl.jit
    def entry(x: TENSOR, y: pl.Out[TENSOR], k: pl.Scalar[pl.INDEX]):
        rows, by, more, most = min(8, x.shape[0]), 3, k + 1, k + 2
        for row in pl.parallel(0, x.shape[0], rows):
            with pl.at(level=pl.Level.CORE_GROUP):
                t = pl.full([rows, 64], dtype=pl.FP32, value=by)  # shapes are static
                t = pl.add(t, pl.cast(more * 10 + most, pl.FP32))
                y[row : row + rows, :] = pl.add(t, x[row : row + rows, :])
        return y

    x, y = np.ones((16, 64), np.float32), np.zeros((16, 64), np.float32)
    entry(x, y, 2)
    np.testing.assert_array_equal(y, np.full_like(y, 1 + 3 + 30 + 4))


def test_values_of_a_tuple_are_computed_before_any_is_assigned():
    @pl.jit
    def entry(x: TENSOR, y: pl.Out[TENSOR], k: pl.Scalar[pl.INDEX]):
        a = k
        b = k * 10
        a, b, by = b, a, 3
        with pl.at(level=pl.Level.CORE_GROUP):
            y[:, :] = pl.add(pl.mul(x, by), pl.cast(a * 2 + b, pl.FP32))
        return y

    x, y = np.ones((16, 64), np.float32), np.zeros((16, 64), np.float32)
    entry(x, y, 7)
    np.testing.assert_array_equal(y, np.full_like(y, 3 + 140 + 7))


def test_a_named_list_stands_for_its_items():
    @pl.jit
    def entry(x: TENSOR, y: pl.Out[TENSOR]):
        for row in pl.parallel(0, 16, 8):
            with pl.at(level=pl.Level.CORE_GROUP):
                place = [row, 0]
                size = [8, 64]
                y = pl.assemble(y, pl.mul(pl.slice(x, size, place), 2.0), place)
        return y

    x = np.random.default_rng(0).standard_normal((16, 64), np.float32)
    y = np.zeros_like(x)
    entry(x, y)
    np.testing.assert_array_equal(y, 2 * x)


def test_nothing_behind_a_return_of_a_resolved_branch_is_looked_at():
    @pl.jit
    def entry(x: TENSOR, y: pl.Out[TENSOR]):
        with pl.at(level=pl.Level.CORE_GROUP):
            y[:, :] = pl.mul(x, 2.0)
        if x.shape[0] == 16:
            if x.dtype == pl.FP32:
                return y
        y = pl.cast(x, target_type=x.dtype)  # would be refused: the same type
        return y

    x, y = np.ones((16, 64), np.float32), np.zeros((16, 64), np.float32)
    entry(x, y)
    np.testing.assert_array_equal(y, 2 * x)


def test_a_return_in_a_branch_of_run_time_leaves_the_rest():
    @pl.jit
    def entry(x: TENSOR, y: pl.Out[TENSOR], k: pl.Scalar[pl.INDEX]):
        if k > 3:
            if x.shape[0] == 16:
                return y
        with pl.at(level=pl.Level.CORE_GROUP):
            y[:, :] = pl.mul(x, 3.0)
        return y

    x = np.ones((16, 64), np.float32)
    for k, want in ((1, 3.0), (5, 0.0)):
        y = np.zeros_like(x)
        entry(x, y, k)
        np.testing.assert_array_equal(y, x * want)


# --- places -----------------------------------------------------------------------------------------------------------


def test_statements_carry_the_users_lines(ones):
    @pl.jit
    def entry(x: TENSOR, y: pl.Out[TENSOR]):
        a = pl.create_tensor([4, 4], dtype=pl.FP32)
        return a

    function = entry.specialize(ones(16, 64), ones(16, 64))["entry"]
    first = entry.__wrapped__.__code__.co_firstlineno + 1  # the line of the def
    assert (function.span.filename, function.span.begin_line) == (__file__, first)
    assert [s.span.begin_line for s in walk(function.body) if isinstance(s, AssignStmt)] == [first + 1]


def test_errors_point_into_the_users_file(ones):
    @pl.jit
    def entry(x: TENSOR):
        y = pl.add(x, missing)  # noqa: F821
        return y

    with pytest.raises(UndefinedVariableError) as info:
        entry.specialize(ones(16, 64))
    assert info.value.span["filename"] == __file__
    line = info.value.span["begin_line"]
    assert "missing" in info.value.source_lines[line - 1]
