"""Operations that work row by row, fused into loops.

A group holds operations whose values have the same rows: element-wise ones, reductions of a row, stores of a window.
Its code runs them all for one row before it goes to the next, so that intermediate values stay in registers, or in a
buffer of one row. Within a row there are as many loops over the columns as reductions make necessary: a value that
depends on the result of a reduction is computed in a later loop, and what it needs from an earlier one is computed
again there if that is cheap.

    softmax of 64 rows: for each row a loop for the maximum; one for exp(x - maximum), which it keeps, and its sum; one
    for the quotient, which it stores.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...ir.dtype import DataType
from ...ir.expr import ConstInt, Var
from .arrays import Array, Size, is_narrow_float, offset, product, storage, times, working

# Beyond this many simple operations a value is kept for a later loop instead of being computed again.
_CHEAP = 3
# Rows of tensors of at least so many bytes, and so many columns, are asked for while the row before is computed: a core
# that waits for memory and then computes does each in turn. The loop that does so goes by parts of a row.
_FAR_BYTES = 4 << 20
_LONG_ROW = 1024
_PART = 256
# Results that no cache will hold are written around it, by parts of so many elements: memory need not be read for that.
_STREAMED_BYTES = 32 << 20
_STREAMED_PART = 512
_COSTS = {"pto::math::m": 1, "pto::math": 20, "pto::quotient": 4, "pto::converted": 3}


class Bits:
    """An operand that is one bit for each element: ``array`` holds them by bytes, the first column in the lowest."""

    __slots__ = ("array", "dtype")

    def __init__(self, array: Array) -> None:
        self.array = array
        self.dtype = DataType.BOOL


class Node:
    """One operation. ``text``: the C++ of one element, with a place for each operand; ``fold``: the reduction, if it is
    one; ``target``: where a store goes. ``columns``: how many there are, at most ``width``; ``narrow``: one value a
    row."""

    __slots__ = (
        "atomic", "columns", "cost", "dtype", "fold", "keep", "level", "narrow", "number", "operands", "target", "text",
        "width",
    )  # fmt: skip

    def __init__(
        self,
        number: int,
        dtype: DataType,
        operands: Sequence[Any],
        columns: Size,
        width: int,
        *,
        text: str = "",
        fold: str = "",
        target: Array | None = None,
        narrow: bool = False,
        atomic: bool = False,
    ) -> None:
        self.number = number
        self.dtype = dtype
        self.operands = tuple(operands)
        self.columns = columns
        self.width = width
        self.text = text
        self.fold = fold
        self.target = target
        self.narrow = narrow
        self.atomic = atomic
        # Of a wide value: the first loop that can compute it. Of a narrow one: the first that can use it.
        self.level = max((_level(o) for o in operands), default=0) + (fold != "")
        self.cost: int = sum(o.cost for o in operands if type(o) is Node and not o.narrow) + _cost(text)
        self.keep: Array | None = None  # memory that holds it for later loops


def _level(operand: Any) -> int:
    return operand.level if type(operand) is Node else 0


def _cost(text: str) -> int:
    return next((cost for name, cost in _COSTS.items() if name in text), 1)


def is_narrow(operand: Any) -> bool:
    """Whether an operand has one value a row."""
    if type(operand) is Node:
        return operand.narrow
    return type(operand) is Array and operand.shape[-1] == 1


class RowGroup:
    """Operations on values with the same rows. ``rows``: the extents of all dimensions but the last.

    ``in_place``: a store overwrites what the group reads, element by element, so that all of it must stay one loop,
    over that many columns.
    """

    def __init__(self, rows: tuple[Size, ...], position: int) -> None:
        self.rows = rows
        self.position = position  # of its first operation in the kernel
        self.nodes: list[Node] = []
        self.reads: list[Array] = []
        self.stores: list[Node] = []
        self.in_place: Size | None = None

    def add(self, node: Node) -> Node:
        """Add an operation behind those that it depends on."""
        self.nodes.append(node)
        self.reads += [o.array if type(o) is Bits else o for o in node.operands if type(o) in (Array, Bits)]
        if node.target is not None:
            self.stores.append(node)
        return node

    def has_folds(self) -> bool:
        return any(node.fold for node in self.nodes)

    def is_plain(self, columns: Size) -> bool:
        """Whether all is done in one loop over that many columns."""
        return not any(node.fold or (node.columns != columns and not node.narrow) for node in self.nodes)


class RowPrinter:
    """Prints the loops of one group. ``row_buffer(width, dtype)`` gives memory for one row."""

    def __init__(self, group: RowGroup, out: Any, row_buffer: Any) -> None:
        self._group = group
        self._out = out
        self._row_buffer = row_buffer
        self._names: dict[Any, str] = {}  # of pointers and of values one a row
        self._flat = self._is_flat()

    def print(self) -> None:
        """All loops."""
        group, out = self._group, self._out
        loops = self._loops()
        rows = () if self._flat else group.rows
        self._indices = [f"r{i}" if extent != 1 else "0" for i, extent in enumerate(rows)]
        opened = 0
        for index, extent in zip(self._indices, rows, strict=True):
            if index != "0":
                out.open(f"for (int64_t {index} = 0; {index} < {extent}; ++{index}) {{")
                opened += 1
        if not opened:
            out.open("{")
            opened = 1
        self._pointers()
        fetching = self._choose_fetching(loops)
        last = max((level for level, _ in loops), default=-1)
        pending = [n for n in group.nodes if n.narrow and not n.fold and n.target is None]
        narrow_stores = [n for n in group.stores if n.narrow]
        for level in range(last + 2):
            for node in [n for n in pending if n.level <= level]:
                self._narrow(node)
                pending.remove(node)
            for node in [n for n in narrow_stores if n.level <= level]:
                self._store_narrow(node)
                narrow_stores.remove(node)
            for (at, columns), sinks in loops.items():
                if at == level:
                    self._loop(columns, sinks, (at, columns) == fetching)
        for _ in range(opened):
            out.close()
        if any(self._is_streamed(node) for node in group.stores):
            out.line("pto::end_streams();")

    # --- which loops --------------------------------------------------------------------------------------------------

    def _loops(self) -> dict[tuple[int, Size], list[Node]]:
        """(level, columns) -> what the loop is for: reductions, stores, and values that later loops need."""
        sinks: dict[tuple[int, Size], list[Node]] = {}
        for node in self._group.nodes:
            if node.fold:
                operand = node.operands[0]
                columns = operand.columns if type(operand) is Node else operand.valid[-1]
                sinks.setdefault((node.level - 1, columns), []).append(node)
            elif node.target is not None and not node.narrow:
                sinks.setdefault((node.level, node.columns), []).append(node)
        # Later loops first: what one of them needs from before may need something itself.
        for level, columns in sorted(sinks, key=lambda key: -key[0]):
            for node in sinks[level, columns]:
                self._need(node.operands, level, sinks)
        return dict(sorted(sinks.items(), key=lambda item: item[0][0]))

    def _need(self, operands: Sequence[Any], level: int, sinks: dict[tuple[int, Size], list[Node]]) -> None:
        for operand in operands:
            if type(operand) is not Node or operand.narrow:
                continue
            if operand.level < level and operand.cost > _CHEAP:
                if operand.keep is None:
                    operand.keep = self._row_buffer(operand.width, operand.dtype)
                    kept = Node(
                        -1, operand.dtype, [operand], operand.columns, operand.width, text="{0}", target=operand.keep
                    )
                    # An earlier loop over as many columns may be there already.
                    sinks.setdefault((operand.level, operand.columns), []).append(kept)
                    self._need(operand.operands, operand.level, sinks)
            else:
                self._need(operand.operands, level, sinks)

    def _is_flat(self) -> bool:
        """Whether all that happens is one element after another, in memory without gaps."""
        group = self._group
        if group.has_folds() or any(n.narrow for n in group.nodes) or any(map(is_narrow, group.reads)):
            return False
        if any(type(o) is Bits for n in group.nodes for o in n.operands):
            return False
        arrays = [*group.reads, *(n.target for n in group.stores if n.target is not None)]
        shapes = {(*a.shape,) for a in arrays}
        if len(shapes) != 1 or len(group.rows) < 1:
            return False
        (shape,) = shapes
        return all(a.is_packed and a.valid == a.shape for a in arrays) and shape[:-1] == group.rows

    # --- fetching ahead -----------------------------------------------------------------------------------------------

    def _choose_fetching(self, loops: dict[tuple[int, Size], list[Node]]) -> tuple[int, Size] | None:
        """The loop in which the next row, and room for the results, are asked for: the longest of those that find their
        row in the cache, and that come before results are stored, if there are such."""
        first = min((level for level, _ in loops), default=0)
        later = [key for key in loops if key[0] > first and isinstance(key[1], int) and key[1] >= _LONG_ROW]
        if not later or all(index == "0" for index in self._indices):
            return None

        def cost(key: tuple[int, Size]) -> tuple[bool, int]:
            before = not any(node in self._group.stores for node in loops[key])
            return before, sum(o.cost for node in loops[key] for o in node.operands if type(o) is Node)

        return max(later, key=cost)

    def _fetch(self, level: int) -> list[str]:
        """Statements that ask for what is needed next, in columns from ``b`` to ``e``."""
        axis = max(i for i, index in enumerate(self._indices) if index != "0")
        found: list[str] = []
        for array in dict.fromkeys(self._group.reads):
            step = self._strides(array)[axis]
            if _is_far(array) and step != 0:
                name, row = f"next{len(found)}", self._pointer(array)
                there = f"{self._indices[axis]} + 1 < {self._group.rows[axis]}"
                self._out.line(f"{storage(array.dtype)}* const {name} = {there} ? {row} + {step} : {row};")
                found.append(f"pto::fetch<0>({name} + b, e - b);")
        for node in self._group.stores:
            if node.level > level and node.target is not None and _is_far(node.target) and not self._is_streamed(node):
                found.append(f"pto::fetch<1>({self._pointer(node.target)} + b, e - b);")
        return found

    def _is_streamed(self, node: Node) -> bool:
        """Whether a value is written around the caches."""
        target = node.target
        return (
            target is not None
            and not node.narrow
            and not node.atomic
            and target.strides[-1] == 1
            and _is_far(target, _STREAMED_BYTES)
            and all(array.root is not target.root for array in self._group.reads)
        )

    # --- printing -----------------------------------------------------------------------------------------------------

    def _pointers(self) -> None:
        """Where the row begins in each array."""
        arrays = dict.fromkeys(self._group.reads)
        arrays.update(dict.fromkeys(n.target for n in self._group.stores if n.target is not None))
        for array in arrays:
            self._pointer(array)

    def _pointer(self, array: Array) -> str:
        name = self._names.get(array)
        if name is None:
            at = offset(self._indices, self._strides(array))
            name = self._names[array] = f"p{len(self._names)}"
            place = array.pointer if at == 0 else f"{array.pointer} + {at}"
            self._out.line(f"{storage(array.dtype)}* const {name} = {place};")
        return name

    def _strides(self, array: Array) -> list[Size]:
        """The strides of the rows' dimensions: 0 where the array has one for all. (It may have fewer dimensions.)"""
        if self._flat:
            return []
        missing = len(self._indices) - (len(array.shape) - 1)
        found: list[Size] = [0] * max(missing, 0)
        for extent, stride in zip(array.shape[:-1], array.strides[:-1], strict=True):
            found.append(0 if extent == 1 else stride)
        return found[-len(self._indices) :] if self._indices else []

    def _narrow(self, node: Node) -> None:
        values = [self._row_value(o) for o in node.operands]
        name = self._names[node] = f"s{node.number}"
        self._out.line(f"const {working(node.dtype)} {name} = {_computed(node, values)};")

    def _row_value(self, operand: Any) -> str:
        """An operand that has one value in this row."""
        if isinstance(operand, str):
            return operand
        if type(operand) is Node:
            return self._names[operand]
        if type(operand) is Bits:
            return f"pto::bit({self._pointer(operand.array)}, 0)"
        key = ("row", operand)
        if key not in self._names:
            name = f"n{len(self._names)}"
            self._out.line(f"const {working(operand.dtype)} {name} = pto::load_element({self._pointer(operand)});")
            self._names[key] = name
        return self._names[key]

    def _store_narrow(self, node: Node) -> None:
        assert node.target is not None
        value = self._row_value(node.operands[0])
        self._out.line(_stored(node, f"{self._pointer(node.target)}", value))

    def _loop(self, columns: Size, sinks: list[Node], fetches: bool) -> None:
        out = self._out
        reductions: dict[str, list[str]] = {}
        for node in sinks:
            if node.fold:
                self._start_fold(node, reductions)
        narrow = [o for node in sinks for o in self._narrow_operands(node)]
        for operand in dict.fromkeys(narrow):
            self._row_value(operand)
        for node in sinks:
            if node.target is not None:
                self._pointer(node.target)
            for inner in self._wide(node):
                if inner.keep is not None:
                    self._pointer(inner.keep)
        asked = self._fetch(sinks[0].level - (sinks[0].fold != "")) if fetches else []
        begin, end = "0", str(product([*self._group.rows, columns]) if self._flat else columns)
        streamed: dict[Node, tuple[str, Array]] = {}
        for node in sinks:
            if node.target is not None and self._is_streamed(node):
                streamed[node] = f"w{node.number}", node.target
        if asked or streamed:
            step = f"b + {_PART}"
            for name, target in streamed.values():
                # Parts end where lines of memory do, of one of the targets: up to a line of bytes behind.
                out.line(f"alignas(64) {storage(target.dtype)} {name}[{_STREAMED_PART} + 64];")
                step = f"pto::streamed_part({self._pointer(target)}, b, {_STREAMED_PART})"
            out.open(f"for (int64_t b = 0, e; b < {end}; b = e) {{")
            out.line(f"e = {step};")
            out.line(f"if (e > {end}) e = {end};")
            for line in asked:
                out.line(line)
            begin, end = "b", "e"
        simple = all(not node.atomic for node in sinks)
        if simple:
            clauses = "".join(f" reduction({op}: {', '.join(names)})" for op, names in reductions.items())
            out.line(f"#pragma omp simd{clauses}")
        out.open(f"for (int64_t c = {begin}; c < {end}; ++c) {{")
        values: dict[Any, str] = {}
        # All that is read first: a store may overwrite it.
        found = [(node, self._value(node.operands[0], values, node)) for node in sinks]
        for node, value in found:
            if node.fold:
                self._fold(node, value)
            else:
                assert node.target is not None
                place = f"{streamed[node][0]}[c - b]" if node in streamed else self._element(node.target)
                out.line(_stored(node, f"&{place}", value))
        out.close()
        if asked or streamed:
            for name, target in streamed.values():
                out.line(f"pto::stream({self._pointer(target)} + b, {name}, e - b);")
            out.close()
        for node in sinks:
            if node.fold:
                self._end_fold(node)

    def _wide(self, sink: Node) -> list[Node]:
        """The values that are computed, or read again, for a sink."""
        found: list[Node] = []
        work = list(sink.operands)
        while work:
            item = work.pop()
            if type(item) is Node and not item.narrow and item not in found:
                found.append(item)
                if not _is_kept(item, sink):
                    work += item.operands
        return found

    def _narrow_operands(self, sink: Node) -> list[Any]:
        computed = [sink, *(node for node in self._wide(sink) if not _is_kept(node, sink))]
        return [o for node in computed for o in node.operands if not isinstance(o, str) and is_narrow(o)]

    def _value(self, operand: Any, values: dict[Any, str], sink: Node) -> str:
        """One element of an operand in the loop at hand."""
        if isinstance(operand, str):
            return operand
        if is_narrow(operand):
            return self._row_value(operand)
        known = values.get(operand)
        if known is not None:
            return known
        if type(operand) is Bits:
            text = f"pto::bit({self._pointer(operand.array)}, c)"
        elif type(operand) is Array:
            text = f"pto::load_element(&{self._element(operand)})"
        elif _is_kept(operand, sink):
            text = f"pto::load_element(&{self._element(operand.keep)})"
        else:
            text = _computed(operand, [self._value(o, values, sink) for o in operand.operands])
        name = f"v{len(values)}"
        self._out.line(f"const {working(operand.dtype)} {name} = {text};")
        values[operand] = name
        return name

    def _element(self, array: Array) -> str:
        index = times("c", array.strides[-1]) if not self._flat else "c"
        return f"{self._pointer(array)}[{index}]"

    # --- reductions ---------------------------------------------------------------------------------------------------

    def _start_fold(self, node: Node, reductions: dict[str, list[str]]) -> None:
        kind = working(node.dtype)
        name = self._names[node] = f"f{node.number}"
        start = {
            "sum": "0",
            "prod": "1",
            "max": f"pto::lowest<{kind}>()",
            "min": f"pto::highest<{kind}>()",
        }[node.fold]
        self._out.line(f"{kind} {name} = {start};")
        op = {"sum": "+", "prod": "*", "max": "max", "min": "min"}[node.fold]
        reductions.setdefault(op, []).append(name)
        if op in ("max", "min") and kind == "float":
            self._out.line(f"int nan{node.number} = 0;")
            reductions.setdefault("|", []).append(f"nan{node.number}")

    def _fold(self, node: Node, value: str) -> None:
        name = self._names[node]
        if node.fold == "sum":
            self._out.line(f"{name} += {value};")
        elif node.fold == "prod":
            self._out.line(f"{name} *= {value};")
        else:
            sign = ">" if node.fold == "max" else "<"
            self._out.line(f"{name} = {value} {sign} {name} ? {value} : {name};")
            if working(node.dtype) == "float":
                self._out.line(f"nan{node.number} |= {value} != {value};")

    def _end_fold(self, node: Node) -> None:
        name = self._names[node]
        if node.fold in ("max", "min") and working(node.dtype) == "float":
            self._out.line(f"if (nan{node.number}) {name} = NAN;")
        if is_narrow_float(node.dtype):
            self._out.line(f"{name} = pto::rounded<{storage(node.dtype)}>({name});")


def _is_far(array: Array, least: int | None = None) -> bool:
    """Whether an array is long rows of a tensor that has so many bytes; by default more than a cache near a core."""
    if not isinstance(array.root, Var) or not isinstance(array.shape[-1], int) or array.shape[-1] < _LONG_ROW:
        return False
    size: Size = max(array.dtype.get_bit() // 8, 1)
    for extent in array.root.type.shape:  # type: ignore[attr-defined]
        size = times(size, extent.value if type(extent) is ConstInt else 1)
    return isinstance(size, int) and size >= (_FAR_BYTES if least is None else least)


def _is_kept(value: Node, sink: Node) -> bool:
    """Whether an earlier loop than that of the sink has stored the value."""
    return value.keep is not None and value.level < sink.level - (sink.fold != "")


def _computed(node: Node, values: Sequence[str]) -> str:
    """One element, as a value of the working type that its storage type has."""
    kind = working(node.dtype)
    if node.text.startswith("pto::converted"):
        return node.text.format(*values)
    operands = [_converted(o, v, node.dtype) for o, v in zip(node.operands, values, strict=True)]
    text = node.text.format(*operands)
    if is_narrow_float(node.dtype):
        return f"pto::rounded<{storage(node.dtype)}>({text})"
    return f"static_cast<{kind}>({text})"


def _converted(operand: Any, value: str, dtype: DataType) -> str:
    """An operand as arithmetic for results of ``dtype`` takes it: halves round first."""
    if isinstance(operand, str) or type(operand) is Bits:
        return value
    text = f"static_cast<{working(dtype)}>({value})"
    if dtype is DataType.FP16 and operand.dtype is not DataType.FP16:
        return f"pto::rounded<pto::fp16>({text})"
    return text


def _stored(node: Node, place: str, value: str) -> str:
    assert node.target is not None
    if node.atomic:
        return f"pto::add_atomically({place}, {value});"
    return f"pto::store_element({place}, {value});"


__all__ = ["Bits", "Node", "RowGroup", "RowPrinter", "is_narrow"]
