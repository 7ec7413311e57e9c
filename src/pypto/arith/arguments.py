"""The two forms of ``bind``."""

from __future__ import annotations

from typing import Any

from ..ir.dtype import DataType
from ..ir.expr import ConstInt, Expr, Var
from .structure import scalar_dtype


def as_constant_of(var: Var, value: Any) -> Expr:
    """A Python int as a constant of the variable's dtype; expressions stay."""
    if isinstance(value, Expr):
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return ConstInt(int(value), scalar_dtype(var) or DataType.INT64)
    raise TypeError(f"bind expects an int or an expression, got {type(value).__name__}")


def bind_arguments(var: Var, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Expr, Expr | None, bool]:
    """(expr or min_val, max_val_exclusive or None, allow_override) of the two forms of ``bind``."""
    names = ["min_val", "max_val_exclusive", "allow_override"]
    if "expr" in kwargs or len(args) == 1 or (len(args) == 2 and isinstance(args[1], bool)):
        names = ["expr", "allow_override"]
        if len(args) == 1 and "max_val_exclusive" in kwargs:
            names = ["min_val", "max_val_exclusive", "allow_override"]
    if len(args) > len(names):
        raise TypeError(
            "bind takes (var, expr[, allow_override]) or (var, min_val, max_val_exclusive[, allow_override])"
        )
    values = dict(zip(names, args, strict=False))
    for name, value in kwargs.items():
        if name not in names or name in values:
            raise TypeError(f"bind got an unexpected keyword argument {name!r}")
        values[name] = value
    missing = [name for name in names[:-1] if name not in values]
    if missing:
        raise TypeError(f"bind misses the argument {missing[0]!r}")
    override = bool(values.get("allow_override", False))
    low = as_constant_of(var, values[names[0]])
    if len(names) == 2:
        return low, None, override
    high = as_constant_of(var, values["max_val_exclusive"])
    if type(low) is ConstInt and type(high) is ConstInt and high.value <= low.value:
        raise ValueError(f"bind: the range [{low.value}, {high.value}) is empty")
    return low, high, override


__all__ = ["as_constant_of", "bind_arguments"]
