// cuTexRef*, cuSurfRef*, cuModuleGetTexRef and cuModuleGetSurfRef. Refuses, and accepts without effect, what driver 580 does on an H100.
#include <algorithm>

#include "stub/emulator/driver/driver.h"
#include "stub/emulator/memory/image-view.h"

namespace vgpu::emulator::api {
namespace {

// Calls use(reference, context) with the reference's mutex held.
template <class Use>
CUresult withTexture(CUtexref handle, Use use, const char* entry = __builtin_FUNCTION()) {
  return enterContext(
      [&](Context& context) {
        const std::shared_ptr<TextureReference> reference = context.driver.textureReferences.get(handle);
        std::lock_guard lock(reference->mutex);
        use(*reference, context);
      },
      entry);
}

// Stores the result of value(reference) in *to.
template <class Value, class Get>
CUresult ask(Value* to, CUtexref handle, Get value, const char* entry = __builtin_FUNCTION()) {
  return withTexture(
      handle,
      [&](TextureReference& reference, Context&) {
        require(to != nullptr);
        *to = value(reference);
      },
      entry);
}

bool isBoundTo(const TextureReference& reference, CUresourcetype type) {
  return reference.bound && reference.bound->resType == type;
}

bool isAligned(const Context& context, uint64_t address) {
  return address % static_cast<uint64_t>(context.device.attribute(CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT)) == 0;
}

// Any address is accepted: a kernel faults if it reads from an invalid one.
void requireLength(const Context& context, uint64_t bytes) {
  constexpr uint64_t largestElement = 16;
  require(bytes / largestElement <= static_cast<uint64_t>(context.device.attribute(CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LINEAR_WIDTH)));
}

void bindArray(TextureReference& reference, const CUDA_RESOURCE_DESC& resource, const Array& array, unsigned flags) {
  require(flags <= CU_TRSA_OVERRIDE_FORMAT);
  reference.bound = resource;
  if (flags != CU_TRSA_OVERRIDE_FORMAT) return;
  reference.format = array.descriptor.Format;
  reference.channels = array.descriptor.NumChannels;
}

}  // namespace
}  // namespace vgpu::emulator::api

using namespace vgpu::emulator::api;

CUresult CUDAAPI cuModuleGetTexRef(CUtexref* handle, CUmodule module, const char* name) {
  return enterContext([&](Context& context) {
    require(handle != nullptr && name != nullptr);
    const std::shared_ptr<LoadedModule> found = context.driver.modules.get(module);
    *handle = found->references.texture(*found, name);
  });
}

CUresult CUDAAPI cuModuleGetSurfRef(CUsurfref* handle, CUmodule module, const char* name) {
  return enterContext([&](Context& context) {
    require(handle != nullptr && name != nullptr);
    const std::shared_ptr<LoadedModule> found = context.driver.modules.get(module);
    *handle = found->references.surface(*found, name);
  });
}

CUresult CUDAAPI cuTexRefCreate(CUtexref* handle) {
  return enterContext([&](Context& context) {
    require(handle != nullptr);
    *handle = context.driver.textureReferences.add(std::make_shared<TextureReference>(context));
  });
}

CUresult CUDAAPI cuTexRefDestroy(CUtexref handle) {
  return enterContext([&](Context& context) {
    const std::shared_ptr<TextureReference> reference = context.driver.textureReferences.remove(handle);
    if (const auto module = reference->module.lock()) module->references.forget(*reference);
  });
}

// ---- bindings

CUresult CUDAAPI cuTexRefSetArray(CUtexref handle, CUarray array, unsigned flags) {
  return withTexture(handle, [&](TextureReference& reference, Context& context) {
    CUDA_RESOURCE_DESC resource{.resType = CU_RESOURCE_TYPE_ARRAY};
    resource.res.array.hArray = array;
    bindArray(reference, resource, *context.driver.arrays.get(array), flags);
  });
}

CUresult CUDAAPI cuTexRefSetMipmappedArray(CUtexref handle, CUmipmappedArray array, unsigned flags) {
  return withTexture(handle, [&](TextureReference& reference, Context& context) {
    CUDA_RESOURCE_DESC resource{.resType = CU_RESOURCE_TYPE_MIPMAPPED_ARRAY};
    resource.res.mipmap.hMipmappedArray = array;
    bindArray(reference, resource, *context.driver.mipmappedArrays.get(array)->levels[0], flags);
  });
}

CUresult CUDAAPI cuTexRefSetAddress_v2(size_t* byteOffset, CUtexref handle, CUdeviceptr address, size_t bytes) {
  return withTexture(handle, [&](TextureReference& reference, Context& context) {
    require(byteOffset != nullptr || isAligned(context, address));
    requireLength(context, bytes);
    const auto alignment = static_cast<uint64_t>(context.device.attribute(CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT));
    const uint64_t offset = address % alignment;
    CUDA_RESOURCE_DESC resource{.resType = CU_RESOURCE_TYPE_LINEAR};
    resource.res.linear.devPtr = address - offset;
    resource.res.linear.sizeInBytes = bytes + offset;
    reference.bound = resource;
    if (byteOffset) *byteOffset = offset;
  });
}

CUresult CUDAAPI cuTexRefSetAddress2D_v3(CUtexref handle, const CUDA_ARRAY_DESCRIPTOR* descriptor, CUdeviceptr address,
                                         size_t pitch) {
  return withTexture(handle, [&](TextureReference& reference, Context& context) {
    require(descriptor != nullptr && isAligned(context, address));
    const uint64_t element = elementBytes(descriptor->Format, descriptor->NumChannels);
    const auto alignment = static_cast<uint64_t>(context.device.attribute(CU_DEVICE_ATTRIBUTE_TEXTURE_PITCH_ALIGNMENT));
    require(pitch % alignment == 0 && (element == 0 || descriptor->Width <= pitch / element));
    require(descriptor->Height <= UINT32_MAX && pitch <= UINT32_MAX);
    CUDA_RESOURCE_DESC resource{.resType = CU_RESOURCE_TYPE_PITCH2D};
    resource.res.pitch2D.devPtr = address;
    resource.res.pitch2D.width = descriptor->Width;
    resource.res.pitch2D.height = descriptor->Height;
    resource.res.pitch2D.pitchInBytes = pitch;
    reference.bound = resource;
    reference.format = descriptor->Format;
    reference.channels = descriptor->NumChannels;
  });
}

CUresult CUDAAPI cuTexRefSetAddress2D_v2(CUtexref handle, const CUDA_ARRAY_DESCRIPTOR* descriptor, CUdeviceptr address,
                                         size_t pitch) {
  return cuTexRefSetAddress2D_v3(handle, descriptor, address, pitch);
}

CUresult CUDAAPI cuTexRefGetAddress_v2(CUdeviceptr* address, CUtexref handle) {
  return ask(address, handle, [](const TextureReference& reference) {
    if (isBoundTo(reference, CU_RESOURCE_TYPE_PITCH2D)) return reference.bound->res.pitch2D.devPtr;
    require(isBoundTo(reference, CU_RESOURCE_TYPE_LINEAR));
    return reference.bound->res.linear.devPtr;
  });
}

CUresult CUDAAPI cuTexRefGetArray(CUarray* array, CUtexref handle) {
  return ask(array, handle, [](const TextureReference& reference) {
    require(isBoundTo(reference, CU_RESOURCE_TYPE_ARRAY));
    const CUarray bound = reference.bound->res.array.hArray;
    require(reference.context.driver.arrays.find(bound) != nullptr);
    return bound;
  });
}

CUresult CUDAAPI cuTexRefGetMipmappedArray(CUmipmappedArray* array, CUtexref handle) {
  return ask(array, handle, [](const TextureReference& reference) {
    require(isBoundTo(reference, CU_RESOURCE_TYPE_MIPMAPPED_ARRAY));
    const CUmipmappedArray bound = reference.bound->res.mipmap.hMipmappedArray;
    require(reference.context.driver.mipmappedArrays.find(bound) != nullptr);
    return bound;
  });
}

// ---- how references are read

CUresult CUDAAPI cuTexRefSetFormat(CUtexref handle, CUarray_format format, int channels) {
  return withTexture(handle, [&](TextureReference& reference, Context&) {
    require(channels == 1 || channels == 2 || channels == 4);
    reference.format = format;  // an unknown format reads as zeros
    reference.channels = static_cast<unsigned>(channels);
  });
}

CUresult CUDAAPI cuTexRefGetFormat(CUarray_format* format, int* channels, CUtexref handle) {
  return withTexture(handle, [&](const TextureReference& reference, Context&) {
    if (format) *format = reference.format;
    if (channels) *channels = static_cast<int>(reference.channels);
  });
}

CUresult CUDAAPI cuTexRefSetAddressMode(CUtexref handle, int axis, CUaddress_mode mode) {
  return withTexture(handle, [&](TextureReference& reference, Context&) {
    require(axis >= 0 && axis < 3);
    const bool exists = mode >= CU_TR_ADDRESS_MODE_WRAP && mode <= CU_TR_ADDRESS_MODE_BORDER;
    reference.how.addressMode[axis] = exists ? mode : CU_TR_ADDRESS_MODE_CLAMP;
  });
}

CUresult CUDAAPI cuTexRefGetAddressMode(CUaddress_mode* mode, CUtexref handle, int axis) {
  return ask(mode, handle, [axis](const TextureReference& reference) {
    require(axis >= 0 && axis < 3);
    return reference.how.addressMode[axis];
  });
}

CUresult CUDAAPI cuTexRefSetFilterMode(CUtexref handle, CUfilter_mode mode) {
  return withTexture(handle, [&](TextureReference& reference, Context&) { reference.how.filterMode = mode; });
}

CUresult CUDAAPI cuTexRefGetFilterMode(CUfilter_mode* mode, CUtexref handle) {
  return ask(mode, handle, [](const TextureReference& reference) { return reference.how.filterMode; });
}

CUresult CUDAAPI cuTexRefSetMipmapFilterMode(CUtexref handle, CUfilter_mode mode) {
  return withTexture(handle, [&](TextureReference& reference, Context&) {
    require(mode == CU_TR_FILTER_MODE_POINT || mode == CU_TR_FILTER_MODE_LINEAR);
    reference.how.mipmapFilterMode = mode;
  });
}

CUresult CUDAAPI cuTexRefGetMipmapFilterMode(CUfilter_mode* mode, CUtexref handle) {
  return ask(mode, handle, [](const TextureReference& reference) { return reference.how.mipmapFilterMode; });
}

CUresult CUDAAPI cuTexRefSetMipmapLevelBias(CUtexref handle, float bias) {
  return withTexture(handle, [&](TextureReference& reference, Context&) { reference.how.mipmapLevelBias = bias; });
}

CUresult CUDAAPI cuTexRefGetMipmapLevelBias(float* bias, CUtexref handle) {
  return ask(bias, handle, [](const TextureReference& reference) { return reference.how.mipmapLevelBias; });
}

CUresult CUDAAPI cuTexRefSetMipmapLevelClamp(CUtexref handle, float least, float most) {
  return withTexture(handle, [&](TextureReference& reference, Context&) {
    reference.how.minMipmapLevelClamp = least;
    reference.how.maxMipmapLevelClamp = most;
  });
}

CUresult CUDAAPI cuTexRefGetMipmapLevelClamp(float* least, float* most, CUtexref handle) {
  return withTexture(handle, [&](const TextureReference& reference, Context&) {
    require(least != nullptr && most != nullptr);
    *least = reference.how.minMipmapLevelClamp;
    *most = reference.how.maxMipmapLevelClamp;
  });
}

CUresult CUDAAPI cuTexRefSetMaxAnisotropy(CUtexref handle, unsigned most) {
  return withTexture(handle, [&](TextureReference& reference, Context&) { reference.how.maxAnisotropy = most; });
}

CUresult CUDAAPI cuTexRefGetMaxAnisotropy(int* most, CUtexref handle) {
  return ask(most, handle, [](const TextureReference& reference) { return static_cast<int>(reference.how.maxAnisotropy); });
}

CUresult CUDAAPI cuTexRefSetBorderColor(CUtexref handle, float* color) {
  return withTexture(handle, [&](TextureReference& reference, Context&) {
    require(color != nullptr);
    std::copy_n(color, 4, reference.how.borderColor);
  });
}

CUresult CUDAAPI cuTexRefGetBorderColor(float* color, CUtexref handle) {
  return withTexture(handle, [&](const TextureReference& reference, Context&) {
    require(color != nullptr);
    std::copy_n(reference.how.borderColor, 4, color);
  });
}

CUresult CUDAAPI cuTexRefSetFlags(CUtexref handle, unsigned flags) {
  return withTexture(handle, [&](TextureReference& reference, Context&) {
    require(flags <= 0x3f);  // including two flags that cuda.h does not name
    reference.how.flags = flags;
  });
}

CUresult CUDAAPI cuTexRefGetFlags(unsigned* flags, CUtexref handle) {
  return ask(flags, handle, [](const TextureReference& reference) { return reference.how.flags; });
}

// ---- surfaces

CUresult CUDAAPI cuSurfRefSetArray(CUsurfref handle, CUarray array, unsigned flags) {
  return enterContext([&](Context& context) {
    const std::shared_ptr<SurfaceReference> reference = context.driver.surfaceReferences.get(handle);
    const std::shared_ptr<Array> found = context.driver.arrays.get(array);
    require(flags == 0 && (found->descriptor.Flags & CUDA_ARRAY3D_SURFACE_LDST) != 0);
    surfaceOf(*found);  // refuses arrays that cannot have a surface
    reference->array = array;
  });
}

CUresult CUDAAPI cuSurfRefGetArray(CUarray* array, CUsurfref handle) {
  return enterContext([&](Context& context) {
    const std::shared_ptr<SurfaceReference> reference = context.driver.surfaceReferences.get(handle);
    require(array != nullptr && context.driver.arrays.find(reference->array) != nullptr);
    *array = reference->array;
  });
}

// Deprecated with the launch calls that use it: only checks whether the reference is bound.
CUresult CUDAAPI cuParamSetTexRef(CUfunction function, int, CUtexref handle) {
  return withTexture(handle, [&](TextureReference& reference, Context& context) {
    functionFor(context, function);
    require(reference.bound.has_value());
  });
}
