"""Launches, dependencies, predicates, task ids (section 12 of the language description)."""

from __future__ import annotations

import pytest

import pypto.language as pl
from pypto import ir
from pypto.diag.parser_errors import (
    InvalidOperationError,
    ParserError,
    ParserSyntaxError,
    ParserTypeError,
    UndefinedVariableError,
)

from .dsl import check_error, expect, parse, program, round_trip

S, T, OP, U = ParserSyntaxError, ParserTypeError, InvalidOperationError, UndefinedVariableError


def main(body: str, before: str = "") -> ir.Function:
    node = parse(program(f"{body}\nreturn").replace("@pl.program", before + "\n@pl.program", 1))
    round_trip(node)
    return node["main"]


def submits(function: ir.Function) -> list[ir.Submit]:
    return [s.value for s in function.body.stmts if isinstance(s, ir.AssignStmt) and type(s.value) is ir.Submit]


# --- forms ------------------------------------------------------------------------------------------------------------


def test_two_targets_unpack_the_flat_tuple() -> None:
    function = main("a, t = pl.submit(self.k, x, 0.5, y)")
    stmts = function.body.stmts
    submit = stmts[0].value
    assert type(submit) is ir.Submit
    assert submit.op.name == "k"
    assert stmts[0].var.name_hint == "_submit_tmp"
    assert [type(t) for t in submit.type.types] == [ir.TensorType, ir.ScalarType]
    assert submit.type.types[1] == ir.ScalarType(pl.TASK_ID)
    assert [(s.var.name_hint, s.value.index) for s in stmts[1:3]] == [("a", 0), ("t", 1)]
    assert all(s.value.tuple is stmts[0].var for s in stmts[1:3])
    assert submit.core_num is None
    assert (submit.sync_start, submit.allow_early_resolve, submit.predicate) == (False, False, None)


def test_several_results() -> None:
    stmts = main("(a, b), t = pl.submit(self.two, x, y, z)").body.stmts
    assert [(s.var.name_hint, s.value.index) for s in stmts[1:4]] == [("a", 0), ("b", 1), ("t", 2)]


def test_one_target_takes_the_whole_tuple() -> None:
    stmts = main("r = pl.submit(self.two, x, y, z)\na = r[0]\nt = r[2]\ng = pl.system.task_dummy(deps=[t])").body.stmts
    assert len(stmts[0].var.type.types) == 3
    assert stmts[2].var.type == ir.ScalarType(pl.TASK_ID)
    main("r: pl.Tuple[pl.Tensor[[32, 64], pl.FP32], pl.Scalar[pl.TASK_ID]] = pl.submit(self.k, x, 0.5, y)")
    main("r: pl.Tuple[pl.Tensor[[32, 64], pl.FP32], pl.TaskId] = pl.submit(self.k, x, 0.5, y)")


def test_an_undeclared_callee_gives_only_the_task() -> None:
    stmts = main("r = pl.submit(self.plain, y)").body.stmts
    assert stmts[0].var.type == ir.TupleType([ir.ScalarType(pl.TASK_ID)])


def test_trailing_outputs_may_be_omitted() -> None:
    for call, count in (("self.k, x, 0.5", 2), ("self.two, x", 1), ("self.two, x, y", 2)):
        targets = "a" if "self.k" in call else "(a, b)"
        submit = submits(main(f"{targets}, t = pl.submit({call})"))[0]
        assert len(submit.args) == count


def test_spmd_submit() -> None:
    function = main(
        "y, d = pl.submit(self.k, x, 1.0, y)\n"
        "a, t = pl.spmd_submit(self.k, x, 0.5, z, core_num=n + 1, sync_start=True, deps=[d], dumps=[z, x, z], allow_early_resolve=True, predicate=(flags[n] != 3))"
    )
    submit = submits(function)[1]
    assert type(submit.core_num) is ir.Add
    assert submit.sync_start is True
    assert submit.allow_early_resolve is True
    assert type(submit.predicate) is ir.Ne
    assert [v.name_hint for v in submit.deps] == ["d"]
    assert [v.name_hint for v in submit.attrs["dump_vars"]] == ["x", "z"]  # in argument order, once each


def test_no_dep_arguments() -> None:
    submit = submits(main("a, t = pl.submit(self.two, pl.no_dep(x), y, pl.no_dep(z))".replace("a, t", "(a, b), t")))[0]
    assert list(submit.attrs["arg_direction_overrides"]) == [0, 2]
    assert [a.name_hint for a in submit.args] == ["x", "y", "z"]


def test_launch_attrs() -> None:
    submit = submits(
        main(
            "a, t = pl.submit(self.k, x, 0.5, y, attrs={'note': 3, 'arg_directions': [pl.adir.input, pl.adir.scalar, pl.adir.inout]})"
        )
    )[0]
    assert submit.attrs["note"] == 3
    assert submit.attrs["arg_directions"][2] == ir.ArgDirection.InOut


# --- deps -------------------------------------------------------------------------------------------------------------

IDS = "ids = pl.array.create(4, pl.TASK_ID)\ny, t = pl.submit(self.k, x, 1.0, y)\nz, u = pl.submit(self.k, x, 1.0, z)\nids[0] = t\n"


def deps(text: str, before: str = "") -> list[ir.Expr]:
    return list(submits(main(IDS + f"y, w = pl.submit(self.k, z, 1.0, y, deps={text})", before))[-1].deps)


def test_variables_are_the_list_as_it_is() -> None:
    assert [d.name_hint for d in deps("[t, u]")] == ["t", "u"]
    assert [d.name_hint for d in deps("(t, u)")] == ["t", "u"]
    assert [d.name_hint for d in deps("[t, None, u, None]")] == ["t", "u"]
    assert deps("[]") == []
    assert deps("[None]") == []
    assert [d.name_hint for d in deps("[ids]")] == ["ids"]
    assert [d.name_hint for d in deps("[ids, t]")] == ["ids", "t"]
    assert [d.name_hint for d in deps("[t for k in range(2)]")] == ["t", "t"]


@pytest.mark.parametrize(
    ("text", "entries"),
    [
        ("[ids[0]]", ["ids[0]"]),
        ("[ids[n]]", ["ids[n]"]),
        ("[t, ids[1]]", ["t", "ids[1]"]),
        ("[ids[k] for k in range(3)]", ["ids[0]", "ids[1]", "ids[2]"]),
        ("[ids[k] for k in range(4) if k % 2 == 1]", ["ids[1]", "ids[3]"]),
        ("[ids[k] for k in range(4) if k > 0 if k < 3]", ["ids[1]", "ids[2]"]),
        ("[t, [ids[k] for k in (2, 3)], u]", ["t", "ids[2]", "ids[3]", "u"]),
        ("[ids[k + 1] for k in STEPS]", ["ids[1]", "ids[3]"]),
        ("[ids[k] for k in range(N) if k not in STEPS]", ["ids[1]", "ids[3]"]),
    ],
)
def test_element_entries_are_packed(text: str, entries: list[str]) -> None:
    function = main(IDS + f"y, w = pl.submit(self.k, z, 1.0, y, deps={text})", "STEPS = [0, 2]\nN = 4")
    stmts = function.body.stmts
    at = next(i for i, s in enumerate(stmts) if isinstance(s, ir.AssignStmt) and s.var.name_hint == "_submit_deps_buf")
    buffer = stmts[at].var
    assert stmts[at].value.op.name == "array.create"
    assert buffer.type == ir.ArrayType(pl.TASK_ID, len(entries))
    packed = []
    for i in range(len(entries)):
        update = stmts[at + 1 + i]
        assert update.var is buffer
        assert update.value.op.name == "array.update_element"
        assert update.value.args[1].value == i
        entry = update.value.args[2]
        packed.append(entry.name_hint if type(entry) is ir.Var else f"ids[{entry.args[1].as_python(format=False)}]")
    assert packed == entries
    launch = stmts[at + 1 + len(entries)].value  # just before the launch
    assert type(launch) is ir.Submit
    assert list(launch.deps) == [buffer] or (len(launch.deps) == 1 and launch.deps[0] is buffer)


def test_deps_of_scopes() -> None:
    function = main(IDS + "with pl.at(level=pl.Level.CORE_GROUP, deps=[ids[k] for k in range(2)]):\n    y[:] = x")
    found = next(s for s in function.body.stmts if isinstance(s, ir.ScopeStmt))
    assert [v.name_hint for v in found.attrs["manual_dep_edges"]] == ["_submit_deps_buf"]


@pytest.mark.parametrize(
    ("text", "cls", "phrase"),
    [
        ("t", T, "deps= must be a list / tuple / comprehension"),
        ("{t}", T, "deps= must be a list / tuple / comprehension"),
        ("[y]", T, "deps= entries must be a TaskId variable"),
        ("[n]", T, "deps= entries must be a TaskId variable"),
        ("[1]", T, "deps= entries must be a TaskId variable"),
        ("[pl.exp(x)]", T, "deps= entries must be a TaskId variable"),
        ("[x[0, 0]]", T, "deps= entries must be a TaskId variable"),
        ("[missing]", U, "Undefined variable 'missing'"),
        ("[ids, ids[0]]", T, "cannot mix a whole TASK_ID array"),
        ("[ids[k] for k in range(n)]", T, "depends on an IR variable"),
        ("[ids[k] for k in range(3) if n > k]", T, "depends on an IR variable"),
        ("[ids[k] for k in pl.range(3)]", T, "is a DSL loop"),
        ("[ids[k] for k in 3]", T, "did not produce a sequence"),
        ("[ids[k] for k in (1.5,)]", T, "non-integer value"),
        ("[ids[k] for k in (True,)]", T, "non-integer value"),
        ("[ids[k] for k in range(2) for j in range(2)]", S, "supports a single `for` clause"),
        ("[ids[k] for k, j in [(1, 2)]]", S, "target must be a single name"),
    ],
)
def test_refused_deps(text: str, cls: type, phrase: str) -> None:
    check_error(
        program(IDS + f"y, w = pl.submit(self.k, z, 1.0, y, deps={text})\nreturn"), cls, phrase, "y, w = pl.submit"
    )


# --- task ids ---------------------------------------------------------------------------------------------------------


def test_task_ids_in_loops_and_arrays() -> None:
    function = main(
        "prev = None\nfor i in pl.range(3):\n    y, prev = pl.submit(self.k, x, 1.0, y, deps=[prev])\n"
        "ids = pl.array.create(3, pl.TASK_ID)\nfor p in pl.parallel(3):\n    z, t = pl.submit(self.k, x, 1.0, z)\n    ids[p] = t\n"
        "z, _ = pl.submit(self.k, y, 1.0, z, deps=[ids])"
    )
    stmts = function.body.stmts
    assert stmts[0].value.op.name == "system.task_invalid"
    loop = stmts[1].body.stmts
    assert loop[0].value.deps[0] is stmts[0].var
    assert loop[-1].var is stmts[0].var
    assert stmts[2].var.type == ir.ArrayType(pl.TASK_ID, 3)
    main(
        "ids = pl.array.create(extent=2, dtype=pl.TASK_ID)\nid = pl.array.get_element(ids, 0)\nids = pl.array.update_element(ids, 1, id)"
    )


def test_array_of_other_dtypes() -> None:
    for dtype in ("INT32", "BOOL", "INDEX", "UINT8"):
        main(f"a = pl.array.create(2, pl.{dtype})")
    check_error(program("a = pl.array.create(2, pl.FP32)\nreturn"), OP, "", "a = ")


def test_task_dummy() -> None:
    function = main(
        "y, t = pl.submit(self.k, x, 1.0, y)\ng = pl.system.task_dummy(deps=[t])\nh = pl.system.task_dummy(deps=[])"
    )
    barrier, empty = function.body[-3].value, function.body[-2].value
    assert list(barrier.attrs) == ["dummy_task", "manual_dep_edges"]
    assert barrier.attrs["dummy_task"] is True
    assert barrier.type == ir.ScalarType(pl.TASK_ID)
    assert dict(empty.attrs) == {"dummy_task": True}
    for call, phrase in (
        ("t", "must not use positional arguments"),
        ("", "requires keyword argument 'deps'"),
        ("deps=[], foo=1", "does not accept keyword argument"),
    ):
        with pytest.raises((T, OP)) as info:
            parse(program(f"g = pl.system.task_dummy({call})\nreturn"))
        assert phrase in str(info.value)
        assert info.value.span is not None


# --- refusals ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("statement", "cls", "phrase"),
    [
        ("a, b, t = pl.submit(self.two, x, y, z)", S, "must be unpacked as exactly 2 targets"),
        ("(t,) = pl.submit(self.plain, y)", S, "must be unpacked as exactly 2 targets"),
        ("pl.submit(self.k, x, 1.0, y)", S, "must be unpacked as a 2-tuple"),
        ("a = pl.exp(pl.submit(self.k, x, 1.0, y))", S, "must be unpacked as a 2-tuple"),
        ("a, t[0] = pl.submit(self.k, x, 1.0, y)", S, "task_id target must be a plain variable name"),
        ("((a, b), c), t = pl.submit(self.two, x, y, z)", S, "no nested tuples"),
        ("a[0], t = pl.submit(self.k, x, 1.0, y)", S, ""),
        ("a, t = pl.submit()", S, "requires the kernel as its first argument"),
        ("a, t = pl.submit(x)", S, "first argument must be a `self.<kernel>` method reference"),
        ("a, t = pl.submit(self.k(x, 1.0, y))", S, "first argument must be a `self.<kernel>` method reference"),
        ("a, t = pl.submit(self.nope, x)", U, "Function 'nope' not defined in program"),
        ("a, t = pl.submit(self.two, x, y, z)", T, "unpacks 1 result value(s) but kernel 'two' returns 2"),
        ("(a, b), t = pl.submit(self.k, x, 1.0, y)", T, "unpacks 2 result value(s) but kernel 'k' returns 1"),
        ("a, t = pl.submit(self.plain, y)", T, "unpacks 1 result value(s) but kernel 'plain' returns 0"),
        ("a, t = pl.submit(self.k, x)", T, "expects 2..3 argument(s), got 1"),
        ("a, t = pl.submit(self.k, x, 1.0, y, z)", T, "expects 2..3 argument(s), got 4"),
        ("a, t = pl.submit(self.k, 1.0, 1.0, y)", T, "argument 'a' of function 'k'"),
        ("a, t = pl.submit(self.k, x, 1.0, y, core_num=2)", T, "does not accept keyword argument 'core_num'"),
        ("a, t = pl.submit(self.k, x, 1.0, y, foo=2)", T, "does not accept keyword argument 'foo'"),
        ("a, t = pl.spmd_submit(self.k, x, 1.0, y)", S, "requires the core_num keyword"),
        ("a, t = pl.spmd_submit(self.k, x, 1.0, y, core_num=0)", S, "core_num must be a positive integer"),
        ("a, t = pl.spmd_submit(self.k, x, 1.0, y, core_num=1.5)", S, "core_num must be an integer expression"),
        ("a, t = pl.spmd_submit(self.k, x, 1.0, y, core_num=2, sync_start=1)", S, "must be a boolean literal"),
        ("a, t = pl.submit(self.k, x, 1.0, y, allow_early_resolve=n)", S, "must be a boolean literal"),
        ("a, t = pl.submit(self.k, x, 1.0, y, dumps=x)", T, "dumps= must be a list"),
        ("a, t = pl.submit(self.k, x, 1.0, y, dumps=[n])", T, "dumps= entries must be tensor variables"),
        ("a, t = pl.submit(self.k, x, 1.0, y, dumps=[x[0]])", T, "dumps= entries must be tensor variables"),
        ("a, t = pl.submit(self.k, x, 1.0, y, dumps=[z])", T, "is not an argument of this submit"),
        ("a, t = pl.submit(self.k, x, 1.0, y, attrs={'manual_dep_edges': []})", S, "is not accepted"),
        # predicates
        (
            "a, t = pl.submit(self.k, x, 1.0, y, predicate=(flags[0] > 0 and flags[1] > 0))",
            S,
            "predicate must be a single comparison",
        ),
        ("a, t = pl.submit(self.k, x, 1.0, y, predicate=True)", S, "predicate must be a single comparison"),
        ("a, t = pl.submit(self.k, x, 1.0, y, predicate=(n > 0))", S, "must compare one tensor element"),
        ("a, t = pl.submit(self.k, x, 1.0, y, predicate=(flags[0] > flags[1]))", S, "must compare one tensor element"),
        ("a, t = pl.submit(self.k, x, 1.0, y, predicate=(flags[0] > n))", S, "must compare one tensor element"),
        (
            "a, t = pl.submit(self.k, x, 1.0, y, predicate=(pl.cast(x[0, 0], pl.INT32) > 0))",
            T,
            "signed 8/16/32/64-bit integer",
        ),
        ("a, t = pl.submit(self.k, x, 1.0, y, predicate=(flags[-1] > 0))", T, "index must be non-negative"),
        ("a, t = pl.submit(self.k, x, 1.0, y, predicate=(flags[0, 0] > 0))", T, "predicate needs 1 index(es)"),
        (
            "a, t = pl.submit(self.k, x, 1.0, y, predicate=(flags[1.0] > 0))",
            T,
            "predicate indices must be integer scalars",
        ),
    ],
)
def test_refused_launches(statement: str, cls: type, phrase: str) -> None:
    text = program(f"{statement}\nreturn")
    with pytest.raises(ParserError) as info:
        parse(text)
    error = info.value
    assert type(error) is cls, f"{type(error).__name__}: {error}"
    assert phrase in str(error), str(error)
    assert error.span is not None
    assert text.splitlines()[error.span["line"] - 1].strip() == statement


@pytest.mark.parametrize(
    ("options", "names"),
    [
        ("deps=[d]", "deps"),
        ("allow_early_resolve=True", "allow_early_resolve"),
        ("predicate=(flags[0] > 0)", "predicate"),
    ],
)
def test_launches_in_clusters_carry_no_metadata(options: str, names: str) -> None:
    text = program(
        f"y, d = pl.submit(self.k, x, 1.0, y)\nwith pl.cluster():\n    z, t = pl.submit(self.k, x, 1.0, z, {options})\nreturn"
    )
    error = check_error(text, S, "cannot carry per-task dispatch metadata", "z, t = ")
    assert names in str(error)


# --- predicates -------------------------------------------------------------------------------------------------------


def test_predicate_forms() -> None:
    for text, node in (
        ("flags[0] > 0", ir.Gt),
        ("0 < flags[0]", ir.Lt),  # kept as written
        ("flags[n] == -3", ir.Eq),
        ("flags[n + 1] != pl.const(2, pl.INT32)", ir.Ne),
        ("flags[0] >= 1", ir.Ge),
        ("flags[0] <= 1", ir.Le),
    ):
        assert type(submits(main(f"a, t = pl.submit(self.k, x, 1.0, y, predicate=({text}))"))[0].predicate) is node


FLAG = """    @pl.function(type=pl.FunctionType.InCore)
    def flag(self, a: pl.InOut[pl.Tensor[[4], pl.INT32]]) -> pl.Tensor[[4], pl.INT32]:
        return a
"""


def flagged(body: str) -> str:
    head = "    @pl.function(type=pl.FunctionType.Orchestration)"
    return program(f"{body}\nreturn").replace(head, FLAG + head, 1)


def test_the_producer_of_a_predicate_operand_must_be_a_dependency() -> None:
    make = "f, t = pl.submit(self.flag, flags)\n"
    missing = "predicate reads 'f', which is produced by the task bound to 't', but 't' is not in deps="
    error = check_error(
        flagged(make + "y, u = pl.submit(self.k, x, 1.0, y, predicate=(f[0] > 0))"), S, missing, "y, u ="
    )
    assert "deps=[t]" in error.hint
    parse(flagged(make + "y, u = pl.submit(self.k, x, 1.0, y, deps=[t], predicate=(f[0] > 0))"))
    # The id was rebound since: it names another task.
    check_error(
        flagged(
            make
            + "z, t = pl.submit(self.k, x, 1.0, z)\ny, u = pl.submit(self.k, x, 1.0, y, deps=[t], predicate=(f[0] > 0))"
        ),
        S,
        "is not in deps=",
        "y, u =",
    )
    # An array may hold it.
    parse(
        flagged(
            make
            + "ids = pl.array.create(1, pl.TASK_ID)\nids[0] = t\ny, u = pl.submit(self.k, x, 1.0, y, deps=[ids], predicate=(f[0] > 0))"
        )
    )
    # No recorded producer, or the name was assigned anew.
    parse(flagged("y, u = pl.submit(self.k, x, 1.0, y, predicate=(flags[0] > 0))"))
    parse(flagged(make + "f = self.flag(f)\ny, u = pl.submit(self.k, x, 1.0, y, predicate=(f[0] > 0))"))
    # Forms without deps= point to `as tid`.
    error = check_error(
        flagged(make + "for i in pl.spmd(2, predicate=(f[0] > 0)):\n    y[i * 4 : i * 4 + 4] = x[0:4]"),
        S,
        "is not in deps=",
        "pl.spmd",
    )
    assert "as t" in error.hint


def test_producers_of_spmd_bodies() -> None:
    make = "with pl.spmd(2) as t:\n    f = self.flag(flags)\n"
    check_error(
        flagged(make + "y, u = pl.submit(self.k, x, 1.0, y, predicate=(f[0] > 0))"), S, "'t' is not in deps=", "y, u ="
    )
    parse(flagged(make + "y, u = pl.submit(self.k, x, 1.0, y, deps=[t], predicate=(f[0] > 0))"))


def test_text_of_launches() -> None:
    expect(
        program(
            "(y, z), t = pl.spmd_submit(self.two, x, pl.no_dep(y), z, core_num=4, sync_start=True, deps=[None], allow_early_resolve=True, predicate=(flags[0] == 1))\nreturn"
        ),
        """
        _submit_tmp: pl.Tuple[pl.Tensor[[32, 64], pl.FP32], pl.Tensor[[32, 64], pl.FP32], pl.Scalar[pl.TASK_ID]] = pl.spmd_submit(self.two, x, y, z, core_num=4, sync_start=True, allow_early_resolve=True, predicate=(pl.cast(pl.tensor.read(flags, [0]), pl.INDEX) == 1), attrs={"arg_direction_overrides": [1]})
        y: pl.Tensor[[32, 64], pl.FP32] = _submit_tmp[0]
        z: pl.Tensor[[32, 64], pl.FP32] = _submit_tmp[1]
        t: pl.Scalar[pl.TASK_ID] = _submit_tmp[2]
        return
        """,
        "main",
    )
