"""Binding a call: from arguments to what is specialised (shapes, element types, baked scalars) and to a cache key."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from .._lazy import np
from ..frontend.closure import MISSING
from ..ir.dtype import DataType
from ..ir.enums import ParamDirection
from ..language.typing import RUNTIME
from ..runtime.arrays import array_shape_and_dtype, is_array, is_torch_tensor, zeros
from ..runtime.device_tensor import DeviceTensor
from ..runtime.element_types import dtype_of
from .cache import scalar_key
from .parameters import Parameter

DynamicDims = Mapping[str, Mapping[int, Any]]


def is_array_like(value: Any) -> bool:
    """Whether a value stands for a tensor: an array, or a tensor resident on a worker."""
    return isinstance(value, (np.ndarray, DeviceTensor)) or is_array(value)


class Bound:
    """A bound call. ``items`` has, for each parameter, ``(shape, dtype)``, a number, or MISSING (a run-time scalar).

    ``values`` are the arguments to run with (empty in signature mode); ``allocated`` those of them that were made here
    for omitted outputs.
    """

    __slots__ = ("allocated", "items", "key", "values")

    def __init__(self, items: list[Any], values: list[Any], allocated: list[Any]) -> None:
        self.items = items
        self.values = values
        self.allocated = allocated
        self.key: tuple[Any, ...] = ()


class Binder:
    """Binds calls of one function; made once for a function and its dynamic dimensions."""

    def __init__(
        self, name: str, signature: inspect.Signature, parameters: list[Parameter], dynamic: DynamicDims
    ) -> None:
        self.prefix = f"@pl.jit function '{name}': "
        self.parameters = parameters
        self.signature = signature.replace(parameters=[p for p in signature.parameters.values() if p.name != "self"])
        self.dynamic = [frozenset(dynamic.get(p.name, ())) for p in parameters]
        self.index = {p.name: i for i, p in enumerate(parameters)}
        self.shared = _shared_symbols(parameters, dynamic)
        self.symbols = dynamic

    # --- sample mode --------------------------------------------------------------------------------------------------

    def sample(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Bound:
        """Bind values; the arrays decide shapes and element types, numbers are baked."""
        values, omitted = self._values(args, kwargs)
        items: list[Any] = []
        for parameter, value in zip(self.parameters, values, strict=True):
            items.append(MISSING if value is MISSING else self._item(parameter, value))
            if type(value) is np.ndarray and type(items[-1]) is not tuple:  # a number in an array without dimensions
                values[len(items) - 1] = items[-1]
        allocated = self._allocate(items, values, omitted) if omitted else []
        for group in self.shared:
            self._check_shared(group, items)
        bound = Bound(items, values, allocated)
        bound.key = self._key(items)
        return bound

    def _values(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[list[Any], list[int]]:
        """Arguments in parameter order, and the positions of omitted outputs."""
        if not kwargs and len(args) == len(self.parameters):
            return list(args), []
        signature = self.signature
        try:
            arguments = signature.bind(*args, **kwargs)
        except TypeError as error:
            found = self._without_outputs(args, kwargs)
            if found is None:
                raise TypeError(f"{self.prefix}{error}") from None
            return found
        if not all(self._fits(name, value) for name, value in arguments.arguments.items()):
            # `kernel(x, 3)` with an output between the two and a default behind
            found = self._without_outputs(args, kwargs)
            if found is not None:
                return found
        arguments.apply_defaults()
        return [arguments.arguments[p.name] for p in self.parameters], []

    def _without_outputs(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[list[Any], list[int]] | None:
        """A call that leaves out outputs whose shape is known: trailing ones, or all of them."""
        names = {p.name for p in self.parameters if self._allocatable(p)}
        all_parameters = self.signature.parameters.values()
        try:
            partial = self.signature.bind_partial(*args, **kwargs)
        except TypeError:
            partial = None
        missing = [
            p.name
            for p in all_parameters
            if (partial is None or p.name not in partial.arguments) and p.default is inspect.Parameter.empty
        ]
        fits = partial is not None and all(self._fits(name, value) for name, value in partial.arguments.items())
        if partial is None or not fits or not set(missing) <= names:
            kept = [p for p in all_parameters if p.name not in names or p.name in kwargs]
            try:
                partial = self.signature.replace(parameters=kept).bind(*args, **kwargs)
            except (TypeError, ValueError):
                return None
            if not all(self._fits(name, value) for name, value in partial.arguments.items()):
                return None
        partial.apply_defaults()
        values = [partial.arguments.get(p.name, MISSING) for p in self.parameters]
        return values, [i for i, value in enumerate(values) if value is MISSING]

    def _fits(self, name: str, value: Any) -> bool:
        """Whether a value is of the kind that a parameter takes: what tells two ways of leaving out outputs apart."""
        kind = self.parameters[self.index[name]].kind
        return is_array_like(value) is (kind == "tensor") or kind in ("none", "other", "tile")

    def _allocatable(self, parameter: Parameter) -> bool:
        if parameter.direction is not ParamDirection.Out or parameter.shape is None or parameter.dtype is None:
            return False
        dynamic = self.symbols.get(parameter.name, {})
        return all(type(e) is int or i in dynamic for i, e in enumerate(parameter.shape))

    def _allocate(self, items: list[Any], values: list[Any], omitted: list[int]) -> list[Any]:
        extents: dict[str, int] = {}
        for parameter, item in zip(self.parameters, items, strict=True):
            if isinstance(item, tuple):
                for dim, symbol in self.symbols.get(parameter.name, {}).items():
                    if dim < len(item[0]):
                        extents.setdefault(symbol.name, item[0][dim])
        torch = any(map(is_torch_tensor, values))
        allocated = []
        for i in omitted:
            parameter = self.parameters[i]
            symbols = self.symbols.get(parameter.name, {})
            shape = []
            for dim, extent in enumerate(parameter.shape or ()):
                known = extents.get(symbols[dim].name) if dim in symbols else extent
                if known is None:
                    raise TypeError(
                        f"{self.prefix}missing a required argument: '{parameter.name}' (its dimension "
                        f"'{symbols[dim].name}' follows from no other argument)"
                    )
                shape.append(known)
            assert parameter.dtype is not None
            values[i] = zeros(tuple(shape), parameter.dtype, torch)
            items[i] = (tuple(shape), parameter.dtype)
            allocated.append(values[i])
        return allocated

    def _item(self, parameter: Parameter, value: Any) -> Any:
        kind = parameter.kind
        if kind == "tensor" or kind == "none":
            if is_array_like(value):
                return self._tensor_item(parameter, value)
            if value is RUNTIME:
                self._refuse_runtime(parameter)
            if kind == "tensor":
                raise TypeError(
                    f"{self.prefix}parameter '{parameter.name}': expected an array, got {type(value).__name__}"
                )
        if kind in ("other", "tile"):
            return MISSING
        return self._scalar_item(parameter, value)

    def _tensor_item(self, parameter: Parameter, value: Any) -> tuple[tuple[int, ...], DataType]:
        name = parameter.name
        if type(value) is np.ndarray:
            shape, dtype = value.shape, dtype_of(value.dtype, name)
        else:
            shape, dtype = array_shape_and_dtype(value, name)
        if not shape:
            raise TypeError(f"{self.prefix}parameter '{name}': a tensor parameter can't take a 0-d array")
        want = parameter.dtype
        if want is not None and want is not dtype:
            if want is not DataType.INDEX or dtype is not DataType.INT64:
                self._refuse_array(parameter, shape, value)
            dtype = want
        declared = parameter.shape
        if declared is not None:
            if len(declared) != len(shape):
                self._refuse_array(parameter, shape, value)
            dynamic = self.dynamic[self.index[name]]
            for dim, extent in enumerate(declared):
                if type(extent) is int and extent != shape[dim] and dim not in dynamic:
                    self._refuse_array(parameter, shape, value)
        return shape, dtype

    def _refuse_array(self, parameter: Parameter, shape: tuple[int, ...], value: Any) -> None:
        dtype = str(getattr(value, "dtype", "?")).removeprefix("torch.")
        raise TypeError(
            f"{self.prefix}parameter '{parameter.name}': annotated {parameter.declared}, got "
            f"({', '.join(map(str, shape))}{',' if len(shape) == 1 else ''}) {dtype}"
        )

    def _refuse_runtime(self, parameter: Parameter) -> None:
        raise TypeError(
            f"{self.prefix}parameter '{parameter.name}' received pl.RUNTIME, which is a compile-time marker "
            f"rather than a value: use compile({parameter.name}=pl.RUNTIME), then call the result with a number"
        )

    def _scalar_item(self, parameter: Parameter, value: Any) -> int | float | bool:
        kind = type(value)
        if kind is not int and kind is not float and kind is not bool:
            if value is RUNTIME:
                self._refuse_runtime(parameter)
            if isinstance(value, (np.generic, np.ndarray)) and value.ndim == 0:
                value = value.item() if value.dtype.kind in "biuf" else float(value)
            elif isinstance(value, (int, float)):  # IntEnum and friends
                value = int(value) if isinstance(value, int) else float(value)
            else:
                raise TypeError(
                    f"{self.prefix}scalar parameter '{parameter.name}' must be an int/float/bool, got {kind.__name__}"
                )
        return self._converted(parameter, value)

    def _converted(self, parameter: Parameter, value: int | float | bool) -> int | float | bool:
        """A number as the declared element type has it."""
        dtype = parameter.dtype
        if dtype is None:
            return value
        if dtype.is_float_:
            return float(value)
        if dtype is DataType.BOOL:
            if value in (0, 1):
                return bool(value)
        elif int(value) == value:
            return int(value)
        raise TypeError(f"{self.prefix}scalar parameter '{parameter.name}' is {dtype.name}, got {value!r}")

    def _check_shared(self, group: tuple[str, list[tuple[int, int]]], items: list[Any]) -> None:
        """Dimensions of one symbol have equal extents."""
        symbol, places = group
        first: tuple[int, int, int] | None = None
        for index, dim in places:
            item = items[index]
            if not isinstance(item, tuple) or dim >= len(item[0]):
                continue
            extent = item[0][dim]
            if first is None:
                first = (extent, index, dim)
            elif extent != first[0]:
                x, y = self.parameters[first[1]].name, self.parameters[index].name
                raise ValueError(
                    f"{self.prefix}dynamic dimension '{symbol}' is {first[0]} in {x} (dim {first[2]}) but {extent} in "
                    f"{y} (dim {dim})"
                )

    def _key(self, items: list[Any]) -> tuple[Any, ...]:
        key: list[Any] = []
        for item, dynamic in zip(items, self.dynamic, strict=True):
            if type(item) is tuple:
                shape = item[0]
                if dynamic:
                    shape = tuple(None if i in dynamic else extent for i, extent in enumerate(shape))
                key.append((shape, item[1]))
            elif item is MISSING:
                key.append(None)
            else:
                key.append(scalar_key(item))
        return tuple(key)

    @staticmethod
    def any_array(values: Iterable[Any]) -> bool:
        """Whether a call gives arrays, and so samples."""
        return any(map(is_array_like, values))

    # --- signature mode -----------------------------------------------------------------------------------------------

    def from_signature(self, kwargs: Mapping[str, Any]) -> Bound:
        """Bind from annotations; scalars come from keywords and defaults."""
        for name in kwargs:
            if name not in self.index:
                raise TypeError(f"{self.prefix}got an unexpected keyword argument '{name}'")
        items = [self._declared_item(p, kwargs.get(p.name, p.default)) for p in self.parameters]
        bound = Bound(items, [], [])
        bound.key = self._key(items)
        return bound

    def _declared_item(self, parameter: Parameter, value: Any) -> Any:
        name = parameter.name
        if parameter.kind == "tensor":
            if parameter.shape is None or parameter.dtype is None:
                raise TypeError(
                    f"{self.prefix}cannot specialize from the signature because parameter '{name}' has a bare "
                    "'pl.Tensor' annotation with no shape: annotate pl.Tensor[[...], dtype], or pass arrays"
                )
            dynamic = self.symbols.get(name, {})
            shape = tuple(1 if i in dynamic else self._declared_extent(name, e) for i, e in enumerate(parameter.shape))
            return shape, parameter.dtype
        if parameter.kind != "scalar":
            annotation = "none" if parameter.kind == "none" else repr(parameter.annotation)
            raise TypeError(
                f"{self.prefix}cannot infer parameter '{name}' from the signature (annotation: {annotation})"
            )
        if value is RUNTIME:
            return MISSING
        if value is inspect.Parameter.empty:
            raise TypeError(
                f"{self.prefix}scalar parameter '{name}' has no value: pass {name}=<number>, or {name}=pl.RUNTIME to "
                "leave it to the call"
            )
        if not isinstance(value, (int, float, np.generic)):
            raise TypeError(
                f"{self.prefix}scalar parameter '{name}' must be an int/float/bool to be baked in, or pl.RUNTIME to be "
                f"left to the call, got {type(value).__name__}"
            )
        return self._scalar_item(parameter, value)

    def _declared_extent(self, name: str, extent: Any) -> int:
        if hasattr(extent, "__index__"):
            return int(extent.__index__())
        raise TypeError(
            f"{self.prefix}cannot specialize from the signature because a dimension of parameter '{name}' is the "
            f"expression {extent}"
        )


def _shared_symbols(parameters: list[Parameter], dynamic: DynamicDims) -> list[tuple[str, list[tuple[int, int]]]]:
    """The symbols that more than one dimension has, with their (parameter, dimension) places."""
    places: dict[str, list[tuple[int, int]]] = {}
    for i, parameter in enumerate(parameters):
        for dim, symbol in sorted(dynamic.get(parameter.name, {}).items()):
            places.setdefault(symbol.name, []).append((i, dim))
    return [(name, found) for name, found in places.items() if len(found) > 1]


__all__ = ["Binder", "Bound", "is_array_like"]
