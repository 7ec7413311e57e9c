"""The file around the body, names, expressions, and what is refused before anything is printed."""

import re

import numpy as np
import pytest
from orchestration_kit import BASE, F32, Suite, final, generate, orchestration, ramp, zeros

import pypto
from pypto import codegen, ir
from pypto.passes import VerificationError
from pypto.pypto_core import codegen as core_codegen

suite = Suite("skeleton")

mixed = suite.add(
    "mixed",
    orchestration(
        "gain: pl.Scalar[pl.FP32], x: f32[8, 8], n: idx, y: pl.Out[f32[8, 8]], flag: pl.Scalar[pl.BOOL], k: pl.Scalar[pl.INT8]",
        """
with pl.scope():
    a = self.scale(x, gain, y)
""",
    ),
)
scalars_only = suite.add(
    "scalars_only",
    orchestration(
        "n: idx, u: pl.Scalar[pl.UINT16]",
        """
with pl.scope():
    t = pl.create_tensor([8, 8], dtype=pl.FP32)
    a = self.mark(n, t)
""",
    ),
)

HEAD = """#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "pto_orchestration_api.h"

extern "C" {

__attribute__((visibility("default")))
PTO2OrchestrationConfig aicpu_orchestration_config(const ChipTaskArgs& orch_args) {
    (void)orch_args;
    return PTO2OrchestrationConfig{
        .expected_arg_count = 6,
    };
}

__attribute__((visibility("default")))
void aicpu_orchestration_entry(const ChipTaskArgs& orch_args) {
    // External tensors
    const ChipTensor& ext_x = orch_args.tensor(0).ref();
    const ChipTensor& ext_y = orch_args.tensor(1).ref();

    // Scalar params
    float gain = from_u64<float>(orch_args.scalar(0));
    int64_t n = from_u64<int64_t>(orch_args.scalar(1));
    bool flag = from_u64<bool>(orch_args.scalar(2));
    int8_t k = from_u64<int8_t>(orch_args.scalar(3));

    PTO2_SCOPE() {

        // Task 0: scale
"""


def test_the_whole_file():
    assert mixed.code.startswith(HEAD)
    assert mixed.code.endswith('    }\n}\n\n}  // extern "C"\n')
    x, y = ramp(8, 8), zeros(8, 8)
    mixed.run([x, y], [F32(3), 0, True, 1])
    np.testing.assert_array_equal(y, 3 * x)
    assert mixed.result.orchestration_signature == ["IN", "OUT"]


def test_scalars_only():
    assert "// External tensors" not in scalars_only.code
    assert "uint16_t u = from_u64<uint16_t>(orch_args.scalar(1));" in scalars_only.lines
    assert ".expected_arg_count = 2," in scalars_only.code
    scalars_only.run([], [3, 5])


def test_the_same_module_under_both_names():
    assert pypto.codegen is codegen
    assert core_codegen is codegen
    assert codegen.generate_orchestration.__module__.startswith("pypto.codegen")
    with pytest.raises(AttributeError):
        mixed.result.code = ""


# --- extents of run time ----------------------------------------------------------------------------------------------

TALL = """
@AIV
def tall(self, x: f32[R, 8], i: idx, y: pl.InOut[f32[R, 8]]) -> f32[R, 8]:
    y1 = pl.store(pl.load(y, [0, 0], [8, 8]), [0, 0], y)
    return y
"""


def tall(args):
    args.tensor(1)[args.scalar(2)] += args.tensor(0)[args.scalar(2)]


used = suite.add(
    "used",
    orchestration(
        "x: f32[R, 8], y: pl.InOut[f32[R, 8]]",
        """
with pl.scope():
    for i in pl.parallel(0, R, 1):
        a = self.tall(x, i, y)
    d = R // 2
""",
    )
    + TALL,
    kernels={"tall": tall},
)
unused = suite.add(
    "unused",
    orchestration(
        "x: f32[R, 8], y: pl.InOut[f32[R, 8]], c: i32[1]",
        """
with pl.scope():
    a = self.tall(x, 1, y)
    m = pl.read(c, [0])
    R__ssa_v1 = pl.cast(m, pl.INDEX)
    for i in pl.parallel(0, R__ssa_v1 // 2, 1):
        b = self.tall(x, i, y)
""",
    )
    + TALL,
    kernels={"tall": tall},
)
given = suite.add(
    "given",
    orchestration(
        "R: idx, x: f32[R, 8], y: pl.InOut[f32[R, 8]]",
        """
with pl.scope():
    for i in pl.parallel(0, R, 1):
        a = self.tall(x, i, y)
""",
    )
    + TALL,
    kernels={"tall": tall},
)


def test_an_extent_that_the_body_mentions_is_read_from_its_tensor():
    assert "// Dynamic-dim symbols (extent of the declaring argument)" in used.lines
    assert "int64_t R = (int64_t)orch_args.tensor(0).ref().shapes[0];" in used.lines
    assert "int64_t d = (R / 2);" in used.lines  # an extent is not negative
    assert "Dynamic-dim" not in unused.code
    assert "for (int64_t i = 0; i < pypto_floor_div(R, 2); i += 1) {" in unused.lines  # R is a variable of the body
    assert "Dynamic-dim" not in given.code and given.code.count("int64_t R ") == 1
    for case, scalars, want in ((used, [], 5), (unused, [], 2), (given, [3], 3)):
        x, y = ramp(5, 8) + 1, zeros(5, 8)
        case.run([x, y, *([np.array([4], np.int32)] if case is unused else [])], scalars)
        assert np.count_nonzero(y[:, 0]) == want


# --- names ------------------------------------------------------------------------------------------------------------

named = suite.add(
    "named",
    orchestration(
        "template: f32[8, 8], orch_args: pl.InOut[f32[8, 8]], int: idx, n: idx",
        """
with pl.scope():
    for _ in pl.range(2):
        with pl.scope():
            register = n + 1
            a = self.part(template, register, orch_args)
    größe = n + 2
    b = self.part(template, größe, orch_args)
    alloc_0 = pl.create_tensor([8, 8], dtype=pl.FP32)
    rt_submit_aiv_task = self.plus(template, alloc_0)
    params_t0 = pl.slice(rt_submit_aiv_task, [8, 8], [0, 0])
    task_1_outs, tid = pl.submit(self.fix, params_t0, orch_args)
    c = self.part(template, int, orch_args)
    ext_template = pl.slice(template, [8, 8], [0, 0])
    d = self.fix(ext_template, orch_args)
    if n > 0:
        k = n * 3
        e = self.mark(k, orch_args)
    else:
        k__ssa_v1 = n * 2
        f = self.mark(k__ssa_v1, orch_args)
""",
    ),
)


def test_names_that_mean_something_in_cpp():
    lines = named.lines
    assert "const ChipTensor& ext_template = orch_args.tensor(0).ref();" in lines
    assert "const ChipTensor& ext_orch_args = orch_args.tensor(1).ref();" in lines
    assert "int64_t int_1 = from_u64<int64_t>(orch_args.scalar(0));" in lines
    assert "for (int64_t i = 0; i < 2; i += 1) {" in lines
    assert "int64_t register_1 = (n + 1);" in lines
    assert "int64_t gru00f6u00dfe = (n + 2);" in lines
    assert "int64_t k = (n * 3);" in lines and "int64_t k__ssa_v1 = (n * 2);" in lines
    x, y = ramp(8, 8), zeros(8, 8)
    named.run([x, y], [4, 1])
    want = zeros(8, 8)
    for row in (2, 3):
        want[row] = x[row] + 1
    want += x + 1
    want[4] = x[4] + 1
    want += x
    want[3] += 1
    np.testing.assert_array_equal(y, want)


def test_names_are_unique_in_the_function():
    for case in suite.cases.values():
        declared = re.findall(r"^ +(?:const )?(?:\w+)&? (\w+)(?:\[\d+\])? = ", case.code, re.MULTILINE)
        assert len(declared) == len(set(declared)), case.name


many = suite.add(
    "many",
    orchestration(
        "x: f32[8, 8], y: pl.InOut[f32[8, 8]]",
        """
with pl.scope():
    y__ssa_v1 = self.fix(x, y)
    y__ssa_v2 = self.fix(x, y__ssa_v1)
    y__ssa_v3 = y__ssa_v2
    y__ssa_v4 = self.twice(y__ssa_v3)
""",
    ),
)


def test_a_parameter_that_is_bound_many_times_is_one_object():
    assert many.code.count("ext_y") == 1 + 3 and "y__ssa" not in many.code
    x, y = ramp(8, 8), zeros(8, 8)
    many.run([x, y])
    np.testing.assert_array_equal(y, 4 * x)


# --- expressions ------------------------------------------------------------------------------------------------------

EXPRESSIONS = {
    "a + b * 2 - 3": lambda a, b: a + b * 2 - 3,
    "a // b": lambda a, b: a // b,
    "a % b": lambda a, b: a % b,
    "-a // 3": lambda a, b: -a // 3,
    "-(a % 4)": lambda a, b: -(a % 4),
    "min(a, b) + max(a, 2)": lambda a, b: min(a, b) + max(a, 2),
    "(a & 6) | (b ^ 5)": lambda a, b: (a & 6) | (b ^ 5),
    "(a << 2) >> 1": lambda a, b: (a << 2) >> 1,
}
HELD = """
@AIV
def hold(self, i: idx, v: idx, y: pl.InOut[i64[16]]) -> i64[16]:
    y1 = pl.store(pl.load(y, [0], [16]), [0], y)
    return y
"""
computed = suite.add(
    "computed",
    orchestration(
        "a: idx, b: idx, y: pl.InOut[i64[16]]",
        "with pl.scope():\n"
        + "".join(f"    v{i} = {text}\n    h{i} = self.hold({i}, v{i}, y)\n" for i, text in enumerate(EXPRESSIONS))
        + """
    flag = a > 3 and not (b == 2) or a != b
    if flag:
        z = self.hold(15, 1, y)
""",
    )
    + HELD,
    kernels={"hold": lambda args: args.tensor(0).__setitem__(args.scalar(1), args.scalar(2))},
)


@pytest.mark.parametrize(("a", "b"), [(7, 2), (-7, 2), (7, -2), (-8, 4), (3, 3)])
def test_expressions_mean_what_they_mean_in_python(a, b):
    y = np.zeros(16, np.int64)
    computed.run([y], [a, b])
    assert y[: len(EXPRESSIONS)].tolist() == [f(a, b) for f in EXPRESSIONS.values()]
    assert y[15] == ((a > 3 and b != 2) or a != b)


def test_how_expressions_look():
    lines = computed.lines
    assert "int64_t v0 = ((a + (b * 2)) - 3);" in lines
    assert "int64_t v1 = pypto_floor_div(a, b);" in lines
    assert "int64_t v5 = (std::min<int64_t>(a, b) + std::max<int64_t>(a, 2));" in lines
    assert "#include <algorithm>" in computed.code


# --- refusals ---------------------------------------------------------------------------------------------------------


def placed(body="a = self.twice(y)", head="x: f32[8, 8], y: pl.InOut[f32[8, 8]]"):
    return final(orchestration(head, body) + BASE)


def test_a_function_of_another_program():
    program = placed()
    run = program.get_function("run")
    with pytest.raises(ValueError, match="is not present in the supplied program"):
        codegen.generate_orchestration(program, run.replace(name="other"))
    with pytest.raises(VerificationError, match="is a stale handle") as caught:
        codegen.generate_orchestration(program, run.replace())
    assert "Re-fetch the Function" in str(caught.value)
    for arguments in ((None, run), (program, None)):
        with pytest.raises(ValueError):
            codegen.generate_orchestration(*arguments)
    with pytest.raises(ValueError, match="not an Orchestration"):
        codegen.generate_orchestration(program, program.get_function("twice"))


def test_preconditions_are_checked_at_once():
    unplaced = (
        BASE
        + """
@Orchestration
def run(self, x: f32[8, 8], y: pl.InOut[f32[8, 8]]):
    for i in pl.range(2):
        a = self.twice(y)
"""
    )
    program = final(unplaced, directed=False)
    with pytest.raises(VerificationError, match="GenerateOrchestration preconditions") as caught:
        codegen.generate_orchestration(program, program.get_function("run"))
    rules = {d.rule_name for d in caught.value.diagnostics}
    assert {"RuntimeScopesMaterialized", "CallDirectionsResolved"} <= rules


def test_a_call_of_a_function_that_is_not_there():
    program = placed()
    program = program.with_functions([f for f in program.functions.values() if f.name != "twice"])
    with pytest.raises(VerificationError, match="references undefined function 'twice'"):
        codegen.generate_orchestration(program, program.get_function("run"))


def test_the_text_is_the_same_each_time():
    for case in suite.cases.values():
        assert codegen.generate_orchestration(case.program, case.function).code == case.result.code
        again = ir.deserialize(ir.serialize(case.program))
        assert codegen.generate_orchestration(again, again.get_function("run")).code == case.result.code


def test_older_spellings_of_the_runtime():
    code = codegen.generate_orchestration(mixed.program, mixed.function, runtime="task_tensor").code
    assert "const TaskTensor& ext_x" in code and "ChipTensor" not in code


def test_a_function_with_too_many_arguments():
    params = ", ".join(f"s{i}: idx" for i in range(129))
    with pytest.raises(ValueError, match="takes 129 scalars, an orchestration takes at most 128"):
        generate(orchestration(f"y: pl.InOut[f32[8, 8]], {params}", "a = self.twice(y)"))
