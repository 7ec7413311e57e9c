"""The reference executor: runs any program of the IR, before any pass and after any.

An orchestration is run statement by statement; each kernel call, submit and kernel scope becomes a task of a
:class:`~pypto.runtime.graph.TaskGraph`. Kernels run with the NumPy semantics of the op definitions.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

from ..analysis.escapes import carried_at_escapes
from ..diag.errors import InternalError
from ..ir import expr as x
from ..ir import stmt as st
from ..ir.enums import ArgEffect, ForKind, FunctionType, is_incore_type
from ..ir.expr import Expr, Var
from ..ir.program import Function, Program
from ..ir.type import TASK_ID_TYPE, TileType
from ..ops import REGISTRY
from ..ops.definition import OpDef
from ..ops.footprint import touched_operands
from ..ops.values import ArrayValue
from .derived_edges import DerivedEdges, has_derived_edges
from .errors import ProgramError
from .frames import BREAK, CONTINUE, RETURN, Frame, Hook
from .graph import INVALID_TASK, Task, TaskGraph
from .kernel_scopes import KernelScopes
from .scalars import BINARY, UNARY, normalize, operate, round_float
from .scope_tasks import ScopeSummary


class _Fan:
    """A task id that a parallel loop carries: each iteration gets the one in front of the loop, all of them go out."""

    __slots__ = ("_first", "_found", "_slot")

    def __init__(self, slot: int, first: Any) -> None:
        self._slot = slot
        self._first = first
        self._found: list[Any] = []

    def add(self, carried: list[Any]) -> None:
        """Keep what an iteration yielded, and hand the first value on."""
        value = carried[self._slot]
        self._found += value if isinstance(value, list) else [value]
        carried[self._slot] = self._first

    def close(self, carried: list[Any]) -> None:
        """What the loop gives."""
        if self._found:
            carried[self._slot] = self._found


class Interpreter(KernelScopes):
    """Runs one program. ``run`` takes and updates :class:`ArrayValue` tensors and Python scalars.

    ``schedule``: "submit" (each task as it is submitted) or "random" with ``seed`` (a legal order, so that a missing
    edge shows as a wrong value). ``record``: keep the tasks and edges in ``graph``; ``accesses``: the bytes that they
    touch, too. ``on_statement`` is called before each statement (debugger). ``by_parts``: launches are ordered by the
    parts of their arguments that they touch, where that is safe, and not by whole arguments. ``order_reads``: launches
    that write wait for earlier ones that read the same, also where the rules of the device leave that to the program.
    """

    def __init__(
        self,
        program: Program,
        schedule: str = "submit",
        seed: int = 0,
        record: bool = False,
        on_statement: Hook | None = None,
        summaries: dict[st.Stmt, ScopeSummary] | None = None,
        accesses: bool = False,
        by_parts: bool = True,
        order_reads: bool = False,
    ) -> None:
        self.program = program
        self.by_parts = by_parts
        self.functions = {g.name: f for g, f in program.functions.items()}
        self.graph = TaskGraph(schedule, seed, record, accesses, order_reads)
        self._notes_accesses = accesses
        self.derived = DerivedEdges() if has_derived_edges(program) else None
        self.on_statement = on_statement
        # What is known about scopes: a caller that runs a program again may keep it.
        self._summaries: dict[st.Stmt, ScopeSummary] = {} if summaries is None else summaries
        self._exposures: dict[str, frozenset[Var]] = {}
        self._escapes: dict[st.Stmt, dict[st.Stmt, list[Expr]]] = {}

    # --- entry --------------------------------------------------------------------------------------------------------

    def run(self, function: Function, args: Sequence[Any]) -> list[Any]:
        """Run a function on values; returns the values of its return statement.

        Raises :class:`ProgramError` with the source line of the statement at fault.
        """
        limit = sys.getrecursionlimit()
        sys.setrecursionlimit(max(limit, 20_000))
        try:
            if is_incore_type(function.func_type) or function.func_type in (FunctionType.Group, FunctionType.Spmd):
                return self._run_kernel_entry(function, args)
            result = self.call_function(function, args, None)
            self.graph.finish()
            self._check_defined(function, args)
            self._check_results(function, result)
            return result
        finally:
            sys.setrecursionlimit(limit)

    def _run_kernel_entry(self, function: Function, args: Sequence[Any]) -> list[Any]:
        results: list[Any] = []

        def body() -> None:
            results.extend(self.run_kernel(function, args, 0, 1, f"{function.name}#0"))

        self.graph.submit(function.name, body, function.span, [], [], True)
        self.graph.finish()
        self._check_defined(function, args)
        return results

    # --- statements ---------------------------------------------------------------------------------------------------

    def exec(self, stmt: st.Stmt, frame: Frame) -> Any:
        """Run a statement; the result says how it left: None, RETURN, BREAK or CONTINUE."""
        if type(stmt) is st.SeqStmts:
            for inner in stmt.stmts:
                signal = self.exec(inner, frame)
                if signal is not None:
                    return signal
            return None
        if self.on_statement is not None:
            self.on_statement(frame, stmt)
        handler = _STATEMENTS.get(type(stmt))
        if handler is None:
            raise InternalError(f"the interpreter has no meaning for {type(stmt).__name__}")
        derived = self.derived
        try:
            if derived is None or frame.in_kernel:
                return handler(self, stmt, frame)
            derived.before(stmt)
            signal = handler(self, stmt, frame)
            derived.after(stmt)
            return signal
        except ProgramError:
            raise
        except (ValueError, TypeError, IndexError, ArithmeticError, NotImplementedError, RuntimeError) as error:
            if isinstance(error, (InternalError, RecursionError)):
                raise
            raise ProgramError(str(error), stmt.span, frame.function, frame.task) from error

    def _assign(self, stmt: st.AssignStmt, frame: Frame) -> None:
        value = self.eval(stmt.value, frame)
        if type(value) is ArrayValue and not value.buffer.name:
            value.buffer.name = stmt.var.name_hint
        frame.env[stmt.var] = value

    def _eval_stmt(self, stmt: st.EvalStmt, frame: Frame) -> None:
        self.eval(stmt.expr, frame)

    def _if(self, stmt: st.IfStmt, frame: Frame) -> Any:
        taken = stmt.then_body if self.eval(stmt.condition, frame) else stmt.else_body
        if taken is None:
            return None
        outer, frame.yielded = frame.yielded, None
        signal = self.exec(taken, frame)
        values, yielded = frame.yielded, outer
        if stmt.return_vars and signal is None:
            if values is None:
                raise ProgramError("a branch with results ended without a yield", stmt.span, frame.function)
            for var, value in zip(stmt.return_vars, values, strict=True):
                frame.env[var] = value
            frame.yielded = yielded
        else:
            # A branch without results passes a yield on to the loop around it.
            frame.yielded = values if values is not None else yielded
        return signal

    def _for(self, stmt: st.ForStmt, frame: Frame) -> Any:
        start, stop, step = (self.eval(e, frame) for e in (stmt.start, stmt.stop, stmt.step))
        if step == 0:
            raise ProgramError("the step of a loop is zero", stmt.span, frame.function)
        env = frame.env
        carried = [self.eval(arg.initValue, frame) for arg in stmt.iter_args]
        fans = self._fans(stmt, frame, carried)
        outer, signal = (frame.yielded, frame.escapes), None
        frame.escapes = self._escape_values(stmt)
        for i in range(start, stop, step):
            env[stmt.loop_var] = i
            for arg, value in zip(stmt.iter_args, carried, strict=True):
                env[arg] = value
            frame.yielded = None
            signal = self.exec(stmt.body, frame)
            if stmt.iter_args:
                carried = self._carried_on(stmt, frame, carried)
                for fan in fans:
                    fan.add(carried)
            if signal is RETURN:
                break
            if signal is BREAK:
                signal = None
                break
            signal = None
        frame.yielded, frame.escapes = outer
        for fan in fans:
            fan.close(carried)
        for var, value in zip(stmt.return_vars, carried, strict=True):
            env[var] = value
        return signal

    def _fans(self, stmt: st.ForStmt, frame: Frame, carried: list[Any]) -> list[_Fan]:
        """The task ids that a parallel loop carries in a manual scope: its iterations do not wait for each other."""
        if not frame.manual or stmt.kind is not ForKind.Parallel:
            return []
        return [_Fan(i, carried[i]) for i, arg in enumerate(stmt.iter_args) if arg.type == TASK_ID_TYPE]

    def _carried_on(self, stmt: st.ForStmt | st.WhileStmt, frame: Frame, carried: list[Any]) -> list[Any]:
        """What an iteration passes on: what it yielded; without results, whatever the names are bound to."""
        if frame.yielded is not None:
            return frame.yielded
        return carried if stmt.return_vars else [frame.env[arg] for arg in stmt.iter_args]

    def _while(self, stmt: st.WhileStmt, frame: Frame) -> Any:
        env = frame.env
        carried = [self.eval(arg.initValue, frame) for arg in stmt.iter_args]
        outer, signal = (frame.yielded, frame.escapes), None
        frame.escapes = self._escape_values(stmt)
        while True:
            for arg, value in zip(stmt.iter_args, carried, strict=True):
                env[arg] = value
            if not self.eval(stmt.condition, frame):
                break
            frame.yielded = None
            signal = self.exec(stmt.body, frame)
            if stmt.iter_args:
                carried = self._carried_on(stmt, frame, carried)
            if signal is RETURN:
                break
            if signal is BREAK:
                signal = None
                break
            signal = None
        frame.yielded, frame.escapes = outer
        for var, value in zip(stmt.return_vars, carried, strict=True):
            env[var] = value
        return signal

    def _yield(self, stmt: st.YieldStmt, frame: Frame) -> None:
        frame.yielded = [self.eval(v, frame) for v in stmt.value]

    def _return(self, stmt: st.ReturnStmt, frame: Frame) -> Any:
        values = [self.eval(v, frame) for v in stmt.value]
        if len(values) == 1 and type(values[0]) is tuple:
            values = list(values[0])
        frame.result = values
        return RETURN

    def _escape_values(self, loop: st.ForStmt | st.WhileStmt) -> dict[st.Stmt, list[Expr]]:
        if not loop.iter_args:
            return {}
        found = self._escapes.get(loop)
        if found is None:
            found = self._escapes[loop] = carried_at_escapes(loop)
        return found

    def _break(self, stmt: st.BreakStmt, frame: Frame) -> Any:
        self._yield_at_escape(stmt, frame)
        return BREAK

    def _continue(self, stmt: st.ContinueStmt, frame: Frame) -> Any:
        self._yield_at_escape(stmt, frame)
        return CONTINUE

    def _yield_at_escape(self, stmt: st.Stmt, frame: Frame) -> None:
        values = frame.escapes.get(stmt)
        if values is not None:
            frame.yielded = [self.eval(value, frame) for value in values]

    def _inline_stmt(self, stmt: st.InlineStmt, frame: Frame) -> Any:
        raise ProgramError("host Python workers can't run on this platform yet", stmt.span, frame.function)

    # --- expressions --------------------------------------------------------------------------------------------------

    def eval(self, expr: Expr, frame: Frame) -> Any:
        """The value of an expression."""
        kind = type(expr)
        if kind is Var or kind is x.IterArg:
            try:
                return frame.env[expr]  # type: ignore[index]
            except KeyError:
                return self._unbound(expr, frame)  # type: ignore[arg-type]
        if kind is x.ConstInt:
            return expr.value  # type: ignore[attr-defined]
        handler = _EXPRESSIONS.get(kind)
        if handler is None:
            raise InternalError(f"the interpreter has no meaning for {kind.__name__}")
        return handler(self, expr, frame)

    def _unbound(self, var: Var, frame: Frame) -> Any:
        raise ProgramError(
            f"'{var.name_hint}' is used before it has a value (on this path nothing was assigned to it)",
            var.span,
            frame.function,
            frame.task,
        )

    def _constant(self, expr: Any, _frame: Frame) -> Any:
        if type(expr) is x.ConstFloat:
            return round_float(expr.value, expr.dtype) if expr.dtype.is_float_ else expr.value
        return expr.value

    def _binary(self, expr: x.BinaryExpr, frame: Frame) -> Any:
        left: Expr = expr.left
        if type(left) not in BINARY:
            return operate(expr, self.eval(left, frame), self.eval(expr.right, frame))
        # Unrolled programs have chains of thousands of levels: walk the left spine without recursion.
        spine = [expr]
        while isinstance(left, x.BinaryExpr):
            spine.append(left)
            left = left.left
        value = self.eval(left, frame)
        for node in reversed(spine):
            value = operate(node, value, self.eval(node.right, frame))
        return value

    def _unary(self, expr: x.UnaryExpr, frame: Frame) -> Any:
        value = UNARY[type(expr)](self.eval(expr.operand, frame), expr.dtype)
        return normalize(value, expr.dtype)

    def _make_tuple(self, expr: x.MakeTuple, frame: Frame) -> Any:
        return tuple([self.eval(e, frame) for e in expr.elements])

    def _tuple_item(self, expr: x.TupleGetItemExpr, frame: Frame) -> Any:
        value = self.eval(expr.tuple, frame)
        return value[expr.index] if type(value) in (tuple, list) else value

    def _call(self, expr: x.Call, frame: Frame) -> Any:
        if type(expr.op) is x.GlobalVar:
            return self._function_call(expr, frame)
        name = expr.op.name
        special = _SPECIAL_OPS.get(name)
        if special is not None:
            return special(self, expr, frame)
        definition = REGISTRY.get(name)
        if definition is None or definition.reference is None:
            raise ProgramError(f"operation '{name}' has no meaning on this platform", expr.span, frame.function)
        args = []
        for operand in expr.args:
            value = self.eval(operand, frame)
            args.append(list(value) if type(value) is tuple else value)
        if not frame.in_kernel:
            if self.graph.pending or self.graph.record:
                self._host_access(definition, args, expr)
        elif self._notes_accesses:
            self._note_access(definition, args, expr)
        ctx = frame.ctx
        ctx.type = expr.type
        ctx.span = expr.span
        try:
            return definition.reference(ctx, *args, **expr.kwargs)
        except ProgramError:
            raise
        except (ValueError, TypeError, IndexError, ArithmeticError, NotImplementedError) as error:
            text = str(error)
            message = text if text.startswith(name) else f"{name}: {text}"
            raise ProgramError(message, expr.span, frame.function, frame.task) from error

    def _host_access(self, definition: OpDef, args: list[Any], call: x.Call) -> None:
        """Wait for the tasks behind the tensors that the orchestrator touches itself."""
        touched = _tensors_touched(definition, args, call)
        waits: list[Task] = []
        for i, effect, _ in touched:
            waits += self.graph.sync(args[i], for_write=effect is not ArgEffect.Read)
        recorder = self.graph.recorder
        if recorder is not None and touched:
            recorder.current = recorder.host(call.op.name, call.span, self.graph.submitted, waits)
            if self._notes_accesses:
                recorder.op(self.graph, definition, args, call.kwargs, touched)
            recorder.current = None

    def _note_access(self, definition: OpDef, args: list[Any], call: x.Call) -> None:
        touched = _tensors_touched(definition, args, call)
        if touched and self.graph.recorder is not None:
            self.graph.recorder.op(self.graph, definition, args, call.kwargs, touched)

    def _task_invalid(self, _expr: x.Call, _frame: Frame) -> Any:
        return INVALID_TASK

    def _task_dummy(self, expr: x.Call, frame: Frame) -> Any:
        deps = self._dep_values(expr.attrs.get("manual_dep_edges", ()), frame)
        return self.graph.submit("dummy", _nothing, expr.span, [], deps, True)

    def _task_is_valid(self, expr: x.Call, frame: Frame) -> bool:
        return isinstance(self.eval(expr.args[0], frame), Task)


def _nothing() -> None:
    """Body of a dummy task."""


def _tensors_touched(definition: OpDef, args: Sequence[Any], call: x.Call) -> list[tuple[int, ArgEffect, bool]]:
    """Of the operands that an op touches those in memory that tasks share: a tile is its kernel's own."""
    return [
        (i, effect, atomic)
        for i, effect, atomic in touched_operands(definition, call.kwargs, len(args))
        if isinstance(args[i], ArrayValue) and not isinstance(call.args[i].type, TileType)
    ]


_SPECIAL_OPS: dict[str, Callable[[Interpreter, Any, Frame], Any]] = {
    "system.task_invalid": Interpreter._task_invalid,
    "system.task_dummy": Interpreter._task_dummy,
    "system.task_is_valid": Interpreter._task_is_valid,
}

_STATEMENTS: dict[type, Callable[[Interpreter, Any, Frame], Any]] = {
    st.AssignStmt: Interpreter._assign,
    st.EvalStmt: Interpreter._eval_stmt,
    st.IfStmt: Interpreter._if,
    st.ForStmt: Interpreter._for,
    st.WhileStmt: Interpreter._while,
    st.YieldStmt: Interpreter._yield,
    st.ReturnStmt: Interpreter._return,
    st.BreakStmt: Interpreter._break,
    st.ContinueStmt: Interpreter._continue,
    st.InlineStmt: Interpreter._inline_stmt,
    st.InCoreScopeStmt: Interpreter._incore_scope,
    st.ClusterScopeStmt: Interpreter._transparent_scope,
    st.HierarchyScopeStmt: Interpreter._transparent_scope,
    st.SpmdScopeStmt: Interpreter._spmd_scope,
    st.SplitAivScopeStmt: Interpreter._split_aiv,
    st.RuntimeScopeStmt: Interpreter._runtime_scope,
    st.CommDomainScopeStmt: Interpreter._transparent_scope,
}

_EXPRESSIONS: dict[type, Callable[[Interpreter, Any, Frame], Any]] = {
    x.ConstInt: Interpreter._constant,
    x.ConstFloat: Interpreter._constant,
    x.ConstBool: Interpreter._constant,
    x.MakeTuple: Interpreter._make_tuple,
    x.TupleGetItemExpr: Interpreter._tuple_item,
    x.Call: Interpreter._call,
    x.Submit: Interpreter._submit,
    **{cls: Interpreter._binary for cls in x.BINARY_CLASSES},
    **{cls: Interpreter._unary for cls in x.UNARY_CLASSES},
}

__all__ = ["Frame", "Interpreter"]
