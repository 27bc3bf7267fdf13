#include "intercept/session/gate.h"

#include <climits>

#include "vgpu/wire/futex.h"

namespace vgpu {

void Gate::waitOutside(uint64_t slot) {
  do {
    marks[slot].inside.store(0);
    while (closed.load() != 0) futexWait(closed, 1, 100'000'000);
    marks[slot].inside.store(1);
  } while (closed.load() != 0);
}

void Gate::close() {
  closed.store(1);
  for (auto& mark : marks) {
    Backoff backoff;
    while (mark.inside.load() != 0)
      if (!backoff.spin()) futexWait(mark.inside, 1, backoff.sleepNanoseconds());
  }
}

void Gate::open() {
  closed.store(0);
  futexWake(closed, INT_MAX);
}

}  // namespace vgpu
