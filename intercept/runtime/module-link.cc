#include "intercept/runtime/module-link.h"

#include <cstdint>
#include <cstring>

namespace vgpu::runtime {
namespace {

constexpr uint32_t fatbinaryMagic = 0xba55ed50;

/// What a fatbinary begins with; `body` bytes follow the header.
struct FatbinaryHeader {
  uint32_t magic;
  uint16_t version;
  uint16_t header;  // its own size
  uint64_t body;
};

CUresult addPart(CUlinkState state, void* part) {
  FatbinaryHeader header;
  memcpy(&header, part, sizeof header);
  if (header.magic != fatbinaryMagic) return CUDA_ERROR_INVALID_IMAGE;
  return cuLinkAddData(state, CU_JIT_INPUT_FATBINARY, part, header.header + header.body, "relocatable device code", 0,
                       nullptr, nullptr);
}

CUresult linkInto(CUlinkState state, void* const* parts, CUmodule& loaded) {
  for (; *parts != nullptr; ++parts)
    if (CUresult result = addPart(state, *parts); result != CUDA_SUCCESS) return result;
  void* image;
  size_t size;
  CUresult result = cuLinkComplete(state, &image, &size);
  return result == CUDA_SUCCESS ? cuModuleLoadData(&loaded, image) : result;
}

}  // namespace

CUresult linkParts(const FatbinaryWrapper& wrapper, CUmodule& loaded) {
  CUlinkState state;
  if (CUresult result = cuLinkCreate(0, nullptr, nullptr, &state); result != CUDA_SUCCESS) return result;
  CUresult result = linkInto(state, static_cast<void* const*>(wrapper.parts), loaded);
  cuLinkDestroy(state);
  return result;
}

}  // namespace vgpu::runtime
