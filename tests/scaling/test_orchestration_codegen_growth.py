"""Code generation is linear: counted by the work of the interpreter's own profiler, not by a clock."""

import sys

import pytest
from orchestration_kit import BASE, final, orchestration

from pypto import codegen


def calls(program):
    """How many Python functions one generation calls."""
    run = program.get_function("run")
    codegen.generate_orchestration(program, run)  # facts about the program are found once
    count = 0

    def profile(frame, event, arg):
        nonlocal count
        count += event == "call"

    sys.setprofile(profile)
    try:
        codegen.generate_orchestration(program, run)
    finally:
        sys.setprofile(None)
    return count


def launches(n):
    lines = ["with pl.scope():"]
    for i in range(n):
        lines += [
            f"    t{i} = pl.create_tensor([8, 8], dtype=pl.FP32)",
            f"    u{i}, d{i} = pl.submit(self.plus, x, t{i}" + (f", deps=[d{i - 1}])" if i else ")"),
            f"    k{i} = n // 2 + {i}",
        ]
    return lines


def carries(n):
    names = [f"c{i}" for i in range(n)]
    first, inner = ", ".join(["x"] * n), ", ".join(names)
    outer = ", ".join(f"{name}x" for name in names)
    moved = ", ".join([*names[1:], names[0]])
    return [
        "with pl.scope():",
        f"    for i, ({inner},) in pl.range(n, init_values=({first},)):",
        f"        {outer} = pl.yield_({moved})",
    ]


def branches(n):
    lines = ["with pl.scope():", "    k0 = n + 0"]
    for i in range(n):
        lines += [
            f"    if n > {i}:",
            "        with pl.scope():",
            f"            k{i + 1} = pl.yield_(k{i} + 1)",
            "    else:",
            "        with pl.scope():",
            f"            k{i + 1} = pl.yield_(k{i})",
        ]
    return lines


def made(lines):
    return final(orchestration("x: f32[8, 8], n: idx, y: pl.InOut[f32[8, 8]]", "\n".join(lines)) + BASE)


@pytest.mark.parametrize("shape", [launches, carries, branches])
def test_twice_the_program_is_twice_the_work(shape):
    small, large = calls(made(shape(40))), calls(made(shape(80)))
    assert large <= 2.3 * small, (small, large)


def nested(n, depth):
    """``n`` launches at the bottom of ``depth`` scopes, and ids that leave all of them."""
    lines, indent = [], ""
    for _ in range(depth):
        lines.append(f"{indent}with pl.scope():")
        indent += "    "
    lines += [f"{indent}a{i}, t{i} = pl.submit(self.twice, y)" for i in range(n)]
    lines += [f"b{i}, s{i} = pl.submit(self.twice, y, deps=[t{i}])" for i in range(n)]
    return lines


def test_depth_costs_little():
    assert calls(made(nested(40, 16))) <= 2 * calls(made(nested(40, 1)))
    small, large = calls(made(nested(20, 16))), calls(made(nested(40, 16)))
    assert large <= 2.3 * small, (small, large)


def test_a_deep_expression():
    text = "n" + " + n" * 800
    assert codegen.generate_orchestration(*_program(text)).code.count("n + n") >= 1


def _program(text):
    program = made(["with pl.scope():", f"    k = {text}", "    a = self.part(x, k, y)"])
    return program, program.get_function("run")
