#include "migrate/named-leases.h"

#include <doctest/doctest.h>

using vgpu::migrate::NamedLeases;

TEST_CASE("adjacent leases cover a chunk that crosses from one into the next") {
  NamedLeases leases;
  leases.add(0x1000, 0x1000);
  leases.add(0x2000, 0x1000);
  leases.add(0x3000, 0x1000);
  CHECK(leases.cover(0x1800, 0x1000));
  CHECK(leases.cover(0x1000, 0x3000));
  CHECK(leases.cover(0x2000, 0x1000));
  CHECK_FALSE(leases.cover(0x3800, 0x1000));
  CHECK_FALSE(leases.cover(0x0800, 0x1000));
}

TEST_CASE("a gap between two leases is covered by neither") {
  NamedLeases leases;
  leases.add(0x1000, 0x1000);
  leases.add(0x3000, 0x1000);
  CHECK_FALSE(leases.cover(0x1800, 0x2000));
  CHECK_FALSE(leases.cover(0x2000, 0x800));
}

TEST_CASE("a lease replaces those that it overlaps") {
  NamedLeases leases;
  leases.add(0x1000, 0x4000);
  leases.add(0x3000, 0x4000);
  CHECK_FALSE(leases.has(0x1000, 0x4000));
  CHECK(leases.has(0x3000, 0x4000));
  CHECK_FALSE(leases.cover(0x1000, 0x800));
  leases.add(0x3000, 0x1000);
  CHECK_FALSE(leases.has(0x3000, 0x4000));
  CHECK_FALSE(leases.cover(0x4000, 0x800));
}
