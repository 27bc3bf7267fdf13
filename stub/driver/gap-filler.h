// Reserves all free pieces of the driver's blocks for a while, so that a load in that time gets a block of its own.
//
// Observed with driver 580.159 (H100): cuMemAddressReserve() without an address takes the same pieces as variables of modules, in the same
// order, without allocating memory, in 2 microseconds; if no piece is left it maps something. A process that has loaded some modules has 30
// to 150 free pieces of 2 MiB, most of them adjacent: taking the largest first needs fewer calls.
//
// Used by a thread that calls the driver. Two fillers at a time would free each other's pieces, so the second waits for the first; but only
// for `patience`, because the first may load a module, which waits for work of its GPU, which may wait for a later call of the second
// thread.
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
  // Reserves also pieces that have become free since, such as the rest of a block that was mapped meanwhile.
  void reserveFree();
  ~GapFiller();
  GapFiller(const GapFiller&) = delete;
  GapFiller& operator=(const GapFiller&) = delete;

 private:
  bool reserveOne(uint64_t bytes);

  static constexpr uint64_t mostBytes = 128 * GiB;  // for a driver that never maps, contrary to the above
  static constexpr std::chrono::seconds patience{1};
  static std::timed_mutex one;  // for the process

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
