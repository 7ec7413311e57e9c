"""The call or submit that takes the place of a scope."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...ir.call_types import named_results, result_type, unpacked_results
from ...ir.expr import Call, Expr, GlobalVar, Submit, Var
from ...ir.names import base_name
from ...ir.node import FrozenList
from ...ir.stmt import Stmt
from ...ir.tree import walk
from ...ir.type import TASK_ID_TYPE, TupleType
from ..errors import PassError
from ..naming import NameSupply
from .kernel import Parameters, Result
from .policy import Policy
from .scan import ScopeInfo

# What makes a scope a task of its own.
_TASK_KEYS = ("task_id_var", "manual_dep_edges", "allow_early_resolve", "predicate")


class Launch:
    """What the attributes of a scope say about its launch, under the names that hold where the scope is entered."""

    def __init__(self, info: ScopeInfo, policy: Policy, renamed: Callable[[Any], Any]) -> None:
        scope = info.scope
        attrs = scope.attrs
        self._span = scope.span
        self._is_task = any(key in attrs for key in _TASK_KEYS)
        self._task_id_var = attrs.get("task_id_var")
        self._deps = [renamed(dep) for dep in attrs.get("manual_dep_edges", ())]
        predicate = attrs.get("predicate")
        self._predicate: Expr | None = None if predicate is None else renamed(predicate)
        self._early = bool(attrs.get("allow_early_resolve", False))
        width = policy.launch_scope(scope)
        self._core_num: Expr | None = None if width is None else renamed(width.core_num)
        self._sync_start = width is not None and width.sync_start
        dumps = [*attrs.get("dump_vars", ()), *(width.attrs.get("dump_vars", ()) if width not in (None, scope) else ())]
        self._dumps = [renamed(var) for var in dumps]
        self._no_dep = [(var, renamed(var)) for var in attrs.get("arg_direction_overrides_vars", ())]
        self._no_dep_inside = [renamed(var) for var in policy.no_dep_inputs(info)]

    def statements(self, name: str, parameters: Parameters, results: Sequence[Result], names: NameSupply) -> list[Stmt]:
        """The launch and what unpacks its results."""
        span = self._span
        attrs = self._attrs(parameters)
        variables = [result.var for result in results]
        types = [var.type for var in variables]
        op = GlobalVar(name)
        if not self._is_task:
            if self._core_num is not None:
                attrs["core_num"] = self._core_num
                if self._sync_start:
                    attrs["sync_start"] = True
            call = Call(op, parameters.args, {}, attrs, *result_type(types), span)
            return named_results(call, variables, lambda: names.fresh("ret", "tmp"))
        task = self._task_id_var
        if task is None:
            task = Var(names.fresh("tid", "ssa"), TASK_ID_TYPE, span)
        submit = Submit(
            op,
            parameters.args,
            self._deps,
            {},
            attrs,
            TupleType([*types, TASK_ID_TYPE]),
            span,
            core_num=self._core_num,
            sync_start=self._sync_start,
            allow_early_resolve=self._early,
            predicate=self._predicate,
        )
        return unpacked_results(submit, [*variables, task], names.fresh("ret", "tmp"))

    def _attrs(self, parameters: Parameters) -> dict[str, Any]:
        attrs: dict[str, Any] = {}
        position = parameters.position
        dumped = dict.fromkeys(var for var in self._dumps if var in position)
        if dumped:
            attrs["dump_vars"] = FrozenList(dumped)
        places = {position[var] for var in self._no_dep_inside if var in position}
        for var, arg in self._no_dep:
            if arg not in position:
                raise PassError(
                    f"pl.at(no_dep_args=[...]) references tensor '{base_name(var.name_hint)}', "
                    "which is not captured by the scope body",
                    self._span,
                    hint="Remove it from no_dep_args, or use the tensor in the scope.",
                )
            places.add(position[arg])
        if places:
            attrs["arg_direction_overrides"] = FrozenList(sorted(places))
        return attrs


def check_width(width: Any, scope: Any, inside: set[Var]) -> None:
    """The width of a launch is evaluated by the caller, who can't know what the scope computes."""
    for node in walk(width.core_num):
        if isinstance(node, Var) and node in inside:
            raise PassError(
                f"pl.spmd() block count references '{base_name(node.name_hint)}' which is defined inside the "
                "enclosing pl.cluster()",
                width.span,
                labels=((scope.span, "the cluster"), (node.span, "defined here")),
                hint=f"Compute '{base_name(node.name_hint)}' before the pl.cluster().",
            )


__all__ = ["Launch", "check_width"]
