// What the program has said about pieces of managed memory: advice, and where it has last prefetched them to. CUDA lets a program
// ask what it has said; of memory whose preferred location is the host a touch brings more at once.
//
// Any thread; the mutex is a leaf. Stays in the program's process over a suspend.
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
  CUmemLocation preferred{}, prefetched{};  // of type CU_MEM_LOCATION_TYPE_INVALID: nowhere
  uint32_t devices = 0;                     // that access it, a bit each
  bool byHost = false;                      // so does the host

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
  // Of [address, address + bytes), `change` the advice, piece by piece.
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
  // Forgets what was said of an allocation. Pieces of which nothing is said become one, so none is left of what is forgotten.
  void forget(uint64_t address, uint64_t bytes) {
    std::lock_guard lock(mutex);
    auto behind = cutAt(address + bytes);
    behind = pieces.erase(cutAt(address), behind);
    if (behind->second.saysNothing()) behind = pieces.erase(behind);
    if (behind != pieces.begin() && !std::prev(behind)->second.saysNothing()) pieces.emplace_hint(behind, address, Advice{});
  }
  // From how many addresses on something else is said than before.
  size_t changes() {
    std::lock_guard lock(mutex);
    return pieces.size();
  }

 private:
  // From each address up to the next one. Nothing is said before the first.
  using Pieces = std::map<uint64_t, Advice>;
  Pieces::iterator cutAt(uint64_t address) {
    auto next = pieces.lower_bound(address);
    if (next != pieces.end() && next->first == address) return next;
    return pieces.emplace_hint(next, address, next == pieces.begin() ? Advice{} : std::prev(next)->second);
  }

  std::mutex mutex;
  Pieces pieces;
  std::atomic<bool> anyPreferred{false};  // of the host, so far
};

}  // namespace vgpu::client
