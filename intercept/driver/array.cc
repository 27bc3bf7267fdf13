// Arrays: the worker makes them, the client keeps their shapes and serves the program's queries.
#include "intercept/driver/shared.h"
#include "intercept/session/refusal.h"
#include "vgpu/api/array-format.h"

using namespace vgpu;
using namespace vgpu::client;

namespace {

static_assert(channelBytes(CU_AD_FORMAT_SIGNED_INT16) == 2 && channelBytes(CU_AD_FORMAT_FLOAT) == 4);

constexpr unsigned knownFlags = CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_SURFACE_LDST | CUDA_ARRAY3D_CUBEMAP |
                                CUDA_ARRAY3D_TEXTURE_GATHER | CUDA_ARRAY3D_COLOR_ATTACHMENT;

CUresult makeLevel(Thread& thread, uint64_t mipmap, unsigned level, uint64_t& handle) {
  Session& session = thread.session;
  handle = session.handles.reserve(api::Kind::ARRAY, handleDevice(mipmap));
  Call<api::Cuda::MipmapLevelParams> frame(thread.of(mipmap), api::Method::mipmapLevel);
  frame->setLevel(handle);
  frame->setMipmap(mipmap);
  frame->setIndex(level);
  if (CUresult error = frame.call()) {
    session.handles.abandon(handle);
    return error;
  }
  CUDA_ARRAY3D_DESCRIPTOR shape = frame.results<api::Cuda::MipmapLevelResults>().getShape<CUDA_ARRAY3D_DESCRIPTOR>();
  session.handles.publish<api::Kind::ARRAY>(handle, 0, [&](ArrayState& array) {
    array.layout = layoutOf(shape);
    array.layout->mipmap = mipmap;
  });
  uint64_t known = session.levels.add(mipmap, level, handle);
  if (known != handle) session.handles.destroy(handle);
  handle = known;
  return CUDA_SUCCESS;
}

}  // namespace

CUresult vgpu::client::checkShape(const CUDA_ARRAY3D_DESCRIPTOR& shape) {
  constexpr unsigned anyFlags = 0x1ff;  // cuda.h, CUDA_ARRAY3D_…
  bool channelsFit = shape.NumChannels == 1 || shape.NumChannels == 2 || shape.NumChannels == 4;
  if (!channelsFit || shape.Width == 0 || (shape.Flags & ~anyFlags) != 0) return CUDA_ERROR_INVALID_VALUE;
  if ((shape.Flags & CUDA_ARRAY3D_SPARSE) != 0)
    return refuseInSession("a sparse array (memory of tiles has no address, so a snapshot could not read its bytes)");
  if ((shape.Flags & ~knownFlags) != 0) return refuseInSession("an array for depth or video, or without memory,");
  return channelBytes(shape.Format) == 0 ? refuseInSession("an array of blocks or planes") : CUDA_SUCCESS;
}

std::unique_ptr<ArrayLayout> vgpu::client::layoutOf(const CUDA_ARRAY3D_DESCRIPTOR& shape) {
  auto layout = std::make_unique<ArrayLayout>();
  layout->shape = shape;
  layout->elementBytes = channelBytes(shape.Format) * shape.NumChannels;
  return layout;
}

extern "C" {

VGPU_EXPORT CUresult CUDAAPI cuMipmappedArrayGetLevel(CUarray* pLevelArray, CUmipmappedArray hMipmappedArray,
                                                      unsigned int level) {
  return enter([&](Thread& thread) -> CUresult {
    uint64_t mipmap = toWire(hMipmappedArray);
    if (pLevelArray == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (CUresult bad = thread.resolve(api::Kind::MIPMAPPED_ARRAY, false, mipmap)) return bad;
    uint64_t handle = thread.session.levels.find(mipmap, level);
    if (handle == 0)
      if (CUresult error = makeLevel(thread, mipmap, level, handle)) return error;
    *pLevelArray = fromWire<CUarray>(handle);
    return CUDA_SUCCESS;
  });
}

VGPU_EXPORT CUresult CUDAAPI cuMipmappedArrayDestroy(CUmipmappedArray hMipmappedArray) {
  return enter([&](Thread& thread) -> CUresult {
    Session& session = thread.session;
    uint64_t mipmap = toWire(hMipmappedArray);
    if (CUresult bad = thread.resolve(api::Kind::MIPMAPPED_ARRAY, false, mipmap)) return bad;
    Call<api::Cuda::MipmapDestroyParams> frame(thread.of(mipmap), api::Method::mipmapDestroy);
    frame->setMipmap(mipmap);
    if (CUresult error = frame.post()) return error;
    for (uint64_t level : session.levels.drop(mipmap)) session.handles.destroy(level);
    session.handles.destroy(mipmap);
    return CUDA_SUCCESS;
  });
}

}  // extern "C"
