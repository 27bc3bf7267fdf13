// Texture and surface objects. The program is given the device's own handle, because kernels find it in memory; restore
// makes the objects have the same handles again.
#include "intercept/session/entry.h"

using namespace vgpu;
using namespace vgpu::client;

namespace {

// The part of a resource that goes into the frame: an object's handle, or a description of memory.
struct Resource {
  uint64_t array = 0, mipmap = 0;
  bool hasMemory = false;
  uint64_t address = 0, bytes = 0, width = 0, height = 0, pitch = 0;
  unsigned format = 0, channels = 0;
};

CUresult read(const CUDA_RESOURCE_DESC& from, Resource& to) {
  switch (from.resType) {
    case CU_RESOURCE_TYPE_ARRAY: to.array = toWire(from.res.array.hArray); return CUDA_SUCCESS;
    case CU_RESOURCE_TYPE_MIPMAPPED_ARRAY: to.mipmap = toWire(from.res.mipmap.hMipmappedArray); return CUDA_SUCCESS;
    case CU_RESOURCE_TYPE_LINEAR: {
      auto& line = from.res.linear;
      to = {0, 0, true, line.devPtr, line.sizeInBytes, 0, 0, 0, static_cast<unsigned>(line.format), line.numChannels};
      return CUDA_SUCCESS;
    }
    case CU_RESOURCE_TYPE_PITCH2D: {
      auto& rows = from.res.pitch2D;
      to = {0, 0, true, rows.devPtr, 0, rows.width, rows.height, rows.pitchInBytes, static_cast<unsigned>(rows.format),
            rows.numChannels};
      return rows.height == 0 ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
    }
  }
  return CUDA_ERROR_INVALID_VALUE;
}

CUresult resolve(Thread& thread, Resource& resource) {
  if (resource.hasMemory) return CUDA_SUCCESS;
  return resource.array != 0 ? thread.resolve(api::Kind::ARRAY, false, resource.array)
                             : thread.resolve(api::Kind::MIPMAPPED_ARRAY, false, resource.mipmap);
}

void write(api::TexturedMemory::Builder to, const Resource& from) {
  to.setAddress(from.address);
  to.setBytes(from.bytes);
  to.setWidth(from.width);
  to.setHeight(from.height);
  to.setPitch(from.pitch);
  to.setFormat(from.format);
  to.setChannels(from.channels);
}

void write(api::Sampling::Builder to, const CUDA_TEXTURE_DESC& from) {
  to.setAddressX(from.addressMode[0]);
  to.setAddressY(from.addressMode[1]);
  to.setAddressZ(from.addressMode[2]);
  to.setFilter(from.filterMode);
  to.setFlags(from.flags);
  to.setMaxAnisotropy(from.maxAnisotropy);
  to.setMipmapFilter(from.mipmapFilterMode);
  to.setLevelBias(from.mipmapLevelBias);
  to.setLeastLevel(from.minMipmapLevelClamp);
  to.setMostLevel(from.maxMipmapLevelClamp);
  to.setBorderR(from.borderColor[0]);
  to.setBorderG(from.borderColor[1]);
  to.setBorderB(from.borderColor[2]);
  to.setBorderA(from.borderColor[3]);
}

void write(api::TextureView::Builder to, const CUDA_RESOURCE_VIEW_DESC& from) {
  to.setFormat(from.format);
  to.setFirstLevel(from.firstMipmapLevel);
  to.setLastLevel(from.lastMipmapLevel);
  to.setFirstLayer(from.firstLayer);
  to.setLastLayer(from.lastLayer);
  to.setWidth(from.width);
  to.setHeight(from.height);
  to.setDepth(from.depth);
}

CUresult createTexture(Thread& thread, const Resource& resource, bool hasView, KnownTexture& texture, uint64_t& value) {
  constexpr uint64_t words =
      structWords<api::TexturedMemory> + structWords<api::Sampling> + structWords<api::TextureView>;
  Call<api::Cuda::TextureCreateParams> frame(thread, api::Method::textureCreate, words);
  frame->setTexture(texture.handle);
  frame->setArray(resource.array);
  frame->setMipmap(resource.mipmap);
  write(frame->initMemory(), resource);
  write(frame->initSampling(), texture.sampling);
  frame->setHasView(hasView);
  write(frame->initView(), texture.view);
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

// Gives the object a virtual handle, makes it by `create`, and records it under the device's.
template <typename Create>
CUresult make(Thread& thread, api::Kind kind, KnownTexture& texture, uint64_t& value, Create&& create) {
  texture.handle = thread.create(kind);
  texture.context = thread.context();
  if (CUresult error = create()) {
    thread.destroy(kind, texture.handle);
    return error;
  }
  thread.session.textures.add(thread.device(), value, texture);
  return CUDA_SUCCESS;
}

template <typename Body>
CUresult withKnown(uint64_t value, ObjectKind kind, const void* out, Body&& body) {
  return enter([&](Thread& thread) -> CUresult {
    auto known = thread.session.textures.find(thread.device(), value, kind);
    if (out == nullptr || !known) return CUDA_ERROR_INVALID_VALUE;
    body(*known);
    return CUDA_SUCCESS;
  });
}

}  // namespace

extern "C" {

VGPU_EXPORT CUresult CUDAAPI cuTexObjectCreate(CUtexObject* pTexObject, const CUDA_RESOURCE_DESC* pResDesc,
                                               const CUDA_TEXTURE_DESC* pTexDesc,
                                               const CUDA_RESOURCE_VIEW_DESC* pResViewDesc) {
  return enter([&](Thread& thread) -> CUresult {
    if (pTexObject == nullptr || pResDesc == nullptr || pTexDesc == nullptr) return CUDA_ERROR_INVALID_VALUE;
    Resource resource;
    if (CUresult bad = read(*pResDesc, resource)) return bad;
    if (CUresult bad = resolve(thread, resource)) return bad;
    KnownTexture texture{.kind = ObjectKind::texture, .resource = *pResDesc, .sampling = *pTexDesc};
    if (pResViewDesc != nullptr) texture.view = *pResViewDesc;
    uint64_t value = 0;
    CUresult result = make(thread, api::Kind::TEXTURE, texture, value, [&] {
      return createTexture(thread, resource, pResViewDesc != nullptr, texture, value);
    });
    if (result == CUDA_SUCCESS) *pTexObject = value;
    return result;
  });
}

VGPU_EXPORT CUresult CUDAAPI cuTexObjectDestroy(CUtexObject texObject) {
  return enter([&](Thread& thread) -> CUresult {
    auto texture = thread.session.textures.take(thread.device(), texObject, ObjectKind::texture);
    if (!texture) return CUDA_ERROR_INVALID_VALUE;
    Call<api::Cuda::TextureDestroyParams> frame(thread, api::Method::textureDestroy);
    frame->setTexture(texture->handle);
    if (CUresult error = frame.post()) return error;
    thread.destroy(api::Kind::TEXTURE, texture->handle);
    return CUDA_SUCCESS;
  });
}

VGPU_EXPORT CUresult CUDAAPI cuTexObjectGetResourceDesc(CUDA_RESOURCE_DESC* pResDesc, CUtexObject texObject) {
  return withKnown(texObject, ObjectKind::texture, pResDesc, [&](auto& known) { *pResDesc = known.resource; });
}

VGPU_EXPORT CUresult CUDAAPI cuTexObjectGetTextureDesc(CUDA_TEXTURE_DESC* pTexDesc, CUtexObject texObject) {
  return withKnown(texObject, ObjectKind::texture, pTexDesc, [&](auto& known) { *pTexDesc = known.sampling; });
}

VGPU_EXPORT CUresult CUDAAPI cuTexObjectGetResourceViewDesc(CUDA_RESOURCE_VIEW_DESC* pResViewDesc, CUtexObject texObject) {
  return withKnown(texObject, ObjectKind::texture, pResViewDesc, [&](auto& known) { *pResViewDesc = known.view; });
}

VGPU_EXPORT CUresult CUDAAPI cuSurfObjectCreate(CUsurfObject* pSurfObject, const CUDA_RESOURCE_DESC* pResDesc) {
  return enter([&](Thread& thread) -> CUresult {
    if (pSurfObject == nullptr || pResDesc == nullptr || pResDesc->resType != CU_RESOURCE_TYPE_ARRAY)
      return CUDA_ERROR_INVALID_VALUE;
    Resource resource;
    if (CUresult bad = read(*pResDesc, resource)) return bad;
    if (CUresult bad = resolve(thread, resource)) return bad;
    KnownTexture surface{.kind = ObjectKind::surface, .resource = *pResDesc};
    uint64_t value = 0;
    CUresult result = make(thread, api::Kind::SURFACE, surface, value,
                           [&] { return createSurface(thread, resource, surface, value); });
    if (result == CUDA_SUCCESS) *pSurfObject = value;
    return result;
  });
}

VGPU_EXPORT CUresult CUDAAPI cuSurfObjectDestroy(CUsurfObject surfObject) {
  return enter([&](Thread& thread) -> CUresult {
    auto surface = thread.session.textures.take(thread.device(), surfObject, ObjectKind::surface);
    if (!surface) return CUDA_ERROR_INVALID_VALUE;
    Call<api::Cuda::SurfaceDestroyParams> frame(thread, api::Method::surfaceDestroy);
    frame->setSurface(surface->handle);
    if (CUresult error = frame.post()) return error;
    thread.destroy(api::Kind::SURFACE, surface->handle);
    return CUDA_SUCCESS;
  });
}

VGPU_EXPORT CUresult CUDAAPI cuSurfObjectGetResourceDesc(CUDA_RESOURCE_DESC* pResDesc, CUsurfObject surfObject) {
  return withKnown(surfObject, ObjectKind::surface, pResDesc, [&](auto& known) { *pResDesc = known.resource; });
}

}  // extern "C"
