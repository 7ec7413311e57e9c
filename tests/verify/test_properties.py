"""Properties and sets of them."""

import pytest

from pypto.verify.properties import (
    IRProperty,
    IRPropertySet,
    get_default_verify_properties,
    get_structural_properties,
    get_verified_properties,
    property_set,
)

SSA, TYPES, REFS = IRProperty.SSAForm, IRProperty.TypeChecked, IRProperty.HasMemRefs


def test_the_values_are_positions_without_gaps():
    assert [p.value for p in IRProperty] == list(range(41))
    assert IRProperty.HardSyncallOccupancyValid == 37 and IRProperty.AtomicAddDtypeValid == 40


def test_insert_remove_contains():
    found = IRPropertySet()
    assert found.empty() and not found.contains(SSA)
    found.insert(SSA)
    found.insert(SSA)
    assert found.contains(SSA) and len(found) == 1
    found.remove(REFS)
    found.remove(SSA)
    assert found.empty()


def test_set_operations_give_new_sets():
    left, right = property_set(SSA, TYPES), property_set(TYPES, REFS)
    assert left.union_with(right) == property_set(SSA, TYPES, REFS)
    assert left.intersection(right) == property_set(TYPES)
    assert left.difference(right) == property_set(SSA)
    assert left == property_set(TYPES, SSA) and left != right
    assert left.contains_all(property_set(SSA)) and not left.contains_all(right)


def test_printed_in_enum_order():
    assert str(IRPropertySet()) == "{}"
    assert repr(property_set(REFS, SSA)) == "{SSAForm, HasMemRefs}"
    assert property_set(REFS, SSA).to_list() == [SSA, REFS]


def test_a_set_is_not_hashable():
    with pytest.raises(TypeError, match="unhashable"):
        hash(IRPropertySet())


def test_the_groups_are_fresh_sets():
    get_structural_properties().insert(SSA)
    assert not get_structural_properties().contains(SSA)


def test_what_is_checked_at_the_input_of_a_pipeline():
    both = get_structural_properties().intersection(get_verified_properties())
    assert str(both) == (
        "{TypeChecked, NoRedundantBlocks, BreakContinueValid, InOutUseValid, ManualDepsOnSubmitOnly, "
        "AtomicAddDtypeValid}"
    )


def test_the_default_group():
    assert str(get_default_verify_properties()) == (
        "{SSAForm, TypeChecked, NoNestedCalls, NoRedundantBlocks, BreakContinueValid, UseAfterDef, "
        "OutParamNotShadowed, NoNestedInCore, TileTypeCoherence, ArrayNotEscaped}"
    )


def test_the_groups():
    assert str(get_verified_properties()) == (
        "{SSAForm, TypeChecked, NoRedundantBlocks, AllocatedMemoryAddr, MixedKernelExpanded, TileMemoryInferred, "
        "BreakContinueValid, InOutUseValid, CallDirectionsResolved, DistTensorCtxMaterialized, "
        "RuntimeScopesMaterialized, ManualDepsOnSubmitOnly, ReturnParamsExplicit, AivSplitValid, "
        "HardSyncallOccupancyValid, IterArgCarryClassified, AccToGmStoreValid, AtomicAddDtypeValid}"
    )
    assert str(get_structural_properties()) == (
        "{TypeChecked, NoRedundantBlocks, BreakContinueValid, UseAfterDef, OutParamNotShadowed, NoNestedInCore, "
        "InOutUseValid, PipelineLoopValid, ArrayNotEscaped, ManualDepsOnSubmitOnly, AtomicAddDtypeValid}"
    )
