"""Uniform draws for Hypothesis.

Its own generation repeats parts of earlier examples and ends many of them early, which is good for finding small
failures of small tests and bad here: most programs would be tiny. With this backend every draw is uniform and depends
on the seed alone; shrinking of a failing program stays Hypothesis's.
"""

from __future__ import annotations

import random
from typing import Any

STREAM = random.Random(0)


def uniform_backend() -> dict[str, str]:
    """Settings that select the backend; none where this version of Hypothesis has no backends."""
    try:
        from hypothesis.internal.conjecture.providers import AVAILABLE_PROVIDERS
    except ImportError:
        return {}
    AVAILABLE_PROVIDERS["uniform"] = f"{__name__}.UniformProvider"
    return {"backend": "uniform"}


try:
    from hypothesis.internal.conjecture.providers import HypothesisProvider
except ImportError:
    HypothesisProvider = object  # type: ignore[assignment,misc]


class UniformProvider(HypothesisProvider):  # type: ignore[misc,valid-type]
    """Integers of a range are equally likely."""

    def draw_integer(self, min_value: int | None = None, max_value: int | None = None, **_: Any) -> int:
        assert min_value is not None and max_value is not None
        return STREAM.randint(min_value, max_value)
