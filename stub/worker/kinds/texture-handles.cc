#include "stub/worker/kinds/texture-handles.h"

namespace vgpu::stub {

CUresult TextureHandles::destroyReal(const TextureHandle& object) {
  return object.surface ? driver.cuSurfObjectDestroy(object.value) : driver.cuTexObjectDestroy(object.value);
}

CUresult TextureHandles::make(uint64_t handle, bool surface, Create create, uint64_t& value) {
  if (handle == 0 || objects.contains(handle)) return CUDA_ERROR_INVALID_HANDLE;
  auto wanted = expected.find(handle);
  if (wanted != expected.end() && wanted->second.surface == surface) {
    value = wanted->second.value;
    later.emplace(value, Later{handle, std::move(create)});
  } else {
    unsigned long long made = 0;
    if (CUresult error = create(made)) return error;
    value = made;
  }
  objects.emplace(handle, TextureHandle{surface, value});
  return CUDA_SUCCESS;
}

CUresult TextureHandles::makeLater(std::vector<TextureHandle>& placeholders) {
  for (auto& [number, object] : later) {
    TextureHandle& known = objects.at(object.handle);
    for (;;) {
      unsigned long long made = 0;
      if (CUresult error = object.create(made)) return error;
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
