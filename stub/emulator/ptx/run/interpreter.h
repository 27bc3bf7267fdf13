// Runs a kernel: warps of 32 threads in lock step, blocks on all cores.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>

#include "stub/emulator/ptx/run/device-runtime.h"
#include "stub/emulator/ptx/run/image-views.h"
#include "stub/emulator/ptx/run/kernel.h"

namespace vgpu::emulator {

class DeviceGraphs;

// Device memory as kernels access it. Implemented by the device; called by many threads at once while kernels run.
class Memory {
 public:
  struct Region {
    uint64_t base, bytes;  // device addresses [base, base + bytes)
    std::byte* host;       // address of `base` in this process
    bool writable;
  };
  virtual ~Memory() = default;
  // The mapped region that contains `address`; nothing if there is none. A region stays valid until the kernel ends.
  virtual std::optional<Region> find(uint64_t address) const = 0;
  // For reports: "8 bytes past the end of the 4096-byte allocation at 0x…, made by …" or "no allocation near".
  virtual std::string describe(uint64_t address) const = 0;
};

// Launch::checks
constexpr uint32_t checkUninitialized = 1;  // reads of shared memory that has not been written
constexpr uint32_t checkRaces = 2;          // unordered accesses to shared memory

struct Launch {
  const Kernel* kernel;
  std::array<uint32_t, 3> grid{1, 1, 1}, block{1, 1, 1};
  std::array<uint32_t, 3> cluster{1, 1, 1};  // blocks in each cluster; divides the grid
  bool explicitCluster = false;              // given by the launch or the kernel
  uint32_t dynamicSharedBytes = 0;
  bool cooperative = false;               // every block is resident: grid.sync() works
  std::span<const std::byte> parameters;  // the parameter block, in the layout of parametersOf()
  Memory* memory;
  const ImageViews* images = nullptr;  // texture and surface objects; nullptr: there are none
  int workers = 1;                     // host threads to run blocks on
  uint64_t schedule = 0;               // 0: blocks and warps in order; else the seed of a shuffle
  uint64_t maxInstructions = 0;        // of a warp, 0: no limit; beyond it the kernel faults with Fault::timeout
  const std::atomic<bool>* cancelled = nullptr;
  uint32_t checks = 0;                      // errors to look for besides faults: slow
  uint32_t smCount = 132, warpsPerSm = 64;  // %nsmid, %nwarpid
  uint32_t stackBytes = 64 * 1024;          // a thread's local memory, including the kernel's own frame
  // The heap of device malloc(): zeroed before the first kernel, then left alone (the allocator's book-keeping lies inside it, so it moves
  // with the memory). 0 bytes: malloc() returns nullptr.
  uint64_t heapBase = 0, heapBytes = 0;
  // Implements cudaGraphSetConditional() of device code; empty for a kernel that was not launched by a graph.
  std::function<void(uint64_t number, uint32_t value)> setCondition = {};
  DeviceRuntime* runtime = nullptr;  // serves CUDA calls by kernels; nullptr: they are refused
  DeviceGraphs* graphs = nullptr;    // likewise for calls about graphs
};

// A kernel's fault, by the driver's classification, with a report for the user.
struct Fault {
  enum class Kind {
    illegalAddress,
    misalignedAddress,
    illegalInstruction,
    invalidAddressSpace,
    invalidPc,
    stackOverflow,
    assertion,
    trap,
    timeout,
    notSupported,
    divergentBarrier,
    sharedOutOfRange,
    uninitializedShared,
    sharedRace
  };
  Kind kind;
  std::string report;  // kernel, block, thread, PTX line (and source line from .loc), address, nearest allocation
};

// Runs the kernel and all that it launches, to the end or to the first fault. printf() output goes to `output` (the worker's stdout
// buffer): kernel by kernel in the order of execution, and for each in block order if the schedule is deterministic.
std::optional<Fault> run(const Launch&, std::string& output);

}  // namespace vgpu::emulator
