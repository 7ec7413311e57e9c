"""Entries of ``optimizations=[...]`` on ``pl.at`` and ``pl.spmd``."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

from pypto.ir.enums import SplitMode

SPLIT_SLOT_NUM_DEPRECATION = (
    "pl.split(..., slot_num=N) is deprecated: write pl.cross_core_slot(slot_num=N) as an entry of its own"
)


class Optimization:
    """Base of the entries."""

    __slots__ = ()


@dataclass(frozen=True)
class Split(Optimization):
    """Split the vector work of a core group over its two vector cores."""

    mode: SplitMode
    slot_num: int | None = None


@dataclass(frozen=True)
class CrossCoreSlot(Optimization):
    """Number of slots of the queues between the cores of a core group."""

    slot_num: int


def _check_slot_num(slot_num: int) -> None:
    if isinstance(slot_num, bool) or not isinstance(slot_num, int) or slot_num <= 0:
        raise ValueError(f"slot_num must be a positive integer, got {slot_num!r}")


def split(mode: SplitMode, *, slot_num: int | None = None) -> Split:
    """Split a core group's vector work in the given way; ``slot_num`` is deprecated."""
    if slot_num is not None:
        _check_slot_num(slot_num)
        warnings.warn(SPLIT_SLOT_NUM_DEPRECATION, DeprecationWarning, stacklevel=2)
    return Split(mode, slot_num)


def cross_core_slot(*, slot_num: int) -> CrossCoreSlot:
    """Set the number of slots of the cross-core queues."""
    _check_slot_num(slot_num)
    return CrossCoreSlot(slot_num)


__all__ = ["SPLIT_SLOT_NUM_DEPRECATION", "CrossCoreSlot", "Optimization", "Split", "cross_core_slot", "split"]
