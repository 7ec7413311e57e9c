// Matrix products for generated kernels: in a library of their own (products.cpp), compiled once for a machine, since
// reading their code takes longer than compiling a kernel.
#pragma once

#include <cstdint>

#include "element.h"

namespace pto {

template <typename C, typename T>
using Product = void (*)(C* c, int64_t c_row, const T* a, int64_t a_row, int64_t a_col, const T* b, int64_t b_row,
                         int64_t b_col, int64_t m, int64_t n, int64_t k, bool accumulate);

struct Products {
    Product<float, float> of_float;
    Product<float, bf16> of_bf16;
    Product<float, fp16> of_fp16;
    Product<int32_t, int8_t> of_int8;
};

// Set by the host. Each library has its own.
inline const Products* products = nullptr;

// c (+)= a b. All strides in elements.
inline void matmul(float* c, int64_t c_row, const float* a, int64_t a_row, int64_t a_col, const float* b, int64_t b_row,
                   int64_t b_col, int64_t m, int64_t n, int64_t k, bool accumulate) {
    products->of_float(c, c_row, a, a_row, a_col, b, b_row, b_col, m, n, k, accumulate);
}
inline void matmul(float* c, int64_t c_row, const bf16* a, int64_t a_row, int64_t a_col, const bf16* b, int64_t b_row,
                   int64_t b_col, int64_t m, int64_t n, int64_t k, bool accumulate) {
    products->of_bf16(c, c_row, a, a_row, a_col, b, b_row, b_col, m, n, k, accumulate);
}
inline void matmul(float* c, int64_t c_row, const fp16* a, int64_t a_row, int64_t a_col, const fp16* b, int64_t b_row,
                   int64_t b_col, int64_t m, int64_t n, int64_t k, bool accumulate) {
    products->of_fp16(c, c_row, a, a_row, a_col, b, b_row, b_col, m, n, k, accumulate);
}
inline void matmul(int32_t* c, int64_t c_row, const int8_t* a, int64_t a_row, int64_t a_col, const int8_t* b, int64_t b_row,
                   int64_t b_col, int64_t m, int64_t n, int64_t k, bool accumulate) {
    products->of_int8(c, c_row, a, a_row, a_col, b, b_row, b_col, m, n, k, accumulate);
}

}  // namespace pto
