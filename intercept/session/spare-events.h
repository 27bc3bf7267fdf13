// Events that the program has destroyed and the worker still has, for reuse by later events with the same flags and context. So neither
// creation nor destruction needs a frame, as natively neither leaves the process (docs/design-notes.md, "An event that has ended").
//
// An event is kept only if it cannot be told from a new one: its record has completed, and no capture and no other session knows it. For
// the client the next event has no record; the worker's record of it is past. The handle is reused too, as natively the address is. In the
// object list a kept event is live, so it exists after a restore too; it ends with its context.
//
// Any thread. The mutex is a leaf lock.
#pragma once

#include <array>
#include <cstdint>
#include <mutex>
#include <vector>

namespace vgpu::client {

class Thread;

class SpareEvents {
 public:
  SpareEvents() {
    for (auto& kept : spares) kept.reserve(most);
  }

  // Takes a kept event of the thread's context and makes its handle live; 0: none, so the caller creates one.
  uint64_t take(Thread& thread, unsigned flags);
  // Ends a live event for the program and keeps it. False if it must be destroyed, or if another thread has ended it.
  bool keep(Thread& thread, uint64_t event);
  // Makes the kept events of a context, or with 0 of a device, live again, so that they are destroyed with the others.
  void revive(Thread& thread, unsigned device, uint64_t context);

 private:
  // By flags: those of events that are not shared between sessions are the two lowest bits. At most `most` are kept of each, so that a
  // program that destroys thousands at once does not leave them in its object list.
  static constexpr unsigned kinds = 4;
  static constexpr size_t most = 64;
  struct Spare {
    uint64_t event, context;
  };

  std::mutex mutex;
  std::array<std::vector<Spare>, kinds> spares;  // by flags; the last is taken first
};

}  // namespace vgpu::client
