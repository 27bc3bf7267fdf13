// The attributes of a launch, or of a kernel node, converted from a frame to the driver's form. For one call of the driver.
#pragma once

#include <span>
#include <vector>

#include "cuda-described.h"
#include "stub/worker/unpacked.h"

namespace vgpu::stub {

class LaunchAttributes {
 public:
  LaunchAttributes(Execution& on, kj::ArrayPtr<const kj::byte> data, bool isCooperative = false);

  // CUDA_ERROR_INVALID_VALUE if an attribute is not a plain value: it could name an object or memory, and the program could put any number
  // there.
  CUresult check() const;
  std::span<CUlaunchAttribute> get() { return list; }
  CUlaunchAttribute* begin() { return list.data(); }
  unsigned count() const { return static_cast<unsigned>(list.size()); }

 private:
  std::vector<CUlaunchAttribute> list;
};

}  // namespace vgpu::stub
