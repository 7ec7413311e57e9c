// What the runtimes that are compared have in common: the cases, their kernels, and how a run is reported.
//
// Each runtime is a library with one function, `bench_run`, which runs one case once. The host checks what the kernels
// wrote, so that no task can be left out, run twice, or run before its producers.
#pragma once

#include <chrono>
#include <cstdint>

#define BENCH_EXPORT extern "C" __attribute__((visibility("default")))

namespace bench {

enum Kind : uint64_t {
    EMPTY,        // no task
    INDEPENDENT,  // n tasks
    PAIRS,        // n producers, each followed by its consumer
    CHAIN,        // n tasks, one behind the other
    BANDS,        // n tasks that write a row of `cells` each, then n that read them
    FRESH,        // n tasks, each with a buffer of kFreshBytes that lives as long as the task
    GRID,         // Task Bench: `steps` times `width` tasks, which read cells of the step before
};

constexpr uint64_t kRow = 8;  // words in a row of `cells`: a cache line
constexpr uint64_t kFreshBytes = 64 * 64 * sizeof(float);

// Mirrored in runtime.py; all fields have eight bytes.
struct Case {
    uint64_t kind;
    uint64_t workers;  // executing threads
    uint64_t n;
    uint64_t* cells;  // rows of kRow words
    uint64_t cell_rows;
    uint64_t* out;  // a word for each index
    uint64_t out_words;
    // GRID. Task (step, point) is number step * width + point. It writes row (step % fields) * width + point, and reads
    // the rows of some points of the step before.
    uint64_t width;
    uint64_t steps;
    uint64_t fields;
    uint64_t iterations;       // of the compute kernel
    const uint64_t* points;    // by step: how many points there are
    const uint64_t* reads_at;  // by task: where its list of points to read begins; and the end of the last
    const uint64_t* reads;
    const uint64_t* after_at;  // likewise: tasks that it must not overtake, since it overwrites what they touch
    const uint64_t* after;     // (task numbers; those that it reads from left out)

    uint64_t row_of(uint64_t step, uint64_t point) const { return (step % fields) * width + point; }
};

struct Result {
    double total;   // seconds
    double submit;  // part of it: until the last task was submitted, or the graph was built
    uint64_t counters[8];
};

inline double now() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// --- kernels --------------------------------------------------------------------------------------------------------

inline void independent(uint64_t* out, uint64_t index) { ++reinterpret_cast<uint8_t*>(out)[index]; }
inline void chain(uint64_t* cell, uint64_t index) { *cell = *cell * 3 + index; }
inline void produce(uint64_t* value, uint64_t index) { *value = 3 * index + 1; }
inline void consume(const uint64_t* value, uint64_t* out, uint64_t index) { out[index] += *value + 1; }
inline void fresh(uint64_t* buffer, uint64_t* out, uint64_t index) {
    buffer[0] = 3 * index + 1;
    out[index] += buffer[0] + 1;
}

// Multiply-adds on registers (fused where the CPU does so): 8 an iteration, in chains that don't wait for each other. The
// values go to a limit, so they are neither special nor slow. The sum is positive, which a compiler can't know. Not
// inlined, so that it is the same code everywhere.
__attribute__((noinline)) inline double compute(uint64_t iterations) {
    double a = 0, b = 1, c = 3, d = 4, e = 5, f = 6, g = 7, h = 8;  // 2 is the limit
    for (uint64_t k = 0; k < iterations; ++k) {
        a = a * 0.5 + 1.0;
        b = b * 0.5 + 1.0;
        c = c * 0.5 + 1.0;
        d = d * 0.5 + 1.0;
        e = e * 0.5 + 1.0;
        f = f * 0.5 + 1.0;
        g = g * 0.5 + 1.0;
        h = h * 0.5 + 1.0;
    }
    return ((a + b) + (c + d)) + ((e + f) + (g + h));
}

// `sum`: of what the task reads.
inline uint64_t grid_value(uint64_t sum, uint64_t task, uint64_t iterations) {
    const uint64_t wrong = compute(iterations) < 0 ? 1 : 0;
    return (sum + task + wrong) * 0x9e3779b97f4a7c15u;
}

inline void grid(const Case& what, uint64_t step, uint64_t point) {
    const uint64_t task = step * what.width + point;
    uint64_t sum = 0;
    for (uint64_t i = what.reads_at[task]; i < what.reads_at[task + 1]; ++i) {
        sum += what.cells[what.row_of(step - 1, what.reads[i]) * kRow];
    }
    what.cells[what.row_of(step, point) * kRow] = grid_value(sum, task, what.iterations);
}

}  // namespace bench
