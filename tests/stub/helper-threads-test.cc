#include "vgpu/base/helper-threads.h"

#include <doctest/doctest.h>

#include <atomic>
#include <optional>

#include "../no-more-threads.h"

namespace {

constexpr int pieces = 100;

// Does all pieces, each once, and returns how many threads took part.
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

TEST_CASE("work is done by the caller and its helpers, or by the caller alone if no thread can be started") {
  CHECK_EQ(doPieces(0), 1);
  CHECK_EQ(doPieces(3), 4);
  std::optional<vgpu::test::NoMoreThreads> limit(std::in_place);
  CHECK_EQ(doPieces(3), 1);
  limit.reset();
  CHECK_EQ(doPieces(3), 4);
}
