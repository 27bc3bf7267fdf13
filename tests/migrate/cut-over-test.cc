#include "migrate/cut-over.h"

#include <doctest/doctest.h>

using vgpu::migrate::CutOver;

namespace {

constexpr double downtime = 0.4;  // a quarter of it may be used for the remaining chunks

}  // namespace

TEST_CASE("a program is held at once if nothing is left to send") {
  CutOver cutOver(downtime);
  CHECK(cutOver.isDue(0));
}

TEST_CASE("the first round is sent however small it is, because the rate is not known yet") {
  CutOver cutOver(downtime);
  CHECK_FALSE(cutOver.isDue(1));
  CHECK_FALSE(cutOver.expectedSeconds().has_value());
  CHECK(cutOver.phase() == "round 1");
}

TEST_CASE("a program is held when the rest can be sent in a quarter of its downtime") {
  CutOver cutOver(downtime);
  CHECK_FALSE(cutOver.isDue(10'000));
  cutOver.noteRound(10'000, 1);
  CHECK_FALSE(cutOver.isDue(1'001));
  cutOver.noteRound(1'001, 0.1001);
  CHECK(cutOver.isDue(700));
}

TEST_CASE("a program is held when a round reduces the rest by less than a quarter") {
  CutOver cutOver(downtime);
  CHECK_FALSE(cutOver.isDue(100'000));
  cutOver.noteRound(100'000, 10);
  CHECK_FALSE(cutOver.isDue(75'000));
  cutOver.noteRound(75'000, 7.5);
  CHECK(cutOver.isDue(56'251));
}

TEST_CASE("rounds that shrink without end are cut off") {
  CutOver cutOver(0);
  uint64_t left = uint64_t{1} << 62;
  unsigned rounds = 0;
  for (; !cutOver.isDue(left); left /= 2, ++rounds) cutOver.noteRound(left, 1);
  CHECK(rounds == CutOver::mostRounds);
}

TEST_CASE("the expected hold is the rest at the rate of the last round") {
  CutOver cutOver(downtime);
  cutOver.isDue(10'000);
  cutOver.noteRound(10'000, 1);
  cutOver.isDue(5'000);
  cutOver.noteRound(5'000, 1);
  cutOver.isDue(1'550);
  REQUIRE(cutOver.expectedSeconds().has_value());
  CHECK(*cutOver.expectedSeconds() == doctest::Approx(0.31));
  CHECK(cutOver.phase() == "round 3 (would be held for 0.310 s)");
}
