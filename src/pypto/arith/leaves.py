"""What the user of an analyzer knows about the parts of expressions that no analyzer looks into."""

from __future__ import annotations

from typing import Any

from .structure import is_float


class Leaves:
    """Answers for variables, calls and opaque operators. A subclass says more than nothing.

    The answers are remembered, so what is said of an expression must not become less true later on.
    """

    def is_opaque(self, e: Any) -> bool:
        """Whether an operator is a leaf: neither rewritten nor looked into."""
        return is_float(e)

    def rewrite(self, e: Any) -> Any:
        """What stands for a leaf from here on."""
        return e

    def range(self, e: Any) -> tuple[int, int] | None:
        """The values of a leaf; None for what its dtype says."""
        return None

    def residue(self, e: Any) -> tuple[int, int] | None:
        """(coeff, base) of a leaf; None if it may be anything."""
        return None


__all__ = ["Leaves"]
