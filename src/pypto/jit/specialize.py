"""From a bound call to a program: a helper is parsed once for each set of parameter types and constants."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..diag.parser_errors import ParserError
from ..frontend.closure import MISSING
from ..frontend.context import ProgramContext, Signature
from ..frontend.errors import Suppressed
from ..frontend.function_parser import FunctionOptions
from ..ir.dtype import DataType
from ..ir.enums import FunctionType, Level, ParamDirection, Role, TensorLayout
from ..ir.expr import ConstBool, ConstFloat, ConstInt, Expr, GlobalVar, Var
from ..ir.extents import extent_key
from ..ir.paused_gc import paused_gc
from ..ir.program import Function, Program
from ..ir.type import (
    INDEX_TYPE,
    DistributedTensorType,
    ScalarType,
    TensorType,
    TensorView,
    TileType,
    Type,
)
from ..language.typing import DynVar, dynamic
from .cache import scalar_key
from .extern import specialize_external
from .graph import Graph
from .parser import JitFunctionParser

if TYPE_CHECKING:
    from .decorator import JITFunction
    from .parameters import Parameter

# kind -> (function type, level, role)
_KINDS: dict[str, tuple[FunctionType, Level | None, Role | None]] = {
    "orchestration": (FunctionType.Orchestration, None, None),
    "host": (FunctionType.Opaque, Level.HOST, Role.Orchestrator),
    "incore": (FunctionType.InCore, None, None),
    "inline": (FunctionType.Inline, None, None),
    "opaque": (FunctionType.Opaque, None, None),
}


_CORE_KINDS = {Level.AIC: FunctionType.AIC, Level.AIV: FunctionType.AIV}


class Spec:
    """What is known of a parameter in one specialisation: its type (None: the annotation says) and a baked value."""

    __slots__ = ("type", "value")

    def __init__(self, type: Type | None, value: Any = MISSING) -> None:
        self.type = type
        self.value = value

    def key(self) -> tuple[Any, ...]:
        """Equal for specs that give equal specialisations."""
        return (type_key(self.type), *(() if self.value is MISSING else scalar_key(self.value)))


def type_key(kind: Type | None) -> Any:
    """A hash key of a parameter type; symbols by identity."""
    if isinstance(kind, (TensorType, TileType)):
        view = getattr(kind, "tensor_view", None)
        layout = view.layout if view is not None else None
        extra = str(kind) if isinstance(kind, TileType) else None
        return (type(kind).__name__, tuple(map(extent_key, kind.shape)), kind.dtype.name, layout, extra)
    if isinstance(kind, ScalarType):
        return kind.dtype.name
    return None if kind is None else (type(kind).__name__, str(kind))


class Specializer:
    """One specialisation of an entry: the program under construction."""

    def __init__(self, entry: JITFunction, graph: Graph) -> None:
        self.entry = entry
        self.graph = graph
        self.context = _Context(f"_jit_{entry.__name__}")
        self.aliases: dict[str, str] = {}
        self._done: dict[Any, tuple[GlobalVar, Signature] | None] = {}
        self._active: list[JITFunction] = []
        self._names: set[str] = {entry.__name__}
        self._named: dict[str, JITFunction] = {entry.__name__: entry}
        self._symbols: dict[Any, Any] = {}

    def run(self, specs: Sequence[Spec]) -> Program:
        """The program of the entry for these parameters."""
        with paused_gc():
            self._parse(self.entry, self.entry.__name__, specs)
        context = self.context
        functions = [*context.functions.values()]
        functions += [f for name, f in context.externals.items() if name not in context.functions]
        span = self.entry._scan().source.span(self.entry._scan().node)
        return Program(functions, context.name, span)

    def symbol(self, name: str) -> DynVar:
        """The dynamic dimension of a name that a body declares itself."""
        found = self._symbols.get(name)
        if found is None:
            for dims in self.graph.dynamic.values():
                for declared in dims.values():
                    for symbol in declared.values():
                        if symbol.name == name:
                            found = symbol
            found = self._symbols[name] = found if found is not None else dynamic(name)
        return found  # type: ignore[no-any-return]

    # --- parameters ---------------------------------------------------------------------------------------------------

    def entry_specs(self, bound: Sequence[Any]) -> list[Spec]:
        """Specs of the entry's parameters from a bound call: (shape, dtype), a value, or MISSING for each."""
        dynamic_dims = self.graph.dynamic_dims(self.entry)
        specs = []
        for parameter, item in zip(self.entry._parameters(), bound, strict=True):
            if parameter.kind == "tensor" or isinstance(item, tuple):
                shape, dtype = item
                symbols = dynamic_dims.get(parameter.name, {})
                extents = [
                    self.context.dynamic_var(symbols[i]) if i in symbols else extent for i, extent in enumerate(shape)
                ]
                specs.append(Spec(tensor_type(extents, dtype, parameter.layout, parameter.distributed)))
            elif parameter.kind == "scalar" or item is not MISSING:
                dtype = parameter.dtype or _value_dtype(item)
                specs.append(Spec(ScalarType(dtype), item))
            else:
                specs.append(Spec(None))
        return specs

    def callee(
        self, helper: JITFunction, args: Sequence[Expr], caller: JitFunctionParser, node: ast.expr
    ) -> tuple[GlobalVar, Signature]:
        """GlobalVar and signature of ``helper`` specialised for the argument expressions of a call."""
        specs = [
            self._callee_spec(helper, parameter, arg, caller)
            for parameter, arg in zip(helper._parameters(), args, strict=True)
        ]
        self._share_symbols(helper, specs, args, caller)
        key = (id(helper), *(spec.key() for spec in specs))
        if helper in self._active:
            names = [f.__name__ for f in [*self._active[self._active.index(helper) :], helper]]
            raise TypeError(f"@pl.jit functions cannot be recursive: {' -> '.join(names)}")
        if key in self._done:
            found = self._done[key]
            if found is None:
                raise Suppressed  # its errors were reported at the first call
            return found
        self._done[key] = None
        name = self._name_for(helper)
        try:
            signature = self._parse(helper, name, specs)
        except ParserError as error:
            for each in error.all_errors():
                each.note = each.note or f"in '{helper.__name__}', specialised for the call at {caller.span(node)}"
            raise
        result = (self.context.global_var(name), signature)
        self._done[key] = result
        return result

    def _name_for(self, helper: JITFunction) -> str:
        """``f``, then ``f__1`` for further specialisations; ``f_1`` for another function of the same name."""
        base = helper.__name__
        owner = self._named.setdefault(base, helper)
        if owner is not helper:
            number = 1
            while self._named.setdefault(f"{base}_{number}", helper) is not helper:
                number += 1
            base = f"{base}_{number}"
        return self.unique_name(base)

    def unique_name(self, base: str) -> str:
        """A name that no function of the program has: ``base``, ``base__1``, ..."""
        name, number = base, 0
        while name in self._names:
            number += 1
            name = f"{base}__{number}"
        self._names.add(name)
        return name

    def _callee_spec(self, helper: JITFunction, parameter: Parameter, arg: Expr, caller: JitFunctionParser) -> Spec:
        kind = arg.type
        if parameter.kind == "other":
            return Spec(None)
        if isinstance(kind, ScalarType):
            value = arg.value if isinstance(arg, (ConstInt, ConstFloat, ConstBool)) else MISSING
            return Spec(ScalarType(parameter.dtype or kind.dtype), value)
        if isinstance(kind, TensorType):
            return Spec(kind)  # its extents are settled for all parameters together
        return Spec(kind)

    def _share_symbols(
        self, helper: JITFunction, specs: list[Spec], args: Sequence[Expr], caller: JitFunctionParser
    ) -> None:
        """Replace the tensor types of arguments by parameter types.

        A dimension is the callee's own symbol, the argument's static extent, a symbol of the caller, or, for an extent
        that only the caller can compute, a fresh symbol; equal extents share one.
        """
        dynamic_dims = self.graph.dynamic_dims(helper)
        fresh: dict[Any, Var] = {}
        for parameter, spec in zip(helper._parameters(), specs, strict=True):
            kind = spec.type
            if not isinstance(kind, TensorType):
                continue
            symbols = dynamic_dims.get(parameter.name, {})
            extents: list[Any] = []
            for dim, extent in enumerate(kind.shape):
                declared = parameter.shape[dim] if parameter.shape is not None and dim < len(parameter.shape) else None
                if dim in symbols:
                    extents.append(self.context.dynamic_var(symbols[dim]))
                elif type(extent) is ConstInt:
                    extents.append(extent.value)
                elif type(declared) is int:
                    extents.append(declared)
                elif type(extent) is Var and extent in caller.declared_symbols:
                    extents.append(extent)
                else:
                    key = extent_key(extent)
                    if key not in fresh:
                        fresh[key] = self._fresh_symbol(helper, parameter.name, dim)
                    extents.append(fresh[key])
            view = kind.tensor_view
            layout = view.layout if view is not None and view.layout is not TensorLayout.ND else parameter.layout
            spec.type = tensor_type(extents, kind.dtype, layout, isinstance(kind, DistributedTensorType))

    def _fresh_symbol(self, helper: JITFunction, parameter: str, dim: int) -> Var:
        key = (helper, parameter, dim)
        found = self._symbols.get(key)
        if found is None:
            name = f"{parameter}_dim{dim}"
            number = 0
            while name in self.context.dynamic:
                number += 1
                name = f"{parameter}_dim{dim}_{number}"
            found = self._symbols[key] = Var(name, INDEX_TYPE, helper._scan().source.span(helper._scan().node))
            self.context.dynamic[name] = found
        return found  # type: ignore[no-any-return]

    # --- functions ----------------------------------------------------------------------------------------------------

    def _parse(self, function: JITFunction, name: str, specs: Sequence[Spec]) -> Signature:
        self._active.append(function)
        try:
            if function._extern is not None:
                functions = specialize_external(self, function, name, specs)
            else:
                functions = [self.parse_function(function, name, specs, _options(function))]
        finally:
            self._active.pop()
        for made in functions:
            self.context.global_var(made.name)
            self.context.functions[made.name] = made
        signature = self.context.signatures[name] = Signature.of(functions[-1])
        return signature

    def parse_function(
        self, function: JITFunction, name: str, specs: Sequence[Spec], options: FunctionOptions
    ) -> Function:
        """One function of the program, from the source of ``function``."""
        self.context.global_var(name)
        parser = JitFunctionParser(function, name, specs, self, options)
        try:
            return parser.parse()
        except ParserError as error:
            for each in error.all_errors():
                if each.source_lines is None:
                    each.source_lines = parser.source.error_lines()
            raise
        finally:
            self.aliases.update(parser.renamed)


class _Context(ProgramContext):
    """In a specialised program dynamic dimensions of one name are one, wherever they were declared."""

    def dynamic_var(self, dynvar: Any) -> Var:
        return self.dynamic.get(dynvar.name) or super().dynamic_var(dynvar)


def _options(function: JITFunction) -> FunctionOptions:
    kind, level, role = _KINDS[function._func_type]
    if kind is FunctionType.Inline:
        _warn_of_directions(function)
    if function._level is not None:
        # A kernel at the level of one core is a kernel of that core's kind.
        kind = _CORE_KINDS.get(function._level, kind)
        level = function._level
    return FunctionOptions(kind, level, role, None, function._auto_scope)


def _warn_of_directions(function: JITFunction) -> None:
    """Spliced code has no parameters to write, so a direction says nothing there."""
    wrapped = [p.name for p in function._parameters() if p.direction is not ParamDirection.In]
    if wrapped:
        warnings.warn(
            f"@pl.jit.inline function '{function.__name__}': pl.Out/pl.InOut on {', '.join(wrapped)} has no effect and "
            "is deprecated; annotate the tensor type alone",
            DeprecationWarning,
            stacklevel=2,
        )


def tensor_type(
    extents: Sequence[Any], dtype: DataType, layout: TensorLayout | None, distributed: bool = False
) -> TensorType:
    """A packed tensor type."""
    view = None if layout is None or layout is TensorLayout.ND else TensorView(layout=layout)
    cls = DistributedTensorType if distributed else TensorType
    return cls(list(extents), dtype, None, view)


def _value_dtype(value: Any) -> DataType:
    if isinstance(value, bool):
        return DataType.BOOL
    return DataType.INDEX if isinstance(value, int) else DataType.FP32


__all__ = ["Spec", "Specializer", "tensor_type", "type_key"]
