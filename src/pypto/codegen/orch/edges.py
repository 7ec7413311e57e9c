"""Edges that the compiler derived: which C++ variable holds the id of the task that an edge means.

An edge names a task id, or a tensor: the result of a launch, an argument that a launch writes, the result of a loop or
branch. A tensor stands for the tasks that made it what it is, so the launches that are named this way keep their ids.
Everything goes by the variable, never by its name.

=================  ====================================================================================================
result, argument   ``PTO2TaskId <base>_tid`` behind the launch, one for each launch
result of a loop   the ids of all iterations: an array if the number of trips is known, else a vector, which one barrier
                   behind the loop stands for
iter_arg           the id of the iteration before
result of an if    the id of the branch that ran
=================  ====================================================================================================
"""

from __future__ import annotations

from typing import Any

from ...analysis.constants import static_trip_count
from ...analysis.task_marks import EDGES
from ...ir.dtype import DataType
from ...ir.enums import ParamDirection
from ...ir.expr import Call, ConstInt, Expr, Submit, TupleGetItemExpr, Var
from ...ir.names import base_name
from ...ir.program import Function, Program
from ...ir.stmt import AssignStmt, EvalStmt, ForStmt, IfStmt, WhileStmt
from ...ir.tree import get_last_yield_stmt, stmt_children, walk_stmts
from ...ir.type import ArrayType, ScalarType
from ...verify.call_sites import call_sites
from ..runtime_names import INVALID_ID, RuntimeNames
from ..text import Group, Local
from .base import Member
from .deps import Dependencies


class Collection:
    """The ids that a loop collects for one of its results or iter_args."""

    __slots__ = ("ids", "name", "place", "previous", "slot", "wants_all")

    def __init__(self, slot: int, name: str, wants_all: bool, previous: Local | None) -> None:
        self.slot = slot
        self.name = name
        self.wants_all = wants_all  # somebody behind the loop waits for all iterations
        self.previous = previous  # the id of the iteration before, for those in the loop
        self.place: Group | None = None  # where an iteration ends
        self.ids: list[Any] = []


class Edges(Dependencies):
    """Keeps the ids that derived edges need."""

    def __init__(self, program: Program, function: Function, runtime: RuntimeNames, launch_width: str) -> None:
        super().__init__(program, function, runtime, launch_width)
        self._wanted = _wanted(function)
        self._ids: dict[Var, list[Any]] = {}  # variable -> C++ variables that hold ids
        self._depth_of: dict[Var, int] = {}
        self._waits: dict[Any, dict[Var, int]] = {}  # loop -> variable -> launches in the loop that wait for it
        self._rewritten: dict[Any, set[Var]] = {}  # loop -> variables that launches in the loop write
        if self._wanted:
            self._count_waits(function.body)

    def _count_waits(self, stmt: Any) -> tuple[dict[Var, int], set[Var]]:
        """The waits of all launches in a statement, by variable, and what they write; noted for each loop."""
        waits: dict[Var, int] = {}
        written: set[Var] = set()
        call = stmt.value if type(stmt) is AssignStmt else stmt.expr if type(stmt) is EvalStmt else None
        if isinstance(call, (Call, Submit)):
            for edge in call.attrs.get(EDGES, ()):
                waits[edge] = 1
            written.update(self._named(None, call))
            return waits, written
        for child in stmt_children(stmt):
            inner, changed = self._count_waits(child)
            written |= changed
            for var, count in inner.items():
                waits[var] = waits.get(var, 0) + count
        if type(stmt) in (ForStmt, WhileStmt):
            trips = static_trip_count(stmt.start, stmt.stop, stmt.step) if type(stmt) is ForStmt else None
            waits = {var: count * (1 if trips is None else trips) for var, count in waits.items()}
            self._waits[stmt] = waits
            self._rewritten[stmt] = {*written, *stmt.iter_args}
        return waits, written

    # --- launches -----------------------------------------------------------------------------------------------------

    def is_edge(self, var: Var | None, call: Any) -> bool:
        """Whether the id of a launch is needed by a derived edge."""
        return bool(self._wanted) and bool(self._named(var, call))

    def capture(self, var: Var | None, call: Any, outputs: Local) -> None:
        """Bind the id of a launch that derived edges name."""
        names = self._named(var, call) if self._wanted else []
        if not names:
            return
        name = self.names.helper(f"{base_name(names[0].name_hint)}_tid")
        tid = self.declare(None, "PTO2TaskId", name, f"{self.out.mention(outputs)}.task_id()", f" = {INVALID_ID}")
        tid.sure = True
        for named in names:
            # What a launch in a branch or loop wrote does not replace what was launched before that.
            earlier = self._ids.get(named, []) if self._depth_of.get(named, 0) < self.region.depth else []
            self._ids[named] = [*earlier, tid] if named is not var else [tid]
            self._depth_of.setdefault(named, self.region.depth)

    def _named(self, var: Var | None, call: Any) -> list[Var]:
        """The variables that stand for a launch in edges: its result, and what it writes, but for what another launch
        has given as its result."""
        found = [var] if var is not None and var in self._wanted else []
        for i, arg in enumerate(call.args):
            if isinstance(arg, Var) and arg in self._wanted and arg is not var:
                if var is not None and arg in self._ids:
                    continue
                if self.callees.direction(call, i) is not ParamDirection.In:
                    found.append(arg)
        return found

    def note_copy(self, var: Var, source: Expr) -> None:
        """A variable that is another name of ``source``, or of an element of it."""
        if var in self._wanted:
            root = source.tuple if type(source) is TupleGetItemExpr else source
            if isinstance(root, Var) and root in self._ids:
                self._ids[var] = self._ids[root]

    def derived_ids(self, edges: Any) -> list[Any]:
        """The C++ variables of derived edges; an edge to nothing that exists is left to the runtime's own tracking."""
        return list(dict.fromkeys(found for edge in edges for found in self._ids_of(edge)))

    def _ids_of(self, e: Expr) -> list[Any]:
        if isinstance(e, Var) and e in self._ids:
            return self._ids[e]
        kind = e.type
        if isinstance(kind, (ScalarType, ArrayType)) and kind.dtype is DataType.TASK_ID:
            value = self.value(e)
            if type(value) in (Local, Member):
                return [value]
        return []

    # --- loops --------------------------------------------------------------------------------------------------------

    def open_collections(self, loop: Any) -> list[Collection]:
        """What a loop has to collect, in front of it."""
        found = []
        for slot, (arg, result) in enumerate(zip(loop.iter_args, loop.return_vars, strict=False)):
            wants_all, wants_last = result in self._wanted, arg in self._wanted
            if not wants_all and not wants_last:
                continue
            base = base_name(result.name_hint)
            previous = None
            if wants_last and not _is_id(arg):
                first = self._ids_of(arg.initValue)
                one = first[0] if len(first) == 1 and _size(first[0]) == 1 else None
                if len(first) > 1 or (first and one is None):
                    one = self._joined(first)
                text = self._id_text(one) if one is not None else INVALID_ID
                name = self.names.helper(f"{base_name(arg.name_hint)}_tid")
                previous = self.declare(None, "PTO2TaskId", name, text, f" = {INVALID_ID}")
                self._ids[arg] = [previous]
            if wants_all or previous is not None:
                found.append(Collection(slot, self.names.helper(f"{base}_tids"), wants_all, previous))
        return found

    def end_iteration(self, collections: list[Collection], values: Any) -> None:
        """At the end of a loop's body: note whose ids the iteration hands on."""
        for collection in collections:
            collection.place = self.out.group()
            collection.ids = self._ids_of(values[collection.slot])

    def close_collections(self, loop: Any, collections: list[Collection], before: Group) -> None:
        """Behind a loop: print what it collects."""
        for collection in collections:
            if collection.place is None:
                continue
            ids = collection.ids
            if collection.previous is not None and ids:
                with self.out.at(collection.place):
                    one = ids[0] if len(ids) == 1 and _size(ids[0]) == 1 else self._joined(ids)
                    self.out.line(f"{self.out.mention(collection.previous)} = {self._id_text(one)};")
            if collection.wants_all and ids:
                self._collect(loop, collection, before)

    def _collect(self, loop: Any, collection: Collection, before: Group) -> None:
        place = collection.place
        assert place is not None
        trips = static_trip_count(loop.start, loop.stop, loop.step) if type(loop) is ForStmt else None
        width = sum(_size(i) for i in collection.ids)
        result = loop.return_vars[collection.slot]
        if trips is not None:
            if trips == 0:
                return
            with self.out.at(before):
                array = self.own(
                    None,
                    self.out.declare_array("PTO2TaskId", collection.name, trips * width, INVALID_ID, empty=INVALID_ID),
                )
            with self.out.at(place):
                self._fill(array, self.ordinal(loop), width, collection.ids)
            self._ids[result] = [array]
            return
        self._ids[result] = [self._dynamic(loop, collection, before, width)]

    def _fill(self, array: Local, ordinal: str, width: int, ids: list[Any]) -> None:
        """Write the ids of one iteration to its slots."""
        name, base = self.out.mention(array), ordinal if width == 1 else f"{ordinal} * {width}"
        offset = 0
        for entry in ids:
            where = base if offset == 0 else f"{base} + {offset}"
            if _size(entry) == 1:
                self.out.line(f"{name}[{where}] = {self._id_text(entry)};")
            else:
                self.out.line(
                    f"for (int64_t __slot_i = 0; __slot_i < {_size(entry)}; ++__slot_i) "
                    f"{name}[{where} + __slot_i] = {self.out.mention(entry)}[__slot_i];"
                )
            offset += _size(entry)

    _dynamic_barriers = 0

    def _dynamic(self, loop: Any, collection: Collection, before: Group, width: int) -> Local:
        """Collect in a vector, and let one barrier behind the loop stand for it."""
        number = self._dynamic_barriers
        self._dynamic_barriers += 1
        self.expressions.headers.add("vector")
        ids, count = (self.names.helper(f"dynamic_compiler_dep_{what}_{number}") for what in ("tids", "count"))
        with self.out.at(before):
            self.out.line(f"std::vector<PTO2TaskId> {ids};")
            if type(loop) is ForStmt:
                bounds = []
                for what, bound in (("start", loop.start), ("stop", loop.stop), ("step", loop.step)):
                    name = self.names.helper(f"dynamic_compiler_dep_{what}_{number}")
                    self.out.line(f"const int64_t {name} = {self.text(bound)};")
                    bounds.append(name)
                start, stop, step = bounds
                capacity = self.names.helper(f"dynamic_compiler_dep_capacity_{number}")
                ahead = f"({step} > 0 && {start} < {stop}) || ({step} < 0 && {start} > {stop})"
                trips = f"({stop} - {start} + {step} - ({step} > 0 ? 1 : -1)) / {step}"
                self.out.line(f"const int64_t {capacity} = ({ahead}) ? {trips} * {width} : 0;")
                self.out.line(f"{ids}.reserve({capacity});")
        with self.out.at(collection.place):  # type: ignore[arg-type]
            for entry in collection.ids:
                name = self._id_text(entry)
                if _size(entry) == 1:
                    self.out.line(f"if ({name}.is_valid()) {ids}.push_back({name});")
                else:
                    self.out.line(
                        f"for (int64_t __slot_i = 0; __slot_i < {_size(entry)}; ++__slot_i) "
                        f"if ({name}[__slot_i].is_valid()) {ids}.push_back({name}[__slot_i]);"
                    )
        params = self.names.helper(f"params_dynamic_compiler_dep_barrier_{number}")
        self.out.line()
        self.out.line(f"// Dynamic compiler-dependency barrier {number}: compressed loop fan-in")
        self.out.line(f"{self.runtime.task_args} {params};")
        self.out.line(f"uint32_t {count} = (uint32_t){ids}.size();")
        self.out.line(f"{params}.set_dependencies({ids}.data(), {count});")
        tid = self.names.helper(f"dynamic_compiler_dep_barrier_{number}_tid")
        made = self.declare(None, "PTO2TaskId", tid, INVALID_ID, f" = {INVALID_ID}")
        with self.out.opened(f"if ({count} > 0) {{"):
            self.out.line(f"{self.out.mention(made)} = rt_submit_dummy_task({params}).task_id();")
        return made

    def compress(self, loop: Any) -> dict[Var, list[Any]]:
        """Let one barrier in front of a loop stand for an array of ids that many launches in it wait for.

        Gives what the variables stood for before, which holds again behind the loop.
        """
        before: dict[Var, list[Any]] = {}
        for var, consumers in self._waits.get(loop, {}).items():
            ids = self._ids_of(var)
            count = sum(_size(i) for i in ids)
            if var in self._rewritten.get(loop, ()) or count * consumers <= count + consumers:
                continue
            before[var] = ids
            comment = "Compiler-dependency barrier {}: compressed loop fan-in"
            self._ids[var] = [self.barrier(comment, "compiler_dep_barrier_{}", None, (), ids)]
        return before

    def uncompress(self, before: dict[Var, list[Any]]) -> None:
        """Behind the loop."""
        self._ids.update(before)

    def _joined(self, ids: list[Any]) -> Local:
        """One barrier for several ids."""
        comment = "Compiler-dependency barrier {}: one id for several tasks"
        return self.barrier(comment, "compiler_dep_barrier_{}", None, (), ids)

    def _id_text(self, entry: Any) -> str:
        if type(entry) is Member:
            return f"{self.out.mention(entry.outputs)}{entry.call}"
        return self.out.mention(entry)

    def ordinal(self, loop: ForStmt) -> str:
        """Which iteration of a loop this is, counted from 0."""
        name = self.mention(loop.loop_var)
        if (
            type(loop.start) is ConstInt
            and loop.start.value == 0
            and type(loop.step) is ConstInt
            and loop.step.value == 1
        ):
            return name
        return f"(({name} - {self.text(loop.start)}) / {self.text(loop.step)})"

    # --- branches -----------------------------------------------------------------------------------------------------

    def join_branches(self, stmt: IfStmt, before: Group, ends: list[tuple[Group, list[Any]]]) -> None:
        """``ends``: where each branch ends, and the ids of what it yields, by result."""
        for slot, result in enumerate(stmt.return_vars):
            found = [ids[slot] for _, ids in ends]
            if result not in self._wanted or not any(found) or _is_id(result):
                continue
            with self.out.at(before):
                name = self.names.helper(f"{base_name(result.name_hint)}_tid")
                tid = self.declare(None, "PTO2TaskId", name, INVALID_ID, f" = {INVALID_ID}")
            for (place, _), ids in zip(ends, found, strict=True):
                if ids:
                    with self.out.at(place):
                        one = ids[0] if len(ids) == 1 and _size(ids[0]) == 1 else self._joined(ids)
                        self.out.line(f"{self.out.mention(tid)} = {self._id_text(one)};")
            self._ids[result] = [tid]

    def ids_of_all(self, values: Any) -> list[Any]:
        """The ids behind each of some values."""
        return [self._ids_of(v) for v in values]


def _size(entry: Any) -> int:
    return entry.extent or 1 if type(entry) is Local else 1


def _is_id(var: Var) -> bool:
    kind = var.type
    return isinstance(kind, (ScalarType, ArrayType)) and kind.dtype is DataType.TASK_ID


def _wanted(function: Function) -> set[Var]:
    """The variables that derived edges name, and those whose ids are needed for that."""
    work = [edge for site in call_sites(function).functions for edge in site.call.attrs.get(EDGES, ())]
    if not work:
        return set()
    sources: dict[Var, list[Any]] = {}
    for stmt in walk_stmts(function.body):
        if type(stmt) is AssignStmt:
            value = stmt.value
            if isinstance(value, Var):
                sources.setdefault(stmt.var, []).append(value)
            elif type(value) is TupleGetItemExpr:
                sources.setdefault(stmt.var, []).append(value.tuple)
        elif type(stmt) in (ForStmt, WhileStmt):
            last = get_last_yield_stmt(stmt.body)
            if last is not None:
                for arg, result, value in zip(stmt.iter_args, stmt.return_vars, last.value, strict=False):
                    sources.setdefault(result, []).append(value)
                    sources.setdefault(arg, []).extend((value, arg.initValue))
        elif type(stmt) is IfStmt:
            for body in (stmt.then_body, stmt.else_body):
                last = get_last_yield_stmt(body)
                if last is not None:
                    for result, value in zip(stmt.return_vars, last.value, strict=False):
                        sources.setdefault(result, []).append(value)
    found: set[Var] = set()
    while work:
        var = work.pop()
        if isinstance(var, Var) and var not in found:
            found.add(var)
            work += sources.get(var, ())
    return found


__all__ = ["Collection", "Edges"]
