"""The functions that users call, over IR expressions, and the namespaces that hold them.

A surface function takes expressions (or Python numbers and sequences of them) and returns an expression.
``pl.tensor.add`` and friends are thin wrappers around them (:mod:`pypto.language.op`); the front end calls them
directly.
A parameter annotated :data:`Attr` is a Python value (an int, a flag, a dtype): the front end never turns an argument
for it into an expression.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from ..ir.expr import Expr
from ..ir.type import ArrayType, ScalarType, TensorType, TileType

Operand = Any  # Expr, or a Python number where the op takes a scalar
Extents = Any  # sequence of ints and expressions, or a MakeTuple
Attr = Any  # a Python value

F = TypeVar("F", bound=Callable[..., Any])

# namespace -> name -> function; "pl" holds the unified and promoted names
NAMESPACES: dict[str, dict[str, Callable[..., Any]]] = {
    key: {}
    for key in ("pl", "tensor", "tile", "system", "array", "prefetch", "pld", "pld.tensor", "pld.tile", "pld.system")
}
# the IR-level constructors of ``pypto.ir.op.<namespace>_ops`` where they differ from the surface functions
IR_NAMESPACES: dict[str, dict[str, Callable[..., Any]]] = {
    key: {} for key in ("tensor", "tile", "system", "array", "prefetch", "builtin.tensor")
}


class SurfaceInfo:
    """What the front end must know to call a surface function."""

    __slots__ = ("attr_names", "attr_positions", "name", "namespace")

    def __init__(self, namespace: str, name: str, function: Callable[..., Any]) -> None:
        code = function.__code__
        annotations = function.__annotations__
        self.namespace = namespace
        self.name = name
        parameters = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        self.attr_names = frozenset(p for p in parameters if annotations.get(p) == "Attr")
        self.attr_positions = frozenset(
            i for i, p in enumerate(code.co_varnames[: code.co_argcount]) if p in self.attr_names
        )


INFO: dict[Callable[..., Any], SurfaceInfo] = {}


def surface(*namespaces: str, name: str | None = None, ir: bool = True) -> Callable[[F], F]:
    """Register a function under ``pl.<namespace>.<name>`` (``"pl"``: ``pl.<name>``).

    With ``ir`` (the default) it is the IR-level constructor of that namespace as well; ``"ir.tensor"`` registers an
    IR-level constructor only.
    """

    def register(function: F) -> F:
        known = name or function.__name__
        function.__name__ = function.__qualname__ = known  # Python's own argument errors name what the user called
        for namespace in namespaces:
            if namespace.startswith("ir."):
                IR_NAMESPACES[namespace[3:]][known] = function
            else:
                NAMESPACES[namespace][known] = function
                if ir and namespace in IR_NAMESPACES:
                    IR_NAMESPACES[namespace].setdefault(known, function)
        INFO[function] = SurfaceInfo(namespaces[0], known, function)
        return function

    return register


# --- dispatch by operand class ----------------------------------------------------------------------------------------


def level_of(operand: Any) -> str:
    """``tensor``, ``tile``, ``scalar``, ``array`` or ``other``: what unified functions dispatch on."""
    if isinstance(operand, Expr):
        kind = operand.type
        if isinstance(kind, TensorType):
            return "tensor"
        if type(kind) is TileType:
            return "tile"
        if type(kind) is ScalarType:
            return "scalar"
        return "array" if type(kind) is ArrayType else "other"
    if isinstance(operand, (int, float)) and not isinstance(operand, bool):
        return "scalar"
    return "other"


def described(operand: Any) -> str:
    """How an operand is named in a dispatch error."""
    level = level_of(operand)
    if level == "other":
        return type(operand.type).__name__ if isinstance(operand, Expr) else type(operand).__name__
    return level.capitalize()


def mixed_error(name: str, *operands: Any) -> TypeError:
    """The error of a unified function whose operands fit no level."""
    levels = {level_of(operand) for operand in operands}
    shown = ", ".join(described(operand) for operand in operands)
    if {"tensor", "tile"} <= levels:
        return TypeError(f"pl.{name}: cannot mix Tensor and Tile arguments ({shown})")
    if len(operands) == 1:
        return TypeError(f"pl.{name}: expected Tensor or Tile, got {shown}")
    return TypeError(f"pl.{name}: expected Tensor or Tile operands, got ({shown})")


def common_level(name: str, *operands: Any) -> str:
    """``tensor`` or ``tile``: the one level of all operands; an error that names them when there is none."""
    level = level_of(operands[0])
    if level not in ("tensor", "tile") or any(level_of(operand) != level for operand in operands[1:]):
        raise mixed_error(name, *operands)
    return level


def level_with_scalar(name: str, array: Any, scalar: Any) -> str:
    """``tensor`` or ``tile``: the level of an array whose other operand must be a scalar."""
    level = level_of(array)
    if level not in ("tensor", "tile") or level_of(scalar) != "scalar":
        raise mixed_error(name, array, scalar)
    return level


def by_first(name: str, tensor: Callable[..., Any], tile: Callable[..., Any], operand: Any) -> Callable[..., Any]:
    """The function of the level of the first operand."""
    return tensor if common_level(name, operand) == "tensor" else tile


def unsupported_for_tile(name: str, flag: str, remedy: str = "") -> TypeError:
    """A flag that the tile level cannot honour is refused, never dropped."""
    return TypeError(f"pl.{name}: '{flag}' is not supported for Tile operands." + (f" {remedy}" if remedy else ""))
