// Two events and the elapsed time between them, which must not change after they were recorded.
#pragma once

#include <optional>

#include "memory.h"

namespace history {

class Events : public Object {
 public:
  Events(World& world, int device) : world(world), device(device) {
    world.enter(world.pickSlot(device));
    for (auto& event : events) CHECK(cudaEventCreate(&event));
    record();
  }
  ~Events() override {
    for (auto& event : events) CHECK(cudaEventDestroy(event));
  }
  void act() override {
    switch (world.pick(3)) {
      case 0: return record();
      case 1: CHECK(cudaStreamWaitEvent(world.enter(world.pickSlot(device)), events[1], 0)); return;
      default: ask();
    }
  }
  bool isRight(Digest&) override {
    ask();
    return ok;
  }

 private:
  void record() {
    cudaStream_t stream = world.enter(world.pickSlot(device));
    for (auto& event : events) CHECK(cudaEventRecord(event, stream));
    known.reset();
  }
  void ask() {
    float milliseconds = -1;
    CHECK(cudaEventSynchronize(events[1]));
    CHECK(cudaEventElapsedTime(&milliseconds, events[0], events[1]));
    ok &= EXPECT(milliseconds >= 0) & EXPECT(!known || *known == milliseconds);
    known = milliseconds;
  }

  World& world;
  const int device;
  cudaEvent_t events[2];
  std::optional<float> known;
  bool ok = true;
};

inline std::shared_ptr<Object> makeEvents(World& world) { return std::make_shared<Events>(world, world.pickDevice()); }

}  // namespace history
