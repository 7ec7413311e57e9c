"""Tests write nothing into the repository: compiled programs go below the test's own folder."""

import pytest


@pytest.fixture(autouse=True)
def own_build_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("PYPTO_PROG_BUILD_DIR", str(tmp_path / "build"))
