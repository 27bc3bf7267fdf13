// Memory of allocation nodes. Its address holds from the making of the node; it is the session's as long as a graph or an executable
// graph has the node, or a launch has allocated it and nothing has freed it. CUDA shares physical memory between graphs; here each
// allocation has its own for that time, so what a driver calls reserved is what nodes have.
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

#include "vgpu/wire/segment.h"

namespace vgpu::client {

class Session;
class Thread;
class GraphMemories;

class GraphMemory {
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
};

class GraphMemories {
 public:
  explicit GraphMemories(Session& session) : session(session) {}

  // CUDA's result.
  CUresult make(Thread& thread, unsigned device, uint64_t bytes, std::shared_ptr<GraphMemory>& made);
  // nullptr if the address is not the beginning of such memory.
  std::shared_ptr<GraphMemory> find(uint64_t address) const;

  // Whether a launch has allocated it and nothing has freed it.
  bool isAllocated(const GraphMemory& memory) const;
  void allocate(const std::shared_ptr<GraphMemory>& memory);
  // False if it is not allocated.
  bool free(uint64_t address);

  // As cuDeviceGetGraphMemAttribute and cuDeviceSetGraphMemAttribute.
  CUresult get(unsigned device, CUgraphMem_attribute attribute, uint64_t& value) const;
  CUresult reset(unsigned device, CUgraphMem_attribute attribute);

 private:
  friend class GraphMemory;
  struct Amounts {
    uint64_t used = 0, usedHigh = 0, reserved = 0, reservedHigh = 0;
  };

  Session& session;
  mutable std::mutex mutex;
  std::map<uint64_t, std::weak_ptr<GraphMemory>> known;       // by address
  std::map<uint64_t, std::shared_ptr<GraphMemory>> allocated;  // those that are
  std::array<Amounts, maxDevices> amounts;
};

}  // namespace vgpu::client
