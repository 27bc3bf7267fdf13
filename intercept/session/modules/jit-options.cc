#include "intercept/session/modules/jit-options.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace vgpu::client {

CUresult JitOptions::read(unsigned count, CUjit_option* given, void** values) {
  if (count != 0 && (given == nullptr || values == nullptr)) return CUDA_ERROR_INVALID_VALUE;
  for (unsigned i = 0; i < count; ++i) {
    const auto number = static_cast<uint32_t>(toWire(values[i]));
    switch (given[i]) {
      case CU_JIT_ERROR_LOG_BUFFER: errors.buffer = static_cast<char*>(values[i]); break;
      case CU_JIT_INFO_LOG_BUFFER: info.buffer = static_cast<char*>(values[i]); break;
      case CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES: errors.bytes = number, errors.used = &values[i]; break;
      case CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES: info.bytes = number, info.used = &values[i]; break;
      case CU_JIT_WALL_TIME: wallTime = &values[i]; break;
      // Names and addresses in the program's memory; without effect since the driver's link-time optimization was removed.
      case CU_JIT_GLOBAL_SYMBOL_NAMES:
      case CU_JIT_GLOBAL_SYMBOL_ADDRESSES:
      case CU_JIT_GLOBAL_SYMBOL_COUNT:
      case CU_JIT_REFERENCED_KERNEL_NAMES:
      case CU_JIT_REFERENCED_KERNEL_COUNT:
      case CU_JIT_REFERENCED_VARIABLE_NAMES:
      case CU_JIT_REFERENCED_VARIABLE_COUNT: break;
      default:
        if (given[i] < 0 || given[i] >= CU_JIT_NUM_OPTIONS) return CUDA_ERROR_INVALID_VALUE;
        options.push_back(given[i]);
        numbers.push_back(number);
    }
  }
  return CUDA_SUCCESS;
}

void JitOptions::tell(const JitReport& report) {
  errors.fill(report.errors);
  info.fill(report.info);
  if (wallTime != nullptr) *wallTime = fromWire<void*>(uint64_t{std::bit_cast<uint32_t>(report.milliseconds)});
}

void JitOptions::Log::fill(const std::string& text) {
  if (buffer == nullptr || bytes == 0) return;
  const size_t kept = std::min(text.size(), bytes - 1);
  std::memcpy(buffer, text.data(), kept);
  buffer[kept] = 0;
  if (used != nullptr) *used = fromWire<void*>(kept);
}

}  // namespace vgpu::client
