"""IterArgCarryClassified: each carry of a ``for`` in an orchestration is stamped with what it is, and truly so.

The class is found again and compared: a pass that moves a statement behind the classification is caught here.
"""

from __future__ import annotations

from ..analysis.callees import callees_of
from ..analysis.carries import Carries
from ..ir.carries import array_size_key, is_classified, iter_arg_array_size, iter_arg_is_rebind, rebind_key
from ..ir.enums import FunctionType
from ..ir.program import Function, Program
from ..ir.stmt import ForStmt
from .inventory import inventory
from .properties import IRProperty
from .registry import Findings, verifies


@verifies(IRProperty.IterArgCarryClassified, reads_returns=True)
def check(function: Function, findings: Findings, program: Program) -> None:
    """Code 0: no stamp; 1: an array of ids for a carry that needs no variable; 2: another class than stamped."""
    if function.func_type is not FunctionType.Orchestration:
        return
    loops = [loop for loop, _ in inventory(function).of(ForStmt) if loop.iter_args]
    if not loops:
        return
    carries = Carries(function, callees_of(program))
    for loop in loops:
        for i, (rebind, size) in enumerate(carries.slots(loop)):
            which = f"carry '{loop.iter_args[i].name_hint}' of the loop over '{loop.loop_var.name_hint}' "
            which += f"in function '{function.name}'"
            if not is_classified(loop, i):
                findings.error(0, f'{which} has no attrs["{rebind_key(i)}"]: run ClassifyIterArgCarry', loop.span)
                continue
            stamped, stamped_size = iter_arg_is_rebind(loop, i), iter_arg_array_size(loop, i)
            if stamped_size and not stamped:
                text = f'{which} has attrs["{array_size_key(i)}"], but needs no variable'
                findings.error(1, text, loop.span)
            if stamped is not rebind:
                found = _CLASS[rebind]
                findings.error(2, f"{which} is stamped as {_CLASS[stamped]}, but is {found}", loop.span)
            elif size and stamped_size != size:
                text = f"{which} is stamped for {stamped_size} task ids, but has to hold {size}"
                findings.error(2, text, loop.span)


_CLASS = {False: "trivial", True: "rebind"}
