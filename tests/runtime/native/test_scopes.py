"""Scopes, the windows of their rings, and the ids of tasks."""

import threading

import pytest
from native_kit import Suite, edges, zeros

suite = Suite(
    "scopes",
    more="""
    // Opens `depth` scopes in each other, and submits a task in the innermost.
    static void nest(int64_t depth, const ChipTensor& x) {
        if (depth == 0) {
            launch(id::add, inout(x), 1);
            return;
        }
        PTO2_SCOPE() { nest(depth - 1, x); }
    }
    """,
)
suite.kernel("wait")
suite.kernel("release")


def ids(result):
    """(ring, number) of each task of a recorded run, in order of submission."""
    return [(task.id >> 32, task.id & 0xFFFFFFFF) for task in result.records[0]]


# --- scopes -----------------------------------------------------------------------------------------------------------

CASES = {
    "auto scopes are transparent": (
        """
        task(out(x));
        PTO2_SCOPE() {
            task(inout(x));
            PTO2_SCOPE(PTO2ScopeMode::AUTO) { task(in(x)); }
            task(inout(x));
        }
        task(in(x));
        """,
        [("overlap", 0, 1), ("overlap", 1, 2), ("overlap", 1, 3), ("overlap", 3, 4)],
    ),
    "manual: only explicit ones": (
        """
        const auto a = task(out(x));
        PTO2_SCOPE(PTO2ScopeMode::MANUAL) {
            task(in(x));
            task(inout(x));
            task(in(x), after{a});
        }
        """,
        [("explicit", 0, 3)],
    ),
    "manual: not even the allocation": (
        """
        const auto a = task(matrix(4, 4));
        PTO2_SCOPE(PTO2ScopeMode::MANUAL) {
            task(in(a.get_ref(0)));
            task(in(a.get_ref(0)), after{a});
            const auto b = task(matrix(4, 4));
            task(in(b.get_ref(0)));
        }
        """,
        [("explicit", 0, 2)],
    ),
    "manual: its writers are found behind it, and replace nothing": (
        """
        task(out(x));
        PTO2_SCOPE(PTO2ScopeMode::MANUAL) {
            task(inout(x));
            task(out(x));
            task(in(x));
        }
        task(in(x));
        """,
        [("overlap", 0, 4), ("overlap", 1, 4), ("overlap", 2, 4)],
    ),
    "manual in manual": (
        """
        PTO2_SCOPE(PTO2ScopeMode::MANUAL) {
            const auto a = task(out(x));
            PTO2_SCOPE(PTO2ScopeMode::MANUAL) { task(in(x)); task(in(x), after{a}); }
            task(in(x));
        }
        """,
        [("explicit", 0, 2)],
    ),
    "manual in auto, auto behind it": (
        """
        PTO2_SCOPE() {
            PTO2_SCOPE(PTO2ScopeMode::MANUAL) { task(out(x)); task(in(x)); }
            task(in(x));
        }
        PTO2_SCOPE() { task(in(x)); }
        """,
        [("overlap", 0, 2), ("overlap", 0, 3)],
    ),
}
_ENTRIES = {case: "case_" + case.translate(str.maketrans(" ", "_", ":,")) for case in CASES}
for case, (body, _) in CASES.items():
    suite.entry(_ENTRIES[case], body)


@pytest.mark.parametrize("case", CASES)
def test_edges(case):
    found = edges(suite.run(_ENTRIES[case], [zeros(4, 4)], record=True))
    assert found == sorted(CASES[case][1], key=lambda edge: edge[:0:-1])


suite.entry(
    "auto_in_manual",
    """
    PTO2_SCOPE(PTO2ScopeMode::MANUAL) {
        launch(id::add, inout(x), 1);
        PTO2_SCOPE() { launch(id::add, inout(x), 10); }
        launch(id::add, inout(x), 100);
    }
    """,
)


def test_auto_in_manual_is_refused():
    x = zeros(1)
    error = suite.fails(5, "auto_in_manual", [x], match=r"an AUTO scope inside a MANUAL one \(of line 1\)")
    assert error.line == 3
    assert x[0] in (0, 1)  # nothing behind the error was submitted


suite.entry("nested", "nest(depth, x);", scalars="depth")


@pytest.mark.parametrize(("depth", "ring"), [(0, 0), (1, 1), (2, 2), (3, 3), (4, 3), (64, 3)])
def test_the_depth_selects_the_ring(depth, ring):
    x = zeros(1)
    assert ids(suite.run("nested", [x], [depth], record=True)) == [(ring, 0)]
    assert x[0] == 1


def test_scopes_nest_64_deep_and_no_deeper():
    suite.fails(5, "nested", [zeros(1)], [65], match="nested deeper than 64")
    suite.run("nested", [zeros(1)], [64])


suite.entry(
    "behind_the_scope",
    """
    PTO2_SCOPE() {
        const auto made = launch(id::fill, matrix(2, 2), 7);
        launch(id::wait, in(made.get_ref(0)), out(x));
    }
    launch(id::release, in(y));
    """,
    tensors="x y",
)


def test_the_end_of_a_scope_is_no_barrier():
    """A task of the scope ends only after a task behind the scope has run; its storage stays as long."""
    released = threading.Event()

    def wait(args):
        assert released.wait(60)
        args.tensor(1)[...] = args.tensor(0)

    x = zeros(2, 2)
    kernels = {"wait": wait, "release": lambda args: released.set()}
    suite.run("behind_the_scope", [x, zeros(1)], kernels=kernels, workers=2, timeout=60)
    assert (x == 7).all()


# --- what belongs to a scope that has ended ---------------------------------------------------------------------------

# The task is completed when the scope ends, so that its record is free from then on.
_STALE = """const uint32_t first[] = {0, 0}; ChipTensor kept; TaskOutputTensors made;
PTO2_SCOPE() {
    made = launch(id::fill, matrix(2, 2), 7); kept = made.get_ref(0); get_tensor_data<float>(kept, 2, first);
}"""
STALE = {
    "copied": f"{_STALE}\nlaunch(id::add, inout(kept), 1);",
    "a view of it": f"{_STALE}\nlaunch(id::add, inout(rows(kept, 0, 1)), 1);",
    "through the outputs": f"{_STALE}\nlaunch(id::add, inout(made.get_ref(0)), 1);",
    "as a predicate": f"{_STALE}\nCoreTaskArgs args; CoreTaskPredicate p; p.operand.tensor = &kept; p.operand.ndims = 2;\n"
    "args.set_predicate(p); args.add_inout(x); rt_submit_aiv_task(id::nop, args);",
    "as an element": f"{_STALE}\nget_tensor_data<float>(kept, 2, first);",
    # its record is used again, for a tensor that looks the same
    "copied, used again": f"{_STALE}\nPTO2_SCOPE() {{ launch(id::fill, matrix(2, 2), 8);\nlaunch(id::add, inout(kept), 1); }}",
    "through the outputs, used again": f"{_STALE}\nPTO2_SCOPE() {{ launch(id::fill, matrix(2, 2), 8);\nlaunch(id::add, inout(made.get_ref(0)), 1); }}",
}
_STALE_ENTRIES = {case: f"stale_{n}" for n, case in enumerate(STALE)}
for case, body in STALE.items():
    suite.entry(_STALE_ENTRIES[case], body)


@pytest.mark.parametrize("case", STALE)
@pytest.mark.parametrize("workers", [1, 2])
def test_a_tensor_outlives_its_scope(case, workers):
    match = "after the scope that allocated it has ended: allocate it in an outer scope"
    suite.fails(5, _STALE_ENTRIES[case], [zeros(1)], match=match, workers=workers)


# --- windows ----------------------------------------------------------------------------------------------------------

suite.entry("counting", "for (int64_t i = 0; i < n; ++i) launch(id::add, inout(x), 1);", scalars="n")
suite.entry(
    "counting_in_scopes",
    """
    for (int64_t i = 0; i < scopes; ++i) {
        PTO2_SCOPE() {
            for (int64_t j = 0; j < n; ++j) launch(id::add, inout(x), 1);
        }
    }
    """,
    scalars="scopes n",
)
suite.entry(
    "counting_inside",
    """
    PTO2_SCOPE() {
        for (int64_t i = 0; i < n; ++i) {
            launch(id::add, inout(x), 1);
            PTO2_SCOPE() {
                for (int64_t j = 0; j < n; ++j) launch(id::add, inout(x), 1);
            }
        }
    }
    """,
    scalars="n",
)


@pytest.mark.parametrize("workers", [1, 2])
def test_many_tasks_pass_through_a_small_window(workers):
    x = zeros(1)
    counters = suite.run("counting", [x], [100_000], window=64, workers=workers).counters
    assert x[0] == 100_000
    assert counters.tasks == 100_000
    assert counters.window_high_water[0] <= 64


@pytest.mark.parametrize("window", [1, 2, 3, 7])
def test_tiny_windows(window):
    x = zeros(1)
    assert suite.run("counting", [x], [500], window=window).counters.window_high_water[0] <= window
    assert x[0] == 500


def test_a_scope_may_have_more_tasks_than_the_default_window():
    x = zeros(1)
    assert suite.run("counting", [x], [20_000]).counters.window_high_water[0] <= 16384
    assert x[0] == 20_000


def test_strict_windows():
    x = zeros(1)
    suite.run("counting_in_scopes", [x], [5, 8], strict=True, window=8)
    assert x[0] == 40
    error = suite.fails(
        1, "counting_in_scopes", [x], [5, 9], strict=True, window=8, match=r"scope of line 2 has more tasks.* \(8\)"
    )
    assert error.line == 3  # of the submit
    suite.fails(1, "counting", [x], [9], strict=True, window=8)  # the program itself is a scope
    suite.run("counting_in_scopes", [x], [5, 9], window=8)  # no limit unless it is asked for


def test_strict_windows_are_counted_by_ring():
    x = zeros(1)
    suite.run("counting_inside", [x], [8], strict=True, window=[1, 8, 8, 1])
    assert x[0] == 8 + 64
    suite.fails(1, "counting_inside", [x], [8], strict=True, window=[1, 7, 8, 1], match="scope of line 1")
    suite.fails(1, "counting_inside", [x], [8], strict=True, window=[1, 8, 7, 1], match="scope of line 4")


# --- ids --------------------------------------------------------------------------------------------------------------

suite.entry(
    "about_ids",
    """
    always_assert(!PTO2TaskId::invalid().is_valid());
    always_assert(PTO2TaskId::invalid().raw == ~uint64_t{0});
    always_assert(!TaskOutputTensors().task_id().is_valid() && TaskOutputTensors().empty());
    const auto a = task(in(x)), b = task(in(x), matrix(1, 1), matrix(2, 3));
    const auto c = alloc_tensors(matrix(4, 4));
    const auto d = task(in(x));
    always_assert(a.task_id().is_valid() && a.empty() && a.size() == 0);
    always_assert(b.task_id().is_valid() && !b.empty() && b.size() == 2);
    always_assert(b.get_ref(1).shapes[0] == 2 && b.get_ref(1).owner_task_id == b.task_id());
    always_assert(c.task_id().is_valid() && c.size() == 1);
    always_assert(a.task_id() != b.task_id() && b.task_id() != c.task_id() && c.task_id() != d.task_id());
    always_assert(a.task_id() == PTO2TaskId::make(0, 0) && d.task_id() == PTO2TaskId::make(0, 3));
    """,
)
suite.entry("dependency_of_raw", "const PTO2TaskId id{static_cast<uint64_t>(raw)};\nCoreTaskArgs args; args.add_input(x); args.set_dependencies(&id, 1); rt_submit_aiv_task(id::nop, args);", scalars="raw")  # fmt: skip
suite.entry(
    "other_rings",
    """
    TaskOutputTensors outer = task(in(x)), inner;
    PTO2_SCOPE() {
        inner = task(in(x));
        task(in(x), after{outer, inner});
        PTO2_SCOPE() { task(in(x), after{outer, inner}); }
    }
    task(in(x), after{inner, outer});
    """,
)
suite.entry(
    "old_ids",
    """
    std::vector<PTO2TaskId> known;
    for (int64_t i = 0; i < n; ++i) {
        PTO2TaskId on[3];
        uint32_t count = 0;
        for (int64_t at : {i - 1, i - 5, i / 2}) {
            if (at >= 0 && at < i) on[count++] = known[static_cast<size_t>(at)];
        }
        CoreTaskArgs args;
        args.add_no_dep(x);
        args.add_scalar(int64_t{1});
        args.set_dependencies(on, count);
        known.push_back(rt_submit_aiv_task(id::add, args).task_id());
        always_assert(known.back() == PTO2TaskId::make(0, static_cast<uint32_t>(i)));
    }
    """,
    scalars="n",
)
suite.entry(
    "dependency_on_a_completed_task",
    """
    const auto a = launch(id::add, inout(x), 5);
    const uint32_t at[] = {0};
    always_assert(get_tensor_data<float>(x, 1, at) == 5);  // so it is completed
    task(in(x), after{a});
    """,
)


def test_ids():
    suite.run("about_ids", [zeros(1)])


@pytest.mark.parametrize(
    "raw", [-1, 0, 1, 7 << 32, 5 << 40], ids=["invalid", "of itself", "of the future", "no such ring", "nonsense"]
)
def test_a_dependency_on_no_task(raw):
    error = suite.fails(
        5, "dependency_of_raw", [zeros(1)], [raw], match=r"dependency 0 of 1 is no valid task id.*is_valid"
    )
    assert error.line == 2


def test_dependencies_across_rings():
    result = suite.run("other_rings", [zeros(1)], record=True)
    assert ids(result) == [(0, 0), (1, 0), (1, 1), (2, 0), (0, 1)]
    assert edges(result) == [("explicit", p, c) for c in (2, 3, 4) for p in (0, 1)]


@pytest.mark.parametrize("workers", [1, 2])
def test_ids_only_grow_and_old_ones_stay_good(workers):
    x = zeros(1)  # the dependencies alone keep the additions apart
    assert suite.run("old_ids", [x], [1000], window=4, workers=workers).counters.window_high_water[0] <= 4
    assert x[0] == 1000


def test_a_dependency_on_a_completed_task_is_no_edge():
    counters = suite.run("dependency_on_a_completed_task", [zeros(1)]).counters
    assert list(counters.edges) == [0] * 6
    # A recorded run tells it nevertheless: the order is there.
    recorded = edges(suite.run("dependency_on_a_completed_task", [zeros(1)], record=True))
    assert ("overlap", 0, 1) in recorded or ("explicit", 0, 1) in recorded
