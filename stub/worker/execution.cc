#include "stub/worker/execution.h"

#include <kj/debug.h>

#include <tuple>

#include "stub/worker/cache-hints.h"
#include "stub/worker/dispatch.h"
#include "stub/worker/kinds/kind.h"
#include "stub/worker/machine-code.h"

namespace vgpu::stub {

namespace {

// Frames that other GPUs' rings wait for: executed even after a fault has ended this GPU.
bool isOfRings(api::Method method) { return method == api::Method::openRing || method == api::Method::awaitRing; }

CUresult codeOf(const BadHandle& bad) {
  return bad.kind == api::Kind::CONTEXT ? CUDA_ERROR_INVALID_DEVICE : CUDA_ERROR_INVALID_HANDLE;
}

}  // namespace

bool takesMemory(api::Method method) {
  return method == api::Method::lease || method == api::Method::physicalCreate || method == api::Method::arrayCreate ||
         method == api::Method::mipmapCreate;
}

CUresult refuse(api::Method method) { KJ_FAIL_REQUIRE("a frame with a method that has no frames", api::infoOf(method).name); }

Execution::Execution(SessionState& session, unsigned device)
    : session(session),
      driver(session.driver),
      gpu(driver, device),
      handles(gpu.handles),
      moduleGroups(*this),
      eventTimes(driver),
      blobs(session.blobUsage, {}, majorOf(computeCapability(driver, device))),
      architecture(codeArchitecture(driver, device)),
      slow([this] { gpu.select(); }) {}

CUresult Execution::begin() {
  if (CUresult refused = gpu.context.take()) return refused;
  gpu.select();
  gpu.leases.reserveArena(session.deviceCount() > 1);
  eventTimes.start();
  require(driver, gpu.progress.start(), "preparing to wait for a device");
  if (driver.noteAllocation == nullptr) gpu.digests.load();  // the emulated device's memory is digested on the host
  begun.store(true, std::memory_order_release);
  return CUDA_SUCCESS;
}

CUresult Execution::execute(api::Method method, kj::ArrayPtr<const capnp::word> words, uint64_t position, uint32_t slot,
                            Reply& reply) try {
  frameSequence = position + 1;
  frameSlot = slot;
  frameRoute = api::infoOf(method).route;
  frameMethod = method;
  frameWords = words;
  if (gpu.isEnded() && !isOfRings(method)) return gpu.progress.fault();
  if (session.hostLeases.hasUnregistered() && !api::infoOf(method).noWork)
    if (CUresult error = session.hostLeases.registerAll()) return error;
  CUresult result = dispatch(*this, method, words, reply);
  while (result == CUDA_ERROR_OUT_OF_MEMORY && takesMemory(method) && session.makeRoom && session.makeRoom())
    result = dispatch(*this, method, words, reply);
  if (result != CUDA_SUCCESS && setsCacheHint(method)) [[unlikely]] return setCacheHint(*this, method, words, result);
  return result;
} catch (const BadHandle& bad) {
  return codeOf(bad);
}

CUresult Execution::executeKept(api::Method method, kj::ArrayPtr<const capnp::word> words) {
  const std::tuple now(frameSequence, frameSlot, frameRoute, frameMethod, frameWords);
  Reply reply;
  const CUresult result = execute(method, words, 0, 0, reply);
  std::tie(frameSequence, frameSlot, frameRoute, frameMethod, frameWords) = now;
  return result;
}

CUresult Execution::end(const SlowCall& call, CUresult result, Reply& reply) try {
  return call.end(result, reply);
} catch (const BadHandle& bad) {
  return codeOf(bad);
}

CUresult Execution::afterSlowCalls(std::function<CUresult()> work, const char* name) {
  if (slow.isEmpty())
    if (std::unique_lock free(session.moduleLoading, std::try_to_lock); free) return work();
  auto locked = [this, work = std::move(work)] {
    std::lock_guard lock(session.moduleLoading);
    return work();
  };
  slow.add(
      locked, [this](CUresult result) { session.noteDeferred(device(), result); }, name);
  return CUDA_SUCCESS;
}

CUresult Execution::afterAllWork(std::function<CUresult()> destroy, DriverWaits waits) {
  // Destroyed at once if possible, so that a program that has waited finds the driver's handles and addresses free, as natively.
  if (gpu.later.isEmpty() && gpu.progress.isDone()) return destroy();
  uint64_t fence;
  if (CUresult error = gpu.progress.fence(fence)) return error;
  gpu.later.add(fence, [this, destroy = std::move(destroy), waits](CUresult fault) {
    if (fault != CUDA_SUCCESS) return;  // the object has ended with its context
    const bool hasNewWork = waits == DriverWaits::yes && !gpu.progress.isDone();
    session.noteDeferred(device(), hasNewWork ? afterAllWork(destroy, waits) : destroy());
  });
  return CUDA_SUCCESS;
}

// A device has only one context, which is in no handle map.
uint64_t Execution::real(api::Kind kind, uint64_t handle, bool nullable) const {
  if (handle == 0 && nullable) return 0;
  if (kind != api::Kind::CONTEXT) return handles.get(kind, handle);
  if (handleKind(handle) != static_cast<unsigned>(kind)) throw BadHandle{kind, handle};
  return toWire(session.of(handleDevice(handle)).gpu.context.get());
}

// Also if the context has ended: the driver may have written text before.
void Execution::collectOutput() {
  if (!session.prints) return;
  gpu.progress.flushOutput();
  session.output.collect();
}

void Execution::end() {
  gpu.folded.dropAll();
  for (api::Kind kind : api::kindsInContext) handles.removeAll(kind);
  for (const KindModule* kind : kinds())
    if (kind->drop != nullptr) kind->drop(*this);
  gpu.end();
}

void Execution::destroyAll() {
  gpu.folded.dropAll();
  for (const KindModule* kind : kinds())
    if (kind->destroy != nullptr) require(driver, kind->destroy(*this), kind->name);
  for (api::Kind kind : api::kindsInContext)
    for (auto [handle, real] : handles.of(kind)) require(driver, destroyReal(driver, kind, real), api::kindNames[static_cast<size_t>(kind)]);
}

CUresult Execution::signal(CUstream stream, std::atomic<uint64_t>& word, uint64_t value) {
  return driver.cuStreamWriteValue64_v2(stream, session.gpuAddress(&word), value, CU_STREAM_WRITE_VALUE_DEFAULT);
}

CUresult Execution::await(CUstream stream, std::atomic<uint64_t>& word, uint64_t value) {
  return driver.cuStreamWaitValue64_v2(stream, session.gpuAddress(&word), value, CU_STREAM_WAIT_VALUE_GEQ);
}

CUresult Execution::signalWait(uint64_t stream, std::atomic<uint64_t>& word, uint64_t value) {
  return gpu.progress.signalStream(stream, {&word, session.gpuAddress(&word), value});
}

CUresult Execution::signalAfterAll(std::atomic<uint64_t>& word, uint64_t value) {
  return gpu.progress.signal(session.gpuAddress(&word), value);
}

CUresult Execution::freeSlabAfter(CUstream stream, api::Place source) {
  if (source.type() != api::PlaceType::SLAB) return CUDA_SUCCESS;
  return driver.cuStreamWriteValue32_v2(stream, session.gpuAddress(&shared().slabState(source.value()).busy), 0,
                                        CU_STREAM_WRITE_VALUE_DEFAULT);
}

void Execution::freeSlabs(api::Method method, kj::ArrayPtr<const capnp::word> words) {
  api::visitSlabs(method, words, [&](uint64_t slab, uint64_t bytes) {
    if (bytes != 0 && slab < slabCount) shared().slabState(slab).busy.store(0, std::memory_order_release);
  });
}

std::vector<ModuleVariable> Execution::allVariables() {
  std::vector<ModuleVariable> all;
  for (auto [module, number] : modules.blobs) {
    const Blob* blob = blobs.find(number);
    if (blob == nullptr) continue;
    auto real = fromWire<CUmodule>(handles.get(api::Kind::MODULE, module));
    for (auto& name : blob->facts().variables) {
      CUdeviceptr address = 0;
      size_t bytes = 0;
      if (driver.cuModuleGetGlobal_v2(&address, &bytes, real, name.c_str()) == CUDA_SUCCESS)
        all.push_back({module, name, address, bytes});
    }
  }
  return all;
}

}  // namespace vgpu::stub
