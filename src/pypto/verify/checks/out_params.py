"""OutParamWriteDropped: an output that is assigned a new value instead of being written."""

from __future__ import annotations

from typing import Any

from ...analysis.liveness import runs_at_least_once
from ...ir.enums import ParamDirection
from ...ir.expr import IterArg, Var
from ...ir.operands import OPERANDS, attrs_operands
from ...ir.program import Function
from ...ir.stmt import (
    AssignStmt,
    BreakStmt,
    CommDomainScopeStmt,
    ContinueStmt,
    EvalStmt,
    ForStmt,
    IfStmt,
    ReturnStmt,
    ScopeStmt,
    SeqStmts,
    SpmdScopeStmt,
    Stmt,
    WhileStmt,
    YieldStmt,
)
from ...ir.traversal import CONSTANTS
from ...ir.type import TensorType, TileType
from .registry import DiagnosticCheck, Note, warns


@warns(DiagnosticCheck.OutParamWriteDropped, "OutParamWriteDropped", 1003)
def find_dropped_writes(function: Function) -> list[Note]:
    """The Out and InOut parameters that are bound anew, although nothing read or wrote what they were before.

    Any read of the caller's buffer, on any path, makes the check silent: a value that is computed from the buffer is
    such a read, and so is a write into it, which takes the buffer as an operand.
    """
    outputs = {
        param: direction
        for param, direction in zip(function.params, function.param_directions, strict=True)
        if direction is not ParamDirection.In and isinstance(param.type, (TensorType, TileType))
    }
    if not outputs:
        return []
    walk = _Walk(dict.fromkeys(outputs))
    walk.stmt(function.body)
    return [
        Note(
            f"assigning to the {outputs[param].name} parameter '{param.name_hint}' of function '{function.name}' "
            f"rebinds the name only — the caller's buffer is never written; write into it: {param.name_hint}[:] = …",
            stmt.span,
        )
        for param, stmt in walk.rebound.items()
        if param not in walk.read
    ]


class _Walk:
    """``original``: the parameters that may still be the caller's buffers here."""

    def __init__(self, original: dict[Any, None]) -> None:
        self.original = original
        self.read: dict[Any, None] = {}
        self.rebound: dict[Any, Any] = {}  # parameter -> the first statement that binds it anew
        self._exits: list[dict[Any, None]] = []  # for each open loop what may be original where it is left early

    def _reads(self, *roots: Any) -> None:
        original = self.original
        if not original:
            return
        stack = list(roots)
        while stack:
            e = stack.pop()
            cls = type(e)
            if cls is Var or cls is IterArg:
                if e in original:
                    self.read[e] = None
            elif cls not in CONSTANTS:
                stack += OPERANDS[cls](e)

    def _bind(self, var: Any, stmt: Stmt) -> None:
        if var in self.original:
            self.rebound.setdefault(var, stmt)
            self.original = {param: None for param in self.original if param is not var}

    def stmt(self, stmt: Any) -> bool:
        """Walk a statement; whether control never comes behind it."""
        cls = type(stmt)
        if cls is AssignStmt:
            self._reads(stmt.value)
            self._bind(stmt.var, stmt)
        elif cls is SeqStmts:
            return any(self.stmt(inner) for inner in stmt.stmts)
        elif cls is EvalStmt:
            self._reads(stmt.expr)
        elif cls is YieldStmt or cls is ReturnStmt:
            self._reads(*stmt.value)
            return cls is ReturnStmt
        elif cls is IfStmt:
            return self._if(stmt)
        elif cls is ForStmt:
            self._reads(stmt.start, stmt.stop, stmt.step, *[arg.initValue for arg in stmt.iter_args])
            self._loop(stmt, runs_at_least_once(stmt))
        elif cls is WhileStmt:
            self._reads(stmt.condition, *[arg.initValue for arg in stmt.iter_args])
            self._loop(stmt, False)
        elif cls is BreakStmt or cls is ContinueStmt:
            if self._exits:
                self._exits[-1].update(self.original)
            return True
        elif isinstance(stmt, ScopeStmt):
            return self._scope(stmt)
        return False

    def _scope(self, stmt: Any) -> bool:
        self._reads(*attrs_operands(stmt.attrs))
        if type(stmt) is SpmdScopeStmt:
            self._reads(stmt.core_num)
        elif type(stmt) is CommDomainScopeStmt:
            self._reads(*stmt.slots)
        return self.stmt(stmt.body)

    def _if(self, stmt: IfStmt) -> bool:
        self._reads(stmt.condition)
        before = self.original
        then_left = self.stmt(stmt.then_body)
        then, self.original = self.original, before
        else_left = stmt.else_body is not None and self.stmt(stmt.else_body)
        if then_left and else_left:
            return True
        if else_left:
            self.original = then
        elif not then_left:
            self.original = {**then, **self.original}
        for var in stmt.return_vars:
            self._bind(var, stmt)
        return False

    def _loop(self, stmt: Any, runs: bool) -> None:
        before = self.original
        self._exits.append({})
        left = self.stmt(stmt.body)
        early = self._exits.pop()
        ends = {} if left else self.original
        # Nothing becomes original again, so a second iteration sees nothing that the first didn't.
        self.original = {**ends, **early} if runs else {**before, **ends, **early}
        for var in stmt.return_vars:
            self._bind(var, stmt)
