#include "migrate/cut-over.h"

#include <doctest/doctest.h>

using vgpu::migrate::CutOver;

namespace {

constexpr double downtime = 0.4;  // a quarter of it is for what is left

}  // namespace

TEST_CASE("a program is held at once if the target lacks nothing") {
  CutOver cutOver(downtime);
  CHECK(cutOver.isDue(0));
}

TEST_CASE("the first round is sent however little it is, because nobody knows how fast it goes") {
  CutOver cutOver(downtime);
  CHECK_FALSE(cutOver.isDue(1));
  CHECK_FALSE(cutOver.expectedSeconds().has_value());
  CHECK(cutOver.phase() == "round 1");
}

TEST_CASE("a program is held when what is left fits into a quarter of its time") {
  CutOver cutOver(downtime);
  CHECK_FALSE(cutOver.isDue(10'000));
  cutOver.noteRound(10'000, 1);
  CHECK_FALSE(cutOver.isDue(1'001));
  cutOver.noteRound(1'001, 0.1001);
  CHECK(cutOver.isDue(700));
}

TEST_CASE("a program is held when what is left does not get less by a quarter") {
  CutOver cutOver(downtime);
  CHECK_FALSE(cutOver.isDue(100'000));
  cutOver.noteRound(100'000, 10);
  CHECK_FALSE(cutOver.isDue(75'000));
  cutOver.noteRound(75'000, 7.5);
  CHECK(cutOver.isDue(56'251));
}

TEST_CASE("rounds that get smaller for ever end") {
  CutOver cutOver(0);
  uint64_t left = uint64_t{1} << 62;
  unsigned rounds = 0;
  for (; !cutOver.isDue(left); left /= 2, ++rounds) cutOver.noteRound(left, 1);
  CHECK(rounds == CutOver::mostRounds);
}

TEST_CASE("how long a program would be held is what is left at the rate of the last round") {
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
