// Elapsed times of the daemon's operations, for their reports.
#pragma once

#include <kj/time.h>

namespace vgpu::daemon {

inline kj::TimePoint now() { return kj::systemPreciseMonotonicClock().now(); }
inline double secondsSince(kj::TimePoint time) { return (now() - time) / kj::NANOSECONDS / 1e9; }

}  // namespace vgpu::daemon
