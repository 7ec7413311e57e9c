// The worker process of isolated runs (isolation.py): it is sent programs, and answers with reports. A library of its own,
// which loads the runtime: only isolated runs need it.
//
// Libraries are named by paths, functions by symbols. Arrays are in memory that both processes map, behind the monitor. A
// request: the number of bytes that follow; bytes of memory; Options; 1 if records are wanted; library, entry, config (""
// if there is none); kernels, each with its name, library, symbol; tensors, whose addresses count from the begin of the
// arrays; scalars. Lists and texts begin with their length. An answer: the number of bytes that follow; Report; records, each
// array with its count. Numbers have 64 bits.
#include "runtime/monitor.h"

#ifdef PTO_HAS_PROCESSES

#include <dlfcn.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <sys/mman.h>

#include <map>
#include <string>
#include <thread>
#include <vector>

#include "runtime/options.h"

namespace pto {

namespace {

constexpr int32_t ERROR_LOADING = -1;
constexpr size_t kMonitorBytes = size_t{64} << 10;
static_assert(sizeof(Monitor) <= kMonitorBytes, "the arrays stand behind the monitor");

bool read_all(int file, void* place, size_t size) {
    for (char* at = static_cast<char*>(place); size != 0;) {
        const ssize_t got = read(file, at, size);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return false;
        at += got;
        size -= static_cast<size_t>(got);
    }
    return true;
}

bool write_all(int file, const void* place, size_t size) {
    for (const char* at = static_cast<const char*>(place); size != 0;) {
        const ssize_t put = write(file, at, size);
        if (put < 0 && errno == EINTR) continue;
        if (put <= 0) return false;
        at += put;
        size -= static_cast<size_t>(put);
    }
    return true;
}

class RequestReader {
   public:
    explicit RequestReader(const std::vector<char>& bytes) : at_(bytes.data()) {}
    template <typename T>
    T value() {
        T found;
        memcpy(static_cast<void*>(&found), at_, sizeof(T));
        at_ += sizeof(T);
        return found;
    }
    uint64_t number() { return value<uint64_t>(); }
    std::string text() {
        const size_t length = static_cast<size_t>(number());
        at_ += length;
        return std::string(at_ - length, length);
    }

   private:
    const char* at_;
};

// What dlopen or dlsym did not find.
struct NotLoaded {
    std::string what;
};

void* load_library(const std::string& path) {
    void* found = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (found == nullptr) throw NotLoaded{dlerror()};
    return found;
}

void* find(void* library, const std::string& symbol) {
    void* found = dlsym(library, symbol.c_str());
    if (found == nullptr) throw NotLoaded{dlerror()};
    return found;
}

// Functions of the task runtime.
struct Runtime {
    explicit Runtime(const char* path) : library(load_library(path)) {
        get(api, "pto_api");
        get(watch, "pto_watch");
        get(run, "pto_run");
        get(free, "pto_free");
        get(record_size, "pto_record_size");
        get(records, "pto_records");
    }
    template <typename Function>
    void get(Function*& function, const char* name) {
        function = reinterpret_cast<Function*>(find(library, name));
    }

    void* library;
    const void* (*api)();
    void (*watch)(void* monitor);
    void* (*run)(const Program* program, const Options* options, Report* report);
    void (*free)(void* handle);
    size_t (*record_size)(uint32_t which);
    const void* (*records)(void* handle, uint32_t which, uint64_t* count);
};

class Server {
   public:
    Server(const Runtime& runtime, Monitor& monitor, int requests, int answers, int memory)
        : runtime_(runtime), monitor_(monitor), requests_(requests), answers_(answers), memory_(memory) {}

    // Until the other side is gone.
    void serve() {
        // Also while a run goes on: nobody waits for it any more.
        std::thread([file = requests_] {
            pollfd watched{file, 0, 0};
            while (poll(&watched, 1, -1) < 0 || (watched.revents & (POLLHUP | POLLERR)) == 0) {
            }
            _exit(0);
        }).detach();
        signal(SIGINT, SIG_IGN);  // of the terminal: the other side decides
        uint64_t size = 0;
        while (read_all(requests_, &size, sizeof(size))) {
            request_.resize(size);
            if (!read_all(requests_, request_.data(), size)) return;
            if (!answer()) return;
        }
    }

   private:
    bool answer() {
        monitor_.phase.store(PHASE_LOADING, std::memory_order_relaxed);
        Report report{};
        std::string records;
        try {
            run(report, records);
        } catch (const NotLoaded& error) {
            report.code = ERROR_LOADING;
            snprintf(report.message, sizeof(report.message), "%s", error.what.c_str());
        }
        monitor_.phase.store(PHASE_IDLE, std::memory_order_relaxed);
        const uint64_t size = sizeof(report) + records.size();
        return write_all(answers_, &size, sizeof(size)) && write_all(answers_, &report, sizeof(report)) &&
               write_all(answers_, records.data(), records.size());
    }

    void run(Report& report, std::string& records) {
        RequestReader reader(request_);
        char* const arrays = map(static_cast<size_t>(reader.number()));
        const Options options = reader.value<Options>();
        const bool recorded = reader.number() != 0;
        Program program{};
        void* library = load(reader.text());
        program.entry = reinterpret_cast<void (*)(const ChipTaskArgs&)>(find(library, reader.text()));
        const std::string config = reader.text();
        if (!config.empty()) {
            program.config = reinterpret_cast<PTO2OrchestrationConfig (*)(const ChipTaskArgs&)>(find(library, config));
        }
        std::vector<std::string> names(static_cast<size_t>(reader.number()));
        std::vector<KernelInfo> kernels;
        std::vector<std::vector<int64_t>> parts(names.size());
        for (std::string& name : names) {
            name = reader.text();
            library = load(reader.text());
            const auto function = reinterpret_cast<PtoKernel>(find(library, reader.text()));
            std::vector<int64_t>& words = parts[kernels.size()];
            words.resize(static_cast<size_t>(reader.number()));
            for (int64_t& word : words) word = static_cast<int64_t>(reader.number());
            kernels.push_back({function, name.c_str(), words.empty() ? nullptr : words.data()});
        }
        for (uint64_t left = reader.number(); left > 0; --left) {
            library = load(reader.text());
            const auto take = reinterpret_cast<void (*)(void*)>(find(library, reader.text()));
            library = load(reader.text());
            take(reinterpret_cast<void* (*)()>(find(library, reader.text()))());
        }
        std::vector<TensorArgument> tensors(static_cast<size_t>(reader.number()));
        for (TensorArgument& each : tensors) {
            each = reader.value<TensorArgument>();
            each.data = arrays + reinterpret_cast<uint64_t>(each.data);
            each.base = arrays + reinterpret_cast<uint64_t>(each.base);
        }
        std::vector<uint64_t> scalars(static_cast<size_t>(reader.number()));
        for (uint64_t& each : scalars) each = reader.number();
        program.kernels = kernels.data();
        program.kernel_count = static_cast<uint32_t>(kernels.size());
        program.tensors = tensors.data();
        program.tensor_count = static_cast<uint32_t>(tensors.size());
        program.scalars = scalars.data();
        program.scalar_count = static_cast<uint32_t>(scalars.size());

        monitor_.phase.store(PHASE_RUNNING, std::memory_order_relaxed);
        void* handle = runtime_.run(&program, &options, &report);
        if (handle == nullptr) {  // the other side will end this process; until then all must stay
            static_cast<void>(new std::vector<std::string>(std::move(names)));
            static_cast<void>(new std::vector<KernelInfo>(std::move(kernels)));
            static_cast<void>(new std::vector<std::vector<int64_t>>(std::move(parts)));
            return;
        }
        if (recorded && report.code == 0) append_records(handle, records);
        runtime_.free(handle);
    }

    void append_records(void* handle, std::string& to) const {
        for (uint32_t which = 0; const size_t size = runtime_.record_size(which); ++which) {
            uint64_t count = 0;
            const void* place = runtime_.records(handle, which, &count);
            to.append(reinterpret_cast<const char*>(&count), sizeof(count));
            if (count != 0) to.append(static_cast<const char*>(place), count * size);
        }
    }

    char* map(size_t size) {
        if (size != mapped_) {
            if (mapped_ != 0) munmap(arrays_, mapped_);
            mapped_ = 0;
            void* made = size == 0 ? nullptr
                                   : mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, memory_,
                                          static_cast<off_t>(kMonitorBytes));
            if (made == MAP_FAILED) throw NotLoaded{"no room to map the arrays of the run"};
            arrays_ = static_cast<char*>(made);
            mapped_ = size;
        }
        return arrays_;
    }

    void* load(const std::string& path) {
        void*& found = libraries_[path];
        if (found == nullptr) {
            found = load_library(path);
            if (void* bind = dlsym(found, "pto_bind")) {
                const bool bound = reinterpret_cast<bool (*)(const Api*)>(bind)(static_cast<const Api*>(runtime_.api()));
                if (!bound) throw NotLoaded{path + " was compiled for another version of the task runtime"};
            }
        }
        return found;
    }

    const Runtime& runtime_;
    Monitor& monitor_;
    const int requests_, answers_, memory_;
    std::vector<char> request_;
    std::map<std::string, void*> libraries_;
    char* arrays_ = nullptr;
    size_t mapped_ = 0;
};

}  // namespace
}  // namespace pto

// The path of the task runtime's library; files: to read requests, to write answers, the memory. Returns when the other
// side is gone; 1: the memory can't be mapped.
PTO_EXPORT int pto_serve(const char* path, int requests, int answers, int memory) {
    using namespace pto;
    void* made = mmap(nullptr, kMonitorBytes, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
    if (made == MAP_FAILED) return 1;
    try {
        const Runtime runtime(path);
        runtime.watch(made);
        Server(runtime, *static_cast<Monitor*>(made), requests, answers, memory).serve();
    } catch (const NotLoaded& error) {
        fprintf(stderr, "pypto: the task runtime can't be loaded: %s\n", error.what.c_str());
        return 1;
    }
    return 0;
}

#endif
