"""SPMD launches and split regions: the loops and scopes whose body reads an index of where it runs."""

from __future__ import annotations

import ast
from typing import Any

from ..ir.enums import FunctionType, SplitMode
from ..ir.expr import ConstInt, Expr, Var
from ..ir.node import FrozenList
from ..ir.program import Function
from ..ir.stmt import AssignStmt, InCoreScopeStmt, SplitAivScopeStmt, SpmdScopeStmt, Stmt
from ..ir.type import TensorType
from ..ops.surface import NAMESPACES
from .base import Construct
from .closure import MISSING, dotted
from .errors import InvalidOperationError
from .inline import InlineFunction
from .scopes import Optimizations, Scopes

_SPMD_KEYWORDS = (
    "core_num",
    "sync_start",
    "name_hint",
    "optimizations",
    "deps",
    "allow_early_resolve",
    "predicate",
    "attrs",
)


class Spmd(Scopes):
    """``pl.spmd`` in its forms, ``pl.split_aiv``, and the operations that cross its lanes."""

    # --- pl.spmd ------------------------------------------------------------------------------------------------------

    def _spmd_core_num(self, call: ast.Call, keywords: dict[str, ast.expr]) -> Expr:
        if len(call.args) > 1:
            self.fail("pl.spmd() takes at most one positional argument", call)
        if call.args:
            if "core_num" in keywords:
                self.fail("pl.spmd() got multiple values for argument 'core_num'", call)
            return self.core_num(call.args[0])
        if "core_num" not in keywords:
            self.fail("pl.spmd() requires core_num", call)
        return self.core_num(keywords["core_num"])

    def _spmd_parts(
        self, call: ast.Call, keywords: dict[str, ast.expr], as_name: ast.Name | None, node: ast.stmt
    ) -> tuple[Expr, bool, str, Optimizations, dict[str, Any]]:
        core_num = self._spmd_core_num(call, keywords)
        sync_start = self.bool_literal(keywords.get("sync_start"), "sync_start")
        name_hint = self._name_hint(keywords.get("name_hint"))
        optimizations = self._optimizations(keywords.get("optimizations"), "pl.spmd")
        early = self.bool_literal(keywords.get("allow_early_resolve"), "allow_early_resolve")
        if any(c.kind == "cluster" for c in self.constructs):
            if as_name is not None:
                self.fail("pl.spmd() cannot capture a TaskId when nested inside pl.cluster()", call)
            if early or "predicate" in keywords:
                self.fail(
                    "pl.spmd(allow_early_resolve=..., predicate=...) cannot be nested inside `pl.cluster()`", call
                )
        if "deps" in keywords and as_name is None:
            self.fail("pl.spmd() does not accept 'deps=' here", call, "Write with pl.spmd(n, deps=[...]) as tid:")
        attrs: dict[str, Any] = {}
        deps: FrozenList[Expr] = FrozenList()
        if "deps" in keywords:
            deps = self.dependencies(keywords["deps"])
            if deps:
                attrs["manual_dep_edges"] = deps
        self._task_id(attrs, as_name, node)
        if early:
            attrs["allow_early_resolve"] = True
        if "predicate" in keywords:
            attrs["predicate"] = self.predicate(keywords["predicate"], deps, as_name is not None)
        self._written_attrs(attrs, keywords)
        return core_num, sync_start, name_hint, optimizations, attrs

    def spmd_loop(self, node: ast.For, call: ast.Call) -> None:
        """``for i in pl.spmd(n):``."""
        for keyword in call.keywords:
            if keyword.arg in ("init_values", "chunk", "chunk_policy", "step", "stage"):
                self.fail(f"pl.spmd() loop form does not accept '{keyword.arg}='", call)
        keywords = self._keywords(
            call,
            _SPMD_KEYWORDS,
            "pl.spmd() got an unexpected keyword argument '{}'",
            "pl.spmd() does not accept **kwargs",
        )
        if type(node.target) is not ast.Name:
            self.fail("pl.spmd() loop must use a single loop variable", node.target)
        core_num, sync_start, hint, optimizations, attrs = self._spmd_parts(call, keywords, None, node)
        comments = self.comments.take_pending()
        span = self.span(node)
        stmts = self._indexed_block(node, node.target, "get_block_idx", "incore", optimizations)
        spmd_name, core_name = _spmd_names(hint)
        inner = self._carrier(stmts, core_name, optimizations, span)
        self.comments._pending = [*comments, *self.comments._pending]
        self.emit(SpmdScopeStmt(core_num, sync_start, spmd_name, body=inner, span=span, attrs=attrs))

    def _indexed_block(
        self, node: ast.For, target: ast.Name, op: str, kind: str, optimizations: Optimizations | None
    ) -> list[Stmt]:
        """A loop body that is a scope: its first statement reads the index."""
        construct = Construct(kind, node)
        self.constructs.append(construct)
        self.scopes.push()
        self._open_split.append(optimizations.split is not None if optimizations is not None else None)
        try:
            with self.collecting() as stmts:
                index = self.call_surface(NAMESPACES["tile"][op], (), {}, f"pl.tile.{op}", target)
                var = Var(target.id, index.type, self.span(target))
                self.scopes.bind(target.id, var)
                self.body.append(AssignStmt(var, index, self.span(target)))
                self.block(node.body)
        finally:
            self._open_split.pop()
            self.constructs.pop()
            self.scopes.pop(leak=True)
        return stmts

    def _carrier(self, stmts: list[Stmt], name: str, optimizations: Optimizations, span: Any) -> Stmt:
        """The InCore scope inside an Spmd scope."""
        attrs: dict[str, Any] = {}
        self._sticky_dumps(attrs)
        if optimizations.slot_num is not None:
            attrs["slot_num"] = optimizations.slot_num
        split = optimizations.split or SplitMode.NONE
        return InCoreScopeStmt(split, name, body=self.body_of(stmts, span), span=span, attrs=attrs)

    def _spmd_with(self, node: ast.With, call: ast.Call, as_name: ast.Name | None) -> None:
        keywords = self._keywords(
            call,
            _SPMD_KEYWORDS,
            "pl.spmd() got an unexpected keyword argument '{}'",
            "pl.spmd() does not accept **kwargs",
        )
        carrier = self._single_at(node.body)
        reads_index = any(
            type(n) is ast.Call and (dotted(n.func) or ("",))[-1] == "get_block_idx"
            for statement in node.body
            for n in ast.walk(statement)
        )
        core_num, sync_start, hint, optimizations, attrs = self._spmd_parts(call, keywords, as_name, node)
        comments = self.comments.take_pending()
        span = self.span(node)
        spmd_name, core_name = hint, ""
        if carrier is not None:
            if optimizations.given:
                inner = any(k.arg == "optimizations" for k in carrier.keywords)
                self.fail(
                    "`optimizations=` is specified twice" if inner else "`optimizations=` belongs on the InCore scope",
                    call,
                )
            stmts = self._scoped_block(node.body, "spmd", node)
            body = self.body_of(stmts, span)
        elif reads_index:
            spmd_name, core_name = _spmd_names(hint)
            body = self._wrapped_body(node, core_name, optimizations, span)
        else:
            self._check_dispatch(node, call)
            if optimizations.given:
                spmd_name, core_name = _spmd_names(hint)
                body = self._wrapped_body(node, core_name, optimizations, span)
            else:
                stmts = self._scoped_block(node.body, "spmd", node)
                body = self.body_of(stmts, span)
                self._insert_dumps(attrs)
        self.comments._pending = [*comments, *self.comments._pending]
        self.emit(SpmdScopeStmt(core_num, sync_start, spmd_name, body=body, span=span, attrs=attrs))
        task_var = attrs.get("task_id_var")
        if task_var is not None:
            self.note_producers(_assigned(body), task_var)

    def _insert_dumps(self, attrs: dict[str, Any]) -> None:
        if not self.dump_tags:
            return
        items = list(attrs.items())
        attrs.clear()
        if items and items[0][0] == "manual_dep_edges":
            attrs.update(items[:1])
            items = items[1:]
        self._sticky_dumps(attrs)
        attrs.update(items)

    def _wrapped_body(self, node: ast.With, name: str, optimizations: Optimizations, span: Any) -> Stmt:
        self._open_split.append(optimizations.split is not None)
        try:
            stmts = self._scoped_block(node.body, "incore", node)
        finally:
            self._open_split.pop()
        return self._carrier(stmts, name, optimizations, span)

    def _single_at(self, body: list[ast.stmt]) -> ast.Call | None:
        if len(body) != 1 or type(body[0]) is not ast.With or len(body[0].items) != 1:
            return None
        call = body[0].items[0].context_expr
        if type(call) is not ast.Call or self._scope_name(dotted(call.func)) != "at":
            return None
        level = call.args[0] if call.args else next((k.value for k in call.keywords if k.arg == "level"), None)
        parts = dotted(level) if level is not None else None
        return call if parts is not None and parts[-1] == "CORE_GROUP" else None

    def _check_dispatch(self, node: ast.With, call: ast.Call) -> None:
        count = 0
        for statement in node.body:
            for inner in ast.walk(statement):
                if type(inner) is not ast.Call:
                    continue
                parts = dotted(inner.func)
                if parts is None:
                    continue
                method = parts[0] == "self" and len(parts) == 2
                if method or (len(parts) == 1 and self._is_kernel(self.closure.get(parts[0]))):
                    count += 1
        if count == 0:
            self.fail(
                "pl.spmd() body neither reads the per-block index via `pl.tile.get_block_idx()` "
                "nor dispatches a kernel",
                call,
                "Write for i in pl.spmd(n):, or call one kernel in the body",
            )
        if count > 1:
            self.fail(f"pl.spmd() dispatch body launches {count} kernels: it must launch one", call)

    def _is_kernel(self, value: Any) -> bool:
        return value is not MISSING and (
            isinstance(value, (Function, InlineFunction)) or hasattr(value, "__pypto_helper__")
        )

    # --- split_aiv ----------------------------------------------------------------------------------------------------

    def split_aiv_loop(self, node: ast.For, call: ast.Call) -> None:
        """``for aiv in pl.split_aiv(2, mode=...):``."""
        keywords = {k.arg: k.value for k in call.keywords}
        if "optimizations" in keywords:
            self.fail("pl.split_aiv() does not accept 'optimizations='", call)
        for key in keywords:
            if key not in ("mode", "name_hint", "attrs"):
                self.fail(f"pl.split_aiv() does not accept '{key}='", call)
        if len(call.args) != 1:
            self.fail("pl.split_aiv() takes exactly one positional argument", call)
        count = self.expr(call.args[0])
        if type(count) is not ConstInt or count.value != 2:
            self.fail("pl.split_aiv() requires n == 2", call.args[0])
        if "mode" not in keywords:
            self.fail("pl.split_aiv() requires mode=", call)
        mode = self._enum_member(keywords["mode"], SplitMode, "SplitMode")
        if type(node.target) is not ast.Name:
            self.fail("pl.split_aiv() must use a single loop variable", node.target)
        if any(c.kind == "split_aiv" for c in self.constructs):
            self.fail("nested 'for ... in pl.split_aiv(...)' is not allowed", call)
        if any(self._open_split):
            self.fail(
                "pl.split_aiv(...) inside a scope with pl.split(...): mutually exclusive AIV-split mechanisms", call
            )
        comments = self.comments.take_pending()
        span = self.span(node)
        self.split_modes.append(mode)
        try:
            stmts = self._indexed_block(node, node.target, "get_subblock_idx", "split_aiv", None)
        finally:
            self.split_modes.pop()
        self.comments._pending = [*comments, *self.comments._pending]
        region_attrs: dict[str, Any] = {}
        self._written_attrs(region_attrs, {k: v for k, v in keywords.items() if k is not None})
        region: Stmt = SplitAivScopeStmt(
            mode,
            name_hint=self._name_hint(keywords.get("name_hint")),
            body=self.body_of(stmts, span),
            span=span,
            attrs=region_attrs,
        )
        if self.func_type is not FunctionType.InCore and not any(c.kind == "incore" for c in self.constructs):
            attrs: dict[str, Any] = {}
            self._sticky_dumps(attrs)
            region = InCoreScopeStmt(body=region, span=span, attrs=attrs)
        self.emit(region)

    def cross_lane(self, node: ast.Call, name: str, tile_form: bool) -> Expr:
        """``pl.aiv_shard(x)`` and ``pl.aic_gather(x)``: the region supplies the split."""
        spelling = f"pl.{name}"
        keywords = {k.arg: k.value for k in node.keywords}
        if "mode" in keywords:
            self.fail(f"{spelling} does not take a mode= argument", node)
        if self.split_modes:
            if "split" in keywords:
                self.fail(f"{spelling} does not take a split= argument inside a pl.split_aiv region", node)
            if len(node.args) != 1 or keywords:
                self.fail(f"{spelling} takes exactly one positional argument and no keywords", node)
            value = self.expr(node.args[0])
            level = "tile" if "Tile" in type(value.type).__name__ else "tensor"
            split = self.split_modes[-1].value
            return self._cross_lane_call(level, name, value, {"split": split}, spelling, node)
        if not tile_form or "split" not in keywords:
            self.fail(f"{spelling} must be used inside a 'for ... in pl.split_aiv(...)' loop", node)
        values: dict[str, Any] = {}
        for key, value_node in keywords.items():
            number = value_node.value if type(value_node) is ast.Constant else self.evaluate(value_node)
            if key == "split" and type(number) is not int:
                self.fail(f"{spelling} requires an integer split", node)
            if key == "lane_stride" and name != "aiv_shard":
                self.fail(f"{spelling} does not take lane_stride", node)
            values[key or ""] = number
        operand = self.expr(node.args[0])
        if isinstance(operand.type, TensorType):
            kind = "does not support distributed tensors" if type(operand.type) is not TensorType else "is tile-only"
            self.fail(f"{spelling} with an explicit split {kind}", node)
        return self._cross_lane_call("tile", name, operand, values, spelling, node)

    def _cross_lane_call(
        self, level: str, name: str, value: Expr, kwargs: dict[str, Any], spelling: str, node: ast.Call
    ) -> Expr:
        from ..ops.registry import REGISTRY
        from ..ops.registry import call as build_call

        op = f"{level}.{name}"
        if op not in REGISTRY:
            raise InvalidOperationError(f"Unknown pl.{level} operation: {name}", self.span(node))

        def function(operand: Expr, **attrs: Any) -> Expr:
            return build_call(op, operand, **attrs)

        return self.call_surface(function, (value,), kwargs, spelling, node)  # type: ignore[no-any-return]

    split_modes: list[SplitMode]


def _spmd_names(hint: str) -> tuple[str, str]:
    """(name of the Spmd scope, name of the InCore scope inside it)."""
    if not hint:
        return "", ""
    if hint.endswith("_spmd"):
        return hint, hint[: -len("_spmd")]
    return f"{hint}_spmd", hint


def _assigned(body: Stmt) -> list[Var]:
    from ..ir.tree import flatten_to_stmts

    stmts = flatten_to_stmts(body)
    if len(stmts) == 1 and isinstance(stmts[0], InCoreScopeStmt):
        stmts = flatten_to_stmts(stmts[0].body)
    return [s.var for s in stmts if isinstance(s, AssignStmt)]
