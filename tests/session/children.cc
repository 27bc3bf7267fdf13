#include "intercept/session/children.h"

#include <doctest/doctest.h>

#include <string>
#include <string_view>
#include <thread>

using namespace vgpu;
using namespace vgpu::client;

TEST_CASE("a child is found by its name within its parent only") {
  Children<std::string> functions;
  CHECK(functions.add(1, "sum", 11) == 11);
  CHECK(functions.add(2, "sum", 12) == 12);
  CHECK(functions.find(1, std::string_view("sum")) == 11);
  CHECK(functions.find(2, "sum") == 12);
  CHECK(functions.find(1, "product") == 0);
  CHECK(functions.find(3, "sum") == 0);
}

TEST_CASE("if two threads make handles for one name, all use the first") {
  Children<uint32_t> levels;
  CHECK(levels.add(1, 4, 21) == 21);
  CHECK(levels.add(1, 4, 22) == 21);
  CHECK(levels.find(1, 4u) == 21);
}

TEST_CASE("dropping a parent returns its children's handles and no others") {
  Children<uint32_t> levels;
  levels.add(1, 0, 31);
  levels.add(1, 1, 32);
  levels.add(2, 0, 33);
  CHECK(levels.drop(1) == std::vector<uint64_t>{31, 32});
  CHECK(levels.find(1, 0u) == 0);
  CHECK(levels.find(2, 0u) == 33);
  CHECK(levels.drop(1).empty());
}

TEST_CASE("threads that ask for the same names at once agree on the handles") {
  Children<uint32_t> levels;
  std::vector<std::vector<uint64_t>> got(4);
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < got.size(); ++t)
    threads.emplace_back([&, t] {
      for (uint32_t name = 0; name < 1'000; ++name) got[t].push_back(levels.add(1, name, 10'000 * t + name + 1));
    });
  for (auto& thread : threads) thread.join();
  for (auto& handles : got) CHECK(handles == got[0]);
}
