// Threads that repeatedly load a module, use its variables and unload it: one thread's variables get addresses that another's have just
// left.
#include <atomic>
#include <thread>

#include "driver-entry.h"

namespace {

constexpr unsigned threads = 40, rounds = 30;
constexpr const char* image = R"(
.version 7.0
.target sm_70
.address_size 64
.visible .global .align 4 .u32 plain;
.visible .global .attribute(.managed) .align 4 .u32 managed;
)";

std::atomic<bool> ok{true};

void work(unsigned thread) {
  CHECK(cudaSetDevice(0));
  const auto load = find<decltype(&cuModuleLoadData)>("cuModuleLoadData");
  const auto unload = find<decltype(&cuModuleUnload)>("cuModuleUnload");
  const auto getGlobal = find<decltype(&cuModuleGetGlobal)>("cuModuleGetGlobal");
  for (unsigned round = 0; round < rounds; ++round) {
    CUmodule module;
    size_t bytes;
    check(load(&module, image), "cuModuleLoadData");
    for (const char* name : {"plain", "managed"}) {
      CUdeviceptr variable;
      check(getGlobal(&variable, &bytes, module, name), "cuModuleGetGlobal");
      const unsigned number = thread * rounds + round;
      unsigned found = 0;
      CHECK(cudaMemcpy(reinterpret_cast<void*>(variable), &number, sizeof number, cudaMemcpyHostToDevice));
      CHECK(cudaMemcpy(&found, reinterpret_cast<void*>(variable), sizeof found, cudaMemcpyDeviceToHost));
      if (found != number) ok = false;
    }
    check(unload(module), "cuModuleUnload");
  }
}

}  // namespace

int main() {
  CHECK(cudaFree(nullptr));
  std::vector<std::thread> all;
  for (unsigned thread = 0; thread < threads; ++thread) all.emplace_back(work, thread);
  for (auto& thread : all) thread.join();
  return verdict("variables-reused", EXPECT(ok));
}
