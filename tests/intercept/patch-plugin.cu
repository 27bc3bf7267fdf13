// A library with kernels and its own runtime (linked statically, nvcc's default), opened by a program without CUDA. Its constructor calls
// CUDA, as libraries do, so its runtime must be replaced before constructors run.
#include <cuda_runtime.h>

#include <cstdio>

__device__ int inPlugin = 1;
__global__ void touch(int* to) { *to = inPlugin; }

struct Early {
  Early() { std::printf("constructor %s\n", cudaGetErrorName(cudaFree(nullptr))); }
} early;

extern "C" int pluginWork() {
  touch<<<1, 1>>>(nullptr);
  return cudaGetLastError();
}
