// The live writers of one buffer, found by the bytes they write; or its readers.
//
// A few are kept in a list. More are kept in trees, so that a lookup costs what it returns (and a logarithm), however many
// disjoint bands or tiles of the buffer have writers. A tree has one level for each digit of a region's position (see
// Region::digital): rows, then columns, for tiles of a matrix. Each level finds intervals: those of a length in
// [2^c, 2^(c+1)) stand in one sorted map, so all that can meet a query begin less than 2^(c+1) in front of it.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

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
    bool empty() const { return count_ == 0; }
    uint32_t size() const { return count_; }

    void add(Entry* entry) {
        ++count_;
        if (!trees_in_use_) {
            if (count_ <= kFew) {
                few_[count_ - 1] = entry;
                return;
            }
            trees_in_use_ = true;
            for (Entry* each : few_) insert(each);
        }
        insert(entry);
    }

    void remove(Entry* entry) {
        --count_;
        if (!trees_in_use_) {
            uint32_t at = 0;
            while (few_[at] != entry) ++at;
            few_[at] = few_[count_];
            return;
        }
        Group& group = group_of(entry->region);
        Path path;
        make_path(group, entry->region, path);
        erase(group.root, path, 0, entry);
        if (count_ == 0) {
            groups_.clear();
            trees_in_use_ = false;
        }
    }

    // Calls visit(entry) for each writer that may share a byte with the region. `visited`: how many were looked at.
    template <typename Visit>
    void overlapping(const Region& region, uint64_t& visited, Visit&& visit) const {
        if (!trees_in_use_) {
            for (uint32_t i = 0; i < count_; ++i) {
                ++visited;
                if (overlaps(few_[i]->region, region)) visit(few_[i]);
            }
            return;
        }
        for (const Group& group : groups_) {
            Path path;
            make_query(group, region, path);
            search(group.root, path, 0, region, visited, visit);
        }
    }

    template <typename Visit>
    void all(Visit&& visit) const {
        for (uint32_t i = 0; i < count_ && !trees_in_use_; ++i) visit(few_[i]);
        for (const Group& group : groups_) walk(group.root, visit);
    }

   private:
    static constexpr uint32_t kFew = 8;

    using Interval = std::pair<int64_t, int64_t>;  // [first, second)

    struct Path {
        uint32_t depth = 0;
        Interval steps[PTO_MAX_DIMS + 1];
    };

    struct Node;
    struct SizeClass {
        int bits;
        std::map<Interval, Node> nodes;
    };
    struct Node {
        std::vector<SizeClass> classes;  // inner
        Entry* entries = nullptr;        // leaf: a list
        bool empty() const { return classes.empty() && entries == nullptr; }
    };
    // Regions of one kind: with digits for the same strides, or (levels = 0) all others, by their extents.
    struct Group {
        Region strides;
        Node root;
    };

    static int size_class(const Interval& interval) {
        const int64_t length = interval.second - interval.first;
        return length <= 1 ? 0 : 63 - __builtin_clzll(static_cast<unsigned long long>(length));
    }

    Group& group_of(const Region& region) {
        const bool digits = region.levels > 0 && region.digital();
        for (Group& group : groups_) {
            if (digits ? group.strides.same_strides(region) : group.strides.levels == 0) return group;
        }
        groups_.emplace_back();
        if (digits) groups_.back().strides = region;
        return groups_.back();
    }

    static void digits(const Region& region, Path& path) {
        int64_t at = region.low;
        for (uint32_t i = 0; i < region.levels; ++i) {
            const int64_t first = at / region.stride[i];
            path.steps[path.depth++] = {first, first + region.extent[i]};
            at %= region.stride[i];
        }
        path.steps[path.depth++] = {at, at + region.run};
    }

    static void make_path(const Group& group, const Region& region, Path& path) {
        if (group.strides.levels > 0) {
            digits(region, path);
        } else {
            path.steps[path.depth++] = {region.low, region.high};
        }
    }

    static void make_query(const Group& group, const Region& region, Path& path) {
        if (group.strides.levels == 0) {
            path.steps[path.depth++] = {region.low, region.high};
        } else if (region.same_strides(group.strides) && region.digital()) {
            digits(region, path);
        } else {
            common_digits(group.strides, region.low, region.high - 1, path);
        }
    }

    // What is known of the digits of all bytes from `first` to `last`: those that these two share, and the range of the
    // next one.
    static void common_digits(const Region& strides, int64_t first, int64_t last, Path& path) {
        bool shared = true;
        for (uint32_t i = 0; i <= strides.levels; ++i) {
            const int64_t stride = i < strides.levels ? strides.stride[i] : 1;
            Interval step{INT64_MIN, INT64_MAX};
            if (shared) step = {first / stride, last / stride + 1};
            shared = shared && first / stride == last / stride;
            path.steps[path.depth++] = step;
            first %= stride;
            last %= stride;
        }
    }

    void insert(Entry* entry) {
        Group& group = group_of(entry->region);
        Path path;
        make_path(group, entry->region, path);
        Node* node = &group.root;
        for (uint32_t i = 0; i < path.depth; ++i) {
            const int bits = size_class(path.steps[i]);
            SizeClass* found = nullptr;
            for (SizeClass& each : node->classes) {
                if (each.bits == bits) found = &each;
            }
            if (found == nullptr) {
                node->classes.push_back({bits, {}});
                found = &node->classes.back();
            }
            // Bands are mostly written in ascending order: the hint makes that case constant.
            node = &found->nodes.try_emplace(found->nodes.end(), path.steps[i])->second;
        }
        entry->sibling = node->entries;
        entry->from = &node->entries;
        if (entry->sibling != nullptr) entry->sibling->from = &entry->sibling;
        node->entries = entry;
    }

    static void erase(Node& node, const Path& path, uint32_t level, Entry* entry) {
        if (level == path.depth) {
            *entry->from = entry->sibling;
            if (entry->sibling != nullptr) entry->sibling->from = entry->from;
            return;
        }
        const int bits = size_class(path.steps[level]);
        for (size_t i = 0; i < node.classes.size(); ++i) {
            SizeClass& each = node.classes[i];
            if (each.bits != bits) continue;
            const auto place = each.nodes.find(path.steps[level]);
            if (place == each.nodes.end()) return;
            erase(place->second, path, level + 1, entry);
            if (place->second.empty()) each.nodes.erase(place);
            if (each.nodes.empty()) node.classes.erase(node.classes.begin() + static_cast<std::ptrdiff_t>(i));
            return;
        }
    }

    template <typename Visit>
    static void search(const Node& node, const Path& path, uint32_t level, const Region& region, uint64_t& visited,
                       Visit&& visit) {
        if (level >= path.depth || level > PTO_MAX_DIMS) {
            for (Entry* each = node.entries; each != nullptr; each = each->sibling) {
                ++visited;
                if (overlaps(each->region, region)) visit(each);
            }
            return;
        }
        const Interval& wanted = path.steps[level];
        for (const SizeClass& each : node.classes) {
            auto at = each.nodes.begin();
            if (wanted.first != INT64_MIN) {
                const int64_t reach = each.bits >= 62 ? INT64_MAX : (int64_t{2} << each.bits) - 1;
                at = each.nodes.lower_bound({wanted.first - reach, INT64_MIN});
            }
            for (; at != each.nodes.end() && at->first.first < wanted.second; ++at) {
                ++visited;
                if (at->first.second > wanted.first) search(at->second, path, level + 1, region, visited, visit);
            }
        }
    }

    template <typename Visit>
    static void walk(const Node& node, Visit&& visit) {
        for (Entry* each = node.entries; each != nullptr;) {
            Entry* const following = each->sibling;  // the visitor may give the entry back
            visit(each);
            each = following;
        }
        for (const SizeClass& each : node.classes) {
            for (const auto& inner : each.nodes) walk(inner.second, visit);
        }
    }

    uint32_t count_ = 0;
    bool trees_in_use_ = false;
    Entry* few_[kFew];
    std::vector<Group> groups_;
};

}  // namespace pto
