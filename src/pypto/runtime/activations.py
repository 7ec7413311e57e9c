"""Functions at run time: parameters get their values, bodies run, and what reaches the caller is defined."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .._lazy import np
from ..ir import expr as x
from ..ir.enums import FunctionType, is_incore_type
from ..ir.expr import Var
from ..ir.program import Function
from ..ir.type import ScalarType, TensorType
from ..ops.numpy_types import numpy_dtype
from ..ops.values import ArrayValue, EvalContext
from .errors import ProgramError
from .frames import Frame, Machine
from .graph import INVALID_TASK, Task
from .mixed import run_lanes, run_together, runs_by_lane, uses_pipes
from .scalars import normalize


class Activations(Machine):
    """Calls of functions and kernels."""

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
        return self._run_body(function, frame)

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
        return self._run_body(function, frame)

    def _run_body(self, function: Function, frame: Frame) -> list[Any]:
        """Run a body in its frame: the members of a group together, a halved kernel once a lane, others as they are."""
        if function.func_type in (FunctionType.Group, FunctionType.Spmd) and uses_pipes(function, self.functions):
            return run_together(self, function, frame)
        if frame.ctx.pipes is None and runs_by_lane(function):
            run_lanes(self, function.body, 2, frame)
        else:
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
                value = self._bound_tensor(function, param, kind, value, env)
            elif isinstance(kind, ScalarType):
                value = normalize(value, kind.dtype) if not isinstance(value, (Task, type(INVALID_TASK))) else value
            env[param] = value
        return env

    def _bound_tensor(
        self, function: Function, param: Var, kind: TensorType, value: Any, env: dict[Var, Any]
    ) -> ArrayValue:
        """A tensor argument as the parameter sees it. One with more dimensions may lack them if they are leading and
        have extent 1: a page of a volume is a matrix."""
        if not isinstance(value, ArrayValue):
            raise ProgramError(f"argument '{param.name_hint}' of '{function.name}' is not a tensor", function.span)
        more = len(value.shape) - len(kind.shape)
        if more > 0 and all(n == 1 for n in value.shape[:more]):
            value = value.view(value.data[(0,) * more], value.valid[more:])
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
        return value

    def bind_prefix(self, function: Function, args: list[Any]) -> dict[Var, Any]:
        """Values of the leading parameters and of the symbols that they bind."""
        env: dict[Var, Any] = {}
        for param, value in zip(function.params, args, strict=False):
            if isinstance(param.type, TensorType):
                value = self._bound_tensor(function, param, param.type, value, env)
            env[param] = value
        return env

    # --- what reaches the caller --------------------------------------------------------------------------------------

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
