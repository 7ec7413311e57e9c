"""Functions and programs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from .attrs import normalize_attrs
from .enums import FunctionType, Level, ParamDirection, Role, SplitMode
from .expr import GlobalVar, Var
from .node import (
    FrozenDict,
    FrozenList,
    IRNode,
    Kind,
    attribute,
    checked_list,
    definition,
    ignored,
    use,
    wrong_kind,
)
from .span import UNKNOWN_SPAN, Span
from .stmt import Stmt
from .type import Type

# What a function type implies; an explicit level or role must agree.
DERIVED_PLACE: dict[FunctionType, tuple[Level, Role]] = {
    FunctionType.Orchestration: (Level.CHIP, Role.Orchestrator),
    FunctionType.Graph: (Level.CHIP, Role.Orchestrator),
    FunctionType.InCore: (Level.CHIP_DIE, Role.SubWorker),
    FunctionType.AIC: (Level.AIC, Role.SubWorker),
    FunctionType.AIV: (Level.AIV, Role.SubWorker),
    FunctionType.Group: (Level.CORE_GROUP, Role.SubWorker),
}


def derive_place(func_type: FunctionType, level: Level | None, role: Role | None) -> tuple[Level | None, Role | None]:
    """Level and role of a function; ``ValueError`` when an explicit one disagrees with the type."""
    derived = DERIVED_PLACE.get(func_type)
    if derived is None:
        return level, role
    if level is not None and level is not derived[0]:
        raise ValueError(
            f"FunctionType.{func_type.name} implies level=Level.{derived[0].name}, "
            f"but explicit level=Level.{level.name} was provided"
        )
    if role is not None and role is not derived[1]:
        raise ValueError(
            f"FunctionType.{func_type.name} implies role=Role.{derived[1].name}, "
            f"but explicit role=Role.{role.name} was provided"
        )
    return derived


class Function(IRNode):
    """A function: typed parameters with directions, result types, a body.

    ``params`` may be given as ``Var`` (direction ``In``) or ``(Var, ParamDirection)``.
    """

    __slots__ = ()
    params: FrozenList[Var] = definition(Kind.LIST)
    param_directions: FrozenList[ParamDirection] = attribute()
    func_type: FunctionType = attribute()
    level: Level | None = attribute()
    role: Role | None = attribute()
    attrs: FrozenDict[str, Any] = attribute(Kind.ATTRS)
    requires_runtime_binding: bool = attribute()
    return_types: FrozenList[Type] = attribute(Kind.TYPES)
    body: Stmt = use()
    name: str = ignored()

    def __init__(
        self,
        name: str,
        params: Sequence[Any],
        return_types: Sequence[Type],
        body: Stmt,
        span: Span = UNKNOWN_SPAN,
        type: FunctionType = FunctionType.Opaque,
        level: Level | None = None,
        role: Role | None = None,
        attrs: Any = None,
        requires_runtime_binding: bool = False,
    ) -> None:
        variables, directions = _split_params(params)
        for field, value, wanted in (("name", name, str), ("body", body, Stmt), ("type", type, FunctionType)):
            if not isinstance(value, wanted):
                wrong_kind("Function", field, wanted, value)
        level, role = derive_place(type, level, role)
        values = {
            "name": name,
            "params": FrozenList(variables),
            "param_directions": FrozenList(directions),
            "func_type": type,
            "level": level,
            "role": role,
            "attrs": normalize_attrs(attrs),
            "requires_runtime_binding": bool(requires_runtime_binding),
            "return_types": checked_list(return_types, Type, "Function", "return_types"),
            "body": body,
            "span": span,
        }
        for info in Function.node_fields:
            info.setter(self, values[info.name])

    @property
    def split(self) -> SplitMode | None:
        """The split mode, or None when absent or NONE."""
        value = self.attrs.get("split", 0)
        return SplitMode(value) if value else None


def _split_params(params: Sequence[Any]) -> tuple[list[Var], list[ParamDirection]]:
    variables: list[Var] = []
    directions: list[ParamDirection] = []
    for item in params:
        variable, direction = item, ParamDirection.In
        if isinstance(item, (tuple, list)):
            if len(item) != 2:
                raise TypeError(
                    f"Function: a parameter is a Var or a (Var, ParamDirection) pair, got {len(item)} items"
                )
            variable, direction = item
        if not isinstance(variable, Var):
            wrong_kind("Function", "each of params", Var, variable)
        if not isinstance(direction, ParamDirection):
            wrong_kind("Function", "the direction of a parameter", ParamDirection, direction)
        variables.append(variable)
        directions.append(direction)
    return variables, directions


class Program(IRNode):
    """Functions by name. ``functions`` maps ``GlobalVar`` to ``Function``, ordered by name."""

    __slots__ = ()
    functions: FrozenDict[GlobalVar, Function] = use(Kind.MAP)
    name: str = ignored()

    def __init__(self, functions: Iterable[Function], name: str = "", span: Span = UNKNOWN_SPAN) -> None:
        items = list(functions.values()) if isinstance(functions, dict) else list(functions)
        for item in items:
            if not isinstance(item, Function):
                wrong_kind("Program", "each of functions", Function, item)
        items.sort(key=lambda f: f.name.encode())
        for first, second in zip(items, items[1:], strict=False):
            if first.name == second.name:
                raise ValueError(f'Duplicate function name "{first.name}"')
        values = {"functions": FrozenDict({GlobalVar(f.name): f for f in items}), "name": name, "span": span}
        for info in Program.node_fields:
            info.setter(self, values[info.name])

    def get_function(self, name: str) -> Function | None:
        """The function of this name, or None."""
        return self.functions.get(GlobalVar(name))

    __getitem__ = get_function

    def get_global_var(self, name: str) -> GlobalVar | None:
        """The GlobalVar of this name, or None."""
        return next((g for g in self.functions if g.name == name), None)

    def with_functions(self, functions: Iterable[Function]) -> Program:
        """This program with other functions; itself when they are the same objects."""
        items = list(functions)
        if len(items) == len(self.functions) and all(
            a is b for a, b in zip(items, self.functions.values(), strict=True)
        ):
            return self
        return Program(items, self.name, self.span)


__all__ = ["DERIVED_PLACE", "Function", "Program", "derive_place"]
