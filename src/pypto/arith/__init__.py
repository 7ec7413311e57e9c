"""Integer analysis and simplification of scalar expressions: ranges, residues, rewriting, proofs.

The public names load on first use: the type rules need :mod:`pypto.arith.prove` only, and importing the language must
be quick.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .analyzer import Analyzer, ConstraintContext
    from .bounds import ConstIntBound, ConstIntBoundAnalyzer
    from .canonical import CanonicalSimplifier
    from .compare import CompareResult, TransitiveComparisonAnalyzer
    from .fold import fold_const
    from .helpers import extended_euclidean, floordiv, floormod, gcd, lcm
    from .intset import IntSet, IntSetAnalyzer
    from .modular import ModularSet, ModularSetAnalyzer
    from .rewrite import RewriteSimplifier

_HOMES = {
    "Analyzer": "analyzer",
    "CanonicalSimplifier": "canonical",
    "CompareResult": "compare",
    "ConstIntBound": "bounds",
    "ConstIntBoundAnalyzer": "bounds",
    "ConstraintContext": "analyzer",
    "IntSet": "intset",
    "IntSetAnalyzer": "intset",
    "ModularSet": "modular",
    "ModularSetAnalyzer": "modular",
    "RewriteSimplifier": "rewrite",
    "TransitiveComparisonAnalyzer": "compare",
    "extended_euclidean": "helpers",
    "floordiv": "helpers",
    "floormod": "helpers",
    "fold_const": "fold",
    "gcd": "helpers",
    "lcm": "helpers",
}


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})


__all__ = [
    "Analyzer",
    "CanonicalSimplifier",
    "CompareResult",
    "ConstIntBound",
    "ConstIntBoundAnalyzer",
    "ConstraintContext",
    "IntSet",
    "IntSetAnalyzer",
    "ModularSet",
    "ModularSetAnalyzer",
    "RewriteSimplifier",
    "TransitiveComparisonAnalyzer",
    "extended_euclidean",
    "floordiv",
    "floormod",
    "fold_const",
    "gcd",
    "lcm",
]
