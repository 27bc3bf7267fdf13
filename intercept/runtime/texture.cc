// Texture and surface objects.
#include <cstring>

#include "intercept/runtime/array-format.h"
#include "intercept/runtime/convert.h"
#include "intercept/runtime/rows.h"

namespace vgpu::runtime {
namespace {

static_assert(static_cast<int>(cudaResourceTypePitch2D) == CU_RESOURCE_TYPE_PITCH2D);
static_assert(static_cast<int>(cudaAddressModeBorder) == CU_TR_ADDRESS_MODE_BORDER);
static_assert(static_cast<int>(cudaFilterModeLinear) == CU_TR_FILTER_MODE_LINEAR);

cudaError_t toDriver(const cudaResourceDesc& from, CUDA_RESOURCE_DESC& to) {
  to = {};
  to.resType = static_cast<CUresourcetype>(from.resType);
  to.flags = from.flags;
  switch (from.resType) {
    case cudaResourceTypeArray:
      to.res.array.hArray = handle<CUarray>(from.res.array.array);
      return cudaSuccess;
    case cudaResourceTypeMipmappedArray:
      to.res.mipmap.hMipmappedArray = handle<CUmipmappedArray>(from.res.mipmap.mipmap);
      return cudaSuccess;
    case cudaResourceTypeLinear: {
      auto format = runtime::toDriver(from.res.linear.desc);
      if (!format) return cudaErrorInvalidChannelDescriptor;
      to.res.linear = {toDevice(from.res.linear.devPtr), format->format, format->channels, from.res.linear.sizeInBytes};
      return cudaSuccess;
    }
    case cudaResourceTypePitch2D: {
      auto format = runtime::toDriver(from.res.pitch2D.desc);
      if (!format) return cudaErrorInvalidChannelDescriptor;
      to.res.pitch2D = {toDevice(from.res.pitch2D.devPtr),
                        format->format,
                        format->channels,
                        from.res.pitch2D.width,
                        from.res.pitch2D.height,
                        from.res.pitch2D.pitchInBytes};
      return cudaSuccess;
    }
  }
  return cudaErrorInvalidValue;
}

cudaError_t toRuntime(const CUDA_RESOURCE_DESC& from, cudaResourceDesc& to) {
  to = {};
  to.resType = static_cast<cudaResourceType>(from.resType);
  to.flags = from.flags;
  switch (from.resType) {
    case CU_RESOURCE_TYPE_ARRAY:
      to.res.array.array = handle<cudaArray_t>(from.res.array.hArray);
      return cudaSuccess;
    case CU_RESOURCE_TYPE_MIPMAPPED_ARRAY:
      to.res.mipmap.mipmap = handle<cudaMipmappedArray_t>(from.res.mipmap.hMipmappedArray);
      return cudaSuccess;
    case CU_RESOURCE_TYPE_LINEAR: {
      auto format = runtime::toRuntime(ElementFormat{from.res.linear.format, from.res.linear.numChannels});
      if (!format) return cudaErrorInvalidChannelDescriptor;
      to.res.linear = {toPointer(from.res.linear.devPtr), *format, from.res.linear.sizeInBytes};
      return cudaSuccess;
    }
    case CU_RESOURCE_TYPE_PITCH2D: {
      auto format = runtime::toRuntime(ElementFormat{from.res.pitch2D.format, from.res.pitch2D.numChannels});
      if (!format) return cudaErrorInvalidChannelDescriptor;
      to.res.pitch2D = {toPointer(from.res.pitch2D.devPtr), *format, from.res.pitch2D.width, from.res.pitch2D.height,
                        from.res.pitch2D.pitchInBytes};
      return cudaSuccess;
    }
  }
  return cudaErrorInvalidValue;
}

struct Flag {
  int cudaTextureDesc::*member;
  unsigned bit;
};
constexpr Flag textureFlags[] = {
    {&cudaTextureDesc::normalizedCoords, CU_TRSF_NORMALIZED_COORDINATES},
    {&cudaTextureDesc::sRGB, CU_TRSF_SRGB},
    {&cudaTextureDesc::disableTrilinearOptimization, CU_TRSF_DISABLE_TRILINEAR_OPTIMIZATION},
    {&cudaTextureDesc::seamlessCubemap, CU_TRSF_SEAMLESS_CUBEMAP}};

CUDA_TEXTURE_DESC toDriver(const cudaTextureDesc& from) {
  CUDA_TEXTURE_DESC to = {};
  for (int i = 0; i < 3; ++i) to.addressMode[i] = static_cast<CUaddress_mode>(from.addressMode[i]);
  to.filterMode = static_cast<CUfilter_mode>(from.filterMode);
  if (from.readMode == cudaReadModeElementType) to.flags |= CU_TRSF_READ_AS_INTEGER;
  for (const Flag& flag : textureFlags)
    if (from.*flag.member != 0) to.flags |= flag.bit;
  to.maxAnisotropy = from.maxAnisotropy;
  to.mipmapFilterMode = static_cast<CUfilter_mode>(from.mipmapFilterMode);
  to.mipmapLevelBias = from.mipmapLevelBias;
  to.minMipmapLevelClamp = from.minMipmapLevelClamp;
  to.maxMipmapLevelClamp = from.maxMipmapLevelClamp;
  memcpy(to.borderColor, from.borderColor, sizeof to.borderColor);
  return to;
}

cudaTextureDesc toRuntime(const CUDA_TEXTURE_DESC& from) {
  cudaTextureDesc to = {};
  for (int i = 0; i < 3; ++i) to.addressMode[i] = static_cast<cudaTextureAddressMode>(from.addressMode[i]);
  to.filterMode = static_cast<cudaTextureFilterMode>(from.filterMode);
  to.readMode = (from.flags & CU_TRSF_READ_AS_INTEGER) != 0 ? cudaReadModeElementType : cudaReadModeNormalizedFloat;
  for (const Flag& flag : textureFlags) to.*flag.member = (from.flags & flag.bit) != 0;
  to.maxAnisotropy = from.maxAnisotropy;
  to.mipmapFilterMode = static_cast<cudaTextureFilterMode>(from.mipmapFilterMode);
  to.mipmapLevelBias = from.mipmapLevelBias;
  to.minMipmapLevelClamp = from.minMipmapLevelClamp;
  to.maxMipmapLevelClamp = from.maxMipmapLevelClamp;
  memcpy(to.borderColor, from.borderColor, sizeof to.borderColor);
  return to;
}

/// The element of an array or of memory; nothing if the runtime has no name for the format, which the driver then checks.
std::optional<cudaChannelFormatDesc> elementOf(CUarray array) {
  CUDA_ARRAY3D_DESCRIPTOR shape;
  if (cuArray3DGetDescriptor(&shape, array) != CUDA_SUCCESS) return std::nullopt;
  return runtime::toRuntime(ElementFormat{shape.Format, shape.NumChannels});
}
std::optional<cudaChannelFormatDesc> elementOf(const cudaResourceDesc& resource) {
  switch (resource.resType) {
    case cudaResourceTypeArray: return elementOf(handle<CUarray>(resource.res.array.array));
    case cudaResourceTypeMipmappedArray: {
      CUarray first;
      CUresult result = cuMipmappedArrayGetLevel(&first, handle<CUmipmappedArray>(resource.res.mipmap.mipmap), 0);
      return result == CUDA_SUCCESS ? elementOf(first) : std::nullopt;
    }
    case cudaResourceTypeLinear: return resource.res.linear.desc;
    case cudaResourceTypePitch2D: return resource.res.pitch2D.desc;
  }
  return std::nullopt;
}

/// Checks that NVIDIA's runtime makes before the driver does (docs/facts.md).
cudaError_t checkReading(const cudaChannelFormatDesc& element, const cudaTextureDesc& texture) {
  const bool mixes = texture.filterMode == cudaFilterModeLinear, normalizes = texture.readMode == cudaReadModeNormalizedFloat;
  switch (element.f) {
    case cudaChannelFormatKindNone:
    case cudaChannelFormatKindNV12: return cudaSuccess;
    case cudaChannelFormatKindSigned:
    case cudaChannelFormatKindUnsigned:
      if (mixes && (!normalizes || element.x >= 32)) return cudaErrorInvalidFilterSetting;
      return normalizes && element.x >= 32 ? cudaErrorInvalidNormSetting : cudaSuccess;
    case cudaChannelFormatKindFloat:
    case cudaChannelFormatKindUnsignedBlockCompressed6H:
    case cudaChannelFormatKindSignedBlockCompressed6H:
    case cudaChannelFormatKindUnsignedNormalized1010102: return normalizes ? cudaErrorInvalidNormSetting : cudaSuccess;
    default: return normalizes ? cudaSuccess : cudaErrorInvalidNormSetting;  // integers that represent fractions
  }
}

cudaError_t createTexture(cudaTextureObject_t* object, const cudaResourceDesc* resource, const cudaTextureDesc* texture,
                          const cudaResourceViewDesc* view) {
  if (object == nullptr || resource == nullptr || texture == nullptr) return cudaErrorInvalidValue;
  CUDA_RESOURCE_DESC driverResource;
  if (cudaError_t error = toDriver(*resource, driverResource); error != cudaSuccess) return error;
  if (auto element = elementOf(*resource))
    if (cudaError_t error = checkReading(*element, *texture); error != cudaSuccess) return error;
  CUDA_TEXTURE_DESC driverTexture = toDriver(*texture);
  return answer(cuTexObjectCreate(object, &driverResource, &driverTexture, same<CUDA_RESOURCE_VIEW_DESC>(view)));
}

cudaError_t createSurface(cudaSurfaceObject_t* object, const cudaResourceDesc* resource) {
  if (object == nullptr || resource == nullptr) return cudaErrorInvalidValue;
  CUDA_RESOURCE_DESC driverResource;
  if (cudaError_t error = toDriver(*resource, driverResource); error != cudaSuccess) return error;
  return answer(cuSurfObjectCreate(object, &driverResource));
}

template <class Ask>
cudaError_t readResource(cudaResourceDesc* resource, Ask ask) {
  CUDA_RESOURCE_DESC from;
  if (resource == nullptr) return cudaErrorInvalidValue;
  CUresult result = ask(&from);
  return result != CUDA_SUCCESS ? answer(result) : toRuntime(from, *resource);
}

cudaError_t readTexture(cudaTextureDesc* texture, cudaTextureObject_t object) {
  CUDA_TEXTURE_DESC from;
  if (texture == nullptr) return cudaErrorInvalidValue;
  CUresult result = cuTexObjectGetTextureDesc(&from, object);
  if (result == CUDA_SUCCESS) *texture = toRuntime(from);
  return answer(result);
}

}  // namespace
}  // namespace vgpu::runtime

using namespace vgpu::runtime;

RUNTIME(cudaCreateTextureObject,
        (cudaTextureObject_t * object, const cudaResourceDesc* resource, const cudaTextureDesc* texture,
         const cudaResourceViewDesc* view),
        createTexture(object, resource, texture, view))
RUNTIME(cudaDestroyTextureObject, (cudaTextureObject_t object), object == 0 ? CUDA_SUCCESS : cuTexObjectDestroy(object))
RUNTIME(cudaGetTextureObjectResourceDesc, (cudaResourceDesc * resource, cudaTextureObject_t object),
        readResource(resource, [&](CUDA_RESOURCE_DESC* from) { return cuTexObjectGetResourceDesc(from, object); }))
RUNTIME(cudaGetTextureObjectTextureDesc, (cudaTextureDesc * texture, cudaTextureObject_t object),
        readTexture(texture, object))
RUNTIME(cudaGetTextureObjectResourceViewDesc, (cudaResourceViewDesc * view, cudaTextureObject_t object),
        cuTexObjectGetResourceViewDesc(same<CUDA_RESOURCE_VIEW_DESC>(view), object))

RUNTIME(cudaCreateSurfaceObject, (cudaSurfaceObject_t * object, const cudaResourceDesc* resource),
        createSurface(object, resource))
RUNTIME(cudaDestroySurfaceObject, (cudaSurfaceObject_t object),
        object == 0 ? CUDA_SUCCESS : cuSurfObjectDestroy(object))
RUNTIME(cudaGetSurfaceObjectResourceDesc, (cudaResourceDesc * resource, cudaSurfaceObject_t object),
        readResource(resource, [&](CUDA_RESOURCE_DESC* from) { return cuSurfObjectGetResourceDesc(from, object); }))
