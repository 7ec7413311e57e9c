"""The renderer of parser errors; the code is in ``pypto.diag``."""

from pypto.diag.render import ErrorRenderer

__all__ = ["ErrorRenderer"]
