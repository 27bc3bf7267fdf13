// Calls with handles of a destroyed context. CUDA leaves them undefined and its driver may crash; a session returns the error for an
// invalid handle, address or context, and also returns an error to a thread whose current context was destroyed.
#include "driver-entry.h"

const char* const ptx = R"(
.version 7.5
.target sm_75
.address_size 64
.visible .entry nothing() { ret; }
)";

int main() {
  CUcontext context;
  CUdeviceptr memory;
  CUstream stream;
  CUevent event;
  CUmodule module;
  CUfunction function;
  CUarray array;
  CUDA_ARRAY_DESCRIPTOR shape{64, 1, CU_AD_FORMAT_FLOAT, 1};
  void* pinned;
  CHECK(cudaFree(nullptr));
  check(findInDriver<CUresult (*)(CUcontext*, CUctxCreateParams*, unsigned, CUdevice)>("cuCtxCreate")(&context, nullptr, 0, 0), "create");
  CALL(cuMemAlloc, &memory, 1 << 20);
  CALL(cuMemAllocHost, &pinned, 4096);
  CALL(cuStreamCreate, &stream, 0);
  CALL(cuEventCreate, &event, 0);
  CALL(cuEventRecord, event, stream);
  CALL(cuModuleLoadData, &module, ptx);
  CALL(cuModuleGetFunction, &function, module, "nothing");
  CALL(cuArrayCreate, &array, &shape);
  CALL(cuMemsetD32Async, memory, 1, 1 << 18, stream);
  pausePoint();
  CALL(cuCtxDestroy, context);

  bool ok = EXPECT(DRIVER(cuStreamQuery)(stream) == CUDA_ERROR_INVALID_HANDLE) &
            EXPECT(DRIVER(cuStreamSynchronize)(stream) == CUDA_ERROR_INVALID_HANDLE) &
            EXPECT(DRIVER(cuStreamDestroy)(stream) == CUDA_ERROR_INVALID_HANDLE) &
            EXPECT(DRIVER(cuEventQuery)(event) == CUDA_ERROR_INVALID_HANDLE) &
            EXPECT(DRIVER(cuEventDestroy)(event) == CUDA_ERROR_INVALID_HANDLE) &
            EXPECT(DRIVER(cuModuleUnload)(module) == CUDA_ERROR_INVALID_HANDLE) &
            EXPECT(DRIVER(cuModuleGetFunction)(&function, module, "nothing") == CUDA_ERROR_INVALID_HANDLE) &
            EXPECT(DRIVER(cuLaunchKernel)(function, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr) ==
                   CUDA_ERROR_INVALID_HANDLE) &
            EXPECT(DRIVER(cuArrayDestroy)(array) == CUDA_ERROR_INVALID_HANDLE) &
            EXPECT(DRIVER(cuMemFree)(memory) == CUDA_ERROR_INVALID_VALUE) &
            EXPECT(DRIVER(cuMemFreeHost)(pinned) == CUDA_ERROR_INVALID_VALUE) &
            EXPECT(DRIVER(cuCtxSetCurrent)(context) == CUDA_ERROR_INVALID_CONTEXT) &
            EXPECT(DRIVER(cuCtxPushCurrent)(context) == CUDA_ERROR_INVALID_CONTEXT) &
            EXPECT(DRIVER(cuCtxDestroy)(context) == CUDA_ERROR_INVALID_CONTEXT);
  CHECK(cudaDeviceSynchronize());
  return verdict("contexts-ended", ok);
}
