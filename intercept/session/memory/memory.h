// The session's memory as the program sees it: one arena for each device, and one of pinned host memory.
//
// Any thread. `mutex` guards the allocators' state and is never held while a frame is sent: leases are requested without it, so two threads
// may both lease, and the second lease stays for later allocations.
#pragma once

#include <cuda.h>

#include <array>
#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "cuda-methods.h"
#include "intercept/session/event-record.h"
#include "intercept/session/memory/arena.h"
#include "intercept/session/memory/guest-pieces.h"
#include "intercept/session/memory/idle-memory.h"
#include "intercept/session/memory/page-adoption.h"
#include "intercept/session/memory/returns.h"
#include "intercept/session/memory/second-mapping.h"
#include "intercept/session/memory/stream-pools.h"

namespace vgpu::client {

class ManagedMemory;
class Session;
class Thread;
class GivenFile;

// pooled: pinned memory of a pool. staging: buffers of graphs that copy pageable memory. physical: memory of cuMemCreate, which the program
// maps at other addresses (VirtualMemory).
enum class HostKind { pinned, pooled, managed, registered, staging, physical };
struct HostAllocation {
  uint64_t address, bytes;
  unsigned flags;
  HostKind kind;
  uint64_t context;  // in which it was made and with which it ends; 0 for memory of a pool
  uint64_t id = 0;   // Memory::idOf()
};

class Memory {
 public:
  Memory(const Segment& segment, CompletionWords& lines, const MemoryFile& hostArena, const MemoryFile& segmentFile);
  // Whether the GPU accesses all pinned memory of this process directly; otherwise that memory has two copies (docs/remote.md), except
  // pieces of a virtual machine's memory.
  bool sharesHost() const { return sharesAll.load(std::memory_order_relaxed); }
  bool mayShareHost() const { return sharesHost() || pieces.canBe(); }
  // Whether the program can map host memory at reserved addresses: it has the address range, unless a sanitizer occupies it.
  bool canMapHost() const { return sharesHost() && programHasDeviceArenas; }
  // Whether the pinned memory at `address` is shared.
  bool isShared(uint64_t address) const;
  // Ends the sharing: `arena`, the program's mapping, ends, and its pinned memory has two copies (ManagedMemory::take). Returns the reason
  // if that is impossible. Any thread; does not wait for others once `givesUp` returns true.
  std::string comeApart(const Session& session, ManagedMemory& managed, Mapping& arena, const std::function<bool()>& givesUp);

  // CUDA's result. On success the allocation's frame has been posted. `owner` is the context with which the allocation ends; 0 for memory
  // of a pool, which ends with none.
  CUresult allocate(Thread& thread, unsigned device, uint64_t bytes, uint64_t owner, uint64_t& address);
  CUresult free(Thread& thread, uint64_t address);
  // Stream-ordered (`stream` is resolved): an allocation from `pool` (null: the current pool of the stream's device), and a free that does
  // not wait (ordered-memory.cc).
  CUresult allocateOrdered(Thread& thread, uint64_t bytes, CUmemoryPool pool, uint64_t stream, uint64_t& address);
  CUresult freeOrdered(Thread& thread, uint64_t address, uint64_t stream);
  CUmemoryPool poolOf(uint64_t address) const;
  // Whether `device`, or any device, has access to pinned memory of a pool.
  bool isReached(uint64_t address, std::optional<unsigned> device = std::nullopt) const;
  CUresult trimPool(Thread& thread, CUmemoryPool pool, uint64_t keepBytes);
  // Calls `body` with the pools, after collecting the frees that streams have passed.
  template <typename Body>
  auto withPools(Thread& thread, Body&& body) {
    collectAll(thread);
    std::lock_guard lock(mutex);
    return body(pools);
  }
  // The default or the current pool of a device, or of another place, by its number (PoolPlace).
  CUmemoryPool poolOn(Thread& thread, CUdevice device, CUmemoryPool (StreamPools::*which)(unsigned) const) {
    return withPools(thread, [&](StreamPools& pools) { return (pools.*which)(static_cast<unsigned>(device)); });
  }

  // Frees everything that the program has made in `context`, of `device`, which is idle. 0: in all of the device's contexts and pools.
  CUresult freeAll(Thread& thread, unsigned device, uint64_t context);
  CUresult allocateHost(Thread& thread, uint64_t bytes, unsigned flags, HostKind kind, uint64_t owner, uint64_t& address);
  // Memory of a device that the program accesses at the same address (ManagedMemory). If not all devices are peers of each other
  // (CONCURRENT_MANAGED_ACCESS is 0 then), it is pinned memory, which all devices access.
  CUresult allocateManaged(Thread& thread, unsigned device, uint64_t bytes, unsigned flags, uint64_t owner, uint64_t& address);
  CUresult freeHost(Thread& thread, uint64_t address);
  // Maps the pinned memory at `hostAddress` also at `address` in the program. Nothing if the system refuses.
  std::optional<SecondMapping> mapAgain(uint64_t hostAddress, uint64_t bytes, uint64_t address) const {
    return SecondMapping::at(address, bytes, arenaFile.fd(), hostAddress - hostArenaBase);
  }
  // Frees device or pinned memory after a fence in a stream has passed, without waiting for it (free-behind.cc).
  void freeBehind(Thread& thread, uint64_t address, const StreamFence& fence);

  // The program's own memory (registered-memory.cc). The GPU accesses it at its address if its pages can be adopted or are a file's.
  CUresult registerHost(Thread& thread, uint64_t address, uint64_t bytes, unsigned flags);
  CUresult unregisterHost(Thread& thread, uint64_t address);
  std::optional<HostAllocation> findRegistered(uint64_t address, bool adoptedOnly) const;
  // Whether it is registered as read-only, so that CUDA must not write there.
  bool isRegisteredReadOnly(uint64_t address) const;
  // Whether those bytes are registered memory that GPUs do not access and that CUDA may write.
  bool isWritableByHost(uint64_t address, uint64_t bytes) const;

  // Counts the ended allocations: while the count is unchanged, results of findDevice() and findHost() stay valid.
  uint64_t endings() const { return ended.load(std::memory_order_acquire); }
  // The allocation that contains `address`.
  std::optional<Arena::Range> findDevice(uint64_t address) const;
  std::optional<HostAllocation> findHost(uint64_t address) const;
  // Whether an allocation that they find has been freed behind pending work: for the program it no longer exists.
  bool isEnding(uint64_t address);
  // The lease that contains a device address.
  std::optional<Arena::Range> findLease(uint64_t address) const;
  // An id of the allocation that starts at `start`, never used for another, ended ones included; 0 if there is none. Assigned at the first
  // request.
  uint64_t idOf(uint64_t start);

  // For SharedObjects: reserves device addresses for `bytes` (whole granules) of another session's memory; adds a context's allocation
  // there; ends both, or just the reservation.
  std::optional<uint64_t> reserveShared(unsigned device, uint64_t bytes);
  void addShared(uint64_t address, uint64_t bytes, uint64_t owner);
  void dropShared(uint64_t lease, uint64_t address);

  // Whether every synchronous operation on that device memory waits until it is complete (CU_POINTER_ATTRIBUTE_SYNC_MEMOPS), even where
  // CUDA otherwise does not. False if there is no allocation.
  bool setSynchronizing(uint64_t address, bool synchronizes);
  bool isSynchronizing(uint64_t address) const {
    return anySynchronizing.load(std::memory_order_relaxed) && lookSynchronizing(address);
  }

  // Returns leases without allocations to the worker, until at most `keepBytes` are free.
  void trim(Thread& thread, unsigned device, uint64_t keepBytes);
  // The same for memory that was not needed since the last call, beyond what is always kept. False if nothing is left to do for the next
  // call.
  bool trimUnneeded(Thread& thread, unsigned device);
  // Completes frees behind work that the GPUs have finished. The second one is for a suspend: IdleMemory does it.
  void completeFrees(Thread& thread);
  void completeFrees(Session& session, const std::function<bool()>& givesUp);

  // Bytes leased from the worker and not allocated, including frees of streams and graphs that the GPUs have passed.
  uint64_t freeBytes(Thread& thread, unsigned device);

 private:
  struct Registered;
  bool lookSynchronizing(uint64_t address) const;
  // The part of a device's arena that contains the address, or the host arena.
  Arena& arenaOf(uint64_t address);
  // Allocates `bytes` in one of the device's arenas, which grows if necessary.
  CUresult place(Thread& thread, unsigned device, Arena& arena, uint64_t bytes, uint64_t owner, uint64_t& address);
  CUresult postAllocation(Thread& thread, unsigned device, uint64_t address, uint64_t bytes);
  CUresult postFree(Thread& thread, unsigned device, uint64_t address);
  CUresult postHostFree(Thread& thread, uint64_t address);
  CUresult allocateFor(Thread& thread, const PoolSource& source, uint64_t bytes, uint64_t& address);
  // A stream-ordered allocation that found no free memory: it may use memory that other streams have freed.
  struct Ordered {
    PoolSource source;
    uint64_t bytes, asked;
    CUmemoryPool pool;
    uint64_t stream;
  };
  CUresult allocateBehindFrees(Thread& thread, const Ordered& wanted, uint64_t& address, bool& isReused);
  bool canSuffice(Thread& thread, const Ordered& wanted);
  CUresult allocateOnDevices(Thread& thread, unsigned device, uint64_t bytes, uint64_t owner, uint64_t& address);
  // Removes the allocation from its arena. Under `mutex`.
  void remove(uint64_t address);
  // Invalidates what threads remember of allocations.
  void noteEnding() { ended.fetch_add(1, std::memory_order_release); }
  // Sets the requested size of an allocation. Under `mutex`.
  void setAsked(uint64_t address, uint64_t asked);
  // Completes the frees of freeBehind() that the GPUs have passed.
  void freePassed(Thread& thread);
  void settlePassed(Thread& thread, uint64_t address);
  bool isFreedLater(uint64_t address) const { return freedLater.contains(address); }  // under `mutex`
  bool isFreedBehind(uint64_t address) { return pools.isPendingFree(address) || isFreedLater(address); }  // under `mutex`
  // Completes the stream-ordered frees that the GPU has passed (StreamPools::takePast).
  void collect(Thread& thread, unsigned device, bool all);
  void collectAll(Thread& thread);  // of all devices
  using Return = Returns::Return;
  // Waits until the memory that other threads are returning now has been returned.
  void awaitReturns();
  // How many returns have ended, after awaitReturns().
  uint64_t returnsSoFar();
  // The fences of pending frees of that memory: of graphs and, if `ofStreams`, of streams.
  std::vector<StreamFence> pendingFrees(const PoolSource& source, bool ofStreams) const;
  // Waits until the GPU has passed at least one of the fences, and removes those that it has passed. False if there are none.
  static bool awaitSome(const Session& session, std::vector<StreamFence>& frees);
  // Adds the registration, and decides whether its pages, or its file's, are adopted.
  CUresult addRegistered(Registered& made, bool isAdoptable);
  CUresult askToAdopt(Thread& thread, const Registered& entry);
  CUresult adopt(Thread& thread, const Registered& entry);
  CUresult release(Thread& thread, uint64_t firstPage);
  CUresult endRegistration(Thread& thread, uint64_t address);
  CUresult grow(Thread& thread, unsigned device, Arena& arena, uint64_t bytes);
  // Requests a lease of `bytes` (whole granules) for `arena` from the worker, with the frame of that kind of lease.
  template <typename Params>
  CUresult lease(Thread& thread, unsigned device, Arena& arena, api::Method method, uint64_t bytes);
  CUresult leaseExactly(Thread& thread, unsigned device, Arena& arena, uint64_t bytes);
  CUresult growHost(Thread& thread, uint64_t bytes);
  CUresult leaseFromMachine(Thread& thread, uint64_t bytes);
  CUresult tryMachine(Thread& thread, uint64_t bytes);
  // Ends an idle lease. False if there is none or `result` is an error; with `ifIdle`, CUDA_ERROR_NOT_READY if GPUs have work.
  bool endIdleHostLease(Thread& thread, CUresult& result, bool ifIdle = false);
  bool isSharedHere(uint64_t address) const { return sharesHost() || pieces.hold(address); }  // under `mutex`

  void trim(Thread& thread, unsigned device, Arena& arena, uint64_t keepBytes);
  bool trimUnneeded(Thread& thread, unsigned device, Arena& arena);
  CUresult trimHost(Thread& thread, uint64_t keepBytes, bool ifIdle = false);
  static uint64_t keptFor(const Arena& arena, uint64_t pendingBytes = 0);
  // Whether more is free than is always kept, pending stream-ordered frees included. Under `mutex`.
  bool isMuchFree(const PoolSource& source);

  mutable std::mutex mutex;
  uint64_t lastId = 0;
  Returns returns{mutex};
  std::vector<Arena> devices, managedParts;  // by device
  Arena host;
  IdleMemory idleMemory;
  StreamPools pools;
  std::map<uint64_t, HostAllocation> hostAllocations;
  std::atomic<uint64_t> ended{0};  // how many allocations have ended; raised under `mutex`
  std::atomic<bool> anySynchronizing{false};  // whether it was ever set for any
  struct FreedLater {
    StreamFence fence;
    bool isTaken = false;  // a thread is freeing it
  };
  std::map<uint64_t, FreedLater> freedLater;  // by address
  std::atomic<bool> anyFreedLater{false};

  struct Registered {
    HostAllocation allocation;
    uint64_t firstPage, pageBytes;
    // The part of the arena that replaces the pages, or will; 0: none.
    uint64_t arenaAddress;
    // If the pages are a file's: the file, which they stay, and the offset of their start in it.
    std::shared_ptr<const GivenFile> file{};
    uint64_t fileOffset = 0;
    bool isReadOnly = false;        // for GPUs
    bool arePagesReadOnly = false;  // for the program
    bool isAdopted = false;         // GPUs access it
    bool isEnding = false;          // a thread is unregistering it
    AdoptedPages pages() const { return {firstPage, pageBytes, arenaAddress, arePagesReadOnly}; }
  };
  // The registration that contains the address; nullptr if none. Under `mutex`.
  const Registered* registeredAt(uint64_t address) const;
  // Names the memory that only the GPU's own host can have. Under `mutex`.
  std::string whatMustStay(const Session& session) const;
  std::atomic<bool> sharesAll;                // cleared under `mutex`
  const MemoryFile& arenaFile;                // invalid if host memory is not shared
  GuestPieces pieces;                         // shared even then; their lock comes after `mutex`
  std::map<uint64_t, Registered> registered;  // by address
  std::atomic<bool> anyRegistered{false};
};

}  // namespace vgpu::client
