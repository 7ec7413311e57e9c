"""Whether the value of a variable is needed behind a branch, loop or scope.

The answers hold before SSA form, where one variable is assigned many times, and after. They are order-aware: a variable
that the following statements assign before they read it is not needed. Variables in conditions, headers, attributes,
dependencies and types count like operands, and so do the next iteration of a loop and all that follows the enclosing
constructs.

One walk over the function, backwards. At each branch, loop and scope it notes which of the variables assigned *inside*
are read behind it in the same statement list, and which are assigned there first; a question that this leaves open is
passed on to the enclosing construct. So nothing is collected for each statement, and the cost is the size of the
function times its nesting depth, at most.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence, Set
from typing import Any

from ..ir.expr import Call, Expr, IterArg, Var
from ..ir.program import Function
from ..ir.recursion import deep_recursion
from ..ir.stmt import (
    SCOPE_CLASSES,
    AssignStmt,
    BreakStmt,
    ClusterScopeStmt,
    CommDomainScopeStmt,
    ContinueStmt,
    EvalStmt,
    ForStmt,
    HierarchyScopeStmt,
    IfStmt,
    InCoreScopeStmt,
    InlineStmt,
    ReturnStmt,
    ScopeStmt,
    SeqStmts,
    SpmdScopeStmt,
    Stmt,
    WhileStmt,
    YieldStmt,
)
from ..ir.traversal import CONSTANTS, PUSH_CHILDREN, attrs_expressions
from ..ir.type_fields import PLAIN_TYPES, is_closed, type_expressions
from .constants import static_trip_count
from .task_ids import is_placeholder

# Scopes that become functions: what they compute for themselves alone stays inside.
OUTLINE_BOUNDARIES: frozenset[type[Stmt]] = frozenset(
    (InCoreScopeStmt, HierarchyScopeStmt, ClusterScopeStmt, SpmdScopeStmt, CommDomainScopeStmt)
)


def runs_at_least_once(loop: ForStmt) -> bool:
    """Whether the constant bounds of a counted loop give it an iteration."""
    return bool(static_trip_count(loop.start, loop.stop, loop.step))


class _Flow:
    """What a piece of code does to the variables, seen from its beginning.

    ``reads``: variable -> whether it is read, before it is assigned, by code that does not assign it itself in a scope
    that becomes a function. ``kills``: assigned on every path through; None: the end is never reached. ``escapes``:
    holds a break or continue of the innermost loop around it. ``assigned``: assigned somewhere, last first.
    """

    __slots__ = ("assigned", "escapes", "kills", "reads")

    def __init__(self) -> None:
        self.reads: dict[Var, bool] = {}
        self.kills: set[Var] | None = set()
        self.escapes = False
        self.assigned: dict[Var, None] = {}

    def put_before(self, part: _Flow) -> None:
        """Put a piece of code in front."""
        self.assigned.update(part.assigned)
        self.escapes |= part.escapes
        if part.kills is None:
            self.reads, self.kills = {}, None
        elif part.kills:
            reads = self.reads
            for var in part.kills:
                if var in reads:
                    del reads[var]
            if self.kills is not None:
                self.kills |= part.kills
        self.may_read(part.reads)

    def may_read(self, reads: dict[Var, bool]) -> None:
        """Reads that may happen here."""
        own = self.reads
        if False in reads.values():
            reads = {var: plain or own.get(var, False) for var, plain in reads.items()}
        own.update(reads)


_NONE: frozenset[Var] = frozenset()


class _Record:
    """What is known about one branch, loop or scope: what it assigns inside, and what is behind it in its list."""

    __slots__ = ("assigned", "escapes", "at_head", "kills", "loop", "parent", "position", "reads", "stmt")

    def __init__(self, stmt: Stmt, parent: _Record | None, loop: _Record | None) -> None:
        self.stmt = stmt
        self.parent = parent
        self.loop = loop  # the innermost loop around it
        self.assigned: dict[Var, None] = {}
        self.reads: dict[Var, bool] = {}
        self.kills: Set[Var] | None = _NONE
        self.escapes = False
        self.at_head: dict[Var, bool] = {}  # loops: read in an iteration before it assigns
        self.position = 0

    def note_rest(self, rest: _Flow, variables: Sequence[Var]) -> None:
        """Keep what matters here of the code behind."""
        reads, kills = rest.reads, rest.kills
        self.escapes = rest.escapes
        if reads:
            self.reads = {var: reads[var] for var in variables if var in reads}
        if kills is None:
            self.kills = None
        elif kills:
            self.kills = {var for var in variables if var in kills and var not in reads}


class Liveness:
    """Answers for one function; made by :func:`liveness`.

    ``definitions``: variable -> number of its definitions (parameters, assignments, loop variables, iter args, results,
    task ids). ``exposed``: variables that are defined in the function and may be read where they have no value, also
    when only a definition in a loop reaches the read; empty for a function in SSA form. ``retyped``: variables that are
    assigned a value of another shaped type than their own. ``needed_somewhere``: all variables for which a question
    about a need has the answer yes for some construct. ``shared``: a statement object stands in several places; the
    questions about it are then answered for one of them.
    """

    def __init__(self, function: Function, shared_names: Collection[Var] = ()) -> None:
        self._shared_names = shared_names
        self.definitions: dict[Var, int] = {}
        self.exposed: dict[Var, None] = {}
        self.retyped: set[Var] = set()
        self.needed_somewhere: set[Var] = set()
        self.shared = False
        self._records: dict[Stmt, _Record] = {}
        self._first: dict[Var, int] = {}  # where a variable is first defined; positions go down
        self._position = 0
        self._type_reads: dict[int, tuple[Any, tuple[Var, ...]]] = {}
        self._parent: _Record | None = None
        self._loop: _Record | None = None
        flow = _Flow()
        with deep_recursion():
            self._stmt(function.body, flow)
        self._read(flow, attrs_expressions(function.attrs))
        self._position -= 1  # parameters exist before the first statement, also where that is a scope
        for param in function.params:
            self._count(param)
            flow.reads.pop(param, None)
        self.exposed.update(dict.fromkeys(var for var in flow.reads if var in self.definitions))

    # --- questions ----------------------------------------------------------------------------------------------------

    def assigned(self, stmt: Stmt) -> Iterable[Var]:
        """The variables that a branch, loop or scope assigns inside, in the order of their last assignments.

        Also those of nested constructs, their results and loop variables, and task ids; not the results, loop variable
        and iter args of ``stmt`` itself.
        """
        record = self._records.get(stmt)
        return record.assigned if record is not None else ()

    def read_at_head(self, loop: Stmt, var: Var) -> bool:
        """Whether an iteration of a loop may read a variable before it assigns it."""
        return var in self._records[loop].at_head

    def needed_next(self, loop: Stmt, var: Var) -> bool:
        """Whether the value that a variable has at the end of an iteration is needed, in the next one or behind."""
        return self.read_at_head(loop, var) or self.needed_after(loop, var)

    def needed_after(self, stmt: Stmt, var: Var) -> bool:
        """Whether the value that a variable has at the end of a branch, loop or scope may be read later.

        Inside a scope that becomes a function, a variable that did not exist before the scope is not needed by later
        scopes that become functions and assign it themselves: they have a variable of their own of the name.
        """
        if var not in self.needed_somewhere:
            return False
        record: _Record | None = self._records[stmt]
        plain_only = False
        while record is not None:
            if var in record.reads and (record.reads[var] or not plain_only):
                return True
            if record.escapes and record.loop is not None and self._needed_at_escape(record.loop, var, plain_only):
                return True
            if record.kills is None or var in record.kills:
                return False
            record = record.parent
            if record is None:
                return False
            if type(record.stmt) in OUTLINE_BOUNDARIES:
                if not self._first.get(var, record.position) < record.position:
                    plain_only = True
            elif var in record.at_head and (record.at_head[var] or not plain_only):
                return True
        return False

    def _needed_at_escape(self, loop: _Record, var: Var, plain_only: bool) -> bool:
        return var in loop.at_head or self.needed_after(loop.stmt, var)

    # --- reads --------------------------------------------------------------------------------------------------------

    def _read(self, flow: _Flow, stack: list[Any]) -> None:
        reads, pop, push = flow.reads, stack.pop, stack.append
        while stack:
            item = pop()
            cls = type(item)
            if cls is Var or cls is IterArg:
                reads[item] = True
            elif cls in CONSTANTS:
                continue
            else:
                code = PUSH_CHILDREN.get(cls)
                if code is not None:
                    code(item, push)
            kind = item.type
            if type(kind) not in PLAIN_TYPES and not is_closed(kind):
                self._read_type(flow, kind)

    def _read_value(self, flow: _Flow, value: Any, seen: Any) -> None:
        """The reads of an assigned value; ``seen`` is a type that was looked at."""
        if type(value) is not Call:
            self._read(flow, [value])
            return
        reads = flow.reads
        operands: Sequence[Any] = value.args
        for e in operands:
            cls = type(e)
            if cls is Var:
                reads[e] = True
                if type(e.type) not in PLAIN_TYPES and not is_closed(e.type):
                    self._read_type(flow, e.type)
            elif cls not in CONSTANTS:
                self._read(flow, [e])
        if value.attrs or value.kwargs:
            self._read(flow, attrs_expressions(value.attrs) + attrs_expressions(value.kwargs))
        kind = value.type
        if kind is not seen and type(kind) not in PLAIN_TYPES and not is_closed(kind):
            self._read_type(flow, kind)

    def _read_type(self, flow: _Flow, kind: Any) -> None:
        """The reads in a type that is not closed."""
        found = self._type_reads.get(id(kind))
        if found is None:
            part = _Flow()
            self._read(part, type_expressions(kind))
            found = self._type_reads[id(kind)] = kind, tuple(part.reads)  # holds the type, so that its id stays its own
        for var in found[1]:
            flow.reads[var] = True

    def _define(self, flow: _Flow, var: Var) -> None:
        if var in flow.reads:
            del flow.reads[var]
        flow.assigned[var] = None
        if flow.kills is not None:
            flow.kills.add(var)
        self._count(var)

    def _count(self, var: Var) -> None:
        self.definitions[var] = self.definitions.get(var, 0) + 1
        self._first[var] = self._position

    # --- statements, last first ---------------------------------------------------------------------------------------

    def _stmt(self, stmt: Any, flow: _Flow) -> None:
        self._position -= 1
        _METHODS[type(stmt)](self, stmt, flow)

    def _seq(self, stmt: SeqStmts, flow: _Flow) -> None:
        stmts = stmt.stmts
        for i in range(len(stmts) - 1, -1, -1):
            inner = stmts[i]
            self._position -= 1
            _METHODS[type(inner)](self, inner, flow)
            if i and isinstance(inner, ScopeStmt) and is_placeholder(stmts[i - 1], inner):
                # The two are one definition.
                self.definitions[stmts[i - 1].var] -= 1  # type: ignore[attr-defined]

    def _assign(self, stmt: AssignStmt, flow: _Flow) -> None:
        var = stmt.var
        self._define(flow, var)
        kind = var.type
        if type(kind) not in PLAIN_TYPES:
            if not is_closed(kind):
                self._read_type(flow, kind)
            other = stmt.value.type
            if other is not kind and other != kind:
                self.retyped.add(var)
        self._read_value(flow, stmt.value, kind)

    def _eval(self, stmt: EvalStmt, flow: _Flow) -> None:
        self._read(flow, [stmt.expr])

    def _yield(self, stmt: YieldStmt, flow: _Flow) -> None:
        self._read(flow, list(stmt.value))

    def _return(self, stmt: ReturnStmt, flow: _Flow) -> None:
        flow.reads, flow.kills, flow.escapes = {}, None, False
        self._read(flow, list(stmt.value))

    def _escape(self, _stmt: Stmt, flow: _Flow) -> None:
        flow.reads, flow.kills, flow.escapes = {}, None, True

    def _text(self, _stmt: Stmt, _flow: _Flow) -> None:
        pass  # verbatim text of the host language mentions no variables of the IR

    def _open(self, stmt: Stmt) -> _Record:
        self.shared |= stmt in self._records
        record = self._records[stmt] = _Record(stmt, self._parent, self._loop)
        return record

    def _part(self, record: _Record, body: Stmt | None, loop: _Record | None) -> _Flow:
        """The flow of a body of a construct."""
        flow = _Flow()
        if body is not None:
            outer = self._parent, self._loop
            self._parent, self._loop = record, loop
            self._stmt(body, flow)
            self._parent, self._loop = outer
        return flow

    def _note_rest(self, record: _Record, rest: _Flow, own: Sequence[Var]) -> None:
        record.note_rest(rest, (*record.assigned, *own))
        self.needed_somewhere.update(record.reads)

    def _results(self, flow: _Flow, variables: Sequence[Var]) -> None:
        for var in variables:
            self._define(flow, var)
        for var in variables:
            if type(var.type) not in PLAIN_TYPES and not is_closed(var.type):
                self._read_type(flow, var.type)

    def _if(self, stmt: IfStmt, flow: _Flow) -> None:
        record = self._open(stmt)
        rest = flow
        other = self._part(record, stmt.else_body, self._loop)
        then = self._part(record, stmt.then_body, self._loop)
        record.assigned = _textual(other.assigned, then.assigned)
        self._note_rest(record, rest, stmt.return_vars)
        self._results(flow, stmt.return_vars)
        both = then
        both.assigned = {**other.assigned, **then.assigned} if other.assigned else then.assigned
        both.escapes |= other.escapes
        if then.kills is None or other.kills is None:
            both.kills = other.kills if then.kills is None else then.kills
        else:
            both.kills = then.kills & other.kills
        both.may_read(other.reads)
        flow.put_before(both)
        self._read(flow, [stmt.condition])

    def _for(self, stmt: ForStmt, flow: _Flow) -> None:
        body = self._loop_body(stmt, flow, runs_at_least_once(stmt), [stmt.loop_var], [])
        self._count(stmt.loop_var)
        body.assigned[stmt.loop_var] = None
        flow.put_before(body)
        self._read(flow, [stmt.start, stmt.stop, stmt.step, *(attrs_expressions(stmt.attrs) if stmt.attrs else ())])
        self._carries(stmt, flow)

    def _while(self, stmt: WhileStmt, flow: _Flow) -> None:
        flow.put_before(self._loop_body(stmt, flow, False, [], [stmt.condition]))
        self._carries(stmt, flow)

    def _loop_body(self, stmt: Any, flow: _Flow, once: bool, bound: list[Var], conditions: list[Expr]) -> _Flow:
        record = self._open(stmt)
        body = self._part(record, stmt.body, record)
        record.assigned = _textual(body.assigned)
        self._note_rest(record, flow, (*bound, *stmt.return_vars))
        self._results(flow, stmt.return_vars)
        if conditions:
            self._read(body, conditions)
        for var in (*bound, *stmt.iter_args):
            body.reads.pop(var, None)
        record.at_head = body.reads
        self.needed_somewhere.update(body.reads)
        # An iteration that escapes need not assign all; and it is not certain that there is one.
        if not once or body.escapes or body.kills is None:
            body.kills = set()
        else:
            # Not in SSA form, since the value has to be carried out of the loop.
            self.exposed.update((var, None) for var in body.assigned if var in body.kills and var in flow.reads)
            body.kills.update(bound)
            self.exposed.update(dict.fromkeys(var for var in bound if var in flow.reads))
        body.escapes = False
        return body

    def _carries(self, stmt: Any, flow: _Flow) -> None:
        for arg in stmt.iter_args:
            self._count(arg)
            self._read(flow, [arg.initValue])
            if type(arg.type) not in PLAIN_TYPES and not is_closed(arg.type):
                self._read_type(flow, arg.type)

    def _scope(self, stmt: Any, flow: _Flow) -> None:
        record = self._open(stmt)
        task_id = stmt.attrs.get("task_id_var") if stmt.attrs else None
        part = self._part(record, stmt.body, self._loop)
        record.position = self._position
        record.assigned = _textual(part.assigned)
        self._note_rest(record, flow, () if task_id is None else (task_id,))
        if task_id is not None:
            self._define(flow, task_id)
            record.assigned.setdefault(task_id)
        if type(stmt) in OUTLINE_BOUNDARIES:
            for var in part.reads:
                part.reads[var] = var not in part.assigned or var in self._shared_names
        flow.put_before(part)
        own = [e for e in attrs_expressions(stmt.attrs) if e is not task_id]
        if type(stmt) is SpmdScopeStmt:
            own.append(stmt.core_num)
        elif type(stmt) is CommDomainScopeStmt:
            own += stmt.slots
        self._read(flow, own)


def _textual(*last_first: dict[Var, None]) -> dict[Var, None]:
    """Variables noted last first, the later piece of code first, in textual order."""
    found: dict[Var, None] = {}
    for part in reversed(last_first):
        if part:
            found.update(dict.fromkeys(reversed(part)))
    return found


_METHODS: dict[type, Callable[[Liveness, Any, _Flow], None]] = {
    SeqStmts: Liveness._seq,
    AssignStmt: Liveness._assign,
    EvalStmt: Liveness._eval,
    YieldStmt: Liveness._yield,
    ReturnStmt: Liveness._return,
    BreakStmt: Liveness._escape,
    ContinueStmt: Liveness._escape,
    InlineStmt: Liveness._text,
    IfStmt: Liveness._if,
    ForStmt: Liveness._for,
    WhileStmt: Liveness._while,
    **dict.fromkeys(SCOPE_CLASSES, Liveness._scope),
}


def liveness(function: Function, shared_names: Collection[Var] = ()) -> Liveness:
    """Look at a function once. ``shared_names``: variables that are one in all scopes that become functions, also where
    such a scope assigns them itself."""
    return Liveness(function, shared_names)


__all__ = ["OUTLINE_BOUNDARIES", "Liveness", "liveness", "runs_at_least_once"]
