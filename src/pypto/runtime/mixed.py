"""Mixed kernels: the cube and vector parts of a group run together and exchange tiles through queues."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

from ..ir import stmt as st
from ..ir.enums import FunctionType
from ..ir.expr import Call, GlobalVar, Submit
from ..ir.program import Function
from ..ir.tree import walk

_PIPE_PREFIXES = ("tile.tpush_", "tile.tpop_")


def uses_pipes(function: Function, functions: Mapping[str, Function]) -> bool:
    """Whether a group's members exchange data, so that they must run at the same time."""
    for node in walk(function.body):
        if isinstance(node, (Call, Submit)) and isinstance(node.op, GlobalVar):
            callee = functions.get(node.op.name)
            if callee is not None and any(
                isinstance(n, Call) and n.op.name.startswith(_PIPE_PREFIXES) for n in walk(callee.body)
            ):
                return True
    return False


def run_together(interpreter: Any, function: Function, frame: Any) -> list[Any]:
    """Run the member calls of a group in threads of their own; other statements run in order around them.

    A vector member runs once a lane where the group says so. The first error of any member is raised.
    """
    from ..ops.pipe import PipeSet

    pipes = PipeSet()
    threads: list[threading.Thread] = []
    failures: list[BaseException] = []
    stmts = list(function.body.stmts) if isinstance(function.body, st.SeqStmts) else [function.body]
    for stmt in stmts:
        call = _member_call(stmt)
        if call is None:
            _join(threads, failures)
            interpreter.exec(stmt, frame)
            continue
        callee = interpreter.functions[call.op.name]
        args = [interpreter.eval(a, frame) for a in call.args]
        lanes = _lanes(function, callee)
        results: dict[int, Any] = {}
        for lane in range(lanes):
            threads.append(_start(interpreter, callee, args, frame, pipes, lane, results, failures))
        if isinstance(stmt, st.AssignStmt):
            _join(threads, failures)
            values = results.get(0, [])
            frame.env[stmt.var] = values[0] if len(values) == 1 else tuple(values)
    _join(threads, failures)
    return list(frame.result)


def _lanes(group: Function, callee: Function) -> int:
    dual = group.attrs.get("dual_aiv_dispatch") or callee.split is not None or callee.attrs.get("split_aiv")
    return 2 if callee.func_type is FunctionType.AIV and dual else 1


def _member_call(stmt: st.Stmt) -> Any:
    value = stmt.expr if isinstance(stmt, st.EvalStmt) else stmt.value if isinstance(stmt, st.AssignStmt) else None
    return value if isinstance(value, Call) and isinstance(value.op, GlobalVar) else None


def _start(
    interpreter: Any,
    callee: Function,
    args: list[Any],
    frame: Any,
    pipes: Any,
    lane: int,
    results: dict[int, Any],
    failures: list[BaseException],
) -> threading.Thread:
    def work() -> None:
        try:
            results[lane] = interpreter.run_kernel(
                callee, args, frame.ctx.block_idx, frame.ctx.block_num, frame.task, pipes, lane
            )
        except BaseException as error:  # raised again in the thread that waits
            failures.append(error)
            pipes.abort()

    thread = threading.Thread(target=work, name=f"{callee.name}[{lane}]", daemon=True)
    thread.start()
    return thread


def _join(threads: list[threading.Thread], failures: list[BaseException]) -> None:
    for thread in threads:
        thread.join()
    threads.clear()
    if failures:
        raise failures[0]
