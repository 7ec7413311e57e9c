"""The versions of variables while a function is renamed: their states, names, types, and reads of them."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from typing import Any, TypeVar

from ...analysis.liveness import Liveness
from ...arith.prove import provably_equal
from ...ir import stmt as st
from ...ir.call_types import deduce_call_return_type
from ...ir.expr import Call, Expr, GlobalVar, IterArg, Submit, Var
from ...ir.mutator import IRMutator
from ...ir.names import DELIMITER, ROLES, base_name
from ...ir.program import Program
from ...ir.rewriting import DEFAULTS
from ...ir.span import Span
from ...ir.stmt import Stmt
from ...ir.substitution import substitute_expr
from ...ir.traversal import walk
from ...ir.type import TASK_ID_TYPE, ScalarType, ShapedType, TupleType, Type, UnknownType
from ...ir.type_fields import PLAIN_TYPES, is_closed, map_type, type_expressions
from ...ops.registry import REGISTRY, build
from ..any_value import any_value
from ..errors import PassTypeError
from .definedness import NEVER_ASSIGNED, NO_VALUE, VARIABLES, Facts, Reason, Undefined

_SSA_NAME = re.compile(rf".+?__(?:.*_)?(?:{'|'.join(sorted(ROLES))})_v([0-9]+)\Z")

T = TypeVar("T")
State = Any  # the value of a variable: an Expr, an Undefined, or None where nothing was assigned yet


def has_ssa_name(var: Var) -> bool:
    """Whether the name of a variable has a role and a version, or is one that the compiler reserves for itself."""
    hint = var.name_hint
    return DELIMITER in hint and (_SSA_NAME.match(hint) is not None or hint.startswith(DELIMITER))


class Versions(IRMutator):
    """State of the renaming of one function. ``_remap`` maps a variable of the source to its state at this place."""

    def __init__(self, live: Liveness, program: Program, trusted: Collection[Var]) -> None:
        self._live = live
        # Variables that have a value wherever they are read, though not on every path that leads there.
        self._trusted = trusted
        self.failed: dict[Var, tuple[Reason, Span]] = {}  # variables that may have no value where they are read first
        self.entered: list[Stmt] = []  # loops that are proved to have an iteration, where that mattered
        self._program = program
        self._function: Any = None
        self._facts = Facts()
        self._trail: list[tuple[Any, State]] = []  # what was in _remap before, so that a region can take it back
        self._names: dict[Var, list[Any]] = {}  # what the names of versions begin with, and the number of the next one
        self._kept: dict[Var, bool] = {}
        self._met: set[Var] = set()  # iter args and results of loops that were defined already
        self._loop_vars: set[Var] = set()
        self._careful_memo: dict[Var, bool] = {}
        self._out: list[Stmt] = []  # the statement list that is being made
        self._previous: Stmt | None = None  # the statement in front, in the source
        self._at: Any = None  # the statement that is being visited
        self._in_type = False
        self._dead = False  # behind a return, break or continue
        self._boundaries: list[Stmt] = []  # open scopes that become functions
        self._home: dict[Expr, Stmt] = {}  # version -> the innermost of these scopes around its definition
        # Scalar version -> the variable that it is a version of, and its place in the order of definitions.
        self._origins: dict[Expr, tuple[Var, int]] = {}
        self._extents: dict[Expr, list[Expr]] = {}  # version -> the scalar versions that its type mentions

    # --- states of variables ------------------------------------------------------------------------------------------

    def _set(self, var: Var, state: State) -> None:
        remap = self._remap
        self._trail.append((var, remap.get(var)))
        remap[var] = state
        if type(state) not in VARIABLES:
            return
        if type(var.type) is ScalarType:
            self._origins.setdefault(state, (var, len(self._origins)))
        elif not is_closed(state.type):
            self._note_extents(state)
        if self._boundaries:
            self._home[state] = self._boundaries[-1]

    def _undo(self, mark: int) -> None:
        trail, remap = self._trail, self._remap
        while len(trail) > mark:
            var, state = trail.pop()
            if state is None:
                del remap[var]
            else:
                remap[var] = state

    def _is_value(self, var: Var) -> bool:
        return type(self._remap.get(var)) not in NO_VALUE

    def _is_foreign(self, state: State) -> bool:
        """Whether a value was made in a scope that became a function of its own and has ended."""
        home = self._home.get(state) if self._home else None
        return home is not None and home not in self._boundaries

    def _careful(self, var: Var) -> bool:
        """Whether a variable is carried and merged only if it is needed: its values need not be of one type."""
        found = self._careful_memo.get(var)
        if found is None:
            counts = self._live.definitions
            found = var in self._live.retyped or any(counts.get(v, 0) > 1 for v in _variables(var.type))
            self._careful_memo[var] = found
        return found or var in self._loop_vars

    # --- definitions --------------------------------------------------------------------------------------------------

    def _name(self, var: Var, role: str) -> str:
        entry = self._names.get(var)
        if entry is None:
            hint = var.name_hint
            found = _SSA_NAME.match(hint) if self._is_kept(var) else None
            number = int(found[1]) + 1 if found is not None else 0  # behind the number that a kept variable has
            base = base_name(hint) or hint.strip("_") or "v"
            entry = self._names[var] = [base + DELIMITER, number]
        number = entry[1]
        entry[1] = number + 1
        return f"{entry[0]}{role}_v{number}"

    def _is_kept(self, var: Var) -> bool:
        """Whether the only definition of a variable may keep its object: it has a name of SSA form already."""
        kept = self._kept.get(var)
        if kept is None:
            kept = self._kept[var] = self._live.definitions.get(var) == 1 and has_ssa_name(var)
        return kept

    def _version(self, var: Var, kind: Type, span: Span, role: str) -> Var:
        """The variable of one definition."""
        if self._is_kept(var) and kind == var.type:
            return var
        return Var(self._name(var, role), kind, span)

    def _define(self, var: Var, kind: Type, span: Span, role: str = "ssa") -> Var:
        """Define a variable here."""
        new = self._version(var, kind, span, role)
        self._set(var, new)
        return new

    def _note_extents(self, version: Expr) -> None:
        """Remember the scalars that a type mentions."""
        found: list[Expr] = [v for v in _variables(version.type) if v in self._origins]
        if found:
            self._extents[version] = found

    def _merged_type(self, var: Var, value: Expr, extents: Mapping[Any, Expr]) -> Type:
        """The type of a carry or result that takes this value among others, with other extents."""
        if type(var.type) is ScalarType:
            return var.type
        if not extents or value not in self._extents:
            return value.type
        return map_type(value.type, lambda e: substitute_expr(e, extents))  # type: ignore[no-any-return]

    def _kept_extents(self, value: Expr, since: int) -> dict[Any, Expr]:
        """For the extents of a value that were defined in a branch: what became of them behind it."""
        found: dict[Any, Expr] = {}
        for extent in self._extents.get(value, ()):
            origin, born = self._origins[extent]
            state: State = self._remap.get(origin)
            if born >= since and type(state) not in NO_VALUE:
                found[extent] = state
        return found

    def _bind(self, var: Var, value: Expr, span: Span) -> Expr:
        """Put ``var = value`` in front of the current statement unless the value is a constant."""
        if not isinstance(value, Call):
            return value
        new = Var(self._name(var, "ssa"), value.type, span)
        self._out.append(st.AssignStmt(new, value, span))
        return new

    # --- expressions --------------------------------------------------------------------------------------------------

    def visit_var(self, op: Any) -> Any:
        state = self._remap.get(op)
        if state is None:
            return self._unassigned(op)
        if type(state) is Undefined:
            return self._read_undefined(op, state)
        return state

    visit_iter_arg = visit_var

    def _unassigned(self, var: Var) -> Expr:
        """A read of a variable that nothing was assigned to: a symbol, or an error."""
        if var not in self._live.definitions or self._in_type or self._dead:
            return var
        return self._fail(var, NEVER_ASSIGNED)

    def _read_undefined(self, var: Var, state: Undefined) -> Expr:
        if self._in_type or self._dead:
            return state.stand_in or var
        return self._fail(var, state.reason)

    def _fail(self, var: Var, reason: Reason) -> Expr:
        """A read of a variable that has no value: an error, unless no path leads here."""
        if var in self._trusted and reason is NEVER_ASSIGNED:
            value = any_value(self._rewrite_type(var.type), self._at.span)
            if value is not None:
                return self._bind(var, value, self._at.span)
        self.failed.setdefault(var, (reason, self._at.span))
        return var

    def _rewrite_type(self, kind: Any) -> Any:
        if type(kind) in PLAIN_TYPES or is_closed(kind):
            return kind
        outer, self._in_type = self._in_type, True
        try:
            return map_type(kind, self._rewrite_child)
        finally:
            self._in_type = outer

    def visit_call(self, op: Any) -> Any:
        new = DEFAULTS[type(op)](self, op)
        if type(op.type) in PLAIN_TYPES or not self._extents:
            return new
        return self._retyped(new) if self._is_stale(op) else new

    visit_submit = visit_call

    def _is_stale(self, op: Any) -> bool:
        """Whether an operand has a type with extents that were assigned again since."""
        for arg in op.args:
            if type(arg) in VARIABLES:
                for extent in self._extents.get(self._remap.get(arg), ()):  # type: ignore[arg-type]
                    if self._remap.get(self._origins[extent][0]) is not extent:
                        return True
        return False

    def _retyped(self, new: Any) -> Any:
        """A call whose type is derived again: names of extents do not tell which of their values are meant."""
        try:
            kind = self._derived_type(new)
        except (ValueError, TypeError):
            return new
        return new if kind is None else new.replace(type=kind)

    def _derived_type(self, call: Any) -> Type | None:
        if type(call.op) is not GlobalVar:
            definition = REGISTRY.get(call.op.name)
            return None if definition is None else build(definition, call.args, call.kwargs, call.span).type
        callee = self._program.get_function(call.op.name)
        if callee is None or len(callee.params) != len(call.args):
            return None
        kinds = deduce_call_return_type(callee.params, call.args, callee.return_types)
        if type(call) is Submit:
            return TupleType([*kinds, TASK_ID_TYPE])
        return kinds[0] if len(kinds) == 1 else TupleType(kinds)

    # --- types --------------------------------------------------------------------------------------------------------

    def _check_agreement(self, var: Var, a: Expr, b: Expr, op: Any, what: str) -> None:
        if a.type is b.type or type(a.type) is ScalarType or agree(a.type, b.type):
            return
        raise PassTypeError(
            f"'{base_name(var.name_hint)}' has different types on two paths: {what} {a.type} and {b.type}",
            op.span,
            labels=((a.span, f"{a.type}"), (b.span, f"{b.type}")),
            hint="Use different names for values of different types",
        )


def _variables(kind: Type) -> list[Var]:
    """The variables that a type mentions."""
    if type(kind) in PLAIN_TYPES or is_closed(kind):
        return []
    return [v for e in type_expressions(kind) for v in walk(e) if type(v) is Var or type(v) is IterArg]


def closed_types_first(items: list[T], type_of: Callable[[T], Type]) -> list[T]:
    """The items in their order, but those last whose types mention variables: these may be among the items."""
    return sorted(items, key=lambda item: not is_closed(type_of(item))) if len(items) > 1 else items


def agree(a: Any, b: Any) -> bool:
    """Whether values of two types may merge: one kind, dtype and shape; views are the matter of the verifier."""
    if a is b or a == b or UnknownType in (type(a), type(b)):
        return True
    if type(a) is not type(b):
        return False
    if isinstance(a, TupleType):
        return len(a.types) == len(b.types) and all(map(agree, a.types, b.types))
    if not isinstance(a, ShapedType):
        return False
    if a.dtype is not b.dtype or len(a.shape) != len(b.shape):
        return False
    # Extents that are computed may be equal without a proof; only what can't be equal is refused.
    pairs = zip(a.shape, b.shape, strict=True)
    return all(provably_equal(m, n) for m, n in pairs if _constant(m) and _constant(n))


def _constant(e: Expr) -> bool:
    return not any(isinstance(v, Var) for v in walk(e))


__all__ = ["State", "Versions", "agree", "closed_types_first", "has_ssa_name"]
