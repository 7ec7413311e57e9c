"""Texts of values that need no names: numbers, strings, enum members."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from ..dtype import BY_NAME, DataType
from ..enums import ArgDirection, MemorySpace, PadValue, TensorLayout, TileLayout

# Names behind ``pl.adir.``.
DIRECTION_NAMES: dict[ArgDirection, str] = {
    ArgDirection.Input: "input",
    ArgDirection.Output: "output",
    ArgDirection.InOut: "inout",
    ArgDirection.OutputExisting: "output_existing",
    ArgDirection.NoDep: "no_dep",
    ArgDirection.Scalar: "scalar",
}

_ESCAPES = {"\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}


def float_text(value: float) -> str:
    """A double with all its digits, always recognisable as a float; ``nan`` and ``inf`` have no DSL syntax."""
    text = f"{value:.17g}"
    if "." in text or "e" in text or "n" in text:
        return text
    return text + ".0"


def quoted(text: str, quote: str = '"') -> str:
    """``text`` as a Python literal with this kind of quote."""
    if text.isprintable() and quote not in text and "\\" not in text:
        return f"{quote}{text}{quote}"
    return quote + "".join(_escaped(char, quote) for char in text) + quote


def _escaped(char: str, quote: str) -> str:
    if char == quote:
        return "\\" + char
    return _ESCAPES.get(char) or (char if char.isprintable() else char.encode("unicode_escape").decode("ascii"))


@lru_cache(maxsize=16)
def dtype_texts(prefix: str) -> dict[DataType, str]:
    """Printed dtypes under a module prefix such as ``pl.``."""
    return {dtype: prefix + name for name, dtype in BY_NAME.items()}


@lru_cache(maxsize=16)
def enum_texts(prefix: str) -> dict[Any, str]:
    """Printed members of the enums that kwargs and attributes may hold."""
    texts: dict[Any, str] = {}
    for space, members in (
        ("Mem", MemorySpace),
        ("TensorLayout", TensorLayout),
        ("TileLayout", TileLayout),
        ("PadValue", PadValue),
    ):
        texts.update((member, f"{prefix}{space}.{member.name}") for member in members)
    return texts
