"""The decorators ``@pl.function``, ``@pl.program`` and ``@pl.inline``."""

from __future__ import annotations

import ast
import linecache
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

from ..diag.parser_errors import ParserError, ParserSyntaxError
from ..ir.attrs import normalize_attr
from ..ir.enums import FunctionType, Level, Role, SplitMode
from ..ir.expr import Expr, Var
from ..ir.paused_gc import paused_gc
from ..ir.program import Function, Program
from ..ir.tree import walk
from .closure import Closure, dotted
from .comments import Comment, CommentQueue, function_comments, scan_comments
from .context import ProgramContext
from .errors import did_you_mean, first_of
from .function_parser import FunctionOptions, FunctionParser
from .inline import InlineFunction
from .source import Source, locate_class, locate_function

# Set by the text entry points while their text runs: maps a file name to its source map.
SOURCE_MAPS: dict[str, Any] = {}


def _closure_of(frame: FrameType, function: Any = None) -> Closure:
    """Names visible where the decorator stands: the calling frame's, and the function's own free variables."""
    names = dict(frame.f_locals) if frame.f_locals is not frame.f_globals else {}
    cells = getattr(function, "__closure__", None) or ()
    for name, cell in zip(getattr(getattr(function, "__code__", None), "co_freevars", ()), cells, strict=False):
        try:
            names.setdefault(name, cell.cell_contents)
        except ValueError:  # not bound yet
            continue
    return Closure(frame.f_globals, names)


def _is_method(function: Any) -> bool:
    """Whether a function stands in a class body: ``@pl.program`` parses it later."""
    parts = function.__qualname__.split(".")
    return len(parts) > 1 and parts[-2] != "<locals>"


def function(
    func: Callable[..., Any] | None = None,
    *,
    type: FunctionType = FunctionType.Opaque,
    level: Level | None = None,
    role: Role | None = None,
    attrs: dict[str, Any] | None = None,
    auto_scope: bool = True,
    strict_ssa: bool = False,
    external_source: str | Path | None = None,
) -> Any:
    """Parse a DSL function; the result is an ``ir.Function``.

    Usable bare or with arguments. In a class body the function is left for ``@pl.program``. ``type`` is a
    ``FunctionType``; ``level`` and ``role`` must agree with what it implies; ``auto_scope=False``: the author places
    all runtime scopes; ``strict_ssa=True``: a name is defined once a scope; ``external_source``: the C++ file of a
    hand-written kernel. Raises the ``ParserError`` family.
    """
    frame = sys._getframe(1)
    snapshot = normalize_function_attrs(attrs) if attrs is not None else {}
    if attrs:
        warnings.warn(
            "@pl.function(attrs=...) is deprecated: it cannot reference parameters; use pl.func_attr({...})",
            DeprecationWarning,
            stacklevel=2,
        )

    def decorate(target: Callable[..., Any]) -> Any:
        resolved = resolve_external(external_source, frame) if external_source is not None else None
        if _is_method(target):
            target._pl_function_attrs = snapshot  # type: ignore[attr-defined]
            if resolved is not None:
                target._pl_external_source = resolved  # type: ignore[attr-defined]
            return target
        options = FunctionOptions(type, level, role, snapshot, auto_scope, strict_ssa, resolved)
        return parse_function(target, _closure_of(frame, target), options)

    return decorate if func is None else decorate(func)


def resolve_external(path: str | Path, frame: FrameType) -> str:
    """Absolute path of a hand-written kernel, relative to the decorated file; ``ValueError`` if it is missing."""
    found = Path(path)
    if not found.is_absolute():
        found = Path(frame.f_globals.get("__file__", ".")).resolve().parent / found
    if not found.is_file():
        raise ValueError(f"external_source: file not found: {path}")
    return str(found)


def normalize_function_attrs(attrs: Any) -> dict[str, Any]:
    """The snapshot of ``@pl.function(attrs=...)``."""
    if not isinstance(attrs, dict):
        raise ParserSyntaxError(f"@pl.function(attrs=...) must be a dict, got {attrs.__class__.__name__}")
    result = {}
    for key, value in attrs.items():
        if not isinstance(key, str):
            raise ParserSyntaxError(f"@pl.function(attrs=...) keys must be strings, got {key!r}")
        if isinstance(value, SplitMode):
            if value is not SplitMode.NONE:
                result[key] = value.value
            continue
        if hasattr(value, "_expr") and not isinstance(value, Expr):
            inner = value.unwrap() if getattr(value, "is_dynvar", False) else value._expr
            if inner is None:
                raise ParserSyntaxError(
                    f"@pl.function(attrs=...): value of '{key}' is an annotation-only {value.__class__.__name__}"
                )
            value = inner
        for item in value if isinstance(value, (list, tuple)) else (value,):
            if isinstance(item, Expr) and any(isinstance(n, Var) for n in walk(item)):
                raise ParserSyntaxError(
                    f"@pl.function(attrs=...): value of '{key}' references a variable, "
                    "which a function attr cannot carry"
                )
        try:
            result[key] = normalize_attr(key, value)
        except TypeError as error:
            raise ParserSyntaxError(str(error)) from error
    return result


def _with_lines(error: ParserError, source: Source) -> ParserError:
    """Attach source lines to an error that has none yet, and to those that it carries."""
    for each in error.all_errors():
        if each.source_lines is None:
            named = each.span["filename"] if each.span is not None else source.filename
            other = linecache.getlines(named) if named and named != source.filename else []
            each.source_lines = [line.rstrip("\n") for line in other] if other else source.error_lines()
    return error


def parse_function(
    target: Callable[..., Any], closure: Closure, options: FunctionOptions, context: ProgramContext | None = None
) -> Function:
    """The IR of a function object."""
    source, node = locate_function(target)
    source.source_map = SOURCE_MAPS.get(source.filename)
    comments = CommentQueue(function_comments(source, node))
    parser = FunctionParser(node, source, closure, context or ProgramContext(is_program=False), options, comments)
    try:
        with paused_gc():
            return parser.parse()
    except ParserError as error:
        raise _with_lines(error, source)  # noqa: B904  (the same error, now with its lines)


# --- programs ---------------------------------------------------------------------------------------------------------


def program(cls: type | None = None, *, strict_ssa: bool = False) -> Any:
    """Parse the ``@pl.function`` methods of a class; the result is an ``ir.Program`` named after the class."""
    frame = sys._getframe(1)

    def decorate(target: type) -> Program:
        return parse_class(target, _closure_of(frame), strict_ssa, frame.f_lineno)

    return decorate if cls is None else decorate(cls)


def parse_class(cls: type, closure: Closure, strict_ssa: bool, line: int = -1) -> Program:
    """The IR of a program class that is decorated at ``line``."""
    source, node = locate_class(cls, line)
    source.source_map = SOURCE_MAPS.get(source.filename)
    try:
        with paused_gc():
            return ProgramParser(cls, node, source, closure, strict_ssa).parse()
    except ParserError as error:
        raise _with_lines(error, source)  # noqa: B904


class ProgramParser:
    """Parses the methods of a program class: all signatures first, then all bodies."""

    def __init__(self, cls: type, node: ast.ClassDef, source: Source, closure: Closure, strict_ssa: bool) -> None:
        self.cls = cls
        self.node = node
        self.source = source
        self.closure = closure
        self.strict_ssa = strict_ssa
        self.context = ProgramContext(cls.__name__)

    def parse(self) -> Program:
        methods = [
            (n, d) for n in self.node.body if isinstance(n, ast.FunctionDef) and (d := _decorator(n)) is not None
        ]
        if not methods:
            raise ParserSyntaxError(
                f"Class '{self.cls.__name__}' contains no @pl.function decorated methods",
                self.source.span(self.node),
                "Decorate at least one method with @pl.function",
            )
        seen: set[str] = set()
        for node, _ in methods:
            if node.name in seen:
                raise ParserSyntaxError(f'Duplicate function name "{node.name}"', self.source.span(node))
            seen.add(node.name)
            self.context.global_var(node.name)
        self._scan_buffers([n for n, _ in methods])
        comments = scan_comments(self.source, self.node.lineno, self.node.end_lineno)
        errors: list[ParserError] = []
        parsers: list[FunctionParser] = []
        for i, (node, decorator) in enumerate(methods):
            end = methods[i + 1][0] if i + 1 < len(methods) else None
            try:
                parser = self._parser(node, decorator, _between(comments, node, end))
                self.context.signatures[node.name] = parser.parse_signature()
                parsers.append(parser)
            except ParserError as error:
                errors.append(error)
        for parser in parsers:
            try:
                self.context.functions[parser.function_name] = parser.parse()
            except ParserError as error:
                errors.append(error)
        if errors:
            raise first_of(errors)
        functions = [*self.context.functions.values()]
        functions += [f for name, f in self.context.externals.items() if name not in self.context.functions]
        return Program(functions, self.cls.__name__, self.source.span(self.node))

    def _parser(self, node: ast.FunctionDef, decorator: ast.expr, comments: list[Comment]) -> FunctionParser:
        method = self.cls.__dict__.get(node.name)
        method = getattr(method, "__func__", method)
        reader = DecoratorReader(decorator, self.source, self.closure)
        options = reader.options()
        options.strict_ssa = self.strict_ssa
        snapshot = getattr(method, "_pl_function_attrs", None)
        options.attrs = dict(snapshot) if snapshot is not None else reader.literal_attrs()
        options.external_source = getattr(method, "_pl_external_source", None)
        return FunctionParser(node, self.source, self.closure, self.context, options, CommentQueue(comments))

    def _scan_buffers(self, methods: list[ast.FunctionDef]) -> None:
        if "reserve_buffer" not in self.source.text:  # a walk over all syntax costs as much as a third of the parsing
            return
        for method in methods:
            for inner in ast.walk(method):
                if type(inner) is not ast.Call or (dotted(inner.func) or ("",))[-1] != "reserve_buffer":
                    continue
                values: dict[str, Any] = {
                    k.arg: k.value.value for k in inner.keywords if k.arg and type(k.value) is ast.Constant
                }
                if "name" in values:
                    self.context.reserved_buffers[(method.name, values["name"])] = values


def _decorator(node: ast.FunctionDef) -> ast.expr | None:
    for decorator in node.decorator_list:
        parts = dotted(decorator.func if type(decorator) is ast.Call else decorator)
        if parts is not None and parts[-1] == "function":
            return decorator
    return None


def _between(comments: list[Comment], node: ast.FunctionDef, end: ast.FunctionDef | None) -> list[Comment]:
    """The comments of one method: from its ``def`` to the line before the next method's decorators."""
    last = min([end.lineno, *[d.lineno for d in end.decorator_list]]) if end is not None else sys.maxsize
    return [c for c in comments if node.lineno <= c.line < last and (c.column > node.col_offset or c.trailing)]


class DecoratorReader:
    """Reads the keywords of a method's ``@pl.function(...)`` from syntax."""

    def __init__(self, decorator: ast.expr, source: Source, closure: Closure) -> None:
        self.call = decorator if type(decorator) is ast.Call else None
        self.source = source
        self.closure = closure

    def options(self) -> FunctionOptions:
        result = FunctionOptions()
        if self.call is None:
            return result
        for keyword in self.call.keywords:
            key, value = keyword.arg, keyword.value
            if key is None:
                raise ParserSyntaxError(
                    "Unsupported `@pl.function(**kwargs)`: write the keywords out", self._span(value)
                )
            if key == "type":
                result.type = self._member(value, FunctionType, "FunctionType", "type")
            elif key == "level":
                result.level = self._optional(value, Level, "Level", "level")
            elif key == "role":
                result.role = self._optional(value, Role, "Role", "role")
            elif key == "auto_scope":
                if type(value) is not ast.Constant or not isinstance(value.value, bool):
                    raise ParserSyntaxError("`@pl.function(auto_scope=...)` must be a bool literal", self._span(value))
                result.auto_scope = value.value
        return result

    def _span(self, node: ast.expr) -> Any:
        return self.source.span(node)

    def _optional(self, node: ast.expr, enum: Any, name: str, keyword: str) -> Any:
        if type(node) is ast.Constant and node.value is None:
            return None
        return self._member(node, enum, name, keyword)

    def _member(self, node: ast.expr, enum: Any, name: str, keyword: str) -> Any:
        parts = dotted(node)
        if (
            parts is not None
            and len(parts) in (2, 3)
            and parts[-2] == name
            and (len(parts) == 2 or self.closure.alias(parts[0]) == "pl")
        ):
            found = enum.__members__.get(parts[-1])
            if found is not None:
                return found
            hint = did_you_mean(parts[-1], enum.__members__) or f"Valid: {', '.join(enum.__members__)}"
            if keyword == "type":
                raise ParserSyntaxError(
                    f"Unsupported `@pl.function`(type=...) value: Unknown FunctionType value: {parts[-1]}",
                    self._span(node),
                    hint,
                )
            raise ParserSyntaxError(f"Unknown {name} value: {parts[-1]}", self._span(node), hint)
        if keyword == "type":
            raise ParserSyntaxError(
                f"Unsupported `@pl.function`(type=...) value: {ast.unparse(node)}",
                self._span(node),
                "Write type=pl.FunctionType.InCore",
            )
        raise ParserSyntaxError(f"Expected pl.{name}.<name> for {keyword}=, got {ast.unparse(node)}", self._span(node))

    def literal_attrs(self) -> dict[str, Any]:
        """``attrs={...}`` read from syntax, where no evaluated snapshot exists."""
        node = next((k.value for k in self.call.keywords if k.arg == "attrs"), None) if self.call is not None else None
        if node is None:
            return {}
        if type(node) is not ast.Dict:
            raise ParserSyntaxError("@pl.function(attrs=...) must be a dict literal", self._span(node))
        result = {}
        for key, value in zip(node.keys, node.values, strict=True):
            if key is None:
                raise ParserSyntaxError("Unsupported `**` unpacking in @pl.function(attrs=...)", self._span(node))
            if type(key) is not ast.Constant or not isinstance(key.value, str):
                raise ParserSyntaxError("Attrs dict key must be a string literal", self._span(key))
            if type(value) is not ast.Constant:
                raise ParserSyntaxError(f"Unsupported value for @pl.function attr '{key.value}'", self._span(value))
            result[key.value] = normalize_attr(key.value, value.value)
        return result


# --- inline functions -------------------------------------------------------------------------------------------------


def inline(func: Callable[..., Any]) -> InlineFunction:
    """Keep a function as syntax; its statements are expanded where a parsed body calls it by its bare name."""
    frame = sys._getframe(1)
    closure = _closure_of(frame, func)
    source, node = locate_function(func)
    return InlineFunction(
        func.__name__,
        node,
        [a.arg for a in node.args.args],
        source.filename,
        source.lines,
        source.line_offset,
        source.col_offset,
        {**closure.globals, **closure.locals},
    )


__all__ = ["FunctionOptions", "InlineFunction", "function", "inline", "parse_class", "parse_function", "program"]
