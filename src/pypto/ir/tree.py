"""Questions about trees: statements, definitions, yields, parents, variables."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from .call_types import deduce_call_return_type
from .expr import Expr, IterArg, Var
from .node import IRNode, Kind, Role
from .program import Function, Program
from .recursion import deep_recursion
from .stmt import (
    AssignStmt,
    ClusterScopeStmt,
    ForStmt,
    HierarchyScopeStmt,
    IfStmt,
    InCoreScopeStmt,
    RuntimeScopeStmt,
    ScopeStmt,
    SeqStmts,
    SplitAivScopeStmt,
    SpmdScopeStmt,
    Stmt,
    WhileStmt,
    YieldStmt,
    seq,
)
from .substitution import deep_clone, definitions, substitute, substitute_expr, substitute_stmt
from .traversal import (
    CONSTANTS,
    NODE_CLASSES,
    NODE_FIELDS,
    PUSH_CHILDREN,
    attrs_expressions,
    carried_fields,
    child_fields,
    field_class_name,
    own_type_expressions,
    walk,
)
from .type_fields import PLAIN_TYPES, is_closed, type_expressions

# The fields of each statement class that hold statements.
_STMT_FIELDS: dict[type, tuple[str, ...]] = {
    cls: tuple(info.name for info in child_fields(cls) if field_class_name(cls, info.name) == "Stmt")
    for cls in NODE_CLASSES
    if issubclass(cls, Stmt)
}


# The fields of each statement class that define variables, and whether these are lists.
_DEFINING: dict[type, tuple[tuple[str, bool], ...]] = {
    cls: found
    for cls in _STMT_FIELDS
    if (found := tuple((i.name, i.kind is Kind.LIST) for i in NODE_FIELDS[cls] if i.role is Role.DEFINITION))
}


def stmt_children(stmt: Stmt) -> list[Stmt]:
    """The statements directly inside a statement, in order."""
    found: list[Stmt] = []
    for name in _STMT_FIELDS[type(stmt)]:
        value = getattr(stmt, name)
        if isinstance(value, list):
            found += value
        elif value is not None:
            found.append(value)
    return found


def walk_stmts(stmt: Stmt) -> Iterator[Any]:
    """All statements of a tree, parents first, in reading order."""
    stack = [stmt]
    while stack:
        item = stack.pop()
        yield item
        if _STMT_FIELDS[type(item)]:
            stack.extend(reversed(stmt_children(item)))


def flatten_to_stmts(stmt: Stmt) -> list[Stmt]:
    """``[stmt]``, or the statements of a (nested) sequence."""
    if not isinstance(stmt, Stmt):
        raise TypeError(f"flatten_to_stmts expects a statement, got {type(stmt).__name__}")
    found = []
    stack = [stmt]
    while stack:
        item = stack.pop()
        if type(item) is SeqStmts:
            stack.extend(reversed(item.stmts))
        else:
            found.append(item)
    return found


# What is assigned in these is a definition of the region around them; a runtime or communication scope hides it.
_TRANSPARENT: tuple[type[Stmt], ...] = (
    SeqStmts,
    IfStmt,
    ForStmt,
    WhileStmt,
    InCoreScopeStmt,
    ClusterScopeStmt,
    HierarchyScopeStmt,
    SpmdScopeStmt,
    SplitAivScopeStmt,
)


def collect_def_vars(stmt: Stmt) -> list[Var]:
    """The assigned variables in textual order, one for each assignment; no loop and return variables."""
    found = []
    stack = [stmt]
    while stack:
        item = stack.pop()
        if type(item) is AssignStmt:
            found.append(item.var)
        elif type(item) in _TRANSPARENT:
            stack.extend(reversed(stmt_children(item)))
    return found


def find_yield_stmt(body: Stmt | None) -> YieldStmt | None:
    """The first yield at the top of a body, looking through sequences only."""
    if body is None:
        return None
    return next((item for item in flatten_to_stmts(body) if type(item) is YieldStmt), None)


def get_last_yield_stmt(body: Stmt | None) -> YieldStmt | None:
    """The last statement of a body if it is a yield, looking through sequences, runtime and split-AIV scopes."""
    while body is not None:
        if type(body) is YieldStmt:
            return body
        if type(body) is SeqStmts:
            body = body.stmts[-1] if body.stmts else None
        elif type(body) is RuntimeScopeStmt or type(body) is SplitAivScopeStmt:
            body = body.body
        else:
            return None
    return None


def yielded_values(body: Stmt | None) -> list[Expr]:
    """What the yield that ends a body yields; nothing without one."""
    last = get_last_yield_stmt(body)
    return [] if last is None else list(last.value)


def with_last_yield(body: Stmt, change: Callable[[YieldStmt], Sequence[Stmt]]) -> Stmt:
    """The body with other statements in place of the yield that ends it (see :func:`get_last_yield_stmt`)."""
    if type(body) is YieldStmt:
        return seq(list(change(body)), body.span)
    if type(body) is SeqStmts:
        return seq([*body.stmts[:-1], with_last_yield(body.stmts[-1], change)], body.span)
    assert isinstance(body, (RuntimeScopeStmt, SplitAivScopeStmt)), "the body ends in no yield"
    return body.replace(body=with_last_yield(body.body, change))  # type: ignore[no-any-return]


def own_definitions(stmt: Stmt) -> list[Any]:
    """The variables that a statement defines itself, without those in its bodies; a scope defines its task id."""
    if type(stmt) is AssignStmt:
        return [stmt.var]
    found: list[Any] = []
    for name, is_list in _DEFINING.get(type(stmt), ()):
        value = getattr(stmt, name)
        found += value if is_list else [value]
    if isinstance(stmt, ScopeStmt):
        task_id = stmt.attrs.get("task_id_var")
        if task_id is not None:
            found.append(task_id)
    return found


class ParentStmtAnalysis:
    """Which statement holds a statement, for the statements of one function."""

    def __init__(self) -> None:
        self._parents: dict[Stmt, Stmt] = {}

    def build_map(self, func: Function) -> None:
        """Look at a function; what was known of another one is forgotten."""
        if not isinstance(func, Function):
            raise TypeError(f"build_map expects a function, got {type(func).__name__}")
        parents: dict[Stmt, Stmt] = {}
        stack = [func.body]
        while stack:
            item = stack.pop()
            for child in stmt_children(item):
                parents[child] = item
                stack.append(child)
        self._parents = parents

    def get_parent(self, stmt: Stmt) -> Stmt | None:
        """The statement that directly holds ``stmt``; None for the body itself and for foreign statements."""
        return self._parents.get(stmt)

    def has_parent(self, stmt: Stmt) -> bool:
        """Whether :meth:`get_parent` knows one."""
        return stmt in self._parents

    def clear(self) -> None:
        """Forget everything."""
        self._parents = {}


def read_counts(node: IRNode) -> dict[Var, int]:
    """How often each variable of a tree is read, attributes included, types not."""
    found: dict[Var, int] = {}
    stack = [node]
    pop, push, pushers = stack.pop, stack.append, PUSH_CHILDREN
    while stack:
        item: Any = pop()
        cls = type(item)
        if cls is Var or cls is IterArg:
            found[item] = found.get(item, 0) + 1
        elif cls is AssignStmt:
            push(item.value)
        else:
            code = pushers.get(cls)
            if code is not None:
                code(item, push)
                if cls in _STMT_FIELDS:  # what is defined is among the children
                    for var in own_definitions(item):
                        found[var] = found.get(var, 0) - 1
    return found


# --- free variables ---------------------------------------------------------------------------------------------------


def free_vars(node: IRNode, types: bool = True) -> list[Any]:
    """The variables that a tree may read without having defined them before, in the order of first use.

    ``types`` also counts what the types of variables and calls mention. A definition in a loop body, or in one branch
    only, does not count after it; a scope is transparent. MemRefs and window buffers are not variables that a tree
    reads, but their base pointers are.
    """
    search = _FreeVars(types)
    with deep_recursion():
        search.node(node)
    return list(search.found)


class _FreeVars:
    def __init__(self, types: bool) -> None:
        self.found: dict[Any, None] = {}
        self._types = types
        self._defined: set[Any] = set()
        self._trail: list[Any] = []  # what was defined, in order, so that the end of a region can take it back
        self._typed: set[Any] = set()  # variables whose types were looked at

    def node(self, node: Any) -> None:
        if isinstance(node, Stmt):
            self._stmt(node)
        elif type(node) is Function:
            mark = len(self._trail)
            self._define(*node.params)
            self._uses(own_type_expressions(node) if self._types else [])
            self._uses(attrs_expressions(node.attrs))
            self._stmt(node.body)
            self._forget(mark)
        elif type(node) is Program:
            for func in node.functions.values():
                self.node(func)
        else:
            self._uses([node, node.initValue] if isinstance(node, IterArg) else [node])

    def _define(self, *variables: Any) -> None:
        defined = self._defined
        for variable in variables:
            if variable not in defined:
                defined.add(variable)
                self._trail.append(variable)
        for variable in variables:
            if type(variable.type) not in PLAIN_TYPES:
                self._look_at_type(variable)

    def _forget(self, mark: int) -> list[Any]:
        inside = self._trail[mark:]
        del self._trail[mark:]
        self._defined.difference_update(inside)
        return inside

    def _uses(self, roots: list[Any]) -> None:
        stack = roots[::-1]
        pop, push, defined, found = stack.pop, stack.append, self._defined, self.found
        while stack:
            item = pop()
            cls = type(item)
            if cls is Var or cls is IterArg:
                if item not in defined:
                    found[item] = None
                if type(item.type) not in PLAIN_TYPES:
                    self._look_at_type(item)
            elif cls not in CONSTANTS:
                code = PUSH_CHILDREN.get(cls)
                if code is not None:
                    code(item, push)
                kind = item.type
                if self._types and type(kind) not in PLAIN_TYPES and not is_closed(kind):
                    stack.extend(reversed(type_expressions(kind)))

    def _look_at_type(self, variable: Any) -> None:
        if self._types and not is_closed(variable.type) and variable not in self._typed:
            self._typed.add(variable)
            self._uses(type_expressions(variable.type))

    def _stmt(self, stmt: Any) -> None:
        cls = type(stmt)
        if cls is AssignStmt:
            self._uses([stmt.value])
            self._define(stmt.var)
        elif cls is SeqStmts:
            for item in stmt.stmts:
                self._stmt(item)
        elif cls is IfStmt:
            self._uses([stmt.condition])
            mark = len(self._trail)
            self._stmt(stmt.then_body)
            inside = self._forget(mark)
            if stmt.else_body is not None:
                self._stmt(stmt.else_body)
                other = set(self._forget(mark))
                self._define(*(v for v in inside if v in other))
            self._define(*stmt.return_vars)
        elif carried_fields(cls):
            self._loop(stmt)
        else:
            for info in child_fields(cls):
                value = getattr(stmt, info.name)
                if info.kind is Kind.ATTRS:
                    self._uses([e for e in attrs_expressions(value) if e is not value.get("task_id_var")])
                elif info.role is Role.USE and isinstance(value, Stmt):
                    self._stmt(value)
                elif info.role is Role.USE and value is not None:
                    self._uses(list(value) if info.kind is Kind.LIST else [value])
            self._define(*own_definitions(stmt))

    def _loop(self, stmt: Any) -> None:
        self._uses([arg.initValue for arg in stmt.iter_args])
        if type(stmt) is ForStmt:
            self._uses([stmt.start, stmt.stop, stmt.step, *attrs_expressions(stmt.attrs)])
        mark = len(self._trail)
        self._define(*stmt.iter_args)
        if type(stmt) is ForStmt:
            self._define(stmt.loop_var)
        else:
            self._uses([stmt.condition])
        self._stmt(stmt.body)
        self._forget(mark)
        self._define(*stmt.return_vars)


__all__ = [
    "ParentStmtAnalysis",
    "collect_def_vars",
    "deduce_call_return_type",
    "deep_clone",
    "definitions",
    "find_yield_stmt",
    "flatten_to_stmts",
    "free_vars",
    "get_last_yield_stmt",
    "own_definitions",
    "stmt_children",
    "substitute",
    "substitute_expr",
    "substitute_stmt",
    "walk",
    "walk_stmts",
]
