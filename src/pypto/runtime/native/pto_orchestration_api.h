// The interface of the task runtime that emitted orchestration code is written against.
//
// Light on purpose: no thread, no lock, no container. The code that includes it is compiled by itself, and meets the
// runtime, which is another library, through one table of functions (`pto_bind`, called by the host before each run).
#pragma once

#include "pto_types.h"

#define PTO_EXPORT extern "C" __attribute__((visibility("default")))

// Scalars of 16-bit floats only travel through an orchestration, as their bits.
struct half {
    uint16_t bits;
};
struct bfloat16_t {
    uint16_t bits;
};

enum class PTO2ScopeMode : int32_t { AUTO = 0, MANUAL = 1 };
enum class PredicateOp : int32_t { EQ = 0, NE, GT, LT, GE, LE };
constexpr int32_t INVALID_KERNEL_ID = -1;
constexpr uint32_t PTO_MAX_ALLOCATIONS = 16;  // of one alloc_tensors

struct MixedKernels {
    int32_t aic;
    int32_t aiv0;
    int32_t aiv1;
};

struct CoreTaskPredicate {
    struct Operand {
        const ChipTensor* tensor = nullptr;
        uint32_t ndims = 0;
        uint32_t indices[PTO_MAX_DIMS] = {};
    } operand;
    PredicateOp op = PredicateOp::EQ;
    int64_t target = 0;
};

// Shape and element type of a buffer that the runtime is to allocate.
struct TensorCreateInfo {
    uint32_t shapes[PTO_MAX_DIMS];
    uint32_t ndims;
    DataType dtype;
    bool manual_dep;
    bool has_initial_value = false;
    uint64_t initial_value = 0;  // the bits of one element

    TensorCreateInfo(const uint32_t* extents, uint32_t count, DataType type, bool manual = false)
        : ndims(count), dtype(type), manual_dep(manual) {
        if (count > PTO_MAX_DIMS) {
            pto::misuse("TensorCreateInfo: more than 5 dimensions");
            ndims = 0;
        }
        for (uint32_t i = 0; i < ndims; ++i) shapes[i] = extents[i];
    }
    // The value is stored as it is, by its own bits, so it should have the tensor's element type; plain 0 fits all.
    template <typename T>
    void set_initial_value(T value) {
        has_initial_value = true;
        initial_value = to_u64(value);
    }
};

namespace pto {

constexpr const char* SCOPE_HAS_ENDED =
    "a tensor is used after the scope that allocated it has ended: allocate it in an outer scope, or use it before the end "
    "of the scope";

// What a reference names where there is no tensor.
inline const ChipTensor& no_tensor() {
    static const ChipTensor none{};
    return none;
}

}  // namespace pto

// The buffers that the runtime allocated for one task, in order, and its id.
class TaskOutputTensors {
   public:
    const ChipTensor& get_ref(uint32_t index) const {
        if (index >= count_) {
            pto::misuse("TaskOutputTensors::get_ref: no such output");
            return pto::no_tensor();
        }
        // Behind the end of its scope the place may hold another task's tensor.
        if (tensors_[index].owner_task_id != id_) {
            pto::misuse(pto::SCOPE_HAS_ENDED);
            return pto::no_tensor();
        }
        return tensors_[index];
    }
    PTO2TaskId task_id() const { return id_; }
    uint32_t size() const { return count_; }
    bool empty() const { return count_ == 0; }

    const ChipTensor* tensors_ = nullptr;
    uint32_t count_ = 0;
    PTO2TaskId id_ = PTO2TaskId::invalid();
};

namespace pto {

enum class Tag : uint8_t { INPUT, INOUT, OUTPUT, OUTPUT_EXISTING, NO_DEP };
enum class CoreKind : uint8_t { AIC, AIV, MIXED, DUMMY };

// What may go wrong (the codes of the device runtime).
enum Error : int32_t {
    ERROR_NONE = 0,
    ERROR_WINDOW = 1,
    ERROR_HEAP = 2,
    ERROR_NO_PROGRESS = 3,
    ERROR_ARGUMENTS = 5,
    ERROR_SYNC_START = 7,
    ERROR_DATA_TIMEOUT = 8,
    ERROR_PROGRAM = 9,
    ERROR_SCHEDULER = 100,
    ERROR_KERNEL = 101,
};

}  // namespace pto

// The arguments of one task. Keeps addresses: what is added must live until the submit.
class CoreTaskArgs {
   public:
    struct LaunchSpec {
        uint32_t block_num = 1;
        bool require_sync_start = false;
        void set_block_num(int64_t count) { block_num = count < 0 ? 0 : static_cast<uint32_t>(count); }
        void set_core_num(int64_t count) { set_block_num(count); }
        void set_require_sync_start(bool on) { require_sync_start = on; }
    } launch_spec;

    CoreTaskArgs() {}
    CoreTaskArgs(const CoreTaskArgs&) = delete;
    CoreTaskArgs& operator=(const CoreTaskArgs&) = delete;

    template <typename... Ts>
    void add_input(const Ts&... tensors) {
        (add(tensors, pto::Tag::INPUT), ...);
    }
    template <typename... Ts>
    void add_inout(const Ts&... tensors) {
        (add(tensors, pto::Tag::INOUT), ...);
    }
    template <typename... Ts>
    void add_no_dep(const Ts&... tensors) {
        (add(tensors, pto::Tag::NO_DEP), ...);
    }
    // A tensor: existing, written only. A TensorCreateInfo: allocated by the runtime.
    template <typename... Ts>
    void add_output(const Ts&... outputs) {
        (add(outputs, pto::Tag::OUTPUT_EXISTING), ...);
    }
    template <typename... Ts>
    void add_scalar(Ts... values) {
        (add_bits(scalar_bits(values)), ...);
    }
    // Not copied; once per object.
    void set_dependencies(const PTO2TaskId* ids, uint32_t count) {
        if (dependencies_set_) problem_ = "set_dependencies was called twice";
        dependencies_set_ = true;
        dependencies_ = ids;
        dependency_count_ = count;
    }
    void set_allow_early_resolve(bool) {}  // a hint; this runtime starts tasks when their producers are done
    void set_predicate(const CoreTaskPredicate& predicate) {
        predicate_ = predicate;
        has_predicate_ = true;
    }
    template <typename... Ts>
    void dump(const Ts&...) {}  // arguments are recorded by the host's own tracing

    uint32_t tensor_count() const { return tensor_count_; }
    uint32_t scalar_count() const { return scalar_count_; }

    // --- read by the runtime ---
    union Argument {
        const ChipTensor* tensor;
        const TensorCreateInfo* create;
    };
    uint8_t tensor_count_ = 0;
    uint8_t scalar_count_ = 0;
    uint8_t create_count_ = 0;
    bool dependencies_set_ = false;
    bool has_predicate_ = false;
    uint32_t dependency_count_ = 0;
    const char* problem_ = nullptr;
    const PTO2TaskId* dependencies_ = nullptr;
    Argument arguments_[PTO_MAX_TENSORS];
    pto::Tag tags_[PTO_MAX_TENSORS];
    uint64_t scalars_[PTO_MAX_SCALARS];
    CoreTaskPredicate predicate_;

   private:
    bool next(pto::Tag tag) {
        if (scalar_count_ != 0) problem_ = "a tensor was added behind a scalar: tensors come first";
        if (tensor_count_ == PTO_MAX_TENSORS) {
            problem_ = "more than 32 tensors";
            return false;
        }
        tags_[tensor_count_] = tag;
        return true;
    }
    void add(const ChipTensor& tensor, pto::Tag tag) {
        if (next(tag)) arguments_[tensor_count_++].tensor = &tensor;
    }
    void add(const TensorCreateInfo& create, pto::Tag) {
        if (next(pto::Tag::OUTPUT)) {
            arguments_[tensor_count_++].create = &create;
            ++create_count_;
        }
    }
    void add_bits(uint64_t bits) {
        if (scalar_count_ == PTO_MAX_SCALARS) {
            problem_ = "more than 16 scalars";
        } else {
            scalars_[scalar_count_++] = bits;
        }
    }
    // Integers are widened with their sign; anything else travels by its bits.
    static uint64_t scalar_bits(bool value) { return value ? 1 : 0; }
    static uint64_t scalar_bits(int8_t value) { return static_cast<uint64_t>(int64_t{value}); }
    static uint64_t scalar_bits(int16_t value) { return static_cast<uint64_t>(int64_t{value}); }
    static uint64_t scalar_bits(int32_t value) { return static_cast<uint64_t>(int64_t{value}); }
    template <typename T>
    static uint64_t scalar_bits(T value) {
        return to_u64(value);
    }
};

// The arguments of the whole orchestration. Tensors and scalars are numbered separately.
class ChipTaskArgs {
   public:
    class TensorArgument {
       public:
        explicit TensorArgument(const ChipTensor& tensor) : tensor_(tensor) {}
        const ChipTensor& ref() const { return tensor_; }

       private:
        const ChipTensor& tensor_;
    };
    TensorArgument tensor(uint32_t index) const {
        if (index >= tensor_count_) {
            pto::misuse("ChipTaskArgs: no such tensor argument");
            return TensorArgument(pto::no_tensor());
        }
        return TensorArgument(tensors_[index]);
    }
    uint64_t scalar(uint32_t index) const {
        if (index >= scalar_count_) {
            pto::misuse("ChipTaskArgs: no such scalar argument");
            return 0;
        }
        return scalars_[index];
    }
    uint32_t tensor_count() const { return tensor_count_; }
    uint32_t scalar_count() const { return scalar_count_; }

    const ChipTensor* tensors_ = nullptr;
    const uint64_t* scalars_ = nullptr;
    uint32_t tensor_count_ = 0;
    uint32_t scalar_count_ = 0;
};

struct PTO2OrchestrationConfig {
    int32_t expected_arg_count;
};

namespace pto {

// A submit as it crosses the table. `line`: of the source that submits.
struct Launch {
    CoreKind kind;
    MixedKernels kernels;
    uint32_t line;
};

// The runtime, as orchestration code sees it. The first field lets each side refuse the other's version.
struct Api {
    uint32_t version;
    void (*submit)(TaskOutputTensors* made, const CoreTaskArgs& args, const Launch& launch);
    void (*allocate)(TaskOutputTensors* made, const TensorCreateInfo* const* infos, uint32_t count, uint32_t line);
    bool (*open_scope)(PTO2ScopeMode mode, uint32_t line);
    void (*close_scope)();
    void* (*element)(const ChipTensor& tensor, uint32_t ndims, const uint32_t* indices, uint32_t size, bool write,
                     uint32_t line);
    bool (*is_fatal)();
    void (*report)(int32_t code, const char* message);
    int32_t (*vformat)(char* text, size_t size, const char* format, __builtin_va_list values);
    int32_t (*cluster_count)();
    int32_t (*aiv_count)();
    void (*touch)(const ChipTensor& view, PtoAccess how);
};
constexpr uint32_t API_VERSION = 1;

inline const Api* api = nullptr;

inline void misuse(const char* what) {
    if (api != nullptr) api->report(ERROR_ARGUMENTS, what);
}

// Thrown where the orchestration can't go on; the runtime catches it at the entry.
struct Stop {};

class Scope {
   public:
    Scope(PTO2ScopeMode mode, uint32_t line) : open_(api->open_scope(mode, line)) {}
    ~Scope() {
        if (open_) api->close_scope();
    }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    bool open_;
};

constexpr PTO2ScopeMode scope_mode(PTO2ScopeMode mode = PTO2ScopeMode::AUTO) { return mode; }

inline TaskOutputTensors submit(CoreKind kind, MixedKernels kernels, const CoreTaskArgs& args, uint32_t line) {
    TaskOutputTensors made;
    api->submit(&made, args, Launch{kind, kernels, line});
    return made;
}

}  // namespace pto

#define PTO2_SCOPE(...) if (::pto::Scope pto_scope_{::pto::scope_mode(__VA_ARGS__), __LINE__}; true)

#define always_assert(condition)                                                                      \
    do {                                                                                              \
        if (!(condition)) {                                                                           \
            rt_report_fatal(::pto::ERROR_PROGRAM, "line %d: assertion failed: %s", __LINE__, #condition); \
            throw ::pto::Stop{};                                                                      \
        }                                                                                             \
    } while (false)

// The source line of a call is passed along, so that an error can name the statement.
inline TaskOutputTensors rt_submit_aic_task(int32_t kernel, const CoreTaskArgs& args, uint32_t line = __builtin_LINE()) {
    return pto::submit(pto::CoreKind::AIC, {kernel, INVALID_KERNEL_ID, INVALID_KERNEL_ID}, args, line);
}
inline TaskOutputTensors rt_submit_aiv_task(int32_t kernel, const CoreTaskArgs& args, uint32_t line = __builtin_LINE()) {
    return pto::submit(pto::CoreKind::AIV, {INVALID_KERNEL_ID, kernel, INVALID_KERNEL_ID}, args, line);
}
inline TaskOutputTensors rt_submit_task(MixedKernels kernels, const CoreTaskArgs& args,
                                        uint32_t line = __builtin_LINE()) {
    return pto::submit(pto::CoreKind::MIXED, kernels, args, line);
}
inline TaskOutputTensors rt_submit_dummy_task(const CoreTaskArgs& args, uint32_t line = __builtin_LINE()) {
    return pto::submit(pto::CoreKind::DUMMY, {INVALID_KERNEL_ID, INVALID_KERNEL_ID, INVALID_KERNEL_ID}, args, line);
}

namespace pto {
// An argument that brings the line of its call along.
struct LocatedInfo {
    const TensorCreateInfo* info;
    uint32_t line;
    LocatedInfo(const TensorCreateInfo& made, uint32_t at = __builtin_LINE()) : info(&made), line(at) {}
};
}  // namespace pto

template <typename... Infos>
inline TaskOutputTensors alloc_tensors(pto::LocatedInfo first, const Infos&... more) {
    static_assert(sizeof...(more) < PTO_MAX_ALLOCATIONS, "alloc_tensors: at most 16 tensors");
    const TensorCreateInfo* list[] = {first.info, &more...};
    TaskOutputTensors made;
    pto::api->allocate(&made, list, static_cast<uint32_t>(1 + sizeof...(more)), first.line);
    return made;
}

// Element access from the orchestration: waits for the tensor's owner and the overlapping writers.
template <typename T>
inline T get_tensor_data(const ChipTensor& tensor, uint32_t ndims, const uint32_t* indices,
                         uint32_t line = __builtin_LINE()) {
    T value{};
    const void* place = pto::api->element(tensor, ndims, indices, sizeof(T), false, line);
    if (place == nullptr) throw pto::Stop{};  // no value: a loop that waits for one must not go on for ever
    memcpy(&value, place, sizeof(T));
    return value;
}
// ... and, here, for the readers as well.
template <typename T>
inline void set_tensor_data(const ChipTensor& tensor, uint32_t ndims, const uint32_t* indices, T value,
                            uint32_t line = __builtin_LINE()) {
    void* place = pto::api->element(tensor, ndims, indices, sizeof(T), true, line);
    if (place != nullptr) memcpy(place, &value, sizeof(T));
}

inline int32_t rt_available_cluster_count() { return pto::api->cluster_count(); }
inline int32_t rt_available_aiv_count() { return pto::api->aiv_count(); }
inline bool rt_is_fatal() { return pto::api->is_fatal(); }

__attribute__((format(printf, 2, 3))) inline void rt_report_fatal(int32_t code, const char* format, ...) {
    char text[1024];
    __builtin_va_list values;
    __builtin_va_start(values, format);
    pto::api->vformat(text, sizeof(text), format, values);
    __builtin_va_end(values);
    pto::api->report(code, text);
}

namespace pto {

// Checks that are not part of the interface: orchestrations made for this runtime have them.

// How far an integer is shifted.
template <typename T>
inline T distance(T value, int line = __builtin_LINE()) {
    if (__builtin_expect(value < 0 || value >= 64, 0)) {
        rt_report_fatal(ERROR_PROGRAM, "line %d: shift distance %lld is outside [0, 64)", line, static_cast<long long>(value));
        throw Stop{};
    }
    return value;
}

// What an integer is raised to.
template <typename T>
inline T exponent(T value, int line = __builtin_LINE()) {
    if (__builtin_expect(value < 0, 0)) {
        rt_report_fatal(ERROR_PROGRAM, "line %d: integer power with the negative exponent %lld", line,
                        static_cast<long long>(value));
        throw Stop{};
    }
    return value;
}

// A float that becomes an integer.
inline float finite(float value, const char* type, int line = __builtin_LINE()) {
    if (__builtin_expect(!(value - value == 0), 0)) {
        const char* name = value != value ? "nan" : value < 0 ? "-inf" : "inf";
        rt_report_fatal(ERROR_PROGRAM, "line %d: cannot convert %s to %s", line, name, type);
        throw Stop{};
    }
    return value;
}

// An integer that something is divided by.
template <typename T>
inline T divisor(T value, const char* what, int line = __builtin_LINE()) {
    if (__builtin_expect(value == 0, 0)) {
        rt_report_fatal(ERROR_PROGRAM, "line %d: integer %s by zero", line, what);
        throw Stop{};
    }
    return value;
}

}  // namespace pto

// Called by the host before a run. False: this code was made for another version of the runtime.
PTO_EXPORT __attribute__((used)) inline bool pto_bind(const pto::Api* api) {
    if (api->version != pto::API_VERSION) return false;
    pto::api = api;
    return true;
}
