"""The matrix products that native kernels call: a library for each element type, compiled when a program needs it."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Iterable, Sequence

from ..codegen.cpu.arrays import storage, working
from ..ir.dtype import DataType
from ..ops.product import accumulator_dtype
from .background import begin
from .build import build, find_compiler, load
from .host_executor import address_of
from .native_library import SOURCES

# Its loops are vectors already. This takes GCC a quarter less time than -O2, and the products are as fast.
_GCC_LEVEL = ("-O1", "-fexpensive-optimizations", "-fschedule-insns2")


def taken_products(dtypes: Iterable[DataType]) -> list[str]:
    """Lines for the source of kernels that multiply matrices of these element types."""
    return [f"PTO_TAKES_PRODUCT({d}, {_sum(d)}, {storage(d)})" for d in sorted(dtypes, key=str)]


class Products:
    """Products for a library of kernels, compiled on threads of their own while it is."""

    def __init__(self, dtypes: Iterable[DataType], flags: Sequence[str]) -> None:
        self._dtypes = sorted(dtypes, key=str)
        self._libraries = [begin(_library, dtype, tuple(flags)) for dtype in self._dtypes]

    def bind(self, library: ctypes.CDLL) -> list[tuple[int | None, int | None]]:
        """Give them to the library. Returns what another process that loads it has to do: addresses of functions that
        take a product, each with the one that gives it."""
        done = []
        for dtype, made in zip(self._dtypes, self._libraries, strict=True):
            give = made.result().pto_product
            give.restype = ctypes.c_void_p
            take = getattr(library, f"pto_take_product_{dtype}")
            take(ctypes.c_void_p(give()))
            done.append((address_of(take), address_of(give)))
        return done


@functools.cache
def _library(dtype: DataType, flags: tuple[str, ...]) -> ctypes.CDLL:
    source = SOURCES / "kernel" / "products.cpp"
    defines = (f"-DPTO_ELEMENT={storage(dtype)}", f"-DPTO_SUM={_sum(dtype)}")
    flags = (*flags, *(_GCC_LEVEL if find_compiler().kind == "gcc" else ("-O2",)), *defines)
    return load(build([source], include_dirs=[SOURCES], flags=flags, name="product"))


def _sum(dtype: DataType) -> str:
    return working(accumulator_dtype(dtype, dtype))


__all__ = ["Products", "taken_products"]
