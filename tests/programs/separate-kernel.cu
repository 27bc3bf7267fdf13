// The kernel of `separate`: it calls a function and counts in a variable that the other file has.
#include "separate.h"

__global__ void apply(int* values, int count) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  values[i] = scaled(values[i]);
  atomicAdd(&applied, 1);
}
