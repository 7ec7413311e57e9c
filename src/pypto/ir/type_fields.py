"""What types hold, as data: the counterpart of ``node_fields``.

Mutator, equality, hash, serialization and the search for variables in types read this table, so that a new field of a
type is said here once.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from operator import is_
from typing import Any

from .expr import ConstBool, ConstFloat, ConstInt
from .generated import make_function
from .node import FrozenList
from .type import (
    ArrayType,
    AsyncEventType,
    AsyncSessionType,
    CommCtxType,
    DistributedTensorType,
    MemRefType,
    PrefetchAsyncContextType,
    PtrType,
    ScalarType,
    TensorType,
    TensorView,
    TileType,
    TileView,
    TupleType,
    Type,
    UnknownType,
    WindowBufferType,
)


class Held(enum.Enum):
    """How a field of a type or view holds its value."""

    VALUE = "value"  # a dtype, an enum member, an int, or None
    EXTENTS = "extents"  # FrozenList of expressions
    NODE = "node"  # an expression or None
    MEMREF = "memref"  # a MemRef or None: kept and remapped, but no part of structural equality
    TYPES = "types"  # FrozenList of types
    VIEW = "view"  # a view or None


MARKERS: tuple[type[Type], ...] = (
    UnknownType,
    PtrType,
    MemRefType,
    WindowBufferType,
    CommCtxType,
    PrefetchAsyncContextType,
    AsyncEventType,
    AsyncSessionType,
)

_SHAPED = (("dtype", Held.VALUE), ("shape", Held.EXTENTS))
_TENSOR = (*_SHAPED, ("tensor_view", Held.VIEW), ("memref", Held.MEMREF))

# In the order in which equality compares them.
TYPE_FIELDS: dict[type, tuple[tuple[str, Held], ...]] = {
    **{marker: () for marker in MARKERS},
    ScalarType: (("dtype", Held.VALUE),),
    TupleType: (("types", Held.TYPES),),
    TensorType: _TENSOR,
    DistributedTensorType: (*_TENSOR, ("window_buffer", Held.NODE)),
    TileType: (*_SHAPED, ("tile_view", Held.VIEW), ("memory_space", Held.VALUE), ("memref", Held.MEMREF)),
    ArrayType: _SHAPED,
    TensorView: (
        ("valid_shape", Held.EXTENTS),
        ("stride", Held.EXTENTS),
        ("layout", Held.VALUE),
        ("pad", Held.VALUE),
    ),
    TileView: (
        ("valid_shape", Held.EXTENTS),
        ("stride", Held.EXTENTS),
        ("start_offset", Held.NODE),
        ("blayout", Held.VALUE),
        ("slayout", Held.VALUE),
        ("fractal", Held.VALUE),
        ("pad", Held.VALUE),
        ("compact", Held.VALUE),
    ),
}

# Classes whose instances never hold an expression.
PLAIN_TYPES: frozenset[type] = frozenset((*MARKERS, ScalarType))

_CONSTANTS = frozenset((ConstInt, ConstFloat, ConstBool))


def type_expressions(kind: Any) -> list[Any]:
    """The expressions that a type (or view) holds, also through views and tuples, in the order of the table."""
    found: list[Any] = []
    if type(kind) not in PLAIN_TYPES:
        _collect(kind, found)
    return found


def _collect(kind: Any, found: list[Any]) -> None:
    for name, held in TYPE_FIELDS[type(kind)]:
        if held is Held.VALUE:
            continue
        value = getattr(kind, name)
        if held is Held.EXTENTS:
            found.extend(value)
        elif held is Held.TYPES:
            for item in value:
                _collect(item, found)
        elif value is None:
            continue
        elif held is Held.VIEW:
            _collect(value, found)
        else:
            found.append(value)


# --- code for one class -----------------------------------------------------------------------------------------------


def _compile_closed(cls: type) -> Callable[[Any], bool]:
    """Code that says whether a type or view holds no expression but constants."""
    lines = []
    for name, held in TYPE_FIELDS[cls]:
        if held is Held.EXTENTS:
            lines += [f"for e in kind.{name}:", "    if type(e) not in CONSTANTS: return False"]
        elif held is Held.TYPES:
            lines += [f"for t in kind.{name}:", "    if not closed[type(t)](t): return False"]
        elif held is Held.VIEW:
            lines += [f"v = kind.{name}", "if v is not None and not closed[type(v)](v): return False"]
        elif held is Held.NODE or held is Held.MEMREF:
            lines += [f"if kind.{name} is not None and type(kind.{name}) not in CONSTANTS: return False"]
    return _compile("kind", [*lines, "return True"])  # type: ignore[no-any-return]


def _compile_map(cls: type) -> Callable[[Any, Callable[[Any], Any]], Any]:
    """Code that applies a function to each expression in a type or view."""
    lines = []
    names = [name for name, held in TYPE_FIELDS[cls] if held is not Held.VALUE]
    for name, held in TYPE_FIELDS[cls]:
        old, new = f"old_{name}", f"new_{name}"
        if held is Held.VALUE:
            continue
        lines += [f"{old} = {new} = kind.{name}"]
        if held is Held.EXTENTS or held is Held.TYPES:
            item = "change(e)" if held is Held.EXTENTS else "mapper[type(e)](e, change)"
            lines += [
                f"if {old}:",
                f"    items = [{item} for e in {old}]",
                f"    if not all(map(is_, items, {old})): {new} = FrozenList(items)",
            ]
        else:
            item = f"mapper[type({old})]({old}, change)" if held is Held.VIEW else f"change({old})"
            lines += [f"if {old} is not None: {new} = {item}"]
    if not names:
        return _unchanged
    lines += ["if " + " and ".join(f"new_{name} is old_{name}" for name in names) + ": return kind"]
    changes = ", ".join(f"{name!r}: new_{name}" for name in names)
    return _compile("kind, change", [*lines, f"return rebuild_type(kind, {{{changes}}})"])  # type: ignore[no-any-return]


def _unchanged(kind: Any, _change: Callable[[Any], Any]) -> Any:
    return kind


def _compile(parameters: str, lines: list[str]) -> Any:
    env: dict[str, Any] = {
        "CONSTANTS": _CONSTANTS,
        "FrozenList": FrozenList,
        "closed": _CLOSED,
        "is_": is_,
        "mapper": _MAPPERS,
        "rebuild_type": rebuild_type,
    }
    return make_function("code", parameters, lines, env)


def rebuild_type(kind: Any, changes: dict[str, Any]) -> Any:
    """The type (or view) with some fields changed, brought to canonical form by its constructor."""
    cls = type(kind)
    values = {name: changes[name] if name in changes else getattr(kind, name) for name, _ in TYPE_FIELDS[cls]}
    if cls is ArrayType:
        return ArrayType(values["dtype"], values["shape"][0])
    return cls(**values)


_CLOSED: dict[type, Callable[[Any], bool]] = {}
_MAPPERS: dict[type, Callable[[Any, Callable[[Any], Any]], Any]] = {}
for _cls in TYPE_FIELDS:
    _CLOSED[_cls] = _compile_closed(_cls)
    _MAPPERS[_cls] = _compile_map(_cls)


def is_closed(kind: Any) -> bool:
    """Whether a type (or view) holds no expression but constants."""
    try:
        return kind._closed  # type: ignore[no-any-return]
    except AttributeError:
        found = _CLOSED[type(kind)](kind)
        if isinstance(kind, Type):  # a type never changes, and passes share it: asked for again and again
            object.__setattr__(kind, "_closed", found)
        return found


def map_type(kind: Any, change: Callable[[Any], Any]) -> Any:
    """The type (or view) with ``change`` applied to each expression in it; the same object when none changes."""
    return _MAPPERS[type(kind)](kind, change)
