"""What all traversals of the IR share: the child fields of each node class, and the dispatch of visitors and mutators.

Everything here is derived from ``node_fields``. The default walk of each class is straight-line code generated once,
and each visitor class gets a table from node class to method when it is defined, so a node costs one look-up.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

from . import expr as x
from .attrs import attr_expressions
from .expr import BinaryExpr, Expr, IterArg, UnaryExpr
from .generated import make_function
from .node import FieldInfo, IRNode, Kind, Role
from .program import Function
from .recursion import FRAMES_ARE_CHEAP, deep_recursion, deeper_than, with_big_stack
from .stmt import ScopeStmt, Stmt, WhileStmt
from .type_fields import PLAIN_TYPES, type_expressions

_ABSTRACT = (IRNode, Expr, Stmt, BinaryExpr, UnaryExpr, ScopeStmt)


def _concrete(cls: type[IRNode]) -> Iterator[type[IRNode]]:
    if cls not in _ABSTRACT:
        yield cls
    for sub in cls.__subclasses__():
        yield from _concrete(sub)


NODE_CLASSES: tuple[type[IRNode], ...] = tuple(_concrete(IRNode))

CONSTANTS: frozenset[type[IRNode]] = frozenset((x.ConstInt, x.ConstFloat, x.ConstBool))


# Every field of each class, in the order of comparison.
NODE_FIELDS: dict[type[IRNode], tuple[FieldInfo, ...]] = {cls: cls.node_fields for cls in NODE_CLASSES}

_CHILD_KINDS = (Kind.NODE, Kind.OPTIONAL, Kind.LIST, Kind.MAP, Kind.ATTRS)


def _child_fields(cls: type[IRNode]) -> tuple[FieldInfo, ...]:
    fields = [info for info in NODE_FIELDS[cls] if info.kind in _CHILD_KINDS]
    if issubclass(cls, ScopeStmt):
        fields.sort(key=lambda info: 2 if info.name == "body" else int(info.kind is Kind.ATTRS))
    return tuple(fields)


_CHILD_FIELDS: dict[type, tuple[FieldInfo, ...]] = {cls: _child_fields(cls) for cls in NODE_CLASSES}


def child_fields(cls: type[IRNode]) -> tuple[FieldInfo, ...]:
    """The fields that hold nodes, definitions before uses: scopes give their own expressions, attrs, then the body."""
    return _CHILD_FIELDS[cls]


def reading_order(cls: type[IRNode]) -> tuple[FieldInfo, ...]:
    """:func:`child_fields` as a reader sees them: the condition of a ``while`` first."""
    fields = child_fields(cls)
    if cls is WhileStmt:
        fields = tuple(sorted(fields, key=lambda info: info.name != "condition"))
    return fields


def field_annotation(cls: type, name: str) -> str:
    """The annotation of a field of a node, type or view."""
    for base in cls.__mro__:
        text = base.__dict__.get("__annotations__", {}).get(name)
        if text is not None:
            return str(text)
    raise AssertionError(f"{cls.__name__}.{name} has no annotation")


def field_class_name(cls: type, name: str) -> str:
    """The class named in a field's annotation: ``Stmt`` of ``Stmt | None``, ``IterArg`` of ``FrozenList[IterArg]``."""
    return field_annotation(cls, name).removesuffix(" | None").removeprefix("FrozenList[").removesuffix("]")


_CARRIED: dict[type, tuple[str, ...]] = {
    cls: tuple(
        info.name for info in table if info.role is Role.DEFINITION and field_class_name(cls, info.name) == "IterArg"
    )
    for cls, table in NODE_FIELDS.items()
}


def carried_fields(cls: type[IRNode]) -> tuple[str, ...]:
    """The fields that define iter_args."""
    return _CARRIED[cls]


# --- children, pushed on a stack --------------------------------------------------------------------------------------

Pusher = Callable[[Any, Callable[[Any], None]], None]


def attrs_expressions(attrs: dict[str, Any]) -> list[Any]:
    """The expressions in an attribute map, in stored order."""
    return [e for value in attrs.values() for e in attr_expressions(value)]


def _push_iter_args(iter_args: Any, push: Callable[[Any], None]) -> None:
    # The initial value is a child of the definition, not of each use: that would be quadratic.
    for arg in reversed(iter_args):
        if isinstance(arg, IterArg):
            push(arg.initValue)
        push(arg)


def _compile_pusher(cls: type[IRNode]) -> Pusher | None:
    """Code that pushes the children of a node in reverse reading order, so that a stack pops them in order."""
    fields = () if cls is IterArg else reading_order(cls)
    carried = carried_fields(cls)
    lines = []
    for info in reversed(fields):
        value = f"node.{info.name}"
        if info.kind is Kind.MAP:
            lines += [f"for x in reversed({value}.values()): push(x)"]
        elif info.kind is Kind.NODE:
            lines += [f"push({value})"]
        elif info.kind is Kind.OPTIONAL:
            lines += [f"if {value} is not None: push({value})"]
        elif info.kind is Kind.ATTRS:
            lines += [f"if {value}:", f"    for x in reversed(attrs_expressions({value})): push(x)"]
        elif info.name in carried:
            lines += [f"push_iter_args({value}, push)"]
        else:
            lines += [f"for x in reversed({value}): push(x)"]
    if not lines:
        return None
    env: dict[str, Any] = {"attrs_expressions": attrs_expressions, "push_iter_args": _push_iter_args}
    return make_function("push_children", "node, push", lines, env)  # type: ignore[no-any-return]


# Without classes that have no children.
PUSH_CHILDREN: dict[type, Pusher] = {
    cls: code for cls, code in ((cls, _compile_pusher(cls)) for cls in NODE_CLASSES) if code is not None
}


def walk(node: IRNode, types: bool = False) -> Iterator[Any]:
    """All nodes of a tree, parents first, in reading order; with ``types`` also the expressions in their types.

    A variable is given once for each occurrence, the initial value of an iter_arg with its definition only.
    """
    stack = [node]
    pop, push, pushers = stack.pop, stack.append, PUSH_CHILDREN
    if isinstance(node, IterArg):
        push(node.initValue)
        stack.reverse()
    if types:
        yield from _walk_with_types(stack)
        return
    while stack:
        item = pop()
        yield item
        code = pushers.get(type(item))
        if code is not None:
            code(item, push)


def _walk_with_types(stack: list[IRNode]) -> Iterator[Any]:
    push, pushers = stack.append, PUSH_CHILDREN
    while stack:
        item: Any = stack.pop()
        yield item
        code = pushers.get(type(item))
        if code is not None:
            code(item, push)
        for e in reversed(own_type_expressions(item)):
            push(e)


def own_type_expressions(node: Any) -> list[Any]:
    """The expressions in the types that a node states itself: its own, or the results of a function."""
    if isinstance(node, Expr):
        return [] if type(node.type) in PLAIN_TYPES else type_expressions(node.type)
    if type(node) is Function:
        return [e for kind in node.return_types for e in type_expressions(kind)]
    return []


# --- dispatch of visitors and mutators --------------------------------------------------------------------------------

Method = Callable[[Any, Any], Any]


def method_name(cls: type[IRNode]) -> str:
    """``visit_for_stmt`` of ``ForStmt``."""
    return "visit_" + re.sub(r"(?<!^)(?=[A-Z])", "_", cls.__name__).lower()


class MethodTable(dict[type, Method]):
    """Node class to method; says clearly when something else is visited."""

    __slots__ = ()

    def __missing__(self, cls: type) -> Method:
        raise TypeError(f"cannot visit {cls.__name__}: it is not an IR node")


class Traversal:
    """Common part of visitors and mutators.

    ``_methods`` maps a node class to what visits it: a method that a subclass overrode, or generated code.
    ``_dispatch`` is what the generated code calls for children: the same, or an overridden ``visit_expr`` or
    ``visit_stmt``.
    """

    _defaults: ClassVar[MethodTable]
    _methods: ClassVar[MethodTable]
    _dispatch: ClassVar[MethodTable]
    # Binary classes whose visit is the default: chains of them are walked without recursion.
    _spine: ClassVar[frozenset[type]]
    _recurses: ClassVar[bool]
    _root: ClassVar[type[Traversal]]

    _active: bool
    _fresh: set[Any]

    def __new__(cls, *_args: Any, **_kwargs: Any) -> Any:
        # State is made here, so that a subclass need not call ``super().__init__()``.
        self = object.__new__(cls)
        self._active = False
        # Iter_args whose definition is about to be visited: there, and only there, is the initial value a child.
        self._fresh = set()
        self._setup()
        return self

    def _setup(self) -> None:
        """Make the state of a traversal class."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "_defaults" in cls.__dict__:
            cls._root = cls
        cls._build_tables()

    @classmethod
    def _overrides(cls, name: str) -> bool:
        return getattr(cls, name, None) is not getattr(cls._root, name, None)

    @classmethod
    def _build_tables(cls) -> None:
        methods = MethodTable()
        for node_class in NODE_CLASSES:
            methods[node_class] = cls._method_of(node_class)
        dispatch = MethodTable(methods)
        for node_class in NODE_CLASSES:
            entry = "visit_expr" if issubclass(node_class, Expr) else "visit_stmt"
            if issubclass(node_class, (Expr, Stmt)) and cls._overrides(entry):
                dispatch[node_class] = getattr(cls, entry)
        cls._methods = methods
        cls._dispatch = dispatch
        default = cls._root._defaults
        cls._spine = frozenset(c for c in x.BINARY_CLASSES if dispatch[c] is default[c])
        cls._recurses = len(cls._spine) < len(x.BINARY_CLASSES)

    @classmethod
    def _method_of(cls, node_class: type[IRNode]) -> Method:
        name = method_name(node_class)
        override: Method = getattr(cls, name)
        if cls._overrides(name):
            carried = carried_fields(node_class)
            return _marking_carries(override, carried[0]) if carried else override
        for base, fallback in ((BinaryExpr, "visit_binary_expr"), (UnaryExpr, "visit_unary_expr")):
            if issubclass(node_class, base) and cls._overrides(fallback):
                return getattr(cls, fallback)  # type: ignore[no-any-return]
        return cls._root._defaults[node_class]

    def _default(self, op: Any) -> Any:
        """The default walk of a node: what the public methods do unless overridden."""
        code = self._root._defaults[type(op)]
        return code(self, op) if self._active else self._start(code, op)

    def _start(self, method: Method, op: Any) -> Any:
        """Begin a traversal at ``op``."""
        if isinstance(op, IterArg):
            self._fresh.add(op)
        self._active = True
        try:
            if not FRAMES_ARE_CHEAP and self._recurses and deeper_than(op, 1_000, PUSH_CHILDREN):
                return with_big_stack(lambda: method(self, op))
            with deep_recursion():
                return method(self, op)
        finally:
            self._active = False
            self._fresh.clear()


def _marking_carries(override: Method, field: str) -> Method:
    """An overridden visit of a loop, behind a note that its iter_args are being defined."""

    def visit_loop(self: Traversal, op: Any) -> Any:
        carried = getattr(op, field)
        if carried:
            self._fresh.update(carried)
        return override(self, op)

    return visit_loop
