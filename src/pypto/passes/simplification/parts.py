"""A function taken apart in one walk over its statements: what they define, and the expressions they hold."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from ...ir.attrs import attr_expressions
from ...ir.generated import make_function
from ...ir.node import Kind, Role
from ...ir.program import Function
from ...ir.stmt import AssignStmt, IfStmt, InlineStmt, ScopeStmt, Stmt
from ...ir.traversal import NODE_CLASSES, NODE_FIELDS, attrs_expressions, carried_fields, field_class_name
from ...ir.type_fields import PLAIN_TYPES, is_closed, type_expressions


class FunctionParts:
    """What the statements of a function define and hold, in no particular order."""

    def __init__(self, function: Function) -> None:
        self.function = function
        self.assignments: list[AssignStmt] = []
        self.branches: list[IfStmt] = []  # those with results
        self.has_text = False  # whether there is code as text, which may name any variable
        # What is defined, once for each definition.
        self.defined: list[Any] = list(function.params)
        # What is used, apart from the types of what is defined: one item for each operand.
        self.used: list[Any] = [e for value in function.attrs.values() for e in attr_expressions(value)]
        for kind in function.return_types:
            self.used += type_expressions(kind)
        defined, used = self.defined, self.used
        stack: list[Any] = [function.body]
        while stack:
            stmt = stack.pop()
            cls = type(stmt)
            _TAKE_APART[cls](stmt, stack, defined, used)
            if cls is AssignStmt:
                self.assignments.append(stmt)
            elif cls is IfStmt:
                if stmt.return_vars:
                    self.branches.append(stmt)
            elif cls is InlineStmt:
                self.has_text = True

    def reassigned(self) -> set[Any]:
        """The variables that are defined more than once, or in more than one way."""
        seen = set(self.defined)
        if len(seen) == len(self.defined):
            return set()
        seen.clear()
        twice = set()
        for var in self.defined:
            if var in seen:
                twice.add(var)
            seen.add(var)
        return twice

    def roots(self) -> list[Any]:
        """All that is used, with the expressions in the types of what is defined."""
        return [*self.used, *types_of(self.defined)]


def types_of(variables: Iterable[Any]) -> list[Any]:
    """The expressions in the types of variables, of those types that hold more than constants."""
    found: list[Any] = []
    for var in variables:
        kind = var.type
        if type(kind) not in PLAIN_TYPES and not is_closed(kind):
            found += type_expressions(kind)
    return found


def _compile(cls: type[Any]) -> Callable[[Any, list[Any], list[Any], list[Any]], None]:
    """Code that puts the statements in a statement on a stack, and what it defines and uses into lists."""
    lines = []
    carried = carried_fields(cls)
    for info in NODE_FIELDS[cls]:
        value = f"stmt.{info.name}"
        if info.kind is Kind.ATTRS:
            lines += [f"if {value}: used += attrs_expressions({value})"]
            continue
        if info.kind not in (Kind.NODE, Kind.OPTIONAL, Kind.LIST):
            continue
        inside = field_class_name(cls, info.name) == "Stmt"
        target = "stack" if inside else "defined" if info.role is Role.DEFINITION else "used"
        if info.kind is Kind.LIST:
            lines += [f"if {value}: {target} += {value}"]
            if info.name in carried:
                lines += [f"for arg in {value}: used.append(arg.initValue)"]
        elif info.kind is Kind.OPTIONAL:
            lines += [f"if {value} is not None: {target}.append({value})"]
        else:
            lines += [f"{target}.append({value})"]
    if issubclass(cls, ScopeStmt):
        lines += ["if 'task_id_var' in stmt.attrs: defined.append(stmt.attrs['task_id_var'])"]
    env: dict[str, Any] = {"attrs_expressions": attrs_expressions}
    return make_function("take_apart", "stmt, stack, defined, used", lines or ["return"], env)  # type: ignore[no-any-return]


_TAKE_APART = {cls: _compile(cls) for cls in NODE_CLASSES if issubclass(cls, Stmt)}

__all__ = ["FunctionParts", "types_of"]
