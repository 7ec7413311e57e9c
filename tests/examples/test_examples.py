"""Every example computes what NumPy computes, in submission order and in random orders of its tasks, without races."""

import importlib.util
import inspect
import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest

from pypto import ir
from pypto.runtime import RunConfig

EXAMPLES = sorted((pathlib.Path(__file__).parents[2] / "examples").glob("*.py"))
SHORT = [path for path in EXAMPLES if path.stem != "attention_decode"]
SCHEDULES = [{}, {"schedule": "random", "seed": 1}, {"schedule": "random", "seed": 2, "check_races": True}]


def names(paths):
    return [path.stem for path in paths]


def load(path):
    spec = importlib.util.spec_from_file_location(f"example_{path.stem}", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(autouse=True)
def build_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("PYPTO_PROG_BUILD_DIR", str(tmp_path))


def call(entry, args, config):
    run = ir.compile(entry) if isinstance(entry, ir.Program) else entry
    run(*args, config=config)


@pytest.mark.parametrize("options", SCHEDULES, ids=["default", "random1", "random2"])
@pytest.mark.parametrize("path", EXAMPLES, ids=names(EXAMPLES))
def test_example_computes_what_numpy_computes(path, options):
    module = load(path)
    for seed in range(2):
        args = module.make_args(np.random.default_rng(seed))
        want = module.expected(*[np.copy(a) if isinstance(a, np.ndarray) else a for a in args])
        assert want
        for index, value in want.items():
            assert not np.allclose(args[index], value, atol=1e-3), "the result is there before the run"
        call(module.ENTRY, args, RunConfig(**options))
        for index, value in want.items():
            np.testing.assert_allclose(
                args[index].astype(np.float64),
                np.asarray(value).astype(np.float64),
                rtol=getattr(module, "RTOL", 1e-5),
                atol=getattr(module, "ATOL", 1e-5),
                err_msg=f"argument {index}, seed {seed}",
            )


@pytest.mark.parametrize("path", EXAMPLES, ids=names(EXAMPLES))
def test_example_runs_as_a_script(path, tmp_path):
    environment = {**os.environ, "PYTHONPATH": str(pathlib.Path(ir.__file__).parents[2])}
    done = subprocess.run(
        [sys.executable, str(path)], capture_output=True, text=True, cwd=tmp_path, timeout=300, env=environment
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "OK" in done.stdout and not done.stderr


@pytest.mark.parametrize("path", SHORT, ids=names(SHORT))
def test_a_short_example_stays_short(path):
    code = [line for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    assert len(code) <= 65
    assert load(path).__doc__


def test_the_attention_example_fails_on_a_wrong_result(monkeypatch, capsys):
    module = load(next(path for path in EXAMPLES if path.stem == "attention_decode"))
    right = module.expected
    monkeypatch.setattr(module, "expected", lambda *args: {4: right(*args)[4] + 1})
    assert module.main() == 1
    assert "WRONG" in capsys.readouterr().out


def test_attention_with_lengths_that_end_anywhere():
    module = load(next(path for path in EXAMPLES if path.stem == "attention_decode"))
    assert "positions" in inspect.signature(module.make_args).parameters
    for positions, length in ((64, 64), (65, 65), (130, 1), (128, 127)):
        args = module.make_args(np.random.default_rng(length), positions=positions, length=length)
        module.attention_decode(*args)
        np.testing.assert_allclose(args[4], module.expected(*args)[4], rtol=module.RTOL, atol=module.ATOL)
