#include "intercept/session/handle-table.h"

#include <doctest/doctest.h>

#include <set>
#include <thread>

using namespace vgpu;
using namespace vgpu::client;

TEST_CASE("a handle is found while it lives, and only as its own kind") {
  HandleTable table;
  uint64_t stream = table.create(api::Kind::STREAM, 2);
  CHECK(table.find<api::Kind::STREAM>(stream) != nullptr);
  CHECK(table.find<api::Kind::EVENT>(stream) == nullptr);
  CHECK(handleDevice(stream) == 2);
  table.destroy(stream);
  CHECK(table.find<api::Kind::STREAM>(stream) == nullptr);
}

TEST_CASE("the value of a destroyed handle is not reused with its slot") {
  HandleTable table;
  std::set<uint64_t> seen;
  for (int i = 0; i < 5'000; ++i) {
    uint64_t handle = table.create(api::Kind::EVENT, 0);
    CHECK(seen.insert(handle).second);
    table.destroy(handle);
  }
}

TEST_CASE("numbers that are not handles are not found") {
  HandleTable table;
  table.create(api::Kind::STREAM, 0);
  for (uint64_t number : {0ull, 1ull, 2ull, ~0ull, 0x5600000000ull, 0xffffffffull})
    CHECK(table.find<api::Kind::STREAM>(number) == nullptr);
}

TEST_CASE("an object is not found before it is published") {
  HandleTable table;
  uint64_t handle = table.reserve(api::Kind::EVENT, 0);
  CHECK(table.live(api::Kind::EVENT, 0).empty());
  table.publish<api::Kind::EVENT>(handle, 0, [](EventState& event) { event.flags = 5; });
  CHECK(table.find<api::Kind::EVENT>(handle)->flags == 5);
}

TEST_CASE("an object sees nothing of the previous one in its slot") {
  HandleTable table;
  uint64_t first = table.create(api::Kind::STREAM, 0);
  table.find<api::Kind::STREAM>(first)->lastWork.raise(&table, 7);
  table.destroy(first);
  uint64_t next = 0;
  do {
    next = table.create(api::Kind::STREAM, 0);
    CHECK(table.find<api::Kind::STREAM>(next)->lastWork.get() == 0);
  } while (handleIndex(next) != handleIndex(first));
  CHECK(table.find<api::Kind::STREAM>(first) == nullptr);
}

TEST_CASE("each kind has its own slots") {
  HandleTable table;
  uint64_t stream = table.create(api::Kind::STREAM, 0), event = table.create(api::Kind::EVENT, 0);
  CHECK(handleIndex(stream) == handleIndex(event));
  CHECK(table.destroy(stream));
  CHECK(table.isLive(api::Kind::EVENT, event));
  CHECK_FALSE(table.isLive(api::Kind::STREAM, event));
  CHECK(table.live(api::Kind::STREAM, 0).empty());
}

TEST_CASE("threads make and drop handles at once") {
  HandleTable table;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      std::vector<uint64_t> mine;
      for (int i = 0; i < 3'000; ++i) {
        mine.push_back(table.create(api::Kind::EVENT, 0));
        if (mine.size() > 10) {
          CHECK(table.find<api::Kind::EVENT>(mine.front()) != nullptr);
          table.destroy(mine.front());
          mine.erase(mine.begin());
        }
      }
    });
  for (auto& thread : threads) thread.join();
  CHECK(table.live(api::Kind::EVENT, 0).size() == 40);
}

TEST_CASE("the handles of one context are found separately from those of another on the same device") {
  HandleTable table;
  uint64_t first = table.create(api::Kind::CONTEXT, 1), second = table.create(api::Kind::CONTEXT, 1);
  uint64_t mine = table.create(api::Kind::STREAM, 1, first), other = table.create(api::Kind::STREAM, 1, second);
  CHECK(table.live(api::Kind::STREAM, 1, first) == std::vector<uint64_t>{mine});
  CHECK(table.live(api::Kind::STREAM, 1, second) == std::vector<uint64_t>{other});
  CHECK(table.live(api::Kind::STREAM, 1).size() == 2);
  CHECK(table.destroy(mine));
  CHECK(!table.destroy(mine));
  CHECK(table.live(api::Kind::STREAM, 1, first).empty());
}
