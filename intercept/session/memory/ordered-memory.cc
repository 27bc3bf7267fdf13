// Stream-ordered allocations and frees (cudaMallocAsync), whichever arena the pool's memory is in (stream-pools.h).
#include <chrono>
#include <thread>

#include "intercept/session/call.h"
#include "intercept/session/cancellation.h"
#include "intercept/session/memory/memory.h"
#include "intercept/session/ring-order.h"
#include "intercept/session/wait.h"
#include "vgpu/wire/futex.h"

namespace vgpu::client {

namespace {

using Kind = PoolSource::Kind;

unsigned deviceOf(uint64_t address) {
  return inHostArena(address) ? hostMemoryDevice : static_cast<unsigned>((address - deviceArenaBase) / deviceArenaBytes);
}

// Rounds up to whole units, which two allocations never share, so that another allocation can reuse the memory.
uint64_t wholeOf(const PoolSource& source, uint64_t bytes) {
  return roundUp(bytes, source.kind == Kind::device ? allocationAlignment : hostPageBytes);
}

}  // namespace

CUmemoryPool Memory::poolOf(uint64_t address) const {
  std::lock_guard lock(mutex);
  return pools.poolOf(address);
}

bool Memory::isReached(uint64_t address, std::optional<unsigned> device) const {
  std::lock_guard lock(mutex);
  auto next = hostAllocations.upper_bound(address);
  return next != hostAllocations.begin() && pools.hasAccess(std::prev(next)->first, device);
}

void Memory::collectAll(Thread& thread) {
  for (unsigned device = 0; device < thread.session.devices.size(); ++device) collect(thread, device, false);
}

void Memory::awaitReturns() {
  CancellationOff untilReturned;  // a wait for a condition is a cancellation point
  std::unique_lock lock(mutex);
  returns.await(lock);
}

uint64_t Memory::returnsSoFar() {
  awaitReturns();
  std::lock_guard lock(mutex);
  return returns.endedSoFar();
}

std::vector<StreamFence> Memory::pendingFrees(const PoolSource& source, bool ofStreams) const {
  std::lock_guard lock(mutex);
  std::vector<StreamFence> frees;
  if (ofStreams) frees = pools.pendingFrees(source);
  for (auto& [address, free] : freedLater)
    if (inHostArena(address) ? source.kind == Kind::host : source == PoolSource{Kind::device, deviceOf(address)})
      frees.push_back(free.fence);
  return frees;
}

bool Memory::awaitSome(const Session& session, std::vector<StreamFence>& frees) {
  for (Backoff backoff; !frees.empty();) {
    if (std::erase_if(frees, [&](auto& fence) { return isPast(session, fence); }) != 0) return true;
    if (!backoff.spin()) std::this_thread::sleep_for(std::chrono::nanoseconds(backoff.sleepNanoseconds()));
  }
  return false;
}

void Memory::collect(Thread& thread, unsigned device, bool all) {
  if (!pools.hasAny()) return;
  std::vector<uint64_t> past;
  std::optional<Return> returning;
  {
    std::lock_guard lock(mutex);
    past = pools.takePast(device, all);
    if (past.empty()) return;
    returning.emplace(returns);
  }
  // Each free's frame enters the ring before another allocation can get the addresses.
  for (uint64_t address : past) {
    if (inHostArena(address) || inManagedPart(address)) thread.session.managed.remove(address);
    inHostArena(address) ? postHostFree(thread, address) : postFree(thread, deviceOf(address), address);
  }
  std::lock_guard lock(mutex);
  for (uint64_t address : past) {
    remove(address);
    pools.drop(address);
  }
}

CUresult Memory::allocateFor(Thread& thread, const PoolSource& source, uint64_t bytes, uint64_t& address) {
  switch (source.kind) {
    case Kind::device: return allocate(thread, source.device, bytes, 0, address);
    case Kind::managed: return allocateManaged(thread, source.device, bytes, CU_MEM_ATTACH_GLOBAL, 0, address);
    case Kind::host: return allocateHost(thread, bytes, 0, HostKind::pooled, 0, address);
  }
  KJ_UNREACHABLE;
}

void Memory::setAsked(uint64_t address, uint64_t asked) {
  if (!inHostArena(address)) return arenaOf(address).setAsked(address, asked);
  hostAllocations.at(address).bytes = asked;
  noteEnding();  // its size may have become smaller
}

// Reuses memory that was freed in this stream first: that needs no wait, no other memory and no frame. A new allocation is mapped before
// any later work of the stream, which may be another device's, runs.
CUresult Memory::allocateOrdered(Thread& thread, uint64_t bytes, CUmemoryPool pool, uint64_t stream,
                                 uint64_t& address) {
  if (bytes > deviceArenaBytes) return CUDA_ERROR_OUT_OF_MEMORY;
  const uint64_t asked = bytes;
  const unsigned streamDevice = thread.deviceOf(stream);
  PoolSource source;
  CUmemLocation preferred;
  bool isReused = false;
  {
    std::lock_guard lock(mutex);
    if (pool == nullptr) pool = pools.currentOf(streamDevice);
    StreamPool* from = pools.find(pool);
    if (from == nullptr || from->isTaken) return CUDA_ERROR_INVALID_VALUE;
    if (bytes == 0) return address = 0, CUDA_SUCCESS;
    preferred = from->place.location;
    source = from->sourceFor(streamDevice);
    const bool isOthers = source.kind == Kind::device && source.device != streamDevice;
    if (isOthers && !thread.session.devices[streamDevice].canAccess(source.device)) return CUDA_ERROR_INVALID_DEVICE;
    bytes = wholeOf(source, bytes);
    if (from->mostBytes != 0 && (bytes > from->mostBytes || from->used > from->mostBytes - bytes))
      return CUDA_ERROR_OUT_OF_MEMORY;
    if (StreamPools::Block* block = pools.findFreed(source, streamDevice, stream, bytes)) {
      address = block->address;
      if (block->asked != asked) setAsked(address, asked);
      if (anySynchronizing.load(std::memory_order_relaxed)) arenaOf(address).mark(address, false);
      pools.reuse(*block, asked, pool, *from);
      isReused = true;
    }
  }
  if (!isReused) {
    CUresult result = allocateFor(thread, source, bytes, address);
    if (result == CUDA_ERROR_OUT_OF_MEMORY) result = allocateBehindFrees(thread, {source, bytes, asked, pool, stream}, address, isReused);
    if (result != CUDA_SUCCESS) return result;
  }
  if (source.kind == Kind::managed && preferred.type != CU_MEM_LOCATION_TYPE_NONE)
    thread.session.managed.advice.change(address, bytes, [&](Advice& advice) { advice.preferred = preferred; });
  if (isReused) return CUDA_SUCCESS;
  if (const unsigned device = deviceOf(address); device != streamDevice)
    if (CUresult error = orderBehindAll(thread, streamDevice, 1u << device)) return error;
  std::lock_guard lock(mutex);
  pools.allocated(address, arenaOf(address).at(address)->bytes, asked, pool, source);
  setAsked(address, asked);
  return CUDA_SUCCESS;
}

// Makes the stream wait for another stream's free (CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES); the program does not wait, since
// that stream may be waiting for it. It waits only if no single freed block fits but all memory suffices, until enough is contiguous.
CUresult Memory::allocateBehindFrees(Thread& thread, const Ordered& wanted, uint64_t& address, bool& isReused) {
  std::optional<StreamFence> fence;
  {
    std::lock_guard lock(mutex);
    StreamPool* from = pools.find(wanted.pool);
    if (from == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (from->reuse[2] == 0) return CUDA_ERROR_OUT_OF_MEMORY;
    if (StreamPools::Block* block = pools.findFreed(wanted.source, wanted.bytes)) {
      fence = pools.fenceOf(*block);
      address = block->address;
      setAsked(address, wanted.asked);
      if (anySynchronizing.load(std::memory_order_relaxed)) arenaOf(address).mark(address, false);
      pools.reuse(*block, wanted.asked, wanted.pool, *from);
      isReused = true;
    }
  }
  if (fence) return awaitFence(thread, wanted.stream, *fence);
  std::vector<StreamFence> frees = pendingFrees(wanted.source, true);
  awaitReturns();
  while (canSuffice(thread, wanted)) {
    CUresult result = allocateFor(thread, wanted.source, wanted.bytes, address);
    if (result != CUDA_ERROR_OUT_OF_MEMORY || !awaitSome(thread.session, frees)) return result;
  }
  return CUDA_ERROR_OUT_OF_MEMORY;
}

// Whether the free memory and the pending frees together suffice; for host memory, which other processes of the machine use too, only what
// the session has counts. Memory that another thread is returning is in neither count, and memory that it returns meanwhile may be in both:
// then the attempt is made in vain.
bool Memory::canSuffice(Thread& thread, const Ordered& wanted) {
  const auto& [kind, device] = wanted.source;
  uint64_t known = 0;
  {
    std::lock_guard lock(mutex);
    if (!returns.areOver()) return true;
    known = kind == Kind::host ? host.freeBytes() : devices[device].freeBytes() + managedParts[device].freeBytes();
    known += pools.freedBytes(wanted.source);
  }
  if (kind == Kind::host || known >= wanted.bytes) return known >= wanted.bytes;
  Call<api::Cuda::MemGetInfoParams> frame(thread.on(device), api::Method::memGetInfo);
  if (frame.call() != CUDA_SUCCESS) return false;
  return known + frame.results<api::Cuda::MemGetInfoResults>().getFree() >= wanted.bytes;
}

CUresult Memory::freeOrdered(Thread& thread, uint64_t address, uint64_t stream) {
  const unsigned streamDevice = thread.deviceOf(stream);
  SharedObjects& shared = thread.session.shared;
  if (shared.isTaken(address)) {
    if (!shared.isTakenOfPool(address)) return CUDA_ERROR_INVALID_VALUE;
    if (CUresult error = synchronizeStream(thread, stream)) return error;
    return shared.closeMemory(thread, address, true);
  }
  if (!(inDeviceArenas(address) || inHostArena(address)) || deviceOf(address) >= thread.session.devices.size())
    return CUDA_ERROR_INVALID_VALUE;
  const bool isGiven = shared.isGiven(address);
  PoolSource source{Kind::device, deviceOf(address)};
  StreamPools::Block* freed = nullptr;
  uint64_t bytes = 0;
  bool isMuch = false;
  {
    std::lock_guard lock(mutex);
    StreamPools::Block* ofPool = pools.find(address);
    if ((ofPool != nullptr && ofPool->isFreed()) || isFreedLater(address)) return CUDA_ERROR_INVALID_VALUE;
    if (ofPool != nullptr) {
      source = ofPool->source;
      bytes = ofPool->bytes;
    } else {
      auto found = arenaOf(address).at(address);
      if (!found) return CUDA_ERROR_INVALID_VALUE;
      if (inHostArena(address) || inManagedPart(address)) {  // not the device's own memory
        const bool isPinned = inHostArena(address) && hostAllocations.at(address).kind != HostKind::managed;
        return isPinned ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_NOT_SUPPORTED;
      }
      bytes = found->bytes;
    }
    if (auto* fences = pools.fencesOf(streamDevice, stream, thread.session.handles))
      freed = &pools.cool(address, bytes, ofPool, source, ofPool != nullptr && !isGiven, *fences);
    isMuch = isMuchFree(source);
  }
  if (freed == nullptr) {  // no completion word is left: wait instead
    CUresult waited = deviceOf(address) == streamDevice ? CUDA_SUCCESS : synchronizeStream(thread, stream);
    return waited != CUDA_SUCCESS ? waited : inHostArena(address) ? freeHost(thread, address) : free(thread, address);
  }
  if (isGiven) shared.freed(address);
  if (source.kind == Kind::managed) thread.session.managed.advice.forget(address, bytes);
  Call<api::Cuda::StreamFenceParams> frame(thread.of(stream), api::Method::streamFence);
  frame.setStream(stream);
  frame->setLine(freed->fences->completion);
  const uint64_t sequence = frame.sequence();
  if (CUresult error = frame.post()) return error;
  freed->isFenced(sequence);
  if (isMuch) idleMemory.note(thread.session);
  return CUDA_SUCCESS;
}

CUresult Memory::trimPool(Thread& thread, CUmemoryPool pool, uint64_t keepBytes) {
  collectAll(thread);
  PoolSource source;
  {
    std::lock_guard lock(mutex);
    StreamPool* trimmed = pools.find(pool);
    if (trimmed == nullptr || trimmed->isTaken) return CUDA_ERROR_INVALID_VALUE;
    source = trimmed->sourceFor(thread.device());
    trimmed->trim(keepBytes);
  }
  if (source.kind == Kind::host) trimHost(thread, keepBytes);
  else trim(thread, source.device, keepBytes);
  return CUDA_SUCCESS;
}

}  // namespace vgpu::client
