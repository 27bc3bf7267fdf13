// Launches that are refused, kernels that fault, and how long each error persists.
#include "conformance.h"

__global__ void store(int* value) { *value = 1; }
__global__ void trap() { __trap(); }
__global__ void big(int* value) {
  __shared__ int space[1024];
  space[threadIdx.x % 1024] = *value;
  __syncthreads();
  *value = space[0];
}

SECTION(refused) {
  int* value = nullptr;
  CHECK(cudaMalloc(&value, 4));
  void* arguments[] = {&value};
  auto* kernel = reinterpret_cast<const void*>(store);
  SAY(cudaLaunchKernel(kernel, dim3(0), dim3(1), arguments, 0, nullptr));
  SAY(cudaPeekAtLastError());
  SAY(cudaGetLastError());
  SAY(cudaGetLastError());
  SAY(cudaLaunchKernel(kernel, dim3(1), dim3(0), arguments, 0, nullptr));
  SAY(cudaLaunchKernel(kernel, dim3(1), dim3(1025), arguments, 0, nullptr));
  SAY(cudaLaunchKernel(kernel, dim3(1), dim3(1, 1, 65), arguments, 0, nullptr));
  SAY(cudaLaunchKernel(kernel, dim3(1, 65536), dim3(1), arguments, 0, nullptr));
  SAY(cudaLaunchKernel(kernel, dim3(1), dim3(1), arguments, 1 << 20, nullptr));
  SAY(cudaLaunchKernel(kernel, dim3(1), dim3(1), arguments, 50000, nullptr));
  SAY(cudaLaunchKernel(nullptr, dim3(1), dim3(1), arguments, 0, nullptr));
  SAY(cudaLaunchKernel(reinterpret_cast<const void*>(&refused), dim3(1), dim3(1), arguments, 0, nullptr));
  SAY(cudaLaunchCooperativeKernel(kernel, dim3(1 << 20), dim3(1024), arguments, 0, nullptr));
  SAY(cudaLaunchCooperativeKernel(kernel, dim3(1), dim3(1), arguments, 0, nullptr));
  SAY(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, 100000));
  SAY(cudaLaunchKernel(kernel, dim3(1), dim3(1), arguments, 50000, nullptr));
  SAY(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, 1 << 20));
  SAY(cudaFuncSetAttribute(kernel, static_cast<cudaFuncAttribute>(77), 1));
  SAY(cudaFuncSetAttribute(nullptr, cudaFuncAttributeMaxDynamicSharedMemorySize, 1));
  SAY(cudaFuncSetCacheConfig(kernel, cudaFuncCachePreferL1));
  SAY(cudaFuncSetCacheConfig(kernel, static_cast<cudaFuncCache>(9)));
  cudaFuncAttributes attributes{};
  SAY(cudaFuncGetAttributes(&attributes, kernel));
  VALUE(attributes.maxDynamicSharedSizeBytes);
  VALUE(attributes.sharedSizeBytes);
  SAY(cudaFuncGetAttributes(&attributes, big));
  VALUE(attributes.sharedSizeBytes);
  SAY(cudaFuncGetAttributes(&attributes, nullptr));
  const char* name = nullptr;
  SAY(cudaFuncGetName(&name, kernel));
  size_t offset = 77, size = 77;
  SAY(cudaFuncGetParamInfo(kernel, 0, &offset, &size));
  VALUE(offset);
  VALUE(size);
  SAY(cudaFuncGetParamInfo(kernel, 1, &offset, &size));
  int blocks = 0;
  SAY(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, 0, 0));
  SAY(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, 2048, 0));
  SAY(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, 64, 1 << 20));
  SAY(cudaOccupancyMaxActiveBlocksPerMultiprocessor(nullptr, kernel, 64, 0));
  SAY(cudaDeviceSynchronize());
}

// The result of later calls, and which call recovers.
static void afterFault() {
  void* memory = nullptr;
  int device = 9;
  SAY(cudaDeviceSynchronize());
  SAY(cudaGetLastError());
  SAY(cudaGetLastError());
  SAY(cudaMalloc(&memory, 16));
  SAY(cudaStreamQuery(nullptr));
  SAY(cudaGetDevice(&device));
  SAY(cudaSetDevice(0));
  SAY(cudaFree(nullptr));
  store<<<1, 1>>>(nullptr);
  SAY(cudaGetLastError());
  CUcontext context = nullptr;
  SAYCU(cuCtxGetCurrent, &context);
}
SECTION(invalidAddress) {
  CHECK(cudaFree(nullptr));
  store<<<1, 1>>>(reinterpret_cast<int*>(16));
  SAY(cudaGetLastError());
  afterFault();
}
SECTION(misaligned) {
  int* value = nullptr;
  CHECK(cudaMalloc(&value, 16));
  store<<<1, 1>>>(reinterpret_cast<int*>(reinterpret_cast<char*>(value) + 1));
  SAY(cudaGetLastError());
  afterFault();
}
SECTION(trapped) {
  CHECK(cudaFree(nullptr));
  trap<<<1, 1>>>();
  SAY(cudaGetLastError());
  afterFault();
}
