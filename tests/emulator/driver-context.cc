#include "driver-fixture.h"

using namespace vgpu::test;

TEST_CASE("each thread has its own stack of contexts") {
  Device first;
  CUcontext second = nullptr, current = nullptr;
  REQUIRE_CUDA(cuCtxCreate(&second, nullptr, 0, 0));
  CHECK_CUDA(cuCtxGetCurrent(&current));
  CHECK_EQ(current, second);
  CHECK_CUDA(cuCtxPopCurrent(&current));
  CHECK_EQ(current, second);
  CHECK_CUDA(cuCtxGetCurrent(&current));
  CHECK_EQ(current, first.context);
  CHECK_CUDA(cuCtxDestroy(second));
}

TEST_CASE("a destroyed context is reported as destroyed") {
  Device device;
  CUcontext other = nullptr;
  REQUIRE_CUDA(cuCtxCreate(&other, nullptr, 0, 0));
  CUstream stream = nullptr;
  REQUIRE_CUDA(cuStreamCreate(&stream, 0));
  REQUIRE_CUDA(cuCtxDestroy(other));
  CHECK_ANSWER(cuStreamSynchronize(stream), CUDA_ERROR_INVALID_HANDLE);
  CHECK_CUDA(cuCtxSetCurrent(other));
  CHECK_ANSWER(cuCtxSynchronize(), CUDA_ERROR_CONTEXT_IS_DESTROYED);
  CHECK_CUDA(cuCtxSetCurrent(device.context));
}

TEST_CASE("without a context a call is refused") {
  REQUIRE_CUDA(cuInit(0));
  CUdeviceptr address = 0;
  CHECK_ANSWER(cuMemAlloc(&address, 16), CUDA_ERROR_INVALID_CONTEXT);
}

TEST_CASE("a primary context lives while it is retained") {
  REQUIRE_CUDA(cuInit(0));
  unsigned flags = 0;
  int active = 1;
  CUcontext context = nullptr, again = nullptr;
  CHECK_CUDA(cuDevicePrimaryCtxGetState(0, &flags, &active));
  CHECK_EQ(active, 0);
  REQUIRE_CUDA(cuDevicePrimaryCtxRetain(&context, 0));
  REQUIRE_CUDA(cuDevicePrimaryCtxRetain(&again, 0));
  CHECK_EQ(context, again);
  CHECK_CUDA(cuDevicePrimaryCtxRelease(0));
  CHECK_CUDA(cuDevicePrimaryCtxGetState(0, &flags, &active));
  CHECK_EQ(active, 1);
  CHECK_CUDA(cuDevicePrimaryCtxRelease(0));
  CHECK_CUDA(cuDevicePrimaryCtxGetState(0, &flags, &active));
  CHECK_EQ(active, 0);
  CHECK_ANSWER(cuDevicePrimaryCtxRelease(0), CUDA_ERROR_INVALID_CONTEXT);
}

TEST_CASE("memory of a destroyed context is freed") {
  Device device;
  size_t before = 0, after = 0, total = 0;
  REQUIRE_CUDA(cuMemGetInfo(&before, &total));
  CUcontext other = nullptr;
  REQUIRE_CUDA(cuCtxCreate(&other, nullptr, 0, 0));
  CUdeviceptr address = 0;
  REQUIRE_CUDA(cuMemAlloc(&address, 64 << 20));
  REQUIRE_CUDA(cuCtxDestroy(other));
  REQUIRE_CUDA(cuMemGetInfo(&after, &total));
  CHECK_EQ(before, after);
}

TEST_CASE("limits can be set and read, and unknown ones are refused") {
  Device device;
  size_t value = 0;
  CHECK_CUDA(cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 4096));
  CHECK_CUDA(cuCtxGetLimit(&value, CU_LIMIT_STACK_SIZE));
  CHECK_EQ(value, 4096);
  CHECK_ANSWER(cuCtxGetLimit(&value, CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH), CUDA_ERROR_UNSUPPORTED_LIMIT);
  CHECK_ANSWER(cuCtxGetLimit(&value, static_cast<CUlimit>(99)), CUDA_ERROR_INVALID_VALUE);
}
