// Staging slabs: shared buffers for pageable bytes on their way between the program and the GPU.
//
// A slab is taken by compare-and-swap and given back by its last user: the program after a copy to the host, the GPU itself after a copy to
// the device. The acquire when taking pairs with that release.
//
// Copies to the device keep their slabs while they wait in their streams, so they never get all slabs: the last `keptCount` are for callers
// that wait for a slab, and a stream gets one of those at a time. A copy to device memory that gets none is sent inside frames
// (staged-copy.cc).
//
// A GPU whose context has ended gives no slabs back. So each taking stores a new generation in `busy`, and a thread that passes a slab to
// the GPU records the generation: reclaim() takes back exactly the slabs that the dead context had.
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

  // For whom a slab is used: a stream, or the default stream of a device.
  using User = uint64_t;
  static User userOf(unsigned device, uint64_t stream) { return stream != 0 ? stream : device; }  // handles are larger than device numbers
  static constexpr User worker = ~User{0};  // no stream: the worker reads the slab at once

  // Waits for any free slab; nothing once `abandoned`. Only for threads that hold none: otherwise all slabs could be held by threads that
  // wait for one more. Searches from `first`: a thread that always starts at the same place finds its last slab still in its core's cache.
  std::optional<uint32_t> take(uint32_t first, User user, const std::atomic<bool>& abandoned);
  // Without waiting, and not of the kept ones: nothing if none is free. For threads that hold slabs already, and for copies to the device.
  std::optional<uint32_t> takeAnother(uint32_t first) { return takeAs(nextGeneration(), {0, sharedCount}, first); }
  void give(uint32_t slab) { segment.slabState(slab).busy.store(0, std::memory_order_release); }

  // Records that the frame `sequence`, about to be sent, passes the slab to the GPU, which gives it back. countLent() counts by `user`.
  void lend(uint32_t slab, unsigned device, uint64_t sequence, User user = worker);
  // How many slabs were lent for `user` and are not given back yet.
  unsigned countLent(User user) const;
  // Takes back the slabs that frames before `sequence` passed to the GPU of `device`, whose context has ended.
  void reclaim(unsigned device, uint64_t sequence);

 private:
  struct Lent {
    std::atomic<uint64_t> sequence{0}, user{worker};
    // `generation` is stored last, with release: the other fields are then of that generation or a newer one.
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
  std::atomic<uint32_t> generations{1};  // 1 marks the slabs of a snapshot's frames
  std::array<Lent, slabCount> lent;
};

}  // namespace vgpu::client
