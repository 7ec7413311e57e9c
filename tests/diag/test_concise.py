"""What is noise in a message and what is not."""

import pytest

from pypto.diag import BUG_CLASS_EXCEPTIONS, InternalError, concise_error_message

ONLY_A_CHECK = "The operation was rejected by a backend check that has no message"


@pytest.mark.parametrize(
    ("text", "concise"),
    [
        ("shapes differ: 4 and 5", "shapes differ: 4 and 5"),
        ("shapes differ\nleft is 4", "shapes differ\nleft is 4"),
        ("rank must be 2\nCheck failed: rank == 2 at shape.cc:10", "rank must be 2"),
        ("rank must be 2\n\n  Check failed: rank == 2\n", "rank must be 2"),
        ("Check failed: rank == 2", ONLY_A_CHECK),
        ("Check failed: a == b\nbut this follows", "Check failed: a == b\nbut this follows"),
        ("the Check failed: line is inside", "the Check failed: line is inside"),
        ("bad dtype\n\nC++ Traceback (most recent call last):\n  frame 1\n  frame 2", "bad dtype"),
        ("bad dtype\nStack trace:\n  0: f\n  1: g", "bad dtype"),
        ("bad\nCheck failed: x\nBacktrace:\n  f", "bad"),
        ("Check failed: x\nBacktrace:\n  f", ONLY_A_CHECK),
        ("a backtrace is not a block", "a backtrace is not a block"),
        ("bad dtype [k.py:3:5]", "bad dtype [k.py:3:5]"),
    ],
)
def test_noise(text, concise):
    assert concise_error_message(ValueError(text)) == concise


@pytest.mark.parametrize(
    ("text", "concise"),
    [
        ("bad dtype [k.py:3:5]", "bad dtype"),
        ("bad dtype [k.py:3:-1]\nCheck failed: x", "bad dtype"),
        ("bad shape [4, 5]", "bad shape [4, 5]"),
        ("[k.py:3:5] is where it is bad", "[k.py:3:5] is where it is bad"),
    ],
)
def test_trailing_span(text, concise):
    assert concise_error_message(ValueError(text), strip_trailing_span=True) == concise


def test_key_error_is_not_quoted():
    assert concise_error_message(KeyError("no such key")) == "no such key"


def test_empty_message_names_the_class():
    assert concise_error_message(ValueError()) == "ValueError"


def test_bug_classes():
    assert BUG_CLASS_EXCEPTIONS == (InternalError, AssertionError)
