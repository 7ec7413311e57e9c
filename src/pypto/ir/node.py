"""The machinery of IR nodes: immutable slotted classes generated from a table of field roles.

Each node class states its fields once, each with a *role*; visitor, mutator, equality, hash, free variables, printer
coverage and serialization read the resulting table (``cls.node_fields``), so no other list of fields exists.
"""

from __future__ import annotations

import builtins
import enum
import sys
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, TypeVar

from .generated import make_function
from .span import UNKNOWN_SPAN, Span


class Role(enum.Enum):
    """What a field is to the node that holds it."""

    DEFINITION = "definition"  # variables that the node introduces
    USE = "use"  # children that the node reads: expressions, statements, functions
    ATTRIBUTE = "attribute"  # plain data, types and attribute maps: compared, printed, kept
    IGNORED = "ignored"  # spans, comments, name hints: no part of the meaning


class Kind(enum.Enum):
    """How a field holds its value."""

    NODE = "node"
    OPTIONAL = "optional"  # a node or None
    LIST = "list"  # FrozenList of nodes
    MAP = "map"  # FrozenDict from names to nodes
    TYPE = "type"  # an ir Type
    TYPES = "types"  # FrozenList of ir Types
    ATTRS = "attrs"  # FrozenDict: values may hold expressions, found by type
    VALUE = "value"  # anything compared with ==
    OP = "op"  # compared by name


class FieldInfo:
    """One row of a node class's field table."""

    __slots__ = ("kind", "name", "role", "setter")

    def __init__(self, name: str, role: Role, kind: Kind) -> None:
        self.name = name
        self.role = role
        self.kind = kind
        self.setter: Callable[[Any, Any], None] = _unset_setter

    def __repr__(self) -> str:
        return f"FieldInfo({self.name}, {self.role.value}, {self.kind.value})"


def _unset_setter(_node: Any, _value: Any) -> None:
    raise AssertionError("field table used before its class was made")


class _Marker:
    __slots__ = ("kind", "role")

    def __init__(self, role: Role, kind: Kind) -> None:
        self.role = role
        self.kind = kind


def definition(kind: Kind = Kind.NODE) -> Any:
    """A field whose variables the node introduces."""
    return _Marker(Role.DEFINITION, kind)


def use(kind: Kind = Kind.NODE) -> Any:
    """A field whose nodes the node reads."""
    return _Marker(Role.USE, kind)


def attribute(kind: Kind = Kind.VALUE) -> Any:
    """A field of plain data that is part of the meaning."""
    return _Marker(Role.ATTRIBUTE, kind)


def ignored() -> Any:
    """A field that is no part of the meaning."""
    return _Marker(Role.IGNORED, Kind.VALUE)


T = TypeVar("T")
K = TypeVar("K")
V = TypeVar("V")


class FrozenList(list[T]):
    """A list that refuses to change: what list-valued node properties return."""

    __slots__ = ()

    def _refuse(self, *_args: Any, **_kwargs: Any) -> NoReturn:
        raise TypeError("IR nodes are immutable: this list is read-only; copy it with list(...)")

    append = extend = insert = pop = remove = clear = sort = reverse = _refuse
    __setitem__ = __delitem__ = __iadd__ = __imul__ = _refuse

    def __reduce__(self) -> tuple[Any, ...]:
        return FrozenList, (list(self),)


class FrozenDict(dict[K, V]):
    """A dict that refuses to change: what dict-valued node properties return."""

    __slots__ = ()

    def _refuse(self, *_args: Any, **_kwargs: Any) -> NoReturn:
        raise TypeError("IR nodes are immutable: this dict is read-only; copy it with dict(...)")

    __setitem__ = __delitem__ = __ior__ = _refuse
    clear = pop = popitem = setdefault = update = _refuse

    def __reduce__(self) -> tuple[Any, ...]:
        return FrozenDict, (dict(self),)


EMPTY_LIST: FrozenList[Any] = FrozenList()
EMPTY_DICT: FrozenDict[Any, Any] = FrozenDict()


def frozen_list(items: Iterable[T] | None) -> FrozenList[T]:
    """``items`` copied into a read-only list (an existing one is shared)."""
    if type(items) is FrozenList:
        return items
    return FrozenList(items) if items else EMPTY_LIST


def frozen_dict(items: Mapping[K, V] | None) -> FrozenDict[K, V]:
    """``items`` copied into a read-only dict (an existing one is shared)."""
    if type(items) is FrozenDict:
        return items
    return FrozenDict(items) if items else EMPTY_DICT


def _refuse_abstract(self: Any, *_args: Any, **_kwargs: Any) -> NoReturn:
    raise TypeError(f"{type(self).__name__} is abstract: make one of its subclasses")


class NodeMeta(type):
    """Builds slots, field table and constructor of a node class from its annotated markers."""

    node_fields: tuple[FieldInfo, ...]

    def __new__(mcs, name: str, bases: tuple[type, ...], namespace: dict[str, Any], abstract: bool = False) -> NodeMeta:
        own = [(key, value) for key, value in namespace.items() if isinstance(value, _Marker)]
        for key, _ in own:
            del namespace[key]
        namespace["__slots__"] = (*namespace.get("__slots__", ()), *(key for key, _ in own))
        # An abstract class refuses in __init__, which costs its subclasses nothing; its own constructor is theirs.
        if abstract:
            namespace["_subclass_init"] = namespace.get("__init__")
            namespace["__init__"] = _refuse_abstract
        elif "__init__" not in namespace:
            given = next((base.__dict__.get("_subclass_init") for base in bases), None)
            if given is not None:
                namespace["__init__"] = given
        cls = super().__new__(mcs, name, bases, namespace)
        inherited = tuple(info for base in bases for info in getattr(base, "node_fields", ()))
        fields = []
        for key, marker in own:
            info = FieldInfo(key, marker.role, marker.kind)
            info.setter = cls.__dict__[key].__set__
            fields.append(info)
        # Subclass fields come first: their order is the order of comparison, and spans come last.
        order = namespace.get("_field_order")
        table = (*fields, *inherited)
        if order is not None:
            by_name = {info.name: info for info in table}
            table = tuple(by_name.pop(key) for key in order) + tuple(by_name.values())
        cls.node_fields = table
        if "__init__" not in namespace and fields and not abstract:
            cls.__init__ = _generated_init(cls, namespace.get("_init_order"))  # type: ignore[misc]
        if not abstract:
            cls.replace = _first_replace  # type: ignore[attr-defined]
        return cls


def wrong_kind(owner: str, field: str, wanted: type, value: object) -> NoReturn:
    """Refuse a constructor argument of the wrong class."""
    raise TypeError(f"{owner}: {field} must be {_article(wanted)}, got {type(value).__name__}")


def _article(cls: type) -> str:
    name = cls.__name__
    return f"an {name}" if name[0] in "AEIOU" else f"a {name}"


def checked_list(items: Any, wanted: type[T], owner: str, field: str) -> FrozenList[T]:
    """``items`` as a read-only list of ``wanted``; a list that a node holds already is not looked at again."""
    if type(items) is FrozenList:
        return items
    if items is None:
        return EMPTY_LIST
    if not isinstance(items, (list, tuple)):
        if not isinstance(items, Iterable) or isinstance(items, (str, IRNode)):
            raise TypeError(f"{owner}: {field} must be a list, got {type(items).__name__}")
        items = tuple(items)
    for item in items:
        if not isinstance(item, wanted):
            wrong_kind(owner, f"each of {field}", wanted, item)
    return FrozenList(items) if items else EMPTY_LIST


def _field_class(cls: type, key: str) -> type:
    """The class named in a field's annotation: ``Var`` of ``Var``, ``Stmt | None`` or ``FrozenList[Var]``."""
    for base in cls.__mro__:
        text = base.__dict__.get("__annotations__", {}).get(key)
        if text is not None:
            name = text.removeprefix("FrozenList[").removesuffix("]").removesuffix(" | None")
            found = getattr(sys.modules[base.__module__], name, None) or getattr(builtins, name)
            assert isinstance(found, type)
            return found
    raise AssertionError(f"{cls.__name__}.{key} has no annotation")


def _generated_init(cls: NodeMeta, order: tuple[str, ...] | None) -> Callable[..., None]:
    by_name = {info.name: info for info in cls.node_fields}
    names = list(order) if order is not None else list(by_name)
    env: dict[str, Any] = {"checked_list": checked_list, "wrong_kind": wrong_kind, "UNKNOWN_SPAN": UNKNOWN_SPAN}
    lines = []
    parameters = []
    for key in names:
        info = by_name[key]
        wanted = f"class_{key}"
        env[wanted] = _field_class(cls, key)
        env[f"set_{key}"] = info.setter
        value = key
        if info.kind is Kind.LIST:
            value = f"checked_list({key}, {wanted}, {cls.__name__!r}, {key!r})"
        else:
            absent = f"{key} is not None and " if info.kind is Kind.OPTIONAL else ""
            lines.append(f"    if {absent}not isinstance({key}, {wanted}):")
            lines.append(f"        wrong_kind({cls.__name__!r}, {key!r}, {wanted}, {key})")
        lines.append(f"    set_{key}(self, {value})")
        parameters.append(f"{key}=UNKNOWN_SPAN" if key == "span" else key)
    source = f"def __init__(self, {', '.join(parameters)}):\n" + "\n".join(lines)
    exec(source, env)
    return env["__init__"]  # type: ignore[no-any-return]


_KEPT: Any = object()  # stands for the value that a field has already


def _first_replace(self: Any, **changes: Any) -> Any:
    """:meth:`IRNode.replace` of each class until it is called: to make code for all classes delays the import."""
    cls = type(self)
    cls.replace = _generated_replace(cls)
    return cls.replace(self, **changes)


def _generated_replace(cls: Any) -> Callable[..., Any]:
    """:meth:`IRNode.replace` of a class: passes copy nodes all the time, so the fields are written out."""
    names = [info.name for info in cls.node_fields]
    # The class of the node, not ``cls``: a class without fields of its own shares the code of its base.
    lines = ["new = alloc(self.__class__)"]
    lines += [f"set_{name}(new, self.{name} if {name} is KEPT else {name})" for name in names]
    lines += ["if unknown: no_field(self, unknown)"]
    env: dict[str, Any] = {"KEPT": _KEPT, "alloc": object.__new__, "no_field": _no_field}
    env.update((f"set_{info.name}", info.setter) for info in cls.node_fields)
    if cls._finish_copy is not None:
        env["finish"] = cls._finish_copy
        lines += ["finish(self, new)"]
    parameters = ", ".join(f"{name}=KEPT" for name in names)
    return make_function("replace", f"self, *, {parameters}, **unknown", [*lines, "return new"], env)  # type: ignore[no-any-return]


def _no_field(node: Any, unknown: dict[str, Any]) -> NoReturn:
    raise TypeError(f"{type(node).__name__} has no field {min(unknown)!r}")


class IRNode(metaclass=NodeMeta, abstract=True):
    """Base of all IR nodes: immutable, compared and hashed by identity."""

    __slots__ = ("__weakref__",)

    node_fields: tuple[FieldInfo, ...]
    # What ``replace`` has to do besides copying fields, for classes with state outside of the table.
    _finish_copy: ClassVar[Any] = None
    span: Span = ignored()

    if TYPE_CHECKING:

        def __init__(self, *args: Any, **kwargs: Any) -> None: ...

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{type(self).__name__} is immutable: cannot set {name!r}")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"{type(self).__name__} is immutable: cannot delete {name!r}")

    def same_as(self, other: object) -> bool:
        """Identity."""
        return self is other

    def replace(self: NodeT, **changes: Any) -> NodeT:
        """A copy with some fields changed; spans, comments and all other fields are kept.

        Values must already have the stored form (``FrozenList``, ``FrozenDict``); constructors are not run.
        """
        raise AssertionError("each concrete class has generated code for this")

    def as_python(self, prefix: str = "pl", concise: bool = False, format: bool = True) -> str:
        """The node as DSL text; see :func:`pypto.ir.python_print`."""
        from .printer import python_print

        return python_print(self, prefix, concise, format)

    def __str__(self) -> str:
        return self.as_python()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} at {self.span}>"


NodeT = TypeVar("NodeT", bound=IRNode)
