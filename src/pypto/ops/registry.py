"""The table of ops: registration with its checks, creation of calls, queries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..diag.errors import InternalError
from ..ir.attrs import normalize_attr
from ..ir.dtype import BY_CODE, DataType
from ..ir.enums import ArgEffect, MemorySpace, PadValue, TensorLayout, TileLayout, WriteChannel
from ..ir.expr import Call, Expr, Op, set_keyword_schema_source
from ..ir.location import current_span
from ..ir.node import EMPTY_DICT, FrozenDict, FrozenList
from ..ir.printer.calls import set_call_printer_source
from ..ir.span import UNKNOWN_SPAN, Span
from ..ir.type import TileType, TupleType, Type
from .definition import DEFERRED, INHERIT, REQUIRED, Alias, Category, OpDef
from .printing import PRINTED_FORMS

REGISTRY: dict[str, OpDef] = {}


def register(definition: OpDef) -> OpDef:
    """Add an op; a second one of the same name is a bug."""
    if definition.name in REGISTRY:
        raise InternalError(f"op {definition.name!r} is already registered")
    REGISTRY[definition.name] = definition
    return definition


def define(name: str, *args: Any, **kwargs: Any) -> OpDef:
    """Make and register an :class:`OpDef`; the category follows from the name where it is not given."""
    if not args or not isinstance(args[0], Category):
        prefix = name.split(".", 1)[0]
        args = (_CATEGORY_OF_PREFIX[prefix], *args)
    return register(OpDef(name, *args, **kwargs))


_CATEGORY_OF_PREFIX = {
    "tensor": Category.TENSOR,
    "tile": Category.TILE,
    "system": Category.SYNC,
    "array": Category.ARRAY,
    "prefetch": Category.PREFETCH,
    "pld": Category.DISTRIBUTED,
    "builtin": Category.DISTRIBUTED,
    "dist": Category.DISTRIBUTED,
    "test": Category.TEST,
}


def validate() -> None:
    """The checks over the whole catalogue that run when ``pypto.ops`` is imported."""
    for definition in REGISTRY.values():
        name = definition.name
        if (
            definition.category is Category.TILE
            and not definition.no_memory_spec
            and definition.output_memory is None
            and not definition.input_memory
        ):
            raise InternalError(f"op {name!r} is missing a memory spec")
        if definition.alias is Alias.IS:
            index = definition.alias_operand
            if index is None or not (index in definition.effects or definition.effects_declared):
                raise InternalError(f"op {name!r} updates an argument in place but never declared its effect")
        if definition.channel is not None and not definition.effects:
            raise InternalError(f"op {name!r} has a write channel but writes no argument")


# --- creation ---------------------------------------------------------------------------------------------------------


def lookup(name: str) -> OpDef:
    """The definition of an op; ``ValueError`` for an unknown name."""
    found = REGISTRY.get(name)
    if found is None:
        hint = "" if "." in name else " (a name without a dot looks like a function: use GlobalVar)"
        raise ValueError(f"op {name!r} not found in registry{hint}")
    return found


def build(definition: OpDef, args: FrozenList[Expr], kwargs: FrozenDict[str, Any], span: Span) -> Call:
    """A typed call from checked kwargs: infer the type and stamp the memory space."""
    kind = definition.infer(args, kwargs)
    if definition.output_memory is not None:
        kind = _stamp_memory(definition, kind, args, kwargs)
    return Call.make(definition.op, args, kwargs, EMPTY_DICT, kind, span)


def call(name: str, /, *args: Expr, **kwargs: Any) -> Call:
    """Build a call of a registered op at the current span. Kwargs must be of schema kinds; None means "absent"."""
    definition = REGISTRY[name]
    stored: FrozenDict[str, Any] = (
        FrozenDict({key: value for key, value in kwargs.items() if value is not None}) if kwargs else EMPTY_DICT
    )
    if stored:
        stored = check_kwargs(definition, stored)
    return build(definition, FrozenList(args), stored, current_span())


def create_op_call(op_name: str, args: Sequence[Expr], *rest: Any, **named: Any) -> Call:
    """``create_op_call(op_name, args, [kwargs,] span)``: a call whose type comes from the op's type rule.

    Raises ``ValueError`` for an unknown op, an unknown kwarg, or operands that the rule rejects; ``TypeError`` for a
    kwarg of another kind than the schema says.
    """
    values = list(rest)
    span = named.pop("span", None)
    kwargs = named.pop("kwargs", None)
    if named:
        raise TypeError(f"create_op_call got an unexpected keyword argument {next(iter(named))!r}")
    if values and isinstance(values[-1], Span):
        span = values.pop()
    if values:
        kwargs = values.pop(0)
    definition = lookup(op_name)
    if definition.internal:
        raise ValueError(f"op {op_name!r} is internal-only and cannot be created from user-facing op creation paths")
    where = span if span is not None else UNKNOWN_SPAN
    try:
        stored = check_kwargs(definition, dict(kwargs or {}))
        return build(definition, FrozenList(args), stored, where)
    except (ValueError, TypeError) as error:
        text = str(error)
        if where.is_valid() and f"{where.filename}:{where.begin_line}" not in text:
            raise type(error)(f"{text} at {where}") from error
        raise


_EXPECTS = {
    DataType: "expects DataType or int",
    MemorySpace: "expects MemorySpace",
    TileLayout: "expects TileLayout",
    TensorLayout: "expects TensorLayout",
    PadValue: "expects PadValue",
}


def check_kwargs(definition: OpDef, kwargs: Mapping[str, Any]) -> FrozenDict[str, Any]:
    """Kwargs in stored form; rejects unknown keys, kinds other than the schema's, and missing required ones."""
    schema = definition.kwargs
    stored = {}
    for key, value in kwargs.items():
        row = schema.get(key)
        if row is None:
            raise ValueError(f"Unknown kwarg '{key}' for operator '{definition.name}'")
        stored[key] = _coerce(definition.name, key, value, row[0])
    for key, (_, default) in schema.items():
        if default is REQUIRED and key not in stored:
            raise ValueError(f"{definition.name} requires a '{key}' kwarg")
    return FrozenDict(stored)


def _coerce(op_name: str, key: str, value: Any, want: Any) -> Any:
    kind = type(value)
    if kind is want:
        return value
    if want is DataType and kind is int and value in BY_CODE:
        return BY_CODE[value]
    if want is int and isinstance(value, int) and kind is not bool:
        return int(value)  # IntEnum members are stored as ints
    if want is float and kind in (int, float):
        return float(value)
    if isinstance(want, tuple) and kind in want:
        return normalize_attr(key, value)
    expects = _EXPECTS.get(want, "")
    raise TypeError(
        f"kwarg '{key}' of operator '{op_name}' has incompatible type {kind.__name__}"
        + (f": {expects}" if expects else "")
    )


def _stamp_memory(definition: OpDef, kind: Type, args: Sequence[Expr], kwargs: Mapping[str, Any]) -> Type:
    if type(kind) is TileType:
        if kind.memory_space is not None:
            return kind
        space = _resolve_memory(definition, args, kwargs)
        return kind if space is None else TileType(kind.shape, kind.dtype, kind.memref, kind.tile_view, space)
    if type(kind) is TupleType and any(type(t) is TileType for t in kind.types):
        return TupleType([_stamp_memory(definition, t, args, kwargs) for t in kind.types])
    return kind


def _resolve_memory(definition: OpDef, args: Sequence[Expr], kwargs: Mapping[str, Any]) -> MemorySpace | None:
    spec = definition.output_memory
    if isinstance(spec, MemorySpace):
        return spec
    if spec == DEFERRED:
        return kwargs.get("target_memory")
    if spec == INHERIT:
        for arg in args:
            if isinstance(arg.type, TileType):
                return arg.type.memory_space
    return None


# --- queries ----------------------------------------------------------------------------------------------------------


def get_op(op_name: str) -> Op:
    """The registered op; ``ValueError`` if unknown."""
    return lookup(op_name).op


def is_op_registered(op_name: str) -> bool:
    """Whether the name is a registered op."""
    return op_name in REGISTRY


def get_op_memory_spec(op_name: str) -> dict[str, Any] | None:
    """``None`` without a spec, else ``{"input_constraints": [[space, ...], ...], "output_memory": ...}``."""
    definition = REGISTRY.get(op_name)
    if definition is None or (definition.output_memory is None and not definition.input_memory):
        return None
    return {
        "input_constraints": [list(spaces) for spaces in definition.input_memory],
        "output_memory": definition.output_memory,
    }


def get_op_arg_effect(op_name: str, arg_index: int, **kwargs: Any) -> ArgEffect:
    """What the op does to one argument under these kwargs; past the end: Read."""
    return lookup(op_name).effect(arg_index, {key: normalize_attr(key, value) for key, value in kwargs.items()})


def op_has_declared_arg_effects(op_name: str) -> bool:
    """Whether the op's effects were classified at all."""
    return lookup(op_name).effects_declared


def op_has_declared_arg_effect(op_name: str, arg_index: int) -> bool:
    """Whether this argument was classified; "writes none" counts for every index."""
    definition = lookup(op_name)
    return arg_index in definition.effects or (definition.effects_declared and not definition.effects)


def get_op_write_channel(op_name: str) -> WriteChannel | None:
    """By which engine the op writes global memory, or None."""
    return lookup(op_name).channel


def _schema(op_name: str) -> dict[str, Any]:
    definition = REGISTRY.get(op_name)
    return {} if definition is None else {key: row[0] for key, row in definition.kwargs.items()}


set_keyword_schema_source(_schema)
set_call_printer_source(lambda name: PRINTED_FORMS.get(REGISTRY[name].printed or "") if name in REGISTRY else None)
