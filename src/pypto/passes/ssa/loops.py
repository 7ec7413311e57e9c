"""Loops: which variables a loop carries, and what they start from."""

from __future__ import annotations

from collections.abc import Callable, Collection
from operator import attrgetter
from typing import Any

from ...analysis.liveness import Liveness
from ...ir import stmt as st
from ...ir.expr import Expr, IterArg, Var
from ...ir.node import FrozenList
from ...ir.program import Program
from ...ir.rewriting import rewrite_attrs
from ...ir.stmt import Stmt
from ...ir.type import TASK_ID_TYPE, ScalarType, TensorType, Type
from ..any_value import any_value, null_task_id
from .bodies import add_yields, rebuilt, same
from .branches import Branches, by_name
from .definedness import (
    NEVER_ASSIGNED,
    NO_VALUE,
    NOT_KEPT,
    VARIABLES,
    Reason,
    Undefined,
    first_read,
    in_loop,
    left_early,
)
from .initial_values import WrittenBuffers
from .versions import State, agree, closed_types_first


class _Slot:
    """A variable that a loop carries, besides the carries that the source states."""

    __slots__ = ("certain", "escape", "init", "iter_arg", "names", "reason", "result", "var")

    def __init__(self, var: Var, init: Expr, certain: bool) -> None:
        self.var = var
        self.init = init
        self.certain = certain  # the initial value is a value of the variable
        self.escape: Stmt | None = None  # a break or continue that stays, if the initial value is none
        self.reason: Reason | None = None
        self.names = ("", "")
        self.iter_arg: Any = None
        self.result: Any = None


_slot_type = attrgetter("var.type")


class _Plan:
    """What a loop carries besides the carries that the source states, in slot order, and what it assigns for itself."""

    __slots__ = ("dropped", "ends", "finals", "once", "slots")

    def __init__(self, slots: list[_Slot], dropped: list[Var], once: bool) -> None:
        self.slots = slots
        self.dropped = dropped
        self.once = once  # it is proved to have an iteration; asked only where that matters
        self.ends = True  # the end of the body is reached
        self.finals: dict[Var, State] = {}  # the states there of the variables that may have no value before the loop


class Loops(Branches):
    """Renames loops."""

    def __init__(self, live: Liveness, program: Program, trusted: Collection[Var]) -> None:
        super().__init__(live, program, trusted)
        self._loops: list[tuple[Stmt, list[_Slot]]] = []  # the open ones
        self._buffers: WrittenBuffers | None = None

    # --- loops --------------------------------------------------------------------------------------------------------

    def visit_for_stmt(self, op: Any) -> Stmt:
        self._at = op
        self._loop_vars.add(op.loop_var)
        visit = self._dispatch
        start, stop, step = op.start, op.stop, op.step
        start = visit[type(start)](self, start)
        stop = visit[type(stop)](self, stop)
        step = visit[type(step)](self, step)
        header = {"start": start, "stop": stop, "step": step}
        if op.attrs:
            header["attrs"] = rewrite_attrs(self, op.attrs)
        return self._loop(op, header, lambda: self._facts.enters(start, stop, step))

    def visit_while_stmt(self, op: Any) -> Stmt:
        self._at = op
        return self._loop(op, {}, lambda: self._enters_while(op))

    def _enters_while(self, op: Any) -> bool:
        """Whether the condition is proved to hold before the first iteration."""
        mark = len(self._trail)
        for arg in op.iter_args:
            self._trail.append((arg, self._remap.get(arg)))
            self._remap[arg] = self._dispatch[type(arg.initValue)](self, arg.initValue)
        condition = self._dispatch[type(op.condition)](self, op.condition)
        self._undo(mark)
        return self._facts.holds(condition)

    def _loop(self, op: Any, header: dict[str, Any], enters: Callable[[], bool]) -> Stmt:
        own, results = op.iter_args, op.return_vars
        inits = [self._dispatch[type(arg.initValue)](self, arg.initValue) for arg in own]
        kinds = [self._rewrite_type(arg.type) for arg in own]
        plan = self._plan(op, enters)
        slots = plan.slots
        if type(op) is st.ForStmt:
            header["loop_var"] = self._version(op.loop_var, op.loop_var.type, op.loop_var.span, "idx")
        for slot in slots:
            slot.names = self._name(slot.var, "iter"), self._name(slot.var, "rv")
        mark = len(self._trail)
        self._hide(plan.dropped)
        if type(op) is st.ForStmt:
            self._set(op.loop_var, header["loop_var"])
        if own:
            own = FrozenList([self._own_carry(*carry) for carry in zip(own, inits, kinds, strict=True)])
        if slots:
            self._open_slots(op, slots)
        stmts = self._iteration(op, plan, header)
        self._undo(mark)
        self._after_loop(op, plan)
        if results:
            results = FrozenList(self._loop_results(op))
        if slots:
            own = FrozenList([*own, *[slot.iter_arg for slot in slots]])
            results = FrozenList([*results, *[slot.result for slot in slots]])
        header["iter_args"] = op.iter_args if same(own, op.iter_args) else own
        header["return_vars"] = op.return_vars if same(results, op.return_vars) else results
        header["body"] = rebuilt(op.body, stmts)
        if header["body"] is op.body and all(new is getattr(op, name) for name, new in header.items()):
            return op  # type: ignore[no-any-return]
        return op.replace(**header)  # type: ignore[no-any-return]

    def _iteration(self, op: Any, plan: _Plan, header: dict[str, Any]) -> list[Stmt]:
        """The condition and the body, with the yield at the end, and the states of the variables there."""
        before, known = self._dead, self._facts.mark()
        if type(op) is st.WhileStmt:
            header["condition"] = self._dispatch[type(op.condition)](self, op.condition)
            self._facts.enter(header["condition"], True)
        self._loops.append((op, plan.slots))
        stmts = self._list(op.body)
        self._loops.pop()
        self._at = op
        plan.ends = not self._dead or before
        if plan.slots:
            add_yields(stmts, self._close_slots(op, plan), op.span, first=False)
        uncertain = [slot.var for slot in plan.slots if not slot.certain]
        plan.finals = {var: self._remap.get(var) for var in (*plan.dropped, *uncertain)}
        self._facts.leave(known)
        self._dead = before
        return stmts

    def _hide(self, variables: list[Var]) -> None:
        """Forget values that are not to be read here."""
        for var in variables:
            if self._is_value(var):
                self._set(var, Undefined(NOT_KEPT))

    def _plan(self, op: Any, enters: Callable[[], bool]) -> _Plan:
        """Sort the variables that a loop assigns into those that it has to carry and those that it has for itself."""
        live, remap = self._live, self._remap
        needed_somewhere = live.needed_somewhere
        results = dict.fromkeys(op.return_vars)
        carried: list[_Slot] = []
        wanted: list[tuple[Var, State]] = []
        dropped: list[Var] = []
        for var in live.assigned(op):
            state: State = remap.get(var)
            if state is None and var not in needed_somewhere:
                continue  # most of the loop variables and locals of inner loops
            if type(state) not in NO_VALUE:
                if var in results:
                    keep = live.read_at_head(op, var)
                elif self._careful(var) or self._is_foreign(state):
                    keep = live.needed_next(op, var)
                else:
                    keep = True
                if keep:
                    carried.append(_Slot(var, state, True))
                else:
                    dropped.append(var)
            elif var not in results and live.needed_next(op, var):
                wanted.append((var, state))
        if type(op) is st.ForStmt and op.loop_var not in results and live.needed_after(op, op.loop_var):
            wanted.append((op.loop_var, remap.get(op.loop_var)))
        once = bool(wanted) and enters()
        if once:
            self.entered.append(op)
        escaping = []
        for var, state in wanted:
            slot = self._escaping(op, var, state, once)
            if slot is None:
                dropped.append(var)
            else:
                escaping.append(slot)
        for group in (carried, escaping):
            if len(group) > 1:
                group.sort(key=lambda slot: by_name(slot.var))
        return _Plan(carried + escaping, dropped, once)

    def _escaping(self, op: Any, var: Var, state: State, once: bool) -> _Slot | None:
        """The slot of a variable that has no value before a loop and is needed behind it; None if no value will do."""
        if type(state) not in NO_VALUE:
            return _Slot(var, state, True)
        if var.type == TASK_ID_TYPE:
            return _Slot(var, self._bind(var, null_task_id(op.span), op.span), True)
        root = self._written_buffer(var)
        if root is not None:
            return _Slot(var, root, True)
        trusted = var in self._trusted
        if not once and not trusted:
            return None
        if type(state) is Undefined and state.stand_in is not None:
            init: Expr | None = state.stand_in
        else:
            init = any_value(self._rewrite_type(var.type), op.span)
            init = None if init is None else self._bind(var, init, op.span)
        if init is None:
            return None
        slot = _Slot(var, init, trusted)
        slot.reason = state.reason if type(state) is Undefined else None
        return slot

    def _written_buffer(self, var: Var) -> Expr | None:
        """The outer tensor whose buffer a variable is: its value after zero iterations."""
        if not isinstance(var.type, TensorType):
            return None
        if self._buffers is None:
            self._buffers = WrittenBuffers(self._function, self._program.functions)
        root = self._buffers.root(var)
        if root is None:
            return None
        value: State = self._remap.get(root)
        return value if type(value) not in NO_VALUE and agree(value.type, self._rewrite_type(var.type)) else None

    def _own_carry(self, arg: IterArg, init: Expr, kind: Type) -> IterArg:
        """An iter arg that the source states: the same object, unless something in it changed or it was met before."""
        if arg in self._met:
            new = IterArg(self._name(arg, "iter"), kind, init, arg.span)
        elif init is arg.initValue and kind is arg.type:
            new = arg
        else:
            new = arg.replace(initValue=init, type=kind)
        self._met.add(arg)
        self._set(arg, new)
        return new

    def _open_slots(self, op: Any, slots: list[_Slot]) -> None:
        """Make the iter args and say what they stand for in the body."""
        extents: dict[Any, Expr] = {}
        loop_var = op.loop_var if type(op) is st.ForStmt else None
        for slot in closed_types_first(slots, _slot_type):
            var, init = slot.var, slot.init
            kind = self._merged_type(var, init, extents)
            slot.iter_arg = IterArg(slot.names[0], kind, init, var.span)
            if type(kind) is ScalarType and type(init) in VARIABLES:
                extents[init] = slot.iter_arg
            if var is not loop_var:
                self._set(var, slot.iter_arg)
        for slot in slots:
            if not slot.certain and slot.var is not loop_var:
                self._set(slot.var, Undefined(slot.reason or first_read(op), slot.iter_arg))

    def _close_slots(self, op: Any, plan: _Plan) -> list[Expr]:
        """What an iteration passes on; also checks that the types agree."""
        operands: list[Expr] = []
        for slot in plan.slots:
            state: State = self._remap.get(slot.var)
            if type(state) not in NO_VALUE:
                if slot.iter_arg.type is not state.type and self._live.needed_next(op, slot.var):
                    self._check_agreement(slot.var, slot.iter_arg, state, op, "the loop carries it as")
                operands.append(state)
                continue
            stand_in = state.stand_in if type(state) is Undefined else None
            operands.append(stand_in if stand_in is not None else slot.iter_arg)
        return operands

    def _after_loop(self, op: Any, plan: _Plan) -> None:
        """Make the results of the slots and say what the variables stand for behind the loop."""
        extents: dict[Any, Expr] = {}
        for slot in closed_types_first(plan.slots, _slot_type):
            kind = self._merged_type(slot.var, slot.iter_arg, extents)
            slot.result = Var(slot.names[1], kind, op.span)
            if type(kind) is ScalarType:
                extents[slot.iter_arg] = slot.result
            self._set(slot.var, slot.result)
        for slot in plan.slots:
            if slot.certain:
                continue
            final = plan.finals[slot.var]
            has_value = type(final) not in NO_VALUE
            if plan.once and slot.escape is None and (has_value or not plan.ends):
                continue
            if has_value and plan.once and slot.escape is not None:
                reason = left_early(slot.escape, final.span)
            elif has_value:
                reason = slot.reason or in_loop(op, final.span)
            else:
                reason = final.reason if type(final) is Undefined else NEVER_ASSIGNED
            self._set(slot.var, Undefined(reason, slot.result))
        for var in plan.dropped:
            state = plan.finals[var]
            if self._is_value(var):
                self._set(var, Undefined(NOT_KEPT))
            elif type(state) not in NO_VALUE:
                self._set(var, Undefined(in_loop(op, state.span)))
            elif type(state) is Undefined:
                self._set(var, state)

    def _loop_results(self, op: Any) -> list[Var]:
        """The results that the source states: the same objects, unless something changed or they are not the first."""
        made = []
        for var in op.return_vars:
            kind = self._rewrite_type(var.type)
            if self._live.definitions[var] > 1:
                new = Var(self._name(var, "rv"), kind, var.span)
            else:
                new = var if kind is var.type else var.replace(type=kind)
            made.append(new)
        for var, new in zip(op.return_vars, made, strict=True):
            self._set(var, new)
        return made


__all__ = ["Loops"]
