// What the working thread works with: the driver, the contexts, what is real behind the session's virtual objects.
//
// Used by the working thread alone. Of this a snapshot keeps the blobs, the event times and the bytes of memory; handles
// and leases come back by executing recipes (docs/snapshot.md).
#pragma once

#include <cuda.h>
#include <kj/array.h>

#include <array>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "cuda-methods.h"
#include "stub/driver/driver.h"
#include "stub/gpu/memory-pool.h"
#include "stub/worker/reply.h"
#include "stub/worker/blobs.h"
#include "stub/worker/continuations.h"
#include "stub/worker/device-output.h"
#include "stub/worker/device-progress.h"
#include "stub/worker/kinds/event-times.h"
#include "stub/worker/handle-map.h"
#include "stub/worker/images.h"
#include "stub/worker/kinds/texture-handles.h"
#include "vgpu/api/cuda.capnp.h"
#include "vgpu/api/handle.h"
#include "vgpu/api/wire-value.h"
#include "vgpu/wire/ring.h"

namespace vgpu::stub {

struct ModuleVariable {
  uint64_t module = 0;  // virtual handle
  std::string name;
  uint64_t address = 0, bytes = 0;
};

struct FunctionInfo {
  uint64_t module = 0;  // virtual handle
  CUfunction real = nullptr;
  uint32_t parameterBytes = 0;
  std::string name;
};

// An array as bytes: rows of elements without gaps, slice after slice.
struct ArrayInfo {
  unsigned device = 0;
  uint64_t mipmap = 0;  // virtual handle; 0: it is no level
  uint64_t rowBytes = 0, rows = 0, slices = 0;
  uint64_t bytes() const { return rowBytes * rows * slices; }
};

class Execution {
 public:
  // `outputFile`: see DeviceOutput.
  explicit Execution(const Driver& driver, const Images& images = {}, int outputFile = -1);
  ~Execution();
  Execution(const Execution&) = delete;
  Execution& operator=(const Execution&) = delete;

  const Driver& driver;
  HandleMap handles;
  MemoryPool pool;
  EventTimes eventTimes;
  const Images images;
  Blobs blobs;
  std::unordered_map<uint64_t, uint64_t> modules;             // virtual handle to the blob of its image
  std::unordered_map<uint64_t, ModuleVariable> variables;     // those the program asked for, by virtual handle
  std::unordered_map<uint64_t, FunctionInfo> functions;       // by virtual handle
  std::unordered_map<uint64_t, ArrayInfo> arrays;             // by virtual handle
  TextureHandles textures;
  Continuations later;
  std::unordered_map<uint32_t, std::vector<capnp::word>> longReplies;  // by slot: those that it did not take, until fetched
  bool prints = false;  // a module that may print has been loaded: see ImageFacts
  DeviceOutput output;

  // The first frame of the ring that has not been executed. Valid while the worker is quiesced; restore sets it.
  uint64_t ringPosition = 0;

  unsigned deviceCount() const { return static_cast<unsigned>(contexts.size()); }
  unsigned device() const { return current; }
  // Whether the program has given up what a fault has ended (endDevice).
  bool isEnded(unsigned device) const { return (endedDevices & (1u << device)) != 0; }

  // The session's memory, after attach(), which maps it, lets the driver know it, and lets go of what was attached before.
  void attach(MemoryFile segmentFile, MemoryFile hostArenaFile);
  bool isAttached() const { return segment != nullptr; }
  const Segment& shared() const { return *segment; }
  const MemoryFile& sharedFile() const { return segmentFile; }
  const MemoryFile& hostArenaFile() const { return hostArena; }

  // Executes one message, `words`, as the frame of `slot` at `position`, on `device`. CUDA's answer; what the client
  // may not do, as with a bad handle, is a reply too. Throws kj::Exception on a message that is none, which no honest
  // program sends. Driver calls that only this session can break.
  CUresult execute(api::Method method, unsigned device, kj::ArrayPtr<const capnp::word> words, uint64_t position,
                   uint32_t slot, Reply& reply);

  // Lets go of everything on a device whose context a fault has ended. Nothing more can be done there; a snapshot has
  // nothing of it.
  void endDevice(unsigned device);

  // Makes `device`'s context current. Throws BadHandle where there is no such device.
  void select(unsigned device);

  // Runs `destroy` on the current device once all work that it has been given is done: at once, where that is known. CUDA's
  // answer, as far as it is known by then.
  CUresult afterAllWork(std::function<CUresult()> destroy);
  DeviceProgress& progress(unsigned device) { return *progressOf[device]; }
  // That of the stream's device, which need not be the current one.
  DeviceProgress& progressOfStream(uint64_t handle) {
    unsigned device = handle == 0 ? current : handleDevice(handle);
    return *progressOf[device < deviceCount() ? device : current];  // a forged handle names any device
  }
  // Runs the continuations whose marks have passed. The current device may be another one afterwards.
  void continueLater() { later.poll(progressOf); }

  // Has the driver write what kernels of the current device have printed by now, and takes it over.
  void collectOutput();
  // A launch, at whose start the driver writes too, where kernels print: taken over now and then, so that a program that
  // only launches gets it as it goes on.
  void noteLaunch() {
    if (++launchesSinceCollect < launchesPerCollect) return;
    launchesSinceCollect = 0;
    output.collect();
    tellOutput();
  }
  // Says in the shared memory whether there is any.
  void tellOutput() { shared().header().outputWaits.store(output.isEmpty() ? 0 : 1, std::memory_order_release); }

  // Notes a fault, where the program's threads look for it too. Whichever device it happened on, the driver does nothing more
  // for this process on any (580.159, H200: every context answers with it, and no new one can be made).
  void noteFault(CUresult code);
  // Notes the first error of work that nobody waits for.
  void noteDeferred(unsigned device, CUresult code);

  // Waits for all work of all devices. CUDA's answer; where it is no success, that of device().
  CUresult synchronize();
  // The same, calling `waiting` ten times a second with the name of a kernel that runs, empty where it is not known. What
  // that throws comes out here.
  using Waiting = std::function<void(const std::string& kernel)>;
  CUresult awaitIdle(const Waiting& waiting);
  // Notes that `function` has been launched into `stream`, both virtual handles, of the current device.
  void launched(uint64_t stream, uint64_t function) { launches[launchPlace(stream, current)] = {stream, function, current}; }
  // Whether every stream of `device` is idle: success, not ready, or the error that ended the context.
  CUresult query(unsigned device);

  // While a frame is executed: whose it is.
  uint64_t sequence() const { return frameSequence; }
  uint32_t slotIndex() const { return frameSlot; }

  // Lets the GPU write `value` into a line of the segment once everything before it in `stream` is done.
  CUresult signal(CUstream stream, std::atomic<uint64_t>& line, uint64_t value);
  // Lets `stream` wait until the program has written at least `value` into a line of the segment.
  CUresult await(CUstream stream, std::atomic<uint64_t>& line, uint64_t value);
  // The same as signal(), behind all work of the current device.
  CUresult signalAfterAll(std::atomic<uint64_t>& line, uint64_t value);
  CUresult freeSlabAfter(CUstream stream, uint32_t slab);
  // The stream that a frame gives work to.
  CUstream stream(uint64_t handle) {
    auto real = fromWire<CUstream>(handles.getOrNull(api::Kind::STREAM, handle));
    progressOfStream(handle).used(handle);
    return real;
  }

  // Every variable of every loaded module, those that the program never asked for included: they are found by the names
  // in the images.
  std::vector<ModuleVariable> allVariables();

  // Where the session keeps bytes: [address, address + bytes) is leased device memory, a variable, or host arena
  // (also where the program has it at an address of its own).
  bool ownsMemory(uint64_t address, uint64_t bytes) const;

 private:
  // The last launch of a stream; of two streams with one place, the later one's.
  struct Launch {
    uint64_t stream = 0, function = 0;
    unsigned device = 0;
  };
  static constexpr uint64_t launchPlaces = 64;
  static uint64_t launchPlace(uint64_t stream, unsigned device) { return (stream + device) % launchPlaces; }
  std::string busyKernel(unsigned device);

  void detach();
  CUdeviceptr gpuAddress(const void* inSegment) const;
  CUresult registerSegment(std::byte* base);  // in the current context, for all of them

  std::vector<CUcontext> contexts;  // by device
  std::vector<std::unique_ptr<DeviceProgress>> progressOf;  // by device
  unsigned current = 0;
  uint32_t endedDevices = 0;                                // a bit a device
  std::unique_ptr<Segment> segment;
  MemoryFile segmentFile, hostArena;
  Mapping hostArenaMapping;
  CUdeviceptr linesOnGpu = 0;       // the registered head of the segment, lines and slots
  std::array<Launch, launchPlaces> launches;
  static constexpr uint32_t launchesPerCollect = 16;
  uint32_t launchesSinceCollect = 0;
  uint64_t frameSequence = 0;
  uint32_t frameSlot = 0;
};

}  // namespace vgpu::stub
