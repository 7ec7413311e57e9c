"""The rewrite simplifier: rule tables by node family, their compiler, and the walk that applies them."""

from .simplifier import RULES, RewriteSimplifier

__all__ = ["RULES", "RewriteSimplifier"]
