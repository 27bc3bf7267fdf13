// The options of cuModuleLoadDataEx, cuLink* and cuLibraryLoadData: of use here are the log buffers.
#pragma once

#include <string>

#include "stub/emulator/driver/cuda-api.h"

namespace vgpu::emulator::api {

// Where the caller wants the JIT's messages. Empty where it does not.
class JitLog {
 public:
  JitLog() = default;
  // Refuses with CUDA_ERROR_INVALID_VALUE where an option is unknown.
  JitLog(unsigned count, CUjit_option* options, void** values);
  void error(const std::string& text) { fill(errorBuffer_, errorBytes_, errorBytesOut_, text); }
  void info(const std::string& text) { fill(infoBuffer_, infoBytes_, infoBytesOut_, text); }

 private:
  static void fill(char* buffer, size_t bytes, void** bytesOut, const std::string& text);
  char *errorBuffer_ = nullptr, *infoBuffer_ = nullptr;
  size_t errorBytes_ = 0, infoBytes_ = 0;
  void **errorBytesOut_ = nullptr, **infoBytesOut_ = nullptr;  // the option's value becomes what was written
};

}  // namespace vgpu::emulator::api
