"""Branches, loops and the yields that give them results."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any, cast

from ..ir.dtype import DataType
from ..ir.enums import ForKind
from ..ir.expr import ConstInt, Expr, IterArg, Var, index_const
from ..ir.node import FrozenList
from ..ir.stmt import AssignStmt, ForStmt, IfStmt, Stmt, WhileStmt, YieldStmt
from ..ir.type import ScalarType, Type, UnknownType
from .base import LOOPS, Construct, types_agree
from .closure import MISSING, dotted
from .errors import Suppressed
from .scope import POISON, Conflict
from .statements import Statements
from .typecheck import mismatch

_KINDS = {
    "range": ForKind.Sequential,
    "parallel": ForKind.Parallel,
    "unroll": ForKind.Unroll,
    "pipeline": ForKind.Pipeline,
}
_ITERATORS = (*_KINDS, "while_", "spmd", "split_aiv")


class ControlFlow(Statements):
    """Statements with bodies, but for scopes."""

    # --- yields -------------------------------------------------------------------------------------------------------

    def is_yield(self, node: ast.expr) -> bool:
        if type(node) is not ast.Call:
            return False
        func = node.func
        if type(func) is ast.Attribute:
            return func.attr == "yield_"
        return type(func) is ast.Name and func.id == "yield_"

    def _yield_construct(self, node: ast.expr) -> Construct:
        for construct in reversed(self.constructs):
            if construct.kind == "runtime":
                continue
            if construct.kind != "if" and construct.kind not in LOOPS:
                self.fail(
                    "pl.yield_() inside a `with` scope gives nothing to the branch or loop around it",
                    node,
                    "Move the yield behind the scope, as last statement of the branch or loop",
                )
            return construct
        self.fail("pl.yield_() must be inside a for, while or if body", node, "Use return to leave a function")

    def _yield_values(self, node: ast.Call) -> list[Expr]:
        if node.keywords:
            self.fail("pl.yield_() takes no keyword arguments", node)
        return [self.expr(a) for a in node.args]

    def assignment_yield(self, target: ast.expr, annotation: ast.expr | None, node: ast.Call) -> None:
        """``x = pl.yield_(e)``: emits the yield and names the results of the enclosing construct."""
        construct = self._yield_construct(node)
        targets: list[Any] = target.elts if type(target) in (ast.Tuple, ast.List) else [target]  # type: ignore[attr-defined]
        if not all(type(t) is ast.Name for t in targets):
            self.fail("Tuple unpacking target must be a variable name", target)
        names = [t.id for t in targets]
        if not construct.yield_allowed:
            self.fail(
                "a loop without init_values carries nothing by name",
                node,
                "Give the loop init_values=(...), or assign to the outer name instead of yielding",
            )
        if construct.yield_names is not None:
            self.fail("a body has a single yield: this is the second", node)
        values = self._yield_values(node)
        if len(values) != len(names):
            self.fail(f"pl.yield_() gives {len(values)} value(s) for {len(names)} name(s)", node)
        kinds = [v.type for v in values]
        if annotation is not None:
            declared = self.local_annotation(annotation)
            if declared is not None and len(names) == 1:
                problem = mismatch(declared, kinds[0], values[0])
                if problem is not None:
                    self.type_error(f"Type annotation for '{names[0]}' {problem}", annotation)
                kinds = [declared]
        if construct.iter_args:
            self._check_carries(construct, names, values, node)
        construct.yield_names = names
        construct.yield_types = kinds
        construct.yield_node = node
        self.emit(YieldStmt(FrozenList(values), self.span(node)))

    def _check_carries(self, construct: Construct, names: list[str], values: list[Expr], node: ast.Call) -> None:
        carries = construct.iter_args
        if len(names) != len(carries):
            self.fail(
                f"For loop has {len(carries)} iteration arguments but {len(names)} return variables. They must match.",
                node,
                "Yield one value for each iter arg"
                if len(names) < len(carries)
                else "Cannot infer type for return_var",
            )
        for carry, value in zip(carries, values, strict=True):
            problem = mismatch(carry.type, value.type, value)
            if problem is not None:
                self.type_error(f"yielded value for iter arg '{carry.name_hint}': the carry {problem}", node)

    def bare_yield(self, node: ast.Call) -> None:
        construct = self._yield_construct(node)
        if self._carried_loop() is not None:
            self.fail(
                "Loop with init_values requires an assignment-form pl.yield_(...)",
                node,
                "Write name = pl.yield_(value), one name for each iter arg",
            )
        del construct
        self.emit(YieldStmt(FrozenList(self._yield_values(node)), self.span(node)))

    def _carried_loop(self) -> Construct | None:
        """The innermost loop, when it carries values."""
        for construct in reversed(self.constructs):
            if construct.kind in LOOPS:
                return construct if construct.iter_args else None
        return None

    def yield_expression(self, node: ast.Call) -> Expr:
        """A yield inside an expression: emits the statement and stands for its single value."""
        self._yield_construct(node)
        values = self._yield_values(node)
        self.emit(YieldStmt(FrozenList(values), self.span(node)))
        if len(values) != 1:
            self.fail("Multiple yields should use tuple unpacking assignment", node)
        return values[0]

    # --- if -----------------------------------------------------------------------------------------------------------

    def condition(self, node: ast.expr, word: str) -> Expr:
        value = self.expr(node)
        if not (isinstance(value.type, ScalarType) and value.type.dtype is DataType.BOOL):
            self.type_error(
                f"{word} condition must be a Bool-typed scalar expression, got {value.type}",
                node,
                "Write a comparison, for example x != 0",
            )
        return value

    def stmt_if(self, node: ast.If) -> None:
        static = self.static_condition(node.test)
        if static is not None:
            taken = node.body if static else node.orelse
            self.block(taken)
            in_branch = any(construct.kind == "if" or construct.kind in LOOPS for construct in self.constructs)
            self.has_left = self.has_left or (bool(taken) and type(taken[-1]) is ast.Return and not in_branch)
            return
        test = self.condition(node.test, "if")
        # Comments above the branch are its own; those inside are taken by the statements inside.
        comments = self.comments.take_pending()
        then_construct, then_body, then_names = self._branch(node.body, node, None)
        else_construct: Construct | None = None
        else_body: Stmt | None = None
        else_names: dict[str, Any] = {}
        if node.orelse:
            else_construct, else_body, else_names = self._branch(
                node.orelse, node, then_names, then_construct.yield_names
            )
        names, kinds = self._merge_yields(node, then_construct, else_construct)
        span = self.span(node)
        return_vars = [self.result_var(n, k, span) for n, k in zip(names, kinds, strict=True)]
        if not names:
            self.scopes.tables[-1].update(then_names)
            self.scopes.tables[-1].update(else_names)
            for name in then_names.keys() & else_names.keys():
                a, b = then_names[name], else_names[name]
                if type(a) is Var and type(b) is Var and a is not b:
                    self.scopes.bind(name, Conflict(a.type, b.type))
        for var in return_vars:
            self.bind_result(var)
        self.comments._pending = [*comments, *self.comments._pending]
        self.emit(IfStmt(test, then_body, else_body, FrozenList(return_vars), span))

    def static_condition(self, node: ast.expr) -> bool | None:
        """A condition that a jit specialisation knows; None: keep the branch."""
        return None

    def _branch(
        self,
        statements: list[ast.stmt],
        node: ast.If,
        sibling: dict[str, Any] | None,
        wanted: list[str] | None = None,
    ) -> tuple[Construct, Stmt | None, dict[str, Any]]:
        construct = Construct("if", node)
        self.constructs.append(construct)
        self.scopes.push(sibling)
        try:
            with self.collecting() as stmts:
                self.block(statements)
                if wanted is not None and construct.yield_names is None and len(statements) == 1:
                    self._pass_on_yields(construct, stmts, statements[0], wanted)
                if sibling is not None:
                    self.join_names(sibling)
        finally:
            names = self.scopes.pop()
            self.constructs.pop()
        if not stmts and sibling is not None:
            return construct, None, names
        return construct, self.body_of(stmts, self.span(statements[0])), names

    def _pass_on_yields(
        self, construct: Construct, stmts: Sequence[Stmt], node: ast.stmt, wanted: Sequence[str]
    ) -> None:
        """``elif``: what its branches yield under the names of the first branch is what the else branch yields."""
        inner = stmts[-1] if stmts else None
        if type(inner) is not IfStmt:
            return
        results = {var.name_hint: var for var in inner.return_vars}
        if results.keys() != set(wanted):
            return
        passed = [results[name] for name in wanted]
        construct.yield_names = list(wanted)
        construct.yield_types = [var.type for var in passed]
        construct.yield_node = node.test if isinstance(node, ast.If) else None
        self.emit(YieldStmt(FrozenList(passed), self.span(node)))

    def join_names(self, sibling: dict[str, Any]) -> None:
        """At the end of an else branch: a name that both branches define has to mean one variable behind the ``if``.

        They differ only where rebinding renames: a branch that binds a name again has a newer variable for it.
        """
        if not self.rename_rebinds:
            return
        for name, var in self.scopes.tables[-1].items():
            other = sibling.get(name)
            if type(var) is Var and type(other) is Var and var is not other and types_agree(var.type, other.type):
                self.emit(AssignStmt(other, var, var.span))
                self.scopes.tables[-1][name] = other

    def _merge_yields(self, node: ast.If, then: Construct, other: Construct | None) -> tuple[list[str], list[Type]]:
        if then.yield_names is None and (other is None or other.yield_names is None):
            return [], []
        if other is None:
            self.fail(
                "a named pl.yield_() in an `if` needs an `else` that yields the same names",
                then.yield_node,
                "Add else: with a yield, or assign to a name that is defined before the if",
            )
        if then.yield_names is None or other.yield_names is None:
            self.fail("both branches must yield: one has no pl.yield_()", then.yield_node or other.yield_node)
        if set(then.yield_names) != set(other.yield_names) or len(then.yield_names) != len(other.yield_names):
            self.fail(
                f"the branches yield different names: {', '.join(then.yield_names)} and {', '.join(other.yield_names)}",
                other.yield_node,
            )
        if then.yield_names != other.yield_names:
            self.fail("the branches must yield the names in the same order", other.yield_node)
        for name, a, b in zip(then.yield_names, then.yield_types, other.yield_types, strict=True):
            problem = mismatch(a, b)
            if problem is not None:
                self.type_error(f"'{name}' yielded by the branches differs: then-branch {problem}", other.yield_node)
        return then.yield_names, then.yield_types

    def result_var(self, name: str, kind: Type, span: Any) -> Var:
        """The variable of a result: the one that the name has around the enclosing branch or loop, or a new one."""
        found = self.bound_outside(name)
        if found is None or not types_agree(found.type, kind):
            return Var(name, kind, span)
        self.note_assignment(found)
        return found

    def bind_result(self, var: Var) -> None:
        """Bind a result of a construct in the enclosing scope."""
        if self.scopes.lookup(var.name_hint) is not var:
            self.scopes.bind(var.name_hint, var)
        if self.strict_ssa:
            self.definition_spans[var] = var.span

    # --- for ----------------------------------------------------------------------------------------------------------

    def stmt_for(self, node: ast.For) -> None:
        if node.orelse:
            self.fail("for ... else is not supported", node.orelse[0], "Put the statements behind the loop")
        name = self._iterator_name(node)
        call = node.iter
        assert type(call) is ast.Call
        if name == "while_":
            self._while_carried(node, call)
        elif name == "spmd":
            self.spmd_loop(node, call)
        elif name == "split_aiv":
            self.split_aiv_loop(node, call)
        else:
            self._counted(node, call, name)

    def _iterator_name(self, node: ast.For) -> str:
        call = node.iter
        parts = dotted(call.func) if type(call) is ast.Call else None
        name = parts[-1] if parts is not None else ""
        if parts is not None and len(parts) == 1:  # imported directly, perhaps under another name
            value = self.closure.get(name)
            known = value is not range and getattr(value, "__module__", "").startswith("pypto")
            name = getattr(value, "__name__", "") if known else ""
        if name not in _ITERATORS:
            self.fail(
                "For loop must use pl.range(), pl.parallel(), pl.unroll(), pl.pipeline(), pl.while_(), pl.spmd() "
                "or pl.split_aiv()",
                call,
                "Write for i in pl.range(n):",
            )
        return name

    def _counted(self, node: ast.For, call: ast.Call, name: str) -> None:
        kind = _KINDS[name]
        if not call.args:
            self.fail(f"pl.{name}() requires at least 1 argument", call)
        if len(call.args) > 3:
            self.fail(f"pl.{name}() takes 1 to 3 positional arguments, got {len(call.args)}", call)
        keywords = self._iterator_keywords(call, name)
        bounds = [self._bound(a, name) for a in call.args]
        start: Expr = index_const(0)
        stop, step = bounds[0], cast(Expr, index_const(1))
        if len(bounds) > 1:
            start, stop = bounds[0], bounds[1]
        if len(bounds) > 2:
            step = bounds[2]
        attrs = self._loop_attrs(keywords.get("attrs"))
        inits = self._init_values(keywords.get("init_values"), call)
        if kind is ForKind.Unroll:
            self._check_unroll(bounds, step, inits, call)
        if type(step) is ConstInt and step.value == 0:
            self.fail(f"pl.{name}() step cannot be zero", call)
        if kind is ForKind.Pipeline:
            attrs = {"pipeline_stages": self._stage(keywords.get("stage"), call), **attrs}
        loop_name, carry_names = self._targets(node, inits)
        span = self.span(node)
        comments = self.comments.take_pending()
        loop_var = Var(loop_name, ScalarType(_loop_dtype(bounds)), span)
        iter_args = [
            IterArg(n, init.type, init, self.span(node.target))
            for n, init in zip(carry_names, inits or [], strict=True)
        ]
        construct, stmts = self._loop_body(node, name, [loop_var], iter_args, inits is not None)
        return_vars = self._loop_results(construct, iter_args, span)
        self.comments._pending = [*comments, *self.comments._pending]
        self.emit(
            ForStmt(
                loop_var,
                start,
                stop,
                step,
                FrozenList(iter_args),
                self.body_of(stmts, span),
                FrozenList(return_vars),
                span,
                kind,
                attrs,
            )
        )

    def _iterator_keywords(self, call: ast.Call, name: str) -> dict[str, ast.expr]:
        known = {"init_values", "attrs"}
        found = {}
        for keyword in call.keywords:
            key = keyword.arg or "**"
            if key == "stage" and name != "pipeline":
                self.fail("stage= is only supported on pl.pipeline()", call)
            if key not in known and key != "stage":
                self.fail(f"Unknown keyword argument '{key}' in pl.{name}()", call)
            found[key] = keyword.value
        return found

    def _bound(self, node: ast.expr, name: str) -> Expr:
        value = self.expr(node)
        if not (isinstance(value.type, ScalarType) and value.type.dtype.is_int_):
            self.type_error(f"pl.{name}() bounds must be integer scalars, got {value.type}", node)
        return value

    def _loop_attrs(self, node: ast.expr | None) -> dict[str, Any]:
        if node is None:
            return {}
        if type(node) is not ast.Dict:
            self.fail("loop attrs must be a dict literal", node)
        attrs = {}
        for key, value in self.attr_items(node, "loop attrs"):
            constant = value.value if type(value) is ast.Constant else self.evaluate(value)
            if not isinstance(constant, (bool, int, float, str)):
                self.fail(f"Unsupported value type for attrs key '{key}'", value)
            attrs[key] = constant
        return attrs

    def _init_values(self, node: ast.expr | None, call: ast.Call) -> list[Expr] | None:
        if node is None:
            return None
        if type(node) not in (ast.List, ast.Tuple):
            self.fail("init_values must be a list or tuple", node)
        return [self.expr(e) for e in node.elts]  # type: ignore[attr-defined]

    def _check_unroll(self, bounds: list[Expr], step: Expr, inits: list[Expr] | None, call: ast.Call) -> None:
        if inits is not None:
            self.fail("pl.unroll() cannot be combined with init_values", call)
        if not all(type(b) is ConstInt for b in bounds):
            self.fail("pl.unroll() requires compile-time constant integer bounds", call)

    def _stage(self, node: ast.expr | None, call: ast.Call) -> int:
        if node is None:
            self.fail("pl.pipeline() requires stage=", call)
        value = node.value if type(node) is ast.Constant else self.evaluate(node)
        if type(value) is not int:
            self.fail("pl.pipeline() stage must be a compile-time constant integer", node)
        if value < 1:
            self.fail(f"pl.pipeline() stage must be >= 1, got {value}", node)
        return value

    def _targets(self, node: ast.For, inits: list[Expr] | None) -> tuple[str, list[str]]:
        target = node.target
        if inits is None:
            if type(target) is not ast.Name:
                self.fail(
                    "For loop target must be a simple name or: (loop_var, (iter_args...)) with init_values", target
                )
            return target.id, []
        if type(target) is not ast.Tuple:
            self.fail("For loop target must be a tuple when init_values is provided", target, "for i, (a,) in ...")
        if len(target.elts) != 2:
            self.fail("For loop target must be a simple name or: (loop_var, (iter_args...))", target)
        loop, carries = target.elts
        if type(loop) is not ast.Name:
            self.fail("Loop variable must be a simple name", loop)
        return loop.id, self._carry_names(carries, inits)

    def _carry_names(self, node: ast.expr, inits: list[Expr]) -> list[str]:
        if type(node) not in (ast.Tuple, ast.List):
            self.fail("Iter args must be a tuple", node, "for i, (a, b) in ...; one name: (a,)")
        names = []
        for element in node.elts:  # type: ignore[attr-defined]
            if type(element) is not ast.Name:
                self.fail("Iter arg must be a simple name", element)
            names.append(element.id)
        if len(names) != len(inits):
            self.fail(f"Mismatch: {len(names)} iter_args but {len(inits)} init_values", node)
        return names

    def _loop_body(
        self, node: Any, name: str, loop_vars: list[Var], iter_args: list[IterArg], carried: bool
    ) -> tuple[Construct, list[Stmt]]:
        construct = Construct(name, node)
        construct.iter_args = iter_args
        construct.yield_allowed = carried
        self.constructs.append(construct)
        self.scopes.push()
        try:
            for var in (*loop_vars, *iter_args):
                self.scopes.bind(var.name_hint, var)
            with self.collecting() as stmts:
                if iter_args and not self.strict_ssa:
                    self._copy_rebound(iter_args, node.body)
                self.block(node.body if name != "while_" else node.body[1:])
                if iter_args and construct.yield_names is None:
                    self._implied_yield(iter_args, node)
        finally:
            self.constructs.pop()
            self.scopes.pop(leak=not carried)
        return construct, stmts

    def _implied_yield(self, iter_args: list[IterArg], node: Any) -> None:
        """A carried loop without a yield carries on what its names are bound to at the end of the body."""
        values: list[Expr] = []
        for arg in iter_args:
            value = self.scopes.lookup(arg.name_hint)
            value = value if isinstance(value, Expr) else arg
            problem = mismatch(arg.type, value.type, value)
            if problem is not None:
                self.type_error(f"value of iter arg '{arg.name_hint}' behind the body: the carry {problem}", node)
            values.append(value)
        self.body.append(YieldStmt(FrozenList(values), self.span(node)))

    def _copy_rebound(self, iter_args: list[IterArg], body: list[ast.stmt]) -> None:
        """A carry that a branch or loop of the body assigns to is worked on in a variable of its own.

        An iter arg can't be assigned; a new variable in the branch would have no value when the branch isn't taken.
        """
        rebound = nested_stores(body)
        for arg in iter_args:
            if arg.name_hint in rebound:
                var = self.new_var(arg.name_hint, arg.type, arg.span)
                self.body.append(AssignStmt(var, arg, arg.span))

    def _loop_results(self, construct: Construct, iter_args: list[IterArg], span: Any) -> list[Var]:
        """The return variables: named by the yield, or synthetic for a carried loop without one."""
        if not iter_args:
            return []
        if construct.yield_names is None:
            names = [f"{arg.name_hint}_out" for arg in iter_args]
        else:
            names = construct.yield_names
        kinds = [
            arg.type if isinstance(k, UnknownType) else k
            for arg, k in zip(iter_args, construct.yield_types or [a.type for a in iter_args], strict=True)
        ]
        result = [self.result_var(n, k, span) for n, k in zip(names, kinds, strict=True)]
        for var in result:
            self.bind_result(var)
        return result

    # --- while --------------------------------------------------------------------------------------------------------

    def stmt_while(self, node: ast.While) -> None:
        if node.orelse:
            self.fail("while ... else is not supported", node.orelse[0], "Put the statements behind the loop")
        test = self.condition(node.test, "while")
        comments = self.comments.take_pending()
        _, stmts = self._loop_body(node, "while", [], [], False)
        self.comments._pending = [*comments, *self.comments._pending]
        span = self.span(node)
        self.emit(WhileStmt(test, FrozenList(), self.body_of(stmts, span), FrozenList(), span))

    def _while_carried(self, node: ast.For, call: ast.Call) -> None:
        if call.args:
            self.fail("pl.while_() takes no positional arguments", call)
        keywords = {k.arg: k.value for k in call.keywords}
        for key in keywords:
            if key != "init_values":
                self.fail(f"Unknown keyword argument '{key}' in pl.while_()", call)
        inits = self._init_values(keywords.get("init_values"), call)
        if not inits:
            self.fail("pl.while_() requires init_values", call)
        if type(node.target) not in (ast.Tuple, ast.List):
            self.fail("While loop target must be a tuple", node.target, "for (a,) in pl.while_(init_values=(a0,)):")
        names = self._carry_names(node.target, inits)
        first = node.body[0]
        parts = dotted(first.value.func) if type(first) is ast.Expr and type(first.value) is ast.Call else None
        if parts is None or parts[-1] != "cond":
            self.fail("First statement in pl.while_() body must be pl.cond(condition)", first)
        cond = first.value  # type: ignore[attr-defined]
        if len(cond.args) != 1 or cond.keywords:
            self.fail("pl.cond() requires exactly 1 argument", cond)
        span = self.span(node)
        comments = self.comments.take_pending()
        iter_args = [IterArg(n, i.type, i, self.span(node.target)) for n, i in zip(names, inits, strict=True)]
        self.scopes.push()
        for arg in iter_args:
            self.scopes.bind(arg.name_hint, arg)
        try:
            test = self.condition(cond.args[0], "while")
        finally:
            self.scopes.pop()
        construct, stmts = self._loop_body(node, "while_", [], iter_args, True)
        return_vars = self._loop_results(construct, iter_args, span)
        self.comments._pending = [*comments, *self.comments._pending]
        self.emit(WhileStmt(test, FrozenList(iter_args), self.body_of(stmts, span), FrozenList(return_vars), span))

    # --- supplied by the scope part -----------------------------------------------------------------------------------

    def spmd_loop(self, node: ast.For, call: ast.Call) -> None:
        raise NotImplementedError

    def split_aiv_loop(self, node: ast.For, call: ast.Call) -> None:
        raise NotImplementedError

    def block(self, statements: list[ast.stmt]) -> None:
        raise NotImplementedError


def nested_stores(statements: list[ast.stmt], nested: bool = False) -> set[str]:
    """The names that branches and loops among the statements assign to.

    The names of a yield are assigned where the construct that it belongs to stands.
    """
    found: set[str] = set()
    for node in statements:
        kind = type(node)
        if kind is ast.If or kind is ast.For or kind is ast.While:
            bodies = [*node.body, *node.orelse]  # type: ignore[attr-defined]
            found |= nested_stores(bodies, True)
            if nested:
                found.update(name for inner in bodies if _is_yield(inner) for name in _stored(inner))
        elif kind is ast.With:
            found |= nested_stores(node.body, nested)  # type: ignore[attr-defined]
            if nested:
                found.update(name for item in node.items for name in _stored(item.optional_vars))  # type: ignore[attr-defined]
        elif nested and not _is_yield(node):
            found |= _stored(node)
    return found


def _is_yield(node: ast.stmt) -> bool:
    value = getattr(node, "value", None)
    return type(value) is ast.Call and (dotted(value.func) or ("",))[-1] == "yield_"


def _stored(node: ast.AST | None) -> set[str]:
    """The names that one statement or target assigns to; a write to a part of a value assigns the value's name."""
    found = set()
    for inner in ast.walk(node) if node is not None else ():
        if type(inner) is ast.Name and type(inner.ctx) is ast.Store:
            found.add(inner.id)
        elif type(inner) is ast.Subscript and type(inner.ctx) is ast.Store and type(inner.value) is ast.Name:
            found.add(inner.value.id)
    return found


def _loop_dtype(bounds: list[Expr]) -> DataType:
    """INDEX, or the dtype of the first constant bound of another integer dtype.

    INT64 counts only when no bound is an INDEX constant.
    """
    constants = [b.dtype for b in bounds if type(b) is ConstInt]
    for dtype in constants:
        if dtype is DataType.INT64 and DataType.INDEX in constants:
            continue
        if dtype is not DataType.INDEX:
            return dtype
    return DataType.INDEX


__all__ = ["MISSING", "POISON", "ControlFlow", "Suppressed"]
