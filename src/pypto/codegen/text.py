"""Text with blocks, for generators of C++: lines are collected in a tree and rendered at the end.

A variable is declared where it gets its value. If something behind that block mentions it, its declaration moves to the
nearest block around both, and an assignment stays where the declaration was:

>>> out = Writer()
>>> with out.opened("PTO2_SCOPE() {"):
...     tid = out.declare("PTO2TaskId", "tid", "outs.task_id()", empty=" = PTO2TaskId::invalid()")
>>> out.line(f"use({out.mention(tid)});")
>>> print(out.render(), end="")
PTO2TaskId tid = PTO2TaskId::invalid();
PTO2_SCOPE() {
    tid = outs.task_id();
}
use(tid);

So C++ blocks, which end the life of names, never decide what a program may name: the IR does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


class Group:
    """A place in a block that more lines may be put into later."""

    __slots__ = ("block", "items")

    def __init__(self, block: Block) -> None:
        self.block = block
        self.items: list[Any] = []


class Block:
    """A C++ block. ``before``: the place in front of its header, in the block around it; ``place``: the statement that
    its header was written for."""

    __slots__ = ("before", "body", "depth", "footer", "header", "parent", "place")

    def __init__(self, header: str, footer: str | None, parent: Block | None, before: Group | None, depth: int) -> None:
        self.header = header
        self.footer = footer  # None: the next block's header closes this one
        self.parent = parent
        self.before = before
        self.place: Any = None
        self.depth = depth
        self.body = Group(self)

    def holds(self, other: Block | None) -> bool:
        """Whether ``other`` is this block or one inside it."""
        while other is not None and other.depth > self.depth:
            other = other.parent
        return other is self


def around(a: Block, b: Block) -> Block:
    """The innermost block that holds both."""
    while a.depth > b.depth:
        a = a.parent  # type: ignore[assignment]
    while b.depth > a.depth:
        b = b.parent  # type: ignore[assignment]
    while a is not b:
        a, b = a.parent, b.parent  # type: ignore[assignment]
    return a


class Local:
    """A C++ variable. ``reach``: the innermost block that holds its definition and everything that mentions it.

    ``extent``: how many elements an array has. ``region``, ``valid_in`` and ``sure`` are the generator's: the part of
    the program that the variable belongs to, the block in which it gets the value that a reader means, whether an id is
    one for certain, and whether what the variable refers to ends with its block.
    """

    __slots__ = (
        "block", "ctype", "declaration", "extent", "in_place", "moved_to", "name", "outside", "reach", "region",
        "stays", "sure", "valid_in",
    )  # fmt: skip

    def __init__(self, name: str, ctype: str, block: Block, extent: int | None) -> None:
        self.name = name
        self.ctype = ctype
        self.extent = extent
        self.block = block
        self.reach = block
        self.declaration = ""  # without the value
        self.in_place: list[str] = []  # the definition, declared where it gets its value
        self.moved_to: list[str] = []  # the same, declared elsewhere
        self.outside: Any = None  # the place of the first mention outside of the block
        self.region: Any = None
        self.valid_in = block
        self.sure = False
        self.stays = False

    @property
    def moved(self) -> bool:
        """Whether it is declared outside of the block that gives it its value. Known when all is printed."""
        return self.reach is not self.block

    def lines(self) -> list[str]:
        """What stands where it gets its value."""
        return self.moved_to if self.moved else self.in_place


class Writer:
    """Collects the text. ``place`` is remembered with each line that is written."""

    def __init__(self, depth: int = 0) -> None:
        self.root = Block("", None, None, None, depth)
        self.block = self.root
        self.place: Any = None
        self.locals: list[Local] = []
        self._group = self.root.body

    # --- writing ------------------------------------------------------------------------------------------------------

    def line(self, text: str = "") -> None:
        """One line at the current indentation."""
        self._group.items.append((text, self.place))

    def later(self, lines: Callable[[], list[str]]) -> None:
        """Lines that are only known when everything is printed."""
        self._group.items.append((lines, self.place))

    def group(self) -> Group:
        """A place to write to later, here."""
        made = Group(self.block)
        self._group.items.append(made)
        return made

    @contextmanager
    def at(self, group: Group) -> Iterator[None]:
        """Write to a place."""
        here = self.block, self._group
        self.block, self._group = group.block, group
        try:
            yield
        finally:
            self.block, self._group = here

    @contextmanager
    def opened(self, header: str, footer: str | None = "}", before: Group | None = None) -> Iterator[Block]:
        """A block with a header. ``before``: for an else branch, the place in front of its if."""
        made = Block(header, footer, self.block, before or self.group(), self.block.depth + 1)
        made.place = self.place
        self._group.items.append(made)
        with self.at(made.body):
            yield made

    # --- variables ----------------------------------------------------------------------------------------------------

    def declare(self, ctype: str, name: str, value: str | None, *, empty: str = "{}") -> Local:
        """Declare a variable here, with its value; None: it gets one later (``empty`` follows the name meanwhile)."""
        local = self._declared(ctype, name, None)
        local.declaration = f"{ctype.removeprefix('const ').removesuffix('&')} {name}{empty};"
        local.in_place = [local.declaration if value is None else f"{ctype} {name} = {value};"]
        local.moved_to = [] if value is None else [f"{name} = {value};"]
        return local

    def declare_array(self, ctype: str, name: str, extent: int, fill: str, *, empty: str | None) -> Local:
        """Declare an array here whose elements are ``fill``, which may mention the index ``__init_i``.

        ``empty``: what else elements may be that have no value yet; None: ``{0}`` is good for that.
        """
        local = self._declared(ctype, name, extent)
        loop = f"for (int64_t __init_i = 0; __init_i < {extent}; ++__init_i) {name}[__init_i] = "
        declared = f"{ctype} {name}[{extent}]"
        local.declaration = f"{declared} = {{0}};" if empty is None else f"{declared}; {loop}{empty};"
        local.in_place = [f"{declared} = {{0}};" if empty is None and fill == "0" else f"{declared}; {loop}{fill};"]
        local.moved_to = [f"{loop}{fill};"]
        return local

    def _declared(self, ctype: str, name: str, extent: int | None) -> Local:
        local = Local(name, ctype, self.block, extent)
        self.locals.append(local)
        self._group.items.append((local.lines, self.place))
        return local

    def mention(self, local: Local, place: Any = None) -> str:
        """The name of a variable, for text of the current block."""
        if not local.reach.holds(self.block):
            local.reach = around(local.reach, self.block)
            if local.outside is None:
                local.outside = place if place is not None else self.place
        return local.name

    # --- the result ---------------------------------------------------------------------------------------------------

    def place_declarations(self) -> None:
        """Put the declarations of the variables that are mentioned outside where all mentions see them."""
        for local in self.locals:
            if local.moved:
                block = local.block
                while block.parent is not local.reach:
                    block = block.parent  # type: ignore[assignment]
                assert block.before is not None  # every block but the outermost has a place in front
                block.before.items.append((local.declaration, None))

    def lines(self) -> list[tuple[str, Any]]:
        """Each line with the place that it was written for."""
        self.place_declarations()
        found: list[tuple[str, Any]] = []
        self._render(self.root.body, self.root.depth, found)
        return found

    def render(self) -> str:
        """The text."""
        return "".join(f"{text}\n" for text, _ in self.lines())

    def _render(self, group: Group, depth: int, found: list[tuple[str, Any]]) -> None:
        indent = "    " * depth
        for item in group.items:
            if type(item) is tuple:
                text, place = item
                for line in (text,) if type(text) is str else text():
                    found.append((indent + line if line else "", place))
            elif type(item) is Group:
                self._render(item, depth, found)
            else:
                found.append((indent + item.header, item.place))
                self._render(item.body, depth + 1, found)
                if item.footer is not None:
                    found.append((indent + item.footer, None))


__all__ = ["Block", "Group", "Local", "Writer", "around"]
