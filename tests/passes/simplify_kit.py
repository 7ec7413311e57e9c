"""What the tests of Simplify share: the pass with its standing checks, and running a function before and after."""

import textwrap
from typing import Any

import numpy as np
from spec_kit import parse

from pypto import ir
from pypto.ops.values import ArrayValue
from pypto.passes.convert_to_ssa import convert_to_ssa
from pypto.passes.simplify import simplify
from pypto.runtime.interpreter import Interpreter


def source(text: str) -> ir.Program:
    return parse(textwrap.dedent(text))


def simplified(program: ir.Program | str) -> ir.Program:
    """The result of the pass, on which the pass has nothing left to do."""
    if isinstance(program, str):
        program = source(program)
    result = simplify()(program)
    again = simplify()(result)
    assert again is result, f"not idempotent:\n{result}\n{again}"
    return result


def same_form(before: str, after: str) -> ir.Program:
    """The pass makes ``after`` of ``before``, up to names."""
    result = simplified(before)
    ir.assert_structural_equal(result, source(after), enable_auto_mapping=True)
    return result


def unchanged(text: str) -> ir.Program:
    """The pass finds nothing to do."""
    program = source(text)
    assert simplify()(program) is program, str(simplify()(program))
    return program


def body(lines: str, result: str = "", params: str = "n: idx, m: idx") -> str:
    """A function over scalars, or (with tensor parameters) over tensors."""
    arrow = f" -> {result}" if result else ""
    return f"@Opaque\ndef run(self, {params}){arrow}:\n{textwrap.indent(textwrap.dedent(lines).strip(), '    ')}\n"


def run(program: ir.Program, *args: Any) -> list[Any]:
    """What ``run`` returns; arrays are copied first."""
    values = [ArrayValue(arg.copy()) if isinstance(arg, np.ndarray) else arg for arg in args]
    results = Interpreter(program).run(program["run"], values)
    return [value.data if isinstance(value, ArrayValue) else value for value in results]


def same_meaning(text: str, want: Any, *cases: tuple, ssa: bool = True) -> ir.Program:
    """Source and result, from the parsed form and from SSA form, compute what ``want`` computes."""
    program = source(text)
    forms = {"parsed": program, "simplified": simplified(program)}
    if ssa:
        forms["in SSA form"] = convert_to_ssa()(program)
        forms["simplified in SSA form"] = simplified(forms["in SSA form"])
    for args in cases:
        expected = want(*args)
        for name, form in forms.items():
            got = run(form, *args)
            for one, other in zip(got, expected if isinstance(expected, tuple) else (expected,), strict=True):
                np.testing.assert_array_equal(one, other, err_msg=f"{name}, {args}\n{form}")
    return forms["simplified"]
