#include "intercept/session/elapsed-times.h"

#include <doctest/doctest.h>

using namespace vgpu;
using namespace vgpu::client;

TEST_CASE("an elapsed time is known for the two records that it was measured between, and for no others") {
  ElapsedTimes times;
  CHECK(!times.find({1, 10}, {2, 20}));
  times.add({1, 10}, {2, 20}, 1.5f);
  times.add({3, 30}, {2, 20}, 2.5f);
  CHECK(times.find({1, 10}, {2, 20}) == 1.5f);
  CHECK(times.find({3, 30}, {2, 20}) == 2.5f);
  CHECK(!times.find({2, 20}, {1, 10}));
  CHECK(!times.find({1, 11}, {2, 20}));
  CHECK(!times.find({1, 10}, {2, 21}));
}

TEST_CASE("the time of an end event that is recorded again or destroyed is forgotten") {
  ElapsedTimes times;
  times.add({1, 10}, {2, 20}, 1.5f);
  times.add({1, 10}, {2, 21}, 3.5f);
  CHECK(!times.find({1, 10}, {2, 20}));
  CHECK(times.find({1, 10}, {2, 21}) == 3.5f);
  times.forget(2);
  CHECK(!times.find({1, 10}, {2, 21}));
}

TEST_CASE("an end event with many start events keeps the latest ones") {
  ElapsedTimes times;
  for (uint64_t start = 1; start <= 1000; ++start) times.add({start, start}, {5000, 5000}, static_cast<float>(start));
  CHECK(times.find({1000, 1000}, {5000, 5000}) == 1000.0f);
  CHECK(!times.find({1, 1}, {5000, 5000}));
}
