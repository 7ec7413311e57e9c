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
from pypto.runtime.compilers import CompilerNotFound, find_compiler

DOCS = pathlib.Path(__file__).parents[2] / "docs"
# ```python is a part of the page's module, ```python NAME a file of its own
BLOCK = re.compile(r"^```(\w+) ?(\S*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(page, language, file=""):
    """The code blocks of a page, in order."""
    found = BLOCK.findall((DOCS / page).read_text(encoding="utf-8"))
    return [text for kind, name, text in found if (kind, name) == (language, file)]


def transcripts(page):
    """(command, what it shows) of the console blocks: a command stands behind `$ `."""
    for text in blocks(page, "console"):
        for part in text.split("$ ")[1:]:
            command, _, shown = part.partition("\n")
            yield command, shown


def typed(shown):
    """What the transcript types at the debugger's prompt."""
    return "".join(f"{line}\n" for line in re.findall(r"^\(pypto\) (.*)$", shown, re.MULTILINE))


def pattern(shown):
    """A regular expression for a transcript: `...` is any lines, `…` any text of a line, times differ."""
    parts = []
    for line in shown.splitlines():
        if line.startswith("(pypto) "):
            parts.append(re.escape("(pypto) "))  # what is typed is not echoed, so the answer follows on this line
        elif line == "...":
            parts.append(r"(?:.*\n)*?")
        else:
            text = re.escape(line).replace("…", ".*")
            parts.append(re.sub(r"\d+\\\.\d+\\ ms", r"[\\d.]+\\ ms", text) + r"\n")
    return re.compile("".join(parts))


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


@pytest.mark.parametrize("page, least", [("quickstart.md", 5), ("language.md", 5), ("passes.md", 5), ("runtime.md", 1)])
def test_python_blocks_run(page, least, tmp_path, monkeypatch):
    assert len(blocks(page, "python")) >= least
    if page == "runtime.md":
        try:
            find_compiler()
        except CompilerNotFound as error:
            pytest.skip(f"the page compiles C++, and there is no compiler: {error}")
    run_module(write_module(page, tmp_path), monkeypatch)


def test_commands_show_what_the_page_shows(tmp_path):
    page = "quickstart.md"
    for name in ("scale.py", "halves.py"):
        (tmp_path / name).write_text(*blocks(page, "python", name), encoding="utf-8")
    shown_commands = dict(transcripts(page))
    assert {shlex.split(command)[1] for command in shown_commands} >= {"run", "print", "check", "explain"}
    assert any("--break" in command for command in shown_commands)
    for command, shown in shown_commands.items():
        program, *arguments = shlex.split(command)
        assert program == "pypto"
        done = subprocess.run(
            [sys.executable, "-m", "pypto.tools.cli", *arguments],
            input=typed(shown),
            capture_output=True,
            text=True,
            timeout=120,
            env={**os.environ, "PYTHONPATH": str(pathlib.Path(ir.__file__).parents[2])},
        )
        assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
        assert pattern(shown).fullmatch(done.stdout), f"{command}\n{done.stdout}\n{pattern(shown).pattern}"


def test_a_transcript_that_differs_is_found():
    shown = "a … in 1.5 ms\n(pypto) p x\nx = 1\n...\nend\n"
    assert typed(shown) == "p x\n"
    assert pattern(shown).fullmatch("a b c in 20.25 ms\n(pypto) x = 1\nmore\nand more\nend\n")
    assert pattern(shown).fullmatch("a  in 20.25 ms\n(pypto) x = 1\nend\n")
    assert not pattern(shown).fullmatch("a b c in 20.25 ms\n(pypto) x = 2\nend\n")
    assert not pattern(shown).fullmatch("a b c in 20.25 ms\n(pypto) x = 1\nend\nmore\n")
    assert not pattern(shown).fullmatch("a b c\n(pypto) x = 1\nend\n")


@pytest.mark.parametrize("path", sorted(DOCS.rglob("*.md")), ids=lambda path: str(path.relative_to(DOCS)))
def test_links_lead_somewhere(path):
    for target in re.findall(r"\]\(([^)#][^)]*?)(?:#[^)]*)?\)", path.read_text(encoding="utf-8")):
        if not target.startswith(("http:", "https:")):
            assert (path.parent / target).exists(), target
