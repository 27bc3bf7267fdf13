// Kernels linked into a program have driver handles (cudaGetKernel), for launches, names, attributes and functions; attributes set through
// a handle apply to the kernel that <<<>>> launches, and its variables are the same. Handles stay valid over a pause.
#include <string>

#include "driver-entry.h"

__device__ int total = 3;
__global__ void add(int* to, int summand) {
  extern __shared__ int space[];
  space[0] = summand;
  total += space[0];
  *to = total;
}

namespace {

const void* const host = reinterpret_cast<const void*>(add);

int valueAt(const int* memory) {
  int value = -1;
  CHECK(cudaMemcpy(&value, memory, sizeof value, cudaMemcpyDeviceToHost));
  return value;
}

// Launches it by both of its names and by the driver, each adding `summand`.
bool adds(CUkernel kernel, int* memory, int summand, int before) {
  void* arguments[] = {&memory, &summand};
  CUfunction function = nullptr;
  add<<<1, 1, 4>>>(memory, summand);
  CHECK(cudaLaunchKernel(kernel, dim3(1), dim3(1), arguments, 4, nullptr));
  CALL(cuLaunchKernel, reinterpret_cast<CUfunction>(kernel), 1, 1, 1, 1, 1, 1, 4, nullptr, arguments, nullptr);
  CALL(cuKernelGetFunction, &function, kernel);
  CALL(cuLaunchKernel, function, 1, 1, 1, 1, 1, 1, 4, nullptr, arguments, nullptr);
  int now = -1;
  CHECK(cudaMemcpyFromSymbol(&now, total, sizeof now));
  return EXPECT(now == before + 4 * summand) & EXPECT(valueAt(memory) == now);
}

bool isDescribed(CUkernel kernel) {
  const char* name = nullptr;
  int threads = 0, ofFunction = 0;
  size_t offset = 0, bytes = 0;
  cudaFuncAttributes attributes{};
  CALL(cuKernelGetName, &name, kernel);
  CALL(cuKernelGetAttribute, &threads, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, kernel, 0);
  CALL(cuKernelGetParamInfo, kernel, 1, &offset, &bytes);
  CHECK(cudaFuncGetAttributes(&attributes, host));
  ofFunction = attributes.maxThreadsPerBlock;
  return EXPECT(std::string(name).find("add") != std::string::npos) & EXPECT(threads == ofFunction) & EXPECT(offset == 8) & EXPECT(bytes == 4);
}

// Requests more dynamic shared memory than a kernel may have without opting in.
bool mayHave(unsigned bytes, int* memory, cudaError_t wanted) {
  int summand = 0;
  void* arguments[] = {&memory, &summand};
  cudaError_t result = cudaLaunchKernel(host, dim3(1), dim3(1), arguments, bytes, nullptr);
  cudaGetLastError();
  return EXPECT(result == wanted);
}

// Sets an attribute for a device without making another context, device or kernel current.
bool isSetForDevice(cudaKernel_t kernel, int* memory) {
  constexpr auto sharedBytes = cudaFuncAttributeMaxDynamicSharedMemorySize;
  CUcontext before = nullptr, own = nullptr, now = nullptr;
  CALL(cuCtxGetCurrent, &before);
  CALL(cuCtxCreate, &own, nullptr, 0, 0);
  bool ok = mayHave(60000, memory, cudaErrorInvalidValue);
  ok &= EXPECT_ERROR(cudaKernelSetAttributeForDevice(kernel, sharedBytes, 60000, 0), cudaSuccess);
  ok &= EXPECT_ERROR(cudaKernelSetAttributeForDevice(kernel, sharedBytes, 1024, 99), cudaErrorInvalidDevice);
  ok &= EXPECT_ERROR(cudaKernelSetAttributeForDevice(kernel, sharedBytes, -2, 0), cudaErrorInvalidValue);
  ok &= EXPECT_ERROR(cudaKernelSetAttributeForDevice(nullptr, sharedBytes, 1024, 0), cudaErrorInvalidResourceHandle);
  cudaKernel_t ofHost = reinterpret_cast<cudaKernel_t>(const_cast<void*>(host));
  ok &= EXPECT_ERROR(cudaKernelSetAttributeForDevice(ofHost, sharedBytes, 1024, 0), cudaErrorInvalidResourceHandle);
  CALL(cuCtxGetCurrent, &now);
  ok &= EXPECT(now == own) & mayHave(60000, memory, cudaSuccess);
  CALL(cuCtxDestroy, own);
  CALL(cuCtxGetCurrent, &now);
  return ok & EXPECT(now == before);
}

}  // namespace

int main() {
  int* memory = nullptr;
  cudaKernel_t kernel = nullptr, again = nullptr, none = nullptr;
  CHECK(cudaMalloc(&memory, sizeof *memory));
  CHECK(cudaGetKernel(&kernel, host));
  CHECK(cudaGetKernel(&again, host));
  bool ok = EXPECT(kernel == again) & EXPECT_ERROR(cudaGetKernel(&none, &none), cudaErrorInvalidDeviceFunction);
  ok &= isDescribed(kernel) & adds(kernel, memory, 2, 3);
  CALL(cuKernelSetAttribute, CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, 50, kernel, 0);
  pausePoint();
  CHECK(cudaGetKernel(&again, host));
  ok &= EXPECT(kernel == again) & isDescribed(kernel) & adds(kernel, memory, 5, 11);
  ok &= mayHave(60000, memory, cudaErrorInvalidValue) & isSetForDevice(kernel, memory);
  CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, 60000));
  return ok & mayHave(60000, memory, cudaSuccess) ? 0 : 1;
}
