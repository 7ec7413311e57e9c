"""State and small services that all parts of the function parser share."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

from ..ir import scalar as scalars
from ..ir.dtype import DataType
from ..ir.enums import FunctionType, Level, Role
from ..ir.expr import ConstBool, ConstFloat, ConstInt, Expr, IterArg, Var
from ..ir.span import Span
from ..ir.stmt import AssignStmt, SeqStmts, Stmt, attach_leading_comments
from ..ir.type import Type, UnknownType
from .closure import MISSING, Closure
from .comments import CommentQueue
from .context import BufferMetadata, ProgramContext
from .errors import (
    BUG_CLASS_EXCEPTIONS,
    ParserError,
    ParserSyntaxError,
    ParserTypeError,
    SSAViolationError,
    UndefinedVariableError,
)
from .scope import ScopeStack
from .source import Source

LOOPS = ("range", "parallel", "unroll", "pipeline", "while", "while_")


class Construct:
    """An open ``if``, loop or scope, as far as yields, breaks and nesting rules care."""

    __slots__ = ("iter_args", "kind", "node", "yield_allowed", "yield_names", "yield_node", "yield_types")

    def __init__(self, kind: str, node: ast.stmt | None = None) -> None:
        self.kind = kind
        self.node = node
        self.iter_args: list[IterArg] = []
        self.yield_allowed = True
        # names given by assignment-form yields, in order, with annotation types; None before the first yield
        self.yield_names: list[str] | None = None
        self.yield_types: list[Type] = []
        self.yield_node: ast.expr | None = None


class ParserBase:
    """Scopes, emission, spans and errors of one function body."""

    def __init__(self, source: Source, closure: Closure, context: ProgramContext) -> None:
        self.source = source
        self.closure = closure
        self.context = context
        self.scopes = ScopeStack()
        self.function_name = ""
        self.func_type = FunctionType.Opaque
        self.level: Level | None = None
        self.role: Role | None = None
        self.auto_scope = True
        self.strict_ssa = False
        self.rename_rebinds = False
        self.errors: list[ParserError] = []
        self.body: list[Stmt] = []
        self.constructs: list[Construct] = []
        self.comments = CommentQueue([])
        self.definition_spans: dict[Any, Span] = {}
        self.buffers: dict[Var, BufferMetadata] = {}
        self.dump_tags: list[Var] = []
        self.producers: dict[Var, tuple[Var, int]] = {}
        self.binding_counts: dict[Var, int] = {}
        self.return_values: list[tuple[list[Expr], Span]] = []
        self.rebind_counts: dict[str, int] = {}
        self.declared_symbols: set[Var] = set()  # extents of the parameters: they are never assigned
        self.named_call: Any = None  # the allocation that was given its variable's name
        self.statement_call: Any = None  # the call that is a statement of its own: it needs no value

    # --- spans and errors ---------------------------------------------------------------------------------------------

    def span(self, node: Any) -> Span:
        return self.source.span(node)

    def fail(
        self,
        message: str,
        node: Any,
        hint: str | None = None,
        cls: type[ParserError] = ParserSyntaxError,
    ) -> NoReturn:
        """Raise an error at a syntax node."""
        raise cls(message, self.span(node), hint)

    def type_error(self, message: str, node: Any, hint: str | None = None) -> NoReturn:
        raise ParserTypeError(message, self.span(node), hint)

    def evaluate(self, node: ast.expr, speculative: bool = False) -> Any:
        """The Python value of an expression over closure names, or ``MISSING``.

        What the evaluation raises is an error at the expression; with ``speculative`` it means ``MISSING`` too.
        """
        try:
            return self.closure.evaluate(node)
        except BUG_CLASS_EXCEPTIONS:
            raise
        except Exception as error:
            if speculative:
                return MISSING
            raise ParserTypeError(
                f"Failed to evaluate expression '{ast.unparse(node)}': {type(error).__name__}: {error}", self.span(node)
            ) from error

    def warn(self, message: str, node: Any, category: type[Warning] = UserWarning, in_texts: bool = False) -> None:
        """A warning at the user's line; none for texts unless asked for, since printed IR never warns."""
        span = self.span(node)
        if in_texts or not span.filename.startswith("<"):
            warnings.warn_explicit(message, category, span.filename, span.begin_line)

    # --- statements ---------------------------------------------------------------------------------------------------

    def emit(self, stmt: Stmt) -> None:
        """Append a statement, with the comments that wait for one."""
        pending = self.comments.take_pending()
        if pending:
            attach_leading_comments(stmt, pending)
        self.body.append(stmt)

    @contextmanager
    def collecting(self) -> Iterator[list[Stmt]]:
        """Statements emitted inside go to a list of their own."""
        outer, self.body = self.body, []
        try:
            yield self.body
        finally:
            self.body = outer

    def body_of(self, stmts: list[Stmt], span: Span) -> Stmt:
        """One statement as it is, else a sequence."""
        return stmts[0] if len(stmts) == 1 else SeqStmts(stmts, span)

    # --- names --------------------------------------------------------------------------------------------------------

    def assign(self, name: str, value: Expr, span: Span, node: Any, kind: Type | None = None) -> Var:
        """``name = value``: a new Var, or the Var that the name is bound to already; ``kind`` is an annotated type."""
        var = self.target_var(name, value.type if kind is None else kind, span, node)
        self.emit(AssignStmt(var, value, span))
        self.note_assignment(var)
        return var

    def target_var(self, name: str, type_: Type, span: Span, node: Any) -> Var:
        """The variable that an assignment to ``name`` defines, bound in the scope."""
        found = self.scopes.lookup(name)
        if self.strict_ssa:
            return self._strict_target(name, found, type_, span, node)
        if found is None:
            found = self.scopes.lookup_sibling(name)
            if found is not None and not (type(found) is Var and types_agree(found.type, type_)):
                found = None
            if found is not None:
                self.scopes.bind(name, found)
                return found  # type: ignore[no-any-return]
        if (
            type(found) is not Var
            or self.context.dynamic.get(found.name_hint) is found
            or (found.name_hint != name and found in self.declared_symbols)  # an alias of a dimension
        ):
            return self.new_var(name, type_, span)
        if self.rename_rebinds and self.scopes.depth_of(name) == self.scopes.depth:
            count = self.rebind_counts.get(name, 0) + 1
            while self.scopes.lookup(f"{name}_v{count}") is not None:
                count += 1
            self.rebind_counts[name] = count
            var = Var(f"{name}_v{count}", type_, span)
            self.scopes.bind(name, var)
            return var
        if not types_agree(found.type, type_):
            if name == "_":
                return self.new_var(name, type_, span)
            self.type_error(
                f"Cannot reassign '{name}' with a different type: was {found.type}, got {type_}",
                node,
                "Use another name, or convert the value to the type that the name has",
            )
        return found

    def _strict_target(self, name: str, found: Any, type_: Type, span: Span, node: Any) -> Var:
        here = name in self.scopes.tables[-1]
        if here and found in self.definition_spans:  # parameters, loop variables and iter args may be shadowed
            raise SSAViolationError(
                f"Variable '{name}' is already defined",
                span,
                hint="Use another name: under strict_ssa each name is defined once a scope",
                note="Under strict_ssa a variable can't be assigned twice",
                previous_span=self.definition_spans.get(found),
            )
        if not here and type(found) is Var and any(c.kind in LOOPS for c in self.constructs):
            raise SSAViolationError(
                f"Variable '{name}' is already defined outside this loop",
                span,
                hint="Carry the value with init_values=(...) and pl.yield_(...)",
                previous_span=self.definition_spans.get(found, found.span),
            )
        return self.new_var(name, type_, span)

    def bound_outside(self, name: str) -> Var | None:
        """The variable that a name has outside of the innermost branch or loop, or in the other branch of it.

        A definition in that branch or loop has to define this variable, so that the code behind it, and the next
        iteration, read the value. Anywhere else a definition may make a variable of its own.
        """
        inner = len(self.constructs)
        while inner and self.constructs[inner - 1].kind != "if" and self.constructs[inner - 1].kind not in LOOPS:
            inner -= 1
        if not inner or self.strict_ssa:
            return None
        depth = self.scopes.depth_of(name)
        found = self.scopes.lookup(name)
        # Each construct has one table of names.
        if depth < 0 or depth >= self.scopes.depth - len(self.constructs) + inner:
            sibling = self.scopes.lookup_sibling(name)
            found = sibling if found is None or found is sibling else None
        if type(found) is not Var or self.context.dynamic.get(found.name_hint) is found:
            return None
        return found

    def new_var(self, name: str, type_: Type, span: Span) -> Var:
        """A fresh variable bound in the innermost scope."""
        var = Var(name, type_, span)
        self.scopes.bind(name, var)
        if self.strict_ssa:
            self.definition_spans[var] = span
        return var

    def note_assignment(self, var: Var) -> None:
        """Records about a variable die when it is rebound."""
        self.binding_counts[var] = self.binding_counts.get(var, 0) + 1
        if self.producers:
            self.producers.pop(var, None)

    def undefined(self, name: str, node: Any) -> NoReturn:
        from .errors import did_you_mean

        hint = did_you_mean(name, self.scopes.names())
        raise UndefinedVariableError(
            f"Undefined variable '{name}'",
            self.span(node),
            hint or "Check the spelling, or define the name before this line",
        )

    # --- constants ----------------------------------------------------------------------------------------------------

    def number(self, value: Any, span: Span) -> Expr:
        """A Python number as a constant: ints are INDEX, floats FP32."""
        if isinstance(value, bool):
            return ConstBool(value, span)
        if isinstance(value, int):
            return ConstInt(value, DataType.INDEX, span)
        return ConstFloat(value, DataType.FP32, span)

    def negate(self, operand: Expr, span: Span) -> Expr:
        """``-operand``, folded on constants."""
        if type(operand) is ConstInt:
            return ConstInt(-operand.value, operand.dtype, span)
        if type(operand) is ConstFloat:
            return ConstFloat(-operand.value, operand.dtype, span)
        return scalars.neg(operand, span)


def types_agree(a: Type, b: Type) -> bool:
    """Whether a name of type ``a`` may be assigned a value of type ``b``: equal up to memrefs and provable extents."""
    if a is b or a == b:
        return True
    if isinstance(a, UnknownType) or isinstance(b, UnknownType):
        return True
    from .typecheck import same_up_to_proof

    return same_up_to_proof(a, b)
