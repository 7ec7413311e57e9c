"""The catalogue: every code complete, unique, and found from the messages that the language promises."""

import builtins
import re

import pytest

from pypto.diag import errors, parser_errors
from pypto.diag.catalogue import CODES, ENTRIES
from pypto.diag.codes import ErrorCategory, ErrorCode, explain, find_code
from pypto.diag.parser_errors import InvalidOperationError, ParserError, ParserSyntaxError, ParserTypeError


def test_codes_are_unique_and_well_formed():
    assert len(CODES) == len(ENTRIES)
    assert all(re.fullmatch(r"PT\d{4}", code) for code in CODES)
    assert list(CODES) == sorted(CODES)


@pytest.mark.parametrize("info", ENTRIES, ids=lambda info: info.code)
def test_entry_is_complete(info):
    known = {"CodegenError", "PartialCodegenError", "PassError", "PassTypeError"}  # of rooms that this one can't import
    assert info.exception in known or any(hasattr(m, info.exception) for m in (errors, parser_errors, builtins))
    assert info.title and not info.title.endswith(".")
    assert info.explanation.endswith(".") and info.fix.endswith(".")


@pytest.mark.parametrize("info", ENTRIES, ids=lambda info: info.code)
def test_each_phrase_finds_its_own_code(info):
    for phrase in info.phrases:
        assert find_code(info.exception, f"<{phrase}>") == info.code


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (InvalidOperationError("Unknown operation 'pl.adn'"), "PT0501"),
        (InvalidOperationError("Unknown pl.tile operation: lod"), "PT0501"),
        (InvalidOperationError("pl operation 'add': cannot mix Tensor and Tile arguments"), "PT0503"),
        (InvalidOperationError("pl.tile operation 'load': shape has rank 3"), "PT0502"),
        (InvalidOperationError("'break' outside loop"), "PT0609"),
        (ParserTypeError("Parameter 'x' missing type annotation"), "PT0205"),
        (ParserTypeError("Function 'f' expects 2 argument(s), got 1"), "PT0507"),
        (ParserSyntaxError("Failed to parse function 'f': pl.const() requires exactly 2 arguments"), "PT0406"),
        (ParserSyntaxError("something without a closer kind"), "PT0101"),
        (ParserError("static_assert failed: rows"), "PT0811"),
        (ParserError("anything"), "PT0100"),
        (ParserError("Unknown operation 'pl.adn'"), "PT0100"),  # a phrase counts within its class only
        (ParserError("anything", code="PT0999"), "PT0999"),
    ],
)
def test_code_of_an_error(error, code):
    assert error.code == code
    assert error.diagnostic.code == code


def test_every_default_code_exists():
    classes = [ParserError, *ParserError.__subclasses__()]
    assert len(classes) == 8
    for cls in classes:
        assert CODES[cls.default_code].exception == cls.__name__


def test_explain():
    text = explain("pt0103")
    assert text.startswith("PT0103: unknown name (UndefinedVariableError)\n\n")
    assert "\n\nFix: " in text
    with pytest.raises(KeyError):
        explain("PT9998")


def test_older_tables():
    assert [(c.name, c.value) for c in ErrorCategory] == [
        ("SYNTAX", "E0"),
        ("TYPE", "E1"),
        ("NAME", "E2"),
        ("OPERATION", "E3"),
    ]
    assert len(ErrorCode) == 22
    assert ErrorCode.ITER_ARG_MISMATCH.value == "E007"
    assert ErrorCode.DTYPE_ERROR.value == "E105"
    assert ErrorCode.UNSUPPORTED_COMPARISON.value == "E305"
    assert all(any(code.value.startswith(category.value) for category in ErrorCategory) for code in ErrorCode)
