// Raises a kernel's limit of dynamic shared memory (CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES) to what it was at an earlier moment,
// while a query or recipe that needs it is executed: the program may have lowered it since, and the driver checks the present value.
#pragma once

#include <algorithm>
#include <cstdint>

#include "stub/driver/driver.h"

namespace vgpu::stub {

class AllowedShared {
 public:
  // In the function's context. If the driver does not raise the limit, it stays, and the driver refuses what needs more.
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
