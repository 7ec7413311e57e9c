"""What the user says of a tensor at a call of an Inline function, passed on to where the body uses the tensor.

``dump_vars`` and ``pl.no_dep`` are about launches. A call of an Inline function launches nothing itself, so each launch
of the body that takes the marked parameter gets the mark, and each scope that becomes a launch and uses it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...ir.expr import Call, GlobalVar, Var
from ...ir.node import FrozenDict, FrozenList
from ...ir.stmt import (
    ClusterScopeStmt,
    HierarchyScopeStmt,
    InCoreScopeStmt,
    ScopeStmt,
    SpmdScopeStmt,
    Stmt,
)
from ...ir.traversal import PUSH_CHILDREN
from ...ir.tree import flatten_to_stmts
from ..errors import PassError

_DUMP = "dump_vars"
_NO_DEP = "arg_direction_overrides"
_NO_DEP_OF_SCOPE = "arg_direction_overrides_vars"
# What stands first among the attributes of a scope.
_FIRST = ("manual_dep_edges", _NO_DEP_OF_SCOPE, _DUMP)

_OUTLINED = (InCoreScopeStmt, HierarchyScopeStmt, ClusterScopeStmt, SpmdScopeStmt)


class Marks:
    """The marked parameters of one expansion, as the variables of the Inline function, in their order."""

    def __init__(self, dumped: Sequence[Var] = (), undepended: Sequence[Var] = ()) -> None:
        self._dumped = dict.fromkeys(dumped)
        self._undepended = dict.fromkeys(undepended)
        self._used: dict[Stmt, set[Var]] | None = None

    def __bool__(self) -> bool:
        return bool(self._dumped or self._undepended)

    def of_call(self, call: Call, params: Sequence[Var]) -> Marks:
        """The marks of the parameters of a call that stands where these marks hold."""
        if not self and not call.attrs:
            return NO_MARKS
        for key in call.attrs:
            if key not in (_DUMP, _NO_DEP):
                raise PassError(
                    f"attribute '{key}' has no meaning on a call of Inline function '{call.op.name}'",
                    call.span,
                    hint="The call launches nothing itself: put it on the launches in the function",
                )
        dumps = {*self._dumped, *call.attrs.get(_DUMP, ())}
        no_deps = call.attrs.get(_NO_DEP, ())
        pairs = list(zip(params, call.args, strict=True))
        dumped = [param for param, arg in pairs if arg in dumps]
        undepended = [param for i, (param, arg) in enumerate(pairs) if i in no_deps or arg in self._undepended]
        return Marks(dumped, undepended) if dumped or undepended else NO_MARKS

    def on_launch(self, old: Any, new: Any) -> Any:
        """The launch ``new`` that ``old`` became, with the marks of its arguments."""
        if not self or type(old.op) is not GlobalVar:
            return new
        attrs = dict(new.attrs)
        pairs = list(zip(old.args, new.args, strict=True))
        dumps = {*attrs.pop(_DUMP, ())}
        found = [arg for before, arg in pairs if before in self._dumped or arg in dumps]
        if found:
            attrs = {_DUMP: FrozenList(dict.fromkeys(found)), **attrs}
        no_deps = {*attrs.get(_NO_DEP, ()), *(i for i, (before, _) in enumerate(pairs) if before in self._undepended)}
        if no_deps:
            attrs[_NO_DEP] = FrozenList(sorted(no_deps))
        return new.replace(attrs=FrozenDict(attrs)) if found or no_deps else new

    def on_scope(self, old: ScopeStmt, new: ScopeStmt, body: Stmt, named: Callable[[Var], Any]) -> ScopeStmt:
        """The same for a scope. ``body`` is the function's, ``named`` gives what a variable of it became."""
        if self._used is None:
            self._used = _uses_in_scopes(body, {*self._dumped, *self._undepended})
        used = self._used.get(old)
        if not used or (type(old) is SpmdScopeStmt and _has_kernel(old)):  # there the kernel scope has the marks
            return new
        attrs = dict(new.attrs)
        for key, marked in ((_NO_DEP_OF_SCOPE, self._undepended), (_DUMP, self._dumped)):
            found = [*attrs.get(key, ()), *(named(var) for var in marked if var in used)]
            if found:
                attrs[key] = FrozenList(dict.fromkeys(found))
        first = [key for key in _FIRST if key in attrs]
        attrs = {key: attrs[key] for key in [*first, *(key for key in attrs if key not in first)]}
        result: ScopeStmt = new.replace(attrs=FrozenDict(attrs))
        return result


NO_MARKS = Marks()


def _has_kernel(scope: SpmdScopeStmt) -> bool:
    return any(type(stmt) is InCoreScopeStmt for stmt in flatten_to_stmts(scope.body))


class _End:
    """Marks on a stack where a scope ends."""


_END = _End()


def _uses_in_scopes(body: Stmt, marked: set[Var]) -> dict[Stmt, set[Var]]:
    """For each scope that becomes a launch the marked variables that occur in it."""
    found: dict[Stmt, set[Var]] = {}
    around: list[set[Var]] = [set()]
    stack: list[Any] = [body]
    while stack:
        node = stack.pop()
        if node is _END:
            inner = around.pop()
            around[-1] |= inner
            continue
        if isinstance(node, Var):
            if node in marked:
                around[-1].add(node)
            continue
        if isinstance(node, _OUTLINED):
            around.append(set())
            found[node] = around[-1]
            stack.append(_END)
        code = PUSH_CHILDREN.get(type(node))
        if code is not None:
            code(node, stack.append)
    return found


__all__ = ["NO_MARKS", "Marks"]
