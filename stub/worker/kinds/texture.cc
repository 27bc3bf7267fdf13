// Texture and surface objects. The program holds the device's numbers of them: texture-handles.h.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "cuda-handlers.h"
#include "stub/worker/kinds/kind.h"
#include "vgpu/api/array-format.h"
#include "vgpu/base/fail.h"

namespace vgpu::stub {

namespace {

// What memory the program names must be its own: the device would read anybody's.
CUresult readMemory(Execution& on, api::TexturedMemory::Reader from, CUDA_RESOURCE_DESC& to) {
  auto format = static_cast<CUarray_format>(from.getFormat());
  if (from.getHeight() == 0) {
    to.resType = CU_RESOURCE_TYPE_LINEAR;
    to.res.linear = {from.getAddress(), format, from.getChannels(), from.getBytes()};
    return on.ownsMemory(from.getAddress(), from.getBytes()) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  }
  to.resType = CU_RESOURCE_TYPE_PITCH2D;
  to.res.pitch2D = {from.getAddress(), format, from.getChannels(), from.getWidth(), from.getHeight(), from.getPitch()};
  uint64_t element = uint64_t{channelBytes(from.getFormat())} * from.getChannels();
  unsigned __int128 row = static_cast<unsigned __int128>(from.getWidth()) * element;
  unsigned __int128 bytes = static_cast<unsigned __int128>(from.getHeight() - 1) * from.getPitch() + row;
  if (element == 0 || from.getChannels() > 4 || row > deviceArenaBytes || bytes > deviceArenaBytes)
    return CUDA_ERROR_INVALID_VALUE;
  return on.ownsMemory(from.getAddress(), static_cast<uint64_t>(bytes)) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult readResource(Execution& on, const api::FrameReader<api::Cuda::TextureCreateParams>& p, CUDA_RESOURCE_DESC& resource) {
  if (p.getArray() != 0) {
    resource.resType = CU_RESOURCE_TYPE_ARRAY;
    resource.res.array.hArray = fromWire<CUarray>(on.handles.get(api::Kind::ARRAY, p.getArray()));
    return CUDA_SUCCESS;
  }
  if (p.getMipmap() != 0) {
    resource.resType = CU_RESOURCE_TYPE_MIPMAPPED_ARRAY;
    resource.res.mipmap.hMipmappedArray =
        fromWire<CUmipmappedArray>(on.handles.get(api::Kind::MIPMAPPED_ARRAY, p.getMipmap()));
    return CUDA_SUCCESS;
  }
  return readMemory(on, p.getMemory(), resource);
}

CUDA_TEXTURE_DESC readSampling(api::Sampling::Reader from) {
  CUDA_TEXTURE_DESC to{};
  to.addressMode[0] = static_cast<CUaddress_mode>(from.getAddressX());
  to.addressMode[1] = static_cast<CUaddress_mode>(from.getAddressY());
  to.addressMode[2] = static_cast<CUaddress_mode>(from.getAddressZ());
  to.filterMode = static_cast<CUfilter_mode>(from.getFilter());
  to.flags = from.getFlags();
  to.maxAnisotropy = from.getMaxAnisotropy();
  to.mipmapFilterMode = static_cast<CUfilter_mode>(from.getMipmapFilter());
  to.mipmapLevelBias = from.getLevelBias();
  to.minMipmapLevelClamp = from.getLeastLevel();
  to.maxMipmapLevelClamp = from.getMostLevel();
  to.borderColor[0] = from.getBorderR();
  to.borderColor[1] = from.getBorderG();
  to.borderColor[2] = from.getBorderB();
  to.borderColor[3] = from.getBorderA();
  return to;
}

CUDA_RESOURCE_VIEW_DESC readView(api::TextureView::Reader from) {
  CUDA_RESOURCE_VIEW_DESC to{};
  to.format = static_cast<CUresourceViewFormat>(from.getFormat());
  to.firstMipmapLevel = from.getFirstLevel();
  to.lastMipmapLevel = from.getLastLevel();
  to.firstLayer = from.getFirstLayer();
  to.lastLayer = from.getLastLayer();
  to.width = from.getWidth();
  to.height = from.getHeight();
  to.depth = from.getDepth();
  return to;
}

// A launch that was posted before finds it: the driver would give its number to the next object at once.
CUresult destroyLater(Execution& on, uint64_t handle, bool surface) {
  auto object = on.textures.take(handle, surface);
  if (!object) return CUDA_ERROR_INVALID_HANDLE;
  return on.afterAllWork([&on, object = *object] { return on.textures.destroyReal(object); });
}

}  // namespace

CUresult textureCreate(Execution& on, const api::FrameReader<api::Cuda::TextureCreateParams>& p, Reply& reply) {
  CUDA_RESOURCE_DESC resource{};
  if (CUresult bad = readResource(on, p, resource)) return bad;
  CUDA_TEXTURE_DESC sampling = readSampling(p.getSampling());
  CUDA_RESOURCE_VIEW_DESC view = readView(p.getView());
  uint64_t value = 0;
  CUresult result = on.textures.make(
      p.getTexture(), false,
      [&](CUtexObject& made) {
        return on.driver.cuTexObjectCreate(&made, &resource, &sampling, p.getHasView() ? &view : nullptr);
      },
      value);
  if (result == CUDA_SUCCESS) reply.init<api::Cuda::TextureCreateResults>().setValue(value);
  return result;
}

CUresult textureDestroy(Execution& on, const api::FrameReader<api::Cuda::TextureDestroyParams>& p, Reply&) {
  return destroyLater(on, p.getTexture(), false);
}

CUresult surfaceCreate(Execution& on, const api::FrameReader<api::Cuda::SurfaceCreateParams>& p, Reply& reply) {
  CUDA_RESOURCE_DESC resource{};
  resource.resType = CU_RESOURCE_TYPE_ARRAY;
  resource.res.array.hArray = fromWire<CUarray>(on.handles.get(api::Kind::ARRAY, p.getArray()));
  uint64_t value = 0;
  CUresult result = on.textures.make(
      p.getSurface(), true,
      [&](CUsurfObject& made) { return on.driver.cuSurfObjectCreate(&made, &resource); }, value);
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

void drop(Execution& on) {
  on.handles.removeAll(api::Kind::TEXTURE);
  on.handles.removeAll(api::Kind::SURFACE);
  on.textures.forgetAll();
}

Rows save(SessionState& session) {
  Rows rows;
  for (unsigned device = 0; device < session.deviceCount(); ++device)
    for (auto& [handle, object] : session.of(device).textures.live())
      rows.push_back({handle, uint64_t{device}, object.value, uint64_t{object.surface}});
  std::ranges::sort(rows);
  return rows;
}

bool isValid(const Row& row, uint64_t devices) {
  constexpr uint64_t most = 1 << 20;  // that a restore may have to pass over: texture-handles.h
  return numberIn(row, 1) < devices && numberIn(row, 2) <= most;
}

void prepare(SessionState& session, const Rows& rows) {
  std::map<unsigned, std::unordered_map<uint64_t, TextureHandle>> wanted;
  for (auto& row : rows) wanted[deviceOf(row)][numberIn(row, 0)] = objectOf(row);
  for (auto& [device, handles] : wanted) session.of(device).textures.expect(std::move(handles));
}

void compare(SessionState& session, const Rows& rows) {
  for (unsigned device = 0; device < session.deviceCount(); ++device) session.select(device).textures.finishRestore();
  for (auto& row : rows) {
    auto& live = session.of(deviceOf(row)).textures.live();
    uint64_t handle = numberIn(row, 0);
    TextureHandle saved = objectOf(row);
    const char* kind = saved.surface ? "surface" : "texture";
    auto found = live.find(handle);
    if (found == live.end())
      fail(fmt::format("the snapshot keeps the {} {:#x}, which no object of it makes", kind, handle));
    if (found->second.value != saved.value)
      fail(fmt::format("the {} {:#x} has the number {} on this device, and the program knows it by {}: the driver gives "
                       "numbers in another order, so this snapshot cannot be resumed here",
                       kind, handle, found->second.value, saved.value));
  }
}

}  // namespace

const KindModule textureKind{.name = "textures",
                             .drop = drop,
                             .columns = "nnnn",
                             .isValid = isValid,
                             .save = save,
                             .prepare = prepare,
                             .compare = compare};

}  // namespace vgpu::stub
