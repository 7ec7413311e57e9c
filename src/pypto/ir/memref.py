"""Variables that stand for memory: byte ranges of allocations, and buffers that other ranks may reach."""

from __future__ import annotations

from typing import Any, NoReturn

from .dtype import DataType
from .enums import MemorySpace
from .expr_core import ConstInt, Expr, Var, index_const
from .node import Kind, attribute, use, wrong_kind
from .span import UNKNOWN_SPAN, Span
from .type import MemRefType, PtrType, WindowBufferType

_plain_set = object.__setattr__

# The overloads: how a call is recognised, its own parameters, and the common ones that follow.
_DECLARED = ((), ("span", "slots"))
_NAMED = (("name",), ("span", "slots"))
_PLACED = (("base", "byte_offset", "size"), ("span", "is_pinned", "slots", "slot"))
_IN_SPACE = (("memory_space", "addr", "size", "id"), ("span",))
_AT_ADDRESS = (("addr", "size", "id"), ("span",))
_DEFAULTS = {"span": UNKNOWN_SPAN, "slots": 1, "slot": None, "is_pinned": False}


class MemRef(Var):
    """A byte range inside an allocation. Unlike other nodes its underscore fields may be assigned.

    Forms::

        MemRef(span=..., slots=1)                    # the author's own allocation, named after its variable
        MemRef(name, span=..., slots=1)              # the same, named
        MemRef(base, byte_offset, size, span=..., is_pinned=False, slots=1, slot=None)
        MemRef(memory_space, addr, size, id, span=...)
        MemRef(addr, size, id, span=...)
    """

    __slots__ = ()
    base_: Var = use()
    byte_offset_: Expr = use()
    size_: int = attribute()
    is_pinned_: bool = attribute()
    slot_count_: int = attribute()
    slot_index_: Expr | None = use(Kind.OPTIONAL)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        form, values = _bind(args, kwargs)
        slots, slot = values["slots"], values["slot"]
        if type(slots) is not int or slots < 1:
            raise ValueError(f"MemRef: slots must be a positive integer, got {slots!r}")
        base, offset, size = _place(form, values)
        Var.__init__(self, base.name_hint, MemRefType(), values["span"])
        _plain_set(self, "base_", base)
        _plain_set(self, "byte_offset_", offset)
        _plain_set(self, "size_", size)
        _plain_set(self, "is_pinned_", form is _DECLARED or form is _NAMED or bool(values["is_pinned"]))
        _plain_set(self, "slot_count_", slots)
        _plain_set(self, "slot_index_", index_const(slot) if type(slot) is int else slot)

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in _ASSIGNABLE:
            raise AttributeError(f"MemRef is immutable apart from its underscore fields: cannot set {name!r}")
        _plain_set(self, name, value)
        if name == "base_":
            _plain_set(self, "name_hint", value.name_hint)

    def __getitem__(self, slot: Any) -> MemRef:
        """One slot of the author's own allocation; a DSL scalar or an expression is an index known at run time only."""
        if not self.is_pinned_:
            raise ValueError(f"MemRef {self.name_hint!r} is no declared allocation and cannot be subscripted")
        index = slot.unwrap() if hasattr(slot, "unwrap") else slot
        if isinstance(index, ConstInt):
            index = index.value
        if isinstance(index, Expr):
            return self._slot(index)
        if isinstance(index, bool) or not isinstance(index, int):
            raise TypeError(f"a slot index must be an integer, got {type(slot).__name__}")
        if not 0 <= index < self.slot_count_:
            raise IndexError(f"Slot index {index} is out of range for a declaration of {self.slot_count_} slot(s)")
        return self._slot(index_const(index))

    def _slot(self, index: Expr) -> MemRef:
        chosen: MemRef = self.replace(slot_index_=index)
        return chosen

    @staticmethod
    def same_allocation(a: MemRef, b: MemRef) -> bool:
        """Whether both lie in the same allocation."""
        return a.base_ is b.base_

    @staticmethod
    def may_alias(a: MemRef, b: MemRef) -> bool:
        """Whether the byte ranges may overlap; a symbolic offset may be anywhere."""
        if a.base_ is not b.base_:
            return False
        if not (isinstance(a.byte_offset_, ConstInt) and isinstance(b.byte_offset_, ConstInt)):
            return True
        x, y = a.byte_offset_.value, b.byte_offset_.value
        return x < y + b.size_ and y < x + a.size_


_ASSIGNABLE = frozenset(info.name for info in MemRef.node_fields if info.name.endswith("_"))
_Form = tuple[tuple[str, ...], tuple[str, ...]]


def _form_of(args: tuple[Any, ...], kwargs: dict[str, Any]) -> _Form:
    first = args[0] if args else None
    if isinstance(first, MemorySpace) or "memory_space" in kwargs:
        return _IN_SPACE
    if (isinstance(first, int) and not isinstance(first, bool)) or "addr" in kwargs:
        return _AT_ADDRESS
    if "name" in kwargs:
        return _NAMED
    if isinstance(first, str) and "byte_offset" not in kwargs and (len(args) == 1 or isinstance(args[1], Span)):
        return _NAMED
    if "base" in kwargs or (args and not isinstance(first, Span)):
        return _PLACED
    return _DECLARED


def _bind(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[_Form, dict[str, Any]]:
    form = _form_of(args, kwargs)
    own, common = form
    names = own + common
    if len(args) > len(names):
        _wrong_count()
    values = dict(zip(names, args, strict=False))
    for name, value in kwargs.items():
        if name not in names:
            raise TypeError(f"MemRef got an unexpected keyword argument {name!r}")
        if name in values:
            raise TypeError(f"MemRef got multiple values for argument {name!r}")
        values[name] = value
    if any(name not in values for name in own):
        _wrong_count()
    return form, {**_DEFAULTS, **values}


def _wrong_count() -> NoReturn:
    raise TypeError(
        "pl.MemRef requires 3 arguments (base, byte_offset, size), "
        "or (addr, size, id), or (memory_space, addr, size, id), or a declared name"
    )


def _place(form: _Form, values: dict[str, Any]) -> tuple[Var, Expr, int]:
    """Base, byte offset and size in bytes."""
    if form is _DECLARED:
        return _base(""), ConstInt(0, DataType.INT64), 0
    if form is _NAMED:
        return _base(values["name"]), ConstInt(0, DataType.INT64), 0
    size = values["size"]
    if isinstance(size, bool) or not hasattr(size, "__index__"):
        wrong_kind("MemRef", "size", int, size)
    size = int(size)
    if form is _PLACED:
        return _base(values["base"]), _offset(values["byte_offset"], DataType.INT64), size
    if form is _IN_SPACE:
        space = values["memory_space"]
        if not isinstance(space, MemorySpace):
            wrong_kind("MemRef", "memory_space", MemorySpace, space)
        return _base(f"mem_{space.name.lower()}_{values['id']}"), _offset(values["addr"], DataType.INT64), size
    return _base(f"mem_{values['id']}"), _offset(values["addr"], DataType.INDEX), size


def _base(base: Any) -> Var:
    if isinstance(base, str):
        return Var(base, PtrType())
    if not isinstance(base, Var):
        wrong_kind("MemRef", "base", Var, base)
    return base


def _offset(offset: Any, dtype: DataType) -> Expr:
    if isinstance(offset, Expr):
        return offset
    if isinstance(offset, bool) or not hasattr(offset, "__index__"):
        wrong_kind("MemRef", "byte_offset", int, offset)
    return ConstInt(int(offset), dtype)


class WindowBuffer(Var):
    """A buffer that other ranks may reach, named after its base."""

    __slots__ = ()
    base: Var = use()
    size: Expr = use()
    load_from_host: bool = attribute()
    store_to_host: bool = attribute()

    def __init__(
        self,
        base: Var,
        size: Expr,
        load_from_host: bool = False,
        store_to_host: bool = False,
        span: Span = UNKNOWN_SPAN,
    ) -> None:
        if not isinstance(base, Var):
            wrong_kind("WindowBuffer", "base", Var, base)
        if not isinstance(size, Expr):
            wrong_kind("WindowBuffer", "size", Expr, size)
        Var.__init__(self, base.name_hint, WindowBufferType(), span)
        for name, value in (
            ("base", base),
            ("size", size),
            ("load_from_host", bool(load_from_host)),
            ("store_to_host", bool(store_to_host)),
        ):
            _plain_set(self, name, value)


__all__ = ["MemRef", "WindowBuffer"]
