"""Byte offsets in the communicator context that the runtime hands to distributed kernels."""

from __future__ import annotations

RANK_ID_OFFSET = 16  # u32
RANK_NUM_OFFSET = 20  # u32
WINDOWS_IN_OFFSET = 32  # base addresses of the windows that this rank reads, one slot a rank
WINDOWS_OUT_OFFSET = 544
WINDOW_SLOT_STRIDE = 8
COMM_CTX_SIZE = 1056
WINDOW_ALIGNMENT = 32  # window buffers start at multiples of this

__all__ = [
    "COMM_CTX_SIZE",
    "RANK_ID_OFFSET",
    "RANK_NUM_OFFSET",
    "WINDOWS_IN_OFFSET",
    "WINDOWS_OUT_OFFSET",
    "WINDOW_ALIGNMENT",
    "WINDOW_SLOT_STRIDE",
]
