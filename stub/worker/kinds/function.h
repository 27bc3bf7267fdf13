#pragma once

#include <cstdint>

#include "stub/worker/execution.h"

namespace vgpu::stub {

// Every attribute of the function that the driver knows.
template <typename Results>
void reportAttributes(Execution& on, CUfunction function, Results& results) {
  static_assert(CU_FUNC_ATTRIBUTE_MAX <= 64);
  uint64_t known = 0;
  auto attributes = results.initAttributes(CU_FUNC_ATTRIBUTE_MAX);
  for (unsigned i = 0; i < CU_FUNC_ATTRIBUTE_MAX; ++i) {
    int value = 0;
    if (on.driver.cuFuncGetAttribute(&value, static_cast<CUfunction_attribute>(i), function) != CUDA_SUCCESS) continue;
    attributes.set(i, value);
    known |= uint64_t{1} << i;
  }
  results.setKnown(known);
}

}  // namespace vgpu::stub
