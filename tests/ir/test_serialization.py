from __future__ import annotations

import contextlib
import os
import struct
import subprocess
import sys
import zlib
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tree_kit import INDEX, U, const, var

import pypto
from pypto.ir import serialization
from pypto.ir.dtype import DataType
from pypto.ir.enums import MemorySpace, TensorLayout
from pypto.ir.equality import assert_structural_equal
from pypto.ir.expr import Add, Call, ConstFloat, Expr, GlobalVar, IterArg, MakeTuple, MemRef, Op, Var
from pypto.ir.node import IRNode, Role
from pypto.ir.program import Function, Program
from pypto.ir.serialization import deserialize, deserialize_from_file, serialize, serialize_to_file
from pypto.ir.span import Span
from pypto.ir.stmt import AssignStmt, EvalStmt, ForStmt, InCoreScopeStmt, SeqStmts, Stmt, YieldStmt
from pypto.ir.traversal import NODE_CLASSES, NODE_FIELDS, walk
from pypto.ir.type import PtrType, ScalarType, TensorType, TensorView, TileType


def round_trip(node: Any) -> Any:
    data = serialize(node)
    new = deserialize(data)
    assert serialize(new) == data
    assert_structural_equal(node, new, True, compare_memref=True)
    return new


# --- what survives ----------------------------------------------------------------------------------------------------


def test_everything_survives(zoo: Program) -> None:
    new = round_trip(zoo)
    before, after = list(walk(zoo, types=True)), list(walk(new, types=True))
    assert len(before) == len(after)
    images: dict[int, Any] = {}
    for a, b in zip(before, after, strict=True):
        assert type(a) is type(b)
        assert images.setdefault(id(a), b) is b  # one object stays one
        for info in NODE_FIELDS[type(a)]:
            if info.role is Role.IGNORED:
                x, y = getattr(a, info.name), getattr(b, info.name)
                assert type(x) is type(y) and str(x) == str(y)
        if isinstance(a, Stmt):
            assert a.leading_comments == b.leading_comments
        if isinstance(a, Var):
            assert a.unique_id != b.unique_id
        if hasattr(a, "attrs"):
            assert list(a.attrs) == list(b.attrs)
    assert len({id(b) for b in images.values()}) == len(images)  # and two stay two
    assert new.name == "Zoo" and [g.name for g in new.functions] == ["kernel", "main"]
    assert new.get_function("main").span.end_line == zoo.get_function("main").span.end_line  # type: ignore[union-attr]


@pytest.mark.parametrize("cls", NODE_CLASSES, ids=lambda cls: cls.__name__)
def test_any_node_as_root(cls: type[IRNode], zoo: Program) -> None:
    node = next(n for n in walk(zoo, types=True) if type(n) is cls)
    assert type(round_trip(node)) is cls


def test_sharing() -> None:
    x = var("x")
    new = round_trip(Add(x, x, DataType.INDEX, U))
    assert new.left is new.right
    new = round_trip(Add(var("x"), var("x"), DataType.INDEX, U))
    assert new.left is not new.right
    base = var("mem", PtrType())
    memref = MemRef(base, 0, 32)
    tiles = [var(f"t{i}", TileType([8], DataType.FP32, memref, None, MemorySpace.Vec)) for i in range(2)]
    alloc = AssignStmt(base, Call(Op("alloc"), [], PtrType(), U), U)
    new = round_trip(SeqStmts([alloc, *(AssignStmt(t, Call(Op("f"), [], t.type, U), U) for t in tiles)], U))
    first, second = new[1].var.type, new[2].var.type
    assert first.shares_memref_with(second) and first.memref.base_ is new[0].var


def test_attributes_come_back_as_the_right_variables() -> None:
    task = var("task", ScalarType(DataType.TASK_ID))
    scope = InCoreScopeStmt(
        body=EvalStmt(task, U),
        attrs={"task_id_var": task, "manual_dep_edges": [task], "arg_direction_overrides": [0, 2]},
    )
    new = round_trip(SeqStmts([AssignStmt(task, Call(Op("task_invalid"), [], task.type, U), U), scope], U))
    variable = new[0].var
    assert new[1].attrs["task_id_var"] is variable and new[1].attrs["manual_dep_edges"][0] is variable
    assert new[1].body.expr is variable
    assert new[1].attrs["arg_direction_overrides"] == [0, 2]


def test_iter_args_and_their_uses() -> None:
    carried = IterArg("c", INDEX, const(0), U)
    new = round_trip(ForStmt(var("i"), const(0), const(4), const(1), [carried], YieldStmt([carried], U), [var("r")], U))
    assert new.body.value[0] is new.iter_args[0]


def test_views_stay_as_they_are() -> None:
    view = TensorView([1, 8], TensorLayout.DN)
    kind = TensorType([8, 8], DataType.FP32, None, view)
    new = round_trip(
        MakeTuple([var("a", kind), var("b", TensorType([8, 8], DataType.FP16, None, kind.tensor_view))], U)
    )
    first, second = (e.type.tensor_view for e in new.elements)
    assert first is second
    with pytest.raises(AttributeError):
        first.pad = None


def test_extreme_numbers() -> None:
    for value in (0, -1, 2**63 - 1, -(2**63)):
        assert round_trip(const(value)).value == value
    for number in (0.1, -0.0, 1e308, float("inf")):
        assert repr(round_trip(ConstFloat(number, DataType.FP32, U)).value) == repr(number)
    nan = deserialize(serialize(ConstFloat(float("nan"), DataType.FP32, U)))
    assert nan.value != nan.value
    memref = MemRef(var("m", PtrType()), 0, 2**70)
    assert round_trip(EvalStmt(memref, U)).expr.size_ == 2**70


def test_unicode_and_the_unknown_span() -> None:
    new = round_trip(Var("größe_𝛼", INDEX, Span("fünf.py", 1, 2)))
    assert new.name_hint == "größe_𝛼" and str(new.span) == "fünf.py:1:2"
    assert round_trip(var("x")).span is Span.unknown()


def test_the_input_is_not_changed(zoo: Program) -> None:
    ids = [n.unique_id for n in walk(zoo) if isinstance(n, Var)]
    assert serialize(zoo) == serialize(zoo)
    assert ids == [n.unique_id for n in walk(zoo) if isinstance(n, Var)]


def test_equal_trees_give_equal_bytes(twin_zoos: tuple[Program, Program]) -> None:
    a, b = twin_zoos
    assert serialize(a) == serialize(b)
    # Functions are named by name: it does not matter whether two references are one object.
    x = var("x")
    one = GlobalVar("k")
    shared = MakeTuple([Call(one, [x], U), Call(one, [x], U)], U)
    apart = MakeTuple([Call(GlobalVar("k"), [x], U), Call(GlobalVar("k"), [x], U)], U)
    assert serialize(shared) == serialize(apart)
    new = deserialize(serialize(apart))
    assert new.elements[0].op is new.elements[1].op


def test_same_bytes_in_every_process() -> None:
    script = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "from conftest import make_zoo\n"
        "from pypto.ir.serialization import serialize\n"
        "print(serialize(make_zoo()).hex())\n"
    )
    source = str(Path(pypto.__file__).parents[1])
    answers = set()
    for seed in ("1", "2"):
        env = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": source}
        command = [sys.executable, "-c", script, str(Path(__file__).parent)]
        answers.add(subprocess.run(command, env=env, capture_output=True, text=True, check=True).stdout)
    assert len(answers) == 1


# --- what is refused --------------------------------------------------------------------------------------------------


def refused(data: bytes, text: str) -> None:
    with pytest.raises(ValueError, match=text):
        deserialize(data)


def blob(payload: Any, version: int = 1) -> bytes:
    body = msgspec.msgpack.encode(payload)
    return struct.pack("<8sHIQ", b"PyPTO-IR", version, zlib.crc32(body), len(body)) + body


def payload_of(node: IRNode) -> Any:
    return msgspec.msgpack.decode(serialize(node)[22:])


def test_what_is_no_blob() -> None:
    refused(b"", "not a PyPTO IR blob")
    refused(b"garbage", "not a PyPTO IR blob")
    refused(b"\x00" * 100, "not a PyPTO IR blob")
    refused(blob([[], [], []], version=9), "of version 9, this is version 1")
    refused(blob("text"), "malformed")
    refused(blob([[], [], []]), "it holds no node")
    with pytest.raises(TypeError):
        deserialize("text")  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        serialize(3)  # type: ignore[arg-type]


def test_truncated_anywhere() -> None:
    data = serialize(Add(var("x"), const(1), DataType.INDEX, U))
    for length in range(1, len(data)):
        refused(data[:length], "truncated")
    refused(data + b"x", "overlong")


def test_damaged_anywhere() -> None:
    data = serialize(Add(var("x"), const(1), DataType.INDEX, U))
    for position in range(22, len(data)):
        refused(data[:position] + bytes([data[position] ^ 1]) + data[position + 1 :], "checksum")


def test_unknown_node_kind_and_missing_fields() -> None:
    schema, spans, records = payload_of(Add(var("x"), const(1), DataType.INDEX, U))
    add = next(i for i, (name, _) in enumerate(schema) if name == "Add")
    renamed = [["Mystery", fields] if i == add else [name, fields] for i, (name, fields) in enumerate(schema)]
    refused(blob([renamed, spans, records]), "unknown node kind 'Mystery'")
    shorter = [[name, fields[1:]] if i == add else [name, fields] for i, (name, fields) in enumerate(schema)]
    refused(blob([shorter, spans, records]), "Add lacks the field 'left'")
    refused(blob([schema, spans, [*records[:-1], records[-1][:-1]]]), "a Add has 3 fields, expected 4")
    refused(blob([schema, spans, [*records[:-1], [add, 99, 0, 0, 0]]]), "reference to object 99")
    scalar_type = next(i for i, r in enumerate(records) if schema[r[0]][0] == "ScalarType")
    refused(blob([schema, spans, [*records[:-1], [add, scalar_type, 0, 0, 0]]]), "a ScalarType where a Expr belongs")
    number = next(i for i, r in enumerate(records) if schema[r[0]][0] == "ConstInt")
    wrong = [[r[0], "text", *r[2:]] if i == number else r for i, r in enumerate(records)]
    refused(blob([schema, spans, wrong]), "'text' in the field 'value'")
    refused(blob([schema, spans, [*records[:-1], [add, None, 0, 0, 0]]]), "reference to object None")


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_any_wrong_payload_is_refused_or_read(data: st.DataObject) -> None:
    """No payload, however wrong, gives another error than ValueError."""
    payload = payload_of(
        SeqStmts([AssignStmt(var("x"), Call(Op("f"), [const(1)], {"k": 1}, TensorType([4], DataType.FP32), U), U)], U)
    )
    target = payload[data.draw(st.integers(0, 2))]
    while isinstance(target, list) and target:
        position = data.draw(st.integers(0, len(target) - 1))
        if not isinstance(target[position], list) or data.draw(st.integers(0, 3)) == 0:
            target[position] = data.draw(
                st.one_of(st.none(), st.integers(-2, 20), st.text(max_size=2), st.lists(st.integers(0, 9), max_size=3))
            )
            break
        target = target[position]
    with contextlib.suppress(ValueError):
        assert isinstance(deserialize(blob(payload)), IRNode)


def test_a_cycle_is_refused() -> None:
    memref = MemRef(var("m", PtrType()), 0, 8)
    memref.byte_offset_ = Add(memref, const(1), DataType.INDEX, U)
    with pytest.raises(ValueError, match="cyclic"):
        serialize(memref)


# --- files, depth, growth ---------------------------------------------------------------------------------------------


def test_files(tmp_path: Path, zoo: Program) -> None:
    path = tmp_path / "program.pyptoir"
    serialize_to_file(zoo, path)
    assert_structural_equal(deserialize_from_file(str(path)), zoo, True)
    with pytest.raises(ValueError, match=r"cannot read IR from .*missing"):
        deserialize_from_file(tmp_path / "missing")
    with pytest.raises(ValueError, match="cannot write IR"):
        serialize_to_file(zoo, tmp_path / "no" / "such" / "folder")
    path.write_bytes(path.read_bytes()[:50])
    with pytest.raises(ValueError, match="truncated"):
        deserialize_from_file(path)


def test_deep_trees() -> None:
    e: Expr = var("x")
    for _ in range(5_000):
        e = Add(e, const(1), DataType.INDEX, U)
    round_trip(e)
    right: Expr = var("x")
    for _ in range(5_000):
        right = Add(const(1), right, DataType.INDEX, U)
    round_trip(right)


def test_linear_growth(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = 0
    record = serialization._Writer._record

    def counted(self: Any, item: Any, missing: list[Any]) -> Any:
        nonlocal calls
        calls += 1
        return record(self, item, missing)

    monkeypatch.setattr(serialization._Writer, "_record", counted)

    def cost(count: int) -> int:
        nonlocal calls
        calls = 0
        previous: Expr = const(0)
        body = []
        for _ in range(count):
            v = var("v", TensorType([8], DataType.FP32))
            body.append(AssignStmt(v, Call(Op("f"), [previous], v.type, U), U))
            previous = v
        data = serialize(Function("f", [], [], SeqStmts(body, U), U))
        return calls + len(data) // 16

    assert cost(2_000) <= 2.05 * cost(1_000)
