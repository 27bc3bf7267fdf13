#include "vgpu/base/helper-threads.h"

#include <doctest/doctest.h>

#include <atomic>
#include <optional>

#include "../no-more-threads.h"

namespace {

constexpr int pieces = 100;

// How many threads have done the pieces, each of them once.
int doPieces(size_t helpers) {
  std::atomic<int> next{0}, done{0}, threads{0};
  vgpu::runWithHelpers(helpers, [&] {
    ++threads;
    while (next++ < pieces) ++done;
  });
  CHECK_EQ(done, pieces);
  return threads;
}

}  // namespace

TEST_CASE("work is done by the caller and its helpers, and by the caller alone where no thread is to be had") {
  CHECK_EQ(doPieces(0), 1);
  CHECK_EQ(doPieces(3), 4);
  std::optional<vgpu::test::NoMoreThreads> limit(std::in_place);
  CHECK_EQ(doPieces(3), 1);
  limit.reset();
  CHECK_EQ(doPieces(3), 4);
}
