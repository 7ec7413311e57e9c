"""What users and tools compare is the same in every process: nothing depends on the order of hashes.

Run as a program this file prints a report about all examples; the tests compare the reports of processes with
different hash seeds.
"""

import hashlib
import importlib.util
import os
import pathlib
import subprocess
import sys
import warnings

import numpy as np
import pytest

import pypto
import pypto.language as pl
from pypto import ir
from pypto.runtime import RunConfig

EXAMPLES = sorted((pathlib.Path(__file__).parents[2] / "examples").glob("*.py"))
SEEDS = (0, 1, 2)


def load(path):
    spec = importlib.util.spec_from_file_location(f"determinism_{path.stem}", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def programs(module):
    for entry in getattr(module, "ENTRIES", None) or [module.ENTRY]:
        if isinstance(entry, ir.Program):
            yield entry
        else:
            yield entry.specialize(*module.make_args(np.random.default_rng(0)))


def broken(text):
    """Variants of a program text that have an error: a line less, a name or an operator misspelled."""
    lines = text.splitlines(keepends=True)
    for i in range(len(lines)):
        yield "".join(lines[:i] + lines[i + 1 :])
        line = lines[i]
        if " = pl." in line:
            yield "".join([*lines[:i], line.replace(" = pl.", " = pl.x"), *lines[i + 1 :]])
            yield "".join([*lines[:i], line.replace(" = pl.", "_ = pl."), *lines[i + 1 :]])


def error_of(text):
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            pl.parse(text, "case.py")
    except Exception as error:  # any: its text is what is compared
        return f"{type(error).__name__}: {error} {getattr(error, 'errors', '')}"
    return "no error"


def results(module, schedule):
    entry = getattr(module, "ENTRY", None) or module.ENTRIES[0]
    args = module.make_args(np.random.default_rng(0))
    run = ir.compile(entry, dump_passes=False) if isinstance(entry, ir.Program) else entry
    run(*args, config=RunConfig(schedule=schedule, seed=3))
    digest = hashlib.sha256()
    for value in args:
        digest.update(value.tobytes() if isinstance(value, np.ndarray) else repr(value).encode())
    return digest.hexdigest()


def report():
    """Lines of ``example kind content``."""
    for path in EXAMPLES:
        module = load(path)
        for node in programs(module):
            text = node.as_python(format=False)
            yield f"{path.stem} text {text!r}"
            yield f"{path.stem} explicit {ir.python_print(node, 'pl', format=False, explicit_layout=True)!r}"
            yield f"{path.stem} bytes {ir.serialize(node).hex()}"
            yield f"{path.stem} hash {ir.structural_hash(node, True)}"
            for variant in broken(text):
                yield f"{path.stem} error {error_of(variant)!r}"
        for schedule in ("default", "random"):
            yield f"{path.stem} {schedule} {results(module, schedule)}"


@pytest.fixture(scope="module")
def reports(tmp_path_factory):
    folder = tmp_path_factory.mktemp("determinism")
    inherited = os.environ.get("PYTHONPATH", "")
    paths = [str(pathlib.Path(pypto.__file__).parents[1]), *([inherited] if inherited else [])]
    running = []
    for seed in SEEDS:
        environment = {
            **os.environ,
            "PYTHONHASHSEED": str(seed),
            "PYTHONPATH": os.pathsep.join(paths),
            "PYPTO_PROG_BUILD_DIR": str(folder / str(seed)),
        }
        out = open(folder / f"{seed}.txt", "w")  # noqa: SIM115  (open while the process runs)
        running.append((subprocess.Popen([sys.executable, __file__], env=environment, stdout=out), out))
    for process, out in running:
        code = process.wait(timeout=300)
        out.close()
        assert code == 0
    return [(folder / f"{seed}.txt").read_text().splitlines() for seed in SEEDS]


@pytest.mark.parametrize("kind", ["text", "explicit", "bytes", "hash", "error", "default", "random"])
def test_nothing_depends_on_the_order_of_hashes(reports, kind):
    first, *others = ([line for line in r if line.split(" ", 2)[1] == kind] for r in reports)
    assert len(first) >= len(EXAMPLES)
    for other in others:
        different = [(a, b) for a, b in zip(first, other, strict=True) if a != b]
        assert not different, different[0]


def test_the_report_has_errors_of_many_kinds(reports):
    found = {line.split(" error ", 1)[1].split(":", 1)[0] for line in reports[0] if " error " in line}
    assert len(found - {"'no error'"}) >= 3


def test_the_processes_had_different_orders():
    """The comparison can fail: sets of strings do differ."""
    code = "print(list({str(i) for i in range(40)}))"
    orders = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": str(seed)},
            capture_output=True,
            check=True,
        ).stdout
        for seed in SEEDS
    }
    assert len(orders) == len(SEEDS)


if __name__ == "__main__":
    for report_line in report():
        print(report_line)
