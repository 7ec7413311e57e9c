// Scalar arithmetic where that of C++ is another: see pypto/codegen/scalar_expressions.py. Orchestrations include it, too.
#pragma once

#include <stdint.h>

#include <type_traits>

namespace pto {

// A product that is rounded before anything is added to it.
inline float kept(float value) {
    asm("" : "+m"(value));
    return value;
}

// Quotients of integers, whose divisor is not 0. By -1 the processor can't divide all of them.
template <typename T>
inline T divided(T a, T b) {
    if constexpr (std::is_signed_v<T>) {
        if (b == static_cast<T>(-1)) return static_cast<T>(-static_cast<uint64_t>(a));
    }
    return static_cast<T>(a / b);
}
template <typename T>
inline T floor_rest(T a, T b) {
    if constexpr (std::is_signed_v<T>) {
        if (b == static_cast<T>(-1)) return 0;
        const T rest = static_cast<T>(a % b);
        return rest != 0 && (rest < 0) != (b < 0) ? static_cast<T>(rest + b) : rest;
    }
    return static_cast<T>(a % b);
}
template <typename T>
inline T floor_divided(T a, T b) {
    const T down = std::is_signed_v<T> && b != static_cast<T>(-1) && a % b != 0 && (a < 0) != (b < 0);
    return static_cast<T>(divided<T>(a, b) - down);
}

template <typename T>
inline T to_power(T base, T exponent) {
    uint64_t found = 1, square = static_cast<uint64_t>(base);
    for (uint64_t left = static_cast<uint64_t>(exponent); left != 0; left >>= 1, square *= square) {
        if (left & 1) found *= square;
    }
    return static_cast<T>(found);
}

// As Python divides: with the rest of the divisor's sign.
inline float float_floor_rest(double a, double b) {
    if (b == 0) return __builtin_nanf("");
    const double rest = __builtin_fmod(a, b);
    if (rest == 0) return static_cast<float>(__builtin_copysign(0.0, b));
    return static_cast<float>((rest < 0) != (b < 0) ? rest + b : rest);
}
inline float float_floor_divided(double a, double b) {
    if (b == 0) return __builtin_nanf("");
    const double rest = __builtin_fmod(a, b);
    double quotient = (a - rest) / b;
    if (rest != 0 && (rest < 0) != (b < 0)) quotient -= 1;
    if (quotient == 0) return static_cast<float>(__builtin_copysign(0.0, a / b));
    const double down = __builtin_floor(quotient);
    return static_cast<float>(quotient - down > 0.5 ? down + 1 : down);
}

// Of a finite number: towards zero; what does not fit wraps.
template <typename T>
inline T to_integer(float value) {
    const float size = __builtin_fabsf(value);
    const uint64_t bits = size < 0x1p63f ? static_cast<uint64_t>(static_cast<int64_t>(size))
                                         : static_cast<uint64_t>(__builtin_fmodf(size, 0x1p64f));
    return static_cast<T>(value < 0 ? -bits : bits);
}

}  // namespace pto
