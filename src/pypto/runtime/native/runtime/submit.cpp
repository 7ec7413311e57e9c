// What the orchestrator does: order a task behind others, and let workers have it.

#include <stdio.h>

#include "monitor.h"
#include "parts.h"
#include "run.h"

namespace pto {

// --- scopes ---------------------------------------------------------------------------------------------------------

bool Run::open_scope(PTO2ScopeMode mode, uint32_t line) {
    if (fatal()) return false;
    if (scopes_.size() > kMaxDepth) {
        fail(ERROR_ARGUMENTS, "scopes are nested deeper than 64", line);
        return false;
    }
    if (mode == PTO2ScopeMode::AUTO && !scopes_.empty() && scopes_.back().mode == PTO2ScopeMode::MANUAL) {
        char text[160];
        snprintf(text, sizeof(text), "an AUTO scope inside a MANUAL one (of line %u): automatic ordering can't be switched "
                 "on again inside", scopes_.back().line);
        fail(ERROR_ARGUMENTS, text, line);
        return false;
    }
    scopes_.push_back({mode, line, 0, nullptr});
    scopes_.back().begin = rings_[ring_index()].next;
    return true;
}

// Not a barrier: only gives up the scope's claim on what was allocated in it.
void Run::close_scope() {
    const uint32_t ring = ring_index();
    Allocation* each = scopes_.back().allocations;
    while (each != nullptr) {
        Allocation* following = each->next_in_scope;
        each->open = false;
        rings_[ring].open_bytes -= each->bytes;
        const int64_t change = each->given - Allocation::kOpen;
        if (each->claims.fetch_add(change, std::memory_order_acq_rel) + change == 0) reclaim(each);
        each = following;
    }
    scopes_.pop_back();
}

// --- tasks ----------------------------------------------------------------------------------------------------------

void Run::submit(TaskOutputTensors& made, const CoreTaskArgs& args, const Launch& launch) {
    made.tensors_ = nothing_;
    made.count_ = args.create_count_;
    if (fatal() || !check(args, launch)) return;
    const uint32_t ring_number = ring_index();
    Ring& ring = rings_[ring_number];
    if (!make_room(ring, launch.line)) return;

    const bool automatic = scopes_.back().mode == PTO2ScopeMode::AUTO;
    const uint64_t number = submitted_;
    const PTO2TaskId id = PTO2TaskId::make(ring_number, ring.next);
    producers_.clear();
    holds_.clear();
    edges_known_.clear();
    const bool in_parts = touches_parts(launch);
    const TensorCreateInfo* creates[PTO_MAX_TENSORS];
    uint32_t create_count = 0;
    bool writes = false;
    for (uint32_t i = 0; i < args.tensor_count_; ++i) {
        const Tag tag = args.tags_[i];
        if (tag == Tag::OUTPUT) {
            creates[create_count++] = args.arguments_[i].create;
            continue;
        }
        const ChipTensor& tensor = *args.arguments_[i].tensor;
        if (!usable(tensor, launch.line)) return abandon();
        hold(tensor.buffer->allocation, number);
        writes = writes || tag == Tag::INOUT || tag == Tag::OUTPUT_EXISTING;
        if (!automatic) continue;
        need_owner(tensor, number, Reason::ALLOCATION);
        if (tag <= Tag::INOUT && !tensor.manual_dep && !tensor.buffer->writers.empty()) {
            need_writers(tensor, in_parts ? part(args, launch, i) : Region::of(tensor), number, Reason::OVERLAP);
        }
        if (tensor.buffer->readers != nullptr && (tag == Tag::INOUT || tag == Tag::OUTPUT_EXISTING) && !tensor.manual_dep) {
            need_readers(tensor, in_parts ? part(args, launch, i) : Region::of(tensor), number);
        }
    }
    if (args.has_predicate_) {  // as if it were an input
        const ChipTensor& operand = *args.predicate_.operand.tensor;
        hold(operand.buffer->allocation, number);
        if (automatic) {
            need_owner(operand, number, Reason::PREDICATE);
            if (!operand.manual_dep) need_writers(operand, Region::of(operand), number, Reason::PREDICATE);
        }
    }
    if (!need_dependencies(args, number, launch.line)) return abandon();

    Allocation* outputs = nullptr;
    if (create_count != 0) {
        outputs = new_allocation(creates, create_count, id, number, launch.line);
        if (outputs == nullptr) return abandon();
        hold(outputs, number);
        made.tensors_ = outputs->tensors();
    }
    Task* task = new_task(args, launch, id, outputs);
    ring.table[ring.next & ring.mask] = task;
    ++ring.next;
    ++submitted_;
    Watch::submitted(launch.line);
    made.id_ = id;
    if (options_.record) {
        number_of_id_[ring_number].push_back(number);
        records_.tasks.push_back({number, id.raw, {launch.kernels.aic, launch.kernels.aiv0, launch.kernels.aiv1},
                                  static_cast<uint32_t>(launch.kind), launch.line, task->block_num, 0, 0,
                                  options_.trace ? now_ns() : 0, 0});
        for (uint32_t i = 0; i < task->tensor_count; ++i) {
            const ChipTensor& tensor = task->tensors()[i];
            const bool narrow = in_parts && args.tags_[i] != Tag::OUTPUT;
            record_access(number, tensor, args.tags_[i], narrow ? part(args, launch, i) : Region::of(tensor));
        }
    }
    if (writes) {
        for (uint32_t i = 0; i < args.tensor_count_; ++i) {
            const Tag tag = args.tags_[i];
            if (tag != Tag::INOUT && tag != Tag::OUTPUT_EXISTING) continue;
            const ChipTensor& tensor = task->tensors()[i];
            register_writer(task, tensor, in_parts ? part(args, launch, i) : Region::of(tensor),
                            tag == Tag::INOUT && automatic && !tensor.manual_dep);
        }
    }
    if (options_.order_reads) {
        for (uint32_t i = 0; i < args.tensor_count_; ++i) {
            if (args.tags_[i] > Tag::INOUT) continue;
            const ChipTensor& tensor = task->tensors()[i];
            register_reader(task, tensor, in_parts ? part(args, launch, i) : Region::of(tensor));
        }
        if (task->predicate != nullptr) {
            const ChipTensor& operand = *task->predicate->operand.tensor;
            register_reader(task, operand, Region::of(operand));
        }
    }
    link(task);
}

// Whether it is known which part of its arguments a task touches.
bool Run::touches_parts(const Launch& launch) const {
    if (launch.kind == CoreKind::DUMMY) return false;
    const int32_t kernels[3] = {launch.kernels.aic, launch.kernels.aiv0, launch.kernels.aiv1};
    for (const int32_t kernel : kernels) {
        if (kernel != INVALID_KERNEL_ID && program_.kernels[kernel].parts == nullptr) return false;
    }
    return true;
}

// The part of an argument, an existing tensor, by which its task is ordered.
Region Run::part(const CoreTaskArgs& args, const Launch& launch, uint32_t index) const {
    const int32_t kernels[3] = {launch.kernels.aic, launch.kernels.aiv0, launch.kernels.aiv1};
    const ChipTensor& tensor = *args.arguments_[index].tensor;
    ChipTensor found;
    return Region::of(Parts(args).cut(program_.kernels, kernels, index, tensor, found) ? found : tensor);
}

void Run::allocate(TaskOutputTensors& made, const TensorCreateInfo* const* infos, uint32_t count, uint32_t line) {
    made.tensors_ = nothing_;
    made.count_ = count;
    if (fatal()) return;
    const uint32_t ring_number = ring_index();
    Ring& ring = rings_[ring_number];
    if (!make_room(ring, line)) return;
    const PTO2TaskId id = PTO2TaskId::make(ring_number, ring.next);
    Allocation* allocation = new_allocation(infos, count, id, ~uint64_t{0}, line);
    if (allocation == nullptr) return;
    ring.table[ring.next & ring.mask] = nullptr;  // complete at once
    ++ring.next;
    ++counters_.allocations;
    if (options_.record) number_of_id_[ring_number].push_back(~uint64_t{0});
    made.tensors_ = allocation->tensors();
    made.id_ = id;
}

bool Run::usable(const ChipTensor& tensor, uint32_t line) {
    const Buffer* buffer = tensor.buffer;
    if (buffer != nullptr && buffer->allocation != nullptr) {
        const Allocation& allocation = *buffer->allocation;
        if (allocation.open && allocation.owner == tensor.owner_task_id && buffer->address == tensor.buffer_addr) return true;
        fail(ERROR_ARGUMENTS, SCOPE_HAS_ENDED, line);
        return false;
    }
    fail(ERROR_ARGUMENTS, "a tensor argument was never given a value", line);
    return false;
}

bool Run::check(const CoreTaskArgs& args, const Launch& launch) {
    char text[256];
    if (args.problem_ != nullptr) {
        fail(ERROR_ARGUMENTS, args.problem_, launch.line);
        return false;
    }
    const int32_t kernels[3] = {launch.kernels.aic, launch.kernels.aiv0, launch.kernels.aiv1};
    bool any = launch.kind == CoreKind::DUMMY;
    for (const int32_t kernel : kernels) {
        if (kernel == INVALID_KERNEL_ID) continue;
        any = true;
        if (kernel < 0 || static_cast<uint32_t>(kernel) >= program_.kernel_count ||
            program_.kernels[kernel].function == nullptr) {
            snprintf(text, sizeof(text), "there is no kernel %d (of %u)", kernel, program_.kernel_count);
            fail(ERROR_ARGUMENTS, text, launch.line);
            return false;
        }
    }
    if (!any) {
        fail(ERROR_ARGUMENTS, "a task without a kernel", launch.line);
        return false;
    }
    if (args.launch_spec.require_sync_start && args.launch_spec.block_num > options_.workers) {
        snprintf(text, sizeof(text), "%u blocks are to start together, and there are %u workers",
                 args.launch_spec.block_num, options_.workers);
        fail(ERROR_SYNC_START, text, launch.line);
        return false;
    }
    if (args.has_predicate_) {
        const CoreTaskPredicate::Operand& operand = args.predicate_.operand;
        if (operand.tensor == nullptr || operand.ndims != operand.tensor->ndims) {
            fail(ERROR_ARGUMENTS, "a predicate needs a tensor, and one index for each of its dimensions", launch.line);
            return false;
        }
        if (!usable(*operand.tensor, launch.line)) return false;
        for (uint32_t i = 0; i < operand.ndims; ++i) {
            if (operand.indices[i] >= operand.tensor->shapes[i]) {
                fail(ERROR_ARGUMENTS, "an index of a predicate is beyond the tensor's shape", launch.line);
                return false;
            }
        }
        switch (operand.tensor->dtype) {
            case DataType::INT8:
            case DataType::INT16:
            case DataType::INT32:
            case DataType::INT64:
                break;
            default:
                fail(ERROR_ARGUMENTS, "a predicate's tensor must hold signed integers", launch.line);
                return false;
        }
    }
    return true;
}

// --- the window -----------------------------------------------------------------------------------------------------

void Run::retire_done(Ring& ring, uint32_t at_most) {
    uint32_t end = ring.next;
    if (options_.strict_window) {
        // The outermost open scope of the ring keeps all that was submitted since.
        const size_t first = static_cast<size_t>(&ring - rings_);
        if (first < scopes_.size() && scopes_[first].begin < end) end = scopes_[first].begin;
    }
    while (ring.head != end && at_most-- != 0) {
        Task*& place = ring.table[ring.head & ring.mask];
        if (place != nullptr) {
            if (!place->done()) return;
            retire(place);
            place = nullptr;
        }
        ++ring.head;
    }
}

void Run::retire(Task* task) {
    Entry* each = task->entries;
    while (each != nullptr) {
        Entry* following = each->next;
        if (each->buffer == nullptr) {
            crew_.small_records.give(each, sizeof(Entry));
        } else if (options_.record) {
            each->task = nullptr;  // stays: edges to completed tasks are recorded, too
        } else {
            (each->reads ? *each->buffer->readers : each->buffer->writers).remove(each);
            crew_.small_records.give(each, sizeof(Entry));
        }
        each = following;
    }
    if (task->made != nullptr) task->made->owner_task = nullptr;
    if (options_.record) {
        records_.tasks[task->number].ready = options_.trace ? task->ready_at : 0;
        records_.tasks[task->number].skipped = task->skipped;
    }
    crew_.task_records.give(task, task->bytes);
}

// Most runs need a small part of the window: the table grows with the tasks in flight.
void Run::widen(Ring& ring) {
    List<Task*> wider;
    wider.resize(ring.table.empty() ? 64 : 2 * ring.table.size());
    const uint32_t mask = static_cast<uint32_t>(wider.size()) - 1;
    for (uint32_t number = ring.head; number != ring.next; ++number) wider[number & mask] = ring.table[number & ring.mask];
    ring.table.swap(wider);
    ring.mask = mask;
}

// Enough is submitted for everybody to have work. Going on would only push records out of the cache before they run, so
// help until there is less; but not for long, since those that are in flight may be few and slow.
void Run::lend_a_hand(Ring& ring) {
    Worker& self = crew_.worker(0);
    for (uint32_t tries = 0; tries < 64 && ring.next - ring.head >= kAhead; ++tries) {
        if (const Work work = find(self)) {
            execute(self, work);
            ++counters_.helped;
        } else {
            relax();
        }
        retire_done(ring, 16);
    }
}

// The window of the ring takes another task, now or after some have ended.
bool Run::make_room(Ring& ring, uint32_t line) {
    retire_done(ring, 4);
    const size_t index = static_cast<size_t>(&ring - rings_);
    ring.high_water = most(ring.high_water, least(ring.next - ring.head + 1, ring.window));
    if (ring.next - ring.head < ring.window) {
        if (ring.next - ring.head == ring.table.size()) widen(ring);
        if (ring.next - ring.head >= kAhead && helps_ && !options_.random_schedule) lend_a_hand(ring);
        return true;
    }
    retire_done(ring, ~0u);
    if (ring.next - ring.head < ring.window) return true;
    if (options_.strict_window && scopes_[index].begin <= ring.head) {
        char text[256];
        snprintf(text, sizeof(text),
                 "the scope of line %u has more tasks than the window of ring %zu holds (%u), and keeps them until it ends: "
                 "use a larger ring_task_window, smaller scopes, or strict_rings=False", scopes_[index].line, index,
                 ring.window);
        fail(ERROR_WINDOW, text, line);
        return false;
    }
    ++counters_.waits;
    const uint32_t enough = ring.window - (ring.window + 7) / 8;
    return help_until(ERROR_SCHEDULER, line, [&] {
               retire_done(ring, ~0u);
               const uint32_t in_flight = ring.next - ring.head;
               // All of it, in the interest of the cache; less, where the scope keeps the rest.
               return in_flight <= enough || (options_.strict_window && in_flight < ring.window);
           }) == Wait::DONE;
}

// --- order ----------------------------------------------------------------------------------------------------------

// The task that is being submitted waits for `producer`.
void Run::need(Task* producer, uint64_t consumer, Reason reason) {
    if (producer->mark == consumer + 1 || producer->done()) return;
    producer->mark = consumer + 1;
    if (!options_.record) ++counters_.edges[static_cast<uint32_t>(reason)];  // else record_edge counts, done ones as well
    producers_.push_back(producer);
}

void Run::need_owner(const ChipTensor& tensor, uint64_t consumer, Reason reason) {
    Allocation* allocation = tensor.buffer->allocation;
    if (!allocation->owner.is_valid()) return;
    if (options_.record && allocation->owner_number != ~uint64_t{0}) {
        record_edge(allocation->owner_number, consumer, reason, tensor.buffer, nullptr, nullptr);
    }
    if (allocation->owner_task != nullptr) need(allocation->owner_task, consumer, reason);
}

void Run::need_writers(const ChipTensor& tensor, const Region& region, uint64_t consumer, Reason reason) {
    ++counters_.lookups;
    tensor.buffer->writers.overlapping(region, counters_.visited, [&](Entry* entry) {
        if (options_.record) record_edge(entry->number, consumer, reason, tensor.buffer, &region, &entry->region);
        if (entry->task != nullptr) need(entry->task, consumer, reason);
    });
}

void Run::need_readers(const ChipTensor& tensor, const Region& region, uint64_t consumer) {
    ++counters_.lookups;
    tensor.buffer->readers->overlapping(region, counters_.visited, [&](Entry* entry) {
        if (options_.record) record_edge(entry->number, consumer, Reason::OVERWRITE, tensor.buffer, &region, &entry->region);
        if (entry->task != nullptr) need(entry->task, consumer, Reason::OVERWRITE);
    });
}

void Run::hold(Allocation* allocation, uint64_t consumer) {
    if (!allocation->owner.is_valid() || allocation->mark == consumer + 1) return;
    allocation->mark = consumer + 1;
    ++allocation->given;
    holds_.push_back(allocation);
}

// The task that is being submitted will not be: nothing is given to it.
void Run::abandon() {
    for (Allocation* each : holds_) --each->given;
}

// The task of an id; null when it has completed. `known`: the id is one of this run.
Task* Run::find_task(PTO2TaskId id, bool& known) {
    known = id.ring() < Crew::kRings && id.number() < rings_[id.ring()].next;
    if (!known) return nullptr;
    Ring& ring = rings_[id.ring()];
    if (id.number() < ring.head) return nullptr;
    return ring.table[id.number() & ring.mask];
}

bool Run::need_dependencies(const CoreTaskArgs& args, uint64_t consumer, uint32_t line) {
    for (uint32_t i = 0; i < args.dependency_count_; ++i) {
        const PTO2TaskId id = args.dependencies_[i];
        bool known = false;
        Task* producer = id.is_valid() ? find_task(id, known) : nullptr;
        if (!known) {
            char text[160];
            snprintf(text, sizeof(text), "dependency %u of %u is no valid task id: ask is_valid() first", i,
                     args.dependency_count_);
            fail(ERROR_ARGUMENTS, text, line);
            return false;
        }
        if (options_.record) {
            const uint64_t number = number_of_id_[id.ring()][id.number()];
            if (number != ~uint64_t{0}) record_edge(number, consumer, Reason::EXPLICIT, nullptr, nullptr, nullptr);
        }
        if (producer != nullptr) need(producer, consumer, Reason::EXPLICIT);
    }
    return true;
}

void Run::register_writer(Task* task, const ChipTensor& tensor, const Region& region, bool replaces) {
    if (region.empty()) return;
    WriterIndex& writers = tensor.buffer->writers;
    if (replaces && !writers.empty()) {
        // Who comes later waits for this task, and so for all that it waits for.
        met_.clear();
        writers.overlapping(region, counters_.visited, [&](Entry* entry) {
            if (entry->number != task->number && covers(region, entry->region)) met_.push_back(entry);
        });
        for (Entry* entry : met_) {
            writers.remove(entry);
            if (entry->task == nullptr) {
                crew_.small_records.give(entry, sizeof(Entry));
            } else {
                entry->buffer = nullptr;  // given back when its task is retired
            }
        }
    }
    writers.add(new_entry(task, tensor, region, false));
}

void Run::register_reader(Task* task, const ChipTensor& tensor, const Region& region) {
    if (region.empty()) return;
    if (tensor.buffer->readers == nullptr) tensor.buffer->readers = new WriterIndex;
    tensor.buffer->readers->add(new_entry(task, tensor, region, true));
}

Entry* Run::new_entry(Task* task, const ChipTensor& tensor, const Region& region, bool reads) {
    Entry* entry = static_cast<Entry*>(crew_.small_records.take(sizeof(Entry)));
    entry->task = task;
    entry->number = task->number;
    entry->buffer = tensor.buffer;
    entry->next = task->entries;
    entry->region = region;
    entry->reads = reads;
    task->entries = entry;
    return entry;
}

Task* Run::new_task(const CoreTaskArgs& args, const Launch& launch, PTO2TaskId id, Allocation* outputs) {
    const size_t links = producers_.size() * sizeof(Link), holds = holds_.size() * sizeof(Allocation*);
    const size_t tensors = sizeof(Task) + links + holds;
    size_t bytes = tensors + args.tensor_count_ * sizeof(ChipTensor) + args.scalar_count_ * sizeof(uint64_t);
    const size_t predicate = bytes;
    if (args.has_predicate_) bytes += sizeof(CoreTaskPredicate) + sizeof(ChipTensor);

    Task* task = static_cast<Task*>(crew_.task_records.take(bytes));
    task->successors.store(nullptr, std::memory_order_relaxed);
    task->pending.store(Task::kSubmitting, std::memory_order_relaxed);
    task->kind = launch.kind;
    task->tensor_count = args.tensor_count_;
    task->scalar_count = args.scalar_count_;
    task->sync_start = args.launch_spec.require_sync_start;
    task->kernels = launch.kernels;
    task->block_num = args.launch_spec.block_num;
    task->id = id;
    task->number = submitted_;
    task->line = launch.line;
    task->hold_count = static_cast<uint16_t>(holds_.size());
    task->link_count = static_cast<uint32_t>(producers_.size());
    task->tensors_at = static_cast<uint32_t>(tensors);
    task->predicate = nullptr;
    task->skipped = false;
    task->mark = 0;
    task->entries = nullptr;
    task->made = outputs;
    task->bytes = static_cast<uint32_t>(bytes);
    if (outputs != nullptr) outputs->owner_task = task;
    for (size_t i = 0; i < holds_.size(); ++i) task->holds()[i] = holds_[i];
    ChipTensor* place = task->tensors();
    uint32_t created = 0;
    for (uint32_t i = 0; i < args.tensor_count_; ++i) {
        place[i] = args.tags_[i] == Tag::OUTPUT ? outputs->tensors()[created++] : *args.arguments_[i].tensor;
    }
    if (args.scalar_count_ != 0) memcpy(task->scalars(), args.scalars_, args.scalar_count_ * sizeof(uint64_t));
    if (args.has_predicate_) {
        auto* copy = reinterpret_cast<CoreTaskPredicate*>(reinterpret_cast<char*>(task) + predicate);
        auto* operand = reinterpret_cast<ChipTensor*>(copy + 1);
        *operand = *args.predicate_.operand.tensor;
        *copy = args.predicate_;
        copy->operand.tensor = operand;
        task->predicate = copy;
    }
    return task;
}

// Hangs the task on its producers, and gives it to workers if all are done.
void Run::link(Task* task) {
    int32_t count = 0;
    Link* links = task->links();
    for (Task* producer : producers_) {
        Link* link = &links[count];
        link->consumer = task;
        Link* first = producer->successors.load(std::memory_order_acquire);
        while (first != Task::done_mark()) {
            link->next = first;
            if (alone_) {
                producer->successors.store(link, std::memory_order_relaxed);
                ++count;
                break;
            }
            if (producer->successors.compare_exchange_weak(first, link, std::memory_order_acq_rel,
                                                           std::memory_order_acquire)) {
                ++count;
                break;
            }
        }
    }
    bool ready = count == 0;
    if (!ready) {
        const int32_t change = Task::kSubmitting - count;
        ready = task->pending.fetch_sub(change, std::memory_order_acq_rel) == change;
    }
    if (ready) {
        became_ready(task);
        push(crew_.worker(0), as_work(task));
    }
}

// --- records --------------------------------------------------------------------------------------------------------

void Run::record_edge(uint64_t producer, uint64_t consumer, Reason reason, const Buffer* buffer,
                             const Region* used, const Region* written) {
    if (producer == consumer) return;
    for (const uint64_t known : edges_known_) {
        if (known == producer) return;
    }
    edges_known_.push_back(producer);
    ++counters_.edges[static_cast<uint32_t>(reason)];
    records_.edges.push_back({producer, consumer, static_cast<uint32_t>(reason), buffer != nullptr ? buffer->number : ~0u,
                              recorded(used != nullptr ? *used : Region{}),
                              recorded(written != nullptr ? *written : Region{})});
}

void Run::record_access(uint64_t task, const ChipTensor& tensor, Tag tag, const Region& region) {
    records_.accesses.push_back({task, tensor.buffer->number, static_cast<uint32_t>(tag), submitted_, recorded(region)});
}

}  // namespace pto
