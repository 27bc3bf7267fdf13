#include "intercept/session/memory/returns.h"

#include <doctest/doctest.h>

#include <optional>

namespace vgpu::client {
namespace {

struct Several {
  std::mutex mutex;
  Returns all{mutex};
  std::optional<Returns::Return> first, second, third;

  void begin(std::optional<Returns::Return>& one) {
    std::lock_guard lock(mutex);
    one.emplace(all);
  }
  uint64_t soFar() {
    std::lock_guard lock(mutex);
    return all.soFar();
  }
  bool haveEnded(uint64_t count) {
    std::lock_guard lock(mutex);
    return all.haveEnded(count);
  }
};

}  // namespace

TEST_CASE("a return that began later and has ended does not count as one of those awaited") {
  Several returns;
  returns.begin(returns.first);
  returns.begin(returns.second);
  const uint64_t awaited = returns.soFar();
  returns.begin(returns.third);
  returns.second.reset();
  returns.third.reset();
  CHECK(!returns.haveEnded(awaited));
  returns.first.reset();
  CHECK(returns.haveEnded(awaited));
}

TEST_CASE("returns that began later are not awaited") {
  Several returns;
  returns.begin(returns.first);
  const uint64_t awaited = returns.soFar();
  returns.begin(returns.second);
  CHECK(!returns.haveEnded(awaited));
  returns.first.reset();
  CHECK(returns.haveEnded(awaited));
  CHECK(!returns.haveEnded(returns.soFar()));
  returns.second.reset();
  CHECK(returns.haveEnded(returns.soFar()));
}

}  // namespace vgpu::client
