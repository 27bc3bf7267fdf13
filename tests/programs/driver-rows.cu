// Entries that consist only of a row of the table: each is called by its exported name, and its result or effect is checked.
#include "exported-entry.h"

#include <cudaProfiler.h>

#include <cstring>

namespace {

bool checkContexts() {
  CUcontext primary = nullptr, first = nullptr, second = nullptr, third = nullptr, popped = nullptr;
  unsigned long long id = 0, other = 0;
  CUdevice device = -1;
  bool ok = WORKS(cuCtxGetCurrent, &primary) && WORKS(cuCtxCreate, &first, 0, 0) && WORKS(cuCtxPopCurrent, &popped);
  ok &= EXPECT(popped == first) && WORKS(cuCtxPushCurrent, first) && WORKS(cuCtxGetCurrent, &popped) && EXPECT(popped == first);
  ok &= WORKS(cuCtxGetId, first, &id) && WORKS(cuCtxGetId, nullptr, &other) && EXPECT(id == other);
  ok &= WORKS(cuCtxCreate_v3, &second, nullptr, 0, 0, 0) && WORKS(cuCtxGetId, nullptr, &other) && EXPECT(id != other);
  ok &= WORKS(cuCtxGetDevice_v2, &device, first) && EXPECT(device == 0);
  ok &= WORKS(cuCtxDestroy, second) && GIVES(CUDA_ERROR_INVALID_CONTEXT, cuCtxPushCurrent, reinterpret_cast<CUcontext>(0x10));
  ok &= WORKS(cuCtxSetCurrent, first) && WORKS(cuCtxDestroy, first);
  ok &= WORKS(cuCtxCreate_v3, &third, nullptr, 0, 0, 0) && WORKS(cuCtxDetach, third) && WORKS(cuCtxSetCurrent, primary);
  unsigned flags = 0;
  ok &= WORKS(cuCtxCreate, &third, 0, 0) && WORKS(cuCtxSetFlags, CU_CTX_SCHED_SPIN) && WORKS(cuCtxGetFlags, &flags);
  ok &= EXPECT((flags & CU_CTX_SCHED_MASK) == CU_CTX_SCHED_SPIN) && WORKS(cuCtxDestroy_v2, third) && WORKS(cuCtxSetCurrent, primary);
  return ok && WORKS(cuCtxResetPersistingL2Cache) && WORKS(cuCtxSynchronize_v2, primary) && WORKS(cuCtxSynchronize_v2, nullptr);
}

bool checkPrimary() {
  CUcontext primary;
  unsigned flags = 0;
  int active = 0;
  bool ok = WORKS(cuDevicePrimaryCtxRetain, &primary, 0) && WORKS(cuDevicePrimaryCtxSetFlags, 0, CU_CTX_SCHED_YIELD);
  ok &= WORKS(cuDevicePrimaryCtxGetState, 0, &flags, &active) && EXPECT((flags & CU_CTX_SCHED_MASK) == CU_CTX_SCHED_YIELD) && EXPECT(active == 1);
  return ok && WORKS(cuDevicePrimaryCtxSetFlags, 0, 0) && WORKS(cuDevicePrimaryCtxRelease, 0);
}

bool checkDevice() {
  CUuuid first{}, second{};
  int major = 0, minor = 0, value = -1;
  size_t widest = 0, wider = 0;
  bool ok = WORKS(cuDeviceGetUuid, &first, 0) && WORKS(cuDeviceGetUuid_v2, &second, 0) && EXPECT(std::memcmp(&first, &second, sizeof first) == 0);
  ok &= WORKS(cuDeviceComputeCapability, &major, &minor, 0) && WORKS(cuDeviceGetAttribute, &value, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 0);
  ok &= EXPECT(value == major) && WORKS(cuDeviceGetAttribute, &value, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 0) && EXPECT(value == minor);
  ok &= GIVES(CUDA_ERROR_INVALID_DEVICE, cuDeviceComputeCapability, &major, &minor, 999);
  ok &= WORKS(cuDeviceGetTexture1DLinearMaxWidth, &widest, CU_AD_FORMAT_UNSIGNED_INT8, 1, 0);
  ok &= WORKS(cuDeviceGetTexture1DLinearMaxWidth, &wider, CU_AD_FORMAT_FLOAT, 4, 0) && EXPECT(wider > 0) && EXPECT(widest >= wider);
  ok &= WORKS(cuDeviceGetExecAffinitySupport, &value, CU_EXEC_AFFINITY_TYPE_SM_COUNT, 0) && EXPECT(value == 0 || value == 1);
  char luid[8];
  unsigned nodes = 0;
  ok &= GIVES(CUDA_ERROR_NOT_SUPPORTED, cuDeviceGetLuid, luid, &nodes, 0);  // Windows only
  ok &= WORKS(cuDeviceGetAttribute, &value, CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_FLUSH_WRITES_OPTIONS, 0);
  if ((value & CU_FLUSH_GPU_DIRECT_RDMA_WRITES_OPTION_HOST) == 0)
    ok &= GIVES(CUDA_ERROR_NOT_SUPPORTED, cuFlushGPUDirectRDMAWrites, CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TARGET_CURRENT_CTX,
                CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TO_OWNER);
  return ok && WORKS(cuDeviceGraphMemTrim, 0);
}

bool checkStreams(CUstream stream) {
  CUdevice device = -1;
  CUstream made = nullptr;
  CUevent event = nullptr;
  bool ok = WORKS(cuStreamGetDevice, stream, &device) && EXPECT(device == 0) && WORKS(cuStreamGetDevice, nullptr, &device) && EXPECT(device == 0);
  CUstreamCaptureStatus status[4];
  for (auto& each : status) each = CU_STREAM_CAPTURE_STATUS_ACTIVE;
  ok &= WORKS(cuStreamIsCapturing, stream, &status[0]) && WORKS(cuStreamGetCaptureInfo, stream, &status[1], nullptr);
  ok &= WORKS(cuStreamGetCaptureInfo_v2, stream, &status[2], nullptr, nullptr, nullptr, nullptr);
  ok &= WORKS(cuStreamGetCaptureInfo_v3, stream, &status[3], nullptr, nullptr, nullptr, nullptr, nullptr);
  for (auto each : status) ok &= EXPECT(each == CU_STREAM_CAPTURE_STATUS_NONE);
  CUcontext current = nullptr, context = nullptr;
  CUgreenCtx green = reinterpret_cast<CUgreenCtx>(1);
  ok &= WORKS(cuCtxGetCurrent, &current) && WORKS(cuStreamGetCtx_v2, stream, &context, &green) && EXPECT(context == current) && EXPECT(green == nullptr);
  ok &= WORKS(cuStreamCreate, &made, 0) && WORKS(cuStreamDestroy, made) && WORKS(cuEventCreate, &event, 0) && WORKS(cuEventDestroy, event);
  return ok;
}

bool checkHostMemory() {
  std::vector<char> bytes(3 << 20);
  auto* page = reinterpret_cast<char*>((reinterpret_cast<uintptr_t>(bytes.data()) + 4095) & ~uintptr_t{4095});
  unsigned flags = 0;
  bool ok = WORKS(cuMemHostRegister, page, 1 << 20, CU_MEMHOSTREGISTER_PORTABLE) && WORKS(cuMemHostGetFlags, &flags, page);
  return ok && EXPECT((flags & CU_MEMHOSTREGISTER_PORTABLE) != 0) && WORKS(cuMemHostUnregister, page);
}

// The first versions of copies from and to arrays, which have 32-bit sizes, and of pinned memory.
bool checkArrays(CUstream stream) {
  CUDA_ARRAY_DESCRIPTOR shape{16, 0, CU_AD_FORMAT_UNSIGNED_INT32, 1};
  CUarray first = nullptr, second = nullptr;
  void* pinned = nullptr;
  unsigned out[16], back[16];
  for (unsigned i = 0; i < 16; ++i) out[i] = i * i + 1, back[i] = 0;
  bool ok = WORKS(cuArrayCreate_v2, &first, &shape) && WORKS(cuArrayCreate_v2, &second, &shape) && WORKS(cuMemAllocHost, &pinned, sizeof out);
  std::memcpy(pinned, out, sizeof out);
  ok &= WORKS(cuMemcpyHtoA, first, 0, out, 32) && WORKS(cuMemcpyHtoAAsync, first, 32, static_cast<char*>(pinned) + 32, 32, stream);
  ok &= WORKS(cuStreamSynchronize, stream) && WORKS(cuMemcpyAtoA, second, 0, first, 0, sizeof out);
  ok &= WORKS(cuMemcpyAtoH, back, second, 0, 32) && WORKS(cuMemcpyAtoHAsync, pinned, second, 32, 32, stream) && WORKS(cuStreamSynchronize, stream);
  std::memcpy(back + 8, pinned, 32);
  ok &= EXPECT(std::memcmp(out, back, sizeof out) == 0) && WORKS(cuMemFreeHost, pinned);
  return ok && WORKS(cuArrayDestroy, first) && WORKS(cuArrayDestroy, second);
}

// One stream waits for a value that another writes: 32 and 64 bits, by both versions.
bool checkValues(CUstream waits, CUdeviceptr words) {
  CUstream writes = nullptr;
  uint64_t seen[4]{};
  bool ok = WORKS(cuStreamCreate, &writes, CU_STREAM_NON_BLOCKING) && WORKS(cuMemsetD8_v2, words, 0, sizeof seen);
  ok &= WORKS(cuStreamSynchronize, nullptr);  // neither stream waits for the fill
  ok &= WORKS(cuStreamWaitValue32, waits, words, 5, CU_STREAM_WAIT_VALUE_GEQ) && WORKS(cuStreamWriteValue32_v2, waits, words + 16, 7, 0);
  ok &= WORKS(cuStreamWriteValue32, writes, words, 6, 0);
  ok &= WORKS(cuStreamWaitValue64_v2, writes, words + 16, 7, CU_STREAM_WAIT_VALUE_EQ);
  ok &= WORKS(cuStreamWriteValue64, writes, words + 8, 1ull << 40, 0);
  ok &= WORKS(cuStreamWaitValue64, waits, words + 8, 1ull << 40, CU_STREAM_WAIT_VALUE_EQ);
  ok &= WORKS(cuStreamWaitValue32_v2, waits, words, 6, CU_STREAM_WAIT_VALUE_EQ);
  ok &= WORKS(cuStreamWriteValue64_v2, waits, words + 24, ~0ull, 0) && WORKS(cuStreamSynchronize, waits) && WORKS(cuStreamSynchronize, writes);
  ok &= WORKS(cuMemcpyDtoH_v2, seen, words, sizeof seen);
  ok &= EXPECT(seen[0] == 6) && EXPECT(seen[1] == 1ull << 40) && EXPECT(seen[2] == 7) && EXPECT(seen[3] == ~0ull);
  ok &= GIVES(CUDA_ERROR_INVALID_VALUE, cuStreamWriteValue32, waits, words, 1, 1u << 20);
  return ok && WORKS(cuStreamDestroy_v2, writes);
}

const char* const ptx = R"(
.version 7.5
.target sm_75
.address_size 64
.visible .entry first() { ret; }
.visible .entry second() { ret; }
)";

bool checkModule(CUmodule module, CUfunction function) {
  unsigned count = 0;
  CUfunctionLoadingState state{};
  int grid = 0, block = 0, again = 0;
  bool ok = WORKS(cuModuleGetFunctionCount, &count, module) && EXPECT(count == 2);
  ok &= WORKS(cuFuncLoad, function) && WORKS(cuFuncIsLoaded, &state, function) && EXPECT(state == CU_FUNCTION_LOADING_STATE_LOADED);
  ok &= WORKS(cuOccupancyMaxPotentialBlockSizeWithFlags, &grid, &block, function, nullptr, 0, 0, CU_OCCUPANCY_DISABLE_CACHING_OVERRIDE);
  ok &= WORKS(cuOccupancyMaxPotentialBlockSize, &grid, &again, function, nullptr, 0, 0) && EXPECT(block == again);
  return ok && GIVES(CUDA_ERROR_INVALID_VALUE, cuOccupancyMaxPotentialBlockSizeWithFlags, &grid, &block, function, nullptr, 0, 0, 2);
}

bool checkPeers() {
  int devices = 0, reach = 0;
  CUcontext here, there;
  if (!WORKS(cuDeviceGetCount, &devices) || devices < 2) return true;
  bool ok = WORKS(cuCtxGetCurrent, &here) && WORKS(cuDevicePrimaryCtxRetain, &there, 1) && WORKS(cuDeviceCanAccessPeer, &reach, 0, 1);
  if (reach == 0) ok &= GIVES(CUDA_ERROR_PEER_ACCESS_UNSUPPORTED, cuCtxEnablePeerAccess, there, 0);
  ok &= GIVES(CUDA_ERROR_PEER_ACCESS_NOT_ENABLED, cuCtxDisablePeerAccess, there);
  return ok && WORKS(cuDevicePrimaryCtxRelease_v2, 1);
}

}  // namespace

int main() {
  CHECK(cudaFree(nullptr));
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  CUstream stream = nullptr;
  CUdeviceptr words = 0;
  bool ok = WORKS(cuModuleLoadData, &module, ptx) && WORKS(cuModuleGetFunction, &function, module, "second");
  ok &= WORKS(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING) && WORKS(cuMemAlloc_v2, &words, 32);
  auto checkAll = [&] {
    ok &= checkContexts() && checkPrimary() && checkDevice() && checkStreams(stream) && checkHostMemory() && checkArrays(stream) && checkValues(stream, words) &&
          checkModule(module, function) && checkPeers();
  };
  checkAll();
  pausePoint();
  checkAll();
  CUresult profiler = ENTRY(cuProfilerInitialize)("", "", CU_OUT_CSV);  // deprecated: a driver may refuse it
  ok &= EXPECT(profiler == CUDA_SUCCESS || profiler == CUDA_ERROR_NOT_SUPPORTED);
  ok &= WORKS(cuDevicePrimaryCtxReset, 0);
  return verdict("driver-rows", ok);
}
