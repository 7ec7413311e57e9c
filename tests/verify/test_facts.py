"""What was verified once is not verified again, and what changed is."""

import pytest

import pypto.language as pl
from pypto import ir
from pypto.target.model import BackendType
from pypto.target.selection import using_backend
from pypto.verify.facts import Facts
from pypto.verify.properties import IRProperty, property_set
from pypto.verify.registry import VERIFIERS, Verifier

SSA = property_set(IRProperty.SSAForm)


@pl.program
class Two:
    @pl.function
    def callee(self, n: pl.Scalar[pl.INDEX]) -> pl.Scalar[pl.INDEX]:
        return n

    @pl.function
    def caller(self, n: pl.Scalar[pl.INDEX]) -> pl.Scalar[pl.INDEX]:
        m = self.callee(n)
        return m


def with_other(program: ir.Program, name: str, **changes) -> ir.Program:
    """The program with one function made anew."""
    return program.with_functions([f.replace(**changes) if f.name == name else f for f in program.functions.values()])


@pytest.fixture
def callee_check(monkeypatch):
    """A verifier that looks at callees and counts its runs by function."""
    runs = []

    def check(function, findings, program):
        runs.append(function.name)

    prop = IRProperty.HasMemRefs
    assert prop not in VERIFIERS
    monkeypatch.setitem(VERIFIERS, prop, Verifier(prop, "Counting", check, reads_callees=True))
    return property_set(prop), runs


def test_each_function_is_verified_once():
    facts = Facts()
    assert facts.establish(SSA, Two) == []
    assert facts.checks == 2
    facts.establish(SSA, Two)
    assert facts.checks == 2


def test_only_a_new_function_is_verified():
    facts = Facts()
    facts.establish(SSA, Two)
    facts.establish(SSA, with_other(Two, "callee", span=ir.Span("x.py", 1, 1)))
    assert facts.checks == 3


def test_what_failed_is_not_remembered_as_good():
    x = ir.Var("x", ir.ScalarType(ir.INDEX))
    one = ir.ConstInt(1, ir.INDEX)
    bad = ir.Program([ir.Function("f", [], [], ir.SeqStmts([ir.AssignStmt(x, one), ir.AssignStmt(x, one)]))])
    facts = Facts()
    first = facts.establish(SSA, bad)
    assert [d.error_code for d in first] == [1]
    assert [d.error_code for d in facts.establish(SSA, bad)] == [1]


def test_a_new_body_of_a_callee_does_not_matter_to_its_callers(callee_check):
    wanted, runs = callee_check
    facts = Facts()
    facts.establish(wanted, Two)
    other_body = with_other(Two, "callee", body=ir.SeqStmts([]))
    facts.establish(wanted, other_body)
    assert runs == ["callee", "caller", "callee"]


def test_a_new_signature_of_a_callee_does(callee_check):
    wanted, runs = callee_check
    facts = Facts()
    facts.establish(wanted, Two)
    function = Two.get_function("callee")
    facts.establish(wanted, with_other(Two, "callee", attrs=type(function.attrs)({"x": 1})))
    assert runs == ["callee", "caller", "callee", "caller"]
    # A callee that is gone is another signature, too.
    facts.establish(wanted, Two.with_functions([Two.get_function("caller")]))
    assert runs[4:] == ["caller"]


def test_a_fact_about_a_target_holds_for_that_target_only(monkeypatch):
    runs = []
    prop = IRProperty.HasMemRefs
    check = Verifier(prop, "Target", lambda f, found: runs.append(f.name), reads_target=True)
    monkeypatch.setitem(VERIFIERS, prop, check)
    facts = Facts()
    for backend in (BackendType.Ascend910B, BackendType.Ascend910B, BackendType.Ascend950):
        with using_backend(backend):
            facts.establish(property_set(prop), Two)
    assert runs == ["callee", "caller"] * 2


def test_a_fact_found_while_no_target_was_selected_is_not_believed_for_one(monkeypatch):
    runs = []
    prop = IRProperty.HasMemRefs
    check = Verifier(prop, "Target", lambda f, found: runs.append(f.name), reads_target=True)
    monkeypatch.setitem(VERIFIERS, prop, check)
    monkeypatch.setattr("pypto.verify.facts.selected_target", lambda: None)
    facts = Facts()
    facts.establish(property_set(prop), Two)
    facts.establish(property_set(prop), Two)
    assert runs == ["callee", "caller"]
    monkeypatch.undo()
    monkeypatch.setitem(VERIFIERS, prop, check)
    with using_backend(BackendType.Ascend910B):
        facts.establish(property_set(prop), Two)
    assert runs == ["callee", "caller"] * 2


def test_an_implied_property_is_not_verified(monkeypatch):
    runs = []
    prop = IRProperty.HasMemRefs
    check = Verifier(prop, "Part", lambda f, found: runs.append(f.name), implied_by=IRProperty.SSAForm)
    monkeypatch.setitem(VERIFIERS, prop, check)
    facts = Facts()
    facts.establish(property_set(IRProperty.SSAForm, prop), Two)
    assert runs == []
    Facts().establish(property_set(prop), Two)
    assert runs == ["callee", "caller"]


def test_who_made_a_function():
    facts = Facts()
    new = with_other(Two, "callee", span=ir.Span("x.py", 1, 1))
    facts.note_origin(Two, new, "Foo")
    assert facts.origin(new.get_function("callee")) == "Foo"
    assert facts.origin(new.get_function("caller")) is None


def test_facts_keep_no_function_alive():
    import gc
    import weakref

    facts = Facts()
    program = with_other(Two, "callee", span=ir.Span("x.py", 2, 1))
    facts.establish(SSA, program)
    facts.note_origin(Two, program, "Foo")
    gone = weakref.ref(program.get_function("callee"))
    del program
    gc.collect()
    assert gone() is None
