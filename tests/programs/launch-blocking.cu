// CUDA_LAUNCH_BLOCKING=1: a launch returns when its kernel has ended.
#include "program.h"

namespace {

__global__ void count(volatile int* counter, int rounds) {
  for (int i = 0; i < rounds; ++i) *counter = *counter + 1;
}

}  // namespace

int main(int, char** arguments) {
  // CUDA reads the variable before main(), so the program restarts itself.
  if (std::getenv("CUDA_LAUNCH_BLOCKING") == nullptr) {
    setenv("CUDA_LAUNCH_BLOCKING", "1", 1);
    execv("/proc/self/exe", arguments);
    return 1;
  }
  cudaStream_t stream;
  int* counter;  // in pinned memory
  CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  CHECK(cudaMallocHost(&counter, sizeof *counter));
  *counter = 0;
  bool ok = true;
  for (int i = 1; i <= 20; ++i) {
    count<<<1, 1, 0, i % 2 == 0 ? stream : nullptr>>>(counter, 100);
    ok &= EXPECT(*static_cast<volatile int*>(counter) == 100 * i);
    if (i == 10) pausePoint();
  }
  return verdict("launch-blocking", ok);
}
