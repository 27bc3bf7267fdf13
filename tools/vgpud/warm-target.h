// How many workers should wait ready: at least as many as the daemon was told to keep, and more while programs arrive faster than that.
// Each program that found no worker raises the number by one; each interval without such a program lowers it again.
#pragma once

#include <kj/time.h>

#include <algorithm>

namespace vgpu::daemon {

class WarmTarget {
 public:
  // With `least` 0 no worker is kept, however fast programs arrive. `lasting`: how long an additional worker is kept.
  WarmTarget(unsigned least, unsigned most, kj::Duration lasting)
      : least(least), most(least == 0 ? 0 : std::max(least, most)), lasting(lasting), wanted(least) {}

  unsigned count() const { return wanted; }

  // A program has found no worker. `hasRoom`: whether the machine has memory for one more.
  void missed(kj::TimePoint now, bool hasRoom) {
    since = now;
    if (hasRoom && wanted < most) ++wanted;
  }
  // Call it periodically.
  void pass(kj::TimePoint now) {
    if (wanted == least || now - since < lasting) return;
    since = now;
    --wanted;
  }

 private:
  const unsigned least, most;
  const kj::Duration lasting;
  unsigned wanted;
  kj::TimePoint since = kj::origin<kj::TimePoint>();
};

}  // namespace vgpu::daemon
