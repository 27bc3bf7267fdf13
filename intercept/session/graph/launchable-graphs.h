// Executable graphs that kernels launch. A kernel knows one by an address of the driver's, which is therefore the handle that the
// program has; the session's own handle belongs to it.
//
// Any thread; `mutex` is a leaf. All of it stays in the program over a suspend, after which the addresses are the same (docs/graphs.md).
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <unordered_map>

namespace vgpu::client {

class LaunchableGraphs {
 public:
  // The session's handle of a program's, which may be that already.
  uint64_t resolve(uint64_t handle) const {
    if (count.load(std::memory_order_relaxed) == 0) return handle;  // a program has told its other threads of one by itself
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
