// Memory and semaphores of other interfaces.
#include "intercept/runtime/array-format.h"
#include "intercept/runtime/convert.h"
#include "intercept/runtime/rows.h"

namespace vgpu::runtime {
namespace {

cudaError_t mapLevels(cudaMipmappedArray_t* array, cudaExternalMemory_t memory,
                      const cudaExternalMemoryMipmappedArrayDesc* from) {
  if (from == nullptr) return cudaErrorInvalidValue;
  auto format = toDriver(from->formatDesc);
  if (!format) return cudaErrorInvalidChannelDescriptor;
  CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC to = {};
  to.offset = from->offset;
  to.arrayDesc = {from->extent.width, from->extent.height, from->extent.depth,
                  format->format,     format->channels,    from->flags};
  to.numLevels = from->numLevels;
  return answer(
      cuExternalMemoryGetMappedMipmappedArray(same<CUmipmappedArray>(array), handle<CUexternalMemory>(memory), &to));
}

}  // namespace
}  // namespace vgpu::runtime

using namespace vgpu::runtime;

static_assert(static_cast<int>(cudaExternalMemoryHandleTypeNvSciBuf) == CU_EXTERNAL_MEMORY_HANDLE_TYPE_NVSCIBUF);
static_assert(static_cast<int>(cudaExternalSemaphoreHandleTypeTimelineSemaphoreFd) ==
              CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_TIMELINE_SEMAPHORE_FD);

RUNTIME(cudaImportExternalMemory, (cudaExternalMemory_t * memory, const cudaExternalMemoryHandleDesc* from),
        cuImportExternalMemory(same<CUexternalMemory>(memory), same<CUDA_EXTERNAL_MEMORY_HANDLE_DESC>(from)))
RUNTIME(cudaExternalMemoryGetMappedBuffer,
        (void** address, cudaExternalMemory_t memory, const cudaExternalMemoryBufferDesc* buffer),
        cuExternalMemoryGetMappedBuffer(addressOut(address), handle<CUexternalMemory>(memory),
                                        same<CUDA_EXTERNAL_MEMORY_BUFFER_DESC>(buffer)))
RUNTIME(cudaExternalMemoryGetMappedMipmappedArray,
        (cudaMipmappedArray_t * array, cudaExternalMemory_t memory, const cudaExternalMemoryMipmappedArrayDesc* levels),
        mapLevels(array, memory, levels))
RUNTIME(cudaDestroyExternalMemory, (cudaExternalMemory_t memory),
        cuDestroyExternalMemory(handle<CUexternalMemory>(memory)))

RUNTIME(cudaImportExternalSemaphore, (cudaExternalSemaphore_t * semaphore, const cudaExternalSemaphoreHandleDesc* from),
        cuImportExternalSemaphore(same<CUexternalSemaphore>(semaphore),
                                  same<CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC>(from)))
RUNTIME_STREAM(cudaSignalExternalSemaphoresAsync,
               (const cudaExternalSemaphore_t* semaphores, const cudaExternalSemaphoreSignalParams* parameters,
                unsigned count, cudaStream_t stream),
               cuSignalExternalSemaphoresAsync(same<CUexternalSemaphore>(semaphores),
                                               same<CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS>(parameters), count,
                                               on(stream)))
RUNTIME_STREAM(cudaWaitExternalSemaphoresAsync,
               (const cudaExternalSemaphore_t* semaphores, const cudaExternalSemaphoreWaitParams* parameters,
                unsigned count, cudaStream_t stream),
               cuWaitExternalSemaphoresAsync(same<CUexternalSemaphore>(semaphores),
                                             same<CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS>(parameters), count, on(stream)))
RUNTIME(cudaDestroyExternalSemaphore, (cudaExternalSemaphore_t semaphore),
        cuDestroyExternalSemaphore(handle<CUexternalSemaphore>(semaphore)))
