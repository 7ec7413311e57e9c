from __future__ import annotations

import contextvars
import sys
import threading

import pytest

from pypto.ir.recursion import deep_recursion, deeper_than, with_big_stack

setting: contextvars.ContextVar[int] = contextvars.ContextVar("setting")


def dig(levels: int) -> int:
    return 1 + dig(levels - 1) if levels else setting.get()


def test_the_limit_is_raised_and_restored_by_the_last_user() -> None:
    before = sys.getrecursionlimit()
    with deep_recursion(before + 100):
        assert sys.getrecursionlimit() == before + 100
        with pytest.raises(KeyError), deep_recursion(before + 200):
            raise KeyError
        assert sys.getrecursionlimit() >= before + 100
        with deep_recursion(10):
            assert sys.getrecursionlimit() >= before + 100
    assert sys.getrecursionlimit() == before


def test_a_big_stack_keeps_context_result_and_errors() -> None:
    setting.set(7)
    usual = threading.stack_size()
    assert with_big_stack(lambda: dig(40_000)) == 40_007
    assert threading.stack_size() == usual
    with pytest.raises(ZeroDivisionError):
        with_big_stack(lambda: 1 // 0)


def test_deeper_than() -> None:
    pushers = {list: lambda node, push: [push(child) for child in node]}
    assert not deeper_than([1, [2, [3]]], 4, pushers)
    assert deeper_than([1, [2, [3]]], 3, pushers)
