"""Spans and nodes: construction, immutability, scalar arithmetic, calls, statements, functions, programs."""

import gc
import weakref

import pytest

from pypto import ir
from pypto.diag.errors import InternalError
from pypto.ir.call import Call as CallClass
from pypto.ir.node import FrozenDict, FrozenList
from pypto.ir.stmt import seq

S = ir.Span.unknown()
INDEX = ir.ScalarType(ir.INDEX)


def var(name="x", dtype=ir.INDEX):
    return ir.Var(name, ir.ScalarType(dtype), S)


def const(value, dtype=ir.INDEX):
    return ir.ConstInt(value, dtype, S)


def same(got, wanted):
    """Pairwise equality; expressions by identity, since ``==`` on them builds a node, which is truthy."""
    return len(got) == len(wanted) and all(
        g is w if isinstance(g, ir.Expr) or isinstance(w, ir.Expr) else g == w for g, w in zip(got, wanted, strict=True)
    )


def assign(name="a", value=1):
    return ir.AssignStmt(var(name), const(value), S)


# --- spans ------------------------------------------------------------------------------------------------------------


def test_span_fields_and_text():
    span = ir.Span("f.py", 3, 5, 4, 2)
    assert same(
        (span.filename, span.begin_line, span.begin_column, span.end_line, span.end_column), ("f.py", 3, 5, 4, 2)
    )
    assert span.to_string() == str(span) == repr(span) == "f.py:3:5"
    unknown = ir.Span.unknown()
    assert same((unknown.filename, unknown.begin_line, unknown.begin_column), ("", -1, -1))
    assert same((unknown.end_line, unknown.end_column), (-1, -1))
    with pytest.raises(AttributeError):
        span.begin_line = 1


@pytest.mark.parametrize(
    ("numbers", "valid"),
    [
        ((1, 1), True),
        ((1, -1), True),
        ((0, 1), False),
        ((1, 0), False),
        ((-1, -1), False),
        ((3, 5, 3, 5), True),
        ((3, 5, 3, 4), False),
        ((3, 5, 4, 1), True),
        ((3, 5, 2, 9), False),
        ((3, 5, 0, 9), False),
        ((3, 5, 2, -1), True),
    ],
)
def test_span_validity(numbers, valid):
    assert ir.Span("f.py", *numbers).is_valid() is valid


# --- what all nodes share ---------------------------------------------------------------------------------------------


def all_kinds():
    x, y = var("x"), var("y")
    body = assign()
    base = ir.Var("m", ir.PtrType(), S)
    buffer = ir.WindowBuffer(base, const(64), span=S)
    function = ir.Function("f", [x], [INDEX], ir.ReturnStmt([x], S), S)
    return [
        x,
        ir.IterArg("i", INDEX, x, S),
        buffer,
        const(1),
        ir.ConstFloat(1.0, ir.FP32, S),
        ir.ConstBool(True, S),
        ir.Add(x, y, ir.INDEX, S),
        ir.Neg(x, ir.INDEX, S),
        ir.MakeTuple([x, y], S),
        ir.TupleGetItemExpr(ir.MakeTuple([x], S), 0, S),
        ir.Call(ir.Op("my.op"), [x], {"k": 1}, {"a": x}, INDEX, S),
        ir.Submit(ir.GlobalVar("k"), [x], [], INDEX, S, core_num=2),
        body,
        ir.IfStmt(x, body, None, [], S),
        ir.YieldStmt([x], S),
        ir.ReturnStmt(S),
        ir.ForStmt(x, const(0), y, const(1), [], body, [], S, attrs={"pipeline_stages": 2}),
        ir.WhileStmt(x, [], body, [], S),
        ir.SeqStmts([body], S),
        ir.EvalStmt(x, S),
        ir.BreakStmt(S),
        ir.ContinueStmt(S),
        ir.InlineStmt("pass", ir.InlineLanguage.Python, S),
        ir.InCoreScopeStmt(body=body, span=S),
        ir.ClusterScopeStmt(body=body, span=S),
        ir.HierarchyScopeStmt(ir.Level.HOST, body=body, span=S),
        ir.SpmdScopeStmt(4, body=body, span=S),
        ir.SplitAivScopeStmt(ir.SplitMode.UP_DOWN, body=body, span=S),
        ir.RuntimeScopeStmt(body=body, span=S),
        ir.CommDomainScopeStmt([0, 1], [buffer], body=body, span=S),
        function,
        ir.Program([function], "P", S),
    ]


@pytest.mark.parametrize("node", all_kinds(), ids=lambda n: type(n).__name__)
def test_no_field_can_be_assigned(node):
    for info in type(node).node_fields:
        with pytest.raises(AttributeError):
            setattr(node, info.name, None)
        with pytest.raises(AttributeError):
            delattr(node, info.name)
    with pytest.raises(AttributeError):
        node.unheard_of = 1


@pytest.mark.parametrize("node", all_kinds(), ids=lambda n: type(n).__name__)
def test_identity(node):
    copy = node.replace()
    assert node.same_as(node)
    assert not node.same_as(copy)
    assert hash(node) != hash(copy)
    for info in type(node).node_fields:
        assert getattr(copy, info.name) is getattr(node, info.name)
    with pytest.raises(TypeError):
        node.replace(unheard_of=1)


@pytest.mark.parametrize("node", all_kinds(), ids=lambda n: type(n).__name__)
def test_containers_are_read_only(node):
    for info in type(node).node_fields:
        value = getattr(node, info.name)
        if isinstance(value, list):
            assert type(value) is FrozenList
            for change in (lambda v: v.append(1), lambda v: v.clear(), lambda v: v.sort(), lambda v: v.__iadd__([1])):
                with pytest.raises(TypeError):
                    change(value)
        elif isinstance(value, dict):
            assert type(value) is FrozenDict
            for change in (lambda v: v.update(a=1), lambda v: v.pop("a", None), lambda v: v.setdefault("b", 1)):
                with pytest.raises(TypeError):
                    change(value)


def test_constructor_arguments_are_copied():
    args, attrs, stmts = [var()], {"a": 1}, [assign()]
    call, block = ir.Call(ir.Op("o"), args, {}, attrs, INDEX, S), ir.SeqStmts(stmts, S)
    args.append(var())
    attrs["b"] = 2
    stmts.clear()
    assert len(call.args) == 1
    assert dict(call.attrs) == {"a": 1}
    assert len(block.stmts) == 1


def test_nodes_can_be_referenced_weakly():
    node = var()
    reference = weakref.ref(node)
    del node
    gc.collect()
    assert reference() is None


@pytest.mark.parametrize("cls", [ir.IRNode, ir.Expr, ir.Stmt, ir.BinaryExpr, ir.UnaryExpr, ir.ScopeStmt])
def test_abstract_classes_refuse(cls):
    for arguments in ((), (S,), (var(), var(), ir.INDEX, S)):
        with pytest.raises(TypeError, match="abstract"):
            cls(*arguments)


def test_arguments_by_keyword_in_declaration_order():
    x, body = var(), assign()
    assert ir.Var(name_hint="v", type=INDEX, span=S).name_hint == "v"
    assert ir.IterArg(name_hint="v", type=INDEX, initValue=x, span=S).initValue is x
    assert ir.ConstInt(value=3, dtype=ir.INT32, span=S).value == 3
    assert ir.Add(left=x, right=x, dtype=ir.INT32, span=S).dtype is ir.INT32
    assert ir.Neg(operand=x, dtype=ir.INT32, span=S).operand is x
    assert ir.MakeTuple(elements=[x], span=S).elements[0] is x
    assert ir.TupleGetItemExpr(tuple=ir.MakeTuple([x], S), index=0, span=S).index == 0
    assert ir.Call(op=ir.Op("o"), args=[x], kwargs={}, attrs=None, type=INDEX, span=S).type is INDEX
    assert ir.AssignStmt(var=x, value=x, span=S).var is x
    assert ir.IfStmt(condition=x, then_body=body, else_body=None, return_vars=[], span=S).then_body is body
    assert ir.YieldStmt(value=[x], span=S).value[0] is x
    assert ir.WhileStmt(condition=x, iter_args=[], body=body, return_vars=[], span=S).condition is x
    assert ir.SeqStmts(stmts=[body], span=S)[0] is body
    assert ir.EvalStmt(expr=x, span=S).expr is x
    assert ir.InlineStmt(body="pass", language=ir.InlineLanguage.Python, span=S).body == "pass"
    loop = ir.ForStmt(
        loop_var=x, start=x, stop=x, step=x, iter_args=[], body=body, return_vars=[], span=S, kind=ir.ForKind.Unroll
    )
    assert loop.kind is ir.ForKind.Unroll


@pytest.mark.parametrize(
    "make",
    [
        lambda: ir.Var("x", ir.INDEX, S),
        lambda: ir.Var(1, INDEX, S),
        lambda: ir.IterArg("x", INDEX, 0, S),
        lambda: ir.AssignStmt("x", const(1), S),
        lambda: ir.AssignStmt(var(), 1, S),
        lambda: ir.AssignStmt(const(1), const(1), S),
        lambda: ir.IfStmt(var(), None, None, [], S),
        lambda: ir.IfStmt(var(), assign(), var(), [], S),
        lambda: ir.IfStmt(var(), assign(), None, [const(1)], S),
        lambda: ir.EvalStmt(assign(), S),
        lambda: ir.EvalStmt(var(), "here"),
        lambda: ir.SeqStmts([var()], S),
        lambda: ir.SeqStmts(assign(), S),
        lambda: ir.YieldStmt([1], S),
        lambda: ir.ForStmt(var(), 0, const(1), const(1), [], assign(), [], S),
        lambda: ir.ForStmt(var(), const(0), const(1), const(1), [var()], assign(), [], S),
        lambda: ir.WhileStmt(var(), [var()], assign(), [], S),
        lambda: ir.Call("my.op", [], S),
        lambda: ir.Call(ir.Op("o"), [1], S),
        lambda: ir.Call(ir.Op("o"), [], ["k"], S),
        lambda: ir.Call(ir.Op("o"), [], {}, {}, "type", S),
        lambda: ir.MakeTuple([1], S),
        lambda: ir.ConstInt(1.5, ir.INT32, S),
        lambda: ir.ConstInt(1, "int32", S),
        lambda: ir.ConstFloat("1", ir.FP32, S),
        lambda: ir.ConstBool("yes", S),
        lambda: ir.InlineStmt(1, ir.InlineLanguage.Python, S),
        lambda: ir.Op(3),
        lambda: ir.Function("f", [const(1)], [], assign(), S),
        lambda: ir.Function("f", [(var(), ir.ParamDirection.In, 1)], [], assign(), S),
        lambda: ir.Function("f", [(var(), "In")], [], assign(), S),
        lambda: ir.Function("f", [], [ir.FP32], assign(), S),
        lambda: ir.Program([assign()], "P", S),
    ],
)
def test_arguments_of_the_wrong_kind(make):
    with pytest.raises(TypeError):
        make()


# --- comments ---------------------------------------------------------------------------------------------------------


def test_leading_comments():
    stmt = assign()
    assert stmt.leading_comments == []
    assert ir.attach_leading_comments(stmt, ["one", "two"]) is stmt
    assert stmt.leading_comments == ["one", "two"]
    stmt.leading_comments.append("three")
    assert stmt.leading_comments == ["one", "two"]
    ir.attach_leading_comments(stmt, ["new"])
    assert stmt.replace(value=const(2)).leading_comments == ["new"]
    with pytest.raises(ValueError, match="SeqStmts"):
        ir.attach_leading_comments(ir.SeqStmts([stmt], S), ["no"])
    for bad in (var(), None, "x"):
        with pytest.raises(TypeError):
            ir.attach_leading_comments(bad, ["no"])


# --- ops --------------------------------------------------------------------------------------------------------------


def test_ops_compare_by_name():
    assert ir.Op("f") == ir.Op("f")
    assert ir.GlobalVar("f") == ir.GlobalVar("f")
    assert ir.Op("f") != ir.Op("g")
    assert hash(ir.GlobalVar("f")) == hash(ir.GlobalVar("f"))
    assert isinstance(ir.GlobalVar("f"), ir.Op)
    with pytest.raises(AttributeError):
        ir.Op("f").name = "g"
    assert ir.Op("my.unregistered").get_attr_keys() == []
    assert not ir.Op("my.unregistered").has_attr("k")


# --- variables --------------------------------------------------------------------------------------------------------


def test_variables_are_unique():
    a, b = var("v"), var("v")
    assert a is not b
    assert a.unique_id < b.unique_id
    assert a.replace().unique_id > b.unique_id
    with pytest.raises(AttributeError):
        a.unique_id = 0


def test_iter_arg_is_a_var():
    x = var()
    it = ir.IterArg("it", INDEX, x, S)
    assert isinstance(it, ir.Var)
    assert it.initValue is x
    assert it.replace(initValue=it).initValue is it


# --- memory references ------------------------------------------------------------------------------------------------


def base(name="buf"):
    return ir.Var(name, ir.PtrType(), S)


def test_memref_declared_by_the_author():
    for ref, name, slots in (
        (ir.MemRef(), "", 1),
        (ir.MemRef(slots=3), "", 3),
        (ir.MemRef(span=S, slots=3), "", 3),
        (ir.MemRef("ping"), "ping", 1),
        (ir.MemRef(name="ping", span=S, slots=2), "ping", 2),
        (ir.MemRef("ping", S, 2), "ping", 2),
    ):
        assert same((ref.name_hint, ref.slot_count_, ref.is_pinned_), (name, slots, True))
        assert same((ref.byte_offset_.value, ref.size_, ref.slot_index_), (0, 0, None))
        assert isinstance(ref.base_.type, ir.PtrType)


def test_memref_in_an_allocation():
    b, n = base(), var("n")
    ref = ir.MemRef(b, 64, 128)
    assert same((ref.base_, ref.name_hint, ref.size_, ref.is_pinned_, ref.slot_count_), (b, "buf", 128, False, 1))
    assert same((ref.byte_offset_.value, ref.byte_offset_.dtype), (64, ir.INT64))
    assert ir.MemRef(b, n, 128).byte_offset_ is n
    full = ir.MemRef(base=b, byte_offset=0, size=8, span=S, is_pinned=True, slots=2, slot=1)
    assert same((full.is_pinned_, full.slot_count_, full.slot_index_.value), (True, 2, 1))
    positional = ir.MemRef(b, 0, 8, S, True, 2, n)
    assert same((positional.is_pinned_, positional.slot_count_, positional.slot_index_), (True, 2, n))
    made = [ir.MemRef("buf", 0, 8), ir.MemRef("buf", 0, 8)]
    assert made[0].base_ is not made[1].base_
    assert made[0].name_hint == "buf"


def test_memref_of_the_older_forms():
    n = var("n")
    assert ir.MemRef(ir.MemorySpace.LeftScale, 32, 8, 7, S).name_hint == "mem_leftscale_7"
    assert ir.MemRef(ir.MemorySpace.Vec, 32, 8, 7).byte_offset_.value == 32
    assert ir.MemRef(ir.MemorySpace.Vec, n, 8, 7).byte_offset_ is n
    old = ir.MemRef(256, 8, 3)
    assert same((old.name_hint, old.byte_offset_.value, old.byte_offset_.dtype), ("mem_3", 256, ir.INDEX))
    assert ir.MemRef(addr=256, size=8, id=3, span=S).name_hint == "mem_3"


def test_memref_refuses():
    for slots in (0, -1, True):
        with pytest.raises(ValueError, match="slots"):
            ir.MemRef(slots=slots)
    for arguments in ((base(), 0), (1, 2), (base(), 0, 8, S, False, 1, None, 4), (ir.MemorySpace.Vec, 0, 8)):
        with pytest.raises(TypeError, match="requires 3 arguments"):
            ir.MemRef(*arguments)
    for arguments in ((const(1), 0, 8), (base(), "0", 8), (base(), 0, "8")):
        with pytest.raises(TypeError):
            ir.MemRef(*arguments)
    with pytest.raises(TypeError, match="unexpected"):
        ir.MemRef(base(), 0, 8, color=1)


def test_memref_fields_are_assignable():
    ref, other = ir.MemRef(base(), 0, 8), base("other")
    ref.base_ = other
    ref.size_ = 16
    ref.byte_offset_ = const(4)
    ref.slot_index_ = const(1)
    assert same((ref.base_, ref.name_hint, ref.size_), (other, "other", 16))
    for name in ("name_hint", "type", "span", "size"):
        with pytest.raises(AttributeError):
            setattr(ref, name, None)
    copy = ref.replace(size_=32)
    assert same((copy.base_, copy.size_, ref.size_), (other, 32, 16))


def test_memref_slots():
    decl = ir.MemRef("pp", slots=2)
    slot = decl[1]
    assert slot.base_ is decl.base_
    assert same((slot.slot_index_.value, slot.slot_index_.dtype, slot.is_pinned_), (1, ir.INDEX, True))
    assert decl.slot_index_ is None
    for index in (-1, 2):
        with pytest.raises(IndexError, match=f"Slot index {index} is out of range"):
            decl[index]
    with pytest.raises(ValueError, match="cannot be subscripted"):
        ir.MemRef(base(), 0, 8, slots=2)[0]
    index = var()
    assert decl[index].slot_index_ is index  # known at run time only


def test_memref_aliasing():
    b = base()
    low, high, over = ir.MemRef(b, 0, 64), ir.MemRef(b, 64, 64), ir.MemRef(b, 32, 64)
    assert ir.MemRef.same_allocation(low, high)
    assert not ir.MemRef.may_alias(low, high)
    assert ir.MemRef.may_alias(low, over)
    assert ir.MemRef.may_alias(over, high)
    assert ir.MemRef.may_alias(ir.MemRef(b, var(), 64), high)
    assert not ir.MemRef.same_allocation(low, ir.MemRef(base(), 0, 64))
    assert not ir.MemRef.may_alias(low, ir.MemRef(base(), 0, 64))


def test_window_buffer():
    b = base("w")
    buffer = ir.WindowBuffer(b, const(64), store_to_host=True, span=S)
    assert same((buffer.name_hint, buffer.base), ("w", b))
    assert same((buffer.load_from_host, buffer.store_to_host), (False, True))
    assert isinstance(buffer, ir.Var)
    assert isinstance(buffer.type, ir.WindowBufferType)


# --- constants --------------------------------------------------------------------------------------------------------


def test_constants():
    assert same((const(3, ir.INT8).value, const(3, ir.INT8).dtype, const(3).type), (3, ir.INT8, INDEX))
    assert ir.ConstFloat(2, ir.FP16, S).value == 2.0
    assert type(ir.ConstFloat(2, ir.FP16, S).value) is float
    assert ir.ConstBool(True, S).dtype is ir.BOOL
    for value in (-(2**63), 2**63 - 1):
        assert const(value, ir.INT64).value == value
    for value in (-(2**63) - 1, 2**63):
        with pytest.raises(ValueError, match="64-bit"):
            const(value, ir.INT64)


# --- operators --------------------------------------------------------------------------------------------------------

BINARY = (
    "Add Sub Mul FloorDiv FloorMod FloatDiv Min Max Pow Eq Ne Lt Le Gt Ge And Or Xor BitAnd BitOr BitXor BitShiftLeft "
    "BitShiftRight"
).split()
ARITHMETIC = {
    "add": "Add",
    "sub": "Sub",
    "mul": "Mul",
    "truediv": "FloatDiv",
    "floordiv": "FloorDiv",
    "mod": "FloorMod",
    "pow": "Pow",
    "min_": "Min",
    "max_": "Max",
}
COMPARISON = {"eq": "Eq", "ne": "Ne", "lt": "Lt", "le": "Le", "gt": "Gt", "ge": "Ge"}
BITS = {
    "bit_and": "BitAnd",
    "bit_or": "BitOr",
    "bit_xor": "BitXor",
    "bit_shift_left": "BitShiftLeft",
    "bit_shift_right": "BitShiftRight",
}


@pytest.mark.parametrize("name", BINARY)
def test_binary_nodes_validate_nothing(name):
    x, f = var("x"), var("f", ir.FP32)
    node = getattr(ir, name)(x, f, ir.INT8, S)
    assert isinstance(node, ir.BinaryExpr)
    assert same((node.left, node.right, node.type, node.dtype), (x, f, ir.ScalarType(ir.INT8), ir.INT8))


@pytest.mark.parametrize("name", ["Abs", "Neg", "Not", "BitNot", "Cast"])
def test_unary_nodes_validate_nothing(name):
    x = var("x")
    node = getattr(ir, name)(x, ir.INT8, S)
    assert isinstance(node, ir.UnaryExpr)
    assert same((node.operand, node.dtype), (x, ir.INT8))


@pytest.mark.parametrize(("helper", "cls"), [*ARITHMETIC.items(), *BITS.items()])
def test_arithmetic_promotes(helper, cls):
    make = getattr(ir, helper)
    narrow, wide = var("a", ir.INT32), var("b", ir.INT64)
    here = ir.Span("f.py", 1, 1)
    node = make(narrow, wide, here)
    assert type(node).__name__ == cls
    assert same((node.dtype, node.right, node.span), (ir.INT64, wide, here))
    assert type(node.left) is ir.Cast
    assert same((node.left.operand, node.left.dtype), (narrow, ir.INT64))
    assert make(lhs=wide, rhs=wide).left is wide
    # on equal width the left dtype wins
    signed, unsigned = var("a", ir.INT32), var("b", ir.UINT32)
    node = make(unsigned, signed)
    assert same((node.dtype, node.left, type(node.right)), (ir.UINT32, unsigned, ir.Cast))


@pytest.mark.parametrize(("helper", "cls"), COMPARISON.items())
def test_comparisons_promote_and_give_bool(helper, cls):
    node = getattr(ir, helper)(var("a", ir.FP16), var("b", ir.FP32))
    assert type(node).__name__ == cls
    assert node.dtype is ir.BOOL
    assert node.left.dtype is ir.FP32


def test_index_and_int64_mix_without_a_cast():
    i, j = var("i", ir.INDEX), var("j", ir.INT64)
    assert same((ir.add(i, j).left, ir.add(i, j).right, ir.add(i, j).dtype), (i, j, ir.INDEX))
    assert ir.add(j, i).dtype is ir.INT64


def test_logic_is_unchecked():
    x, f = var("x"), var("f", ir.FP32)
    assert same((type(ir.and_(x, f)), ir.and_(x, f).dtype), (ir.And, ir.BOOL))
    assert same((type(ir.or_(x, f)), ir.or_(x, f).dtype), (ir.Or, ir.BOOL))
    assert same((type(ir.not_(f)), ir.not_(f).dtype), (ir.Not, ir.BOOL))


def test_unary_helpers():
    x, f = var("x", ir.INT16), var("f", ir.FP32)
    assert same((type(ir.neg(f)), ir.neg(f).dtype), (ir.Neg, ir.FP32))
    assert same((type(ir.bit_not(x)), ir.bit_not(x).dtype), (ir.BitNot, ir.INT16))
    assert same((type(ir.cast(x, ir.FP16)), ir.cast(operand=x, dtype=ir.FP16).dtype), (ir.Cast, ir.FP16))
    with pytest.raises(TypeError, match="requires integer dtype"):
        ir.bit_not(f)


@pytest.mark.parametrize("helper", [*ARITHMETIC, *COMPARISON])
def test_refused_operands(helper):
    make = getattr(ir, helper)
    x, f, b, t = var("x"), var("f", ir.FP32), var("b", ir.BOOL), var("t", ir.DataType.TASK_ID)
    tensor = ir.Var("t", ir.TensorType([4], ir.FP32), S)
    for bad in (tensor, 1, "x"):
        with pytest.raises(TypeError, match="must be ScalarExpr or Var with ScalarType"):
            make(x, bad)
    with pytest.raises(TypeError, match="does not accept bool dtype"):
        make(b, b)
    with pytest.raises(TypeError, match="requires numeric scalar dtype"):
        make(t, x)
    with pytest.raises(TypeError, match="requires same numeric dtype category"):
        make(x, f)


@pytest.mark.parametrize("helper", BITS)
def test_bit_operations_need_integers(helper):
    with pytest.raises(TypeError, match="requires integer dtype"):
        getattr(ir, helper)(var("f", ir.FP32), var("g", ir.FP32))


PYTHON_OPERATORS = {
    "+": "Add",
    "-": "Sub",
    "*": "Mul",
    "/": "FloatDiv",
    "//": "FloorDiv",
    "%": "FloorMod",
    "**": "Pow",
    "==": "Eq",
    "!=": "Ne",
    "<": "Lt",
    "<=": "Le",
    ">": "Gt",
    ">=": "Ge",
    "&": "BitAnd",
    "|": "BitOr",
    "^": "BitXor",
    "<<": "BitShiftLeft",
    ">>": "BitShiftRight",
}
MIRRORED = {"<": "Gt", "<=": "Ge", ">": "Lt", ">=": "Le"}


@pytest.mark.parametrize("symbol", PYTHON_OPERATORS)
def test_python_operators(symbol):
    x, y = var("x"), var("y")
    cls = PYTHON_OPERATORS[symbol]
    node = eval(f"x {symbol} y")
    assert same((type(node).__name__, node.left, node.right), (cls, x, y))
    node = eval(f"x {symbol} 3")
    assert same((type(node).__name__, node.left, node.right.value, node.right.dtype), (cls, x, 3, ir.INDEX))
    node = eval(f"3 {symbol} x")
    if symbol in ("==", "!=") or symbol in MIRRORED:  # Python asks the right operand for the mirrored comparison
        assert same((type(node).__name__, node.left, node.right.value), (MIRRORED.get(symbol, cls), x, 3))
    else:
        assert same((type(node).__name__, node.left.value, node.right), (cls, 3, x))


def test_unary_python_operators_and_floats():
    x, f = var("x"), var("f", ir.FP32)
    assert type(-x) is ir.Neg
    assert type(~x) is ir.BitNot
    assert same(((f + 1.5).right.value, (f + 1.5).right.dtype), (1.5, ir.FP32))
    with pytest.raises(TypeError, match="category"):
        f + 1
    for bad in (True, "x", None, [1]):
        with pytest.raises(TypeError):
            x + bad


def test_the_span_of_an_operator_is_the_callers_line():
    x = var("x")
    node = x + 1
    line = test_the_span_of_an_operator_is_the_callers_line.__code__.co_firstlineno + 2
    assert same((node.span.filename, node.span.begin_line, node.span.begin_column), (__file__, line, -1))


def test_numpy_numbers_on_either_side():
    np = pytest.importorskip("numpy")
    x = var("x")
    assert same((type(np.int64(2) * x), (np.int64(2) * x).left.value), (ir.Mul, 2))
    assert same((type(x * np.int32(2)), (x * np.int32(2)).right.value), (ir.Mul, 2))


def test_expressions_are_truthy():
    x, y = var("x"), var("y")
    assert bool(x == y)
    assert bool(ir.ConstBool(False, S))
    assert bool(const(0))


def test_long_chains_can_be_built():
    node = var("x")
    for _ in range(20_000):
        node = node + 1
    assert node.dtype is ir.INDEX


# --- tuples -----------------------------------------------------------------------------------------------------------


def test_tuples():
    x, f = var("x"), var("f", ir.FP32)
    pair = ir.MakeTuple([x, f], S)
    assert pair.type == ir.TupleType([x.type, f.type])
    assert ir.TupleGetItemExpr(pair, 1, S).type is f.type
    for index in (-1, 2):
        with pytest.raises(ValueError, match="out of bounds"):
            ir.TupleGetItemExpr(pair, index, S)
    with pytest.raises(ValueError, match="TupleType"):
        ir.TupleGetItemExpr(x, 0, S)


# --- calls ------------------------------------------------------------------------------------------------------------


def test_call_overloads():
    op, x = ir.Op("my.op"), var("x")
    directions = {"arg_directions": [ir.ArgDirection.Input]}
    for call, kind, kwargs, attrs in (
        (ir.Call(op, [x], S), ir.UnknownType(), {}, {}),
        (ir.Call(op, [x], INDEX, S), INDEX, {}, {}),
        (ir.Call(op, [x], {"k": 1}, S), ir.UnknownType(), {"k": 1}, {}),
        (ir.Call(op, [x], {"k": 1}, INDEX, S), INDEX, {"k": 1}, {}),
        (ir.Call(op, [x], {"k": 1}, None, INDEX, S), INDEX, {"k": 1}, {}),
        (ir.Call(op, [x], {}, directions, INDEX, S), INDEX, {}, directions),
        (ir.Call(op, [x], {}, list(directions.items()), INDEX, S), INDEX, {}, directions),
        (ir.Call(op, [x], {"k": 1}, attrs=directions, type=INDEX, span=S), INDEX, {"k": 1}, directions),
    ):
        assert call.op is op
        assert call.args[0] is x
        assert same((call.type, dict(call.kwargs), dict(call.attrs)), (kind, kwargs, attrs))
        assert call.arg_directions == attrs.get("arg_directions", [])


def test_attrs_in_a_wrong_container():
    for bad in ((("a", 1),), 3, "ab", ["ab"], [("a", 1, 2)]):
        with pytest.raises(TypeError, match=r"attrs must be a dict, list of \(key, value\) tuples, or None"):
            ir.Call(ir.Op("o"), [], {}, bad, INDEX, S)


def test_direction_count_must_match():
    attrs = {"arg_directions": [ir.ArgDirection.Input] * 2}
    with pytest.raises(TypeError, match=r"attrs\['arg_directions'\] size \(2\) must match args size \(1\)"):
        ir.Call(ir.Op("o"), [var()], {}, attrs, INDEX, S)
    with pytest.raises(TypeError, match=r"attrs\['arg_directions'\] size \(2\) must match args size \(1\)"):
        ir.Submit(ir.GlobalVar("k"), [var()], [], {}, attrs, INDEX, S)
    assert ir.Call(ir.Op("o"), [var()], {}, {"arg_directions": []}, INDEX, S).arg_directions == []


def test_maps_keep_insertion_order():
    call = ir.Call(ir.Op("o"), [], {"z": 1, "a": 2}, {"y": 1, "b": 2}, INDEX, S)
    assert same((list(call.kwargs), list(call.attrs)), (["z", "a"], ["y", "b"]))


def stored(value, key="k"):
    return ir.Call(ir.Op("o"), [], {key: value}, S).kwargs[key]


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (True, bool),
        (7, int),
        (2**31 - 1, int),
        (-(2**31), int),
        (1.5, float),
        ("text", str),
        (ir.FP32, ir.DataType),
        (ir.MemorySpace.Vec, ir.MemorySpace),
        (ir.TensorLayout.DN, ir.TensorLayout),
        (ir.TileLayout.col_major, ir.TileLayout),
        (ir.PadValue.zero, ir.PadValue),
        (ir.ArgDirection.Input, ir.ArgDirection),
    ],
)
def test_attribute_values_keep_their_kind(value, kind):
    assert stored(value) == value
    assert type(stored(value)) is kind


@pytest.mark.parametrize(
    "value",
    [
        ir.PipeType.V,
        ir.CoreType.VECTOR,
        ir.SplitMode.UP_DOWN,
        ir.NotifyOp.Set,
        ir.WaitCmp.Ge,
        ir.AtomicType.Add,
        ir.ReduceOp.Prod,
    ],
)
def test_enums_stored_as_ints(value):
    assert stored(value) == value.value
    assert type(stored(value)) is int


def test_attribute_expressions_and_lists():
    x, y = var("x"), var("y")
    sum_ = x + y
    assert stored(x, "task_id_var") is x
    assert stored(sum_) is sum_
    for key in ("manual_dep_edges", "compiler_manual_dep_edges", "arg_direction_overrides_vars", "dump_vars"):
        assert stored([x, y], key)[1] is y
        assert stored((), key) == []
        with pytest.raises(TypeError):
            stored([const(1)], key)
    assert stored([x, y])[0] is x
    with pytest.raises(TypeError, match="Unsupported list element type for key"):
        stored([x, 1])
    assert stored([]) == []
    assert stored((ir.ArgDirection.Output,)) == [ir.ArgDirection.Output]
    assert stored([0, 2], "arg_direction_overrides") == [0, 2]


@pytest.mark.parametrize(
    ("value", "key", "error"),
    [
        (2**31, "k", ValueError),
        (-(2**31) - 1, "k", ValueError),
        ([1], "k", TypeError),
        (["a"], "k", TypeError),
        ([True], "arg_direction_overrides", TypeError),
        (["0"], "arg_direction_overrides", TypeError),
        ([2**31], "arg_direction_overrides", ValueError),
        (None, "k", TypeError),
        (object(), "k", TypeError),
        ({}, "k", TypeError),
        (ir.Level.HOST, "k", TypeError),
        (1, 3, TypeError),
    ],
)
def test_refused_attribute_values(value, key, error):
    with pytest.raises(error):
        stored(value, key)


def test_messages_of_refused_attribute_values():
    with pytest.raises(TypeError, match="Unsupported kwarg type for key: color"):
        stored(object(), "color")
    with pytest.raises(TypeError, match="Unsupported list element type for key: color"):
        stored([1], "color")


def test_core_num_attr_becomes_an_expression():
    for call in (
        ir.Call(ir.GlobalVar("k"), [], {}, {"core_num": 4}, INDEX, S),
        ir.Submit(ir.GlobalVar("k"), [], [], {}, {"core_num": 4}, INDEX, S),
    ):
        assert same((call.attrs["core_num"].value, call.attrs["core_num"].dtype), (4, ir.INDEX))


def test_call_make_is_the_unchecked_constructor():
    op, args, kwargs, attrs = ir.Op("o"), FrozenList([var()]), FrozenDict(), FrozenDict(a=1)
    call = CallClass.make(op, args, kwargs, attrs, INDEX, S)
    assert same((call.args is args, call.kwargs is kwargs, call.attrs is attrs), (True, True, True))
    assert same((call.op, call.type, call.span), (op, INDEX, S))


def test_set_call_attrs():
    call = ir.Call(ir.Op("o"), [var()], {"k": 1}, {"old": 1}, INDEX, ir.Span("f.py", 1, 1))
    changed = ir.set_call_attrs(call, {"new": True})
    assert same((dict(changed.attrs), dict(call.attrs)), ({"new": True}, {"old": 1}))
    assert same((changed.op, changed.span, dict(changed.kwargs)), (call.op, call.span, {"k": 1}))
    with pytest.raises(TypeError, match="must match args size"):
        ir.set_call_attrs(call, {"arg_directions": [ir.ArgDirection.Input] * 2})
    with pytest.raises(TypeError):
        ir.set_call_attrs(var(), {})


# --- submits ----------------------------------------------------------------------------------------------------------

TASK = ir.ScalarType(ir.DataType.TASK_ID)


def test_submit():
    x, dep, predicate = var("x"), ir.Var("t", TASK, S), ir.ConstBool(True, S)
    plain = ir.Submit(ir.GlobalVar("k"), [x], [dep], TASK, S)
    assert same((plain.op, plain.args[0], plain.deps[0], plain.type), (ir.GlobalVar("k"), x, dep, TASK))
    assert same(
        (plain.core_num, plain.sync_start, plain.allow_early_resolve, plain.predicate), (None, False, False, None)
    )
    assert same((dict(plain.kwargs), dict(plain.attrs), plain.arg_directions), ({}, {}, []))
    full = ir.Submit(
        ir.GlobalVar("k"),
        [x],
        [],
        {"a": 1},
        {"arg_directions": [ir.ArgDirection.InOut]},
        TASK,
        S,
        core_num=8,
        sync_start=True,
        allow_early_resolve=True,
        predicate=predicate,
    )
    assert same((full.core_num.value, full.core_num.dtype), (8, ir.INDEX))
    assert same((full.sync_start, full.allow_early_resolve, full.predicate), (True, True, predicate))
    assert full.arg_directions == [ir.ArgDirection.InOut]
    positional = ir.Submit(ir.GlobalVar("k"), [x], [], {}, None, TASK, S, x, True)
    assert same((positional.core_num, positional.sync_start), (x, True))
    assert not isinstance(full, ir.Call)


def test_submit_refuses():
    make = lambda **launch: ir.Submit(ir.GlobalVar("k"), [], [], TASK, S, **launch)  # noqa: E731
    with pytest.raises(ValueError, match="sync_start"):
        make(sync_start=True)
    for bad in (var("f", ir.FP32), ir.ConstBool(True, S), True, "8", ir.Var("t", ir.TensorType([4], ir.INT32), S)):
        with pytest.raises(TypeError, match="core_num must be an integer scalar"):
            make(core_num=bad)
    with pytest.raises(TypeError, match="unexpected"):
        make(color=1)


# --- statements -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cls", [ir.YieldStmt, ir.ReturnStmt])
def test_values(cls):
    x = var()
    assert cls([x], S).value[0] is x
    for empty in (cls(S), cls(span=S), cls([], S)):
        assert empty.value == []
        assert empty.span is S


def test_if_and_loops():
    x, body = var(), assign()
    branch = ir.IfStmt(x, body, None, [], S)
    assert same((branch.condition, branch.then_body, branch.else_body, branch.return_vars), (x, body, None, []))
    it = ir.IterArg("it", INDEX, x, S)
    loop = ir.ForStmt(x, const(0), const(8), const(2), [it], body, [var("r")], S)
    assert same((loop.kind, dict(loop.attrs), loop.iter_args[0]), (ir.ForKind.Sequential, {}, it))
    pipeline = ir.ForStmt(x, const(0), const(8), const(2), [], body, [], S, ir.ForKind.Pipeline, {"pipeline_stages": 2})
    assert same((pipeline.kind, dict(pipeline.attrs)), (ir.ForKind.Pipeline, {"pipeline_stages": 2}))
    while_ = ir.WhileStmt(x, [it], body, [var("r")], S)
    assert same((while_.condition, while_.iter_args[0], while_.body), (x, it, body))


def test_seq_subscripts():
    stmts = [assign("a"), assign("b"), assign("c")]
    block = ir.SeqStmts(stmts, S)
    assert [block[i] for i in range(3)] == stmts
    assert block[-1] is stmts[2]
    for index in (3, -4):
        with pytest.raises(IndexError):
            block[index]


def test_the_two_constructors_of_sequences():
    a, b, c = assign("a"), assign("b"), assign("c")
    assert type(ir.SeqStmts([a], S)) is ir.SeqStmts
    assert seq([a]) is a
    assert seq([ir.SeqStmts([a], S)]) is a
    assert list(seq([a, ir.SeqStmts([b, ir.SeqStmts([c], S)], S)]).stmts) == [a, b, c]
    assert list(seq([]).stmts) == []
    assert list(ir.SeqStmts([ir.SeqStmts([a], S)], S).stmts) != [a]


def test_scopes():
    body = assign()
    for scope, kind, fields in (
        (ir.InCoreScopeStmt(ir.SplitMode.UP_DOWN, "n", body=body, span=S), "InCore", {"split": ir.SplitMode.UP_DOWN}),
        (ir.ClusterScopeStmt("n", body=body, span=S), "Cluster", {}),
        (
            ir.HierarchyScopeStmt(ir.Level.HOST, ir.Role.SubWorker, "n", body=body, span=S),
            "Hierarchy",
            {"level": ir.Level.HOST, "role": ir.Role.SubWorker},
        ),
        (ir.SpmdScopeStmt(4, True, "n", body=body, span=S), "Spmd", {"sync_start": True}),
        (
            ir.SplitAivScopeStmt(ir.SplitMode.LEFT_RIGHT, 2, "n", body=body, span=S),
            "SplitAiv",
            {"split": ir.SplitMode.LEFT_RIGHT, "count": 2},
        ),
        (ir.RuntimeScopeStmt(True, "n", body=body, span=S), "Runtime", {"manual": True}),
        (ir.CommDomainScopeStmt([1], [], "n", body=body, span=S), "CommDomain", {"devices": [1], "slots": []}),
    ):
        assert scope.scope_kind is ir.ScopeKind[kind]
        assert same((scope.name_hint, scope.body, dict(scope.attrs)), ("n", body, {}))
        assert isinstance(scope, ir.ScopeStmt)
        for name, value in fields.items():
            assert getattr(scope, name) == value
    core_num = ir.SpmdScopeStmt(4, body=body, span=S).core_num
    assert same((core_num.value, core_num.dtype), (4, ir.INDEX))
    assert ir.InCoreScopeStmt(body=body, span=S).split is ir.SplitMode.NONE
    assert ir.RuntimeScopeStmt(body=body, span=S, attrs={"a": 1}).attrs["a"] == 1


def test_scopes_refuse():
    body = assign()
    with pytest.raises(TypeError):
        ir.InCoreScopeStmt(ir.SplitMode.NONE, "n", body, S)
    with pytest.raises(TypeError):
        ir.ClusterScopeStmt("n")
    with pytest.raises(InternalError, match="count"):
        ir.SplitAivScopeStmt(ir.SplitMode.UP_DOWN, 3, body=body, span=S)
    with pytest.raises(TypeError):
        ir.HierarchyScopeStmt("HOST", body=body, span=S)
    with pytest.raises(TypeError):
        ir.SpmdScopeStmt("4", body=body, span=S)


# --- functions and programs -------------------------------------------------------------------------------------------


def test_function_fields():
    x, y, body = var("x"), var("y"), assign()
    f = ir.Function("f", [x, (y, ir.ParamDirection.Out)], [INDEX], body, S)
    assert same((f.name, f.params[0], f.body), ("f", x, body))
    assert f.param_directions == [ir.ParamDirection.In, ir.ParamDirection.Out]
    assert same((f.func_type, f.level, f.role, f.split), (ir.FunctionType.Opaque, None, None, None))
    assert same((dict(f.attrs), f.requires_runtime_binding, f.return_types), ({}, False, [INDEX]))
    g = ir.Function(
        "g", [], [], body, S, type=ir.FunctionType.InCore, attrs={"split": ir.SplitMode.UP_DOWN, "auto_scope": False}
    )
    assert same((g.split, g.attrs["split"], g.attrs["auto_scope"]), (ir.SplitMode.UP_DOWN, 1, False))
    assert ir.Function("g", [], [], body, S, attrs={"split": 0}).split is None
    assert ir.Function("g", [], [], body, S, requires_runtime_binding=True).replace().requires_runtime_binding


@pytest.mark.parametrize(
    ("kind", "level", "role"),
    [
        ("Orchestration", "CHIP", "Orchestrator"),
        ("Graph", "CHIP", "Orchestrator"),
        ("InCore", "CHIP_DIE", "SubWorker"),
        ("AIC", "AIC", "SubWorker"),
        ("AIV", "AIV", "SubWorker"),
        ("Group", "CORE_GROUP", "SubWorker"),
    ],
)
def test_derived_level_and_role(kind, level, role):
    def make(**place):
        return ir.Function("f", [], [], assign(), S, type=ir.FunctionType[kind], **place)

    wanted = (ir.Level[level], ir.Role[role])
    assert (make().level, make().role) == wanted
    assert (make(level=wanted[0], role=wanted[1]).level, make(level=wanted[0]).role) == wanted
    with pytest.raises(ValueError, match=rf"implies level=Level\.{level}"):
        make(level=ir.Level.GLOBAL)
    other = ir.Role.SubWorker if role == "Orchestrator" else ir.Role.Orchestrator
    with pytest.raises(ValueError, match=rf"implies role=Role\.{role}"):
        make(role=other)


@pytest.mark.parametrize("kind", ["Opaque", "Spmd", "Inline"])
def test_level_and_role_as_given(kind):
    f = ir.Function("f", [], [], assign(), S, ir.FunctionType[kind], ir.Level.HOST, ir.Role.SubWorker)
    assert same((f.level, f.role), (ir.Level.HOST, ir.Role.SubWorker))
    assert ir.Function("f", [], [], assign(), S, ir.FunctionType[kind]).level is None


def function(name):
    return ir.Function(name, [], [], assign(), S)


def test_program():
    b, a, upper = function("b"), function("a"), function("Z")
    program = ir.Program([b, a, upper], "P", S)
    assert [g.name for g in program.functions] == ["Z", "a", "b"]
    assert program.get_function("a") is program["a"] is program.functions[ir.GlobalVar("a")] is a
    assert program.get_global_var("a") == ir.GlobalVar("a")
    assert program["nope"] is program.get_function("nope") is program.get_global_var("nope") is None
    assert program.name == "P"
    assert ir.Program([], "", S).name == ""
    with pytest.raises(ValueError, match='Duplicate function name "a"'):
        ir.Program([a, function("a")], "P", S)


def test_programs_sort_names_bytewise():
    names = ["é", "z", "a_", "aB", "ab"]
    program = ir.Program([function(n) for n in names], "P", S)
    assert [g.name for g in program.functions] == sorted(names, key=str.encode)


def test_with_functions_keeps_an_unchanged_program():
    a, b = function("a"), function("b")
    program = ir.Program([a, b], "P", S)
    assert program.with_functions([a, b]) is program
    changed = function("b")
    assert program.with_functions([a, changed])["b"] is changed
