// An orchestration that interprets a program given as data (see random_graph.py, which makes such programs and knows what
// they compute), and kernels whose results depend on the order in which tasks run.
#include <thread>
#include <vector>

#include "pto_orchestration_api.h"

namespace {

enum Op : int64_t { END, OPEN, CLOSE, TASK, ALLOC, GET, SET };
enum Use : int64_t { READ = 1, WRITE = 2 };
constexpr uint32_t kMaxTensors = 6;
constexpr uint32_t kMaxBlocks = 4;

// --- kernels --------------------------------------------------------------------------------------------------------

struct Elements {
    const ChipTensor& tensor;
    uint32_t rows() const { return tensor.ndims == 0 ? 1 : tensor.shapes[0]; }
    uint32_t columns() const { return tensor.ndims < 2 ? 1 : tensor.shapes[1]; }
    uint64_t& at(uint32_t row, uint32_t column) const {
        const int64_t offset = row * tensor.strides[0] + (tensor.ndims < 2 ? 0 : column * tensor.strides[1]);
        return tensor.data<uint64_t>()[offset];
    }
};

// Every part of every block sums all tensors that are only read, and updates its share of the rows of the others.
__attribute__((noinline)) void work(int64_t* args, uint32_t count, int32_t role) {
    const auto* local = reinterpret_cast<const PtoLocalContext*>(args[PTO_LOCAL_CONTEXT_SLOT]);
    const auto* global = reinterpret_cast<const PtoGlobalContext*>(args[PTO_GLOBAL_CONTEXT_SLOT]);
    const uint64_t number = static_cast<uint64_t>(args[count]);
    const uint64_t uses = static_cast<uint64_t>(args[count + 1]);
    const uint64_t given = static_cast<uint64_t>(args[count + 2]);
    const uint32_t roles = static_cast<uint32_t>(args[count + 3]);
    const uint32_t parts = static_cast<uint32_t>(__builtin_popcount(roles));
    const uint32_t part = static_cast<uint32_t>(__builtin_popcount(roles & ((1u << role) - 1)));
    const uint32_t block = static_cast<uint32_t>(local->block_idx);
    if (parts > 1) {
        // Each waits for the others, so they must run at the same time.
        uint64_t* begun = reinterpret_cast<uint64_t*>(args[count + 4]) + number * kMaxBlocks + block;
        __atomic_fetch_add(begun, 1, __ATOMIC_SEQ_CST);
        while (__atomic_load_n(begun, __ATOMIC_SEQ_CST) != parts) std::this_thread::yield();
    }
    for (volatile uint64_t spins = number * 2654435761u % 400; spins != 0;) spins = spins - 1;

    uint64_t sum = number * 1000003 + given;
    for (uint32_t i = 0; i < count; ++i) {
        if ((uses >> (2 * i) & 3) != READ) continue;
        const Elements read{*reinterpret_cast<const ChipTensor*>(args[i])};
        uint64_t weight = 1, total = 0;
        for (uint32_t row = 0; row < read.rows(); ++row) {
            for (uint32_t column = 0; column < read.columns(); ++column, weight += 2) total += read.at(row, column) * weight;
        }
        sum = sum * 31 + total;
    }
    if (global->sub_block_id != (role == 2 ? 1 : 0)) sum = 0;  // shows as a wrong result
    const uint32_t shares = static_cast<uint32_t>(local->block_num) * parts;
    for (uint32_t i = 0; i < count; ++i) {
        const uint64_t use = uses >> (2 * i) & 3;
        if ((use & WRITE) == 0) continue;
        const Elements written{*reinterpret_cast<const ChipTensor*>(args[i])};
        for (uint32_t row = block * parts + part; row < written.rows(); row += shares) {
            for (uint32_t column = 0; column < written.columns(); ++column) {
                const uint64_t index = uint64_t{row} * written.columns() + column;
                uint64_t& place = written.at(row, column);
                place = (use & READ) != 0 ? 3 * place + sum + index : sum + 7 * index;
            }
        }
    }
}

template <int32_t role, uint32_t count>
void kernel(int64_t* args) {
    work(args, count, role);
}

template <uint32_t count>
PtoKernel of_role(int32_t role) {
    return role == 0 ? kernel<0, count> : role == 1 ? kernel<1, count> : kernel<2, count>;
}

// --- the interpreter ------------------------------------------------------------------------------------------------

class Interpreter {
   public:
    explicit Interpreter(const ChipTaskArgs& args) : at_(args.tensor(0).ref().data<int64_t>()) {
        found_ = args.tensor(1).ref().data<uint64_t>();
        begun_ = found_ + args.scalar(1);
        handles_.resize(from_u64<uint64_t>(args.scalar(0)));
        for (uint32_t i = 2; i < args.tensor_count(); ++i) handles_[i - 2] = args.tensor(i).ref();
    }

    void block() {
        for (;;) {
            switch (next()) {
                case OPEN:
                    if (next() != 0) {
                        PTO2_SCOPE(PTO2ScopeMode::MANUAL) { block(); }
                    } else {
                        PTO2_SCOPE() { block(); }
                    }
                    break;
                case TASK:
                    task();
                    break;
                case ALLOC:
                    allocation();
                    break;
                case GET: {
                    const ChipTensor& tensor = handle();
                    const uint32_t place[2] = {size(), size()};
                    given_ = get_tensor_data<uint64_t>(tensor, 2, place);
                    *found_++ = given_;
                    break;
                }
                case SET: {
                    const ChipTensor& tensor = handle();
                    const uint32_t place[2] = {size(), size()};
                    set_tensor_data<uint64_t>(tensor, 2, place, static_cast<uint64_t>(next()));
                    break;
                }
                default:  // END, CLOSE
                    return;
            }
        }
    }

   private:
    int64_t next() { return *at_++; }
    uint32_t size() { return static_cast<uint32_t>(next()); }
    const ChipTensor& handle() { return handles_[static_cast<size_t>(next())]; }

    TensorCreateInfo create() {
        const uint32_t shape[2] = {size(), size()};
        const bool manual = next() != 0;
        TensorCreateInfo info(shape, 2, DataType::INT64, manual);
        const bool has_value = next() != 0;
        const uint64_t value = static_cast<uint64_t>(next());
        if (has_value) info.set_initial_value(value);
        return info;
    }

    // A box, of which every so many rows and columns are taken; perhaps transposed, perhaps flat.
    ChipTensor view() {
        const ChipTensor& whole = handle();
        const uint32_t offsets[2] = {size(), size()};
        const uint32_t extents[2] = {size(), size()};
        const uint32_t row_step = size(), column_step = size();
        const int64_t form = next();
        ChipTensor made = whole.view(extents, offsets);
        if (row_step > 1) made = made.slice(0, 0, extents[0], row_step);
        if (column_step > 1) made = made.slice(1, 0, extents[1], column_step);
        if (form == 1) made = made.transpose(0, 1);
        if (form == 2) {
            const uint32_t flat = extents[0] * extents[1];
            made = made.reshape(&flat, 1);
        }
        return made;
    }

    void keep(const TaskOutputTensors& made, size_t first) {
        for (uint32_t i = 0; i < made.size(); ++i) handles_[first + i] = made.get_ref(i);
        ids_.push_back(made.task_id());
    }

    void allocation() {
        const size_t first = static_cast<size_t>(next());
        if (next() == 1) {
            keep(alloc_tensors(create()), first);
        } else {
            const TensorCreateInfo a = create(), b = create();
            keep(alloc_tensors(a, b), first);
        }
    }

    void task() {
        const int64_t kind = next();
        const uint32_t roles = size(), blocks = size();
        const size_t first = static_cast<size_t>(next());
        const uint32_t count = size();
        CoreTaskArgs args;
        std::vector<ChipTensor> views(count);
        std::vector<TensorCreateInfo> creates;
        creates.reserve(count);
        uint64_t uses = 0;
        for (uint32_t i = 0; i < count; ++i) {
            const auto tag = static_cast<pto::Tag>(next());
            uses |= static_cast<uint64_t>(next()) << (2 * i);
            if (tag == pto::Tag::OUTPUT) {
                creates.push_back(create());
                args.add_output(creates.back());
                continue;
            }
            views[i] = view();
            if (tag == pto::Tag::INPUT) args.add_input(views[i]);
            if (tag == pto::Tag::INOUT) args.add_inout(views[i]);
            if (tag == pto::Tag::OUTPUT_EXISTING) args.add_output(views[i]);
            if (tag == pto::Tag::NO_DEP) args.add_no_dep(views[i]);
        }
        args.add_scalar(number_++, uses, given_, uint64_t{roles}, reinterpret_cast<uint64_t>(begun_));
        std::vector<PTO2TaskId> dependencies(size());
        for (PTO2TaskId& each : dependencies) each = ids_[static_cast<size_t>(next())];
        args.set_dependencies(dependencies.data(), static_cast<uint32_t>(dependencies.size()));
        CoreTaskPredicate predicate;
        if (next() != 0) {
            predicate.operand.tensor = &handle();
            predicate.operand.ndims = 2;
            predicate.operand.indices[0] = size();
            predicate.operand.indices[1] = size();
            predicate.op = static_cast<PredicateOp>(next());
            predicate.target = next();
            args.set_predicate(predicate);
        }
        args.launch_spec.set_block_num(blocks);
        keep(submit(kind, roles, count, args), first);
    }

    static TaskOutputTensors submit(int64_t kind, uint32_t roles, uint32_t count, const CoreTaskArgs& args) {
        const auto id = [&](uint32_t role) {
            return (roles >> role & 1) != 0 ? static_cast<int32_t>(3 * count + role) : INVALID_KERNEL_ID;
        };
        switch (static_cast<pto::CoreKind>(kind)) {
            case pto::CoreKind::AIC:
                return rt_submit_aic_task(id(0), args);
            case pto::CoreKind::AIV:
                return rt_submit_aiv_task(id(1), args);
            case pto::CoreKind::MIXED:
                return rt_submit_task(MixedKernels{id(0), id(1), id(2)}, args);
            default:
                return rt_submit_dummy_task(args);
        }
    }

    const int64_t* at_;
    uint64_t* found_;  // what was read, for the test
    uint64_t* begun_;  // how many parts of a block have begun, by task and block
    uint64_t given_ = 0;
    uint64_t number_ = 0;
    std::vector<ChipTensor> handles_;
    std::vector<PTO2TaskId> ids_;
};

}  // namespace

// Kernel 3 * count + role takes `count` tensors.
PTO_EXPORT PtoKernel kernel_of(uint32_t index) {
    const int32_t role = static_cast<int32_t>(index % 3);
    const PtoKernel found[] = {of_role<0>(role), of_role<1>(role), of_role<2>(role), of_role<3>(role),
                               of_role<4>(role), of_role<5>(role), of_role<kMaxTensors>(role)};
    return found[index / 3];
}

// Tensors: the program; what it reads, and behind that a counter for each block (zeros); the program's own. Scalars: how
// many handles it has, how many elements it reads.
PTO_EXPORT void interpret(const ChipTaskArgs& args) { Interpreter(args).block(); }
