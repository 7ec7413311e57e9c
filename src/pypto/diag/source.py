"""The text of source files, for excerpts."""

from __future__ import annotations

import linecache


def read_source_lines(filename: str) -> list[str]:
    """The lines of a file, or of the text that the line cache holds under that name, without line ends; else empty."""
    if not filename:
        return []
    linecache.checkcache(filename)  # an edited and reloaded file must not show its old text
    return [line.rstrip("\r\n") for line in linecache.getlines(filename)]


def lines_for(filename: str, line: int, source_lines: list[str] | None) -> list[str]:
    """The lines to show ``line`` from: the file if it can be read and has that line, else ``source_lines``."""
    for lines in (read_source_lines(filename), source_lines or []):
        if 0 < line <= len(lines):
            return lines
    return []
