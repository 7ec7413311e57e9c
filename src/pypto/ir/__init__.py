"""The intermediate representation: nodes, types, enums, and the tools that work on them.

Nodes and types are imported here. Everything else - printer, builder, visitors, and the names of rooms above this one
that belong to the same public surface - is imported on first use, through one table.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .._exports import lazy_exports, spread
from .call import Call, Submit, set_call_attrs
from .directions import inout, input, make_call, no_dep, output, output_existing
from .directions import scalar as scalar_dir
from .dtype import BY_NAME as _DTYPES
from .dtype import DataType
from .enums import (
    DYNAMIC_DIM,
    EXPORTED,
    ArgDirection,
    ArgEffect,
    AtomicType,
    CompactMode,
    CoreType,
    ForKind,
    FunctionType,
    InlineLanguage,
    Level,
    Mem,
    MemorySpace,
    NotifyOp,
    PadValue,
    ParamDirection,
    PipeType,
    ReduceOp,
    Role,
    ScopeKind,
    SplitMode,
    TensorLayout,
    TileLayout,
    WaitCmp,
    WriteChannel,
    is_incore_type,
    level_to_linqu_level,
)
from .expr import (
    Abs,
    Add,
    And,
    BinaryExpr,
    BitAnd,
    BitNot,
    BitOr,
    BitShiftLeft,
    BitShiftRight,
    BitXor,
    Cast,
    ConstBool,
    ConstFloat,
    ConstInt,
    Eq,
    Expr,
    FloatDiv,
    FloorDiv,
    FloorMod,
    Ge,
    GlobalVar,
    Gt,
    IterArg,
    Le,
    Lt,
    MakeTuple,
    Max,
    MemRef,
    Min,
    Mul,
    Ne,
    Neg,
    Not,
    Op,
    Or,
    Pow,
    Sub,
    TupleGetItemExpr,
    UnaryExpr,
    Var,
    WindowBuffer,
    Xor,
)
from .node import IRNode
from .program import Function, Program
from .scalar import (
    add,
    and_,
    bit_and,
    bit_not,
    bit_or,
    bit_shift_left,
    bit_shift_right,
    bit_xor,
    cast,
    eq,
    floordiv,
    ge,
    gt,
    le,
    lt,
    max_,
    min_,
    mod,
    mul,
    ne,
    neg,
    not_,
    or_,
    pow,
    sub,
    truediv,
)
from .span import Span
from .stmt import (
    AssignStmt,
    BreakStmt,
    ClusterScopeStmt,
    CommDomainScopeStmt,
    ContinueStmt,
    EvalStmt,
    ForStmt,
    HierarchyScopeStmt,
    IfStmt,
    InCoreScopeStmt,
    InlineStmt,
    ReturnStmt,
    RuntimeScopeStmt,
    ScopeStmt,
    SeqStmts,
    SplitAivScopeStmt,
    SpmdScopeStmt,
    Stmt,
    WhileStmt,
    YieldStmt,
    attach_leading_comments,
)
from .type import (
    ArrayType,
    AsyncEventType,
    AsyncSessionType,
    CommCtxType,
    DistributedTensorType,
    PrefetchAsyncContextType,
    PtrType,
    ScalarType,
    ShapedType,
    TensorType,
    TensorView,
    TileType,
    TileView,
    TupleType,
    Type,
    UnknownType,
    WindowBufferType,
)

if TYPE_CHECKING:
    from .builder import IRBuilder as IRBuilder
    from .equality import assert_structural_equal as assert_structural_equal
    from .equality import structural_equal as structural_equal
    from .hashing import structural_hash as structural_hash
    from .mutator import IRMutator as IRMutator
    from .printer import python_print as python_print
    from .printer import python_print_type as python_print_type
    from .printer import register_format_callback as register_format_callback
    from .serialization import deserialize as deserialize
    from .serialization import deserialize_from_file as deserialize_from_file
    from .serialization import serialize as serialize
    from .serialization import serialize_to_file as serialize_to_file
    from .tree import ParentStmtAnalysis as ParentStmtAnalysis
    from .tree import collect_def_vars as collect_def_vars
    from .tree import deduce_call_return_type as deduce_call_return_type
    from .tree import deep_clone as deep_clone
    from .tree import find_yield_stmt as find_yield_stmt
    from .tree import flatten_to_stmts as flatten_to_stmts
    from .tree import get_last_yield_stmt as get_last_yield_stmt
    from .tree import substitute_expr as substitute_expr
    from .tree import substitute_stmt as substitute_stmt
    from .visitor import IRVisitor as IRVisitor

# --- names that many values give --------------------------------------------------------------------------------------

for _name, _dtype in _DTYPES.items():
    if _name != "TASK_ID":
        globals()[_name] = _dtype

# Members of the enums. Of two that share a name the first enum in EXPORTED keeps it, but AIV and AIC are the levels.
_MEMBERS: dict[str, Any] = {}
for _enum in EXPORTED:
    for _member in _enum:
        _MEMBERS.setdefault(_member.name, _member)
_MEMBERS["AIV"], _MEMBERS["AIC"] = Level.AIV, Level.AIC
globals().update(_MEMBERS)

# --- names imported on first use --------------------------------------------------------------------------------------

_FROM: dict[str, str] = {
    # this room
    "pypto.ir.builder": "IRBuilder",
    "pypto.ir.visitor": "IRVisitor",
    "pypto.ir.mutator": "IRMutator",
    "pypto.ir.tree": "flatten_to_stmts collect_def_vars find_yield_stmt get_last_yield_stmt substitute_expr"
    " substitute_stmt deep_clone deduce_call_return_type ParentStmtAnalysis",
    "pypto.ir.equality": "structural_equal assert_structural_equal",
    "pypto.ir.hashing": "structural_hash",
    "pypto.ir.serialization": "serialize deserialize serialize_to_file deserialize_from_file",
    "pypto.ir.printer": "python_print python_print_type register_format_callback",
    # rooms above: their names are part of this module's public surface, but nothing here may depend on them
    "pypto.ops.registry": "create_op_call get_op is_op_registered get_op_memory_spec get_op_arg_effect"
    " op_has_declared_arg_effects op_has_declared_arg_effect get_op_write_channel",
    "pypto.ir.op_conversion": "ConversionContext register_op_conversion register_op_conversion_custom"
    " has_op_conversion",
    "pypto.ir.pass_manager": "PassManager OptimizationStrategy PassDumpLevel",
    "pypto.ir.instruments": "make_roundtrip_instrument",
    "pypto.ir.compiled_program": "CompiledProgram",
    "pypto.passes": "PassContext VerificationLevel VerificationMode DiagnosticPhase DiagnosticCheck DiagnosticCheckSet",
}

# ``compile`` and ``op_conversion`` are modules that can be called: see callable_module.
_SUBMODULES = (
    "builder comm_layout compile compiled_program directions equality formatter hashing instruments mutator names op"
    " op_conversion operators pass_manager printer serialization tensor_view_semantics traversal tree utils visitor"
).split()

__getattr__, __dir__ = lazy_exports(__name__, spread(_FROM), _SUBMODULES)

__all__ = [
    "DYNAMIC_DIM",
    "Abs",
    "Add",
    "And",
    "ArgDirection",
    "ArgEffect",
    "ArrayType",
    "AssignStmt",
    "AsyncEventType",
    "AsyncSessionType",
    "AtomicType",
    "BinaryExpr",
    "BitAnd",
    "BitNot",
    "BitOr",
    "BitShiftLeft",
    "BitShiftRight",
    "BitXor",
    "BreakStmt",
    "Call",
    "Cast",
    "ClusterScopeStmt",
    "CommCtxType",
    "CommDomainScopeStmt",
    "CompactMode",
    "ConstBool",
    "ConstFloat",
    "ConstInt",
    "ContinueStmt",
    "CoreType",
    "DataType",
    "DistributedTensorType",
    "Eq",
    "EvalStmt",
    "Expr",
    "FloatDiv",
    "FloorDiv",
    "FloorMod",
    "ForKind",
    "ForStmt",
    "Function",
    "FunctionType",
    "Ge",
    "GlobalVar",
    "Gt",
    "HierarchyScopeStmt",
    "IRBuilder",
    "IRMutator",
    "IRNode",
    "IRVisitor",
    "IfStmt",
    "InCoreScopeStmt",
    "InlineLanguage",
    "InlineStmt",
    "IterArg",
    "Le",
    "Level",
    "Lt",
    "MakeTuple",
    "Max",
    "Mem",
    "MemRef",
    "MemorySpace",
    "Min",
    "Mul",
    "Ne",
    "Neg",
    "Not",
    "NotifyOp",
    "Op",
    "Or",
    "PadValue",
    "ParamDirection",
    "ParentStmtAnalysis",
    "PipeType",
    "Pow",
    "PrefetchAsyncContextType",
    "Program",
    "PtrType",
    "ReduceOp",
    "ReturnStmt",
    "Role",
    "RuntimeScopeStmt",
    "ScalarType",
    "ScopeKind",
    "ScopeStmt",
    "SeqStmts",
    "ShapedType",
    "Span",
    "SplitAivScopeStmt",
    "SplitMode",
    "SpmdScopeStmt",
    "Stmt",
    "Sub",
    "Submit",
    "TensorLayout",
    "TensorType",
    "TensorView",
    "TileLayout",
    "TileType",
    "TileView",
    "TupleGetItemExpr",
    "TupleType",
    "Type",
    "UnaryExpr",
    "UnknownType",
    "Var",
    "WaitCmp",
    "WhileStmt",
    "WindowBuffer",
    "WindowBufferType",
    "WriteChannel",
    "Xor",
    "YieldStmt",
    "add",
    "and_",
    "assert_structural_equal",
    "attach_leading_comments",
    "bit_and",
    "bit_not",
    "bit_or",
    "bit_shift_left",
    "bit_shift_right",
    "bit_xor",
    "cast",
    "collect_def_vars",
    "deduce_call_return_type",
    "deep_clone",
    "deserialize",
    "deserialize_from_file",
    "eq",
    "find_yield_stmt",
    "flatten_to_stmts",
    "floordiv",
    "ge",
    "get_last_yield_stmt",
    "gt",
    "inout",
    "input",
    "is_incore_type",
    "le",
    "level_to_linqu_level",
    "lt",
    "make_call",
    "max_",
    "min_",
    "mod",
    "mul",
    "ne",
    "neg",
    "no_dep",
    "not_",
    "or_",
    "output",
    "output_existing",
    "pow",
    "python_print",
    "python_print_type",
    "register_format_callback",
    "scalar_dir",
    "serialize",
    "serialize_to_file",
    "set_call_attrs",
    "structural_equal",
    "structural_hash",
    "sub",
    "substitute_expr",
    "substitute_stmt",
    "truediv",
]
__all__ += [name for name in _DTYPES if name != "TASK_ID"]
__all__ += _MEMBERS
