"""Four claims about ordering for one kernel body, from the DSL through the passes to a run of the emitted C++.

What is compared is the graph of launched tasks, the values, and the structure of the text.
"""

import numpy as np
import pytest
from orchestration_kit import Case, Suite, back_end, edges, ramp, zeros
from spec_kit import parse

suite = Suite("styles")

BAND = """
@AIV
def band(self, a: f32[16, 8], i: idx, out: pl.InOut[f32[16, 8]]) -> f32[16, 8]:
    t = pl.add(pl.load(a, [i * 4, 0], [4, 8]), pl.load(out, [i * 4, 0], [4, 8]))
    out1 = pl.store(t, [i * 4, 0], out)
    return out
@AIV
def total(self, s: f32[16, 8], y: pl.InOut[f32[16, 8]]) -> f32[16, 8]:
    y1 = pl.store(pl.add(pl.load(s, [0, 0], [16, 8]), pl.load(y, [0, 0], [16, 8])), [0, 0], y)
    return y
"""


def band(args):
    rows = slice(args.scalar(2) * 4, args.scalar(2) * 4 + 4)
    args.tensor(1)[rows] += args.tensor(0)[rows]


def total(args):
    args.tensor(1)[:] += args.tensor(0)


def add(name, text):
    case = Case(suite, name, back_end(parse(text + BAND)), "run", {"band": band, "total": total})
    suite.cases[name] = case
    return case


SERIAL = """
@Orchestration
def run(self, a: f32[16, 8], out: pl.InOut[f32[16, 8]]):
    for i in pl.range(4):
        out = self.band(a, i, out)
"""
STYLES = {
    "serial": add("serial", SERIAL),
    "argument": add("argument", SERIAL.replace("i, out)", "i, pl.no_dep(out))")),
    "lifetime": add(
        "lifetime",
        """
@Orchestration
def run(self, a: f32[16, 8], out: pl.InOut[f32[16, 8]]):
    scratch = pl.create_tensor([16, 8], dtype=pl.FP32, manual_dep=True, init_value=0.0)
    ids = pl.array.create(4, pl.TASK_ID)
    for i in pl.range(4):
        scratch, t = pl.submit(self.band, a, i, scratch)
        ids[i] = t
    out, last = pl.submit(self.total, scratch, out, deps=[ids])
""",
    ),
    "region": add(
        "region",
        """
@Orchestration
def run(self, a: f32[16, 8], out: pl.InOut[f32[16, 8]]):
    with pl.manual_scope():
        for i in pl.range(4):
            out = self.band(a, i, out)
""",
    ),
}


@pytest.mark.parametrize("name", STYLES)
@pytest.mark.parametrize("seed", [None, 1, 2])
def test_values(name, seed):
    a, out = ramp(16, 8), zeros(16, 8)
    STYLES[name].run([a, out], **({} if seed is None else {"random": True, "seed": seed}))
    np.testing.assert_array_equal(out, a)


def test_graphs():
    graphs = {name: edges(case.run([ramp(16, 8), zeros(16, 8)])) for name, case in STYLES.items()}
    assert graphs["serial"] == [(0, 1), (1, 2), (2, 3)]
    assert graphs["argument"] == []
    explicit = edges(STYLES["lifetime"].run([ramp(16, 8), zeros(16, 8)]), "explicit")
    first = explicit[0][0]
    assert explicit == [(first + i, first + 4) for i in range(4)]
    assert graphs["region"] == []


def launch(case):
    """The lines of the first task."""
    lines = case.lines
    at = lines.index("// Task 0: band")
    return lines[at + 1 : next(i for i in range(at, len(lines)) if "rt_submit" in lines[i]) + 1]


def test_text():
    serial, argument, lifetime, region = STYLES.values()
    assert launch(serial) == [
        "CoreTaskArgs params_t0;",
        "params_t0.add_input(ext_a);",
        "params_t0.add_inout(ext_out);",
        "params_t0.add_scalar(i);",
        "rt_submit_aiv_task(0, params_t0);",
    ]
    assert launch(argument) == [line.replace("add_inout", "add_no_dep") for line in launch(serial)]
    assert launch(region) == launch(serial)
    for case in (serial, argument):
        assert [line for line in case.lines if "PTO2_SCOPE" in line or line.startswith("for")] == [
            "PTO2_SCOPE() {",
            "for (int64_t i = 0; i < 4; i += 1) {",
            "PTO2_SCOPE() {",
        ]
        assert not any("out__" in line for line in case.lines)
    assert [line for line in region.lines if "PTO2_SCOPE" in line] == [
        "PTO2_SCOPE() {",
        "PTO2_SCOPE(PTO2ScopeMode::MANUAL) {",
    ]
    lines = lifetime.lines
    assert any("/*manual_dep=*/true" in line for line in lines)
    assert any(line.startswith("PTO2TaskId ids[4]; for ") for line in lines) and "ids[i] = t;" in lines
    assert "PTO2TaskId t = task_0_outs.task_id();" in lines
    assert sum(line.startswith("if (ids[") for line in lines) == 4
    for case in STYLES.values():
        assert case.result.func_name_to_signature["band"] == ["IN", "INOUT"]
        assert case.result.orchestration_signature == ["IN", "INOUT"]


def test_a_carry_that_is_written_out_changes_nothing():
    explicit = back_end(
        parse(
            """
@Orchestration
def run(self, a: f32[16, 8], out: pl.InOut[f32[16, 8]]):
    for i, (c,) in pl.range(4, init_values=(out,)):
        c2 = self.band(a, i, c)
        c3 = pl.yield_(c2)
"""
            + BAND
        )
    )
    from pypto import codegen

    assert codegen.generate_orchestration(explicit, explicit.get_function("run")).code == STYLES["serial"].result.code
