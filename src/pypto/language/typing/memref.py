"""``pl.MemRef``: where a tensor or tile lies."""

from __future__ import annotations

from typing import Any

from pypto.ir.expr import Expr
from pypto.ir.expr import MemRef as _IrMemRef

from .dynamic import DynVar
from .scalar import Scalar


def _plain(value: Any) -> Any:
    return value.unwrap() if isinstance(value, Scalar) else value


class _MemRefMeta(type):
    """``pl.MemRef(...)`` makes the IR's MemRef: one class of node, whoever made it."""

    def __call__(cls, *args: Any, **kwargs: Any) -> _IrMemRef:
        # In text, a base that is not declared evaluates to a dynamic dimension: only its name counts.
        values = [value.name if isinstance(value, DynVar) and not i else _plain(value) for i, value in enumerate(args)]
        named = {key: _plain(value) for key, value in kwargs.items()}
        if isinstance(kwargs.get("base"), DynVar):
            named["base"] = kwargs["base"].name
        return _IrMemRef(*values, **named)

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, _IrMemRef)


class MemRef(metaclass=_MemRefMeta):
    """A byte range of an allocation: ``MemRef(base, byte_offset, size)``, or a declaration ``MemRef(name, slots=N)``.

    ``decl[k]`` selects a slot of a declaration; ``k`` may be known at run time only. The result of a call is an
    ``ir.MemRef``.
    """

    same_allocation = _IrMemRef.same_allocation
    may_alias = _IrMemRef.may_alias

    def __getitem__(self, slot: int | Scalar | Expr) -> _IrMemRef:
        raise TypeError("pl.MemRef has no instances of its own")  # the IR's MemRef subscripts itself
