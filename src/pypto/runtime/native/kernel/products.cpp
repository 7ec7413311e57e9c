// The matrix product of PTO_ELEMENT, summed in PTO_SUM, that generated kernels call (see products.h, whose names are the
// same, so that both headers can't be included).
#include "kernel/matmul.h"
#include "pto_orchestration_api.h"

PTO_EXPORT void* pto_product() {
    using namespace pto;
    return reinterpret_cast<void*>(&matmul<PTO_ELEMENT, PTO_ELEMENT, PTO_SUM>);
}
