"""AivSplitValid: regions whose work is split over the two vector lanes are well formed.

What can't be decided yet, such as a crossing between memories that are not known, is not reported.
"""

from __future__ import annotations

from typing import Any

from ..ir.enums import CoreType, MemorySpace, SplitMode, is_incore_type
from ..ir.expr import Var
from ..ir.extents import const_extent
from ..ir.program import Function
from ..ir.stmt import AssignStmt, SplitAivScopeStmt
from ..ir.type import TileType
from ..ops.definition import Category
from ..ops.registry import REGISTRY
from .call_sites import CallSite, call_sites
from .inventory import Region, inventory
from .properties import IRProperty
from .registry import Findings, verifies

_SHARD, _GATHER = "aiv_shard", "aic_gather"
_REDUCTIONS = {
    f"{side}_{name}": axis
    for axis, side in enumerate(("col", "row"))
    for name in ("sum", "max", "min", "prod", "argmax", "argmin")
}
_SPLIT_AXIS = {SplitMode.UP_DOWN: 0, SplitMode.LEFT_RIGHT: 1}
# Vector ops that compute nothing: they say where they are, make a buffer, or touch single elements.
_NO_COMPUTE = frozenset(("alloc", "get_subblock_idx", "read", "write"))


@verifies(IRProperty.AivSplitValid)
def check(function: Function, findings: Findings) -> None:
    """Codes: 1 cube compute in a region, 2 reduction over the split axis, 3 a crossing outside all regions, 4 between
    wrong memories, 5 vector compute outside all regions, 6 and 7 values that leave and enter a region without a
    crossing, 8 a region in a wrong place, 9 modes that disagree."""
    regions = inventory(function).of(SplitAivScopeStmt)
    if regions:
        _Check(function, findings, regions).run()


class _Check:
    def __init__(self, function: Function, findings: Findings, regions: list[Any]) -> None:
        self.function = function
        self.findings = findings
        self.regions = regions
        self.is_kernel = is_incore_type(function.func_type)
        # The kernel scopes that hold regions (None: the kernel function itself).
        self.kernels = {region.incore: None for _, region in regions}
        self.crossing: dict[Any, None] = {}  # regions with explicit crossings: their other values are lanes' own
        self.made: dict[Var, CallSite] = {}

    def run(self) -> None:
        for stmt, region in self.regions:
            self._place(stmt, region)
        sites = [site for found in call_sites(self.function).ops.values() for site in found]
        for site in sites:
            if site.code is None and type(site.stmt) is AssignStmt:
                self.made[site.stmt.var] = site
            if _base(site) in (_SHARD, _GATHER) and site.region.split is not None:
                self.crossing[site.region.split] = None
        for site in sites:
            if site.region.split is not None:
                self._inside(site, site.region.split)
            elif self.is_kernel or (site.region.incore is not None and site.region.incore in self.kernels):
                self._outside(site)

    def _error(self, code: int, text: str, span: Any) -> None:
        self.findings.error(code, f"{text} in function '{self.function.name}'", span)

    def _place(self, stmt: SplitAivScopeStmt, region: Region) -> None:
        if region.split is not None:
            self._error(8, "a vector-split region inside another", stmt.span)
        elif region.incore is None and not self.is_kernel:
            self._error(8, "a vector-split region outside a CORE_GROUP scope", stmt.span)
        mode = self.function.split
        if mode is not None and stmt.split is not SplitMode.NONE and stmt.split is not mode:
            text = f"a vector-split region of mode {stmt.split.name} disagrees with mode {mode.name} of its function"
            self._error(9, f"{text},", stmt.span)

    def _inside(self, site: CallSite, split: SplitAivScopeStmt) -> None:
        call, base = site.call, _base(site)
        if _core(call.op.name) is CoreType.CUBE:
            self._error(1, f"cube compute '{call.op.name}' in a vector-split region", call.span)
            return
        axis = _REDUCTIONS.get(base)
        if axis is not None and axis == _SPLIT_AXIS.get(split.split) and _extent(call.args[0], axis) != 1:
            text = f"'{call.op.name}' reduces over the axis that a {split.split.name} region splits"
            self._error(2, f"{text},", call.span)
        if base in (_SHARD, _GATHER):
            self._memories(call, base)
        elif split in self.crossing:
            for arg in call.args:
                origin = self.made.get(arg) if isinstance(arg, Var) else None
                if origin is not None and origin.region.split is not split and _is_cube(origin):
                    text = f"'{call.op.name}' in a vector-split region uses the cube value '{arg.name_hint}'"
                    self._error(7, f"{text} without pl.aiv_shard", call.span)

    def _memories(self, call: Any, base: str) -> None:
        source, result = (MemorySpace.Acc, MemorySpace.Vec) if base == _SHARD else (MemorySpace.Vec, MemorySpace.Mat)
        for kind, wanted, what in ((call.args[0].type, source, "takes"), (call.type, result, "gives")):
            space = kind.memory_space if type(kind) is TileType else None
            if space is not None and space is not wanted:
                text = f"'{call.op.name}' {what} a tile in {space.name} instead of {wanted.name}"
                self._error(4, text, call.span)

    def _outside(self, site: CallSite) -> None:
        call, base = site.call, _base(site)
        name = call.op.name
        if base in (_SHARD, _GATHER):
            self._error(3, f"'{name}' outside all vector-split regions", call.span)
        elif _core(name) is CoreType.VECTOR and base not in _NO_COMPUTE and "core_placement" not in call.attrs:
            self._error(5, f"vector compute '{name}' outside all vector-split regions", call.span)
        elif _core(name) is CoreType.CUBE:
            for arg in call.args:
                origin = self.made.get(arg) if isinstance(arg, Var) else None
                if origin is not None and origin.region.split is not None and _base(origin) != _GATHER:
                    text = f"cube compute '{name}' uses '{arg.name_hint}' of a vector-split region"
                    self._error(6, f"{text} without pl.aic_gather", call.span)


def _base(site: CallSite) -> str:
    return str(site.call.op.name).rpartition(".")[2]


def _core(name: str) -> Any:
    """The core that computes a tile op, or the tile op that a tensor op becomes; None where it depends or is none."""
    level, _, base = name.rpartition(".")
    definition = REGISTRY.get(f"tile.{base}" if level == "tensor" else name)
    if definition is None or definition.category is not Category.TILE:
        return None
    return definition.core


def _is_cube(site: CallSite) -> bool:
    return _core(site.call.op.name) is CoreType.CUBE


def _extent(e: Any, axis: int) -> int | None:
    shape = getattr(e.type, "shape", ())
    return const_extent(shape[axis]) if len(shape) == 2 else None
