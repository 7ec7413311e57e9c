"""The command ``pypto``: run, print, check, explain-error."""

import re

import pytest
from typer.testing import CliRunner

import pypto.language as pl
from pypto import ir, passes
from pypto.ir.traversal import walk
from pypto.passes import pipeline
from pypto.tools.cli import app

ADD = '''
"""Adds."""
import numpy as np
import pypto.language as pl


@pl.jit
def add(x: pl.Tensor[[4, 8], pl.FP32], out: pl.Out[pl.Tensor[[4, 8], pl.FP32]], n: pl.INDEX):
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="rows"):
        for i in pl.range(n):
            row = pl.load(x, [i, 0], [1, 8])
            out = pl.store(pl.add(row, 1.0), [i, 0], out)
    return out


@pl.program
class Copy:
    @pl.function(type=pl.FunctionType.InCore)
    def copy(self, x: pl.Tensor[[4, 8], pl.FP32], out: pl.Out[pl.Tensor[[4, 8], pl.FP32]]
             ) -> pl.Tensor[[4, 8], pl.FP32]:
        return pl.store(pl.load(x, [0, 0], [4, 8]), [0, 0], out)

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, x: pl.Tensor[[4, 8], pl.FP32], out: pl.Out[pl.Tensor[[4, 8], pl.FP32]]
             ) -> pl.Tensor[[4, 8], pl.FP32]:
        with pl.manual_scope():
            out, _ = pl.submit(self.copy, x, out)
            out, _ = pl.submit(self.copy, x, out)
        return out
'''
ARGUMENTS = """

ENTRY = add
ROWS = 4


def make_args(rng):
    return [rng.standard_normal((4, 8), dtype=np.float32), np.zeros((4, 8), np.float32), ROWS]


def expected(x, out, n):
    return {1: x + np.float32(1)}
"""


@pytest.fixture
def cli(tmp_path):
    def call(command, text, *options, input=None):
        path = tmp_path / "file.py"
        path.write_text(text)
        result = CliRunner().invoke(app, [command, str(path), *options], input=input)
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result

    return call


# --- run ---------------------------------------------------------------------------------------------------------------


def test_run(cli):
    result = cli("run", ADD + ARGUMENTS)
    lines = result.stdout.splitlines()
    assert result.exit_code == 0, result.output
    assert re.fullmatch(r"add \(@pl.jit\): compiled add \(Orchestration\) in [\d.]+ ms", lines[0])
    assert re.fullmatch(r"  seed 0: 1 task by the interpreter in [\d.]+ ms", lines[1])
    assert lines[2] == "  out: matches (rtol=1e-05, atol=1e-05)"


def test_seeds_and_random_order(cli):
    result = cli("run", ADD + ARGUMENTS, "--schedule", "random", "--seed", "3", "--seeds", "2")
    assert result.exit_code == 0
    assert re.findall(r"seed (\d).*random order (\d)", result.stdout) == [("3", "3"), ("4", "4")]


RACE = """
import numpy as np
import pypto.language as pl


@pl.program
class Race:
    @pl.function(type=pl.FunctionType.InCore)
    def copy(self, x: pl.Tensor[[4, 8], pl.FP32], y: pl.Out[pl.Tensor[[4, 8], pl.FP32]]) -> pl.Tensor[[4, 8], pl.FP32]:
        return pl.store(pl.load(x, [0, 0], [4, 8]), [0, 0], y)

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, x: pl.InOut[pl.Tensor[[4, 8], pl.FP32]], y: pl.InOut[pl.Tensor[[4, 8], pl.FP32]]):
        with pl.manual_scope():
            y, first = pl.submit(self.copy, x, y)
            x, _ = pl.submit(self.copy, y, x)
"""


def test_races(cli):
    assert cli("run", RACE).exit_code == 0
    result = cli("run", RACE, "--check-races")
    assert result.exit_code == 1
    assert "RaceError: 2 races: " in result.stderr and "write/read of 'y'" in result.stderr
    assert "x, _ = pl.submit(self.copy, y, x)" in result.stderr
    assert cli("run", RACE.replace("y, x)", "y, x, deps=[first])"), "--check-races").exit_code == 0


def test_a_mismatch_is_a_failure(cli):
    result = cli("run", ADD + ARGUMENTS.replace("np.float32(1)", "2"))
    assert result.exit_code == 1
    assert "Output 'out' does not match: 32 of 32 elements differ" in result.stdout


def test_random_arguments_of_the_parameter_types(cli):
    result = cli("run", ADD, "--entry", "Copy")
    assert result.exit_code == 0, result.output
    assert "compiled copy (InCore), main (Orchestration)" in result.stdout and "2 tasks" in result.stdout
    assert "nothing to compare with" in result.stdout
    result = cli("run", ADD, "--entry", "add")
    assert result.exit_code == 2 and "Define make_args(rng)" in result.stderr


@pytest.mark.parametrize(
    ("options", "phrase"),
    [
        (["--entry", "nothing"], "no entry 'nothing'. Entries: add"),
        (["--schedule", "best"], "--schedule must be"),
        (["--break", "999"], "--break 999: no statement"),
    ],
)
def test_bad_usage(cli, options, phrase):
    result = cli("run", ADD + ARGUMENTS, *options)
    assert result.exit_code == 2 and phrase in result.stderr


def test_files_that_are_none(cli, tmp_path):
    assert "defines no program" in cli("run", "x = 1").stderr
    result = CliRunner().invoke(app, ["run", str(tmp_path / "missing.py")])
    assert result.exit_code == 2 and "no such file" in result.stderr


def test_an_error_of_the_program_shows_its_line(cli, tmp_path):
    result = cli("run", ADD + ARGUMENTS.replace("ROWS = 4", "ROWS = 5"))
    assert result.exit_code == 1
    line = next(n for n, text in enumerate((ADD + ARGUMENTS).splitlines(), 1) if "pl.load(x, [i, 0]" in text)
    assert "Error: tile.load: offset 4 with extent 1 is out of range in dimension 0" in result.stderr
    assert f"  --> {tmp_path}/file.py:{line}:" in result.stderr
    assert re.search(rf"{line} \|             row = pl.load\(x, \[i, 0\], \[1, 8\]\)\n.*\^\^\^", result.stderr)
    assert "= note: in 'add', task rows" in result.stderr
    assert "Traceback" not in result.stderr


def test_errors_of_python(cli):
    result = cli("run", "x = 1\ny = x + missing\n")
    assert result.exit_code == 1
    assert "Error: NameError: name 'missing' is not defined" in result.stderr and "2 | y = x + missing" in result.stderr
    result = cli("run", "def f(:\n")
    assert result.exit_code == 1 and "Error: SyntaxError" in result.stderr and "1 | def f(:" in result.stderr


# --- lower -------------------------------------------------------------------------------------------------------------


def test_lower_prints_what_the_passes_give(cli):
    result = cli("lower", ADD + ARGUMENTS)
    assert result.exit_code == 0, result.output
    lowered = pl.parse(result.stdout)
    assert [f.name for f in lowered.functions.values()] == ["add", "rows"]


def test_lower_stops_behind_a_pass(cli):
    result = cli("lower", ADD + ARGUMENTS, "--limit", "4")
    assert result.exit_code == 0 and "def rows(" not in result.stdout and "out__ssa_v0" in result.stdout


def test_lower_dumps(cli, tmp_path):
    result = cli(
        "lower", ADD, "--entry", "Copy", "--dump", str(tmp_path / "dump"), "--limit", "2", "--level", "roundtrip"
    )
    assert result.exit_code == 0 and "2 passes dumped" in result.stdout
    names = sorted(p.name for p in (tmp_path / "dump" / "Copy").iterdir())
    assert names == ["00_frontend.py", "01_after_InlineFunctions.py", "02_after_UnrollLoops.py"]


def test_lower_says_where_the_time_went(cli):
    result = cli("lower", ADD + ARGUMENTS, "--time")
    assert "PyPTO Compile Profile" in result.stdout and "OutlineIncoreScopes" in result.stdout


def test_lower_compares_behind_each_pass(cli, monkeypatch):
    result = cli("lower", ADD + ARGUMENTS, "--check")
    assert result.exit_code == 0 and "add: the same values behind each of" in result.stdout

    def shift(program):
        """Adds 2 where the program adds 1."""
        one = [n for n in walk(program) if isinstance(n, ir.ConstFloat) and n.value == 1.0]

        class Shift(ir.IRMutator):
            def visit_const_float(self, op):
                return ir.ConstFloat(2.0, op.dtype, op.span) if op in one else op

        return Shift().visit_program(program)

    wrong = passes.create_program_pass(shift, "Shift")
    monkeypatch.setitem(pipeline.STRATEGIES, ir.OptimizationStrategy.Default, (passes.convert_to_ssa, lambda: wrong))
    result = cli("lower", ADD + ARGUMENTS, "--check")
    assert result.exit_code == 1 and "add: pass 2, Shift, is at fault: output 1 differs" in result.stdout


@pytest.mark.parametrize("options", [["--level", "most"], ["--strategy", "Fast"]])
def test_lower_with_unknown_words(cli, options):
    result = cli("lower", ADD + ARGUMENTS, *options)
    assert result.exit_code == 2 and f"{options[0]} must be one of" in result.stderr


def test_lower_check_makes_arguments_of_the_parameter_types(cli):
    result = cli("lower", ADD, "--entry", "Copy", "--check")
    assert result.exit_code == 0 and "Copy: the same values" in result.stdout
    result = cli("lower", ADD, "--entry", "add", "--check")
    assert result.exit_code == 2 and "Define make_args(rng)" in result.stderr


# --- print -------------------------------------------------------------------------------------------------------------


def test_print(cli):
    whole = cli("print", ADD + ARGUMENTS)
    assert whole.exit_code == 0 and "class _jit_add:" in whole.stdout and "pl.tile.store(" in whole.stdout
    concise = cli("print", ADD, "--entry", "Copy", "--concise").stdout
    assert "class Copy:" in concise and "class _jit_add" not in concise
    assert len(concise) < len(cli("print", ADD, "--entry", "Copy").stdout)


def test_a_helper_can_be_named(cli):
    text = ADD + "\n\n@pl.function\ndef scalars(n: pl.Scalar[pl.INDEX]):\n    m = n + 1\n\nENTRY = Copy\n"
    assert "def scalars" in cli("print", text, "--entry", "scalars").stdout


# --- check -------------------------------------------------------------------------------------------------------------

ERRORS = """
import pypto.language as pl


@pl.program
class One:
    @pl.function(type=pl.FunctionType.InCore)
    def k(self, x: pl.Tensor[[16, 16], pl.FP32]):
        t = pl.laod(x, [0, 0], [16, 16])
        u = pl.adn(x, 1.0)


@pl.function
def two(x: pl.Tensor[[16, 16], pl.FP32]) -> pl.Tensor[[16, 16], pl.FP32]:
    return nope


print(One.functions)


@pl.jit
def three(x: pl.Tensor[[16, 16], pl.FP32]):
    return pl.addd(x, 1.0)
"""


def test_check_reports_all_errors(cli):
    result = cli("check", ERRORS)
    assert result.exit_code == 1 and not result.stdout
    assert re.findall(r"^Error: (.*)$", result.stderr, re.M) == [
        "Unknown operation 'pl.laod'",
        "Unknown operation 'pl.adn'",
        "Undefined variable 'nope'",
    ]
    assert result.stderr.endswith("file.py: 3 errors\n")
    moved = ERRORS.replace("print(One.functions)\n", "")
    assert "Unknown operation 'pl.addd'" in cli("check", moved).stderr
    assert "Did you mean 'pl.load'?" in result.stderr and "9 |         t = pl.laod(x" in result.stderr


def test_check_without_errors(cli):
    result = cli("check", ADD + ARGUMENTS)
    assert result.exit_code == 0 and result.stdout.endswith("file.py: no errors in 1 definition\n")
    result = cli("check", ADD + "\n\n@pl.jit.incore\ndef helper(x: pl.Tensor):\n    return pl.nonsense(x)\n")
    assert result.exit_code == 0
    assert "no errors in 1 definition\n" in result.stdout
    assert re.search(r"not checked: add \(.*'n'.*\)", result.stdout)
    assert "not checked: helper (a helper that no checked entry calls)" in result.stdout


def test_check_shows_what_is_no_dsl_error(cli):
    result = cli("check", "import nonexistent_module_of_this_test\n")
    assert (
        result.exit_code == 1 and "ModuleNotFoundError" in result.stderr and "1 | import nonexistent" in result.stderr
    )


def test_checking_leaves_the_decorators_as_they_were(cli):
    cli("check", ERRORS)
    import pypto.language as pl
    from pypto.diag.parser_errors import ParserError

    with pytest.raises(ParserError):
        pl.parse("import pypto.language as pl\n@pl.function\ndef f(x: pl.Scalar[pl.INDEX]):\n    y = nope\n")


# --- explain -----------------------------------------------------------------------------------------------------------


def test_explain():
    result = CliRunner().invoke(app, ["explain-error", "pt0501"])
    assert result.exit_code == 0 and result.stdout.startswith("PT0501: ") and "Fix: " in result.stdout
    result = CliRunner().invoke(app, ["explain-error", "PT9999"])
    assert result.exit_code == 1 and "no error code 'PT9999'" in result.stderr


def test_help():
    result = CliRunner().invoke(app, ["--help"])
    assert all(command in result.stdout for command in ("run", "print", "check", "explain-error"))
