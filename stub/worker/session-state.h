// What a worker has of its session as a whole: the memory that it shares with the program, pinned memory, the node's store of
// images, what kernels have printed, and the GPUs.
//
// Each GPU has a thread (worker.h). What several of them use here guards itself: pinned memory, the store, the output. The
// functions that make a context current are for the one thread that works while no calls are executed.
//
// Of this a snapshot keeps the bytes of memory, what has been printed, and the positions in the rings; handles and leases come
// back by executing recipes (docs/snapshot.md).
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
  // Begins with the first device. Throws kj::Exception if the driver refuses. `outputFile`: see DeviceOutput;
  // `libraryFolder`: see Libraries.
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
  FoldMode foldMode = FoldMode::AUTO;  // if the program does not say (folding.h)
  Libraries libraries;
  std::atomic<bool> prints{false};  // a module that may print has been loaded: see ImageFacts

  // What the session leaves in this process although everything it has made is destroyed, for a person; null if nothing is known.
  // Such a process serves no other session (Worker::recycle).
  std::atomic<const char*> residue{nullptr};

  // Held while modules with variables are loaded or unloaded for a GPU: where the driver puts them must not depend on what is loaded
  // for another GPU meanwhile (module-groups.h). Before any other mutex. Whoever holds it may compile for long, so a GPU's
  // thread takes it only if it is free, and leaves it to its SlowCalls otherwise; but for a call of a library that is captured.
  std::mutex moduleLoading;
  SharedModules sharedModules{driver};  // under it
  uint64_t modulesLoaded = 0;           // of those in groups; under it

  // Has somebody free memory of the GPUs that is spare. False if there is none. Called by any GPU's thread, which waits; set
  // before calls are executed, or null.
  std::function<bool()> makeRoom;

  // Starts the thread of a GPU, unless it runs. For the first GPU's thread; set by the worker.
  std::function<void(unsigned device)> startThread;

  // What other sessions share with this one; null without a daemon. Set while no calls are executed.
  std::shared_ptr<Exchange> exchange;
  SharedNames sharedNames;
  // Ends what an object gives to other sessions, or has from them, if it is shared. Waits for the daemon.
  void endSharing(api::Kind kind, uint64_t handle);

  // Runs `work` on the thread of a GPU, which executes a call, while no other thread does and no GPU has any work. Set by the
  // worker.
  std::function<void(const std::function<void()>& work)> stopOthers;
  // Likewise `move`, which maps other physical memory in the place of some of that GPU's. With `patience`: not if a GPU has work until
  // then, which is CUDA_ERROR_NOT_READY.
  CUresult moveWhileIdle(Execution& on, const std::function<CUresult()>& move, std::optional<std::chrono::milliseconds> patience = {});

  // How many of the GPUs' threads sleep until another ring has come far enough. Whoever executes a frame wakes them: any thread;
  // set by the worker.
  std::atomic<unsigned> awaiting{0};
  std::function<void()> wakeThreads;

  unsigned deviceCount() const { return static_cast<unsigned>(executions.size()); }
  // Of one of them. Throws BadHandle if there is no such device.
  Execution& of(unsigned device) const;
  // Has the session use a device, if it does not: its context is made, and all devices that are used get access to each other's leased
  // memory. Any thread; its current context stays. CUDA's answer if there is no context; throws kj::Exception otherwise.
  CUresult use(unsigned device);
  // The same as of(), of a device that is used from now on. Throws kj::Exception if it cannot be.
  Execution& begun(unsigned device);
  // The same, with the device's context made the calling thread's.
  Execution& select(unsigned device);
  // The GPU that it is, for a person: "GPU 0 here, NVIDIA H200 (compute capability 9.0)".
  std::string nameOf(unsigned device) const;
  // The devices as the program has first seen them, after a restore: a snapshot keeps those.
  struct SeenDevice {
    std::string name, uuid;
    uint64_t memoryBytes = 0, capability = 0;  // capability: major * 10 + minor
  };
  std::vector<SeenDevice> seen;
  // One of the session's devices that cannot reach the memory of `device`; nothing if all of them do. Throws kj::Exception.
  std::optional<unsigned> findUnreaching(unsigned device) const;
  // Whether the session uses it. Any thread.
  bool isUsed(unsigned device) const;
  // Those that it uses, in order.
  std::vector<unsigned> usedDevices() const;
  // Whether the program has given up what a fault has ended (Execution::end).
  bool isEnded(unsigned device) const;

  // Executes a frame on `device`, as Execution::execute() does.
  CUresult execute(api::Method method, unsigned device, kj::ArrayPtr<const capnp::word> words, uint64_t position, uint32_t slot,
                   Reply& reply);

  // The session's memory, after attach(), which maps it, lets the driver know it, and lets go of what was attached before.
  void attach(MemoryFile segmentFile, MemoryFile hostArenaFile);
  bool isAttached() const { return segment != nullptr; }
  const Segment& shared() const { return *segment; }
  const MemoryFile& sharedFile() const { return segmentFile; }
  const MemoryFile& hostArenaFile() const { return hostArena; }
  // Pinned memory: of the host arena, or, if `place` is not 0, of the virtual machine's memory that the segment is in.
  CUresult leaseHost(uint64_t address, uint64_t bytes, uint64_t place) {
    return place == 0 ? hostLeases.lease(address, bytes, hostArena)
                      : hostLeases.leasePiece(address, bytes, place, segmentFile, hostArena);
  }
  // What is mapped a second time cannot end. `ifIdle`: CUDA_ERROR_NOT_READY if a GPU has work: the driver waits for all of it, which may
  // wait for a frame that the calling thread would not execute then.
  CUresult endHostLease(Execution& on, uint64_t address, bool ifIdle) {
    if (physical.mapsHost(address, hostLeases.bytesAt(address))) return CUDA_ERROR_INVALID_VALUE;
    const auto end = [&] { return hostLeases.endLease(address, hostArena); };
    return ifIdle ? moveWhileIdle(on, end, std::chrono::milliseconds(0)) : end();
  }
  // Memory of the host: a part of the host arena, or, if that is 0, a file that the program has given.
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
  // What maps it at an address where the program has it, or at one that it has reserved. That takes a while, and waits for the daemon.
  std::function<CUresult()> adoptingHost(uint64_t address, uint64_t bytes, const HostSource& from);
  std::function<CUresult()> mappingHost(uint64_t address, uint64_t bytes, const HostSource& from);
  CUdeviceptr gpuAddress(const void* inSegment) const;
  // Has the driver know the slab's memory, before a GPU is given work with it. Any GPU's thread. CUDA's answer.
  CUresult registerSlab(uint32_t slab) {
    if (slabGroups[slab / slabsOfGroup].load(std::memory_order_acquire)) return CUDA_SUCCESS;
    return registerSlabGroup(slab / slabsOfGroup);
  }

  // Counts launches there from now on.
  void countIn(LaunchCounters& counters);

  // Says in the shared memory whether there is any output.
  void tellOutput() { output.tell(shared().header().outputWaits); }

  // Notes a fault, where the program's threads look for it too. Whichever device it happened on, the driver does nothing more
  // for this process on any (580.159, H200: every context answers with it, and no new one can be made).
  void noteFault(CUresult code);
  // Notes the first error of work that nobody waits for.
  void noteDeferred(unsigned device, CUresult code);

  // Waits for all work of all devices. CUDA's answer.
  CUresult synchronize();
  // The same, calling `waiting` ten times a second with the name of a kernel that runs, empty where it is not known. What
  // that throws comes out here.
  using Waiting = std::function<void(const std::string& kernel)>;
  CUresult awaitIdle(const Waiting& waiting);
  // Waits so long at most. False if a GPU has work then.
  bool isIdleWithin(std::chrono::milliseconds patience);
  // The kernel that was launched last into a stream that has work, as a person knows it; empty if that is not known.
  std::string busyKernel(unsigned device);
  // Waits for the slow calls of all devices, for each so long at most. False if some are left.
  bool finishSlowCalls(std::chrono::milliseconds limit);
  // Ends the graphs into which launches have been folded, of all devices. They are made again when they are needed.
  void dropGraphs();
  // Runs the continuations of all devices whose fences have passed. False if some are left, or have added slow calls.
  bool continueLater();

  // Destroys all that the session has made, while the GPUs are idle. Throws kj::Exception if the driver refuses.
  void destroyAll();

  // As Execution::ownsMemory().
  bool ownsMemory(uint64_t address, uint64_t bytes) const;
  // The device in whose memory that address of an allocation or a mapping is; nothing if it is in none.
  std::optional<unsigned> deviceAt(uint64_t address) const;

 private:
  // Until no device has work, or `goesOn`, called of one that has, returns false; so does this function then.
  bool pollIdle(const std::function<bool(unsigned device)>& goesOn);
  void detach();
  CUresult registerSegment(std::byte* base);  // in the current context, for all of them
  CUresult registerSlabGroup(uint32_t group);
  // That the program has given by that name; nothing if it has not. Waits for the daemon.
  std::optional<kj::AutoCloseFd> givenFile(const SharedName& name) { return exchange == nullptr ? std::nullopt : exchange->file(name); }

  std::vector<std::unique_ptr<Execution>> executions;  // by device
  std::mutex beginning;  // held while the session begins to use a device; the leases' mutexes come after it
  std::unique_ptr<Segment> segment;
  MemoryFile segmentFile, hostArena;
  Mapping hostArenaMapping;
  CUdeviceptr segmentOnGpu = 0;
  // Slabs are registered a group at a time, when one of it is first used: to make their pages takes longer than a short program.
  static constexpr uint32_t slabsOfGroup = 8;
  std::array<std::atomic<bool>, slabCount / slabsOfGroup> slabGroups{};  // registered; stored (release) under the mutex, a leaf
  std::mutex slabRegistration;
};

}  // namespace vgpu::stub
