#include "intercept/session/managed/managed-advice.h"

#include <doctest/doctest.h>

namespace vgpu::client {
namespace {

constexpr uint64_t page = 1 << 16;

void prefer(ManagedAdvice& advice, uint64_t address, uint64_t bytes, CUmemLocationType type) {
  advice.change(address, bytes, [&](Advice& piece) { piece.preferred.type = type; });
}

}  // namespace

TEST_CASE("advice for memory that is freed again and again is not kept") {
  ManagedAdvice advice;
  for (uint64_t i = 1; i < 100; ++i) {
    prefer(advice, i * page, page, CU_MEM_LOCATION_TYPE_HOST);
    CHECK(advice.prefersHost(i * page));
    advice.forget(i * page, page);
    CHECK(!advice.prefersHost(i * page));
  }
  for (uint64_t i = 100; i > 1; --i) advice.forget(i * page, page);  // memory without advice
  CHECK(advice.changes() == 0);
}

TEST_CASE("advice for the memory before and behind a range stays when the range is freed") {
  ManagedAdvice advice;
  prefer(advice, 2 * page, 3 * page, CU_MEM_LOCATION_TYPE_HOST);
  advice.forget(3 * page, page);
  CHECK(advice.prefersHost(3 * page - 1));
  CHECK(!advice.prefersHost(3 * page));
  CHECK(!advice.prefersHost(4 * page - 1));
  CHECK(advice.prefersHost(4 * page));
  CHECK(!advice.prefersHost(5 * page));
  advice.forget(4 * page, page);
  CHECK(advice.prefersHost(3 * page - 1));
  CHECK(!advice.prefersHost(4 * page));
  CHECK(advice.changes() == 2);
  advice.forget(2 * page, page);
  CHECK(advice.changes() == 0);
}

}  // namespace vgpu::client
