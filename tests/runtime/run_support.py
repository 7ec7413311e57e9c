"""Short ways to run programs in tests."""

import textwrap

import numpy as np

import pypto.language as pl
from pypto.ir.program import Program
from pypto.runtime.execute import Executable
from pypto.runtime.run_config import RunConfig
from pypto.runtime.signature import entry_function, param_infos

HEAD = 'import pypto.language as pl\nM = pl.dynamic("M")\nN = pl.dynamic("N")\n'
F32 = np.float32


def ramp(*shape, dtype=np.float32):
    """0, 1, 2, ... in a shape."""
    return np.arange(np.prod(shape)).reshape(shape).astype(dtype)


def kernels():
    """Kernels that most programs of these tests use: they work on tensors of 4 rows and 8 columns."""
    return """
    @pl.function(type=pl.FunctionType.InCore)
    def copy(self, src: pl.Tensor[[4, 8], pl.FP32], dst: pl.Out[pl.Tensor[[4, 8], pl.FP32]]
             ) -> pl.Tensor[[4, 8], pl.FP32]:
        return pl.store(pl.load(src, [0, 0], [4, 8]), [0, 0], dst)

    @pl.function(type=pl.FunctionType.InCore)
    def scale(self, src: pl.Tensor[[4, 8], pl.FP32], by: pl.Scalar[pl.FP32],
              dst: pl.Out[pl.Tensor[[4, 8], pl.FP32]]) -> pl.Tensor[[4, 8], pl.FP32]:
        return pl.store(pl.mul(pl.load(src, [0, 0], [4, 8]), by), [0, 0], dst)

    @pl.function(type=pl.FunctionType.InCore)
    def bump(self, acc: pl.InOut[pl.Tensor[[4, 8], pl.FP32]], by: pl.Scalar[pl.FP32]
             ) -> pl.Tensor[[4, 8], pl.FP32]:
        return pl.store(pl.add(pl.load(acc, [0, 0], [4, 8]), by), [0, 0], acc)

    @pl.function(type=pl.FunctionType.InCore)
    def bump_row(self, acc: pl.InOut[pl.Tensor[[4, 8], pl.FP32]], row: pl.Scalar[pl.INDEX], by: pl.Scalar[pl.FP32]
                 ) -> pl.Tensor[[4, 8], pl.FP32]:
        return pl.store(pl.add(pl.load(acc, [row, 0], [1, 8]), by), [row, 0], acc)
"""


def program(body, params="x: pl.Tensor[[4, 8], pl.FP32], y: pl.InOut[pl.Tensor[[4, 8], pl.FP32]]", more=""):
    """A program with the kernels above and an orchestration ``main`` of this body."""
    text = (
        f"{HEAD}@pl.program\nclass P:{kernels()}\n{textwrap.indent(textwrap.dedent(more), '    ')}\n"
        f"    @pl.function(type=pl.FunctionType.Orchestration)\n    def main(self, {params}):\n"
        f"{textwrap.indent(textwrap.dedent(body).strip(), '        ')}\n"
    )
    found = pl.parse(text, "case.py")
    assert isinstance(found, Program)
    return found


def kernel(body, params="x: pl.Tensor[[4, 8], pl.FP32], o: pl.InOut[pl.Tensor[[4, 8], pl.FP32]]"):
    """A program that is one kernel ``f`` of this body."""
    text = (
        f"{HEAD}@pl.program\nclass P:\n    @pl.function(type=pl.FunctionType.InCore)\n    def f(self, {params}):\n"
        f"{textwrap.indent(textwrap.dedent(body).strip(), '        ')}\n"
    )
    return pl.parse(text, "case.py")


def executable(found):
    """The program as the interpreter runs it, as it was written: these tests are of the interpreter, not of passes."""
    entry = entry_function(found)
    return Executable(found, entry, param_infos(entry), "the program")


def call(found, *args, **config):
    """Run; the arrays are written in place."""
    return executable(found).run(args, {}, RunConfig(**config) if config else None).result


def call_in_all_orders(found, make_args, seeds=8):
    """Run in submit order and in random orders; all must give the same arrays, which are returned."""
    reference = make_args()
    call(found, *reference)
    for seed in range(seeds):
        args = make_args()
        call(found, *args, schedule="random", seed=seed)
        for got, want in zip(args, reference, strict=True):
            np.testing.assert_array_equal(got, want, err_msg=f"seed {seed}")
    return reference


def edges(found, *args):
    """The recorded edges of a run: ``{consumer number: {producer number: reason}}``, and the names of the tasks."""
    outcome = executable(found).run(args, {}, record=True)
    tasks = outcome.interpreter.graph.tasks
    return (
        {t.number: {e.producer.number: e.reason for e in t.edges.values()} for t in tasks},
        [t.name for t in tasks],
    )
