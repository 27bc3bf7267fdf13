// Staging slabs: shared buffers through which pageable bytes pass between the program and the GPU.
//
// A slab is taken by compare-and-swap and given back by its last user: the program after a copy to the host, the GPU itself after
// a copy to the device. Acquire on taking pairs with that release.
//
// Copies to the device that wait in their streams keep their slabs for as long as those wait, so they never get all of them: the last
// `keptCount` are for whoever waits for a slab otherwise, of which a stream gets one at a time. A copy to the device's memory that gets
// none goes in frames (staged-copy.cc).
//
// A GPU whose context has ended gives nothing back. So each time a slab is taken it gets a new generation, which is the value of
// `busy`, and a thread that passes a slab to the GPU records it: reclaim() takes back exactly the slabs that the dead context
// had.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <optional>

#include "vgpu/wire/segment.h"

namespace vgpu::client {

class Slabs {
 public:
  explicit Slabs(const Segment& segment) : segment(segment) {}

  // Whose work a slab is used for: a stream, or the default stream of a device.
  using User = uint64_t;
  static User userOf(unsigned device, uint64_t stream) { return stream != 0 ? stream : device; }  // a handle is larger than devices are
  static constexpr User worker = ~User{0};  // no stream: the worker takes what is in it at once

  // Waits for a free slab, of all; nothing once `abandoned`. Any thread that holds none: all may be held by threads that wait
  // for one more. Looks from `first` on: a thread that always begins at the same place finds the slab that it used last
  // still in its core's cache.
  std::optional<uint32_t> take(uint32_t first, User user, const std::atomic<bool>& abandoned);
  // Without waiting and without the kept ones: nothing if none is free. For a thread that holds some already, and for copies to the device.
  std::optional<uint32_t> takeAnother(uint32_t first) { return takeAs(nextGeneration(), {0, sharedCount}, first); }
  void give(uint32_t slab) { segment.slabState(slab).busy.store(0, std::memory_order_release); }

  // Records that the frame of `sequence`, about to be sent, passes the slab to the GPU, which gives it back. `user` is what countLent()
  // counts.
  void lend(uint32_t slab, unsigned device, uint64_t sequence, User user = worker);
  // How many slabs were lent for `user` and have not been given back.
  unsigned countLent(User user) const;
  // Takes back the slabs that frames before `sequence` have passed to the GPU of `device`, whose context has ended.
  void reclaim(unsigned device, uint64_t sequence);

 private:
  struct Lent {
    std::atomic<uint64_t> sequence{0}, user{worker};
    // `generation` is stored last: the other fields are then of that generation or a newer one.
    std::atomic<uint32_t> device{0}, generation{0};
  };
  struct Range {
    uint32_t first, count;
  };
  static constexpr uint32_t keptCount = 8, sharedCount = slabCount - keptCount;
  uint32_t nextGeneration();
  std::optional<uint32_t> takeAs(uint32_t generation, Range range, uint32_t first);
  std::optional<uint32_t> takeKept(uint32_t generation, User user);

  const Segment& segment;
  std::atomic<uint32_t> generations{1};  // 1 is a slab of a snapshot's frames
  std::array<Lent, slabCount> lent;
};

}  // namespace vgpu::client
