"""Each shape of carry, region, launch and output: the model, the interpreter and emitted C++ agree.

``python -m tests.codegen.carry_matrix`` runs the full product; here is a part in which any two choices meet.
"""

from __future__ import annotations

import itertools
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.codegen.carry_matrix import AXES, Choice, choices, covering, job, make, meaningful, without_meaning
from tests.differential import emitted
from tests.differential.emitted import check

from pypto.runtime.build import CompileFailed
from pypto.runtime.emitted import EmittedCode, EmittedProgram

PARTS = 4


pytestmark = pytest.mark.usefixtures("cpp_compiler")


def test_what_is_left_out() -> None:
    every = list(choices())
    rules = Counter(without_meaning(c) for c in every)
    assert len(every) == 15 * 7 * 5 * 8 * 5
    # Six rules, and the programs with a meaning.
    assert sorted(rules.values()) == [78, 300, 430, 780, 1382, 1860, 16170]
    wanted = {(a, v) for a, values in AXES.items() for v in values}
    assert {(a, getattr(c, a)) for c in meaningful() for a in AXES} == wanted


def test_any_two_choices_that_have_a_meaning_meet() -> None:
    def pairs(c: Choice) -> set[tuple[tuple[str, str], ...]]:
        return set(itertools.combinations([(a, getattr(c, a)) for a in AXES], 2))

    chosen = covering(meaningful())
    assert set().union(*map(pairs, chosen)) == set().union(*map(pairs, meaningful()))
    assert 100 < len(chosen) < 200


@pytest.mark.parametrize("derive", [False, True], ids=["", "derived"])
@pytest.mark.parametrize("part", range(PARTS))
def test_pairs(part: int, derive: bool) -> None:
    """``derived``: with the dependencies that the compiler finds in AUTO regions."""
    chosen = covering(meaningful())[part::PARTS]
    report = check(job(c, derive) for c in chosen)
    assert not report.faults, "\n".join(f"{f}\n{f.text}\n{f.code}" for f in report.faults[:2])
    assert not report.refused
    assert report.programs == report.emitted == len(chosen)


# --- the harness finds what it should ---------------------------------------------------------------------------------

ONE = Choice("seq", "rebind", "auto", "call", "one")


def test_a_wrong_model_is_found() -> None:
    wanted = job(ONE)
    model = wanted.model
    assert model is not None
    wanted.model = lambda args: [a + 1 if isinstance(a, np.ndarray) else a for a in model(args)]
    (fault,) = check([wanted]).faults
    assert fault.stage == "source" and "differs" in fault.message


def test_wrong_code_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """A carry that is not assigned, and code that does not compile among code that does."""

    class Changed(EmittedCode):
        def __init__(self, program: object, name: str) -> None:
            super().__init__(program, name)  # type: ignore[arg-type]
            lines = self.result.code.splitlines(keepends=True)
            at = [k for k, line in enumerate(lines) if "__rv" in line and line.count("=") == 1 and "Tensor" not in line]
            assert at
            lines[at[-1]] = replacement
            self.result = type(self.result)(
                **{f: getattr(self.result, f) for f in self.result.__struct_fields__} | {"code": "".join(lines)}
            )

    monkeypatch.setattr(emitted, "EmittedCode", Changed)
    replacement = "\n"
    (fault,) = check([job(ONE)]).faults
    assert fault.stage == "emitted" and "differs" in fault.message
    replacement = "no_such_name = 1;\n"
    report = check([job(ONE), job(Choice("while", "rebind", "auto", "call", "one"))])
    assert [f.stage for f in report.faults] == ["compile", "compile"]


def test_programs_of_one_library_do_not_meet() -> None:
    """Two programs with functions, helpers and variables of the same names."""
    from pypto import ir
    from pypto.language import parse

    chosen = [ONE, Choice("descending", "swap", "manual", "submit", "inout")]
    cases = [make(c) for c in chosen]
    manager = ir.PassManager.get_strategy(ir.OptimizationStrategy.Default)
    codes = [EmittedCode(manager.run_passes(parse(case.text, "case.py")), "main") for case in cases]
    for case, program in zip(cases, EmittedProgram.build_all(codes, per_source=1), strict=True):
        (args,) = case.inputs
        want = case.expected(args)
        program.run(args)
        for got, value in zip(args, want, strict=True):
            np.testing.assert_array_equal(got, value)
    assert EmittedProgram.build_all([]) == []
    with pytest.raises(CompileFailed):
        EmittedProgram.build_all([*codes, _broken(codes[0])])


def _broken(code: EmittedCode) -> EmittedCode:
    made = EmittedCode.__new__(EmittedCode)
    made.program, made.function = code.program, code.function
    fields = {f: getattr(code.result, f) for f in code.result.__struct_fields__}
    made.result = type(code.result)(**fields | {"code": "no such thing;\n"})
    return made
