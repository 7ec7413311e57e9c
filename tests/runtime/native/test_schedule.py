"""The random schedule: any legal order, the same for the same seed, so that missing edges show as wrong values."""

import numpy as np
from native_kit import Suite, zeros

suite = Suite("schedule")
suite.kernel("note")

suite.entry("independent", "for (int64_t i = 0; i < n; ++i) launch(id::note, in(x), i);", scalars="n")
suite.entry(
    "pairs",
    """
    for (int64_t i = 0; i < n; ++i) {
        const auto made = launch(id::note, matrix(1, 1), 2 * i);
        launch(id::note, in(made.get_ref(0)), 2 * i + 1);
    }
    """,
    scalars="n",
)
# The copy reads x, which is overwritten behind it: an order that no rule makes, and this program forgot.
suite.entry("missing", "launch(id::copy, in(x), out(y)); launch(id::fill, out(x), 5);", tensors="x y")
suite.entry(
    "present",
    "const auto copied = launch(id::copy, in(x), out(y)); launch(id::fill, out(x), after{copied}, 5);",
    tensors="x y",
)
SEEDS = range(20)


def order(entry, n, **options):
    """In which order the tasks of a program note their numbers."""
    seen = []
    suite.run(entry, [zeros(1)], [n], kernels={"note": lambda args: seen.append(args.scalar(1))}, **options)
    return seen


def test_the_same_seed_gives_the_same_order():
    for seed in SEEDS:
        first = order("independent", 30, random=True, seed=seed)
        assert first == order("independent", 30, random=True, seed=seed, workers=4)
        assert sorted(first) == list(range(30))


def test_other_seeds_give_other_orders():
    orders = {tuple(order("independent", 30, random=True, seed=seed)) for seed in SEEDS}
    assert len(orders) == len(SEEDS)
    assert tuple(range(30)) not in orders


def test_every_task_may_come_first_or_last():
    orders = [order("independent", 4, random=True, seed=seed) for seed in range(60)]
    assert {o[0] for o in orders} == {o[-1] for o in orders} == set(range(4))


def test_the_order_is_always_legal():
    apart = 0
    for seed in SEEDS:
        found = order("pairs", 10, random=True, seed=seed)
        at = {number: place for place, number in enumerate(found)}
        assert sorted(at) == list(range(20))
        for i in range(10):
            assert at[2 * i] < at[2 * i + 1]
            apart += at[2 * i] + 1 < at[2 * i + 1]
    assert apart > 50  # a consumer does not simply follow its producer


def copied(entry, seed):
    x, y = np.ones(1, np.float32), zeros(1)
    suite.run(entry, [x, y], random=True, seed=seed)
    return y[0]


def test_a_missing_edge_shows_as_a_wrong_value():
    assert {copied("missing", seed) for seed in SEEDS} == {1, 5}
    assert {copied("present", seed) for seed in SEEDS} == {1}
