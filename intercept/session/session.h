// The process's session: one virtual GPU host, opened at the first CUDA call and kept until the process ends.
//
// The C ABI forces one instance for each process. It is never destroyed: the program's threads and static destructors may call
// until the process ends, and the daemon learns of the end from the connection. After fork() the child has none (it would share
// the parent's ring) and its calls return CUDA_ERROR_NOT_INITIALIZED.
//
// Lock order: CodeLibrary's, Linker's, VirtualMemory's, SharedObjects', ManagedMemory's, DeviceOutput's, PeerAccess's and
// Session::ringOpening, in each of which calls are made, then Session::memory.mutex, then HandleTable's, then Recorder's; the
// gate is entered with none of them held. Everything here stays in the process over a suspend; the segment and the host arena are
// handed to the next worker.
#pragma once

#include <cuda.h>

#include <array>
#include <atomic>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "intercept/session/children.h"
#include "intercept/session/context-settings.h"
#include "intercept/session/contexts.h"
#include "intercept/session/control.h"
#include "intercept/session/descriptions.h"
#include "intercept/session/device-info.h"
#include "intercept/session/device-output.h"
#include "intercept/session/elapsed-times.h"
#include "intercept/session/failed-calls.h"
#include "intercept/session/gate.h"
#include "intercept/session/graph/captures.h"
#include "intercept/session/graph/graph-memory.h"
#include "intercept/session/graph/graphs.h"
#include "intercept/session/graph/launchable-graphs.h"
#include "intercept/session/graph/user-objects.h"
#include "intercept/session/green-contexts.h"
#include "intercept/session/green-resources.h"
#include "intercept/session/handle-table.h"
#include "intercept/session/host-functions.h"
#include "intercept/session/known-replies.h"
#include "intercept/session/latest-number.h"
#include "intercept/session/managed/managed-memory.h"
#include "intercept/session/memory/memory.h"
#include "intercept/session/memory/shared-objects.h"
#include "intercept/session/memory/slabs.h"
#include "intercept/session/memory/virtual-memory.h"
#include "intercept/session/notifications.h"
#include "intercept/session/peer-access.h"
#include "intercept/session/recorder.h"
#include "intercept/session/slot-table.h"
#include "intercept/session/spare-events.h"
#include "intercept/session/textures.h"
#include "intercept/session/variables.h"
#include "vgpu/wire/ring.h"

namespace vgpu::client {

class CopyThreadPool;
class Thread;

class Session final : public SessionControl {
 private:
  const std::unique_ptr<Control> control;  // first: the session's memory comes with it

 public:
  // Opens it if it is not open yet. Throws kj::Exception (no daemon, refused, …) at each attempt.
  static Session& open();
  // The open session; nullptr if there is none in this process.
  static Session* find();
  // Whether this is a child, made by fork(), of a process that had one and has called cuInit(): CUDA's rule is that it has none.
  static bool isForked();
  // cuInit() has been called. Before, NVML alone has asked: it is not CUDA to a program.
  std::atomic<bool> isInitialized{false};
  // One besides the process's, of a test that is its daemon and its worker (tests/session/fake-session.h). It is never destroyed
  // either.
  explicit Session(std::unique_ptr<Control> control);
  void start();

  Segment segment;
  // The ring of a device. A frame may be sent when the worker consumes it: see use().
  RingWriter& ring(unsigned device) const { return *rings[device]; }
  bool isRingOpen(unsigned device) const { return (openRings.load(std::memory_order_acquire) >> device & 1) != 0; }
  // Has the worker make the device's context and a thread that consumes its ring, unless it has. Waits; outside the gate, without a
  // slot. Throws kj::Exception if it cannot.
  void use(Thread& thread, unsigned device) {
    if (!isRingOpen(device)) [[unlikely]] openRing(thread, device);
  }
  // Those of the program's that its workers have too.
  GivenFiles& files() const { return control->files(); }
  // Up to where the worker has executed the frames of each ring.
  RingCut executed() const;
  // Reserves a place in a ring for a frame that builds an object, and numbers it: in one ring, numbers are in the order of
  // places. Where there is one ring they are its sequence numbers, and no lock is needed.
  uint64_t claimNumbered(unsigned device, uint64_t words, uint64_t& number) {
    if (devices.size() > 1) return claimCounted(device, words, number);
    const uint64_t position = ring(device).claim(words);
    number = position + 1;
    return position;
  }
  Gate gate;
  SlotTable slots;
  HandleTable handles;
  Contexts contexts{handles};
  ContextSettings contextSettings;
  GreenContexts greenContexts;
  GreenResources greenResources;
  PeerAccess peerAccess;
  Children<std::string> functions;  // by module
  Children<std::string> kernels;    // by library
  Children<uint32_t> arrayParts;    // levels by mipmapped array, planes by array
  // Incremented when the driver's replies may have changed for every function of a device: its cache preference has been set, or
  // the session has been resumed.
  std::array<std::atomic<uint64_t>, maxDevices> functionChanges{};
  std::deque<KnownReplies> deviceReplies;  // by device: to queries about it, its streams, modules and arrays
  Memory memory;
  ManagedMemory managed;
  VirtualMemory virtualMemory;
  SharedObjects shared;
  Variables variables;
  Textures textures;
  Graphs graphs{graphMemories};
  LaunchableGraphs launchableGraphs;
  Captures captures{*this};
  GraphMemories graphMemories{*this};
  UserObjects userObjects;
  Notifications notifications;
  Descriptions descriptions;
  ElapsedTimes elapsedTimes;
  SpareEvents spareEvents;
  FailedCalls failedCalls;
  Slabs slabs;
  CompletionWords completionWords{segment};
  std::deque<HostFunctions> hostFunctions;    // by device
  std::deque<HostFunctions> registeredReads;  // ours, which wait for none of the program's (copy/registered-copy.h)
  DeviceOutput output;
  const std::unique_ptr<CopyThreadPool> copyThreads;
  std::unique_ptr<Recorder> recorder;
  std::vector<DeviceInfo> devices;
  int lastDevice() const { return static_cast<int>(devices.size()) - 1; }
  bool hasDevice(CUdevice device) const { return device >= 0 && static_cast<size_t>(device) < devices.size(); }
  int driverVersion = 0;
  // The same; without a session the header's.
  static int reportedVersion() {
    Session* session = find();
    return session != nullptr ? session->driverVersion : CUDA_VERSION;
  }

  // What CUDA_MODULE_LOADING says, as cuModuleGetLoadingMode() tells it. The worker loads modules in its own way.
  static CUmoduleLoadingMode loadingMode();

  bool launchesBlock = false;  // CUDA_LAUNCH_BLOCKING
  std::string visible;         // CUDA_VISIBLE_DEVICES, when it was opened

  // Why the session ended, once it has: every call returns this.
  std::atomic<bool> lost{false};
  CUresult lossResult() const { return CUDA_ERROR_DEVICE_UNAVAILABLE; }

  // Work on a device: the sequence number, in its ring, of its last frame that leaves work on the GPU, and one up to which all is
  // known done.
  struct alignas(128) Progress {
    LatestNumber lastWork;
    std::atomic<uint64_t> knownDone{0};
    bool isIdle() const { return knownDone.load(std::memory_order_relaxed) >= lastWork.get(); }
  };
  std::array<Progress, maxDevices> progress;
  std::array<StreamDepth, maxDevices> defaultStreamDepths;  // the other streams' are in their entries,
  std::array<std::atomic<int32_t>, maxDevices> legacyPriorities{};  // and so are their priorities
  std::array<std::atomic<uint64_t>, maxDevices> defaultStreamsSetOf{};  // the context of which an attribute was set last, or 0

  // The first error of a posted call on `device` that no call has reported yet; or the one that ended its context.
  CUresult takeError(unsigned device);
  CUresult fault(unsigned device) const;

  // A device's context that a fault has ended is made anew by contextReset: the sequence number of that frame, and the fault.
  // Calls before that frame return the fault, also in a thread that checks only afterwards.
  struct Reset {
    std::atomic<uint64_t> sequence{0};
    std::atomic<int32_t> fault{CUDA_SUCCESS};
  };
  std::array<Reset, maxDevices> resets;
  // What ended the context in which the frame of `sequence` was work; CUDA_SUCCESS if nothing has.
  CUresult faultOf(unsigned device, uint64_t sequence) const;

  // Replaces the worker, whose process can no longer use the GPU after a fault. Outside the gate. False if there is no new one.
  bool renewWorker();

  uint64_t primaryContext(unsigned device) const { return contexts.primary(device); }

  // SessionControl, on the control thread.
  uint64_t closeGate(const std::function<bool()>& givesUp) override;
  std::string comeApart(const std::function<bool()>& givesUp) override;
  void leaveHost() override;
  void openGate() override;
  uint64_t accept() override;
  bool withdraw(uint64_t handover) override;
  void leaveFiles() override;
  void enterFiles(const std::string& directory) override;
  void lose(const std::string& why) override;

 private:
  static void forgetInChild();
  void readEnvironment();
  void describeDevices();
  void openRing(Thread& thread, unsigned device);
  uint64_t claimCounted(unsigned device, uint64_t words, uint64_t& number);

  Mapping hostArena;
  std::vector<std::unique_ptr<RingWriter>> rings;  // by device
  std::atomic<uint32_t> openRings{1};              // a bit a device: the worker consumes the first ring from the beginning
  std::mutex ringOpening;                          // a call is made under it
  std::mutex numbering;                            // a leaf
  uint64_t lastNumber = 0;                         // of frames that build objects, if there are several devices
  uint64_t handovers = 0;  // the number of the last one; control thread only
};

}  // namespace vgpu::client
