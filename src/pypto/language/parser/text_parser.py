"""The text entry points under the path that existing programs import; the code is in :mod:`pypto.frontend`."""

from __future__ import annotations

from pypto.frontend.text import loads, loads_program, parse, parse_program

__all__ = ["loads", "loads_program", "parse", "parse_program"]
