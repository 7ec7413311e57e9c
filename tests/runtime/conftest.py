"""Compiled programs of tests are written below the test's own folder; the helpers of this folder can be imported."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(autouse=True)
def build_dir(tmp_path, monkeypatch):
    monkeypatch.setenv("PYPTO_PROG_BUILD_DIR", str(tmp_path / "build"))


@pytest.fixture
def usual_executor(cpp_compiler, monkeypatch):
    """What runs a call is not decided by the environment of the tests."""
    monkeypatch.delenv("PYPTO_EXECUTOR", raising=False)
