#include "stub/worker/kinds/texture-handles.h"

namespace vgpu::stub {

CUresult TextureHandles::destroyReal(const TextureHandle& object) {
  return object.surface ? driver.cuSurfObjectDestroy(object.value) : driver.cuTexObjectDestroy(object.value);
}

CUresult TextureHandles::makeExpected(const TextureHandle& wanted, const Create& create, unsigned long long& value) {
  auto held = placeholders.find(wanted.value);
  if (held != placeholders.end()) {
    destroyReal({held->second, wanted.value});
    placeholders.erase(held);
  }
  for (;;) {
    if (CUresult error = create(value)) return error;
    // Past it, or not by the rule above: no number of placeholders would help.
    if (value >= wanted.value) return CUDA_SUCCESS;
    placeholders.emplace(value, wanted.surface);
  }
}

CUresult TextureHandles::make(uint64_t handle, bool surface, const Create& create, uint64_t& value) {
  if (handle == 0 || objects.contains(handle)) return CUDA_ERROR_INVALID_HANDLE;
  unsigned long long made = 0;
  auto wanted = expected.find(handle);
  bool known = wanted != expected.end() && wanted->second.surface == surface;
  if (CUresult error = known ? makeExpected(wanted->second, create, made) : create(made)) return error;
  value = made;
  objects.emplace(handle, TextureHandle{surface, value});
  return CUDA_SUCCESS;
}

std::optional<TextureHandle> TextureHandles::take(uint64_t handle, bool surface) {
  auto found = objects.find(handle);
  if (found == objects.end() || found->second.surface != surface) return std::nullopt;
  TextureHandle object = found->second;
  objects.erase(found);
  return object;
}

void TextureHandles::finishRestore() {
  for (auto& [number, surface] : placeholders) destroyReal({surface, number});
  placeholders.clear();
  expected.clear();
}

}  // namespace vgpu::stub
