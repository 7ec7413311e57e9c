"""Statements without a body: assignments, unpacking, expression statements, return, directives."""

from __future__ import annotations

import ast
from typing import Any, cast

from ..ir.dtype import DataType
from ..ir.enums import FunctionType
from ..ir.expr import Call, ConstBool, ConstFloat, ConstInt, Expr, MakeTuple, TupleGetItemExpr, Var
from ..ir.names import VarName
from ..ir.node import FrozenList
from ..ir.span import Span
from ..ir.stmt import AssignStmt, BreakStmt, ContinueStmt, EvalStmt, ReturnStmt
from ..ir.type import (
    PtrType,
    ScalarType,
    ShapedType,
    TensorType,
    TileType,
    TileView,
    TupleType,
    Type,
    UnknownType,
)
from .base import LOOPS
from .closure import BINARY, MISSING, dotted
from .errors import InvalidOperationError, ParserError, ParserTypeError, UnsupportedFeatureError
from .tasks import Tasks
from .typecheck import kind_name, mismatch

# Calls that an assignment treats in a way of its own; an ordinary call is told from them by one look at its name.
_SPECIAL_CALLS = frozenset(
    ("submit", "spmd_submit", "yield_", "alloc_window_buffer", "reserve_buffer", "import_peer_buffer")
)


def _is_special_call(node: ast.expr) -> bool:
    if type(node) is not ast.Call:
        return False
    func = node.func
    if type(func) is ast.Attribute:
        return func.attr in _SPECIAL_CALLS
    # A bare name may be an alias of any of them.
    return type(func) is ast.Name


class Statements(Tasks):
    """Simple statements."""

    # --- assignment ---------------------------------------------------------------------------------------------------

    def stmt_assign(self, node: ast.Assign) -> None:
        if len(node.targets) != 1:
            self.fail("Unsupported assignment: one target a statement", node, "Write a = e, then b = a")
        target = node.targets[0]
        if type(target) is ast.Name and not _is_special_call(node.value):
            value = self.expr(node.value)
            if self._is_alias_of_symbol(target.id, node.value, value):
                self.scopes.bind(target.id, value)
            else:
                self.assign(target.id, value, self.span(node), target)
            return
        kind = self.submit_kind(node.value)
        if kind is not None:
            self.emit_launch(target, node.value, kind)  # type: ignore[arg-type]
        elif self.is_yield(node.value):
            self.assignment_yield(target, None, node.value)  # type: ignore[arg-type]
        elif type(target) is ast.Name:
            self._assign_name(target, node.value, node)
        elif type(target) in (ast.Tuple, ast.List):
            self._unpack(target, node.value, node)
        elif type(target) is ast.Subscript:
            self.subscript_write(target, self.expr(node.value), self.span(node))
        else:
            self.fail(
                f"Unsupported assignment target: {type(target).__name__}",
                target,
                "Assign to a name, a tuple of names, or a subscript",
            )

    def _assign_name(self, target: ast.Name, value_node: ast.expr, node: ast.stmt) -> None:
        value = self._window_buffer(target, value_node) or self.expr(value_node)
        if self._is_alias_of_symbol(target.id, value_node, value):
            self.scopes.bind(target.id, value)
            return
        var = self.assign(target.id, value, self.span(node), target)
        self.note_buffer(var, value_node)

    def _is_alias_of_symbol(self, name: str, node: ast.expr, value: Expr) -> bool:
        """``n = pl.tensor.dim(x, 0)`` that folded to a declared symbol binds the name without a statement.

        A name that a branch or loop assigns is a variable of its own, since its value is one of several.
        """
        return (
            type(node) is ast.Call
            and isinstance(value, Var)
            and value in self.declared_symbols
            and name not in self.stored_in_branches()
        )

    def _window_buffer(self, target: ast.Name, node: ast.expr) -> Expr | None:
        if not self._is_window_call(node):
            return None
        if any(k.arg == "name" for k in node.keywords):  # type: ignore[attr-defined]
            self.fail("alloc_window_buffer: the 'name' kwarg cannot be passed explicitly", node)
        # SSA conversion renames the variable, not the buffer: a printed bx__ssa_v0 still holds the buffer bx.
        parsed = VarName.parse(target.id)
        name = parsed.base if parsed.role == "ssa" and parsed.base and not parsed.qualifier else target.id
        if name in self.context.window_buffers:
            self.fail(f"window buffer '{name}' is already declared in this program", node)
        self.context.window_buffers.add(name)
        named = ast.keyword("name", ast.copy_location(ast.Constant(name), node))
        call = ast.Call(node.func, node.args, [*node.keywords, named])  # type: ignore[attr-defined]
        self.named_call = ast.copy_location(call, node)
        return self.call(self.named_call)

    def _is_window_call(self, node: ast.expr) -> bool:
        if type(node) is not ast.Call:
            return False
        parts = dotted(node.func)
        return parts is not None and parts[-1] == "alloc_window_buffer" and self.closure.alias(parts[0]) == "pld"

    def stmt_ann_assign(self, node: ast.AnnAssign) -> None:
        if node.value is None:
            self.fail("annotation with no value is not supported", node, "Write x: T = value", UnsupportedFeatureError)
        if type(node.target) is not ast.Name:
            self.fail("Only simple variable assignments supported with an annotation", node.target)
        kind = self.submit_kind(node.value)
        if kind is not None:
            self.emit_launch(node.target, node.value, kind)  # type: ignore[arg-type]
            return
        if self.is_yield(node.value):
            self.assignment_yield(node.target, node.annotation, node.value)  # type: ignore[arg-type]
            return
        name = node.target.id
        parts = dotted(node.annotation)
        value = self._window_buffer(node.target, node.value) or self.expr(node.value)
        if parts is not None and parts[-1] in ("Ptr", "MemRefType") and isinstance(value.type, PtrType):
            self._assign_pointer(name, value, node)
            return
        annotated = self.local_annotation(node.annotation)
        stated: Type | None = None
        if annotated is not None:
            value, stated = self._annotated(name, annotated, value, node)
        if stated is None and self._is_alias_of_symbol(name, node.value, value):
            self.scopes.bind(name, value)
            return
        var = self.assign(name, value, self.span(node), node.target, stated)
        self.note_buffer(var, node.value)

    def _assign_pointer(self, name: str, value: Expr, node: ast.AnnAssign) -> None:
        var = self.memref_bases.get(name) or Var(name, value.type, self.span(node))
        self.memref_bases[name] = var
        self.scopes.bind(name, var)
        self.emit(AssignStmt(var, value, self.span(node)))

    def _annotated(self, name: str, want: Type, value: Expr, node: ast.AnnAssign) -> tuple[Expr, Type | None]:
        """The value, and the variable's type where annotation and inference together give another than the value's.

        A call takes that type itself.
        """
        have = value.type
        if (
            isinstance(want, ScalarType)
            and type(value) is ConstInt
            and value.dtype is DataType.INDEX
            and want.dtype.is_int_
        ):
            return ConstInt(value.value, want.dtype, value.span), None
        if isinstance(have, UnknownType):
            return retyped(value, want)
        fitted = self._fit_rank(want, value)
        problem = None if fitted else mismatch(want, have)
        if problem is not None:
            raise ParserTypeError(
                f"Type annotation for '{name}' {problem}",
                self.span(node.annotation),
                hint=f"Change annotation to: {have}",
            )
        chosen = self._choose_type(want, have, value, fitted)
        if chosen is have or (chosen == have and not _memref_differs(chosen, have)):
            return value, None
        return retyped(value, chosen)

    def _fit_rank(self, want: Type, value: Expr) -> bool:
        """A printed load or create whose tile was flattened to 2-D: the annotation is trusted."""
        return (
            isinstance(want, TileType)
            and isinstance(value.type, TileType)
            and type(value) is Call
            and value.op.name in ("tile.load", "tile.create")
            and len(value.type.shape) > 2 >= len(want.shape)
        )

    def _choose_type(self, want: Type, have: Type, value: Expr, fitted: bool) -> Type:
        if isinstance(want, TileType) and isinstance(have, TileType):
            space = want.memory_space if want.memory_space is not None else have.memory_space
            view: TileView | None = want.tile_view
            if view is None and not fitted:
                view = have.tile_view
            return TileType(want.shape, want.dtype, want.memref, view, space)
        if isinstance(want, ShapedType) and want.memref is not None:
            return want
        if isinstance(want, TensorType) and want.tensor_view is not None:
            return want
        if isinstance(want, ScalarType) and isinstance(have, ScalarType) and have.dtype is DataType.INDEX:
            return want
        return have

    def stmt_aug_assign(self, node: ast.AugAssign) -> None:
        """``x += e`` is ``x = x + e``; ``d[...] += e`` reads, computes and writes."""
        target = node.target
        span = self.span(node)
        if type(target) is ast.Name:
            load = ast.copy_location(ast.Name(target.id, ast.Load()), target)
            current: Any = self.operand(load)
        elif type(target) is ast.Subscript:
            load_sub = ast.copy_location(ast.Subscript(target.value, target.slice, ast.Load()), target)
            current = self.expr(load_sub)
        else:
            self.fail("Unsupported assignment target", target)
        if type(node.op) not in BINARY:
            self.fail(f"Unsupported binary operator: {type(node.op).__name__}", node, None, UnsupportedFeatureError)
        value = self.binary(type(node.op), current, self.operand(node.value), ast.copy_location(ast.Constant(0), node))
        result = value if isinstance(value, Expr) else self.number(value, span)
        if type(target) is ast.Name:
            self.assign(target.id, result, span, target)
        else:
            self.subscript_write(target, result, span)  # type: ignore[arg-type]

    def _unpack(self, target: Any, value_node: ast.expr, node: ast.stmt) -> None:
        names = target.elts
        for name in names:
            if type(name) is ast.Starred:
                self.fail("Unsupported assignment: starred targets", name)
            if type(name) is not ast.Name:
                self.fail("Tuple unpacking target must be a variable name", name)
        if self._is_window_call(value_node):
            self.fail("pld.alloc_window_buffer() must be assigned to a single variable name", node)
        value = self.expr(value_node)  # a literal tuple is one value too, so that `a, b = b, a` swaps
        span = self.span(node)
        kind = value.type
        if not isinstance(kind, TupleType):
            self.type_error(
                f"cannot unpack {kind_name(kind)} into {len(names)} names: unpacking requires tuple to have TupleType",
                node,
                "Annotate the results of the called function" if isinstance(kind, UnknownType) else None,
            )
        if len(kind.types) != len(names):
            self.type_error(f"cannot unpack {len(kind.types)} values into {len(names)} names", node)
        for name, item in zip(names, self.items_of(value, span), strict=True):
            self.assign(name.id, item, span, name)

    def items_of(self, value: Expr, span: Span) -> list[Expr]:
        """The items of a tuple, which is computed here, before any of them is assigned."""
        kind = cast(TupleType, value.type)
        temp = Var("_tuple_tmp", kind, span)
        self.emit(AssignStmt(temp, value, span))
        return [TupleGetItemExpr(temp, i, span) for i in range(len(kind.types))]

    # --- other simple statements --------------------------------------------------------------------------------------

    def stmt_expr(self, node: ast.Expr) -> None:
        value = node.value
        if type(value) is ast.Constant:
            if isinstance(value.value, str):
                self.comments.add_docstring(value.value)
                return
            if value.value is ...:
                return
        if type(value) is ast.Call:
            if self.is_yield(value):
                self.bare_yield(value)
                return
            kind = self.submit_kind(value)
            if kind is not None:
                self.fail(
                    f"pl.{kind}() must be unpacked as a 2-tuple",
                    value,
                    f"Write out, tid = pl.{kind}(...), or tid_and_results = pl.{kind}(...)",
                )
            directive = self.directive_of(value)
            if directive is not None:
                directive(self, value)
                return
        self.statement_call = value
        result = self.expr(value)
        if type(result) is not MakeTuple or result.elements:  # nothing comes of an inline function without a value
            self.emit(EvalStmt(result, self.span(node)))

    def stmt_return(self, node: ast.Return) -> None:
        span = self.span(node)
        if node.value is None:
            values: list[Expr] = []
        elif type(node.value) is ast.Tuple:
            values = [self.expr(e) for e in node.value.elts]
        else:
            values = [self.expr(node.value)]
        if self.inline_frames:
            self._inline_return(values, node)
            return
        values = self.checked_results(values, node)
        self.return_values.append((values, span))
        self.emit(ReturnStmt(FrozenList(values), span))

    def _inline_return(self, values: list[Expr], node: ast.Return) -> None:
        frame = self.inline_frames[-1][1]
        if any(construct.kind == "if" or construct.kind in LOOPS for construct in self.constructs):
            self.fail(
                "return inside a branch or loop of an inline function is not supported",
                node,
                "Assign the result to a name in each branch, and return it at the end",
                UnsupportedFeatureError,
            )
        frame.returned = True
        if values:
            frame.value = values[0] if len(values) == 1 else MakeTuple(values, self.span(node))

    def checked_results(self, values: list[Expr], node: ast.Return) -> list[Expr]:
        """Count and types of returned values against the declared results."""
        declared = self.declared_results
        if not declared:
            return values
        kinds: list[Type] = [v.type for v in values]
        if len(values) == 1 and isinstance(kinds[0], TupleType) and len(declared) > 1:
            kinds = list(kinds[0].types)
        if len(declared) == 1 and isinstance(declared[0], TupleType) and len(values) > 1:
            declared = list(declared[0].types)
        if any(isinstance(k, UnknownType) for k in kinds) and len(values) == 1:
            return values
        if len(kinds) != len(declared):
            self.type_error(
                f"return has {len(kinds)} value(s) but function '{self.function_name}' declares {len(declared)}", node
            )
        checked = list(values)
        for i, (want, have) in enumerate(zip(declared, kinds, strict=True)):
            value = values[i] if len(values) == len(kinds) else None
            problem = mismatch(want, have, value)
            if problem is not None:
                self.type_error(f"return value {i}: declared result {problem}", node, f"Declared: {want}")
        return checked

    def stmt_break(self, node: ast.Break) -> None:
        self._check_loop_control("break", node)
        self.emit(BreakStmt(self.span(node)))

    def stmt_continue(self, node: ast.Continue) -> None:
        self._check_loop_control("continue", node)
        self.emit(ContinueStmt(self.span(node)))

    def _check_loop_control(self, word: str, node: ast.stmt) -> None:
        for construct in reversed(self.constructs):
            if construct.kind in ("range", "pipeline", "while", "while_"):
                return
            if construct.kind == "parallel":
                message = f"'{word}' is not supported in parallel loops"
            elif construct.kind == "unroll":
                message = f"'{word}' is not supported in unrolled loops"
            elif construct.kind == "split_aiv":
                message = f"'{word}' is not supported inside a 'for ... in pl.split_aiv(...)' body"
            else:
                continue
            raise InvalidOperationError(message, self.span(node))
        raise InvalidOperationError(f"'{word}' outside loop", self.span(node))

    # --- directives ---------------------------------------------------------------------------------------------------

    def directive_of(self, node: ast.Call) -> Any:
        parts = dotted(node.func)
        if parts is None:
            return None
        name = parts[-1]
        if name in ("static_print", "static_assert"):
            return Statements.static_print if name == "static_print" else Statements.static_assert
        if len(parts) == 2 and self.closure.alias(parts[0]) == "pl":
            if name == "dump_tag":
                return Statements.dump_tag
            if name == "func_attr":
                return Statements.late_func_attr
            if name == "cond":
                return Statements.late_cond
        return None

    def static_print(self, node: ast.Call) -> None:
        """Print during parsing."""
        if not node.args:
            self.fail("static_print() requires at least 1 argument", node)
        if node.keywords:
            self.fail(f"static_print() got an unexpected keyword argument '{node.keywords[0].arg}'", node)
        span = self.span(node)
        parts = [self._printed(arg) for arg in node.args]
        print(f"static_print [{span.filename}:{span.begin_line}]:", *parts)

    def _printed(self, node: ast.expr) -> str:
        if type(node) is ast.Constant and isinstance(node.value, str):
            return node.value
        if type(node) is ast.JoinedStr:
            text = []
            for piece in node.values:
                if type(piece) is ast.Constant:
                    text.append(str(piece.value))
                    continue
                assert type(piece) is ast.FormattedValue
                if piece.conversion != -1 or piece.format_spec is not None:
                    self.fail(
                        "static_print(): f-string conversions and format specs are not supported",
                        node,
                        None,
                        UnsupportedFeatureError,
                    )
                text.append(self._printed(piece.value))
            return "".join(text)
        value = self.expr(node)
        if isinstance(value, Var):
            return f"{value.name_hint}: {value.type}"
        if isinstance(value, (ConstInt, ConstFloat, ConstBool)):
            return f"{value.value}: {value.type}"
        return value.as_python(format=False)

    def static_assert(self, node: ast.Call) -> None:
        """Check during parsing."""
        if not 1 <= len(node.args) <= 2 or node.keywords:
            self.fail("static_assert() requires 1 or 2 arguments", node)
        message = ""
        if len(node.args) == 2:
            text = node.args[1]
            if type(text) is not ast.Constant or not isinstance(text.value, str):
                self.fail("static_assert() message must be a string literal", text)
            message = text.value
        test = node.args[0]
        value = self.evaluate(test) if self._only_closure_names(test) else MISSING
        if value is MISSING:
            parsed = self.expr(test)
            from ..arith.prove import simplify

            parsed = simplify(parsed)
            if not isinstance(parsed, (ConstBool, ConstInt, ConstFloat)):
                raise ParserError(
                    "static_assert condition must be compile-time evaluable",
                    self.span(node),
                    f"The condition is {ast.unparse(test)}",
                )
            value = parsed.value
        if not value:
            raise ParserError(
                "static_assert failed" + (f": {message}" if message else ""),
                self.span(node),
                hint=f"Condition: {ast.unparse(test)} evaluated to {value}",
            )

    def dump_tag(self, node: ast.Call) -> None:
        if self.func_type not in (FunctionType.Orchestration, FunctionType.Inline):
            self.fail("pl.dump_tag() is only valid inside an Orchestration or Inline function", node)
        if len(node.args) != 1 or node.keywords:
            self.fail("pl.dump_tag() takes exactly one positional argument", node)
        arg = node.args[0]
        if type(arg) is not ast.Name:
            self.fail("pl.dump_tag() argument must be a bare variable name", arg)
        var = self.scopes.lookup(arg.id)
        if var is None:
            self.fail(f"pl.dump_tag(): '{arg.id}' is not defined at this point", arg)
        if not isinstance(var, Var) or not isinstance(var.type, TensorType):
            self.type_error(f"pl.dump_tag(): '{arg.id}' is not a tensor", arg)
        if not any(var is tag for tag in self.dump_tags):
            self.dump_tags.append(var)

    def late_func_attr(self, node: ast.Call) -> None:
        self.fail("pl.func_attr() must appear before every other statement", node)

    def late_cond(self, node: ast.Call) -> None:
        self.fail("pl.cond() can only be the first statement of a pl.while_() body", node)

    # --- supplied by the control-flow part ----------------------------------------------------------------------------

    inline_frames: list[tuple[str, Any]]
    has_left: bool
    declared_results: list[Type]

    def stored_in_branches(self) -> frozenset[str]:
        raise NotImplementedError

    def is_yield(self, node: ast.expr) -> bool:
        raise NotImplementedError

    def assignment_yield(self, target: ast.expr, annotation: ast.expr | None, node: ast.Call) -> None:
        raise NotImplementedError

    def bare_yield(self, node: ast.Call) -> None:
        raise NotImplementedError


def _memref_differs(a: Type, b: Type) -> bool:
    return getattr(a, "memref", None) is not getattr(b, "memref", None)


def retyped(value: Expr, kind: Type) -> tuple[Expr, Type | None]:
    """A call with another type; any other value as it is, with the type that its variable takes."""
    return (value.replace(type=kind), None) if isinstance(value, Call) else (value, kind)
