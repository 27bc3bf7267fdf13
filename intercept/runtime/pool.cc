// Stream-ordered allocation and memory pools.
#include "intercept/runtime/convert.h"
#include "intercept/runtime/rows.h"

namespace vgpu::runtime {
namespace {

CUresult allocateInStream(void** memory, size_t bytes, CUstream stream) {
  if (memory == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (bytes == 0) return *memory = nullptr, CUDA_SUCCESS;
  return cuMemAllocAsync(addressOut(memory), bytes, stream);
}

CUresult allocateFromPool(void** memory, size_t bytes, cudaMemPool_t pool, CUstream stream) {
  if (memory == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (bytes == 0) return *memory = nullptr, CUDA_SUCCESS;
  return cuMemAllocFromPoolAsync(addressOut(memory), bytes, pool, stream);
}

CUresult freeInStream(void* memory, CUstream stream) {
  return memory == nullptr ? CUDA_SUCCESS : cuMemFreeAsync(toDevice(memory), stream);
}

static_assert(static_cast<int>(cudaMemPoolAttrUsedMemHigh) == CU_MEMPOOL_ATTR_USED_MEM_HIGH);
static_assert(static_cast<int>(cudaMemAccessFlagsProtReadWrite) == CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
static_assert(static_cast<int>(cudaMemLocationTypeHostNumaCurrent) == CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT);
static_assert(static_cast<int>(cudaMemHandleTypeFabric) == CU_MEM_HANDLE_TYPE_FABRIC);

CUmemPool_attribute attributeOf(cudaMemPoolAttr attribute) { return static_cast<CUmemPool_attribute>(attribute); }

}  // namespace
}  // namespace vgpu::runtime

using namespace vgpu::runtime;

RUNTIME_STREAM(cudaMallocAsync, (void** memory, size_t bytes, cudaStream_t stream),
               allocateInStream(memory, bytes, on(stream)))
RUNTIME_STREAM(cudaMallocFromPoolAsync, (void** memory, size_t bytes, cudaMemPool_t pool, cudaStream_t stream),
               allocateFromPool(memory, bytes, pool, on(stream)))
RUNTIME_STREAM(cudaFreeAsync, (void* memory, cudaStream_t stream), freeInStream(memory, on(stream)))

RUNTIME(cudaMemPoolCreate, (cudaMemPool_t * pool, const cudaMemPoolProps* properties),
        cuMemPoolCreate(pool, same<CUmemPoolProps>(properties)))
RUNTIME(cudaMemPoolDestroy, (cudaMemPool_t pool), cuMemPoolDestroy(pool))
RUNTIME(cudaMemPoolTrimTo, (cudaMemPool_t pool, size_t keep), cuMemPoolTrimTo(pool, keep))
RUNTIME(cudaMemPoolSetAttribute, (cudaMemPool_t pool, cudaMemPoolAttr attribute, void* value),
        cuMemPoolSetAttribute(pool, attributeOf(attribute), value))
RUNTIME(cudaMemPoolGetAttribute, (cudaMemPool_t pool, cudaMemPoolAttr attribute, void* value),
        cuMemPoolGetAttribute(pool, attributeOf(attribute), value))
RUNTIME(cudaMemPoolSetAccess, (cudaMemPool_t pool, const cudaMemAccessDesc* accesses, size_t count),
        cuMemPoolSetAccess(pool, same<CUmemAccessDesc>(accesses), count))
RUNTIME(cudaMemPoolGetAccess, (cudaMemAccessFlags * flags, cudaMemPool_t pool, cudaMemLocation* location),
        cuMemPoolGetAccess(same<CUmemAccess_flags>(flags), pool, same<CUmemLocation>(location)))
RUNTIME(cudaMemPoolExportToShareableHandle,
        (void* shareable, cudaMemPool_t pool, cudaMemAllocationHandleType type, unsigned flags),
        cuMemPoolExportToShareableHandle(shareable, pool, static_cast<CUmemAllocationHandleType>(type), flags))
RUNTIME(cudaMemPoolImportFromShareableHandle,
        (cudaMemPool_t * pool, void* shareable, cudaMemAllocationHandleType type, unsigned flags),
        cuMemPoolImportFromShareableHandle(pool, shareable, static_cast<CUmemAllocationHandleType>(type), flags))
RUNTIME(cudaMemPoolExportPointer, (cudaMemPoolPtrExportData * data, void* memory),
        cuMemPoolExportPointer(same<CUmemPoolPtrExportData>(data), toDevice(memory)))
RUNTIME(cudaMemPoolImportPointer, (void** memory, cudaMemPool_t pool, cudaMemPoolPtrExportData* data),
        cuMemPoolImportPointer(addressOut(memory), pool, same<CUmemPoolPtrExportData>(data)))

RUNTIME_DEVICE(cudaDeviceGetDefaultMemPool, (cudaMemPool_t * pool, int device), cuDeviceGetDefaultMemPool(pool, device))
RUNTIME_DEVICE(cudaDeviceGetMemPool, (cudaMemPool_t * pool, int device), cuDeviceGetMemPool(pool, device))
RUNTIME_DEVICE(cudaDeviceSetMemPool, (int device, cudaMemPool_t pool), cuDeviceSetMemPool(device, pool))
RUNTIME(cudaMemGetDefaultMemPool, (cudaMemPool_t * pool, cudaMemLocation* location, cudaMemAllocationType type),
        cuMemGetDefaultMemPool(pool, same<CUmemLocation>(location), static_cast<CUmemAllocationType>(type)))
RUNTIME(cudaMemGetMemPool, (cudaMemPool_t * pool, cudaMemLocation* location, cudaMemAllocationType type),
        cuMemGetMemPool(pool, same<CUmemLocation>(location), static_cast<CUmemAllocationType>(type)))
RUNTIME(cudaMemSetMemPool, (cudaMemLocation * location, cudaMemAllocationType type, cudaMemPool_t pool),
        cuMemSetMemPool(same<CUmemLocation>(location), static_cast<CUmemAllocationType>(type), pool))
