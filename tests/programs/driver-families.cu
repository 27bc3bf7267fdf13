// Groups of entries that are rows of the table: first versions, launches that are set up step by step, batches of copies, functions of a
// module, pools by location, tensor maps, green contexts of different resources, and entries that a session refuses.
#include "exported-entry.h"

#include <cstring>
#include <string>

namespace {

const char* const ptx = R"(
.version 7.5
.target sm_75
.address_size 64
.visible .entry fill(.param .u64 out, .param .u32 factor, .param .f32 more) {
  .reg .u32 %r<8>; .reg .u64 %d<4>; .reg .f32 %f<4>;
  ld.param.u64 %d0, [out];
  ld.param.u32 %r0, [factor];
  ld.param.f32 %f0, [more];
  mov.u32 %r1, %tid.x;
  mov.u32 %r2, %ctaid.x;
  mov.u32 %r3, %ntid.x;
  mad.lo.u32 %r4, %r2, %r3, %r1;
  mul.lo.u32 %r5, %r4, %r0;
  cvt.rn.f32.u32 %f1, %r5;
  add.f32 %f2, %f1, %f0;
  mul.wide.u32 %d1, %r4, 4;
  add.u64 %d2, %d0, %d1;
  st.global.f32 [%d2], %f2;
  ret;
}
.visible .entry other() { ret; }
)";

bool checkFirstVersions() {
  unsigned total = 0, freeBytes = 0, all = 0;
  size_t now = 0;
  CUdeviceptr_v1 address = 0;
  bool ok = WORKS(cuDeviceTotalMem, &total, 0) && WORKS(cuDeviceTotalMem_v2, &now, 0);
  ok &= EXPECT(total == (now > 0xffffffffu ? 0xffffffffu : now)) && WORKS(cuMemGetInfo, &freeBytes, &all) && EXPECT(freeBytes <= all);
  CUDA_ARRAY_DESCRIPTOR_v1 flat{32, 8, CU_AD_FORMAT_FLOAT, 2}, seen{};
  CUDA_ARRAY3D_DESCRIPTOR_v1 deep{16, 8, 4, CU_AD_FORMAT_UNSIGNED_INT8, 4, CUDA_ARRAY3D_SURFACE_LDST}, seenDeep{};
  CUarray first = nullptr, second = nullptr, plane = nullptr;
  ok &= WORKS(cuArrayCreate, &first, &flat) && WORKS(cuArrayGetDescriptor, &seen, first);
  ok &= EXPECT(seen.Width == 32 && seen.Height == 8 && seen.Format == CU_AD_FORMAT_FLOAT && seen.NumChannels == 2);
  ok &= WORKS(cuArray3DCreate, &second, &deep) && WORKS(cuArray3DGetDescriptor, &seenDeep, second);
  ok &= EXPECT(seenDeep.Depth == 4 && seenDeep.Flags == CUDA_ARRAY3D_SURFACE_LDST && seenDeep.NumChannels == 4);
  CUDA_ARRAY_SPARSE_PROPERTIES sparse;
  CUDA_ARRAY_MEMORY_REQUIREMENTS needed;
  ok &= GIVES(CUDA_ERROR_INVALID_VALUE, cuArrayGetSparseProperties, &sparse, first);
  ok &= GIVES(CUDA_ERROR_INVALID_VALUE, cuArrayGetMemoryRequirements, &needed, first, 0);
  ok &= GIVES(CUDA_ERROR_INVALID_VALUE, cuArrayGetPlane, &plane, first, 0) && GIVES(CUDA_ERROR_INVALID_VALUE, cuArrayCreate, &first, nullptr);
  ok &= WORKS(cuArrayDestroy, first) && WORKS(cuArrayDestroy, second);
  return ok && GIVES(CUDA_ERROR_NOT_SUPPORTED, cuMemAlloc, &address, 16);
}

// The kernel writes float(i * 3) + 0.5 for 16 threads.
bool checkStepwiseLaunch(CUfunction function, CUdeviceptr out, CUstream stream) {
  float seen[16]{};
  bool ok = WORKS(cuMemsetD8_v2, out, 0, sizeof seen) && WORKS(cuFuncSetBlockShape, function, 8, 1, 1) && WORKS(cuFuncSetSharedSize, function, 0);
  ok &= WORKS(cuParamSetv, function, 0, &out, sizeof out) && WORKS(cuParamSeti, function, 8, 3) && WORKS(cuParamSetf, function, 12, 0.5f);
  ok &= WORKS(cuParamSetSize, function, 16) && WORKS(cuLaunchGrid, function, 2, 1) && WORKS(cuMemcpyDtoH_v2, seen, out, sizeof seen);
  for (int i = 0; i < 16; ++i) ok &= EXPECT(seen[i] == static_cast<float>(3 * i) + 0.5f);
  ok &= WORKS(cuParamSeti, function, 8, 5) && WORKS(cuLaunchGridAsync, function, 2, 1, stream) && WORKS(cuStreamSynchronize, stream);
  ok &= WORKS(cuMemcpyDtoH_v2, seen, out, sizeof seen) && EXPECT(seen[15] == 75.5f);
  ok &= WORKS(cuParamSeti, function, 8, 7) && WORKS(cuLaunch, function) && WORKS(cuMemcpyDtoH_v2, seen, out, sizeof seen);
  ok &= EXPECT(seen[7] == 49.5f) && EXPECT(seen[8] == 40.5f);
  ok &= GIVES(CUDA_ERROR_INVALID_VALUE, cuFuncSetBlockShape, function, 0, 1, 1) && GIVES(CUDA_ERROR_INVALID_VALUE, cuLaunchGrid, function, 0, 1);
  return ok && GIVES(CUDA_ERROR_INVALID_VALUE, cuParamSetv, function, 4090, &out, 8) && GIVES(CUDA_ERROR_INVALID_HANDLE, cuLaunch, nullptr);
}

bool checkBatch(CUstream stream, CUdeviceptr words) {
  uint32_t in[8], back[8]{};
  for (uint32_t i = 0; i < 8; ++i) in[i] = 100 + i;
  CUdeviceptr to[] = {words, words + 32}, from[] = {reinterpret_cast<CUdeviceptr>(in), reinterpret_cast<CUdeviceptr>(in + 4)};
  size_t sizes[] = {16, 16}, indices[] = {0, 1}, wrong[] = {1, 0}, failed = 0;
  CUmemcpyAttributes attributes[2]{};
  attributes[0].srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL;
  attributes[1].srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM;
  bool ok = WORKS(cuMemcpyBatchAsync, to, from, sizes, 2, attributes, indices, 2, &failed, stream);
  CUdeviceptr home[] = {reinterpret_cast<CUdeviceptr>(back), reinterpret_cast<CUdeviceptr>(back + 4)};
  ok &= WORKS(cuMemcpyBatchAsync_v2, home, to, sizes, 2, attributes + 1, indices, 1, stream) && WORKS(cuStreamSynchronize, stream);
  ok &= EXPECT(std::memcmp(in, back, sizeof in) == 0);
  ok &= GIVES(CUDA_ERROR_INVALID_VALUE, cuMemcpyBatchAsync, to, from, sizes, 2, attributes, wrong, 2, &failed, stream) && EXPECT(failed == SIZE_MAX);
  ok &= GIVES(CUDA_ERROR_INVALID_VALUE, cuMemcpyBatchAsync_v2, to, from, sizes, 2, attributes, indices, 3, stream);
  to[1] = 0x10;
  ok &= GIVES(CUDA_ERROR_INVALID_VALUE, cuMemcpyBatchAsync, to, from, sizes, 2, attributes, indices, 2, &failed, stream) && EXPECT(failed == 1);
  return ok && GIVES(CUDA_ERROR_INVALID_VALUE, cuMemcpyBatchAsync_v2, to, from, sizes, 2, attributes, indices, 2, nullptr);
}

// A box of 4 x 3 elements into an array at (2, 1), and back out of it.
bool checkBatch3D(CUstream stream) {
  CUDA_ARRAY_DESCRIPTOR shape{8, 8, CU_AD_FORMAT_UNSIGNED_INT32, 1};
  CUarray array = nullptr;
  uint32_t in[12], back[12]{};
  for (uint32_t i = 0; i < 12; ++i) in[i] = i + 7;
  CUDA_MEMCPY3D_BATCH_OP put{}, get{};
  put.src.type = CU_MEMCPY_OPERAND_TYPE_POINTER;
  put.src.op.ptr.ptr = reinterpret_cast<CUdeviceptr>(in);
  put.dst.type = CU_MEMCPY_OPERAND_TYPE_ARRAY;
  put.extent = {4, 3, 1};
  put.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM;
  bool ok = WORKS(cuArrayCreate_v2, &array, &shape);
  put.dst.op.array.array = array;
  put.dst.op.array.offset = {2, 1, 0};
  get = put;
  std::swap(get.src, get.dst);
  get.dst.op.ptr.ptr = reinterpret_cast<CUdeviceptr>(back);
  CUDA_MEMCPY3D_BATCH_OP both[] = {put, get};
  ok &= WORKS(cuMemcpy3DBatchAsync_v2, 2, both, 0, stream) && WORKS(cuStreamSynchronize, stream) && EXPECT(std::memcmp(in, back, sizeof in) == 0);
  size_t failed = 0;
  both[1].src.op.array.array = nullptr;
  ok &= GIVES(CUDA_ERROR_INVALID_HANDLE, cuMemcpy3DBatchAsync, 2, both, &failed, 0, stream) && EXPECT(failed == 1);
  return ok && GIVES(CUDA_ERROR_INVALID_VALUE, cuMemcpy3DBatchAsync_v2, 0, both, 0, stream) && WORKS(cuArrayDestroy, array);
}

bool checkModule(CUmodule module) {
  CUfunction functions[3]{}, other = nullptr;
  const char *first = nullptr, *second = nullptr;
  CUtexref texture;
  bool ok = WORKS(cuModuleEnumerateFunctions, functions, 2, module) && WORKS(cuModuleGetFunction, &other, module, "other");
  ok &= WORKS(cuFuncGetName, &first, functions[0]) && WORKS(cuFuncGetName, &second, functions[1]) && EXPECT(functions[2] == nullptr);
  ok = ok && EXPECT(std::string(first) + second == "fillother" || std::string(first) + second == "otherfill");
  ok &= EXPECT(functions[0] == other || functions[1] == other);
  ok &= GIVES(CUDA_ERROR_INVALID_VALUE, cuModuleEnumerateFunctions, nullptr, 2, module);
  return ok && GIVES(CUDA_ERROR_NOT_FOUND, cuModuleGetTexRef, &texture, module, "fill");
}

// Programs that can use OpenGL, EGL or VDPAU are linked with the driver's functions for them, or look them up; a session refuses each when
// it is called.
bool checkGraphics() {
  bool ok = true;
  for (const char* name : {"cuGLGetDevices_v2", "cuGraphicsGLRegisterBuffer", "cuEGLStreamConsumerConnect", "cuVDPAUCtxCreate_v2",
                           "cuGLMapBufferObjectAsync_v2_ptsz"})
    ok &= gives(name, exported<CUresult (*)()>(name)(), CUDA_ERROR_NOT_SUPPORTED);
  void *first = nullptr, *second = nullptr;
  CUdriverProcAddressQueryResult status{};
  ok &= WORKS(cuGetProcAddress_v2, "cuGLGetDevices", &first, 4010, 0, &status) && WORKS(cuGetProcAddress_v2, "cuGLGetDevices", &second, 13000, 0, &status);
  return ok & EXPECT(first != nullptr && second != nullptr && first != second) & EXPECT(status == CU_GET_PROC_ADDRESS_SUCCESS);
}

bool checkPools() {
  CUmemLocation here{CU_MEM_LOCATION_TYPE_DEVICE, 0}, host{CU_MEM_LOCATION_TYPE_HOST, 0};
  CUmemoryPool byDevice = nullptr, byLocation = nullptr, current = nullptr;
  bool ok = WORKS(cuDeviceGetDefaultMemPool, &byDevice, 0) && WORKS(cuMemGetDefaultMemPool, &byLocation, &here, CU_MEM_ALLOCATION_TYPE_PINNED);
  ok &= EXPECT(byDevice == byLocation) && WORKS(cuMemSetMemPool, &here, CU_MEM_ALLOCATION_TYPE_PINNED, byDevice);
  ok &= WORKS(cuMemGetMemPool, &current, &here, CU_MEM_ALLOCATION_TYPE_PINNED) && EXPECT(current == byDevice);
  ok &= WORKS(cuMemGetDefaultMemPool, &current, &host, CU_MEM_ALLOCATION_TYPE_PINNED) && EXPECT(current != byDevice);
  return ok && GIVES(CUDA_ERROR_INVALID_VALUE, cuMemGetMemPool, &current, nullptr, CU_MEM_ALLOCATION_TYPE_PINNED);
}

bool checkDevice(CUstream stream) {
  CUdevprop properties{};
  int threads = 0, maps = 0;
  CUexecAffinityParam affinity;
  auto green = reinterpret_cast<CUgreenCtx>(1);
  bool ok = WORKS(cuDeviceGetProperties, &properties, 0) && WORKS(cuDeviceGetAttribute, &threads, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 0);
  ok &= EXPECT(properties.maxThreadsPerBlock == threads) && EXPECT(properties.SIMDWidth == 32) && EXPECT(properties.maxGridSize[0] > 65535);
  ok &= GIVES(CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY, cuCtxGetExecAffinity, &affinity, CU_EXEC_AFFINITY_TYPE_SM_COUNT);
  ok &= WORKS(cuStreamGetGreenCtx, stream, &green) && EXPECT(green == nullptr);
  ok &= GIVES(CUDA_ERROR_INVALID_CONTEXT, cuGreenCtxDestroy, nullptr) && GIVES(CUDA_ERROR_NOT_SUPPORTED, cuGraphicsUnregisterResource, nullptr);
  // Limits and other enumeration values are validated before the call is executed.
  size_t value = 0;
  int attribute = 0;
  ok &= GIVES(CUDA_ERROR_INVALID_VALUE, cuCtxGetLimit, &value, static_cast<CUlimit>(0x77));
  ok &= GIVES(CUDA_ERROR_INVALID_VALUE, cuDeviceGetAttribute, &attribute, static_cast<CUdevice_attribute>(0), 0);
  ok &= GIVES(CUDA_ERROR_INVALID_VALUE, cuCtxSetCacheConfig, static_cast<CUfunc_cache>(4));
  ok &= WORKS(cuDeviceGetAttribute, &maps, CU_DEVICE_ATTRIBUTE_TENSOR_MAP_ACCESS_SUPPORTED, 0);
  alignas(64) CUtensorMap map{};
  alignas(64) CUtensorMap moved{};
  const cuuint64_t extent[] = {64, 32}, pitch[] = {256};
  const cuuint32_t box[] = {32, 8}, step[] = {1, 1};
  auto encode = [&](CUtensorMap* out, cuuint32_t rank) {
    return exported<decltype(&cuTensorMapEncodeTiled)>("cuTensorMapEncodeTiled")(
        out, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, rank, reinterpret_cast<void*>(0x200000000000), extent, pitch, box, step,
        CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_NONE, CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  };
  ok &= gives("cuTensorMapEncodeTiled of rank 0", encode(&map, 0), CUDA_ERROR_INVALID_VALUE);
  ok &= gives("cuTensorMapEncodeTiled to nowhere", encode(nullptr, 2), CUDA_ERROR_INVALID_VALUE);
  if (maps == 0) return ok && gives("cuTensorMapEncodeTiled", encode(&map, 2), CUDA_ERROR_NOT_SUPPORTED);
  ok &= gives("cuTensorMapEncodeTiled", encode(&map, 2), CUDA_SUCCESS);
  moved = map;
  ok &= WORKS(cuTensorMapReplaceAddress, &moved, reinterpret_cast<void*>(0x200000001000)) && EXPECT(std::memcmp(&map, &moved, sizeof map) != 0);
  ok &= WORKS(cuTensorMapReplaceAddress, &moved, reinterpret_cast<void*>(0x200000000000));
  return ok && EXPECT(std::memcmp(&map, &moved, sizeof map) == 0);
}

unsigned processorsOf(CUdevResource* resources) {
  CUdevResourceDesc descriptor = nullptr;
  CUgreenCtx green = nullptr;
  CUdevResource has{};
  bool ok = WORKS(cuDevResourceGenerateDesc, &descriptor, resources, 2);
  ok = ok && WORKS(cuGreenCtxCreate, &green, descriptor, 0, CU_GREEN_CTX_DEFAULT_STREAM);
  ok = ok && WORKS(cuGreenCtxGetDevResource, green, &has, CU_DEV_RESOURCE_TYPE_SM) && WORKS(cuGreenCtxDestroy, green);
  return ok ? has.sm.smCount : 0;
}

// A green context has the multiprocessors of all its resources, each once.
bool checkUnions() {
  CUdevResource whole{}, parts[2]{};
  unsigned count = 2;
  bool ok = WORKS(cuDeviceGetDevResource, 0, &whole, CU_DEV_RESOURCE_TYPE_SM);
  ok = ok && WORKS(cuDevSmResourceSplitByCount, parts, &count, &whole, nullptr, 0, 0) && EXPECT(count == 2);
  CUdevResource twice[]{parts[1], parts[1]}, after[]{parts[1], whole}, before[]{whole, parts[1]};
  ok = ok && EXPECT(processorsOf(parts) == 2 * parts[0].sm.smCount) && EXPECT(processorsOf(twice) == parts[1].sm.smCount);
  return ok && EXPECT(processorsOf(after) == whole.sm.smCount) && EXPECT(processorsOf(before) == whole.sm.smCount);
}

// Natively the runtime writes through an invalid pointer for the handle.
bool refusesHandlesNowhere(CUdeviceptr memory) {
  CUevent event = nullptr;
  bool ok = WORKS(cuEventCreate, &event, CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING);
  ok &= EXPECT_ERROR(cudaIpcGetMemHandle(nullptr, reinterpret_cast<void*>(memory)), cudaErrorInvalidValue);
  ok &= EXPECT_ERROR(cudaIpcGetEventHandle(nullptr, event), cudaErrorInvalidValue);
  return ok & WORKS(cuEventDestroy_v2, event);
}

}  // namespace

int main() {
  CHECK(cudaFree(nullptr));
  CUmodule module = nullptr;
  CUfunction fill = nullptr;
  CUstream stream = nullptr;
  CUdeviceptr words = 0;
  bool ok = WORKS(cuModuleLoadData, &module, ptx) && WORKS(cuModuleGetFunction, &fill, module, "fill");
  ok &= WORKS(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING) && WORKS(cuMemAlloc_v2, &words, 4096);
  for (int round = 0; round < 2 && ok; ++round) {
    ok &= checkFirstVersions() && checkStepwiseLaunch(fill, words, stream) && checkBatch(stream, words) && checkBatch3D(stream);
    ok = ok && checkModule(module) && checkGraphics() && checkPools() && checkDevice(stream) && checkUnions() && refusesHandlesNowhere(words);
    if (round == 0) pausePoint();
  }
  return verdict("driver-families", ok);
}
