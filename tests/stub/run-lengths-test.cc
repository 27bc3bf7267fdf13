#include "stub/gpu/run-lengths.h"

#include <doctest/doctest.h>

#include <vector>

using namespace vgpu::stub;

namespace {

// Feeds the work to `lengths` in runs of the lengths that it asks for; returns these lengths.
std::vector<size_t> cutsOf(Period& lengths, const std::vector<uint64_t>& work) {
  std::vector<size_t> cuts;
  for (size_t done = 0; done < work.size();) {
    size_t next = std::min(lengths.next(), work.size() - done);
    for (size_t i = 0; i < next; ++i) lengths.add(work[done + i]);
    lengths.cut(next);
    cuts.push_back(next);
    done += next;
  }
  return cuts;
}

std::vector<uint64_t> repeated(std::vector<uint64_t> period, size_t times) {
  std::vector<uint64_t> work;
  for (size_t i = 0; i < times; ++i) work.insert(work.end(), period.begin(), period.end());
  return work;
}

std::vector<uint64_t> numbers(uint64_t first, size_t count) {
  std::vector<uint64_t> work;
  for (uint64_t i = 0; i < count; ++i) work.push_back((first + i) * 0x9e37'79b9'7f4a'7c15);
  return work;
}

}  // namespace

TEST_CASE("work that never recurs is cut into the longest runs") {
  Period lengths;
  for (size_t cut : cutsOf(lengths, numbers(1, 64 * 20))) CHECK(cut == 64);
  CHECK(lengths.length() == 0);
}

TEST_CASE("work with a period is cut into whole periods, as many as fit") {
  for (auto [period, cut] : {std::pair<size_t, size_t>{50, 50}, {10, 60}, {1, 64}, {33, 33}, {64, 64}}) {
    CAPTURE(period);
    Period lengths;
    auto cuts = cutsOf(lengths, repeated(numbers(1, period), 2000 / period));
    CHECK(lengths.length() == period);
    CHECK(cuts[cuts.size() - 2] == cut);
  }
}

TEST_CASE("a period longer than a run is cut into equal runs, in the same places each time") {
  Period lengths;
  auto cuts = cutsOf(lengths, repeated(numbers(1, 300), 10));
  CHECK(lengths.length() == 300);
  CHECK(lengths.runs() == 5);
  for (size_t i = cuts.size() - 12; i + 2 < cuts.size(); ++i) CHECK(cuts[i] == 60);
}

TEST_CASE("repetitions within a period do not hide the period") {
  Period lengths;
  std::vector<uint64_t> period = {7, 7, 7, 9, 7, 7, 8};
  cutsOf(lengths, repeated(period, 20));
  CHECK(lengths.length() == 7);
}

TEST_CASE("when a period ends it is given up, and a new one is found") {
  Period lengths;
  cutsOf(lengths, repeated(numbers(1, 20), 10));
  REQUIRE(lengths.length() == 20);
  cutsOf(lengths, numbers(1000, 1));
  CHECK(lengths.length() == 0);
  cutsOf(lengths, repeated(numbers(1, 20), 3));
  CHECK(lengths.length() == 20);
}

TEST_CASE("earlier runs at other cuts do not shorten a run below its period") {
  Period lengths;
  cutsOf(lengths, repeated(numbers(1, 50), 10));
  lengths.cut(13);
  CHECK(lengths.next() == 50);
}

TEST_CASE("work whose parameters change is cut at the period of its functions") {
  RunLengths lengths;
  auto kinds = numbers(1, 10), changing = numbers(1000, 1000);
  for (size_t done = 0; done < changing.size(); done += 10)
    for (size_t i = 0; i < 10; ++i) lengths.add(changing[done + i], kinds[i]);
  CHECK(lengths.repeats());
  CHECK(lengths.next() == 60);
  CHECK(lengths.copies() == 2);
}

TEST_CASE("work that recurs is cut at its own period, which is a multiple of its functions' period") {
  RunLengths lengths;
  auto work = numbers(1, 300);
  for (int round = 0; round < 5; ++round)
    for (size_t i = 0; i < work.size(); ++i) lengths.add(work[i], i % 10);
  CHECK(lengths.next() == 60);
  CHECK(lengths.copies() == 6);
}
