"""That equal trees have equal hashes is checked with equality itself, in test_equality.py."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tree_kit import INDEX, U, const, var

import pypto
from pypto.ir import scalar
from pypto.ir.dtype import DataType
from pypto.ir.equality import structural_equal
from pypto.ir.expr import Add, Call, ConstInt, Expr, IterArg, Op
from pypto.ir.hashing import structural_hash
from pypto.ir.program import Program
from pypto.ir.stmt import AssignStmt, EvalStmt, ForStmt, SeqStmts, Stmt
from pypto.ir.type import CommCtxType, PtrType, ScalarType, TensorType, TileType, TileView, UnknownType


def test_programs(twin_zoos: tuple[Program, Program]) -> None:
    a, b = twin_zoos
    assert structural_hash(a) == structural_hash(b)
    assert structural_hash(a, True) == structural_hash(b, enable_auto_mapping=True)
    assert 0 <= structural_hash(a) < 2**64


def test_free_variables_hash_by_identity_unless_mapped() -> None:
    x, y = var("x"), var("x")
    assert structural_hash(x) != structural_hash(y)
    assert structural_hash(x) == structural_hash(x)
    assert structural_hash(x, True) == structural_hash(y, True)
    assert structural_hash(Add(x, y, DataType.INDEX, U), True) != structural_hash(Add(x, x, DataType.INDEX, U), True)


def test_defined_variables_hash_by_order_in_both_modes() -> None:
    def build() -> Stmt:
        v, w = var("v"), var("w")
        return SeqStmts([AssignStmt(v, const(1), U), AssignStmt(w, v, U), EvalStmt(scalar.add(v, w), U)], U)

    a, b = build(), build()
    assert structural_equal(a, b)
    assert structural_hash(a) == structural_hash(b)


def test_what_differs_hashes_differently() -> None:
    x = var("x")
    trees: list[Any] = [
        x,
        const(1),
        const(2),
        ConstInt(1, DataType.INT32, U),
        scalar.add(x, const(1)),
        scalar.add(const(1), x),
        scalar.sub(x, const(1)),
        Call(Op("f"), [x], U),
        Call(Op("g"), [x], U),
        Call(Op("f"), [x], {"k": 1}, INDEX, U),
        Call(Op("f"), [x], {"k": 2}, INDEX, U),
        Call(Op("f"), [x], {"k": True}, INDEX, U),
        Call(Op("f"), [x], {}, {"k": 1}, INDEX, U),
        SeqStmts([EvalStmt(x, U)], U),
        EvalStmt(x, U),
        INDEX,
        ScalarType(DataType.INT64),
        TensorType([4, 8], DataType.FP32),
        TensorType([8, 4], DataType.FP32),
        TileType([8, 4], DataType.FP32),
        TileType([8, 4], DataType.FP32, None, TileView(fractal=32)),
        TileType([8, 4], DataType.FP32, None, TileView(fractal=32, start_offset=0)),
        UnknownType(),
        PtrType(),
        CommCtxType(),
    ]
    assert len({structural_hash(tree) for tree in trees}) == len(trees)


def test_expression_valued_attributes_are_skipped() -> None:
    calls = [Call(Op("f"), [], {}, {"device": e, "k": 1}, INDEX, U) for e in (const(1), const(2))]
    assert structural_hash(calls[0]) == structural_hash(calls[1])


def test_only_nodes_and_types() -> None:
    with pytest.raises(TypeError, match="structural_hash is of IR nodes and types, got int"):
        structural_hash(3)


def test_same_in_every_process() -> None:
    script = (
        "from pypto.ir import scalar\n"
        "from pypto.ir.dtype import DataType\n"
        "from pypto.ir.expr import Call, ConstFloat, Op\n"
        "from pypto.ir.hashing import structural_hash\n"
        "from pypto.ir.type import TensorType\n"
        "e = Call(Op('tile.add'), [ConstFloat(0.1, DataType.FP32)], {'mode': 'rint', 'k': -1},"
        " TensorType([4], DataType.FP32))\n"
        "print(structural_hash(e))\n"
    )
    source = str(Path(pypto.__file__).parents[1])
    answers = set()
    for seed in ("1", "2"):
        env = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": source}
        done = subprocess.run([sys.executable, "-c", script], env=env, capture_output=True, text=True, check=True)
        answers.add(done.stdout)
    assert len(answers) == 1


def test_deep_chain_and_linear_growth(monkeypatch: pytest.MonkeyPatch) -> None:
    e: Expr = var("x")
    for _ in range(5_000):
        e = Add(e, const(1), DataType.INDEX, U)
    assert structural_hash(e) != structural_hash(Add(e, const(1), DataType.INDEX, U))

    def length(count: int) -> int:
        from pypto.ir import hashing

        numbers: list[int] = []
        monkeypatch.setattr(hashing, "hash", lambda value: numbers.append(len(value)) or 0, raising=False)
        value: Expr = const(0)
        body: Stmt = SeqStmts([], U)
        for level in range(count):
            carried = IterArg(f"c{level}", INDEX, Add(value, value, DataType.INDEX, U), U)
            value = carried
            body = SeqStmts(
                [body, ForStmt(var("i"), const(0), const(1), const(1), [carried], EvalStmt(carried, U), [])], U
            )
        structural_hash(body)
        monkeypatch.undo()
        return numbers[-1]

    assert length(200) <= 2.1 * length(100)
