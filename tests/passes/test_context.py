"""The stack of pass contexts."""

import threading

import pytest

from pypto import InternalError, ir
from pypto.passes import (
    DiagnosticCheck,
    DiagnosticCheckSet,
    DiagnosticPhase,
    MemoryPlanner,
    PassContext,
    RuntimeKind,
    VerificationLevel,
    get_default_verification_level,
    runtime_kind_from_name,
    runtime_kind_to_name,
)


def test_defaults():
    c = PassContext([])
    assert c.get_verification_level() is VerificationLevel.BASIC
    assert c.get_diagnostic_phase() is DiagnosticPhase.PRE_PIPELINE
    assert c.get_disabled_diagnostics().to_list() == [DiagnosticCheck.UnusedControlFlowResult]
    assert c.get_memory_planner() is MemoryPlanner.PYPTO
    assert c.get_enable_pypto_l0c_double_buffer() is False
    assert c.get_runtime() is RuntimeKind.TENSORMAP_AND_RINGBUFFER
    assert c.get_instruments() == []


def test_the_inner_context_replaces_the_outer_one():
    assert PassContext.current() is None
    outer = PassContext([], VerificationLevel.NONE)
    with outer:
        assert PassContext.current() is outer
        with PassContext([]) as inner:
            assert PassContext.current() is inner
            assert inner.get_verification_level() is VerificationLevel.BASIC
        assert PassContext.current() is outer
    assert PassContext.current() is None


def test_one_context_may_be_entered_again():
    c = PassContext([])
    with c, c:
        assert PassContext.current() is c
    with c:
        pass
    assert PassContext.current() is None


def test_leaving_in_the_wrong_order():
    outer, inner = PassContext([]), PassContext([])
    outer.__enter__()
    inner.__enter__()
    try:
        with pytest.raises(InternalError, match="reverse order"):
            outer.__exit__(None, None, None)
    finally:
        inner.__exit__(None, None, None)
        outer.__exit__(None, None, None)


def test_each_thread_has_its_own_stack():
    seen = []
    with PassContext([]):
        thread = threading.Thread(target=lambda: seen.append(PassContext.current()))
        thread.start()
        thread.join()
    assert seen == [None]


def test_derive_keeps_every_other_field():
    disabled = DiagnosticCheckSet()
    disabled.insert(DiagnosticCheck.UnusedVariable)
    with PassContext(
        [],
        VerificationLevel.ROUNDTRIP,
        DiagnosticPhase.NONE,
        disabled,
        MemoryPlanner.PTOAS,
        True,
        RuntimeKind.HOST_BUILD_GRAPH,
    ):
        made = PassContext.derive(memory_planner=MemoryPlanner.DSA_RP)
    assert made.get_memory_planner() is MemoryPlanner.DSA_RP
    assert made.get_verification_level() is VerificationLevel.ROUNDTRIP
    assert made.get_diagnostic_phase() is DiagnosticPhase.NONE
    assert made.get_disabled_diagnostics() == disabled
    assert made.get_enable_pypto_l0c_double_buffer() is True
    assert made.get_runtime() is RuntimeKind.HOST_BUILD_GRAPH
    with pytest.raises(TypeError):
        PassContext.derive(no_such_field=1)


@pytest.mark.parametrize(
    ("text", "level"),
    [("none", "NONE"), ("BASIC", "BASIC"), ("roundtrip", "ROUNDTRIP"), ("whatever", "BASIC"), (None, "BASIC")],
)
def test_the_level_of_the_environment(monkeypatch, text, level):
    if text is None:
        monkeypatch.delenv("PYPTO_VERIFY_LEVEL", raising=False)
    else:
        monkeypatch.setenv("PYPTO_VERIFY_LEVEL", text)
    get_default_verification_level.cache_clear()
    try:
        assert get_default_verification_level() is VerificationLevel[level]
        assert PassContext.derive().get_verification_level() is VerificationLevel[level]
    finally:
        get_default_verification_level.cache_clear()


def test_names_of_runtimes():
    for kind in RuntimeKind:
        assert runtime_kind_from_name(runtime_kind_to_name(kind)) is kind
    with pytest.raises(ValueError, match="expected one of .*tensormap_and_ringbuffer.*host_build_graph"):
        runtime_kind_from_name("fast")


def test_the_public_names_of_ir():
    for name in ("PassContext", "VerificationLevel", "DiagnosticPhase", "DiagnosticCheck", "DiagnosticCheckSet"):
        assert getattr(ir, name).__name__ == name
