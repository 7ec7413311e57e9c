"""Scopes of a program: kernel scopes become tasks, runtime scopes say how tasks are ordered."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..ir import stmt as st
from ..ir.expr import Var
from ..ir.type import ShapedType
from ..ops.numpy_types import numpy_dtype
from ..ops.values import ArrayValue, EvalContext, empty
from .errors import ProgramError
from .frames import BREAK, CONTINUE, RETURN, Frame
from .graph import Tag
from .launches import Launches, check_blocks, copy_into
from .mixed import run_lanes
from .scope_tasks import ScopeSummary, exposed_uses, summarize


class KernelScopes(Launches):
    """Tasks that a program launches by opening a kernel scope."""

    _summaries: dict[st.Stmt, ScopeSummary]
    _exposures: dict[str, frozenset[Var]]

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
        return run_lanes(self, stmt.body, stmt.count, frame)

    def _incore_scope(self, stmt: st.InCoreScopeStmt, frame: Frame) -> Any:
        if frame.in_kernel:
            return self.exec(stmt.body, frame)
        return self._scope_task(stmt, stmt.body, 1, frame)

    def _spmd_scope(self, stmt: st.SpmdScopeStmt, frame: Frame) -> Any:
        blocks = self.eval(stmt.core_num, frame)
        check_blocks(blocks, stmt.span, frame)
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
        label = f"{name}#{self.graph.submitted}"
        summary = self._summary(stmt, body)
        deps = self._dep_values(attrs.get("manual_dep_edges", ()), frame)
        overrides = {id(v) for v in attrs.get("arg_direction_overrides_vars", ())}
        arguments = [
            (frame.env[var], Tag.NO_DEP if id(var) in overrides else tag)
            for var, tag in summary.accesses.items()
            if isinstance(frame.env.get(var), ArrayValue)
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
        escape: Any = None  # how the body left for a loop around the scope, and what that goes on with
        carried: list[Any] | None = None

        def run() -> None:
            nonlocal escape, carried
            ran.append(None)
            for block in range(blocks):
                ctx = EvalContext()
                ctx.block_idx, ctx.block_num = block, blocks
                inner = Frame(frame.function, env if blocks == 1 else dict(env), True, ctx)
                inner.task = label
                inner.escapes = frame.escapes
                signal = self.exec(body, inner)
                if signal is BREAK or signal is CONTINUE:
                    escape, carried = signal, inner.yielded
                elif signal is RETURN:  # of the function around the scope
                    escape, frame.result = signal, inner.result
                if blocks > 1:
                    env.update(inner.env)
            for var, target in (targets or {}).items():
                copy_into(target, env.get(var))

        task = self.graph.submit(name, run, stmt.span, arguments, deps, frame.manual, predicate, (), blocks)
        if targets is not None:
            self.graph.own(task, targets.values())
        else:
            self.graph.finish()
            if ran and self.graph.ordered:
                self.graph.own(task, _own_values(summary, env))
            if not ran:  # skipped by its predicate: the outer tensors are as they were, under the names it gives them
                env.update({var: env[root] for var, root in summary.leaks.items() if root in env})
        task_var = attrs.get("task_id_var")
        if task_var is not None:
            frame.env[task_var] = task
        if escape is not None and carried is not None:
            frame.yielded = carried
        return escape

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
            before = frame.env.get(var) if var in summary.conditional else None
            if root is not None:
                value = frame.env.get(root)
                if type(value) is not ArrayValue or (before is not None and before is not value):
                    return None
                found[var] = value
                continue
            if before is not None:
                return None
            kind = var.type
            assert isinstance(kind, ShapedType)
            try:
                shape = [self.eval(e, frame) for e in kind.shape]
            except ProgramError:
                return None
            found[var] = empty(shape, numpy_dtype(kind.dtype), var.name_hint)
        return found


def _own_values(summary: ScopeSummary, env: Mapping[Var, Any]) -> list[ArrayValue]:
    """What a scope that has run computed itself and leaks."""
    if not summary.known:
        return []
    found = [env.get(var) for var, root in summary.leaks.items() if root is None and var not in summary.conditional]
    return [value for value in found if isinstance(value, ArrayValue)]
