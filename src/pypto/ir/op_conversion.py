"""The public place of op conversions; the code is in :mod:`pypto.ops.to_tile`."""

from __future__ import annotations

from ..ops.to_tile import (
    ConversionContext,
    has_op_conversion,
    op_conversion,
    register_op_conversion,
    register_op_conversion_custom,
)
from .callable_module import make_callable

__all__ = [
    "ConversionContext",
    "has_op_conversion",
    "op_conversion",
    "register_op_conversion",
    "register_op_conversion_custom",
]

make_callable(__name__)
