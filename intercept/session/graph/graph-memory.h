// Memory of allocation nodes. Its address is valid from the creation of the node. The session keeps the memory while a graph or an
// executable graph has the node, or a launch has allocated it and nothing has freed it. CUDA shares physical memory between graphs; here
// each allocation has its own, so the amount that a driver calls reserved is that of all nodes. Ending the memory does not wait: it is
// freed when the GPU has passed its last use (Memory::freeBehind).
//
// If the graph with the allocation node also frees the memory, the memory is that graph's own: no fill or copy of another graph may name it
// (owned-memory.h). A graph is identified here by its Conditions object, which it shares with its conditional nodes' bodies.
//
// Any thread; `mutex` is a leaf lock, not held while memory is freed. Stays in the program over a suspend; the bytes are saved like those
// of any allocation.
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
  std::atomic<bool> isInstantiated{false};  // by an existing executable graph; at most one may have it

 private:
  friend class GraphMemories;
  // Under the mutex of GraphMemories.
  StreamFence lastUse;
  std::shared_ptr<const Conditions> graph;  // the graph that has the allocation node
  bool isOwn = false;                       // that graph also has the node that frees it
};

class GraphMemories {
 public:
  explicit GraphMemories(Session& session) : session(session) {}

  // CUDA's result.
  CUresult make(Thread& thread, unsigned device, uint64_t bytes, std::shared_ptr<GraphMemory>& made);
  // nullptr if no such memory starts at the address.
  std::shared_ptr<GraphMemory> find(uint64_t address) const;

  // A graph gets the node that allocates the memory, or a node that frees it. Memory nodes are never removed.
  void allocatedIn(GraphMemory& memory, std::shared_ptr<const Conditions> graph);
  void freedIn(GraphMemory& memory, const std::shared_ptr<const Conditions>& graph);
  // The graph whose own the memory at that address is; nullptr if it is no graph's own.
  std::shared_ptr<const Conditions> ownerOf(uint64_t address) const;
  // Whether the address is in memory of an allocation node.
  bool isOfNode(uint64_t address) const;

  // False once the context of its device has ended.
  bool isThere(const GraphMemory& memory) const;
  // Records the fence after the last launch that allocates or frees it.
  void used(GraphMemory& memory, const StreamFence& fence);

  // Whether a launch has allocated it and nothing has freed it.
  bool isAllocated(const GraphMemory& memory) const;
  void allocate(const std::shared_ptr<GraphMemory>& memory);
  // False if it is not allocated.
  bool free(uint64_t address);
  // For cudaFreeAsync.
  CUresult freeOrdered(Thread& thread, GraphMemory& memory, uint64_t stream);
  // The context of `device` ends, and with it all its graph memory: the nodes' addresses become invalid.
  void endDevice(unsigned device);

  // Runs `body` with an attribute of a device's graph memory.
  template <typename Body>
  CUresult onAttribute(unsigned device, CUgraphMem_attribute which, Body&& body) {
    std::lock_guard lock(mutex);
    return body(amounts[device].attribute(which));
  }

 private:
  friend class GraphMemory;
  // The memory that contains the address; nullptr if none. Under the mutex.
  const GraphMemory* around(uint64_t address) const;
  struct Amounts {
    uint64_t used = 0, usedHigh = 0, reserved = 0, reservedHigh = 0;
    MemoryAttribute attribute(CUgraphMem_attribute which);
  };

  Session& session;
  std::atomic<bool> anyMade{false};  // whether there has ever been any
  mutable std::mutex mutex;
  std::map<uint64_t, GraphMemory*> known;                      // by address
  std::map<uint64_t, std::shared_ptr<GraphMemory>> allocated;  // allocated by a launch and not freed
  std::array<Amounts, maxDevices> amounts;
};

}  // namespace vgpu::client
