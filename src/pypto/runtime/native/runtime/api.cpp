// The task runtime as a library: what the host calls, and the table that orchestration code calls.
//
// Design, in short (each file says more):
//   task.h            tasks, buffers, and who may touch which field
//   region.h          bytes of a view; writer_index.h: the live writers of a buffer
//   memory.h          records and storage
//   ready_queue.h     ready tasks of one worker; crew.h: the workers
//   run.h             one run: submit.cpp orders tasks (the orchestrator), execute.cpp runs them (workers), storage.cpp has
//                     buffers, lifecycle.cpp the rest
//   monitor.h         who runs what, for another process to see
//   serve.cpp         the worker process of isolated runs: a library of its own
//   plain.h           what is used instead of headers that are slow to compile: a machine's first run waits for all this
#include <stdio.h>

#include "monitor.h"
#include "run.h"

namespace pto {
namespace {

Run& run() { return *Run::current; }

void api_submit(TaskOutputTensors* made, const CoreTaskArgs& args, const Launch& launch) {
    run().submit(*made, args, launch);
}
void api_allocate(TaskOutputTensors* made, const TensorCreateInfo* const* infos, uint32_t count, uint32_t line) {
    run().allocate(*made, infos, count, line);
}
bool api_open_scope(PTO2ScopeMode mode, uint32_t line) { return run().open_scope(mode, line); }
void api_close_scope() { run().close_scope(); }
void* api_element(const ChipTensor& tensor, uint32_t ndims, const uint32_t* indices, uint32_t size, bool write,
                  uint32_t line) {
    return run().element(tensor, ndims, indices, size, write, line);
}
bool api_is_fatal() { return run().fatal(); }
void api_report(int32_t code, const char* message) { run().kernel_failed(code, message); }
int32_t api_vformat(char* text, size_t size, const char* format, __builtin_va_list values) {
    return vsnprintf(text, size, format, values);
}
void api_touch(const ChipTensor& view, PtoAccess how) { run().touch(view, how); }
int32_t api_cluster_count() { return run().clusters(); }
int32_t api_aiv_count() { return 2 * run().clusters(); }

const Api table = {API_VERSION,  api_submit,   api_allocate, api_open_scope,    api_close_scope, api_element,
                   api_is_fatal, api_report,   api_vformat,  api_cluster_count, api_aiv_count,   api_touch};

// Crews that are not at work. A run takes one of its size, or makes one: runs on several threads don't share any.
class CrewRoom {
   public:
    Crew* take(uint32_t threads) {
        const Hold hold(lock_);
        for (uint32_t i = 0; i < count_; ++i) {
            if (idle_[i]->size() == threads + 1) return taken(i);
        }
        return nullptr;
    }
    void give(Crew* crew) {
        Crew* oldest = nullptr;
        lock_.lock();
        if (count_ == kKeep) oldest = taken(0);
        idle_[count_++] = crew;
        lock_.unlock();
        delete oldest;
    }
    // In a forked child the threads do not exist.
    void forget() { count_ = 0; }

   private:
    Crew* taken(uint32_t at) {
        Crew* const found = idle_[at];
        for (--count_; at < count_; ++at) idle_[at] = idle_[at + 1];
        return found;
    }

    static constexpr uint32_t kKeep = 4;
    Mutex lock_;
    uint32_t count_ = 0;
    Crew* idle_[kKeep];
};

CrewRoom& crews() {
    // Never destroyed: at the end of the process threads must not be waited for.
    static CrewRoom* room = [] {
        auto* made = new CrewRoom;
#if defined(__unix__) || defined(__APPLE__)
        pthread_atfork(nullptr, nullptr, [] { crews().forget(); });
#endif
        return made;
    }();
    return *room;
}

struct Handle {
    Handle(const Program& what, const Options& how, uint32_t threads) : program(what), options(how) {
        memset(static_cast<void*>(&report), 0, sizeof(Report));
        report.task = report.kernel = -1;
        crew = crews().take(threads);
        if (crew == nullptr) crew = new Crew(threads);
        run = new Run(*crew, program, options, report);
    }
    ~Handle() { delete run; }
    Handle(const Handle&) = delete;
    Handle& operator=(const Handle&) = delete;

    const Program program;
    const Options options;
    Report report;
    Crew* crew;
    Run* run;
};

}  // namespace
}  // namespace pto

// --- the host's side ------------------------------------------------------------------------------------------------

PTO_EXPORT uint32_t pto_version() { return pto::API_VERSION; }

// The sizes of the structs that the host mirrors, in the order in which they stand in options.h and records.h.
PTO_EXPORT void pto_layout(uint32_t* sizes) {
    const size_t found[] = {sizeof(pto::KernelInfo),   sizeof(pto::TensorArgument), sizeof(pto::Program),
                            sizeof(pto::Options),      sizeof(pto::Counters),       sizeof(pto::Report),
                            sizeof(pto::TaskRecord),   sizeof(pto::EdgeRecord),     sizeof(pto::AccessRecord),
                            sizeof(pto::BufferRecord), sizeof(pto::Event),          sizeof(pto::TouchRecord),
                            sizeof(ChipTensor),        sizeof(PtoLocalContext),     sizeof(PtoGlobalContext)};
    for (size_t i = 0; i < sizeof(found) / sizeof(found[0]); ++i) sizes[i] = static_cast<uint32_t>(found[i]);
}

PTO_EXPORT const void* pto_api() { return &pto::table; }

// Runs a program to its end. The report says how it went. The handle holds the records and must be freed; null when
// threads are stuck in kernels: then all that belongs to the run must stay where it is.
PTO_EXPORT void* pto_run(const pto::Program* program, const pto::Options* options, pto::Report* report) {
    using namespace pto;
    uint32_t threads = options->workers > 0 ? options->workers - 1 : 0;
    if (options->timeout > 0) ++threads;  // the orchestrator watches, and runs nothing itself
    if (options->random_schedule) threads = 0;
    auto* const handle = new Handle(*program, *options, threads);
    const bool ended = handle->run->go();
    *report = handle->report;
    if (!ended) return nullptr;  // stuck threads still use all of it
    crews().give(handle->crew);
    return handle;
}

PTO_EXPORT void pto_free(void* handle) { delete static_cast<pto::Handle*>(handle); }

// Bytes of one record of that kind; 0: there is no such kind.
PTO_EXPORT size_t pto_record_size(uint32_t which) {
    const size_t sizes[] = {sizeof(pto::TaskRecord),   sizeof(pto::EdgeRecord), sizeof(pto::AccessRecord),
                            sizeof(pto::BufferRecord), sizeof(pto::Event),      sizeof(pto::TouchRecord)};
    return which < sizeof(sizes) / sizeof(sizes[0]) ? sizes[which] : 0;
}

// A record's array and its length. 0 tasks, 1 edges, 2 accesses, 3 buffers, 4 events, 5 touches.
PTO_EXPORT const void* pto_records(void* handle, uint32_t which, uint64_t* count) {
    const pto::Run& run = *static_cast<pto::Handle*>(handle)->run;
    const pto::Records& records = run.records();
    switch (which) {
        case 0:
            *count = records.tasks.size();
            return records.tasks.data();
        case 1:
            *count = records.edges.size();
            return records.edges.data();
        case 2:
            *count = records.accesses.size();
            return records.accesses.data();
        case 3:
            *count = records.buffers.size();
            return records.buffers.data();
        case 4:
            *count = run.events().size();
            return run.events().data();
        default:
            *count = records.touches.size();
            return records.touches.data();
    }
}

// For kernels that are callbacks of the host: the run in which this thread executes one fails. True: with this error.
PTO_EXPORT bool pto_kernel_failed(const char* message) {
    return pto::Run::current != nullptr && pto::Run::current->kernel_failed(pto::ERROR_KERNEL, message);
}

#ifdef PTO_HAS_PROCESSES
// For the worker process of isolated runs: what this library does is written to the monitor, and so is what ends the
// process. A monitor has pto_monitor_size() bytes.
PTO_EXPORT void pto_watch(void* monitor) { pto::watch_signals(*static_cast<pto::Monitor*>(monitor)); }
PTO_EXPORT size_t pto_monitor_size() { return sizeof(pto::Monitor); }
#endif
