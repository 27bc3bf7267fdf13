// One GPU of the session: what a frame of its ring executes on, with the state that the session's GPUs share, and what the kinds keep of
// their objects on that GPU.
//
// Used by the thread that executes that GPU's calls, and, while no calls are executed, by the thread that saves or restores.
#pragma once

#include <capnp/common.h>
#include <cuda.h>
#include <kj/array.h>

#include <functional>
#include <unordered_map>
#include <vector>

#include "cuda-frames.h"
#include "cuda-methods.h"
#include "stub/driver/driver.h"
#include "stub/gpu/gpu.h"
#include "stub/worker/blobs.h"
#include "stub/worker/kept.h"
#include "stub/worker/kinds/event-times.h"
#include "stub/worker/kinds/green-contexts.h"
#include "stub/worker/kinds/library-objects.h"
#include "stub/worker/module-groups.h"
#include "stub/worker/kinds/objects.h"
#include "stub/worker/reply.h"
#include "stub/worker/session-state.h"
#include "stub/worker/slow-calls.h"
#include "vgpu/api/effects.h"
#include "vgpu/api/handle.h"
#include "vgpu/api/place.h"
#include "vgpu/api/wire-value.h"

namespace vgpu::stub {

// Whether a call allocates GPU memory, and so may fail for lack of it. The driver does not wait for the GPU in that case.
bool takesMemory(api::Method method);

class Execution {
 public:
  Execution(SessionState& session, unsigned device);
  ~Execution() {
    if (gpu.context.isTaken()) gpu.context.select();  // for what the members destroy
  }
  Execution(const Execution&) = delete;
  Execution& operator=(const Execution&) = delete;

  // Creates the GPU's context, makes it current for the calling thread, and makes what the worker needs there; once, before anything else
  // is done with the GPU. CUDA's result if the driver creates no context; throws kj::Exception if the driver refuses anything after that.
  CUresult begin();
  // Any thread. Whether begin() has been called: a GPU that was not used has nothing of the session.
  bool hasBegun() const { return begun.load(std::memory_order_acquire); }

  SessionState& session;
  const Driver& driver;
  Gpu gpu;
  HandleMap& handles;

  // State of the kinds (stub/worker/kinds/): these members are read by other kinds too, the rest is in a Kept.
  Modules modules;
  ModuleGroups moduleGroups;
  Functions functions;
  Arrays arrays;
  EventTimes eventTimes;
  LibraryObjects library;
  GreenContexts greenContexts;
  Kept kept;

  Blobs blobs;  // of modules of this GPU
  const unsigned architecture;  // whose machine code the driver accepts on this GPU (machine-code.h)
  std::unordered_map<uint32_t, std::vector<capnp::word>> longReplies;  // by slot: replies too long for it, until they are fetched

  SlowCalls slow;  // last: its thread uses all members above

  unsigned device() const { return gpu.device; }

  // Executes one message, `words`, as the frame of `slot` at `position`. CUDA's result; a client's mistake, such as a bad handle, is a
  // result too. Throws kj::Exception if the message is not valid, which no honest program sends. Also makes driver calls that can break
  // only this session.
  CUresult execute(api::Method method, kj::ArrayPtr<const capnp::word> words, uint64_t position, uint32_t slot, Reply& reply);

  // Like execute(), for a frame that was kept; also while another frame is executed.
  CUresult executeKept(api::Method method, kj::ArrayPtr<const capnp::word> words);

  // Runs the end of a deferred call, as execute() runs a handler.
  CUresult end(const SlowCall& call, CUresult result, Reply& reply);

  // Discards everything on this GPU after a fault has ended its context.
  void end();
  // Destroys all objects on this GPU, also in the driver; the GPU is idle and its context current. Throws kj::Exception if the driver
  // refuses.
  void destroyAll();

  // Runs `destroy` when all work that the GPU has been given is done: at once, if it is known to be done. CUDA's result, as far as it is
  // known by then. DriverWaits::yes: the driver's call itself waits for all work (facts.md), so it is made only when there is none: work
  // that was added meanwhile may wait for a frame that this thread could not execute during the call.
  enum class DriverWaits { no, yes };
  CUresult afterAllWork(std::function<CUresult()> destroy, DriverWaits waits = DriverWaits::no);

  // Runs `work`, which is quick but must come after the pending slow calls and needs `moduleLoading`: at once if there are none. CUDA's
  // result, as far as it is known by then.
  CUresult afterSlowCalls(std::function<CUresult()> work, const char* name);

  // Makes the driver write what kernels of this GPU have printed so far, and collects it.
  void collectOutput();
  // Called for each launch, since the driver also writes printed text at a launch: collects now and then, so that a program that only
  // launches gets its text while it runs.
  void noteLaunch() {
    if (++launchesSinceCollect < launchesPerCollect) return;
    launchesSinceCollect = 0;
    session.output.collect();
    session.tellOutput();
  }

  // Of the frame that is being executed.
  uint64_t sequence() const { return frameSequence; }
  uint32_t slotIndex() const { return frameSlot; }
  api::Method method() const { return frameMethod; }
  kj::ArrayPtr<const capnp::word> words() const { return frameWords; }
  // Whether a call waits on that slot until the GPU reaches this point of the stream.
  bool isSignalled() const { return frameRoute == api::Route::SIGNAL; }
  const Segment& shared() const { return session.shared(); }

  // Makes the GPU write `value` into a completion word when all work before it in `stream` is done.
  CUresult signal(CUstream stream, std::atomic<uint64_t>& word, uint64_t value);
  // Makes `stream` wait until the program has written at least `value` into a completion word.
  CUresult await(CUstream stream, std::atomic<uint64_t>& word, uint64_t value);
  // Like signal(), for a stream given by its virtual handle, without delaying work that streams are given later (DeviceProgress): a
  // thread's wait for a stream is no work in the stream.
  CUresult signalWait(uint64_t stream, std::atomic<uint64_t>& word, uint64_t value);
  // Like signalWait(), after all work of this GPU.
  CUresult signalAfterAll(std::atomic<uint64_t>& word, uint64_t value);
  // After the stream's work, the GPU frees the slab of a copy's source, if the source is a slab.
  CUresult freeSlabAfter(CUstream stream, api::Place source);
  // Frees the slabs that a failed frame reads, if it is not executed again: the GPU will not free them.
  void freeSlabs(api::Method method, kj::ArrayPtr<const capnp::word> words);
  // The stream to which a frame gives work.
  CUstream stream(uint64_t handle) {
    auto real = fromWire<CUstream>(handles.getOrNull(api::Kind::STREAM, handle));
    gpu.progress.used(handle);
    return real;
  }

  // The driver's handle of an object, which may be on another GPU; 0 for 0, if `nullable`. Throws BadHandle.
  uint64_t real(api::Kind kind, uint64_t handle, bool nullable) const;

  // Every variable of every loaded module, also those that the program never looked up: their names are read from the images.
  std::vector<ModuleVariable> allVariables();

  // Whether [address, address + bytes) is memory of the session: leased device memory, a module variable, or host arena (also where it is
  // mapped at an address that the program chose).
  bool ownsMemory(uint64_t address, uint64_t bytes) const { return session.ownsMemory(address, bytes); }

 private:
  std::atomic<bool> begun{false};
  static constexpr uint32_t launchesPerCollect = 16;
  uint32_t launchesSinceCollect = 0;
  uint64_t frameSequence = 0;
  uint32_t frameSlot = 0;
  api::Route frameRoute = api::Route::POST;
  api::Method frameMethod{};
  kj::ArrayPtr<const capnp::word> frameWords;
};

}  // namespace vgpu::stub
