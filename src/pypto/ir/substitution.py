"""Substitution of variables, and clones with fresh variables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

from .expr import Expr, IterArg, MemRef, Var
from .mutator import IRMutator
from .node import FrozenList, IRNode, Kind, Role
from .program import Function, Program
from .stmt import AssignStmt, ScopeStmt, SeqStmts, Stmt
from .traversal import NODE_CLASSES, NODE_FIELDS, child_fields, field_class_name, walk
from .type_fields import is_closed, map_type, type_expressions

Pairs = Iterable[tuple[Any, Any]] | Mapping[Any, Any]
NodeT = TypeVar("NodeT", bound=IRNode)


def _seeds(var_map: Pairs) -> dict[Any, Any]:
    pairs = var_map.items() if isinstance(var_map, Mapping) else var_map
    seeds: dict[Any, Any] = {}
    for old, new in pairs:
        if not isinstance(old, Var):
            raise TypeError(f"only variables can be substituted, got {type(old).__name__}")
        if not isinstance(new, Expr):
            raise TypeError(f"a variable is substituted by an expression, got {type(new).__name__}")
        seeds[old] = new
    return seeds


class _Substitute(IRMutator):
    """Replaces variables at uses and definitions, also inside types."""

    def __init__(self, seeds: dict[Any, Any]) -> None:
        self._seeds = seeds
        for old in seeds:
            self._resolve(old)

    def _resolve(self, old: Any) -> None:
        """Enter one pair; a replacement whose own type mentions substituted variables is made anew first."""
        if old in self._remap:
            return
        new = self._remap[old] = self._seeds[old]  # entered before the types are looked at, so that cycles stop
        if not isinstance(new, Var) or is_closed(new.type):
            return
        for e in type_expressions(new.type):
            for node in walk(e, types=True):
                if isinstance(node, Var) and node in self._seeds:
                    self._resolve(node)
        kind = map_type(new.type, self._rewrite_child)
        if kind is not new.type:
            again = self._remap[old] = new.replace(type=kind)
            if new not in self._seeds:
                self._remap.setdefault(new, again)


def _visit(mutator: IRMutator, node: Any) -> Any:
    if isinstance(node, Stmt):
        return mutator.visit_stmt(node)
    if isinstance(node, Expr):
        return mutator.visit_expr(node)
    if isinstance(node, Function):
        return mutator.visit_function(node)
    if isinstance(node, Program):
        return mutator.visit_program(node)
    raise TypeError(f"expected an IR node, got {type(node).__name__}")


def substitute(node: NodeT, var_map: Pairs) -> NodeT:
    """Any node with variables replaced by identity, at uses and definitions, also inside types.

    Without a match the node itself. A cyclic map (``a -> b, b -> a``) is applied once.
    """
    seeds = _seeds(var_map)
    return _visit(_Substitute(seeds), node) if seeds else node


def substitute_expr(expr: Expr, var_map: Pairs) -> Expr:
    """:func:`substitute` for an expression; ``var_map`` is a list of ``(old, new)``."""
    if not isinstance(expr, Expr):
        raise TypeError(f"substitute_expr expects an expression, got {type(expr).__name__}")
    return substitute(expr, var_map)


def substitute_stmt(body: Stmt, var_map: Pairs) -> Stmt:
    """:func:`substitute` for a statement; ``var_map`` is a list of ``(old, new)``."""
    if not isinstance(body, Stmt):
        raise TypeError(f"substitute_stmt expects a statement, got {type(body).__name__}")
    return substitute(body, var_map)


def definitions(node: IRNode) -> list[Any]:
    """The variables that a tree defines (assigned, loop, iter, return variables, parameters, task ids of scopes), in
    reading order."""
    found: dict[Any, None] = {}
    stack = [node]
    while stack:
        item = stack.pop()
        if type(item) is AssignStmt:  # most statements, without a detour
            found[item.var] = None
            continue
        defines, inside = _DEFINING[type(item)]
        for name, is_list in defines:
            value = getattr(item, name)
            if is_list:
                found.update(dict.fromkeys(value))
            else:
                found[value] = None
        if isinstance(item, ScopeStmt) and "task_id_var" in item.attrs:
            found[item.attrs["task_id_var"]] = None
        for name in inside:
            value = getattr(item, name)
            if isinstance(value, list):
                stack.extend(reversed(value))
            elif isinstance(value, dict):
                stack.extend(reversed(value.values()))
            elif value is not None:
                stack.append(value)
    return list(found)


def _defining(cls: type[IRNode]) -> tuple[tuple[tuple[str, bool], ...], tuple[str, ...]]:
    """The fields of a class that define variables, and those (last one first) that hold what may define some."""
    defines = tuple((info.name, info.kind is Kind.LIST) for info in NODE_FIELDS[cls] if info.role is Role.DEFINITION)
    inside = [info.name for info in child_fields(cls) if field_class_name(cls, info.name) == "Stmt"]
    if cls is Program:
        inside.append("functions")
    return defines, tuple(reversed(inside))


# Expressions define nothing.
_DEFINING = {cls: _defining(cls) for cls in NODE_CLASSES}


class _Clone(IRMutator):
    """Makes a fresh variable for each definition, whenever it is met first."""

    def __init__(self, node: IRNode, seeds: dict[Any, Any]) -> None:
        self._remap.update(seeds)
        self._own = {v: None for v in definitions(node) if v not in seeds}
        # The MemRefs of the variables defined here, and no others: variables from outside must stay what they are.
        self._own_memrefs = {
            e: None for v in self._own for e in type_expressions(v.type) if isinstance(e, MemRef) and e not in seeds
        }
        self.fresh: dict[Any, Any] = {}

    def visit_var(self, op: Any) -> Expr:
        new = self._remap.get(op)
        if new is None:
            if op not in self._own:
                return op  # type: ignore[no-any-return]
            new = self._make(op, type=self._new_type(op))
        return new  # type: ignore[no-any-return]

    def visit_iter_arg(self, op: IterArg) -> Expr:
        if op in self._remap or op not in self._own:
            return self.visit_var(op)
        value = self.visit_expr(op.initValue)
        return self._make(op, type=self._new_type(op), initValue=value)  # type: ignore[no-any-return]

    def visit_mem_ref(self, op: MemRef) -> Expr:
        new = super().visit_mem_ref(op)
        if op not in self._own_memrefs or op in self.fresh:
            return new
        if new is op:
            return self._make(op)  # type: ignore[no-any-return]
        self.fresh[op] = new
        return new

    def visit_seq_stmts(self, op: SeqStmts) -> Stmt:
        # Not flattened: a clone has the structure of what it is a clone of.
        return op.replace(stmts=FrozenList([self.visit_stmt(stmt) for stmt in op.stmts]))  # type: ignore[no-any-return]

    def visit_stmt(self, stmt: Stmt) -> Stmt:
        # A statement has one place in a function, so a clone never shares one, even if nothing in it changes.
        new = super().visit_stmt(stmt)
        return new.replace() if new is stmt else new

    def _make(self, op: Any, **changes: Any) -> Any:
        new = self._remap.get(op)
        if new is None:
            new = self._remap[op] = self.fresh[op] = op.replace(**changes)
        return new

    def _new_type(self, op: Any) -> Any:
        return map_type(op.type, self._rewrite_child)


def deep_clone(body: NodeT, var_map: Pairs = ()) -> tuple[NodeT, list[tuple[Any, Any]]]:
    """A copy with fresh variables at every definition, also the MemRefs of the defined variables.

    ``var_map`` is a list of ``(variable, expression)`` applied on the way. Gives the clone and the fresh variables as
    ``(old, new)``. Variables from outside stay the same objects.
    """
    clone = _Clone(body, _seeds(var_map))
    new = _visit(clone, body)
    return new, list(clone.fresh.items())
