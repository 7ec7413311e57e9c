"""The programs of the specification's fragments: passes, emitted C++, run with kernels that the interpreter executes.

What is expected is stated by the examples themselves, as NumPy.
"""

import re
import textwrap

import numpy as np
import pytest
import test_spec_orchestration as spec
from orchestration_kit import Case, Suite, back_end
from spec_kit import parse

from pypto import DataType, ir, passes
from pypto.ir.names import base_name
from pypto.ir.type import TensorType
from pypto.runtime.execute import Executable
from pypto.runtime.signature import param_infos

suite = Suite("meaning")

# What some examples need that this way of running does not have.
ELSEWHERE = {
    "blocks as a task": "kernels that ask which block they are",
    "a launch with everything, 0": "kernels that ask which block they are",
    "a launch with everything, 7": "kernels that ask which block they are",
    "created tensors": "tensor.full is a computation, for which other passes make a kernel",
    "a carry in place": "the result is no parameter, and orchestration code gives back nothing else",
    "a carry that is rebound": "the result is no parameter, and orchestration code gives back nothing else",
}


def cases():
    for example in spec.EXAMPLES:
        if example.args is not None and example.name not in ELSEWHERE:
            for form, text in example.texts.items():
                yield example, form, textwrap.dedent(text) + "\n" + textwrap.dedent(example.common)


def kernel(program, function):
    """A kernel as a function of the task's arguments."""
    run = Executable(program.with_functions([function]), function, param_infos(function), function.name)

    def call(args):
        values, slot = [], 0
        tensors = [p for p in function.params if isinstance(p.type, TensorType)]
        for param in function.params:
            if isinstance(param.type, TensorType):
                index = next(i for i, p in enumerate(tensors) if p is param)
                value = args.tensor(index)
                while value.ndim > len(param.type.shape):  # a part of a tensor with more axes has unit axes in front
                    value = value[0]
                values.append(value)
            else:
                values.append(scalar(args.scalar(len(tensors) + slot), param.type.dtype))
                slot += 1
        run.run(values, {}, None)

    return call


def scalar(bits, dtype):
    return float(np.array(bits & 0xFFFFFFFF, np.uint32).view(np.float32)) if dtype is DataType.FP32 else bits


def prepared(text, derive):
    """In final form; kernel scopes become functions, all kernels vector kernels."""
    program = parse(text)
    if "pl.at(" in text or "@Opaque" in text:
        for make in (passes.convert_to_ssa, passes.simplify, passes.normalize_stmt_structure, passes.flatten_call_expr):
            program = make()(program)
        program = passes.outline_incore_scopes()(program)
    functions = []
    for function in program.functions.values():
        if function.func_type is ir.FunctionType.InCore:
            function = ir.Function(
                function.name,
                list(zip(function.params, function.param_directions, strict=True)),
                function.return_types,
                function.body,
                function.span,
                ir.FunctionType.AIV,
                attrs=function.attrs,
            )
        functions.append(function)
    return back_end(program.with_functions(functions), derive)


def made(example, form, text, derive):
    program = prepared(text, derive)
    entry = next(f for f in program.functions.values() if f.func_type is ir.FunctionType.Orchestration)
    name = re.sub(r"\W+", "_", f"{example.name} {form}" + (" derived" if derive else ""))
    kernels = {f.name: kernel(program, f) for f in program.functions.values() if f.func_type is ir.FunctionType.AIV}
    case = suite.cases[name] = Case(suite, name, program, entry.name, kernels)
    return pytest.param(example, case, id=name)


# A task that overwrites what another one reads waits for it by an edge only: the runtime does not look for readers.
OVERWRITES = "disjoint halves"
PARAMS = [made(*item, False) for item in cases() if item[0].name != OVERWRITES]
# With derived edges the runtime looks up less and MANUAL scopes nothing: in any legal order the values are the same.
DERIVED = [made(*item, True) for item in cases() if item[1] in ("before", "written")]


@pytest.mark.parametrize(("example", "case"), PARAMS)
def test_values(example, case):
    check(example, case)


@pytest.mark.parametrize(("example", "case"), DERIVED)
@pytest.mark.parametrize("seed", range(3))
def test_values_with_derived_edges(example, case, seed):
    check(example, case, random=True, seed=seed)


def test_some_programs_have_derived_edges():
    texts = [param.values[1].result.code for param in DERIVED]
    assert sum("PTO2ScopeMode::MANUAL" in text for text in texts) >= 5
    assert sum("_tid" in text for text in texts) >= 5


def check(example, case, **options):
    args = example.args()
    want = example.want(**{k: v.copy() if isinstance(v, np.ndarray) else v for k, v in example.args().items()})
    order = case.function.params
    tensors = [args[base_name(p.name_hint)] for p in order if isinstance(p.type, TensorType)]
    scalars = [args[base_name(p.name_hint)] for p in order if not isinstance(p.type, TensorType)]
    scalars = [np.float32(s) if isinstance(s, float) else s for s in scalars]
    case.run(tensors, scalars, **options)
    for name, value in want.items():
        got = args[name] if name != "return" else None
        if got is not None:
            np.testing.assert_allclose(got, np.broadcast_to(value, got.shape), rtol=1e-5, atol=1e-5, err_msg=name)


def test_nothing_is_left_out_by_name_only():
    assert ELSEWHERE.keys() <= {example.name for example in spec.EXAMPLES}
