// Matrix products for generated kernels. Each is a library of its own (products.cpp), compiled once for a machine, since
// its code takes longer to compile than a kernel.
#pragma once

#include <stdint.h>

#include "element.h"

namespace pto {

// All strides in elements.
template <typename C, typename T>
using Product = void (*)(C* c, int64_t c_row, const T* a, int64_t a_row, int64_t a_col, const T* b, int64_t b_row,
                         int64_t b_col, int64_t m, int64_t n, int64_t k, bool accumulate);

// Set by the host before a kernel runs that needs it. Each library of kernels has its own.
template <typename C, typename T>
inline Product<C, T> product = nullptr;

// c (+)= a b.
template <typename C, typename T>
inline void matmul(C* c, int64_t c_row, const T* a, int64_t a_row, int64_t a_col, const T* b, int64_t b_row,
                   int64_t b_col, int64_t m, int64_t n, int64_t k, bool accumulate) {
    product<C, T>(c, c_row, a, a_row, a_col, b, b_row, b_col, m, n, k, accumulate);
}

}  // namespace pto

// Lets the host set a product.
#define PTO_TAKES_PRODUCT(name, C, T) \
    PTO_EXPORT void pto_take_product_##name(void* function) { \
        pto::product<C, T> = reinterpret_cast<pto::Product<C, T>>(function); \
    }
