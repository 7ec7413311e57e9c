// What a recorded run leaves: tasks, edges, accesses. Flat structs, which the host reads as arrays.
#pragma once

#include <cstdint>
#include <vector>

#include "region.h"

namespace pto {

enum class Reason : uint32_t { ALLOCATION, OVERLAP, EXPLICIT, PREDICATE, SYNC };

struct TaskRecord {
    uint64_t number;
    uint64_t id;
    int32_t kernels[3];
    uint32_t kind;
    uint32_t line;
    uint32_t block_num;
    uint32_t skipped;  // its predicate was false
    uint32_t unused;
    uint64_t submitted;
    uint64_t ready;
};

struct EdgeRecord {
    uint64_t producer;
    uint64_t consumer;
    uint32_t reason;
    uint32_t buffer;    // number, for ALLOCATION and OVERLAP
    int64_t low, high;  // bytes that the consumer uses, within the buffer
    int64_t producer_low, producer_high;
};

// One argument of one task, or an access of the orchestration itself (task = all ones).
struct AccessRecord {
    uint64_t task;
    uint32_t buffer;
    uint32_t tag;   // pto::Tag; for the orchestration INPUT or INOUT
    uint64_t after;  // tasks submitted before it
    Region region;
};

struct BufferRecord {
    uint32_t number;
    int32_t argument;  // of the run; -1: allocated by a task
    uint64_t owner;    // number of that task
    uint64_t size;
};

struct Records {
    std::vector<TaskRecord> tasks;
    std::vector<EdgeRecord> edges;
    std::vector<AccessRecord> accesses;
    std::vector<BufferRecord> buffers;
    void clear() {
        tasks.clear();
        edges.clear();
        accesses.clear();
        buffers.clear();
    }
};

}  // namespace pto
