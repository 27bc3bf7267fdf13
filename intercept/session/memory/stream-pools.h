// Stream-ordered memory (cudaMallocAsync): pools as the program sees them, and what has been freed and may still be in
// use.
//
// An allocation is one of an arena like any other (memory.h), in whichever device's stream: of the pool's device, of what a device
// has of managed memory, or of pinned memory. Its free differs: freed in a stream, the memory can be reused at once by an
// allocation in that same stream, whose work comes later anyway; by others once the GPU has executed the stream up to the free.
// To know that, a fence follows each free: the GPU writes its sequence number into a completion word of the stream.
//
// Any thread, under Memory's mutex. All of it is in the program's process and survives a suspend; fences have been written into
// the segment, or are pending frames in the ring.
#pragma once

#include <cuda.h>

#include <array>
#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "intercept/session/completion-words.h"
#include "intercept/session/latest-number.h"
#include "intercept/session/memory/memory-attribute.h"
#include "intercept/session/memory/pool-place.h"
#include "intercept/session/memory/shared-objects.h"

namespace vgpu::client {

class HandleTable;
struct DeviceInfo;

// Which arena memory of a pool is from.
struct PoolSource {
  enum class Kind { device, managed, host } kind;
  unsigned device;  // that it is of, or whose ring its frames are in
  bool operator==(const PoolSource&) const = default;
};

struct StreamPool {
  explicit StreamPool(const PoolPlace& place, bool isDefault = false);

  PoolPlace place;
  bool isDefault = false, destroyed = false;
  bool isShareable = false;           // its allocations can be given to other sessions
  bool isTaken = false;               // another session's: nothing is allocated from it, and it has nothing to trim
  std::optional<SharedName> name;     // of either, once it is known
  std::array<int, 3> reuse{1, 1, 1};  // follow events, opportunistic, internal dependencies
  uint64_t mostBytes = 0;             // 0: no limit of its own
  uint64_t releaseThreshold = 0;
  // That devices have, and behind them the host.
  std::array<CUmemAccess_flags, maxDevices + 1> access{};
  uint64_t used = 0, usedHigh = 0, reserved = 0, reservedHigh = 0;

  // Of an allocation in a stream of that device.
  PoolSource sourceFor(unsigned streamDevice) const;
  // Where `access` has that of a location; nothing if that is none.
  static std::optional<unsigned> accessor(const CUmemLocation& location, size_t devices);
  // CUDA's answer if a location cannot be given that access.
  CUresult checkAccess(const CUmemAccessDesc& wanted, const std::vector<DeviceInfo>& devices) const;

  void add(uint64_t bytes);
  void remove(uint64_t bytes) { used -= bytes; }
  // Returns unused memory down to `keepBytes`.
  void trim(uint64_t keepBytes);
  MemoryAttribute attribute(CUmemPool_attribute which);
};

class StreamPools {
 public:
  StreamPools(const Segment& segment, CompletionWords& completions);

  // By the program's handle; nullptr if there is no such pool.
  StreamPool* find(CUmemoryPool pool);
  CUmemoryPool create(const PoolPlace& place, uint64_t mostBytes);
  // No new allocations from it; it is removed with its last one.
  void destroy(CUmemoryPool pool);
  // By the number of a place (PoolPlace::number): a device's.
  CUmemoryPool defaultOf(unsigned place) const;
  CUmemoryPool currentOf(unsigned place) const { return current[place]; }
  // CUDA_ERROR_INVALID_VALUE if the pool's memory is not of that place; of its location, if it may be `ofAnyType`.
  CUresult setCurrent(PoolPlace place, CUmemoryPool pool, bool ofAnyType = false);
  // The node of a captured allocation from `pool` (null: the current one of `device`): the memory is the graph's, with the pool's
  // properties. CUDA's error if the pool could not have it.
  CUresult describe(CUmemoryPool pool, unsigned device, uint64_t bytes, CUDA_MEM_ALLOC_NODE_PARAMS& params);

  // Which live allocations came from which pool.
  void allocated(uint64_t address, uint64_t bytes, CUmemoryPool pool, const PoolSource& source);
  void freed(uint64_t address);
  // 0 if the allocation came from none.
  CUmemoryPool poolOf(uint64_t address) const;
  std::optional<PoolSource> sourceOf(uint64_t address) const;
  // Whether a device, or any, has access to the pool of an allocation.
  bool hasAccess(uint64_t address, std::optional<unsigned> device) const;

  // Memory that is freed and waits for its stream, which may be another device's. `stream` is a resolved handle. It stays
  // allocated in the arena, and an object of the session, until it is collected or reused.
  struct Freed {
    PoolSource source;
    uint64_t bytes;  // 0: cannot be reused as it is
    unsigned streamDevice;
    uint64_t stream;
  };
  // A stream's fences: their completion word, and the last of them.
  struct Fences {
    uint32_t completion;
    std::atomic<uint64_t> lastSequence{0};
  };
  // What is freed, and the fence behind it: `unsent` until that has been sent, which no lock is needed for (isFenced). Until then
  // the memory is nobody's.
  static constexpr uint64_t unsent = UINT64_MAX;
  struct Cooling {
    Freed freed;
    Fences* fences;
    std::atomic<uint64_t> sequence;
    // Memory order: whoever takes the memory sees what the freeing thread has done before.
    void isFenced(uint64_t by) {
      raise(fences->lastSequence, by);
      sequence.store(by, std::memory_order_release);
    }
  };
  // The fences of a stream; nullptr if no completion word is left. Those of destroyed streams are given back when there is another
  // stream.
  Fences* fencesOf(unsigned device, uint64_t stream, const HandleTable& handles);
  Cooling& cool(uint64_t address, const Freed& freed, Fences& fences);
  bool isPendingFree(uint64_t address) const { return pendingFrees.contains(address); }
  // Of memory that could be that pool's.
  bool hasPendingFree(const StreamPool& pool) const;
  // The devices in whose streams memory of `device` was freed, a bit each.
  uint32_t freeingDevices(unsigned device) const;
  // Without the mutex: whether there is anything to collect.
  bool hasAny() const { return pendingFreeCount.load(std::memory_order_relaxed) != 0; }
  // The smallest range from there that was freed in that very stream and holds `bytes` without much waste; of managed and host
  // memory, one of that size.
  std::optional<uint64_t> takeOfStream(const PoolSource& source, unsigned streamDevice, uint64_t stream, uint64_t bytes);
  // The ranges of `device` whose streams have passed their frees; if `all`, as its contexts have ended, all of them and all that
  // was freed in its streams. The caller must free them, then drop them.
  std::vector<uint64_t> takePast(unsigned device, bool all);
  void drop(uint64_t address);

 private:
  bool isPast(const Cooling& cooling) const;
  // Gives back the completion words of destroyed streams.
  void dropFences(const HandleTable& handles);

  struct Owned {
    CUmemoryPool handle;
    StreamPool* pool;  // of `pools`, which has it until it has nothing in use
    uint64_t bytes;
    PoolSource source;
  };
  const Segment& segment;
  CompletionWords& completions;
  std::unordered_map<CUmemoryPool, StreamPool> pools;
  // By address. An entry that is taken out is the next one that is put in, so that a program that frees what it allocates allocates
  // nothing here.
  using AllOwned = std::map<uint64_t, Owned>;
  using AllCooling = std::map<uint64_t, Cooling>;
  AllOwned owned;
  AllCooling pendingFrees;
  AllOwned::node_type spareOwned;
  AllCooling::node_type spareCooling;
  std::map<std::pair<unsigned, uint64_t>, Fences> fencesByStream;  // entries stay where they are
  std::array<CUmemoryPool, PoolPlace::count> current{};  // by the number of a place
  std::atomic<size_t> pendingFreeCount{0};
  uint64_t created = 0;
};

}  // namespace vgpu::client
