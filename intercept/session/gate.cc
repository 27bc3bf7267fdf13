#include "intercept/session/gate.h"

#include <kj/exception.h>

#include <climits>

#include "vgpu/wire/futex.h"

namespace vgpu {

void Gate::waitOutside(uint64_t slot) {
  do {
    leave(slot);
    while (closed.load() != 0) futexWait(closed, 1, 100'000'000);
    marks[slot].inside.store(1, std::memory_order_relaxed);
    AsymmetricFence::light();
  } while (closed.load(std::memory_order_acquire) != 0);
}

bool Gate::close(const std::function<bool()>& givesUp) {
  closed.store(1, std::memory_order_relaxed);
  KJ_ON_SCOPE_FAILURE(open());
  AsymmetricFence::heavy();
  for (auto& mark : marks) {
    Backoff backoff;
    while (mark.inside.load() != 0) {
      if (backoff.spin()) continue;
      if (givesUp()) {
        open();
        return false;
      }
      futexWait(mark.inside, 1, backoff.sleepNanoseconds());
    }
  }
  return true;
}

void Gate::open() {
  closed.store(0);
  futexWake(closed, INT_MAX);
}

}  // namespace vgpu
