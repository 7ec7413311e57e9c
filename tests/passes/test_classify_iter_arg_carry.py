"""ClassifyIterArgCarry: which carries need a variable, which an array of task ids. Spec 06 section 12."""

import textwrap

import numpy as np
import pytest
from outlining_kit import run_all_orders
from spec_kit import check_round_trips, parse, ramp, zeros

from pypto import ir
from pypto.analysis.callees import callees_of
from pypto.analysis.carries import Carries
from pypto.diag.errors import InternalError
from pypto.ir.carries import is_classified, iter_arg_array_size, iter_arg_is_rebind, with_carries
from pypto.ir.node import FrozenDict
from pypto.ir.tree import walk
from pypto.passes.classify_iter_arg_carry import classify_iter_arg_carry
from pypto.passes.errors import PassError
from pypto.verify.properties import IRProperty, get_structural_properties, property_set
from pypto.verify.registry import PropertyVerifierRegistry

GIVES = property_set(IRProperty.IterArgCarryClassified)

KERNELS = """
@InCore
def add_row(self, x: f32[8, 8], i: idx, acc: pl.InOut[f32[8, 8]]) -> f32[8, 8]:
    acc1 = pl.store(pl.add(pl.load(acc, [i, 0], [1, 8]), pl.load(x, [i, 0], [1, 8])), [i, 0], acc)
    return acc
@InCore
def plus(self, x: f32[8, 8], out: pl.Out[f32[8, 8]]) -> f32[8, 8]:
    out1 = pl.store(pl.add(pl.load(x, [0, 0], [8, 8]), 1.0), [0, 0], out)
    return out
@InCore
def crossed(self, p: pl.InOut[f32[8, 8]], q: pl.InOut[f32[8, 8]]) -> tuple[f32[8, 8], f32[8, 8]]:
    p1 = pl.store(pl.add(pl.load(p, [0, 0], [8, 8]), 1.0), [0, 0], p)
    q1 = pl.store(pl.add(pl.load(q, [0, 0], [8, 8]), 2.0), [0, 0], q)
    return q, p
@InCore
def work(self, x: f32[8, 8], buf: pl.InOut[f32[8, 8]]) -> f32[8, 8]:
    b1 = pl.store(pl.add(pl.load(x, [0, 0], [8, 8]), pl.load(buf, [0, 0], [8, 8])), [0, 0], buf)
    return buf
"""
NEW = "pl.create_tensor([8, 8], dtype=pl.FP32)"


def main(body: str) -> str:
    lines = textwrap.indent(textwrap.dedent(body).strip("\n"), "    ")
    head = "def run(self, n: idx, x: f32[8, 8], out: pl.InOut[f32[8, 8]], other: pl.InOut[f32[8, 8]]) -> f32[8, 8]:"
    return f"{KERNELS}\n@pl.function(type=pl.FunctionType.Orchestration, auto_scope=False)\n{head}\n{lines}\n"


def apply(program: ir.Program) -> ir.Program:
    """The pass on a valid program: what it gives is valid, round-trips, and is left alone from then on."""
    step = classify_iter_arg_carry()
    PropertyVerifierRegistry.verify_or_throw(get_structural_properties(), program)
    after = step(program)
    PropertyVerifierRegistry.verify_or_throw(GIVES.union_with(get_structural_properties()), after)
    assert step(after) is after
    check_round_trips(after)
    return after


def loops_of(program: ir.Program) -> list[ir.ForStmt]:
    return [s for s in walk(program.get_function("run").body) if isinstance(s, ir.ForStmt)]


def classes(body: str) -> dict[str, bool | int]:
    """By the name of each carry whether it is a rebind; for one with an array of ids their number."""
    found: dict[str, bool | int] = {}
    for loop in loops_of(apply(parse(main(body)))):
        for i, arg in enumerate(loop.iter_args):
            found[arg.name_hint] = iter_arg_array_size(loop, i) or iter_arg_is_rebind(loop, i)
    return found


def args() -> dict:
    return {"n": 3, "x": ramp(8, 8), "out": zeros(8, 8), "other": zeros(8, 8) + 7}


def computes(body: str, want: dict) -> None:
    program = parse(main(body))
    run_all_orders(program, args, want)
    run_all_orders(apply(program), args, want)


def test_properties():
    step = classify_iter_arg_carry()
    assert step.get_name() == "ClassifyIterArgCarry"
    scopes = IRProperty.RuntimeScopesMaterialized
    assert step.get_required_properties() == property_set(IRProperty.CallDirectionsResolved, scopes)
    assert step.get_produced_properties() == property_set(IRProperty.IterArgCarryClassified, scopes)
    assert step.get_invalidated_properties().empty()


# --- the examples of section 12.6 -------------------------------------------------------------------------------------

TRIVIAL = """
for i, (acc,) in pl.range(6, init_values=(out,){attrs}):
    acc2 = self.add_row(x, i, acc)
    res = pl.yield_(acc2)
return res
"""
FRESH = """
for i, (cur,) in pl.range(6, init_values=(x,){attrs}):
    nxt = pl.create_tensor([8, 8], dtype=pl.FP32)
    nxt2 = self.plus(cur, nxt)
    res = pl.yield_(nxt2)
return res
"""


@pytest.mark.parametrize(("body", "rebind"), [(TRIVIAL, False), (FRESH, True)])
def test_the_stamp_is_an_attribute_of_the_loop(body: str, rebind: bool):
    after = apply(parse(main(body.format(attrs=""))))
    wanted = parse(main(body.format(attrs=f', attrs={{"iter_arg_rebind_0": {rebind}}}')))
    ir.assert_structural_equal(after, wanted, enable_auto_mapping=True)


def test_what_the_examples_compute():
    computes(TRIVIAL.format(attrs=""), {"return": np.vstack([ramp(8, 8)[:6], zeros(2, 8)])})
    computes(FRESH.format(attrs=""), {"return": ramp(8, 8) + 6})


def test_phases_of_a_manual_scope():
    body = """
    with pl.manual_scope():
        t0 = pl.system.task_invalid()
        for p, (ph,) in pl.range(3, init_values=(t0,){outer}):
            for j, (it,) in pl.parallel(5, init_values=(ph,){inner}):
                r, t = pl.submit(self.work, x, out, deps=[it])
                u = pl.yield_(t)
            v = pl.yield_(u)
    return out
    """
    stamp = ', attrs={"iter_arg_rebind_0": True, "iter_arg_array_size_0": 5}'
    wanted = parse(main(body.format(outer=stamp, inner=stamp)))
    ir.assert_structural_equal(apply(parse(main(body.format(outer="", inner="")))), wanted, enable_auto_mapping=True)


# --- tensors ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "want"),
    [
        # a carry that is not touched, a copy, the metadata of the same buffer
        ("for i, (c,) in pl.range(n, init_values=(out,)):\n    r = pl.yield_(c)", {"c": False}),
        ("for i, (c,) in pl.range(n, init_values=(out,)):\n    d = c\n    r = pl.yield_(d)", {"c": False}),
        (
            "for i, (c,) in pl.range(n, init_values=(out,)):\n    d = pl.assemble(c, x, [0, 0])\n    r = pl.yield_(d)",
            {"c": False},
        ),
        # another buffer
        ("for i, (c,) in pl.range(n, init_values=(out,)):\n    r = pl.yield_(other)", {"c": True}),
        # a view is another object
        (
            "for i, (c,) in pl.range(n, init_values=(out,)):\n    d = pl.slice(c, [8, 8], [0, 0])\n    r = pl.yield_(d)",
            {"c": True},
        ),
        # no iteration
        (
            "for i, (c,) in pl.range(0, init_values=(out,)):\n    d = self.work(x, c)\n    r = pl.yield_(d)",
            {"c": False},
        ),
        # a swap
        (
            "for i, (c, d) in pl.range(n, init_values=(out, other)):\n    r, s = pl.yield_(d, c)",
            {"c": True, "d": True},
        ),
        # results in another order than parameters
        (
            "for i, (c, d) in pl.range(n, init_values=(out, other)):\n    t = self.crossed(c, d)\n    e = t[0]\n"
            "    f = t[1]\n    r, s = pl.yield_(f, e)",
            {"c": False, "d": False},
        ),
        (
            "for i, (c, d) in pl.range(n, init_values=(out, other)):\n    t = self.crossed(c, d)\n    e = t[0]\n"
            "    f = t[1]\n    r, s = pl.yield_(e, f)",
            {"c": True, "d": True},
        ),
        # a submit, one with a buffer that the runtime allocates
        (
            "for i, (c,) in pl.range(n, init_values=(out,)):\n    d, t = pl.submit(self.work, x, c)\n    r = pl.yield_(d)",
            {"c": False},
        ),
        (
            "for i, (c,) in pl.range(n, init_values=(out,)):\n    d, t = pl.submit(self.plus, c)\n    r = pl.yield_(d)",
            {"c": True},
        ),
    ],
)
def test_one_loop(body: str, want: dict[str, bool]):
    assert classes(f"{body}\nreturn out") == want


@pytest.mark.parametrize("first", ["pl.adir.no_dep", "pl.adir.input"])
@pytest.mark.parametrize("second", ["pl.adir.no_dep", "pl.adir.inout"])
def test_directions_say_nothing_of_identity(first: str, second: str):
    """A read-only capture without dependencies in front of the output, and an output without dependencies."""
    body = f"""
    for i, (c,) in pl.range(n, init_values=(out,)):
        d, t = pl.submit(self.work, x, c, attrs={{"arg_directions": [{first}, {second}]}})
        r = pl.yield_(d)
    return r
    """
    assert classes(body) == {"c": False}
    call = f'self.work(x, c, attrs={{"arg_directions": [{first}, {second}]}})'
    assert classes(body.replace(body[body.index("d, t = ") : body.index("]})") + 3], f"d = {call}")) == {"c": False}


def test_a_swap_computes_what_it_says():
    body = """
    for i, (c, d) in pl.range(n, init_values=(out, other)):
        r, s = pl.yield_(d, c)
    return r
    """
    computes(body, {"return": zeros(8, 8) + 7})


def test_nested_loops():
    body = """
    for i, (c,) in pl.range(2, init_values=(out,)):
        for j, (d,) in pl.range(4, init_values=(c,)):
            e = self.add_row(x, j, d)
            f = pl.yield_(e)
        g = pl.yield_(f)
    return g
    """
    assert classes(body) == {"c": False, "d": False}


def test_a_nested_rebind_moves_the_outer_carry():
    """12.8, item 1: PyPTO takes ``c`` for trivial, and the reader behind the loops gets the initial tensor."""
    body = """
    for i, (c,) in pl.range(2, init_values=(x,)):
        for j, (d,) in pl.range(4, init_values=(c,)):
            t = pl.create_tensor([8, 8], dtype=pl.FP32)
            e = self.plus(d, t)
            f = pl.yield_(e)
        g = pl.yield_(f)
    return g
    """
    assert classes(body) == {"c": True, "d": True}
    computes(body, {"return": ramp(8, 8) + 8})


def test_a_loop_inside_keeps_what_the_one_around_it_moves():
    body = """
    for i, (c,) in pl.range(2, init_values=(x,)):
        t = pl.create_tensor([8, 8], dtype=pl.FP32)
        s = self.plus(c, t)
        for j, (d,) in pl.range(8, init_values=(s,)):
            e = self.add_row(x, j, d)
            f = pl.yield_(e)
        g = pl.yield_(f)
    return g
    """
    assert classes(body) == {"c": True, "d": False}
    computes(body, {"return": ramp(8, 8) * 3 + 2})


def test_branches():
    body = """
    for i, (c,) in pl.range(n, init_values=(out,)):
        if n > 2:
            d = self.work(x, c)
            e = pl.yield_(d)
        else:
            e = pl.yield_({other})
        r = pl.yield_(e)
    return r
    """
    assert classes(body.format(other="c")) == {"c": False}
    assert classes(body.format(other="other")) == {"c": True}


def test_a_while_loop_inside():
    """It has no stamps, but its slots are answered for."""
    body = """
    for i, (c,) in pl.range(n, init_values=(out,)):
        for m, d in pl.while_(init_values=(0, c)):
            pl.cond(m < 4)
            e = self.work(x, d)
            m2, f = pl.yield_(m + 1, e)
        r = pl.yield_(f)
    return r
    """
    program = parse(main(body))
    assert classes(body) == {"c": False}
    function = program.get_function("run")
    carries = Carries(function, callees_of(program))
    (found,) = (loop for loop in carries.loops if isinstance(loop, ir.WhileStmt))
    assert carries.slots(found) == [(True, 0), (False, 0)]


def test_scopes_are_seen_through():
    body = """
    with pl.scope():
        for i, (c,) in pl.range(n, init_values=(out,)):
            with pl.scope():
                d = self.work(x, c)
                r = pl.yield_(d)
        return r
    """
    assert classes(body) == {"c": False}


def test_scalars():
    body = """
    for i, (m, k) in pl.range(n, init_values=(0, n)):
        r, s = pl.yield_(m + 1, k)
    return out
    """
    assert classes(body) == {"m": True, "k": False}


def test_array_carries():
    """12.2: an array has storage of its own at each level, so the outer slot is no other name of the inner one."""
    body = """
    a = pl.array.create(4, pl.INT32)
    for i, (c,) in pl.range(n, init_values=(a,)):
        for j, (d,) in pl.range(n, init_values=(c,)):
            e = pl.array.update_element(d, 0, 1)
            f = pl.yield_(e)
        g = pl.yield_(f)
    return out
    """
    assert classes(body) == {"c": True, "d": True}


# --- task ids ---------------------------------------------------------------------------------------------------------

IDS = """
t0 = pl.system.task_invalid()
{scope}
    for j, (it,) in {loop}, init_values=(t0,)):
        r, t = pl.submit(self.work, x, out, deps=[it])
        u = pl.yield_(t)
return x
"""


@pytest.mark.parametrize(
    ("scope", "loop", "want"),
    [
        ("with pl.manual_scope():", "pl.parallel(5", 5),
        ("with pl.manual_scope():", "pl.parallel(1, 8, 2", 4),
        ("with pl.manual_scope():", "pl.parallel(8, 0, -3", 3),
        ("with pl.manual_scope():", "pl.range(5", True),
        ("with pl.manual_scope():", "pl.parallel(5, 5", True),  # never runs: nothing to hold
        ("with pl.scope():", "pl.parallel(5", True),
        ("if n > 0:", "pl.parallel(n", True),
    ],
)
def test_fence_arrays(scope: str, loop: str, want: bool | int):
    assert classes(IDS.format(scope=scope, loop=loop)) == {"it": want}


def test_an_id_that_is_only_passed_on_is_a_rebind():
    body = "t0 = pl.system.task_invalid()\nfor i, (c,) in pl.range(n, init_values=(t0,)):\n    r = pl.yield_(c)\nreturn out"
    assert classes(body) == {"c": True}


def test_sequential_loops_inherit_through_copies():
    body = """
    t0 = pl.system.task_invalid()
    with pl.manual_scope():
        for o, (a,) in pl.range(2, init_values=(t0,)):
            for p, (b,) in pl.range(3, init_values=(a,)):
                for j, (c,) in pl.parallel(4, init_values=(b,)):
                    r, t = pl.submit(self.work, x, out, deps=[c])
                    u = pl.yield_(t)
                v = u
                w = pl.yield_(v)
            z = pl.yield_(w)
    return out
    """
    assert classes(body) == {"a": 4, "b": 4, "c": 4}


def test_scopes_of_the_compiler_need_no_arrays():
    program = parse(main(IDS.format(scope="with pl.manual_scope():", loop="pl.parallel(n")))

    class Own(ir.IRMutator):
        def visit_runtime_scope_stmt(self, op):
            return op.replace(attrs=FrozenDict({"__compiler_auto_manual_scope_candidate": True}))

    function = program.get_function("run")
    own = function.replace(body=Own().visit_stmt(function.body))
    changed = program.with_functions([own if f is function else f for f in program.functions.values()])
    (loop,) = loops_of(classify_iter_arg_carry()(changed))
    assert iter_arg_is_rebind(loop, 0) and iter_arg_array_size(loop, 0) == 0


def test_a_parallel_loop_of_unknown_length_in_a_manual_scope_is_refused():
    program = parse(main(IDS.format(scope="with pl.manual_scope():", loop="pl.parallel(n")))
    with pytest.raises(ValueError) as caught:
        classify_iter_arg_carry()(program)
    error = caught.value
    assert isinstance(error, PassError) and error.code == "PT1089"
    assert (
        "manual_scope: pl.parallel loops carrying a manual_scope dep (via ``deps=[...]``) must have a "
        "statically-known trip count"
    ) in str(error)
    assert "PTO2TaskId[N]" in str(error)
    (loop,) = loops_of(program)
    assert str(error.span) == str(loop.span)


def test_a_parallel_loop_of_unknown_length_may_carry_tensors():
    body = """
    with pl.manual_scope():
        for i, (c,) in pl.parallel(n, init_values=(out,)):
            r, t = pl.submit(self.work, x, c)
            s = pl.yield_(r)
    return out
    """
    assert classes(body) == {"c": False}


# --- stamps -----------------------------------------------------------------------------------------------------------


def test_old_stamps_go_and_other_attributes_stay():
    program = parse(
        main(
            TRIVIAL.format(
                attrs=', attrs={"iter_arg_rebind_0": True, "iter_arg_array_size_0": 3, "iter_arg_rebind_7": True}'
            )
        )
    )  # noqa: E501
    (loop,) = loops_of(apply(program))
    assert dict(loop.attrs) == {"iter_arg_rebind_0": False}
    attrs = FrozenDict({"pipeline_stages": 2, "iter_arg_rebind_1": True})
    assert dict(with_carries(attrs, [(True, 4)])) == {
        "pipeline_stages": 2,
        "iter_arg_rebind_0": True,
        "iter_arg_array_size_0": 4,
    }


def test_accessors():
    program = parse(main(TRIVIAL.format(attrs="")))
    (loop,) = loops_of(program)
    assert not is_classified(loop, 0) and iter_arg_array_size(loop, 0) == 0
    with pytest.raises(InternalError, match="ClassifyIterArgCarry did not run"):
        iter_arg_is_rebind(loop, 0)
    (loop,) = loops_of(apply(program))
    assert is_classified(loop, 0) and iter_arg_is_rebind(loop, 0) is False


def test_only_orchestrations_are_looked_at():
    text = KERNELS.replace(
        "out1 = ", "for i, (c,) in pl.range(2, init_values=(out,)):\n        d = pl.yield_(c)\n    out1 = "
    )
    program = parse(text + "@Orchestration\ndef run(self, x: f32[8, 8]) -> f32[8, 8]:\n    return x\n")
    assert apply(program) is program


def test_a_loop_without_carries_has_no_stamps():
    program = parse(main("for i in pl.range(n):\n    y = self.work(x, out)\nreturn out"))
    assert classify_iter_arg_carry()(program) is program


def test_a_yield_of_another_length_is_an_error_of_the_compiler():
    program = parse(main(TRIVIAL.format(attrs="")))
    function = program.get_function("run")
    (loop,) = loops_of(program)

    class Longer(ir.IRMutator):
        def visit_yield_stmt(self, op):
            return ir.YieldStmt([*op.value, *op.value])

    broken = function.replace(body=Longer().visit_stmt(function.body))
    changed = program.with_functions([broken if f is function else f for f in program.functions.values()])
    with pytest.raises(InternalError, match="carries 1 values and yields 2"):
        classify_iter_arg_carry()(changed)
    assert loop.iter_args


def test_comments_and_spans_stay():
    body = "# about the loop\n" + TRIVIAL.format(attrs="").strip()
    before = parse(main(body))
    after = apply(before)
    (old,), (new,) = loops_of(before), loops_of(after)
    assert new.leading_comments == old.leading_comments == ["about the loop"]
    assert str(new.span) == str(old.span) and new.body is old.body
