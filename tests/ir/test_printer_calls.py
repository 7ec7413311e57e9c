"""Printed calls, kwargs, attributes, op forms and submits (spec 16.5 - 16.7)."""

import pytest

from pypto.diag.errors import InternalError
from pypto.ir.dtype import DataType
from pypto.ir.enums import ArgDirection, AtomicType, MemorySpace, PadValue, PipeType, TensorLayout, TileLayout
from pypto.ir.expr import Call, ConstFloat, ConstInt, GlobalVar, MakeTuple, Op, Submit, Var, index_const
from pypto.ir.printer import calls, python_print
from pypto.ir.program import Function, Program
from pypto.ir.span import Span
from pypto.ir.stmt import EvalStmt, SeqStmts
from pypto.ir.type import ScalarType, TensorType, TupleType
from pypto.ops.printing import PRINTED_FORMS

U = Span.unknown()
INDEX, FP32, FP16, INT32 = DataType.INDEX, DataType.FP32, DataType.FP16, DataType.INT32
TENSOR = TensorType([16, 16], FP32)
X, Y, Z = (Var(name, TENSOR) for name in "xyz")
IDX, J = (Var(name, ScalarType(INDEX)) for name in "ij")
T1, T2 = (Var(name, ScalarType(DataType.TASK_ID)) for name in ("t1", "t2"))


def text(node):
    return python_print(node, format=False)


def op(name, args=(), kwargs=None, attrs=None):
    return Call(Op(name), list(args), kwargs or {}, attrs, TENSOR, U)


def in_program(*exprs):
    """The printed lines of these expressions as statements of a function ``f`` in a program."""
    params = list(dict.fromkeys([X, Y, Z, IDX, J, T1, T2]))
    body = SeqStmts([EvalStmt(e, U) for e in exprs], U)
    lines = text(Program([Function("f", params, [], body, U)], "P", U)).split("\n")
    return [line.strip() for line in lines[lines.index("class P:") + 3 :]]


@pytest.fixture
def forms(monkeypatch):
    """Ops whose printed form is looked up under the last component of their name, or as given."""

    def use(**chosen):
        names = {key.replace("__", "."): value for key, value in chosen.items()}
        monkeypatch.setattr(calls, "_form_source", lambda name: PRINTED_FORMS[names[name]] if name in names else None)

    return use


@pytest.fixture(autouse=True)
def no_forms(monkeypatch):
    monkeypatch.setattr(calls, "_form_source", lambda name: None)


# --- names ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("tile.add", "pl.tile.add(x, y)"),
        ("pld.tile.put", "pld.tile.put(x, y)"),
        ("custom", "custom(x, y)"),
        ("tile.and", "pl.tile.and_(x, y)"),
        ("tensor.not", "pl.tensor.not_(x, y)"),
        ("pld.system.or", "pld.system.or_(x, y)"),
    ],
)
def test_op_names(name, expected):
    assert text(op(name, [X, Y])) == expected


def test_operands():
    call = op("tile.load", [X, MakeTuple([IDX, index_const(0)]), MakeTuple([index_const(16), index_const(16)])])
    assert text(call) == "pl.tile.load(x, [i, 0], [16, 16])"
    assert text(op("tile.add", [op("tile.mul", [X, Y]), Z])) == "pl.tile.add(pl.tile.mul(x, y), z)"


# --- kwargs -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kwargs", "expected"),
    [
        ({"axis": 1}, "axis=1"),
        ({"axis": -1}, "axis=-1"),
        ({"flag": True, "other": False}, "flag=True, other=False"),
        ({"scale": 0.1}, "scale=0.10000000000000001"),
        ({"name": "abc"}, "name='abc'"),
        ({"name": "it's"}, r"name='it\'s'"),
        ({"name": "a\\b\n"}, r"name='a\\b\n'"),
        ({"dtype": FP16}, "dtype=pl.FP16"),
        ({"target_memory": MemorySpace.Vec}, "target_memory=pl.Mem.Vec"),
        ({"layout": TensorLayout.DN}, "layout=pl.TensorLayout.DN"),
        ({"blayout": TileLayout.col_major}, "blayout=pl.TileLayout.col_major"),
        ({"pad_value": PadValue.min}, "pad_value=pl.PadValue.min"),
        ({"set_pipe": PipeType.MTE2, "wait_pipe": 4}, "set_pipe=pl.PipeType.MTE2, wait_pipe=pl.PipeType.V"),
        ({"pipe": PipeType.FIX}, "pipe=pl.PipeType.FIX"),
        ({"mode": 0}, "mode='none'"),
        ({"mode": 1}, "mode='rint'"),
        ({"mode": 6}, "mode='odd'"),
        ({"mode": "hard"}, "mode='hard'"),
        ({"atomic": AtomicType.None_}, "atomic=pl.AtomicType.None_"),
        ({"atomic": 1}, "atomic=pl.AtomicType.Add"),
    ],
)
def test_kwargs(kwargs, expected):
    assert text(op("tile.f", [X], kwargs)) == f"pl.tile.f(x, {expected})"


def test_only_kwargs():
    assert text(op("system.sync_src", [], {"event_id": 3})) == "pl.system.sync_src(event_id=3)"


@pytest.mark.parametrize("value", [ArgDirection.Input, X, [X], index_const(3)])
def test_a_kwarg_of_another_kind_is_refused(value):
    with pytest.raises(TypeError, match="kwarg 'k' has no printed form"):
        text(op("tile.f", [X], {"k": value}))


def test_an_unknown_cast_mode_is_refused():
    with pytest.raises(ValueError, match="cast mode"):
        text(op("tile.cast", [X], {"mode": 7}))


# --- attributes -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("attrs", "expected"),
    [
        ({"n": 3}, '"n": 3'),
        ({"b": True}, '"b": True'),
        ({"f": 2.0}, '"f": 2.0'),
        ({"pipeline_membership": "0:1;1:0"}, '"pipeline_membership": "0:1;1:0"'),
        ({"s": 'say "hi"\\\n'}, r'"s": "say \"hi\"\\\n"'),
        ({"s": "it's"}, '"s": "it\'s"'),
        ({"d": FP32}, '"d": pl.FP32'),
        ({"m": MemorySpace.Acc}, '"m": pl.Mem.Acc'),
        ({"l": TensorLayout.NZ}, '"l": pl.TensorLayout.NZ'),
        ({"l": TileLayout.none_box}, '"l": pl.TileLayout.none_box'),
        ({"p": PadValue.null}, '"p": pl.PadValue.null'),
        ({"d": ArgDirection.OutputExisting}, '"d": pl.adir.output_existing'),
        ({"arg_direction_overrides": [0, 2]}, '"arg_direction_overrides": [0, 2]'),
        ({"compiler_manual_dep_edges": [T1, T2]}, '"compiler_manual_dep_edges": [t1, t2]'),
        ({"empty": []}, '"empty": []'),
        ({"v": X}, '"v": x'),
        ({"e": IDX + 1}, '"e": i + 1'),
        # A bare number would come back as an int.
        ({"e": index_const(3)}, '"e": pl.const(3, pl.INDEX)'),
        ({"core_num": 3}, '"core_num": 3'),
        ({"a": 1, "b": 2}, '"a": 1, "b": 2'),
    ],
)
def test_attrs(attrs, expected):
    assert text(op("tile.f", [X], {"k": 1}, attrs)) == f"pl.tile.f(x, k=1, attrs={{{expected}}})"


@pytest.mark.parametrize(
    ("direction", "name"),
    [
        (ArgDirection.Input, "input"),
        (ArgDirection.Output, "output"),
        (ArgDirection.OutputExisting, "output_existing"),
        (ArgDirection.InOut, "inout"),
        (ArgDirection.NoDep, "no_dep"),
        (ArgDirection.Scalar, "scalar"),
    ],
)
def test_directions(direction, name):
    assert (
        text(op("f", [X], None, {"arg_directions": [direction]}))
        == f'f(x, attrs={{"arg_directions": [pl.adir.{name}]}})'
    )


@pytest.mark.parametrize("attrs", [{"manual_dep_edges": [T1]}, {"dummy_task": True}])
def test_dependencies_on_another_op_are_refused(attrs):
    with pytest.raises(InternalError, match=r"no printed form on a call of 'tile\.f'"):
        text(op("tile.f", [X], None, attrs))


def test_an_attribute_of_another_kind_is_refused():
    call = Call.make(Op("tile.f"), op("f", [X]).args, op("f").kwargs, {"k": object()}, TENSOR, U)
    with pytest.raises(InternalError, match="'k' has no printed form for a value of type object"):
        text(call)


# --- op forms ---------------------------------------------------------------------------------------------------------


def test_every_form_says_what_it_does():
    assert all(form.__doc__ for form in PRINTED_FORMS.values())


def test_full(forms):
    forms(tile__full="full")
    shape = MakeTuple([index_const(4), index_const(8)])
    call = op("tile.full", [shape, ConstFloat(1.5, FP16)], {"dtype": FP16}, {"n": 1})
    assert text(call) == 'pl.tile.full([4, 8], dtype=pl.FP16, value=1.5, attrs={"n": 1})'
    assert text(op("tile.full", [shape, ConstInt(0, INT32)], {"dtype": INT32})) == (
        "pl.tile.full([4, 8], dtype=pl.INT32, value=0)"
    )


def test_reinterpret_view(forms):
    forms(tensor__reinterpret_view="reinterpret_view")
    assert text(op("tensor.reinterpret_view", [X], {"dtype": FP16})) == "pl.tensor.reinterpret_view(x, dtype=pl.FP16)"
    call = op("tensor.reinterpret_view", [X, MakeTuple([IDX, index_const(8)])], {"dtype": FP16})
    assert text(call) == "pl.tensor.reinterpret_view(x, dtype=pl.FP16, shape=[i, 8])"
    with pytest.raises(InternalError, match="without a dtype"):
        text(op("tensor.reinterpret_view", [X]))


def test_alloc(forms):
    forms(tile__alloc="alloc")
    call = op("tile.alloc", [index_const(MemorySpace.Vec.value), index_const(2304)])
    assert text(call) == "pl.tile.alloc(pl.Mem.Vec, 2304)"
    call = op("tile.alloc", [index_const(MemorySpace.Mat.value), index_const(64)], {"pinned": True})
    assert text(call) == "pl.tile.alloc(pl.Mem.Mat, 64, pinned=True)"


def test_syncall(forms):
    forms(system__syncall="syncall")
    hard = op("system.syncall", [], {"core_type": "mix", "mode": "hard"})
    assert text(hard) == "pl.system.syncall(core_type='mix', mode='hard')"
    soft = {"core_type": "aiv_only", "mode": "soft"}
    assert text(op("system.syncall", [X], soft)) == (
        'pl.system.syncall(mode="soft", core_type="aiv_only", gm_workspace=x, used_cores=0)'
    )
    assert text(op("system.syncall", [X, IDX], soft)) == (
        'pl.system.syncall(mode="soft", core_type="aiv_only", gm_workspace=x, used_cores=i)'
    )


def test_gather_row(forms):
    forms(tile__gather_row="gather_row")
    at = MakeTuple([index_const(0), IDX])
    five = [X, Y, at, at, at]
    assert text(op("tile.gather_row", five)) == "pl.tile.gather_row(x, y, [0, i], [0, i], [0, i])"
    assert text(op("tile.gather_row", [*five, at], {"transpose": True})) == (
        "pl.tile.gather_row(x, y, [0, i], [0, i], [0, i], valid_shape=[0, i], transpose=True)"
    )


def test_mgather(forms):
    forms(tile__mgather="mgather")
    valid = MakeTuple([index_const(4), index_const(8)])
    assert text(op("tile.mgather", [X, Y], {"coalesce": 0})) == "pl.tile.mgather(x, y, coalesce=0)"
    assert text(op("tile.mgather", [X, Y, valid], {"coalesce": 0})) == (
        "pl.tile.mgather(x, y, valid_shape=[4, 8], coalesce=0)"
    )
    assert text(op("tile.mgather", [X, Y, Z], {"coalesce": 1})) == "pl.tile.mgather(x, y, scratch=z, coalesce=1)"
    assert text(op("tile.mgather", [X, Y, Z, valid], {"coalesce": 1})) == (
        "pl.tile.mgather(x, y, scratch=z, valid_shape=[4, 8], coalesce=1)"
    )
    assert text(op("tile.mgather", [X, Y, valid], {"coalesce": 1})) == (
        "pl.tile.mgather(x, y, valid_shape=[4, 8], coalesce=1)"
    )


def test_task_dummy(forms):
    forms(system__task_dummy="task_dummy")
    barrier = op("system.task_dummy", [], None, {"dummy_task": True, "manual_dep_edges": [T1, T2], "n": 1})
    assert text(barrier) == 'pl.system.task_dummy(deps=[t1, t2], attrs={"n": 1})'
    assert text(op("system.task_dummy", [], None, {"dummy_task": True})) == "pl.system.task_dummy(deps=[])"


def test_alloc_window_buffer(forms):
    forms(pld__tensor__alloc_window_buffer="alloc_window_buffer")
    call = op("pld.tensor.alloc_window_buffer", [IDX], {"name": "w"})
    assert text(call) == "pld.tensor.alloc_window_buffer(i)"


def test_add_of_a_constant_prints_as_the_scalar_op(forms):
    forms(tensor__add="adds")
    assert text(op("tensor.add", [X, Y])) == "pl.tensor.add(x, y)"
    assert text(op("tensor.add", [X, ConstFloat(1.0, FP32)])) == "pl.tensor.adds(x, 1.0)"
    assert text(op("tensor.add", [X, ConstInt(3, INT32)], None, {"n": 1})) == (
        'pl.tensor.adds(x, pl.const(3, pl.INT32), attrs={"n": 1})'
    )


def test_a_load_of_physical_padding_has_a_private_name(forms):
    forms(pld__tile__remote_load="physical_tail_padding")
    flag = {"allow_physical_tail_padding": True}
    assert text(op("pld.tile.remote_load", [X, IDX], flag)) == "pld.tile._remote_load_with_physical_tail_padding(x, i)"
    assert text(op("pld.tile.remote_load", [X, IDX])) == "pld.tile.remote_load(x, i)"


# --- function calls ---------------------------------------------------------------------------------------------------


def call(args, attrs=None):
    return Call(GlobalVar("k"), list(args), {}, attrs, TENSOR, U)


def test_a_function_call_in_a_program_and_outside():
    assert in_program(call([X, Y])) == ["self.k(x, y)"]
    assert text(call([X, Y])) == "k(x, y)"


def test_attributes_of_a_function_call_have_a_fixed_order():
    attrs = {
        "arg_direction_overrides": [1],
        "arg_directions": [ArgDirection.Input, ArgDirection.InOut],
        "hint.cost": 2.5,
        "device": IDX + 1,
        "dump_vars": [Y, Z, X],
    }
    assert in_program(call([X, Y], attrs)) == [
        'self.k(x, y, device=i + 1, attrs={"dump_vars": [x, y], "arg_directions": [pl.adir.input, pl.adir.inout], '
        '"arg_direction_overrides": [1], "hint.cost": 2.5})'
    ]


def test_a_device_alone_needs_no_attrs():
    assert in_program(call([X], {"device": index_const(0)})) == ["self.k(x, device=0)"]


@pytest.mark.parametrize("show", [in_program, text])
def test_dependencies_of_a_plain_call_are_refused(show):
    with pytest.raises(InternalError, match="manual_dep_edges"):
        show(call([X], {"manual_dep_edges": [T1]}))


# --- submits ----------------------------------------------------------------------------------------------------------


def submit(args, deps=(), attrs=None, **launch):
    kind = TupleType([TENSOR, ScalarType(DataType.TASK_ID)])
    return Submit(GlobalVar("k"), list(args), list(deps), {}, attrs, kind, U, **launch)


def test_a_bare_submit():
    assert in_program(submit([X, Y])) == ["pl.submit(self.k, x, y)"]
    assert text(submit([X, Y])) == "pl.submit(k, x, y)"


def test_all_parts_of_a_submit():
    attrs = {"n": 1, "dump_vars": [Y, X], "arg_directions": [ArgDirection.Input, ArgDirection.OutputExisting]}
    full = submit([X, Y], [T1, T2], attrs, allow_early_resolve=True, predicate=IDX > 0)
    assert in_program(full) == [
        "pl.submit(self.k, x, y, deps=[t1, t2], dumps=[x, y], allow_early_resolve=True, predicate=(i > 0), "
        'attrs={"arg_directions": [pl.adir.input, pl.adir.output_existing], "n": 1})'
    ]


def test_a_launch_width_makes_an_spmd_submit():
    wide = submit([X], [T1], core_num=IDX * 2, sync_start=True, allow_early_resolve=True)
    assert in_program(wide) == [
        "pl.spmd_submit(self.k, x, deps=[t1], core_num=i * 2, sync_start=True, allow_early_resolve=True)"
    ]
    assert in_program(submit([X], core_num=8)) == ["pl.spmd_submit(self.k, x, core_num=8)"]


def test_a_submit_keeps_its_edges_in_deps():
    with pytest.raises(InternalError, match=r"Submit\.deps"):
        text(submit([X], (), {"manual_dep_edges": [T1]}))
