"""AivSplitValid: what stands inside and outside the regions that both vector lanes share."""

import textwrap

import pytest
from verify_kit import HERE, expect, holds, main, nodes, swapped, with_main

import pypto.language as pl
from pypto import ir
from pypto.verify.properties import IRProperty

P = IRProperty.AivSplitValid
HEAD = """
import pypto.language as pl
@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def main(self, a: pl.Tensor[[16, 16], pl.FP32], b: pl.Tensor[[16, 16], pl.FP32],
             y: pl.Out[pl.Tensor[[16, 16], pl.FP32]]) -> pl.Tensor[[16, 16], pl.FP32]:
"""
CUBE = """
l = pl.move(pl.load(a, [0, 0], [16, 16], target_memory=pl.Mem.Mat), target_memory=pl.Mem.Left)
r = pl.move(pl.load(b, [0, 0], [16, 16], target_memory=pl.Mem.Mat), target_memory=pl.Mem.Right)
c = pl.matmul(l, r)
"""
REGION = "for v in pl.split_aiv(2, mode=pl.SplitMode.{mode}):\n"


def kernel(inside, before="", after="", mode="UP_DOWN"):
    """A kernel with one region, and what stands before and behind it."""
    body = (
        before.strip("\n")
        + "\n"
        + REGION.format(mode=mode)
        + textwrap.indent(inside, "    ")
        + "\n"
        + after
        + "\nreturn y"
    )
    return pl.parse(HEAD + textwrap.indent(body.strip("\n"), " " * 8) + "\n")


SHARED = "h = pl.aiv_shard(c)\ne = pl.exp(h)\ny = pl.store(e, [v * 8, 0], y)"


def test_a_good_kernel():
    holds(P, kernel(SHARED, CUBE))
    holds(P, kernel("t = pl.load(a, [v * 8, 0], [8, 16])\ny = pl.store(pl.exp(t), [v * 8, 0], y)"))


def test_cube_compute_inside():
    expect(P, kernel("d = pl.matmul(l, r)", CUBE), 1, says="'tile.matmul'")


@pytest.mark.parametrize(
    "mode, op, bad", [("UP_DOWN", "col_sum", True), ("UP_DOWN", "row_sum", False), ("LEFT_RIGHT", "col_sum", False),
                      ("LEFT_RIGHT", "row_sum", True), ("NONE", "col_sum", False)]
)  # fmt: skip
def test_reduction_over_the_split_axis(mode, op, bad):
    scratch = ", pl.create_tile([16, 16], dtype=pl.FP32, target_memory=pl.Mem.Vec)" if op == "row_sum" else ""
    node = kernel(f"t = pl.load(a, [0, 0], [16, 16])\ns = pl.tile.{op}(t{scratch})", mode=mode)
    expect(P, node, *([2] if bad else []))


def test_crossing_outside():
    node = kernel(SHARED, CUBE)
    [shard] = [c for c in nodes(main(node), ir.Call) if c.op.name == "tile.aiv_shard"]
    loose = ir.AssignStmt(ir.Var("loose", shard.type), shard, HERE)
    expect(P, with_main(node, body=ir.SeqStmts([*main(node).body.stmts[:-1], loose, main(node).body.stmts[-1]])), 3)


def test_crossing_between_wrong_memories():
    expect(P, kernel("t = pl.load(a, [0, 0], [16, 16])\nh = pl.aiv_shard(t)"), 4, says="Vec instead of Acc")


def test_vector_compute_outside():
    expect(P, kernel(SHARED, CUBE, "z = pl.load(a, [0, 0], [16, 16])\nw = pl.exp(z)"), 5, says="'tile.exp'")


def test_value_that_leaves_without_a_gather():
    inside = "h = pl.aiv_shard(c)\ne = pl.exp(h)\ng = pl.aic_gather(e)"
    node = kernel(inside, CUBE, "o = pl.move(g, target_memory=pl.Mem.Left)\nm = pl.matmul(o, r)")
    holds(P, node)
    gathered = next(c for c in nodes(main(node), ir.Call) if c.op.name == "tile.matmul" and c.args[0].name_hint == "o")
    half = next(s.var for s in nodes(main(node), ir.AssignStmt) if s.var.name_hint == "e")
    expect(
        P, swapped(node, gathered, gathered.replace(args=type(gathered.args)([half, gathered.args[1]]))), 6, says="'e'"
    )


def test_cube_value_that_enters_without_a_shard():
    node = kernel(SHARED, CUBE)
    exp = next(c for c in nodes(main(node), ir.Call) if c.op.name == "tile.exp")
    product = next(s.var for s in nodes(main(node), ir.AssignStmt) if s.var.name_hint == "c")
    expect(P, swapped(node, exp, exp.replace(args=type(exp.args)([product]))), 7, says="'c'")


def test_region_in_a_region_or_outside_kernels():
    node = kernel(SHARED, CUBE)
    [region] = nodes(main(node), ir.SplitAivScopeStmt)
    expect(P, swapped(node, region, region.replace(body=region.replace(span=HERE))), 8, says="inside another")
    expect(P, with_main(node, func_type=ir.FunctionType.Opaque), 8, says="outside a CORE_GROUP scope")


def test_mode_of_the_function():
    node = kernel(SHARED, CUBE)
    attrs = main(node).attrs
    expect(P, with_main(node, attrs=type(attrs)({"split": ir.SplitMode.LEFT_RIGHT.value})), 9, says="LEFT_RIGHT")
    holds(P, with_main(node, attrs=type(attrs)({"split": ir.SplitMode.UP_DOWN.value})))


def test_kernels_without_regions():
    holds(
        P,
        pl.parse(
            HEAD
            + "        t = pl.load(a, [0, 0], [16, 16])\n        y = pl.store(pl.exp(t), [0, 0], y)\n        return y\n"
        ),
    )
