"""Running an example on the interpreter, with no pass in between."""

from typing import Any

import numpy as np
from spec_kit import Example

from pypto import ir
from pypto.ops.values import ArrayValue
from pypto.runtime.interpreter import Interpreter


def check_meaning(example: Example, program: ir.Program, entry: str = "run", seeds: int = 2) -> None:
    """The program computes what the example wants, in the order of the text and in random legal orders."""
    assert example.args is not None and example.want is not None
    wanted = example.want(**example.args())
    for schedule, seed in [("submit", 0), *(("random", seed) for seed in range(seeds))]:
        args = example.args()
        values = [ArrayValue(v) if isinstance(v, np.ndarray) else v for v in args.values()]
        results = Interpreter(program, schedule=schedule, seed=seed).run(program.get_function(entry), values)
        given: dict[str, Any] = {**dict(zip(args, values, strict=True)), "return": results[0] if results else None}
        for name, want in wanted.items():
            pairs = zip(results, want, strict=True) if isinstance(want, tuple) else [(given[name], want)]
            for got, value in pairs:
                np.testing.assert_allclose(
                    _plain(got), value, rtol=1e-5, atol=1e-6, err_msg=f"{name}, {schedule} {seed}"
                )


def _plain(value: Any) -> Any:
    return value.data if isinstance(value, ArrayValue) else value
