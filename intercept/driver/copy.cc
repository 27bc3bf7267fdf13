// Copies and fills: a dozen entries over three functions.
#include "intercept/session/copy/box.h"
#include "intercept/session/copy/engine.h"
#include "intercept/session/entry.h"

using namespace vgpu;
using namespace vgpu::client;

namespace {

bool isOnDevice(Thread& thread, uint64_t address) {
  return inDeviceArenas(address) || thread.session.variables.at(address);
}

// The end of a blocking copy. The text that kernels print appears at this point, so if a program's kernels print, the copy waits
// as CUDA's does: even if the program's bytes were taken long before the GPU has executed the copy.
CUresult blockingCopyEnded(Thread& thread, uint64_t stream, bool insideDevice, CUresult result) {
  Session& session = thread.session;
  if (result != CUDA_SUCCESS || !session.output.isExpected()) return result;
  if (!insideDevice) return synchronizeStream(thread, stream);
  session.output.deliver(thread, thread.deviceOf(stream));
  return CUDA_SUCCESS;
}

// A driver entry that copies `bytes` in `stream`.
CUresult copyIn(CUstream hStream, uint64_t destination, uint64_t source, uint64_t bytes, Completion completion, Ends ends) {
  return enter([&](Thread& thread) -> CUresult {
    uint64_t stream = toWire(hStream);
    if (CUresult bad = thread.resolve(api::Kind::STREAM, true, stream)) return bad;
    CUresult result = copyBytes(thread, destination, source, bytes, stream, completion, ends);
    if (completion == Completion::asynchronous) return result;
    return blockingCopyEnded(thread, stream, isOnDevice(thread, destination) && isOnDevice(thread, source), result);
  });
}

CUresult fillIn(CUstream hStream, CUdeviceptr destination, uint64_t pitch, uint32_t value, uint32_t elementBytes,
                uint64_t width, uint64_t height) {
  return enter([&](Thread& thread) -> CUresult {
    uint64_t stream = toWire(hStream);
    if (CUresult bad = thread.resolve(api::Kind::STREAM, true, stream)) return bad;
    return fillRows(thread, destination, pitch, value, elementBytes, width, height, stream);
  });
}

BoxEnd destinationOf(const CUDA_MEMCPY3D& copy) {
  if (copy.dstMemoryType == CU_MEMORYTYPE_ARRAY)
    return {.array = toWire(copy.dstArray), .x = copy.dstXInBytes, .row = copy.dstY, .slice = copy.dstZ};
  MemoryRows rows{copy.dstMemoryType == CU_MEMORYTYPE_HOST ? toWire(copy.dstHost) : copy.dstDevice, copy.dstPitch,
                  copy.dstPitch * copy.dstHeight};
  rows.address = rows.at(copy.dstXInBytes, copy.dstY, copy.dstZ);
  return {.memory = rows};
}

BoxEnd sourceOf(const CUDA_MEMCPY3D& copy) {
  if (copy.srcMemoryType == CU_MEMORYTYPE_ARRAY)
    return {.array = toWire(copy.srcArray), .x = copy.srcXInBytes, .row = copy.srcY, .slice = copy.srcZ};
  MemoryRows rows{copy.srcMemoryType == CU_MEMORYTYPE_HOST ? toWire(copy.srcHost) : copy.srcDevice, copy.srcPitch,
                  copy.srcPitch * copy.srcHeight};
  rows.address = rows.at(copy.srcXInBytes, copy.srcY, copy.srcZ);
  return {.memory = rows};
}

CUresult copy3D(const CUDA_MEMCPY3D* copy, CUstream hStream, Completion completion) {
  return enter([&](Thread& thread) -> CUresult {
    uint64_t stream = toWire(hStream);
    if (copy == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (CUresult bad = thread.resolve(api::Kind::STREAM, true, stream)) return bad;
    BoxEnd destination = destinationOf(*copy), source = sourceOf(*copy);
    bool pitched = copy->Height > 1 || copy->Depth > 1;
    for (const BoxEnd* end : {&destination, &source})
      if (pitched && end->array == 0 && end->memory.pitch < copy->WidthInBytes) return CUDA_ERROR_INVALID_VALUE;
    CUresult result =
        copyBox(thread, destination, source, {copy->WidthInBytes, copy->Height, copy->Depth}, stream, completion);
    if (completion == Completion::asynchronous) return result;
    auto isDevice = [](CUmemorytype type) { return type == CU_MEMORYTYPE_DEVICE || type == CU_MEMORYTYPE_ARRAY; };
    return blockingCopyEnded(thread, stream, isDevice(copy->dstMemoryType) && isDevice(copy->srcMemoryType), result);
  });
}

// The fields that every form of the description has.
template <typename Description>
CUDA_MEMCPY3D common(const Description& copy) {
  CUDA_MEMCPY3D deep{};
  deep.srcXInBytes = copy.srcXInBytes;
  deep.srcY = copy.srcY;
  deep.srcMemoryType = copy.srcMemoryType;
  deep.srcHost = copy.srcHost;
  deep.srcDevice = copy.srcDevice;
  deep.srcArray = copy.srcArray;
  deep.srcPitch = copy.srcPitch;
  deep.dstXInBytes = copy.dstXInBytes;
  deep.dstY = copy.dstY;
  deep.dstMemoryType = copy.dstMemoryType;
  deep.dstHost = copy.dstHost;
  deep.dstDevice = copy.dstDevice;
  deep.dstArray = copy.dstArray;
  deep.dstPitch = copy.dstPitch;
  deep.WidthInBytes = copy.WidthInBytes;
  deep.Height = copy.Height;
  return deep;
}

CUDA_MEMCPY3D flat(const CUDA_MEMCPY2D& copy) {
  CUDA_MEMCPY3D deep = common(copy);
  deep.Depth = 1;
  return deep;
}

// One address space holds every device, so it does not matter whose memory each end is.
CUresult copyPeers(const CUDA_MEMCPY3D_PEER* copy, CUstream stream, Completion completion) {
  if (copy == nullptr) return CUDA_ERROR_INVALID_VALUE;
  CUDA_MEMCPY3D deep = common(*copy);
  deep.srcZ = copy->srcZ;
  deep.srcHeight = copy->srcHeight;
  deep.dstZ = copy->dstZ;
  deep.dstHeight = copy->dstHeight;
  deep.Depth = copy->Depth;
  return copy3D(&deep, stream, completion);
}

CUresult copy2D(const CUDA_MEMCPY2D* copy, CUstream stream, Completion completion) {
  if (copy == nullptr) return CUDA_ERROR_INVALID_VALUE;
  CUDA_MEMCPY3D deep = flat(*copy);
  return copy3D(&deep, stream, completion);
}

// A copy of a row's worth of bytes from or to an array.
CUresult copyRow(CUstream hStream, const BoxEnd& destination, const BoxEnd& source, uint64_t bytes, Completion completion) {
  return enter([&](Thread& thread) -> CUresult {
    uint64_t stream = toWire(hStream);
    if (CUresult bad = thread.resolve(api::Kind::STREAM, true, stream)) return bad;
    CUresult result = copyBox(thread, destination, source, {bytes, 1, 1}, stream, completion);
    if (completion == Completion::asynchronous) return result;
    auto isDevice = [&](const BoxEnd& end) { return end.array != 0 || isOnDevice(thread, end.memory.address); };
    return blockingCopyEnded(thread, stream, isDevice(destination) && isDevice(source), result);
  });
}

BoxEnd inArray(CUarray array, uint64_t offset) { return {.array = toWire(array), .x = offset}; }
BoxEnd inMemory(uint64_t address) { return {.memory = {address, 0, 0}}; }

constexpr auto waits = Completion::synchronous;
constexpr auto returns = Completion::asynchronous;

}  // namespace

extern "C" {

#define COPY(name, parameters, stream, completion, destination, source, ...)                            \
  VGPU_EXPORT CUresult CUDAAPI name parameters {                                                       \
    return copyIn(stream, destination, source, n, Completion::completion, Ends{__VA_ARGS__});          \
  }
COPY(cuMemcpy, (CUdeviceptr d, CUdeviceptr s, size_t n), nullptr, synchronous, d, s)
COPY(cuMemcpyHtoD_v2, (CUdeviceptr d, const void* s, size_t n), nullptr, synchronous, d, toWire(s), true, false)
COPY(cuMemcpyDtoH_v2, (void* d, CUdeviceptr s, size_t n), nullptr, synchronous, toWire(d), s, false, true)
COPY(cuMemcpyDtoD_v2, (CUdeviceptr d, CUdeviceptr s, size_t n), nullptr, synchronous, d, s, true, true)
COPY(cuMemcpyPeer, (CUdeviceptr d, CUcontext, CUdeviceptr s, CUcontext, size_t n), nullptr, synchronous, d, s, true, true)
COPY(cuMemcpyAsync, (CUdeviceptr d, CUdeviceptr s, size_t n, CUstream on), on, asynchronous, d, s)
COPY(cuMemcpyHtoDAsync_v2, (CUdeviceptr d, const void* s, size_t n, CUstream on), on, asynchronous, d, toWire(s), true, false)
COPY(cuMemcpyDtoHAsync_v2, (void* d, CUdeviceptr s, size_t n, CUstream on), on, asynchronous, toWire(d), s, false, true)
COPY(cuMemcpyDtoDAsync_v2, (CUdeviceptr d, CUdeviceptr s, size_t n, CUstream on), on, asynchronous, d, s, true, true)
COPY(cuMemcpyPeerAsync, (CUdeviceptr d, CUcontext, CUdeviceptr s, CUcontext, size_t n, CUstream on), on, asynchronous, d, s,
     true, true)
#undef COPY

#define FILL(bits, type, element)                                                                                       \
  VGPU_EXPORT CUresult CUDAAPI cuMemsetD##bits##_v2(CUdeviceptr d, type value, size_t n) {                              \
    return fillIn(nullptr, d, 0, value, element, n, 1);                                                                 \
  }                                                                                                                     \
  VGPU_EXPORT CUresult CUDAAPI cuMemsetD##bits##Async(CUdeviceptr d, type value, size_t n, CUstream stream) {           \
    return fillIn(stream, d, 0, value, element, n, 1);                                                                  \
  }                                                                                                                     \
  VGPU_EXPORT CUresult CUDAAPI cuMemsetD2D##bits##_v2(CUdeviceptr d, size_t pitch, type value, size_t width,            \
                                                      size_t height) {                                                  \
    return fillIn(nullptr, d, pitch, value, element, width, height);                                                    \
  }                                                                                                                     \
  VGPU_EXPORT CUresult CUDAAPI cuMemsetD2D##bits##Async(CUdeviceptr d, size_t pitch, type value, size_t width,          \
                                                        size_t height, CUstream stream) {                               \
    return fillIn(stream, d, pitch, value, element, width, height);                                                     \
  }
FILL(8, unsigned char, 1)
FILL(16, unsigned short, 2)
FILL(32, unsigned int, 4)
#undef FILL

VGPU_EXPORT CUresult CUDAAPI cuMemcpy2D_v2(const CUDA_MEMCPY2D* copy) { return copy2D(copy, nullptr, waits); }
VGPU_EXPORT CUresult CUDAAPI cuMemcpy2DUnaligned_v2(const CUDA_MEMCPY2D* copy) { return copy2D(copy, nullptr, waits); }
VGPU_EXPORT CUresult CUDAAPI cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D* copy, CUstream stream) { return copy2D(copy, stream, returns); }
VGPU_EXPORT CUresult CUDAAPI cuMemcpy3D_v2(const CUDA_MEMCPY3D* copy) { return copy3D(copy, nullptr, waits); }
VGPU_EXPORT CUresult CUDAAPI cuMemcpy3DAsync_v2(const CUDA_MEMCPY3D* copy, CUstream stream) { return copy3D(copy, stream, returns); }

VGPU_EXPORT CUresult CUDAAPI cuMemcpy3DPeer(const CUDA_MEMCPY3D_PEER* copy) { return copyPeers(copy, nullptr, waits); }
VGPU_EXPORT CUresult CUDAAPI cuMemcpy3DPeerAsync(const CUDA_MEMCPY3D_PEER* copy, CUstream stream) {
  return copyPeers(copy, stream, returns);
}

#define ROW(name, parameters, stream, completion, destination, source) \
  VGPU_EXPORT CUresult CUDAAPI name parameters { return copyRow(stream, destination, source, n, completion); }
ROW(cuMemcpyHtoA_v2, (CUarray d, size_t x, const void* s, size_t n), nullptr, waits, inArray(d, x), inMemory(toWire(s)))
ROW(cuMemcpyAtoH_v2, (void* d, CUarray s, size_t x, size_t n), nullptr, waits, inMemory(toWire(d)), inArray(s, x))
ROW(cuMemcpyHtoAAsync_v2, (CUarray d, size_t x, const void* s, size_t n, CUstream on), on, returns, inArray(d, x),
    inMemory(toWire(s)))
ROW(cuMemcpyAtoHAsync_v2, (void* d, CUarray s, size_t x, size_t n, CUstream on), on, returns, inMemory(toWire(d)),
    inArray(s, x))
ROW(cuMemcpyDtoA_v2, (CUarray d, size_t x, CUdeviceptr s, size_t n), nullptr, waits, inArray(d, x), inMemory(s))
ROW(cuMemcpyAtoD_v2, (CUdeviceptr d, CUarray s, size_t x, size_t n), nullptr, waits, inMemory(d), inArray(s, x))
ROW(cuMemcpyAtoA_v2, (CUarray d, size_t to, CUarray s, size_t from, size_t n), nullptr, waits, inArray(d, to),
    inArray(s, from))
#undef ROW

}  // extern "C"
