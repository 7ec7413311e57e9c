// Which part of an argument a kernel touches: a box whose ends are sums of multiples of scalars, extents and the block.
//
// The words of a kernel: the number of tensors, for each tensor the position of its boxes (0: nothing is known), then
// the boxes. A tensor: how many boxes, of how many dimensions; a dimension of a box: 0 for all of it, or 1, the form
// of its first element and that of how many there are; a form: a constant, how many terms, and for each term its
// factor, its kind, and two words that say which one it is. (Written by part_words in touched_parts.py.)
#pragma once

#include "options.h"
#include "plain.h"

namespace pto {

enum class PartTerm : int64_t { SCALAR = 0, EXTENT = 1, BLOCK = 2 };

class Parts {
   public:
    Parts(const CoreTaskArgs& args) : args_(args), last_block_(static_cast<int64_t>(args.launch_spec.block_num) - 1) {}

    // Makes `part` the part of `tensor`, argument `index`, that these kernels touch; false if it may be all of it.
    bool cut(const KernelInfo* kernels, const int32_t (&numbers)[3], uint32_t index, const ChipTensor& tensor,
             ChipTensor& part) {
        for (uint32_t i = 0; i < tensor.ndims; ++i) {
            low_[i] = INT64_MAX;
            high_[i] = INT64_MIN;
        }
        for (const int32_t number : numbers) {
            if (number != INVALID_KERNEL_ID && !join(kernels[number].parts, index, tensor)) return false;
        }
        uint32_t extents[PTO_MAX_DIMS], offsets[PTO_MAX_DIMS];
        for (uint32_t i = 0; i < tensor.ndims; ++i) {
            const int64_t extent = tensor.shapes[i];
            const int64_t low = clamp(low_[i], 0, extent);
            offsets[i] = static_cast<uint32_t>(low);
            extents[i] = static_cast<uint32_t>(clamp(high_[i], low, extent) - low);
        }
        part = tensor.view(extents, offsets);
        return true;
    }

   private:
    bool join(const int64_t* words, uint32_t index, const ChipTensor& tensor) {
        if (words == nullptr || index >= words[0] || words[1 + index] == 0) return false;
        const int64_t* at = words + words[1 + index];
        const int64_t boxes = *at++;
        if (*at++ != tensor.ndims) return false;
        for (int64_t box = 0; box < boxes; ++box) {
            for (uint32_t i = 0; i < tensor.ndims; ++i) {
                if (*at++ == 0) {
                    low_[i] = least<int64_t>(low_[i], 0);
                    high_[i] = most<int64_t>(high_[i], tensor.shapes[i]);
                    continue;
                }
                Form low, size, high;
                if (!form(at, low) || !form(at, size)) return false;
                if (add(low.first, size.first, high.first) || add(low.last, size.last, high.last)) return false;
                low_[i] = least(low_[i], least(low.first, low.last));
                high_[i] = most(high_[i], most(high.first, high.last));
            }
        }
        return true;
    }

    // The value of a form in the first block and in the last one.
    struct Form {
        int64_t first, last;
    };

    // False if a number does not fit, or is that of a tensor that the runtime allocates.
    bool form(const int64_t*& at, Form& made) const {
        int64_t value = *at++, by_block = 0, last = 0;
        bool fits = true;
        for (int64_t terms = *at++; terms > 0; --terms, at += 4) {
            int64_t each = 0;
            switch (static_cast<PartTerm>(at[1])) {
                case PartTerm::SCALAR:
                    fits = fits && scalar(static_cast<uint32_t>(at[2]), at[3], each);
                    break;
                case PartTerm::EXTENT: {
                    const auto tensor = static_cast<uint32_t>(at[2]);
                    fits = fits && tensor < args_.tensor_count_ && args_.tags_[tensor] != Tag::OUTPUT;
                    if (fits) each = args_.arguments_[tensor].tensor->shapes[at[3]];
                    break;
                }
                case PartTerm::BLOCK:
                    by_block += at[0];
                    continue;
            }
            fits = fits && !multiply(at[0], each, each) && !add(value, each, value);
        }
        made.first = value;
        fits = fits && !multiply(by_block, last_block_, last) && !add(value, last, made.last);
        return fits;
    }

    // A scalar argument by its width in bits, which is negative for signed types.
    bool scalar(uint32_t index, int64_t width, int64_t& value) const {
        if (index >= args_.scalar_count_) return false;
        const uint64_t bits = args_.scalars_[index];
        const int unused = static_cast<int>(64 - (width < 0 ? -width : width));
        if (width < 0) {
            value = static_cast<int64_t>(bits << unused) >> unused;
            return true;
        }
        const uint64_t plain = bits << unused >> unused;
        value = static_cast<int64_t>(plain);
        return plain <= static_cast<uint64_t>(INT64_MAX);
    }

    static int64_t clamp(int64_t value, int64_t low, int64_t high) { return most(low, least(value, high)); }
    static bool add(int64_t a, int64_t b, int64_t& sum) { return __builtin_add_overflow(a, b, &sum); }
    static bool multiply(int64_t a, int64_t b, int64_t& product) { return __builtin_mul_overflow(a, b, &product); }

    const CoreTaskArgs& args_;
    const int64_t last_block_;
    int64_t low_[PTO_MAX_DIMS];
    int64_t high_[PTO_MAX_DIMS];
};

}  // namespace pto
