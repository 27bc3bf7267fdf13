// What the client keeps of green contexts beside their objects (kinds/green-context.h): the contexts and streams that ended with
// theirs, which CUDA answers for in its own way, and what each device has.
//
// A green context has a CUcontext too, which the program can make current: objects made in it belong to the device's primary
// context, streams to itself. The worker knows neither: it makes the streams in the driver's green context.
//
// Any thread; `mutex` is a leaf. All of it stays in the program's process over a suspend.
#pragma once

#include <array>
#include <atomic>
#include <mutex>
#include <optional>
#include <unordered_set>

#include "intercept/session/kinds/green-context.h"
#include "vgpu/wire/arena.h"

namespace vgpu::client {

class GreenContexts {
 public:
  // The context of a green context that ends, and its streams. As in the driver, the program can never free what they leave.
  void keepEnded(uint64_t handle) {
    std::lock_guard lock(mutex);
    ended.insert(handle);
  }
  bool hasEnded(uint64_t handle) const {
    std::lock_guard lock(mutex);
    return ended.contains(handle);
  }

  // Of a whole device, as the worker reported it first: the virtual GPU keeps it on whatever node it is resumed.
  std::optional<Multiprocessors> ofDevice(unsigned device) const {
    std::lock_guard lock(mutex);
    return devices[device];
  }
  void keep(unsigned device, const Multiprocessors& has) {
    std::lock_guard lock(mutex);
    devices[device] = has;
  }

  // A number for a call that splits a resource.
  uint64_t nextSplit() { return splits.fetch_add(1, std::memory_order_relaxed) + 1; }

 private:
  mutable std::mutex mutex;
  std::unordered_set<uint64_t> ended;
  std::array<std::optional<Multiprocessors>, maxDevices> devices;
  std::atomic<uint64_t> splits{0};
};

}  // namespace vgpu::client
