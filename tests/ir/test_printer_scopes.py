"""Printed scopes (spec 17.5)."""

import pytest

from pypto.ir.dtype import DataType
from pypto.ir.enums import Level, Role, SplitMode
from pypto.ir.expr import Call, ConstInt, GlobalVar, Op, Var, WindowBuffer
from pypto.ir.printer import calls, python_print
from pypto.ir.program import Function
from pypto.ir.span import Span
from pypto.ir.stmt import (
    AssignStmt,
    ClusterScopeStmt,
    CommDomainScopeStmt,
    EvalStmt,
    ForStmt,
    HierarchyScopeStmt,
    InCoreScopeStmt,
    ReturnStmt,
    RuntimeScopeStmt,
    SeqStmts,
    SplitAivScopeStmt,
    SpmdScopeStmt,
    attach_leading_comments,
)
from pypto.ir.type import PtrType, ScalarType, TensorType
from pypto.ops.printing import PRINTED_FORMS

U = Span.unknown()
TASK_ID = ScalarType(DataType.TASK_ID)
X, Y = (Var(name, TensorType([4], DataType.FP32)) for name in "xy")
IDX, N = (Var(name, ScalarType(DataType.INDEX)) for name in "in")
T, TID = (Var(name, TASK_ID) for name in ("t", "tid"))
WORK = EvalStmt(Call(Op("tile.f"), [X], U), U)
LAUNCH = EvalStmt(Call(GlobalVar("k"), [X], U), U)
BLOCK = AssignStmt(IDX, Call(Op("tile.get_block_idx"), [], IDX.type, U), U)
LANE = AssignStmt(IDX, Call(Op("tile.get_subblock_idx"), [], IDX.type, U), U)


def lines(node):
    return python_print(node, format=False).split("\n")


def seq(*stmts):
    return SeqStmts(list(stmts), U)


def head(node):
    """The first line; the rest must be the usual body."""
    first, *rest = lines(node)
    assert rest == ["    pl.tile.f(x)"]
    return first


def in_core(split=SplitMode.NONE, name="", body=WORK, attrs=None):
    return InCoreScopeStmt(split, name, body=body, span=U, attrs=attrs)


# --- pl.at ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("scope", "expected"),
    [
        (in_core(), "level=pl.Level.CORE_GROUP"),
        (in_core(name="scale"), 'level=pl.Level.CORE_GROUP, name_hint="scale"'),
        (
            in_core(SplitMode.UP_DOWN, attrs={"slot_num": 4}),
            "level=pl.Level.CORE_GROUP, optimizations=[pl.split(pl.SplitMode.UP_DOWN), pl.cross_core_slot(slot_num=4)]",
        ),
        (
            in_core(SplitMode.LEFT_RIGHT),
            "level=pl.Level.CORE_GROUP, optimizations=[pl.split(pl.SplitMode.LEFT_RIGHT)]",
        ),
        (in_core(attrs={"slot_num": 2}), "level=pl.Level.CORE_GROUP, optimizations=[pl.cross_core_slot(slot_num=2)]"),
        (
            in_core(
                name="s",
                attrs={
                    "windowize": True,
                    "dump_vars": [X],
                    "arg_direction_overrides_vars": [Y, X],
                    "allow_early_resolve": True,
                    "manual_dep_edges": [T],
                },
            ),
            'level=pl.Level.CORE_GROUP, name_hint="s", deps=[t], no_dep_args=[y, x], dumps=[x], '
            "allow_early_resolve=True, windowize=True",
        ),
        (HierarchyScopeStmt(Level.NODE, body=WORK, span=U), "level=pl.Level.HOST"),
        (
            HierarchyScopeStmt(
                Level.CHIP, Role.Orchestrator, "h", body=WORK, span=U, attrs={"manual_dep_edges": [T], "dump_vars": [X]}
            ),
            'level=pl.Level.CHIP, role=pl.Role.Orchestrator, name_hint="h", deps=[t], dumps=[x]',
        ),
        # What has no keyword of its own doesn't vanish.
        (in_core(attrs={"hint.cost": 3}), 'level=pl.Level.CORE_GROUP, attrs={"hint.cost": 3}'),
        (
            HierarchyScopeStmt(Level.CHIP, body=WORK, span=U, attrs={"slot_num": 3}),
            'level=pl.Level.CHIP, attrs={"slot_num": 3}',
        ),
    ],
)
def test_at(scope, expected):
    assert head(scope) == f"with pl.at({expected}):"


def test_at_with_a_task_id():
    assert head(in_core(attrs={"manual_dep_edges": [T], "task_id_var": TID})) == (
        "with pl.at(level=pl.Level.CORE_GROUP, deps=[t]) as tid:"
    )


# --- the placeholder of a task id -------------------------------------------------------------------------------------


def placeholder(var=TID):
    return AssignStmt(var, Call(Op("system.task_invalid"), [], {}, None, TASK_ID, U), U)


def test_the_placeholder_before_its_scope_is_not_printed():
    scope = in_core(name="scale", attrs={"task_id_var": TID})
    after = in_core(attrs={"manual_dep_edges": [TID]})
    assert lines(seq(placeholder(), scope, after)) == [
        'with pl.at(level=pl.Level.CORE_GROUP, name_hint="scale") as tid:',
        "    pl.tile.f(x)",
        "with pl.at(level=pl.Level.CORE_GROUP, deps=[tid]):",
        "    pl.tile.f(x)",
    ]


def test_another_null_task_id_is_printed():
    null = "t: pl.Scalar[pl.TASK_ID] = pl.system.task_invalid()"
    scope = in_core(attrs={"task_id_var": TID})
    assert lines(seq(placeholder(T), scope))[0] == null
    assert lines(seq(placeholder(T), WORK))[0] == null
    assert lines(seq(WORK, placeholder(T)))[1] == null


def test_a_placeholder_with_a_comment_is_printed():
    commented = attach_leading_comments(placeholder(), ["note"])
    assert lines(seq(commented, in_core(attrs={"task_id_var": TID})))[:2] == [
        "# note",
        "tid: pl.Scalar[pl.TASK_ID] = pl.system.task_invalid()",
    ]


# --- clusters and runtime scopes --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("scope", "expected"),
    [
        (ClusterScopeStmt(body=WORK, span=U), "pl.cluster()"),
        (ClusterScopeStmt("c", body=WORK, span=U), 'pl.cluster(name_hint="c")'),
        (ClusterScopeStmt(body=WORK, span=U, attrs={"dump_vars": [X]}), 'pl.cluster(attrs={"dump_vars": [x]})'),
        (RuntimeScopeStmt(body=WORK, span=U), "pl.scope()"),
        (RuntimeScopeStmt(True, body=WORK, span=U), "pl.scope(mode=pl.ScopeMode.MANUAL)"),
        (
            RuntimeScopeStmt(True, body=WORK, span=U, attrs={"__compiler_auto_manual_scope_candidate": True}),
            'pl.scope(mode=pl.ScopeMode.MANUAL, attrs={"__compiler_auto_manual_scope_candidate": True})',
        ),
    ],
)
def test_clusters_and_runtime_scopes(scope, expected):
    assert head(scope) == f"with {expected}:"


@pytest.mark.parametrize(
    "scope",
    [
        in_core(body=seq()),
        HierarchyScopeStmt(Level.CHIP, body=seq(), span=U),
        ClusterScopeStmt(body=seq(), span=U),
        RuntimeScopeStmt(body=seq(), span=U),
        SpmdScopeStmt(4, body=seq(), span=U),
        SpmdScopeStmt(4, body=in_core(body=BLOCK), span=U),
        SplitAivScopeStmt(SplitMode.UP_DOWN, body=seq(), span=U),
        SplitAivScopeStmt(SplitMode.UP_DOWN, body=seq(LANE), span=U),
        ForStmt(IDX, N, N, N, [], seq(), [], U),
    ],
)
def test_an_empty_body_prints_pass(scope):
    assert lines(scope)[1:] == ["    pass"]


def test_communication_domain():
    window = WindowBuffer(Var("w", PtrType()), ConstInt(64, DataType.INT64))
    all_devices = CommDomainScopeStmt([], [window], body=seq(WORK, WORK), span=U)
    assert lines(all_devices) == ["# pld.comm_domain: devices=all, slots=[w]", "pl.tile.f(x)", "pl.tile.f(x)"]
    two = CommDomainScopeStmt([0, 1], [], body=seq(), span=U)
    assert lines(two) == ["# pld.comm_domain: devices=[0, 1], slots=[]", "pass"]


# --- split_aiv --------------------------------------------------------------------------------------------------------


def test_the_lane_index_is_the_loop_variable():
    scope = SplitAivScopeStmt(SplitMode.UP_DOWN, body=seq(LANE, WORK), span=U)
    assert head(scope) == "for i in pl.split_aiv(2, mode=pl.SplitMode.UP_DOWN):"


def test_without_a_lane_index_the_loop_variable_has_a_fixed_name():
    scope = SplitAivScopeStmt(SplitMode.NONE, body=WORK, span=U)
    assert head(scope) == "for aiv_id in pl.split_aiv(2, mode=pl.SplitMode.NONE):"


def test_the_comments_of_a_swallowed_statement_stay():
    lane = AssignStmt(IDX, Call(Op("tile.get_subblock_idx"), [], IDX.type, U), U)
    attach_leading_comments(lane, ["which half"])
    assert lines(SplitAivScopeStmt(SplitMode.UP_DOWN, body=seq(lane, WORK), span=U)) == [
        "for i in pl.split_aiv(2, mode=pl.SplitMode.UP_DOWN):",
        "    # which half",
        "    pl.tile.f(x)",
    ]


def test_a_shard_hides_the_split_that_its_region_says(monkeypatch):
    form = PRINTED_FORMS["hide_split_in_region"]
    monkeypatch.setattr(calls, "_form_source", lambda name: form if name == "tile.aiv_shard" else None)

    def shard(split):
        return EvalStmt(Call(Op("tile.aiv_shard"), [X], {"split": split}, X.type, U), U)

    region = SplitAivScopeStmt(SplitMode.UP_DOWN, body=seq(shard(1), shard(2)), span=U)
    assert lines(seq(region, shard(1))) == [
        "for aiv_id in pl.split_aiv(2, mode=pl.SplitMode.UP_DOWN):",
        "    pl.tile.aiv_shard(x)",
        "    pl.tile.aiv_shard(x, split=2)",
        "pl.tile.aiv_shard(x, split=1)",
    ]


# --- spmd -------------------------------------------------------------------------------------------------------------


def spmd(body, name="", attrs=None, sync_start=False, core_num=8):
    return SpmdScopeStmt(core_num, sync_start, name, body=body, span=U, attrs=attrs)


def test_loop_form():
    carrier = in_core(SplitMode.UP_DOWN, "row", seq(BLOCK, WORK), {"slot_num": 2})
    scope = spmd(carrier, "row_spmd", {"allow_early_resolve": True, "predicate": N > 0}, True, N * 2)
    assert head(scope) == (
        'for i in pl.spmd(n * 2, sync_start=True, name_hint="row_spmd", '
        "optimizations=[pl.split(pl.SplitMode.UP_DOWN), pl.cross_core_slot(slot_num=2)], "
        "allow_early_resolve=True, predicate=(n > 0)):"
    )
    assert head(spmd(in_core(body=seq(BLOCK, WORK)))) == "for i in pl.spmd(8):"


def test_plain_with_form():
    scope = spmd(WORK, "k", {"predicate": N > 0, "allow_early_resolve": True}, True)
    assert head(scope) == (
        'with pl.spmd(8, sync_start=True, name_hint="k", allow_early_resolve=True, predicate=(n > 0)):'
    )


def test_an_inner_scope_that_does_not_begin_with_the_block_index_is_nested():
    assert lines(spmd(in_core(body=seq(WORK, BLOCK)))) == [
        "with pl.spmd(8):",
        "    with pl.at(level=pl.Level.CORE_GROUP):",
        "        pl.tile.f(x)",
        "        i: pl.Scalar[pl.INDEX] = pl.tile.get_block_idx()",
    ]


@pytest.mark.parametrize(
    ("carrier", "name", "nested"),
    [
        (in_core(name="other", body=seq(BLOCK, WORK)), "k_spmd", 'level=pl.Level.CORE_GROUP, name_hint="other"'),
        (in_core(body=seq(BLOCK, WORK)), "k", "level=pl.Level.CORE_GROUP"),
        (in_core(body=seq(BLOCK, WORK), attrs={"dump_vars": [X]}), "", "level=pl.Level.CORE_GROUP, dumps=[x]"),
    ],
)
def test_an_inner_scope_that_the_loop_form_cannot_say_is_nested(carrier, name, nested):
    hint = f', name_hint="{name}"' if name else ""
    assert lines(spmd(carrier, name))[:2] == [f"with pl.spmd(8{hint}):", f"    with pl.at({nested}):"]


def test_task_id_form_prints_a_scope_that_the_reader_makes_again():
    attrs = {"manual_dep_edges": [T], "task_id_var": TID, "allow_early_resolve": True, "predicate": N > 0}
    carrier = in_core(SplitMode.UP_DOWN, "k", seq(WORK, BLOCK))
    assert lines(spmd(carrier, "k_spmd", attrs, True)) == [
        'with pl.spmd(8, sync_start=True, name_hint="k_spmd", optimizations=[pl.split(pl.SplitMode.UP_DOWN)], '
        "deps=[t], allow_early_resolve=True, predicate=(n > 0)) as tid:",
        "    pl.tile.f(x)",
        "    i: pl.Scalar[pl.INDEX] = pl.tile.get_block_idx()",
    ]


def test_task_id_form_with_a_split_around_one_dispatch():
    carrier = in_core(SplitMode.UP_DOWN, body=LAUNCH)
    assert lines(spmd(carrier, attrs={"task_id_var": TID})) == [
        "with pl.spmd(8, optimizations=[pl.split(pl.SplitMode.UP_DOWN)]) as tid:",
        "    k(x)",
    ]


def test_task_id_form_nests_a_scope_that_the_reader_would_not_make():
    assert lines(spmd(in_core(body=LAUNCH), attrs={"task_id_var": TID, "manual_dep_edges": [T]})) == [
        "with pl.spmd(8, deps=[t]) as tid:",
        "    with pl.at(level=pl.Level.CORE_GROUP):",
        "        k(x)",
    ]


def test_task_id_form_around_a_dispatch():
    assert lines(spmd(LAUNCH, attrs={"task_id_var": TID})) == ["with pl.spmd(8) as tid:", "    k(x)"]


def test_scopes_in_a_function():
    func = Function("f", [X], [], seq(placeholder(), in_core(attrs={"task_id_var": TID}), ReturnStmt([TID], U)), U)
    assert lines(func) == [
        "@pl.function",
        "def f(x: pl.Tensor[[4], pl.FP32]):",
        "    with pl.at(level=pl.Level.CORE_GROUP) as tid:",
        "        pl.tile.f(x)",
        "    return tid",
    ]
