// pto::cast of all pairs of element types in all modes, behind one function that picks by numbers.
#pragma once

#include "kernel/element.h"

namespace {

using pto::Rounding;

template <typename To, typename From, Rounding mode>
void loop(const void* from, void* to, int64_t n) {
    const From* __restrict x = static_cast<const From*>(from);
    To* __restrict y = static_cast<To*>(to);
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) y[i] = pto::cast<To, From, mode>(x[i]);
}

template <typename To, typename From>
void by_mode(int mode, const void* from, void* to, int64_t n) {
    constexpr bool rounds = (pto::is_float_element<To> || pto::is_float_element<From>) && !std::is_same_v<To, bool> &&
                            !std::is_same_v<To, pto::fp8e8m0> && !(std::is_same_v<To, float> && sizeof(From) < 4);
    if constexpr (!rounds) {
        (void)mode;  // one loop is enough
        loop<To, From, Rounding::NONE>(from, to, n);
    } else {
        switch (static_cast<Rounding>(mode)) {
            case Rounding::NONE: return loop<To, From, Rounding::NONE>(from, to, n);
            case Rounding::RINT: return loop<To, From, Rounding::RINT>(from, to, n);
            case Rounding::ROUND: return loop<To, From, Rounding::ROUND>(from, to, n);
            case Rounding::FLOOR: return loop<To, From, Rounding::FLOOR>(from, to, n);
            case Rounding::CEIL: return loop<To, From, Rounding::CEIL>(from, to, n);
            case Rounding::TRUNC: return loop<To, From, Rounding::TRUNC>(from, to, n);
            case Rounding::ODD: return loop<To, From, Rounding::ODD>(from, to, n);
        }
    }
}

}  // namespace

// One unit for each type FROM, which it defines before it includes this: they compile at the same time.
extern "C" __attribute__((visibility("default"))) void FUNCTION(int to, int mode, const void* x, void* y,
                                                                     int64_t n) {
    switch (to) {
        case 0: return by_mode<bool, FROM>(mode, x, y, n);
        case 1: return by_mode<int8_t, FROM>(mode, x, y, n);
        case 2: return by_mode<int16_t, FROM>(mode, x, y, n);
        case 3: return by_mode<int32_t, FROM>(mode, x, y, n);
        case 4: return by_mode<int64_t, FROM>(mode, x, y, n);
        case 5: return by_mode<uint8_t, FROM>(mode, x, y, n);
        case 6: return by_mode<uint16_t, FROM>(mode, x, y, n);
        case 7: return by_mode<uint32_t, FROM>(mode, x, y, n);
        case 8: return by_mode<uint64_t, FROM>(mode, x, y, n);
        case 9: return by_mode<float, FROM>(mode, x, y, n);
        case 10: return by_mode<pto::fp16, FROM>(mode, x, y, n);
        case 11: return by_mode<pto::bf16, FROM>(mode, x, y, n);
        case 12: return by_mode<pto::fp8e4m3fn, FROM>(mode, x, y, n);
        case 13: return by_mode<pto::fp8e5m2, FROM>(mode, x, y, n);
        case 14: return by_mode<pto::fp8e8m0, FROM>(mode, x, y, n);
    }
}
