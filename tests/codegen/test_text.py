"""The text emitter, names, literals, and assignments that happen at once."""

import itertools
import random

import pytest

from pypto.codegen.cpp_expressions import as_float, float_literal, half_bits, integer
from pypto.codegen.names import KEYWORDS, Names, legal
from pypto.codegen.parallel_copy import Move, in_order
from pypto.codegen.text import Writer, around
from pypto.ir.dtype import DataType


def test_a_declaration_moves_to_the_block_around_all_mentions():
    out = Writer()
    with out.opened("outer {"):
        with out.opened("first {") as first:
            inner = out.declare("int64_t", "a", "f()")
            kept = out.declare("int64_t", "b", "g()")
            out.line(f"use({out.mention(kept)});")
        with out.opened("second {") as second:
            out.line(f"use({out.mention(inner)});")
        assert around(first, second) is first.parent
    assert out.render() == (
        "outer {\n    int64_t a{};\n    first {\n        a = f();\n        int64_t b = g();\n        use(b);\n    }\n"
        "    second {\n        use(a);\n    }\n}\n"
    )


def test_both_branches_share_the_place_in_front():
    out = Writer()
    before = out.group()
    with out.opened("if (c) {", None, before):
        out.line("x();")
    with out.opened("} else {", "}", before):
        made = out.declare("int64_t", "a", "f()")
    out.line(f"use({out.mention(made)});")
    with out.at(before):
        out.line("first();")
    assert out.render() == "first();\nint64_t a{};\nif (c) {\n    x();\n} else {\n    a = f();\n}\nuse(a);\n"


def test_an_array_that_moves_is_filled_where_it_was():
    out = Writer()
    with out.opened("{"):
        ids = out.declare_array("Id", "ids", 3, "none()", empty="none()")
        zeros = out.declare_array("int32_t", "n", 2, "0", empty=None)
        out.line(out.mention(zeros))
    out.line(out.mention(ids))
    loop = "for (int64_t __init_i = 0; __init_i < 3; ++__init_i) ids[__init_i] = none();"
    assert out.render() == f"Id ids[3]; {loop}\n{{\n    {loop}\n    int32_t n[2] = {{0}};\n    n\n}}\nids\n"


def test_names():
    names = Names({"taken"}, ("rt_",))
    found = [
        names.of_variable(n)
        for n in ("x__ssa_v0", "x__out_v1", "x__ssa_v2", "x__ssa_v2", "taken", "rt_x", "task_1", "__y")
    ]
    assert found == ["x", "x__out_v1", "x__ssa_v2", "x__ssa_v2_1", "taken_1", "rt_x_1", "task_1_1", "i"]
    assert all(Names().of_variable(word) == f"{word}_1" for word in KEYWORDS)
    assert legal("9a") == "v9a" and legal("_Q") == "v_Q" and legal("ä") == "u00e4"


def test_helpers_are_numbered_on():
    names = Names()
    assert [names.helper("x") for _ in range(3)] == ["x", "x_1", "x_2"]


@pytest.mark.parametrize("value", [0.0, -0.0, 1.0, 0.1, 1e-7, 1e-45, 3.4e38, 123456.789, -2.5e20, 100.0, 2.0**24 + 2])
def test_float_literals_round_trip(value):
    text = float_literal(value)
    assert text.endswith("f") and as_float(float(text[:-1])) == as_float(value)
    assert any(c in text for c in ".e")


def test_float_literals_are_short():
    assert [float_literal(v) for v in (0.5, 1e-7, 1.0, 0.1, 100.0)] == ["0.5f", "1e-07f", "1.0f", "0.1f", "100.0f"]


def test_bits_of_16_bit_floats():
    np = pytest.importorskip("numpy")
    ml_dtypes = pytest.importorskip("ml_dtypes")
    for value in (0.0, 1.5, -2.0, 0.1, 3.14159, 1e-3, float("inf"), float("nan")):
        assert half_bits(value, DataType.FP16) == int(np.float16(value).view(np.uint16))
        if value == value:
            assert half_bits(value, DataType.BF16) == int(np.array(value).astype(ml_dtypes.bfloat16).view(np.uint16))


def test_integers():
    assert integer(-(2**63)) == "(-9223372036854775807 - 1)" and integer(-5) == "-5"


def run(moves):
    """The assignments of the steps, on real values: each variable starts as its own name."""
    state = {move.target: move.target for move in moves}
    state.update({r: r for move in moves for r in move.reads})
    kept = {}
    for move, keep, was_kept in in_order(moves):
        value = tuple(state[r] for r in move.reads)
        if keep:
            assert move.target not in kept
            kept[move.target] = value
        else:
            state[move.target] = kept[move.target] if was_kept else value
    return {move.target: state[move.target] for move in moves}


def at_once(moves):
    return {move.target: tuple(move.reads) for move in moves}


@pytest.mark.parametrize("sources", list(itertools.product("abc", repeat=3)))
def test_all_moves_of_three_variables(sources):
    moves = [Move(target, source, (source,)) for target, source in zip("abc", sources, strict=True)]
    assert run(moves) == at_once(moves)


@pytest.mark.parametrize("seed", range(50))
def test_moves_of_expressions(seed):
    rng = random.Random(seed)
    names = [f"v{i}" for i in range(rng.randint(1, 9))]
    moves = [Move(n, "", tuple(sorted(rng.sample([*names, "x"], rng.randint(0, min(3, len(names))))))) for n in names]
    assert run(moves) == at_once(moves)


def test_nothing_is_kept_without_need():
    chain = [Move(a, b, (b,)) for a, b in zip("abcd", "bcde", strict=True)]
    steps = in_order(chain)
    assert [step.move.target for step in steps] == list("abcd") and not any(step.keep for step in steps)
    swap = [Move("a", "b", ("b",)), Move("b", "a", ("a",))]
    assert [(step.move.source, step.keep) for step in in_order(swap)] == [("a", True), ("b", False), ("a", False)]
