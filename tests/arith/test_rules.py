"""Every rewrite rule on its own: what it makes has the value of what it matched."""

from __future__ import annotations

import ast
import random
from typing import Any

import pytest

from pypto.arith.rewrite import RULES
from pypto.arith.rewrite.compiler import _LOGICAL, _node_class, _operands, compile_rule
from pypto.ir import expr as x
from pypto.ir.dtype import DataType
from pypto.ir.expr import ConstInt

from .expressions import Undefined, const, value_of, var

_CASES = [(cls, rule) for cls in RULES.classes() for rule in RULES.parsed(cls)]


class Oracle:
    """Answers what rules ask from the values of the variables: a rule must hold whenever its condition does."""

    def __init__(self, values: dict[Any, int]) -> None:
        self.values = values

    def of(self, e: Any) -> int:
        return value_of(e, self.values)

    def same(self, a: Any, b: Any) -> bool:
        return a is b or (type(a) is ConstInt and type(b) is ConstInt and a.value == b.value)

    def positive(self, e: Any) -> bool:
        return self.of(e) >= 1

    def nonzero(self, e: Any) -> bool:
        return self.of(e) != 0

    def multiple(self, e: Any, c: int) -> bool:
        return c != 0 and self.of(e) % c == 0

    def within(self, e: Any, c: int) -> bool:
        return 0 <= self.of(e) < c

    def at_most(self, a: Any, b: Any) -> bool:
        return self.of(a) <= self.of(b)

    def symbolic(self, e: Any) -> bool:
        return type(e) is not ConstInt


def _build(tree: ast.expr, letters: dict[str, Any], logical: bool) -> Any:
    if isinstance(tree, ast.Name):
        if tree.id not in letters:
            number = tree.id[0] == "c"
            letters[tree.id] = (
                const(random.choice([-12, -6, -4, -3, -2, -1, 0, 1, 2, 3, 4, 6, 8, 12]))
                if number
                else var(tree.id, DataType.BOOL if logical else DataType.INT64)
            )
        return letters[tree.id]
    cls = _node_class(tree)
    inner = logical and cls not in x.COMPARISONS
    parts = [_build(part, letters, inner) for part in _operands(tree)]
    return cls(*parts, DataType.BOOL if cls in _LOGICAL else DataType.INT64)


@pytest.mark.parametrize(("cls", "rule"), _CASES, ids=[f"{cls.__name__}: {rule[0]}" for cls, rule in _CASES])
def test_rule_keeps_the_value(cls: type, rule: Any) -> None:
    random.seed(rule[0])
    apply = compile_rule(*rule)
    fired = 0
    for _ in range(3000):
        letters: dict[str, Any] = {}
        node = _build(rule[1], letters, cls in (x.And, x.Or, x.Not))
        values = {
            e: random.randrange(2) if e.type.dtype is DataType.BOOL else random.randint(-13, 13)
            for e in letters.values()
            if type(e) is x.Var
        }
        try:
            before = value_of(node, values)
        except Undefined:
            continue
        result = apply(Oracle(values), node)
        if result is None:
            continue
        fired += 1
        assert result.type.dtype is node.type.dtype
        assert value_of(result, values) == before, {v.name_hint: n for v, n in values.items()}
        if fired >= 150:
            break
    assert fired >= 20, "the rule hardly ever fires"
