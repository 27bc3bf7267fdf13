// Events: a point in a stream's order, with the time at which it was passed.
#pragma once

#include <chrono>
#include <mutex>

#include "stub/emulator/stream/shared-records.h"
#include "stub/emulator/stream/stream.h"

namespace vgpu::emulator::api {

// One recording of an event. A new one replaces it; who waits for the old one keeps it.
struct EventRecording {
  TaskRef task;
  std::chrono::steady_clock::time_point passed;  // written by the task, read once it is done
};

struct Event {
  Event(Context& owner, unsigned flags, std::shared_ptr<SharedRecords> shared = nullptr)
      : context(owner), flags(flags), shared(std::move(shared)) {}
  Context& context;
  const unsigned flags;
  const std::shared_ptr<SharedRecords> shared;  // null: of an event that no other process has
  CUevent handle = nullptr;

  using Recording = EventRecording;
  std::shared_ptr<Recording> recording() {
    std::lock_guard lock(mutex);
    return current;
  }
  void replace(std::shared_ptr<Recording> recording, TaskRef task) {
    recording->task = std::move(task);
    std::lock_guard lock(mutex);
    current = std::move(recording);
    capture.reset();
    captureNodes.clear();
  }
  // Refuses where it was recorded in a capture last, and spoils that capture.
  void refuseCaptured();
  std::mutex mutex;
  std::shared_ptr<Recording> current;  // null: never recorded
  std::weak_ptr<Capture> capture;      // in which it was recorded last, behind these nodes
  std::vector<GraphNode*> captureNodes;
};

// What a stream does to record the event, whose record's number is taken now, if it is one that processes share; and to wait for
// the latest record of such an event.
Action recordAction(const Event& event, std::shared_ptr<Event::Recording> recording);
Action awaitAction(const Event& event);

}  // namespace vgpu::emulator::api
