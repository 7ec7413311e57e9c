"""Which yields and initial values matter: those that go into a carry or result that somebody reads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..ir.expr import Expr, Var
from ..ir.node import Role
from ..ir.stmt import ForStmt, IfStmt, Stmt, WhileStmt, YieldStmt
from ..ir.traversal import attrs_expressions, walk
from ..ir.tree import stmt_children
from .escapes import leaves_its_loop
from .liveness import runs_at_least_once

_Targets = Sequence[tuple[Var, ...]]


class ResultReads:
    """What is read in a region in SSA form.

    A yielded or initial value is read if what it goes into is: a carry of the next iteration, or a result behind the
    construct. That is followed through results that only feed other results, so a chain that ends nowhere is not read.
    """

    def __init__(self, region: Stmt) -> None:
        self._targets: dict[Stmt, _Targets] = {}  # of each yield
        self._read: dict[Any, None] = {}
        self._sources: dict[Var, list[Expr]] = {}  # carry or result -> values that go into it
        self._collect(region)
        pending = list(self._read)
        while pending:
            for value in self._sources.get(pending.pop(), ()):
                for var in _variables(value):
                    if var not in self._read:
                        self._read[var] = None
                        pending.append(var)

    def reads(self, stmt: Stmt, var: Var) -> bool:
        """Whether a statement reads a variable for a purpose; for statements that the variable occurs in."""
        if type(stmt) is YieldStmt:
            targets = self._targets[stmt]
            if len(targets) != len(stmt.value):  # not well formed: nothing is known
                return True
            return any(
                var in _variables(value) and self._any_read(into)
                for value, into in zip(stmt.value, targets, strict=True)
            )
        if isinstance(stmt, (ForStmt, WhileStmt)) and stmt.iter_args:
            if any(var in _variables(e) for e in _header(stmt)):
                return True
            return any(
                var in _variables(arg.initValue) and self._any_read(into)
                for arg, into in zip(stmt.iter_args, _started(stmt), strict=True)
            )
        return True

    def _any_read(self, variables: tuple[Var, ...]) -> bool:
        return any(variable in self._read for variable in variables)

    def _collect(self, region: Stmt) -> None:
        stack: list[tuple[Stmt, _Targets]] = [(region, ())]
        while stack:
            stmt, targets = stack.pop()
            if type(stmt) is YieldStmt:
                self._targets[stmt] = targets
                self._flow(stmt.value, targets)
                continue
            if isinstance(stmt, (ForStmt, WhileStmt)):
                targets = _carries(stmt)
                self._flow([arg.initValue for arg in stmt.iter_args], _started(stmt))
                reads = _header(stmt)
            else:
                if type(stmt) is IfStmt and stmt.return_vars:  # without results a yield is that of the loop around it
                    targets = [(var,) for var in stmt.return_vars]
                reads = _own_reads(stmt)
            for e in reads:
                self._read.update(dict.fromkeys(_variables(e)))
            stack.extend((child, targets) for child in stmt_children(stmt))

    def _flow(self, values: Sequence[Expr], targets: _Targets) -> None:
        if len(values) != len(targets):
            for value in values:
                self._read.update(dict.fromkeys(_variables(value)))
            return
        for value, into in zip(values, targets, strict=True):
            for target in into:
                self._sources.setdefault(target, []).append(value)


def _carries(loop: ForStmt | WhileStmt) -> _Targets:
    if len(loop.return_vars) != len(loop.iter_args):
        return [(arg,) for arg in loop.iter_args]
    return list(zip(loop.iter_args, loop.return_vars, strict=True))


def _started(loop: ForStmt | WhileStmt) -> _Targets:
    """What the initial values go into: the results, too, unless an iteration certainly runs to its end."""
    if isinstance(loop, ForStmt) and runs_at_least_once(loop) and not leaves_its_loop(loop.body):
        return [(arg,) for arg in loop.iter_args]
    return _carries(loop)


def _header(loop: ForStmt | WhileStmt) -> list[Expr]:
    if isinstance(loop, WhileStmt):
        return [loop.condition]
    return [loop.start, loop.stop, loop.step, *attrs_expressions(loop.attrs)]


def _own_reads(stmt: Stmt) -> list[Expr]:
    """The expressions of a statement that is no loop and no yield, without what it defines."""
    found: list[Expr] = []
    for info in stmt.node_fields:
        value = getattr(stmt, info.name)
        if info.role is Role.DEFINITION:
            continue
        if isinstance(value, Expr):
            found.append(value)
        elif isinstance(value, list):
            found += [item for item in value if isinstance(item, Expr)]
        elif isinstance(value, dict):
            found += attrs_expressions(value)
    return found


def _variables(e: Expr) -> dict[Any, None]:
    return {node: None for node in walk(e, types=True) if isinstance(node, Var)}


__all__ = ["ResultReads"]
