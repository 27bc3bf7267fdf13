#include "stub/emulator/memory/texture.h"

#include "stub/emulator/driver/driver.h"
#include "stub/emulator/memory/image-view.h"

namespace vgpu::emulator::api {

uint64_t TextureObjects::add(TextureObject object) {
  std::lock_guard lock(mutex);
  auto& there = objects[&object.context->device];
  auto& recent = freed[&object.context->device];
  uint64_t handle = 1;
  while (there.contains(handle) || recent.contains(handle)) ++handle;
  recent.clear();
  there.emplace(handle, object);
  return handle;
}

TextureObject& TextureObjects::find(OfDevice& there, uint64_t handle, bool surface) {
  auto at = there.find(handle);
  if (at == there.end() || at->second.surface != surface || at->second.destroyed) refuse(CUDA_ERROR_INVALID_VALUE);
  return at->second;
}

TextureObject TextureObjects::get(const Context& context, uint64_t handle, bool surface) const {
  std::lock_guard lock(mutex);
  return find(objects[&context.device], handle, surface);
}

void TextureObjects::destroy(const Context& current, uint64_t handle, bool surface) {
  Context* context;
  {
    std::lock_guard lock(mutex);
    TextureObject& object = find(objects[&current.device], handle, surface);
    object.destroyed = true;
    context = object.context;
  }
  context->streams.afterAll([this, &device = context->device, handle] {
    remove(device, handle);
    return Outcome::finished;
  });
}

void TextureObjects::remove(const Device& device, uint64_t handle) {
  std::lock_guard lock(mutex);
  objects[&device].erase(handle);
  freed[&device].insert(handle);
}

void TextureObjects::removeOf(const Context& context) {
  std::lock_guard lock(mutex);
  std::erase_if(objects[&context.device], [&](const auto& object) { return object.second.context == &context; });
}

std::vector<std::shared_ptr<const ImageView>> TextureObjects::images(const Device& device) const {
  std::lock_guard lock(mutex);
  auto& there = objects[&device];
  std::vector<std::shared_ptr<const ImageView>> images;
  if (!there.empty()) images.resize(there.rbegin()->first + 1);
  for (const auto& [handle, object] : there) images[handle] = object.image;
  return images;
}

const ImageView* KernelViews::find(uint64_t handle) const {
  std::call_once(taken, [&] { images = objects.images(device); });
  return handle < images.size() ? images[handle].get() : findReferenceView(module, references, handle);
}

namespace {

void checkLinear(Context& context, CUdeviceptr address, CUarray_format format, unsigned channels, uint64_t bytes) {
  require(elementBytes(format, channels) != 0 && bytes != 0);
  require(address % static_cast<uint64_t>(context.device.attribute(CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT)) == 0);
  require(context.driver.space.resolve(address, bytes).has_value());
}

void checkResource(Context& context, const CUDA_RESOURCE_DESC& resource) {
  require(resource.flags == 0);
  switch (resource.resType) {
    case CU_RESOURCE_TYPE_ARRAY:
      context.driver.arrays.get(resource.res.array.hArray);
      return;
    case CU_RESOURCE_TYPE_MIPMAPPED_ARRAY:
      context.driver.mipmappedArrays.get(resource.res.mipmap.hMipmappedArray);
      return;
    case CU_RESOURCE_TYPE_LINEAR: {
      const auto& linear = resource.res.linear;
      return checkLinear(context, linear.devPtr, linear.format, linear.numChannels, linear.sizeInBytes);
    }
    case CU_RESOURCE_TYPE_PITCH2D: {
      const auto& pitched = resource.res.pitch2D;
      require(pitched.width != 0 && pitched.height != 0 && pitched.height <= 65536 && pitched.pitchInBytes <= 2097152);
      uint64_t row = pitched.width * elementBytes(pitched.format, pitched.numChannels);
      require(pitched.pitchInBytes >= row && pitched.pitchInBytes % 32 == 0);  // a multiple of TEXTURE_PITCH_ALIGNMENT
      return checkLinear(context, pitched.devPtr, pitched.format, pitched.numChannels,
                         (pitched.height - 1) * pitched.pitchInBytes + row);
    }
  }
  refuse(CUDA_ERROR_INVALID_VALUE);
}

}  // namespace
}  // namespace vgpu::emulator::api

using namespace vgpu::emulator::api;

CUresult CUDAAPI cuTexObjectCreate(CUtexObject* handle, const CUDA_RESOURCE_DESC* resource,
                                   const CUDA_TEXTURE_DESC* texture, const CUDA_RESOURCE_VIEW_DESC* view) {
  return enterContext([&](Context& context) {
    require(handle != nullptr && resource != nullptr && texture != nullptr);
    checkResource(context, *resource);
    bool isArray = resource->resType == CU_RESOURCE_TYPE_ARRAY || resource->resType == CU_RESOURCE_TYPE_MIPMAPPED_ARRAY;
    require(view == nullptr || isArray);
    for (CUaddress_mode mode : texture->addressMode) require(mode >= 0 && mode <= CU_TR_ADDRESS_MODE_BORDER);
    require(texture->filterMode == CU_TR_FILTER_MODE_POINT || texture->filterMode == CU_TR_FILTER_MODE_LINEAR);
    auto image = textureOf(context.driver, *resource, *texture, view);
    *handle = context.driver.textures.add(
        {&context, false, *resource, *texture, view ? std::optional(*view) : std::nullopt, std::move(image)});
  });
}

CUresult CUDAAPI cuTexObjectDestroy(CUtexObject handle) {
  return enterContext([&](Context& context) { context.driver.textures.destroy(context, handle, false); });
}

CUresult CUDAAPI cuTexObjectGetResourceDesc(CUDA_RESOURCE_DESC* resource, CUtexObject handle) {
  return enterContext([&](Context& context) {
    require(resource != nullptr);
    *resource = context.driver.textures.get(context, handle, false).resource;
  });
}

CUresult CUDAAPI cuTexObjectGetTextureDesc(CUDA_TEXTURE_DESC* texture, CUtexObject handle) {
  return enterContext([&](Context& context) {
    require(texture != nullptr);
    *texture = context.driver.textures.get(context, handle, false).texture;
  });
}

CUresult CUDAAPI cuTexObjectGetResourceViewDesc(CUDA_RESOURCE_VIEW_DESC* view, CUtexObject handle) {
  return enterContext([&](Context& context) {
    require(view != nullptr);
    TextureObject object = context.driver.textures.get(context, handle, false);
    *view = object.view.value_or(CUDA_RESOURCE_VIEW_DESC{});
  });
}

CUresult CUDAAPI cuSurfObjectCreate(CUsurfObject* handle, const CUDA_RESOURCE_DESC* resource) {
  return enterContext([&](Context& context) {
    require(handle != nullptr && resource != nullptr && resource->resType == CU_RESOURCE_TYPE_ARRAY);
    std::shared_ptr<Array> array = context.driver.arrays.get(resource->res.array.hArray);
    *handle = context.driver.textures.add({&context, true, *resource, {}, std::nullopt, surfaceOf(*array)});
  });
}

CUresult CUDAAPI cuSurfObjectDestroy(CUsurfObject handle) {
  return enterContext([&](Context& context) { context.driver.textures.destroy(context, handle, true); });
}

CUresult CUDAAPI cuSurfObjectGetResourceDesc(CUDA_RESOURCE_DESC* resource, CUsurfObject handle) {
  return enterContext([&](Context& context) {
    require(resource != nullptr);
    *resource = context.driver.textures.get(context, handle, true).resource;
  });
}
