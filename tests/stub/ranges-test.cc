// Ranges in a map: which range holds an address, and what is free or covered.
#include "vgpu/base/ranges.h"

#include <doctest/doctest.h>

#include <map>

TEST_CASE("a range holds its bytes and none behind them, also at both ends of the address space") {
  const uint64_t top = UINT64_MAX - 0xfff;
  const std::map<uint64_t, uint64_t> ranges = {{0, 0x1000}, {0x2000, 0x1000}, {0x3000, 0x1000}, {top, 0xfff}};
  CHECK(vgpu::holding(ranges, 0xfff)->first == 0);
  CHECK(vgpu::holding(ranges, 0x1000) == ranges.end());
  CHECK(vgpu::holding(ranges, 0x2fff)->first == 0x2000);
  CHECK(vgpu::holding(ranges, 0x3000)->first == 0x3000);
  CHECK(vgpu::holding(ranges, top + 0xffe)->first == top);
  CHECK(vgpu::holding(ranges, top + 0xfff) == ranges.end());

  CHECK(vgpu::isFree(ranges, 0x1000, 0x1000));
  CHECK_FALSE(vgpu::isFree(ranges, 0x1000, 0x1001));
  CHECK_FALSE(vgpu::isFree(ranges, 0xfff, 1));
  CHECK(vgpu::isFree(ranges, 0x4000, top - 0x4000));
  CHECK_FALSE(vgpu::isFree(ranges, 0x4000, top - 0x3fff));

  CHECK(vgpu::isCovered(ranges, 0x2000, 0x2000));
  CHECK_FALSE(vgpu::isCovered(ranges, 0x2000, 0x2001));
  CHECK_FALSE(vgpu::isCovered(ranges, 0xfff, 2));
  CHECK_FALSE(vgpu::isCovered(ranges, top, UINT64_MAX));
}

TEST_CASE("the size of an entry is its own member, or the caller gives it") {
  struct Entry {
    uint64_t bytes;
    bool isOurs;
  };
  const std::map<uint64_t, Entry> ranges = {{0x1000, {0x1000, true}}, {0x2000, {0x1000, false}}};
  CHECK(vgpu::isCovered(ranges, 0x1000, 0x2000));
  CHECK_FALSE(vgpu::isCovered(ranges, 0x1000, 0x2000, [](const Entry& entry) { return entry.isOurs ? entry.bytes : 0; }));
  CHECK(vgpu::holding(ranges, 0x2000)->second.isOurs == false);
}
