#include "intercept/session/memory/virtual-memory.h"

#include <algorithm>

#include "intercept/session/call.h"
#include "intercept/session/memory/physical-properties.h"
#include "intercept/session/ring-order.h"
#include "intercept/session/wait.h"

namespace vgpu::client {

namespace {

bool isAccess(CUmemAccess_flags flags) {
  return flags == CU_MEM_ACCESS_FLAGS_PROT_NONE || flags == CU_MEM_ACCESS_FLAGS_PROT_READ ||
         flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
}

}  // namespace

// ------------------------------------------------------------------ addresses

CUresult VirtualMemory::reserve(uint64_t bytes, uint64_t alignment, uint64_t wanted, CUdeviceptr* address) {
  std::lock_guard lock(mutex);
  return reservations.reserve(bytes, alignment, wanted, address);
}

CUresult VirtualMemory::unreserve(uint64_t address, uint64_t bytes) {
  std::lock_guard change(changing);
  std::lock_guard lock(mutex);
  if (!mappings.isFree(address, bytes)) return CUDA_ERROR_INVALID_VALUE;
  return reservations.free(address, bytes);
}

// ------------------------------------------------------------------ physical memory

CUresult VirtualMemory::create(Thread& thread, uint64_t bytes, const CUmemAllocationProp* properties,
                               CUmemGenericAllocationHandle* handle) {
  if (CUresult bad = checkProperties(thread.session, properties)) return bad;
  if (bytes == 0 || !isGranular(bytes)) return CUDA_ERROR_INVALID_VALUE;
  if (bytes > mappedArenaBytes) return CUDA_ERROR_OUT_OF_MEMORY;
  std::lock_guard change(changing);
  if (CUresult error = endUnused(thread)) return error;
  if (isOfHost(properties->location)) {
    HostPhysical host;
    if (CUresult error = HostPhysical::make(thread, bytes, properties->requestedHandleTypes != 0, host)) return error;
    return addHost(thread, host, handle);
  }
  HandleTable& handles = thread.session.handles;
  auto device = static_cast<unsigned>(properties->location.id);
  uint64_t made = handles.create(api::Kind::PHYSICAL, device);
  CUmemAllocationProp granted = *properties;  // no network card reaches a session's memory, as devices report
  granted.allocFlags.gpuDirectRDMACapable = 0;
  granted.allocFlags.usage = 0;
  {
    Call<api::Cuda::PhysicalCreateParams> frame(thread.on(device), api::Method::physicalCreate);
    frame->setPhysical(made);
    frame->setBytes(bytes);
    frame->setIsShareable(properties->requestedHandleTypes != CU_MEM_HANDLE_TYPE_NONE);
    frame->setIsTilePool(isTilePool(*properties));
    frame->setIsCompressible(properties->allocFlags.compressionType != CU_MEM_ALLOCATION_COMP_NONE);
    if (CUresult error = frame.call()) return handles.destroy(made), error;
    granted.allocFlags.compressionType = frame.results<api::Cuda::PhysicalCreateResults>().getIsCompressible();
  }
  std::lock_guard lock(mutex);
  physicals.add(made, {.bytes = bytes, .properties = granted, .memory = made});
  *handle = made;
  return CUDA_SUCCESS;
}

CUresult VirtualMemory::addHost(Thread& thread, const HostPhysical& memory, CUmemGenericAllocationHandle* handle) {
  const uint64_t made = *handle = thread.session.handles.create(api::Kind::PHYSICAL, hostMemoryDevice);
  std::lock_guard lock(mutex);
  physicals.add(made, {.bytes = memory.bytes(), .properties = memory.properties(), .memory = made, .host = memory});
  return CUDA_SUCCESS;
}

CUresult VirtualMemory::end(Thread& thread, uint64_t handle) {
  const Physical& physical = physicals.at(handle);
  if (physical.memory != handle) return CUDA_SUCCESS;
  if (physical.host) return physical.host->end(thread);
  Call<api::Cuda::PhysicalReleaseParams> frame(thread.on(physical.device()), api::Method::physicalRelease);
  frame->setPhysical(handle);
  return frame.call();
}

// Ends physical memory that is no longer reachable.
CUresult VirtualMemory::endUnused(Thread& thread) {
  std::vector<uint64_t> kept;
  while (const uint64_t handle = physicals.findUnused(kept)) {
    const CUresult error = end(thread, handle);
    if (error == CUDA_ERROR_NOT_READY) {  // arrays still use its memory
      kept.push_back(handle);
      continue;
    }
    if (error != CUDA_SUCCESS) return error;
    thread.session.handles.destroy(handle);
    std::lock_guard lock(mutex);
    physicals.remove(handle);
  }
  return CUDA_SUCCESS;
}

CUresult VirtualMemory::release(Thread& thread, CUmemGenericAllocationHandle handle) {
  std::lock_guard change(changing);
  {
    std::lock_guard lock(mutex);
    Physical* physical = physicals.findLive(handle);
    if (physical == nullptr) return CUDA_ERROR_INVALID_VALUE;
    --physical->handles;
  }
  return endUnused(thread);
}

CUresult VirtualMemory::retain(uint64_t address, CUmemGenericAllocationHandle* handle) {
  std::lock_guard change(changing);
  std::lock_guard lock(mutex);
  auto* mapping = mappings.holding(address);
  if (mapping == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *handle = mapping->second.physical;
  ++physicals.at(mapping->second.physical).handles;
  return CUDA_SUCCESS;
}

CUresult VirtualMemory::describe(CUmemGenericAllocationHandle handle, CUmemAllocationProp* properties) const {
  std::lock_guard lock(mutex);
  const Physical* found = physicals.find(handle);
  if (found == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *properties = found->properties;
  return CUDA_SUCCESS;
}

CUresult VirtualMemory::exportTo(Thread& thread, CUmemGenericAllocationHandle handle, CUmemAllocationHandleType type,
                                 int* descriptor) {
  if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) return CUDA_ERROR_INVALID_VALUE;
  std::lock_guard change(changing);
  std::optional<SharedName> name;
  {
    std::lock_guard lock(mutex);
    Physical* physical = physicals.findLive(handle);
    if (physical == nullptr || (physical->properties.requestedHandleTypes & type) == 0) return CUDA_ERROR_INVALID_VALUE;
    if (physical->host) return physical->host->exportTo(*descriptor);
    name = physical->name;
  }
  if (!name) {
    name = SharedName::make();
    if (CUresult error = thread.session.shared.givePhysical(thread, handle, *name)) return error;
  }
  std::lock_guard lock(mutex);
  Physical* physical = physicals.findLive(handle);
  physical->name = name;
  auto exported = ExportedMemory::make(*descriptor, ExportedMemory::What::physical, *name);
  if (!exported) return CUDA_ERROR_OPERATING_SYSTEM;
  physical->exports.push_back(std::move(*exported));
  return CUDA_SUCCESS;
}

CUresult VirtualMemory::importFrom(Thread& thread, int descriptor, CUmemAllocationHandleType type,
                                   CUmemGenericAllocationHandle* handle) {
  if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) return CUDA_ERROR_NOT_SUPPORTED;
  std::lock_guard change(changing);
  if (HostPhysical::isIn(descriptor)) {
    HostPhysical host;
    if (CUresult error = HostPhysical::import(thread, descriptor, host)) return error;
    return addHost(thread, host, handle);
  }
  auto name = ExportedMemory::nameIn(descriptor, ExportedMemory::What::physical);
  if (!name) return CUDA_ERROR_INVALID_VALUE;
  if (const Physical* known = physicals.named(*name)) {
    const uint64_t made = *handle = thread.session.handles.create(api::Kind::PHYSICAL, known->device());
    std::lock_guard lock(mutex);
    physicals.import(made, *known);
    return CUDA_SUCCESS;
  }
  uint64_t made = 0, bytes = 0;
  if (CUresult error = thread.session.shared.takePhysical(thread, *name, made, bytes))
    return error == CUDA_ERROR_INVALID_HANDLE ? CUDA_ERROR_INVALID_VALUE : error;  // the exporting session has ended
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, static_cast<int>(handleDevice(made))};
  std::lock_guard lock(mutex);
  physicals.add(made, {.bytes = bytes, .properties = properties, .memory = made, .name = name});
  *handle = made;
  return CUDA_SUCCESS;
}

// ------------------------------------------------------------------ mappings

CUresult VirtualMemory::map(Thread& thread, uint64_t address, uint64_t bytes, uint64_t offset,
                            CUmemGenericAllocationHandle handle) {
  std::lock_guard change(changing);
  const Physical* physical;
  {
    std::lock_guard lock(mutex);
    physical = physicals.findLive(handle);
    if (physical == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (offset != 0 || bytes != physical->bytes) return CUDA_ERROR_NOT_SUPPORTED;  // cuda.h and the driver: only whole
    if (!isMappedRange(address, bytes) || !reservations.find(address, bytes)) return CUDA_ERROR_INVALID_VALUE;
    if (!mappings.isFree(address, bytes)) return CUDA_ERROR_INVALID_VALUE;
  }
  std::optional<SecondMapping> host;
  if (physical->host) {
    if (CUresult error = physical->host->map(thread, address, host)) return error;
  } else {
    Call<api::Cuda::PhysicalMapParams> frame(thread.on(physical->device()), api::Method::physicalMap);
    frame->setAddress(address);
    frame->setBytes(bytes);
    frame->setOffset(offset);
    frame->setPhysical(physical->memory);
    frame.describe(address, bytes);
    if (CUresult error = frame.call()) return error;
  }
  std::lock_guard lock(mutex);
  ++physicals.at(handle).mappings;
  mappings.add(address, {.bytes = bytes, .physical = handle, .host = std::move(host)});
  return CUDA_SUCCESS;
}

namespace {

// Frames for other devices that were sent before are executed before what this device is sent next: they may set a graph's node over the
// memory.
CUresult orderBehindOthers(Thread& thread, unsigned device) {
  return orderBehindAll(thread, device, (1u << thread.session.devices.size()) - 1);
}

}  // namespace

// Waits for the devices that may be using the mapping, which the driver does not (docs/facts.md): copies and fills that natively are
// complete when their call returns may here still be in a stream.
CUresult VirtualMemory::unmapOne(Thread& thread, uint64_t address) {
  const MemoryMapping& mapping = mappings.at(address);
  for (unsigned device = 0; device < thread.session.devices.size(); ++device)
    if (mapping.access[device] != CU_MEM_ACCESS_FLAGS_PROT_NONE && thread.session.fault(device) == CUDA_SUCCESS)
      if (CUresult error = synchronizeDevice(thread, device)) return error;
  if (CUresult error = orderBehindOthers(thread, handleDevice(mapping.physical))) return error;
  {
    Call<api::Cuda::PhysicalUnmapParams> frame(thread.on(handleDevice(mapping.physical)), api::Method::physicalUnmap);
    frame->setAddress(address);
    if (CUresult error = frame.call()) return error;
  }
  std::lock_guard lock(mutex);
  --physicals.at(mapping.physical).mappings;
  mappings.remove(address);
  return CUDA_SUCCESS;
}

CUresult VirtualMemory::unmap(Thread& thread, uint64_t address, uint64_t bytes) {
  std::lock_guard change(changing);
  if (!isMappedRange(address, bytes)) return CUDA_ERROR_INVALID_VALUE;
  auto whole = mappings.within(address, bytes);  // gaps in the range are ignored
  if (!whole) return CUDA_ERROR_INVALID_VALUE;
  for (uint64_t each : *whole)
    if (CUresult error = unmapOne(thread, each)) return error;
  return endUnused(thread);
}

CUresult VirtualMemory::setAccess(Thread& thread, uint64_t address, uint64_t bytes, std::span<const CUmemAccessDesc> access) {
  if (access.data() == nullptr || access.empty()) return CUDA_ERROR_INVALID_VALUE;
  for (auto& each : access) {
    const bool isDevice = each.location.type == CU_MEM_LOCATION_TYPE_DEVICE && thread.session.hasDevice(each.location.id);
    if (!(isDevice || isOfHost(each.location)) || !isAccess(each.flags)) return CUDA_ERROR_INVALID_VALUE;
  }
  std::lock_guard change(changing);
  auto whole = mappings.exactly(address, bytes);
  if (whole.empty()) return CUDA_ERROR_INVALID_VALUE;
  // The host can only be given access to host memory, which all devices may access.
  auto check = [&](const CUmemAccessDesc& each, const MemoryMapping& mapping) -> CUresult {
    if (isOfHost(each.location)) return mapping.host ? CUDA_SUCCESS : CUDA_ERROR_NOT_SUPPORTED;
    const auto device = static_cast<unsigned>(each.location.id), owner = handleDevice(mapping.physical);
    if (mapping.host || device == owner || each.flags == CU_MEM_ACCESS_FLAGS_PROT_NONE) return CUDA_SUCCESS;
    return thread.session.devices[device].canAccess(owner) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
  };
  for (uint64_t mapping : whole)
    for (auto& each : access)
      if (CUresult bad = check(each, mappings.at(mapping))) return bad;
  for (uint64_t mapping : whole)
    for (auto& each : access) {
      if (isOfHost(each.location)) {
        std::lock_guard lock(mutex);
        if (!mappings.at(mapping).host->allow(each.flags)) return CUDA_ERROR_OUT_OF_MEMORY;
        continue;
      }
      thread.session.use(thread, static_cast<unsigned>(each.location.id));
      if (CUresult error = orderBehindOthers(thread, handleDevice(mappings.at(mapping).physical))) return error;
      {
        Call<api::Cuda::PhysicalAccessParams> frame(thread.on(handleDevice(mappings.at(mapping).physical)),
                                                    api::Method::physicalAccess);
        frame->setAddress(mapping);
        frame->setDevice(static_cast<uint32_t>(each.location.id));
        frame->setFlags(each.flags);
        if (CUresult error = frame.call()) return error;
      }
      std::lock_guard lock(mutex);
      mappings.at(mapping).access[static_cast<size_t>(each.location.id)] = static_cast<uint8_t>(each.flags);
    }
  return CUDA_SUCCESS;
}

CUresult VirtualMemory::endDevice(Thread& thread, unsigned device) {
  std::lock_guard change(changing);
  CUresult first = CUDA_SUCCESS;
  for (uint64_t address : mappings.ofDevice(device))
    if (CUresult error = unmapOne(thread, address); first == CUDA_SUCCESS) first = error;
  physicals.letGo(device);
  CUresult unused = endUnused(thread);
  return first != CUDA_SUCCESS ? first : unused;
}

// ------------------------------------------------------------------ queries

std::optional<VirtualMemory::Mapped> VirtualMemory::find(uint64_t address) const {
  if (!inMappedArena(address)) return std::nullopt;
  std::lock_guard lock(mutex);
  auto* found = mappings.holding(address);
  if (found == nullptr) return std::nullopt;
  auto& mapping = found->second;
  const Physical& physical = physicals.at(mapping.physical);
  return Mapped{.address = found->first,
                .bytes = mapping.bytes,
                .id = mapping.id,
                .memory = physical.memory,
                .device = physical.device(),
                .exportable = physical.properties.requestedHandleTypes,
                .access = mapping.access,
                .reserved = *reservations.find(found->first, mapping.bytes),
                .isHosts = physical.host.has_value(),
                .hostAccess = mapping.host ? mapping.host->allowed() : CU_MEM_ACCESS_FLAGS_PROT_NONE};
}

}  // namespace vgpu::client
