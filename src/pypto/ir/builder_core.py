"""The flat builder: ``begin_*``/``end_*`` calls over a stack of open constructs.

:class:`pypto.ir.builder.IRBuilder` wraps it in context managers; ``pypto.pypto_core.ir.IRBuilder`` is this class.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar, TypeVar

from .attrs import normalize_attrs
from .enums import ForKind, FunctionType, Level, ParamDirection, Role, ScopeKind, SplitMode
from .expr import Expr, GlobalVar, IterArg, Var
from .node import FrozenList, wrong_kind
from .program import Function, Program, derive_place
from .span import UNKNOWN_SPAN, Span
from .stmt import (
    AssignStmt,
    ClusterScopeStmt,
    ForStmt,
    HierarchyScopeStmt,
    IfStmt,
    InCoreScopeStmt,
    ReturnStmt,
    RuntimeScopeStmt,
    ScopeStmt,
    SeqStmts,
    SplitAivScopeStmt,
    SpmdScopeStmt,
    Stmt,
    WhileStmt,
    attach_leading_comments,
)
from .type import Type
from .utils import _normalize_expr

# --- open constructs --------------------------------------------------------------------------------------------------


class _Context:
    """An open construct and the statements emitted into it so far."""

    what: ClassVar[str]

    def __init__(self, span: Span) -> None:
        self.span = span
        self.stmts: list[Stmt] = []
        self.comments: list[str] = []  # of the construct itself
        self.pending: list[list[str]] = []  # of statements still to come

    def emit(self, stmt: Stmt) -> None:
        self.stmts.append(stmt)


class _FunctionContext(_Context):
    what = "function"

    def __init__(self, span: Span, name: str) -> None:
        super().__init__(span)
        self.name = name
        self.params: list[tuple[Var, ParamDirection]] = []
        self.return_types: list[Type] = []
        self.type = FunctionType.Opaque
        self.level: Level | None = None
        self.role: Role | None = None
        self.attrs: dict[str, Any] = {}
        self.requires_runtime_binding = False


class _LoopContext(_Context):
    def __init__(self, span: Span) -> None:
        super().__init__(span)
        self.iter_args: list[IterArg] = []
        self.return_vars: list[Var] = []

    def check_counts(self) -> None:
        if len(self.iter_args) != len(self.return_vars):
            raise RuntimeError(
                f"the {self.what} has {len(self.iter_args)} iter_args but {len(self.return_vars)} return variables. "
                "They must match."
            )


class _ForContext(_LoopContext):
    what = "for loop"

    def __init__(self, span: Span, loop_var: Var, bounds: list[Expr], kind: ForKind, attrs: Any) -> None:
        super().__init__(span)
        self.loop_var = loop_var
        self.bounds = bounds
        self.kind = kind
        self.attrs = attrs


class _WhileContext(_LoopContext):
    what = "while loop"

    def __init__(self, span: Span, condition: Expr) -> None:
        super().__init__(span)
        self.condition = condition


class _IfContext(_Context):
    what = "if statement"

    def __init__(self, span: Span, condition: Expr) -> None:
        super().__init__(span)
        self.condition = condition
        self.else_stmts: list[Stmt] | None = None
        self.return_vars: list[Var] = []

    def emit(self, stmt: Stmt) -> None:
        (self.stmts if self.else_stmts is None else self.else_stmts).append(stmt)


class _ScopeContext(_Context):
    what = "scope"

    def __init__(self, span: Span, make: Callable[[Stmt, Span], ScopeStmt]) -> None:
        super().__init__(span)
        self.make = make


class _ProgramContext(_Context):
    what = "program"

    def __init__(self, span: Span, name: str) -> None:
        super().__init__(span)
        self.name = name
        self.declared: dict[str, GlobalVar] = {}
        self.functions: list[Function] = []

    def emit(self, stmt: Stmt) -> None:
        raise RuntimeError("Cannot emit a statement into a program: begin a function")


C = TypeVar("C", bound=_Context)

# --- the builder ------------------------------------------------------------------------------------------------------


class IRBuilder:
    """Builds functions and programs statement by statement.

    Every ``begin_x`` opens a construct that the matching ``end_x`` closes: it returns the node and emits it into the
    construct around (functions are not emitted: :meth:`add_function` puts them into a program). Calls out of order
    raise ``RuntimeError``.
    """

    def __init__(self) -> None:
        self._stack: list[_Context] = []
        self._pending: list[list[str]] = []  # comments pushed while nothing is open

    # functions

    def begin_function(
        self,
        name: str,
        span: Span,
        type: FunctionType = FunctionType.Opaque,
        level: Level | None = None,
        role: Role | None = None,
        attrs: Any = None,
        requires_runtime_binding: bool = False,
    ) -> None:
        """Open a function; not inside another one."""
        for outer in self._stack:
            if isinstance(outer, _FunctionContext):
                raise RuntimeError(f"Cannot begin function {name!r} inside function {outer.name!r}{_at(span)}")
        derive_place(type, level, role)  # a contradiction is reported here, not at the end
        context = _FunctionContext(span, name)
        context.type, context.level, context.role = type, level, role
        context.attrs = dict(normalize_attrs(attrs))
        context.requires_runtime_binding = requires_runtime_binding
        self._open(context)

    def func_arg(self, name: str, type: Type, span: Span, direction: ParamDirection = ParamDirection.In) -> Var:
        """Add a parameter to the open function."""
        if not isinstance(direction, ParamDirection):
            wrong_kind("func_arg", "direction", ParamDirection, direction)
        param = Var(name, type, span)
        self._top(_FunctionContext, "add a parameter").params.append((param, direction))
        return param

    def return_type(self, type: Type) -> None:
        """Add a result type to the open function."""
        if not isinstance(type, Type):
            wrong_kind("return_type", "type", Type, type)
        self._top(_FunctionContext, "add a return type").return_types.append(type)

    def add_function_attrs(self, attrs: Any) -> None:
        """Add attributes to the function that is open, at whatever depth; a key given before is an error."""
        for context in reversed(self._stack):
            if isinstance(context, _FunctionContext):
                for key, value in _pairs(attrs):
                    if key in context.attrs:
                        raise ValueError(f"Duplicate function attribute {key!r} of function {context.name!r}")
                    context.attrs.update(normalize_attrs({key: value}))
                return
        raise RuntimeError("Cannot add function attributes outside a function")

    def end_function(self, end_span: Span) -> Function:
        """Close the function and return it."""
        context = self._top(_FunctionContext, "end")
        span = _whole(context.span, end_span, context.stmts)
        function = Function(
            context.name,
            context.params,
            context.return_types,
            _body(context.stmts, span),
            span,
            context.type,
            context.level,
            context.role,
            context.attrs,
            context.requires_runtime_binding,
        )
        self._stack.pop()
        return function

    # loops

    def begin_for_loop(
        self,
        loop_var: Var,
        start: Expr | int,
        stop: Expr | int,
        step: Expr | int,
        span: Span,
        kind: ForKind = ForKind.Sequential,
        attrs: Any = None,
    ) -> None:
        """Open a for loop."""
        if not isinstance(loop_var, Var):
            wrong_kind("begin_for_loop", "loop_var", Var, loop_var)
        if not isinstance(kind, ForKind):
            wrong_kind("begin_for_loop", "kind", ForKind, kind)
        stored = normalize_attrs(attrs)
        if kind is ForKind.Pipeline and "pipeline_stages" not in stored:
            raise ValueError(f"a loop of kind Pipeline requires attrs={{'pipeline_stages': n}}{_at(span)}")
        self._need_function("begin for loop", span)
        bounds = [_normalize_expr(bound, span) for bound in (start, stop, step)]
        self._open(_ForContext(span, loop_var, bounds, kind, stored))

    def add_iter_arg(self, iter_arg: IterArg) -> None:
        """Add a carried variable to the open for loop."""
        if not isinstance(iter_arg, IterArg):
            wrong_kind("add_iter_arg", "iter_arg", IterArg, iter_arg)
        self._top(_ForContext, "add an iter_arg").iter_args.append(iter_arg)

    def add_return_var(self, var: Var) -> None:
        """Add a variable that holds a carried value after the open for loop."""
        self._top(_ForContext, "add a return variable").return_vars.append(_var(var))

    def end_for_loop(self, end_span: Span) -> ForStmt:
        """Close the for loop, emit it and return it."""
        context = self._top(_ForContext, "end")
        context.check_counts()
        span = _whole(context.span, end_span, context.stmts)
        start, stop, step = context.bounds
        return self._close(
            context,
            ForStmt(
                context.loop_var,
                start,
                stop,
                step,
                context.iter_args,
                _body(context.stmts, span),
                context.return_vars,
                span,
                context.kind,
                context.attrs,
            ),
        )

    def begin_while_loop(self, condition: Expr, span: Span) -> None:
        """Open a while loop."""
        self._need_function("begin while loop", span)
        self._open(_WhileContext(span, _normalize_expr(condition, span)))

    def add_while_iter_arg(self, iter_arg: IterArg) -> None:
        """Add a carried variable to the open while loop."""
        if not isinstance(iter_arg, IterArg):
            wrong_kind("add_while_iter_arg", "iter_arg", IterArg, iter_arg)
        self._top(_WhileContext, "add an iter_arg").iter_args.append(iter_arg)

    def add_while_return_var(self, var: Var) -> None:
        """Add a variable that holds a carried value after the open while loop."""
        self._top(_WhileContext, "add a return variable").return_vars.append(_var(var))

    def set_while_loop_condition(self, condition: Expr) -> None:
        """Replace the condition of the open while loop, which usually reads an iter_arg."""
        self._top(_WhileContext, "set the condition").condition = _normalize_expr(condition)

    def end_while_loop(self, end_span: Span) -> WhileStmt:
        """Close the while loop, emit it and return it."""
        context = self._top(_WhileContext, "end")
        context.check_counts()
        span = _whole(context.span, end_span, context.stmts)
        return self._close(
            context,
            WhileStmt(context.condition, context.iter_args, _body(context.stmts, span), context.return_vars, span),
        )

    # branches

    def begin_if(self, condition: Expr, span: Span) -> None:
        """Open an if statement, in its then branch."""
        self._need_function("begin if", span)
        self._open(_IfContext(span, _normalize_expr(condition, span)))

    def begin_else(self, span: Span) -> None:
        """Go on in the else branch of the open if statement."""
        context = self._top(_IfContext, "begin the else branch")
        if context.else_stmts is not None:
            raise RuntimeError(f"Cannot begin a second else branch{_at(span)}")
        context.else_stmts = []

    def add_if_return_var(self, var: Var) -> None:
        """Add a variable that holds what the branches yield."""
        self._top(_IfContext, "add a return variable").return_vars.append(_var(var))

    def end_if(self, end_span: Span) -> IfStmt:
        """Close the if statement, emit it and return it. An empty else branch counts as absent."""
        context = self._top(_IfContext, "end")
        span = _whole(context.span, end_span, context.else_stmts or context.stmts)
        else_body = _body(context.else_stmts, span) if context.else_stmts else None
        return self._close(
            context,
            IfStmt(context.condition, _body(context.stmts, span), else_body, context.return_vars, span),
        )

    # scopes

    def begin_scope(
        self,
        scope_kind: ScopeKind,
        span: Span,
        level: Level | None = None,
        role: Role | None = None,
        split: SplitMode | None = None,
        name_hint: str = "",
        core_num: Expr | int | None = None,
        sync_start: bool | None = None,
        manual: bool | None = None,
        attrs: Any = None,
    ) -> None:
        """Open a scope; the kind decides which of the arguments it needs."""
        given = {
            "level": level,
            "role": role,
            "split": split,
            "core_num": core_num,
            "sync_start": sync_start,
            "manual": manual,
        }
        make = _scope_maker(scope_kind, given, name_hint, normalize_attrs(attrs))
        self._need_function("begin scope", span)
        self._open(_ScopeContext(span, make))

    def end_scope(self, end_span: Span) -> ScopeStmt:
        """Close the scope, emit it and return it."""
        context = self._top(_ScopeContext, "end")
        span = _whole(context.span, end_span, context.stmts)
        return self._close(context, context.make(_body(context.stmts, span), span))

    # programs

    def begin_program(self, name: str, span: Span) -> None:
        """Open a program; nothing else may be open."""
        if self._stack:
            raise RuntimeError(f"Cannot begin program {name!r} inside a {self._stack[-1].what}{_at(span)}")
        self._open(_ProgramContext(span, name))

    def declare_function(self, func_name: str) -> GlobalVar:
        """The reference to a function of the program, which may be added later."""
        return self._program("declare a function").declared.setdefault(func_name, GlobalVar(func_name))

    def get_global_var(self, func_name: str) -> GlobalVar:
        """The reference to a declared function; ``RuntimeError`` for an unknown one."""
        found = self._program("look up a function").declared.get(func_name)
        if found is None:
            raise RuntimeError(f"function {func_name!r} is not declared in the program: use declare_function first")
        return found

    def add_function(self, func: Function) -> None:
        """Add a finished function to the program."""
        if not isinstance(func, Function):
            wrong_kind("add_function", "func", Function, func)
        program = self._program("add a function")
        if any(func.name == other.name for other in program.functions):
            raise ValueError(f'Duplicate function name "{func.name}"')
        program.declared.setdefault(func.name, GlobalVar(func.name))
        program.functions.append(func)

    def end_program(self, end_span: Span) -> Program:
        """Close the program and return it."""
        context = self._top(_ProgramContext, "end")
        program = Program(context.functions, context.name, _whole(context.span, end_span, ()))
        self._stack.pop()
        return program

    def get_function_return_types(self, gvar: GlobalVar) -> list[Type]:
        """The declared result types of a function of the program; empty while it is only declared."""
        for context in self._stack:
            if isinstance(context, _ProgramContext):
                for function in context.functions:
                    if function.name == gvar.name:
                        return list(function.return_types)
            elif isinstance(context, _FunctionContext) and context.name == gvar.name:
                return list(context.return_types)  # recursion
        return []

    # statements

    def emit(self, stmt: Stmt) -> None:
        """Append a statement to the innermost open construct, with the comments that wait for it."""
        if not isinstance(stmt, Stmt):
            wrong_kind("emit", "stmt", Stmt, stmt)
        if not self._stack:
            raise RuntimeError("Cannot emit a statement: no function is open")
        self._stack[-1].emit(stmt)
        _comment(stmt, self._take_comments())

    def assign(self, var: Var, value: Expr, span: Span) -> AssignStmt:
        """Emit ``var = value``."""
        stmt = AssignStmt(var, _normalize_expr(value, span), span)
        self.emit(stmt)
        return stmt

    def var(self, name: str, type: Type, span: Span) -> Var:
        """A fresh variable; nothing is emitted."""
        return Var(name, type, span)

    def return_(self, values: Any = None, span: Span | None = None) -> ReturnStmt:
        """Emit a return: ``return_(values, span)`` or ``return_(span)``."""
        if isinstance(values, Span):
            values, span = None, values
        where = UNKNOWN_SPAN if span is None else span
        stmt = ReturnStmt([_normalize_expr(value, where) for value in values or ()], where)
        self.emit(stmt)
        return stmt

    def push_pending_leading_comments(self, comments: Sequence[str]) -> None:
        """Keep comments for the next statement, or construct begun, at this level."""
        self._pending_frames().append(list(comments))

    def pop_pending_leading_comments(self) -> list[str]:
        """End the innermost push of this level; returns what no statement has taken."""
        frames = self._pending_frames()
        return frames.pop() if frames else []

    # state

    def in_function(self) -> bool:
        """Whether the innermost open construct is a function."""
        return bool(self._stack) and isinstance(self._stack[-1], _FunctionContext)

    def in_loop(self) -> bool:
        """Whether the innermost open construct is a loop."""
        return bool(self._stack) and isinstance(self._stack[-1], _LoopContext)

    def in_if(self) -> bool:
        """Whether the innermost open construct is an if statement."""
        return bool(self._stack) and isinstance(self._stack[-1], _IfContext)

    def in_program(self) -> bool:
        """Whether the innermost open construct is a program."""
        return bool(self._stack) and isinstance(self._stack[-1], _ProgramContext)

    def depth(self) -> int:
        """How many constructs are open."""
        return len(self._stack)

    def abandon(self, depth: int) -> None:
        """Drop the constructs opened since :meth:`depth` said so: what an exception leaves behind."""
        del self._stack[depth:]

    # the stack

    def _open(self, context: _Context) -> None:
        context.comments = self._take_comments()
        self._stack.append(context)

    def _close(self, context: _Context, node: S) -> S:
        self._stack.pop()
        self._stack[-1].emit(node)
        _comment(node, context.comments)
        return node

    def _top(self, wanted: type[C], action: str) -> C:
        top = self._stack[-1] if self._stack else None
        if not isinstance(top, wanted):
            where = f"the innermost open construct is a {top.what}" if top is not None else "nothing is open"
            raise RuntimeError(f"Cannot {action}: no {wanted.what} is open here ({where})")
        return top

    def _program(self, action: str) -> _ProgramContext:
        if self._stack and isinstance(self._stack[0], _ProgramContext):
            return self._stack[0]
        raise RuntimeError(f"Cannot {action}: no program is open")

    def _need_function(self, action: str, span: Span) -> None:
        if not self._stack or isinstance(self._stack[-1], _ProgramContext):
            raise RuntimeError(f"Cannot {action}: not inside a function{_at(span)}")

    def _pending_frames(self) -> list[list[str]]:
        return self._stack[-1].pending if self._stack else self._pending

    def _take_comments(self) -> list[str]:
        frames = self._pending_frames()
        if not frames:
            return []
        comments, frames[-1] = frames[-1], []
        return comments


S = TypeVar("S", bound=Stmt)


def _var(var: Any) -> Var:
    if not isinstance(var, Var):
        wrong_kind("add_return_var", "var", Var, var)
    return var


def _pairs(attrs: Any) -> Iterable[tuple[str, Any]]:
    return attrs.items() if isinstance(attrs, Mapping) else attrs or ()


def _comment(stmt: Stmt, comments: list[str]) -> None:
    if not comments:
        return
    while isinstance(stmt, SeqStmts):  # a sequence can't own comments: its first statement does
        if not stmt.stmts:
            return
        stmt = stmt.stmts[0]
    attach_leading_comments(stmt, [*comments, *stmt.leading_comments])


def _body(stmts: list[Stmt], span: Span) -> Stmt:
    """One statement is stored unwrapped, none or several as a sequence."""
    return stmts[0] if len(stmts) == 1 else SeqStmts(FrozenList(stmts), span)


def _at(span: Span) -> str:
    return f" at {span}" if span.is_valid() else ""


def _whole(begin: Span, end: Span, stmts: Sequence[Stmt]) -> Span:
    """From the first line of a construct to its last: ``end``, or the last statement where that lies further down."""
    if not begin.is_valid():
        return begin
    line, column = begin.end_line, begin.end_column
    for span in (end, *(stmt.span for stmt in stmts[-1:])):
        if span.is_valid() and span.filename == begin.filename:
            last = (span.end_line, span.end_column) if span.end_line > 0 else (span.begin_line, -1)
            if last[0] >= max(line, begin.begin_line):
                line, column = last
    return Span(begin.filename, begin.begin_line, begin.begin_column, line, column)


# --- scopes -----------------------------------------------------------------------------------------------------------

# kind -> class, arguments that it knows, arguments that it needs
_SCOPES: dict[ScopeKind, tuple[Callable[..., ScopeStmt], tuple[str, ...], tuple[str, ...]]] = {
    ScopeKind.InCore: (InCoreScopeStmt, ("split",), ()),
    ScopeKind.Cluster: (ClusterScopeStmt, (), ()),
    ScopeKind.Hierarchy: (HierarchyScopeStmt, ("level", "role"), ("level",)),
    ScopeKind.Spmd: (SpmdScopeStmt, ("core_num", "sync_start"), ("core_num",)),
    ScopeKind.SplitAiv: (SplitAivScopeStmt, ("split",), ("split",)),
    ScopeKind.Runtime: (RuntimeScopeStmt, ("manual",), ("manual",)),
}


def _scope_maker(
    kind: ScopeKind, given: dict[str, Any], name_hint: str, attrs: Any
) -> Callable[[Stmt, Span], ScopeStmt]:
    if not isinstance(kind, ScopeKind):
        wrong_kind("scope", "scope_kind", ScopeKind, kind)
    if kind not in _SCOPES:
        raise ValueError(f"a {kind.name} scope cannot be built here: a pass makes it")
    cls, known, needed = _SCOPES[kind]
    for name in needed:
        if given[name] is None:
            raise ValueError(f"a {kind.name} scope requires {name}")
    for name, value in given.items():
        says_nothing = value is None or value is False or value is SplitMode.NONE
        implied = kind is ScopeKind.InCore and name == "level" and value is Level.CORE_GROUP
        if name not in known and not says_nothing and not implied:
            raise ValueError(f"a {kind.name} scope takes no {name}")
    arguments = {name: given[name] for name in known if given[name] is not None}

    def make(body: Stmt, span: Span) -> ScopeStmt:
        return cls(**arguments, name_hint=name_hint, body=body, span=span, attrs=attrs)

    return make


__all__ = ["IRBuilder"]
