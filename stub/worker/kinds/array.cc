// Arrays, mipmapped arrays and their parts: levels, planes. A snapshot has their bytes in the order that a program sees (array-bytes.h);
// bytes in memory that the program maps to an array are saved with that memory.
#include <fmt/format.h>

#include <algorithm>

#include "cuda-handlers.h"
#include "stub/worker/array-bytes.h"
#include "stub/worker/kinds/kind.h"
#include "vgpu/api/array-format.h"
#include "vgpu/base/fail.h"

namespace vgpu::stub {

namespace {

bool isKnown(const CUDA_ARRAY3D_DESCRIPTOR& shape) { return arrayUnit(shape.Format, shape.NumChannels).isKnown(); }
bool isMapped(const CUDA_ARRAY3D_DESCRIPTOR& shape) {
  return (shape.Flags & (CUDA_ARRAY3D_SPARSE | CUDA_ARRAY3D_DEFERRED_MAPPING)) != 0;
}

ArrayInfo infoOf(const CUDA_ARRAY3D_DESCRIPTOR& shape, uint64_t whole) {
  const ArrayUnit unit = arrayUnit(shape.Format, shape.NumChannels);
  return {whole, unit.count(shape.Width) * unit.bytes, std::max<uint64_t>(unit.count(shape.Height), 1),
          std::max<uint64_t>(shape.Depth, 1), isMapped(shape)};
}

void add(Execution& on, api::Kind kind, uint64_t handle, uint64_t real, const ArrayInfo& info) {
  on.handles.add(kind, handle, real);
  std::lock_guard lock(on.arrays.mutex);
  on.arrays.live[handle] = info;
}

// Forgets an array or mipmapped array with its parts, which end with it. `destroy` ends it in the driver.
CUresult end(Execution& on, uint64_t handle, std::function<CUresult()> destroy) {
  {
    std::lock_guard lock(on.arrays.mutex);
    on.arrays.live.erase(handle);
    std::erase_if(on.arrays.live, [&](auto& array) {
      if (array.second.whole != handle) return false;
      on.handles.remove(api::Kind::ARRAY, array.first);
      return true;
    });
  }
  return on.afterAllWork([&session = on.session, handle, destroy = std::move(destroy)] {
    CUresult result = destroy();
    session.tiles.forget(handle);
    return result;
  }, Execution::DriverWaits::yes);
}

}  // namespace

std::optional<ArrayInfo> Arrays::find(uint64_t handle) const {
  std::lock_guard lock(mutex);
  auto found = live.find(handle);
  return found != live.end() ? std::optional(found->second) : std::nullopt;
}

CUresult arrayCreate(Execution& on, const api::FrameReader<api::Cuda::ArrayCreateParams>& p, Reply&) {
  auto shape = p.getShape<CUDA_ARRAY3D_DESCRIPTOR>();
  CUarray array = nullptr;
  if (!isKnown(shape)) return CUDA_ERROR_INVALID_VALUE;
  if (CUresult error = on.driver.cuArray3DCreate_v2(&array, &shape)) return error;
  add(on, api::Kind::ARRAY, p.getArray(), toWire(array), infoOf(shape, 0));
  return CUDA_SUCCESS;
}

CUresult arrayDestroy(Execution& on, const api::FrameReader<api::Cuda::ArrayDestroyParams>& p, Reply&) {
  auto array = fromWire<CUarray>(on.handles.get(api::Kind::ARRAY, p.getArray()));
  if (on.arrays.live.at(p.getArray()).whole != 0) return CUDA_ERROR_INVALID_HANDLE;
  on.handles.remove(api::Kind::ARRAY, p.getArray());
  return end(on, p.getArray(), [&driver = on.driver, array] { return driver.cuArrayDestroy(array); });
}

CUresult mipmapCreate(Execution& on, const api::FrameReader<api::Cuda::MipmapCreateParams>& p, Reply&) {
  auto shape = p.getShape<CUDA_ARRAY3D_DESCRIPTOR>();
  CUmipmappedArray mipmap = nullptr;
  if (!isKnown(shape)) return CUDA_ERROR_INVALID_VALUE;
  if (CUresult error = on.driver.cuMipmappedArrayCreate(&mipmap, &shape, p.getLevels())) return error;
  add(on, api::Kind::MIPMAPPED_ARRAY, p.getMipmap(), toWire(mipmap), {.isMapped = isMapped(shape)});
  return CUDA_SUCCESS;
}

CUresult mipmapDestroy(Execution& on, const api::FrameReader<api::Cuda::MipmapDestroyParams>& p, Reply&) {
  auto mipmap = fromWire<CUmipmappedArray>(on.handles.take(api::Kind::MIPMAPPED_ARRAY, p.getMipmap()));
  return end(on, p.getMipmap(), [&driver = on.driver, mipmap] { return driver.cuMipmappedArrayDestroy(mipmap); });
}

CUresult arrayPart(Execution& on, const api::FrameReader<api::Cuda::ArrayPartParams>& p, Reply& reply) {
  const uint64_t mipmap = p.getMipmap(), whole = mipmap != 0 ? mipmap : p.getArray();
  CUarray part = nullptr;
  CUDA_ARRAY3D_DESCRIPTOR shape{};
  CUresult result = mipmap != 0 ? on.driver.cuMipmappedArrayGetLevel(
                                      &part, fromWire<CUmipmappedArray>(on.handles.get(api::Kind::MIPMAPPED_ARRAY, mipmap)), p.getIndex())
                                : on.driver.cuArrayGetPlane(&part, fromWire<CUarray>(on.handles.get(api::Kind::ARRAY, whole)), p.getIndex());
  if (result != CUDA_SUCCESS) return result;
  if (CUresult error = on.driver.cuArray3DGetDescriptor_v2(&shape, part)) return error;
  ArrayInfo info = infoOf(shape, whole);
  info.isMapped |= on.arrays.live.at(whole).isMapped;
  add(on, api::Kind::ARRAY, p.getPart(), toWire(part), info);
  reply.init<api::Cuda::ArrayPartResults>().setShape(shape);
  return CUDA_SUCCESS;
}

namespace {

// The array of a row that was compared, with its GPU and shape.
struct Found {
  Execution& on;
  const ArrayInfo& info;
  CUarray real;
};
Found find(SessionState& session, const Row& row) {
  uint64_t handle = numberIn(row, 0);
  Execution& on = session.select(handleDevice(handle));
  return {on, on.arrays.live.at(handle), fromWire<CUarray>(on.handles.get(api::Kind::ARRAY, handle))};
}

void drop(Execution& on) {
  std::lock_guard lock(on.arrays.mutex);
  on.arrays.live.clear();
}

// Parts end with their whole, so their handles are only removed.
CUresult destroy(Execution& on) {
  for (auto& [handle, array] : on.arrays.live)
    if (array.whole != 0) on.handles.remove(api::Kind::ARRAY, handle);
  return CUDA_SUCCESS;
}

// A row: virtual handle, bytes.
Rows save(SessionState& session) {
  Rows rows;
  for (unsigned device = 0; device < session.deviceCount(); ++device)
    for (auto& [handle, array] : session.of(device).arrays.live)
      if (array.bytes() != 0) rows.push_back({handle, array.bytes()});
  std::ranges::sort(rows);
  return rows;
}

bool isValid(const Row& row, uint64_t devices) {
  return handleDevice(numberIn(row, 0)) < devices && numberIn(row, 1) > 0 && numberIn(row, 1) <= deviceArenaBytes;
}

void compare(SessionState& session, const Rows& rows) {
  for (auto& row : rows) {
    uint64_t handle = numberIn(row, 0), bytes = numberIn(row, 1);
    auto& arrays = session.of(handleDevice(handle)).arrays.live;
    auto found = arrays.find(handle);
    if (found == arrays.end() || found->second.bytes() != bytes)
      fail(fmt::format("the snapshot has {} bytes of the array {:#x}, but its objects create {}", bytes, handle,
                       found == arrays.end() ? "no such array" : fmt::format("one of {}", found->second.bytes())));
  }
}

uint64_t bytes(const Row& row) { return numberIn(row, 1); }
unsigned device(const Row& row) { return handleDevice(numberIn(row, 0)); }

void read(SessionState& session, const Row& row, uint64_t offset, std::byte* out, size_t bytes) {
  auto [on, info, array] = find(session, row);
  readArray(on, array, info, offset, out, bytes);
}

void write(SessionState& session, const Row& row, uint64_t offset, const std::byte* in, size_t bytes) {
  auto [on, info, array] = find(session, row);
  writeArray(on, array, info, offset, in, bytes);
}

}  // namespace

const KindModule arrayKind{.name = "arrays",
                           .drop = drop,
                           .destroy = destroy,
                           .columns = "nn",
                           .isValid = isValid,
                           .save = save,
                           .compare = compare,
                           .bytes = bytes,
                           .device = device,
                           .read = read,
                           .write = write};

}  // namespace vgpu::stub
