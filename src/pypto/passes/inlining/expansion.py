"""The expansion of calls of Inline functions; see :mod:`inline_functions`.

A caller, and each Inline function in the place of a call, is a frame: a rewrite that appends statements to one list, so
that each statement of the result is made once, however deep the calls are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from ...analysis.purity import has_effects
from ...ir.call_types import symbol_bindings
from ...ir.expr import Call, Expr, GlobalVar, IterArg, MakeTuple, Submit, TupleGetItemExpr, Var
from ...ir.program import Function, Program
from ...ir.span import Span
from ...ir.stmt import (
    AssignStmt,
    ClusterScopeStmt,
    EvalStmt,
    HierarchyScopeStmt,
    InCoreScopeStmt,
    ReturnStmt,
    ScopeStmt,
    SeqStmts,
    SpmdScopeStmt,
    Stmt,
    seq,
)
from ...ir.traversal import CONSTANTS
from ...ir.tree import flatten_to_stmts, own_definitions, walk
from ...ir.type import TupleType
from ...ir.type_fields import is_closed, map_type
from ...verify.call_sites import call_sites
from ..errors import PassError
from ..parsed_form import ParsedForm
from ..statement_lists import with_comments
from .marks import NO_MARKS, Marks
from .summary import InlineSummary

# Arguments are copied to where parameters are used. A helper that hands `n + n` on to another one, and so forth, would
# double the expression at each level.
MAX_COPIED = 64

# --- questions --------------------------------------------------------------------------------------------------------


def _evaluated(value: Expr) -> Iterator[Expr]:
    """What has to be evaluated of a value that nobody takes."""
    if isinstance(value, MakeTuple):
        for element in value.elements:
            yield from _evaluated(element)
    elif has_effects(value):
        yield value


def _is_evaluated_once(value: Expr) -> bool:
    """Whether an argument is put into a local: it has a call, or it is so large that copies of it might explode."""
    if isinstance(value, Var):
        return False
    nodes = list(islice(walk(value), MAX_COPIED + 1))
    return len(nodes) > MAX_COPIED or any(isinstance(node, (Call, Submit)) for node in nodes)


def _mentions(e: Expr, variables: Collection[Any]) -> bool:
    return bool(variables) and any(node in variables for node in walk(e))


class _Facts:
    """What the body of a function does with its variables.

    ``definitions``: how often each is defined; ``writes``: the same, with calls of Inline functions that assign it;
    ``elements``: how often an element of a tuple is taken; ``whole``: how often the variable is used otherwise;
    ``built``: how many of its definitions give a tuple that is known element by element.
    """

    def __init__(self, function: Function, expander: Expander) -> None:
        self.definitions: Counter[Any] = Counter()
        self.elements: Counter[Any] = Counter()
        self.built: Counter[Any] = Counter()
        assigned: Counter[Any] = Counter()
        seen: Counter[Any] = Counter()
        for node in walk(function.body):
            if isinstance(node, Var):
                seen[node] += 1
            elif isinstance(node, Stmt):
                self.definitions.update(own_definitions(node))
                if type(node) is AssignStmt and (type(node.value) is MakeTuple or expander.call_of(node)):
                    self.built[node.var] += 1
            elif type(node) is TupleGetItemExpr:
                self.elements[node.tuple] += 1
            elif type(node) is Call and expander.is_inline(node):
                callee = expander.summary(node.op.name)
                pairs = zip(callee.params, node.args, strict=False)
                assigned.update(arg for param, arg in pairs if callee.uses[param].of_caller)
        self.whole = seen - self.elements - self.definitions
        self.writes = self.definitions + assigned


# --- expansion --------------------------------------------------------------------------------------------------------


class _Result:
    """What a call gives: its values, and the comments of the ``return`` that gave them."""

    __slots__ = ("comments", "values")

    def __init__(self, values: Sequence[Expr], comments: Sequence[str] = ()) -> None:
        self.values = values
        self.comments = comments


class Expander:
    """The expansion of the calls in one program."""

    def __init__(self, program: Program, inline: Mapping[str, Function]) -> None:
        self._inline = inline
        self._functions = {f.name: f for f in program.functions.values()}
        self._summaries: dict[str, InlineSummary] = {}
        self._facts: dict[Function, _Facts] = {}
        self._locals = 0

    def expanded(self, function: Function) -> Function:
        """A caller with its calls expanded."""
        if not any(site.call.op.name in self._inline for site in call_sites(function).functions):
            return function
        body = _Frame(self, function).visit_stmt(function.body)
        return function if body is function.body else function.replace(body=body)

    def is_inline(self, e: Any) -> bool:
        return type(e) is Call and type(e.op) is GlobalVar and e.op.name in self._inline

    def call_of(self, stmt: Any) -> Call | None:
        """The call that is all that a statement evaluates, if it is one of an Inline function."""
        cls = type(stmt)
        if cls is AssignStmt:
            e = stmt.value
        elif cls is EvalStmt:
            e = stmt.expr
        elif cls is ReturnStmt and len(stmt.value) == 1:
            e = stmt.value[0]
        else:
            return None
        return e if self.is_inline(e) else None

    def summary(self, name: str) -> InlineSummary:
        found = self._summaries.get(name)
        if found is None:
            found = InlineSummary(self._inline[name], self._functions, self._summary_of)
            self._summaries[name] = found
        return found

    def _summary_of(self, name: str) -> InlineSummary | None:
        return self.summary(name) if name in self._inline else None

    def facts(self, function: Function) -> _Facts:
        found = self._facts.get(function)
        if found is None:
            found = self._facts[function] = _Facts(function, self)
        return found

    def local_name(self, name: str) -> str:
        number = self._locals
        self._locals += 1
        return f"{name}_inline{number}"

    def expand(self, call: Call, frame: _Frame, out: list[Stmt]) -> _Result:
        """Append the statements of an expansion; ``frame`` is the function that the call stands in."""
        callee = self.summary(call.op.name)
        _check_call(call, callee)
        new = _Expansion(self, callee, frame.marks.of_call(call, callee.params))
        self._bind(call, callee, frame, new, out)
        new.emit_body(out)
        return new.result(out)

    def _bind(self, call: Call, callee: InlineSummary, frame: _Frame, new: _Expansion, out: list[Stmt]) -> None:
        """Say what the parameters stand for."""
        # What the body gives other values to: arguments that read these must be read before.
        replaced = {
            frame.visit_expr(arg)
            for param, arg in zip(callee.params, call.args, strict=True)
            if callee.uses[param].of_caller is not None and not callee.uses[param].in_place
        }
        values: list[Expr] = []
        for param, arg in zip(callee.params, call.args, strict=True):
            use = callee.uses[param]
            value = self._argument(arg, frame, out)
            if use.of_caller is not None:
                if not isinstance(value, Var):
                    raise PassError(
                        f"Inline function '{callee.name}' writes its parameter '{param.name_hint}', "
                        "so the argument must be a variable",
                        arg.span if arg.span.is_valid() else call.span,
                        labels=((use.of_caller.span, "written here"),),
                        hint="Give the value a name in front of the call and pass that",
                    )
            elif use.local_from is not None or _is_evaluated_once(value) or _mentions(value, replaced):
                value = new.bind_local(param, value, call.span, out)
            new.substitute(param, value)
            values.append(value)
        if callee.symbolic:
            try:
                symbols = symbol_bindings(callee.params, values)
            except ValueError as error:
                raise PassError(str(error), call.span) from error
            new.bind_symbols(symbols)

    def _argument(self, arg: Expr, frame: _Frame, out: list[Stmt]) -> Expr:
        if not self.is_inline(arg):
            return frame.visit_expr(arg)
        return _single(self.expand(arg, frame, out), arg)  # type: ignore[arg-type]


def _check_call(call: Call, callee: InlineSummary) -> None:
    if len(call.args) != len(callee.params):
        raise PassError(
            f"Inline function '{callee.name}' takes {len(callee.params)} argument(s), the call gives {len(call.args)}",
            call.span,
        )
    early = callee.early_return
    if early is not None:
        raise PassError(
            f"Inline function '{callee.name}', called at {call.span}, contains a non-trailing ReturnStmt; "
            "only a single trailing return is supported",
            early.span,
            labels=((call.span, "expanded here"),),
            hint="Assign the result in each branch, and return it in the last line of the function",
        )


def _single(result: _Result, call: Call) -> Expr:
    """The value of a call whose value is used as one."""
    if len(result.values) == 1:
        return result.values[0]
    found = f"{len(result.values)} values" if result.values else "nothing"
    raise PassError(f"Inline function '{call.op.name}' returns {found}, where the call uses one value", call.span)


class _Frame(ParsedForm):
    """A function whose calls are being expanded: here a caller, which is rewritten where it changes."""

    marks: Marks = NO_MARKS
    returned: Any = None  # the tuple variable that an Inline function returns

    def __init__(self, expander: Expander, function: Function) -> None:
        self._active = True  # the pass has made room for the recursion
        self.expander = expander
        self.function = function
        # Variables that hold tuples in the source and nothing in the result -> the elements.
        self.tuples: dict[Any, Sequence[Expr]] = {}

    @property
    def facts(self) -> _Facts:
        return self.expander.facts(self.function)

    # --- statements ---

    def visit_seq_stmts(self, op: SeqStmts) -> Stmt:
        new: list[Stmt] = []
        self.emit(op.stmts, new)
        if len(new) == len(op.stmts) and all(a is b for a, b in zip(new, op.stmts, strict=True)):
            return op
        return seq(new, op.span)

    def visit_assign_stmt(self, op: AssignStmt) -> Stmt:
        return self._visit_alone(op)

    def visit_eval_stmt(self, op: EvalStmt) -> Stmt:
        return self._visit_alone(op)

    def visit_return_stmt(self, op: ReturnStmt) -> Stmt:
        return self._visit_alone(op)

    def _visit_alone(self, op: Stmt) -> Stmt:
        if self.expander.call_of(op) is None:
            return self._default_stmt(op)
        new: list[Stmt] = []
        self.emit((op,), new)
        return seq(new, op.span)

    def visit_tuple_get_item_expr(self, op: TupleGetItemExpr) -> Expr:
        values = self.tuples.get(op.tuple)
        return self._default_expr(op) if values is None else values[op.index]

    def emit(self, stmts: Sequence[Stmt], out: list[Stmt]) -> None:
        """Append what becomes of a list of statements."""
        at = 0
        above: list[str] = []  # comments that look for a statement
        while at < len(stmts):
            stmt = stmts[at]
            call = self.expander.call_of(stmt)
            at += 1
            first = len(out)
            if call is not None:
                at += self._expand(stmt, call, stmts, at, out)
                above += stmt.leading_comments
            else:
                new = self.visit_stmt(stmt)
                if type(new) is SeqStmts:
                    out += flatten_to_stmts(new)
                else:
                    out.append(new)
            if above and len(out) > first:
                out[first] = with_comments(above, out[first])
                above = []

    # --- calls ---

    def _expand(self, stmt: Any, call: Call, stmts: Sequence[Stmt], at: int, out: list[Stmt]) -> int:
        """Expand the call of a statement; gives how many of the statements from ``at`` on are done with it."""
        result = self.expander.expand(call, self, out)
        end = len(out)
        done = 0
        if type(stmt) is ReturnStmt:
            out.append(ReturnStmt(list(result.values), stmt.span))
        elif type(stmt) is EvalStmt:
            out += [EvalStmt(e, e.span) for value in result.values for e in _evaluated(value)]
        elif isinstance(call.type, TupleType) or len(result.values) > 1:
            done = self._assign_tuple(stmt, call, result.values, stmts, at, out)
        else:
            value = _single(result, call)
            target = self.visit_expr(stmt.var)
            if target is not value:
                out.append(AssignStmt(target, value, stmt.span))
        if len(out) > end:
            out[end] = with_comments(result.comments, out[end])
        return done

    def _assign_tuple(
        self, stmt: AssignStmt, call: Call, values: Sequence[Expr], stmts: Sequence[Stmt], at: int, out: list[Stmt]
    ) -> int:
        var, facts = stmt.var, self.facts
        if len(values) == 1 and isinstance(values[0].type, TupleType):
            raise PassError(
                f"Inline function '{call.op.name}' returns a tuple through an unsupported expression",
                values[0].span if values[0].span.is_valid() else call.span,
                labels=((call.span, "the elements are taken here"),),
                hint="Unpack the tuple into names, and return these: `a, b = ...`, then `return a, b`",
            )
        if facts.definitions[var] != 1 or facts.whole[var] != (var is self.returned):
            target: Any = self.visit_expr(var)
            out.append(AssignStmt(target, MakeTuple(list(values), stmt.span), stmt.span))
            return 0
        taken = self._unpacking(var, stmts, at)
        if len(taken) == facts.elements[var] and var is not self.returned:
            self._unpack(taken, values, stmt, out)
            return len(taken)
        self.tuples[var] = self.kept(values, stmt, out)
        return 0

    @staticmethod
    def _unpacking(var: Var, stmts: Sequence[Stmt], at: int) -> list[AssignStmt]:
        """The statements from ``at`` on that each take another element of a tuple and do nothing else."""
        found: list[AssignStmt] = []
        seen: set[int] = set()
        while at < len(stmts):
            stmt = stmts[at]
            value = stmt.value if isinstance(stmt, AssignStmt) else None
            if not isinstance(value, TupleGetItemExpr) or value.tuple is not var or value.index in seen:
                break
            seen.add(value.index)
            found.append(stmt)  # type: ignore[arg-type]
            at += 1
        return found

    def _unpack(self, taken: Sequence[AssignStmt], values: Sequence[Expr], stmt: AssignStmt, out: list[Stmt]) -> None:
        """Assign the elements at once: none of them reads what another one is assigned to."""
        indices = [s.value.index for s in taken]  # type: ignore[attr-defined]
        targets: list[Any] = [self.visit_expr(s.var) for s in taken]
        rest = [value for i, value in enumerate(values) if i not in indices and has_effects(value)]
        changed: set[Any] = set()
        overlap = bool(rest) or indices != sorted(indices)
        for target, index in zip(targets, indices, strict=True):
            overlap = overlap or _mentions(values[index], changed)
            if target is not values[index]:
                changed.add(target)
        if overlap:
            values = self.kept(values, stmt, out, changed)
        for s, target, index in zip(taken, targets, indices, strict=True):
            if target is not values[index]:
                out.append(s.replace(var=target, value=values[index]))

    def kept(
        self, values: Sequence[Expr], stmt: AssignStmt, out: list[Stmt], changed: Collection[Any] = ()
    ) -> Sequence[Expr]:
        """The values as they are now, for uses later on: in locals where they might change (or do, see ``changed``)."""
        found: list[Expr] = []
        for value in values:
            steady = value not in changed if isinstance(value, Var) and changed else self._is_steady(value)
            if not steady:
                new = Var(self.expander.local_name(stmt.var.name_hint), value.type, value.span)
                out.append(AssignStmt(new, value, stmt.span))
                value = new
            found.append(value)
        return found

    def _is_steady(self, value: Expr) -> bool:
        return type(value) in CONSTANTS or (isinstance(value, Var) and not self.facts.writes[value])


class _Expansion(_Frame):
    """An Inline function in the place of a call: everything in it is made anew."""

    def __init__(self, expander: Expander, callee: InlineSummary, marks: Marks) -> None:
        super().__init__(expander, callee.function)
        self.callee = callee
        self.marks = marks
        self._own: dict[Any, Any] = {}  # local of the expansion -> variable of the callee
        result = callee.result
        if result is not None and len(result.value) == 1 and isinstance(result.value[0].type, TupleType):
            self.returned = result.value[0]

    # --- parameters ---

    def substitute(self, param: Var, value: Expr) -> None:
        self._remap[param] = value

    def bind_local(self, param: Var, value: Expr, span: Span, out: list[Stmt]) -> Var:
        """A local with the value of an argument."""
        kind = param.type if is_closed(param.type) else value.type
        new = Var(self.expander.local_name(param.name_hint), kind, param.span)
        self._own[new] = param
        out.append(AssignStmt(new, value, span))
        return new

    def bind_symbols(self, symbols: Mapping[Any, Any]) -> None:
        """Extents that stand for those of arguments."""
        for symbol, dim in symbols.items():
            if symbol is not dim:
                self._remap.setdefault(symbol, dim)

    # --- the body ---

    def emit_body(self, out: list[Stmt]) -> None:
        stmts, at = self.callee.stmts, 0
        for position, params in self._late_locals():
            self.emit(stmts[at:position], out)
            at = position
            for param in params:
                span = stmts[at].span if at < len(stmts) else param.span
                self.substitute(param, self.bind_local(param, self._remap[param], span, out))
        self.emit(stmts[at:] if at else stmts, out)

    def _late_locals(self) -> list[tuple[int, list[Var]]]:
        """Where parameters that stood for variables of the caller become locals."""
        found: dict[int, list[Var]] = {}
        for param, use in self.callee.uses.items():
            if use.local_from is not None and use.local_from >= 0:
                found.setdefault(use.local_from, []).append(param)
        return sorted(found.items())

    def result(self, out: list[Stmt]) -> _Result:
        stmt = self.callee.result
        if stmt is None:
            return _Result(())
        call = self.expander.call_of(stmt)
        if call is not None:
            inner = self.expander.expand(call, self, out)
            return _Result(inner.values, [*stmt.leading_comments, *inner.comments])
        values = stmt.value if self.returned is None else self._elements(self.returned)
        return _Result([self.visit_expr(value) for value in values], stmt.leading_comments)

    def _elements(self, value: Expr) -> Sequence[Expr]:
        """The elements of a returned tuple; the tuple itself where they are not known."""
        if isinstance(value, MakeTuple):
            return value.elements
        known = self.tuples.get(value)
        count = len(value.type.types)  # type: ignore[attr-defined]
        if known is not None or (
            isinstance(value, Var) and 0 < self.facts.definitions[value] == self.facts.built[value]
        ):
            return [TupleGetItemExpr(value, i, value.span) for i in range(count)]
        return [value]

    def visit_assign_stmt(self, op: AssignStmt) -> Stmt:
        if op.var is self.returned and isinstance(op.value, MakeTuple):
            if self.facts.definitions[op.var] == 1 and self.facts.whole[op.var] == 1:
                new: list[Stmt] = []
                values = [self.visit_expr(value) for value in op.value.elements]
                is_last = op is self.callee.stmts[-1]
                self.tuples[op.var] = values if is_last else self.kept(values, op, new)
                return seq(new, op.span)
        return super().visit_assign_stmt(op)

    def _is_steady(self, value: Expr) -> bool:
        if type(value) in CONSTANTS:
            return True
        if not isinstance(value, Var):
            return False
        own = self._own.get(value)
        if own is not None:
            return self.facts.writes[own] <= (own not in self.callee.uses)
        uses = self.callee.uses.items()
        return not any(use.of_caller is not None and self._remap.get(param) is value for param, use in uses)

    def visit_stmt(self, stmt: Stmt) -> Stmt:
        new = super().visit_stmt(stmt)
        # A statement has one place in a function.
        return new.replace() if new is stmt else new

    # --- locals ---

    def visit_var(self, op: Var) -> Expr:
        new = self._remap.get(op)
        if new is not None:
            return new  # type: ignore[no-any-return]
        if op not in self.callee.locals:
            return super().visit_var(op)
        return self._make(op, name_hint=self.expander.local_name(op.name_hint))

    def visit_iter_arg(self, op: IterArg) -> Expr:
        if op in self._remap or op not in self.callee.locals:
            return self.visit_var(op)
        return self._make(op, initValue=self.visit_expr(op.initValue))

    def _make(self, op: Var, **changes: Any) -> Expr:
        kind = op.type if is_closed(op.type) else map_type(op.type, self._rewrite_child)
        new = op.replace(type=kind, **changes)
        self._remap[op] = new
        self._own[new] = op
        return new  # type: ignore[no-any-return]

    # --- marks of the call ---

    def visit_call(self, op: Call) -> Expr:
        return self._marked_launch(op)

    def visit_submit(self, op: Submit) -> Expr:
        return self._marked_launch(op)

    def _marked_launch(self, op: Call | Submit) -> Expr:
        new = self._default_expr(op)
        return self.marks.on_launch(op, new) if self.marks else new

    def visit_in_core_scope_stmt(self, op: InCoreScopeStmt) -> Stmt:
        return self._marked_scope(op)

    def visit_hierarchy_scope_stmt(self, op: HierarchyScopeStmt) -> Stmt:
        return self._marked_scope(op)

    def visit_cluster_scope_stmt(self, op: ClusterScopeStmt) -> Stmt:
        return self._marked_scope(op)

    def visit_spmd_scope_stmt(self, op: SpmdScopeStmt) -> Stmt:
        return self._marked_scope(op)

    def _marked_scope(self, op: ScopeStmt) -> Stmt:
        new: Any = self._default_stmt(op)
        return self.marks.on_scope(op, new, self.function.body, self.visit_expr) if self.marks else new


__all__ = ["Expander"]
