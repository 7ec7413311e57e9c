"""The scheme of generated variable names: ``base__[qualifier_][role_]v<version>``.

>>> str(VarName("acc", qualifier="l1", role="rv", version=3))
'acc__l1_rv_v3'
>>> VarName.parse("w__a_b__c")
VarName(base='w', qualifier='a_b__c', role=None, version=None)
"""

from __future__ import annotations

import re
from collections.abc import Container
from typing import NamedTuple

DELIMITER = "__"
ROLES = frozenset(("ssa", "iter", "rv", "phi", "tile", "tmp", "out", "store", "idx"))

_VERSION = re.compile(r"v([0-9]+)\Z")


class VarName(NamedTuple):
    """A name taken apart. ``qualifier`` holds all qualifiers, joined with ``_``."""

    base: str
    qualifier: str | None = None
    role: str | None = None
    version: int | None = None

    @classmethod
    def parse(cls, name: str) -> VarName:
        """Split at the first ``__``; behind it an ending version, before that an ending role, the rest qualifies."""
        base, delimiter, rest = name.partition(DELIMITER)
        if not delimiter or not rest:
            return cls(base)
        tokens = rest.split("_")
        version = role = None
        if match := _VERSION.match(tokens[-1]):
            version = int(match[1])
            tokens.pop()
        if tokens and tokens[-1] in ROLES:
            role = tokens.pop()
        return cls(base, "_".join(tokens) or None, role, version)

    def __str__(self) -> str:
        return build_name(*self)

    def with_qualifier(self, qualifier: str) -> VarName:
        """The name with one more qualifier, in front of the existing ones."""
        return self._replace(qualifier=f"{qualifier}_{self.qualifier}" if self.qualifier else qualifier)

    def with_role(self, role: str | None) -> VarName:
        """The name in another role."""
        return self._replace(role=role)

    def with_version(self, version: int | None) -> VarName:
        """The name with another version."""
        return self._replace(version=version)


def build_name(base: str, qualifier: str | None = None, role: str | None = None, version: int | None = None) -> str:
    """The text of a generated name; the bare base when nothing is to be said about it.

    Raises ``ValueError`` for a base that contains the delimiter, an unknown role or a negative version.
    """
    if DELIMITER in base:
        raise ValueError(f"IR auto-name base cannot contain reserved delimiter {DELIMITER!r}: {base!r}")
    if role is not None and role not in ROLES:
        raise ValueError(f"unknown role {role!r} in a name: one of {', '.join(sorted(ROLES))}")
    if version is not None and version < 0:
        raise ValueError(f"the version of a name must not be negative, got {version}")
    suffix = "_".join(part for part in (qualifier, role, None if version is None else f"v{version}") if part)
    return f"{base}{DELIMITER}{suffix}" if suffix else base


def base_name(name: str) -> str:
    """What the user called the variable: all before the first delimiter."""
    return name.partition(DELIMITER)[0]


def fresh_name_like(name: str, used: Container[str]) -> str:
    """A name with the base, qualifier and role (``ssa`` if none) of ``name``, and the next version not in ``used``."""
    parsed = VarName.parse(name)
    version = 0 if parsed.version is None else parsed.version + 1
    parsed = parsed.with_role(parsed.role or "ssa")
    while True:
        text = str(parsed.with_version(version))
        if text not in used:
            return text
        version += 1


_LEGACY_SUFFIX = re.compile(
    r"(?:_store_ret|_rv|_phi|_iter|_tile|_tmp|_store|_out|_idx|_outer|_inner|_rem|_ssa|_l[0-9]+|_v[0-9]+|_[0-9]+)\Z"
)


def legacy_base_name(name: str) -> str:
    """The base of an older, hand-written name such as ``x_iter_2``: known suffixes stripped repeatedly.

    A fallback only: a user may well have called a variable so. Something always remains.
    """
    while True:
        stripped = _LEGACY_SUFFIX.sub("", name)
        if not stripped or stripped == name:
            return name
        name = stripped


__all__ = ["DELIMITER", "ROLES", "VarName", "base_name", "build_name", "fresh_name_like", "legacy_base_name"]
