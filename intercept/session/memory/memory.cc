#include "intercept/session/memory/memory.h"

#include "intercept/session/call.h"
#include "intercept/session/managed/touch-faults.h"
#include "intercept/session/wait.h"
#include "vgpu/base/ranges.h"

namespace vgpu::client {

namespace {

// The size of a lease request: mapping costs 50 µs a piece whatever its size (docs/facts.md).
constexpr uint64_t leasePiece = 32 * MiB;
// Allocations of at least this size get a lease of their own.
constexpr uint64_t ownLease = 8 * MiB;
// Free memory beyond what is always kept (trim.cc), up to 1/keptForAWhile of the device, is kept for a while (idle-memory.h): a loop that
// frees and allocates the same again makes no round trips.
constexpr uint64_t keptForAWhile = 4;
// The driver registers each host lease separately, and copies slowly across two registrations.
constexpr uint64_t hostGap = hostPageBytes;

}  // namespace

Memory::Memory(const Segment& segment, CompletionWords& lines, const MemoryFile& hostArena, const MemoryFile& segmentFile)
    : host(hostArenaBase, hostArenaBytes, hostGap),
      pools(segment, lines),
      sharesAll(hostArena.bytes() != 0),
      arenaFile(hostArena),
      pieces(segmentFile) {
  for (unsigned device = 0; device < maxDevices; ++device) {
    devices.emplace_back(deviceArena(device), managedPart);
    managedParts.emplace_back(deviceArena(device) + managedPart, managedPartBytes, 0, hostPageBytes);
  }
}

Arena& Memory::arenaOf(uint64_t address) {
  if (inHostArena(address)) return host;
  const uint64_t device = (address - deviceArenaBase) / deviceArenaBytes;
  return inManagedPart(address) ? managedParts[device] : devices[device];
}

CUresult Memory::allocate(Thread& thread, unsigned device, uint64_t bytes, uint64_t owner, uint64_t& address) {
  if (CUresult error = place(thread, device, devices[device], bytes, owner, address)) return error;
  return postAllocation(thread, device, address, bytes);
}

CUresult Memory::place(Thread& thread, unsigned device, Arena& arena, uint64_t bytes, uint64_t owner, uint64_t& address) {
  if (bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  if (bytes > deviceArenaBytes) return CUDA_ERROR_OUT_OF_MEMORY;
  auto takeFree = [&](bool anywhere) {
    std::lock_guard lock(mutex);
    auto found = anywhere ? arena.allocate(bytes, owner) : arena.allocateLease(bytes, owner);
    if (found) address = *found;
    return found.has_value();
  };
  auto take = [&] {
    collect(thread, device, false);
    freePassed(thread);
    return takeFree(bytes < ownLease);
  };
  // Never waits for GPU work, even if that would free memory: CUDA does not either, and a kernel may wait for this thread. Memory returned
  // meanwhile, by this thread or another, may first have to go to the worker, so this retries, up to 8 times in case other threads take it.
  // Only then free parts of any lease are taken: in an idle lease a large allocation would leave a rest that cannot be returned.
  for (int more = 8;; --more) {
    const uint64_t before = returnsSoFar();
    if (take()) return CUDA_SUCCESS;
    CUresult grown = grow(thread, device, arena, bytes);
    while (grown == CUDA_SUCCESS && !take()) grown = grow(thread, device, arena, bytes);  // another thread took it
    if (grown != CUDA_ERROR_OUT_OF_MEMORY) return grown;
    if (more == 0 || returnsSoFar() == before) return takeFree(true) ? CUDA_SUCCESS : grown;
  }
}

CUresult Memory::postAllocation(Thread& thread, unsigned device, uint64_t address, uint64_t bytes) {
  Call<api::Cuda::MemAllocParams> frame(thread.on(device), api::Method::memAlloc);
  frame->setAddress(address);
  frame->setBytes(bytes);
  frame.describe(address, bytes);
  return frame.post();
}

CUresult Memory::postFree(Thread& thread, unsigned device, uint64_t address) {
  Call<api::Cuda::MemFreeParams> frame(thread.on(device), api::Method::memFree);
  frame->setAddress(address);
  return frame.post();
}

CUresult Memory::postHostFree(Thread& thread, uint64_t address) {
  Call<api::Cuda::HostFreeParams> frame(thread.on(hostMemoryDevice), api::Method::hostFree);
  frame->setAddress(address);
  return frame.post();
}

// Leases a standard piece or a lease for this allocation alone; if that fails, just what is needed; then the same after all idle memory has
// been returned.
CUresult Memory::grow(Thread& thread, unsigned device, Arena& arena, uint64_t bytes) {
  uint64_t needed = roundUp(bytes, leaseGranularity), wanted = bytes < ownLease ? leasePiece : needed;
  CUresult result = leaseExactly(thread, device, arena, wanted);
  if (result == CUDA_ERROR_OUT_OF_MEMORY && needed < wanted) result = leaseExactly(thread, device, arena, needed);
  if (result == CUDA_ERROR_OUT_OF_MEMORY) {
    trim(thread, device, 0);
    awaitReturns();
    result = leaseExactly(thread, device, arena, needed);
  }
  return result;
}

template <typename Params>
CUresult Memory::lease(Thread& thread, unsigned device, Arena& arena, api::Method method, uint64_t bytes) {
  std::optional<uint64_t> place;
  {
    std::lock_guard lock(mutex);
    place = arena.placeLease(bytes);
    if (place) arena.reserveLease(*place, bytes);
  }
  if (!place) return CUDA_ERROR_OUT_OF_MEMORY;
  CUresult result;
  {
    Call<Params> frame(thread.on(device), method);
    frame->setAddress(*place);
    frame->setBytes(bytes);
    frame.describe(*place, bytes);
    result = frame.call();
  }
  std::lock_guard lock(mutex);
  arena.settleLease(*place, result == CUDA_SUCCESS);
  return result;
}

CUresult Memory::leaseExactly(Thread& thread, unsigned device, Arena& arena, uint64_t bytes) {
  return lease<api::Cuda::LeaseParams>(thread, device, arena, api::Method::lease, bytes);
}

// Any stream may get the memory as soon as this returns, so the GPU's work must have ended first. CUDA waits here too.
CUresult Memory::free(Thread& thread, uint64_t address) {
  if (address == 0) return CUDA_SUCCESS;
  if (!inDeviceArenas(address)) return CUDA_ERROR_INVALID_VALUE;
  if (thread.session.shared.isTaken(address)) return thread.session.shared.closeWhole(thread, address);
  auto device = static_cast<unsigned>((address - deviceArenaBase) / deviceArenaBytes);
  if (device >= thread.session.devices.size()) return CUDA_ERROR_INVALID_VALUE;
  {
    std::lock_guard lock(mutex);
    if (!arenaOf(address).at(address) || isFreedBehind(address)) return CUDA_ERROR_INVALID_VALUE;
  }
  if (inManagedPart(address))  // kernels of any device may use it; their errors are reported by later calls
    for (unsigned each = 0; each < thread.session.devices.size(); ++each) awaitDevice(thread, each);
  if (CUresult error = synchronizeDevice(thread, device)) return error;
  thread.session.managed.remove(address);
  const bool wasGiven = thread.session.shared.freed(address);
  if (CUresult error = postFree(thread, device, address)) return error;
  if (wasGiven) awaitWorker(thread, device);  // until the worker has freed it, others could open it
  Arena& arena = arenaOf(address);
  std::unique_lock lock(mutex);
  remove(address);
  pools.freed(address);
  const uint64_t keep = keptFor(arena);
  if (arena.freeBytes() <= keep) return CUDA_SUCCESS;
  lock.unlock();
  trim(thread, device, arena, keep + thread.session.devices[device].totalBytes / keptForAWhile);
  idleMemory.note(thread.session);
  return CUDA_SUCCESS;
}

CUresult Memory::freeAll(Thread& thread, unsigned device, uint64_t context) {
  std::vector<uint64_t> held, heldHost, heldRegistered;
  auto ends = [&](uint64_t owner) { return context == 0 ? handleDevice(owner) == device : owner == context; };
  collect(thread, device, context == 0);  // streams of other contexts may have work again
  freePassed(thread);
  {
    std::lock_guard lock(mutex);
    for (auto* arena : {&devices[device], &managedParts[device]})
      for (auto& [address, allocation] : arena->allocations())
        if ((context == 0 || allocation.owner == context) && !isFreedBehind(address))
          held.push_back(address);
    for (auto& [address, allocation] : hostAllocations)
      if (ends(allocation.context) && allocation.kind != HostKind::physical && !isFreedBehind(address))
        heldHost.push_back(address);
    for (auto& [address, entry] : registered)
      if (ends(entry.allocation.context)) heldRegistered.push_back(address);
  }
  for (uint64_t address : heldRegistered)
    if (CUresult error = unregisterHost(thread, address)) return error;
  for (uint64_t address : heldHost)
    if (CUresult error = freeHost(thread, address)) return error;
  for (uint64_t address : held)
    if (CUresult error = free(thread, address)) return error;
  return CUDA_SUCCESS;
}

// It becomes pinned memory also if the devices are no longer peers since a resume on other GPUs: the worker reports that.
CUresult Memory::allocateManaged(Thread& thread, unsigned device, uint64_t bytes, unsigned flags, uint64_t owner, uint64_t& address) {
  CUresult result = CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
  if (thread.session.devices[device].sharesManaged()) result = allocateOnDevices(thread, device, bytes, owner, address);
  if (result != CUDA_ERROR_PEER_ACCESS_UNSUPPORTED) return result;
  return allocateHost(thread, bytes, flags, HostKind::managed, owner, address);
}

CUresult Memory::allocateOnDevices(Thread& thread, unsigned device, uint64_t bytes, uint64_t owner, uint64_t& address) {
  if (bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  if (bytes > managedPartBytes) return CUDA_ERROR_OUT_OF_MEMORY;
  serveTouches();
  const uint64_t whole = roundUp(bytes, hostPageBytes);
  if (CUresult error = place(thread, device, managedParts[device], bytes, owner, address)) return error;
  CUresult result = postAllocation(thread, device, address, whole);
  if (result == CUDA_SUCCESS) result = thread.session.managed.add(thread, device, address, whole);
  if (result != CUDA_SUCCESS) free(thread, address);
  return result;
}

CUresult Memory::growHost(Thread& thread, uint64_t bytes) {
  const uint64_t whole = roundUp(bytes, leaseGranularity);
  if (leaseFromMachine(thread, whole) == CUDA_SUCCESS) return CUDA_SUCCESS;
  return lease<api::Cuda::HostLeaseParams>(thread, hostMemoryDevice, host, api::Method::hostLease, whole);
}

std::optional<Arena::Range> Memory::findDevice(uint64_t address) const {
  if (!inDeviceArenas(address)) return std::nullopt;
  std::lock_guard lock(mutex);
  return const_cast<Memory*>(this)->arenaOf(address).find(address);
}

bool Memory::isEnding(uint64_t address) {
  if (!pools.hasAny() && !anyFreedLater.load(std::memory_order_relaxed)) return false;  // a thread always sees its own frees
  std::lock_guard lock(mutex);
  return isFreedBehind(address);
}

std::optional<Arena::Range> Memory::findLease(uint64_t address) const {
  std::lock_guard lock(mutex);
  return const_cast<Memory*>(this)->arenaOf(address).findLease(address);
}

uint64_t Memory::idOf(uint64_t start) {
  std::lock_guard lock(mutex);
  uint64_t* id = nullptr;
  if (auto* ofPool = pools.find(start); ofPool != nullptr && !ofPool->isFreed())
    id = &ofPool->number;
  else if (inDeviceArenas(start))
    id = arenaOf(start).numberOf(start);
  else if (auto pinned = hostAllocations.find(start); pinned != hostAllocations.end())
    id = &pinned->second.id;
  else if (auto entry = registered.find(start); entry != registered.end())
    id = &entry->second.allocation.id;
  if (id == nullptr) return 0;
  return *id != 0 ? *id : *id = ++lastId;
}

std::optional<uint64_t> Memory::reserveShared(unsigned device, uint64_t bytes) {
  std::lock_guard lock(mutex);
  auto place = devices[device].placeLease(bytes);
  if (place) devices[device].reserveLease(*place, bytes);
  return place;
}

void Memory::addShared(uint64_t address, uint64_t bytes, uint64_t owner) {
  std::lock_guard lock(mutex);
  arenaOf(address).addShared(address, bytes, owner);
}

void Memory::dropShared(uint64_t lease, uint64_t address) {
  std::lock_guard lock(mutex);
  arenaOf(lease).dropShared(lease, address);
  noteEnding();
}

void Memory::remove(uint64_t address) {
  arenaOf(address).free(address);
  hostAllocations.erase(address);
  noteEnding();
}

bool Memory::setSynchronizing(uint64_t address, bool synchronizes) {
  if (!inDeviceArenas(address)) return false;
  if (synchronizes) anySynchronizing.store(true, std::memory_order_relaxed);
  std::lock_guard lock(mutex);
  return arenaOf(address).mark(address, synchronizes);
}

bool Memory::lookSynchronizing(uint64_t address) const {
  if (!inDeviceArenas(address)) return false;
  std::lock_guard lock(mutex);
  return const_cast<Memory*>(this)->arenaOf(address).isMarked(address);
}

std::optional<HostAllocation> Memory::findHost(uint64_t address) const {
  if (!inHostArena(address)) return std::nullopt;
  std::lock_guard lock(mutex);
  auto found = holding(hostAllocations, address);
  return found == hostAllocations.end() ? std::nullopt : std::optional(found->second);
}

}  // namespace vgpu::client
