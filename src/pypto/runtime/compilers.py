"""Finding a C++ compiler that works, once for a machine.

The environment variable ``CXX`` decides, if it is set; or else the first of ``c++``, ``g++`` and ``clang++`` on PATH
that compiles a small C++17 shared library; or else the ``ziglang`` package, a compiler that pip can install. What was
found out about a compiler is kept in the cache folder under its path, size and modification time, so that a later
process starts none to find out again.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.util
import os
import shlex
import shutil
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal

import msgspec

from .background import ProcessLock
from .build_cache import LIBRARY_SUFFIX, cache_folder
from .files import write_file
from .log import logger

Kind = Literal["gcc", "clang", "apple clang", "zig", "other"]

_NAMES = ("c++", "g++", "clang++")
LANGUAGE = ("-std=c++17", "-O2", "-Wall")
# A library that exports only what it says, and may be loaded anywhere. Windows has no other kind of code.
SHARED_CODE = (*(() if sys.platform == "win32" else ("-fPIC",)), "-fvisibility=hidden", "-pthread")
# How compilers spell "for the CPU of this machine"; some refuse one, some both.
_NATIVE = (("-march=native",), ("-mcpu=native",), ())
# C++17 with a standard header, and an exception, which needs the C++ library when it is linked.
_PROBE = """\
#include <cstdint>
inline int64_t total = 0;
template <typename T> constexpr bool wide() { if constexpr (sizeof(T) > 4) { return true; } else { return false; } }
extern "C" __attribute__((visibility("default"))) int64_t probe(int64_t n) {
    if (n < 0) throw n;
    return total += n + wide<int64_t>();
}
"""
_PROBE_LIMIT_S = 3600  # the first use of zig compiles its C++ library: many minutes on a small, busy machine
_VERSION_LIMIT_S = 60
_INSTALL = {
    "linux": "install one (Debian, Ubuntu: 'apt install g++'; Fedora: 'dnf install gcc-c++'; Alpine: 'apk add g++')",
    "darwin": "install Apple's ('xcode-select --install')",
    "win32": "install MinGW-w64 (MSYS2: 'pacman -S mingw-w64-ucrt-x86_64-gcc') and add it to PATH",
}


class CompilerNotFound(RuntimeError):
    """No C++ compiler works here; the text says what was tried and what to install."""


class Compiler(msgspec.Struct, frozen=True):
    """A compiler that makes C++17 shared libraries.

    ``command`` starts it; ``native`` are the flags it takes for the CPU of this machine; ``version`` is the first line
    that it says about itself; ``identity`` changes whenever the program or its arguments do.
    """

    command: tuple[str, ...]
    kind: Kind
    version: str
    native: tuple[str, ...]
    identity: str

    @property
    def path(self) -> str:
        """The program's file."""
        return self.command[0]


class _Refused(Exception):
    """A candidate that does not work; the text says why."""


_known: dict[tuple[str | None, str | None], Compiler] = {}
_looking = ProcessLock()
# A child that is forked while pipes are open for writing would keep them open, and who waits for their end would wait
# for the child.
_starting = ProcessLock(delays_fork=True)


def find_compiler() -> Compiler:
    """The compiler of this machine, see the module. Raises :class:`CompilerNotFound`.

    The answer is remembered; an error is not, so that a compiler may be installed meanwhile.
    """
    question = (os.environ.get("CXX"), os.environ.get("PATH"))
    found = _known.get(question)
    if found is None:
        with _looking:  # several threads build at once: one tries the compiler
            found = _known.get(question)
            if found is None:
                found = _known[question] = _find(question[0])
    return found


def forget_compilers() -> None:
    """Look for the compiler again when it is needed next (not what the cache folder says about each)."""
    _known.clear()


def _find(given: str | None) -> Compiler:
    if given and given.strip():
        return _from_variable(given.strip())
    tried = []
    for name, candidate in _candidates():
        try:
            return _examine(candidate())
        except _Refused as refusal:
            tried.append(f"  {name}: {refusal}")
    system = _INSTALL.get(sys.platform, "install GCC or Clang")
    raise CompilerNotFound(
        "found no C++ compiler that works. Tried:\n"
        + "\n".join(tried)
        + f"\nEither {system}, or 'pip install ziglang' for this Python, or name a compiler in the environment"
        " variable CXX."
    )


def _from_variable(given: str) -> Compiler:
    try:
        words = [given] if os.path.isfile(given) else shlex.split(given, posix=sys.platform != "win32")
    except ValueError as error:
        raise CompilerNotFound(f"the environment variable CXX={given!r} can't be read: {error}") from None
    try:
        return _examine(_on_path(words))
    except _Refused as refusal:
        raise CompilerNotFound(
            f"the compiler that the environment variable CXX names does not work: CXX={given!r}: {refusal}\n"
            "Correct CXX, or unset it to let a compiler be found."
        ) from None


# --- candidates -------------------------------------------------------------------------------------------------------


def _candidates() -> list[tuple[str, Callable[[], Sequence[str]]]]:
    return [*((name, functools.partial(_on_path, [name])) for name in _NAMES), ("ziglang", _ziglang)]


def _on_path(words: Sequence[str]) -> list[str]:
    """The words of a command with the program's path first."""
    program = shutil.which(words[0])
    if program is None:
        is_path = os.path.dirname(words[0]) != ""
        raise _Refused(f"{words[0]} is not a program that can be run" if is_path else f"no '{words[0]}' on PATH")
    return [os.path.abspath(program), *words[1:]]


def _ziglang() -> list[str]:
    spec = importlib.util.find_spec("ziglang")
    if spec is None or not spec.submodule_search_locations:
        raise _Refused("the Python package is not installed")
    # What 'python -m ziglang' starts, without the time that it takes to start Python.
    program = Path(spec.submodule_search_locations[0]) / ("zig.exe" if sys.platform == "win32" else "zig")
    return [*_on_path([str(program)]), "c++"]


# --- what is known about one ------------------------------------------------------------------------------------------


def _examine(words: Sequence[str]) -> Compiler:
    """The compiler that these words start: as the cache folder has it, or else as it shows by use."""
    identity = _identity(words)
    record = cache_folder() / "compilers" / f"{identity}.json"
    try:
        return msgspec.json.decode(record.read_bytes(), type=Compiler)
    except (OSError, msgspec.MsgspecError):  # not there, or of another version
        found = _probe(words, identity)
    try:
        write_file(record, msgspec.json.encode(found))
    except OSError as error:
        logger.debug("what is known about %s is not kept: %s", words[0], error)
    return found


def _identity(words: Sequence[str]) -> str:
    """A digest of the words, and of size and modification time of the programs among them (``ccache g++`` has two)."""
    parts: list[object] = list(words)
    for i, word in enumerate(words):
        program = None if word.startswith("-") else word if i == 0 else shutil.which(word)
        if program is not None:
            stat = os.stat(program)
            parts += [os.path.realpath(program), stat.st_size, stat.st_mtime_ns]
    return hashlib.blake2b(repr(parts).encode(), digest_size=16).hexdigest()


def _probe(words: Sequence[str], identity: str) -> Compiler:
    import tempfile

    kind, version = _version(words)
    if kind == "zig":
        logger.warning("ziglang compiles its C++ library when it is first used; this can take many minutes")
    refusal = ""
    with tempfile.TemporaryDirectory(prefix="pypto-probe-") as folder:
        Path(folder, "probe.cpp").write_text(_PROBE, encoding="utf-8")
        for native in _NATIVE:
            # The flags of builds: for others zig would compile its C++ library another time.
            flags = [*LANGUAGE, *SHARED_CODE, *native]
            command = [*words, *flags, "-shared", "probe.cpp", "-o", f"probe{LIBRARY_SUFFIX}"]
            status, text = run_compiler(command, folder, _PROBE_LIMIT_S)
            if status == 0 and Path(folder, f"probe{LIBRARY_SUFFIX}").is_file():
                return Compiler(tuple(words), kind, version, native, identity)
            refusal = refusal or text
    raise _Refused(f"{words[0]} does not compile a C++17 shared library: {_first_error(refusal)}")


def _version(words: Sequence[str]) -> tuple[Kind, str]:
    try:
        status, text = run_compiler([*words, "--version"], None, _VERSION_LIMIT_S)
    except OSError as error:  # a file of another system, say
        raise _Refused(f"{words[0]} can't be started: {error.strerror or error}") from None
    if status != 0:
        raise _Refused(f"{words[0]} --version fails: {_first_error(text)}")
    if os.path.basename(words[0]).startswith("zig"):
        kind: Kind = "zig"
    elif "Apple" in text:
        kind = "apple clang"
    elif "clang" in text:
        kind = "clang"
    else:
        kind = "gcc" if "Free Software Foundation" in text else "other"
    return kind, text.strip().partition("\n")[0]


def _first_error(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return next((line for line in lines if "error" in line), lines[0] if lines else "it says nothing")


def run_compiler(
    command: Sequence[str], folder: str | os.PathLike[str] | None, limit_s: float | None = None
) -> tuple[int, str]:
    """Run a compiler in a folder: its exit status and what it said, in English. OSError when it can't be started."""
    import subprocess

    with _starting:
        process = subprocess.Popen(
            list(command),
            cwd=folder,
            env={**os.environ, "LC_ALL": "C"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
    with process:
        try:
            output, _ = process.communicate(timeout=limit_s)
        except subprocess.TimeoutExpired:
            process.kill()
            return 1, f"error: no end after {limit_s:.0f} seconds"
        except BaseException:  # an interrupt
            process.kill()
            raise
    text = output.decode("utf-8", errors="replace")
    if process.returncode < 0:  # POSIX: the signal that ended it; 9 is what a system short of memory sends
        text += f"error: ended by signal {-process.returncode}\n"
    return process.returncode, text


__all__ = [
    "LANGUAGE",
    "SHARED_CODE",
    "Compiler",
    "CompilerNotFound",
    "Kind",
    "find_compiler",
    "forget_compilers",
    "run_compiler",
]
