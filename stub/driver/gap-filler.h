// The free pieces of the driver's blocks, reserved for a while, so that what the driver needs meanwhile gets a block of its own.
//
// Observed with driver 580.159 (H100): cuMemAddressReserve() without an address takes the same pieces as variables of modules, in
// the same order, without any memory, in 2 microseconds; with no piece left it maps something. A process that has loaded some
// modules has 30 to 150 pieces free.
//
// Used by a thread that calls the driver. Two at a time would give each other's pieces free, so one waits for the other; but not
// for long, for that one may load a module, which waits for work of its GPU, which may wait for what the first is to do next.
#pragma once

#include <chrono>
#include <mutex>
#include <vector>

#include "stub/driver/driver.h"

namespace vgpu::stub {

class GapFiller {
 public:
  // Reserves every piece. The context is the calling thread's current one.
  explicit GapFiller(const Driver& driver);
  ~GapFiller();
  GapFiller(const GapFiller&) = delete;
  GapFiller& operator=(const GapFiller&) = delete;

 private:
  static constexpr size_t most = 64 * 1024;  // 128 GiB of addresses: a driver that never maps does not place as described
  static constexpr std::chrono::seconds patience{1};
  static std::timed_mutex one;  // of the process

  std::unique_lock<std::timed_mutex> alone;
  const Driver& driver;
  std::vector<CUdeviceptr> reserved;
};

}  // namespace vgpu::stub
