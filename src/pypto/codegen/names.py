"""C++ names for variables: unique in a function, legal, and never one that the language or a library has.

>>> names = Names()
>>> [names.of_variable(n) for n in ("x__ssa_v0", "x__ssa_v1", "int", "größe", "_")]
['x', 'x__ssa_v1', 'int_1', 'gru00f6u00dfe', 'i']
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from ..ir.names import VarName

# Keywords and alternative tokens of C++20.
KEYWORDS = frozenset(
    """
    alignas alignof and and_eq asm auto bitand bitor bool break case catch char char8_t char16_t char32_t class compl
    concept const consteval constexpr constinit const_cast continue co_await co_return co_yield decltype default delete
    do double dynamic_cast else enum explicit export extern false float for friend goto if inline int long mutable
    namespace new noexcept not not_eq nullptr operator or or_eq private protected public register reinterpret_cast
    requires return short signed sizeof static static_assert static_cast struct switch template this thread_local throw
    true try typedef typeid typename union unsigned using virtual void volatile wchar_t while xor xor_eq
    """.split()
)
# Names of the libraries that every emitted file includes, macros first: no scope hides those.
LIBRARY = frozenset(
    """
    NULL EOF BUFSIZ FILENAME_MAX FOPEN_MAX L_tmpnam SEEK_CUR SEEK_END SEEK_SET TMP_MAX offsetof assert always_assert
    errno stdin stdout stderr unix linux i386 main std size_t ptrdiff_t nullptr_t max_align_t half bfloat16_t
    """.split()
    + [f"{sign}int{kind}{bits}_t" for sign in ("", "u") for kind in ("", "_least", "_fast") for bits in (8, 16, 32, 64)]
    + [f"{sign}int{kind}_t" for sign in ("", "u") for kind in ("max", "ptr")]
)
_MACROS = re.compile(
    r"U?INT(8|16|32|64|PTR|MAX|_\w+)_(MIN|MAX|C|WIDTH)\Z|(SIZE|PTRDIFF|WCHAR|WINT|SIG_ATOMIC)_(MIN|MAX)\Z"
)
_ILLEGAL = re.compile(r"[^A-Za-z0-9_]")


class Names:
    """The names of one C++ function. ``reserved`` and ``prefixes``: what is taken from the start."""

    def __init__(self, reserved: Iterable[str] = (), prefixes: Iterable[str] = ()) -> None:
        self._taken: set[str] = {*KEYWORDS, *LIBRARY, *reserved}
        alternatives = "|".join([*map(re.escape, prefixes), r"task_[0-9]", "__", "_[A-Z]"])
        self._reserved = re.compile(alternatives)
        self._next: dict[str, int] = {}

    def of_variable(self, hint: str) -> str:
        """A name for a variable of the program: its base, or the whole name, or that with a number."""
        parsed = VarName.parse(hint)
        base = legal(parsed.base)
        if parsed.role != "out" and self._is_free(base):
            return self._take(base)
        return self.of_whole(hint)

    def of_parameter(self, hint: str, prefix: str) -> str:
        """A prefix with the name of a parameter, whose base no other variable gets either."""
        base = legal(VarName.parse(hint).base)
        name = prefix + (base if f"{prefix}{base}" not in self._taken else legal(hint))
        self._taken.add(base)
        return self.helper(name)

    def of_whole(self, hint: str) -> str:
        """A name as near to the whole ``hint`` as possible."""
        name = legal(hint)
        return self._take(name) if self._is_free(name) else self._numbered(name)

    def helper(self, name: str) -> str:
        """A name of the generator's own: as it is, or with the first free number behind it."""
        return self._take(name) if name not in self._taken else self._numbered(name)

    def _numbered(self, name: str) -> str:
        number = self._next.get(name, 1)
        while f"{name}_{number}" in self._taken:
            number += 1
        self._next[name] = number + 1
        return self._take(f"{name}_{number}")

    def _is_free(self, name: str) -> bool:
        return name not in self._taken and not self._reserved.match(name) and not _MACROS.match(name)

    def _take(self, name: str) -> str:
        self._taken.add(name)
        return name


def legal(name: str) -> str:
    """``name`` with what C++ does not know in identifiers spelled out; ``i`` for one that says nothing."""
    if name in ("", "_"):
        return "i"
    name = _ILLEGAL.sub(lambda found: f"u{ord(found[0]):04x}", name)
    return f"v{name}" if name[0].isdigit() or name.startswith("__") or re.match("_[A-Z]", name) else name


__all__ = ["KEYWORDS", "LIBRARY", "Names", "legal"]
