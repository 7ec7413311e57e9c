"""How long the values of a kernel are needed, and when its tensors are written: positions in reading order."""

from __future__ import annotations

from typing import Any

from ...analysis.buffer_names import BufferNames
from ...ir.expr import Call, IterArg, Var
from ...ir.program import Function
from ...ir.stmt import AssignStmt, ForStmt, IfStmt, SeqStmts, WhileStmt
from ...ir.traversal import walk
from ...ir.tree import own_definitions, stmt_children

# Ops whose result may share the memory of an operand, and which one.
_SHARING = {
    "reshape": 0, "slice": 0, "move": 0, "set_validshape": 0, "transpose_view": 0, "assemble": 0,
    "matmul_acc": 0, "gemv_acc": 0, "batch_matmul_acc": 0, "fillpad_inplace": 0,
}  # fmt: skip


class Lifetimes:
    """``position``: of each statement."""

    def __init__(self, function: Function, names: BufferNames) -> None:
        self.position: dict[Any, int] = {}
        self._names = names
        self._defined: dict[Var, int] = dict.fromkeys(function.params, 0)
        self._last: dict[Var, int] = {}
        self._ends: dict[Any, int] = {}
        self._shares: dict[Var, list[Var]] = {}  # a variable -> others that may lie in its memory
        self._writes: dict[Var, list[int]] = {}  # tensor parameter -> positions
        self._loops: list[tuple[int, Any]] = []
        self._loop_end: dict[int, int] = {}
        self._count = 0
        self._late: list[tuple[Var, int, tuple[int, ...]]] = []
        self._stmt(function.body)
        for var, at, begins in self._late:
            # What a loop around the use finds defined outside is needed until the loop ends.
            outer = [begin for begin in begins if self._defined.get(var, 0) < begin]
            self._last[var] = max(self._last.get(var, 0), self._loop_end[outer[0]] if outer else at)

    def last(self, var: Var) -> int:
        """The position of the last use of a value under this name."""
        return self._last.get(var, self._defined.get(var, 0))

    def memory(self, var: Var) -> int:
        """The position of the last use of what may lie in the memory of a variable."""
        found = self.last(var)
        work, seen = [var], {var}
        while work:
            for other in self._shares.get(work.pop(), ()):
                if other not in seen:
                    seen.add(other)
                    work.append(other)
                    found = max(found, self.last(other))
        return found

    def end_of(self, stmt: Any) -> int:
        """The position behind a loop or branch."""
        return self._ends[stmt]

    def is_written(self, root: object, var: Var, since: int) -> bool:
        """Whether a tensor is written while a variable that shows a part of it is needed."""
        until = self.memory(var)
        return any(since < at < until for at in self._writes.get(root, ()))  # type: ignore[call-overload]

    def adopt(self, var: Var, position: int) -> None:
        """A variable that is not of the program."""
        self._defined[var] = self._last[var] = position

    # --- the walk -----------------------------------------------------------------------------------------------------

    def _stmt(self, stmt: Any) -> None:
        if type(stmt) is SeqStmts:
            for inner in stmt.stmts:
                self._stmt(inner)
            return
        self._count += 1
        at = self.position[stmt] = self._count
        children = stmt_children(stmt)
        if isinstance(stmt, (ForStmt, WhileStmt)):
            for arg in stmt.iter_args:
                self._uses(arg.initValue, at)
            if type(stmt) is ForStmt:
                for e in (stmt.start, stmt.stop, stmt.step):
                    self._uses(e, at)
                self._defined[stmt.loop_var] = at
            for arg in stmt.iter_args:
                self._defined[arg] = at
            self._loops.append((at, stmt))
            if type(stmt) is WhileStmt:
                self._uses(stmt.condition, at)
            self._stmt(stmt.body)
            self._loops.pop()
            self._count += 1
            self._loop_end[at] = self._ends[stmt] = self._count
            for arg, var in zip(stmt.iter_args, stmt.return_vars, strict=True):
                self._shares.setdefault(arg, []).append(var)
        elif type(stmt) is IfStmt:
            self._uses(stmt.condition, at)
            for child in children:
                self._stmt(child)
            self._count += 1
            self._ends[stmt] = self._count
        else:
            self._own(stmt, at)
            for child in children:
                self._stmt(child)
        for var in own_definitions(stmt):
            self._defined.setdefault(var, self._count)

    def _own(self, stmt: Any, at: int) -> None:
        value = stmt.value if type(stmt) is AssignStmt else getattr(stmt, "expr", None)
        if value is None:
            for e in getattr(stmt, "value", ()):
                self._uses(e, at)
            return
        self._uses(value, at)
        if type(stmt) is AssignStmt:
            self._share(stmt.var, value)
        if type(value) is Call and value.op.name in ("tile.store", "tensor.assemble", "tensor.write"):
            target = value.args[2] if value.op.name == "tile.store" else value.args[0]
            root = self._names.viewed(target) if isinstance(target, Var) else None
            if root is not None:
                self._writes.setdefault(root, []).append(at)

    def _share(self, var: Var, value: Any) -> None:
        if isinstance(value, Var):
            self._shares.setdefault(value, []).append(var)
        elif type(value) is Call:
            index = _SHARING.get(value.op.name.partition(".")[2])
            operand = value.args[index] if index is not None and index < len(value.args) else None
            if isinstance(operand, Var):
                self._shares.setdefault(operand, []).append(var)

    def _uses(self, e: Any, at: int) -> None:
        begins = tuple(begin for begin, _ in self._loops)
        for node in walk(e):
            if isinstance(node, (Var, IterArg)):
                self._late.append((node, at, begins))
                self._last.setdefault(node, at)


__all__ = ["Lifetimes"]
