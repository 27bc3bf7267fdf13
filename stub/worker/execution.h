// What a frame executes on: the GPU of its ring, and the session's state that all GPUs share. There is one for each GPU, and it
// holds what the kinds keep of their objects there.
//
// Used by the thread that executes that GPU's calls, and, while no calls are executed, by the one that saves or restores.
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

// Whether a call is for a GPU's memory, which it may find used up. The driver does not wait for the GPU then.
bool takesMemory(api::Method method);

class Execution {
 public:
  Execution(SessionState& session, unsigned device);
  ~Execution() {
    if (gpu.context.isTaken()) gpu.context.select();  // for what its parts destroy
  }
  Execution(const Execution&) = delete;
  Execution& operator=(const Execution&) = delete;

  // Takes the GPU's context, makes it the calling thread's, and makes what the worker needs there; once, before anything else is done
  // with the GPU. CUDA's answer if the driver makes no context; throws kj::Exception on anything else that it refuses.
  CUresult begin();
  // Any thread. Whether begin() has been called: nothing of the session is on a GPU that it has not used.
  bool hasBegun() const { return begun.load(std::memory_order_acquire); }

  SessionState& session;
  const Driver& driver;
  Gpu gpu;
  HandleMap& handles;

  // The kinds' own (stub/worker/kinds/): what others read too, and the rest.
  Modules modules;
  ModuleGroups moduleGroups;
  Functions functions;
  Arrays arrays;
  EventTimes eventTimes;
  LibraryObjects library;
  GreenContexts greenContexts;
  Kept kept;

  Blobs blobs;  // of modules of this GPU
  const unsigned architecture;  // of machine code that the driver takes for it (machine-code.h)
  std::unordered_map<uint32_t, std::vector<capnp::word>> longReplies;  // by slot: those that it did not take, until fetched

  SlowCalls slow;  // last: its thread uses all of the above

  unsigned device() const { return gpu.device; }

  // Executes one message, `words`, as the frame of `slot` at `position`. CUDA's answer; what the client may not do, as with a bad
  // handle, is a reply too. Throws kj::Exception on a message that is none, which no honest program sends. Driver calls that only
  // this session can break.
  CUresult execute(api::Method method, kj::ArrayPtr<const capnp::word> words, uint64_t position, uint32_t slot, Reply& reply);

  // The same of a frame that was kept, also while another one is executed.
  CUresult executeKept(api::Method method, kj::ArrayPtr<const capnp::word> words);

  // Runs the end of a call that has been put off, as execute() runs a handler.
  CUresult end(const SlowCall& call, CUresult result, Reply& reply);

  // Lets go of everything on this GPU, whose context a fault has ended.
  void end();
  // Destroys all objects on this GPU, which is idle and selected, in the driver too. Throws kj::Exception if the driver refuses.
  void destroyAll();

  // Runs `destroy` once all work that the GPU has been given is done: at once, if that is known. CUDA's answer, as far as it is
  // known by then. Where the driver itself waits for all work (facts.md), it is once there is none: such as has come meanwhile may
  // wait for a frame that this thread would not execute then.
  enum class DriverWaits { no, yes };
  CUresult afterAllWork(std::function<CUresult()> destroy, DriverWaits waits = DriverWaits::no);

  // Runs `work`, which is quick but comes behind the slow calls that are under way and needs `moduleLoading`: at once if there are
  // none. CUDA's answer, as far as it is known by then.
  CUresult afterSlowCalls(std::function<CUresult()> work, const char* name);

  // Has the driver write what kernels of this GPU have printed by now, and takes it over.
  void collectOutput();
  // A launch, at whose start the driver writes too, where kernels print: taken over now and then, so that a program that
  // only launches gets it as it goes on.
  void noteLaunch() {
    if (++launchesSinceCollect < launchesPerCollect) return;
    launchesSinceCollect = 0;
    session.output.collect();
    session.tellOutput();
  }

  // While a frame is executed: whose it is.
  uint64_t sequence() const { return frameSequence; }
  uint32_t slotIndex() const { return frameSlot; }
  api::Method method() const { return frameMethod; }
  kj::ArrayPtr<const capnp::word> words() const { return frameWords; }
  // Whether a call waits on that slot until the GPU has come to this place of the stream.
  bool isSignalled() const { return frameRoute == api::Route::SIGNAL; }
  const Segment& shared() const { return session.shared(); }

  // Lets the GPU write `value` into a completion word once everything before it in `stream` is done.
  CUresult signal(CUstream stream, std::atomic<uint64_t>& word, uint64_t value);
  // Lets `stream` wait until the program has written at least `value` into a completion word.
  CUresult await(CUstream stream, std::atomic<uint64_t>& word, uint64_t value);
  // The same as signal(), of a stream by its virtual handle, and without holding up what streams are given later (DeviceProgress): a wait
  // for one that the program makes is no work in it.
  CUresult signalWait(uint64_t stream, std::atomic<uint64_t>& word, uint64_t value);
  // The same, behind all work of this GPU.
  CUresult signalAfterAll(std::atomic<uint64_t>& word, uint64_t value);
  // Lets the GPU give a copy's source back to the program, if it is a slab.
  CUresult freeSlabAfter(CUstream stream, api::Place source);
  // Gives back those that a frame reads which has failed, and is not executed again: the GPU never will.
  void freeSlabs(api::Method method, kj::ArrayPtr<const capnp::word> words);
  // The stream that a frame gives work to.
  CUstream stream(uint64_t handle) {
    auto real = fromWire<CUstream>(handles.getOrNull(api::Kind::STREAM, handle));
    gpu.progress.used(handle);
    return real;
  }

  // The driver's handle of an object, also of another GPU; 0 for 0, if that is nullable. Throws BadHandle.
  uint64_t real(api::Kind kind, uint64_t handle, bool nullable) const;

  // Every variable of every loaded module, those that the program never asked for included: they are found by the names
  // in the images.
  std::vector<ModuleVariable> allVariables();

  // Where the session keeps bytes: [address, address + bytes) is leased device memory, a variable, or host arena
  // (also where the program has it at an address of its own).
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
