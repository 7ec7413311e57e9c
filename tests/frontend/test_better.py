"""Section 17 of the language description, items that no other file of these tests covers."""

from __future__ import annotations

import textwrap
import warnings
from pathlib import Path

import pytest

import pypto.language as pl
from pypto import ir
from pypto.diag.parser_errors import ParserError, ParserSyntaxError, ParserTypeError

from .dsl import HEAD, check_error, kernel, load_file, opaque, parse, program, round_trip

S, T = ParserSyntaxError, ParserTypeError


# --- 8: syntax that used to be ignored --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "line", "phrase"),
    [
        ("a = n and n > 1", "a = n and n > 1", "not a BOOL scalar"),
        ("a = not m", "a = not m", "not a BOOL scalar"),
        ("a = n > 1 or g", "a = n > 1 or g", "not a BOOL scalar"),
        ("return n\na = n", "a = n", "never reached"),
        ("if n > 1:\n    return n\n    a = n", "a = n", "never reached"),
    ],
)
def test_what_is_accepted_with_a_warning(tmp_path: Path, body: str, line: str, phrase: str) -> None:
    text = opaque(body)
    with pytest.warns(UserWarning, match=phrase) as found:
        load_file(tmp_path, text)
    assert len(found) == 1
    assert Path(found[0].filename).name == "user_module.py"
    assert text.splitlines()[found[0].lineno - 1].strip() == line


def test_no_warning_without_a_reason(tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        load_file(
            tmp_path,
            opaque(
                "a = n > 1 and not (m < 3) or b\nif a:\n    return n\nreturn a",
                "n: pl.Scalar[pl.INDEX], m: pl.Scalar[pl.INT32], b: pl.Scalar[pl.BOOL]",
            ),
        )
        parse(opaque("a = n and n\nreturn\nc = n"))  # a text may be printed IR, which never warns


def test_a_bool_is_no_typed_constant() -> None:
    check_error(opaque("a = pl.const(True, pl.INT32)\nreturn"), S, "must be a numeric literal", "a = ")


# --- 11: arguments ----------------------------------------------------------------------------------------------------


def caller(argument: str, param: str) -> str:
    return HEAD + textwrap.dedent(f"""
        @pl.program
        class P:
            @pl.function
            def k(self, p: {param}):
                return
            @pl.function
            def main(self, x: pl.Tensor[[8, 16], pl.FP32], t: pl.Tile[[8, 16], pl.FP32], n: pl.Scalar[pl.INDEX], m: pl.Scalar[pl.INT32], g: pl.Scalar[pl.FP32], b: pl.Scalar[pl.BOOL]):
                self.k({argument})
                return
        """)


@pytest.mark.parametrize(
    ("argument", "param"),
    [
        ("n", "pl.Tensor[[8, 16], pl.FP32]"),
        ("t", "pl.Tensor[[8, 16], pl.FP32]"),
        ("x", "pl.Tile[[8, 16], pl.FP32]"),
        ("x", "pl.Tensor[[8, 16], pl.FP16]"),
        ("x", "pl.Tensor[[8], pl.FP32]"),
        ("x", "pl.Tensor[[8, 8], pl.FP32]"),
        ("x", "pl.Scalar[pl.FP32]"),
        ("g", "pl.Scalar[pl.INT32]"),
        ("1.5", "pl.Scalar[pl.INT32]"),
        ("3", "pl.Scalar[pl.FP32]"),
        ("b", "pl.Scalar[pl.INT32]"),
        ("None", "pl.Scalar[pl.INT32]"),
    ],
)
def test_arguments_must_fit_their_parameters(argument: str, param: str) -> None:
    check_error(caller(argument, param), T, "argument 'p' of function 'k'", "self.k(")


@pytest.mark.parametrize(
    ("argument", "param"),
    [
        ("x", "pl.Tensor[[8, 16], pl.FP32]"),
        ("x", "pl.Tensor[[M, 16], pl.FP32]"),
        ("n", "pl.Scalar[pl.INT64]"),
        ("m", "pl.Scalar[pl.INT32]"),
        ("3", "pl.Scalar[pl.INT8]"),
        ("-3", "pl.Scalar[pl.INT32]"),
        ("3", "pl.Scalar[pl.INDEX]"),
        ("1.5", "pl.Scalar[pl.FP16]"),
        ("n > 1", "pl.Scalar[pl.BOOL]"),
        ("None", "pl.Scalar[pl.TASK_ID]"),
    ],
)
def test_fitting_arguments(argument: str, param: str) -> None:
    node = parse(caller(argument, param).replace("@pl.program", "M = pl.dynamic('M')\n@pl.program", 1))
    round_trip(node)


def test_a_literal_argument_stays_index() -> None:
    call = parse(caller("3", "pl.Scalar[pl.INT8]"))["main"].body[0].expr
    assert call.args[0].type == ir.ScalarType(pl.INDEX)


# --- 12: shape names --------------------------------------------------------------------------------------------------


def test_a_shape_name_with_two_meanings_is_reported() -> None:
    text = kernel(
        "t: pl.Tensor[[N, 128], pl.FP32] = x\nreturn", "x: pl.Tensor[[64, 128], pl.FP32], N: pl.Scalar[pl.INDEX]"
    )
    with pytest.warns(UserWarning, match="shape name 'N'"):
        parse(text.replace("@pl", "N = 64\n@pl", 1))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        parse(text)


# --- 13: views in signatures ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "fields",
    [
        "",
        "valid_shape=[M, 16]",
        "valid_shape=[4, 16]",
        "blayout=pl.TileLayout.col_major",
        "fractal=1024, pad=pl.PadValue.zero",
        "stride=[16, 1], start_offset=0",
        "compact=pl.CompactMode.normal",
    ],
)
def test_tile_views_in_a_signature(fields: str) -> None:
    text = f"{HEAD}M = pl.dynamic('M')\n@pl.function\ndef f(t: pl.Tile[[8, 16], pl.FP32, pl.Mem.Vec, pl.TileView({fields})]):\n    return t\n"
    node = parse(text)
    round_trip(node)
    assert isinstance(node.params[0].type, ir.TileType)


# --- 14: aliases ------------------------------------------------------------------------------------------------------

ALIASED = """
import pypto.language as lang
from pypto.language import load, store, range, submit, at, Level, scope, ScopeMode, spmd, yield_
import pypto.language.distributed as dist
@lang.program
class P:
    @lang.function(type=lang.FunctionType.InCore)
    def k(self, a: lang.Tensor[[32, 64], lang.FP32], o: lang.Out[lang.Tensor[[32, 64], lang.FP32]]) -> lang.Tensor[[32, 64], lang.FP32]:
        t = load(a, [0, 0], [32, 64], target_memory=lang.Mem.Vec)
        u = lang.tile.exp(t) + lang.const(1.0, lang.FP32)
        return store(u, [0, 0], o)
    @lang.function(type=lang.FunctionType.Orchestration)
    def main(self, x: lang.Tensor[[32, 64], lang.FP32], y: lang.Out[lang.Tensor[[32, 64], lang.FP32]], n: lang.Scalar[lang.INDEX]):
        y, t = submit(self.k, x, y)
        y, t = lang.submit(self.k, x, y, deps=[t])
        with at(level=Level.CORE_GROUP, deps=[t]):
            y[:] = x
        with lang.at(level=lang.Level.CORE_GROUP):
            y[:] = x
        with scope(mode=ScopeMode.MANUAL):
            y = self.k(x, y)
        for i in spmd(4):
            y[i * 8 : i * 8 + 8] = x[0:8]
        for i in range(3):
            y = self.k(x, y)
        return
"""


def test_module_aliases_and_direct_imports_mean_the_same() -> None:
    node = parse(ALIASED)
    round_trip(node)
    plain = ALIASED
    for name in ("load(", "store(", "range(", "submit(", "at(", "Level.", "scope(", "ScopeMode.", "spmd("):
        plain = plain.replace(f" {name}", f" pl.{name}").replace(f"={name}", f"=pl.{name}")
    plain = plain.replace("lang.", "pl.").replace("import pypto.language as lang\n", "import pypto.language as pl\n")
    plain = "\n".join(
        line
        for line in plain.splitlines()
        if not line.startswith(("from", "import pypto.pl", "import pypto.language.d"))
    )
    plain = "import pypto.language as pl\n" + plain.replace("import pypto.language as lang", "")
    ir.assert_structural_equal(node, parse(plain), enable_auto_mapping=True)


# --- 16: records of a name --------------------------------------------------------------------------------------------


def test_keyword_arguments_map_to_parameters() -> None:
    one = parse(program("y = self.k(a=x, s=2.0, b=y)\nreturn"))
    two = parse(program("y = self.k(x, 2.0, y)\nreturn"))
    ir.assert_structural_equal(one, two, enable_auto_mapping=True)


# --- 18: several errors -----------------------------------------------------------------------------------------------


def test_errors_of_several_methods_are_reported_together() -> None:
    text = HEAD + textwrap.dedent("""
        @pl.program
        class P:
            @pl.function
            def a(self, n: pl.Scalar[pl.INDEX]):
                return one
            @pl.function
            def b(self, n: pl.Scalar[pl.INDEX]):
                x = n
                return two
        """)
    with pytest.raises(ParserError) as info:
        parse(text)
    shown = [(str(e), text.splitlines()[e.span["line"] - 1].strip()) for e in info.value.all_errors()]
    assert [line for _, line in shown] == ["return one", "return two"]
    assert hasattr(pl, "function")
