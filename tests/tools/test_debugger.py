"""Stepping through programs with scripted commands."""

import io
import textwrap

import numpy as np
import pytest
from typer.testing import CliRunner

import pypto.language as pl
from pypto import ir
from pypto.ops.values import ArrayValue, Buffer, empty
from pypto.tools.cli import app
from pypto.tools.debugger import Debugger, DebuggerQuit, break_lines, describe

SOURCE = textwrap.dedent(
    """\
    import numpy as np
    import pypto.language as pl


    @pl.program
    class Steps:
        @pl.function(type=pl.FunctionType.InCore)
        def bump(self, data: pl.InOut[pl.Tensor[[4, 8], pl.FP32]], row: pl.Scalar[pl.INDEX]
                 ) -> pl.Tensor[[4, 8], pl.FP32]:
            tile = pl.load(data, [row, 0], [1, 8])
            tile = pl.add(tile, 1.0)
            return pl.store(tile, [row, 0], data)

        @pl.function(type=pl.FunctionType.Orchestration)
        def main(self, data: pl.InOut[pl.Tensor[[4, 8], pl.FP32]]) -> pl.Tensor[[4, 8], pl.FP32]:
            scratch = pl.create_tensor([4, 8], dtype=pl.FP32)
            total = 0
            for i in pl.range(2):
                total = total + i
                data, done = pl.submit(self.bump, data, i)
            return data
    """
)
LOAD, ADD, STORE, CREATE, TOTAL, LOOP, SUM, SUBMIT, RETURN = 10, 11, 12, 16, 17, 18, 19, 20, 21


@pytest.fixture
def source(tmp_path, monkeypatch):
    monkeypatch.setenv("PYPTO_PROG_BUILD_DIR", str(tmp_path / "build"))
    path = tmp_path / "steps.py"
    path.write_text(SOURCE)
    return path


@pytest.fixture
def debug(source):
    """Run with breakpoints and commands; gives the output and the array."""

    def call(lines, commands):
        program = pl.loads(str(source))
        output = io.StringIO()
        hook = Debugger(source, lines, io.StringIO(commands), output)
        data = np.zeros((4, 8), np.float32)
        compiled = ir.compile(program, dump_passes=False)
        try:
            compiled.execute([data], {}, on_statement=hook)
        except DebuggerQuit:
            output.write("[quit]")
        return output.getvalue(), data, hook

    return call


def stops(output):
    """The lines that it stopped at."""
    return [int(line.split(":")[1].split()[0]) for line in output.replace("(pypto) ", "").splitlines()
            if line.startswith("steps.py:")]  # fmt: skip


def test_stopping_and_going_on(debug):
    output, data, hook = debug([SUM], "c\nc\n")
    assert stops(output) == [SUM, SUM] and hook.stops == 2
    assert output.startswith(f"steps.py:{SUM}  total = total + i\n")
    assert "  total    0\n" in output and "  i        1\n" in output
    np.testing.assert_array_equal(data[:2], 1)


def test_stepping_goes_through_tasks(debug):
    output, _, _ = debug([TOTAL], "n\n" * 11)
    assert stops(output) == [TOTAL, LOOP, SUM, SUBMIT, LOAD, ADD, STORE, SUM, SUBMIT, LOAD, ADD, STORE]
    assert output.endswith("[quit]")


def test_names_and_values(debug):
    output, _, _ = debug([STORE], "c\np tile row nothing\nq\n")
    assert "  data  [4, 8] float32: [[0., 0., ..., 0., 0.]" in output
    assert "  tile  [1, 8] float32: [[1., 1., ..., 1., 1.]]\n" in output
    assert "tile = [1, 8] float32: [[1., 1., 1., 1., 1., 1., 1., 1.]]" in output
    assert "row = 1\n" in output
    assert "no value under the name 'nothing' here. Names: data, row, tile" in output
    assert output.endswith("[quit]")


def test_values_of_an_orchestration(debug):
    output, _, _ = debug([RETURN], "c\n")
    assert "  scratch  [4, 8] float32: undefined\n" in output
    assert "  done     task bump#1\n" in output and "_submit_tmp" not in output


def test_where_and_list(debug, source):
    output, _, _ = debug([ADD], "w\nl\nnonsense\nq\n")
    assert f"{source}:{ADD}: function bump, task bump#0, block 0 of 1" in output
    assert f"->   {ADD}          tile = pl.add(tile, 1.0)\n" in output
    assert "n: next statement, c: continue, p NAME" in output


def test_the_end_of_the_commands_quits(debug):
    output, data, _ = debug([SUM], "")
    assert output.endswith("[quit]") and not data.any()


def test_lines_without_a_statement(source):
    program = pl.loads(str(source))
    assert break_lines([program], source, [1, LOAD - 1, STORE, RETURN, RETURN + 1]) == {
        1: LOAD, LOAD - 1: LOAD, STORE: STORE, RETURN: RETURN, RETURN + 1: None,
    }  # fmt: skip
    assert break_lines([program], "elsewhere.py", [STORE]) == {STORE: None}


def test_values_as_text():
    partly = empty((2, 4), np.float32)
    partly.write((slice(0, 1), slice(0, 3)), np.arange(3, dtype=np.float32), None)
    assert describe(partly) == (
        "[2, 4] float32, 5 of 8 undefined: [[0, 1, 2, undefined], [undefined, undefined, undefined, undefined]]"
    )
    valid = ArrayValue(np.arange(8).reshape(2, 4), Buffer(np.arange(8)), (1, 2))
    assert describe(valid) == "[2, 4] int64, valid [1, 2]: [[0, 1]]"
    assert describe(None) == "no task" and describe((1, 2.5)) == "(1, 2.5)" and describe([True]) == "[True]"
    large = describe(ArrayValue(np.zeros((100, 100), np.float16)))
    assert len(large) < 200 and "..." in large


def test_the_command_line(source):
    result = CliRunner().invoke(app, ["run", str(source), "--break", str(SUM - 1), "--break", "13"], input="c\nc\n" * 2)
    assert result.exit_code == 0, result.output
    assert f"no statement begins on line 13: stopping at line {CREATE}" in result.stdout
    assert f"steps.py:{LOOP}  for i in pl.range(2):" in result.stdout
    result = CliRunner().invoke(app, ["run", str(source), "--break", str(SUM)], input="q\n")
    assert result.exit_code == 0 and result.stdout.endswith("quit\n")


def test_jit_functions_stop_at_their_own_lines(tmp_path, monkeypatch):
    monkeypatch.setenv("PYPTO_PROG_BUILD_DIR", str(tmp_path / "build"))
    path = tmp_path / "jitted.py"
    path.write_text(
        "import pypto.language as pl\n\n\n@pl.jit\n"
        "def f(x: pl.Tensor[[4, 8], pl.FP32], out: pl.Out[pl.Tensor[[4, 8], pl.FP32]]):\n"
        "    with pl.at(level=pl.Level.CORE_GROUP):\n"
        "        big = pl.mul(x, 2.0)\n"
        "        out[:] = pl.add(big, 1.0)\n"
        "    return out\n"
    )
    result = CliRunner().invoke(app, ["run", str(path), "--break", "8"], input="p big\nc\n")
    assert result.exit_code == 0, result.output
    assert "jitted.py:8  out[:] = pl.add(big, 1.0)" in result.stdout and "big = [4, 8] float32:" in result.stdout
