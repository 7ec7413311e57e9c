// A run from begin to end: calling the orchestration, waiting, failing, cleaning up.

#include <stdio.h>

#include <exception>

#include "run.h"

namespace pto {

PTO_THREAD_LOCAL Run* Run::current = nullptr;
PTO_THREAD_LOCAL const Task* Run::executing = nullptr;
PTO_THREAD_LOCAL int32_t Run::executing_kernel = -1;

Run::Run(Crew& crew, const Program& program, const Options& options, Report& report)
    : crew_(crew),
      program_(program),
      options_(options),
      report_(report),
      counters_(report.counters),
      alone_(crew.size() == 1),
      helps_(options.timeout <= 0 || crew.size() == 1),
      random_(options.seed * 0x9e3779b97f4a7c15ull + 0x1234567ull) {
    for (uint32_t i = 0; i < Crew::kRings; ++i) {
        Ring& ring = rings_[i];
        ring.window = options.window[i];
        ring.budget = options.heap[i];
        crew.storage[i].begin_run();
        crew.storage[i].keep_at_most = ring.budget;
    }
    memset(static_cast<void*>(nothing_), 0, sizeof(nothing_));
    for (uint32_t i = 0; i < crew.size(); ++i) {
        crew.worker(i).completed.store(0, std::memory_order_relaxed);
        crew.worker(i).events.clear();
    }
}

// What this thread works for, while it runs an orchestration: a kernel may run another program.
class OnBehalf {
   public:
    explicit OnBehalf(Run* run) {
        Run::current = run;
        Run::executing = nullptr;
    }
    ~OnBehalf() {
        Run::current = run_;
        Run::executing = task_;
        Run::executing_kernel = kernel_;
    }
    OnBehalf(const OnBehalf&) = delete;
    OnBehalf& operator=(const OnBehalf&) = delete;

   private:
    Run* run_ = Run::current;
    const Task* task_ = Run::executing;
    int32_t kernel_ = Run::executing_kernel;
};

bool Run::go() {
    const OnBehalf work(this);
    if (take_arguments()) {
        if (!alone_) crew_.begin(this);
        run_orchestration();
        if (!finish()) return false;
        over_.store(true, std::memory_order_release);
        if (!alone_) crew_.end();
        // Shares in tasks whose blocks others have run: idle threads would look at them again and again.
        while (const Work share = find(crew_.worker(0))) execute(crew_.worker(0), share);
    }
    clear();
    return true;
}

void Run::run_orchestration() {
    if (program_.config != nullptr) {
        const int64_t expected = program_.config(chip_args_).expected_arg_count;
        const int64_t given = int64_t{program_.tensor_count} + program_.scalar_count;
        if (expected != given) {
            char text[160];
            snprintf(text, sizeof(text), "the orchestration expects %lld arguments, %lld were given",
                     static_cast<long long>(expected), static_cast<long long>(given));
            fail(ERROR_ARGUMENTS, text);
            return;
        }
    }
    open_scope(PTO2ScopeMode::AUTO, 0);
    try {
        program_.entry(chip_args_);
    } catch (const std::exception& error) {
        char text[512];
        snprintf(text, sizeof(text), "the orchestration threw an exception: %s", error.what());
        fail(ERROR_PROGRAM, text);
    } catch (...) {
        fail(ERROR_PROGRAM, "the orchestration was stopped");  // by pto::Stop, behind an error that is reported already
    }
    while (!scopes_.empty()) close_scope();
}

// Waits for all tasks. False: some never end.
bool Run::finish() {
    const auto all_done = [&] { return completed() == submitted_; };
    if (help_until(ERROR_SCHEDULER, 0, all_done) == Wait::DONE) return true;
    // Failed for want of progress: give slow kernels one more such time to end.
    const uint64_t end = now_ns() + static_cast<uint64_t>(options_.timeout * 1e9);
    while (!all_done()) {
        if (now_ns() > end) {
            report_.stuck = 1;
            return false;
        }
        yield();
    }
    return true;
}

void Run::clear() {
    for (uint32_t i = 0; i < Crew::kRings; ++i) {
        Ring& ring = rings_[i];
        counters_.window_high_water[i] = ring.high_water;
        for (; ring.head != ring.next; ++ring.head) {
            if (Task* task = ring.table[ring.head & ring.mask]) retire(task);
        }
        counters_.heap_high_water[i] = crew_.storage[i].high_water();
    }
    reclaim_unused();
    for (Allocation* each : argument_allocations_) reclaim(each);
    for (uint32_t i = 0; i < crew_.size(); ++i) {
        Worker& worker = crew_.worker(i);
        events_.append(worker.events);
        worker.events.clear();
        counters_.stolen += worker.stolen;
        worker.stolen = 0;
    }
    counters_.tasks = submitted_;
}

// --- errors ---------------------------------------------------------------------------------------------------------

// The first error wins.
bool Run::fail(int32_t code, const char* message, uint32_t line, int64_t task, int32_t kernel) {
    const Hold hold(fail_lock_);
    if (fatal_.load(std::memory_order_relaxed) != 0) return false;
    report_.code = code != ERROR_NONE ? code : ERROR_PROGRAM;
    report_.line = line;
    report_.task = task;
    report_.kernel = kernel;
    snprintf(report_.message, sizeof(report_.message), "%s", message);
    fatal_.store(1, std::memory_order_release);
    return true;
}

// The kernel by which a task is named; -1: it has none.
static int32_t first_kernel(const Task& task) {
    const MixedKernels& kernels = task.kernels;
    return kernels.aic >= 0 ? kernels.aic : kernels.aiv0 >= 0 ? kernels.aiv0 : kernels.aiv1;
}

// An error that is found while a kernel runs on this thread (or else in the orchestration).
bool Run::kernel_failed(int32_t code, const char* message) {
    if (executing == nullptr) return fail(code, message);
    return fail(code, message, executing->line, static_cast<int64_t>(executing->number), executing_kernel);
}

// --- waiting --------------------------------------------------------------------------------------------------------

uint64_t Run::completed() const {
    uint64_t sum = 0;
    for (uint32_t i = 0; i < crew_.size(); ++i) sum += crew_.worker(i).completed.load(std::memory_order_acquire);
    return sum;
}

Work Run::find_for_orchestrator() {
    if (!options_.random_schedule) return find(crew_.worker(0));
    if (ready_.empty()) return 0;
    // splitmix64 (Steele, Lea, Flood 2014)
    uint64_t z = (random_ += 0x9e3779b97f4a7c15ull);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    const size_t at = static_cast<size_t>((z ^ (z >> 31)) % ready_.size());
    const Work found = ready_[at];
    ready_[at] = ready_.back();
    ready_.pop_back();
    return found;
}

Run::Wait Run::help(int32_t code_on_timeout, uint32_t line, bool (*ready)(void*), void* what) {
    uint32_t idle = 0;
    uint64_t seen = ~uint64_t{0}, since = 0;
    while (!ready(what)) {
        if (helps_) {
            if (const Work work = find_for_orchestrator()) {
                execute(crew_.worker(0), work);
                ++counters_.helped;
                idle = 0;
                continue;
            }
            if (alone_) {
                fail(ERROR_NO_PROGRESS, "no task can run, and not all have: the runtime lost one (a fault of the runtime)");
                return Wait::FAILED;
            }
        }
        ++idle;
        if (idle < 1000) {
            relax();
        } else if (idle < 10000) {
            yield();
        } else {
            sleep_for_us(20);
        }
        // A yield can take as long as others use the core for, so the clock is read after each.
        const bool look = options_.timeout > 0 && (idle >= 1000 || idle % 64 == 0);
        if (look && stuck(seen, since, code_on_timeout, line)) return Wait::FAILED;
    }
    return Wait::DONE;
}

// Whether no task has ended for as long as the options allow.
bool Run::stuck(uint64_t& seen, uint64_t& since, int32_t code, uint32_t line) {
    const uint64_t now = now_ns(), done = completed();
    if (done != seen) {
        seen = done;
        since = now;
        return false;
    }
    if (static_cast<double>(now - since) < options_.timeout * 1e9) return false;
    char text[1600];
    const Task* running = describe_stuck(text, sizeof(text));
    if (running != nullptr && code == ERROR_SCHEDULER) {
        fail(code, text, running->line, static_cast<int64_t>(running->number), first_kernel(*running));
    } else {
        fail(code, text, line);
    }
    return true;
}

// Which tasks run, and which wait for whom. Returns the oldest that runs, or null.
const Task* Run::describe_stuck(char* text, size_t size) {
    const Task* oldest = nullptr;
    size_t at = 0;
    const auto add = [&](const char* format, auto... values) {
        if (at >= size) return;
        const int written = snprintf(text + at, size - at, format, values...);
        if (written > 0) at += static_cast<size_t>(written);
    };
    add("no task has ended for %g s. Running:", options_.timeout);
    for (int pass = 0; pass < 2; ++pass) {
        if (pass == 1) add("; waiting:");
        uint32_t shown = 0;
        for (Ring& ring : rings_) {
            for (uint32_t number = ring.head; number != ring.next; ++number) {
                Task* task = ring.table[number & ring.mask];
                if (task == nullptr || task->done()) continue;
                bool running = false;
                for (uint32_t i = 0; i < crew_.size(); ++i) {
                    running = running || crew_.worker(i).running.load(std::memory_order_relaxed) == task->number + 1;
                }
                if (running != (pass == 0) || ++shown > 8) continue;
                if (running && (oldest == nullptr || task->number < oldest->number)) oldest = task;
                const int32_t kernel = first_kernel(*task);
                const char* name = kernel >= 0 ? program_.kernels[kernel].name : "dummy";
                add(" task %llu (%s, line %u)", static_cast<unsigned long long>(task->number), name, task->line);
                if (pass == 1) {
                    add(" for %d producers", static_cast<int>(task->pending.load(std::memory_order_relaxed)));
                    continue;
                }
                uint32_t consumers = 0;
                Link* link = task->successors.load(std::memory_order_acquire);
                for (; link != nullptr && link != Task::done_mark(); link = link->next) {
                    if (++consumers > 4) continue;
                    add("%s %llu", consumers == 1 ? ", awaited by" : ",",
                        static_cast<unsigned long long>(link->consumer->number));
                }
            }
        }
        if (shown == 0) add(" none");
        if (shown > 8) add(" and %u more", shown - 8);
    }
    return oldest;
}

}  // namespace pto
