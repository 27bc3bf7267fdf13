// Events: a point in a stream's order, with the time at which it was passed.
#pragma once

#include <chrono>
#include <mutex>

#include "stream.h"

namespace vgpu::emulator::api {

struct Event {
  Event(Context& owner, unsigned flags) : context(owner), flags(flags) {}
  Context& context;
  const unsigned flags;
  CUevent handle = nullptr;

  // One recording. A new one replaces it; who waits for the old one keeps it.
  struct Recording {
    TaskRef task;
    std::chrono::steady_clock::time_point passed;  // written by the task, read once it is done
  };
  std::shared_ptr<Recording> recording() {
    std::lock_guard lock(mutex);
    return current;
  }
  std::mutex mutex;
  std::shared_ptr<Recording> current;  // null: never recorded
};

}  // namespace vgpu::emulator::api
