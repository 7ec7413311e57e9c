"""Random bits: the Philox 4x32 counter stream."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .._lazy import np
from ..ir.dtype import DataType
from ..ir.enums import CoreType, MemorySpace
from ..ir.expr import Expr
from ..ir.type import ScalarType, TensorType, Type
from .creation import SHAPE, checked_valid, generated, retyped_scalar
from .definition import InferRule, Operand
from .normalize import extents
from .numpy_types import numpy_dtype
from .registry import call, define
from .rules import require_args, require_dtype
from .surface import Attr, Extents, surface
from .surface import Operand as Arg
from .values import ArrayValue, fresh
from .windows import static_shape, tuple_operand

D = DataType
SEEDS = ("key0", "key1", "counter0", "counter1", "counter2", "counter3")
LANES, GROUP = 64, 256
_MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
_INCREMENTS = (0x9E3779B9, 0xBB67AE85)
_WORD = 0xFFFFFFFF


def philox(counters: Any, key0: int, key1: int, rounds: int) -> list[Any]:
    """The four output words of each counter; ``counters`` holds its words, low first, as ``[4, n]`` uint64."""
    c0, c1, c2, c3 = (counters[i] for i in range(4))
    mask, shift = np.uint64(_WORD), np.uint64(32)
    m0, m1 = (np.uint64(m) for m in _MULTIPLIERS)
    for _ in range(rounds):
        p0, p1 = c0 * m0, c2 * m1
        k0, k1 = np.uint64(key0), np.uint64(key1)
        c0, c1, c2, c3 = (p1 >> shift) ^ c1 ^ k0, p1 & mask, (p0 >> shift) ^ c3 ^ k1, p0 & mask
        key0, key1 = (key0 + _INCREMENTS[0]) & _WORD, (key1 + _INCREMENTS[1]) & _WORD
    return [c0, c1, c2, c3]


def stream(rows: int, columns: int, keys: Sequence[int], counter: int, rounds: int) -> Any:
    """The random words of a matrix: row by row, in groups of 256 columns made of 64 lanes."""
    groups = -(-columns // GROUP)
    result = np.zeros((rows, groups * GROUP), np.uint32)
    for row in range(rows):
        for group in range(groups):
            lanes = [(counter + lane) % (1 << 128) for lane in range(LANES)]
            words = np.array([[(c >> (32 * i)) & _WORD for c in lanes] for i in range(4)], np.uint64)
            out = philox(words, keys[0], keys[1], rounds)
            base = group * GROUP
            for i in range(4):
                result[row, base + i * LANES : base + (i + 1) * LANES] = out[i].astype(np.uint32)
            counter += columns // 4
    return result[:, :columns]


def _random(ctx: Any, *args: Any, dtype: DataType = DataType.UINT32, rounds: int = 10) -> ArrayValue:
    keys = [int(k) & _WORD for k in args[:2]]
    counter = sum((int(word) & _WORD) << (32 * i) for i, word in enumerate(args[2:6]))
    rows, columns = args[6]
    valid = args[7] if len(args) > 7 and args[7] else None
    words = stream(rows, columns, keys, counter, rounds)
    return fresh(words.view(np.int32).astype(numpy_dtype(dtype)) if dtype is D.INT32 else words.copy(), None, valid)


def _infer(level: str) -> InferRule:
    op = f"{level}.random"

    def infer(args: Sequence[Expr], kwargs: Mapping[str, Any]) -> Type:
        require_args(op, args, 7, 8 if level == "tile" else 7)
        for name, seed in zip(SEEDS, args, strict=False):
            if type(seed.type) is not ScalarType or seed.type.dtype is not D.INT32:
                raise ValueError(f"{op} requires {name} to be an INT32 scalar, but got {seed.type}")
        dtype, rounds = kwargs.get("dtype", D.UINT32), kwargs.get("rounds", 10)
        require_dtype(op, "result", dtype, (D.INT32, D.UINT32))
        if rounds not in (7, 10):
            raise ValueError(f"{op}: rounds must be 7 or 10, got {rounds}")
        shape = tuple_operand(op, args, 6, "shape")
        if len(shape) != 2:
            raise ValueError(f"{op} requires a 2D shape, got rank {len(shape)}")
        if level == "tensor":
            return TensorType(shape, dtype)
        static_shape(op, shape)
        return generated(shape, dtype, checked_valid(op, args, 7, shape))

    return infer


for _level in ("tensor", "tile"):
    define(
        f"{_level}.random",
        [*(Operand(name, "scalar") for name in SEEDS), SHAPE]
        + ([Operand("valid_shape", "tuple", "shape", optional=True)] if _level == "tile" else []),
        _infer(_level),
        doc="Philox 4x32 random words",
        kwargs={"dtype": (DataType, DataType.UINT32), "rounds": (int, 10)},
        reference=_random,
        priority="rare",
        **({"output_memory": MemorySpace.Vec, "core": CoreType.VECTOR} if _level == "tile" else {}),
    )


def _seeds(*values: Any) -> list[Expr]:
    return [retyped_scalar(value, D.INT32, f"random {name}") for name, value in zip(SEEDS, values, strict=False)]


@surface("tensor", "pl", name="random")
def tensor_random(
    key0: Arg,
    key1: Arg,
    counter0: Arg,
    counter1: Arg,
    counter2: Arg,
    counter3: Arg,
    shape: Extents,
    dtype: Attr = DataType.UINT32,
    rounds: Attr = 10,
) -> Expr:
    """Random words."""
    seeds = _seeds(key0, key1, counter0, counter1, counter2, counter3)
    return call("tensor.random", *seeds, extents(shape), dtype=dtype, rounds=None if rounds == 10 else rounds)


@surface("tile", name="random")
def tile_random(
    key0: Arg,
    key1: Arg,
    counter0: Arg,
    counter1: Arg,
    counter2: Arg,
    counter3: Arg,
    shape: Extents,
    valid_shape: Extents = None,
    dtype: Attr = DataType.UINT32,
    rounds: Attr = 10,
) -> Expr:
    """Random words."""
    seeds = _seeds(key0, key1, counter0, counter1, counter2, counter3)
    more = () if valid_shape is None else (extents(valid_shape),)
    return call("tile.random", *seeds, extents(shape), *more, dtype=dtype, rounds=None if rounds == 10 else rounds)
