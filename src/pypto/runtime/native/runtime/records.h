// What a recorded run leaves: tasks, edges, accesses. Flat structs, which the host reads as arrays.
#pragma once

#include <stdint.h>

#include "plain.h"
#include "region.h"

namespace pto {

// A region as it is recorded: what it does not use is zero, so that equal records have equal bytes.
inline Region recorded(const Region& region) {
    Region made = region;
    for (uint32_t i = made.levels; i < PTO_MAX_DIMS; ++i) made.stride[i] = made.extent[i] = 0;
    return made;
}

enum class Reason : uint32_t { ALLOCATION, OVERLAP, EXPLICIT, PREDICATE, SYNC, OVERWRITE };

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
    uint32_t buffer;  // number; all ones for EXPLICIT
    Region used;      // by the consumer, for OVERLAP
    Region written;   // by the producer
};

// One argument of one task, or an access of the orchestration itself (task = all ones).
struct AccessRecord {
    uint64_t task;
    uint32_t buffer;
    uint32_t tag;   // pto::Tag; for the orchestration INPUT or INOUT
    uint64_t after;  // tasks submitted before it
    Region region;
};

// Bytes that a kernel said it touches. A task that says so for any has said it for all.
struct TouchRecord {
    uint64_t task;
    uint32_t buffer;
    uint32_t how;  // PtoAccess
    Region region;
};

struct BufferRecord {
    uint32_t number;
    int32_t argument;  // of the run; -1: allocated by a task
    uint64_t owner;    // number of that task
    uint64_t size;
    uint32_t dtype;  // and shape: as it was made
    uint32_t ndims;
    uint32_t shapes[PTO_MAX_DIMS];
    uint32_t manual_dep;
};

struct Records {
    List<TaskRecord> tasks;
    List<EdgeRecord> edges;
    List<AccessRecord> accesses;
    List<BufferRecord> buffers;
    List<TouchRecord> touches;
};

}  // namespace pto
