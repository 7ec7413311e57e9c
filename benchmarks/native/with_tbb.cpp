// The cases as flow graphs of oneTBB, a continue_node for each task, and as task groups where no task has two producers.
#include <oneapi/tbb/flow_graph.h>
#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/task_arena.h>
#include <oneapi/tbb/task_group.h>

#include <cstdlib>
#include <memory>
#include <new>

#include "case.h"

namespace {

namespace flow = oneapi::tbb::flow;
using bench::Case;
using bench::kRow;
using flow::continue_msg;
using Node = flow::continue_node<continue_msg>;

// --- flow graph -----------------------------------------------------------------------------------------------------

// Nodes in one block of memory: they can't be moved.
class Graph {
   public:
    explicit Graph(uint64_t room) : nodes_(static_cast<Node*>(std::malloc(room * sizeof(Node)))) {
        if (nodes_ == nullptr) throw std::bad_alloc();
    }
    ~Graph() {
        for (uint64_t i = 0; i < count_; ++i) nodes_[i].~Node();
        std::free(nodes_);
    }
    Graph(const Graph&) = delete;
    Graph& operator=(const Graph&) = delete;

    template <typename Body>
    void add(Body body) {
        new (&nodes_[count_++]) Node(graph_, body);
    }
    void edge(uint64_t from, uint64_t to) { flow::make_edge(nodes_[from], nodes_[to]); }
    void start(uint64_t node) { nodes_[node].try_put(continue_msg()); }
    void wait() { graph_.wait_for_all(); }

   private:
    flow::graph graph_;
    Node* nodes_;
    uint64_t count_ = 0;
};

void build_grid(const Case& what, Graph& graph) {
    for (uint64_t step = 0; step < what.steps; ++step) {
        for (uint64_t point = 0; point < what.width; ++point) {
            const uint64_t task = step * what.width + point;
            if (point >= what.points[step]) {
                graph.add([](continue_msg) {});  // keeps the numbers of nodes those of tasks; never started
                continue;
            }
            graph.add([&what, step, point](continue_msg) { bench::grid(what, step, point); });
            for (uint64_t i = what.reads_at[task]; i < what.reads_at[task + 1]; ++i) {
                graph.edge(task - point - what.width + what.reads[i], task);
            }
            for (uint64_t i = what.after_at[task]; i < what.after_at[task + 1]; ++i) graph.edge(what.after[i], task);
        }
    }
}

// Nodes 2i and 2i + 1.
void add_pair(const Case& what, Graph& graph, uint64_t i) {
    uint64_t* cell = &what.cells[i * kRow];
    graph.add([cell, i](continue_msg) { bench::produce(cell, i); });
    graph.add([cell, &what, i](continue_msg) { bench::consume(cell, what.out, i); });
    graph.edge(2 * i, 2 * i + 1);
}

uint64_t nodes_of(const Case& what) {
    switch (what.kind) {
        case bench::GRID:
            return what.steps * what.width;
        case bench::PAIRS:
        case bench::BANDS:
            return 2 * what.n;
        default:
            return what.n;
    }
}

void build(const Case& what, Graph& graph) {
    switch (what.kind) {
        case bench::INDEPENDENT:
            for (uint64_t i = 0; i < what.n; ++i) {
                graph.add([&what, i](continue_msg) { bench::independent(what.out, i); });
            }
            break;
        case bench::PAIRS:
        case bench::BANDS:  // the order of submission, in which they differ, is none of the graph
            for (uint64_t i = 0; i < what.n; ++i) add_pair(what, graph, i);
            break;
        case bench::CHAIN:
            for (uint64_t i = 0; i < what.n; ++i) {
                graph.add([&what, i](continue_msg) { bench::chain(what.cells, i); });
                if (i != 0) graph.edge(i - 1, i);
            }
            break;
        case bench::GRID:
            build_grid(what, graph);
            break;
    }
}

void start(const Case& what, Graph& graph) {
    switch (what.kind) {
        case bench::INDEPENDENT:
            for (uint64_t i = 0; i < what.n; ++i) graph.start(i);
            break;
        case bench::PAIRS:
        case bench::BANDS:
            for (uint64_t i = 0; i < what.n; ++i) graph.start(2 * i);
            break;
        case bench::CHAIN:
            graph.start(0);
            break;
        case bench::GRID:
            for (uint64_t step = 0; step < what.steps; ++step) {
                for (uint64_t point = 0; point < what.points[step]; ++point) {
                    const uint64_t task = step * what.width + point;
                    const bool root = what.reads_at[task] == what.reads_at[task + 1] &&
                                      what.after_at[task] == what.after_at[task + 1];
                    if (root) graph.start(task);
                }
            }
            break;
    }
}

void run_graph(const Case& what, bench::Result& result) {
    const double begin = bench::now();
    auto graph = std::make_unique<Graph>(nodes_of(what));
    build(what, *graph);
    result.submit = bench::now() - begin;
    start(what, *graph);
    graph->wait();
    result.total = bench::now() - begin;  // the graph goes away behind it
}

// --- task group -----------------------------------------------------------------------------------------------------

void run_group(const Case& what, bench::Result& result) {
    const double begin = bench::now();
    oneapi::tbb::task_group group;
    switch (what.kind) {
        case bench::INDEPENDENT:
            for (uint64_t i = 0; i < what.n; ++i) group.run([&what, i] { bench::independent(what.out, i); });
            break;
        case bench::PAIRS:  // whoever produces starts the consumer
            for (uint64_t i = 0; i < what.n; ++i) {
                group.run([&what, &group, i] {
                    bench::produce(&what.cells[i * kRow], i);
                    group.run([&what, i] { bench::consume(&what.cells[i * kRow], what.out, i); });
                });
            }
            break;
        case bench::FRESH:
            for (uint64_t i = 0; i < what.n; ++i) {
                auto* buffer = static_cast<uint64_t*>(aligned_alloc(64, bench::kFreshBytes));
                group.run([&what, buffer, i] {
                    bench::fresh(buffer, what.out, i);
                    free(buffer);
                });
            }
            break;
        case bench::GRID:  // without edges only
            for (uint64_t step = 0; step < what.steps; ++step) {
                for (uint64_t point = 0; point < what.points[step]; ++point) {
                    group.run([&what, step, point] { bench::grid(what, step, point); });
                }
            }
            break;
    }
    result.submit = bench::now() - begin;
    group.wait();
    result.total = bench::now() - begin;
}

}  // namespace

// `variant`: 0 flow graph, 1 task group.
BENCH_EXPORT bool bench_run(const Case* what, uint64_t variant, bench::Result* result) {
    const int workers = static_cast<int>(what->workers);
    // Limits and arenas are made once a number of workers: making them is not what is measured.
    static int limited = 0;
    static std::unique_ptr<oneapi::tbb::global_control> limit;
    static std::unique_ptr<oneapi::tbb::task_arena> arena;
    if (limited != workers) {
        arena.reset();
        limit.reset();
        limit = std::make_unique<oneapi::tbb::global_control>(oneapi::tbb::global_control::max_allowed_parallelism, workers);
        arena = std::make_unique<oneapi::tbb::task_arena>(workers);
        limited = workers;
    }
    arena->execute([&] {
        if (variant == 0) {
            run_graph(*what, *result);
        } else {
            run_group(*what, *result);
        }
    });
    return true;
}
