"""How a user silences a check for one function: a comment in it, or an attribute of it."""

from __future__ import annotations

import re

from ...ir.program import Function
from ...ir.stmt import Stmt
from ...ir.tree import stmt_children

ATTRIBUTE = "ignore_checks"
_COMMENT = re.compile(r"pypto:\s*ignore\[([^\]]*)\]")


def silenced(function: Function, check: str) -> bool:
    """Whether a function says ``# pypto: ignore[check, ...]`` or ``pl.func_attr({"ignore_checks": "check, ..."})``."""
    value = function.attrs.get(ATTRIBUTE)
    if isinstance(value, str) and check in _names(value):
        return True
    return any(check in _names(names) for names in _ignored(function.body))


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",")]


def _ignored(body: Stmt) -> list[str]:
    found: list[str] = []
    stack = [body]
    while stack:
        stmt = stack.pop()
        for comment in stmt.leading_comments:
            found += _COMMENT.findall(comment)
        stack += stmt_children(stmt)
    return found


__all__ = ["ATTRIBUTE", "silenced"]
