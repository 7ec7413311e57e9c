"""What one entry of the catalogue says."""

from __future__ import annotations

import msgspec


class CodeInfo(msgspec.Struct, frozen=True, kw_only=True):
    """A kind of error. ``phrases`` are the parts of a message that identify it within its exception class."""

    code: str
    title: str
    exception: str
    explanation: str
    fix: str
    phrases: tuple[str, ...] = ()
