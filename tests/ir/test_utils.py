"""Helpers of op wrappers: values to expressions, cast modes, source positions, directions."""

import inspect
import warnings

import pytest

from pypto import ir
from pypto.ir import directions, utils
from pypto.ir.utils import (
    _get_span_or_capture,
    _normalize_const_to_dtype,
    _normalize_expr,
    _normalize_scalar_operand,
    _normalize_shape,
    _to_make_tuple,
    use_parser_span,
)

S = ir.Span.unknown()
HERE = ir.Span("user.py", 7, 3)


def var(name="x", dtype=ir.INDEX):
    return ir.Var(name, ir.ScalarType(dtype), S)


def tile(dtype):
    return ir.Var("t", ir.TileType([16, 16], dtype), S)


def facts(expr):
    return type(expr), expr.value, expr.dtype


# --- values to expressions --------------------------------------------------------------------------------------------


def test_normalize_expr():
    x = var()
    assert _normalize_expr(x) is x
    assert facts(_normalize_expr(3)) == (ir.ConstInt, 3, ir.INDEX)
    assert facts(_normalize_expr(3, None, ir.INT32)) == (ir.ConstInt, 3, ir.INT32)
    assert facts(_normalize_expr(0.5)) == (ir.ConstFloat, 0.5, ir.FP32)
    assert facts(_normalize_expr(0.5, float_dtype=ir.FP16)) == (ir.ConstFloat, 0.5, ir.FP16)
    assert facts(_normalize_expr(True)) == (ir.ConstBool, True, ir.BOOL)
    assert _normalize_expr(3, HERE).span is HERE
    for bad in ("3", None, [3], object()):
        with pytest.raises(TypeError, match="Cannot convert"):
            _normalize_expr(bad)


def test_normalize_shape_and_make_tuple():
    x = var()
    shape = _normalize_shape([4, x], HERE)
    assert facts(shape[0]) == (ir.ConstInt, 4, ir.INDEX)
    assert shape[1] is x
    made = _to_make_tuple((4, x), HERE)
    assert type(made) is ir.MakeTuple
    assert made.elements[1] is x
    assert made.span is HERE
    assert _to_make_tuple(made) is made


@pytest.mark.parametrize(
    ("operand", "scalar", "wanted"),
    [
        (ir.FP16, 2, (ir.ConstFloat, 2.0, ir.FP16)),
        (ir.INT8, 2, (ir.ConstInt, 2, ir.INT8)),
        (ir.FP16, 0.5, (ir.ConstFloat, 0.5, ir.FP16)),
        (ir.INT32, 0.5, (ir.ConstFloat, 0.5, ir.FP32)),
        (ir.FP16, ir.ConstInt(2, ir.INDEX, S), (ir.ConstFloat, 2.0, ir.FP16)),
        (ir.INT8, ir.ConstInt(2, ir.INDEX, S), (ir.ConstInt, 2, ir.INT8)),
        (ir.FP16, ir.ConstInt(2, ir.INT32, S), (ir.ConstInt, 2, ir.INT32)),
        (ir.FP16, ir.ConstFloat(0.5, ir.FP32, S), (ir.ConstFloat, 0.5, ir.FP32)),
    ],
)
def test_scalar_operand(operand, scalar, wanted):
    assert facts(_normalize_scalar_operand(tile(operand), scalar, HERE)) == wanted


def test_scalar_operand_retypes_typed_constants_on_request():
    typed = ir.ConstInt(2, ir.INT32, S)
    got = _normalize_scalar_operand(tile(ir.INT8), typed, HERE, retype_constants=True)
    assert facts(got) == (ir.ConstInt, 2, ir.INT8)


def test_scalar_operand_without_an_element_type():
    unknown = ir.Var("u", ir.UnknownType(), S)
    assert facts(_normalize_scalar_operand(unknown, 2, HERE)) == (ir.ConstInt, 2, ir.INT32)
    assert facts(_normalize_scalar_operand(unknown, 0.5, HERE)) == (ir.ConstFloat, 0.5, ir.FP32)
    got = _normalize_scalar_operand(unknown, 2, HERE, fallback_int_dtype=ir.INT8)
    assert facts(got) == (ir.ConstInt, 2, ir.INT8)


def test_run_time_scalars():
    f, i = var("f", ir.FP32), var("i", ir.INDEX)
    assert _normalize_scalar_operand(tile(ir.FP16), f, HERE) is f
    for bad in (i, i + 1):
        with pytest.raises(ValueError, match=r"dtype `index`.*pl\.cast"):
            _normalize_scalar_operand(tile(ir.FP16), bad, HERE)


def test_normalize_const_to_dtype():
    assert facts(_normalize_const_to_dtype(3, ir.INT32, HERE)) == (ir.ConstInt, 3, ir.INT32)
    assert facts(_normalize_const_to_dtype(3, ir.FP16, HERE)) == (ir.ConstFloat, 3.0, ir.FP16)
    typed = ir.ConstInt(3, ir.INT64, S)
    assert facts(_normalize_const_to_dtype(typed, ir.INT32, HERE)) == (ir.ConstInt, 3, ir.INT32)
    got = _normalize_const_to_dtype(0.5, ir.INT32, HERE, float_dtype=ir.BF16)
    assert facts(got) == (ir.ConstFloat, 0.5, ir.BF16)
    with pytest.raises(TypeError, match="Cannot convert"):
        _normalize_const_to_dtype("3", ir.INT32, HERE)


# --- cast modes and valid regions -------------------------------------------------------------------------------------


def test_cast_modes():
    names = ["none", "rint", "round", "floor", "ceil", "trunc", "odd"]
    assert list(utils.CAST_MODE_NAMES.items()) == [(name, i) for i, name in enumerate(names)]
    for i, name in enumerate(names):
        assert utils.resolve_cast_mode(name) == utils.resolve_cast_mode(i) == i
    for bad in ("up", "", -1, 7, True, False, None, 1.0):
        with pytest.raises(ValueError, match="Invalid rounding mode"):
            utils.resolve_cast_mode(bad)


def test_has_partial_valid_region():
    full = ir.TileType([8, 8], ir.FP32)
    part = ir.TileType([8, 8], ir.FP32, None, ir.TileView([5, 8]))
    tensor = ir.TensorType([8], ir.FP32, None, ir.TensorView([], ir.TensorLayout.ND, [var()]))
    padded = ir.TensorType([8, 8], ir.FP32, None, ir.TensorView([16, 1], ir.TensorLayout.ND))
    for kind, partial in (
        (full, False),
        (part, True),
        (tensor, True),
        (padded, False),
        (ir.ScalarType(ir.FP32), False),
    ):
        assert utils.has_partial_valid_region(ir.Var("v", kind, S)) is partial


# --- source positions -------------------------------------------------------------------------------------------------


def line():
    return inspect.currentframe().f_back.f_lineno


def wrapper(span=None, **options):
    return _get_span_or_capture(span, **options)


def outer():
    return wrapper(frame_offset=2)


def test_explicit_pinned_and_captured_spans():
    assert wrapper(HERE) is HERE
    captured = wrapper()
    assert (captured.filename, captured.begin_line, captured.begin_column) == (__file__, line() - 1, -1)
    with use_parser_span(HERE):
        assert wrapper() is HERE
        other = ir.Span("other.py", 1, 1)
        assert wrapper(other) is other
        with use_parser_span(other):
            assert wrapper() is other
        assert wrapper() is HERE
    assert wrapper().filename == __file__


def test_frame_offset():
    captured = outer()
    assert captured.begin_line == line() - 1


def test_the_pinned_span_is_released_after_an_error():
    with pytest.raises(KeyError), use_parser_span(HERE):
        raise KeyError
    assert wrapper().filename == __file__


def test_operators_report_the_pinned_span():
    x = var()
    with use_parser_span(HERE):
        assert (x + 1).span is HERE


def test_warning_stacklevel_names_the_users_line():
    # a function of this package that warns: its own frame and those of the package are passed over
    namespace = {"__name__": "pypto.ir.pretend", "utils": utils, "warnings": warnings}
    source = (
        "def warn():\n    warnings.warn('x', stacklevel=utils.caller_warning_stacklevel())\ndef entry():\n    warn()\n"
    )
    exec(compile(source, "pretend.py", "exec"), namespace)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        namespace["entry"]()
    assert (caught[0].filename, caught[0].lineno) == (__file__, line() - 1)


# --- directions -------------------------------------------------------------------------------------------------------


def test_direction_names():
    D = ir.ArgDirection
    names = {
        "input": D.Input,
        "output": D.Output,
        "output_existing": D.OutputExisting,
        "inout": D.InOut,
        "no_dep": D.NoDep,
    }
    for name, member in names.items():
        assert getattr(ir, name) is getattr(directions, name) is member
    assert ir.scalar_dir is directions.scalar is D.Scalar
    assert ir.make_call is directions.make_call


def test_make_call():
    x, op = var(), ir.GlobalVar("k")
    call = ir.make_call(op, [x], directions=[ir.inout], kwargs={"k": 1}, type=ir.ScalarType(ir.INDEX), span=HERE)
    assert (call.op, call.arg_directions, dict(call.kwargs), call.span) == (op, [ir.inout], {"k": 1}, HERE)
    assert call.type == ir.ScalarType(ir.INDEX)
    bare = ir.make_call(op, [x])
    assert (dict(bare.attrs), bare.type, bare.span.is_valid()) == ({}, ir.UnknownType(), False)
    with pytest.raises(ValueError, match="must match args length"):
        ir.make_call(op, [x], directions=[])
    with pytest.raises(TypeError):
        ir.make_call(op, [x], directions=["input"])
