#include <cstring>

#include "driver-fixture.h"

using namespace vgpu::test;

namespace {

CUresult launchShape(CUfunction kernel, std::initializer_list<unsigned> shape, unsigned sharedBytes = 0) {
  const unsigned* s = shape.begin();
  return cuLaunchKernel(kernel, s[0], s[1], s[2], s[3], s[4], s[5], sharedBytes, nullptr, nullptr, nullptr);
}

}  // namespace

TEST_CASE("a launch that exceeds the device's limits is refused at once") {
  Device device;
  CUfunction empty = function(device.load(), "empty");
  CHECK_CUDA(launchShape(empty, {1, 1, 1, 1024, 1, 1}));
  CHECK_ANSWER(launchShape(empty, {1, 1, 1, 1025, 1, 1}), CUDA_ERROR_INVALID_VALUE);
  CHECK_ANSWER(launchShape(empty, {1, 1, 1, 32, 32, 2}), CUDA_ERROR_INVALID_VALUE);
  CHECK_ANSWER(launchShape(empty, {1, 1, 1, 1, 1, 65}), CUDA_ERROR_INVALID_VALUE);
  CHECK_ANSWER(launchShape(empty, {0, 1, 1, 1, 1, 1}), CUDA_ERROR_INVALID_VALUE);
  CHECK_ANSWER(launchShape(empty, {1, 65536, 1, 1, 1, 1}), CUDA_ERROR_INVALID_VALUE);
  CHECK_ANSWER(launchShape(empty, {1, 1, 1, 1, 1, 1}, 49153), CUDA_ERROR_INVALID_VALUE);
  CHECK_CUDA(launchShape(empty, {1, 1, 1, 1, 1, 1}, 49152));
  CHECK_CUDA(cuCtxSynchronize());
}

TEST_CASE("more shared memory is available after opting in") {
  Device device;
  CUfunction empty = function(device.load(), "empty");
  int most = 0;
  REQUIRE_CUDA(cuDeviceGetAttribute(&most, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 0));
  CHECK_ANSWER(cuFuncSetAttribute(empty, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, most + 1),
               CUDA_ERROR_INVALID_VALUE);
  CHECK_CUDA(cuFuncSetAttribute(empty, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, most));
  CHECK_CUDA(launchShape(empty, {1, 1, 1, 1, 1, 1}, static_cast<unsigned>(most)));
  CHECK_CUDA(cuCtxSynchronize());
}

TEST_CASE("parameters are passed one by one or as a block") {
  Device device;
  CUfunction store = function(device.load(), "store");
  CUdeviceptr word = device.allocate(4);
  struct {
    CUdeviceptr p;
    uint32_t v;
  } block{word, 99};
  size_t bytes = 12, offset = 0, length = 0;
  void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &block, CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes, CU_LAUNCH_PARAM_END};
  CHECK_CUDA(cuLaunchKernel(store, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, extra));
  CHECK_EQ(device.read(word), 99);
  void* both[] = {&block.p, &block.v};
  CHECK_ANSWER(cuLaunchKernel(store, 1, 1, 1, 1, 1, 1, 0, nullptr, both, extra), CUDA_ERROR_INVALID_VALUE);
  CHECK_ANSWER(cuLaunchKernel(store, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr), CUDA_ERROR_INVALID_VALUE);
  CHECK_CUDA(cuFuncGetParamInfo(store, 1, &offset, &length));
  CHECK_EQ(offset, 8);
  CHECK_EQ(length, 4);
  CHECK_ANSWER(cuFuncGetParamInfo(store, 2, &offset, &length), CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("a cooperative launch fits on the device or is refused") {
  Device device;
  CUfunction empty = function(device.load(), "empty");
  int processors = 0, blocks = 0;
  REQUIRE_CUDA(cuDeviceGetAttribute(&processors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0));
  REQUIRE_CUDA(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, empty, 1024, 0));
  CHECK_EQ(blocks, 2);
  auto most = static_cast<unsigned>(processors * blocks);
  CHECK_CUDA(cuLaunchCooperativeKernel(empty, most, 1, 1, 1024, 1, 1, 0, nullptr, nullptr));
  CHECK_ANSWER(cuLaunchCooperativeKernel(empty, most + 1, 1, 1, 1024, 1, 1, 0, nullptr, nullptr),
               CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE);
  CHECK_CUDA(cuCtxSynchronize());
}

TEST_CASE("occupancy falls with shared memory") {
  Device device;
  CUfunction empty = function(device.load(), "empty");
  int blocks = 0, grid = 0, block = 0;
  CHECK_CUDA(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, empty, 32, 0));
  CHECK_EQ(blocks, 32);
  CHECK_CUDA(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, empty, 128, 47 << 10));
  CHECK_EQ(blocks, 4);  // 228 KiB for blocks of 47 KiB + 1 KiB
  CHECK_CUDA(cuOccupancyMaxPotentialBlockSize(&grid, &block, empty, nullptr, 0, 0));
  CHECK_EQ(block, 1024);
  CHECK_GT(grid, 0);
  size_t bytes = 0;
  CHECK_CUDA(cuOccupancyAvailableDynamicSMemPerBlock(&bytes, empty, 2, 128));
  CHECK_EQ(bytes, 48 << 10);  // the kernel's maximum without opting in
  CHECK_CUDA(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, empty, 128, 100 << 10));
  CHECK_EQ(blocks, 0);
  CHECK_CUDA(cuFuncSetAttribute(empty, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 200 << 10));
  CHECK_CUDA(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, empty, 128, 100 << 10));
  CHECK_EQ(blocks, 2);
  CHECK_CUDA(cuOccupancyAvailableDynamicSMemPerBlock(&bytes, empty, 2, 128));
  CHECK_EQ(bytes, 114 << 10);
  CHECK_ANSWER(cuOccupancyAvailableDynamicSMemPerBlock(&bytes, empty, 3, 1024), CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("a fault is sticky in its context and in no other") {
  Device device;
  CUmodule module = device.load();
  CUdeviceptr word = device.allocate(4);
  REQUIRE_CUDA(launch(function(module, "store"), nullptr, 1, CUdeviceptr{0x1000}, 1u));
  CHECK_ANSWER(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
  uint32_t value = 0;
  CUdeviceptr more = 0;
  CHECK_ANSWER(cuMemcpyDtoH(&value, word, 4), CUDA_ERROR_ILLEGAL_ADDRESS);
  CHECK_ANSWER(cuMemAlloc(&more, 4), CUDA_ERROR_ILLEGAL_ADDRESS);
  CHECK_ANSWER(cuStreamSynchronize(nullptr), CUDA_ERROR_ILLEGAL_ADDRESS);
  Device other;
  CUdeviceptr fine = other.allocate(4);
  REQUIRE_CUDA(launch(function(other.load(), "store"), nullptr, 1, fine, 2u));
  CHECK_EQ(other.read(fine), 2);
}

TEST_CASE("work behind a fault is not executed") {
  Device device;
  CUmodule module = device.load();
  uint64_t position = 0;
  REQUIRE_CUDA(cuMemHostRegister(&position, sizeof position, 0));
  CUstream stream = nullptr;
  REQUIRE_CUDA(cuStreamCreate(&stream, 0));
  uint32_t gate = 0;
  REQUIRE_CUDA(cuMemHostRegister(&gate, sizeof gate, 0));
  REQUIRE_CUDA(launch(function(module, "waitFor"), stream, 1, reinterpret_cast<CUdeviceptr>(&gate), 1u));
  REQUIRE_CUDA(launch(function(module, "store"), stream, 1, CUdeviceptr{0x1000}, 1u));
  REQUIRE_CUDA(cuStreamWriteValue64(stream, reinterpret_cast<CUdeviceptr>(&position), 1, 0));
  __atomic_store_n(&gate, 1, __ATOMIC_RELEASE);
  CHECK_ANSWER(cuStreamSynchronize(stream), CUDA_ERROR_ILLEGAL_ADDRESS);
  CHECK_EQ(position, 0);
  REQUIRE_CUDA(cuCtxDestroy(device.context));
}

TEST_CASE("destroyed handles are recognized") {
  Device device;
  CUmodule module = device.load();
  CUfunction empty = function(module, "empty");
  CHECK_EQ(function(module, "empty"), empty);
  REQUIRE_CUDA(cuModuleUnload(module));
  CHECK_ANSWER(launch(empty, nullptr, 1), CUDA_ERROR_INVALID_HANDLE);
  CHECK_ANSWER(cuModuleUnload(module), CUDA_ERROR_INVALID_HANDLE);
  CHECK_ANSWER(launch(reinterpret_cast<CUfunction>(0x1234), nullptr, 1), CUDA_ERROR_INVALID_HANDLE);
  CHECK_ANSWER(cuStreamSynchronize(reinterpret_cast<CUstream>(0x1234)), CUDA_ERROR_INVALID_HANDLE);
  CHECK_ANSWER(cuEventQuery(reinterpret_cast<CUevent>(0x1234)), CUDA_ERROR_INVALID_HANDLE);
}
