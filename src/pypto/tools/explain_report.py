"""What :mod:`pypto.tools.explain_orders` finds, as lines for a terminal and as plain values for JSON."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any

from ..diag.layout import Line, Style
from ..diag.location import Location
from ..diag.source import lines_for
from ..ir.names import base_name
from ..runtime.task_records import Box, EdgeKind, EdgeRecord, HostRecord, Mode, TaskRecord
from .explain_orders import Explanation, Node, Order, Shared, Touch, Verdict

LIMIT = 20  # orders that are told in full
_BOXES = 3  # regions of one task and tensor
_ALIKE = 4  # pairs that are ordered as one that was told
_CHAIN = 8  # tasks of a chain
_VERBS = {Mode.READ: "reads", Mode.WRITE: "writes", Mode.ATOMIC: "adds atomically to"}
_HEADINGS = {
    Verdict.UNNEEDED: "Not needed by any byte",
    Verdict.INDIRECT: "No common bytes, but they put other tasks in order",
    Verdict.NEEDED: "Needed",
}


class Report:
    """Tells about one run. ``title``: which program; ``external``: buffers that are arguments of the run; ``parallel``:
    where the loops are whose iterations are independent.
    """

    def __init__(
        self, title: str, explanation: Explanation, external: set[int], parallel: Sequence[Location] = ()
    ) -> None:
        self.title = title
        self.found = explanation
        self.record = explanation.record
        self.external = external
        self.parallel = parallel
        self._boxes: dict[tuple[int, Box], str] = {}  # text of regions that was made
        self._nodes: dict[int, dict[str, Any]] = {}
        self._parts: dict[tuple[int, int], tuple[str, bool]] = {}

    # --- the whole ----------------------------------------------------------------------------------------------------

    def summary(self) -> Iterator[Line]:
        """Counts, and how much runs in a row."""
        found, tasks = self.found, len(self.record.tasks)
        total = len(found.orders)
        yield [(f"{self.title}: {_count(tasks, 'task')}, {_count(total, 'order')}", Style.PLAIN)]
        if not tasks:
            yield _plain("  the program launches no task")
            return
        unneeded = found.count(Verdict.UNNEEDED)
        if total:
            text = f"  {unneeded} of {_count(total, 'order')} {'is' if unneeded == 1 else 'are'} not needed by any byte"
            yield [(text, Style.TITLE if unneeded else Style.PLAIN)]
        chain = found.critical()
        yield _plain(
            f"  critical path: {chain.length} of {_count(tasks, 'task')}, parallelism {tasks / chain.length:.1f}: "
            + self._chain(chain.numbers)
        )
        timed = found.critical_in_time()
        if timed.length:
            whole = sum(task.ended - task.started for task in self.record.tasks)
            yield _plain(
                f"  by time: {timed.length / 1e6:.1f} ms of {whole / 1e6:.1f} ms in tasks, "
                f"parallelism {whole / timed.length:.1f}"
            )
        if found.count(Verdict.NEEDED) < total:
            chain_by_bytes = found.critical_by_bytes()
            if chain_by_bytes is not None:
                yield _plain(
                    f"  if only common bytes ordered tasks: {chain_by_bytes.length} of {_count(tasks, 'task')}, "
                    f"parallelism {tasks / chain_by_bytes.length:.1f}"
                )
        if found.races:
            count = _count(len(found.races), "pair") + (" races" if len(found.races) == 1 else " race")
            yield [(f"  {count}: nothing orders tasks that touch the same bytes (see --check-races)", Style.TITLE)]
        if any(self._by_source_write(order) for order in found.orders):
            yield _plain("  as written, every write is ordered: --after-passes tells about the program that is emitted")

    def _by_source_write(self, order: Order) -> bool:
        """Whether a rule orders the two that does not know yet which writes need an order."""
        arguments = self.found.arguments(order.edge.consumer, order.edge.buffer)
        return any(argument.tag == "source_write" for argument in arguments)

    def orders(self, limit: int) -> Iterator[Line]:
        """Those that nothing needs first. Orders of the same lines for the same reason are told once."""
        sorted_orders = [order for verdict in _HEADINGS for order in self.found.orders if order.verdict is verdict]
        groups = self._groups(sorted_orders)
        heading: Verdict | None = None
        for number, alike in enumerate(groups[:limit], 1):
            if alike[0].verdict is not heading:
                heading = alike[0].verdict
                yield []
                yield [(f"{_HEADINGS[heading]}:", Style.HELP if heading is Verdict.NEEDED else Style.TITLE)]
            yield []
            yield from self._group(alike, f"{number}. ")
        left = sum(map(len, groups[limit:]))
        if left:
            yield []
            yield _plain(f"... and {_count(left, 'more order')} (--limit)")

    def _groups(self, orders: Sequence[Order]) -> list[list[Order]]:
        groups: dict[tuple[Any, ...], list[Order]] = {}
        for order in orders:
            groups.setdefault(self._alike(order), []).append(order)
        return list(groups.values())

    def _group(self, alike: Sequence[Order], number: str = "") -> Iterator[Line]:
        yield from self.order(alike[0], number)
        if len(alike) > 1:
            pairs = ", ".join(self._pair(order) for order in alike[1 : _ALIKE + 1])
            rest = len(alike) - 1 - _ALIKE
            yield _plain(f"   in the same way: {pairs}" + (f" and {rest} more" if rest > 0 else ""))

    def _alike(self, order: Order) -> tuple[Any, ...]:
        edge = order.edge
        ends = [self.record.who(n) for n in (edge.producer, edge.consumer)]
        reason = self._conflict_words(order) if order.verdict is Verdict.NEEDED else ""
        names = tuple((end.name, end.source) for end in ends)
        return order.verdict, order.kinds, names, self._name(edge.buffer), reason

    def _pair(self, order: Order) -> str:
        return f"{self.record.who(order.edge.consumer)} after {self.record.who(order.edge.producer)}"

    def _chain(self, numbers: Sequence[int]) -> str:
        names = [str(self.record.who(n)) for n in numbers]
        if len(names) > _CHAIN:
            names = [*names[: _CHAIN - 2], "…", names[-1]]
        return " → ".join(names)

    # --- one order ----------------------------------------------------------------------------------------------------

    def order(self, order: Order, number: str = "") -> Iterator[Line]:
        """One order: the two tasks, who says so, what they touch, and what removes it."""
        edge = order.edge
        first, second = self.record.who(edge.producer), self.record.who(edge.consumer)
        words = self._conflict_words(order)
        if words:
            text = f"{number}{second} waits for {first}: it {words.replace('{}', str(first))}"
            yield [(text, Style.PLAIN)]
        else:
            yield [(f"{number}{second} waits for {first}, and they share no byte that one of them writes", Style.TITLE)]
        for node in (first, second):
            yield from _place(node)
        for by in self._causes(order):
            yield _plain(f"   ordered by {by}")
        shared = self.found.shared(edge.producer, edge.consumer)
        if order.verdict is Verdict.NEEDED:
            shared = [each for each in shared if each.conflict]
        else:  # what both only read is no news, unless it is all
            shared = [each for each in shared if not each.only_read] or shared
        for each in shared[:_BOXES]:
            yield from self._touched(first, second, each)
        if len(shared) > _BOXES:
            yield _plain(f"   and so on for {_count(len(shared) - _BOXES, 'more tensor')}")
        for count, advice in enumerate(self.advice(order)):
            yield [(f"   = {'or' if count else 'to remove it'}: {advice}", Style.HELP)]

    def _conflict_words(self, order: Order) -> str:
        """Such as ``reads what {} wrote ('x', 'y')``; empty if there is no conflict."""
        names: dict[str, list[str]] = {}
        for each in self.found.shared(order.edge.producer, order.edge.consumer):
            if each.conflict is not None:
                names.setdefault(_conflict(*each.conflict), []).append(f"'{self._name(each.buffer)}'")
        return " and ".join(
            f"{words} ({', '.join(found[:_BOXES])}{', …' if len(found) > _BOXES else ''})"
            for words, found in names.items()
        )

    def _causes(self, order: Order) -> Iterator[str]:
        """Who says that there is an order: a rule, the program, or the compiler."""
        edge = order.edge
        first, second = self.record.who(edge.producer), self.record.who(edge.consumer)
        for kind in order.kinds:
            if kind is EdgeKind.EXPLICIT:
                yield f"the program: deps=[...]{_deps_place(second.source)}"
            elif kind is EdgeKind.COMPILER:
                yield "the compiler, which found that it is needed"
            elif kind is EdgeKind.ALLOCATION:
                yield f"the rule of storage: {first} made '{self._name(edge.buffer)}'"
            elif kind is EdgeKind.SYNC:
                yield "the orchestrator, which waits for the writers of a tensor before it touches it"
            else:
                rule = "overlapping arguments" if kind is EdgeKind.OVERLAP else "source order"
                yield f"the rule of {rule}: {self._arguments(order, kind)}"

    def _arguments(self, order: Order, kind: EdgeKind) -> str:
        edge = order.edge
        boxes = edge.buffer, edge.producer_box, edge.consumer_box
        if kind is not edge.kind or boxes[1] is None:
            boxes = next(self._argument_boxes(edge), boxes)
        buffer, one, other = boxes
        first, second = self.record.who(edge.producer), self.record.who(edge.consumer)
        if one is None or other is None:
            return f"'{self._name(buffer)}'"
        use = "write" if kind is EdgeKind.OVERLAP else "read"
        return f"{first} is given {self._box(buffer, one)} to {use}, {second} {self._box(buffer, other)}"

    def _argument_boxes(self, edge: EdgeRecord) -> Iterator[tuple[int, Box | None, Box | None]]:
        """All arguments that put the two in order."""
        for each in self.found.shared(edge.producer, edge.consumer):
            pair = self.found.overlapping_arguments(edge.producer, edge.consumer, each.buffer)
            if pair is not None and not self.record.buffers[each.buffer].manual_dep:
                yield each.buffer, pair[0].box, pair[1].box

    def _touched(self, first: Node, second: Node, shared: Shared) -> Iterator[Line]:
        parts = [self._does(first, shared.buffer, shared.first), self._does(second, shared.buffer, shared.second)]
        if shared.conflict is not None:
            one, other = shared.conflict
            parts = [f"{first} {self._verb(one, shared.buffer)}", f"{second} {self._verb(other, shared.buffer)}"]
            end = "common bytes"
        elif shared.only_read:
            end = "no conflict: both only read"
        elif any(a.region.overlaps(b.region) for a in shared.first[:_BOXES] for b in shared.second[:_BOXES]):
            end = "common bytes, but in any order"
        else:
            end = "no common byte"
        yield _plain(f"   touched: {parts[0]}; {parts[1]}: {end}")

    def _does(self, node: Node, buffer: int, touches: Sequence[Touch]) -> str:
        if not touches:
            return f"{node} touches nothing of {self._name(buffer)}"
        text = f"{node} " + ", ".join(self._verb(touch, buffer) for touch in touches[:_BOXES])
        return text + (f" and {len(touches) - _BOXES} more regions" if len(touches) > _BOXES else "")

    def _verb(self, touch: Touch, buffer: int) -> str:
        return f"{_VERBS[touch.mode]} {self._box(buffer, touch.box)}"

    # --- what removes it ----------------------------------------------------------------------------------------------

    def advice(self, order: Order) -> list[str]:
        """What would remove an order, the most particular way first."""
        edge = order.edge
        chosen = []
        if EdgeKind.EXPLICIT in order.kinds:
            place = _deps_place(self.record.who(edge.consumer).source)
            chosen.append(f"leave the id of {self.record.who(edge.producer)} out of deps=[...]{place}")
        if order.verdict is Verdict.INDIRECT:
            return [f"{text}, and name what it stands for in deps= of the tasks behind it" for text in chosen]
        if order.verdict is Verdict.NEEDED:
            shared = [s for s in self.found.shared(edge.producer, edge.consumer) if s.conflict]
            return [self._own_tensors(edge, shared)]
        if EdgeKind.COMPILER in order.kinds:
            chosen.append("pass slices of what is really touched, from which the compiler can tell them apart")
        automatic = []
        if not {EdgeKind.EXPLICIT, EdgeKind.COMPILER}.issuperset(order.kinds):
            for buffer in dict.fromkeys([edge.buffer, *(b for b, _, _ in self._argument_boxes(edge))]):
                if buffer >= 0:
                    automatic += self._ways(order, buffer)
        return [*chosen, *automatic]

    def _own_tensors(self, edge: EdgeRecord, shared: Sequence[Shared]) -> str:
        """Values that are handed on need the order; other conflicts are about storage."""
        second = self.record.who(edge.consumer)
        for one, other in map(_both, shared):
            if one.mode is not Mode.READ and other.mode is Mode.READ:
                return f"nothing: {second} needs these values"
        names = " and ".join(f"'{self._name(each.buffer)}'" for each in shared[:_BOXES])
        return f"let {second} write a tensor of its own instead of {names}"

    def _ways(self, order: Order, buffer: int) -> list[str]:
        edge = order.edge
        first, second = self.record.who(edge.producer), self.record.who(edge.consumer)
        name = self._name(buffer)
        if isinstance(second, HostRecord) or isinstance(first, HostRecord):
            return [f"pass {first} a slice of '{name}' without what the orchestrator touches"]
        ways = []
        if order.edge.kind is not EdgeKind.SOURCE_ORDER and self.found.touches(first.number, buffer).modes <= {
            Mode.READ
        }:
            if _is_scope(first):
                ways.append(f"{first} writes nothing of '{name}' in this run: launch what may write it apart")
            else:
                ways.append(
                    f"'{first.kernel}' writes nothing of '{name}' in this run: if it never does, declare its parameter "
                    "an input"
                )
        in_loop = first.source == second.source and first.source.line > 0
        if in_loop and Mode.READ not in self.found.touches(second.number, buffer).modes:
            if not self._is_parallel(first.source):
                ways.append("if they are iterations of one loop that never share bytes, make it pl.parallel")
            elif self._by_source_write(order):
                ways.append("perhaps nothing: the passes order no writes of a pl.parallel loop (see --after-passes)")
        parts = [self._part(task, buffer) for task in (first, second)]
        if any(narrower for _, narrower in parts):
            ways.append("pass slices: " + ", ".join(text for text, _ in parts))
        way = f"no_dep_args=[{name}] on its scope" if _is_scope(second) else f"pl.no_dep({name}) in its call"
        ways.append(f"take '{name}' of {second} out of the automatic order, where no byte is shared ever: {way}")
        if buffer not in self.external:
            ways.append(f"take '{name}' out of it altogether: pl.create_tensor(..., manual_dep=True), with deps=[...]")
        ways.append("launch both in a pl.manual_scope(), with deps=[...] for the orders that are needed")
        return ways

    def _is_parallel(self, source: Location) -> bool:
        return any(
            loop.filename == source.filename and loop.line <= source.line <= loop.end_line for loop in self.parallel
        )

    def _part(self, task: TaskRecord, buffer: int) -> tuple[str, bool]:
        """What would be enough to pass to a task, and whether that is less than it is given."""
        known = self._parts.get((task.number, buffer))
        if known is None:
            touches = self.found.touches(task.number, buffer)
            given = [a.box.region() for a in self.found.arguments(task.number, buffer) if a.box is not None]
            narrower = bool(given) and not any(t.region.covers(g) for t in touches for g in given)
            boxes = list(dict.fromkeys(touch.box for touch in touches))
            names = [self._box(buffer, box) for box in boxes[:_BOXES]] or [f"nothing of '{self._name(buffer)}'"]
            more = f" and {len(boxes) - _BOXES} more" if len(boxes) > _BOXES else ""
            known = self._parts[task.number, buffer] = f"{', '.join(names)}{more} to {task}", narrower
        return known

    # --- two tasks ----------------------------------------------------------------------------------------------------

    def pair(self, a: int, b: int) -> Iterator[Line]:
        """Whether two tasks are ordered, and why or why not."""
        first, second = self.found.earlier(a, b)
        one, other = self.record.who(first), self.record.who(second)
        direct = self.found.order(first, second)
        if direct is not None:
            yield from self.order(direct)
            return
        path = self.found.path(first, second)
        if path is None:
            yield from self._not_ordered(one, other)
            return
        between = _count(len(path) - 2, "other")
        way = " → ".join(str(self.record.who(n)) for n in path)
        yield _plain(f"{other} comes after {one} through {between}: {way}")
        conflicts = [each for each in self.found.shared(first, second) if each.conflict]
        if not conflicts:
            yield _plain("   the two share no byte that one of them writes: only the tasks between need the order")
        for each in conflicts:
            yield from self._touched(one, other, each)
        steps = {(x, y): self.found.order(x, y) for x, y in zip(path, path[1:], strict=False)}
        for (before, after), step in steps.items():
            if step is None:
                ends = self.record.who(after), self.record.who(before)
                yield _plain(f"   {ends[0]} comes after {ends[1]}: the orchestrator does one thing at a time")
        for alike in self._groups([step for step in steps.values() if step is not None]):
            yield []
            yield from self._group(alike)

    def _not_ordered(self, one: Node, other: Node) -> Iterator[Line]:
        shared = self.found.shared(one.number, other.number)
        races = any(each.conflict for each in shared)
        text = f"{one} and {other} are not ordered: they may run at the same time"
        yield [(text, Style.TITLE if races else Style.HELP)]
        for node in (one, other):
            yield from _place(node)
        if not shared:
            yield _plain("   they have no tensor in common")
        for each in shared:
            yield from self._touched(one, other, each)
            yield _plain(f"   no order by '{self._name(each.buffer)}': {self._why_not(one, other, each.buffer)}")
        if races:
            yield [("   = this is a race: pypto run --check-races tells what is missing", Style.TITLE)]

    def _why_not(self, one: Node, other: Node, buffer: int) -> str:
        """Why the automatic rule finds no order by a buffer."""
        if self.record.buffers[buffer].manual_dep:
            return "it was created with manual_dep=True, so only deps=[...] order its users"
        for node in (one, other):
            if isinstance(node, TaskRecord) and node.manual:
                return f"{node} is in a manual scope, where only deps=[...] order tasks"
        first, second = (self.found.arguments(node.number, buffer) for node in (one, other))
        for node, arguments in ((one, first), (other, second)):
            if not arguments:
                return f"it is no argument of {node}"
            if all(argument.tag == "no_dep" for argument in arguments):
                return f"no_dep takes it out of the automatic order at {node}"
        if all(argument.tag == "input" for argument in (*first, *second)):
            return "both have it as an input only"
        if all(argument.tag in ("output", "output_existing") for argument in second):
            return f"{other} has it as an output, and an output waits for no earlier task"
        if all(argument.tag == "input" for argument in first):
            return f"{one} has it as an input, and a write waits for no earlier reader"
        boxes = [self._box(buffer, argument.box) for argument in (first[0], second[0]) if argument.box is not None]
        return f"their arguments do not overlap: {' and '.join(boxes)}"

    # --- JSON ---------------------------------------------------------------------------------------------------------

    def as_dict(self, limit: int | None, pair: tuple[int, int] | None) -> dict[str, Any]:
        """All of it as plain values. Times of tasks are ns."""
        found = self.found
        if pair is not None:
            return {"program": self.title, "pair": self._pair_dict(*pair)}
        chain, timed, without = found.critical(), found.critical_in_time(), found.critical_by_bytes()
        ordered = [order for verdict in _HEADINGS for order in found.orders if order.verdict is verdict]
        return {
            "program": self.title,
            "tasks": [
                {**self._node(task.number), "ns": max(0, task.ended - task.started)} for task in self.record.tasks
            ],
            "count": {"orders": len(found.orders), **{v.value: found.count(v) for v in Verdict}},
            "critical_path": chain.numbers,
            "critical_path_by_time": {"ns": timed.length, "tasks": timed.numbers},
            "critical_path_by_bytes": None if without is None else without.numbers,
            "races": len(found.races),
            "orders": [self._order_dict(order) for order in ordered[:limit]],
        }

    def _node(self, number: int) -> dict[str, Any]:
        found = self._nodes.get(number)
        if found is None:
            node, source = self.record.who(number), self.record.who(number).source
            found = {"number": number, "name": node.name, "source": _where(source), "text": _excerpt(source)}
            self._nodes[number] = found
        return found

    def _order_dict(self, order: Order) -> dict[str, Any]:
        edge = order.edge
        arguments = [
            {"tensor": self._name(buffer), "regions": [self._box(buffer, one), self._box(buffer, other)]}
            for buffer, one, other in self._argument_boxes(edge)
            if one is not None and other is not None
        ]
        return {
            "producer": self._node(edge.producer),
            "consumer": self._node(edge.consumer),
            "verdict": order.verdict.value,
            "kinds": [kind.value for kind in order.kinds],
            "because": self._conflict_words(order).replace("{}", str(self.record.who(edge.producer))),
            "ordered_by": list(self._causes(order)),
            "arguments": arguments,
            "shared": [self._shared_dict(each) for each in self.found.shared(edge.producer, edge.consumer)],
            "to_remove": self.advice(order),
        }

    def _shared_dict(self, shared: Shared) -> dict[str, Any]:
        def told(touches: Sequence[Touch]) -> list[str]:
            shown = [self._verb(touch, shared.buffer) for touch in touches[:_BOXES]]
            return shown + ([f"and {len(touches) - _BOXES} more regions"] if len(touches) > _BOXES else [])

        return {
            "tensor": self._name(shared.buffer),
            "producer": told(shared.first),
            "consumer": told(shared.second),
            "conflict": told(shared.conflict or ()),
        }

    def _pair_dict(self, a: int, b: int) -> dict[str, Any]:
        first, second = self.found.earlier(a, b)
        path = self.found.path(first, second)
        steps = [self.found.order(x, y) for x, y in zip(path or [], (path or [])[1:], strict=False)]
        shared = self.found.shared(first, second)
        ends = self.record.who(first), self.record.who(second)
        return {
            "tasks": [self._node(first), self._node(second)],
            "ordered": path is not None,
            "path": path or [],
            "orders": [self._order_dict(step) for step in steps if step is not None],
            "shared": [self._shared_dict(each) for each in shared],
            "not_ordered_because": (
                {} if path else {self._name(each.buffer): self._why_not(*ends, each.buffer) for each in shared}
            ),
            "race": path is None and any(each.conflict for each in shared),
        }

    # --- names --------------------------------------------------------------------------------------------------------

    def _name(self, buffer: int) -> str:
        """As the user wrote it: passes number the versions of a name."""
        if buffer < 0:
            return ""
        return base_name(self.record.buffers[buffer].name) or "a tensor"

    def _box(self, buffer: int, box: Box) -> str:
        text = self._boxes.get((buffer, box))
        if text is None:
            record = self.record.buffers[buffer]
            text = record.describe(box)
            if record.name:
                text = text.replace(record.name, self._name(buffer), 1)
            self._boxes[buffer, box] = text
        return text


def _both(shared: Shared) -> tuple[Touch, Touch]:
    assert shared.conflict is not None
    return shared.conflict


def _conflict(first: Touch, second: Touch) -> str:
    """What the later of two tasks does, in words."""
    if first.mode is Mode.READ:
        return "writes what {} reads"
    return f"{_VERBS[second.mode]} what {{}} {'wrote' if first.mode is Mode.WRITE else 'added to'}"


def _plain(text: str) -> Line:
    return [(text, Style.PLAIN)]


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def _place(node: Node) -> Iterator[Line]:
    where = _where(node.source)
    if where:
        yield [("   --> ", Style.GUTTER), (f"{node} ", Style.PLAIN), (where, Style.LOCATION)]
    text = _excerpt(node.source)
    if text:
        yield [("       ", Style.GUTTER), (text, Style.SOURCE)]


def _where(source: Location) -> str:
    """File, line and column; a file below the current folder without the way there."""
    here = os.path.join(os.getcwd(), "")
    return source._replace(filename=source.filename.removeprefix(here)).describe()


def _excerpt(source: Location) -> str:
    lines = lines_for(source.filename, source.line, None)
    return lines[source.line - 1].strip() if lines else ""


def _is_scope(task: TaskRecord) -> bool:
    """Whether a task is a kernel scope of its program, not the call of a kernel."""
    return _excerpt(task.source).startswith(("with ", "for "))


def _deps_place(source: Location) -> str:
    """Where the dependencies of a launch are written."""
    lines = lines_for(source.filename, source.line, None)
    last = max(source.line, min(source.end_line, len(lines)))
    for line in range(source.line, last + 1) if lines else ():
        if "deps=" in lines[line - 1]:
            return f" at {_where(Location(source.filename, line, -1))}"
    where = _where(source)
    return f" at {where}" if where else ""


def plain(lines: Sequence[Line]) -> str:
    """Lines as text."""
    return "\n".join("".join(text for text, _ in line).rstrip() for line in lines)


def print_rich(lines: Sequence[Line]) -> None:
    """Lines in colours, with highlighted source."""
    from rich.console import Console

    from ..diag.rich_render import painted

    Console().print(painted(list(lines)), soft_wrap=True)


__all__ = ["LIMIT", "Report", "plain", "print_rich"]
