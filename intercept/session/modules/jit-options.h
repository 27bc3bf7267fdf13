// The options that a program gives to the JIT and to the linker: numbers, which the worker's driver is given too, and places where
// the program wants to be told.
#pragma once

#include <cuda.h>
#include <kj/common.h>

#include <string>
#include <vector>

#include "vgpu/api/wire-value.h"

namespace vgpu::client {

// What the JIT or the linker has said.
struct JitReport {
  std::string errors, info;
  float milliseconds = 0;
};

class JitOptions {
 public:
  JitOptions() = default;

  // CUDA_ERROR_INVALID_VALUE for an option that CUDA does not have. The places are the program's: `values` is written to.
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
    void** used = nullptr;  // the option's value becomes how many bytes of the buffer were used
    void fill(const std::string& text);
  };

  std::vector<int32_t> options;
  std::vector<uint32_t> numbers;
  Log errors, info;
  void** wallTime = nullptr;
};

}  // namespace vgpu::client
