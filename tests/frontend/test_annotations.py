"""Type annotations: every form, shapes, dtypes, layouts, views, and the rules for local variables (language section 4)."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Any

import pytest

import pypto.language as pl
import pypto.language.distributed as pld
from pypto import ir
from pypto.diag.parser_errors import ParserTypeError

from .dsl import HEAD, check_error, file_error, kernel, load_file, opaque, parse, program, round_trip

SETUP = (
    "import pypto.language.distributed as pld\nfrom pypto.language import *\nR = 8\nM = pl.dynamic('M')\n"
    "K = pl.dynamic('K')\nSHAPE = [R, M]\nPAIR = (4, 16)\nLAY = pl.NZ\nBAD = pl.DN\ndt = pl.BF16\n"
    "VIEW = pl.TensorView(stride=[16, 1], layout=pl.TensorLayout.ND)\n"
)


def signature(annotation: str, extra: str = "", returns: str = "") -> str:
    arrow = f" -> {returns}" if returns else ""
    return f"{HEAD}{SETUP}{extra}@pl.function\ndef f(x: {annotation}){arrow}:\n    pass\n"


def parameter(annotation: str, extra: str = "") -> ir.Type:
    """The type of one parameter: in text, in text with annotations as strings, and as a quoted annotation."""
    node = parse(signature(annotation, extra))
    postponed = parse("from __future__ import annotations\n" + signature(annotation, extra))
    quoted = parse(signature(repr(annotation), extra))
    ir.assert_structural_equal(node, postponed, enable_auto_mapping=True)
    ir.assert_structural_equal(node, quoted, enable_auto_mapping=True)
    round_trip(node)
    return node.params[0].type


FP32 = pl.FP32


@pytest.mark.parametrize(
    ("annotation", "expected"),
    [
        ("pl.Scalar[pl.INT32]", ir.ScalarType(pl.INT32)),
        ("pl.Scalar(pl.INT32)", ir.ScalarType(pl.INT32)),
        ("pl.TaskId", ir.ScalarType(pl.TASK_ID)),
        ("Scalar[INT32]", ir.ScalarType(pl.INT32)),
        ("pl.Tensor[[4, 8], pl.FP32]", ir.TensorType([4, 8], FP32)),
        ("pl.Tensor[(4, 8), pl.FP32]", ir.TensorType([4, 8], FP32)),
        ("pl.Tensor([4, 8], pl.FP32)", ir.TensorType([4, 8], FP32)),
        ("pl.Tensor([4, 8], FP32)", ir.TensorType([4, 8], FP32)),
        ("Tensor[[4, 8], dt]", ir.TensorType([4, 8], pl.BF16)),
        ("pl.Tensor[[4, 8], pl.FP32, pl.NZ]", ir.TensorType([4, 8], FP32, None, ir.TensorView([], pl.NZ))),
        ("pl.Tensor[[4, 8], pl.FP32, NZ]", ir.TensorType([4, 8], FP32, None, ir.TensorView([], pl.NZ))),
        (
            "pl.Tensor[[4, 8], pl.FP32, pl.TensorLayout.NZ]",
            ir.TensorType([4, 8], FP32, None, ir.TensorView([], pl.NZ)),
        ),
        ("pl.Tensor[[4, 8], pl.FP32, LAY]", ir.TensorType([4, 8], FP32, None, ir.TensorView([], pl.NZ))),
        ("pl.Tensor[[4, 8], pl.FP32, pl.ND]", ir.TensorType([4, 8], FP32, None, ir.TensorView([], pl.ND))),
        ("pl.Tensor[[4, 16], pl.FP32, VIEW]", ir.TensorType([4, 16], FP32, None, ir.TensorView([16, 1], pl.ND))),
        (
            "pl.Tensor[[4, 16], pl.FP32, pl.TensorView(stride=[1, 4], layout=pl.TensorLayout.DN)]",
            ir.TensorType([4, 16], FP32, None, ir.TensorView([1, 4], pl.DN)),
        ),
        (
            "pl.Tensor[[4, 16], pl.FP32, pl.TensorView(layout=pl.TensorLayout.ND, valid_shape=[2, 16], pad=pl.PadValue.zero)]",
            ir.TensorType([4, 16], FP32, None, ir.TensorView([], pl.ND, [2, 16], pl.PadValue.zero)),
        ),
        ("pld.DistributedTensor[[4, 8], pl.FP32]", ir.DistributedTensorType([4, 8], FP32)),
        ("pl.Tile[[4, 8], pl.FP32]", ir.TileType([4, 8], FP32)),
        ("pl.Tile([4, 8], pl.FP32)", ir.TileType([4, 8], FP32)),
        ("pl.Tile[[4, 8], pl.FP32, pl.Mem.Vec]", ir.TileType([4, 8], FP32, None, None, pl.Mem.Vec)),
        ("pl.Tile[[4, 8], pl.FP32, pl.MemorySpace.Mat]", ir.TileType([4, 8], FP32, None, None, pl.Mem.Mat)),
        ("pl.Array[4, pl.INT32]", ir.ArrayType(pl.INT32, 4)),
        ("pl.Array[R, pl.TASK_ID]", ir.ArrayType(pl.TASK_ID, 8)),
        ("pl.Array[R * 2, pl.BOOL]", ir.ArrayType(pl.BOOL, 16)),
        ("pl.PrefetchAsyncContext", ir.PrefetchAsyncContextType()),
        ("pl.AsyncEvent", ir.AsyncEventType()),
        ("pl.AsyncSession", ir.AsyncSessionType()),
        ("pld.CommCtx", ir.CommCtxType()),
        ("AsyncEvent", ir.AsyncEventType()),
        ("pld.CommCtxType", ir.CommCtxType()),
    ],
)
def test_forms(annotation: str, expected: ir.Type) -> None:
    found = parameter(annotation)
    assert type(found) is type(expected) and found == expected


def test_the_window_buffer_note_of_a_dump_is_dropped() -> None:
    node = parse(signature('pld.DistributedTensor[[4, 8], pl.FP32, "window_buffer=buf"]'))
    assert node.params[0].type == ir.DistributedTensorType([4, 8], FP32)


@pytest.mark.parametrize(
    ("annotation", "types"),
    [
        ("pl.Tuple[pl.Scalar[pl.INDEX], pl.Tensor[[4], pl.FP32]]", 2),
        ("pl.Tuple[pl.Scalar[pl.INDEX]]", 1),
        ("pl.Tuple[()]", 0),
        ("pl.Tuple([pl.Scalar[pl.INDEX], pl.TaskId])", 2),
    ],
)
def test_tuple_results(annotation: str, types: int) -> None:
    node = parse(f"{HEAD}@pl.function\ndef f(n: pl.Scalar[pl.INDEX]) -> {annotation}:\n    pass\n")
    (kind,) = node.return_types
    assert isinstance(kind, ir.TupleType) and len(kind.types) == types
    round_trip(node)


@pytest.mark.parametrize(
    ("returns", "phrase"),
    [
        ("tuple[pl.Tuple[pl.TaskId], pl.TaskId]", "Nested tuple types are not supported"),
        ("pl.Tuple[pl.Tuple[pl.TaskId], pl.TaskId]", "Nested tuple types are not supported"),
        ("pl.Tuple([pl.Tuple([pl.TaskId])])", "Nested tuple types are not supported"),
        ("pl.Out[pl.Tensor[[4], pl.FP32]]", ""),
    ],
)
def test_bad_results(returns: str, phrase: str) -> None:
    check_error(signature("pl.TaskId", returns=returns), ParserTypeError, phrase, "def f")


@pytest.mark.parametrize(
    ("annotation", "phrase"),
    [
        ("pl.Tensor", "Incomplete type annotation"),
        ("pl.Tile", "Incomplete type annotation"),
        ("float", "Unsupported type annotation"),
        ("'3'", "Unsupported type annotation"),
        ("'list[pl.FP32]'", "Unknown type in subscript"),
        ("'pl.Thing([4], pl.FP32)'", "Unknown type constructor"),
        ("'pl.Tensor[[4]]'", "Tensor subscript requires [shape, dtype]"),
        ("'pl.Tile[[4]]'", "Tile subscript requires [shape, dtype]"),
        ("'pld.DistributedTensor[[4]]'", "DistributedTensor subscript requires [shape, dtype]"),
        ("'pl.Array[True, pl.INT32]'", "Array extent must be an int literal"),
        ("'pl.Array[2.5, pl.INT32]'", "Array extent must be an int literal"),
        ("'pl.Tensor[[4, 8], pl.FP8]'", "Unknown dtype: FP8"),
        ("'pl.Tensor[[4, 8], DataType.FP8]'", "Unknown DataType: FP8"),
        ("'pl.Tensor[[4, 8], R]'", "Dtype variable 'R' must be a DataType, got int"),
        ("'pl.Tensor[[4, 8], \"fp32\"]'", "Cannot resolve dtype"),
        ("'pl.Tensor[[4, 8], pl.FP32, pl.XX]'", "Unknown layout"),
        ("'pl.Tensor[[4, 8], pl.FP32, R]'", "must be a TensorLayout"),
        ("'pl.Tensor[[4, 8], pl.FP32, 3 + R]'", "Cannot resolve layout"),
        ("'pl.Tile[[4, 8], pl.FP32, pl.NZ]'", "Tile does not accept layouts like pl.NZ"),
        ("'pl.Tile[[4, 8], pl.FP32, pl.TensorLayout.ND]'", "Tile does not accept layouts like"),
        ("'pl.Tensor[zz, pl.FP32]'", "Unknown shape variable: zz"),
        ("'pl.Tensor[R, pl.FP32]'", "must be a list or tuple"),
        ("'pl.Tensor[4, pl.FP32]'", "Shape"),
        ("'pl.Tensor[[True], pl.FP32]'", "must be int or pl.dynamic(), got bool"),
        ("'pl.Tensor[[dt], pl.FP32]'", "must be int or pl.dynamic(), got DataType"),
        ("'pl.Tensor[[R / 3], pl.FP32]'", "must be int or pl.dynamic(), got float"),
        ("'pl.Tensor[W, pl.FP32]'", "element 1 must be int or pl.dynamic(), got str"),
        ("'pl.Tensor[[F], pl.FP32]'", "must be integer-typed"),
        ("'pl.Tensor[[[4]], pl.FP32]'", "must be int or pl.dynamic(), got list"),
        (
            "'pl.Tensor[[{1: 2}[zz]], pl.FP32]'",
            "Shape dimension must be int literal, variable, or evaluable expression",
        ),
    ],
)
def test_bad_forms(annotation: str, phrase: str) -> None:
    extra = "W = [4, 'a']\nF = pl.Scalar(expr=pl.dynamic('q').unwrap()) * 2.5 if False else __import__('pypto').ir.ConstFloat(2.5, pl.FP32)\n"
    check_error(signature(annotation, extra), ParserTypeError, phrase, "def f")


def test_dn_layouts_are_refused_in_the_words_of_the_source() -> None:
    for spelling in ("pl.DN", "pl.TensorLayout.DN", "DN", "BAD"):
        error = check_error(
            signature(f"'pl.Tensor[[4, 8], pl.FP32, {spelling}]'"),
            ParserTypeError,
            "pl.Tensor[..., pl.DN] is not supported",
        )
        assert spelling in str(error)
        assert error.hint is not None
        for way in ("pl.transpose(x, -2, -1)", "slice/reshape", "pl.TensorView(stride=[", "layout=pl.TensorLayout.DN"):
            assert way in error.hint
    unknown = check_error(signature("'pl.Tensor[[4, 8], pl.FP32, pl.XX]'"), ParserTypeError, "Unknown layout")
    assert "DN" not in (unknown.hint or "")


def test_a_bare_layout_name_wins_over_a_variable() -> None:
    node = parse(signature("pl.Tensor[[4, 8], pl.FP32, NZ]", "NZ = pl.ND\n"))
    assert node.params[0].type.tensor_view.layout is pl.NZ


# --- shapes ------------------------------------------------------------------------------------------------------------


def test_shape_elements_in_their_order() -> None:
    node = parse(signature("pl.Tensor[[4, R, M, 2 * R, M + 1], pl.FP32]", returns="pl.Tensor[SHAPE, pl.FP32]"))
    shape = node.params[0].type.shape
    assert [shape[i].value for i in (0, 1, 3)] == [4, 8, 16]
    assert isinstance(shape[2], ir.Var) and shape[2].name_hint == "M" and shape[2].type == ir.ScalarType(pl.INDEX)
    assert isinstance(shape[4], ir.Add) and shape[4].left is shape[2]
    result = node.return_types[0].shape
    assert result[0].value == 8 and result[1] is shape[2]
    assert all(e.type.dtype is pl.INDEX for e in shape)
    assert list(parse(signature("pl.Tensor[PAIR, pl.FP32]")).params[0].type.shape)[1].value == 16
    assert parse(signature("pl.Tensor[[R] + [2], pl.FP32]")).params[0].type == ir.TensorType([8, 2], FP32)


def test_typed_constants_in_shapes_are_not_folded() -> None:
    node = parse(signature("'pl.Tensor[[pl.const(4, pl.INT64) * 2 + R, M // pl.const(2, pl.INT64)], pl.FP32]'"))
    first, second = node.params[0].type.shape
    assert isinstance(first, ir.Add) and isinstance(first.left, ir.Mul)
    assert first.left.left.value == 4 and first.left.left.dtype is pl.INT64
    assert isinstance(second, ir.FloorDiv)


def test_dsl_scalars_as_extents() -> None:
    text = opaque(
        "rows = n + 1\nt: pl.Tensor[[rows, rows * 2 - 1, n % 4], pl.FP32] = pl.create_tensor([rows, rows * 2 - 1, n % 4], dtype=pl.FP32)\nreturn"
    )
    node = parse(text)
    rows = node.body.stmts[0].var
    assert node.body.stmts[1].var.type.shape[0] is rows
    round_trip(node)


def test_closure_before_dsl_scope_in_shapes_with_a_warning() -> None:
    text = HEAD + "k = 8\n@pl.function\ndef f(k: pl.Scalar[pl.INDEX], x: pl.Tensor[[k, 4], pl.FP32]):\n    return k\n"
    with pytest.warns(UserWarning, match="'k'"):
        node = parse(text)
    assert node.params[1].type == ir.TensorType([8, 4], FP32)
    assert node.body.value[0] is node.params[0]


def test_a_dynamic_object_is_one_variable_everywhere() -> None:
    rows = pl.dynamic("rows")

    @pl.function
    def first(x: pl.Tensor[[rows, 4], pl.FP32]):
        return

    @pl.program
    class P:
        @pl.function
        def a(self, x: pl.Tensor[[rows, 4], pl.FP32], y: pl.Tensor[[rows + 1, 4], pl.FP32]):
            z = rows * 2
            return

        @pl.function
        def b(self, x: pl.Tensor[[4, rows], pl.FP32]):
            return

    symbol = first.params[0].type.shape[0]
    assert symbol.name_hint == "rows"
    assert P.get_function("a").params[0].type.shape[0] is symbol
    assert P.get_function("a").params[1].type.shape[0].left is symbol
    assert P.get_function("a").body.stmts[0].value.left is symbol
    assert P.get_function("b").params[0].type.shape[1] is symbol
    assert rows.unwrap() is symbol
    round_trip(P)


def test_two_dynamic_objects_of_one_name_share_a_variable_in_a_program() -> None:
    rows, other = pl.dynamic("rows"), pl.dynamic("rows")

    @pl.program
    class P:
        @pl.function
        def a(self, x: pl.Tensor[[rows, 4], pl.FP32]):
            return

        @pl.function
        def b(self, x: pl.Tensor[[other, 4], pl.FP32]):
            return

    assert P.get_function("a").params[0].type.shape[0] is P.get_function("b").params[0].type.shape[0]


def test_a_scalar_parameter_is_the_symbol_of_its_name() -> None:
    m = pl.dynamic("m")
    shape = [m, 4]

    @pl.function
    def f(
        m: pl.Scalar[pl.INDEX],
        x: pl.Tensor[[m, 4], pl.FP32],
        y: pl.Tensor[[m + 1, 4], pl.FP32],
        z: pl.Tensor[shape, pl.FP32],
        v: pl.Tensor[[8, 4], pl.FP32, pl.TensorView(layout=pl.TensorLayout.ND, valid_shape=[m, 4])],
    ) -> pl.Tensor[[m, 4], pl.FP32]:
        t: pl.Tensor[[m, 4], pl.FP32] = pl.create_tensor([m, 4], dtype=pl.FP32)
        return t

    param = f.params[0]
    assert f.params[1].type.shape[0] is param
    assert f.params[2].type.shape[0].left is param
    assert f.params[3].type.shape[0] is param
    assert f.params[4].type.tensor_view.valid_shape[0] is param
    assert f.return_types[0].shape[0] is param
    assert f.body.stmts[0].var.type.shape[0] is param
    round_trip(f)


@pytest.mark.parametrize(
    "used", ["[M, 4]", "[M + 1, 4]", "[8, 4], pl.FP32, pl.TensorView(layout=pl.ND, valid_shape=[M, 4])"]
)
def test_a_scalar_parameter_behind_its_symbol_is_refused(used: str) -> None:
    tail = "" if "FP32" in used else ", pl.FP32"
    text = HEAD + SETUP + f"@pl.function\ndef f(x: pl.Tensor[{used}{tail}], M: pl.Scalar[pl.INDEX]):\n    return\n"
    check_error(text, ParserTypeError, "shadows the dynamic symbol", "def f")


def test_only_index_scalars_are_symbols() -> None:
    text = HEAD + SETUP + "@pl.function\ndef f(M: pl.Scalar[pl.INT32], x: pl.Tensor[[M, 4], pl.FP32]):\n    return\n"
    with pytest.warns(UserWarning, match="'M'"):
        node = parse(text)
    assert node.params[1].type.shape[0] is not node.params[0]


def test_names_that_no_one_declared_are_symbols_in_text() -> None:
    node = parse(
        HEAD + "@pl.function\ndef f(x: pl.Tensor[[q, q * 2], pl.FP32]) -> pl.Tensor[[q], pl.FP32]:\n    pass\n"
    )
    q = node.params[0].type.shape[0]
    assert node.params[0].type.shape[1].left is q and node.return_types[0].shape[0] is q
    round_trip(node)


# --- views -------------------------------------------------------------------------------------------------------------


def tile(annotation: str) -> ir.TileType:
    found = parameter(f"pl.Tile[{annotation}]")
    assert isinstance(found, ir.TileType)
    return found


@pytest.mark.parametrize(
    ("shape", "space", "blayout", "slayout", "fractal"),
    [
        ("[4, 8]", "Vec", "row_major", "none_box", 512),
        ("[4, 1]", "Vec", "col_major", "none_box", 512),
        ("[1, 1]", "Vec", "row_major", "none_box", 512),
        ("[16, 32]", "Mat", "col_major", "row_major", 512),
        ("[16, 32]", "Left", "col_major", "row_major", 512),
        ("[16, 32]", "Right", "row_major", "col_major", 512),
        ("[16, 32]", "Acc", "col_major", "row_major", 1024),
        ("[16, 32]", "LeftScale", "row_major", "row_major", 32),
        ("[16, 32]", "RightScale", "col_major", "col_major", 32),
    ],
)
def test_omitted_tile_view_fields_are_the_implicit_ones(
    shape: str, space: str, blayout: str, slayout: str, fractal: int
) -> None:
    plain = tile(f"{shape}, pl.FP32, pl.Mem.{space}")
    explicit = tile(
        f"{shape}, pl.FP32, pl.Mem.{space}, pl.TileView(valid_shape={shape}, blayout=pl.TileLayout.{blayout}, "
        f"slayout=pl.TileLayout.{slayout}, fractal={fractal})"
    )
    assert plain == explicit
    assert plain == tile(f"{shape}, pl.FP32, pl.Mem.{space}, pl.TileView()")
    view = tile(f"{shape}, pl.FP32, pl.Mem.{space}, pl.TileView(pad=pl.PadValue.max)").tile_view
    assert (view.blayout.name, view.slayout.name, view.fractal) == (blayout, slayout, fractal)
    assert view.pad is pl.PadValue.max


def test_tile_extras_in_any_order() -> None:
    view, ref, space = "pl.TileView(valid_shape=[2, 8])", 'pl.MemRef("b", 0, 128)', "pl.Mem.Vec"
    first = parse(signature(f"pl.Tile[[4, 8], pl.FP32, {view}, {ref}, {space}]"))
    second = parse(signature(f"pl.Tile[[4, 8], pl.FP32, {space}, {view}, {ref}]"))
    third = parse(signature(f"pl.Tile[[4, 8], pl.FP32, {ref}, {space}, {view}]"))
    ir.assert_structural_equal(first, second, enable_auto_mapping=True)
    ir.assert_structural_equal(first, third, enable_auto_mapping=True)
    kind = first.params[0].type
    assert [e.value for e in kind.tile_view.valid_shape] == [2, 8]
    assert kind.memref.base_.name_hint == "b" and kind.memory_space is pl.Mem.Vec
    round_trip(first)


def test_view_fields() -> None:
    kind = tile(
        "[4, 8], pl.FP32, pl.Mem.Vec, pl.TileView(valid_shape=[M, R], stride=[8, 1], start_offset=16, "
        "blayout=pl.TileLayout.col_major, slayout=pl.TileLayout.row_major, fractal=256, pad=pl.PadValue.zero, "
        "compact=pl.CompactMode.normal)"
    )
    view = kind.tile_view
    assert view.valid_shape[0].name_hint == "M" and view.valid_shape[1].value == 8
    assert [e.value for e in view.stride] == [8, 1] and view.start_offset.value == 16
    assert view.fractal == 256 and view.compact is pl.CompactMode.normal


def test_unknown_names_in_views_are_symbols_of_their_name() -> None:
    node = parse(
        kernel(
            "t: pl.Tile[[64, 128], pl.FP32, pl.Mem.Vec, pl.TileView(valid_shape=[vr, 128])] = "
            "pl.load(x, [0, 0], [64, 128])\n"
            "u: pl.Tile[[64, 128], pl.FP32, pl.Mem.Vec, pl.TileView(valid_shape=[vr, 128])] = pl.exp(t)\nreturn"
        )
    )
    first, second = (s.var.type.tile_view.valid_shape[0] for s in node.body.stmts[:2])
    assert isinstance(first, ir.Var) and first.name_hint == "vr" and first is second
    round_trip(node)


def test_view_fields_may_be_dsl_expressions() -> None:
    text = kernel(
        "k = pl.min(n, 64)\nt: pl.Tile[[64, 128], pl.FP32, pl.Mem.Vec, pl.TileView(valid_shape=[k + 1, 128])] = "
        "pl.load(x, [0, 0], [64, 128])\nreturn",
        "x: pl.Tensor[[64, 128], pl.FP32], n: pl.Scalar[pl.INDEX]",
    )
    node = parse(text)
    assert node.body.stmts[1].var.type.tile_view.valid_shape[0].left is node.body.stmts[0].var
    round_trip(node)


@pytest.mark.parametrize(
    ("view", "phrase"),
    [
        ("pl.TileView(valid_shape=[x, 1])", "must be an index expression"),
        ("pl.TileView(valid_shape=[2.5, 1])", "must be an index expression"),
        ("pl.TileView(valid_shape=[pl.yield_(n), 1])", "cannot contain pl.yield_()"),
        ("pl.TileView(valid_shape=n)", "Expected a list"),
        ("pl.TileView([4, 8])", "does not accept positional arguments"),
        ("pl.TileView(layout=pl.ND)", "Unknown TileView keyword argument"),
        ("pl.TileView(fractal=n)", "fractal must be an integer"),
        ("pl.TileView(compact=pl.CompactMode.zz)", "Unknown CompactMode value"),
        ("pl.TileView(blayout=pl.TileLayout.zz)", "Unknown TileLayout value"),
        ("pl.TileView(pad=pl.PadValue.zz)", "Unknown PadValue value"),
    ],
)
def test_bad_views(view: str, phrase: str) -> None:
    statement = f"t: pl.Tile[[64, 128], pl.FP32, pl.Mem.Vec, {view}] = pl.load(x, [0, 0], [64, 128])"
    params = "x: pl.Tensor[[64, 128], pl.FP32], n: pl.Scalar[pl.INDEX]"
    check_error(kernel(statement + "\nreturn", params), ParserTypeError, phrase, statement)


# --- run-time forms ----------------------------------------------------------------------------------------------------


def test_annotations_of_a_module_without_postponed_evaluation(tmp_path: Path) -> None:
    text = (
        HEAD
        + SETUP
        + textwrap.dedent(
            """
        @pl.function(type=pl.FunctionType.InCore)
        def f(
            a: pl.Tensor[[M, 2 * R], pl.FP32, pl.TensorView(valid_shape=[M, K], stride=[M, 1], layout=pl.TensorLayout.ND)],
            b: pl.Tile[[4, 8], pl.FP32, pl.MemRef("b", 0, 128), pl.Mem.Vec, pl.TileView(valid_shape=[M, 8])],
            c: pl.Out[pl.Tensor[[M + 1, 4], pl.FP32, pl.NZ, pl.MemRef("c", M * 4, 128)]],
            d: pl.InOut[pl.Tensor([R, 8], pl.FP32)],
            e: pl.Array[R, pl.INT32],
            g: pl.Scalar(pl.INT32),
            h: pl.Tile[[4, 8], pl.FP32, pl.TileView(fractal=1024)],
            i: "pl.Tile[[4, 8], pl.FP32]",
        ) -> tuple[pl.Tensor[[M, 4], pl.FP32], pl.Tile([4, 8], pl.FP32)]:
            pass

        @pl.function
        def g(n: pl.Scalar[pl.INDEX]) -> pl.Tuple[pl.Tensor[[M, 4], pl.FP32], pl.TaskId]:
            pass
        """
        )
    )
    now = load_file(tmp_path, text, "now.py")
    later = load_file(tmp_path, "from __future__ import annotations\n" + text, "later.py")
    for name in ("f", "g"):
        ir.assert_structural_equal(now[name], later[name], enable_auto_mapping=True)
    round_trip(now["f"])
    round_trip(now["g"])


def test_postponed_annotations_in_a_program(tmp_path: Path) -> None:
    text = "from __future__ import annotations\n" + program("y = self.k(x, 1.0, y)\nreturn")
    ir.assert_structural_equal(
        load_file(tmp_path, text)["P"], parse(program("y = self.k(x, 1.0, y)\nreturn")), enable_auto_mapping=True
    )


# --- local variables ---------------------------------------------------------------------------------------------------

LOCAL = "x: pl.Tensor[[64, 128], pl.FP32], n: pl.Scalar[pl.INDEX], m: pl.Scalar[pl.INT32], g: pl.Scalar[pl.FP32]"


def local(statement: str, before: str = "") -> Any:
    node = parse(kernel(f"{before}\n{statement}\nreturn", LOCAL))
    round_trip(node)
    return node.body.stmts[-2]


@pytest.mark.parametrize("annotation", ["'anything at all'", "pl.UnknownType", "pl.Ptr", "pl.MemRefType"])
def test_annotations_that_say_nothing(annotation: str) -> None:
    made = local(f"y: {annotation} = pl.exp(x)")
    assert made.var.type == ir.TensorType([64, 128], FP32)


@pytest.mark.parametrize("annotation", ["pld.WindowBufferType", "pld.CommCtxType"])
def test_distributed_annotations_that_say_nothing(annotation: str) -> None:
    made = local(f"y: {annotation} = pl.exp(x)")
    assert made.var.type == ir.TensorType([64, 128], FP32)


def test_an_unknown_type_takes_the_annotation() -> None:
    text = HEAD + textwrap.dedent(
        """
        @pl.program
        class P:
            @pl.function(type=pl.FunctionType.Orchestration)
            def a(self, x: pl.Tensor[[4], pl.FP32]):
                y: pl.Tensor[[4], pl.FP32] = self.b(x)
                z = self.b(x)
                return
            @pl.function(type=pl.FunctionType.InCore)
            def b(self, x: pl.Tensor[[4], pl.FP32]):
                pl.exp(x)
        """
    )
    first, second = parse(text).get_function("a").body.stmts[:2]
    assert first.var.type == ir.TensorType([4], FP32) and first.value.type == ir.TensorType([4], FP32)
    assert isinstance(second.var.type, ir.UnknownType)


@pytest.mark.parametrize(
    ("statement", "phrase"),
    [
        ("y: pl.Scalar[pl.FP32] = x", "Type annotation for 'y' is Scalar but expression has type Tensor"),
        (
            "y: pl.Tile[[64, 128], pl.FP32] = pl.exp(x)",
            "Type annotation for 'y' is Tile but expression has type Tensor",
        ),
        ("y: pl.Tensor[[64, 128], pl.BF16] = pl.exp(x)", "has dtype bfloat16 but expression has dtype fp32"),
        ("y: pl.Scalar[pl.FP16] = g", "has dtype fp16 but expression has dtype fp32"),
        ("y: pl.Scalar[pl.FP32] = 0", "has dtype fp32 but expression has dtype index"),
        ("y: pl.Scalar[pl.INT64] = m", "has dtype int64 but expression has dtype int32"),
        ("y: pl.Scalar[pl.BOOL] = n", "has dtype bool but expression has dtype index"),
        ("y: pl.Tensor[[64], pl.FP32] = pl.exp(x)", "has rank 1 but expression has rank 2"),
        (
            "y: pl.Tensor[[64, 64], pl.FP32] = pl.exp(x)",
            "has shape dimension 1 = 64 but expression has shape dimension 1 = 128",
        ),
    ],
)
def test_annotations_are_checked(statement: str, phrase: str) -> None:
    error = check_error(kernel(f"{statement}\nreturn", LOCAL), ParserTypeError, phrase, statement)
    assert (error.hint or "").startswith("Change annotation to: ")


def test_symbolic_extents_are_not_compared() -> None:
    made = local("y: pl.Tensor[[n, 128], pl.FP32] = pl.exp(x)")
    assert made.var.type == ir.TensorType([64, 128], FP32)


def test_index_agrees_with_every_integer() -> None:
    made = local("y: pl.Scalar[pl.INDEX] = m")
    assert made.var.type == ir.ScalarType(pl.INT32)  # otherwise the inferred type stands
    made = local("y: pl.Scalar[pl.INT32] = n")
    assert made.var.type == ir.ScalarType(pl.INT32)
    made = local("y: pl.Scalar[pl.INT64] = n + 1")
    assert made.var.type == ir.ScalarType(pl.INT64)
    made = local("y: pl.Scalar[pl.UINT32] = n * n")
    assert made.var.type == ir.ScalarType(pl.UINT32)


def test_int_literals_are_restamped() -> None:
    made = local("y: pl.Scalar[pl.INT64] = 0")
    assert isinstance(made.value, ir.ConstInt) and made.value.dtype is pl.INT64
    assert made.var.type == ir.ScalarType(pl.INT64)
    made = local("y: pl.Scalar[pl.INT32] = -3")
    assert made.value.value == -3 and made.value.dtype is pl.INT32
    made = local("y: pl.Scalar[pl.INDEX] = 7")
    assert made.value.dtype is pl.INDEX


LOAD = "pl.load(x, [0, 0], [64, 128])"


def test_tiles_take_shape_dtype_and_memref_from_the_annotation() -> None:
    made = local(f'y: pl.Tile[[64, 128], pl.FP32, pl.MemRef("buf", 256, 32768), pl.Mem.Vec] = {LOAD}')
    assert made.var.type.memref.base_.name_hint == "buf" and made.value.type is made.var.type
    assert made.var.type.memory_space is pl.Mem.Vec
    made = local(f"y: pl.Tile[[64, 128], pl.FP32] = {LOAD}")
    assert made.var.type.memory_space is pl.Mem.Vec  # from the value


def test_tile_views_come_from_the_annotation_when_given() -> None:
    narrowed = "pl.load(x, [0, 0], [64, 128], valid_shape=[32, 128])"
    made = local(f"y: pl.Tile[[64, 128], pl.FP32] = {narrowed}")
    assert made.var.type.tile_view.valid_shape[0].value == 32
    made = local(f"y: pl.Tile[[64, 128], pl.FP32, pl.Mem.Vec, pl.TileView(valid_shape=[16, 128])] = {narrowed}")
    assert made.var.type.tile_view.valid_shape[0].value == 16
    assert made.value.type.tile_view.valid_shape[0].value == 16


def test_a_rebuilt_call_keeps_arguments_and_attributes() -> None:
    made = local(
        'y: pl.Tile[[64, 128], pl.FP32, pl.MemRef("buf", 0, 32768), pl.Mem.Vec] = '
        'pl.tile.load(x, [0, 0], [64, 128], [64, 128], target_memory=pl.Mem.Vec, attrs={"note": 3})'
    )
    assert made.value.attrs["note"] == 3 and made.value.op.name == "tile.load"
    assert made.value.kwargs["target_memory"] is pl.Mem.Vec
    assert made.value.type.memref is not None


def test_a_flattened_load_is_trusted() -> None:
    node = parse(
        kernel(
            "t: pl.Tile[[32, 16], pl.FP32, pl.Mem.Vec] = pl.tile.load(x, [0, 0, 0], [4, 8, 16], [4, 8, 16], "
            "target_memory=pl.Mem.Vec)\nreturn",
            "x: pl.Tensor[[4, 8, 16], pl.FP32]",
        )
    )
    made = node.body.stmts[0]
    assert made.var.type == ir.TileType([32, 16], FP32, None, None, pl.Mem.Vec)
    round_trip(node)


def test_a_tensor_annotation_with_a_view_is_the_type() -> None:
    view = "pl.TensorView(stride=[1, 64], layout=pl.TensorLayout.DN)"
    made = local(f"y: pl.Tensor[[64, 128], pl.FP32, {view}] = pl.exp(x)")
    assert made.var.type.tensor_view.layout is pl.DN and made.value.type.tensor_view.layout is pl.DN


def test_annotated_copies_of_variables() -> None:
    made = local('y: pl.Tensor[[64, 128], pl.FP32, pl.MemRef("buf", 0, 32768)] = x')
    assert made.var.type.memref is not None and isinstance(made.value, ir.Var)
    view = "pl.TensorView(stride=[128, 1], layout=pl.TensorLayout.ND)"
    made = local(f"y: pl.Tensor[[64, 128], pl.FP32, {view}] = x")
    assert made.var.type.tensor_view is not None
    made = local("y: pl.Tile[[64, 128], pl.FP32, pl.Mem.Vec, pl.TileView(valid_shape=[8, 128])] = t", f"t = {LOAD}")
    assert made.var.type.tile_view.valid_shape[0].value == 8


def test_local_annotation_errors_have_a_place(tmp_path: Path) -> None:
    text = kernel("# a note\n\ny: pl.Tensor[[64, 64], pl.FP32] = (\n    pl.exp(x)\n)\nreturn")
    file_error(tmp_path, text, ParserTypeError, "has shape dimension 1 = 64", "y: pl.Tensor[[64, 64], pl.FP32] = (")


def test_pointers_of_allocations() -> None:
    text = kernel(
        "buf: pl.Ptr = pl.tile.alloc(pl.Mem.Vec, 32768)\n"
        "t: pl.Tile[[64, 128], pl.FP32, pl.MemRef(buf, 0, 32768), pl.Mem.Vec] = pl.load(x, [0, 0], [64, 128])\nreturn"
    )
    node = parse(text)
    alloc, load = node.body.stmts[:2]
    assert isinstance(alloc.var.type, ir.PtrType) and load.var.type.memref.base_ is alloc.var
    round_trip(node)


def test_the_pointer_of_a_signature_is_the_one_that_is_allocated() -> None:
    text = kernel(
        "buf: pl.MemRefType = pl.tensor.alloc(pl.Mem.DDR, 32768)\nreturn",
        'x: pl.Tensor[[64, 128], pl.FP32, pl.MemRef("buf", 0, 32768)]',
    )
    node = parse(text)
    assert node.body.stmts[0].var is node.params[0].type.memref.base_
    round_trip(node)


def test_distributed_types_keep_their_class() -> None:
    kind = parameter("pld.DistributedTensor[[M, 8], pl.FP32, pl.NZ]")
    assert isinstance(kind, ir.DistributedTensorType) and kind.tensor_view.layout is pl.NZ
    assert pld.DistributedTensor[[4], pl.FP32] is not None
