"""NormalizeReturnOrder: returned parameters by identity and in order; callers follow. Spec 06 section 5."""

import textwrap

import pytest
from outlining_kit import run_all_orders
from spec_kit import check_round_trips, parse, ramp, zeros

from pypto import ir
from pypto.analysis.callees import explicit_returned_params, returned_params
from pypto.ir.tree import walk
from pypto.passes.base import PassProperties
from pypto.passes.convert_to_ssa import convert_to_ssa
from pypto.passes.errors import PassError
from pypto.passes.normalize_return_order import normalize_return_order
from pypto.verify.properties import IRProperty, get_structural_properties, property_set
from pypto.verify.registry import PropertyVerifierRegistry

GIVES = property_set(IRProperty.ReturnParamsExplicit)

# Two results, the second parameter first.
TWO = """
@InCore
def two(self, x: f32[8, 8], p: pl.Out[f32[8, 8]], q: pl.Out[f32[8, 8]]) -> tuple[f32[8, 8], f32[8, 8]]:
    u = pl.load(x, [0, 0], [8, 8])
    q1 = pl.store(pl.add(u, 1.0), [0, 0], q)
    p1 = pl.store(pl.mul(u, 2.0), [0, 0], p)
    return q1, p1
"""
SORTED = TWO.replace("return q1, p1", "return p, q")
# The same with results of different shapes.
SHAPES = """
@InCore
def shapes(self, x: f32[8, 8], p: pl.Out[f32[8, 8]], q: pl.Out[f32[4, 8]]) -> tuple[f32[4, 8], f32[8, 8]]:
    q1 = pl.store(pl.add(pl.load(x, [0, 0], [4, 8]), 1.0), [0, 0], q)
    p1 = pl.store(pl.mul(pl.load(x, [0, 0], [8, 8]), 2.0), [0, 0], p)
    return q1, p1
"""
SHAPES_SORTED = SHAPES.replace("return q1, p1", "return p, q").replace(
    "tuple[f32[4, 8], f32[8, 8]]", "tuple[f32[8, 8], f32[4, 8]]"
)
MAIN = "@Orchestration\ndef run(self, x: f32[8, 8], p: pl.Out[f32[8, 8]], q: pl.Out[f32[8, 8]]){result}:\n{body}\n"


def main(body: str, results: int = 0) -> str:
    result = {0: "", 1: " -> f32[8, 8]", 2: " -> tuple[f32[8, 8], f32[8, 8]]"}[results]
    return MAIN.format(result=result, body=textwrap.indent(textwrap.dedent(body).strip("\n"), "    "))


def apply(program: ir.Program) -> ir.Program:
    """The pass on a valid program: the result has its property, is valid, round-trips, and is left alone from then on."""
    step = normalize_return_order()
    valid = not PropertyVerifierRegistry.verify(get_structural_properties(), program)
    after = step(program)
    PropertyVerifierRegistry.verify_or_throw(GIVES, after)
    if valid:
        PropertyVerifierRegistry.verify_or_throw(get_structural_properties(), after)
    assert step(after) is after
    for function in after.functions.values():
        if function.func_type in (ir.FunctionType.InCore, ir.FunctionType.Group, ir.FunctionType.Spmd):
            assert explicit_returned_params(function) == returned_params(function, after)
    check_round_trips(after)
    return after


def becomes(before: str, after: str) -> None:
    ir.assert_structural_equal(apply(parse(before)), parse(after), enable_auto_mapping=True)


def stays(text: str) -> None:
    program = parse(text)
    assert apply(program) is program


def test_properties():
    step = normalize_return_order()
    assert step.get_name() == "NormalizeReturnOrder"
    given = PassProperties(
        step.get_required_properties(), step.get_produced_properties(), step.get_invalidated_properties()
    )
    assert given.required == property_set(IRProperty.SplitIncoreOrch, IRProperty.IncoreTileOps)
    assert given.produced == GIVES and given.invalidated.empty()


# --- the example, and what it computes --------------------------------------------------------------------------------


def args() -> dict:
    return {"x": ramp(8, 8), "p": zeros(8, 8), "q": zeros(8, 8)}


WANT = {"p": ramp(8, 8) * 2, "q": ramp(8, 8) + 1}


def same_meaning(text: str, want: dict) -> None:
    program = parse(text)
    run_all_orders(program, args, want)
    run_all_orders(apply(program), args, want)


def test_swapped_results():
    body = "r = self.two(x, p, q)\na = r[0]\nb = r[1]\nreturn a, b"
    swapped = "r = self.two(x, p, q)\na = r[1]\nb = r[0]\nreturn a, b"
    becomes(TWO + main(body, 2), SORTED + main(swapped, 2))
    same_meaning(TWO + main(body, 2), {**WANT, "return": (WANT["q"], WANT["p"])})


def test_unpacked_results():
    body = "a, b = self.two(x, p, q)\nreturn b"
    same_meaning(TWO + main(body, 1), {**WANT, "return": WANT["p"]})


def test_a_single_result():
    kernel = """
    @InCore
    def one(self, x: f32[8, 8], p: pl.Out[f32[8, 8]]) -> f32[8, 8]:
        p1 = pl.store(pl.load(x, [0, 0], [8, 8]), [0, 0], p)
        return {}
    """
    becomes(kernel.format("p1"), kernel.format("p"))
    stays(kernel.format("p"))


def test_a_call_in_the_return_statement_is_still_made():
    """A program that is not flattened: the write must not go with the name for it."""
    kernel = """
    @InCore
    def one(self, x: f32[8, 8], p: pl.Out[f32[8, 8]]) -> f32[8, 8]:
        {}
    @Orchestration
    def run(self, x: f32[8, 8], p: pl.Out[f32[8, 8]], q: pl.Out[f32[8, 8]]) -> f32[8, 8]:
        r = self.one(x, p)
        return r
    """
    store = "pl.store(pl.load(x, [0, 0], [8, 8]), [0, 0], p)"
    before = kernel.format(f"return {store}")
    becomes(before, kernel.format(f"t = {store}\n        return p"))
    same_meaning(before, {"p": ramp(8, 8), "return": ramp(8, 8)})
    wrapper = """
@Group
def w(self, x: f32[8, 8], p: pl.Out[f32[8, 8]], q: pl.Out[f32[8, 8]]) -> tuple[f32[8, 8], f32[8, 8]]:
    {}
"""
    becomes(
        TWO + wrapper.format("return self.two(x, p, q)"),
        SORTED + wrapper.format("t = self.two(x, p, q)\n    return q, p"),
    )


def test_a_rotation_of_three():
    kernel = """
    @InCore
    def three(self, x: f32[8, 8], p: pl.Out[f32[8, 8]], q: pl.Out[f32[8, 8]],
              s: pl.InOut[f32[8, 8]]) -> tuple[f32[8, 8], f32[8, 8], f32[8, 8]]:
        u = pl.load(x, [0, 0], [8, 8])
        s1 = pl.store(pl.add(pl.load(s, [0, 0], [8, 8]), 3.0), [0, 0], s)
        q1 = pl.store(pl.add(u, 2.0), [0, 0], q)
        p1 = pl.store(pl.add(u, 1.0), [0, 0], p)
        return {}
    @Orchestration
    def run(self, x: f32[8, 8], p: pl.Out[f32[8, 8]], q: pl.Out[f32[8, 8]],
            s: pl.InOut[f32[8, 8]]) -> tuple[f32[8, 8], f32[8, 8], f32[8, 8]]:
        r = self.three(x, p, q, s)
        a = r[{}]
        b = r[{}]
        c = r[{}]
        return a, b, c
    """
    before = kernel.format("s1, p1, q1", 0, 1, 2)
    becomes(before, kernel.format("p, q, s", 2, 0, 1))
    x = ramp(8, 8)
    want = {"return": (zeros(8, 8) + 3, x + 1, x + 2)}
    program = parse(before)
    run_all_orders(apply(program), lambda: {**args(), "s": zeros(8, 8)}, want)


def test_a_scratch_that_is_not_returned_takes_no_place():
    kernel = """
    @InCore
    def k(self, x: f32[8, 8], p: pl.Out[f32[8, 8]], w: pl.InOut[f32[8, 8]], q: pl.Out[f32[8, 8]]) -> tuple[f32[8, 8], f32[8, 8]]:
        u = pl.load(x, [0, 0], [8, 8])
        w1 = pl.store(u, [0, 0], w)
        q1 = pl.store(u, [0, 0], q)
        p1 = pl.store(u, [0, 0], p)
        return {}
    """
    becomes(kernel.format("q1, p1"), kernel.format("p, q"))


@pytest.mark.parametrize(
    ("returned", "explicit"),
    [
        ("p1, q1", "p, q"),  # in order
        ("q1, x", "q, x"),  # a parameter that is only read
    ],
)
def test_results_that_keep_their_order(returned: str, explicit: str):
    becomes(TWO.replace("return q1, p1", f"return {returned}"), TWO.replace("return q1, p1", f"return {explicit}"))


def test_more_outputs_than_results_keep_their_order():
    kernel = """
    @InCore
    def k(self, x: f32[8, 8], p: pl.Out[f32[8, 8]], q: pl.Out[f32[8, 8]], s: pl.Out[f32[8, 8]]) -> tuple[f32[8, 8], f32[8, 8]]:
        u = pl.load(x, [0, 0], [8, 8])
        s1 = pl.store(u, [0, 0], s)
        q1 = pl.store(u, [0, 0], q)
        p1 = pl.store(u, [0, 0], p)
        return {}
    """
    becomes(kernel.format("q1, p1"), kernel.format("q, p"))


def test_results_of_its_own_keep_their_order():
    kernel = """
    @InCore
    def k(self, x: f32[8, 8], n: idx, p: pl.Out[f32[8, 8]], q: pl.Out[f32[8, 8]]) -> tuple[f32[8, 8], idx, f32[8, 8]]:
        u = pl.load(x, [0, 0], [8, 8])
        q1 = pl.store(u, [0, 0], q)
        p1 = pl.store(u, [0, 0], p)
        return {}
    """
    becomes(kernel.format("q1, n + 1, p1"), kernel.format("q, n + 1, p"))


def test_a_kernel_that_returns_a_parameter_twice_is_refused():
    text = TWO.replace("return q1, p1", "return q1, q1") + main("a, b = self.two(x, p, q)\nreturn a", 1)
    with pytest.raises(PassError, match="kernel 'two' returns its parameter 'q' twice") as caught:
        normalize_return_order()(parse(text))
    assert caught.value.code == "PT1088" and caught.value.span.begin_line > 0
    # What is only read holds one value under both names.
    stays(TWO.replace("return q1, p1", "return x, x"))


def test_returns_in_branches_are_made_explicit_and_keep_their_order():
    kernel = """
    @InCore
    def k(self, x: f32[8, 8], n: idx, p: pl.Out[f32[8, 8]], q: pl.Out[f32[8, 8]]) -> tuple[f32[8, 8], f32[8, 8]]:
        u = pl.load(x, [0, 0], [8, 8])
        q1 = pl.store(u, [0, 0], q)
        p1 = pl.store(u, [0, 0], p)
        if n > 2:
            return {0}
        return {0}
    """
    becomes(kernel.format("q1, p1"), kernel.format("q, p"))


def test_a_loop_in_the_kernel_is_traced():
    kernel = """
    @InCore
    def k(self, x: f32[8, 8], n: idx, p: pl.Out[f32[8, 8]]) -> f32[8, 8]:
        for i, (c,) in pl.range(n, init_values=(p,)):
            d = pl.store(pl.load(x, [0, 0], [8, 8]), [0, 0], c)
            r = pl.yield_(d)
        return {}
    """
    becomes(kernel.format("r"), kernel.format("p"))


def test_a_loop_that_rebinds_is_no_parameter():
    stays(
        """
        @InCore
        def k(self, x: f32[8, 8], n: idx) -> f32[8, 8]:
            for i, (c,) in pl.range(n, init_values=(x,)):
                d = pl.tensor.adds(c, 1.0)
                r = pl.yield_(d)
            return r
        """
    )


# --- callers ----------------------------------------------------------------------------------------------------------


def test_submits():
    body = "(a, b), t = pl.submit(self.two, x, p, q)\nc, t2 = pl.submit(self.copy, a, q, deps=[t])\nreturn b"
    copy = """
@InCore
def copy(self, x: f32[8, 8], y: pl.InOut[f32[8, 8]]) -> f32[8, 8]:
    y1 = pl.store(pl.add(pl.load(x, [0, 0], [8, 8]), pl.load(y, [0, 0], [8, 8])), [0, 0], y)
    return y
"""
    before = parse(copy + TWO + main(body, 1))
    after = apply(before)
    found = [
        (node.index, type(node.type).__name__)
        for node in walk(after.get_function("run").body)
        if isinstance(node, ir.TupleGetItemExpr)
    ]
    # The task id stays behind the results.
    assert found == [(1, "TensorType"), (0, "TensorType"), (2, "ScalarType"), (0, "TensorType"), (1, "ScalarType")]
    run_all_orders(after, args, {"p": WANT["p"], "q": WANT["q"] * 2, "return": WANT["p"]})


def test_results_of_different_types():
    body = """
    @Orchestration
    def run(self, x: f32[8, 8], p: pl.Out[f32[8, 8]], q: pl.Out[f32[4, 8]]) -> tuple[f32[4, 8], f32[8, 8]]:
        r = self.shapes(x, p, q)
        a = r[{}]
        b = r[{}]
        return a, b
    """
    becomes(SHAPES + textwrap.dedent(body.format(0, 1)), SHAPES_SORTED + textwrap.dedent(body.format(1, 0)))
    after = apply(parse(SHAPES + textwrap.dedent(body.format(0, 1))))
    types = [str(v.type) for v in ir.collect_def_vars(after.get_function("run").body)]
    assert types[1:] == ["pl.Tensor[[4, 8], pl.FP32]", "pl.Tensor[[8, 8], pl.FP32]"]
    x = ramp(8, 8)
    run_all_orders(after, lambda: {**args(), "q": zeros(4, 8)}, {"return": (x[:4] + 1, x * 2)})


@pytest.mark.parametrize("call", ["r = self.two(x, p, q)", "r, t = pl.submit(self.two, x, p, q)"])
def test_a_kernel_that_declares_one_tuple(call: str):
    packed = TWO.replace("tuple[", "pl.Tuple[")
    body = call + "\na = r[{}]\nb = r[{}]\nreturn a, b"
    becomes(packed + main(body.format(0, 1), 2), packed.replace("q1, p1", "p, q") + main(body.format(1, 0), 2))
    same_meaning(packed + main(body.format(0, 1), 2), {**WANT, "return": (WANT["q"], WANT["p"])})


def test_one_tuple_of_different_types_that_is_submitted():
    packed = SHAPES.replace("tuple[", "pl.Tuple[")
    main_text = """
@Orchestration
def run(self, x: f32[8, 8], p: pl.Out[f32[8, 8]], q: pl.Out[f32[4, 8]]) -> tuple[f32[4, 8], f32[8, 8]]:
    r, t = pl.submit(self.shapes, x, p, q)
    a = r[0]
    b = r[1]
    return a, b
"""
    after = apply(parse(packed + main_text))
    run_all_orders(after, lambda: {**args(), "q": zeros(4, 8)}, {"return": (ramp(8, 8)[:4] + 1, ramp(8, 8) * 2)})


def test_a_tuple_that_is_used_as_a_whole_keeps_its_order():
    body = "r = self.two(x, p, q)\ns = r\na = s[0]\nreturn r"
    after = apply(parse(TWO + main(body, 2)))
    becomes(
        TWO + main(body, 2), SORTED + main("r = self.two(x, p, q)\ns = (r[1], r[0])\na = s[0]\nreturn r[1], r[0]", 2)
    )
    run_all_orders(after, args, {**WANT, "return": (WANT["q"], WANT["p"])})


def test_the_tuple_of_a_submit_that_is_used_as_a_whole():
    packed = TWO.replace("tuple[", "pl.Tuple[")
    program = parse(packed + main("r, t = pl.submit(self.two, x, p, q)\ns = r\na = s[0]\nb = s[1]\nreturn a, b", 2))
    run_all_orders(apply(program), args, {**WANT, "return": (WANT["q"], WANT["p"])})


def test_a_variable_that_is_assigned_again():
    """Not in SSA form: an index means the old order where it names something else."""
    other = TWO.replace("def two", "def other").replace("return q1, p1", "return p, q")
    body = "r = self.two(x, p, q)\na = r[0]\nr = self.other(x, p, q)\nb = r[0]\nreturn a, b"
    program = parse(TWO + other + main(body, 2))
    after = apply(program)
    run_all_orders(after, args, {**WANT, "return": (WANT["q"], WANT["p"])})
    same = "r = self.two(x, p, q)\na = r[0]\nr = self.two(x, p, q)\nb = r[1]\nreturn a, b"
    becomes(
        TWO + main(same, 2),
        SORTED + main(same.replace("r[0]", "r[9]").replace("r[1]", "r[0]").replace("r[9]", "r[1]"), 2),
    )
    ssa = convert_to_ssa()(program)
    run_all_orders(apply(ssa), args, {**WANT, "return": (WANT["q"], WANT["p"])})


def test_a_tuple_that_a_loop_carries():
    body = "r = self.two(x, p, q)\nfor i in pl.range(3):\n    r = self.two(r[1], p, q)\na = r[0]\nreturn a"
    inout = TWO.replace("pl.Out", "pl.InOut")
    program = convert_to_ssa()(parse(inout + main(body, 1).replace("pl.Out", "pl.InOut")))
    x = ramp(8, 8)
    run_all_orders(program, args, {"return": x * 8 + 1})
    run_all_orders(apply(program), args, {"return": x * 8 + 1})


def test_comments_spans_and_attributes_stay():
    body = '# about the call\nr = self.two(x, p, q, attrs={"hint.note": 3})\n# about the item\na = r[0]\nreturn a'
    before = parse(TWO + main(body, 1))
    after = apply(before)
    pairs = zip(
        ir.flatten_to_stmts(before.get_function("run").body),
        ir.flatten_to_stmts(after.get_function("run").body),
        strict=True,
    )
    for old, new in pairs:
        assert new.leading_comments == old.leading_comments and str(new.span) == str(old.span)
    (call,) = (n for n in walk(after.get_function("run").body) if isinstance(n, ir.Call))
    assert dict(call.attrs) == {"hint.note": 3}


# --- wrappers ---------------------------------------------------------------------------------------------------------


def test_a_wrapper_returns_its_parameter():
    kernel = """
    @InCore
    def k(self, x: f32[8, 8], y: pl.Out[f32[8, 8]]) -> f32[8, 8]:
        y1 = pl.store(pl.load(x, [0, 0], [8, 8]), [0, 0], y)
        return {}
    @Spmd
    def w(self, x: f32[8, 8], y: pl.Out[f32[8, 8]]) -> f32[8, 8]:
        z = self.k(x, y)
        return {}
    @Group
    def outer(self, x: f32[8, 8], y: pl.Out[f32[8, 8]]) -> f32[8, 8]:
        z = self.w(x, y)
        return {}
    """
    becomes(kernel.format("y1", "z", "z"), kernel.format("y", "y", "y"))


def test_a_wrapper_that_hands_on_a_tuple():
    """It is written out, in the wrapper's own order, whatever becomes of the kernel's."""
    wrapper = """
@Group
def w(self, x: f32[8, 8], p: pl.Out[f32[8, 8]], q: pl.Out[f32[8, 8]]) -> tuple[f32[8, 8], f32[8, 8]]:
    r = self.two(x, p, q)
    return {}
"""
    body = "r = self.w(x, p, q)\na = r[0]\nreturn a"
    becomes(TWO + wrapper.format("r") + main(body, 1), SORTED + wrapper.format("q, p") + main(body, 1))
    same_meaning(TWO + wrapper.format("r") + main(body, 1), {**WANT, "return": WANT["q"]})


def test_a_wrapper_that_hands_on_a_tuple_with_a_scalar():
    text = """
@InCore
def k(self, n: idx, p: pl.Out[f32[8, 8]]) -> tuple[f32[8, 8], idx]:
    p1 = pl.store(pl.load(p, [0, 0], [8, 8]), [0, 0], p)
    m = n + 1
    return {}, m
@Group
def w(self, n: idx, p: pl.Out[f32[8, 8]]) -> tuple[f32[8, 8], idx]:
    r = self.k(n, p)
    return {}
"""
    becomes(text.format("p1", "r"), text.format("p", "p, r[1]"))


def test_an_orchestration_is_left_as_it_is():
    kernel = TWO.replace("return q1, p1", "return p, q")
    stays(kernel + main("r = self.two(x, p, q)\na = r[0]\nreturn a", 1))


def test_nothing_to_do():
    stays(main("return p", 1))
