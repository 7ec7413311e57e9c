"""``pl.MemRef``: where a tensor or tile lies."""

from __future__ import annotations

from typing import Any

from pypto.ir.expr import Expr, index_const
from pypto.ir.expr import MemRef as _IrMemRef

from .dynamic import DynVar
from .scalar import Scalar


def _plain(value: Any) -> Any:
    return value.unwrap() if isinstance(value, Scalar) else value


class MemRef(_IrMemRef):
    """A byte range of an allocation: ``MemRef(base, byte_offset, size)``, or a declaration ``MemRef(name, slots=N)``.

    ``decl[k]`` selects a slot of a declaration; ``k`` may be known at run time only.
    """

    __slots__ = ()

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        # In text, a base that is not declared evaluates to a dynamic dimension: only its name counts.
        values = [value.name if isinstance(value, DynVar) and not i else _plain(value) for i, value in enumerate(args)]
        named = {key: _plain(value) for key, value in kwargs.items()}
        if isinstance(kwargs.get("base"), DynVar):
            named["base"] = kwargs["base"].name
        super().__init__(*values, **named)

    def __getitem__(self, slot: int | Scalar | Expr) -> MemRef:
        if not self.is_pinned_ or self.slot_count_ < 2:
            raise TypeError("a MemRef of one slot cannot be subscripted: declare it with pl.MemRef(slots=N)")
        index = _plain(slot)
        if isinstance(index, Expr):
            return self.replace(slot_index_=index)  # type: ignore[return-value]
        if isinstance(index, bool) or not isinstance(index, int):
            raise TypeError(f"a slot index must be an integer, got {type(slot).__name__}")
        if not 0 <= index < self.slot_count_:
            raise IndexError(f"Slot index {index} is out of range for {self.slot_count_} slot(s)")
        return self.replace(slot_index_=index_const(index))  # type: ignore[return-value]
