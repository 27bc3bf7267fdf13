#include "intercept/session/stream-depth.h"

#include <doctest/doctest.h>

#include "fake-session.h"

namespace vgpu::client {

TEST_CASE("a stream accepts as many frames, or as many bytes of pageable memory, as a driver does before it blocks") {
  // How many copies of this size are posted before the second group is full and a thread waits.
  auto room = [](uint64_t pageableBytes) {
    StreamDepth depth;
    const Thread& thread = FakeSession::one().thread();
    uint64_t posted = 0;
    for (uint64_t units = 0; units < 2 * StreamDepth::groupUnits; ++posted) units = depth.count(thread, pageableBytes);
    return posted;
  };
  CHECK(room(0) == 1008);
  CHECK(room(100) == 1008);
  // docs/facts.md: 987 of 4 KiB, 250 of 16 KiB, 84 of 48 KiB; less those that other threads may have pending.
  CHECK((room(4 * KiB) > 900 && room(4 * KiB) < 987 - 32));
  CHECK((room(16 * KiB) > 225 && room(16 * KiB) < 250 - 8));
  CHECK((room(48 * KiB) > 75 && room(48 * KiB) < 84 - 3));
}

}  // namespace vgpu::client
