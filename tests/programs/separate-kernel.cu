// The kernel of `separate`: it calls a function and uses a variable of the other file.
#include "separate.h"

__global__ void apply(int* values, int count) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  values[i] = scaled(values[i]);
  atomicAdd(&applied, 1);
}
