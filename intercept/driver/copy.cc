// Copies and fills: some forty entries, implemented by four functions.
#include "intercept/driver/shared.h"

namespace vgpu::client {

namespace {

bool isOnDevice(Thread& thread, uint64_t address) {
  if (inMappedArena(address)) return thread.session.virtualMemory.locate(address, 1) == Where::device;
  return inDeviceArenas(address) || thread.session.variables.at(address);
}

// Whether the program has asked that synchronous operations on this memory are complete when they return (SYNC_MEMOPS).
bool alwaysWaits(Thread& thread, const CopyEnd& end) {
  if ((thread.session.contexts.flagsOf(thread.owner()) & CU_CTX_SYNC_MEMOPS) != 0) return true;
  return !end.isArray() && thread.session.memory.isSynchronizing(end.address());
}

// The end of a blocking copy. CUDA prints kernels' output here, so if the program's kernels print, the copy waits for the GPU as CUDA's
// does, even if the program's bytes were read long before the GPU executes the copy.
CUresult blockingCopyEnded(Thread& thread, uint64_t stream, const CopyEnd& to, const CopyEnd& from, bool insideDevice,
                           CUresult result) {
  if (result != CUDA_SUCCESS) return result;
  if (alwaysWaits(thread, to) || alwaysWaits(thread, from)) return synchronizeStream(thread, stream);
  if (!thread.session.output.isExpected()) return CUDA_SUCCESS;
  if (!insideDevice) return synchronizeStream(thread, stream);
  thread.session.output.deliver(thread, thread.deviceOf(stream));
  return CUDA_SUCCESS;
}

// The box's first byte in memory. If pitch or height is 0, rows or slices are contiguous. Returns an invalid end if the box exceeds the
// address space, or if a slice has fewer rows than the box.
CopyEnd insideSlices(const CUDA_MEMCPY3D& copy, uint64_t address, uint64_t pitch, uint64_t height, uint64_t x, uint64_t y, uint64_t z) {
  uint64_t least, rows, slice, beforeSlice, beforeRow, begin;
  if (__builtin_add_overflow(x, copy.WidthInBytes, &least) || __builtin_add_overflow(y, copy.Height, &rows)) return {};
  if (pitch == 0) pitch = least;
  if (height != 0 && height < rows && copy.Depth > 1) return {};
  if (__builtin_mul_overflow(pitch, height != 0 ? height : rows, &slice) || __builtin_mul_overflow(z, slice, &beforeSlice) ||
      __builtin_mul_overflow(y, pitch, &beforeRow) || __builtin_add_overflow(beforeSlice, beforeRow, &begin) ||
      __builtin_add_overflow(begin, x, &begin) || __builtin_add_overflow(begin, address, &begin))
    return {};
  return CopyEnd::memory(begin, pitch, slice);
}

// As insideSlices(). Fast path: most boxes are one slice that starts at its beginning, where the layout of slices does not matter.
[[gnu::always_inline]] inline CopyEnd inMemory(const CUDA_MEMCPY3D& copy, uint64_t address, uint64_t pitch, uint64_t height, uint64_t x,
                                               uint64_t y, uint64_t z) {
  if ((x | y | z) == 0 && copy.Depth == 1 && pitch != 0) [[likely]] return CopyEnd::memory(address, pitch);
  return insideSlices(copy, address, pitch, height, x, y, z);
}

// The ends that the program declares to be device memory.
Ends endsOf(const CUDA_MEMCPY3D& copy) {
  return {copy.dstMemoryType == CU_MEMORYTYPE_DEVICE, copy.srcMemoryType == CU_MEMORYTYPE_DEVICE};
}

CopyEnd destinationOf(const CUDA_MEMCPY3D& copy) {
  if (copy.dstMemoryType == CU_MEMORYTYPE_ARRAY) return CopyEnd::array(toWire(copy.dstArray), copy.dstXInBytes, copy.dstY, copy.dstZ);
  uint64_t address = copy.dstMemoryType == CU_MEMORYTYPE_HOST ? toWire(copy.dstHost) : copy.dstDevice;
  return inMemory(copy, address, copy.dstPitch, copy.dstHeight, copy.dstXInBytes, copy.dstY, copy.dstZ);
}

CopyEnd sourceOf(const CUDA_MEMCPY3D& copy) {
  if (copy.srcMemoryType == CU_MEMORYTYPE_ARRAY) return CopyEnd::array(toWire(copy.srcArray), copy.srcXInBytes, copy.srcY, copy.srcZ);
  uint64_t address = copy.srcMemoryType == CU_MEMORYTYPE_HOST ? toWire(copy.srcHost) : copy.srcDevice;
  return inMemory(copy, address, copy.srcPitch, copy.srcHeight, copy.srcXInBytes, copy.srcY, copy.srcZ);
}

// The fields that all forms of the description have.
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

// Whether rows extend beyond their pitch.
bool areTooNarrow(const CUDA_MEMCPY3D& copy, const CopyEnd& to, const CopyEnd& from) {
  auto isOne = [&](auto& end, uint64_t x) { return !end.isArray() && (end.pitch < x || end.pitch - x < copy.WidthInBytes); };
  return isOne(to, copy.dstXInBytes) || isOne(from, copy.srcXInBytes);
}

bool isEnd(CUmemorytype type) { return type >= CU_MEMORYTYPE_HOST && type <= CU_MEMORYTYPE_UNIFIED; }

// Describes an end in the program's terms. `isAny`: the program has not said in which memory it lies.
void describe(const CopyEnd& end, Where where, bool isAny, CUmemorytype& type, const void** host, CUdeviceptr& device, CUarray& array,
              size_t& pitch) {
  type = end.isArray() ? CU_MEMORYTYPE_ARRAY : isAny ? CU_MEMORYTYPE_UNIFIED : where == Where::device ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST;
  if (type == CU_MEMORYTYPE_ARRAY) array = fromWire<CUarray>(end.place.number());
  if (type == CU_MEMORYTYPE_DEVICE || type == CU_MEMORYTYPE_UNIFIED) device = end.address();
  if (type == CU_MEMORYTYPE_HOST) *host = fromWire<const void*>(end.address());
  pitch = end.pitch;
}

// The graph node of a copy of one row that the program described by its two ends alone.
CUresult describeEnds(Session& session, const CopyEnd& to, const CopyEnd& from, const BoxSize& size, Completion completion, Ends ends,
                      NodeWork& node) {
  if (completion == Completion::synchronous) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  if (size.width == 0) return node = EmptyWork{}, CUDA_SUCCESS;
  CopyWork& work = node.emplace<CopyWork>();
  work.to = to;
  work.from = from;
  work.size = size;
  if (CUresult bad = checkCopy(session, to, from, size, ends, work.toWhere, work.fromWhere)) return bad;
  CUDA_MEMCPY3D& given = work.given;
  const void* host = nullptr;
  const bool isAny = !ends.destinationOnGpu && !ends.sourceOnGpu && !to.isArray() && !from.isArray();
  describe(to, work.toWhere, isAny, given.dstMemoryType, &host, given.dstDevice, given.dstArray, given.dstPitch);
  given.dstHost = const_cast<void*>(host);
  describe(from, work.fromWhere, isAny, given.srcMemoryType, &given.srcHost, given.srcDevice, given.srcArray, given.srcPitch);
  given.dstXInBytes = to.x;
  given.srcXInBytes = from.x;
  given.WidthInBytes = size.width;
  given.Height = given.Depth = 1;
  return CUDA_SUCCESS;
}

}  // namespace

CUresult copy1D(uint64_t destination, uint64_t source, uint64_t bytes, CUstream hStream, Completion completion, Ends ends) {
  auto describe = [&](Thread& thread, NodeWork& work) {
    return describeEnds(thread.session, CopyEnd::memory(destination), CopyEnd::memory(source), {bytes, 1, 1}, completion, ends, work);
  };
  return inStream(hStream, describe, [&](Thread& thread, uint64_t stream) -> CUresult {
    CUresult result = copyBytes(thread, destination, source, bytes, stream, completion, ends);
    if (completion == Completion::asynchronous) return result;
    return blockingCopyEnded(thread, stream, CopyEnd::memory(destination), CopyEnd::memory(source),
                             isOnDevice(thread, destination) && isOnDevice(thread, source), result);
  });
}

CUresult fill(CUstream hStream, CUdeviceptr destination, uint64_t pitch, uint32_t value, uint32_t elementBytes, uint64_t width,
              uint64_t height, Completion completion) {
  auto describe = [&](Thread& thread, NodeWork& work) -> CUresult {
    if (width == 0 || height == 0) return work = EmptyWork{}, CUDA_SUCCESS;
    if (CUresult bad = checkFill(thread.session, destination, pitch, elementBytes, width, height)) {
      const bool byHost = isFilledByHost(thread.session, destination, pitch, elementBytes, width, height);
      return byHost ? CUDA_ERROR_NOT_SUPPORTED : bad;  // as a graph's copy to such memory (docs/remote.md)
    }
    work = FillWork{{destination, pitch, value, elementBytes, width, height}};
    return CUDA_SUCCESS;
  };
  return inStream(hStream, describe, [&](Thread& thread, uint64_t stream) -> CUresult {
    CUresult result = fillRows(thread, destination, pitch, value, elementBytes, width, height, stream);
    if (result == CUDA_ERROR_INVALID_VALUE && isFilledByHost(thread.session, destination, pitch, elementBytes, width, height))
      result = postHostFunction(thread, stream, [=](CUresult) { fillOnHost(destination, pitch, value, elementBytes, width, height); });
    if (result != CUDA_SUCCESS || completion == Completion::asynchronous) return result;
    // The host may read its own memory immediately. Its accesses to managed memory are detected (managed-memory.h).
    const bool waits = !isOnDevice(thread, destination) || alwaysWaits(thread, CopyEnd::memory(destination));
    return waits && width != 0 && height != 0 ? synchronizeStream(thread, stream) : CUDA_SUCCESS;
  });
}

CUresult copy3D(const CUDA_MEMCPY3D* copy, CUstream hStream, Completion completion) {
  if (copy == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const bool isEmpty = copy->WidthInBytes == 0 || copy->Height == 0 || copy->Depth == 0;
  if (!isEmpty && (!isEnd(copy->dstMemoryType) || !isEnd(copy->srcMemoryType))) return CUDA_ERROR_INVALID_VALUE;
  auto describe = [&](Thread& thread, NodeWork& work) -> CUresult {
    if (completion == Completion::synchronous) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    if (isEmpty) return work = EmptyWork{}, CUDA_SUCCESS;
    return describeCopy(thread.session, *copy, work.emplace<CopyWork>());
  };
  return inStream(hStream, describe, [&](Thread& thread, uint64_t stream) -> CUresult {
    CopyEnd to = destinationOf(*copy), from = sourceOf(*copy);
    if (!isEmpty && areTooNarrow(*copy, to, from)) return CUDA_ERROR_INVALID_VALUE;
    CUresult result = copyBox(thread, to, from, {copy->WidthInBytes, copy->Height, copy->Depth}, stream, completion, endsOf(*copy));
    if (completion == Completion::asynchronous) return result;
    auto isDevice = [](CUmemorytype type) { return type == CU_MEMORYTYPE_DEVICE || type == CU_MEMORYTYPE_ARRAY; };
    return blockingCopyEnded(thread, stream, to, from, isDevice(copy->dstMemoryType) && isDevice(copy->srcMemoryType), result);
  });
}

CUresult describeCopy(Session& session, const CUDA_MEMCPY3D& copy, CopyWork& work) {
  BoxSize size{copy.WidthInBytes, copy.Height, copy.Depth};
  if (size.width == 0 || size.height == 0 || size.depth == 0) return CUDA_ERROR_INVALID_VALUE;
  work = {copy, destinationOf(copy), sourceOf(copy), size};
  if (areTooNarrow(copy, work.to, work.from)) return CUDA_ERROR_INVALID_VALUE;
  return checkCopy(session, work.to, work.from, size, endsOf(copy), work.toWhere, work.fromWhere);
}

// All devices share one address space, so the devices that the program names for the two ends do not matter.
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
  CUDA_MEMCPY3D deep = common(*copy);
  deep.Depth = 1;
  return copy3D(&deep, stream, completion);
}

CUresult copyRow(const CopyEnd& destination, const CopyEnd& source, uint64_t bytes, CUstream hStream, Completion completion) {
  auto describe = [&](Thread& thread, NodeWork& work) {
    return describeEnds(thread.session, destination, source, {bytes, 1, 1}, completion, {}, work);
  };
  return inStream(hStream, describe, [&](Thread& thread, uint64_t stream) -> CUresult {
    CUresult result = copyBox(thread, destination, source, {bytes, 1, 1}, stream, completion);
    if (completion == Completion::asynchronous) return result;
    auto isDevice = [&](const CopyEnd& end) { return end.isArray() || isOnDevice(thread, end.address()); };
    return blockingCopyEnded(thread, stream, destination, source, isDevice(destination) && isDevice(source), result);
  });
}

}  // namespace vgpu::client
