"""OutlineHierarchyScopes: spec 04 sections 22 and 23."""

import pytest
from outlining_kit import apply, body_of, check_meaning, expect, outline, run_all_orders, signature_of, source
from spec_kit import noise, ramp, zeros

from pypto import ir
from pypto.ir.tree import definitions, walk
from pypto.passes.errors import PassError
from pypto.passes.outline_hierarchy_scopes import outline_hierarchy_scopes
from pypto.passes.outline_incore_scopes import outline_incore_scopes
from pypto.verify.properties import IRProperty, property_set
from pypto.verify.registry import PropertyVerifierRegistry


def hierarchy(text: str, **how) -> ir.Program:
    after = apply(outline_hierarchy_scopes, source(text, **how))
    promised = property_set(IRProperty.HierarchyOutlined, IRProperty.OrchestrationReferencesResolved)
    PropertyVerifierRegistry.verify_or_throw(promised, after)
    return after


def function(program: ir.Program, name: str = "f") -> ir.Function:
    found = program.get_function(name)
    assert found is not None, [g.name for g in program.functions]
    return found


STAGE = """
@Opaque
def stage(self, x: f32[8]) -> f32[8]:
    with pl.at(level=pl.Level.HOST, role=pl.Role.Orchestrator):
        y = pl.add(x, 4.0)
        with pl.at(level=pl.Level.CHIP):
            z = pl.mul(y, 0.5)
    with pl.at(level=pl.Level.CHIP_DIE, name_hint="tail"):
        q = pl.sub(z, 1.0)
    return q
"""


def test_nested_scopes():
    expect(
        hierarchy(STAGE),
        """
        @pl.function(level=pl.Level.CHIP)
        def stage_host_orch_0_chip_0(self, y: f32[8]) -> f32[8]:
            z = pl.tensor.muls(y, 0.5)
            return z
        @pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)
        def stage_host_orch_0(self, x: f32[8]) -> f32[8]:
            y = pl.tensor.adds(x, 4.0)
            z = self.stage_host_orch_0_chip_0(y)
            return z
        @pl.function(level=pl.Level.CHIP_DIE)
        def tail(self, z: f32[8]) -> f32[8]:
            q = pl.tensor.subs(z, 1.0)
            return q
        @Opaque
        def stage(self, x: f32[8]) -> f32[8]:
            z = self.stage_host_orch_0(x)
            q = self.tail(z)
            return q
        """,
    )
    check_meaning(STAGE, lambda: {"x": ramp(8)}, lambda x: {"return": (x + 4) / 2 - 1})


def test_two_results_are_a_tuple():
    text = """
    @Opaque
    def f(self, x: f32[8]) -> f32[8]:
        with pl.at(level=pl.Level.CHIP):
            a = pl.add(x, 1.0)
            b = pl.mul(a, 2.0)
        return pl.sub(b, a)
    """
    after = hierarchy(text, flatten=True)
    stmts = ir.flatten_to_stmts(function(after).body)
    assert stmts[0].var.name_hint == "ret__tmp_v0"
    assert [(s.value.tuple is stmts[0].var, s.value.index) for s in stmts[1:3]] == [(True, 0), (True, 1)]
    check_meaning(text, lambda: {"x": ramp(8)}, lambda x: {"return": x + 1})


@pytest.mark.parametrize(
    ("place", "suffix"),
    [
        ("level=pl.Level.HOST", "host"),
        ("level=pl.Level.HOST, role=pl.Role.Orchestrator", "host_orch"),
        ("level=pl.Level.CHIP, role=pl.Role.SubWorker", "chip_sub_worker"),
        ("level=pl.Level.CHIP_DIE", "chip_die"),
        ("level=pl.Level.AIV", "aiv"),
        ("level=pl.Level.AIC", "aic"),
        ("level=pl.Level.CLUSTER_1", "cluster1"),
        ("level=pl.Level.GLOBAL", "global"),
    ],
)
def test_names_of_unnamed_scopes(place: str, suffix: str):
    after = hierarchy(
        f"""
        @Opaque
        def f(self, x: f32[8]) -> f32[8]:
            with pl.at({place}):
                y = pl.add(x, 1.0)
            return y
        """
    )
    made = function(after, f"f_{suffix}_0")
    assert made.func_type is ir.FunctionType.Opaque


def test_the_number_counts_all_scopes_of_a_function_and_begins_again_inside():
    after = hierarchy(
        """
        @Opaque
        def f(self, x: f32[8]) -> f32[8]:
            with pl.at(level=pl.Level.CHIP, name_hint="a"):
                y = pl.add(x, 1.0)
            with pl.at(level=pl.Level.HOST, name_hint="a"):
                with pl.at(level=pl.Level.CHIP):
                    z = pl.add(y, 1.0)
                with pl.at(level=pl.Level.CHIP):
                    u = pl.add(z, 1.0)
            with pl.at(level=pl.Level.CHIP):
                v = pl.add(u, 1.0)
            return v
        """
    )
    assert [g.name for g in after.functions] == ["a", "a_0", "a_0_chip_0", "a_0_chip_1", "f", "f_chip_2"]


# --- written tensors --------------------------------------------------------------------------------------------------

STORED = """
@Opaque
def f(self, x: f32[8, 8], o: pl.Out[f32[8, 8]]) -> f32[8, 8]:
    with pl.at(level=pl.Level.CHIP):
        o = pl.assemble(o, pl.add(x, 1.0), [0, 0])
    return o
"""


def test_a_tensor_that_is_written_and_read_later_is_a_result():
    """04 section 23: the name behind the store was left free, and the parameter was In."""
    expect(
        hierarchy(STORED),
        """
        @pl.function(level=pl.Level.CHIP)
        def f_chip_0(self, o: pl.Out[f32[8, 8]], x: f32[8, 8]) -> f32[8, 8]:
            o1 = pl.assemble(o, pl.add(x, 1.0), [0, 0])
            return o
        @Opaque
        def f(self, x: f32[8, 8], o: pl.Out[f32[8, 8]]) -> f32[8, 8]:
            o1 = self.f_chip_0(o, x)
            return o1
        """,
    )
    check_meaning(STORED, lambda: {"x": ramp(8, 8), "o": zeros(8, 8)}, lambda x, o: {"o": x + 1})


def test_a_bare_store_that_nobody_reads_has_no_result():
    text = """
    @Opaque
    def f(self, x: f32[8, 8], n: idx, o: pl.InOut[f32[8, 8]]) -> idx:
        with pl.at(level=pl.Level.CHIP):
            with pl.at(level=pl.Level.CORE_GROUP):
                pl.store(pl.load(x, [2, 0], [1, 8]), [1, 0], o)
        return n
    """
    after = hierarchy(text)
    assert isinstance(ir.flatten_to_stmts(function(after).body)[0], ir.EvalStmt)
    assert dict(signature_of(after, "f_chip_0"))["o"] == "Out" and function(after, "f_chip_0").return_types == []

    def want(x, n, o):
        o[1] = x[2]
        return {"o": o, "return": n}

    check_meaning(text, lambda: {"x": ramp(8, 8), "n": 4, "o": zeros(8, 8)}, want)


@pytest.mark.parametrize("header", ["for i in pl.range(n):", "while i < n:"])
def test_a_bare_store_in_a_loop_is_handed_on_to_the_next_iteration(header: str):
    """Handing the old name to the second launch would be a read of it after the first one wrote it."""
    text = f"""
    @Opaque
    def f(self, x: f32[8, 8], n: idx, o: pl.InOut[f32[8, 8]]) -> idx:
        i = 0
        {header}
            with pl.at(level=pl.Level.CHIP):
                with pl.at(level=pl.Level.CORE_GROUP):
                    pl.store(pl.load(x, [i, 0], [1, 8]), [i, 0], o)
            {"i = i + 1" if header.startswith("while") else "pass"}
        return n
    """
    after = hierarchy(text)
    [loop] = [s for s in walk(function(after).body) if isinstance(s, (ir.ForStmt, ir.WhileStmt))]
    carry = loop.iter_args[-1]
    launch = ir.flatten_to_stmts(loop.body)[0]
    assert carry.name_hint.startswith("o__iter") and any(arg is carry for arg in launch.value.args)
    assert ir.flatten_to_stmts(loop.body)[-1].value[-1] is launch.var

    def want(x, n, o):
        o[:n] = x[:n]
        return {"o": o, "return": n}

    for n in (0, 3):
        check_meaning(text, lambda n=n: {"x": ramp(8, 8), "n": n, "o": zeros(8, 8)}, want)


def test_a_loop_in_the_scope_or_a_tensor_of_the_iteration_is_no_reason():
    text = """
    @Opaque
    def f(self, x: f32[8, 8], o: pl.InOut[f32[8, 8]]) -> f32[8, 8]:
        with pl.at(level=pl.Level.HOST):
            for i in pl.range(2):
                t = pl.create_tensor([8, 8], dtype=pl.FP32)
                with pl.at(level=pl.Level.CHIP):
                    with pl.at(level=pl.Level.CORE_GROUP):
                        pl.store(pl.load(x, [0, 0], [8, 8]), [0, 0], t)
        with pl.at(level=pl.Level.CHIP):
            with pl.at(level=pl.Level.CORE_GROUP):
                o = pl.store(pl.load(x, [0, 0], [8, 8]), [0, 0], o)
        return o
    """
    after = hierarchy(text)
    [loop] = [s for s in walk(function(after, "f_host_0").body) if isinstance(s, ir.ForStmt)]
    assert not loop.iter_args
    check_meaning(text, lambda: {"x": ramp(8, 8), "o": zeros(8, 8)}, lambda x, o: {"o": x})


def test_written_in_a_loop_and_read_behind_it():
    text = """
    @Opaque
    def f(self, x: f32[8, 8], o: pl.InOut[f32[8, 8]]) -> f32[8, 8]:
        for i in pl.range(3):
            with pl.at(level=pl.Level.CHIP):
                with pl.at(level=pl.Level.CORE_GROUP):
                    pl.store(pl.load(x, [i, 0], [1, 8]), [i, 0], o)
        return o
    """
    [loop] = [n for n in walk(function(hierarchy(text)).body) if isinstance(n, ir.ForStmt)]
    assert len(loop.iter_args) == 1

    def want(x, o):
        o[:3] = x[:3]
        return {"o": o}

    check_meaning(text, lambda: {"x": ramp(8, 8), "o": noise(8, 8)}, want)


def test_a_target_that_the_inner_scope_renames():
    """04 section 28 row 23: the outer body sees the inner's result, the outer call has the outer's argument."""
    text = """
    @Opaque
    def f(self, x: f32[8, 8], o: pl.InOut[f32[8, 8]]) -> f32[8, 8]:
        with pl.at(level=pl.Level.HOST):
            with pl.at(level=pl.Level.CHIP):
                with pl.at(level=pl.Level.CORE_GROUP):
                    pl.store(pl.load(x, [0, 0], [4, 8]), [0, 0], o)
            with pl.at(level=pl.Level.CHIP):
                with pl.at(level=pl.Level.CORE_GROUP):
                    pl.store(pl.add(pl.load(o, [0, 0], [4, 8]), 1.0), [4, 0], o)
        with pl.at(level=pl.Level.CHIP):
            with pl.at(level=pl.Level.CORE_GROUP):
                pl.store(pl.mul(pl.load(o, [0, 0], [8, 8]), 2.0), [0, 0], o)
        return o
    """
    after = hierarchy(text)
    host = function(after, "f_host_0")
    first, second, last = ir.flatten_to_stmts(host.body)
    assert second.value.args == [first.var]
    assert last.value == [second.var], "the parameter may not be read any more: it was handed to a launch"
    assert dict(signature_of(after, "f_host_0")) == {"x": "In", "o": "InOut"}
    outer = ir.flatten_to_stmts(function(after).body)
    assert outer[1].value.args == [outer[0].var] and outer[2].value == [outer[1].var]

    def want(x, o):
        o[:4], o[4:] = 2 * x[:4], 2 * (x[:4] + 1)
        return {"o": o}

    check_meaning(text, lambda: {"x": ramp(8, 8), "o": zeros(8, 8)}, want)


def test_a_name_that_the_outer_scope_gives_before_an_inner_one_writes():
    """Inside, ``o1`` is a variable of its own that the inner scope renames; behind the scope it is a name of ``o``."""
    text = """
    @Opaque
    def f(self, x: f32[8, 8], o: pl.InOut[f32[8, 8]]) -> f32[8, 8]:
        with pl.at(level=pl.Level.HOST):
            o1 = pl.assemble(o, x, [0, 0])
            with pl.at(level=pl.Level.CHIP):
                o2 = pl.assemble(o1, pl.add(o1, 1.0), [0, 0])
            o3 = pl.assemble(o2, pl.mul(o2, 2.0), [0, 0])
        with pl.at(level=pl.Level.CHIP):
            o4 = pl.assemble(o3, pl.add(o1, o3), [0, 0])
        return o4
    """
    after = hierarchy(text, ssa=False)
    host = ir.flatten_to_stmts(function(after, "f_host_0").body)
    assert host[1].value.args == [host[0].var] and host[2].value.args[0] is host[1].var
    assert len(function(after, "f_chip_1").params) == 1, "both names are the tensor as it is then"
    check_meaning(text, lambda: {"x": ramp(8, 8), "o": zeros(8, 8)}, lambda x, o: {"o": 4 * (x + 1)}, ssa=False)


def test_what_only_the_outer_scope_reads_stays_in_it():
    text = """
    @Opaque
    def f(self, x: f32[8]) -> f32[8]:
        with pl.at(level=pl.Level.HOST):
            with pl.at(level=pl.Level.CHIP):
                a = pl.add(x, 1.0)
                b = pl.add(x, 2.0)
            c = pl.mul(a, b)
        return pl.add(c, a)
    """
    after = hierarchy(text, flatten=True)
    assert len(function(after, "f_host_0_chip_0").return_types) == 2
    assert len(function(after, "f_host_0").return_types) == 2
    check_meaning(text, lambda: {"x": ramp(8)}, lambda x: {"return": (x + 1) * (x + 2) + x + 1})


def test_another_name_in_each_of_three_scopes():
    text = """
    @Opaque
    def f(self, x: f32[8], o: pl.InOut[f32[8]]) -> f32[8]:
        with pl.at(level=pl.Level.HOST):
            o[:] = pl.add(x, 1.0)
            with pl.at(level=pl.Level.CHIP):
                o = o
                with pl.at(level=pl.Level.CHIP_DIE):
                    o[:] = pl.add(x, 2.0)
        return o
    """
    after = hierarchy(text)
    assert len(function(after, "f_host_0_chip_0_chip_die_0").return_types) == 1
    check_meaning(text, lambda: {"x": ramp(8), "o": zeros(8)}, lambda x, o: {"o": x + 2})


def test_a_tensor_of_the_outer_scope_that_the_inner_one_writes():
    text = """
    @Opaque
    def f(self, x: f32[8]) -> f32[8]:
        with pl.at(level=pl.Level.HOST):
            y = pl.create_tensor([8], dtype=pl.FP32)
            with pl.at(level=pl.Level.CHIP):
                y = pl.assemble(y, x, [0])
        return y
    """
    hierarchy(text)
    check_meaning(text, lambda: {"x": ramp(8)}, lambda x: {"return": x})


def test_nothing_follows():
    after = hierarchy(
        """
        @Opaque
        def f(self, x: f32[8], o: pl.Out[f32[8]]):
            with pl.at(level=pl.Level.HOST):
                y = pl.add(x, 1.0)
                with pl.at(level=pl.Level.CHIP):
                    z = pl.add(y, 1.0)
                    o1 = pl.assemble(o, z, [0])
        """
    )
    assert len(function(after, "f_host_0").return_types) == 1, "what the inner scope keeps is not at hand"
    assert function(after, "f_host_0_chip_0").return_types == []


def test_nothing_follows_a_launch_that_writes_a_local_tensor():
    """The local tensor is a stale name behind the launch: its result stands for it."""
    after = hierarchy(
        """
        @InCore
        def fill(self, y: pl.Out[f32[8, 8]]) -> f32[8, 8]:
            y1 = pl.store(pl.tile.full([8, 8], dtype=pl.FP32, value=1.0), [0, 0], y)
            return y
        @Opaque
        def f(self, x: f32[8, 8]):
            with pl.at(level=pl.Level.CHIP):
                a = pl.create_tensor([8, 8], dtype=pl.FP32)
                b, t = pl.submit(self.fill, a)
        """
    )
    made = function(after, "f_chip_0")
    [returned] = [s for s in walk(made.body) if isinstance(s, ir.ReturnStmt)]
    assert [v.name_hint.partition("__")[0] for v in returned.value] == ["b"]


def test_tasks_of_other_levels():
    after = hierarchy(
        """
        @Opaque
        def f(self, x: f32[8, 8], o: pl.Out[f32[8, 8]]) -> f32[8, 8]:
            with pl.at(level=pl.Level.CHIP) as t:
                o = pl.assemble(o, pl.add(x, 1.0), [0, 0])
            with pl.at(level=pl.Level.CHIP, deps=[t]):
                o = pl.assemble(o, pl.add(o, 1.0), [0, 0])
            return o
        """
    )
    submits = [n for n in walk(function(after).body) if isinstance(n, ir.Submit)]
    assert len(submits) == 2 and len(submits[1].deps) == 1
    assert "task_invalid" not in body_of(after, "f")


def test_a_task_id_inside_a_scope_is_no_argument():
    text = """
    @Opaque
    def f(self, x: f32[8, 8], o: pl.InOut[f32[8, 8]]) -> f32[8, 8]:
        with pl.at(level=pl.Level.CHIP):
            with pl.at(level=pl.Level.CORE_GROUP) as t:
                o = pl.assemble(o, pl.add(x, 1.0), [0, 0])
            with pl.at(level=pl.Level.CORE_GROUP, deps=[t]):
                o = pl.assemble(o, pl.add(o, 1.0), [0, 0])
        return o
    """
    assert [name for name, _ in signature_of(hierarchy(text), "f_chip_0")] == ["o", "x"]
    check_meaning(text, lambda: {"x": ramp(8, 8), "o": zeros(8, 8)}, lambda x, o: {"o": x + 2})


# --- with kernel scopes inside ----------------------------------------------------------------------------------------


def test_a_kernel_scope_in_a_chip_scope_makes_an_orchestration_of_it():
    text = """
    @Opaque
    def f(self, x: f32[8, 8], o: pl.Out[f32[8, 8]]) -> f32[8, 8]:
        with pl.at(level=pl.Level.CHIP, role=pl.Role.Orchestrator):
            with pl.at(level=pl.Level.CORE_GROUP):
                o = pl.assemble(o, pl.add(x, 1.0), [0, 0])
        return o
    """
    after = outline(source(text))
    assert function(after, "f_chip_orch_0").func_type is ir.FunctionType.Orchestration
    assert function(after).func_type is ir.FunctionType.Opaque, "the function around has no kernel scope of its own"
    run_all_orders(after, lambda: {"x": ramp(8, 8), "o": zeros(8, 8)}, {"o": ramp(8, 8) + 1})


def test_a_kernel_scope_directly_in_a_host_scope():
    program = hierarchy(
        """
        @Opaque
        def f(self, x: f32[8, 8], o: pl.Out[f32[8, 8]]) -> f32[8, 8]:
            with pl.at(level=pl.Level.HOST):
                with pl.at(level=pl.Level.CORE_GROUP):
                    o = pl.assemble(o, pl.add(x, 1.0), [0, 0])
            return o
        """
    )
    with pytest.raises(PassError, match="a kernel scope needs an enclosing CHIP level") as info:
        outline_incore_scopes()(program)
    assert info.value.code == "PT1072"


def test_orchestrations_are_not_looked_at():
    program = source(
        """
        @Orchestration
        def f(self, x: f32[8]) -> f32[8]:
            with pl.at(level=pl.Level.HOST):
                y = pl.add(x, 1.0)
            return y
        """
    )
    assert outline_hierarchy_scopes()(program) is program


@pytest.mark.parametrize("n", [0, 2])
def test_a_branch_in_the_scope_that_begins_the_function(n: int):
    text = """
    @Opaque
    def f(self, n: idx, x: f32[8, 8], p: pl.InOut[f32[8, 8]]) -> f32[8, 8]:
        with pl.at(level=pl.Level.CHIP):
            if n > 1:
                with pl.at(level=pl.Level.CORE_GROUP):
                    p = pl.store(pl.load(x, [2, 0], [1, 8]), [2, 0], p)
        with pl.at(level=pl.Level.CHIP):
            with pl.at(level=pl.Level.CORE_GROUP):
                p = pl.store(pl.add(pl.load(p, [2, 0], [1, 8]), 1.0), [5, 0], p)
        return p
    """

    def want(n, x, p):
        p[2] = x[2] if n > 1 else p[2]
        p[5] = p[2] + 1
        return {"p": p}

    check_meaning(text, lambda: {"n": n, "x": ramp(8, 8), "p": zeros(8, 8)}, want)


@pytest.mark.parametrize("n", [0, 3])
def test_bare_stores_at_several_levels(n: int):
    """What is handed to a launch is read under its new name: in the next iteration, and by the return around it."""
    text = """
    @Opaque
    def f(self, n: idx, x: f32[8, 8], o: pl.InOut[f32[8, 8]], p: pl.InOut[f32[8, 8]]) -> f32[8, 8]:
        for i in pl.range(n):
            with pl.at(level=pl.Level.HOST):
                if i > 1:
                    with pl.at(level=pl.Level.CHIP):
                        with pl.at(level=pl.Level.CORE_GROUP):
                            o = pl.store(pl.add(pl.load(o, [3, 0], [1, 8]), 1.0), [2, 0], o)
                with pl.at(level=pl.Level.CHIP):
                    with pl.at(level=pl.Level.CORE_GROUP):
                        pl.store(pl.load(x, [i, 0], [1, 8]), [i, 0], p)
                    with pl.at(level=pl.Level.CORE_GROUP):
                        o = pl.store(pl.add(pl.load(o, [2, 0], [1, 8]), pl.load(p, [i, 0], [1, 8])), [3, 0], o)
        return o
    """

    def want(n, x, o, p):
        for i in range(n):
            if i > 1:
                o[2] = o[3] + 1
            p[i] = x[i]
            o[3] = o[2] + p[i]
        return {"o": o, "p": p}

    check_meaning(text, lambda: {"n": n, "x": ramp(8, 8), "o": zeros(8, 8), "p": zeros(8, 8)}, want)


@pytest.mark.parametrize("n", [0, 2])
def test_a_loop_of_launches_is_the_last_that_an_outer_scope_writes(n: int):
    """The outer function returns what the loop gives, not the name that went into it."""
    text = """
    @Opaque
    def f(self, n: idx, x: f32[8, 8], p: pl.InOut[f32[8, 8]]) -> f32[8, 8]:
        with pl.at(level=pl.Level.HOST):
            with pl.at(level=pl.Level.CHIP):
                with pl.at(level=pl.Level.CORE_GROUP):
                    p = pl.store(pl.load(x, [0, 0], [1, 8]), [0, 0], p)
            for i in pl.range(n):
                with pl.at(level=pl.Level.CHIP):
                    with pl.at(level=pl.Level.CORE_GROUP):
                        p = pl.store(pl.add(pl.load(p, [i, 0], [1, 8]), 1.0), [i + 1, 0], p)
        return p
    """
    after = hierarchy(text)
    host = function(after, "f_host_0")
    [loop] = [s for s in walk(host.body) if isinstance(s, ir.ForStmt)]
    assert ir.flatten_to_stmts(host.body)[-1].value == list(loop.return_vars)

    def want(n, x, p):
        for i in range(n + 1):
            p[i] = x[0] + i
        return {"p": p}

    check_meaning(text, lambda: {"n": n, "x": ramp(8, 8), "p": zeros(8, 8)}, want)


def test_each_function_has_variables_of_its_own():
    """Where the inner launch has a name of its own for what it gives, the outer one has that of the user."""
    text = """
    @Opaque
    def f(self, n: idx, x: f32[8, 8], o: pl.InOut[f32[8, 8]]) -> f32[8, 8]:
        with pl.at(level=pl.Level.HOST):
            for i in pl.range(n):
                with pl.at(level=pl.Level.CHIP):
                    with pl.at(level=pl.Level.CORE_GROUP):
                        o = pl.store(pl.load(x, [2, 0], [1, 8]), [2, 0], o)
            with pl.at(level=pl.Level.CHIP):
                with pl.at(level=pl.Level.CORE_GROUP):
                    o = pl.store(pl.mul(pl.load(o, [2, 0], [1, 8]), 2.0), [3, 0], o)
        return o
    """
    after = hierarchy(text)
    defined = [v for g in after.functions.values() for v in (*g.params, *definitions(g))]
    places = [{id(v) for v in (*g.params, *definitions(g))} for g in after.functions.values()]
    assert len({id(v) for v in defined}) == sum(len(place) for place in places)

    def want(n, x, o):
        o[2] = x[2] if n else o[2]
        o[3] = 2 * o[2]
        return {"o": o}

    check_meaning(text, lambda: {"n": 2, "x": ramp(8, 8), "o": zeros(8, 8)}, want)


# --- arrays -----------------------------------------------------------------------------------------------------------


def test_an_array_is_neither_argument_nor_result_of_a_scope():
    """It would break ArrayNotEscaped behind the pass; the error is the user's, at the scope, whoever defines the array."""
    captured = """
        @Opaque
        def f(self, x: f32[8]) -> f32[8]:
            counts = pl.array.create(2, pl.INT32)
            counts[0] = 3
            with pl.at(level=pl.Level.CHIP):
                y = pl.mul(x, pl.cast(counts[0], pl.FP32))
            return y
        """
    with pytest.raises(
        PassError, match="array 'counts' can't leave the function that makes it, and .* reads it"
    ) as info:
        hierarchy(captured)
    assert info.value.code == "PT1079"
    assert info.value.span.begin_line == 12 and info.value.hint.startswith("Make and use the array on the same side")
    made = """
        @Opaque
        def f(self, x: f32[8]) -> f32[8]:
            with pl.at(level=pl.Level.CHIP):
                counts = pl.array.create(2, pl.INT32)
                counts[0] = 3
                y = pl.mul(x, 2.0)
            z = pl.mul(y, pl.cast(counts[0], pl.FP32))
            return z
        """
    with pytest.raises(PassError, match="array 'counts' can't leave the function that makes it, and .* makes it"):
        hierarchy(made)


def test_an_array_on_one_side_of_a_scope_stays():
    after = hierarchy(
        """
        @Opaque
        def f(self, x: f32[8]) -> f32[8]:
            before = pl.array.create(2, pl.INT32)
            before[0] = 3
            with pl.at(level=pl.Level.CHIP):
                inside = pl.array.create(2, pl.INT32)
                inside[1] = 2
                y = pl.mul(x, pl.cast(inside[1], pl.FP32))
            z = pl.mul(y, pl.cast(before[0], pl.FP32))
            return z
        """
    )
    assert "array.create" in body_of(after, "f_chip_0") and "array.create" in body_of(after, "f")
