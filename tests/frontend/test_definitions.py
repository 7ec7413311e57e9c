"""Decorators, function kinds, attributes, externals, host callbacks and inline functions (language sections 2 and 3)."""

from __future__ import annotations

import linecache
import subprocess
import sys
import textwrap
import types
from pathlib import Path
from typing import Any

import pytest

import pypto.language as pl
from pypto import ir
from pypto.diag.parser_errors import (
    InvalidOperationError,
    ParserSyntaxError,
    ParserTypeError,
    UndefinedVariableError,
    UnsupportedFeatureError,
)

from .dsl import HEAD, body_text, check_error, file_error, kernel, load_file, opaque, parse, program, round_trip

ROWS = 24


# --- where a decorator stands ------------------------------------------------------------------------------------------


@pl.function
def bare(x: pl.Tensor[[ROWS, 8], pl.FP32]) -> pl.Tensor[[ROWS, 8], pl.FP32]:
    return pl.add(x, 1.0)


@pl.function()
def called(x: pl.Tensor[[ROWS, 8], pl.FP32]) -> pl.Tensor[[ROWS, 8], pl.FP32]:
    return pl.add(x, 1.0)


def test_bare_and_called_decorators_give_functions() -> None:
    assert isinstance(bare, ir.Function) and isinstance(called, ir.Function)
    assert bare.func_type is pl.FunctionType.Opaque
    assert (bare.level, bare.role) == (None, None)
    assert dict(bare.attrs) == {}
    ir.assert_structural_equal(bare, called, enable_auto_mapping=True)
    round_trip(bare)


def test_a_local_function_sees_its_frame() -> None:
    columns = 16

    @pl.function(type=pl.FunctionType.InCore)
    def local(x: pl.Tensor[[ROWS, columns], pl.FP32]):
        pl.exp(x)

    assert isinstance(local, ir.Function)
    assert local.params[0].type == ir.TensorType([24, 16], pl.FP32)


def test_a_method_is_left_to_the_program() -> None:
    class Holder:
        @pl.function(type=pl.FunctionType.InCore)
        def plain(self, x: pl.Tensor[[4, 4], pl.FP32]):
            return

        @pl.function
        def bare(self):
            return

    assert isinstance(Holder.plain, types.FunctionType)
    assert Holder.plain._pl_function_attrs == {}
    assert Holder.bare._pl_function_attrs == {}
    assert not hasattr(Holder.plain, "_pl_external_source")


def test_a_program_inside_a_function_and_inside_a_class() -> None:
    width = 4

    @pl.program
    class Local:
        @pl.function
        def f(self, x: pl.Tensor[[width, 2], pl.FP32]):
            return

    class Outer:
        @pl.program
        class Inner:
            @pl.function
            def f(self, x: pl.Tensor[[ROWS, 2], pl.FP32]):
                return

    assert isinstance(Local, ir.Program) and Local.name == "Local"
    assert isinstance(Outer.Inner, ir.Program) and Outer.Inner.name == "Inner"
    assert Local.get_function("f").params[0].type == ir.TensorType([4, 2], pl.FP32)
    assert Outer.Inner.get_function("f").params[0].type == ir.TensorType([24, 2], pl.FP32)


def test_program_takes_arguments_and_ignores_what_is_not_a_dsl_method() -> None:
    @pl.program(strict_ssa=True)
    class Mixed:
        SIZE = 3

        class Nested:
            @pl.function
            def hidden(self):
                return

        def helper(self):
            return 1

        @pl.function
        def later(self, n: pl.Scalar[pl.INDEX]):
            return

        @pl.function()
        def first(n: pl.Scalar[pl.INDEX]):  # self is optional
            return

    assert [f.name for f in Mixed.functions.values()] == ["first", "later"]
    assert len(Mixed.get_function("first").params) == 1
    round_trip(Mixed)


def test_any_prefix_marks_a_method(tmp_path: Path) -> None:
    names = load_file(
        tmp_path,
        "import pypto.language as lang\nimport pypto.language as pl\nfrom pypto.language import function\n"
        "@pl.program\nclass P:\n    @lang.function\n    def a(self):\n        return\n"
        "    @function(type=pl.FunctionType.InCore)\n    def b(self):\n        return\n",
    )
    assert sorted(f.name for f in names["P"].functions.values()) == ["a", "b"]


def test_duplicate_methods_are_refused() -> None:
    method = "    @pl.function\n    def f(self):\n        return\n"
    check_error(
        HEAD + "@pl.program\nclass P:\n" + method + method, ParserSyntaxError, "Duplicate function name", "def f"
    )


def test_self_without_annotation_is_skipped_on_a_function_too() -> None:
    node = parse(HEAD + "@pl.function\ndef f(self, x: pl.Scalar[pl.INDEX]):\n    return\n")
    assert [p.name_hint for p in node.params] == ["x"]


def test_an_annotated_self_is_removed_from_a_method() -> None:
    node = parse(
        HEAD + "@pl.program\nclass P:\n    @pl.function\n    def f(self: pl.Scalar[pl.INDEX]):\n        return\n"
    )
    assert len(node.get_function("f").params) == 0


# --- kinds, levels and roles -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "level", "role"),
    [
        ("Orchestration", "CHIP", "Orchestrator"),
        ("Graph", "CHIP", "Orchestrator"),
        ("InCore", "CHIP_DIE", "SubWorker"),
        ("AIC", "AIC", "SubWorker"),
        ("AIV", "AIV", "SubWorker"),
        ("Group", "CORE_GROUP", "SubWorker"),
        ("Opaque", None, None),
        ("Spmd", None, None),
        ("Inline", None, None),
    ],
)
def test_level_and_role_follow_from_the_kind(kind: str, level: str | None, role: str | None) -> None:
    node = parse(f"{HEAD}@pl.function(type=pl.FunctionType.{kind})\ndef f(n: pl.Scalar[pl.INDEX]):\n    return\n")
    assert node.func_type is pl.FunctionType[kind]
    assert node.level is (None if level is None else pl.Level[level])
    assert node.role is (None if role is None else pl.Role[role])
    round_trip(node)


@pytest.mark.parametrize(
    ("keywords", "phrase"),
    [
        ("type=pl.FunctionType.InCore, level=pl.Level.HOST", "implies level=Level.CHIP_DIE, but explicit level="),
        ("type=pl.FunctionType.Orchestration, role=pl.Role.SubWorker", "implies role="),
    ],
)
def test_an_explicit_place_must_agree(keywords: str, phrase: str) -> None:
    check_error(f"{HEAD}@pl.function({keywords})\ndef f():\n    return\n", ParserSyntaxError, phrase)
    check_error(
        f"{HEAD}@pl.program\nclass P:\n    @pl.function({keywords})\n    def f(self):\n        return\n",
        ParserSyntaxError,
        phrase,
    )


def test_an_explicit_place_may_repeat_the_derived_one_and_aliases_are_equal() -> None:
    node = parse(
        f"{HEAD}@pl.function(type=pl.FunctionType.InCore, level=pl.Level.L2CACHE, role=pl.Role.SubWorker)\n"
        "def f():\n    return\n"
    )
    assert node.level is pl.Level.CHIP_DIE
    node = parse(f"{HEAD}@pl.function(level=pl.Level.POD, role=pl.Role.Orchestrator)\ndef f():\n    return\n")
    assert node.level is pl.Level.CLUSTER_0 and node.role is pl.Role.Orchestrator
    round_trip(node)


def test_enum_keywords_of_methods_are_literals() -> None:
    def method(keywords: str, before: str = "") -> str:
        return (
            f"{HEAD}from pypto.language import FunctionType, Level, Role\n{before}"
            f"@pl.program\nclass P:\n    @pl.function({keywords})\n    def f(self):\n        return\n"
        )

    node = parse(method("type=FunctionType.Opaque, level=Level.HOST, role=Role.Orchestrator")).get_function("f")
    assert (node.level, node.role) == (pl.Level.HOST, pl.Role.Orchestrator)
    node = parse(method("level=None, role=None")).get_function("f")
    assert (node.level, node.role) == (None, None)
    check_error(
        method("type=kind", "kind = FunctionType.InCore\n"),
        ParserSyntaxError,
        "Unsupported `@pl.function`(type=...) value",
        "type=kind",
    )
    check_error(method("level=place", "place = Level.HOST\n"), ParserSyntaxError, "Expected pl.Level.<name>")
    check_error(method("role=who", "who = Role.SubWorker\n"), ParserSyntaxError, "Expected pl.Role.<name>")


def test_auto_scope_is_an_attribute_when_false() -> None:
    node = parse(f"{HEAD}@pl.function(type=pl.FunctionType.Orchestration, auto_scope=False)\ndef f():\n    return\n")
    assert dict(node.attrs) == {"auto_scope": False}
    node = parse(f"{HEAD}@pl.function(type=pl.FunctionType.Orchestration, auto_scope=True)\ndef f():\n    return\n")
    assert dict(node.attrs) == {}


# --- decorator attributes ----------------------------------------------------------------------------------------------


def decorated(attrs: Any) -> Any:
    @pl.function(type=pl.FunctionType.InCore, attrs=attrs)
    def f(x: pl.Tensor[[4, 4], pl.FP32]):
        return

    return f


@pytest.mark.parametrize(
    ("attrs", "stored"),
    [
        ({"split": pl.SplitMode.UP_DOWN}, {"split": 1}),
        ({"split": pl.SplitMode.NONE}, {}),
        ({"a": 3, "b": True, "c": "text", "d": 0.5}, {"a": 3, "b": True, "c": "text", "d": 0.5}),
        ({"e": pl.FP16, "f": pl.Mem.Vec}, {"e": pl.FP16, "f": pl.Mem.Vec}),
    ],
)
def test_decorator_attributes_are_normalised(attrs: dict[str, Any], stored: dict[str, Any]) -> None:
    with pytest.warns(DeprecationWarning, match="cannot reference parameters"):
        assert dict(decorated(attrs).attrs) == stored


@pytest.mark.parametrize(
    ("attrs", "phrase"),
    [
        ([], "must be a dict"),
        ("", "must be a dict"),
        ({1: 2}, "keys must be strings"),
        ({"a": pl.Tensor[[4], pl.FP32]}, "is an annotation-only Tensor"),
        ({"a": pl.Scalar[pl.INDEX]}, "is an annotation-only Scalar"),
        ({"a": pl.dynamic("k")}, "references a variable, which a function attr cannot carry"),
        ({"a": pl.dynamic("k") + 1}, "references a variable"),
        ({"a": [ir.Var("v", ir.ScalarType(pl.INDEX))]}, "references a variable"),
    ],
)
def test_bad_decorator_attributes(attrs: Any, phrase: str) -> None:
    with pytest.raises(ParserSyntaxError, match=phrase):
        decorated(attrs)


def test_an_expression_without_variables_is_unwrapped() -> None:
    with pytest.warns(DeprecationWarning):
        node = decorated({"a": pl.Scalar(expr=ir.ConstInt(3, pl.INDEX))})
    assert isinstance(node.attrs["a"], ir.ConstInt) and node.attrs["a"].value == 3


def test_no_warning_for_empty_attributes(recwarn: pytest.WarningsRecorder) -> None:
    decorated({})
    assert not recwarn.list


def test_attributes_of_a_method_may_be_any_expression() -> None:
    depth = 3
    with pytest.warns(DeprecationWarning):

        @pl.program
        class P:
            @pl.function(type=pl.FunctionType.InCore, attrs={"depth": depth + 1, "split": pl.SplitMode.LEFT_RIGHT})
            def f(self, x: pl.Tensor[[4, 4], pl.FP32]):
                return

    assert dict(P.get_function("f").attrs) == {"depth": 4, "split": 2}


FOREIGN = "def function(**keywords):\n    return lambda f: f\n"


def foreign(keywords: str) -> str:
    """A program whose decorator is not ours: no evaluated snapshot of the attributes exists."""
    return f"{HEAD}{FOREIGN}@pl.program\nclass P:\n    @function({keywords})\n    def f(self):\n        return\n"


def test_attributes_without_a_snapshot_are_read_as_literals() -> None:
    node = parse(foreign("attrs={'a': 1, 'b': 'text'}")).get_function("f")
    assert dict(node.attrs) == {"a": 1, "b": "text"}


@pytest.mark.parametrize(
    ("keywords", "phrase"),
    [
        ("attrs={**{}}", "Unsupported `**` unpacking"),
        ("attrs={1: 2}", "Attrs dict key must be a string literal"),
        ("attrs={'a': len('b')}", "Unsupported value for @pl.function attr"),
        ("attrs=[]", "must be a dict"),
    ],
)
def test_bad_attributes_without_a_snapshot(keywords: str, phrase: str) -> None:
    check_error(foreign(keywords), ParserSyntaxError, phrase, "@function")


# --- signature rules ---------------------------------------------------------------------------------------------------


def test_results_of_a_signature() -> None:
    def returns(arrow: str) -> list[ir.Type]:
        return list(parse(f"{HEAD}@pl.function\ndef f(x: pl.Scalar[pl.INDEX]){arrow}:\n    pass\n").return_types)

    index, fp32 = ir.ScalarType(pl.INDEX), ir.ScalarType(pl.FP32)
    assert returns("") == []
    assert returns(" -> pl.Scalar[pl.INDEX]") == [index]
    assert returns(" -> tuple[pl.Scalar[pl.INDEX], pl.Scalar[pl.FP32]]") == [index, fp32]
    assert returns(" -> pl.Tuple[pl.Scalar[pl.INDEX], pl.Scalar[pl.FP32]]") == [ir.TupleType([index, fp32])]


def test_directions_with_and_without_a_prefix() -> None:
    node = parse(
        "from pypto.language import Out, InOut\n"
        + HEAD
        + "@pl.function\ndef f(a: pl.Tensor[[4], pl.FP32], b: Out[pl.Tensor[[4], pl.FP32]], "
        "c: InOut[pl.Tensor[[4], pl.FP32]], d: pl.Out[pl.Scalar[pl.INDEX]]):\n    return\n"
    )
    assert [d.name for d in node.param_directions] == ["In", "Out", "InOut", "Out"]
    round_trip(node)


# --- pl.func_attr ------------------------------------------------------------------------------------------------------


def test_func_attr_of_the_specification() -> None:
    @pl.program
    class Gemm:
        @pl.function(type=pl.FunctionType.InCore)
        def body(
            self,
            act: pl.Tensor[[32, 96], pl.BF16],
            wgt: pl.Tensor[[96, 48], pl.BF16],
            res: pl.Out[pl.Tensor[[32, 48], pl.FP32]],
        ):
            pl.func_attr({"keep": wgt, "split": pl.SplitMode.LEFT_RIGHT})
            res[:] = pl.matmul(act, wgt, out_dtype=pl.FP32)

    body = Gemm.get_function("body")
    assert list(body.attrs) == ["keep", "split"]
    assert body.attrs["keep"] is body.params[1]
    assert body.attrs["split"] == 2 and body.split is pl.SplitMode.LEFT_RIGHT
    round_trip(Gemm)


def test_func_attr_calls_merge_and_emit_nothing() -> None:
    node = parse(
        kernel(
            '"""What it does."""\npl.func_attr({"a": 1, "b": True})\npl.func_attr({"c": "s", "e": 1.5, "g": -2})\n'
            'pl.func_attr({"d": pl.FP16, "m": pl.Mem.Vec, "split": pl.SplitMode.NONE, "dump_vars": [x], '
            '"arg_direction_overrides": [0, 1], "dirs": [pl.adir.input, pl.adir.no_dep], "p": pl.adir.scalar})\nreturn'
        )
    )
    assert "split" not in node.attrs
    assert {k: v for k, v in node.attrs.items() if k in "abceg"} == {"a": 1, "b": True, "c": "s", "e": 1.5, "g": -2}
    assert node.attrs["d"] is pl.FP16 and node.attrs["m"] is pl.Mem.Vec
    assert node.attrs["dump_vars"][0] is node.params[0]
    assert list(node.attrs["arg_direction_overrides"]) == [0, 1]
    assert list(node.attrs["dirs"]) == [ir.ArgDirection.Input, ir.ArgDirection.NoDep]
    assert isinstance(node.body, ir.ReturnStmt)
    round_trip(node)


def test_a_bare_name_in_func_attr_is_a_parameter_before_it_is_a_python_value() -> None:
    text = kernel('pl.func_attr({"a": x, "b": y})\nreturn').replace("@pl.f", "x = 3\ny = 4\n@pl.f", 1)
    node = parse(text)
    assert node.attrs["a"] is node.params[0]
    assert node.attrs["b"] == 4


def test_func_attr_in_the_middle_of_a_nested_block_is_refused() -> None:
    check_error(
        opaque('if n > 1:\n    pl.func_attr({"a": 1})\nreturn'),
        ParserSyntaxError,
        "must appear before every other statement",
        "func_attr",
    )


def test_func_attr_repeats_a_decorator_attribute() -> None:
    text = kernel('pl.func_attr({"a": 1})\nreturn').replace("InCore)", 'InCore, attrs={"a": 2})')
    with pytest.warns(DeprecationWarning):
        check_error(text, ParserSyntaxError, "Duplicate function attribute 'a'", "func_attr")


@pytest.mark.parametrize("value", ["[1, 2]", "[1]"])
def test_int_lists_are_only_for_their_key(value: str) -> None:
    check_error(
        kernel(f'pl.func_attr({{"a": {value}}})\nreturn'), ParserSyntaxError, "Unsupported list element type for key: a"
    )


# --- external kernels --------------------------------------------------------------------------------------------------


def external(body: str, kind: str = "AIV", method: bool = False) -> str:
    head = f'@pl.function(type=pl.FunctionType.{kind}, external_source="kern.cpp")\n'
    if not method:
        return HEAD + head + "def f(x: pl.Tensor[[4], pl.FP32]):\n" + textwrap.indent(body, "    ")
    return (
        HEAD
        + "@pl.program\nclass P:\n"
        + textwrap.indent(head + "def f(self, x: pl.Tensor[[4], pl.FP32]):\n" + textwrap.indent(body, "    "), "    ")
    )


@pytest.mark.parametrize("method", [False, True])
@pytest.mark.parametrize("body", ["...\n", "pass\n", '"""Doc."""\npl.func_attr({"a": 1})\n...\n', '"""Doc."""\n'])
def test_external_kernels_have_no_body(tmp_path: Path, body: str, method: bool) -> None:
    (tmp_path / "kern.cpp").write_text("// kernel\n")
    names = load_file(tmp_path, external(body, method=method))
    node = names["P"].get_function("f") if method else names["f"]
    assert node.attrs["external_source"] == str((tmp_path / "kern.cpp").resolve())
    assert isinstance(node.body, ir.SeqStmts) and len(node.body.stmts) == 0
    round_trip(node)


@pytest.mark.parametrize("method", [False, True])
def test_external_kernels_are_checked(tmp_path: Path, method: bool) -> None:
    with pytest.raises(ValueError, match="file not found"):
        load_file(tmp_path, external("...\n", method=method))
    (tmp_path / "kern.cpp").write_text("// kernel\n")
    file_error(
        tmp_path,
        external("y = pl.exp(x)\n", method=method),
        ParserSyntaxError,
        "must have an empty '...' body",
        "y = pl.exp(x)",
    )
    file_error(
        tmp_path,
        external("...\n", "InCore", method),
        ParserTypeError,
        "only valid on FunctionType.AIC or FunctionType.AIV",
        "def f(self, x: pl.Tensor[[4], pl.FP32]):" if method else "def f(x: pl.Tensor[[4], pl.FP32]):",
    )


def test_an_absolute_path_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "elsewhere.cpp"
    path.write_text("// kernel\n")

    @pl.function(type=pl.FunctionType.AIC, external_source=path)
    def f(x: pl.Tensor[[4], pl.FP32]): ...

    assert f.attrs["external_source"] == str(path)


# --- host callbacks ----------------------------------------------------------------------------------------------------


def worker(body: str, signature: str = "x: pl.Tensor[[4], pl.FP32]", level: str = "HOST") -> str:
    return (
        f"{HEAD}@pl.program\nclass P:\n    @pl.function(level=pl.Level.{level}, role=pl.Role.SubWorker)\n"
        f"    def cb({signature}) -> pl.Scalar[pl.INT32]:\n" + textwrap.indent(textwrap.dedent(body), " " * 8)
    )


def test_a_host_callback_is_kept_as_python() -> None:
    node = parse(worker('"""Doc."""\nimport os\nwith open(os.devnull) as f:\n    print(f, x + 1)\nreturn 3\n'))
    node = node.get_function("cb")
    assert isinstance(node.body, ir.InlineStmt) and node.body.language is ir.InlineLanguage.Python
    assert node.body.body == "import os\nwith open(os.devnull) as f:\n    print(f, x + 1)\nreturn 3"
    assert not node.requires_runtime_binding
    assert list(node.return_types) == [ir.ScalarType(pl.INT32)]


@pytest.mark.parametrize(
    ("body", "text", "abstract"),
    [
        ("...\n", "", True),
        ('"""Doc."""\npl.func_attr({"a": 1})\n...\n', "", True),
        ("pass\n", "pass", False),
        ("return 1\n", "return 1", False),
    ],
)
@pytest.mark.parametrize("level", ["HOST", "CLUSTER_0", "CLUSTER_2", "GLOBAL"])
def test_abstract_and_concrete_callbacks(body: str, text: str, abstract: bool, level: str) -> None:
    whole = parse(worker(body, level=level))
    node = whole.get_function("cb")
    assert node.body.body == text
    assert node.requires_runtime_binding is abstract
    round_trip(whole)


def test_a_callback_has_no_self() -> None:
    check_error(worker("...\n", "self, x: pl.Scalar[pl.INT32]"), ParserSyntaxError, "must not declare 'self'", "self")


def test_a_sub_worker_below_the_host_is_dsl() -> None:
    node = parse(
        f"{HEAD}@pl.program\nclass P:\n    @pl.function(level=pl.Level.CHIP, role=pl.Role.SubWorker)\n"
        "    def cb(self, n: pl.Scalar[pl.INDEX]):\n        m = n + 1\n        return\n"
    )
    assert isinstance(node.get_function("cb").body, ir.SeqStmts)


# --- inline functions --------------------------------------------------------------------------------------------------

SCALE = 3.0


@pl.inline
def scaled(value, by):
    """Scale."""
    result = pl.mul(value, by)
    return pl.add(result, SCALE)


@pl.inline
def twice(value):
    return scaled(scaled(value, 2.0), 2.0)


@pl.inline
def pair(value):
    return pl.exp(value), pl.log(value)


@pl.inline
def effect(value, out):
    pl.store(value, [0, 0], out)


def test_fields_of_an_inline_function() -> None:
    assert isinstance(scaled, pl.InlineFunction)
    assert scaled.name == "scaled"
    assert scaled.param_names == ["value", "by"]
    assert scaled.func_def.name == "scaled"
    assert scaled.source_file == __file__
    assert scaled.closure_vars["SCALE"] == 3.0
    assert isinstance(scaled.line_offset, int) and isinstance(scaled.col_offset, int)
    assert isinstance(scaled.source_lines, list)


def test_inline_expansion_in_place() -> None:
    @pl.function(type=pl.FunctionType.InCore)
    def f(x: pl.Tensor[[4, 4], pl.FP32]):
        y = scaled(x, 2.0)
        return y

    assert [str(s.value).replace("\n", "") for s in f.body.stmts[:-1]] == [
        "pl.tensor.muls(x, 2.0)",
        "pl.tensor.adds(result, 3.0)",
    ]
    assert [s.var.name_hint for s in f.body.stmts[:-1]] == ["result", "y"]
    round_trip(f)


def test_nested_inline_calls_and_their_names() -> None:
    @pl.function(type=pl.FunctionType.InCore)
    def f(x: pl.Tensor[[4, 4], pl.FP32]):
        result = pl.exp(x)
        y = twice(x)
        return pl.add(result, y)

    made = [s.var for s in f.body.stmts[:-1]]
    assert [v.name_hint for v in made] == ["result", "result", "result", "y"]
    assert len({id(v) for v in made}) == 4  # the locals of an expansion are variables of their own
    assert f.body.stmts[-1].value[0].args[0] is made[0]
    round_trip(f)


def test_inline_locals_do_not_leak() -> None:
    text = HEAD + "@pl.inline\ndef g(v):\n    hidden = v + 1\n    return hidden\n"
    text += "@pl.function\ndef f(n: pl.Scalar[pl.INDEX]):\n    a = g(n)\n    b = hidden\n    return\n"
    check_error(text, UndefinedVariableError, "Undefined variable 'hidden'", "b = hidden")


def test_an_inline_function_sees_its_own_closure_only() -> None:
    text = HEAD + "K = 5\n@pl.inline\ndef g(v):\n    return v + K\n"
    text += "@pl.function\ndef f(n: pl.Scalar[pl.INDEX], K: pl.Scalar[pl.INDEX]):\n    a = g(n)\n    return\n"
    assert "a: pl.Scalar[pl.INDEX] = n + 5" in body_text(text)
    text = HEAD + "@pl.inline\ndef g(v):\n    return v + n\n"
    text += "@pl.function\ndef f(n: pl.Scalar[pl.INDEX]):\n    a = g(n)\n    return\n"
    check_error(text, UndefinedVariableError, "Undefined variable 'n'", "return v + n")


def test_the_closure_of_an_inline_function_is_a_snapshot(tmp_path: Path) -> None:
    names = load_file(
        tmp_path,
        HEAD + "K = 5\n@pl.inline\ndef g(v):\n    return v + K\nK = 6\n"
        "@pl.function\ndef f(n: pl.Scalar[pl.INDEX]):\n    a = g(n) + K\n    return a\n",
    )
    assert "n + 5 + 6" in names["f"].as_python(format=False)


def test_rebinding_an_inline_parameter_leaves_the_caller_alone() -> None:
    text = HEAD + "@pl.inline\ndef g(v):\n    v = v + 1\n    v = v + 2\n    return v\n"
    text += "@pl.function\ndef f(n: pl.Scalar[pl.INDEX]):\n    a = g(n)\n    return n\n"
    node = parse(text)
    assert node.body.stmts[-1].value[0] is node.params[0]
    assert node.body.stmts[0].var is not node.params[0]
    copy, first, second = node.body.stmts[:3]
    assert copy.value is node.params[0]
    assert copy.var is first.var is second.var
    round_trip(node)


def test_a_loop_in_an_expansion_carries_a_rebound_parameter() -> None:
    text = HEAD + "@pl.inline\ndef g(v):\n    for i in pl.range(3):\n        v = v + i\n    return v\n"
    text += "@pl.function\ndef f(n: pl.Scalar[pl.INDEX]):\n    a = g(n)\n    return a\n"
    copy, loop, a = parse(text).body.stmts[:3]
    assert loop.body.var is copy.var and loop.body.value.left is copy.var and a.value is copy.var


def test_a_subscript_write_to_an_inline_parameter_writes_the_callers_tensor() -> None:
    text = HEAD + "@pl.inline\ndef put(dst, v):\n    dst[0:2, :] = v\n"
    text += (
        "@pl.function(type=pl.FunctionType.InCore)\n"
        "def f(x: pl.Tensor[[2, 4], pl.FP32], o: pl.Out[pl.Tensor[[8, 4], pl.FP32]]):\n    put(o, x)\n    return\n"
    )
    node = parse(text)
    assert node.body.stmts[0].var is node.params[1]
    round_trip(node)


@pytest.mark.parametrize("block", ["if v > 1:", "for i in pl.range(3):", "while v > 1:"])
def test_a_return_in_a_branch_or_loop_of_an_inline_function_is_refused(block: str) -> None:
    text = HEAD + f"@pl.inline\ndef g(v):\n    {block}\n        return v\n    return v + 1\n"
    text += "@pl.function\ndef f(n: pl.Scalar[pl.INDEX]):\n    a = g(n)\n    return a\n"
    check_error(text, UnsupportedFeatureError, "return inside a branch or loop of an inline function", "return v")


def test_a_tuple_return_unpacks() -> None:
    @pl.function(type=pl.FunctionType.InCore)
    def f(x: pl.Tensor[[4, 4], pl.FP32]):
        a, b = pair(x)
        return pl.add(a, b)

    first = f.body.stmts[0]
    assert isinstance(first.value, ir.MakeTuple) and first.var.name_hint == "_tuple_tmp"
    assert [s.var.name_hint for s in f.body.stmts[1:3]] == ["a", "b"]
    round_trip(f)


def test_an_inline_function_without_a_value_is_a_statement() -> None:
    @pl.function(type=pl.FunctionType.InCore)
    def f(x: pl.Tensor[[4, 4], pl.FP32], o: pl.Out[pl.Tensor[[4, 4], pl.FP32]]):
        t = pl.load(x, [0, 0], [4, 4])
        effect(t, o)
        return

    assert [type(s).__name__ for s in f.body.stmts] == ["AssignStmt", "EvalStmt", "ReturnStmt"]
    round_trip(f)


@pytest.mark.parametrize(
    ("call", "phrase"),
    [
        ("a = g(n, n)", "Inline function 'g' expects 1 argument(s), got 2"),
        ("a = g()", "Inline function 'g' expects 1 argument(s), got 0"),
        ("a = g(v=n)", "does not accept keyword argument 'v'"),
        ("a = h(n)", "has no return value"),
        ("a = n + h(n)", "has no return value"),
        ("return h(n)", "has no return value"),
    ],
)
def test_bad_inline_calls(call: str, phrase: str) -> None:
    text = HEAD + "@pl.inline\ndef g(v: int) -> float:\n    return v\n@pl.inline\ndef h(v):\n    w = v\n"
    text += f"@pl.function\ndef f(n: pl.Scalar[pl.INDEX]):\n    {call}\n    return\n"
    check_error(text, ParserTypeError, phrase, call)


def test_spans_and_errors_of_an_expansion_name_the_inline_file(tmp_path: Path) -> None:
    helper = load_file(
        tmp_path,
        HEAD + "\n\n\n@pl.inline\ndef g(v):\n    # doubles\n    w = v * 2\n    return w + 1\n\n"
        "@pl.inline\ndef bad(v):\n    return v + nope\n",
        "helper_module.py",
    )
    g, bad = helper["g"], helper["bad"]

    @pl.function
    def f(n: pl.Scalar[pl.INDEX]):
        # mine
        a = g(n)
        b = a
        return b

    stmts = f.body.stmts
    assert stmts[0].span.filename == str(tmp_path / "helper_module.py") and stmts[0].span.begin_line == 9
    assert stmts[1].value.span.begin_line == 10
    assert stmts[2].span.filename == __file__
    assert "doubles" in stmts[0].leading_comments
    with pytest.raises(UndefinedVariableError) as info:

        @pl.function
        def wrong(n: pl.Scalar[pl.INDEX]):
            a = bad(n)
            return a

    assert info.value.span["filename"] == str(tmp_path / "helper_module.py")
    assert info.value.source_lines[info.value.span["line"] - 1] == "    return v + nope"


# --- closures ----------------------------------------------------------------------------------------------------------


def test_free_variables_and_locals_are_visible() -> None:
    outer = 5

    def make(inner: int) -> Any:
        _ = outer

        @pl.function
        def f(n: pl.Scalar[pl.INDEX]):
            return n + (outer * 10 + inner)

        return f

    assert "n + 57" in make(7).as_python(format=False)


def test_values_are_read_at_decoration() -> None:
    k = 1

    @pl.function
    def f(n: pl.Scalar[pl.INDEX]):
        return n + k

    k = 2
    assert "n + 1" in f.as_python(format=False)
    assert k == 2


# --- where the source comes from ---------------------------------------------------------------------------------------


def test_python_dash_c() -> None:
    code = (
        "import pypto.language as pl\n"
        "@pl.function\n"
        "def f(n: pl.Scalar[pl.INDEX]):\n"
        "    m = n + 1\n"
        "    return m\n"
        "@pl.program\n"
        "class P:\n"
        "    @pl.function\n"
        "    def g(self, n: pl.Scalar[pl.INDEX]):\n"
        "        return n\n"
        "print(f.name, f.body.stmts[0].span.begin_line, P.name, P.get_function('g').span.begin_line)\n"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert ran.stdout.split() == ["f", "4", "P", "9"], ran.stderr


def test_code_without_source_is_refused() -> None:
    text = HEAD + "@pl.function\ndef f(n: pl.Scalar[pl.INDEX]):\n    return n\n"
    with pytest.raises(ParserSyntaxError, match="Cannot retrieve source code for function 'f'") as info:
        exec(compile(text, "<nowhere>", "exec", dont_inherit=True), {"__name__": "made_up"})
    assert "pl.parse" in info.value.hint
    text = HEAD + "@pl.program\nclass P:\n    @pl.function\n    def f(self):\n        return\n"
    with pytest.raises(ParserSyntaxError, match="Cannot retrieve source code for class 'P'"):
        exec(compile(text, "<nowhere>", "exec", dont_inherit=True), {"__name__": "made_up"})
    with pytest.raises(ParserSyntaxError, match="Cannot retrieve source code for class 'P'"):
        exec(text, {"__name__": "made_up"})


@pytest.mark.parametrize("mtime", [None, 0.0])
def test_code_whose_lines_are_in_the_line_cache(mtime: float | None) -> None:
    text = HEAD + "@pl.function\ndef f(n: pl.Scalar[pl.INDEX]):\n    m = n + nope\n    return m\n"
    linecache.cache["<made>"] = (len(text), mtime, text.splitlines(keepends=True), "<made>")  # type: ignore[assignment]
    try:
        with pytest.raises(UndefinedVariableError) as info:
            exec(compile(text, "<made>", "exec", dont_inherit=True), {"__name__": "made_up"})
        assert info.value.source_lines is not None
        assert info.value.source_lines[info.value.span["line"] - 1] == "    m = n + nope"
    finally:
        del linecache.cache["<made>"]


def test_a_changed_file_is_read_again(tmp_path: Path) -> None:
    text = HEAD + "@pl.function\ndef f(n: pl.Scalar[pl.INDEX]):\n    return n + 1\n"
    assert "n + 1" in load_file(tmp_path, text)["f"].as_python(format=False)
    text = HEAD + "# longer than before\n\n@pl.function\ndef f(n: pl.Scalar[pl.INDEX]):\n    return n + 1000\n"
    again = load_file(tmp_path, text)["f"]
    assert "n + 1000" in again.as_python(format=False)
    assert again.span.begin_line == 6


def test_several_definitions_of_one_name(tmp_path: Path) -> None:
    text = HEAD + "made = []\nfor k in (1, 2):\n    if k == 1:\n"
    for k in (1, 2):
        text += f"        @pl.function\n        def f(n: pl.Scalar[pl.INDEX]):\n            return n + {k}\n"
        text += "    else:\n" if k == 1 else ""
    text += "    made.append(f)\n"
    first, second = load_file(tmp_path, text)["made"]
    assert "n + 1" in first.as_python(format=False)
    assert "n + 2" in second.as_python(format=False)


def test_programs_of_one_name_in_two_branches(tmp_path: Path) -> None:
    def one(k: int) -> str:
        return (
            f"        @pl.program\n        class P:\n            @pl.function\n"
            f"            def f(self, n: pl.Scalar[pl.INDEX]):\n                return n + {k}\n"
        )

    text = HEAD + "made = []\nfor k in (1, 2):\n    if k == 1:\n" + one(1) + "    else:\n" + one(2)
    text += "    made.append(P)\n"
    first, second = load_file(tmp_path, text)["made"]
    assert "n + 1" in first.as_python(format=False)
    assert "n + 2" in second.as_python(format=False)


# --- spans -------------------------------------------------------------------------------------------------------------

INDENTED = """{head}
# a file with lines in front and text of several bytes a character: größe

class Holder:
    def build(self):
        größe = 4

        @pl.program
        class P:
            @pl.function
            def first(self, n: pl.Scalar[pl.INDEX]):
                return

            @pl.function(
                type=pl.FunctionType.Opaque,
            )
            def f(
                self,
                n: pl.Scalar[pl.INDEX],
            ):
                größe2 = n + 1; nach = größe2 * (
                    n + größe
                )
                return nach
        return P


P = Holder().build()
"""


def test_spans_in_an_indented_file_with_wide_characters(tmp_path: Path) -> None:
    text = INDENTED.format(head=HEAD)
    lines = text.split("\n")
    node = load_file(tmp_path, text)["P"].get_function("f")

    def place(fragment: str) -> tuple[int, int]:
        line = next(i for i, shown in enumerate(lines, 1) if fragment in shown)
        return line, lines[line - 1].index(fragment) + 1

    first, second, _ = node.body.stmts
    assert node.span.filename == str(tmp_path / "user_module.py")
    assert (node.span.begin_line, node.span.begin_column) == place("def f(")
    assert (first.span.begin_line, first.span.begin_column) == place("größe2 = n")
    assert (second.span.begin_line, second.span.begin_column) == place("nach = größe2")
    value = second.value
    assert (value.span.begin_line, value.span.begin_column) == place("größe2 * (")
    assert value.span.end_line == value.span.begin_line + 2
    assert (value.right.span.begin_line, value.right.span.begin_column) == place("n + größe")
    param = node.params[0]
    assert param.span.begin_line == place("n: pl.Scalar[pl.INDEX],")[0]


@pytest.mark.parametrize(
    ("bad", "cls", "phrase"),
    [
        ("größe2 = n + nope", UndefinedVariableError, "Undefined variable 'nope'"),
        ("größe2 = pl.adn(n, 1)", InvalidOperationError, "Unknown operation 'pl.adn'"),
        ("größe2 = pl.exp(n)", InvalidOperationError, "expected Tensor or Tile"),
        ("größe2 = n + 1.5", ParserSyntaxError, "requires same numeric dtype category"),
        ("größe2: pl.Scalar[pl.FP32] = n", ParserTypeError, "has dtype fp32 but expression has dtype index"),
        ("import os", UnsupportedFeatureError, "Unsupported statement type: Import"),
        ("größe2 = 'a'", ParserTypeError, "Unsupported constant type"),
        ("größe2 = 'a' + n", ParserTypeError, "Unsupported constant type"),
    ],
)
def test_body_errors_show_the_line(tmp_path: Path, bad: str, cls: type, phrase: str) -> None:
    text = INDENTED.format(head=HEAD)
    start, end = text.index("größe2 = n"), text.index("return nach")
    text = text[:start] + bad + "\n                " + text[end:]
    error = file_error(tmp_path, text, cls, phrase, bad)
    assert error.span is not None
    column = error.span["column"]
    assert 17 <= column <= 17 + len(bad)


def test_errors_inside_loops_keep_their_place(tmp_path: Path) -> None:
    text = HEAD + textwrap.dedent(
        """
        @pl.function
        def f(n: pl.Scalar[pl.INDEX]):
            for i, (a,) in pl.range(n, init_values=(n,)):
                b = a + nope
                c = pl.yield_(b)
            return c
        """
    )
    file_error(tmp_path, text, UndefinedVariableError, "Undefined variable 'nope'", "b = a + nope")


def test_signature_errors_show_the_parameter(tmp_path: Path) -> None:
    text = INDENTED.format(head=HEAD).replace("n: pl.Scalar[pl.INDEX],", "n,")
    file_error(tmp_path, text, ParserTypeError, "Parameter 'n' missing type annotation", "n,")


def test_unusual_line_breaks_do_not_shift_lines(tmp_path: Path) -> None:
    text = HEAD + "a = 'x\u2028y'\n# page\x0c break \x1c here\n@pl.function\ndef f(n: pl.Scalar[pl.INDEX]):\n"
    text += "    # note\n    m = n + nope\n    return m\n"
    file_error(tmp_path, text, UndefinedVariableError, "Undefined variable 'nope'", "m = n + nope")
    good = load_file(tmp_path, text.replace("nope", "1"), "good_module.py")["f"]
    assert good.body.stmts[0].leading_comments == ["note"]


def test_windows_line_ends_in_text() -> None:
    text = kernel("# note\ny = pl.exp(x)\nreturn y").replace("\n", "\r\n")
    node = parse(text)
    assert node.body.stmts[0].leading_comments == ["note"]


def test_statement_counts_shape_the_body() -> None:
    assert isinstance(parse(opaque("return n")).body, ir.ReturnStmt)
    assert isinstance(parse(opaque("a = n\nreturn a")).body, ir.SeqStmts)
    empty = parse(opaque("pass")).body
    assert isinstance(empty, ir.SeqStmts) and len(empty.stmts) == 0
    empty = parse(opaque('"""Only text."""')).body
    assert isinstance(empty, ir.SeqStmts) and len(empty.stmts) == 0


def test_a_module_alias_stands_for_pl(tmp_path: Path) -> None:
    names = load_file(
        tmp_path,
        "import pypto.language as lang\n@lang.function(type=lang.FunctionType.InCore)\n"
        "def f(x: lang.Tensor[[4, 4], lang.FP32]):\n    y = lang.exp(x)\n    return y\n",
    )
    assert "pl.tensor.exp(x)" in names["f"].as_python(format=False)


def test_programs_of_the_module_survive_a_round_trip() -> None:
    node = parse(program("y = self.k(x, 1.0, y)\nreturn"))
    assert node.span.begin_line == 5  # the line of the class
    round_trip(node)
