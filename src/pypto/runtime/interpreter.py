"""The reference executor: runs any program of the IR, before any pass and after any.

An orchestration is run statement by statement; each kernel call, submit and kernel scope becomes a task of a
:class:`~pypto.runtime.graph.TaskGraph`. Kernels run with the NumPy semantics of the op definitions.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from .._lazy import np
from ..diag.errors import InternalError
from ..ir import expr as x
from ..ir import stmt as st
from ..ir.dtype import DataType
from ..ir.enums import ArgDirection, FunctionType, ParamDirection, is_incore_type
from ..ir.expr import Expr, Var
from ..ir.program import Function, Program
from ..ir.type import ArrayType, ScalarType, ShapedType, TensorType, TileType, TupleType
from ..ops import REGISTRY
from ..ops.numpy_types import numpy_dtype
from ..ops.values import ArrayValue, Buffer, EvalContext, empty
from .errors import ProgramError
from .graph import INVALID_TASK, Tag, Task, TaskGraph
from .mixed import run_lanes, run_together, uses_pipes
from .scalars import BINARY, UNARY, normalize, round_float, wrap
from .scope_tasks import ScopeSummary, exposed_uses, summarize

RETURN, BREAK, CONTINUE = object(), object(), object()

_ORCHESTRATION = (FunctionType.Orchestration, FunctionType.Graph, FunctionType.Opaque, FunctionType.Inline)
_TAG_OF_DIRECTION = {
    ArgDirection.Input: Tag.INPUT,
    ArgDirection.InOut: Tag.INOUT,
    ArgDirection.Output: Tag.OUTPUT,
    ArgDirection.OutputExisting: Tag.OUTPUT_EXISTING,
    ArgDirection.NoDep: Tag.NO_DEP,
}
_TAG_OF_PARAM = {
    ParamDirection.In: Tag.INPUT,
    ParamDirection.Out: Tag.SOURCE_WRITE,
    ParamDirection.InOut: Tag.SOURCE_WRITE,
}


class Frame:
    """One activation of a function, or of a kernel scope: values by variable, and where it runs."""

    __slots__ = ("ctx", "env", "function", "in_kernel", "manual", "result", "task", "yielded")

    def __init__(self, function: str, env: dict[Var, Any], in_kernel: bool, ctx: EvalContext) -> None:
        self.function = function
        self.env = env
        self.in_kernel = in_kernel
        self.ctx = ctx
        self.manual = False
        self.yielded: list[Any] | None = None
        self.result: list[Any] = []
        self.task = ""

    def lane(self, index: int, pipes: Any) -> Frame:
        """A copy for one vector lane of a split region."""
        ctx = EvalContext()
        ctx.block_idx, ctx.block_num = self.ctx.block_idx, self.ctx.block_num
        ctx.lane, ctx.pipes = index, pipes
        made = Frame(self.function, dict(self.env), self.in_kernel, ctx)
        made.task = self.task
        return made


Hook = Callable[[Frame, st.Stmt], None]


class Interpreter:
    """Runs one program. ``run`` takes and updates :class:`ArrayValue` tensors and Python scalars.

    ``schedule``: "submit" (each task as it is submitted) or "random" with ``seed`` (a legal order, so that a missing
    edge shows as a wrong value). ``record``: keep the tasks and edges in ``graph``. ``on_statement`` is called before
    each statement (debugger).
    """

    def __init__(
        self,
        program: Program,
        schedule: str = "submit",
        seed: int = 0,
        record: bool = False,
        on_statement: Hook | None = None,
        summaries: dict[st.Stmt, ScopeSummary] | None = None,
    ) -> None:
        self.program = program
        self.functions = {g.name: f for g, f in program.functions.items()}
        self.graph = TaskGraph(schedule, seed, record)
        self.on_statement = on_statement
        # What is known about scopes: a caller that runs a program again may keep it.
        self._summaries: dict[st.Stmt, ScopeSummary] = {} if summaries is None else summaries
        self._exposures: dict[str, frozenset[Var]] = {}

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

    def _check_defined(self, function: Function, args: Sequence[Any]) -> None:
        """The caller's tensors must hold no value that was computed from undefined ones when the run ends."""
        for param, value in zip(function.params, args, strict=True):
            if type(value) is not ArrayValue or not value.buffer.external:
                continue
            mask = value.mask
            if mask is not None and not mask.all():
                first = [int(i) for i in np.argwhere(~mask)[0]]
                raise ProgramError(
                    f"'{param.name_hint}' ends with undefined values (first at index {first}): "
                    "this statement stored elements that nothing had defined",
                    value.buffer.poisoned_at,
                    function.name,
                )

    def _check_results(self, function: Function, results: Sequence[Any]) -> None:
        """Neither must tensors that the program made and returns."""
        for i, value in enumerate(results):
            if type(value) is ArrayValue and not value.buffer.external and value.mask is not None:
                missing = np.argwhere(~value.mask)
                if len(missing):
                    raise ProgramError(
                        f"returned value {i} holds undefined values (first at index {[int(n) for n in missing[0]]})",
                        value.buffer.poisoned_at or function.span,
                        function.name,
                    )

    def _run_kernel_entry(self, function: Function, args: Sequence[Any]) -> list[Any]:
        results: list[Any] = []

        def body() -> None:
            results.extend(self.run_kernel(function, args, 0, 1, f"{function.name}#0"))

        self.graph.submit(function.name, body, function.span, [], [], True)
        self.graph.finish()
        self._check_defined(function, args)
        return results

    # --- functions ----------------------------------------------------------------------------------------------------

    def call_function(self, function: Function, args: Sequence[Any], caller: Frame | None) -> list[Any]:
        """Run a function's body in a frame of its own, in the caller's role (orchestration or kernel)."""
        in_kernel = caller.in_kernel if caller is not None else False
        if is_incore_type(function.func_type):
            in_kernel = True
        ctx = caller.ctx if caller is not None and in_kernel else EvalContext()
        frame = Frame(function.name, self.bind(function, args), in_kernel, ctx)
        if caller is not None:
            frame.manual = caller.manual
            frame.task = caller.task
        self.exec(function.body, frame)
        return frame.result

    def run_kernel(
        self,
        function: Function,
        args: Sequence[Any],
        block: int,
        blocks: int,
        task: str,
        pipes: Any = None,
        lane: int = 0,
    ) -> list[Any]:
        """Run one block of a kernel."""
        ctx = EvalContext()
        ctx.block_idx, ctx.block_num, ctx.pipes, ctx.lane = block, blocks, pipes, lane
        frame = Frame(function.name, self.bind(function, args), True, ctx)
        frame.task = task
        if function.func_type in (FunctionType.Group, FunctionType.Spmd) and uses_pipes(function, self.functions):
            return run_together(self, function, frame)
        self.exec(function.body, frame)
        return frame.result

    def bind(self, function: Function, args: Sequence[Any]) -> dict[Var, Any]:
        """Parameters to values; symbolic extents of parameter types get theirs from the arguments."""
        env: dict[Var, Any] = {}
        if len(args) != len(function.params):
            raise ProgramError(
                f"function '{function.name}' takes {len(function.params)} arguments, got {len(args)}", function.span
            )
        for param, value in zip(function.params, args, strict=True):
            kind = param.type
            if isinstance(kind, TensorType):
                self._bind_extents(function, param, kind, value, env)
            elif isinstance(kind, ScalarType):
                value = normalize(value, kind.dtype) if not isinstance(value, (Task, type(INVALID_TASK))) else value
            env[param] = value
        return env

    def _bind_extents(self, function: Function, param: Var, kind: TensorType, value: Any, env: dict[Var, Any]) -> None:
        if not isinstance(value, ArrayValue):
            raise ProgramError(f"argument '{param.name_hint}' of '{function.name}' is not a tensor", function.span)
        shape = value.shape
        if len(shape) != len(kind.shape):
            raise ProgramError(
                f"argument '{param.name_hint}' of '{function.name}' has rank {len(shape)}, "
                f"the parameter has rank {len(kind.shape)}",
                function.span,
            )
        if value.dtype != numpy_dtype(kind.dtype):
            raise ProgramError(
                f"argument '{param.name_hint}' of '{function.name}' has element type {value.dtype}, "
                f"the parameter has {kind.dtype}",
                function.span,
            )
        for axis, (extent, actual) in enumerate(zip(kind.shape, shape, strict=True)):
            if type(extent) is x.ConstInt:
                if extent.value != actual:
                    raise ProgramError(
                        f"argument '{param.name_hint}' of '{function.name}' has extent {actual} in dimension {axis}, "
                        f"the parameter has {extent.value}",
                        function.span,
                    )
            elif type(extent) is Var:
                known = env.setdefault(extent, actual)
                if known != actual:
                    raise ProgramError(
                        f"dynamic dimension '{extent.name_hint}' is {known} before but {actual} in "
                        f"'{param.name_hint}' (dim {axis})",
                        function.span,
                    )

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
        try:
            return handler(self, stmt, frame)
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
        outer, signal = frame.yielded, None
        for i in range(start, stop, step):
            env[stmt.loop_var] = i
            for arg, value in zip(stmt.iter_args, carried, strict=True):
                env[arg] = value
            frame.yielded = None
            signal = self.exec(stmt.body, frame)
            if frame.yielded is not None and stmt.iter_args:
                carried = frame.yielded
            elif stmt.iter_args and not stmt.return_vars:
                carried = [env[arg] for arg in stmt.iter_args]
            if signal is RETURN:
                break
            if signal is BREAK:
                signal = None
                break
            signal = None
        frame.yielded = outer
        for var, value in zip(stmt.return_vars, carried, strict=True):
            env[var] = value
        return signal

    def _while(self, stmt: st.WhileStmt, frame: Frame) -> Any:
        env = frame.env
        carried = [self.eval(arg.initValue, frame) for arg in stmt.iter_args]
        outer, signal = frame.yielded, None
        while True:
            for arg, value in zip(stmt.iter_args, carried, strict=True):
                env[arg] = value
            if not self.eval(stmt.condition, frame):
                break
            frame.yielded = None
            signal = self.exec(stmt.body, frame)
            if frame.yielded is not None and stmt.iter_args:
                carried = frame.yielded
            if signal is RETURN:
                break
            if signal is BREAK:
                signal = None
                break
            signal = None
        frame.yielded = outer
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

    def _break(self, _stmt: st.BreakStmt, _frame: Frame) -> Any:
        return BREAK

    def _continue(self, _stmt: st.ContinueStmt, _frame: Frame) -> Any:
        return CONTINUE

    def _inline_stmt(self, stmt: st.InlineStmt, frame: Frame) -> Any:
        raise ProgramError("host Python workers can't run on this platform yet", stmt.span, frame.function)

    # --- scopes -------------------------------------------------------------------------------------------------------

    def _runtime_scope(self, stmt: st.RuntimeScopeStmt, frame: Frame) -> Any:
        outer = frame.manual
        # A compiler-made MANUAL scope is one too: its edges are explicit.
        frame.manual = stmt.manual
        try:
            return self.exec(stmt.body, frame)
        finally:
            frame.manual = outer

    def _transparent_scope(self, stmt: st.ScopeStmt, frame: Frame) -> Any:
        return self.exec(stmt.body, frame)

    def _split_aiv(self, stmt: st.SplitAivScopeStmt, frame: Frame) -> Any:
        return run_lanes(self, stmt, frame)

    def _incore_scope(self, stmt: st.InCoreScopeStmt, frame: Frame) -> Any:
        if frame.in_kernel:
            return self.exec(stmt.body, frame)
        return self._scope_task(stmt, stmt.body, 1, frame)

    def _spmd_scope(self, stmt: st.SpmdScopeStmt, frame: Frame) -> Any:
        blocks = self.eval(stmt.core_num, frame)
        _check_blocks(blocks, stmt.span, frame)
        body = stmt.body
        if type(body) is st.InCoreScopeStmt:
            merged = {**stmt.attrs, **body.attrs}
            return self._scope_task(stmt, body.body, blocks, frame, merged)
        return self._scope_task(stmt, body, blocks, frame)

    def _scope_task(
        self, stmt: st.ScopeStmt, body: st.Stmt, blocks: int, frame: Frame, attrs: Mapping[str, Any] | None = None
    ) -> Any:
        """Run a kernel scope as a task: its reads and writes of outer tensors are the task's arguments."""
        attrs = stmt.attrs if attrs is None else attrs
        name = stmt.name_hint or f"{frame.function}_incore"
        summary = self._summary(stmt, body)
        deps = self._dep_values(attrs.get("manual_dep_edges", ()), frame)
        overrides = {id(v) for v in attrs.get("arg_direction_overrides_vars", ())}
        arguments = [
            (frame.env[var], Tag.NO_DEP if id(var) in overrides else tag)
            for var, tag in summary.accesses.items()
            if type(frame.env.get(var)) is ArrayValue
        ]
        predicate = self._predicate(attrs.get("predicate"), frame)
        targets = self._leaked_targets(summary, frame) if self.graph.deferred else None
        env = frame.env
        if targets is None:  # runs at once: all that is submitted has to be done
            self.graph.finish()
        else:
            env = dict(env)
            frame.env.update(targets)
        ran: list[None] = []

        def run() -> None:
            ran.append(None)
            for block in range(blocks):
                ctx = EvalContext()
                ctx.block_idx, ctx.block_num = block, blocks
                inner = Frame(frame.function, env if blocks == 1 else dict(env), True, ctx)
                inner.task = name
                self.exec(body, inner)
                if blocks > 1:
                    env.update(inner.env)
            for var, target in (targets or {}).items():
                _copy_into(target, env.get(var))

        task = self.graph.submit(name, run, stmt.span, arguments, deps, frame.manual, predicate)
        for target in (targets or {}).values():
            if target.buffer.owner is None and not target.buffer.external:
                target.buffer.owner = task
        if targets is None:
            self.graph.finish()
            if not ran:  # skipped by its predicate: the outer tensors are as they were, under the names it gives them
                env.update({var: env[root] for var, root in summary.leaks.items() if root in env})
        task_var = attrs.get("task_id_var")
        if task_var is not None:
            frame.env[task_var] = task
        return None

    def _summary(self, stmt: st.Stmt, body: st.Stmt) -> ScopeSummary:
        found = self._summaries.get(stmt)
        if found is None:
            found = self._summaries[stmt] = summarize(body, self.functions)
        return found

    def _exposed(self, function: str) -> frozenset[Var]:
        found = self._exposures.get(function)
        if found is None:
            found = self._exposures[function] = exposed_uses(self.functions[function])
        return found

    def _leaked_targets(self, summary: ScopeSummary, frame: Frame) -> dict[Var, ArrayValue] | None:
        """Values for the names that a deferred scope leaks: an alias of an outer tensor, or fresh storage.

        None when they can't be known before the scope has run: the scope can't be deferred.
        """
        if not summary.known or summary.others & self._exposed(frame.function):
            return None
        found: dict[Var, ArrayValue] = {}
        for var, root in summary.leaks.items():
            if root is not None:
                value = frame.env.get(root)
                if type(value) is not ArrayValue:
                    return None
                found[var] = value
                continue
            kind = var.type
            assert isinstance(kind, ShapedType)
            try:
                shape = [self.eval(e, frame) for e in kind.shape]
            except ProgramError:
                return None
            found[var] = empty(shape, numpy_dtype(kind.dtype), var.name_hint)
        return found

    # --- expressions --------------------------------------------------------------------------------------------------

    def eval(self, expr: Expr, frame: Frame) -> Any:
        """The value of an expression."""
        kind = type(expr)
        if kind is Var or kind is x.IterArg:
            try:
                return frame.env[expr]  # type: ignore[index]
            except KeyError:
                return self._unbound(expr, frame)  # type: ignore[arg-type]
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
        if type(expr) is x.ConstFloat and expr.dtype is not DataType.FP32:
            return round_float(expr.value, expr.dtype) if expr.dtype.is_float_ else expr.value
        return expr.value

    def _binary(self, expr: x.BinaryExpr, frame: Frame) -> Any:
        # Unrolled programs have chains of thousands of levels: walk the left spine without recursion.
        spine = [expr]
        left: Expr = expr.left
        while isinstance(left, x.BinaryExpr):
            spine.append(left)
            left = left.left
        value = self.eval(left, frame)
        for node in reversed(spine):
            right = self.eval(node.right, frame)
            value = BINARY[type(node)](value, right)
            dtype = node.dtype
            if dtype.is_int_:
                value = wrap(value, dtype)
            elif dtype.is_float_:
                value = round_float(value, dtype)
        return value

    def _unary(self, expr: x.UnaryExpr, frame: Frame) -> Any:
        value = UNARY[type(expr)](self.eval(expr.operand, frame), expr.dtype)
        return normalize(value, expr.dtype)

    def _make_tuple(self, expr: x.MakeTuple, frame: Frame) -> Any:
        return tuple(self.eval(e, frame) for e in expr.elements)

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
        args = [self.eval(a, frame) for a in expr.args]
        args = [list(a) if type(a) is tuple else a for a in args]
        if not frame.in_kernel and self.graph.pending:
            for i, arg in enumerate(args):
                if type(arg) is ArrayValue and name not in _METADATA_OPS:
                    self.graph.sync(arg, for_write=i in definition.effects)
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

    def _task_invalid(self, _expr: x.Call, _frame: Frame) -> Any:
        return INVALID_TASK

    def _task_dummy(self, expr: x.Call, frame: Frame) -> Any:
        deps = self._dep_values(expr.attrs.get("manual_dep_edges", ()), frame)
        return self.graph.submit("dummy", _nothing, expr.span, [], deps, True)

    def _task_is_valid(self, expr: x.Call, frame: Frame) -> bool:
        return isinstance(self.eval(expr.args[0], frame), Task)

    # --- launches -----------------------------------------------------------------------------------------------------

    def _callee(self, op: x.Op, span: Any, frame: Frame) -> Function:
        found = self.functions.get(op.name)
        if found is None:
            raise ProgramError(f"function '{op.name}' is not in the program", span, frame.function)
        return found

    def _function_call(self, expr: x.Call, frame: Frame) -> Any:
        function = self._callee(expr.op, expr.span, frame)
        args = [self.eval(a, frame) for a in expr.args]
        if frame.in_kernel or function.func_type in _ORCHESTRATION:
            return self._unpacked(self.call_function(function, args, frame), expr.type)
        explicit = [*expr.attrs.get("manual_dep_edges", ()), *expr.attrs.get("compiler_manual_dep_edges", ())]
        core_num = expr.attrs.get("core_num")
        results, _ = self._launch(
            function,
            args,
            expr,
            frame,
            self._dep_values(explicit, frame),
            1 if core_num is None else self.eval(core_num, frame),
            expr.attrs.get("predicate"),
        )
        return self._unpacked(results, expr.type)

    def _submit(self, expr: x.Submit, frame: Frame) -> Any:
        function = self._callee(expr.op, expr.span, frame)
        args = [self.eval(a, frame) for a in expr.args]
        deps = self._dep_values((*expr.deps, *expr.attrs.get("compiler_manual_dep_edges", ())), frame)
        blocks = 1 if expr.core_num is None else self.eval(expr.core_num, frame)
        results, task = self._launch(function, args, expr, frame, deps, blocks, expr.predicate)
        if isinstance(expr.type, TupleType):
            return (*results[: len(expr.type.types) - 1], task)
        return task

    def _unpacked(self, results: list[Any], kind: Any) -> Any:
        if isinstance(kind, TupleType) or len(results) > 1:
            return tuple(results)
        return results[0] if results else None

    def _launch(
        self,
        function: Function,
        args: list[Any],
        expr: Any,
        frame: Frame,
        deps: list[Any],
        blocks: int,
        predicate: Expr | None,
    ) -> tuple[list[Any], Task]:
        """Submit a kernel; its results are values of its arguments, or fresh storage."""
        _check_blocks(blocks, expr.span, frame)
        args = self._with_omitted_outputs(function, args, frame)
        arguments = self._tagged(function, args, expr)
        results: list[Any] = []
        label = f"{function.name}#{self.graph.submitted}"

        def run() -> None:
            values: list[Any] = []
            for block in range(blocks):
                values = self.run_kernel(function, args, block, blocks, label)
            if not results:
                results.extend(values)
            else:
                for made, value in zip(results, values, strict=True):
                    _copy_into(made, value)

        # Where results can't be known before the kernel has run, all that is submitted runs now.
        predicted = True
        if self.graph.deferred:
            known = self._predicted_results(function, args)
            predicted = known is not None
            if known is None:
                self.graph.finish()
            else:
                results.extend(known)
        task = self.graph.submit(
            function.name, run, expr.span, arguments, deps, frame.manual, self._predicate(predicate, frame)
        )
        if not predicted:
            self.graph.finish()
        if not results and task.done and predicate is not None:
            # The predicate was false: the task did nothing, its results are the outputs as they were.
            results.extend(self._predicted_results(function, args) or [])
        for value in results:
            if type(value) is ArrayValue and value.buffer.owner is None and not value.buffer.external:
                value.buffer.owner = task
        return results, task

    def _with_omitted_outputs(self, function: Function, args: list[Any], frame: Frame) -> list[Any]:
        """Trailing outputs that a submit leaves out are allocated."""
        missing = function.params[len(args) :]
        if not missing:
            return args
        env = self.bind_prefix(function, args)
        made = []
        for param in missing:
            kind = param.type
            if not isinstance(kind, TensorType):
                raise ProgramError(
                    f"argument '{param.name_hint}' of '{function.name}' is missing", function.span, frame.function
                )
            scratch = Frame(function.name, env, True, EvalContext())
            shape = [self.eval(e, scratch) for e in kind.shape]
            made.append(empty(shape, numpy_dtype(kind.dtype), param.name_hint))
        return [*args, *made]

    def bind_prefix(self, function: Function, args: list[Any]) -> dict[Var, Any]:
        """Values of the leading parameters and of the symbols that they bind."""
        env: dict[Var, Any] = {}
        for param, value in zip(function.params, args, strict=False):
            if isinstance(param.type, TensorType):
                self._bind_extents(function, param, param.type, value, env)
            env[param] = value
        return env

    def _tagged(self, function: Function, args: list[Any], expr: Any) -> list[tuple[ArrayValue, Tag]]:
        directions = expr.arg_directions
        overrides = expr.attrs.get("arg_direction_overrides", ())
        tagged = []
        for i, value in enumerate(args):
            if type(value) is not ArrayValue:
                continue
            if i in overrides:
                tag = Tag.NO_DEP
            elif i < len(directions):
                tag = _TAG_OF_DIRECTION.get(directions[i], Tag.INPUT)
            else:
                tag = _TAG_OF_PARAM[function.param_directions[i]]
            tagged.append((value, tag))
        return tagged

    def _predicted_results(self, function: Function, args: list[Any]) -> list[Any] | None:
        """Results of a deferred kernel: arguments that it returns, fresh storage for others; None if unknown."""
        from ..analysis.lineage import return_lineage, returns_views

        lineage = return_lineage(function)
        if lineage is None or returns_views(function):
            return None
        env = self.bind_prefix(function, args)
        results = []
        for i, source in enumerate(lineage):
            kind = function.return_types[i] if i < len(function.return_types) else None
            if source is not None:
                results.append(args[source])
            elif isinstance(kind, TensorType):
                scratch = Frame(function.name, env, True, EvalContext())
                shape = [self.eval(e, scratch) for e in kind.shape]
                results.append(empty(shape, numpy_dtype(kind.dtype), function.name))
            else:
                return None
        return results

    def _predicate(self, predicate: Expr | None, frame: Frame) -> Callable[[], bool] | None:
        """Evaluated when the task would start, on the tensor's contents then; scalars are those of the submit."""
        if predicate is None:
            return None
        inner = Frame(frame.function, dict(frame.env), True, EvalContext())
        return lambda: bool(self.eval(predicate, inner))

    def _dep_values(self, deps: Sequence[Expr], frame: Frame) -> list[Any]:
        """Tasks behind dependency expressions: ids, arrays of ids; null ids are no dependency."""
        found: list[Any] = []
        for dep in deps:
            value = self.eval(dep, frame)
            for item in value if isinstance(value, list) else (value,):
                if isinstance(item, Task):
                    found.append(item)
        return found


def _check_blocks(blocks: int, span: Any, frame: Frame) -> None:
    if blocks <= 0:
        raise ProgramError(f"core_num must be positive, got {blocks}", span, frame.function)


def _nothing() -> None:
    """Body of a dummy task."""


def _copy_into(target: Any, value: Any) -> None:
    """Fill storage that was handed out before its value was computed."""
    if type(target) is not ArrayValue or type(value) is not ArrayValue or target is value:
        return
    if target.buffer is value.buffer:
        return
    target.valid = value.valid
    target.write((...,), value.data, value.mask)


_METADATA_OPS = frozenset(
    (
        "tensor.slice",
        "tensor.reshape",
        "tensor.transpose",
        "tensor.view",
        "tensor.reinterpret_view",
        "tensor.set_validshape",
        "tensor.dim",
        "tensor.create",
    )
)

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

__all__ = ["ArrayType", "Buffer", "Frame", "Interpreter", "TileType", "np"]
