"""Calls: argument forms, unified dispatch, promoted names, methods, external and inline functions (section 8)."""

from __future__ import annotations

import itertools
import linecache
import sys
import textwrap
import types
import warnings

import pytest

import pypto.language as pl
from pypto import ir
from pypto.diag.parser_errors import (
    InvalidOperationError,
    ParserSyntaxError,
    ParserTypeError,
    UndefinedVariableError,
    UnsupportedFeatureError,
)

from .dsl import HEAD, body_text, check_error, expect, kernel, opaque, parse, program, round_trip

F, S, T, OP, U = (
    UnsupportedFeatureError,
    ParserSyntaxError,
    ParserTypeError,
    InvalidOperationError,
    UndefinedVariableError,
)

PARAMS = "x: pl.Tensor[[16, 32], pl.FP32], y: pl.Tensor[[16, 32], pl.FP32], k: pl.Tensor[[16, 32], pl.INT32], s: pl.Scalar[pl.FP32], n: pl.Scalar[pl.INDEX], j: pl.Scalar[pl.INT32]"
SETUP = "t = pl.load(x, [0, 0], [16, 32])\nu = pl.load(y, [0, 0], [16, 32])\nv = pl.load(k, [0, 0], [16, 32])\n"


def call(expression: str, setup: str = "") -> str:
    """The printed call of an expression over tensors x, y, k, tiles t, u, v and scalars s, n, j."""
    text = kernel(f"{SETUP}r = {expression}\nreturn", PARAMS).replace("@pl", setup + "\n@pl", 1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        round_trip(parse(text))
    return body_text(text).splitlines()[3].split(" = ", 1)[1]


# --- 8.3 --------------------------------------------------------------------------------------------------------------

# printed name of the tensor op with a scalar on the right, where it has one of its own
_ARITHMETIC = ("add", "sub", "mul", "div")


@pytest.mark.parametrize("op", _ARITHMETIC)
def test_arithmetic_dispatch(op: str) -> None:
    node = {"add": ir.Add, "sub": ir.Sub, "mul": ir.Mul, "div": ir.FloatDiv}[op]
    assert call(f"pl.{op}(x, y)") == f"pl.tensor.{op}(x, y)"
    assert call(f"pl.{op}(x, s)") == f"pl.tensor.{op}s(x, s)"
    assert call(f"pl.{op}(x, 2)") == f"pl.tensor.{op}s(x, 2.0)"
    assert call(f"pl.{op}(x, rhs=2)") == f"pl.tensor.{op}s(x, 2.0)"
    assert call(f"pl.{op}(lhs=x, rhs=y)") == f"pl.tensor.{op}(x, y)"
    assert call(f"pl.{op}(t, u)") == f"pl.tile.{op}(t, u)"
    assert call(f"pl.{op}(t, s)") == f"pl.tile.{op}s(t, s)"
    scalar = parse(kernel(f"r = pl.{op}(s, s)\nq = s {dict(add='+', sub='-', mul='*', div='/')[op]} s\nreturn", PARAMS))
    assert type(scalar.body[0].value) is node
    ir.assert_structural_equal(scalar.body[0].value, scalar.body[1].value)


@pytest.mark.parametrize("op", ["maximum", "minimum", "fmod"])
def test_extremum_dispatch(op: str) -> None:
    assert call(f"pl.{op}(x, y)").startswith(f"pl.tensor.{op}(x, y")
    assert call(f"pl.{op}(x, 2.0)").startswith(f"pl.tensor.{op}")
    assert call(f"pl.{op}(t, u)") == f"pl.tile.{op}(t, u)"
    assert call(f"pl.{op}(t, s)") == f"pl.tile.{op}s(t, s)"


@pytest.mark.parametrize("op", ["and_", "or_", "shl", "shr"])
def test_integer_dispatch(op: str) -> None:
    short = op.rstrip("_")
    assert call(f"pl.{op}(k, k)") == f"pl.tensor.{op}(k, k)"
    assert call(f"pl.{op}(v, v)") == f"pl.tile.{op}(v, v)"
    assert call(f"pl.{op}(v, j)") == f"pl.tile.{short}s(v, j)"


def test_comparison_dispatch() -> None:
    assert call("pl.cmp(x, y, cmp_type=2)") == "pl.tensor.cmp(x, y, cmp_type=2)"
    assert call("pl.cmp(t, u, cmp_type=2)") == "pl.tile.cmp(t, u, cmp_type=2)"
    assert call("pl.cmp(t, 0.5, cmp_type=4)") == "pl.tile.cmps(t, 0.5, cmp_type=4)"
    assert call("pl.cmp(t, 0.5, 4)") == "pl.tile.cmps(t, 0.5, cmp_type=4)"


@pytest.mark.parametrize("op", ["exp", "log", "sin", "cos", "neg", "abs", "recip", "sqrt", "rsqrt"])
def test_unary_dispatch(op: str) -> None:
    assert call(f"pl.{op}(x)").startswith(f"pl.tensor.{op}(x")
    assert call(f"pl.{op}(t)").startswith(f"pl.tile.{op}(t")


def test_scalar_forms() -> None:
    text = opaque(
        "a = pl.cast(n, pl.FP32)\nb = pl.min(n, 3)\nc = pl.max(g, g)\nd = pl.cast(n, target_type=pl.INT32)\nreturn"
    )
    body = parse(text).body
    round_trip(parse(text))
    assert type(body[0].value) is ir.Cast
    assert body[0].value.type == ir.ScalarType(pl.FP32)
    assert type(body[1].value) is ir.Min
    assert type(body[2].value) is ir.Max
    assert body[3].value.type == ir.ScalarType(pl.INT32)


@pytest.mark.parametrize(
    ("expression", "phrase"),
    [
        ("pl.add(x, t)", "cannot mix Tensor and Tile arguments"),
        ("pl.add(t, x)", "cannot mix Tensor and Tile arguments"),
        ("pl.sub(1.0, x)", "expected Tensor or Tile operands"),
        ("pl.maximum(s, s)", "expected Tensor or Tile operands"),
        ("pl.row_expand_mul(x, s)", "expected Tensor or Tile operands"),
        ("pl.matmul(x, 2)", "expected Tensor or Tile operands"),
        ("pl.exp(s)", "expected Tensor or Tile, got"),
        ("pl.cast(s, pl.FP16, mode='floor')", "Scalar inputs do not support non-default mode"),
        ("pl.matmul(t, u, a_trans=True)", "is not supported for Tile operands"),
        ("pl.matmul(t, u, b_trans=True)", "is not supported for Tile operands"),
        ("pl.matmul(t, u, c_matrix_nz=True)", "is not supported for Tile operands"),
        ("pl.matmul(pl.slice(t, [16, 16], [0, 0]), pl.slice(u, [16, 16], [0, 0]), out_dtype=pl.INT32)", "out_dtype"),
        ("pl.rsqrt(t, high_precision=True)", "high_precision"),
        ("pl.slice(t, [8, 32], [0, 0], clamp=True)", "clamp=True is not supported for a Tile"),
        ("pl.assemble(t, u, [0, 0], atomic=pl.AtomicType.Add)", "is not supported for Tile operands"),
        ("pl.row_sum(x, t)", "Tensor inputs must not pass"),
        ("pl.row_max(t)", "Tile inputs require"),
        ("pl.xor(v, v)", "Tile inputs require"),
        ("pl.add(s, n > 1)", ""),  # a bool is no scalar operand
        ("pl.add(s)", "pl operation 'add'"),
        ("pl.add(s, s, s)", "pl operation 'add'"),
        ("pl.exp(x, foo=1)", "unexpected keyword argument 'foo'"),
        ("pl.foo(x)", "Unknown operation 'pl.foo'"),
        ("pl.no_dep(x)", "Unknown operation 'pl.no_dep'"),
        ("pl.dump_tag(x)", "Unknown operation 'pl.dump_tag'"),
        ("pl.tensor.foo(x)", "Unknown pl.tensor operation: foo"),
        ("pl.prefetch.foo(x)", "Unknown pl.prefetch operation: foo"),
    ],
)
def test_refused_operations(expression: str, phrase: str) -> None:
    check_error(kernel(f"{SETUP}r = {expression}\nreturn", PARAMS), OP, phrase, "r = ")


@pytest.mark.parametrize(
    "expression",
    [
        "pl.cast(s, pl.FP16, mode='round')",
        "pl.slice(t, [8, 32], [0, 0], clamp=False)",
        "pl.rsqrt(t, high_precision=False)",
    ],
)
def test_spelling_out_a_default_is_always_accepted(expression: str) -> None:
    parse(kernel(f"{SETUP}r = {expression}\nreturn", PARAMS))


@pytest.mark.parametrize(
    "name",
    (
        "create_tensor dim full expand_clone arange gather scatter paged_gather random create_l1 get_block_idx "
        "get_block_num get_subblock_idx create_tile load store move relu lrelu prelu gatherb mgather mscatter "
        "matmul_bias matmul_mx matmul_mx_acc matmul_mx_bias gemv gemv_acc gemv_bias addc subc addsc subsc cmps rem "
        "rems maximums minimums sel sels tri aiv_shard aic_gather min max tpush_to_aiv tpush_to_aic tpop_from_aic "
        "tpop_from_aiv tfree_to_aic tfree_to_aiv aic_initialize_pipe aiv_initialize_pipe reserve_buffer "
        "import_peer_buffer"
    ).split(),
)
def test_promoted_operations_exist(name: str) -> None:
    from pypto.frontend.function_parser import FunctionParser
    from pypto.ops.surface import NAMESPACES

    assert name in NAMESPACES["pl"] or name in FunctionParser.CONSTRUCTS
    assert callable(getattr(pl, name))


def test_promoted_names_build_the_operations_of_their_level() -> None:
    assert call("pl.create_tensor([4, 4], dtype=pl.FP32)").startswith("pl.tensor.create([4, 4], dtype=pl.FP32")
    assert call("pl.create_tile([4, 16], dtype=pl.FP32)").startswith("pl.tile.create([4, 16], dtype=pl.FP32")
    assert call("pl.relu(t)") == "pl.tile.relu(t)"
    assert call("pl.get_block_idx()") == "pl.tensor.get_block_idx()"
    assert call("pl.dim(x, 0)").startswith("pl.tensor.dim(x, ")


# --- 8.5 --------------------------------------------------------------------------------------------------------------


def test_values_that_are_no_expressions() -> None:
    setup = "from pypto.language import PadValue, Mem, FP16\nDT = pl.FP16\nMODE = 'floor'\nLOW = PadValue.min\nSHAPE = [8, 32]\nROWS = 8\nclass cfg:\n    rows = 8\n    dt = pl.FP16\n    shape = (8, 32)"
    assert call("pl.cast(x, pl.FP16)", setup) == call("pl.cast(x, target_type=pl.FP16)", setup)
    assert call("pl.cast(x, DT)", setup) == call("pl.cast(x, pl.FP16)", setup)
    assert call("pl.cast(x, FP16)", setup) == call("pl.cast(x, pl.FP16)", setup)
    assert call("pl.cast(x, cfg.dt)", setup) == call("pl.cast(x, pl.FP16)", setup)
    assert call("pl.cast(x, DT, mode=MODE)", setup) == "pl.tensor.cast(x, target_type=pl.FP16, mode='floor')"
    assert call("pl.cast(x, DT, MODE)", setup) == "pl.tensor.cast(x, target_type=pl.FP16, mode='floor')"
    minimum = call("pl.fillpad(x, pl.PadValue.min)", setup)
    for form in (
        "pad_value=pl.PadValue.min",
        "LOW",
        "pad_value=LOW",
        "PadValue.min",
        "-math.inf",
        "pad_value=-math.inf",
    ):
        assert call(f"pl.fillpad(x, {form})", setup) == minimum
    assert call("pl.fillpad(x, 0)", setup) == call("pl.fillpad(x, pl.PadValue.zero)", setup)
    sliced = call("pl.slice(x, [8, 32], [n, 0])", setup)
    for shape in (
        "SHAPE",
        "shape=SHAPE",
        "[ROWS, 32]",
        "(8, 32)",
        "cfg.shape",
        "[cfg.rows, 32]",
        "shape=[cfg.rows, 32]",
        "[8, 2 * 16]",
    ):
        if shape.startswith("shape"):
            assert call(f"pl.slice(x, {shape}, offset=[n, 0])", setup) == sliced
        else:
            assert call(f"pl.slice(x, {shape}, [n, 0])", setup) == sliced
    assert call("pl.full([4, 8], dtype=pl.FP32, value=0)") == "pl.tensor.full([4, 8], dtype=pl.FP32, value=0.0)"
    assert call("pl.full([4, 8], pl.FP32, 0)") == "pl.tensor.full([4, 8], dtype=pl.FP32, value=0.0)"
    assert call("pl.full([4, 8], dtype=pl.FP32, value=-1.5)") == "pl.tensor.full([4, 8], dtype=pl.FP32, value=-1.5)"
    assert "target_memory=pl.Mem.Mat" in call("pl.load(x, [0, 0], [16, 32], target_memory=pl.Mem.Mat)")
    assert "target_memory=pl.Mem.Mat" in call("pl.load(x, [0, 0], [16, 32], target_memory=pl.MemorySpace.Mat)")
    assert "target_memory=pl.Mem.Mat" in call("pl.load(x, [0, 0], [16, 32], target_memory=Mem.Mat)", setup)
    assert call("pl.transpose(x, 0, 1)") == call("pl.transpose(x, axis1=0, axis2=1)")
    assert call("pl.transpose(x, -2, -1)") == call("pl.transpose(x, axis1=-2, axis2=-1)")


def test_dsl_variables_in_keyword_lists() -> None:
    assert call("pl.slice(x, [8, 32], offset=[n, 0])") == "pl.tensor.slice(x, [8, 32], [n, 0])"
    assert call("pl.slice(x, [8, 32], offset=[n + 1, 0])") == "pl.tensor.slice(x, [8, 32], [n + 1, 0])"


def test_a_dsl_variable_shadows_a_closure_value_in_a_keyword() -> None:
    assert call("pl.add(x, rhs=s)", "s = 3.0") == "pl.tensor.adds(x, s)"


def test_attrs_of_an_operation_are_kept() -> None:
    text = kernel(
        "r = pl.exp(x, attrs={'note': 'a', 'count': 3, 'flag': True, 'sizes': [1, 2], 'dt': pl.FP16, 'space': pl.Mem.Vec, 'vars': [x, y], 'var': n, 'none': [], 'e': n + 1})\nreturn",
        PARAMS,
    )
    node = parse(text)
    round_trip(node)
    attrs = node.body[0].value.attrs
    assert list(attrs) == ["note", "count", "flag", "sizes", "dt", "space", "vars", "var", "none", "e"]
    assert attrs["note"] == "a"
    assert attrs["count"] == 3
    assert attrs["flag"] is True
    assert list(attrs["sizes"]) == [1, 2]
    assert attrs["dt"] is pl.FP16
    assert attrs["space"] is pl.Mem.Vec
    assert [v.name_hint for v in attrs["vars"]] == ["x", "y"]
    assert attrs["var"] is node.params[4]
    assert list(attrs["none"]) == []
    assert type(attrs["e"]) is ir.Add


@pytest.mark.parametrize(
    ("attrs", "phrase"),
    [
        ("{'manual_dep_edges': [x]}", "is not a writable attr"),
        ("{'dummy_task': True}", "is not a writable attr"),
        ("{'a': [1, x]}", "list elements are mixed"),
        ("{'a': ['t']}", "list elements are mixed"),
        ("{n: 1}", "must use string-literal keys"),
        ("{**{}}", "must use string-literal keys"),
        ("n", "must be a dict literal"),
    ],
)
def test_refused_operation_attrs(attrs: str, phrase: str) -> None:
    check_error(kernel(f"r = pl.exp(x, attrs={attrs})\nreturn", PARAMS), S, phrase, "r = ")


def test_printed_allocation() -> None:
    expect(
        kernel(
            "m: pl.Ptr = pl.tile.alloc(pl.Mem.Vec, 4096)\nq: pl.Ptr = pl.tile.alloc(pl.Mem.Vec, 64, pinned=True)\nreturn"
        ),
        """
        m: pl.Ptr = pl.tile.alloc(pl.Mem.Vec, 4096)
        q: pl.Ptr = pl.tile.alloc(pl.Mem.Vec, 64, pinned=True)
        return
        """,
    )
    for form, phrase in (
        ("pl.Mem.Vec", "expects 2 positional args"),
        ("pl.Mem.Vec, 4, foo=1", "accepts no keyword argument"),
        ("pl.Mem.Vec, 4, pinned=x", "'pinned' must be a bool literal"),
    ):
        check_error(kernel(f"m: pl.Ptr = pl.tile.alloc({form})\nreturn"), OP, phrase, "m: pl.Ptr")


# --- 8.6 --------------------------------------------------------------------------------------------------------------


def test_cross_core_buffers() -> None:
    text = HEAD + textwrap.dedent("""
        @pl.program
        class P:
            @pl.function(type=pl.FunctionType.AIV)
            def v(self):
                b = pl.import_peer_buffer(name="fifo", peer_func="c")
                pl.aiv_initialize_pipe(c2v_consumer_buf=b.base, dir_mask=1, slot_size=512)
                return
            @pl.function(type=pl.FunctionType.AIC)
            def c(self):
                b = pl.reserve_buffer(name="fifo", size=4096, base=256)
                pl.aic_initialize_pipe(dir_mask=1, slot_size=512, c2v_consumer_buf=b.base, v2c_consumer_buf=0)
                return
        """)
    node = parse(text)
    round_trip(node)
    for function, op in (("v", "system.aiv_initialize_pipe"), ("c", "system.aic_initialize_pipe")):
        call = node[function].body[1].expr
        assert call.op.name == op
        assert call.args[0].value == 256  # of the peer, which comes later in the program


def test_an_import_without_a_known_peer_has_base_auto() -> None:
    text = kernel(
        "b = pl.import_peer_buffer(name='fifo', peer_func='other')\npl.aiv_initialize_pipe(dir_mask=1, slot_size=512, c2v_consumer_buf=b.base, v2c_consumer_buf=0)\nreturn"
    )
    assert parse(text).body[1].expr.args[0].value == -1


# --- 8.7 --------------------------------------------------------------------------------------------------------------


def test_method_calls() -> None:
    expect(
        program(
            "y = self.k(x, 1.0, y)\ny = self.k(x, s=2.0, b=y)\ny, z = self.two(x, y, z)\nself.plain(y)\n"
            "y = self.k(pl.no_dep(x), 1.0, y)\nreturn"
        ),
        """
        y: pl.Tensor[[32, 64], pl.FP32] = self.k(x, 1.0, y)
        y: pl.Tensor[[32, 64], pl.FP32] = self.k(x, 2.0, y)
        _tuple_tmp: pl.Tuple[pl.Tensor[[32, 64], pl.FP32], pl.Tensor[[32, 64], pl.FP32]] = self.two(x, y, z)
        y: pl.Tensor[[32, 64], pl.FP32] = _tuple_tmp[0]
        z: pl.Tensor[[32, 64], pl.FP32] = _tuple_tmp[1]
        self.plain(y)
        y: pl.Tensor[[32, 64], pl.FP32] = self.k(x, 1.0, y, attrs={"arg_direction_overrides": [0]})
        return
        """,
        "main",
    )


def test_method_call_attrs() -> None:
    text = program(
        "y = self.k(x, 1.0, y, attrs={'arg_directions': [pl.adir.input, pl.adir.scalar, pl.adir.output_existing], 'dump_vars': [y, x], 'note': 3})\nreturn"
    )
    node = parse(text)
    round_trip(node)
    attrs = node["main"].body[0].value.attrs
    assert list(attrs["arg_directions"]) == [
        ir.ArgDirection.Input,
        ir.ArgDirection.Scalar,
        ir.ArgDirection.OutputExisting,
    ]
    assert {v.name_hint for v in attrs["dump_vars"]} == {"x", "y"}
    assert attrs["note"] == 3
    assert (
        parse(program("self.plain(y, attrs={'arg_directions': []})\nreturn"))["main"]
        .body[0]
        .expr.attrs["arg_directions"]
        == []
    )


@pytest.mark.parametrize(
    ("statement", "cls", "phrase"),
    [
        ("y = self.nope(x)", U, "Function 'nope' not defined in program"),
        ("y = self.k(x, 1.0)", T, "Function 'k' expects 3 argument(s), got 2"),
        ("y = self.k(x, 1.0, y, z)", T, "expects 3 argument(s), got 4"),
        ("y = self.k(x, 1.0, y, device=0)", T, "does not accept keyword argument 'device'"),
        ("y = self.k(x, 1.0, y, deps=[n])", T, "does not accept keyword argument 'deps'"),
        ("y = self.k(x, 1.0, y, dumps=[x])", T, "does not accept keyword argument 'dumps'"),
        ("y = self.k(x, 1.0, y, core_num=2)", T, "does not accept keyword argument 'core_num'"),
        ("y = self.k(x, 1.0, y, sync_start=True)", T, "does not accept keyword argument 'sync_start'"),
        ("y = self.k(x, 1.0, y, foo=2)", T, "does not accept keyword argument 'foo'"),
        ("y = self.k(x, 1.0, y, a=x)", T, "does not accept keyword argument 'a'"),
        ("y = self.k(s=1.0, a=x)", T, "expects 3 argument(s), got 2"),
        ("y = self.k(1.0, 1.0, y)", T, "argument 'a' of function 'k'"),
        ("y = self.k(x, x, y)", T, "argument 's' of function 'k'"),
        ("y = self.k(flags, 1.0, y)", T, "argument 'a' of function 'k'"),
        ("y = self.k(x, 1, y)", T, "argument 's' of function 'k'"),
        ("y = self.k(x[0:8], 1.0, y)", T, "argument 'a' of function 'k'"),
        ("y = self.k(pl.no_dep(x, y), 1.0, y)", S, "exactly one positional argument"),
        ("y = self.k(x, 1.0, y, attrs={'arg_directions': [pl.adir.input]})", S, "must match positional arg count"),
        ("y = self.k(x, 1.0, y, attrs={'arg_directions': n})", S, "must be a list literal"),
        ("y = self.k(x, 1.0, y, attrs={'arg_directions': [x, x, x]})", S, "references only"),
        ("y = self.k(x, 1.0, y, attrs={'dump_vars': [z]})", T, "is not an argument of"),
        ("y = self.k(x, 1.0, y, attrs={'manual_dep_edges': []})", S, "attrs={'manual_dep_edges': ...} is not accepted"),
        ("a, b = self.k(x, 1.0, y)", T, "requires tuple to have TupleType"),
        ("a, b, c = self.two(x, y, z)", T, "cannot unpack 2 values into 3 names"),
    ],
)
def test_refused_method_calls(statement: str, cls: type, phrase: str) -> None:
    check_error(program(f"{statement}\nreturn"), cls, phrase, statement)


def two_functions(callee: str, body: str, params: str, extra: str = "", order: str = "callee") -> str:
    first = textwrap.indent(textwrap.dedent(callee).strip("\n"), "    ")
    second = f"    @pl.function(type=pl.FunctionType.Orchestration)\n    def main(self, {params}):\n" + textwrap.indent(
        textwrap.dedent(body), " " * 8
    )
    both = f"{first}\n{second}" if order == "callee" else f"{second}\n{first}"
    return f"{HEAD}{extra}\n@pl.program\nclass P:\n{both}\n"


DYNAMIC = """
@pl.function(type=pl.FunctionType.InCore)
def k(self, a: pl.Tensor[[N, 64], pl.FP32], b: pl.Out[pl.Tensor[[N, 64], pl.FP32]]) -> pl.Tensor[[N, 64], pl.FP32]:
    return b
"""


@pytest.mark.parametrize("order", ["callee", "caller"])
def test_dynamic_extents_of_results_follow_the_arguments(order: str) -> None:
    params = "x: pl.Tensor[[48, 64], pl.FP32], y: pl.Out[pl.Tensor[[48, 64], pl.FP32]]"
    text = two_functions(DYNAMIC, "z = self.k(x, y)\nreturn z", params, "N = pl.dynamic('N')", order)
    node = parse(text)
    round_trip(node)
    assert node["main"].body[0].var.type == ir.TensorType([48, 64], pl.FP32)


def test_conflicting_extents_are_refused() -> None:
    params = "x: pl.Tensor[[48, 64], pl.FP32], y: pl.Out[pl.Tensor[[32, 64], pl.FP32]]"
    check_error(
        two_functions(DYNAMIC, "z = self.k(x, y)\nreturn z", params, "N = pl.dynamic('N')"),
        S,
        "Dynamic type variable 'N' has conflicting bindings: 48 and 32 are not provably equal",
        "z = self.k",
    )


def test_composite_extents_bind() -> None:
    callee = """
    @pl.function(type=pl.FunctionType.InCore)
    def k(self, a: pl.Tensor[[N, 64], pl.FP32], b: pl.Out[pl.Tensor[[N * 2, 64], pl.FP32]]) -> pl.Tensor[[N * 2, 64], pl.FP32]:
        return b
    """
    params = "x: pl.Tensor[[16, 64], pl.FP32], y: pl.Out[pl.Tensor[[32, 64], pl.FP32]]"
    node = parse(two_functions(callee, "z = self.k(x, y)\nreturn z", params, "N = pl.dynamic('N')"))
    shape = node["main"].body[0].var.type.shape
    assert shape[0].as_python(format=False) in ("32", "pl.const(16, pl.INDEX) * pl.const(2, pl.INDEX)")


def test_undeclared_results_come_from_the_first_value_return() -> None:
    callee = """
    @pl.function(type=pl.FunctionType.InCore)
    def k(self, a: pl.Tensor[[16, 64], pl.FP32], b: pl.Out[pl.Tensor[[16, 64], pl.FP32]]):
        return b, a
    """
    params = "x: pl.Tensor[[16, 64], pl.FP32], y: pl.Out[pl.Tensor[[16, 64], pl.FP32]]"
    node = parse(two_functions(callee, "p, q = self.k(x, y)\nreturn p", params))
    round_trip(node)
    assert node["main"].body[1].var.type == ir.TensorType([16, 64], pl.FP32)


def test_an_unannotated_later_callee_is_unknown_and_takes_the_annotation() -> None:
    callee = """
    @pl.function(type=pl.FunctionType.InCore)
    def later(self, a: pl.Tensor[[16, 64], pl.FP32]):
        return a
    """
    params = "x: pl.Tensor[[16, 64], pl.FP32]"
    node = parse(
        two_functions(callee, "p: pl.Tensor[[16, 64], pl.FP32] = self.later(x)\nreturn p", params, "", "caller")
    )
    first = node["main"].body[0]
    assert first.var.type == first.value.type == ir.TensorType([16, 64], pl.FP32)
    check_error(
        two_functions(callee, "p, q = self.later(x)\nreturn p", params, "", "caller"),
        T,
        "requires tuple to have TupleType",
        "p, q",
    )


def test_recursion_has_its_declared_type() -> None:
    text = HEAD + textwrap.dedent("""
        @pl.program
        class P:
            @pl.function
            def f(self, n: pl.Scalar[pl.INDEX]) -> pl.Scalar[pl.INDEX]:
                r = self.f(n)
                return r
        """)
    node = parse(text)
    round_trip(node)
    assert node["f"].body[0].var.type == ir.ScalarType(pl.INDEX)


def test_device_of_an_orchestrator_call() -> None:
    text = HEAD + textwrap.dedent("""
        @pl.program
        class P:
            @pl.function(type=pl.FunctionType.Orchestration)
            def orch(self, x: pl.Tensor[[16, 64], pl.FP32]):
                return
            @pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)
            def main(self, x: pl.Tensor[[16, 64], pl.FP32], n: pl.Scalar[pl.INDEX]):
                self.orch(x, device=n + 1)
                return
        """)
    node = parse(text)
    round_trip(node)
    assert type(node["main"].body[0].expr.attrs["device"]) is ir.Add


# --- 8.8, 8.9 ---------------------------------------------------------------------------------------------------------

EXTERNAL = HEAD + textwrap.dedent("""
    @pl.function(type=pl.FunctionType.InCore)
    def half(a: pl.Tensor[[16, 64], pl.FP32], b: pl.Out[pl.Tensor[[16, 64], pl.FP32]]) -> pl.Tensor[[16, 64], pl.FP32]:
        return b
    alias = half
    """)


_COUNTER = itertools.count()


def external(body: str, extra: str = "", before: str = EXTERNAL) -> ir.Program:
    text = (
        before
        + textwrap.dedent("""
        @pl.program
        class P:
            @pl.function(type=pl.FunctionType.Orchestration)
            def main(self, x: pl.Tensor[[16, 64], pl.FP32], y: pl.Out[pl.Tensor[[16, 64], pl.FP32]]):
        """)
        + textwrap.indent(body, " " * 8)
        + textwrap.indent(textwrap.dedent(extra), "    ")
    )
    name = f"<external {next(_COUNTER)}>"
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    module = types.ModuleType(name)
    module.__file__ = name
    sys.modules[name] = module
    try:
        exec(compile(text, name, "exec"), module.__dict__)
        return module.P
    finally:
        del sys.modules[name]


def test_external_functions_join_the_program_once() -> None:
    node = external("y = half(x, y)\ny = alias(x, y)\nreturn y\n")
    assert sorted(g.name for g in node.functions) == ["half", "main"]
    assert [s.value.op.name for s in node["main"].body.stmts[:2]] == ["half", "half"]
    assert node["main"].body[0].var.type == ir.TensorType([16, 64], pl.FP32)
    round_trip(node)


def test_refused_external_calls() -> None:
    for body, cls, phrase in (
        ("y = half(x)\nreturn\n", T, "expects 2 argument(s), got 1"),
        ("y = half(x, b=y)\nreturn\n", T, "does not accept keyword argument 'b'"),
        ("y = half(1.0, y)\nreturn\n", T, "argument 'a' of function 'half'"),
    ):
        with pytest.raises(cls) as info:
            external(body)
        assert phrase in str(info.value)
        assert info.value.span is not None
    conflict = """
    @pl.function(type=pl.FunctionType.InCore)
    def half(self, a: pl.Tensor[[16, 64], pl.FP32]):
        return
    """
    with pytest.raises(S, match="conflicts with program function"):
        external("y = half(x, y)\nreturn\n", conflict)
    other = EXTERNAL.replace("alias = half", "first = half") + EXTERNAL.replace(HEAD, "")
    with pytest.raises(S, match="Conflicting external functions"):
        external("y = half(x, y)\ny = first(x, y)\nreturn\n", before=other)


INLINE = """
@pl.inline
def scaled(v, f):
    '''doc'''
    w = pl.mul(v, f)
    return w
@pl.inline
def twice(v):
    return scaled(scaled(v, 2.0), 3.0)
@pl.inline
def pair(v):
    return v, pl.exp(v)
@pl.inline
def nothing(v):
    pl.system.bar_all()
"""


def inline(body: str) -> str:
    return kernel(body, "x: pl.Tensor[[16, 32], pl.FP32]").replace("@pl.function", INLINE + "@pl.function", 1)


def test_inline_expansion() -> None:
    expect(
        inline("w = x\na = twice(x)\np, q = pair(w)\nnothing(x)\nreturn a"),
        """
        w: pl.Tensor[[16, 32], pl.FP32] = x
        w_1: pl.Tensor[[16, 32], pl.FP32] = pl.tensor.muls(x, 2.0)
        w_2: pl.Tensor[[16, 32], pl.FP32] = pl.tensor.muls(w_1, 3.0)
        a: pl.Tensor[[16, 32], pl.FP32] = w_2
        _tuple_tmp: pl.Tuple[pl.Tensor[[16, 32], pl.FP32], pl.Tensor[[16, 32], pl.FP32]] = [w, pl.tensor.exp(w)]
        p: pl.Tensor[[16, 32], pl.FP32] = _tuple_tmp[0]
        q: pl.Tensor[[16, 32], pl.FP32] = _tuple_tmp[1]
        pl.system.bar_all()
        return a
        """,
    )


@pytest.mark.parametrize(
    ("statement", "cls", "phrase"),
    [
        ("a = scaled(x)", T, "Inline function 'scaled' expects 2 argument(s)"),
        ("a = scaled(x, f=2.0)", T, "does not accept keyword argument 'f'"),
        ("a = nothing(x)", T, "has no return value"),
        ("a = pl.exp(nothing(x))", T, "has no return value"),
        ("a = missing_helper(x)", F, "Unsupported function call: missing_helper"),
        ("a = print(x)", F, "Unsupported function call: print"),
        ("a = sorted([1])", F, "Unsupported function call: sorted"),
    ],
)
def test_refused_inline_calls(statement: str, cls: type, phrase: str) -> None:
    check_error(inline(f"{statement}\nreturn"), cls, phrase, statement)


@pytest.mark.parametrize(
    ("statement", "hint"),
    [
        ("a = print(x)", "pl.static_print"),
        ("a = math.exp(x)", "pl.exp(...)"),
        ("a = exp(x)", "Did you mean 'pl.exp'?"),
        ("a = x @ x", "pl.matmul(a, b)"),
    ],
)
def test_hints_of_refused_calls(statement: str, hint: str) -> None:
    error = check_error(inline(f"{statement}\nreturn"), F, "Unsupported", statement)
    assert error.hint is not None and hint in error.hint, error.hint


def test_errors_inside_an_inline_function_name_its_line() -> None:
    text = inline("a = bad(x)\nreturn").replace(
        "@pl.inline", "@pl.inline\ndef bad(v):\n    return v + undefined_name\n@pl.inline", 1
    )
    check_error(text, U, "Undefined variable 'undefined_name'", "return v + undefined_name")


def test_inline_hygiene() -> None:
    # A local of the helper leaks nothing and does not see the caller's names.
    check_error(inline("a = twice(x)\nb = w\nreturn"), U, "Undefined variable 'w'", "b = w")
    text = inline("secret = x\na = peek(x)\nreturn").replace(
        "@pl.inline", "@pl.inline\ndef peek(v):\n    return secret\n@pl.inline", 1
    )
    check_error(text, U, "Undefined variable 'secret'", "return secret")
