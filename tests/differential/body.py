"""The body of a generated function: names, expressions, and the plumbing that statements share."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cache

from .choices import Choices
from .env import BOOL, COLS, F32, FLAGS, FLOAT, I32, INDEX, INT32, ROWS, TALL, Env, Live, Root, Ty, Value
from .ops import NONZERO, POSITIVE, SMALL, Entry, catalogue

COLUMN = Ty("tensor", "FP32", (ROWS, 1))
ROW = Ty("tensor", "FP32", (1, COLS))
POOL = ("a", "b", "c", "d", "e", "f", "g", "h", "q", "q_1", "q_2", "buf", "buf_1", "acc", "tmp", "u", "v", "w")
ROUNDING = ("round", "none", "rint", "floor", "ceil", "trunc")
HOST, KERNEL, SCOPE = "host", "kernel", "scope"
LEVELS = {HOST: (), KERNEL: ("tile",), SCOPE: ("tensor", "tile")}


@cache
def ways(kind: Ty) -> tuple[tuple[Entry, ...], ...]:
    """The ways to compute a type, by op: each op is as likely as another."""
    by_name: dict[str, list[Entry]] = {}
    for entry in catalogue().get(kind, ()):
        by_name.setdefault(entry.name, []).append(entry)
    return tuple(map(tuple, by_name.values()))


@dataclass
class Loop:
    """A loop that is open. ``outer``: what was live before it, and ``entry`` as the body sees it; ``rebindable``: those
    that the body may give another value. ``carries``: names of its ``init_values``. ``exits`` and ``nexts``: what is
    live where a break or a continue leaves."""

    outer: Live
    entry: Live
    rebindable: set[str]
    escapes: bool  # may be left by break and continue
    breaks: bool = True  # by break too
    carries: tuple[str, ...] = ()
    parallel: bool = False  # the iterations may run at once
    exits: list[Live] = field(default_factory=list)
    nexts: list[Live] = field(default_factory=list)
    reads: set[Root] = field(default_factory=set)
    writes: set[Root] = field(default_factory=set)


@dataclass
class Budget:
    """How much a program may still grow, and how often the innermost statements run."""

    statements: int
    runs: int = 1


class Body:
    """Writes one function body. ``role`` says where the next statement stands: on the host, in a kernel function, or
    in a kernel scope of the host."""

    def __init__(self, choices: Choices, role: str, budget: Budget, indent: int = 2) -> None:
        self.g = choices
        self.role = role
        self.budget = budget
        self.env = Env()
        self.lines: list[str] = []
        self.indent = indent
        self.loops: list[Loop] = []
        self.scope_base = 0  # loops from here on can be left by a break
        self.reached = True
        self.protected: set[str] = set()  # names that keep their value for now
        self.pinned: set[str] = set()  # tensors that may be written, but whose name stays theirs
        self.hidden: set[str] = set()  # tensors that are not read for now
        self.host_math = False  # tensor operations outside of kernels
        self.host_stores = False  # and updates of tensors in place
        self.inlines = True  # calls of inline functions may stand here: their statements go in front
        self.stores = True
        self.ragged = 6  # how often chains of :mod:`.ragged` are to be
        self.made = 0

    # --- text ---------------------------------------------------------------------------------------------------------

    def put(self, text: str) -> None:
        self.lines.append("    " * self.indent + text)

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        """Statements below a line; an empty block says ``pass``."""
        self.put(head)
        self.indent += 1
        before = len(self.lines)
        yield
        if len(self.lines) == before:
            self.put("pass")
        self.indent -= 1

    def fresh(self, stem: str) -> str:
        """A name that nothing in this function has."""
        self.made += 1
        return f"{stem}{self.made}"

    # --- names --------------------------------------------------------------------------------------------------------

    def may_rebind(self, name: str) -> bool:
        if name in self.protected or name in self.pinned:
            return False
        return all(name not in loop.outer or name in loop.rebindable for loop in self.loops)

    def target(self, kind: Ty, but: tuple[str, ...] = ()) -> str:
        """A name for a new value: one that has another value now, one of the pool, or a new one."""
        bound = {**self.env.bound, **self.env.promised}
        known = [n for n, t in bound.items() if t == kind and n not in but and self.may_rebind(n)]
        free = [n for n in POOL if n not in bound and n not in but]
        if known and (not free or self.g.chance(60)):
            name = self.g.pick(known)
            self.g.saw("name reused" if name not in self.env.live else "name rebound")
            return name
        name = free[self.g.below(min(len(free), 6))] if free else self.fresh("z")
        self.env.promised[name] = kind
        return name

    @contextmanager
    def keeping(self, *names: str | None) -> Iterator[None]:
        """Statements that do not assign these names."""
        added = {n for n in names if n is not None} - self.protected
        self.protected |= added
        yield
        self.protected -= added

    def assign(self, name: str, value: Value) -> None:
        self.env.bind(name, value)

    def made_here(self, kind: Ty, full: bool = True) -> Value:
        """A fresh value of this place."""
        roots = frozenset((Root(len(self.loops)),)) if kind.shaped else frozenset()
        return Value(kind, roots, kind.shaped, full)

    # --- storage ------------------------------------------------------------------------------------------------------

    def may_hold(self, name: str) -> bool:
        """Whether another name may stand for this value in the next iteration: nothing writes it there."""
        value = self.env.live[name]
        if value.type.kind != "tensor" or not self.loops or name in self.loops[-1].rebindable:
            return True
        return all(root.fixed or root.level >= len(self.loops) for root in value.roots)

    def value_of(self, text: str, kind: Ty) -> Value:
        """What an expression of :meth:`shaped` gives: a name, a part of a tensor, or a value of its own."""
        name = text.removeprefix("pl.slice(")
        name = name[: min((at for at in map(name.find, "[,(") if at >= 0), default=len(name))]
        known = self.env.live.get(name)
        if known is None or not known.type.shaped:
            return self.made_here(kind)
        return Value(kind, known.roots)

    def can_write(self, name: str) -> bool:
        """Whether a tensor may be updated in place: no other name that outlives the iteration stands for it."""
        value = self.env.live[name]
        if not value.writable or name in self.protected or any(root.fixed for root in value.roots):
            return False
        if self.role in (HOST, SCOPE) and any(
            loop.parallel and any(root.level <= depth for root in value.roots) for depth, loop in enumerate(self.loops)
        ):
            return False  # another iteration may write it at the same time, and what it writes may differ
        others = self.env.sharing(value.roots, name)
        outer = self.loops[-1].outer if self.loops else {}
        return not any(other in outer or other in self.protected for other in others)

    def note_read(self, value: Value) -> None:
        for root in value.roots:
            root.read = True
            for loop in self.loops:
                loop.reads.add(root)

    def note_write(self, name: str) -> None:
        """Names that share the storage are not used any more; says where a write follows a read."""
        value = self.env.live[name]
        for other in self.env.sharing(value.roots, name):
            del self.env.live[other]
        for root in value.roots:
            if root.read:
                self.g.saw("write after read")
            root.touched = True
            for loop in self.loops:
                loop.writes.add(root)

    # --- scalar expressions -------------------------------------------------------------------------------------------

    def ints(self) -> list[str]:
        return self.env.of(INDEX)

    def integer(self, depth: int = 2) -> str:
        """An INDEX expression of small value."""
        g = self.g
        inner = 1 if depth else 0
        pick = g.weighted(((8, 0), (8, 1), (8 * inner, 2), (4 * inner, 3), (2 * inner, 4), (inner * self.inlines, 5)))
        if pick == 0 or (pick == 1 and not self.ints()):
            return str(g.between(0, 7))
        if pick == 1:
            return g.pick(self.ints())
        left, right = self.integer(depth - 1), self.integer(depth - 1)
        if pick == 5:
            g.saw("inline function")
            return g.pick((f"twice({left})", f"apart({left}, {right})"))
        if pick == 2:
            return f"({left} {g.pick('+-*')} {right})"
        if pick == 3:
            return f"({left}) {g.pick(('// 2', '% 5', '// 3', '% 7'))}"
        if g.chance(30):
            return f"-({left})"
        return f"{g.pick(('min', 'max'))}({left}, {right})"

    def below(self, limit: int) -> str:
        """An INDEX expression in ``0 .. limit - 1``."""
        g = self.g
        known = [n for n in self.ints() if (self.env.live[n].limit or limit + 1) <= limit]
        pick = g.below(3)
        if pick == 1 and known:
            return g.pick(known)
        if pick == 2 and limit > 1:
            return f"({self.integer(1)}) % {limit}"
        return str(g.below(limit))

    def real(self, depth: int = 1) -> str:
        """An FP32 expression."""
        g = self.g
        names = self.env.of(FLOAT)
        pick = g.weighted(((3, 0), (4 if names else 0, 1), (3 if depth else 0, 2), (1, 3), (1, 4)))
        if pick == 0:
            return g.pick(("1.0", "0.5", "2.0", "-1.5"))
        if pick == 1:
            return g.pick(names)
        if pick == 2:
            return f"({self.real(depth - 1)} {g.pick('+-*')} {self.real(depth - 1)})"
        if pick == 3:
            return f"pl.cast(({self.integer(1)}) % 5, pl.FP32)"
        sources = [n for n in self.env.of(F32) + self.env.of(TALL) if self.readable(n)]
        return self.read(g.pick(sources)) if sources and self.role != KERNEL else "0.25"

    def readable(self, name: str) -> bool:
        return name not in self.hidden

    def read(self, name: str) -> str:
        """One element of a tensor."""
        value = self.env.live[name]
        indices = ", ".join(self.below(n) for n in value.type.shape)
        self.g.saw("tensor.read" if self.role == HOST else "tensor.read in a kernel")
        return f"{name}[{indices}]" if self.g.chance(40) else f"pl.tensor.read({name}, [{indices}])"

    def small_int(self) -> str:
        """An INT32 expression."""
        names = self.env.of(INT32)
        pick = self.g.below(3)
        if pick == 1 and names:
            return self.g.pick(names)
        if pick == 2:
            return f"pl.cast(({self.integer(1)}) % 9, pl.INT32)"
        return f"pl.const({self.g.between(1, 5)}, pl.INT32)"

    def condition(self, depth: int = 1) -> str:
        g = self.g
        flags = [n for n in self.env.of(FLAGS) if self.readable(n)]
        bools = self.env.of(BOOL)
        pick = g.weighted(
            ((6, 0), (2 if bools else 0, 1), (3 if flags else 0, 2), (2 if depth else 0, 3), (2 if depth else 0, 4))
        )
        if pick == 0:
            return f"{self.integer(1)} {g.pick(('<', '>', '==', '!=', '<=', '>='))} {self.integer(1)}"
        if pick == 1:
            return g.pick(bools)
        if pick == 2:
            g.saw("tensor.read in a condition")
            return f"{self.read(g.pick(flags))} {g.pick(('>', '<', '==', '!='))} 0"
        if pick == 3:
            return f"not ({self.condition(depth - 1)})"
        return f"({self.condition(depth - 1)}) {g.pick(('and', 'or'))} ({self.condition(depth - 1)})"

    def loop_condition(self) -> str:
        """A condition that is evaluated before each iteration: nothing may be put in front of it."""
        inlines, self.inlines = self.inlines, False
        text = self.condition()
        self.inlines = inlines
        return text

    def scalar(self, kind: Ty) -> str:
        """An expression of a scalar type."""
        if kind == BOOL:
            return self.condition()
        if kind == FLOAT:
            return self.real()
        return self.small_int() if kind == INT32 else self.integer()

    def bounded_scalar(self, kind: Ty) -> str:
        """An expression for a name: values must not grow from iteration to iteration."""
        text = self.scalar(kind)
        if kind == INDEX and (self.loops or self.g.chance(40)):
            return f"({text}) % 97"
        if kind == FLOAT and self.loops:
            return f"min(max({text}, -8.0), 8.0)"
        return text

    # --- tensor and tile expressions ----------------------------------------------------------------------------------

    def levels(self) -> tuple[str, ...]:
        return ("tensor",) if self.role == HOST and self.host_math else LEVELS[self.role]

    def operands(self, kind: Ty) -> list[str]:
        return [n for n in self.env.of(kind) if self.readable(n)]

    def leaf(self, kind: Ty) -> str:
        """A value of a type without computing much."""
        g = self.g
        if kind.dtype in ("FP16", "BF16"):  # no name has these
            mode = f', mode="{g.pick(ROUNDING)}"' if g.chance(50) else ""
            return f"pl.cast({self.leaf(replace(kind, dtype='FP32'))}, target_type=pl.{kind.dtype}{mode})"
        choices = list(self.operands(kind))
        if kind.kind == "tile" and kind.shape == F32.shape:
            choices += [f"pl.load({n}, [0, 0], [{ROWS}, {COLS}])" for n in self.operands(kind.tensor())]
        if kind.shape == F32.shape and kind.dtype == "FP32":
            for n in self.operands(TALL):
                row = self.below(ROWS + 1)
                if kind.kind == "tile":
                    choices.append(f"pl.load({n}, [{row}, 0], [{ROWS}, {COLS}])")
                else:
                    choices.append(f"pl.slice({n}, [{ROWS}, {COLS}], [{row}, 0])")
                    choices.append(f"{n}[{ROWS}:, :]" if g.chance(50) else f"{n}[0:{ROWS}]")
        if choices:
            return g.pick(choices)
        return self.constant(kind)

    def constant(self, kind: Ty) -> str:
        """One value everywhere."""
        value = self.g.pick(("1.0", "2.0", "-0.5") if kind.dtype != "INT32" else ("1", "3", "-2"))
        return f"pl.{kind.kind}.full({list(kind.shape)}, dtype=pl.{kind.dtype}, value={value})"

    def guarded(self, text: str, guard: str, kind: Ty) -> str:
        """An operand kept in the domain of its op."""
        if guard == POSITIVE:
            return f"pl.maximum(pl.abs({text}), 0.5)"
        assert guard == SMALL
        return f"pl.minimum({text}, 2.0)"

    def apply(self, entry: Entry, depth: int) -> str:
        """A call of an op."""
        parts = []
        for i, kind in enumerate(entry.operands):
            guard = entry.guard[1] if entry.guard is not None and entry.guard[0] == i else None
            if i in entry.scratch:
                self.g.saw("scratch tile")
                parts.append(
                    f"pl.create_tile({list(kind.shape)}, dtype=pl.{kind.dtype}, target_memory=pl.MemorySpace.Vec)"
                )
            elif kind.kind == "scalar":
                simple = guard == NONZERO or self.g.chance(60)
                if kind.dtype == "INT32":
                    parts.append(self.g.pick(("2", "3", "5")) if simple else self.small_int())
                else:
                    parts.append(self.g.pick(("2.0", "0.5", "-1.0")) if simple else self.real())
            else:
                text = self.shaped(kind, depth - 1)
                parts.append(self.guarded(text, guard, kind) if guard else text)
        if entry.base in ("add", "sub", "mul", "adds", "subs", "muls") and self.g.chance(20):
            symbol = {"add": "+", "sub": "-", "mul": "*"}[entry.base[:3]]
            return f"({parts[0]} {symbol} {parts[1]})"
        text = f"{self.g.pick(entry.spellings)}({', '.join(parts)})"
        # Values stay small, or all of them would end up as infinities.
        return f"pl.minimum(pl.maximum({text}, -64.0), 64.0)" if entry.grows and kind_is_float(entry) else text

    def shaped(self, kind: Ty, depth: int) -> str:
        """An expression of a tensor or tile type."""
        g = self.g
        if depth <= 0 or g.chance(25):
            return self.leaf(kind)
        if g.chance(6) and kind.dtype == "FP32":
            inner = g.pick(("INT32", "BF16", "FP16"))
            g.saw("cast")
            # A number is FP32, and an operation of tensors with it, too.
            narrow = inner != "INT32" and kind.kind == "tensor"
            part = replace(kind, dtype=inner)
            text = self.leaf(part) if narrow else self.shaped(part, depth - 1)
            return f"pl.cast({text}, target_type=pl.FP32)"
        if self.inlines and kind.dtype == "FP32" and g.chance(6):
            g.saw("inline function", "inline function on tensors or tiles")
            return f"blend({self.shaped(kind, depth - 1)}, {self.shaped(kind, depth - 1)})"
        entry = g.pick(g.pick(ways(kind)))
        text = self.apply(entry, depth)
        if any(len(part) > 12 and "(" in part for part in text.split("(", 1)[1:]):
            g.saw("nested call")
        g.features[f"op {entry.name}"] += 1
        return text

    def shaped_kind(self) -> Ty:
        """A type to compute at this place."""
        base = self.g.weighted(((12, F32), (4, I32), (2, COLUMN), (2, ROW)))
        return replace(base, kind=self.g.pick(self.levels()))


def kind_is_float(entry: Entry) -> bool:
    return entry.result.dtype in ("FP32", "FP16", "BF16")
