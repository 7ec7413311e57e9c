"""Forms of kernels and orchestrations that run natively, as a whole, and give what the interpreter gives."""

from __future__ import annotations

import numpy as np
import pytest

import pypto.language as pl
from pypto import ir
from pypto.ops.numpy_types import numpy_dtype
from pypto.runtime import RunConfig
from pypto.runtime.errors import ProgramError
from pypto.runtime.host_executor import RunOptions
from pypto.runtime.native_executor import NotNative

pytestmark = pytest.mark.usefixtures("usual_executor")


KERNELS = {
    "tuples": """
    b = n + 1
    n, b = b, n
    t = pl.load(x, [0, 0], [8, 16])
    u = pl.add(t, 1.0)
    t, u = pl.mul(u, 2.0), t
    for i in pl.range(n):
        p = pl.store(pl.add(t, u), [0, 0], p)
    o = pl.store(u, [0, 0], o)
    return o, p
""",
    "rows known at run time": """
    t = pl.load(x, [1, 0], [n, 16])
    u = pl.add(pl.mul(t, 2.0), 1.0)
    o = pl.store(u, [1, 0], o)
    p = pl.store(pl.sub(u, t), [n, 0], p)
    return o, p
""",
    "computed steps": """
    for i in pl.range(0, 8, n + 2):
      o = pl.store(pl.load(x, [i, 0], [1, 16]), [i, 0], o)
    for j in pl.range(7, n, 0 - n - 1):
      p = pl.store(pl.load(x, [j, 0], [1, 16]), [j, 0], p)
    return o, p
""",
    "leaving loops": """
    for i in pl.range(8):
      if i == n:
        continue
      if i > n + 2:
        break
      o = pl.store(pl.load(x, [i, 0], [1, 16]), [i, 0], o)
    t = pl.load(x, [0, 0], [1, 16])
    k = 0
    while True:
      t = pl.add(t, 1.0)
      k = k + 1
      if k > n:
        break
    p = pl.store(t, [k, 0], p)
    return o, p
""",
    "carries of two tensors": """
    for i in pl.range(n):
        o = pl.store(pl.add(pl.load(x, [i, 0], [1, 16]), 1.0), [i, 0], o)
        p = pl.store(pl.load(o, [i, 0], [1, 16]), [i + 1, 0], p)
    if n > 1:
        p = pl.store(pl.load(x, [0, 0], [1, 16]), [0, 0], p)
    return o, p
""",
}
TENSOR = "pl.Tensor[[8, 16], pl.FP32]"


@pytest.mark.parametrize("name", KERNELS)
def test_kernels(tmp_path, name):
    program = pl.parse(
        f"""import pypto.language as pl

@pl.program
class P:
  @pl.function(type=pl.FunctionType.InCore)
  def k(self, x: {TENSOR}, n: pl.Scalar[pl.INDEX], o: pl.InOut[{TENSOR}], p: pl.InOut[{TENSOR}]
        ) -> tuple[{TENSOR}, {TENSOR}]:{KERNELS[name]}
  @pl.function(type=pl.FunctionType.Orchestration)
  def main(self, x: {TENSOR}, n: pl.Scalar[pl.INDEX], o: pl.InOut[{TENSOR}], p: pl.InOut[{TENSOR}]):
    o, p = self.k(x, n, o, p)
    return
""",
        "case.py",
    )
    compiled = ir.compile(program, str(tmp_path / "out"), dump_passes=False)
    for n in (0, 1, 3):
        found = []
        for executor in ("native", "interpreter"):
            x = np.arange(128, dtype=np.float32).reshape(8, 16)
            o, p = np.full_like(x, -1), np.full_like(x, -2)
            assert compiled.execute([x, n, o, p], config=RunConfig(executor=executor)).executor == executor
            found.append((o, p))
        assert compiled.executable.native.notes == []
        np.testing.assert_array_equal(found[0], found[1])


def test_a_step_of_zero(tmp_path):
    program = pl.parse(
        f"""import pypto.language as pl

@pl.program
class P:
  @pl.function(type=pl.FunctionType.InCore)
  def k(self, x: {TENSOR}, n: pl.Scalar[pl.INDEX], o: pl.InOut[{TENSOR}]) -> {TENSOR}:
    for i in pl.range(0, 8, n):
      o = pl.store(pl.load(x, [i, 0], [1, 16]), [i, 0], o)
    return o

  @pl.function(type=pl.FunctionType.Orchestration)
  def main(self, x: {TENSOR}, n: pl.Scalar[pl.INDEX], o: pl.InOut[{TENSOR}]):
    o = self.k(x, n, o)
    return
""",
        "case.py",
    )
    compiled = ir.compile(program, str(tmp_path / "out"), dump_passes=False)
    x = np.zeros((8, 16), np.float32)
    for executor in ("native", "interpreter"):
        with pytest.raises(ProgramError, match="the step of a loop is zero") as caught:
            compiled(x, 0, x.copy(), config=RunConfig(executor=executor))
        assert caught.value.span.begin_line == 7


# --- programs that no device form exists for --------------------------------------------------------------------------


def parsed(functions):
    return pl.parse(f"import pypto.language as pl\n\n@pl.program\nclass P:\n{functions}", "case.py")


MAIN = f"""
  @pl.function(type=pl.FunctionType.{{}})
  def main(self, x: {TENSOR}, y: pl.InOut[{TENSOR}], n: pl.Scalar[pl.INDEX], s: pl.Scalar[pl.FP32]):
"""
BODIES = {
    "math": "return pl.exp(pl.mul(x, 0.01) + s)",
    "math with views": """a = x + 1.0
b = y[2:6, :]
c = pl.mul(a, 2.0)
d = pl.add(pl.slice(c, [4, 16], [n, 0]), b)
return d, c""",
    "math in loops": """t = x
for i in pl.range(n):
  t = t + x
return t""",
    "two carries": """t = x
u = x
for i in pl.range(n):
  with pl.at(level=pl.Level.CORE_GROUP):
    t = pl.add(t, x)
  with pl.at(level=pl.Level.CORE_GROUP):
    u = pl.add(u, t)
return t, u""",
    "a carry of the iteration before": """t = x
p = x
for i in pl.range(n):
  u = t + p
  p = t
  t = u
return t, p""",
    "loops in loops": """t = x
k = 0
while k < n:
  k = k + 1
  for i in pl.range(k):
    t = t + x
return t, k""",
    "math in branches": """if n > 1:
  t = x + 1.0
else:
  t = x[0:8, :] * 2.0
return t, t + t""",
    "math into a parameter": """a = x + 1.0
y = pl.assemble(y, a, [0, 0])
return y, a""",
    "math around a kernel": """a = x + 1.0
with pl.at(level=pl.Level.CORE_GROUP):
  y = pl.store(pl.add(pl.load(a, [0, 0], [8, 16]), 1.0), [0, 0], y)
return pl.mul(y, 2.0)""",
    "numbers of math": """a = x + s
k = pl.tensor.read(a, [1, n])
return pl.mul(x, k), k""",
    "a kernel with a tensor of its own": """with pl.at(level=pl.Level.CORE_GROUP):
  a = pl.add(x, 1.0)
  b = pl.mul(a, 2.0)
return b, a""",
    "a kernel with a tensor of its own, in a loop": """t = x
for i in pl.range(n + 1):
  with pl.at(level=pl.Level.CORE_GROUP):
    t = pl.add(t, x)
return t""",
    "a kernel with a tensor of its own, in a branch": """if n > 1:
  with pl.at(level=pl.Level.CORE_GROUP):
    t = pl.add(x, 1.0)
else:
  with pl.at(level=pl.Level.CORE_GROUP):
    t = pl.mul(x, 3.0)
return t""",
    "a kernel that gives numbers": """k = n
r = s
with pl.at(level=pl.Level.CORE_GROUP):
  y = pl.store(pl.load(x, [0, 0], [8, 16]), [0, 0], y)
  for i in pl.range(3):
    k = k * 2 + i
    r = r + pl.tensor.read(x, [0, i])
return y, k, r""",
    "a submit with results of its own": """with pl.at(level=pl.Level.CORE_GROUP) as first:
  a = pl.add(x, s)
  k = n * 3
with pl.at(level=pl.Level.CORE_GROUP, deps=[first]):
  b = pl.mul(a, 2.0)
return b, k""",
    "a kernel whose loop runs": """with pl.at(level=pl.Level.CORE_GROUP):
  t = x
  for i in pl.range(4):
    t = pl.add(t, x)
return pl.mul(t, 2.0)""",
    "nothing is launched": "return x, n + 1",
    "a part without a launch": "return y[2:4, :]",
    "work of another level": """with pl.at(level=pl.Level.CHIP_DIE):
  y = pl.assemble(y, pl.mul(x, 2.0), [0, 0])
return y""",
    "tasks of another level": """with pl.at(level=pl.Level.CHIP, role=pl.Role.Orchestrator):
  for i in pl.range(n):
    with pl.at(level=pl.Level.CORE_GROUP):
      y = pl.store(pl.add(pl.load(y, [0, 0], [8, 16]), 1.0), [0, 0], y)
return y""",
}


def same(compiled, *arguments):
    """Both executors give the same; what they gave."""
    found = []
    for executor in ("native", "interpreter"):
        args = [a.copy() if isinstance(a, np.ndarray) else a for a in arguments]
        outcome = compiled.execute(args, config=RunConfig(executor=executor, workers=2), returning=True)
        assert outcome.executor == executor
        result = outcome.result if isinstance(outcome.result, tuple) else (outcome.result,)
        objects = [*args, *result]
        arrays = [a for a in objects if isinstance(a, np.ndarray)]
        shared = [[np.shares_memory(a, b) for b in arrays] for a in arrays]
        found.append(([type(v) for v in objects], shared, objects))
    assert found[0][:2] == found[1][:2]
    for native, wanted in zip(found[0][2], found[1][2], strict=True):
        np.testing.assert_allclose(native, wanted, rtol=1e-6)
    return found[0][2]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", ["Opaque", "Orchestration"])
@pytest.mark.parametrize("name", BODIES)
def test_bodies(tmp_path, name, kind):
    body = "".join(f"    {line}\n" for line in BODIES[name].splitlines())
    compiled = ir.compile(parsed(MAIN.format(kind) + body), str(tmp_path / "out"), dump_passes=False)
    x = np.arange(128, dtype=np.float32).reshape(8, 16)
    for n in (0, 1, 3):
        changed = same(compiled, x, -x, n, 1.5)[:2]
        np.testing.assert_array_equal(changed[0], x)  # what is only read is not written
    assert compiled.executable.native.notes == []


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ["math in loops", "two carries", "a carry of the iteration before", "loops in loops"])
def test_what_a_loop_makes(tmp_path, name):
    """Two buffers do, however often it runs; who writes one waits for its readers, in any order of the tasks."""
    body = "".join(f"    {line}\n" for line in BODIES[name].splitlines())
    compiled = ir.compile(parsed(MAIN.format("Orchestration") + body), str(tmp_path / "out"), dump_passes=False)
    program = compiled.executable.native.make()
    x = np.arange(128, dtype=np.float32).reshape(8, 16)
    wanted = compiled.execute([x, -x, 6, 1.0], config=RunConfig(executor="interpreter"), returning=True).result
    wanted = wanted if isinstance(wanted, tuple) else (wanted,)
    for seed in range(10):
        for options in (RunOptions(workers=1, random=True, seed=seed, fill=True), RunOptions(workers=3, fill=True)):
            found, _ = program.call([x, -x, 6, 1.0], options)
            for have, want in zip(found, wanted, strict=True):
                np.testing.assert_array_equal(have, want)
    if name in ("math in loops", "two carries"):  # 128 tensors would fill this heap
        program.call([x, -x, 600, 1.0], RunOptions(heap=1 << 16, workers=1))


def test_a_result_that_may_be_a_parameter_is_the_interpreters(tmp_path):
    """A copy would not be the same tensor; here it is ``x`` if the loop does not run."""
    body = """    with pl.at(level=pl.Level.CORE_GROUP):
      t = x
      for i in pl.range(n):
        t = pl.add(t, x)
    return t
"""
    compiled = ir.compile(parsed(MAIN.format("Orchestration") + body), str(tmp_path / "out"), dump_passes=False)
    x = np.zeros((8, 16), np.float32)
    with pytest.raises(NotNative, match="result 0 of the kernel 'main_incore_0' may be one of its parameters"):
        compiled(x, x.copy(), 2, 1.0, config=RunConfig(executor="native"))
    assert compiled.execute([x, x.copy(), 2, 1.0]).executor == "interpreter"


N = pl.dynamic("N")


@pl.program
class Dynamic:
    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, x: pl.Tensor[[N, 32], pl.FP32], b: pl.Tensor[[N, 32], pl.FP32]):
        y = pl.mul(x + b, 2.0)
        return y, pl.row_max(y)


@pytest.mark.filterwarnings("ignore")
def test_rows_known_at_run_time(tmp_path):
    compiled = ir.compile(Dynamic, str(tmp_path / "out"), dump_passes=False)
    for rows in (1, 7, 33):
        x = np.arange(rows * 32, dtype=np.float32).reshape(rows, 32)
        found = same(compiled, x, x - 5)
        np.testing.assert_array_equal(found[2], (x + x - 5) * 2)
        np.testing.assert_array_equal(found[3], found[2].max(1, keepdims=True))
    assert compiled.executable.native.notes == []


def test_a_kernel_as_the_entry(tmp_path):
    program = parsed(f"""
  @pl.function(type=pl.FunctionType.InCore)
  def scale(self, x: {TENSOR}, s: pl.Scalar[pl.FP32], y: pl.Out[{TENSOR}]) -> {TENSOR}:
    y = pl.store(pl.mul(pl.load(x, [0, 0], [8, 16]), s), [0, 0], y)
    return y
""")
    compiled = ir.compile(program, str(tmp_path / "out"), dump_passes=False)
    x = np.arange(128, dtype=np.float32).reshape(8, 16)
    found = same(compiled, x, 2.0, np.zeros_like(x))
    np.testing.assert_array_equal(found[2], 2 * x)


def test_results_of_many_types(tmp_path):
    """Numbers that a kernel gives travel through tensors of their types."""
    types = ["FP32", "FP16", "BF16", "INT8", "INT32", "INT64", "UINT8", "UINT16", "BOOL"]
    for dtype in types:
        kind = f"pl.Tensor[[4, 32], pl.{dtype}]"
        program = parsed(f"""
  @pl.function(type=pl.FunctionType.InCore)
  def pick(self, x: {kind}, y: pl.Out[{kind}]) -> tuple[{kind}, pl.Scalar[pl.{dtype}]]:
    t = pl.load(x, [0, 0], [4, 32])
    return pl.store(t, [0, 0], y), pl.tensor.read(x, [1, 2])

  @pl.function(type=pl.FunctionType.Orchestration)
  def main(self, x: {kind}, y: pl.Out[{kind}]):
    y, k = self.pick(x, y)
    return y, k
""")
        compiled = ir.compile(program, str(tmp_path / dtype), dump_passes=False)
        array = np.zeros((4, 32), numpy_dtype(getattr(pl, dtype)))
        array[1, 2] = 1
        array[2, 3] = 100 if dtype != "BOOL" else 1
        assert same(compiled, array, np.zeros_like(array))[3] == 1
