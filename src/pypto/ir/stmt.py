"""Statements. Bodies are single statements; several are wrapped in ``SeqStmts``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from ..diag.errors import InternalError
from .attrs import normalize_attrs
from .enums import ForKind, InlineLanguage, Level, Role, ScopeKind, SplitMode
from .expr import Expr, IterArg, Var, WindowBuffer, index_const
from .node import (
    EMPTY_LIST,
    FrozenDict,
    FrozenList,
    IRNode,
    Kind,
    attribute,
    checked_list,
    definition,
    use,
    wrong_kind,
)
from .span import UNKNOWN_SPAN, Span


def _copy_comments(old: Any, new: Any) -> None:
    comments = getattr(old, "_comments", None)
    if comments:
        object.__setattr__(new, "_comments", comments)


class Stmt(IRNode, abstract=True):
    """Base of statements. ``leading_comments`` are texts without ``#``, ignored by equality."""

    __slots__ = ("_comments",)
    _comments: tuple[str, ...]  # unset where there are none
    _finish_copy = staticmethod(_copy_comments)

    @property
    def leading_comments(self) -> list[str]:
        """The comment lines above the statement."""
        return list(getattr(self, "_comments", ()))

    if TYPE_CHECKING:

        def replace(self, **changes: Any) -> Any: ...


def attach_leading_comments(stmt: Stmt, comments: Sequence[str]) -> Stmt:
    """Replace the comments of ``stmt`` in place and return it."""
    if not isinstance(stmt, Stmt):
        raise TypeError(f"attach_leading_comments expects a statement, got {type(stmt).__name__}")
    if isinstance(stmt, SeqStmts):
        raise ValueError("a SeqStmts cannot own comments: attach them to one of its statements")
    if isinstance(comments, str):
        raise TypeError("attach_leading_comments expects a list of strings")
    texts = tuple(comments)
    for text in texts:
        if not isinstance(text, str):
            wrong_kind("attach_leading_comments", "each comment", str, text)
    object.__setattr__(stmt, "_comments", texts)
    return stmt


class AssignStmt(Stmt):
    """``var = value``."""

    __slots__ = ()
    _init_order = ("var", "value", "span")
    var: Var = definition()
    value: Expr = use()


class IfStmt(Stmt):
    """A branch; with ``return_vars`` both bodies end with a yield of as many values."""

    __slots__ = ()
    condition: Expr = use()
    then_body: Stmt = use()
    else_body: Stmt | None = use(Kind.OPTIONAL)
    return_vars: FrozenList[Var] = definition(Kind.LIST)


class YieldStmt(Stmt):
    """Gives values to the enclosing loop or branch."""

    __slots__ = ()
    value: FrozenList[Expr] = use(Kind.LIST)

    def __init__(self, value: Any = None, span: Any = UNKNOWN_SPAN) -> None:
        if type(value) is not FrozenList:
            value, span = _checked_values("YieldStmt", value, span)
        _set_yielded(self, value)
        _set_span(self, span)


class ReturnStmt(Stmt):
    """Leaves the function with values."""

    __slots__ = ()
    value: FrozenList[Expr] = use(Kind.LIST)

    def __init__(self, value: Any = None, span: Any = UNKNOWN_SPAN) -> None:
        if type(value) is not FrozenList:
            value, span = _checked_values("ReturnStmt", value, span)
        _set_returned(self, value)
        _set_span(self, span)


_set_yielded = YieldStmt.__dict__["value"].__set__
_set_returned = ReturnStmt.__dict__["value"].__set__


def _checked_values(owner: str, value: Any, span: Any) -> tuple[FrozenList[Expr], Span]:
    """Values and span of a statement that may be made from its span alone."""
    if isinstance(value, Span):
        value, span = None, value
    return checked_list(value, Expr, owner, "value"), span


class ForStmt(Stmt):
    """A counted loop. ``return_vars`` hold the carried values after it, one per iter_arg."""

    __slots__ = ()
    loop_var: Var = definition()
    start: Expr = use()
    stop: Expr = use()
    step: Expr = use()
    iter_args: FrozenList[IterArg] = definition(Kind.LIST)
    body: Stmt = use()
    return_vars: FrozenList[Var] = definition(Kind.LIST)
    kind: ForKind = attribute()
    attrs: FrozenDict[str, Any] = attribute(Kind.ATTRS)

    def __init__(
        self,
        loop_var: Var,
        start: Expr,
        stop: Expr,
        step: Expr,
        iter_args: Sequence[IterArg],
        body: Stmt,
        return_vars: Sequence[Var],
        span: Span = UNKNOWN_SPAN,
        kind: ForKind = ForKind.Sequential,
        attrs: Any = None,
    ) -> None:
        if not isinstance(loop_var, Var):
            wrong_kind("ForStmt", "loop_var", Var, loop_var)
        for name, bound in (("start", start), ("stop", stop), ("step", step)):
            if not isinstance(bound, Expr):
                wrong_kind("ForStmt", name, Expr, bound)
        if not isinstance(body, Stmt):
            wrong_kind("ForStmt", "body", Stmt, body)
        if not isinstance(kind, ForKind):
            wrong_kind("ForStmt", "kind", ForKind, kind)
        values = (
            loop_var,
            start,
            stop,
            step,
            checked_list(iter_args, IterArg, "ForStmt", "iter_args"),
            body,
            checked_list(return_vars, Var, "ForStmt", "return_vars"),
            kind,
            normalize_attrs(attrs),
            span,
        )
        for info, value in zip(ForStmt.node_fields, values, strict=True):
            info.setter(self, value)


class WhileStmt(Stmt):
    """A conditional loop; ``condition`` reads the iter_args' current values."""

    __slots__ = ()
    _init_order = ("condition", "iter_args", "body", "return_vars", "span")
    iter_args: FrozenList[IterArg] = definition(Kind.LIST)
    condition: Expr = use()
    body: Stmt = use()
    return_vars: FrozenList[Var] = definition(Kind.LIST)


class SeqStmts(Stmt):
    """Statements in order. The plain constructor keeps what it is given; see :func:`seq`."""

    __slots__ = ()
    stmts: FrozenList[Stmt] = use(Kind.LIST)

    def __init__(self, stmts: Sequence[Stmt], span: Span = UNKNOWN_SPAN) -> None:
        _set_stmts(self, stmts if type(stmts) is FrozenList else checked_list(stmts, Stmt, "SeqStmts", "stmts"))
        _set_span(self, span)

    def __getitem__(self, index: int) -> Stmt:
        return self.stmts[index]

    def __len__(self) -> int:
        return len(self.stmts)


_set_stmts = SeqStmts.__dict__["stmts"].__set__
_set_span = IRNode.__dict__["span"].__set__


def seq(stmts: Sequence[Stmt], span: Span = UNKNOWN_SPAN) -> Stmt:
    """The flattening constructor that rewriters use: nested sequences are inlined, a single statement unwrapped."""
    if SeqStmts in map(type, stmts):
        stmts = [inner for stmt in stmts for inner in _inline(stmt)]
    return stmts[0] if len(stmts) == 1 else SeqStmts(FrozenList(stmts), span)


def _inline(stmt: Stmt) -> Sequence[Stmt]:
    return [x for inner in stmt.stmts for x in _inline(inner)] if type(stmt) is SeqStmts else (stmt,)


class EvalStmt(Stmt):
    """An expression evaluated for its effect."""

    __slots__ = ()
    expr: Expr = use()


class BreakStmt(Stmt):
    """Leaves the innermost loop."""

    __slots__ = ()

    def __init__(self, span: Span = UNKNOWN_SPAN) -> None:
        _set_span(self, span)


class ContinueStmt(Stmt):
    """Goes to the next iteration of the innermost loop."""

    __slots__ = ()

    def __init__(self, span: Span = UNKNOWN_SPAN) -> None:
        _set_span(self, span)


class InlineStmt(Stmt):
    """Verbatim host-language text."""

    __slots__ = ()
    body: str = attribute()
    language: InlineLanguage = attribute()


# --- scopes -----------------------------------------------------------------------------------------------------------


class ScopeStmt(Stmt, abstract=True):
    """Base of scopes: a named region with attributes, whose order is kept for printing."""

    __slots__ = ()
    scope_kind: ClassVar[ScopeKind] = None  # type: ignore[assignment]  # each subclass says its own
    name_hint: str = attribute()
    body: Stmt = use()
    attrs: FrozenDict[str, Any] = attribute(Kind.ATTRS)

    def _init_scope(self, name_hint: str, body: Stmt, attrs: Any, span: Span, **own: Any) -> None:
        owner = type(self).__name__
        if not isinstance(name_hint, str):
            wrong_kind(owner, "name_hint", str, name_hint)
        if not isinstance(body, Stmt):
            wrong_kind(owner, "body", Stmt, body)
        values = {"name_hint": name_hint, "body": body, "attrs": normalize_attrs(attrs), "span": span, **own}
        for info in type(self).node_fields:
            info.setter(self, values[info.name])


_SCOPE_ORDER = ("name_hint", "body", "attrs")


class InCoreScopeStmt(ScopeStmt):
    """A region that becomes a kernel."""

    __slots__ = ()
    _field_order = _SCOPE_ORDER
    scope_kind = ScopeKind.InCore
    split: SplitMode = attribute()

    def __init__(
        self,
        split: SplitMode = SplitMode.NONE,
        name_hint: str = "",
        *,
        body: Stmt,
        span: Span = UNKNOWN_SPAN,
        attrs: Any = None,
    ) -> None:
        split = SplitMode.NONE if split is None else split
        if not isinstance(split, SplitMode):
            wrong_kind("InCoreScopeStmt", "split", SplitMode, split)
        self._init_scope(name_hint, body, attrs, span, split=split)


class ClusterScopeStmt(ScopeStmt):
    """A co-scheduled cube and vector group."""

    __slots__ = ()
    scope_kind = ScopeKind.Cluster

    def __init__(self, name_hint: str = "", *, body: Stmt, span: Span = UNKNOWN_SPAN, attrs: Any = None) -> None:
        self._init_scope(name_hint, body, attrs, span)


class HierarchyScopeStmt(ScopeStmt):
    """A region at another level of the machine."""

    __slots__ = ()
    _field_order = _SCOPE_ORDER
    scope_kind = ScopeKind.Hierarchy
    level: Level = attribute()
    role: Role | None = attribute()

    def __init__(
        self,
        level: Level,
        role: Role | None = None,
        name_hint: str = "",
        *,
        body: Stmt,
        span: Span = UNKNOWN_SPAN,
        attrs: Any = None,
    ) -> None:
        if not isinstance(level, Level):
            wrong_kind("HierarchyScopeStmt", "level", Level, level)
        if role is not None and not isinstance(role, Role):
            wrong_kind("HierarchyScopeStmt", "role", Role, role)
        self._init_scope(name_hint, body, attrs, span, level=level, role=role)


class SpmdScopeStmt(ScopeStmt):
    """A region launched over ``core_num`` blocks."""

    __slots__ = ()
    _field_order = _SCOPE_ORDER
    scope_kind = ScopeKind.Spmd
    core_num: Expr = use()
    sync_start: bool = attribute()

    def __init__(
        self,
        core_num: Expr | int,
        sync_start: bool = False,
        name_hint: str = "",
        *,
        body: Stmt,
        span: Span = UNKNOWN_SPAN,
        attrs: Any = None,
    ) -> None:
        count = index_const(core_num) if type(core_num) is int else core_num
        if not isinstance(count, Expr):
            wrong_kind("SpmdScopeStmt", "core_num", Expr, count)
        self._init_scope(name_hint, body, attrs, span, core_num=count, sync_start=bool(sync_start))


class SplitAivScopeStmt(ScopeStmt):
    """A region whose work is split over the two vector lanes."""

    __slots__ = ()
    _field_order = _SCOPE_ORDER
    scope_kind = ScopeKind.SplitAiv
    split: SplitMode = attribute()
    count: int = attribute()

    def __init__(
        self,
        split: SplitMode,
        count: int = 2,
        name_hint: str = "",
        *,
        body: Stmt,
        span: Span = UNKNOWN_SPAN,
        attrs: Any = None,
    ) -> None:
        if not isinstance(split, SplitMode):
            wrong_kind("SplitAivScopeStmt", "split", SplitMode, split)
        if count != 2:
            raise InternalError(f"SplitAivScopeStmt: count must be 2, got {count}")
        self._init_scope(name_hint, body, attrs, span, split=split, count=count)


class RuntimeScopeStmt(ScopeStmt):
    """An AUTO or MANUAL dependency scope of the task runtime."""

    __slots__ = ()
    _field_order = _SCOPE_ORDER
    scope_kind = ScopeKind.Runtime
    manual: bool = attribute()

    def __init__(
        self,
        manual: bool = False,
        name_hint: str = "",
        *,
        body: Stmt,
        span: Span = UNKNOWN_SPAN,
        attrs: Any = None,
    ) -> None:
        self._init_scope(name_hint, body, attrs, span, manual=bool(manual))


class CommDomainScopeStmt(ScopeStmt):
    """A communication domain; ``devices == []`` means all devices."""

    __slots__ = ()
    _field_order = _SCOPE_ORDER
    scope_kind = ScopeKind.CommDomain
    devices: FrozenList[int] = attribute()
    slots: FrozenList[WindowBuffer] = use(Kind.LIST)

    def __init__(
        self,
        devices: Sequence[int],
        slots: Sequence[WindowBuffer],
        name_hint: str = "",
        *,
        body: Stmt,
        span: Span = UNKNOWN_SPAN,
        attrs: Any = None,
    ) -> None:
        own = {
            "devices": checked_list(devices, int, "CommDomainScopeStmt", "devices"),
            "slots": checked_list(slots, WindowBuffer, "CommDomainScopeStmt", "slots"),
        }
        self._init_scope(name_hint, body, attrs, span, **own)


SCOPE_CLASSES: tuple[type[ScopeStmt], ...] = tuple(ScopeStmt.__subclasses__())

__all__ = [
    "EMPTY_LIST",
    "SCOPE_CLASSES",
    "AssignStmt",
    "BreakStmt",
    "ClusterScopeStmt",
    "CommDomainScopeStmt",
    "ContinueStmt",
    "EvalStmt",
    "ForStmt",
    "HierarchyScopeStmt",
    "IfStmt",
    "InCoreScopeStmt",
    "InlineStmt",
    "ReturnStmt",
    "RuntimeScopeStmt",
    "ScopeStmt",
    "SeqStmts",
    "SplitAivScopeStmt",
    "SpmdScopeStmt",
    "Stmt",
    "WhileStmt",
    "YieldStmt",
    "attach_leading_comments",
    "seq",
]
