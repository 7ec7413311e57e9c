"""Short ways to build operands, call surface functions and run reference semantics."""

from __future__ import annotations

from typing import Any

import numpy as np

import pypto.ops  # noqa: F401  (registers the catalogue)
from pypto.ir.dtype import DataType
from pypto.ir.enums import MemorySpace, TensorLayout
from pypto.ir.expr import Expr, MakeTuple, Var
from pypto.ir.extents import normalize_extents
from pypto.ir.type import ScalarType, TensorType, TensorView, TileType, implicit_tile_view
from pypto.ops.registry import REGISTRY
from pypto.ops.surface import IR_NAMESPACES, NAMESPACES
from pypto.ops.values import ArrayValue, Buffer, EvalContext

D = DataType
M = MemorySpace


class Surface:
    """``PL.load(...)`` is the surface function of that name."""

    def __init__(self, table: dict[str, Any]) -> None:
        self._table = table

    def __getattr__(self, name: str) -> Any:
        return self._table[name]


PL = Surface(NAMESPACES["pl"])
TENSOR = Surface(NAMESPACES["tensor"])
TILE = Surface(NAMESPACES["tile"])
SYSTEM = Surface(NAMESPACES["system"])
ARRAY = Surface(NAMESPACES["array"])
IR_TENSOR = Surface(IR_NAMESPACES["tensor"])
IR_TILE = Surface(IR_NAMESPACES["tile"])


def tensor(shape: Any, dtype: DataType = D.FP32, valid: Any = None, **view: Any) -> Var:
    given = None
    if valid is not None or view:
        given = TensorView(view.get("stride"), view.get("layout", TensorLayout.ND), valid, **_pad(view))
    return Var("x", TensorType(shape, dtype, None, given))


def _pad(view: dict[str, Any]) -> dict[str, Any]:
    return {"pad": view["pad"]} if "pad" in view else {}


def tile(shape: Any, dtype: DataType = D.FP32, valid: Any = None, space: Any = M.Vec, **view: Any) -> Var:
    given = None
    if valid is not None or view:
        given = implicit_tile_view(normalize_extents(shape), space).replace(valid_shape=valid, **view)
    return Var("t", TileType(shape, dtype, None, given, space))


def scalar(name: str = "i", dtype: DataType = D.INDEX) -> Var:
    return Var(name, ScalarType(dtype))


def valid_of(call: Expr) -> list[Any]:
    """Valid extents: ints, or the printed form of a symbolic one."""
    return shown(call.type.valid_extents)  # type: ignore[attr-defined]


def shape_of(call: Expr) -> list[Any]:
    return shown(call.type.shape)  # type: ignore[attr-defined]


def shown(extents: Any) -> list[Any]:
    return [e.value if hasattr(e, "value") else e.as_python(format=False) for e in extents]


def run(call: Any, *values: Any, env: dict[Expr, Any] | None = None, **context: Any) -> Any:
    """Evaluate a call: its tuple and constant operands are taken from it, variables from ``values`` in order."""
    given = iter(values)
    env = dict(env or {})

    def value(e: Any) -> Any:
        if isinstance(e, MakeTuple):
            return [value(x) for x in e.elements]
        if isinstance(e, Var):
            if e not in env:
                env[e] = next(given)
            return env[e]
        return e.value

    ctx = EvalContext()
    ctx.type = call.type
    for key, item in context.items():
        setattr(ctx, key, item)
    reference = REGISTRY[call.op.name].reference
    assert reference is not None
    return reference(ctx, *[value(arg) for arg in call.args], **call.kwargs)


def array(data: Any, valid: Any = None, name: str = "") -> ArrayValue:
    """A defined value over ``data`` (not copied)."""
    data = np.asarray(data)
    return ArrayValue(data, Buffer(data, name), valid)


def ramp(*shape: int, dtype: Any = np.float32) -> ArrayValue:
    return array(np.arange(np.prod(shape)).reshape(shape).astype(dtype))
