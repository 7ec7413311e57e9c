"""ConvertToSSA: each variable is defined once, and state through loops and branches is explicit.

Before::

    acc = x
    for i in pl.range(n):
        if i > k:
            acc = pl.add(acc, 1.0)
    return acc

After::

    acc__ssa_v0 = x__ssa_v0
    for i__idx_v0, (acc__iter_v1,) in pl.range(n__ssa_v0, init_values=(acc__ssa_v0,)):
        if i__idx_v0 > k__ssa_v0:
            acc__ssa_v3 = pl.tensor.adds(acc__iter_v1, 1.0)
            acc__phi_v4 = pl.yield_(acc__ssa_v3)
        else:
            acc__phi_v4 = pl.yield_(acc__iter_v1)
        acc__rv_v2 = pl.yield_(acc__phi_v4)
    return acc__rv_v2

A loop carries the variables that it assigns and that have a value before it, and those that have none there but are
needed behind it. An ``if`` has a result for each variable that both branches leave with a value, when one of them
changed it. To read a variable that may have no value is an error at the read (:mod:`pypto.passes.ssa.definedness`).

Needs nothing, gives SSAForm, and may leave statement lists in another shape. Cost: two walks over a function,
:mod:`~pypto.analysis.liveness` and the renaming; a variable costs something at each loop and branch around its
assignments. Twice that, and :mod:`~pypto.analysis.undefined_reads`, where values depend on flags.
"""

from __future__ import annotations

from collections.abc import Mapping
from operator import is_
from typing import Any

from ..analysis.liveness import OUTLINE_BOUNDARIES, Liveness, liveness
from ..analysis.task_ids import is_placeholder
from ..analysis.undefined_reads import undefined_reads
from ..diag.errors import InternalError
from ..ir import stmt as st
from ..ir.enums import Role, level_to_linqu_level
from ..ir.expr import Var
from ..ir.mutator import IRMutator
from ..ir.node import FrozenDict, FrozenList
from ..ir.program import Function, Program
from ..ir.rewriting import rewrite_attrs
from ..ir.stmt import Stmt
from ..ir.type import ScalarType, ShapedType, TupleType
from ..ir.type_fields import is_closed, rebuild_type
from ..verify.properties import IRProperty
from .any_value import null_task_id
from .base import FunctionPass, Pass
from .ssa.bodies import same
from .ssa.definedness import NOT_KEPT, Undefined
from .ssa.loops import Loops
from .ssa.versions import has_ssa_name

_HOST = 3  # the Linqu level from which on a SubWorker's body is text of the host language


class ConvertToSSA(FunctionPass):
    """Give each definition a variable of its own, and make loop state and merged values explicit."""

    name = "ConvertToSSA"
    produced = (IRProperty.SSAForm,)
    invalidated = (IRProperty.NormalizedStmtStructure,)

    def run_on(self, function: Function, program: Program) -> Function:
        if _is_host_worker(function):
            return function
        live = liveness(function)
        if _is_done(live):
            return function
        if live.shared:
            function = _Unshare().visit_function(function)
            live = liveness(function)
        renamer = _Renamer(live, program, ())
        done = renamer.convert(function)
        return _with_stand_ins(function, program, renamer.failed) if renamer.failed else done


def convert_to_ssa() -> Pass:
    """The pass :class:`ConvertToSSA`."""
    return ConvertToSSA()


def _is_host_worker(function: Function) -> bool:
    level = function.level
    return function.role is Role.SubWorker and level is not None and level_to_linqu_level(level) >= _HOST


def _is_done(live: Liveness) -> bool:
    """Whether a function is in SSA form and its variables have names of SSA form."""
    if live.exposed:
        return False
    return all(count == 1 and has_ssa_name(var) for var, count in live.definitions.items())


def _with_stand_ins(function: Function, program: Program, failed: Mapping[Var, Any]) -> Function:
    """Convert a function again, with some value for variables that have none on paths that no read sees.

    Few functions need that, and where it is not needed such values would only be in the way.
    """
    renamer = _Renamer(liveness(function, failed), program, failed)
    done = renamer.convert(function)
    undefined = undefined_reads(function, failed, renamer.entered)
    for var, (reason, span) in failed.items():
        if var not in undefined and renamer.failed.get(var, (None,))[0] is NOT_KEPT:
            raise InternalError(f"'{var.name_hint}' is read behind its life, at {span}")
        if var in undefined or var in renamer.failed:
            raise reason.error(var, span)
    return done


class _Unshare(IRMutator):
    """Gives each place in a function a statement of its own: unrolling repeats statements that do not change."""

    def __init__(self) -> None:
        self._seen: set[Stmt] = set()

    def visit_stmt(self, stmt: Stmt) -> Stmt:
        new = super().visit_stmt(stmt)
        if new in self._seen:
            new = new.replace()
        self._seen.add(new)
        return new


class _Renamer(Loops):
    """Renames one function."""

    # --- functions ----------------------------------------------------------------------------------------------------

    def convert(self, function: Function) -> Function:
        """The function in SSA form."""
        return self._start(_Renamer._convert, function)  # type: ignore[no-any-return]

    def _convert(self, function: Function) -> Function:
        self._function = self._at = function
        # Extents in the types of parameters may be parameters themselves, also later ones.
        made: dict[Var, Var] = {}
        for plain in (True, False):
            for param in function.params:
                if is_closed(param.type) is plain:
                    made[param] = self._define(param, self._rewrite_type(param.type), param.span)
        params = FrozenList([made[p] for p in function.params])
        attrs = rewrite_attrs(self, function.attrs) if function.attrs else function.attrs
        results = FrozenList([self._rewrite_type(kind) for kind in function.return_types])
        body = self._body(function.body)
        changes: dict[str, Any] = {}
        if not all(map(is_, params, function.params)):
            changes["params"] = params
        if not all(map(is_, results, function.return_types)):
            changes["return_types"] = results
        if attrs is not function.attrs:
            changes["attrs"] = attrs
        if body is not function.body:
            changes["body"] = body
        return function.replace(**changes) if changes else function

    # --- simple statements --------------------------------------------------------------------------------------------

    def visit_assign_stmt(self, op: Any) -> Stmt:
        self._at = op
        old = op.value
        value = self._dispatch[type(old)](self, old)
        var = op.var
        # The value says what type a thing with a shape has; the variable says it of a scalar.
        source = old.type if isinstance(old.type, (ShapedType, TupleType)) else var.type
        kind = self._rewrite_type(source) if source is var.type is not old.type else value.type
        if isinstance(source, ShapedType):
            kind = self._with_memref(kind, var.type)
        new = self._define(var, kind, op.span)
        if type(kind) is ScalarType:
            self._facts.note_value(new, value)
        if new is var and value is old:
            return op  # type: ignore[no-any-return]
        return op.replace(var=new, value=value)  # type: ignore[no-any-return]

    def _with_memref(self, kind: Any, declared: Any) -> Any:
        if not isinstance(declared, ShapedType) or declared.memref is None or kind.memref is declared.memref:
            return kind
        return rebuild_type(kind, {"memref": self._rewrite_child(declared.memref)})

    def visit_eval_stmt(self, op: Any) -> Stmt:
        self._at = op
        return self._default_stmt(op)

    visit_yield_stmt = visit_eval_stmt

    def visit_return_stmt(self, op: Any) -> Stmt:
        self._at = op
        new = self._default_stmt(op)
        self._dead = True
        return new

    def visit_break_stmt(self, op: Any) -> Stmt:
        self._check_escape(op)
        self._dead = True
        return op  # type: ignore[no-any-return]

    visit_continue_stmt = visit_break_stmt

    def _check_escape(self, op: Stmt) -> None:
        """An escape goes on with the values that the iteration began with: no newer one may be needed then."""
        if self._dead or not self._loops:
            return
        loop, slots = self._loops[-1]
        needed = self._live.needed_next if type(op) is st.ContinueStmt else self._live.needed_after
        for slot in slots:
            if not slot.certain:
                slot.escape = op
            state = self._remap.get(slot.var)
            value: Any = state.stand_in if type(state) is Undefined else state
            if value is not None and value is not slot.iter_arg and needed(loop, slot.var):
                raise InternalError(
                    f"the value of '{slot.var.name_hint}' is lost where the loop is left at {op.span}: "
                    "CtrlFlowTransform must lower this loop first"
                )

    # --- scopes -------------------------------------------------------------------------------------------------------

    def _scope(self, op: Any) -> Stmt:
        self._at = op
        attrs = op.attrs
        changes: dict[str, Any] = {}
        task_id = attrs.get("task_id_var") if attrs else None
        placeholder = None
        if task_id is not None:
            if self._previous is not None and is_placeholder(self._previous, op):
                placeholder = self._remap[task_id]
            attrs = FrozenDict({key: value for key, value in attrs.items() if key != "task_id_var"})
        if attrs:
            attrs = rewrite_attrs(self, attrs)
        if type(op) is st.SpmdScopeStmt:
            changes["core_num"] = self._dispatch[type(op.core_num)](self, op.core_num)
        elif type(op) is st.CommDomainScopeStmt:
            slots = FrozenList([self._dispatch[type(slot)](self, slot) for slot in op.slots])
            changes["slots"] = op.slots if same(slots, op.slots) else slots
        boundary = type(op) in OUTLINE_BOUNDARIES
        if boundary:
            self._boundaries.append(op)
        changes["body"] = self._body(op.body)
        if boundary:
            self._boundaries.pop()
        if task_id is not None:
            new = self._task_id(op, task_id, placeholder)
            attrs = FrozenDict({key: new if key == "task_id_var" else attrs[key] for key in op.attrs})
            if new is task_id and all(map(is_, attrs.values(), op.attrs.values())):
                attrs = op.attrs
        changes["attrs"] = attrs
        if all(new is getattr(op, name) for name, new in changes.items()):
            return op  # type: ignore[no-any-return]
        return op.replace(**changes)  # type: ignore[no-any-return]

    visit_in_core_scope_stmt = visit_cluster_scope_stmt = visit_hierarchy_scope_stmt = _scope
    visit_spmd_scope_stmt = visit_split_aiv_scope_stmt = visit_runtime_scope_stmt = _scope
    visit_comm_domain_scope_stmt = _scope

    def _task_id(self, op: Any, task_id: Var, placeholder: Any) -> Var:
        """The variable that ``as tid`` assigns: that of the placeholder in front, which is made where there is none."""
        if placeholder is None:
            placeholder = Var(self._name(task_id, "ssa"), task_id.type, op.span)
            self._out.append(st.AssignStmt(placeholder, null_task_id(op.span), op.span))
        self._set(task_id, placeholder)
        return placeholder  # type: ignore[no-any-return]


__all__ = ["ConvertToSSA", "convert_to_ssa"]
