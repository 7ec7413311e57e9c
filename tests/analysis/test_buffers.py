"""Which buffers the names of a region stand for, what it does to those from outside, and which parameters results are."""

import pytest
from buffer_kit import KERNELS, function_of
from spec_kit import parse

from pypto import ir
from pypto.analysis.buffers import READ, WRITE, Buffers
from pypto.analysis.callees import Callees, argument_index, callees_of, parameter_index
from pypto.analysis.constants import constant_int, static_trip_count


def buffers_of(body: str) -> tuple[Buffers, dict[str, ir.Var]]:
    program, function, variables = function_of("Opaque", body, " -> f32[8, 8]")
    return Buffers(function.body, callees_of(program)), variables


@pytest.mark.parametrize(
    ("body", "root"),
    [
        ("y = a", "a"),
        ("y = pl.tensor.adds(a, 1.0)", None),
        ("y = pl.store(pl.load(b, [0, 0], [8, 8]), [0, 0], a)", "a"),
        ("t = pl.assemble(a, b, [0, 0])\ny = pl.assemble(t, b, [0, 0])", "a"),
        ("y = pl.slice(a, [8, 8], [0, 0])", None),  # may be a part only
        ("y = self.k(a, b)", "b"),
        ("y = self.fresh(a)", None),
        ("r = self.swap(a, b)\ny = r[0]", "b"),
        ("r = self.swap(a, b)\ny = r[1]", "a"),
        ("y, t = pl.submit(self.k, a, b)", "b"),
        ("for i, (c,) in pl.range(n, init_values=(a,)):\n    d = self.k(b, c)\n    y = pl.yield_(d)", "a"),
        ("for i, (c,) in pl.range(n, init_values=(a,)):\n    d = self.fresh(c)\n    y = pl.yield_(d)", None),
        ("for i, (c,) in pl.range(n, init_values=(a,)):\n    y = pl.yield_(b)", None),
        ("for i, (c, d) in pl.range(n, init_values=(a, b)):\n    y, z = pl.yield_(d, c)", None),
        ("for i, (c, d) in pl.range(n, init_values=(a, a)):\n    y, z = pl.yield_(d, c)", "a"),
        ("if n > 0:\n    y = pl.yield_(a)\nelse:\n    y = pl.yield_(a)", "a"),
        ("if n > 0:\n    y = pl.yield_(a)\nelse:\n    y = pl.yield_(b)", None),
        (
            "for i, (c,) in pl.range(n, init_values=(a,)):\n    if n > i:\n        d = self.k(b, c)\n"
            "        e = pl.yield_(d)\n    else:\n        e = pl.yield_(c)\n    y = pl.yield_(e)",
            "a",
        ),
        (
            "for i, (c,) in pl.range(n, init_values=(a,)):\n    for j, (d,) in pl.range(n, init_values=(c,)):\n"
            "        e = pl.yield_(b)\n    y = pl.yield_(e)",
            None,
        ),
    ],
)
def test_the_buffer_of_a_value(body: str, root: str | None):
    buffers, names = buffers_of(body + "\nreturn y")
    found = buffers.root(names["y"])
    assert found is (None if root is None else names[root])
    assert buffers.returns == [[found]]


@pytest.mark.parametrize(
    ("body", "accesses"),
    [
        ("y = a", {}),
        ("y = pl.tensor.adds(a, 1.0)", {"a": READ}),
        ("y = pl.assemble(a, b, [0, 0])", {"a": WRITE, "b": READ}),
        ("w = pl.slice(a, [2, 8], [0, 0])\ny = pl.assemble(w, pl.slice(b, [2, 8], [0, 0]), [0, 0])", {"a": WRITE, "b": READ}),
        ("y = self.k(a, b)", {"a": READ, "b": WRITE}),
        ("r = self.swap(a, b)\ny = r[0]\nz = pl.tensor.adds(y, 1.0)", {"a": READ | WRITE, "b": READ | WRITE}),
        ("y = self.k(a, b)\nz = pl.tensor.adds(y, 1.0)", {"a": READ, "b": READ | WRITE}),
        ("if n > 0:\n    p = pl.yield_(a)\nelse:\n    p = pl.yield_(b)\ny = pl.assemble(p, p, [0, 0])",
         {"a": READ | WRITE, "b": READ | WRITE}),
        ("y = self.fresh(a)\nz = pl.assemble(y, b, [0, 0])", {"a": READ, "b": READ}),
        ("for i, (c, d) in pl.range(n, init_values=(a, b)):\n    e = pl.assemble(c, d, [0, 0])\n    y, z = pl.yield_(d, e)",
         {"a": READ | WRITE, "b": READ | WRITE}),
    ],
)  # fmt: skip
def test_what_is_done_to_tensors_from_outside(body: str, accesses: dict[str, int]):
    buffers, names = buffers_of(body + "\nreturn a")
    assert {var.name_hint: flags for var, flags in buffers.accesses.items()} == accesses
    assert all(names[name] in buffers.accesses for name in accesses)


def test_stores_in_order_with_their_destinations():
    buffers, names = buffers_of(
        """
        c = pl.assemble(b, a, [0, 0])
        d = pl.assemble(c, a, [0, 0])
        e = pl.store(pl.load(a, [0, 0], [8, 8]), [0, 0], a)
        return d
        """
    )
    assert [(s.target.name_hint, s.direct) for s in buffers.stores] == [("b", True), ("b", False), ("a", True)]


WRAPPERS = KERNELS + """
@Spmd
def w(self, x: f32[8, 8], y: pl.Out[f32[8, 8]]) -> f32[8, 8]:
    z = self.k(x, y)
    return z
@Group
def silent(self, x: f32[8, 8], y: pl.Out[f32[8, 8]]) -> f32[8, 8]:
    z = self.k(x, y)
@InCore
def two(self, n: idx, x: f32[8, 8], y: pl.Out[f32[8, 8]]) -> tuple[f32[8, 8], f32[8, 8]]:
    t = pl.tensor.adds(x, 1.0)
    y1 = pl.assemble(y, t, [0, 0])
    return y1, t
@Orchestration
def looped(self, n: idx, x: f32[8, 8], y: pl.Out[f32[8, 8]]) -> f32[8, 8]:
    for i, (c,) in pl.range(n, init_values=(y,)):
        d = self.w(x, c)
        e = pl.yield_(d)
    return e
"""  # fmt: skip


@pytest.mark.parametrize(
    ("name", "want"),
    [
        ("k", (1,)),
        ("swap", (1, 0)),
        ("fresh", (None,)),
        ("w", (1,)),
        ("silent", (1,)),
        ("two", (2, None)),
        ("looped", (2,)),
        ("itself", (None,)),
    ],
)
def test_which_parameters_the_results_are(name: str, want: tuple):
    program = parse(WRAPPERS)
    function = program.get_function(name)
    assert function is not None
    assert Callees(program.functions.values()).returned_params(function) == want


def test_arguments_of_a_call_that_leaves_out_outputs():
    """06 section 1.3: the arguments that are left out stand in front of the trailing communication contexts."""
    tensor, ctx = ir.TensorType([8], ir.DataType.FP32), ir.CommCtxType()
    params = [ir.Var("x", tensor, ir.Span.unknown()), *(ir.Var(n, tensor, ir.Span.unknown()) for n in ("o", "p"))]
    function = ir.Function("k", [*params, ir.Var("c", ctx, ir.Span.unknown())], [], ir.SeqStmts([]))
    assert [parameter_index(function.params, 2, i) for i in range(2)] == [0, 3]
    assert [argument_index(function.params, 2, i) for i in range(4)] == [0, None, None, 1]
    assert [parameter_index(function.params, 4, i) for i in range(4)] == [0, 1, 2, 3]


def test_constants_and_trips():
    def number(value: int) -> ir.Expr:
        return ir.ConstInt(value, ir.DataType.INDEX)

    minus = ir.Neg(number(2), ir.DataType.INDEX)
    name = ir.Var("n", ir.ScalarType(ir.DataType.INDEX), ir.Span.unknown())
    assert [constant_int(e) for e in (number(3), minus, name)] == [3, -2, None]
    assert static_trip_count(number(0), number(7), number(2)) == 4
    assert static_trip_count(number(7), number(0), minus) == 4
    assert static_trip_count(number(7), number(0), number(1)) == 0
    assert static_trip_count(number(0), number(7), number(0)) == 0
    assert static_trip_count(number(0), name, number(1)) is None
