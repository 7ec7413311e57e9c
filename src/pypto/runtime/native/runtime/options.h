// The plain structs through which the host starts a run and learns how it went. Mirrored in native_library.py.
#pragma once

#include <stdint.h>

#include "../pto_orchestration_api.h"

namespace pto {

struct KernelInfo {
    PtoKernel function;
    const char* name;
    const int64_t* parts;  // what it touches of its arguments (see parts.h); null: all of it
};

struct TensorArgument {
    void* data;
    uint64_t bytes;  // of the memory that the view is in, from `base` on
    void* base;
    uint32_t ndims;
    uint32_t dtype;
    uint32_t shapes[PTO_MAX_DIMS];
    uint32_t unused;
    int64_t strides[PTO_MAX_DIMS];  // elements
};

struct Program {
    void (*entry)(const ChipTaskArgs&);
    PTO2OrchestrationConfig (*config)(const ChipTaskArgs&);
    const KernelInfo* kernels;
    uint32_t kernel_count;
    uint32_t tensor_count;
    uint32_t scalar_count;
    uint32_t unused;
    const TensorArgument* tensors;
    const uint64_t* scalars;
};

struct Options {
    uint32_t workers;         // threads that execute, the calling one included
    uint32_t window[4];       // tasks in flight, by ring
    uint32_t strict_window;   // a task keeps its place in the window until its scope ends
    uint64_t heap[4];         // bytes, by ring
    uint32_t strict_heap;     // 1: an allocation that can never fit is an error; 0: the heap grows
    uint32_t random_schedule; // 1: one thread, ready tasks in a random order
    uint64_t seed;
    uint32_t record;          // 1: tasks, edges, arguments; 2: what kernels say that they touch as well
    uint32_t trace;           // 1: times as well
    uint32_t fill;            // 1: fresh buffers are filled with NaN or a pattern
    uint32_t order_reads;     // 1: a task that writes waits for earlier readers of what it writes
    uint32_t clusters;        // what rt_available_cluster_count() says
    double timeout;           // seconds without progress after which the run fails; 0: none
};

struct Counters {
    uint64_t tasks;
    uint64_t allocations;       // tasks that only allocate
    uint64_t edges[6];          // by Reason
    uint64_t lookups;           // in writer indexes
    uint64_t visited;           // entries and nodes looked at by them
    uint64_t allocated_bytes;
    uint64_t heap_high_water[4];
    uint64_t window_high_water[4];
    uint64_t heap_grown;        // allocations beyond a heap that may grow
    uint64_t waits;             // of the orchestrator, for room or data
    uint64_t helped;            // tasks that the orchestrator's thread executed
    uint64_t stolen;            // batches that workers took from others
};

struct Report {
    int32_t code;  // 0: all is well
    uint32_t line;   // of the orchestration source; 0: none
    int64_t task;    // number of the task in question; -1: none
    int32_t kernel;  // -1: none
    uint32_t stuck;  // 1: threads that never end were left behind
    char message[2048];
    Counters counters;
};

}  // namespace pto
