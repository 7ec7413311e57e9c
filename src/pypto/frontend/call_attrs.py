"""``attrs={...}`` on calls and functions, read from syntax; dump tags."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any

from ..ir.attrs import VAR_LIST_KEYS, normalize_attr
from ..ir.dtype import BY_NAME, DataType
from ..ir.enums import ArgDirection, MemorySpace, PadValue, PipeType, SplitMode, TensorLayout, TileLayout
from ..ir.expr import Expr, Var
from ..ir.node import FrozenDict, FrozenList
from .closure import MISSING, dotted
from .subscripts import Subscripts

DIRECTIONS = {
    "input": ArgDirection.Input,
    "output": ArgDirection.Output,
    "output_existing": ArgDirection.OutputExisting,
    "inout": ArgDirection.InOut,
    "no_dep": ArgDirection.NoDep,
    "scalar": ArgDirection.Scalar,
}
_ENUMS: dict[str, Any] = {
    "Mem": MemorySpace,
    "MemorySpace": MemorySpace,
    "TensorLayout": TensorLayout,
    "TileLayout": TileLayout,
    "PadValue": PadValue,
    "SplitMode": SplitMode,
    "PipeType": PipeType,
}
_NOT_WRITABLE = ("manual_dep_edges", "dummy_task")


class CallAttributes(Subscripts):
    """Readers of attribute dictionaries."""

    def attr_items(self, node: ast.expr, what: str) -> list[tuple[str, ast.expr]]:
        """The (key, value) syntax of a dict literal with string-literal keys."""
        if type(node) is not ast.Dict:
            self.fail(f"{what} must be a dict literal", node)
        items = []
        for key, value in zip(node.keys, node.values, strict=True):
            if key is None or type(key) is not ast.Constant or not isinstance(key.value, str):
                self.fail(f"{what} must use string-literal keys", key or node)
            items.append((key.value, value))
        return items

    def operation_attrs(self, node: ast.expr) -> FrozenDict[str, Any]:
        """``attrs={...}`` of an operation call: the printer's round-trip surface."""
        attrs = {}
        for key, value in self.attr_items(node, "attrs="):
            if key in _NOT_WRITABLE:
                self.fail(f"'{key}' is not a writable attr", value)
            attrs[key] = self.attr_value(key, value)
        return FrozenDict(attrs)

    def function_call_attrs(
        self, node: ast.expr, args: Sequence[Expr], attrs: dict[str, Any], submit: bool = False
    ) -> dict[str, Any]:
        """``attrs={...}`` of a function call or launch, merged into ``attrs``."""
        for key, value in self.attr_items(node, "attrs="):
            if key == "arg_directions":
                attrs[key] = self._arg_directions(value, len(args))
            elif key == "dump_vars":
                attrs[key] = self.tensor_arguments(value, args, "dump_vars", "call")
            elif key == "manual_dep_edges":
                self.fail(
                    "attrs={'manual_dep_edges': ...} is not accepted",
                    value,
                    "Dependencies belong to a launch: pl.submit(self.f, ..., deps=[...])",
                )
            else:
                attrs[key] = self.attr_value(key, value)
        return attrs

    def _arg_directions(self, node: ast.expr, count: int) -> FrozenList[ArgDirection]:
        if type(node) is not ast.List:
            self.fail("attrs['arg_directions'] must be a list literal", node)
        result: list[ArgDirection] = []
        for element in node.elts:
            direction = self._direction(element)
            if direction is None:
                self.fail("attrs['arg_directions'] must contain 'pl.adir.<name>' references only", element)
            result.append(direction)
        if result and len(result) != count:
            self.fail(
                f"attrs['arg_directions'] has {len(result)} entries: it must match positional arg count {count}", node
            )
        return FrozenList(result)

    def _direction(self, node: ast.expr) -> ArgDirection | None:
        parts = dotted(node)
        if parts is None or len(parts) < 2 or parts[-2] != "adir":
            return None
        found = DIRECTIONS.get(parts[-1])
        if found is None:
            self.fail(
                f"Unknown call-site direction marker 'pl.adir.{parts[-1]}'", node, f"Valid: {', '.join(DIRECTIONS)}"
            )
        return found

    def tensor_arguments(self, node: ast.expr, args: Sequence[Expr], what: str, owner: str) -> FrozenList[Var]:
        """A list of tensor variables that are arguments, in argument order, without duplicates."""
        if type(node) not in (ast.List, ast.Tuple):
            self.type_error(f"{what}= must be a list of tensor variables", node)
        wanted = []
        for element in node.elts:  # type: ignore[attr-defined]
            var = self.scopes.lookup(element.id) if type(element) is ast.Name else None
            if not isinstance(var, Var) or not hasattr(var.type, "shape"):
                self.type_error(f"{what}= entries must be tensor variables", element)
            if not any(var is arg for arg in args):
                self.type_error(f"{what}= entry '{element.id}' is not an argument of this {owner}", element)
            wanted.append(var)
        chosen: list[Var] = []
        for arg in args:
            if any(arg is var for var in wanted) and not any(arg is var for var in chosen):
                chosen.append(arg)  # type: ignore[arg-type]
        return FrozenList(chosen)

    def with_dump_tags(self, attrs: dict[str, Any], args: Sequence[Expr]) -> dict[str, Any]:
        """Add forward-sticky dump tags that are arguments of this call."""
        if not self.dump_tags:
            return attrs
        tagged = [*attrs.get("dump_vars", ()), *self.dump_tags]
        chosen: list[Expr] = []
        for arg in args:
            if any(arg is var for var in tagged) and not any(arg is var for var in chosen):
                chosen.append(arg)
        if chosen:
            attrs["dump_vars"] = FrozenList(chosen)
        return attrs

    def attr_value(self, key: str, node: ast.expr) -> Any:
        """One attribute value from syntax: plain data, a dtype or enum, a list of one kind, or an IR expression."""
        kind = type(node)
        if kind is ast.Constant:
            value = node.value  # type: ignore[attr-defined]
            if isinstance(value, (bool, int, float, str)):
                return normalize_attr(key, value)
        if kind is ast.UnaryOp and type(node.op) is ast.USub and type(node.operand) is ast.Constant:  # type: ignore[attr-defined]
            negated: Any = node.operand.value  # type: ignore[attr-defined]
            return normalize_attr(key, -negated)
        if kind in (ast.List, ast.Tuple):
            return self._attr_list(key, node)
        if kind is ast.Attribute:
            value = self._attr_member(node)
            if value is not MISSING:
                return value
        if kind is ast.Name and self.scopes.lookup(node.id) is None:  # type: ignore[attr-defined]
            value = self.closure.get(node.id)  # type: ignore[attr-defined]
            if isinstance(value, (bool, int, float, str, DataType)):
                return normalize_attr(key, value)
        return normalize_attr(key, self.expr(node))

    def _attr_member(self, node: ast.expr) -> Any:
        parts = dotted(node)
        if parts is None:
            return MISSING
        if parts[-1] in BY_NAME and len(parts) == 2:
            return BY_NAME[parts[-1]]
        if len(parts) >= 2:
            direction = self._direction(node)
            if direction is not None:
                return direction
            enum = _ENUMS.get(parts[-2])
            if enum is not None and parts[-1] in enum.__members__:
                return normalize_attr("", enum[parts[-1]])
        return MISSING

    def _attr_list(self, key: str, node: Any) -> Any:
        elements = node.elts
        if not elements:
            return FrozenList()
        if all(type(e) is ast.Constant and type(e.value) is int for e in elements):
            return FrozenList([e.value for e in elements])
        if all(type(e) is ast.Name for e in elements):
            return FrozenList([self.expr(e) for e in elements])
        directions = [self._direction(e) for e in elements]
        if all(d is not None for d in directions):
            return FrozenList(directions)
        self.fail(f"attribute '{key}': list elements are mixed or of an unsupported kind", node)

    def function_attrs(self, node: ast.Call) -> dict[str, Any]:
        """The dict of one ``pl.func_attr({...})`` call."""
        if len(node.args) != 1 or node.keywords:
            self.fail("pl.func_attr() takes exactly one positional dict argument", node)
        if type(node.args[0]) is not ast.Dict:
            self.fail("pl.func_attr() argument must be a dict literal", node.args[0])
        attrs: dict[str, Any] = {}
        for key_node, value in zip(node.args[0].keys, node.args[0].values, strict=True):
            if type(key_node) is not ast.Constant or not isinstance(key_node.value, str):
                self.fail("pl.func_attr() key must be a string literal", key_node or node)
            key = key_node.value
            if key in ("auto_scope", "external_source"):
                self.fail(f"'{key}' cannot be set with pl.func_attr(): it is a decorator argument", key_node)
            if key in attrs:
                self.fail(f"Duplicate function attribute '{key}'", key_node)
            if key == "split":
                attrs.update(self._split_attr(value))
                continue
            found = self.attr_value(key, value)
            if isinstance(found, FrozenList) and found and type(found[0]) is int and key != "arg_direction_overrides":
                self.fail(f"Unsupported list element type for key: {key}", value)
            if key in VAR_LIST_KEYS and not isinstance(found, FrozenList):
                self.fail(f"attribute '{key}' must be a list of variables", value)
            attrs[key] = found
        return attrs

    def _split_attr(self, node: ast.expr) -> dict[str, Any]:
        parts = dotted(node)
        if parts is None or len(parts) < 2 or parts[-2] != "SplitMode" or parts[-1] not in SplitMode.__members__:
            self.fail("function attribute 'split' must be pl.SplitMode.<mode>", node)
        mode = SplitMode[parts[-1]]
        return {} if mode is SplitMode.NONE else {"split": mode.value}
