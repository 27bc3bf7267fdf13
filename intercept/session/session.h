// The process's session: its connection to virtual GPUs, opened at the first CUDA call and kept until the process ends.
//
// The C ABI requires one instance for each process. It is never destroyed: the program's threads and static destructors may make calls
// until the process ends, and the daemon detects the end by the connection. A forked child has no session (it would share the parent's
// ring), and its calls return CUDA_ERROR_NOT_INITIALIZED.
//
// Lock order: the locks of CodeLibrary, Linker, VirtualMemory, SharedObjects, ManagedMemory, DeviceOutput, PeerAccess and
// Session::ringOpening, under each of which calls are made; then Session::memory.mutex, HandleTable's, Recorder's. The gate is entered with
// none of the latter three held. Everything here stays in the process over a suspend; the segment and the host arena are passed to the next
// worker.
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
  const std::unique_ptr<Control> control;  // first member: it has the session's memory

 public:
  // Opens the session if it is not open yet. Throws kj::Exception (no daemon, refused, …) at each failed attempt.
  static Session& open();
  // The open session; nullptr if there is none in this process.
  static Session* find();
  // Whether this is a child, made by fork(), of a process that had a session and has called cuInit(): by CUDA's rule the child cannot use
  // CUDA.
  static bool isForked();
  // Whether cuInit() has been called. If not, only NVML has used the session, which is no use of CUDA.
  std::atomic<bool> isInitialized{false};
  // A further session, for a test that acts as its daemon and worker (tests/session/fake-session.h). Never destroyed either.
  explicit Session(std::unique_ptr<Control> control);
  void start();

  Segment segment;
  // The ring of a device. Frames may be sent only when the worker consumes it: see use().
  RingWriter& ring(unsigned device) const { return *rings[device]; }
  bool isRingOpen(unsigned device) const { return (openRings.load(std::memory_order_acquire) >> device & 1) != 0; }
  // Makes the worker create the device's context and a thread that consumes its ring, at the first use. Waits; call outside the gate,
  // without a slot. Throws kj::Exception if it fails.
  void use(Thread& thread, unsigned device) {
    if (!isRingOpen(device)) [[unlikely]] openRing(thread, device);
  }
  // The files that the program shares with its workers.
  GivenFiles& files() const { return control->files(); }
  // How far the worker has executed each ring.
  RingCut executed() const;
  // Reserves a position in a ring for a building frame, and numbers the frame: within a ring, numbers are in the order of positions. With a
  // single ring the sequence number is used, without a lock.
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
  // Incremented when the driver's replies may have changed for all functions of a device: after its cache preference was set, or a resume.
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
  std::deque<HostFunctions> registeredReads;  // our own, independent of the program's (copy/registered-copy.h)
  DeviceOutput output;
  const std::unique_ptr<CopyThreadPool> copyThreads;
  std::unique_ptr<Recorder> recorder;
  std::vector<DeviceInfo> devices;
  int lastDevice() const { return static_cast<int>(devices.size()) - 1; }
  bool hasDevice(CUdevice device) const { return device >= 0 && static_cast<size_t>(device) < devices.size(); }
  int driverVersion = 0;
  // The open session's driverVersion; without a session, the CUDA version of the header.
  static int reportedVersion() {
    Session* session = find();
    return session != nullptr ? session->driverVersion : CUDA_VERSION;
  }

  // The mode that cuModuleGetLoadingMode() returns: that of CUDA_MODULE_LOADING. It does not affect how the worker loads modules.
  static CUmoduleLoadingMode loadingMode();

  bool launchesBlock = false;  // CUDA_LAUNCH_BLOCKING
  std::string visible;         // CUDA_VISIBLE_DEVICES when the session was opened; empty if unset

  // Set once the session is lost: every call returns lossResult() then.
  std::atomic<bool> lost{false};
  CUresult lossResult() const { return CUDA_ERROR_DEVICE_UNAVAILABLE; }

  // Work on a device, as sequence numbers in its ring: of the last frame that leaves work on the GPU, and up to which all work is known to
  // be done.
  struct alignas(128) Progress {
    LatestNumber lastWork;
    std::atomic<uint64_t> knownDone{0};
    bool isIdle() const { return knownDone.load(std::memory_order_relaxed) >= lastWork.get(); }
  };
  std::array<Progress, maxDevices> progress;
  std::array<StreamDepth, maxDevices> defaultStreamDepths;  // those of other streams are in their entries,
  std::array<std::atomic<int32_t>, maxDevices> legacyPriorities{};  // as are their priorities
  std::array<std::atomic<uint64_t>, maxDevices> defaultStreamsSetOf{};  // the context whose default stream was last set, or 0

  // The first error of a posted call on `device` that no call has reported yet; or the fault that ended its context.
  CUresult takeError(unsigned device);
  CUresult fault(unsigned device) const;

  // The last contextReset, which renews a device's context after a fault: that frame's sequence number, and the fault. Calls before that
  // frame return the fault, even if their thread checks only afterwards.
  struct Reset {
    std::atomic<uint64_t> sequence{0};
    std::atomic<int32_t> fault{CUDA_SUCCESS};
  };
  std::array<Reset, maxDevices> resets;
  // The fault that ended the context in which the frame `sequence` was work; CUDA_SUCCESS if none has.
  CUresult faultOf(unsigned device, uint64_t sequence) const;

  // Replaces the worker, whose process cannot use the GPU any more after a fault. Outside the gate. False if there is no new worker.
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
  std::atomic<uint32_t> openRings{1};              // a bit for each device; the worker consumes the first ring from the start
  std::mutex ringOpening;                          // held over a call
  std::mutex numbering;                            // leaf lock
  uint64_t lastNumber = 0;                         // of building frames, if there are several devices
  uint64_t handovers = 0;  // the last one's number; control thread only
};

}  // namespace vgpu::client
