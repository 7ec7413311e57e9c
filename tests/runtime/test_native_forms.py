"""Forms of kernels and orchestrations that run natively, as a whole, and give what the interpreter gives."""

from __future__ import annotations

import numpy as np
import pytest

import pypto.language as pl
from pypto import ir
from pypto.runtime import RunConfig
from pypto.runtime.compilers import CompilerNotFound, find_compiler


@pytest.fixture(autouse=True)
def compiler(monkeypatch):
    monkeypatch.delenv("PYPTO_EXECUTOR", raising=False)
    try:
        find_compiler()
    except CompilerNotFound as error:
        pytest.skip(f"native runs need a C++ compiler: {error}")


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
