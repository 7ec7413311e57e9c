"""``pl.adir``: what a call does with each argument, as markers in ``attrs={"arg_directions": [...]}``."""

from __future__ import annotations

from pypto.ir.enums import ArgDirection

input = ArgDirection.Input
output = ArgDirection.Output
output_existing = ArgDirection.OutputExisting
inout = ArgDirection.InOut
no_dep = ArgDirection.NoDep
scalar = ArgDirection.Scalar

NAME_TO_DIRECTION: dict[str, ArgDirection] = {
    "input": input,
    "output": output,
    "output_existing": output_existing,
    "inout": inout,
    "no_dep": no_dep,
    "scalar": scalar,
}
DIRECTION_TO_NAME: dict[ArgDirection, str] = {direction: name for name, direction in NAME_TO_DIRECTION.items()}

__all__ = [
    "DIRECTION_TO_NAME",
    "NAME_TO_DIRECTION",
    "ArgDirection",
    "inout",
    "input",
    "no_dep",
    "output",
    "output_existing",
    "scalar",
]
