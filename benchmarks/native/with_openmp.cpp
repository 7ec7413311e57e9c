// The cases as OpenMP tasks with depend clauses.
#include <omp.h>

#include <cstdlib>

#include "case.h"

namespace {

using bench::Case;
using bench::kRow;

void submit_pairs(const Case& what) {
    uint64_t* cells = what.cells;
    for (uint64_t i = 0; i < what.n; ++i) {
#pragma omp task firstprivate(i, cells) depend(out : cells[i * kRow])
        bench::produce(&cells[i * kRow], i);
#pragma omp task firstprivate(i, cells) shared(what) depend(in : cells[i * kRow])
        bench::consume(&cells[i * kRow], what.out, i);
    }
}

void submit_bands(const Case& what) {
    uint64_t* cells = what.cells;
    for (uint64_t i = 0; i < what.n; ++i) {
#pragma omp task firstprivate(i, cells) depend(out : cells[i * kRow])
        bench::produce(&cells[i * kRow], i);
    }
    for (uint64_t i = 0; i < what.n; ++i) {
#pragma omp task firstprivate(i, cells) shared(what) depend(in : cells[i * kRow])
        bench::consume(&cells[i * kRow], what.out, i);
    }
}

void submit_grid_task(const Case& what, uint64_t step, uint64_t point) {
    const uint64_t task = step * what.width + point;
    const uint64_t* reads = what.reads + what.reads_at[task];
    const uint64_t count = what.reads_at[task + 1] - what.reads_at[task];
    const uint64_t own = what.row_of(step, point) * kRow;
    if (what.fields != 2) {  // every task has a row of its own, and none reads
#pragma omp task firstprivate(step, point) shared(what)
        bench::grid(what, step, point);
    } else if (count == 0) {
#pragma omp task firstprivate(step, point) shared(what) depend(inout : what.cells[own])
        bench::grid(what, step, point);
    } else {
        // What overwrites waits for who reads by the rules of `inout`.
#pragma omp task firstprivate(step, point) shared(what) depend(inout : what.cells[own]) \
    depend(iterator(uint64_t k = 0 : count), in : what.cells[what.row_of(step - 1, reads[k]) * kRow])
        bench::grid(what, step, point);
    }
}

void submit(const Case& what) {
    switch (what.kind) {
        case bench::INDEPENDENT:
            for (uint64_t i = 0; i < what.n; ++i) {
#pragma omp task firstprivate(i) shared(what)
                bench::independent(what.out, i);
            }
            break;
        case bench::PAIRS:
            submit_pairs(what);
            break;
        case bench::CHAIN:
            for (uint64_t i = 0; i < what.n; ++i) {
                uint64_t* cells = what.cells;
#pragma omp task firstprivate(i, cells) depend(inout : cells[0])
                bench::chain(cells, i);
            }
            break;
        case bench::BANDS:
            submit_bands(what);
            break;
        case bench::FRESH:
            for (uint64_t i = 0; i < what.n; ++i) {
                auto* buffer = static_cast<uint64_t*>(aligned_alloc(64, bench::kFreshBytes));
#pragma omp task firstprivate(i, buffer) shared(what)
                {
                    bench::fresh(buffer, what.out, i);
                    free(buffer);
                }
            }
            break;
        case bench::GRID:
            for (uint64_t step = 0; step < what.steps; ++step) {
                for (uint64_t point = 0; point < what.points[step]; ++point) submit_grid_task(what, step, point);
            }
            break;
    }
}

}  // namespace

BENCH_EXPORT bool bench_run(const Case* given, uint64_t, bench::Result* result) {
    const Case& what = *given;
    const double start = bench::now();
#pragma omp parallel num_threads(static_cast<int>(what.workers)) default(shared)
#pragma omp single
    {
        submit(what);
        result->submit = bench::now() - start;
    }
    result->total = bench::now() - start;
    return true;
}
