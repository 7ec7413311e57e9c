"""Names of variables: which variables a printed text mentions, and a distinct name for each.

Identity is the object, hints repeat: only the printer invents names. One walk over a function collects its variables in
the order that decides who keeps the plain hint: parameters, then definitions, then other uses, each in pre-order. The
walk keeps its own stack, since chains may be thousands deep.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from operator import attrgetter
from typing import Any

from ..attrs import attr_expressions
from ..expr import Call, ConstInt, Expr, GlobalVar, IterArg, MemRef, Submit, Var, WindowBuffer
from ..node import IRNode, Kind, Role
from ..program import Function
from ..stmt import ScopeStmt
from ..traversal import NODE_CLASSES, PUSH_CHILDREN, carried_fields
from ..type import TensorType, TileType, Type
from ..type_fields import PLAIN_TYPES, type_expressions

FREE_SUFFIX = "__FREE_VAR"
Names = dict[Expr, str]


def _definitions(cls: type[IRNode]) -> tuple[tuple[Callable[[Any], Any], bool], ...]:
    """(getter, whether it gives a list) of the defining fields: loop and return variables before the iter_args."""
    fields = [info for info in cls.node_fields if info.role is Role.DEFINITION]
    carried = carried_fields(cls)
    fields.sort(key=lambda info: info.name in carried)
    return tuple((attrgetter(info.name), info.kind is Kind.LIST) for info in fields)


_DEFINITIONS = {cls: fields for cls in NODE_CLASSES if cls is not Function and (fields := _definitions(cls))}


def _define(mentions: Mentions, node: Any) -> None:
    definitions = mentions.definitions
    for getter, many in _DEFINITIONS[type(node)]:
        found = getter(node)
        for var in found if many else (found,):
            if var not in definitions:
                definitions[var] = None
                mentions.add_type(var.type)


def _bind_task_id(mentions: Mentions, scope: Any) -> None:
    if "task_id_var" in scope.attrs:  # ``with ... as tid`` defines it
        mentions.definitions.setdefault(scope.attrs["task_id_var"])


def _note_callee(mentions: Mentions, call: Any) -> None:
    if type(call.op) is GlobalVar:
        mentions.callees[call.op.name] = None


# What a node class adds besides its children.
_EXTRA: dict[type, Callable[[Mentions, Any], None]] = {
    **dict.fromkeys(_DEFINITIONS, _define),
    **{cls: _bind_task_id for cls in NODE_CLASSES if issubclass(cls, ScopeStmt)},
    Call: _note_callee,
    Submit: _note_callee,
}
# Of each class: what it adds, and the code that pushes its children. A MemRef prints inside a type or as its base, a
# WindowBuffer as its hint: they have no names of their own.
_PLANS = {cls: (_EXTRA.get(cls), push) for cls, push in PUSH_CHILDREN.items() if cls not in (MemRef, WindowBuffer)}


class Mentions:
    """The variables that a text mentions. Dicts serve as ordered sets."""

    __slots__ = ("_types", "callees", "definitions", "dims", "params", "uses")

    def __init__(self) -> None:
        self.params: dict[Var, None] = {}
        self.definitions: dict[Var, None] = {}
        self.uses: dict[Var, None] = {}  # occurrences of any kind
        self.dims: dict[Var, None] = {}  # occurrences in the extents of types
        self.callees: dict[str, None] = {}
        self._types: set[int] = set()

    def ordered(self) -> dict[Var, None]:
        """All variables in naming order."""
        return {**self.params, **self.definitions, **self.uses}

    def is_defined(self, var: Var) -> bool:
        return var in self.definitions or var in self.params

    def add_function(self, func: Function) -> None:
        """A whole function: signature, attributes, body."""
        for param in func.params:
            self.params[param] = None
            self.add_type(param.type)
        for kind in func.return_types:
            self.add_type(kind)
        self._walk([func.body, *(e for value in func.attrs.values() for e in attr_expressions(value))])

    def add_node(self, node: IRNode) -> None:
        """A statement or expression."""
        self._walk([node])

    def _walk(self, stack: list[Any]) -> None:
        uses, plans, push = self.uses, _PLANS, stack.append
        while stack:
            node = stack.pop()
            kind = type(node)
            if kind is Var or kind is IterArg:
                uses[node] = None
                continue
            plan = plans.get(kind)
            if plan is not None:
                extra, push_children = plan
                if extra is not None:
                    extra(self, node)
                push_children(node, push)

    def add_type(self, kind: Type) -> None:
        """The variables in a type's extents, views and memref."""
        if type(kind) in PLAIN_TYPES or id(kind) in self._types:
            return
        self._types.add(id(kind))
        if is_static(kind):
            return
        for extent in type_expressions(kind):
            if type(extent) is ConstInt or type(extent) is WindowBuffer:
                continue
            if type(extent) is MemRef:
                slot = extent.slot_index_
                self._walk([extent.byte_offset_] if slot is None else [slot, extent.byte_offset_])
            else:
                self._add_extent(extent)

    def _add_extent(self, extent: Expr) -> None:
        inner = Mentions()
        inner._walk([extent])
        self.dims.update(inner.uses)
        self.uses.update(inner.uses)


def is_static(kind: Any) -> bool:
    """Whether a type has, at a glance, nothing but constant extents: the usual case."""
    cls = type(kind)
    if cls is TileType:
        view = kind.tile_view
    elif cls is TensorType:
        view = kind.tensor_view
    else:
        return False
    if view is not None or kind.memref is not None:
        return False
    return all([type(extent) is ConstInt for extent in kind.shape])


def dynamic_dims(mentions: Mentions) -> dict[Var, None]:
    """The dims of a function that stem from ``pl.dynamic``: no parameter or statement defines them.

    A parameter that a ``valid_shape`` of the signature reads counts too: the reader needs the symbol before the
    parameter exists.
    """
    dims = {var: None for var in mentions.dims if not mentions.is_defined(var)}
    for param in mentions.params:
        kind = param.type
        view: Any = getattr(kind, "tensor_view", None) or getattr(kind, "tile_view", None)
        if view is not None and view.valid_shape:
            read = Mentions()
            for extent in view.valid_shape:
                read._add_extent(extent)
            dims.update((var, None) for var in read.uses if var in mentions.params)
    return dims


def distinct_names(
    variables: Iterable[Var], pinned: Mapping[Expr, str] | None = None, reserved: Iterable[str] = ()
) -> Names:
    """A name for each variable: its hint where only one variable has it, else ``hint``, ``hint_1``, ... in order.

    ``pinned`` variables keep the name they have elsewhere; ``reserved`` names belong to others.
    """
    names: Names = {}
    taken = set(reserved)
    todo: list[Var] = []
    count: dict[str, int] = {}
    for var in variables:
        name = pinned.get(var) if pinned else None
        if name is not None:
            names[var] = name
            taken.add(name)
        else:
            todo.append(var)
            count[var.name_hint] = count.get(var.name_hint, 0) + 1
    single = {hint for hint, times in count.items() if times == 1 and hint not in taken}
    taken |= single
    suffix: dict[str, int] = {}
    for var in todo:
        hint = name = var.name_hint
        if hint not in single:
            number = suffix.get(hint, 0)
            while name in taken:
                number += 1
                name = f"{hint}_{number}"
            suffix[hint] = number
            taken.add(name)
        names[var] = name
    return names


def function_names(mentions: Mentions, dims: Mapping[Expr, str]) -> Names:
    """Names in a function, given those of the dynamic dims; what nobody defines is marked as free."""
    names = distinct_names(mentions.ordered(), dims, dims.values())
    for var in mentions.uses:
        if var not in dims and not mentions.is_defined(var):
            names[var] += FREE_SUFFIX
    return names
