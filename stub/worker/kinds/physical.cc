// Physical memory that the program maps itself: a snapshot keeps the bytes of each object. Bytes of an object that another session gives
// (shared.cc) are in that session's snapshot; if that session has released it, in the snapshot of a session that still has it.
#include <fmt/format.h>

#include <set>

#include "cuda-handlers.h"
#include "stub/worker/kinds/kind.h"
#include "vgpu/base/fail.h"

namespace vgpu::stub {

CUresult physicalCreate(Execution& on, const api::FrameReader<api::Cuda::PhysicalCreateParams>& p, Reply& reply) {
  if (handleDevice(p.getPhysical()) != on.device()) return CUDA_ERROR_INVALID_DEVICE;
  PhysicalMemory& memory = on.session.physical;
  CUresult result = memory.create(p.getPhysical(), p.getBytes(), {p.getIsShareable(), p.getIsTilePool(), p.getIsCompressible()});
  if (result != CUDA_SUCCESS) return result;
  reply.init<api::Cuda::PhysicalCreateResults>().setIsCompressible(memory.find(p.getPhysical())->isCompressed);
  return CUDA_SUCCESS;
}

CUresult physicalRelease(Execution& on, const api::FrameReader<api::Cuda::PhysicalReleaseParams>& p, Reply&) {
  if (on.session.tiles.uses(p.getPhysical())) return CUDA_ERROR_NOT_READY;  // the client tries again
  on.session.endSharing(api::Kind::PHYSICAL, p.getPhysical());
  return on.session.physical.release(p.getPhysical());
}

CUresult physicalMap(Execution& on, const api::FrameReader<api::Cuda::PhysicalMapParams>& p, Reply&) {
  return on.session.physical.map(p.getAddress(), p.getBytes(), p.getOffset(), p.getPhysical());
}

CUresult physicalMapHost(Execution& on, const api::FrameReader<api::Cuda::PhysicalMapHostParams>& p, Reply& reply) {
  reply.putOff(on.session.mappingHost(p.getAddress(), p.getBytes(), SessionState::HostSource::in(p)));
  return CUDA_SUCCESS;
}

CUresult physicalUnmap(Execution& on, const api::FrameReader<api::Cuda::PhysicalUnmapParams>& p, Reply&) {
  return on.session.physical.unmap(p.getAddress());
}

CUresult physicalAccess(Execution& on, const api::FrameReader<api::Cuda::PhysicalAccessParams>& p, Reply&) {
  if (p.getDevice() >= on.session.deviceCount()) return CUDA_ERROR_INVALID_DEVICE;
  if (CUresult refused = on.session.use(p.getDevice())) return refused;
  return on.session.physical.setAccess(p.getAddress(), p.getDevice(), static_cast<CUmemAccess_flags>(p.getFlags()));
}

namespace {

enum class Whose : uint64_t {
  own,
  other,     // another session saves and gives it, or another row of this one
  inherited  // from a session that has released it; this session saves and gives it
};

// A row: one object; its bytes are saved once, however often it is mapped. `name`: under which it came from another session, if it did.
struct Saved {
  uint64_t handle = 0, bytes = 0;
  Whose whose = Whose::own;
  SharedName name;
};
Saved savedIn(const Row& row) {
  return {numberIn(row, 0), numberIn(row, 1), static_cast<Whose>(numberIn(row, 2)), {numberIn(row, 3), numberIn(row, 4)}};
}

Rows save(SessionState& session) {
  Rows rows;
  std::set<SharedName> inherited;
  for (auto [handle, bytes] : session.physical.live()) {
    auto [name, isGiven] = session.sharedNames.find(api::Kind::PHYSICAL, handle).value_or(std::pair(SharedName{}, true));
    Whose whose = isGiven ? Whose::own : Whose::other;
    if (session.sharedNames.saves(name)) whose = inherited.insert(name).second ? Whose::inherited : Whose::other;
    rows.push_back({handle, bytes, static_cast<uint64_t>(whose), name.first, name.second});
  }
  return rows;
}

// The names cover also the rows that are the same memory as an inherited object.
void prepare(SessionState& session, const Rows& rows) {
  std::set<SharedName> inherited;
  for (auto& row : rows)
    if (Saved saved = savedIn(row); saved.whose == Whose::inherited) inherited.insert(saved.name);
  session.sharedNames.inherit(inherited);
}

bool isValid(const Row& row, uint64_t devices) {
  Saved saved = savedIn(row);
  return handleKind(saved.handle) == static_cast<unsigned>(api::Kind::PHYSICAL) && handleDevice(saved.handle) < devices &&
         saved.whose <= Whose::inherited && saved.bytes > 0 && isGranular(saved.bytes) &&
         saved.bytes <= deviceArenaBytes;
}

void compare(SessionState& session, const Rows& rows) {
  auto live = session.physical.live();
  for (auto& row : rows) {
    Saved saved = savedIn(row);
    auto found = live.find(saved.handle);
    if (found == live.end() || found->second != saved.bytes)
      fail(fmt::format("{} bytes of the physical memory {:#x} belong to no object of the snapshot", saved.bytes, saved.handle));
  }
}

uint64_t bytes(const Row& row) {
  Saved saved = savedIn(row);
  return saved.whose == Whose::other ? 0 : saved.bytes;
}
unsigned device(const Row& row) { return handleDevice(savedIn(row).handle); }

bool isTilePool(SessionState& session, const Row& row) { return session.physical.find(numberIn(row, 0))->isTilePool; }

void read(SessionState& session, const Row& row, uint64_t offset, std::byte* out, size_t bytes) {
  if (isTilePool(session, row)) return session.tiles.read(session.select(device(row)), numberIn(row, 0), offset, out, bytes);
  readDevice(session, device(row), session.physical.windowOf(savedIn(row).handle) + offset, out, bytes);
}

void write(SessionState& session, const Row& row, uint64_t offset, const std::byte* in, size_t bytes) {
  if (isTilePool(session, row)) return session.tiles.write(session.select(device(row)), numberIn(row, 0), offset, in, bytes);
  writeDevice(session, device(row), session.physical.windowOf(savedIn(row).handle) + offset, in, bytes);
}

}  // namespace

const KindModule physicalKind{.name = "physical",
                              .drop = [](Execution& on) { on.session.physical.endDevice(on.device()); },
                              .destroy = [](Execution& on) { return on.session.physical.endDevice(on.device()); },
                              .columns = "nnnnn",
                              .isValid = isValid,
                              .save = save,
                              .prepare = prepare,
                              .compare = compare,
                              .bytes = bytes,
                              .device = device,
                              .read = read,
                              .write = write};

}  // namespace vgpu::stub
