"""Printed forms of ops whose calls don't print as ``name(operands, kwargs)``.

An op definition refers to a form by name: ``printed="full"``. A form gets the printer and the call and gives the texts
of all arguments, without the ``attrs=`` part; a form that prints another op name gives a pair of that name and the
texts. What a form prints must parse back to the same call.
"""

from __future__ import annotations

from ..diag.errors import internal_check_span
from ..ir.enums import MemorySpace
from ..ir.expr import Call, ConstFloat, ConstInt, MakeTuple
from ..ir.printer.calls import CallForm, CallPrinter, prints_attrs

Renamed = tuple[str, list[str]]


def full(printer: CallPrinter, call: Call) -> list[str]:
    """``(shape, dtype=pl.X, value=v)``: the dtype says what the value is, so a constant prints bare."""
    shape, value = call.args
    return [printer.expr(shape), *printer.kwargs(call), f"value={printer.bare_literal(value)}"]


def reinterpret_view(printer: CallPrinter, call: Call) -> list[str]:
    """``(x, dtype=pl.X[, shape=...])``."""
    internal_check_span("dtype" in call.kwargs, f"{call.op.name} without a dtype", call.span)
    data, *shape = printer.args(call)
    return [data, *printer.kwargs(call), *(f"shape={text}" for text in shape)]


def alloc(printer: CallPrinter, call: Call) -> list[str]:
    """``(pl.Mem.X, size)``."""
    texts = printer.args(call)
    space = call.args[0]
    if isinstance(space, ConstInt):
        texts[0] = f"{printer.pl}Mem.{MemorySpace(space.value).name}"
    return texts + printer.kwargs(call)


def syncall(printer: CallPrinter, call: Call) -> list[str]:
    """A soft barrier: ``(mode="soft", core_type="mix", gm_workspace=w, used_cores=n)``; 0 stands for all cores."""
    if call.kwargs.get("mode") != "soft":
        return printer.args(call) + printer.kwargs(call)
    workspace, *cores = printer.args(call)
    texts = ['mode="soft"', f'core_type="{call.kwargs.get("core_type", "mix")}"']
    texts += [f"gm_workspace={workspace}", f"used_cores={cores[0] if cores else 0}"]
    return texts + printer.kwargs(call, ("mode", "core_type"))


def gather_row(printer: CallPrinter, call: Call) -> list[str]:
    """The sixth operand is ``valid_shape=``."""
    texts = printer.args(call)
    return [*texts[:5], *(f"valid_shape={text}" for text in texts[5:]), *printer.kwargs(call)]


def mgather(printer: CallPrinter, call: Call) -> list[str]:
    """Behind table and index come ``scratch=`` (by element only) and ``valid_shape=``."""
    texts = printer.args(call)
    optional = texts[2:]
    by_element = call.kwargs.get("coalesce", 0) == 1
    has_scratch = bool(optional) and by_element and not isinstance(call.args[2], MakeTuple)
    keys = ("scratch", "valid_shape") if has_scratch else ("valid_shape",)
    return [*texts[:2], *(f"{k}={t}" for k, t in zip(keys, optional, strict=False)), *printer.kwargs(call)]


@prints_attrs("manual_dep_edges", "dummy_task")
def task_dummy(printer: CallPrinter, call: Call) -> list[str]:
    """``(deps=[...])``, from the attribute that holds the edges."""
    return [f"deps=[{printer.exprs(call.attrs.get('manual_dep_edges', ()))}]"]


def alloc_window_buffer(printer: CallPrinter, call: Call) -> list[str]:
    """Without ``name``, which the reader takes from the assigned variable."""
    return printer.args(call) + printer.kwargs(call, ("name",))


def hide_split_in_region(printer: CallPrinter, call: Call) -> list[str]:
    """Without ``split`` where the split-AIV region around the call says it."""
    regions = printer.split_regions
    said = bool(regions) and call.kwargs.get("split") == regions[-1]
    return printer.args(call) + printer.kwargs(call, ("split",) if said else ())


def adds(printer: CallPrinter, call: Call) -> list[str] | Renamed:
    """A constant right operand prints as the op with a scalar operand: that is what the reader makes of it."""
    texts = printer.args(call) + printer.kwargs(call)
    if isinstance(call.args[-1], (ConstInt, ConstFloat)):
        return f"{call.op.name}s", texts
    return texts


def physical_tail_padding(printer: CallPrinter, call: Call) -> list[str] | Renamed:
    """A load that may read the physical padding has a private name, which says so."""
    flag = "allow_physical_tail_padding"
    if not call.kwargs.get(flag):
        return printer.args(call) + printer.kwargs(call)
    head, _, last = call.op.name.rpartition(".")
    return f"{head}._{last}_with_physical_tail_padding", printer.args(call) + printer.kwargs(call, (flag,))


PRINTED_FORMS: dict[str, CallForm] = {
    "full": full,
    "reinterpret_view": reinterpret_view,
    "alloc": alloc,
    "syncall": syncall,
    "gather_row": gather_row,
    "mgather": mgather,
    "task_dummy": task_dummy,
    "alloc_window_buffer": alloc_window_buffer,
    "hide_split_in_region": hide_split_in_region,
    "adds": adds,
    "physical_tail_padding": physical_tail_padding,
}
