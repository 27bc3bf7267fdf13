// A child made by fork() cannot use CUDA if its parent has used it: runtime and driver, cuInit() included, return errors. The child ends
// with exit(), whose destructors call CUDA, without effect on the parent's GPU.
#include <sys/wait.h>

#include <thread>

#include "driver-entry.h"

__global__ void addOne(int* value) { ++*value; }

namespace {

constexpr CUresult none = CUDA_ERROR_NOT_INITIALIZED;

bool isRefused(int* memory) {
  int count = 0;
  CUcontext context = nullptr;
  return EXPECT_ERROR(cudaGetDeviceCount(&count), cudaErrorInitializationError) &
         EXPECT_ERROR(cudaMemset(memory, 0, sizeof *memory), cudaErrorInitializationError) &
         EXPECT_ERROR(cudaGetLastError(), cudaErrorInitializationError) & EXPECT(DRIVER(cuInit)(0) == none) &
         EXPECT(DRIVER(cuDeviceGetCount)(&count) == none) & EXPECT(DRIVER(cuCtxGetCurrent)(&context) == none);
}

// Static, so that the child runs its destructor too.
struct AtExit {
  int* memory = nullptr;
  ~AtExit() { cudaFree(memory); }
} atExit;

}  // namespace

int main() {
  DeviceArray<int> value(std::vector<int>{41});
  CHECK(cudaMalloc(&atExit.memory, sizeof(int)));
  CALL(cuInit, 0);
  addOne<<<1, 1>>>(value);
  const pid_t child = fork();
  if (child == 0) {
    bool ok = isRefused(value);
    std::thread([&] { ok &= isRefused(value); }).join();
    std::exit(ok ? 0 : 1);
  }
  int status = 1;
  bool ok = EXPECT(waitpid(child, &status, 0) == child) & EXPECT(status == 0);
  pausePoint();
  addOne<<<1, 1>>>(value);
  return verdict("forked", ok & same("value", value.download(), {43}));
}
