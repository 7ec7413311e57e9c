// The cases on the task runtime of this package, as emitted orchestration code would have them.
#include <cstdio>
#include <cstring>
#include <utility>
#include <vector>

#include "case.h"
#include "pto_orchestration_api.h"
#include "runtime/options.h"

namespace {

using bench::Case;
using bench::Result;

const Case* given;
Result* report;
bool manual;

void* (*pto_run)(const pto::Program*, const pto::Options*, pto::Report*);
void (*pto_free)(void*);

template <typename T = uint64_t>
T* tensor(int64_t* args, uint32_t index) {
    return reinterpret_cast<const ChipTensor*>(args[index])->data<T>();
}

// --- kernels --------------------------------------------------------------------------------------------------------

void independent(int64_t* args) { bench::independent(given->out, static_cast<uint64_t>(args[1])); }
void chain(int64_t* args) { bench::chain(tensor(args, 0), static_cast<uint64_t>(args[1])); }
void produce(int64_t* args) { bench::produce(tensor(args, 0), static_cast<uint64_t>(args[1])); }
void consume(int64_t* args) { bench::consume(tensor(args, 0), given->out, static_cast<uint64_t>(args[1])); }
void fresh(int64_t* args) { bench::fresh(tensor(args, 0), given->out, static_cast<uint64_t>(args[1])); }

// Reads `Reads` tensors; the one that it writes stands in front of them.
template <uint32_t Reads>
void grid(int64_t* args) {
    uint64_t sum = 0;
    for (uint32_t i = 1; i <= Reads; ++i) sum += *tensor(args, i);
    *tensor(args, 0) =
        bench::grid_value(sum, static_cast<uint64_t>(args[Reads + 1]), static_cast<uint64_t>(args[Reads + 2]));
}

enum : int32_t { INDEPENDENT_KERNEL, CHAIN_KERNEL, PRODUCE_KERNEL, CONSUME_KERNEL, FRESH_KERNEL, GRID_KERNEL };

const pto::KernelInfo kernels[] = {
    {independent, "independent"}, {chain, "chain"},     {produce, "produce"},   {consume, "consume"},
    {fresh, "fresh"},             {grid<0>, "grid0"},   {grid<1>, "grid1"},     {grid<2>, "grid2"},
    {grid<3>, "grid3"},           {grid<4>, "grid4"},   {grid<5>, "grid5"},     {grid<6>, "grid6"},
    {grid<7>, "grid7"},           {grid<8>, "grid8"},
};

// --- orchestrations -------------------------------------------------------------------------------------------------

ChipTensor row_of(const ChipTensor& cells, uint64_t row) {
    const uint32_t offsets[2] = {static_cast<uint32_t>(row), 0};
    const uint32_t shapes[2] = {1, bench::kRow};
    return cells.view(shapes, offsets);
}

void submit_independent(const ChipTensor& cells) {
    PTO2_SCOPE() {
        for (uint64_t i = 0; i < given->n; ++i) {
            CoreTaskArgs params;
            params.add_input(cells);
            params.add_scalar(i);
            rt_submit_aiv_task(INDEPENDENT_KERNEL, params);
        }
    }
}

void submit_chain(const ChipTensor& cells) {
    PTO2_SCOPE() {
        for (uint64_t i = 0; i < given->n; ++i) {
            CoreTaskArgs params;
            params.add_inout(cells);
            params.add_scalar(i);
            rt_submit_aiv_task(CHAIN_KERNEL, params);
        }
    }
}

void submit_pairs() {
    const uint32_t shape[1] = {bench::kRow};
    for (uint64_t i = 0; i < given->n; ++i) {
        PTO2_SCOPE() {
            const TensorCreateInfo info(shape, 1, DataType::UINT64);
            CoreTaskArgs produce_params;
            produce_params.add_output(info);
            produce_params.add_scalar(i);
            const TaskOutputTensors made = rt_submit_aiv_task(PRODUCE_KERNEL, produce_params);
            CoreTaskArgs consume_params;
            consume_params.add_input(made.get_ref(0));
            consume_params.add_scalar(i);
            rt_submit_aiv_task(CONSUME_KERNEL, consume_params);
        }
    }
}

void submit_bands(const ChipTensor& cells) {
    PTO2_SCOPE() {
        for (uint64_t i = 0; i < given->n; ++i) {
            const ChipTensor row = row_of(cells, i);
            CoreTaskArgs params;
            params.add_output(row);
            params.add_scalar(i);
            rt_submit_aiv_task(PRODUCE_KERNEL, params);
        }
        for (uint64_t i = 0; i < given->n; ++i) {
            const ChipTensor row = row_of(cells, i);
            CoreTaskArgs params;
            params.add_input(row);
            params.add_scalar(i);
            rt_submit_aiv_task(CONSUME_KERNEL, params);
        }
    }
}

void submit_fresh() {
    const uint32_t shape[2] = {64, 64};
    for (uint64_t i = 0; i < given->n; ++i) {
        PTO2_SCOPE() {
            const TensorCreateInfo info(shape, 2, DataType::FLOAT32);
            CoreTaskArgs params;
            params.add_output(info);
            params.add_scalar(i);
            rt_submit_aiv_task(FRESH_KERNEL, params);
        }
    }
}

// `ids`: of the tasks of two steps; null in an AUTO scope, where only the tasks of `after` are told, since the rules find
// no write behind a read.
void submit_grid_task(const ChipTensor& cells, uint64_t step, uint64_t point, PTO2TaskId* ids) {
    const uint64_t task = step * given->width + point;
    const auto id_of = [&](uint64_t number) -> PTO2TaskId& { return ids[number % (2 * given->width)]; };
    const ChipTensor own = row_of(cells, given->row_of(step, point));
    ChipTensor inputs[bench::kRow];
    PTO2TaskId earlier[3 * bench::kRow];
    uint32_t reads = 0, count = 0;
    CoreTaskArgs params;
    if (given->fields == 2) {
        params.add_inout(own);
    } else {
        params.add_output(own);
    }
    for (uint64_t i = given->reads_at[task]; i < given->reads_at[task + 1]; ++i) {
        inputs[reads] = row_of(cells, given->row_of(step - 1, given->reads[i]));
        params.add_input(inputs[reads++]);
        if (manual) earlier[count++] = id_of(task - point - given->width + given->reads[i]);
    }
    for (uint64_t i = given->after_at[task]; i < given->after_at[task + 1]; ++i) earlier[count++] = id_of(given->after[i]);
    if (count != 0) params.set_dependencies(earlier, count);
    params.add_scalar(task);
    params.add_scalar(given->iterations);
    id_of(task) = rt_submit_aiv_task(GRID_KERNEL + static_cast<int32_t>(reads), params).task_id();
}

void submit_grid(const ChipTensor& cells) {
    std::vector<PTO2TaskId> ids(2 * given->width);
    PTO2_SCOPE(manual ? PTO2ScopeMode::MANUAL : PTO2ScopeMode::AUTO) {
        for (uint64_t step = 0; step < given->steps; ++step) {
            for (uint64_t point = 0; point < given->points[step]; ++point) {
                submit_grid_task(cells, step, point, ids.data());
            }
        }
    }
}

void entry(const ChipTaskArgs& args) {
    const double start = bench::now();
    const ChipTensor& cells = args.tensor(0).ref();
    switch (given->kind) {
        case bench::INDEPENDENT:
            submit_independent(cells);
            break;
        case bench::PAIRS:
            submit_pairs();
            break;
        case bench::CHAIN:
            submit_chain(cells);
            break;
        case bench::BANDS:
            submit_bands(cells);
            break;
        case bench::FRESH:
            submit_fresh();
            break;
        case bench::GRID:
            submit_grid(cells);
            break;
    }
    report->submit = bench::now() - start;
}

}  // namespace

// For the host's own way of running.
BENCH_EXPORT void nothing(const ChipTaskArgs&) {}

BENCH_EXPORT void bench_bind(decltype(pto_run) run, decltype(pto_free) free) {
    pto_run = run;
    pto_free = free;
}

// `variant`: 1 for explicit dependencies in a MANUAL scope (GRID). False: the run failed.
BENCH_EXPORT bool bench_run(const Case* what, uint64_t variant, Result* result) {
    given = what;
    report = result;
    manual = variant == 1;
    pto::TensorArgument cells{};
    cells.data = cells.base = what->cells;
    cells.bytes = what->cell_rows * bench::kRow * sizeof(uint64_t);
    cells.ndims = 2;
    cells.dtype = static_cast<uint32_t>(DataType::UINT64);
    cells.shapes[0] = static_cast<uint32_t>(what->cell_rows);
    cells.shapes[1] = bench::kRow;
    cells.strides[0] = bench::kRow;
    cells.strides[1] = 1;
    pto::Program program{};
    program.entry = entry;
    program.kernels = kernels;
    program.kernel_count = sizeof(kernels) / sizeof(kernels[0]);
    program.tensor_count = 1;
    program.tensors = &cells;
    pto::Options options{};
    options.workers = options.clusters = static_cast<uint32_t>(what->workers);
    for (int ring = 0; ring < 4; ++ring) {
        options.window[ring] = 16384;
        options.heap[ring] = uint64_t{256} << 20;
    }
    pto::Report ended;
    const double start = bench::now();
    void* handle = pto_run(&program, &options, &ended);
    pto_free(handle);
    result->total = bench::now() - start;
    const pto::Counters& counters = ended.counters;
    uint64_t edges = 0, window = 0;
    for (const uint64_t each : counters.edges) edges += each;
    for (const uint64_t each : counters.window_high_water) window = window < each ? each : window;
    const uint64_t shown[8] = {counters.tasks, edges,           counters.lookups, counters.visited,
                               counters.waits, counters.helped, counters.stolen,  window};
    memcpy(result->counters, shown, sizeof(shown));
    if (ended.code != 0) fprintf(stderr, "%s\n", ended.message);
    return ended.code == 0;
}
