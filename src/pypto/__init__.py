"""PyPTO in Python: kernels and their orchestration as one program, compiled and run.

Importing this package is cheap: everything below is imported on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ._exports import lazy_exports, spread

if TYPE_CHECKING:
    from . import ir as ir
    from .diag.errors import Error as Error
    from .diag.errors import InternalError as InternalError
    from .diag.errors import check as check
    from .diag.errors import internal_check as internal_check
    from .diag.errors import internal_check_span as internal_check_span
    from .diag.logging import LogLevel as LogLevel
    from .diag.logging import get_log_level as get_log_level
    from .diag.logging import log_debug as log_debug
    from .diag.logging import log_error as log_error
    from .diag.logging import log_event as log_event
    from .diag.logging import log_fatal as log_fatal
    from .diag.logging import log_info as log_info
    from .diag.logging import log_warn as log_warn
    from .diag.logging import set_log_level as set_log_level
    from .ir.dtype import DataType as DataType
    from .ir.scalar import cast as cast

_FROM: dict[str, str] = {
    "pypto.diag.errors": "Error InternalError check internal_check internal_check_span",
    "pypto.diag.logging": "LogLevel get_log_level set_log_level log_debug log_info log_warn log_error log_fatal"
    " log_event",
    "pypto.ir.dtype": "DataType",
    "pypto.ir.scalar": "cast",
}

_SUBMODULES = (
    "analysis arith backend codegen compile_profiling debug diag frontend ir jit language ops passes pypto_core"
    " runtime target tools verify"
).split()

# The element types but TASK_ID, which no user data has.
_DTYPES = (
    "BOOL INT4 INT8 INT16 INT32 INT64 UINT4 UINT8 UINT16 UINT32 UINT64 FP4 FP8E4M3FN FP8E5M2 FP8E8M0 FP16 FP32 BF16"
    " HF4 HF8 INDEX"
).split()

__getattr__, __dir__ = lazy_exports(
    __name__,
    {
        **spread(_FROM),
        **{f"DT_{name}": f"pypto.ir:{name}" for name in _DTYPES},
        "testing": "pypto.pypto_core.testing",
    },
    _SUBMODULES,
)
