// By hand: copies of boxes, between arrays, the session's memory and staging slabs. The driver checks places in an array;
// memory and slabs are checked here.
#include <algorithm>

#include "cuda-handlers.h"
#include "vgpu/api/corner.h"

namespace vgpu::stub {

namespace {

// One end of a copy: the fields of that end.
struct End {
  CUmemorytype& type;
  CUdeviceptr& device;
  CUarray& array;
  size_t &x, &y, &z, &pitch, &height;
};
End destinationOf(CUDA_MEMCPY3D& c) {
  return {c.dstMemoryType, c.dstDevice, c.dstArray, c.dstXInBytes, c.dstY, c.dstZ, c.dstPitch, c.dstHeight};
}
End sourceOf(CUDA_MEMCPY3D& c) {
  return {c.srcMemoryType, c.srcDevice, c.srcArray, c.srcXInBytes, c.srcY, c.srcZ, c.srcPitch, c.srcHeight};
}

// False for a box with a side of nothing, or one that could overflow a sum.
bool setSize(CUDA_MEMCPY3D& copy, uint64_t width, uint64_t height, uint64_t depth) {
  copy.WidthInBytes = width;
  copy.Height = height;
  copy.Depth = depth;
  return std::ranges::all_of(std::initializer_list{width, height, depth},
                             [](uint64_t side) { return side != 0 && side <= deviceArenaBytes; });
}

CUresult setMemory(Execution& on, End end, const api::Corner& corner, const CUDA_MEMCPY3D& copy) {
  uint64_t pitch = copy.Height > 1 || copy.Depth > 1 ? corner.pitch : copy.WidthInBytes;
  if (pitch < copy.WidthInBytes || pitch > deviceArenaBytes) return CUDA_ERROR_INVALID_VALUE;
  uint64_t slice = copy.Depth > 1 ? corner.slicePitch : pitch;
  if (slice > deviceArenaBytes || slice % pitch != 0) return CUDA_ERROR_INVALID_VALUE;
  unsigned __int128 bytes = static_cast<unsigned __int128>(copy.Depth - 1) * slice +
                            static_cast<unsigned __int128>(copy.Height - 1) * pitch + copy.WidthInBytes;
  if (bytes > deviceArenaBytes || !on.ownsMemory(corner.address, static_cast<uint64_t>(bytes)))
    return CUDA_ERROR_INVALID_VALUE;
  end.type = CU_MEMORYTYPE_UNIFIED;
  end.device = corner.address;
  end.pitch = pitch;
  end.height = copy.Depth > 1 ? slice / pitch : copy.Height;
  return CUDA_SUCCESS;
}

// An array, or memory where that is 0.
CUresult setEnd(Execution& on, End end, uint64_t array, const api::Corner& corner, const CUDA_MEMCPY3D& copy) {
  if (array == 0) return setMemory(on, end, corner, copy);
  end.type = CU_MEMORYTYPE_ARRAY;
  end.array = fromWire<CUarray>(on.handles.get(api::Kind::ARRAY, array));
  end.x = corner.x;
  end.y = corner.row;
  end.z = corner.slice;
  return CUDA_SUCCESS;
}

// The slab's end of a copy, where rows and slices lie packed; its pointer is the caller's to set. False if they do not fit.
template <typename Params>
bool setSlab(End end, CUDA_MEMCPY3D& copy, const Params& p) {
  uint64_t depth = std::max<uint64_t>(p.getDepth(), 1);
  if (p.getSlab() >= slabCount || !setSize(copy, p.getWidthBytes(), p.getHeight(), depth)) return false;
  if (copy.WidthInBytes > slabBytes || copy.Height > slabBytes / copy.WidthInBytes ||
      copy.Depth > slabBytes / (copy.WidthInBytes * copy.Height))
    return false;
  end.type = CU_MEMORYTYPE_HOST;
  end.pitch = copy.WidthInBytes;
  end.height = copy.Height;
  return true;
}

}  // namespace

CUresult copyBox(Execution& on, const api::FrameReader<api::Cuda::CopyBoxParams>& p, Reply&) {
  CUDA_MEMCPY3D copy{};
  if (!setSize(copy, p.getWidthBytes(), p.getHeight(), p.getDepth())) return CUDA_ERROR_INVALID_VALUE;
  if (CUresult bad = setEnd(on, destinationOf(copy), p.getToArray(), p.getTo<api::Corner>(), copy)) return bad;
  if (CUresult bad = setEnd(on, sourceOf(copy), p.getFromArray(), p.getFrom<api::Corner>(), copy)) return bad;
  return on.driver.cuMemcpy3DAsync_v2(&copy, on.stream(p.getStream()));
}

CUresult copyBoxFromSlab(Execution& on, const api::FrameReader<api::Cuda::CopyBoxFromSlabParams>& p, Reply&) {
  CUDA_MEMCPY3D copy{};
  if (!setSlab(sourceOf(copy), copy, p)) return CUDA_ERROR_INVALID_VALUE;
  copy.srcHost = on.shared().slab(p.getSlab());
  CUstream stream = on.stream(p.getStream());
  CUresult result = setEnd(on, destinationOf(copy), p.getToArray(), p.getTo<api::Corner>(), copy);
  if (result == CUDA_SUCCESS) result = on.driver.cuMemcpy3DAsync_v2(&copy, stream);
  CUresult freed = result == CUDA_SUCCESS ? on.freeSlabAfter(stream, p.getSlab()) : result;
  if (freed != CUDA_SUCCESS) on.shared().slabState(p.getSlab()).busy.store(0, std::memory_order_release);
  return result;
}

CUresult copyBoxToSlab(Execution& on, const api::FrameReader<api::Cuda::CopyBoxToSlabParams>& p, Reply& reply) {
  CUDA_MEMCPY3D copy{};
  if (!setSlab(destinationOf(copy), copy, p)) return CUDA_ERROR_INVALID_VALUE;
  copy.dstHost = on.shared().slab(p.getSlab());
  CUstream stream = on.stream(p.getStream());
  if (CUresult bad = setEnd(on, sourceOf(copy), p.getFromArray(), p.getFrom<api::Corner>(), copy)) return bad;
  if (CUresult error = on.driver.cuMemcpy3DAsync_v2(&copy, stream)) return error;
  reply.leaveToGpu();
  return on.signal(stream, on.shared().slot(on.slotIndex()).done, on.sequence());
}

}  // namespace vgpu::stub
