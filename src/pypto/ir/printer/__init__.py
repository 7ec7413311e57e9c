"""The Python printer: any node or type as DSL text that parses back to the same IR.

Importing this package is cheap, since the op registry needs its ``calls`` module: the rest comes with the first print.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..expr import Expr
from ..node import IRNode
from ..program import Function, Program
from ..stmt import Stmt
from ..type import Type

FormatCallback = Callable[[str], str]

_callback: FormatCallback | None = None
_chosen = False  # whether a caller chose a callback; else one is looked for when first needed


def register_format_callback(callback: FormatCallback | None) -> None:
    """Pass printed text through ``callback(text) -> text`` from now on; ``None`` leaves it as it is."""
    global _callback, _chosen
    _callback, _chosen = callback, True


def _formatted(text: str) -> str:
    if not _chosen:
        from ..formatter import default_callback

        register_format_callback(default_callback())
    if _callback is None:
        return text
    try:
        result: Any = _callback(text)
    except Exception:  # formatting is optional: whatever goes wrong, the raw text is right
        return text
    return result if isinstance(result, str) else text


def python_print(
    node: IRNode | Type,
    prefix: str = "pl",
    concise: bool = False,
    format: bool = True,
    explicit_layout: bool = False,
) -> str:
    """The DSL text of a node or type.

    ``prefix`` is the alias of the language module, ``concise`` leaves out the annotations of local variables,
    ``explicit_layout`` spells out what types leave implicit.
    """
    from .functions import free_standing, program, single_function

    if isinstance(node, Type):
        return python_print_type(node, prefix, format, explicit_layout)
    options: dict[str, Any] = {"prefix": prefix, "concise": concise, "explicit_layout": explicit_layout}
    if isinstance(node, Program):
        text = program(node, options)
    elif isinstance(node, Function):
        text = single_function(node, options)
    elif isinstance(node, (Stmt, Expr)):
        text = free_standing(node, options)
    else:
        raise TypeError(f"python_print expects an IR node or a type, got {type(node).__name__}")
    return _formatted(text) if format else text


def python_print_type(type: Type, prefix: str = "pl", format: bool = True, explicit_layout: bool = False) -> str:
    """The DSL text of a type."""
    from .functions import free_standing

    text = free_standing(type, {"prefix": prefix, "explicit_layout": explicit_layout})
    return _formatted(text) if format else text


__all__ = ["python_print", "python_print_type", "register_format_callback"]
