// The threads that execute tasks. They outlive runs: starting a thread costs more than most runs.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#ifdef __linux__
#include <pthread.h>
#include <sched.h>
#endif

#include "memory.h"
#include "ready_queue.h"

namespace pto {

class Run;

inline uint64_t now_ns() {
    return static_cast<uint64_t>(
        std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch()).count());
}

inline void relax() {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ __volatile__("yield");
#endif
}

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
    // Work that did not fit; anyone may take it.
    std::mutex overflow_lock;
    std::vector<Work> overflow;
    std::atomic<uint32_t> overflow_size{0};
    alignas(64) std::atomic<uint64_t> completed{0};  // tasks of this run; written by its own thread only
    std::atomic<uint64_t> running{0};                // number of the task that it executes, plus one; 0: none
    uint64_t stolen = 0;  // batches that it took from others
    uint64_t batch_since = 0;      // ns, when it took the last one; 0: that is judged already
    uint64_t batch_completed = 0;  // tasks that it had completed then
    uint32_t restraint = 0;        // for how long it leaves others alone
    uint32_t index = 0;
    uint32_t random = 0;
    std::vector<Event> events;
    std::mutex events_lock;  // lanes of a mixed task record here, too
};

// Work for a thread of its own: parts of a kernel that have to run at the same time.
struct LaneJob {
    void (*run)(void*);
    void* argument;
};

// Threads that are there when asked for, however many.
class Lanes {
   public:
    ~Lanes() {
        {
            std::lock_guard<std::mutex> hold(lock_);
            stop_ = true;
            for (auto& lane : lanes_) lane->wake.notify_one();
        }
        for (auto& lane : lanes_) lane->thread.join();
    }

    // Starts the job at once, on an idle lane or a new one.
    void start(LaneJob job) {
        std::lock_guard<std::mutex> hold(lock_);
        Lane* lane;
        if (!idle_.empty()) {
            lane = idle_.back();
            idle_.pop_back();
        } else {
            lanes_.push_back(std::make_unique<Lane>());
            lane = lanes_.back().get();
            lane->thread = std::thread([this, lane] { serve(*lane); });
        }
        lane->job = job;
        lane->has_job = true;
        lane->wake.notify_one();
    }

   private:
    struct Lane {
        std::thread thread;
        std::condition_variable wake;
        LaneJob job{};
        bool has_job = false;
    };

    void serve(Lane& lane) {
        std::unique_lock<std::mutex> hold(lock_);
        for (;;) {
            lane.wake.wait(hold, [&] { return lane.has_job || stop_; });
            if (!lane.has_job) return;
            const LaneJob job = lane.job;
            lane.has_job = false;
            hold.unlock();
            job.run(job.argument);
            hold.lock();
            idle_.push_back(&lane);
        }
    }

    std::mutex lock_;
    std::vector<std::unique_ptr<Lane>> lanes_;
    std::vector<Lane*> idle_;
    bool stop_ = false;
};

// Worker 0, which brings its own thread, and `threads` more. Keeps what is worth keeping between runs: threads, records'
// memory, storage.
class Crew {
   public:
    static constexpr uint32_t kRings = 4;

    explicit Crew(uint32_t threads) {
        for (uint32_t i = 0; i <= threads; ++i) {
            workers_.push_back(std::make_unique<Worker>());
            workers_[i]->index = i;
            workers_[i]->random = i * 2654435761u + 1;
        }
        for (uint32_t i = 1; i <= threads; ++i) threads_.emplace_back([this, i] { serve(*workers_[i]); });
    }

    ~Crew() {
        {
            std::lock_guard<std::mutex> hold(lock_);
            stop_ = true;
            wake_.notify_all();
        }
        for (std::thread& each : threads_) each.join();
    }

    uint32_t size() const { return static_cast<uint32_t>(workers_.size()); }
    Worker& worker(uint32_t index) { return *workers_[index]; }

    void begin(Run* run) {
        leave_this_core();
        run_.store(run, std::memory_order_seq_cst);
    }

    // Behind it no thread of the crew touches the run.
    void end() {
        run_.store(nullptr, std::memory_order_seq_cst);
        while (active_.load(std::memory_order_seq_cst) != 0) std::this_thread::yield();
    }

    // There is work for another thread. A sleeper that is about to sleep may be missed: it looks once more some time after
    // it said so (see sleep), and whoever has the work does it sooner or later anyway.
    void wake() {
        if (sleepers_.load(std::memory_order_relaxed) > signals_.load(std::memory_order_relaxed)) signal();
    }

    bool anything_ready() const {
        for (const auto& each : workers_) {
            if (each->queue.size() != 0 || each->overflow_size.load(std::memory_order_relaxed) != 0) return true;
        }
        return false;
    }

    BlockPool task_records;
    BlockPool allocation_records;  // apart from others, so that a stale reference finds a record of its own kind
    BlockPool small_records;
    Storage storage[kRings];
    Lanes lanes;

   private:
    void signal() {
        std::lock_guard<std::mutex> hold(lock_);
        if (sleepers_.load(std::memory_order_relaxed) > signals_.load(std::memory_order_relaxed)) {
            signals_.fetch_add(1, std::memory_order_relaxed);
            wake_.notify_one();
        }
    }

    void serve(Worker& worker);

    // Linux likes to wake a thread on the core of who wakes it, and then moves it after many milliseconds only, although
    // other cores are idle. So the threads keep off the core of the orchestrator, as long as it stays there.
    void leave_this_core() {
#ifdef __linux__
        const int core = sched_getcpu();
        if (core < 0 || core == left_core_) return;
        left_core_ = core;
        cpu_set_t allowed;
        if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0) return;
        if (CPU_COUNT(&allowed) > static_cast<int>(threads_.size())) CPU_CLR(core, &allowed);
        for (std::thread& each : threads_) pthread_setaffinity_np(each.native_handle(), sizeof(allowed), &allowed);
#endif
    }

    // Until somebody has work. False: the crew is dismissed.
    bool sleep() {
        std::unique_lock<std::mutex> hold(lock_);
        sleepers_.fetch_add(1, std::memory_order_seq_cst);
        hold.unlock();
        // What was pushed before the push could see this sleeper is visible by now.
        for (int i = 0; i < 100; ++i) relax();
        const bool found = anything_ready();
        hold.lock();
        if (!found) wake_.wait(hold, [&] { return stop_ || signals_.load(std::memory_order_relaxed) != 0; });
        if (signals_.load(std::memory_order_relaxed) != 0) signals_.fetch_sub(1, std::memory_order_relaxed);
        sleepers_.fetch_sub(1, std::memory_order_relaxed);
        return !stop_;
    }

    std::vector<std::unique_ptr<Worker>> workers_;
    std::vector<std::thread> threads_;
    int left_core_ = -1;
    alignas(64) std::atomic<Run*> run_{nullptr};
    std::atomic<int32_t> active_{0};
    alignas(64) std::atomic<int32_t> sleepers_{0};
    std::atomic<int32_t> signals_{0};
    std::mutex lock_;
    std::condition_variable wake_;
    bool stop_ = false;
};

}  // namespace pto
