"""Structural equality: same meaning, whatever the names of variables and functions, spans and comments."""

from __future__ import annotations

from typing import Any

from ..diag.errors import InternalError
from .comparison import Comparison
from .mismatch import Mismatch
from .node import IRNode
from .type import Type


def structural_equal(lhs: Any, rhs: Any, enable_auto_mapping: bool = False, *, compare_memref: bool = False) -> bool:
    """Whether two nodes (or types) are the same up to the names of variables.

    Variables that both sides define are paired; with ``enable_auto_mapping`` free ones too, otherwise a free variable
    equals itself only. ``compare_memref`` also compares the MemRefs of types, which are ignored by default.
    """
    _check(lhs)
    _check(rhs)
    if lhs is rhs:
        return True
    return Comparison(enable_auto_mapping, compare_memref, tell=False).run(lhs, rhs)


def assert_structural_equal(
    lhs: Any, rhs: Any, enable_auto_mapping: bool = False, *, compare_memref: bool = False
) -> None:
    """Raise ``ValueError`` with the path and the reason of the first difference, if there is one."""
    if structural_equal(lhs, rhs, enable_auto_mapping, compare_memref=compare_memref):
        return
    try:
        Comparison(enable_auto_mapping, compare_memref, tell=True).run(lhs, rhs)
    except Mismatch as mismatch:
        raise ValueError(mismatch.message()) from None
    raise InternalError("two trees compare unequal, but no difference can be told")


def _check(node: Any) -> None:
    if node is not None and not isinstance(node, (IRNode, Type)):
        raise TypeError(f"structural equality is of IR nodes and types, got {type(node).__name__}")
