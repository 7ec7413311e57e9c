// What workers do with ready tasks.

#include <stdio.h>

#include <exception>

#include "monitor.h"
#include "run.h"

namespace pto {

void Run::put_elsewhere(Worker& worker, Work work) {
    if (options_.random_schedule) {
        ready_.push_back(work);
        return;
    }
    const Hold hold(worker.overflow_lock);
    worker.overflow.push_back(work);
    worker.overflow_size.store(static_cast<uint32_t>(worker.overflow.size()), std::memory_order_relaxed);
}

static Work take_overflow(Worker& from) {
    if (from.overflow_size.load(std::memory_order_relaxed) == 0) return 0;
    const Hold hold(from.overflow_lock);
    if (from.overflow.empty()) return 0;
    const Work found = from.overflow.back();
    from.overflow.pop_back();
    from.overflow_size.store(static_cast<uint32_t>(from.overflow.size()), std::memory_order_relaxed);
    return found;
}

// Where tasks take less time than it takes to move them to another core, everybody is faster if each does his own. What a
// batch took, a task, tells; the more such batches, the longer the worker waits, up to some 20 us.
static void restrain(Worker& worker) {
    constexpr uint64_t kWorthMoving = 900;  // ns
    if (worker.batch_since != 0) {
        const uint64_t done = worker.completed.load(std::memory_order_relaxed) - worker.batch_completed;
        if (done != 0) {
            const bool tiny = now_ns() - worker.batch_since < done * kWorthMoving;
            worker.restraint = !tiny ? 0 : worker.restraint == 0 ? 32 : least(2 * worker.restraint, 512u);
        }
        worker.batch_since = 0;
    }
    for (uint32_t i = 0; i < worker.restraint; ++i) relax();
}

// Own work first, then that of others, from a random one on.
Work Run::find(Worker& worker) {
    if (const Work own = worker.queue.pop(alone_)) return own;
    if (const Work own = take_overflow(worker)) return own;
    const uint32_t size = crew_.size();
    if (size == 1) return 0;
    if (worker.index != 0) restrain(worker);
    worker.random = worker.random * 1664525u + 1013904223u;
    const uint32_t first = static_cast<uint32_t>((uint64_t{worker.random} * size) >> 32);
    for (uint32_t i = 0; i < size; ++i) {
        Worker& victim = crew_.worker(first + i < size ? first + i : first + i - size);
        if (&victim == &worker) continue;
        Work found = victim.queue.steal(worker.queue);
        if (found == 0) found = take_overflow(victim);
        if (found == 0) continue;
        ++worker.stolen;
        if (worker.index != 0) {
            worker.batch_since = now_ns();
            worker.batch_completed = worker.completed.load(std::memory_order_relaxed);
        }
        return found;
    }
    return 0;
}

void Run::execute(Worker& worker, Work work) {
    while (work != 0) {
        if (work & 1) {
            work = run_share(worker, reinterpret_cast<BlockShare*>(work & ~Work{1}));
        } else {
            work = run_task(worker, reinterpret_cast<Task*>(work));
        }
        if (options_.random_schedule && work != 0) {
            ready_.push_back(work);
            return;
        }
    }
}

// Runs a ready task; gives back the next one to run, if its end made one ready.
Work Run::run_task(Worker& worker, Task* task) {
    if (task->kind == CoreKind::DUMMY || fatal()) return complete(worker, task);
    worker.running.store(task->number + 1, std::memory_order_relaxed);
    if (task->predicate != nullptr && !predicate_holds(task)) {
        task->skipped = true;
    } else if (task->sync_start) {
        run_parts(worker, task, 0, task->block_num);
    } else if (task->block_num == 1 || alone_) {
        for (uint32_t block = 0; block < task->block_num; ++block) run_block(worker, task, block);
    } else if (task->block_num > 1) {
        uint32_t shares = task->block_num < crew_.size() ? task->block_num : crew_.size();
        BlockShare* share = new BlockShare{task, task->block_num, {0}, {task->block_num}, {shares}};
        for (uint32_t i = 1; i < shares; ++i) push(worker, as_work(share));
        return run_share(worker, share);
    }
    return complete(worker, task);
}

// Takes blocks until none is left. The worker whose block ends last completes the task.
Work Run::run_share(Worker& worker, BlockShare* share) {
    Work next = 0;
    for (;;) {
        const uint32_t block = share->next.fetch_add(1, std::memory_order_relaxed);
        if (block >= share->count) break;
        worker.running.store(share->task->number + 1, std::memory_order_relaxed);
        run_block(worker, share->task, block);
        if (share->left.fetch_sub(1, std::memory_order_acq_rel) == 1) next = complete(worker, share->task);
    }
    if (share->holders.fetch_sub(1, std::memory_order_acq_rel) == 1) delete share;
    return next;
}

Work Run::complete(Worker& worker, Task* task) {
    worker.running.store(0, std::memory_order_relaxed);
    Allocation** holds = task->holds();
    for (uint32_t i = 0; i < task->hold_count; ++i) release(holds[i]);
    Link* link = alone_ ? task->successors.load(std::memory_order_relaxed) : nullptr;
    if (alone_) {
        task->successors.store(Task::done_mark(), std::memory_order_relaxed);
    } else {
        link = task->successors.exchange(Task::done_mark(), std::memory_order_acq_rel);
    }
    // From here on the record belongs to the orchestrator. The links belong to consumers, which wait.
    Work next = 0;
    while (link != nullptr) {
        Task* consumer = link->consumer;
        Link* following = link->next;
        bool ready;
        if (alone_) {
            const int32_t left = consumer->pending.load(std::memory_order_relaxed) - 1;
            consumer->pending.store(left, std::memory_order_relaxed);
            ready = left == 0;
        } else {
            ready = consumer->pending.fetch_sub(1, std::memory_order_acq_rel) == 1;
        }
        if (ready) {
            became_ready(consumer);
            if (next == 0) {
                next = as_work(consumer);
            } else {
                push(worker, as_work(consumer));
            }
        }
        link = following;
    }
    worker.completed.store(worker.completed.load(std::memory_order_relaxed) + 1, std::memory_order_release);
    return next;
}

void Run::release(Allocation* allocation) {
    if (allocation->claims.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
    Allocation* first = unused_.load(std::memory_order_relaxed);
    do {
        allocation->next_unused = first;
    } while (!unused_.compare_exchange_weak(first, allocation, std::memory_order_release, std::memory_order_relaxed));
}

// --- kernels --------------------------------------------------------------------------------------------------------

void Run::run_block(Worker& worker, Task* task, uint32_t block) {
    if (fatal()) return;
    switch (task->kind) {
        case CoreKind::AIC:
            call_kernel(worker, task, task->kernels.aic, block, 0, 0);
            return;
        case CoreKind::AIV:
            call_kernel(worker, task, task->kernels.aiv0, block, 0, 0);
            return;
        case CoreKind::MIXED:
            run_parts(worker, task, block, 1);
            return;
        case CoreKind::DUMMY:
            return;
    }
}

void Run::call_kernel(Worker& worker, Task* task, int32_t kernel, uint32_t block, uint32_t part, int32_t lane) {
    int64_t args[PTO_ARGUMENT_SLOTS];
    ChipTensor* tensors = task->tensors();
    uint32_t slot = 0;
    for (uint32_t i = 0; i < task->tensor_count; ++i) args[slot++] = reinterpret_cast<int64_t>(&tensors[i]);
    if (task->scalar_count != 0) memcpy(&args[slot], task->scalars(), task->scalar_count * sizeof(uint64_t));
    PtoLocalContext local{static_cast<int32_t>(block), static_cast<int32_t>(task->block_num),
                          static_cast<int64_t>(task->number)};
    const MixedKernels& kernels = task->kernels;
    const int32_t lanes = (kernels.aiv0 >= 0) + (kernels.aiv1 >= 0);
    PtoGlobalContext global{lane, lanes + (kernels.aic >= 0), lanes};
    args[PTO_LOCAL_CONTEXT_SLOT] = reinterpret_cast<int64_t>(&local);
    args[PTO_GLOBAL_CONTEXT_SLOT] = reinterpret_cast<int64_t>(&global);
    executing = task;
    executing_kernel = kernel;
    const Watch watch(*task, kernel);
    const uint64_t start = options_.trace ? now_ns() : 0;
    try {
        program_.kernels[kernel].function(args);
    } catch (const std::exception& error) {
        char text[512];
        snprintf(text, sizeof(text), "the kernel threw an exception: %s", error.what());
        kernel_failed(ERROR_KERNEL, text);
    } catch (...) {
        kernel_failed(ERROR_KERNEL, "the kernel threw an exception");
    }
    if (options_.trace) {
        const Event event{task->number, start, now_ns(), worker.index, block, part, 0};
        const Hold hold(worker.events_lock);
        worker.events.push_back(event);
    }
    executing = nullptr;
}

// Parts that have to run at the same time: those of a mixed kernel, or all blocks of a task that asks for it. One runs
// here, each other one on a thread of its own, so that they may wait for each other.
void Run::run_parts(Worker& worker, Task* task, uint32_t first_block, uint32_t blocks) {
    struct Part {
        Run* run;
        Worker* worker;
        Task* task;
        int32_t kernel;
        uint32_t block;
        uint32_t part;
        int32_t lane;
        std::atomic<uint32_t>* left;
    };
    const int32_t kernels[3] = {task->kernels.aic, task->kernels.aiv0, task->kernels.aiv1};
    List<Part> parts;
    std::atomic<uint32_t> left{0};
    for (uint32_t block = first_block; block < first_block + blocks; ++block) {
        for (uint32_t i = 0; i < 3; ++i) {
            if (kernels[i] < 0) continue;
            const uint32_t part = task->kind == CoreKind::MIXED ? i : 0;
            parts.push_back({this, &worker, task, kernels[i], block, part, part == 2 ? 1 : 0, &left});
        }
    }
    if (parts.empty()) return;
    left.store(static_cast<uint32_t>(parts.size()) - 1, std::memory_order_relaxed);
    for (size_t i = 1; i < parts.size(); ++i) {
        crew_.lanes.start({[](void* argument) {
                               Part& part = *static_cast<Part*>(argument);
                               current = part.run;
                               part.run->call_kernel(*part.worker, part.task, part.kernel, part.block, part.part, part.lane);
                               current = nullptr;
                               part.left->fetch_sub(1, std::memory_order_release);
                           },
                           &parts[i]});
    }
    call_kernel(worker, task, parts[0].kernel, parts[0].block, parts[0].part, parts[0].lane);
    for (uint32_t spins = 0; left.load(std::memory_order_acquire) != 0; ++spins) {
        if (spins < 1000) {
            relax();
        } else {
            yield();
        }
    }
}

static int64_t signed_element(const void* place, uint32_t size) {
    switch (size) {
        case 1:
            return *static_cast<const int8_t*>(place);
        case 2:
            return *static_cast<const int16_t*>(place);
        case 4:
            return *static_cast<const int32_t*>(place);
        default:
            return *static_cast<const int64_t*>(place);
    }
}

bool Run::predicate_holds(Task* task) {
    const CoreTaskPredicate& predicate = *task->predicate;
    const ChipTensor& tensor = *predicate.operand.tensor;
    const int64_t value = signed_element(address_of(tensor, predicate.operand.indices), pto_element_size(tensor.dtype));
    switch (predicate.op) {
        case PredicateOp::EQ:
            return value == predicate.target;
        case PredicateOp::NE:
            return value != predicate.target;
        case PredicateOp::GT:
            return value > predicate.target;
        case PredicateOp::LT:
            return value < predicate.target;
        case PredicateOp::GE:
            return value >= predicate.target;
        case PredicateOp::LE:
            return value <= predicate.target;
    }
    return true;
}

// --- threads --------------------------------------------------------------------------------------------------------

Crew::Crew(uint32_t threads) : size_(threads + 1), workers_(new Worker[size_]) {
    for (uint32_t i = 0; i < size_; ++i) {
        workers_[i].crew = this;
        workers_[i].index = i;
        workers_[i].random = i * 2654435761u + 1;
    }
    for (uint32_t i = 1; i < size_; ++i) {
        pthread_t made;
        if (pthread_create(&made, nullptr, serve, &workers_[i]) != 0) break;  // the system has no more: do with fewer
        threads_.push_back(made);
    }
}

Crew::~Crew() {
    {
        const Hold hold(lock_);
        stop_ = true;
        wake_.wake_all();
    }
    for (const pthread_t each : threads_) pthread_join(each, nullptr);
    delete[] workers_;
}

void Crew::signal() {
    const Hold hold(lock_);
    if (sleepers_.load(std::memory_order_relaxed) > signals_.load(std::memory_order_relaxed)) {
        signals_.fetch_add(1, std::memory_order_relaxed);
        wake_.wake_one();
    }
}

// Linux likes to wake a thread on the core of who wakes it, and then moves it after many milliseconds only, although
// other cores are idle. So the threads keep off the core of the orchestrator, as long as it stays there.
void Crew::leave_this_core() {
#ifdef __linux__
    const int core = sched_getcpu();
    if (core < 0 || core == left_core_) return;
    left_core_ = core;
    cpu_set_t allowed;
    if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0) return;
    if (CPU_COUNT(&allowed) > static_cast<int>(threads_.size())) CPU_CLR(core, &allowed);
    for (const pthread_t each : threads_) pthread_setaffinity_np(each, sizeof(allowed), &allowed);
#endif
}

// Until somebody has work. False: the crew is dismissed.
bool Crew::sleep() {
    lock_.lock();
    sleepers_.fetch_add(1, std::memory_order_seq_cst);
    lock_.unlock();
    // What was pushed before the push could see this sleeper is visible by now.
    for (int i = 0; i < 100; ++i) relax();
    const bool found = anything_ready();
    const Hold hold(lock_);
    while (!found && !stop_ && signals_.load(std::memory_order_relaxed) == 0) wake_.wait(lock_);
    if (signals_.load(std::memory_order_relaxed) != 0) signals_.fetch_sub(1, std::memory_order_relaxed);
    sleepers_.fetch_sub(1, std::memory_order_relaxed);
    return !stop_;
}

void* Crew::serve(void* worker) {
    Worker& self = *static_cast<Worker*>(worker);
    self.crew->serve(self);
    return nullptr;
}

void Crew::serve(Worker& worker) {
    constexpr uint32_t kSpins = 4000;  // some 50 us of looking around before a thread sleeps
    uint32_t idle = 0;
    for (;;) {
        if (run_.load(std::memory_order_relaxed) != nullptr) {
            active_.fetch_add(1, std::memory_order_seq_cst);
            if (Run* run = run_.load(std::memory_order_seq_cst)) {
                Run::current = run;
                while (!run->over() && idle <= kSpins) {
                    if (const Work work = run->find(worker)) {
                        idle = 0;
                        run->execute(worker, work);
                    } else {
                        ++idle;
                        relax();
                    }
                }
                Run::current = nullptr;
            }
            active_.fetch_sub(1, std::memory_order_seq_cst);
        }
        if (++idle > kSpins) {
            if (!sleep()) return;
            idle = 0;
        } else {
            relax();
        }
    }
}

// --- lanes ----------------------------------------------------------------------------------------------------------

Lanes::~Lanes() {
    {
        const Hold hold(lock_);
        stop_ = true;
        for (Lane* each : lanes_) each->wake.wake_one();
    }
    for (Lane* each : lanes_) {
        pthread_join(each->thread, nullptr);
        delete each;
    }
}

void Lanes::start(LaneJob job) {
    const Hold hold(lock_);
    Lane* lane;
    if (!idle_.empty()) {
        lane = idle_.back();
        idle_.pop_back();
    } else {
        lane = new Lane;
        lane->all = this;
        if (pthread_create(&lane->thread, nullptr, serve, lane) != 0) {
            // Parts that wait for each other can't do with fewer.
            fprintf(stderr, "pypto: the system starts no more threads, and a kernel needs one for each of its parts\n");
            abort();
        }
        lanes_.push_back(lane);
    }
    lane->job = job;
    lane->has_job = true;
    lane->wake.wake_one();
}

void* Lanes::serve(void* argument) {
    Lane& lane = *static_cast<Lane*>(argument);
    Lanes& all = *lane.all;
    const Hold hold(all.lock_);
    for (;;) {
        while (!lane.has_job && !all.stop_) lane.wake.wait(all.lock_);
        if (!lane.has_job) return nullptr;
        const LaneJob job = lane.job;
        lane.has_job = false;
        all.lock_.unlock();
        job.run(job.argument);
        all.lock_.lock();
        all.idle_.push_back(&lane);
    }
}

}  // namespace pto
