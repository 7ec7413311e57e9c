// Element functions of generated CPU kernels, in float: fp16 and bf16 compute in float, too. Branch-free and inlined,
// so that loops over them become vector code. The errors are in units in the last place (ulp), measured on every 13th
// float against float64.
//
// Where operands are subnormal and the thread flushes these to zero, they count as zero.
#pragma once

#include "element.h"

#if defined(__FMA__) || defined(__aarch64__) || defined(FP_FAST_FMA)
#define PTO_HAS_FMA 1
#else
#define PTO_HAS_FMA 0
#endif

namespace pto {
namespace math {

namespace detail {

// One rounding where the CPU has it; the library's function elsewhere would be slower than all the rest.
PTO_INLINE float fused(float a, float b, float c) {
#if PTO_HAS_FMA
    return __builtin_fmaf(a, b, c);
#else
    return a * b + c;
#endif
}
PTO_INLINE double fused(double a, double b, double c) {
#if PTO_HAS_FMA
    return __builtin_fma(a, b, c);
#else
    return a * b + c;
#endif
}

constexpr float INFINITE = __builtin_inff();
constexpr float NOT_A_NUMBER = __builtin_nanf("");

PTO_INLINE uint32_t sign_of(float x) { return bits_of(x) & 0x80000000u; }

// Coefficients from the constant one on. They are fits of least largest relative error.
template <typename... More>
PTO_INLINE float polynomial(float x, float first, More... more) {
    if constexpr (sizeof...(more) == 0) {
        (void)x;
        return first;
    } else {
        return fused(polynomial(x, more...), x, first);
    }
}

}  // namespace detail

// --- exponential and logarithm ---------------------------------------------------------------------------------------

// At most 1.1 ulp, subnormal results included.
PTO_INLINE float exp(float x) {
    using namespace detail;
    // 2^n * e^r with |r| <= log(2) / 2. Adding 1.5 * 2^23 rounds; with 126 more the low bits are the exponent of 2^(n-1).
    constexpr float magic = 12582912.0f + 126.0f;
    const float shifted = fused(x, 1.44269504f, magic);
    const float n = shifted - magic;
    const float r = fused(n, 2.12194440e-4f, fused(n, -0.693359375f, x));
    const float p = polynomial(r, 0x1.fffffcp-2f, 0x1.555492p-3f, 0x1.5558aap-5f, 0x1.12396cp-7f, 0x1.6a5234p-10f);
    const float e = 1.0f + fused(r * r, p, r);
    // In two steps, since 2^n itself may be no normal number: 2^(n-1), or 2^-125 if that is more, and what is missing.
    const int32_t power = static_cast<int32_t>(bits_of(shifted)), least = static_cast<int32_t>(bits_of(magic - 124.0f));
    const int32_t first = power > least ? power : least;
    const float most = e * float_of(static_cast<uint32_t>(first) << 23);
    const float made = most * float_of((static_cast<uint32_t>(power - first) << 23) + bits_of(2.0f));
    const float bounded = x > 88.8f ? INFINITE : made;  // from 88.72 on
    return x < -104.0f ? 0.0f : bounded;                // from -103.98 on
}

// At most 0.9 ulp. Of 0: -infinity, of negative numbers: NaN.
PTO_INLINE float log(float x) {
    using namespace detail;
    const bool tiny = x < 0x1p-126f;
    // x = 2^exponent * (1 + f), where 1 + f is from sqrt(1/2) to its double.
    const uint32_t bits = bits_of(tiny ? x * 0x1p23f : x) - 0x3f3504f3u;
    const float exponent = static_cast<float>((static_cast<int32_t>(bits) >> 23) - (tiny ? 23 : 0));
    const float f = float_of((bits & 0x7fffffu) + 0x3f3504f3u) - 1.0f;
    const float p = polynomial(f, 0x1.555548p-2f, -0x1.000006p-2f, 0x1.99a476p-3f, -0x1.555c44p-3f, 0x1.233ba2p-3f,
                               -0x1.fc28cap-4f, 0x1.e6c00ap-4f, -0x1.de01d8p-4f, 0x1.147334p-4f);
    const float square = f * f;
    const float small = fused(exponent, -2.12194440e-4f, fused(square * f, p, -0.5f * square));
    const float value = fused(exponent, 0.693359375f, f + small);
    const float finite = x > 0.0f ? value : x == 0.0f ? -INFINITE : NOT_A_NUMBER;
    return x == INFINITE ? INFINITE : finite;
}

// --- trigonometry ----------------------------------------------------------------------------------------------------

namespace detail {

// From here on, and of infinities, sine and cosine are NaN: a number of quarter turns that large is no longer counted
// exactly. (NumPy has values there; neighbouring floats are then many turns apart.)
#if PTO_HAS_FMA
constexpr float TRIGONOMETRIC_END = 0x1p51f;
#else
constexpr float TRIGONOMETRIC_END = 0x1p31f;
#endif

// sin(x + quarters * pi/2) of x >= 0.
PTO_INLINE float sine_of(float x, uint32_t quarters) {
    constexpr double ROUNDER = 0x1.8p52;
    const double wide = static_cast<double>(x < TRIGONOMETRIC_END ? x : NOT_A_NUMBER);
    const double shifted = fused(wide, 0x1.45f306dc9c883p-1, ROUNDER);
    const double n = shifted - ROUNDER;
#if PTO_HAS_FMA
    const double rest = fused(n, -0x1.1a62633145c07p-54, fused(n, -0x1.921fb54442d18p+0, wide));
#else
    // Parts of pi/2 of 22 bits: their products with n are exact.
    double rest = wide - n * 0x1.921fbp+0;
    rest = rest - n * 0x1.5110bp-22;
    rest = rest - n * 0x1.184698p-44;
    rest = rest - n * 0x1.3198a2e037073p-69;
#endif
    const float r = static_cast<float>(rest);
    const float s = r * r;
    const float p = polynomial(s, -0x1.555556p-3f, 0x1.111174p-7f, -0x1.a0595ep-13f, 0x1.7c3276p-19f);
    const float sine = fused(r * s, p, r);
    const float q = polynomial(s, 0x1.55554ap-5f, -0x1.6c0c2ap-10f, 0x1.99e8fap-16f);
    const float cosine = fused(s * s, q, fused(s, -0.5f, 1.0f));
    const uint32_t quarter = static_cast<uint32_t>(bits_of(shifted)) + quarters;
    return float_of(bits_of((quarter & 1u) != 0 ? cosine : sine) ^ (quarter & 2u) << 30);
}

}  // namespace detail

// At most 1.7 ulp below 2^51 (where the CPU has no fused multiply-add: below 2^31); NaN from there on.
PTO_INLINE float sin(float x) {
    return float_of(bits_of(detail::sine_of(__builtin_fabsf(x), 0)) ^ detail::sign_of(x));
}
PTO_INLINE float cos(float x) { return detail::sine_of(__builtin_fabsf(x), 1); }

// --- roots and quotients ---------------------------------------------------------------------------------------------

// All have the bits of the ops' references: sqrt and recip are correctly rounded, rsqrt rounds twice (1.5 ulp).
PTO_INLINE float sqrt(float x) { return __builtin_sqrtf(x); }
PTO_INLINE float rsqrt(float x) { return 1.0f / __builtin_sqrtf(x); }
PTO_INLINE float recip(float x) { return 1.0f / x; }

// --- activations -----------------------------------------------------------------------------------------------------

// At most 1.4 ulp.
PTO_INLINE float tanh(float x) {
    using namespace detail;
    const float t = __builtin_fabsf(x), s = t * t;
    const float p = polynomial(s, -0x1.555532p-2f, 0x1.1106f6p-3f, -0x1.b835a4p-5f, 0x1.51f8cep-6f, -0x1.750ce2p-8f);
    const float near = fused(t * s, p, t);
    const float far = 1.0f - 2.0f / (math::exp(2.0f * t) + 1.0f);
    return float_of(bits_of(t < 0.625f ? near : far) | sign_of(x));
}

// At most 1.0 ulp.
PTO_INLINE float erf(float x) {
    using namespace detail;
    const float t = __builtin_fabsf(x), s = t * t;
    const float p = polynomial(s, 0x1.06eba6p-3f, -0x1.8126dap-2f, 0x1.ce17f4p-4f, -0x1.b663c4p-6f, 0x1.4647dcp-8f,
                               -0x1.361b68p-11f);
    const float near = fused(t, p, t);
    const float u = t > 4.0f ? 4.0f : t;  // 1 from 3.92 on
    const float q = polynomial(u, -0x1.0778dcp-3f, -0x1.45328ep-1f, -0x1.b32568p-4f, 0x1.855122p-6f, -0x1.dd6ba8p-9f,
                               0x1.52795cp-12f, -0x1.78d112p-17f);
    const float far = 1.0f - math::exp(fused(u, q, -u));  // the logarithm of 1 - erf
    return float_of(bits_of(t < 0.93f ? near : far) | sign_of(x));
}

// 1 / (1 + e^-x), at most 2.5 ulp.
PTO_INLINE float sigmoid(float x) {
    const float e = math::exp(-__builtin_fabsf(x));  // never overflows
    return (x < 0.0f ? e : 1.0f) / (1.0f + e);
}

// --- binary ----------------------------------------------------------------------------------------------------------

// As NumPy's: NaN if one is NaN. Of zeros of different sign the second.
PTO_INLINE float maximum(float a, float b) {
    const float larger = a > b ? a : b;
    return a != a ? a : larger;
}
PTO_INLINE float minimum(float a, float b) {
    const float smaller = a < b ? a : b;
    return a != a ? a : smaller;
}
template <typename T, typename = std::enable_if_t<std::is_integral_v<T>>>
PTO_INLINE T maximum(T a, T b) {
    return a > b ? a : b;
}
template <typename T, typename = std::enable_if_t<std::is_integral_v<T>>>
PTO_INLINE T minimum(T a, T b) {
    return a < b ? a : b;
}

namespace detail {
PTO_INLINE double take_multiple(double rest, double by, double inverse) {
    return fused(__builtin_trunc(rest * inverse), -by, rest);
}
}  // namespace detail

// The remainder with the sign of `a`, exact. (C's and NumPy's fmod.)
PTO_INLINE float fmod(float a, float b) {
#if PTO_HAS_FMA
    const double size = static_cast<double>(__builtin_fabsf(a)), by = static_cast<double>(__builtin_fabsf(b));
    const double inverse = 1.0 / by;
    double rest = size;
    // Each step takes 51 bits off the quotient, which has 278 at most, and is exact: what is left is a multiple of
    // a power of two that 53 bits reach. The last quotient may be one off: the rest a little below 0, or above `by`.
    rest = detail::take_multiple(rest, by, inverse);
    rest = detail::take_multiple(rest, by, inverse);
    rest = detail::take_multiple(rest, by, inverse);
    rest = detail::take_multiple(rest, by, inverse);
    rest = detail::take_multiple(rest, by, inverse);
    rest = detail::take_multiple(rest, by, inverse);
    rest = rest < 0.0 ? rest + by : rest;
    rest = rest >= by ? rest - by : rest;
    const bool sensible = size < __builtin_inf() && by > 0.0;  // false for NaN
    const float value = float_of(bits_of(static_cast<float>(rest)) | detail::sign_of(a));
    const float finite = sensible ? value : detail::NOT_A_NUMBER;
    return sensible && by == __builtin_inf() ? a : finite;
#else
    return __builtin_fmodf(a, b);
#endif
}

// The remainder with the sign of `b`. (NumPy's remainder; Python's %.)
PTO_INLINE float remainder(float a, float b) {
    const float rest = math::fmod(a, b);
    const float moved = (rest < 0.0f) != (b < 0.0f) ? rest + b : rest;
    return rest == 0.0f ? float_of(detail::sign_of(b)) : moved;
}

// Of integers; 0 where `b` is 0.
template <typename T, typename = std::enable_if_t<std::is_integral_v<T>>>
PTO_INLINE T fmod(T a, T b) {
    const bool unsafe = b == T{0} || (std::is_signed_v<T> && b == static_cast<T>(-1));  // the smallest by -1 overflows
    return static_cast<T>(a % (unsafe ? T{1} : b));
}
template <typename T, typename = std::enable_if_t<std::is_integral_v<T>>>
PTO_INLINE T remainder(T a, T b) {
    const T rest = math::fmod(a, b);
    return static_cast<T>(rest != T{0} && (rest < T{0}) != (b < T{0}) ? rest + b : rest);
}

}  // namespace math
}  // namespace pto
