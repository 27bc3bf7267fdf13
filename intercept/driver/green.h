// Green contexts: parts of a device's multiprocessors (session/green-contexts.h). Rows of vgpu/api/cuda.table name these functions.
#pragma once

#include "intercept/session/entry.h"

namespace vgpu::client {

// ---- resources (green-resource.cc)
CUresult deviceResource(CUdevice device, CUdevResource* resource, CUdevResourceType type);
CUresult contextResource(CUcontext context, CUdevResource* resource, CUdevResourceType type);
CUresult greenResource(CUgreenCtx green, CUdevResource* resource, CUdevResourceType type);
CUresult splitMultiprocessors(CUdevResource* result, unsigned* count, const CUdevResource* input, CUdevResource* remaining,
                              unsigned flags, unsigned least);
CUresult describeResources(CUdevResourceDesc* descriptor, const CUdevResource* resources, unsigned count);

// All that a device has: what no descriptor means for cuGreenCtxCreate.
CUresult describeDevice(Thread& thread, unsigned device, ResourceDescriptorState& descriptor);

// ---- contexts (green-context.cc)
CUresult greenIdentity(CUgreenCtx green, unsigned long long* id);
CUresult contextsOfStream(CUstream stream, CUcontext* context, CUgreenCtx* green);
CUresult greenOfStream(CUstream stream, CUgreenCtx* green);
CUresult recordGreen(CUgreenCtx green, CUevent event);
CUresult delayGreen(CUgreenCtx green, CUevent event);

// cuStreamCreateWithPriority while a green context, a live one, is current. `priority` is one of the device's.
CUresult createGreenStream(Thread& thread, uint64_t green, unsigned flags, int priority, CUstream* stream);
// Ends a green context, its context and its streams. CUDA_ERROR_CONTEXT_IS_DESTROYED if another thread has.
CUresult endGreen(Thread& thread, uint64_t green);
// Whether that was the last retain of its device's primary context is the caller's to see to.
bool releaseOfGreen(Thread& thread, uint64_t green);
// How many multiprocessors run what is launched in a stream (a resolved handle).
uint32_t multiprocessorsOf(Thread& thread, uint64_t stream);

}  // namespace vgpu::client
