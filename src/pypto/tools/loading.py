"""Program files: Python files that define programs and, if they like, arguments and expected results.

``ENTRY`` or ``ENTRIES`` name what is to be run; otherwise it is every program and entry that the file defines.
``make_args(rng)`` gives the arguments, ``expected(*args)`` maps argument numbers to values after the call; ``RTOL`` and
``ATOL`` are tolerances.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

from .._lazy import np
from ..diag.parser_errors import ParserError
from ..frontend import entry as frontend_entry
from ..ir.enums import ParamDirection
from ..ir.program import Function, Program
from ..jit import JITFunction
from ..ops.numpy_types import numpy_dtype
from ..runtime.signature import ParamInfo, extract_param_infos


class UsageError(Exception):
    """What was asked for does not fit the file; the message is for the user."""


class Refused:
    """Stands for a definition that has errors, while the rest of its file is read."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"<{self.name}: refused>"


def load_module(path: str | Path) -> ModuleType:
    """Run a file as a module of its own."""
    module, error = load_as_far_as_possible(path)
    if error is not None:
        raise error
    return module


def load_as_far_as_possible(path: str | Path) -> tuple[ModuleType, Exception | None]:
    """Run a file as a module; the module with what was defined before an exception, and the exception."""
    file = Path(path)
    if not file.is_file():
        raise UsageError(f"{path}: no such file")
    name = f"pypto_file_{file.stem}"
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise UsageError(f"{path}: not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    # A file may import its neighbours, as if it were run.
    folder = str(file.resolve().parent)
    sys.path.insert(0, folder)
    try:
        spec.loader.exec_module(module)
    except Exception as error:  # for the caller to judge
        return module, error
    finally:
        sys.path.remove(folder)
    return module, None


@contextmanager
def collecting(errors: list[ParserError]) -> Iterator[None]:
    """While this is open a definition with errors does not end its file: the errors are collected."""
    saved = frontend_entry.parse_function, frontend_entry.parse_class

    def tolerant(parse: Callable[..., Any]) -> Callable[..., Any]:
        def run(target: Any, *args: Any) -> Any:
            try:
                return parse(target, *args)
            except ParserError as error:
                errors.append(error)
                return Refused(target.__name__)

        return run

    frontend_entry.parse_function = tolerant(saved[0])
    frontend_entry.parse_class = tolerant(saved[1])
    try:
        yield
    finally:
        frontend_entry.parse_function, frontend_entry.parse_class = saved


# --- entries ----------------------------------------------------------------------------------------------------------


class Entry:
    """Something in a file that can be compiled: a program, a function, or a ``@pl.jit`` entry."""

    def __init__(self, name: str, value: Any, module: ModuleType) -> None:
        self.name = name
        self.value = value
        self.module = module

    @property
    def kind(self) -> str:
        if isinstance(self.value, JITFunction):
            return "@pl.jit"
        return "@pl.program" if isinstance(self.value, Program) else "@pl.function"

    def program(self, args: list[Any] | None = None) -> Program:
        """The program before any pass; a jit function is specialised for ``args``, or for its signature."""
        if isinstance(self.value, JITFunction):
            return self.value.specialize(*(args or ()))
        if isinstance(self.value, Function):
            return Program([self.value], self.value.name, self.value.span)
        assert isinstance(self.value, Program)
        return self.value

    def compile(self, args: list[Any], config: Any) -> Any:
        """The compiled program for some arguments."""
        if isinstance(self.value, JITFunction):
            return self.value.compile(*args, config=config)
        from ..ir.compile import compile as compile_program
        from ..runtime.runner import compile_arguments

        return compile_program(self.program(), **compile_arguments(config))

    @property
    def has_arguments(self) -> bool:
        return hasattr(self.module, "make_args")

    def arguments(self, rng: Any) -> list[Any]:
        """``make_args(rng)``, or random arguments of the parameter types."""
        if self.has_arguments:
            return list(self.module.make_args(rng))
        try:
            infos = extract_param_infos(self.program())
        except TypeError as error:
            raise UsageError(f"{self.name}: {error}. Define make_args(rng) in the file") from error
        return [_random_argument(info, rng, self.name) for info in infos]

    def wanted(self, args: list[Any]) -> dict[int, Any] | None:
        """Expected values after a call, by argument number; None where the file has no ``expected``."""
        expected = getattr(self.module, "expected", None)
        if expected is None or not self.has_arguments:
            return None
        return dict(expected(*[np.copy(a) if isinstance(a, np.ndarray) else a for a in args]))


def _random_argument(info: ParamInfo, rng: Any, entry: str) -> Any:
    dtype = info.dtype
    if info.shape is None:
        return True if str(dtype) == "bool" else 1.0 if dtype.is_float_ else 1
    if any(n < 0 for n in info.shape):
        raise UsageError(
            f"{entry}: parameter '{info.name}' has dynamic dimensions {info.describe()}: "
            "define make_args(rng) in the file"
        )
    kind = numpy_dtype(dtype)
    if info.direction is ParamDirection.Out:
        return np.zeros(info.shape, kind)
    if dtype.is_float_:
        return rng.standard_normal(info.shape).astype(kind)
    return rng.integers(0, 2 if str(dtype) == "bool" else 8, info.shape).astype(kind)


def entries_of(module: ModuleType) -> list[Entry]:
    """What a file offers, in its own order."""
    listed = getattr(module, "ENTRIES", None)
    if listed is None and hasattr(module, "ENTRY"):
        listed = [module.ENTRY]
    if listed is not None:
        return [Entry(_name_of(value), value, module) for value in listed]
    found = []
    seen: set[int] = set()
    for name, value in vars(module).items():
        is_jit_entry = isinstance(value, JITFunction) and value._func_type in ("orchestration", "host")
        if not (is_jit_entry or isinstance(value, (Program, Function))) or id(value) in seen:
            continue
        seen.add(id(value))
        found.append(Entry(name, value, module))
    return found


def helpers_of(module: ModuleType) -> list[JITFunction]:
    """The jit functions of a file that are no entries."""
    return [
        value
        for value in vars(module).values()
        if isinstance(value, JITFunction) and value._func_type not in ("orchestration", "host")
    ]


def _name_of(value: Any) -> str:
    return str(getattr(value, "__name__", None) or getattr(value, "name", None) or value)


def choose(entries: list[Entry], name: str | None, path: str) -> list[Entry]:
    """The entries of a name, or all."""
    if not entries:
        raise UsageError(f"{path}: defines no program (a @pl.program class, a @pl.function or a @pl.jit function)")
    if name is None:
        return entries
    chosen = [e for e in entries if e.name == name or _name_of(e.value) == name]
    if not chosen:
        module = entries[0].module
        value = getattr(module, name, None)
        if isinstance(value, (JITFunction, Program, Function)):
            return [Entry(name, value, module)]
        raise UsageError(f"{path}: no entry '{name}'. Entries: {', '.join(e.name for e in entries)}")
    return chosen


__all__ = [
    "Entry",
    "Refused",
    "UsageError",
    "choose",
    "collecting",
    "entries_of",
    "helpers_of",
    "load_as_far_as_possible",
    "load_module",
]
