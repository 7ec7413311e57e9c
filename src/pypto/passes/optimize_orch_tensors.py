"""OptimizeOrchTensors: fewer buffers between orchestration and kernels, and kernels that know the real strides.

*Before*::

    def step(self, v: pl.Tensor[[32, 32], pl.FP32], o: pl.Out[pl.Tensor[[32, 32], pl.FP32]]):
        t = pl.load(v, [0, 0], [32, 32])
        u = pl.add(t, 1.0)
        r = pl.store(u, [0, 0], o)
        return r

    for i, (cur,) in pl.range(8, init_values=(x0,)):
        nxt = pl.create_tensor([32, 32], dtype=pl.FP32)
        res = self.step(cur, nxt)
        fin = pl.yield_(res)
    s = pl.slice(big, [16, 64], [16, 0])  # big: [128, 256]
    y = self.k(s, y)  # s: pl.Tensor[[16, 64], pl.FP32]

*After*::

    def step(self, v: pl.InOut[pl.Tensor[[32, 32], pl.FP32]]):
        t = pl.load(v, [0, 0], [32, 32])
        u = pl.add(t, 1.0)
        r = pl.store(u, [0, 0], v)
        return r

    for i, (cur,) in pl.range(8, init_values=(x0,)):
        res = self.step(cur)
        fin = pl.yield_(res)
    s = pl.slice(big, [16, 64], [16, 0])
    y = self.k(s, y)  # s: pl.Tensor[[16, 64], pl.FP32, pl.TensorView(stride=[256, 1], layout=pl.TensorLayout.ND)]

Five rewrites, each on the result of the one before (a file each in ``orch_tensors``):

1. ``in_place``: an output of a kernel is written into an input that nobody needs any more;
2. ``strides``: a parameter has the strides of the tensor that the kernel's output is assembled into,
3. (``assemble_loops``, before the strides:) a loop in a kernel that puts a tile together stores the pieces instead;
4. ``strides``: or those of the tensor that its argument is a slice of;
5. ``windows``: kernels that ask for it (``windowize=True``) are handed the window of a tensor that they touch. Windows
   are slices, so the strides are looked at once more.

InCore kernels are rewritten, and their callers, Orchestration and Opaque functions. A kernel is one for all its calls,
so the first four rewrites need all of them; the fifth makes another kernel for the calls that it fits. What can't be
proven is left alone; nothing is refused.

Needs and gives SplitIncoreOrch, IncoreTileOps. Cost: linear, for each round of the first rewrite; one pair of
parameters rarely has to wait for another.
"""

from __future__ import annotations

from ..ir.program import Program
from ..verify.properties import IRProperty
from .base import Pass
from .orch_tensors.assemble_loops import store_pieces
from .orch_tensors.in_place import write_in_place
from .orch_tensors.strides import with_real_strides
from .orch_tensors.windows import externalise_windows


class OptimizeOrchTensors(Pass):
    """See the module."""

    name = "OptimizeOrchTensors"
    required = (IRProperty.SplitIncoreOrch, IRProperty.IncoreTileOps)
    produced = (IRProperty.SplitIncoreOrch, IRProperty.IncoreTileOps)

    def run(self, program: Program) -> Program:
        program = with_real_strides(store_pieces(write_in_place(program)))
        windowed = externalise_windows(program)
        # Windows are slices, too.
        return with_real_strides(windowed) if windowed is not program else program


def optimize_orch_tensors() -> Pass:
    """The pass that removes needless buffers and gives kernels the strides of what they are handed."""
    return OptimizeOrchTensors()


__all__ = ["OptimizeOrchTensors", "optimize_orch_tensors"]
