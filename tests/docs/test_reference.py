"""The reference pages are what the definitions say."""

import pathlib
import re

import pytest

from pypto.diag.catalogue import ENTRIES
from pypto.diag.catalogue.model import CodeInfo
from pypto.ops import REGISTRY
from pypto.tools import reference

ROOT = pathlib.Path(__file__).parents[2]


@pytest.mark.parametrize("name", reference.PAGES)
def test_committed_page_is_up_to_date(name):
    text = (ROOT / name).read_text(encoding="utf-8")
    assert text == reference.PAGES[name](), "run python -m pypto.tools.reference"


def entry(op):
    """The lines of one op on the page, by their key."""
    page = reference.ops_page()
    section = page.partition(f"### `{op}`\n")[2].partition("\n##")[0]
    return dict(re.findall(r"^\* (\w+): (.*)$", section, re.MULTILINE))


def test_every_op_but_those_of_tests_has_an_entry():
    page = reference.ops_page()
    for name in REGISTRY:
        assert (f"### `{name}`\n" in page) is not name.startswith("test."), name


def test_operators_and_their_spellings():
    written = reference.spellings()
    assert written["tensor.add"] == ["pl.add(lhs, rhs)", "pl.tensor.add(lhs, rhs)"]
    assert written["tile.load"][0].startswith("pl.load(tensor, offsets, shape")
    # the scalar form of an op is written under the name of the op
    assert "pl.mul(lhs, rhs)" in written["tile.muls"] and "pl.tile.muls(lhs, rhs)" in written["tile.muls"]
    # names that differ from the op's
    assert any(form.startswith("pl.create_tensor(") for form in written["tensor.create"])
    assert any(form.startswith("pl.tile.create_tile(") for form in written["tile.create"])
    assert any(form.startswith("pl.and_(") for form in written["tensor.and"])
    assert any(form.startswith("pl.arange(") for form in written["tensor.ci"])
    # a promoted name belongs to its one level
    assert not any(form.startswith("pl.gather(") for form in written["tile.gather"])
    assert not any(form.startswith("pl.tile.gather(") for form in written["tile.gather_mask"])
    assert "t[a:b, c:d]" in written["tensor.slice"]
    # the distributed language
    assert any(form.startswith("pld.rank(") for form in written["pld.system.rank"])
    assert any(form.startswith("pld.tensor.put(") for form in written["pld.tensor.put"])


def test_no_op_gets_the_spelling_of_another_level():
    for op, forms in reference.spellings().items():
        for form in forms:
            level = re.match(r"pl\.(tensor|tile)\.", form)
            assert level is None or op.startswith(level[1]), (op, form)


def test_every_function_users_can_call_belongs_to_an_op():
    # the minimum of two scalars is an expression; the others are forms of the parser
    assert set(reference.unclaimed()) <= {
        "pl.max",
        "pl.min",
        "tile.max",
        "tile.min",
        "tensor.no_dep",
        "tensor.dump_tag",
    }


def test_facts_of_an_op():
    load = entry("tile.load")
    assert "`target_memory: MemorySpace" in load["keywords"]
    store = entry("tile.store")
    assert store["result"].startswith("is `output_tensor`, updated in place")
    assert store["effects"].startswith("writes `output_tensor`")
    product = entry("tile.matmul_acc")
    assert product["memory"] == "Acc, Left, Right -> Acc"
    assert product["core"] == "cube"
    assert product["effects"] == "reads and writes `acc`"
    assert "effects" not in entry("tensor.add")
    assert entry("tile.reshape")["result"].startswith("a view of `input`")
    assert "(required)" in entry("tensor.create")["keywords"]
    assert entry("tensor.fmod")["priority"] == "full"


def test_every_code_has_an_entry():
    page = reference.errors_page()
    for info in ENTRIES:
        assert f"### {info.code}: " in page


def test_an_error_entry():
    info = CodeInfo(
        code="PT0400",
        title="a < b",
        exception="ParserError",
        explanation="Two *things*.",
        fix="Mend it.",
        phrases=("one `tick`", "plain"),
    )
    page = reference.errors_page([info])
    assert "## Names, expressions, subscripts (PT04xx)" in page
    assert "### PT0400: a &lt; b" in page
    assert "`ParserError`. Two \\*things\\*." in page
    assert "Messages with: `` one `tick` ``, `plain`." in page


def test_writing_and_checking(tmp_path, capsys):
    assert reference.main(["--root", str(tmp_path), "--check"]) == 1
    assert "out of date" in capsys.readouterr().err
    assert reference.main(["--root", str(tmp_path)]) == 0
    assert reference.main(["--root", str(tmp_path), "--check"]) == 0
    page = tmp_path / "docs" / "errors.md"
    page.write_text(page.read_text(encoding="utf-8") + "more\n", encoding="utf-8")
    assert reference.main(["--root", str(tmp_path), "--check"]) == 1
