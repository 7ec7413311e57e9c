"""ClassifyIterArgCarry: says for each carry of the ``for`` loops of an orchestration how it has to be printed.

*Before*::

    for i, (cur, acc) in pl.range(6, init_values=(x0, out)):
        t = pl.create_tensor([32, 32], dtype=pl.FP32)
        nxt = self.plus(cur, t)                 # writes and returns its parameter 1
        acc2 = self.add_row(x, i, acc)          # writes and returns its parameter 2
        last, res = pl.yield_(nxt, acc2)

*After*::

    for i, (cur, acc) in pl.range(
        6, init_values=(x0, out), attrs={"iter_arg_rebind_0": True, "iter_arg_rebind_1": False}
    ):
        ...

``cur`` is another buffer in each iteration and needs a variable (*rebind*); ``acc`` always is ``out`` and gets none
(*trivial*). Both mistakes are bugs: rebind taken for trivial loses data, trivial taken for rebind loses dependencies.
Task ids that a manual scope of the user collects over a parallel loop are kept in an array of
``iter_arg_array_size_<i>`` elements. The decision is that of :mod:`pypto.analysis.carries`, which answers for ``while``
loops, too.

Needs CallDirectionsResolved and RuntimeScopesMaterialized; gives IterArgCarryClassified. Last pass that looks at loops:
behind it nothing may move, unroll or fold them. Cost: linear.
"""

from __future__ import annotations

from ..analysis.callees import Callees, callees_of
from ..analysis.carries import Carries, Loop
from ..diag.errors import InternalError
from ..ir.carries import with_carries
from ..ir.enums import FunctionType
from ..ir.mutator import IRMutator
from ..ir.program import Function, Program
from ..ir.stmt import ForStmt, Stmt
from ..ir.tree import get_last_yield_stmt
from ..verify.inventory import inventory
from ..verify.properties import IRProperty
from .base import Pass
from .errors import PassError


class ClassifyIterArgCarry(Pass):
    """See the module."""

    name = "ClassifyIterArgCarry"
    required = (IRProperty.CallDirectionsResolved, IRProperty.RuntimeScopesMaterialized)
    produced = (IRProperty.IterArgCarryClassified, IRProperty.RuntimeScopesMaterialized)

    def run(self, program: Program) -> Program:
        callees = callees_of(program)
        return program.with_functions([_classified(function, callees) for function in program.functions.values()])


def _classified(function: Function, callees: Callees) -> Function:
    if function.func_type is not FunctionType.Orchestration or not inventory(function).has(ForStmt):
        return function
    carries = Carries(function, callees)
    for loop in carries.loops:
        _check_yield(loop, function)
    if carries.unsized:
        raise _no_trip_count(carries.unsized[0])
    body = _Stamp(carries).visit_stmt(function.body)
    return function if body is function.body else function.replace(body=body)


def _check_yield(loop: Loop, function: Function) -> None:
    last = get_last_yield_stmt(loop.body)
    if last is not None and len(last.value) != len(loop.iter_args):
        raise InternalError(
            f"a loop of '{function.name}' carries {len(loop.iter_args)} values and yields {len(last.value)}, "
            f"at {loop.span}"
        )


def _no_trip_count(loop: ForStmt) -> PassError:
    return PassError(
        "manual_scope: pl.parallel loops carrying a manual_scope dep (via ``deps=[...]``) must have a statically-known "
        f"trip count: the ids of all iterations are kept in a PTO2TaskId[N] array of fixed N, and the loop over "
        f"'{loop.loop_var.name_hint}' has no constant number of iterations",
        loop.span,
        hint="Give the loop constant bounds, use pl.range(), or collect the ids in a pl.array of a fixed size.",
    )


class _Stamp(IRMutator):
    def __init__(self, carries: Carries) -> None:
        self._carries = carries

    def visit_for_stmt(self, op: ForStmt) -> Stmt:
        new = self._default_stmt(op)
        attrs = with_carries(op.attrs, self._carries.slots(op) if op.iter_args else ())
        return new if attrs is op.attrs else new.replace(attrs=attrs)


def classify_iter_arg_carry() -> Pass:
    """The pass that stamps on each ``for`` of an orchestration how its carries are printed."""
    return ClassifyIterArgCarry()


__all__ = ["ClassifyIterArgCarry", "classify_iter_arg_carry"]
