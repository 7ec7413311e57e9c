"""AtomicAddDtypeValid: an atomic add goes into elements that the target can add to atomically."""

from __future__ import annotations

from ..ir.dtype import DataType
from ..ir.enums import AtomicType
from ..ir.program import Function
from ..ir.type import ShapedType
from ..ops.registry import REGISTRY
from ..target.selection import selected_target
from .call_sites import call_sites
from .properties import IRProperty
from .registry import Findings, verifies


@verifies(IRProperty.AtomicAddDtypeValid, reads_target=True)
def check(function: Function, findings: Findings) -> None:
    """Code 0 for an atomic add of BF16 where the selected target has none. Nothing is selected: nothing to say."""
    ops = call_sites(function).ops
    for name in _written_operands():
        for site in ops.get(name, ()):
            call = site.call
            if call.kwargs.get("atomic") != AtomicType.Add:
                continue
            kind = call.args[_written_operands()[name]].type
            if isinstance(kind, ShapedType) and kind.dtype is DataType.BF16:
                target = selected_target()
                if target is not None and not target.bf16_atomic_add:
                    text = f"atomic-add into a bf16 global tensor is not supported on {target.type_name}"
                    hint = "accumulate in FP32"
                    findings.error(0, f"{text}: '{name}' in function '{function.name}'; {hint}", call.span)


_WRITTEN: dict[str, int] = {}


def _written_operands() -> dict[str, int]:
    """The ops that can add atomically, with the operand that they add to: what the op definitions say."""
    if not _WRITTEN:
        _WRITTEN.update({name: next(iter(d.effects)) for name, d in REGISTRY.items() if "atomic" in d.kwargs})
    return _WRITTEN


__all__ = ["check"]
