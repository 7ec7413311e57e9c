// Element types of generated CPU kernels: how they are stored, and what they are in arithmetic. Between load_element
// and store_element a loop computes in float, or in the integer itself; conversions round as NumPy and ml_dtypes do.
//
// All of it is branch-free and inlined, so that compilers turn loops over it into vector code. None of it may be
// compiled with -ffast-math: NaN, infinities and exact roundings are what it is about.
#pragma once

#ifdef __FAST_MATH__
#error "kernels compute with NaN and infinities: compile them without -ffast-math"
#endif

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <limits>
#include <type_traits>

// A call that is left in a loop keeps the loop scalar.
#define PTO_INLINE static inline __attribute__((always_inline))

namespace pto {

// --- storage --------------------------------------------------------------------------------------------------------

struct bf16 {
    uint16_t bits;
};
struct fp16 {
    uint16_t bits;
};
struct fp8e4m3fn {  // no infinity; all ones: NaN
    uint8_t bits;
};
struct fp8e5m2 {
    uint8_t bits;
};
struct fp8e8m0 {  // powers of two from 2^-127 on, without sign and zero; all ones: NaN
    uint8_t bits;
};

template <typename T>
constexpr bool is_narrow_float =
    std::is_same_v<T, bf16> || std::is_same_v<T, fp16> || std::is_same_v<T, fp8e4m3fn> || std::is_same_v<T, fp8e5m2> ||
    std::is_same_v<T, fp8e8m0>;
template <typename T>
constexpr bool is_float_element = std::is_same_v<T, float> || is_narrow_float<T>;

// What a loop computes in: float for every float type, else the integer (or bool) itself.
template <typename T>
using value_of = std::conditional_t<is_narrow_float<T>, float, T>;

PTO_INLINE uint32_t bits_of(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof(bits));
    return bits;
}
PTO_INLINE float float_of(uint32_t bits) {
    float x;
    memcpy(&x, &bits, sizeof(x));
    return x;
}
PTO_INLINE uint64_t bits_of(double x) {
    uint64_t bits;
    memcpy(&bits, &x, sizeof(bits));
    return bits;
}
PTO_INLINE double double_of(uint64_t bits) {
    double x;
    memcpy(&x, &bits, sizeof(x));
    return x;
}

// --- to float: exact ------------------------------------------------------------------------------------------------

PTO_INLINE float to_float(float x) { return x; }
PTO_INLINE float to_float(bf16 x) { return float_of(uint32_t{x.bits} << 16); }

// Not the conversion instruction: neither GCC 12 nor clang 14 makes vector code of a loop with it. See to_floats.
PTO_INLINE float to_float(fp16 x) {
    const uint32_t magnitude = x.bits & 0x7fffu;
    const uint32_t normal = (magnitude << 13) + (magnitude >= 0x7c00 ? 224u << 23 : 112u << 23);
    // As a fraction behind 2^-14, which is then taken away: no subnormal float is ever an operand.
    const uint32_t subnormal = bits_of(float_of((magnitude << 13) + (113u << 23)) - float_of(113u << 23));
    return float_of((magnitude < 0x400 ? subnormal : normal) | (x.bits & 0x8000u) << 16);
}

PTO_INLINE float to_float(fp8e5m2 x) { return to_float(fp16{static_cast<uint16_t>(x.bits << 8)}); }

PTO_INLINE float to_float(fp8e4m3fn x) {
    const uint32_t magnitude = x.bits & 0x7fu;
    const uint32_t normal = magnitude == 0x7f ? 0x7fc00000u : (magnitude << 20) + (120u << 23);
    const uint32_t subnormal = bits_of(float_of((magnitude << 20) + (121u << 23)) - float_of(121u << 23));
    return float_of((magnitude < 8 ? subnormal : normal) | (x.bits & 0x80u) << 24);
}

PTO_INLINE float to_float(fp8e8m0 x) {
    const uint32_t normal = x.bits == 0xff ? 0x7fc00000u : uint32_t{x.bits} << 23;
    return float_of(x.bits == 0 ? 0x00400000u : normal);
}

// --- from float -----------------------------------------------------------------------------------------------------

// Rounding modes of `cast`, by the numbers of its `mode`. ROUND: to nearest, ties away from zero; ODD: to nearest, ties
// to odd; NONE promises an exact conversion and is RINT, ties to even, where it is not.
enum class Rounding : int { NONE, RINT, ROUND, FLOOR, CEIL, TRUNC, ODD };

namespace detail {

template <Rounding mode>
constexpr bool is_directed = mode == Rounding::FLOOR || mode == Rounding::CEIL || mode == Rounding::TRUNC;

// Signed: vector instructions compare these best.
PTO_INLINE int32_t larger(int32_t a, int32_t b) { return a > b ? a : b; }
PTO_INLINE int32_t smaller(int32_t a, int32_t b) { return a < b ? a : b; }

// What is to be added to a magnitude whose low `shift` bits are then cut off. U: as wide as the magnitude.
template <Rounding mode, typename U>
PTO_INLINE U increment(U magnitude, U shift, bool negative) {
    const U one = 1, half = one << (shift - one), odd = (magnitude >> shift) & one;
    if constexpr (mode == Rounding::TRUNC) return 0;
    if constexpr (mode == Rounding::FLOOR) return negative ? half + (half - one) : U{0};
    if constexpr (mode == Rounding::CEIL) return negative ? U{0} : half + (half - one);
    if constexpr (mode == Rounding::ROUND) return half;
    if constexpr (mode == Rounding::ODD) return half - odd;
    return half - one + odd;
}

// SIGNIFICAND: bits, with the hidden one. LARGEST: finite number, as bits.
template <typename T>
struct Format;
template <>
struct Format<bf16> {
    using Bits = uint16_t;
    static constexpr uint32_t SIGNIFICAND = 8, BIAS = 127, LARGEST = 0x7f7f, NOT_A_NUMBER = 0x7fc0;
    static constexpr bool INFINITE = true;
};
template <>
struct Format<fp16> {
    using Bits = uint16_t;
    static constexpr uint32_t SIGNIFICAND = 11, BIAS = 15, LARGEST = 0x7bff, NOT_A_NUMBER = 0x7e00;
    static constexpr bool INFINITE = true;
};
template <>
struct Format<fp8e5m2> {
    using Bits = uint8_t;
    static constexpr uint32_t SIGNIFICAND = 3, BIAS = 15, LARGEST = 0x7b, NOT_A_NUMBER = 0x7e;
    static constexpr bool INFINITE = true;
};
template <>
struct Format<fp8e4m3fn> {
    using Bits = uint8_t;
    static constexpr uint32_t SIGNIFICAND = 4, BIAS = 7, LARGEST = 0x7e, NOT_A_NUMBER = 0x7f;
    static constexpr bool INFINITE = false;
};

// The magnitude of a float in a narrower format, rounded; beyond the largest number it goes on as if there were more
// exponents. (Infinity and NaN: some number beyond the largest.)
template <typename T, Rounding mode>
PTO_INLINE uint32_t narrow_magnitude(uint32_t magnitude, bool negative) {
    constexpr uint32_t KEPT = Format<T>::SIGNIFICAND, CUT = 24 - KEPT;
    if constexpr (Format<T>::BIAS == 127) {  // a float, shorter
        return (magnitude + increment<mode, uint32_t>(magnitude, CUT, negative)) >> CUT;
    } else {
        constexpr int32_t FIRST = 128 - Format<T>::BIAS;  // exponent of the smallest normal number, as float has it
        if constexpr (mode == Rounding::RINT || mode == Rounding::NONE) {
            // What an addition does, too: of a number whose last place is the last place of the subnormal ones.
            constexpr uint32_t ANCHOR = static_cast<uint32_t>(FIRST + int32_t{CUT}) << 23;
            const uint32_t subnormal = bits_of(float_of(magnitude) + float_of(ANCHOR)) - ANCHOR;
            const uint32_t normal = (magnitude + increment<mode, uint32_t>(magnitude, CUT, negative)) >> CUT;
            constexpr uint32_t OFFSET = static_cast<uint32_t>(FIRST - 1) << (KEPT - 1);
            return static_cast<int32_t>(magnitude) < FIRST << 23 ? subnormal : normal - OFFSET;
        }
        const int32_t exponent = static_cast<int32_t>(magnitude >> 23);
        const uint32_t significand = (magnitude & 0x7fffffu) | (exponent != 0 ? 0x800000u : 0u);
        // Below it one bit more is cut off with every exponent; 25 are more than there are.
        const uint32_t cut = static_cast<uint32_t>(smaller(larger(FIRST - exponent, 0) + int32_t{CUT}, 25));
        const uint32_t above = static_cast<uint32_t>(larger(exponent - FIRST, 0)) << (KEPT - 1);
        return above + ((significand + increment<mode, uint32_t>(significand, cut, negative)) >> cut);
    }
}

template <typename T>
PTO_INLINE T with_sign(uint32_t magnitude, uint32_t float_bits) {
    constexpr int WIDTH = 8 * sizeof(T);
    return T{static_cast<typename Format<T>::Bits>(magnitude | (float_bits >> 31) << (WIDTH - 1))};
}

// Powers of two: ties go up, as in ml_dtypes, except the one between the two smallest.
PTO_INLINE fp8e8m0 to_power(float x) {
    const int32_t bits = static_cast<int32_t>(bits_of(x));
    const uint32_t half = bits < 0x800000 ? 0x3fffffu : 0x400000u;
    const bool power = bits > 0 && bits < 0x7f400000;
    return fp8e8m0{static_cast<uint8_t>(power ? (static_cast<uint32_t>(bits) + half) >> 23 : 0xffu)};
}

}  // namespace detail

// As x.astype(dtype) does it: to nearest, ties to even. What is too large becomes infinity, or NaN in a type without.
// The payload of a NaN is lost; its sign stays.
template <typename T>
PTO_INLINE T from_float(float x) {
    if constexpr (std::is_same_v<T, float>) {
        return x;
    } else if constexpr (std::is_same_v<T, fp8e8m0>) {
        return detail::to_power(x);
    } else {
        using Format = detail::Format<T>;
        const uint32_t bits = bits_of(x), magnitude = bits & 0x7fffffffu;
        const uint32_t number = detail::narrow_magnitude<T, Rounding::RINT>(magnitude, false);
        const int32_t limited =
            detail::smaller(static_cast<int32_t>(number), static_cast<int32_t>(Format::LARGEST + 1));
        const bool nan = static_cast<int32_t>(magnitude) > 0x7f800000;
        return detail::with_sign<T>(nan ? Format::NOT_A_NUMBER : static_cast<uint32_t>(limited), bits);
    }
}

// x as it is after it was stored as T and loaded again.
template <typename T>
PTO_INLINE float rounded(float x) {
    return to_float(from_float<T>(x));
}

// --- elements in memory ---------------------------------------------------------------------------------------------

template <typename T>
PTO_INLINE value_of<T> load_element(const T* p) {
    if constexpr (is_narrow_float<T>) {
        return to_float(*p);
    } else {
        return *p;
    }
}
template <typename T>
PTO_INLINE void store_element(T* p, value_of<T> value) {
    if constexpr (is_narrow_float<T>) {
        *p = from_float<T>(value);
    } else {
        *p = value;
    }
}

// Whole rows, for kernels that convert a block, compute on floats, and convert back.
template <typename T>
static inline void to_floats(float* __restrict to, const T* __restrict from, size_t count) {
    for (size_t i = 0; i < count; ++i) to[i] = to_float(from[i]);
}
template <typename T>
static inline void from_floats(T* __restrict to, const float* __restrict from, size_t count) {
    for (size_t i = 0; i < count; ++i) to[i] = from_float<T>(from[i]);
}

#if defined(__F16C__) && defined(__GNUC__)
// By the conversion instructions, written out since <immintrin.h> takes longer to compile than most kernels. They keep
// the payload of a NaN.
namespace detail {
typedef float Floats8 __attribute__((vector_size(32)));
typedef uint16_t Halves8 __attribute__((vector_size(16)));
}  // namespace detail
template <>
inline void to_floats<fp16>(float* __restrict to, const fp16* __restrict from, size_t count) {
    size_t i = 0;
    for (; i + 8 <= count; i += 8) {
        detail::Halves8 halves;
        detail::Floats8 floats;
        memcpy(&halves, from + i, sizeof(halves));
        __asm__("vcvtph2ps %1, %0" : "=x"(floats) : "x"(halves));
        memcpy(to + i, &floats, sizeof(floats));
    }
    for (; i < count; ++i) to[i] = to_float(from[i]);
}
template <>
inline void from_floats<fp16>(fp16* __restrict to, const float* __restrict from, size_t count) {
    size_t i = 0;
    for (; i + 8 <= count; i += 8) {
        detail::Halves8 halves;
        detail::Floats8 floats;
        memcpy(&floats, from + i, sizeof(floats));
        __asm__("vcvtps2ph $0, %1, %0" : "=x"(halves) : "x"(floats));
        memcpy(to + i, &halves, sizeof(halves));
    }
    for (; i < count; ++i) to[i] = from_float<fp16>(from[i]);
}
#endif

// --- cast -----------------------------------------------------------------------------------------------------------

namespace detail {

// A float as a whole number. (What is halfway or has a fraction is below 2^24, so all of this is exact.)
template <Rounding mode>
PTO_INLINE float whole(float x) {
    if constexpr (mode == Rounding::FLOOR) {
        return __builtin_floorf(x);
    } else if constexpr (mode == Rounding::CEIL) {
        return __builtin_ceilf(x);
    } else if constexpr (mode == Rounding::TRUNC) {
        return __builtin_truncf(x);
    } else if constexpr (mode == Rounding::ROUND || mode == Rounding::ODD) {
        const float down = __builtin_truncf(x), rest = __builtin_fabsf(x - down);
        const float step = float_of((bits_of(x) & 0x80000000u) | bits_of(1.0f));
        const float at_tie = mode == Rounding::ROUND || __builtin_truncf(down * 0.5f) == down * 0.5f ? step : 0.0f;
        return down + (rest > 0.5f ? step : rest == 0.5f ? at_tie : 0.0f);
    } else {
        return __builtin_rintf(x);
    }
}

// Saturates; NaN becomes 0.
template <typename To, Rounding mode>
PTO_INLINE To float_to_integer(float x) {
    using Limits = std::numeric_limits<To>;
    constexpr float LOW = static_cast<float>(Limits::min());                // a power of two or 0
    constexpr float END = static_cast<float>(Limits::max() / 2 + 1) * 2.0f;  // one above the largest
    using Wide = std::conditional_t<sizeof(To) < 4, int32_t, To>;            // narrower ones have no instruction
    const float value = whole<mode>(x);
    const bool fits = value >= LOW && value < END;
    const To inside = static_cast<To>(static_cast<Wide>(fits ? value : 0.0f));
    const To above = value >= END ? Limits::max() : inside;
    return value < LOW ? Limits::min() : above;
}

// Float to a narrower float. A type without infinity saturates beyond its largest number, NaN too, as the op's
// reference does (which calls both undefined).
template <typename To, Rounding mode>
PTO_INLINE To float_to_narrow(float x) {
    if constexpr (std::is_same_v<To, fp8e8m0>) {
        return to_power(x);
    } else {
        using Format = detail::Format<To>;
        const uint32_t bits = bits_of(x), magnitude = bits & 0x7fffffffu;
        const bool negative = static_cast<int32_t>(bits) < 0;
        const bool away = mode == Rounding::FLOOR ? negative : mode == Rounding::CEIL ? !negative : !is_directed<mode>;
        const int32_t number = static_cast<int32_t>(narrow_magnitude<To, mode>(magnitude, negative));
        if constexpr (!Format::INFINITE) {
            return with_sign<To>(static_cast<uint32_t>(smaller(number, Format::LARGEST)), bits);
        } else {
            constexpr int32_t LARGEST = Format::LARGEST;
            const bool infinite = magnitude == 0x7f800000u, nan = static_cast<int32_t>(magnitude) > 0x7f800000;
            const int32_t limited = smaller(number, away || infinite ? LARGEST + 1 : LARGEST);
            return with_sign<To>(nan ? Format::NOT_A_NUMBER : static_cast<uint32_t>(limited), bits);
        }
    }
}

// An integer as a double; where 53 bits do not hold it, its last bit says that something was cut off. That suffices to
// round to fewer bits later.
template <typename From>
PTO_INLINE double integer_to_double(From x) {
    if constexpr (sizeof(From) <= 4) {
        return static_cast<double>(x);
    } else {
        const bool negative = std::is_signed_v<From> && x < From{0};
        const uint64_t magnitude = negative ? uint64_t{0} - static_cast<uint64_t>(x) : static_cast<uint64_t>(x);
        const bool large = magnitude >> 53 != 0;
        const uint64_t cut = magnitude >> 11 | uint64_t{(magnitude & 2047) != 0};
        const double whole = static_cast<double>(static_cast<int64_t>(large ? cut : magnitude));
        const double value = large ? whole * 2048.0 : whole;
        return negative ? -value : value;
    }
}

// The same for a double as a float: rounded to zero, the last bit set if that was not exact.
PTO_INLINE float double_to_odd(double x) {
    const float near = static_cast<float>(x);
    const bool beyond = __builtin_fabs(static_cast<double>(near)) > __builtin_fabs(x);
    const uint32_t down = bits_of(near) - (beyond ? 1u : 0u);
    return float_of(static_cast<double>(float_of(down)) != x ? down | 1u : down);
}

// A whole number below 2^64 in size.
template <Rounding mode>
PTO_INLINE float double_to_float(double x) {
    if constexpr (mode == Rounding::NONE || mode == Rounding::RINT) {
        return static_cast<float>(x);
    } else {
        const uint64_t bits = bits_of(x), magnitude = bits & ~(uint64_t{1} << 63);
        const uint64_t number = (magnitude + increment<mode, uint64_t>(magnitude, 29, x < 0.0)) >> 29;
        const uint32_t low = static_cast<uint32_t>(number) - (896u << 23);  // the other bias
        return float_of((magnitude == 0 ? 0u : low) | (x < 0.0 ? 0x80000000u : 0u));
    }
}

}  // namespace detail

// The op `cast`. Floats become integers by `mode` and saturate, NaN becomes 0; integers become integers by their low
// bits; numbers become floats by `mode`, beyond the largest number infinity (by a mode that rounds towards zero: the
// largest), or the largest number in a type without infinity. bool: whether not 0. fp8e8m0 takes no notice of `mode`.
template <typename To, typename From, Rounding mode>
PTO_INLINE To cast(From value) {
    if constexpr (std::is_same_v<To, From>) {
        return value;
    } else if constexpr (std::is_same_v<From, bool>) {
        uint8_t number;  // GCC 12 makes no vector code of bool
        memcpy(&number, &value, 1);
        return cast<To, uint8_t, mode>(number);
    } else if constexpr (is_float_element<From>) {
        const float x = to_float(value);
        if constexpr (std::is_same_v<To, bool>) {
            return x != 0.0f;
        } else if constexpr (std::is_same_v<To, float>) {
            return x;
        } else if constexpr (is_narrow_float<To>) {
            return detail::float_to_narrow<To, mode>(x);
        } else {
            return detail::float_to_integer<To, mode>(x);
        }
    } else if constexpr (std::is_same_v<To, bool>) {
        return value != From{0};
    } else if constexpr (std::is_integral_v<To>) {
        return static_cast<To>(value);
    } else if constexpr (std::is_same_v<To, fp8e8m0> || (std::is_same_v<To, float> && sizeof(From) < 4)) {
        return from_float<To>(static_cast<float>(value));
    } else if constexpr (std::is_same_v<To, float>) {
        return detail::double_to_float<mode>(detail::integer_to_double(value));
    } else if constexpr (sizeof(From) < 4) {
        return detail::float_to_narrow<To, mode>(static_cast<float>(value));
    } else {
        return detail::float_to_narrow<To, mode>(detail::double_to_odd(detail::integer_to_double(value)));
    }
}

}  // namespace pto
