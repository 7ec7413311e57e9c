"""The C++ of an Orchestration function: it launches the tasks of a program through the task runtime.

The text follows the program statement by statement. All decisions were made by passes and stand in the program: scopes
are ``RuntimeScopeStmt``, carries are stamped on loops, directions on calls, and a callee's return statement says which
argument each result is. So a program that lacks one of these is refused, before anything is printed.

Before (as the last pass leaves it)::

    with pl.scope():
        for i, (acc,) in pl.range(4, init_values=(out,), attrs={"iter_arg_rebind_0": False}):
            with pl.scope():
                acc2 = self.add_row(x, i, acc, attrs={"arg_directions": [pl.adir.input, pl.adir.scalar, pl.adir.inout]})
                res = pl.yield_(acc2)

After (inside the entry function)::

    PTO2_SCOPE() {
        for (int64_t i = 0; i < 4; i += 1) {
            PTO2_SCOPE() {

                // Task 0: add_row
                CoreTaskArgs params_t0;
                params_t0.add_input(ext_x);
                params_t0.add_inout(ext_out);
                params_t0.add_scalar(i);
                rt_submit_aiv_task(0, params_t0);
            }
        }
    }

Cost: linear in the size of the function, and in its nesting depth for names that leave their blocks.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import msgspec

import pypto.verify as _verifiers  # noqa: F401  registers the verifiers

from ..ir.enums import CoreType, FunctionType, ParamDirection
from ..ir.paused_gc import paused_gc
from ..ir.program import Function, Program
from ..ir.recursion import deep_recursion
from ..ir.span import Span
from ..ir.type import CommCtxType, TensorType
from ..target.selection import selected_target
from ..verify.diagnostics import DiagnosticSeverity, VerificationError, generate_report
from ..verify.facts import FACTS
from ..verify.properties import IRProperty, IRPropertySet, property_set
from .cpp_expressions import HELPERS
from .errors import CodegenError
from .orch.flow import Flow
from .orch.wrappers import infer_function_core_type
from .runtime_names import CURRENT, VERSIONS, RuntimeNames, scalar_type

_P = IRProperty
_PRECONDITIONS = (
    _P.SplitIncoreOrch,
    _P.CallDirectionsResolved,
    _P.OrchestrationReferencesResolved,
    _P.RuntimeScopesMaterialized,
    _P.ReturnParamsExplicit,
    _P.IterArgCarryClassified,
)
_DIRECTIONS = {ParamDirection.In: "IN", ParamDirection.Out: "OUT", ParamDirection.InOut: "INOUT"}
_C_HEADERS = ("stddef.h", "stdint.h", "stdio.h")


class OrchestrationResult(msgspec.Struct, frozen=True):
    """The code of an orchestration function, and the tables that its kernels are registered by.

    ``func_name_to_signature``: per kernel what a task does to each of its tensors (IN, OUT, INOUT), in task order;
    ``orchestration_signature``: the same for the tensors of the function. ``positions``: line of the code (from 1) ->
    where in the user's program.
    """

    code: str
    func_name_to_id: dict[str, int]
    func_name_to_core_type: dict[str, CoreType]
    func_name_to_signature: dict[str, list[str]]
    orchestration_signature: list[str]
    positions: Mapping[int, Span] = MappingProxyType({})


@paused_gc()
def generate_orchestration(
    program: Program, func: Function, *, runtime: str | RuntimeNames = CURRENT
) -> OrchestrationResult:
    """The C++ of ``func``, an Orchestration function of ``program`` as the last pass left it.

    ``runtime``: the version of the runtime's interface, by name, or its spellings.

    Raises ``VerificationError`` when the program lacks what passes decide, ``ValueError`` for what can't be printed.
    """
    if not isinstance(program, Program):
        raise ValueError(f"generate_orchestration needs an ir.Program, got {type(program).__name__}")
    if not isinstance(func, Function):
        raise ValueError(f"generate_orchestration needs an ir.Function, got {type(func).__name__}")
    names = VERSIONS[runtime] if isinstance(runtime, str) else runtime
    _check_function(program, func)
    _check_preconditions(program)
    target = selected_target()
    printer = Flow(program, func, names, target.core_count_method if target is not None else "set_block_num")
    _check_arguments(func, printer, names)
    with deep_recursion():
        printer.body()
        lines = printer.out.lines()
    before, after = _frame(func, printer, names)
    positions = {len(before) + i: place for i, (_, place) in enumerate(lines, 1) if place is not None}
    return OrchestrationResult(
        code="\n".join([*before, *(text for text, _ in lines), *after]) + "\n",
        func_name_to_id=printer.kernel_ids,
        func_name_to_core_type=printer.core_types,
        func_name_to_signature=printer.signatures,
        orchestration_signature=[
            _DIRECTIONS[direction]
            for param, direction in zip(func.params, func.param_directions, strict=True)
            if isinstance(param.type, TensorType)
        ],
        positions=MappingProxyType(positions),
    )


# --- what must hold ---------------------------------------------------------------------------------------------------


def _check_function(program: Program, func: Function) -> None:
    found = program.get_function(func.name)
    if found is None:
        raise ValueError(f"function '{func.name}' is not present in the supplied program")
    if found is not func:
        raise VerificationError(
            f"the function '{func.name}' is a stale handle: the program has another function of this name, made by a "
            "pass that ran later. Re-fetch the Function: program.get_function(name)"
        )
    if func.func_type is not FunctionType.Orchestration:
        raise ValueError(f"function '{func.name}' is {func.func_type.name}, not an Orchestration function")


def _check_preconditions(program: Program) -> None:
    wanted: IRPropertySet = property_set(*_PRECONDITIONS)
    found = [d for d in FACTS.establish(wanted, program) if d.severity is DiagnosticSeverity.Error]
    if found:
        raise VerificationError(
            f"GenerateOrchestration preconditions do not hold: run the passes of the Default strategy first\n"
            f"{generate_report(found)}",
            found,
            "GenerateOrchestration",
            wanted.to_list(),
        )


def _check_arguments(func: Function, printer: Flow, names: RuntimeNames) -> None:
    counts = (
        (len(printer.tensor_params), names.max_tensors, "tensors"),
        (len(printer.scalar_params), names.max_scalars, "scalars"),
    )
    for count, limit, what in counts:
        if count > limit:
            raise CodegenError(f"'{func.name}' takes {count} {what}, an orchestration takes at most {limit}", func.span)


# --- the file around the body -----------------------------------------------------------------------------------------


def _frame(func: Function, printer: Flow, names: RuntimeNames) -> tuple[list[str], list[str]]:
    """The lines in front of the body and behind it."""
    lines = [f"#include <{name}>" for name in _C_HEADERS]
    lines += [f"#include <{name}>" for name in sorted(printer.expressions.headers)]
    lines += ["", '#include "pto_orchestration_api.h"', ""]
    for helper in sorted(printer.expressions.helpers):
        lines += [*HELPERS[helper], ""]
    lines += ['extern "C" {', ""]
    visible = '__attribute__((visibility("default")))'
    args = f"const {names.orchestration_args}& orch_args"
    count = len(printer.tensor_params) + len(printer.scalar_params)
    lines += [
        visible,
        f"PTO2OrchestrationConfig aicpu_orchestration_config({args}) {{",
        "    (void)orch_args;",
        "    return PTO2OrchestrationConfig{",
        f"        .expected_arg_count = {count},",
        "    };",
        "}",
        "",
        visible,
        f"void aicpu_orchestration_entry({args}) {{",
    ]
    values = printer.values
    tensors = [
        f"const {names.tensor}& {values[p]} = orch_args.tensor({i}).ref();" for i, p in enumerate(printer.tensor_params)
    ]
    scalars = [_scalar(p, str(values[p]), i) for i, p in enumerate(printer.scalar_params)]
    symbols = list(printer.symbol_lines.values())
    sections = (
        ("// External tensors", tensors),
        ("// Scalar params", scalars),
        ("// Dynamic-dim symbols (extent of the declaring argument)", symbols),
    )
    for comment, section in sections:
        if section:
            lines += [f"    {text}" for text in (comment, *section)] + [""]
    return lines, ["}", "", '}  // extern "C"']


def _scalar(param: Any, name: str, index: int) -> str:
    if isinstance(param.type, CommCtxType):
        return f"uint64_t {name} = orch_args.scalar({index});"
    kind = scalar_type(param.type.dtype)
    return f"{kind} {name} = from_u64<{kind}>(orch_args.scalar({index}));"


__all__ = ["OrchestrationResult", "generate_orchestration", "infer_function_core_type"]
