"""What may hold of a program, by name, and sets of such properties."""

from __future__ import annotations

import enum
from collections.abc import Iterator


class IRProperty(enum.IntEnum):
    """Something that holds of a program or not. The order is the order in which sets are printed."""

    SSAForm = 0
    TypeChecked = 1
    NoNestedCalls = 2
    NormalizedStmtStructure = 3
    NoRedundantBlocks = 4
    SplitIncoreOrch = 5
    HasMemRefs = 6
    IncoreTileOps = 7
    AllocatedMemoryAddr = 8
    MixedKernelExpanded = 9
    ClusterOutlined = 10
    TileOps2D = 11
    TileMemoryInferred = 12
    BreakContinueValid = 13
    UseAfterDef = 14
    HierarchyOutlined = 15
    StructuredCtrlFlow = 16
    VectorKernelSplit = 17
    OutParamNotShadowed = 18
    NoNestedInCore = 19
    InOutUseValid = 20
    PipelineLoopValid = 21
    PipelineResolved = 22
    CallDirectionsResolved = 23
    TileTypeCoherence = 24
    InlineFunctionsEliminated = 25
    OrchestrationReferencesResolved = 26
    TensorViewCanonical = 27
    ArrayNotEscaped = 28
    CommDomainScopesMaterialized = 29
    DistTensorCtxMaterialized = 30
    RuntimeScopesMaterialized = 31
    AssignTypeSymmetry = 32
    ManualDepsOnSubmitOnly = 33
    ReturnParamsExplicit = 34
    UnrollResolved = 35
    AivSplitValid = 36
    HardSyncallOccupancyValid = 37
    IterArgCarryClassified = 38
    AccToGmStoreValid = 39
    AtomicAddDtypeValid = 40


class IRPropertySet:
    """A mutable set of properties, listed and printed in the order of :class:`IRProperty`."""

    __slots__ = ("_members",)
    __hash__ = None  # type: ignore[assignment]

    def __init__(self) -> None:
        self._members: set[IRProperty] = set()

    def insert(self, prop: IRProperty) -> None:
        """Add a property."""
        self._members.add(IRProperty(prop))

    def remove(self, prop: IRProperty) -> None:
        """Take a property out; nothing happens if it is not there."""
        self._members.discard(IRProperty(prop))

    def contains(self, prop: IRProperty) -> bool:
        """Whether a property is in the set."""
        return prop in self._members

    __contains__ = contains

    def contains_all(self, other: IRPropertySet) -> bool:
        """Whether every property of ``other`` is in this set."""
        return other._members <= self._members

    def union_with(self, other: IRPropertySet) -> IRPropertySet:
        """A new set: what is in this set or in ``other``."""
        return property_set(*self._members, *other._members)

    def intersection(self, other: IRPropertySet) -> IRPropertySet:
        """A new set: what is in both sets."""
        return property_set(*(self._members & other._members))

    def difference(self, other: IRPropertySet) -> IRPropertySet:
        """A new set: what is in this set and not in ``other``."""
        return property_set(*(self._members - other._members))

    def empty(self) -> bool:
        """Whether there is nothing in the set."""
        return not self._members

    def to_list(self) -> list[IRProperty]:
        """The properties in the order of :class:`IRProperty`."""
        return sorted(self._members)

    def __iter__(self) -> Iterator[IRProperty]:
        return iter(self.to_list())

    def __len__(self) -> int:
        return len(self._members)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, IRPropertySet) and self._members == other._members

    def __str__(self) -> str:
        return "{" + ", ".join(prop.name for prop in self.to_list()) + "}"

    __repr__ = __str__


def property_set(*properties: IRProperty) -> IRPropertySet:
    """A set of these properties."""
    found = IRPropertySet()
    for prop in properties:
        found.insert(prop)
    return found


_P = IRProperty

# Checked by a pipeline where a pass says that it produces them.
_VERIFIED = (
    _P.SSAForm,
    _P.TypeChecked,
    _P.NoRedundantBlocks,
    _P.AllocatedMemoryAddr,
    _P.MixedKernelExpanded,
    _P.TileMemoryInferred,
    _P.BreakContinueValid,
    _P.InOutUseValid,
    _P.CallDirectionsResolved,
    _P.DistTensorCtxMaterialized,
    _P.RuntimeScopesMaterialized,
    _P.ManualDepsOnSubmitOnly,
    _P.ReturnParamsExplicit,
    _P.AivSplitValid,
    _P.HardSyncallOccupancyValid,
    _P.IterArgCarryClassified,
    _P.AccToGmStoreValid,
    _P.AtomicAddDtypeValid,
)

# Hold of every program, whatever ran.
_STRUCTURAL = (
    _P.TypeChecked,
    _P.NoRedundantBlocks,
    _P.BreakContinueValid,
    _P.UseAfterDef,
    _P.OutParamNotShadowed,
    _P.NoNestedInCore,
    _P.InOutUseValid,
    _P.PipelineLoopValid,
    _P.ArrayNotEscaped,
    _P.ManualDepsOnSubmitOnly,
    _P.AtomicAddDtypeValid,
)

# What ``run_verifier`` and checks by hand look at.
_DEFAULT = (
    _P.SSAForm,
    _P.TypeChecked,
    _P.NoNestedCalls,
    _P.NoRedundantBlocks,
    _P.BreakContinueValid,
    _P.UseAfterDef,
    _P.OutParamNotShadowed,
    _P.NoNestedInCore,
    _P.TileTypeCoherence,
    _P.ArrayNotEscaped,
)


def get_verified_properties() -> IRPropertySet:
    """The properties that a pipeline checks at the pass that produces them."""
    return property_set(*_VERIFIED)


def get_structural_properties() -> IRPropertySet:
    """The properties that hold of every program; passes do not name them."""
    return property_set(*_STRUCTURAL)


def get_default_verify_properties() -> IRPropertySet:
    """The properties that are verified when none are named."""
    return property_set(*_DEFAULT)


__all__ = [
    "IRProperty",
    "IRPropertySet",
    "get_default_verify_properties",
    "get_structural_properties",
    "get_verified_properties",
    "property_set",
]
