// libcudart's rows linked into a program, so that sanitizers check them, on the recording driver: many threads launch and look up variables
// while code is loaded and unloaded.
#include <cuda_runtime_api.h>
#include <doctest/doctest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "intercept/runtime/registry.h"

extern "C" {
void** __cudaRegisterFatBinary(void* wrapper);
void __cudaUnregisterFatBinary(void** handle);
void __cudaRegisterFunction(void** handle, const char* host, char*, const char* name, int, void*, void*, void*, void*,
                            int*);
void __cudaRegisterVar(void** handle, char* host, char*, const char* name, int, size_t size, int, int);
}

namespace {

constexpr int kernels = 300;
const unsigned image[] = {0xba55ed50, 0x00100001, 0, 0};

// Code as nvcc registers it, with its own host addresses.
class Code {
 public:
  explicit Code(int kernels) : hosts_(kernels) {
    handle_ = __cudaRegisterFatBinary(&wrapper_);
    for (char& host : hosts_)
      __cudaRegisterFunction(handle_, &host, nullptr, "kernel", -1, nullptr, nullptr, nullptr, nullptr, nullptr);
    __cudaRegisterVar(handle_, &variable_, nullptr, "variable", 0, 4, 0, 0);
  }
  ~Code() { __cudaUnregisterFatBinary(handle_); }
  Code(const Code&) = delete;
  Code& operator=(const Code&) = delete;

  cudaError_t launch(size_t kernel) const {
    return cudaLaunchKernel(&hosts_[kernel % hosts_.size()], dim3(1), dim3(32), nullptr, 0, nullptr);
  }
  cudaError_t find(void** address) const { return cudaGetSymbolAddress(address, &variable_); }

 private:
  vgpu::runtime::FatbinaryWrapper wrapper_ = {vgpu::image::wrapperMagic, 1, image, nullptr};
  std::vector<char> hosts_;
  char variable_ = 0;
  void** handle_;
};

}  // namespace

TEST_CASE("threads launch on two devices while code is registered and unregistered") {
  Code code(kernels);
  std::atomic<int> failures = 0;
  std::vector<std::thread> threads;
  for (int number = 0; number < 4; ++number)
    threads.emplace_back([&, number] {
      void *first = nullptr, *address = nullptr;
      failures += cudaSetDevice(number % 2) != cudaSuccess;
      failures += code.find(&first) != cudaSuccess;
      for (int round = 0; round < 3000; ++round) {
        failures += code.launch(round * 7 + number) != cudaSuccess;
        failures += code.find(&address) != cudaSuccess || address != first;
      }
    });
  threads.emplace_back([&] {
    for (int round = 0; round < 200; ++round) {
      Code other(50);
      failures += other.launch(round) != cudaSuccess;
    }
  });
  for (std::thread& thread : threads) thread.join();
  CHECK(failures == 0);
}

TEST_CASE("an address that nobody registered is no kernel") {
  char before;
  CHECK(cudaLaunchKernel(&before, dim3(1), dim3(1), nullptr, 0, nullptr) == cudaErrorInvalidResourceHandle);
  CHECK(cudaGetLastError() == cudaErrorInvalidResourceHandle);
  {
    Code code(1);
    CHECK(code.launch(0) == cudaSuccess);
  }
  void* address;
  CHECK(cudaGetSymbolAddress(&address, &before) == cudaErrorInvalidSymbol);
}

TEST_CASE("a wrapper without a fatbinary is an invalid image, reported at the launch") {
  vgpu::runtime::FatbinaryWrapper wrapper = {0x12345678, 1, image, nullptr};
  char host;
  void** handle = __cudaRegisterFatBinary(&wrapper);
  __cudaRegisterFunction(handle, &host, nullptr, "kernel", -1, nullptr, nullptr, nullptr, nullptr, nullptr);
  CHECK(cudaLaunchKernel(&host, dim3(1), dim3(1), nullptr, 0, nullptr) == cudaErrorInvalidKernelImage);
  __cudaUnregisterFatBinary(handle);
}

TEST_CASE("an unloaded library leaves no record of its kernels, and another library keeps its own") {
  using namespace vgpu::runtime;
  char places[4];
  auto library = [&](int which) { return reinterpret_cast<CUlibrary>(&places[which]); };
  auto kernel = [&](int which) { return reinterpret_cast<CUkernel>(&places[2 + which]); };
  for (int which : {0, 1}) registerKernel(kernel(which), library(which));
  const Function* other = findFunction(kernel(1));
  CHECK(findFunction(kernel(0)) != nullptr);
  CHECK(cudaLibraryUnload(library(0)) == cudaSuccess);
  CHECK(findFunction(kernel(0)) == nullptr);
  CHECK(findFunction(kernel(1)) == other);
  registerKernel(kernel(0), library(1));  // the driver may reuse a handle
  CHECK(findFunction(kernel(0))->library == library(1));
  CHECK(cudaLibraryUnload(library(1)) == cudaSuccess);
  CHECK(findFunction(kernel(1)) == nullptr);
}
