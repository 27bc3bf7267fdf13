// Streams.
#include <memory>

#include "intercept/runtime/convert.h"
#include "intercept/runtime/rows.h"

namespace vgpu::runtime {
namespace {

/// The program's callback, which takes a cudaError_t; the driver's callbacks take a CUresult.
struct Callback {
  cudaStreamCallback_t function;
  void* data;
};

void CUDA_CB runCallback(CUstream stream, CUresult result, void* data) {
  std::unique_ptr<Callback> callback(static_cast<Callback*>(data));
  callback->function(stream, answer(result), callback->data);
}

CUresult addCallback(CUstream stream, cudaStreamCallback_t function, void* data, unsigned flags) {
  if (function == nullptr) return CUDA_ERROR_INVALID_VALUE;
  auto callback = std::make_unique<Callback>(Callback{function, data});
  CUresult result = cuStreamAddCallback(stream, runCallback, callback.get(), flags);
  if (result == CUDA_SUCCESS) static_cast<void>(callback.release());  // runCallback owns it now
  return result;
}

CUresult deviceOf(CUstream stream, int* ordinal) {
  CUdevice device;
  if (ordinal == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (CUresult result = cuStreamGetDevice(stream, &device); result != CUDA_SUCCESS) return result;
  *ordinal = device;  // the driver's device handle is the ordinal (CUDA Driver API, cuDeviceGet)
  return CUDA_SUCCESS;
}

}  // namespace
}  // namespace vgpu::runtime

using namespace vgpu::runtime;

RUNTIME(cudaStreamCreate, (cudaStream_t * stream), cuStreamCreate(stream, CU_STREAM_DEFAULT))
RUNTIME(cudaStreamCreateWithFlags, (cudaStream_t * stream, unsigned flags), cuStreamCreate(stream, flags))
RUNTIME(cudaStreamCreateWithPriority, (cudaStream_t * stream, unsigned flags, int priority),
        cuStreamCreateWithPriority(stream, flags, priority))
RUNTIME(cudaStreamDestroy, (cudaStream_t stream), cuStreamDestroy(stream))

RUNTIME_STREAM(cudaStreamSynchronize, (cudaStream_t stream), cuStreamSynchronize(on(stream)))
RUNTIME_STREAM(cudaStreamQuery, (cudaStream_t stream), cuStreamQuery(on(stream)))
RUNTIME_STREAM(cudaStreamWaitEvent, (cudaStream_t stream, cudaEvent_t event, unsigned flags),
               cuStreamWaitEvent(on(stream), event, flags))
RUNTIME_STREAM(cudaStreamAddCallback, (cudaStream_t stream, cudaStreamCallback_t function, void* data, unsigned flags),
               addCallback(on(stream), function, data, flags))
RUNTIME_STREAM(cudaLaunchHostFunc, (cudaStream_t stream, cudaHostFn_t function, void* data),
               cuLaunchHostFunc(on(stream), function, data))
RUNTIME_STREAM(cudaStreamAttachMemAsync, (cudaStream_t stream, void* memory, size_t length, unsigned flags),
               cuStreamAttachMemAsync(on(stream), toDevice(memory), length, flags))

RUNTIME_STREAM(cudaStreamGetPriority, (cudaStream_t stream, int* priority), cuStreamGetPriority(on(stream), priority))
RUNTIME_STREAM(cudaStreamGetFlags, (cudaStream_t stream, unsigned* flags), cuStreamGetFlags(on(stream), flags))
RUNTIME_STREAM(cudaStreamGetId, (cudaStream_t stream, unsigned long long* id), cuStreamGetId(on(stream), id))
RUNTIME_STREAM(cudaStreamGetDevice, (cudaStream_t stream, int* device), deviceOf(on(stream), device))

static_assert(static_cast<int>(cudaStreamAttributeAccessPolicyWindow) == CU_STREAM_ATTRIBUTE_ACCESS_POLICY_WINDOW);
static_assert(static_cast<int>(cudaStreamAttributePriority) == CU_STREAM_ATTRIBUTE_PRIORITY);
RUNTIME_STREAM(cudaStreamCopyAttributes, (cudaStream_t to, cudaStream_t from), cuStreamCopyAttributes(on(to), on(from)))
RUNTIME_STREAM(cudaStreamGetAttribute, (cudaStream_t stream, cudaStreamAttrID attribute, cudaStreamAttrValue* value),
               cuStreamGetAttribute(on(stream), static_cast<CUstreamAttrID>(attribute), same<CUstreamAttrValue>(value)))
RUNTIME_STREAM(cudaStreamSetAttribute,
               (cudaStream_t stream, cudaStreamAttrID attribute, const cudaStreamAttrValue* value),
               cuStreamSetAttribute(on(stream), static_cast<CUstreamAttrID>(attribute), same<CUstreamAttrValue>(value)))
