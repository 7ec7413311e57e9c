"""Tasks of many blocks, blocks that start together, and kernels of several parts."""

import threading
import time
from pathlib import Path

import numpy as np
import pytest
from native_kit import Suite, edges, zeros

suite = Suite(
    "blocks",
    more="""
    static TaskOutputTensors blocks(int32_t kernel, int64_t count, bool together, std::initializer_list<Arg> tensors) {
        CoreTaskArgs args;
        for (const Arg& each : tensors) add_to(args, each);
        args.launch_spec.set_block_num(count);
        args.launch_spec.set_require_sync_start(together);
        return rt_submit_aiv_task(kernel, args);
    }
    using Flag = std::atomic<int32_t>;
    static Flag* flags_of(const ChipTensor& tensor) { return reinterpret_cast<Flag*>(tensor.data()); }
    static void await(const Flag& flag, int32_t value) {
        while (flag.load() < value) sched_yield();
    }
    """,
    include="#include <sched.h>",
)
# (seen, numbers): counts each block's runs, and notes how many blocks it was told of
suite.kernel(
    "note_block",
    """
    const PtoLocalContext& local = local_of(args);
    flags_of(tensor_of(args, 0))[local.block_idx] += 1;
    flags_of(tensor_of(args, 1))[local.block_idx] = local.block_num;
    """,
)
# (values, sum): int32
suite.kernel(
    "sum_up",
    """
    each_element<int32_t>(tensor_of(args, 0), [&](int32_t& each, uint64_t) { *tensor_of(args, 1).data<int32_t>() += each; });
    """,
)
# (flag, out): no block goes on before all have arrived
suite.kernel(
    "meet",
    """
    const PtoLocalContext& local = local_of(args);
    Flag& arrived = flags_of(tensor_of(args, 0))[0];
    arrived += 1;
    await(arrived, local.block_num);
    flags_of(tensor_of(args, 1))[local.block_idx] += 1;
    """,
)
# Parts of a mixed kernel. (mail, results, rounds): the cube part sends numbers to each vector lane, which sends back
# their sum so far; each waits for the other's answer. Of a block: for each lane a row {sent, value, answered, sum}.
_MAIL = """
    const PtoLocalContext& local = local_of(args);
    const auto lanes = static_cast<int32_t>(tensor_of(args, 0).shapes[1]);
    const auto rounds = static_cast<int32_t>(args[2]);
    const auto mail = [&](int32_t lane) { return flags_of(tensor_of(args, 0)) + 4 * (local.block_idx * lanes + lane); };
"""
suite.kernel(
    "cube",
    _MAIL
    + """
    for (int32_t round = 1; round <= rounds; ++round) {
        for (int32_t lane = 0; lane < lanes; ++lane) {
            mail(lane)[1] = round * (lane + 1) + local.block_idx;
            mail(lane)[0] = round;
        }
        for (int32_t lane = 0; lane < lanes; ++lane) await(mail(lane)[2], round);
    }
    for (int32_t lane = 0; lane < lanes; ++lane) {
        flags_of(tensor_of(args, 1))[local.block_idx * lanes + lane] += mail(lane)[3];
    }
    """,
)
suite.kernel(
    "vector",
    _MAIL
    + """
    Flag* own = mail(lane_of(args));
    for (int32_t round = 1; round <= rounds; ++round) {
        await(own[0], round);
        own[3] += own[1];
        own[2] = round;
    }
    """,
)
# (out): the lane, plus one, in the lane's place
suite.kernel("note_lane", "flags_of(tensor_of(args, 0))[lane_of(args)] += lane_of(args) + 1;")
suite.kernel("ping")
suite.kernel("pong")

WORKERS = pytest.mark.parametrize(
    "options", [{"workers": n} for n in (1, 2, 4)] + [{"random": True, "seed": 1}], ids=str
)


# --- many blocks ------------------------------------------------------------------------------------------------------

suite.entry(
    "spmd",
    """
    blocks(id::note_block, count, false, {inout(x), inout(y)});
    launch(id::sum_up, in(x), inout(z));
    """,
    tensors="x y z",
    scalars="count",
)


@WORKERS
@pytest.mark.parametrize("count", [0, 1, 2, 3, 17, 500])
def test_each_block_runs_once_and_consumers_wait_for_all(count, options):
    x, y, z = zeros(500, dtype=np.int32), zeros(500, dtype=np.int32), zeros(1, dtype=np.int32)
    suite.run("spmd", [x, y, z], [count], **options)
    assert x.tolist() == [1] * count + [0] * (500 - count)
    assert y.tolist() == [count] * count + [0] * (500 - count)
    assert z[0] == count


def test_blocks_are_one_task():
    arrays = [zeros(500, dtype=np.int32), zeros(500, dtype=np.int32), zeros(1, dtype=np.int32)]
    result = suite.run("spmd", arrays, [500], workers=2, record=True)
    assert edges(result) == [("overlap", 0, 1)]
    assert [task.block_num for task in result.records[0]] == [500, 1]
    assert result.counters.tasks == 2


suite.entry(
    "many_spmd",
    """
    for (int64_t i = 0; i < n; ++i) {
        blocks(id::note_block, 3 + i % 5, false, {inout(x), inout(y)});
        blocks(id::note_block, 8, false, {no_dep(x), no_dep(y)});
    }
    """,
    tensors="x y",
    scalars="n",
)


@WORKERS
def test_many_tasks_of_many_blocks(options):
    x, y = zeros(8, dtype=np.int32), zeros(8, dtype=np.int32)
    suite.run("many_spmd", [x, y], [200], window=32, **options)
    assert x.tolist() == [200 + sum(block < 3 + i % 5 for i in range(200)) for block in range(8)]


def running_threads():
    """How many threads of this process, other than the calling one, are running or ready to."""
    tasks = [task for task in Path("/proc/self/task").iterdir() if task.name != str(threading.get_native_id())]
    return sum(task.joinpath("stat").read_text().rpartition(")")[2].split()[0] == "R" for task in tasks)


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="the states of threads are looked up in /proc")
def test_threads_sleep_between_runs():
    """Shares in a task that other threads have finished are no work."""
    for _ in range(10):
        arrays = [zeros(500, dtype=np.int32), zeros(500, dtype=np.int32), zeros(1, dtype=np.int32)]
        suite.run("spmd", arrays, [17], workers=4)
        quiet = 0
        for _ in range(1000):  # they may take their time, but not for ever
            quiet = 0 if running_threads() else quiet + 1
            if quiet == 3:
                break
            time.sleep(0.005)
        assert quiet == 3


# --- blocks that start together ---------------------------------------------------------------------------------------

suite.entry(
    "together",
    """
    blocks(id::meet, count, true, {inout(x), inout(y)});
    launch(id::sum_up, in(y), inout(z));
    """,
    tensors="x y z",
    scalars="count",
)


@pytest.mark.parametrize("workers", [1, 2, 4])
def test_blocks_that_start_together_may_wait_for_each_other(workers):
    for count in range(workers + 1):
        x, y, z = zeros(1, dtype=np.int32), zeros(4, dtype=np.int32), zeros(1, dtype=np.int32)
        suite.run("together", [x, y, z], [count], workers=workers)
        assert y.tolist() == [1] * count + [0] * (4 - count)
        assert z[0] == x[0] == count


def test_more_blocks_together_than_workers():
    arrays = [zeros(1, dtype=np.int32), zeros(4, dtype=np.int32), zeros(1, dtype=np.int32)]
    suite.fails(7, "together", arrays, [3], workers=2, match="3 blocks are to start together, and there are 2 workers")
    assert arrays[0][0] == 0


# --- kernels of several parts -----------------------------------------------------------------------------------------

suite.entry(
    "mixed",
    """
    CoreTaskArgs args;
    args.add_inout(mail, results);
    args.add_scalar(rounds);
    args.launch_spec.set_block_num(mail.shapes[0]);
    rt_submit_task(MixedKernels{id::cube, id::vector, mail.shapes[1] == 2 ? id::vector : INVALID_KERNEL_ID}, args);
    launch(id::sum_up, in(results), inout(sum));
    """,
    tensors="mail results sum",
    scalars="rounds",
)
suite.entry(
    "lanes",
    """
    for (const MixedKernels kernels : {MixedKernels{-1, id::note_lane, -1}, {-1, -1, id::note_lane},
                                       {-1, id::note_lane, id::note_lane}, {id::nop, -1, -1}}) {
        CoreTaskArgs args;
        args.add_inout(x);
        rt_submit_task(kernels, args);
    }
    """,
)
suite.entry(
    "ping_pong",
    """
    CoreTaskArgs args;
    args.add_inout(x);
    rt_submit_task(MixedKernels{id::ping, id::pong, INVALID_KERNEL_ID}, args);
    """,
)


@WORKERS
@pytest.mark.parametrize("lanes", [1, 2])
@pytest.mark.parametrize("blocks", [1, 3, 8])
def test_parts_exchange_data_in_both_directions(blocks, lanes, options):
    """They would wait for ever if one ran to its end before the other starts."""
    rounds = 10
    mail, results = zeros(blocks, lanes, 4, dtype=np.int32), zeros(blocks, lanes, dtype=np.int32)
    total = zeros(1, dtype=np.int32)
    suite.run("mixed", [mail, results, total], [rounds], **options)
    expected = [
        [sum(r * (lane + 1) + block for r in range(1, rounds + 1)) for lane in range(lanes)] for block in range(blocks)
    ]
    assert results.tolist() == expected
    assert total[0] == np.sum(expected)


@WORKERS
def test_lanes_know_which_they_are(options):
    x = zeros(2, dtype=np.int32)
    suite.run("lanes", [x], **options)
    assert x.tolist() == [2, 4]


@pytest.mark.parametrize("workers", [1, 2])
def test_python_kernels_as_parts(workers):
    x, there, back, seen = zeros(1), threading.Event(), threading.Event(), []

    def ping(args):
        args.tensor(0)[0] = 5
        there.set()
        assert back.wait(60)
        seen.append((args.lane, float(args.tensor(0)[0])))

    def pong(args):
        assert there.wait(60)
        args.tensor(0)[0] += 1
        back.set()

    suite.run("ping_pong", [x], kernels={"ping": ping, "pong": pong}, workers=workers)
    assert seen == [(0, 6)]
