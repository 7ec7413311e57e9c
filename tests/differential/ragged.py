"""Chains of tile operations of which only a part is valid, in a kernel: windows at places and of sizes that are known at
run time, reductions and broadcasts, narrow element types, rounding modes, and tiles that loops and branches hand on.

The names are new and unknown outside, so that a chain may stand wherever a kernel may store.
"""

from __future__ import annotations

from collections.abc import Callable

from .body import ROUNDING, Body
from .env import COLS, ROWS, Ty

WINDOWS = ((ROWS, COLS), (ROWS, COLS), (4, COLS), (ROWS, 8), (2, 8), (1, COLS))
FLOATS = ("FP32", "FP16", "BF16")
INTEGERS = ("INT32", "INT16", "INT8")
SIGNS = 6  # comparisons


class Chain:
    """``text``: the name of the last value; ``dtype``: its element type. All have the shape and the valid part of the
    first, except for vectors, which are used at once."""

    def __init__(self, body: Body, sources: list[str], dtype: str) -> None:
        self.body = body
        self.g = body.g
        self.shape = self.g.pick(WINDOWS)
        self.dtype = dtype
        self.row, self.column = (self._place(n, size) for n, size in zip((ROWS, COLS), self.shape, strict=True))
        self.valid = [self._extent(n) for n in self.shape]
        self.first = self._load(self.g.pick(sources))
        self.others = [self.first, self._load(self.g.pick(sources))]
        self.last = self.first
        self.g.saw("ragged tile")

    # --- text ---------------------------------------------------------------------------------------------------------

    def _put(self, text: str) -> str:
        """A name for the value of an expression."""
        name = self.body.fresh("v")
        self.body.put(f"{name} = {text}")
        return name

    def _place(self, extent: int, size: int) -> str:
        if extent == size:
            return "0"
        return self._put(f"({self.body.integer(1)}) % {extent - size + 1}")

    def _extent(self, size: int) -> str:
        if size == 1 or self.g.chance(35):
            return str(size if self.g.chance(60) else self.g.between(1, size))
        self.g.saw("valid extent known at run time")
        return self._put(f"({self.body.integer(1)}) % {size} + 1")

    def _load(self, source: str) -> str:
        place, shape, valid = f"[{self.row}, {self.column}]", list(self.shape), ", ".join(self.valid)
        return self._put(f"pl.load({source}, {place}, {shape}, valid_shape=[{valid}])")

    def _scratch(self) -> str:
        shape = list(self.shape)
        return f"pl.create_tile({shape}, dtype=pl.{self.dtype}, target_memory=pl.MemorySpace.Vec)"

    @property
    def is_float(self) -> bool:
        return self.dtype in FLOATS

    def _bounded(self, text: str, low: str = "-64", high: str = "64") -> str:
        dot = ".0" if self.is_float else ""
        return f"pl.minimum(pl.maximum({text}, {low}{dot}), {high}{dot})"

    def _number(self) -> str:
        return self.g.pick(("2.0", "0.5", "-1.5") if self.is_float else ("2", "3", "-1"))

    # --- steps --------------------------------------------------------------------------------------------------------

    def step(self) -> None:
        steps: list[tuple[int, Callable[[], str]]] = [
            (4, self._binary), (3, self._scalar), (2, self._unary), (3, self._rows), (3, self._columns),
            (2, self._loop), (2, self._branch), (1, self._select), (2, self._write), (1, self._assemble),
        ]  # fmt: skip
        self.last = self._put(self.g.weighted(steps)())
        self.others.append(self.last)

    def _other(self) -> str:
        return self.g.pick(self.others[-3:])

    def _binary(self) -> str:
        op = self.g.pick(("add", "sub", "mul", "maximum", "minimum"))
        if self.dtype in ("FP32", "FP16") and self.g.chance(20):
            return self._bounded(f"pl.div({self.last}, pl.maximum(pl.abs({self._other()}), 0.5))")
        return self._bounded(f"pl.{op}({self.last}, {self._other()})")

    def _scalar(self) -> str:
        return self._bounded(
            f"pl.{self.g.pick(('add', 'sub', 'mul', 'maximum', 'minimum'))}({self.last}, {self._number()})"
        )

    def _unary(self) -> str:
        if self.is_float and self.g.chance(50):
            return f"pl.exp(pl.minimum({self.last}, 2.0))"
        return f"pl.{self.g.pick(('neg', 'abs'))}({self.last})"

    def _rows(self) -> str:
        how = self.g.pick(("max", "sum", "min"))
        self.g.saw("reduction of ragged rows")
        if self.dtype == "INT8" or (self.dtype == "BF16" and how == "min"):
            return self._unary()  # there is no such reduction
        vector = self._put(self._bounded(f"pl.row_{how}({self.last}, {self._scratch()})"))
        return self._bounded(f"pl.row_expand_{self.g.pick(('sub', 'mul', 'max', 'min'))}({self._other()}, {vector})")

    def _columns(self) -> str:
        self.g.saw("reduction of ragged columns")
        vector = self._put(self._bounded(f"pl.col_{self.g.pick(('max', 'sum', 'min'))}({self.last})"))
        how = self.g.pick(("add", "sub", "mul", "max", "min"))
        return self._bounded(f"pl.col_expand_{how}({self._other()}, {vector})")

    def _select(self) -> str:
        sign = self.g.below(SIGNS)
        self.g.saw("selection by a mask")
        return f"pl.sel(pl.cmp({self.last}, {self._other()}, cmp_type={sign}), {self.last}, {self._other()}, {self._scratch()})"

    def _change(self) -> str:
        """A tile to change in place, under all of its names; most are needed again."""
        tile = self._other()
        if self.g.chance(40):
            tile = self._put(f"pl.move({tile}, target_memory=pl.MemorySpace.Vec)")
            self.others.append(tile)
        self.g.saw("tile changed in place")
        return tile

    def _write(self) -> str:
        tile = self._change()
        number = self._number() if self.dtype == "FP32" else f"pl.const({self._number()}, pl.{self.dtype})"
        self.body.put(f"pl.tile.write({tile}, [0, 0], {number})")
        return self._bounded(f"pl.add({self.last}, {tile})")

    def _assemble(self) -> str:
        rows, columns = self.shape
        if self.valid != [str(rows), str(columns)]:
            return self._binary()
        part = self._put(f"pl.slice({self.last}, [1, {columns}], [{self._place(rows, 1)}, 0])")
        tile = self._change()
        self.body.put(f"pl.tile.assemble({tile}, {part}, [{self._place(rows, 1)}, 0])")
        return self._bounded(f"pl.sub({self._other()}, {tile})")

    def _loop(self) -> str:
        """A loop that carries one tile or two, which may change places."""
        body, other, last = self.body, self._other(), self.last
        index, one, two, first, second = (body.fresh(s) for s in ("i", "p", "p", "v", "v"))
        count = f"({body.integer(1)}) % 3" if self.g.chance(50) else str(self.g.between(0, 3))
        with body.block(f"for {index}, ({one}, {two}) in pl.range({count}, init_values=({last}, {other})):"):
            self.last = one
            outside = self.others
            self.others = [*outside, one, two]
            made = self._put(self.g.pick((self._binary, self._rows, self._write))())
            self.others = outside
            ends = (two, made) if self.g.chance(50) else (made, two)
            body.put(f"{first}, {second} = pl.yield_({', '.join(ends)})")
        self.g.saw("ragged tiles carried")
        if self.g.chance(30):
            return second
        return f"pl.{self.g.pick(('maximum', 'add', 'sub'))}({first}, {second})"

    def _branch(self) -> str:
        body, last = self.body, self.last
        result = body.fresh("v")
        with body.block(f"if {body.condition()}:"):
            outside = list(self.others)
            made = self._put(self.g.pick((self._binary, self._columns, self._write))())
            self.others = outside
            body.put(f"{result} = pl.yield_({made})")
        with body.block("else:"):
            body.put(f"{result} = pl.yield_({last if self.g.chance(50) else self._other()})")
        self.g.saw("ragged tile of a branch")
        if self.g.chance(30):
            return result
        return f"pl.{self.g.pick(('neg', 'abs'))}({result})"

    def convert(self, dtype: str) -> None:
        """Go on in another element type."""
        if dtype == self.dtype:
            return
        mode = f', mode="{self.g.pick(ROUNDING)}"' if self.g.chance(70) else ""
        bounded = self._bounded(self.last, "-32", "32")  # what narrow integers hold, too
        self.last = self._put(f"pl.cast({bounded}, target_type=pl.{dtype}{mode})")
        self.dtype = dtype
        self.others = [self.last]
        self.g.saw(f"ragged tile of {dtype}")

    def store(self, target: str) -> None:
        if self.g.chance(20) and self.dtype != "INT8":
            self.g.saw("fillpad")
            value = self.g.pick(("zero", "max", "min"))
            self.last = self._put(f"pl.fillpad({self.last}, pad_value=pl.PadValue.{value})")
            self.last = self._put(self._bounded(self.last))
        self.body.put(f"pl.store({self.last}, [{self.row}, {self.column}], {target})")


def ragged(body: Body, target: str, kind: Ty, sources: list[str]) -> None:
    """A chain that ends in a part of a tensor."""
    g = body.g
    chain = Chain(body, sources, kind.dtype)
    most = 3 if body.ragged < 20 else 6
    for _ in range(g.between(1, most)):
        chain.step()
    if g.chance(70):
        chain.convert(g.pick(FLOATS if kind.dtype == "FP32" and g.chance(60) else INTEGERS))
        for _ in range(g.between(1, most)):
            chain.step()
        chain.convert(kind.dtype)
    chain.store(target)


__all__ = ["ragged"]
