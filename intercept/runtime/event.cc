// Events.
#include "intercept/runtime/rows.h"

using namespace vgpu::runtime;

static_assert(cudaEventBlockingSync == CU_EVENT_BLOCKING_SYNC && cudaEventDisableTiming == CU_EVENT_DISABLE_TIMING &&
              cudaEventInterprocess == CU_EVENT_INTERPROCESS);

RUNTIME(cudaEventCreate, (cudaEvent_t * event), cuEventCreate(event, CU_EVENT_DEFAULT))
RUNTIME(cudaEventCreateWithFlags, (cudaEvent_t * event, unsigned flags), cuEventCreate(event, flags))
RUNTIME(cudaEventDestroy, (cudaEvent_t event), cuEventDestroy(event))
RUNTIME_STREAM(cudaEventRecord, (cudaEvent_t event, cudaStream_t stream), cuEventRecord(event, on(stream)))
RUNTIME_STREAM(cudaEventRecordWithFlags, (cudaEvent_t event, cudaStream_t stream, unsigned flags),
               cuEventRecordWithFlags(event, on(stream), flags))
RUNTIME(cudaEventQuery, (cudaEvent_t event), cuEventQuery(event))
RUNTIME(cudaEventSynchronize, (cudaEvent_t event), cuEventSynchronize(event))
RUNTIME(cudaEventElapsedTime, (float* milliseconds, cudaEvent_t start, cudaEvent_t end),
        milliseconds == nullptr ? CUDA_ERROR_INVALID_VALUE : cuEventElapsedTime(milliseconds, start, end))
