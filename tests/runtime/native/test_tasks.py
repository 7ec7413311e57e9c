"""Arguments of tasks, explicit dependencies, dummy tasks, predicates."""

import operator

import numpy as np
import pytest
from native_kit import Suite, edges, zeros

suite = Suite(
    "tasks",
    more="""
    static TaskOutputTensors barrier(const std::vector<PTO2TaskId>& tasks) {
        CoreTaskArgs args;
        args.set_dependencies(tasks.data(), static_cast<uint32_t>(tasks.size()));
        return rt_submit_dummy_task(args);
    }
    static CoreTaskPredicate predicate(const ChipTensor& tensor, std::initializer_list<uint32_t> at, int64_t op,
                                       int64_t target) {
        CoreTaskPredicate made;
        made.operand.tensor = &tensor;
        made.operand.ndims = static_cast<uint32_t>(at.size());
        std::copy(at.begin(), at.end(), made.operand.indices);
        made.op = static_cast<PredicateOp>(op);
        made.target = target;
        return made;
    }
    """,
)
suite.kernel("look")
# (from, to): int32
suite.kernel("move", "tensor_of(args, 1).data<int32_t>()[0] = tensor_of(args, 0).data<int32_t>()[0];")

SCHEDULES = [{}, {"workers": 3}, *({"random": True, "seed": seed} for seed in range(5))]


# --- arguments --------------------------------------------------------------------------------------------------------

suite.entry(
    "all_arguments",
    """
    CoreTaskArgs args;
    for (uint32_t i = 0; i < 32; ++i) args.add_input(x);
    for (int32_t i = 0; i < 16; ++i) args.add_scalar(-i);
    always_assert(args.tensor_count() == 32 && args.scalar_count() == 16);
    rt_submit_aic_task(id::look, args);
    """,
)
suite.entry(
    "scalars",
    """
    CoreTaskArgs args;
    args.add_input(x);
    args.add_scalar(int8_t{-3}, int16_t{-4}, int32_t{-5}, int64_t{-6}, true, false);
    args.add_scalar(uint8_t{250}, uint32_t{4000000000u}, ~uint64_t{0}, 1.5f, 2.5);
    rt_submit_aiv_task(id::look, args);
    """,
)
suite.entry(
    "views_as_arguments",
    """
    const ChipTensor t = x.transpose(0, 1);
    launch(id::look, in(x), in(t), in(box(t, 1, 2, 2, 1)), inout(x.slice(1, 1, 4, 2)));
    """,
)


def test_32_tensors_and_16_scalars():
    seen = []

    def look(args):
        seen.append(([args.tensor(i)[0] for i in range(32)], [args.scalar(32 + i) for i in range(16)]))

    suite.run("all_arguments", [np.full(1, 9, np.float32)], kernels={"look": look})
    assert seen == [([9] * 32, [-i for i in range(16)])]


def test_scalars_travel_as_64_bits():
    seen = []
    look = lambda args: seen.extend(args.scalar(i) for i in range(1, 12))  # noqa: E731
    suite.run("scalars", [zeros(1)], kernels={"look": look})
    bits = [int(np.float32(1.5).view(np.int32)), int(np.float64(2.5).view(np.int64))]
    assert seen == [-3, -4, -5, -6, 1, 0, 250, 4_000_000_000, -1, *bits]


def test_kernels_get_views():
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    seen = []

    def look(args):
        seen.extend(args.tensor(i).tolist() for i in range(3))
        args.tensor(3)[...] = -1

    expected = [x.tolist(), x.T.tolist(), x.T[1:3, 2:3].tolist()]
    suite.run("views_as_arguments", [x], kernels={"look": look})
    assert seen == expected
    assert (x[:, 1::2] == -1).all() and x[:, ::2].tolist() == [[0, 2], [4, 6], [8, 10]]


# Text in which line 2 is wrong, and what is said about it.
WRONG = {
    "dependencies twice": ("CoreTaskArgs args; args.set_dependencies(nullptr, 0); args.set_dependencies(nullptr, 0);\nrt_submit_aiv_task(id::nop, args);", "set_dependencies was called twice"),
    "tensor behind a scalar": ("CoreTaskArgs args; args.add_scalar(1); args.add_input(x);\nrt_submit_aiv_task(id::nop, args);", "behind a scalar: tensors come first"),
    "created tensor behind a scalar": ("CoreTaskArgs args; args.add_scalar(1); args.add_output(matrix(1, 1));\nrt_submit_aiv_task(id::nop, args);", "behind a scalar"),
    "33 tensors": ("CoreTaskArgs args; for (int i = 0; i < 33; ++i) args.add_input(x);\nrt_submit_aiv_task(id::nop, args);", "more than 32 tensors"),
    "17 scalars": ("CoreTaskArgs args; for (int i = 0; i < 17; ++i) args.add_scalar(i);\nrt_submit_aiv_task(id::nop, args);", "more than 16 scalars"),
    "unknown kernel": ("\nlaunch(99, in(x));", r"there is no kernel 99 \(of \d+\)"),
    "negative kernel": ("\nlaunch(-7, in(x));", "there is no kernel -7"),
    "no kernel": ("\nlaunch(INVALID_KERNEL_ID, in(x));", "without a kernel"),
    "no kernel of a mixed task": ("CoreTaskArgs args;\nrt_submit_task(MixedKernels{-1, -1, -1}, args);", "without a kernel"),
    "uninitialised tensor": ("ChipTensor nothing;\nlaunch(id::nop, in(nothing));", "never given a value"),
    "predicate without a tensor": ("CoreTaskArgs args; args.set_predicate(CoreTaskPredicate());\nrt_submit_aiv_task(id::nop, args);", "a predicate needs a tensor"),
    "predicate with too few indices": ("CoreTaskArgs args; args.set_predicate(predicate(y, {0}, 0, 0));\nrt_submit_aiv_task(id::nop, args);", "one index for each of its dimensions"),
    "predicate with an index too large": ("CoreTaskArgs args; args.set_predicate(predicate(y, {0, 4}, 0, 0));\nrt_submit_aiv_task(id::nop, args);", "beyond the tensor's shape"),
    "predicate of floats": ("CoreTaskArgs args; args.set_predicate(predicate(x, {0}, 0, 0));\nrt_submit_aiv_task(id::nop, args);", "signed integers"),
}  # fmt: skip
_WRONG_ENTRIES = {case: f"wrong_{n}" for n, case in enumerate(WRONG)}
for case, (body, _) in WRONG.items():
    # The strip of the kit must not take the first line.
    suite.entry(_WRONG_ENTRIES[case], body if body[0] != "\n" else f"// {case}{body}", tensors="x y")


@pytest.mark.parametrize("case", WRONG)
def test_wrong_arguments(case):
    error = suite.fails(5, _WRONG_ENTRIES[case], [zeros(1), zeros(3, 4, dtype=np.int32)], match=WRONG[case][1])
    assert error.line == 2


# --- explicit dependencies and dummies --------------------------------------------------------------------------------

suite.entry(
    "dynamic",
    """
    std::vector<PTO2TaskId> some;
    for (uint32_t i = 0; i < n; ++i) {
        const auto made = launch(id::add, no_dep(columns(x, i, 1)), 1);
        if (i % 3 == 0) some.push_back(made.task_id());
    }
    CoreTaskArgs args;
    args.add_no_dep(x, y);
    args.set_dependencies(some.data(), static_cast<uint32_t>(some.size()));
    rt_submit_aiv_task(id::copy, args);
    """,
    tensors="x y",
    scalars="n",
)
suite.entry(
    "fan",
    """
    std::vector<PTO2TaskId> first;
    for (uint32_t i = 0; i < n; ++i) first.push_back(launch(id::add, no_dep(columns(x, i, 1)), 1).task_id());
    const auto all = barrier(first);
    always_assert(all.empty() && all.task_id().is_valid());
    for (uint32_t i = 0; i < m; ++i) launch(id::copy, no_dep(x), no_dep(rows(y, i, 1)), after{all});
    """,
    tensors="x y",
    scalars="n m",
)
suite.entry(
    "dummies",
    """
    PTO2TaskId last = launch(id::add, no_dep(x), 1).task_id();
    for (int64_t i = 0; i < n; ++i) last = barrier({last}).task_id();
    CoreTaskArgs args;
    args.set_dependencies(&last, 1);
    args.add_no_dep(x, y);
    rt_submit_aiv_task(id::copy, args);
    """,
    tensors="x y",
    scalars="n",
)
suite.entry(
    "dummy_with_tensors",
    """
    const auto made = task(matrix(2, 2));
    CoreTaskArgs args;
    args.add_inout(x);
    args.add_input(made.get_ref(0));
    args.add_output(matrix(1, 1));
    const auto dummy = rt_submit_dummy_task(args);
    task(in(x), in(dummy.get_ref(0)));
    """,
)


@pytest.mark.parametrize("options", SCHEDULES, ids=str)
def test_dependencies_that_are_collected_at_run_time(options):
    x, y = zeros(1, 100), zeros(1, 100)
    suite.run("dynamic", [x, y], [100], **options)
    assert (x == 1).all()
    assert (y[0, ::3] == 1).all()


def test_dependencies_that_are_collected_are_the_edges():
    found = edges(suite.run("dynamic", [zeros(1, 30), zeros(1, 30)], [30], record=True))
    assert found == [("explicit", n, 30) for n in range(0, 30, 3)]


@pytest.mark.parametrize("options", SCHEDULES, ids=str)
def test_a_dummy_joins_many_and_releases_many(options):
    n, m = 60, 40
    x, y = zeros(1, n), zeros(m, n)
    counters = suite.run("fan", [x, y], [n, m], **options).counters
    assert (y == 1).all()
    assert counters.tasks == n + 1 + m
    assert suite.run("fan", [x, y], [n, m], record=True).counters.edges[2] == n + m  # and not n x m


@pytest.mark.parametrize("options", SCHEDULES[:3], ids=str)
def test_a_long_chain_of_dummies(options):
    x, y = zeros(1), zeros(1)
    suite.run("dummies", [x, y], [10_000], **options)
    assert y[0] == 1


def test_a_dummy_is_ordered_by_its_tensors_as_well():
    assert edges(suite.run("dummy_with_tensors", [zeros(1)], record=True)) == [("allocation", 0, 1), ("overlap", 1, 2)]


# --- predicates -------------------------------------------------------------------------------------------------------

suite.entry(
    "predicated",
    """
    CoreTaskArgs args;
    args.add_inout(x);
    args.add_scalar(int64_t{1});
    args.set_predicate(predicate(flags, {1, 2}, op, target));
    rt_submit_aiv_task(id::add, args);
    launch(id::add, inout(x), 10);
    """,
    tensors="x flags",
    scalars="op target",
)
suite.entry(
    "predicate_on_a_written_value",
    """
    launch(id::move, in(part(flags, 0, 1)), inout(part(flags, 1, 1)));
    CoreTaskArgs args;
    args.add_inout(x);
    args.add_scalar(int64_t{1});
    args.set_predicate(predicate(flags, {1}, op, target));
    rt_submit_aiv_task(id::add, args);
    """,
    tensors="x flags",
    scalars="op target",
)
suite.entry(
    "predicate_on_a_fresh_tensor",
    """
    const auto made = task(row_of(2, DataType::INT32));
    launch(id::move, in(flags), out(part(made.get_ref(0), 1, 1)));
    {
        CoreTaskArgs args;
        args.add_no_dep(x);
        args.add_scalar(int64_t{1});
        const ChipTensor operand = part(made.get_ref(0), 1, 1);  // gone before the task runs
        args.set_predicate(predicate(operand, {0}, op, target));
        rt_submit_aiv_task(id::add, args);
    }
    """,
    tensors="x flags",
    scalars="op target",
)
suite.entry(
    "predicate_on_storage_that_is_used_again",
    """
    PTO2_SCOPE() {
        const auto made = launch(id::move, in(part(flags, 0, 1)), row_of(1, DataType::INT32));
        CoreTaskArgs args;
        args.add_inout(x);
        args.add_scalar(int64_t{1});
        args.set_predicate(predicate(made.get_ref(0), {0}, 0, 7));
        rt_submit_aiv_task(id::add, args);
    }
    PTO2_SCOPE() { launch(id::move, in(part(flags, 1, 1)), row_of(1, DataType::INT32)); }
    """,
    tensors="x flags",
)
OPERATORS = [operator.eq, operator.ne, operator.gt, operator.lt, operator.ge, operator.le]  # by PredicateOp


@pytest.mark.parametrize("op", range(6), ids=lambda op: OPERATORS[op].__name__)
@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.int32, np.int64])
def test_predicates(op, dtype):
    for value in (-3, -2, -1):
        flags = np.full((3, 4), 77, dtype)
        flags[1, 2] = value
        x = zeros(1)
        suite.run("predicated", [x, flags], [op, -2])
        assert x[0] == 10 + OPERATORS[op](value, -2)  # what comes behind it goes on either way


def test_a_predicate_compares_64_bits():
    x = zeros(1)
    suite.run("predicated", [x, np.full((3, 4), 2**40 + 5, np.int64)], [0, 5])  # EQ
    assert x[0] == 10


def test_a_predicate_of_a_view():
    base = np.zeros((8, 3), np.int32)
    base[4, 1] = 5
    x = zeros(1)
    suite.run("predicated", [x, base.T[:, ::2]], [0, 5])
    assert x[0] == 11


@pytest.mark.parametrize("options", SCHEDULES, ids=str)
@pytest.mark.parametrize(("target", "runs"), [(7, True), (0, False)])
def test_a_predicate_waits_for_its_value(options, target, runs):
    flags = np.array([7, 0], np.int32)  # the second becomes 7
    x = zeros(1)
    suite.run("predicate_on_a_written_value", [x, flags], [0, target], **options)
    assert x[0] == runs
    x = zeros(1)
    suite.run("predicate_on_a_fresh_tensor", [x, flags[:1]], [0, target], **options)
    assert x[0] == runs


def test_the_edges_of_a_predicate():
    flags = np.array([7, 0], np.int32)
    result = suite.run("predicate_on_a_written_value", [zeros(1), flags], [0, 0], record=True)
    assert edges(result) == [("predicate", 0, 1)]
    assert [task.skipped for task in result.records[0]] == [0, 1]
    found = edges(suite.run("predicate_on_a_fresh_tensor", [zeros(1), flags[:1]], [0, 7], record=True))
    assert found == [("allocation", 0, 1), ("predicate", 0, 2), ("predicate", 1, 2)]


@pytest.mark.parametrize("seed", range(10))
def test_the_operand_of_a_predicate_lives_until_the_task_has_run(seed):
    """The heap has room for one buffer: the second one has to wait."""
    x, flags = zeros(1), np.array([7, 0], np.int32)
    suite.run("predicate_on_storage_that_is_used_again", [x, flags], heap=64, random=True, seed=seed)
    assert x[0] == 1
