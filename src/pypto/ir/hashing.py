"""Structural hash: equal trees have equal hashes, in every process.

A tree is turned into a sequence of numbers, in the order in which equality compares it, and the sequence is hashed. A
variable that the tree defines (with auto mapping: any variable) is known by the order of its first appearance, a free
one by its ``unique_id``.
"""

from __future__ import annotations

import enum
import zlib
from collections.abc import Callable
from typing import Any

from .attrs import attr_expressions
from .dtype import DataType
from .equality_rules import DEFINE, LOOP_VAR, USE
from .expr import ConstInt, IterArg, Var, WindowBuffer
from .generated import make_function
from .node import FieldInfo, IRNode, Kind, Role
from .program import Program
from .stmt import ForStmt
from .traversal import NODE_FIELDS
from .type import ScalarType, Type
from .type_fields import TYPE_FIELDS, Held

# The role of a dim in a type: constants count by value, whatever their dtype.
DIM = 3

Rule = Callable[[Any, Any, int], None]


def structural_hash(node: Any, enable_auto_mapping: bool = False) -> int:
    """A 64-bit number that agrees with :func:`structural_equal` in the same mode."""
    if not isinstance(node, (IRNode, Type)):
        raise TypeError(f"structural_hash is of IR nodes and types, got {type(node).__name__}")
    return _Hasher(enable_auto_mapping).run(node)


_MASK = 2**64 - 1
_texts: dict[str, int] = {}


def _text(value: str) -> int:
    """A number for a text; Python's own differs between processes."""
    found = _texts.get(value)
    if found is None:
        data = value.encode("utf-8", "surrogatepass")
        found = zlib.crc32(data) << 32 | zlib.adler32(data)
        if len(value) < 64:  # names and keys recur, long texts do not
            _texts[value] = found
    return found


def _value(value: Any) -> int:
    """A number for a plain value; equal values of one class have equal numbers."""
    if value is None:
        return 3
    kind = type(value)
    if kind is bool:
        return 5 + value  # type: ignore[no-any-return]
    if kind is int:
        return hash((7, value))
    if kind is float:
        return hash((8, value)) if value == value else 9  # NaN equals nothing, and its own hash is its address
    if kind is str:
        return _text(value)
    if kind is DataType:
        return hash((10, value.code()))
    if isinstance(value, enum.Enum):
        return hash((_text(kind.__name__), value.value))
    return hash((11, *map(_value, value)))


def _attrs(attrs: Any) -> int:
    """Plain entries only, in any order; the key of an entry with expressions is left out with it."""
    total = 0
    for key, value in attrs.items():
        # Of two equal maps, an empty list may be one of variables on one side: that counts as an empty list of data.
        if not attr_expressions(value):
            total += hash((_text(key), _value(value)))
    return total & _MASK


class _Hasher:
    def __init__(self, auto: bool) -> None:
        self.auto = auto
        self.out: list[int] = []
        self.numbers: dict[Any, int] = {}
        self.stack: list[tuple[Any, int]] = []

    def run(self, root: Any) -> int:
        stack, rules = self.stack, _RULES
        stack.append((root, USE))
        while stack:
            item, role = stack.pop()
            rules[type(item)](self, item, role)
        return hash(tuple(self.out)) & _MASK


def _var(h: _Hasher, op: Any, role: int) -> None:
    number = h.numbers.get(op)
    out = h.out
    if number is not None:
        out += (1, number)
    elif role in (USE, DIM) and not h.auto and type(op) is not WindowBuffer:
        out += (2, op.unique_id)
    else:
        h.numbers[op] = number = len(h.numbers)
        out += (_text(type(op).__name__), number)
        if type(op) is WindowBuffer:
            out += (_value(op.load_from_host), _value(op.store_to_host))
            h.stack += [(op.size, USE), (op.base, USE)]
            return
        if isinstance(op, IterArg):
            h.stack.append((op.initValue, USE))
        h.stack.append((op.type, role))


def _const_int(h: _Hasher, op: Any, role: int) -> None:
    h.out += (_CONST_INT, op.value)
    if role != DIM:
        _scalar(h, op.type, LOOP_VAR)


def _scalar(h: _Hasher, kind: Any, role: int) -> None:
    # INT64 and INDEX are interchangeable for integer constants and loop variables.
    dtype = kind.dtype
    h.out += (_SCALAR, (DataType.INDEX if role == LOOP_VAR and dtype is DataType.INT64 else dtype).code())


_TOKENS: dict[type, int] = {}
_CONST_INT = _text("ConstInt")
_SCALAR = _text("ScalarType")


# --- code for one class -----------------------------------------------------------------------------------------------


def _node_field(cls: type[IRNode], info: FieldInfo) -> tuple[list[str], list[str]]:
    """(numbers, pushes) of one field; the pushes of a class are in reverse order of fields."""
    name, kind = info.name, info.kind
    value = f"op.{name}"
    if cls is Program and name == "functions":
        return (
            [f"add(len({value}))", f"for g in {value}: add(text(g.name))"],
            [f"for f in reversed({value}.values()): push((f, 0))"],
        )
    if kind is Kind.VALUE:
        return [f"add(value({value}))"], []
    if kind is Kind.OP:
        return [f"add(text({value}.name))"], []
    if kind is Kind.ATTRS:
        return [f"add(attrs({value}) if {value} else 0)"], []
    role = LOOP_VAR if cls is ForStmt and name == "loop_var" else DEFINE if info.role is Role.DEFINITION else USE
    if kind is Kind.NODE or kind is Kind.TYPE:
        return [], [f"push(({value}, {role}))"]
    if kind is Kind.OPTIONAL:
        return [f"add({value} is None)"], [f"if {value} is not None: push(({value}, {role}))"]
    return [f"add(len({value}))"], [f"for x in reversed({value}): push((x, {role}))"]


def _type_field(name: str, held: Held) -> tuple[list[str], list[str]]:
    value = f"op.{name}"
    if held is Held.VALUE:
        return [f"add(value({value}))"], []
    if held is Held.MEMREF:
        return [], []
    if held is Held.EXTENTS or held is Held.TYPES:
        role = DIM if held is Held.EXTENTS else USE
        return [f"add(len({value}))"], [f"for x in reversed({value}): push((x, {role}))"]
    return [f"add({value} is None)"], [f"if {value} is not None: push(({value}, {DIM}))"]


def _compile(cls: type, parts: list[tuple[list[str], list[str]]]) -> Rule:
    numbers = [line for part in parts for line in part[0]]
    pushes = [line for part in reversed(parts) for line in part[1]]
    lines = ["add, push = h.out.append, h.stack.append", "add(token[type(op)])", *numbers, *pushes]
    env: dict[str, Any] = {"attrs": _attrs, "text": _text, "token": _TOKENS, "value": _value}
    return make_function("rule", "h, op, role", lines, env)  # type: ignore[no-any-return]


# A number for each class.
_TOKENS.update({cls: _text(cls.__name__) for cls in (*NODE_FIELDS, *TYPE_FIELDS)})

_RULES: dict[type, Rule] = {
    cls: _compile(cls, [_node_field(cls, info) for info in table if info.role is not Role.IGNORED])
    for cls, table in NODE_FIELDS.items()
}
_RULES.update(
    {kind: _compile(kind, [_type_field(name, held) for name, held in rows]) for kind, rows in TYPE_FIELDS.items()}
)
_RULES.update({Var: _var, IterArg: _var, WindowBuffer: _var, ConstInt: _const_int, ScalarType: _scalar})
