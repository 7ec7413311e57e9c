"""Enumerations: stable numbers, aliases, and the members that are names of ``pypto.ir``."""

import enum

import pytest

from pypto import ir

NUMBERS = {
    "TensorLayout": "ND0 DN1 NZ2 MX_A_ZZ3 MX_B_NN4",
    "TileLayout": "none_box0 row_major1 col_major2",
    "PadValue": "null0 zero1 max2 min3",
    "CompactMode": "null0 normal1",
    "MemorySpace": "DDR0 Vec1 Mat2 Left3 Right4 Acc5 Bias6 ScalarLocal7 LeftScale8 RightScale9",
    "PipeType": "MTE10 MTE21 MTE32 M3 V4 S5 FIX6 ALL7",
    "CoreType": "CUBE0 VECTOR1",
    "FunctionType": "Opaque0 Orchestration1 InCore2 AIC3 AIV4 Group5 Spmd6 Inline7 Graph8",
    "Level": "AIV0 AIC1 CORE_GROUP2 CHIP_DIE3 CHIP4 HOST5 CLUSTER_06 CLUSTER_17 CLUSTER_28 GLOBAL9",
    "Role": "Orchestrator0 SubWorker1",
    "ParamDirection": "In0 Out1 InOut2",
    "ArgDirection": "Input0 Output1 InOut2 OutputExisting3 NoDep4 Scalar5",
    "ForKind": "Sequential0 Parallel1 Unroll2 Pipeline3",
    "ScopeKind": "InCore0 Cluster2 Hierarchy3 Spmd4 Runtime5 CommDomain6 SplitAiv7",
    "SplitMode": "NONE0 UP_DOWN1 LEFT_RIGHT2",
    "InlineLanguage": "Python0",
    "NotifyOp": "AtomicAdd0 Set1",
    "WaitCmp": "Eq0 Ge1",
    "AtomicType": "None_0 Add1",
    "ReduceOp": "Sum0 Max1 Min2 Prod3",
}
INT_ENUMS = ("PipeType", "CoreType", "NotifyOp", "WaitCmp", "AtomicType", "ReduceOp")
NOT_EXPORTED = ("CompactMode", "ArgDirection", "NotifyOp", "WaitCmp", "AtomicType", "ReduceOp")


@pytest.mark.parametrize("name", NUMBERS)
def test_members(name):
    cls = getattr(ir, name)
    assert [(m.name, m.value) for m in cls] == [(word[:-1], int(word[-1])) for word in NUMBERS[name].split()]
    assert issubclass(cls, enum.IntEnum) is (name in INT_ENUMS)


def test_level_aliases_are_the_primary_members():
    aliases = {"L2CACHE": 3, "PROCESSOR": 4, "UMA": 4, "NODE": 5, "POD": 6, "CLOS1": 7, "CLOS2": 8}
    for alias, value in aliases.items():
        assert ir.Level[alias] is ir.Level(value)
        assert not hasattr(ir, alias)
    assert ir.Level.NODE.name == "HOST"


def test_exported_members():
    owners = {"AIV": ir.Level, "AIC": ir.Level, "InCore": ir.FunctionType, "Spmd": ir.FunctionType}
    for name in NUMBERS:
        if name in NOT_EXPORTED:
            continue
        for member in getattr(ir, name):
            exported = getattr(ir, member.name)
            assert exported is member or type(exported) is owners[member.name]
    assert ir.AIV is ir.Level.AIV
    assert ir.AIC is ir.Level.AIC
    assert ir.InCore is ir.FunctionType.InCore
    assert ir.Spmd is ir.FunctionType.Spmd
    assert ir.null is ir.PadValue.null
    assert not hasattr(ir, "normal")


def test_mem_is_the_memory_space():
    assert ir.Mem is ir.MemorySpace


def test_is_incore_type():
    assert {t.name for t in ir.FunctionType if ir.is_incore_type(t)} == {"InCore", "AIC", "AIV"}


def test_level_to_linqu_level():
    got = {level.name: ir.level_to_linqu_level(level) for level in ir.Level}
    assert got == {
        "AIV": 0,
        "AIC": 0,
        "CORE_GROUP": 0,
        "CHIP_DIE": 1,
        "CHIP": 2,
        "HOST": 3,
        "CLUSTER_0": 4,
        "CLUSTER_1": 5,
        "CLUSTER_2": 6,
        "GLOBAL": 7,
    }


def test_dynamic_dim():
    assert ir.DYNAMIC_DIM == -1
