"""``@pl.inline``: functions whose statements are expanded at each call."""

from __future__ import annotations

import ast
from typing import Any

from ..ir.expr import Expr, MakeTuple
from ..ir.stmt import AssignStmt
from .closure import Closure
from .comments import CommentQueue, function_comments
from .errors import Suppressed
from .scope import ScopeStack
from .source import Source

# What a parser has for each function that it is in, and finds again behind an expansion.
_ITS_OWN = ("source", "closure", "scopes", "comments", "constructs", "rename_rebinds", "has_left")


class InlineFunction:
    """A function kept as syntax until it is called by its bare name from a parsed body."""

    _rebound: frozenset[str] | None = None
    _source: Source | None = None

    def __init__(
        self,
        name: str,
        func_def: ast.FunctionDef,
        param_names: list[str],
        source_file: str,
        source_lines: list[str],
        line_offset: int,
        col_offset: int,
        closure_vars: dict[str, Any],
    ) -> None:
        self.name = name
        self.func_def = func_def
        self.param_names = param_names
        self.source_file = source_file
        self.source_lines = source_lines
        self.line_offset = line_offset
        self.col_offset = col_offset
        self.closure_vars = closure_vars

    def __repr__(self) -> str:
        return f"InlineFunction({self.name!r})"

    def __call__(self, *_args: Any, **_kwargs: Any) -> Any:
        raise RuntimeError(f"@pl.inline function '{self.name}' can only be called inside a decorated body")

    @property
    def source(self) -> Source:
        """The text that positions of ``func_def`` refer to."""
        if self._source is None:
            self._source = Source(self.source_file, "\n".join(self.source_lines), self.line_offset, self.col_offset)
        return self._source

    @property
    def rebound(self) -> frozenset[str]:
        """The parameters whose names the body assigns to: an expansion works on copies of their arguments."""
        if self._rebound is None:
            stored = {n.id for n in ast.walk(self.func_def) if type(n) is ast.Name and type(n.ctx) is ast.Store}
            self._rebound = frozenset(stored.intersection(self.param_names))
        return self._rebound


class InlineFrame:
    """An expansion in progress: where its ``return`` puts the value."""

    __slots__ = ("returned", "value")

    def __init__(self) -> None:
        self.value: Expr | None = None
        self.returned = False


def expand(parser: Any, function: InlineFunction, node: ast.Call) -> Expr:
    """Expand a call in place.

    Parameters are bound to the caller's argument expressions (a write to a part of one, ``out[0] = v``, is a write to
    the caller's). The body sees its own closure and nothing of the caller's names, and leaks none of its own: only the
    value comes back.
    """
    name = function.name
    if node.keywords:
        parser.type_error(f"Inline function '{name}' does not accept keyword argument '{node.keywords[0].arg}'", node)
    if len(node.args) != len(function.param_names):
        parser.type_error(
            f"Inline function '{name}' expects {len(function.param_names)} argument(s), got {len(node.args)}",
            node,
            f"Parameters: {', '.join(function.param_names)}",
        )
    if name in [frame_name for frame_name, _ in parser.inline_frames]:
        parser.type_error(f"Inline function '{name}' calls itself: inline functions cannot be recursive", node)
    is_statement = node is parser.statement_call  # the statements of the body set it anew
    arguments = [parser.expr(a) for a in node.args]
    saved = {name: getattr(parser, name) for name in _ITS_OWN}
    frame = InlineFrame()
    parser.inline_frames.append((name, frame))
    parser.source = function.source
    parser.closure = Closure(function.closure_vars)
    parser.scopes = ScopeStack()
    definition = function.func_def
    parser.comments = CommentQueue(function_comments(parser.source, definition))
    parser.constructs = []
    known_errors = len(parser.errors)
    try:
        for param, argument in zip(function.param_names, arguments, strict=True):
            if param in function.rebound:
                parser.emit(AssignStmt(parser.new_var(param, argument.type, argument.span), argument, argument.span))
            else:
                parser.scopes.bind(param, argument)
        parser.inline_body(definition)
    finally:
        lines = None
        for error in parser.errors[known_errors:]:
            if error.source_lines is None:
                lines = parser.source.error_lines() if lines is None else lines
                error.source_lines = lines
        parser.inline_frames.pop()
        for attribute, value in saved.items():
            setattr(parser, attribute, value)
    if frame.value is None:
        if len(parser.errors) > known_errors:
            raise Suppressed  # the reason is reported already
        if not is_statement:
            parser.type_error(f"Inline function '{name}' has no return value", node)
        return MakeTuple([], parser.span(node))
    return frame.value
