"""The results of a call of a function of the program: their types, where symbolic dims of parameters become those of
arguments, and how they get their names."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .expr import Add, ConstInt, Expr, Mul, Neg, Sub, TupleGetItemExpr, Var
from .mutator import IRMutator
from .stmt import AssignStmt, EvalStmt, Stmt
from .type import ShapedType, TupleType, Type, extent_equal


def holds_one_tuple(kind: Type) -> bool:
    """Whether a type is that of a submit of a function that declares one tuple: the results are one level deeper.

    (The type of a submit is a tuple of the results and the task id.)
    """
    return isinstance(kind, TupleType) and len(kind.types) == 2 and isinstance(kind.types[0], TupleType)


def result_type(types: Sequence[Type]) -> tuple[Type, ...]:
    """What a call of a function with these results takes for its type: nothing, the only one, or their tuple."""
    return tuple(types) if len(types) < 2 else (TupleType(types),)


def named_results(call: Any, results: Sequence[Var], whole: Callable[[], str]) -> list[Stmt]:
    """A call whose results are these variables; ``whole``: gives the name of their tuple, if there are several."""
    if not results:
        return [EvalStmt(call, call.span)]
    if len(results) == 1:
        return [AssignStmt(results[0], call, call.span)]
    return unpacked_results(call, results, whole())


def unpacked_results(call: Any, results: Sequence[Var], whole: str) -> list[Stmt]:
    """A call whose results come as a tuple of this name, however many there are."""
    span = call.span
    found = Var(whole, call.type, span)
    items = (AssignStmt(var, TupleGetItemExpr(found, i, span), span) for i, var in enumerate(results))
    return [AssignStmt(found, call, span), *items]


def deduce_call_return_type(
    callee_params: Sequence[Any], args: Sequence[Expr], return_types: Sequence[Type]
) -> list[Type]:
    """``return_types`` with the symbolic dims of the parameters' types bound to the dims of the arguments.

    Nothing is folded. ``ValueError`` for a wrong number of arguments, and for a symbol bound to two values that are
    not provably equal. Without return types nothing is checked.
    """
    if not return_types:
        return []
    if len(callee_params) != len(args):
        raise ValueError(f"callee params size ({len(callee_params)}) must match args size ({len(args)})")
    params = [param[0] if isinstance(param, tuple) else param for param in callee_params]
    values = symbol_bindings(params, args)
    for param, arg in zip(params, args, strict=True):
        # A scalar parameter that dims mention: its value is the argument.
        values.setdefault(param, arg)
    mutator = _Bind(values)
    return [mutator.rewrite(kind) for kind in return_types]


def symbol_bindings(params: Sequence[Var], args: Sequence[Expr]) -> dict[Any, Any]:
    """The symbolic dims in the types of parameters -> the dims of the arguments.

    ``ValueError`` for a symbol bound to two values that are not provably equal.
    """
    bindings = _Bindings()
    for param, arg in zip(params, args, strict=True):
        bindings.bind_type(param.type, arg.type)
    return bindings.values


class _Bindings:
    def __init__(self) -> None:
        self.values: dict[Any, Any] = {}

    def bind_type(self, param: Any, arg: Any) -> None:
        if isinstance(param, TupleType) and isinstance(arg, TupleType):
            for p, a in zip(param.types, arg.types, strict=False):
                self.bind_type(p, a)
        elif isinstance(param, ShapedType) and isinstance(arg, ShapedType):
            self._bind_dims(param.shape, arg.shape)

    def _bind_dims(self, params: Sequence[Any], args: Sequence[Any]) -> None:
        if len(params) != len(args):
            return  # the argument does not fit; that is for the verifier to say
        for symbol, dim in zip(params, args, strict=True):
            if not isinstance(symbol, Var):
                continue
            known = self.values.setdefault(symbol, dim)
            if not provably_equal(known, dim):
                raise ValueError(
                    f"Dynamic type variable '{symbol.name_hint}' has conflicting bindings: "
                    f"{_text(known)} and {_text(dim)} are not provably equal"
                )


class _Bind(IRMutator):
    def __init__(self, values: dict[Any, Any]) -> None:
        self._remap.update(values)

    def rewrite(self, kind: Type) -> Type:
        return self._rewrite_type(kind)  # type: ignore[no-any-return]


def _text(expr: Expr) -> str:
    return expr.as_python(format=False)


def provably_equal(a: Expr, b: Expr) -> bool:
    """Whether two dims have the same value whatever their variables are: equal trees, or equal linear forms."""
    if extent_equal(a, b):
        return True
    terms: list[tuple[Expr, int]] = []
    constant = _collect_terms(a, 1, terms) + _collect_terms(b, -1, terms)
    return constant == 0 and all(coefficient == 0 for _, coefficient in terms)


def _collect_terms(e: Any, factor: int, terms: list[tuple[Expr, int]]) -> int:
    """Add ``factor * e`` to a linear form: the constant part is returned, other terms go to the list."""
    kind = type(e)
    if kind is ConstInt:
        return factor * int(e.value)
    if kind is Add:
        return _collect_terms(e.left, factor, terms) + _collect_terms(e.right, factor, terms)
    if kind is Sub:
        return _collect_terms(e.left, factor, terms) + _collect_terms(e.right, -factor, terms)
    if kind is Neg:
        return _collect_terms(e.operand, -factor, terms)
    if kind is Mul and type(e.right) is ConstInt:
        return _collect_terms(e.left, factor * int(e.right.value), terms)
    if kind is Mul and type(e.left) is ConstInt:
        return _collect_terms(e.right, factor * int(e.left.value), terms)
    for position, (term, coefficient) in enumerate(terms):
        if extent_equal(term, e):
            terms[position] = (term, coefficient + factor)
            return 0
    terms.append((e, factor))
    return 0
