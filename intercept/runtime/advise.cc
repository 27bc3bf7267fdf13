// Managed memory's advice and prefetching, and batches of copies.
#include "intercept/runtime/convert.h"
#include "intercept/runtime/rows.h"

namespace vgpu::runtime {
namespace {

static_assert(static_cast<int>(cudaMemAdviseUnsetAccessedBy) == CU_MEM_ADVISE_UNSET_ACCESSED_BY);
static_assert(static_cast<int>(cudaMemRangeAttributeLastPrefetchLocation) ==
              CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION);
static_assert(static_cast<int>(cudaMemcpySrcAccessOrderAny) == CU_MEMCPY_SRC_ACCESS_ORDER_ANY);

CUmemLocation toDriver(const cudaMemLocation& from) { return {static_cast<CUmemLocationType>(from.type), from.id}; }

}  // namespace
}  // namespace vgpu::runtime

using namespace vgpu::runtime;

RUNTIME(cudaMemAdvise, (const void* memory, size_t bytes, cudaMemoryAdvise advice, cudaMemLocation location),
        cuMemAdvise(toDevice(memory), bytes, static_cast<CUmem_advise>(advice), toDriver(location)))
RUNTIME_STREAM(cudaMemPrefetchAsync,
               (const void* memory, size_t bytes, cudaMemLocation location, unsigned flags, cudaStream_t stream),
               cuMemPrefetchAsync(toDevice(memory), bytes, toDriver(location), flags, on(stream)))
RUNTIME_STREAM(cudaMemPrefetchBatchAsync,
               (void** memory, size_t* bytes, size_t count, cudaMemLocation* locations, size_t* indices,
                size_t locationCount, unsigned long long flags, cudaStream_t stream),
               cuMemPrefetchBatchAsync(same<CUdeviceptr>(memory), bytes, count, same<CUmemLocation>(locations), indices,
                                       locationCount, flags, on(stream)))
RUNTIME_STREAM(cudaMemDiscardBatchAsync,
               (void** memory, size_t* bytes, size_t count, unsigned long long flags, cudaStream_t stream),
               cuMemDiscardBatchAsync(same<CUdeviceptr>(memory), bytes, count, flags, on(stream)))
RUNTIME_STREAM(cudaMemDiscardAndPrefetchBatchAsync,
               (void** memory, size_t* bytes, size_t count, cudaMemLocation* locations, size_t* indices,
                size_t locationCount, unsigned long long flags, cudaStream_t stream),
               cuMemDiscardAndPrefetchBatchAsync(same<CUdeviceptr>(memory), bytes, count,
                                                 same<CUmemLocation>(locations), indices, locationCount, flags,
                                                 on(stream)))
RUNTIME(cudaMemRangeGetAttribute,
        (void* data, size_t room, cudaMemRangeAttribute attribute, const void* memory, size_t bytes),
        cuMemRangeGetAttribute(data, room, static_cast<CUmem_range_attribute>(attribute), toDevice(memory), bytes))
RUNTIME(cudaMemRangeGetAttributes,
        (void** data, size_t* rooms, cudaMemRangeAttribute* attributes, size_t count, const void* memory, size_t bytes),
        cuMemRangeGetAttributes(data, rooms, same<CUmem_range_attribute>(attributes), count, toDevice(memory), bytes))

RUNTIME_STREAM(cudaMemcpyBatchAsync,
               (void* const* to, const void* const* from, const size_t* bytes, size_t count,
                cudaMemcpyAttributes* attributes, size_t* indices, size_t attributeCount, cudaStream_t stream),
               cuMemcpyBatchAsync(same<CUdeviceptr>(const_cast<void**>(to)),
                                  same<CUdeviceptr>(const_cast<const void**>(from)), const_cast<size_t*>(bytes), count,
                                  same<CUmemcpyAttributes>(attributes), indices, attributeCount, on(stream)))
RUNTIME_STREAM(cudaMemcpy3DBatchAsync,
               (size_t count, cudaMemcpy3DBatchOp* operations, unsigned long long flags, cudaStream_t stream),
               cuMemcpy3DBatchAsync(count, same<CUDA_MEMCPY3D_BATCH_OP>(operations), flags, on(stream)))
