// The matrix product of generated kernels, repeated; a BLAS on the same operands; and what the core could do at best.
#include <ctime>

#include "case.h"
#include "kernel/matmul.h"

namespace {

using namespace pto;

// Seconds of this thread on its core: those of others, who may use it, don't count.
double now() {
    timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

struct Product {  // mirrored in matmul.py
    void* c;
    const void* a;
    const void* b;
    int64_t m, n, k;
    int64_t a_row, a_col, b_row, b_col;
};

template <class A, class B, class C>
double repeat(const Product& p, int64_t repeats) {
    const double start = now();
    for (int64_t i = 0; i < repeats; ++i) {
        matmul(static_cast<C*>(p.c), p.n, static_cast<const A*>(p.a), p.a_row, p.a_col, static_cast<const B*>(p.b),
               p.b_row, p.b_col, p.m, p.n, p.k, false);
    }
    return now() - start;
}

// Steps on registers alone, in more chains than a step takes cycles. What the chains hold is hidden from the compiler.
template <class Policy>
double peak(int64_t repeats) {
    constexpr int chains = 12;
    constexpr std::make_integer_sequence<int, chains> all{};
    typename Policy::Sum sums[chains] = {};
    mm::U32 b{};
    uint32_t a = 0;
    asm volatile("" : "+r"(a), "+x"(b));
    const double start = now();
    for (int64_t i = 0; i < repeats; ++i) {
        mm::unrolled(all, [&](auto j) __attribute__((always_inline)) {
            sums[j] = Policy::step(sums[j], a, b);
            asm volatile("" : "+x"(sums[j]), "+x"(b));
        });
    }
    const double seconds = now() - start;
    return 2.0 * chains * mm::kLanes * Policy::kGroup * static_cast<double>(repeats) / seconds;
}

using Sgemm = void (*)(int order, int ta, int tb, int64_t m, int64_t n, int64_t k, float alpha, const float* a, int64_t lda,
                       const float* b, int64_t ldb, float beta, float* c, int64_t ldc);

}  // namespace

BENCH_EXPORT double bench_f32(const Product& p, int64_t repeats) { return repeat<float, float, float>(p, repeats); }
BENCH_EXPORT double bench_bf16(const Product& p, int64_t repeats) { return repeat<bf16, bf16, float>(p, repeats); }
BENCH_EXPORT double bench_fp16(const Product& p, int64_t repeats) { return repeat<fp16, fp16, float>(p, repeats); }
BENCH_EXPORT double bench_int8(const Product& p, int64_t repeats) { return repeat<int8_t, int8_t, int32_t>(p, repeats); }

// cblas_sgemm with 64-bit sizes.
BENCH_EXPORT double bench_blas(const Product& p, int64_t repeats, Sgemm sgemm) {
    constexpr int row_major = 101, plain = 111, transposed = 112;
    const bool ta = p.a_col != 1, tb = p.b_col != 1;
    const double start = now();
    for (int64_t i = 0; i < repeats; ++i) {
        sgemm(row_major, ta ? transposed : plain, tb ? transposed : plain, p.m, p.n, p.k, 1, static_cast<const float*>(p.a),
              ta ? p.a_col : p.a_row, static_cast<const float*>(p.b), tb ? p.b_col : p.b_row, 0, static_cast<float*>(p.c),
              p.n);
    }
    return now() - start;
}

// Operations a second.
BENCH_EXPORT double bench_peak_f32(int64_t repeats) { return peak<mm::Floats>(repeats); }
BENCH_EXPORT double bench_peak_bf16(int64_t repeats) { return peak<mm::PolicyOf<bf16, bf16>::type>(repeats); }
BENCH_EXPORT double bench_peak_int8(int64_t repeats) { return peak<mm::Ints>(repeats); }

// Bytes a second that the core reads one behind the other.
BENCH_EXPORT double bench_read(const Product& p, int64_t bytes, int64_t repeats) {
    mm::U32 sums[4] = {};
    const double start = now();
    for (int64_t i = 0; i < repeats; ++i) {
        const char* from = static_cast<const char*>(p.b);
        for (int64_t at = 0; at + 256 <= bytes; at += 256) {
            for (int j = 0; j < 4; ++j) sums[j] += mm::load<mm::U32>(from + at + j * static_cast<int>(sizeof(mm::U32)));
        }
        asm volatile("" : "+x"(sums[0]), "+x"(sums[1]), "+x"(sums[2]), "+x"(sums[3]));
    }
    return static_cast<double>(bytes / 256 * 4 * static_cast<int64_t>(sizeof(mm::U32)) * repeats) / (now() - start);
}
