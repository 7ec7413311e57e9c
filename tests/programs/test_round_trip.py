"""Printing, parsing, serialization and traversal keep every example program: the guarantee of the IR, end to end."""

import importlib.util
import pathlib
import sys

import numpy as np
import pytest

import pypto.language as pl
from pypto import ir

EXAMPLES = sorted((pathlib.Path(__file__).parents[2] / "examples").glob("*.py"))


def programs(path):
    """The pre-pass programs of an example file."""
    spec = importlib.util.spec_from_file_location(f"round_trip_{path.stem}", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    for entry in getattr(module, "ENTRIES", None) or [module.ENTRY]:
        if isinstance(entry, ir.Program):
            yield entry
        else:
            yield entry.specialize(*module.make_args(np.random.default_rng(0)))


@pytest.fixture(params=EXAMPLES, ids=lambda path: path.stem)
def program(request):
    return list(programs(request.param))


@pytest.mark.parametrize(("prefix", "explicit"), [("pl", False), ("pl", True), ("lang", False)])
def test_text(program, prefix, explicit):
    for node in program:
        text = ir.python_print(node, prefix, format=False, explicit_layout=explicit)
        again = pl.parse(text)
        ir.assert_structural_equal(node, again, enable_auto_mapping=True)
        assert ir.python_print(again, prefix, format=False, explicit_layout=explicit) == text


def test_bytes(program):
    for node in program:
        blob = ir.serialize(node)
        again = ir.deserialize(blob)
        ir.assert_structural_equal(node, again, enable_auto_mapping=True)
        assert ir.serialize(again) == blob


def test_traversal(program):
    class Everything(ir.IRMutator):
        """Visits all expressions and changes none."""

        def visit_expr(self, expr):
            return super().visit_expr(expr)

    for node in program:
        assert Everything().visit_program(node) is node
        for function in node.functions.values():
            body, _ = ir.deep_clone(function.body)
            assert ir.structural_equal(function.body, body, enable_auto_mapping=True)


def test_equal_programs_hash_alike(program):
    for node in program:
        again = pl.parse(node.as_python(format=False))
        assert ir.structural_hash(node, True) == ir.structural_hash(again, True)
