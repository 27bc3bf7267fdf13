// The table on the launch path.
#include <doctest/doctest.h>

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "intercept/runtime/pointer-table.h"

using vgpu::runtime::PointerTable;

TEST_CASE("a key that was set is found; a key that was erased or never set is not") {
  static constinit PointerTable<int> table;  // static storage, as the library's tables have
  std::vector<int> keys(5000), values(5000);
  CHECK(table.find(&keys[0]) == nullptr);
  CHECK(table.find(nullptr) == nullptr);
  for (size_t i = 0; i < keys.size(); ++i) table.set(&keys[i], &values[i]);
  for (size_t i = 0; i < keys.size(); i += 2) table.set(&keys[i], nullptr);
  for (size_t i = 0; i < keys.size(); ++i) CHECK(table.find(&keys[i]) == (i % 2 == 0 ? nullptr : &values[i]));
  table.set(&keys[0], &values[1]);
  CHECK(table.find(&keys[0]) == &values[1]);
}

TEST_CASE("readers find every key that was set before they began, while other keys are set and the table grows") {
  static constinit PointerTable<int> table;
  constexpr size_t count = 20000;
  std::vector<int> keys(count);
  std::atomic<size_t> set = 0;
  std::atomic<bool> missed = false;
  std::thread reader([&] {
    for (size_t before = 0; before < count;) {
      before = set.load(std::memory_order_acquire);
      for (size_t i = 0; i < before; i += 37)
        if (table.find(&keys[i]) != &keys[i]) missed = true;
    }
  });
  for (size_t i = 0; i < count; ++i) {
    table.set(&keys[i], &keys[i]);
    set.store(i + 1, std::memory_order_release);
  }
  reader.join();
  CHECK_FALSE(missed);
}
