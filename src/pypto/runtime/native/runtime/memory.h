// Memory of the runtime's own records, and of the buffers that it gives to tasks.
#pragma once

#include "plain.h"

namespace pto {

// Blocks for records, by size in steps of 64 bytes. One thread uses it. A freed block is the next one given out: what was
// used last is still in the cache. The memory stays mapped until the pool goes, so a stale pointer reads a record, if an
// old one, and never faults.
class BlockPool {
   public:
    static constexpr size_t kStep = 64;

    BlockPool() = default;
    BlockPool(const BlockPool&) = delete;
    BlockPool& operator=(const BlockPool&) = delete;
    ~BlockPool() {
        for (void* chunk : chunks_) free(chunk);
    }

    void* take(size_t bytes) {
        const size_t steps = (bytes + kStep - 1) / kStep;
        if (steps >= free_.size()) free_.resize(steps + 1);
        if (Free* found = free_[steps]) {
            free_[steps] = found->next;
            return found;
        }
        const size_t size = steps * kStep;
        if (size > left_) grow(size);
        void* made = next_;
        next_ += size;
        left_ -= size;
        return made;
    }

    void give(void* block, size_t bytes) {
        const size_t steps = (bytes + kStep - 1) / kStep;
        Free* freed = static_cast<Free*>(block);
        freed->next = free_[steps];
        free_[steps] = freed;
    }

   private:
    struct Free {
        // The first word of a record stays readable; the link stands behind it.
        uint64_t first;
        Free* next;
    };

    [[gnu::noinline]] void grow(size_t wanted) {
        const size_t size = wanted > kChunk ? wanted : kChunk;
        void* chunk = nullptr;
        if (posix_memalign(&chunk, kStep, size) != 0) throw std::bad_alloc();
        // Records begin with atomics, which a stale reader may look at before they are made.
        memset(chunk, 0, size);
        chunks_.push_back(chunk);
        next_ = static_cast<char*>(chunk);
        left_ = size;
    }

    static constexpr size_t kChunk = size_t{256} << 10;
    List<Free*> free_;
    List<void*> chunks_;
    char* next_ = nullptr;
    size_t left_ = 0;
};

// Storage of one ring: buffers within a budget of bytes. Freed blocks are kept for reuse, by size, and given back to the
// system when they are more than the budget leaves. One thread uses it.
class Storage {
   public:
    static constexpr size_t kAlignment = 64;

    Storage() = default;
    Storage(const Storage&) = delete;
    Storage& operator=(const Storage&) = delete;
    ~Storage() { trim(0); }

    // Sizes in steps of an eighth of a power of two, so that a freed block fits many later requests.
    static size_t rounded(size_t bytes) {
        if (bytes <= kAlignment) return kAlignment;
        const int bits = 63 - __builtin_clzll(static_cast<unsigned long long>(bytes - 1));
        size_t step = size_t{1} << (bits > 3 ? bits - 3 : 0);
        if (step < kAlignment) step = kAlignment;
        return (bytes + step - 1) / step * step;
    }

    // `size`: a rounded one.
    char* take(size_t size) {
        live_ += size;
        if (live_ > high_water_) high_water_ = live_;
        Kept*& kept = kept_[place_of(size)];
        if (kept != nullptr) {
            Kept* const block = kept;
            kept = block->next;
            kept_bytes_ -= size;
            return reinterpret_cast<char*>(block);
        }
        void* made = nullptr;
        if (posix_memalign(&made, kAlignment, size) != 0) {
            trim(0);
            if (posix_memalign(&made, kAlignment, size) != 0) {
                live_ -= size;
                return nullptr;
            }
        }
        return static_cast<char*>(made);
    }

    void give(char* block, size_t size) {
        live_ -= size;
        Kept*& kept = kept_[place_of(size)];
        kept = new (static_cast<void*>(block)) Kept{kept, size};
        kept_bytes_ += size;
        if (kept_bytes_ > keep_at_most) trim(keep_at_most / 2);
    }

    void trim(size_t limit) {
        for (Kept*& kept : kept_) {
            while (kept_bytes_ > limit && kept != nullptr) {
                Kept* const block = kept;
                kept = block->next;
                kept_bytes_ -= block->size;
                free(block);
            }
        }
    }

    size_t live() const { return live_; }
    size_t high_water() const { return high_water_; }
    void begin_run() { high_water_ = live_; }

    size_t keep_at_most = size_t{256} << 20;

   private:
    // In front of a block that is kept.
    struct Kept {
        Kept* next;
        size_t size;
    };

    // Its own for each rounded size: the power of two below it, and which eighth of that.
    static uint32_t place_of(size_t size) {
        const uint32_t bits = 63 - static_cast<uint32_t>(__builtin_clzll(static_cast<unsigned long long>(size - 1)));
        return bits * 8 + static_cast<uint32_t>((size - 1) >> (bits - 3) & 7);
    }

    Kept* kept_[64 * 8] = {};
    size_t kept_bytes_ = 0;
    size_t live_ = 0;
    size_t high_water_ = 0;
};

}  // namespace pto
