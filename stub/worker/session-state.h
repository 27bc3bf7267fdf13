// A worker's state of the session as a whole: the memory that it shares with the program, pinned memory, the node's image store, what
// kernels have printed, and the GPUs.
//
// Each GPU has a thread (worker.h). Members that several of them use have their own locks: pinned memory, the store, the output. The
// functions that make a context current are only for the one thread that works while no calls are executed.
//
// Of this, a snapshot keeps the bytes of memory, printed text that was not taken, and the positions in the rings; handles and leases are
// remade by executing recipes (docs/snapshot.md).
#pragma once

#include <capnp/common.h>
#include <cuda.h>
#include <kj/array.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "cuda-methods.h"
#include "stub/driver/driver.h"
#include "stub/worker/blobs.h"
#include "stub/worker/device-output.h"
#include "stub/worker/exchange.h"
#include "stub/worker/host-leases.h"
#include "stub/worker/images.h"
#include "stub/worker/libraries.h"
#include "stub/worker/physical-memory.h"
#include "stub/worker/shared-modules.h"
#include "stub/worker/shared-names.h"
#include "stub/worker/tile-state.h"
#include "vgpu/base/memory-file.h"
#include "vgpu/wire/fold-mode.h"
#include "vgpu/wire/launch-counters.h"
#include "vgpu/wire/segment.h"

namespace vgpu::stub {

class Execution;
class Reply;

class SessionState {
 public:
  // Begins with the first device. Throws kj::Exception if the driver refuses. `outputFile`: see DeviceOutput; `libraryFolder`: see
  // Libraries.
  explicit SessionState(const Driver& driver, const Images& images = {}, int outputFile = -1, std::string libraryFolder = {});
  ~SessionState();
  SessionState(const SessionState&) = delete;
  SessionState& operator=(const SessionState&) = delete;

  const Driver& driver;
  const Images images;
  HostLeases hostLeases;
  PhysicalMemory physical;
  TileState tiles;
  BlobUsage blobUsage;
  DeviceOutput output;
  FoldMode foldMode = FoldMode::AUTO;  // used if the program does not set a mode (folding.h)
  Libraries libraries;
  std::atomic<bool> prints{false};  // a module that may print has been loaded: see ImageFacts

  // What the session leaves in this process after everything that it made is destroyed, as text for a message; null if nothing is known.
  // Such a process serves no other session (Worker::recycle).
  std::atomic<const char*> residue{nullptr};

  // Held while modules with variables are loaded or unloaded for a GPU: where the driver places them must not depend on loads for another
  // GPU at the same time (module-groups.h). Locked before any other mutex. Its holder may compile for long, so a GPU's thread only tries to
  // lock it, and otherwise leaves the work to its SlowCalls; the exception is a captured call of a library.
  std::mutex moduleLoading;
  SharedModules sharedModules{driver};  // guarded by moduleLoading
  uint64_t modulesLoaded = 0;           // number of those in groups; guarded by moduleLoading

  // Asks other holders to free spare GPU memory, and waits. False if there is none. Called by any GPU's thread; set before calls are
  // executed, or null.
  std::function<bool()> makeRoom;

  // Starts the thread of a GPU, unless it runs. Called by the first GPU's thread; set by the worker.
  std::function<void(unsigned device)> startThread;

  // Objects shared with other sessions; null without a daemon. Set while no calls are executed.
  std::shared_ptr<Exchange> exchange;
  SharedNames sharedNames;
  // Withdraws or closes an object that is shared with other sessions. Waits for the daemon.
  void endSharing(api::Kind kind, uint64_t handle);

  // Runs `work` on the calling GPU's thread, in the middle of a call, while no other thread executes calls and no GPU has work. Set by the
  // worker.
  std::function<void(const std::function<void()>& work)> stopOthers;
  // Likewise runs `move`, which replaces physical memory that is mapped for that GPU. With `patience`: CUDA_ERROR_NOT_READY, and nothing is
  // moved, if a GPU still has work after that time.
  CUresult moveWhileIdle(Execution& on, const std::function<CUresult()>& move, std::optional<std::chrono::milliseconds> patience = {});

  // How many of the GPUs' threads sleep until another ring has reached a position. Any thread that executes a frame wakes them by
  // wakeThreads, which the worker sets.
  std::atomic<unsigned> awaiting{0};
  std::function<void()> wakeThreads;

  unsigned deviceCount() const { return static_cast<unsigned>(executions.size()); }
  // Throws BadHandle if there is no such device.
  Execution& of(unsigned device) const;
  // Makes the session use a device, unless it does: creates its context, and gives all used devices access to each other's leased memory.
  // Any thread; its current context stays. CUDA's result if no context is created; throws kj::Exception on other failures.
  CUresult use(unsigned device);
  // of() for a device, after use(). Throws kj::Exception if it cannot be used.
  Execution& begun(unsigned device);
  // begun(), with the device's context made current for the calling thread.
  Execution& select(unsigned device);
  // Describes the GPU in messages: "GPU 0 here, NVIDIA H200 (compute capability 9.0)".
  std::string nameOf(unsigned device) const;
  // After a restore: the devices as the program first saw them, which a snapshot keeps.
  struct SeenDevice {
    std::string name, uuid;
    uint64_t memoryBytes = 0, capability = 0;  // capability: major * 10 + minor
  };
  std::vector<SeenDevice> seen;
  // One of the session's devices that cannot access the memory of `device`; nothing if all can. Throws kj::Exception.
  std::optional<unsigned> findUnreaching(unsigned device) const;
  // Whether the session uses the device. Any thread.
  bool isUsed(unsigned device) const;
  // The devices that the session uses, in order.
  std::vector<unsigned> usedDevices() const;
  // Whether the program has discarded a device after a fault (Execution::end).
  bool isEnded(unsigned device) const;

  // Executes a frame on `device`, as Execution::execute() does.
  CUresult execute(api::Method method, unsigned device, kj::ArrayPtr<const capnp::word> words, uint64_t position, uint32_t slot,
                   Reply& reply);

  // The session's memory. attach() maps it, registers it with the driver, and detaches what was attached before.
  void attach(MemoryFile segmentFile, MemoryFile hostArenaFile);
  bool isAttached() const { return segment != nullptr; }
  const Segment& shared() const { return *segment; }
  const MemoryFile& sharedFile() const { return segmentFile; }
  const MemoryFile& hostArenaFile() const { return hostArena; }
  // Leases pinned memory: of the host arena, or, if `place` is not 0, of the virtual machine's memory that contains the segment.
  CUresult leaseHost(uint64_t address, uint64_t bytes, uint64_t place) {
    return place == 0 ? hostLeases.lease(address, bytes, hostArena)
                      : hostLeases.leasePiece(address, bytes, place, segmentFile, hostArena);
  }
  // Refuses a lease that is mapped a second time. `ifIdle`: CUDA_ERROR_NOT_READY if a GPU has work: the driver would wait for all of it,
  // and that work may wait for a frame that the calling thread cannot execute meanwhile.
  CUresult endHostLease(Execution& on, uint64_t address, bool ifIdle) {
    if (physical.mapsHost(address, hostLeases.bytesAt(address))) return CUDA_ERROR_INVALID_VALUE;
    const auto end = [&] { return hostLeases.endLease(address, hostArena); };
    return ifIdle ? moveWhileIdle(on, end, std::chrono::milliseconds(0)) : end();
  }
  // Memory of the host: a part of the host arena, or, if arenaAddress is 0, a file that the program has given.
  struct HostSource {
    uint64_t arenaAddress;
    SharedName file;
    uint64_t offset;  // in the file
    bool isReadOnly;  // GPUs may not write it
    template <typename Params>
    static HostSource in(const Params& p, uint64_t offset = 0, bool isReadOnly = false) {
      return {p.getArenaAddress(), {p.getFirst(), p.getSecond()}, offset, isReadOnly};
    }
  };
  // Functions that map it at an address of the program's, or at one that the program has reserved. They take a while, and wait for the
  // daemon.
  std::function<CUresult()> adoptingHost(uint64_t address, uint64_t bytes, const HostSource& from);
  std::function<CUresult()> mappingHost(uint64_t address, uint64_t bytes, const HostSource& from);
  CUdeviceptr gpuAddress(const void* inSegment) const;
  // Registers the slab's memory with the driver, before a GPU gets work with it. Any GPU's thread. CUDA's result.
  CUresult registerSlab(uint32_t slab) {
    if (slabGroups[slab / slabsOfGroup].load(std::memory_order_acquire)) return CUDA_SUCCESS;
    return registerSlabGroup(slab / slabsOfGroup);
  }

  // Counts launches in `counters` from now on.
  void countIn(LaunchCounters& counters);

  // Stores in the shared memory whether there is any output.
  void tellOutput() { output.tell(shared().header().outputWaits); }

  // Records a fault, also in the shared memory, where the program's threads read it. Whichever device it happened on, the driver does
  // nothing more for this process on any (580.159, H200: every context returns the error, and no context can be created).
  void noteFault(CUresult code);
  // Records the first error of posted work.
  void noteDeferred(unsigned device, CUresult code);

  // Waits for all work of all devices. CUDA's result.
  CUresult synchronize();
  // The same, calling `waiting` ten times a second with the name of a running kernel, empty if it is not known. Exceptions from `waiting`
  // are passed on.
  using Waiting = std::function<void(const std::string& kernel)>;
  CUresult awaitIdle(const Waiting& waiting);
  // Waits at most that long. False if a GPU still has work then.
  bool isIdleWithin(std::chrono::milliseconds patience);
  // The readable name of the kernel that was launched last into a stream that has work; empty if it is not known.
  std::string busyKernel(unsigned device);
  // Waits for the slow calls of all devices, at most `limit` for each device. False if some are left.
  bool finishSlowCalls(std::chrono::milliseconds limit);
  // Destroys the graphs into which launches have been folded, of all devices. They are made again when needed.
  void dropGraphs();
  // Runs the continuations of all devices whose fences have passed. False if some are left, or if they have added slow calls.
  bool continueLater();

  // Destroys all that the session has made, while the GPUs are idle. Throws kj::Exception if the driver refuses.
  void destroyAll();

  // As Execution::ownsMemory().
  bool ownsMemory(uint64_t address, uint64_t bytes) const;
  // The device in whose memory that address of an allocation or mapping lies; nothing if it lies in none.
  std::optional<unsigned> deviceAt(uint64_t address) const;

 private:
  // Waits until no device has work: true. False as soon as `goesOn`, called for a device with work, returns false.
  bool pollIdle(const std::function<bool(unsigned device)>& goesOn);
  void detach();
  CUresult registerSegment(std::byte* base);  // in the current context, for all contexts
  CUresult registerSlabGroup(uint32_t group);
  // The file that the program has given by that name; nothing if there is none. Waits for the daemon.
  std::optional<kj::AutoCloseFd> givenFile(const SharedName& name) { return exchange == nullptr ? std::nullopt : exchange->file(name); }

  std::vector<std::unique_ptr<Execution>> executions;  // by device
  std::mutex beginning;  // held while the session begins to use a device; locked before the leases' mutexes
  std::unique_ptr<Segment> segment;
  MemoryFile segmentFile, hostArena;
  Mapping hostArenaMapping;
  CUdeviceptr segmentOnGpu = 0;
  // Slabs are registered in groups, each when one of its slabs is first used: allocating all their pages takes longer than a short program
  // runs.
  static constexpr uint32_t slabsOfGroup = 8;
  std::array<std::atomic<bool>, slabCount / slabsOfGroup> slabGroups{};  // whether registered; stored (release) under the mutex, a leaf
  std::mutex slabRegistration;
};

}  // namespace vgpu::stub
