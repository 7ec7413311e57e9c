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
    bool digital() const {
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
    // Dimensions are taken from the innermost out; one that continues the previous without a gap joins it.
    static Region of_strided(const ChipTensor& tensor, int64_t size, Region made) {
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
};

// --- exact tests ----------------------------------------------------------------------------------------------------

// Whether a box, of whose levels the ones from `level` on are left, has a byte in [low, high). `base`: its first byte.
// Cost: the levels, since only the first and last repetition that reaches the interval can miss it.
inline bool box_meets_interval(const Region& box, uint32_t level, int64_t base, int64_t low, int64_t high) {
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

// Whether two regions of one buffer may share a byte. Exact where one is contiguous, and for boxes of equal strides whose
// positions have digits; for others by extents, and by the distance of their first bytes where all strides have a common
// divisor (no run of one ever meets a run of the other).
inline bool overlaps(const Region& a, const Region& b) {
    if (a.empty() || b.empty() || a.high <= b.low || b.high <= a.low) return false;
    if (a.levels == 0 && b.levels == 0) return true;
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
    for (const Region* region : {&a, &b}) {
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

// Whether every byte of `inner` certainly belongs to `outer`.
inline bool covers(const Region& outer, const Region& inner) {
    if (outer.low > inner.low || outer.high < inner.high) return false;
    if (outer.levels == 0) return true;
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

}  // namespace pto
