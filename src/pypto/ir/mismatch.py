"""Where and why two trees differ: access paths, reasons, and the message of ``assert_structural_equal``."""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Any

from .expr import Var
from .node import IRNode
from .type import Type


class Place:
    """A position in both trees: the place of the parent and one component of the access path.

    ``hidden`` components (those inside types) are no part of the path, so that it can be pasted after the root object
    of a node; they are told separately. ``prefix`` introduces the reasons of all mismatches below.
    """

    __slots__ = ("hidden", "parent", "prefix", "role", "text")

    def __init__(
        self,
        parent: Place | None,
        text: str = "",
        role: int = 0,
        hidden: bool = False,
        prefix: str | Callable[[], str] | None = None,
    ) -> None:
        self.parent = parent
        self.text = text
        self.role = role
        self.hidden = hidden
        self.prefix = prefix


class Failure:
    """A mismatch that takes its turn behind the comparison of what comes before it."""

    __slots__ = ("note", "reason", "sides")

    def __init__(self, reason: str, sides: tuple[Any, Any] | None = None, note: str = "") -> None:
        self.reason = reason
        self.sides = sides
        self.note = note


class Mismatch(Exception):
    """The first difference between two trees."""

    def __init__(self, failure: Failure, place: Place) -> None:
        super().__init__(failure.reason)
        self.failure = failure
        self.place = place

    def message(self) -> str:
        """The text of the error: path, the two sides where whole nodes differ, and the reason."""
        path, exact = path_of(self.place), path_of(self.place, hidden=True)
        parts = ["Structural equality assertion failed" + (f" at: {path}" if path else "")]
        if self.failure.sides is not None:
            left, right = self.failure.sides
            parts += [f"Left-hand side:\n{_side(left)}", f"Right-hand side:\n{_side(right)}"]
        reason = f"Reason: {_prefix(self.place)}{self.failure.reason}"
        if exact != path:
            reason += f"\nType field: {exact}"
        if self.failure.note:
            reason += f"\n{self.failure.note}"
        return "\n\n".join([*parts, reason])


def path_of(place: Place, hidden: bool = False) -> str:
    """The access path from the root, with or without what lies inside types."""
    texts = []
    step: Place | None = place
    while step is not None:
        if hidden or not step.hidden:
            texts.append(step.text)
        step = step.parent
    return "".join(reversed(texts)).removeprefix(".")


def _prefix(place: Place) -> str:
    texts = []
    step: Place | None = place
    while step is not None:
        if step.prefix is not None:
            texts.append(f"{step.prefix if isinstance(step.prefix, str) else step.prefix()}: ")
        step = step.parent
    return "".join(reversed(texts))


def _side(node: Any) -> str:
    return "\n".join(f"  {line}" for line in _printed(node).split("\n"))


def _printed(node: Any) -> str:
    if node is None:
        return "(null)"
    from .printer import python_print

    try:
        return python_print(node, format=False)
    except Exception as error:  # what the printer refuses can still be compared: the mismatch is what matters here
        return f"<{type(node).__name__} without a printed form: {error}>"


# --- reasons ----------------------------------------------------------------------------------------------------------


def node_mismatch(a: Any, b: Any) -> Failure:
    """Two nodes (or types) of different classes; None stands for an absent one."""
    if a is None or b is None:
        return Failure("Optional field presence mismatch", (a, b))
    if isinstance(a, Type) and isinstance(b, Type):
        return Failure(f"Type name mismatch ({type(a).__name__} != {type(b).__name__})")
    return Failure(f"Node type mismatch ({type(a).__name__} != {type(b).__name__})", (a, b))


_VALUE_NAMES = {bool: "Bool value", int: "int64_t value", float: "double value", str: "String value"}


def value_text(value: Any) -> str:
    """A plain value as reasons show it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, enum.Enum):
        return value.name
    return str(value)


def value_mismatch(a: Any, b: Any) -> Failure:
    """Two plain values of a node's field."""
    if a is None or b is None:
        owner = type(b if a is None else a)
        return Failure(f"{owner.__name__} optional presence mismatch", None)
    if type(a) is not type(b):
        return Failure(f"Value type mismatch ({type(a).__name__} != {type(b).__name__})")
    what = _VALUE_NAMES.get(type(a), type(a).__name__)
    return Failure(f"{what} mismatch ({value_text(a)} != {value_text(b)})")


def size_mismatch(a: Any, b: Any) -> Failure:
    """Two lists of different lengths."""
    return Failure(f"Vector size mismatch ({len(a)} items != {len(b)} items)")


def field_mismatch(owner: str, field: str, a: Any, b: Any) -> Failure:
    """Two values of a type's or memory reference's field."""
    if (a is None) != (b is None):
        return Failure(f"{owner} {field} presence mismatch")
    return Failure(f"{owner} {field} mismatch ({value_text(a)} != {value_text(b)})")


def pointer_mismatch(a: Var, b: Var) -> Failure:
    """Two variables that nothing pairs."""
    return Failure("Variable pointer mismatch (without auto-mapping)", (a, b), _origins(a, b))


def mapping_mismatch(a: Var, b: Var, image: Var | None, origin: Var | None) -> Failure:
    """Two variables of which one is paired with another already."""
    if image is not None:
        text = f"'{a.name_hint}' cannot map to both '{image.name_hint}' and '{b.name_hint}'"
    else:
        other = origin.name_hint if origin is not None else b.name_hint
        text = f"'{b.name_hint}' is already mapped from '{other}', cannot map from '{a.name_hint}'"
    return Failure(f"Variable mapping inconsistent ({text})", (a, b), _origins(a, b))


def _origins(a: Var, b: Var) -> str:
    """Where two variables that look the same come from."""
    if a.name_hint != b.name_hint or not (a.span.is_valid() or b.span.is_valid()):
        return ""
    return f"The two are different variables: left from {a.span}, right from {b.span}"


def type_prefix(a: IRNode, b: IRNode) -> Callable[[], str]:
    """What introduces a mismatch in the types of two variables."""
    return lambda: f"Variable type mismatch ({_printed(a.type)} != {_printed(b.type)})"  # type: ignore[attr-defined]
