"""What parsed programs mean: run by the interpreter in several task orders and compared with plain Python or NumPy."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from pypto import ir
from pypto.ops.values import ArrayValue, Buffer
from pypto.runtime.interpreter import Interpreter

from .dsl import HEAD, parse, round_trip

SCHEDULES = (("submit", 0), ("random", 1), ("random", 2), ("random", 7), ("random", 9))


def run(
    node: ir.Program, arrays: list[Any], scalars: Sequence[Any] = (), schedule: str = "submit", seed: int = 0
) -> list[Any]:
    """Run ``main`` on copies of the arrays; the copies as they are afterwards, then the returned scalars."""
    copies = [a.copy() for a in arrays]
    values = [ArrayValue(a, Buffer(a, external=True)) for a in copies]
    results = Interpreter(node, schedule, seed).run(node["main"], [*values, *scalars])
    return [*copies, *[r for r in results if not isinstance(r, ArrayValue)]]


# --- scalars: the text is the meaning ---------------------------------------------------------------------------------

SCALAR_BODIES = {
    "natural carry": """
        a = 0
        for i in range_(n):
            a = a + i * i
        return a
        """,
    "swap": """
        a = n
        b = n + 1
        for i in range_(5):
            a, b = b, a + b
        return a * 1000 + b
        """,
    "nested": """
        a = 0
        for i in range_(n):
            b = i
            for j in range_(i, n, 2):
                b = b + j
                a = a + b
        return a
        """,
    "branches": """
        a = 0
        for i in range_(n):
            if i % 3 == 0:
                a = a + 1
                t = 10
            elif i % 3 == 1:
                t = 20
            else:
                t = a
            a = a + t
        return a
        """,
    "break": """
        a = 0
        for i in range_(100):
            if a > 40:
                break
            a = a + i
        return a * 100 + i
        """,
    "continue": """
        a = 0
        for i in range_(n):
            if i % 2 == 1:
                continue
            a = a + i
        return a
        """,
    "break of the inner loop": """
        a = 0
        for i in range_(n):
            for j in range_(n):
                if j > i:
                    break
                a = a + j
            a = a + 100
        return a
        """,
    "while": """
        a = n
        s = 0
        while a > 0:
            s = s * 2 + a % 2
            a = a // 2
        return s
        """,
    "while with break and continue": """
        a = 0
        s = 0
        while a < 50:
            a = a + 1
            if a % 2 == 0:
                continue
            if a > 20:
                break
            s = s + a
        return s * 100 + a
        """,
    "backwards": """
        a = 0
        for i in range_(n, 0, -2):
            a = a * 3 + i
        return a
        """,
    "augmented": """
        a = n
        a += 3
        a *= a
        a -= 1
        a //= 2
        a %= 1000
        a <<= 2
        a |= 1
        a ^= 6
        a &= 1022
        a >>= 1
        a **= 2
        return a
        """,
    "no iterations": """
        a = 7
        i = 3
        for j in range_(0):
            a = 9
        return a
        """,
    "condition of several parts": """
        a = 0
        for i in range_(n):
            if (i > 1 and i < 5) or not (i != 7):
                a = a * 10 + i
        return a
        """,
    "minimum and maximum": """
        a = 0
        for i in range_(n):
            a = a + min(i, 4) * max(3, i) - abs(i - 5)
        return a
        """,
    "floor division and modulus of negative numbers": """
        a = 0
        for i in range_(-n, n):
            a = a * 3 + i // 4 - i % 4 + (-i) // 3
        return a
        """,
}


def python_meaning(body: str, n: int) -> int:
    names: dict[str, Any] = {"range_": range}
    exec(f"def f(n):\n{textwrap.indent(textwrap.dedent(body), '    ')}", names)
    return int(names["f"](n))


@pytest.mark.parametrize("name", SCALAR_BODIES)
def test_scalar_programs_mean_what_python_means(name: str) -> None:
    body = textwrap.indent(textwrap.dedent(SCALAR_BODIES[name]), " " * 8).replace("range_", "pl.range")
    node = parse(
        f"{HEAD}@pl.program\nclass P:\n    @pl.function(type=pl.FunctionType.Orchestration)\n"
        f"    def main(self, n: pl.Scalar[pl.INDEX]):\n{body}\n"
    )
    round_trip(node)
    for n in (1, 4, 11):
        assert run(node, [], [n]) == [python_meaning(SCALAR_BODIES[name], n)]


CARRIED = {
    "carry": (
        """
        for i, (a, b) in pl.range(n, init_values=(0, 1)):
            c, d = pl.yield_(b, a + b)
        return c * 10000 + d
        """,
        lambda n: _fibonacci(n),
    ),
    "carry under the same names": (
        """
        a = 0
        b = 1
        for i, (a, b) in pl.range(n, init_values=(a, b)):
            a, b = pl.yield_(b, a + b)
        return a * 10000 + b
        """,
        lambda n: _fibonacci(n),
    ),
    "branch results": (
        """
        s = 0
        for i in pl.range(n):
            if i % 2 == 0:
                a, b = pl.yield_(i, s)
            else:
                a, b = pl.yield_(s, i)
            s = a * 2 + b
        return s
        """,
        lambda n: _branches(n),
    ),
    "carried while": (
        """
        for (k, s) in pl.while_(init_values=(n, 0)):
            pl.cond(k > 0)
            k2, s2 = pl.yield_(k - 1, s + k * k)
        return s2 * 10 + k2
        """,
        lambda n: sum(k * k for k in range(n + 1)) * 10,
    ),
    "nested carries": (
        """
        for i, (a,) in pl.range(n, init_values=(1,)):
            for j, (b,) in pl.range(i, init_values=(a,)):
                c = pl.yield_(b + j)
            d = pl.yield_(c + 1)
        return d
        """,
        lambda n: _nested(n),
    ),
}


def _fibonacci(n: int) -> int:
    a, b = 0, 1
    for _ in range(n):
        a, b = b, a + b
    return a * 10000 + b


def _branches(n: int) -> int:
    s = 0
    for i in range(n):
        a, b = (i, s) if i % 2 == 0 else (s, i)
        s = a * 2 + b
    return s


def _nested(n: int) -> int:
    a = 1
    for i in range(n):
        a = a + sum(range(i)) + 1
    return a


@pytest.mark.parametrize("name", CARRIED)
def test_carried_values(name: str) -> None:
    body, meaning = CARRIED[name]
    node = parse(
        f"{HEAD}@pl.program\nclass P:\n    @pl.function(type=pl.FunctionType.Orchestration)\n"
        f"    def main(self, n: pl.Scalar[pl.INDEX]):\n{textwrap.indent(textwrap.dedent(body), ' ' * 8)}\n"
    )
    round_trip(node)
    for n in (0, 1, 5, 9):
        assert run(node, [], [n]) == [meaning(n)]


# --- tensors ----------------------------------------------------------------------------------------------------------

KERNELS = """
    @pl.function(type=pl.FunctionType.InCore)
    def axpy(self, a: pl.Tensor[[32, 64], pl.FP32], s: pl.Scalar[pl.FP32], b: pl.Tensor[[32, 64], pl.FP32],
             o: pl.Out[pl.Tensor[[32, 64], pl.FP32]]) -> pl.Tensor[[32, 64], pl.FP32]:
        t = pl.load(a, [0, 0], [32, 64])
        u = pl.load(b, [0, 0], [32, 64])
        return pl.store(t * s + u, [0, 0], o)
    @pl.function(type=pl.FunctionType.InCore)
    def bump(self, a: pl.InOut[pl.Tensor[[32, 64], pl.FP32]], s: pl.Scalar[pl.FP32]) -> pl.Tensor[[32, 64], pl.FP32]:
        return pl.store(pl.load(a, [0, 0], [32, 64]) + s, [0, 0], a)
"""


def tensor_program(body: str) -> ir.Program:
    node = parse(
        f"{HEAD}@pl.program\nclass P:{KERNELS}"
        "    @pl.function(type=pl.FunctionType.Orchestration)\n"
        "    def main(self, x: pl.Tensor[[32, 64], pl.FP32], w: pl.Tensor[[32, 64], pl.FP32],\n"
        "             y: pl.InOut[pl.Tensor[[32, 64], pl.FP32]], n: pl.Scalar[pl.INDEX]):\n"
        f"{textwrap.indent(textwrap.dedent(body), ' ' * 8)}\n"
    )
    round_trip(node)
    return node


Meaning = Callable[[Any, Any, Any, int], None]


def _write_rows(x: Any, w: Any, y: Any, n: int) -> None:
    for i in range(4):
        y[i * 8 : i * 8 + 8, :] = x[i * 8 : i * 8 + 8, :] * 2.0


def _scalar_index(x: Any, w: Any, y: Any, n: int) -> None:
    y[n] = x[n + 1] + w[0]
    y[:, 3] = x[:, 5]


def _augmented(x: Any, w: Any, y: Any, n: int) -> None:
    y += 0
    y[4:8, 0:16] += x[4:8, 16:32]
    y[n] *= 2.0
    y[:] -= w


def _chain(x: Any, w: Any, y: Any, n: int) -> None:
    y[0:4, 0:8] = x[8:16][2:6, 0:8]


def _symbolic(x: Any, w: Any, y: Any, n: int) -> None:
    for i in range(32 // n):
        y[i * n : i * n + n, :] = x[i * n : i * n + n, :] + w[0:n, :]


def _operators(x: Any, w: Any, y: Any, n: int) -> None:
    y[:] = (1.0 - x) * w / 2.0 - (-x) + 3 * w


def _branch(x: Any, w: Any, y: Any, n: int) -> None:
    for i in range(4):
        y[i * 8 : i * 8 + 8, :] = x[0:8, :] if i % 2 == 0 else w[0:8, :]


SCOPED: dict[str, tuple[str, Meaning]] = {
    "rows": ("for i in pl.range(4):\n    y[i * 8 : i * 8 + 8, :] = x[i * 8 : i * 8 + 8, :] * 2.0", _write_rows),
    "scalar indices": ("y[n] = x[n + 1] + w[0]\ny[:, 3] = x[:, 5]", _scalar_index),
    "augmented": ("y[4:8, 0:16] += x[4:8, 16:32]\ny[n] *= 2.0\ny[:] -= w", _augmented),
    "chained": ("y[0:4, 0:8] = x[8:16][2:6, 0:8]", _chain),
    "operators": ("y[:] = (1.0 - x) * w / 2.0 - (-x) + 3 * w", _operators),
    "branch": (
        "for i in pl.range(4):\n    if i % 2 == 0:\n        t = x[0:8, :]\n    else:\n        t = w[0:8, :]\n    y[i * 8 : i * 8 + 8, :] = t",
        _branch,
    ),
    "branch with results": (
        "for i in pl.range(4):\n    if i % 2 == 0:\n        t = pl.yield_(x[0:8, :])\n    else:\n        t = pl.yield_(w[0:8, :])\n    y[i * 8 : i * 8 + 8, :] = t",
        _branch,
    ),
}


def data() -> list[Any]:
    rng = np.random.default_rng(3)
    return [rng.standard_normal((32, 64)).astype(np.float32) for _ in range(3)]


def check(node: ir.Program, meaning: Meaning) -> None:
    arrays = data()
    want = [a.copy() for a in arrays]
    meaning(*want, 4)
    for schedule, seed in SCHEDULES:
        got = run(node, arrays, [4], schedule, seed)
        np.testing.assert_allclose(got[2], want[2], rtol=1e-5, atol=1e-6)
        np.testing.assert_array_equal(got[0], arrays[0])


@pytest.mark.parametrize("name", SCOPED)
def test_subscripts_in_a_scope(name: str) -> None:
    body, meaning = SCOPED[name]
    check(tensor_program(f"with pl.at(level=pl.Level.CORE_GROUP):\n{textwrap.indent(body, '    ')}\nreturn"), meaning)


def _spmd(x: Any, w: Any, y: Any, n: int) -> None:
    y[:] = x + w


def test_blocks_cover_the_rows() -> None:
    for head in ("for i in pl.spmd(8):\n", "with pl.spmd(8):\n    i = pl.tile.get_block_idx()\n"):
        check(
            tensor_program(
                head + "    y[i * 4 : i * 4 + 4, :] = x[i * 4 : i * 4 + 4, :] + w[i * 4 : i * 4 + 4, :]\nreturn"
            ),
            _spmd,
        )


def _launches(x: Any, w: Any, y: Any, n: int) -> None:
    t = x * 0.5 + w
    for _ in range(3):
        t = t + 1.0
    y[:] = t * 2.0 + x


LAUNCHES = {
    "calls": """
        t = pl.create_tensor([32, 64], dtype=pl.FP32)
        t = self.axpy(x, 0.5, w, t)
        for i in pl.range(3):
            t = self.bump(t, 1.0)
        y = self.axpy(t, 2.0, x, y)
        return
        """,
    "submits": """
        t, a = pl.submit(self.axpy, x, 0.5, w)
        for i in pl.range(3):
            t, a = pl.submit(self.bump, t, 1.0)
        y, b = pl.submit(self.axpy, t, 2.0, x, y)
        return
        """,
    "submits with dependencies in a manual scope": """
        t = pl.create_tensor([32, 64], dtype=pl.FP32)
        with pl.manual_scope():
            t, a = pl.submit(self.axpy, x, 0.5, w, t)
            for i in pl.range(3):
                t, a = pl.submit(self.bump, t, 1.0, deps=[a])
            y, b = pl.submit(self.axpy, t, 2.0, x, y, deps=[a])
        return
        """,
    "a chain of ids that begins with none": """
        t = pl.create_tensor([32, 64], dtype=pl.FP32)
        with pl.manual_scope():
            last = None
            t, last = pl.submit(self.axpy, x, 0.5, w, t, deps=[last])
            for i in pl.range(3):
                g = pl.system.task_dummy(deps=[last])
                t, last = pl.submit(self.bump, t, 1.0, deps=[g])
            y, b = pl.submit(self.axpy, t, 2.0, x, y, deps=[last])
        return
        """,
    "ids in an array": """
        t = pl.create_tensor([32, 64], dtype=pl.FP32)
        ids = pl.array.create(4, pl.TASK_ID)
        with pl.manual_scope():
            t, a = pl.submit(self.axpy, x, 0.5, w, t)
            ids[0] = a
            for i in pl.range(3):
                t, a = pl.submit(self.bump, t, 1.0, deps=[ids[i]])
                ids[i + 1] = a
            y, b = pl.submit(self.axpy, t, 2.0, x, y, deps=[ids[k] for k in range(4)])
        return
        """,
    "scopes with ids": """
        t = pl.create_tensor([32, 64], dtype=pl.FP32)
        with pl.at(level=pl.Level.CORE_GROUP) as a:
            t[:] = x * 0.5 + w
        for i in pl.range(3):
            with pl.at(level=pl.Level.CORE_GROUP, deps=[a]) as a:
                t[:] += 1.0
        with pl.at(level=pl.Level.CORE_GROUP, deps=[a]):
            y[:] = t * 2.0 + x
        return
        """,
    "ids of scopes along a loop in a manual scope": """
        t = pl.create_tensor([32, 64], dtype=pl.FP32)
        with pl.manual_scope():
            with pl.at(level=pl.Level.CORE_GROUP) as last:
                t[:] = x * 0.5 + w
            for i in pl.range(3):
                with pl.at(level=pl.Level.CORE_GROUP, deps=[last]) as last:
                    t[:] += 1.0
            with pl.at(level=pl.Level.CORE_GROUP, deps=[last]):
                y[:] = t * 2.0 + x
        return
        """,
    "a carried tensor": """
        t0 = pl.create_tensor([32, 64], dtype=pl.FP32)
        t1 = self.axpy(x, 0.5, w, t0)
        for i, (c,) in pl.range(3, init_values=(t1,)):
            d = self.bump(c, 1.0)
            e = pl.yield_(d)
        y = self.axpy(e, 2.0, x, y)
        return
        """,
    "a branch that launches": """
        t = pl.create_tensor([32, 64], dtype=pl.FP32)
        t = self.axpy(x, 0.5, w, t)
        for i in pl.range(6):
            if i % 2 == 0:
                t = self.bump(t, 1.0)
        y = self.axpy(t, 2.0, x, y)
        return
        """,
    "break and continue around launches": """
        t = pl.create_tensor([32, 64], dtype=pl.FP32)
        t = self.axpy(x, 0.5, w, t)
        for i in pl.range(100):
            if i == 1:
                continue
            if i > 3:
                break
            t = self.bump(t, 1.0)
        y = self.axpy(t, 2.0, x, y)
        return
        """,
}


@pytest.mark.parametrize("name", LAUNCHES)
def test_launches(name: str) -> None:
    check(tensor_program(LAUNCHES[name]), _launches)


def test_an_in_out_swap_of_tensors() -> None:
    def meaning(x: Any, w: Any, y: Any, n: int) -> None:
        a, b = x, w
        for _ in range(3):
            a, b = b, a
        y[:] = a * 2.0 + b

    check(
        tensor_program("a = x\nb = w\nfor i in pl.range(3):\n    a, b = b, a\ny = self.axpy(a, 2.0, b, y)\nreturn"),
        meaning,
    )


def test_arrays_of_scalars() -> None:
    node = parse(
        f"{HEAD}@pl.program\nclass P:\n    @pl.function(type=pl.FunctionType.Orchestration)\n"
        "    def main(self, n: pl.Scalar[pl.INDEX]):\n"
        "        a = pl.array.create(6, pl.INT32)\n        a[0] = 1\n        a[1] = 1\n"
        "        for i in pl.range(2, 6):\n            a[i] = a[i - 1] + a[i - 2]\n        a[5] += pl.const(100, pl.INT32)\n"
        "        return a[5]\n"
    )
    round_trip(node)
    assert run(node, [], [3]) == [108]


def test_tile_subscripts() -> None:
    node = parse(
        f"{HEAD}@pl.program\nclass P:\n    @pl.function(type=pl.FunctionType.InCore)\n"
        "    def k(self, x: pl.Tensor[[32, 64], pl.FP32], y: pl.InOut[pl.Tensor[[32, 64], pl.FP32]]):\n"
        "        t = pl.load(x, [0, 0], [32, 64])\n"
        "        u = t[8:16, 16:48] * 2.0\n"
        "        t[0:8, 0:32] = u\n"
        "        t[3:4, :] = t[30:100, :][0:1, :]\n"
        "        pl.store(t, [0, 0], y)\n"
        "    @pl.function(type=pl.FunctionType.Orchestration)\n"
        "    def main(self, x: pl.Tensor[[32, 64], pl.FP32], y: pl.InOut[pl.Tensor[[32, 64], pl.FP32]]):\n"
        "        self.k(x, y)\n        return\n"
    )
    round_trip(node)
    x, _, y = data()
    got = run(node, [x, y])
    want = x.copy()
    want[0:8, 0:32] = x[8:16, 16:48] * 2.0
    want[3] = want[30]
    np.testing.assert_array_equal(got[1], want)


NAMES_OF_CARRIES = {
    "a result with the name of an outer value, in a loop": (
        "acc = 0\nfor k in pl.range(n):\n    for i, (a,) in pl.range(4, init_values=(acc,)):\n        acc = pl.yield_(a + 1)\nreturn acc",
        lambda n: 4 * n,
    ),
    "a result with the name of an outer value, in a branch": (
        "r = 7\nif n > 1:\n    for i, (a,) in pl.range(4, init_values=(r,)):\n        r = pl.yield_(a + 1)\nreturn r",
        lambda n: 11 if n > 1 else 7,
    ),
    "a name that one branch assigns and the other yields": (
        "if n > 1:\n    r = n\nelse:\n    for i, (a,) in pl.range(4, init_values=(n,)):\n        r = pl.yield_(a + 1)\nreturn r",
        lambda n: n if n > 1 else n + 4,
    ),
    "a carry that a branch assigns to": (
        "for i, (a,) in pl.range(6, init_values=(n,)):\n    if i > 2:\n        a = a + 1\n    b = pl.yield_(a)\nreturn b",
        lambda n: n + 3,
    ),
    "a carried loop without a yield": (
        "for i, (a,) in pl.range(3, init_values=(n,)):\n    if i > 0:\n        a = a + 1\nreturn a_out",
        lambda n: n + 2,
    ),
}


@pytest.mark.parametrize("name", NAMES_OF_CARRIES)
def test_names_of_carries_and_results(name: str) -> None:
    body, meaning = NAMES_OF_CARRIES[name]
    node = parse(
        f"{HEAD}@pl.program\nclass P:\n    @pl.function(type=pl.FunctionType.Orchestration)\n"
        f"    def main(self, n: pl.Scalar[pl.INDEX]):\n{textwrap.indent(body, ' ' * 8)}\n"
    )
    round_trip(node)
    for n in (0, 1, 5):
        assert run(node, [], [n]) == [meaning(n)]
