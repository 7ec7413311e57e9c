"""What a caller knows of the functions of a program: how arguments fit parameters, directions, what results name."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary, WeakValueDictionary

from ..ir.enums import FunctionType, ParamDirection
from ..ir.expr import GlobalVar, Var
from ..ir.program import Function, Program
from ..ir.stmt import ReturnStmt, Stmt
from ..ir.tree import walk_stmts
from ..ir.type import CommCtxType, TensorType, TupleType

if TYPE_CHECKING:
    from .buffer_names import BufferNames


# What a caller knows of the results of a function: its parameters, for each result the index of the one that it is
# (None: some other value; the whole is None if nothing is known), and which results are unclear.
Results = tuple[Sequence[Var], tuple[int | None, ...] | None, frozenset[int]]


def parameter_index(params: Sequence[Var], count: int, argument: int) -> int | None:
    """The parameter that an argument of a call with ``count`` arguments stands for, or None.

    A submit may leave out outputs that the runtime allocates. They stand in front of the trailing communication
    contexts, which are always passed.
    """
    total = len(params)
    if count > total:
        return argument if argument < total else None
    if count < total:
        contexts = 0
        while contexts < count and isinstance(params[total - 1 - contexts].type, CommCtxType):
            contexts += 1
        if argument >= count - contexts:
            return total - count + argument
    return argument


def argument_index(params: Sequence[Var], count: int, parameter: int) -> int | None:
    """The argument of a call with ``count`` arguments that stands for a parameter; None if it is left out."""
    total = len(params)
    if count >= total:
        return parameter
    contexts = 0
    while contexts < count and isinstance(params[total - 1 - contexts].type, CommCtxType):
        contexts += 1
    if parameter >= total - contexts:
        return parameter - (total - count)
    return parameter if parameter < count - contexts else None


def promises_less(declared: ParamDirection, needed: ParamDirection) -> bool:
    """Whether a parameter of one direction may not be handed to one of the other: In < Out < InOut."""
    return _RANK[declared] < _RANK[needed]


_RANK = {ParamDirection.In: 0, ParamDirection.Out: 1, ParamDirection.InOut: 2}


class Callees:
    """The functions that code may call, and which parameters their results are."""

    def __init__(self, functions: Iterable[Function]) -> None:
        self._functions = {function.name: function for function in functions}
        self._returned: dict[Function, tuple[int | None, ...] | None] = {}
        self._unclear: dict[Function, frozenset[int]] = {}

    def add(self, functions: Iterable[Function]) -> None:
        """More functions, for instance those that a pass has made."""
        self._functions.update((function.name, function) for function in functions)

    def of(self, call: Any) -> Function | None:
        """The function that a Call or Submit launches; None for an op, and for one that the program does not have."""
        return self._functions.get(call.op.name) if type(call.op) is GlobalVar else None

    def direction(self, call: Any, argument: int) -> ParamDirection:
        """What the callee does to an argument. Of an unknown callee anything may be expected."""
        function = self.of(call)
        if function is None:
            return ParamDirection.InOut
        index = parameter_index(function.params, len(call.args), argument)
        return ParamDirection.InOut if index is None else function.param_directions[index]

    def returned_params(self, function: Function) -> tuple[int | None, ...] | None:
        """For each returned value the index of the parameter whose buffer it is, or None for any other value.

        The whole answer is None while it is being found (a function that calls itself).
        """
        if function not in self._returned:
            known = _OF_LEAF.get(function.body)
            if known is not None and known[0] is function.params:
                self._returned[function], self._unclear[function] = known[1:]
                return known[1]
            self._returned[function] = None
            self._returned[function] = self._trace(function)
        return self._returned[function]

    def unclear_results(self, function: Function) -> frozenset[int]:
        """The returned values that are no parameter for certain and not for certain made by the function, either.

        One of two parameters, a part of one, what a function gives that calls itself.
        """
        self.returned_params(function)
        return self._unclear.get(function, frozenset())

    def results(self, name: str) -> Results:
        """What the results of a call of this function are."""
        function = self._functions.get(name)
        if function is None:
            return (), None, frozenset()
        return function.params, self.returned_params(function), self._unclear.get(function, frozenset())

    def names(self, function: Function) -> BufferNames:
        """Which buffer each tensor variable of a function names.

        Found once for a function, and for those that passes make of it by a change of attributes and runtime scopes,
        as long as what the functions that it calls return is the same.
        """
        found = _NAMES.get(function)
        if found is not None and self._hold_still(found):
            return found
        from .buffer_names import BufferNames, naming_facts, same_facts

        facts = naming_facts(function)
        first = function.params[0] if function.params else None
        found = _LATEST.get(first)
        if found is None or not same_facts(found.facts, facts) or not self._hold_still(found):
            found = BufferNames(function, self, facts)
            if first is not None:
                _LATEST[first] = found
                _RECENT.append(found)
        _NAMES[function] = found
        return found

    def _hold_still(self, names: BufferNames) -> bool:
        """Whether names rest on what these callees return."""
        for name, (params, returned, unclear) in names.basis.items():
            now = self.results(name)
            if now[0] is not params or now[1] != returned or now[2] != unclear:
                return False
        return True

    def _trace(self, function: Function) -> tuple[int | None, ...]:
        from .roots import Roots

        buffers = Roots(function.body, self)
        position = {param: i for i, param in enumerate(function.params)}
        found: tuple[int | None, ...] | None = None
        unclear: set[int] = set()
        for values, made in zip(buffers.returns, buffers.returns_made, strict=True):
            roots = tuple(position.get(root) if root is not None else None for root in values)
            if found is not None and roots != found:
                unclear.update(i for i, pair in enumerate(zip(found, roots, strict=False)) if pair[0] != pair[1])
            unclear.update(i for i, (root, own) in enumerate(zip(roots, made, strict=True)) if root is None and not own)
            found = roots if found is None else _agreed(found, roots)
        if found is not None:
            self._unclear[function] = frozenset(unclear)
            if not buffers.calls_functions:
                _OF_LEAF[function.body] = function.params, found, self._unclear[function]
            return found
        if function.func_type in _WRAPPERS:
            return self._forwarded(function, buffers)
        return _declared(function) if function.func_type in _KERNELS else ()

    def _forwarded(self, function: Function, buffers: Any) -> tuple[int | None, ...]:
        """A wrapper without a return statement gives what its only inner call with as many results gives."""
        count = len(function.return_types)
        fitting = [results for results in buffers.launches if len(results) == count]
        if len(fitting) != 1:
            return (None,) * count
        position = {param: i for i, param in enumerate(function.params)}
        return tuple(position.get(root) if root is not None else None for root in fitting[0])


# The answers for functions that call no others: facts about these alone, by the body.
_OF_LEAF: WeakKeyDictionary[Stmt, Results] = WeakKeyDictionary()
_NAMES: WeakKeyDictionary[Function, BufferNames] = WeakKeyDictionary()
# The latest names of a function, by its first parameter: the variables of a function stay when a pass changes it.
_LATEST: WeakValueDictionary[Any, BufferNames] = WeakValueDictionary()
# A function that a pass has replaced is gone before the next pass asks for the names of the new one.
_RECENT: deque[BufferNames] = deque(maxlen=16)

_WRAPPERS = frozenset((FunctionType.Group, FunctionType.Spmd))
_KERNELS = frozenset((FunctionType.InCore, FunctionType.AIC, FunctionType.AIV))


def _agreed(one: tuple[int | None, ...], other: tuple[int | None, ...]) -> tuple[int | None, ...]:
    """Two returns agree on a result, or it is none of the parameters."""
    if len(one) != len(other):
        return (None,) * max(len(one), len(other))
    return tuple(a if a == b else None for a, b in zip(one, other, strict=True))


def _declared(function: Function) -> tuple[int | None, ...]:
    """What a kernel without a return statement gives: one that is written elsewhere can only go by the declaration.

    Its tensor results are its written parameters, in order.
    """
    types = function.return_types
    if len(types) == 1 and isinstance(types[0], TupleType):
        types = types[0].types
    written = iter([i for i, d in enumerate(function.param_directions) if d is not ParamDirection.In])
    return tuple(next(written, None) if isinstance(kind, TensorType) else None for kind in types)


# --- questions about one function -------------------------------------------------------------------------------------

_OF_PROGRAM: WeakKeyDictionary[Program, Callees] = WeakKeyDictionary()
_EXPLICIT: WeakKeyDictionary[Function, tuple[int | None, ...]] = WeakKeyDictionary()


def callees_of(program: Program) -> Callees:
    """The functions of a program, for those who ask about one function after another. Nothing may be added to it."""
    found = _OF_PROGRAM.get(program)
    if found is None:
        found = _OF_PROGRAM[program] = Callees(program.functions.values())
    return found


def returned_params(function: Function, program: Program) -> tuple[int | None, ...]:
    """For each returned value the index of the parameter whose buffer it is, traced; None for any other value.

    A function that declares one tuple as its result and returns it whole has one position.
    """
    found = callees_of(program).returned_params(function) or ()
    return (None,) if _returns_whole_tuple(function) else found


def explicit_returned_params(function: Function) -> tuple[int | None, ...]:
    """The same by a look at the return statements alone: a value counts if it is the parameter itself.

    Says as much as :func:`returned_params` of functions for which ReturnParamsExplicit holds.
    """
    found = _EXPLICIT.get(function)
    if found is None:
        position: dict[Any, int] = {param: i for i, param in enumerate(function.params)}
        for stmt in _returns(function):
            here = tuple(position.get(v) if isinstance(v.type, TensorType) else None for v in stmt.value)
            found = here if found is None else _agreed(found, here)
        found = _EXPLICIT[function] = found if found is not None else ()
    return found


def _returns(function: Function) -> list[ReturnStmt]:
    return [stmt for stmt in walk_stmts(function.body) if type(stmt) is ReturnStmt]


def _returns_whole_tuple(function: Function) -> bool:
    types = function.return_types
    if len(types) != 1 or not isinstance(types[0], TupleType):
        return False
    return any(len(stmt.value) == 1 for stmt in _returns(function))


__all__ = [
    "Callees",
    "Results",
    "argument_index",
    "callees_of",
    "explicit_returned_params",
    "parameter_index",
    "returned_params",
]
