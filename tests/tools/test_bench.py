"""``pypto bench``: what is measured and how it is told."""

import json
import re
import textwrap

import pytest
from typer.testing import CliRunner

from pypto.runtime.task_records import RunRecord, TaskRecord
from pypto.tools.bench import kernel_times
from pypto.tools.cli import app

PROGRAM = """
import numpy as np
import pypto.language as pl


@pl.jit
def bands(x: pl.Tensor[[64, 32], pl.FP32], y: pl.Out[pl.Tensor[[64, 32], pl.FP32]]):
    for band in pl.parallel(4):
        with pl.at(level=pl.Level.CORE_GROUP, name_hint="double"):
            y = pl.store(pl.mul(pl.load(x, [band * 16, 0], [16, 32]), 2.0), [band * 16, 0], y)
    return y


@pl.jit
def hidden(x: pl.Tensor[[64, 32], pl.FP32]):
    for _ in pl.range(2):
        y = pl.create_tensor([64, 32], dtype=pl.FP32, manual_dep=True)
        with pl.at(level=pl.Level.CORE_GROUP, name_hint="copy"):
            x = pl.store(pl.load(x, [0, 0], [64, 32]), [0, 0], y)
    return x
"""


@pytest.fixture
def program(tmp_path):
    path = tmp_path / "program.py"
    path.write_text(textwrap.dedent(PROGRAM))
    return path


def run(*args):
    result = CliRunner().invoke(app, ["bench", *map(str, args)])
    assert result.exit_code == 0, result.output
    return result.output


def test_native_times_and_a_trace(program, tmp_path, cpp_compiler):
    text = run(program, "--entry", "bands", "--rounds", 3, "--workers", 1, "--trace", tmp_path / "trace")
    assert "bands (@pl.jit), by the native executor" in text
    assert re.search(r"3 calls: median [\d.]+ ms, best [\d.]+ ms, slowest [\d.]+ ms; 4 tasks", text)
    assert re.search(r"double +4 +[\d.]+ +[\d.]+ +[\d.]+ +100%", text)
    found = json.loads((tmp_path / "trace" / "bands" / "dfx_outputs" / "deps.json").read_text())
    assert len(found["tasks"]) == 4


def test_what_the_interpreter_runs_is_said(program, monkeypatch):
    text = run(program, "--entry", "hidden", "--rounds", 2)
    assert "hidden (@pl.jit), by the interpreter executor" in text
    assert "note: the interpreter runs the program: it returns a tensor that it makes" in text


def test_times_of_kernels():
    def task(number, kernel, started, ended):
        return TaskRecord(number, f"{kernel}#{number}", kernel, started=started, ended=ended)

    record = RunRecord()
    record.tasks += [task(0, "a", 0, 10), task(1, "b", 5, 105), task(2, "a", 10, 40)]
    found = kernel_times(record)
    assert [(k.kernel, k.tasks, round(k.total * 1e9), round(k.slowest * 1e9)) for k in found] == [
        ("b", 1, 100, 100),
        ("a", 2, 40, 30),
    ]
