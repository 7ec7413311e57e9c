from __future__ import annotations

import enum
import math
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tree_kit import FP32, INDEX, U, call, check, const, failure, for_loop, seq, var

from pypto.ir import comparison, scalar
from pypto.ir.dtype import DataType
from pypto.ir.enums import (
    Level,
    MemorySpace,
)
from pypto.ir.equality import assert_structural_equal, structural_equal
from pypto.ir.expr import (
    Add,
    Call,
    ConstBool,
    ConstFloat,
    ConstInt,
    Expr,
    GlobalVar,
    IterArg,
    MakeTuple,
    MemRef,
    Op,
    Submit,
    Var,
)
from pypto.ir.hashing import structural_hash
from pypto.ir.mutator import IRMutator
from pypto.ir.node import FrozenDict, FrozenList, IRNode, Kind, Role
from pypto.ir.program import Function, Program
from pypto.ir.span import Span
from pypto.ir.stmt import (
    AssignStmt,
    BreakStmt,
    EvalStmt,
    IfStmt,
    InCoreScopeStmt,
    ReturnStmt,
    SeqStmts,
    Stmt,
    WhileStmt,
    YieldStmt,
    attach_leading_comments,
)
from pypto.ir.stmt import seq as flat
from pypto.ir.traversal import NODE_CLASSES, NODE_FIELDS, walk
from pypto.ir.tree import substitute
from pypto.ir.type import (
    PtrType,
    ScalarType,
    TensorType,
    TileType,
)

# --- what is equal ----------------------------------------------------------------------------------------------------


def test_names_spans_and_comments_do_not_matter() -> None:
    def build(name: str, comment: str, line: int) -> Program:
        span = Span(f"{name}.py", line, 1)
        x, y = Var(name, INDEX, span), Var(f"{name}_2", INDEX, span)
        first = attach_leading_comments(AssignStmt(y, scalar.add(x, const(1), span), span), [comment])
        f = Function("f", [x], [INDEX], SeqStmts([first, ReturnStmt([y], span)], span), span)
        return Program([f, Function("g", [], [], ReturnStmt(U), span)], name, span)

    a, b = build("a", "one", 1), build("b", "two", 7)
    assert structural_equal(a, b) and structural_hash(a) == structural_hash(b)
    assert_structural_equal(a, b)
    f, g = a.get_function("f"), b.get_function("f")
    assert f is not None and g is not None
    assert structural_equal(f, g.replace(name="other"))


def test_whole_programs(twin_zoos: tuple[Program, Program]) -> None:
    a, b = twin_zoos
    for auto in (False, True):
        assert structural_equal(a, a, auto)
        assert structural_equal(a, b, auto, compare_memref=True)
        assert_structural_equal(a, b, auto)


def test_free_variables_need_auto_mapping() -> None:
    x, y = var("x"), var("y")
    assert structural_equal(scalar.add(x, x), scalar.add(x, x))
    assert not structural_equal(scalar.add(x, x), scalar.add(y, y))
    assert structural_equal(scalar.add(x, x), scalar.add(y, y), enable_auto_mapping=True)
    assert not structural_equal(scalar.add(x, x), scalar.add(x, y), True)
    assert not structural_equal(scalar.add(x, y), scalar.add(x, x), True)


def test_a_shared_variable_stands_for_itself() -> None:
    """Not for another one too, whether it is seen before or after, alone or deep inside a shared object."""
    x, y, z = var("x"), var("y"), var("z")
    for shared in (x, scalar.add(x, const(1)), call(attrs={"device": x}), var("t", TensorType([x], FP32))):
        assert structural_equal(MakeTuple([shared, y], U), MakeTuple([shared, z], U), True)
        assert not structural_equal(MakeTuple([shared, x], U), MakeTuple([shared, y], U), True)
        assert not structural_equal(MakeTuple([x, shared], U), MakeTuple([y, shared], U), True)
        assert not structural_equal(MakeTuple([shared, y], U), MakeTuple([shared, x], U), True)
        assert not structural_equal(MakeTuple([y, shared], U), MakeTuple([x, shared], U), True)
        # The same with the shared object further down, where the comparison comes after it has paired x and y.
        late = [seq(EvalStmt(v, U), EvalStmt(MakeTuple([shared], U), U)) for v in (x, y)]
        assert not structural_equal(late[0], late[1], True)
        assert structural_equal(seq(EvalStmt(z, U), late[0]), seq(EvalStmt(y, U), late[0]), True)
    body = EvalStmt(x, U)
    assert not structural_equal(
        Function("f", [x], [], body, U), Function("f", [y], [], body, U)
    )  # x is the parameter on one side and a free variable on the other


def test_definitions_are_always_mapped() -> None:
    for make in (
        lambda v: seq(AssignStmt(v, const(1), U), EvalStmt(v, U)),
        lambda v: seq(for_loop(YieldStmt([const(1)], U), return_vars=[v]), EvalStmt(v, U)),
        lambda v: for_loop(EvalStmt(v, U), loop_var=v),
        lambda v: seq(IfStmt(const(1), YieldStmt(U), YieldStmt(U), [v], U), EvalStmt(v, U)),
        lambda v: seq(WhileStmt(const(1), [], YieldStmt(U), [v], U), EvalStmt(v, U)),
        lambda v: Function("f", [v], [], EvalStmt(v, U), U),
    ):
        assert structural_equal(make(var("a")), make(var("b")))
        assert not structural_equal(make(var("a")), make(var("b", ScalarType(FP32))))
    a, b = IterArg("a", INDEX, const(0), U), IterArg("b", INDEX, const(0), U)
    assert structural_equal(*(for_loop(YieldStmt([v], U), iter_args=[v]) for v in (a, b)))


def test_int64_and_index_mix_for_constants_and_loop_variables_only() -> None:
    wide = ScalarType(DataType.INT64)
    assert structural_equal(const(3), const(3, DataType.INT64))
    assert not structural_equal(const(3), const(3, DataType.INT32))
    a, b = for_loop(seq(), loop_var=var("i")), for_loop(seq(), loop_var=var("i", wide))
    assert structural_equal(a, b) and structural_hash(a) == structural_hash(b)
    assert structural_hash(const(3)) == structural_hash(const(3, DataType.INT64))
    assert not structural_equal(AssignStmt(var("x"), const(1), U), AssignStmt(var("x", wide), const(1), U))
    x, y = var("x"), var("y")
    assert not structural_equal(Add(x, y, DataType.INDEX, U), Add(x, y, DataType.INT64, U))


def test_dims_compare_by_value() -> None:
    a = TensorType([const(4), 8], FP32)
    b = TensorType([const(4, DataType.INT32), 8], FP32)
    assert structural_equal(a, b) and structural_hash(a) == structural_hash(b)


def test_numbers_compare_as_python_does() -> None:
    nan = ConstFloat(math.nan, FP32, U)
    assert structural_equal(nan, nan)
    assert not structural_equal(nan, ConstFloat(math.nan, FP32, U))
    zero, minus = ConstFloat(0.0, FP32, U), ConstFloat(-0.0, FP32, U)
    assert structural_equal(zero, minus) and structural_hash(zero) == structural_hash(minus)
    assert not structural_equal(ConstInt(1, DataType.BOOL, U), ConstBool(True, U))


def test_attributes_are_maps() -> None:
    x, y = var("x"), var("y")
    a = call(kwargs={"p": 1, "q": "s"}, attrs={"u": True, "device": x})
    b = call(kwargs={"q": "s", "p": 1}, attrs={"device": x, "u": True})
    assert structural_equal(a, b) and structural_hash(a) == structural_hash(b)
    c = call(kwargs={"q": "s", "p": 1}, attrs={"device": y, "u": True})
    assert not structural_equal(a, c) and structural_equal(a, c, True)
    assert structural_hash(a) == structural_hash(c, True)
    listed = [call(attrs={"dump_vars": [v, x]}) for v in (x, y)]
    assert not structural_equal(*listed, True)


def test_memrefs_of_types_are_compared_on_request() -> None:
    def tile(offset: int, base: Var) -> Var:
        return var("t", TileType([8], FP32, MemRef(base, offset, 32), None, MemorySpace.Vec))

    base = var("mem", PtrType())
    a, b = tile(0, base), tile(64, base)
    assert structural_equal(a, b, True) and structural_hash(a, True) == structural_hash(b, True)
    assert not structural_equal(a, b, True, compare_memref=True)
    text = failure(a, b, True, compare_memref=True)
    assert "MemRef byte_offset mismatch" in text and "type.memref.byte_offset_.value" in text
    none = var("t", TileType([8], FP32, None, None, MemorySpace.Vec))
    assert structural_equal(a, none, True)
    assert "TileType memref presence mismatch" in failure(a, none, True, compare_memref=True)


def test_submit_is_no_call() -> None:
    x = var("x")
    check(
        Call(GlobalVar("k"), [x], INDEX, U), Submit(GlobalVar("k"), [x], [], INDEX, U), "",
        "Node type mismatch (Call != Submit)", sides=True,
    )  # fmt: skip
    assert structural_equal(Call(GlobalVar("k"), [x], INDEX, U), Call(Op("k"), [x], INDEX, U))


def test_sequences_are_not_unwrapped() -> None:
    stmt = BreakStmt(U)
    assert not structural_equal(SeqStmts([stmt], U), stmt)


def test_absent_nodes() -> None:
    assert structural_equal(None, None)
    text = check(None, const(1), "", "Optional field presence mismatch", sides=True)
    assert "(null)" in text
    with pytest.raises(TypeError):
        structural_equal(1, 2)


# --- every field counts -----------------------------------------------------------------------------------------------


def other_value(value: Any) -> Any:
    if value is None:
        return Level.HOST
    if isinstance(value, bool):
        return not value
    if isinstance(value, (int, float)):
        return value + 1
    if isinstance(value, str):
        return value + "x"
    if isinstance(value, enum.Enum):
        return next((member for member in type(value) if member is not value), Level.HOST)
    assert isinstance(value, FrozenList)
    return FrozenList([*value, value[0]])


def other_node(value: Any) -> Any:
    if isinstance(value, Stmt):
        return InCoreScopeStmt(name_hint="unlike anything else", body=BreakStmt(U))
    if isinstance(value, IterArg):
        return value.replace(type=ScalarType(DataType.HF8))
    return var("unlike", ScalarType(DataType.HF8))


def changed(node: IRNode, info: Any) -> Any:
    value = getattr(node, info.name)
    if info.name == "functions":
        return FrozenDict(dict(list(value.items())[:1]))
    if info.kind is Kind.TYPE:
        return ScalarType(DataType.HF8) if value is not ScalarType(DataType.HF8) else INDEX
    if info.kind is Kind.TYPES:
        return FrozenList([*value, INDEX])
    if info.kind is Kind.ATTRS:
        return FrozenDict({**value, "one_more": 1})
    if info.kind is Kind.OP:
        return Op("another")
    if info.kind is Kind.LIST:
        return FrozenList([*value[:-1], other_node(value[-1])]) if value else FrozenList([var("extra")])
    if info.kind is Kind.OPTIONAL:
        return None if value is not None else const(1)
    return other_value(value) if info.kind is Kind.VALUE else other_node(value)


@pytest.mark.parametrize("cls", NODE_CLASSES, ids=lambda cls: cls.__name__)
def test_every_field_of_every_class_counts_or_is_ignored(cls: type[IRNode], zoo: Program) -> None:
    nodes = [n for n in walk(zoo, types=True) if type(n) is cls]
    for node in (nodes[0], nodes[-1]):
        assert structural_equal(node, node.replace(), True)
        for info in NODE_FIELDS[cls]:
            if info.role is Role.IGNORED:
                unlike = Span("elsewhere.py", 77, 7) if info.name == "span" else "another_name"
                copy = node.replace(**{info.name: unlike})
                assert structural_equal(node, copy, True), info
                assert structural_hash(node, True) == structural_hash(copy, True), info
                continue
            copy = node.replace(**{info.name: changed(node, info)})
            if info.name == "type" and cls is not Var and cls is not IterArg and isinstance(node, Var):
                continue  # the type of a descriptor follows from its class
            text = failure(node, copy, True)
            if not isinstance(node, Var) and info.kind is not Kind.TYPE and info.name not in ("stmts", "functions"):
                assert text.startswith(f"Structural equality assertion failed at: {info.name}"), (info, text)


# --- the two forms agree, and equality is an equivalence --------------------------------------------------------------

NAMES = [var(f"n{i}") for i in range(3)]


@st.composite
def expressions(draw: Callable[..., Any], depth: int = 3) -> Expr:
    kind = draw(st.integers(0, 6 if depth else 2))
    if kind <= 1:
        return NAMES[draw(st.integers(0, 2))]
    if kind == 2:
        return const(draw(st.integers(0, 1)), draw(st.sampled_from([DataType.INDEX, DataType.INT64])))
    if kind == 3:
        return Add(draw(expressions(depth - 1)), draw(expressions(depth - 1)), DataType.INDEX, U)
    if kind == 4:
        return MakeTuple(draw(st.lists(expressions(depth - 1), max_size=2)), U)
    attrs = {"device": draw(expressions(depth - 1))} if draw(st.booleans()) else None
    dims = [draw(expressions(0)) for _ in range(draw(st.integers(0, 2)))]
    return call(draw(expressions(depth - 1)), attrs=attrs, type=TensorType(dims, FP32))


@st.composite
def statements(draw: Callable[..., Any], depth: int = 2) -> Stmt:
    kind = draw(st.integers(0, 4 if depth else 1))
    if kind == 0:
        return EvalStmt(draw(expressions()), U)
    if kind == 1:
        return AssignStmt(NAMES[draw(st.integers(0, 2))], draw(expressions(1)), U)
    if kind == 2:
        return flat(draw(st.lists(statements(depth - 1), max_size=3)))
    carried = [IterArg("c", INDEX, draw(expressions(1)), U)] if draw(st.booleans()) else []
    uses = [EvalStmt(c, U) for c in carried]
    return for_loop(flat([*uses, draw(statements(depth - 1))]), loop_var=NAMES[0], iter_args=carried)


@settings(max_examples=300, deadline=None)
@given(statements(), statements(), st.booleans())
def test_fast_and_telling_comparison_agree(a: Stmt, b: Stmt, auto: bool) -> None:
    equal = structural_equal(a, b, auto)
    assert structural_equal(b, a, auto) is equal
    if equal:
        assert_structural_equal(a, b, auto)
        assert structural_hash(a, auto) == structural_hash(b, auto)
    else:
        with pytest.raises(ValueError, match="Reason: "):
            assert_structural_equal(a, b, auto)


@settings(max_examples=200, deadline=None)
@given(statements(), st.permutations(range(3)))
def test_renaming_keeps_equality(a: Stmt, order: list[int]) -> None:
    renamed = substitute(a, [(NAMES[i], NAMES[j]) for i, j in enumerate(order)])
    assert structural_equal(a, renamed, True)
    assert_structural_equal(renamed, a, True)
    assert structural_hash(a, True) == structural_hash(renamed, True)


@settings(max_examples=200, deadline=None)
@given(st.lists(statements(1), min_size=1, max_size=3), st.booleans())
def test_sharing_does_not_change_the_answer(parts: list[Stmt], auto: bool) -> None:
    """The same trees with nothing shared but variables give the same answer."""
    shared = SeqStmts([*parts, EvalStmt(NAMES[0], U)], U)
    for use in NAMES:
        other = SeqStmts([*parts, EvalStmt(use, U)], U)
        unshared = SeqStmts([*(unshare(s) for s in parts), EvalStmt(use, U)], U)
        assert structural_equal(shared, other, auto) is structural_equal(shared, unshared, auto)
        assert structural_equal(other, shared, auto) is structural_equal(unshared, shared, auto)


def unshare(stmt: Stmt) -> Stmt:
    class Copy(IRMutator):
        def visit_const_int(self, op: ConstInt) -> Expr:
            return op.replace()

        def visit_stmt(self, stmt: Stmt) -> Stmt:
            new = super().visit_stmt(stmt)
            return new.replace() if new is stmt else new

        def visit_expr(self, expr: Expr) -> Expr:
            if type(expr) is Var:
                return expr
            new = super().visit_expr(expr)
            return new.replace() if new is expr and not isinstance(expr, IterArg) else new

    return Copy().visit_stmt(stmt)


# --- depth and growth -------------------------------------------------------------------------------------------------


def test_deep_chains() -> None:
    x, y = var("x"), var("y")

    def chain(v: Var, last: int) -> Expr:
        e: Expr = v
        for i in range(5_000):
            e = Add(e, const(last if i == 0 else 1), DataType.INDEX, U)
        return e

    assert structural_equal(chain(x, 1), chain(y, 1), True)
    assert structural_hash(chain(x, 1), True) == structural_hash(chain(y, 1), True)
    text = failure(chain(x, 1), chain(x, 2))
    assert text.startswith("Structural equality assertion failed at: left.left.left.")
    assert text.split("\n")[0].endswith(".right.value")


def test_nested_carries_are_linear() -> None:
    """An initial value compared at each use would take 2**60 steps."""

    def nest(depth: int) -> Stmt:
        value: Expr = const(1)
        carries = []
        for level in range(depth):
            carries.append(IterArg(f"c{level}", INDEX, Add(value, value, DataType.INDEX, U), U))
            value = carries[-1]
        inner: Stmt = YieldStmt([value, value], U)
        for carried in reversed(carries):
            inner = for_loop(inner, iter_args=[carried])
        return inner

    assert structural_equal(nest(60), nest(60))
    assert structural_hash(nest(60)) == structural_hash(nest(60))


def test_comparisons_are_linear(monkeypatch: pytest.MonkeyPatch) -> None:
    steps = 0
    rules = comparison._FAST

    class Counting(dict[type, Any]):
        def __missing__(self, cls: type) -> Any:
            rule = rules[cls]

            def count(*arguments: Any) -> bool:
                nonlocal steps
                steps += 1
                return rule(*arguments)

            self[cls] = count
            return count

    monkeypatch.setattr(comparison, "_FAST", Counting())

    def build(count: int) -> Stmt:
        previous: Expr = const(0)
        body = []
        for _ in range(count):
            v = var("v", TensorType([8], FP32))
            body.append(AssignStmt(v, call(previous, type=v.type), U))
            previous = v
        return SeqStmts(body, U)

    def cost(count: int) -> int:
        nonlocal steps
        steps = 0
        assert structural_equal(build(count), build(count))
        return steps

    assert cost(2_000) <= 2.01 * cost(1_000)
