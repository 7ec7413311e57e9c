"""Making a failing program smaller by taking parts out of its text, as long as it fails in the same way.

This begins where Hypothesis ends: its shrinking only knows the draws that a program was made from.
"""

from __future__ import annotations

import ast
import copy
import time
from collections.abc import Callable, Iterator

from .harness import Checker, Fault

Key = tuple[str, str, str]


def reduce(checker: Checker, text: str, fault: Fault, seconds: float) -> tuple[str, Fault]:
    """The smallest text found with the same fault, and that fault."""
    until = time.monotonic() + seconds
    tree = ast.parse(text)
    best = fault
    changed = True
    while changed:
        changed = False
        for candidate in _smaller(tree):
            if time.monotonic() > until:
                return ast.unparse(tree), best
            found = _same(checker, candidate, fault.key)
            if found is not None:
                tree, best, changed = candidate, found, True
                break
    return ast.unparse(tree), best


def _same(checker: Checker, tree: ast.Module, key: Key) -> Fault | None:
    found = checker.check_text(ast.unparse(ast.fix_missing_locations(tree)))
    return found if found is not None and found.key == key else None


def _smaller(tree: ast.Module) -> Iterator[ast.Module]:
    """Smaller programs, those that lose most first."""
    for edit in (_without_statements(tree), _unwrapped(tree), _without_else(tree), _simpler_expressions(tree)):
        for change in edit:
            # The change is made to the tree itself, copied, and taken back.
            undo = change()
            try:
                yield copy.deepcopy(tree)
            finally:
                undo()


Change = Callable[[], Callable[[], None]]


def _lists(tree: ast.Module) -> Iterator[list[ast.stmt]]:
    for node in ast.walk(tree):
        for name in ("body", "orelse"):
            block = getattr(node, name, None)
            if isinstance(block, list) and block and not isinstance(node, ast.Module):
                yield block


def _replacing(block: list[ast.stmt], first: int, last: int, new: list[ast.stmt]) -> Change:
    def change() -> Callable[[], None]:
        old = list(block)
        block[first:last] = new
        if not block:
            block.append(ast.Pass())

        def undo() -> None:
            block[:] = old

        return undo

    return change


def _without_statements(tree: ast.Module) -> Iterator[Change]:
    for at, stmt in enumerate(tree.body):
        if isinstance(stmt, ast.FunctionDef):
            yield _replacing(tree.body, at, at + 1, [])
    for block in _lists(tree):
        size = len(block)
        while size:
            for first in range(0, len(block), size):
                part = block[first : first + size]
                if not (len(part) == len(block) == 1 and isinstance(part[0], ast.Pass)):
                    yield _replacing(block, first, first + size, [])
            size //= 2


def _unwrapped(tree: ast.Module) -> Iterator[Change]:
    for block in _lists(tree):
        for at, stmt in enumerate(block):
            if isinstance(stmt, (ast.If, ast.For, ast.While, ast.With)):
                yield _replacing(block, at, at + 1, stmt.body)
                if isinstance(stmt, ast.If) and stmt.orelse:
                    yield _replacing(block, at, at + 1, stmt.orelse)


def _setting(node: ast.AST, name: str, value: object) -> Change:
    def change() -> Callable[[], None]:
        old = getattr(node, name)
        setattr(node, name, value)
        return lambda: setattr(node, name, old)

    return change


def _without_else(tree: ast.Module) -> Iterator[Change]:
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and node.orelse:
            yield _setting(node, "orelse", [])
        if isinstance(node, ast.FunctionDef) and node.args.args:
            for arg in node.args.args:
                if arg.arg != "self":
                    yield _setting(node.args, "args", [a for a in node.args.args if a is not arg])


def _simpler_expressions(tree: ast.Module) -> Iterator[Change]:
    """An operand instead of an operation."""
    for node in ast.walk(tree):
        for name, value in ast.iter_fields(node):
            if isinstance(value, ast.expr) and name not in ("annotation", "returns", "func", "iter", "context_expr"):
                for part in _operands(value):
                    yield _setting(node, name, part)
            elif isinstance(value, list) and name in ("args", "elts") and not isinstance(node, ast.arguments):
                for at, item in enumerate(value):
                    for part in _operands(item):
                        yield _setting(node, name, [*value[:at], part, *value[at + 1 :]])


def _operands(value: ast.expr) -> list[ast.expr]:
    if isinstance(value, ast.BinOp):
        return [value.left, value.right]
    if isinstance(value, ast.UnaryOp):
        return [value.operand]
    if isinstance(value, ast.BoolOp):
        return list(value.values)
    if (
        isinstance(value, ast.Call)
        and isinstance(value.func, ast.Attribute)
        and value.func.attr not in ("load", "full")
    ):
        return [arg for arg in value.args if not isinstance(arg, (ast.List, ast.Constant))]
    return []
