"""What is true of an op, said once. Every consumer reads it from the definition."""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..ir.enums import ArgEffect, CoreType, MemorySpace, WriteChannel
from ..ir.expr import Expr, Op
from ..ir.type import Type

KwargType = type | tuple[type, ...]
InferRule = Callable[[Sequence[Expr], Mapping[str, Any]], Type]
Reference = Callable[..., Any]
EffectRule = ArgEffect | Callable[[Mapping[str, Any]], ArgEffect]


class Category(enum.Enum):
    TENSOR = "TensorOp"
    TILE = "TileOp"
    SYNC = "SyncOp"
    CROSS_CORE = "CrossCoreOp"
    TASK = "TaskOp"
    ARRAY = "ArrayOp"
    PREFETCH = "PrefetchOp"
    DISTRIBUTED = "DistributedOp"
    TEST = "TestOp"


class Required:
    """Marks a kwarg that the IR-level op requires; :data:`UNSET` marks one that may be absent without a default."""

    def __repr__(self) -> str:
        return "REQUIRED"


REQUIRED = Required()
UNSET = Required()

# How the space of a tile result is found.
INHERIT = "inherit_from_input"
DEFERRED = "deferred"


class Alias(enum.Enum):
    """How a result relates to an operand's bytes."""

    FRESH = "fresh"
    VIEW = "view"  # shares the operand's bytes under another shape
    IS = "is"  # is the operand's buffer, updated in place


class Operand:
    """One positional operand: its registered name, what it may be, whether it may be left out.

    ``kind``: ``tensor`` (plain), ``window`` (plain or distributed tensor), ``dist``, ``tile``, ``scalar``, ``const``
    (constant scalar), ``tuple``, ``array``, ``any``. ``role``: ``data``, ``scratch``, ``destination``, ``predicate``,
    ``index``, ``shape``.
    """

    __slots__ = ("kind", "name", "optional", "role")

    def __init__(self, name: str, kind: str, role: str = "data", optional: bool = False) -> None:
        self.name = name
        self.kind = kind
        self.role = role
        self.optional = optional

    def __repr__(self) -> str:
        return f"{self.name}:{self.kind}" + ("?" if self.optional else "")


class Window:
    """Which part of an operand an op touches, in terms of its other operands.

    ``offsets`` is the index of the operand that says where the part begins. Its extents are those of the first of
    ``extents`` that is given: a tuple operand says them, of an array they are the valid region. With none it is one
    element. ``transposed``: the flag under which the last two extents are exchanged.
    """

    __slots__ = ("extents", "offsets", "transposed")

    def __init__(self, offsets: int, extents: Sequence[int] = (), transposed: str = "") -> None:
        self.offsets = offsets
        self.extents = tuple(extents)
        self.transposed = transposed


class OpDef:
    """The definition of one op.

    ``infer(args, kwargs) -> Type`` and ``reference(ctx, *values, **kwargs)`` (NumPy semantics over valid regions, see
    :mod:`pypto.ops.values`) are functions; the rest is data. ``effects`` maps operand index to what the op does to it;
    ``None`` is refused: an op states its effects or states that it only reads (``effects={}`` with
    ``effects_declared=True`` means "writes none"). ``windows`` maps operand index to the part that the op touches;
    of others it may touch all.

    ``element``: an element of the result in C++, with a place for the element of each operand, for ops that work
    element by element; the element has the type that arithmetic for the result runs in (float for all narrower floats);
    ``{T}`` stands for the type of the result in memory, to which ``pto::step<{T}>`` rounds in between.
    ``fold``: ``sum``, ``prod``, ``max`` or ``min``, for ops that reduce.
    """

    __slots__ = (
        "alias",
        "alias_operand",
        "category",
        "channel",
        "core",
        "doc",
        "effects",
        "effects_declared",
        "element",
        "fold",
        "infer",
        "input_memory",
        "internal",
        "kwargs",
        "name",
        "no_alias",
        "no_memory_spec",
        "not_in_place",
        "op",
        "operands",
        "output_memory",
        "pipe_role",
        "printed",
        "priority",
        "pure",
        "reference",
        "spellings",
        "windows",
    )

    def __init__(
        self,
        name: str,
        category: Category,
        operands: Sequence[Operand],
        infer: InferRule,
        *,
        doc: str = "",
        kwargs: Mapping[str, tuple[KwargType, Any]] | None = None,
        reference: Reference | None = None,
        effects: Mapping[int, EffectRule] | None = None,
        effects_declared: bool | None = None,
        alias: Alias = Alias.FRESH,
        alias_operand: int | None = None,
        windows: Mapping[int, Window] | None = None,
        channel: WriteChannel | None = None,
        pure: bool = True,
        input_memory: Sequence[Sequence[MemorySpace]] = (),
        output_memory: MemorySpace | str | None = None,
        no_memory_spec: bool = False,
        core: CoreType | str | None = None,
        no_alias: Sequence[int] = (),
        not_in_place: bool = False,
        pipe_role: str | None = None,
        internal: bool = False,
        printed: str | None = None,
        priority: str = "core",
        element: str = "",
        fold: str = "",
    ) -> None:
        self.name = name
        self.category = category
        self.operands = tuple(operands)
        self.infer = infer
        self.doc = doc
        self.kwargs = dict(kwargs or {})
        self.reference = reference
        self.effects = dict(effects or {})
        # "Declared as reading only" and "never classified" differ: existing tools ask for both.
        self.effects_declared = bool(self.effects) if effects_declared is None else effects_declared
        self.alias = alias
        self.alias_operand = alias_operand
        self.windows = dict(windows or {})
        self.channel = channel
        self.pure = pure and not self.effects
        self.input_memory = tuple(tuple(spaces) for spaces in input_memory)
        self.output_memory = output_memory
        self.no_memory_spec = no_memory_spec
        self.core = core
        self.no_alias = tuple(no_alias)
        self.not_in_place = not_in_place
        self.pipe_role = pipe_role
        self.internal = internal
        self.printed = printed
        self.priority = priority
        self.element = element
        self.fold = fold
        self.spellings: list[str] = []
        self.op = Op(name)

    def effect(self, index: int, kwargs: Mapping[str, Any]) -> ArgEffect:
        """What the op does to operand ``index`` under these kwargs."""
        rule = self.effects.get(index, ArgEffect.Read)
        return rule if isinstance(rule, ArgEffect) else rule(kwargs)

    @property
    def min_operands(self) -> int:
        return sum(not operand.optional for operand in self.operands)

    def __repr__(self) -> str:
        return f"OpDef({self.name})"
