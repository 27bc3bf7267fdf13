// The free pieces of the driver's blocks, reserved for a while, so that what the driver needs meanwhile gets a block of its own.
//
// Observed with driver 580.159 (H100): cuMemAddressReserve() without an address takes the same pieces as variables of modules, in
// the same order, without any memory, in 2 microseconds; with no piece left it maps something. A process that has loaded some
// modules has 30 to 150 pieces of 2 MiB free, most of them side by side: the largest first takes fewer calls.
//
// Used by a thread that calls the driver. Two at a time would give each other's pieces free, so one waits for the other; but not
// for long, for that one may load a module, which waits for work of its GPU, which may wait for what the first is to do next.
#pragma once

#include <chrono>
#include <mutex>
#include <vector>

#include "stub/driver/driver.h"
#include "vgpu/base/sizes.h"

namespace vgpu::stub {

class GapFiller {
 public:
  // Reserves every piece. The context is the calling thread's current one.
  explicit GapFiller(const Driver& driver);
  // Those too that have become free since, as the rest of a block that was mapped meanwhile.
  void reserveFree();
  ~GapFiller();
  GapFiller(const GapFiller&) = delete;
  GapFiller& operator=(const GapFiller&) = delete;

 private:
  bool reserveOne(uint64_t bytes);

  static constexpr uint64_t mostBytes = 128 * GiB;  // a driver that never maps does not place as described
  static constexpr std::chrono::seconds patience{1};
  static std::timed_mutex one;  // of the process

  std::unique_lock<std::timed_mutex> alone;
  const Driver& driver;
  struct Piece {
    CUdeviceptr address;
    uint64_t bytes;
  };
  std::vector<Piece> reserved;
  uint64_t reservedBytes = 0;
};

}  // namespace vgpu::stub
