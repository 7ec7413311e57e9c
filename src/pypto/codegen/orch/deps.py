"""What a task waits for: task ids, arrays of them, barriers.

A task id is a C++ variable like any other: it may be named wherever the program may name it, since a declaration moves
to the block that holds all mentions (see :mod:`..text`). One that was moved starts as the null id, so it is guarded.
Edges that the compiler derived may name tensors; those stand for the task that wrote the tensor last (see
:mod:`.edges`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...diag.errors import InternalError
from ...ir.dtype import DataType
from ...ir.expr import Call, Expr, TupleGetItemExpr, Var
from ...ir.names import base_name
from ...ir.type import ArrayType, ScalarType
from ..errors import CodegenError
from ..runtime_names import INVALID_ID
from ..text import Local
from .base import Member
from .tensors import Tensors

UNROLLED = 16  # slots of an array that are printed one by one, at most
_ADVICE = (
    "launch both tasks in one scope, or carry the id out: through a loop carry, or in an array of task ids that is "
    "made outside"
)


class Dependencies(Tensors):
    """Prints dependency blocks."""

    def dependency_block(self, params: str, user: Sequence[Expr], derived: Sequence[Any], place: Any) -> str | None:
        """The ids that a task waits for, given to ``params``; the name of their count, None if there are none."""
        entries: dict[Any, Any] = {}
        for edge in user:
            found = self._user_edge(edge, place)
            if found is not None:
                entries.setdefault(_key(found), found)
        for found in derived:
            entries.setdefault(_key(found), found)
        if not entries:
            return None
        sizes = [e.extent or 1 if type(e) is Local else 1 for e in entries.values()]
        ids, count = self.names.helper(f"{params}_deps"), self.names.helper(f"{params}_deps_count")
        self.out.line(f"PTO2TaskId {ids}[{sum(sizes)}];")
        self.out.line(f"uint32_t {count} = 0;")
        for entry in entries.values():
            self._entry(entry, f"{ids}[{count}++]")
        self.out.line(f"{params}.set_dependencies({ids}, {count});")
        return count

    def _entry(self, entry: Any, slot: str) -> None:
        line = self.out.line
        if type(entry) is Member:
            line(f"{slot} = {self.out.mention(entry.outputs)}{entry.call};")
            return
        if type(entry) is str:
            line(f"if ({entry}.is_valid()) {slot} = {entry};")
            return
        name = self.out.mention(entry)
        if entry.extent is None:
            # A moved id may not have been given a task.
            guard, plain = f"if ({name}.is_valid()) {slot} = {name};", f"{slot} = {name};"
            self.out.later(lambda: [plain if entry.sure and not entry.moved else guard])
        elif entry.extent <= UNROLLED:
            for i in range(entry.extent):
                line(f"if ({name}[{i}].is_valid()) {slot} = {name}[{i}];")
        else:
            each = f"{name}[__dep_i]"
            loop = f"for (int64_t __dep_i = 0; __dep_i < {entry.extent}; ++__dep_i)"
            line(f"{loop} if ({each}.is_valid()) {slot} = {each};")

    def _user_edge(self, edge: Expr, place: Any) -> Any:
        """The C++ variable of a dependency that the user wrote; None for the null id."""
        value = self.value(edge)
        kind = edge.type
        if not (isinstance(kind, (ScalarType, ArrayType)) and kind.dtype is DataType.TASK_ID):
            raise InternalError(f"a dependency of type {kind} is neither a task id nor an array of them [{place}]")
        if value is None and type(edge) is Call:
            return self.text(edge) if edge.op.name != "system.task_invalid" else None
        if value == INVALID_ID:
            return None
        if value is None or not self.exists(value):
            raise CodegenError(
                f"Task dependency deps=[{shown(edge)}] cannot be honored: the task was launched in a scope that has "
                f"already closed (a loop body or branch whose names end with it)",
                place,
                labels=((edge.span, "the id"),),
                hint=_ADVICE,
            )
        return value

    def exists(self, value: Any) -> bool:
        """Whether the part of the program that a variable belongs to is still open."""
        local = value.outputs if type(value) is Member else value
        return type(local) is not Local or local.region is None or not local.region.closed

    def alive_id(self, e: Expr, what: str) -> None:
        """Refuse a task id whose launch no longer exists here."""
        kind = e.type
        if not (
            isinstance(kind, ScalarType) and kind.dtype is DataType.TASK_ID and isinstance(e, (Var, TupleGetItemExpr))
        ):
            return
        value = self.value(e)
        if value is None or not self.exists(value):
            raise CodegenError(
                f"the task id '{shown(e)}' {what}, which cannot be honored: the task was launched in a scope that has "
                "already closed",
                self.out.place,
                labels=((e.span, "the launch"),),
                hint=_ADVICE,
            )

    # --- barriers -----------------------------------------------------------------------------------------------------

    _barriers = 0

    def barrier(self, comment: str, name: str, var: Var | None, user: Sequence[Expr], derived: Sequence[Any]) -> Local:
        """A task that does nothing but wait; gives its id. ``name``: of its variables, with ``{}`` for the number."""
        number = self._barriers
        self._barriers += 1
        stem = name.format(number)
        params, outs = self.names.helper(f"params_{stem}"), self.names.helper(f"{stem}_outs")
        self.out.line()
        self.out.line(f"// {comment.format(number)}")
        self.out.line(f"{self.runtime.task_args} {params};")
        count = self.dependency_block(params, user, derived, self.out.place)
        tid = self.name_of(var) if var is not None else self.names.helper(f"{stem}_tid")
        submit = f"TaskOutputTensors {outs} = rt_submit_dummy_task({params});"
        if count is None:
            self.out.line(submit)
            made = self.declare(var, "PTO2TaskId", tid, f"{outs}.task_id()", f" = {INVALID_ID}")
            made.sure = True
            return made
        made = self.declare(var, "PTO2TaskId", tid, INVALID_ID, f" = {INVALID_ID}")
        with self.out.opened(f"if ({count} > 0) {{"):
            self.out.line(submit)
            self.out.line(f"{self.out.mention(made)} = {outs}.task_id();")
        return made


def shown(e: Expr) -> str:
    """What the user calls a variable."""
    return base_name(e.name_hint) if isinstance(e, Var) else str(e)


def _key(entry: Any) -> Any:
    return (entry.outputs, entry.call) if type(entry) is Member else entry


__all__ = ["UNROLLED", "Dependencies", "shown"]
