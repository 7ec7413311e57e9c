"""What the annotations of a jit function say of its parameters."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from ..ir.dtype import DataType
from ..ir.enums import ParamDirection, TensorLayout
from ..language.typing import InOut, Out, Scalar, Tensor, Tile
from ..language.typing.distributed import DistributedTensor

MISSING: Any = inspect.Parameter.empty

_PYTHON_SCALARS = {int: DataType.INDEX, float: DataType.FP32, bool: DataType.BOOL}


class Parameter:
    """One parameter: what kind of value it takes, and what is fixed of it.

    ``kind`` is ``"tensor"``, ``"tile"`` (any tile), ``"scalar"``, ``"other"`` (the annotation is all there is) or
    ``"none"`` (no annotation). ``shape`` is None for a bare ``pl.Tensor``; its elements are ints, ``DynVar``
    objects, or other integer expressions.
    """

    __slots__ = ("annotation", "default", "direction", "distributed", "dtype", "kind", "layout", "name", "shape")

    def __init__(self, name: str, annotation: Any, default: Any) -> None:
        self.name = name
        self.annotation = annotation
        self.default = default
        self.direction = ParamDirection.In
        self.kind = "none"
        self.shape: tuple[Any, ...] | None = None
        self.dtype: DataType | None = None
        self.layout: TensorLayout | None = None
        self.distributed = False
        inner = annotation
        if isinstance(inner, (Out, InOut)):
            self.direction = inner.direction
            inner = inner.inner
        self._read(inner)

    def _read(self, inner: Any) -> None:
        if isinstance(inner, type) and issubclass(inner, Tensor):
            self.kind = "tensor"
            self.distributed = issubclass(inner, DistributedTensor)
        elif isinstance(inner, Tensor):
            self.kind = "tensor"
            self.distributed = isinstance(inner, DistributedTensor)
            self.shape = tuple(inner.shape) if inner.shape is not None else None
            self.dtype = inner.dtype
            layout: Any = inner.layout
            if layout is not None and not isinstance(layout, TensorLayout):
                raise TypeError(
                    f"parameter '{self.name}' annotates a TensorView in its layout slot, which @pl.jit does not yet "
                    "support: write a layout such as pl.NZ"
                )
            self.layout = layout if layout is not TensorLayout.ND else None
        elif isinstance(inner, type) and issubclass(inner, Tile):
            self.kind = "tile"
        elif isinstance(inner, DataType):
            self.kind, self.dtype = "scalar", inner
        elif isinstance(inner, Scalar):
            self.kind, self.dtype = "scalar", inner.dtype
        elif isinstance(inner, type) and inner in _PYTHON_SCALARS:
            self.kind, self.dtype = "scalar", _PYTHON_SCALARS[inner]
        elif inner is not MISSING:
            self.kind = "other"

    @property
    def declared(self) -> str:
        """``[16, 64] FP32``, as error messages show an annotation."""
        shape = "?" if self.shape is None else ", ".join(getattr(e, "name", None) or str(e) for e in self.shape)
        return f"[{shape}] {self.dtype.name if self.dtype is not None else '?'}"


def parameters_of(func: Callable[..., Any], namespace: Mapping[str, Any]) -> list[Parameter]:
    """The parameters of a function but for ``self``; annotations given as text are evaluated in ``namespace``."""
    result = []
    for name, parameter in inspect.signature(func).parameters.items():
        if name == "self":
            continue
        annotation = parameter.annotation
        if isinstance(annotation, str):
            annotation = _evaluated(annotation, func, namespace)
        elif isinstance(annotation, (Out, InOut)) and isinstance(annotation.inner, str):
            annotation = type(annotation)(_evaluated(annotation.inner, func, namespace))
        result.append(Parameter(name, annotation, parameter.default))
    return result


def _evaluated(text: str, func: Callable[..., Any], namespace: Mapping[str, Any]) -> Any:
    """The object that an annotation text denotes; an unknown name in it is like no annotation."""
    try:
        value = eval(text, func.__globals__, dict(namespace))
    except NameError:
        return MISSING
    return _evaluated(value, func, namespace) if isinstance(value, str) else value


def check_signature(func: Any) -> None:
    """Refuse what a specialised function can't be: ``TypeError`` at decoration."""
    name = getattr(func, "__name__", repr(func))
    if not inspect.isfunction(func):
        raise TypeError(f"@pl.jit expects a function, got {type(func).__name__}")
    if name == "<lambda>":
        raise TypeError("@pl.jit can't specialise a lambda: write a def")
    for test, what in (
        (inspect.iscoroutinefunction, "an async function"),
        (inspect.isasyncgenfunction, "an async generator"),
        (inspect.isgeneratorfunction, "a generator function"),
    ):
        if test(func):
            raise TypeError(f"@pl.jit function '{name}' is {what}: write a plain def")
    kinds = {
        inspect.Parameter.VAR_POSITIONAL: "*{0}",
        inspect.Parameter.VAR_KEYWORD: "**{0}",
        inspect.Parameter.KEYWORD_ONLY: "the keyword-only parameter '{0}'",
        inspect.Parameter.POSITIONAL_ONLY: "the positional-only parameter '{0}'",
    }
    for parameter in inspect.signature(func).parameters.values():
        if parameter.kind in kinds:
            raise TypeError(
                f"@pl.jit function '{name}' has {kinds[parameter.kind].format(parameter.name)}, which is not "
                "supported: name each parameter"
            )


__all__ = ["MISSING", "Parameter", "check_signature", "parameters_of"]
