"""Arguments of a call: arrays that are written in place, scalars, and everything that is refused by name."""

import ctypes

import ml_dtypes
import numpy as np
import pytest
from run_support import F32, call, program, ramp

from pypto import ir
from pypto.runtime import DeviceTensor, RunConfig


def copier(dtype="FP32", shape="[4, 8]"):
    """Copies ``x`` to the output ``y``, in an element type."""
    return ir.compile(
        program(
            "y = self.same(x, y)\nreturn y",
            f"x: pl.Tensor[{shape}, pl.{dtype}], y: pl.Out[pl.Tensor[{shape}, pl.{dtype}]]",
            f"""
            @pl.function(type=pl.FunctionType.InCore)
            def same(self, a: pl.Tensor[{shape}, pl.{dtype}], b: pl.Out[pl.Tensor[{shape}, pl.{dtype}]]
                        ) -> pl.Tensor[{shape}, pl.{dtype}]:
                return pl.store(pl.load(a, [0, 0], [4, 8]), [0, 0], b)
            """,
        ),
        dump_passes=False,
    )


# --- styles ------------------------------------------------------------------------------------------------------------


def test_in_place_and_return_style():
    copy = copier()
    x, y = ramp(4, 8), np.zeros((4, 8), F32)
    assert copy(x, y) is None
    np.testing.assert_array_equal(x, y)
    made = copy(x)
    assert isinstance(made, np.ndarray) and made.dtype == F32 and made is not y
    np.testing.assert_array_equal(made, x)
    np.testing.assert_array_equal(copy(x=x), x)
    y[...] = 0
    assert copy(y=y, x=x) is None
    np.testing.assert_array_equal(x, y)


@pytest.mark.parametrize(
    ("args", "kwargs", "phrase"),
    [
        (0, {}, r"CompiledProgram expects 2 \(in-place\) or 1 \(return\) arguments, got 0. Parameters: \['x', 'y'\]"),
        (3, {}, "got 3"),
        (1, {"z": 1}, "has no parameter 'z'"),
        (1, {"x": 1}, "two values for parameter 'x'"),
        (0, {"y": 1}, "missing a value for parameter 'x'"),
    ],
)
def test_wrong_number_or_names(args, kwargs, phrase):
    with pytest.raises(TypeError, match=phrase):
        copier()(*[ramp(4, 8)] * args, **dict.fromkeys(kwargs, ramp(4, 8)))


def test_an_entry_without_outputs_gives_what_it_makes():
    found = program("t = pl.add(x, 1.0)\nreturn t", "x: pl.Tensor[[4, 8], pl.FP32]")
    np.testing.assert_array_equal(call(found, ramp(4, 8)), ramp(4, 8) + 1)


def test_an_entry_that_returns_its_inout_gives_none():
    found = program("y = self.bump(y, 1.0)\nreturn y", "y: pl.InOut[pl.Tensor[[4, 8], pl.FP32]]")
    assert call(found, ramp(4, 8)) is None


def test_the_result_is_what_the_program_returns():
    """Not simply all outputs: fewer, in another order, an InOut, and one of its own."""
    params = (
        "x: pl.InOut[pl.Tensor[[4, 8], pl.FP32]], a: pl.Out[pl.Tensor[[4, 8], pl.FP32]], "
        "b: pl.Out[pl.Tensor[[4, 8], pl.FP32]]"
    )
    body = "a = self.copy(x, a)\nb = self.scale(x, 2.0, b)\nx = self.bump(x, 1.0)\nt = pl.mul(b, 2.0)\nreturn {0}"
    x = ramp(4, 8)
    b, x_again, t = call(program(body.format("b, x, t"), params), x)
    np.testing.assert_array_equal(b, ramp(4, 8) * 2)
    np.testing.assert_array_equal(t, ramp(4, 8) * 4)
    assert x_again is x
    np.testing.assert_array_equal(x, ramp(4, 8) + 1)
    only = call(program(body.format("a"), params), ramp(4, 8))
    np.testing.assert_array_equal(only, ramp(4, 8))


def test_outputs_of_dynamic_shape_must_be_passed():
    found = copier(shape="[M, 8]")
    x, y = ramp(4, 8), np.zeros((4, 8), F32)
    found(x, y)
    np.testing.assert_array_equal(x, y)
    with pytest.raises(ValueError, match="output 'y'.*contains dynamic dimensions. Pass all tensors explicitly"):
        found(x)


# --- arrays ------------------------------------------------------------------------------------------------------------

TYPES = {
    "FP32": np.float32,
    "FP16": np.float16,
    "BF16": ml_dtypes.bfloat16,
    "INT8": np.int8,
    "INT16": np.int16,
    "INT32": np.int32,
    "INT64": np.int64,
    "UINT8": np.uint8,
    "UINT16": np.uint16,
    "UINT32": np.uint32,
    "FP8E4M3FN": ml_dtypes.float8_e4m3fn,
    "FP8E5M2": ml_dtypes.float8_e5m2,
}


@pytest.mark.parametrize("name", TYPES)
def test_element_types(name):
    x = ramp(4, 8, dtype=TYPES[name])
    made = copier(name)(x)
    assert made.dtype == x.dtype
    np.testing.assert_array_equal(made.view(np.uint8), x.view(np.uint8))


@pytest.mark.parametrize(
    ("value", "got"),
    [
        (ramp(4, 9), r"\(4, 9\) float32"),
        (ramp(8), r"\(8,\) float32"),
        (ramp(4, 8, dtype=np.float16), r"\(4, 8\) float16"),
        (ramp(4, 8, dtype=np.float64), "float64"),
        (ramp(4, 8).astype(">f4"), ">f4"),
        (np.array(1.0, F32), r"\(\) float32"),
    ],
)
def test_arrays_are_checked_against_the_parameter(value, got):
    copy = copier()
    with pytest.raises(TypeError, match=rf"Parameter 'x': expected \[4, 8\] fp32, got .*{got}"):
        copy(value, np.zeros((4, 8), F32))
    with pytest.raises(TypeError, match=r"Parameter 'y': expected \[4, 8\] fp32"):
        copy(ramp(4, 8), value)


@pytest.mark.parametrize("value", [3, 2.5, "text", None, [[1.0]], np.float32(2)])
def test_what_is_no_array(value):
    with pytest.raises(TypeError, match="Parameter 'y' is a tensor; got .*Pass a torch.Tensor"):
        copier()(ramp(4, 8), value)


def test_dynamic_dimensions_agree():
    found = ir.compile(
        program(
            "y = self.k(x, y)",
            "x: pl.Tensor[[M, 8], pl.FP32], y: pl.InOut[pl.Tensor[[M, 8], pl.FP32]]",
            """
                @pl.function(type=pl.FunctionType.InCore)
                def k(self, a: pl.Tensor[[M, 8], pl.FP32], b: pl.InOut[pl.Tensor[[M, 8], pl.FP32]]
                      ) -> pl.Tensor[[M, 8], pl.FP32]:
                    return pl.store(pl.load(a, [0, 0], [2, 8]), [0, 0], b)
                """,
        ),
        dump_passes=False,
    )
    with pytest.raises(ValueError, match=r"dynamic dimension 'M' is 4 in x \(dim 0\) but 5 in y \(dim 0\)"):
        found(ramp(4, 8), ramp(5, 8))


def test_strided_arrays():
    copy = copier()
    wide = ramp(8, 16)
    x = wide[::2, ::2]
    target = np.full((8, 16), -1, F32)
    y = target[::2, ::2]
    copy(x, y)
    np.testing.assert_array_equal(y, x)
    assert (target[1::2] == -1).all() and (target[:, 1::2] == -1).all()
    reverse = np.zeros((4, 8), F32)[::-1]
    copy(x, reverse)
    np.testing.assert_array_equal(reverse, x)
    np.testing.assert_array_equal(copy(np.asfortranarray(ramp(4, 8))), ramp(4, 8))


def test_read_only_arrays():
    copy = copier()
    x, y = ramp(4, 8), np.zeros((4, 8), F32)
    x.flags.writeable = y.flags.writeable = False
    np.testing.assert_array_equal(copy(x), x)
    with pytest.raises(ValueError, match="parameter 'y' is written by the program, but its array is read-only"):
        copy(x, y)


class Dlpack:
    """An array of another library."""

    def __init__(self, array, device=1):
        self.array, self.device = array, device

    def __dlpack__(self, **options):
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.device, 0


def test_dlpack():
    copy = copier()
    y = np.zeros((4, 8), F32)
    copy(Dlpack(ramp(4, 8)), Dlpack(y))
    np.testing.assert_array_equal(y, ramp(4, 8))
    with pytest.raises(ValueError, match="parameter 'x' is on DLPack device type 2, expected CPU"):
        copy(Dlpack(ramp(4, 8), device=2), y)


# --- overlap -----------------------------------------------------------------------------------------------------------


def test_one_array_for_two_parameters():
    found = ir.compile(
        program(
            "y = self.bump(y, 1.0)\nz = self.scale(x, 2.0, z)",
            "x: pl.Tensor[[4, 8], pl.FP32], y: pl.InOut[pl.Tensor[[4, 8], pl.FP32]], "
            "z: pl.InOut[pl.Tensor[[4, 8], pl.FP32]]",
        ),
        dump_passes=False,
    )
    for seed in range(8):  # the tasks are ordered by the memory that they share, also through two parameters
        x, z = ramp(4, 8), np.zeros((4, 8), F32)
        found(x, x, z, config=RunConfig(schedule="random", seed=seed))
        np.testing.assert_array_equal(z, (ramp(4, 8) + 1) * 2)
    strided = ramp(4, 16)[:, ::2]
    want = (strided + 1) * 2
    z = np.zeros((4, 8), F32)
    found(strided, strided, z)
    np.testing.assert_array_equal(z, want)


def test_overlap():
    copy = copier()
    memory = ramp(6, 8)
    x, y = memory[:4], memory[1:5]
    with pytest.raises(ValueError, match="parameters 'x' and 'y' overlap in memory and 'y' is written"):
        copy(x, y)
    want = x.copy()
    copy(x, y, config=RunConfig(allow_overlap=True))
    np.testing.assert_array_equal(y, want)
    copy(memory[:4], memory.copy()[1:5])
    both = ramp(4, 16)
    copy(both[:, :8], both[:, 8:])  # interleaved, but no byte is shared
    np.testing.assert_array_equal(both[:, 8:], both[:, :8])
    with pytest.raises(ValueError, match="not both contiguous"):
        copy(both[:, :8], both[:, 4:12], config=RunConfig(allow_overlap=True))


def test_overlap_orders_tasks():
    found = ir.compile(
        program(
            "y = self.bump(y, 1.0)\nz = self.copy(x, z)",
            "x: pl.Tensor[[4, 8], pl.FP32], y: pl.InOut[pl.Tensor[[4, 8], pl.FP32]], "
            "z: pl.InOut[pl.Tensor[[4, 8], pl.FP32]]",
        ),
        dump_passes=False,
    )
    for seed in range(8):
        memory, z = ramp(6, 8), np.zeros((4, 8), F32)
        found(memory[:4], memory[2:], z, config=RunConfig(allow_overlap=True, schedule="random", seed=seed))
        want = ramp(6, 8)
        want[2:] += 1
        np.testing.assert_array_equal(z, want[:4])


def test_inputs_may_overlap():
    found = program(
        "y = self.copy(x, y)\ny = self.k(x, w, y)",
        "x: pl.Tensor[[4, 8], pl.FP32], w: pl.Tensor[[4, 8], pl.FP32], y: pl.InOut[pl.Tensor[[4, 8], pl.FP32]]",
        """
                    @pl.function(type=pl.FunctionType.InCore)
                    def k(self, a: pl.Tensor[[4, 8], pl.FP32], b: pl.Tensor[[4, 8], pl.FP32],
                          c: pl.Out[pl.Tensor[[4, 8], pl.FP32]]) -> pl.Tensor[[4, 8], pl.FP32]:
                        s = pl.add(pl.load(a, [0, 0], [4, 8]), pl.load(b, [0, 0], [4, 8]))
                        return pl.store(s, [0, 0], c)
                    """,
    )
    memory, y = ramp(6, 8), np.zeros((4, 8), F32)
    call(found, memory[:4], memory[2:], y)
    np.testing.assert_array_equal(y, memory[:4] + memory[2:])


# --- scalars -----------------------------------------------------------------------------------------------------------


def scalar_program(dtype):
    return ir.compile(
        program("pl.tensor.write(y, [0], k)", f"k: pl.Scalar[pl.{dtype}], y: pl.InOut[pl.Tensor[[1], pl.{dtype}]]"),
        dump_passes=False,
    )


def pass_scalar(dtype, value, kind):
    y = np.zeros(1, kind)
    scalar_program(dtype)(value, y)
    return y[0]


@pytest.mark.parametrize(
    ("dtype", "value", "kind", "want"),
    [
        ("INT32", 7, np.int32, 7),
        ("INT32", True, np.int32, 1),
        ("INT8", -128, np.int8, -128),
        ("UINT8", np.uint8(255), np.uint8, 255),
        ("INT64", np.int64(2**62), np.int64, 2**62),
        ("FP32", 0.1, np.float32, np.float32(0.1)),
        ("FP32", 3, np.float32, 3),
        ("FP32", np.float64(0.25), np.float32, 0.25),
        ("FP32", float("inf"), np.float32, np.inf),
        ("FP16", 65504.0, np.float16, 65504),
        ("INT32", ctypes.c_int32(9), np.int32, 9),
        ("FP32", ctypes.c_float(1.5), np.float32, 1.5),
    ],
)
def test_scalars(dtype, value, kind, want):
    assert pass_scalar(dtype, value, kind) == want


@pytest.mark.parametrize(
    ("dtype", "value", "error", "phrase"),
    [
        ("INT8", 300, OverflowError, r"parameter 'k' \(int8\) cannot hold 300"),
        ("UINT16", -1, OverflowError, "cannot hold -1"),
        ("FP16", 1e6, OverflowError, "cannot hold 1000000"),
        ("FP32", 1e39, OverflowError, "cannot hold"),
        ("INT32", 2.0, TypeError, r"Parameter 'k' is an integer \(int32\); got float"),
        ("INT32", "2", TypeError, r"Parameter 'k' is a scalar \(int32\); got str"),
        ("INT32", None, TypeError, "got NoneType"),
        ("FP32", np.zeros(1), TypeError, r"Parameter 'k' is a scalar \(fp32\); got numpy.ndarray"),
        ("INT32", ctypes.c_int64(2), TypeError, "expected c_int"),
    ],
)
def test_scalars_that_are_refused(dtype, value, error, phrase):
    with pytest.raises(error, match=phrase):
        pass_scalar(dtype, value, np.int32)


def test_hand_made_device_tensors_have_no_memory():
    handle = DeviceTensor(4096, (4, 8), np.float32)
    with pytest.raises(TypeError, match="parameter 'x': a DeviceTensor made by hand"):
        copier()(handle, np.zeros((4, 8), F32))
