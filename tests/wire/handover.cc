#include "vgpu/wire/handover.h"

#include <doctest/doctest.h>

#include <thread>

using namespace vgpu;

TEST_CASE("a worker can claim only what the program has accepted and not withdrawn") {
  std::atomic<uint64_t> word{0};
  CHECK_FALSE(claimHandover(word, 0));
  uint64_t first = acceptHandover(word, 0);
  CHECK(withdrawHandover(word, first));
  CHECK_FALSE(claimHandover(word, first));
  uint64_t second = acceptHandover(word, first);
  CHECK_FALSE(claimHandover(word, first));  // from a worker that was given up but still runs
  CHECK(claimHandover(word, second));
  CHECK_FALSE(claimHandover(word, second));
  CHECK_FALSE(withdrawHandover(word, second));
  CHECK(claimHandover(word, acceptHandover(word, second)));
}

TEST_CASE("if a claim and a withdrawal happen at the same time, exactly one succeeds") {
  std::atomic<uint64_t> word{0};
  uint64_t number = 0;
  for (int round = 0; round < 500; ++round) {
    number = acceptHandover(word, number);
    bool claimed = false, withdrawn = false;
    std::thread worker([&] { claimed = claimHandover(word, number); });
    withdrawn = withdrawHandover(word, number);
    worker.join();
    CHECK(claimed != withdrawn);
  }
}
