// The options that a program passes to the JIT and to the linker: numbers, which are passed on to the worker's driver, and the program's
// outputs.
#pragma once

#include <cuda.h>
#include <kj/common.h>

#include <string>
#include <vector>

#include "vgpu/api/wire-value.h"

namespace vgpu::client {

// The logs of the JIT or the linker.
struct JitReport {
  std::string errors, info;
  float milliseconds = 0;
};

class JitOptions {
 public:
  JitOptions() = default;

  // CUDA_ERROR_INVALID_VALUE for an option that CUDA does not have. Keeps the addresses of outputs; tell() writes to `values`.
  CUresult read(unsigned count, CUjit_option* options, void** values);
  void tell(const JitReport& report);
  void forgetPlaces() { errors = info = {}, wallTime = nullptr; }

  // Sets the fields `options` and `values` of a frame that has room for words().
  template <typename Frame>
  void put(Frame& frame) const {
    frame->setOptions(kj::arrayPtr(options.data(), options.size()));
    frame->setValues(kj::arrayPtr(numbers.data(), numbers.size()));
  }
  uint64_t words() const { return options.size() + 1; }

 private:
  struct Log {
    char* buffer = nullptr;
    size_t bytes = 0;
    void** used = nullptr;  // receives how many bytes of the buffer were used
    void fill(const std::string& text);
  };

  std::vector<int32_t> options;
  std::vector<uint32_t> numbers;
  Log errors, info;
  void** wallTime = nullptr;
};

}  // namespace vgpu::client
