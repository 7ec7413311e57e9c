// Kernels that misbehave, for the tests of isolation and timeouts.
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <chrono>
#include <thread>

#include "pto_orchestration_api.h"

namespace {

volatile int64_t zero = 0;

// The frames can't be merged into one: each uses the result of the next.
__attribute__((noinline)) int64_t deeper(int64_t depth) {
    volatile char room[4096];
    room[0] = static_cast<char>(depth);
    return deeper(depth + 1) + room[0];
}

}  // namespace

PTO_EXPORT void fine(int64_t* args) {
    const auto& tensor = *reinterpret_cast<const ChipTensor*>(args[0]);
    for (uint32_t i = 0; i < tensor.shapes[0]; ++i) tensor.data<int64_t>()[i * tensor.strides[0]] += 1;
}
PTO_EXPORT void segmentation(int64_t* args) { *reinterpret_cast<volatile int64_t*>(args[1]) = 1; }
PTO_EXPORT void division(int64_t* args) { args[1] /= zero; }
PTO_EXPORT void aborts(int64_t*) { abort(); }
PTO_EXPORT void killed(int64_t*) {
    kill(getpid(), SIGKILL);
    for (;;) std::this_thread::sleep_for(std::chrono::seconds(1));
}
PTO_EXPORT void exits(int64_t*) { _exit(3); }
PTO_EXPORT void overflows(int64_t* args) { args[1] = deeper(0); }
PTO_EXPORT void throws(int64_t*) { throw 1; }
PTO_EXPORT void sleeps(int64_t* args) { std::this_thread::sleep_for(std::chrono::milliseconds(args[1])); }
PTO_EXPORT void never_ends(int64_t*) {
    for (;;) std::this_thread::sleep_for(std::chrono::seconds(1));
}
PTO_EXPORT void pid(int64_t* args) { *reinterpret_cast<const ChipTensor*>(args[0])->data<int64_t>() = getpid(); }

// Task 0 is fine; task 1 runs kernel `scalar(0)` with `scalar(1)`; task 2 is fine again.
PTO_EXPORT void three_tasks(const ChipTaskArgs& args) {
    for (int i = 0; i < 3; ++i) {
        CoreTaskArgs task;
        task.add_inout(args.tensor(0).ref());
        task.add_scalar(args.scalar(1));
        const int32_t kernel = i == 1 ? from_u64<int32_t>(args.scalar(0)) : 0;
#line 100 "three_tasks"
        rt_submit_aiv_task(kernel, task);
    }
}
// One task for each tensor.
PTO_EXPORT void each_tensor(const ChipTaskArgs& args) {
    for (uint32_t i = 0; i < args.tensor_count(); ++i) {
        CoreTaskArgs task;
        task.add_inout(args.tensor(i).ref());
        rt_submit_aiv_task(0, task);
    }
}
PTO_EXPORT void crash_between_tasks(const ChipTaskArgs& args) {
    CoreTaskArgs task;
    task.add_inout(args.tensor(0).ref());
#line 200 "crash_between_tasks"
    rt_submit_aiv_task(0, task);
    *reinterpret_cast<volatile int64_t*>(16) = 1;
}
PTO_EXPORT void endless(const ChipTaskArgs&) {
    for (;;) std::this_thread::sleep_for(std::chrono::seconds(1));
}
