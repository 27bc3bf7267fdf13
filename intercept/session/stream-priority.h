// The priority of a stream, set by cuStreamCreateWithPriority, by an attribute, or by copying another stream's. The client returns it in
// queries and uses it for captured kernels; the worker's driver gets it by the same calls. Any thread; stream handles are resolved.
#pragma once

#include <cuda.h>

#include <cstdint>

namespace vgpu::client {

class Thread;

// Sets the priority, by an attribute to the nearest that the device has, or to that of another stream. CUDA_SUCCESS, or the error with
// which the call is refused.
CUresult keepPriority(Thread& thread, uint64_t stream, CUstreamAttrID attribute, const CUstreamAttrValue* value);
CUresult keepPriority(Thread& thread, uint64_t stream, uint64_t from);

// A context of the device has ended and is idle; 0: a fault has ended all of them, and the worker's. All contexts share the worker's
// default stream; its attributes are reset with the context that set one last, so that a new context's are those of a new stream.
void endDefaultStream(Thread& thread, unsigned device, uint64_t context);

}  // namespace vgpu::client
