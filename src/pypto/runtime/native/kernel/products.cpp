// The matrix products that generated kernels call (see products.h).
#include "matmul.h"

#include "../pto_orchestration_api.h"

// As Products in products.h, in this order. (That header names the same functions, so both can't be included.)
PTO_EXPORT const void* pto_products() {
    using namespace pto;
    static const void* const table[] = {
        reinterpret_cast<const void*>(&matmul<float, float, float>),
        reinterpret_cast<const void*>(&matmul<bf16, bf16, float>),
        reinterpret_cast<const void*>(&matmul<fp16, fp16, float>),
        reinterpret_cast<const void*>(&matmul<int8_t, int8_t, int32_t>),
    };
    return table;
}
