#include "stub/worker/physical-memory.h"

#include <fmt/format.h>
#include <kj/debug.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <utility>

#include "stub/worker/host-leases.h"
#include "vgpu/api/handle.h"
#include "vgpu/api/wire-value.h"
#include "vgpu/base/fail.h"
#include "vgpu/base/machine-memory.h"
#include "vgpu/base/ranges.h"
#include "vgpu/wire/arena.h"

namespace vgpu::stub {

namespace {

// More would use up the mappings that the system allows this process.
constexpr size_t mostHostMappings = 16 * 1024;

// Replaces whatever is mapped at the address by an empty mapping, so that the address stays reserved.
bool clear(uint64_t address, uint64_t bytes) {
  return mmap(fromWire<void*>(address), bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) != MAP_FAILED;
}

CUmemAllocationProp onDevice(const Driver& driver, unsigned device) {
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, driver.device(device)};
  return properties;
}

// A handle that no program has: clients assign handle indices from the first one on.
constexpr uint64_t standInOf(unsigned device) { return makeHandle(api::Kind::PHYSICAL, device, ~0u, (1u << handleIndexBits) - 1); }
constexpr size_t mostStandIns = 64 * 1024;

// After a fault the memory has ended with its context: nothing is left to do.
CUresult ended(CUresult result) { return isSticky(result) ? CUDA_SUCCESS : result; }

}  // namespace

PhysicalMemory::~PhysicalMemory() {
  for (unsigned device = 0; device < maxDevices; ++device) endDevice(device);
  if (!areReserved) return;
  driver.cuMemAddressFree(mappedArenaBase, mappedArenaBytes);
  driver.cuMemAddressFree(windowArenaBase, windowArenaBytes);
}

CUresult PhysicalMemory::reserveArenas() {
  std::lock_guard lock(reserving);
  if (areReserved) return CUDA_SUCCESS;
  CUdeviceptr mapped = 0, window = 0;
  require(driver, driver.cuMemAddressReserve(&mapped, mappedArenaBytes, 0, mappedArenaBase, 0), "reserving addresses");
  require(driver, driver.cuMemAddressReserve(&window, windowArenaBytes, 0, windowArenaBase, 0), "reserving addresses");
  areReserved = true;
  if (mapped == mappedArenaBase && window == windowArenaBase) return CUDA_SUCCESS;
  fail(fmt::format("the driver reserved addresses at {:#x} and {:#x}, but a program's pointers begin at {:#x}", mapped, window,
                   mappedArenaBase));
}

// Compression is optional: another GPU may not support it.
CUresult PhysicalMemory::create(uint64_t physical, uint64_t bytes, const Wanted& wanted) {
  if (bytes == 0 || !isGranular(bytes) || bytes > deviceArenaBytes) return CUDA_ERROR_INVALID_VALUE;
  CUmemAllocationProp properties = onDevice(driver, handleDevice(physical));
  if (wanted.isShareable) properties.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  if (wanted.isTilePool) properties.allocFlags.usage = CU_MEM_CREATE_USAGE_TILE_POOL;
  int isSupported = 0;
  if (wanted.isCompressible)
    driver.cuDeviceGetAttribute(&isSupported, CU_DEVICE_ATTRIBUTE_GENERIC_COMPRESSION_SUPPORTED, properties.location.id);
  if (isSupported != 0) properties.allocFlags.compressionType = CU_MEM_ALLOCATION_COMP_GENERIC;
  CUmemGenericAllocationHandle real = 0;
  if (CUresult error = driver.cuMemCreate(&real, bytes, &properties, 0)) return error;
  Object object{.real = real, .bytes = bytes, .isTilePool = wanted.isTilePool};
  CUmemAllocationProp granted{};
  if (isSupported != 0 && driver.cuMemGetAllocationPropertiesFromHandle(&granted, real) == CUDA_SUCCESS)
    object.isCompressed = granted.allocFlags.compressionType != CU_MEM_ALLOCATION_COMP_NONE;
  return add(physical, object);
}

CUresult PhysicalMemory::share(uint64_t physical, uint64_t& bytes, int& descriptor) {
  CUmemGenericAllocationHandle real;
  {
    std::lock_guard lock(mutex);
    auto found = objects.find(physical);
    if (found == objects.end()) return CUDA_ERROR_INVALID_VALUE;
    real = found->second.real;
    bytes = found->second.bytes;
  }
  return driver.cuMemExportToShareableHandle(&descriptor, real, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
}

CUresult PhysicalMemory::adopt(uint64_t physical, uint64_t bytes, int descriptor) {
  CUmemGenericAllocationHandle real = 0;
  auto handle = fromWire<void*>(static_cast<uint64_t>(descriptor));
  if (CUresult error = driver.cuMemImportFromShareableHandle(&real, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR))
    return error;
  return add(physical, Object{.real = real, .bytes = bytes});
}

CUresult PhysicalMemory::add(uint64_t physical, const Object& object) {
  std::lock_guard lock(mutex);
  if (objects.try_emplace(physical, object).second) return CUDA_SUCCESS;
  driver.cuMemRelease(object.real);
  return CUDA_ERROR_INVALID_VALUE;
}

CUresult PhysicalMemory::release(uint64_t physical) {
  Object object;
  {
    std::lock_guard lock(mutex);
    auto found = objects.find(physical);
    if (found == objects.end() || found->second.mappings != 0) return CUDA_ERROR_INVALID_VALUE;
    object = found->second;
    objects.erase(found);
    windows.erase(object.window);
  }
  CUresult unmapped = object.window == 0 ? CUDA_SUCCESS : driver.cuMemUnmap(object.window, object.bytes);
  CUresult released = driver.cuMemRelease(object.real);
  return ended(unmapped != CUDA_SUCCESS ? unmapped : released);
}

CUresult PhysicalMemory::map(uint64_t address, uint64_t bytes, uint64_t offset, uint64_t physical) {
  endStandIns();
  return mapObject(address, bytes, offset, physical);
}

CUresult PhysicalMemory::mapObject(uint64_t address, uint64_t bytes, uint64_t offset, uint64_t physical) {
  if (!isMappedRange(address, bytes) || !isGranular(offset)) return CUDA_ERROR_INVALID_VALUE;
  if (CUresult error = reserveArenas()) return error;
  CUmemGenericAllocationHandle real;
  {
    std::lock_guard lock(mutex);
    auto found = objects.find(physical);
    if (found == objects.end() || offset > found->second.bytes || bytes > found->second.bytes - offset ||
        !isFree(mappings, address, bytes))
      return CUDA_ERROR_INVALID_VALUE;
    real = found->second.real;
    ++found->second.mappings;
    mappings.emplace(address, Mapping{.bytes = bytes, .physical = physical});
  }
  CUresult result = driver.cuMemMap(address, bytes, offset, real, 0);
  if (result == CUDA_SUCCESS) return result;
  std::lock_guard lock(mutex);
  mappings.erase(address);
  --objects.at(physical).mappings;
  return result;
}

CUresult PhysicalMemory::mapHost(uint64_t address, uint64_t bytes, uint64_t arenaAddress, const MemoryFile& arena) {
  return mapOnHost(address, {.bytes = bytes, .isHosts = true, .arenaAddress = arenaAddress}, arena.fd(), arenaAddress - hostArenaBase);
}

CUresult PhysicalMemory::mapFile(uint64_t address, uint64_t bytes, int file) {
  struct stat status {};
  if (!hasBytes(file, 0, bytes) || fstat(file, &status) != 0) return CUDA_ERROR_INVALID_VALUE;
  // Normally the program has allocated all of the file; if the program was restored with its process, only pages that are not zero are.
  const uint64_t there = static_cast<uint64_t>(status.st_blocks) * 512;
  if (there < bytes && bytes - there > machineMemory().availableBytes) return CUDA_ERROR_OUT_OF_MEMORY;
  return mapOnHost(address, {.bytes = bytes, .isHosts = true}, file, 0);
}

CUresult PhysicalMemory::mapOnHost(uint64_t address, const Mapping& mapping, int file, uint64_t place) {
  if (!isMappedRange(address, mapping.bytes)) return CUDA_ERROR_INVALID_VALUE;
  if (CUresult error = reserveArenas()) return error;
  endStandIns();
  std::lock_guard lock(mutex);
  if (!isFree(mappings, address, mapping.bytes)) return CUDA_ERROR_INVALID_VALUE;
  auto isHosts = [](auto& one) { return one.second.isHosts; };
  if (static_cast<size_t>(std::ranges::count_if(mappings, isHosts)) >= mostHostMappings) return CUDA_ERROR_OUT_OF_MEMORY;
  if (!mapOver(address, mapping.bytes, file, place)) return CUDA_ERROR_OUT_OF_MEMORY;
  mappings.emplace(address, mapping);
  return CUDA_SUCCESS;
}

CUresult PhysicalMemory::endHost(uint64_t address, const Mapping& mapping) {
  CUresult result = mapping.users == 0 ? CUDA_SUCCESS : driver.cuMemHostUnregister(fromWire<void*>(address));
  KJ_REQUIRE(clear(address, mapping.bytes), "the system refuses a mapping", mapping.bytes);
  return result;
}

CUresult PhysicalMemory::unmap(uint64_t address) {
  Mapping mapping;
  {
    std::lock_guard lock(mutex);
    auto found = mappings.find(address);
    if (found == mappings.end()) return CUDA_ERROR_INVALID_VALUE;
    mapping = found->second;
    mappings.erase(found);
    lent.erase(lent.lower_bound({address, 0}), lent.upper_bound({address, maxDevices}));
    if (!mapping.isHosts) --objects.at(mapping.physical).mappings;
  }
  if (mapping.isHosts) return ended(endHost(address, mapping));
  return ended(driver.cuMemUnmap(address, mapping.bytes));
}

CUresult PhysicalMemory::setAccess(uint64_t address, unsigned device, CUmemAccess_flags flags) {
  {
    std::lock_guard lock(mutex);
    lent.erase({address, device});
  }
  return applyAccess(address, device, flags);
}

CUresult PhysicalMemory::applyAccess(uint64_t address, unsigned device, CUmemAccess_flags flags) {
  Mapping mapping;
  {
    std::lock_guard lock(mutex);
    auto found = mappings.find(address);
    if (found == mappings.end()) return CUDA_ERROR_INVALID_VALUE;
    mapping = found->second;
  }
  if (mapping.isHosts) return setHostAccess(address, mapping, device, flags != CU_MEM_ACCESS_FLAGS_PROT_NONE);
  CUmemAccessDesc access{{CU_MEM_LOCATION_TYPE_DEVICE, {driver.device(device)}}, flags};
  if (CUresult error = driver.cuMemSetAccess(address, mapping.bytes, &access, 1)) return error;
  std::lock_guard lock(mutex);
  auto set = [bit = 1u << device](uint32_t& mask, bool isSet) { mask = isSet ? mask | bit : mask & ~bit; };
  if (auto found = mappings.find(address); found != mappings.end()) {
    set(found->second.users, flags != CU_MEM_ACCESS_FLAGS_PROT_NONE);
    set(found->second.writers, flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
  }
  return CUDA_SUCCESS;
}

// The driver has no finer control: registered memory is accessible to all devices, for reading and writing.
CUresult PhysicalMemory::setHostAccess(uint64_t address, const Mapping& mapping, unsigned device, bool isUser) {
  const uint32_t users = isUser ? mapping.users | 1u << device : mapping.users & ~(1u << device);
  void* memory = fromWire<void*>(address);
  CUresult result = CUDA_SUCCESS;
  if (mapping.users == 0 && users != 0)
    result = driver.cuMemHostRegister_v2(memory, mapping.bytes, CU_MEMHOSTREGISTER_DEVICEMAP | CU_MEMHOSTREGISTER_PORTABLE);
  if (mapping.users != 0 && users == 0) result = driver.cuMemHostUnregister(memory);
  if (result != CUDA_SUCCESS) return result;
  std::lock_guard lock(mutex);
  mappings.at(address).users = mappings.at(address).writers = users;
  return CUDA_SUCCESS;
}

bool PhysicalMemory::owns(uint64_t address, uint64_t bytes) const {
  std::lock_guard lock(mutex);
  if (asked) asked->push_back({address, bytes});
  return isCovered(mappings, address, bytes);
}

bool PhysicalMemory::lend(unsigned device, uint64_t address) {
  uint64_t begin;
  CUmemAccess_flags had;
  {
    std::lock_guard lock(mutex);
    auto found = holding(mappings, address);
    if (found == mappings.end() || (found->second.writers & 1u << device) != 0) return false;
    begin = found->first;
    had = (found->second.users & 1u << device) != 0 ? CU_MEM_ACCESS_FLAGS_PROT_READ : CU_MEM_ACCESS_FLAGS_PROT_NONE;
  }
  if (applyAccess(begin, device, CU_MEM_ACCESS_FLAGS_PROT_READWRITE) != CUDA_SUCCESS) return false;
  std::lock_guard lock(mutex);
  lent.emplace(std::pair(begin, device), had);
  return true;
}

// All stand-ins are mappings of one granule of physical memory: every mapping consists of whole granules.
bool PhysicalMemory::standIn(unsigned device, uint64_t address, uint64_t bytes) {
  const uint64_t object = standInOf(device), begin = address / leaseGranularity * leaseGranularity;
  if (!inMappedArena(address) || bytes == 0 || bytes > mappedArenaBase + mappedArenaBytes - address) return false;
  bool isNew = false;
  for (uint64_t at = begin; at < address + bytes; at += leaseGranularity) {
    if (owns(at, leaseGranularity)) {
      isNew |= lend(device, at);
      continue;
    }
    if (standIns.size() >= mostStandIns) return false;
    if (!find(object) && create(object, leaseGranularity, {}) != CUDA_SUCCESS) return false;
    if (mapObject(at, leaseGranularity, 0, object) != CUDA_SUCCESS) return false;
    standIns.push_back(at);
    if (setAccess(at, device, CU_MEM_ACCESS_FLAGS_PROT_READWRITE) != CUDA_SUCCESS) return false;
    isNew = true;
  }
  return isNew;
}

CUresult PhysicalMemory::withStandIns(unsigned device, const std::function<CUresult()>& execute) {
  for (;;) {
    std::vector<std::pair<uint64_t, uint64_t>> wanted;
    {
      std::lock_guard lock(mutex);
      asked.emplace();
    }
    const CUresult result = execute();
    {
      std::lock_guard lock(mutex);
      wanted = std::exchange(asked, std::nullopt).value();
    }
    if (result != CUDA_ERROR_INVALID_VALUE) return result;
    bool isNew = false;
    for (auto [address, bytes] : wanted) isNew |= standIn(device, address, bytes);
    if (!isNew) return result;
  }
}

void PhysicalMemory::endStandIns() {
  std::map<std::pair<uint64_t, unsigned>, CUmemAccess_flags> due;
  {
    std::lock_guard lock(mutex);
    due.swap(lent);
  }
  for (auto& [of, had] : due) applyAccess(of.first, of.second, had);
  if (standIns.empty()) return;
  for (uint64_t address : std::exchange(standIns, {})) unmap(address);
  for (unsigned device = 0; device < maxDevices; ++device)
    if (find(standInOf(device))) release(standInOf(device));
}

std::optional<unsigned> PhysicalMemory::deviceAt(uint64_t address) const {
  std::lock_guard lock(mutex);
  auto found = holding(mappings, address);
  if (found == mappings.end() || found->second.isHosts) return std::nullopt;
  return handleDevice(found->second.physical);
}

bool PhysicalMemory::mapsHost(uint64_t arenaAddress, uint64_t bytes) const {
  std::lock_guard lock(mutex);
  return std::ranges::any_of(mappings, [&](auto& one) {
    const Mapping& mapping = one.second;
    return mapping.arenaAddress != 0 && mapping.arenaAddress < arenaAddress + bytes && arenaAddress < mapping.arenaAddress + mapping.bytes;
  });
}

CUresult PhysicalMemory::endDevice(unsigned device) {
  std::vector<uint64_t> addresses, handles;
  {
    std::lock_guard lock(mutex);
    for (auto& [address, mapping] : mappings)
      if (handleDevice(mapping.physical) == device) addresses.push_back(address);  // host mappings (physical: 0) count as the first
                                                                                   // device's
    for (auto& [handle, object] : objects)
      if (handleDevice(handle) == device) handles.push_back(handle);
  }
  CUresult first = CUDA_SUCCESS;
  auto keep = [&](CUresult result) {
    if (first == CUDA_SUCCESS) first = result;
  };
  for (uint64_t address : addresses) keep(unmap(address));
  for (uint64_t handle : handles) keep(release(handle));
  return first;
}

std::optional<PhysicalMemory::Found> PhysicalMemory::find(uint64_t physical) const {
  std::lock_guard lock(mutex);
  auto found = objects.find(physical);
  if (found == objects.end()) return std::nullopt;
  return Found{found->second.real, found->second.bytes, found->second.isTilePool, found->second.isCompressed};
}

std::map<uint64_t, uint64_t> PhysicalMemory::live() const {
  std::lock_guard lock(mutex);
  std::map<uint64_t, uint64_t> all;
  for (auto& [handle, object] : objects) all.emplace(handle, object.bytes);
  return all;
}

CUresult PhysicalMemory::openWindow(uint64_t physical, uint64_t& address) {
  if (CUresult error = reserveArenas()) return error;
  Object& object = objects.at(physical);
  address = windowArenaBase;
  for (auto& [taken, bytes] : windows) {
    if (address + object.bytes <= taken) break;
    address = taken + bytes;
  }
  if (address - windowArenaBase > windowArenaBytes - object.bytes) return CUDA_ERROR_OUT_OF_MEMORY;
  if (CUresult error = driver.cuMemMap(address, object.bytes, 0, object.real, 0)) return error;
  CUmemAccessDesc access{onDevice(driver, handleDevice(physical)).location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  if (CUresult error = driver.cuMemSetAccess(address, object.bytes, &access, 1)) {
    driver.cuMemUnmap(address, object.bytes);
    return error;
  }
  windows.emplace(address, object.bytes);
  object.window = address;
  return CUDA_SUCCESS;
}

// Only while no calls are executed, so the tables are read without the mutex.
uint64_t PhysicalMemory::windowOf(uint64_t physical) {
  auto found = objects.find(physical);
  if (found == objects.end()) fail(fmt::format("there is no physical memory {:#x}", physical));
  if (found->second.window != 0) return found->second.window;
  uint64_t address = 0;
  require(driver, openWindow(physical, address), "mapping physical memory for a snapshot");
  return address;
}

}  // namespace vgpu::stub
