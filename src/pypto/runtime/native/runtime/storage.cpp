// Buffers: the run's arguments, and what tasks are given.

#include <stdio.h>

#include "run.h"

namespace pto {

// --- arguments of the run -------------------------------------------------------------------------------------------

// Views of overlapping memory are views of one buffer.
bool Run::take_arguments() {
    const uint32_t count = program_.tensor_count;
    const auto begin = [&](uint32_t i) { return reinterpret_cast<uint64_t>(program_.tensors[i].base); };
    const auto end = [&](uint32_t i) { return begin(i) + program_.tensors[i].bytes; };
    List<uint32_t> order;  // by begin: sorted by insertion, since there are few
    order.resize(count);
    for (uint32_t i = 0; i < count; ++i) {
        uint32_t at = i;
        for (; at > 0 && begin(i) < begin(order[at - 1]); --at) order[at] = order[at - 1];
        order[at] = i;
    }
    arguments_.resize(count);
    for (uint32_t at = 0; at < count;) {
        uint64_t high = end(order[at]);
        uint32_t next = at + 1;
        while (next < count && begin(order[next]) < high) high = most(high, end(order[next++]));
        Allocation* allocation =
            static_cast<Allocation*>(crew_.allocation_records.take(Allocation::size_for(1)));
        new (allocation) Allocation{};
        allocation->owner = PTO2TaskId::invalid();
        allocation->owner_number = ~uint64_t{0};
        allocation->buffer_count = 1;
        allocation->open = true;
        allocation->bytes = high - begin(order[at]);
        Buffer* buffer = new (allocation->buffers()) Buffer{};
        buffer->allocation = allocation;
        buffer->address = begin(order[at]);
        buffer->size = allocation->bytes;
        buffer->number = buffers_++;
        argument_allocations_.push_back(allocation);
        const uint32_t first = order[at];
        for (; at < next; ++at) {
            const TensorArgument& given = program_.tensors[order[at]];
            ChipTensor& tensor = arguments_[order[at]];
            tensor.buffer_addr = buffer->address;
            tensor.buffer_size = buffer->size;
            tensor.owner_task_id = PTO2TaskId::invalid();
            tensor.buffer = buffer;
            tensor.dtype = static_cast<DataType>(given.dtype);
            const uint32_t size = pto_element_size(tensor.dtype);
            const uint64_t distance = reinterpret_cast<uint64_t>(given.data) - buffer->address;
            if (size == 0 || distance % size != 0) {
                char text[160];
                snprintf(text, sizeof(text), "argument %u overlaps another one at a distance of %llu bytes, which is no "
                         "multiple of its element size", order[at], static_cast<unsigned long long>(distance));
                fail(ERROR_ARGUMENTS, text);
                return false;
            }
            tensor.start_offset = distance / size;
            tensor.ndims = given.ndims;
            tensor.manual_dep = false;
            for (uint32_t i = 0; i < PTO_MAX_DIMS; ++i) {
                tensor.shapes[i] = i < given.ndims ? given.shapes[i] : 1;
                tensor.strides[i] = i < given.ndims ? given.strides[i] : 1;
            }
            tensor.is_contiguous = tensor.contiguous_by_strides();
        }
        if (options_.record) record_buffer(arguments_[first], static_cast<int32_t>(first), ~uint64_t{0});
    }
    chip_args_.tensors_ = arguments_.data();
    chip_args_.scalars_ = program_.scalars;
    chip_args_.tensor_count_ = count;
    chip_args_.scalar_count_ = program_.scalar_count;
    return true;
}

// --- fresh buffers --------------------------------------------------------------------------------------------------

// `owner`: the number of the task, or all ones where nobody runs.
Allocation* Run::new_allocation(const TensorCreateInfo* const* infos, uint32_t count, PTO2TaskId id,
                                       uint64_t owner, uint32_t line) {
    uint64_t sizes[PTO_MAX_TENSORS], places[PTO_MAX_TENSORS];
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < count; ++i) {
        uint64_t elements = 1;
        for (uint32_t d = 0; d < infos[i]->ndims; ++d) elements *= infos[i]->shapes[d];
        if (pto_element_size(infos[i]->dtype) == 0) {
            fail(ERROR_ARGUMENTS, "a tensor is created with an unknown element type", line);
            return nullptr;
        }
        sizes[i] = elements * pto_element_size(infos[i]->dtype);
        places[i] = bytes;
        bytes += (sizes[i] + Storage::kAlignment - 1) / Storage::kAlignment * Storage::kAlignment;
    }
    const uint32_t ring_number = id.ring();
    Ring& ring = rings_[ring_number];
    const size_t size = Storage::rounded(bytes);
    char* storage = take_storage(ring_number, size, line);
    if (storage == nullptr) return nullptr;
    ring.open_bytes += size;
    counters_.allocated_bytes += size;

    Allocation* made = static_cast<Allocation*>(crew_.allocation_records.take(Allocation::size_for(count)));
    new (&made->claims) std::atomic<int64_t>(Allocation::kOpen);
    made->given = 0;
    made->owner = id;
    made->owner_number = owner;
    made->owner_task = nullptr;
    made->storage = storage;
    made->bytes = size;
    made->mark = 0;
    made->buffer_count = count;
    made->ring = static_cast<uint8_t>(ring_number);
    made->open = true;
    made->next_in_scope = scopes_.back().allocations;
    scopes_.back().allocations = made;
    for (uint32_t i = 0; i < count; ++i) {
        const TensorCreateInfo& info = *infos[i];
        Buffer* buffer = new (made->buffers() + i) Buffer{};
        buffer->allocation = made;
        buffer->address = reinterpret_cast<uint64_t>(storage + places[i]);
        buffer->size = sizes[i];
        buffer->number = buffers_++;
        buffer->manual_dep = info.manual_dep;
        ChipTensor& tensor = made->tensors()[i];
        tensor.buffer_addr = buffer->address;
        tensor.buffer_size = buffer->size;
        tensor.owner_task_id = id;
        tensor.buffer = buffer;
        tensor.start_offset = 0;
        tensor.ndims = info.ndims;
        tensor.dtype = info.dtype;
        tensor.manual_dep = info.manual_dep;
        tensor.is_contiguous = true;
        int64_t stride = 1;
        for (uint32_t d = info.ndims; d-- > 0;) {
            tensor.shapes[d] = info.shapes[d];
            tensor.strides[d] = stride;
            stride *= info.shapes[d];
        }
        if (options_.record) record_buffer(tensor, -1, owner);
        if (info.has_initial_value || options_.fill) fill(storage + places[i], info, sizes[i], options_.fill != 0);
    }
    return made;
}

// A run of equal elements: the initial value, else a pattern that shows: NaN for floats, 0xA5 bytes for integers.
void Run::fill(char* place, const TensorCreateInfo& info, uint64_t bytes, bool debug) {
    const uint32_t size = pto_element_size(info.dtype);
    uint64_t bits = info.initial_value;
    if (!info.has_initial_value) {
        if (!debug) return;
        switch (info.dtype) {
            case DataType::FLOAT32:
                bits = 0x7fc00000u;
                break;
            case DataType::FLOAT16:
                bits = 0x7e00u;
                break;
            case DataType::BFLOAT16:
                bits = 0x7fc0u;
                break;
            case DataType::FP8E4M3FN:
            case DataType::FP8E5M2:
            case DataType::FP8E8M0:
                bits = info.dtype == DataType::FP8E8M0 ? 0xffu : 0x7fu;
                break;
            default:
                bits = 0xa5a5a5a5a5a5a5a5u;
        }
    }
    if (bits == 0) {
        memset(place, 0, bytes);
        return;
    }
    for (uint64_t at = 0; at < bytes; at += size) memcpy(place + at, &bits, size);
}

char* Run::take_storage(uint32_t ring_number, size_t size, uint32_t line) {
    Storage& storage = crew_.storage[ring_number];
    Ring& ring = rings_[ring_number];
    reclaim_unused();
    if (storage.live() + size > ring.budget) {
        if (ring.open_bytes + size > ring.budget) {
            // What keeps the room belongs to scopes that are still open: nothing can ever free it.
            if (options_.strict_heap) {
                char text[400];
                snprintf(text, sizeof(text),
                         "ring %u has no room for %zu bytes: its heap is %llu bytes, %llu of them are held by scopes that are "
                         "still open (the innermost was opened in line %u). Use a larger ring_heap, or a scope that ends "
                         "before this allocation",
                         ring_number, size, static_cast<unsigned long long>(ring.budget),
                         static_cast<unsigned long long>(ring.open_bytes), scopes_.back().line);
                fail(ERROR_HEAP, text, line);
                return nullptr;
            }
            ++counters_.heap_grown;
        } else {
            ++counters_.waits;
            const Wait end = help_until(ERROR_SCHEDULER, line, [&] {
                reclaim_unused();
                return storage.live() + size <= ring.budget;
            });
            if (end != Wait::DONE) return nullptr;
        }
    }
    char* made = storage.take(size);
    if (made == nullptr) {
        char text[160];
        snprintf(text, sizeof(text), "the system has no memory for a buffer of %zu bytes", size);
        fail(ERROR_HEAP, text, line);
    }
    return made;
}

void Run::reclaim_unused() {
    if (unused_.load(std::memory_order_relaxed) == nullptr) return;
    Allocation* each = unused_.exchange(nullptr, std::memory_order_acquire);
    while (each != nullptr) {
        Allocation* following = each->next_unused;
        reclaim(each);
        each = following;
    }
}

void Run::reclaim(Allocation* allocation) {
    for (uint32_t i = 0; i < allocation->buffer_count; ++i) {
        Buffer& buffer = allocation->buffers()[i];
        const auto forget = [&](Entry* entry) {
            if (entry->task == nullptr) {
                crew_.small_records.give(entry, sizeof(Entry));
            } else {
                entry->buffer = nullptr;
            }
        };
        if (!buffer.writers.empty()) buffer.writers.all(forget);
        buffer.writers.~WriterIndex();
        if (buffer.readers != nullptr) {
            buffer.readers->all(forget);
            delete buffer.readers;
        }
    }
    if (allocation->owner_task != nullptr) allocation->owner_task->made = nullptr;
    if (allocation->storage != nullptr) crew_.storage[allocation->ring].give(allocation->storage, allocation->bytes);
    allocation->open = false;
    crew_.allocation_records.give(allocation, Allocation::size_for(allocation->buffer_count));
}

// --- elements -------------------------------------------------------------------------------------------------------

void* Run::element(const ChipTensor& tensor, uint32_t ndims, const uint32_t* indices, uint32_t size, bool write,
                          uint32_t line) {
    if (fatal() || !usable(tensor, line)) return nullptr;
    char text[200];
    if (ndims != tensor.ndims || size != pto_element_size(tensor.dtype)) {
        snprintf(text, sizeof(text), "element access with %u indices and %u bytes to a tensor of %u dimensions and %u bytes",
                 ndims, size, tensor.ndims, pto_element_size(tensor.dtype));
        fail(ERROR_ARGUMENTS, text, line);
        return nullptr;
    }
    for (uint32_t i = 0; i < ndims; ++i) {
        if (indices[i] >= tensor.shapes[i]) {
            snprintf(text, sizeof(text), "element access: index %u of dimension %u, which has %u", indices[i], i,
                     tensor.shapes[i]);
            fail(ERROR_ARGUMENTS, text, line);
            return nullptr;
        }
    }
    char* place = address_of(tensor, indices);
    Region region;
    region.low = static_cast<int64_t>(reinterpret_cast<uint64_t>(place) - tensor.buffer_addr);
    region.run = size;
    region.high = region.low + size;
    // The owner and all overlapping writers; for a write also whoever was given the element.
    List<Task*> awaited;
    Allocation* allocation = tensor.buffer->allocation;
    if (allocation->owner_task != nullptr) awaited.push_back(allocation->owner_task);
    ++counters_.lookups;
    tensor.buffer->writers.overlapping(region, counters_.visited, [&](Entry* entry) {
        if (entry->task != nullptr) awaited.push_back(entry->task);
    });
    if (write) {
        for (Ring& ring : rings_) {
            for (uint32_t number = ring.head; number != ring.next; ++number) {
                Task* task = ring.table[number & ring.mask];
                if (task == nullptr || task->done()) continue;
                for (uint32_t i = 0; i < task->tensor_count; ++i) {
                    const ChipTensor& given = task->tensors()[i];
                    if (given.buffer == tensor.buffer && overlaps(Region::of(given), region)) awaited.push_back(task);
                }
                if (task->predicate != nullptr && task->predicate->operand.tensor->buffer == tensor.buffer) {
                    awaited.push_back(task);
                }
            }
        }
    }
    if (options_.record) record_host_access(tensor, region, write);
    const auto ready = [&] {
        while (!awaited.empty() && awaited.back()->done()) awaited.pop_back();
        return awaited.empty();
    };
    if (!ready()) {
        ++counters_.waits;
        if (help_until(ERROR_DATA_TIMEOUT, line, ready) != Wait::DONE) return nullptr;
    }
    return place;
}

// `tensor`: the whole buffer, as it was made.
void Run::record_buffer(const ChipTensor& tensor, int32_t argument, uint64_t owner) {
    const Buffer& buffer = *tensor.buffer;
    BufferRecord made{buffer.number, argument, owner, buffer.size, static_cast<uint32_t>(tensor.dtype), tensor.ndims, {},
                      buffer.manual_dep};
    for (uint32_t i = 0; i < tensor.ndims; ++i) made.shapes[i] = tensor.shapes[i];
    records_.buffers.push_back(made);
}

void Run::touch(const ChipTensor& view, PtoAccess how) {
    if (options_.record < 2 || executing == nullptr) return;
    const TouchRecord made{executing->number, view.buffer->number, static_cast<uint32_t>(how),
                           recorded(Region::of(view))};
    const Hold hold(touch_lock_);
    records_.touches.push_back(made);
}

// When recorded: each task behind it is ordered after the tasks that it waited for, done or not.
void Run::record_host_access(const ChipTensor& tensor, const Region& region, bool write) {
    const uint64_t owner = tensor.buffer->allocation->owner_number;
    edges_known_.clear();
    if (owner != ~uint64_t{0}) record_edge(owner, ~uint64_t{0} - 1 - syncs_, Reason::SYNC, tensor.buffer, &region, nullptr);
    tensor.buffer->writers.overlapping(region, counters_.visited, [&](Entry* entry) {
        record_edge(entry->number, ~uint64_t{0} - 1 - syncs_, Reason::SYNC, tensor.buffer, &region, &entry->region);
    });
    if (write) {
        for (const AccessRecord& access : records_.accesses) {
            if (access.buffer == tensor.buffer->number && access.task < submitted_ && overlaps(access.region, region)) {
                record_edge(access.task, ~uint64_t{0} - 1 - syncs_, Reason::SYNC, tensor.buffer, &region, &access.region);
            }
        }
    }
    records_.accesses.push_back({~uint64_t{0} - 1 - syncs_, tensor.buffer->number,
                                 static_cast<uint32_t>(write ? Tag::INOUT : Tag::INPUT), submitted_,
                                 recorded(region)});
    ++syncs_;
}

}  // namespace pto
