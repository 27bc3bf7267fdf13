// The session's memory as the program sees it: an arena for each device, and one of pinned host memory.
//
// Any thread. `mutex` guards the allocators' state and is never held while a frame is sent: a lease is requested without it, so
// two threads may lease at the same time, and one lease stays for later allocations.
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

// pooled: pinned memory of a pool. staging: of graphs that copy pageable memory. physical: what cuMemCreate has made, which the program
// maps elsewhere (VirtualMemory).
enum class HostKind { pinned, pooled, managed, registered, staging, physical };
struct HostAllocation {
  uint64_t address, bytes;
  unsigned flags;
  HostKind kind;
  uint64_t context;  // that it was made in and ends with; 0 for memory of a pool
  uint64_t id = 0;   // Memory::idOf()
};

class Memory {
 public:
  Memory(const Segment& segment, CompletionWords& lines, const MemoryFile& hostArena, const MemoryFile& segmentFile);
  // Whether the GPU reaches all pinned memory of this process; else it has two copies (docs/remote.md), but for pieces of a
  // virtual machine's memory.
  bool sharesHost() const { return sharesAll.load(std::memory_order_relaxed); }
  bool mayShareHost() const { return sharesHost() || pieces.canBe(); }
  // Whether the program can map such memory at addresses that it has reserved: it has them, but for a sanitizer.
  bool canMapHost() const { return sharesHost() && programHasDeviceArenas; }
  // The same of the pinned memory at `address`.
  bool isShared(uint64_t address) const;
  // It does not any more: `arena`, the program's mapping, ends, and what pinned memory is there has two copies (ManagedMemory::take).
  // Why that cannot be, if so. Any thread; does not wait for others when `givesUp` returns true.
  std::string comeApart(const Session& session, ManagedMemory& managed, Mapping& arena, const std::function<bool()>& givesUp);

  // CUDA's result. On success the allocation's frame has been posted. `owner` is the context that the allocation ends with; 0 for
  // memory of a pool, which ends with none.
  CUresult allocate(Thread& thread, unsigned device, uint64_t bytes, uint64_t owner, uint64_t& address);
  CUresult free(Thread& thread, uint64_t address);
  // The same in a stream (a resolved handle): an allocation from `pool` (null: the current one of its device), and a free that waits
  // for nothing (ordered-memory.cc).
  CUresult allocateOrdered(Thread& thread, uint64_t bytes, CUmemoryPool pool, uint64_t stream, uint64_t& address);
  CUresult freeOrdered(Thread& thread, uint64_t address, uint64_t stream);
  CUmemoryPool poolOf(uint64_t address) const;
  // Whether pinned memory of a pool has been given to that device; to any.
  bool isReached(uint64_t address, std::optional<unsigned> device = std::nullopt) const;
  CUresult trimPool(Thread& thread, CUmemoryPool pool, uint64_t keepBytes);
  // Calls `body` with the pools, after freed memory has been collected as far as streams have come.
  template <typename Body>
  auto withPools(Thread& thread, Body&& body) {
    collectAll(thread);
    std::lock_guard lock(mutex);
    return body(pools);
  }
  // The default pool of a device, or of another place by its number (PoolPlace); or its current one.
  CUmemoryPool poolOn(Thread& thread, CUdevice device, CUmemoryPool (StreamPools::*which)(unsigned) const) {
    return withPools(thread, [&](StreamPools& pools) { return (pools.*which)(static_cast<unsigned>(device)); });
  }

  // Everything the program has made in `context`, of `device`, which is idle. 0: in any context of it, and of its pools.
  CUresult freeAll(Thread& thread, unsigned device, uint64_t context);
  CUresult allocateHost(Thread& thread, uint64_t bytes, unsigned flags, HostKind kind, uint64_t owner, uint64_t& address);
  // Memory of a device that the program accesses at the same address (ManagedMemory). If a device of several does not reach another
  // one's memory (CONCURRENT_MANAGED_ACCESS is 0 then), it is pinned memory, which all reach.
  CUresult allocateManaged(Thread& thread, unsigned device, uint64_t bytes, unsigned flags, uint64_t owner, uint64_t& address);
  CUresult freeHost(Thread& thread, uint64_t address);
  // Pinned memory from `hostAddress` on, at `address` of the program too. Nothing if the system refuses.
  std::optional<SecondMapping> mapAgain(uint64_t hostAddress, uint64_t bytes, uint64_t address) const {
    return SecondMapping::at(address, bytes, arenaFile.fd(), hostAddress - hostArenaBase);
  }
  // Frees memory of a device or pinned memory that is used up to a place in a stream, and waits for nothing (free-behind.cc).
  void freeBehind(Thread& thread, uint64_t address, const StreamFence& fence);

  // The program's own memory (registered-memory.cc). If its pages can be adopted, or are of a file, the GPU accesses it at its own address.
  CUresult registerHost(Thread& thread, uint64_t address, uint64_t bytes, unsigned flags);
  CUresult unregisterHost(Thread& thread, uint64_t address);
  std::optional<HostAllocation> findRegistered(uint64_t address, bool adoptedOnly) const;
  // Whether it is registered to be read only, so that CUDA writes nothing there.
  bool isRegisteredReadOnly(uint64_t address) const;
  // Whether those bytes are registered memory that GPUs do not access, and that CUDA may write.
  bool isWritableByHost(uint64_t address, uint64_t bytes) const;

  // Counts what has ended of what findDevice() and findHost() find: while it stays the same, what they have found is there.
  uint64_t endings() const { return ended.load(std::memory_order_acquire); }
  // The allocation that holds `address`.
  std::optional<Arena::Range> findDevice(uint64_t address) const;
  std::optional<HostAllocation> findHost(uint64_t address) const;
  // Whether an allocation that they find has been freed behind work: the program has it no more.
  bool isEnding(uint64_t address);
  // The lease that holds an address of a device.
  std::optional<Arena::Range> findLease(uint64_t address) const;
  // A number that no other allocation has, ended ones included, of the one that begins there; 0 if none does. It gets it when it is first
  // asked for.
  uint64_t idOf(uint64_t start);

  // Addresses of a device for `bytes` (whole granules) of another session's memory; then the allocation in it, of a context; and
  // the end of both, or of the addresses alone. For SharedObjects.
  std::optional<uint64_t> reserveShared(unsigned device, uint64_t bytes);
  void addShared(uint64_t address, uint64_t bytes, uint64_t owner);
  void dropShared(uint64_t lease, uint64_t address);

  // Whether every synchronous operation on that device memory waits for its end (CU_POINTER_ATTRIBUTE_SYNC_MEMOPS), also where
  // CUDA's does not. False if there is no allocation.
  bool setSynchronizing(uint64_t address, bool synchronizes);
  bool isSynchronizing(uint64_t address) const {
    return anySynchronizing.load(std::memory_order_relaxed) && lookSynchronizing(address);
  }

  // Returns leased memory without allocations to the worker, down to `keepBytes`.
  void trim(Thread& thread, unsigned device, uint64_t keepBytes);
  // The same with memory that was not needed since the last call, beyond what is always kept. False if nothing is left for the
  // next call.
  bool trimUnneeded(Thread& thread, unsigned device);
  // Completes what was freed behind work that the GPUs have done. For a suspend: as IdleMemory does it.
  void completeFrees(Thread& thread);
  void completeFrees(Session& session, const std::function<bool()>& givesUp);

  // Leased from the worker and not allocated, what streams and graphs have freed as far as the GPUs have come included.
  uint64_t freeBytes(Thread& thread, unsigned device);

 private:
  struct Registered;
  bool lookSynchronizing(uint64_t address) const;
  // The part of a device's arena that an address is in; or that of the host.
  Arena& arenaOf(uint64_t address);
  // Takes `bytes` of one of the device's arenas, which grows if it must.
  CUresult place(Thread& thread, unsigned device, Arena& arena, uint64_t bytes, uint64_t owner, uint64_t& address);
  CUresult postAllocation(Thread& thread, unsigned device, uint64_t address, uint64_t bytes);
  CUresult postFree(Thread& thread, unsigned device, uint64_t address);
  CUresult postHostFree(Thread& thread, uint64_t address);
  CUresult allocateFor(Thread& thread, const PoolSource& source, uint64_t bytes, uint64_t& address);
  // An allocation in a stream for which there is no memory: of what other streams have freed.
  struct Ordered {
    PoolSource source;
    uint64_t bytes, asked;
    CUmemoryPool pool;
    uint64_t stream;
  };
  CUresult allocateBehindFrees(Thread& thread, const Ordered& wanted, uint64_t& address, bool& isReused);
  bool canSuffice(Thread& thread, const Ordered& wanted);
  CUresult allocateOnDevices(Thread& thread, unsigned device, uint64_t bytes, uint64_t owner, uint64_t& address);
  // The allocation is no more. Under `mutex`.
  void remove(uint64_t address);
  // The same for what threads have found of allocations: it is looked for again.
  void noteEnding() { ended.fetch_add(1, std::memory_order_release); }
  // How much was wanted of an allocation. Under `mutex`.
  void setAsked(uint64_t address, uint64_t asked);
  // Completes what freeBehind() has left, as far as the GPUs have come.
  void freePassed(Thread& thread);
  void settlePassed(Thread& thread, uint64_t address);
  bool isFreedLater(uint64_t address) const { return freedLater.contains(address); }  // under `mutex`
  bool isFreedBehind(uint64_t address) { return pools.isPendingFree(address) || isFreedLater(address); }  // work; under `mutex`
  // Completes frees in streams that the GPU has executed past them (StreamPools::takePast).
  void collect(Thread& thread, unsigned device, bool all);
  void collectAll(Thread& thread);  // of all devices
  using Return = Returns::Return;
  // Waits for what other threads are returning now.
  void awaitReturns();
  // How many have ended, these too.
  uint64_t returnsSoFar();
  // The fences behind which memory of that kind and device is free that graphs have freed, and perhaps streams.
  std::vector<StreamFence> pendingFrees(const PoolSource& source, bool ofStreams) const;
  // Until the GPU has passed one of these at least, which are taken out. False if there are none.
  static bool awaitSome(const Session& session, std::vector<StreamFence>& frees);
  // Notes it, and decides whether its pages, or its file's, are adopted.
  CUresult addRegistered(Registered& made, bool isAdoptable);
  CUresult askToAdopt(Thread& thread, const Registered& entry);
  CUresult adopt(Thread& thread, const Registered& entry);
  CUresult release(Thread& thread, uint64_t firstPage);
  CUresult endRegistration(Thread& thread, uint64_t address);
  CUresult grow(Thread& thread, unsigned device, Arena& arena, uint64_t bytes);
  // Asks the worker for `bytes` (whole granules) behind `arena`, by the frame of that kind of lease.
  template <typename Params>
  CUresult lease(Thread& thread, unsigned device, Arena& arena, api::Method method, uint64_t bytes);
  CUresult leaseExactly(Thread& thread, unsigned device, Arena& arena, uint64_t bytes);
  CUresult growHost(Thread& thread, uint64_t bytes);
  CUresult leaseFromMachine(Thread& thread, uint64_t bytes);
  CUresult tryMachine(Thread& thread, uint64_t bytes);
  // False if there is none, or it could not be ended, which `result` says: `ifIdle`, CUDA_ERROR_NOT_READY if GPUs have work.
  bool endIdleHostLease(Thread& thread, CUresult& result, bool ifIdle = false);
  bool isSharedHere(uint64_t address) const { return sharesHost() || pieces.hold(address); }  // under `mutex`

  void trim(Thread& thread, unsigned device, Arena& arena, uint64_t keepBytes);
  bool trimUnneeded(Thread& thread, unsigned device, Arena& arena);
  CUresult trimHost(Thread& thread, uint64_t keepBytes, bool ifIdle = false);
  static uint64_t keptFor(const Arena& arena, uint64_t pendingBytes = 0);
  // Whether more is free than is always kept, or will be when streams have come to their frees. Under `mutex`.
  bool isMuchFree(const PoolSource& source);

  mutable std::mutex mutex;
  uint64_t lastId = 0;
  Returns returns{mutex};
  std::vector<Arena> devices, managedParts;  // by device
  Arena host;
  IdleMemory idleMemory;
  StreamPools pools;
  std::map<uint64_t, HostAllocation> hostAllocations;
  std::atomic<uint64_t> ended{0};  // allocations; raised under `mutex`
  std::atomic<bool> anySynchronizing{false};  // has ever been set for any
  struct FreedLater {
    StreamFence fence;
    bool isTaken = false;  // a thread is freeing it
  };
  std::map<uint64_t, FreedLater> freedLater;  // by address
  std::atomic<bool> anyFreedLater{false};

  struct Registered {
    HostAllocation allocation;
    uint64_t firstPage, pageBytes;
    // Of the part of the arena that replaces the pages, or will; 0: none.
    uint64_t arenaAddress;
    // That they are of, and stay of, and where they begin in it.
    std::shared_ptr<const GivenFile> file{};
    uint64_t fileOffset = 0;
    bool isReadOnly = false;        // GPUs may not write it,
    bool arePagesReadOnly = false;  // nor may the program
    bool isAdopted = false;         // GPUs access it
    bool isEnding = false;          // a thread is unregistering it
    AdoptedPages pages() const { return {firstPage, pageBytes, arenaAddress, arePagesReadOnly}; }
  };
  // That holds the address; nullptr if none does. Under `mutex`.
  const Registered* registeredAt(uint64_t address) const;
  // What only the GPU's own host can have, in words. Under `mutex`.
  std::string whatMustStay(const Session& session) const;
  std::atomic<bool> sharesAll;                // cleared under `mutex`
  const MemoryFile& arenaFile;                // none: host memory is not shared,
  GuestPieces pieces;                         // but for these; their lock comes after `mutex`
  std::map<uint64_t, Registered> registered;  // by address
  std::atomic<bool> anyRegistered{false};
};

}  // namespace vgpu::client
