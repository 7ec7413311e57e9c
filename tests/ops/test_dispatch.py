"""The table of unified dispatch: what ``pl.<op>`` builds for tensors, tiles and scalars, and what it refuses."""

import pytest
from ops_kit import D, pl, scalar, tensor, tile

from pypto.ir.enums import AtomicType

X, Y = tensor([4, 64], name="x"), tensor([4, 64], name="y")
T, U = tile([4, 64], name="t"), tile([4, 64], name="u")
K, J = tensor([4, 64], D.INT32, name="i"), tile([4, 64], D.INT32, name="j")
V, W = tensor([4, 1], name="v"), tile([4, 1], name="w")
S, B, N = scalar(D.FP32, "s"), scalar(D.BOOL, "b"), scalar(D.INDEX, "n")
A, C = tensor([16, 32], D.FP16, name="a"), tensor([32, 48], D.FP16, name="c")
L, R = tile([16, 32], D.FP16, name="l"), tile([32, 48], D.FP16, name="r")
ACC, ACCT = tensor([16, 48], name="acc"), tile([16, 48], name="acct")
SORTED = tile([1, 256], name="runs")


def builds():
    """(function, arguments, keywords, printed call)."""
    for name in ("add", "sub", "mul", "div"):
        yield name, (X, Y), {}, f"pl.tensor.{name}(x, y)"
        yield name, (X, 2), {}, f"pl.tensor.{name}s(x, 2.0)"
        yield name, (T, U), {}, f"pl.tile.{name}(t, u)"
        yield name, (T, 2.5), {}, f"pl.tile.{name}s(t, 2.5)"
        yield name, (S, S), {}, f"s {'+-*/'[('add', 'sub', 'mul', 'div').index(name)]} s"
    for name in ("fmod", "maximum", "minimum"):
        yield name, (X, Y), {}, f"pl.tensor.{name}(x, y)"
        yield name, (X, 1.0), {}, f"pl.tensor.{name if name != 'fmod' else 'fmods'}(x, 1.0)"
        yield name, (T, U), {}, f"pl.tile.{name}(t, u)"
        yield name, (T, 1.0), {}, f"pl.tile.{name}s(t, 1.0)"
    for name, one in (("and_", "ands"), ("or_", "ors"), ("shl", "shls"), ("shr", "shrs")):
        yield name, (K, K), {}, f"pl.tensor.{name}(i, i)"
        yield name, (K, 1), {}, f"pl.tensor.{one}(i, pl.const(1, pl.INT32))"
        yield name, (J, J), {}, f"pl.tile.{name}(j, j)"
        yield name, (J, 1), {}, f"pl.tile.{one}(j, pl.const(1, pl.INT32))"
        yield one, (K, 1), {}, f"pl.tensor.{one}(i, pl.const(1, pl.INT32))"
        yield one, (J, 1), {}, f"pl.tile.{one}(j, pl.const(1, pl.INT32))"
    yield "xor", (K, K), {}, "pl.tensor.xor(i, i)"
    yield "xor", (K, K, None), {}, "pl.tensor.xor(i, i)"
    yield "xor", (K, 1), {}, "pl.tensor.xors(i, pl.const(1, pl.INT32))"
    yield "xor", (J, J, J), {}, "pl.tile.xor(j, j, j)"
    yield "xor", (J, 1, J), {}, "pl.tile.xors(j, pl.const(1, pl.INT32), j)"
    yield "xors", (J, 1), {"tmp": J}, "pl.tile.xors(j, pl.const(1, pl.INT32), j)"
    yield "cmp", (X, Y), {"cmp_type": 4}, "pl.tensor.cmp(x, y, cmp_type=4)"
    yield "cmp", (X, 1.0), {"cmp_type": 4}, "pl.tensor.cmp(x, 1.0, cmp_type=4)"
    yield "cmp", (T, U), {"cmp_type": 4}, "pl.tile.cmp(t, u, cmp_type=4)"
    yield "cmp", (T, 1.0), {"cmp_type": 4}, "pl.tile.cmps(t, 1.0, cmp_type=4)"
    for name in ("part_add", "part_mul", "part_max", "part_min", "concat"):
        yield name, (X, Y), {}, f"pl.tensor.{name}(x, y)"
        yield name, (T, U), {}, f"pl.tile.{name}(t, u)"
    yield "row_expand_add", (X, V), {"tmp": None}, "pl.tensor.row_expand_add(x, v)"
    yield "row_expand_add", (T, W), {}, "pl.tile.row_expand_add(t, w)"
    yield "row_expand_add", (T, W, U), {}, "pl.tile.row_expand_add(t, w, u)"
    for name in ("exp", "log", "sin", "cos", "neg", "abs", "recip", "sqrt", "rsqrt"):
        yield name, (X,), {}, f"pl.tensor.{name}(x)"
        yield name, (T,), {}, f"pl.tile.{name}(t)"
    yield "rsqrt", (X,), {"high_precision": True}, "pl.tensor.rsqrt(x, high_precision=True)"
    yield "rsqrt", (T,), {"high_precision": False}, "pl.tile.rsqrt(t)"
    yield "cast", (X, D.FP16), {}, "pl.tensor.cast(x, target_type=pl.FP16, mode='round')"
    yield "cast", (T, D.FP16, "floor"), {}, "pl.tile.cast(t, target_type=pl.FP16, mode='floor')"
    yield "cast", (S, D.INT32), {"mode": "round"}, "pl.cast(s, pl.INT32)"
    for name in ("row_sum", "row_max", "row_min", "row_prod", "row_argmax", "row_argmin", "col_argmax", "col_argmin"):
        yield name, (X, None), {}, f"pl.tensor.{name}(x)"
        yield name, (T, U), {}, f"pl.tile.{name}(t, u)"
    for name in ("col_sum", "col_max", "col_min", "col_prod"):
        yield name, (X,), {}, f"pl.tensor.{name}(x)"
        yield name, (T,), {}, f"pl.tile.{name}(t)"
    yield "col_sum", (T, U), {}, "pl.tile.col_sum(t, u)"
    defaults = {"out_dtype": None, "a_trans": False, "b_trans": False, "c_matrix_nz": False}
    yield "matmul", (A, C), {"out_dtype": D.FP32}, "pl.tensor.matmul(a, c, out_dtype=pl.FP32)"
    yield "matmul", (L, R), defaults, "pl.tile.matmul(l, r)"
    yield "matmul", (L, R), {"out_dtype": D.FP32}, "pl.tile.matmul(l, r)"
    yield "matmul_acc", (ACC, A, C), {"init_cond": B}, "pl.tensor.matmul_acc(acc, a, c, init_cond=b)"
    yield "matmul_acc", (ACCT, L, R), {"a_trans": False}, "pl.tile.matmul_acc(acct, l, r)"
    yield "slice", (T, [4, 16], [0, 0]), {"clamp": False}, "pl.tile.slice(t, [4, 16], [0, 0])"
    yield "slice", (X, [4, 16], [0, 60]), {"clamp": True}, "pl.tensor.slice(x, [4, 16], [0, 60], clamp=True)"
    yield "assemble", (T, U, [0, 0]), {"atomic": AtomicType.None_}, "pl.tile.assemble(t, u, [0, 0])"
    added = "pl.tensor.assemble(x, y, [0, 0], atomic=pl.AtomicType.Add)"
    yield "assemble", (X, Y, [0, 0]), {"atomic": AtomicType.Add}, added
    yield "mrgsort", (SORTED,), {"block_len": 64}, "pl.tile.mrgsort_format1(runs, 64)"
    yield "mrgsort", (SORTED, SORTED), {"tmp": SORTED}, "pl.tile.mrgsort_format2(runs, runs, runs)"
    yield "max", (N, 1), {}, "pl.max(n, 1)"


def refusals():
    """(function, arguments, keywords, error, phrase)."""
    for name in ("add", "sub", "mul", "div", "maximum", "fmod", "and_", "shl"):
        yield name, (X, T), {}, TypeError, rf"pl\.{name}: cannot mix Tensor and Tile arguments \(Tensor, Tile\)"
        yield name, (2.0, X), {}, TypeError, rf"pl\.{name}: expected Tensor or Tile operands, got \(Scalar, Tensor\)"
    for name in ("fmod", "maximum", "minimum", "and_", "or_", "shl", "shr", "cmp"):
        yield name, (S, S), {}, TypeError, rf"pl\.{name}: expected Tensor or Tile operands, got \(Scalar, Scalar\)"
    for name in ("ands", "ors", "xors", "shls", "shrs", "fmods"):
        yield name, (K, K), {}, TypeError, rf"pl\.{name}: expected Tensor or Tile operands, got \(Tensor, Tensor\)"
    for name in ("exp", "neg", "abs", "rsqrt", "sqrt"):
        yield name, (S,), {}, TypeError, rf"pl\.{name}: expected Tensor or Tile, got Scalar"
    yield "part_add", (X, 1.0), {}, TypeError, "expected Tensor or Tile operands"
    yield "concat", (T, X), {}, TypeError, "cannot mix Tensor and Tile"
    yield "div", (X, 2.0), {"high_precision": True}, TypeError, "requires a Tensor rhs"
    yield "div", (T, 2.0), {"high_precision": True}, TypeError, "requires a Tile rhs"
    yield "div", (S, S), {"high_precision": True}, TypeError, "high_precision"
    yield "xor", (K, K, K), {}, TypeError, "Tensor inputs must not pass tmp"
    yield "xor", (J, J), {}, TypeError, "Tile inputs require tmp"
    yield "xors", (J, 1), {}, TypeError, "Tile inputs require tmp"
    yield "row_expand_add", (X, V, T), {}, TypeError, "Tensor inputs must not pass tmp"
    yield "rsqrt", (T,), {"high_precision": True}, TypeError, r"'high_precision' is not supported.*pl\.tile\.rsqrt"
    yield "cast", (S, D.INT32, "floor"), {}, TypeError, "Scalar inputs do not support non-default mode"
    for name in ("row_sum", "row_max", "row_min", "row_prod", "row_argmax", "row_argmin", "col_argmax", "col_argmin"):
        yield name, (T,), {}, TypeError, "Tile inputs require tmp_tile"
        yield name, (X, T), {}, TypeError, "Tensor inputs must not pass tmp_tile"
    yield "col_sum", (X, T), {}, TypeError, "Tensor inputs must not pass tmp_tile"
    for flag in ("a_trans", "b_trans"):
        remedy = rf"'{flag}' is not supported for Tile operands\. .*pl\.tile\.transpose_view"
        yield "matmul", (L, R), {flag: True}, TypeError, remedy
        yield "matmul_acc", (ACCT, L, R), {flag: True}, TypeError, remedy
    yield "matmul", (L, R), {"c_matrix_nz": True}, TypeError, "'c_matrix_nz' is not supported for Tile operands"
    yield "matmul", (L, R), {"out_dtype": D.FP16}, TypeError, "'out_dtype' is not supported for Tile operands"
    yield "matmul", (A, R), {}, TypeError, "cannot mix Tensor and Tile"
    yield "batch_matmul", (A, C), {}, TypeError, "expected Tile operands"
    yield "slice", (T, [4, 16], [0, 0]), {"clamp": True}, TypeError, "clamp=True is not supported for a Tile"
    yield "assemble", (T, U, [0, 0]), {"atomic": AtomicType.Add}, TypeError, "'atomic' is not supported.*GM target"
    yield "mrgsort", (SORTED, SORTED), {}, TypeError, "Tile inputs require tmp"
    yield "mrgsort", (SORTED, SORTED), {"block_len": 64}, ValueError, "mutually exclusive"
    yield "mrgsort", (SORTED, SORTED, None, SORTED), {"tmp": SORTED}, ValueError, "src3 requires src2"
    yield "gather", (X, -1, K), {"mask_pattern": 1}, ValueError, "mutually exclusive"
    yield "gather", (X, -1), {}, ValueError, "missing index"
    yield "gather", (X,), {"kvalue": 1.0}, ValueError, "missing cmp_mode, out_cols"
    yield "scatter", (X,), {"dim": -1, "index": K}, ValueError, "missing src"
    yield "scatter_update", (X, 0, K, X), {}, ValueError, "only dim=-2"
    yield "max", (X, 1), {}, TypeError, r"pl\.maximum"


def ids(rows):
    return [f"{row[0]}-{i}" for i, row in enumerate(rows)]


BUILDS, REFUSALS = list(builds()), list(refusals())


@pytest.mark.parametrize(("name", "args", "kwargs", "text"), BUILDS, ids=ids(BUILDS))
def test_builds(name, args, kwargs, text):
    assert pl[name](*args, **kwargs).as_python(format=False) == text


@pytest.mark.parametrize(("name", "args", "kwargs", "error", "phrase"), REFUSALS, ids=ids(REFUSALS))
def test_refused(name, args, kwargs, error, phrase):
    with pytest.raises(error, match=phrase):
        pl[name](*args, **kwargs)
