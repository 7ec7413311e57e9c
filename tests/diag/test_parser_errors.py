"""The exception classes of the front end: constructor, attributes, span conversion."""

import copy
import pickle
import weakref

import pytest

from pypto.diag.codes import ErrorCode, get_error_code
from pypto.diag.diagnostic import Label, Severity
from pypto.diag.location import Location
from pypto.diag.parser_errors import (
    InvalidOperationError,
    ParserError,
    ParserSyntaxError,
    ParserTypeError,
    ScopeIsolationError,
    SSAViolationError,
    UndefinedVariableError,
    UnsupportedFeatureError,
)

FAMILY = [
    ParserSyntaxError,
    ParserTypeError,
    UndefinedVariableError,
    SSAViolationError,
    UnsupportedFeatureError,
    InvalidOperationError,
    ScopeIsolationError,
]


class FakeSpan:
    """Stands for the IR's span class, which this room must not know."""

    def __init__(self, filename, begin_line, begin_column, end_line=-1, end_column=-1):
        self.filename = filename
        self.begin_line = begin_line
        self.begin_column = begin_column
        self.end_line = end_line
        self.end_column = end_column


@pytest.mark.parametrize("cls", FAMILY)
def test_family(cls):
    assert cls.__bases__ == (ParserError,)
    assert ParserError.__bases__ == (Exception,)


@pytest.mark.parametrize("cls", [ParserError, *FAMILY])
def test_positional_constructor(cls):
    error = cls("msg", FakeSpan("k.py", 3, 7), "try this", "by the way", ["a", "b", "c"])
    assert (str(error), error.message, error.hint, error.note) == ("msg", "msg", "try this", "by the way")
    assert error.source_lines == ["a", "b", "c"]
    assert error.errors == []


@pytest.mark.parametrize("cls", [ParserError, *FAMILY])
def test_defaults(cls):
    error = cls("msg")
    assert (error.span, error.hint, error.note, error.source_lines) == (None, None, None, None)


def test_span_without_end_has_exactly_the_six_keys():
    assert ParserError("m", FakeSpan("k.py", 3, 7)).span == {
        "filename": "k.py",
        "file": "k.py",
        "begin_line": 3,
        "line": 3,
        "begin_column": 7,
        "column": 7,
    }


def test_span_with_end():
    span = ParserError("m", FakeSpan("k.py", 3, 7, 3, 12)).span
    assert (span["end_line"], span["end_column"]) == (3, 12)


def test_span_from_dicts_in_both_spellings():
    published = ParserError("m", FakeSpan("k.py", 3, 7, 4, 2)).span
    assert ParserError("m", published).span == published
    assert ParserError("m", {"file": "k.py", "line": 3, "column": 7, "end_line": 4, "end_column": 2}).span == published


def test_span_set_later_is_converted_too():
    error = SSAViolationError("m")
    error.span = error.previous_span = FakeSpan("k.py", 1, 2)
    assert error.span["line"] == error.previous_span["line"] == 1


def test_no_ir_object_is_kept_alive():
    span = FakeSpan("k.py", 3, 7)
    alive = weakref.ref(span)
    error = SSAViolationError("m", span, previous_span=span)
    del span
    assert alive() is None
    assert error.span["line"] == 3


def test_previous_span_only_on_ssa_violation():
    error = SSAViolationError("m", FakeSpan("k.py", 5, 1), previous_span=FakeSpan("k.py", 2, 1))
    assert error.previous_span["begin_line"] == 2
    assert SSAViolationError("m").previous_span is None
    assert not hasattr(ParserError("m"), "previous_span")
    with pytest.raises(TypeError):
        ParserTypeError("m", previous_span=FakeSpan("k.py", 2, 1))


def test_diagnostic():
    error = SSAViolationError(
        "Variable 'x' is already defined",
        FakeSpan("k.py", 5, 1, 5, 2),
        "rename",
        "strict",
        None,
        FakeSpan("k.py", 2, 3),
    )
    diagnostic = error.diagnostic
    assert diagnostic.code == "PT0104"
    assert diagnostic.severity is Severity.ERROR
    assert diagnostic.message == "Variable 'x' is already defined"
    assert diagnostic.span == Location("k.py", 5, 1, 5, 2)
    assert diagnostic.labels == (Label(Location("k.py", 2, 3), "Previous definition was here"),)
    assert diagnostic.notes == ("strict",)
    assert diagnostic.help == "rename"


def test_diagnostic_shows_notes_added_in_flight():
    error = ParserError("m", note="first")
    error.__notes__ = ["second"]  # what add_note does from Python 3.11 on
    assert error.diagnostic.notes == ("first", "second")


def test_diagnostic_is_frozen():
    with pytest.raises(AttributeError):
        ParserError("m").diagnostic.message = "other"


def test_all_errors_gives_each_once_in_order():
    first, second, third = ParserError("1"), ParserError("2"), ParserError("3")
    first.errors = [second, third]
    third.errors = [first]
    assert [e.message for e in first.all_errors()] == ["1", "2", "3"]


def test_pickle_and_copy_keep_everything():
    error = SSAViolationError("m", FakeSpan("k.py", 5, 1), "h", "n", ["line"], FakeSpan("k.py", 2, 3))
    error.errors.append(ParserTypeError("other", FakeSpan("k.py", 9, 9)))
    for again in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
        assert type(again) is SSAViolationError
        assert (again.message, again.hint, again.note, again.source_lines) == ("m", "h", "n", ["line"])
        assert (again.span, again.previous_span) == (error.span, error.previous_span)
        assert again.errors[0].span["line"] == 9


@pytest.mark.parametrize(
    ("cls", "code"),
    [
        (ParserSyntaxError, "E001"),
        (ParserTypeError, "E101"),
        (UndefinedVariableError, "E200"),
        (SSAViolationError, "E201"),
        (UnsupportedFeatureError, "E301"),
        (InvalidOperationError, "E300"),
    ],
)
def test_older_code(cls, code):
    assert get_error_code(cls) is ErrorCode(code)


@pytest.mark.parametrize("cls", [ParserError, ScopeIsolationError, ValueError])
def test_no_older_code(cls):
    assert get_error_code(cls) is None
