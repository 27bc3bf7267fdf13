// Pinned memory (cudaHostAlloc): part of the host arena, which program and worker share; in a virtual machine a piece of the memory that
// the machine shares with its host, if one is free; otherwise program and worker have a copy each (docs/remote.md).
#include <chrono>
#include <thread>

#include "intercept/session/call.h"
#include "intercept/session/managed/touch-faults.h"
#include "intercept/session/memory/memory.h"
#include "intercept/session/wait.h"

namespace vgpu::client {
namespace {

// The host keeps a session's pieces of the machine's memory until its worker has ended: an allocation that finds no other piece waits that
// long.
constexpr auto endingLimit = std::chrono::seconds(2);
constexpr auto endingLook = std::chrono::milliseconds(10);

}  // namespace

bool Memory::isShared(uint64_t address) const {
  std::lock_guard lock(mutex);
  return isSharedHere(address);
}

CUresult Memory::allocateHost(Thread& thread, uint64_t bytes, unsigned flags, HostKind kind, uint64_t owner, uint64_t& address) {
  if (bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  if (bytes > hostArenaBytes) return CUDA_ERROR_OUT_OF_MEMORY;
  bool shares = true;
  for (std::optional<std::vector<StreamFence>> frees;;) {
    collectAll(thread);
    freePassed(thread);
    {
      std::lock_guard lock(mutex);
      // Whole pages, so that separate pinned allocations never share a page.
      if (auto found = host.allocate(roundUp(bytes, hostPageBytes))) {
        address = *found;
        hostAllocations[address] = {address, bytes, flags, kind, owner};
        shares = isSharedHere(address);
        break;
      }
    }
    if (CUresult error = growHost(thread, bytes)) {
      if (error != CUDA_ERROR_OUT_OF_MEMORY) return error;
      if (!frees) {
        awaitReturns();
        frees = pendingFrees({PoolSource::Kind::host, hostMemoryDevice}, false);  // staging memory of graphs, which CUDA does not have
      } else if (!awaitSome(thread.session, *frees)) {
        return error;
      }
    }
  }
  {
    Call<api::Cuda::HostAllocParams> frame(thread.on(hostMemoryDevice), api::Method::hostAlloc);
    frame->setAddress(address);
    frame->setBytes(bytes);
    frame->setFlags(flags);
    frame.describe(address, bytes);
    if (CUresult error = frame.post()) return error;
  }
  if (shares) return CUDA_SUCCESS;
  // Host memory is not shared (docs/remote.md): the worker has its own copy at that address, which stands in for device memory.
  serveTouches();
  CUresult result = thread.session.managed.add(thread, hostMemoryDevice, address, roundUp(bytes, hostPageBytes));
  if (result != CUDA_SUCCESS) freeHost(thread, address);
  return result;
}

CUresult Memory::freeHost(Thread& thread, uint64_t address) {
  if (address == 0) return CUDA_SUCCESS;
  HostAllocation freed{};
  {
    std::lock_guard lock(mutex);
    auto found = hostAllocations.find(address);
    if (found == hostAllocations.end() || pools.isPendingFree(address)) return CUDA_ERROR_INVALID_VALUE;
    freed = found->second;
  }
  if (CUresult error = synchronizeHostMemory(thread, handleDevice(freed.context))) return error;
  bool shares;
  {
    std::lock_guard lock(mutex);
    if (hostAllocations.erase(address) == 0) return CUDA_ERROR_INVALID_VALUE;  // another thread is freeing it
    noteEnding();
    shares = isSharedHere(address);
  }
  if (!shares) thread.session.managed.remove(address);
  if (freed.kind == HostKind::managed) thread.session.managed.advice.forget(address, freed.bytes);
  if (CUresult error = postHostFree(thread, address)) return error;
  {
    std::lock_guard lock(mutex);
    host.free(address);
    pools.freed(address);
    if (host.freeBytes() <= keptFor(host)) return CUDA_SUCCESS;
  }
  CUresult result = CUDA_SUCCESS;
  endIdleHostLease(thread, result);
  return result;
}

CUresult Memory::trimHost(Thread& thread, uint64_t keepBytes, bool ifIdle) {
  auto isMuch = [&] {
    std::lock_guard lock(mutex);
    return host.freeBytes() > keepBytes;
  };
  CUresult result = CUDA_SUCCESS;
  while (isMuch() && endIdleHostLease(thread, result, ifIdle)) {
  }
  return result;
}

bool Memory::endIdleHostLease(Thread& thread, CUresult& result, bool ifIdle) {
  std::optional<Arena::Range> idle;
  std::optional<Return> returning;
  {
    std::lock_guard lock(mutex);
    idle = host.takeIdleLease();
    if (!idle) return false;
    if (ifIdle) returning.emplace(returns);  // otherwise the driver may wait for work, and others must not wait for that
  }
  {
    Call<api::Cuda::EndHostLeaseParams> frame(thread.on(hostMemoryDevice), api::Method::endHostLease);
    frame->setAddress(idle->address);
    frame->setIfIdle(ifIdle);
    result = frame.call();
  }
  if (result == CUDA_ERROR_NOT_READY) {
    std::lock_guard lock(mutex);
    host.settleLease(idle->address, true);
  }
  if (result != CUDA_SUCCESS) return false;  // the worker still has the lease: after any error but NOT_READY its addresses stay unused
  pieces.drop(idle->address);
  std::lock_guard lock(mutex);
  host.settleLease(idle->address, false);
  return true;
}

// Leases a piece of the machine's memory; an error if none is free. Ends idle leases to make room.
CUresult Memory::leaseFromMachine(Thread& thread, uint64_t bytes) {
  if (!pieces.canBe(bytes)) return CUDA_ERROR_OUT_OF_MEMORY;
  CUresult result = tryMachine(thread, bytes), ended = CUDA_SUCCESS;
  while (result != CUDA_SUCCESS && endIdleHostLease(thread, ended)) result = tryMachine(thread, bytes);
  const auto limit = std::chrono::steady_clock::now() + endingLimit;
  while (result == CUDA_ERROR_ALREADY_MAPPED && std::chrono::steady_clock::now() < limit) {
    std::this_thread::sleep_for(endingLook);
    result = tryMachine(thread, bytes);
  }
  return result;
}

CUresult Memory::tryMachine(Thread& thread, uint64_t bytes) {
  std::optional<uint64_t> address;
  {
    std::lock_guard lock(mutex);
    address = host.placeLease(bytes);
    if (address) host.reserveLease(*address, bytes);
  }
  if (!address) return CUDA_ERROR_OUT_OF_MEMORY;
  CUresult result = CUDA_ERROR_OUT_OF_MEMORY;
  for (auto place = pieces.take(*address, bytes); place; place = pieces.take(*address, bytes, *place)) {
    {
      Call<api::Cuda::HostLeaseParams> frame(thread.on(hostMemoryDevice), api::Method::hostPiece);
      frame->setAddress(*address);
      frame->setBytes(bytes);
      frame->setPlace(*place);
      frame.describe(*address, bytes);
      result = frame.call();
    }
    if (result == CUDA_SUCCESS) break;
    pieces.drop(*address);
    if (result != CUDA_ERROR_ALREADY_MAPPED) break;
  }
  std::lock_guard lock(mutex);
  host.settleLease(*address, result == CUDA_SUCCESS);
  return result;
}

}  // namespace vgpu::client
