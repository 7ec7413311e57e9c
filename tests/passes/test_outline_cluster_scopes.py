"""OutlineClusterScopes: spec 04 sections 22 and 25."""

import textwrap

import numpy as np
import pytest
from outlining_kit import apply, check_meaning, expect, outline, run_all_orders, signature_of, source
from spec_kit import noise, ramp, zeros

from pypto import ir
from pypto.ir.tree import walk
from pypto.passes.errors import PassError
from pypto.passes.outline_cluster_scopes import outline_cluster_scopes
from pypto.passes.outline_incore_scopes import outline_incore_scopes
from pypto.verify.properties import IRProperty, property_set
from pypto.verify.registry import PropertyVerifierRegistry

HALVE = """
@InCore
def halve(self, x: f32[8, 8], o: pl.Out[f32[8, 8]]) -> f32[8, 8]:
    b = pl.tile.get_block_idx()
    o1 = pl.store(pl.mul(pl.load(x, [b, 0], [1, 8]), 0.5), [b, 0], o)
    return o
@InCore
def twice(self, y: pl.InOut[f32[8, 8]]) -> f32[8, 8]:
    y1 = pl.store(pl.mul(pl.load(y, [0, 0], [8, 8]), 2.0), [0, 0], y)
    return y
"""


def cluster(text: str, **how) -> ir.Program:
    program = apply(outline_incore_scopes, source(HALVE + textwrap.dedent(text), **how))
    after = apply(outline_cluster_scopes, program)
    PropertyVerifierRegistry.verify_or_throw(property_set(IRProperty.ClusterOutlined), after)
    return after


def function(program: ir.Program, name: str = "f") -> ir.Function:
    found = program.get_function(name)
    assert found is not None, [g.name for g in program.functions]
    return found


def launches(program: ir.Program, name: str = "f") -> list:
    return [
        node
        for node in walk(function(program, name).body)
        if isinstance(node, (ir.Call, ir.Submit)) and isinstance(node.op, ir.GlobalVar)
    ]


ROWS = """
@Opaque
def f(self, x: f32[48, 64], o: pl.InOut[f32[48, 64]]) -> f32[48, 64]:
    for b in pl.spmd(6, name_hint="row"):
        t = pl.load(x, [b * 8, 0], [8, 64])
        o = pl.store(t, [b * 8, 0], o)
    return o
"""


def test_blocks_as_a_loop():
    after = outline(source(ROWS))
    expect(
        after,
        """
        @InCore
        def row(self, x: f32[48, 64], o: pl.Out[f32[48, 64]]) -> f32[48, 64]:
            b = pl.tile.get_block_idx()
            t = pl.load(x, [b * 8, 0], [8, 64])
            o1 = pl.store(t, [b * 8, 0], o)
            o2 = o1
            return o
        @Spmd
        def row_spmd(self, x: f32[48, 64], o: pl.Out[f32[48, 64]]) -> f32[48, 64]:
            o1 = self.row(x, o)
            return o
        @Orchestration
        def f(self, x: f32[48, 64], o: pl.InOut[f32[48, 64]]) -> f32[48, 64]:
            o1 = self.row_spmd(x, o, attrs={"core_num": 6})
            return o1
        """,
    )
    check_meaning(ROWS, lambda: {"x": ramp(48, 64), "o": zeros(48, 64)}, lambda x, o: {"o": x})


def test_a_cluster_with_blocks():
    text = """
    @Opaque
    def f(self, n: idx, x: f32[8, 8], o: pl.InOut[f32[8, 8]]) -> f32[8, 8]:
        with pl.cluster(name_hint="pair"):
            with pl.spmd(n):
                o1 = self.halve(x, o)
        return o1
    """
    after = cluster(text)
    expect(
        after,
        HALVE
        + """
@Group
def pair(self, n: idx, x: f32[8, 8], o: pl.Out[f32[8, 8]]) -> f32[8, 8]:
    pl.func_attr({"spmd_unwrapped": True})
    o1 = self.halve(x, o)
    return o
@Opaque
def f(self, n: idx, x: f32[8, 8], o: pl.InOut[f32[8, 8]]) -> f32[8, 8]:
    o1 = self.pair(n, x, o, attrs={"core_num": n})
    return o1
""",
    )

    def want(n, x, o):
        o[:n] = x[:n] / 2
        return {"o": o}

    check_meaning(HALVE + textwrap.dedent(text), lambda: {"n": 3, "x": ramp(8, 8), "o": noise(8, 8)}, want)


def test_names():
    after = cluster(
        """
        @Opaque
        def f(self, x: f32[8, 8], o: pl.InOut[f32[8, 8]]) -> f32[8, 8]:
            with pl.cluster():
                o1 = self.halve(x, o)
            with pl.spmd(4, name_hint="named"):
                o2 = self.halve(x, o1)
            with pl.spmd(4):
                o3 = self.halve(x, o2)
            return o3
        """
    )
    kinds = {f.name: f.func_type.name for f in after.functions.values()}
    assert kinds == {
        "f": "Opaque",
        "f_cluster_0": "Group",
        "f_spmd_2": "Spmd",
        "halve": "InCore",
        "named": "Spmd",
        "twice": "InCore",
    }


@pytest.mark.parametrize("sync", [False, True])
@pytest.mark.parametrize("task", ["", " as tid"])
def test_the_width_stands_at_the_launch(sync: bool, task: str):
    """04 section 28 rows 9 and 31."""
    text = f"""
    @Opaque
    def f(self, x: f32[80, 32], o: pl.InOut[f32[80, 32]]) -> f32[80, 32]:
        for g in pl.parallel(3):
            wide = g * 4 + 2
            with pl.spmd(wide, sync_start={sync}){task}:
                with pl.at(level=pl.Level.CORE_GROUP):
                    b = pl.tile.get_block_idx()
                    t = pl.load(x, [b * 8, 0], [8, 32])
                    o = pl.store(t, [b * 8, 0], o)
        return o
    """
    after = outline(source(text))
    assert [name for name, _ in signature_of(after, "f_spmd_0")] == ["x", "o"]
    assert not function(after, "f_spmd_0").attrs
    [call] = launches(after)
    wide = ir.flatten_to_stmts(next(n for n in walk(function(after).body) if isinstance(n, ir.ForStmt)).body)[0].var
    if task:
        assert isinstance(call, ir.Submit) and call.core_num is wide and call.sync_start is sync
        assert "core_num" not in call.attrs
    else:
        assert isinstance(call, ir.Call) and call.attrs["core_num"] is wide
        assert call.attrs.get("sync_start") == (True if sync else None)
    check_meaning(text, lambda: {"x": ramp(80, 32), "o": zeros(80, 32)}, lambda x, o: {"o": x})


def test_blocks_as_a_task_with_dependencies_and_a_predicate():
    text = """
    @Orchestration
    def f(self, flags: i32[4], x: f32[8, 8], o: pl.InOut[f32[8, 8]]) -> f32[8, 8]:
        with pl.spmd(8) as t0:
            o = self.halve(x, o)
        with pl.spmd(8, deps=[t0], predicate=(flags[1] > 2)) as t1:
            o = self.halve(o, o)
        with pl.at(level=pl.Level.CORE_GROUP, deps=[t1]):
            o = pl.store(pl.add(pl.load(o, [0, 0], [8, 8]), 1.0), [0, 0], o)
        return o
    """
    after = cluster(text)
    first, second, _ = launches(after)
    assert isinstance(second, ir.Submit) and second.predicate is not None and len(second.deps) == 1
    for flag in (0, 3):
        run_all_orders(
            after,
            lambda flag=flag: {"flags": np.array([0, flag, 0, 0], np.int32), "x": ramp(8, 8), "o": zeros(8, 8)},
            {"o": ramp(8, 8) / (4 if flag else 2) + 1},
        )


@pytest.mark.parametrize(
    ("body", "direction"),
    [
        ("y = self.halve(x, o)", "Out"),
        ("y = self.twice(o)", "InOut"),
        ("y0 = self.halve(x, o)\ny = self.twice(y0)", "InOut"),
        ("y, t = pl.submit(self.halve, x, o)", "Out"),
        ("y, t = pl.submit(self.twice, o)", "InOut"),
        ("y = self.halve(o, x)", "In"),
    ],
)
def test_directions_come_from_the_callees_calls_and_submits_alike(body: str, direction: str):
    lines = "\n        ".join(body.splitlines())
    after = cluster(
        f"""
@Opaque
def f(self, x: pl.InOut[f32[8, 8]], o: pl.InOut[f32[8, 8]]) -> f32[8, 8]:
    with pl.cluster(name_hint="g"):
        {lines}
    return y
"""
    )
    assert dict(signature_of(after, "g"))["o"] == direction


def test_a_group_that_submits():
    text = """
    @Opaque
    def f(self, x: f32[8, 8], o: pl.InOut[f32[8, 8]]) -> f32[8, 8]:
        with pl.cluster():
            y, t = pl.submit(self.twice, o)
        return y
    """
    after = cluster(text)
    group = function(after, "f_cluster_0")
    assert ir.flatten_to_stmts(group.body)[-1].value[0] is group.params[0]


def test_no_dep_of_the_kernel_scope_counts_at_the_launch():
    """The call inside is no task: the user's claim has to reach the launch."""
    text = """
    @Opaque
    def f(self, x: f32[8, 8], o: pl.InOut[f32[8, 8]]) -> f32[8, 8]:
        with pl.spmd(8):
            with pl.at(level=pl.Level.CORE_GROUP, no_dep_args=[o]):
                b = pl.tile.get_block_idx()
                t = pl.load(x, [b, 0], [1, 8])
                o = pl.store(t, [b, 0], o)
        return o
    """
    [call] = launches(outline(source(text)))
    assert call.attrs["arg_direction_overrides"] == [1]
    check_meaning(text, lambda: {"x": ramp(8, 8), "o": zeros(8, 8)}, lambda x, o: {"o": x})


def test_blocks_that_write_in_a_loop_and_in_a_branch():
    text = """
    @Opaque
    def f(self, n: idx, x: f32[8, 8], o: pl.InOut[f32[8, 8]]) -> f32[8, 8]:
        for i in pl.range(3):
            if i < n:
                for b in pl.spmd(4):
                    t = pl.load(x, [b, 0], [1, 8])
                    pl.store(pl.add(t, pl.load(o, [b, 0], [1, 8])), [b, 0], o)
        return o
    """

    def want(n, x, o):
        o[:4] += n * x[:4]
        return {"o": o}

    for n in (0, 2):
        check_meaning(text, lambda n=n: {"n": n, "x": ramp(8, 8), "o": noise(8, 8)}, want)


def test_the_parent_stays_what_it_is():
    after = cluster(
        """
@Opaque
def f(self, x: f32[8, 8], o: pl.InOut[f32[8, 8]]) -> f32[8, 8]:
    with pl.spmd(4):
        o1 = self.halve(x, o)
    return o1
"""
    )
    assert function(after).func_type is ir.FunctionType.Opaque


# --- refusals ---------------------------------------------------------------------------------------------------------


def refused(text: str, phrase: str) -> PassError:
    program = apply(outline_incore_scopes, source(HALVE + textwrap.dedent(text)))
    with pytest.raises(PassError, match=phrase) as info:
        outline_cluster_scopes()(program)
    error = info.value
    assert error.span is not None and error.hint and error.code != "PT1000" and error.labels
    return error


def test_two_widths_in_a_cluster():
    error = refused(
        """
@Opaque
def f(self, x: f32[8, 8], o: pl.InOut[f32[8, 8]]) -> f32[8, 8]:
    with pl.cluster():
        with pl.spmd(4):
            o1 = self.halve(x, o)
        with pl.spmd(2):
            o2 = self.halve(x, o1)
    return o2
""",
        r"Only one pl.spmd\(\) block is allowed",
    )
    assert error.span is not None and error.labels[0][0].begin_line < error.span.begin_line


def test_a_width_that_the_cluster_computes():
    refused(
        """
@Opaque
def f(self, n: idx, x: f32[8, 8], o: pl.InOut[f32[8, 8]]) -> f32[8, 8]:
    with pl.cluster():
        w = n + 1
        with pl.spmd(w):
            o1 = self.halve(x, o)
    return o1
""",
        r"pl.spmd\(\) block count references 'w' which is defined inside the enclosing pl.cluster\(\)",
    )


def test_a_launch_in_a_launch():
    refused(
        """
@Opaque
def f(self, x: f32[8, 8], o: pl.InOut[f32[8, 8]]) -> f32[8, 8]:
    with pl.cluster():
        with pl.cluster():
            o1 = self.halve(x, o)
    return o1
""",
        "one launch can't hold another",
    )
