// What the threads of one grid have asked the device runtime for: launches, copies and fills, which wait until the grid's blocks
// have ended; and the numbers of its streams and events.
//
// A launch takes two calls. The first gives the thread a parameter buffer, an address in parameterBufferWindow that it writes the
// child's parameters to; the second adds the child to the work that waits. The buffer's bytes are the child's parameters, and
// stay where they are until the grid has ended: warps keep the places of buffers they have written to.
//
// Threads: blocks of a grid run on several threads of the host, and `mutex` guards everything here; it is the last lock taken.
// Work of one thread of the grid keeps the order of its calls. The thread that runs the grid takes the work when runOnWorkers()
// has returned; the pool's mutex orders that behind all that the blocks wrote, so children see it. Freed with its grid: nothing
// of it survives a launch, and a session suspends between launches.
#pragma once

#include <atomic>
#include <deque>
#include <mutex>
#include <set>
#include <variant>
#include <vector>

#include "stub/emulator/ptx/run/device-copies.h"
#include "stub/emulator/ptx/run/device-runtime.h"
#include "stub/emulator/ptx/run/windows.h"

namespace vgpu::emulator {

struct ChildGrid {
  const Kernel* kernel = nullptr;
  GridShape shape;
  std::vector<std::byte> parameters;
};
using DeviceWork = std::variant<ChildGrid, DeviceCopy, DeviceFill>;

// When work may begin: after the grid's blocks, or after these and all of the grid's other descendants (cudaStreamTailLaunch).
enum class Order : uint8_t { child, tail };

// How much work waits in all grids that descend from one launch by the host. The counts only bound it, and no other data is read
// by means of them, so their operations are relaxed.
struct WaitingWork {
  std::atomic<uint64_t> all{0};    // parameter buffers that are not launched included
  std::atomic<uint64_t> tails{0};  // of these
};

// CUDA's limit of pending launches (cudaLimitDevRuntimePendingLaunchCount) counts launches that cannot begin yet. Hardware begins
// children while their parent runs: an H200 (driver 580.159) takes 20,000 launches from one thread under a limit of 2048, and no
// more than 2048 tail launches. Here children begin later, so the limit is for tail launches alone, and this one bounds the
// memory.
constexpr uint64_t mostWaitingWork = 1 << 17;

// Addresses of parameter buffers: each begins at a multiple of this. PTX allows 32,764 bytes of parameters.
constexpr uint64_t mostParameterBytes = 32 << 10;

class DeviceLaunches {
 public:
  explicit DeviceLaunches(WaitingWork& waiting) : waiting(waiting) {}
  DeviceLaunches(const DeviceLaunches&) = delete;

  // ---- launches
  // A buffer of child.parameters.size() bytes, at most mostParameterBytes; 0 if too much work waits.
  uint64_t newBuffer(ChildGrid child);
  // The buffer that holds `address`, unless it has been launched.
  std::optional<Memory::Region> findBuffer(uint64_t address);
  enum class Launched { yes, tooMany, noBuffer };
  // `as`, if there is one, says which kernel is launched and in which shape; otherwise newBuffer() was told.
  Launched launch(uint64_t buffer, Order, uint64_t mostTails, const ChildGrid* as = nullptr);
  // False if too much work waits.
  bool add(DeviceWork work, Order, uint64_t mostTails);

  // ---- handles: the order of launches is one that streams and events allow, so both are numbers
  uint64_t newStream();
  bool isStream(uint64_t handle);
  uint64_t newEvent(uint64_t mostEvents);  // 0 if there are that many
  bool isEvent(uint64_t handle);
  bool destroyEvent(uint64_t handle);

  // ---- when the grid's blocks have ended
  struct Work {
    std::deque<DeviceWork> children, tails;
    bool empty() const { return children.empty() && tails.empty(); }
  };
  Work take();

 private:
  struct Buffer {
    ChildGrid child;
    bool launched = false;
  };
  std::deque<DeviceWork>& listOf(Order order) { return order == Order::tail ? work.tails : work.children; }
  Buffer* bufferAt(uint64_t address);

  WaitingWork& waiting;
  std::mutex mutex;
  std::deque<Buffer> buffers;  // by number; none is used again
  Work work;
  uint64_t streams = 0, eventsMade = 0;
  std::set<uint64_t> events;
};

}  // namespace vgpu::emulator
