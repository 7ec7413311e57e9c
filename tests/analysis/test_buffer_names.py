"""Which buffer the names of an orchestration stand for, and which carries stay one object."""

import textwrap

import pytest
from buffer_kit import KERNELS, function_of
from spec_kit import parse

from pypto import ir
from pypto.analysis.buffer_names import BufferNames
from pypto.analysis.callees import Callees, callees_of, explicit_returned_params, returned_params
from pypto.ir.tree import definitions, walk

NEW = "pl.create_tensor([8, 8], dtype=pl.FP32)"


def names_of(body: str) -> tuple[BufferNames, dict[str, ir.Var], ir.Function]:
    """The names in a function ``f`` of ``a``, ``b`` and ``n``, its variables by name, and itself."""
    body = textwrap.dedent(body).strip() + "\nreturn a"
    program, function, variables = function_of("Orchestration", body, " -> f32[8, 8]")
    return BufferNames(function, callees_of(program)), variables, function


@pytest.mark.parametrize(
    ("body", "name"),
    [
        ("y = a", "a"),
        (f"t = {NEW}\ny = t", "t"),
        ("y = pl.tensor.adds(a, 1.0)", "y"),
        ("t = pl.tensor.adds(a, 1.0)\nz = t\ny = z", "t"),
        ("t = pl.assemble(a, b, [0, 0])\ny = pl.assemble(t, b, [0, 0])", "a"),
        ("y = pl.tensor.set_validshape(a, 4, 8)", "a"),
        ("y = self.k(a, b)", "b"),
        (f"t = {NEW}\ny = self.k(a, t)", "t"),
        ("y = self.fresh(a)", "y"),
        ("r = self.swap(a, b)\ny = r[0]", "b"),
        ("r = self.swap(a, b)\ny = r[1]", "a"),
        ("r = self.packed(a, b)\ny = r[1]", "a"),
        ("y, t = pl.submit(self.k, a, b)", "b"),
        ("y, t = pl.submit(self.k, a)", "y"),  # the runtime allocates it
        ("(z, y), t = pl.submit(self.swap, a, b)", "a"),
        ("r, t = pl.submit(self.packed, a, b)\ny = r[0]", "b"),
        ("y = self.itself(a)", None),  # what it gives is not known
        ("if n > 0:\n    y = pl.yield_(a)\nelse:\n    y = pl.yield_(a)", "a"),
        ("if n > 0:\n    c = self.k(b, a)\n    y = pl.yield_(c)\nelse:\n    y = pl.yield_(a)", "a"),
        ("if n > 0:\n    y = pl.yield_(a)\nelse:\n    y = pl.yield_(b)", None),
        (f"if n > 0:\n    t = {NEW}\n    y = pl.yield_(t)\nelse:\n    y = pl.yield_(a)", None),
    ],
)
def test_the_name_of_a_value(body: str, name: str | None):
    names, variables, _ = names_of(body)
    assert names.name(variables["y"]) is (variables[name] if name is not None else None)


def test_what_is_no_tensor_variable_has_no_name():
    names, variables, _ = names_of("m = n + 1\nr = self.swap(a, b)")
    assert [names.name(v) for v in (variables["m"], variables["r"], ir.ConstInt(1, ir.INDEX))] == [None] * 3
    assert names.representative(ir.ConstInt(1, ir.INDEX)) is None


def test_an_allocated_output_is_one_buffer_however_often_it_is_taken_out():
    names, variables, _ = names_of("r, t = pl.submit(self.k, a)\nz = r")
    tuple_var = next(v for v in variables.values() if isinstance(v.type, ir.TupleType))
    assert names.name(variables["z"]) is variables["r"]
    function = ir.Function(
        "f",
        [variables["a"]],
        [],
        ir.SeqStmts(
            [
                ir.AssignStmt(tuple_var, _value_of(names_of("r, t = pl.submit(self.k, a)")[2], ir.Submit)),
                *(
                    ir.AssignStmt(ir.Var(n, variables["a"].type, ir.Span.unknown()), ir.TupleGetItemExpr(tuple_var, 0))
                    for n in ("one", "other")
                ),
            ]
        ),
    )
    again = BufferNames(function, Callees([_kernel("k")]))
    one, other = (v for v in definitions(function) if v.name_hint in ("one", "other"))
    assert again.name(one) is one and again.name(other) is one


def _value_of(function: ir.Function, cls: type) -> ir.Expr:
    return next(node for node in walk(function.body) if type(node) is cls)


def _kernel(name: str) -> ir.Function:
    found = parse(KERNELS).get_function(name)
    assert found is not None
    return found


def test_elements_of_a_tuple_that_is_carried_may_be_anything():
    """The tuple variable of a loop is not that of its initial value."""
    names, variables, function = names_of("r = self.swap(a, b)")
    r = variables["r"]
    arg = ir.IterArg("c", r.type, r, ir.Span.unknown())
    item, out = ir.Var("item", variables["a"].type, ir.Span.unknown()), ir.Var("out", r.type, ir.Span.unknown())
    loop_var = ir.Var("i", ir.ScalarType(ir.INDEX), ir.Span.unknown())
    number = ir.ConstInt(1, ir.INDEX)
    body = ir.SeqStmts([ir.AssignStmt(item, ir.TupleGetItemExpr(arg, 0)), ir.YieldStmt([r])])
    loop = ir.ForStmt(loop_var, number, number, number, [arg], body, [out])
    stmts = [s for s in ir.flatten_to_stmts(function.body) if not isinstance(s, ir.ReturnStmt)]
    found = BufferNames(function.replace(body=ir.SeqStmts([*stmts, loop])), Callees([_kernel("swap")]))
    assert found.name(item) is None


# --- views ------------------------------------------------------------------------------------------------------------


def test_views_have_names_of_their_own_and_say_of_what():
    names, v, _ = names_of(
        """
        c = a
        s = pl.slice(c, [4, 8], [0, 0])
        t = pl.slice(s, [2, 8], [0, 0])
        u = t
        w = pl.reshape(b, [4, 16])
        """
    )
    assert [names.name(v[n]) for n in "stuw"] == [v["s"], v["t"], v["t"], v["w"]]
    assert set(names.views) == {v["s"], v["t"], v["w"]}
    assert names.views[v["t"]].args[0] is v["s"]
    assert [names.viewed(v[n]) for n in "stuwca"] == [v["a"], v["a"], v["a"], v["b"], v["a"], v["a"]]


def test_an_unknown_result_is_no_view():
    names, v, _ = names_of("y = self.itself(a)\nz = pl.slice(y, [4, 8], [0, 0])")
    assert set(names.views) == {v["z"]}
    assert names.viewed(v["z"]) is None


# --- loops ------------------------------------------------------------------------------------------------------------


def slots_of(body: str) -> dict[str, bool]:
    """By the name of each iter_arg whether its slot is trivial."""
    names, _, function = names_of(body)
    loops = [s for s in walk(function.body) if isinstance(s, (ir.ForStmt, ir.WhileStmt))]
    return {arg.name_hint: names.is_trivial(loop, i) for loop in loops for i, arg in enumerate(loop.iter_args)}


def loop(args: str, inits: str, *lines: str) -> str:
    head = f"for i_{args[0]}, ({args},) in pl.range(n, init_values=({inits},)):\n"
    return head + "\n".join("    " + line for text in lines for line in text.splitlines())


@pytest.mark.parametrize(
    ("body", "trivial"),
    [
        (loop("c", "a", "d = self.k(b, c)", "y = pl.yield_(d)"), {"c": True}),
        (loop("c", "a", "y = pl.yield_(c)"), {"c": True}),
        (loop("c", "a", "d = c", "y = pl.yield_(d)"), {"c": True}),
        (loop("c", "a", "y = pl.yield_(b)"), {"c": False}),
        (loop("c", "a", f"t = {NEW}", "d = self.k(c, t)", "y = pl.yield_(d)"), {"c": False}),
        (loop("c", "a", "d = self.fresh(c)", "y = pl.yield_(d)"), {"c": False}),
        (loop("c", "a", "d = self.itself(c)", "y = pl.yield_(d)"), {"c": False}),
        (loop("c", "a", "d, t = pl.submit(self.k, b, c)", "y = pl.yield_(d)"), {"c": True}),
        (loop("c", "a", "d, t = pl.submit(self.k, c)", "y = pl.yield_(d)"), {"c": False}),
        (loop("c", "a", "d = pl.slice(c, [8, 8], [0, 0])", "y = pl.yield_(d)"), {"c": False}),
        (loop("c", "a", "d = pl.tensor.set_validshape(c, 8, 8)", "y = pl.yield_(d)"), {"c": True}),
        (loop("c, d", "a, b", "y, z = pl.yield_(d, c)"), {"c": False, "d": False}),
        (loop("c, d", "a, a", "y, z = pl.yield_(d, c)"), {"c": True, "d": True}),
        (loop("c, d, e", "a, a, b", "x, y, z = pl.yield_(d, e, c)"), {"c": False, "d": False, "e": False}),
        (loop("c, d", "a, b", "r = self.swap(c, d)", "e = r[0]", "f = r[1]", "y, z = pl.yield_(f, e)"), {"c": True, "d": True}),  # noqa: E501
        (loop("c, d", "a, b", "r = self.swap(c, d)", "e = r[0]", "f = r[1]", "y, z = pl.yield_(e, f)"), {"c": False, "d": False}),  # noqa: E501
        (loop("c", "a", "if n > 2:", "    d = self.k(b, c)", "    e = pl.yield_(d)", "else:", "    e = pl.yield_(c)", "y = pl.yield_(e)"), {"c": True}),  # noqa: E501
        (loop("c", "a", "if n > 2:", "    e = pl.yield_(b)", "else:", "    e = pl.yield_(c)", "y = pl.yield_(e)"), {"c": False}),  # noqa: E501
    ],
)  # fmt: skip
def test_whether_a_carry_stays(body: str, trivial: dict[str, bool]):
    assert slots_of(body) == trivial


def test_nested_trivial():
    inner = loop("d", "c", "e = self.k(b, d)", "f = pl.yield_(e)")
    assert slots_of(loop("c", "a", inner, "y = pl.yield_(f)")) == {"c": True, "d": True}


def test_nested_rebind():
    """06 section 12.8, item 1: the outer slot moves as the inner one does."""
    inner = loop("d", "c", f"t = {NEW}", "e = self.k(d, t)", "f = pl.yield_(e)")
    body = loop("c", "a", inner, "y = pl.yield_(f)")
    assert slots_of(body) == {"c": False, "d": False}
    names, v, _ = names_of(body)
    assert names.name(v["y"]) is None and names.name(v["f"]) is None


def test_an_inner_loop_keeps_what_the_outer_one_moves():
    """``d`` is another buffer in each outer iteration, but one in all inner ones."""
    inner = loop("d", "t2", "e = self.k(b, d)", "f = pl.yield_(e)")
    body = loop("c", "a", f"t = {NEW}", "t2 = self.k(c, t)", inner, "y = pl.yield_(f)")
    assert slots_of(body) == {"c": False, "d": True}
    inner = loop("d", "c", "e = self.k(b, d)", "f = pl.yield_(e)")
    body = loop("c", "a", inner, f"t = {NEW}", "g = self.k(f, t)", "y = pl.yield_(g)")
    assert slots_of(body) == {"c": False, "d": True}
    names, v, _ = names_of(body)
    assert names.name(v["d"]) is None
    assert names.representative(v["f"]) is names.representative(v["d"]) is v["c"]


def test_a_carry_of_what_a_branch_gives():
    pick = "if n > 0:\n    p = pl.yield_(a)\nelse:\n    p = pl.yield_(b)\n"
    body = pick + loop("c", "p", "d = self.k(b, c)", "y = pl.yield_(d)")
    assert slots_of(body) == {"c": True}
    names, v, _ = names_of(body)
    assert names.name(v["y"]) is None and names.representative(v["y"]) is v["p"]


def test_while():
    while_loop = "for (m, c,) in pl.while_(init_values=(0, a,)):\n    pl.cond(m < n)\n    "
    assert slots_of(while_loop + "d = self.k(b, c)\n    m2, y = pl.yield_(m + 1, d)") == {"m": False, "c": True}
    assert slots_of(while_loop + "d = self.fresh(c)\n    m2, y = pl.yield_(m + 1, d)") == {"m": False, "c": False}


def test_scalars():
    assert slots_of(loop("m, o", "0, n", "y, z = pl.yield_(m + 1, o)")) == {"m": False, "o": True}
    assert slots_of(loop("m", "0", "y = pl.yield_(m)")) == {"m": True}  # a literal
    inner = loop("o", "m", "p = o", "q = pl.yield_(p)")
    assert slots_of(loop("m", "n", inner, "y = pl.yield_(q)")) == {"m": True, "o": True}


def test_a_task_id_never_stays():
    assert slots_of("t0 = pl.system.task_invalid()\n" + loop("c", "t0", "y = pl.yield_(c)")) == {"c": False}


def test_arrays_have_storage_of_their_own():
    """06 section 12.2: what an inner loop gives of an array is not the array that it began with."""
    new = "r = pl.array.create(4, pl.INT32)\n"
    assert slots_of(new + loop("c", "r", "y = pl.yield_(c)")) == {"c": True}
    assert slots_of(new + loop("c", "r", "d = pl.array.update_element(c, 0, 1)", "y = pl.yield_(d)")) == {"c": False}
    inner = loop("d", "c", "e = pl.yield_(d)")
    assert slots_of(new + loop("c", "r", inner, "y = pl.yield_(e)")) == {"c": False, "d": True}


def test_a_yield_that_is_no_variable():
    """A program that is not flattened: what is made in the yield is another buffer in each iteration."""
    names, v, function = names_of(loop("c", "a", "d = self.k(b, c)", "y = pl.yield_(d)"))
    (found,) = (s for s in walk(function.body) if isinstance(s, ir.ForStmt))
    call = _value_of(names_of(f"t = {NEW}")[2], ir.Call)
    changed = found.replace(body=ir.YieldStmt([call]))
    again = BufferNames(function.replace(body=changed), Callees([_kernel("k")]))
    assert not again.is_trivial(changed, 0) and again.name(v["y"]) is None


# --- what functions return --------------------------------------------------------------------------------------------


def test_traced_and_explicit_results():
    program = parse(
        KERNELS
        + """
@InCore
def whole(self, p: pl.InOut[f32[8, 8]], q: pl.InOut[f32[8, 8]]) -> pl.Tuple[f32[8, 8], f32[8, 8]]:
    r = (q, p)
    return r
@Group
def handed_on(self, p: pl.InOut[f32[8, 8]], q: pl.InOut[f32[8, 8]]) -> tuple[f32[8, 8], f32[8, 8]]:
    r = self.swap(p, q)
    return r
@InCore
def plain(self, n: idx, p: pl.Out[f32[8, 8]]) -> tuple[f32[8, 8], idx]:
    p1 = pl.store(pl.load(p, [0, 0], [8, 8]), [0, 0], p)
    return p, n
"""
    )
    functions = {f.name: f for f in program.functions.values()}
    assert {name: returned_params(f, program) for name, f in functions.items()} == {
        "k": (1,), "swap": (1, 0), "packed": (1, 0), "fresh": (None,), "itself": (None,),
        "whole": (None,), "handed_on": (1, 0), "plain": (1, None),
    }  # fmt: skip
    assert {name: explicit_returned_params(f) for name, f in functions.items()} == {
        "k": (None,), "swap": (None, 0), "packed": (None, 0), "fresh": (None,), "itself": (None,),
        "whole": (None,), "handed_on": (None,), "plain": (1, None),
    }  # fmt: skip


def test_a_kernel_without_a_return_statement_gives_its_written_parameters_in_order():
    kernel = _kernel("swap")
    bare = kernel.replace(body=ir.SeqStmts([]), param_directions=kernel.param_directions)
    assert Callees([bare]).returned_params(bare) == (0, 1)


def test_a_result_that_may_be_one_argument_or_another_has_no_name():
    kernels = """
@InCore
def one_of(self, n: idx, p: pl.InOut[f32[8, 8]], q: pl.InOut[f32[8, 8]]) -> f32[8, 8]:
    if n > 0:
        r = pl.yield_(p)
    else:
        r = pl.yield_(q)
    return r
@InCore
def early(self, n: idx, p: pl.InOut[f32[8, 8]], q: pl.InOut[f32[8, 8]]) -> f32[8, 8]:
    if n > 0:
        return p
    return q
@InCore
def part(self, p: pl.InOut[f32[8, 8]]) -> f32[4, 8]:
    r = pl.tensor.slice(p, [4, 8], [0, 0])
    return r
@Orchestration
def f(self, n: idx, a: pl.InOut[f32[8, 8]], b: pl.InOut[f32[8, 8]]) -> f32[8, 8]:
    x = self.one_of(n, a, b)
    y = self.early(n, a, b)
    z = self.part(a)
    return a
"""
    program = parse(kernels)
    function = program.get_function("f")
    names = BufferNames(function, callees_of(program))
    assert [names.name(v) for v in definitions(function) if v.name_hint in "xyz"] == [None] * 3
    assert not names.views


@pytest.mark.parametrize(
    ("body", "wanted"),
    [
        (f"t = {NEW}\ny = self.k(a, t)", ["t"]),
        (f"t = {NEW}\nif n > 0:\n    y = pl.yield_(t)\nelse:\n    y = pl.yield_(b)", ["b", "t"]),
        (f"for i, (c,) in pl.range(4, init_values=(a,)):\n    t = {NEW}\n    y = pl.yield_(t)", ["a", "t"]),
        ("y = pl.slice(a, [8, 8], [0, 0])", None),
        ("s = pl.slice(a, [8, 8], [0, 0])\nif n > 0:\n    y = pl.yield_(s)\nelse:\n    y = pl.yield_(b)", None),
        ("y = self.itself(a)", None),
    ],
)
def test_origins(body, wanted):
    names, variables, _ = names_of(body)
    found = names.origins(variables["y"], 100)
    assert wanted == (None if found is None else sorted(v.name_hint for v in found))


def test_origins_gives_up_at_its_limit():
    names, variables, _ = names_of("y0 = a\n" + "\n".join(f"y{i + 1} = y{i}" for i in range(9)))
    assert names.origins(variables["y9"], 10) is None
    assert names.origins(variables["y9"], 11) == [variables["a"]]


def test_candidates_of_a_view_of_a_view():
    names, variables, _ = names_of(
        "s = pl.slice(a, [8, 8], [0, 0])\nq = pl.slice(s, [4, 8], [0, 0])\n"
        "if n > 0:\n    x = pl.yield_(a)\nelse:\n    x = pl.yield_(b)\nz = pl.slice(x, [4, 8], [0, 0])"
    )
    assert names.candidates(variables["q"]) == [variables["a"]]
    assert {v.name_hint for v in names.candidates(variables["z"])} == {"a", "b"}
