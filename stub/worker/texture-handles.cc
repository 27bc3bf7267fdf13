#include "stub/worker/texture-handles.h"

namespace vgpu::stub {

CUresult TextureHandles::destroyReal(const TextureHandle& object) {
  return object.surface ? driver.cuSurfObjectDestroy(object.value) : driver.cuTexObjectDestroy(object.value);
}

CUresult TextureHandles::make(uint64_t handle, bool surface, IsThere isThere, Create create, uint64_t& value) {
  if (handle == 0 || objects.contains(handle)) return CUDA_ERROR_INVALID_HANDLE;
  auto wanted = expected.find(handle);
  if (wanted != expected.end() && wanted->second.surface == surface) {
    value = wanted->second.value;
    later.emplace(value, Later{handle, std::move(isThere), std::move(create)});
  } else {
    if (!isThere()) return CUDA_ERROR_INVALID_VALUE;
    unsigned long long made = 0;
    if (CUresult error = create(made)) return error;
    value = made;
  }
  objects.emplace(handle, TextureHandle{surface, value});
  return CUDA_SUCCESS;
}

// Makes an object whose resource has ended, so that no work uses it any more, over an array of one element, which is destroyed at once.
CUresult TextureHandles::makeOutlived(bool surface, unsigned long long& value) {
  const CUDA_ARRAY3D_DESCRIPTOR shape{
      .Width = 1, .Format = CU_AD_FORMAT_UNSIGNED_INT8, .NumChannels = 1, .Flags = CUDA_ARRAY3D_SURFACE_LDST};
  CUDA_RESOURCE_DESC resource{.resType = CU_RESOURCE_TYPE_ARRAY};
  const CUDA_TEXTURE_DESC sampling{.flags = CU_TRSF_READ_AS_INTEGER};
  if (CUresult error = driver.cuArray3DCreate_v2(&resource.res.array.hArray, &shape)) return error;
  CUresult made = surface ? driver.cuSurfObjectCreate(&value, &resource)
                          : driver.cuTexObjectCreate(&value, &resource, &sampling, nullptr);
  CUresult ended = driver.cuArrayDestroy(resource.res.array.hArray);
  return made != CUDA_SUCCESS ? made : ended;
}

CUresult TextureHandles::makeLater(std::vector<TextureHandle>& placeholders) {
  for (auto& [number, object] : later) {
    TextureHandle& known = objects.at(object.handle);
    const bool isThere = object.isThere();
    for (;;) {
      unsigned long long made = 0;
      CUresult result = physical.withStandIns(device, [&] { return object.isThere() ? object.create(made) : CUDA_ERROR_INVALID_VALUE; });
      if (result != CUDA_SUCCESS && !isThere) result = makeOutlived(known.surface, made);
      if (result != CUDA_SUCCESS) return result;
      known.value = made;
      if (made >= number) break;
      placeholders.push_back(known);
    }
  }
  return CUDA_SUCCESS;
}

CUresult TextureHandles::finishRestore() {
  std::vector<TextureHandle> placeholders;
  CUresult error = makeLater(placeholders);
  for (auto& placeholder : placeholders) destroyReal(placeholder);
  later.clear();
  expected.clear();
  return error;
}

std::optional<TextureHandle> TextureHandles::take(uint64_t handle, bool surface) {
  auto found = objects.find(handle);
  if (found == objects.end() || found->second.surface != surface) return std::nullopt;
  TextureHandle object = found->second;
  objects.erase(found);
  return object;
}

}  // namespace vgpu::stub
