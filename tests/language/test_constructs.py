"""Loops, yields, directives, scopes, optimizations: what they do when executed outside a parsed body."""

import dataclasses

import pytest

import pypto.language as pl
from pypto.ir.enums import ArgDirection
from pypto.ir.expr import index_const
from pypto.language import optimizations
from pypto.language.dsl_api import RangeIterator, WhileIterator


@pytest.mark.parametrize("loop", [pl.range, pl.parallel, pl.unroll])
def test_loops_iterate_like_range(loop):
    assert list(loop(4)) == [0, 1, 2, 3]
    assert list(loop(1, 4)) == [1, 2, 3]
    assert list(loop(1, 8, 3)) == [1, 4, 7]
    it = loop(2, 9, 2)
    assert isinstance(it, RangeIterator)
    assert (it.start, it.stop, it.step, it.init_values, it.pipeline_stages) == (2, 9, 2, None, None)
    for wrong in ((), (1, 2, 3, 4)):
        with pytest.raises(ValueError, match=rf"{loop.__name__}\(\) takes 1 to 3 positional arguments"):
            loop(*wrong)


def test_carried_values():
    assert list(pl.range(2, init_values=("a", "b"))) == [(0, ("a", "b")), (1, ("a", "b"))]
    assert list(pl.parallel(1, init_values=[])) == [(0, [])]
    with pytest.raises(TypeError, match="init_values"):
        pl.unroll(2, init_values=(1,))


def test_pipeline():
    it = pl.pipeline(6, stage=2)
    assert list(it) == [0, 1, 2, 3, 4, 5] and it.pipeline_stages == 2
    assert list(pl.pipeline(0, 4, 2, stage=1, init_values=("s",))) == [(0, ("s",)), (2, ("s",))]
    for wrong in (0, -1, True, 1.0, "2"):
        with pytest.raises(ValueError, match="stage must be a positive integer"):
            pl.pipeline(4, stage=wrong)
    with pytest.raises(ValueError, match=r"pipeline\(\) takes 1 to 3"):
        pl.pipeline(stage=2)


def test_while():
    it = pl.while_(init_values=(1, 2))
    assert isinstance(it, WhileIterator) and list(it) == [(1, 2)]
    with pytest.raises(ValueError, match="requires init_values"):
        pl.while_()


def test_values_pass_through():
    assert pl.yield_(3) == 3
    assert pl.yield_(3, 4) == (3, 4)
    assert pl.const(5, pl.INT32) == 5
    tensor = pl.Tensor[[4], pl.FP32]
    assert pl.no_dep(tensor) is tensor and pl.dump_tag(tensor) is tensor
    assert pl.tensor.no_dep is pl.no_dep and pl.tensor.dump_tag is pl.dump_tag


def test_directives_do_nothing(capsys):
    assert pl.cond(True) is None
    assert pl.static_print("x", 1) is None
    assert pl.static_assert(False, "never") is None
    assert pl.func_attr({"a": 1}) is None
    assert capsys.readouterr().out == ""


def test_at_exposes_its_arguments():
    context = pl.at(
        pl.Level.HOST,
        pl.Role.Orchestrator,
        optimizations=[1],
        deps=[2],
        no_dep_args=[3],
        dumps=[4],
        allow_early_resolve=True,
        name_hint="h",
        windowize=True,
    )
    with context as entered:
        assert entered is context
    shown = [context.level, context.role, context.optimizations, context.deps, context.no_dep_args, context.dumps]
    assert shown == [pl.Level.HOST, pl.Role.Orchestrator, [1], [2], [3], [4]]
    assert (context.allow_early_resolve, context.name_hint, context.windowize) == (True, "h", True)
    defaults = pl.at(level=pl.Level.CORE_GROUP)
    assert (defaults.role, defaults.deps, defaults.name_hint, defaults.windowize) == (None, None, "", False)


def test_scopes_do_not_swallow_errors():
    for context in (pl.at(pl.Level.CORE_GROUP), pl.cluster(), pl.scope(), pl.manual_scope(), pl.spmd(4)):
        with pytest.raises(KeyError), context:
            raise KeyError


def test_scope_modes():
    assert pl.scope().mode is pl.ScopeMode.AUTO
    assert pl.scope(mode=pl.ScopeMode.MANUAL).mode is pl.ScopeMode.MANUAL
    assert pl.manual_scope().mode is pl.ScopeMode.MANUAL
    assert pl.cluster(name_hint="c").name_hint == "c"


def test_spmd():
    context = pl.spmd(8, sync_start=True, name_hint="k", deps=[1], allow_early_resolve=True, predicate=True)
    assert (context.core_num, context.sync_start, context.name_hint, context.deps) == (8, True, "k", [1])
    assert (context.allow_early_resolve, context.predicate, context.optimizations) == (True, True, None)
    count = index_const(4)
    assert pl.spmd(count).core_num is count
    assert isinstance(pl.spmd(pl.dynamic("n")).core_num, pl.DynVar)
    for wrong in (0, -2, True, 2.0, "4", None):
        with pytest.raises(ValueError, match="core_num must be"):
            pl.spmd(wrong)
    with pytest.raises(RuntimeError, match="loop form is only valid inside"):
        iter(context)


def test_split_aiv():
    context = pl.split_aiv(2, mode=pl.SplitMode.UP_DOWN)
    assert context.mode is pl.SplitMode.UP_DOWN
    with pytest.raises(RuntimeError, match="loop form is only valid inside"):
        iter(context)
    for wrong in (1, 3, True, 2.0):
        with pytest.raises(ValueError, match="requires n == 2"):
            pl.split_aiv(wrong, mode=pl.SplitMode.NONE)
    with pytest.raises(ValueError, match="SplitMode"):
        pl.split_aiv(2, mode=1)


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("pl.submit", lambda: pl.submit(1, deps=[])),
        ("pl.spmd_submit", lambda: pl.spmd_submit(1, core_num=2)),
        ("pl.system.task_dummy", lambda: pl.system.task_dummy(deps=[])),
    ],
)
def test_launches_belong_to_the_parser(name, call):
    with pytest.raises(RuntimeError, match=rf"{name} is a DSL parser construct and cannot be called directly"):
        call()


def test_shard_and_gather_belong_to_a_region():
    for function in (pl.aiv_shard, pl.aic_gather, pl.tile.aiv_shard, pl.tile.aic_gather):
        with pytest.raises(RuntimeError, match=r"split_aiv"):
            function(pl.Tile[[4, 4], pl.FP32])


# --- optimizations ----------------------------------------------------------------------------------------------------


def test_split_is_a_frozen_record():
    entry = pl.split(pl.SplitMode.LEFT_RIGHT)
    assert entry == optimizations.Split(pl.SplitMode.LEFT_RIGHT) and entry.slot_num is None
    assert isinstance(entry, optimizations.Optimization)
    with pytest.raises(dataclasses.FrozenInstanceError):
        entry.slot_num = 3


def test_slot_num_of_split_is_deprecated():
    with pytest.warns(DeprecationWarning, match=r"pl\.cross_core_slot") as caught:
        entry = pl.split(pl.SplitMode.UP_DOWN, slot_num=4)
    assert entry.slot_num == 4 and caught[0].filename == __file__
    for wrong in (0, -1, True, 1.5):
        with pytest.raises(ValueError, match="must be a positive integer"):
            pl.split(pl.SplitMode.UP_DOWN, slot_num=wrong)


def test_cross_core_slot():
    entry = pl.cross_core_slot(slot_num=3)
    assert entry == optimizations.CrossCoreSlot(3) and isinstance(entry, optimizations.Optimization)
    assert pl.optimizations is optimizations
    for wrong in (0, -1, True, "2"):
        with pytest.raises(ValueError, match="must be a positive integer"):
            pl.cross_core_slot(slot_num=wrong)


def test_argument_directions():
    assert pl.adir.input is ArgDirection.Input and pl.adir.scalar is ArgDirection.Scalar
    assert pl.adir.NAME_TO_DIRECTION["output_existing"] is ArgDirection.OutputExisting
    assert {pl.adir.DIRECTION_TO_NAME[d] for d in ArgDirection} == set(pl.adir.NAME_TO_DIRECTION)
    assert all(getattr(pl.adir, name) is value for name, value in pl.adir.NAME_TO_DIRECTION.items())
