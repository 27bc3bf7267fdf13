// A block: its warps, shared memory and barriers, and a launch as its blocks see it. One host thread runs a block at a
// time.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <random>

#include "stub/emulator/ptx/run/shared-check.h"
#include "stub/emulator/ptx/run/warp.h"

namespace vgpu::emulator {

// What all blocks of a launch share.
struct Grid {
  explicit Grid(const Launch& l) : launch(l), serial(nextSerial()) {}

  const Launch& launch;
  const uint64_t serial;              // tells launches apart: warps are used again, and addresses of kernels come back
  std::vector<std::byte> parameters;  // padded to what the kernel reads
  std::array<std::byte, 4096> workspace{};  // cooperative groups' grid barrier
  std::atomic<bool> stopped{false};         // a fault elsewhere, or cancelled
  std::mutex mutex;                         // guards fault
  std::optional<Fault> fault;

  void report(Fault);

 private:
  static uint64_t nextSerial() {
    static std::atomic<uint64_t> last{0};
    return ++last;
  }
};

// The sixteen that programs name, and one for the cluster of this one block.
constexpr int clusterBarrierIndex = 16, blockBarriers = 17;

struct Barrier {
  uint32_t arrived = 0;                    // threads
  uint32_t expected = 0;                   // 0: every thread of the block that still lives
  uint32_t waiting = 0;                    // threads that wait (bar.arrive does not)
  uint32_t count = 0, all = ~0u, any = 0;  // bar.red
};

class Block {
 public:
  enum class Outcome { done, yielded, faulted };

  // Makes this object block `index` of the grid; memory of an earlier block is used again.
  void begin(Grid&, uint64_t index);
  // Runs until the block is done, faults, or only spins: then others should run before it continues.
  Outcome run();

  Grid& grid() { return *launchGrid; }
  const Launch& launch() const { return launchGrid->launch; }
  const Kernel& kernel() const { return *launchGrid->launch.kernel; }
  std::array<uint32_t, 3> index() const { return position; }
  uint64_t linear() const { return number; }
  std::byte* shared() { return sharedMemory.data(); }
  uint64_t sharedBytes() const { return sharedSize; }
  uint32_t threads() const { return threadCount; }
  SharedCheck* check() { return activeCheck; }  // nullptr if the launch asks for none

  // Threads of `warp` arrive at a barrier; `contribute` is each one's value of bar.red. Returns true if that
  // completed the barrier: results are in red(), and those who waited are ready.
  bool arrive(int barrier, uint32_t expected, uint32_t threads, uint32_t trueThreads, bool waits);
  const Barrier& red(int barrier) const { return results[barrier]; }
  void threadsExited(uint32_t count);

  std::string output;  // printf

 private:
  void complete(int barrier);
  Outcome stuck();

  Grid* launchGrid = nullptr;
  std::array<uint32_t, 3> position{};
  uint64_t number = 0;
  uint32_t threadCount = 0, living = 0;
  std::vector<std::unique_ptr<Warp>> warps;
  std::vector<uint32_t> order;
  size_t warpCount = 0;
  std::vector<std::byte> sharedMemory;
  uint64_t sharedSize = 0;
  SharedCheck* activeCheck = nullptr;
  std::unique_ptr<SharedCheck> ownCheck;
  std::array<Barrier, blockBarriers> barriers, results;
  bool progress = false;
};

}  // namespace vgpu::emulator
