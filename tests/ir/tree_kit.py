"""Short forms for IR trees, and the two checks of a mismatch message."""

from __future__ import annotations

from typing import Any

import pytest

from pypto.ir.dtype import DataType
from pypto.ir.equality import assert_structural_equal, structural_equal
from pypto.ir.expr import Call, ConstInt, Expr, Op, Var
from pypto.ir.span import Span
from pypto.ir.stmt import ForStmt, SeqStmts, Stmt
from pypto.ir.type import ScalarType

U = Span.unknown()
INDEX = ScalarType(DataType.INDEX)
FP32 = DataType.FP32


def var(name: str, kind: Any = INDEX) -> Var:
    return Var(name, kind, U)


def const(value: int, dtype: DataType = DataType.INDEX) -> ConstInt:
    return ConstInt(value, dtype, U)


def seq(*stmts: Stmt) -> SeqStmts:
    return SeqStmts(stmts, U)


def call(*args: Expr, op: str = "f", **rest: Any) -> Call:
    return Call(Op(op), list(args), rest.pop("kwargs", None), rest.pop("attrs", None), rest.pop("type", INDEX), U)


def for_loop(body: Stmt, **rest: Any) -> ForStmt:
    arguments: dict[str, Any] = {
        "loop_var": var("i"), "start": const(0), "stop": const(4), "step": const(1), "iter_args": [], "return_vars": []
    }  # fmt: skip
    return ForStmt(**{**arguments, **rest}, body=body, span=U)


def failure(lhs: Any, rhs: Any, auto: bool = False, **options: Any) -> str:
    """The message for two trees, which must differ in both directions."""
    assert not structural_equal(lhs, rhs, auto, **options)
    assert not structural_equal(rhs, lhs, auto, **options)
    with pytest.raises(ValueError) as info:
        assert_structural_equal(lhs, rhs, auto, **options)
    return str(info.value)


def check(lhs: Any, rhs: Any, path: str, reason: str, sides: bool = False, auto: bool = False, **options: Any) -> str:
    text = failure(lhs, rhs, auto, **options)
    head = "Structural equality assertion failed" + (f" at: {path}" if path else "")
    assert text.split("\n")[0] == head
    told = text.split("Reason: ")[1]
    assert reason in told
    assert ("Left-hand side:\n  " in text) is sides and ("Right-hand side:\n  " in text) is sides
    if not sides:
        assert text.startswith(f"{head}\n\nReason: ")
    return text
