"""The parser of one function: signature, prologue, body, and the collection of its errors."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from ..ir.dtype import BY_NAME, DataType
from ..ir.enums import FunctionType, InlineLanguage, Level, ParamDirection, Role, level_to_linqu_level
from ..ir.expr import ConstFloat, ConstInt, Expr, MemRef, Var
from ..ir.program import Function
from ..ir.span import Span
from ..ir.stmt import InlineStmt, SeqStmts
from ..ir.tree import walk
from ..ir.type import ScalarType, TensorType, Type
from ..ir.type_fields import type_expressions
from .closure import MISSING, Closure, dotted
from .comments import CommentQueue, function_comments
from .context import ProgramContext, Signature
from .errors import (
    BUG_CLASS_EXCEPTIONS,
    ParserError,
    ParserSyntaxError,
    ParserTypeError,
    Suppressed,
    UnsupportedFeatureError,
    first_of,
)
from .scope import POISON
from .source import Source
from .spmd import Spmd

# Python recurses about six frames a nesting level of the body; deeper programs get a clear error instead of a crash.
MAX_DEPTH = 100


class FunctionOptions:
    """What a decorator says of a function."""

    __slots__ = ("attrs", "auto_scope", "external_source", "level", "role", "strict_ssa", "type")

    def __init__(
        self,
        type: FunctionType = FunctionType.Opaque,
        level: Level | None = None,
        role: Role | None = None,
        attrs: dict[str, Any] | None = None,
        auto_scope: bool = True,
        strict_ssa: bool = False,
        external_source: str | None = None,
    ) -> None:
        self.type = type
        self.level = level
        self.role = role
        self.attrs = attrs or {}
        self.auto_scope = auto_scope
        self.strict_ssa = strict_ssa
        self.external_source = external_source


class FunctionParser(Spmd):
    """Parses one ``def``. Statement by statement: an error ends its statement only, and all errors are reported."""

    def __init__(
        self,
        node: ast.FunctionDef,
        source: Source,
        closure: Closure,
        context: ProgramContext,
        options: FunctionOptions,
        comments: CommentQueue | None = None,
    ) -> None:
        super().__init__(source, closure, context)
        self.node = node
        self.options = options
        self.function_name = node.name
        self.func_type = options.type
        self.level = options.level
        self.role = options.role
        self.auto_scope = options.auto_scope
        self.strict_ssa = options.strict_ssa
        if comments is None:
            comments = CommentQueue(function_comments(source, node))
        self.comments = comments
        self.memref_bases: dict[str, Var] = {}
        self.declared: dict[str, tuple[Any, MemRef]] = {}
        self.declared_names: dict[int, str] = {}
        self.symbol_params: dict[Var, Var] = {}
        self._branch_stores: frozenset[str] | None = None
        self.inline_frames: list[tuple[str, Any]] = []
        self.has_left = False  # a branch that was resolved has returned: what follows is never reached
        self.declared_results: list[Type] = []
        self.split_modes: list[Any] = []
        self._open_split: list[bool | None] = []
        self._manual_nodes: set[ast.stmt] = set()
        self._depth = 0
        self._signature: Signature | None = None
        self._directions: list[ParamDirection] = []
        self._params: list[Var] = []
        self.attrs: dict[str, Any] = {}

    # --- signature ----------------------------------------------------------------------------------------------------

    def parse_signature(self) -> Signature:
        """Parameters, directions and declared results; parsed once, before any body."""
        if self._signature is not None:
            return self._signature
        node = self.node
        if type(node) is not ast.FunctionDef:
            self.fail("a DSL function must be a plain def, not async", node, None, UnsupportedFeatureError)
        self._refuse_parameters(node.args)
        if self.options.external_source is not None and self.func_type not in (FunctionType.AIC, FunctionType.AIV):
            self.type_error("external_source is only valid on FunctionType.AIC or FunctionType.AIV", node)
        for arg in node.args.args:
            if arg.arg == "self" and (arg.annotation is None or self.context.is_program and arg is node.args.args[0]):
                if self._is_host_worker():
                    self.fail(f"SubWorker function '{node.name}' must not declare 'self'", arg)
                continue
            self._parameter(arg)
        self.declared_results = self.return_types(node.returns)
        self._signature = Signature(
            self.function_name,
            self._params,
            self._directions,
            self.declared_results,
            self.func_type,
            self.level,
            self.role if self.role is not None else self._derived_role(),
        )
        return self._signature

    def _derived_role(self) -> Role | None:
        from ..ir.program import DERIVED_PLACE

        derived = DERIVED_PLACE.get(self.func_type)
        return None if derived is None else derived[1]

    def _refuse_parameters(self, args: ast.arguments) -> None:
        for wrong, what in (
            (args.vararg, "*args"),
            (args.kwarg, "**kwargs"),
            (args.kwonlyargs and args.kwonlyargs[0], "keyword-only parameters"),
            (args.posonlyargs and args.posonlyargs[0], "positional-only parameters"),
        ):
            if wrong:
                self.fail(f"{what} are not supported in a DSL function", wrong, "Name each parameter")
        if args.defaults and not self.allow_defaults:
            self.fail("parameter defaults are not supported in a DSL function", args.defaults[0], "Pass the value")

    allow_defaults = False

    def _parameter(self, arg: ast.arg) -> None:
        if arg.annotation is None:
            self.type_error(
                f"Parameter '{arg.arg}' missing type annotation",
                arg,
                f"Write {arg.arg}: pl.Tensor[[64, 128], pl.FP32]",
            )
        kind, direction = self.parameter_type(arg.annotation)
        var = self._symbol_parameter(arg, kind) or Var(arg.arg, kind, self.span(arg))
        self._params.append(var)
        self._directions.append(direction)
        self.scopes.bind(arg.arg, var)
        if isinstance(kind, TensorType):
            for extent in kind.shape:
                if type(extent) is Var:
                    self.declared_symbols.add(extent)

    def _symbol_parameter(self, arg: ast.arg, kind: Type) -> Var | None:
        """A scalar INDEX parameter named like a ``pl.dynamic`` symbol *is* that symbol for later annotations."""
        value = self.closure.get(arg.arg)
        if not getattr(value, "is_dynvar", False) or not (
            isinstance(kind, ScalarType) and kind.dtype is DataType.INDEX
        ):
            return None
        symbol = self.context.dynamic_var(value)
        if any(inner is symbol for p in self._params for e in type_expressions(p.type) for inner in walk(e)):
            self.type_error(
                f"parameter '{arg.arg}' shadows the dynamic symbol '{value.name}', which an earlier parameter uses",
                arg,
                "Put the scalar parameter before the tensors that use the symbol",
            )
        var = Var(arg.arg, kind, self.span(arg))
        self.symbol_params[symbol] = self.symbol_params[value.unwrap()] = var
        return var

    def stored_in_branches(self) -> frozenset[str]:
        """Names that are assigned inside a branch or loop of the function."""
        if self._branch_stores is None:
            blocks = [n for n in ast.walk(self.node) if type(n) in (ast.If, ast.For, ast.While)]
            names = (n for block in blocks for n in ast.walk(block) if type(n) is ast.Name)
            self._branch_stores = frozenset(n.id for n in names if type(n.ctx) is ast.Store)
        return self._branch_stores

    # --- body ---------------------------------------------------------------------------------------------------------

    def parse(self) -> Function:
        """The IR of the function; raises the first of all errors found, which carries the others."""
        try:
            signature = self.parse_signature()
        except (ParserError, *BUG_CLASS_EXCEPTIONS):
            raise
        except (TypeError, ValueError, RuntimeError) as error:
            raise self._wrapped(error, self.node) from error
        span = self.span(self.node)
        body, binding = self._parse_body(span)
        if self.errors:
            raise first_of(self.errors)
        signature.return_types = self.final_results(signature.return_types)
        attrs = {**self.options.attrs, **self.attrs}
        if not self.options.auto_scope:
            attrs["auto_scope"] = False
        if self.options.external_source is not None:
            attrs["external_source"] = self.options.external_source
        try:
            return Function(
                self.function_name,
                list(zip(signature.params, signature.directions, strict=True)),
                signature.return_types,
                body,
                span,
                self.func_type,
                self.level,
                self.role,
                attrs,
                binding,
            )
        except (TypeError, ValueError) as error:
            raise self._wrapped(error, self.node) from error

    def final_results(self, declared: list[Type]) -> list[Type]:
        """Result types once the body is parsed; a jit specialisation infers those that were not declared."""
        return declared

    def _wrapped(self, error: Exception, node: Any) -> ParserSyntaxError:
        wrapped = ParserSyntaxError(
            f"Failed to parse function '{self.function_name}': {error}",
            self.span(node),
            "Check your function definition for errors",
        )
        wrapped.__cause__ = error
        return wrapped

    def _parse_body(self, span: Span) -> tuple[Any, bool]:
        statements = list(self.node.body)
        statements = self._prologue(statements)
        if self._is_host_worker():
            return self._host_worker_body(statements, span)
        if self.options.external_source is not None:
            if any(not _is_empty(s) for s in statements):
                self.fail("an external kernel must have an empty '...' body", statements[0])
            return SeqStmts([], span), False
        with self.collecting() as stmts:
            self.block(statements)
        return self.body_of(stmts, span), False

    def _prologue(self, statements: list[ast.stmt]) -> list[ast.stmt]:
        """Docstring and ``pl.func_attr({...})`` calls at the head of a body."""
        i = 0
        if statements and _docstring(statements[0]) is not None:
            if len(statements) > 1:
                self.comments.add_docstring(_docstring(statements[0]) or "")
            i = 1
        while i < len(statements):
            statement = statements[i]
            call = statement.value if type(statement) is ast.Expr else None
            parts = dotted(call.func) if type(call) is ast.Call else None
            if parts is None or parts[-1] != "func_attr":
                break
            for key, value in self.function_attrs(call).items():  # type: ignore[arg-type]
                if key in self.attrs or key in self.options.attrs:
                    self.fail(f"Duplicate function attribute '{key}'", statement)
                self.attrs[key] = value
            i += 1
        return statements[i:]

    def _is_host_worker(self) -> bool:
        return self.role is Role.SubWorker and self.level is not None and level_to_linqu_level(self.level) >= 3

    def _host_worker_body(self, statements: list[ast.stmt], span: Span) -> tuple[Any, bool]:
        """A host callback is Python, kept as text; a body of ``...`` is bound at run time."""
        abstract = all(
            type(s) is ast.Expr and type(s.value) is ast.Constant and s.value.value is ... for s in statements
        )
        if abstract:
            return InlineStmt("", InlineLanguage.Python, span), True
        text = "\n".join(ast.unparse(s) for s in statements)
        return InlineStmt(text, InlineLanguage.Python, span), False

    def inline_body(self, node: ast.FunctionDef) -> None:
        """The statements of an inline function, as part of the caller."""
        statements = node.body
        if statements and _docstring(statements[0]) is not None:
            statements = statements[1:]
        self.block(statements)

    def block(self, statements: list[ast.stmt]) -> None:
        """Statements in order; an error ends its statement and is kept."""
        self._depth += 1
        if self._depth > MAX_DEPTH:
            self._depth -= 1
            self.fail(
                f"statements are nested more than {MAX_DEPTH} levels deep",
                statements[0],
                "Move an inner part to a function of its own",
            )
        handlers = self.STATEMENTS
        comments, lines = self.comments, self.source.lines
        try:
            for node in statements:
                comments.reach(node, lines)
                handler = handlers.get(type(node))
                try:
                    if handler is None:
                        self.fail(
                            f"Unsupported statement type: {type(node).__name__}",
                            node,
                            _STATEMENT_HINTS.get(type(node)),
                            UnsupportedFeatureError,
                        )
                    handler(self, node)
                except Suppressed:
                    self._poison(node)
                except ParserError as error:
                    self.errors.append(error)
                    self._poison(node)
                except BUG_CLASS_EXCEPTIONS:
                    raise
                except (TypeError, ValueError, RuntimeError, IndexError, KeyError) as error:
                    if isinstance(error, RecursionError):
                        self.fail(
                            "the statement is nested too deeply", node, "Name its inner parts in statements before"
                        )
                    self.errors.append(self._wrapped(error, node))
                    self._poison(node)
                if self.has_left:
                    comments.skip_to(statements[-1].end_lineno or node.lineno)
                    break
            if statements:
                last = statements[-1]
                if len(statements) > 1 and any(type(s) is ast.Return for s in statements[:-1]):
                    self.warn("statements behind a return are never reached", last)
                comments.end_block(last.end_lineno or last.lineno, last.col_offset, self.source)
        finally:
            self._depth -= 1

    def _poison(self, node: ast.stmt) -> None:
        """Names that a failed statement would have defined: their later uses are silent. Its comments go with it."""
        self.comments.take_pending()
        for inner in ast.walk(node):
            if type(inner) is ast.Name and type(inner.ctx) is ast.Store and self.scopes.lookup(inner.id) is None:
                self.scopes.bind(inner.id, POISON)

    def stmt_pass(self, node: ast.Pass) -> None:
        """Emits nothing; comments wait for the next statement."""

    # --- constructs in expression position ----------------------------------------------------------------------------

    def typed_constant(self, node: ast.Call) -> Expr:
        """``pl.const(value, dtype)``."""
        if len(node.args) != 2 or node.keywords:
            self.fail("pl.const() requires exactly 2 arguments", node)
        literal = node.args[0]
        sign = 1
        if type(literal) is ast.UnaryOp and type(literal.op) is ast.USub:
            literal, sign = literal.operand, -1
        value = literal.value if type(literal) is ast.Constant else None
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            self.fail("pl.const() value must be a numeric literal", node.args[0])
        dtype = self.dtype(node.args[1])
        span = self.span(node)
        if isinstance(value, float):
            return ConstFloat(sign * value, dtype, span)
        return ConstInt(sign * value, dtype, span)

    def misplaced_launch(self, node: ast.Call) -> Expr:
        name = (dotted(node.func) or ("submit",))[-1]
        self.fail(f"pl.{name}() must be unpacked as a 2-tuple", node, f"Write out, tid = pl.{name}(self.kernel, ...)")

    def alloc(self, node: ast.Call) -> Expr:
        """The printed allocation form ``pl.tile.alloc(space, size[, pinned=True])``."""
        namespace = (dotted(node.func) or ("", "tile", ""))[-2]
        spelling = f"pl.{namespace}.alloc"
        if len(node.args) != 2:
            self._alloc_error(f"{spelling} expects 2 positional args, got {len(node.args)}", node)
        pinned = False
        attrs = None
        for keyword in node.keywords:
            if keyword.arg == "attrs":
                attrs = self.operation_attrs(keyword.value)
                continue
            if keyword.arg != "pinned":
                self._alloc_error(f"{spelling} accepts no keyword argument '{keyword.arg}'", node)
            literal = keyword.value
            if type(literal) is not ast.Constant or not isinstance(literal.value, bool):
                self._alloc_error(f"{spelling}: 'pinned' must be a bool literal", node)
            else:
                pinned = literal.value
        from ..ops.surface import NAMESPACES

        args = [self.argument(a) for a in node.args]
        kwargs = {"pinned": True} if pinned else {}
        result = self.call_surface(NAMESPACES[namespace]["alloc"], args, kwargs, spelling, node)
        return result.replace(attrs=attrs) if attrs else result  # type: ignore[no-any-return]

    def _alloc_error(self, message: str, node: ast.Call) -> None:
        from .errors import InvalidOperationError

        raise InvalidOperationError(message, self.span(node))

    def shard(self, node: ast.Call) -> Expr:
        parts = dotted(node.func) or ("pl", "aiv_shard")
        return self.cross_lane(node, parts[-1], tile_form=len(parts) == 3 and parts[1] == "tile")

    CONSTRUCTS: dict[str, Callable[[Any, ast.Call], Any]] = {}
    STATEMENTS: dict[type, Callable[[Any, Any], None]] = {}


FunctionParser.CONSTRUCTS = {
    "const": FunctionParser.typed_constant,
    "submit": FunctionParser.misplaced_launch,
    "spmd_submit": FunctionParser.misplaced_launch,
    "system.task_dummy": FunctionParser.task_dummy,
    "tile.alloc": FunctionParser.alloc,
    "tensor.alloc": FunctionParser.alloc,
    "aiv_shard": FunctionParser.shard,
    "aic_gather": FunctionParser.shard,
    "tile.aiv_shard": FunctionParser.shard,
    "tile.aic_gather": FunctionParser.shard,
    "tensor.aiv_shard": FunctionParser.shard,
    "tensor.aic_gather": FunctionParser.shard,
}

FunctionParser.STATEMENTS = {
    ast.Assign: FunctionParser.stmt_assign,
    ast.AnnAssign: FunctionParser.stmt_ann_assign,
    ast.AugAssign: FunctionParser.stmt_aug_assign,
    ast.Expr: FunctionParser.stmt_expr,
    ast.Return: FunctionParser.stmt_return,
    ast.If: FunctionParser.stmt_if,
    ast.For: FunctionParser.stmt_for,
    ast.While: FunctionParser.stmt_while,
    ast.With: FunctionParser.stmt_with,
    ast.Break: FunctionParser.stmt_break,
    ast.Continue: FunctionParser.stmt_continue,
    ast.Pass: FunctionParser.stmt_pass,
}
_STATEMENT_HINTS: dict[type, str] = {
    ast.Assert: "Use pl.static_assert(...) for compile-time checks",
    ast.FunctionDef: "Define helpers outside the function, with @pl.inline",
    ast.Import: "Import outside the function",
    ast.ImportFrom: "Import outside the function",
}


def _docstring(node: ast.stmt) -> str | None:
    if type(node) is ast.Expr and type(node.value) is ast.Constant and isinstance(node.value.value, str):
        return node.value.value
    return None


def _is_empty(node: ast.stmt) -> bool:
    return type(node) is ast.Pass or (
        type(node) is ast.Expr and type(node.value) is ast.Constant and node.value.value is ...
    )


__all__ = ["BY_NAME", "MISSING", "FunctionOptions", "FunctionParser", "ParserTypeError"]
