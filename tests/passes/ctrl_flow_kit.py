"""What the tests of CtrlFlowTransform share: running a source, its lowered form, and the same words as Python."""

import textwrap

import numpy as np
from spec_kit import parse

from pypto import ir
from pypto.ir.traversal import walk
from pypto.ops.values import ArrayValue
from pypto.passes.ctrl_flow_transform import ctrl_flow_transform
from pypto.runtime.interpreter import Interpreter


def lower(program: ir.Program) -> ir.Program:
    """The result of the pass, on which the pass has nothing left to do."""
    result = ctrl_flow_transform()(program)
    assert ctrl_flow_transform()(result) is result
    return result


def escapes(node) -> list:
    return [s for s in walk(node) if isinstance(s, (ir.BreakStmt, ir.ContinueStmt))]


def run(program: ir.Program, *args) -> list:
    """What ``run`` returns, with no pass in between; arrays are written in place."""
    values = [ArrayValue(a) if isinstance(a, np.ndarray) else a for a in args]
    return Interpreter(program).run(program["run"], values)


def python_function(text: str):
    """A function in the same words, as Python runs them."""
    names: dict = {}
    exec(textwrap.dedent(text), names)
    return names["run"]


def check(text: str, want, *cases: tuple, lowered: bool = True) -> ir.Program:
    """Source and result compute what ``want`` computes."""
    program = parse(textwrap.dedent(text))
    result = lower(program)
    if lowered:
        assert escapes(program) and not escapes(result)
    for args in cases:
        expected = want(*args)
        expected = list(expected) if isinstance(expected, tuple) else [expected]
        assert run(program, *args) == expected, f"source, {args}"
        assert run(result, *args) == expected, f"result, {args}\n{result}"
    return result


def version(body: str, language: str) -> str:
    """The lines for ``py`` or for ``pl``: the others are marked ``#pl`` or ``#py``."""
    other = " #py" if language == "pl" else " #pl"
    lines = [line.removesuffix(f" #{language}") for line in body.split("\n") if not line.endswith(other)]
    return "\n".join(lines)
