"""Mixed kernels: the cube and vector parts of a group run together and exchange tiles through queues."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..ir import stmt as st
from ..ir.enums import FunctionType
from ..ir.expr import Call, GlobalVar, Submit
from ..ir.program import Function
from ..ir.tree import walk
from ..ops.pipe_set import PipeSet

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
    stmts = list(function.body.stmts) if isinstance(function.body, st.SeqStmts) else [function.body]
    members: list[tuple[st.Stmt, Any]] = []
    for stmt in stmts:
        call = _member_call(stmt)
        if call is not None:
            members.append((stmt, call))
            continue
        _run_members(interpreter, function, members, frame)
        members.clear()
        interpreter.exec(stmt, frame)
    _run_members(interpreter, function, members, frame)
    return list(frame.result)


def _run_members(interpreter: Any, group: Function, members: list[tuple[st.Stmt, Any]], frame: Any) -> None:
    plan = [(stmt, call, interpreter.functions[call.op.name]) for stmt, call in members]
    lanes = [_lanes(group, callee) for _, _, callee in plan]
    pipes = PipeSet(lanes=max(lanes, default=1), parties=sum(lanes))
    jobs: list[Callable[[], None]] = []
    results: list[dict[int, Any]] = []
    for (_, call, callee), count in zip(plan, lanes, strict=True):
        args = [interpreter.eval(a, frame) for a in call.args]
        values: dict[int, Any] = {}
        results.append(values)
        jobs += [_member_job(interpreter, callee, args, frame, pipes, lane, values) for lane in range(count)]
    run_jobs(jobs, pipes)
    for (stmt, _, _), values in zip(plan, results, strict=True):
        if isinstance(stmt, st.AssignStmt):
            found = values.get(0, [])
            frame.env[stmt.var] = found[0] if len(found) == 1 else tuple(found)


def _member_job(
    interpreter: Any, callee: Function, args: list[Any], frame: Any, pipes: PipeSet, lane: int, values: dict[int, Any]
) -> Callable[[], None]:
    def job() -> None:
        values[lane] = interpreter.run_kernel(
            callee, args, frame.ctx.block_idx, frame.ctx.block_num, frame.task, pipes, lane
        )

    return job


def _lanes(group: Function, callee: Function) -> int:
    dual = group.attrs.get("dual_aiv_dispatch") or callee.split is not None or callee.attrs.get("split_aiv")
    return 2 if callee.func_type is FunctionType.AIV and dual else 1


def _member_call(stmt: st.Stmt) -> Any:
    value = stmt.expr if isinstance(stmt, st.EvalStmt) else stmt.value if isinstance(stmt, st.AssignStmt) else None
    return value if isinstance(value, Call) and isinstance(value.op, GlobalVar) else None


def run_jobs(jobs: Sequence[Callable[[], None]], pipes: PipeSet) -> None:
    """Run jobs in threads of their own that meet in ``pipes``; raise the first error after all have ended."""
    failures: list[BaseException] = []

    def work(job: Callable[[], None]) -> None:
        try:
            job()
        except BaseException as error:  # raised again below, in the thread that waits
            failures.append(error)
            pipes.abort(str(error))
        finally:
            pipes.leave()

    threads = [threading.Thread(target=work, args=(job,), daemon=True) for job in jobs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]


def runs_by_lane(function: Function) -> bool:
    """Whether the whole body is written for one vector lane: halved, and not yet taken apart into two functions."""
    return (
        function.func_type is FunctionType.InCore
        and bool(function.attrs.get("split_aiv"))
        and not any(isinstance(node, st.SplitAivScopeStmt) for node in walk(function.body))
    )


def run_lanes(interpreter: Any, body: st.Stmt, count: int, frame: Any) -> Any:
    """Run a region once for each vector lane, together: a gather joins what the lanes computed.

    Names leak from lane 0; after a gather both lanes hold the same value.
    """
    pipes = PipeSet(lanes=count, parties=count)
    frames = [frame.lane(i, pipes) for i in range(count)]
    signals: list[Any] = [None] * count

    def lane_job(lane: int) -> Callable[[], None]:
        def job() -> None:
            signals[lane] = interpreter.exec(body, frames[lane])

        return job

    run_jobs([lane_job(i) for i in range(count)], pipes)
    frame.env.update(frames[0].env)
    frame.result = frames[0].result
    return signals[0]
