"""Turns the rule tables, which are text, into functions.

A rule is ``pattern -> result`` or ``pattern -> result if condition``, in Python's expression syntax with ``min``,
``max``, ``and``, ``or`` and ``not``. In patterns ``w x y z`` match anything, ``c c1 c2 c3`` integer constants; a letter
that comes again must match a structurally equal thing. In results, a part made of constants alone is computed.

Conditions see the constants as numbers. ``symbolic(x)`` is true of anything but a constant. What the analyzer knows can
be asked by ``positive(x)``, ``nonzero(x)``, ``multiple(x, c)``, ``within(x, c)`` for ``0 <= x < c``, and
``at_most(x, y)``; without an analyzer these are never true.

A line that begins with ``*`` also holds with ``min`` and ``max`` exchanged and every order reversed.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from ...ir import expr as x
from ...ir.dtype import DataType
from ...ir.expr import ConstInt
from ..fold import FALSE, TRUE
from ..helpers import fits_int64
from ..structure import UNARY, is_float

Rule = Callable[[Any, Any], Any]  # (simplifier, node) -> result or None

_OPERATORS: dict[type, type] = {
    ast.Add: x.Add,
    ast.Sub: x.Sub,
    ast.Mult: x.Mul,
    ast.FloorDiv: x.FloorDiv,
    ast.Mod: x.FloorMod,
    ast.Eq: x.Eq,
    ast.NotEq: x.Ne,
    ast.Lt: x.Lt,
    ast.LtE: x.Le,
    ast.And: x.And,
    ast.Or: x.Or,
    ast.USub: x.Neg,
    ast.Not: x.Not,
}
_CALLS: dict[str, type] = {"min": x.Min, "max": x.Max}
_LOGICAL = (*x.COMPARISONS, x.And, x.Or, x.Not)
_QUESTIONS = ("positive", "nonzero", "multiple", "within", "at_most", "symbolic")


def _sign(value: int) -> int:
    """For conditions that duality must leave alone."""
    return (value > 0) - (value < 0)


def _node_class(tree: ast.expr) -> type:
    if isinstance(tree, ast.Call):
        return _CALLS[tree.func.id]  # type: ignore[attr-defined]
    if isinstance(tree, ast.Compare):
        return _OPERATORS[type(tree.ops[0])]
    return _OPERATORS[type(tree.op)]  # type: ignore[attr-defined]


def _operands(tree: ast.expr) -> list[ast.expr]:
    if isinstance(tree, ast.Call):
        return tree.args
    if isinstance(tree, ast.Compare):
        return [tree.left, *tree.comparators]
    if isinstance(tree, ast.BoolOp):
        return tree.values
    if isinstance(tree, ast.BinOp):
        return [tree.left, tree.right]
    return [tree.operand]  # type: ignore[attr-defined]


class _Dual(ast.NodeTransformer):
    """Exchanges min with max, and reverses orders."""

    _reversed = {ast.Lt: ast.Gt, ast.LtE: ast.GtE, ast.Gt: ast.Lt, ast.GtE: ast.LtE}

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        name = node.func.id  # type: ignore[attr-defined]
        if name == "at_most":
            node.args.reverse()
        else:
            swapped = {"min": "max", "max": "min"}.get(name, name)
            node.func = ast.Name(swapped)
        return node

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        self.generic_visit(node)
        node.ops = [self._reversed.get(type(op), type(op))() for op in node.ops]
        return node


class _Compiler:
    """The code of one rule."""

    def __init__(self) -> None:
        self.checks: list[str] = []
        self.repeats: list[str] = []
        self.lines: list[str] = []
        self.bound: set[str] = set()
        self.constants: set[str] = set()
        self.count = 0
        self.env: dict[str, Any] = {
            "ConstInt": ConstInt,
            "BOOL": DataType.BOOL,
            "TRUE": TRUE,
            "FALSE": FALSE,
            "fits": fits_int64,
            "is_float": is_float,
            "sign": _sign,
        }

    def name(self) -> str:
        self.count += 1
        return f"t{self.count}"

    def pattern(self, tree: ast.expr, path: str, root: bool = False) -> None:
        """Code that matches what lies at ``path``."""
        if isinstance(tree, ast.Name):
            letter = tree.id
            if letter in self.bound:
                self.repeats.append(f"if not r.same({letter}_, {path}): return None")
                return
            self.bound.add(letter)
            if letter[0] == "c":
                self.constants.add(letter)
                self.checks.append(f"if type({path}) is not ConstInt: return None")
                self.repeats.append(f"{letter} = {path}.value")
            self.repeats.insert(0, f"{letter}_ = {path}")
            return
        cls = _node_class(tree)
        self.env[cls.__name__] = cls
        if not root:
            self.checks.append(f"if type({path}) is not {cls.__name__}: return None")
        fields = ("left", "right") if issubclass(cls, x.BinaryExpr) else ("operand",)
        for field, operand in zip(fields, _operands(tree), strict=True):
            inner = self.name()
            self.checks.append(f"{inner} = {path}.{field}")
            if not root and cls in x.COMPARISONS:
                # Orders of floats are not total, so no rule about logic may look into them.
                self.checks.append(f"if is_float({inner}): return None")
            self.pattern(operand, inner)

    def is_number(self, tree: ast.expr) -> bool:
        """Whether a part of the result is made of constants alone."""
        if isinstance(tree, ast.Name):
            return tree.id in self.constants
        if isinstance(tree, ast.Constant):
            return type(tree.value) is int
        if isinstance(tree, (ast.Call, ast.Compare, ast.BoolOp, ast.IfExp)):
            return isinstance(tree, ast.Call) and all(map(self.is_number, tree.args))
        return all(map(self.is_number, _operands(tree)))

    def result(self, tree: ast.expr, dtype: str | None = None) -> tuple[str, bool]:
        """(name of the built part, whether it still is a bare number)."""
        if isinstance(tree, ast.Name) and tree.id not in self.constants:
            return f"{tree.id}_", False
        if isinstance(tree, ast.Constant) and type(tree.value) is bool:
            return ("TRUE" if tree.value else "FALSE"), False
        if isinstance(tree, ast.IfExp):
            return self.choice(tree, dtype), False
        if self.is_number(tree):
            if isinstance(tree, ast.Name):
                return f"{tree.id}_", False  # the constant of the pattern itself
            value = self.name()
            self.lines.append(f"{value} = {ast.unparse(tree)}")
            if not isinstance(tree, ast.Constant):
                self.lines.append(f"if not fits({value}): return None")
            return value, True
        cls = _node_class(tree)
        self.env[cls.__name__] = cls
        parts = [self.result(operand) for operand in _operands(tree)]
        made = [
            f"ConstInt({part}, {parts[1 - i][0]}.type.dtype)" if bare else part for i, (part, bare) in enumerate(parts)
        ]
        if cls in _LOGICAL:
            kind = "BOOL"
        else:
            kind = dtype or next(part for part, bare in parts if not bare) + ".type.dtype"
        node = self.name()
        self.lines.append(f"{node} = {cls.__name__}({', '.join(made)}, {kind})")
        return node, False

    def choice(self, tree: ast.IfExp, dtype: str | None) -> str:
        """``a if condition else b``: both parts are names or small trees."""
        node = self.name()
        outer, self.lines = self.lines, []
        first = self.finished(tree.body, dtype)
        then, self.lines = self.lines, []
        second = self.finished(tree.orelse, dtype)
        other, self.lines = self.lines, outer
        self.lines += [f"if {ast.unparse(tree.test)}:", *(f"    {line}" for line in then), f"    {node} = {first}"]
        self.lines += ["else:", *(f"    {line}" for line in other), f"    {node} = {second}"]
        return node

    def finished(self, tree: ast.expr, dtype: str | None) -> str:
        part, bare = self.result(tree, dtype)
        return f"ConstInt({part}, {dtype})" if bare else part


class _Questions(ast.NodeTransformer):
    """In conditions: questions go to the simplifier, about the matched expressions."""

    def __init__(self, constants: set[str]) -> None:
        self.constants = constants

    def visit_Call(self, node: ast.Call) -> ast.AST:
        name = node.func.id  # type: ignore[attr-defined]
        if name in _QUESTIONS:
            args = [
                ast.Name(a.id + "_") if isinstance(a, ast.Name) and a.id not in self.constants else a for a in node.args
            ]
            return ast.Call(ast.Attribute(ast.Name("r"), name), args, [])
        return node


def compile_rule(text: str, left: ast.expr, right: ast.expr, condition: ast.expr | None) -> Rule:
    """The function of one rule."""
    code = _Compiler()
    code.pattern(left, "n", root=True)
    cls = _node_class(left)
    if condition is not None:
        asked = ast.unparse(_Questions(code.constants).visit(condition))
        code.lines.append(f"if not ({asked}): return None")
    part = code.finished(right, "BOOL" if cls in _LOGICAL else "n.type.dtype")
    lines = [*code.checks, *code.repeats, *code.lines, f"return {part}"]
    exec("def rule(r, n):\n" + "".join(f"    {line}\n" for line in lines), code.env)
    rule: Rule = code.env["rule"]
    rule.__name__ = rule.__qualname__ = text
    return rule


Parsed = tuple[str, ast.expr, ast.expr, ast.expr | None]


def parse_rules(table: str, dual_only: bool = False) -> list[Parsed]:
    """(text, pattern, result, condition) of each line, with the duals of marked lines behind them, or only duals."""
    rules: list[Parsed] = []
    for line in table.splitlines():
        text = line.split("#")[0].strip()
        if not text:
            continue
        marked = text.startswith("*")
        for dual in (True,) if dual_only else (False, True) if marked else (False,):
            left, right = text.lstrip("* ").split("->")
            right, _, condition = right.partition(" if ") if " else " not in right else (right, "", "")
            trees: list[Any] = [ast.parse(part.strip(), mode="eval").body for part in (left, right)]
            trees.append(ast.parse(condition.strip(), mode="eval").body if condition else None)
            if dual:
                trees = [tree and _Dual().visit(tree) for tree in trees]
            rules.append((text + (" (dual)" if dual else ""), trees[0], trees[1], trees[2]))
    return rules


_Kinds = tuple[type | None, ...]
_SAME: _Kinds = (None, None)  # the same thing twice


def _kinds(pattern: ast.expr) -> _Kinds:
    """The classes that a pattern demands of the operands; None for a letter."""
    parts = _operands(pattern)
    if len(parts) == 2 and ast.dump(parts[0]) == ast.dump(parts[1]):
        return _SAME
    return tuple(map(_kind, parts))


def _kind(tree: ast.expr) -> type | None:
    if isinstance(tree, ast.Name):
        return ConstInt if tree.id[0] == "c" else None
    return _node_class(tree)


class RuleSet:
    """The rules of all node classes; each is compiled when first needed."""

    def __init__(self, tables: dict[type, str], duals: dict[type, str]) -> None:
        self._tables = tables
        self._duals = duals  # tables of which only the duals hold
        self._rules: dict[type, list[tuple[_Kinds, Any]]] = {}
        self._candidates: dict[tuple[type, ...], tuple[Rule, ...]] = {}

    def candidates(self, node: Any) -> tuple[Rule, ...]:
        """The rules whose outer two levels fit the classes of ``node`` and its children, in order."""
        cls = type(node)
        key: tuple[type, ...]
        key = (cls, type(node.operand)) if cls in UNARY else (cls, type(node.left), type(node.right))
        found = self._candidates.get(key)
        if found is None:
            found = self._candidates[key] = tuple(self._select(key))
        return found

    def _select(self, key: tuple[type, ...]) -> list[Rule]:
        if key[0] not in self._tables and key[0] not in self._duals:
            return []
        rules = self._rules.get(key[0])
        if rules is None:
            rules = self._rules[key[0]] = [
                (_kinds(left), [text, left, right, condition]) for text, left, right, condition in self.parsed(key[0])
            ]
        found = []
        for kinds, source in rules:
            if kinds is _SAME:  # different classes are never the same
                fits = key[1] is key[2]
            else:
                fits = all(kind is None or kind is have for kind, have in zip(kinds, key[1:], strict=True))
            if fits:
                if len(source) == 4:
                    source[:] = [compile_rule(*source)]
                found.append(source[0])
        return found

    def classes(self) -> tuple[type, ...]:
        """The node classes that have rules."""
        return (*self._tables, *self._duals)

    def parsed(self, cls: type) -> list[Parsed]:
        """The rules of a node class, in order."""
        return parse_rules(self._tables[cls]) if cls in self._tables else parse_rules(self._duals[cls], True)


__all__ = ["Rule", "RuleSet", "compile_rule", "parse_rules"]
