#include "intercept/session/memory/physical-properties.h"

#include "intercept/session/session.h"

namespace vgpu::client {

namespace {

constexpr auto descriptors = static_cast<unsigned>(CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);

// The errors for properties of a device's physical memory that CUDA, or a session, does not accept.
CUresult checkOnDevice(const Session& session, const CUmemAllocationProp& properties) {
  if (!session.hasDevice(properties.location.id)) return CUDA_ERROR_INVALID_DEVICE;
  auto types = static_cast<unsigned>(properties.requestedHandleTypes);
  if ((types & ~descriptors) != 0) return CUDA_ERROR_NOT_SUPPORTED;
  const bool isCompressible = properties.allocFlags.compressionType == CU_MEM_ALLOCATION_COMP_GENERIC;
  if (!isCompressible && properties.allocFlags.compressionType != CU_MEM_ALLOCATION_COMP_NONE) return CUDA_ERROR_INVALID_VALUE;
  return isTilePool(properties) && (types != 0 || isCompressible) ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

// The same for host memory, which is one NUMA node.
CUresult checkOnHost(const Session& session, const CUmemAllocationProp& properties) {
  const bool isNode = properties.location.type == CU_MEM_LOCATION_TYPE_HOST_NUMA;
  auto types = static_cast<unsigned>(properties.requestedHandleTypes);
  if (!isOfHost(properties.location) || (isNode && properties.location.id != 0) || (types & ~descriptors) != 0 ||
      (types != 0 && !isNode) || properties.allocFlags.compressionType != CU_MEM_ALLOCATION_COMP_NONE)
    return CUDA_ERROR_INVALID_VALUE;
  return session.memory.canMapHost() ? CUDA_SUCCESS : CUDA_ERROR_NOT_SUPPORTED;
}

}  // namespace

CUresult checkProperties(const Session& session, const CUmemAllocationProp* properties) {
  if (properties == nullptr || properties->type != CU_MEM_ALLOCATION_TYPE_PINNED) return CUDA_ERROR_INVALID_VALUE;
  return properties->location.type == CU_MEM_LOCATION_TYPE_DEVICE ? checkOnDevice(session, *properties)
                                                                  : checkOnHost(session, *properties);
}

}  // namespace vgpu::client
