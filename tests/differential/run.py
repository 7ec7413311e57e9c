"""Running a program on small arguments, and what can be seen of a run: its tensors and results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pypto import ir
from pypto.ir.enums import ParamDirection
from pypto.ops.numpy_types import numpy_dtype
from pypto.ops.values import ArrayValue, Buffer
from pypto.runtime.interpreter import Interpreter

Arguments = list[Any]  # NumPy arrays and numbers, one for each parameter
Outcome = list[Any]  # arrays as they end, then returned values

# The value of an extent that is known only at run time.
EXTENT = 24


def arguments(function: ir.Function, seed: int) -> Arguments:
    """Small arguments that depend on the seed alone: integers (also as floats), so that most arithmetic is exact."""
    rng = np.random.default_rng(seed)
    found: Arguments = []
    for at, param in enumerate(function.params):
        kind = param.type
        if isinstance(kind, ir.TensorType):
            shape = [getattr(extent, "value", EXTENT) for extent in kind.shape]
            dtype = numpy_dtype(kind.dtype)
            if function.param_directions[at] is ParamDirection.Out:
                found.append(np.zeros(shape, dtype))
            else:
                low = 0 if dtype.kind in "ub" else -3
                found.append(rng.integers(low, 4, shape).astype(dtype))
        elif kind.dtype.is_float_:
            found.append(float(rng.integers(-2, 3)) / 2)
        else:
            found.append(int(rng.integers(0, 4 if param.name_hint == "n" else 3)))
    return found


def run(program: ir.Program, entry: str, args: Sequence[Any], schedule: str = "submit", seed: int = 0) -> Outcome:
    """Run a function of a program on copies of the arguments."""
    function = program[entry]
    values = []
    for param, arg in zip(function.params, args, strict=True):
        if isinstance(arg, np.ndarray):
            data = arg.copy()
            values.append(ArrayValue(data, Buffer(data, param.name_hint, external=True)))
        else:
            values.append(arg)
    results = Interpreter(program, schedule=schedule, seed=seed).run(function, values)
    return [_seen(value) for value in [*values, *results]]


def _seen(value: Any) -> Any:
    return np.array(value.data) if isinstance(value, ArrayValue) else value


def difference(one: Outcome, other: Outcome, names: Sequence[str], tolerance: float = 0.0) -> str | None:
    """The first difference between two outcomes, or None. Without a tolerance every bit counts; NaN equals NaN."""
    if len(one) != len(other):
        return f"{len(one) - len(names)} values returned, then {len(other) - len(names)}"
    for at, (a, b) in enumerate(zip(one, other, strict=True)):
        what = f"'{names[at]}'" if at < len(names) else f"returned value {at - len(names)}"
        if not isinstance(a, np.ndarray):
            if type(a) is not type(b) or not (a == b or a != a and b != b):
                return f"{what} is {b!r}, was {a!r}"
            continue
        if not isinstance(b, np.ndarray) or a.shape != b.shape or a.dtype != b.dtype:
            return f"{what} has another type"
        wide_a, wide_b = (v.astype(np.float64) if v.dtype.kind not in "iub" else v for v in (a, b))
        same = (wide_a == wide_b) | ((wide_a != wide_a) & (wide_b != wide_b))
        if tolerance:
            same |= np.abs(wide_a - wide_b) <= tolerance * (1 + np.abs(wide_a))
        if not same.all():
            place = tuple(int(i) for i in np.argwhere(~same)[0])
            count = int(np.count_nonzero(~same))
            return f"{what} differs in {count} of {a.size} elements: at {list(place)} it is {b[place]}, was {a[place]}"
    return None
