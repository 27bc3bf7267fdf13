#include "tools/vgpud/warm-target.h"

#include <doctest/doctest.h>

using vgpu::daemon::WarmTarget;

namespace {

constexpr auto lasting = 30 * kj::SECONDS;
const kj::TimePoint begin = kj::origin<kj::TimePoint>() + 1000 * kj::SECONDS;

}  // namespace

TEST_CASE("each program that finds no waiting worker raises the target by one, up to the maximum") {
  WarmTarget target(1, 3, lasting);
  CHECK(target.count() == 1);
  for (unsigned expected : {2u, 3u, 3u}) {
    target.missed(begin, true);
    CHECK(target.count() == expected);
  }
}

TEST_CASE("without spare memory the target does not change") {
  WarmTarget target(1, 3, lasting);
  target.missed(begin, false);
  CHECK(target.count() == 1);
}

TEST_CASE("the target falls by one after each interval in which every program found a worker, not below the minimum") {
  WarmTarget target(1, 8, lasting);
  for (int i = 0; i < 2; ++i) target.missed(begin, true);
  target.pass(begin + lasting - 1 * kj::SECONDS);
  CHECK(target.count() == 3);
  target.pass(begin + lasting);
  CHECK(target.count() == 2);
  target.pass(begin + lasting + 1 * kj::SECONDS);
  CHECK(target.count() == 2);
  target.pass(begin + 2 * lasting);
  target.pass(begin + 3 * lasting);
  CHECK(target.count() == 1);
}

TEST_CASE("a daemon that is to keep no workers keeps none") {
  WarmTarget target(0, 8, lasting);
  target.missed(begin, true);
  CHECK(target.count() == 0);
}
