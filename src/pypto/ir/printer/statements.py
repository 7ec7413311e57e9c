"""Statements: assignments, yields as results, branches, loops."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from typing import Any, ClassVar

from ...diag.errors import InternalError, internal_check_span
from ..enums import ForKind
from ..expr import Call, ConstInt, Expr, Var
from ..stmt import (
    AssignStmt,
    BreakStmt,
    ContinueStmt,
    EvalStmt,
    ForStmt,
    IfStmt,
    InlineStmt,
    ReturnStmt,
    RuntimeScopeStmt,
    ScopeStmt,
    SeqStmts,
    Stmt,
    WhileStmt,
    YieldStmt,
)
from ..type import INDEX_TYPE, TASK_ID_TYPE
from .types import TypePrinter

INDENT = "    "
_LOOPS = {
    ForKind.Sequential: "range",
    ForKind.Parallel: "parallel",
    ForKind.Unroll: "unroll",
    ForKind.Pipeline: "pipeline",
}


def flat(stmt: Stmt) -> Sequence[Stmt]:
    """The statements of a body; nested sequences add no level."""
    if type(stmt) is not SeqStmts:
        return (stmt,)
    if not any(type(inner) is SeqStmts for inner in stmt.stmts):
        return stmt.stmts
    return [leaf for inner in stmt.stmts for leaf in flat(inner)]


def assigned_op(stmt: Stmt, op_name: str) -> bool:
    """Whether a statement assigns the result of a call of this op."""
    return type(stmt) is AssignStmt and type(stmt.value) is Call and stmt.value.op.name == op_name


class StatementPrinter(TypePrinter):
    """Adds statements; the text grows in ``lines``."""

    _STATEMENTS: ClassVar[dict[type, Callable[[Any, Any, str], None]]] = {}

    def __init__(
        self,
        prefix: str,
        names: Mapping[Expr, str],
        concise: bool = False,
        explicit_layout: bool = False,
        bases: Container[Var] = frozenset(),
    ) -> None:
        super().__init__(prefix, names, explicit_layout, bases)
        self.concise = concise
        self.lines: list[str] = []
        # The yields that print as definitions of the return variables of the construct around them.
        self._results: dict[Stmt, Sequence[Var]] = {}
        self._at_function_level = False
        self._task_ids: set[Any] = set()  # the task ids that are defined already

    # --- sequences ----------------------------------------------------------------------------------------------------

    def body(self, stmt: Stmt, indent: str) -> None:
        """A body of at least one line."""
        self.block(flat(stmt), indent)

    def block(self, stmts: Sequence[Stmt], indent: str) -> None:
        """Statements in order; ``pass`` for none."""
        if not stmts:
            self.lines.append(indent + "pass")
            return
        add, names, table = self.lines.append, self.names, self._STATEMENTS
        type_texts, concise = self._type_texts, self.concise
        for index, stmt in enumerate(stmts):
            comments = getattr(stmt, "_comments", None)
            if comments:
                self.comments(stmt, indent)
            kind = type(stmt)
            if kind is not AssignStmt:
                handler = table.get(kind)
                if handler is None:
                    raise InternalError(f"{kind.__name__} has no printed form")
                handler(self, stmt, indent)
                continue
            # The common statement, without a detour.
            value: Any = stmt.value  # type: ignore[attr-defined]
            var: Var = stmt.var  # type: ignore[attr-defined]
            if type(value) is Call:
                if value.op.name == "system.task_invalid" and not comments and self._is_placeholder(stmts, index):
                    continue
                text = self._call(value)
            else:
                text = self.expr(value)
            if var.type is TASK_ID_TYPE:
                self._task_ids.add(var)
            if concise:
                add(f"{indent}{names[var]} = {text}")
            else:
                annotation = type_texts.get(id(var.type)) or self.type(var.type)
                add(f"{indent}{names[var]}: {annotation} = {text}")

    def comments(self, stmt: Stmt, indent: str) -> None:
        """The comments of a statement, above it."""
        for comment in stmt.leading_comments:
            for line in comment.split("\n"):
                self.lines.append(f"{indent}# {line}" if line else f"{indent}#")

    # --- simple statements --------------------------------------------------------------------------------------------

    def _return(self, stmt: ReturnStmt, indent: str) -> None:
        self.lines.append(f"{indent}return {self.exprs(stmt.value)}" if stmt.value else f"{indent}return")

    def _eval(self, stmt: EvalStmt, indent: str) -> None:
        self.lines.append(indent + self.expr(stmt.expr))

    def _break(self, _stmt: BreakStmt, indent: str) -> None:
        self.lines.append(indent + "break")

    def _continue(self, _stmt: ContinueStmt, indent: str) -> None:
        self.lines.append(indent + "continue")

    def _inline(self, stmt: InlineStmt, indent: str) -> None:
        for line in (stmt.body or "pass").split("\n"):
            self.lines.append(indent + line if line else line)

    def _yield(self, stmt: YieldStmt, indent: str) -> None:
        results = self._results.get(stmt)
        if results is None and self._at_function_level:
            self._return(stmt, indent)  # type: ignore[arg-type]
            return
        text = f"{self.pl}yield_({self.exprs(stmt.value)})"
        if results:
            names = ", ".join([self.names[var] for var in results])
            single = len(results) == 1 and not self.concise
            text = f"{names}: {self.type(results[0].type)} = {text}" if single else f"{names} = {text}"
        self.lines.append(indent + text)

    def _nested(self, stmt: Stmt, indent: str, results: Sequence[Var] = ()) -> None:
        """A body one level deeper, whose last yield defines ``results``."""
        outer, self._at_function_level = self._at_function_level, False
        if results:
            found = _last_yield(stmt)
            if found is not None:
                self._results[found] = results
        self.body(stmt, indent + INDENT)
        self._at_function_level = outer

    def _is_placeholder(self, stmts: Sequence[Stmt], index: int) -> bool:
        """Whether a null task id only stands for the ``as tid`` of the scope behind it, which re-creates it.

        It does so for a new name; a name that has a value already is assigned by ``as``.
        """
        stmt: Any = stmts[index]
        if index + 1 == len(stmts) or stmt.value.attrs or stmt.value.args:
            return False
        scope = stmts[index + 1]
        if not isinstance(scope, ScopeStmt) or scope.attrs.get("task_id_var") is not stmt.var:
            return False
        first = stmt.var not in self._task_ids
        self._task_ids.add(stmt.var)
        return first

    def defines(self, variables: Iterable[Var]) -> None:
        """Note variables that something other than an assignment defines."""
        self._task_ids.update(var for var in variables if var.type is TASK_ID_TYPE)

    # --- branches and loops -------------------------------------------------------------------------------------------

    def _if(self, stmt: IfStmt, indent: str) -> None:
        if stmt.return_vars:
            self.defines(stmt.return_vars)
        self.lines.append(f"{indent}if {self.expr(stmt.condition)}:")
        self._nested(stmt.then_body, indent, stmt.return_vars)
        if stmt.else_body is not None:
            self.lines.append(indent + "else:")
            self._nested(stmt.else_body, indent, stmt.return_vars)

    def _carried(self, stmt: ForStmt | WhileStmt) -> tuple[str, str]:
        """The loop's carries as a target tuple and as ``init_values=(...)``."""
        self.defines(stmt.return_vars)
        targets = ", ".join([self.names[arg] for arg in stmt.iter_args])
        values = self.exprs([arg.initValue for arg in stmt.iter_args])
        comma = "," if len(stmt.iter_args) == 1 else ""
        return f"({targets}{comma})", f"init_values=({values}{comma})"

    def _for(self, stmt: ForStmt, indent: str) -> None:
        kind = _LOOPS[stmt.kind]
        target = self.names[stmt.loop_var]
        texts = self._bounds(stmt)
        attrs = dict(stmt.attrs)
        stages = attrs.pop("pipeline_stages", None)
        if stages is not None:
            texts.append(f"stage={stages}")
        internal_check_span(
            stages is not None or stmt.kind is not ForKind.Pipeline, "pipeline loop without pipeline_stages", stmt.span
        )
        if stmt.iter_args:
            internal_check_span(stmt.kind is not ForKind.Unroll, "pl.unroll does not support iter_args", stmt.span)
            targets, values = self._carried(stmt)
            target = f"{target}, {targets}"
            texts.append(values)
        for key, value in attrs.items():
            internal_check_span(
                type(value) in (int, float, bool, str),
                f"loop attribute '{key}' has no printed form for a value of type {type(value).__name__}",
                stmt.span,
            )
        texts += self.attrs(attrs)
        self.lines.append(f"{indent}for {target} in {self.pl}{kind}({', '.join(texts)}):")
        self._nested(stmt.body, indent, stmt.return_vars)

    def _bounds(self, stmt: ForStmt) -> list[str]:
        # Only an INDEX zero or one may be left out: that is what the reader puts in.
        if not _is_index(stmt.step, 1):
            bounds = [stmt.start, stmt.stop, stmt.step]
        elif not _is_index(stmt.start, 0):
            bounds = [stmt.start, stmt.stop]
        else:
            bounds = [stmt.stop]
        stop = stmt.stop
        if type(stop) is ConstInt and stop.type is not INDEX_TYPE and stmt.loop_var.type is INDEX_TYPE:
            # The loop variable takes the dtype of this bound, unless an INDEX constant is written next to it.
            if not any(type(bound) is ConstInt and bound.type is INDEX_TYPE for bound in bounds):
                bounds = [stmt.start, stop] if _is_index(stmt.start, 0) else [stmt.start, stop, stmt.step]
        return [self.expr(bound) for bound in bounds]

    def _while(self, stmt: WhileStmt, indent: str) -> None:
        condition = self.expr(stmt.condition)
        if not stmt.iter_args:
            self.lines.append(f"{indent}while {condition}:")
            self._nested(stmt.body, indent, stmt.return_vars)
            return
        targets, values = self._carried(stmt)
        self.lines.append(f"{indent}for {targets} in {self.pl}while_({values}):")
        self.lines.append(f"{indent}{INDENT}{self.pl}cond({condition})")
        if flat(stmt.body):
            self._nested(stmt.body, indent, stmt.return_vars)


def _is_index(bound: Expr, value: int) -> bool:
    return type(bound) is ConstInt and bound.type is INDEX_TYPE and bound.value == value


def _last_yield(body: Stmt) -> Stmt | None:
    """The last yield at the top of a body; a runtime scope at its end is transparent."""
    stmts = flat(body)
    for stmt in reversed(stmts):
        if type(stmt) is YieldStmt:
            return stmt
    if stmts and type(stmts[-1]) is RuntimeScopeStmt:
        return _last_yield(stmts[-1].body)
    return None


_S = StatementPrinter
_S._STATEMENTS.update(
    {
        ReturnStmt: _S._return,
        EvalStmt: _S._eval,
        BreakStmt: _S._break,
        ContinueStmt: _S._continue,
        InlineStmt: _S._inline,
        YieldStmt: _S._yield,
        IfStmt: _S._if,
        ForStmt: _S._for,
        WhileStmt: _S._while,
    }
)
