"""How the task runtime spells its types: one table for each version of its interface, and names that are its own."""

from __future__ import annotations

from dataclasses import dataclass

from ..ir.dtype import DataType


@dataclass(frozen=True)
class RuntimeNames:
    """The spellings that differ between versions of ``pto_orchestration_api.h``, and the limits of a task."""

    tensor: str = "ChipTensor"
    orchestration_args: str = "ChipTaskArgs"
    task_args: str = "CoreTaskArgs"
    predicate: str = "CoreTaskPredicate"
    max_dims: int = 5
    max_task_tensors: int = 32
    max_task_scalars: int = 16
    max_tensors: int = 256
    max_scalars: int = 128
    max_allocations: int = 16
    checks_operands: bool = False


CURRENT = RuntimeNames()
# For the runtime of this package, which ends a run where a device would go on with any value.
HOST = RuntimeNames(checks_operands=True)
VERSIONS: dict[str, RuntimeNames] = {
    "current": CURRENT,
    "task_tensor": RuntimeNames(tensor="TaskTensor"),
    "tensor": RuntimeNames(tensor="Tensor", orchestration_args="L2TaskArgs", task_args="L0TaskArgs"),
}

INVALID_ID = "PTO2TaskId::invalid()"

# What emitted code refers to, whatever the version. No variable of a program gets such a name.
RESERVED = frozenset(
    """
    ChipTaskArgs ChipTensor Tensor TaskTensor CoreTaskArgs CoreTaskPredicate TaskOutputTensors TensorCreateInfo DataType
    MixedKernels INVALID_KERNEL_ID PredicateOp from_u64 to_u64 get_tensor_data set_tensor_data orch_args pto
    aicpu_orchestration_entry aicpu_orchestration_config pypto_floor_div pypto_floor_mod PTO_EXPORT
    """.split()
)
RESERVED_PREFIXES = ("PTO2_", "PTO_", "rt_", "params_t", "params_phase_fence", "alloc_", "mixed_")

_D = DataType
_ELEMENTS: dict[DataType, str] = {
    _D.FP16: "FLOAT16",
    _D.FP32: "FLOAT32",
    _D.BF16: "BFLOAT16",
    _D.INT8: "INT8",
    _D.INT16: "INT16",
    _D.INT32: "INT32",
    _D.INT64: "INT64",
    _D.INDEX: "INT64",
    _D.UINT8: "UINT8",
    _D.UINT16: "UINT16",
    _D.UINT32: "UINT32",
    _D.UINT64: "UINT64",
    _D.BOOL: "BOOL",
    _D.FP8E4M3FN: "FP8E4M3FN",
    _D.FP8E5M2: "FP8E5M2",
    _D.FP8E8M0: "FP8E8M0",
    _D.FP4: "FP4E2M1",
}


def element_type(dtype: DataType) -> str:
    """The element type of a tensor, as the runtime writes it."""
    return f"DataType::{_ELEMENTS.get(dtype, 'UNKNOWN')}"


def scalar_type(dtype: DataType) -> str:
    """The C++ type of a scalar variable."""
    return "PTO2TaskId" if dtype is DataType.TASK_ID else dtype.to_c_type_string()


__all__ = [
    "CURRENT",
    "HOST",
    "INVALID_ID",
    "RESERVED",
    "RESERVED_PREFIXES",
    "VERSIONS",
    "RuntimeNames",
    "element_type",
    "scalar_type",
]
