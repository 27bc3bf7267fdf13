// The program's advice for pieces of managed memory, and where it last prefetched them. CUDA lets a program query both. An access to memory
// whose preferred location is the host moves more pages at a time.
//
// Any thread; the mutex is a leaf lock. Stays in the program's process over a suspend.
#pragma once

#include <cuda.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <mutex>
#include <optional>

namespace vgpu::client {

struct Advice {
  bool isReadMostly = false;
  CUmemLocation preferred{}, prefetched{};  // type CU_MEM_LOCATION_TYPE_INVALID: none
  uint32_t devices = 0;                     // "accessed by" advice, one bit for each device
  bool byHost = false;                      // the same for the host

  bool saysNothing() const {
    return !isReadMostly && preferred.type == CU_MEM_LOCATION_TYPE_INVALID && prefetched.type == CU_MEM_LOCATION_TYPE_INVALID &&
           devices == 0 && !byHost;
  }
};

inline bool isHost(const CUmemLocation& location) {
  return location.type == CU_MEM_LOCATION_TYPE_HOST || location.type == CU_MEM_LOCATION_TYPE_HOST_NUMA ||
         location.type == CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT;
}

class ManagedAdvice {
 public:
  // Calls `change` with the advice of each piece of [address, address + bytes), which it may modify.
  template <typename Change>
  void change(uint64_t address, uint64_t bytes, Change&& change) {
    std::lock_guard lock(mutex);
    auto last = cutAt(address + bytes);
    for (auto piece = cutAt(address); piece != last; ++piece) {
      change(piece->second);
      if (isHost(piece->second.preferred)) anyPreferred.store(true, std::memory_order_relaxed);
    }
  }
  // Calls `visit` with the advice of each piece of [address, address + bytes).
  template <typename Visit>
  void visit(uint64_t address, uint64_t bytes, Visit&& visit) {
    change(address, bytes, [&](Advice& advice) { visit(static_cast<const Advice&>(advice)); });
  }
  bool prefersHost(uint64_t address) {
    if (!anyPreferred.load(std::memory_order_relaxed)) return false;
    std::lock_guard lock(mutex);
    auto next = pieces.upper_bound(address);
    return next != pieces.begin() && isHost(std::prev(next)->second.preferred);
  }
  // Forgets the advice for an allocation. Adjacent pieces without advice are joined, so no piece of it is left.
  void forget(uint64_t address, uint64_t bytes) {
    std::lock_guard lock(mutex);
    auto behind = cutAt(address + bytes);
    behind = pieces.erase(cutAt(address), behind);
    if (behind->second.saysNothing()) behind = pieces.erase(behind);
    if (behind != pieces.begin() && !std::prev(behind)->second.saysNothing()) pieces.emplace_hint(behind, address, Advice{});
  }
  // The number of pieces.
  size_t changes() {
    std::lock_guard lock(mutex);
    return pieces.size();
  }

 private:
  // The advice from each address up to the next one. Before the first address there is none.
  using Pieces = std::map<uint64_t, Advice>;
  Pieces::iterator cutAt(uint64_t address) {
    auto next = pieces.lower_bound(address);
    if (next != pieces.end() && next->first == address) return next;
    return pieces.emplace_hint(next, address, next == pieces.begin() ? Advice{} : std::prev(next)->second);
  }

  std::mutex mutex;
  Pieces pieces;
  std::atomic<bool> anyPreferred{false};  // whether the host has ever been preferred
};

}  // namespace vgpu::client
