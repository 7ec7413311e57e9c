"""``#`` comments and docstrings on their way to statements (language section 14)."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pytest

from pypto import ir

from .dsl import HEAD, load_file, opaque, parse, round_trip


def body(text: str) -> list[Any]:
    node = parse(opaque(text))
    round_trip(node)
    again = parse(node.as_python(format=False))
    found = [list(s.leading_comments) for s in statements(node)]
    assert [list(s.leading_comments) for s in statements(again)] == found
    return statements(node)


def statements(node: Any) -> list[Any]:
    return list(node.body.stmts) if isinstance(node.body, ir.SeqStmts) else [node.body]


def comments(text: str) -> list[list[str]]:
    return [list(s.leading_comments) for s in body(text)]


def test_lines_above_and_trailing() -> None:
    assert comments("# one\n#two\n#   three\na = n  # four\n# five\nreturn a") == [
        ["one", "two", "  three", "four"],
        ["five"],
    ]


def test_only_one_hash_and_one_space_are_stripped() -> None:
    assert comments("##  x\n#\n#! y\nreturn") == [["#  x", "", "! y"]]


def test_comments_of_a_wrapped_statement() -> None:
    assert comments("a = (  # open\n    n  # value\n    # inside\n    + 1\n)  # close\nreturn a") == [
        ["open", "value", "inside", "close"],
        [],
    ]


def test_a_hash_in_a_string_is_no_comment() -> None:
    assert comments("pl.static_assert(True, 'a # b')\na = n  # real '#'\nreturn") == [["real '#'"], []]


def test_compound_statements_take_what_is_above_and_in_their_header() -> None:
    loop, _ = body(
        "# above\nfor i in pl.range(  # header\n    # wrapped\n    4\n):\n    # first\n    a = i\n    # second\n    b = a\nreturn"
    )
    assert list(loop.leading_comments) == ["above", "header", "wrapped"]
    assert [list(s.leading_comments) for s in loop.body.stmts] == [["first"], ["second"]]


def test_a_trailing_header_comment_belongs_to_the_compound_statement() -> None:
    branch, _ = body("if n > 1:  # when\n    # inner\n    a = n\nelse:\n    a = 1\nreturn")
    assert list(branch.leading_comments) == ["when"]
    assert list(branch.then_body.leading_comments) == ["inner"]


def test_an_outer_comment_above_a_nested_block_is_not_inside() -> None:
    loop, _ = body("while n > 1:\n    # of the if\n    if n > 2:\n        # of a\n        a = n\n    n = n - 1\nreturn")
    branch = loop.body.stmts[0]
    assert list(branch.leading_comments) == ["of the if"]
    assert list(branch.then_body.leading_comments) == ["of a"]


@pytest.mark.parametrize(
    "form",
    ["# why\nelse:\n    a = 2\nreturn", "else:  # why\n    a = 2\nreturn", "else:\n    # why\n    a = 2\nreturn"],
)
def test_comments_around_else_go_to_its_first_statement(form: str) -> None:
    branch, _ = body("if n > 1:\n    a = 1\n" + form)
    assert list(branch.else_body.leading_comments) == ["why"]


def test_comments_above_elif() -> None:
    branch, _ = body("if n > 2:\n    a = 1\n# why\nelif n > 1:\n    a = 2\nelse:\n    a = 3\nreturn")
    assert list(branch.else_body.leading_comments) == ["why"]


def test_scopes() -> None:
    scope, _ = body("# above\nwith pl.cluster():  # beside\n    # in\n    a = n\nreturn")
    assert list(scope.leading_comments) == ["above", "beside"]
    assert list(scope.body.leading_comments) == ["in"]


def test_a_scope_with_a_task_id_has_its_comment_itself() -> None:
    from .dsl import program

    node = parse(program("# launch\nwith pl.at(level=pl.Level.CORE_GROUP) as t:\n    y[:] = x\nreturn"))
    placeholder, scope = node.get_function("main").body.stmts[:2]
    assert list(placeholder.leading_comments) == [] and list(scope.leading_comments) == ["launch"]


def test_docstrings_become_comments() -> None:
    assert comments('"""First line.\n\n    second line\n"""\n# note\na = n\nreturn') == [
        ["First line.", "", "second line", "note"],
        [],
    ]
    assert comments("a = n\n'between'\n# hash\nreturn a") == [[], ["between", "hash"]]


def test_comments_of_statements_that_emit_nothing_move_on() -> None:
    assert comments("# one\npass  # two\n# three\npl.static_assert(True)  # four\na = n  # five\nreturn") == [
        ["one", "two", "three", "four", "five"],
        [],
    ]


def test_unpacking_keeps_one_copy() -> None:
    found = comments("# pair\na, b = (n, m)\nreturn")
    assert found[0] == ["pair"] and all(not c for c in found[1:])


@pytest.mark.parametrize(
    "text",
    [
        "for i in pl.range(4):\n    a = i\n    # lost\nreturn",
        "if n > 1:\n    a = n\n    # lost\nelse:\n    a = 1\nreturn",
        "if n > 1:\n    a = n\nelse:\n    a = 1\n    # lost\nreturn",
        "a = n\nreturn\n# lost",
        "with pl.cluster():\n    a = n\n    # lost\nreturn",
        "for i in pl.range(4):\n    pass  # lost\nreturn",
    ],
)
def test_comments_at_the_end_of_a_block_are_dropped_with_a_warning(text: str) -> None:
    with pytest.warns(UserWarning, match=r"Dropped 1 tail-of-block comment\(s\)") as caught:
        node = parse(opaque(text))
    assert "lost" in str(caught[0].message) and len(caught) == 1
    assert "lost" not in node.as_python(format=False)


def test_the_warning_counts_and_previews_three_with_lines() -> None:
    with pytest.warns(UserWarning, match=r"Dropped 4 tail-of-block comment\(s\)") as caught:
        parse(opaque("for i in pl.range(4):\n    a = i\n    # l1\n    # l2\n    # l3\n    # l4\nreturn"))
    shown = str(caught[0].message)
    assert all(word in shown for word in ("l1", "l2", "l3", "7")) and "l4" not in shown


def test_a_dedented_comment_after_a_block_belongs_to_the_next_statement() -> None:
    found = body("for i in pl.range(4):\n    a = i\n# next\nreturn")
    assert list(found[1].leading_comments) == ["next"]


def test_methods_have_their_own_comments(tmp_path: Path) -> None:
    text = HEAD + (
        "# of the class\n@pl.program\nclass P:\n    # before a\n    @pl.function\n    def a(self, n: pl.Scalar[pl.INDEX]):\n"
        "        # in a\n        return n\n\n    # before b\n    @pl.function\n    # between\n    def b(self, n: pl.Scalar[pl.INDEX]):\n"
        "        # in b\n        return n\n\n# after\n"
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        node = load_file(tmp_path, text)["P"]
    assert list(node.get_function("a").body.leading_comments) == ["in a"]
    assert list(node.get_function("b").body.leading_comments) == ["in b"]


def test_comments_beside_multi_line_strings(tmp_path: Path) -> None:
    text = HEAD + (
        '@pl.function\ndef f(n: pl.Scalar[pl.INDEX]):\n    """Doc # no comment.\n\n    # neither\n    """\n'
        "    # yes\n    a = n  # also\n    '''text\n# flush left in a string\n'''\n    return a  # last\n"
    )
    node = load_file(tmp_path, text)["f"]
    first, second = node.body.stmts
    assert list(first.leading_comments) == ["Doc # no comment.", "", "# neither", "yes", "also"]
    assert list(second.leading_comments) == ["text", "# flush left in a string", "last"]


def test_inline_comments_are_those_of_the_inline_function(tmp_path: Path) -> None:
    text = HEAD + (
        "@pl.inline\ndef g(v):\n    # inside\n    w = v + 1  # beside\n    return w\n"
        "@pl.function\ndef f(n: pl.Scalar[pl.INDEX]):\n    # call\n    a = g(n)\n    # after\n    return a\n"
    )
    node = load_file(tmp_path, text)["f"]
    first, second, third = node.body.stmts
    assert "inside" in first.leading_comments and "beside" in first.leading_comments
    assert list(third.leading_comments) == ["after"]
    assert "call" in [*first.leading_comments, *second.leading_comments]


def test_many_comments_cost_linear_time() -> None:
    import time

    def cost(count: int) -> float:
        text = opaque("".join(f"# note {i}\na{i} = n + {i}  # beside\n" for i in range(count)) + "return")
        best = float("inf")
        for _ in range(3):
            start = time.process_time()
            parse(text)
            best = min(best, time.process_time() - start)
        return best

    assert cost(1600) < 9 * cost(400)  # four times the comments; sixteen would be quadratic
