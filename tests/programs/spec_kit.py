"""The fragments of the specifications as whole programs: short notation, and the checks that every one passes.

An example is one meaning (arguments, and the values expected from NumPy) written in one or more ways: as a user writes it, and
as passes leave it. Notation in the texts, beside plain DSL:

* ``f32[8, 64]`` is ``pl.Tensor[[8, 64], pl.FP32]``; ``tile_f32[8, 64]`` a tile; ``tile_f32[8, 64]@Acc`` one in a memory space;
  dtypes ``f32 f16 bf16 i8 u8 i16 i32 i64``;
* ``idx`` is ``pl.Scalar[pl.INDEX]``;
* ``@InCore``, ``@Orchestration``, ``@Group``, ... alone on a line is ``@pl.function(type=pl.FunctionType.InCore)``; ``@Opaque``
  is ``@pl.function``.
"""

import re
import textwrap
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import pypto.language as pl
from pypto import ir
from pypto.runtime.execute import Executable
from pypto.runtime.run_config import RunConfig
from pypto.runtime.signature import entry_function, param_infos

F32 = np.float32
HEAD = (
    "import pypto.language as pl\nimport pypto.language.distributed as pld\n"
    'M = pl.dynamic("M")\nN = pl.dynamic("N")\nR = pl.dynamic("R")\n'
)
DTYPES = {
    "f32": "FP32",
    "f16": "FP16",
    "bf16": "BF16",
    "i8": "INT8",
    "u8": "UINT8",
    "i16": "INT16",
    "i32": "INT32",
    "i64": "INT64",
}
_TYPE = re.compile(rf"\b(tile_)?({'|'.join(DTYPES)})\[([^\]]*)\](?:@(\w+))?")
_DECORATOR = re.compile(r"^(\s*)@(InCore|Orchestration|AIC|AIV|Group|Spmd|Inline|Graph)$", re.MULTILINE)


# Kernels that several examples launch: buffers of 8 by 8 elements.
BASE = """
@InCore
def part(self, x: f32[8, 8], i: idx, y: pl.Out[f32[8, 8]]) -> f32[8, 8]:
    y1 = pl.store(pl.add(pl.load(x, [i, 0], [1, 8]), 1.0), [i, 0], y)
    return y
@InCore
def fix(self, x: f32[8, 8], y: pl.InOut[f32[8, 8]]) -> f32[8, 8]:
    t = pl.add(pl.load(x, [0, 0], [8, 8]), pl.load(y, [0, 0], [8, 8]))
    y1 = pl.store(t, [0, 0], y)
    return y
@InCore
def twice(self, y: pl.InOut[f32[8, 8]]) -> f32[8, 8]:
    y1 = pl.store(pl.mul(pl.load(y, [0, 0], [8, 8]), 2.0), [0, 0], y)
    return y
"""


def expand(text: str) -> str:
    """The notation written out."""

    def typed(match: re.Match[str]) -> str:
        tile, dtype, shape, space = match.groups()
        kind = "Tile" if tile else "Tensor"
        where = f", pl.Mem.{space}" if space else ""
        return f"pl.{kind}[[{shape}], pl.{DTYPES[dtype]}{where}]"

    text = _TYPE.sub(typed, text)
    text = re.sub(r"\bidx\b", "pl.Scalar[pl.INDEX]", text)
    text = re.sub(r"^(\s*)@Opaque$", r"\1@pl.function", text, flags=re.MULTILINE)
    return _DECORATOR.sub(r"\1@pl.function(type=pl.FunctionType.\2)", text)


def program_text(methods: str) -> str:
    """A module with one program of these methods."""
    return f"{HEAD}@pl.program\nclass P:\n{textwrap.indent(textwrap.dedent(expand(methods)).strip(), '    ')}\n"


@dataclass
class Example:
    """Programs of one meaning. ``args`` makes the arguments by name; ``want`` gives, from copies of them, the values of the
    written parameters by name, and of the result as ``"return"``."""

    name: str
    texts: dict[str, str]
    args: Callable[[], dict[str, Any]] | None = None
    want: Callable[..., dict[str, Any]] | None = None
    common: str = ""  # methods that stand behind those of every text

    def parse(self, form: str) -> ir.Program:
        """The program of one text."""
        return parse(textwrap.dedent(self.texts[form]) + "\n" + textwrap.dedent(self.common))


def text_params(examples: list[Example]) -> list[Any]:
    """One test parameter for each text of the examples."""
    return [
        pytest.param(example, form, id=f"{example.name}-{form}".replace(" ", "_"))
        for example in examples
        for form in example.texts
    ]


def parse(methods: str) -> ir.Program:
    """The program of these methods."""
    found = pl.parse(program_text(methods), "case.py")
    assert isinstance(found, ir.Program)
    return found


def check_round_trips(node: Any) -> None:
    """Printing and parsing, and writing and reading, give an equal program and the same text."""
    for prefix, explicit in (("pl", False), ("pl", True), ("lang", False)):
        text = ir.python_print(node, prefix, format=False, explicit_layout=explicit)
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # printed IR never warns
            again = pl.parse(text)
        ir.assert_structural_equal(node, again, enable_auto_mapping=True)
        assert ir.python_print(again, prefix, format=False, explicit_layout=explicit) == text
        assert ir.structural_hash(node, True) == ir.structural_hash(again, True)
    blob = ir.serialize(node)
    again = ir.deserialize(blob)
    ir.assert_structural_equal(node, again, enable_auto_mapping=True)
    assert ir.serialize(again) == blob


def _copy(values: dict[str, Any]) -> dict[str, Any]:
    return {name: value.copy() if isinstance(value, np.ndarray) else value for name, value in values.items()}


def check_values(example: Example, node: ir.Program, seeds: int = 3) -> None:
    """The program computes what is expected, in submit order and in random legal orders."""
    assert example.args is not None and example.want is not None
    want = example.want(**_copy(example.args()))
    # As it is: many texts are programs as some pass leaves them, which the pipeline does not take from the start.
    entry = entry_function(node)
    program = Executable(node, entry, param_infos(entry), example.name)
    for config in [None, *(RunConfig(schedule="random", seed=seed) for seed in range(seeds))]:
        args = example.args()
        result = program.run(list(args.values()), {}, config).result
        for name, value in want.items():
            got = result if name == "return" else args[name]
            if isinstance(value, tuple):
                for one, other in zip(got, value, strict=True):
                    np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6, err_msg=f"{name}, {config}")
            else:
                np.testing.assert_allclose(got, value, rtol=1e-5, atol=1e-6, err_msg=f"{name}, {config}")


def ramp(*shape: int, dtype: Any = F32) -> Any:
    """0, 1, 2, ... in a shape."""
    return np.arange(np.prod(shape)).reshape(shape).astype(dtype)


def noise(*shape: int, dtype: Any = F32, seed: int = 0) -> Any:
    """Small random integers in a shape: sums and products of them are exact."""
    return np.random.default_rng(seed).integers(-4, 5, shape).astype(dtype)


def zeros(*shape: int, dtype: Any = F32) -> Any:
    """Zeros in a shape."""
    return np.zeros(shape, dtype)
