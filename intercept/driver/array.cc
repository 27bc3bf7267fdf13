// Arrays: the worker makes them, the client keeps their shapes and serves the program's queries.
#include "intercept/driver/shared.h"
#include "vgpu/api/array-format.h"

namespace vgpu::client {

namespace {

static_assert(arrayUnit(CU_AD_FORMAT_SIGNED_INT16, 2).bytes == 4 && arrayUnit(CU_AD_FORMAT_BC7_UNORM, 4).side == 4);
static_assert(arrayUnit(CU_AD_FORMAT_NV12, 3).planes == 2 && !arrayUnit(4, 1).isKnown());

bool isMipmap(uint64_t handle) { return handleKind(handle) == static_cast<unsigned>(api::Kind::MIPMAPPED_ARRAY); }

CUresult makePart(Thread& thread, uint64_t whole, unsigned index, uint64_t& handle) {
  Session& session = thread.session;
  handle = session.handles.reserve(api::Kind::ARRAY, handleDevice(whole));
  Call<api::Cuda::ArrayPartParams> frame(thread.of(whole), api::Method::arrayPart);
  frame->setPart(handle);
  isMipmap(whole) ? frame->setMipmap(whole) : frame->setArray(whole);
  frame->setIndex(index);
  if (CUresult error = frame.call()) {
    session.handles.abandon(handle);
    return error;
  }
  CUDA_ARRAY3D_DESCRIPTOR shape = frame.results<api::Cuda::ArrayPartResults>().getShape<CUDA_ARRAY3D_DESCRIPTOR>();
  session.handles.publish<api::Kind::ARRAY>(handle, 0, [&](ArrayState& array) {
    array.layout = layoutOf(shape);
    array.layout->whole = whole;
  });
  uint64_t known = session.arrayParts.add(whole, index, handle);
  if (known != handle) session.handles.destroy(handle);
  handle = known;
  return CUDA_SUCCESS;
}

}  // namespace

CUresult checkFormat(const CUDA_ARRAY3D_DESCRIPTOR& shape) {
  return arrayUnit(shape.Format, shape.NumChannels).isKnown() ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

std::unique_ptr<ArrayLayout> layoutOf(const CUDA_ARRAY3D_DESCRIPTOR& shape) {
  const ArrayUnit unit = arrayUnit(shape.Format, shape.NumChannels);
  return std::make_unique<ArrayLayout>(ArrayLayout{shape, unit.bytes, unit.side, unit.planes});
}

CUresult partOf(Thread& thread, uint64_t whole, unsigned index, uint64_t& part) {
  part = thread.session.arrayParts.find(whole, index);
  return part != 0 ? CUDA_SUCCESS : makePart(thread, whole, index, part);
}

CUresult destroyArray(Thread& thread, uint64_t handle) {
  Session& session = thread.session;
  auto post = [&]() -> CUresult {
    if (isMipmap(handle)) {
      Call<api::Cuda::MipmapDestroyParams> frame(thread.of(handle), api::Method::mipmapDestroy);
      frame->setMipmap(handle);
      return frame.post();
    }
    Call<api::Cuda::ArrayDestroyParams> frame(thread.of(handle), api::Method::arrayDestroy);
    frame->setArray(handle);
    return frame.post();
  };
  if (CUresult error = post()) return error;
  for (uint64_t part : session.arrayParts.drop(handle)) session.handles.destroy(part);
  session.handles.destroy(handle);
  return CUDA_SUCCESS;
}

}  // namespace vgpu::client
