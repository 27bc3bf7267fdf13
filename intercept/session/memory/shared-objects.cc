#include "intercept/session/memory/shared-objects.h"

#include "intercept/session/call.h"
#include "intercept/session/wait.h"

namespace vgpu::client {

bool SharedObjects::isOurs(const SharedName& name) const {
  std::lock_guard lock(mutex);
  for (auto& [object, each] : given)
    if (each == name) return true;
  return false;
}

CUresult SharedObjects::find(Thread& thread, const SharedName& name, Found& found) {
  if (isOurs(name)) return CUDA_ERROR_INVALID_CONTEXT;  // CUDA's error for a handle of the same process
  Call<api::Cuda::SharedFindParams> frame(thread.on(thread.device()), api::Method::sharedFind);
  setName(frame, name);
  if (CUresult error = frame.call()) return error;
  auto results = frame.results<api::Cuda::SharedFindResults>();
  found = {results.getKind(), results.getDevice(), results.getBytes(), results.getOffset(), results.getSize()};
  return found.device < thread.session.devices.size() ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

// ------------------------------------------------------------------ memory

CUresult SharedObjects::giveMemory(Thread& thread, uint64_t address, SharedName& name) {
  auto allocation = thread.session.memory.findDevice(address);
  if (!allocation || isTaken(allocation->address)) return CUDA_ERROR_INVALID_VALUE;
  if (thread.session.managed.find(allocation->address)) return CUDA_ERROR_INVALID_VALUE;
  std::lock_guard change(changing);
  {
    std::lock_guard lock(mutex);
    if (auto known = given.find(allocation->address); known != given.end()) return name = known->second, CUDA_SUCCESS;
  }
  name = SharedName::make();
  const auto device = static_cast<unsigned>((address - deviceArenaBase) / deviceArenaBytes);
  // The worker waits for all its GPUs while its threads are stopped: waiting for outstanding work here keeps that short.
  if (CUresult error = synchronizeDevice(thread, device)) return error;
  Call<api::Cuda::MemoryShareParams> frame(thread.on(device), api::Method::memoryShare);
  frame->setAddress(allocation->address);
  setName(frame, name);
  if (CUresult error = frame.call()) return error;
  std::lock_guard lock(mutex);
  given.emplace(allocation->address, name);
  anyGiven.store(true, std::memory_order_relaxed);
  return CUDA_SUCCESS;
}

CUresult SharedObjects::takeMemory(Thread& thread, const SharedName& name, bool isOfPool, uint64_t& address) {
  std::lock_guard change(changing);
  {
    std::lock_guard lock(mutex);
    for (auto& [at, each] : taken)
      if (each.name == name && each.isOfPool == isOfPool) return address = at, ++each.times, CUDA_SUCCESS;
  }
  Found found{};
  if (CUresult error = find(thread, name, found)) return error;
  if (found.kind != static_cast<uint32_t>(api::Kind::MEMORY)) return CUDA_ERROR_INVALID_VALUE;
  const unsigned current = thread.device();
  if (found.device != current && !thread.session.devices[current].canAccess(found.device))
    return CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
  return map(thread, name, found, isOfPool, address);
}

CUresult SharedObjects::map(Thread& thread, const SharedName& name, const Found& found, bool isOfPool, uint64_t& address) {
  Session& session = thread.session;
  session.use(thread, found.device);
  if (found.bytes == 0 || found.bytes > managedPart || found.offset > found.bytes || found.size > found.bytes - found.offset)
    return CUDA_ERROR_MAP_FAILED;
  auto lease = session.memory.reserveShared(found.device, found.bytes);
  if (!lease) return CUDA_ERROR_OUT_OF_MEMORY;
  address = *lease + found.offset;
  CUresult result;
  {
    Call<api::Cuda::MemoryOpenParams> frame(thread.on(found.device), api::Method::memoryOpen);
    frame->setAddress(*lease);
    frame->setBytes(found.bytes);
    setName(frame, name);
    result = frame.call();
  }
  if (result != CUDA_SUCCESS) return session.memory.dropShared(*lease, address), result;
  session.memory.addShared(address, found.size, thread.owner());
  std::lock_guard lock(mutex);
  taken.emplace(address, Taken{name, *lease, found.device, isOfPool, 1});
  anyTaken.store(true, std::memory_order_relaxed);
  return CUDA_SUCCESS;
}

CUresult SharedObjects::closeMemory(Thread& thread, uint64_t address, bool isOfPool) {
  std::lock_guard change(changing);
  {
    std::lock_guard lock(mutex);
    auto found = taken.find(address);
    if (found == taken.end() || found->second.isOfPool != isOfPool) return CUDA_ERROR_INVALID_VALUE;
    if (--found->second.times != 0) return CUDA_SUCCESS;
  }
  return end(thread, address);
}

CUresult SharedObjects::closeWhole(Thread& thread, uint64_t address) {
  std::lock_guard change(changing);
  return end(thread, address);
}

// Waits for the devices that may be using the memory.
CUresult SharedObjects::end(Thread& thread, uint64_t address) {
  Session& session = thread.session;
  Taken ended;
  {
    std::lock_guard lock(mutex);
    auto found = taken.find(address);
    if (found == taken.end()) return CUDA_ERROR_INVALID_VALUE;
    ended = found->second;
    taken.erase(found);
  }
  CUresult result = CUDA_SUCCESS;
  for (unsigned device = 0; device < session.devices.size(); ++device)
    if (session.isRingOpen(device) && session.fault(device) == CUDA_SUCCESS)
      if (CUresult error = synchronizeDevice(thread, device); result == CUDA_SUCCESS) result = error;
  {
    Call<api::Cuda::MemoryCloseParams> frame(thread.on(ended.device), api::Method::memoryClose);
    frame->setAddress(ended.lease);
    if (CUresult error = frame.call(); result == CUDA_SUCCESS) result = error;
  }
  session.memory.dropShared(ended.lease, address);
  return result;
}

bool SharedObjects::isTaken(uint64_t address) const {
  if (!anyTaken.load(std::memory_order_relaxed)) return false;
  std::lock_guard lock(mutex);
  return taken.contains(address);
}

bool SharedObjects::isTakenOfPool(uint64_t address) const {
  if (!anyTaken.load(std::memory_order_relaxed)) return false;
  std::lock_guard lock(mutex);
  auto found = taken.find(address);
  return found != taken.end() && found->second.isOfPool;
}

bool SharedObjects::isGiven(uint64_t address) const {
  if (!anyGiven.load(std::memory_order_relaxed)) return false;
  std::lock_guard lock(mutex);
  return given.contains(address);
}

bool SharedObjects::freed(uint64_t object) {
  if (!anyGiven.load(std::memory_order_relaxed)) return false;
  std::lock_guard lock(mutex);
  return given.erase(object) != 0;
}

// ------------------------------------------------------------------ events

CUresult SharedObjects::giveEvent(Thread& thread, uint64_t event, SharedName& name) {
  std::lock_guard change(changing);
  {
    std::lock_guard lock(mutex);
    if (auto known = given.find(event); known != given.end()) return name = known->second, CUDA_SUCCESS;
  }
  name = SharedName::make();
  Call<api::Cuda::EventShareParams> frame(thread.of(event), api::Method::eventShare);
  frame->setEvent(event);
  setName(frame, name);
  if (CUresult error = frame.call()) return error;
  std::lock_guard lock(mutex);
  given.emplace(event, name);
  anyGiven.store(true, std::memory_order_relaxed);
  return CUDA_SUCCESS;
}

CUresult SharedObjects::takeEvent(Thread& thread, const SharedName& name, uint64_t& event) {
  Found found{};
  CUresult known = find(thread, name, found);
  if (known == CUDA_SUCCESS && found.kind != static_cast<uint32_t>(api::Kind::EVENT)) known = CUDA_ERROR_INVALID_VALUE;
  if (known == CUDA_ERROR_INVALID_VALUE) return CUDA_ERROR_MAP_FAILED;  // the driver's error for a handle that is not an event's
  if (known != CUDA_SUCCESS) return known;
  HandleTable& handles = thread.session.handles;
  event = handles.reserve(api::Kind::EVENT, thread.device());
  CUresult result;
  {
    Call<api::Cuda::EventOpenParams> frame(thread.on(thread.device()), api::Method::eventOpen);
    frame->setEvent(event);
    setName(frame, name);
    result = frame.call();
  }
  if (result != CUDA_SUCCESS) return handles.abandon(event), result;
  handles.publish<api::Kind::EVENT>(event, thread.owner(), [](EventState& state) {
    state.flags.store(CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING, std::memory_order_relaxed);
  });
  return CUDA_SUCCESS;
}

// ------------------------------------------------------------------ physical memory

CUresult SharedObjects::givePhysical(Thread& thread, uint64_t physical, const SharedName& name) {
  Call<api::Cuda::PhysicalShareParams> frame(thread.of(physical), api::Method::physicalShare);
  frame->setPhysical(physical);
  setName(frame, name);
  return frame.call();
}

CUresult SharedObjects::takePhysical(Thread& thread, const SharedName& name, uint64_t& physical, uint64_t& bytes) {
  Found found{};
  if (CUresult error = find(thread, name, found)) return error;
  if (found.kind != static_cast<uint32_t>(api::Kind::PHYSICAL)) return CUDA_ERROR_INVALID_VALUE;
  HandleTable& handles = thread.session.handles;
  thread.session.use(thread, found.device);
  physical = handles.create(api::Kind::PHYSICAL, found.device);
  bytes = found.bytes;
  Call<api::Cuda::PhysicalOpenParams> frame(thread.on(found.device), api::Method::physicalOpen);
  frame->setPhysical(physical);
  frame->setBytes(bytes);
  setName(frame, name);
  CUresult result = frame.call();
  if (result != CUDA_SUCCESS) handles.destroy(physical);
  return result;
}

}  // namespace vgpu::client
