"""Values of kwargs and attrs: what is accepted and the form in which it is stored.

Kinds matter, since equality compares the kinds of values: ``True`` differs from ``1``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from . import extents as late
from .dtype import DataType
from .enums import ArgDirection, MemorySpace, PadValue, SplitMode, TensorLayout, TileLayout
from .node import EMPTY_DICT, FrozenDict, FrozenList

# Lists under these keys hold variables (or int32 indices), whatever their length.
VAR_LIST_KEYS = frozenset(
    ("manual_dep_edges", "compiler_manual_dep_edges", "arg_direction_overrides_vars", "dump_vars")
)
INT_LIST_KEYS = frozenset(("arg_direction_overrides",))

_PLAIN = (str, DataType, MemorySpace, TensorLayout, TileLayout, PadValue, ArgDirection)
_INT32 = 2**31


def normalize_attr(key: str, value: Any) -> Any:
    """The stored form of one value; ``TypeError`` for a kind that no attribute can hold."""
    kind = type(value)
    if kind is bool or kind in _PLAIN:
        return value
    if kind is int:
        if not -_INT32 <= value < _INT32:
            raise ValueError(f"value of attribute {key!r} does not fit 32 bits: {value}")
        return value
    if kind is float:
        return value
    if isinstance(value, late.expressions.Expr):
        return value
    if isinstance(value, str):
        return str(value)
    if isinstance(value, SplitMode):
        return value.value
    if isinstance(value, int):  # IntEnum: PipeType, CoreType, AtomicType, ...
        return int(value)
    if isinstance(value, float):
        return float(value)
    if isinstance(value, (list, tuple)):
        return _normalize_list(key, value, late.expressions.Var)
    raise TypeError(f"Unsupported kwarg type for key: {key} ({type(value).__name__})")


def _normalize_list(key: str, value: Any, var_class: type) -> FrozenList[Any]:
    if key in INT_LIST_KEYS:
        for item in value:
            if type(item) is not int:
                raise TypeError(f"attribute {key!r} holds ints, got {type(item).__name__}")
            if not -_INT32 <= item < _INT32:
                raise ValueError(f"value in attribute {key!r} does not fit 32 bits: {item}")
        return FrozenList(value)
    if key in VAR_LIST_KEYS or (value and isinstance(value[0], var_class)):
        if not all(isinstance(item, var_class) for item in value):
            raise TypeError(f"Unsupported list element type for key: {key} (all must be variables)")
        return FrozenList(value)
    if not all(isinstance(item, ArgDirection) for item in value):
        raise TypeError(f"Unsupported list element type for key: {key}")
    return FrozenList(value)


def normalize_attrs(attrs: Mapping[str, Any] | Iterable[tuple[str, Any]] | None) -> FrozenDict[str, Any]:
    """A read-only attribute map from a dict or a list of pairs."""
    if not attrs:
        if attrs is None or isinstance(attrs, (dict, list)):
            return EMPTY_DICT
    if type(attrs) is FrozenDict:
        return attrs
    if isinstance(attrs, Mapping):
        pairs: Iterable[tuple[str, Any]] = attrs.items()
    elif isinstance(attrs, list) and all(isinstance(pair, (tuple, list)) and len(pair) == 2 for pair in attrs):
        pairs = attrs
    else:
        raise TypeError("attrs must be a dict, list of (key, value) tuples, or None")
    return FrozenDict({_key(key): normalize_attr(key, value) for key, value in pairs})


def _key(key: Any) -> str:
    if not isinstance(key, str):
        raise TypeError(f"the key of an attribute must be a string, got {type(key).__name__}")
    return key


def attr_expressions(value: Any) -> tuple[Any, ...]:
    """The expressions that an attribute value holds (itself, or the variables of a list)."""
    expr = late.expressions.Expr
    if isinstance(value, expr):
        return (value,)
    if isinstance(value, list):
        return tuple(item for item in value if isinstance(item, expr))
    return ()
