"""Assignments, branches and loops: what host code and kernels have in common."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from .body import HOST, Body, Loop
from .env import BOOL, F32, FLOAT, INDEX, INT32, ROWS, TALL, Live, Root, Ty, Value, merge
from .ragged import ragged

MOST_RUNS = 40  # how often an innermost statement may run
DEEPEST = 4

Statement = Callable[[], bool]


@dataclass(frozen=True)
class Header:
    """Bounds of a counted loop: its least and greatest number of iterations, and the limit of its index."""

    text: str
    least: int
    most: int
    limit: int
    kind: str = "range"

    def features(self) -> list[str]:
        parts = self.text.split(", ")
        step = parts[2] if len(parts) > 2 else "1"
        return [*(["descending loop"] if step[0] == "-" else []), *(["loop with step"] if step not in "-1" else [])]


CONSTANT = (
    Header("2", 2, 2, 2),
    Header("3", 3, 3, 3),
    Header("1, 3", 2, 2, 3),
    Header("1", 1, 1, 1),
    Header("0", 0, 0, 1),
    Header("2, 0, -1", 2, 2, 3),
    Header("5, 0, -2", 3, 3, 6),
    Header("0, 6, 3", 2, 2, 4),
    Header("4, 4", 0, 0, 5),
    Header("3, 4", 1, 1, 4),
    Header("1, 4, 2", 2, 2, 4),
)


class Statements(Body):
    """Statements of any function. Each method writes one and says whether it could."""

    def table(self) -> list[tuple[int, Statement]]:
        """Weights of the statements that may stand here."""
        nested = self.indent < 12 and self.budget.statements > 0
        deep = len(self.loops) < DEEPEST and nested
        return [
            (10, self.scalar_assignment),
            (10 if self.levels() else 0, self.shaped_assignment),
            (2, self.swap),
            (3, self.alias),
            (1, self.inline_pair),
            (8 if nested else 0, self.branch),
            (3 if nested else 0, self.branch_with_results),
            (8 if deep else 0, self.counted_loop),
            (3 if deep else 0, self.while_loop),
            (4 if deep else 0, self.carried_loop),
            (2 if deep else 0, self.carried_while),
            (5 if self.can_escape() else 0, self.escape),
            (6 if self.stores and (self.role != HOST or self.host_stores) else 0, self.store),
            (self.ragged if self.stores and self.role != HOST else 0, self.ragged_store),
        ]

    def statements(self, least: int = 1, most: int = 4) -> None:
        """A block."""
        done = 0
        while done < most and self.reached and (done < least or self.g.chance(65)):
            if self.budget.statements <= 0 and done >= least:
                break
            self.budget.statements -= 1
            table = self.table()
            if not self.g.weighted(table)():
                self.scalar_assignment()
            done += 1

    # --- assignments --------------------------------------------------------------------------------------------------

    def scalar_assignment(self) -> bool:
        g = self.g
        kind = g.weighted(((8, INDEX), (3, FLOAT), (2, BOOL), (1, INT32)))
        text = self.bounded_scalar(kind)
        known = [n for n in self.env.of(kind) if self.may_rebind(n)]
        if known and kind == INDEX and g.chance(20):
            name = g.pick(known)
            g.saw("augmented assignment")
            self.put(f"{name} {g.pick(('+=', '-='))} {self.below(4)}")
        else:
            name = self.target(kind)
            if self.loops and name in self.env.live:
                g.saw("scalar rebound in a loop")
            self.put(f"{name}: {kind} = {text}" if g.chance(15) and kind != BOOL else f"{name} = {text}")
        self.assign(name, Value(kind))
        g.saw(f"{kind.dtype} scalar")
        return True

    def shaped_assignment(self) -> bool:
        kind = self.shaped_kind()
        text = self.shaped(kind, self.g.between(1, 2))
        value = self.value_of(text, kind)
        if not self.may_store(value):
            return False
        name = self.target(kind)
        if self.loops and name in self.env.live:
            self.g.saw(f"{kind.kind} rebound in a loop")
        self.put(f"{name} = {text}")
        self.assign(name, value)
        return True

    def may_store(self, value: Value) -> bool:
        """Whether a name that outlives the iteration may get this value."""
        if value.type.kind != "tensor" or not self.loops:
            return True
        return all(root.fixed or root.level >= len(self.loops) for root in value.roots)

    def alias(self) -> bool:
        """A second name."""
        kinds = [INDEX, FLOAT, F32, TALL, F32.tile()]
        names = [n for k in kinds for n in self.env.of(k) if n not in self.protected and self.may_hold(n)]
        if not names:
            return False
        source = self.g.pick(names)
        value = self.env.live[source]
        name = self.target(value.type, (source,))
        self.put(f"{name} = {source}")
        self.assign(name, replace(value, writable=False) if self.role != HOST else value)
        self.g.saw(f"alias of a {value.type.kind}")
        return True

    def swap(self) -> bool:
        """Two values exchanged; what they are stays as it was, so that a loop may repeat it."""
        pairs = []
        for kind in (INDEX, F32, FLOAT, TALL, F32.tile()):
            names = [n for n in self.env.of(kind) if self.may_rebind(n) and self.may_hold(n)]
            pairs += [names[at : at + 2] for at in range(0, len(names) - 1, 2)]
        if not pairs:
            return False
        one, two = self.g.pick(pairs)
        live = self.env.live
        first, second = live[one], live[two]
        if self.loops and first.type.shaped and (first.writable or second.writable):
            if one in self.loops[-1].outer or two in self.loops[-1].outer:
                return False
        if self.g.chance(50):
            self.put(f"{one}, {two} = {two}, {one}")
        else:
            t = self.target(first.type, (one, two))
            self.put(f"{t} = {one}")
            self.put(f"{one} = {two}")
            self.put(f"{two} = {t}")
            self.assign(t, replace(first, writable=False))
        self.assign(one, second)
        self.assign(two, first)
        self.g.saw("swap in a loop" if self.loops else "swap")
        return True

    def inline_pair(self) -> bool:
        """An inline function with two results."""
        left, right = self.integer(1), self.integer(1)
        one, two = self.result_names([INDEX, INDEX])
        self.put(f"{one}, {two} = ordered({left}, {right})")
        self.assign(one, Value(INDEX))
        self.assign(two, Value(INDEX))
        self.g.saw("inline function", "inline function with two results")
        return True

    # --- stores of kernels --------------------------------------------------------------------------------------------

    def targets(self) -> list[str]:
        """Tensors that a kernel may write here."""
        kinds = (F32, TALL, replace(F32, dtype="INT32"))
        return [n for k in kinds for n in self.env.of(k, full=False) if self.can_write(n)]

    def store(self) -> bool:
        """Write an outer tensor, or a part of it."""
        names = self.targets()
        if not names:
            return False
        name = self.g.pick(names)
        self.store_to(name, self.band(name))
        return True

    def ragged_store(self) -> bool:
        """Write a window whose size may be known at run time only."""
        names = self.targets()
        if not names:
            return False
        name = self.g.pick(names)
        kind = self.env.live[name].type
        sources = [n for k in {kind, replace(kind, shape=F32.shape)} for n in self.operands(k)]
        if not sources:
            return False
        ragged(self, name, kind, sorted(sources))
        value = self.env.live[name]
        self.note_write(name)
        self.env.live[name] = value
        return True

    def band(self, name: str) -> str:
        """Where a store of 8 rows may begin."""
        return self.below(ROWS + 1) if self.env.live[name].type == TALL else "0"

    def store_to(self, name: str, row: str, depth: int = 2) -> None:
        g = self.g
        value = self.env.live[name]
        level = g.pick(self.levels())
        part = replace(value.type, kind=level, shape=F32.shape)
        text = self.shaped(part, depth)
        if level == "tile":
            call = f"pl.store({text}, [{row}, 0], {name})"
            # The result need not be used: the tensor is updated in place.
            forms = [f"{name} = {call}", call]
        else:
            forms = [f"{name} = pl.assemble({name}, {text}, [{row}, 0])"]
            if row.isdigit():
                forms.append(
                    f"{name}[{row}:{int(row) + ROWS}, :] = {text}" if value.type == TALL else f"{name}[:] = {text}"
                )
        pick = g.below(len(forms))
        self.put(forms[pick])
        g.saw(("store", "store without a result", "assemble", "subscript write")[(level == "tensor") * 2 + pick])
        self.note_write(name)
        self.env.live[name] = replace(value, full=value.full or value.type.shape == F32.shape)

    # --- branches -----------------------------------------------------------------------------------------------------

    def branch(self) -> bool:
        """``if`` with or without ``elif`` and ``else``. A name is defined behind it when every path defines it."""
        g, env = self.g, self.env
        heads = [f"if {self.condition()}:"]
        if g.chance(15):
            heads.append(f"elif {self.condition()}:")
        closed = g.chance(55)
        if closed:
            heads.append("else:")
        shared = g.pick((INDEX, FLOAT))  # one name may get a value in every branch
        common = self.target(shared) if closed and g.chance(40) else None
        before = dict(env.live)
        paths: list[Live] = [] if closed else [before]
        for head in heads:
            env.live = dict(before)
            with self.block(head):
                with self.keeping(common):
                    self.statements(1, 3)
                if common is not None and self.reached:
                    self.put(f"{common} = {self.bounded_scalar(shared)}")
                    self.assign(common, Value(shared))
            if self.reached:
                paths.append(env.live)
            self.reached = True
        g.saw("if", *(["if with else"] if closed else ["if without else"]), *(["elif"] if len(heads) > 2 else []))
        if self.loops:
            g.saw("if in a loop")
        self.reached = bool(paths)
        env.live = merge(paths) if paths else before
        return True

    def branch_with_results(self) -> bool:
        """``if`` whose branches yield. Names of the branches are not known behind it."""
        g, env = self.g, self.env
        kinds = [self.result_kind() for _ in range(g.between(1, 2))]
        names = self.result_names(kinds)
        before, bound = dict(env.live), dict(env.bound)
        merged: list[list[Value]] = []
        paths: list[Live] = []
        for head in (f"if {self.condition()}:", "else:"):
            env.live, env.bound = dict(before), dict(bound)
            with self.block(head):
                base, self.scope_base = self.scope_base, len(self.loops)
                with self.keeping(*names):
                    self.statements(0, 2)
                self.scope_base = base
                texts, values = self.results(kinds)
                self.put(f"{', '.join(names)} = pl.yield_({', '.join(texts)})")
            paths.append(env.live)
            merged.append(values)
        env.bound = bound
        # Only names from before the branches leave them. (``bound`` also has those of branches that are over.)
        env.live = {n: v for n, v in merge(paths).items() if n in before}
        for name, *values in zip(names, *merged, strict=True):
            one, two = values
            env.bind(name, Value(one.type, one.roots | two.roots, False))
        g.saw("if with yields")
        return True

    def result_kind(self) -> Ty:
        """A type of a value that a branch or a loop hands out."""
        kinds = [(4, INDEX), (2, FLOAT)]
        if "tile" in self.levels():
            kinds.append((4, F32.tile()))
        if "tensor" in self.levels() or (self.role == HOST and self.env.of(F32)):
            kinds.append((4, F32))
        return self.g.weighted(kinds)

    def result_names(self, kinds: list[Ty]) -> list[str]:
        """Names for results: all different."""
        names: list[str] = []
        for kind in kinds:
            names.append(self.target(kind, tuple(names)))
        return names

    def results(self, kinds: list[Ty]) -> tuple[list[str], list[Value]]:
        """What is yielded for these types. (Host code always has an In parameter at hand.)"""
        texts, values = [], []
        for kind in kinds:
            if not kind.shaped:
                texts.append(self.bounded_scalar(kind))
                values.append(Value(kind))
                continue
            held = [n for n in self.operands(kind) if self.may_hold(n)]
            if kind.kind in self.levels() and (not held or self.g.chance(60)):
                text = self.shaped(kind, 1)
                value = self.value_of(text, kind)
                if not self.may_store(value):
                    text = self.constant(kind)
                    value = self.made_here(kind)
                texts.append(text)
                values.append(replace(value, writable=False))
            else:
                name = self.g.pick(held)
                texts.append(name)
                values.append(replace(self.env.live[name], writable=False))
        return texts, values

    # --- loops --------------------------------------------------------------------------------------------------------

    def may_run_at_once(self) -> bool:
        """Whether the iterations of a loop may be independent of each other."""
        return True

    def header(self) -> Header:
        """Some kind of counted loop."""
        g = self.g
        parallel = 3 if self.may_run_at_once() else 0
        pipeline = 0 if self.role == HOST else 3
        kind = g.weighted(((10, "range"), (parallel, "parallel"), (3, "unroll"), (pipeline, "pipeline")))
        choices = list(CONSTANT)
        if kind != "unroll" and g.chance(40):
            choices = [Header(f"({self.integer(1)}) % 3", 0, 2, 2)]
            for name, value in self.env.live.items():
                if value.type == INDEX and value.limit is not None and 1 < value.limit <= 4:
                    top = value.limit - 1
                    choices += [Header(name, 0, top, top), Header(f"{name}, 0, -1", 0, top, top + 1)]
                    choices.append(Header(f"0, {name}, 2", 0, (top + 1) // 2, top))
            g.saw("dynamic bound")
        found = g.pick(choices)
        trips = "zero" if found.most == 0 else "one" if found.least == found.most == 1 else "several"
        g.saw(f"pl.{kind}", f"{trips}-trip loop", *found.features())
        text = f"{found.text}, stage={g.between(1, 2)}" if kind == "pipeline" else found.text
        return replace(found, kind=kind, text=text)

    def open_loop(self, escapes: bool, parallel: bool = False) -> Loop:
        """Begin a body: decide which outer names it may give other values."""
        env = self.env
        outer = dict(env.live)
        rebindable = set()
        for name, value in outer.items():
            if parallel or not self.may_rebind(name):
                continue
            if value.type.shaped:
                if value.full and (not value.writable or self.g.chance(40)):
                    rebindable.add(name)
                    roots = value.roots | {Root.earlier(len(self.loops))}
                    env.live[name] = replace(value, roots=roots, writable=False)
            elif value.limit is None or self.g.chance(30):
                rebindable.add(name)
                env.live[name] = replace(value, limit=None)
        loop = Loop(outer, dict(env.live), rebindable, escapes, parallel=parallel)
        self.loops.append(loop)
        self.g.saw(f"loops nested {len(self.loops)} deep")
        return loop

    def close_loop(self, least: int) -> Live:
        """End a body; gives what is live behind the loop."""
        loop = self.loops.pop()
        paths = [*([self.env.live] if self.reached else []), *loop.nexts]
        if loop.exits or least == 0 or not paths:
            paths += [*loop.exits, loop.outer]
        self.reached = True
        if any(root.level <= len(self.loops) for root in loop.reads & loop.writes):
            self.g.saw("write after read")
        same = loop.entry
        return merge([{n: loop.outer[n] if v is same.get(n) else v for n, v in path.items()} for path in paths])

    @contextmanager
    def repeated(self, most: int) -> Iterator[None]:
        """Statements that run so often; it counts against the budget."""
        outer = self.budget.runs
        self.budget.runs = outer * max(1, most)
        yield
        self.budget.runs = outer

    def affordable(self, most: int) -> bool:
        return self.budget.runs * max(1, most) <= MOST_RUNS

    def index_name(self) -> str:
        """The same few names serve for all loops that are not inside each other."""
        for name in "ijkl":
            if self.env.bound.get(name, INDEX) == INDEX and name not in self.protected and name not in self.env.live:
                return name
        return self.fresh("i")

    def counted_loop(self) -> bool:
        g = self.g
        header = self.header()
        if not self.affordable(header.most):
            return False
        index = self.index_name()
        loop = self.open_loop(header.kind in ("range", "pipeline"), header.kind == "parallel")
        loop.breaks = header.kind == "range"
        with self.block(f"for {index} in pl.{header.kind}({header.text}):"):
            self.assign(index, Value(INDEX, limit=header.limit))
            assigned = header.kind == "range" and g.chance(10)  # the body may assign the index
            with self.keeping(None if assigned else index), self.repeated(header.most):
                self.statements(1, 4)
        self.env.live = self.close_loop(header.least)
        self.env.live.pop(index, None)
        if loop.exits or loop.nexts:
            g.saw("for with an escape")
        return True

    def while_loop(self) -> bool:
        """A natural ``while``; a counter that nothing else changes bounds it."""
        g = self.g
        most = g.between(0, 3)
        if not self.affordable(most):
            return False
        counter = self.fresh("n")
        self.put(f"{counter} = 0")
        self.assign(counter, Value(INDEX))
        more = f" and ({self.loop_condition()})" if g.chance(40) else ""
        with self.keeping(counter, *self.indices_in(more)):
            self.open_loop(True)
            with self.block(f"while {counter} < {most}{more}:"), self.repeated(most):
                self.put(f"{counter} = {counter} + 1")
                self.statements(1, 4)
        self.env.live = self.close_loop(0)
        g.saw("while", *(["call in a while condition"] if "read(" in more or "[" in more else []))
        return True

    def indices_in(self, condition: str) -> list[str]:
        """What the condition of a ``while`` may take for an index: it is asked again behind the body."""
        live = self.env.live
        return [name for name in re.findall(r"\w+", condition) if name in live and live[name].limit is not None]

    # --- loops with explicit carries ----------------------------------------------------------------------------------

    def carried_loop(self) -> bool:
        """A loop with ``init_values``: it yields, or carries on what its names are bound to at the end."""
        g, env = self.g, self.env
        header = self.header()
        if header.kind == "unroll" or not self.affordable(header.most):
            return False
        kinds = [self.result_kind() for _ in range(g.between(1, 3))]
        inits, values = self.results(kinds)
        names = [self.fresh("p") for _ in kinds]
        yields = not g.chance(25)
        bound = dict(env.bound)
        index = self.index_name()
        results = self.result_names(kinds) if yields else [f"{n}_out" for n in names]
        loop = self.open_loop(header.kind in ("range", "pipeline") and g.chance(60), header.kind == "parallel")
        loop.breaks = header.kind == "range"
        loop.carries = tuple(names)
        head = (
            f"for {index}, ({', '.join(names)},) in pl.{header.kind}({header.text}, init_values=({', '.join(inits)},)):"
        )
        with self.block(head), self.repeated(header.most):
            self.enter(names, values)
            self.assign(index, Value(INDEX, limit=header.limit))
            with self.keeping(index, *results, *(names if yields else ())):
                self.statements(0, 3)
            if yields:
                ends = self.yields(kinds, names, values, results)
            else:
                ends = self.rebinds(kinds, names)
        self.leave_carried(bound, header.least, results, values, ends)
        env.live.pop(index, None)
        if loop.exits or loop.nexts:
            g.saw("carried loop with an escape")
        g.saw("carried loop", *([] if yields else ["carried loop without yield"]))
        if any(k.shaped for k in kinds):
            g.saw("tensor or tile carried")
        return True

    def carried_while(self) -> bool:
        """``pl.while_``: the condition is the first statement, the first carry counts."""
        g = self.g
        most = g.between(0, 3)
        if not self.affordable(most):
            return False
        kinds = [INDEX, *[self.result_kind() for _ in range(g.between(0, 2))]]
        inits, values = self.results(kinds)
        names = [self.fresh("p") for _ in kinds]
        bound = dict(self.env.bound)
        results = self.result_names(kinds)
        loop = self.open_loop(g.chance(40))
        head = f"for ({', '.join(names)},) in pl.while_(init_values=({', '.join(['0', *inits[1:]])},)):"
        with self.block(head), self.repeated(most):
            self.enter(names, values)
            more = f" and ({self.loop_condition()})" if g.chance(40) else ""
            self.put(f"pl.cond({names[0]} < {most}{more})")
            with self.keeping(*results, *names, *self.indices_in(more)):
                self.statements(0, 3)
            ends = self.yields(kinds, names, values, results, f"{names[0]} + 1")
        if loop.exits or loop.nexts:
            g.saw("carried while with an escape")
        self.leave_carried(bound, 0, results, values, ends)
        g.saw("carried while", *(["call in a while condition"] if "read(" in more or "[" in more else []))
        return True

    def enter(self, names: list[str], values: list[Value]) -> None:
        """Carried names: what they stand for in a later iteration is one of the initial values or a new one."""
        shared = frozenset((Root.earlier(len(self.loops) - 1),)).union(*(v.roots for v in values))
        for name, value in zip(names, values, strict=True):
            roots = shared if value.type.shaped else frozenset()
            self.assign(name, Value(value.type, roots))

    def leave_carried(
        self, bound: dict[str, Ty], least: int, results: list[str], values: list[Value], ends: list[Value]
    ) -> None:
        """Behind a carried loop only its results and the names from before it are known."""
        outer = self.loops[-1].outer
        live = self.close_loop(least)
        self.env.bound = bound
        self.env.live = {n: v for n, v in live.items() if n in outer}
        for name, init, end in zip(results, values, ends, strict=True):
            self.env.bind(name, Value(init.type, init.roots | end.roots))

    def yields(
        self, kinds: list[Ty], names: list[str], values: list[Value], results: list[str], first: str = ""
    ) -> list[Value]:
        """The yield at the end of a body. ``first``: what the first carry gets."""
        start = 1 if first else 0
        if len(kinds) >= start + 2 and kinds[start] == kinds[start + 1] and self.g.chance(60):
            rest, ends = self.results(kinds[start + 2 :])
            texts = [names[start + 1], names[start], *rest]
            ends = [values[start + 1], values[start], *ends]
            self.g.saw("carries swapped")
        else:
            texts, ends = self.results(kinds[start:])
        if first:
            texts, ends = [first, *texts], [Value(INDEX), *ends]
        shown = results[0] if len(results) == 1 and self.g.chance(50) else f"({', '.join(results)},)"
        self.put(f"{shown} = pl.yield_({', '.join(texts)})")
        return ends

    def rebinds(self, kinds: list[Ty], names: list[str]) -> list[Value]:
        """The end of a body without a yield: its names get their last values."""
        for name, kind in zip(names, kinds, strict=True):
            if self.g.chance(70) and self.reached:
                (text,), (end,) = self.results([kind])
                self.put(f"{name} = {text}")
                self.assign(name, end)
        return [self.env.live.get(n, Value(k)) for n, k in zip(names, kinds, strict=True)]

    # --- escapes ------------------------------------------------------------------------------------------------------

    def can_escape(self) -> bool:
        return len(self.loops) > self.scope_base and self.loops[-1].escapes

    def escape(self) -> bool:
        """``break`` or ``continue`` under a condition."""
        g, env = self.g, self.env
        loop = self.loops[-1]
        word = g.pick(("continue", "break") if loop.breaks else ("continue",))
        before = dict(env.live)
        head = f"if {self.condition()}:"
        swapped = g.chance(25)  # in the else branch
        with self.block(head):
            if swapped:
                self.statements(1, 2)
                other = env.live
            else:
                self.statements(0, 2)
                self.leave(word, loop)
        if swapped and not self.reached:  # both branches leave
            other = before
        if swapped:
            reached = self.reached
            env.live = dict(before)
            self.reached = True
            with self.block("else:"):
                self.statements(0, 1)
                self.leave(word, loop)
            env.live, self.reached = other, reached
        else:
            env.live, self.reached = before, True
            if g.chance(30):
                with self.block("else:"):
                    self.statements(1, 2)
        where = "on the host" if self.role == HOST else "in a kernel"
        g.saw(f"{word} {where}")
        if self.indent > 4:
            g.saw("nested escape")
        return True

    def leave(self, word: str, loop: Loop) -> None:
        if not self.reached:
            return
        self.put(word)
        (loop.exits if word == "break" else loop.nexts).append(dict(self.env.live))
        self.reached = False
