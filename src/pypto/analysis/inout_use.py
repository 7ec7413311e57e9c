"""Variables that are read after a launch wrote them: the launch's result is the value, the variable is a stale name.

A variable that a task receives as Out or InOut is *dead* until it is assigned again. Whether it is dead at a statement
is a question about paths: dead if it is on some path that leads there. A path through a loop may go round, so a body
sees what was dead before the loop and what the body itself leaves dead.

What a body does is "these become dead, those alive", whatever was dead before. Therefore one walk finds what each loop
leaves dead for its next iteration, and a second walk, only if some loop leaves something, finds the reads: the depth of
nesting costs nothing. One set of dead variables with an undo log serves all branches.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from ..ir.enums import ArgDirection, ForKind, FunctionType, ParamDirection
from ..ir.expr import Call, GlobalVar, IterArg, Submit, TupleGetItemExpr, Var
from ..ir.operands import OPERANDS, attrs_operands
from ..ir.program import Function, Program
from ..ir.recursion import deep_recursion
from ..ir.stmt import (
    SCOPE_CLASSES,
    AssignStmt,
    BreakStmt,
    ContinueStmt,
    EvalStmt,
    ForStmt,
    IfStmt,
    InlineStmt,
    ReturnStmt,
    RuntimeScopeStmt,
    SeqStmts,
    SpmdScopeStmt,
    Stmt,
    WhileStmt,
    YieldStmt,
)
from ..ir.traversal import CONSTANTS
from .callees import parameter_index
from .liveness import runs_at_least_once
from .result_reads import ResultReads
from .task_marks import EDGES


class Launch:
    """How a variable was passed: the call, the position of the argument, what the callee does to it."""

    __slots__ = ("argument", "call", "callee", "direction")

    def __init__(self, call: Any, argument: int, callee: Function, direction: ParamDirection) -> None:
        self.call = call
        self.argument = argument
        self.callee = callee
        self.direction = direction


class StaleRead:
    """A statement that reads a variable after a launch wrote it."""

    __slots__ = ("launch", "stmt", "var")

    def __init__(self, var: Any, stmt: Stmt, launch: Launch) -> None:
        self.var = var
        self.stmt = stmt
        self.launch = launch


def stale_reads(region: Stmt, program: Program) -> list[StaleRead]:
    """The reads of a region, in order, one for each statement and variable.

    What does not make a variable stale: a call of an Inline function, whose body will stand in its place; a ``no_dep``
    argument, of which the user says that it orders nothing; a submit in a MANUAL scope, where ``deps`` say the order
    and a variable is but the name of a buffer. Iterations of a parallel loop do not follow each other. A value that is
    only passed on, to a carry or a result that nobody reads, is not read.
    """
    try:
        return _stale_reads(region, program)
    except RecursionError:
        with deep_recursion():
            return _stale_reads(region, program)


def _stale_reads(region: Stmt, program: Program) -> list[StaleRead]:
    walk = _Walk(program, {})
    walk.stmt(region)
    if walk.left_dead:
        walk = _Walk(program, walk.left_dead)
        walk.stmt(region)
    if any(type(read.stmt) in _PASSING_ON for read in walk.found):
        results = ResultReads(region)
        return [read for read in walk.found if results.reads(read.stmt, read.var)]
    return walk.found


# Statements that may read a value only to pass it on to a carry or result that nobody reads: phis of names that are not
# used any more.
_PASSING_ON = (YieldStmt, ForStmt, WhileStmt)


# Lists of variables that only name operands, which are the reads themselves, or launches: in an edge that the compiler
# found, a tensor stands for the launch that wrote it.
_NAMING_ATTRS = ("dump_vars", "arg_direction_overrides_vars", "task_id_var", EDGES)

# Where a variable was killed: a call and the position of the argument; None: alive.
_Kill = tuple[Any, int]
_Dead = dict[Any, _Kill]


class _Loop:
    """An open loop: where it began in the log, and what is dead where ``break`` leaves it and ``continue`` goes on."""

    __slots__ = ("again", "broken", "escapes", "mark")

    def __init__(self, mark: int) -> None:
        self.mark = mark
        self.broken: _Dead = {}
        self.again: _Dead = {}
        self.escapes = False


class _Walk:
    """``left_dead``: what the body of a loop leaves dead that was alive at its begin. Handlers of statements tell
    whether control never comes to what follows."""

    def __init__(self, program: Program, known: dict[Stmt, _Dead]) -> None:
        self.found: list[StaleRead] = []
        self.left_dead: dict[Stmt, _Dead] = {}
        self._functions = program.functions
        self._known = known
        self._written: dict[tuple[str, int], list[int]] = {}  # callee, number of arguments -> which it writes
        self._dead: _Dead = {}
        self._log: list[tuple[Any, _Kill | None]] = []  # a variable and what it was before
        self._loops: list[_Loop] = []
        self._at: Any = None
        self._manual = False  # inside a MANUAL runtime scope
        self._calls: list[Any] = []  # launches in the expressions of the current statement

    # --- dead and alive -----------------------------------------------------------------------------------------------

    def _kill(self, var: Any, launch: _Kill) -> None:
        self._log.append((var, self._dead.get(var)))
        self._dead[var] = launch

    def _revive(self, var: Any) -> None:
        if var in self._dead:
            self._log.append((var, self._dead.pop(var)))

    def _revive_all(self, variables: Iterable[Any]) -> None:
        if self._dead:
            for var in variables:
                self._revive(var)

    def _before(self, mark: int) -> dict[Any, _Kill | None]:
        """The variables that changed since ``mark``, with what they were then."""
        return dict(reversed(self._log[mark:]))  # the first entry of a variable counts

    def _undo(self, mark: int) -> None:
        log, dead = self._log, self._dead
        while len(log) > mark:
            var, was = log.pop()
            if was is None:
                dead.pop(var, None)
            else:
                dead[var] = was

    def _add(self, dead: Mapping[Any, _Kill | None]) -> None:
        """Join with another path on which these are dead."""
        for var, launch in dead.items():
            if launch is not None and var not in self._dead:
                self._kill(var, launch)

    # --- expressions --------------------------------------------------------------------------------------------------

    def _read(self, roots: Sequence[Any]) -> None:
        dead, constants = self._dead, CONSTANTS
        stack: list[Any] = []
        while True:
            for e in roots:
                cls = type(e)
                if cls is Var or cls is IterArg:
                    if e in dead:
                        self._stale(e)
                elif cls not in constants:
                    stack.append(e)
            if not stack:
                return
            e = stack.pop()
            cls = type(e)
            roots = self._of_call(e) if cls is Call or cls is Submit else OPERANDS[cls](e)

    def _of_call(self, e: Any) -> Sequence[Any]:
        """What a call reads; a launch is noted."""
        if type(e.op) is GlobalVar:
            self._calls.append(e)
        found: Sequence[Any] = e.args
        if e.attrs:
            found = [*found, *_read_attrs(e.attrs)]
        if type(e) is Submit:
            found = [*found, *e.deps, *(x for x in (e.core_num, e.predicate) if x is not None)]
        return found

    def _stale(self, var: Any) -> None:
        at = self._at
        for known in reversed(self.found):
            if known.stmt is not at:
                break
            if known.var is var:
                return
        call, argument = self._dead[var]
        callee = self._functions[call.op]
        index = parameter_index(callee.params, len(call.args), argument)
        assert index is not None
        self.found.append(StaleRead(var, at, Launch(call, argument, callee, callee.param_directions[index])))

    def _launch(self) -> None:
        """What the launches of the current statement kill, now that its operands are read."""
        for call in self._calls:
            if self._manual and type(call) is Submit:
                continue
            args = call.args
            for i in self._writes(call):
                arg = args[i]
                if (type(arg) is Var or type(arg) is IterArg) and not (call.attrs and _is_no_dep(call, i)):
                    self._kill(arg, (call, i))
        self._calls.clear()

    def _writes(self, call: Any) -> list[int]:
        """The arguments that a launch writes."""
        count = len(call.args)
        key = call.op.name, count
        found = self._written.get(key)
        if found is None:
            found = self._written[key] = []
            callee = self._functions.get(call.op)
            if callee is not None and callee.func_type is not FunctionType.Inline:
                for i in range(count):
                    index = parameter_index(callee.params, count, i)
                    if index is not None and callee.param_directions[index] is not ParamDirection.In:
                        found.append(i)
        return found

    # --- statements ---------------------------------------------------------------------------------------------------

    def stmt(self, stmt: Stmt) -> bool:
        """Walk a statement; whether control never comes behind it."""
        return _STATEMENTS[type(stmt)](self, stmt)

    def _seq(self, stmt: Any) -> bool:
        table = _STATEMENTS
        for inner in stmt.stmts:  # noqa: SIM110 (a generator would cost a frame for each statement)
            if table[type(inner)](self, inner):
                return True
        return False

    def _evaluate(self, stmt: Any, roots: Sequence[Any]) -> None:
        self._at = stmt
        self._read(roots)
        if self._calls:
            self._launch()

    def _assign(self, stmt: Any) -> bool:
        value = stmt.value
        if type(value) is TupleGetItemExpr:  # of a launch's results, most often
            value = value.tuple
        cls = type(value)
        if cls is Var:
            if value in self._dead:
                self._at = stmt
                self._stale(value)
        elif cls not in CONSTANTS:
            self._at = stmt
            self._read(self._of_call(value) if cls is Call else (value,))
            if self._calls:
                self._launch()
        if stmt.var in self._dead:
            self._revive(stmt.var)
        return False

    def _eval(self, stmt: Any) -> bool:
        self._evaluate(stmt, (stmt.expr,))
        return False

    def _yield(self, stmt: Any) -> bool:
        self._evaluate(stmt, stmt.value)
        return False

    def _return(self, stmt: Any) -> bool:
        self._evaluate(stmt, stmt.value)
        return True

    def _inline(self, _stmt: Any) -> bool:
        return False

    def _escape(self, stmt: Any) -> bool:
        """``break`` and ``continue``: what is dead here is dead behind the loop, or at its next iteration."""
        if self._loops:
            loop = self._loops[-1]
            loop.escapes = True
            target = loop.broken if type(stmt) is BreakStmt else loop.again
            for var in self._before(loop.mark):
                if var in self._dead:
                    target[var] = self._dead[var]
        return True

    def _if(self, stmt: Any) -> bool:
        self._evaluate(stmt, (stmt.condition,))
        mark = len(self._log)
        then_left = self.stmt(stmt.then_body)
        if stmt.else_body is None:
            if len(self._log) != mark:
                if then_left:
                    self._undo(mark)
                else:
                    self._add(self._before(mark))
            left = False
        else:
            left = self._else(stmt.else_body, mark, then_left)
        self._revive_all(stmt.return_vars)
        return left

    def _else(self, body: Stmt, mark: int, then_left: bool) -> bool:
        """The other branch, from the state before the first one, and what is dead behind both."""
        dead = self._dead
        then: dict[Any, _Kill | None] = {}
        if len(self._log) != mark:
            then = {var: dead.get(var) for var in self._before(mark)}
            self._undo(mark)
        left = self.stmt(body)
        if not then and len(self._log) == mark:
            return left and then_left
        if left and not then_left:
            self._undo(mark)
            for var, launch in then.items():
                if launch is None:
                    self._revive(var)
                else:
                    self._kill(var, launch)
        elif not left and not then_left:
            # Dead if dead behind either branch; what a branch does not touch is there what it was before.
            was = self._before(mark) if len(self._log) != mark else {}
            self._add(then)
            if was:
                self._add({var: launch for var, launch in was.items() if var not in then})
        return left and then_left

    def _for(self, stmt: Any) -> bool:
        carries = stmt.iter_args
        self._evaluate(stmt, (stmt.start, stmt.stop, stmt.step, *[arg.initValue for arg in carries]))
        self._loop(stmt, (stmt.loop_var, *carries), None, runs_at_least_once(stmt))
        return False

    def _while(self, stmt: Any) -> bool:
        self._evaluate(stmt, [arg.initValue for arg in stmt.iter_args])
        self._loop(stmt, stmt.iter_args, stmt.condition, False)
        return False

    def _loop(self, stmt: Any, bound: Sequence[Any], condition: Any, runs: bool) -> None:
        """``bound``: what each iteration binds anew; ``runs``: the body runs at least once."""
        if self._known and stmt in self._known:
            self._add(self._known[stmt])
        loop = _Loop(len(self._log))
        self._loops.append(loop)
        self._revive_all(bound)
        if condition is not None:
            self._evaluate(stmt, (condition,))
        left = self.stmt(stmt.body)
        self._loops.pop()
        if loop.escapes or not self._only_carries_since(loop.mark, bound):
            self._behind(stmt, loop, bound, left, left or loop.escapes or not runs)
        else:
            self._undo(loop.mark)
        self._revive_all(stmt.return_vars)

    def _only_carries_since(self, mark: int, bound: Sequence[Any]) -> bool:
        """Whether all that changed are carries of the loop, which were alive before it: nobody reads them behind it."""
        log = self._log
        if len(log) == mark:
            return True
        return all(was is None and any(var is arg for arg in bound) and type(var) is IterArg for var, was in log[mark:])

    def _behind(self, stmt: Any, loop: _Loop, bound: Sequence[Any], left: bool, skips: bool) -> None:
        """What is dead behind a loop, and at its next iteration. ``skips``: the end of the body may not be reached."""
        before = self._before(loop.mark)
        if left:
            self._undo(loop.mark)
        dead = self._dead
        again = {} if left else {var: dead[var] for var in before if var in dead}
        again.update(loop.again)
        anew = dict.fromkeys(bound)
        carried = {v: launch for v, launch in again.items() if (v not in before or before[v] is None) and v not in anew}
        if carried and not (type(stmt) is ForStmt and stmt.kind is ForKind.Parallel):
            self.left_dead[stmt] = carried
        if skips:
            self._add(before)
            self._add(loop.again)
            self._add(loop.broken)

    def _scope(self, stmt: Any) -> bool:
        self._at = stmt
        if stmt.attrs:
            self._read(_read_attrs(stmt.attrs))
        if type(stmt) is SpmdScopeStmt:
            self._evaluate(stmt, (stmt.core_num,))
        outer = self._manual
        if type(stmt) is RuntimeScopeStmt:
            self._manual = stmt.manual
        left = self.stmt(stmt.body)
        self._manual = outer
        return left


def _is_no_dep(call: Any, argument: int) -> bool:
    directions = call.arg_directions
    if argument in call.attrs.get("arg_direction_overrides", ()):
        return True
    return argument < len(directions) and directions[argument] is ArgDirection.NoDep


def _read_attrs(attrs: dict[str, Any]) -> list[Any]:
    return attrs_operands({key: value for key, value in attrs.items() if key not in _NAMING_ATTRS})


_STATEMENTS: dict[type, Callable[[_Walk, Any], bool]] = {
    SeqStmts: _Walk._seq,
    AssignStmt: _Walk._assign,
    EvalStmt: _Walk._eval,
    YieldStmt: _Walk._yield,
    ReturnStmt: _Walk._return,
    IfStmt: _Walk._if,
    ForStmt: _Walk._for,
    WhileStmt: _Walk._while,
    BreakStmt: _Walk._escape,
    ContinueStmt: _Walk._escape,
    InlineStmt: _Walk._inline,
    **dict.fromkeys(SCOPE_CLASSES, _Walk._scope),
}

__all__ = ["Launch", "StaleRead", "stale_reads"]
