#include "stub/pool/memory-pool.h"

#include <fcntl.h>
#include <kj/debug.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <fstream>
#include <limits>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "vgpu/api/wire-value.h"

namespace vgpu::stub {

namespace {

// Whether [address, address + bytes) touches no entry of `map` (start -> bytes, by `size`).
template <typename Map, typename Size>
bool isFree(const Map& map, uint64_t address, uint64_t bytes, Size size) {
  auto next = map.lower_bound(address);
  if (next != map.end() && next->first < address + bytes) return false;
  if (next == map.begin()) return true;
  auto before = std::prev(next);
  return before->first + size(before->second) <= address;
}

// Whether the entries of `map` cover [address, address + bytes) without a gap.
template <typename Map, typename Size>
bool isCovered(const Map& map, uint64_t address, uint64_t bytes, Size size) {
  uint64_t end = address + bytes;
  if (end < address) return false;
  auto piece = map.upper_bound(address);
  if (piece == map.begin()) return false;
  for (--piece; piece != map.end() && piece->first <= address; ++piece) {
    address = piece->first + size(piece->second);
    if (address >= end) return true;
  }
  return false;
}

// What the system says it can give without taking it from others; without a word from it, as much as you like.
uint64_t availableMemory() {
  std::ifstream info("/proc/meminfo");
  std::string name, unit;
  for (uint64_t kib; info >> name >> kib >> unit;)
    if (name == "MemAvailable:") return kib * KiB;
  return std::numeric_limits<uint64_t>::max();
}

// Has the system make the pages that are not there. A thread gets 1.3 GB/s of them in a virtual machine (FACTS), and
// the driver would do it with one. A failure is the driver's to find.
void populate(std::span<std::byte> memory) {
  constexpr size_t piece = 16 * MiB;
  size_t pieces = (memory.size() + piece - 1) / piece;
  size_t crew = std::min<size_t>({pieces, std::max(1u, std::thread::hardware_concurrency() / 2), 8});
  std::atomic<size_t> next{0};
  auto work = [&] {
    for (size_t i; (i = next.fetch_add(1, std::memory_order_relaxed)) < pieces;) {
      auto part = memory.subspan(i * piece, std::min(piece, memory.size() - i * piece));
      madvise(part.data(), part.size(), MADV_POPULATE_WRITE);
    }
  };
  std::vector<std::jthread> helpers;
  while (helpers.size() + 1 < crew) helpers.emplace_back(work);
  work();
}

// Whether [address, address + bytes) are whole pages of the host arena.
bool isInArena(uint64_t address, uint64_t bytes) {
  return bytes != 0 && bytes % 4096 == 0 && address % 4096 == 0 && bytes <= hostArenaBytes && inHostArena(address) &&
         address - hostArenaBase <= hostArenaBytes - bytes;
}

constexpr auto bytesOf = [](auto& lease) { return lease.bytes; };

}  // namespace

MemoryPool::~MemoryPool() {
  while (!deviceLeases.empty()) endLease(deviceLeases.begin()->first);
  for (unsigned device = 0; device < maxDevices; ++device)
    if (reservedArenas & (1u << device)) driver.cuMemAddressFree(deviceArena(device), deviceArenaBytes);
  for (auto& [address, lease] : hostLeases) {
    if (lease.registered) driver.cuMemHostUnregister(fromWire<void*>(address));
    if (lease.arenaAddress != address) munmap(fromWire<void*>(address), lease.bytes);
  }
}

void MemoryPool::reserveArena(unsigned device) {
  CUdeviceptr got = 0;
  require(driver, driver.cuMemAddressReserve(&got, deviceArenaBytes, 0, deviceArena(device), 0),
          "reserving the device arena");
  if (got != deviceArena(device)) {
    driver.cuMemAddressFree(got, deviceArenaBytes);
    KJ_FAIL_REQUIRE("the driver put the device arena elsewhere", device, kj::hex(deviceArena(device)), kj::hex(got));
  }
  reservedArenas |= 1u << device;
}

CUresult MemoryPool::lease(unsigned device, uint64_t address, uint64_t bytes) {
  if (bytes == 0 || bytes % leaseGranularity != 0 || address % leaseGranularity != 0) return CUDA_ERROR_INVALID_VALUE;
  if (address < deviceArena(device) || bytes > deviceArenaBytes ||
      address - deviceArena(device) > deviceArenaBytes - bytes)
    return CUDA_ERROR_INVALID_VALUE;
  if (!isFree(deviceLeases, address, bytes, bytesOf)) return CUDA_ERROR_INVALID_VALUE;

  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, static_cast<int>(device)};
  CUmemGenericAllocationHandle physical;
  if (CUresult error = driver.cuMemCreate(&physical, bytes, &properties, 0)) return error;
  CUresult error = driver.cuMemMap(address, bytes, 0, physical, 0);
  if (error == CUDA_SUCCESS) {
    CUmemAccessDesc access{properties.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    error = driver.cuMemSetAccess(address, bytes, &access, 1);
    if (error != CUDA_SUCCESS) driver.cuMemUnmap(address, bytes);
  }
  if (error != CUDA_SUCCESS) {
    driver.cuMemRelease(physical);
    return error;
  }
  deviceLeases.emplace(address, Lease{bytes, physical});
  return CUDA_SUCCESS;
}

CUresult MemoryPool::endLease(uint64_t address) {
  auto found = deviceLeases.find(address);
  if (found == deviceLeases.end()) return CUDA_ERROR_INVALID_VALUE;
  CUresult error = driver.cuMemUnmap(address, found->second.bytes);
  CUresult released = driver.cuMemRelease(found->second.physical);
  deviceLeases.erase(found);
  return error != CUDA_SUCCESS ? error : released;
}

CUresult MemoryPool::registerHost(unsigned device) {
  for (auto& [address, lease] : hostLeases) {
    if (lease.registered) continue;
    populate({fromWire<std::byte*>(address), lease.bytes});
    if (CUresult error = registerLease(address, lease)) return error;
    lease.device = device;
    lease.registered = true;
    --unregistered;
  }
  return CUDA_SUCCESS;
}

CUresult MemoryPool::registerLease(uint64_t address, const HostLease& lease) {
  return driver.cuMemHostRegister_v2(fromWire<void*>(address), lease.bytes,
                                     CU_MEMHOSTREGISTER_DEVICEMAP | CU_MEMHOSTREGISTER_PORTABLE);
}

CUresult MemoryPool::registerAgain(unsigned device) {
  for (auto& [address, lease] : hostLeases)
    if (lease.registered && lease.device == device)
      if (CUresult error = registerLease(address, lease)) return error;
  return CUDA_SUCCESS;
}

CUresult MemoryPool::hostLease(uint64_t address, uint64_t bytes) {
  if (!isInArena(address, bytes) || !isFree(hostLeases, address, bytes, bytesOf)) return CUDA_ERROR_INVALID_VALUE;
  if (bytes > availableMemory()) return CUDA_ERROR_OUT_OF_MEMORY;
  hostLeases.emplace(address, HostLease{.bytes = bytes, .arenaAddress = address});
  ++unregistered;
  return CUDA_SUCCESS;
}

CUresult MemoryPool::endHostLease(uint64_t address, const MemoryFile& arena) {
  auto found = hostLeases.find(address);
  if (found == hostLeases.end() || found->second.arenaAddress != address) return CUDA_ERROR_INVALID_VALUE;
  return endHost(found, arena);
}

CUresult MemoryPool::endHost(std::map<uint64_t, HostLease>::iterator found, const MemoryFile& arena) {
  auto [address, lease] = *found;
  CUresult error = lease.registered ? driver.cuMemHostUnregister(fromWire<void*>(address)) : CUDA_SUCCESS;
  if (!lease.registered) --unregistered;
  if (lease.arenaAddress != address) munmap(fromWire<void*>(address), lease.bytes);
  int hole = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE;
  KJ_SYSCALL(fallocate(arena.fd(), hole, static_cast<off_t>(lease.arenaAddress - hostArenaBase),
                       static_cast<off_t>(lease.bytes)));
  hostLeases.erase(found);
  return error;
}

CUresult MemoryPool::adopt(unsigned device, uint64_t address, uint64_t arenaAddress, uint64_t bytes,
                           const MemoryFile& arena) {
  constexpr uint64_t lowest = 64 * KiB, highest = uint64_t{1} << 47;
  if (!isInArena(arenaAddress, bytes) || address % 4096 != 0 || address < lowest || address > highest - bytes ||
      inHostArena(address) || inDeviceArenas(address))
    return CUDA_ERROR_INVALID_VALUE;
  if (!isFree(hostLeases, arenaAddress, bytes, bytesOf)) return CUDA_ERROR_INVALID_VALUE;
  // Never over what this process has: the address is the program's choice.
  void* mapped = mmap(fromWire<void*>(address), bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED_NOREPLACE,
                      arena.fd(), static_cast<off_t>(arenaAddress - hostArenaBase));
  if (mapped == MAP_FAILED) return CUDA_ERROR_ALREADY_MAPPED;
  HostLease lease{.bytes = bytes, .arenaAddress = arenaAddress, .device = device, .registered = true};
  CUresult error = mapped == fromWire<void*>(address) ? registerLease(address, lease) : CUDA_ERROR_ALREADY_MAPPED;
  if (error == CUDA_SUCCESS) hostLeases.emplace(address, lease);
  if (error != CUDA_SUCCESS) munmap(mapped, bytes);
  return error;
}

CUresult MemoryPool::release(uint64_t address, const MemoryFile& arena) {
  auto found = hostLeases.find(address);
  if (found == hostLeases.end() || found->second.arenaAddress == address) return CUDA_ERROR_INVALID_VALUE;
  return endHost(found, arena);
}

bool MemoryPool::ownsDevice(uint64_t address, uint64_t bytes) const {
  return isCovered(deviceLeases, address, bytes, bytesOf);
}

bool MemoryPool::ownsHost(uint64_t address, uint64_t bytes) const {
  return isCovered(hostLeases, address, bytes, bytesOf);
}

}  // namespace vgpu::stub
