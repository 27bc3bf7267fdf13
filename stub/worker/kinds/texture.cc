// Texture and surface objects. The program keeps the device's numbers of them: texture-handles.h.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "cuda-handlers.h"
#include "stub/worker/kinds/kind.h"
#include "stub/worker/texture-handles.h"
#include "vgpu/api/array-format.h"
#include "vgpu/base/fail.h"

namespace vgpu::stub {

namespace {

TextureHandles& texturesOf(Execution& on) { return on.kept.of<TextureHandles>(on.driver, on.session.physical, on.device()); }

// Memory that the program names must be its own: the device would read any memory.
bool isOwn(Execution& on, const CUDA_RESOURCE_DESC& resource) {
  if (resource.resType != CU_RESOURCE_TYPE_LINEAR && resource.resType != CU_RESOURCE_TYPE_PITCH2D) return false;
  if (resource.resType == CU_RESOURCE_TYPE_LINEAR) return on.ownsMemory(resource.res.linear.devPtr, resource.res.linear.sizeInBytes);
  auto& rows = resource.res.pitch2D;
  const uint64_t element = arrayUnit(rows.format, rows.numChannels).bytes;
  if (element == 0 || rows.numChannels > 4 || rows.height == 0) return false;
  unsigned __int128 row = static_cast<unsigned __int128>(rows.width) * element;
  unsigned __int128 bytes = static_cast<unsigned __int128>(rows.height - 1) * rows.pitchInBytes + row;
  return row <= deviceArenaBytes && bytes <= deviceArenaBytes && on.ownsMemory(rows.devPtr, static_cast<uint64_t>(bytes));
}

// An object's resource: the program's description with the driver's handles in it, and the virtual handle of the array or mipmapped array;
// 0: it is memory.
struct Resource {
  CUDA_RESOURCE_DESC described{};
  uint64_t image = 0;
};

Resource arrayOf(Execution& on, uint64_t array, CUDA_RESOURCE_DESC described = {.resType = CU_RESOURCE_TYPE_ARRAY}) {
  described.res.array.hArray = fromWire<CUarray>(on.handles.get(api::Kind::ARRAY, array));
  return {described, array};
}

Resource readResource(Execution& on, const api::FrameReader<api::Cuda::TextureCreateParams>& p) {
  auto described = p.getResource<CUDA_RESOURCE_DESC>();
  if (described.resType == CU_RESOURCE_TYPE_ARRAY) return arrayOf(on, p.getArray(), described);
  if (described.resType != CU_RESOURCE_TYPE_MIPMAPPED_ARRAY) return {described};
  described.res.mipmap.hMipmappedArray = fromWire<CUmipmappedArray>(on.handles.get(api::Kind::MIPMAPPED_ARRAY, p.getMipmap()));
  return {described, p.getMipmap()};
}

TextureHandles::IsThere isThere(Execution& on, const Resource& resource) {
  return [&on, resource] { return resource.image == 0 ? isOwn(on, resource.described) : on.arrays.find(resource.image).has_value(); };
}

// Deferred, because a launch posted before may use the object: the driver would give its number to the next object at once.
CUresult destroyLater(Execution& on, uint64_t handle, bool surface) {
  auto object = texturesOf(on).take(handle, surface);
  if (!object) return CUDA_ERROR_INVALID_HANDLE;
  return on.afterAllWork([&on, object = *object] { return texturesOf(on).destroyReal(object); });
}

}  // namespace

CUresult textureCreate(Execution& on, const api::FrameReader<api::Cuda::TextureCreateParams>& p, Reply& reply) {
  Resource resource = readResource(on, p);
  auto sampling = p.getSampling<CUDA_TEXTURE_DESC>();
  auto view = p.getView<CUDA_RESOURCE_VIEW_DESC>();
  uint64_t value = 0;
  CUresult result = texturesOf(on).make(
      p.getTexture(), false, isThere(on, resource),
      [&driver = on.driver, resource = resource.described, sampling, view, hasView = p.getHasView()](CUtexObject& made) {
        return driver.cuTexObjectCreate(&made, &resource, &sampling, hasView ? &view : nullptr);
      },
      value);
  if (result == CUDA_SUCCESS) reply.init<api::Cuda::TextureCreateResults>().setValue(value);
  return result;
}

CUresult textureDestroy(Execution& on, const api::FrameReader<api::Cuda::TextureDestroyParams>& p, Reply&) {
  return destroyLater(on, p.getTexture(), false);
}

CUresult surfaceCreate(Execution& on, const api::FrameReader<api::Cuda::SurfaceCreateParams>& p, Reply& reply) {
  Resource resource = arrayOf(on, p.getArray());
  uint64_t value = 0;
  CUresult result = texturesOf(on).make(
      p.getSurface(), true, isThere(on, resource),
      [&driver = on.driver, resource = resource.described](CUsurfObject& made) { return driver.cuSurfObjectCreate(&made, &resource); },
      value);
  if (result == CUDA_SUCCESS) reply.init<api::Cuda::SurfaceCreateResults>().setValue(value);
  return result;
}

CUresult surfaceDestroy(Execution& on, const api::FrameReader<api::Cuda::SurfaceDestroyParams>& p, Reply&) {
  return destroyLater(on, p.getSurface(), true);
}

namespace {

// A row: virtual handle, device, number, whether it is a surface.
unsigned deviceOf(const Row& row) { return static_cast<unsigned>(numberIn(row, 1)); }
TextureHandle objectOf(const Row& row) {
  return {.surface = numberIn(row, 3) != 0, .value = numberIn(row, 2)};
}

void drop(Execution& on) { texturesOf(on).forgetAll(); }

CUresult destroy(Execution& on) {
  for (auto& [handle, object] : texturesOf(on).live())
    if (CUresult error = texturesOf(on).destroyReal(object)) return error;
  return CUDA_SUCCESS;
}

Rows save(SessionState& session) {
  Rows rows;
  for (unsigned device = 0; device < session.deviceCount(); ++device)
    for (auto& [handle, object] : texturesOf(session.of(device)).live())
      rows.push_back({handle, uint64_t{device}, object.value, uint64_t{object.surface}});
  std::ranges::sort(rows);
  return rows;
}

bool isValid(const Row& row, uint64_t devices) {
  constexpr uint64_t most = 1 << 20;  // a restore may have to make placeholders for all of them: texture-handles.h
  return numberIn(row, 1) < devices && numberIn(row, 2) <= most;
}

void prepare(SessionState& session, const Rows& rows) {
  std::map<unsigned, std::unordered_map<uint64_t, TextureHandle>> wanted;
  for (auto& row : rows) wanted[deviceOf(row)][numberIn(row, 0)] = objectOf(row);
  for (auto& [device, handles] : wanted) texturesOf(session.of(device)).expect(std::move(handles));
}

void compare(SessionState& session, const Rows& rows) {
  for (unsigned device : session.usedDevices())
    require(session.driver, texturesOf(session.select(device)).finishRestore(), "recreating textures and surfaces");
  for (auto& row : rows) {
    auto& live = texturesOf(session.of(deviceOf(row))).live();
    uint64_t handle = numberIn(row, 0);
    TextureHandle saved = objectOf(row);
    const char* kind = saved.surface ? "surface" : "texture";
    auto found = live.find(handle);
    if (found == live.end())
      fail(fmt::format("the snapshot has the {} {:#x}, which none of its objects creates", kind, handle));
    if (found->second.value != saved.value)
      fail(fmt::format("the {} {:#x} has the handle {} on this device, but the program knows it by {}: the driver gives handles in another "
                       "order, so this snapshot cannot be resumed here",
                       kind, handle, found->second.value, saved.value));
  }
}

}  // namespace

const KindModule textureKind{.name = "textures",
                             .drop = drop,
                             .destroy = destroy,
                             .columns = "nnnn",
                             .isValid = isValid,
                             .save = save,
                             .prepare = prepare,
                             .compare = compare};

}  // namespace vgpu::stub
