"""Calls of ops and functions, submits, kwargs and attributes.

An op with a spelling of its own says so in its definition; the op registry, which lies above this package, is asked
through :func:`set_call_printer_source`.
"""

from __future__ import annotations

import keyword
from collections.abc import Callable, Collection, Mapping
from typing import Any, Protocol

from ...diag.errors import InternalError, internal_check_span
from ..dtype import DataType
from ..enums import ArgDirection, AtomicType, MemorySpace, PadValue, PipeType, TensorLayout, TileLayout
from ..expr import Call, ConstFloat, ConstInt, Expr, GlobalVar, Op, Submit, Var
from ..node import FrozenList
from ..utils import CAST_MODE_NAMES
from .expressions import ExpressionPrinter
from .literals import DIRECTION_NAMES, float_text, quoted

_CAST_MODES = {number: name for name, number in CAST_MODE_NAMES.items()}


class CallForm(Protocol):
    """A printed form: ``form(printer, call)`` gives the texts of all arguments, without the ``attrs=`` part.

    A form that prints another op name gives a pair of that name and the texts. A form that spells attributes itself
    lists their keys in ``printed_attrs`` (see :func:`prints_attrs`).
    """

    def __call__(self, printer: CallPrinter, call: Call, /) -> list[str] | tuple[str, list[str]]: ...


def _no_forms(_op_name: str) -> CallForm | None:
    return None


_form_source: Callable[[str], CallForm | None] = _no_forms


def set_call_printer_source(source: Callable[[str], CallForm | None]) -> None:
    """Called once by the op registry: ``source(op_name)`` is the op's own printed form, or None."""
    global _form_source
    _form_source = source


def prints_attrs(*keys: str) -> Callable[[CallForm], CallForm]:
    """Marks a form that gives these attributes a spelling of its own, so that they don't print again."""

    def mark(form: CallForm) -> CallForm:
        form.printed_attrs = frozenset(keys)  # type: ignore[attr-defined]
        return form

    return mark


# Attributes that only a form may print: they are no writable attributes of a call.
_NEED_A_FORM = ("manual_dep_edges", "dummy_task")
_NOTHING: frozenset[str] = frozenset()


class CallPrinter(ExpressionPrinter):
    """Adds calls; ``in_program`` decides whether functions are reached through ``self``."""

    in_program = False

    def __init__(self, prefix: str, names: Mapping[Expr, str]) -> None:
        super().__init__(prefix, names)
        self.split_regions: list[int] = []  # split modes of the split-AIV regions around the current statement
        self._ops: dict[str, tuple[str, CallForm | None]] = {}

    # --- calls --------------------------------------------------------------------------------------------------------

    def args(self, call: Call | Submit) -> list[str]:
        """Texts of the positional arguments."""
        names, expr = self.names, self.expr
        return [names.get(arg) or expr(arg) for arg in call.args]

    def _call(self, call: Call) -> str:
        op = call.op
        if type(op) is GlobalVar and self.in_program:
            return self._function_call(call)
        found = self._ops.get(op.name)
        if found is None:
            form = None if type(op) is GlobalVar else _form_source(op.name)
            found = self._ops[op.name] = (self.op_name(op.name), form)
        name, form = found
        if form is None:
            names, expr = self.names, self.expr
            texts = [names.get(arg) or expr(arg) for arg in call.args]
            if call.kwargs:
                texts += self.kwargs(call)
            printed = _NOTHING
        else:
            result = form(self, call)
            if isinstance(result, tuple):
                name, texts = self.op_name(result[0]), result[1]
            else:
                texts = result
            printed = getattr(form, "printed_attrs", _NOTHING)
        if call.attrs:
            self._refuse_deps(call, printed)
            texts += self.attrs({k: v for k, v in call.attrs.items() if k not in printed})
        return f"{name}({', '.join(texts)})"

    def op_name(self, name: str) -> str:
        """The printed name of an op; a keyword of Python gets an underscore."""
        _, dot, last = name.rpartition(".")
        if keyword.iskeyword(last):
            name += "_"
        return self.pl + name if dot and not name.startswith("pld.") else name

    def _function_call(self, call: Call) -> str:
        texts = self.args(call) + self.kwargs(call)
        attrs = call.attrs
        if attrs:
            self._refuse_deps(call)
            if "device" in attrs:
                device = attrs["device"]
                texts.append(f"device={self.expr(device) if isinstance(device, Expr) else device}")
            rest: dict[str, Any] = {}
            dumped = self._dumped(call)
            if dumped:
                rest["dump_vars"] = dumped
            texts += self.attrs({**rest, **_directions_first(attrs, ("device", "dump_vars"))})
        return f"self.{call.op.name}({', '.join(texts)})"

    def _submit(self, call: Submit) -> str:
        attrs = call.attrs
        self._refuse_deps(call)
        texts = [self._callee(call.op), *self.args(call), *self.kwargs(call)]
        if call.deps:
            texts.append(f"deps=[{self.exprs(call.deps)}]")
        dumped = self._dumped(call)
        if dumped:
            texts.append(f"dumps=[{self.exprs(dumped)}]")
        if call.core_num is not None:
            texts.append(f"core_num={self.expr(call.core_num)}")
        texts += self._launch(call.sync_start, call.allow_early_resolve, call.predicate)
        texts += self.attrs(_directions_first(attrs, ("dump_vars",)))
        return f"{self.pl}{'submit' if call.core_num is None else 'spmd_submit'}({', '.join(texts)})"

    def _refuse_deps(self, call: Call | Submit, printed: Collection[str] = ()) -> None:
        for key in _NEED_A_FORM:
            internal_check_span(
                key not in call.attrs or key in printed,
                f"attribute '{key}' has no printed form on a call of '{call.op.name}': "
                "dependencies belong to Submit.deps or to a barrier task",
                call.span,
            )

    def _callee(self, op: Op) -> str:
        return f"self.{op.name}" if self.in_program else op.name

    def _dumped(self, call: Call | Submit) -> FrozenList[Expr]:
        marked = set(call.attrs.get("dump_vars", ()))
        return FrozenList(dict.fromkeys(arg for arg in call.args if arg in marked))

    def _launch(self, sync_start: bool, allow_early_resolve: bool, predicate: Expr | None) -> list[str]:
        texts = ["sync_start=True"] if sync_start else []
        if allow_early_resolve:
            texts.append("allow_early_resolve=True")
        if predicate is not None:
            texts.append(f"predicate=({self.expr(predicate)})")
        return texts

    # --- kwargs -------------------------------------------------------------------------------------------------------

    def kwargs(self, call: Call | Submit, hidden: Collection[str] = ()) -> list[str]:
        """Texts of the keyword arguments, in stored order."""
        return [self.kwarg(key, value) for key, value in call.kwargs.items() if key not in hidden]

    def kwarg(self, key: str, value: Any) -> str:
        """``key=value``; ``TypeError`` for a kind of value that no kwarg may have."""
        kind = type(value)
        if kind is int:
            spelled = _INT_KWARGS.get(key)
            return f"{key}={value if spelled is None else spelled(self, value)}"
        if kind is str:
            return f"{key}={quoted(value, _SINGLE)}"
        if kind not in _KWARG_KINDS:
            raise TypeError(f"kwarg '{key}' has no printed form for a value of type {kind.__name__}")
        return f"{key}={self._plain(value)}"

    def _plain(self, value: Any) -> str:
        kind = type(value)
        if kind is bool or kind is int:
            return str(value)
        if kind is float:
            return float_text(value)
        if kind is DataType:
            return self._dtypes[value]
        return self._enums[value]

    def _pipe(self, value: int) -> str:
        return f"{self.pl}PipeType.{PipeType(value).name}"

    def _atomic(self, value: int) -> str:
        return f"{self.pl}AtomicType.{AtomicType(value).name}"

    def _cast_mode(self, value: int) -> str:
        if value not in _CAST_MODES:
            raise ValueError(f"cast mode must be one of 0..{len(_CAST_MODES) - 1}, got {value}")
        return f"'{_CAST_MODES[value]}'"

    # --- attributes ---------------------------------------------------------------------------------------------------

    def attrs(self, attrs: Mapping[str, Any]) -> list[str]:
        """``attrs={...}`` as a list of one text, or of none when there is nothing to print."""
        return [f"attrs={{{self.items(attrs)}}}"] if attrs else []

    def items(self, attrs: Mapping[str, Any]) -> str:
        """``"key": value`` pairs with commas between them."""
        return ", ".join([f"{quoted(key)}: {self.attr(key, value)}" for key, value in attrs.items()])

    def attr(self, key: str, value: Any) -> str:
        """An attribute's value; ``InternalError`` for a kind that has no printed form."""
        kind = type(value)
        if kind is str:
            return quoted(value)
        if kind in _KWARG_KINDS:
            return self._plain(value)
        if kind is ArgDirection:
            return self._direction(value)
        if kind is ConstInt or kind is ConstFloat:
            # Bare it would come back as a number; only a core count is always an expression.
            return self.expr(value) if key == "core_num" else self.typed(value)
        if isinstance(value, Expr):
            return self.expr(value)
        if isinstance(value, list):
            return f"[{', '.join([self._attr_item(key, item) for item in value if item is not None])}]"
        raise InternalError(f"attribute '{key}' has no printed form for a value of type {kind.__name__}")

    def _attr_item(self, key: str, item: Any) -> str:
        if isinstance(item, Var):
            return self.expr(item)
        if type(item) is int:
            return str(item)
        if type(item) is ArgDirection:
            return self._direction(item)
        raise InternalError(f"attribute '{key}' has no printed form for a list of {type(item).__name__}")

    def _direction(self, value: ArgDirection) -> str:
        return f"{self.pl}adir.{DIRECTION_NAMES[value]}"


def _directions_first(attrs: Mapping[str, Any], hidden: Collection[str]) -> dict[str, Any]:
    first = {"arg_directions": attrs["arg_directions"]} if "arg_directions" in attrs else {}
    return {**first, **{key: value for key, value in attrs.items() if key not in hidden}}


_SINGLE = "'"
_KWARG_KINDS = frozenset((bool, int, float, DataType, MemorySpace, TensorLayout, TileLayout, PadValue))
# Ints under these keys are numbers of a name, whatever the op.
_INT_KWARGS: dict[str, Callable[[Any, int], str]] = {
    "set_pipe": CallPrinter._pipe,
    "wait_pipe": CallPrinter._pipe,
    "pipe": CallPrinter._pipe,
    "atomic": CallPrinter._atomic,
    "mode": CallPrinter._cast_mode,
}
ExpressionPrinter._EXPRESSIONS.update({Call: CallPrinter._call, Submit: CallPrinter._submit})
