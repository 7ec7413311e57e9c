"""What the parts of the interpreter share: activations, and the machine that they are parts of."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..ir import stmt as st
from ..ir.expr import Expr, Var
from ..ir.program import Function
from ..ops.values import EvalContext
from .graph import TaskGraph

# How a statement left: on to the next one is None.
RETURN, BREAK, CONTINUE = object(), object(), object()


class Frame:
    """One activation of a function, or of a kernel scope: values by variable, and where it runs."""

    __slots__ = ("ctx", "env", "escapes", "function", "in_kernel", "manual", "result", "task", "yielded")

    def __init__(self, function: str, env: dict[Var, Any], in_kernel: bool, ctx: EvalContext) -> None:
        self.function = function
        self.env = env
        self.in_kernel = in_kernel
        self.ctx = ctx
        self.manual = False
        self.yielded: list[Any] | None = None
        self.escapes: dict[st.Stmt, list[Expr]] = {}  # what the innermost loop goes on with after each of its escapes
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


class Machine:
    """What each part of the interpreter may use of the whole."""

    functions: dict[str, Function]
    graph: TaskGraph

    def exec(self, stmt: st.Stmt, frame: Frame) -> Any:
        """Run a statement."""
        raise NotImplementedError

    def eval(self, expr: Expr, frame: Frame) -> Any:
        """The value of an expression."""
        raise NotImplementedError

    def call_function(self, function: Function, args: Sequence[Any], caller: Frame | None) -> list[Any]:
        """Run a function's body in its caller's role."""
        raise NotImplementedError

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
        raise NotImplementedError
