"""Text entry points: ``pl.parse`` and ``pl.loads``."""

from __future__ import annotations

import ast
import builtins
import importlib
import itertools
import linecache
import sys
import traceback
import warnings
from typing import Any

from ..diag.concise import BUG_CLASS_EXCEPTIONS
from ..diag.parser_errors import ParserError, ParserSyntaxError
from ..ir.enums import FunctionType, Level, Role
from ..ir.paused_gc import paused_gc
from ..ir.program import Function, Program
from ..ir.span import Span
from .closure import dotted
from .entry import SOURCE_MAPS
from .errors import did_you_mean
from .source import SourceMap, forget, remember, split_lines

_ENUMS = {"type": ("FunctionType", FunctionType), "level": ("Level", Level), "role": ("Role", Role)}
_counter = itertools.count()


class _Namespace(dict):  # type: ignore[type-arg]
    """Globals of a running text: an undefined name is a dynamic symbol of that name."""

    def __missing__(self, name: str) -> Any:
        if name.startswith("__") and name.endswith("__"):
            raise KeyError(name)
        if hasattr(builtins, name):
            return getattr(builtins, name)
        value = self["pl"].dynamic(name)
        self[name] = value
        return value


def parse(code: str, filename: str = "<string>", source_map: SourceMap | None = None) -> Function | Program:
    """Run DSL source text and return the one ``ir.Function`` or ``ir.Program`` that it defines.

    ``pl`` and ``pld`` are there already; an undefined name is a dynamic symbol. ``source_map`` maps a line of the text
    to ``(file, line, column0)``. Raises ``ValueError`` when there is no item or more than one, ``SyntaxError`` for
    text that is not Python, the ``ParserError`` family for what the DSL refuses.
    """
    try:
        with paused_gc():
            tree = ast.parse(code, filename)
            compiled = compile(_without_dsl_bodies(tree), filename, "exec", dont_inherit=True)
    except (SyntaxError, RecursionError, MemoryError) as error:
        raise SyntaxError(f"Failed to compile code from {filename}: {error}") from error
    plain = split_lines(code)
    lines = [line + "\n" for line in plain]
    _check_decorators(tree.body, filename, plain)

    namespace = _Namespace(
        pl=importlib.import_module("pypto.language"), __name__=f"pypto_text_{next(_counter)}", __file__=filename
    )
    if "pld" in code:
        namespace["pld"] = importlib.import_module("pypto.language.distributed")
    for name in _class_annotation_names(tree):
        if not hasattr(builtins, name):
            namespace.setdefault(name, namespace["pl"].dynamic(name))
    saved = linecache.cache.get(filename)
    linecache.cache[filename] = (len(code), None, lines, filename)
    if source_map is not None:
        SOURCE_MAPS[filename] = source_map
    module = type(sys)(namespace["__name__"])
    module.__file__ = filename
    sys.modules[namespace["__name__"]] = module
    remember(filename, lines, tree)
    try:
        _execute(compiled, namespace, filename, code)
    finally:
        del sys.modules[namespace["__name__"]]
        forget(filename)
        SOURCE_MAPS.pop(filename, None)
        if saved is not None:
            linecache.cache[filename] = saved
        else:
            linecache.cache.pop(filename, None)
    items = {name: value for name, value in namespace.items() if isinstance(value, (Function, Program))}
    if not items:
        raise ValueError(f"No @pl.function or @pl.program found in {filename}")
    if len(items) > 1:
        raise ValueError(f"Multiple functions/programs found in {filename}: {list(items)}")
    return next(iter(items.values()))


def _execute(compiled: Any, namespace: _Namespace, filename: str, code: str) -> None:
    try:
        exec(compiled, namespace)
    except ParserError as error:
        for each in error.all_errors():
            if each.source_lines is None:
                each.source_lines = split_lines(code)
        raise
    except BUG_CLASS_EXCEPTIONS:
        raise
    except Exception as error:
        frames = [f for f in traceback.extract_tb(error.__traceback__) if f.filename == filename]
        if not frames:
            raise RuntimeError(f"Error executing code from {filename}: {error}") from error
        raise ParserSyntaxError(
            f"{type(error).__name__}: {error}",
            Span(filename, frames[-1].lineno or 1, 1),
            source_lines=split_lines(code),
        ) from error


def _without_dsl_bodies(tree: ast.Module) -> ast.Module:
    """The module to run: bodies of DSL functions are read as syntax only, so no byte code is made for them."""

    def stripped(node: ast.stmt) -> ast.stmt:
        if isinstance(node, ast.ClassDef):
            copy = ast.ClassDef(**{f: getattr(node, f) for f in node._fields})
            copy.body = [stripped(inner) for inner in node.body]
            return ast.copy_location(copy, node)
        if isinstance(node, ast.FunctionDef) and any(_names_function(d) for d in node.decorator_list):
            copy_f = ast.FunctionDef(**{f: getattr(node, f) for f in node._fields})
            copy_f.body = [ast.copy_location(ast.Pass(), node.body[0])]
            return ast.copy_location(copy_f, node)
        return node

    return ast.Module([stripped(node) for node in tree.body], tree.type_ignores)


def _class_annotation_names(tree: ast.Module) -> dict[str, None]:
    """Names in signatures inside classes: a class body does not ask the module's ``__missing__`` for what it lacks."""
    found: dict[str, None] = {}
    for cls in tree.body:
        for method in cls.body if isinstance(cls, ast.ClassDef) else ():
            if isinstance(method, ast.FunctionDef):
                for each in method.args.args:
                    _names(each.annotation, found)
                _names(method.returns, found)
    return found


def _names(node: ast.expr | None, found: dict[str, None]) -> None:
    """Names inside an expression, in order; the forms that annotations are made of are walked here, which is fast."""
    kind = type(node)
    if kind is ast.Name:
        found[node.id] = None  # type: ignore[union-attr]
    elif kind is ast.Attribute:
        _names(node.value, found)  # type: ignore[union-attr]
    elif kind is ast.Subscript:
        _names(node.value, found)  # type: ignore[union-attr]
        _names(node.slice, found)  # type: ignore[union-attr]
    elif kind is ast.Tuple or kind is ast.List:
        for each in node.elts:  # type: ignore[union-attr]
            _names(each, found)
    elif node is not None and kind is not ast.Constant:
        found.update({inner.id: None for inner in ast.walk(node) if isinstance(inner, ast.Name)})


def _names_function(decorator: ast.expr) -> bool:
    parts = dotted(decorator.func if isinstance(decorator, ast.Call) else decorator)
    return parts is not None and parts[-1] == "function"


def _check_decorators(body: list[ast.stmt], filename: str, lines: list[str]) -> None:
    """Enum keywords of every ``@pl.function(...)``, before the text runs."""
    for node in body:
        for decorator in getattr(node, "decorator_list", ()):
            if type(decorator) is not ast.Call or not _names_function(decorator):
                continue
            for keyword in decorator.keywords:
                if keyword.arg in _ENUMS:
                    _check_member(keyword.value, *_ENUMS[keyword.arg], filename, lines)
        if isinstance(node, ast.ClassDef):
            _check_decorators(node.body, filename, lines)


def _check_member(node: ast.expr, name: str, enum: Any, filename: str, lines: list[str]) -> None:
    if type(node) is ast.Constant and node.value is None:
        return
    parts = dotted(node)
    if parts is None or len(parts) < 2:
        return
    span = Span(filename, node.lineno, (node.end_col_offset or 1) - len(parts[-1]) + 1)
    if parts[-2] != name:
        if parts[-1] in enum.__members__:
            raise ParserSyntaxError(f"Expected pl.{name}.<name>, got {'.'.join(parts)}", span, source_lines=lines)
        return
    if parts[-1] not in enum.__members__:
        hint = did_you_mean(parts[-1], enum.__members__) or ""
        valid = f"Valid: {', '.join(enum.__members__)}"
        raise ParserSyntaxError(
            f"Unknown {name} value: {parts[-1]}", span, f"{hint} {valid}".strip(), source_lines=lines
        )


def loads(filepath: str) -> Function | Program:
    """As :func:`parse` for a UTF-8 file."""
    with open(filepath, encoding="utf-8") as file:
        return parse(file.read(), filename=str(filepath))


def _deprecated(old: str, new: str) -> None:
    warnings.warn(f"pl.{old} is deprecated: use pl.{new}", DeprecationWarning, stacklevel=3)


def _program_only(found: Function | Program) -> Program:
    if not isinstance(found, Program):
        raise ValueError("Expected @pl.program but found @pl.function")
    return found


def parse_program(code: str, filename: str = "<string>") -> Program:
    """Deprecated: :func:`parse`, with ``ValueError`` for a lone function."""
    _deprecated("parse_program", "parse")
    return _program_only(parse(code, filename))


def loads_program(filepath: str) -> Program:
    """Deprecated: :func:`loads`, with ``ValueError`` for a lone function."""
    _deprecated("loads_program", "loads")
    return _program_only(loads(filepath))
