"""How long the values of a kernel are needed, and when its tensors are written: positions in reading order."""

from __future__ import annotations

from typing import Any

from ...analysis.buffer_names import BufferNames
from ...ir.enums import ArgEffect
from ...ir.expr import Call, IterArg, MakeTuple, TupleGetItemExpr, Var
from ...ir.program import Function
from ...ir.stmt import AssignStmt, ForStmt, IfStmt, SeqStmts, WhileStmt
from ...ir.traversal import walk
from ...ir.tree import own_definitions, stmt_children
from ...ir.type import TensorType
from ...ops.registry import REGISTRY

# Copies that need no memory of their own unless one of the two changes later.
_COPIES = frozenset(("tile.load", "tile.move", "tile.extract", "tensor.matmul_acc"))


class Lifetimes:
    """``position``: of each statement."""

    def __init__(self, function: Function, names: BufferNames) -> None:
        self.position: dict[Any, int] = {}
        self._names = names
        self._parameters = frozenset(function.params)
        self._defined: dict[Var, int] = dict.fromkeys(function.params, 0)
        self._last: dict[Var, int] = {}
        self._ends: dict[Any, int] = {}
        self._shares: dict[Var, list[Var]] = {}  # a variable -> others that may lie in its memory
        self._shared: dict[Var, list[Var]] = {}  # the other way round
        self._left: dict[Var, Var] = {}  # a carry -> the result of its loop
        self._writes: dict[Var | None, list[int]] = {}  # tensor parameter, or None: any other tensor -> positions
        self._tuples: dict[Any, list[Any]] = {}  # a tuple -> what it is made of
        self._written: set[Var | None] = set()  # the same: tensors of any kind, or None: unknown ones
        self._parent: dict[Var, Var] = {}  # classes of variables that may share memory
        self._whole: dict[Var, Var] = {}  # the same for names and views of one object, which are no copies
        self._changes: dict[Var, list[int]] = {}  # a variable that is changed in place -> positions
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
        known = root if isinstance(root, Var) else None
        return any(since < at < until for at in self._writes.get(known, ()))

    def is_ever_written(self, param: Var) -> bool:
        """Whether the kernel writes a tensor parameter, or may."""
        return param in self._written or None in self._written

    def changes(self, var: Var, since: int) -> bool:
        """Whether a variable, or one that may share its memory, is changed in place later."""
        of = self._class(var)
        return any(at > since for other, places in self._changes.items() if self._class(other) is of for at in places)

    def is_changed(self, var: Var, since: int) -> bool:
        """Whether an object, under any of its names, is changed in place later."""
        of = self._object(var)
        return any(at > since for other, places in self._changes.items() if self._object(other) is of for at in places)

    def first(self, var: Var) -> int:
        """The position from which on there is the object that a variable names, or shows a part of."""
        return self._defined.get(self._object(var), 0)

    def is_last(self, var: Var, position: int, result: Var) -> bool:
        """Whether nobody but ``result`` needs what the memory of a variable holds, behind a position.

        What a loop leaves behind is another value than what it carries meanwhile.
        """
        work, seen = [var], {var, result}
        while work:
            name = work.pop()
            if self.last(name) > position:
                return False
            for other in (*self._shares.get(name, ()), *self._shared.get(name, ())):
                if other not in seen and self._left.get(name) is not other and self._left.get(other) is not name:
                    seen.add(other)
                    work.append(other)
        return True

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
                self._join(arg, var)
                self._left[arg] = var
                first = arg.initValue
                if isinstance(first, Var) and self._names.name(arg) is not None:  # it stays the same, without a copy
                    self._join(first, arg)
                    self._late.append((first, self._count, tuple(begin for begin, _ in self._loops)))
        elif type(stmt) is IfStmt:
            self._uses(stmt.condition, at)
            for child in children:
                self._stmt(child)
            self._count += 1
            self._ends[stmt] = self._count
            for var in stmt.return_vars:
                known = self._names.name(var)
                if known is not None and known is not var:
                    self._join(known, var)
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
        call: Any = value
        definition = REGISTRY.get(call.op.name) if type(call) is Call else None
        if definition is not None:
            for index in definition.effects:
                target = call.args[index] if index < len(call.args) else None
                if definition.effect(index, call.kwargs) is ArgEffect.Read or not isinstance(target, Var):
                    continue
                self._changes.setdefault(target, []).append(at)
                if isinstance(target.type, TensorType):
                    roots = self._names.candidates(target)
                    self._written.update(roots or [None])
                    own: list[Var | None] = [root if root in self._parameters else None for root in roots]
                    for root in own or [None]:
                        self._writes.setdefault(root, []).append(at)

    def _share(self, var: Var, value: Any) -> None:
        if isinstance(value, Var):
            self._join(value, var)
            if value in self._tuples:
                self._tuples[var] = self._tuples[value]
        elif type(value) is TupleGetItemExpr:
            if value.tuple in self._tuples:
                value = self._tuples[value.tuple][value.index]
                if isinstance(value, Var):
                    self._join(value, var)
            elif isinstance(value.tuple, Var):
                self._join(value.tuple, var)
        elif type(value) is MakeTuple:
            self._tuples[var] = list(value.elements)
        elif type(value) is Call:
            definition = REGISTRY.get(value.op.name)
            if definition is None:
                return
            index = 0 if value.op.name in _COPIES else definition.alias_operand
            operand = value.args[index] if index is not None and index < len(value.args) else None
            if isinstance(operand, Var):
                self._join(operand, var, value.op.name in _COPIES)

    def _join(self, operand: Var, var: Var, copies: bool = False) -> None:
        self._shares.setdefault(operand, []).append(var)
        self._shared.setdefault(var, []).append(operand)
        # A tile that is loaded is no part of the tensor: what is stored there is another question.
        if isinstance(operand.type, TensorType) == isinstance(var.type, TensorType):
            self._parent[self._class(var)] = self._class(operand)
            if not copies and self._object(var) is not self._object(operand):
                self._whole[self._object(var)] = self._object(operand)

    def _class(self, var: Var) -> Var:
        while (parent := self._parent.get(var, var)) is not var:
            var = parent
        return var

    def _object(self, var: Var) -> Var:
        while (whole := self._whole.get(var, var)) is not var:
            var = whole
        return var

    def _uses(self, e: Any, at: int) -> None:
        begins = tuple(begin for begin, _ in self._loops)
        nodes = (e,) if type(e) is IterArg else walk(e)  # its initial value is used where the loop begins
        for node in nodes:
            if isinstance(node, (Var, IterArg)):
                self._late.append((node, at, begins))
                self._last.setdefault(node, at)


__all__ = ["Lifetimes"]
