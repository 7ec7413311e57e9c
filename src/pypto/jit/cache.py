"""Keys of compiled specialisations, and the on-disk store of their artifacts."""

from __future__ import annotations

import hashlib
import json
import math
import os
import shutil
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from .._version import installed_version

CacheKey = tuple[Any, ...]
"""``(source_hash, platform, strategy, tensor_infos, scalar_infos, distributed config, compile_opts)``, hashable."""

_MANIFEST_SCHEMA = 1


class TensorCacheInfo:
    """Name, shape (``None`` for a dynamic dimension), element type and layout of a tensor parameter. Immutable."""

    __slots__ = ("dtype", "layout", "name", "shape")
    name: str
    shape: tuple[int | None, ...]
    dtype: Any
    layout: Any

    def __init__(self, name: str, shape: Sequence[int | None], dtype: Any, layout: Any = None) -> None:
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "shape", tuple(shape))
        object.__setattr__(self, "dtype", dtype)
        object.__setattr__(self, "layout", layout)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"TensorCacheInfo is frozen: cannot set {name!r}")

    def _key(self) -> tuple[Any, ...]:
        return (self.name, self.shape, str(self.dtype), str(self.layout))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TensorCacheInfo) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __repr__(self) -> str:
        return (
            f"TensorCacheInfo(name={self.name!r}, shape={self.shape!r}, dtype={self.dtype!s}, "
            f"layout={None if self.layout is None else self.layout.name})"
        )


class ScalarCacheInfo:
    """Name and value of a baked scalar. ``1``, ``1.0`` and ``True`` differ; NaN equals itself. Immutable."""

    __slots__ = ("name", "value")
    name: str
    value: int | float | bool

    def __init__(self, name: str, value: int | float | bool) -> None:
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "value", value)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"ScalarCacheInfo is frozen: cannot set {name!r}")

    def _key(self) -> tuple[Any, ...]:
        return (self.name, *scalar_key(self.value))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ScalarCacheInfo) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __repr__(self) -> str:
        return f"ScalarCacheInfo(name={self.name!r}, value={self.value!r})"


def scalar_key(value: Any) -> tuple[Any, ...]:
    """A key of a number: type and value, with NaN equal to itself and -0.0 unlike 0.0."""
    if type(value) is float:
        if math.isnan(value):
            return (float, "nan")
        if value == 0.0:
            return (float, math.copysign(1.0, value), 0.0)
    return (type(value), value)


def compute_source_hash(sources: Iterable[str]) -> str:
    """16 hex digits over the version and the sources in order: the entry, then what it calls, leaves first."""
    digest = hashlib.sha256(_version().encode())
    for source in sources:
        digest.update(b"\0")
        digest.update(source.encode())
    return digest.hexdigest()[:16]


def _version() -> str:
    return installed_version() or "0"


def _frozen(value: Any) -> Any:
    """A hashable form of a configuration value."""
    if isinstance(value, Mapping):
        return tuple(sorted((str(k), _frozen(v)) for k, v in value.items()))
    if isinstance(value, (set, frozenset)):
        return tuple(sorted(map(str, value)))
    if isinstance(value, (list, tuple)):
        return tuple(map(_frozen, value))
    if hasattr(value, "__dataclass_fields__"):
        return (type(value).__name__, *((f, _frozen(getattr(value, f))) for f in value.__dataclass_fields__))
    try:
        hash(value)
    except TypeError:
        return str(value)
    return value


def make_cache_key(
    source_hash: str,
    param_names: Sequence[str],
    tensor_shapes: Mapping[str, Sequence[int]],
    tensor_dtypes: Mapping[str, Any],
    dynamic_dims: Iterable[tuple[str, int]] | Mapping[str, Iterable[int]],
    scalar_values: Mapping[str, Any],
    platform: str | None = None,
    strategy: Any = None,
    distributed_config: Any = None,
    analyze_auto_scopes_for_deps: bool = False,
    dump_ptoas_passes: bool = False,
    memory_planner: Any = None,
    enable_pypto_l0c_double_buffer: bool = False,
    tensor_layouts: Mapping[str, Any] | None = None,
    dep_layouts: Iterable[tuple[str, str, Any]] = (),
    runtime: Any = None,
    extra: Iterable[tuple[str, Any]] = (),
) -> CacheKey:
    """The hashable 7-tuple that identifies a specialisation; ``extra`` holds further ``compile_opts`` pairs.

    ``dynamic_dims`` are (parameter, dimension) pairs: their extents are ``None`` in the key. Two specialisations that
    differ in nothing named here are interchangeable.
    """
    if isinstance(dynamic_dims, Mapping):
        dynamic_dims = [(name, dim) for name, dims in dynamic_dims.items() for dim in dims]
    dynamic = set(dynamic_dims)
    layouts = tensor_layouts or {}
    tensors = tuple(
        TensorCacheInfo(
            name,
            tuple(None if (name, i) in dynamic else int(extent) for i, extent in enumerate(tensor_shapes[name])),
            tensor_dtypes[name],
            layouts.get(name),
        )
        for name in param_names
        if name in tensor_shapes
    )
    scalars = tuple(ScalarCacheInfo(name, scalar_values[name]) for name in param_names if name in scalar_values)
    double_buffer = bool(enable_pypto_l0c_double_buffer) and (
        memory_planner is None or str(memory_planner).rsplit(".", 1)[-1] == "PYPTO"
    )
    options: tuple[tuple[str, Any], ...] = (
        ("analyze_auto_scopes_for_deps", bool(analyze_auto_scopes_for_deps)),
        ("dump_ptoas_passes", bool(dump_ptoas_passes)),
        ("memory_planner", None if memory_planner is None else str(memory_planner)),
        ("enable_pypto_l0c_double_buffer", double_buffer),
        ("dep_layouts", tuple(sorted((d, p, getattr(v, "name", str(v))) for d, p, v in dep_layouts))),
        ("runtime", _runtime_name(runtime)),
        *((key, _frozen(value)) for key, value in extra),
    )
    config = None if distributed_config is None else _frozen(distributed_config)
    return (source_hash, platform, strategy, tensors, scalars, config, options)


def _runtime_name(runtime: Any) -> str:
    if runtime is None:
        return "tensormap_and_ringbuffer"
    return str(getattr(runtime, "name", runtime)).lower()


# --- on disk ----------------------------------------------------------------------------------------------------------


def _directory(key: CacheKey) -> Path:
    base = os.environ.get("PYPTO_JIT_CACHE_DIR") or os.path.join(os.path.expanduser("~"), ".cache", "pypto", "jit")
    return Path(base) / hashlib.sha256(_canonical(key).encode()).hexdigest()


def _canonical(value: Any) -> str:
    """Text of a key that is the same in every process."""
    if isinstance(value, (tuple, list)):
        return f"({','.join(map(_canonical, value))})"
    if isinstance(value, (TensorCacheInfo, ScalarCacheInfo)):
        return _canonical(value._key())
    if isinstance(value, type):
        return value.__name__
    if hasattr(value, "name") and not isinstance(value, str):
        return f"{type(value).__name__}.{value.name}"
    return f"{type(value).__name__}:{value!r}"


def l2_lookup(key: CacheKey) -> str | None:
    """The directory of stored artifacts, or None when there is none, or it is incomplete or of another version."""
    folder = _directory(key)
    artifacts = folder / "artifacts"
    try:
        manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
        if manifest["schema"] != _MANIFEST_SCHEMA or manifest["version"] != _version():
            return None
        if sorted(manifest["files"]) != _files(artifacts):
            return None
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return str(artifacts)


def l2_store(key: CacheKey, output_dir: str) -> None:
    """Keep a copy of an output directory; what can't be written is not kept, without an error."""
    folder = _directory(key)
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        staging = Path(tempfile.mkdtemp(prefix=folder.name[:16], dir=folder.parent))
    except OSError:
        return
    try:
        shutil.copytree(output_dir, staging / "artifacts")
        manifest = {
            "schema": _MANIFEST_SCHEMA,
            "version": _version(),
            "output_dir": str(folder / "artifacts"),
            "files": _files(staging / "artifacts"),
        }
        (staging / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
        if folder.exists():
            shutil.rmtree(folder)
        staging.rename(folder)
    except OSError:
        # Another process may have stored the same key first, or the disk is full: the cache is only a saving.
        shutil.rmtree(staging, ignore_errors=True)


def _files(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


__all__ = [
    "CacheKey",
    "ScalarCacheInfo",
    "TensorCacheInfo",
    "compute_source_hash",
    "l2_lookup",
    "l2_store",
    "make_cache_key",
    "scalar_key",
]
