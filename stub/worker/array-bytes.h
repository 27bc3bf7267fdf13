// The bytes of an array in the order that a program sees: unit after unit, row after row, slice after slice. The layout in the array itself
// is private to the device. These functions only enqueue the copies, in the GPU's DeviceProgress::ownStream(). Throw kj::Exception.
#pragma once

#include "stub/worker/execution.h"

namespace vgpu::stub {

void readArray(Execution& on, CUarray array, const ArrayInfo& info, uint64_t offset, std::byte* out, size_t bytes);
// `in`: nullptr writes zeros.
void writeArray(Execution& on, CUarray array, const ArrayInfo& info, uint64_t offset, const std::byte* in, size_t bytes);

}  // namespace vgpu::stub
