"""``with`` scopes and the loops that are scopes: ``pl.at``, clusters, runtime scopes, SPMD, split regions."""

from __future__ import annotations

import ast
import keyword as python_keywords
from typing import Any

from ..ir.enums import FunctionType, Level, Role, SplitMode
from ..ir.expr import Var
from ..ir.node import FrozenList
from ..ir.stmt import (
    ClusterScopeStmt,
    HierarchyScopeStmt,
    InCoreScopeStmt,
    RuntimeScopeStmt,
    Stmt,
)
from ..ir.type import TensorType
from .base import Construct
from .closure import dotted
from .control_flow import ControlFlow
from .errors import UnsupportedFeatureError, did_you_mean

_HOST_OR_ABOVE = (Level.HOST, Level.CLUSTER_0, Level.CLUSTER_1, Level.CLUSTER_2, Level.GLOBAL)
_KERNEL_TYPES = (FunctionType.InCore, FunctionType.AIC, FunctionType.AIV)
_AT_KEYWORDS = (
    "level",
    "role",
    "optimizations",
    "deps",
    "no_dep_args",
    "dumps",
    "allow_early_resolve",
    "name_hint",
    "windowize",
    "attrs",
)


class Optimizations:
    """Entries of ``optimizations=[...]``."""

    __slots__ = ("given", "slot_entry", "slot_num", "split")

    def __init__(self) -> None:
        self.given = False
        self.slot_entry = False
        self.split: SplitMode | None = None
        self.slot_num: int | None = None


class Scopes(ControlFlow):
    """Scope syntax."""

    def stmt_with(self, node: ast.With) -> None:
        if len(node.items) != 1:
            self.fail("Only single context manager supported", node, "Nest the with statements")
        item = node.items[0]
        call = item.context_expr
        parts = dotted(call.func) if type(call) is ast.Call else None
        name = self._scope_name(parts)
        handler = {
            "at": self._at,
            "cluster": self._cluster,
            "scope": self._runtime_scope,
            "manual_scope": self._runtime_scope,
            "spmd": self._spmd_with,
        }.get(name)
        if handler is None:
            hint = did_you_mean(name, ("at", "cluster", "scope", "manual_scope", "spmd")) if name else None
            self.fail(
                f"Unsupported context manager in with statement: {ast.unparse(call)}",
                call,
                hint or "Use pl.at, pl.cluster, pl.scope, pl.manual_scope or pl.spmd",
                UnsupportedFeatureError,
            )
        assert type(call) is ast.Call
        if item.optional_vars is not None:
            if name not in ("at", "spmd"):
                self.fail("the `as` clause only applies to pl.at and pl.spmd", item.optional_vars)
            if type(item.optional_vars) is not ast.Name:
                self.fail(f"`as` target on `with pl.{name}(...)` must be a plain variable name", item.optional_vars)
        handler(node, call, item.optional_vars)

    def _scope_name(self, parts: tuple[str, ...] | None) -> str:
        if parts is None:
            return ""
        if len(parts) == 2 and self.closure.alias(parts[0]) == "pl":
            return parts[1]
        if len(parts) == 1:
            value = self.closure.get(parts[0])
            if getattr(value, "__module__", "").startswith("pypto.language"):
                return str(value.__name__)
        return ""

    def _scoped_block(self, statements: list[ast.stmt], kind: str, node: ast.stmt) -> list[Stmt]:
        """The statements of a scope body; names leak."""
        construct = Construct(kind, node)
        self.constructs.append(construct)
        self.scopes.push()
        try:
            with self.collecting() as stmts:
                self.block(statements)
        finally:
            self.constructs.pop()
            self.scopes.pop(leak=True)
        if kind == "runtime" and construct.yield_names is not None:
            outer = next((c for c in reversed(self.constructs) if c.kind != "runtime"), None)
            if outer is not None:
                outer.yield_names, outer.yield_types = construct.yield_names, construct.yield_types
                outer.yield_node = construct.yield_node
        return stmts

    # --- keyword values -----------------------------------------------------------------------------------------------

    def _keywords(self, call: ast.Call, known: tuple[str, ...], unknown: str, star: str) -> dict[str, ast.expr]:
        found: dict[str, ast.expr] = {}
        for keyword in call.keywords:
            if keyword.arg is None:
                self.fail(star, call)
            if keyword.arg not in known:
                self.fail(unknown.format(keyword.arg), call, did_you_mean(keyword.arg, known))
            found[keyword.arg] = keyword.value
        return found

    def _name_hint(self, node: ast.expr | None) -> str:
        if node is None:
            return ""
        if type(node) is not ast.Constant or not isinstance(node.value, str):
            self.fail("'name_hint' argument must be a string literal", node)
        text = node.value
        if text and (not text.isidentifier() or python_keywords.iskeyword(text)):
            self.fail(f"'name_hint' must be a valid non-keyword identifier, got {text!r}", node)
        return text

    def _enum_member(self, node: ast.expr, enum: Any, what: str) -> Any:
        parts = dotted(node)
        if parts is not None:
            if len(parts) >= 2 and parts[-2] == what and parts[-1] in enum.__members__:
                return enum[parts[-1]]
            value = self.closure.attribute_chain(parts)
            if isinstance(value, enum):
                return value
        known = ", ".join(enum.__members__)
        name = parts[-1] if parts else ast.unparse(node)
        self.fail(f"Unknown {what} value: {name}", node, did_you_mean(name, enum.__members__) or f"Valid: {known}")

    def _tensor_list(self, node: ast.expr, what: str) -> FrozenList[Var]:
        if type(node) not in (ast.List, ast.Tuple):
            self.type_error(f"pl.at({what}=...) must be a list literal", node)
        found: list[Var] = []
        for element in node.elts:  # type: ignore[attr-defined]
            if type(element) is not ast.Name:
                self.type_error(f"pl.at({what}=...) entries must be bare tensor names", element)
            var = self.scopes.lookup(element.id)
            if var is None:
                self.type_error(f"pl.at({what}=...) references unknown name '{element.id}'", element)
            if not isinstance(var, Var) or not isinstance(var.type, TensorType):
                self.type_error(f"pl.at({what}=...): '{element.id}' is not a tensor", element)
            if any(var is other for other in found):
                self.type_error(f"pl.at({what}=...) names '{element.id}' more than once", element)
            found.append(var)
        return FrozenList(found)

    def _optimizations(self, node: ast.expr | None, owner: str) -> Optimizations:
        result = Optimizations()
        if node is None:
            return result
        if type(node) is not ast.List:
            self.fail(f"{owner}(optimizations=...) must be a list literal", node)
        result.given = bool(node.elts)
        for entry in node.elts:
            parts = dotted(entry.func) if type(entry) is ast.Call else None
            name = parts[-1] if parts else ""
            if name == "split":
                self._split_entry(entry, result)  # type: ignore[arg-type]
            elif name == "cross_core_slot":
                self._slot_entry(entry, result)  # type: ignore[arg-type]
            else:
                self.fail(
                    f"Unsupported entry in {owner}(optimizations=[...]): {ast.unparse(entry)}",
                    entry,
                    "Use pl.split(mode) or pl.cross_core_slot(slot_num=N)",
                )
        return result

    def _split_entry(self, call: ast.Call, result: Optimizations) -> None:
        if result.split is not None:
            self.fail("Duplicate 'pl.split(...)' entry", call)
        modes = list(call.args) + [k.value for k in call.keywords if k.arg == "mode"]
        if len(modes) != 1:
            self.fail("pl.split(...) takes exactly 1 positional argument", call)
        result.split = self._enum_member(modes[0], SplitMode, "SplitMode")
        for keyword in call.keywords:
            if keyword.arg == "slot_num":
                self.warn(
                    "pl.split(..., slot_num=N) is deprecated: use pl.cross_core_slot(slot_num=N)",
                    call,
                    DeprecationWarning,
                    in_texts=True,
                )
                self._set_slot(self._slot_value(keyword.value), call, result)
            elif keyword.arg != "mode":
                self.fail(f"pl.split(...) got an unexpected keyword argument '{keyword.arg}'", call)

    def _slot_entry(self, call: ast.Call, result: Optimizations) -> None:
        if call.args:
            self.fail("pl.cross_core_slot(...) takes no positional arguments", call)
        values = [k.value for k in call.keywords if k.arg == "slot_num"]
        if len(values) != 1 or len(call.keywords) != 1:
            self.fail("pl.cross_core_slot(...) requires the slot_num= keyword", call)
        if result.slot_entry:
            self.fail("Duplicate 'pl.cross_core_slot(...)' entry", call)
        result.slot_entry = True
        self._set_slot(self._slot_value(values[0]), call, result)

    def _slot_value(self, node: ast.expr) -> int:
        value = node.value if type(node) is ast.Constant else self.evaluate(node)
        if type(value) is not int:
            self.fail("slot_num must be an integer literal", node)
        if value <= 0:
            self.fail(f"slot_num must be positive, got {value}", node)
        return value

    def _set_slot(self, value: int, call: ast.Call, result: Optimizations) -> None:
        if result.slot_num is not None:
            self.fail("optimizations= sets the cross-core slot count twice", call)
        result.slot_num = value

    def _written_attrs(self, attrs: dict[str, Any], keywords: dict[str, ast.expr]) -> None:
        """``attrs={...}`` on a scope: the printer's surface for attributes without a keyword of their own."""
        if "attrs" in keywords:
            for key, value in self.attr_items(keywords["attrs"], "attrs="):
                attrs[key] = self.attr_value(key, value)

    def _sticky_dumps(self, attrs: dict[str, Any]) -> None:
        """Forward-sticky dump tags join ``dump_vars`` at scope entry."""
        if self.dump_tags:
            known = list(attrs.get("dump_vars", ()))
            known += [tag for tag in self.dump_tags if not any(tag is var for var in known)]
            attrs["dump_vars"] = FrozenList(known)

    # --- pl.at --------------------------------------------------------------------------------------------------------

    def _at(self, node: ast.With, call: ast.Call, as_name: ast.Name | None) -> None:
        keywords = self._keywords(
            call, _AT_KEYWORDS, "Unknown keyword argument '{}' in pl.at()", "Unsupported **kwargs in pl.at()"
        )
        if len(call.args) > 2:
            self.fail("pl.at() takes at most 2 positional arguments", call)
        for name, value in zip(("level", "role"), call.args, strict=False):
            if name in keywords:
                self.fail(f"pl.at() got multiple values for argument '{name}'", call)
            keywords[name] = value
        if "level" not in keywords:
            self.fail("pl.at() requires a level argument", call, "Write pl.at(level=pl.Level.CORE_GROUP)")
        level = self._enum_member(keywords["level"], Level, "Level")
        role_node = keywords.get("role")
        role = None
        if role_node is not None and not (type(role_node) is ast.Constant and role_node.value is None):
            role = self._enum_member(role_node, Role, "Role")
        name_hint = self._name_hint(keywords.get("name_hint"))
        optimizations = self._optimizations(keywords.get("optimizations"), "pl.at")
        core = level is Level.CORE_GROUP
        if core and role is not None:
            self.fail("role= is not supported with level=pl.Level.CORE_GROUP", call)
        if not core and role is Role.SubWorker and level in _HOST_OR_ABOVE:
            self.fail(
                "Inline 'with pl.at(level>=HOST, role=pl.Role.SubWorker)' is not supported",
                call,
                "Declare a function with that level and role instead",
            )
        if not core and (optimizations.split is not None or optimizations.slot_num is not None):
            self.fail("optimizations= is only supported with level=pl.Level.CORE_GROUP", call)
        attrs: dict[str, Any] = {}
        if "deps" in keywords:
            deps = self.dependencies(keywords["deps"])
            if deps:
                attrs["manual_dep_edges"] = deps
        if "no_dep_args" in keywords:
            found = self._tensor_list(keywords["no_dep_args"], "no_dep_args")
            if found:
                attrs["arg_direction_overrides_vars"] = found
        if "dumps" in keywords:
            found = self._tensor_list(keywords["dumps"], "dumps")
            if found:
                attrs["dump_vars"] = found
        self._sticky_dumps(attrs)
        self._task_id(attrs, as_name, node)
        if self.bool_literal(keywords.get("allow_early_resolve"), "allow_early_resolve"):
            attrs["allow_early_resolve"] = True
        if optimizations.slot_num is not None:
            attrs["slot_num"] = optimizations.slot_num
        if self.bool_literal(keywords.get("windowize"), "windowize"):
            if not core:
                self.fail("windowize=True is only supported with level=pl.Level.CORE_GROUP", call)
            attrs["windowize"] = True
        self._written_attrs(attrs, keywords)
        comments = self.comments.take_pending()
        span = self.span(node)
        self._open_split.append(optimizations.split is not None if core else None)
        try:
            stmts = self._scoped_block(node.body, "incore" if core else "scope", node)
        finally:
            self._open_split.pop()
        self.comments._pending = [*comments, *self.comments._pending]
        body = self.body_of(stmts, span)
        if core:
            split = optimizations.split or SplitMode.NONE
            self.emit(InCoreScopeStmt(split, name_hint, body=body, span=span, attrs=attrs))
        else:
            self.emit(HierarchyScopeStmt(level, role, name_hint, body=body, span=span, attrs=attrs))

    def _task_id(self, attrs: dict[str, Any], as_name: ast.Name | None, node: ast.stmt) -> None:
        if as_name is not None:
            attrs["task_id_var"] = self.task_id_target(as_name.id, as_name, self.span(node))

    # --- cluster and runtime scopes -----------------------------------------------------------------------------------

    def _cluster(self, node: ast.With, call: ast.Call, _as: Any) -> None:
        if call.args:
            self.fail("pl.cluster() does not accept positional arguments", call)
        keywords = self._keywords(
            call,
            ("name_hint", "attrs"),
            "pl.cluster() got unexpected keyword argument '{}'",
            "pl.cluster() does not accept **kwargs",
        )
        attrs: dict[str, Any] = {}
        self._sticky_dumps(attrs)
        self._written_attrs(attrs, keywords)
        comments = self.comments.take_pending()
        span = self.span(node)
        stmts = self._scoped_block(node.body, "cluster", node)
        self.comments._pending = [*comments, *self.comments._pending]
        body = self.body_of(stmts, span)
        self.emit(ClusterScopeStmt(self._name_hint(keywords.get("name_hint")), body=body, span=span, attrs=attrs))

    def _runtime_scope(self, node: ast.With, call: ast.Call, _as: Any) -> None:
        parts = dotted(call.func) or ("",)
        manual = parts[-1] == "manual_scope"
        if manual and (call.args or call.keywords):
            self.fail("pl.manual_scope() does not accept arguments", call)
        if call.args:
            self.fail("pl.scope() takes only a 'mode=' keyword", call)
        attrs: dict[str, Any] = {}
        name_hint = ""
        for keyword in call.keywords:
            if keyword.arg == "attrs":
                self._written_attrs(attrs, {"attrs": keyword.value})
                continue
            if keyword.arg == "name_hint":
                name_hint = self._name_hint(keyword.value)
                continue
            if keyword.arg != "mode":
                self.fail(
                    f"pl.scope() got an unexpected keyword argument '{keyword.arg}': it takes only a 'mode=' keyword",
                    call,
                )
            mode = dotted(keyword.value) or ("",)
            if mode[-1] not in ("AUTO", "MANUAL"):
                self.fail(f"Unknown ScopeMode value: {mode[-1]}", keyword.value, "Valid: AUTO, MANUAL")
            manual = mode[-1] == "MANUAL"
        if self.func_type in _KERNEL_TYPES:
            self.fail(
                "runtime scopes belong to orchestration functions, not to kernels",
                call,
                "Move the scope to the function that launches this kernel",
            )
        if not manual and self.auto_scope and self.func_type is not FunctionType.Inline:
            self.fail("a hand-placed AUTO 'with pl.scope()' requires @pl.function(auto_scope=False)", call)
        if any(c.kind == "runtime" and c.node is not None and c.node in self._manual_nodes for c in self.constructs):
            kind = "MANUAL" if manual else "AUTO"
            self.fail(f"a {kind} scope may not be nested inside a MANUAL scope", call)
        if manual:
            self._manual_nodes.add(node)
        comments = self.comments.take_pending()
        span = self.span(node)
        stmts = self._scoped_block(node.body, "runtime", node)
        self.comments._pending = [*comments, *self.comments._pending]
        self.emit(RuntimeScopeStmt(manual, name_hint, body=self.body_of(stmts, span), span=span, attrs=attrs))

    # --- supplied by the SPMD part ------------------------------------------------------------------------------------

    def _spmd_with(self, node: ast.With, call: ast.Call, as_name: ast.Name | None) -> None:
        raise NotImplementedError

    _open_split: list[bool | None]
    _manual_nodes: set[ast.stmt]
