"""The version of the installed package."""

import sys

from pypto._version import installed_version


def version_with(monkeypatch, *folders):
    monkeypatch.setattr(sys, "path", [str(folder) for folder in folders])
    installed_version.cache_clear()
    try:
        return installed_version()
    finally:
        installed_version.cache_clear()


def test_it_is_that_of_the_record(tmp_path, monkeypatch):
    (tmp_path / "pypto_more-7.0.dist-info").mkdir()
    (tmp_path / "pypto-1.2.3.dist-info").mkdir()
    assert version_with(monkeypatch, tmp_path / "missing", tmp_path) == "1.2.3"


def test_of_a_source_tree_there_is_none(tmp_path, monkeypatch):
    (tmp_path / "pypto").mkdir()
    assert version_with(monkeypatch, tmp_path) is None
