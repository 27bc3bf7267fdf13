// Batches of copies, copied one after the other in their stream: CUDA leaves the order within a batch open.
#include <algorithm>
#include <cstdint>
#include <functional>

#include "intercept/driver/shared.h"

namespace vgpu::client {

namespace {

bool isOrder(CUmemcpySrcAccessOrder order) {
  return order >= CU_MEMCPY_SRC_ACCESS_ORDER_STREAM && order <= CU_MEMCPY_SRC_ACCESS_ORDER_ANY;
}

// Whether `location` is valid as a hint for the place of managed memory; naming none is valid too.
bool isHint(Thread& thread, const CUmemLocation& location) {
  if (location.type == CU_MEM_LOCATION_TYPE_DEVICE) return thread.session.hasDevice(location.id);
  return location.type >= CU_MEM_LOCATION_TYPE_INVALID && location.type <= CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT;
}

bool isAttribute(Thread& thread, const CUmemcpyAttributes& attribute) {
  const bool areFlags = (attribute.flags & ~unsigned{CU_MEMCPY_FLAG_PREFER_OVERLAP_WITH_COMPUTE}) == 0;
  return isOrder(attribute.srcAccessOrder) && areFlags && isHint(thread, attribute.srcLocHint) && isHint(thread, attribute.dstLocHint);
}

// A batch cannot be captured; the attempt does not invalidate the capture.
CUresult refuseCaptured(CUstream stream) {
  CUstreamCaptureStatus status;
  if (CUresult error = cuStreamIsCapturing(stream, &status)) return error;
  return status == CU_STREAM_CAPTURE_STATUS_NONE ? CUDA_SUCCESS : CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
}

// Copies by `copy`, reading `source` in the given order. Pageable memory is read during the call, so for stream order the stream is
// synchronized first. Other memory is read in stream order, so for "during the call" the stream is synchronized afterwards.
template <typename Copy>
CUresult copyInOrder(CUstream stream, uint64_t source, uint64_t bytes, CUmemcpySrcAccessOrder order, Copy&& copy) {
  bool isPageable = false;
  CUresult result = enter([&](Thread& thread) {
    const Where where = locate(thread.session, source, bytes);
    isPageable = where == Where::pageable || where == Where::hosts;
    return CUDA_SUCCESS;
  });
  if (result == CUDA_SUCCESS && isPageable && order == CU_MEMCPY_SRC_ACCESS_ORDER_STREAM) result = cuStreamSynchronize(stream);
  if (result == CUDA_SUCCESS) result = copy();
  const bool isWaitedFor = !isPageable && order == CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL;
  return result == CUDA_SUCCESS && isWaitedFor ? cuStreamSynchronize(stream) : result;
}

// One end of a three-dimensional copy, in bytes.
struct Operand {
  CUmemorytype type;
  CUdeviceptr address = 0;
  CUarray array = nullptr;
  uint64_t x = 0, row = 0, slice = 0, pitch = 0, height = 0;
};

// Extents and row lengths count elements: an array's elements if an end is an array, else bytes.
CUresult elementBytesOf(const CUDA_MEMCPY3D_BATCH_OP& op, uint64_t& bytes) {
  bytes = 0;
  for (auto* end : {&op.src, &op.dst}) {
    if (end->type == CU_MEMCPY_OPERAND_TYPE_POINTER) continue;
    if (end->type != CU_MEMCPY_OPERAND_TYPE_ARRAY) return CUDA_ERROR_INVALID_VALUE;
    CUresult bad = enter([&](Thread& thread) -> CUresult {
      auto* array = thread.session.handles.find<api::Kind::ARRAY>(toWire(end->op.array.array));
      if (array == nullptr) return CUDA_ERROR_INVALID_HANDLE;
      const uint64_t unit = array->layout->unitBytes;
      return bytes == 0 || bytes == unit ? (bytes = unit, CUDA_SUCCESS) : CUDA_ERROR_INVALID_VALUE;
    });
    if (bad != CUDA_SUCCESS) return bad;
  }
  if (bytes == 0) bytes = 1;
  return CUDA_SUCCESS;
}

Operand operandOf(const CUmemcpy3DOperand& end, const CUextent3D& extent, uint64_t elementBytes) {
  if (end.type == CU_MEMCPY_OPERAND_TYPE_ARRAY) {
    auto& at = end.op.array.offset;
    return {.type = CU_MEMORYTYPE_ARRAY, .array = end.op.array.array, .x = at.x * elementBytes, .row = at.y, .slice = at.z};
  }
  auto& rows = end.op.ptr;
  uint64_t length = rows.rowLength == 0 ? extent.width : rows.rowLength, height = rows.layerHeight == 0 ? extent.height : rows.layerHeight;
  return {.type = CU_MEMORYTYPE_UNIFIED, .address = rows.ptr, .pitch = length * elementBytes, .height = height};
}

// Whether rows and slices of memory are at least as long as the extent.
bool isWide(const CUmemcpy3DOperand& end, const CUextent3D& extent) {
  if (end.type != CU_MEMCPY_OPERAND_TYPE_POINTER) return true;
  auto& rows = end.op.ptr;
  return (rows.rowLength == 0 || rows.rowLength >= extent.width) && (rows.layerHeight == 0 || rows.layerHeight >= extent.height);
}

CUresult checkOne(const CUDA_MEMCPY3D_BATCH_OP& op) {
  uint64_t elementBytes;
  if (!isOrder(op.srcAccessOrder) || (op.flags & ~CU_MEMCPY_FLAG_PREFER_OVERLAP_WITH_COMPUTE) != 0) return CUDA_ERROR_INVALID_VALUE;
  const bool isEmpty = op.extent.width == 0 || op.extent.height == 0 || op.extent.depth == 0;
  if (isEmpty || !isWide(op.src, op.extent) || !isWide(op.dst, op.extent)) return CUDA_ERROR_INVALID_VALUE;
  return elementBytesOf(op, elementBytes);
}

// Copies an operation that has been checked.
CUresult copyOne(const CUDA_MEMCPY3D_BATCH_OP& op, CUstream stream) {
  uint64_t elementBytes;
  if (CUresult bad = elementBytesOf(op, elementBytes)) return bad;
  Operand from = operandOf(op.src, op.extent, elementBytes), to = operandOf(op.dst, op.extent, elementBytes);
  CUDA_MEMCPY3D copy{};
  copy.srcMemoryType = from.type, copy.srcDevice = from.address, copy.srcArray = from.array;
  copy.srcXInBytes = from.x, copy.srcY = from.row, copy.srcZ = from.slice, copy.srcPitch = from.pitch, copy.srcHeight = from.height;
  copy.dstMemoryType = to.type, copy.dstDevice = to.address, copy.dstArray = to.array;
  copy.dstXInBytes = to.x, copy.dstY = to.row, copy.dstZ = to.slice, copy.dstPitch = to.pitch, copy.dstHeight = to.height;
  copy.WidthInBytes = op.extent.width * elementBytes, copy.Height = op.extent.height, copy.Depth = op.extent.depth;
  return copyInOrder(stream, from.address, copy.WidthInBytes, op.srcAccessOrder, [&] { return copy3D(&copy, stream, returns); });
}

// Runs each copy and stores the index of the one that fails in `failed`, where the caller has stored SIZE_MAX for errors of the whole call.
template <typename Copy>
CUresult forEach(size_t count, size_t* failed, Copy&& copy) {
  for (size_t i = 0; i < count; ++i)
    if (CUresult bad = copy(i)) {
      if (failed != nullptr) *failed = i;
      return bad;
    }
  return CUDA_SUCCESS;
}

// Whether `numbers`, the first copies to which each attribute applies, starts with 0 and strictly increases.
bool areBeginnings(const size_t* numbers, size_t count, size_t batch) {
  if (numbers == nullptr || count == 0 || count > batch || numbers[0] != 0 || numbers[count - 1] >= batch) return false;
  return std::adjacent_find(numbers, numbers + count, std::greater_equal<>()) == numbers + count;
}

}  // namespace

CUresult copyBatch(const CUdeviceptr* dsts, const CUdeviceptr* srcs, const size_t* sizes, size_t count, const CUmemcpyAttributes* attrs,
                   const size_t* attrsIdxs, size_t numAttrs, size_t* failed, CUstream stream) {
  if (failed != nullptr) *failed = SIZE_MAX;
  if (dsts == nullptr || srcs == nullptr || sizes == nullptr || attrs == nullptr || isLegacy(stream) ||
      !areBeginnings(attrsIdxs, numAttrs, count))
    return CUDA_ERROR_INVALID_VALUE;
  if (CUresult bad = refuseCaptured(stream)) return bad;
  CUresult checked = enter([&](Thread& thread) {
    auto isRight = [&](const CUmemcpyAttributes& each) { return isAttribute(thread, each); };
    return std::all_of(attrs, attrs + numAttrs, isRight) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  });
  if (checked != CUDA_SUCCESS) return checked;
  size_t attribute = 0;
  return forEach(count, failed, [&](size_t i) -> CUresult {
    if (attribute + 1 < numAttrs && attrsIdxs[attribute + 1] == i) ++attribute;
    if (sizes[i] == 0) return CUDA_ERROR_INVALID_VALUE;
    return copyInOrder(stream, srcs[i], sizes[i], attrs[attribute].srcAccessOrder,
                       [&] { return copy1D(dsts[i], srcs[i], sizes[i], stream, returns, anywhere); });
  });
}

CUresult copyBatch3D(size_t count, const CUDA_MEMCPY3D_BATCH_OP* ops, size_t* failed, unsigned long long flags, CUstream stream) {
  if (failed != nullptr) *failed = SIZE_MAX;
  if (count == 0 || ops == nullptr || flags != 0 || isLegacy(stream)) return CUDA_ERROR_INVALID_VALUE;
  if (CUresult bad = refuseCaptured(stream)) return bad;
  if (CUresult bad = forEach(count, failed, [&](size_t i) { return checkOne(ops[i]); })) return bad;
  return forEach(count, failed, [&](size_t i) { return copyOne(ops[i], stream); });
}

}  // namespace vgpu::client
