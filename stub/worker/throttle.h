// Keeps the GPU's own queue short: what the worker has not issued stays in the ring and can travel with a snapshot.
//
// Used by the working thread; one a device. An event is recorded behind every group of launches, and the last launch of
// a group goes only when the group before the last has ended: 191 launches in flight at most, and 127 are left when the
// next may go, hundreds of microseconds of the fastest kernels, so the GPU does not run dry while the worker looks
// elsewhere. A record costs a third of a launch, so groups are large.
#pragma once

#include <array>

#include "stub/device/driver.h"

namespace vgpu::stub {

class Throttle {
 public:
  // A launch has gone to `stream` of the current context.
  void launched(const Driver& driver, CUstream stream) {
    if (++launches % groupLaunches != 0) return;
    CUevent& event = events[launches / groupLaunches % groups];
    if (event == nullptr && driver.cuEventCreate(&event, CU_EVENT_DISABLE_TIMING) != CUDA_SUCCESS) return;
    driver.cuEventRecord(event, stream);
  }

  // Whether another launch may go now. A faulted context has room: the launch will say what is wrong.
  bool hasRoom(const Driver& driver) const {
    if ((launches + 1) % groupLaunches != 0) return true;
    CUevent event = events[(launches + 1) / groupLaunches % groups];
    return event == nullptr || driver.cuEventQuery(event) != CUDA_ERROR_NOT_READY;
  }

 private:
  static constexpr uint64_t groupLaunches = 64, groups = 2;
  std::array<CUevent, groups> events{};  // the context's; they end with it
  uint64_t launches = 0;
};

}  // namespace vgpu::stub
