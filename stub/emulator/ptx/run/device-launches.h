// Device runtime requests of one grid's threads: launches, copies and fills, which wait until the grid's blocks have ended; and the handles
// of its streams and events.
//
// A launch takes two calls. The first gives the thread a parameter buffer, an address in parameterBufferWindow to which it writes the
// child's parameters; the second adds the child to the waiting work. The buffer's bytes are the child's parameters, and keep their address
// until the grid has ended, because warps cache the places of buffers that they have written to.
//
// Threads: the blocks of a grid run on several host threads, and `mutex` guards everything here; it is a leaf. Work of one thread of the
// grid keeps the order of its calls. The thread that runs the grid takes the work after runOnWorkers() has returned; the pool's mutex makes
// all writes of the blocks happen before that, so children see them. Freed with its grid: nothing of it survives a launch, and a session
// suspends between launches.
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

// When work may begin: after the grid's blocks, or (cudaStreamTailLaunch) after these and all other descendants of the grid.
enum class Order : uint8_t { child, tail };

// The waiting work of all grids that descend from one launch by the host. The counts are only limits and order no other data, so their
// operations are relaxed.
struct WaitingWork {
  std::atomic<uint64_t> all{0};    // including parameter buffers that have not been launched
  std::atomic<uint64_t> tails{0};  // of these, the tail launches
};

// CUDA's limit of pending launches (cudaLimitDevRuntimePendingLaunchCount) counts launches that cannot begin yet. Hardware begins children
// while their parent runs: an H200 (driver 580.159) accepts 20,000 launches from one thread under a limit of 2048, but no more than 2048
// tail launches. Here children begin later, so that limit applies only to tail launches, and this one bounds the memory.
constexpr uint64_t mostWaitingWork = 1 << 17;

// The spacing of parameter buffers' addresses. PTX allows 32,764 bytes of parameters.
constexpr uint64_t mostParameterBytes = 32 << 10;

class DeviceLaunches {
 public:
  explicit DeviceLaunches(WaitingWork& waiting) : waiting(waiting) {}
  DeviceLaunches(const DeviceLaunches&) = delete;

  // ---- launches
  // A buffer of child.parameters.size() bytes, at most mostParameterBytes; 0 if too much work is waiting.
  uint64_t newBuffer(ChildGrid child);
  // The buffer that holds `address`, unless it has been launched.
  std::optional<Memory::Region> findBuffer(uint64_t address);
  enum class Launched { yes, tooMany, noBuffer };
  // `as`: the kernel and shape of the launch; if it is null, those given to newBuffer().
  Launched launch(uint64_t buffer, Order, uint64_t mostTails, const ChildGrid* as = nullptr);
  // False if too much work is waiting.
  bool add(DeviceWork work, Order, uint64_t mostTails);

  // ---- handles: streams and events allow the order in which launches are executed anyway, so both are only numbers
  uint64_t newStream();
  bool isStream(uint64_t handle);
  uint64_t newEvent(uint64_t mostEvents);  // 0 if there are that many
  bool isEvent(uint64_t handle);
  bool destroyEvent(uint64_t handle);

  // ---- after the grid's blocks have ended
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
  std::deque<Buffer> buffers;  // by number; none is reused
  Work work;
  uint64_t streams = 0, eventsMade = 0;
  std::set<uint64_t> events;
};

}  // namespace vgpu::emulator
