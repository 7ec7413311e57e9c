// The bytes of a view inside its buffer, and whether two views share one.
#pragma once

#include "../pto_types.h"

namespace pto {

// A strided box of bytes: `run` contiguous ones, repeated `extent[i]` times at distance `stride[i]`, outermost first.
// `low` and `high` are the first byte and one behind the last. A contiguous region has no levels.
struct Region {
    int64_t low = 0;
    int64_t high = 0;
    int64_t run = 0;
    uint32_t levels = 0;
    int64_t stride[PTO_MAX_DIMS];
    int64_t extent[PTO_MAX_DIMS];

    // Of the levels, only those that are there are ever initialised: most regions have none.
    Region() {}

    bool empty() const { return low == high; }

    // Whether the position of a byte has one digit a level, so that boxes of equal strides are compared digit by digit.
    bool digital() const;

    bool same_strides(const Region& other) const {
        if (levels != other.levels) return false;
        for (uint32_t i = 0; i < levels; ++i) {
            if (stride[i] != other.stride[i]) return false;
        }
        return true;
    }

    static Region of(const ChipTensor& tensor) {
        const int64_t size = pto_element_size(tensor.dtype);
        Region made;
        made.low = made.high = static_cast<int64_t>(tensor.start_offset) * size;
        if (tensor.is_contiguous) {
            made.run = static_cast<int64_t>(tensor.numel()) * size;
            made.high += made.run;
            return made;
        }
        return of_strided(tensor, size, made);
    }

   private:
    static Region of_strided(const ChipTensor& tensor, int64_t size, Region made);
};

// --- exact tests (the harder cases in regions.cpp) ------------------------------------------------------------------

bool boxes_overlap(const Region& a, const Region& b);
bool box_covers(const Region& outer, const Region& inner);

// Whether two regions of one buffer may share a byte. Exact where one is contiguous, and for boxes of equal strides whose
// positions have digits; for others by extents, and by the distance of their first bytes where all strides have a common
// divisor (no run of one ever meets a run of the other).
inline bool overlaps(const Region& a, const Region& b) {
    if (a.empty() || b.empty() || a.high <= b.low || b.high <= a.low) return false;
    return (a.levels == 0 && b.levels == 0) || boxes_overlap(a, b);
}

// Whether every byte of `inner` certainly belongs to `outer`.
inline bool covers(const Region& outer, const Region& inner) {
    if (outer.low > inner.low || outer.high < inner.high) return false;
    return outer.levels == 0 || box_covers(outer, inner);
}

}  // namespace pto
