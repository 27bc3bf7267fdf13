#include "stub/driver/address-ranges.h"

#include <doctest/doctest.h>

#include <optional>

using vgpu::stub::AddressRanges;
using Place = std::optional<uint64_t>;

TEST_CASE("take() chooses the lowest range that is large enough") {
  AddressRanges ranges(0x1000, 0x1000);
  CHECK(ranges.take(0x100, 0x10) == Place(0x1000));
  CHECK(ranges.take(0x10, 0x10) == Place(0x1100));
  CHECK(ranges.take(0x100, 0x100) == Place(0x1200));
  CHECK(ranges.take(0x10, 0x10) == Place(0x1110));  // the gap that alignment left
  ranges.give(0x1000, 0x100);
  CHECK(ranges.take(0x200, 0x10) == Place(0x1300));
  CHECK(ranges.take(0x80, 0x10) == Place(0x1000));
}

TEST_CASE("a range is given back in parts") {
  AddressRanges ranges(0x1000, 0x1000);
  REQUIRE(ranges.take(0x400, 0x10) == Place(0x1000));
  ranges.give(0x1000, 0x80);  // before and after an aligned piece
  ranges.give(0x1180, 0x280);
  CHECK(ranges.take(0x100, 0x10) == Place(0x1180));
  CHECK(ranges.take(0x80, 0x10) == Place(0x1000));
  ranges.give(0x1040, 0x200);  // the end of one range, all of the next, and the beginning of a third
  CHECK(ranges.take(0x200, 0x10) == Place(0x1040));
  CHECK(ranges.take(0x40, 0x10) == Place(0x1280));
}

TEST_CASE("take() fails if nothing is free") {
  AddressRanges ranges(0x1000, 0x1000);
  CHECK(ranges.take(0x1001, 1) == std::nullopt);
  CHECK(ranges.take(0, 1) == std::nullopt);
  CHECK(ranges.take(~uint64_t{0}, 1) == std::nullopt);
  CHECK(ranges.take(0x1000, 1) == Place(0x1000));
  CHECK(ranges.take(1, 1) == std::nullopt);
  ranges.give(0x2000, 0x1000);  // none of it was taken
  CHECK(ranges.take(1, 1) == std::nullopt);
}

TEST_CASE("placement depends only on the ranges taken now, not on earlier ones") {
  AddressRanges ranges(0x1000, 0x10000);
  for (int i = 0; i < 100; ++i) {
    auto first = ranges.take(0x100, 0x10), second = ranges.take(0x300, 0x10);
    CHECK(first == Place(0x1000));
    CHECK(second == Place(0x1100));
    ranges.give(*first, 0x100);
    ranges.give(*second, 0x300);
  }
  CHECK(ranges.contains(0x1000));
  CHECK_FALSE(ranges.contains(0x11000));
}
