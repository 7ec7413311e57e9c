"""PT10xx: what passes find in a program."""

from __future__ import annotations

from pypto.diag.catalogue.model import CodeInfo

ENTRIES = (
    CodeInfo(
        code="PT1000",
        title="a pass can't translate this",
        exception="PassError",
        explanation="A pass of the compiler met something in the program that it has no translation for.",
        fix="Do what the message says at the line that it shows.",
        phrases=(),
    ),
)
