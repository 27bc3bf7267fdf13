// A block: its warps, shared memory and barriers, and a launch as its blocks see it. One host thread runs a block at a
// time.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <random>

#include "stub/emulator/ptx/run/cluster.h"
#include "stub/emulator/ptx/run/device-launches.h"
#include "stub/emulator/ptx/run/shared-check.h"
#include "stub/emulator/ptx/run/warp.h"

namespace vgpu::emulator {

// What all blocks of a launch share.
struct Grid {
  Grid(const Launch& launch, WaitingWork& waiting) : launch(launch), serial(nextSerial()), launches(waiting) {}

  const Launch& launch;
  const uint64_t serial;              // tells launches apart: warps are used again, and addresses of kernels come back
  std::vector<std::byte> parameters;  // padded to what the kernel reads
  std::array<std::byte, 4096> workspace{};  // cooperative groups' grid barrier
  std::atomic<bool> stopped{false};         // a fault elsewhere, or cancelled
  std::mutex mutex;                         // guards fault
  std::optional<Fault> fault;
  DeviceLaunches launches;

  void report(Fault);
  uint32_t clusterBlocks() const { return launch.cluster[0] * launch.cluster[1] * launch.cluster[2]; }
  // The number of the block that has `rank` in a cluster.
  uint64_t blockOf(uint64_t cluster, uint32_t rank) const;

 private:
  static uint64_t nextSerial() {
    static std::atomic<uint64_t> last{0};
    return ++last;
  }
};

// Those that programs name by number; a split that waits at the cluster's has the number behind them, and one that waits for the
// other warps of its warpgroup the numbers from there on.
constexpr int blockBarriers = 16, clusterBarrierIndex = 16, firstWarpgroupIndex = 17;
constexpr uint32_t warpgroupWarps = 4, mostWarpgroups = 8;

struct Barrier {
  uint32_t arrived = 0;                    // threads
  uint32_t expected = 0;                   // 0: every thread of the block that still lives
  uint32_t waiting = 0;                    // threads that wait (bar.arrive does not)
  uint32_t count = 0, against = 0, all = ~0u, any = 0;  // bar.red: threads whose predicate holds, and whose does not
};

// Shared memory that the system keeps of every block. The device code of cooperative groups has what tiles of several warps exchange in
// its second area, of 288 bytes or more (cooperative_groups/details/memory.h). Hardware places it before a program's own; here it lies
// behind the most that a block can have, so that accesses past the end of that are still found.
constexpr uint32_t reservedSharedBase = 0x800000, reservedSharedBytes = 1024, secondReservedArea = reservedSharedBase + 256;

// Four neighbouring warps on their way into an instruction of all of them.
struct Warpgroup {
  const Inst* at = nullptr;  // nullptr: nobody has arrived
  uint32_t arrived = 0;      // warps, a bit each
  std::array<std::byte*, warpgroupWarps> frames{};
};

class Block {
 public:
  // arrived: no thread can go on before other blocks of the cluster come to its barrier. waiting: nor could any since the last run.
  enum class Outcome { done, yielded, arrived, waiting, faulted };

  // Makes this object block `index` of the grid; memory of an earlier block is used again.
  void begin(Grid&, uint64_t index);
  // Makes it a block of a cluster, which has no others otherwise.
  void join(Cluster& cluster, uint32_t rank);
  // Runs until the block is done, faults, or only spins: then others should run before it continues.
  Outcome run();

  Grid& grid() { return *launchGrid; }
  const Launch& launch() const { return launchGrid->launch; }
  const Kernel& kernel() const { return *launchGrid->launch.kernel; }
  std::array<uint32_t, 3> index() const { return position; }
  uint64_t linear() const { return number; }
  std::byte* shared() { return sharedMemory.data(); }
  uint64_t sharedBytes() const { return sharedSize; }
  // Hardware gives it in larger units: compilers read a whole vector of which only a part is there.
  uint64_t readableSharedBytes() const { return (sharedSize + largestVector - 1) / largestVector * largestVector; }
  std::byte* reservedShared() { return sharedMemory.data() + readableSharedBytes(); }
  uint32_t threads() const { return threadCount; }
  SharedCheck* check() { return activeCheck; }  // nullptr if the launch asks for none

  // What the threads of a warp vote with bar.red. Those that a count includes though they never lived have no vote.
  struct Votes {
    uint32_t yes = 0, no = 0;
  };
  // Threads of a warp arrive at a barrier. Returns true if that completed the barrier: results are in red(), and those who
  // waited are ready.
  bool arrive(int barrier, uint32_t expected, uint32_t threads, Votes votes, bool waits);
  const Barrier& red(int barrier) const { return results[barrier]; }
  // As many of those that have ended had arrived at the cluster's barrier.
  void threadsExited(uint32_t count, uint32_t arrivedAtCluster);
  void arriveAtCluster(uint32_t threads);
  // The error of the thread's last CUDA call that failed, until it is asked for: a cudaError_t.
  uint32_t& deviceError(uint32_t thread) {
    deviceErrors.resize(threadCount);
    return deviceErrors[thread];
  }
  Warpgroup& warpgroup(uint32_t index) { return warpgroups[index]; }
  // Lets the warps go on that have arrived there.
  void releaseWarpgroup(uint32_t index);
  void releaseFromCluster();
  Cluster& cluster() { return *owner; }
  uint32_t rank() const { return rankInCluster; }
  uint32_t living() const { return livingThreads; }
  // Says of a thread that it waits for ever.
  Outcome stuck();

  std::string output;  // printf

 private:
  void complete(int barrier);

  Grid* launchGrid = nullptr;
  std::array<uint32_t, 3> position{};
  uint64_t number = 0;
  uint32_t threadCount = 0, livingThreads = 0;
  Cluster alone, *owner = nullptr;
  uint32_t rankInCluster = 0;
  std::vector<std::unique_ptr<Warp>> warps;
  std::vector<uint32_t> order;
  size_t warpCount = 0;
  static constexpr uint64_t largestVector = 16;
  std::vector<std::byte> sharedMemory;
  uint64_t sharedSize = 0;
  SharedCheck* activeCheck = nullptr;
  std::unique_ptr<SharedCheck> ownCheck;
  std::array<Barrier, blockBarriers> barriers, results;
  std::array<Warpgroup, mostWarpgroups> warpgroups;
  std::vector<uint32_t> deviceErrors;  // of no thread if no CUDA call of the block has failed
  bool progress = false;
};

}  // namespace vgpu::emulator
