// Arrays: the worker makes them, the client keeps their shapes and serves the program's queries.
#include <algorithm>

#include "intercept/session/entry.h"
#include "vgpu/api/array-format.h"

using namespace vgpu;
using namespace vgpu::client;

namespace {

static_assert(channelBytes(CU_AD_FORMAT_SIGNED_INT16) == 2 && channelBytes(CU_AD_FORMAT_FLOAT) == 4);

// Sparse arrays and those without memory of their own would need their mappings in the session.
constexpr unsigned knownFlags = CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_SURFACE_LDST | CUDA_ARRAY3D_CUBEMAP |
                                CUDA_ARRAY3D_TEXTURE_GATHER | CUDA_ARRAY3D_COLOR_ATTACHMENT;

CUresult check(const CUDA_ARRAY3D_DESCRIPTOR& shape) {
  constexpr unsigned anyFlags = 0x1ff;  // cuda.h, CUDA_ARRAY3D_…
  bool channelsFit = shape.NumChannels == 1 || shape.NumChannels == 2 || shape.NumChannels == 4;
  if (!channelsFit || shape.Width == 0 || (shape.Flags & ~anyFlags) != 0) return CUDA_ERROR_INVALID_VALUE;
  return channelBytes(shape.Format) == 0 || (shape.Flags & ~knownFlags) != 0 ? CUDA_ERROR_NOT_SUPPORTED : CUDA_SUCCESS;
}

std::unique_ptr<ArrayLayout> layoutOf(const CUDA_ARRAY3D_DESCRIPTOR& shape) {
  auto layout = std::make_unique<ArrayLayout>();
  layout->shape = shape;
  layout->elementBytes = channelBytes(shape.Format) * shape.NumChannels;
  return layout;
}

// Makes one of that kind by a frame, to which `set` adds what is its own.
template <api::Kind kind, typename Params, typename Handle, typename Set>
CUresult make(Handle* out, api::Method method, const CUDA_ARRAY3D_DESCRIPTOR* shape, Set&& set) {
  return enter([&](Thread& thread) -> CUresult {
    if (out == nullptr || shape == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (CUresult bad = check(*shape)) return bad;
    uint64_t handle = thread.session.handles.reserve(kind, thread.device());
    Call<Params> frame(thread, method, dataWords(sizeof(CUDA_ARRAY3D_DESCRIPTOR)));
    set(frame, handle);
    frame->setShape(*shape);
    if (CUresult error = frame.call()) {
      thread.session.handles.abandon(handle);
      return error;
    }
    thread.session.handles.publish<kind>(handle, thread.owner(), [&](ArrayState& array) { array.layout = layoutOf(*shape); });
    *out = fromWire<Handle>(handle);
    return CUDA_SUCCESS;
  });
}

template <typename Body>
CUresult withArray(CUarray array, Body&& body) {
  return enter([&](Thread& thread) -> CUresult {
    auto* entry = thread.session.handles.find<api::Kind::ARRAY>(toWire(array));
    if (entry == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    return body(thread, *entry->layout);
  });
}

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

extern "C" {

VGPU_EXPORT CUresult CUDAAPI cuArray3DCreate_v2(CUarray* pHandle, const CUDA_ARRAY3D_DESCRIPTOR* pAllocateArray) {
  return make<api::Kind::ARRAY, api::Cuda::ArrayCreateParams>(pHandle, api::Method::arrayCreate, pAllocateArray,
                                                              [](auto& frame, uint64_t array) { frame->setArray(array); });
}

// The worker's driver waits for the work that uses it.
VGPU_EXPORT CUresult CUDAAPI cuArrayDestroy(CUarray hArray) {
  return withArray(hArray, [&](Thread& thread, ArrayLayout& array) -> CUresult {
    if (array.mipmap != 0) return CUDA_SUCCESS;  // as the driver: no error, no effect
    Call<api::Cuda::ArrayDestroyParams> frame(thread.of(toWire(hArray)), api::Method::arrayDestroy);
    frame->setArray(toWire(hArray));
    if (CUresult error = frame.post()) return error;
    thread.destroy(api::Kind::ARRAY, toWire(hArray));
    return CUDA_SUCCESS;
  });
}

VGPU_EXPORT CUresult CUDAAPI cuMipmappedArrayCreate(CUmipmappedArray* pHandle, const CUDA_ARRAY3D_DESCRIPTOR* pMipmappedArrayDesc,
                                                    unsigned int numMipmapLevels) {
  return make<api::Kind::MIPMAPPED_ARRAY, api::Cuda::MipmapCreateParams>(pHandle, api::Method::mipmapCreate, pMipmappedArrayDesc,
                                                                         [&](auto& frame, uint64_t mipmap) {
                                                                           frame->setMipmap(mipmap);
                                                                           frame->setLevels(std::max(1u, numMipmapLevels));
                                                                         });
}

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
