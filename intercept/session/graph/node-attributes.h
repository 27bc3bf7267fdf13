// Attributes of kernel nodes, as the program queries and sets them.
#pragma once

#include <cuda.h>

#include "intercept/session/graph/node-work.h"

namespace vgpu::client {

class Session;
class Thread;

// CUDA_ERROR_INVALID_VALUE for an attribute that nodes do not have.
CUresult getAttribute(const KernelWork& work, CUlaunchAttributeID id, CUlaunchAttributeValue& value);
// If the node becomes device-updatable, `value` receives the handle by which kernels know it.
CUresult setAttribute(Thread& thread, KernelWork& work, CUlaunchAttributeID id, CUlaunchAttributeValue& value);

// cuda.h, cuGraphInstantiate: a captured kernel gets its stream's priority, unless its launch sets one.
void takePriority(const Session& session, uint64_t stream, KernelWork& work);

// Compares the attributes in any order.
bool hasSameAttributes(const KernelWork& a, const KernelWork& b);

}  // namespace vgpu::client
