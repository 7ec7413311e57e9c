// Loops over arrays, one for each function of kernel/math.h and for the conversions of kernel/element.h. Compiled as
// generated kernels are; test_kernel_math.py calls them.
#include "kernel/math.h"

#define EXPORT extern "C" __attribute__((visibility("default")))

namespace m = pto::math;

#define UNARY(name)                                                                              \
    EXPORT void unary_##name(const float* __restrict x, float* __restrict y, int64_t n) {        \
        _Pragma("omp simd") for (int64_t i = 0; i < n; ++i) y[i] = m::name(x[i]);                \
    }
UNARY(exp)
UNARY(log)
UNARY(sin)
UNARY(cos)
UNARY(sqrt)
UNARY(rsqrt)
UNARY(recip)
UNARY(tanh)
UNARY(erf)
UNARY(sigmoid)

EXPORT float trigonometric_end() { return m::detail::TRIGONOMETRIC_END; }

#define BINARY(name, T)                                                                                        \
    EXPORT void name##_##T(const T* __restrict a, const T* __restrict b, T* __restrict y, int64_t n) {         \
        _Pragma("omp simd") for (int64_t i = 0; i < n; ++i) y[i] = m::name(a[i], b[i]);                        \
    }
#define BINARIES(T) BINARY(maximum, T) BINARY(minimum, T) BINARY(fmod, T) BINARY(remainder, T)
BINARIES(float)
BINARIES(int8_t)
BINARIES(int16_t)
BINARIES(int32_t)
BINARIES(int64_t)
BINARIES(uint8_t)
BINARIES(uint16_t)
BINARIES(uint32_t)
BINARIES(uint64_t)

using pto::bf16;
using pto::fp16;
using pto::fp8e4m3fn;
using pto::fp8e5m2;
using pto::fp8e8m0;

#define NARROW(T)                                                                                \
    EXPORT void load_##T(const T* __restrict x, float* __restrict y, int64_t n) {                \
        _Pragma("omp simd") for (int64_t i = 0; i < n; ++i) y[i] = pto::load_element(x + i);     \
    }                                                                                            \
    EXPORT void store_##T(const float* __restrict x, T* __restrict y, int64_t n) {               \
        _Pragma("omp simd") for (int64_t i = 0; i < n; ++i) pto::store_element(y + i, x[i]);     \
    }                                                                                            \
    EXPORT void rounded_##T(const float* __restrict x, float* __restrict y, int64_t n) {         \
        _Pragma("omp simd") for (int64_t i = 0; i < n; ++i) y[i] = pto::rounded<T>(x[i]);        \
    }                                                                                            \
    EXPORT void exp_##T(const T* __restrict x, T* __restrict y, int64_t n) {                     \
        _Pragma("omp simd") for (int64_t i = 0; i < n; ++i) {                                    \
            pto::store_element(y + i, m::exp(pto::load_element(x + i)));                         \
        }                                                                                        \
    }                                                                                            \
    EXPORT void to_floats_##T(const T* x, float* y, int64_t n) { pto::to_floats(y, x, n); }      \
    EXPORT void from_floats_##T(const float* x, T* y, int64_t n) { pto::from_floats(y, x, n); }
NARROW(bf16)
NARROW(fp16)
NARROW(fp8e4m3fn)
NARROW(fp8e5m2)
NARROW(fp8e8m0)

static_assert(std::is_same_v<decltype(pto::load_element(static_cast<const float*>(nullptr))), float>);
static_assert(std::is_same_v<decltype(pto::load_element(static_cast<const int16_t*>(nullptr))), int16_t>);
static_assert(std::is_trivially_copyable_v<bf16> && sizeof(bf16) == 2 && sizeof(fp8e8m0) == 1);
