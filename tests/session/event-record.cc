#include "intercept/session/event-record.h"

#include <doctest/doctest.h>

#include <thread>

namespace vgpu::client {
namespace {

constexpr uint64_t sequenceAt(uint64_t frame) { return frame * frameUnit + 1; }

}  // namespace

TEST_CASE("an event that was never recorded has no sequence number") {
  EventRecord record;
  CHECK(record.get().sequence == 0);
  record.set(&record, {0, 5});  // as a record of a lost session
  CHECK(record.get().sequence == 0);
}

TEST_CASE("the record at the later position in the ring wins, whichever thread stores first") {
  EventRecord record;
  record.set(&record, {sequenceAt(7), 3});
  record.set(&record, {sequenceAt(4), 2});
  CHECK(record.get().sequence == sequenceAt(7));
  CHECK(record.get().completion == 3);
  record.set(&record, {sequenceAt(0), 1});
  CHECK(record.get().completion == 3);
  record.set(&record, {sequenceAt(uint64_t{1} << 48), completionWordCount - 1});
  CHECK(record.get().sequence == sequenceAt(uint64_t{1} << 48));
  CHECK(record.get().completion == completionWordCount - 1);
}

TEST_CASE("sequence number and completion word belong to the same record while other threads record") {
  EventRecord record;
  auto recordEvery = [&](uint64_t first) {
    for (uint64_t i = first; i < 20'000; i += 2) record.set(&i, {sequenceAt(i), static_cast<uint32_t>(i % completionWordCount)});
  };
  std::thread even(recordEvery, 0), odd(recordEvery, 1);
  bool agree = true;
  for (uint64_t last = 0; last < sequenceAt(19'000) && agree;) {
    auto seen = record.get();
    agree = seen.sequence == 0 || (seen.sequence >= last && seen.completion == (seen.sequence - 1) / frameUnit % completionWordCount);
    last = seen.sequence;
  }
  even.join();
  odd.join();
  CHECK(agree);
  CHECK(record.get().sequence == sequenceAt(19'999));
}

}  // namespace vgpu::client
