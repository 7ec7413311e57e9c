"""What a program's entry takes and returns, as seen by its caller."""

from __future__ import annotations

from dataclasses import dataclass

from ..ir.dtype import DataType
from ..ir.enums import FunctionType, Level, ParamDirection, level_to_linqu_level
from ..ir.expr import Call, ConstInt, GlobalVar, Submit
from ..ir.program import Function, Program
from ..ir.stmt import ReturnStmt
from ..ir.tree import walk
from ..ir.type import ScalarType, TensorType

_KERNELS = (FunctionType.InCore, FunctionType.AIC, FunctionType.AIV, FunctionType.Group, FunctionType.Spmd)


@dataclass(frozen=True)
class ParamInfo:
    """One parameter. ``shape`` is None for a scalar; -1 stands for an extent that the call decides."""

    name: str
    direction: ParamDirection
    shape: tuple[int, ...] | None
    dtype: DataType

    @property
    def is_scalar(self) -> bool:
        return self.shape is None

    def describe(self) -> str:
        """As it is written in messages: ``[16, N] fp32``."""
        if self.shape is None:
            return str(self.dtype)
        return f"[{', '.join('?' if n < 0 else str(n) for n in self.shape)}] {self.dtype}"


def param_infos(function: Function) -> list[ParamInfo]:
    """The parameters of a function; ``TypeError`` for one that a caller on the host can't pass."""
    found = []
    for param, direction in zip(function.params, function.param_directions, strict=True):
        kind = param.type
        if isinstance(kind, TensorType):
            shape = tuple(e.value if type(e) is ConstInt else -1 for e in kind.shape)
            found.append(ParamInfo(param.name_hint, direction, shape, kind.dtype))
        elif isinstance(kind, ScalarType):
            found.append(ParamInfo(param.name_hint, direction, None, kind.dtype))
        else:
            raise TypeError(
                f"parameter '{param.name_hint}' of '{function.name}' is a {type(kind).__name__}: "
                "an entry takes tensors and scalars"
            )
    return found


def extract_param_infos(program: Program | Function) -> list[ParamInfo]:
    """The parameters of a program's entry."""
    return param_infos(program if isinstance(program, Function) else entry_function(program))


def orchestrations(program: Program) -> list[Function]:
    """The functions that a caller can start, in program order."""
    return [f for f in program.functions.values() if f.func_type is FunctionType.Orchestration]


def entry_function(program: Program, name: str | None = None) -> Function:
    """The function that a call of the program runs: the named one, the orchestration, or the sole candidate."""
    if name is not None:
        found = program.get_function(name)
        if found is None:
            raise KeyError(
                f"No function '{name}' in the program. Available: {[f.name for f in program.functions.values()]}"
            )
        return found
    candidates = orchestrations(program)
    if len(candidates) > 1:
        # Of orchestrations that call each other the one that none calls; of independent ones the first.
        called = _called(program)
        candidates = [f for f in candidates if f.name not in called] or candidates
    if not candidates:
        candidates = [f for f in program.functions.values() if f.func_type is not FunctionType.Inline]
    if len(candidates) > 1 and candidates[0].func_type is not FunctionType.Orchestration:
        # Without an orchestration the entry is the one function that no other calls.
        called = _called(program)
        tops = [f for f in candidates if f.name not in called and f.func_type not in _KERNELS]
        candidates = tops if len(tops) == 1 else candidates
    if not candidates:
        raise ValueError("Program has no function to run")
    if len(candidates) > 1 and candidates[0].func_type is not FunctionType.Orchestration:
        kind = "InCore functions" if all(f.func_type in _KERNELS for f in candidates) else "functions"
        raise ValueError(
            f"Program has no Orchestration function and multiple {kind} ({', '.join(f.name for f in candidates)}): "
            "mark the entry with @pl.function(type=pl.FunctionType.Orchestration)"
        )
    return candidates[0]


def _called(program: Program) -> set[str]:
    return {
        node.op.name
        for function in program.functions.values()
        for node in walk(function.body)
        if isinstance(node, (Call, Submit)) and isinstance(node.op, GlobalVar)
    }


def returns_something(function: Function) -> bool:
    """Whether a function gives results, declared or not."""
    if function.return_types:
        return True
    return any(isinstance(node, ReturnStmt) and len(node.value) > 0 for node in walk(function.body))


def is_distributed(program: Program) -> bool:
    """Whether a function of the program runs above the chip."""
    host = level_to_linqu_level(Level.HOST)
    return any(f.level is not None and level_to_linqu_level(f.level) >= host for f in program.functions.values())


__all__ = [
    "ParamInfo",
    "entry_function",
    "extract_param_infos",
    "is_distributed",
    "orchestrations",
    "param_infos",
    "returns_something",
]
