// The worker process of isolated runs (isolation.py): it is sent programs, and answers with reports.
//
// Libraries are named by paths, functions by symbols. Arrays are in memory that both processes map, behind the monitor. A
// request: the number of bytes that follow; bytes of memory; Options; 1 if records are wanted; library, entry, config (""
// if there is none); kernels, each with its name, library, symbol; tensors, whose addresses count from the begin of the
// arrays; scalars. Lists and texts begin with their length. An answer: the number of bytes that follow; Report; records, each
// array with its count. Numbers have 64 bits.
#pragma once

#include "monitor.h"

#ifdef PTO_HAS_PROCESSES

#include <dlfcn.h>
#include <errno.h>
#include <poll.h>
#include <sys/mman.h>

#include <map>
#include <string>
#include <thread>
#include <vector>

#include "options.h"

namespace pto {

inline constexpr int32_t ERROR_LOADING = -1;
inline constexpr size_t kMonitorBytes = size_t{64} << 10;
static_assert(sizeof(Monitor) <= kMonitorBytes, "the arrays stand behind the monitor");

inline bool read_all(int file, void* place, size_t size) {
    for (char* at = static_cast<char*>(place); size != 0;) {
        const ssize_t got = read(file, at, size);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return false;
        at += got;
        size -= static_cast<size_t>(got);
    }
    return true;
}

inline bool write_all(int file, const void* place, size_t size) {
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

class Server {
   public:
    Server(int requests, int answers, int memory) : requests_(requests), answers_(answers), memory_(memory) {}

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
        Monitor& shared = *monitor.load(std::memory_order_relaxed);
        shared.phase.store(PHASE_LOADING, std::memory_order_relaxed);
        Report report{};
        std::string records;
        try {
            run(report, records);
        } catch (const NotLoaded& error) {
            report.code = ERROR_LOADING;
            snprintf(report.message, sizeof(report.message), "%s", error.what.c_str());
        }
        shared.phase.store(PHASE_IDLE, std::memory_order_relaxed);
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

        monitor.load(std::memory_order_relaxed)->phase.store(PHASE_RUNNING, std::memory_order_relaxed);
        void* handle = pto_run(&program, &options, &report);
        if (handle == nullptr) {  // the other side will end this process; until then all must stay
            static_cast<void>(new std::vector<std::string>(std::move(names)));
            static_cast<void>(new std::vector<KernelInfo>(std::move(kernels)));
            static_cast<void>(new std::vector<std::vector<int64_t>>(std::move(parts)));
            return;
        }
        if (recorded && report.code == 0) append_records(handle, records);
        pto_free(handle);
    }

    static void append_records(void* handle, std::string& to) {
        for (uint32_t which = 0; const size_t size = pto_record_size(which); ++which) {
            uint64_t count = 0;
            const void* place = pto_records(handle, which, &count);
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
            found = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
            if (found == nullptr) throw NotLoaded{dlerror()};
            if (void* bind = dlsym(found, "pto_bind")) {
                const bool bound = reinterpret_cast<bool (*)(const Api*)>(bind)(static_cast<const Api*>(pto_api()));
                if (!bound) throw NotLoaded{path + " was compiled for another version of the task runtime"};
            }
        }
        return found;
    }

    static void* find(void* library, const std::string& symbol) {
        void* found = dlsym(library, symbol.c_str());
        if (found == nullptr) throw NotLoaded{dlerror()};
        return found;
    }

    const int requests_, answers_, memory_;
    std::vector<char> request_;
    std::map<std::string, void*> libraries_;
    char* arrays_ = nullptr;
    size_t mapped_ = 0;
};

}  // namespace pto

// The size of the struct that the host mirrors.
PTO_EXPORT size_t pto_monitor_size() { return sizeof(pto::Monitor); }

// Files: to read requests, to write answers, the memory. Returns when the other side is gone; 1: the memory can't be mapped.
PTO_EXPORT int pto_serve(int requests, int answers, int memory) {
    using namespace pto;
    void* made = mmap(nullptr, kMonitorBytes, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
    if (made == MAP_FAILED) return 1;
    watch_signals(*static_cast<Monitor*>(made));
    Server(requests, answers, memory).serve();
    return 0;
}

#endif
