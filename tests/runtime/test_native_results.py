"""What orchestrations return: a native run gives the caller what the interpreter gives, as values and as objects."""

from __future__ import annotations

import re
import sys
import threading

import numpy as np
import pytest

import pypto.language as pl
from pypto import ir
from pypto.codegen.host import orchestration_text
from pypto.runtime import RunConfig
from pypto.runtime.native_executor import NotNative

TENSOR = "pl.Tensor[[16, 32], pl.FP32]"
SCALARS = "n: pl.Scalar[pl.INDEX], s: pl.Scalar[pl.FP32]"
KERNELS = f"""
  @pl.function(type=pl.FunctionType.InCore)
  def add(self, x: {TENSOR}, by: pl.Scalar[pl.FP32], o: pl.InOut[{TENSOR}]) -> {TENSOR}:
    return pl.store(pl.add(pl.load(x, [0, 0], [16, 32]), by), [0, 0], o)

  @pl.function(type=pl.FunctionType.InCore)
  def fill(self, by: pl.Scalar[pl.FP32], o: pl.InOut[{TENSOR}]) -> {TENSOR}:
    return pl.store(pl.tile.full([16, 32], dtype=pl.FP32, value=3.0), [0, 0], o)
"""

# What main(x, y, n, s) does, whose y is InOut.
RETURNS = {
    "one": "f = pl.create_tensor([16, 32], dtype=pl.FP32)\nreturn self.add(x, 1.0, f)",
    "two": """f = pl.create_tensor([16, 32], dtype=pl.FP32)
f = self.add(x, 1.0, f)
g = pl.create_tensor([16, 32], dtype=pl.FP32)
g = self.add(f, 1.0, g)
return g, f""",
    "the same twice": """f = pl.create_tensor([16, 32], dtype=pl.FP32)
f = self.add(x, 1.0, f)
return f, f""",
    "with a parameter": """f = pl.create_tensor([16, 32], dtype=pl.FP32)
f = self.add(x, 1.0, f)
y = self.add(f, 1.0, y)
return y, f, x""",
    "a part of a parameter": "y = self.add(x, 1.0, y)\nreturn y[4:8, :]",
    "a moving part of a parameter": "y = self.add(x, 1.0, y)\nreturn pl.slice(y, [2, 32], [n, 0]), n",
    "columns of a parameter": "y = self.add(x, 1.0, y)\nreturn pl.slice(y, [16, 8], [0, 8])",
    "a part of a fresh tensor": """f = pl.create_tensor([16, 32], dtype=pl.FP32)
f = self.add(x, 1.0, f)
return f[4:8, :], f""",
    "turned": """f = pl.create_tensor([16, 32], dtype=pl.FP32)
f = self.add(x, 1.0, f)
return pl.transpose(f, 0, 1), pl.transpose(x, 0, 1), pl.reshape(f, [32, 16])""",
    "numbers": """y = self.add(x, 1.0, y)
k = n * 3 - 7
return k, s * 2.0, n > 2, pl.tensor.read(y, [1, 2])""",
    "a branch": """f = pl.create_tensor([16, 32], dtype=pl.FP32)
if n > 2:
  f = self.add(x, 1.0, f)
  r = f
else:
  y = self.add(x, 2.0, y)
  r = y
return r""",
    "made in a branch": """if n > 2:
  f = pl.create_tensor([16, 32], dtype=pl.FP32)
  f = self.add(x, 1.0, f)
else:
  f = pl.create_tensor([16, 32], dtype=pl.FP32)
  f = self.add(x, 2.0, f)
return f""",
    "a loop that goes on": """f = pl.create_tensor([16, 32], dtype=pl.FP32)
f = self.fill(0.0, f)
for i in pl.range(n):
  f = self.add(f, 1.0, f)
return f""",
    "a loop that makes": """f = x
for i in pl.range(n):
  g = pl.create_tensor([16, 32], dtype=pl.FP32)
  f = self.add(f, 1.0, g)
return f""",
    "two that change places": """f = pl.create_tensor([16, 32], dtype=pl.FP32)
g = pl.create_tensor([16, 32], dtype=pl.FP32)
f = self.add(x, 1.0, f)
g = self.add(x, 2.0, g)
for i in pl.range(n):
  f, g = g, f
return f, g""",
    "computed shapes": """f = pl.create_tensor([n + 2, 32], dtype=pl.FP32)
for i in pl.range(n + 2):
  with pl.at(level=pl.Level.CORE_GROUP):
    f = pl.store(pl.load(x, [i, 0], [1, 32]), [i, 0], f)
return f""",
    "filled": "f = pl.create_tensor([4, 32], dtype=pl.INT32, init_value=7)\ny = self.add(x, 1.0, y)\nreturn f",
    "a shape that data says": """k = pl.cast(pl.tensor.read(x, [0, 1]), pl.INDEX) + n
f = pl.create_tensor([k, 32], dtype=pl.FP32)
for i in pl.range(k):
  with pl.at(level=pl.Level.CORE_GROUP):
    f = pl.store(pl.load(x, [i, 0], [1, 32]), [i, 0], f)
return f""",
}


pytestmark = pytest.mark.usefixtures("usual_executor")


def compiled(tmp_path, body, attributes=""):
    lines = "".join(f"    {line}\n" for line in body.splitlines())
    text = f"""import pypto.language as pl

@pl.program
class P:{KERNELS}
  @pl.function(type=pl.FunctionType.Orchestration{attributes})
  def main(self, x: {TENSOR}, y: pl.InOut[{TENSOR}], {SCALARS}):
{lines}"""
    return ir.compile(pl.parse(text, "case.py"), str(tmp_path / "out"), dump_passes=False)


def arguments(n=3):
    x = np.arange(512, dtype=np.float32).reshape(16, 32)
    return [x, np.full_like(x, -1), n, 1.25]


def seen(program, args, executor):
    outcome = program.execute(args, config=RunConfig(executor=executor), returning=True)
    assert outcome.executor == executor
    result = outcome.result
    return list(result) if isinstance(result, tuple) else [result]


def relations(found, args):
    """Which objects are the same, and which arrays share memory."""
    objects = [*args[:2], *found]
    return [
        (i, j, a is b, isinstance(a, np.ndarray) and isinstance(b, np.ndarray) and np.shares_memory(a, b))
        for i, a in enumerate(objects)
        for j, b in enumerate(objects[:i])
    ]


@pytest.mark.parametrize("name", RETURNS)
def test_results(tmp_path, name):
    program = compiled(tmp_path, RETURNS[name])
    for n in (1, 3, 6):
        one, other = arguments(n), arguments(n)
        native, wanted = seen(program, one, "native"), seen(program, other, "interpreter")
        assert [type(v) for v in native] == [type(v) for v in wanted]
        for have, want in zip(native, wanted, strict=True):
            if isinstance(want, np.ndarray):
                assert have.dtype == want.dtype and have.shape == want.shape and have.strides == want.strides
            np.testing.assert_array_equal(have, want)
        assert relations(native, one) == relations(wanted, other)
        np.testing.assert_array_equal(one[1], other[1])
    assert program.executable.native.notes == []


def test_results_can_be_written(tmp_path):
    """They are the caller's: parts of an argument change it, and others live on when all else is gone."""
    program = compiled(tmp_path, RETURNS["a part of a parameter"])
    args = arguments()
    (part,) = seen(program, args, "native")
    part[...] = 99
    np.testing.assert_array_equal(args[1][4:8], 99)
    assert args[1][3, 0] != 99
    program = compiled(tmp_path, RETURNS["a loop that makes"])
    for _ in range(3):
        (fresh,) = seen(program, arguments(), "native")
        fresh += 1
        np.testing.assert_array_equal(fresh, arguments()[0] + 4)


def test_runs_at_the_same_time_have_results_of_their_own(tmp_path):
    program = compiled(tmp_path, RETURNS["a loop that makes"])
    found = {}

    def many(n):
        found[n] = [seen(program, arguments(n), "native")[0] for _ in range(20)]

    threads = [threading.Thread(target=many, args=(n,)) for n in (1, 2, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for n, arrays in found.items():
        for array in arrays:
            np.testing.assert_array_equal(array, arguments()[0] + n)


@pl.jit
def doubled(x: pl.Tensor):
    y = pl.create_tensor(x.shape, dtype=pl.FP32)
    for i in pl.range(4):
        with pl.at(level=pl.Level.CORE_GROUP):
            y[i * 4 : i * 4 + 4, :] = x[i * 4 : i * 4 + 4, :] + x[i * 4 : i * 4 + 4, :]
    return y


def test_a_function_of_arrays():
    x = arguments()[0]
    result = doubled(x, config=RunConfig(executor="native"))
    np.testing.assert_array_equal(result, 2 * x)
    assert type(result) is np.ndarray


N = pl.dynamic("N")


@pl.program
class Dynamic:
    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, x: pl.Tensor[[N, 32], pl.FP32]) -> pl.Tensor[[N, 32], pl.FP32]:
        y = pl.create_tensor([N, 32], dtype=pl.FP32)
        for i in pl.range(pl.tensor.dim(x, 0)):
            with pl.at(level=pl.Level.CORE_GROUP):
                y = pl.store(pl.add(pl.load(x, [i, 0], [1, 32]), 1.0), [i, 0], y)
        return y


@pytest.mark.parametrize("rows", [1, 5, 16])
def test_shapes_of_the_arguments(tmp_path, rows):
    program = ir.compile(Dynamic, str(tmp_path / "out"), dump_passes=False)
    x = arguments()[0][:rows]
    outcome = program.execute([x], config=RunConfig(executor="native"))
    assert outcome.executor == "native"
    np.testing.assert_array_equal(outcome.result, x + 1)


def test_what_is_made_once_is_not_copied(tmp_path):
    """The host allocates it, so that no task has to take it; emitted code for a device does not change."""
    program = compiled(tmp_path, RETURNS["two"])
    made = program.executable.native.make()
    assert made.results.taker is None and len(made.results.made) == 2
    assert "take_results" not in made.result.code and "alloc_tensors" not in made.result.code
    text = orchestration_text(program._lowered_form(), "main")
    assert len(re.findall(r"alloc_tensors\(", text)) == 1 and "_made" not in text
    taken = compiled(tmp_path, RETURNS["numbers"])
    assert taken.executable.native.make().results.taker is not None
    assert "ticket" not in orchestration_text(taken._lowered_form(), "main")


LOOP = """f = x
for i in pl.range(n):
  g = pl.create_tensor([16, 32], dtype=pl.FP32{})
  f = self.add(f, 1.0, {})
return f"""
MISSING = {
    "manual scope": (
        """f = x
for i in pl.range(n):
  g = pl.create_tensor([16, 32], dtype=pl.FP32)
  with pl.manual_scope():
    f = self.add(x, 1.0, g)
return f""",
        "orders tasks in a MANUAL scope",
    ),
    "manual_dep": (LOOP.format(", manual_dep=True", "g"), "makes tensors with manual_dep"),
    "no_dep": (LOOP.format("", "pl.no_dep(g)"), "hides writers by no_dep"),
}


@pytest.mark.parametrize("why", MISSING)
def test_results_that_only_the_interpreter_gives(tmp_path, why):
    body, reason = MISSING[why]
    program = compiled(tmp_path, body)
    with pytest.raises(NotNative, match=reason):
        seen(program, arguments(), "native")


@pytest.mark.skipif(sys.platform == "win32", reason="no isolated runs on Windows")
def test_results_of_an_isolated_run(tmp_path):
    """What the host allocates travels; a task that takes results would have to run in this process."""
    args = arguments()
    config = RunConfig(isolate=True)
    result = compiled(tmp_path / "a", RETURNS["one"]).execute(args, config=config, returning=True).result
    np.testing.assert_array_equal(result, args[0] + 1)
    with pytest.raises(TypeError, match="can't be isolated: the function returns"):
        compiled(tmp_path / "b", RETURNS["numbers"])(*args, config=config)
