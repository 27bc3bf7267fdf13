// CUDA arrays.
#include "intercept/runtime/array-format.h"
#include "intercept/runtime/convert.h"
#include "intercept/runtime/rows.h"

namespace vgpu::runtime {
namespace {

static_assert(cudaArrayLayered == CUDA_ARRAY3D_LAYERED && cudaArraySurfaceLoadStore == CUDA_ARRAY3D_SURFACE_LDST &&
              cudaArrayCubemap == CUDA_ARRAY3D_CUBEMAP && cudaArrayTextureGather == CUDA_ARRAY3D_TEXTURE_GATHER &&
              cudaArraySparse == CUDA_ARRAY3D_SPARSE);

cudaError_t describe(const cudaChannelFormatDesc* element, cudaExtent extent, unsigned flags,
                     CUDA_ARRAY3D_DESCRIPTOR& descriptor) {
  if (element == nullptr) return cudaErrorInvalidValue;
  auto format = toDriver(*element);
  if (!format) return cudaErrorInvalidChannelDescriptor;
  descriptor = {extent.width, extent.height, extent.depth, format->format, format->channels, flags};
  return cudaSuccess;
}

cudaError_t allocate(cudaArray_t* array, const cudaChannelFormatDesc* element, cudaExtent extent, unsigned flags) {
  CUDA_ARRAY3D_DESCRIPTOR descriptor;
  if (array == nullptr) return cudaErrorInvalidValue;
  cudaError_t error = describe(element, extent, flags, descriptor);
  return error != cudaSuccess ? error : answer(cuArray3DCreate(same<CUarray>(array), &descriptor));
}

cudaError_t allocateLevels(cudaMipmappedArray_t* array, const cudaChannelFormatDesc* element, cudaExtent extent,
                           unsigned levels, unsigned flags) {
  CUDA_ARRAY3D_DESCRIPTOR descriptor;
  if (array == nullptr) return cudaErrorInvalidValue;
  cudaError_t error = describe(element, extent, flags, descriptor);
  return error != cudaSuccess ? error
                              : answer(cuMipmappedArrayCreate(same<CUmipmappedArray>(array), &descriptor, levels));
}

CUresult destroy(cudaArray_t array) { return array == nullptr ? CUDA_SUCCESS : cuArrayDestroy(handle<CUarray>(array)); }

CUresult destroyLevels(cudaMipmappedArray_t array) {
  return array == nullptr ? CUDA_SUCCESS : cuMipmappedArrayDestroy(handle<CUmipmappedArray>(array));
}

cudaError_t readElement(cudaChannelFormatDesc* element, const CUDA_ARRAY3D_DESCRIPTOR& descriptor) {
  auto format = toRuntime({descriptor.Format, descriptor.NumChannels});
  if (!format) return cudaErrorInvalidChannelDescriptor;
  *element = *format;
  return cudaSuccess;
}

/// Every output may be null.
cudaError_t inspect(cudaChannelFormatDesc* element, cudaExtent* extent, unsigned* flags, cudaArray_const_t array) {
  CUDA_ARRAY3D_DESCRIPTOR descriptor;
  if (CUresult result = cuArray3DGetDescriptor(&descriptor, handle<CUarray>(array)); result != CUDA_SUCCESS)
    return answer(result);
  if (extent != nullptr) *extent = {descriptor.Width, descriptor.Height, descriptor.Depth};
  if (flags != nullptr) *flags = descriptor.Flags;
  return element == nullptr ? cudaSuccess : readElement(element, descriptor);
}

/// A null handle is cudaErrorInvalidValue here; any other invalid handle gets the driver's error.
template <typename Array, typename Ask>
cudaError_t ofArray(Array array, Ask ask) {
  return array == nullptr ? cudaErrorInvalidValue : answer(ask());
}

/// These two pairs are converted by reference: both structures have the same members in the same order.
static_assert(sizeof(cudaArrayMemoryRequirements) == sizeof(CUDA_ARRAY_MEMORY_REQUIREMENTS));
static_assert(sizeof(cudaArraySparseProperties) == sizeof(CUDA_ARRAY_SPARSE_PROPERTIES));

}  // namespace
}  // namespace vgpu::runtime

using namespace vgpu::runtime;

RUNTIME(cudaMallocArray,
        (cudaArray_t * array, const cudaChannelFormatDesc* element, size_t width, size_t height, unsigned flags),
        allocate(array, element, {width, height, 0}, flags))
RUNTIME(cudaMalloc3DArray,
        (cudaArray_t * array, const cudaChannelFormatDesc* element, cudaExtent extent, unsigned flags),
        allocate(array, element, extent, flags))
RUNTIME(cudaFreeArray, (cudaArray_t array), destroy(array))
RUNTIME(cudaMallocMipmappedArray,
        (cudaMipmappedArray_t * array, const cudaChannelFormatDesc* element, cudaExtent extent, unsigned levels,
         unsigned flags),
        allocateLevels(array, element, extent, levels, flags))
RUNTIME(cudaGetMipmappedArrayLevel, (cudaArray_t * level, cudaMipmappedArray_const_t array, unsigned index),
        cuMipmappedArrayGetLevel(same<CUarray>(level), handle<CUmipmappedArray>(array), index))
RUNTIME(cudaFreeMipmappedArray, (cudaMipmappedArray_t array), destroyLevels(array))

RUNTIME(cudaArrayGetInfo, (cudaChannelFormatDesc * element, cudaExtent* extent, unsigned* flags, cudaArray_t array),
        inspect(element, extent, flags, array))
RUNTIME(cudaGetChannelDesc, (cudaChannelFormatDesc * element, cudaArray_const_t array),
        element == nullptr ? cudaErrorInvalidValue : inspect(element, nullptr, nullptr, array))
RUNTIME(cudaArrayGetPlane, (cudaArray_t * plane, cudaArray_t array, unsigned index),
        cuArrayGetPlane(same<CUarray>(plane), handle<CUarray>(array), index))
RUNTIME(cudaArrayGetMemoryRequirements, (cudaArrayMemoryRequirements * requirements, cudaArray_t array, int device),
        ofArray(array, [&] {
          return cuArrayGetMemoryRequirements(same<CUDA_ARRAY_MEMORY_REQUIREMENTS>(requirements), handle<CUarray>(array), device);
        }))
RUNTIME(cudaMipmappedArrayGetMemoryRequirements,
        (cudaArrayMemoryRequirements * requirements, cudaMipmappedArray_t array, int device),
        ofArray(array, [&] {
          return cuMipmappedArrayGetMemoryRequirements(same<CUDA_ARRAY_MEMORY_REQUIREMENTS>(requirements),
                                                       handle<CUmipmappedArray>(array), device);
        }))
RUNTIME(cudaArrayGetSparseProperties, (cudaArraySparseProperties * properties, cudaArray_t array),
        cuArrayGetSparseProperties(same<CUDA_ARRAY_SPARSE_PROPERTIES>(properties), handle<CUarray>(array)))
RUNTIME(cudaMipmappedArrayGetSparseProperties, (cudaArraySparseProperties * properties, cudaMipmappedArray_t array),
        ofArray(array, [&] {
          return cuMipmappedArrayGetSparseProperties(same<CUDA_ARRAY_SPARSE_PROPERTIES>(properties), handle<CUmipmappedArray>(array));
        }))

extern "C" cudaChannelFormatDesc cudaCreateChannelDesc(int x, int y, int z, int w, cudaChannelFormatKind kind) {
  return {x, y, z, w, kind};
}
