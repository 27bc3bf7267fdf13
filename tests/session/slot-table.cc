#include "intercept/session/slot-table.h"

#include <doctest/doctest.h>

#include <memory>
#include <set>
#include <thread>
#include <vector>

using namespace vgpu;
using namespace vgpu::client;

namespace {
const std::atomic<bool> lost{true}, alive{false};
}

TEST_CASE("a thread finds its own slot, or another one while that is taken") {
  auto slots = std::make_unique<SlotTable>();
  uint16_t mine = *slots->tryTake(SlotTable::forWaits, 7);
  uint16_t other = *slots->tryTake(SlotTable::forWaits, 7);
  CHECK(mine != other);
  slots->give(mine);
  CHECK(slots->tryTake(SlotTable::forWaits, 7) == mine);
}

TEST_CASE("small copies leave some slots to calls, and waits leave all of them") {
  auto slots = std::make_unique<SlotTable>();
  std::set<uint16_t> taken;
  for (uint32_t i = 0; auto slot = slots->tryTake(SlotTable::forWaits, i); ++i) taken.insert(*slot);
  CHECK(taken.size() == slotCount - replyCount);
  for (uint32_t i = 0; auto slot = slots->tryTake(SlotTable::forBytes, i); ++i) taken.insert(*slot);
  CHECK(slots->tryTake(SlotTable::forCalls, 200) < SlotTable::forBytes.first);
  CHECK(!slots->take(SlotTable::forBytes, 0, lost));
  CHECK(*taken.begin() == SlotTable::forBytes.first);
}

TEST_CASE("a slot has one holder at a time, and the accesses of one holder happen before those of the next") {
  auto slots = std::make_unique<SlotTable>();
  constexpr SlotTable::Range few{5, 3};
  std::vector<uint64_t> uses(8);  // not atomic: thread sanitizer reports two holders at once
  std::vector<std::thread> threads;
  for (uint32_t number = 0; number < 6; ++number)
    threads.emplace_back([&, number] {
      for (int i = 0; i < 3000; ++i) {
        uint16_t slot = *slots->take(few, number, alive);
        ++uses[slot];
        slots->give(slot);
      }
    });
  for (auto& thread : threads) thread.join();
  CHECK(uses[5] + uses[6] + uses[7] == 6 * 3000);
}
