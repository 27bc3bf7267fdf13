#include "stub/emulator/module/jit-options.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "stub/emulator/driver/casts-unsafe.h"

namespace vgpu::emulator::api {

JitLog::JitLog(unsigned count, CUjit_option* options, void** values) : begun(std::chrono::steady_clock::now()) {
  require(count == 0 || (options != nullptr && values != nullptr));
  for (unsigned i = 0; i < count; ++i) {
    switch (options[i]) {
      case CU_JIT_ERROR_LOG_BUFFER:
        errorBuffer = static_cast<char*>(values[i]);
        break;
      case CU_JIT_INFO_LOG_BUFFER:
        infoBuffer = static_cast<char*>(values[i]);
        break;
      case CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES:
        errorBytes = static_cast<unsigned>(asNumber(values[i]));
        errorBytesOut = &values[i];
        break;
      case CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES:
        infoBytes = static_cast<unsigned>(asNumber(values[i]));
        infoBytesOut = &values[i];
        break;
      case CU_JIT_WALL_TIME:
        wallTimeOut = &values[i];
        break;
      default:
        // All other options tune code generation, which the emulator does not do.
        require(options[i] >= 0 && options[i] < CU_JIT_NUM_OPTIONS);
    }
  }
}

void JitLog::done() {
  std::chrono::duration<float, std::milli> taken = std::chrono::steady_clock::now() - begun;
  if (wallTimeOut) *wallTimeOut = asHandle<void*>(uint64_t{std::bit_cast<uint32_t>(taken.count())});
}

void JitLog::fill(char* buffer, size_t bytes, void** bytesOut, const std::string& text) {
  if (buffer == nullptr || bytes == 0) return;
  size_t length = std::min(text.size(), bytes - 1);
  std::memcpy(buffer, text.data(), length);
  buffer[length] = '\0';
  if (bytesOut) *bytesOut = asHandle<void*>(length);
}

}  // namespace vgpu::emulator::api
