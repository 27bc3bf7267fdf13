// Physical memory that the program maps itself: a snapshot keeps the bytes of each object.
#include <fmt/format.h>

#include "cuda-handlers.h"
#include "stub/worker/kinds/kind.h"
#include "vgpu/base/fail.h"

namespace vgpu::stub {

CUresult physicalCreate(Execution& on, const api::FrameReader<api::Cuda::PhysicalCreateParams>& p, Reply&) {
  if (handleDevice(p.getPhysical()) != on.device()) return CUDA_ERROR_INVALID_DEVICE;
  return on.session.physical.create(p.getPhysical(), p.getBytes(), p.getIsShareable());
}

CUresult physicalRelease(Execution& on, const api::FrameReader<api::Cuda::PhysicalReleaseParams>& p, Reply&) {
  on.session.endSharing(api::Kind::PHYSICAL, p.getPhysical());
  return on.session.physical.release(p.getPhysical());
}

CUresult physicalMap(Execution& on, const api::FrameReader<api::Cuda::PhysicalMapParams>& p, Reply&) {
  return on.session.physical.map(p.getAddress(), p.getBytes(), p.getOffset(), p.getPhysical());
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

// A row: one object, its bytes once, however often it is mapped.
struct Saved {
  uint64_t handle = 0, bytes = 0;
};
Saved savedIn(const Row& row) { return {numberIn(row, 0), numberIn(row, 1)}; }

Rows save(SessionState& session) {
  Rows rows;
  for (auto [handle, bytes] : session.physical.live()) rows.push_back({handle, bytes});
  return rows;
}

bool isValid(const Row& row, uint64_t devices) {
  Saved saved = savedIn(row);
  return handleKind(saved.handle) == static_cast<unsigned>(api::Kind::PHYSICAL) && handleDevice(saved.handle) < devices &&
         saved.bytes > 0 && saved.bytes % leaseGranularity == 0 && saved.bytes <= deviceArenaBytes;
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

uint64_t bytes(const Row& row) { return savedIn(row).bytes; }
unsigned device(const Row& row) { return handleDevice(savedIn(row).handle); }

void read(SessionState& session, const Row& row, uint64_t offset, std::byte* out, size_t bytes) {
  readDevice(session, device(row), session.physical.windowOf(savedIn(row).handle) + offset, out, bytes);
}

void write(SessionState& session, const Row& row, uint64_t offset, const std::byte* in, size_t bytes) {
  writeDevice(session, device(row), session.physical.windowOf(savedIn(row).handle) + offset, in, bytes);
}

}  // namespace

const KindModule physicalKind{.name = "physical",
                              .drop = [](Execution& on) { on.session.physical.endDevice(on.device()); },
                              .destroy = [](Execution& on) { return on.session.physical.endDevice(on.device()); },
                              .columns = "nn",
                              .isValid = isValid,
                              .save = save,
                              .compare = compare,
                              .bytes = bytes,
                              .device = device,
                              .read = read,
                              .write = write};

}  // namespace vgpu::stub
