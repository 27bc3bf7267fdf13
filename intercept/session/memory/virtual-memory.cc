#include "intercept/session/memory/virtual-memory.h"

#include <algorithm>

#include "intercept/session/call.h"
#include "intercept/session/wait.h"

namespace vgpu::client {

namespace {

bool isPiece(uint64_t value) { return value % leaseGranularity == 0; }

// A range of whole pieces within the addresses that a program may reserve.
bool isRange(uint64_t address, uint64_t bytes) {
  return isPiece(address) && isPiece(bytes) && bytes != 0 && inMappedArena(address) &&
         bytes <= mappedArenaBase + mappedArenaBytes - address;
}

bool isAccess(CUmemAccess_flags flags) {
  return flags == CU_MEM_ACCESS_FLAGS_PROT_NONE || flags == CU_MEM_ACCESS_FLAGS_PROT_READ ||
         flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
}

// The memory is for the tiles of sparse arrays, and for arrays of deferred mapping: it has no address.
bool isTilePool(const CUmemAllocationProp& properties) { return (properties.allocFlags.usage & CU_MEM_CREATE_USAGE_TILE_POOL) != 0; }

constexpr auto descriptors = static_cast<unsigned>(CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);

// What CUDA refuses of the properties of physical memory of a device, in a session.
CUresult checkOnDevice(const Thread& thread, const CUmemAllocationProp& properties) {
  if (!thread.session.hasDevice(properties.location.id)) return CUDA_ERROR_INVALID_DEVICE;
  auto types = static_cast<unsigned>(properties.requestedHandleTypes);
  if ((types & ~descriptors) != 0) return CUDA_ERROR_NOT_SUPPORTED;
  const bool isCompressible = properties.allocFlags.compressionType == CU_MEM_ALLOCATION_COMP_GENERIC;
  if (!isCompressible && properties.allocFlags.compressionType != CU_MEM_ALLOCATION_COMP_NONE) return CUDA_ERROR_INVALID_VALUE;
  return isTilePool(properties) && (types != 0 || isCompressible) ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

// And of the host, which is one node. Others than the program's process cannot have it.
CUresult checkOnHost(const Thread& thread, const CUmemAllocationProp& properties) {
  const bool isNode = properties.location.type == CU_MEM_LOCATION_TYPE_HOST_NUMA;
  auto types = static_cast<unsigned>(properties.requestedHandleTypes);
  if (!VirtualMemory::isHost(properties.location) || (isNode && properties.location.id != 0) || (types & ~descriptors) != 0 ||
      (types != 0 && !isNode) || properties.allocFlags.compressionType != CU_MEM_ALLOCATION_COMP_NONE)
    return CUDA_ERROR_INVALID_VALUE;
  return types != 0 || !thread.session.memory.sharesHost() ? CUDA_ERROR_NOT_SUPPORTED : CUDA_SUCCESS;
}

CUresult checkProperties(const Thread& thread, const CUmemAllocationProp* properties) {
  if (properties == nullptr || properties->type != CU_MEM_ALLOCATION_TYPE_PINNED) return CUDA_ERROR_INVALID_VALUE;
  return properties->location.type == CU_MEM_LOCATION_TYPE_DEVICE ? checkOnDevice(thread, *properties)
                                                                  : checkOnHost(thread, *properties);
}

}  // namespace

unsigned VirtualMemory::Physical::device() const {
  return isHosts() ? hostMemoryDevice : static_cast<unsigned>(properties.location.id);
}

// ------------------------------------------------------------------ addresses

std::optional<uint64_t> VirtualMemory::place(uint64_t bytes, uint64_t alignment, uint64_t wanted) const {
  auto isFree = [&](uint64_t address) {
    auto next = reservations.lower_bound(address);
    if (next != reservations.end() && next->first - address < bytes) return false;
    return next == reservations.begin() || std::prev(next)->first + std::prev(next)->second <= address;
  };
  if (wanted % alignment == 0 && isRange(wanted, bytes) && isFree(wanted)) return wanted;
  uint64_t at = mappedArenaBase;  // a multiple of every alignment that fits
  for (auto& [address, size] : reservations) {
    if (at <= address && address - at >= bytes) break;
    at = std::max(at, roundUp(address + size, alignment));
  }
  return isRange(at, bytes) ? std::optional(at) : std::nullopt;
}

CUresult VirtualMemory::reserve(uint64_t bytes, uint64_t alignment, uint64_t wanted, CUdeviceptr* address) {
  if (bytes == 0 || !isPiece(bytes) || (alignment & (alignment - 1)) != 0) return CUDA_ERROR_INVALID_VALUE;
  if (bytes > mappedArenaBytes || alignment > mappedArenaBytes) return CUDA_ERROR_OUT_OF_MEMORY;
  std::lock_guard lock(mutex);
  auto found = place(bytes, std::max(alignment, leaseGranularity), wanted);
  if (!found) return CUDA_ERROR_OUT_OF_MEMORY;
  reservations.emplace(*found, bytes);
  *address = *found;
  return CUDA_SUCCESS;
}

CUresult VirtualMemory::unreserve(uint64_t address, uint64_t bytes) {
  std::lock_guard change(changing);
  std::lock_guard lock(mutex);
  auto found = reservations.find(address);
  if (found == reservations.end() || found->second != bytes) return CUDA_ERROR_INVALID_VALUE;
  auto mapping = mappings.lower_bound(address);
  if (mapping != mappings.end() && mapping->first < address + bytes) return CUDA_ERROR_INVALID_VALUE;
  reservations.erase(found);
  return CUDA_SUCCESS;
}

// ------------------------------------------------------------------ physical memory

VirtualMemory::Physical* VirtualMemory::findLive(CUmemGenericAllocationHandle handle) {
  auto found = physicals.find(handle);
  return found == physicals.end() || found->second.handles == 0 ? nullptr : &found->second;
}

CUresult VirtualMemory::create(Thread& thread, uint64_t bytes, const CUmemAllocationProp* properties,
                               CUmemGenericAllocationHandle* handle) {
  if (CUresult bad = checkProperties(thread, properties)) return bad;
  if (bytes == 0 || !isPiece(bytes)) return CUDA_ERROR_INVALID_VALUE;
  if (bytes > mappedArenaBytes) return CUDA_ERROR_OUT_OF_MEMORY;
  std::lock_guard change(changing);
  if (CUresult error = endUnused(thread)) return error;
  if (isHost(properties->location)) return createOnHost(thread, bytes, *properties, handle);
  HandleTable& handles = thread.session.handles;
  auto device = static_cast<unsigned>(properties->location.id);
  uint64_t made = handles.create(api::Kind::PHYSICAL, device);
  CUmemAllocationProp granted = *properties;  // network cards reach none of a session's memory, and devices say so
  granted.allocFlags.gpuDirectRDMACapable = 0;
  granted.allocFlags.usage = 0;
  auto ask = [&] {
    Call<api::Cuda::PhysicalCreateParams> frame(thread.on(device), api::Method::physicalCreate);
    frame->setPhysical(made);
    frame->setBytes(bytes);
    frame->setIsShareable(properties->requestedHandleTypes != CU_MEM_HANDLE_TYPE_NONE);
    frame->setIsTilePool(isTilePool(*properties));
    frame->setIsCompressible(properties->allocFlags.compressionType != CU_MEM_ALLOCATION_COMP_NONE);
    CUresult result = frame.call();
    if (result == CUDA_SUCCESS)
      granted.allocFlags.compressionType = frame.results<api::Cuda::PhysicalCreateResults>().getIsCompressible();
    return result;
  };
  CUresult result = ask();
  if (result == CUDA_ERROR_OUT_OF_MEMORY) {  // but for what the session has leased and not given out
    thread.session.memory.trim(thread, device, 0);
    result = ask();
  }
  if (result != CUDA_SUCCESS) return handles.destroy(made), result;
  std::lock_guard lock(mutex);
  physicals.emplace(made, Physical{bytes, granted});
  *handle = made;
  return CUDA_SUCCESS;
}

CUresult VirtualMemory::createOnHost(Thread& thread, uint64_t bytes, const CUmemAllocationProp& properties,
                                     CUmemGenericAllocationHandle* handle) {
  Memory& memory = thread.session.memory;
  uint64_t hostAddress = 0;
  if (CUresult error = memory.allocateHost(thread, bytes, 0, HostKind::physical, 0, hostAddress)) return error;
  if (!memory.isShared(hostAddress)) {  // it has left its host meanwhile
    memory.freeHost(thread, hostAddress);
    return CUDA_ERROR_NOT_SUPPORTED;
  }
  CUmemAllocationProp granted = properties;
  granted.location = {CU_MEM_LOCATION_TYPE_HOST_NUMA, 0};
  granted.allocFlags = {};
  *handle = thread.session.handles.create(api::Kind::PHYSICAL, hostMemoryDevice);
  std::lock_guard lock(mutex);
  physicals.emplace(*handle, Physical{.bytes = bytes, .properties = granted, .hostAddress = hostAddress});
  return CUDA_SUCCESS;
}

CUresult VirtualMemory::end(Thread& thread, CUmemGenericAllocationHandle handle, const Physical& physical) {
  if (physical.isHosts()) return thread.session.memory.freeHost(thread, physical.hostAddress);
  Call<api::Cuda::PhysicalReleaseParams> frame(thread.on(physical.device()), api::Method::physicalRelease);
  frame->setPhysical(handle);
  return frame.call();
}

// Ends what nobody can reach any more.
CUresult VirtualMemory::endUnused(Thread& thread) {
  for (auto each = physicals.begin(); each != physicals.end();) {
    auto& [handle, physical] = *each;
    std::erase_if(physical.exports, [](const ExportedMemory& exported) { return !exported.isOpen(); });
    if (physical.handles != 0 || physical.mappings != 0 || !physical.exports.empty()) {
      ++each;
      continue;
    }
    CUresult error = end(thread, handle, physical);
    if (error == CUDA_ERROR_NOT_READY) {  // arrays have its memory still
      ++each;
      continue;
    }
    if (error != CUDA_SUCCESS) return error;
    thread.session.handles.destroy(handle);
    std::lock_guard lock(mutex);
    each = physicals.erase(each);
  }
  return CUDA_SUCCESS;
}

CUresult VirtualMemory::release(Thread& thread, CUmemGenericAllocationHandle handle) {
  std::lock_guard change(changing);
  {
    std::lock_guard lock(mutex);
    Physical* physical = findLive(handle);
    if (physical == nullptr) return CUDA_ERROR_INVALID_VALUE;
    --physical->handles;
  }
  return endUnused(thread);
}

CUresult VirtualMemory::retain(uint64_t address, CUmemGenericAllocationHandle* handle) {
  std::lock_guard change(changing);
  std::lock_guard lock(mutex);
  auto mapping = holding(address);
  if (mapping == mappings.end()) return CUDA_ERROR_INVALID_VALUE;
  *handle = mapping->second.physical;
  ++physicals.at(mapping->second.physical).handles;
  return CUDA_SUCCESS;
}

CUresult VirtualMemory::describe(CUmemGenericAllocationHandle handle, CUmemAllocationProp* properties) const {
  std::lock_guard lock(mutex);
  auto found = physicals.find(handle);
  if (found == physicals.end() || found->second.handles == 0) return CUDA_ERROR_INVALID_VALUE;
  *properties = found->second.properties;
  return CUDA_SUCCESS;
}

CUresult VirtualMemory::exportTo(Thread& thread, CUmemGenericAllocationHandle handle, CUmemAllocationHandleType type,
                                 int* descriptor) {
  if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) return CUDA_ERROR_INVALID_VALUE;
  std::lock_guard change(changing);
  std::optional<SharedName> name;
  {
    std::lock_guard lock(mutex);
    Physical* physical = findLive(handle);
    if (physical == nullptr || (physical->properties.requestedHandleTypes & type) == 0) return CUDA_ERROR_INVALID_VALUE;
    name = physical->name;
  }
  if (!name) {
    name = SharedName::make();
    if (CUresult error = thread.session.shared.givePhysical(thread, handle, *name)) return error;
  }
  std::lock_guard lock(mutex);
  Physical* physical = findLive(handle);
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
  {
    std::lock_guard lock(mutex);
    for (auto& [made, physical] : physicals)
      if (std::ranges::any_of(physical.exports, [&](auto& exported) { return exported.is(descriptor); })) {
        ++physical.handles;
        *handle = made;
        return CUDA_SUCCESS;
      }
  }
  auto name = ExportedMemory::nameIn(descriptor, ExportedMemory::What::physical);
  if (!name) return CUDA_ERROR_INVALID_VALUE;
  uint64_t made = 0, bytes = 0;
  if (CUresult error = thread.session.shared.takePhysical(thread, *name, made, bytes))
    return error == CUDA_ERROR_INVALID_HANDLE ? CUDA_ERROR_INVALID_VALUE : error;  // whoever exported it has ended
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, static_cast<int>(handleDevice(made))};
  std::lock_guard lock(mutex);
  physicals.emplace(made, Physical{bytes, properties});
  *handle = made;
  return CUDA_SUCCESS;
}

// ------------------------------------------------------------------ mappings

VirtualMemory::Mappings::const_iterator VirtualMemory::holding(uint64_t address) const {
  auto next = mappings.upper_bound(address);
  if (next == mappings.begin()) return mappings.end();
  --next;
  return address - next->first < next->second.bytes ? next : mappings.end();
}

std::vector<uint64_t> VirtualMemory::mappingsOf(uint64_t address, uint64_t bytes) const {
  std::lock_guard lock(mutex);
  std::vector<uint64_t> whole;
  uint64_t at = address;
  for (auto each = mappings.find(address); each != mappings.end() && each->first == at && at - address < bytes; ++each) {
    whole.push_back(at);
    at += each->second.bytes;
  }
  if (at - address != bytes) whole.clear();
  return whole;
}

CUresult VirtualMemory::map(Thread& thread, uint64_t address, uint64_t bytes, uint64_t offset,
                            CUmemGenericAllocationHandle handle) {
  std::lock_guard change(changing);
  const Physical* physical;
  {
    std::lock_guard lock(mutex);
    physical = findLive(handle);
    if (physical == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (offset != 0 || bytes != physical->bytes) return CUDA_ERROR_NOT_SUPPORTED;  // cuda.h and the driver: it is mapped whole
    if (!isRange(address, bytes)) return CUDA_ERROR_INVALID_VALUE;
    auto reserved = reservations.upper_bound(address);
    if (reserved == reservations.begin()) return CUDA_ERROR_INVALID_VALUE;
    --reserved;
    if (address - reserved->first > reserved->second || bytes > reserved->second - (address - reserved->first))
      return CUDA_ERROR_INVALID_VALUE;
    auto next = mappings.lower_bound(address);
    if (holding(address) != mappings.end() || (next != mappings.end() && next->first - address < bytes))
      return CUDA_ERROR_INVALID_VALUE;
  }
  std::optional<SecondMapping> host;
  if (physical->isHosts()) {
    if (CUresult error = mapHost(thread, address, *physical, host)) return error;
  } else {
    Call<api::Cuda::PhysicalMapParams> frame(thread.on(physical->device()), api::Method::physicalMap);
    frame->setAddress(address);
    frame->setBytes(bytes);
    frame->setOffset(offset);
    frame->setPhysical(handle);
    frame.describe(address, bytes);
    if (CUresult error = frame.call()) return error;
  }
  std::lock_guard lock(mutex);
  ++physicals.at(handle).mappings;
  mappings.emplace(address, Mapping{bytes, offset, handle, {}, std::move(host)});
  return CUDA_SUCCESS;
}

// In this process first: that needs no undoing if the worker refuses.
CUresult VirtualMemory::mapHost(Thread& thread, uint64_t address, const Physical& physical, std::optional<SecondMapping>& made) {
  std::optional<SecondMapping> here = thread.session.memory.mapAgain(physical.hostAddress, physical.bytes, address);
  if (!here) return CUDA_ERROR_OUT_OF_MEMORY;
  Call<api::Cuda::PhysicalMapHostParams> frame(thread.on(hostMemoryDevice), api::Method::physicalMapHost);
  frame->setAddress(address);
  frame->setBytes(physical.bytes);
  frame->setArenaAddress(physical.hostAddress);
  frame.describe(address, physical.bytes);
  if (CUresult error = frame.call()) return error;
  made.emplace(std::move(*here));
  return CUDA_SUCCESS;
}

// Waits for the devices that may be using it.
CUresult VirtualMemory::unmapOne(Thread& thread, uint64_t address) {
  const Mapping& mapping = mappings.at(address);
  for (unsigned device = 0; device < thread.session.devices.size(); ++device)
    if (mapping.access[device] != CU_MEM_ACCESS_FLAGS_PROT_NONE && thread.session.fault(device) == CUDA_SUCCESS)
      if (CUresult error = synchronizeDevice(thread, device)) return error;
  {
    Call<api::Cuda::PhysicalUnmapParams> frame(thread.on(handleDevice(mapping.physical)), api::Method::physicalUnmap);
    frame->setAddress(address);
    if (CUresult error = frame.call()) return error;
  }
  std::lock_guard lock(mutex);
  --physicals.at(mapping.physical).mappings;
  mappings.erase(address);
  return CUDA_SUCCESS;
}

CUresult VirtualMemory::unmap(Thread& thread, uint64_t address, uint64_t bytes) {
  std::lock_guard change(changing);
  if (!isRange(address, bytes)) return CUDA_ERROR_INVALID_VALUE;
  std::vector<uint64_t> whole;
  {
    // What of the range is not mapped stays so; no mapping may reach out of it.
    std::lock_guard lock(mutex);
    if (auto first = holding(address); first != mappings.end() && first->first != address) return CUDA_ERROR_INVALID_VALUE;
    for (auto each = mappings.lower_bound(address); each != mappings.end() && each->first - address < bytes; ++each) {
      if (each->second.bytes > bytes - (each->first - address)) return CUDA_ERROR_INVALID_VALUE;
      whole.push_back(each->first);
    }
  }
  for (uint64_t each : whole)
    if (CUresult error = unmapOne(thread, each)) return error;
  return endUnused(thread);
}

CUresult VirtualMemory::setAccess(Thread& thread, uint64_t address, uint64_t bytes, std::span<const CUmemAccessDesc> access) {
  if (access.data() == nullptr || access.empty()) return CUDA_ERROR_INVALID_VALUE;
  for (auto& each : access) {
    const bool isDevice = each.location.type == CU_MEM_LOCATION_TYPE_DEVICE && thread.session.hasDevice(each.location.id);
    if (!(isDevice || isHost(each.location)) || !isAccess(each.flags)) return CUDA_ERROR_INVALID_VALUE;
  }
  std::lock_guard change(changing);
  auto whole = mappingsOf(address, bytes);
  if (whole.empty()) return CUDA_ERROR_INVALID_VALUE;
  // The host reaches its own memory alone, which all devices reach.
  auto check = [&](const CUmemAccessDesc& each, const Mapping& mapping) -> CUresult {
    if (isHost(each.location)) return mapping.host ? CUDA_SUCCESS : CUDA_ERROR_NOT_SUPPORTED;
    const auto device = static_cast<unsigned>(each.location.id), owner = handleDevice(mapping.physical);
    if (mapping.host || device == owner || each.flags == CU_MEM_ACCESS_FLAGS_PROT_NONE) return CUDA_SUCCESS;
    return thread.session.devices[device].canAccess(owner) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
  };
  for (uint64_t mapping : whole)
    for (auto& each : access)
      if (CUresult bad = check(each, mappings.at(mapping))) return bad;
  for (uint64_t mapping : whole)
    for (auto& each : access) {
      if (isHost(each.location)) {
        std::lock_guard lock(mutex);
        if (!mappings.at(mapping).host->allow(each.flags)) return CUDA_ERROR_OUT_OF_MEMORY;
        continue;
      }
      thread.session.use(thread, static_cast<unsigned>(each.location.id));
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
  std::vector<uint64_t> ended;
  for (auto& [address, mapping] : mappings)
    if (handleDevice(mapping.physical) == device) ended.push_back(address);
  CUresult first = CUDA_SUCCESS;
  for (uint64_t address : ended)
    if (CUresult error = unmapOne(thread, address); first == CUDA_SUCCESS) first = error;
  for (auto& [handle, physical] : physicals)
    if (physical.device() == device) physical.handles = 0, physical.exports.clear();
  CUresult unused = endUnused(thread);
  return first != CUDA_SUCCESS ? first : unused;
}

// ------------------------------------------------------------------ questions

std::optional<VirtualMemory::Mapped> VirtualMemory::find(uint64_t address) const {
  if (!inMappedArena(address)) return std::nullopt;
  std::lock_guard lock(mutex);
  auto found = holding(address);
  if (found == mappings.end()) return std::nullopt;
  auto& mapping = found->second;
  auto& reserved = *std::prev(reservations.upper_bound(address));
  const Physical& physical = physicals.at(mapping.physical);
  return Mapped{.address = found->first,
                .bytes = mapping.bytes,
                .id = mapping.physical,
                .device = physical.device(),
                .exportable = physical.properties.requestedHandleTypes,
                .access = mapping.access,
                .reservedAddress = reserved.first,
                .reservedBytes = reserved.second,
                .isHosts = physical.isHosts(),
                .hostAccess = mapping.host ? mapping.host->allowed() : CU_MEM_ACCESS_FLAGS_PROT_NONE};
}

Where VirtualMemory::Mapping::where() const {
  const bool isDevices = std::ranges::any_of(access, [](uint8_t flags) { return flags != CU_MEM_ACCESS_FLAGS_PROT_NONE; });
  const bool isHosts = host && host->allowed() == CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  if (isHosts) return isDevices ? Where::arena : Where::hosts;
  return isDevices ? Where::device : Where::nowhere;
}

Where VirtualMemory::locate(uint64_t address, uint64_t bytes) const {
  std::lock_guard lock(mutex);
  auto first = holding(address);
  if (first == mappings.end()) return Where::nowhere;
  const Where where = first->second.where();
  for (auto each = first; each != mappings.end() && each->first <= address && each->second.where() == where; ++each) {
    const uint64_t inside = each->second.bytes - (address - each->first);
    if (bytes <= inside) return where;
    bytes -= inside;
    address += inside;
  }
  return Where::nowhere;
}

}  // namespace vgpu::client
