// Tasks, and the buffers that they own.
//
// Who touches what: the orchestrator's thread makes, links, retires and reclaims records, so all fields without `atomic`
// that are written behind a task's submit belong to it. A worker reads a task's arguments, and meets the orchestrator and
// other workers at three atomics: `successors` and `pending` of tasks, `claims` of allocations.
#pragma once

#include <stdint.h>

#include <atomic>

#include "../pto_orchestration_api.h"
#include "writer_index.h"

namespace pto {

struct Allocation;

// Producer -> consumer, kept in the consumer's record: it lives until all its producers are done.
struct Link {
    Task* consumer;
    Link* next;
};

struct alignas(64) Task {
    std::atomic<Link*> successors;  // DONE when the task has completed
    std::atomic<int32_t> pending;   // producers that are not done (plus kSubmitting until all are linked)
    CoreKind kind;
    uint8_t tensor_count;
    uint8_t scalar_count;
    bool sync_start;
    MixedKernels kernels;
    uint32_t block_num;
    PTO2TaskId id;
    uint64_t number;  // in order of submission, over all rings
    uint32_t line;
    uint16_t hold_count;
    bool skipped;  // its predicate was false
    uint32_t tensors_at;  // bytes from the record's begin
    const CoreTaskPredicate* predicate;

    // Of the orchestrator.
    uint64_t mark;       // number of the task that last found this one as a producer
    Entry* entries;      // where it is registered as a writer
    Allocation* made;    // what it allocated, until that is reclaimed
    uint64_t ready_at;   // ns, when traced
    uint32_t bytes;      // of the record
    uint32_t link_count;

    static constexpr int32_t kSubmitting = 1 << 30;

    static Link* done_mark() { return reinterpret_cast<Link*>(uintptr_t{1}); }
    bool done() const { return successors.load(std::memory_order_acquire) == done_mark(); }

    // Behind the record: links, claims, tensors, scalars, predicate.
    char* behind() { return reinterpret_cast<char*>(this) + sizeof(Task); }
    Link* links() { return reinterpret_cast<Link*>(behind()); }
    Allocation** holds() { return reinterpret_cast<Allocation**>(behind() + link_count * sizeof(Link)); }
    ChipTensor* tensors() { return reinterpret_cast<ChipTensor*>(reinterpret_cast<char*>(this) + tensors_at); }
    uint64_t* scalars() { return reinterpret_cast<uint64_t*>(tensors() + tensor_count); }
};

struct alignas(64) Buffer {
    Allocation* allocation;
    uint64_t address;
    uint64_t size;
    uint32_t number;  // in order of creation
    bool manual_dep;
    WriterIndex writers;
    WriterIndex* readers = nullptr;  // made when first needed: most runs don't ask who reads
};

// The storage of one task, or an argument of the whole run.
//
// It lives while its scope is open or a task that was given it has not ended. `claims` starts at kOpen; the end of the
// scope takes that away and adds `given`, the number of tasks it was given to, each of which takes one away at its end.
// So the orchestrator counts without an atomic, and whoever brings the sum to zero knows that it was the last.
struct alignas(64) Allocation {
    uint64_t reserved[2];  // overwritten when the record is free
    std::atomic<int64_t> claims;
    Allocation* next_unused;  // in the list of those that workers found to be unused
    int64_t given;
    PTO2TaskId owner;   // invalid for arguments of the run
    uint64_t owner_number;  // of that task, in order of submission; all ones: it only allocates
    Task* owner_task;   // null when it is retired
    char* storage;
    uint64_t bytes;
    uint64_t mark;      // number of the task that was last given it
    Allocation* next_in_scope;
    uint32_t buffer_count;
    uint8_t ring;
    bool open;

    static constexpr int64_t kOpen = int64_t{1} << 40;

    Buffer* buffers() { return reinterpret_cast<Buffer*>(this + 1); }
    ChipTensor* tensors() { return reinterpret_cast<ChipTensor*>(buffers() + buffer_count); }
    static size_t size_for(uint32_t buffers) {
        return sizeof(Allocation) + buffers * (sizeof(Buffer) + sizeof(ChipTensor));
    }
};

inline char* address_of(const ChipTensor& tensor, const uint32_t* indices) {
    int64_t offset = static_cast<int64_t>(tensor.start_offset);
    for (uint32_t i = 0; i < tensor.ndims; ++i) offset += indices[i] * tensor.strides[i];
    return reinterpret_cast<char*>(tensor.buffer_addr) + offset * pto_element_size(tensor.dtype);
}

}  // namespace pto
