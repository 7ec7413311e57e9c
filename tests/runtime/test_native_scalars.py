"""Scalar arithmetic in native kernels and orchestrations: every operation wraps or rounds to its type, as in the interpreter."""

from __future__ import annotations

import itertools
import re

import numpy as np
import pytest

import pypto.language as pl
from pypto import ir
from pypto.ops.numpy_types import numpy_dtype
from pypto.runtime import RunConfig
from pypto.runtime.errors import ProgramError

SIGNED = ["INT8", "INT16", "INT32", "INT64", "INDEX"]
UNSIGNED = ["UINT8", "UINT16", "UINT32", "UINT64"]
FLOATS = ["FP16", "BF16", "FP32"]
BOTH = ["a + b", "a - b", "a * b", "-a", "min(a, b)", "max(b, a)", "a + b * c", "(a + b) * c - a * b", "(a - b) - c"]
# Divisors are never 0 and distances small: what has no result is tested by itself.
INTEGERS = [
    "a // d", "a % d", "(a + b) // d", "(a * b) % d", "(a + #1) // d", "a << e", "(a + b) >> e", "a >> e", "a & b", "a | b",
    "a ^ b", "~a", "(a << e) // d", "a / d", "(a + b) / d", "a ** e", "(a + b) * (a - c) + #100",
]  # fmt: skip
REALS = ["a / d", "a // d", "a % d", "(a * b + c) / d", "a * #0.1", "(a + #0.1) * b", "a * a * a"]
SEEN = ["a + b > c", "a * b < a", "(a - b) == c"]


pytestmark = pytest.mark.usefixtures("cpp_compiler")


@pytest.fixture(params=["kernel", "orchestration"])
def where(request):
    return request.param


def program(where, dtype, expressions, target=None):
    target = target or dtype
    expressions = [re.sub(r"#([0-9.]+)", rf"pl.const(\1, pl.{dtype})", text) for text in expressions]
    wide = f"pl.Tensor[[{len(expressions)}], pl.{target}]"
    scalars = ", ".join(f"{name}: pl.Scalar[pl.{dtype}]" for name in "abcde")
    writes = "".join(f"    pl.tensor.write(o, [{i}], {text})\n" for i, text in enumerate(expressions))
    return pl.parse(
        f"""import pypto.language as pl

@pl.program
class P:
  @pl.function(type=pl.FunctionType.InCore)
  def k(self, {scalars}, o: pl.InOut[{wide}]) -> {wide}:
{writes}    return o

  @pl.function(type=pl.FunctionType.Orchestration)
  def main(self, {scalars}, o: pl.InOut[{wide}]) -> {wide}:
{"    o = self.k(a, b, c, d, e, o)" if where == "kernel" else writes}
    return o
""",
        "case.py",
    )


def both(tmp_path, where, dtype, expressions, rows, target=None):
    """What both executors give for each row of values."""
    compiled = ir.compile(program(where, dtype, expressions, target), str(tmp_path / "out"), dump_passes=False)
    for row in rows:
        found = []
        for executor in ("native", "interpreter"):
            out = np.zeros(len(expressions), numpy_dtype(getattr(pl, target or dtype)))
            outcome = compiled.execute([*row, out], config=RunConfig(executor=executor))
            assert outcome.executor == executor
            found.append(out)
        assert compiled.executable.native.notes == []
        yield row, *found


def check(expressions, found):
    for row, native, wanted in found:
        for text, have, want in zip(expressions, native, wanted, strict=True):
            same = have == want or (have != have and want != want)
            assert same and np.signbit(have) == np.signbit(want) or have != have, (
                f"{text} of {row}: {have} is not {want}"
            )


def values(dtype):
    kind = np.dtype(numpy_dtype(getattr(pl, dtype)))
    info = np.iinfo(kind)
    low, high = int(info.min), int(info.max)
    middle = [0, 1, 2, 3, 7, high // 2, high - 1, high, low, low + 1, *([-1, -2, -7] if low else [])]
    rng = np.random.default_rng(kind.itemsize)
    for _ in range(60):
        a, b, c, d = (int(v) for v in rng.choice(np.array(middle, object), 4))
        yield a, b, c, d or 3, int(rng.integers(0, kind.itemsize * 8))


@pytest.mark.parametrize("dtype", SIGNED + UNSIGNED)
def test_integers(tmp_path, where, dtype):
    expressions = BOTH + INTEGERS + (["abs(a)", "abs(a - b)"] if dtype in SIGNED else [])
    check(expressions, both(tmp_path, where, dtype, expressions, values(dtype)))


def reals(dtype):
    rng = np.random.default_rng(1)
    kind = numpy_dtype(getattr(pl, dtype))
    for scale in itertools.islice(itertools.cycle([1.0, 0.01, 300.0]), 60):
        row = (rng.standard_normal(5) * scale).astype(kind)
        yield tuple(float(v) for v in row)
    big = float(np.finfo(np.float32).max if dtype == "FP32" else 60000.0 if dtype == "FP16" else 3e38)
    yield big, big, -big, 0.5, 1.0
    yield 0.0, -0.0, 1.0, -2.0, 0.0
    yield 1.0, 2.0, 3.0, 0.0, 0.0


@pytest.mark.parametrize("dtype", FLOATS)
def test_floats(tmp_path, where, dtype):
    expressions = BOTH + REALS + ["abs(a)"]
    check(expressions, both(tmp_path, where, dtype, expressions, reals(dtype)))


@pytest.mark.parametrize("dtype", SIGNED + UNSIGNED + FLOATS)
def test_comparisons_see_what_is_rounded(tmp_path, where, dtype):
    rows = reals(dtype) if dtype in FLOATS else values(dtype)
    check(SEEN, both(tmp_path, where, dtype, SEEN, rows, "BOOL"))


CASTS = [*SIGNED, *UNSIGNED, *FLOATS]


@pytest.mark.parametrize("dtype", CASTS)
def test_casts(tmp_path, where, dtype):
    """To every type and back to one that holds it."""
    expressions = [f"pl.cast(pl.cast(a, pl.{other}), pl.FP32)" for other in CASTS]
    expressions += [f"pl.cast(pl.cast(a + b, pl.{other}), pl.FP32)" for other in CASTS]
    rows = reals(dtype) if dtype in FLOATS else values(dtype)
    rows = [row for row in rows if abs(row[0]) < 1e38 and abs(row[1]) < 1e38 and abs(row[0] + row[1]) < 60000]
    assert len(rows) > 5
    check(expressions, both(tmp_path, where, dtype, expressions, rows, "FP32"))


ERRORS = [
    ("INT32", "a ** e", (2, 1, 1, 1, -1), "integer power with the negative exponent -1"),
    ("INT8", "a / d", (2, 1, 1, 0, 1), "integer division by zero"),
    ("INT8", "a // (d + #1)", (2, 1, 1, -1, 1), "integer division by zero"),
    ("FP32", "pl.cast(pl.cast(a / d, pl.INT32), pl.FP32)", (2.0, 1.0, 1.0, 0.0, 1.0), "cannot convert inf to int32"),
    ("FP32", "pl.cast(pl.cast(a // d, pl.INT32), pl.FP32)", (2.0, 1.0, 1.0, 0.0, 1.0), "cannot convert nan to int32"),
]


@pytest.mark.parametrize(("dtype", "text", "row", "message"), ERRORS)
def test_what_has_no_result(tmp_path, where, dtype, text, row, message):
    compiled = ir.compile(program(where, dtype, [text]), str(tmp_path / "out"), dump_passes=False)
    for executor in ("native", "interpreter"):
        out = np.zeros(1, numpy_dtype(getattr(pl, dtype)))
        with pytest.raises(ProgramError, match=message) as caught:
            compiled(*row, out, config=RunConfig(executor=executor))
        assert caught.value.span.begin_line == (7 if where == "kernel" else 12)
