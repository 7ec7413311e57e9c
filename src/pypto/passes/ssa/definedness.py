"""Variables without a value on some path, while a function is converted to SSA form.

A name that is assigned in one branch only, or in a loop that may run zero times, has no value on the other path. To
read it is an error of the user, unless a flag says that this path was not taken, as behind a lowered ``break`` or
``continue`` (:mod:`pypto.analysis.undefined_reads`). Such a variable gets some value of its type on the other path.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...arith.prove import prove_eq, prove_le, prove_lt
from ...ir import expr as x
from ...ir.expr import ConstBool, ConstInt, Expr, Var
from ...ir.names import base_name
from ...ir.span import Span
from ...ir.substitution import substitute_expr
from ...ir.traversal import CONSTANTS, NODE_CLASSES, walk
from ..errors import PassError


class MayBeUndefined(PassError):
    """A variable is read that may have no value."""


class Reason:
    """Why a variable may have no value: a text that completes ``'x' may be undefined: ...``, and the places."""

    __slots__ = ("labels", "text")

    def __init__(self, text: str, labels: tuple[tuple[Span, str], ...] = ()) -> None:
        self.text = text
        self.labels = labels

    def error(self, var: Var, span: Span) -> MayBeUndefined:
        """The error for a read at ``span``."""
        name = base_name(var.name_hint)
        return MayBeUndefined(
            f"'{name}' may be undefined: {self.text}",
            span,
            labels=self.labels,
            hint=f"Give '{name}' a value before, so that it has one on every path",
        )


def place(span: Span | None) -> str:
    """``(defined here: file:line:column)``, or nothing for an unknown place."""
    return f" (defined here: {span})" if span is not None and span.is_valid() else ""


def in_loop(loop: Any, definition: Span | None) -> Reason:
    """Assigned in a loop that may run zero times."""
    return Reason(
        f"it is only assigned in a loop that may run zero times{place(definition)}",
        _labels((definition, "assigned here"), (loop.span, "this loop may run zero times")),
    )


def left_early(escape: Any, definition: Span | None) -> Reason:
    """Assigned in a loop, behind a break or continue."""
    return Reason(
        f"the loop that assigns it may be left before{place(definition)}",
        _labels((definition, "assigned here"), (escape.span, "the iteration may end here")),
    )


def in_branch(stmt: Any, branch: str, definition: Span | None) -> Reason:
    """Assigned in one branch of an ``if``, ``then`` or ``else``."""
    if stmt.else_body is None:
        lacks = "without an else branch"
    else:
        lacks = f"whose {'else' if branch == 'then' else 'then'} branch does not assign it"
    return Reason(
        f"it is only assigned in the {branch} branch of an `if` {lacks}{place(definition)}",
        _labels((definition, "assigned here"), (stmt.span, f"an `if` {lacks}")),
    )


def first_read(loop: Any) -> Reason:
    """Read in an iteration before that iteration assigns it."""
    return Reason("the first iteration of the loop reads it before it is assigned", _labels((loop.span, "this loop")))


def _labels(*pairs: tuple[Span | None, str]) -> tuple[tuple[Span, str], ...]:
    return tuple((span, text) for span, text in pairs if span is not None)


NEVER_ASSIGNED = Reason("it is read before anything is assigned to it")
NOT_KEPT = Reason("its value is not kept behind the branch or loop that assigns it")


class Undefined:
    """The state of a variable that may have no value here."""

    __slots__ = ("reason", "stand_in")

    def __init__(self, reason: Reason, stand_in: Expr | None = None) -> None:
        self.reason = reason
        self.stand_in = stand_in  # for places that no read sees


# The classes of states that are no value: a state may be None where nothing was assigned yet. Asked for each variable
# at each branch, and faster than ``isinstance(state, Expr)``.
NO_VALUE: frozenset[type] = frozenset((Undefined, type(None)))
VARIABLES: frozenset[type] = frozenset(cls for cls in NODE_CLASSES if issubclass(cls, Var))


class Facts:
    """What is known of SSA values: constants, and what the conditions around this place say of flags."""

    def __init__(self) -> None:
        self._constants: dict[Expr, Expr] = {}
        self._flags: dict[Expr, bool] = {}
        self._trail: list[tuple[Expr, bool | None]] = []

    def note_value(self, version: Expr, value: Expr) -> None:
        """``version = value`` was assigned."""
        if type(value) in CONSTANTS:
            self._constants[version] = value
        elif type(value) in VARIABLES and value in self._constants:
            self._constants[version] = self._constants[value]

    def mark(self) -> int:
        """The mark to leave to."""
        return len(self._trail)

    def enter(self, condition: Expr, value: bool) -> int:
        """From here on the condition has this value. Gives the mark to leave to."""
        mark = len(self._trail)
        if type(condition) not in _TELLING:
            return mark
        stack = [(condition, value)]
        while stack:
            e, holds = stack.pop()
            kind = type(e)
            if isinstance(e, Var):
                self._trail.append((e, self._flags.get(e)))
                self._flags[e] = holds
            elif kind is x.Not:
                stack.append((e.operand, not holds))  # type: ignore[attr-defined]
            elif kind is (x.And if holds else x.Or):
                stack += [(e.left, holds), (e.right, holds)]  # type: ignore[attr-defined]
        return mark

    def leave(self, mark: int) -> None:
        """Forget what was entered since."""
        while len(self._trail) > mark:
            flag, before = self._trail.pop()
            if before is None:
                del self._flags[flag]
            else:
                self._flags[flag] = before

    def flag(self, version: Any) -> bool | None:
        """The value of a flag, if it is known here."""
        found = self._flags.get(version)
        if found is None:
            constant = self._constants.get(version)
            found = constant.value if type(constant) is ConstBool else None
        return found

    def holds(self, condition: Expr, values: Mapping[Any, Expr] | None = None) -> bool:
        """Whether a condition is proved, with the known constants put in."""
        kind = type(condition)
        if kind is ConstBool:
            return condition.value  # type: ignore[attr-defined, no-any-return]
        if isinstance(condition, Var):
            return self.flag(condition) is True
        if kind is x.Not:
            operand: Expr = condition.operand  # type: ignore[attr-defined]
            if isinstance(operand, Var):
                return self.flag(operand) is False
            return type(operand) is ConstBool and not operand.value
        if kind is x.And:
            return self.holds(condition.left) and self.holds(condition.right)  # type: ignore[attr-defined]
        if kind is x.Or:
            return self.holds(condition.left) or self.holds(condition.right)  # type: ignore[attr-defined]
        prove = _PROOFS.get(kind)
        if prove is None:
            return False
        left, right = (self.known(e) for e in (condition.left, condition.right))  # type: ignore[attr-defined]
        return bool(prove(left, right))

    def known(self, e: Expr) -> Expr:
        """An expression with the known constants put in."""
        if isinstance(e, Var):
            return self._constants.get(e, e)
        found = {v: self._constants[v] for v in walk(e) if isinstance(v, Var) and v in self._constants}
        return substitute_expr(e, found) if found else e

    def enters(self, start: Expr, stop: Expr, step: Expr) -> bool:
        """Whether a counted loop is proved to have an iteration."""
        start, stop, step = self.known(start), self.known(stop), self.known(step)
        if type(step) is not ConstInt or step.value == 0:
            return False
        return bool(prove_lt(start, stop) if step.value > 0 else prove_lt(stop, start))


_TELLING = VARIABLES | {x.Not, x.And, x.Or}  # conditions that say something of flags
_PROOFS: dict[type, Any] = {
    x.Lt: prove_lt,
    x.Le: prove_le,
    x.Gt: lambda a, b: prove_lt(b, a),
    x.Ge: lambda a, b: prove_le(b, a),
    x.Eq: prove_eq,
    x.Ne: lambda a, b: prove_eq(a, b) is False,
}

__all__ = [
    "NEVER_ASSIGNED",
    "NOT_KEPT",
    "NO_VALUE",
    "VARIABLES",
    "Facts",
    "MayBeUndefined",
    "Reason",
    "Undefined",
    "first_read",
    "in_branch",
    "in_loop",
    "left_early",
]
