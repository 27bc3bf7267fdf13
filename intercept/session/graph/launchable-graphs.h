// Executable graphs that kernels can launch. A kernel knows such a graph by an address of the driver's, so the program's handle is that
// address; this maps it to the session's own handle.
//
// Any thread; `mutex` is a leaf lock. Stays in the program over a suspend, after which the addresses are the same (docs/graphs.md).
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <unordered_map>

namespace vgpu::client {

class LaunchableGraphs {
 public:
  // The session's handle for a program's handle, which may already be the session's.
  uint64_t resolve(uint64_t handle) const {
    if (count.load(std::memory_order_relaxed) == 0) return handle;  // relaxed: programs order their threads
    std::lock_guard lock(mutex);
    auto found = handles.find(handle);
    return found == handles.end() ? handle : found->second;
  }
  void add(uint64_t address, uint64_t handle) {
    std::lock_guard lock(mutex);
    handles[address] = handle;
    count.store(handles.size(), std::memory_order_relaxed);
  }
  void remove(uint64_t address) {
    if (address == 0) return;
    std::lock_guard lock(mutex);
    handles.erase(address);
    count.store(handles.size(), std::memory_order_relaxed);
  }

 private:
  mutable std::mutex mutex;
  std::unordered_map<uint64_t, uint64_t> handles;  // by address
  std::atomic<size_t> count{0};
};

}  // namespace vgpu::client
