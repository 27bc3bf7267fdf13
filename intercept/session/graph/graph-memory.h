// Memory of allocation nodes. Its address holds from the making of the node; it is the session's as long as a graph or an
// executable graph has the node, or a launch has allocated it and nothing has freed it. CUDA shares physical memory between
// graphs; here each allocation has its own for that time, so what a driver calls reserved is what nodes have. What ends it waits
// for nothing: the memory is free when the GPU has passed its last use (Memory::freeBehind).
//
// Memory that the graph with the allocation node frees too is that graph's own: no fill or copy of another graph names it
// (owned-memory.h). A graph is known here by its conditions, which the bodies of its conditional nodes have too.
//
// Any thread; `mutex` is a leaf, not held while memory is freed. All of it stays in the program over a suspend, the bytes are an
// allocation's like any other.
#pragma once

#include <cuda.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>

#include "intercept/session/event-record.h"
#include "intercept/session/memory/memory-attribute.h"
#include "vgpu/wire/segment.h"

namespace vgpu::client {

class Conditions;
class Session;
class Thread;
class GraphMemories;

class GraphMemory : public std::enable_shared_from_this<GraphMemory> {
 public:
  GraphMemory(GraphMemories& all, unsigned device, uint64_t address, uint64_t bytes)
      : all(all), device(device), address(address), bytes(bytes) {}
  ~GraphMemory();
  GraphMemory(const GraphMemory&) = delete;
  GraphMemory& operator=(const GraphMemory&) = delete;

  GraphMemories& all;
  const unsigned device;
  const uint64_t address, bytes;
  std::atomic<bool> isInstantiated{false};  // by an executable graph that lives: there may be one

 private:
  friend class GraphMemories;
  // Under the mutex of all.
  StreamFence lastUse;
  std::shared_ptr<const Conditions> graph;  // that has the allocation node
  bool isOwn = false;                       // of that graph, which also has the node that frees it
};

class GraphMemories {
 public:
  explicit GraphMemories(Session& session) : session(session) {}

  // CUDA's result.
  CUresult make(Thread& thread, unsigned device, uint64_t bytes, std::shared_ptr<GraphMemory>& made);
  // nullptr if the address is not the beginning of such memory.
  std::shared_ptr<GraphMemory> find(uint64_t address) const;

  // A graph gets the node that allocates the memory, or one that frees it. Memory nodes are never removed.
  void allocatedIn(GraphMemory& memory, std::shared_ptr<const Conditions> graph);
  void freedIn(GraphMemory& memory, const std::shared_ptr<const Conditions>& graph);
  // Whose own the memory at that address is; nullptr if it is no graph's.
  std::shared_ptr<const Conditions> ownerOf(uint64_t address) const;
  // Whether memory of an allocation node is there.
  bool isOfNode(uint64_t address) const;

  // False once the context of its device has ended.
  bool isThere(const GraphMemory& memory) const;
  // A launch that allocates or frees it is before this fence.
  void used(GraphMemory& memory, const StreamFence& fence);

  // Whether a launch has allocated it and nothing has freed it.
  bool isAllocated(const GraphMemory& memory) const;
  void allocate(const std::shared_ptr<GraphMemory>& memory);
  // False if it is not allocated.
  bool free(uint64_t address);
  // As cudaFreeAsync.
  CUresult freeOrdered(Thread& thread, GraphMemory& memory, uint64_t stream);
  // The context of `device` ends, with all memory of graphs: their nodes keep addresses that mean nothing.
  void endDevice(unsigned device);

  // Runs `body` with an attribute of a device's.
  template <typename Body>
  CUresult onAttribute(unsigned device, CUgraphMem_attribute which, Body&& body) {
    std::lock_guard lock(mutex);
    return body(amounts[device].attribute(which));
  }

 private:
  friend class GraphMemory;
  // Under the mutex. nullptr if no such memory is there.
  const GraphMemory* around(uint64_t address) const;
  struct Amounts {
    uint64_t used = 0, usedHigh = 0, reserved = 0, reservedHigh = 0;
    MemoryAttribute attribute(CUgraphMem_attribute which);
  };

  Session& session;
  std::atomic<bool> anyMade{false};  // ever
  mutable std::mutex mutex;
  std::map<uint64_t, GraphMemory*> known;                      // by address
  std::map<uint64_t, std::shared_ptr<GraphMemory>> allocated;  // those that are
  std::array<Amounts, maxDevices> amounts;
};

}  // namespace vgpu::client
