// State that the runtime keeps for launches with <<<>>>: configurations whose argument evaluation threw an exception, and a kernel's
// maximum dynamic shared memory, which the driver API changes too.
#include <stdexcept>

#include "driver-entry.h"

namespace {

constexpr int sharedBytes = 100'000, words = sharedBytes / sizeof(int);

__global__ void store(int* to, int value) { *to = value; }
__global__ void storeThroughShared(int* to, int value) {
  extern __shared__ int shared[];
  shared[words - 1] = value;
  *to = shared[words - 1];
}

int refused() { throw std::invalid_argument("of another type"); }

// Code from nvcc passes the configuration to the runtime before it evaluates the arguments, and takes it back afterwards.
bool launchesAfterExceptions() {
  DeviceArray<int> word(std::vector<int>{0});
  int ended = 0;
  for (int i = 0; i < 100; ++i) try {
      store<<<1, 1>>>(word, refused());
    } catch (const std::invalid_argument&) {
      ++ended;
    }
  store<<<1, 1>>>(word, 5);
  CHECK(cudaGetLastError());
  return EXPECT(ended == 100) & same("stored", word.download(), {5});
}

bool launchesAsDriverAllows() {
  DeviceArray<int> word(std::vector<int>{0});
  cudaFunction_t function;
  CHECK(cudaGetFuncBySymbol(&function, reinterpret_cast<const void*>(storeThroughShared)));
  storeThroughShared<<<1, 1, sharedBytes>>>(word, 6);
  bool ok = EXPECT(cudaGetLastError() == cudaErrorInvalidValue);
  CALL(cuFuncSetAttribute, function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, sharedBytes);
  storeThroughShared<<<1, 1, sharedBytes>>>(word, 7);
  CHECK(cudaGetLastError());
  return ok & same("stored through shared memory", word.download(), {7});
}

}  // namespace

int main() {
  bool ok = launchesAfterExceptions() & launchesAsDriverAllows();
  pausePoint();
  ok &= launchesAfterExceptions();
  return verdict("launch-state", ok);
}
