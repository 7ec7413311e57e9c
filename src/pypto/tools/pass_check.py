"""Whether passes keep the meaning of a program: run it before the first one and behind each, and compare."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .._lazy import np
from ..ir.program import Program
from ..passes.base import Pass
from ..passes.first_failure import FirstFailure, first_failure
from ..runtime.arrays import is_array
from ..runtime.execute import Executable
from ..runtime.run_config import RunConfig
from ..runtime.signature import entry_function, param_infos


class Mismatch(AssertionError):
    """A program gives other values than before."""


def outputs(program: Program, entry: str, args: Sequence[Any], seed: int | None = None) -> list[Any]:
    """What a run leaves in copies of the arguments, and what it returns; tasks in submit order, or in a random one."""
    function = entry_function(program, entry)
    copies = [np.array(a, copy=True) if is_array(a) else a for a in args]
    config = RunConfig() if seed is None else RunConfig(schedule="random", seed=seed)
    outcome = Executable(program, function, param_infos(function), entry).run(copies, {}, config, returning=True)
    result = outcome.result
    returned = list(result) if isinstance(result, tuple) else [] if result is None else [result]
    return [*copies, *returned]


def same_meaning(
    program: Program, args: Sequence[Any], seeds: Sequence[int | None] = (None, 0, 1)
) -> Callable[[Program], bool]:
    """A check of later forms of a program: the same outputs bit for bit, in submit order and in random legal orders.

    It raises :class:`Mismatch` that says which output differs, and whatever a run raises.
    """
    entry = entry_function(program).name
    wanted = outputs(program, entry, args)

    def check(later: Program) -> bool:
        for seed in seeds:
            found = outputs(later, entry, args, seed)
            order = "in submit order" if seed is None else f"in random order {seed}"
            if len(found) != len(wanted):
                raise Mismatch(f"{len(found)} outputs {order}, there were {len(wanted)}")
            for index, (value, want) in enumerate(zip(found, wanted, strict=True)):
                if not _same(value, want):
                    raise Mismatch(f"output {index} differs {order}")
        return True

    return check


def _same(value: Any, want: Any) -> bool:
    if not is_array(want):
        return bool(value == want) or (value != value and want != want)
    left, right = np.asarray(value), np.asarray(want)
    # Bytes: every NaN and zero as it was, and no element type without comparison.
    return left.dtype == right.dtype and left.shape == right.shape and left.tobytes() == right.tobytes()


def pass_at_fault(program: Program, passes: Sequence[Pass], args: Sequence[Any]) -> FirstFailure | None:
    """The first pass behind which the program gives other values for these arguments, or fails."""
    return first_failure(program, passes, same_meaning(program, args))


__all__ = ["Mismatch", "outputs", "pass_at_fault", "same_meaning"]
