// Uses the GPU and returns argv[1]: a launcher must pass on a program's exit code.
#include "program.h"

__global__ void copy(const int* from, int* to) { *to = *from; }

int main(int argc, char** argv) {
  const int code = argc > 1 ? std::atoi(argv[1]) : 0;
  DeviceArray<int> from(std::vector<int>{code}), to(1);
  copy<<<1, 1>>>(from, to);
  CHECK(cudaGetLastError());
  const int returned = to.download()[0];
  std::printf("exit-code: %d\n", returned);
  return returned;
}
