"""The folder in which built libraries are kept: where it is, locks, what was used when, and its limit.

::

    <folder>/<key>/             one entry: manifest.json, the library, its sources, build.log
    <folder>/locks/<key>.lock   held while the entry is built or removed
    <folder>/usage              one line a build: bytes added; together about the size of all entries
    <folder>/compilers/         what is known about compilers

``PYPTO_CACHE_DIR`` names the folder; otherwise it is ``pypto`` in the user's cache folder. ``PYPTO_CACHE_LIMIT`` is its
size limit in bytes, or with a unit (``512M``); 1 GiB by default. When a build exceeds the limit, the entries used
longest ago are removed. The manifest is written last and says the size of the library, so that an entry is found
complete or not at all; its modification time is when the entry was used last, to the minute.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import sys
import time
import warnings
from collections.abc import Iterator
from pathlib import Path

import msgspec

from .files import write_file
from .log import logger

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

MANIFEST = "manifest.json"
LOG = "build.log"
LIBRARY_SUFFIX = {"win32": ".dll", "darwin": ".dylib"}.get(sys.platform, ".so")
DEFAULT_LIMIT = 1 << 30
# Uses are recorded to the minute; an entry used since then may be about to be loaded, so it is not removed.
_USE_RESOLUTION_S = 60.0
_RECENT_S = 2 * _USE_RESOLUTION_S
_ROOM = 0.9  # removal goes on until this part of the limit is used, so that not each build has to remove something
_KEY = re.compile(r"[0-9a-f]{32}\Z")
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([KMGT]?)(?:I?B)?\Z", re.IGNORECASE)


class Manifest(msgspec.Struct, frozen=True):
    """What an entry holds: the library's file name, its size in bytes, how it was made and how long that took."""

    library: str
    size: int
    command: str
    seconds: float


# --- where ------------------------------------------------------------------------------------------------------------

_found: dict[str, Path] = {}


def cache_folder() -> Path:
    """The cache folder. If it can't be written, a folder of this user's in the temporary folder, with a warning."""
    wanted = _wanted_folder()
    found = _found.get(wanted)
    if found is None:
        found = _found[wanted] = _writable_folder(wanted)
    return found


def _wanted_folder() -> str:
    given = os.environ.get("PYPTO_CACHE_DIR")
    if given:
        return os.path.abspath(os.path.expanduser(given))
    base = os.environ.get("XDG_CACHE_HOME", "")
    if not os.path.isabs(base):  # the XDG specification: a relative path is to be ignored
        if sys.platform == "darwin":
            base = os.path.expanduser("~/Library/Caches")
        elif sys.platform == "win32":
            base = os.environ.get("LOCALAPPDATA") or os.path.expanduser("~")
        else:
            base = os.path.expanduser("~/.cache")
    return os.path.join(base, "pypto")


def _writable_folder(wanted: str) -> Path:
    folder = Path(wanted)
    try:
        if not folder.is_absolute():
            raise OSError("there is no home folder")
        folder.mkdir(parents=True, exist_ok=True)
        if not os.access(folder, os.W_OK | os.X_OK):
            raise OSError("no permission to write there")
    except OSError as error:
        folder = _temporary_folder()
        warnings.warn(
            f"the cache folder {wanted} can't be used ({error.strerror or error}); built libraries are kept in "
            f"{folder}. Set PYPTO_CACHE_DIR to a folder that can be written.",
            RuntimeWarning,
            stacklevel=3,
        )
    return folder


def _temporary_folder() -> Path:
    import tempfile

    user = str(os.getuid()) if sys.platform != "win32" else os.environ.get("USERNAME", "user")
    folder = Path(tempfile.gettempdir()) / f"pypto-{user}"
    with contextlib.suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    # Everybody may write in the temporary folder: libraries that somebody else put there must not be loaded.
    return folder if _is_private(folder) else Path(tempfile.mkdtemp(prefix="pypto-"))


def _is_private(folder: Path) -> bool:
    if sys.platform == "win32":  # the temporary folder is the user's own
        return True
    stat = folder.lstat()
    return folder.is_dir() and not folder.is_symlink() and stat.st_uid == os.getuid() and not stat.st_mode & 0o022


def cache_limit() -> int:
    """The size limit in bytes. ValueError when ``PYPTO_CACHE_LIMIT`` is not a size."""
    text = os.environ.get("PYPTO_CACHE_LIMIT", "").strip()
    if not text:
        return DEFAULT_LIMIT
    match = _SIZE.match(text)
    if match is None:
        raise ValueError(f"PYPTO_CACHE_LIMIT={text!r} is not a size: give a number of bytes, or one like 512M or 2G")
    return int(float(match[1]) * 1024 ** " KMGT".index(match[2].upper() or " "))


# --- locks ------------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def locked(path: Path, wait: bool = True) -> Iterator[bool]:
    """Hold the lock of that name for the block, against other processes and threads.

    With ``wait=False`` the block runs at once, with False when somebody else holds the lock. The system gives the lock
    up when its holder dies, however that happens.
    """
    held = _acquire(path, wait)
    try:
        yield held is not None
    finally:
        if held is not None:
            _unlock(held)
            os.close(held)


def _acquire(path: Path, wait: bool) -> int | None:
    path.parent.mkdir(parents=True, exist_ok=True)
    while True:
        file = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            if not _lock(file, wait):
                os.close(file)
                return None
            if _is_still(path, file):
                return file
        except BaseException:
            os.close(file)
            raise
        os.close(file)  # removed together with its entry while this waited: nobody else would find this lock


def _is_still(path: Path, file: int) -> bool:
    try:
        return os.path.samestat(os.stat(path), os.fstat(file))
    except FileNotFoundError:
        return False


if sys.platform == "win32":

    def _lock(file: int, wait: bool) -> bool:
        while True:
            try:
                msvcrt.locking(file, msvcrt.LK_NBLCK, 1)
                return True
            except OSError:
                if not wait:
                    return False
                time.sleep(0.02)

    def _unlock(file: int) -> None:
        """Closing does it."""

else:

    def _lock(file: int, wait: bool) -> bool:
        try:
            fcntl.flock(file, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError as error:
            if error.errno not in (errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP):
                raise
            # Two processes may build the same library then; each publishes a whole one.
            logger.debug("no locks in this file system: %s", error)
        return True

    def _unlock(file: int) -> None:
        """A process that was forked meanwhile has the file open, too."""
        with contextlib.suppress(OSError):  # no locks in this file system
            fcntl.flock(file, fcntl.LOCK_UN)


# --- entries ----------------------------------------------------------------------------------------------------------


class Entry:
    """The place of one key in the cache."""

    def __init__(self, cache: Path, key: str) -> None:
        self.cache = cache
        self.key = key
        self.folder = cache / key
        self.lock = cache / "locks" / f"{key}.lock"

    def find(self) -> Manifest | None:
        """The manifest, if the entry is complete; records the use."""
        path = f"{self.folder}{os.sep}{MANIFEST}"
        try:
            with open(path, "rb") as file:
                manifest = _DECODER.decode(file.read())
                used = os.fstat(file.fileno()).st_mtime
            if os.stat(f"{self.folder}{os.sep}{manifest.library}").st_size != manifest.size:
                return None
        except (OSError, msgspec.MsgspecError):
            return None
        self._record_use(path, used)
        return manifest

    def _record_use(self, path: str, used: float) -> None:
        if abs(time.time() - used) > _USE_RESOLUTION_S:
            try:
                os.utime(path)
            except OSError as error:  # another user's entry, say: it may be used, but looks older than it is
                logger.debug("the use of %s is not recorded: %s", path, error)

    def publish(self, built: Path, manifest: Manifest) -> None:
        """Put a built library in its place, then the manifest that makes it found."""
        os.replace(built, self.folder / manifest.library)
        write_file(self.folder / MANIFEST, msgspec.json.encode(manifest))

    def measure(self) -> tuple[int, float]:
        """Bytes of all files, and when the entry was used last, in seconds since 1970."""
        size, used = 0, 0.0
        with os.scandir(self.folder) as files:
            for file in files:
                stat = file.stat(follow_symlinks=False)
                size += stat.st_size
                if file.name == MANIFEST:
                    used = stat.st_mtime
        return size, used or self.folder.stat().st_mtime  # a build that failed has no manifest

    def remove(self) -> bool:
        """Remove the entry unless somebody builds it or, on Windows, has loaded its library."""
        with locked(self.lock, wait=False) as held:
            if not held:
                return False
            try:
                # The library first: where it can't be removed because it is loaded, the entry stays as it is.
                for file in sorted(self.folder.iterdir(), key=lambda f: (f.suffix != LIBRARY_SUFFIX, f.name)):
                    file.unlink()
                self.folder.rmdir()
            except OSError as error:
                logger.debug("cache entry %s can't be removed: %s", self.folder, error)
                return False
            with contextlib.suppress(PermissionError):  # Windows: it is open; an empty file stays
                self.lock.unlink()
        return True


_DECODER = msgspec.json.Decoder(Manifest)


# --- the limit --------------------------------------------------------------------------------------------------------


def note_growth(entry: Entry, limit: int) -> None:
    """Record what a build added; if all entries exceed ``limit`` bytes, remove those used longest ago.

    Costs a short read as long as the limit is kept; only beyond it, and the first time, are the entries looked at.
    """
    usage = entry.cache / "usage"
    try:
        known = usage.exists()
        with open(usage, "ab") as file:  # appended lines of several processes do not get lost
            file.write(f"{entry.measure()[0]}\n".encode())
        if known and _noted(usage) <= limit:
            return
        with locked(entry.cache / "locks" / "eviction.lock", wait=False) as held:
            if held:  # or else another process is at it
                write_file(usage, f"{_evict(entry, limit)}\n")
    except OSError as error:  # the library is there, which is what was asked for
        logger.warning("the size of the cache folder %s is not kept to its limit: %s", entry.cache, error)


def _noted(usage: Path) -> int:
    try:
        return sum(map(int, usage.read_bytes().split()))
    except (OSError, ValueError):
        return sys.maxsize  # unreadable: measure


def _evict(keep: Entry, limit: int) -> int:
    """Remove entries until there is room; returns the bytes that all entries have then."""
    entries: list[tuple[float, str, int]] = []
    for name in os.listdir(keep.cache):
        if _KEY.match(name):
            try:
                size, used = Entry(keep.cache, name).measure()
            except OSError:  # removed meanwhile
                continue
            entries.append((used, name, size))
    total = sum(size for _, _, size in entries)
    if total <= limit:
        return total
    recent = time.time() - _RECENT_S
    for used, name, size in sorted(entries):
        if total <= limit * _ROOM or used > recent:
            break
        if name != keep.key and Entry(keep.cache, name).remove():
            total -= size
    return total


__all__ = [
    "LIBRARY_SUFFIX",
    "LOG",
    "MANIFEST",
    "Entry",
    "Manifest",
    "cache_folder",
    "cache_limit",
    "locked",
    "note_growth",
]
