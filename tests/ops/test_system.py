"""Synchronisation ops: kwargs, ranges, printed forms; prefetch handles; ops of the tests."""

import pytest
from memory_support import SYSTEM, D, M, scalar, tensor

from pypto.diag.errors import InternalError
from pypto.ir.enums import ArgEffect, PipeType
from pypto.ir.expr import Var
from pypto.ir.type import ScalarType, UnknownType
from pypto.ops.registry import create_op_call, get_op, get_op_arg_effect, op_has_declared_arg_effect
from pypto.ops.surface import IR_NAMESPACES, NAMESPACES


def text(call):
    return call.as_python(format=False)


def test_barriers():
    for name in ("bar_v", "bar_m", "bar_all", "fence"):
        call = NAMESPACES["system"][name]()
        assert text(call) == f"pl.system.{name}()" and call.type == UnknownType()


def test_flags():
    call = SYSTEM.sync_src(set_pipe=PipeType.MTE2, wait_pipe=PipeType.V, event_id=3)
    assert text(call) == "pl.system.sync_src(set_pipe=pl.PipeType.MTE2, wait_pipe=pl.PipeType.V, event_id=3)"
    assert text(SYSTEM.sync_set(4, pipe=PipeType.MTE3)) == ("pl.system.sync_set(pipe=pl.PipeType.MTE3, event_id=4)")
    dynamic = SYSTEM.sync_wait(scalar(), pipe=PipeType.V, core_type="aiv")
    assert len(dynamic.args) == 1 and "event_id" not in dynamic.kwargs
    for bad, phrase in (
        (lambda: SYSTEM.sync_set(14, pipe=PipeType.V), "user-available range"),
        (lambda: SYSTEM.sync_set(1, pipe=PipeType.V, ffts_mode=3), "ffts_mode"),
        (lambda: SYSTEM.sync_set(1, pipe=PipeType.V, core_type="x"), "core_type"),
        (lambda: create_op_call("system.sync_set", [], {"pipe": PipeType.V}), "exactly one"),
    ):
        with pytest.raises(ValueError, match=phrase):
            bad()


def test_set_ffts():
    assert SYSTEM.set_ffts(tensor([256], D.INT64)).type == UnknownType()
    with pytest.raises(ValueError, match="at least 256"):
        SYSTEM.set_ffts(tensor([255], D.INT64))
    assert op_has_declared_arg_effect("system.set_ffts", 0)


def test_syncall():
    assert text(SYSTEM.syncall()) == "pl.system.syncall(core_type='mix', mode='hard')"
    soft = SYSTEM.syncall(mode="soft", core_type="aiv_only", gm_workspace=tensor([16], D.INT32), used_cores=0)
    assert len(soft.args) == 1
    assert text(soft) == 'pl.system.syncall(mode="soft", core_type="aiv_only", gm_workspace=x, used_cores=0)'
    four = SYSTEM.syncall(mode="soft", gm_workspace=tensor([16], D.INT32), used_cores=4)
    assert four.args[1].type == ScalarType(D.INT32)
    assert get_op_arg_effect("system.syncall", 0) is ArgEffect.Read
    assert get_op_arg_effect("system.syncall", 0, mode="soft") is ArgEffect.ReadWrite
    for bad, error, phrase in (
        (dict(mode="hard", gm_workspace=tensor([16], D.INT32)), ValueError, "takes no gm_workspace"),
        (dict(mode="soft"), ValueError, "requires gm_workspace"),
        (dict(mode="soft", gm_workspace=tensor([16], D.INT32)), ValueError, "explicit used_cores"),
        (dict(mode="soft", gm_workspace=tensor([8], D.INT32), used_cores=1), ValueError, "at least 16 INT32"),
        (dict(mode="soft", gm_workspace=tensor([16], D.INT32), used_cores=-1), ValueError, "out of range"),
        (dict(mode="soft", gm_workspace=tensor([16], D.INT32), used_cores=1.5), TypeError, "integer"),
        (dict(core_type="none"), ValueError, "core_type"),
    ):
        with pytest.raises(error, match=phrase):
            SYSTEM.syncall(**bad)


def test_cacheinvalid():
    assert text(SYSTEM.cacheinvalid()) == "pl.system.cacheinvalid()"
    assert len(SYSTEM.cacheinvalid(tensor([8, 8]), [4, 4], [0, 0]).args) == 3
    with pytest.raises(ValueError, match="one entry of shapes per dimension"):
        SYSTEM.cacheinvalid(tensor([8, 8]), [4], [0, 0])
    with pytest.raises(ValueError, match="together"):
        SYSTEM.cacheinvalid(tensor([8, 8]))


def test_counts():
    assert SYSTEM.available_aiv_count().type == ScalarType(D.INT32)


def test_prefetch():
    prefetch = NAMESPACES["prefetch"]
    context = prefetch["make_context"]()
    handle = Var("ctx", context.type)
    event = prefetch["async_prefetch"](tensor([1, 64]), handle)
    session = prefetch["session"](handle)
    done = prefetch["wait"](Var("e", event.type), Var("s", session.type))
    assert done.type == ScalarType(D.BOOL)
    with pytest.raises(ValueError, match="flat contiguous logical 1D"):
        prefetch["async_prefetch"](tensor([2, 64]), handle)
    with pytest.raises(TypeError, match="AsyncEventType"):
        prefetch["wait"](handle, Var("s", session.type))


def test_ops_of_the_tests():
    x = tensor([4])
    assert create_op_call("test.op", [x, scalar()], {"int_attr": 3}).type is x.type
    assert get_op("test.op").get_attr_keys() == ["int_attr", "string_attr", "bool_attr"]
    with pytest.raises(InternalError):
        create_op_call("test.deduce_raises_internal", [x], {})
    with pytest.raises(TypeError):
        create_op_call("test.deduce_raises_type", [x], {})
    with pytest.raises(TypeError, match="incompatible type"):
        create_op_call("test.op", [x, x], {"bool_attr": 1})


def test_ir_constructors_exist():
    assert IR_NAMESPACES["system"]["syncall_soft"]("mix", tensor([16], D.INT32), 2).kwargs["mode"] == "soft"
    assert M.Vec.value == 1
