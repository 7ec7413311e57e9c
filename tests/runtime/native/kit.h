// What the orchestrations of these tests share: short ways to submit tasks, and a few kernels.
#pragma once

#include <atomic>
#include <initializer_list>
#include <vector>

#include "pto_orchestration_api.h"

// --- submitting -----------------------------------------------------------------------------------------------------

struct Arg {
    const ChipTensor& tensor;
    pto::Tag tag;
};
inline Arg in(const ChipTensor& tensor) { return {tensor, pto::Tag::INPUT}; }
inline Arg inout(const ChipTensor& tensor) { return {tensor, pto::Tag::INOUT}; }
inline Arg out(const ChipTensor& tensor) { return {tensor, pto::Tag::OUTPUT_EXISTING}; }
inline Arg no_dep(const ChipTensor& tensor) { return {tensor, pto::Tag::NO_DEP}; }

// Explicit dependencies.
struct after {
    PTO2TaskId ids[8];
    uint32_t count = 0;
    after(std::initializer_list<TaskOutputTensors> tasks) {
        for (const TaskOutputTensors& task : tasks) ids[count++] = task.task_id();
    }
};

inline void add_to(CoreTaskArgs& args, const Arg& arg) {
    switch (arg.tag) {
        case pto::Tag::INPUT:
            return args.add_input(arg.tensor);
        case pto::Tag::INOUT:
            return args.add_inout(arg.tensor);
        case pto::Tag::NO_DEP:
            return args.add_no_dep(arg.tensor);
        default:
            return args.add_output(arg.tensor);
    }
}
inline void add_to(CoreTaskArgs& args, const TensorCreateInfo& info) { args.add_output(info); }
inline void add_to(CoreTaskArgs& args, const after& tasks) { args.set_dependencies(tasks.ids, tasks.count); }
inline void add_to(CoreTaskArgs& args, int64_t scalar) { args.add_scalar(scalar); }

// A kernel, and the line that launches it.
struct KernelAt {
    int32_t kernel;
    uint32_t line;
    KernelAt(int32_t number, uint32_t at = __builtin_LINE()) : kernel(number), line(at) {}
};
// launch(id::fill, out(x), 3): tensors, dependencies and scalars in any mixture that the runtime allows.
template <typename... Ts>
TaskOutputTensors launch(KernelAt kernel, const Ts&... what) {
    CoreTaskArgs args;
    (add_to(args, what), ...);
    return rt_submit_aiv_task(kernel.kernel, args, kernel.line);
}
// A task that does nothing: for the order of tasks.
template <typename... Ts>
TaskOutputTensors task(const Ts&... what) {
    return launch(0, what...);
}

inline TensorCreateInfo matrix(uint32_t rows, uint32_t columns, DataType dtype = DataType::FLOAT32, bool manual = false) {
    const uint32_t shape[] = {rows, columns};
    return TensorCreateInfo(shape, 2, dtype, manual);
}
inline TensorCreateInfo row_of(uint32_t elements, DataType dtype = DataType::FLOAT32) {
    return TensorCreateInfo(&elements, 1, dtype);
}

// A part of a matrix, or of a vector.
inline ChipTensor box(const ChipTensor& tensor, uint32_t row, uint32_t rows, uint32_t column, uint32_t columns,
                      bool manual = false) {
    const uint32_t shape[] = {rows, columns}, offset[] = {row, column};
    return tensor.view(shape, offset, manual);
}
inline ChipTensor rows(const ChipTensor& tensor, uint32_t first, uint32_t count) {
    return box(tensor, first, count, 0, tensor.shapes[1]);
}
inline ChipTensor columns(const ChipTensor& tensor, uint32_t first, uint32_t count) {
    return box(tensor, 0, tensor.shapes[0], first, count);
}
inline ChipTensor part(const ChipTensor& tensor, uint32_t first, uint32_t count) { return tensor.view(&count, &first); }

// --- kernels --------------------------------------------------------------------------------------------------------

inline ChipTensor& tensor_of(int64_t* args, int index) { return *reinterpret_cast<ChipTensor*>(args[index]); }

inline PtoLocalContext& local_of(int64_t* args) {
    return *reinterpret_cast<PtoLocalContext*>(args[PTO_LOCAL_CONTEXT_SLOT]);
}
inline int32_t lane_of(int64_t* args) {
    return reinterpret_cast<PtoGlobalContext*>(args[PTO_GLOBAL_CONTEXT_SLOT])->sub_block_id;
}

// The elements of a view, in row-major order.
template <typename T, typename Use>
void each_element(const ChipTensor& tensor, Use use) {
    const uint64_t count = tensor.numel();
    for (uint64_t at = 0; at < count; ++at) {
        uint64_t rest = at;
        int64_t place = 0;
        for (uint32_t d = tensor.ndims; d-- > 0;) {
            place += static_cast<int64_t>(rest % tensor.shapes[d]) * tensor.strides[d];
            rest /= tensor.shapes[d];
        }
        use(tensor.data<T>()[place], at);
    }
}

PTO_EXPORT inline __attribute__((used)) void nop(int64_t* args) { (void)args; }

// (tensor, value): all elements become the value. float
PTO_EXPORT inline __attribute__((used)) void fill(int64_t* args) {
    const auto value = static_cast<float>(args[1]);
    each_element<float>(tensor_of(args, 0), [&](float& element, uint64_t) { element = value; });
}
// (tensor, value): adds the value to all elements. float
PTO_EXPORT inline __attribute__((used)) void add(int64_t* args) {
    const auto value = static_cast<float>(args[1]);
    each_element<float>(tensor_of(args, 0), [&](float& element, uint64_t) { element += value; });
}
// (from, to), of equal shapes. float
PTO_EXPORT inline __attribute__((used)) void copy(int64_t* args) {
    const ChipTensor& from = tensor_of(args, 0);
    float values[4096];
    each_element<float>(from, [&](float& element, uint64_t at) { values[at] = element; });
    each_element<float>(tensor_of(args, 1), [&](float& element, uint64_t at) { element = values[at]; });
}
