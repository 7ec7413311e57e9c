"""The kernels of a program as C++: which have a native form, the source of all of them, and how they are called."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Sequence
from typing import Any

import msgspec

from ..codegen.cpu.arrays import Unsupported
from ..codegen.cpu.kernel import HELPERS, KernelSource, kernel_source
from ..ir.program import Function
from .build import build, load
from .host_executor import Kernel
from .native_library import SOURCES

# Vector code for this CPU; integers wrap, as the language says; no errno and no traps to keep in order. Floats are
# those of IEEE: sums are reordered only where a reduction says so.
KERNEL_FLAGS = (
    "-O3", "-fopenmp-simd", "-fwrapv", "-fno-math-errno", "-fno-trapping-math", "-ffp-contract=fast",
    "-Wno-unused-variable", "-Wno-unused-but-set-variable", "-Wno-unused-function",
)  # fmt: skip


class NativeKernels(msgspec.Struct, frozen=True):
    """``sources``: for each kernel what was generated, or None; ``notes``: why not; ``text``: one source of all."""

    sources: list[KernelSource | None]
    notes: list[str]
    text: str

    @property
    def has_products(self) -> bool:
        """Whether a kernel multiplies matrices."""
        return "pto::matmul(" in self.text

    def bind(self, library: ctypes.CDLL, interpreted: Sequence[Kernel]) -> list[Kernel]:
        """The kernels to call: native ones, those of the interpreter in the place of others."""
        if self.text:
            library.pto_bind_products(ctypes.c_void_p(products() if self.has_products else None))
        found = []
        for source, kernel in zip(self.sources, interpreted, strict=True):
            if source is None:
                found.append(kernel)
                continue
            slot = ctypes.addressof(ctypes.c_void_p.in_dll(library, f"{source.name}_instead"))
            function = getattr(library, source.name)
            found.append(Kernel(kernel.name, function, kernel.span, kernel.parts, source.places, kernel.function, slot))
        return found


@functools.cache
def _products_library() -> ctypes.CDLL:
    source = SOURCES / "kernel" / "products.cpp"
    return load(build([source], include_dirs=[SOURCES, SOURCES / "kernel"], flags=KERNEL_FLAGS, name="products"))


def products() -> Any:
    """The address of the table of matrix products. The first call on a machine compiles them."""
    function = _products_library().pto_products
    function.restype = ctypes.c_void_p
    return function()


def native_kernels(kernels: Sequence[Function]) -> NativeKernels:
    """Generate what has a native form."""
    sources: list[KernelSource | None] = []
    notes = []
    for number, kernel in enumerate(kernels):
        try:
            sources.append(kernel_source(kernel, f"kernel_{number}"))
        except Unsupported as reason:
            sources.append(None)
            notes.append(f"kernel '{kernel.name}' runs in the interpreter: {reason} has no native form")
    return NativeKernels(sources, notes, _text([source for source in sources if source is not None], _BIND))


_BIND = "PTO_EXPORT void pto_bind_products(const pto::Products* table) { pto::products = table; }"


def _text(made: Sequence[KernelSource], *more: str) -> str:
    """One source of these kernels; empty without any."""
    if not made:
        return ""
    helpers = sorted({helper for source in made for helper in source.helpers})
    lines = ["#include <algorithm>", '#include "kernel/support.h"', ""]
    lines += [line for helper in helpers for line in HELPERS[helper]]
    lines += [source.text for source in made]
    return "\n".join([*lines, *more]) + "\n"


def build_kernels(
    kernels: NativeKernels, *, per_source: int = 40, flags: Sequence[str] = (), more: Sequence[tuple[str, str]] = ()
) -> ctypes.CDLL:
    """A library of many kernels, in sources of ``per_source`` of them: reading the headers takes longer than compiling
    a kernel. ``flags`` follow the usual ones; ``more``: other sources.
    """
    made = [source for source in kernels.sources if source is not None]
    parts = [made[at : at + per_source] for at in range(0, len(made), per_source)] or [[]]
    sources = [(f"kernels_{i}.cpp", _text(part, *([_BIND] if i == 0 else []))) for i, part in enumerate(parts)]
    flags = (*KERNEL_FLAGS, *flags)
    library = load(build([*sources, *more], include_dirs=[SOURCES], flags=flags, name="kernels"))
    if made:
        library.pto_bind_products(ctypes.c_void_p(products() if kernels.has_products else None))
    return library


__all__ = ["KERNEL_FLAGS", "NativeKernels", "build_kernels", "native_kernels", "products"]
