// Kernels' output appears in the program's own output.
#include "program.h"

__global__ void greet(int from) { printf("thread %d of launch %d\n", threadIdx.x, from); }

int main() {
  greet<<<1, 2>>>(1);
  CHECK(cudaDeviceSynchronize());
  pausePoint();
  greet<<<1, 2>>>(2);
  CHECK(cudaDeviceSynchronize());
  return verdict("print", true);
}
