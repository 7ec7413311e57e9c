// What kernels may call, beside their arguments.
#pragma once

#include "pto_orchestration_api.h"

// For the search for races: this kernel touches the bytes of `view`, of one of its arguments. Does nothing in other runs.
// A kernel that says so for one of its accesses must say it for all; of others the arguments' tags are believed.
inline void pto_touch(const ChipTensor& view, PtoAccess how) {
    if (pto::api != nullptr) pto::api->touch(view, how);
}
