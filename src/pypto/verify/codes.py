"""The numbers of what verifiers find, by rule. Rules without an enum here use small numbers of their own."""

from __future__ import annotations

import enum


class SSAErrorType(enum.IntEnum):
    """Rule ``SSAVerify``. NAME_SHADOWING is reserved: names carry no meaning."""

    MULTIPLE_ASSIGNMENT = 1
    NAME_SHADOWING = 2
    MISSING_YIELD = 3
    ITER_ARGS_RETURN_VARS_MISMATCH = 4
    YIELD_COUNT_MISMATCH = 5
    SCOPE_VIOLATION = 6
    MISPLACED_YIELD = 7


class TypeCheckErrorType(enum.IntEnum):
    """Rule ``TypeCheck``."""

    TYPE_KIND_MISMATCH = 101
    DTYPE_MISMATCH = 102
    SHAPE_DIMENSION_MISMATCH = 103
    SHAPE_VALUE_MISMATCH = 104
    SIZE_MISMATCH = 105
    IF_CONDITION_MUST_BE_SCALAR = 106
    FOR_RANGE_MUST_BE_SCALAR = 107
    CONDITION_MUST_BE_BOOL = 108
    TENSOR_PADDING_MISMATCH = 109
    DISTRIBUTED_WINDOW_IDENTITY_MISMATCH = 110
    TILE_VIEW_MISMATCH = 111


class NestedCallErrorType(enum.IntEnum):
    """Rule ``NoNestedCall``. Yields, returns, tuples and launch fields count as arguments."""

    CALL_IN_CALL_ARGS = 201
    CALL_IN_IF_CONDITION = 202
    CALL_IN_FOR_RANGE = 203
    CALL_IN_BINARY_EXPR = 204
    CALL_IN_UNARY_EXPR = 205
    CALL_IN_WHILE_CONDITION = 206


class BreakContinueErrorType(enum.IntEnum):
    """Rule ``BreakContinueCheck``, by the innermost loop."""

    BREAK_IN_PARALLEL_LOOP = 301
    BREAK_IN_UNROLL_LOOP = 302
    CONTINUE_IN_PARALLEL_LOOP = 303
    CONTINUE_IN_UNROLL_LOOP = 304
    BREAK_OUTSIDE_LOOP = 305
    CONTINUE_OUTSIDE_LOOP = 306


class UseAfterDefErrorType(enum.IntEnum):
    """Rule ``UseAfterDefCheck``."""

    USE_BEFORE_DEF = 401


__all__ = [
    "BreakContinueErrorType",
    "NestedCallErrorType",
    "SSAErrorType",
    "TypeCheckErrorType",
    "UseAfterDefErrorType",
]
