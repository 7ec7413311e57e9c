"""How two nodes (or types) of one class are compared: code generated from the field tables.

Each rule exists in two forms made from one description. The *fast* form answers yes or no: it looks at plain fields
first and puts pairs of children on the comparison's stack. The *telling* form keeps the order of fields, notes for
each pair where it is, and puts a failing field on the stack as a :class:`Failure` behind the children before it, so
that the first mismatch in field order is the one reported. The stack makes depth of no concern.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .dtype import DataType
from .expr import ConstFloat, ConstInt, Expr
from .generated import make_function
from .mismatch import Failure, Place, field_mismatch, size_mismatch, value_mismatch
from .node import FieldInfo, IRNode, Kind, Role
from .program import Program
from .stmt import ForStmt, SeqStmts
from .traversal import CONSTANTS, NODE_FIELDS
from .type import ArrayType
from .type_fields import PLAIN_TYPES, TYPE_FIELDS, Held

# What a pair of variables is to the node that holds it; stored with the pair.
USE, DEFINE, LOOP_VAR = 0, 1, 2

Rule = Callable[[Any, Any, Any, Any], bool]


def same_value(a: Any, b: Any) -> bool:
    """Plain values: same class and equal; so ``True`` differs from ``1``."""
    if a is b:
        return type(a) is not float or a == a
    if type(a) is not type(b):
        return False
    if isinstance(a, list):
        return len(a) == len(b) and all(map(same_value, a, b))
    return bool(a == b)


_WIDE = (DataType.INT64, DataType.INDEX)


def interchangeable(a: Any, b: Any) -> bool:
    """Whether two types are INT64 and INDEX scalars: the same for integer constants and loop variables."""
    return getattr(a, "dtype", None) in _WIDE and getattr(b, "dtype", None) in _WIDE and type(a) is type(b)


# --- attributes -------------------------------------------------------------------------------------------------------


def _attr_kind(value: Any) -> Any:
    if isinstance(value, Expr):
        return Expr
    if isinstance(value, list):
        return (list, *{_attr_kind(item) for item in value[:1]})
    return type(value)


def attr_pairs(a: Any, b: Any) -> list[tuple[str, Any, Any]] | Failure:
    """The pairs of expressions in two attribute maps, each with its path component; a failure if the rest differs."""
    if len(a) != len(b):
        return Failure(f"Kwargs size mismatch ({len(a)} != {len(b)})")
    pairs: list[tuple[str, Any, Any]] = []
    for key, x in a.items():
        if key not in b:
            return Failure(f"Kwargs key '{key}' present on one side only (or duplicated)", None, "")
        y = b[key]
        kind = _attr_kind(x)
        if kind != _attr_kind(y):
            if isinstance(x, list) and isinstance(y, list) and not (x and y):
                return _attr_failure(key, f"Kwargs value mismatch for key '{key}' ({len(x)} items != {len(y)} items)")
            return _attr_failure(key, f"Kwargs value type mismatch for key '{key}'")
        if kind is Expr:
            pairs.append((f"[{key!r}]", x, y))
        elif kind == (list, Expr):
            if len(x) != len(y):
                return _attr_failure(key, f"Kwargs value mismatch for key '{key}' ({len(x)} items != {len(y)} items)")
            pairs += [(f"[{key!r}][{i}]", p, q) for i, (p, q) in enumerate(zip(x, y, strict=True))]
        elif not same_value(x, y):
            return _attr_failure(key, f"Kwargs value mismatch for key '{key}'{_attr_detail(x, y)}")
    return pairs


def _attr_detail(x: Any, y: Any) -> str:
    if not isinstance(x, list):
        return f" ({value_mismatch(x, y).reason})"
    if len(x) != len(y):
        return f" ({len(x)} items != {len(y)} items)"
    first = next((p, q) for p, q in zip(x, y, strict=True) if not same_value(p, q))
    return f" ({value_mismatch(*first).reason})"


class AttrFailure(Failure):
    """A failure inside an attribute map, at one of its keys."""

    __slots__ = ("key",)
    key: str


def _attr_failure(key: str, reason: str) -> AttrFailure:
    failure = AttrFailure(reason)
    failure.key = key
    return failure


# --- the fast form ----------------------------------------------------------------------------------------------------


def _push(p: str, q: str, leaves: str, role: str = "0") -> list[str]:
    """Code for one pair: compared later, unless it is one object; then its variables stand for themselves."""
    return [
        f"if {p} is not {q}: push(({p}, {q}, {role}))",
        f"elif type({p}) not in {leaves} and not c.share({p}): return False",
    ]


def _indent(lines: list[str]) -> list[str]:
    return [f"    {line}" for line in lines]


def _fast_node_field(cls: type[IRNode], info: FieldInfo) -> tuple[list[str], list[str]]:
    """(checks, pushes) of one field; pushes are in reverse order, since a stack gives back the last first."""
    name, kind = info.name, info.kind
    x, y = f"x_{name}", f"y_{name}"
    load = [f"{x} = a.{name}", f"{y} = b.{name}"]
    if cls is Program and name == "functions":
        return [*load, f"if list({x}) != list({y}): return False"], [
            f"for p, q in zip(reversed({x}.values()), reversed({y}.values())):",
            *_indent(_push("p", "q", "LEAVES")),
        ]
    if kind is Kind.VALUE:
        unless = "" if cls is ConstFloat else f"{x} is not {y} and "  # NaN, even one object, equals nothing
        return [*load, f"if {unless}not same_value({x}, {y}): return False"], []
    if kind is Kind.OP:
        return [f"if a.{name}.name != b.{name}.name: return False"], []
    if kind is Kind.TYPE:
        lenient = f"if {x} is not {y} and interchangeable({x}, {y}): pass" if cls is ConstInt else ""
        push = _push(x, y, "PLAIN")
        return load, [lenient, push[0].replace("if", "elif", 1), push[1]] if lenient else push
    if kind is Kind.ATTRS:
        return [
            *load,
            f"p_{name} = ()",
            f"if {x} or {y}:",
            f"    p_{name} = attr_pairs({x}, {y})",
            f"    if type(p_{name}) is not list: return False",
        ], [f"for _, p, q in reversed(p_{name}):", *_indent(_push("p", "q", "LEAVES"))]
    define = info.role is Role.DEFINITION
    role = "2" if cls is ForStmt and name == "loop_var" else "1" if define else "0"
    if kind is Kind.NODE:
        return load, [f"push(({x}, {y}, {role}))"] if define else _push(x, y, "LEAVES")
    if kind is Kind.OPTIONAL:
        return [*load, f"if ({x} is None) is not ({y} is None): return False"], [
            f"if {x} is not None:",
            *_indent(_push(x, y, "LEAVES")),
        ]
    leaves = "PLAIN" if kind is Kind.TYPES else "LEAVES"
    each = [f"push((p, q, {role}))"] if define else _push("p", "q", leaves)
    return [*load, f"if len({x}) != len({y}): return False"], [
        f"for p, q in zip(reversed({x}), reversed({y})):",
        *_indent(each),
    ]


def _fast_type_field(name: str, held: Held) -> tuple[list[str], list[str]]:
    x, y = f"x_{name}", f"y_{name}"
    load = [f"{x} = a.{name}", f"{y} = b.{name}"]
    by_value = ["if type(p) is ConstInt and type(q) is ConstInt:", "    if p.value != q.value: return False", "else:"]
    if held is Held.VALUE:
        return [*load, f"if {x} is not {y} and {x} != {y}: return False"], []
    if held is Held.EXTENTS:
        return [*load, f"if len({x}) != len({y}): return False"], [
            f"for p, q in zip(reversed({x}), reversed({y})):",
            *_indent(by_value),
            *_indent(_indent(_push("p", "q", "LEAVES"))),
        ]
    if held is Held.TYPES:
        return [*load, f"if len({x}) != len({y}): return False"], [
            f"for p, q in zip(reversed({x}), reversed({y})):",
            *_indent(_push("p", "q", "PLAIN")),
        ]
    presence = [*load, f"if ({x} is None) is not ({y} is None): return False"]
    if held is Held.VIEW:
        return presence, [f"if {x} is not None:", *_indent(_push(x, y, "PLAIN"))]
    pushes = [f"if {x} is not None:", f"    p, q = {x}, {y}", *_indent(by_value)]
    pushes += _indent(_indent(_push("p", "q", "LEAVES")))
    if held is Held.MEMREF:
        return ["if c.memrefs:", *_indent(presence)], ["if c.memrefs:", *_indent(pushes)]
    return presence, pushes


def _fast(parts: list[tuple[list[str], list[str]]]) -> Rule:
    checks = [line for part in parts for line in part[0]]
    pushes = [line for part in reversed(parts) for line in part[1]]
    lines = [*checks, *(["push = c.stack.append"] if pushes else []), *pushes, "return True"]
    return _build(lines)


# --- the telling form -------------------------------------------------------------------------------------------------


def _told_node_field(cls: type[IRNode], info: FieldInfo) -> list[str]:
    name, kind = info.name, info.kind
    step = "" if cls is SeqStmts and name == "stmts" else f".{name}"
    lines = [f"x, y = a.{name}, b.{name}", f"here = Place(place, {step!r})"]
    if cls is Program and name == "functions":
        return [
            "x, y = a.functions, b.functions",
            "if len(x) != len(y): return c.tell(items, Failure(map_size(x, y)), place)",
            "for g, h in zip(x, y):",
            "    if g.name != h.name:",
            "        return c.tell(items, Failure(f\"Map key mismatch ('{g.name}' != '{h.name}')\"), place)",
            "    add((x[g], y[h], Place(place, f'[{g.name!r}]')))",
        ]
    if kind is Kind.VALUE:
        return [
            *lines,
            "if not same_value(x, y):",
            "    if isinstance(x, list):",
            "        if len(x) != len(y): return c.tell(items, size_mismatch(x, y), here)",
            "        i = next(i for i in range(len(x)) if not same_value(x[i], y[i]))",
            "        x, y, here = x[i], y[i], Place(here, f'[{i}]')",
            "    return c.tell(items, value_mismatch(x, y), here)",
        ]
    if kind is Kind.OP:
        return [
            *lines,
            "if x.name != y.name:",
            "    return c.tell(items, Failure(f\"Operator name mismatch ('{x.name}' != '{y.name}')\"), here)",
        ]
    if kind is Kind.TYPE:
        unless = "if not interchangeable(x, y): " if cls is ConstInt else ""
        return [lines[0], f"{unless}add((x, y, Place(place, '.{name}', 0, True)))"]
    if kind is Kind.ATTRS:
        return [
            *lines,
            "pairs = attr_pairs(x, y)",
            "if isinstance(pairs, AttrFailure): return c.tell(items, pairs, Place(here, f'[{pairs.key!r}]'))",
            "if isinstance(pairs, Failure): return c.tell(items, pairs, here)",
            "for step, p, q in pairs: add((p, q, attr_place(here, step)))",
        ]
    role = "2" if cls is ForStmt and name == "loop_var" else "1" if info.role is Role.DEFINITION else "0"
    if kind is Kind.NODE:
        return [lines[0], f"add((x, y, Place(place, {step!r}, {role})))"]
    if kind is Kind.OPTIONAL:
        return [
            *lines,
            "if (x is None) is not (y is None):",
            "    return c.tell(items, Failure('Optional field presence mismatch', (x, y)), here)",
            "if x is not None: add((x, y, here))",
        ]
    return [
        *lines,
        "if len(x) != len(y): return c.tell(items, size_mismatch(x, y), here)",
        f"for i in range(len(x)): add((x[i], y[i], Place(here, f'[{{i}}]', {role})))",
    ]


def _told_type_field(cls: type, name: str, held: Held) -> list[str]:
    owner = cls.__name__
    lines = [f"x, y = a.{name}, b.{name}", f"here = Place(place, {'.' + name!r}, 0, True)"]
    if cls is ArrayType and held is Held.EXTENTS:
        lines = [lines[0], "here = Place(place, '.extent', 0, True, 'ArrayType extent mismatch')"]
    each = "told_extent(c, items, {p}, {q}, {where})"
    if held is Held.VALUE:
        fail = f"c.tell(items, field_mismatch({owner!r}, {name!r}, x, y), here)"
        return [*lines, f"if x is not y and x != y: return {fail}"]
    if held is Held.EXTENTS or held is Held.TYPES:
        field = "shape rank" if name == "shape" else "size" if held is Held.TYPES else f"{name} size"
        where = "here" if cls is ArrayType else "Place(here, f'[{i}]', 0, True)"
        add = "add((x[i], y[i], {where}))" if held is Held.TYPES else each.format(p="x[i]", q="y[i]", where="{where}")
        return [
            *lines,
            "if len(x) != len(y):",
            f"    return c.tell(items, field_mismatch({owner!r}, {field!r}, len(x), len(y)), here)",
            f"for i in range(len(x)): {add.format(where=where)}",
        ]
    add = "add((x, y, here))" if held is Held.VIEW else each.format(p="x", q="y", where="here")
    lines += [
        f"if (x is None) is not (y is None): return c.tell(items, field_mismatch({owner!r}, {name!r}, x, y), here)",
        f"if x is not None: {add}",
    ]
    return ["if c.memrefs:", *_indent(lines)] if held is Held.MEMREF else lines


def _told_extent(c: Any, items: list[Any], p: Any, q: Any, here: Place) -> None:
    if type(p) is ConstInt and type(q) is ConstInt:
        if p.value != q.value:
            failure = value_mismatch(p.value, q.value)
            items.append((failure, failure, Place(here, ".value")))
    else:
        items.append((p, q, here))


def _attr_place(here: Place, step: str) -> Place:
    key = step[1 : step.index("]")]
    return Place(here, step, 0, False, f"Kwargs value mismatch for key {key}")


def _map_size(a: Any, b: Any) -> str:
    return f"Map size mismatch ({len(a)} items != {len(b)} items)"


def _told(parts: list[list[str]]) -> Rule:
    lines = [line for part in parts for line in part]
    return _build(["items = []", "add = items.append", *lines, "return c.put(items)"])


def _build(lines: list[str]) -> Rule:
    env: dict[str, Any] = {
        "AttrFailure": AttrFailure,
        "ConstInt": ConstInt,
        "Failure": Failure,
        "LEAVES": CONSTANTS,
        "PLAIN": PLAIN_TYPES,
        "Place": Place,
        "attr_pairs": attr_pairs,
        "attr_place": _attr_place,
        "field_mismatch": field_mismatch,
        "interchangeable": interchangeable,
        "map_size": _map_size,
        "same_value": same_value,
        "size_mismatch": size_mismatch,
        "told_extent": _told_extent,
        "value_mismatch": value_mismatch,
    }
    return make_function("same", "c, a, b, place", lines, env)  # type: ignore[no-any-return]


class Rules(dict[type, Rule]):
    """The rules of one form, compiled when a class is met first."""

    def __init__(self, telling: bool, by_hand: dict[type, Rule]) -> None:
        super().__init__(by_hand)
        self._telling = telling

    def __missing__(self, cls: Any) -> Rule:
        if cls in TYPE_FIELDS:
            rows = TYPE_FIELDS[cls]
            if self._telling:
                rule = _told([_told_type_field(cls, name, held) for name, held in rows])
            else:
                rule = _fast([_fast_type_field(name, held) for name, held in rows])
        else:
            fields = [info for info in NODE_FIELDS[cls] if info.role is not Role.IGNORED]
            if self._telling:
                rule = _told([_told_node_field(cls, info) for info in fields])
            else:
                rule = _fast([_fast_node_field(cls, info) for info in fields])
        self[cls] = rule
        return rule
