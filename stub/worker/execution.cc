#include "stub/worker/execution.h"

#include <capnp/serialize.h>
#include <kj/debug.h>

#include "stub/worker/dispatch.h"
#include "stub/worker/kinds/kind.h"
#include "vgpu/api/effects.h"

namespace vgpu::stub {

namespace {

CUresult codeOf(const BadHandle& bad) {
  return bad.kind == api::Kind::CONTEXT ? CUDA_ERROR_INVALID_DEVICE : CUDA_ERROR_INVALID_HANDLE;
}

}  // namespace

CUresult refuse(api::Method method) { KJ_FAIL_REQUIRE("a frame of a method that has none", api::infoOf(method).name); }

Execution::Execution(const Driver& driver, const Images& images, int outputFile)
    : driver(driver), pool(driver), eventTimes(driver), images(images), textures(driver), output(outputFile) {
  require(driver, driver.cuInit(0), "starting the driver");
  int count = 0;
  require(driver, driver.cuDeviceGetCount(&count), "counting devices");
  KJ_REQUIRE(count > 0, "the driver has no device");
  for (int device = 0; device < std::min<int>(count, maxDevices); ++device) {
    CUcontext context;
    require(driver, driver.cuDevicePrimaryCtxRetain(&context, device), "creating a context");
    contexts.push_back(context);
  }
  for (unsigned device = 0; device < deviceCount(); ++device) {
    current = maxDevices;  // none yet
    select(device);
    pool.reserveArena(device);
    eventTimes.start(device);
    progressOf.push_back(std::make_unique<DeviceProgress>(driver, handles));
    require(driver, progressOf.back()->start(), "preparing to wait for a device");
  }
  select(0);
}

Execution::~Execution() { detach(); }

void Execution::attach(MemoryFile segmentFileIn, MemoryFile hostArenaFile) {
  detach();
  longReplies.clear();  // of another program
  auto shared = std::make_unique<Segment>(segmentFileIn);
  KJ_REQUIRE(hostArenaFile.bytes() == hostArenaBytes, "a host arena of another size", hostArenaFile.bytes());
  Mapping arena(hostArenaFile, fromWire<void*>(hostArenaBase));
  require(driver, registerSegment(shared->base()), "registering the session's shared memory");
  segment = std::move(shared);
  segmentFile = std::move(segmentFileIn);
  hostArena = std::move(hostArenaFile);
  hostArenaMapping = std::move(arena);
}

void Execution::detach() {
  if (segment == nullptr) return;
  driver.cuMemHostUnregister(segment->base());
  segment.reset();
  hostArenaMapping = Mapping();
}

CUresult Execution::registerSegment(std::byte* base) {
  if (CUresult error = driver.cuMemHostRegister_v2(base, SegmentLayout::bytes,
                                                   CU_MEMHOSTREGISTER_DEVICEMAP | CU_MEMHOSTREGISTER_PORTABLE))
    return error;
  return driver.cuMemHostGetDevicePointer_v2(&linesOnGpu, base, 0);
}

void Execution::select(unsigned device) {
  if (device == current) return;
  if (device >= contexts.size()) throw BadHandle{api::Kind::CONTEXT, device};
  require(driver, driver.cuCtxSetCurrent(contexts[device]), "changing device");
  current = device;
}

CUresult Execution::execute(api::Method method, unsigned device, kj::ArrayPtr<const capnp::word> words,
                            uint64_t position, uint32_t slot, Reply& reply) try {
  frameSequence = position + 1;
  frameSlot = slot;
  select(device);
  if (isEnded(device)) return progressOf[device]->fault();
  if (pool.hasUnregistered() && !api::infoOf(method).noWork)
    if (CUresult error = pool.registerHost()) return error;
  return dispatch(*this, method, words, reply);
} catch (const BadHandle& bad) {
  return codeOf(bad);
}

CUresult Execution::afterAllWork(std::function<CUresult()> destroy) {
  unsigned device = current;
  DeviceProgress& progress = *progressOf[device];
  // A program that has waited sees the driver's numbers and places as free as natively.
  if (!later.has(device) && progress.isDone()) return destroy();
  uint64_t number;
  if (CUresult error = progress.mark(number)) return error;
  later.add(device, {{device, number}}, [this, device, destroy = std::move(destroy)](CUresult fault) {
    if (fault != CUDA_SUCCESS) return;  // the object ends with its context
    select(device);
    noteDeferred(device, destroy());
  });
  return CUDA_SUCCESS;
}

// Also where the context has ended: the driver may have written something before.
void Execution::collectOutput() {
  if (!prints) return;
  progressOf[current]->flushOutput();
  output.collect();
}

void Execution::noteFault(CUresult code) {
  for (unsigned device = 0; device < deviceCount(); ++device) {
    progressOf[device]->fail(code);
    segment->header().fault[device].store(code);
  }
}

void Execution::endDevice(unsigned device) {
  for (const KindModule* kind : kinds())
    if (kind->drop != nullptr) kind->drop(*this, device);
  endedDevices |= 1u << device;
}

void Execution::noteDeferred(unsigned device, CUresult code) {
  int32_t none = 0;
  if (isSticky(code)) noteFault(code);
  if (code != CUDA_SUCCESS) segment->header().deferred[device].compare_exchange_strong(none, code);
}

CUresult Execution::synchronize() {
  for (unsigned device = 0; device < deviceCount(); ++device) {
    if (isEnded(device)) continue;
    select(device);
    if (CUresult error = driver.cuCtxSynchronize()) return error;
  }
  return CUDA_SUCCESS;
}

CUresult Execution::query(unsigned device) {
  select(device);
  CUresult state = driver.cuStreamQuery(nullptr);
  for (auto& [handle, real] : handles.of(api::Kind::STREAM)) {
    if (state != CUDA_SUCCESS) break;
    if (handleDevice(handle) == device) state = driver.cuStreamQuery(fromWire<CUstream>(real));
  }
  return state;
}

CUdeviceptr Execution::gpuAddress(const void* inSegment) const {
  return linesOnGpu + static_cast<uint64_t>(static_cast<const std::byte*>(inSegment) - segment->base());
}

CUresult Execution::signal(CUstream stream, std::atomic<uint64_t>& line, uint64_t value) {
  return driver.cuStreamWriteValue64_v2(stream, gpuAddress(&line), value, CU_STREAM_WRITE_VALUE_DEFAULT);
}

CUresult Execution::await(CUstream stream, std::atomic<uint64_t>& line, uint64_t value) {
  return driver.cuStreamWaitValue64_v2(stream, gpuAddress(&line), value, CU_STREAM_WAIT_VALUE_GEQ);
}

CUresult Execution::signalAfterAll(std::atomic<uint64_t>& line, uint64_t value) {
  return progressOf[current]->signal(gpuAddress(&line), value);
}

CUresult Execution::freeSlabAfter(CUstream stream, uint32_t slab) {
  return driver.cuStreamWriteValue32_v2(stream, gpuAddress(&segment->slabState(slab).busy), 0,
                                        CU_STREAM_WRITE_VALUE_DEFAULT);
}

std::vector<ModuleVariable> Execution::allVariables() {
  std::vector<ModuleVariable> all;
  for (auto [module, number] : modules) {
    const Blob* blob = blobs.find(number);
    if (blob == nullptr) continue;
    select(handleDevice(module));
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

bool Execution::ownsMemory(uint64_t address, uint64_t bytes) const {
  if (bytes > deviceArenaBytes) return false;
  if (inDeviceArenas(address)) return pool.ownsDevice(address, bytes);
  if (pool.ownsHost(address, bytes)) return true;
  if (inHostArena(address)) return false;
  // A module's variables lie side by side, and a range may go from one into the next.
  uint64_t end = address + bytes;
  if (end < address) return false;
  for (bool found = true; found && address < end;) {
    found = false;
    for (auto& [handle, variable] : variables) {
      if (address < variable.address || address - variable.address >= variable.bytes) continue;
      address = variable.address + variable.bytes;
      found = true;
    }
  }
  return address >= end;
}

}  // namespace vgpu::stub
