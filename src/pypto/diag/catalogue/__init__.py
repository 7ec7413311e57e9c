"""The catalogue of errors: one stable ``PT`` code for each kind, with its explanation and its fix.

=========  =============================================
PT01xx     general (an error without a closer kind)
PT02xx     definitions and text entry points
PT03xx     types and annotations
PT04xx     names, expressions, subscripts
PT05xx     calls and operators
PT06xx     statements and control flow
PT07xx     scopes
PT08xx     tasks and directives
PT09xx     the compiler after the front end
PT10xx     passes
PT11xx     code generators
=========  =============================================

A code never changes its meaning; a code that is no longer raised stays reserved.
"""

from __future__ import annotations

from pypto.diag.catalogue import (
    calls,
    codegen,
    compiler,
    definitions,
    expressions,
    general,
    passes,
    scopes,
    statements,
    tasks,
    type_annotations,
)
from pypto.diag.catalogue.model import CodeInfo

ENTRIES: tuple[CodeInfo, ...] = (
    *general.ENTRIES,
    *definitions.ENTRIES,
    *type_annotations.ENTRIES,
    *expressions.ENTRIES,
    *calls.ENTRIES,
    *statements.ENTRIES,
    *scopes.ENTRIES,
    *tasks.ENTRIES,
    *compiler.ENTRIES,
    *passes.ENTRIES,
    *codegen.ENTRIES,
)

CODES: dict[str, CodeInfo] = {info.code: info for info in ENTRIES}


def _phrases() -> dict[str, list[tuple[str, str]]]:
    table: dict[str, list[tuple[str, str]]] = {}
    for info in ENTRIES:
        table.setdefault(info.exception, []).extend((phrase, info.code) for phrase in info.phrases)
    return table


#: exception class name -> (phrase, code) pairs
PHRASES = _phrases()

__all__ = ["CODES", "ENTRIES", "PHRASES", "CodeInfo"]
