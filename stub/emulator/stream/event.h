// Events: a point in a stream's order, with the time at which the stream passed it.
#pragma once

#include <chrono>
#include <mutex>

#include "stub/emulator/stream/shared-records.h"
#include "stub/emulator/stream/stream.h"

namespace vgpu::emulator::api {

// One record of an event. A new record replaces it; a wait for the old one keeps the old one alive.
struct EventRecording {
  TaskRef task;
  std::chrono::steady_clock::time_point passed;  // written by the task, read after it is done
};

struct Event {
  Event(Context& owner, unsigned flags, std::shared_ptr<SharedRecords> shared = nullptr)
      : context(owner), flags(flags), shared(std::move(shared)) {}
  Context& context;
  const unsigned flags;
  const std::shared_ptr<SharedRecords> shared;  // null: the event is not shared between processes
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
  // Refuses, and invalidates the capture, if the event's latest record was captured.
  void refuseCaptured();
  std::mutex mutex;
  std::shared_ptr<Recording> current;  // null: never recorded
  std::weak_ptr<Capture> capture;      // the capture that recorded it last, after these nodes
  std::vector<GraphNode*> captureNodes;
};

// The work that records the event, and the work that waits for it. For an event that processes share, recordAction() takes the record's
// number at once, and awaitAction() waits for the latest record.
Action recordAction(const Event& event, std::shared_ptr<Event::Recording> recording);
Action awaitAction(const Event& event);

}  // namespace vgpu::emulator::api
