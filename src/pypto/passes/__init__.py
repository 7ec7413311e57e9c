"""Passes, what runs them, and what verifies programs: the public names, also known as ``pypto.pypto_core.passes``."""

from __future__ import annotations

import pypto.verify as _verifiers  # noqa: F401  registers the verifiers

from ..ir.compile_options import MemoryPlanner, RuntimeKind, runtime_kind_from_name, runtime_kind_to_name
from ..verify.checks import (
    DiagnosticCheck,
    DiagnosticCheckRegistry,
    DiagnosticCheckSet,
    DiagnosticPhase,
    get_default_diagnostic_phase,
)
from ..verify.codes import NestedCallErrorType, SSAErrorType, TypeCheckErrorType, UseAfterDefErrorType
from ..verify.diagnostics import Diagnostic, DiagnosticSeverity, VerificationError
from ..verify.properties import (
    IRProperty,
    IRPropertySet,
    get_default_verify_properties,
    get_structural_properties,
    get_verified_properties,
)
from ..verify.registry import PropertyVerifierRegistry
from ..verify.tensor_view_canonical import verify_tensor_view_canonical
from . import stmt_dependency_analysis
from .auto_derive_task_dependencies import auto_derive_task_dependencies
from .base import FunctionPass, Pass, PassProperties, create_function_pass, create_program_pass
from .classify_iter_arg_carry import classify_iter_arg_carry
from .context import PassContext, VerificationLevel, get_default_verification_level
from .convert_to_ssa import convert_to_ssa
from .ctrl_flow_transform import ctrl_flow_transform
from .derive_call_directions import derive_call_directions
from .errors import PassError, PassTypeError
from .expand_manual_phase_fence import expand_manual_phase_fence
from .first_failure import FirstFailure, first_failure
from .flatten_call_expr import flatten_call_expr
from .fuse_create_assemble_to_slice import fuse_create_assemble_to_slice
from .inline_functions import inline_functions
from .instruments import (
    CallbackInstrument,
    DiagnosticInstrument,
    PassInstrument,
    ReportInstrument,
    VerificationInstrument,
    VerificationMode,
)
from .manager import PassManager
from .materialize_runtime_scopes import materialize_runtime_scopes
from .normalize_return_order import normalize_return_order
from .normalize_stmt_structure import normalize_stmt_structure
from .optimize_orch_tensors import optimize_orch_tensors
from .outline_cluster_scopes import outline_cluster_scopes
from .outline_hierarchy_scopes import outline_hierarchy_scopes
from .outline_incore_scopes import outline_incore_scopes
from .pass_pipeline import PassPipeline, run_verifier, verify_properties
from .simplify import simplify
from .unroll_loops import unroll_loops

__all__ = [
    "CallbackInstrument",
    "Diagnostic",
    "DiagnosticCheck",
    "DiagnosticCheckRegistry",
    "DiagnosticCheckSet",
    "DiagnosticInstrument",
    "DiagnosticPhase",
    "DiagnosticSeverity",
    "FirstFailure",
    "FunctionPass",
    "IRProperty",
    "IRPropertySet",
    "MemoryPlanner",
    "NestedCallErrorType",
    "Pass",
    "PassContext",
    "PassError",
    "PassInstrument",
    "PassManager",
    "PassPipeline",
    "PassProperties",
    "PassTypeError",
    "PropertyVerifierRegistry",
    "ReportInstrument",
    "RuntimeKind",
    "SSAErrorType",
    "TypeCheckErrorType",
    "UseAfterDefErrorType",
    "VerificationError",
    "VerificationInstrument",
    "VerificationLevel",
    "VerificationMode",
    "classify_iter_arg_carry",
    "auto_derive_task_dependencies",
    "convert_to_ssa",
    "materialize_runtime_scopes",
    "fuse_create_assemble_to_slice",
    "expand_manual_phase_fence",
    "derive_call_directions",
    "create_function_pass",
    "create_program_pass",
    "ctrl_flow_transform",
    "first_failure",
    "flatten_call_expr",
    "get_default_diagnostic_phase",
    "get_default_verification_level",
    "get_default_verify_properties",
    "get_structural_properties",
    "get_verified_properties",
    "inline_functions",
    "normalize_return_order",
    "normalize_stmt_structure",
    "optimize_orch_tensors",
    "outline_cluster_scopes",
    "outline_hierarchy_scopes",
    "outline_incore_scopes",
    "run_verifier",
    "runtime_kind_from_name",
    "runtime_kind_to_name",
    "simplify",
    "stmt_dependency_analysis",
    "unroll_loops",
    "verify_properties",
    "verify_tensor_view_canonical",
]
