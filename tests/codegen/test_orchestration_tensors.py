"""Created tensors, views, single elements and local arrays, as C++ that is compiled and run."""

import numpy as np
import pytest
from orchestration_kit import Suite, generate, orchestration, ramp, zeros

from pypto import DataType, ir
from pypto.diag.errors import InternalError

suite = Suite("tensors")
XY = "x: f32[8, 8], y: pl.InOut[f32[8, 8]]"


def many(count):
    makes = "\n".join(f"    t{i} = pl.create_tensor([8, 8], dtype=pl.FP32)" for i in range(count))
    calls = "\n".join(f"    u{i} = self.plus(x, t{i})" for i in range(count))
    return suite.add(f"many{count}", orchestration("x: f32[8, 8]", f"with pl.scope():\n{makes}\n{calls}"))


MANY = {count: many(count) for count in (1, 16, 17)}


@pytest.mark.parametrize(("count", "groups"), [(1, [1]), (16, [16]), (17, [16, 1])])
def test_creates_are_gathered_in_front(count, groups):
    lines = MANY[count].lines
    allocations = [line for line in lines if "alloc_tensors(" in line]
    assert [line.count("_ci") for line in allocations] == groups
    assert [line.split()[1] for line in allocations] == [f"alloc_{k}" for k in range(len(groups))]
    first_task = lines.index("// Task 0: plus")
    assert lines.index(allocations[-1]) < first_task
    assert lines[lines.index("PTO2_SCOPE() {") + 1 :][:2] == [
        "uint32_t t0_ci_shapes[2] = {8, 8};",
        "TensorCreateInfo t0_ci(t0_ci_shapes, 2, DataType::FLOAT32);",
    ]
    assert "const ChipTensor& t0 = alloc_0.get_ref(0);" in lines
    assert MANY[count].run([ramp(8, 8)]).counters.tasks >= count


shapes = suite.add(
    "shapes",
    orchestration(
        "x: f32[8, 8], y: pl.InOut[f32[8, 8]], n: idx",
        """
with pl.scope():
    a = pl.create_tensor([n * 16], dtype=pl.INT32, init_value=0, manual_dep=True)
    m = n * 4
    b = pl.create_tensor([m, 8], dtype=pl.FP32, init_value=1.5)
    p = pl.slice(b, [8, 8], [0, 0])
    y1 = self.fix(p, y)
""",
    ),
)


def test_shapes_of_run_time():
    lines = shapes.lines
    assert "uint32_t a_ci_shapes[1] = {static_cast<uint32_t>((n * 16))};" in lines
    assert "TensorCreateInfo a_ci(a_ci_shapes, 1, DataType::INT32, /*manual_dep=*/true);" in lines
    assert "a_ci.set_initial_value(0);" in lines
    assert "b_ci.set_initial_value(static_cast<float>(1.5f));" in lines
    # one whose shape is computed here stays behind the computation
    assert lines.index("int64_t m = (n * 4);") < lines.index("TaskOutputTensors alloc_1 = alloc_tensors(b_ci);")
    y = zeros(8, 8)
    shapes.run([ramp(8, 8), y], [2])
    np.testing.assert_array_equal(y, np.full((8, 8), 1.5))


DTYPES = {
    "FP16": "FLOAT16", "FP32": "FLOAT32", "BF16": "BFLOAT16", "INT8": "INT8", "INT16": "INT16", "INT32": "INT32",
    "INT64": "INT64", "INDEX": "INT64", "UINT8": "UINT8", "UINT16": "UINT16", "UINT32": "UINT32", "UINT64": "UINT64",
    "FP8E4M3FN": "FP8E4M3FN", "FP8E5M2": "FP8E5M2",
}  # fmt: skip
typed = suite.add(
    "typed",
    orchestration(
        "x: f32[8, 8]",
        "with pl.scope():\n"
        + "\n".join(f"    t_{d} = pl.create_tensor([8], dtype=pl.{d}, init_value=0)" for d in DTYPES)
        + "\n    i8 = pl.create_tensor([4], dtype=pl.INT8, init_value=-3)",
    ),
)


def test_element_types():
    for dtype, name in DTYPES.items():
        assert f"TensorCreateInfo t_{dtype}_ci(t_{dtype}_ci_shapes, 1, DataType::{name});" in typed.lines
        assert f"t_{dtype}_ci.set_initial_value(0);" in typed.lines
    assert "i8_ci.set_initial_value(static_cast<int8_t>(-3));" in typed.lines


@pytest.mark.parametrize(
    ("dtype", "value", "phrase"),
    [
        ("FP32", "float('inf')", "must be finite"),
        ("FP16", "1.0", "non-zero init_value is not supported"),
        ("BF16", "2.0", "non-zero init_value is not supported"),
        ("INT32", "1.5", "is not an integer but the tensor"),
        ("INT64", str(2**53 + 2), "exactly-representable"),
        ("FP16", "float('nan')", "must be finite"),
    ],
)
def test_initial_values_that_are_refused(dtype, value, phrase):
    made = orchestration(
        "x: f32[8, 8]", f"with pl.scope():\n    t = pl.create_tensor([8], dtype=pl.{dtype}, init_value=1.0)"
    )
    from orchestration_kit import BASE, final

    from pypto import codegen

    program = final(made + BASE)
    number = eval(value)  # the DSL has no literal for these

    class Change(ir.IRMutator):
        def visit_call(self, op):
            if op.op.name == "tensor.create":
                return op.replace(kwargs={**op.kwargs, "init_value": float(number)})
            return super().visit_call(op)

    run = Change().visit_stmt(program.get_function("run").body)
    function = program.get_function("run").replace(body=run)
    program = program.with_functions([function, *(f for f in program.functions.values() if f.name != "run")])
    with pytest.raises(ValueError, match=phrase) as caught:
        codegen.generate_orchestration(program, function)
    assert caught.value.span.is_valid()


sliced = suite.add(
    "sliced",
    orchestration(
        "x: f32[16, 8], y: pl.InOut[f32[8, 8]], n: idx",
        """
with pl.scope():
    s = pl.slice(x, [8, 8], [n * 4, 0], clamp=True)
    y1 = self.fix(s, y)
""",
    ),
    kernels={"fix": lambda args: args.tensor(1)[: len(args.tensor(0))].__iadd__(args.tensor(0))},
)


@pytest.mark.parametrize("n", [0, 2, 3, 4, 9])
def test_a_slice_ends_with_its_parent(n):
    lines = sliced.lines
    assert "uint32_t s_offsets[2] = {static_cast<uint32_t>((n * 4)), 0};" in lines
    off = "static_cast<uint32_t>((n * 4))"
    assert (
        f"uint32_t s_shapes[2] = {{({off} >= ext_x.shapes[0] ? 0u : std::min<uint32_t>(8, ext_x.shapes[0] - {off})), "
        "(0 >= ext_x.shapes[1] ? 0u : std::min<uint32_t>(8, ext_x.shapes[1] - 0))};" in lines
    )
    assert "ChipTensor s = ext_x.view(s_shapes, s_offsets);" in lines
    assert "#include <algorithm>" in sliced.code
    x, y = ramp(16, 8), zeros(8, 8)
    sliced.run([x, y], [n])
    want = zeros(8, 8)
    want[: max(0, min(8, 16 - 4 * n))] = x[4 * n : 4 * n + 8]
    np.testing.assert_array_equal(y, want)


ROW = """
@AIV
def row(self, x: f32[8], y: pl.InOut[f32[8, 8]]) -> f32[8, 8]:
    y1 = pl.store(pl.load(y, [0, 0], [8, 8]), [0, 0], y)
    return y
"""


def row(args):
    args.tensor(1)[:] += args.tensor(0)


dropped = suite.add(
    "dropped",
    orchestration(
        "x: f32[4, 8, 6], y: pl.InOut[f32[8, 8]], n: idx",
        """
with pl.scope():
    s = pl.tensor.slice(x, [1, 8, 1], [n, 0, 2], drop_dims=[0, 2])
    y1 = self.row(s, y)
""",
    )
    + ROW,
    kernels={"row": row},
)
fewer = suite.add(
    "fewer",
    orchestration(
        "x: f32[4, 8], y: pl.InOut[f32[8, 8]], n: idx",
        """
with pl.scope():
    s = pl.tensor.slice(x, [8], [n, 0])
    y1 = self.row(s, y)
""",
    )
    + ROW,
    kernels={"row": row},
)


def test_slices_without_some_axes():
    lines = dropped.lines
    assert "ChipTensor s_view = ext_x.view(s_shapes, s_offsets);" in lines
    for line in ("s.ndims = 1;", "s.shapes[0] = s_view.shapes[1];", "s.strides[0] = s_view.strides[1];"):
        assert line in lines
    assert any(line.startswith("bool s_empty = ") for line in lines) and "if (s_empty) s.shapes[0] = 0;" in lines
    x, y = ramp(4, 8, 6), zeros(8, 8)
    dropped.run([x, y], [3])
    np.testing.assert_array_equal(y, np.tile(x[3, :, 2], (8, 1)))
    x, y = ramp(4, 8), zeros(8, 8)
    fewer.run([x, y], [2])
    np.testing.assert_array_equal(y, np.tile(x[2], (8, 1)))


viewed = suite.add(
    "viewed",
    orchestration(
        "x: f32[64], w: f32[4, 16], y: pl.InOut[f32[8, 8]], n: idx",
        """
with pl.scope():
    r = pl.tensor.reshape(x, [8, 8])
    t = pl.tensor.transpose(r, 0, -1)
    y1 = self.fix(t, y)
    v = pl.tensor.view(w, [8, 8])
    y2 = self.fix(v, y1)
    k = pl.tensor.view(v, layout=pl.TensorLayout.ND)
    y3 = self.fix(k, y2)
    f = pl.tensor.view(v, layout=pl.TensorLayout.DN)
    z = pl.tensor.set_validshape(v, 8, 8)
    y4 = self.fix(z, y3)
""",
    ),
)


def test_views():
    lines = viewed.lines
    assert "uint32_t r_shapes[2] = {8, 8};" in lines and "ChipTensor r = ext_x.reshape(r_shapes, 2);" in lines
    assert "ChipTensor t = r.transpose(0, 1);" in lines
    assert "ChipTensor v = ext_w.reshape(v_shapes, 2);" in lines
    assert "ChipTensor k = v;" in lines and "ChipTensor f = v.transpose(0, 1);" in lines
    assert not any("z" in line for line in lines if "// Task" not in line and "size" not in line)  # only a type changes
    x, w, y = ramp(64), ramp(4, 16), zeros(8, 8)
    viewed.run([x, w, y], [0])
    np.testing.assert_array_equal(y, x.reshape(8, 8).T + 3 * w.reshape(8, 8))


@pytest.mark.parametrize(
    ("line", "phrase", "error"),
    [
        ("v = pl.tensor.reinterpret_view(x, pl.INT32)", "not supported in Orchestration functions", ValueError),
        (
            "v = pl.tensor.assemble(y, x, [0, 0], atomic=pl.AtomicType.Add)",
            "only supported inside an InCore function",
            ValueError,
        ),
        ("v = pl.tensor.add(x, y)", "Misplaced tensor op 'tensor.add' in Orchestration function", InternalError),
        ("v = pl.tensor.view(x, [4, 16], layout=pl.TensorLayout.DN)", "cannot combine shape reinterpret", ValueError),
    ],
)
def test_what_orchestration_can_not_do_to_tensors(line, phrase, error):
    with pytest.raises(error, match=phrase):
        generate(orchestration(XY, f"with pl.scope():\n    {line}"))


elements = suite.add(
    "elements",
    orchestration(
        "c: pl.InOut[i32[4, 4]], g: pl.InOut[f32[1]], n: idx",
        """
with pl.scope():
    v = pl.read(c, [n, 1])
    pl.write(c, [0, n], pl.cast(v + 1, pl.INT32))
    w = pl.read(g, [0])
    pl.write(g, [0], w * 2.5)
    d = pl.tensor.dim(c, 0)
    e = pl.cast(d, pl.INT32)
    pl.write(c, [3, 3], e)
""",
    ),
)


def test_single_elements():
    lines = elements.lines
    assert "uint32_t indices_v[2] = {static_cast<uint32_t>(n), 1};" in lines
    assert "int32_t v = get_tensor_data<int32_t>(ext_c, 2, indices_v);" in lines
    at = lines.index("{")
    assert lines[at + 1] == "uint32_t indices_ext_c[2] = {0, static_cast<uint32_t>(n)};"
    assert lines[at + 2].startswith("set_tensor_data<int32_t>(ext_c, 2, indices_ext_c, ") and lines[at + 3] == "}"
    assert "int64_t d = 4;" in lines
    c, g = np.arange(16, dtype=np.int32).reshape(4, 4), np.array([2], np.float32)
    elements.run([c, g], [2])
    assert c[0, 2] == 10 and c[3, 3] == 4 and g[0] == 5


arrays = suite.add(
    "arrays",
    orchestration(
        "o: pl.InOut[f32[8, 8]], n: idx",
        """
with pl.scope():
    a = pl.array.create(4, pl.INT32)
    ids = pl.array.create(3, pl.TASK_ID)
    for i, (b,) in pl.range(4, init_values=(a,)):
        b2 = pl.array.update_element(b, i, 7)
        b3 = pl.yield_(b2)
    v = pl.array.get_element(b3, 2)
    k = pl.cast(v, pl.INDEX)
    m = self.mark(k, o)
""",
    ),
)


def test_local_arrays():
    lines = arrays.lines
    assert "int32_t a[4] = {0};" in lines
    assert (
        "PTO2TaskId ids[3]; for (int64_t __init_i = 0; __init_i < 3; ++__init_i) ids[__init_i] = PTO2TaskId::invalid();"
        in lines
    )
    assert "a[i] = 7;" in lines and "int32_t v = a[2];" in lines
    assert not any("b2" in line or "b3" in line for line in lines)
    o = zeros(8, 8)
    arrays.run([o], [0])
    assert np.nonzero(o[:, 0])[0].tolist() == [7]


column = suite.add(
    "column",
    orchestration(
        "x: f32[8, 8], y: pl.InOut[f32[8, 8]]",
        """
with pl.scope():
    t = pl.create_tensor([8, 8], dtype=pl.FP32, layout=pl.TensorLayout.DN)
    t1 = self.plus(x, t)
    y1 = self.fix(t1, y)
""",
    ),
    directed=True,
)


def test_a_column_major_tensor_is_stored_transposed():
    assert "ChipTensor t = alloc_0.get_ref(0).transpose(0, 1);" in column.lines
    x, y = ramp(8, 8), zeros(8, 8)
    column.run([x, y])
    np.testing.assert_array_equal(y, x + 1)


assembled = suite.add(
    "assembled",
    orchestration(
        "x: f32[8, 8], y: pl.InOut[f32[16, 8]]",
        """
with pl.scope():
    s = pl.slice(y, [8, 8], [8, 0])
    u = self.plus(x, s)
    y1 = pl.assemble(y, u, [8, 0])
    t = pl.slice(y1, [8, 8], [0, 0])
    v = self.plus(u, t)
""",
    ),
)


def test_assemble_is_another_name_of_its_target():
    assert "ChipTensor t = ext_y.view(t_shapes, t_offsets);" in assembled.lines
    x, y = ramp(8, 8), zeros(16, 8)
    assembled.run([x, y])
    np.testing.assert_array_equal(y, np.concatenate([x + 2, x + 1]))


def test_a_part_that_lies_elsewhere_is_not_lost_silently():
    body = "with pl.scope():\n    t = pl.create_tensor([8, 8], dtype=pl.FP32)\n    u = self.plus(x, t)\n"
    body += "    v = self.twice(u)\n    y1 = pl.assemble(y, v, [0, 0])"
    with pytest.raises(ValueError, match="'t' is not written in place") as caught:
        generate(orchestration(XY, body))
    assert caught.value.code == "PT1109"


def test_too_many_dimensions():
    with pytest.raises(ValueError, match="exceeding the runtime's maximum"):
        generate(
            orchestration(
                "x: f32[8, 8]", "with pl.scope():\n    t = pl.create_tensor([1, 1, 1, 1, 1, 2], dtype=pl.FP32)"
            )
        )


def test_names_of_all_dtypes():
    from pypto.codegen.runtime_names import element_type

    assert element_type(DataType.FP4) == "DataType::FP4E2M1"
    assert element_type(DataType.FP8E8M0) == "DataType::FP8E8M0"
    assert element_type(DataType.HF8) == "DataType::UNKNOWN"
