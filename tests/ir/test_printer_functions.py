# ruff: noqa: E501 - printed lines are as long as they are
"""Printed functions and programs, and the entry points (spec 11.3, 17.6 - 17.8)."""

import os
import stat
import sys

import pytest

from pypto.ir import formatter, printer
from pypto.ir.dtype import DataType
from pypto.ir.enums import FunctionType, InlineLanguage, Level, MemorySpace, ParamDirection, Role, TensorLayout
from pypto.ir.expr import Call, ConstFloat, GlobalVar, IterArg, MakeTuple, MemRef, Op, Submit, Var, index_const
from pypto.ir.printer import python_print, python_print_type, register_format_callback
from pypto.ir.printer.functions import callees_first
from pypto.ir.program import Function, Program
from pypto.ir.span import Span
from pypto.ir.stmt import (
    AssignStmt,
    EvalStmt,
    ForStmt,
    InlineStmt,
    ReturnStmt,
    SeqStmts,
    YieldStmt,
    attach_leading_comments,
)
from pypto.ir.type import PtrType, ScalarType, TensorType, TensorView, TileType

U = Span.unknown()
INDEX, FP32, FP16 = DataType.INDEX, DataType.FP32, DataType.FP16
SCALAR = ScalarType(INDEX)
EMPTY = SeqStmts([], U)


def text(node, **options):
    return python_print(node, format=False, **options)


def lines(node, **options):
    return text(node, **options).split("\n")


def function(name="f", params=(), results=(), body=EMPTY, **kind):
    return Function(name, list(params), list(results), body, U, **kind)


def program(*functions, name="P"):
    return Program(list(functions), name, U)


def seq(*stmts):
    return SeqStmts(list(stmts), U)


# --- decorator --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ({}, "@pl.function"),
        ({"level": Level.HOST}, "@pl.function(level=pl.Level.HOST)"),
        ({"level": Level.NODE, "role": Role.SubWorker}, "@pl.function(level=pl.Level.HOST, role=pl.Role.SubWorker)"),
        (
            {"type": FunctionType.AIV},
            "@pl.function(type=pl.FunctionType.AIV, level=pl.Level.AIV, role=pl.Role.SubWorker)",
        ),
        ({"type": FunctionType.Inline}, "@pl.function(type=pl.FunctionType.Inline)"),
        ({"attrs": {"auto_scope": False}}, "@pl.function(auto_scope=False)"),
        ({"attrs": {"auto_scope": True}}, "@pl.function"),
        ({"attrs": {"external_source": "/a b/k.cpp"}}, '@pl.function(external_source="/a b/k.cpp")'),
        (
            {"type": FunctionType.AIC, "attrs": {"external_source": "k.cpp", "auto_scope": False}},
            "@pl.function(type=pl.FunctionType.AIC, level=pl.Level.AIC, role=pl.Role.SubWorker, "
            'auto_scope=False, external_source="k.cpp")',
        ),
    ],
)
def test_decorator(kind, expected):
    assert lines(function(**kind)) == [expected, "def f():", "    pass"]


# --- signature --------------------------------------------------------------------------------------------------------


def test_directions_of_parameters():
    kind = TensorType([64], FP32)
    params = [
        Var("a", kind),
        (Var("b", kind), ParamDirection.Out),
        (Var("c", kind), ParamDirection.InOut),
        (Var("d", kind), ParamDirection.In),
    ]
    t = "pl.Tensor[[64], pl.FP32]"
    assert lines(function(params=params))[1] == f"def f(a: {t}, b: pl.Out[{t}], c: pl.InOut[{t}], d: {t}):"


@pytest.mark.parametrize(
    ("results", "arrow"),
    [
        ([], ""),
        ([SCALAR], " -> pl.Scalar[pl.INDEX]"),
        ([SCALAR, ScalarType(FP32)], " -> tuple[pl.Scalar[pl.INDEX], pl.Scalar[pl.FP32]]"),
    ],
)
def test_results(results, arrow):
    assert lines(function(results=results))[1] == f"def f(){arrow}:"


@pytest.mark.parametrize(
    ("kind", "signature"),
    [
        ({}, "def f(self, a: pl.Scalar[pl.INDEX]):"),
        ({"type": FunctionType.Orchestration}, "def f(self, a: pl.Scalar[pl.INDEX]):"),
        ({"type": FunctionType.InCore}, "def f(a: pl.Scalar[pl.INDEX]):"),
        ({"level": Level.HOST, "role": Role.SubWorker}, "def f(a: pl.Scalar[pl.INDEX]):"),
    ],
)
def test_self_in_a_program(kind, signature):
    func = function(params=[Var("a", SCALAR)], **kind)
    assert f"    {signature}" in lines(program(func))
    assert "def f(a: pl.Scalar[pl.INDEX]):" in lines(func)


# --- prologue and body ------------------------------------------------------------------------------------------------


def test_attributes_print_as_a_prologue():
    w = Var("w", TensorType([4], FP32))
    attrs = {"keep": w, "split": 2, "auto_scope": False, "dual_aiv_dispatch": True}
    assert lines(function(params=[w], attrs=attrs))[2:] == [
        '    pl.func_attr({"keep": w, "split": pl.SplitMode.LEFT_RIGHT, "dual_aiv_dispatch": True})',
        "    pass",
    ]


def test_a_zero_split_is_not_printed():
    assert lines(function(attrs={"split": 0}))[2:] == ["    pass"]


def test_an_abstract_worker():
    func = function(body=InlineStmt("", InlineLanguage.Python, U), requires_runtime_binding=True, attrs={"n": 1})
    assert lines(func)[1:] == ["def f():", '    pl.func_attr({"n": 1})', "    ..."]


def test_a_python_worker():
    body = InlineStmt("x = 1\nif x:\n    print(x)", InlineLanguage.Python, U)
    assert lines(function(body=body))[2:] == ["    x = 1", "    if x:", "        print(x)"]


def test_memory_bases_are_names_in_the_body_and_strings_in_the_signature():
    base = Var("mem_vec_1", PtrType())
    ref = MemRef(base, 0, 256)
    kind = TileType([8, 8], FP32, ref, memory_space=MemorySpace.Vec)
    other = TileType([8, 8], FP32, MemRef(MemorySpace.Vec, 0, 256, 7), memory_space=MemorySpace.Vec)
    p, t, u = Var("p", kind), Var("t", kind), Var("u", other)
    alloc = AssignStmt(base, Call(Op("tile.alloc"), [index_const(1), index_const(256)], PtrType(), U), U)
    body = seq(alloc, AssignStmt(t, p, U), AssignStmt(u, t, U))
    quoted = 'pl.Tile[[8, 8], pl.FP32, pl.MemRef("mem_vec_1", pl.const(0, pl.INT64), 256), pl.Mem.Vec]'
    named = quoted.replace('"mem_vec_1"', "mem_vec_1")
    free = quoted.replace("mem_vec_1", "mem_vec_7")
    assert lines(function(params=[p], results=[kind], body=body))[1:] == [
        f"def f(p: {quoted}) -> {quoted}:",
        "    mem_vec_1: pl.Ptr = pl.tile.alloc(pl.Mem.Vec, 256)",
        f"    t: {named} = p",
        f"    u: {free} = t",
    ]


def test_memory_offsets_use_the_names_of_the_function():
    i, j = Var("i", SCALAR), Var("i", SCALAR)
    kind = TileType([8, 8], FP32, MemRef(Var("b", PtrType()), j * 64, 256), memory_space=MemorySpace.Vec)
    t = Var("t", kind)
    func = function(params=[i, j], body=AssignStmt(t, Call(Op("tile.create"), [], kind, U), U))
    assert lines(func)[2] == (
        '    t: pl.Tile[[8, 8], pl.FP32, pl.MemRef("b", i_1 * 64, 256), pl.Mem.Vec] = pl.tile.create()'
    )


# --- programs ---------------------------------------------------------------------------------------------------------


def test_program_header():
    assert lines(program(function(), name="Name")) == [
        "# pypto.program: Name",
        "import pypto.language as pl",
        "",
        "@pl.program",
        "class Name:",
        "    @pl.function",
        "    def f(self):",
        "        pass",
    ]


def test_another_prefix_and_no_name():
    assert lines(program(function(), name=""), prefix="q") == [
        "# pypto.program: Program",
        "from pypto import language as q",
        "",
        "@q.program",
        "class Program:",
        "    @q.function",
        "    def f(self):",
        "        pass",
    ]


def test_a_program_without_functions():
    assert lines(program()) == [
        "# pypto.program: P",
        "import pypto.language as pl",
        "",
        "@pl.program",
        "class P:",
        "    pass",
    ]


def tensor(*dims, **view):
    return TensorType(list(dims), FP32, **view)


def declarations(*functions):
    return [line for line in lines(program(*functions)) if ".dynamic(" in line]


def test_dynamic_dims_are_declared_in_the_order_of_their_names():
    n, m = Var("N", SCALAR), Var("M", SCALAR)
    func = function(params=[Var("x", tensor(n, 4)), Var("y", tensor(m + 1, 4))])
    assert lines(program(func))[2:9] == [
        "",
        'M = pl.dynamic("M")',
        'N = pl.dynamic("N")',
        "",
        "@pl.program",
        "class P:",
        "    @pl.function",
    ]


def test_dims_are_found_in_all_places():
    dims = {name: Var(name, SCALAR) for name in "ABCDEFG"}
    view = TensorView([dims["A"], 1], TensorLayout.ND, [dims["B"], 4])
    x = Var("x", tensor(8, 4, tensor_view=view))
    y = Var("y", TensorType([dims["C"] * dims["D"]], FP32))
    local = Var("t", tensor(dims["E"]))
    body = AssignStmt(local, Call(Op("tensor.f"), [x], local.type, U), U)
    func = function(params=[x, y], results=[tensor(dims["F"])], body=body)
    assert [line[0] for line in declarations(func)] == ["A", "B", "C", "D", "E", "F"]


def test_distinct_dims_with_one_hint():
    n, other = Var("N", SCALAR), Var("N", SCALAR)
    first = function("a", params=[Var("x", tensor(n))])
    second = function("b", params=[Var("x", tensor(other)), Var("y", tensor(n))])
    assert declarations(first, second) == ['N = pl.dynamic("N")', 'N_1 = pl.dynamic("N_1")']
    assert "    def b(self, x: pl.Tensor[[N_1], pl.FP32], y: pl.Tensor[[N], pl.FP32]):" in lines(program(first, second))


def test_dims_that_the_function_defines_are_not_declared():
    n, k = Var("n", SCALAR), Var("k", SCALAR)
    body = seq(AssignStmt(k, n + 1, U), AssignStmt(Var("t", tensor(k)), Call(Op("tensor.f"), [], U), U))
    assert declarations(function(params=[n, Var("x", tensor(n))], body=body)) == []


def test_a_dim_that_another_function_defines_is_declared():
    n = Var("n", SCALAR)
    one = function("a", params=[n, Var("x", tensor(n))])
    two = function("b", params=[Var("x", tensor(n))])
    assert declarations(one, two) == ['n = pl.dynamic("n")']


def test_a_parameter_read_by_a_valid_shape_of_the_signature_is_declared():
    n = Var("n", SCALAR)
    x = Var("x", tensor(8, 4, tensor_view=TensorView(None, TensorLayout.ND, [n, 4])))
    assert declarations(function(params=[n, x])) == ['n = pl.dynamic("n")']


def test_a_function_alone_declares_nothing():
    func = function(params=[Var("x", tensor(Var("N", SCALAR)))])
    assert lines(func) == ["@pl.function", "def f(x: pl.Tensor[[N], pl.FP32]):", "    pass"]


# --- order of functions -----------------------------------------------------------------------------------------------


def calling(name, *callees):
    stmts = [EvalStmt(Call(GlobalVar(callee), [], U), U) for callee in callees]
    return function(name, body=seq(*stmts))


def order_of(*functions):
    return [line.split("(")[0].split()[-1] for line in lines(program(*functions)) if " def " in line]


def test_callees_come_first():
    assert order_of(calling("a", "z", "c"), calling("b"), calling("c", "y"), calling("y"), calling("z")) == [
        "y",
        "c",
        "z",
        "a",
        "b",
    ]


def test_submits_count_and_unknown_functions_do_not():
    launch = EvalStmt(Submit(GlobalVar("k"), [], [], ScalarType(DataType.TASK_ID), U), U)
    assert order_of(function("a", body=seq(launch, *calling("x", "gone").body.stmts)), function("k")) == ["k", "a"]


def test_a_cycle_falls_back_to_name_order():
    assert order_of(calling("a", "d"), calling("b", "c"), calling("c", "b"), calling("d")) == ["a", "b", "c", "d"]


def test_long_call_chains():
    names = [f"f{number:05}" for number in range(5000)]
    callees = {name: names[number + 1 : number + 2] for number, name in enumerate(names)}
    assert callees_first(callees) == names[::-1]


# --- the examples of the specification --------------------------------------------------------------------------------


def test_carried_loop_example():
    n, i = Var("n", SCALAR), Var("i", SCALAR)
    acc = IterArg("acc", SCALAR, index_const(0), U)
    nxt, out = Var("nxt", SCALAR), Var("acc_out", SCALAR)
    body = seq(AssignStmt(nxt, acc + i, U), YieldStmt([nxt], U))
    loop = ForStmt(i, index_const(0), n, index_const(1), [acc], body, [out], U)
    assert text(function("tri", [n], [SCALAR], seq(loop, ReturnStmt([out], U)))) == (
        """\
@pl.function
def tri(n: pl.Scalar[pl.INDEX]) -> pl.Scalar[pl.INDEX]:
    for i, (acc,) in pl.range(n, init_values=(0,)):
        nxt: pl.Scalar[pl.INDEX] = acc + i
        acc_out: pl.Scalar[pl.INDEX] = pl.yield_(nxt)
    return acc_out"""
    )


def test_program_example():
    kind = TensorType([32, 96], FP16)
    tile = TileType([32, 96], FP16, memory_space=MemorySpace.Vec)
    src, dst, x, y, r = (Var(name, kind) for name in ("src", "dst", "x", "y", "r"))
    t, h = Var("t", tile), Var("h", tile)
    origin, shape = MakeTuple([index_const(0), index_const(0)]), MakeTuple([index_const(32), index_const(96)])

    load = AssignStmt(
        t, Call(Op("tile.load"), [src, origin, shape, shape], {"target_memory": MemorySpace.Vec}, tile, U), U
    )
    attach_leading_comments(load, ["halve the tile"])
    half = function(
        "half",
        [src, (dst, ParamDirection.Out)],
        [kind],
        seq(
            load,
            AssignStmt(h, Call(Op("tile.muls"), [t, ConstFloat(0.5, FP32)], tile, U), U),
            AssignStmt(r, Call(Op("tile.store"), [h, origin, dst], kind, U), U),
            ReturnStmt([r], U),
        ),
        type=FunctionType.InCore,
    )
    call = AssignStmt(y, Call(GlobalVar("half"), [x, y], kind, U), U)
    loop = ForStmt(Var("i", SCALAR), index_const(0), index_const(3), index_const(1), [], call, [], U)
    main = function(
        "main",
        [x, (y, ParamDirection.Out)],
        [kind],
        seq(loop, ReturnStmt([y], U)),
        type=FunctionType.Orchestration,
    )
    assert text(program(half, main, name="Demo")) == (
        """\
# pypto.program: Demo
import pypto.language as pl

@pl.program
class Demo:
    @pl.function(type=pl.FunctionType.InCore, level=pl.Level.CHIP_DIE, role=pl.Role.SubWorker)
    def half(src: pl.Tensor[[32, 96], pl.FP16], dst: pl.Out[pl.Tensor[[32, 96], pl.FP16]]) -> pl.Tensor[[32, 96], pl.FP16]:
        # halve the tile
        t: pl.Tile[[32, 96], pl.FP16, pl.Mem.Vec] = pl.tile.load(src, [0, 0], [32, 96], [32, 96], target_memory=pl.Mem.Vec)
        h: pl.Tile[[32, 96], pl.FP16, pl.Mem.Vec] = pl.tile.muls(t, 0.5)
        r: pl.Tensor[[32, 96], pl.FP16] = pl.tile.store(h, [0, 0], dst)
        return r
    @pl.function(type=pl.FunctionType.Orchestration, level=pl.Level.CHIP, role=pl.Role.Orchestrator)
    def main(self, x: pl.Tensor[[32, 96], pl.FP16], y: pl.Out[pl.Tensor[[32, 96], pl.FP16]]) -> pl.Tensor[[32, 96], pl.FP16]:
        for i in pl.range(3):
            y: pl.Tensor[[32, 96], pl.FP16] = self.half(x, y)
        return y"""
    )


# --- entry points and formatting --------------------------------------------------------------------------------------


@pytest.fixture
def callback(monkeypatch):
    """Restores the format callback of the process."""
    monkeypatch.setattr(printer, "_callback", printer._callback)
    monkeypatch.setattr(printer, "_chosen", printer._chosen)


def test_entry_points(callback):
    register_format_callback(None)
    a = Var("a", SCALAR)
    stmt = AssignStmt(a, a + 1, U)
    assert stmt.as_python() == str(stmt) == python_print(stmt) == "a: pl.Scalar[pl.INDEX] = a + 1"
    assert stmt.as_python("q", True, False) == "a = a + 1"
    assert python_print_type(SCALAR, "q") == "q.Scalar[q.INDEX]"


def test_something_else_is_refused():
    with pytest.raises(TypeError, match="expects an IR node or a type, got int"):
        python_print(3)


def test_format_callback(callback):
    register_format_callback(str.upper)
    assert python_print(Var("a", SCALAR)) == "A"
    assert python_print_type(SCALAR) == "PL.SCALAR[PL.INDEX]"
    assert python_print(Var("a", SCALAR), format=False) == "a"


def fail(_text):
    raise RuntimeError("no formatter today")


@pytest.mark.parametrize("bad", [fail, lambda text: None, lambda text: 3])
def test_a_failing_callback_leaves_the_raw_text(callback, bad):
    register_format_callback(bad)
    assert python_print(Var("a", SCALAR)) == "a"


def test_the_formatter_is_looked_for_when_first_needed(callback, monkeypatch):
    asked = []
    monkeypatch.setattr(printer, "_chosen", False)
    monkeypatch.setattr(formatter, "default_callback", lambda: asked.append(1))
    python_print(Var("a", SCALAR), format=False)
    assert not asked
    python_print(Var("a", SCALAR))
    python_print(Var("a", SCALAR))
    assert asked == [1]


def fake_ruff(folder, monkeypatch, body):
    """A ``ruff`` on PATH that runs this Python code on its standard input."""
    path = folder / "ruff"
    path.write_text(f"#!{sys.executable}\nimport sys\ntext = sys.stdin.read()\n{body}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.defpath}")


def test_ruff_format(tmp_path, monkeypatch):
    fake_ruff(tmp_path, monkeypatch, "print(' '.join(sys.argv[1:]))\nprint(text.strip() + '!')")
    command = "format --isolated --line-length {} -"
    assert formatter.ruff_format("x") == f"{command.format(200)}\nx!"
    assert formatter.ruff_format("x\n", 80) == f"{command.format(80)}\nx!\n"
    assert formatter.default_callback() is not None


def test_a_failing_ruff_leaves_the_input(tmp_path, monkeypatch):
    fake_ruff(tmp_path, monkeypatch, "print('half')\nsys.exit(2)")
    assert formatter.ruff_format("x = 1") == "x = 1"


def test_a_slow_ruff_leaves_the_input(tmp_path, monkeypatch):
    fake_ruff(tmp_path, monkeypatch, "import time\ntime.sleep(30)")
    monkeypatch.setattr(formatter, "_TIME_LIMIT", 0.2)
    assert formatter.ruff_format("x = 1") == "x = 1"


def test_without_ruff(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert formatter.ruff_format("x = 1") == "x = 1"
    assert formatter.default_callback() is None


def test_a_short_line_costs_no_process(monkeypatch):
    monkeypatch.setattr(formatter, "ruff_format", str.upper)
    assert formatter.format_lines("a + b") == "a + b"
    assert formatter.format_lines("a\nb") == "A\nB"
    assert formatter.format_lines("a" * 201) == "A" * 201
