// The threads that execute tasks. They outlive runs: starting a thread costs more than most runs.
#pragma once

#include <atomic>

#include "memory.h"
#include "ready_queue.h"

namespace pto {

class Run;
class Crew;

// One execution of a kernel, when traced.
struct Event {
    uint64_t task;
    uint64_t start;
    uint64_t end;
    uint32_t worker;
    uint32_t block;
    uint32_t part;  // 0: the only one, or AIC; 1 and 2: vector lanes
    uint32_t unused;
};

// One executing thread. Worker 0 is the orchestrator.
struct alignas(64) Worker {
    ReadyQueue queue;
    Crew* crew = nullptr;
    // Work that did not fit; anyone may take it.
    Mutex overflow_lock;
    List<Work> overflow;
    std::atomic<uint32_t> overflow_size{0};
    alignas(64) std::atomic<uint64_t> completed{0};  // tasks of this run; written by its own thread only
    std::atomic<uint64_t> running{0};                // number of the task that it executes, plus one; 0: none
    uint64_t stolen = 0;  // batches that it took from others
    uint64_t batch_since = 0;      // ns, when it took the last one; 0: that is judged already
    uint64_t batch_completed = 0;  // tasks that it had completed then
    uint32_t restraint = 0;        // for how long it leaves others alone
    uint32_t index = 0;
    uint32_t random = 0;
    List<Event> events;
    Mutex events_lock;  // lanes of a mixed task record here, too
};

// Work for a thread of its own: parts of a kernel that have to run at the same time.
struct LaneJob {
    void (*run)(void*);
    void* argument;
};

// Threads that are there when asked for, however many.
class Lanes {
   public:
    Lanes() = default;
    Lanes(const Lanes&) = delete;
    Lanes& operator=(const Lanes&) = delete;
    ~Lanes();

    // Starts the job at once, on an idle lane or a new one.
    void start(LaneJob job);

   private:
    struct Lane {
        Lanes* all;
        pthread_t thread;
        Signal wake;
        LaneJob job{};
        bool has_job = false;
    };

    static void* serve(void* lane);

    Mutex lock_;
    List<Lane*> lanes_;
    List<Lane*> idle_;
    bool stop_ = false;
};

// Worker 0, which brings its own thread, and `threads` more. Keeps what is worth keeping between runs: threads, records'
// memory, storage.
class Crew {
   public:
    static constexpr uint32_t kRings = 4;

    explicit Crew(uint32_t threads);
    Crew(const Crew&) = delete;
    Crew& operator=(const Crew&) = delete;
    ~Crew();

    uint32_t size() const { return size_; }
    Worker& worker(uint32_t index) { return workers_[index]; }

    void begin(Run* run) {
        leave_this_core();
        run_.store(run, std::memory_order_seq_cst);
    }

    // Behind it no thread of the crew touches the run.
    void end() {
        run_.store(nullptr, std::memory_order_seq_cst);
        while (active_.load(std::memory_order_seq_cst) != 0) yield();
    }

    // There is work for another thread. A sleeper that is about to sleep may be missed: it looks once more some time after
    // it said so (see sleep), and whoever has the work does it sooner or later anyway.
    void wake() {
        if (sleepers_.load(std::memory_order_relaxed) > signals_.load(std::memory_order_relaxed)) signal();
    }

    bool anything_ready() const {
        for (uint32_t i = 0; i < size_; ++i) {
            const Worker& each = workers_[i];
            if (each.queue.size() != 0 || each.overflow_size.load(std::memory_order_relaxed) != 0) return true;
        }
        return false;
    }

    BlockPool task_records;
    BlockPool allocation_records;  // apart from others, so that a stale reference finds a record of its own kind
    BlockPool small_records;
    Storage storage[kRings];
    Lanes lanes;

   private:
    void signal();
    static void* serve(void* worker);
    void serve(Worker& worker);
    void leave_this_core();
    bool sleep();

    const uint32_t size_;
    Worker* const workers_;
    List<pthread_t> threads_;
    int left_core_ = -1;
    alignas(64) std::atomic<Run*> run_{nullptr};
    std::atomic<int32_t> active_{0};
    alignas(64) std::atomic<int32_t> sleepers_{0};
    std::atomic<int32_t> signals_{0};
    Mutex lock_;
    Signal wake_;
    bool stop_ = false;
};

}  // namespace pto
