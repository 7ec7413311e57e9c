"""The matrix product of generated kernels, on one core, against what the core could do and against a BLAS.

    python benchmarks/matmul.py [--quick] [--types TEXT] [--sizes 32,64] [--flags=-march=haswell]

Figures are GFLOP/s (2mnk operations, also of integers): the best of several rounds, in which all that is compared takes
turns, since others may use the machine; times are the thread's, for the same reason. `peak`: multiply-adds on registers
alone, in the same rounds. The BLAS is OpenBLAS on one thread, where it is installed: `pip install scipy-openblas64`.
`T`: the operand is transposed, by strides. Products of few rows are about memory: the last column is the rate at which
b was read, beside that of a plain sum over as many bytes.
"""

from __future__ import annotations

import argparse
import ctypes
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

from pypto.runtime.build import build, load
from pypto.runtime.native_library import SOURCES

HERE = Path(__file__).resolve().parent / "native"
GIGA = 1e9
SIZES = (16, 32, 48, 64, 96, 128, 256, 512, 1024, 2048)
THIN = (
    (1, 256, 256),
    (1, 4096, 4096),
    (4, 4096, 4096),
    (8, 256, 256),
    (8, 4096, 4096),
    (16, 4096, 4096),
    (4096, 1, 4096),
)
TYPES: dict[str, Any] = {
    "f32": np.float32,
    "bf16": ml_dtypes.bfloat16,
    "fp16": np.float16,
    "int8": np.int8,
}
f64, i64, pointer = ctypes.c_double, ctypes.c_int64, ctypes.c_void_p


class Product(ctypes.Structure):
    """`Product` in matmul.cpp."""

    _fields_ = (
        *((name, pointer) for name in "cab"),
        *((name, i64) for name in ("m", "n", "k", "a_row", "a_col", "b_row", "b_col")),
    )


def library(flags: Sequence[str]) -> ctypes.CDLL:
    found = load(
        build(
            [HERE / "matmul.cpp"],
            include_dirs=[HERE, SOURCES],
            flags=["-O3", "-Wextra", "-fopenmp-simd", *flags],
            name="matmul",
        )
    )
    for name in TYPES:
        getattr(found, f"bench_{name}").argtypes = (ctypes.POINTER(Product), i64)
        getattr(found, f"bench_{name}").restype = f64
    for name in ("f32", "bf16", "int8"):
        getattr(found, f"bench_peak_{name}").argtypes = (i64,)
        getattr(found, f"bench_peak_{name}").restype = f64
    found.bench_blas.argtypes = (ctypes.POINTER(Product), i64, pointer)
    found.bench_blas.restype = f64
    found.bench_read.argtypes = (ctypes.POINTER(Product), i64, i64)
    found.bench_read.restype = f64
    return found


def openblas() -> ctypes.c_void_p | None:
    """Its cblas_sgemm, limited to one thread."""
    try:
        import scipy_openblas64
    except ImportError:
        return None
    found = next(Path(scipy_openblas64.get_lib_dir()).glob("libscipy_openblas64_*"))
    blas = ctypes.CDLL(str(found))
    blas.scipy_openblas_set_num_threads64_(1)
    blas.scipy_openblas_get_config64_.restype = ctypes.c_char_p
    print("BLAS:", blas.scipy_openblas_get_config64_().decode())
    return ctypes.cast(blas.scipy_cblas_sgemm64_, pointer)


def operand(
    rng: np.random.Generator, rows: int, columns: int, dtype: Any, transposed: bool
) -> tuple[np.ndarray, int, int]:
    """An array and its strides; aligned as those of the runtime are."""
    item = np.dtype(dtype).itemsize
    memory = np.empty(rows * columns * item + 64, np.uint8)
    begin = -memory.ctypes.data % 64
    array = memory[begin : begin + rows * columns * item].view(dtype)
    array[...] = rng.integers(-4, 5, rows * columns).astype(dtype)
    return array, *((1, rows) if transposed else (columns, 1))


def best(rounds: int, measured: dict[str, Callable[[], float]]) -> dict[str, float]:
    """The highest figure of each, of `rounds` in which they take turns."""
    found = dict.fromkeys(measured, 0.0)
    for _ in range(rounds):
        for name, run in measured.items():
            found[name] = max(found[name], run())
    return found


class Bench:
    def __init__(self, flags: Sequence[str], rounds: int, seconds: float) -> None:
        self.library = library(flags)
        self.sgemm = openblas()
        self.rounds = rounds
        self.seconds = seconds
        self.rng = np.random.default_rng(0)

    def run(self, name: str, m: int, n: int, k: int, ta: bool = False, tb: bool = False) -> dict[str, float]:
        a, a_row, a_col = operand(self.rng, m, k, TYPES[name], ta)
        b, b_row, b_col = operand(self.rng, k, n, TYPES[name], tb)
        c, _, _ = operand(self.rng, m, n, np.int32 if name == "int8" else np.float32, False)
        product = Product(*(x.ctypes.data for x in (c, a, b)), m, n, k, a_row, a_col, b_row, b_col)
        work = 2 * m * n * k
        ours = getattr(self.library, f"bench_{name}")
        once = max(ours(product, 1) and ours(product, 3) / 3, 1e-7)
        repeats = max(1, int(self.seconds / once))
        peak = getattr(self.library, f"bench_peak_{'f32' if name == 'fp16' else name}")
        measured = {
            "ours": lambda: work * repeats / ours(product, repeats) / GIGA,
            "peak": lambda: peak(200_000) / GIGA,
        }
        if name == "f32" and self.sgemm is not None:
            measured["blas"] = lambda: work * repeats / self.library.bench_blas(product, repeats, self.sgemm) / GIGA
        if m <= 16:
            measured["read"] = lambda: self.library.bench_read(product, b.nbytes, repeats) / GIGA
        found = best(self.rounds, measured)
        if m <= 16:
            found["reads"] = found["ours"] * b.nbytes / work
        return found

    def show(self, name: str, m: int, n: int, k: int, ta: bool = False, tb: bool = False) -> None:
        found = self.run(name, m, n, k, ta, tb)
        text = f"{name:5}{m:5} x{n:5} x{k:5} {'T' if ta else ' '}{'T' if tb else ' '}"
        text += f"{found['ours']:9.1f}{found['peak']:8.1f}{found['ours'] / found['peak']:7.0%}"
        if "blas" in found:
            text += f"{found['blas']:9.1f}{found['ours'] / found['blas']:7.2f}x"
        elif "read" in found:
            text += " " * 17
        if "read" in found:
            text += f"{found['reads']:9.1f} of {found['read']:5.1f} GB/s"
        print(text, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer and shorter rounds")
    parser.add_argument("--types", default=",".join(TYPES), help="of %(default)s")
    parser.add_argument("--sizes", help="of square products; no others are run then")
    parser.add_argument("--flags", default="", help="more flags of the compiler")
    given = parser.parse_args()
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    bench = Bench(given.flags.split(), *((5, 0.01) if given.quick else (15, 0.03)))
    print(f"{'':5}{'m':>5}  {'n':>5}  {'k':>5}   {'ours':>9}{'peak':>8}{'':7}{'BLAS':>9}{'ours':>8}{'b':>9}")
    for name in given.types.split(","):
        for size in map(int, given.sizes.split(",")) if given.sizes else SIZES:
            bench.show(name, size, size, size)
        if not given.sizes:
            for size in (64, 256, 1024):
                for ta, tb in ((False, True), (True, False), (True, True)):
                    bench.show(name, size, size, size, ta, tb)
            for shape in THIN:
                bench.show(name, *shape)
                bench.show(name, *shape, tb=True)


if __name__ == "__main__":
    main()
