"""What the tests of ``@pl.jit`` share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pypto.language as pl
from pypto import ir


@pytest.fixture(autouse=True)
def build_folder(tmp_path, monkeypatch) -> None:
    """Compilations write below a folder of the test's own."""
    monkeypatch.setenv("PYPTO_PROG_BUILD_DIR", str(tmp_path / "build"))


@pytest.fixture
def text_of() -> Callable[[Any], str]:
    """The text of a specialised program, after a check that it parses back to an equal one."""

    def text(program: Any) -> str:
        printed = program.as_python()
        ir.assert_structural_equal(program, pl.parse(printed), enable_auto_mapping=True)
        return printed

    return text


@pytest.fixture
def ones() -> Callable[..., Any]:
    def make(*shape: int, dtype: Any = np.float32) -> Any:
        return np.ones(shape, dtype)

    return make
