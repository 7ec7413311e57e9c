// The live writers of one buffer, found by the bytes they write; or its readers.
//
// A few are kept in a list. More are kept in trees, so that a lookup costs what it returns (and a logarithm), however many
// disjoint bands or tiles of the buffer have writers. A tree has one level for each digit of a region's position (see
// Region::digital): rows, then columns, for tiles of a matrix. Each level finds intervals: those of a length in
// [2^c, 2^(c+1)) stand in one sorted map, so all that can meet a query begin less than 2^(c+1) in front of it.
#pragma once

#include "plain.h"
#include "region.h"

namespace pto {

struct Task;
struct Buffer;

// One registered writer or reader.
struct Entry {
    Task* task;      // null when it is done and its memory was reused
    uint64_t number;  // in order of submission
    Buffer* buffer;  // null when the entry was taken out of the index
    Entry* next;     // of the same task
    Entry* sibling;  // in the index: of the same region
    Entry** from;    // what points to it there
    bool reads;      // it stands among the readers
    Region region;
};

class WriterIndex {
   public:
    WriterIndex() = default;
    WriterIndex(const WriterIndex&) = delete;
    WriterIndex& operator=(const WriterIndex&) = delete;
    ~WriterIndex() {
        if (trees_ != nullptr) end_trees();
    }

    bool empty() const { return count_ == 0; }
    uint32_t size() const { return count_; }

    void add(Entry* entry) {
        if (trees_ == nullptr && count_ < kFew) {
            few_[count_++] = entry;
            return;
        }
        ++count_;
        add_to_trees(entry);
    }

    void remove(Entry* entry) {
        --count_;
        if (trees_ != nullptr) {
            remove_from_trees(entry);
            if (count_ == 0) end_trees();
            return;
        }
        uint32_t at = 0;
        while (few_[at] != entry) ++at;
        few_[at] = few_[count_];
    }

    // Calls visit(entry) for each writer that may share a byte with the region. `visited`: how many were looked at.
    template <typename Visit>
    void overlapping(const Region& region, uint64_t& visited, Visit&& visit) const {
        if (trees_ != nullptr) {
            for (Entry* each : found_in_trees(region, visited)) visit(each);
            return;
        }
        for (uint32_t i = 0; i < count_; ++i) {
            ++visited;
            if (overlaps(few_[i]->region, region)) visit(few_[i]);
        }
    }

    template <typename Visit>
    void all(Visit&& visit) const {
        if (trees_ != nullptr) {
            for (Entry* each : all_in_trees()) visit(each);
            return;
        }
        for (uint32_t i = 0; i < count_; ++i) visit(few_[i]);
    }

   private:
    static constexpr uint32_t kFew = 8;

    // In regions.cpp. A list is good until the next call.
    struct Trees;
    void add_to_trees(Entry* entry);
    void remove_from_trees(Entry* entry);
    const List<Entry*>& found_in_trees(const Region& region, uint64_t& visited) const;
    const List<Entry*>& all_in_trees() const;
    void end_trees();

    uint32_t count_ = 0;
    Trees* trees_ = nullptr;  // null: all are in the list
    Entry* few_[kFew];
};

}  // namespace pto
