"""One decode step through all layers of a small transformer: so many small kernels that launching them is what counts.

The weights and the cache (keys beside values) of all layers stand below each other. `state` is updated in place.
"""

import numpy as np

import pypto.language as pl

MODEL, DIM, INNER, POSITIONS, EPSILON = 128, 32, 256, 128, 1e-5


@pl.jit
def decoder_layers(
    state: pl.InOut[pl.Tensor], wa: pl.Tensor, wu: pl.Tensor, wd: pl.Tensor, cache: pl.InOut[pl.Tensor], pos: pl.Tensor
):
    now = pl.cast(pl.read(pos, [0]), pl.INDEX)
    for layer in pl.range(wu.shape[0] // MODEL):
        row = layer * MODEL
        first = layer * POSITIONS
        q = pl.create_tensor([1, MODEL], dtype=pl.FP32)
        with pl.at(level=pl.Level.CORE_GROUP, name_hint="project"):
            unit = pl.row_expand_mul(state, pl.rsqrt(pl.row_sum(state * state) * (1.0 / MODEL) + EPSILON))
            q[:] = pl.matmul(unit, wa[row : row + MODEL, 0:MODEL])
            cache[first + now : first + now + 1, :] = pl.matmul(unit, wa[row : row + MODEL, MODEL : 3 * MODEL])
        mixed = pl.create_tensor([1, MODEL], dtype=pl.FP32)
        for head in pl.parallel(0, MODEL, DIM):
            with pl.at(level=pl.Level.CORE_GROUP, name_hint="attend"):
                k = pl.slice(cache, [POSITIONS, DIM], [first, head], valid_shape=[now + 1, DIM])
                v = pl.slice(cache, [POSITIONS, DIM], [first, MODEL + head], valid_shape=[now + 1, DIM])
                scores = pl.matmul(q[:, head : head + DIM], k, b_trans=True) * DIM**-0.5
                weights = pl.exp(pl.row_expand_sub(scores, pl.row_max(scores)))
                mixed[:, head : head + DIM] = pl.row_expand_div(pl.matmul(weights, v), pl.row_sum(weights))
        with pl.at(level=pl.Level.CORE_GROUP, name_hint="project_out"):
            state[:] = state + pl.matmul(mixed, wa[row : row + MODEL, 3 * MODEL : 4 * MODEL])
        hidden = pl.create_tensor([1, INNER], dtype=pl.FP32)
        with pl.at(level=pl.Level.CORE_GROUP, name_hint="mlp_up"):
            unit2 = pl.row_expand_mul(state, pl.rsqrt(pl.row_sum(state * state) * (1.0 / MODEL) + EPSILON))
            hidden[:] = pl.maximum(pl.matmul(unit2, wu[row : row + MODEL, :]), 0.0)
        with pl.at(level=pl.Level.CORE_GROUP, name_hint="mlp_down"):
            state[:] = state + pl.matmul(hidden, wd[layer * INNER : layer * INNER + INNER, :])
    return state, cache


ENTRY = decoder_layers
RTOL, ATOL = 1e-3, 1e-3


def make_args(rng, layers=3, position=77):
    shapes = [(layers * MODEL, 4 * MODEL), (layers * MODEL, INNER), (layers * INNER, MODEL)]
    weights = [rng.standard_normal(s, dtype=np.float32) / MODEL**0.5 for s in shapes]
    state, cache = (rng.standard_normal(s, dtype=np.float32) for s in ((1, MODEL), (layers * POSITIONS, 2 * MODEL)))
    return [state, *weights, cache, np.array([position], np.int32)]


def expected(state, wa, wu, wd, cache, pos):
    cache = cache.copy()
    for layer, (a, u, d) in enumerate(zip(*(np.split(w, len(wu) // MODEL) for w in (wa, wu, wd)), strict=True)):
        seen = cache[layer * POSITIONS :][: pos[0] + 1]
        unit = state / np.sqrt((state**2).mean() + EPSILON)
        seen[-1] = unit @ a[:, MODEL : 3 * MODEL]
        k, v = seen.reshape(-1, 2, MODEL // DIM, DIM).transpose(1, 2, 0, 3)
        weights = np.exp((unit @ a[:, :MODEL]).reshape(-1, 1, DIM) @ k.swapaxes(1, 2) * np.float32(DIM**-0.5))
        mixed = (weights / weights.sum(axis=2, keepdims=True)) @ v
        state = state + mixed.reshape(1, MODEL) @ a[:, 3 * MODEL :]
        state = state + np.maximum(state / np.sqrt((state**2).mean() + EPSILON) @ u, 0) @ d
    return {0: state, 4: cache}


def main():
    args = make_args(np.random.default_rng(0))
    want = expected(*args)[0]
    decoder_layers(*args)
    print(f"largest error {np.abs(args[0] - want).max():.1e}")
    np.testing.assert_allclose(args[0], want, rtol=RTOL, atol=ATOL)
    print("OK")


if __name__ == "__main__":
    main()
