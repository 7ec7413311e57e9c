"""Decorators and text entry points are those of the front end, under the paths that programs import."""

import subprocess
import sys
import textwrap

import pytest

import pypto.language as pl
from pypto.frontend import entry, text
from pypto.language import parser
from pypto.language.parser import decorator, text_parser


@pytest.mark.parametrize("name", ["function", "inline", "program", "InlineFunction"])
def test_decorators(name):
    assert getattr(pl, name) is getattr(parser, name) is getattr(decorator, name) is getattr(entry, name)


@pytest.mark.parametrize("name", ["parse", "loads", "parse_program", "loads_program"])
def test_text_entry_points(name):
    assert getattr(pl, name) is getattr(parser, name) is getattr(text_parser, name) is getattr(text, name)


def test_parser_package_offers_the_language_names_that_it_needs():
    assert (parser.range, parser.yield_) == (pl.range, pl.yield_)
    assert (parser.Tensor, parser.Tile, parser.Scalar) == (pl.Tensor, pl.Tile, pl.Scalar)
    assert issubclass(parser.ParserError, Exception) and callable(parser.ErrorRenderer)
    assert set(parser.__all__) <= {*dir(parser)}


def test_from_import():
    from pypto.language import function, parse
    from pypto.language.parser import loads

    assert function is entry.function and parse is text.parse and loads is text.loads


def test_jit_is_loaded_when_it_is_first_used():
    code = """
        import sys, types
        import pypto.language as pl
        assert "pypto.jit" not in sys.modules
        jit = types.ModuleType("pypto.jit")
        jit.jit, jit.JITFunction = object(), type("JITFunction", (), {})
        sys.modules["pypto.jit"] = jit
        from pypto.language import JITFunction
        print(pl.jit is jit.jit, JITFunction is jit.JITFunction, "jit" in dir(pl))
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True)
    assert done.stdout.split() == ["True", "True", "True"], done.stderr
