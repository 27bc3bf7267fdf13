// By hand: arrays, their levels, and copies of which an end is an array. The driver checks places in an array; memory is
// checked here.
#include <algorithm>

#include "cuda-handlers.h"
#include "vgpu/api/array-format.h"

namespace vgpu::stub {

namespace {

CUDA_ARRAY3D_DESCRIPTOR readShape(api::ArrayShape::Reader from) {
  return {from.getWidth(),    from.getHeight(), from.getDepth(), static_cast<CUarray_format>(from.getFormat()),
          from.getChannels(), from.getFlags()};
}

// An array whose bytes no snapshot could keep is not made.
bool canBeSaved(const CUDA_ARRAY3D_DESCRIPTOR& shape) {
  return channelBytes(shape.Format) != 0 && (shape.Flags & (CUDA_ARRAY3D_SPARSE | CUDA_ARRAY3D_DEFERRED_MAPPING)) == 0;
}

ArrayInfo infoOf(Execution& on, const CUDA_ARRAY3D_DESCRIPTOR& shape, uint64_t mipmap) {
  return {on.device(), mipmap, uint64_t{shape.Width} * shape.NumChannels * channelBytes(shape.Format), std::max<uint64_t>(shape.Height, 1),
          std::max<uint64_t>(shape.Depth, 1)};
}

// One end of a copy: sets the fields of that end of `copy`. CUDA's answer.
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

void setArray(Execution& on, End end, uint64_t handle, api::Corner::Reader corner) {
  end.type = CU_MEMORYTYPE_ARRAY;
  end.array = fromWire<CUarray>(on.handles.get(api::Kind::ARRAY, handle));
  end.x = corner.getX();
  end.y = corner.getRow();
  end.z = corner.getSlice();
}

CUresult setMemory(Execution& on, End end, api::Corner::Reader corner, const CUDA_MEMCPY3D& copy) {
  uint64_t pitch = copy.Height > 1 || copy.Depth > 1 ? corner.getPitch() : copy.WidthInBytes;
  uint64_t slice = copy.Depth > 1 ? corner.getSlicePitch() : pitch * copy.Height;
  if (pitch < copy.WidthInBytes || pitch > deviceArenaBytes || slice > deviceArenaBytes || slice % pitch != 0)
    return CUDA_ERROR_INVALID_VALUE;
  unsigned __int128 bytes = static_cast<unsigned __int128>(copy.Depth - 1) * slice +
                            static_cast<unsigned __int128>(copy.Height - 1) * pitch + copy.WidthInBytes;
  if (bytes > deviceArenaBytes || !on.ownsMemory(corner.getAddress(), static_cast<uint64_t>(bytes)))
    return CUDA_ERROR_INVALID_VALUE;
  end.type = CU_MEMORYTYPE_UNIFIED;
  end.device = corner.getAddress();
  end.pitch = pitch;
  end.height = slice / pitch;
  return CUDA_SUCCESS;
}

// A box with no side of nothing, and none that could overflow a sum.
bool isBox(uint64_t width, uint64_t height, uint64_t depth) {
  constexpr uint64_t most = uint64_t{1} << 32;
  return width != 0 && width <= most && height != 0 && height <= most && depth != 0 && depth <= most;
}

// Rows packed in a slab: the other end is to be set.
CUDA_MEMCPY3D tileOf(uint64_t width, uint64_t height) {
  CUDA_MEMCPY3D copy{};
  copy.WidthInBytes = copy.srcPitch = copy.dstPitch = width;
  copy.Height = height;
  copy.Depth = 1;
  copy.srcMemoryType = copy.dstMemoryType = CU_MEMORYTYPE_HOST;
  return copy;
}

bool isTile(uint32_t slab, uint64_t width, uint64_t height) {
  return slab < slabCount && width != 0 && height != 0 && width <= slabBytes && height <= slabBytes / width;
}

}  // namespace

CUresult arrayCreate(Execution& on, const api::FrameReader<api::Cuda::ArrayCreateParams>& p, Answer&) {
  CUDA_ARRAY3D_DESCRIPTOR shape = readShape(p.getShape());
  CUarray array = nullptr;
  if (!canBeSaved(shape)) return CUDA_ERROR_NOT_SUPPORTED;
  if (CUresult error = on.driver.cuArray3DCreate_v2(&array, &shape)) return error;
  on.handles.add(api::Kind::ARRAY, p.getArray(), toWire(array));
  on.arrays[p.getArray()] = infoOf(on, shape, 0);
  return CUDA_SUCCESS;
}

CUresult arrayDestroy(Execution& on, const api::FrameReader<api::Cuda::ArrayDestroyParams>& p, Answer&) {
  auto array = fromWire<CUarray>(on.handles.get(api::Kind::ARRAY, p.getArray()));
  if (on.arrays.at(p.getArray()).mipmap != 0) return CUDA_ERROR_INVALID_HANDLE;
  on.handles.remove(api::Kind::ARRAY, p.getArray());
  on.arrays.erase(p.getArray());
  return on.afterAllWork([&driver = on.driver, array] { return driver.cuArrayDestroy(array); });
}

CUresult mipmapCreate(Execution& on, const api::FrameReader<api::Cuda::MipmapCreateParams>& p, Answer&) {
  CUDA_ARRAY3D_DESCRIPTOR shape = readShape(p.getShape());
  CUmipmappedArray mipmap = nullptr;
  if (!canBeSaved(shape)) return CUDA_ERROR_NOT_SUPPORTED;
  if (CUresult error = on.driver.cuMipmappedArrayCreate(&mipmap, &shape, p.getLevels())) return error;
  on.handles.add(api::Kind::MIPMAPPED_ARRAY, p.getMipmap(), toWire(mipmap));
  return CUDA_SUCCESS;
}

CUresult mipmapLevel(Execution& on, const api::FrameReader<api::Cuda::MipmapLevelParams>& p, Answer& answer) {
  auto mipmap = fromWire<CUmipmappedArray>(on.handles.get(api::Kind::MIPMAPPED_ARRAY, p.getMipmap()));
  CUarray level = nullptr;
  CUDA_ARRAY3D_DESCRIPTOR shape{};
  if (CUresult error = on.driver.cuMipmappedArrayGetLevel(&level, mipmap, p.getIndex())) return error;
  if (CUresult error = on.driver.cuArray3DGetDescriptor_v2(&shape, level)) return error;
  on.handles.add(api::Kind::ARRAY, p.getLevel(), toWire(level));
  on.arrays[p.getLevel()] = infoOf(on, shape, p.getMipmap());
  auto told = answer.init<api::Cuda::MipmapLevelResults>().initShape();
  told.setWidth(shape.Width);
  told.setHeight(shape.Height);
  told.setDepth(shape.Depth);
  told.setFormat(shape.Format);
  told.setChannels(shape.NumChannels);
  told.setFlags(shape.Flags);
  return CUDA_SUCCESS;
}

CUresult mipmapDestroy(Execution& on, const api::FrameReader<api::Cuda::MipmapDestroyParams>& p, Answer&) {
  uint64_t handle = p.getMipmap();
  auto mipmap = fromWire<CUmipmappedArray>(on.handles.get(api::Kind::MIPMAPPED_ARRAY, handle));
  on.handles.remove(api::Kind::MIPMAPPED_ARRAY, handle);
  std::erase_if(on.arrays, [&](auto& array) {
    if (array.second.mipmap != handle) return false;
    on.handles.remove(api::Kind::ARRAY, array.first);
    return true;
  });
  return on.afterAllWork([&driver = on.driver, mipmap] { return driver.cuMipmappedArrayDestroy(mipmap); });
}

CUresult copyArray(Execution& on, const api::FrameReader<api::Cuda::CopyArrayParams>& p, Answer&) {
  CUDA_MEMCPY3D copy{};
  copy.WidthInBytes = p.getWidthBytes();
  copy.Height = p.getHeight();
  copy.Depth = p.getDepth();
  if (!isBox(copy.WidthInBytes, copy.Height, copy.Depth)) return CUDA_ERROR_INVALID_VALUE;
  auto set = [&](End end, uint64_t array, api::Corner::Reader corner) {
    if (array == 0) return setMemory(on, end, corner, copy);
    setArray(on, end, array, corner);
    return CUDA_SUCCESS;
  };
  if (CUresult bad = set(destinationOf(copy), p.getToArray(), p.getTo())) return bad;
  if (CUresult bad = set(sourceOf(copy), p.getFromArray(), p.getFrom())) return bad;
  return on.driver.cuMemcpy3DAsync_v2(&copy, on.stream(p.getStream()));
}

CUresult copyArrayFromSlab(Execution& on, const api::FrameReader<api::Cuda::CopyArrayFromSlabParams>& p, Answer&) {
  if (!isTile(p.getSlab(), p.getWidthBytes(), p.getHeight())) return CUDA_ERROR_INVALID_VALUE;
  CUstream stream = on.stream(p.getStream());
  CUDA_MEMCPY3D copy = tileOf(p.getWidthBytes(), p.getHeight());
  copy.srcHost = on.shared().slab(p.getSlab());
  setArray(on, destinationOf(copy), p.getToArray(), p.getTo());
  CUresult result = on.driver.cuMemcpy3DAsync_v2(&copy, stream);
  CUresult freed = result == CUDA_SUCCESS ? on.freeSlabAfter(stream, p.getSlab()) : result;
  if (freed != CUDA_SUCCESS) on.shared().slabState(p.getSlab()).busy.store(0, std::memory_order_release);
  return result;
}

CUresult copyArrayToSlab(Execution& on, const api::FrameReader<api::Cuda::CopyArrayToSlabParams>& p, Answer& answer) {
  if (!isTile(p.getSlab(), p.getWidthBytes(), p.getHeight())) return CUDA_ERROR_INVALID_VALUE;
  CUstream stream = on.stream(p.getStream());
  CUDA_MEMCPY3D copy = tileOf(p.getWidthBytes(), p.getHeight());
  copy.dstHost = on.shared().slab(p.getSlab());
  setArray(on, sourceOf(copy), p.getFromArray(), p.getFrom());
  if (CUresult error = on.driver.cuMemcpy3DAsync_v2(&copy, stream)) return error;
  answer.leaveToGpu();
  return on.signal(stream, on.shared().slot(on.slotIndex()).done, on.stamp());
}

}  // namespace vgpu::stub
