"""Kernel calls and submits: each becomes a task of the graph."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..analysis.access import box_at
from ..analysis.lineage import return_lineage, returns_views
from ..analysis.overwrites import narrowing_of
from ..analysis.task_marks import EDGES
from ..ir import expr as x
from ..ir.call_types import holds_one_tuple
from ..ir.enums import ArgDirection, FunctionType, ParamDirection
from ..ir.expr import Expr
from ..ir.program import Function, Program
from ..ir.type import TensorType, TupleType
from ..ops.numpy_types import numpy_dtype
from ..ops.values import ArrayValue, EvalContext, empty
from .activations import Activations
from .derived_edges import DerivedEdges
from .errors import ProgramError
from .frames import Frame
from .graph import Tag, Task

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


class Launches(Activations):
    """Tasks that a program launches by calling a kernel."""

    derived: DerivedEdges | None
    program: Program
    by_parts: bool

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
        core_num = expr.attrs.get("core_num")
        results, _ = self._launch(
            function,
            args,
            expr,
            frame,
            self._dep_values(expr.attrs.get("manual_dep_edges", ()), frame),
            1 if core_num is None else self.eval(core_num, frame),
            expr.attrs.get("predicate"),
        )
        return self._unpacked(results, expr.type)

    def _submit(self, expr: x.Submit, frame: Frame) -> Any:
        function = self._callee(expr.op, expr.span, frame)
        args = [self.eval(a, frame) for a in expr.args]
        deps = self._dep_values(expr.deps, frame)
        blocks = 1 if expr.core_num is None else self.eval(expr.core_num, frame)
        results, task = self._launch(function, args, expr, frame, deps, blocks, expr.predicate)
        if isinstance(expr.type, TupleType):
            if holds_one_tuple(expr.type):
                return tuple(results), task
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
        check_blocks(blocks, expr.span, frame)
        args = self._with_omitted_outputs(function, args, frame)
        arguments = self._tagged(function, args, expr, frame, blocks)
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
                    copy_into(made, value)

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
            function.name,
            run,
            expr.span,
            arguments,
            deps,
            frame.manual,
            self._predicate(predicate, frame),
            self._derived_deps(expr, frame),
            blocks,
        )
        if self.derived is not None:
            self.derived.launched = task
        if not predicted:
            self.graph.finish()
        if not results and task.done and predicate is not None:
            # The predicate was false: the task did nothing, its results are the outputs as they were.
            known = self._predicted_results(function, args)
            if known is None:
                raise ProgramError(
                    f"'{function.name}' was skipped by its predicate, and what it returns is not one of its arguments",
                    expr.span,
                    frame.function,
                )
            results.extend(known)
        if self.graph.ordered:
            given = {id(value.buffer) for value, tag in arguments if tag is not Tag.OUTPUT}
            self.graph.own(task, [v for v in results if isinstance(v, ArrayValue) and id(v.buffer) not in given])
        return results, task

    def _derived_deps(self, expr: Any, frame: Frame) -> list[Any]:
        """Tasks behind the edges that the compiler derived: these may name tensors, too."""
        edges = expr.attrs.get(EDGES, ())
        if not edges or self.derived is None:
            return []
        return [*self._dep_values(edges, frame), *self.derived.of(edges)]

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

    def _tagged(
        self, function: Function, args: list[Any], expr: Any, frame: Frame, blocks: int
    ) -> list[tuple[ArrayValue, Tag]]:
        """How each tensor takes part in the ordering: a view of the part that the kernel touches, where that is known.

        (The kernel itself gets what was passed.)
        """
        directions = expr.arg_directions
        overrides = expr.attrs.get("arg_direction_overrides", ())
        narrow = self.by_parts and bool(directions) and self.graph.ordered
        parts = self._touched_parts(function, args, frame, blocks) if narrow else {}
        tagged = []
        for i, value in enumerate(args):
            if not isinstance(value, ArrayValue):
                continue
            if i in overrides:
                tag = Tag.NO_DEP
            elif i < len(directions):
                tag = _TAG_OF_DIRECTION.get(directions[i], Tag.INPUT)
            elif directions:
                tag = Tag.OUTPUT  # it is left out at the call: the runtime allocates it for this task
            else:
                tag = _TAG_OF_PARAM[function.param_directions[i]]
            tagged.append((parts.get(i, value), tag))
        return tagged

    def _touched_parts(self, function: Function, args: list[Any], frame: Frame, blocks: int) -> dict[int, ArrayValue]:
        """Views of the parts of its arguments that a launch touches; none where orders between tasks that touch
        different parts may be what makes the program right (see :mod:`pypto.analysis.overwrites`)."""
        narrowing = narrowing_of(self.program)
        caller = self.functions.get(frame.function)
        footprint = narrowing.footprints.of(function)
        if footprint is None or caller is None or not narrowing.allows(caller):
            return {}
        env = self.bind(function, args)
        found = {}
        for i, value in enumerate(args):
            access = footprint[i]
            if access is None or type(value) is not ArrayValue:
                continue
            box = box_at(access, env.get, blocks, value.shape)
            if box is not None:
                found[i] = value.view(value.data[tuple(slice(low, max(low, high)) for low, high in box)])
        return found

    def _predicted_results(self, function: Function, args: list[Any]) -> list[Any] | None:
        """Results of a deferred kernel: arguments that it returns, fresh storage for others; None if unknown."""
        lineage = return_lineage(function)
        if lineage is None or returns_views(function):
            return None
        env = self.bind_prefix(function, args)
        results = []
        for i, source in enumerate(lineage):
            kind = function.return_types[i] if i < len(function.return_types) else None
            if source is not None:
                results.append(env[function.params[source]])
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


def check_blocks(blocks: int, span: Any, frame: Frame) -> None:
    if blocks <= 0:
        raise ProgramError(f"core_num must be positive, got {blocks}", span, frame.function)


def copy_into(target: Any, value: Any) -> None:
    """Fill storage that was handed out before its value was computed."""
    if type(target) is not ArrayValue or type(value) is not ArrayValue or target is value:
        return
    if target.buffer is value.buffer:
        return
    target.valid = value.valid
    target.write((...,), value.data, value.mask)
