// Texture and surface objects. The program gets the driver's own handles, because kernels read them from memory; a restore recreates the
// objects with the same handles.
#include "intercept/driver/shared.h"

using namespace vgpu;
using namespace vgpu::client;

namespace {

// The handle of a resource's array or mipmapped array; both 0 for memory.
struct Resource {
  uint64_t array = 0, mipmap = 0;
};

CUresult resolve(Thread& thread, const CUDA_RESOURCE_DESC& from, Resource& to) {
  switch (from.resType) {
    case CU_RESOURCE_TYPE_ARRAY:
      to.array = toWire(from.res.array.hArray);
      return thread.resolve(api::Kind::ARRAY, false, to.array);
    case CU_RESOURCE_TYPE_MIPMAPPED_ARRAY:
      to.mipmap = toWire(from.res.mipmap.hMipmappedArray);
      return thread.resolve(api::Kind::MIPMAPPED_ARRAY, false, to.mipmap);
    case CU_RESOURCE_TYPE_LINEAR:
      return CUDA_SUCCESS;
    case CU_RESOURCE_TYPE_PITCH2D:
      return from.res.pitch2D.height == 0 ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
  }
  return CUDA_ERROR_INVALID_VALUE;
}

CUresult createTexture(Thread& thread, const Resource& resource, bool hasView, KnownTexture& texture, uint64_t& value) {
  constexpr uint64_t words =
      dataWords(sizeof(CUDA_RESOURCE_DESC)) + dataWords(sizeof(CUDA_TEXTURE_DESC)) + dataWords(sizeof(CUDA_RESOURCE_VIEW_DESC));
  Call<api::Cuda::TextureCreateParams> frame(thread, api::Method::textureCreate, words);
  frame->setTexture(texture.handle);
  frame->setArray(resource.array);
  frame->setMipmap(resource.mipmap);
  frame->setResource(texture.resource);
  frame->setSampling(texture.sampling);
  frame->setHasView(hasView);
  frame->setView(texture.view);
  if (CUresult error = frame.call()) return error;
  value = frame.results<api::Cuda::TextureCreateResults>().getValue();
  return CUDA_SUCCESS;
}

CUresult createSurface(Thread& thread, const Resource& resource, const KnownTexture& surface, uint64_t& value) {
  Call<api::Cuda::SurfaceCreateParams> frame(thread, api::Method::surfaceCreate);
  frame->setSurface(surface.handle);
  frame->setArray(resource.array);
  if (CUresult error = frame.call()) return error;
  value = frame.results<api::Cuda::SurfaceCreateResults>().getValue();
  return CUDA_SUCCESS;
}

}  // namespace

CUresult vgpu::client::destroyTexture(uint64_t value, ObjectKind kind) {
  return enter([&](Thread& thread) -> CUresult {
    auto known = thread.session.textures.take(thread.device(), value, kind);
    if (!known) return CUDA_ERROR_INVALID_VALUE;
    bool surface = kind == ObjectKind::surface;
    auto destroy = [&]() -> CUresult {
      if (surface) {
        Call<api::Cuda::SurfaceDestroyParams> frame(thread, api::Method::surfaceDestroy);
        frame->setSurface(known->handle);
        return frame.post();
      }
      Call<api::Cuda::TextureDestroyParams> frame(thread, api::Method::textureDestroy);
      frame->setTexture(known->handle);
      return frame.post();
    };
    CUresult result = destroy();
    if (result == CUDA_SUCCESS) thread.destroy(surface ? api::Kind::SURFACE : api::Kind::TEXTURE, known->handle);
    return result;
  });
}

CUresult vgpu::client::makeTexture(CUtexObject* out, ObjectKind kind, const CUDA_RESOURCE_DESC* from,
                                   const CUDA_TEXTURE_DESC* sampling, const CUDA_RESOURCE_VIEW_DESC* view) {
  return enter([&](Thread& thread) -> CUresult {
    const bool isSurface = kind == ObjectKind::surface;
    if (out == nullptr || from == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (isSurface ? from->resType != CU_RESOURCE_TYPE_ARRAY : sampling == nullptr) return CUDA_ERROR_INVALID_VALUE;
    Resource resource;
    if (CUresult bad = resolve(thread, *from, resource)) return bad;
    const api::Kind made = isSurface ? api::Kind::SURFACE : api::Kind::TEXTURE;
    KnownTexture texture{.kind = kind, .handle = thread.create(made), .context = thread.owner(), .resource = *from};
    if (sampling != nullptr) texture.sampling = *sampling;
    if (view != nullptr) texture.view = *view;
    uint64_t value = 0;
    CUresult result = isSurface ? createSurface(thread, resource, texture, value)
                                : createTexture(thread, resource, view != nullptr, texture, value);
    if (result != CUDA_SUCCESS) return thread.destroy(made, texture.handle), result;
    thread.session.textures.add(thread.device(), value, texture);
    *out = value;
    return CUDA_SUCCESS;
  });
}
