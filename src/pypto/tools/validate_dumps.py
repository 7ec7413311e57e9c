"""Checking each stage of a compilation: every dumped program is run and compared."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .._lazy import np
from ..frontend.text import parse
from ..ir.program import Program
from ..runtime.arrays import is_array
from ..runtime.checking import assert_close
from ..runtime.execute import Executable
from ..runtime.signature import entry_function, param_infos

_SSA_SUFFIX = re.compile(r"__ssa_v\d+$")


@dataclass(frozen=True)
class PassResult:
    """How one dump did: the largest difference by output."""

    name: str
    passed: bool
    differences: dict[str, float]


def validate_pass_dumps(
    ir_dir: Any,
    tensors: Mapping[str, Any],
    expected: Mapping[str, Any],
    *,
    rtol: float = 5e-2,
    atol: float = 5e-2,
    stop_at_first: bool = True,
) -> list[PassResult]:
    """Run each dump in name order (or one ``.py`` file) on copies of ``tensors`` and compare each key of ``expected``.

    ``tensors`` maps parameter names to arrays and numbers. ``AssertionError`` for the first dump that is wrong.
    """
    for what, value in (("tensors", tensors), ("expected", expected)):
        if not isinstance(value, Mapping):
            raise TypeError(f"{what} must be a dict of arrays, got {type(value).__name__}")
    if rtol < 0 or atol < 0:
        raise ValueError(f"tolerances must not be negative, got rtol={rtol}, atol={atol}")
    results: list[PassResult] = []
    seen: dict[str, PassResult] = {}
    for path in _dumps(Path(ir_dir)):
        text = path.read_text(encoding="utf-8")
        known = seen.get(text)
        if known is None:
            print(f"==== {path.stem} ====")
            known = seen[text] = _validate(path, text, tensors, expected, rtol, atol, stop_at_first)
        results.append(PassResult(path.stem, known.passed, known.differences))
    return results


def _dumps(path: Path) -> list[Path]:
    if path.is_file():
        return [path]
    if not path.is_dir():
        raise FileNotFoundError(f"{path} does not exist: compile with dump_passes=True")
    found = sorted(path.glob("*.py"))
    if not found:
        raise ValueError(f"{path} holds no dumps")
    return found


def _validate(
    path: Path,
    text: str,
    tensors: Mapping[str, Any],
    expected: Mapping[str, Any],
    rtol: float,
    atol: float,
    stop_at_first: bool,
) -> PassResult:
    program = parse(text, str(path))
    if not isinstance(program, Program):
        program = Program([program], program.name, program.span)
    function = entry_function(program)
    infos = param_infos(function)
    values: dict[str, Any] = {}
    for info in infos:
        name = _SSA_SUFFIX.sub("", info.name)
        if name not in tensors:
            raise KeyError(f"{path.name}: no value for parameter '{name}'")
        value = tensors[name]
        values[name] = _copy(value) if is_array(value) else value
    Executable(program, function, infos, path.stem).run(list(values.values()), {})
    differences: dict[str, float] = {}
    passed = True
    for key, want in expected.items():
        if key not in values:
            raise ValueError(f"{path.name}: '{key}' is no parameter. Parameters: {list(values)}")
        difference = float(
            np.max(np.abs(np.asarray(values[key], np.float64) - np.asarray(want, np.float64)), initial=0)
        )
        try:
            assert_close(key, values[key], want, (rtol, atol))
            good = True
        except AssertionError as error:
            good = passed = False
            if stop_at_first:
                print(f"validate tensor: '{key}', max_abs_diff: {difference}, pass: False")
                raise AssertionError(
                    f"{path.stem}: tensor mismatch for key '{key}', max abs diff {difference} exceeds tolerance\n"
                    f"{error}"
                ) from error
        differences[key] = difference
        print(f"validate tensor: '{key}', max_abs_diff: {difference}, pass: {good}")
    return PassResult(path.stem, passed, differences)


def _copy(array: Any) -> Any:
    return array.clone() if hasattr(array, "clone") else np.array(array, copy=True)


__all__ = ["PassResult", "validate_pass_dumps"]
