// Stream-ordered memory (cudaMallocAsync): pools as the program sees them, and memory that has been freed but may still be in use.
//
// An allocation is one of an arena like any other (memory.h): of the pool's device, of the stream device's managed memory, or of pinned
// memory. Its free differs: after a free in a stream, an allocation in that same stream can reuse the memory at once, because its work runs
// later anyway; others can once the GPU has executed the stream up to the free. To know that, a fence follows each free: the GPU writes its
// sequence number into a completion word of the stream.
//
// Any thread, under Memory's mutex. All state is in the program's process and survives a suspend; fences are either in the segment or
// pending frames in the ring.
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

// The arena from which a pool's memory comes.
struct PoolSource {
  enum class Kind { device, managed, host } kind;
  unsigned device;  // whose memory it is, or in whose ring its frames are
  bool operator==(const PoolSource&) const = default;
};

struct StreamPool {
  explicit StreamPool(const PoolPlace& place, bool isDefault = false);

  PoolPlace place;
  bool isDefault = false, destroyed = false;
  bool isShareable = false;           // its allocations can be given to other sessions
  bool isTaken = false;               // another session's pool: nothing is allocated from it or trimmed
  std::optional<SharedName> name;     // if shareable or taken: once it is known
  std::array<int, 3> reuse{1, 1, 1};  // follow events, opportunistic, internal dependencies
  uint64_t mostBytes = 0;             // 0: no limit
  uint64_t releaseThreshold = 0;
  // The access of each device, and last of the host.
  std::array<CUmemAccess_flags, maxDevices + 1> access{};
  uint64_t used = 0, usedHigh = 0, reserved = 0, reservedHigh = 0;

  // The source of an allocation in a stream of that device.
  PoolSource sourceFor(unsigned streamDevice) const;
  // The index in `access` for a location; nothing if the location is invalid.
  static std::optional<unsigned> accessor(const CUmemLocation& location, size_t devices);
  // CUDA's error if the location cannot have that access.
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
  // Ends allocations from it; the pool is removed with its last allocation.
  void destroy(CUmemoryPool pool);
  // By a place's number (PoolPlace::number).
  CUmemoryPool defaultOf(unsigned place) const;
  CUmemoryPool currentOf(unsigned place) const { return current[place]; }
  // CUDA_ERROR_INVALID_VALUE if the pool's memory is not at that place; with `ofAnyType`, not at its location.
  CUresult setCurrent(PoolPlace place, CUmemoryPool pool, bool ofAnyType = false);
  // The parameters of the node of a captured allocation from `pool` (null: the current pool of `device`): the memory is the graph's, with
  // the pool's properties. CUDA's error if the pool could not allocate it.
  CUresult describe(CUmemoryPool pool, unsigned device, uint64_t bytes, CUDA_MEM_ALLOC_NODE_PARAMS& params);

  struct Block;
  // Per stream into which memory is freed: its completion word, its last fence, and the freed blocks that wait for fences.
  struct Fences {
    Fences(unsigned device, uint64_t stream, uint32_t completion) : device(device), stream(stream), completion(completion) {}
    const unsigned device;
    const uint64_t stream;  // a resolved handle
    const uint32_t completion;
    std::atomic<uint64_t> lastSequence{0};
    std::array<Block*, 65> freed{};  // lists by std::bit_width of their sizes, latest first
  };

  // An allocation from a pool, or memory freed in a stream. Freed memory stays allocated in the arena, and an object of the session, until
  // it is collected or reused. Both are the same entry: freeing and reusing move nothing.
  struct Block {
    uint64_t address = 0;
    uint64_t bytes = 0;  // in the arena; 0 once freed if it cannot be reused by another allocation
    uint64_t asked = 0;  // requested by the program
    uint64_t held = 0;   // in the arena, once freed
    uint64_t number = 0;  // as Arena::numberOf(), of the present allocation
    PoolSource source{};
    CUmemoryPool handle = nullptr;  // its pool's, even after a free; null: it came from none
    StreamPool* pool = nullptr;     // in `pools`; the pool exists while it has allocations
    Fences* fences = nullptr;       // of the stream in which it was freed; null: it is allocated
    // The sequence of the fence after its free; `unsent` until the fence is sent, without a lock: until then nobody can reuse the memory.
    static constexpr uint64_t unsent = UINT64_MAX;
    std::atomic<uint64_t> sequence{0};
    Block *before = nullptr, *behind = nullptr;  // in the list of those fences

    bool isFreed() const { return fences != nullptr; }
    // Release: a thread that reuses the memory (acquire) sees what the freeing thread did before.
    void isFenced(uint64_t by) {
      raise(fences->lastSequence, by);
      sequence.store(by, std::memory_order_release);
    }
  };
  // nullptr if the allocation came from no pool and has not been freed in a stream.
  Block* find(uint64_t address);
  void allocated(uint64_t address, uint64_t bytes, uint64_t asked, CUmemoryPool pool, const PoolSource& source);
  // Ends an allocated block; for a block freed in a stream use drop().
  void freed(uint64_t address);
  // The pool of an allocation; 0 if it came from none.
  CUmemoryPool poolOf(uint64_t address) const;
  // Whether `device`, or any device, has access to the pool of an allocation.
  bool hasAccess(uint64_t address, std::optional<unsigned> device) const;

  // The fences of a stream; nullptr if no completion word is left. A new stream's request first gives back those of destroyed streams.
  Fences* fencesOf(unsigned device, uint64_t stream, const HandleTable& handles);
  // Marks memory as freed in the stream of `fences`. `ofPool` is null for memory that came from no pool, whose source is `source`.
  Block& cool(uint64_t address, uint64_t bytes, Block* ofPool, const PoolSource& source, bool mayBeReused, Fences& fences);
  bool isPendingFree(uint64_t address) {
    const Block* found = find(address);
    return found != nullptr && found->isFreed();
  }
  // Whether the pool has pending frees.
  bool hasPendingFree(CUmemoryPool pool) const;
  // Bytes freed in streams, from that source, and neither collected nor reused yet.
  uint64_t freedBytes(const PoolSource& source) const { return freedByKind[static_cast<size_t>(source.kind)][source.device]; }
  // The fences of those frees that have been sent.
  std::vector<StreamFence> pendingFrees(const PoolSource& source) const;
  // Whether there is anything to collect; callable without the mutex.
  bool hasAny() const { return pendingFreeCount.load(std::memory_order_relaxed) != 0; }
  // The smallest block freed in that very stream that holds `bytes` without much waste; managed and host memory must have exactly that
  // size. nullptr if there is none.
  Block* findFreed(const PoolSource& source, unsigned streamDevice, uint64_t stream, uint64_t bytes);
  // The same in any stream: another stream may use it only after its fence.
  Block* findFreed(const PoolSource& source, uint64_t bytes);
  static StreamFence fenceOf(const Block& block) {
    return {block.fences->device, {block.sequence.load(std::memory_order_relaxed), block.fences->completion}};
  }
  // Makes a freed block an allocation again.
  void reuse(Block& block, uint64_t asked, CUmemoryPool handle, StreamPool& pool);
  // The blocks of `device` whose streams have passed their frees; with `all`, when its contexts have ended, all of its blocks and all freed
  // in its streams. The caller must free them, then drop them.
  std::vector<uint64_t> takePast(unsigned device, bool all);
  void drop(uint64_t address);

 private:
  using Blocks = std::unordered_map<uint64_t, Block>;
  bool isPast(const Block& block) const;
  // Visits the freed blocks.
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
  // By address. A removed entry's node is the spare one for the next insertion, so that a program that frees and allocates in turn causes
  // no allocation here.
  Blocks blocks;
  Blocks::node_type spare;
  std::map<std::pair<unsigned, uint64_t>, Fences> fencesByStream;  // nodes are stable
  Fences* latest = nullptr;                                        // result of the last lookup; most programs have one such stream
  std::array<CUmemoryPool, PoolPlace::count> current{};  // by a place's number
  std::atomic<size_t> pendingFreeCount{0};
  std::array<std::array<uint64_t, maxDevices>, 3> freedByKind{};  // freedBytes(), by kind and device
  uint64_t created = 0;
};

}  // namespace vgpu::client
