// Calls that must fail, each with the error that CUDA returns at once; a thread's error state; and a device that still works afterwards.
#include "program.h"

#include <cstring>

__global__ void store(int* value, int stored) { *value = stored; }
__constant__ int fourInts[4];

void aHostFunction() {}

bool badMemoryCallsAreRefused() {
  int onHost = 0;
  int *once = nullptr, *huge = nullptr;
  CHECK(cudaMalloc(&once, sizeof(int)));
  bool ok = EXPECT_ERROR(cudaMemcpy(once, &onHost, sizeof(int), static_cast<cudaMemcpyKind>(99)),
                         cudaErrorInvalidMemcpyDirection);
  CHECK(cudaFree(once));
  ok &= EXPECT_ERROR(cudaFree(once), cudaErrorInvalidValue) & EXPECT_ERROR(cudaFree(&onHost), cudaErrorInvalidValue) &
        EXPECT_ERROR(cudaFree(nullptr), cudaSuccess) & EXPECT_ERROR(cudaFreeHost(nullptr), cudaSuccess) &
        EXPECT_ERROR(cudaFreeHost(&onHost), cudaErrorInvalidValue);
  ok &= EXPECT_ERROR(cudaMalloc(&huge, size_t(1) << 60), cudaErrorMemoryAllocation) & EXPECT(huge == nullptr) &
        EXPECT_ERROR(cudaMalloc(static_cast<int**>(nullptr), 16), cudaErrorInvalidValue) &
        EXPECT_ERROR(cudaMemset(nullptr, 0, 16), cudaErrorInvalidValue) &
        EXPECT_ERROR(cudaMemcpy(nullptr, &onHost, sizeof(int), cudaMemcpyHostToDevice), cudaErrorInvalidValue) &
        EXPECT_ERROR(cudaMemcpy(nullptr, nullptr, 0, cudaMemcpyHostToDevice), cudaSuccess);
  int* device = nullptr;
  return ok & EXPECT_ERROR(cudaHostGetDevicePointer(&device, &onHost, 0), cudaErrorInvalidValue) &
         EXPECT_ERROR(cudaMemcpyToSymbol(fourInts, &onHost, sizeof(int), sizeof(fourInts)), cudaErrorInvalidValue);
}

bool badHandlesAreRefused() {
  int value = 0;
  void* address = nullptr;
  cudaFuncAttributes attributes;
  cudaFunction_t function;
  cudaEvent_t start, end;
  CHECK(cudaEventCreate(&start));
  CHECK(cudaEventCreate(&end));
  float milliseconds = 0;
  const bool ok =
      EXPECT_ERROR(cudaSetDevice(999), cudaErrorInvalidDevice) &
      EXPECT_ERROR(cudaSetDevice(-1), cudaErrorInvalidDevice) &
      EXPECT_ERROR(cudaDeviceGetAttribute(&value, static_cast<cudaDeviceAttr>(99999), 0), cudaErrorInvalidValue) &
      EXPECT_ERROR(cudaGetSymbolAddress(&address, static_cast<const void*>(&value)), cudaErrorInvalidSymbol) &
      EXPECT_ERROR(cudaFuncGetAttributes(&attributes, static_cast<const void*>(nullptr)),
                   cudaErrorInvalidDeviceFunction) &
      EXPECT_ERROR(cudaFuncGetAttributes(&attributes, aHostFunction), cudaErrorInvalidResourceHandle) &
      EXPECT_ERROR(cudaGetFuncBySymbol(&function, reinterpret_cast<const void*>(aHostFunction)), cudaErrorInvalidDeviceFunction) &
      EXPECT_ERROR(cudaEventElapsedTime(&milliseconds, start, end), cudaErrorInvalidResourceHandle) &
      EXPECT_ERROR(cudaEventCreateWithFlags(&end, 0xff00), cudaErrorInvalidValue);
  CHECK(cudaEventDestroy(start));
  // The status, if requested, says that there is no such entry.
  void* entry = &value;
  CHECK(cudaGetDriverEntryPointByVersion("cuNone", &entry, 12000, cudaEnableDefault, nullptr));
  return ok & EXPECT(entry == nullptr);
}

// A launch has no result: its error is the thread's last error.
cudaError_t launchError(dim3 grid, dim3 block, size_t sharedBytes = 0) {
  store<<<grid, block, sharedBytes>>>(nullptr, 1);
  return cudaGetLastError();
}

// CUDA 13.0 with driver 580 returns "invalid value" for every impossible launch shape; the manual's cudaErrorInvalidConfiguration does not
// occur.
bool badLaunchesAreRefused() {
  return EXPECT_ERROR(launchError(1, 2048), cudaErrorInvalidValue) &
         EXPECT_ERROR(launchError(0, 1), cudaErrorInvalidValue) &
         EXPECT_ERROR(launchError(1, 0), cudaErrorInvalidValue) &
         EXPECT_ERROR(launchError(dim3(1, 65536), 1), cudaErrorInvalidValue) &
         EXPECT_ERROR(launchError(1, dim3(1, 1, 65)), cudaErrorInvalidValue) &
         EXPECT_ERROR(launchError(1, dim3(32, 33)), cudaErrorInvalidValue) &
         EXPECT_ERROR(launchError(1, 1, 48 * 1024 + 1), cudaErrorInvalidValue) &
         EXPECT_ERROR(launchError(1, 1, size_t(1) << 20), cudaErrorInvalidValue);
}

// Peeking keeps the error, getting clears it, a success in between does not change it, a later error replaces it.
bool lastErrorIsKept() {
  bool ok = EXPECT_ERROR(cudaGetLastError(), cudaSuccess);
  cudaSetDevice(999);
  ok &= EXPECT_ERROR(cudaPeekAtLastError(), cudaErrorInvalidDevice);
  CHECK(cudaSetDevice(0));
  ok &= EXPECT_ERROR(cudaPeekAtLastError(), cudaErrorInvalidDevice);
  cudaMemset(nullptr, 0, 16);
  return ok & EXPECT_ERROR(cudaGetLastError(), cudaErrorInvalidValue) & EXPECT_ERROR(cudaGetLastError(), cudaSuccess) &
         EXPECT_ERROR(cudaPeekAtLastError(), cudaSuccess);
}

bool errorsHaveNames() {
  struct Row {
    cudaError_t error;
    const char *name, *text;
  };
  const Row rows[] = {
      {cudaSuccess, "cudaSuccess", "no error"},
      {cudaErrorInvalidValue, "cudaErrorInvalidValue", "invalid argument"},
      {cudaErrorMemoryAllocation, "cudaErrorMemoryAllocation", "out of memory"},
      {cudaErrorInvalidConfiguration, "cudaErrorInvalidConfiguration", "invalid configuration argument"},
      {cudaErrorInvalidDevice, "cudaErrorInvalidDevice", "invalid device ordinal"},
      {cudaErrorNotReady, "cudaErrorNotReady", "device not ready"},
      {cudaErrorIllegalAddress, "cudaErrorIllegalAddress", "an illegal memory access was encountered"},
      {static_cast<cudaError_t>(12345), "unrecognized error code", "unrecognized error code"},
  };
  bool ok = true;
  for (const Row& row : rows) {
    ok &= EXPECT(std::strcmp(cudaGetErrorName(row.error), row.name) == 0) &
          EXPECT(std::strcmp(cudaGetErrorString(row.error), row.text) == 0);
  }
  return ok;
}

int main() {
  DeviceArray<int> value(std::vector<int>{1});
  bool ok = badMemoryCallsAreRefused() & badHandlesAreRefused();
  cudaGetLastError();
  ok &= badLaunchesAreRefused() & lastErrorIsKept() & errorsHaveNames();
  cudaMemset(nullptr, 0, 16);
  pausePoint();
  ok &= EXPECT_ERROR(cudaGetLastError(), cudaErrorInvalidValue);
  store<<<1, 1>>>(value, 42);
  CHECK(cudaGetLastError());
  ok &= same("value stored after all errors", value.download(), std::vector<int>{42});
  return verdict("api-errors", ok);
}
