"""What an evaluation of an op touches: the elements of its operands that it reads or writes.

Read from the definitions: their effects, what their results alias, and their windows. An operand without a window is
touched as a whole (its valid region, where it is only read).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..ir.enums import ArgEffect
from .definition import Alias, Category, OpDef, Window
from .partial_window import PartialWindow
from .transfer import of_rank
from .values import ArrayValue
from .windows import reshape_valid_at_run

# They order or warm memory: what they name, they don't look at.
_WITHOUT_READS = (Category.SYNC, Category.PREFETCH)


def touched_operands(definition: OpDef, kwargs: Mapping[str, Any], count: int) -> Iterator[tuple[int, ArgEffect, bool]]:
    """``(operand index, effect, whether it is an atomic combine)`` of those of ``count`` operands whose elements the
    op touches: not one that the result is a view of, that only lends its shape, or that is only synchronised."""
    for index in range(count):
        effect = definition.effect(index, kwargs)
        if effect is ArgEffect.Read:
            if index == definition.alias_operand and definition.alias is not Alias.FRESH:
                continue
            if definition.category in _WITHOUT_READS or _role(definition, index) == "shape":
                continue
        yield index, effect, effect is ArgEffect.ReadWrite and bool(kwargs.get("atomic"))


def _role(definition: OpDef, index: int) -> str:
    return definition.operands[index].role if index < len(definition.operands) else "data"


def touched_elements(
    definition: OpDef, index: int, args: Sequence[Any], kwargs: Mapping[str, Any], effect: ArgEffect
) -> Any:
    """The elements of operand ``index``, an :class:`ArrayValue`, that the op touches, as a view of its data.

    ``args``: all operands as values. What leaves the operand is not part of it: the op itself refuses that.
    """
    value: ArrayValue = args[index]
    window = definition.windows.get(index)
    box = None if window is None else _placed(definition.name, window, args, kwargs)
    if box is not None and len(value.shape) != len(box[0]):
        ranked = of_rank(definition.name, value, len(box[0]))
        if ranked.buffer is value.buffer:
            value = ranked
        else:
            box = None  # a copy: no box of the operand stands for the window
    data = value.inner if type(value) is PartialWindow else value.data
    ends: Sequence[int] = value.valid if effect is ArgEffect.Read else data.shape
    if box is None:
        return data[tuple(slice(0, end) for end in ends)]
    return data[tuple(slice(max(o, 0), max(o, 0, min(o + n, end))) for o, n, end in zip(*box, ends, strict=True))]


def _placed(
    op: str, window: Window, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> tuple[Sequence[int], Sequence[int]] | None:
    """Offsets and extents of a window; None where the operands don't say them."""
    offsets: Sequence[int] = args[window.offsets]
    given = [args[i] for i in window.extents if i < len(args) and args[i]]
    extents: Sequence[int] = given[0] if given else [1] * len(offsets)
    source = next((value for value in given if isinstance(value, ArrayValue)), None)
    if source is not None:
        extents = _spread(op, source, extents, len(offsets))
    if window.transposed and kwargs.get(window.transposed):
        extents = [*extents[:-2], extents[-1], extents[-2]]
    return (offsets, extents) if len(extents) == len(offsets) else None


def _spread(op: str, source: ArrayValue, shapes: Any, rank: int) -> Sequence[int]:
    """The extents that the valid region of a source has in its window, whose shape is ``shapes`` or the source's."""
    if shapes is source:
        return source.valid if len(source.shape) == rank else of_rank(op, source, rank).valid
    try:
        return reshape_valid_at_run(op, source.shape, source.valid, shapes)
    except ValueError:  # the region is no box there: some of the window
        return shapes  # type: ignore[no-any-return]
