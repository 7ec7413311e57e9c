"""Statements: sequences, scopes, loops with their carries, branches with their results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...analysis.escapes import carried_at_escapes
from ...analysis.task_marks import EDGES
from ...diag.errors import InternalError
from ...ir.dtype import DataType
from ...ir.enums import ForKind
from ...ir.expr import Call, ConstInt, Expr, GlobalVar, MakeTuple, Neg, Submit, TupleGetItemExpr, Var
from ...ir.program import Function, Program
from ...ir.stmt import (
    AssignStmt,
    BreakStmt,
    ContinueStmt,
    EvalStmt,
    ForStmt,
    IfStmt,
    ReturnStmt,
    RuntimeScopeStmt,
    SeqStmts,
    Stmt,
    WhileStmt,
    YieldStmt,
)
from ...ir.traversal import CONSTANTS, walk
from ...ir.type import ArrayType, ScalarType, TensorType
from ..parallel_copy import Move, in_order
from ..runtime_names import INVALID_ID, RuntimeNames
from ..text import Group, Local
from .base import Manual, Parts, Region, ctype_of
from .edges import Collection
from .launches import Launches
from .tensors import is_create


class Slot:
    """How a carry is printed. ``array``: the ids of all iterations; ``in_place``: an array that is updated in place."""

    __slots__ = ("array", "local")

    def __init__(self, local: Any, array: bool = False) -> None:
        self.local = local  # None: another name of the initial value
        self.array = array


class LoopEnd:
    """Where yields of the current loop body go."""

    __slots__ = ("collections", "escapes", "loop", "slots")

    def __init__(self, loop: Any, slots: list[Slot], collections: list[Collection]) -> None:
        self.loop = loop
        self.slots = slots
        self.collections = collections
        self.escapes: dict[Stmt, list[Expr]] | None = None


class BranchEnd:
    """What one branch yields: the values, as text of its end, and the place to put assignments at."""

    __slots__ = ("ids", "place", "values")

    def __init__(self) -> None:
        self.values: list[tuple[Any, Expr]] = []
        self.place: Group | None = None
        self.ids: list[Any] = []


class Flow(Launches):
    """Prints the body of an orchestration function."""

    def __init__(self, program: Program, function: Function, runtime: RuntimeNames, launch_width: str) -> None:
        super().__init__(program, function, runtime, launch_width)
        self._end: LoopEnd | BranchEnd | None = None
        self._loop: LoopEnd | None = None

    def body(self) -> None:
        """The whole function."""
        self.stmt(self.function.body)
        self.check_lifetimes()

    def stmt(self, stmt: Any) -> None:
        """One statement."""
        self.out.place = stmt.span if stmt.span.is_valid() else self.out.place
        handler = _STATEMENTS.get(type(stmt))
        if handler is None:
            raise InternalError(
                f"orchestration code: no code for the statement {type(stmt).__name__} in '{self.function.name}' "
                f"[{stmt.span}]"
            )
        handler(self, stmt)

    # --- sequences and scopes -----------------------------------------------------------------------------------------

    def _seq(self, stmt: SeqStmts) -> None:
        self._list(_flat(stmt), self.creates_in_front(_flat(stmt)))

    def _list(self, stmts: Sequence[Stmt], done: set[Stmt]) -> None:
        for inner in stmts:
            if inner not in done:
                self.stmt(inner)

    def _scope(self, stmt: RuntimeScopeStmt) -> None:
        manual = self.manual
        if not stmt.manual:
            self.manual = None
            with self.out.opened("PTO2_SCOPE() {"):
                self.stmt(stmt.body)
        else:
            stmts = _flat(stmt.body)
            front = self.out.group()  # what the scope makes directly outlives it
            with self.out.at(front):
                done = self.creates_in_front(stmts)
            with self.out.opened("PTO2_SCOPE(PTO2ScopeMode::MANUAL) {") as block:
                self.manual = Manual(block, front)
                self._list(stmts, done)
        self.manual = manual

    def _single(self, body: Stmt) -> None:
        """The body of a loop or branch."""
        manual, self.manual = self.manual, None
        self.stmt(body if type(body) is SeqStmts else SeqStmts([body], body.span))
        self.manual = manual

    # --- assignments --------------------------------------------------------------------------------------------------

    def _assign(self, stmt: AssignStmt) -> None:
        var, value = stmt.var, stmt.value
        cls = type(value)
        if cls is Call or cls is Submit:
            self._call(var, value, stmt)
        elif isinstance(value, Var):
            self.copy(var, value)
            self.note_copy(var, value)
        elif cls is TupleGetItemExpr:
            self.element(var, value)  # type: ignore[arg-type]
            self.note_copy(var, value)
        elif cls is MakeTuple:
            elements = value.elements  # type: ignore[attr-defined]
            self.values[var] = Parts([self.value(e) or self._part(var, e) for e in elements])
        else:
            self.scalar_value(var, value)

    def _part(self, of: Var, e: Expr) -> Any:
        """An element of a tuple, computed here: where it is used, its operands may have other values, or be out of
        reach."""
        if type(e) in CONSTANTS:
            return self.text(e)
        part = Var(of.name_hint, e.type, e.span)
        self.scalar_value(part, e)
        return self.values[part]

    def _eval(self, stmt: EvalStmt) -> None:
        if type(stmt.expr) in (Call, Submit):
            self._call(None, stmt.expr, stmt)

    def _call(self, var: Var | None, call: Any, stmt: Any) -> None:
        name = call.op.name
        if type(call.op) is GlobalVar:
            self.launch(var, call)
        elif is_create(call):
            if var is not None:  # its shape is computed here
                self.allocate([stmt])
        elif name.startswith("tensor."):
            self.tensor_op(var, call)
        elif name.startswith("array."):
            self.array_op(var, call)
        elif name == "system.task_invalid":
            if var is not None:
                self.declare(var, "PTO2TaskId", self.name_of(var), INVALID_ID, f" = {INVALID_ID}")
        elif name == "system.task_is_valid":
            if var is not None:
                self.declare(var, "bool", self.name_of(var), self.expressions.text(call))
        elif name == "system.task_dummy":
            self._dummy(var, call)
        elif name in ("system.available_cluster_count", "system.available_aiv_count"):
            if var is not None:
                self.scalar_value(var, call)
        elif name == "pld.system.get_comm_ctx":
            self._comm_ctx(var, call)
        else:
            raise InternalError(f"Misplaced op '{name}' in Orchestration function '{self.function.name}' [{call.span}]")

    def _dummy(self, var: Var | None, call: Call) -> None:
        edges = self.derived_ids(call.attrs.get(EDGES, ()))
        comment = "Phase-fence barrier {}: dependency-only dummy task"
        self.barrier(comment, "phase_fence_barrier_{}", var, call.attrs.get("manual_dep_edges", ()), edges)

    def _comm_ctx(self, var: Var | None, call: Call) -> None:
        if var is not None:
            self.values[var] = self.value(call.args[0])

    # --- loops --------------------------------------------------------------------------------------------------------

    def _for(self, stmt: ForStmt) -> None:
        if stmt.kind in (ForKind.Unroll, ForKind.Pipeline):
            raise InternalError(
                f"a loop of kind {stmt.kind.name} in orchestration '{self.function.name}': UnrollLoops or "
                f"LowerPipeline should replace it [{stmt.span}]"
            )
        before = self.out.group()
        collections = self.open_collections(stmt)
        slots = [self._slot(stmt, i) for i in range(len(stmt.iter_args))]
        start, stop, step = (self.text(e) for e in (stmt.start, stmt.stop, stmt.step))
        name = self.name_of(stmt.loop_var)
        self.values[stmt.loop_var] = name
        if self._counts_up_from_zero(stmt):
            self.expressions.not_negative.add(stmt.loop_var)
        header = f"for (int64_t {name} = {start}; {_condition(stmt, name, stop, step)}; {name} += {step}) {{"
        self._iterate(stmt, header, slots, collections, before)

    def _counts_up_from_zero(self, stmt: ForStmt) -> bool:
        step = stmt.step
        return type(step) is ConstInt and step.value > 0 and self.expressions.at_least_zero(stmt.start)

    def _while(self, stmt: WhileStmt) -> None:
        before = self.out.group()
        collections = self.open_collections(stmt)
        slots = [self._while_slot(stmt, i) for i in range(len(stmt.iter_args))]
        # The condition reads the carries, so their names are those that it sees.
        header = f"while ({self.text(stmt.condition)}) {{"
        self._iterate(stmt, header, slots, collections, before)

    def _iterate(self, stmt: Any, header: str, slots: list[Slot], collections: list[Collection], before: Group) -> None:
        ends = self._end, self._loop
        before_loop = self.compress(stmt)
        region, self.region = self.region, Region(self.region.depth + 1)
        self._end = self._loop = LoopEnd(stmt, slots, collections)
        with self.out.opened(header):
            self._single(stmt.body)
        self.region.closed = True
        self.region = region
        self._end, self._loop = ends
        self.uncompress(before_loop)
        self.close_collections(stmt, collections, before)

    def _slot(self, loop: ForStmt, index: int) -> Slot:
        """Print what a carry of a counted loop needs in front of the loop."""
        arg, result = loop.iter_args[index], loop.return_vars[index]
        size = loop.attrs.get(f"iter_arg_array_size_{index}", 0)
        rebinds = bool(loop.attrs.get(f"iter_arg_rebind_{index}"))
        if size:
            return self._fence(loop, arg, result, int(size))
        if not rebinds:
            return self._trivial(arg, result)
        if isinstance(arg.type, ArrayType):
            return self._array_carry(arg, result)
        return self._variable(arg, result)

    def _while_slot(self, loop: WhileStmt, index: int) -> Slot:
        """A ``while`` has no stamps: its carries are asked here."""
        arg, result = loop.iter_args[index], loop.return_vars[index]
        if isinstance(arg.type, ArrayType):
            return self._array_carry(arg, result)
        if isinstance(arg.type, TensorType):
            if self.buffers.is_trivial(loop, index):
                return self._trivial(arg, result)
        return self._variable(arg, result)

    def _trivial(self, arg: Any, result: Var) -> Slot:
        value = self.value(arg.initValue)
        if value is None:
            value = self.text(arg.initValue)
        self.values[arg] = self.values[result] = value
        return Slot(None)

    def _variable(self, arg: Any, result: Var) -> Slot:
        """A mutable variable."""
        self.alive_id(arg.initValue, "is carried into a loop")
        ctype = ctype_of(arg, self.runtime)
        name = self.names.of_whole(result.name_hint)
        init = self.text(arg.initValue)
        if ctype == self.runtime.tensor:
            local = self._before_scope(name, init, [arg.initValue])
        else:
            local = self.declare(None, ctype, name, init, self._empty(arg))
        self.values[arg] = self.values[result] = local
        return Slot(local)

    def _before_scope(self, name: str, init: str, reads: list[Expr]) -> Local:
        """A tensor variable; one of a MANUAL scope's own statements stands in front of the scope, if it can."""
        manual = self.manual
        if manual is not None and all(self.valid_in(e, manual.front.block) for e in reads):
            with self.out.at(manual.front):
                local = self.declare(None, self.runtime.tensor, name, init, "")
            local.valid_in = manual.block
            return local
        return self.declare(None, self.runtime.tensor, name, init, "")

    def _empty(self, var: Var) -> str:
        return self.empty(var.type.dtype) if isinstance(var.type, ScalarType) else "{}"

    def _fence(self, loop: ForStmt, arg: Any, result: Var, size: int) -> Slot:
        """The ids of all iterations."""
        first = self.value(arg.initValue)
        name = self.names.of_whole(result.name_hint)
        text = self.text(arg.initValue)
        if type(first) is Local and first.extent is not None:
            if first.extent != size:
                raise InternalError(
                    f"a carry of {size} task ids starts from {first.extent} (ClassifyIterArgCarry) [{loop.span}]"
                )
            text = f"{text}[__init_i]"
        made = self.out.declare_array("PTO2TaskId", name, size, text, empty=INVALID_ID)
        self.own(result, made)
        # All iterations of a parallel loop see what there was before it.
        self.values[arg] = (first if first is not None else text) if loop.kind is ForKind.Parallel else made
        return Slot(made, array=True)

    def _array_carry(self, arg: Any, result: Var) -> Slot:
        """Arrays are updated in place, so the loop goes on with the storage of the initial value."""
        first = self.value(arg.initValue)
        if type(first) is not Local or first.extent is None:
            raise InternalError(f"the array '{arg.name_hint}' has no storage [{arg.span}]")
        self.values[arg] = self.values[result] = first
        return Slot(first, array=True)

    # --- the end of an iteration --------------------------------------------------------------------------------------

    def _yield(self, stmt: YieldStmt) -> None:
        end = self._end
        if end is None:
            raise InternalError(f"a yield outside of loops and branches [{stmt.span}]")
        values = list(stmt.value)
        if type(end) is BranchEnd:
            end.values = [(self._yielded(v), v) for v in values]
            end.ids = self.ids_of_all(values)
            end.place = self.out.group()
            return
        assert type(end) is LoopEnd
        if len(values) != len(end.slots):
            raise InternalError(f"a yield of {len(values)} values in a loop of {len(end.slots)} carries [{stmt.span}]")
        self.end_iteration(end.collections, values)
        self._carry_on(end, values)

    def _yielded(self, e: Expr) -> Any:
        """A value at the end of a branch: the variable itself, or text."""
        self.alive_id(e, "is yielded")
        value = self.value(e)
        if type(value) is Local:
            self.mention(e)  # says what is wrong with one that is gone
            return value
        return self.text(e)

    def _carry_on(self, end: LoopEnd, values: list[Expr]) -> None:
        """Give the carries their next values, all at once."""
        moves: list[Move] = []
        for slot, value in zip(end.slots, values, strict=True):
            local = slot.local
            if local is None:
                continue
            self.alive_id(value, "is carried on")
            source = self.value(value)
            if source is local:
                continue
            if slot.array and (type(source) is not Local or source.extent is None):
                if end.loop.kind is not ForKind.Parallel:
                    raise InternalError(
                        f"one id is yielded for an array of them (ClassifyIterArgCarry) [{self.out.place}]"
                    )
                target = f"{self.out.mention(local)}[{self.ordinal(end.loop)}]"
                moves.append(Move((target, None), self.text(value), self._reads(value), key=(local, "slot")))
                continue
            moves.append(Move((None, local), self.text(value), self._reads(value), key=local))
        self._assign_all(moves)

    def _reads(self, e: Expr) -> set[Any]:
        found = {self.value(v) for v in walk(e) if isinstance(v, Var)}
        return {v for v in found if type(v) is Local}

    def _assign_all(self, moves: list[Move]) -> None:
        kept: dict[Any, str] = {}
        for move, keep, was_kept in in_order(moves):
            target, local = move.target
            extent = local.extent if local is not None else None
            if keep:
                name = self.names.helper(f"__yield_tmp_{self._temporaries()}")
                kept[move.key] = name
                if extent is None:
                    self.out.line(f"{local.ctype} {name} = {move.source};")
                else:
                    self.out.line(f"{local.ctype} {name}[{extent}];")
                    self._copy_slots(name, move.source, extent)
                continue
            source = kept[move.key] if was_kept else move.source
            text = target if target is not None else self.out.mention(local)
            if extent is not None:
                self._copy_slots(text, source, extent)
            else:
                self.out.line(f"{text} = {source};")

    def _copy_slots(self, target: str, source: str, extent: int) -> None:
        self.out.line(
            f"for (int64_t __yield_i = 0; __yield_i < {extent}; ++__yield_i) {target}[__yield_i] = {source}[__yield_i];"
        )

    _made_temporaries = 0

    def _temporaries(self) -> int:
        self._made_temporaries += 1
        return self._made_temporaries - 1

    def _escape(self, stmt: Stmt) -> None:
        """``break`` and ``continue``, behind what the carries go on with."""
        loop = self._loop
        word = "break" if type(stmt) is BreakStmt else "continue"
        if loop is None:
            raise InternalError(f"a {word} outside of a loop [{stmt.span}]")
        if loop.slots:
            if loop.escapes is None:
                loop.escapes = carried_at_escapes(loop.loop)
            values = loop.escapes.get(stmt)
            if values is not None:
                self.end_escape(loop, values)
                self._carry_on(loop, values)
        self.out.line(f"{word};")

    def end_escape(self, loop: LoopEnd, values: list[Expr]) -> None:
        """Collected ids of derived edges are those of whole iterations: such a loop can't be left early."""
        if loop.collections:
            raise InternalError(
                f"a loop with derived dependencies on its results is left by break or continue "
                f"(AutoDeriveTaskDependencies) [{self.out.place}]"
            )

    # --- branches -----------------------------------------------------------------------------------------------------

    def _if(self, stmt: IfStmt) -> None:
        before = self.out.group()
        condition = self.text(stmt.condition)
        then = self._branch(f"if ({condition}) {{", stmt.then_body, None if stmt.else_body is not None else "}", before)
        if stmt.else_body is None:
            return
        other = self._branch("} else {", stmt.else_body, "}", before)
        if not stmt.return_vars:
            return
        sides = [side for side in (then, other) if side.place is not None]  # one may leave the loop instead
        self.join_branches(stmt, before, [(side.place, side.ids) for side in sides if side.place is not None])
        moves: list[list[Move]] = [[] for _ in sides]
        for i, result in enumerate(stmt.return_vars):
            values = [side.values[i] for side in sides]
            found = [value for value, _ in values]
            if not found:
                raise InternalError(f"no branch gives '{result.name_hint}' a value [{stmt.span}]")
            one = found[0]
            if all(value is one or (type(value) is str and value == one) for value in found) and self._is_name(
                *values[0]
            ):
                self.values[result] = one
                continue
            local = self._phi(result, before, found)
            for to, (value, e) in zip(moves, values, strict=True):
                text = value.name if type(value) is Local else value
                if value is not local:
                    reads = {value} if type(value) is Local else self._reads(e)
                    to.append(Move((None, local), text, reads, key=local))
        for end, assignments in zip(sides, moves, strict=True):
            assert end.place is not None
            with self.out.at(end.place):
                for move in assignments:
                    for read in move.reads:
                        if type(read) is Local:
                            self.out.mention(read)
                self._assign_all(assignments)

    def _is_name(self, value: Any, e: Expr) -> bool:
        """Whether a value of both branches is there without any of them: a variable or a literal, no computation."""
        return isinstance(e, (Var, TupleGetItemExpr, ConstInt)) or (type(value) is str and type(e) is Neg)

    def _phi(self, result: Var, before: Group, found: list[Any]) -> Local:
        """The variable of a branch result, in front of the branch."""
        name = self.names.of_whole(result.name_hint)
        kind: Any = result.type
        with self.out.at(before):
            if isinstance(kind, ArrayType):
                return self.own(result, self.new_array(kind, name))
            ctype = ctype_of(result, self.runtime)
            if ctype != self.runtime.tensor:
                start = INVALID_ID if kind.dtype is DataType.TASK_ID else None
                return self.declare(result, ctype, name, start, f" = {INVALID_ID}" if start else "")
            local = self._tensor_phi(name, found)
        self.values[result] = local
        return local

    def _tensor_phi(self, name: str, found: list[Any]) -> Local:
        """An undefined handle is no value, so a tensor starts as some other one; each branch assigns it."""
        place: str | None = None
        where = self.manual.front.block if self.manual is not None else self.out.block
        if self.tensor_params:
            place = str(self.values[self.tensor_params[0]])
        for value in found if place is None else ():
            if type(value) is str or (value.block.holds(where) and value.valid_in.holds(where)):
                place = value if type(value) is str else self.out.mention(value)
                break
        if self.manual is not None and place is not None:
            with self.out.at(self.manual.front):
                local = self.declare(None, self.runtime.tensor, name, place, "")
            local.valid_in = self.manual.block
            return local
        return self.declare(None, self.runtime.tensor, name, place, "")

    def _branch(self, header: str, body: Stmt, footer: str | None, before: Group) -> BranchEnd:
        outer, region = self._end, self.region
        self._end, self.region = BranchEnd(), Region(region.depth + 1)
        with self.out.opened(header, footer, before):
            self._single(body)
        self.region.closed = True
        found, self._end, self.region = self._end, outer, region
        assert type(found) is BranchEnd
        return found

    def _return(self, stmt: ReturnStmt) -> None:
        """Outputs are parameters, so there is nothing to give back; in a loop or branch it ends the function."""
        if self.region.depth:
            self.out.line("return;")


def _flat(stmt: Stmt) -> list[Stmt]:
    found: list[Stmt] = []
    stack = [stmt]
    while stack:
        item = stack.pop()
        if type(item) is SeqStmts:
            stack.extend(reversed(item.stmts))
        else:
            found.append(item)
    return found


def _condition(stmt: ForStmt, name: str, stop: str, step: str) -> str:
    value = None
    if type(stmt.step) is ConstInt:
        value = stmt.step.value
    elif type(stmt.step) is Neg and type(stmt.step.operand) is ConstInt:
        value = -stmt.step.operand.value
    if value is None:
        return f"((({step}) > 0 && {name} < {stop}) || (({step}) < 0 && {name} > {stop}))"
    return "false" if value == 0 else f"{name} {'<' if value > 0 else '>'} {stop}"


_STATEMENTS: dict[type, Callable[[Flow, Any], None]] = {
    SeqStmts: Flow._seq,
    RuntimeScopeStmt: Flow._scope,
    AssignStmt: Flow._assign,
    EvalStmt: Flow._eval,
    ForStmt: Flow._for,
    WhileStmt: Flow._while,
    IfStmt: Flow._if,
    YieldStmt: Flow._yield,
    ReturnStmt: Flow._return,
    BreakStmt: Flow._escape,
    ContinueStmt: Flow._escape,
}

__all__ = ["Flow"]
