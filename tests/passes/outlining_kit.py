"""What the tests of outlining share: programs to SSA form, the three passes with checks, and meaning by NumPy."""

import textwrap
from collections.abc import Callable
from typing import Any

import numpy as np
from spec_kit import parse

from pypto import ir
from pypto.ir.tree import walk
from pypto.ops.values import ArrayValue, Buffer
from pypto.passes.convert_to_ssa import convert_to_ssa
from pypto.passes.flatten_call_expr import flatten_call_expr
from pypto.passes.outline_cluster_scopes import outline_cluster_scopes
from pypto.passes.outline_hierarchy_scopes import outline_hierarchy_scopes
from pypto.passes.outline_incore_scopes import outline_incore_scopes
from pypto.runtime.interpreter import Interpreter
from pypto.verify.properties import IRProperty, get_structural_properties, property_set
from pypto.verify.registry import PropertyVerifierRegistry

OUTLINERS = (outline_hierarchy_scopes, outline_incore_scopes, outline_cluster_scopes)
FORM = property_set(IRProperty.SSAForm, IRProperty.UseAfterDef)
RESULT = FORM.union_with(get_structural_properties())
SCOPES = (ir.InCoreScopeStmt, ir.HierarchyScopeStmt, ir.ClusterScopeStmt, ir.SpmdScopeStmt)


def source(text: str, *, ssa: bool = True, flatten: bool = False) -> ir.Program:
    """The program of these methods, in SSA form."""
    program = parse(textwrap.dedent(text))
    if ssa:
        program = convert_to_ssa()(program)
    if flatten:
        program = flatten_call_expr()(program)
    PropertyVerifierRegistry.verify_or_throw(FORM, program)
    return program


def apply(factory: Any, program: ir.Program) -> ir.Program:
    """One pass: its result is in SSA form and, if its input was, a valid program; the pass has nothing to do there."""
    step = factory()
    after = step(program)
    valid = not PropertyVerifierRegistry.verify(RESULT, program)
    PropertyVerifierRegistry.verify_or_throw(RESULT if valid else FORM, after)
    assert step(after) is after
    return after


def outline(program: ir.Program) -> ir.Program:
    """All three passes; no scope that is to become a function is left."""
    for factory in OUTLINERS:
        program = apply(factory, program)
    return program


def incore(text: str, **how: Any) -> ir.Program:
    """OutlineIncoreScopes on the program of these methods."""
    return apply(outline_incore_scopes, source(text, **how))


def expect(after: ir.Program, text: str) -> None:
    """The program equals the one of these methods."""
    ir.assert_structural_equal(after, parse(textwrap.dedent(text)), enable_auto_mapping=True)


def scopes_left(program: ir.Program) -> list[Any]:
    return [node for node in walk(program) if isinstance(node, SCOPES)]


Args = Callable[[], dict[str, Any]]


def _entry(program: ir.Program) -> ir.Function:
    """The function that nothing calls and that does not run on a core."""
    called = {
        node.op.name
        for node in walk(program)
        if isinstance(node, (ir.Call, ir.Submit)) and isinstance(node.op, ir.GlobalVar)
    }
    kernels = (ir.FunctionType.InCore, ir.FunctionType.AIC, ir.FunctionType.AIV)
    found = [f for f in program.functions.values() if f.name not in called and f.func_type not in kernels]
    assert len(found) == 1, [f.name for f in found]
    return found[0]


def _run(program: ir.Program, values: dict[str, Any], schedule: str, seed: int) -> list[Any]:
    boxed = [
        ArrayValue(v, Buffer(v, name, external=True)) if isinstance(v, np.ndarray) else v for name, v in values.items()
    ]
    results = Interpreter(program, schedule, seed).run(_entry(program), boxed)
    return [r.data if isinstance(r, ArrayValue) else r for r in results]


def run_all_orders(program: ir.Program, args: Args, want: dict[str, Any]) -> None:
    """The program computes ``want`` (written parameters by name, the results as ``return``) in every tried order."""
    for schedule, seed in [("submit", 0), *(("random", seed) for seed in range(3))]:
        values = {k: v.copy() if isinstance(v, np.ndarray) else v for k, v in args().items()}
        results = _run(program, values, schedule, seed)
        for name, value in want.items():
            if name == "return":
                wanted = value if isinstance(value, tuple) else (value,)
                assert len(results) == len(wanted)
                pairs = list(zip(results, wanted, strict=True))
            else:
                pairs = [(values[name], value)]
            for one, other in pairs:
                np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6, err_msg=f"{name}, {schedule} {seed}")


def check_meaning(text: str, args: Args, want: Callable[..., dict[str, Any]], **how: Any) -> ir.Program:
    """Source, SSA form and outlined program all compute what NumPy does; gives the outlined program."""
    wanted = want(**args())
    program = source(text, **how)
    run_all_orders(parse(textwrap.dedent(text)), args, wanted)
    run_all_orders(program, args, wanted)
    after = outline(program)
    assert not scopes_left(after)
    run_all_orders(after, args, wanted)
    return after


def body_of(program: ir.Program, name: str) -> str:
    """The printed body of a function, without types."""
    function = program.get_function(name)
    assert function is not None, f"no function {name}: {[g.name for g in program.functions]}"
    lines = ir.python_print(function, concise=True, format=False).splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith("def ") or line.startswith("    def "))
    return textwrap.dedent("\n".join(lines[start + 1 :])).rstrip()


def signature_of(program: ir.Program, name: str) -> list[tuple[str, str]]:
    """Parameters and directions of a function."""
    function = program.get_function(name)
    assert function is not None, f"no function {name}: {[g.name for g in program.functions]}"
    return [
        (p.name_hint.partition("__")[0], d.name)
        for p, d in zip(function.params, function.param_directions, strict=True)
    ]
