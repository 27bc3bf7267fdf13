// The options of cuModuleLoadDataEx, cuLink* and cuLibraryLoadData: only the log buffers and the wall time have an effect.
#pragma once

#include <chrono>
#include <string>

#include "stub/emulator/driver/cuda-api.h"

namespace vgpu::emulator::api {

// The buffers for the JIT's messages. Empty if the caller gave none.
class JitLog {
 public:
  JitLog() = default;
  // Refuses with CUDA_ERROR_INVALID_VALUE if an option is unknown.
  JitLog(unsigned count, CUjit_option* options, void** values);
  void error(const std::string& text) { fill(errorBuffer, errorBytes, errorBytesOut, text); }
  void info(const std::string& text) { fill(infoBuffer, infoBytes, infoBytesOut, text); }
  // Stores the time since the options were read, if CU_JIT_WALL_TIME asks for it.
  void done();

 private:
  static void fill(char* buffer, size_t bytes, void** bytesOut, const std::string& text);
  char *errorBuffer = nullptr, *infoBuffer = nullptr;
  size_t errorBytes = 0, infoBytes = 0;
  void **errorBytesOut = nullptr, **infoBytesOut = nullptr;  // receive the number of bytes written
  void** wallTimeOut = nullptr;
  std::chrono::steady_clock::time_point begun;
};

}  // namespace vgpu::emulator::api
