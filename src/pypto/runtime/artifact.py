"""The directory of a compiled program: where it is, what is written, and reading it back.

Files are written under temporary names and renamed, so that a reader never sees half a file. What is costly to make
and seldom read (the printed program) is written when somebody asks for the directory, or when the process ends.
"""

from __future__ import annotations

import atexit
import datetime
import hashlib
import json
import os
import threading
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from .._version import installed_version
from ..ir.dtype import DataType
from ..ir.enums import ParamDirection
from ..ir.program import Function, Program
from ..ir.serialization import deserialize, serialize
from ..target.model import BackendType
from .files import write_file
from .signature import ParamInfo

META = "compiled_meta.json"
MANIFEST = "cpu/manifest.json"
LOWERED = "cpu/lowered.pyptoir"
META_SCHEMA = 1
MANIFEST_SCHEMA = 1
# These decide what kind of build a directory holds; a new build removes those that it does not write.
_MARKERS = (META, "distributed_meta.json", "kernel_config.py", "orchestration/host_orch.py")

_DTYPE_BY_TEXT = {
    str(value): value for name in dir(DataType) if isinstance(value := getattr(DataType, name, None), DataType)
}


# --- where ------------------------------------------------------------------------------------------------------------


def make_output_dir(output_dir: str | os.PathLike[str] | None, name: str) -> Path:
    """Make the directory of a compilation: the given one, or a new one of its own under the base directory."""
    if output_dir is not None:
        path = Path(output_dir)
        path.mkdir(parents=True, exist_ok=True)
        return path.resolve()
    base = Path(os.environ.get("PYPTO_PROG_BUILD_DIR") or "build_output")
    base.mkdir(parents=True, exist_ok=True)
    stem = f"{name or 'program'}_{datetime.datetime.now():%Y%m%d_%H%M%S}"
    number = 0
    while True:
        path = base / (f"{stem}_{number}" if number else stem)
        try:
            path.mkdir()  # exclusive: another compilation may have taken the name
        except FileExistsError:
            number += 1
            continue
        return path.resolve()


# --- writing ----------------------------------------------------------------------------------------------------------


class LazyFiles:
    """Files of a directory that are written when they are needed: on :meth:`flush`, or at exit."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._makers: dict[str, Callable[[], str | bytes]] = {}
        self._lock = threading.Lock()

    def add(self, relative: str, make: Callable[[], str | bytes]) -> None:
        """``make()`` gives the content of a file."""
        self._makers[relative] = make
        _WAITING.add(self)

    def flush(self) -> None:
        """Write what is left."""
        if not self._makers:
            return
        with self._lock:
            while self._makers:
                relative, make = next(iter(self._makers.items()))
                if self.directory.is_dir():  # a directory that was removed meanwhile stays removed
                    write_file(self.directory / relative, make())
                del self._makers[relative]
            _WAITING.discard(self)


_WAITING: set[LazyFiles] = set()


@atexit.register
def _flush_all() -> None:
    for files in sorted(_WAITING, key=lambda f: str(f.directory)):
        try:
            files.flush()
        except OSError as error:
            from .log import logger

            logger.warning("could not write the files of %s: %s", files.directory, error)


def version() -> str:
    """The version of PyPTO that is running."""
    return installed_version() or "unknown"


def write_program(
    directory: Path,
    program: Program,
    entry: Function,
    infos: Iterable[ParamInfo],
    platform: str,
    backend_type: BackendType,
    executor: str,
) -> None:
    """Write what ``from_dir`` needs: the signature, and the program that the executor runs."""
    infos = list(infos)
    clear_stale(directory, keep=(META,))
    blob = serialize(program)
    manifest = {
        "schema": MANIFEST_SCHEMA,
        "pypto_version": version(),
        "entry": entry.name,
        "params": [info.name for info in infos],
        "executor": executor,
        "content_hash": hashlib.sha256(blob).hexdigest(),
        "files": [META, LOWERED],
    }
    write_file(directory / LOWERED, blob)
    write_file(directory / MANIFEST, _json(manifest))
    write_file(directory / META, _json(meta_of(infos, len(entry.return_types), platform, backend_type)))


def clear_stale(directory: Path, keep: Iterable[str] = ()) -> None:
    """Remove what an earlier build left: its markers, and the files that its manifest lists."""
    stale = [marker for marker in _MARKERS if marker not in keep]
    try:
        listed = json.loads((directory / MANIFEST).read_text(encoding="utf-8"))["files"]
        stale += [name for name in listed if isinstance(name, str) and name not in keep]
        stale.append(MANIFEST)
    except (OSError, ValueError, KeyError, TypeError):
        pass  # no earlier build, or none that says what it wrote
    for name in stale:
        path = (directory / name).resolve()
        if directory in path.parents:
            path.unlink(missing_ok=True)


def meta_of(infos: Iterable[ParamInfo], returns: int, platform: str, backend_type: BackendType) -> dict[str, Any]:
    """The content of ``compiled_meta.json``."""
    return {
        "schema": META_SCHEMA,
        "params": [
            {
                "name": info.name,
                "direction": info.direction.name,
                "shape": None if info.shape is None else list(info.shape),
                "dtype": str(info.dtype),
            }
            for info in infos
        ],
        "num_return_types": returns,
        "platform": platform,
        "backend_type": backend_type.name,
    }


def _json(document: Mapping[str, Any]) -> str:
    return json.dumps(document, indent=1) + "\n"


# --- reading ----------------------------------------------------------------------------------------------------------


class Meta:
    """What ``compiled_meta.json`` says."""

    __slots__ = ("backend_type", "infos", "platform", "returns")

    def __init__(self, infos: list[ParamInfo], returns: int, platform: str | None, backend_type: BackendType) -> None:
        self.infos = infos
        self.returns = returns
        self.platform = platform
        self.backend_type = backend_type


def read_meta(directory: Path) -> Meta:
    """Read and check ``compiled_meta.json``; one ``ValueError`` names the file and the field."""
    path = directory / META
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise FileNotFoundError(
            f"{path} does not exist. The directory was written by a version too old to record its signature, or it "
            "holds a distributed build (use DistributedCompiledProgram.from_dir), or it is the parent of a build with "
            "several orchestrations (use next_levels/<name>)"
        ) from None

    def fail(field: str, problem: str) -> Any:
        raise ValueError(f"{path}: field '{field}' {problem}; recompile the program")

    try:
        document = json.loads(text)
    except ValueError as error:
        return fail("(document)", f"is no JSON: {error}")
    if not isinstance(document, dict):
        return fail("(document)", f"must be an object, got {type(document).__name__}")
    if document.get("schema") != META_SCHEMA or isinstance(document.get("schema"), bool):
        fail("schema", f"must be {META_SCHEMA}, got {document.get('schema')!r}")
    params = document.get("params")
    if not isinstance(params, list):
        return fail("params", f"must be a list, got {params!r}")
    infos = [_read_param(item, f"params[{i}]", fail) for i, item in enumerate(params)]
    returns = document.get("num_return_types")
    if isinstance(returns, bool) or not isinstance(returns, int) or returns < 0:
        fail("num_return_types", f"must be a non-negative int, got {returns!r}")
    backend = document.get("backend_type")
    if not isinstance(backend, str) or backend not in BackendType.__members__:
        return fail("backend_type", f"must be one of {list(BackendType.__members__)}, got {backend!r}")
    platform = document.get("platform")
    if platform is not None and not isinstance(platform, str):
        fail("platform", f"must be a string, got {platform!r}")
    return Meta(infos, returns, platform, BackendType[backend])  # type: ignore[arg-type]


def _read_param(item: Any, where: str, fail: Callable[[str, str], Any]) -> ParamInfo:
    if not isinstance(item, dict):
        return fail(where, f"must be an object, got {item!r}")  # type: ignore[no-any-return]
    name, direction, shape, dtype = (item.get(k) for k in ("name", "direction", "shape", "dtype"))
    if not isinstance(name, str):
        fail(f"{where}.name", f"must be a string, got {name!r}")
    if not isinstance(direction, str) or direction not in ParamDirection.__members__:
        return fail(f"{where}.direction", f"must be one of {list(ParamDirection.__members__)}, got {direction!r}")  # type: ignore[no-any-return]
    if "shape" not in item or not (
        shape is None
        or (isinstance(shape, list) and all(isinstance(n, int) and not isinstance(n, bool) for n in shape))
    ):
        fail(f"{where}.shape", f"must be null or a list of ints, got {shape!r}")
    if not isinstance(dtype, str) or dtype not in _DTYPE_BY_TEXT:
        return fail(f"{where}.dtype", f"must be an element type, got {dtype!r}")  # type: ignore[no-any-return]
    return ParamInfo(
        name,  # type: ignore[arg-type]
        ParamDirection[direction],
        None if shape is None else tuple(shape),
        _DTYPE_BY_TEXT[dtype],
    )


def read_program(directory: Path) -> tuple[Program, str]:
    """The stored program and the name of its entry; ``ValueError`` when the files don't belong together."""
    path = directory / MANIFEST
    if not path.is_file():
        raise FileNotFoundError(f"{path} does not exist: the directory holds no program that this machine can run")
    try:
        manifest = json.loads(path.read_text(encoding="utf-8"))
        schema, entry, wanted = manifest["schema"], manifest["entry"], manifest["content_hash"]
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{path} is damaged ({error}); recompile the program") from error
    if schema != MANIFEST_SCHEMA:
        raise ValueError(f"{path}: field 'schema' must be {MANIFEST_SCHEMA}, got {schema!r}; recompile the program")
    blob = (directory / LOWERED).read_bytes()
    if hashlib.sha256(blob).hexdigest() != wanted:
        raise ValueError(f"{directory / LOWERED} is not the file that {MANIFEST} describes; recompile the program")
    program = deserialize(blob)
    if not isinstance(program, Program) or not isinstance(entry, str) or program.get_function(entry) is None:
        raise ValueError(f"{path}: field 'entry' names no function of the stored program; recompile the program")
    return program, entry


__all__ = [
    "LazyFiles",
    "Meta",
    "clear_stale",
    "make_output_dir",
    "read_meta",
    "read_program",
    "version",
    "write_program",
]
