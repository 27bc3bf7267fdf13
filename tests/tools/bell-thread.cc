#include "tools/relay/bell-thread.h"

#include <doctest/doctest.h>
#include <poll.h>
#include <unistd.h>

#include <optional>

#include "vgpu/wire/futex.h"
#include "vgpu/wire/ring.h"

namespace vgpu::relay {
namespace {

bool isRung(const BellThread& thread) {
  pollfd polled{thread.fd(), POLLIN, 0};
  return poll(&polled, 1, 10'000) == 1;
}

// Nothing shows that a thread sleeps. The tested properties also hold before it sleeps.
void letSleep() { usleep(20'000); }

}  // namespace

TEST_CASE("two relays that sleep on one ring are both woken by a frame, and one can end while the other sleeps") {
  const MemoryFile file = Segment::create();
  Segment segment(file);
  RingHeader& ring = segment.ring(0);
  RingWriter writer(segment, 0);
  const std::atomic<bool> lost{false};
  auto publish = [&] {
    ring.consumerSleeping = 1;
    auto reservation = writer.reserve(1, lost);
    REQUIRE(reservation);
    writer.publish(*reservation, api::Method::nothing, 0);
  };
  std::optional<BellThread> predecessor(std::in_place, std::vector{&ring.doorbell});
  letSleep();
  BellThread successor({&ring.doorbell});
  letSleep();
  publish();
  CHECK(isRung(*predecessor));
  CHECK(isRung(successor));
  letSleep();
  {
    BellThread last({&ring.doorbell});
    letSleep();
  }
  predecessor.reset();
  successor.clear();
  publish();
  CHECK(isRung(successor));
}

TEST_CASE("a wake-up before the thread sleeps is not lost") {
  std::atomic<uint32_t> bell{7};
  for (int i = 0; i < 100; ++i) {
    BellThread thread({&bell});
    bell.fetch_add(1);
    futexWake(bell);
    CHECK(isRung(thread));
  }
}

}  // namespace vgpu::relay
