"""Functions and programs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..enums import FunctionType, ParamDirection, Role, SplitMode
from ..expr import Expr, Var
from ..program import Function, Program
from ..stmt import Stmt
from ..type import Type
from .literals import quoted
from .names import Mentions, distinct_names, dynamic_dims, function_names
from .scopes import ScopePrinter
from .statements import INDENT, flat

# Attributes that are keywords of the decorator.
_DECORATOR_ATTRS = ("auto_scope", "external_source")
_NO_BASES: frozenset[Var] = frozenset()


class FunctionPrinter(ScopePrinter):
    """Adds functions."""

    def function(self, func: Function, mentions: Mentions, indent: str) -> None:
        """Decorator, signature, attribute prologue and body of a function."""
        self._decorator(func, indent)
        self.use_bases(_NO_BASES)
        self.lines.append(f"{indent}def {func.name}({self._params(func)}){self._results_arrow(func)}:")
        self.use_bases(mentions.definitions)
        inner = indent + INDENT
        attrs = {k: v for k, v in func.attrs.items() if k not in _DECORATOR_ATTRS and not (k == "split" and not v)}
        if attrs:
            self.lines.append(f"{inner}{self.pl}func_attr({{{self.items(attrs)}}})")
        if func.requires_runtime_binding:
            self.lines.append(inner + "...")
            return
        self._at_function_level = True
        self.defines(func.params)
        self.block(flat(func.body), inner)
        self._at_function_level = False

    def _decorator(self, func: Function, indent: str) -> None:
        texts = []
        if func.func_type is not FunctionType.Opaque:
            texts.append(f"type={self.pl}FunctionType.{func.func_type.name}")
        if func.level is not None:
            texts.append(f"level={self.pl}Level.{func.level.name}")
        if func.role is not None:
            texts.append(f"role={self.pl}Role.{func.role.name}")
        if func.attrs.get("auto_scope") is False:
            texts.append("auto_scope=False")
        if "external_source" in func.attrs:
            texts.append(f"external_source={quoted(func.attrs['external_source'])}")
        self.lines.append(f"{indent}@{self.pl}function" + (f"({', '.join(texts)})" if texts else ""))

    def _params(self, func: Function) -> str:
        texts = ["self"] if self.in_program and func.role is not Role.SubWorker else []
        for param, direction in zip(func.params, func.param_directions, strict=True):
            kind = self.type(param.type)
            if direction is not ParamDirection.In:
                kind = f"{self.pl}{direction.name}[{kind}]"
            texts.append(f"{self.names[param]}: {kind}")
        return ", ".join(texts)

    def _results_arrow(self, func: Function) -> str:
        kinds = [self.type(kind) for kind in func.return_types]
        if not kinds:
            return ""
        return f" -> {kinds[0]}" if len(kinds) == 1 else f" -> tuple[{', '.join(kinds)}]"

    def attr(self, key: str, value: Any) -> str:
        """As for calls, but a split is a mode."""
        if key == "split" and type(value) is int:
            return self._split_mode(SplitMode(value))
        return super().attr(key, value)


def mentions_of(func: Function) -> Mentions:
    """The variables of one function."""
    mentions = Mentions()
    mentions.add_function(func)
    return mentions


def function_lines(
    func: Function,
    mentions: Mentions,
    dims: Mapping[Expr, str],
    options: Mapping[str, Any],
    in_program: bool,
    indent: str,
) -> list[str]:
    """The text of a function, given the names of the dynamic dims."""
    printer = FunctionPrinter(names=function_names(mentions, dims), **options)
    printer.in_program = in_program
    printer.function(func, mentions, indent)
    return printer.lines


def free_standing(node: Stmt | Expr | Type, options: Mapping[str, Any]) -> str:
    """A statement, expression or type by itself: nothing in it counts as free."""
    mentions = Mentions()
    if isinstance(node, Type):
        mentions.add_type(node)
    else:
        mentions.add_node(node)
    printer = FunctionPrinter(names=distinct_names(mentions.ordered()), bases=mentions.definitions, **options)
    if isinstance(node, Type):
        return printer.type(node)
    if isinstance(node, Expr):
        return printer.expr(node)
    printer.body(node, "")
    return "\n".join(printer.lines)


def single_function(func: Function, options: Mapping[str, Any]) -> str:
    """A function outside of a program: its dynamic dims print by name, without a declaration."""
    mentions = mentions_of(func)
    dims = distinct_names(dynamic_dims(mentions))
    return "\n".join(function_lines(func, mentions, dims, options, False, ""))


def program(prog: Program, options: Mapping[str, Any]) -> str:
    """A program: header, declarations of dynamic dims, functions with callees first."""
    prefix = options["prefix"]
    name = prog.name or "Program"
    mentions = {func.name: mentions_of(func) for func in prog.functions.values()}
    order = callees_first({name: list(found.callees) for name, found in mentions.items()})
    functions = {func.name: func for func in prog.functions.values()}
    symbols: dict[Var, None] = {}
    for key in order:
        symbols.update(dynamic_dims(mentions[key]))
    dims = distinct_names(symbols)
    lines = [f"# pypto.program: {name}"]
    lines.append("import pypto.language as pl" if prefix == "pl" else f"from pypto import language as {prefix}")
    lines.append("")
    if dims:
        lines += [f'{symbol} = {prefix}.dynamic("{symbol}")' for symbol in sorted(dims.values())]
        lines.append("")
    lines += [f"@{prefix}.program", f"class {name}:"]
    for key in order:
        lines += function_lines(functions[key], mentions[key], dims, options, True, INDENT)
    if not order:
        lines.append(INDENT + "pass")
    return "\n".join(lines)


def callees_first(callees: Mapping[str, list[str]]) -> list[str]:
    """Functions behind those that they call; by name where calls leave it open, or where they form a cycle."""
    names = sorted(callees, key=str.encode)
    order: list[str] = []
    state: dict[str, bool] = {}  # False while open, True when placed
    for root in names:
        stack = [] if root in state else [(root, iter(_known(callees, root)))]
        if stack:
            state[root] = False
        while stack:
            name, rest = stack[-1]
            for callee in rest:
                if callee not in state:
                    state[callee] = False
                    stack.append((callee, iter(_known(callees, callee))))
                    break
                if not state[callee]:
                    return names
            else:
                state[name] = True
                order.append(name)
                stack.pop()
    return order


def _known(callees: Mapping[str, list[str]], name: str) -> list[str]:
    return sorted((callee for callee in callees[name] if callee in callees), key=str.encode)
