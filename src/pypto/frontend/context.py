"""What the functions of one program share while they are parsed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..ir.enums import FunctionType, Level, ParamDirection, Role
from ..ir.expr import GlobalVar, Var
from ..ir.program import Function
from ..ir.span import Span
from ..ir.type import Type


class Signature:
    """What a call must know of a function: parameters, directions, declared results."""

    __slots__ = ("directions", "func_type", "level", "name", "params", "return_types", "role")

    def __init__(
        self,
        name: str,
        params: Sequence[Var],
        directions: Sequence[ParamDirection],
        return_types: Sequence[Type],
        func_type: FunctionType,
        level: Level | None,
        role: Role | None,
    ) -> None:
        self.name = name
        self.params = list(params)
        self.directions = list(directions)
        self.return_types = list(return_types)
        self.func_type = func_type
        self.level = level
        self.role = role

    @classmethod
    def of(cls, function: Function) -> Signature:
        return cls(
            function.name,
            function.params,
            function.param_directions,
            function.return_types,
            function.func_type,
            function.level,
            function.role,
        )

    def describe(self) -> str:
        """``x: In, y: Out``, for hints."""
        return ", ".join(f"{p.name_hint}: {d.name}" for p, d in zip(self.params, self.directions, strict=True))


class ProgramContext:
    """Shared state of a program: its methods, what is known of them, dynamic dimensions, buffers.

    ``is_program`` is False for a function that stands alone.
    """

    def __init__(self, name: str = "", is_program: bool = True) -> None:
        self.name = name
        self.is_program = is_program
        self.global_vars: dict[str, GlobalVar] = {}
        self.signatures: dict[str, Signature] = {}
        self.functions: dict[str, Function] = {}
        self.externals: dict[str, Function] = {}
        self.dynamic: dict[str, Var] = {}
        self.reserved_buffers: dict[tuple[str, str], dict[str, Any]] = {}
        self.window_buffers: set[str] = set()
        # A jit specialisation resolves calls of its helpers through this.
        self.specialize: Callable[..., Signature] | None = None

    def dynamic_var(self, dynvar: Any) -> Var:
        """The one Var of a ``pl.dynamic`` object; objects of one name share it inside a program."""
        name = dynvar.name
        known = self.dynamic.get(name)
        if known is not None and getattr(dynvar, "_var", None) is None:
            return known
        var: Var = dynvar.unwrap()
        self.dynamic.setdefault(name, var)
        return var

    def global_var(self, name: str) -> GlobalVar:
        found = self.global_vars.get(name)
        if found is None:
            found = self.global_vars[name] = GlobalVar(name)
        return found

    def signature(self, name: str) -> Signature | None:
        return self.signatures.get(name)


class BufferMetadata:
    """Keyword values of a ``reserve_buffer`` or ``import_peer_buffer`` call, readable as ``b.base`` afterwards."""

    __slots__ = ("span", "values")

    def __init__(self, values: dict[str, Any], span: Span) -> None:
        self.values = values
        self.span = span
