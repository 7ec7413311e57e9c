// One run of an orchestration.
#pragma once

#include <atomic>

#include "crew.h"
#include "options.h"
#include "records.h"
#include "task.h"

// Thread-local pointers are read at each call of the orchestration and for each kernel. Where the loader keeps room for
// libraries that are loaded later, they cost one instruction instead of a call.
#if defined(__linux__) && defined(__GLIBC__)
#define PTO_THREAD_LOCAL __thread __attribute__((tls_model("initial-exec")))
#else
#define PTO_THREAD_LOCAL __thread
#endif

namespace pto {

// The blocks of one task, shared by the workers that run them. Lives until the last share is taken out of a queue, which
// may be after the task has ended.
struct BlockShare {
    Task* task;
    uint32_t count;
    std::atomic<uint32_t> next;     // first block that nobody has taken
    std::atomic<uint32_t> left;     // blocks that have not ended
    std::atomic<uint32_t> holders;  // queued shares and workers in it
};

inline Work as_work(Task* task) { return reinterpret_cast<Work>(task); }
inline Work as_work(BlockShare* share) { return reinterpret_cast<Work>(share) | 1; }

class Run {
   public:
    Run(Crew& crew, const Program& program, const Options& options, Report& report);

    // The whole run, on the calling thread. False: threads are stuck in kernels, and everything must be left to them.
    bool go();

    const Records& records() const { return records_; }
    const List<Event>& events() const { return events_; }

    // --- for the orchestration (its thread) ---
    void submit(TaskOutputTensors& made, const CoreTaskArgs& args, const Launch& launch);
    void allocate(TaskOutputTensors& made, const TensorCreateInfo* const* infos, uint32_t count, uint32_t line);
    bool open_scope(PTO2ScopeMode mode, uint32_t line);
    void close_scope();
    void* element(const ChipTensor& tensor, uint32_t ndims, const uint32_t* indices, uint32_t size, bool write,
                  uint32_t line);
    int32_t clusters() const { return static_cast<int32_t>(options_.clusters); }

    // --- for any thread ---
    bool fatal() const { return fatal_.load(std::memory_order_relaxed) != 0; }
    // True: it is the first error of the run, and so the one that is reported.
    [[gnu::cold, gnu::noinline]] bool fail(int32_t code, const char* message, uint32_t line = 0, int64_t task = -1, int32_t kernel = -1);
    bool kernel_failed(int32_t code, const char* message);
    void touch(const ChipTensor& view, PtoAccess how);

    // --- for workers ---
    bool over() const { return over_.load(std::memory_order_acquire); }
    Work find(Worker& worker);
    void execute(Worker& worker, Work work);

    static PTO_THREAD_LOCAL Run* current;           // the run that this thread works for
    static PTO_THREAD_LOCAL const Task* executing;  // the task whose kernel it runs
    static PTO_THREAD_LOCAL int32_t executing_kernel;

   private:
    struct Ring {
        List<Task*> table;  // by number, modulo its size (a power of two); null: done, or no task
        uint32_t mask = 0;
        uint32_t window = 0;
        uint32_t head = 0;  // all before it are retired
        uint32_t next = 0;
        uint32_t high_water = 0;
        uint64_t budget = 0;
        uint64_t open_bytes = 0;  // of allocations whose scope is open
    };
    struct ScopeState {
        PTO2ScopeMode mode;
        uint32_t line;
        uint32_t begin;  // first number of its ring that may belong to it
        Allocation* allocations;
    };
    enum class Wait { DONE, FAILED };

    static constexpr uint32_t kMaxDepth = 64;
    // So far the orchestrator runs ahead without a look at those who execute: the records of that many tasks stay in a
    // core's cache.
    static constexpr uint32_t kAhead = 1024;

    // submitting
    uint32_t depth() const { return static_cast<uint32_t>(scopes_.size()) - 1; }
    uint32_t ring_index() const { return depth() < 3 ? depth() : 3; }
    bool usable(const ChipTensor& tensor, uint32_t line);
    bool check(const CoreTaskArgs& args, const Launch& launch);
    bool touches_parts(const Launch& launch) const;
    [[gnu::noinline]] Region part(const CoreTaskArgs& args, const Launch& launch, uint32_t index) const;
    bool make_room(Ring& ring, uint32_t line);
    void lend_a_hand(Ring& ring);
    [[gnu::cold, gnu::noinline]] static void widen(Ring& ring);
    void retire_done(Ring& ring, uint32_t at_most);
    void retire(Task* task);
    void need(Task* producer, uint64_t consumer, Reason reason);
    void abandon();
    void need_owner(const ChipTensor& tensor, uint64_t consumer, Reason reason);
    void need_writers(const ChipTensor& tensor, const Region& region, uint64_t consumer, Reason reason);
    [[gnu::noinline]] void need_readers(const ChipTensor& tensor, const Region& region, uint64_t consumer);
    void hold(Allocation* allocation, uint64_t consumer);
    bool need_dependencies(const CoreTaskArgs& args, uint64_t consumer, uint32_t line);
    Task* find_task(PTO2TaskId id, bool& known);
    void register_writer(Task* task, const ChipTensor& tensor, const Region& region, bool replaces);
    [[gnu::noinline]] void register_reader(Task* task, const ChipTensor& tensor, const Region& region);
    Entry* new_entry(Task* task, const ChipTensor& tensor, const Region& region, bool reads);
    Task* new_task(const CoreTaskArgs& args, const Launch& launch, PTO2TaskId id, Allocation* outputs);
    void link(Task* task);
    [[gnu::cold, gnu::noinline]] void record_edge(uint64_t producer, uint64_t consumer, Reason reason, const Buffer* buffer, const Region* used,
                     const Region* written);
    [[gnu::cold, gnu::noinline]] void record_buffer(const ChipTensor& tensor, int32_t argument, uint64_t owner);
    [[gnu::cold, gnu::noinline]] void record_host_access(const ChipTensor& tensor, const Region& region, bool write);
    [[gnu::cold, gnu::noinline]] void record_access(uint64_t task, const ChipTensor& tensor, Tag tag, const Region& region);

    // storage
    Allocation* new_allocation(const TensorCreateInfo* const* infos, uint32_t count, PTO2TaskId id, uint64_t owner,
                               uint32_t line);
    char* take_storage(uint32_t ring, size_t size, uint32_t line);
    void reclaim(Allocation* allocation);
    void reclaim_unused();
    bool take_arguments();
    static void fill(char* place, const TensorCreateInfo& info, uint64_t bytes, bool debug);

    // waiting
    uint64_t completed() const;
    // Executes tasks, or waits for those who do, until `ready()`. `line`: of the orchestration, where it waits.
    template <typename Ready>
    Wait help_until(int32_t code_on_timeout, uint32_t line, Ready ready) {
        return help(code_on_timeout, line, [](void* what) { return (*static_cast<Ready*>(what))(); }, &ready);
    }
    Wait help(int32_t code_on_timeout, uint32_t line, bool (*ready)(void*), void* what);
    Work find_for_orchestrator();
    bool stuck(uint64_t& seen, uint64_t& since, int32_t code, uint32_t line);
    [[gnu::cold, gnu::noinline]] const Task* describe_stuck(char* text, size_t size);
    bool finish();
    void clear();
    void call_entry();
    void run_orchestration();

    // executing
    Work run_task(Worker& worker, Task* task);
    Work run_share(Worker& worker, BlockShare* share);
    Work complete(Worker& worker, Task* task);
    void run_block(Worker& worker, Task* task, uint32_t block);
    void run_parts(Worker& worker, Task* task, uint32_t first_block, uint32_t blocks);
    void call_kernel(Worker& worker, Task* task, int32_t kernel, uint32_t block, uint32_t part, int32_t lane);
    bool predicate_holds(Task* task);
    void push(Worker& worker, Work work) {
        if (options_.random_schedule || !worker.queue.push(work)) put_elsewhere(worker, work);
        if (!alone_) crew_.wake();
    }
    void put_elsewhere(Worker& worker, Work work);
    void release(Allocation* allocation);
    void became_ready(Task* task) {
        if (options_.trace) task->ready_at = now_ns();
    }

    Crew& crew_;
    const Program& program_;
    const Options& options_;
    Report& report_;
    Counters& counters_;
    const bool alone_;   // one thread only
    const bool helps_;   // the orchestrator executes tasks
    Ring rings_[Crew::kRings];
    List<ScopeState> scopes_;
    List<ChipTensor> arguments_;
    ChipTaskArgs chip_args_;
    List<Allocation*> argument_allocations_;

    uint64_t submitted_ = 0;
    uint32_t buffers_ = 0;
    uint64_t syncs_ = 0;  // element accesses of the orchestration, when recorded
    List<Task*> producers_;       // of the task that is being submitted
    List<Allocation*> holds_;     // what it is given
    List<uint64_t> edges_known_;  // producers whose edge is recorded
    List<Entry*> met_;
    List<uint64_t> number_of_id_[Crew::kRings];  // when recorded: of the task of each id
    List<Work> ready_;  // in a random schedule
    uint64_t random_;
    Records records_;
    List<Event> events_;
    Mutex touch_lock_;

    alignas(64) std::atomic<Allocation*> unused_{nullptr};
    alignas(64) std::atomic<int32_t> fatal_{0};
    std::atomic<bool> over_{false};
    Mutex fail_lock_;
    ChipTensor nothing_[PTO_MAX_TENSORS];  // what references name after an error
};

}  // namespace pto
