"""What has to hold of the whole pipeline on whole programs: the shared ones, the examples, the texts of the specs.

Their meaning behind each pass is the matter of tests/differential.
"""

from __future__ import annotations

import hashlib
import os
import pathlib
import subprocess
import sys

import corpus
import pytest

from pypto import ir, passes
from pypto.passes import DiagnosticPhase, PassContext, PassManager, RuntimeKind, VerificationLevel

FILES = [pytest.param(path, id=path.stem) for path in corpus.FILES]
FRAGMENTS = list(corpus.fragments())
QUIET = DiagnosticPhase.NONE


def lowered(program: ir.Program) -> str:
    """The text behind the last pass, without verification: many texts of the specs are steps of a pass."""
    with PassContext([], VerificationLevel.NONE, QUIET):
        return PassManager().run_passes(program).as_python(format=False)


def digest() -> str:
    """One number for the final texts of all programs and of every fourth text of the specs, in order."""
    found = hashlib.sha256()
    for path in corpus.FILES:
        for program in corpus.programs_of(path):
            found.update(lowered(program).encode())
    for _name, example, form in FRAGMENTS[::4]:
        found.update(lowered(example.parse(form)).encode())
    return found.hexdigest()


# --- row 5 of the fault kinds: equal text ------------------------------------------------------------------------------


def test_two_processes_with_different_hash_seeds_give_equal_text():
    here = pathlib.Path(__file__).parent
    code = (
        f"import sys; sys.path.insert(0, {str(here)!r}); import test_whole_pipeline as t; print('digest', t.digest())"
    )
    running = [
        subprocess.Popen(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(sys.path)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for seed in ("1", "20261")
    ]
    found = []
    for process in running:
        out, err = process.communicate(timeout=300)
        assert process.returncode == 0, err
        found.append(next(line for line in out.splitlines() if line.startswith("digest ")))
    assert found[0] == found[1]


@pytest.mark.parametrize("path", FILES)
def test_two_compilations_in_one_process_give_equal_text(path: pathlib.Path):
    first = [lowered(program) for program in corpus.programs_of(path)]
    assert [lowered(program) for program in corpus.programs_of(path)] == first


# --- sharing -----------------------------------------------------------------------------------------------------------


def stays_itself(program: ir.Program) -> None:
    """Each pass gives its own result back as the same object, and so does the whole pipeline's last pass."""
    with PassContext([], VerificationLevel.NONE, QUIET):
        for step in PassManager().passes:
            program = step(program)
            assert step(program) is program, f"{step.get_name()} changes its own result"


@pytest.mark.parametrize("path", FILES)
def test_each_pass_gives_its_own_result_back(path: pathlib.Path):
    for program in corpus.programs_of(path):
        stays_itself(program)


@pytest.mark.parametrize(("example", "form"), [pytest.param(e, f, id=n.replace(" ", "_")) for n, e, f in FRAGMENTS])
def test_each_pass_gives_its_own_result_back_for_texts_of_the_specs(example, form):
    stays_itself(example.parse(form))


# --- round trip --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", FILES)
def test_every_step_comes_back_from_its_text(path: pathlib.Path):
    for program in corpus.programs_of(path):
        with PassContext([], VerificationLevel.ROUNDTRIP, QUIET):
            PassManager().run_passes(program)


# --- dumps -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("runtime", list(RuntimeKind))
@pytest.mark.parametrize("path", FILES)
def test_dumps_do_not_change_the_result(path: pathlib.Path, runtime: RuntimeKind, tmp_path: pathlib.Path):
    for program in corpus.programs_of(path):
        with PassContext([], diagnostic_phase=QUIET, runtime=runtime):
            plain = PassManager().run_passes(program)
            dumped = PassManager().run_passes(program, dump_ir=True, output_dir=tmp_path)
        ir.assert_structural_equal(plain, dumped, enable_auto_mapping=True)
        assert plain.as_python(format=False) == dumped.as_python(format=False)


# --- properties --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", FILES)
def test_what_the_passes_say_that_they_produce_holds_at_the_end(path: pathlib.Path):
    for program in corpus.programs_of(path):
        with PassContext([], VerificationLevel.NONE, QUIET):
            manager = PassManager()
            after = manager.run_passes(program)
        expected = passes.get_structural_properties()
        for step in manager.passes:
            expected = expected.difference(step.get_invalidated_properties())
            expected = expected.union_with(step.get_produced_properties())
        passes.PropertyVerifierRegistry.verify_or_throw(expected, after)
