"""Walking expressions without recursion, and structural equality by interned numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..ir import expr as x
from ..ir.dtype import DataType
from ..ir.type import ScalarType

# Classes of operators by the number of their operands.
BINARY: frozenset[type] = frozenset(x.BINARY_CLASSES)
UNARY: frozenset[type] = frozenset(x.UNARY_CLASSES)

# How many expressions a memo may keep alive before it is emptied.
MEMO_LIMIT = 50_000


def operands(e: Any) -> tuple[Any, ...]:
    """The children that scalar analyses look at: those of operators. Calls, tuples and variables are leaves."""
    cls = type(e)
    if cls in BINARY:
        return e.left, e.right
    return (e.operand,) if cls in UNARY else ()


def scalar_dtype(e: Any) -> DataType | None:
    """The dtype of a scalar expression, None for other expressions."""
    kind = e.type
    return kind.dtype if type(kind) is ScalarType else None


def is_integer(e: Any) -> bool:
    """Whether the expression is an integer scalar (BOOL is none)."""
    kind = e.type
    return type(kind) is ScalarType and kind.dtype.is_int_


def is_float(e: Any) -> bool:
    """Whether the expression is a float scalar."""
    kind = e.type
    return type(kind) is ScalarType and kind.dtype.is_float_


def conjuncts(condition: Any) -> list[Any]:
    """The parts of nested ``and``s, left to right."""
    return joined(condition, x.And)


def joined(e: Any, cls: type[Any]) -> list[Any]:
    """The parts of nested operators of one class, left to right."""
    found: list[Any] = []
    stack: list[Any] = [e]
    while stack:
        item: Any = stack.pop()
        if type(item) is cls:
            stack += (item.right, item.left)
        else:
            found.append(item)
    return found


def post_order(root: Any, done: Any, visit: Callable[[Any], None], children: Callable[[Any], Any] = operands) -> None:
    """Visit ``root`` and what lies below, children first; ``visit`` must put the node into ``done``.

    Nodes in ``done`` are not entered: a shared node is visited once, however many paths lead to it.
    """
    stack = [root]
    while stack:
        node = stack[-1]
        if node in done:
            stack.pop()
            continue
        size = len(stack)
        for child in children(node):
            if child not in done:
                stack.insert(size, child)  # the first child on top
        if len(stack) == size:
            stack.pop()
            visit(node)


class Memo(dict[Any, Any]):
    """What is known of expressions; emptied when it has grown large, but never while a large expression needs it."""

    __slots__ = ("_limit",)

    def __init__(self) -> None:
        self._limit = MEMO_LIMIT

    def trim(self) -> None:
        """Empty the memo if it has grown large."""
        if len(self) > self._limit:
            self.clear()

    def fill(self, root: Any, visit: Callable[[Any], None], children: Callable[[Any], Any] = operands) -> Any:
        """The entry of ``root``, which ``visit`` makes with those of all nodes below."""
        self.trim()
        before = len(self)
        post_order(root, self, visit, children)
        self._limit = max(self._limit, 2 * (len(self) - before))
        return self[root]


class Interner:
    """Gives structurally equal expressions one number.

    Equal are: the same object; constants of one value and dtype; operators of one class and dtype over equal operands.
    A call equals itself only, since it may read memory that changes.
    """

    __slots__ = ("_numbers", "_table")

    def __init__(self) -> None:
        self._numbers = Memo()
        self._table: dict[Any, int] = {}

    def __call__(self, e: Any) -> int:
        found = self._numbers.get(e)
        if found is None:
            post_order(e, self._numbers, self._visit)
            found = self._numbers[e]
        return found  # type: ignore[no-any-return]

    def trim(self) -> None:
        """Forget expressions if there are many; they get their old numbers again."""
        self._numbers.trim()

    def equal(self, a: Any, b: Any) -> bool:
        """Structural equality."""
        return a is b or self(a) == self(b)

    def _visit(self, e: Any) -> None:
        numbers = self._numbers
        cls = type(e)
        if cls in BINARY:
            key: Any = (cls, e.dtype, numbers[e.left], numbers[e.right])
        elif cls in UNARY:
            key = (cls, e.dtype, numbers[e.operand])
        elif cls is x.ConstInt or cls is x.ConstBool:
            key = (cls, e.type.dtype, e.value)
        elif cls is x.ConstFloat:
            key = (cls, e.dtype, repr(e.value))  # -0.0 differs from 0.0, and NaN equals itself
        else:
            key = e
        found = self._table.get(key)
        if found is None:
            found = self._table[key] = len(self._table)
        numbers[e] = found


__all__ = [
    "BINARY",
    "MEMO_LIMIT",
    "UNARY",
    "Interner",
    "Memo",
    "conjuncts",
    "is_float",
    "is_integer",
    "joined",
    "operands",
    "post_order",
    "scalar_dtype",
]
