// Shared by the driver tests: a device with a context, checks that name the error, small launches.
#pragma once

#include <cuda.h>
#include <doctest/doctest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "driver-kernels.h"

namespace vgpu::test {

inline std::string nameOf(CUresult code) {
  const char* name = nullptr;
  cuGetErrorName(code, &name);
  return name ? name : "code " + std::to_string(code);
}

// Compares names of errors, so that a failed check prints them.
#define CHECK_CUDA(expression) CHECK_EQ(vgpu::test::nameOf(expression), "CUDA_SUCCESS")
#define REQUIRE_CUDA(expression) REQUIRE_EQ(vgpu::test::nameOf(expression), "CUDA_SUCCESS")
#define CHECK_ANSWER(expression, code) CHECK_EQ(vgpu::test::nameOf(expression), #code)

// Each test case has its own context, so that a sticky error ends with the case.
class Device {
 public:
  explicit Device(int ordinal = 0) {
    REQUIRE_CUDA(cuInit(0));
    REQUIRE_CUDA(cuDeviceGet(&device, ordinal));
    REQUIRE_CUDA(cuCtxCreate(&context, nullptr, 0, device));
  }
  ~Device() { cuCtxDestroy(context); }
  Device(const Device&) = delete;

  CUdevice device = 0;
  CUcontext context = nullptr;

  CUmodule load(const char* ptx = kernels) {
    CUmodule module = nullptr;
    REQUIRE_CUDA(cuModuleLoadData(&module, ptx));
    return module;
  }
  CUdeviceptr allocate(size_t bytes) {
    CUdeviceptr address = 0;
    REQUIRE_CUDA(cuMemAlloc(&address, bytes));
    REQUIRE_CUDA(cuMemsetD8(address, 0, bytes));
    return address;
  }
  uint32_t read(CUdeviceptr address) {
    uint32_t value = 0;
    REQUIRE_CUDA(cuMemcpyDtoH(&value, address, sizeof value));
    return value;
  }
};

inline CUfunction function(CUmodule module, const char* name) {
  CUfunction found = nullptr;
  REQUIRE_CUDA(cuModuleGetFunction(&found, module, name));
  return found;
}

// Launches one block of `threads` with up to two arguments.
template <class... Arguments>
CUresult launch(CUfunction kernel, CUstream stream, unsigned threads, Arguments... arguments) {
  void* pointers[] = {&arguments..., nullptr};
  return cuLaunchKernel(kernel, 1, 1, 1, threads, 1, 1, 0, stream, pointers, nullptr);
}

}  // namespace vgpu::test
