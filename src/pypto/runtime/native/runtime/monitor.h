// Who runs what, written to memory that another process sees: so that it can say what a process did that has died.
//
// Only in a worker process (serve.cpp). Elsewhere there is no monitor, and each kernel costs one test of a pointer.
#pragma once

#include <atomic>

#include "task.h"

#if defined(__unix__) || defined(__APPLE__)
#define PTO_HAS_PROCESSES 1
#include <signal.h>
#include <unistd.h>
#endif

namespace pto {

// What one thread runs. Mirrored in isolation.py, as is Monitor.
struct ThreadState {
    std::atomic<uint64_t> begun;  // kernels that it has begun
    std::atomic<int64_t> task;    // number; -1: it is in no kernel
    std::atomic<int32_t> kernel;
    std::atomic<uint32_t> line;
    std::atomic<uint32_t> taken;  // 1: it belongs to a thread that exists
    uint32_t unused;
};

enum Phase : uint32_t { PHASE_IDLE, PHASE_LOADING, PHASE_RUNNING };

struct Monitor {
    static constexpr uint32_t kThreads = 256;
    std::atomic<uint32_t> phase;
    std::atomic<int32_t> signal;        // that ends the process; 0: none
    std::atomic<int32_t> thread;        // in which it was raised: an index of `threads`; -1: another one
    std::atomic<uint32_t> line;         // of the orchestration: of its last submit
    std::atomic<uint64_t> address;      // that a memory fault is about
    std::atomic<uint64_t> submitted;    // tasks
    ThreadState threads[kThreads];
};
static_assert(std::atomic<uint64_t>::is_always_lock_free, "the monitor is shared between processes");

inline std::atomic<Monitor*> monitor{nullptr};

// The place of this thread in the monitor, and a stack on which its signals are handled: its own may be what overflowed.
class ThreadPlace {
   public:
    int32_t index = -1;

    ThreadState* state(Monitor& of) {
        if (index < 0 && !claim(of)) return nullptr;
        return &of.threads[index];
    }

    ~ThreadPlace() {
        if (index < 0) return;
        monitor.load(std::memory_order_relaxed)->threads[index].taken.store(0, std::memory_order_release);
#ifdef PTO_HAS_PROCESSES
        stack_t none{};
        none.ss_flags = SS_DISABLE;
        sigaltstack(&none, nullptr);
        free(stack_);
#endif
    }

   private:
    bool claim(Monitor& of) {
        uint32_t place = 0;
        for (uint32_t none = 0; !of.threads[place].taken.compare_exchange_strong(none, 1); none = 0) {
            if (++place == Monitor::kThreads) return false;
        }
        of.threads[place].task.store(-1, std::memory_order_relaxed);
        index = static_cast<int32_t>(place);
#ifdef PTO_HAS_PROCESSES
        constexpr size_t kStack = 64 << 10;
        stack_t stack{};
        stack.ss_sp = stack_ = malloc(kStack);
        stack.ss_size = kStack;
        if (stack_ != nullptr) sigaltstack(&stack, nullptr);
#endif
        return true;
    }

#ifdef PTO_HAS_PROCESSES
    void* stack_ = nullptr;
#endif
};
inline thread_local ThreadPlace thread_place;

// In existence while this thread runs a kernel of the task.
class Watch {
   public:
    Watch(const Task& task, int32_t kernel) {
        Monitor* const shared = monitor.load(std::memory_order_relaxed);
        if (shared == nullptr || (state_ = thread_place.state(*shared)) == nullptr) return;
        task_ = state_->task.load(std::memory_order_relaxed);
        kernel_ = state_->kernel.load(std::memory_order_relaxed);
        line_ = state_->line.load(std::memory_order_relaxed);
        set(static_cast<int64_t>(task.number), kernel, task.line);
        state_->begun.store(state_->begun.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    }
    ~Watch() {
        if (state_ != nullptr) set(task_, kernel_, line_);
    }
    Watch(const Watch&) = delete;
    Watch& operator=(const Watch&) = delete;

    static void submitted(uint32_t line) {
        Monitor* const shared = monitor.load(std::memory_order_relaxed);
        if (shared == nullptr) return;
        shared->line.store(line, std::memory_order_relaxed);
        shared->submitted.store(shared->submitted.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    }

   private:
    void set(int64_t task, int32_t kernel, uint32_t line) {
        state_->kernel.store(kernel, std::memory_order_relaxed);
        state_->line.store(line, std::memory_order_relaxed);
        state_->task.store(task, std::memory_order_relaxed);
    }

    ThreadState* state_ = nullptr;
    int64_t task_ = -1;  // what it ran before: a kernel may run another program
    int32_t kernel_ = -1;
    uint32_t line_ = 0;
};

#ifdef PTO_HAS_PROCESSES

// Writes down what ends the process, and lets it end.
inline void note_signal(int number, siginfo_t* info, void*) {
    signal(number, SIG_DFL);
    alarm(2);  // should what follows hang in a thread that has no place yet, the process still ends
    Monitor& shared = *monitor.load(std::memory_order_relaxed);
    int32_t none = 0;
    if (shared.signal.compare_exchange_strong(none, number)) {
        shared.address.store(reinterpret_cast<uint64_t>(info->si_addr), std::memory_order_relaxed);
        shared.thread.store(thread_place.index, std::memory_order_release);
    }
    raise(number);  // blocked until the handler returns
}

inline void watch_signals(Monitor& shared) {
    shared.thread.store(-1, std::memory_order_relaxed);
    monitor.store(&shared, std::memory_order_seq_cst);
    thread_place.state(shared);
    struct sigaction action {};
    action.sa_sigaction = note_signal;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    const int fatal[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS};
    for (const int number : fatal) sigaction(number, &action, nullptr);
}

#endif

}  // namespace pto
