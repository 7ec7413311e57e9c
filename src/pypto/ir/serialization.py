"""IR as bytes and back.

A blob is a header (magic, version, checksum, length) and a MessagePack payload: a table of classes with their fields,
a table of spans, and one flat record for each object, children before parents, that names other objects by number. So
shared objects stay shared, depth is of no concern, and the same tree gives the same bytes in every process: neither
unique ids nor addresses are written.
"""

from __future__ import annotations

import enum
import os
import struct
import zlib
from collections.abc import Callable
from typing import Any

from . import enums
from .dtype import BY_CODE, DataType
from .expr import Expr, GlobalVar, Op, Var, WindowBuffer
from .node import FrozenDict, FrozenList, IRNode, Kind
from .program import Function
from .span import UNKNOWN_SPAN, Span
from .stmt import Stmt
from .traversal import NODE_CLASSES, NODE_FIELDS, field_annotation, field_class_name
from .type import ArrayType, ScalarType, TensorView, TileView, Type
from .type_fields import MARKERS, TYPE_FIELDS, Held

_HEADER = struct.Struct("<8sHIQ")
_MAGIC = b"PyPTO-IR"
_VERSION = 1

# --- how each field is written ----------------------------------------------------------------------------------------

_REF, _REFS, _ATTRS, _VALUE, _SPAN, _FUNCTIONS, _COMMENTS = range(7)
# The pseudo-field of statements behind their table: comments are kept beside the fields.
_COMMENTS_FIELD = "leading_comments"

_KINDS = {
    Kind.NODE: _REF,
    Kind.OPTIONAL: _REF,
    Kind.TYPE: _REF,
    Kind.OP: _REF,
    Kind.LIST: _REFS,
    Kind.MAP: _FUNCTIONS,
    Kind.TYPES: _REFS,
    Kind.ATTRS: _ATTRS,
    Kind.VALUE: _VALUE,
}
_TYPE_KINDS = {
    Held.VALUE: _VALUE,
    Held.NODE: _REF,
    Held.MEMREF: _REF,
    Held.VIEW: _REF,
    Held.EXTENTS: _REFS,
    Held.TYPES: _REFS,
}
_ENUMS: dict[str, type[enum.Enum]] = {
    name: value for name, value in vars(enums).items() if isinstance(value, type) and issubclass(value, enum.Enum)
}
# The classes that annotations of fields name.
_NAMES: dict[str, type] = {
    **_ENUMS,
    **{cls.__name__: cls for cls in NODE_CLASSES},
    **{cls.__name__: cls for cls in (Expr, Stmt, Type, Op, TensorView, TileView, DataType, bool, int, float, str)},
    "Any": WindowBuffer,
}


class _Field:
    """How one field is written, and what may be read back."""

    __slots__ = ("code", "name", "optional", "wanted")

    def __init__(self, owner: type, name: str, code: int) -> None:
        self.name = name
        self.code = code
        self.optional = False
        self.wanted: type = object
        if code in (_REF, _REFS, _VALUE):
            self.optional = field_annotation(owner, name).endswith(" | None")
            self.wanted = _NAMES[field_class_name(owner, name)]


def _node_plan(cls: type[IRNode]) -> tuple[_Field, ...]:
    fields = []
    for info in NODE_FIELDS[cls]:
        code = _SPAN if info.name == "span" else _KINDS[info.kind]
        fields.append(_Field(cls, info.name, code))
    if issubclass(cls, Stmt):
        fields.append(_Field(cls, _COMMENTS_FIELD, _COMMENTS))
    return tuple(fields)


def _type_plan(cls: type) -> tuple[_Field, ...]:
    return tuple(_Field(cls, name, _TYPE_KINDS[held]) for name, held in TYPE_FIELDS[cls])


_PLANS: dict[type, tuple[_Field, ...]] = {
    **{cls: _node_plan(cls) for cls in NODE_CLASSES},
    **{cls: _type_plan(cls) for cls in TYPE_FIELDS},
    Op: (_Field(Op, "name", _VALUE),),
    GlobalVar: (_Field(GlobalVar, "name", _VALUE),),
}
_CLASSES: dict[str, type] = {cls.__name__: cls for cls in _PLANS}

# Tags of plain values that MessagePack has no form of its own for.
_DTYPE, _ENUM, _LIST, _EXPR, _BIG = range(5)


# --- writing ----------------------------------------------------------------------------------------------------------


def serialize(node: IRNode) -> bytes:
    """A node with everything under it as bytes; equal input gives equal bytes."""
    if not isinstance(node, IRNode):
        raise TypeError(f"serialize expects an IR node, got {type(node).__name__}")
    import msgspec

    payload = msgspec.msgpack.encode(_Writer().write(node))
    return _HEADER.pack(_MAGIC, _VERSION, zlib.crc32(payload), len(payload)) + payload


class _Writer:
    def __init__(self) -> None:
        self._numbers: dict[int, int] = {}  # by id: the tree keeps its objects alive
        self._ops: dict[tuple[type, str], int] = {}
        self._classes: dict[type, int] = {}
        self._schema: list[Any] = []
        self._spans: dict[tuple[Any, ...], int] = {}
        self._records: list[Any] = []

    def write(self, root: Any) -> Any:
        open_: set[int] = set()
        stack = [root]
        while stack:
            item = stack[-1]
            if id(item) in self._numbers:
                stack.pop()
                continue
            missing: list[Any] = []
            record = self._record(item, missing)
            if not missing:
                stack.pop()
                self._numbers[id(item)] = len(self._records)
                self._records.append(record)
            elif id(item) in open_:
                raise ValueError(f"cannot serialize a cyclic structure: a {type(item).__name__} contains itself")
            else:
                open_.add(id(item))
                stack.extend(reversed(missing))
        return [self._schema, [list(span) for span in self._spans], self._records]

    def _record(self, item: Any, missing: list[Any]) -> list[Any]:
        cls = type(item)
        number = self._classes.get(cls)
        if number is None:
            if cls not in _PLANS:
                raise ValueError(f"cannot serialize a {cls.__name__}")
            number = self._classes[cls] = len(self._schema)
            self._schema.append([cls.__name__, [field.name for field in _PLANS[cls]]])
        record: list[Any] = [number]
        add, ref = record.append, self._ref
        for field in _PLANS[cls]:
            code = field.code
            value = getattr(item, field.name)
            if code == _REF:
                add(None if value is None else ref(value, missing))
            elif code == _REFS:
                add([ref(x, missing) for x in value])
            elif code == _VALUE:
                add(self._value(value, missing))
            elif code == _SPAN:
                key = (value.filename, value.begin_line, value.begin_column, value.end_line, value.end_column)
                add(self._spans.setdefault(key, len(self._spans)))
            elif code == _ATTRS:
                add([[key, self._value(x, missing)] for key, x in value.items()])
            elif code == _FUNCTIONS:
                add([[ref(g, missing), ref(f, missing)] for g, f in value.items()])
            else:
                add(value or None)
        return record

    def _ref(self, value: Any, missing: list[Any]) -> int:
        number = self._numbers.get(id(value))
        if number is not None:
            return number
        if isinstance(value, Op):
            return self._op(value)
        missing.append(value)
        return -1

    def _op(self, op: Op) -> int:
        # By name, not by object: references to one function need not be one object.
        cls = GlobalVar if isinstance(op, GlobalVar) else Op
        number = self._ops.get((cls, op.name))
        if number is None:
            record = self._record(op if type(op) is cls else cls(op.name), [])
            number = self._ops[cls, op.name] = len(self._records)
            self._records.append(record)
        return number

    def _value(self, value: Any, missing: list[Any]) -> Any:
        kind = type(value)
        if value is None or kind is bool or kind is float or kind is str:
            return value
        if kind is int:
            return value if -(2**63) <= value < 2**63 else [_BIG, str(value)]
        if kind is DataType:
            return [_DTYPE, value.code()]
        if isinstance(value, enum.Enum):
            return [_ENUM, kind.__name__, value.value]
        if isinstance(value, Expr):
            return [_EXPR, self._ref(value, missing)]
        if isinstance(value, list):
            return [_LIST, [self._value(x, missing) for x in value]]
        raise ValueError(f"cannot serialize a value of class {kind.__name__}")


# --- reading ----------------------------------------------------------------------------------------------------------


def deserialize(data: bytes) -> Any:
    """The node that :func:`serialize` wrote, with fresh unique ids; ``ValueError`` for anything else."""
    if not isinstance(data, (bytes, bytearray, memoryview)):
        raise TypeError(f"deserialize expects bytes, got {type(data).__name__}")
    import msgspec

    data = bytes(data)
    if data[: len(_MAGIC)] != _MAGIC[: len(data)] or not data:
        raise ValueError("not a PyPTO IR blob: it does not begin with the magic bytes")
    if len(data) < _HEADER.size:
        raise ValueError("truncated PyPTO IR blob: the header is incomplete")
    _, version, checksum, length = _HEADER.unpack_from(data)
    if version != _VERSION:
        raise ValueError(f"PyPTO IR blob of version {version}, this is version {_VERSION}: write it anew")
    payload = data[_HEADER.size :]
    if len(payload) != length:
        kind = "truncated" if len(payload) < length else "overlong"
        raise ValueError(f"{kind} PyPTO IR blob: {len(payload)} bytes instead of {length}")
    if zlib.crc32(payload) != checksum:
        raise ValueError("damaged PyPTO IR blob: the checksum does not agree")
    try:
        return _Reader(msgspec.msgpack.decode(payload)).read()
    except _Malformed:
        raise
    except (msgspec.DecodeError, AttributeError, IndexError, KeyError, TypeError, ValueError, OverflowError) as error:
        raise _Malformed(f"{type(error).__name__}: {error}") from error


class _Malformed(ValueError):
    """A blob whose payload is not what :func:`serialize` writes."""

    def __init__(self, what: str) -> None:
        super().__init__(f"malformed PyPTO IR blob: {what}")


def _make_op(cls: type[Op], name: str) -> Op:
    return cls(name)


_op_source: Callable[[type[Op], str], Op] = _make_op


def set_op_source(source: Callable[[type[Op], str], Op]) -> None:
    """May be called by the op registry, which lies above this package: what makes the op of a class and a name."""
    global _op_source
    _op_source = source


# Slots of types and views that are no fields.
_EXTRA: dict[type, tuple[tuple[str, Any], ...]] = {ArrayType: (("memref", None),)}
if "_frozen" in TensorView.__slots__:
    _EXTRA[TensorView] = (("_frozen", True),)

_set = object.__setattr__


class _Reader:
    def __init__(self, payload: Any) -> None:
        schema, spans, records = payload
        self._plans = [self._plan(name, fields) for name, fields in schema]
        self._spans = [self._span(*span) for span in spans]
        self._records = records
        self._objects: list[Any] = []

    @staticmethod
    def _plan(name: Any, fields: Any) -> tuple[type, tuple[_Field, ...]]:
        cls = _CLASSES.get(name)
        if cls is None:
            raise _Malformed(f"unknown node kind {name!r}")
        plan = _PLANS[cls]
        expected = [field.name for field in plan]
        missing = [field for field in expected if field not in fields]
        if missing:
            raise _Malformed(f"{name} lacks the field {missing[0]!r}")
        if fields != expected:
            raise _Malformed(f"{name} has the fields {fields}, expected {expected}")
        return cls, plan

    @staticmethod
    def _span(filename: str, *numbers: int) -> Span:
        if filename == "" and numbers == (-1, -1, -1, -1):
            return UNKNOWN_SPAN
        return Span(filename, *numbers)

    def read(self) -> Any:
        add = self._objects.append
        for record in self._records:
            cls, plan = self._plans[record[0]]
            if len(record) != len(plan) + 1:
                raise _Malformed(f"a {cls.__name__} has {len(record) - 1} fields, expected {len(plan)}")
            values = [self._field(field, value) for field, value in zip(plan, record[1:], strict=True)]
            add(self._make(cls, plan, values))
        if not self._objects or not isinstance(self._objects[-1], IRNode):
            raise _Malformed("it holds no node")
        return self._objects[-1]

    def _field(self, field: _Field, value: Any) -> Any:
        code = field.code
        if code == _REF:
            return None if value is None and field.optional else self._get(value, field.wanted)
        if code == _REFS:
            return FrozenList([self._get(x, field.wanted) for x in value])
        if code == _VALUE:
            found = self._value(value)
            for item in found if isinstance(found, FrozenList) else (found,):
                if type(item) is not field.wanted and not (item is None and field.optional):
                    raise _Malformed(f"{item!r} in the field {field.name!r}")
            return found
        if code == _SPAN:
            return self._spans[value]
        if code == _ATTRS:
            return FrozenDict({key: self._value(x) for key, x in value})
        if code == _FUNCTIONS:
            return FrozenDict({self._get(g, GlobalVar): self._get(f, Function) for g, f in value})
        return value

    def _get(self, number: Any, wanted: type) -> Any:
        if type(number) is not int or not 0 <= number < len(self._objects):
            raise _Malformed(f"reference to object {number!r} of {len(self._objects)}")
        found = self._objects[number]
        if not isinstance(found, wanted):
            raise _Malformed(f"a {type(found).__name__} where a {wanted.__name__} belongs")
        return found

    def _value(self, value: Any) -> Any:
        if type(value) is not list:
            return value
        tag = value[0]
        if tag == _DTYPE:
            return BY_CODE[value[1]]
        if tag == _ENUM:
            return _ENUMS[value[1]](value[2])
        if tag == _LIST:
            return FrozenList([self._value(x) for x in value[1]])
        if tag == _EXPR:
            return self._get(value[1], Expr)
        if tag == _BIG:
            return int(value[1])
        raise _Malformed(f"unknown tag {tag!r} of a value")

    def _make(self, cls: Any, plan: tuple[_Field, ...], values: list[Any]) -> Any:
        if cls in MARKERS:
            return cls()
        if cls is ScalarType:
            return ScalarType(values[0])
        if cls is Op or cls is GlobalVar:
            return _op_source(cls, values[0])
        new = object.__new__(cls)
        if cls in TYPE_FIELDS:
            for field, value in zip(plan, values, strict=True):
                _set(new, field.name, value)
            for name, value in _EXTRA.get(cls, ()):
                _set(new, name, value)
            return new
        by_name = {field.name: value for field, value in zip(plan, values, strict=True)}
        if isinstance(new, Var):
            # The constructor gives the fresh unique id.
            Var.__init__(new, by_name["name_hint"], by_name["type"], by_name["span"])
        for info in NODE_FIELDS[cls]:
            info.setter(new, by_name[info.name])
        comments = by_name.get(_COMMENTS_FIELD)
        if comments:
            _set(new, "_comments", tuple(comments))
        return new


# --- files ------------------------------------------------------------------------------------------------------------


def serialize_to_file(node: IRNode, path: str | os.PathLike[str]) -> None:
    """:func:`serialize` into a file."""
    data = serialize(node)
    try:
        with open(path, "wb") as file:
            file.write(data)
    except OSError as error:
        raise ValueError(f"cannot write IR to {os.fspath(path)!r}: {error.strerror}") from error


def deserialize_from_file(path: str | os.PathLike[str]) -> Any:
    """:func:`deserialize` of a file's content; ``ValueError`` if it cannot be read."""
    try:
        with open(path, "rb") as file:
            data = file.read()
    except OSError as error:
        raise ValueError(f"cannot read IR from {os.fspath(path)!r}: {error.strerror}") from error
    return deserialize(data)
