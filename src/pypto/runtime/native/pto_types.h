// Types that orchestration code, kernels and the task runtime share. Light on purpose: every emitted source includes it.
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <string.h>

// A task, for ever: the ring in the high half, a number that only grows in the low half. All ones: no task.
struct PTO2TaskId {
    uint64_t raw;

    static constexpr PTO2TaskId invalid() { return PTO2TaskId{~uint64_t{0}}; }
    static constexpr PTO2TaskId make(uint32_t ring, uint32_t number) {
        return PTO2TaskId{(uint64_t{ring} << 32) | number};
    }
    constexpr bool is_valid() const { return raw != ~uint64_t{0}; }
    constexpr uint32_t ring() const { return static_cast<uint32_t>(raw >> 32); }
    constexpr uint32_t number() const { return static_cast<uint32_t>(raw); }
    friend constexpr bool operator==(PTO2TaskId a, PTO2TaskId b) { return a.raw == b.raw; }
    friend constexpr bool operator!=(PTO2TaskId a, PTO2TaskId b) { return a.raw != b.raw; }
};

// Element types in their code order. A packed FP4E2M1 element pair counts as one element of one byte.
enum class DataType : uint8_t {
    FLOAT32 = 0,
    FLOAT16,
    INT32,
    INT16,
    INT8,
    UINT8,
    BFLOAT16,
    INT64,
    UINT64,
    UINT16,
    UINT32,
    BOOL,
    FP8E4M3FN,
    FP8E8M0,
    FP4E2M1,
    FP8E5M2,
    UNKNOWN,
};

// Bytes of an element; 0 for UNKNOWN.
constexpr uint32_t pto_element_size(DataType dtype) {
    switch (dtype) {
        case DataType::INT64:
        case DataType::UINT64:
            return 8;
        case DataType::FLOAT32:
        case DataType::INT32:
        case DataType::UINT32:
            return 4;
        case DataType::FLOAT16:
        case DataType::BFLOAT16:
        case DataType::INT16:
        case DataType::UINT16:
            return 2;
        case DataType::UNKNOWN:
            return 0;
        default:
            return 1;
    }
}

constexpr uint32_t PTO_MAX_DIMS = 5;
constexpr uint32_t PTO_MAX_TENSORS = 32;  // of one task
constexpr uint32_t PTO_MAX_SCALARS = 16;
constexpr uint32_t PTO_LOCAL_CONTEXT_SLOT = 48;   // of a kernel's arguments
constexpr uint32_t PTO_GLOBAL_CONTEXT_SLOT = 49;
constexpr uint32_t PTO_ARGUMENT_SLOTS = 50;

namespace pto {
struct Buffer;  // the runtime's record of a buffer
void misuse(const char* what);  // a view that can't be made: reported as error 5
}  // namespace pto

// A view of a buffer. Offsets and strides count elements. Default construction leaves all but `buffer` uninitialised.
struct ChipTensor {
    uint64_t buffer_addr;
    uint64_t buffer_size;  // bytes
    PTO2TaskId owner_task_id;
    pto::Buffer* buffer = nullptr;  // null: this tensor was never given a value
    uint64_t start_offset;
    uint32_t ndims;
    DataType dtype;
    bool manual_dep;
    bool is_contiguous;
    uint32_t shapes[PTO_MAX_DIMS];
    int64_t strides[PTO_MAX_DIMS];

    template <typename T = void>
    T* data() const {
        return reinterpret_cast<T*>(buffer_addr + start_offset * pto_element_size(dtype));
    }

    uint64_t numel() const {
        uint64_t count = 1;
        for (uint32_t i = 0; i < ndims; ++i) count *= shapes[i];
        return count;
    }

    // Whether the elements stand in the buffer without gaps, in row-major order.
    bool contiguous_by_strides() const {
        int64_t expected = 1;
        bool dense = true;
        for (uint32_t i = ndims; i-- > 0;) {
            dense = dense && (shapes[i] == 1 || strides[i] == expected);
            expected *= shapes[i];
        }
        return dense || expected == 0;
    }

    // A box: `extents` elements from `offsets` on, in each dimension.
    ChipTensor view(const uint32_t* extents, const uint32_t* offsets, bool manual = false) const {
        ChipTensor made = *this;
        made.manual_dep = manual_dep || manual;
        int64_t expected = 1;
        bool dense = true;
        for (uint32_t i = ndims; i-- > 0;) {
            if (uint64_t{offsets[i]} + extents[i] > shapes[i] && extents[i] != 0) {
                pto::misuse("view: offset + extent is beyond the parent's shape");
            }
            made.start_offset += static_cast<uint64_t>(static_cast<int64_t>(offsets[i]) * strides[i]);
            made.shapes[i] = extents[i];
            dense = dense && (extents[i] == 1 || strides[i] == expected);
            expected *= extents[i];
        }
        made.is_contiguous = dense || expected == 0;
        return made;
    }

    ChipTensor reshape(const uint32_t* extents, uint32_t count) const {
        ChipTensor made = *this;
        if (count > PTO_MAX_DIMS) {
            pto::misuse("reshape: more than 5 dimensions");
            return made;
        }
        if (!is_contiguous) pto::misuse("reshape: the tensor is not contiguous");
        int64_t stride = 1;
        for (uint32_t i = count; i-- > 0;) {
            made.shapes[i] = extents[i];
            made.strides[i] = stride;
            stride *= extents[i];
        }
        made.ndims = count;
        if (static_cast<uint64_t>(stride) != numel()) pto::misuse("reshape: the number of elements changes");
        return made;
    }

    ChipTensor transpose(uint32_t a, uint32_t b) const {
        ChipTensor made = *this;
        if (a >= ndims || b >= ndims) {
            pto::misuse("transpose: no such dimension");
            return made;
        }
        made.shapes[a] = shapes[b];
        made.shapes[b] = shapes[a];
        made.strides[a] = strides[b];
        made.strides[b] = strides[a];
        made.is_contiguous = made.contiguous_by_strides();
        return made;
    }

    // Dimension i of the result is dimension order[i] of this.
    ChipTensor permute(const uint32_t* order) const {
        ChipTensor made = *this;
        uint32_t seen = 0;
        for (uint32_t i = 0; i < ndims; ++i) {
            if (order[i] >= ndims || (seen >> order[i] & 1u)) {
                pto::misuse("permute: not a permutation of the dimensions");
                return *this;
            }
            seen |= 1u << order[i];
            made.shapes[i] = shapes[order[i]];
            made.strides[i] = strides[order[i]];
        }
        made.is_contiguous = made.contiguous_by_strides();
        return made;
    }

    // Elements start, start + step, ... below end of one dimension.
    ChipTensor slice(uint32_t dim, uint32_t start, uint32_t end, uint32_t step = 1) const {
        ChipTensor made = *this;
        if (dim >= ndims || step == 0 || start > end || end > shapes[dim]) {
            pto::misuse("slice: no such range of the dimension");
            return made;
        }
        made.start_offset += static_cast<uint64_t>(static_cast<int64_t>(start) * strides[dim]);
        made.shapes[dim] = (end - start + step - 1) / step;
        made.strides[dim] = strides[dim] * step;
        made.is_contiguous = made.contiguous_by_strides();
        return made;
    }
};

// What a kernel finds behind slots 48 and 49 of its arguments. (The slots before: tensors, then scalars.)
struct PtoLocalContext {
    int32_t block_idx;
    int32_t block_num;
    int64_t task;  // number of the task, in order of submission: with the block it names those that run together
};
struct PtoGlobalContext {
    int32_t sub_block_id;  // which vector lane of a mixed or dual-lane task: 0 or 1
    int32_t parts;         // kernels that run together for one block
    int32_t lanes;         // vector lanes among them
};
using PtoKernel = void (*)(int64_t* args);

// How a kernel touches bytes. Two accesses conflict unless both read or both are atomic.
enum class PtoAccess : uint32_t { READ = 0, WRITE = 1, ATOMIC = 2 };

// A scalar argument travels as 64 raw bits.
template <typename T>
inline uint64_t to_u64(T value) {
    static_assert(sizeof(T) <= sizeof(uint64_t), "a scalar has at most 64 bits");
    uint64_t bits = 0;
    memcpy(&bits, &value, sizeof(T));
    return bits;
}
template <typename T>
inline T from_u64(uint64_t bits) {
    static_assert(sizeof(T) <= sizeof(uint64_t), "a scalar has at most 64 bits");
    T value;
    memcpy(&value, &bits, sizeof(T));
    return value;
}
