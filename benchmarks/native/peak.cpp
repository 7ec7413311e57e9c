// How fast the compute kernel is when nothing is in its way.
#include <atomic>
#include <thread>
#include <vector>

#include "case.h"

// Iterations a second of `threads` threads together, each of which does so many.
BENCH_EXPORT double bench_peak(uint64_t threads, uint64_t iterations) {
    std::atomic<uint64_t> waiting{threads};
    std::vector<double> seconds(threads);
    std::atomic<bool> wrong{false};
    const auto run = [&](uint64_t index) {
        waiting.fetch_sub(1);
        while (waiting.load() != 0) {
        }
        const double start = bench::now();
        if (bench::compute(iterations) < 0) wrong = true;
        seconds[index] = bench::now() - start;
    };
    std::vector<std::thread> others;
    for (uint64_t i = 1; i < threads; ++i) others.emplace_back(run, i);
    run(0);
    for (std::thread& each : others) each.join();
    double rate = 0;
    for (const double each : seconds) rate += static_cast<double>(iterations) / each;
    return wrong ? 0 : rate;
}
