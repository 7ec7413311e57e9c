"""``@pl.inline``: functions whose statements are expanded at each call."""

from __future__ import annotations

import ast
from typing import Any

from ..ir.expr import Expr, MakeTuple
from ..ir.span import Span
from .closure import Closure
from .comments import CommentQueue, scan_comments
from .scope import ScopeStack
from .source import Source


class InlineFunction:
    """A function kept as syntax until it is called by its bare name from a parsed body."""

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
        return Source(self.source_file, "\n".join(self.source_lines), self.line_offset, self.col_offset)


class InlineFrame:
    """An expansion in progress: where its ``return`` puts the value."""

    __slots__ = ("returned", "value")

    def __init__(self) -> None:
        self.value: Expr | None = None
        self.returned = False


def expand(parser: Any, function: InlineFunction, node: ast.Call) -> Expr:
    """Expand a call in place.

    Parameters are bound to the caller's argument expressions. The body sees its own closure and nothing of the caller's
    names, and leaks none of its own: only the value comes back.
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
    arguments = [parser.expr(a) for a in node.args]
    saved = (parser.source, parser.closure, parser.scopes, parser.comments, parser.constructs, parser.rename_rebinds)
    frame = InlineFrame()
    parser.inline_frames.append((name, frame))
    parser.source = function.source
    parser.closure = Closure(function.closure_vars)
    parser.scopes = ScopeStack()
    definition = function.func_def
    parser.comments = CommentQueue(scan_comments(parser.source, definition.lineno, definition.end_lineno))
    parser.constructs = []
    for param, argument in zip(function.param_names, arguments, strict=True):
        parser.scopes.bind(param, argument)
    parser.scopes.push()  # an assignment to a parameter's name makes a variable of the expansion's own
    try:
        parser.inline_body(function.func_def)
    finally:
        parser.inline_frames.pop()
        (
            parser.source,
            parser.closure,
            parser.scopes,
            parser.comments,
            parser.constructs,
            parser.rename_rebinds,
        ) = saved
    if frame.value is None:
        nothing = MakeTuple([], parser.span(node))
        parser.valueless[nothing] = name  # legal as a statement only
        return nothing
    return frame.value
