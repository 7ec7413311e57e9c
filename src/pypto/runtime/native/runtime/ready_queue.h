// Ready work of one worker: a ring that its owner fills and empties, and that others take half of when they have nothing.
//
// The ring of the Go scheduler (runqput, runqget, runqsteal): one compare-and-swap takes a whole batch, so that work moves
// between cores once, not task by task. First in, first out: tasks run in about the order of their submission, which
// frees their records in order as well.
#pragma once

#include <stdint.h>

#include <atomic>

namespace pto {

// A ready task, or a share in one that runs many blocks (see run.h): a pointer whose lowest bit tells.
using Work = uintptr_t;

class ReadyQueue {
   public:
    static constexpr uint32_t kCapacity = 1024;

    // Owner only. False: full.
    bool push(Work work) {
        const uint32_t tail = tail_.load(std::memory_order_relaxed);
        if (tail - head_.load(std::memory_order_acquire) == kCapacity) return false;
        slots_[tail % kCapacity].store(work, std::memory_order_relaxed);
        tail_.store(tail + 1, std::memory_order_release);
        return true;
    }

    // Owner only. 0: empty. `alone`: nobody else ever takes from this queue.
    Work pop(bool alone) {
        uint32_t head = head_.load(std::memory_order_acquire);
        const uint32_t tail = tail_.load(std::memory_order_relaxed);
        while (head != tail) {
            const Work found = slots_[head % kCapacity].load(std::memory_order_relaxed);
            // Records of stolen tasks are in another core's cache: fetch the next while this one runs.
            prefetch(slots_[(head + 1) % kCapacity].load(std::memory_order_relaxed));
            prefetch(slots_[(head + 2) % kCapacity].load(std::memory_order_relaxed));
            if (alone) {
                head_.store(head + 1, std::memory_order_relaxed);
                return found;
            }
            if (head_.compare_exchange_weak(head, head + 1, std::memory_order_acq_rel, std::memory_order_acquire)) {
                return found;
            }
        }
        return 0;
    }

    // Owner of `into`, which is empty: takes half of this queue; the first of it is returned. 0: nothing there.
    Work steal(ReadyQueue& into) {
        uint32_t head = head_.load(std::memory_order_acquire);
        for (;;) {
            const uint32_t tail = tail_.load(std::memory_order_acquire);
            uint32_t count = tail - head;
            if (count == 0 || count > kCapacity) {  // the latter: head is old by now
                if (count == 0) return 0;
                head = head_.load(std::memory_order_acquire);
                continue;
            }
            count -= count / 2;
            const uint32_t base = into.tail_.load(std::memory_order_relaxed);
            const Work first = slots_[head % kCapacity].load(std::memory_order_relaxed);
            for (uint32_t i = 1; i < count; ++i) {
                into.slots_[(base + i - 1) % kCapacity].store(
                    slots_[(head + i) % kCapacity].load(std::memory_order_relaxed), std::memory_order_relaxed);
            }
            if (head_.compare_exchange_strong(head, head + count, std::memory_order_acq_rel, std::memory_order_acquire)) {
                if (count > 1) into.tail_.store(base + count - 1, std::memory_order_release);
                return first;
            }
        }
    }

    uint32_t size() const {
        const uint32_t head = head_.load(std::memory_order_relaxed);
        return tail_.load(std::memory_order_relaxed) - head;
    }

   private:
    static void prefetch(Work work) {
        // Numbers, not pointers: a slot that was never filled holds anything.
        const Work record = work & ~Work{1};
        __builtin_prefetch(reinterpret_cast<const char*>(record), 1);
        __builtin_prefetch(reinterpret_cast<const char*>(record + 64));
    }

    alignas(64) std::atomic<uint32_t> head_{0};
    alignas(64) std::atomic<uint32_t> tail_{0};
    alignas(64) std::atomic<Work> slots_[kCapacity];
};

}  // namespace pto
