"""Tests write nothing into the repository: compiled programs go below the test's own folder."""

import pytest

from pypto.runtime.compilers import CompilerNotFound, find_compiler


@pytest.fixture(scope="session")
def cpp_compiler():
    """For tests that run C++."""
    try:
        return find_compiler()
    except CompilerNotFound as error:
        pytest.skip(f"this runs C++, and there is no compiler: {error}")


@pytest.fixture(autouse=True)
def own_build_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("PYPTO_PROG_BUILD_DIR", str(tmp_path / "build"))
