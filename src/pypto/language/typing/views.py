"""``pl.TensorView`` and ``pl.TileView``: the IR views, built from what a signature may hold.

In a signature, extents may be ``pl.dynamic`` variables, which the IR does not know; they are unwrapped here.
"""

from __future__ import annotations

from typing import Any

from pypto.ir import views

from .scalar import Scalar


def _plain(value: Any) -> Any:
    if isinstance(value, Scalar):
        return value.unwrap()
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return value


class ViewMeta(type):
    """Construction gives a plain IR view, and every IR view is an instance."""

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        made: Any = cls.__mro__[1]
        return made(*map(_plain, args), **{key: _plain(value) for key, value in kwargs.items()})

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, cls.__mro__[1])


class TensorView(views.TensorView, metaclass=ViewMeta):
    """How a tensor lies in its buffer; see :class:`pypto.ir.views.TensorView`."""

    __slots__ = ()


class TileView(views.TileView, metaclass=ViewMeta):
    """How a tile lies in its memory; see :class:`pypto.ir.views.TileView`."""

    __slots__ = ()
