"""Compile-time directives (language section 13) and the distributed forms of the parser (section 15)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pypto import ir
from pypto.diag.parser_errors import (
    InvalidOperationError,
    ParserError,
    ParserSyntaxError,
    ParserTypeError,
    UndefinedVariableError,
    UnsupportedFeatureError,
)

from .dsl import HEAD, check_error, kernel, load_file, opaque, parse, program, round_trip

# --- static_print ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        ("'text'", "text"),
        ("x", "x: pl.Tensor[[64, 128], pl.FP32]"),
        ("'extent', 3", "extent 3: pl.Scalar[pl.INDEX]"),
        ("2.5", "2.5: pl.Scalar[pl.FP32]"),
        ("True", "True: pl.Scalar[pl.BOOL]"),
        ("ROWS * 2", "12: pl.Scalar[pl.INDEX]"),
        ("n + 1", "n + 1"),
        ("pl.exp(x)", "pl.tensor.exp(x)"),
        ("f'a {x} b{3}'", "a x: pl.Tensor[[64, 128], pl.FP32] b3: pl.Scalar[pl.INDEX]"),
        ("f'plain'", "plain"),
    ],
)
def test_static_print(capsys: pytest.CaptureFixture[str], arguments: str, shown: str) -> None:
    text = kernel(
        f"pl.static_print({arguments})\nreturn", "x: pl.Tensor[[64, 128], pl.FP32], n: pl.Scalar[pl.INDEX]"
    ).replace("@pl.f", "ROWS = 6\n@pl.f", 1)
    node = parse(text)
    assert isinstance(node.body, ir.ReturnStmt)
    line = next(i for i, source in enumerate(text.splitlines(), 1) if "static_print" in source)
    assert capsys.readouterr().out == f"static_print [<string>:{line}]: {shown}\n"


def test_static_print_names_the_file(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    load_file(tmp_path, opaque("pl.static_print('here')\nreturn"))
    assert capsys.readouterr().out == f"static_print [{tmp_path / 'user_module.py'}:5]: here\n"


def test_static_print_appears_although_parsing_fails(capsys: pytest.CaptureFixture[str]) -> None:
    check_error(opaque("pl.static_print('seen')\na = nope\nreturn"), UndefinedVariableError, "nope")
    assert "seen" in capsys.readouterr().out


def test_directives_with_any_prefix(capsys: pytest.CaptureFixture[str]) -> None:
    parse("import pypto.language as lang\n" + opaque("lang.static_print('a')\nlang.static_assert(True)\nreturn"))
    assert capsys.readouterr().out.endswith(": a\n")


@pytest.mark.parametrize("text", ["f'{n!r}'", "f'{n:3}'"])
def test_formats_are_refused(text: str) -> None:
    check_error(opaque(f"pl.static_print({text})\nreturn"), UnsupportedFeatureError, "f-string", "static_print")


# --- static_assert -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "condition",
    ["True", "ROWS == 6", "ROWS > 2 and 3 < 4", "len(DIMS) == 2", "cfg.rows % 4 == 0", "1", "ROWS < 7, 'fine'"],
)
def test_static_assertions_that_hold(condition: str) -> None:
    text = opaque(f"pl.static_assert({condition})\nreturn").replace(
        "@pl.f", "ROWS = 6\nDIMS = (1, 2)\nclass cfg:\n    rows = 8\n@pl.f", 1
    )
    assert isinstance(parse(text).body, ir.ReturnStmt)


def test_static_assertions_that_fail() -> None:
    text = opaque("pl.static_assert(ROWS == 7, 'rows must be seven')\nreturn").replace("@pl.f", "ROWS = 6\n@pl.f", 1)
    error = check_error(text, ParserError, "static_assert failed: rows must be seven", "static_assert")
    assert "ROWS == 7" in (error.hint or "") and "False" in (error.hint or "")
    error = check_error(opaque("pl.static_assert(False)\nreturn"), ParserError, "static_assert failed", "static_assert")
    assert str(error) == "static_assert failed"


@pytest.mark.parametrize("condition", ["n > 1", "m == 3"])
def test_static_assertions_need_a_constant(condition: str) -> None:
    check_error(
        opaque(f"pl.static_assert({condition})\nreturn"), ParserError, "must be compile-time evaluable", "static"
    )


def test_static_assertions_over_dsl_constants() -> None:
    text = kernel("pl.static_assert(pl.tensor.dim(x, 0) == 64)\nreturn")
    with pytest.raises(ParserError, match="compile-time evaluable"):
        parse(text)
    parse(opaque("pl.static_assert(pl.const(3, pl.INT32) == pl.const(3, pl.INT32))\nreturn"))


@pytest.mark.parametrize("call", ["pl.static_assert()", "pl.static_assert(True, 'a', 'b')"])
def test_static_assert_arguments(call: str) -> None:
    check_error(opaque(f"{call}\nreturn"), ParserSyntaxError, "static_assert() requires 1 or 2 arguments", "static")


# --- dump_tag ----------------------------------------------------------------------------------------------------------


def test_dump_tags_stick_to_later_calls() -> None:
    node = parse(
        program(
            "y = self.k(x, 1.0, y)\npl.dump_tag(x)\ny = self.k(x, 1.0, y)\nz, t = pl.submit(self.k, x, 2.0, z)\n"
            "z = self.k(y, 1.0, z)\nx = pl.mul(x, 2.0)\nz = self.k(x, 1.0, z)\n"
            "with pl.at(level=pl.Level.CORE_GROUP):\n    z[:] = pl.mul(x, 2.0)\nreturn"
        )
    )
    main = node.get_function("main")
    x = main.params[0]
    calls = [
        s.value for s in main.body.stmts if isinstance(s, ir.AssignStmt) and isinstance(s.value, (ir.Call, ir.Submit))
    ]
    calls = [c for c in calls if isinstance(c, ir.Submit) or isinstance(c.op, ir.GlobalVar)]
    tagged = [list(c.attrs.get("dump_vars", ())) for c in calls]
    assert [len(t) for t in tagged] == [0, 1, 1, 0, 1]
    assert all(t[0] is x for t in tagged if t)
    scope = next(s for s in main.body.stmts if isinstance(s, ir.InCoreScopeStmt))
    assert dict(scope.attrs)["dump_vars"][0] is x
    round_trip(node)


# --- distributed forms -------------------------------------------------------------------------------------------------

DISTRIBUTED = (
    HEAD
    + """import pypto.language.distributed as pld
@pl.program
class D:
    @pl.function(type=pl.FunctionType.Orchestration)
    def chip(self, x: pl.Tensor[[64, 128], pl.FP32], w: pl.InOut[pld.DistributedTensor[[64, 128], pl.FP32]]):
        return
    @pl.function({options})
    def host(self, x: pl.Tensor[[64, 128], pl.FP32]):
{body}
"""
)


def host(body: str, options: str = "level=pl.Level.HOST, role=pl.Role.Orchestrator") -> str:
    return DISTRIBUTED.format(options=options, body="".join(f"        {line}\n" for line in body.split("\n")))


@pytest.mark.parametrize("call", ["pld.alloc_window_buffer(4096)", "pld.tensor.alloc_window_buffer(4096)"])
def test_window_buffers_are_named_after_their_variable(call: str) -> None:
    node = parse(host(f"buf = {call}\nreturn"))
    made = node.get_function("host").body.stmts[0]
    assert made.var.name_hint == "buf" and made.value.kwargs["name"] == "buf"
    assert made.value.op.name == "pld.tensor.alloc_window_buffer"
    annotated = parse(host(f"buf: pl.Ptr = {call}\nreturn"))
    ir.assert_structural_equal(node, annotated, enable_auto_mapping=True)
    round_trip(node)


@pytest.mark.parametrize(
    ("body", "cls", "phrase"),
    [
        ("a = pld.alloc_window_buffer(4096, name='b')", ParserSyntaxError, "'name' kwarg cannot be passed explicitly"),
        (
            "a = pld.alloc_window_buffer(64)\na = pld.alloc_window_buffer(64)",
            ParserSyntaxError,
            "is already declared in this program",
        ),
        ("a, b = pld.alloc_window_buffer(64)", ParserSyntaxError, "must be assigned to a single variable name"),
        ("pld.alloc_window_buffer(64)", ParserSyntaxError, "must appear as the RHS of a simple assignment"),
        (
            "a = pld.window(pld.alloc_window_buffer(64), [4], dtype=pl.FP32)",
            ParserSyntaxError,
            "must appear as the RHS of a simple assignment",
        ),
        ("a = pld.frobnicate(x)", InvalidOperationError, "Unknown distributed operation 'pld.frobnicate'"),
        (
            "a = pld.tensor.frobnicate(x)",
            InvalidOperationError,
            "Unknown distributed operation 'pld.tensor.frobnicate'",
        ),
        ("a = pld.thing.put(x)", InvalidOperationError, "Unknown distributed category"),
    ],
)
def test_refused_distributed_forms(body: str, cls: type, phrase: str) -> None:
    check_error(host(body + "\nreturn"), cls, phrase, body.split("\n")[-1])


@pytest.mark.parametrize("options", ["type=pl.FunctionType.Orchestration", "", "level=pl.Level.CHIP"])
@pytest.mark.parametrize("call", ["pld.alloc_window_buffer(64)", "pld.world_size()", "pld.system.world_size()"])
def test_host_only_calls(options: str, call: str) -> None:
    check_error(
        host(f"a = {call}\nreturn", options),
        ParserSyntaxError,
        "can only be called in HOST orchestration context",
        "a = ",
    )


def test_world_size_in_a_host_function() -> None:
    round_trip(parse(host("a = pld.world_size()\nfor r in pl.range(a):\n    b = r\nreturn")))


def test_host_only_calls_in_a_device_scope() -> None:
    body = "with pl.at(level=pl.Level.CORE_GROUP):\n    a = pld.world_size()\nreturn"
    check_error(host(body), ParserSyntaxError, "can only be called in HOST orchestration context", "a = ")


def test_the_device_of_a_call_is_any_expression() -> None:
    text = host(
        "buf = pld.alloc_window_buffer(32768)\nw = pld.window(buf, [64, 128], dtype=pl.FP32)\n"
        "for r in pl.range(pld.world_size()):\n    self.chip(x, w, device=r + 1)\nreturn"
    )
    node = parse(text)
    call: Any = node.get_function("host").body.stmts[2].body
    assert isinstance(call.expr.attrs["device"], ir.Add)
    round_trip(node)
    check_error(
        program("y = self.k(x, 1.0, y, device=1)\nreturn"),
        ParserTypeError,
        "does not accept keyword argument 'device'",
        "device",
    )
