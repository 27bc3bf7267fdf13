// Attributes of a kernel's node, as the program asks for them and sets them.
#pragma once

#include <cuda.h>

#include "intercept/session/graph/node-work.h"

namespace vgpu::client {

class Session;
class Thread;

// CUDA_ERROR_INVALID_VALUE for one that nodes do not have.
CUresult getAttribute(const KernelWork& work, CUlaunchAttributeID id, CUlaunchAttributeValue& value);
// Of a node that kernels may change, `value` gets what they know it by.
CUresult setAttribute(Thread& thread, KernelWork& work, CUlaunchAttributeID id, CUlaunchAttributeValue& value);

// cuda.h, cuGraphInstantiate: a captured kernel has its stream's priority, unless its launch has one.
void takePriority(const Session& session, uint64_t stream, KernelWork& work);

// In any order.
bool hasSameAttributes(const KernelWork& a, const KernelWork& b);

}  // namespace vgpu::client
