#include "stub/worker/session-state.h"

#include <fmt/format.h>
#include <kj/common.h>
#include <kj/debug.h>

#include <algorithm>

#include "stub/worker/driver-log.h"
#include "stub/worker/execution.h"

namespace vgpu::stub {

namespace {

constexpr unsigned forAllGpus = CU_MEMHOSTREGISTER_DEVICEMAP | CU_MEMHOSTREGISTER_PORTABLE;

}  // namespace

SessionState::SessionState(const Driver& driver, const Images& images, int outputFile, std::string libraryFolder)
    : driver(driver),
      images(images),
      hostLeases(driver),
      physical(driver),
      output(outputFile),
      libraries(std::move(libraryFolder), driver.noteAllocation != nullptr) {
  require(driver, driver.cuInit(0), "starting the driver");
  collectLog(driver);
  int count = 0;
  require(driver, driver.cuDeviceGetCount(&count), "counting devices");
  if (!driver.order.empty()) count = static_cast<int>(driver.order.size());
  KJ_REQUIRE(count > 0, "the driver finds no device");
  for (unsigned device = 0; device < std::min<unsigned>(static_cast<unsigned>(count), maxDevices); ++device)
    executions.push_back(std::make_unique<Execution>(*this, device));
  std::vector<const HandleMap*> handles;
  for (auto& execution : executions) handles.push_back(&execution->handles);
  for (auto& execution : executions) execution->handles.setAll(handles);
  select(0);
}

SessionState::~SessionState() {
  hostLeases.endAll();  // before the arena is unmapped
  for (unsigned device = 0; device < deviceCount(); ++device) physical.endDevice(device);
  detach();
}

void SessionState::countIn(LaunchCounters& counters) {
  for (unsigned device = 0; device < deviceCount(); ++device) of(device).gpu.counts = &counters.gpus[device];
}

void SessionState::destroyAll() {
  for (unsigned device : usedDevices()) select(device).destroyAll();
  require(driver, hostLeases.endAll(), "pinned memory");
}

void SessionState::endSharing(api::Kind kind, uint64_t handle) {
  auto shared = sharedNames.take(kind, handle);
  if (!shared || exchange == nullptr) return;
  auto [name, isGiven] = *shared;
  if (isGiven) {
    exchange->withdraw(name);
  } else {
    exchange->close(name);
  }
}

CUresult SessionState::moveWhileIdle(Execution& on, const std::function<CUresult()>& move,
                                     std::optional<std::chrono::milliseconds> patience) {
  CUresult result = CUDA_SUCCESS;
  auto idle = [&] {
    result = patience && !isIdleWithin(*patience) ? CUDA_ERROR_NOT_READY : synchronize();
    if (result == CUDA_SUCCESS) dropGraphs();
    on.gpu.select();
    if (result == CUDA_SUCCESS) result = move();
    if (driver.noteAllocation == nullptr) return;  // an emulated device forgets allocations whose memory is unmapped
    for (auto [address, bytes] : on.handles.of(api::Kind::MEMORY)) driver.noteAllocation(address, bytes, "cudaMalloc");
  };
  if (stopOthers) {
    stopOthers(idle);
  } else {
    idle();
  }
  return result;
}

Execution& SessionState::of(unsigned device) const {
  if (device >= executions.size()) throw BadHandle{api::Kind::CONTEXT, device};
  return *executions[device];
}

Execution& SessionState::begun(unsigned device) {
  require(driver, use(device), "creating a context");
  return of(device);
}

CUresult SessionState::use(unsigned device) {
  Execution& execution = of(device);
  if (execution.hasBegun()) return CUDA_SUCCESS;
  std::lock_guard lock(beginning);
  if (execution.hasBegun()) return CUDA_SUCCESS;
  CUcontext current = nullptr;
  if (CUresult refused = driver.cuCtxGetCurrent(&current)) return refused;
  KJ_DEFER(driver.cuCtxSetCurrent(current));
  if (CUresult refused = execution.begin()) return refused;
  for (unsigned other : usedDevices()) {
    if (other == device) continue;
    of(other).gpu.leases.letReach(device);
    execution.gpu.leases.letReach(other);
  }
  return CUDA_SUCCESS;
}

std::optional<unsigned> SessionState::findUnreaching(unsigned device) const {
  const auto count = seen.empty() ? deviceCount() : static_cast<unsigned>(seen.size());
  for (unsigned other = 0; other < count; ++other) {
    const CUdevice from = driver.device(other), to = driver.device(device);
    int reaches = 1;
    if (from != to) require(driver, driver.cuDeviceCanAccessPeer(&reaches, from, to), "querying peer access");
    if (reaches == 0) return other;
  }
  return std::nullopt;
}

bool SessionState::isUsed(unsigned device) const { return of(device).hasBegun(); }

std::vector<unsigned> SessionState::usedDevices() const {
  std::vector<unsigned> used;
  for (auto& execution : executions)
    if (execution->hasBegun()) used.push_back(execution->device());
  return used;
}

Execution& SessionState::select(unsigned device) {
  Execution& execution = begun(device);
  execution.gpu.select();
  return execution;
}

std::string SessionState::nameOf(unsigned device) const {
  CUdevice real = driver.device(device);
  char name[256] = "";
  int major = 0, minor = 0;
  driver.cuDeviceGetName(name, sizeof name, real);
  driver.cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, real);
  driver.cuDeviceGetAttribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, real);
  return fmt::format("GPU {} here, {} (compute capability {}.{})", real, name, major, minor);
}

bool SessionState::isEnded(unsigned device) const { return of(device).gpu.isEnded(); }

CUresult SessionState::execute(api::Method method, unsigned device, kj::ArrayPtr<const capnp::word> words, uint64_t position,
                               uint32_t slot, Reply& reply) {
  if (device >= deviceCount()) return CUDA_ERROR_INVALID_DEVICE;
  Execution& on = select(device);
  CUresult result = on.execute(method, words, position, slot, reply);
  if (auto call = reply.takeSlowCall()) return on.end(*call, call->work(), reply);
  return result;
}

void SessionState::attach(MemoryFile segmentFileIn, MemoryFile hostArenaFile) {
  detach();
  for (auto& execution : executions) execution->longReplies.clear();  // replies to the previous program
  auto shared = std::make_unique<Segment>(segmentFileIn);
  KJ_REQUIRE(hostArenaFile.bytes() == hostArenaBytes, "a host arena has the wrong size", hostArenaFile.bytes());
  Mapping arena(hostArenaFile, fromWire<void*>(hostArenaBase));
  require(driver, registerSegment(shared->base()), "registering the session's shared memory");
  segment = std::move(shared);
  segmentFile = std::move(segmentFileIn);
  hostArena = std::move(hostArenaFile);
  hostArenaMapping = std::move(arena);
}

void SessionState::detach() {
  if (segment == nullptr) return;
  driver.cuMemHostUnregister(segment->base());
  for (uint32_t group = 0; group < slabGroups.size(); ++group)
    if (slabGroups[group].exchange(false)) driver.cuMemHostUnregister(segment->slab(group * slabsOfGroup));
  segment.reset();
  hostArenaMapping = Mapping();
}

CUresult SessionState::registerSegment(std::byte* base) {
  if (CUresult error = driver.cuMemHostRegister_v2(base, SegmentLayout::slabs, forAllGpus)) return error;
  return driver.cuMemHostGetDevicePointer_v2(&segmentOnGpu, base, 0);
}

CUresult SessionState::registerSlabGroup(uint32_t group) {
  std::lock_guard lock(slabRegistration);
  auto& isRegistered = slabGroups[group];
  if (isRegistered.load(std::memory_order_relaxed)) return CUDA_SUCCESS;
  if (CUresult error = driver.cuMemHostRegister_v2(segment->slab(group * slabsOfGroup), slabsOfGroup * slabBytes, forAllGpus))
    return error;
  isRegistered.store(true, std::memory_order_release);
  return CUDA_SUCCESS;
}

CUdeviceptr SessionState::gpuAddress(const void* inSegment) const {
  return segmentOnGpu + static_cast<uint64_t>(static_cast<const std::byte*>(inSegment) - segment->base());
}

void SessionState::noteFault(CUresult code) {
  for (auto& execution : executions) {
    execution->gpu.progress.fail(code);
    segment->header().fault[execution->device()].store(code);
  }
}

void SessionState::noteDeferred(unsigned device, CUresult code) {
  int32_t none = 0;
  if (isSticky(code)) noteFault(code);
  if (code != CUDA_SUCCESS) segment->header().deferred[device].compare_exchange_strong(none, code);
}

CUresult SessionState::synchronize() {
  for (unsigned device : usedDevices()) {
    if (isEnded(device)) continue;
    select(device);
    if (CUresult error = driver.cuCtxSynchronize_v2(nullptr)) return error;
  }
  return CUDA_SUCCESS;
}

void SessionState::dropGraphs() {
  for (unsigned device : usedDevices()) select(device).gpu.folded.dropAll();
}

bool SessionState::finishSlowCalls(std::chrono::milliseconds limit) {
  return std::ranges::all_of(executions, [&](auto& on) { return on->slow.isEmpty() || select(on->device()).slow.finish(limit); });
}

bool SessionState::continueLater() {
  bool isEmpty = true;
  for (unsigned device : usedDevices()) {
    Gpu& gpu = select(device).gpu;
    gpu.pollAwaited();
    isEmpty &= !gpu.isAwaited() && of(device).slow.isEmpty();
  }
  return isEmpty;
}

std::function<CUresult()> SessionState::adoptingHost(uint64_t address, uint64_t bytes, const HostSource& from) {
  return [this, address, bytes, from] {
    if (from.arenaAddress != 0) return hostLeases.adopt(address, from.arenaAddress, bytes, from.isReadOnly, hostArena);
    auto file = givenFile(from.file);
    return file ? hostLeases.adoptFile(address, bytes, {*file, from.offset, from.isReadOnly}, hostArena) : CUDA_ERROR_INVALID_VALUE;
  };
}

std::function<CUresult()> SessionState::mappingHost(uint64_t address, uint64_t bytes, const HostSource& from) {
  return [this, address, bytes, from] {
    if (from.arenaAddress != 0) {
      if (!hostLeases.ownsArena(from.arenaAddress, bytes)) return CUDA_ERROR_INVALID_VALUE;
      return physical.mapHost(address, bytes, from.arenaAddress, hostArena);
    }
    auto file = givenFile(from.file);
    return file ? physical.mapFile(address, bytes, *file) : CUDA_ERROR_INVALID_VALUE;
  };
}

std::optional<unsigned> SessionState::deviceAt(uint64_t address) const {
  if (inDeviceArenas(address)) return static_cast<unsigned>((address - deviceArenaBase) / deviceArenaBytes);
  return inMappedArena(address) ? physical.deviceAt(address) : std::nullopt;
}

bool SessionState::ownsMemory(uint64_t address, uint64_t bytes) const {
  if (bytes > deviceArenaBytes) return false;
  if (inDeviceArenas(address)) {
    uint64_t device = (address - deviceArenaBase) / deviceArenaBytes;
    return device < deviceCount() && executions[device]->gpu.leases.owns(address, bytes);
  }
  if (inMappedArena(address)) return physical.owns(address, bytes);
  if (hostLeases.owns(address, bytes)) return true;
  if (inHostArena(address)) return false;
  return std::ranges::any_of(executions, [&](auto& execution) { return execution->modules.haveVariables(address, bytes); });
}

}  // namespace vgpu::stub
