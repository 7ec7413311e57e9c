"""What a caller knows of the functions of a program: how arguments fit parameters, directions, what results name."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..ir.enums import FunctionType, ParamDirection
from ..ir.expr import GlobalVar
from ..ir.program import Function
from ..ir.type import CommCtxType


def parameter_index(function: Function, count: int, argument: int) -> int | None:
    """The parameter that an argument of a call with ``count`` arguments stands for, or None.

    A submit may leave out outputs that the runtime allocates. They stand in front of the trailing communication
    contexts, which are always passed.
    """
    total = len(function.params)
    if count > total:
        return argument if argument < total else None
    if count < total:
        contexts = 0
        while contexts < count and isinstance(function.params[total - 1 - contexts].type, CommCtxType):
            contexts += 1
        if argument >= count - contexts:
            return total - count + argument
    return argument


def argument_index(function: Function, count: int, parameter: int) -> int | None:
    """The argument of a call with ``count`` arguments that stands for a parameter; None if it is left out."""
    total = len(function.params)
    if count >= total:
        return parameter
    contexts = 0
    while contexts < count and isinstance(function.params[total - 1 - contexts].type, CommCtxType):
        contexts += 1
    if parameter >= total - contexts:
        return parameter - (total - count)
    return parameter if parameter < count - contexts else None


class Callees:
    """The functions that code may call, and which parameters their results are."""

    def __init__(self, functions: Iterable[Function]) -> None:
        self._functions = {function.name: function for function in functions}
        self._returned: dict[Function, tuple[int | None, ...] | None] = {}

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
        index = parameter_index(function, len(call.args), argument)
        return ParamDirection.InOut if index is None else function.param_directions[index]

    def returned_params(self, function: Function) -> tuple[int | None, ...] | None:
        """For each returned value the index of the parameter whose buffer it is, or None for any other value.

        The whole answer is None while it is being found (a function that calls itself).
        """
        if function not in self._returned:
            self._returned[function] = None
            self._returned[function] = self._trace(function)
        return self._returned[function]

    def _trace(self, function: Function) -> tuple[int | None, ...]:
        from .buffers import Buffers

        buffers = Buffers(function.body, self)
        position = {param: i for i, param in enumerate(function.params)}
        found: list[int | None] | None = None
        for values in buffers.returns:
            roots = [position.get(root) if root is not None else None for root in values]
            if found is not None and len(found) == len(roots):
                # Two returns agree on a result, or it is none of the parameters.
                roots = [a if a == b else None for a, b in zip(found, roots, strict=True)]
            found = roots
        if found is None:
            return self._forwarded(function, buffers)
        return tuple(found)

    def _forwarded(self, function: Function, buffers: Any) -> tuple[int | None, ...]:
        """A wrapper without a return statement gives what its only inner call with as many results gives."""
        count = len(function.return_types)
        if not count or function.func_type not in (FunctionType.Group, FunctionType.Spmd):
            return ()
        fitting = [results for results in buffers.launches if len(results) == count]
        if len(fitting) != 1:
            return (None,) * count
        position = {param: i for i, param in enumerate(function.params)}
        return tuple(position.get(root) if root is not None else None for root in fitting[0])


__all__ = ["Callees", "argument_index", "parameter_index"]
