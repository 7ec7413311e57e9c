"""Whether what native kernels computed is near enough to what the interpreter says.

Kernels are compiled without fused multiplications here, so that every bit counts, except behind operations that may
differ in their last places: sums and products of a row, in another order, and functions such as ``exp``. How far that
may take a result, the interpreter says: it runs again, several times, with what these operations give changed a little.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from typing import Any

import numpy as np

from pypto.ops.registry import REGISTRY
from pypto.ops.values import ArrayValue

from .run import Outcome, difference

EXACT_FLAGS = ("-ffp-contract=off",)
# Two units in the last place: more than the functions' errors, and than one addition's.
STEPS = {"float32": 2.0**-22, "float16": 2.0**-10, "bfloat16": 2.0**-7}
RUNS = (6, 30)  # most results are told to be right by few; where results jump it takes more
SLACK = 3.0


@cache
def inexact_ops() -> frozenset[str]:
    """Operations whose native form may differ from the interpreter's in the last places."""
    function = re.compile(r"math::(exp|log|sin|cos|tanh|erf)\b|recip\(.*sqrt")
    return frozenset(
        name
        for name, definition in REGISTRY.items()
        if definition.fold in ("sum", "prod") or function.search(definition.element) or re.search("matmul|gemv", name)
    )


@contextlib.contextmanager
def small_errors(rng: np.random.Generator, names: Iterable[str]) -> Iterator[None]:
    """Every float that one of these operations makes is changed by a few units in its last place."""
    before = {}

    def wrong(reference: Any, fold: bool) -> Any:
        def changed(ctx: Any, *args: Any, **kwargs: Any) -> Any:
            value = reference(ctx, *args, **kwargs)
            step = STEPS.get(str(value.dtype)) if isinstance(value, ArrayValue) else None
            if step is not None:
                data = value.data
                wide = data.astype(np.float64)
                much = np.abs(wide)
                if fold:  # of a sum near zero the error is that of what was added
                    operand = np.abs(args[0].data.astype(np.float64))
                    much = much + np.max(operand, where=np.isfinite(operand), initial=0.0)
                with np.errstate(all="ignore"):
                    data[...] = (wide + step * rng.choice([-1, 0, 1], data.shape) * much).astype(data.dtype)
            return value

        return changed

    for name in names:
        definition = REGISTRY[name]
        before[name] = definition.reference
        definition.reference = wrong(definition.reference, definition.fold == "sum")
    try:
        yield
    finally:
        for name, reference in before.items():
            REGISTRY[name].reference = reference


def near(want: Outcome, have: Outcome, names: Sequence[str], again: Callable[[], Outcome]) -> str | None:
    """How the outcomes differ by more than small errors explain, or None. ``again`` runs the interpreter."""
    message = difference(want, have, names)
    if message is None:
        return None
    around = [want]
    for seed in range(RUNS[-1]):
        with small_errors(np.random.default_rng(seed), inexact_ops()), np.errstate(all="ignore"):
            around.append(again())
        if seed + 1 in RUNS:
            found = [
                _explained(*parts) if isinstance(parts[0], np.ndarray) else parts[0] in parts[1:]
                for parts in zip(have, *around, strict=True)
            ]
            if all(found):
                return None
    return message


def _explained(have: Any, *around: Any) -> bool:
    """Whether all elements lie where small errors may have taken them."""
    a, others = have.astype(np.float64), np.stack([x.astype(np.float64) for x in around])
    finite = np.isfinite(others)
    low = np.min(others, 0, where=finite, initial=np.inf)
    high = np.max(others, 0, where=finite, initial=-np.inf)
    with np.errstate(all="ignore"):
        reach = np.where(high > low, SLACK * (high - low), 0.0)
        inside = (a >= low - reach) & (a <= high + reach)
        same = ((a == others) | (np.isnan(a) & np.isnan(others))).any(0)
    # Where some of the runs end in an infinity or NaN and others don't, any of both may be right.
    jumps = finite.any(0) & ~finite.all(0)
    return bool((inside | same | jumps).all())


__all__ = ["EXACT_FLAGS", "inexact_ops", "near", "small_errors"]
