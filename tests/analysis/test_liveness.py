"""What is needed behind a branch, loop or scope of a program as it is written."""

import textwrap

import pytest

import pypto.language as pl
from pypto import ir
from pypto.analysis.liveness import Liveness, liveness
from pypto.ir.traversal import walk

HEAD = "import pypto.language as pl\n"
PARAMS = (
    "n: pl.Scalar[pl.INDEX], x: pl.Tensor[[64, 16], pl.FP32], o: pl.Out[pl.Tensor[[64, 16], pl.FP32]],"
    " w: pl.Tensor[[16, 16], pl.FP32]"
)


class Case:
    """A function, its liveness, and its constructs by number in reading order."""

    def __init__(self, body: str) -> None:
        text = f"{HEAD}@pl.function\ndef f({PARAMS}):\n{textwrap.indent(textwrap.dedent(body), '    ')}\n"
        self.function = pl.parse(text)
        self.live: Liveness = liveness(self.function)
        kinds = (ir.IfStmt, ir.ForStmt, ir.WhileStmt, ir.ScopeStmt)
        self.constructs = [s for s in walk(self.function.body) if isinstance(s, kinds)]

    def var(self, name: str) -> ir.Var:
        return next(v for v in walk(self.function) if isinstance(v, ir.Var) and v.name_hint == name)

    def needed(self, index: int) -> list[str]:
        stmt = self.constructs[index]
        return [v.name_hint for v in self.live.assigned(stmt) if self.live.needed_after(stmt, v)]

    def assigned(self, index: int) -> list[str]:
        return [v.name_hint for v in self.live.assigned(self.constructs[index])]

    def at_head(self, index: int) -> list[str]:
        stmt = self.constructs[index]
        return [v.name_hint for v in self.live.assigned(stmt) if self.live.read_at_head(stmt, v)]


NEEDED = {
    "read behind": (
        """
        for i in pl.range(n):
            a = i
            b = i + 1
        c = b
        """,
        ["b"],
    ),
    "assigned before it is read": (
        """
        for i in pl.range(n):
            a = i
        a = 3
        c = a
        """,
        [],
    ),
    "assigned on one path only": (
        """
        for i in pl.range(n):
            a = i
        if n > 1:
            a = 3
        c = a
        """,
        ["a"],
    ),
    "assigned on both paths": (
        """
        for i in pl.range(n):
            a = i
        if n > 1:
            a = 3
        else:
            a = 4
        c = a
        """,
        [],
    ),
    "assigned in a loop that may not run": (
        """
        for i in pl.range(n):
            a = i
        for j in pl.range(n):
            a = j
        c = a
        """,
        ["a"],
    ),
    "assigned in a loop that runs": (
        """
        for i in pl.range(n):
            a = i
        for j in pl.range(3):
            a = j
        c = a
        """,
        [],
    ),
    "read in a condition": (
        """
        for i in pl.range(n):
            a = i
        if a > 3:
            c = 1
        """,
        ["a"],
    ),
    "read in a loop header": (
        """
        for i in pl.range(n):
            a = i
        for j in pl.range(a):
            c = 1
        """,
        ["a"],
    ),
    "read in the condition of a while": (
        """
        for i in pl.range(n):
            a = i
        while a > 3:
            a = a - 1
        """,
        ["a"],
    ),
    "read in a type": (
        """
        for i in pl.range(n):
            k = 16
            t = pl.slice(x, [k, 16], [0, 0])
        u = pl.add(t, 1.0)
        """,
        ["k", "t"],
    ),
    "read by a return": (
        """
        for i in pl.range(n):
            a = i
        return a
        """,
        ["a"],
    ),
    "behind a return": (
        """
        for i in pl.range(n):
            a = i
        return n
        """,
        [],
    ),
}


@pytest.mark.parametrize("name", NEEDED)
def test_needed_behind_the_first_loop(name: str) -> None:
    body, wanted = NEEDED[name]
    assert Case(body).needed(0) == wanted


def test_the_next_iteration_of_the_loop_around_reads() -> None:
    case = Case(
        """
        a = n
        for i in pl.range(n):
            b = a
            for j in pl.range(n):
                a = j
                b = j
            c = i
        """
    )
    assert case.needed(1) == ["a"]
    assert case.needed(0) == []
    assert case.at_head(0) == ["a"] and case.at_head(1) == []


def test_what_encloses_reads() -> None:
    case = Case(
        """
        if n > 1:
            for i in pl.range(n):
                for j in pl.range(n):
                    a = j
                    b = a
        c = a
        """
    )
    assert [case.needed(k) for k in range(3)] == [["a"], ["a"], ["a"]]


def test_escapes_go_on_behind_the_loop() -> None:
    # `a` is assigned again at the end of the body, but a break leaves before that.
    case = Case(
        """
        a = 0
        for i in pl.range(n):
            if i > 2:
                a = 7
            if i > 3:
                break
            a = 1
        return a
        """
    )
    assert case.needed(1) == ["a"]


def test_a_continue_goes_on_with_the_next_iteration() -> None:
    case = Case(
        """
        a = 0
        for i in pl.range(n):
            b = a
            if i > 2:
                a = 7
            if i > 3:
                continue
            a = 1
        """
    )
    assert case.needed(1) == ["a"] and case.needed(0) == []


def test_dependencies_and_attributes_are_reads() -> None:
    case = Case(
        """
        for i in pl.range(n):
            with pl.at(level=pl.Level.CORE_GROUP) as tid:
                o = pl.store(pl.load(x, [0, 0], [16, 16]), [0, 0], o)
            wide = n
        with pl.at(level=pl.Level.CORE_GROUP, deps=[tid], no_dep_args=[o]):
            o = pl.store(pl.load(x, [0, 0], [16, 16]), [0, 0], o)
        for b in pl.spmd(wide):
            o = pl.store(pl.load(x, [0, 0], [16, 16]), [0, 0], o)
        """
    )
    assert case.needed(0) == ["o", "tid", "wide"]
    # A task id is assigned by its scope, and the null id in front of it belongs to that definition.
    assert case.live.definitions[case.var("tid")] == 1
    assert case.live.needed_after(case.constructs[1], case.var("tid"))


def test_a_later_kernel_with_a_local_of_the_same_name_needs_nothing() -> None:
    case = Case(
        """
        with pl.at(level=pl.Level.CORE_GROUP):
            for i in pl.range(n):
                t = pl.add(w, 1.0)
                u = pl.add(w, 2.0)
        with pl.at(level=pl.Level.CORE_GROUP):
            for j in pl.range(n):
                t = pl.add(w, 3.0)
            o = pl.assemble(o, t, [0, 0])
            o = pl.assemble(o, u, [0, 0])
        """
    )
    assert case.needed(1) == ["u"]  # `t` of the second kernel is its own, `u` is not
    assert case.needed(3) == ["t"]


def test_a_variable_from_before_the_kernel_is_needed_behind_it() -> None:
    case = Case(
        """
        t = pl.add(w, 0.0)
        with pl.at(level=pl.Level.CORE_GROUP):
            for i in pl.range(n):
                t = pl.add(w, 1.0)
        with pl.at(level=pl.Level.CORE_GROUP):
            for j in pl.range(n):
                t = pl.add(w, 3.0)
            o = pl.assemble(o, t, [0, 0])
        """
    )
    assert case.needed(1) == ["t"]


@pytest.mark.parametrize("level", ["CORE_GROUP", "CHIP"])
def test_a_parameter_exists_before_a_scope_that_is_the_first_statement(level: str) -> None:
    case = Case(
        f"""
        with pl.at(level=pl.Level.{level}):
            if n > 1:
                o = pl.assemble(o, x, [0, 0])
        with pl.at(level=pl.Level.{level}):
            o = pl.assemble(o, x, [0, 0])
        """
    )
    assert case.needed(0) == ["o"] and case.needed(1) == ["o"]


def test_assigned_in_the_order_of_last_assignments() -> None:
    case = Case(
        """
        for i in pl.range(n):
            b = i
            if i > 2:
                a = 1
            else:
                c = 2
            for j in pl.range(n):
                b = j
            with pl.at(level=pl.Level.CORE_GROUP) as tid:
                o = pl.store(pl.load(x, [0, 0], [16, 16]), [0, 0], o)
        """
    )
    assert case.assigned(0) == ["a", "c", "j", "b", "o", "tid"]
    assert case.assigned(1) == ["a", "c"]
    assert case.assigned(2) == ["b"]


def test_exposed_reads() -> None:
    assert not Case("a = n\nb = a\nreturn b").live.exposed
    assert [v.name_hint for v in Case("if n > 1:\n    a = n\nreturn a").live.exposed] == ["a"]
    # Also where the loop does run: in SSA form the value would have to be carried out of it.
    assert [v.name_hint for v in Case("for i in pl.range(3):\n    a = n\nreturn a").live.exposed] == ["a"]
    assert [v.name_hint for v in Case("for i in pl.range(3):\n    a = n\nreturn i").live.exposed] == ["i"]


def test_statements_in_two_places_are_noted() -> None:
    case = Case("for i in pl.range(n):\n    a = i\nb = n")
    loop = case.constructs[0]
    assert not case.live.shared
    twice = case.function.replace(body=ir.SeqStmts([loop, loop]))
    assert liveness(twice).shared
