"""The code of the guides runs: Python blocks as one module, and the commands behind a `$`."""

import importlib.util
import os
import pathlib
import re
import shlex
import subprocess
import sys

import pytest

from pypto import ir

DOCS = pathlib.Path(__file__).parents[2] / "docs"
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(page, language):
    """The code blocks of a page, in order."""
    return [text for kind, text in BLOCK.findall((DOCS / page).read_text(encoding="utf-8")) if kind == language]


def commands(page):
    """What the console blocks of a page type behind `$ `."""
    lines = "\n".join(blocks(page, "console")).splitlines()
    return [line[2:] for line in lines if line.startswith("$ ")]


def write_module(page, folder):
    path = folder / f"{pathlib.Path(page).stem}.py"
    path.write_text("\n\n".join(blocks(page, "python")), encoding="utf-8")
    return path


def run_module(path, monkeypatch):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, path.stem, module)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(autouse=True)
def in_a_folder_of_its_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYPTO_PROG_BUILD_DIR", str(tmp_path / "build"))


@pytest.mark.parametrize("page", ["quickstart.md", "language.md"])
def test_python_blocks_run(page, tmp_path, monkeypatch):
    assert len(blocks(page, "python")) >= 5
    run_module(write_module(page, tmp_path), monkeypatch)


def test_commands_run(tmp_path):
    page = "quickstart.md"
    write_module(page, tmp_path)
    typed = commands(page)
    assert {shlex.split(command)[1] for command in typed} >= {"run", "print", "check"}
    for command in typed:
        program, *arguments = shlex.split(command)
        assert program == "pypto"
        done = subprocess.run(
            [sys.executable, "-m", "pypto.tools.cli", *arguments],
            input="c\n" * 50 if any(a.startswith("--break") for a in arguments) else "",
            capture_output=True,
            text=True,
            timeout=120,
            env={**os.environ, "PYTHONPATH": str(pathlib.Path(ir.__file__).parents[2])},
        )
        assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"


@pytest.mark.parametrize("path", sorted(DOCS.rglob("*.md")), ids=lambda path: str(path.relative_to(DOCS)))
def test_links_lead_somewhere(path):
    for target in re.findall(r"\]\(([^)#][^)]*?)(?:#[^)]*)?\)", path.read_text(encoding="utf-8")):
        if not target.startswith(("http:", "https:")):
            assert (path.parent / target).exists(), target
