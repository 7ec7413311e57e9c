"""Scalars of a kernel that its callers can compute as well: offsets of windows that are no affine forms.

*Before*, with ``i`` a parameter::

    t = pl.load(x, [i // 2 * 16, 0], [16, 64])

*After*: what is not affine has a name, and is one more unknown of affine forms::

    x__expr_tmp_0 = i // 2
    t = pl.load(x, [x__expr_tmp_0 * 16, 0], [16, 64])
"""

from __future__ import annotations

from collections.abc import Iterable
from operator import is_
from typing import Any

from ...analysis.access import expression
from ...analysis.affine import Affine, form_of
from ...arith.polynomial import linear_leaves
from ...ir.dtype import DataType
from ...ir.enums import ParamDirection
from ...ir.expr import BINARY_CLASSES, UNARY_CLASSES, Cast, ConstInt, Expr, MakeTuple, Var
from ...ir.extents import extent_equal, extent_key
from ...ir.mutator import IRMutator
from ...ir.names import base_name
from ...ir.node import FrozenList
from ...ir.operands import is_op
from ...ir.program import Function
from ...ir.stmt import AssignStmt, ForStmt, IfStmt, SeqStmts, Stmt, WhileStmt, seq
from ...ir.tree import definitions, walk
from ...ir.type import INDEX_TYPE, ScalarType

# Ops that touch a window of a tensor: where the tensor is, and where the offsets are.
ACCESSES = {"tile.load": (0, 1), "tile.store": (2, 1), "tensor.slice": (0, 2)}

_ARITHMETIC: frozenset[type] = frozenset((*BINARY_CLASSES, *UNARY_CLASSES, ConstInt))


class FreshNames:
    """Names that are not used yet."""

    def __init__(self, used: Iterable[str]) -> None:
        self._used = set(used)
        self._next: dict[str, int] = {}

    def fresh(self, text: str) -> str:
        """The text, or the text with the first free number from 1 on."""
        name, number = text, self._next.get(text, 1)
        while name in self._used:
            name, number = f"{text}_{number}", number + 1
        self._next[text] = number
        self._used.add(name)
        return name

    def scalar(self, base: str) -> str:
        """``base__expr_tmp_<n>`` with the first free number from 0 on."""
        text = f"{base_name(base)}__expr_tmp"
        number = self._next.get(text, 0)
        while (name := f"{text}_{number}") in self._used:
            number += 1
        self._next[text] = number + 1
        self._used.add(name)
        return name


class Offsets:
    """``function``: the kernel, with names for what is not affine in offsets; ``lifted``: the same with these names as
    parameters, for who asks for affine forms; ``scalars``: scalars that follow from the parameters, with what they are.
    """

    def __init__(self, function: Function) -> None:
        naming = _Naming(function)
        body = naming.visit_stmt(function.body)
        self.scalars = naming.scalars
        self.function = function if body is function.body else function.replace(body=body)
        self.lifted = self.function
        atoms = [var for var, value in self.scalars.items() if form_of(value, own_form) is None]
        if atoms:
            self.lifted = self.function.replace(
                params=FrozenList([*function.params, *atoms]),
                param_directions=FrozenList([*function.param_directions, *[ParamDirection.In] * len(atoms)]),
                body=_Without(atoms).visit_stmt(self.function.body),
            )


def own_form(var: Var) -> Affine:
    """Of a variable that stands for itself."""
    return Affine(0, {var: 1})


def offset_of(form: Affine) -> Expr:
    """A form as an offset."""
    terms = {key if key.type == INDEX_TYPE else Cast(key, DataType.INDEX): by for key, by in form.terms.items()}
    return expression(Affine(form.const, terms))


class _Naming(IRMutator):
    """Gives names to what is not affine in offsets of accesses and in scalars, if it follows from the parameters."""

    def __init__(self, function: Function) -> None:
        self.scalars: dict[Var, Expr] = {}
        self._names = FreshNames(var.name_hint for var in definitions(function))
        self._known: dict[Any, list[tuple[Expr, Var]]] = {}
        self._log: list[list[tuple[Expr, Var]]] = []
        self._free: set[Var] = set()
        for param in function.params:
            if isinstance(param.type, ScalarType):
                self._free.add(param)
            self._free.update(extent for extent in getattr(param.type, "shape", ()) if type(extent) is Var)

    # A name that is given in a body is not known behind it.

    def visit_for_stmt(self, op: ForStmt) -> Stmt:
        return self._with_bodies(op, "body")

    def visit_while_stmt(self, op: WhileStmt) -> Stmt:
        return self._with_bodies(op, "body")

    def visit_if_stmt(self, op: IfStmt) -> Stmt:
        return self._with_bodies(op, "then_body", "else_body")

    def _with_bodies(self, op: Any, *fields: str) -> Stmt:
        bodies: dict[str, Stmt] = {}
        for field in fields:
            old = getattr(op, field)
            if old is not None:
                start = len(self._log)
                new = self.visit_stmt(old)
                while len(self._log) > start:
                    self._log.pop().pop()
                if new is not old:
                    bodies[field] = new
        return op.replace(**bodies) if bodies else op  # type: ignore[no-any-return]

    def visit_assign_stmt(self, op: AssignStmt) -> Stmt:
        value: Any = op.value
        if isinstance(op.var.type, ScalarType):
            return self._scalar(op)
        found = next((at for name, at in ACCESSES.items() if is_op(value, name)), None)
        offsets = value.args[found[1]] if found is not None else None
        if found is None or type(offsets) is not MakeTuple:
            return op
        made: list[Stmt] = []
        elements = [self._affine(e, value.args[found[0]], made) for e in offsets.elements]
        if all(map(is_, elements, offsets.elements)):
            return op
        args = list(value.args)
        args[found[1]] = offsets.replace(elements=FrozenList(elements))
        return seq([*made, op.replace(value=value.replace(args=FrozenList(args)))], op.span)

    def _scalar(self, op: AssignStmt) -> Stmt:
        if not op.var.type.dtype.is_int_ or not self._follows(op.value):  # type: ignore[attr-defined]
            return op
        made: list[Stmt] = []
        value = op.value
        if op.var.type == INDEX_TYPE and form_of(value, own_form) is None:
            if linear_leaves(value)[0][0] is value:
                self._know(value, op.var)  # it has a name
            else:
                value = self._affine(value, op.var, made)
        self.scalars[op.var] = value
        return op if value is op.value else seq([*made, op.replace(value=value)], op.span)

    def _affine(self, e: Expr, tensor: Any, made: list[Stmt]) -> Expr:
        if form_of(e, own_form) is not None:
            return e
        forms = [(leaf, factor, form_of(leaf, own_form)) for leaf, factor in linear_leaves(e)]
        if not all(form is not None or self._follows(leaf) for leaf, _, form in forms):
            return e
        total = Affine()
        for leaf, factor, form in forms:
            total = total.plus(form if form is not None else own_form(self._named(leaf, tensor, made)), factor)
        return offset_of(total)

    def _named(self, leaf: Expr, tensor: Var, made: list[Stmt]) -> Var:
        for known, var in self._known.get(extent_key(leaf), ()):
            if extent_equal(known, leaf):
                return var
        var = Var(self._names.scalar(tensor.name_hint), leaf.type, leaf.span)
        self._know(leaf, var)
        made.append(AssignStmt(var, leaf, leaf.span))
        self.scalars[var] = leaf
        return var

    def _know(self, e: Expr, var: Var) -> None:
        alike = self._known.setdefault(extent_key(e), [])
        alike.append((e, var))
        self._log.append(alike)

    def _follows(self, e: Expr) -> bool:
        """Whether a value is arithmetic on parameters."""
        for node in walk(e):
            if isinstance(node, Var):
                if node not in self._free and node not in self.scalars:
                    return False
            elif type(node) not in _ARITHMETIC:
                return False
        return True


class _Without(IRMutator):
    def __init__(self, variables: Iterable[Var]) -> None:
        self._variables = set(variables)

    def visit_assign_stmt(self, op: AssignStmt) -> Stmt:
        return SeqStmts([], op.span) if op.var in self._variables else op


__all__ = ["ACCESSES", "FreshNames", "Offsets", "offset_of", "own_form"]
