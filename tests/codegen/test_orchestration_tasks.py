"""Launches: kinds of callees, arguments, options, results, and the tables that go with the code."""

import numpy as np
import pytest
from orchestration_kit import BASE, Suite, edges, final, generate, orchestration, ramp, zeros

from pypto import codegen, ir
from pypto.codegen.errors import CodegenError
from pypto.diag.errors import InternalError
from pypto.target.model import BackendType
from pypto.target.selection import using_backend

suite = Suite("tasks")
XY = "x: f32[8, 8], y: pl.InOut[f32[8, 8]]"

KINDS = """
@AIC
def cube(self, x: f32[8, 8], y: pl.Out[f32[8, 8]]) -> f32[8, 8]:
    y1 = pl.store(pl.load(x, [0, 0], [8, 8]), [0, 0], y)
    return y
@pl.function(type=pl.FunctionType.AIV, attrs={"dual_aiv_dispatch": True})
def halves(self, x: f32[8, 8], y: pl.Out[f32[8, 8]]) -> f32[8, 8]:
    y1 = pl.store(pl.load(x, [0, 0], [8, 8]), [0, 0], y)
    return y
@AIV
def rows(self, x: f32[8, 8], n: idx, y: pl.InOut[f32[8, 8]]) -> f32[8, 8]:
    y1 = pl.store(pl.load(x, [0, 0], [8, 8]), [0, 0], y)
    return y
@AIC
def lane_c(self, x: f32[8, 8], y: pl.InOut[f32[8, 8]]) -> f32[8, 8]:
    y1 = pl.store(pl.load(x, [0, 0], [8, 8]), [0, 0], y)
    return y
@AIV
def lane_v(self, x: f32[8, 8], y: pl.InOut[f32[8, 8]]) -> f32[8, 8]:
    y1 = pl.store(pl.load(x, [0, 0], [8, 8]), [0, 0], y)
    return y
@Spmd
def rows_spmd(self, y: pl.InOut[f32[8, 8]], x: f32[8, 8]) -> f32[8, 8]:
    y1 = self.rows(x, 3, y, attrs={"arg_directions": [pl.adir.input, pl.adir.scalar, pl.adir.inout]})
    return y
@Group
def pair(self, x: f32[8, 8], y: pl.InOut[f32[8, 8]]) -> f32[8, 8]:
    y1 = self.lane_c(x, y)
    y2 = self.lane_v(x, y)
    return y
@Group
def alone(self, x: f32[8, 8], y: pl.InOut[f32[8, 8]]) -> f32[8, 8]:
    y1 = self.lane_v(x, y)
    return y
@Spmd
def pair_spmd(self, x: f32[8, 8], y: pl.InOut[f32[8, 8]]) -> f32[8, 8]:
    y1 = self.pair(x, y)
    return y
"""


def copy(args):
    args.tensor(1)[:] = args.tensor(0)


def add_row(args):
    args.tensor(1)[args.block_idx] += args.tensor(0)[args.block_idx] * args.scalar(2)


def add(args):
    if args.lane == 0:
        args.tensor(1)[:] += args.tensor(0)


KERNELS = {"cube": copy, "halves": copy, "rows": add_row, "lane_c": add, "lane_v": add}

kinds = suite.add(
    "kinds",
    orchestration(
        XY,
        """
with pl.scope():
    t = pl.create_tensor([8, 8], dtype=pl.FP32)
    a = self.cube(x, t)
    u = pl.create_tensor([8, 8], dtype=pl.FP32)
    b = self.halves(a, u)
    c, t1 = pl.spmd_submit(self.rows_spmd, y, b, core_num=4, sync_start=True)
    d = self.pair(x, c)
    e = self.alone(x, d)
    f, t2 = pl.spmd_submit(self.pair_spmd, x, e, core_num=1)
""",
    )
    + KINDS,
    kernels=KERNELS,
)


def test_kinds_of_callees():
    lines = kinds.lines
    for text in (
        "// Task 0: cube",
        "rt_submit_aic_task(0, params_t0);",
        "// Task 1: halves",
        "MixedKernels mixed_1 = {INVALID_KERNEL_ID, 1, 1};",
        "rt_submit_task(mixed_1, params_t1);",
        "// Spmd rows_spmd: rows",
        "params_t2.launch_spec.set_block_num(4);",
        "params_t2.launch_spec.set_require_sync_start(true);",
        "// Group pair: MixedKernels (AIC + AIV lanes)",
        "MixedKernels mixed_3 = {3, 4, INVALID_KERNEL_ID};",
        "// Group alone: AIV-only SPMD",
        "rt_submit_aiv_task(4, params_t4);",
        "MixedKernels mixed_5 = {3, 4, INVALID_KERNEL_ID};",
        "TaskOutputTensors task_5_outs = rt_submit_task(mixed_5, params_t5);",
    ):
        assert text in lines, text
    # the inner call's order, and its constant
    at = lines.index("CoreTaskArgs params_t2;")
    assert lines[at + 1 : at + 4] == [
        "params_t2.add_input(u);",
        "params_t2.add_inout(ext_y);",
        "params_t2.add_scalar((uint64_t)3);",
    ]
    assert kinds.result.func_name_to_id == {"cube": 0, "halves": 1, "rows": 2, "lane_c": 3, "lane_v": 4}
    assert kinds.result.func_name_to_core_type["cube"] is ir.CoreType.CUBE
    assert kinds.result.func_name_to_core_type["lane_v"] is ir.CoreType.VECTOR
    assert kinds.result.func_name_to_signature["rows"] == ["IN", "INOUT"]
    assert kinds.result.func_name_to_signature["cube"] == ["IN", "OUT"]
    assert kinds.result.orchestration_signature == ["IN", "INOUT"]


def test_kinds_of_callees_run():
    x, y = ramp(8, 8), zeros(8, 8)
    result = kinds.run([x, y], workers=4)
    assert result.counters.tasks >= 6
    rows = np.where(np.arange(8)[:, None] < 4, 3 * x, 0)
    assert y.shape == rows.shape and (y >= rows).all() and (y[5] == 5 * x[5]).all()


def test_the_method_that_sets_a_width_is_the_targets():
    program = kinds.program
    with using_backend(BackendType.Ascend950):
        code = codegen.generate_orchestration(program, kinds.function).code
    assert "params_t2.launch_spec.set_core_num(4);" in code


widths = suite.add(
    "widths",
    orchestration(
        "x: f32[8, 8], n: idx, y: pl.InOut[f32[8, 8]]",
        """
with pl.scope():
    a, t0 = pl.spmd_submit(self.rows, x, n, y, core_num=n)
    b, t1 = pl.spmd_submit(self.rows, x, n, a, core_num=n * 2)
    c, t2 = pl.spmd_submit(self.rows, x, n, b, core_num=pl.system.available_aiv_count())
""",
    )
    + KINDS,
    kernels={**KERNELS, "rows": lambda args: None},
)


def test_widths():
    for k, text in enumerate(("n", "(n * 2)", "rt_available_aiv_count()")):
        assert f"params_t{k}.launch_spec.set_block_num({text});" in widths.lines
    assert widths.run([ramp(8, 8), zeros(8, 8)], [2]).counters.tasks == 3


SCALARS = """
@AIV
def numbers(self, a: pl.Scalar[pl.INT32], b: pl.Scalar[pl.FP32], c: pl.Scalar[pl.BOOL], d: idx, e: pl.Scalar[pl.FP16],
            f: pl.Scalar[pl.INT64], g: pl.Scalar[pl.FP32], y: pl.InOut[f32[8, 8]]) -> f32[8, 8]:
    y1 = pl.store(pl.load(y, [0, 0], [8, 8]), [0, 0], y)
    return y
"""
seen = []


def numbers(args):
    seen.append([args.scalar(i) for i in range(1, 8)])


literals = suite.add(
    "literals",
    orchestration(
        "y: pl.InOut[f32[8, 8]], g: pl.Scalar[pl.FP32]",
        """
with pl.scope():
    a = self.numbers(-5, 0.5, True, 7, 1.5, -9, 2.0, y)
    b = self.numbers(3, 1e-7, False, -1, 0.0, 123456789012, g, a)
""",
    )
    + SCALARS,
    kernels={"numbers": numbers},
)


def test_scalar_literals():
    lines = literals.lines
    for text in (
        "(uint64_t)-5",
        "to_u64(0.5f)",
        "(uint64_t)1",
        "(uint64_t)7",
        "(uint64_t)15872",
        "(uint64_t)-9",
        "to_u64(2.0f)",
    ):
        assert f"params_t0.add_scalar({text});" in lines, text
    assert (
        "params_t1.add_scalar(to_u64(1e-07f));" in lines
        and "params_t1.add_scalar(to_u64(g));" in lines
        and "params_t1.add_scalar((uint64_t)0);" in lines
    )
    assert lines.index("params_t0.add_inout(ext_y);") < lines.index("params_t0.add_scalar((uint64_t)1);")
    seen.clear()
    literals.run([zeros(8, 8)], [np.float32(2.5)])
    first, second = seen
    bits = [int(np.float32(v).view(np.int32)) for v in (0.5, 1e-7, 2.0, 2.5)]
    assert first == [-5, bits[0], 1, 7, 0x3E00, -9, bits[2]]
    assert second == [3, bits[1], 0, -1, 0, 123456789012, bits[3]]


allocated = suite.add(
    "allocated",
    orchestration(
        "x: f32[8, 8], y: pl.InOut[f32[8, 8]], n: idx",
        """
with pl.scope():
    s, t = pl.submit(self.plus, x, attrs={"arg_directions": [pl.adir.input]})
    y1, t1 = pl.submit(self.fix, s, y)
    (p, q), t2 = pl.submit(self.both, x, attrs={"arg_directions": [pl.adir.input]})
    y2, t3 = pl.submit(self.fix, q, y1)
""",
    ),
)


def test_outputs_that_the_runtime_allocates():
    lines = allocated.lines
    at = lines.index("uint32_t params_t0_synth_out_1_shapes[2] = {8, 8};")
    assert lines[at + 1 : at + 8] == [
        "TensorCreateInfo params_t0_synth_out_1(params_t0_synth_out_1_shapes, 2, DataType::FLOAT32);",
        "// Task 0: plus",
        "CoreTaskArgs params_t0;",
        "params_t0.add_input(ext_x);",
        "params_t0.add_output(params_t0_synth_out_1);",
        "TaskOutputTensors task_0_outs = rt_submit_aiv_task(0, params_t0);",
        "const ChipTensor& s = task_0_outs.get_ref(0);",
    ]
    assert "const ChipTensor& q = task_2_outs.get_ref(1);" in lines
    assert not any("task_id()" in line for line in lines)  # nobody reads the ids
    x, y = ramp(8, 8), zeros(8, 8)
    allocated.run([x, y], [0])
    np.testing.assert_array_equal(y, x + 1 + 3 * x)


predicates = suite.add(
    "predicates",
    orchestration(
        "c: i32[4], e: idx, y: pl.InOut[f32[8, 8]]",
        """
with pl.scope():
    a, t0 = pl.submit(self.twice, y, predicate=(c[e] > 0))
    b, t1 = pl.submit(self.twice, a, predicate=(5 <= c[1]), allow_early_resolve=True, dumps=[a])
""",
    ),
)


def test_predicates():
    lines = predicates.lines
    at = lines.index("CoreTaskPredicate params_t0_pred;")
    assert lines[at + 1 : at + 7] == [
        "params_t0_pred.operand.tensor = &ext_c;",
        "params_t0_pred.operand.ndims = 1;",
        "params_t0_pred.operand.indices[0] = e;",
        "params_t0_pred.op = PredicateOp::GT;",
        "params_t0_pred.target = 0;",
        "params_t0.set_predicate(params_t0_pred);",
    ]
    assert "params_t1_pred.op = PredicateOp::GE;" in lines and "params_t1_pred.target = 5;" in lines
    assert "params_t1.set_allow_early_resolve(true);" in lines and "params_t1.dump(ext_y);" in lines
    for c, times in (([0, 0, 0, 0], 1), ([0, 5, 1, 0], 4), ([0, 4, 1, 0], 2), ([0, 9, 0, 0], 2)):
        y = ramp(8, 8)
        predicates.run([np.array(c, np.int32), y], [2])
        np.testing.assert_array_equal(y, times * ramp(8, 8))


def read(function, name, *indices):
    """``tensor.read`` of a parameter."""
    from pypto.ops.registry import call

    tensor = next(p for p in function.params if p.name_hint == name)
    made = call("tensor.read", tensor, ir.MakeTuple([ir.ConstInt(abs(i), ir.DataType.INDEX) for i in indices]))
    # The type rule refuses negative constants already.
    return made.replace(args=[tensor, ir.MakeTuple([ir.ConstInt(i, ir.DataType.INDEX) for i in indices])])


def compare(left, right, kind=ir.Gt):
    return kind(left, right, ir.DataType.BOOL)


ONE = ir.ConstInt(1, ir.DataType.INT64)


@pytest.mark.parametrize(
    ("make", "phrase"),
    [
        (lambda f, old: ir.And(old, old, ir.DataType.BOOL), "must be a single comparison"),
        (lambda f, old: compare(ONE, ONE), "must compare a tensor element"),
        (lambda f, old: compare(read(f, "c", 0), read(f, "c", 1)), "must compare a tensor element"),
        (lambda f, old: compare(read(f, "u", 0), ONE), "signed 8/16/32/64-bit integer tensor"),
        (lambda f, old: compare(read(f, "y", 0, 0), ONE), "signed 8/16/32/64-bit integer tensor"),
        (lambda f, old: compare(read(f, "d", 0, 0, 0, 0, 0, 1), ONE), "exceeding the runtime's maximum"),
        (lambda f, old: compare(read(f, "c", -1), ONE), "is negative"),
    ],
)
def test_predicates_that_are_refused(make, phrase):
    params = "c: i32[4], u: pl.Tensor[[4], pl.UINT32], d: i32[1, 1, 1, 1, 1, 2], y: pl.InOut[f32[8, 8]]"
    body = "with pl.scope():\n    a, t0 = pl.submit(self.twice, y, predicate=(c[0] > 0))"
    program = final(orchestration(params, body) + BASE)
    run = program.get_function("run")

    class Change(ir.IRMutator):
        def visit_submit(self, op):
            return op.replace(predicate=make(run, op.predicate))

    changed = run.replace(body=Change().visit_stmt(run.body))
    program = program.with_functions([changed, *(f for f in program.functions.values() if f is not run)])
    with pytest.raises(ValueError, match=phrase):
        codegen.generate_orchestration(program, changed)


RESULTS = """
@AIV
def scratch(self, t: pl.Out[f32[8, 8]], x: f32[8, 8], y: pl.InOut[f32[8, 8]]) -> f32[8, 8]:
    t1 = pl.store(pl.load(x, [0, 0], [8, 8]), [0, 0], t)
    y1 = pl.store(pl.load(x, [0, 0], [8, 8]), [0, 0], y)
    return y
@AIV
def three(self, p: pl.Out[f32[8, 8]], m: pl.InOut[f32[8, 8]], q: pl.Out[f32[8, 8]]) -> tuple[f32[8, 8], f32[8, 8]]:
    p1 = pl.store(pl.load(m, [0, 0], [8, 8]), [0, 0], p)
    m1 = pl.store(pl.load(m, [0, 0], [8, 8]), [0, 0], m)
    q1 = pl.store(pl.load(m, [0, 0], [8, 8]), [0, 0], q)
    return p, q
@Group
def inner(self, y: pl.InOut[f32[8, 8]], x: f32[8, 8]) -> f32[8, 8]:
    y1 = self.fix(x, y)
    return y
@Spmd
def outer(self, x: f32[8, 8], y: pl.InOut[f32[8, 8]]) -> f32[8, 8]:
    y1 = self.inner(y, x)
    return y
"""


def scratch(args):
    args.tensor(0)[:] = -1
    args.tensor(2)[:] += args.tensor(1)


def three(args):
    args.tensor(0)[:] = args.tensor(1)
    args.tensor(2)[:] = args.tensor(1) * 10


results = suite.add(
    "results",
    orchestration(
        "x: f32[8, 8], y: pl.InOut[f32[8, 8]], m: pl.InOut[f32[8, 8]]",
        """
with pl.scope():
    t = pl.create_tensor([8, 8], dtype=pl.FP32)
    p = pl.create_tensor([8, 8], dtype=pl.FP32)
    q = pl.create_tensor([8, 8], dtype=pl.FP32)
    a = self.scratch(t, x, y)
    b = self.twice(a)
    r = self.three(p, m, q)
    r0 = r[0]
    r1 = r[1]
    c = self.fix(r1, b)
    (s0, s1), tid = pl.submit(self.three, r0, m, r1)
    d = self.fix(s0, c)
    e = self.outer(x, d)
    f = self.twice(e)
""",
    )
    + RESULTS,
    kernels={"scratch": scratch, "three": three},
)


def test_results_are_other_names_of_arguments():
    lines = results.lines
    assert "params_t1.add_inout(ext_y);" in lines
    assert "params_t3.add_input(q);" in lines and "params_t5.add_input(p);" in lines
    assert "params_t7.add_inout(ext_y);" in lines
    assert "// Group inner: AIV-only SPMD" in lines
    assert not any(line.startswith(("ChipTensor ", "const ChipTensor& r", "const ChipTensor& s")) for line in lines)
    x, y, m = ramp(8, 8), zeros(8, 8), ramp(8, 8) + 1
    results.run([x, y, m])
    np.testing.assert_array_equal(y, 2 * (2 * x + 10 * m + m + x))


def test_a_result_that_is_no_parameter():
    kernel = """
@AIV
def odd(self, p: pl.Out[f32[8, 8]], q: pl.Out[f32[8, 8]]) -> f32[8, 8]:
    t = pl.create_tensor([8, 8], dtype=pl.FP32)
    return t
"""
    body = "with pl.scope():\n    t = pl.create_tensor([8, 8], dtype=pl.FP32)\n    a = self.odd(x, t)\n    b = self.fix(a, y)"
    with pytest.raises(InternalError, match="Aliasing would be a guess"):
        generate(orchestration("x: pl.InOut[f32[8, 8]], y: pl.InOut[f32[8, 8]]", body) + kernel)


def test_a_scalar_result_is_refused_when_it_is_used():
    kernel = """
@AIV
def count(self, y: pl.InOut[f32[8, 8]]) -> tuple[f32[8, 8], pl.Scalar[pl.INDEX]]:
    y1 = pl.store(pl.load(y, [0, 0], [8, 8]), [0, 0], y)
    return y, 3
"""
    body = "with pl.scope():\n    r = self.count(y)\n    a = r[0]\n    k = r[1]\n    b = self.part(a, k, a)"
    with pytest.raises(ValueError, match="result 1 of 'count'"):
        generate(orchestration(XY, body) + kernel)


def many_arguments(tensors, scalars):
    params = [f"t{i}: f32[8, 8]" for i in range(tensors)] + [f"s{i}: idx" for i in range(scalars)]
    kernel = f"@AIV\ndef wide(self, {', '.join(params)}, y: pl.InOut[f32[8, 8]]) -> f32[8, 8]:\n"
    kernel += "    y1 = pl.store(pl.load(y, [0, 0], [8, 8]), [0, 0], y)\n    return y\n"
    given = ["x"] * tensors + ["7"] * scalars
    return orchestration(XY, f"with pl.scope():\n    a = self.wide({', '.join(given)}, y)") + kernel


@pytest.mark.parametrize(("tensors", "scalars", "phrase"), [(32, 0, "33 tensors"), (0, 17, "17 scalars")])
def test_limits_of_a_task(tensors, scalars, phrase):
    with pytest.raises(ValueError, match=f"'wide' passes {phrase}, a task takes at most"):
        generate(many_arguments(tensors, scalars))
    assert generate(many_arguments(31, 16)).func_name_to_id == {"wide": 0}


def test_a_later_launch_widens_the_signature():
    found = generate(
        orchestration(
            "x: f32[8, 8], y: pl.InOut[f32[8, 8]]",
            """
with pl.scope():
    t = pl.create_tensor([8, 8], dtype=pl.FP32)
    a = self.plus(x, t)
    for i in pl.range(2):
        b = self.plus(x, t)
""",
        )
    )
    assert found.func_name_to_signature == {"plus": ["IN", "INOUT"]}


directions = suite.add(
    "directions",
    orchestration(
        "x: f32[8, 8], y: pl.InOut[f32[8, 8]]",
        """
with pl.scope():
    t = pl.create_tensor([8, 8], dtype=pl.FP32)
    a = self.plus(x, t, attrs={"arg_directions": [pl.adir.no_dep, pl.adir.output_existing]})
    b = self.fix(a, y, attrs={"arg_directions": [pl.adir.input, pl.adir.inout]})
""",
    ),
)


def test_directions():
    for line in ("t0.add_no_dep(ext_x);", "t0.add_output(t);", "t1.add_input(t);", "t1.add_inout(ext_y);"):
        assert f"params_{line}" in directions.lines
    assert directions.result.func_name_to_signature == {"plus": ["INOUT", "OUT"], "fix": ["IN", "INOUT"]}
    result = directions.run([ramp(8, 8), zeros(8, 8)])
    assert edges(result, "overlap")


def test_an_incore_kernel_was_not_expanded():
    kernel = "@InCore\ndef soft(self, y: pl.InOut[f32[8, 8]]) -> f32[8, 8]:\n    y1 = pl.store(pl.load(y, [0, 0], [8, 8]), [0, 0], y)\n    return y\n"
    with pytest.raises(InternalError, match="mixed-kernel expansion"):
        generate(orchestration(XY, "with pl.scope():\n    a = self.soft(y)") + kernel)
    program = final(orchestration(XY, "a = self.twice(y)") + BASE)
    assert codegen.infer_function_core_type(program.get_function("twice")) is ir.CoreType.VECTOR
    with pytest.raises(InternalError, match="mixed-kernel expansion"):
        codegen.infer_function_core_type(program.get_function("run"))


def test_a_graph_can_not_be_launched():
    graph = "@Graph\ndef g(self, y: pl.InOut[f32[8, 8]]) -> f32[8, 8]:\n    a = self.twice(y)\n    return y\n"
    with pytest.raises(ValueError, match="cannot be compiled yet"):
        generate(orchestration(XY, "with pl.scope():\n    a = self.g(y)") + graph)


def test_lines_know_where_they_come_from():
    result = kinds.result
    lines = result.code.splitlines()
    line = lines.index("        // Task 0: cube") + 1
    assert "self.cube" in kinds.program.span.filename or result.positions[line].begin_line > 0


HALF = """
@AIV
def halved(self, h: pl.Scalar[pl.FP16], b: pl.Scalar[pl.BF16], y: pl.InOut[f32[8, 8]]) -> f32[8, 8]:
    y1 = pl.store(pl.load(y, [0, 0], [8, 8]), [0, 0], y)
    return y
"""
narrow = suite.add(
    "narrow",
    orchestration("h: pl.Scalar[pl.FP16], b: pl.Scalar[pl.BF16], y: pl.InOut[f32[8, 8]]", "a = self.halved(h, b, y)")
    + HALF,
    kernels={"halved": lambda args: seen.append([args.scalar(1), args.scalar(2)])},
)


def test_narrow_floats_travel_as_bits():
    assert "half h = from_u64<half>(orch_args.scalar(0));" in narrow.lines
    assert "bfloat16_t b = from_u64<bfloat16_t>(orch_args.scalar(1));" in narrow.lines
    assert "params_t0.add_scalar(to_u64(h));" in narrow.lines
    seen.clear()
    narrow.run([zeros(8, 8)], [np.float16(1.5), np.uint16(0x3FC0)])
    assert seen == [[0x3E00, 0x3FC0]]


# --- numbers that a wrapper computes ----------------------------------------------------------------------------------

NUMBERS = """
@AIV
def row_of(self, x: f32[8, 8], i: idx, gain: pl.Scalar[pl.FP32], y: pl.InOut[f32[8, 8]]) -> f32[8, 8]:
    t = pl.mul(pl.load(x, [i, 0], [1, 8]), gain)
    y1 = pl.store(t, [i, 0], y)
    return y
@Spmd
def inner_rows(self, x: f32[8, 8], k: idx, y: pl.InOut[f32[8, 8]]) -> f32[8, 8]:
    half = k // 2
    y1 = self.row_of(x, half + 1, pl.cast(half % 3, pl.FP32), y)
    return y
@Spmd
def outer_rows(self, y: pl.InOut[f32[8, 8]], n: idx, x: f32[8, 8]) -> f32[8, 8]:
    y1 = self.inner_rows(x, n * 2, y)
    return y
"""


def row_of(args):
    i = args.scalar(2)
    gain = np.array(args.scalar(3) & 0xFFFFFFFF, np.uint32).view(np.float32)
    args.tensor(1)[i] = args.tensor(0)[i] * gain


numbers = suite.add(
    "numbers",
    orchestration(
        "x: f32[8, 8], n: idx, y: pl.InOut[f32[8, 8]]",
        """
with pl.scope():
    y1 = self.inner_rows(x, n + 1, y)
    y2 = self.outer_rows(y1, n, x)
""",
    )
    + NUMBERS,
    kernels={"row_of": row_of},
)


@pytest.mark.parametrize("n", [2, 5])
def test_numbers_that_a_wrapper_computes(n):
    x, y = ramp(8, 8), zeros(8, 8)
    want = y.copy()
    for k in (n + 1, n * 2):
        want[k // 2 + 1] = x[k // 2 + 1] * (k // 2 % 3)
    numbers.run([x, y], [n])
    np.testing.assert_array_equal(y, want)


def test_a_wrapper_that_reads_a_tensor_for_a_number():
    methods = NUMBERS.replace("half = k // 2", "half = pl.cast(pl.tensor.read(x, [0, 0]), pl.INDEX)")
    run = orchestration(
        "x: f32[8, 8], n: idx, y: pl.InOut[f32[8, 8]]", "with pl.scope():\n    y1 = self.inner_rows(x, n, y)"
    )
    with pytest.raises(
        CodegenError, match="an argument of 'row_of' is computed inside the scope that launches it"
    ) as raised:
        generate(run + methods)
    assert raised.value.span is not None and raised.value.hint == "compute it in front of the scope"
