"""The default rewrite of each node class: straight-line code generated from the field table.

Each function takes a mutator and a node, rewrites the children through the mutator's dispatch, and gives the node
itself when no child changes.
"""

from __future__ import annotations

from operator import attrgetter, is_
from typing import Any

from ..diag.errors import InternalError
from . import expr as x
from . import stmt as s
from .attrs import attr_expressions
from .expr import Expr, Var
from .generated import make_function
from .node import FieldInfo, FrozenDict, FrozenList, IRNode, Kind
from .program import Function, Program
from .stmt import Stmt, seq
from .traversal import (
    CONSTANTS,
    NODE_CLASSES,
    NODE_FIELDS,
    Method,
    MethodTable,
    carried_fields,
    child_fields,
    field_class_name,
)
from .type import TupleType
from .type_fields import PLAIN_TYPES

_CLASSES: dict[str, type] = {"Stmt": Stmt, "Expr": Expr, "Any": Expr, **{cls.__name__: cls for cls in NODE_CLASSES}}
# The node classes that a field of a class may hold: a look-up of the type is faster than ``isinstance``.
_ACCEPTED = {name: frozenset(c for c in NODE_CLASSES if issubclass(c, wanted)) for name, wanted in _CLASSES.items()}
_EXPRESSIONS = _ACCEPTED["Expr"]
_STATEMENTS = _ACCEPTED["Stmt"]

# --- code for one class -----------------------------------------------------------------------------------------------


def _rewritten_fields(cls: type[IRNode]) -> tuple[FieldInfo, ...]:
    """Fields in the order of rewriting: definitions before uses, hence a function's result types before its body."""
    types = [info for info in NODE_FIELDS[cls] if info.kind in (Kind.TYPE, Kind.TYPES)]
    fields: list[FieldInfo] = []
    for info in child_fields(cls):
        if info.name == "body":
            fields += types
            types = []
        fields.append(info)
    return (*fields, *types)


def _rewrite_field(cls: type[IRNode], info: FieldInfo) -> list[str]:
    """Code that sets ``old_<field>`` and ``new_<field>``."""
    name, kind = info.name, info.kind
    old, new = f"old_{name}", f"new_{name}"
    visit = f"d[type({old})](self, {old})"
    if kind in (Kind.NODE, Kind.OPTIONAL) and field_class_name(cls, name) == "Stmt":
        absent = f"None if {old} is None else " if kind is Kind.OPTIONAL else ""
        return [f"{old} = op.{name}", f"{new} = {absent}{visit}"]
    lines = [f"{old} = {new} = op.{name}"]
    if kind is Kind.NODE:
        return [*lines, f"if always or remap: {new} = {visit}"]
    if kind is Kind.OPTIONAL:
        return [*lines, f"if {old} is not None and (always or remap): {new} = {visit}"]
    if kind is Kind.TYPE:
        return [*lines, f"if type({old}) not in PLAIN and (always or remap): {new} = self._rewrite_type({old})"]
    lines.append(f"if {old} and (always or remap):")
    if kind is Kind.ATTRS:
        return [*lines, f"    {new} = rewrite_attrs(self, {old})"]
    carried = name in carried_fields(cls)
    if carried:
        lines.append(f"    self._fresh.update({old})")
    items = "self._rewrite_type(c)" if kind is Kind.TYPES else "d[type(c)](self, c)"
    lines += [
        f"    items = [{items} for c in {old}]",
        f"    if not all(map(is_, items, {old})): {new} = FrozenList(items)",
    ]
    if carried:
        lines.append(f"if {old}: self._fresh.difference_update({old})")
    return lines


def _compile(cls: type[IRNode]) -> Method:
    fields = _rewritten_fields(cls)
    if not fields:
        return _same
    lines = ["d, remap, always = self._dispatch, self._remap, self._visits_expressions"]
    for info in fields:
        lines += _rewrite_field(cls, info)
    for name in carried_fields(cls):
        # An iter_arg means its new self in the loop only.
        lines += [f"if new_{name} is not old_{name}:", f"    for c in old_{name}: remap.pop(c, None)"]
    lines += ["if " + " and ".join(f"new_{f.name} is old_{f.name}" for f in fields) + ": return op"]
    accepted: dict[str, Any] = {}
    for info in fields:
        if info.kind in (Kind.NODE, Kind.OPTIONAL, Kind.LIST):
            wanted, name = field_class_name(cls, info.name), info.name
            accepted[f"accepted_{wanted}"] = _ACCEPTED[wanted]
            if info.kind is Kind.LIST:
                odd = f"not accepted_{wanted}.issuperset(map(type, new_{name}))"
            else:
                odd = f"type(new_{name}) not in accepted_{wanted}"
            lines += [f"if new_{name} is not old_{name} and {odd}: check(op, {name!r}, new_{name}, {wanted!r})"]
    if issubclass(cls, Expr):
        lines += ["new = alloc(type(op))"]
        rewritten = [info.name for info in fields]
        for info in NODE_FIELDS[cls]:
            value = f"new_{info.name}" if info.name in rewritten else f"op.{info.name}"
            lines += [f"set_{info.name}(new, {value})"]
        lines += ["return new"]
    else:
        lines += ["return op.replace(" + ", ".join(f"{f.name}=new_{f.name}" for f in fields) + ")"]
    env: dict[str, Any] = {
        "is_": is_,
        "FrozenList": FrozenList,
        "PLAIN": PLAIN_TYPES,
        "alloc": object.__new__,
        **accepted,
        "check": check_child,
        "rewrite_attrs": rewrite_attrs,
        **{f"set_{info.name}": info.setter for info in NODE_FIELDS[cls]},
    }
    return make_function("rewrite", "self, op", lines, env)  # type: ignore[no-any-return]


def check_child(op: IRNode, name: str, new: Any, wanted: str) -> None:
    """Refuse what a visit method gave for a child if the field cannot hold it."""
    cls = _CLASSES[wanted]
    for item in new if isinstance(new, FrozenList) else (new,):
        if isinstance(item, cls):
            continue
        message = f"{type(op).__name__}.{name} must map to a {wanted}, got {type(item).__name__}"
        if issubclass(cls, Var):
            if type(op) is Function:
                message = f"parameter of function '{op.name}': {message}"
            raise InternalError(message)
        raise TypeError(f"{message}: a visit method of a mutator returns the new node")


def rewrite_attrs(self: Any, attrs: Any) -> Any:
    """An attribute map with the expressions in it rewritten by a mutator; the same object when none changes."""
    changed = {}
    for key, value in attrs.items():
        found = attr_expressions(value)
        if not found:
            continue
        items = [self._rewrite_child(e) for e in found]
        if all(map(is_, items, found)):
            continue
        # A list holds nothing but variables; an expression stands alone.
        changed[key] = FrozenList(items) if isinstance(value, list) else items[0]
    return FrozenDict({**attrs, **changed}) if changed else attrs


# --- classes with code of their own -----------------------------------------------------------------------------------


def _same(self: Any, op: Any) -> Any:
    return op


def _var(self: Any, op: Any) -> Any:
    new = self._remap.get(op)
    if new is not None:
        return new
    return op if type(op.type) in PLAIN_TYPES else self._retype(op)


def _iter_arg(self: Any, op: Any) -> Any:
    if op not in self._fresh:
        return _var(self, op)
    self._fresh.discard(op)
    new = self._remap.get(op)
    if new is not None:
        return new
    old_value, old_kind = op.initValue, op.type
    value = self._rewrite_child(old_value)
    kind = old_kind if type(old_kind) in PLAIN_TYPES else self._rewrite_type(old_kind)
    if value is old_value and kind is old_kind:
        return op
    check_child(op, "initValue", value, "Expr")
    new = self._remap[op] = op.replace(initValue=value, type=kind)
    return new


def _descriptor(self: Any, op: Any) -> Any:
    """A MemRef or window buffer: one object for all types that hold it, before and after."""
    new = self._remap.get(op)
    if new is not None:
        return new
    changes = {}
    for info in child_fields(type(op)):
        old = getattr(op, info.name)
        if old is None:
            continue
        value = self._rewrite_child(old)
        if value is not old:
            base = info.name.startswith("base")
            check_child(op, info.name, value, "Var" if base else "Expr")
            changes[info.name] = value
            if base:
                changes["name_hint"] = value.name_hint
    if not changes:
        return op
    new = self._remap[op] = op.replace(**changes)
    return new


def _binary(self: Any, op: Any) -> Any:
    d, spine = self._dispatch, self._spine
    left = op.left
    if type(left) not in spine:
        return _with_operands(op, d[type(left)](self, left), d[type(op.right)](self, op.right))
    # Left-leaning chains may be thousands of levels deep: down the spine, then rebuild upwards.
    pending = [op]
    while type(left) in spine:
        pending.append(left)
        left = left.left
    new = d[type(left)](self, left)
    while pending:
        node = pending.pop()
        right = node.right
        new = _with_operands(node, new, d[type(right)](self, right))
    return new


def _with_operands(op: Any, left: Any, right: Any) -> Any:
    if left is op.left and right is op.right:
        return op
    if type(left) not in _EXPRESSIONS:
        check_child(op, "left", left, "Expr")
    if type(right) not in _EXPRESSIONS:
        check_child(op, "right", right, "Expr")
    return op.replace(left=left, right=right)


def _seq_stmts(self: Any, op: Any) -> Any:
    d, old = self._dispatch, op.stmts
    new = [d[type(c)](self, c) for c in old]
    if all(map(is_, new, old)):
        return op
    if not _STATEMENTS.issuperset(map(type, new)):
        check_child(op, "stmts", FrozenList(new), "Stmt")
    return seq(new, op.span)


def _program(self: Any, op: Any) -> Any:
    functions = [self.visit_function(f) for f in op.functions.values()]
    for f in functions:
        check_child(op, "functions", f, "Function")
    return op.with_functions(functions)


def _make_tuple(self: Any, op: Any) -> Any:
    new = _compiled_make_tuple(self, op)
    if new is op or all(map(is_, map(_type_of, new.elements), map(_type_of, op.elements))):
        return new
    return new.replace(type=TupleType([e.type for e in new.elements]))


def _tuple_get_item(self: Any, op: Any) -> Any:
    new = _compiled_tuple_get_item(self, op)
    if new is op:
        return op
    kind = new.tuple.type
    if type(kind) is TupleType and op.index < len(kind.types) and kind.types[op.index] is not new.type:
        return new.replace(type=kind.types[op.index])
    return new


_type_of = attrgetter("type")
_compiled_make_tuple = _compile(x.MakeTuple)
_compiled_tuple_get_item = _compile(x.TupleGetItemExpr)

_BY_HAND: dict[type[IRNode], Method] = {
    **{cls: _same for cls in CONSTANTS},
    **{cls: _binary for cls in x.BINARY_CLASSES},
    x.Var: _var,
    x.IterArg: _iter_arg,
    x.MemRef: _descriptor,
    x.WindowBuffer: _descriptor,
    x.MakeTuple: _make_tuple,
    x.TupleGetItemExpr: _tuple_get_item,
    s.SeqStmts: _seq_stmts,
    Program: _program,
}

DEFAULTS = MethodTable({cls: _BY_HAND.get(cls) or _compile(cls) for cls in NODE_CLASSES})
