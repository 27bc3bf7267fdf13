// What sessions of one user share: memory, events, and physical memory that the program maps. A shared object has a name, by which the
// daemon finds it for other sessions (stub/worker/exchange.h). Calls to the daemon are made on the thread of slow calls.
#include <cstring>
#include <memory>

#include "cuda-handlers.h"
#include "stub/worker/execution.h"

namespace vgpu::stub {

namespace {

template <typename Params>
SharedName nameIn(const Params& p) {
  return {p.getFirst(), p.getSecond()};
}

CUresult uuidOf(const Driver& driver, unsigned device, std::array<std::byte, 16>& uuid) {
  CUuuid real{};
  if (CUresult error = driver.cuDeviceGetUuid_v2(&real, driver.device(device))) return error;
  std::memcpy(uuid.data(), real.bytes, uuid.size());
  return CUDA_SUCCESS;
}

// The session's device with that GPU's UUID.
std::optional<unsigned> deviceOf(SessionState& session, const std::array<std::byte, 16>& uuid) {
  for (unsigned device = 0; device < session.deviceCount(); ++device) {
    std::array<std::byte, 16> known{};
    if (uuidOf(session.driver, device, known) == CUDA_SUCCESS && known == uuid) return device;
  }
  return std::nullopt;
}

// Owns the descriptors, so that they are closed unless the call passes them on.
std::vector<kj::AutoCloseFd> owned(const std::vector<DeviceLeases::Part>& parts) {
  std::vector<kj::AutoCloseFd> descriptors;
  for (auto& part : parts) descriptors.emplace_back(part.descriptor);
  return descriptors;
}

// What is passed to and from the thread of slow calls: a shared object, and the descriptors of its memory.
struct Passed {
  SharedObject object;
  std::vector<kj::AutoCloseFd> parts;
};

// The rest of a call that publishes an object. Calls `undo` if the name is in use, which does not happen to an honest program.
SlowCall publishing(Execution& on, uint64_t handle, const SharedName& name, SharedObject object,
                    std::vector<kj::AutoCloseFd> parts, std::function<void()> undo) {
  auto given = std::make_shared<Passed>(Passed{std::move(object), std::move(parts)});
  auto work = [&session = on.session, name, given] {
    return session.exchange->publish(name, given->object, std::move(given->parts)) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  };
  auto end = [&session = on.session, kind = given->object.kind, handle, name, undo = std::move(undo)](CUresult result, Reply&) {
    if (result == CUDA_SUCCESS) {
      session.sharedNames.add(kind, handle, name, true);
    } else {
      undo();
    }
    return result;
  };
  return {work, end};
}

// The rest of a call that opens a published object of kind `wanted`, as an object of `kind`: `take` is called on the GPU's thread with the
// descriptors.
SlowCall opening(Execution& on, api::Kind wanted, api::Kind kind, uint64_t handle, const SharedName& name,
                 std::function<CUresult(const SharedObject&, const std::vector<kj::AutoCloseFd>&)> take) {
  auto taken = std::make_shared<Passed>();
  auto work = [&session = on.session, name, taken, wanted] {
    auto object = session.exchange->find(name);
    if (!object || object->kind != wanted) return CUDA_ERROR_INVALID_VALUE;
    auto parts = session.exchange->open(name);
    if (!parts) return CUDA_ERROR_INVALID_VALUE;
    taken->object = std::move(*object);
    taken->parts = std::move(*parts);
    return CUDA_SUCCESS;
  };
  auto end = [&session = on.session, kind, handle, name, taken, take = std::move(take)](CUresult result, Reply&) {
    if (result != CUDA_SUCCESS) return result;
    result = take(taken->object, taken->parts);
    if (result == CUDA_SUCCESS) {
      session.residue = "its session has opened an object that another session shares";
      session.sharedNames.add(kind, handle, name, false);
    } else {
      session.exchange->close(name);
    }
    return result;
  };
  return {work, end};
}

}  // namespace

// ------------------------------------------------------------------ memory

CUresult memoryShare(Execution& on, const api::FrameReader<api::Cuda::MemoryShareParams>& p, Reply& reply) {
  const uint64_t address = p.getAddress(), bytes = on.handles.get(api::Kind::MEMORY, address);
  if (on.session.exchange == nullptr) return CUDA_ERROR_NOT_SUPPORTED;
  if (on.session.sharedNames.has(api::Kind::MEMORY, address)) return CUDA_ERROR_INVALID_VALUE;
  std::vector<DeviceLeases::Part> parts;
  if (CUresult error = on.session.moveWhileIdle(on, [&] { return on.gpu.leases.share(address, bytes, parts); })) return error;
  SharedObject object{.kind = api::Kind::MEMORY, .offset = address % leaseGranularity, .size = bytes};
  for (auto& part : parts) {
    object.parts.push_back(part.bytes);
    object.bytes += part.bytes;
  }
  auto descriptors = owned(parts);
  auto undo = [&on, address, bytes] { on.session.moveWhileIdle(on, [&] { return on.gpu.leases.unshare(address, bytes); }); };
  if (CUresult error = uuidOf(on.driver, on.device(), object.device)) return undo(), error;
  reply.putOff(publishing(on, address, {p.getFirst(), p.getSecond()}, std::move(object), std::move(descriptors), undo));
  return CUDA_SUCCESS;
}

CUresult sharedFind(Execution& on, const api::FrameReader<api::Cuda::SharedFindParams>& p, Reply& reply) {
  if (on.session.exchange == nullptr) return CUDA_ERROR_NOT_SUPPORTED;
  auto found = std::make_shared<SharedObject>();
  auto work = [&session = on.session, name = nameIn(p), found] {
    auto object = session.exchange->find(name);
    if (!object) return CUDA_ERROR_INVALID_VALUE;
    *found = std::move(*object);
    return CUDA_SUCCESS;
  };
  reply.putOff({work, [&session = on.session, found](CUresult result, Reply& late) {
                  if (result != CUDA_SUCCESS) return result;
                  auto device = found->kind == api::Kind::EVENT ? 0u : deviceOf(session, found->device);
                  if (!device) return CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;  // this session does not have the GPU
                  auto results = late.init<api::Cuda::SharedFindResults>();
                  results.setKind(static_cast<uint32_t>(found->kind));
                  results.setDevice(*device);
                  results.setBytes(found->bytes);
                  results.setOffset(found->offset);
                  results.setSize(found->size);
                  return CUDA_SUCCESS;
                }});
  return CUDA_SUCCESS;
}

CUresult memoryOpen(Execution& on, const api::FrameReader<api::Cuda::MemoryOpenParams>& p, Reply& reply) {
  if (on.session.exchange == nullptr) return CUDA_ERROR_NOT_SUPPORTED;
  auto take = [&on, address = p.getAddress(), bytes = p.getBytes()](const SharedObject& object,
                                                                    const std::vector<kj::AutoCloseFd>& descriptors) {
    if (object.bytes != bytes || object.parts.size() != descriptors.size()) return CUDA_ERROR_INVALID_VALUE;
    std::vector<DeviceLeases::Part> parts;
    for (size_t i = 0; i < descriptors.size(); ++i) parts.push_back({object.parts[i], descriptors[i].get()});
    return on.gpu.leases.adopt(address, parts);
  };
  reply.putOff(opening(on, api::Kind::MEMORY, api::Kind::LEASE, p.getAddress(), nameIn(p), take));
  return CUDA_SUCCESS;
}

CUresult memoryClose(Execution& on, const api::FrameReader<api::Cuda::MemoryCloseParams>& p, Reply&) {
  if (!on.session.sharedNames.has(api::Kind::LEASE, p.getAddress())) return CUDA_ERROR_INVALID_VALUE;
  CUresult result = on.gpu.leases.endLease(p.getAddress());
  on.session.endSharing(api::Kind::LEASE, p.getAddress());
  return result;
}

// ------------------------------------------------------------------ events

CUresult eventShare(Execution& on, const api::FrameReader<api::Cuda::EventShareParams>& p, Reply& reply) {
  auto event = fromWire<CUevent>(on.handles.get(api::Kind::EVENT, p.getEvent()));
  if (on.session.exchange == nullptr) return CUDA_ERROR_NOT_SUPPORTED;
  if (on.session.sharedNames.has(api::Kind::EVENT, p.getEvent())) return CUDA_ERROR_INVALID_HANDLE;
  CUipcEventHandle real{};
  if (CUresult error = on.driver.cuIpcGetEventHandle(&real, event)) return error;
  SharedObject object{.kind = api::Kind::EVENT};
  object.content.resize(sizeof real);
  std::memcpy(object.content.data(), &real, sizeof real);
  reply.putOff(publishing(on, p.getEvent(), nameIn(p), std::move(object), {}, [] {}));
  return CUDA_SUCCESS;
}

CUresult eventOpen(Execution& on, const api::FrameReader<api::Cuda::EventOpenParams>& p, Reply& reply) {
  if (on.session.exchange == nullptr) return CUDA_ERROR_NOT_SUPPORTED;
  auto take = [&on, handle = p.getEvent()](const SharedObject& object, const std::vector<kj::AutoCloseFd>&) {
    CUipcEventHandle real{};
    CUevent event = nullptr;
    if (object.content.size() != sizeof real) return CUDA_ERROR_INVALID_HANDLE;
    std::memcpy(&real, object.content.data(), sizeof real);
    if (CUresult error = on.driver.cuIpcOpenEventHandle(&event, real)) return error;
    on.handles.add(api::Kind::EVENT, handle, toWire(event));
    return CUDA_SUCCESS;
  };
  reply.putOff(opening(on, api::Kind::EVENT, api::Kind::EVENT, p.getEvent(), nameIn(p), take));
  return CUDA_SUCCESS;
}

CUresult eventQuery(Execution& on, const api::FrameReader<api::Cuda::EventQueryParams>& p, Reply&) {
  return on.driver.cuEventQuery(fromWire<CUevent>(on.handles.get(api::Kind::EVENT, p.getEvent())));
}

CUresult streamWaitShared(Execution& on, const api::FrameReader<api::Cuda::StreamWaitSharedParams>& p, Reply&) {
  auto event = fromWire<CUevent>(on.handles.get(api::Kind::EVENT, p.getHEvent()));
  return on.driver.cuStreamWaitEvent(on.stream(p.getHStream()), event, CU_EVENT_WAIT_DEFAULT);
}

// ------------------------------------------------------------------ physical memory

namespace {

// The rest of a call that publishes a physical object of this session's GPU.
CUresult publishPhysical(Execution& on, uint64_t physical, const SharedName& name, Reply& reply) {
  SharedObject object{.kind = api::Kind::PHYSICAL};
  int descriptor = -1;
  if (CUresult error = on.session.physical.share(physical, object.bytes, descriptor)) return error;
  auto descriptors = owned({{object.bytes, descriptor}});
  if (CUresult error = uuidOf(on.driver, on.device(), object.device)) return error;
  object.size = object.bytes;
  object.parts = {object.bytes};
  reply.putOff(publishing(on, physical, name, std::move(object), std::move(descriptors), [] {}));
  return CUDA_SUCCESS;
}

// In a restored session that has inherited the object (shared-names.h): the first time, creates it and publishes it for the others; later,
// imports it from this session's first object.
CUresult makeInherited(Execution& on, uint64_t physical, uint64_t bytes, const SharedName& name, Reply& reply) {
  const uint64_t first = on.session.sharedNames.firstOf(name, physical);
  if (first == physical) {
    if (CUresult error = on.session.physical.create(physical, bytes, {.isShareable = true})) return error;
    return publishPhysical(on, physical, name, reply);
  }
  uint64_t found = 0;
  int descriptor = -1;
  if (CUresult error = on.session.physical.share(first, found, descriptor)) return error;
  auto descriptors = owned({{found, descriptor}});
  if (found != bytes) return CUDA_ERROR_INVALID_VALUE;
  if (CUresult error = on.session.physical.adopt(physical, bytes, descriptor)) return error;
  on.session.sharedNames.add(api::Kind::PHYSICAL, physical, name, false);
  return CUDA_SUCCESS;
}

}  // namespace

CUresult physicalShare(Execution& on, const api::FrameReader<api::Cuda::PhysicalShareParams>& p, Reply& reply) {
  if (on.session.exchange == nullptr) return CUDA_ERROR_NOT_SUPPORTED;
  if (on.session.sharedNames.has(api::Kind::PHYSICAL, p.getPhysical())) return CUDA_ERROR_INVALID_VALUE;
  return publishPhysical(on, p.getPhysical(), nameIn(p), reply);
}

CUresult physicalOpen(Execution& on, const api::FrameReader<api::Cuda::PhysicalOpenParams>& p, Reply& reply) {
  if (handleDevice(p.getPhysical()) != on.device()) return CUDA_ERROR_INVALID_DEVICE;
  if (on.session.exchange == nullptr) return CUDA_ERROR_NOT_SUPPORTED;
  if (on.session.sharedNames.inherits(nameIn(p))) return makeInherited(on, p.getPhysical(), p.getBytes(), nameIn(p), reply);
  auto take = [&on, physical = p.getPhysical(), bytes = p.getBytes()](const SharedObject& object,
                                                                      const std::vector<kj::AutoCloseFd>& descriptors) {
    if (object.bytes != bytes || descriptors.size() != 1) return CUDA_ERROR_INVALID_VALUE;
    return on.session.physical.adopt(physical, bytes, descriptors[0].get());
  };
  reply.putOff(opening(on, api::Kind::PHYSICAL, api::Kind::PHYSICAL, p.getPhysical(), nameIn(p), take));
  return CUDA_SUCCESS;
}

}  // namespace vgpu::stub
