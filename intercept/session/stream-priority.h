// The priority of a stream as the program has set it: by cuStreamCreateWithPriority, by an attribute, or as another stream's. The client
// answers with it, and captured kernels have it; the worker's driver has it by the same calls. Any thread; a resolved handle each.
#pragma once

#include <cuda.h>

#include <cstdint>

namespace vgpu::client {

class Thread;

// What a call changes of it: by an attribute, to the nearest that the device has; or to that of another stream. CUDA_SUCCESS, or what
// the call is refused with.
CUresult keepPriority(Thread& thread, uint64_t stream, CUstreamAttrID attribute, const CUstreamAttrValue* value);
CUresult keepPriority(Thread& thread, uint64_t stream, uint64_t from);

// A context of the device has ended, and is idle; 0: a fault has ended all of them, and the worker's. All have the worker's default stream,
// whose attributes end with the context of which one was set last: a new context's are as those of any new stream.
void endDefaultStream(Thread& thread, unsigned device, uint64_t context);

}  // namespace vgpu::client
