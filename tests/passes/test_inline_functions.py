"""InlineFunctions: expansion at every kind of call, parameters, locals, attributes, refusals; the meaning stays."""

import textwrap

import numpy as np
import pytest
from meaning_kit import check_meaning
from spec_kit import BASE, Example, noise, parse, program_text, ramp, zeros

from pypto import ir
from pypto.ir.traversal import walk
from pypto.passes.errors import PassError
from pypto.passes.inline_functions import inline_functions
from pypto.verify.properties import IRProperty, property_set
from pypto.verify.registry import verify_all

ELIMINATED = property_set(IRProperty.InlineFunctionsEliminated)
SPAN = ir.Span("case.py", 7, 5)


def program(text):
    return parse(textwrap.dedent(text) + BASE)


def inlined(before):
    """The result, in which no statement stands in two places, and on which the pass has nothing left to do."""
    after = inline_functions()(before)
    assert inline_functions()(after) is after
    for function in after.functions.values():
        statements = [node for node in walk(function.body) if isinstance(node, ir.Stmt)]
        assert len(statements) == len(set(statements))
    holds = property_set(IRProperty.InlineFunctionsEliminated, IRProperty.UseAfterDef, IRProperty.NoRedundantBlocks)
    assert verify_all(holds, after) == []
    return after


def check_form(before, after):
    """``after`` is what remains, and its locals have the names that the text gives them."""
    result, wanted = inlined(program(before)), program(after)
    ir.assert_structural_equal(result, wanted, enable_auto_mapping=True)
    for function in wanted.functions.values():
        assert names(result, function.name) == names(wanted, function.name)


def names(of, function="run"):
    """The names of the expanded locals in the order of the text."""
    variables = dict.fromkeys(v for v in walk(of.get_function(function).body) if isinstance(v, ir.Var))
    return [v.name_hint for v in variables if "_inline" in v.name_hint]


def text_of(of, function="run"):
    return ir.python_print(of.get_function(function), format=False)


def refused(before):
    with pytest.raises(ValueError) as info:
        inline_functions()(program(before))
    assert type(info.value) is PassError and info.value.span is not None
    return info.value


def line(span, text):
    """The source line of a place in ``program(text)``."""
    return program_text(textwrap.dedent(text) + BASE).split("\n")[span.begin_line - 1]


HELPERS = """
@Inline
def sum_diff(self, p: f32[8, 8], q: f32[8, 8]):
    up = pl.add(p, q)
    dn = pl.sub(p, q)
    return up, dn
@Inline
def double(self, p: f32[8, 8]):
    d = pl.add(p, p)
    return d
@Inline
def launch(self, x: f32[8, 8], i: idx, y: pl.InOut[f32[8, 8]]):
    return self.part(x, i, y)
"""


# --- call sites -------------------------------------------------------------------------------------------------------


def test_a_call_as_the_value_of_an_assignment():
    check_form(
        HELPERS + "@Opaque\ndef run(self, a: f32[8, 8]) -> f32[8, 8]:\n    s = self.double(a)\n    return s",
        "@Opaque\ndef run(self, a: f32[8, 8]) -> f32[8, 8]:\n    d_inline0 = pl.add(a, a)\n    s = d_inline0\n    return s",
    )


def test_several_results():
    check_form(
        HELPERS
        + """
@Opaque
def run(self, a: f32[8, 8], b: f32[8, 8]) -> f32[8, 8]:
    h, l = self.sum_diff(a, b)
    t = self.sum_diff(h, l)
    return pl.mul(t[1], t[0])
""",
        """
@Opaque
def run(self, a: f32[8, 8], b: f32[8, 8]) -> f32[8, 8]:
    up_inline0 = pl.add(a, b)
    dn_inline1 = pl.sub(a, b)
    h = up_inline0
    l = dn_inline1
    up_inline2 = pl.add(h, l)
    dn_inline3 = pl.sub(h, l)
    return pl.mul(dn_inline3, up_inline2)
""",
    )


def test_a_returned_variable_that_is_bound_to_a_tuple():
    check_form(
        """
        @Inline
        def pair(self, p: f32[8, 8]):
            q = pl.exp(p)
            t = (q, p)
            return t
        @Inline
        def through(self, p: f32[8, 8]):
            t = self.pair(p)
            return t
        @Opaque
        def run(self, a: f32[8, 8]) -> f32[8, 8]:
            h, l = self.pair(a)
            g, m = self.through(l)
            return pl.mul(h, pl.add(g, m))
        """,
        """
        @Opaque
        def run(self, a: f32[8, 8]) -> f32[8, 8]:
            q_inline0 = pl.exp(a)
            h = q_inline0
            l = a
            q_inline1 = pl.exp(l)
            g = q_inline1
            m = l
            return pl.mul(h, pl.add(g, m))
        """,
    )


def test_a_tuple_variable_with_several_values():
    """It is built where the values meet."""
    after = inlined(
        program(
            HELPERS
            + """
@Opaque
def run(self, a: f32[8, 8], b: f32[8, 8], n: idx) -> f32[8, 8]:
    t = self.sum_diff(a, b)
    if n > 3:
        t = self.sum_diff(b, a)
    return t[1]
"""
        )
    )
    built = [node for node in walk(after.get_function("run").body) if isinstance(node, ir.MakeTuple)]
    assert [[e.name_hint for e in node.elements] for node in built] == [
        ["up_inline0", "dn_inline1"],
        ["up_inline2", "dn_inline3"],
    ]


def test_a_statement():
    check_form(
        """
        @Inline
        def fill(self, y: pl.Out[f32[8, 8]], v: f32[8, 8]):
            y = pl.assemble(y, v, [0, 0])
            return y
        @Inline
        def nothing(self, v: f32[8, 8]):
            w = pl.exp(v)
        @Opaque
        def run(self, a: f32[8, 8], y: pl.Out[f32[8, 8]]) -> f32[8, 8]:
            self.fill(y, a)
            self.nothing(a)
            return y
        """,
        """
        @Opaque
        def run(self, a: f32[8, 8], y: pl.Out[f32[8, 8]]) -> f32[8, 8]:
            y = pl.assemble(y, a, [0, 0])
            w_inline0 = pl.exp(a)
            return y
        """,
    )


def test_a_returned_launch_stays_where_nobody_takes_its_result():
    """Row 15 of the fault kinds."""
    check_form(
        HELPERS
        + """
@Inline
def both(self, x: f32[8, 8], y: pl.InOut[f32[8, 8]]):
    z = pl.exp(x)
    return self.part(z, 1, y), pl.exp(z)
@Orchestration
def run(self, x: f32[8, 8], y: pl.InOut[f32[8, 8]]) -> f32[8, 8]:
    self.launch(x, 0, y)
    self.both(x, y)
    return y
""",
        """
@Orchestration
def run(self, x: f32[8, 8], y: pl.InOut[f32[8, 8]]) -> f32[8, 8]:
    self.part(x, 0, y)
    z_inline0 = pl.exp(x)
    self.part(z_inline0, 1, y)
    return y
""",
    )


def test_returned_calls():
    check_form(
        HELPERS
        + """
@Opaque
def run(self, a: f32[8, 8], n: idx) -> f32[8, 8]:
    if n > 1:
        return self.double(a)
    return self.double(a)
@Opaque
def two(self, a: f32[8, 8]) -> tuple[f32[8, 8], f32[8, 8]]:
    return self.sum_diff(a, a)
""",
        """
@Opaque
def run(self, a: f32[8, 8], n: idx) -> f32[8, 8]:
    if n > 1:
        d_inline0 = pl.add(a, a)
        return d_inline0
    d_inline1 = pl.add(a, a)
    return d_inline1
@Opaque
def two(self, a: f32[8, 8]) -> tuple[f32[8, 8], f32[8, 8]]:
    up_inline2 = pl.add(a, a)
    dn_inline3 = pl.sub(a, a)
    return up_inline2, dn_inline3
""",
    )


def test_a_call_as_all_of_a_body():
    after = inlined(
        program(
            HELPERS
            + """
@Orchestration
def run(self, x: f32[8, 8], y: pl.InOut[f32[8, 8]], n: idx) -> f32[8, 8]:
    for i in pl.range(n):
        self.launch(x, i, y)
    if n > 2:
        y = self.double(y)
    else:
        y = self.launch(x, 1, y)
    while n > 4:
        self.double(x)
    with pl.scope(mode=pl.ScopeMode.MANUAL):
        y = self.double(y)
    return y
"""
        )
    )
    loop, branch, other, scope, _ = ir.flatten_to_stmts(after.get_function("run").body)
    assert isinstance(loop.body, ir.EvalStmt)
    assert [type(s) for s in branch.then_body.stmts] == [ir.AssignStmt] * 2
    assert isinstance(branch.else_body, ir.AssignStmt) and branch.else_body.value.op.name == "part"
    assert isinstance(other.body, ir.AssignStmt) and len(scope.body.stmts) == 2


NOT_EXPANDED = {
    "Dangling Call to function 'double'": "    s = pl.mul(self.double(a), a)\n    return s",
    "Dangling Submit to function 'square'": "    s, t = pl.submit(self.square, a)\n    return s",
    "Dangling Call to function 'count'": "    s = a\n    for i in pl.range(self.count(n)):\n        s = pl.exp(s)\n    return s",
}


@pytest.mark.parametrize("phrase", NOT_EXPANDED)
def test_calls_that_are_not_expanded_are_reported(phrase):
    count = """
@Inline
def count(self, k: idx) -> idx:
    return k + 1
@Inline
def square(self, p: f32[8, 8]) -> f32[8, 8]:
    return pl.mul(p, p)
@Orchestration
"""
    head = "def run(self, a: f32[8, 8], n: idx) -> f32[8, 8]:\n"
    before = program(HELPERS + count + head + NOT_EXPANDED[phrase])
    after = inline_functions()(before)
    assert after.get_function("run") is before.get_function("run")
    (found,) = verify_all(ELIMINATED, after)
    assert phrase in found.message and found.span.is_valid()


def test_an_argument_that_is_such_a_call():
    check_form(
        HELPERS + "@Opaque\ndef run(self, a: f32[8, 8]) -> f32[8, 8]:\n    return self.double(self.double(a))",
        """
@Opaque
def run(self, a: f32[8, 8]) -> f32[8, 8]:
    d_inline0 = pl.add(a, a)
    d_inline1 = pl.add(d_inline0, d_inline0)
    return d_inline1
""",
    )


def test_a_chain_of_three():
    check_form(
        """
        @Inline
        def c(self, p: f32[8, 8], k: idx):
            x = pl.slice(p, [1, 8], [k, 0])
            return x
        @Inline
        def b(self, p: f32[8, 8], k: idx):
            x = pl.exp(p)
            return self.c(x, k + 1)
        @Inline
        def a(self, p: f32[8, 8], k: idx):
            x = self.b(p, k * 2)
            y = pl.exp(x)
            return y
        @Opaque
        def run(self, p: f32[8, 8], k: idx) -> f32[1, 8]:
            z = self.a(p, k)
            return z
        """,
        """
        @Opaque
        def run(self, p: f32[8, 8], k: idx) -> f32[1, 8]:
            x_inline0 = pl.exp(p)
            x_inline1 = pl.slice(x_inline0, [1, 8], [k * 2 + 1, 0])
            x_inline2 = x_inline1
            y_inline3 = pl.exp(x_inline2)
            z = y_inline3
            return z
        """,
    )


# --- parameters -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["f32[8, 8]", "pl.Out[f32[8, 8]]", "pl.InOut[f32[8, 8]]"])
@pytest.mark.parametrize(
    ("write", "result"),
    [
        ("o = pl.assemble(o, v, [0, 0])", "q = pl.assemble(q, v, [0, 0])"),
        ("o[:] = v", "q[:] = v"),
        ("o = self.part(v, 2, o)", "q = self.part(v, 2, q)"),
        ("o, t = pl.submit(self.part, v, 2, o)", "q, t = pl.submit(self.part, v, 2, q)"),
        ("r = pl.assemble(o, v, [0, 0])\n            o = r", "r = pl.assemble(q, v, [0, 0])\n            q = r"),
        ("for i in pl.range(4):\n                o = self.part(v, i, o)", "for i in pl.range(4):\n                q = self.part(v, i, q)"),
    ],
)  # fmt: skip
def test_a_write_in_place_is_one_to_the_variable_of_the_caller(kind, write, result):
    """Row 17: no ``q = q`` remains. A bare annotation means the same as ``pl.Out`` here."""
    result_ = inlined(
        program(
            f"""
        @Inline
        def put(self, v: f32[8, 8], o: {kind}):
            {write}
            return o
        @Orchestration
        def run(self, v: f32[8, 8], q: pl.Out[f32[8, 8]]) -> f32[8, 8]:
            q = self.put(v, q)
            self.put(v, q)
            return q
        """
        )
    )
    wanted = program(
        f"""
        @Orchestration
        def run(self, v: f32[8, 8], q: pl.Out[f32[8, 8]]) -> f32[8, 8]:
            {result}
            {result.replace("t =", "t_1 =")}
            return q
        """
    )
    assert _without_names(result_) == _without_names(wanted)


def _without_names(of):
    """Classes, ops and the parameters of the caller, in the order of the text."""
    run = of.get_function("run")
    params = set(run.params)
    found = []
    for node in walk(run.body):
        if isinstance(node, ir.Var):
            found.append(node.name_hint if node in params else "local")
        else:
            found.append((type(node).__name__, getattr(getattr(node, "op", None), "name", None)))
    return found


def test_an_array_that_is_written():
    check_form(
        """
        @Inline
        def put(self, a: pl.Array[4, pl.INT32], n: idx):
            a[n] = 3
            return n
        @Orchestration
        def run(self, n: idx) -> pl.Scalar[pl.INT32]:
            a = pl.array.create(4, pl.INT32)
            m = self.put(a, n)
            return a[m]
        """,
        """
        @Orchestration
        def run(self, n: idx) -> pl.Scalar[pl.INT32]:
            a = pl.array.create(4, pl.INT32)
            a[n] = 3
            m = n
            return a[m]
        """,
    )


def test_an_annotated_parameter_and_any_value():
    check_form(
        """
        @Inline
        def grow(self, v: f32[8, 8], o: pl.InOut[f32[8, 8]]):
            o = pl.add(o, v)
            return o
        @Opaque
        def run(self, v: f32[8, 8], q: f32[8, 8]) -> f32[8, 8]:
            self.grow(v, q)
            r = self.grow(v, q)
            return pl.mul(r, q)
        """,
        """
        @Opaque
        def run(self, v: f32[8, 8], q: f32[8, 8]) -> f32[8, 8]:
            q = pl.add(q, v)
            q = pl.add(q, v)
            r = q
            return pl.mul(r, q)
        """,
    )


def test_an_argument_that_reads_what_the_body_replaces():
    """Both parameters are given ``q``: the second keeps the value that it had."""
    check_form(
        """
        @Inline
        def grow(self, o: pl.InOut[f32[8, 8]], v: f32[8, 8]):
            o = pl.add(o, 1.0)
            o = pl.mul(o, v)
            return o
        @Opaque
        def run(self, q: f32[8, 8]) -> f32[8, 8]:
            q = self.grow(q, q)
            return q
        """,
        """
        @Opaque
        def run(self, q: f32[8, 8]) -> f32[8, 8]:
            v_inline0 = q
            q = pl.add(q, 1.0)
            q = pl.mul(q, v_inline0)
            return q
        """,
    )


def test_scalars_and_fresh_values_are_locals():
    """Row 16: the caller's scalar does not change. Nor does a tensor whose parameter gets another value."""
    check_form(
        """
        @Inline
        def shift(self, v: f32[8, 8], base: idx):
            base = base + 1
            v = pl.exp(v)
            for i in pl.range(2):
                base = base + i
            return pl.slice(v, [1, 8], [base, 0])
        @Opaque
        def run(self, v: f32[8, 8], base: idx) -> tuple[f32[1, 8], f32[1, 8]]:
            s = self.shift(v, base)
            t = pl.slice(v, [1, 8], [base, 0])
            return s, t
        """,
        """
        @Opaque
        def run(self, v: f32[8, 8], base: idx) -> tuple[f32[1, 8], f32[1, 8]]:
            v_inline0 = v
            base_inline1 = base
            base_inline1 = base_inline1 + 1
            v_inline0 = pl.exp(v_inline0)
            for i_inline2 in pl.range(2):
                base_inline1 = base_inline1 + i_inline2
            s = pl.slice(v_inline0, [1, 8], [base_inline1, 0])
            t = pl.slice(v, [1, 8], [base, 0])
            return s, t
        """,
    )


def test_a_parameter_that_is_written_first_and_replaced_then():
    check_form(
        """
        @Inline
        def both(self, v: f32[8, 8], o: f32[8, 8]):
            o = pl.assemble(o, v, [0, 0])
            w = pl.exp(o)
            if w is w:
                pass
            o = pl.add(o, 1.0)
            o = pl.assemble(o, v, [0, 0])
            return o
        @Opaque
        def run(self, v: f32[8, 8], q: f32[8, 8]) -> f32[8, 8]:
            r = self.both(v, q)
            return pl.mul(r, q)
        """.replace("            if w is w:\n                pass\n", ""),
        """
        @Opaque
        def run(self, v: f32[8, 8], q: f32[8, 8]) -> f32[8, 8]:
            q = pl.assemble(q, v, [0, 0])
            w_inline0 = pl.exp(q)
            o_inline1 = q
            o_inline1 = pl.add(o_inline1, 1.0)
            o_inline1 = pl.assemble(o_inline1, v, [0, 0])
            r = o_inline1
            return pl.mul(r, q)
        """,
    )


def test_what_an_inner_expansion_writes():
    """``outer`` hands its parameters on; ``inner`` writes the first in place and gives the second another value."""
    check_form(
        """
        @Inline
        def inner(self, a: f32[8, 8], b: pl.InOut[f32[8, 8]], v: f32[8, 8]):
            a = pl.assemble(a, v, [0, 0])
            b = pl.add(b, v)
        @Inline
        def outer(self, p: f32[8, 8], q: f32[8, 8], v: f32[8, 8]):
            self.inner(p, q, v)
            return q
        @Opaque
        def run(self, x: f32[8, 8], y: f32[8, 8], v: f32[8, 8]) -> f32[8, 8]:
            z = self.outer(x, y, v)
            return pl.mul(z, pl.mul(x, y))
        """,
        """
        @Opaque
        def run(self, x: f32[8, 8], y: f32[8, 8], v: f32[8, 8]) -> f32[8, 8]:
            q_inline0 = y
            x = pl.assemble(x, v, [0, 0])
            q_inline0 = pl.add(q_inline0, v)
            z = q_inline0
            return pl.mul(z, pl.mul(x, y))
        """,
    )


def test_an_argument_with_a_call_is_evaluated_once():
    check_form(
        """
        @Inline
        def rows(self, v: f32[8, 8], i: idx, j: idx):
            a = pl.slice(v, [1, 8], [i, 0])
            b = pl.slice(v, [1, 8], [i + j, 0])
            return pl.add(a, b)
        @Opaque
        def run(self, v: f32[8, 8], t: i32[4], n: idx) -> f32[1, 8]:
            return self.rows(v, pl.cast(pl.read(t, [0]), pl.INDEX), n * 2)
        """,
        """
        @Opaque
        def run(self, v: f32[8, 8], t: i32[4], n: idx) -> f32[1, 8]:
            i_inline0 = pl.cast(pl.read(t, [0]), pl.INDEX)
            a_inline1 = pl.slice(v, [1, 8], [i_inline0, 0])
            b_inline2 = pl.slice(v, [1, 8], [i_inline0 + n * 2, 0])
            return pl.add(a_inline1, b_inline2)
        """,
    )


def test_arguments_are_evaluated_in_order():
    """The read comes before the write of the argument behind it."""
    check_form(
        """
        @Inline
        def bump(self, t: pl.InOut[f32[8, 8]]):
            pl.write(t, [0, 0], 5.0)
            return 1
        @Inline
        def use(self, v: f32[8, 8], s: pl.Scalar[pl.FP32], i: idx):
            return pl.add(pl.slice(v, [1, 8], [i, 0]), s)
        @Opaque
        def run(self, v: f32[8, 8], t: f32[8, 8]) -> f32[1, 8]:
            return self.use(v, pl.read(t, [0, 0]), self.bump(t))
        """,
        """
        @Opaque
        def run(self, v: f32[8, 8], t: f32[8, 8]) -> f32[1, 8]:
            s_inline0 = pl.read(t, [0, 0])
            pl.write(t, [0, 0], 5.0)
            return pl.add(pl.slice(v, [1, 8], [1, 0]), s_inline0)
        """,
    )


def test_a_swap_reads_both_before_it_assigns():
    check_form(
        """
        @Inline
        def swap(self, p: f32[8, 8], q: f32[8, 8]):
            return q, p
        @Opaque
        def run(self, a: f32[8, 8], b: f32[8, 8]) -> f32[8, 8]:
            a, b = self.swap(a, b)
            b, c = self.swap(a, b)
            return pl.sub(a, pl.mul(b, c))
        """,
        """
        @Opaque
        def run(self, a: f32[8, 8], b: f32[8, 8]) -> f32[8, 8]:
            _tuple_tmp_inline0 = b
            _tuple_tmp_inline1 = a
            a = _tuple_tmp_inline0
            b = _tuple_tmp_inline1
            c = a
            return pl.sub(a, pl.mul(b, c))
        """,
    )


def test_elements_that_are_taken_later_have_the_value_of_the_call():
    after = inlined(
        program(
            """
            @Inline
            def pair(self, p: f32[8, 8], k: idx):
                return pl.exp(p), k + 1
            @Opaque
            def run(self, a: f32[8, 8], k: idx) -> f32[1, 8]:
                t = self.pair(a, k)
                k = 0
                a = pl.add(a, 1.0)
                return pl.add(pl.slice(t[0], [1, 8], [t[1], 0]), pl.slice(a, [1, 8], [k, 0]))
            """
        )
    )
    assert names(after) == ["t_inline0", "t_inline1"]


# --- locals, types, attributes ----------------------------------------------------------------------------------------


def test_names_and_numbers_follow_the_text():
    after = inlined(
        program(
            """
            @Inline
            def work(self, p: f32[8, 8], n: idx):
                a = pl.exp(p)
                for i, (s, q) in pl.range(n, init_values=(a, p)):
                    b = pl.add(s, q)
                    r, z = pl.yield_(b, q)
                if n > 2:
                    c = pl.exp(r)
                else:
                    c = z
                return c
            @Opaque
            def run(self, p: f32[8, 8], n: idx) -> f32[8, 8]:
                x = self.work(p, n)
                return x
            @Opaque
            def second(self, p: f32[8, 8]) -> f32[8, 8]:
                return self.work(p, 4)
            """
        )
    )
    wanted = ["a_inline{}", "i_inline{}", "b_inline{}", "r_inline{}", "z_inline{}", "c_inline{}"]
    assert names(after) == [name.format(i) for i, name in enumerate(wanted)]
    assert names(after, "second") == [name.format(i + 6) for i, name in enumerate(wanted)]
    (loop,) = [s for s in walk(after.get_function("run").body) if isinstance(s, ir.ForStmt)]
    assert [arg.name_hint for arg in loop.iter_args] == ["s", "q"]


def test_each_expansion_has_variables_of_its_own():
    text = (
        HELPERS
        + "@Opaque\ndef run(self, a: f32[8, 8]) -> f32[8, 8]:\n    a = self.double(a)\n    a = self.double(a)\n    return a"
    )
    before = program(text)
    after = inlined(before)
    made = [
        s.var
        for s in walk(after.get_function("run").body)
        if isinstance(s, ir.AssignStmt) and "_inline" in s.var.name_hint
    ]
    assert len(made) == 2 and made[0] is not made[1]
    assert not set(made) & set(walk(before.get_function("double").body))
    assert text_of(inlined(before)) == text_of(after)  # the count begins anew for each program


def test_types_of_locals_follow_the_arguments():
    after = inlined(
        program(
            """
            @Inline
            def head(self, v: f32[M, 8], n: idx):
                k = n + 1
                z = pl.create_tensor([M, 8], dtype=pl.FP32)
                w = pl.slice(v, [4, 8], [0, 0], valid_shape=[n, 8])
                for i in pl.range(M):
                    k = k + i
                return w
            @Opaque
            def run(self, v: f32[16, 8], m: idx) -> f32[4, 8]:
                x = self.head(v, m)
                return x
            """
        )
    )
    run = after.get_function("run")
    by_name = {s.var.name_hint: s for s in walk(run.body) if isinstance(s, ir.AssignStmt)}
    assert [e.value for e in by_name["z_inline1"].var.type.shape] == [16, 8]
    assert by_name["w_inline2"].var.type.tensor_view.valid_shape[0] is run.params[1]
    assert by_name["w_inline2"].value.type == by_name["w_inline2"].var.type
    (loop,) = [s for s in walk(run.body) if isinstance(s, ir.ForStmt)]
    assert loop.stop.value == 16


def test_a_task_id_is_a_local():
    after = inlined(
        program(
            """
            @Inline
            def tasks(self, x: f32[8, 8], y: pl.InOut[f32[8, 8]]):
                with pl.at(level=pl.Level.CORE_GROUP) as first:
                    y = pl.store(pl.load(x, [0, 0], [4, 8]), [0, 0], y)
                with pl.at(level=pl.Level.CORE_GROUP, deps=[first]):
                    y = pl.store(pl.load(x, [4, 0], [4, 8]), [4, 0], y)
                y, last = pl.submit(self.part, x, 1, y, deps=[first])
                return y
            @Orchestration
            def run(self, x: f32[8, 8], y: pl.InOut[f32[8, 8]]) -> f32[8, 8]:
                y = self.tasks(x, y)
                y = self.tasks(x, y)
                return y
            """
        )
    )
    nodes = list(walk(after.get_function("run").body))
    scopes = [node for node in nodes if isinstance(node, ir.InCoreScopeStmt)]
    ids = [s.attrs["task_id_var"] for s in scopes if "task_id_var" in s.attrs]
    assert len(set(ids)) == 2 and all(v.name_hint.startswith("first_inline") for v in ids)
    assert [list(s.attrs["manual_dep_edges"]) for s in scopes if "manual_dep_edges" in s.attrs] == [[ids[0]], [ids[1]]]
    assert [list(node.deps) for node in nodes if isinstance(node, ir.Submit)] == [[ids[0]], [ids[1]]]


DUMPS = """
@Inline
def inner(self, u: f32[8, 8], y: pl.InOut[f32[8, 8]]):
    y = self.part(u, 0, y)
    return y
@Inline
def outer(self, v: f32[8, 8], w: f32[8, 8], y: pl.InOut[f32[8, 8]]):
    y = self.part(v, 0, y)
    y = self.part(w, 1, y)
    y, t = pl.submit(self.part, v, 2, y)
    y = self.inner(v, y)
    with pl.at(level=pl.Level.CORE_GROUP, deps=[t], name_hint="uses") as u:
        y = pl.store(pl.load(v, [0, 0], [4, 8]), [0, 0], y)
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="other"):
        y = pl.store(pl.load(w, [0, 0], [4, 8]), [0, 0], y)
    with pl.spmd(4):
        y = self.part(v, 3, y)
    return y
"""


def launches_of(function):
    return [n for n in walk(function.body) if isinstance(n, (ir.Call, ir.Submit)) and isinstance(n.op, ir.GlobalVar)]


def test_dumps_reach_launches_and_scopes():
    after = inlined(
        program(
            DUMPS
            + """
@Orchestration
def run(self, a: f32[8, 8], b: f32[8, 8], y: pl.InOut[f32[8, 8]]) -> f32[8, 8]:
    pl.dump_tag(a)
    y = self.outer(a, b, y)
    return y
"""
        )
    )
    run = after.get_function("run")
    a = run.params[0]
    dumped = [list(call.attrs.get("dump_vars", ())) for call in launches_of(run)]
    assert dumped == [[a], [], [a], [a], [a]]
    scopes = {s.name_hint: s for s in walk(run.body) if isinstance(s, ir.InCoreScopeStmt)}
    assert list(scopes["uses"].attrs) == ["manual_dep_edges", "dump_vars", "task_id_var"]
    assert list(scopes["uses"].attrs["dump_vars"]) == [a] and "dump_vars" not in scopes["other"].attrs
    (spmd,) = [s for s in walk(run.body) if isinstance(s, ir.SpmdScopeStmt)]
    assert list(spmd.attrs["dump_vars"]) == [a]


def test_dumps_join_those_of_the_body():
    after = inlined(
        program(
            """
            @Inline
            def helper(self, v: f32[8, 8], y: pl.InOut[f32[8, 8]]):
                pl.dump_tag(y)
                y = self.part(v, 0, y)
                return y
            @Orchestration
            def run(self, a: f32[8, 8], y: pl.InOut[f32[8, 8]]) -> f32[8, 8]:
                pl.dump_tag(a)
                y = self.helper(a, y)
                return y
            """
        )
    )
    run = after.get_function("run")
    (call,) = launches_of(run)
    assert list(call.attrs["dump_vars"]) == [run.params[0], run.params[1]]


def test_arguments_without_dependency():
    after = inlined(
        program(
            DUMPS
            + """
@Orchestration
def run(self, a: f32[8, 8], b: f32[8, 8], y: pl.InOut[f32[8, 8]]) -> f32[8, 8]:
    y = self.outer(pl.no_dep(a), b, y)
    return y
"""
        )
    )
    run = after.get_function("run")
    assert [list(call.attrs.get("arg_direction_overrides", ())) for call in launches_of(run)] == [
        [0],
        [],
        [0],
        [0],
        [0],
    ]
    scopes = {s.name_hint: s for s in walk(run.body) if isinstance(s, ir.InCoreScopeStmt)}
    assert list(scopes["uses"].attrs["arg_direction_overrides_vars"]) == [run.params[0]]
    assert list(scopes["uses"].attrs) == ["manual_dep_edges", "arg_direction_overrides_vars", "task_id_var"]


def test_comments_and_places():
    before = program(
        """
        @Inline
        def helper(self, v: f32[8, 8]):
            # first
            w = pl.exp(v)
            # result
            return w
        @Inline
        def nothing(self, v: f32[8, 8]):
            return v
        @Opaque
        def run(self, a: f32[8, 8]) -> f32[8, 8]:
            # call
            b = self.helper(a)
            # vanishes
            self.nothing(a)
            # back
            return b
        """
    )
    stmts = ir.flatten_to_stmts(inlined(before).get_function("run").body)
    assert [s.leading_comments for s in stmts] == [["call", "first"], ["result"], ["vanishes", "back"]]
    helper = ir.flatten_to_stmts(before.get_function("helper").body)
    call = ir.flatten_to_stmts(before.get_function("run").body)[0]
    assert stmts[0].span == helper[0].span and stmts[1].span == call.span
    assert helper[0].leading_comments == ["first"], "the input has changed"


# --- the program ------------------------------------------------------------------------------------------------------


def test_without_inline_functions():
    before = program("@Opaque\ndef run(self, a: f32[8, 8]) -> f32[8, 8]:\n    return pl.exp(a)")
    assert inline_functions()(before) is before


def test_functions_without_calls_stay_the_same_objects():
    before = program(
        HELPERS
        + "@Opaque\ndef run(self, a: f32[8, 8]) -> f32[8, 8]:\n    return self.double(a)\n"
        + "@Opaque\ndef other(self, a: f32[8, 8]) -> f32[8, 8]:\n    return pl.exp(a)"
    )
    after = inlined(before)
    assert sorted(f.name for f in after.functions.values()) == ["fix", "other", "part", "run", "twice"]
    for name in ("other", "part", "fix", "twice"):
        assert after.get_function(name) is before.get_function(name)


def test_a_function_keeps_what_it_is():
    before = program(
        HELPERS
        + "@Opaque\ndef run(self, a: f32[8, 8]) -> f32[8, 8]:\n    pl.func_attr({'mark': 3})\n    return self.double(a)"
    )
    old, new = before.get_function("run"), inlined(before).get_function("run")
    assert new.params == old.params and new.attrs == old.attrs == {"mark": 3}
    assert new.return_types == old.return_types and new.span == old.span and new.func_type == old.func_type


def test_properties():
    p = inline_functions()
    assert p.get_name() == "InlineFunctions" and p.get_produced_properties() == ELIMINATED
    assert p.get_required_properties().empty() and p.get_invalidated_properties().empty()


# --- refusals ---------------------------------------------------------------------------------------------------------

LOOPING = """
@Inline
def p(self, x: f32[8, 8]) -> f32[8, 8]:
    return self.q(x)
@Inline
def q(self, x: f32[8, 8]) -> f32[8, 8]:
    y = pl.exp({call})
    return y
"""


@pytest.mark.parametrize("used", [True, False])
def test_cycles(used):
    run = "@Opaque\ndef run(self, x: f32[8, 8]) -> f32[8, 8]:\n    return self.p(x)" if used else ""
    text = LOOPING.format(call="self.p(x)") + run
    error = refused(text)
    assert "Cycle detected in FunctionType::Inline call graph: p -> q -> p" in str(error)
    assert error.code == "PT1010" and "exp(self.p(x))" in line(error.span, text)
    error = refused(LOOPING.format(call="self.q(x)") + run)
    assert "Cycle detected in FunctionType::Inline call graph: q -> q" in str(error)


def test_a_shared_callee_is_no_cycle():
    text = """
    @Inline
    def a(self, x: f32[8, 8]) -> f32[8, 8]:
        y = self.b(x)
        return self.c(y)
    @Inline
    def b(self, x: f32[8, 8]) -> f32[8, 8]:
        return self.c(x)
    @Inline
    def c(self, x: f32[8, 8]) -> f32[8, 8]:
        return pl.exp(x)
    @Opaque
    def run(self, x: f32[8, 8]) -> f32[8, 8]:
        return self.a(x)
    """
    assert text_of(inlined(program(text))).count("exp") == 2


EARLY = """
@Inline
def early(self, x: f32[8, 8], n: idx) -> f32[8, 8]:
    {body}
@Opaque
def run(self, x: f32[8, 8], n: idx) -> f32[8, 8]:
    y = self.early(x, n)
    return y
"""


@pytest.mark.parametrize(
    "body",
    [
        "if n > 3:\n        return pl.exp(x)\n    return x",
        "for i in pl.range(n):\n        return x\n    return x",
        "if n > 3:\n        return pl.exp(x)\n    else:\n        return x",
    ],
)
def test_an_early_return(body):
    """Row 18: both places are shown."""
    source = EARLY.format(body=body)
    error = refused(source)
    text = str(error)
    assert "contains a non-trailing ReturnStmt; only a single trailing return is supported" in text
    assert error.code == "PT1011" and "return" in line(error.span, source)
    (place, _), *_ = error.labels
    assert "self.early(x, n)" in line(place, source)
    assert str(place) in text and str(error.span) in text and error.hint


def test_an_early_return_of_a_function_that_nobody_calls():
    text = EARLY.format(body="if n > 3:\n        return pl.exp(x)\n    return x").replace("self.early(x, n)", "x")
    inlined(program(text))


def call(*args, attrs=None):
    kind = ir.TensorType([ir.ConstInt(8, ir.DataType.INDEX, SPAN)] * 2, ir.DataType.FP32)
    return ir.Call(ir.GlobalVar("double"), list(args), {}, attrs or {}, kind, SPAN)


def by_hand(expr):
    """``v = expr`` in a program with the helpers."""
    base = program(HELPERS)
    v = ir.Var("v", expr.type, SPAN)
    body = ir.SeqStmts([ir.AssignStmt(v, expr, SPAN), ir.ReturnStmt([v], SPAN)], SPAN)
    function = ir.Function("run", [expr.args[0]], [expr.type], body, SPAN)
    return ir.Program([*base.functions.values(), function], "P", SPAN)


X = ir.Var("x", ir.TensorType([ir.ConstInt(8, ir.DataType.INDEX, SPAN)] * 2, ir.DataType.FP32), SPAN)


@pytest.mark.parametrize(
    ("expr", "phrase"),
    [
        (call(X, X), "Inline function 'double' takes 1 argument(s), the call gives 2"),
        (call(X, attrs={"device": X}), "attribute 'device' has no meaning on a call of Inline function 'double'"),
    ],
)
def test_calls_that_do_not_fit(expr, phrase):
    with pytest.raises(ValueError) as info:
        inline_functions()(by_hand(expr))
    assert phrase in str(info.value) and "[case.py:7:5]" in str(info.value) and info.value.code == "PT1012"


REFUSED = {
    "so the argument must be a variable": """
        @Inline
        def put(self, v: f32[8, 8], o: f32[8, 8]):
            o = pl.assemble(o, v, [0, 0])
            return o
        @Opaque
        def run(self, v: f32[8, 8]) -> f32[8, 8]:
            return self.put(v, pl.exp(v))
        """,
    "returns nothing, where the call uses one value": """
        @Inline
        def nothing(self, v: f32[8, 8]):
            w = pl.exp(v)
        @Opaque
        def run(self, v: f32[8, 8]) -> f32[8, 8]:
            w = self.nothing(v)
            return v
        """,
    "Inline function 'two' returns a tuple through an unsupported expression": """
        @InCore
        def k(self, x: f32[8, 8], a: pl.Out[f32[8, 8]], b: pl.Out[f32[8, 8]]) -> tuple[f32[8, 8], f32[8, 8]]:
            return a, b
        @Inline
        def two(self, x: f32[8, 8], a: pl.Out[f32[8, 8]], b: pl.Out[f32[8, 8]]):
            return self.k(x, a, b)
        @Orchestration
        def run(self, x: f32[8, 8], a: pl.Out[f32[8, 8]], b: pl.Out[f32[8, 8]]) -> tuple[f32[8, 8], f32[8, 8]]:
            a, b = self.two(x, a, b)
            return a, b
        """,
}


@pytest.mark.parametrize("phrase", REFUSED)
def test_refused_programs(phrase):
    error = refused(REFUSED[phrase])
    assert phrase in str(error) and error.code in ("PT1012", "PT1013")


def test_a_returned_tuple_may_be_returned():
    text = REFUSED["Inline function 'two' returns a tuple through an unsupported expression"]
    text = text.replace(
        "            a, b = self.two(x, a, b)\n            return a, b", "            return self.two(x, a, b)"
    )
    (call,) = launches_of(inlined(program(text)).get_function("run"))
    assert call.op.name == "k"


# --- meaning ----------------------------------------------------------------------------------------------------------

MEANING = [
    Example(
        "kernels behind helpers",
        {
            "written": """
            @Inline
            def helper(self, x: f32[8, 8], y: pl.InOut[f32[8, 8]], k: idx):
                k = k + 1
                y = self.part(x, k, y)
                return y
            @Inline
            def relay(self, x: f32[8, 8], y: pl.InOut[f32[8, 8]]):
                z = self.helper(x, y, 0)
                return self.helper(x, z, 5)
            @Orchestration
            def run(self, x: f32[8, 8], y: pl.InOut[f32[8, 8]], k: idx) -> f32[8, 8]:
                y = self.helper(x, y, k)
                self.helper(x, y, k + 1)
                self.relay(x, y)
                y = self.part(x, k, y)
                return y
            """
        },
        lambda: {"x": ramp(8, 8), "y": zeros(8, 8), "k": 2},
        lambda x, y, k: {"y": np.where(np.isin(np.arange(8), [1, 2, 3, 4, 6])[:, None], x + 1, 0)},
        common=BASE,
    ),
    Example(
        "helpers in loops and branches",
        {
            "written": """
            @Inline
            def step(self, a: f32[8, 8], n: idx):
                n = n * 2
                b = pl.add(a, a)
                if n > 4:
                    b = pl.sub(b, 1.0)
                return b, n
            @Opaque
            def run(self, a: f32[8, 8], n: idx) -> tuple[f32[8, 8], pl.Scalar[pl.INDEX]]:
                total = n
                for i in pl.range(n):
                    a, m = self.step(a, i)
                    total = total + m
                if total > 3:
                    a, total = self.step(a, total)
                return a, total
            """
        },
        lambda: {"a": noise(8, 8), "n": 4},
        lambda a, n: {"return": (((a * 4 * 2 * 2 - 1) * 2 - 1), 32)},
    ),
    Example(
        "fresh values of bare parameters",
        {
            "written": """
            @Inline
            def soft(self, v: f32[8, 8], o: f32[8, 8]):
                v = pl.mul(v, 3.0)
                o = pl.assemble(o, v, [0, 0])
                v = pl.add(v, 1.0)
                return v
            @Opaque
            def run(self, v: f32[8, 8], o: pl.Out[f32[8, 8]]) -> f32[8, 8]:
                w = self.soft(v, o)
                return pl.add(w, pl.add(v, o))
            """
        },
        lambda: {"v": noise(8, 8), "o": zeros(8, 8)},
        lambda v, o: {"o": 3 * v, "return": 3 * v + 1 + v + 3 * v},
    ),
]
MEANING[1].want = lambda a, n: {"return": _steps(a, n)}


def _steps(a, n):
    """The second example in Python."""

    def step(a, n):
        n = n * 2
        return (a + a - 1 if n > 4 else a + a), n

    total = n
    for i in range(n):
        a, m = step(a, i)
        total += m
    return step(a, total) if total > 3 else (a, total)


@pytest.mark.parametrize("example", MEANING, ids=lambda e: e.name)
def test_the_meaning_stays(example):
    before = example.parse("written")
    check_meaning(example, before)
    check_meaning(example, inlined(before))
