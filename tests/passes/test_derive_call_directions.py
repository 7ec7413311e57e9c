"""DeriveCallDirections: spec 06, section 7."""

import textwrap

import numpy as np
import pytest
from outlining_kit import outline, run_all_orders, source
from spec_kit import noise, zeros

from pypto import ir
from pypto.ir.tree import walk
from pypto.passes.derive_call_directions import derive_call_directions
from pypto.verify.properties import IRProperty, property_set
from pypto.verify.registry import PropertyVerifierRegistry

KERNELS = """
@InCore
def part(self, x: f32[64, 16], i: idx, o: pl.Out[f32[64, 16]]) -> f32[64, 16]:
    t = pl.load(x, [i * 16, 0], [16, 16])
    o = pl.store(pl.add(t, 1.0), [i * 16, 0], o)
    return o
@InCore
def bump(self, x: f32[64, 16], o: pl.InOut[f32[64, 16]]) -> f32[64, 16]:
    t = pl.load(x, [0, 0], [64, 16])
    u = pl.load(o, [0, 0], [64, 16])
    o = pl.store(pl.add(t, u), [0, 0], o)
    return o
@InCore
def band(self, x: f32[16, 16], o: pl.Out[f32[16, 16]]) -> f32[16, 16]:
    o = pl.store(pl.load(x, [0, 0], [16, 16]), [0, 0], o)
    return o
"""
SHORT = {"Input": "in", "Output": "out", "InOut": "inout", "OutputExisting": "existing", "NoDep": "no", "Scalar": "s"}


def derived(text: str) -> ir.Program:
    """The program with directions: verified, and the same object the second time."""
    step = derive_call_directions()
    after = step(outline(source(KERNELS + textwrap.dedent(text))))
    assert step(after) is after
    PropertyVerifierRegistry.verify_or_throw(property_set(IRProperty.CallDirectionsResolved), after)
    return after


def launches(program: ir.Program, function: str = "main") -> list[str]:
    """Each launch with its directions in short, in the order of the source."""
    found = []
    for node in walk(program.get_function(function).body):
        if isinstance(node, (ir.Call, ir.Submit)) and isinstance(node.op, ir.GlobalVar):
            found.append(f"{node.op.name} " + " ".join(SHORT[d.name] for d in node.attrs["arg_directions"]))
    return found


def test_rows_of_the_table():
    after = derived(
        """
        @Orchestration
        def main(self, x: f32[64, 16], c: idx, y: pl.Out[f32[64, 16]], z: pl.InOut[f32[64, 16]]) -> tuple[f32[64, 16], f32[64, 16]]:
            y = self.part(x, 0, y)
            y = self.part(x, c, y)
            y = self.bump(x, y)
            z = self.part(x, 1, z)
            return y, z
        """
    )
    assert launches(after) == [
        "part in s existing",  # the first writer
        "part in s inout",  # behind it
        "bump in inout",  # the parameter says so
        "part in s inout",  # handed in as InOut: the caller may have writers
    ]


def test_loops():
    after = derived(
        """
        @Orchestration
        def main(self, x: f32[64, 16], n: idx, y: pl.Out[f32[64, 16]], z: pl.Out[f32[64, 16]], w: pl.Out[f32[64, 16]]) -> tuple[f32[64, 16], f32[64, 16], f32[64, 16]]:
            for i in pl.parallel(4):
                y = self.part(x, i, y)
            y = self.part(x, 0, y)
            for i in pl.range(4):
                z = self.part(x, i, z)
                for j in pl.parallel(2):
                    w = self.part(x, j, w)
            k = 0
            while k < n:
                k = k + 1
                z = self.part(x, k, z)
            return y, z, w
        """
    )
    assert launches(after) == [
        "part in s existing",
        "part in s inout",
        "part in s inout",  # the next iteration is behind this one
        "part in s inout",  # at any depth
        "part in s inout",
    ]


def test_branches_do_not_see_each_other():
    after = derived(
        """
        @Orchestration
        def main(self, x: f32[64, 16], c: idx, y: pl.Out[f32[64, 16]]) -> f32[64, 16]:
            t = pl.create_tensor([64, 16], dtype=pl.FP32)
            if c > 0:
                if c > 1:
                    t = self.part(x, 0, t)
                t = self.part(x, 1, t)
            else:
                t = self.part(x, 2, t)
                t = self.part(x, 3, t)
            t = self.part(x, 0, t)
            y = self.part(t, 0, y)
            return y
        """
    )
    assert launches(after) == [
        "part in s existing",
        "part in s inout",
        "part in s existing",
        "part in s inout",
        "part in s inout",
        "part in s existing",
    ]


def test_what_may_be_one_buffer_or_another():
    after = derived(
        """
        @Orchestration
        def main(self, x: f32[64, 16], c: idx, y: pl.Out[f32[64, 16]]) -> f32[64, 16]:
            a = pl.create_tensor([64, 16], dtype=pl.FP32)
            b = pl.create_tensor([64, 16], dtype=pl.FP32)
            if c > 0:
                t = a
            else:
                t = b
            t = self.part(x, 0, t)
            y = self.part(t, 0, y)
            return y
        """
    )
    assert launches(after) == ["part in s inout", "part in s existing"]


def test_slices_are_parts_of_their_buffer():
    after = derived(
        """
        @Orchestration
        def main(self, x: f32[16, 16], r: idx, y: pl.Out[f32[64, 16]], z: pl.Out[f32[64, 16]]) -> tuple[f32[64, 16], f32[64, 16]]:
            a = pl.slice(y, [16, 16], [0, 0])
            a = self.band(x, a)
            b = pl.slice(y, [16, 16], [16, 0])
            b = self.band(x, b)
            c = pl.slice(y, [16, 16], [8, 0])
            c = self.band(x, c)
            inner = pl.slice(b, [8, 16], [0, 0])
            whole = pl.slice(y, [32, 16], [32, 0])
            d = pl.slice(whole, [16, 16], [16, 0])
            d = self.band(x, d)
            e = pl.slice(z, [16, 16], [r, 0])
            e = self.band(x, e)
            f = pl.slice(z, [16, 16], [r + 16, 0])
            f = self.band(x, f)
            return y, z
        """
    )
    assert launches(after) == [
        "band in existing",
        "band in existing",  # another band
        "band in inout",  # overlaps both
        "band in existing",  # a slice of a slice, apart from all
        "band in existing",
        "band in inout",  # who knows where the other one is
    ]


def test_no_dep_wins_and_given_directions_stay():
    after = derived(
        """
        @Orchestration
        def main(self, x: f32[64, 16], y: pl.Out[f32[64, 16]]) -> f32[64, 16]:
            y = self.bump(pl.no_dep(x), y)
            y = self.bump(x, pl.no_dep(y))
            y = self.part(x, 0, y, attrs={"arg_directions": [pl.adir.no_dep, pl.adir.scalar, pl.adir.output_existing]})
            y = self.part(x, 1, y)
            return y
        """
    )
    assert launches(after) == ["bump no inout", "bump in no", "part no s existing", "part in s inout"]


def test_submits_with_outputs_that_the_runtime_allocates():
    after = derived(
        """
        @InCore
        def two(self, x: f32[64, 16], o: pl.Out[f32[64, 16]], p: pl.Out[f32[64, 16]]) -> tuple[f32[64, 16], f32[64, 16]]:
            t = pl.load(x, [0, 0], [64, 16])
            o = pl.store(t, [0, 0], o)
            p = pl.store(t, [0, 0], p)
            return o, p
        @Orchestration
        def main(self, x: f32[64, 16], y: pl.Out[f32[64, 16]]) -> f32[64, 16]:
            (y, fresh), tid = pl.submit(self.two, x, y)
            y2, tid2 = pl.submit(self.part, fresh, 0, y, deps=[tid])
            return y2
        """
    )
    assert launches(after) == ["two in existing", "part in s inout"]
    assert sum(isinstance(node, ir.Submit) for node in walk(after.get_function("main").body)) == 2


WRAPPERS = """
@pl.function(type=pl.FunctionType.Spmd)
def inner(self, x: f32[64, 16], o: f32[64, 16]) -> f32[64, 16]:
    r = self.bump(x, o)
    return r
@pl.function(type=pl.FunctionType.Group)
def outer(self, x: f32[64, 16], o: pl.Out[f32[64, 16]]) -> f32[64, 16]:
    r = self.inner(x, o)
    return r
@Orchestration
def main(self, x: f32[64, 16], y: pl.Out[f32[64, 16]]) -> f32[64, 16]:
    y = self.outer(x, y)
    return y
"""


def test_wrappers_promise_what_they_launch():
    after = derived(WRAPPERS)
    directions = {f.name: [d.name for d in f.param_directions] for f in after.functions.values()}
    assert directions["inner"] == directions["outer"] == ["In", "InOut"]
    assert launches(after, "inner") == ["bump in inout"] and launches(after, "outer") == ["inner in inout"]
    assert launches(after) == ["outer in inout"]


def test_wrappers_in_a_cycle():
    """Each raises the other; a declared Out is never lowered."""
    after = derived(
        """
        @pl.function(type=pl.FunctionType.Group)
        def ping(self, x: f32[64, 16], o: pl.Out[f32[64, 16]], p: f32[64, 16]) -> f32[64, 16]:
            r = self.pong(x, o, p)
            return r
        @pl.function(type=pl.FunctionType.Group)
        def pong(self, x: f32[64, 16], o: f32[64, 16], p: f32[64, 16]) -> f32[64, 16]:
            q = self.bump(x, p)
            r = self.ping(x, o, q)
            return r
        """
    )
    directions = {f.name: [d.name for d in f.param_directions] for f in after.functions.values()}
    assert directions["pong"] == ["In", "Out", "InOut"]
    assert directions["ping"] == ["In", "Out", "InOut"]


def test_a_callee_that_the_program_lacks_is_left_alone():
    program = outline(
        source(
            KERNELS
            + textwrap.dedent("""
            @Orchestration
            def main(self, x: f32[64, 16], y: pl.Out[f32[64, 16]]) -> f32[64, 16]:
                y = self.part(x, 0, y)
                return y
            """)
        )
    )
    without = program.with_functions([f for f in program.functions.values() if f.name != "part"])
    assert derive_call_directions()(without) is without


@pytest.mark.parametrize("kind", ["range", "parallel"])
def test_meaning(kind: str):
    """In random legal orders too: directions order what has to be."""
    text = f"""
        @Orchestration
        def main(self, x: f32[64, 16], y: pl.Out[f32[64, 16]], z: pl.Out[f32[64, 16]]) -> tuple[f32[64, 16], f32[64, 16]]:
            t = pl.create_tensor([64, 16], dtype=pl.FP32)
            for i in pl.{kind}(4):
                t = self.part(x, i, t)
            for i in pl.{kind}(4):
                y = self.part(t, i, y)
            z = self.bump(y, z)
            z = self.bump(t, z)
            return y, z
        """
    after = derived(text)

    def args():
        return {"x": noise(64, 16), "y": zeros(64, 16), "z": zeros(64, 16)}

    x = args()["x"]
    run_all_orders(after, args, {"y": x + 2, "z": (x + 2) + (x + 1)})
    assert np.abs(x).max() > 0


def test_a_host_function_may_be_handed_what_its_caller_has_written():
    """It runs as a part of the caller, so the order of writers must hold across the call, for Out parameters too."""
    text = """
        @Opaque
        def step(self, x: f32[64, 16], o: pl.Out[f32[64, 16]]) -> f32[64, 16]:
            o = self.part(x, 0, o)
            return o
        @Orchestration
        def main(self, x: f32[64, 16], w: f32[64, 16], y: pl.Out[f32[64, 16]]) -> f32[64, 16]:
            y = self.part(x, 0, y)
            y = self.step(w, y)
            return y
        """
    after = derived(text)
    assert launches(after, "step") == ["part in s inout"]

    def args():
        return {"x": noise(64, 16), "w": 3 * noise(64, 16), "y": zeros(64, 16)}

    want = zeros(64, 16)
    want[:16] = args()["w"][:16] + 1
    run_all_orders(after, args, {"y": want})
