"""Errors in the words of the user's source."""

from __future__ import annotations

import re
from collections.abc import Mapping

from ..diag.parser_errors import ParserError, ParserTypeError


class MissingMetadataError(ParserTypeError, ValueError):
    """The type of an argument of a helper is not known at the call."""


def with_source_names(error: Exception, aliases: Mapping[str, str]) -> Exception:
    """The error with names that renaming made (``x_v1``) replaced by the names that the user wrote."""
    if not aliases:
        return error
    names = sorted(aliases, key=len, reverse=True)
    pattern = re.compile(r"\b(" + "|".join(map(re.escape, names)) + r")\b")

    def restored(text: str) -> str:
        return pattern.sub(lambda match: aliases[match.group()], text)

    if isinstance(error, ParserError):
        for each in error.all_errors():
            each.message = restored(each.message)
            each.args = tuple(restored(a) if isinstance(a, str) else a for a in each.args)
            if each.hint:
                each.hint = restored(each.hint)
        return error
    error.args = tuple(restored(a) if isinstance(a, str) else a for a in error.args)
    return error


__all__ = ["MissingMetadataError", "with_source_names"]
