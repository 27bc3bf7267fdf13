#include "intercept/runtime/module-link.h"

#include <string>

#include "vgpu/image/image.h"

namespace vgpu::runtime {
namespace {

CUresult addPart(CUlinkState state, void* part) {
  std::string problem;
  auto bytes = image::imageAt(part, problem);
  if (!image::isFatbinary(bytes)) return CUDA_ERROR_INVALID_IMAGE;
  return cuLinkAddData(state, CU_JIT_INPUT_FATBINARY, part, bytes.size(), "relocatable device code", 0, nullptr,
                       nullptr);
}

CUresult linkInto(CUlinkState state, void* const* parts, const Load& load) {
  for (; *parts != nullptr; ++parts)
    if (CUresult result = addPart(state, *parts); result != CUDA_SUCCESS) return result;
  void* image;
  size_t size;
  CUresult result = cuLinkComplete(state, &image, &size);
  return result == CUDA_SUCCESS ? load(image) : result;
}

}  // namespace

CUresult linkParts(const FatbinaryWrapper& wrapper, const Load& load) {
  CUlinkState state;
  if (CUresult result = cuLinkCreate(0, nullptr, nullptr, &state); result != CUDA_SUCCESS) return result;
  CUresult result = linkInto(state, static_cast<void* const*>(wrapper.parts), load);
  cuLinkDestroy(state);
  return result;
}

}  // namespace vgpu::runtime
