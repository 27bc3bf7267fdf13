// By hand: arrays and their levels.
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

}  // namespace

CUresult arrayCreate(Execution& on, const api::FrameReader<api::Cuda::ArrayCreateParams>& p, Reply&) {
  CUDA_ARRAY3D_DESCRIPTOR shape = readShape(p.getShape());
  CUarray array = nullptr;
  if (!canBeSaved(shape)) return CUDA_ERROR_NOT_SUPPORTED;
  if (CUresult error = on.driver.cuArray3DCreate_v2(&array, &shape)) return error;
  on.handles.add(api::Kind::ARRAY, p.getArray(), toWire(array));
  on.arrays[p.getArray()] = infoOf(on, shape, 0);
  return CUDA_SUCCESS;
}

CUresult arrayDestroy(Execution& on, const api::FrameReader<api::Cuda::ArrayDestroyParams>& p, Reply&) {
  auto array = fromWire<CUarray>(on.handles.get(api::Kind::ARRAY, p.getArray()));
  if (on.arrays.at(p.getArray()).mipmap != 0) return CUDA_ERROR_INVALID_HANDLE;
  on.handles.remove(api::Kind::ARRAY, p.getArray());
  on.arrays.erase(p.getArray());
  return on.afterAllWork([&driver = on.driver, array] { return driver.cuArrayDestroy(array); });
}

CUresult mipmapCreate(Execution& on, const api::FrameReader<api::Cuda::MipmapCreateParams>& p, Reply&) {
  CUDA_ARRAY3D_DESCRIPTOR shape = readShape(p.getShape());
  CUmipmappedArray mipmap = nullptr;
  if (!canBeSaved(shape)) return CUDA_ERROR_NOT_SUPPORTED;
  if (CUresult error = on.driver.cuMipmappedArrayCreate(&mipmap, &shape, p.getLevels())) return error;
  on.handles.add(api::Kind::MIPMAPPED_ARRAY, p.getMipmap(), toWire(mipmap));
  return CUDA_SUCCESS;
}

CUresult mipmapLevel(Execution& on, const api::FrameReader<api::Cuda::MipmapLevelParams>& p, Reply& reply) {
  auto mipmap = fromWire<CUmipmappedArray>(on.handles.get(api::Kind::MIPMAPPED_ARRAY, p.getMipmap()));
  CUarray level = nullptr;
  CUDA_ARRAY3D_DESCRIPTOR shape{};
  if (CUresult error = on.driver.cuMipmappedArrayGetLevel(&level, mipmap, p.getIndex())) return error;
  if (CUresult error = on.driver.cuArray3DGetDescriptor_v2(&shape, level)) return error;
  on.handles.add(api::Kind::ARRAY, p.getLevel(), toWire(level));
  on.arrays[p.getLevel()] = infoOf(on, shape, p.getMipmap());
  auto reported = reply.init<api::Cuda::MipmapLevelResults>().initShape();
  reported.setWidth(shape.Width);
  reported.setHeight(shape.Height);
  reported.setDepth(shape.Depth);
  reported.setFormat(shape.Format);
  reported.setChannels(shape.NumChannels);
  reported.setFlags(shape.Flags);
  return CUDA_SUCCESS;
}

CUresult mipmapDestroy(Execution& on, const api::FrameReader<api::Cuda::MipmapDestroyParams>& p, Reply&) {
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

}  // namespace vgpu::stub
