"""Which operations a program may contain: read from the op definitions, by asking each which operands it takes.

An entry is an op with operand types that its definition accepts, whose result is one of the types that programs use.
What is left out, and why, is said here; everything else that the registry gains takes part by itself.
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass
from functools import cache
from itertools import product
from typing import Any

import numpy as np

from pypto import ir
from pypto.diag.errors import InternalError
from pypto.ir.dtype import DataType
from pypto.ir.span import UNKNOWN_SPAN
from pypto.ops import REGISTRY
from pypto.ops.definition import REQUIRED, Alias, Category, OpDef
from pypto.ops.numpy_types import numpy_dtype
from pypto.ops.surface import NAMESPACES
from pypto.ops.values import ArrayValue, EvalContext

from .env import COLS, ROWS, Ty

SHAPES = ((ROWS, COLS), (ROWS, 1), (1, COLS))
DTYPES = ("FP32", "INT32", "FP16", "BF16")

# How an operand is kept in the domain of its op. Integer division by a tensor, and shifts by one, are left out.
POSITIVE, SMALL, NONZERO = "positive", "small", "nonzero"
GUARDS: dict[str, tuple[int, str]] = {
    "log": (0, POSITIVE),
    "sqrt": (0, POSITIVE),
    "rsqrt": (0, POSITIVE),
    "recip": (0, POSITIVE),
    "exp": (0, SMALL),
    "sin": (0, SMALL),
    "cos": (0, SMALL),
    "div": (1, POSITIVE),
    "fmod": (1, POSITIVE),
    "rem": (1, POSITIVE),
    "row_expand_div": (1, POSITIVE),
    "col_expand_div": (1, POSITIVE),
    "row_expand_expdif": (0, SMALL),
    "col_expand_expdif": (0, SMALL),
    "divs": (1, NONZERO),
    "fmods": (1, NONZERO),
    "rems": (1, NONZERO),
}
# Their result depends on more than the operands' elements, or on a range of them that is not stated.
LEFT_OUT = re.compile(
    r"random|gather|scatter|sort|mask|alloc|create|get_block|get_subblock|dim$|aiv_shard|aic_gather|tpush|tpop|ci$|tri$"
    r"|matmul|gemv|view|mscatter|mgather|expand_clone|shl|shr|part_|xor|sel|cmp|concat|extract|move|prelu|addsc|subsc"
)
GROWS = re.compile(r"\.(mul|muls|exp|.*prod|.*expdif|.*expand_mul|recip|.*div.*|addc|adds|add|.*sum|.*expand_add|sub)")


@dataclass(frozen=True)
class Entry:
    """An op for operands of these types. ``spellings``: how a program may call it. ``scratch``: operands that are
    only room to work in."""

    name: str
    operands: tuple[Ty, ...]
    scratch: frozenset[int]
    result: Ty
    spellings: tuple[str, ...]

    @property
    def base(self) -> str:
        return self.name.split(".", 1)[1]

    @property
    def guard(self) -> tuple[int, str] | None:
        return GUARDS.get(self.base)

    @property
    def grows(self) -> bool:
        return GROWS.match(self.name[self.name.index(".") :]) is not None


def ir_type(kind: Ty) -> Any:
    dtype = getattr(DataType, kind.dtype)
    if kind.kind == "scalar":
        return ir.ScalarType(dtype)
    return (ir.TensorType if kind.kind == "tensor" else ir.TileType)(list(kind.shape), dtype)


@cache
def _var(kind: Ty) -> Any:
    return ir.Var("v", ir_type(kind), UNKNOWN_SPAN)


def _described(found: Any) -> Ty | None:
    """The type of a result in the terms of the generator, or None for one that programs do not use."""
    if not isinstance(found, (ir.TensorType, ir.TileType)):
        return None
    shape = [getattr(e, "value", None) for e in found.shape]
    names = [d for d in DTYPES if getattr(DataType, d) is found.dtype]
    if tuple(shape) not in SHAPES or not names:
        return None
    if isinstance(found, ir.TileType) and found.tile_view is not None:
        return None  # another type than that of a tile of the same shape: no name could have both
    return Ty("tensor" if isinstance(found, ir.TensorType) else "tile", names[0], tuple(shape))


def _candidates(definition: OpDef, level: str) -> Any:
    """Operand types that an op may take: every shape, one element type."""
    operands = [o for o in definition.operands if not o.optional]
    if not operands or len(operands) > 4 or all(o.kind == "scalar" for o in operands):
        return
    for dtype in DTYPES:
        choices = []
        for operand in operands:
            if operand.kind == "scalar":
                choices.append([Ty("scalar", dtype)] if dtype in ("FP32", "INT32") else [])
            elif operand.kind in (level, "window") and operand.role in ("data", "scratch"):
                shapes = SHAPES if len(operands) <= 2 else SHAPES[:1]
                choices.append([Ty(level, dtype, shape) for shape in shapes])
            else:
                choices.append([])
        yield from product(*choices)


def _spellings(definition: OpDef, operands: tuple[Ty, ...]) -> tuple[str, ...]:
    """Ways to write a call: with its level, and without where that means the same op."""
    level, base = definition.name.split(".", 1)
    found = []
    for namespace, name in ((level, base), ("pl", base), ("pl", base.removesuffix("s"))):
        function = NAMESPACES[namespace].get(name)
        try:
            made = function(*map(_var, operands)) if function is not None else None
        except (ValueError, TypeError, InternalError):
            continue
        text = f"pl.{name}" if namespace == "pl" else f"pl.{level}.{name}"
        if isinstance(made, ir.Call) and made.op.name == definition.name and text not in found:
            found.append(text)
    return tuple(reversed(found))


def _computes(definition: OpDef, operands: tuple[Ty, ...], result: Any) -> bool:
    """Whether the interpreter has a meaning for the op that defines every element."""
    values: list[Any] = []
    for kind in operands:
        dtype = numpy_dtype(getattr(DataType, kind.dtype))
        values.append(dtype.type(1) if kind.kind == "scalar" else ArrayValue(np.ones(kind.shape, dtype)))
    context = EvalContext()
    context.type, context.span = result, UNKNOWN_SPAN
    try:
        made = definition.reference(context, *values)  # type: ignore[misc]
    except (ValueError, TypeError, NotImplementedError, IndexError):
        return False
    return isinstance(made, ArrayValue) and made.fully_valid and made.mask is None


@cache
def catalogue() -> dict[Ty, tuple[Entry, ...]]:
    """Result type -> the ways to compute one."""
    found: dict[Ty, list[Entry]] = defaultdict(list)
    for definition in REGISTRY.values():
        level = definition.name.split(".", 1)[0]
        if definition.category not in (Category.TENSOR, Category.TILE) or LEFT_OUT.search(definition.name):
            continue
        if definition.reference is None or definition.internal or definition.effects:
            continue
        if definition.alias is not Alias.FRESH or any(default is REQUIRED for _, default in definition.kwargs.values()):
            continue
        for operands in _candidates(definition, level):
            entry = _entry(definition, operands)
            if entry is not None:
                found[entry.result].append(entry)
    return {kind: tuple(entries) for kind, entries in found.items()}


def _entry(definition: OpDef, operands: tuple[Ty, ...]) -> Entry | None:
    base = definition.name.split(".", 1)[1]
    if base in GUARDS and operands[0].dtype == "INT32" and GUARDS[base][1] != NONZERO:
        return None
    try:
        inferred = definition.infer([_var(kind) for kind in operands], {})
    except (ValueError, TypeError, InternalError):
        return None
    result = _described(inferred)
    if result is None or not _computes(definition, operands, inferred):
        return None
    spellings = _spellings(definition, operands)
    scratch = frozenset(i for i, o in enumerate(definition.operands) if o.role == "scratch")
    return Entry(definition.name, operands, scratch, result, spellings) if spellings else None
