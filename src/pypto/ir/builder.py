"""Building IR with context managers.

>>> from pypto import ir
>>> ib = ir.IRBuilder()
>>> with ib.function("double") as f:
...     n = f.param("n", ir.ScalarType(ir.INDEX))
...     f.return_type(ir.ScalarType(ir.INDEX))
...     _ = ib.return_stmt(n + n)
>>> f.get_result().name
'double'

Leaving a ``with`` block closes its construct and emits it into the one around. If the block raises, the construct is
dropped and the exception passes unchanged.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any, Generic, TypeVar

from .builder_core import IRBuilder as _FlatBuilder
from .enums import (
    CompactMode,
    ForKind,
    FunctionType,
    InlineLanguage,
    Level,
    MemorySpace,
    PadValue,
    ParamDirection,
    Role,
    ScopeKind,
    SplitMode,
    TensorLayout,
    TileLayout,
)
from .expr import Call, Expr, GlobalVar, IterArg, MakeTuple, MemRef, Var
from .location import current_span
from .program import Function, Program
from .span import Span
from .stmt import (
    AssignStmt,
    BreakStmt,
    ContinueStmt,
    EvalStmt,
    ForStmt,
    IfStmt,
    InlineStmt,
    ReturnStmt,
    ScopeStmt,
    Stmt,
    WhileStmt,
)
from .type import (
    ScalarType,
    ShapedType,
    TensorType,
    TensorView,
    TileType,
    TileView,
    TupleType,
    Type,
    UnknownType,
    const_extent,
)
from .utils import _normalize_expr, _normalize_shape


def _here(span: Span | None) -> Span:
    return current_span() if span is None else span


# --- what a with block yields -----------------------------------------------------------------------------------------


class _Handle:
    """What a ``with`` block yields: adds to the open construct, and holds the node once the block has ended."""

    _what = "construct"

    def __init__(self, flat: _FlatBuilder) -> None:
        self._flat = flat
        self._result: Any = None

    def _ended(self) -> Any:
        if self._result is None:
            raise RuntimeError(f"the {self._what} is not finished: its with block has not ended, or ended in an error")
        return self._result


H = TypeVar("H", bound=_Handle)


class _Block(Generic[H]):
    """The context manager of one construct."""

    def __init__(self, flat: _FlatBuilder, handle: H, begin: Callable[[], None], end: Callable[[Span], Any]) -> None:
        self._flat = flat
        self._handle = handle
        self._begin = begin
        self._end = end
        self._depth = 0

    def __enter__(self) -> H:
        self._depth = self._flat.depth()
        self._begin()
        return self._handle

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            try:
                self._handle._result = self._end(current_span())
            finally:
                self._flat.abandon(self._depth)
        else:
            self._flat.abandon(self._depth)


class FunctionBuilder(_Handle):
    """The open function of ``with ib.function(...) as f``."""

    _what = "function"

    def param(
        self, name: str, type: Type, span: Span | None = None, direction: ParamDirection = ParamDirection.In
    ) -> Var:
        """Add a parameter."""
        return self._flat.func_arg(name, type, _here(span), direction)

    def return_type(self, type: Type) -> None:
        """Add a result type."""
        self._flat.return_type(type)

    def get_result(self) -> Function:
        """The function, after the block."""
        return self._ended()  # type: ignore[no-any-return]


class _ReturnVarsAccessor(_Handle):
    """Access to the variables that hold the results of a loop or branch after it."""

    def __init__(self, flat: _FlatBuilder) -> None:
        super().__init__(flat)
        self._iter_args: list[IterArg] = []
        self._return_vars: list[Var] = []

    def output(self, index: int = 0) -> Var:
        """One return variable, after the block."""
        self._ended()
        if not 0 <= index < len(self._return_vars):
            raise IndexError(
                f"Return variable index {index} out of range: the {self._what} has {len(self._return_vars)}"
            )
        return self._return_vars[index]

    def outputs(self) -> list[Var]:
        """All return variables, after the block."""
        self._ended()
        return list(self._return_vars)

    def _make_iter_arg(self, name: str, init_value: Any, type: Type | None, span: Span | None) -> IterArg:
        where = _here(span)
        value = _normalize_expr(init_value, where)
        iter_arg = IterArg(name, _declared_type(name, type, value.type), value, where)
        self._iter_args.append(iter_arg)
        return iter_arg

    def _make_return_var(self, name: str, type: Type | None, span: Span | None) -> Var:
        count = len(self._return_vars)
        if count < len(self._iter_args):
            kind = _declared_type(name, type, self._iter_args[count].type)
        elif type is not None:
            kind = type
        else:
            raise RuntimeError(
                f"return variable {name!r} has no iter_arg to take its type from: the {self._what} has "
                f"{len(self._iter_args)} iter_args and would have {count + 1} return variables. They must match."
            )
        var = Var(name, kind, _here(span))
        self._return_vars.append(var)
        return var


def _declared_type(name: str, declared: Type | None, inferred: Type) -> Type:
    if declared is None:
        return inferred
    if declared != inferred and not isinstance(inferred, UnknownType):
        raise ValueError(f"Type mismatch for {name!r}: declared {declared}, but the value has type {inferred}")
    return declared


class ForLoopBuilder(_ReturnVarsAccessor):
    """The open loop of ``with ib.for_loop(...) as loop``."""

    _what = "for loop"

    def iter_arg(self, name: str, init_value: Any, type: Type | None = None, span: Span | None = None) -> IterArg:
        """Add a carried variable; its type defaults to that of its first value."""
        iter_arg = self._make_iter_arg(name, init_value, type, span)
        self._flat.add_iter_arg(iter_arg)
        return iter_arg

    def return_var(self, name: str, type: Type | None = None, span: Span | None = None) -> Var:
        """Add the variable that holds a carried value after the loop; the n-th one belongs to the n-th iter_arg."""
        var = self._make_return_var(name, type, span)
        self._flat.add_return_var(var)
        return var

    def get_result(self) -> ForStmt:
        """The statement, after the block."""
        return self._ended()  # type: ignore[no-any-return]


class WhileLoopBuilder(_ReturnVarsAccessor):
    """The open loop of ``with ib.while_loop(...) as loop``."""

    _what = "while loop"

    def iter_arg(self, name: str, init_value: Any, type: Type | None = None, span: Span | None = None) -> IterArg:
        """Add a carried variable; its type defaults to that of its first value."""
        iter_arg = self._make_iter_arg(name, init_value, type, span)
        self._flat.add_while_iter_arg(iter_arg)
        return iter_arg

    def set_condition(self, condition: Expr) -> None:
        """Set the condition, once the iter_args that it reads exist."""
        self._flat.set_while_loop_condition(condition)

    def return_var(self, name: str, type: Type | None = None, span: Span | None = None) -> Var:
        """Add the variable that holds a carried value after the loop; the n-th one belongs to the n-th iter_arg."""
        var = self._make_return_var(name, type, span)
        self._flat.add_while_return_var(var)
        return var

    def get_result(self) -> WhileStmt:
        """The statement, after the block."""
        return self._ended()  # type: ignore[no-any-return]


class IfStmtBuilder(_ReturnVarsAccessor):
    """The open branch of ``with ib.if_stmt(...) as branch``."""

    _what = "if statement"

    def else_(self, span: Span | None = None) -> None:
        """Go on in the else branch."""
        self._flat.begin_else(_here(span))

    def return_var(self, name: str, type: Type, span: Span | None = None) -> Var:
        """Add a variable that holds what the branches yield."""
        var = self._make_return_var(name, type, span)
        self._flat.add_if_return_var(var)
        return var

    def get_result(self) -> IfStmt:
        """The statement, after the block."""
        return self._ended()  # type: ignore[no-any-return]


class ScopeBuilder(_Handle):
    """The open scope of ``with ib.scope(...) as scope``."""

    _what = "scope"

    def get_result(self) -> ScopeStmt:
        """The statement, after the block."""
        return self._ended()  # type: ignore[no-any-return]


class ProgramBuilder(_Handle):
    """The open program of ``with ib.program(...) as p``."""

    _what = "program"

    def declare_function(self, name: str) -> GlobalVar:
        """The reference to a function that may be added later: for recursion, and for any order."""
        return self._flat.declare_function(name)

    def get_global_var(self, name: str) -> GlobalVar:
        """The reference to a declared function; ``RuntimeError`` for an unknown one."""
        return self._flat.get_global_var(name)

    def add_function(self, func: Function) -> None:
        """Add a finished function."""
        self._flat.add_function(func)

    def get_result(self) -> Program:
        """The program, after the block."""
        return self._ended()  # type: ignore[no-any-return]


# --- the builder ------------------------------------------------------------------------------------------------------


class IRBuilder:
    """Builds functions and programs. ``span`` defaults to the caller's source line everywhere."""

    def __init__(self) -> None:
        self._flat = _FlatBuilder()

    # constructs

    def function(
        self,
        name: str,
        span: Span | None = None,
        type: FunctionType = FunctionType.Opaque,
        level: Level | None = None,
        role: Role | None = None,
        attrs: Any = None,
        requires_runtime_binding: bool = False,
    ) -> _Block[FunctionBuilder]:
        """A function; it is not emitted: :meth:`ProgramBuilder.add_function` puts it into a program."""
        flat, where = self._flat, _here(span)
        return _Block(
            flat,
            FunctionBuilder(flat),
            lambda: flat.begin_function(name, where, type, level, role, attrs, requires_runtime_binding),
            flat.end_function,
        )

    def for_loop(
        self,
        loop_var: Var,
        start: Expr | int,
        stop: Expr | int,
        step: Expr | int,
        span: Span | None = None,
        kind: ForKind = ForKind.Sequential,
        attrs: Any = None,
    ) -> _Block[ForLoopBuilder]:
        """A for loop. ``kind=ForKind.Pipeline`` needs ``attrs={"pipeline_stages": n}``."""
        flat, where = self._flat, _here(span)
        return _Block(
            flat,
            ForLoopBuilder(flat),
            lambda: flat.begin_for_loop(loop_var, start, stop, step, where, kind, attrs),
            flat.end_for_loop,
        )

    def while_loop(self, condition: Expr, span: Span | None = None) -> _Block[WhileLoopBuilder]:
        """A while loop."""
        flat, where = self._flat, _here(span)
        return _Block(
            flat, WhileLoopBuilder(flat), lambda: flat.begin_while_loop(condition, where), flat.end_while_loop
        )

    def if_stmt(self, condition: Expr, span: Span | None = None) -> _Block[IfStmtBuilder]:
        """A branch, in its then part until :meth:`IfStmtBuilder.else_`."""
        flat, where = self._flat, _here(span)
        return _Block(flat, IfStmtBuilder(flat), lambda: flat.begin_if(condition, where), flat.end_if)

    def scope(
        self,
        scope_kind: ScopeKind,
        span: Span | None = None,
        level: Level | None = None,
        role: Role | None = None,
        split: SplitMode | None = None,
        name_hint: str = "",
        core_num: Expr | int | None = None,
        sync_start: bool | None = None,
        manual: bool | None = None,
        attrs: Any = None,
    ) -> _Block[ScopeBuilder]:
        """A scope. Hierarchy needs ``level``, Spmd ``core_num``, SplitAiv ``split``, Runtime ``manual``."""
        flat, where = self._flat, _here(span)
        return _Block(
            flat,
            ScopeBuilder(flat),
            lambda: flat.begin_scope(
                scope_kind, where, level, role, split, name_hint, core_num, sync_start, manual, attrs
            ),
            flat.end_scope,
        )

    def program(self, name: str, span: Span | None = None) -> _Block[ProgramBuilder]:
        """A program."""
        flat, where = self._flat, _here(span)
        return _Block(flat, ProgramBuilder(flat), lambda: flat.begin_program(name, where), flat.end_program)

    def add_function_attrs(self, attrs: Any) -> None:
        """Add attributes to the open function; ``ValueError`` for a key that it has already."""
        self._flat.add_function_attrs(attrs)

    # statements

    def var(self, name: str, type: Type, span: Span | None = None) -> Var:
        """A fresh variable; nothing is emitted."""
        return self._flat.var(name, type, _here(span))

    def let(self, name: str, value: Any, type: Type | None = None, span: Span | None = None) -> Var:
        """Assign ``value`` to a new variable and return it.

        The type is the value's. A call of a function of the open program takes its declared return type.
        ``TypeError`` for an explicit type that contradicts it.
        """
        where = _here(span)
        expr = _normalize_expr(value, where)
        inferred = self._inferred_type(expr, type)
        if type is not None and not _compatible(type, inferred):
            raise TypeError(f"the type {type} of {name!r} is incompatible with the value's type {inferred}")
        kind = inferred if type is None else type
        if isinstance(expr, Call) and isinstance(expr.type, UnknownType) and not isinstance(kind, UnknownType):
            expr = expr.replace(type=kind)
        var = Var(name, kind, where)
        self._flat.assign(var, expr, where)
        return var

    def _inferred_type(self, value: Expr, wanted: Type | None) -> Type:
        if not (isinstance(value, Call) and isinstance(value.op, GlobalVar) and isinstance(value.type, UnknownType)):
            return value.type
        returned = self._flat.get_function_return_types(value.op)
        if len(returned) > 1:
            whole = TupleType(returned)
            if wanted is None:
                raise ValueError(
                    f"function {value.op.name!r} returns {len(returned)} values: give let the type {whole} explicitly"
                )
            return whole
        return returned[0] if returned else value.type

    def assign(self, var: Var, value: Any, span: Span | None = None) -> AssignStmt:
        """Emit ``var = value``."""
        return self._flat.assign(var, value, _here(span))

    def make_tuple(self, elements: Sequence[Any], span: Span | None = None) -> MakeTuple:
        """A tuple expression; nothing is emitted."""
        where = _here(span)
        return MakeTuple(_normalize_shape(elements, where), where)

    def emit(self, stmt: Stmt) -> None:
        """Append a statement to the innermost open construct."""
        self._flat.emit(stmt)

    def return_stmt(self, values: Any = None, span: Span | None = None) -> ReturnStmt:
        """Emit a return of one value, several or none."""
        if values is not None and not isinstance(values, (list, tuple)):
            values = [values]
        return self._flat.return_(values, _here(span))

    def eval_stmt(self, expr: Expr, span: Span | None = None) -> EvalStmt:
        """Emit an expression evaluated for its effect."""
        return self._emitted(EvalStmt(expr, _here(span)))

    def break_stmt(self, span: Span | None = None) -> BreakStmt:
        """Emit a break."""
        return self._emitted(BreakStmt(_here(span)))

    def continue_stmt(self, span: Span | None = None) -> ContinueStmt:
        """Emit a continue."""
        return self._emitted(ContinueStmt(_here(span)))

    def inline_stmt(
        self, body: str, language: InlineLanguage = InlineLanguage.Python, span: Span | None = None
    ) -> InlineStmt:
        """Emit verbatim host-language text."""
        return self._emitted(InlineStmt(body, language, _here(span)))

    def _emitted(self, stmt: S) -> S:
        self._flat.emit(stmt)
        return stmt

    def push_pending_leading_comments(self, comments: Sequence[str]) -> None:
        """Keep comments for the next emitted statement."""
        self._flat.push_pending_leading_comments(comments)

    def pop_pending_leading_comments(self) -> list[str]:
        """End the last push; returns the comments that no statement has taken."""
        return self._flat.pop_pending_leading_comments()

    # state

    def in_function(self) -> bool:
        """Whether the innermost open construct is a function."""
        return self._flat.in_function()

    def in_loop(self) -> bool:
        """Whether the innermost open construct is a loop."""
        return self._flat.in_loop()

    def in_if(self) -> bool:
        """Whether the innermost open construct is an if statement."""
        return self._flat.in_if()

    # types

    def memref(
        self,
        memory_space_or_addr: MemorySpace | Expr | int,
        addr_or_size: Expr | int,
        size_or_id: int,
        id: int | None = None,
        span: Span | None = None,
    ) -> MemRef:
        """``memref(memory_space, addr, size, id)`` or ``memref(addr, size, id)``."""
        where = _here(span)
        if isinstance(memory_space_or_addr, MemorySpace):
            if id is None:
                raise TypeError("memref(memory_space, addr, size, id) requires an id")
            return MemRef(memory_space_or_addr, addr_or_size, size_or_id, id, span=where)
        if id is not None:
            raise TypeError("memref(addr, size, id) accepts exactly three positional arguments")
        return MemRef(memory_space_or_addr, addr_or_size, size_or_id, span=where)

    def tile_view(
        self,
        valid_shape: Sequence[Any],
        stride: Sequence[Any],
        start_offset: Any,
        blayout: TileLayout = TileLayout.row_major,
        slayout: TileLayout = TileLayout.none_box,
        fractal: int = 512,
        pad: PadValue = PadValue.null,
        span: Span | None = None,
        compact: CompactMode = CompactMode.null,
    ) -> TileView:
        """A tile view; ints become INDEX constants."""
        where = _here(span)
        return TileView(
            _normalize_shape(valid_shape or (), where),
            _normalize_shape(stride or (), where),
            None if start_offset is None else _normalize_expr(start_offset, where),
            blayout,
            slayout,
            fractal,
            pad,
            compact,
        )

    def tensor_view(self, stride: Sequence[Any], layout: TensorLayout, span: Span | None = None) -> TensorView:
        """A tensor view; ints become INDEX constants."""
        return TensorView(_normalize_shape(stride or (), _here(span)), layout)

    def tensor_type(
        self,
        shape: Sequence[Any],
        dtype: Any,
        memref: MemRef | None = None,
        tensor_view: TensorView | None = None,
        span: Span | None = None,
    ) -> TensorType:
        """A tensor type; ints become INDEX constants."""
        return TensorType(_normalize_shape(shape, _here(span)), dtype, memref, tensor_view)

    def tile_type(
        self,
        shape: Sequence[Any],
        dtype: Any,
        memref: MemRef | None = None,
        tile_view: TileView | None = None,
        memory_space: MemorySpace | None = None,
        span: Span | None = None,
    ) -> TileType:
        """A tile type; ints become INDEX constants."""
        return TileType(_normalize_shape(shape, _here(span)), dtype, memref, tile_view, memory_space)


S = TypeVar("S", bound=Stmt)


def _compatible(declared: Type, inferred: Type) -> bool:
    """Whether a declared type may stand for an inferred one: no known fact about the value is contradicted.

    A declared type may add what the value's type leaves open: a view, a memref, a memory space, symbolic extents.
    """
    if isinstance(inferred, UnknownType) or declared == inferred:
        return True
    if type(declared) is not type(inferred):
        return False
    if isinstance(declared, ScalarType) and isinstance(inferred, ScalarType):
        # INDEX and INT64 mix everywhere without a cast
        return {declared.dtype.name, inferred.dtype.name} == {"INDEX", "INT64"}
    if isinstance(declared, TupleType) and isinstance(inferred, TupleType):
        return len(declared.types) == len(inferred.types) and all(
            _compatible(a, b) for a, b in zip(declared.types, inferred.types, strict=True)
        )
    if isinstance(declared, ShapedType) and isinstance(inferred, ShapedType):
        spaces = {declared.memory_space, inferred.memory_space} - {None}
        return (
            declared.dtype is inferred.dtype
            and len(declared.shape) == len(inferred.shape)
            and len(spaces) <= 1
            and not any(map(_contradict, declared.shape, inferred.shape))
        )
    return False


def _contradict(a: Expr, b: Expr) -> bool:
    x, y = const_extent(a), const_extent(b)
    return x is not None and y is not None and x != y


__all__ = [
    "ForLoopBuilder",
    "FunctionBuilder",
    "IRBuilder",
    "IfStmtBuilder",
    "ProgramBuilder",
    "ScopeBuilder",
    "WhileLoopBuilder",
]
