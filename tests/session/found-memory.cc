#include "intercept/session/memory/found-memory.h"

#include <doctest/doctest.h>

namespace vgpu::client {

TEST_CASE("an allocation that was found is cached until an allocation ends") {
  FoundMemory known;
  CHECK(!known.find(0x1000, 1, 0));
  known.add(0x1000, 0x1000, 0x200, Where::device, 3);
  CHECK(known.find(0x1000, 0x200, 3) == Where::device);
  CHECK(!known.find(0x1000, 0x200, 4));
  known.add(0x1000, 0x1000, 0x200, Where::arena, 4);
  CHECK(known.find(0x1000, 0x200, 4) == Where::arena);
}

TEST_CASE("a range that begins before a cached allocation or ends behind it is not found") {
  FoundMemory known;
  known.add(0x1080, 0x1000, 0x200, Where::device, 0);
  CHECK(known.find(0x1000, 0x200, 0) == Where::device);
  CHECK(known.find(0x11ff, 1, 0) == Where::device);
  CHECK(!known.find(0xfff, 1, 0));
  CHECK(!known.find(0x1000, 0x201, 0));
  CHECK(!known.find(0x1100, 0x101, 0));
  CHECK(!known.find(0x1100, UINT64_MAX, 0));
}

TEST_CASE("another allocation can replace a cached one, and neither is taken for the other") {
  FoundMemory known;
  for (uint64_t at = 0; at < 1024; ++at) known.add(at << 20, at << 20, 0x100, at % 2 == 0 ? Where::device : Where::arena, 0);
  size_t found = 0;
  for (uint64_t at = 0; at < 1024; ++at)
    if (auto where = known.find(at << 20, 0x100, 0)) {
      CHECK(*where == (at % 2 == 0 ? Where::device : Where::arena));
      ++found;
    }
  CHECK(found > 0);
}

}  // namespace vgpu::client
