// As much dynamic shared memory for a kernel as it was allowed at an earlier moment, while something is asked or made again that needs it:
// a program may allow it less afterwards, and the driver looks at what it is allowed now.
#pragma once

#include <algorithm>
#include <cstdint>

#include "stub/driver/driver.h"

namespace vgpu::stub {

class AllowedShared {
 public:
  // In the function's context. What it cannot have it does not get, and what needs it is refused.
  AllowedShared(const Driver& driver, CUfunction function, uint64_t bytes) : driver(driver), function(function) {
    const auto needed = static_cast<int>(std::min<uint64_t>(bytes, INT32_MAX));
    isRaised = driver.cuFuncGetAttribute(&before, attribute, function) == CUDA_SUCCESS && needed > before &&
               driver.cuFuncSetAttribute(function, attribute, needed) == CUDA_SUCCESS;
  }
  ~AllowedShared() {
    if (isRaised) driver.cuFuncSetAttribute(function, attribute, before);
  }
  AllowedShared(const AllowedShared&) = delete;
  AllowedShared& operator=(const AllowedShared&) = delete;

 private:
  static constexpr auto attribute = CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;

  const Driver& driver;
  const CUfunction function;
  int before = 0;
  bool isRaised;
};

}  // namespace vgpu::stub
