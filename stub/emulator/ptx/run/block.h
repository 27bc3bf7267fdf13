// A block: its warps, shared memory and barriers; and the state of a launch that its blocks share. One host thread runs a block at a time.
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

// Shared by all blocks of a launch.
struct Grid {
  Grid(const Launch& launch, WaitingWork& waiting) : launch(launch), serial(nextSerial()), launches(waiting) {}

  const Launch& launch;
  const uint64_t serial;              // identifies the launch: warps are reused, and addresses of kernels too
  std::vector<std::byte> parameters;  // padded to the size that the kernel reads
  std::array<std::byte, 4096> workspace{};  // for cooperative groups' grid barrier
  std::atomic<bool> stopped{false};         // a fault in another block, or cancelled
  std::mutex mutex;                         // guards fault
  std::optional<Fault> fault;
  DeviceLaunches launches;

  void report(Fault);
  uint32_t clusterBlocks() const { return launch.cluster[0] * launch.cluster[1] * launch.cluster[2]; }
  // The index of the block with `rank` in a cluster.
  uint64_t blockOf(uint64_t cluster, uint32_t rank) const;

 private:
  static uint64_t nextSerial() {
    static std::atomic<uint64_t> last{0};
    return ++last;
  }
};

// Number of barriers that programs name. A split that waits at the cluster's barrier has the next number; one that waits for the other
// warps of its warpgroup has a number from firstWarpgroupIndex on.
constexpr int blockBarriers = 16, clusterBarrierIndex = 16, firstWarpgroupIndex = 17;
constexpr uint32_t warpgroupWarps = 4, mostWarpgroups = 8;

struct Barrier {
  uint32_t arrived = 0;                    // threads
  uint32_t expected = 0;                   // 0: every living thread of the block
  uint32_t waiting = 0;                    // threads that wait (bar.arrive does not)
  uint32_t count = 0, against = 0, all = ~0u, any = 0;  // bar.red: number of threads with a true and a false predicate, and the and and or
                                                        // of all
};

// Shared memory that the system reserves in every block. In its second area, of at least 288 bytes, the device code of cooperative groups
// exchanges data between the warps of a tile (cooperative_groups/details/memory.h). Hardware places the reserved memory before the
// program's; here it lies behind the largest shared memory of a block, so that accesses past the end of that are still found.
constexpr uint32_t reservedSharedBase = 0x800000, reservedSharedBytes = 1024, secondReservedArea = reservedSharedBase + 256;

// Four adjacent warps that arrive at an instruction for the whole warpgroup.
struct Warpgroup {
  const Inst* at = nullptr;  // nullptr: no warp has arrived
  uint32_t arrived = 0;      // one bit for each warp
  std::array<std::byte*, warpgroupWarps> frames{};
};

class Block {
 public:
  // arrived: no thread can go on before other blocks of the cluster arrive at its barrier. waiting: the same, and none has gone on since
  // the last run.
  enum class Outcome { done, yielded, arrived, waiting, faulted };

  // Makes this object block `index` of the grid; reuses an earlier block's memory.
  void begin(Grid&, uint64_t index);
  // Makes it a block of a cluster; without this call it is alone in one.
  void join(Cluster& cluster, uint32_t rank);
  // Runs until the block is done, faults, or only spins, in which case others must run before it continues.
  Outcome run();

  Grid& grid() { return *launchGrid; }
  const Launch& launch() const { return launchGrid->launch; }
  const Kernel& kernel() const { return *launchGrid->launch.kernel; }
  std::array<uint32_t, 3> index() const { return position; }
  uint64_t linear() const { return number; }
  std::byte* shared() { return sharedMemory.data(); }
  uint64_t sharedBytes() const { return sharedSize; }
  // Rounded up as on hardware: compilers read a whole vector of which only a part is in range.
  uint64_t readableSharedBytes() const { return (sharedSize + largestVector - 1) / largestVector * largestVector; }
  std::byte* reservedShared() { return sharedMemory.data() + readableSharedBytes(); }
  uint32_t threads() const { return threadCount; }
  SharedCheck* check() { return activeCheck; }  // nullptr if the launch requests none

  // The predicates of a warp's threads in bar.red. Threads of a warp that never existed count for the barrier, but have no vote.
  struct Votes {
    uint32_t yes = 0, no = 0;
  };
  // Threads of a warp arrive at a barrier. Returns true if that completes the barrier: results are in red(), and the waiting threads are
  // ready.
  bool arrive(int barrier, uint32_t expected, uint32_t threads, Votes votes, bool waits);
  const Barrier& red(int barrier) const { return results[barrier]; }
  // `arrivedAtCluster`: the number of ended threads that had arrived at the cluster's barrier.
  void threadsExited(uint32_t count, uint32_t arrivedAtCluster);
  void arriveAtCluster(uint32_t threads);
  // The last error of the thread's CUDA calls, until it is read: a cudaError_t.
  uint32_t& deviceError(uint32_t thread) {
    deviceErrors.resize(threadCount);
    return deviceErrors[thread];
  }
  Warpgroup& warpgroup(uint32_t index) { return warpgroups[index]; }
  // Releases the warps that have arrived there.
  void releaseWarpgroup(uint32_t index);
  void releaseFromCluster();
  Cluster& cluster() { return *owner; }
  uint32_t rank() const { return rankInCluster; }
  uint32_t living() const { return livingThreads; }
  // Reports a thread that waits for ever.
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
  std::vector<uint32_t> deviceErrors;  // empty if no CUDA call of the block has failed
  bool progress = false;
};

}  // namespace vgpu::emulator
