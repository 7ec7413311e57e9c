"""Building shared libraries from C++ text: cached by content, safe with several processes, in a folder to look into.

>>> text = 'extern "C" __attribute__((visibility("default"))) int twice(int n) { return 2 * n; }'
>>> load(build([("twice.cpp", text)], name="twice")).twice(21)
42

A library stands in a folder of the cache (:mod:`.build_cache`) with the sources it was made of and ``build.log``: the
commands and all that the compiler said. Its key is a digest of all that goes into it: the contents of the sources, of
every file below the include folders, the commands, the compiler, and the CPU, since code is made for this machine's.
System headers are taken to change only with the compiler.

Two decisions stand on what ``benchmarks/build.py`` measured (gcc 12, two busy cores; milliseconds of processor time for
an orchestration of 0, 10, 50 tasks). No precompiled header: at -O2 it takes 260, 450, 810 without one and 260, 490, 670
with one, at -O1 290, 400, 540 and 300, 410, 690; the difference is less than the noise, since the time goes to the
tasks and not to the headers. And -O2, not -O3: that takes 270, 670, 4620 and grows faster than the source. Kernels,
which are short and full of loops, may ask for -O3 by ``flags``.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import re
import shlex
import struct
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec

from .background import begin
from .build_cache import LIBRARY_SUFFIX, LOG, Entry, Manifest, cache_folder, cache_limit, locked, note_growth
from .compilers import (
    LANGUAGE,
    SHARED_CODE,
    Compiler,
    CompilerNotFound,
    find_compiler,
    forget_compilers,
    run_compiler,
)
from .files import temporary_tag, write_file
from .host_cpu import cpu_identity, usable_cores

Source = str | os.PathLike[str] | tuple[str, str]
Sanitizer = Literal["address", "thread"]

SCHEMA = 1  # of entries: one of another schema is never looked at, since this is part of the key
_UNITS = frozenset({".cpp", ".cc", ".cxx"})
_HEADERS = frozenset({".h", ".hpp", ".inc"})
_SANITIZE = {
    "address": ("-fsanitize=address", "-g", "-fno-omit-frame-pointer"),
    "thread": ("-fsanitize=thread", "-g", "-fno-omit-frame-pointer"),
}
_FILE_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+-]*\Z")
# Variables that make a compiler look elsewhere for headers and libraries.
_ENVIRONMENT = ("CPATH", "CPLUS_INCLUDE_PATH", "LIBRARY_PATH", "SDKROOT", "MACOSX_DEPLOYMENT_TARGET")


class BuiltLibrary(msgspec.Struct, frozen=True):
    """A shared library in the cache. ``cached``: it was there before; ``seconds``: what this call of build took.

    ``command`` is what made it, as lines for a shell in the library's folder.
    """

    path: Path
    cached: bool
    seconds: float
    command: str
    sanitize: Sanitizer | None = None


class CompileFailed(RuntimeError):
    """The compiler refused a source, or the linker the whole.

    ``source`` is what failed, as it was given, or None for the link; ``output`` is all that was said about it, by
    ``command``; ``log`` is the file that holds all commands and messages.
    """

    def __init__(self, source: str | None, output: str, command: str, log: Path) -> None:
        self.source = source
        self.output = output
        self.command = command
        self.log = log
        first = f"{source} does not compile" if source is not None else "the objects do not link to a library"
        super().__init__(
            f"{first}:\n{_first_errors(output)}\n"
            f"all messages: {log}\ncommand, in {shlex.quote(str(log.parent))}: {command}"
        )


class LoadFailed(RuntimeError):
    """A library was built but the system does not load it."""


def build(
    sources: Sequence[Source],
    *,
    include_dirs: Sequence[str | os.PathLike[str]] = (),
    flags: Sequence[str] = (),
    flags_of: Mapping[str, Sequence[str]] | None = None,
    link: Sequence[str] = (),
    name: str = "library",
    sanitize: Sanitizer | None = None,
    compiler: Compiler | None = None,
    executable: bool = False,
) -> BuiltLibrary:
    """Compile C++17 sources to one shared library, or find it in the cache.

    A source is a path, or (file name, text). Sources named ``.h``, ``.hpp`` or ``.inc`` are for the others to include.
    Sources are compiled as copies: other files of their folder are found only if it is one of ``include_dirs``. Every
    file below these is part of the key, so they should be small; use ``-isystem`` among the flags for a large one.
    ``flags`` follow the default ones, so they win; ``flags_of``: more for single sources, by name. ``link`` ends
    the command of the linker (paths in it: absolute).
    ``sanitize``: build with that sanitizer; see :func:`load`. ``executable``: make a program, one of whose sources has
    ``main``, instead of a library.

    Raises :class:`CompileFailed`, :class:`CompilerNotFound`, ValueError for a wrong name or setting, and OSError when a
    source can't be read or the disk is full. A failure is not remembered.
    """
    start = time.perf_counter()
    plan = _Plan(
        sources, include_dirs, flags, flags_of or {}, link, name, sanitize, compiler or find_compiler(), executable
    )
    entry = Entry(cache_folder(), plan.key())
    manifest = entry.find()
    cached = manifest is not None
    if manifest is None:
        limit = cache_limit()
        with locked(entry.lock):
            manifest = entry.find()  # another process may have built it while this one waited
            cached = manifest is not None
            if manifest is None:
                manifest = _Build(plan, entry).run(start, limit)
    return BuiltLibrary(
        entry.folder / manifest.library, cached, time.perf_counter() - start, manifest.command, sanitize
    )


# --- what is to be built ----------------------------------------------------------------------------------------------


class _File(msgspec.Struct, frozen=True):
    """A source: its name in the entry, how it was given, its bytes."""

    name: str
    given: str
    content: bytes

    @property
    def is_unit(self) -> bool:
        return os.path.splitext(self.name)[1] in _UNITS


class _Plan:
    """The files, and the commands that make a library of them in its folder."""

    def __init__(
        self,
        sources: Sequence[Source],
        include_dirs: Sequence[str | os.PathLike[str]],
        flags: Sequence[str],
        flags_of: Mapping[str, Sequence[str]],
        link: Sequence[str],
        name: str,
        sanitize: Sanitizer | None,
        compiler: Compiler,
        executable: bool,
    ) -> None:
        if sanitize is not None and sanitize not in _SANITIZE:
            raise ValueError(f"sanitize={sanitize!r}: expected None, {' or '.join(map(repr, _SANITIZE))}")
        self.files = _read(sources)
        self.units = [file for file in self.files if file.is_unit]
        if not self.units:
            raise ValueError(f"nothing to compile: give at least one source named {', '.join(sorted(_UNITS))}")
        suffix = (".exe" if sys.platform == "win32" else "") if executable else LIBRARY_SUFFIX
        self.library = f"{_checked_name(name, 'the library')}{suffix}"
        self.compiler = compiler
        self.include_dirs = [_include_dir(folder) for folder in include_dirs]
        sanitizing = _SANITIZE[sanitize] if sanitize is not None else ()
        self._start = [
            *compiler.command, *LANGUAGE, *SHARED_CODE, *compiler.native, *sanitizing, *flags,
        ]  # fmt: skip
        self._include = [f"-I{folder}" for folder in self.include_dirs]
        self._shape = () if executable else ("-shared",)
        self._link = list(link)
        unknown = set(flags_of) - {file.name for file in self.units}
        if unknown:
            raise ValueError(f"flags for sources that are not there: {', '.join(sorted(unknown))}")
        self._flags_of = {name: list(more) for name, more in flags_of.items()}

    def compile_and_link(self, library: str) -> list[str]:
        """The command that makes the library of the only unit."""
        unit = self.units[0].name
        more = self._flags_of.get(unit, ())
        return [*self._start, *more, *self._include, *self._shape, unit, "-o", library, *self._link]

    def compile(self, unit: _File, made: str) -> list[str]:
        """The command that makes the object file of one unit."""
        return [*self._start, *self._flags_of.get(unit.name, ()), *self._include, "-c", unit.name, "-o", made]

    def link(self, objects: Iterable[str], library: str) -> list[str]:
        """The command that makes the library of the object files."""
        return [*self._start, *self._shape, *objects, "-o", library, *self._link]

    def key(self) -> str:
        """The digest of all that the library is made from."""
        parts: list[Any] = [
            SCHEMA,
            sys.platform,
            struct.calcsize("P"),
            self.compiler.identity,
            self.compiler.version,
            cpu_identity(),
            self.library,
            self._start,
            sorted(self._flags_of.items()),
            self._include,
            [(word, _stamp(word)) for word in self._link],
            [(variable, os.environ.get(variable)) for variable in _ENVIRONMENT],
            [(file.name, hashlib.blake2b(file.content).digest()) for file in self.files],
            [_folder_digest(folder) for folder in self.include_dirs],
        ]
        return hashlib.blake2b(repr(parts).encode(), digest_size=16).hexdigest()


def _read(sources: Sequence[Source]) -> list[_File]:
    files: dict[str, _File] = {}
    for source in sources:
        if isinstance(source, tuple):
            name, text = source
            file = _File(_checked_name(name, "a source"), name, text.encode())
        else:
            path = Path(source)
            # Messages and debuggers then name the file that was given, not its copy.
            line = f'#line 1 "{path.absolute().as_posix()}"\n'.replace("\\", "\\\\")
            file = _File(_checked_name(path.name, "a source"), str(path), line.encode() + path.read_bytes())
        if os.path.splitext(file.name)[1] not in _UNITS | _HEADERS:
            raise ValueError(
                f"source '{file.given}': expected a name that ends in {', '.join(sorted(_UNITS | _HEADERS))}"
            )
        if file.name in files:
            raise ValueError(f"two sources are named {file.name}: '{files[file.name].given}' and '{file.given}'")
        files[file.name] = file
    return list(files.values())


def _checked_name(name: str, what: str) -> str:
    if not _FILE_NAME.match(name):
        raise ValueError(f"{what} can't be named {name!r}: use letters, digits and _ . + -, without a folder")
    return name


def _include_dir(folder: str | os.PathLike[str]) -> str:
    path = os.path.abspath(folder)
    if not os.path.isdir(path):
        raise ValueError(f"the include folder {path} does not exist")
    return path


def _stamp(word: str) -> tuple[int, int] | None:
    """Size and modification time of a library to link with; None for a word that is no file."""
    try:
        stat = os.stat(word)
    except OSError:
        return None
    return stat.st_size, stat.st_mtime_ns


_digests: dict[str, tuple[int, int, bytes]] = {}  # path -> size, modification time, digest of the content


def _folder_digest(folder: str) -> list[tuple[str, bytes]]:
    """Digests of all files below a folder; a file is read again only when its size or time has changed."""
    found: list[tuple[str, bytes]] = []
    waiting = [folder]
    while waiting:
        with os.scandir(waiting.pop()) as entries:
            for entry in entries:
                if entry.name.startswith((".", "__pycache__")):
                    continue
                if entry.is_dir():
                    waiting.append(entry.path)
                else:
                    found.append((entry.path, _digest(entry)))
    return sorted(found)


def _digest(file: os.DirEntry[str]) -> bytes:
    stat = file.stat()
    known = _digests.get(file.path)
    if known is None or known[:2] != (stat.st_size, stat.st_mtime_ns):
        with open(file.path, "rb") as content:
            digest = hashlib.blake2b(content.read()).digest()
        known = _digests[file.path] = (stat.st_size, stat.st_mtime_ns, digest)
    return known[2]


# --- building ---------------------------------------------------------------------------------------------------------


class _Result(msgspec.Struct, frozen=True):
    """What a compiler's run came to: exit status, the command as text, all that was said."""

    status: int
    command: str
    output: str


class _Build:
    """Makes the library of one entry, whose lock is held."""

    def __init__(self, plan: _Plan, entry: Entry) -> None:
        self.plan = plan
        self.entry = entry
        self.tag = temporary_tag()
        self.log = entry.folder / LOG
        self._results: list[_Result] = []

    def run(self, start: float, limit: int) -> Manifest:
        """Compile, link, publish; ``start`` is when the caller began, on the clock of ``time.perf_counter``."""
        for file in self.plan.files:
            write_file(self.entry.folder / file.name, file.content)
        library = f"{self.plan.library}.{self.tag}"
        units = self.plan.units
        try:
            if len(units) == 1:
                self._record([(units[0].given, self._execute(self.plan.compile_and_link(library)))])
            else:
                self._record([(None, self._execute(self.plan.link(self._objects(), library)))])
            built = self.entry.folder / library
            command = "\n".join(result.command for result in self._results)
            manifest = Manifest(self.plan.library, built.stat().st_size, command, time.perf_counter() - start)
            self.entry.publish(built, manifest)
        finally:
            self._write_log()
            for left in self.entry.folder.glob(f"*.{self.tag}*"):
                left.unlink()
            note_growth(self.entry, limit)
        return manifest

    def _objects(self) -> list[str]:
        """Compile the units, as many at a time as there are cores.

        Of several that fail, the first in order is reported, however long each took: all before it have been compiled.
        """
        units = self.plan.units
        names = [f"{unit.name}.{self.tag}.o" for unit in units]
        results: dict[int, _Result] = {}
        failed: list[int] = []
        waiting = iter(range(len(units)))  # each number goes to one thread

        def compile_units() -> None:
            for index in waiting:
                if not failed:  # else those before it have begun
                    results[index] = self._execute(self.plan.compile(units[index], names[index]))
                    if results[index].status != 0:
                        failed.append(index)

        workers = [begin(compile_units) for _ in range(min(len(units), usable_cores()))]
        try:
            for worker in workers:
                worker.result()
        finally:
            failed.append(-1)  # after an interrupt the rest is not begun
            for worker in workers:
                worker.wait()
        self._record([(units[index].given, result) for index, result in sorted(results.items())])
        return names

    def _execute(self, command: list[str]) -> _Result:
        try:
            status, output = run_compiler(command, self.entry.folder)
        except OSError as error:
            forget_compilers()
            raise CompilerNotFound(
                f"the compiler {command[0]} can't be started any more: {error.strerror or error}. Try again: another"
                " one is looked for."
            ) from error
        # In the texts files have the names that they have in the end.
        return _Result(status, shlex.join(command).replace(f".{self.tag}", ""), output.replace(f".{self.tag}", ""))

    def _record(self, results: Sequence[tuple[str | None, _Result]]) -> None:
        """Keep what was run for which source; the first that failed is the error."""
        self._results += [result for _, result in results]
        for source, result in results:
            if result.status != 0:
                raise CompileFailed(source, result.output, result.command, self.log)

    def _write_log(self) -> None:
        write_file(self.log, "".join(f"$ {result.command}\n{result.output}" for result in self._results))


# --- messages of compilers --------------------------------------------------------------------------------------------

_ERROR = re.compile(
    r"\berror:|undefined reference|undefined symbol|multiple definition|duplicate symbol", re.IGNORECASE
)
_LEADS_IN = re.compile(r"In file included from|\s+from |.*: (In|At) .*:$|.*: required from|.*/?ld(\.\w+)?: ")
_ERRORS_SHOWN = 3
_LINES_SHOWN = 30
_WIDTH_SHOWN = 300  # names of templates make very long lines


def _first_errors(output: str) -> str:
    """The first errors that a compiler reported, with what belongs to them."""
    lines = output.splitlines()
    errors = [i for i, line in enumerate(lines) if _ERROR.search(line)]
    if not errors:
        shown = lines[-_LINES_SHOWN:] or ["(the compiler says nothing)"]
        return "\n".join(line[:_WIDTH_SHOWN] for line in shown)
    begin = _lead_in(lines, errors[0])
    end = _lead_in(lines, errors[_ERRORS_SHOWN]) if len(errors) > _ERRORS_SHOWN else len(lines)
    end = min(end, begin + _LINES_SHOWN)
    more = sum(i >= end for i in errors)
    shown = [line[:_WIDTH_SHOWN] for line in lines[begin:end]]
    return "\n".join(shown + ([f"... and {more} more"] if more else []))


def _lead_in(lines: list[str], error: int) -> int:
    """Where the lines begin that say where an error is: the including files, the function."""
    while error > 0 and _LEADS_IN.match(lines[error - 1]):
        error -= 1
    return error


# --- loading ----------------------------------------------------------------------------------------------------------


def load(library: BuiltLibrary | str | os.PathLike[str], mode: int = ctypes.DEFAULT_MODE) -> ctypes.CDLL:
    """Load a library. Raises :class:`LoadFailed` with what to do.

    A library that was built with a sanitizer can be loaded only into a process that was started with it, since the
    sanitizer has to see every allocation and thread: see :func:`sanitizer_runtime`.
    """
    sanitize = library.sanitize if isinstance(library, BuiltLibrary) else None
    path = os.fspath(library.path if isinstance(library, BuiltLibrary) else library)
    if sanitize is not None:
        _require_runtime(sanitize)
    try:
        return ctypes.CDLL(path, mode=mode)
    except OSError as error:
        raise LoadFailed(f"{path} can't be loaded: {error}\n{_what_to_do(str(error), path)}") from error


def _what_to_do(reason: str, path: str) -> str:
    if "undefined symbol" in reason or "symbol not found" in reason:
        return "The sources use a name that none of them defines: add the source that does, or a library with link=."
    if not os.path.exists(path):
        return "There is no such file: the cache folder has been cleaned since it was built. Build it again."
    return f"It is made for this machine by the compiler named in {Path(path).parent / LOG}; check that it fits."


def _require_runtime(sanitize: Sanitizer) -> None:
    # The check matters: AddressSanitizer ends a process that loads it late, without an exception.
    prefix = {"address": "__asan", "thread": "__tsan"}[sanitize]
    if not hasattr(ctypes.CDLL(None), f"{prefix}_init"):
        raise LoadFailed(
            f"a library built with sanitize={sanitize!r} needs a process that was started with the sanitizer: run"
            f" LD_PRELOAD={sanitizer_runtime(sanitize)} python ..."
        )


def sanitizer_runtime(sanitize: Sanitizer, compiler: Compiler | None = None) -> str:
    """The sanitizer's own library, for ``LD_PRELOAD``: a path if the compiler has it, or else its plain name."""
    compiler = compiler or find_compiler()
    short = {"address": "asan", "thread": "tsan"}[sanitize]
    name = f"lib{short}.so" if compiler.kind == "gcc" else f"libclang_rt.{short}-{os.uname().machine}.so"
    _, text = run_compiler([*compiler.command, f"-print-file-name={name}"], None)
    return text.strip() or name


__all__ = [
    "BuiltLibrary",
    "CompileFailed",
    "Compiler",
    "CompilerNotFound",
    "LoadFailed",
    "Sanitizer",
    "Source",
    "build",
    "find_compiler",
    "load",
    "sanitizer_runtime",
]
