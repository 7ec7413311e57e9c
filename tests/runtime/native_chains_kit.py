"""Random kernels of many row-wise operations, with reductions, loops, branches, stores and changes in place.

Exact ones compute with small whole numbers, so that neither the order of a sum nor a fused multiplication shows. Others
use all functions; there the interpreter says how far small errors go: it runs again with every result changed a little.
"""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from tests.runtime.native_ops_kit import Arguments, Builder, D, constant, extents, interpret, numbers

from pypto.ir.dtype import DataType
from pypto.ir.enums import ForKind, MemorySpace, ParamDirection
from pypto.ir.expr import Expr, IterArg, Lt, MakeTuple, Var, index_const
from pypto.ir.program import Function
from pypto.ir.stmt import ForStmt, IfStmt, SeqStmts, YieldStmt
from pypto.ir.type import ScalarType, TensorType
from pypto.ops.numpy_types import numpy_dtype
from pypto.ops.registry import REGISTRY
from pypto.ops.values import ArrayValue

LIMIT = 4096  # of the numbers in exact chains
FLOATS = [D.FP32, D.FP32, D.FP32, D.FP16, D.BF16]
INTEGERS = [D.INT32, D.INT16, D.INT8]
COLUMNS = [1, 3, 16, 17, 64, 100]
ROWS = [1, 2, 8]


class Chain:
    """One kernel and its arguments. ``exact``: see above."""

    def __init__(self, name: str, seed: int, exact: bool) -> None:
        self.draw = random.Random(seed)
        self.exact = exact
        self.name = name
        draw = self.draw
        self.rows, self.columns = draw.choice(ROWS), draw.choice(COLUMNS)
        self.b = Builder(name)
        self.valid = draw.random() < 0.3
        self.bounds: dict[Var, float] = {}
        self.pool: list[Var] = []
        self.inout: list[Var] = []
        self.scalars: list[Var] = []
        for dtype in draw.sample(FLOATS, 2):
            self._load(dtype, "full")
        for shape in ("row", "col"):
            self._load(D.FP32, shape)
        if exact:
            self._load(draw.choice(INTEGERS), "full")
        self._in_place_tensor()
        self._run(draw.randrange(5, 30), depth=0)
        for var in draw.sample(self.pool, min(2, len(self.pool))):
            self.b.store(var)
        self.b.store(self.pool[-1])
        self.function: Function = self.b.function()

    # --- values -------------------------------------------------------------------------------------------------------

    def shape(self, kind: str) -> list[int]:
        return [1 if kind in ("col", "one") else self.rows, 1 if kind in ("row", "one") else self.columns]

    def kind(self, var: Var) -> str:
        rows, columns = (e.value for e in var.type.shape)  # type: ignore[attr-defined]
        for kind in ("full", "row", "col", "one"):
            if [rows, columns] == self.shape(kind):
                return kind
        raise AssertionError

    def _extents(self, kind: str) -> list[Expr] | None:
        if not self.valid:
            return None
        return [index_const(1) if n == 1 else self.b.extent(n) for n in self.shape(kind)]

    def _load(self, dtype: DataType, kind: str) -> Var:
        shape = self.shape(kind)
        source = self.b.param(TensorType(extents(shape).elements, dtype))
        return self._add(self.b.load(source, shape, self._extents(kind)), 8)

    def _in_place_tensor(self) -> None:
        shape = [self.rows + 2, self.columns]
        self.inout.append(self.b.param(TensorType(extents(shape).elements, D.FP32), ParamDirection.InOut))

    def _add(self, var: Var, bound: float) -> Var:
        self.bounds[var] = bound
        self.pool.append(var)
        return var

    def _pick(self, **wanted: Any) -> Var | None:
        """A value of this element type and kind, mostly one of the last."""
        found = [
            v
            for v in self.pool
            if ("dtype" not in wanted or v.type.dtype is wanted["dtype"])  # type: ignore[attr-defined]
            and ("kind" not in wanted or self.kind(v) == wanted["kind"])
            and ("floats" not in wanted or v.type.dtype.is_float_)  # type: ignore[attr-defined]
        ]
        if not found:
            return None
        return found[-1 - min(int(self.draw.expovariate(0.4)), len(found) - 1)]

    # --- operations ---------------------------------------------------------------------------------------------------

    def _run(self, count: int, depth: int) -> None:
        for _ in range(count):
            roll = self.draw.random()
            if depth < 2 and roll < 0.05:
                self._loop(depth)
            elif depth < 2 and roll < 0.1:
                self._branch(depth)
            else:
                self._operation()

    def _operation(self) -> None:
        actions: list[tuple[float, Callable[[], None]]] = [
            (5, self._binary), (3, self._scalar), (2, self._unary), (3, self._expand), (3, self._reduce),
            (1.5, self._cast), (1, self._store), (1, self._reload), (0.5, self._move), (0.5, self._change),
        ]  # fmt: skip
        if self.exact:
            actions.append((1, self._select))
        else:
            actions.append((4, self._function))
        action = self.draw.choices([a for _, a in actions], [w for w, _ in actions])[0]
        with contextlib.suppress(ValueError):  # a layout that the operation refuses
            action()

    def _tame(self, var: Var, most: float = LIMIT) -> Var:
        """The value, or one that is cut off, where it may be too large."""
        limit = min(most, 100 if var.type.dtype is D.INT8 else most)  # type: ignore[attr-defined]
        if self.bounds[var] <= limit:
            return var
        dtype = var.type.dtype  # type: ignore[attr-defined]
        limit = 32
        low = self.b.op("tile.maximums", var, constant(-limit, dtype))
        return self._add(self.b.op("tile.minimums", low, constant(limit, dtype)), limit)

    def _binary(self) -> None:
        a = self._pick()
        assert a is not None
        b = self._pick(dtype=a.type.dtype)  # type: ignore[attr-defined]
        assert b is not None
        name = self.draw.choice(["add", "sub", "mul", "maximum", "minimum"])
        if name == "mul":
            a, b = self._tame(a, 32), self._tame(b, 32)
        a, b = self._tame(a), self._tame(b)
        x, y = self.bounds[a], self.bounds[b]
        self._add(self.b.op(f"tile.{name}", a, b), x * y if name == "mul" else x + y)

    def _scalar(self) -> None:
        a = self._pick()
        assert a is not None
        a = self._tame(a)
        dtype = a.type.dtype  # type: ignore[attr-defined]
        name = self.draw.choice(["adds", "subs", "muls", "maximums", "minimums"])
        if name == "subs" and dtype in (D.UINT8,):
            return
        if self.draw.random() < 0.4:
            scalar: Expr = self._scalar_param(dtype)
        else:
            scalar = constant(self.draw.choice([-2, -1, 0, 1, 2, 3]), dtype)
        self._add(self.b.op(f"tile.{name}", a, scalar), self.bounds[a] * 4 + 4)

    def _scalar_param(self, dtype: DataType) -> Var:
        for var in self.scalars:
            if var.type.dtype is dtype:  # type: ignore[attr-defined]
                return var
        self.scalars.append(self.b.param(ScalarType(dtype)))
        return self.scalars[-1]

    def _unary(self) -> None:
        a = self._pick()
        assert a is not None
        self._add(self.b.op(f"tile.{self.draw.choice(['neg', 'abs', 'relu'])}", a), self.bounds[a])

    def _expand(self) -> None:
        kind = self.draw.choice(["row", "col"])
        vector = self._pick(kind=kind)
        a = None if vector is None else self._pick(kind="full", dtype=vector.type.dtype)  # type: ignore[attr-defined]
        if vector is None or a is None:
            return
        name = self.draw.choice(["", "_add", "_sub", "_mul", "_max", "_min", "_add"])
        if name == "_add" and a.type.dtype is D.BF16 and kind == "row":  # type: ignore[attr-defined]
            name = "_sub"
        most = 32 if name == "_mul" else LIMIT
        a, vector = self._tame(a, most), self._tame(vector, most)
        bound = self.bounds[a] * self.bounds[vector] if name == "_mul" else self.bounds[a] + self.bounds[vector]
        self._add(self.b.op(f"tile.{kind}_expand{name}", a, vector), bound)

    def _reduce(self) -> None:
        a = self._pick()
        assert a is not None
        way, how = self.draw.choice(["row", "col"]), self.draw.choice(["sum", "max", "min"])
        kind: Any = a.type
        if (way, how) == ("row", "min") and kind.dtype in (D.BF16, D.INT8):
            how = "max"
        if how == "sum":
            a = self._tame(a, 32)
            kind = a.type
        scratch = (
            [self.b.op("tile.create", extents([e.value for e in kind.shape]), dtype=kind.dtype)] if way == "row" else []
        )
        count = max(self.rows, self.columns) if how == "sum" else 1
        self._add(self.b.op(f"tile.{way}_{how}", a, *scratch), self.bounds[a] * count)

    def _cast(self) -> None:
        a = self._pick()
        assert a is not None
        targets = [D.FP32, D.FP16, D.BF16, *(INTEGERS if self.exact else [])]
        target = self.draw.choice([t for t in targets if t is not a.type.dtype])  # type: ignore[attr-defined]
        a = self._tame(a, 100)
        mode = self.draw.choice([1, 2, 3, 4, 5]) if self.exact else 1
        self._add(self.b.op("tile.cast", a, target_type=target, mode=mode), self.bounds[a])

    def _select(self) -> None:
        a = self._pick(kind="full")
        b = None if a is None else self._pick(kind="full", dtype=a.type.dtype)  # type: ignore[attr-defined]
        if a is None or b is None:
            return
        mask = self.b.op("tile.cmp", a, b, cmp_type=self.draw.randrange(6))
        kind: Any = a.type
        scratch = self.b.op("tile.create", extents([e.value for e in kind.shape]), dtype=kind.dtype)
        self._add(self.b.op("tile.sel", mask, a, b, scratch), max(self.bounds[a], self.bounds[b]))

    def _function(self) -> None:
        a = self._pick(floats=True)
        if a is None:
            return
        dtype = a.type.dtype  # type: ignore[attr-defined]
        name = self.draw.choice(["exp", "sqrt", "rsqrt", "recip", "log", "sin", "div"])
        if name in ("log", "div") and dtype is D.BF16 or name == "sin" and dtype is not D.FP32:
            name = "exp"
        op = self.b.op
        if name == "exp":
            low = op("tile.maximums", a, constant(-6, dtype))
            self._add(op("tile.exp", op("tile.minimums", low, constant(3, dtype))), 32)
        elif name == "sin":
            self._add(op("tile.sin", self._tame(a, 32)), 1)
        else:
            a = self._tame(a)
            positive = op("tile.adds", op("tile.abs", a), constant(1, dtype))
            if name == "div":
                self._add(op("tile.div", a, positive), LIMIT)
            else:
                self._add(op(f"tile.{name}", positive), LIMIT)

    def _move(self) -> None:
        a = self._pick()
        assert a is not None
        self._add(self.b.op("tile.move", a, target_memory=MemorySpace.Vec), self.bounds[a])

    def _change(self) -> None:
        """Change a copy in place: other names of what was copied must not see it."""
        a = self._pick()
        assert a is not None
        copy = self.b.op("tile.move", a, target_memory=MemorySpace.Vec)
        dtype = copy.type.dtype  # type: ignore[attr-defined]
        if self.draw.random() < 0.5:
            changed = self.b.op("tile.write", copy, extents([0, 0]), constant(self.draw.choice([-3, 5]), dtype))
        else:
            row = self._pick(kind="one", dtype=dtype) or self._pick(kind=self.kind(a), dtype=dtype)
            assert row is not None
            if self.valid:
                changed = self.b.op("tile.write", copy, extents([0, 0]), constant(1, dtype))
            else:
                changed = self.b.op("tile.assemble", copy, row, extents([0, 0]))
                self.bounds[copy] = self.bounds[row]
        self._add(changed, max(self.bounds[a], self.bounds.get(copy, 0), 8))

    def _store(self) -> None:
        """Into a tensor that is read again."""
        a = self._pick(dtype=D.FP32)
        if a is None:
            return
        target = self.inout[0]
        at = self.draw.randrange(3 if self.kind(a) in ("full", "row") else self.rows)
        result = self.b.op("tile.store", self._tame(a), extents([at, 0]), target)
        self.inout[0] = result

    def _reload(self) -> None:
        shape = self.shape("full")
        at = extents([self.draw.randrange(3), 0])
        valid = self._extents("full")
        more = [] if valid is None else [MakeTuple(valid)]
        self._add(self.b.op("tile.load", self.inout[0], at, extents(shape), *more), LIMIT)

    # --- control flow -------------------------------------------------------------------------------------------------

    def _scope(self, make: Callable[[], None]) -> Any:
        """Statements of a body, whose values are not seen behind it. Stores in it keep to the tensor's first name."""
        pool, bounds, inout = list(self.pool), dict(self.bounds), list(self.inout)
        with self.b.body() as stmts:
            make()
        self.pool, self.bounds, self.inout = pool, bounds, inout
        return SeqStmts(stmts)

    def _loop(self, depth: int) -> None:
        carried = [v for v in (self._pick() for _ in range(self.draw.choice([1, 1, 2, 3]))) if v is not None]
        # A value that is carried may take any size that the limit allows.
        carried = [self._tame(v) for v in dict.fromkeys(carried)]
        args = [IterArg(f"c{i}", v.type, v) for i, v in enumerate(carried)]
        yields: list[Expr] = []

        def body() -> None:
            for arg in args:
                self._add(arg, LIMIT)
            self._run(self.draw.randrange(2, 7), depth + 1)
            for arg in args:
                same = [v for v in self.pool if v.type == arg.type and all(v is not c for c in carried)]
                yields.append(self._tame(self.draw.choice(same[-4:])))
            self.b.stmts.append(YieldStmt(yields))

        stmts = self._scope(body)
        results = [Var(f"l{i}", v.type) for i, v in enumerate(carried)]
        count = index_const(self.draw.choice([0, 1, 3]))
        loop = ForStmt(
            Var("i", ScalarType(D.INDEX)), index_const(0), count, index_const(1), args, stmts, results,
            kind=ForKind.Sequential,
        )  # fmt: skip
        self.b.stmts.append(loop)
        for var in results:
            self._add(var, LIMIT)

    def _branch(self, depth: int) -> None:
        like = [v for v in (self._pick() for _ in range(self.draw.choice([1, 2]))) if v is not None]
        bodies = []
        for _ in range(2):

            def body() -> None:
                self._run(self.draw.randrange(1, 5), depth + 1)
                yields = []
                for v in like:
                    same = [w for w in self.pool if w.type == v.type]
                    yields.append(self._tame(self.draw.choice(same[-4:])))
                self.b.stmts.append(YieldStmt(yields))

            bodies.append(self._scope(body))
        scalar = self._scalar_param(D.INT32)
        results = [Var(f"b{i}", v.type) for i, v in enumerate(like)]
        condition = Lt(scalar, constant(1, D.INT32), D.BOOL)
        self.b.stmts.append(IfStmt(condition, bodies[0], bodies[1], results))
        for var in results:
            self._add(var, LIMIT)

    # --- arguments ----------------------------------------------------------------------------------------------------

    def values(self, seed: int) -> list[Any]:
        rng = np.random.default_rng(seed)
        made: list[Any] = []
        for param, _ in self.b.params:
            kind: Any = param.type
            if param in self.b.extents:
                made.append(int(rng.integers(1, self.b.extents[param] + 1)))
            elif isinstance(kind, ScalarType):
                value = int(rng.integers(-2, 4))
                made.append(float(value) if kind.dtype.is_float_ else value)
            else:
                shape = [e.value for e in kind.shape]
                if self.exact:
                    made.append(rng.integers(-8, 9, shape).astype(numpy_dtype(kind.dtype)))
                else:
                    made.append(numbers(shape, kind.dtype, rng, "mild"))
        return made


@contextlib.contextmanager
def small_errors(rng: np.random.Generator) -> Iterator[None]:
    """Every float that an operation makes is changed by a few units in its last place."""
    steps = {"float32": 2.0**-22, "float16": 2.0**-10, "bfloat16": 2.0**-7}
    before = {}

    def wrong(reference: Any) -> Any:
        def changed(ctx: Any, *args: Any, **kwargs: Any) -> Any:
            value = reference(ctx, *args, **kwargs)
            step = steps.get(str(value.dtype)) if isinstance(value, ArrayValue) else None
            if step is not None:
                factors = 1 + step * rng.choice([-1, 0, 1], value.shape)
                data = value.data
                data[...] = (data.astype(np.float64) * factors).astype(data.dtype)
            return value

        return changed

    for name, definition in REGISTRY.items():
        if name.startswith("tile.") and (definition.element or definition.fold or name == "tile.cast"):
            before[name] = definition.reference
            definition.reference = wrong(definition.reference)
    try:
        yield
    finally:
        for name, reference in before.items():
            REGISTRY[name].reference = reference


def spread(function: Function, values: list[Any], wanted: Arguments, runs: int = 6) -> list[Any]:
    """For each array how far small errors may take its elements."""
    reach: list[Any] = [np.zeros(a.shape) if isinstance(a, np.ndarray) else None for a in wanted.arrays]
    for seed in range(runs):
        arguments = Arguments(values)
        with small_errors(np.random.default_rng(seed)), np.errstate(all="ignore"):
            error, _ = interpret(function, arguments)
            assert not error, error
        for far, have, want in zip(reach, arguments.arrays, wanted.arrays, strict=True):
            if far is not None:
                np.fmax(far, np.abs(have.astype(np.float64) - want.astype(np.float64)), out=far)
    return reach


__all__ = ["Chain", "small_errors", "spread"]
