// Arrays, mipmapped arrays and their levels. Their layout is the device's own: a snapshot has their bytes in the order that a
// program sees, element after element, row after row.
#include <fmt/format.h>

#include <algorithm>

#include "cuda-handlers.h"
#include "stub/worker/kinds/kind.h"
#include "vgpu/api/array-format.h"
#include "vgpu/base/fail.h"

namespace vgpu::stub {

namespace {

// An array whose bytes no snapshot could keep is not made.
bool canBeSaved(const CUDA_ARRAY3D_DESCRIPTOR& shape) {
  return channelBytes(shape.Format) != 0 && (shape.Flags & (CUDA_ARRAY3D_SPARSE | CUDA_ARRAY3D_DEFERRED_MAPPING)) == 0;
}

ArrayInfo infoOf(const CUDA_ARRAY3D_DESCRIPTOR& shape, uint64_t mipmap) {
  return {mipmap, uint64_t{shape.Width} * shape.NumChannels * channelBytes(shape.Format),
          std::max<uint64_t>(shape.Height, 1), std::max<uint64_t>(shape.Depth, 1)};
}

void add(Execution& on, uint64_t handle, CUarray real, const ArrayInfo& info) {
  on.handles.add(api::Kind::ARRAY, handle, toWire(real));
  std::lock_guard lock(on.arrays.mutex);
  on.arrays.live[handle] = info;
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
  if (!canBeSaved(shape)) return CUDA_ERROR_NOT_SUPPORTED;
  if (CUresult error = on.driver.cuArray3DCreate_v2(&array, &shape)) return error;
  add(on, p.getArray(), array, infoOf(shape, 0));
  return CUDA_SUCCESS;
}

CUresult arrayDestroy(Execution& on, const api::FrameReader<api::Cuda::ArrayDestroyParams>& p, Reply&) {
  auto array = fromWire<CUarray>(on.handles.get(api::Kind::ARRAY, p.getArray()));
  if (on.arrays.live.at(p.getArray()).mipmap != 0) return CUDA_ERROR_INVALID_HANDLE;
  on.handles.remove(api::Kind::ARRAY, p.getArray());
  {
    std::lock_guard lock(on.arrays.mutex);
    on.arrays.live.erase(p.getArray());
  }
  return on.afterAllWork([&driver = on.driver, array] { return driver.cuArrayDestroy(array); });
}

CUresult mipmapCreate(Execution& on, const api::FrameReader<api::Cuda::MipmapCreateParams>& p, Reply&) {
  auto shape = p.getShape<CUDA_ARRAY3D_DESCRIPTOR>();
  CUmipmappedArray mipmap = nullptr;
  if (!canBeSaved(shape)) return CUDA_ERROR_NOT_SUPPORTED;
  if (CUresult error = on.driver.cuMipmappedArrayCreate(&mipmap, &shape, p.getLevels())) return error;
  on.handles.add(api::Kind::MIPMAPPED_ARRAY, p.getMipmap(), toWire(mipmap));
  return CUDA_SUCCESS;
}

CUresult mipmapLevel(Execution& on, const api::FrameReader<api::Cuda::MipmapLevelParams>& p, Reply& reply) {
  auto mipmap = fromWire<CUmipmappedArray>(on.handles.get(api::Kind::MIPMAPPED_ARRAY, p.getMipmap()));
  CUarray level = nullptr;
  CUDA_ARRAY3D_DESCRIPTOR shape{};
  if (CUresult error = on.driver.cuMipmappedArrayGetLevel(&level, mipmap, p.getIndex())) return error;
  if (CUresult error = on.driver.cuArray3DGetDescriptor_v2(&shape, level)) return error;
  add(on, p.getLevel(), level, infoOf(shape, p.getMipmap()));
  reply.init<api::Cuda::MipmapLevelResults>().setShape(shape);
  return CUDA_SUCCESS;
}

CUresult mipmapDestroy(Execution& on, const api::FrameReader<api::Cuda::MipmapDestroyParams>& p, Reply&) {
  uint64_t handle = p.getMipmap();
  auto mipmap = fromWire<CUmipmappedArray>(on.handles.take(api::Kind::MIPMAPPED_ARRAY, handle));
  {
    std::lock_guard lock(on.arrays.mutex);
    std::erase_if(on.arrays.live, [&](auto& array) {
      if (array.second.mipmap != handle) return false;
      on.handles.remove(api::Kind::ARRAY, array.first);
      return true;
    });
  }
  return on.afterAllWork([&driver = on.driver, mipmap] { return driver.cuMipmappedArrayDestroy(mipmap); });
}

namespace {

// A part of an array that is a rectangle of one slice, and where its bytes lie in the order of the file.
struct Part {
  uint64_t x, row, slice, width, rows, done;
};

// Calls `copy` for the parts of [offset, offset + bytes), in order: the rest of a row, whole rows, the start of a row.
template <typename Copy>
void forParts(const ArrayInfo& array, uint64_t offset, uint64_t bytes, Copy copy) {
  for (uint64_t done = 0; done < bytes;) {
    uint64_t at = offset + done, left = bytes - done, row = at / array.rowBytes;
    Part part{at % array.rowBytes, row % array.rows, row / array.rows, 0, 1, done};
    bool whole = part.x == 0 && left >= array.rowBytes;
    part.rows = whole ? std::min(left / array.rowBytes, array.rows - part.row) : 1;
    part.width = whole ? array.rowBytes : std::min(left, array.rowBytes - part.x);
    copy(part);
    done += part.width * part.rows;
  }
}

CUDA_MEMCPY3D boxOf(const Part& part) {
  CUDA_MEMCPY3D copy{};
  copy.WidthInBytes = part.width;
  copy.Height = part.rows;
  copy.Depth = 1;
  return copy;
}

void begin(Execution& on, const CUDA_MEMCPY3D& copy) {
  require(on.driver, on.driver.cuMemcpy3DAsync_v2(&copy, on.gpu.progress.ownStream()), "copying an array");
}

// An array of a row that was compared, and what it is on.
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

// A level ends with its mipmapped array.
CUresult destroy(Execution& on) {
  for (auto& [handle, array] : on.arrays.live)
    if (array.mipmap != 0) on.handles.remove(api::Kind::ARRAY, handle);
  return CUDA_SUCCESS;
}

// A row: virtual handle, bytes.
Rows save(SessionState& session) {
  Rows rows;
  for (unsigned device = 0; device < session.deviceCount(); ++device)
    for (auto& [handle, array] : session.of(device).arrays.live) rows.push_back({handle, array.bytes()});
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
      fail(fmt::format("the snapshot keeps {} bytes of the array {:#x}, and its objects make {}", bytes, handle,
                       found == arrays.end() ? "no such array" : fmt::format("one of {}", found->second.bytes())));
  }
}

uint64_t bytes(const Row& row) { return numberIn(row, 1); }
unsigned device(const Row& row) { return handleDevice(numberIn(row, 0)); }

void read(SessionState& session, const Row& row, uint64_t offset, std::byte* out, size_t bytes) {
  auto [on, info, array] = find(session, row);
  forParts(info, offset, bytes, [&](const Part& part) {
    CUDA_MEMCPY3D copy = boxOf(part);
    copy.srcMemoryType = CU_MEMORYTYPE_ARRAY;
    copy.srcArray = array;
    copy.srcXInBytes = part.x;
    copy.srcY = part.row;
    copy.srcZ = part.slice;
    copy.dstMemoryType = CU_MEMORYTYPE_HOST;
    copy.dstHost = out + part.done;
    copy.dstPitch = part.width;
    begin(on, copy);
  });
}

void write(SessionState& session, const Row& row, uint64_t offset, const std::byte* in, size_t bytes) {
  std::vector<std::byte> zeros(in == nullptr ? bytes : 0);
  auto [on, info, array] = find(session, row);
  forParts(info, offset, bytes, [&](const Part& part) {
    CUDA_MEMCPY3D copy = boxOf(part);
    copy.srcMemoryType = CU_MEMORYTYPE_HOST;
    copy.srcHost = (in == nullptr ? zeros.data() : in) + part.done;
    copy.srcPitch = part.width;
    copy.dstMemoryType = CU_MEMORYTYPE_ARRAY;
    copy.dstArray = array;
    copy.dstXInBytes = part.x;
    copy.dstY = part.row;
    copy.dstZ = part.slice;
    begin(on, copy);
  });
  if (in == nullptr) require(on.driver, on.driver.cuStreamSynchronize(on.gpu.progress.ownStream()), "copying an array");
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
