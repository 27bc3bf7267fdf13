#include "intercept/session/memory/pool-place.h"

#include <algorithm>
#include <iterator>

namespace vgpu::client {

namespace {

// The locations after the devices, for each type of allocation.
constexpr CUmemLocationType others[] = {CU_MEM_LOCATION_TYPE_NONE, CU_MEM_LOCATION_TYPE_HOST, CU_MEM_LOCATION_TYPE_HOST_NUMA,
                                        CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT};
static_assert(PoolPlace::count == 2 * (maxDevices + std::size(others)));
constexpr unsigned placesOfType = PoolPlace::count / 2;
constexpr CUmemAllocationType types[] = {CU_MEM_ALLOCATION_TYPE_PINNED, CU_MEM_ALLOCATION_TYPE_MANAGED};

}  // namespace

unsigned PoolPlace::number() const {
  unsigned within = isOnDevice() ? static_cast<unsigned>(location.id) : maxDevices;
  if (!isOnDevice())
    while (others[within - maxDevices] != location.type) ++within;
  return within + (isManaged() ? placesOfType : 0);
}

PoolPlace PoolPlace::at(unsigned number) {
  const unsigned within = number % placesOfType;
  CUmemLocation location{CU_MEM_LOCATION_TYPE_DEVICE, static_cast<int>(within)};
  if (within >= maxDevices) location = {others[within - maxDevices], 0};
  return {types[number / placesOfType], location};
}

// CUDA checks the location's type first.
CUresult PoolPlace::find(CUmemAllocationType type, const CUmemLocation& location, size_t devices, PoolPlace& place) {
  const bool isPlace = location.type >= CU_MEM_LOCATION_TYPE_NONE && location.type <= CU_MEM_LOCATION_TYPE_HOST_NUMA;
  if (!isPlace) return CUDA_ERROR_NOT_SUPPORTED;
  const bool isPinned = type == CU_MEM_ALLOCATION_TYPE_PINNED && location.type != CU_MEM_LOCATION_TYPE_NONE;
  if (!isPinned && type != CU_MEM_ALLOCATION_TYPE_MANAGED) return CUDA_ERROR_INVALID_VALUE;
  place = {type, {location.type, 0}};
  if (location.type == CU_MEM_LOCATION_TYPE_NONE || location.type == CU_MEM_LOCATION_TYPE_HOST) return CUDA_SUCCESS;
  place.location.id = location.id;
  const size_t count = place.isOnDevice() ? devices : 1;
  return location.id >= 0 && static_cast<size_t>(location.id) < count ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult PoolPlace::ofNew(const CUmemPoolProps& properties, size_t devices, PoolPlace& place) {
  constexpr unsigned shareable = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR | CU_MEM_HANDLE_TYPE_FABRIC;
  const bool isManaged = properties.allocType == CU_MEM_ALLOCATION_TYPE_MANAGED;
  const unsigned handles = properties.handleTypes;
  if (std::ranges::any_of(properties.reserved, [](unsigned char byte) { return byte != 0; })) return CUDA_ERROR_INVALID_VALUE;
  if (isManaged ? handles != 0 || properties.usage != 0 || properties.maxSize != 0 : (handles & ~shareable) != 0)
    return CUDA_ERROR_INVALID_VALUE;
  const CUmemLocation& location = properties.location;
  if (isManaged && location.type == CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT)  // allowed for a new pool, which can never be the current one
    return place = {properties.allocType, {location.type, 0}}, CUDA_SUCCESS;
  CUresult bad = find(properties.allocType, location, devices, place);
  if (bad != CUDA_SUCCESS) return isManaged ? bad : CUDA_ERROR_INVALID_VALUE;
  if (handles != 0 && location.type == CU_MEM_LOCATION_TYPE_HOST) return CUDA_ERROR_INVALID_VALUE;
  const bool isDescriptor = handles == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  if (handles != 0 && !(place.isOnDevice() && isDescriptor)) return CUDA_ERROR_NOT_SUPPORTED;
  return properties.maxSize > deviceArenaBytes ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}

}  // namespace vgpu::client
