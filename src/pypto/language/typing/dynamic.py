"""``pl.dynamic``: a dimension known at run time."""

from __future__ import annotations

import keyword
from typing import ClassVar

from pypto.ir.dtype import DataType
from pypto.ir.expr import Expr, Var
from pypto.ir.location import caller_span
from pypto.ir.span import Span
from pypto.ir.type import INDEX_TYPE

from .scalar import Scalar


class DynVar(Scalar):
    """A symbolic dimension. Equal dimensions are the same object: it has one IR variable, made when first needed."""

    __slots__ = ("_span", "_var", "name")
    is_dynvar: ClassVar[bool] = True  # how the front end, which does not import this package, knows it
    name: str
    _var: Var | None
    _span: Span

    def __init__(self, name: str) -> None:
        if not isinstance(name, str) or not name.isidentifier() or keyword.iskeyword(name):
            raise ValueError(f"pl.dynamic() needs a name that is a valid Python identifier, got {name!r}")
        self._hold(None)
        self.dtype = DataType.INDEX
        self.name = name
        self._var = None
        self._span = caller_span()

    def unwrap(self) -> Expr:
        """The IR variable of this dimension, an INDEX scalar."""
        if self._var is None:
            self._var = self._expr = Var(self.name, INDEX_TYPE, self._span)
        return self._var

    def _has_value(self) -> bool:
        return True

    def __repr__(self) -> str:
        return f"pl.dynamic({self.name!r})"


def dynamic(name: str) -> DynVar:
    """Declare a dimension whose extent is known at run time only: ``M = pl.dynamic("M")``."""
    return DynVar(name)
