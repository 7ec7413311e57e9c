// What regions and their index do beyond the simplest cases: exact tests of boxes, and the trees of many writers. A unit of
// its own, since ordered maps take a while to compile.
#include "writer_index.h"

#include <map>
#include <utility>

namespace pto {

// --- regions --------------------------------------------------------------------------------------------------------

bool Region::digital() const {
    int64_t inner = run;
    for (uint32_t i = levels; i-- > 0;) {
        if (stride[i] < inner) return false;
        if (i + 1 < levels && stride[i] % stride[i + 1] != 0) return false;
        inner = stride[i];
    }
    // No digit may carry into the next: a box that wraps round the end of a row is none.
    int64_t at = low;
    for (uint32_t i = 0; i < levels; ++i) {
        if (i > 0 && at / stride[i] + extent[i] > stride[i - 1] / stride[i]) return false;
        at %= stride[i];
    }
    return levels == 0 || at + run <= stride[levels - 1];
}

// Dimensions are taken from the innermost out; one that continues the previous without a gap joins it.
Region Region::of_strided(const ChipTensor& tensor, int64_t size, Region made) {
    struct Level {
        int64_t stride, extent;
    } found[PTO_MAX_DIMS];
    uint32_t count = 0;
    made.run = size;
    made.high = made.low + size;
    // In order of strides, which a transposed view has not: sort a copy of the dimensions.
    for (uint32_t i = 0; i < tensor.ndims; ++i) {
        if (tensor.shapes[i] == 0) {
            made.high = made.low;
            made.run = 0;
            return made;
        }
        if (tensor.shapes[i] == 1 || tensor.strides[i] == 0) continue;  // the same bytes, once or again and again
        Level level{tensor.strides[i] * size, tensor.shapes[i]};
        uint32_t at = count++;
        while (at > 0 && found[at - 1].stride > level.stride) {
            found[at] = found[at - 1];
            --at;
        }
        found[at] = level;
    }
    Level kept[PTO_MAX_DIMS];
    uint32_t levels = 0;
    for (uint32_t i = 0; i < count; ++i) {
        const Level& level = found[i];
        made.high += (level.extent - 1) * level.stride;
        if (levels == 0 && level.stride == made.run) {
            made.run *= level.extent;
        } else if (levels > 0 && level.stride == kept[levels - 1].stride * kept[levels - 1].extent) {
            kept[levels - 1].extent *= level.extent;
        } else {
            kept[levels++] = level;
        }
    }
    made.levels = levels;
    for (uint32_t i = 0; i < levels; ++i) {
        made.stride[i] = kept[levels - 1 - i].stride;
        made.extent[i] = kept[levels - 1 - i].extent;
    }
    return made;
}

namespace {

// Whether a box, of whose levels the ones from `level` on are left, has a byte in [low, high). `base`: its first byte.
// Cost: the levels, since only the first and last repetition that reaches the interval can miss it.
bool box_meets_interval(const Region& box, uint32_t level, int64_t base, int64_t low, int64_t high) {
    if (level == box.levels) return base < high && low < base + box.run;
    int64_t span = box.run;
    for (uint32_t i = level + 1; i < box.levels; ++i) span += (box.extent[i] - 1) * box.stride[i];
    const int64_t stride = box.stride[level];
    // Repetitions k with base + k*stride < high and base + k*stride + span > low.
    int64_t first = low - base - span < 0 ? 0 : (low - base - span) / stride + 1;
    int64_t last = high - base <= 0 ? -1 : (high - base - 1) / stride;
    if (last >= box.extent[level]) last = box.extent[level] - 1;
    if (first > last) return false;
    // A repetition strictly between begins inside the interval. (Interleaved repetitions: say yes.)
    if (last - first >= 2 || span > stride) return true;
    for (int64_t k = first; k <= last; ++k) {
        if (box_meets_interval(box, level + 1, base + k * stride, low, high)) return true;
    }
    return false;
}

}  // namespace

bool boxes_overlap(const Region& a, const Region& b) {
    if (a.levels == 0) return box_meets_interval(b, 0, b.low, a.low, a.high);
    if (b.levels == 0) return box_meets_interval(a, 0, a.low, b.low, b.high);
    if (a.same_strides(b) && a.digital() && b.digital()) {
        int64_t at_a = a.low, at_b = b.low;
        for (uint32_t i = 0; i < a.levels; ++i) {
            const int64_t first_a = at_a / a.stride[i], first_b = at_b / b.stride[i];
            if (first_a >= first_b + b.extent[i] || first_b >= first_a + a.extent[i]) return false;
            at_a %= a.stride[i];
            at_b %= b.stride[i];
        }
        return at_a < at_b + b.run && at_b < at_a + a.run;
    }
    int64_t divisor = 0;
    const Region* const both[] = {&a, &b};
    for (const Region* region : both) {
        for (uint32_t i = 0; i < region->levels; ++i) {
            int64_t x = region->stride[i];
            while (x != 0) {
                const int64_t rest = divisor % x;
                divisor = x;
                x = rest;
            }
        }
    }
    const int64_t at_a = a.low % divisor, at_b = b.low % divisor;
    // The runs, seen on a circle of length `divisor`.
    const int64_t ahead = at_b >= at_a ? at_b - at_a : at_b - at_a + divisor;
    return ahead < a.run || divisor - ahead < b.run || ahead == 0;
}

bool box_covers(const Region& outer, const Region& inner) {
    // A contiguous region is a box, too, of one repetition at each level.
    const bool flat = inner.levels == 0;
    if (!outer.digital() || (!flat && (!outer.same_strides(inner) || !inner.digital()))) return false;
    int64_t at_o = outer.low, at_i = inner.low;
    for (uint32_t i = 0; i < outer.levels; ++i) {
        const int64_t first_o = at_o / outer.stride[i], first_i = at_i / outer.stride[i];
        if (first_i < first_o || first_i + (flat ? 1 : inner.extent[i]) > first_o + outer.extent[i]) return false;
        at_o %= outer.stride[i];
        at_i %= outer.stride[i];
    }
    return at_i >= at_o && at_i + inner.run <= at_o + outer.run;
}

// --- trees ----------------------------------------------------------------------------------------------------------

namespace trees {

using Interval = std::pair<int64_t, int64_t>;  // [first, second)

struct Path {
    uint32_t depth = 0;
    Interval steps[PTO_MAX_DIMS + 1];
};

struct SizeClass;
struct Node {
    SizeClass* classes = nullptr;  // inner: a list
    Entry* entries = nullptr;      // leaf: a list

    Node() = default;
    Node(const Node&) = delete;
    Node& operator=(const Node&) = delete;
    ~Node();
    bool empty() const { return classes == nullptr && entries == nullptr; }
};
struct SizeClass {
    int bits;
    SizeClass* next;
    std::map<Interval, Node> nodes;
};
// Regions of one kind: with digits for the same strides, or (levels = 0) all others, by their extents.
struct Group {
    Group* next = nullptr;
    Region strides;
    Node root;
};

Node::~Node() {
    while (classes != nullptr) {
        SizeClass* const following = classes->next;
        delete classes;
        classes = following;
    }
}

}  // namespace trees

using namespace trees;

namespace {

int size_class(const Interval& interval) {
    const int64_t length = interval.second - interval.first;
    return length <= 1 ? 0 : 63 - __builtin_clzll(static_cast<unsigned long long>(length));
}

void digits(const Region& region, Path& path) {
    int64_t at = region.low;
    for (uint32_t i = 0; i < region.levels; ++i) {
        const int64_t first = at / region.stride[i];
        path.steps[path.depth++] = {first, first + region.extent[i]};
        at %= region.stride[i];
    }
    path.steps[path.depth++] = {at, at + region.run};
}

// What is known of the digits of all bytes from `first` to `last`: those that these two share, and the range of the
// next one.
void common_digits(const Region& strides, int64_t first, int64_t last, Path& path) {
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

void make_path(const Group& group, const Region& region, Path& path) {
    if (group.strides.levels > 0) {
        digits(region, path);
    } else {
        path.steps[path.depth++] = {region.low, region.high};
    }
}

void make_query(const Group& group, const Region& region, Path& path) {
    if (group.strides.levels == 0) {
        path.steps[path.depth++] = {region.low, region.high};
    } else if (region.same_strides(group.strides) && region.digital()) {
        digits(region, path);
    } else {
        common_digits(group.strides, region.low, region.high - 1, path);
    }
}

void erase(Node& node, const Path& path, uint32_t level, Entry* entry) {
    if (level == path.depth) {
        *entry->from = entry->sibling;
        if (entry->sibling != nullptr) entry->sibling->from = entry->from;
        return;
    }
    const int bits = size_class(path.steps[level]);
    for (SizeClass** link = &node.classes; *link != nullptr; link = &(*link)->next) {
        SizeClass* const found = *link;
        if (found->bits != bits) continue;
        const auto place = found->nodes.find(path.steps[level]);
        if (place == found->nodes.end()) return;
        erase(place->second, path, level + 1, entry);
        if (place->second.empty()) found->nodes.erase(place);
        if (found->nodes.empty()) {
            *link = found->next;
            delete found;
        }
        return;
    }
}

void search(const Node& node, const Path& path, uint32_t level, const Region& region, uint64_t& visited,
            List<Entry*>& found) {
    if (level >= path.depth || level > PTO_MAX_DIMS) {
        for (Entry* each = node.entries; each != nullptr; each = each->sibling) {
            ++visited;
            if (overlaps(each->region, region)) found.push_back(each);
        }
        return;
    }
    const Interval& wanted = path.steps[level];
    for (const SizeClass* each = node.classes; each != nullptr; each = each->next) {
        auto at = each->nodes.begin();
        if (wanted.first != INT64_MIN) {
            const int64_t reach = each->bits >= 62 ? INT64_MAX : (int64_t{2} << each->bits) - 1;
            at = each->nodes.lower_bound({wanted.first - reach, INT64_MIN});
        }
        for (; at != each->nodes.end() && at->first.first < wanted.second; ++at) {
            ++visited;
            if (at->first.second > wanted.first) search(at->second, path, level + 1, region, visited, found);
        }
    }
}

void walk(const Node& node, List<Entry*>& found) {
    for (Entry* each = node.entries; each != nullptr; each = each->sibling) found.push_back(each);
    for (const SizeClass* each = node.classes; each != nullptr; each = each->next) {
        for (const auto& inner : each->nodes) walk(inner.second, found);
    }
}

}  // namespace

struct WriterIndex::Trees {
    Group* groups = nullptr;
    List<Entry*> found;

    ~Trees() {
        while (groups != nullptr) {
            Group* const following = groups->next;
            delete groups;
            groups = following;
        }
    }

    Group& group_of(const Region& region) {
        const bool digits = region.levels > 0 && region.digital();
        Group** link = &groups;
        for (; *link != nullptr; link = &(*link)->next) {
            const Region& strides = (*link)->strides;
            if (digits ? strides.same_strides(region) : strides.levels == 0) return **link;
        }
        *link = new Group;
        if (digits) (*link)->strides = region;
        return **link;
    }

    void insert(Entry* entry) {
        Group& group = group_of(entry->region);
        Path path;
        make_path(group, entry->region, path);
        Node* node = &group.root;
        for (uint32_t i = 0; i < path.depth; ++i) {
            const int bits = size_class(path.steps[i]);
            SizeClass* found = nullptr;
            for (SizeClass* each = node->classes; each != nullptr; each = each->next) {
                if (each->bits == bits) found = each;
            }
            if (found == nullptr) found = node->classes = new SizeClass{bits, node->classes, {}};
            // Bands are mostly written in ascending order: the hint makes that case constant.
            node = &found->nodes.try_emplace(found->nodes.end(), path.steps[i])->second;
        }
        entry->sibling = node->entries;
        entry->from = &node->entries;
        if (entry->sibling != nullptr) entry->sibling->from = &entry->sibling;
        node->entries = entry;
    }
};

void WriterIndex::add_to_trees(Entry* entry) {
    if (trees_ == nullptr) {
        trees_ = new Trees;
        for (Entry* each : few_) trees_->insert(each);
    }
    trees_->insert(entry);
}

void WriterIndex::remove_from_trees(Entry* entry) {
    Group& group = trees_->group_of(entry->region);
    Path path;
    make_path(group, entry->region, path);
    erase(group.root, path, 0, entry);
}

const List<Entry*>& WriterIndex::found_in_trees(const Region& region, uint64_t& visited) const {
    trees_->found.clear();
    for (const Group* group = trees_->groups; group != nullptr; group = group->next) {
        Path path;
        make_query(*group, region, path);
        search(group->root, path, 0, region, visited, trees_->found);
    }
    return trees_->found;
}

const List<Entry*>& WriterIndex::all_in_trees() const {
    trees_->found.clear();
    for (const Group* group = trees_->groups; group != nullptr; group = group->next) walk(group->root, trees_->found);
    return trees_->found;
}

void WriterIndex::end_trees() {
    delete trees_;
    trees_ = nullptr;
}

}  // namespace pto
