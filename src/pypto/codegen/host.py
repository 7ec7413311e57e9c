"""What the host needs to emit and run the orchestrations of a program."""

from __future__ import annotations

from ..ir.enums import FunctionType
from ..ir.program import Program
from .host_entry import with_entry, with_placement
from .host_kernels import with_tasks
from .host_results import Results, with_results
from .kernel_config import orchestration_source
from .orchestration import generate_orchestration


def for_host(program: Program) -> Program:
    """The program with kernels that the task runtime of the host can launch.

    Which core a kernel runs on, and whether it has to be taken apart into one for each kind of core, is a question of
    the device. The host has one kind of core, so a kernel that no pass has placed runs as a vector kernel.
    """
    return program.with_functions(
        [
            f.replace(func_type=FunctionType.AIV, level=None, role=None) if f.func_type is FunctionType.InCore else f
            for f in program.functions.values()
        ]
    )


def for_run(program: Program, name: str) -> tuple[Program, Results]:
    """The program in the form that the host runs when ``name`` is called; how it hands over what ``name`` returns.

    Nothing of this stands in the text for a device.
    """
    placed = for_host(program)
    tasks = with_tasks(with_entry(placed, name), name)
    return with_results(tasks if tasks is placed else with_placement(tasks), name)


def orchestration_text(program: Program, name: str) -> str:
    """The C++ of one Orchestration function of a program behind all passes.

    Raises what :func:`.orchestration.generate_orchestration` does.
    """
    placed = for_host(program)
    function = placed.get_function(name)
    if function is None:
        raise ValueError(f"there is no function '{name}' in the program")
    return orchestration_source(name, generate_orchestration(placed, function))


__all__ = ["for_host", "for_run", "orchestration_text"]
