"""Errors that a code generator finds in the user's program."""

from __future__ import annotations

from ..diag.codes import find_code
from ..passes.errors import PassError


class CodegenError(PassError):
    """The program can't be printed as it is, and the user can change that."""

    default_code = "PT1100"

    @property
    def code(self) -> str:
        """The stable ``PT`` code of the message's key phrase."""
        return find_code("CodegenError", self.message) or self.default_code


__all__ = ["CodegenError"]
