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
#include "intercept/session/event-record.h"
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

  struct Block;
  // Of a stream into which memory is freed: its completion word, the last of its fences, and what waits for them.
  struct Fences {
    Fences(unsigned device, uint64_t stream, uint32_t completion) : device(device), stream(stream), completion(completion) {}
    const unsigned device;
    const uint64_t stream;  // a resolved handle
    const uint32_t completion;
    std::atomic<uint64_t> lastSequence{0};
    std::array<Block*, 65> freed{};  // lists by std::bit_width of their bytes; the last one first
  };

  // An allocation of a pool, or memory that has been freed in a stream and waits for it: that stays allocated in the arena, and an
  // object of the session, until it is collected or reused. It is one entry all the while: freeing and reusing it move nothing.
  struct Block {
    uint64_t address = 0;
    uint64_t bytes = 0;  // of the arena; once freed, 0: cannot be reused as it is
    uint64_t asked = 0;  // by the program
    uint64_t held = 0;   // of the arena, whatever may be done with them
    uint64_t number = 0;  // as Arena::numberOf(), of the allocation that it is now
    PoolSource source{};
    CUmemoryPool handle = nullptr;  // of its pool, also once it has been freed; null: it came from none
    StreamPool* pool = nullptr;     // of `pools`, which has it until it has nothing in use
    Fences* fences = nullptr;       // of the stream in which it was freed; null: it lives
    // Of the fence behind its free: `unsent` until that has been sent, which no lock is needed for. Until then the memory is nobody's.
    static constexpr uint64_t unsent = UINT64_MAX;
    std::atomic<uint64_t> sequence{0};
    Block *before = nullptr, *behind = nullptr;  // of those fences

    bool isFreed() const { return fences != nullptr; }
    // Memory order: whoever takes the memory sees what the freeing thread has done before.
    void isFenced(uint64_t by) {
      raise(fences->lastSequence, by);
      sequence.store(by, std::memory_order_release);
    }
  };
  // nullptr if it came from no pool and has not been freed in a stream.
  Block* find(uint64_t address);
  void allocated(uint64_t address, uint64_t bytes, uint64_t asked, CUmemoryPool pool, const PoolSource& source);
  // Ends one that lives; what was freed in a stream is dropped, below.
  void freed(uint64_t address);
  // 0 if the allocation came from none.
  CUmemoryPool poolOf(uint64_t address) const;
  // Whether a device, or any, has access to the pool of an allocation.
  bool hasAccess(uint64_t address, std::optional<unsigned> device) const;

  // The fences of a stream; nullptr if no completion word is left. Those of destroyed streams are given back when there is another
  // stream.
  Fences* fencesOf(unsigned device, uint64_t stream, const HandleTable& handles);
  // It has been freed in the stream of `fences`; where it came from no pool, `ofPool` is null and it has that source.
  Block& cool(uint64_t address, uint64_t bytes, Block* ofPool, const PoolSource& source, bool mayBeReused, Fences& fences);
  bool isPendingFree(uint64_t address) {
    const Block* found = find(address);
    return found != nullptr && found->isFreed();
  }
  // Of memory of that pool.
  bool hasPendingFree(CUmemoryPool pool) const;
  // How much was freed in streams, of that kind and device, and has been neither collected nor reused.
  uint64_t freedBytes(const PoolSource& source) const { return freedByKind[static_cast<size_t>(source.kind)][source.device]; }
  // And the fences behind it that have been sent.
  std::vector<StreamFence> pendingFrees(const PoolSource& source) const;
  // Without the mutex: whether there is anything to collect.
  bool hasAny() const { return pendingFreeCount.load(std::memory_order_relaxed) != 0; }
  // The smallest that was freed in that very stream and holds `bytes` without much waste; of managed and host memory, one of that
  // size. nullptr if there is none.
  Block* findFreed(const PoolSource& source, unsigned streamDevice, uint64_t stream, uint64_t bytes);
  // The same of any stream: it is another one's only behind its fence.
  Block* findFreed(const PoolSource& source, uint64_t bytes);
  static StreamFence fenceOf(const Block& block) {
    return {block.fences->device, {block.sequence.load(std::memory_order_relaxed), block.fences->completion}};
  }
  // That one is an allocation again.
  void reuse(Block& block, uint64_t asked, CUmemoryPool handle, StreamPool& pool);
  // The ranges of `device` whose streams have passed their frees; if `all`, as its contexts have ended, all of them and all that
  // was freed in its streams. The caller must free them, then drop them.
  std::vector<uint64_t> takePast(unsigned device, bool all);
  void drop(uint64_t address);

 private:
  using Blocks = std::unordered_map<uint64_t, Block>;
  bool isPast(const Block& block) const;
  // Of what has been freed.
  template <typename Visit>
  void visitFreed(Visit&& visit) const;
  void link(Block& block, Fences& fences);
  uint64_t& freedLike(const Block& block) { return freedByKind[static_cast<size_t>(block.source.kind)][block.source.device]; }
  void unlink(Block& block);
  const Block* findLive(uint64_t address) const;
  Block& blockAt(uint64_t address);
  void leavePool(Block& block);
  // Gives back the completion words of destroyed streams.
  void dropFences(const HandleTable& handles);
  Fences* findFences(unsigned device, uint64_t stream);

  const Segment& segment;
  CompletionWords& completions;
  std::unordered_map<CUmemoryPool, StreamPool> pools;
  // By address. An entry that is taken out is the next one that is put in, so that a program that frees what it allocates allocates
  // nothing here.
  Blocks blocks;
  Blocks::node_type spare;
  std::map<std::pair<unsigned, uint64_t>, Fences> fencesByStream;  // entries stay where they are
  Fences* latest = nullptr;                                        // that was found; most programs have one such stream
  std::array<CUmemoryPool, PoolPlace::count> current{};  // by the number of a place
  std::atomic<size_t> pendingFreeCount{0};
  std::array<std::array<uint64_t, maxDevices>, 3> freedByKind{};  // freedBytes(), by kind and device
  uint64_t created = 0;
};

}  // namespace vgpu::client
