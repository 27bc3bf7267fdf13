#include "intercept/session/event-record.h"

#include <doctest/doctest.h>

#include <thread>

namespace vgpu::client {
namespace {

constexpr uint64_t stampAt(uint64_t frame) { return frame * frameUnit + 1; }

}  // namespace

TEST_CASE("an event that was never recorded has no stamp") {
  EventRecord record;
  CHECK(record.get().stamp == 0);
  record.set({0, 5});  // as a record of a session that is lost
  CHECK(record.get().stamp == 0);
}

TEST_CASE("the record of the later place in the ring stands, whichever thread comes first") {
  EventRecord record;
  record.set({stampAt(7), 3});
  record.set({stampAt(4), 2});
  CHECK(record.get().stamp == stampAt(7));
  CHECK(record.get().line == 3);
  record.set({stampAt(0), 1});
  CHECK(record.get().line == 3);
  record.set({stampAt(uint64_t{1} << 48), eventLineCount - 1});
  CHECK(record.get().stamp == stampAt(uint64_t{1} << 48));
  CHECK(record.get().line == eventLineCount - 1);
}

TEST_CASE("stamp and line are of the same record while others record") {
  EventRecord record;
  auto recordEvery = [&](uint64_t first) {
    for (uint64_t i = first; i < 20'000; i += 2) record.set({stampAt(i), static_cast<uint32_t>(i % eventLineCount)});
  };
  std::thread even(recordEvery, 0), odd(recordEvery, 1);
  bool agree = true;
  for (uint64_t last = 0; last < stampAt(19'000) && agree;) {
    auto seen = record.get();
    agree = seen.stamp == 0 || (seen.stamp >= last && seen.line == (seen.stamp - 1) / frameUnit % eventLineCount);
    last = seen.stamp;
  }
  even.join();
  odd.join();
  CHECK(agree);
  CHECK(record.get().stamp == stampAt(19'999));
}

}  // namespace vgpu::client
