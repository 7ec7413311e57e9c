"""Constructors of op calls: ``ir.op.tensor.add(a, b, span=s)`` takes expressions and returns an ``ir.Call``.

These modules sit under the path that existing programs import; what they hold comes from :mod:`pypto.ops`, one level
up, and is loaded at first use.
"""

from __future__ import annotations

from . import array_ops as array
from . import distributed
from . import prefetch_ops as prefetch
from . import system_ops as system
from . import tensor_ops as tensor
from . import tile_ops as tile

__all__ = ["array", "distributed", "prefetch", "system", "tensor", "tile"]
