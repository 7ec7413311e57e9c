"""The kernels of a program as C++: which have a native form, the source of all of them, and how they are called."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Sequence
from typing import Any

import msgspec

from .._lazy import np
from ..codegen.cpu.arrays import Unsupported
from ..codegen.cpu.hosted import HostedCall
from ..codegen.cpu.kernel import HELPERS, KernelSource, kernel_source
from ..ir.dtype import DataType
from ..ir.expr import MakeTuple
from ..ir.program import Function
from ..ir.type import ScalarType, ShapedType, TupleType
from ..ops.definition import Alias
from ..ops.numpy_types import numpy_dtype
from ..ops.registry import REGISTRY
from ..ops.values import ArrayValue, Buffer, EvalContext
from .build import build, load
from .host_executor import Kernel
from .native_library import SOURCES, GlobalContext, LocalContext
from .native_products import Products, taken_products
from .scalar_args import from_bits, to_bits

# Vector code for this CPU; integers wrap, as the language says; no errno and no traps to keep in order. Floats are
# those of IEEE: sums are reordered only where a reduction says so.
KERNEL_FLAGS = (
    "-O3", "-fopenmp-simd", "-fwrapv", "-fno-math-errno", "-fno-trapping-math", "-ffp-contract=fast",
    "-Wno-unused-variable", "-Wno-unused-but-set-variable", "-Wno-unused-function",
)  # fmt: skip


class NativeKernels(msgspec.Struct, frozen=True):
    """``sources``: for each kernel what was generated, or None; ``notes``: why not."""

    sources: list[KernelSource | None]
    notes: list[str]

    @property
    def made(self) -> list[KernelSource]:
        """What was generated."""
        return [source for source in self.sources if source is not None]

    @property
    def products(self) -> frozenset[DataType]:
        """Element types of the matrices that they multiply."""
        return frozenset().union(*(source.products for source in self.made))

    @property
    def text(self) -> str:
        """One source of all; empty without any."""
        return _text(self.made, *taken_products(self.products)) if self.made else ""

    def sources_of(self, per_source: int) -> list[tuple[str, str]]:
        """Sources of so many kernels each, for libraries of many: reading the headers takes longer than compiling a
        kernel."""
        parts = [self.made[at : at + per_source] for at in range(0, len(self.made), per_source)]
        taken = taken_products(self.products)
        return [(f"kernels_{i}.cpp", _text(part, *(taken if i == 0 else []))) for i, part in enumerate(parts)]

    def bind(self, library: ctypes.CDLL, interpreted: Sequence[Kernel]) -> list[Kernel]:
        """The kernels to call: native ones, those of the interpreter in the place of others."""
        found = []
        for source, kernel in zip(self.sources, interpreted, strict=True):
            if source is None:
                found.append(kernel)
                continue
            slot = ctypes.addressof(ctypes.c_void_p.in_dll(library, f"{source.name}_instead"))
            function = getattr(library, source.name)
            found.append(Kernel(kernel.name, function, kernel.span, kernel.parts, source.places, kernel.function, slot))
            bind_hosted(library, source)
        return found


# --- operations that NumPy runs ---------------------------------------------------------------------------------------

_HOST_OP = ctypes.CFUNCTYPE(
    ctypes.c_int64,
    ctypes.c_int64,
    ctypes.POINTER(ctypes.c_int64),
    ctypes.POINTER(ctypes.c_int64),
    ctypes.c_void_p,
    ctypes.c_int64,
)


def bind_hosted(library: ctypes.CDLL, source: KernelSource) -> None:
    """Let a kernel call NumPy for its operations without a native form."""
    if not source.hosted:
        return
    run = _HOST_OP(_Hosted(source.hosted))
    alive = library.__dict__.setdefault("_pypto_hosted", [])
    alive.append(run)
    slot = ctypes.c_void_p.in_dll(library, f"{source.name}_host")
    slot.value = ctypes.cast(run, ctypes.c_void_p).value


class _Hosted:
    """Runs operations of a kernel by number; see :mod:`..codegen.cpu.hosted` for what the words mean."""

    def __init__(self, calls: Sequence[HostedCall]) -> None:
        self._calls = calls

    def __call__(self, number: int, words: Any, args: Any, text: int, size: int) -> int:
        try:
            self._run(self._calls[number].call, words, args)
            return 0
        except BaseException as error:  # it can't cross C++, an interrupt neither: the kernel throws it on
            name = self._calls[number].call.op.name
            message = str(error) or type(error).__name__
            data = (message if message.startswith(name) else f"{name}: {message}").encode()[: size - 1]
            ctypes.memmove(text, data + b"\0", len(data) + 1)
            return 1

    def _run(self, call: Any, words: Any, args: Any) -> None:
        reader = _Words(words)
        operands = [reader.argument(e) for e in call.args]
        definition = REGISTRY[call.op.name]
        assert definition.reference is not None
        ctx = EvalContext()
        local, around = LocalContext.from_address(args[48]), GlobalContext.from_address(args[49])
        ctx.type, ctx.span = call.type, call.span
        ctx.block_idx, ctx.block_num, ctx.lane = local.block_idx, local.block_num, around.sub_block_id
        result = definition.reference(ctx, *operands, **call.kwargs)
        if definition.alias is not Alias.IS:
            reader.store(call.type, result)


class _Words:
    """The words of one call, read in their order."""

    def __init__(self, words: Any) -> None:
        self._words = words
        self._at = 0

    def _next(self, count: int) -> list[int]:
        found = [int(w) for w in self._words[self._at : self._at + count]]
        self._at += count
        return found

    def argument(self, e: Any) -> Any:
        """The value of an operand."""
        if type(e) is MakeTuple:
            return [self.argument(item) for item in e.elements]
        if isinstance(e.type, ShapedType):
            return self._array(e.type)
        (word,) = self._next(1)
        dtype = e.type.dtype
        if dtype.is_float_:  # all travel as float
            return from_bits(word, DataType.FP32)
        return bool(word) if dtype is DataType.BOOL else from_bits(word, dtype)

    def _array(self, kind: Any) -> ArrayValue:
        rank = len(kind.shape)
        (address,) = self._next(1)
        shape, strides, valid = self._next(rank), self._next(rank), self._next(rank)
        dtype = np.dtype(numpy_dtype(kind.dtype))
        if 0 in shape:
            return ArrayValue(np.empty(shape, dtype), None, valid)
        reach = 1 + sum((n - 1) * s for n, s in zip(shape, strides, strict=True))
        memory = (ctypes.c_char * (reach * dtype.itemsize)).from_address(address)
        base = np.frombuffer(memory, dtype)
        data = np.lib.stride_tricks.as_strided(base, shape, [s * dtype.itemsize for s in strides])
        return ArrayValue(data, Buffer(base, external=True), valid)

    def store(self, kind: Any, result: Any) -> None:
        """Write a result into the memory that stands behind the operands."""
        if isinstance(kind, TupleType):
            for part, value in zip(kind.types, result, strict=True):
                self.store(part, value)
        elif isinstance(kind, ShapedType):
            target = self._array(kind)
            window = tuple(slice(0, min(a, b)) for a, b in zip(target.valid, result.valid, strict=True))
            target.data[window] = result.data[window]
        elif isinstance(kind, ScalarType):
            dtype = DataType.FP32 if kind.dtype.is_float_ else kind.dtype
            bits = to_bits(result, dtype)
            self._words[self._at] = bits - (1 << 64) if bits >> 63 else bits


# --- sources and libraries --------------------------------------------------------------------------------------------


def native_kernels(kernels: Sequence[Function | None], prefix: str = "kernel") -> NativeKernels:
    """Generate what has a native form. None: a kernel of the host's own, which has its place among the others.
    ``prefix``: of the names of the C++ functions, which a library has once."""
    sources: list[KernelSource | None] = []
    notes = []
    for number, kernel in enumerate(kernels):
        if kernel is None:
            sources.append(None)
            continue
        try:
            source = kernel_source(kernel, f"{prefix}_{number}")
            sources.append(source)
            notes += [
                f"operation {note} of kernel '{kernel.name}' runs in NumPy, which is slow when the kernel is short"
                for note in source.notes
            ]
        except Unsupported as reason:
            sources.append(None)
            notes.append(f"kernel '{kernel.name}' runs in the interpreter: {reason} has no native form")
    return NativeKernels(sources, notes)


_STANDARD = re.compile(r"\bstd::(\w+)")
# Where the names stand that expressions may use: only the headers that are needed, since <cmath> alone takes longer to
# read than most kernels do to compile.
_HEADERS = {
    "min": ("algorithm",),
    "max": ("algorithm",),
    "floor": ("cmath",),
    "pow": ("cmath",),
    "abs": ("cmath", "cstdlib"),
}


def _text(made: Sequence[KernelSource], *more: str) -> str:
    """One source of these kernels."""
    helpers = sorted({helper for source in made for helper in source.helpers})
    lines = [line for helper in helpers for line in HELPERS[helper]]
    text = "\n".join([*lines, *(source.text for source in made), *more]) + "\n"
    headers = {header for name in set(_STANDARD.findall(text)) for header in _HEADERS.get(name, ())}
    return "".join([*(f"#include <{h}>\n" for h in sorted(headers)), '#include "kernel/support.h"\n\n', text])


def build_kernels(
    kernels: NativeKernels, *, per_source: int = 40, flags: Sequence[str] = (), more: Sequence[tuple[str, str]] = ()
) -> ctypes.CDLL:
    """A library of many kernels. ``flags`` follow the usual ones; ``more``: other sources."""
    flags = (*KERNEL_FLAGS, *flags)
    products = Products(kernels.products, KERNEL_FLAGS)
    sources = [*kernels.sources_of(per_source), *more]
    library = load(build(sources, include_dirs=[SOURCES], flags=flags, name="kernels"))
    for source in kernels.made:
        bind_hosted(library, source)
    products.bind(library)
    return library


__all__ = ["KERNEL_FLAGS", "NativeKernels", "build_kernels", "native_kernels"]
