"""In which order the statements of a region have to stay: what each one must follow."""

from __future__ import annotations

from typing import Any

from ..ir.enums import ArgEffect, ParamDirection
from ..ir.expr import Call, Expr, GlobalVar, Submit, Var
from ..ir.program import Function, Program
from ..ir.stmt import SeqStmts, Stmt
from ..ir.traversal import PUSH_CHILDREN
from ..ir.tree import flatten_to_stmts, own_definitions
from ..ir.type_fields import PLAIN_TYPES, is_closed, type_expressions
from ..ops.registry import REGISTRY
from .callees import parameter_index


class StmtDependencyGraph:
    """The statements of a region, in order, and for each the earlier ones that it must follow."""

    def __init__(self, stmts: list[Stmt] | None = None, predecessors: list[list[int]] | None = None) -> None:
        self._stmts = [] if stmts is None else stmts
        self._predecessors = [] if predecessors is None else predecessors
        self._position = {stmt: i for i, stmt in enumerate(self._stmts)}

    @property
    def stmts(self) -> list[Stmt]:
        """The statements, in the order of the region."""
        return list(self._stmts)

    def get_predecessors(self, stmt: Stmt) -> list[Stmt]:
        """The statements that ``stmt`` must follow directly, in order; none for a statement of elsewhere."""
        position = self._position.get(stmt)
        return [] if position is None else [self._stmts[i] for i in self._predecessors[position]]


def build_stmt_dependency_graph(region: Stmt | Function, program: Program | None = None) -> StmtDependencyGraph:
    """The order among the statements of a region (the body of a function, say), linear in its size.

    A statement follows the one that defined a variable that it reads; before SSA form also those that read or defined
    a variable that it assigns. An operand that an op writes counts as read and written, and with a ``program`` so does
    the Out or InOut argument of a call or submit. Statements inside a branch, loop or scope belong to it.

    Order is by variables: different variables that name one buffer are unrelated here.
    """
    body = region.body if isinstance(region, Function) else region
    stmts = flatten_to_stmts(body) if type(body) is SeqStmts else [body]
    builder = _Builder(program)
    return StmtDependencyGraph(stmts, [builder.add(i, stmt) for i, stmt in enumerate(stmts)])


class _Builder:
    def __init__(self, program: Program | None) -> None:
        self._program = program
        self._writer: dict[Any, int] = {}  # variable -> the last statement that gave it a value
        self._readers: dict[Any, list[int]] = {}  # variable -> those that read it since

    def add(self, index: int, stmt: Stmt) -> list[int]:
        reads, writes = _accesses(stmt, self._program)
        found: dict[int, None] = {}
        for var in (*reads, *writes):
            writer = self._writer.get(var)
            if writer is not None:
                found[writer] = None
        for var in writes:
            found.update(dict.fromkeys(self._readers.pop(var, ())))
            self._writer[var] = index
        for var in reads:
            if var not in writes:
                self._readers.setdefault(var, []).append(index)
        found.pop(index, None)
        return sorted(found)


def _accesses(stmt: Stmt, program: Program | None) -> tuple[dict[Any, None], dict[Any, None]]:
    """The variables that a statement, with all that it holds, reads and writes."""
    reads: dict[Any, None] = {}
    writes: dict[Any, None] = {}
    stack: list[Any] = [stmt]
    push = stack.append
    while stack:
        node = stack.pop()
        cls = type(node)
        if isinstance(node, Var):
            reads[node] = None
        if isinstance(node, Expr):
            kind = node.type
            if type(kind) not in PLAIN_TYPES and not is_closed(kind):
                stack += type_expressions(kind)
        else:
            writes.update(dict.fromkeys(own_definitions(node)))
        if cls is Call or cls is Submit:
            for var in _written_arguments(node, program):
                writes[var] = None
        code = PUSH_CHILDREN.get(cls)
        if code is not None:
            code(node, push)
    # The children of a statement include what it defines, so that what is written is among the reads, too: the same for
    # the order.
    return reads, writes


def _written_arguments(call: Any, program: Program | None) -> list[Any]:
    if type(call.op) is not GlobalVar:
        definition = REGISTRY.get(call.op.name)
        if definition is None or not definition.effects:
            return []
        return [
            call.args[i]
            for i in definition.effects
            if i < len(call.args)
            and isinstance(call.args[i], Var)
            and definition.effect(i, call.kwargs) is not ArgEffect.Read
        ]
    callee = program.functions.get(call.op) if program is not None else None
    if callee is None:
        return []
    found = []
    for i, arg in enumerate(call.args):
        if isinstance(arg, Var):
            index = parameter_index(callee.params, len(call.args), i)
            if index is not None and callee.param_directions[index] is not ParamDirection.In:
                found.append(arg)
    return found


__all__ = ["StmtDependencyGraph", "build_stmt_dependency_graph"]
