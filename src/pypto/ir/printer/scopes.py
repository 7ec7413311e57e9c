"""Scopes: ``pl.at``, ``pl.cluster``, ``pl.scope``, ``pl.spmd``, ``pl.split_aiv``.

Every attribute has a place in the text: those with a keyword of their own there, any other one in ``attrs={...}``.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from ..enums import SplitMode
from ..expr import Call, GlobalVar, Submit
from ..node import Kind, Role
from ..stmt import (
    ClusterScopeStmt,
    CommDomainScopeStmt,
    HierarchyScopeStmt,
    InCoreScopeStmt,
    RuntimeScopeStmt,
    ScopeStmt,
    SplitAivScopeStmt,
    SpmdScopeStmt,
    Stmt,
)
from .literals import quoted
from .statements import INDENT, StatementPrinter, assigned_op, flat

_BLOCK_INDEX = "tile.get_block_idx"
_LANE_INDEX = "tile.get_subblock_idx"
# Keywords that hold lists of variables, and their attributes.
_LISTS = {"deps": "manual_dep_edges", "no_dep_args": "arg_direction_overrides_vars", "dumps": "dump_vars"}
_SWITCHES = ("allow_early_resolve", "windowize")


class ScopePrinter(StatementPrinter):
    """Adds scopes."""

    def _with(self, scope: ScopeStmt, function: str, texts: list[str], printed: Collection[str], indent: str) -> None:
        """The ``with`` line of a scope; attributes beyond ``printed`` print as ``attrs={...}``."""
        tid = scope.attrs.get("task_id_var")
        texts += self._other_attrs(scope, ("task_id_var", *printed))
        name = f" as {self.expr(tid)}" if tid is not None else ""
        self.lines.append(f"{indent}with {self.pl}{function}({', '.join(texts)}){name}:")

    def _other_attrs(self, scope: ScopeStmt, printed: Collection[str]) -> list[str]:
        return self.attrs({key: value for key, value in scope.attrs.items() if key not in printed})

    def _name(self, scope: ScopeStmt) -> list[str]:
        return [f"name_hint={quoted(scope.name_hint)}"] if scope.name_hint else []

    def _lists(self, scope: ScopeStmt, *keywords: str) -> list[str]:
        texts = []
        for keyword in keywords:
            values = [item for item in scope.attrs.get(_LISTS[keyword], ()) if item is not None]
            if values:
                texts.append(f"{keyword}=[{self.exprs(values)}]")
        return texts

    def _switch(self, scope: ScopeStmt, key: str) -> list[str]:
        return [f"{key}=True"] if scope.attrs.get(key) else []

    def _optimizations(self, scope: InCoreScopeStmt) -> list[str]:
        entries = []
        if scope.split is not SplitMode.NONE:
            entries.append(f"{self.pl}split({self._split_mode(scope.split)})")
        if "slot_num" in scope.attrs:
            entries.append(f"{self.pl}cross_core_slot(slot_num={scope.attrs['slot_num']})")
        return [f"optimizations=[{', '.join(entries)}]"] if entries else []

    def _split_mode(self, mode: SplitMode) -> str:
        return f"{self.pl}SplitMode.{mode.name}"

    # --- regions of one core, levels, clusters, runtime scopes --------------------------------------------------------

    def _at(self, scope: Any, head: list[str], printed: Collection[str], indent: str) -> None:
        texts = [*head, *self._name(scope), *self._lists(scope, *_LISTS)]
        for key in _SWITCHES:
            texts += self._switch(scope, key)
        self._with(scope, "at", texts, (*_LISTS.values(), *_SWITCHES, *printed), indent)
        self._nested(scope.body, indent)

    def _in_core(self, scope: InCoreScopeStmt, indent: str) -> None:
        self._at(scope, [f"level={self.pl}Level.CORE_GROUP", *self._optimizations(scope)], ("slot_num",), indent)

    def _hierarchy(self, scope: HierarchyScopeStmt, indent: str) -> None:
        head = [f"level={self.pl}Level.{scope.level.name}"]
        if scope.role is not None:
            head.append(f"role={self.pl}Role.{scope.role.name}")
        self._at(scope, head, (), indent)

    def _cluster(self, scope: ClusterScopeStmt, indent: str) -> None:
        self._with(scope, "cluster", self._name(scope), (), indent)
        self._nested(scope.body, indent)

    def _runtime(self, scope: RuntimeScopeStmt, indent: str) -> None:
        mode = [f"mode={self.pl}ScopeMode.MANUAL"] if scope.manual else []
        self._with(scope, "scope", mode + self._name(scope), (), indent)
        self._nested(scope.body, indent)

    def _comm_domain(self, scope: CommDomainScopeStmt, indent: str) -> None:
        devices = f"[{', '.join(map(str, scope.devices))}]" if scope.devices else "all"
        self.lines.append(f"{indent}# pld.comm_domain: devices={devices}, slots=[{self.exprs(scope.slots)}]")
        self.body(scope.body, indent)

    # --- lanes and blocks ---------------------------------------------------------------------------------------------

    def _split_aiv(self, scope: SplitAivScopeStmt, indent: str) -> None:
        stmts = flat(scope.body)
        target, dropped = "aiv_id", 0
        if stmts and assigned_op(stmts[0], _LANE_INDEX):
            target, dropped = self.names[stmts[0].var], 1  # type: ignore[attr-defined]
        texts = [str(scope.count), f"mode={self._split_mode(scope.split)}", *self._name(scope)]
        texts += self._other_attrs(scope, ())
        self.split_regions.append(scope.split.value)
        self._loop(target, "split_aiv", texts, stmts, dropped, indent)
        self.split_regions.pop()

    def _loop(
        self, target: str, function: str, texts: list[str], stmts: Any, dropped: int, indent: str, carrier: Any = None
    ) -> None:
        """A scope in loop form: the assignment of its index is the loop variable."""
        self.lines.append(f"{indent}for {target} in {self.pl}{function}({', '.join(texts)}):")
        self._inner(stmts, dropped, indent, carrier)

    def _inner(self, stmts: Any, dropped: int, indent: str, carrier: Any = None) -> None:
        """Statements of a scope that swallowed its ``carrier`` and its first statements, whose comments stay."""
        inner = indent + INDENT
        for stmt in (carrier, *stmts[:dropped]):
            if stmt is not None:
                self.comments(stmt, inner)
        outer, self._at_function_level = self._at_function_level, False
        self.block(stmts[dropped:], inner)
        self._at_function_level = outer

    def _spmd(self, scope: SpmdScopeStmt, indent: str) -> None:
        tid = scope.attrs.get("task_id_var")
        head = [self.expr(scope.core_num)]
        if scope.sync_start:
            head.append("sync_start=True")
        head += self._name(scope)
        tail = [*self._switch(scope, "allow_early_resolve")]
        predicate = scope.attrs.get("predicate")
        if predicate is not None:
            tail.append(f"predicate=({self.expr(predicate)})")
        own: tuple[str, ...] = ("allow_early_resolve", "predicate")
        carrier = _carrier(scope)
        if tid is not None:
            own += ("manual_dep_edges",)
            deps = self._lists(scope, "deps")
            if carrier is not None and _is_remade(carrier):
                self._with(scope, "spmd", [*head, *self._optimizations(carrier), *deps, *tail], own, indent)
                self._inner(flat(carrier.body), 0, indent, carrier)
                return
            tail = deps + tail
        elif carrier is not None:
            stmts = flat(carrier.body)
            if stmts and assigned_op(stmts[0], _BLOCK_INDEX):
                texts = [*head, *self._optimizations(carrier), *tail, *self._other_attrs(scope, own)]
                target = self.names[stmts[0].var]  # type: ignore[attr-defined]
                self._loop(target, "spmd", texts, stmts, 1, indent, carrier)
                return
        self._with(scope, "spmd", head + tail, own, indent)
        self._nested(scope.body, indent)


def _carrier(scope: SpmdScopeStmt) -> InCoreScopeStmt | None:
    """The InCore scope that a launch wraps around its body, if the launch's own text says all about it.

    The reader names the two after each other, and can give the inner one nothing but a split and a slot count.
    """
    stmts = flat(scope.body)
    if len(stmts) != 1 or type(stmts[0]) is not InCoreScopeStmt:
        return None
    inner = stmts[0]
    paired = scope.name_hint == (f"{inner.name_hint}_spmd" if inner.name_hint else "")
    return inner if paired and inner.attrs.keys() <= {"slot_num"} else None


def _is_remade(carrier: InCoreScopeStmt) -> bool:
    """Whether the reader makes this scope by itself around the statements of a ``with pl.spmd(...)``."""
    stmts = flat(carrier.body)
    if len(stmts) == 1 and type(stmts[0]) is InCoreScopeStmt:
        return False
    has_block_index, dispatches = _survey(carrier.body)
    if has_block_index:
        return True
    return dispatches == 1 and (carrier.split is not SplitMode.NONE or "slot_num" in carrier.attrs)


def _survey(body: Stmt) -> tuple[bool, int]:
    """Whether a body reads the block index, and how many kernels it launches."""
    dispatches = 0
    stack: list[Any] = [body]
    while stack:
        node = stack.pop()
        if type(node) is Call or type(node) is Submit:
            if node.op.name == _BLOCK_INDEX:
                return True, dispatches
            dispatches += type(node.op) is GlobalVar
        for info in type(node).node_fields:
            if info.role is Role.USE:
                value = getattr(node, info.name)
                stack.extend(value if info.kind is Kind.LIST else () if value is None else (value,))
    return False, dispatches


ScopePrinter._STATEMENTS.update(
    {
        InCoreScopeStmt: ScopePrinter._in_core,
        HierarchyScopeStmt: ScopePrinter._hierarchy,
        ClusterScopeStmt: ScopePrinter._cluster,
        RuntimeScopeStmt: ScopePrinter._runtime,
        CommDomainScopeStmt: ScopePrinter._comm_domain,
        SplitAivScopeStmt: ScopePrinter._split_aiv,
        SpmdScopeStmt: ScopePrinter._spmd,
    }
)
