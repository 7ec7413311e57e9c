// Stress for the task runtime as a program of its own, for sanitizers: random programs (written by sanitize.py, with what
// they compute) in random ways of running them, errors in the middle of runs, runs within kernels, from two threads.
//
//     stress FILE SECONDS SEED
//
// Exit status 0: all was right. A wrong result is said in one line.
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "runtime/options.h"

extern "C" {
void* pto_run(const pto::Program* program, const pto::Options* options, pto::Report* report);
void pto_free(void* handle);
const void* pto_api();
void pto_kernel_failed(const char* message);
PtoKernel kernel_of(uint32_t index);
void interpret(const ChipTaskArgs& args);
}

namespace {

using Random = std::mt19937_64;
using Entry = void (*)(const ChipTaskArgs&);

[[noreturn]] void wrong(const std::string& what) {
    fprintf(stderr, "wrong: %s\n", what.c_str());
    _Exit(1);
}

// --- running --------------------------------------------------------------------------------------------------------

struct Array {
    uint32_t rows, columns;
    std::vector<int64_t> values;

    pto::TensorArgument argument() {
        pto::TensorArgument made{};
        made.data = made.base = values.data();
        made.bytes = values.size() * sizeof(int64_t);
        made.ndims = 2;
        made.dtype = static_cast<uint32_t>(DataType::INT64);
        made.shapes[0] = rows;
        made.shapes[1] = columns;
        made.strides[0] = columns;
        made.strides[1] = 1;
        return made;
    }
};

pto::Options default_options(uint32_t workers) {
    pto::Options made{};
    made.workers = made.clusters = workers;
    for (int i = 0; i < 4; ++i) {
        made.window[i] = 16384;
        made.heap[i] = uint64_t{256} << 20;
    }
    return made;
}

pto::Report run(Entry entry, const std::vector<pto::KernelInfo>& kernels, std::vector<Array*> tensors,
                const std::vector<uint64_t>& scalars, const pto::Options& options) {
    std::vector<pto::TensorArgument> arguments;
    for (Array* each : tensors) arguments.push_back(each->argument());
    pto::Program program{};
    program.entry = entry;
    program.kernels = kernels.data();
    program.kernel_count = static_cast<uint32_t>(kernels.size());
    program.tensors = arguments.data();
    program.tensor_count = static_cast<uint32_t>(arguments.size());
    program.scalars = scalars.data();
    program.scalar_count = static_cast<uint32_t>(scalars.size());
    pto::Report report{};
    void* handle = pto_run(&program, &options, &report);
    if (handle == nullptr) wrong(std::string("a run is stuck: ") + report.message);
    pto_free(handle);
    return report;
}

void expect(const pto::Report& report, int32_t code, const char* what) {
    if (report.code != code) {
        wrong(std::string(what) + ": code " + std::to_string(report.code) + " (" + report.message + "), expected " +
              std::to_string(code));
    }
}

// --- random programs ------------------------------------------------------------------------------------------------

struct RandomProgram {
    Array words;
    uint64_t handles;
    uint64_t heap[4];
    uint64_t tasks;
    std::vector<int64_t> found;
    std::vector<Array> arguments;
    std::vector<Array> results;
};

std::vector<RandomProgram> programs;

// The file holds 64-bit words; lists begin with their length.
class File {
   public:
    explicit File(const char* path) : file_(path, std::ios::binary) {}
    int64_t word() {
        int64_t value;
        if (!file_.read(reinterpret_cast<char*>(&value), sizeof(value))) wrong("the file of programs ends early");
        return value;
    }
    std::vector<int64_t> list() {
        std::vector<int64_t> values(static_cast<size_t>(word()));
        for (int64_t& each : values) each = word();
        return values;
    }

   private:
    std::ifstream file_;
};

void read_programs(const char* path) {
    File file(path);
    programs.resize(static_cast<size_t>(file.word()));
    for (RandomProgram& each : programs) {
        each.words.values = file.list();
        each.words.rows = 1;
        each.words.columns = static_cast<uint32_t>(each.words.values.size());
        each.handles = static_cast<uint64_t>(file.word());
        for (uint64_t& bytes : each.heap) bytes = static_cast<uint64_t>(file.word());
        each.tasks = static_cast<uint64_t>(file.word());
        each.found = file.list();
        const size_t count = static_cast<size_t>(file.word());
        for (size_t i = 0; i < count; ++i) {
            const uint32_t rows = static_cast<uint32_t>(file.word()), columns = static_cast<uint32_t>(file.word());
            each.arguments.push_back({rows, columns, file.list()});
            each.results.push_back({rows, columns, file.list()});
        }
    }
}

std::vector<pto::KernelInfo> interpreter_kernels() {
    std::vector<pto::KernelInfo> made;
    for (uint32_t i = 0; i < 21; ++i) made.push_back({kernel_of(i), "random"});
    return made;
}

void check_program(const RandomProgram& program, const pto::Options& options) {
    static const std::vector<pto::KernelInfo> kernels = interpreter_kernels();
    Array words = program.words;
    Array scratch{1, 0, std::vector<int64_t>(program.found.size() + 4 * program.tasks + 1)};
    scratch.columns = static_cast<uint32_t>(scratch.values.size());
    std::vector<Array> arguments = program.arguments;
    std::vector<Array*> tensors{&words, &scratch};
    for (Array& each : arguments) tensors.push_back(&each);
    expect(run(interpret, kernels, tensors, {program.handles, program.found.size()}, options), 0, "a random program");
    for (size_t i = 0; i < arguments.size(); ++i) {
        if (arguments[i].values != program.results[i].values) wrong("the result of a random program");
    }
    for (size_t i = 0; i < program.found.size(); ++i) {
        if (scratch.values[i] != program.found[i]) wrong("an element that a random program reads");
    }
}

pto::Options random_options(Random& random, const uint64_t* heap) {
    pto::Options made = default_options(1 + random() % 4);
    const uint32_t windows[] = {4, 16, 64, 16384};
    for (int i = 0; i < 4; ++i) made.window[i] = windows[random() % 4];
    if (heap != nullptr && random() % 2 == 0) {
        for (int i = 0; i < 4; ++i) made.heap[i] = heap[i];
        made.strict_heap = 1;
    }
    made.random_schedule = random() % 8 == 0;
    made.seed = random();
    made.record = random() % 4 == 0;
    made.trace = random() % 8 == 0;
    made.fill = random() % 4 == 0;
    if (random() % 8 == 0) made.timeout = 120;
    return made;
}

void random_program(Random& random) {
    const RandomProgram& program = programs[random() % programs.size()];
    check_program(program, random_options(random, program.heap));
}

// --- many tasks -----------------------------------------------------------------------------------------------------

void add_one(int64_t* args) {
    *reinterpret_cast<const ChipTensor*>(args[0])->data<int64_t>() += 1;
}
void count_block(int64_t* args) {
    __atomic_fetch_add(reinterpret_cast<const ChipTensor*>(args[0])->data<int64_t>(), 1, __ATOMIC_RELAXED);
}
// Returns when all blocks have come.
void meet(int64_t* args) {
    int64_t* come = reinterpret_cast<const ChipTensor*>(args[0])->data<int64_t>();
    __atomic_fetch_add(come, 1, __ATOMIC_SEQ_CST);
    const int32_t all = reinterpret_cast<const PtoLocalContext*>(args[PTO_LOCAL_CONTEXT_SLOT])->block_num;
    while (__atomic_load_n(come, __ATOMIC_SEQ_CST) % all != 0) std::this_thread::yield();
}

// More independent tasks than a ready queue holds, a chain through each row, blocks of one task, and all at once.
void many_tasks(const ChipTaskArgs& args) {
    const ChipTensor& rows = args.tensor(0).ref();
    const uint32_t count = rows.shapes[0] - 2, rounds = static_cast<uint32_t>(args.scalar(0));
    const uint32_t extents[2] = {1, 1};
    for (uint32_t round = 0; round < rounds; ++round) {
        PTO2_SCOPE() {
            for (uint32_t row = 0; row < count; ++row) {
                const uint32_t offsets[2] = {row, 0};
                const ChipTensor cell = rows.view(extents, offsets);
                CoreTaskArgs task;
                task.add_inout(cell);
                rt_submit_aiv_task(0, task);
            }
            const uint32_t blocks_at[2] = {count, 0}, meeting_at[2] = {count + 1, 0};
            const ChipTensor blocks = rows.view(extents, blocks_at), meeting = rows.view(extents, meeting_at);
            CoreTaskArgs spread, together;
            spread.add_inout(blocks);
            spread.launch_spec.set_block_num(50);
            rt_submit_aiv_task(1, spread);
            together.add_inout(meeting);
            together.launch_spec.set_block_num(from_u64<int64_t>(args.scalar(1)));
            together.launch_spec.set_require_sync_start(true);
            rt_submit_aiv_task(2, together);
        }
    }
}

void check_many_tasks(Random& random) {
    static const std::vector<pto::KernelInfo> kernels = {{add_one, "add"}, {count_block, "count"}, {meet, "meet"}};
    const uint32_t count = random() % 2 == 0 ? 1500 : 5;
    const int64_t rounds = random() % 4;
    Array cells{count + 2, 1, std::vector<int64_t>(count + 2)};
    const pto::Options options = random_options(random, nullptr);
    expect(run(many_tasks, kernels, {&cells}, {static_cast<uint64_t>(rounds), options.workers}, options), 0, "many tasks");
    for (uint32_t i = 0; i < count; ++i) {
        if (cells.values[i] != rounds) wrong("a chain of tasks");
    }
    if (cells.values[count] != 50 * rounds) wrong("blocks");
    if (cells.values[count + 1] != rounds * options.workers) wrong("blocks that start together");
}

// --- errors ---------------------------------------------------------------------------------------------------------

enum Fault : uint64_t { THROW, FAIL, SLOW, REPORT, ASSERT, BAD_ID, HEAP, WINDOW, DEPTH, STALE, FAULTS };
const int32_t kCodes[FAULTS] = {101, 101, 100, 9, 9, 5, 2, 1, 5, 5};

void misbehave(int64_t* args) {
    switch (static_cast<Fault>(args[1])) {
        case THROW:
            throw std::runtime_error("no");
        case FAIL:
            pto_kernel_failed("no");
            return;
        case SLOW:
            std::this_thread::sleep_for(std::chrono::milliseconds(600));
            return;
        default:
            return;
    }
}

void nest(uint32_t depth) {
    PTO2_SCOPE() {
        if (depth != 0) nest(depth - 1);
    }
}

// The fault comes after `at` of the tasks.
void with_fault(const ChipTaskArgs& args) {
    const ChipTensor& cell = args.tensor(0).ref();
    const uint64_t fault = args.scalar(0), at = args.scalar(1);
    const uint32_t shape[2] = {16, 64};
    ChipTensor stale = cell;
    for (uint64_t i = 0; i < 200; ++i) {
        CoreTaskArgs task;
        PTO2TaskId none = PTO2TaskId::invalid();
        const TensorCreateInfo fresh(shape, 2, DataType::INT64);
        task.add_inout(i % 3 == 0 || fault != STALE ? cell : stale);
        if (fault == HEAP) task.add_output(fresh);
        task.add_scalar(i == at ? fault : uint64_t{FAULTS});
        if (i == at) {
            if (fault == BAD_ID) task.set_dependencies(&none, 1);
            if (fault == REPORT) rt_report_fatal(9, "at %d", static_cast<int>(i));
            if (fault == DEPTH) nest(70);
            if (fault == STALE) {
                PTO2_SCOPE() { stale = alloc_tensors(fresh).get_ref(0); }
            }
            always_assert(fault != ASSERT);
        }
        rt_submit_aiv_task(0, task);
    }
}

void check_fault(Random& random) {
    static const std::vector<pto::KernelInfo> kernels = {{misbehave, "misbehave"}};
    uint64_t fault = random() % FAULTS;
    if (fault == SLOW && random() % 8 != 0) fault = FAIL;  // it takes long
    Array cell{16, 64, std::vector<int64_t>(1024)};
    pto::Options options = random_options(random, nullptr);
    if (fault == HEAP) {
        options.strict_heap = 1;
        for (uint64_t& bytes : options.heap) bytes = 100000;
    }
    if (fault == WINDOW) {
        options.strict_window = 1;
        for (uint32_t& tasks : options.window) tasks = 64;
    }
    if (fault == SLOW) {
        options.random_schedule = 0;
        options.timeout = 0.4;  // which the kernel exceeds, but not twice
    }
    const pto::Report report = run(with_fault, kernels, {&cell}, {fault, random() % 199}, options);
    expect(report, kCodes[fault], "a fault");
}

// --- runs within kernels ----------------------------------------------------------------------------------------------

void run_within(int64_t* args) {
    Random random(static_cast<uint64_t>(args[1]));
    random_program(random);
}

void outer(const ChipTaskArgs& args) {
    for (uint64_t i = 0; i < 3; ++i) {
        CoreTaskArgs task;
        task.add_input(args.tensor(0).ref());
        task.add_scalar(args.scalar(0) + i);
        rt_submit_aiv_task(0, task);
    }
}

void check_nested(Random& random) {
    static const std::vector<pto::KernelInfo> kernels = {{run_within, "run"}};
    Array cell{1, 1, {0}};
    pto::Options options = random_options(random, nullptr);
    expect(run(outer, kernels, {&cell}, {random()}, options), 0, "runs within kernels");
}

// ------------------------------------------------------------------------------------------------------------------------

std::atomic<uint64_t> runs{0};

void stress(uint64_t seed, std::chrono::steady_clock::time_point end) {
    Random random(seed);
    do {
        const uint64_t choice = random() % 16;
        if (choice == 0) {
            check_nested(random);
        } else if (choice < 3) {
            check_many_tasks(random);
        } else if (choice < 7) {
            check_fault(random);
        } else {
            random_program(random);
        }
        runs.fetch_add(1, std::memory_order_relaxed);
    } while (std::chrono::steady_clock::now() < end);
}

}  // namespace

int main(int count, char** words) {
    if (count != 4) {
        fprintf(stderr, "usage: stress FILE SECONDS SEED\n");
        return 2;
    }
    read_programs(words[1]);
    pto_bind(static_cast<const pto::Api*>(pto_api()));
    const auto length = std::chrono::duration<double>(atof(words[2]));
    const auto end = std::chrono::steady_clock::now() + std::chrono::duration_cast<std::chrono::nanoseconds>(length);
    const uint64_t seed = strtoull(words[3], nullptr, 10);
    std::thread other(stress, seed + 1, end);
    stress(seed, end);
    other.join();
    printf("%llu runs\n", static_cast<unsigned long long>(runs.load()));
    return 0;
}
