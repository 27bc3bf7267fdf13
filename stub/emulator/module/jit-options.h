// The options of cuModuleLoadDataEx, cuLink* and cuLibraryLoadData: of use here are the log buffers.
#pragma once

#include <chrono>
#include <string>

#include "stub/emulator/driver/cuda-api.h"

namespace vgpu::emulator::api {

// Where the caller wants the JIT's messages. Empty if it does not.
class JitLog {
 public:
  JitLog() = default;
  // Refuses with CUDA_ERROR_INVALID_VALUE if an option is unknown.
  JitLog(unsigned count, CUjit_option* options, void** values);
  void error(const std::string& text) { fill(errorBuffer, errorBytes, errorBytesOut, text); }
  void info(const std::string& text) { fill(infoBuffer, infoBytes, infoBytesOut, text); }
  // Writes how long it took since the options were read, as CU_JIT_WALL_TIME asks.
  void done();

 private:
  static void fill(char* buffer, size_t bytes, void** bytesOut, const std::string& text);
  char *errorBuffer = nullptr, *infoBuffer = nullptr;
  size_t errorBytes = 0, infoBytes = 0;
  void **errorBytesOut = nullptr, **infoBytesOut = nullptr;  // the option's value becomes what was written
  void** wallTimeOut = nullptr;
  std::chrono::steady_clock::time_point begun;
};

}  // namespace vgpu::emulator::api
