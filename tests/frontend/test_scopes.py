"""``with`` scopes: forms, keywords, attribute order, nesting (section 11 of the language description)."""

from __future__ import annotations

import warnings

import pytest

import pypto.language as pl
from pypto import ir
from pypto.diag.parser_errors import ParserError, ParserSyntaxError, ParserTypeError, UnsupportedFeatureError

from .dsl import HEAD, check_error, expect, kernel, parse, program, round_trip

F, S, T = UnsupportedFeatureError, ParserSyntaxError, ParserTypeError
CORE = "level=pl.Level.CORE_GROUP"


def main(body: str, options: str = "") -> ir.Function:
    node = parse(program(f"{body}\nreturn", options))
    round_trip(node)
    return node["main"]


def scope(body: str, options: str = "", index: int = 0) -> ir.ScopeStmt:
    found = main(body, options).body[index]
    assert isinstance(found, ir.ScopeStmt)
    return found


# --- pl.at ------------------------------------------------------------------------------------------------------------


def test_an_empty_core_group_scope() -> None:
    found = scope(f"with pl.at({CORE}):\n    pass")
    assert type(found) is ir.InCoreScopeStmt
    assert found.name_hint == ""
    assert dict(found.attrs) == {}
    assert len(found.body.stmts) == 0


@pytest.mark.parametrize(
    "form",
    ["pl.Level.CORE_GROUP", "level=pl.Level.CORE_GROUP", "pl.Level.CORE_GROUP, None", "pl.Level.CORE_GROUP, role=None"],
)
def test_forms_of_the_level(form: str) -> None:
    assert type(scope(f"with pl.at({form}):\n    y[:] = x")) is ir.InCoreScopeStmt


def test_other_levels_are_hierarchy_scopes() -> None:
    found = scope("with pl.at(pl.Level.CHIP, pl.Role.Orchestrator, name_hint='h'):\n    y[:] = x")
    assert type(found) is ir.HierarchyScopeStmt
    assert (found.level, found.role, found.name_hint) == (pl.Level.CHIP, pl.Role.Orchestrator, "h")
    found = scope("with pl.at(level=pl.Level.HOST):\n    y[:] = x")
    assert (found.level, found.role) == (pl.Level.HOST, None)
    # An empty optimizations list says nothing.
    scope("with pl.at(level=pl.Level.HOST, optimizations=[]):\n    y[:] = x")


def test_all_attributes_in_their_order() -> None:
    body = (
        "z, d = pl.submit(self.k, x, 1.0, z)\n"
        f"with pl.at(windowize=True, optimizations=[pl.cross_core_slot(slot_num=3), pl.split(pl.SplitMode.LEFT_RIGHT)], "
        f"allow_early_resolve=True, dumps=[y], no_dep_args=[x], deps=[d, None], name_hint='all', {CORE}) as t:\n"
        "    y[:] = x\nself.plain(y)"
    )
    function = main(body)
    found = next(s for s in function.body.stmts if isinstance(s, ir.ScopeStmt))
    assert list(found.attrs) == [
        "manual_dep_edges",
        "arg_direction_overrides_vars",
        "dump_vars",
        "task_id_var",
        "allow_early_resolve",
        "slot_num",
        "windowize",
    ]
    assert found.split is pl.SplitMode.LEFT_RIGHT
    assert found.attrs["slot_num"] == 3
    assert [v.name_hint for v in found.attrs["manual_dep_edges"]] == ["d"]
    assert found.attrs["arg_direction_overrides_vars"][0] is function.params[0]
    assert found.attrs["dump_vars"][0] is function.params[3]
    assert found.attrs["task_id_var"].type == ir.ScalarType(pl.TASK_ID)


def test_absent_attributes_are_absent() -> None:
    found = scope(
        f"with pl.at({CORE}, deps=[], no_dep_args=[], dumps=(), allow_early_resolve=False, windowize=False, optimizations=[], name_hint=''):\n    y[:] = x"
    )
    assert dict(found.attrs) == {}
    found = scope(f"with pl.at({CORE}, deps=[None]):\n    y[:] = x")
    assert dict(found.attrs) == {}


def test_optimizations() -> None:
    found = scope(f"with pl.at({CORE}, optimizations=[pl.split(pl.SplitMode.NONE)]):\n    y[:] = x")
    assert found.split is pl.SplitMode.NONE
    found = scope(
        f"with pl.at({CORE}, optimizations=[pl.optimizations.split(mode=pl.SplitMode.UP_DOWN)]):\n    y[:] = x"
    )
    assert found.split is pl.SplitMode.UP_DOWN
    found = scope(f"with pl.at({CORE}, optimizations=[pl.optimizations.cross_core_slot(slot_num=2)]):\n    y[:] = x")
    assert found.attrs["slot_num"] == 2
    text = program(
        f"with pl.at({CORE}, optimizations=[pl.split(pl.SplitMode.UP_DOWN, slot_num=2)]):\n    y[:] = x\nreturn"
    )
    with pytest.warns(DeprecationWarning, match="pl.cross_core_slot"):
        node = parse(text)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # printed IR never warns
        round_trip(node)
    assert node["main"].body[0].attrs["slot_num"] == 2


def test_the_task_id_of_a_scope() -> None:
    function = main(f"with pl.at({CORE}) as t:\n    y[:] = x\nwith pl.at({CORE}, deps=[t]):\n    z[:] = y")
    placeholder, first, second = function.body.stmts[:3]
    assert placeholder.value.op.name == "system.task_invalid"
    assert first.attrs["task_id_var"] is placeholder.var
    assert second.attrs["manual_dep_edges"][0] is placeholder.var


def test_the_task_id_is_a_new_variable_even_for_a_bound_name() -> None:
    function = main(
        f"with pl.at({CORE}) as t:\n    y[:] = x\nwith pl.at({CORE}, deps=[t]) as t:\n    z[:] = y\nwith pl.at({CORE}, deps=[t]):\n    z[:] = y"
    )
    scopes = [s for s in function.body.stmts if isinstance(s, ir.ScopeStmt)]
    assert scopes[0].attrs["task_id_var"] is not scopes[1].attrs["task_id_var"]
    assert scopes[1].attrs["manual_dep_edges"][0] is scopes[0].attrs["task_id_var"]
    assert scopes[2].attrs["manual_dep_edges"][0] is scopes[1].attrs["task_id_var"]


def test_a_comment_goes_to_the_scope_not_to_its_placeholder() -> None:
    function = main(f"# first\nwith pl.at({CORE}) as t:\n    y[:] = x")
    assert list(function.body[0].leading_comments) == []
    assert list(function.body[1].leading_comments) == ["first"]


def test_names_leak_from_every_scope() -> None:
    for head in (f"with pl.at({CORE}):", "with pl.cluster():", "with pl.manual_scope():", "for i in pl.spmd(2):"):
        main(f"{head}\n    q = pl.add(x, 1.0)\nself.plain(q)")


def test_dump_tags_join_the_scope() -> None:
    body = f"pl.dump_tag(x)\nwith pl.at({CORE}, dumps=[y], allow_early_resolve=True) as t:\n    y[:] = x"
    found = next(s for s in main(body).body.stmts if isinstance(s, ir.ScopeStmt))
    assert list(found.attrs) == ["dump_vars", "task_id_var", "allow_early_resolve"]
    assert [v.name_hint for v in found.attrs["dump_vars"]] == ["y", "x"]
    body = f"pl.dump_tag(x)\nwith pl.at({CORE}, optimizations=[pl.cross_core_slot(slot_num=2)]) as t:\n    y[:] = x"
    found = next(s for s in main(body).body.stmts if isinstance(s, ir.ScopeStmt))
    assert list(found.attrs) == ["dump_vars", "task_id_var", "slot_num"]
    found = scope("pl.dump_tag(x)\nwith pl.cluster():\n    self.plain(y)")
    assert [v.name_hint for v in found.attrs["dump_vars"]] == ["x"]
    found = scope("pl.dump_tag(x)\nwith pl.manual_scope():\n    self.plain(y)")
    assert dict(found.attrs) == {}


# --- cluster, runtime scopes ------------------------------------------------------------------------------------------


def test_cluster_and_runtime_scopes() -> None:
    found = scope("with pl.cluster(name_hint='c'):\n    self.plain(y)")
    assert type(found) is ir.ClusterScopeStmt
    assert found.name_hint == "c"
    one = scope("with pl.manual_scope():\n    self.plain(y)")
    two = scope("with pl.scope(mode=pl.ScopeMode.MANUAL):\n    self.plain(y)")
    assert one.manual is two.manual is True
    ir.assert_structural_equal(
        main("with pl.manual_scope():\n    self.plain(y)"),
        main("with pl.scope(mode=pl.ScopeMode.MANUAL):\n    self.plain(y)"),
        enable_auto_mapping=True,
    )
    auto = scope(
        "with pl.scope():\n    with pl.scope(mode=pl.ScopeMode.AUTO):\n        with pl.manual_scope():\n            self.plain(y)",
        ", auto_scope=False",
    )
    assert auto.manual is False
    assert auto.body.manual is False
    assert auto.body.body.manual is True


# --- spmd -------------------------------------------------------------------------------------------------------------


def test_the_loop_form() -> None:
    found = scope("for i in pl.spmd(8):\n    y[i * 4 : i * 4 + 4] = x[i * 4 : i * 4 + 4]")
    assert type(found) is ir.SpmdScopeStmt
    assert found.core_num.value == 8
    inner = found.body
    assert type(inner) is ir.InCoreScopeStmt
    assert inner.body[0].value.op.name == "tile.get_block_idx"
    assert inner.body[0].var.name_hint == "i"
    found = scope(
        "for i in pl.spmd(core_num=n, sync_start=True, allow_early_resolve=True, predicate=(flags[0] > 0)):\n    y[:] = x"
    )
    assert found.sync_start is True
    assert list(found.attrs) == ["allow_early_resolve", "predicate"]
    assert type(found.attrs["predicate"]) is ir.Gt
    found = scope(
        "for i in pl.spmd(n + 1, optimizations=[pl.split(pl.SplitMode.UP_DOWN), pl.cross_core_slot(slot_num=2)]):\n    y[:] = x"
    )
    assert found.body.split is pl.SplitMode.UP_DOWN
    assert found.body.attrs["slot_num"] == 2
    assert dict(found.attrs) == {}


@pytest.mark.parametrize(("hint", "outer", "inner"), [("h", "h_spmd", "h"), ("h_spmd", "h_spmd", "h"), ("", "", "")])
def test_names_of_a_wrapped_body(hint: str, outer: str, inner: str) -> None:
    for head in (
        f"for i in pl.spmd(4, name_hint='{hint}'):\n",
        f"with pl.spmd(4, name_hint='{hint}'):\n    i = pl.tile.get_block_idx()\n",
    ):
        found = scope(head + "    y[i * 4 : i * 4 + 4] = x[0:4]")
        assert (found.name_hint, found.body.name_hint) == (outer, inner)


def test_the_with_form_decides_by_its_body() -> None:
    # A single core-group scope is the carrier.
    found = scope(f"with pl.spmd(4, name_hint='a'):\n    with pl.at({CORE}, name_hint='b'):\n        y[:] = x")
    assert (found.name_hint, found.body.name_hint) == ("a", "b")
    assert type(found.body) is ir.InCoreScopeStmt
    # A body that reads the block index is wrapped.
    found = scope("with pl.spmd(4):\n    i = pl.tile.get_block_idx()\n    y[i * 4 : i * 4 + 4] = x[0:4]")
    assert type(found.body) is ir.InCoreScopeStmt
    found = scope(
        "with pl.spmd(4):\n    for j in pl.range(2):\n        y[j * 4 + pl.get_block_idx() : j * 4 + pl.get_block_idx() + 4] = x[0:4]"
    )
    assert type(found.body) is ir.InCoreScopeStmt
    # A single kernel launch is not.
    found = scope("with pl.spmd(4, name_hint='k'):\n    y = self.k(x, 1.0, y)")
    assert found.name_hint == "k"
    assert type(found.body) is ir.AssignStmt
    # Unless an optimization is given.
    found = scope(
        "with pl.spmd(4, name_hint='k', optimizations=[pl.split(pl.SplitMode.UP_DOWN)]):\n    y = self.k(x, 1.0, y)"
    )
    assert (found.name_hint, found.body.name_hint) == ("k_spmd", "k")
    assert found.body.split is pl.SplitMode.UP_DOWN


@pytest.mark.parametrize(
    "body",
    [
        "y = self.k(x, 1.0, y)",
        "i = pl.tile.get_block_idx()\ny[i * 4 : i * 4 + 4] = x[0:4]",
        f"with pl.at({CORE}):\n    y[:] = x",
        f"with pl.at({CORE}, name_hint='q', windowize=True):\n    i = pl.tile.get_block_idx()\n    y[i * 4 : i * 4 + 4] = x[0:4]",
    ],
)
@pytest.mark.parametrize("tid", ["", " as t"])
def test_with_forms_round_trip(body: str, tid: str) -> None:
    import textwrap

    function = main(f"with pl.spmd(4, name_hint='s'){tid}:\n{textwrap.indent(body, '    ')}")
    found = next(s for s in function.body.stmts if isinstance(s, ir.ScopeStmt))
    assert ("task_id_var" in found.attrs) == bool(tid)


def test_spmd_attributes_in_their_order() -> None:
    function = main(
        "z, d = pl.submit(self.k, x, 1.0, z)\n"
        "with pl.spmd(4, predicate=(flags[0] == 1), allow_early_resolve=True, deps=[d], sync_start=True) as t:\n    y = self.k(x, 1.0, y)\n"
        "z, e = pl.submit(self.k, y, 1.0, z, deps=[t])"
    )
    found = next(s for s in function.body.stmts if isinstance(s, ir.ScopeStmt))
    assert list(found.attrs) == ["manual_dep_edges", "task_id_var", "allow_early_resolve", "predicate"]
    function = main(
        "pl.dump_tag(x)\nz, d = pl.submit(self.k, x, 1.0, z)\nwith pl.spmd(4, deps=[d], allow_early_resolve=True) as t:\n    y = self.k(x, 1.0, y)"
    )
    found = next(s for s in function.body.stmts if isinstance(s, ir.ScopeStmt))
    assert list(found.attrs) == ["manual_dep_edges", "dump_vars", "task_id_var", "allow_early_resolve"]
    # With an inner scope the tags go there.
    found = scope("pl.dump_tag(x)\nfor i in pl.spmd(4, allow_early_resolve=True):\n    y[i * 4 : i * 4 + 4] = x[0:4]")
    assert list(found.attrs) == ["allow_early_resolve"]
    assert list(found.body.attrs) == ["dump_vars"]


def test_spmd_inside_a_cluster() -> None:
    found = scope("with pl.cluster():\n    with pl.spmd(4):\n        y = self.k(x, 1.0, y)")
    assert type(found.body) is ir.SpmdScopeStmt
    found = scope("with pl.cluster():\n    for i in pl.spmd(4):\n        y[i * 4 : i * 4 + 4] = x[0:4]")
    assert type(found.body) is ir.SpmdScopeStmt
    main("with pl.cluster():\n    y, t = pl.submit(self.k, x, 1.0, y)")


# --- split_aiv --------------------------------------------------------------------------------------------------------


def test_split_regions() -> None:
    found = scope("for v in pl.split_aiv(2, mode=pl.SplitMode.UP_DOWN):\n    y[v * 16 : v * 16 + 16] = x[0:16]")
    assert type(found) is ir.InCoreScopeStmt
    region = found.body
    assert type(region) is ir.SplitAivScopeStmt
    assert (region.split, region.count) == (pl.SplitMode.UP_DOWN, 2)
    assert region.body[0].value.op.name == "tile.get_subblock_idx"
    found = scope(
        f"with pl.at({CORE}):\n    for v in pl.split_aiv(2, mode=pl.SplitMode.NONE):\n        y[v * 16 : v * 16 + 16] = x[0:16]"
    )
    assert type(found.body) is ir.SplitAivScopeStmt
    node = parse(
        kernel("for v in pl.split_aiv(2, mode=pl.SplitMode.LEFT_RIGHT):\n    o[v * 16 : v * 16 + 16] = x[0:16]\nreturn")
    )
    assert type(node.body[0]) is ir.SplitAivScopeStmt
    round_trip(node)
    # Dump tags go to the wrapper.
    found = scope(
        "pl.dump_tag(x)\nfor v in pl.split_aiv(2, mode=pl.SplitMode.UP_DOWN):\n    y[v * 16 : v * 16 + 16] = x[0:16]"
    )
    assert list(found.attrs) == ["dump_vars"]


def test_shard_and_gather_take_the_split_of_their_region() -> None:
    node = parse(
        kernel(
            "for v in pl.split_aiv(2, mode=pl.SplitMode.UP_DOWN):\n"
            "    a = pl.aiv_shard(x)\n    b = pl.aic_gather(a)\n    o[:] = b\nreturn"
        )
    )
    stmts = node.body[0].body.stmts
    assert stmts[1].value.op.name == "tensor.aiv_shard"
    assert stmts[1].value.kwargs["split"] == pl.SplitMode.UP_DOWN.value
    assert stmts[2].value.op.name == "tensor.aic_gather"
    round_trip(node)


# --- refusals ---------------------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:pl.split")  # one of the refused texts is also deprecated
@pytest.mark.parametrize(
    ("head", "cls", "phrase"),
    [
        (f"with pl.at({CORE}), pl.cluster():", S, "Only single context manager supported"),
        ("with pl.incore():", F, "Unsupported context manager"),
        ("with x:", F, "Unsupported context manager"),
        ("with self.k(x):", F, "Unsupported context manager"),
        ("with pl.cluster() as c:", S, "the `as` clause only applies to"),
        ("with pl.manual_scope() as c:", S, "the `as` clause only applies to"),
        (f"with pl.at({CORE}) as (a, b):", S, "target on `with pl.at(...)` must be a plain variable name"),
        ("with pl.spmd(2) as a[0]:", S, "target on `with pl.spmd(...)` must be a plain variable name"),
        ("with pl.at():", S, "pl.at() requires a level argument"),
        ("with pl.at(pl.Level.CHIP, None, 'h'):", S, "takes at most 2 positional arguments"),
        ("with pl.at(pl.Level.CHIP, level=pl.Level.CHIP):", S, "multiple values for argument"),
        ("with pl.at(pl.Level.CHIP, pl.Role.Orchestrator, role=None):", S, "multiple values for argument"),
        (f"with pl.at({CORE}, foo=1):", S, "Unknown keyword argument 'foo' in pl.at()"),
        (f"with pl.at({CORE}, **{{}}):", S, "Unsupported **kwargs in pl.at()"),
        (f"with pl.at({CORE}, predicate=(flags[0] > 0)):", S, "Unknown keyword argument 'predicate' in pl.at()"),
        (f"with pl.at({CORE}, role=pl.Role.SubWorker):", S, "role= is not supported with level=pl.Level.CORE_GROUP"),
        ("with pl.at(pl.Level.HOST, pl.Role.SubWorker):", S, "role=pl.Role.SubWorker)' is not supported"),
        ("with pl.at(pl.Level.CLUSTER_1, pl.Role.SubWorker):", S, "role=pl.Role.SubWorker)' is not supported"),
        (
            "with pl.at(pl.Level.CHIP, optimizations=[pl.split(pl.SplitMode.UP_DOWN)]):",
            S,
            "only supported with level=pl.Level.CORE_GROUP",
        ),
        (
            "with pl.at(pl.Level.CHIP, optimizations=[pl.cross_core_slot(slot_num=2)]):",
            S,
            "only supported with level=pl.Level.CORE_GROUP",
        ),
        ("with pl.at(pl.Level.CHIP, windowize=True):", S, "only supported with level=pl.Level.CORE_GROUP"),
        ("with pl.at(level=pl.Level.CORE_GRUP):", S, "Level"),
        ("with pl.at(level=3):", S, "Level"),
        (f"with pl.at({CORE}, allow_early_resolve=n):", S, "must be a boolean literal"),
        (f"with pl.at({CORE}, windowize=1):", S, "must be a boolean literal"),
        (f"with pl.at({CORE}, no_dep_args=x):", T, "pl.at(no_dep_args=...) must be a list literal"),
        (f"with pl.at({CORE}, no_dep_args=[x[0]]):", T, "entries must be bare tensor names"),
        (f"with pl.at({CORE}, no_dep_args=[q]):", T, "references unknown name"),
        (f"with pl.at({CORE}, no_dep_args=[n]):", T, "is not a tensor"),
        (f"with pl.at({CORE}, no_dep_args=[x, x]):", T, "more than once"),
        (f"with pl.at({CORE}, dumps=[y, y]):", T, "more than once"),
        (f"with pl.at({CORE}, dumps=x):", T, "pl.at(dumps=...) must be a list literal"),
        (f"with pl.at({CORE}, optimizations=(pl.split(pl.SplitMode.UP_DOWN),)):", S, "must be a list literal"),
        (f"with pl.at({CORE}, optimizations=[pl.foo()]):", S, "Unsupported entry in pl.at(optimizations"),
        (f"with pl.at({CORE}, optimizations=[x]):", S, "Unsupported entry in pl.at(optimizations"),
        (
            f"with pl.at({CORE}, optimizations=[pl.split(pl.SplitMode.NONE), pl.split(pl.SplitMode.NONE)]):",
            S,
            "Duplicate 'pl.split(...)'",
        ),
        (
            f"with pl.at({CORE}, optimizations=[pl.cross_core_slot(slot_num=2), pl.cross_core_slot(slot_num=2)]):",
            S,
            "Duplicate 'pl.cross_core_slot(...)'",
        ),
        (
            f"with pl.at({CORE}, optimizations=[pl.split(pl.SplitMode.UP_DOWN, slot_num=2), pl.cross_core_slot(slot_num=2)]):",
            S,
            "sets the cross-core slot count twice",
        ),
        (f"with pl.at({CORE}, optimizations=[pl.cross_core_slot()]):", S, "requires the slot_num="),
        (f"with pl.at({CORE}, optimizations=[pl.cross_core_slot(2)]):", S, "takes no positional arguments"),
        (f"with pl.at({CORE}, optimizations=[pl.cross_core_slot(slot_num=n)]):", S, "must be an integer literal"),
        (f"with pl.at({CORE}, optimizations=[pl.cross_core_slot(slot_num=True)]):", S, "must be an integer literal"),
        (f"with pl.at({CORE}, optimizations=[pl.cross_core_slot(slot_num=-1)]):", S, "must be positive"),
        (f"with pl.at({CORE}, optimizations=[pl.split()]):", S, "takes exactly 1 positional argument"),
        (f"with pl.at({CORE}, name_hint=n):", S, "'name_hint' argument must be a string literal"),
        (f"with pl.at({CORE}, name_hint='a b'):", S, "must be a valid non-keyword identifier"),
        (f"with pl.at({CORE}, name_hint='for'):", S, "must be a valid non-keyword identifier"),
        ("with pl.cluster('c'):", S, "does not accept positional arguments"),
        ("with pl.cluster(foo=1):", S, "got unexpected keyword argument"),
        ("with pl.cluster(name_hint='a-b'):", S, "must be a valid non-keyword identifier"),
        ("with pl.scope():", S, "a hand-placed AUTO 'with pl.scope()' requires"),
        ("with pl.scope(pl.ScopeMode.MANUAL):", S, "takes only a 'mode=' keyword"),
        ("with pl.scope(foo=1):", S, "got an unexpected keyword"),
        ("with pl.scope(mode=pl.ScopeMode.FOO):", S, ""),
        ("with pl.manual_scope(1):", S, "does not accept arguments"),
        ("with pl.manual_scope(mode=pl.ScopeMode.MANUAL):", S, "does not accept arguments"),
        ("with pl.manual_scope():\n  with pl.manual_scope():", S, "may not be nested inside"),
        ("with pl.manual_scope():\n  for j in pl.range(2):\n   with pl.manual_scope():", S, "may not be nested inside"),
        ("with pl.spmd():", S, "requires core_num"),
        ("with pl.spmd(2, 3):", S, "at most one positional argument"),
        ("with pl.spmd(2, core_num=2):", S, "multiple values for argument 'core_num'"),
        ("with pl.spmd(1.5):", S, "core_num must be an integer expression"),
        ("with pl.spmd(x):", S, "core_num must be an integer expression"),
        ("with pl.spmd(0):", S, "core_num must be a positive integer"),
        ("for i in pl.spmd(-2):", S, "core_num must be a positive integer"),
        ("with pl.spmd(2, deps=[]):", S, "does not accept 'deps=' here"),
        ("for i in pl.spmd(2, deps=[]):", S, "does not accept 'deps=' here"),
        ("with pl.spmd(2, **{}):", S, "does not accept **kwargs"),
        ("with pl.spmd(2, sync_start=n):", S, "must be a boolean literal"),
        ("with pl.spmd(2, foo=n):", S, "unexpected keyword"),
        ("for i in pl.spmd(2, init_values=(n,)):", S, "loop form does not accept 'init_values='"),
        ("for i in pl.spmd(2, chunk=2):", S, "loop form does not accept 'chunk='"),
        ("for i in pl.spmd(2, stage=2):", S, "loop form does not accept 'stage='"),
        ("for i, j in pl.spmd(2):", S, "must use a single loop variable"),
        ("for v in pl.split_aiv(3, mode=pl.SplitMode.UP_DOWN):", S, "requires n == 2"),
        ("for v in pl.split_aiv(n, mode=pl.SplitMode.UP_DOWN):", S, "requires n == 2"),
        ("for v in pl.split_aiv(2):", S, "requires mode="),
        ("for v in pl.split_aiv(mode=pl.SplitMode.UP_DOWN):", S, "exactly one positional argument"),
        ("for v in pl.split_aiv(2, mode=pl.SplitMode.FOO):", S, ""),
        (
            "for v in pl.split_aiv(2, mode=pl.SplitMode.UP_DOWN, optimizations=[]):",
            S,
            "does not accept 'optimizations='",
        ),
        ("for v in pl.split_aiv(2, mode=pl.SplitMode.UP_DOWN, stage=2):", S, "'stage='"),
        ("for v, w in pl.split_aiv(2, mode=pl.SplitMode.UP_DOWN):", S, "single loop variable"),
        (
            "for v in pl.split_aiv(2, mode=pl.SplitMode.UP_DOWN):\n  for w in pl.split_aiv(2, mode=pl.SplitMode.UP_DOWN):",
            S,
            "nested 'for ... in pl.split_aiv(...)' is not allowed",
        ),
        (
            f"with pl.at({CORE}, optimizations=[pl.split(pl.SplitMode.NONE)]):\n  for v in pl.split_aiv(2, mode=pl.SplitMode.UP_DOWN):",
            S,
            "mutually exclusive AIV-split mechanisms",
        ),
        (
            "for i in pl.spmd(2, optimizations=[pl.split(pl.SplitMode.UP_DOWN)]):\n  for v in pl.split_aiv(2, mode=pl.SplitMode.UP_DOWN):",
            S,
            "mutually exclusive AIV-split mechanisms",
        ),
        ("with pl.cluster():\n  with pl.spmd(2) as t:", S, "cannot capture a TaskId when nested inside"),
        (
            "with pl.cluster():\n  for i in pl.spmd(2, allow_early_resolve=True):",
            S,
            "cannot be nested inside `pl.cluster()`",
        ),
        (
            "with pl.cluster():\n  for i in pl.spmd(2, predicate=(flags[0] > 0)):",
            S,
            "cannot be nested inside `pl.cluster()`",
        ),
    ],
)
def test_refused_scopes(head: str, cls: type, phrase: str) -> None:
    text = program(f"{head}\n    y = self.k(x, 1.0, y)\nreturn")
    with pytest.raises(ParserError) as info:
        parse(text)
    error = info.value
    assert type(error) is cls, f"{type(error).__name__}: {error}"
    assert phrase in str(error), str(error)
    assert error.span is not None
    shown = text.splitlines()[error.span["line"] - 1].strip()
    assert shown in [h.strip() for h in head.splitlines()], shown


@pytest.mark.parametrize(
    ("body", "phrase"),
    [
        ("with pl.spmd(2):\n    y[:] = x", "neither reads the per-block index"),
        ("with pl.spmd(2):\n    y = self.k(x, 1.0, y)\n    z = self.k(x, 1.0, z)", "dispatch body launches 2 kernels"),
        (
            f"with pl.spmd(2, optimizations=[pl.split(pl.SplitMode.UP_DOWN)]):\n    with pl.at({CORE}, optimizations=[pl.split(pl.SplitMode.UP_DOWN)]):\n        y[:] = x",
            "`optimizations=` is specified twice",
        ),
        (
            f"with pl.spmd(2, optimizations=[pl.split(pl.SplitMode.UP_DOWN)]):\n    with pl.at({CORE}):\n        y[:] = x",
            "belongs on the InCore scope",
        ),
    ],
)
def test_refused_spmd_bodies(body: str, phrase: str) -> None:
    check_error(program(f"{body}\nreturn"), S, phrase, "with pl.spmd")


def test_runtime_scopes_do_not_belong_to_kernels() -> None:
    check_error(kernel("with pl.manual_scope():\n    o[:] = x\nreturn"), S, "", "with pl.manual_scope")


@pytest.mark.parametrize(
    ("call", "phrase"),
    [
        ("pl.aiv_shard(x)", "must be used inside a 'for ... in pl.split_aiv"),
        ("pl.tensor.aiv_shard(x)", "must be used inside a 'for ... in pl.split_aiv"),
        ("pl.aic_gather(x, mode=pl.SplitMode.UP_DOWN)", "does not take a mode= argument"),
        ("pl.tile.aiv_shard(x, split=1)", "is tile-only"),
        ("pl.tile.aiv_shard(pl.load(x, [0, 0], [64, 128]), split=x)", "requires an integer split"),
        ("pl.tile.aic_gather(pl.load(x, [0, 0], [64, 128]), split=1, lane_stride=2)", "lane_stride"),
    ],
)
def test_refused_shards(call: str, phrase: str) -> None:
    check_error(kernel(f"a = {call}\nreturn"), S, phrase, "a = ")


@pytest.mark.parametrize(
    ("call", "phrase"),
    [
        ("pl.aiv_shard(x, split=1)", "does not take a split= argument inside"),
        ("pl.aiv_shard(x, mode=1)", "does not take a mode= argument"),
        ("pl.aiv_shard()", "exactly one positional argument"),
        ("pl.aiv_shard(x, x)", "exactly one positional argument"),
    ],
)
def test_refused_shards_in_a_region(call: str, phrase: str) -> None:
    text = kernel(f"for v in pl.split_aiv(2, mode=pl.SplitMode.UP_DOWN):\n    a = {call}\nreturn")
    check_error(text, S, phrase, "a = ")


def test_scope_text() -> None:
    expect(
        program(
            "with pl.cluster():\n    with pl.spmd(2, name_hint='q'):\n        y = self.k(x, 1.0, y)\n"
            "for v in pl.split_aiv(2, mode=pl.SplitMode.UP_DOWN):\n    pass\n"
            "for i in pl.spmd(2):\n    pass\nreturn"
        ),
        """
        with pl.cluster():
            with pl.spmd(2, name_hint="q"):
                y: pl.Tensor[[32, 64], pl.FP32] = self.k(x, 1.0, y)
        with pl.at(level=pl.Level.CORE_GROUP):
            for v in pl.split_aiv(2, mode=pl.SplitMode.UP_DOWN):
                pass
        for i in pl.spmd(2):
            pass
        return
        """,
        "main",
    )
    assert HEAD.startswith("import pypto")


def test_a_task_id_that_is_bound_outside_of_a_loop_is_assigned() -> None:
    # Otherwise deps=[prev] would mean the seed in every iteration.
    for head in (
        "with pl.at(level=pl.Level.CORE_GROUP, deps=[prev]) as prev:\n",
        "with pl.spmd(2, deps=[prev]) as prev:\n",
    ):
        function = main(
            f"prev = None\nfor i in pl.range(3):\n    {head}        y = self.k(x, 1.0, y)\ng = pl.system.task_dummy(deps=[prev])"
        )
        seed, loop, barrier = function.body.stmts[:3]
        found = loop.body
        assert isinstance(found, ir.ScopeStmt)  # no placeholder: it would hide the id that deps= reads
        assert found.attrs["task_id_var"] is seed.var
        assert found.attrs["manual_dep_edges"][0] is seed.var
        assert barrier.value.attrs["manual_dep_edges"][0] is seed.var


def test_task_ids_of_branches_are_one_variable() -> None:
    function = main(
        f"if n > 1:\n    with pl.at({CORE}) as t:\n        y[:] = x\nelse:\n    with pl.at({CORE}) as t:\n        z[:] = x\n"
        "g = pl.system.task_dummy(deps=[t])"
    )
    branch, barrier = function.body.stmts[:2]
    tid = barrier.value.attrs["manual_dep_edges"][0]
    assert branch.then_body[-1].attrs["task_id_var"] is tid
    assert branch.else_body.attrs["task_id_var"] is tid


def test_a_written_seed_in_a_loop_is_no_placeholder() -> None:
    function = main(
        f"t = None\nfor i in pl.range(3):\n    t = None\n    with pl.at({CORE}, deps=[t]) as t:\n        y[:] = x\n"
        "g = pl.system.task_dummy(deps=[t])"
    )
    loop = function.body[1]
    assert len(loop.body.stmts) == 2
    assert loop.body[0].var is function.body[0].var
