"""Simplify: constants, scalar arithmetic, decided branches, loops that run once or never, and dead scalar code.

*Before*::

    k = 4
    half = n // 2
    for i, (y,) in pl.range(k, init_values=(x,)):
        if i < 4:
            y1 = pl.add(y, 1.0)
            p = pl.yield_(y1)
        else:
            p = pl.yield_(y)
        r = pl.yield_(p)
    u = pl.mul(x, 9.0)

*After*::

    for i, (y,) in pl.range(4, init_values=(x,)):
        y1 = pl.add(y, 1.0)
        r = pl.yield_(y1)
    u = pl.mul(x, 9.0)

One walk in the order of execution rewrites expressions by :mod:`pypto.arith` with what is known at each place:
constants that were assigned (within the region of the assignment), ranges of scalars and loop variables, conditions of
the enclosing branches. Expressions in types, attributes and launch fields are rewritten like operands, so types follow;
where that makes the type of a call more specific, it is inferred again. A second step removes scalar computations and
results of branches that nothing uses.

What a removed branch or loop would have done is the only thing with a call in it that goes. Loops that have attributes,
that are not sequential, or that contain an escape of their own stay.

Needs nothing and gives nothing: it runs before SSA as well, where scalars that are assigned more than once are unknown.
Idempotent. Cost: linear in the size of the function.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from operator import is_
from typing import Any

from ..ir import expr as x
from ..ir import stmt as st
from ..ir.dtype import DataType
from ..ir.enums import ForKind
from ..ir.expr import ConstInt, Expr, GlobalVar, IterArg, MemRef, Var, WindowBuffer
from ..ir.node import FrozenDict, FrozenList
from ..ir.program import Function, Program
from ..ir.recursion import deep_recursion
from ..ir.stmt import Stmt
from ..ir.traversal import walk
from ..ir.tree import deduce_call_return_type, flatten_to_stmts, get_last_yield_stmt, stmt_children, with_last_yield
from ..ir.type import ScalarType, ShapedType, TensorType, TupleType, Type
from ..ir.type_fields import PLAIN_TYPES, is_closed, map_type, type_expressions
from ..ops.registry import REGISTRY, build
from ..ops.transfer import layout_of
from .base import FunctionPass, Pass
from .parsed_form import without_empty_else
from .simplification.dead_code import remove_dead_code
from .simplification.parts import FunctionParts
from .simplification.scalars import CONSTANTS, Scalars
from .statement_lists import StatementRemover, with_comments


class Simplify(FunctionPass):
    """Folds what is known before the program runs, and removes dead scalar code."""

    name = "Simplify"

    def run_on(self, function: Function, program: Program) -> Function:
        parts = FunctionParts(function)
        while True:
            walker = _Simplifier(parts, program)
            simplified = walker.run()
            if simplified is not function:
                parts = FunctionParts(simplified)
            simplified = remove_dead_code(parts)
            # What went may have held more back: the other assignment of a name, or the escape of a loop.
            if simplified is function or not walker.folded or not (walker.reassigned or walker.escapes):
                return simplified
            function = simplified
            parts = FunctionParts(function)


def simplify() -> Pass:
    """The pass :class:`Simplify`."""
    return Simplify()


class _Simplifier(StatementRemover):
    """One walk over a function."""

    def __init__(self, parts: FunctionParts, program: Program) -> None:
        self._function = parts.function
        self._program = program
        self.reassigned = parts.reassigned()
        self.folded = False  # whether a branch or a loop was folded
        self.escapes = False  # whether a loop stayed because of an escape
        self._scalars = Scalars(self._child, self._remap, self.reassigned)
        self._constants: list[Any] = []  # variables that stand for constants, in the order of the assignments

    def _child(self, e: Any) -> Any:
        return self._dispatch[type(e)](self, e)

    # --- functions ----------------------------------------------------------------------------------------------------

    def run(self) -> Function:
        """The rewritten function; the same object if nothing changes."""
        function = self._function
        self._note_sizes(function)
        with deep_recursion():
            params = self._defined_all(function.params)
            attrs = self._attributes(function.attrs) if function.attrs else function.attrs
            body = self.finished(self.visit_stmt(function.body))
            # Behind the body: constants assigned at its top level count for the result types as well.
            results = self._items(function.return_types, self._rewrite_type)
        new = {"params": params, "attrs": attrs, "body": body, "return_types": results}
        return function if _same_fields(function, new) else function.replace(**new)

    def _note_sizes(self, function: Function) -> None:
        """Symbols of the signature are extents; so are parameters that stand alone for an extent."""
        params = dict.fromkeys(function.params)
        for kind in (*(param.type for param in function.params), *function.return_types):
            for e in () if type(kind) in PLAIN_TYPES or is_closed(kind) else type_expressions(kind):
                for node in walk(e):
                    if type(node) is Var and node not in self.reassigned and (node is e or node not in params):
                        self._scalars.is_size(node)

    # --- definitions --------------------------------------------------------------------------------------------------

    def _defined(self, var: Any) -> Any:
        """A variable where it is defined: made anew if its type changes."""
        known = self._remap.get(var)
        if known is not None:
            return known
        kind = var.type
        if type(kind) in PLAIN_TYPES or is_closed(kind):
            return var
        return self._with_type(var, self._rewrite_type(kind))

    def _with_type(self, var: Any, kind: Type) -> Any:
        if kind is var.type:
            return var
        new = self._remap[var] = var.replace(type=kind)
        if var in self.reassigned:
            self.reassigned.add(new)
        return new

    def _defined_all(self, variables: FrozenList[Any]) -> FrozenList[Any]:
        return self._items(variables, self._defined) if variables else variables

    def _items(self, old: FrozenList[Any], code: Any) -> FrozenList[Any]:
        return _kept(old, [code(item) for item in old])

    def _rewrite_type(self, kind: Any) -> Any:
        if type(kind) in PLAIN_TYPES or is_closed(kind):
            return kind
        scalars = self._scalars
        outer, scalars.for_types = scalars.for_types, True
        try:
            return map_type(kind, self._child)
        finally:
            scalars.for_types = outer

    def _know(self, var: Any, value: Any) -> None:
        """Remember what was assigned to a scalar."""
        if var in self.reassigned:
            return
        if type(value) in CONSTANTS:
            constant = _as_constant(value, var.type.dtype)
            if constant is not None:
                self._remap[var] = constant
                self._constants.append(var)
                return
        self._scalars.define(var, value)

    # --- expressions --------------------------------------------------------------------------------------------------

    def visit_var(self, op: Var) -> Expr:
        return self._remap.get(op, op)  # type: ignore[no-any-return]

    def visit_iter_arg(self, op: IterArg) -> Expr:
        return self._remap.get(op, op)  # type: ignore[no-any-return]

    def visit_binary_expr(self, op: x.BinaryExpr) -> Expr:
        return self._scalars.simplify(op)  # type: ignore[no-any-return]

    def visit_unary_expr(self, op: x.UnaryExpr) -> Expr:
        return self._scalars.simplify(op)  # type: ignore[no-any-return]

    def visit_mem_ref(self, op: MemRef) -> Expr:
        return self._descriptor(op)

    def visit_window_buffer(self, op: WindowBuffer) -> Expr:
        return self._descriptor(op)

    def _descriptor(self, op: Any) -> Expr:
        """Types share descriptors by identity, so they are rewritten like types, and once."""
        scalars = self._scalars
        outer, scalars.for_types = scalars.for_types, True
        try:
            return self._default_expr(op)
        finally:
            scalars.for_types = outer

    def visit_call(self, op: x.Call) -> Expr:
        kind, scalars = op.type, self._scalars
        closed = type(kind) in PLAIN_TYPES or is_closed(kind)
        if closed or not scalars.conditional:
            args = self._operands(op.args)
        else:  # what decides a type must mean the same in and outside of a branch
            outer, scalars.for_types = scalars.for_types, True
            args = self._operands(op.args)
            scalars.for_types = outer
        attrs = self._attributes(op.attrs) if op.attrs else op.attrs
        kwargs = self._attributes(op.kwargs) if op.kwargs else op.kwargs
        if args is not op.args or kwargs is not op.kwargs:
            new_kind = self._refreshed(op, args, kwargs)
        else:
            new_kind = kind if closed else self._rewrite_type(kind)
        if len(args) == 1 and op.op.name == "tensor.view" and _keeps_layout(kwargs, args[0]):
            return args[0]  # type: ignore[no-any-return]
        if args is op.args and attrs is op.attrs and kwargs is op.kwargs and new_kind is kind:
            return op
        return x.Call.make(op.op, args, kwargs, attrs, new_kind, op.span)

    def _operands(self, old: list[Any]) -> Any:
        """Operands rewritten; the quick cases first."""
        dispatch, remap = self._dispatch, self._remap
        changed = False
        new = []
        for e in old:
            cls = type(e)
            item = remap.get(e, e) if cls is Var else e if cls in CONSTANTS else dispatch[cls](self, e)
            if item is not e:
                changed = True
            new.append(item)
        return FrozenList(new) if changed else old

    def visit_make_tuple(self, op: x.MakeTuple) -> Expr:
        elements = self._operands(op.elements)
        if elements is op.elements:
            return op
        kinds = [e.type for e in elements]
        kind = op.type if all(e.type is kind for e, kind in zip(op.elements, kinds, strict=True)) else TupleType(kinds)
        return op.replace(elements=elements, type=kind)

    def visit_submit(self, op: x.Submit) -> Expr:
        args, deps = self._operands(op.args), self._operands(op.deps)
        core_num = None if op.core_num is None else self._child(op.core_num)
        predicate = None if op.predicate is None else self._scalars.substituted(op.predicate)
        attrs, kwargs = self._attributes(op.attrs), self._attributes(op.kwargs)
        kind = self._rewrite_type(op.type) if args is op.args else self._refreshed(op, args, kwargs)
        new = {
            "args": args,
            "deps": deps,
            "core_num": core_num,
            "predicate": predicate,
            "attrs": attrs,
            "kwargs": kwargs,
            "type": kind,
        }
        return op if _same_fields(op, new) else op.replace(**new)

    def _attributes(self, attrs: FrozenDict[str, Any]) -> FrozenDict[str, Any]:
        changes = {}
        for key, value in attrs.items():
            if isinstance(value, Expr):
                # The runtime evaluates a predicate as it was written: only what it reads is rewritten.
                new = self._scalars.substituted(value) if key == "predicate" else self._child(value)
            elif isinstance(value, FrozenList):
                new = self._items(value, self._listed)
            else:
                continue
            if new is not value:
                changes[key] = new
        return FrozenDict({**attrs, **changes}) if changes else attrs

    def _listed(self, item: Any) -> Any:
        """An item of an attribute that holds a list: nothing but a variable can take the place of a variable."""
        if not isinstance(item, Var):
            return item
        new = self._child(item)
        return new if isinstance(new, Var) else item

    def _refreshed(self, op: Any, args: FrozenList[Any], kwargs: FrozenDict[str, Any]) -> Type:
        """The type of a call whose operands changed: inferred again where the old type was the inferred one."""
        kind: Type = self._rewrite_type(op.type)
        if type(kind) in PLAIN_TYPES or is_closed(kind) or _has_memref(kind):
            return kind
        try:
            if self._inferred(op, op.args, op.kwargs) != op.type:
                return kind
            found = self._inferred(op, args, kwargs)
        except (ValueError, TypeError):  # operands that the rule refuses: for the verifier to say
            return kind
        return kind if found is None else self._rewrite_type(found)

    def _inferred(self, op: Any, args: FrozenList[Any], kwargs: FrozenDict[str, Any]) -> Type | None:
        if type(op.op) is not GlobalVar:
            definition = REGISTRY.get(op.op.name)
            return None if definition is None else build(definition, args, kwargs, op.span).type
        callee = self._program.get_function(op.op.name)
        if callee is None or not callee.return_types:
            return None
        kinds = deduce_call_return_type(callee.params[: len(args)], args, callee.return_types)
        if type(op) is x.Submit:
            return TupleType([*kinds, ScalarType(DataType.TASK_ID)])
        return kinds[0] if len(kinds) == 1 else TupleType(kinds)

    # --- plain statements ---------------------------------------------------------------------------------------------

    def visit_assign_stmt(self, op: st.AssignStmt) -> Stmt:
        old, before = op.var, op.value
        value = self._dispatch[type(before)](self, before)
        if type(old.type) is ScalarType:
            self._know(old, value)
            return op if value is before else op.replace(value=value)
        kind = old.type
        var = self._remap.get(old)
        if var is None:
            if value is before and (type(kind) in PLAIN_TYPES or is_closed(kind)):
                return op
            follows = kind is before.type or (value.type is not before.type and kind == before.type)
            if follows and not _has_memref(kind):
                var = self._with_type(old, value.type)
            else:
                var = self._defined(old)
        return op if var is old and value is before else op.replace(var=var, value=value)

    def visit_yield_stmt(self, op: st.YieldStmt) -> Stmt:
        values = self._operands(op.value)
        return op if values is op.value else op.replace(value=values)

    def _scope(self, op: Any) -> Stmt:
        changes: dict[str, Any] = {"attrs": self._attributes(op.attrs)}
        if type(op) is st.SpmdScopeStmt:
            changes["core_num"] = self._child(op.core_num)
        elif type(op) is st.CommDomainScopeStmt:
            changes["slots"] = self._items(op.slots, self._child)
        changes["body"] = self._child(op.body)
        return op if _same_fields(op, changes) else op.replace(**changes)  # type: ignore[no-any-return]

    visit_in_core_scope_stmt = _scope
    visit_cluster_scope_stmt = _scope
    visit_hierarchy_scope_stmt = _scope
    visit_spmd_scope_stmt = _scope
    visit_split_aiv_scope_stmt = _scope
    visit_runtime_scope_stmt = _scope
    visit_comm_domain_scope_stmt = _scope

    def _end_constants(self, mark: int) -> None:
        inside = self._constants[mark:]
        if inside:
            del self._constants[mark:]
            for var in inside:
                del self._remap[var]
            self._scalars.forget_replacements()

    # --- branches -----------------------------------------------------------------------------------------------------

    def visit_if_stmt(self, op: st.IfStmt) -> Stmt:
        condition, truth = self._scalars.decided(op.condition)
        if truth is not None:
            taken = self._taken(op, op.then_body if truth else op.else_body)
            if taken is not None:
                return taken
        then_body = self._branch(op.then_body, condition, False)
        else_body = None if op.else_body is None else self._branch(op.else_body, condition, True)
        results = op.return_vars
        if then_body is op.then_body and else_body is op.else_body:
            results = self._defined_all(results)
            if results is op.return_vars:
                return op if condition is op.condition else op.replace(condition=condition)
        elif results:
            results = self._results(op, then_body, else_body)
        new = op.replace(condition=condition, then_body=then_body, else_body=else_body, return_vars=results)
        return without_empty_else(new)

    def _branch(self, body: Stmt, condition: Expr, negated: bool) -> Stmt:
        """A branch: constants that are assigned in it count in it only."""
        mark = len(self._constants)
        self._scalars.assume(condition, negated)
        new = self._dispatch[type(body)](self, body)
        self._scalars.leave()
        if len(self._constants) > mark:
            self._end_constants(mark)
        return new  # type: ignore[no-any-return]

    def _results(self, op: st.IfStmt, then_body: Stmt, else_body: Stmt | None) -> FrozenList[Any]:
        """The results of a branch: where both branches yield a more specific type, the result has it."""
        new_then, old_then = get_last_yield_stmt(then_body), get_last_yield_stmt(op.then_body)
        new_else, old_else = get_last_yield_stmt(else_body), get_last_yield_stmt(op.else_body)
        if (new_then is old_then and new_else is old_else) or None in (new_then, old_then, new_else, old_else):
            return self._defined_all(op.return_vars)
        yields = [stmt.value for stmt in (old_then, old_else, new_then, new_else) if stmt is not None]
        if any(len(values) != len(op.return_vars) for values in yields):
            return self._defined_all(op.return_vars)
        rows = zip(op.return_vars, *yields, strict=True)
        return _kept(op.return_vars, [self._result(*row) for row in rows])

    def _result(self, var: Any, old_then: Expr, old_else: Expr, new_then: Expr, new_else: Expr) -> Any:
        kind = var.type
        changed = new_then.type is not old_then.type or new_else.type is not old_else.type
        if changed and var not in self._remap and not _has_memref(kind):
            if kind == old_then.type == old_else.type and new_then.type == new_else.type:
                return self._with_type(var, new_then.type)
        return self._defined(var)

    def _taken(self, op: st.IfStmt, body: Stmt | None) -> Stmt | None:
        """The branch that is always taken, in place of the ``if``; None if the statement is malformed."""
        if body is None:
            if op.return_vars:
                return None
            self.folded = True
            return self.removed(op)
        if op.return_vars and not _yields(body, len(op.return_vars)):
            return None
        self.folded = True
        return self._spliced(op, [], self._child(body), op.return_vars)

    # --- loops --------------------------------------------------------------------------------------------------------

    def visit_for_stmt(self, op: st.ForStmt) -> Stmt:
        self._fresh.difference_update(op.iter_args)
        start, stop, step = self._operands([op.start, op.stop, op.step])
        first = self._operands([arg.initValue for arg in op.iter_args])
        scalars = self._scalars
        constant = type(start) is ConstInt and type(stop) is ConstInt
        may_go = op.kind is ForKind.Sequential and not op.attrs
        trips = scalars.trips(start, stop, step) if may_go or constant else None
        if may_go and trips is not None and self._may_fold(op, trips):
            self.folded = True
            return self._once(op, start, first) if trips else self._never(op, first)
        attrs = self._attributes(op.attrs) if op.attrs else op.attrs
        iter_args = self._carried(op.iter_args, first) if first else op.iter_args
        mark = len(self._constants)
        if trips == 1 and type(start) is ConstInt:
            self._know(op.loop_var, start)
        if op.loop_var not in self.reassigned:
            scalars.loop(op.loop_var, start, stop, step)
        if not constant:
            scalars.assume_loop(op.loop_var)
        body = self._child(op.body)
        if not constant:
            scalars.leave()
        self._end_constants(mark)
        return_vars = self._defined_all(op.return_vars)
        if (
            body is op.body
            and start is op.start
            and stop is op.stop
            and step is op.step
            and iter_args is op.iter_args
            and return_vars is op.return_vars
            and attrs is op.attrs
        ):
            return op
        return op.replace(  # type: ignore[no-any-return]
            start=start,
            stop=stop,
            step=step,
            iter_args=iter_args,
            body=body,
            return_vars=return_vars,
            attrs=attrs,
        )

    def _may_fold(self, op: st.ForStmt, trips: int) -> bool:
        """Whether a loop yields what it carries, and no escape in it ends it."""
        if len(op.iter_args) != len(op.return_vars):
            return False
        if not trips:
            return True
        if op.iter_args and not _yields(op.body, len(op.iter_args)):
            return False
        if _has_own_escape(op.body):
            self.escapes = True
            return False
        return True

    def visit_while_stmt(self, op: st.WhileStmt) -> Stmt:
        self._fresh.difference_update(op.iter_args)
        first = self._operands([arg.initValue for arg in op.iter_args])
        iter_args = self._carried(op.iter_args, first)
        condition = self._child(op.condition)
        body = self._branch(op.body, condition, False)
        return_vars = self._defined_all(op.return_vars)
        new = {"iter_args": iter_args, "condition": condition, "body": body, "return_vars": return_vars}
        return op if _same_fields(op, new) else op.replace(**new)

    def _carried(self, iter_args: FrozenList[Any], first: Sequence[Any]) -> FrozenList[Any]:
        """Carries with their first values, at their definition."""
        new = []
        for arg, value in zip(iter_args, first, strict=True):
            kind = arg.type
            if type(kind) not in PLAIN_TYPES and not is_closed(kind):
                kind = self._rewrite_type(kind)
            if value is not arg.initValue or kind is not arg.type:
                made = self._remap[arg] = arg.replace(initValue=value, type=kind)
                if arg in self.reassigned:
                    self.reassigned.add(made)
                arg = made
            new.append(arg)
        return _kept(iter_args, new)

    def _never(self, op: st.ForStmt, first: Sequence[Any]) -> Stmt:
        """What a loop without iterations leaves: its results are the first values."""
        return self.replaced(op, list(self._bindings(op.return_vars, first, op)))

    def _once(self, op: st.ForStmt, start: Any, first: Sequence[Any]) -> Stmt:
        """The body of a loop with one iteration, in its place."""
        head = list(self._bindings([op.loop_var, *op.iter_args], [start, *first], op))
        return self._spliced(op, head, self._child(op.body), op.return_vars)

    def _spliced(self, op: Any, head: list[Stmt], body: Stmt, results: FrozenList[Any]) -> Stmt:
        """A rewritten body in the place of the statement it was in; what it yielded becomes the results."""
        last = get_last_yield_stmt(body) if results else None
        stmts = flatten_to_stmts(body if last is None else with_last_yield(body, lambda _: ()))
        if last is not None:
            above = last.leading_comments
            assigned = list(self._bindings(results, last.value, op))
            if above and assigned:
                assigned[0] = with_comments(above, assigned[0])
            elif above:
                self.homeless = above + self.homeless
            stmts += assigned
        return self.replaced(op, head + stmts)

    def _bindings(self, variables: Sequence[Any], values: Sequence[Any], op: Stmt) -> Iterator[Stmt]:
        """Let variables stand for values: substituted, or assigned where a value is computed or may change."""
        for var, value in zip(variables, values, strict=True):
            if self._stands_for(var, value):
                continue
            target = var
            if type(var) is IterArg:
                target = self._remap[var] = Var(var.name_hint, self._rewrite_type(var.type), var.span)
                if var in self.reassigned:
                    self.reassigned.add(target)
            elif type(var.type) is not ScalarType:
                target = self._defined(var)
            if type(target.type) is ScalarType:
                self._know(target, value)
            yield st.AssignStmt(target, value, op.span)

    def _stands_for(self, var: Any, value: Any) -> bool:
        if var in self.reassigned or value in self.reassigned:
            return False
        if type(value) in CONSTANTS:
            if type(var.type) is not ScalarType:
                return False
            value = _as_constant(value, var.type.dtype)
            if value is None:
                return False
        elif type(value) not in (Var, IterArg) or (type(var.type) is ScalarType and value.type is not var.type):
            return False
        self._remap[var] = value
        return True


def _kept(old: FrozenList[Any], new: list[Any]) -> FrozenList[Any]:
    """The new items as a list; the old list if they are the same."""
    return old if all(map(is_, new, old)) else FrozenList(new)


def _same_fields(op: Any, new: dict[str, Any]) -> bool:
    return all(value is getattr(op, name) for name, value in new.items())


def _as_constant(value: Any, dtype: DataType) -> Any:
    """A constant as a value of a dtype; None if it would change."""
    if value.dtype is dtype:
        return value
    if type(value) is not ConstInt or not dtype.is_int_:
        return None
    bits = dtype.get_bit()
    low, high = (0, 2**bits - 1) if dtype.is_unsigned_ else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    return ConstInt(value.value, dtype, value.span) if low <= value.value <= high else None


def _has_memref(kind: Any) -> bool:
    """Whether a type says where its data lies."""
    if isinstance(kind, ShapedType):
        return kind.memref is not None
    return type(kind) is TupleType and any(map(_has_memref, kind.types))


def _keeps_layout(kwargs: FrozenDict[str, Any], source: Any) -> bool:
    """Whether a view that only names a layout names the one that its source has."""
    return isinstance(source.type, TensorType) and kwargs.get("layout") is layout_of(source.type)


def _yields(body: Stmt, count: int) -> bool:
    last = get_last_yield_stmt(body)
    return last is not None and len(last.value) == count


def _has_own_escape(body: Stmt) -> bool:
    """Whether a ``break`` or ``continue`` in a loop body belongs to that loop."""
    stack = [body]
    while stack:
        stmt = stack.pop()
        cls = type(stmt)
        if cls is st.BreakStmt or cls is st.ContinueStmt:
            return True
        if cls is not st.ForStmt and cls is not st.WhileStmt:
            stack += stmt_children(stmt)
    return False


__all__ = ["Simplify", "simplify"]
