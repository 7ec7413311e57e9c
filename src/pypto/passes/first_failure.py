"""Finding the pass at fault: the first one behind which a check fails."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from ..ir.program import Program
from .base import Pass


class FirstFailure(msgspec.Struct, frozen=True):
    """The pass behind which a check failed first, and its input and result.

    ``index`` counts from 0, so the first ``index`` passes of the list give ``before``. ``error``: what the pass or the
    check raised, or None when the check gave False. ``after`` is None when the pass itself raised.
    """

    index: int
    pass_name: str
    before: Program
    after: Program | None
    error: Exception | None = None


def first_failure(program: Program, passes: Sequence[Pass], check: Callable[[Program], object]) -> FirstFailure | None:
    """Run passes until ``check(program)`` is false or raises behind one, or the pass raises; None if none does.

    A check that fails on the input itself is a ``ValueError``: no pass is at fault.
    """
    if check(program) is False:
        raise ValueError("the check fails on the program before any pass")
    for index, each in enumerate(passes):
        after: Program | None = None
        try:
            after = each(program)
            if after is program or check(after) is not False:
                program = after
                continue
        except Exception as error:
            return FirstFailure(index, each.get_name(), program, after, error)
        return FirstFailure(index, each.get_name(), program, after)
    return None


__all__ = ["FirstFailure", "first_failure"]
