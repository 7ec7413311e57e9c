"""Subscript reads and writes: written from section 7 of the language description."""

from __future__ import annotations

import warnings

import pytest

import pypto.language as pl
from pypto import ir
from pypto.diag.parser_errors import (
    InvalidOperationError,
    ParserSyntaxError,
    ParserTypeError,
    UnsupportedFeatureError,
)

from .dsl import body_text, check_error, kernel, parse, round_trip

F, S, T, OP = UnsupportedFeatureError, ParserSyntaxError, ParserTypeError, InvalidOperationError

TENSOR = "q: pl.Tensor[[96, 8, 40], pl.FP16], r: pl.Scalar[pl.INDEX], k: pl.Scalar[pl.INDEX], s: pl.Scalar[pl.INDEX]"
TILE = "x: pl.Tensor[[64, 128], pl.FP32], r: pl.Scalar[pl.INDEX], k: pl.Scalar[pl.INDEX]"


def read(subscript: str) -> tuple[str, str]:
    """(call, type) of a tensor read."""
    text = kernel(f"a = {subscript}\nreturn", TENSOR)
    round_trip(parse(text))
    kind, call = body_text(text).splitlines()[0][3:].split(" = ", 1)
    return call, kind


@pytest.mark.parametrize(
    ("subscript", "call", "kind"),
    [
        ("q[r, 1, 3]", "pl.tensor.read(q, [r, 1, 3])", "pl.Scalar[pl.FP16]"),
        (
            "q[r, 0:4]",
            "pl.tensor.slice(q, [1, 4, 40], [r, 0, 0], [], [0])",
            "pl.Tensor[[4, 40], pl.FP16]",
        ),
        (
            "q[:, 2, 10:30]",
            "pl.tensor.slice(q, [96, 1, 20], [0, 2, 10], [], [1])",
            "pl.Tensor[[96, 20], pl.FP16]",
        ),
        ("q[4:12]", "pl.tensor.slice(q, [8, 8, 40], [4, 0, 0])", "pl.Tensor[[8, 8, 40], pl.FP16]"),
        ("q[:12]", "pl.tensor.slice(q, [12, 8, 40], [0, 0, 0])", "pl.Tensor[[12, 8, 40], pl.FP16]"),
        ("q[90:]", "pl.tensor.slice(q, [6, 8, 40], [90, 0, 0])", "pl.Tensor[[6, 8, 40], pl.FP16]"),
        ("q[:]", "pl.tensor.slice(q, [96, 8, 40], [0, 0, 0])", "pl.Tensor[[96, 8, 40], pl.FP16]"),
        ("q[r]", "pl.tensor.slice(q, [1, 8, 40], [r, 0, 0], [], [0])", "pl.Tensor[[8, 40], pl.FP16]"),
        ("q[r, 3]", "pl.tensor.slice(q, [1, 1, 40], [r, 3, 0], [], [0, 1])", "pl.Tensor[[40], pl.FP16]"),
        (
            "q[:, :, 3]",
            "pl.tensor.slice(q, [96, 8, 1], [0, 0, 3], [], [2])",
            "pl.Tensor[[96, 8], pl.FP16]",
        ),
        (
            "q[k * s : k * s + s]",
            "pl.tensor.slice(q, [s, 8, 40], [k * s, 0, 0])",
            "pl.Tensor[[s, 8, 40], pl.FP16]",
        ),
        (
            "q[r : r + 16]",
            "pl.tensor.slice(q, [16, 8, 40], [r, 0, 0])",
            "pl.Tensor[[16, 8, 40], pl.FP16]",
        ),
        ("q[:k]", "pl.tensor.slice(q, [k, 8, 40], [0, 0, 0])", "pl.Tensor[[k, 8, 40], pl.FP16]"),
    ],
)
def test_tensor_reads(subscript: str, call: str, kind: str) -> None:
    assert read(subscript) == (call, kind)


def test_open_upper_bound_with_a_symbolic_offset() -> None:
    call, kind = read("q[k:]")
    assert kind.startswith("pl.Tensor[[")
    assert "[k, 0, 0]" in call
    # 96 - k, in whichever order the simplifier writes it
    node = parse(kernel("a = q[k:]\nreturn", TENSOR)).body[0].value
    extent = node.args[1].elements[0]
    assert type(extent) is not ir.ConstInt
    assert "k" in extent.as_python(format=False)
    assert "96" in extent.as_python(format=False)


def test_negative_indices_are_not_python_style() -> None:
    text = kernel("a = q[r - 1, 0, 0]\nreturn", TENSOR)
    assert "pl.tensor.read(q, [r - 1, 0, 0])" in body_text(text)


def test_chained_subscripts_are_two_operations() -> None:
    call, kind = read("q[r][3]")
    assert call == "pl.tensor.slice(pl.tensor.slice(q, [1, 8, 40], [r, 0, 0], [], [0]), [1, 40], [3, 0], [], [0])"
    assert kind == "pl.Tensor[[40], pl.FP16]"
    call, kind = read("q[r, 3][2]")
    assert call == "pl.tensor.read(pl.tensor.slice(q, [1, 1, 40], [r, 3, 0], [], [0, 1]), [2])"
    assert kind == "pl.Scalar[pl.FP16]"


def tile(subscript: str, setup: str = "t = pl.load(x, [0, 0], [64, 128])", params: str = TILE) -> ir.Call:
    """The call that a tile subscript becomes."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        node = parse(kernel(f"{setup}\na = {subscript}\nreturn", params))
        round_trip(node)
    return node.body.stmts[-2].value


def ints(e: ir.Expr) -> list[object]:
    return [i.value if type(i) is ir.ConstInt else i.as_python(format=False) for i in e.elements]


def parts(call: ir.Call) -> tuple[list[object], list[object], list[object] | None]:
    """(allocation, offset, valid extents or None) of a tile.slice."""
    assert call.op.name == "tile.slice"
    valid = ints(call.args[3]) if len(call.args) > 3 and call.args[3].elements else None
    return ints(call.args[1]), ints(call.args[2]), valid


def test_tile_reads() -> None:
    assert tile("t[r, 3]").op.name == "tile.read"
    assert parts(tile("t[0:16, :]")) == ([16, 128], [0, 0], None)
    assert parts(tile("t[8:16, 32:96]")) == ([8, 64], [8, 32], None)
    assert parts(tile("t[8:]")) == ([56, 128], [8, 0], None)
    assert parts(tile("t[:24]")) == ([24, 128], [0, 0], None)
    assert parts(tile("t[:, :]")) == ([64, 128], [0, 0], None)


def test_a_constant_upper_bound_is_cut_at_the_tile() -> None:
    assert parts(tile("t[48:100, :]")) == ([16, 128], [48, 0], None)


def test_a_dynamic_upper_bound_narrows_the_valid_extent() -> None:
    shape, offset, valid = parts(tile("t[:k, :]"))
    assert (shape, offset) == ([64, 128], [0, 0])
    assert valid == ["pl.min(k, 64)", 128]
    shape, offset, valid = parts(tile("t[8:k, :]"))
    assert (shape, offset) == ([56, 128], [8, 0])
    assert valid == ["pl.max(pl.min(k, 64) - 8, 0)", 128]


NARROW = "t = pl.load(x, [0, 0], [64, 128], valid_shape=[20, 128])"


def test_static_valid_extents_follow() -> None:
    assert parts(tile("t[16:32, :]", NARROW)) == ([16, 128], [16, 0], [4, 128])
    assert parts(tile("t[32:40, :]", NARROW)) == ([8, 128], [32, 0], [0, 128])
    assert parts(tile("t[:16, :]", NARROW)) == ([16, 128], [0, 0], None)
    assert parts(tile("t[4:, :]", NARROW)) == ([60, 128], [4, 0], [16, 128])
    assert parts(tile("t[:, 0:8]", NARROW)) == ([64, 8], [0, 0], [20, 8])


def test_dynamic_valid_extents_follow() -> None:
    setup = "t = pl.load(x, [0, 0], [64, 128], valid_shape=[r, 128])"
    assert parts(tile("t[:16, :]", setup))[2] == ["pl.min(16, r)", 128]
    assert parts(tile("t[8:16, :]", setup))[2] == ["pl.max(pl.min(16, r) - 8, 0)", 128]
    assert parts(tile("t[8:, :]", setup))[2] == ["pl.max(r - 8, 0)", 128]
    assert parts(tile("t[8:k, :]", setup))[2] == ["pl.max(pl.min(k, r) - 8, 0)", 128]


def test_tile_results_stay_two_dimensional() -> None:
    text = kernel("t = pl.load(x, [0, 0], [64, 128])\na = t[r, 8:24]\nreturn", TILE)
    with pytest.warns(UserWarning, match=r"tile subscript reduces to 1D; auto-promoting to 2D shape \[1, 16\]"):
        node = parse(text)
    call = node.body.stmts[1].value
    assert parts(call)[:2] == ([1, 16], ["r", 8])
    assert node.body.stmts[1].var.type.shape[0].value == 1
    assert len(node.body.stmts[1].var.type.shape) == 2
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # printed IR never warns
        round_trip(node)


def test_a_column_of_a_tile_is_promoted_as_a_row() -> None:
    call = tile("t[0:16, 3]")
    assert ints(call.args[1])[1] == 1
    assert [e.value for e in call.type.shape] == [1, 16]


@pytest.mark.parametrize(
    ("statement", "cls", "phrase"),
    [
        ("a = q[0, 0, 0, 0]", T, "Tensor subscript has 4 indices but the tensor is 3D"),
        ("a = q[0:8:2]", F, "Slice step is not supported in tensor subscript"),
        ("a = r[0]", T, "Subscript requires Tuple, Tensor, Tile, or Array type, got"),
        ("a = q[-1, 0, 0]", OP, ""),  # builds a read with an index that is refused
        ("a = q[90:100]", OP, ""),
        ("q[0, 0, 0] = 1.0", F, "Element-write 'dst[i, j] = scalar' is not supported"),
        ("q[0][1] = q", S, "Subscript-write target must be a variable name"),
        ("q.y[0] = q", S, "Subscript-write target must be a variable name"),
        ("q[0:8:2] = q", F, "Slice step is not supported in tensor subscript-write"),
        ("q[0, 0, 0, 0] = q", T, "subscript-write has 4 indices but"),
        ("q[0:8] = q", T, "shape mismatch on source axis 0: window expects 8 elements, source has 96"),
        ("q[0] = q", T, "Subscript-write source must be 2D to match the rank-reduced"),
        ("q[0:8] = 1.0", T, "Subscript-write source must also be a tensor, got"),
        ("q[0:8] = pl.load(q, [0, 0, 0], [8, 8, 40])", T, "Subscript-write source must also be a tensor, got"),
        ("r[0] = q", T, "Subscript-write requires a Tensor, Tile, or Array target"),
        ("missing[0] = q", None, "Undefined variable 'missing'"),
    ],
)
def test_refused_tensor_subscripts(statement: str, cls: type | None, phrase: str) -> None:
    from pypto.diag.parser_errors import UndefinedVariableError

    check_error(kernel(f"{statement}\nreturn", TENSOR), cls or UndefinedVariableError, phrase, statement)


@pytest.mark.parametrize(
    ("statement", "cls", "phrase"),
    [
        ("a = t[k:k + 4, :]", F, "Dynamic lower bounds are not supported in tile subscript"),
        ("a = t[8:8, :]", F, "must produce a positive static extent"),
        ("a = t[80:, :]", F, "must produce a positive static extent"),
        ("a = t[0:8:2, :]", F, "Slice step is not supported in tile subscript"),
        ("a = t[0, 0, 0]", T, "Tile subscript has 3 indices but the tile is 2D"),
        ("t[0, 0] = 1.0", F, "Element-write 'dst[i, j] = scalar' is not supported"),
        ("t[0:8, :] = x", T, "Subscript-write source must also be a tile, got"),
    ],
)
def test_refused_tile_subscripts(statement: str, cls: type, phrase: str) -> None:
    text = kernel(f"t = pl.load(x, [0, 0], [64, 128])\n{statement}\nreturn", TILE)
    check_error(text, cls, phrase, statement)


def test_subscript_writes_are_refused_under_strict_ssa() -> None:
    text = kernel("o[0:8] = x[0:8]\nreturn").replace("InCore)", "InCore, strict_ssa=True)")
    check_error(text, F, "only supported before SSA conversion", "o[0:8]")


# --- writes -----------------------------------------------------------------------------------------------------------


def write(statement: str, params: str, setup: str = "") -> str:
    text = kernel(f"{setup}\n{statement}\nreturn", params)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        node = parse(text)
        round_trip(node)
    last = body_text(text).splitlines()[-2]
    return last.split(" = ", 1)[1]


V3 = "d: pl.Tensor[[8, 16, 32], pl.FP32], v1: pl.Tensor[[32], pl.FP32], v2: pl.Tensor[[16, 32], pl.FP32], v3: pl.Tensor[[4, 16, 32], pl.FP32], i: pl.Scalar[pl.INDEX]"


@pytest.mark.parametrize(
    ("statement", "call"),
    [
        ("d[0:4] = v3", "pl.tensor.assemble(d, v3, [0, 0, 0])"),
        ("d[i : i + 4] = v3", "pl.tensor.assemble(d, v3, [i, 0, 0])"),
        ("d[4:] = v3", "pl.tensor.assemble(d, v3, [4, 0, 0])"),
        ("d[:] = d", "pl.tensor.assemble(d, d, [0, 0, 0])"),
        ("d[i] = v2", "pl.tensor.assemble(d, pl.tensor.reshape(v2, [1, 16, 32]), [i, 0, 0])"),
        ("d[i, 3] = v1", "pl.tensor.assemble(d, pl.tensor.reshape(v1, [1, 1, 32]), [i, 3, 0])"),
        (
            "d[0:8, 3, :] = d[:, 4, :]",
            "pl.tensor.assemble(d, pl.tensor.reshape(pl.tensor.slice(d, [8, 1, 32], [0, 4, 0], [], [1]), [8, 1, 32]), [0, 3, 0])",
        ),
    ],
)
def test_tensor_writes(statement: str, call: str) -> None:
    assert write(statement, V3) == call


def test_writes_rebind_the_same_variable() -> None:
    node = parse(kernel("d[0:4] = v3\nreturn d", V3))
    assert node.body[0].var is node.params[0]
    assert node.body[1].value[0] is node.params[0]


def test_partial_sources_are_accepted() -> None:
    params = "d: pl.Tensor[[16, 32], pl.FP32], x: pl.Tensor[[16, 32], pl.FP32], n: pl.Scalar[pl.INDEX]"
    # The valid extent equals the window.
    assert "pl.tensor.assemble(d, v, [0, 0])" in write(
        "d[0:4] = v", params, "v = pl.slice(x, [8, 32], [0, 0], valid_shape=[4, 32])"
    )
    # The valid extent is not constant.
    assert "pl.tensor.assemble(d, v, [0, 0])" in write(
        "d[0:4] = v", params, "v = pl.slice(x, [8, 32], [0, 0], valid_shape=[n, 32])"
    )
    # A symbolic window is not compared.
    assert "pl.tensor.assemble(d, v, [0, 0])" in write("d[0:n] = v", params, "v = x[0:8]")
    check_error(
        kernel("v = pl.slice(x, [8, 32], [0, 0], valid_shape=[5, 32])\nd[0:4] = v\nreturn", params),
        T,
        "shape mismatch on source axis 0: window expects 4 elements, source has 8",
        "d[0:4] = v",
    )


def test_a_lifted_partial_source_keeps_its_valid_extents() -> None:
    params = "d: pl.Tensor[[4, 16, 32], pl.FP32], x: pl.Tensor[[16, 32], pl.FP32], n: pl.Scalar[pl.INDEX]"
    shown = write("d[n] = v", params, "v = pl.slice(x, [16, 32], [0, 0], valid_shape=[n, 32])")
    assert shown == "pl.tensor.assemble(d, pl.tensor.reshape(v, [1, 16, 32], [1, n, 32]), [n, 0, 0])"


def test_tile_writes() -> None:
    setup = "t = pl.load(x, [0, 0], [64, 128])\nu = pl.load(x, [0, 0], [8, 128])\nrow = pl.load(x, [0, 0], [1, 128])"
    assert write("t[0:8, :] = u", TILE, setup) == "pl.tile.assemble(t, u, [0, 0])"
    assert write("t[r : r + 8] = u", TILE, setup) == "pl.tile.assemble(t, u, [r, 0])"
    # One scalar axis leaves rank 1; a 2-D source with leading unit axes is as good.
    assert write("t[r] = row", TILE, setup) == "pl.tile.assemble(t, row, [r, 0])"


def test_array_subscripts() -> None:
    text = kernel("a = pl.array.create(4, pl.INT32)\na[r] = 5\nb = a[2]\nreturn", TILE)
    round_trip(parse(text))
    shown = body_text(text).splitlines()
    assert shown[1].endswith("= pl.array.update_element(a, r, pl.const(5, pl.INT32))")
    assert shown[2].endswith("= pl.array.get_element(a, 2)")
    assert parse(text).body[2].var.type == ir.ScalarType(pl.INT32)


def test_subscripts_evaluate_in_the_order_that_python_has() -> None:
    error = check_error(
        kernel("q[first] = second\nreturn", TENSOR),
        __import__("pypto.diag.parser_errors", fromlist=["UndefinedVariableError"]).UndefinedVariableError,
        "Undefined variable 'second'",
    )
    assert error.span["column"] > 5
