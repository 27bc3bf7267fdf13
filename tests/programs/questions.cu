// Asks for nothing but what only the worker knows, for argv[1] seconds (1 unless said): it is inside a call that waits for the
// worker at whatever moment it is stopped, moved or killed. Says when it has begun.
#include "program.h"

#include <chrono>

__global__ void nothing() {}

int main(int argc, char** argv) {
  const double seconds = argc > 1 ? std::atof(argv[1]) : 1;
  cudaEvent_t first, last;
  CHECK(cudaEventCreate(&first));
  CHECK(cudaEventCreate(&last));
  CHECK(cudaEventRecord(first));
  nothing<<<1, 1>>>();
  CHECK(cudaEventRecord(last));
  CHECK(cudaEventSynchronize(last));
  float expected = 0, found = 0;
  CHECK(cudaEventElapsedTime(&expected, first, last));
  std::printf("questions: running\n");
  std::fflush(stdout);

  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  bool ok = true;
  do {
    CHECK(cudaEventElapsedTime(&found, first, last));
    ok = EXPECT(found == expected);
  } while (ok && std::chrono::steady_clock::now() < end);
  return verdict("questions", ok);
}
