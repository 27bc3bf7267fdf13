// Events that the program has ended and the worker still has, for the next ones that the program makes with the same flags in the same
// context. So neither is a frame, as natively neither leaves the process (docs/design-notes.md, "An event that has ended").
//
// Only an event that nothing can tell from a new one is kept: its record has happened, and no capture and no other session knows it.
// For the client the next event has no record; what the worker has as its record is past. The handle is the same, as natively the
// address is. The object list has a kept event as one that lives, so it is there after a restore too; it ends with its context.
//
// Any thread. The mutex is a leaf.
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

  // A live event of the thread's context; 0: none is kept, make one.
  uint64_t take(Thread& thread, unsigned flags);
  // Ends a live event for the program. False if it must be destroyed, or if another thread has ended it.
  bool keep(Thread& thread, uint64_t event);
  // Those of a context, or with 0 of a device, live again: they are to be destroyed with the others.
  void revive(Thread& thread, unsigned device, uint64_t context);

 private:
  // Flags of events that sessions do not share are the two lowest bits. So many are kept of each, that a program which ends thousands
  // at once does not leave them in its object list.
  static constexpr unsigned kinds = 4;
  static constexpr size_t most = 64;
  struct Spare {
    uint64_t event, context;
  };

  std::mutex mutex;
  std::array<std::vector<Spare>, kinds> spares;  // by flags; the last one is taken first
};

}  // namespace vgpu::client
