#include "intercept/session/graph/graph-memory.h"

#include <algorithm>

#include "intercept/session/thread.h"
#include "intercept/session/wait.h"
#include "vgpu/base/ranges.h"

namespace vgpu::client {

// In a forked child there is no session to return the memory to.
GraphMemory::~GraphMemory() {
  {
    std::lock_guard lock(all.mutex);
    auto found = all.known.find(address);
    if (found == all.known.end() || found->second != this) return;  // its context has ended already
    all.known.erase(found);
    all.amounts[device].reserved -= bytes;
  }
  if (Session::find() == &all.session) all.session.memory.freeBehind(Thread::current(all.session), address, lastUse);
}

CUresult GraphMemories::make(Thread& thread, unsigned device, uint64_t bytes, std::shared_ptr<GraphMemory>& made) {
  uint64_t address = 0;
  if (CUresult error = session.memory.allocate(thread, device, bytes, 0, address)) return error;
  made = std::make_shared<GraphMemory>(*this, device, address, bytes);
  anyMade.store(true, std::memory_order_relaxed);
  std::lock_guard lock(mutex);
  known[address] = made.get();
  Amounts& amount = amounts[device];
  amount.reserved += bytes;
  amount.reservedHigh = std::max(amount.reservedHigh, amount.reserved);
  return CUDA_SUCCESS;
}

std::shared_ptr<GraphMemory> GraphMemories::find(uint64_t address) const {
  if (!anyMade.load(std::memory_order_relaxed)) return nullptr;
  std::lock_guard lock(mutex);
  auto found = known.find(address);
  return found == known.end() ? nullptr : found->second->weak_from_this().lock();
}

void GraphMemories::allocatedIn(GraphMemory& memory, std::shared_ptr<const Conditions> graph) {
  std::lock_guard lock(mutex);
  memory.graph = std::move(graph);
}

void GraphMemories::freedIn(GraphMemory& memory, const std::shared_ptr<const Conditions>& graph) {
  std::lock_guard lock(mutex);
  memory.isOwn = memory.isOwn || memory.graph == graph;
}

const GraphMemory* GraphMemories::around(uint64_t address) const {
  auto found = holding(known, address, [](const GraphMemory* memory) { return memory->bytes; });
  return found == known.end() ? nullptr : found->second;
}

std::shared_ptr<const Conditions> GraphMemories::ownerOf(uint64_t address) const {
  std::lock_guard lock(mutex);
  auto* memory = around(address);
  return memory != nullptr && memory->isOwn ? memory->graph : nullptr;
}

bool GraphMemories::isOfNode(uint64_t address) const {
  std::lock_guard lock(mutex);
  return around(address) != nullptr;
}

bool GraphMemories::isThere(const GraphMemory& memory) const {
  std::lock_guard lock(mutex);
  auto found = known.find(memory.address);
  return found != known.end() && found->second == &memory;
}

void GraphMemories::used(GraphMemory& memory, const StreamFence& fence) {
  std::lock_guard lock(mutex);
  memory.lastUse = fence;
}

bool GraphMemories::isAllocated(const GraphMemory& memory) const {
  std::lock_guard lock(mutex);
  return allocated.contains(memory.address);
}

void GraphMemories::allocate(const std::shared_ptr<GraphMemory>& memory) {
  std::lock_guard lock(mutex);
  if (!allocated.emplace(memory->address, memory).second) return;
  Amounts& amount = amounts[memory->device];
  amount.used += memory->bytes;
  amount.usedHigh = std::max(amount.usedHigh, amount.used);
}

bool GraphMemories::free(uint64_t address) {
  std::shared_ptr<GraphMemory> last;  // may be the last reference: destroyed after the lock is released
  std::lock_guard lock(mutex);
  auto found = allocated.find(address);
  if (found == allocated.end()) return false;
  last = std::move(found->second);
  allocated.erase(found);
  amounts[last->device].used -= last->bytes;
  return true;
}

CUresult GraphMemories::freeOrdered(Thread& thread, GraphMemory& memory, uint64_t stream) {
  StreamFence fence;
  if (!isAllocated(memory)) return CUDA_ERROR_INVALID_VALUE;
  if (CUresult error = fenceStream(thread, stream, fence)) return error;
  used(memory, fence);
  return free(memory.address) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

void GraphMemories::endDevice(unsigned device) {
  std::map<uint64_t, std::shared_ptr<GraphMemory>> ended;  // destroyed after the lock is released
  std::lock_guard lock(mutex);
  auto isOfDevice = [&](auto& one) { return one.second->device == device; };
  std::erase_if(known, isOfDevice);
  std::ranges::copy_if(allocated, std::inserter(ended, ended.end()), isOfDevice);
  std::erase_if(allocated, isOfDevice);
  amounts[device].used = amounts[device].reserved = 0;
}

MemoryAttribute GraphMemories::Amounts::attribute(CUgraphMem_attribute which) {
  switch (which) {
    case CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT: return {.bytes = &used};
    case CU_GRAPH_MEM_ATTR_USED_MEM_HIGH: return {.bytes = &usedHigh, .current = &used};
    case CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT: return {.bytes = &reserved};
    case CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH: return {.bytes = &reservedHigh, .current = &reserved};
    default: return {};
  }
}

}  // namespace vgpu::client
