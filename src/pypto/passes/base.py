"""What a pass is: a function from program to program, with a name and the properties that it is about."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from ..diag.errors import InternalError
from ..ir.program import Function, Program
from ..verify.properties import IRProperty, IRPropertySet, property_set


class PassProperties:
    """``required``, ``produced`` and ``invalidated`` property sets of a pass; readable and writable."""

    __slots__ = ("invalidated", "produced", "required")

    def __init__(
        self,
        required: IRPropertySet | None = None,
        produced: IRPropertySet | None = None,
        invalidated: IRPropertySet | None = None,
    ) -> None:
        self.required = IRPropertySet() if required is None else required
        self.produced = IRPropertySet() if produced is None else produced
        self.invalidated = IRPropertySet() if invalidated is None else invalidated


class Pass:
    """A transformation of programs. Subclasses give ``name``, the properties, and ``run``.

    ``run`` never changes its input, and gives the same object back when it changed nothing: facts about functions,
    dumps and caches rest on that.
    """

    name: ClassVar[str]
    required: ClassVar[tuple[IRProperty, ...]] = ()
    produced: ClassVar[tuple[IRProperty, ...]] = ()
    invalidated: ClassVar[tuple[IRProperty, ...]] = ()

    def run(self, program: Program) -> Program:
        """The transformed program."""
        raise NotImplementedError

    def __call__(self, program: Program) -> Program:
        """Run the pass, between the hooks of the instruments of the active :class:`PassContext`."""
        from .context import PassContext

        if not isinstance(program, Program):
            raise TypeError(f"a pass takes an ir.Program, got {type(program).__name__}")
        context = PassContext.current()
        instruments = context.get_instruments() if context is not None else []
        for instrument in instruments:
            instrument.run_before_pass(self, program)
        result = self.run(program)
        if result is None:
            raise InternalError(f"pass '{self.get_name()}' returned null program")
        for instrument in instruments:
            instrument.run_after_pass(self, result)
        return result

    def get_name(self) -> str:
        """The CamelCase name, used in dumps, messages and instruments."""
        return self.name

    def get_required_properties(self) -> IRPropertySet:
        """What the pass needs to hold of its input."""
        return property_set(*self.required)

    def get_produced_properties(self) -> IRPropertySet:
        """What holds of its result."""
        return property_set(*self.produced)

    def get_invalidated_properties(self) -> IRPropertySet:
        """What need not hold any more of its result."""
        return property_set(*self.invalidated)

    def __repr__(self) -> str:
        return f"<pass {self.get_name()}>"


class FunctionPass(Pass):
    """A pass that looks at one function at a time."""

    def run(self, program: Program) -> Program:
        return program.with_functions([self.run_on(function, program) for function in program.functions.values()])

    def run_on(self, function: Function, program: Program) -> Function:
        """The transformed function; the same object when nothing changed."""
        raise NotImplementedError


class _Made(Pass):
    """A pass made from a Python function."""

    def __init__(self, transform: Callable[[Any], Any], name: str, properties: PassProperties | None) -> None:
        if not callable(transform):
            raise TypeError(f"a pass is made from a function, got {type(transform).__name__}")
        given = PassProperties() if properties is None else properties
        self._transform = transform
        self._name = name
        self._sets = (
            property_set(*given.required),
            property_set(*given.produced),
            property_set(*given.invalidated),
        )

    def get_name(self) -> str:
        return self._name

    def get_required_properties(self) -> IRPropertySet:
        return property_set(*self._sets[0])

    def get_produced_properties(self) -> IRPropertySet:
        return property_set(*self._sets[1])

    def get_invalidated_properties(self) -> IRPropertySet:
        return property_set(*self._sets[2])


class _MadeProgramPass(_Made):
    def run(self, program: Program) -> Program:
        return self._transform(program)  # type: ignore[no-any-return]


class _MadeFunctionPass(_Made):
    def run(self, program: Program) -> Program:
        return program.with_functions([self._transform(function) for function in program.functions.values()])


def create_function_pass(
    transform: Callable[[Function], Function], name: str = "", properties: PassProperties | None = None
) -> Pass:
    """A pass that applies ``transform`` to every function, in program order. What ``transform`` raises, propagates."""
    return _MadeFunctionPass(transform, name or "FunctionPass", properties)


def create_program_pass(
    transform: Callable[[Program], Program], name: str = "", properties: PassProperties | None = None
) -> Pass:
    """A pass that applies ``transform`` to the whole program. What ``transform`` raises, propagates."""
    return _MadeProgramPass(transform, name or "ProgramPass", properties)


__all__ = ["FunctionPass", "Pass", "PassProperties", "create_function_pass", "create_program_pass"]
