"""Which storage the array variables of a function name, and whether two may name the same.

An ``Array`` is storage that is written in place. A *name* is a variable that stands for one storage at a time: what
``array.create`` makes, or a carry or branch result that may be one array or another. Everything else is another name of
one of these: what an update gives back, a copy, a carry that the loop hands on as it is, a branch result that is the
same array in both branches.
"""

from __future__ import annotations

from itertools import combinations
from typing import Any

from ..ir.call import Call
from ..ir.expr import Var
from ..ir.stmt import AssignStmt, ForStmt, IfStmt, ScopeStmt, SeqStmts, Stmt, WhileStmt
from ..ir.tree import yielded_values
from ..ir.type import ArrayType

UPDATE = "array.update_element"


class ArrayNames:
    """The arrays of one function in SSA form. One walk: a carry stands for itself until the end of its loop says
    whether it is handed on."""

    def __init__(self, body: Stmt) -> None:
        self._other: dict[Var, Var] = {}  # variable -> what it is another name of
        self._group: dict[Var, Var] = {}  # sets of variables that may ever name the same
        self._loop_of: dict[Var, Any] = {}
        self._ends: dict[Stmt, list[Any]] = {}  # what a loop yields, in terms of its own carries
        self._apart: dict[Stmt, bool] = {}
        self._made: set[Var] = set()
        self._stmt(body)

    def name(self, value: Any) -> Any:
        """The variable that the storage of an array variable is known by."""
        other, chain = self._other, []
        while value in other:
            chain.append(value)
            value = other[value]
        for var in chain[:-1]:
            other[var] = value
        return value

    def may_be_same(self, a: Var, b: Var) -> bool:
        """Whether two names may stand for the same storage at the same time."""
        if a is b:
            return True
        if self._find(a) is not self._find(b):
            return False
        loop = self._loop_of.get(a)
        # Two carries of one loop: arrays that change places stay two.
        return loop is None or self._loop_of.get(b) is not loop or not self._stay_apart(loop)

    def kin(self, name: Var) -> Var:
        """A variable that is the same for all names that may ever stand for one storage."""
        return self._find(name)

    # --- the walk -----------------------------------------------------------------------------------------------------

    def _stmt(self, stmt: Any) -> None:
        cls = type(stmt)
        if cls is SeqStmts:
            for inner in stmt.stmts:
                self._stmt(inner)
        elif cls is AssignStmt:
            self._assign(stmt)
        elif cls is ForStmt or cls is WhileStmt:
            self._loop(stmt)
        elif cls is IfStmt:
            self._branch(stmt)
        elif isinstance(stmt, ScopeStmt):
            self._stmt(stmt.body)

    def _assign(self, stmt: AssignStmt) -> None:
        if isinstance(stmt.var.type, ArrayType):
            value: Any = stmt.value
            if type(value) is Call and value.op.name == UPDATE:
                value = value.args[0]
            if not isinstance(value, Var):
                self._made.add(stmt.var)
            elif value is not stmt.var:
                self._join(stmt.var, value)
                self._other[stmt.var] = value

    def _loop(self, loop: Any) -> None:
        slots = [i for i, arg in enumerate(loop.iter_args) if isinstance(arg.type, ArrayType)]
        for i in slots:
            self._loop_of[loop.iter_args[i]] = loop
        self._stmt(loop.body)
        ends = [self.name(value) for value in yielded_values(loop.body)]
        self._ends[loop] = [ends[i] for i in slots if i < len(ends)]
        for i in slots:
            arg, var = loop.iter_args[i], loop.return_vars[i] if i < len(loop.return_vars) else None
            same = i >= len(ends) or ends[i] is arg
            for one in (arg, var):
                if one is not None:
                    self._join(one, arg, arg.initValue, *ends[i : i + 1])
                    if same and isinstance(arg.initValue, Var):
                        self._other[one] = arg.initValue

    def _branch(self, stmt: IfStmt) -> None:
        self._stmt(stmt.then_body)
        if stmt.else_body is not None:
            self._stmt(stmt.else_body)
        pairs = zip(stmt.return_vars, yielded_values(stmt.then_body), yielded_values(stmt.else_body), strict=False)
        for var, first, second in pairs:
            if isinstance(var.type, ArrayType):
                self._join(var, first, second)
                if isinstance(first, Var) and self.name(first) is self.name(second):
                    self._other[var] = first

    # --- what may be the same -----------------------------------------------------------------------------------------

    def _stay_apart(self, loop: Any) -> bool:
        """Whether the arrays that a loop carries are different ones at the start, and change places at most."""
        known = self._apart.get(loop)
        if known is None:
            args = [arg for arg in loop.iter_args if isinstance(arg.type, ArrayType)]
            ends = self._ends[loop]
            known = len(set(ends)) == len(args) and set(ends) == set(args)
            starts = [self.name(arg.initValue) for arg in args]
            known = known and not any(self._alike(a, b) for a, b in combinations(starts, 2))
            self._apart[loop] = known
        return known

    def _alike(self, a: Any, b: Any) -> bool:
        """Whether two arrays that a loop starts with may be one: :meth:`may_be_same`, before the loop joined them."""
        if a is b or not isinstance(a, Var) or not isinstance(b, Var):
            return True
        if a in self._made and b in self._made:
            return False
        loop = self._loop_of.get(a)
        return loop is None or self._loop_of.get(b) is not loop or not self._stay_apart(loop)

    def _find(self, var: Var) -> Var:
        group = self._group
        group.setdefault(var, var)
        while group[var] is not var:
            group[var] = group[group[var]]
            var = group[var]
        return var

    def _join(self, var: Var, *others: Any) -> None:
        for other in others:
            if isinstance(other, Var):
                self._group[self._find(other)] = self._find(var)


__all__ = ["UPDATE", "ArrayNames"]
