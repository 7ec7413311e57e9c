"""What `run.py` measures: programs of `examples/` at real sizes, and the same computation in NumPy and PyTorch.

A peer writes into arrays that are there before, where its functions can; `note` says what could not.
"""

from __future__ import annotations

import functools
import importlib
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

F32: Any = np.float32
BF16: Any = ml_dtypes.bfloat16
EPSILON = 1e-5  # of the norms, as in the examples

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "examples"))


@dataclass
class Peer:
    """Another way to compute a case: the call that is measured, and the results of the last call."""

    label: str
    call: Callable[[], Any]
    results: Callable[[], Sequence[Any]]
    note: str = ""


Peers = list[Peer]


@dataclass
class Case:
    """An entry of an example with arguments of some size."""

    name: str
    module: str
    entry: str
    peers: Callable[..., Peers]  # of the arguments, and of PyTorch or None
    flops: Callable[..., float]  # of matrix products, by the arguments
    options: dict[str, Any] = field(default_factory=dict)  # of make_args
    takes: tuple[int, ...] | None = None  # which arguments of make_args the entry takes; None: all
    moved: Callable[..., float] | None = None  # bytes that have to be read or written; None: each array once
    precision: str = "fp32"
    quick: bool = False

    def load(self) -> tuple[Any, list[Any], dict[int, Any]]:
        """The entry, its arguments, and the results that are expected, by argument."""
        module = importlib.import_module(self.module)
        args = module.make_args(np.random.default_rng(0), **self.options)
        want = module.expected(*args)
        takes = self.takes or tuple(range(len(args)))
        kept = {takes.index(index): value for index, value in want.items() if index in takes}
        return getattr(module, self.entry), [args[index] for index in takes], kept

    def arguments(self) -> tuple[Any, list[Any]]:
        """The entry and its arguments."""
        module = importlib.import_module(self.module)
        args = module.make_args(np.random.default_rng(0), **self.options)
        takes = self.takes or tuple(range(len(args)))
        return getattr(module, self.entry), [args[index] for index in takes]

    def bytes_moved(self, args: Sequence[Any]) -> float:
        """Bytes that have to be read or written."""
        if self.moved is not None:
            return self.moved(*args)
        return float(sum(a.nbytes for a in args if isinstance(a, np.ndarray)))


def tensor(torch: Any, array: Any) -> Any:
    """The array as a tensor that shares its memory."""
    if array.dtype == BF16:
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(array)


def array(value: Any) -> Any:
    """A tensor as an array, BF16 as FP32."""
    return value.float().numpy()


def no_flops(*_args: Any) -> float:
    """Of programs without matrix products."""
    return 0.0


def compiled(torch: Any, function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, compiled for the shapes of the first call."""
    return torch.compile(function, dynamic=False)


# --- rows -------------------------------------------------------------------------------------------------------------


def softmax_peers(torch: Any, x: Any, _out: Any) -> Peers:
    y = np.empty_like(x)

    def by_numpy() -> None:
        np.subtract(x, x.max(axis=1, keepdims=True), out=y)
        np.exp(y, out=y)
        np.divide(y, y.sum(axis=1, keepdims=True), out=y)

    peers = [Peer("numpy", by_numpy, lambda: [y])]
    if torch is not None:
        tx = tensor(torch, x)
        eager, fused = torch.empty_like(tx), torch.empty_like(tx)
        function = compiled(torch, lambda source, out: out.copy_(torch.softmax(source, -1)))
        peers += [
            Peer("torch", lambda: torch.softmax(tx, -1, out=eager), lambda: [array(eager)]),
            Peer("torch.compile", lambda: function(tx, fused), lambda: [array(fused)]),
        ]
    return peers


def norm_peers(torch: Any, x: Any, gamma: Any, *rest: Any) -> Peers:
    """Of layer norm (with beta) and RMS norm (without)."""
    beta = rest[0] if len(rest) == 2 else None
    y, squares = np.empty_like(x), np.empty_like(x)

    def by_numpy() -> None:
        source = x
        if beta is not None:
            np.subtract(x, x.mean(axis=1, keepdims=True), out=y)
            source = y
        np.square(source, out=squares)
        np.multiply(source, 1 / np.sqrt(squares.mean(axis=1, keepdims=True) + F32(EPSILON)), out=y)
        np.multiply(y, gamma, out=y)
        if beta is not None:
            np.add(y, beta, out=y)

    peers = [Peer("numpy", by_numpy, lambda: [y])]
    if torch is not None:
        tx, g, functional = tensor(torch, x), tensor(torch, gamma).reshape(-1), torch.nn.functional
        if beta is not None:
            b = tensor(torch, beta).reshape(-1)
            norm, name = (lambda source: functional.layer_norm(source, g.shape, g, b, EPSILON)), "layer_norm"
        else:
            norm, name = (lambda source: functional.rms_norm(source, g.shape, g, EPSILON)), "rms_norm"
        fused, last = torch.empty_like(tx), [tx]
        function = compiled(torch, lambda source, out: out.copy_(norm(source)))

        def eager() -> None:
            last[0] = norm(tx)

        peers += [
            Peer("torch", eager, lambda: [array(last[0])], f"{name} has no out=: a new tensor for each call"),
            Peer("torch.compile", lambda: function(tx, fused), lambda: [array(fused)]),
        ]
    return peers


# --- products ---------------------------------------------------------------------------------------------------------


def product_peers(torch: Any, a: Any, b: Any, c: Any) -> Peers:
    result = np.empty_like(c)
    if a.dtype == F32:
        peers = [Peer("numpy", lambda: np.matmul(a, b, out=result), lambda: [result])]
    else:
        wide = [np.empty(t.shape, F32) for t in (a, b, c)]

        def by_numpy() -> None:
            np.copyto(wide[0], a)
            np.copyto(wide[1], b)
            np.matmul(wide[0], wide[1], out=wide[2])
            np.copyto(result, wide[2], casting="unsafe")

        peers = [Peer("numpy", by_numpy, lambda: [result], "no products of bf16: converted to fp32 in each call")]
    if torch is not None:
        ta, tb = tensor(torch, a), tensor(torch, b)
        eager, fused = (torch.empty_like(tensor(torch, c)) for _ in range(2))
        function = compiled(torch, lambda x, y, out: out.copy_(torch.mm(x, y)))
        peers += [
            Peer("torch", lambda: torch.mm(ta, tb, out=eager), lambda: [array(eager)]),
            Peer("torch.compile", lambda: function(ta, tb, fused), lambda: [array(fused)]),
        ]
    return peers


def mlp_peers(torch: Any, x: Any, *rest: Any) -> Peers:
    """Of the MLP with GELU (two weights) and the gated one (three)."""
    weights = list(rest[:-1])
    gated, wide_weights = len(weights) == 3, weights
    if x.dtype != F32:
        wide_weights = [w.astype(F32) for w in weights]  # once, in front: NumPy has no products of bf16
    hidden = [np.empty((len(x), weights[0].shape[1]), F32) for _ in range(2)]
    y = np.empty((len(x), x.shape[1]), F32)

    def by_numpy() -> None:
        source = x.astype(F32, copy=False)
        t, other = hidden
        np.matmul(source, wide_weights[0], out=t)
        if gated:
            np.negative(t, out=other)
        else:
            np.square(t, out=other)
            other *= F32(0.044715 * -1.5957691)
            other -= F32(1.5957691)
            other *= t
        np.exp(other, out=other)
        other += 1
        np.divide(t, other, out=t)
        if gated:
            np.matmul(source, wide_weights[1], out=other)
            t *= other
        np.matmul(t, wide_weights[-1], out=y)

    note = "fp32 weights, converted before: twice the bytes of ours" if x.dtype != F32 else ""
    peers = [Peer("numpy", by_numpy, lambda: [y], note)]
    if torch is not None:
        peers += torch_mlp_peers(torch, x, weights)
    return peers


def torch_mlp_peers(torch: Any, x: Any, weights: list[Any]) -> Peers:
    gated = len(weights) == 3
    functional, aten = torch.nn.functional, torch.ops.aten
    tx, *w = (tensor(torch, t) for t in (x, *weights))
    by_rows = [t.t().contiguous() for t in w]  # as nn.Linear keeps them
    h, u = (torch.empty((len(tx), w[0].shape[1]), dtype=tx.dtype) for _ in range(2))
    eager, fused, last = torch.empty_like(tx), torch.empty_like(tx), [tx]

    def by_mm() -> None:
        torch.mm(tx, w[0], out=h)
        if gated:
            aten.silu.out(h, out=h)
            torch.mm(tx, w[1], out=u)
            torch.mul(h, u, out=h)
        else:
            aten.gelu.out(h, approximate="tanh", out=h)
        torch.mm(h, w[-1], out=eager)

    def linear_layers(source: Any, *layers: Any) -> Any:
        t = functional.linear(source, layers[0])
        if gated:
            t = functional.silu(t) * functional.linear(source, layers[1])
        else:
            t = functional.gelu(t, approximate="tanh")
        return functional.linear(t, layers[-1])

    function = compiled(torch, lambda out, *inputs: out.copy_(linear_layers(*inputs)))

    def by_linear() -> None:
        last[0] = linear_layers(tx, *by_rows)

    return [
        Peer("torch", by_mm, lambda: [array(eager)]),
        Peer("torch linear", by_linear, lambda: [array(last[0])], "linear has no out=; transposed weights"),
        Peer("torch.compile", lambda: function(fused, tx, *by_rows), lambda: [array(fused)], "transposed weights"),
    ]


def mlp_flops(x: Any, *rest: Any) -> float:
    return float(2 * len(x) * sum(w.size for w in rest[:-1]))


# --- attention --------------------------------------------------------------------------------------------------------


def prefill_peers(torch: Any, q: Any, k: Any, v: Any, heads: int, out: Any) -> Peers:
    wq, wk, wv = (t.astype(F32, copy=False).reshape(heads, -1, q.shape[1]) for t in (q, k, v))
    s = np.empty((heads, wq.shape[1], wk.shape[1]), F32)
    y = np.empty(out.shape, F32)

    def by_numpy() -> None:
        np.matmul(wq, wk.swapaxes(1, 2), out=s)
        s.__imul__(F32(q.shape[1] ** -0.5))
        np.subtract(s, s.max(axis=2, keepdims=True), out=s)
        np.exp(s, out=s)
        np.divide(s, s.sum(axis=2, keepdims=True), out=s)
        np.matmul(s, wv, out=y.reshape(wq.shape))

    note = "in fp32, converted before" if q.dtype != F32 else ""
    peers = [Peer("numpy", by_numpy, lambda: [y], note)]
    if torch is not None:
        tq, tk, tv = (tensor(torch, t).reshape(1, heads, -1, q.shape[1]) for t in (q, k, v))
        attention = torch.nn.functional.scaled_dot_product_attention
        fused, last = torch.empty(tq.shape), [tq]
        function = compiled(torch, lambda *inputs: inputs[3].copy_(attention(*inputs[:3])))

        def eager() -> None:
            last[0] = attention(tq, tk, tv)

        def as_rows(value: Any) -> list[Any]:
            return [array(value).reshape(out.shape)]

        peers += [
            Peer("torch", eager, lambda: as_rows(last[0]), "scaled_dot_product_attention has no out="),
            Peer("torch.compile", lambda: function(tq, tk, tv, fused), lambda: as_rows(fused)),
        ]
    return peers


def paged_peers(torch: Any, q: Any, keys: Any, values: Any, table: Any, lengths: Any, out: Any) -> Peers:
    import attention_paged

    page, dim = attention_paged.PAGE, attention_paged.DIM
    last: list[Any] = [out, None, None]

    def by_numpy() -> None:
        last[0] = attention_paged.expected(q, keys, values, table, lengths, out)[5]

    peers = [Peer("numpy", by_numpy, lambda: [last[0]], "gathers and converts to fp32 in new arrays")]
    if torch is not None:
        sequences, kv_heads = len(lengths), keys.shape[1] // dim
        longest = table.shape[1] * page
        attention = torch.nn.functional.scaled_dot_product_attention
        tq = tensor(torch, q).reshape(sequences, kv_heads, -1, dim)  # heads of a group: rows of one product
        pools = [tensor(torch, t).reshape(-1, page * kv_heads * dim) for t in (keys, values)]
        tables, counts = torch.from_numpy(table).long(), torch.from_numpy(lengths)
        mask = (torch.arange(longest)[None, :] < counts[:, None])[:, None, None, :]
        fused = torch.empty(tq.shape, dtype=tq.dtype)

        def gathered(pool: Any, pages: Any) -> Any:
            return pool[pages].reshape(-1, pages.shape[-1] * page, kv_heads, dim).transpose(1, 2)

        def batch(source: Any, k: Any, v: Any, pages: Any, seen: Any) -> Any:
            k, v = gathered(k, pages), gathered(v, pages)
            return attention(source, k, v, attn_mask=seen)

        def eager() -> None:
            last[1] = batch(tq, pools[0], pools[1], tables, mask)

        def one_by_one() -> None:
            parts = []
            for seq, length in enumerate(lengths.tolist()):
                pages = tables[seq, : -(-length // page)]
                k, v = (gathered(pool, pages)[:, :, :length] for pool in pools)
                parts.append(attention(tq[seq : seq + 1], k, v))
            last[2] = torch.cat(parts)

        function = compiled(torch, lambda target, *inputs: target.copy_(batch(*inputs)))

        def as_rows(value: Any) -> list[Any]:
            return [array(value).reshape(out.shape)]

        note = "gathers the pages in front of scaled_dot_product_attention, which has no out="
        peers += [
            Peer("torch", eager, lambda: as_rows(last[1]), f"{note}; all sequences at once, masked"),
            Peer("torch by sequence", one_by_one, lambda: as_rows(last[2]), note),
            Peer("torch.compile", lambda: function(fused, tq, *pools, tables, mask), lambda: as_rows(fused)),
        ]
    return peers


def paged_moved(q: Any, keys: Any, _values: Any, table: Any, lengths: Any, out: Any) -> float:
    return float(2 * lengths.sum() * keys.shape[1] * keys.itemsize + q.nbytes + table.nbytes + out.nbytes)


def paged_flops(q: Any, _keys: Any, _values: Any, _table: Any, lengths: Any, _out: Any) -> float:
    return float(4 * lengths.sum() * q.size // len(lengths))


# --- layers -----------------------------------------------------------------------------------------------------------


def decoder_peers(torch: Any, state: Any, wa: Any, wu: Any, wd: Any, cache: Any, pos: Any) -> Peers:
    import decoder_layers as example

    model, dim, now = example.MODEL, example.DIM, int(pos[0])
    layers = len(wu) // model
    mine = [state.copy(), cache.copy()]

    def by_numpy() -> None:
        for layer in range(layers):
            numpy_layer(layer)

    def numpy_layer(layer: int) -> None:
        x, seen = mine[0], mine[1][layer * example.POSITIONS :][: now + 1]
        a = wa[layer * model :][:model]
        qkv = x / np.sqrt((x * x).mean() + EPSILON) @ a[:, : 3 * model]
        seen[-1] = qkv[0, model:]
        k, v = seen.reshape(-1, 2, model // dim, dim).transpose(1, 2, 0, 3)
        scores = qkv[0, :model].reshape(-1, 1, dim) @ k.swapaxes(1, 2) * F32(dim**-0.5)
        weights = np.exp(scores - scores.max(axis=2, keepdims=True))
        mixed = (weights / weights.sum(axis=2, keepdims=True)) @ v
        x += mixed.reshape(1, model) @ a[:, 3 * model :]
        hidden = np.maximum(x / np.sqrt((x * x).mean() + EPSILON) @ wu[layer * model :][:model], 0)
        x += hidden @ wd[layer * example.INNER :][: example.INNER]

    peers = [Peer("numpy", by_numpy, lambda: mine, "small new arrays in each layer")]
    if torch is not None:
        functional = torch.nn.functional
        parts = [list(tensor(torch, w).chunk(layers)) for w in (wa, wu, wd)]

        def torch_layer(x: Any, seen: Any, a: Any, u: Any, d: Any) -> None:
            unit = functional.rms_norm(x, (model,), eps=EPSILON)
            qkv = unit @ a[:, : 3 * model]
            seen[now] = qkv[0, model:]
            k, v = seen[: now + 1].reshape(1, -1, 2, model // dim, dim).permute(2, 0, 3, 1, 4)
            q = qkv[:, :model].reshape(1, -1, 1, dim)
            mixed = functional.scaled_dot_product_attention(q, k, v)
            x.addmm_(mixed.reshape(1, model), a[:, 3 * model :])
            x.addmm_(functional.relu(functional.rms_norm(x, (model,), eps=EPSILON) @ u), d)

        def peer(label: str, layer: Callable[..., Any], note: str) -> Peer:
            x, whole = tensor(torch, state.copy()), tensor(torch, cache.copy())
            caches = list(whole.chunk(layers))

            def call() -> None:
                for inputs in zip(caches, *parts, strict=True):
                    layer(x, *inputs)

            return Peer(label, call, lambda: [array(x), array(whole)], note)

        peers += [
            peer("torch", torch_layer, "small new tensors in each layer"),
            peer("torch.compile", compiled(torch, torch_layer), "one layer compiled, called for each"),
        ]
    return peers


def decoder_moved(state: Any, wa: Any, wu: Any, wd: Any, cache: Any, pos: Any) -> float:
    import decoder_layers as example

    return float(wa.nbytes + wu.nbytes + wd.nbytes + cache.nbytes * (int(pos[0]) + 1) // example.POSITIONS)


# --- all --------------------------------------------------------------------------------------------------------------


def _products() -> list[Case]:
    return [
        Case(
            f"matmul {name} {size}",
            "matrix_products",
            "matrix_product",
            product_peers,
            lambda a, b, c: 2.0 * a.shape[0] * b.size,
            {"size": size, "dtype": dtype},
            precision=name,
            quick=size == 1024,
        )
        for name, dtype in (("fp32", F32), ("bf16", BF16))
        for size in (256, 1024, 4096)
    ]


def _mlps() -> list[Case]:
    sizes = [  # rows, hidden size, inner size, element type
        ("gelu mlp", "mlp", "gelu_mlp", 1, 2048, 8192, "fp32", False),
        ("gelu mlp", "mlp", "gelu_mlp", 4, 2048, 8192, "bf16", True),
        ("gelu mlp", "mlp", "gelu_mlp", 512, 2048, 8192, "fp32", False),
        ("gelu mlp", "mlp", "gelu_mlp", 512, 2048, 8192, "bf16", False),
        ("gated mlp", "gated_mlp", "gated_mlp", 1, 2048, 5632, "fp32", False),
        ("gated mlp", "gated_mlp", "gated_mlp", 16, 4096, 14336, "bf16", False),
        ("gated mlp", "gated_mlp", "gated_mlp", 512, 2048, 5632, "fp32", False),
        ("gated mlp", "gated_mlp", "gated_mlp", 512, 2048, 5632, "bf16", False),
    ]
    return [
        Case(
            f"{kind} {'prefill' if rows > 16 else 'decode'} {rows}x{model}x{inner} {name}",
            module,
            entry,
            mlp_peers,
            mlp_flops,
            {"rows": rows, "model": model, "inner": inner, "dtype": F32 if name == "fp32" else BF16},
            precision=name,
            quick=quick,
        )
        for kind, module, entry, rows, model, inner, name, quick in sizes
    ]


@functools.cache
def cases() -> tuple[Case, ...]:
    """All cases, in the order in which they are measured."""
    rows = {"rows": 4096, "cols": 4096}
    norms = functools.partial(Case, module="norms", peers=norm_peers, flops=no_flops, options=rows, quick=True)
    prefill = {"heads": 16, "queries": 512, "keys": 2048}
    return (
        Case("row softmax 4096x4096", "row_softmax", "row_softmax", softmax_peers, no_flops, rows, quick=True),
        norms("layer norm 4096x4096", entry="layer_norm", takes=(0, 1, 2, 3)),
        norms("rms norm 4096x4096", entry="rms_norm", takes=(0, 1, 4)),
        *_mlps(),
        *_products(),
        *(
            Case(
                f"attention prefill 16x512x2048x128 {name}",
                "attention_prefill",
                "attention_prefill",
                prefill_peers,
                lambda q, k, v, heads, out: 4.0 * q.size * (len(k) // heads),
                {**prefill, "dtype": dtype},
                precision=name,
                quick=name == "bf16",
            )
            for name, dtype in (("fp32", F32), ("bf16", BF16))
        ),
        Case(
            "attention paged decode bf16",
            "attention_paged",
            "attention_paged",
            paged_peers,
            paged_flops,
            {"lengths": (2048, 1999, 1024, 700, 2048, 333, 1500, 1), "kv_heads": 8},
            moved=paged_moved,
            precision="bf16",
            quick=True,
        ),
        Case(
            "decode 40 layers fp32",
            "decoder_layers",
            "decoder_layers",
            decoder_peers,
            lambda state, wa, wu, wd, cache, pos: 2.0 * (wa.size + wu.size + wd.size),
            {"layers": 40},
            moved=decoder_moved,
            quick=True,
        ),
    )
