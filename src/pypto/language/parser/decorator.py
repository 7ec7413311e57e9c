"""The decorators under the path that existing programs import; the code is in :mod:`pypto.frontend`."""

from __future__ import annotations

from pypto.frontend.entry import InlineFunction, function, inline, program

__all__ = ["InlineFunction", "function", "inline", "program"]
