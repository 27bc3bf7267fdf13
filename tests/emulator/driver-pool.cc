#include "driver-fixture.h"

using namespace vgpu::test;

TEST_CASE("stream-ordered memory is freed when the stream reaches the free") {
  Device device;
  CUmodule module = device.load();
  CUstream stream = nullptr;
  REQUIRE_CUDA(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  CUmemoryPool pool = nullptr;
  REQUIRE_CUDA(cuDeviceGetDefaultMemPool(&pool, 0));
  cuuint64_t before = 0, used = 0;
  REQUIRE_CUDA(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &before));
  CUdeviceptr address = 0;
  REQUIRE_CUDA(cuMemAllocAsync(&address, 4096, stream));
  CHECK_CUDA(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &used));
  CHECK_GT(used, before);
  REQUIRE_CUDA(launch(function(module, "square"), stream, 256, address, 256u));
  uint32_t last = 0;
  REQUIRE_CUDA(cuMemcpyDtoHAsync(&last, address + 255 * 4, 4, stream));
  REQUIRE_CUDA(cuMemFreeAsync(address, stream));
  CHECK_ANSWER(cuMemFreeAsync(address, stream), CUDA_ERROR_INVALID_VALUE);
  REQUIRE_CUDA(cuStreamSynchronize(stream));
  CHECK_EQ(last, 255 * 255);
  CHECK_CUDA(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &used));
  CHECK_EQ(used, before);
}

TEST_CASE("on a full device an allocation waits for pending frees") {
  Device device;
  size_t free = 0, total = 0;
  REQUIRE_CUDA(cuMemGetInfo(&free, &total));
  CUdeviceptr all = 0, again = 0;
  REQUIRE_CUDA(cuMemAllocAsync(&all, free / 2 + (64 << 20), nullptr));
  REQUIRE_CUDA(cuMemFreeAsync(all, nullptr));
  CHECK_CUDA(cuMemAllocAsync(&again, free / 2 + (64 << 20), nullptr));
  CHECK_CUDA(cuMemFree(again));
}

TEST_CASE("a program's own pool can be made the device's current pool") {
  Device device;
  CUmemPoolProps properties{};
  properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  CUmemoryPool pool = nullptr, current = nullptr, fallback = nullptr;
  REQUIRE_CUDA(cuMemPoolCreate(&pool, &properties));
  REQUIRE_CUDA(cuDeviceSetMemPool(0, pool));
  CHECK_CUDA(cuDeviceGetMemPool(&current, 0));
  CHECK_EQ(current, pool);
  cuuint64_t threshold = 1 << 20, answered = 0;
  CHECK_CUDA(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold));
  CHECK_CUDA(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &answered));
  CHECK_EQ(answered, threshold);
  CUdeviceptr address = 0;
  CHECK_CUDA(cuMemAllocFromPoolAsync(&address, 100, pool, nullptr));
  CHECK_CUDA(cuMemFreeAsync(address, nullptr));
  CHECK_CUDA(cuCtxSynchronize());
  CHECK_CUDA(cuMemPoolDestroy(pool));
  CHECK_CUDA(cuDeviceGetMemPool(&current, 0));
  CHECK_CUDA(cuDeviceGetDefaultMemPool(&fallback, 0));
  CHECK_EQ(current, fallback);
  CHECK_ANSWER(cuMemPoolDestroy(fallback), CUDA_ERROR_INVALID_VALUE);
}
